"""One configuration file as its class reads it: every spelling under one name, and what the file leaves out.

`types.json` holds, per model type, what the class of the installed transformers says: the values of the keys that bear on
position where a file has none, other names of keys, and the types of its parts. `posref.explain.families` holds what the
module does with them.
"""

import functools
import json
from importlib import resources
from typing import Any

from posref.explain.families import FAMILIES, UNKNOWN


class Settings:
    """Keys of one part of a configuration: `settings["head_dim"]` is the file's value, or the class's, or None."""

    def __init__(self, raw, model_type, path=""):
        self.model_type, self.path = model_type, path
        self.facts = facts().get(model_type, {})
        self.names = self.facts.get("names", {})
        self.raw = {self.names.get(key, key): value for key, value in raw.items()}
        self.family = family(model_type)
        self.read = set()

    def __getitem__(self, key):
        key = self.names.get(key, key)
        self.read.add(key)
        if key in self.raw:
            return self.raw[key]
        return self.facts.get("defaults", {}).get(key)

    def given(self, key):
        """Whether the file itself has this key, with a value."""
        key = self.names.get(key, key)
        self.read.add(key)
        return self.raw.get(key) is not None

    def number(self, key, kind=(int, float)):
        """A number of the file, or ValueError that names the key; None where there is none."""
        value = self[key]
        if value is None or (isinstance(value, kind) and not isinstance(value, bool)):
            return value
        raise ValueError(f"{self.path or 'the configuration'}: {key} is {shown(value)}, expected a number")

    def count(self, key):
        """A positive integer of the file, or ValueError that names the key; None where there is none."""
        value = self.number(key)
        if value is None or (value == int(value) and value > 0):
            return None if value is None else int(value)
        raise ValueError(f"{self.path or 'the configuration'}: {key} is {shown(value)}, expected a positive integer")


@functools.cache
def facts():
    """The table of facts: model type -> what its configuration class says."""
    return json.loads(resources.files(__package__).joinpath("types.json").read_text(encoding="utf-8"))


@functools.cache
def family(model_type: str) -> dict[str, Any]:
    """What the module of this type does: its own row, on top of the row it is like."""
    row = FAMILIES.get(model_type, UNKNOWN)
    above = family(row["like"]) if "like" in row else {}
    return {**above, **row}


def shown(value):
    """A value for an error: short."""
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
