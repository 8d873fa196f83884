"""Settings: a configuration file as its class reads it, with one name per key and the defaults of missing keys.

`types.json` holds, per model type, what the configuration class of transformers says: the defaults of keys that bear on
position, other names of keys, and the types of its parts. `posref.explain.families` holds what the modules do with these
keys.
"""

import copy
import functools
import json
import re
from importlib import resources
from typing import Any

from posref.explain.families import FAMILIES, UNKNOWN

UNKNOWN_TYPE = "unknown"  # the type of a part of which neither the file nor a class says one
MOST_LAYERS = 512  # of one configuration; released ones count at most 236
ROTARY = ("rope_parameters", "rope_scaling")
ELSEWHERE = (
    "quantization_config",
    "compression_config",
    "generation_config",
    "auto_map",
)  # they say nothing about the model itself


class Keys(dict):
    """A dictionary of a file that adds the path of each key that is looked up to `read`, which its copies share."""

    def __init__(self, values, path="", read=None):
        self.read = set() if read is None else read
        self.paths = dict(values.paths) if isinstance(values, Keys) else {key: f"{path}{key}" for key in values}
        inner = {key: _recorded(value, f"{self.paths.get(key)}.", self.read) for key, value in values.items()}
        super().__init__(inner)

    def __getitem__(self, key):
        self._note(key)
        return super().__getitem__(key)

    def get(self, key, without=None):
        self._note(key)
        return super().get(key, without)

    def setdefault(self, key, value=None):
        self._note(key)
        return super().setdefault(key, value)

    def update(self, other):
        super().update(other)
        self.paths = {**self.paths, **getattr(other, "paths", {})}

    def __or__(self, other):
        found = copy.copy(self)
        found.update(other)
        return found

    def __copy__(self):
        return Keys(self, read=self.read)

    def __deepcopy__(self, memo):
        return copy.copy(self)

    def _note(self, key):
        if key in self.paths:
            self.read.add(self.paths[key])


def _recorded(value, path, read):
    if isinstance(value, dict):
        return value if isinstance(value, Keys) else Keys(value, path, read)
    if isinstance(value, list) and any(isinstance(each, dict) for each in value):
        return [_recorded(each, f"{path[:-1]}[{i}].", read) for i, each in enumerate(value)]
    return value


class Settings:
    """The keys of one part of a configuration: `settings["head_dim"]` is the file's value, the class's default, or None."""

    def __init__(self, raw, model_type, path="", outer=None, usual=None):
        self.model_type, self.path, self.outer = model_type, path, outer or {}
        self.row = _row(raw, model_type)
        self.facts = record(self.row)
        if self.facts and usual:
            self.facts = {**self.facts, "defaults": {**self.facts.get("defaults", {}), **usual}}
        self.names = self.facts.get("names", {})
        self.file = _under_one_name(raw, self.names)  # as it is; reading it is not remembered
        self.spelled = {self.names.get(key, key): key for key in raw} | dict(raw.get("posref_spelled", ()))
        self.read = set()
        self.raw = Keys(self.file, read=self.read)
        self.doubt = _undecided(self.file, self.row) or _doubt(self.file, self.row, self.facts) or self._other()
        known = (model_type in FAMILIES and not self.doubt) or not self.decided()
        self.family = family((UNKNOWN_TYPE if self.doubt else self.row) if known else "keys alone")

        self.layered, self.parts, self.foreign = True, {}, False

    def _other(self):
        """Which value of a key keeps the row of this type from describing the file, in words; None if the row describes it."""
        rule = family(self.row).get("only", {}) if self.facts else {}
        given = {key for key, values in rule.items() if values == "given"}
        other = [key for key, values in rule.items() if (self[key] is None if key in given else not _among(self[key], values))]
        for each in (each for key in rule if isinstance(self[key], list) for each in self[key] if isinstance(each, Keys)):
            self.read.update(each.paths.values())  # what was compared was read
        return f"{other[0]} is {shown(self[other[0]])}, which posref does not describe" if other else None

    def decided(self):
        """Whether the keys of the file alone decide its frequencies, though its type or its class is not known."""
        dictionaries = [self.file, *(self.file.get(key) for key in ROTARY)]
        based = any(isinstance(values, dict) and values.get("rope_theta") is not None for values in dictionaries)
        word = str(self.file.get("position_embedding_type") or "absolute").lower()  # which many write beside a rotation
        if word != "absolute" and "rope" not in word and "rotary" not in word:
            return False
        sizes = {"hidden_size", "num_attention_heads", "num_hidden_layers"} <= set(self.file)
        own = "variants" in family(self.row) or ("file" in self.facts and self._other())  # code that reads other keys
        unknown = not own and (not self.facts or bool(self.doubt))
        return unknown and based and sizes and "qk_rope_head_dim" not in self.file

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

    def error(self, words):
        """A ValueError that begins with the name of this part of the file."""
        return ValueError(f"{self.path or 'the configuration'}: {words}")

    def number(self, key, kind=(int, float)):
        """The value of a key, or None; a ValueError that names the key if it is no number."""
        value = self[key]
        if value is None or (isinstance(value, kind) and not isinstance(value, bool) and abs(value) < float("inf")):
            return value
        wanted = "an integer" if kind is int else "a number"
        raise self.error(f"{key} is {shown(value)}, expected {wanted}")

    def count(self, key, most=10**6, least=1):
        """The value of a key, or None; a ValueError that names the key if it is no integer from `least` to `most`."""
        value = self.number(key)
        if value is None:
            return None
        if value == int(value) and least <= value <= most:
            return int(value)
        raise self.error(f"{key} is {shown(value)}, expected an integer from {least} to {most}")

    def numbered(self, key, count):
        """The indices of `count` layers; ValueError that names `key` if no model has so many layers."""
        if count > MOST_LAYERS:
            raise self.error(f"{key} makes {count} layers, expected at most {MOST_LAYERS}")
        return list(range(count))

    def counts(self, key):
        """The value of a key that is a list of positive integers; a ValueError that names the key if it is anything else."""
        given = self[key]
        if isinstance(given, (list, tuple)) and given and all(type(n) is int and n > 0 for n in given):
            return list(given)
        raise self.error(f"{self.names.get(key, key)} is {shown(given)}, expected a list of integers from 1 on")


def _among(value, values):
    """Whether a value is one of `values`; for a list, whether each of its elements is."""
    return value in values or (isinstance(value, list) and value != [] and all(each in values for each in value))


def _row(file, model_type):
    """The name of the row for a file: if one type has several models, the row of the model whose values the file has."""
    models = FAMILIES.get(model_type, UNKNOWN).get("variants", {})
    fits = lambda key, value: file.get(key) is not None if value == "given" else file.get(key) == value  # noqa: E731
    return next((name for name, values in models.items() if all(map(fits, values, values.values()))), model_type)


def _undecided(file, row):
    """Why a file fits none of the several models of its type, in words; None if the row describes the file."""
    models = family(row).get("variants", {})
    asked = list(dict.fromkeys(key for values in models.values() for key in values))
    of_file = ", ".join(f"no {key}" if file.get(key) is None else f"{key} {shown(file[key])}" for key in asked)
    known = "; ".join(
        f"{name} has {', '.join(f'a {key}' if value == 'given' else str(value) for key, value in values.items())}"
        for name, values in models.items()
    )
    who = "a model type alone" if "posref_without_file" in file else "the file"
    return f"{who} has {of_file}; {known}; no other key says which of these models it is" if models else None


def record(name):
    """What the configuration class says: the class in transformers, or the class in the code that ships with checkpoints."""
    return {**facts().get(FAMILIES.get(name, UNKNOWN).get("class", name), {}), **family(name).get("code", {})}


def source_file(settings):
    """The source file from which the row of this type was made."""
    if "file" in settings.facts:
        return f"code that ships with the checkpoint: {settings.facts['file']}"
    module = settings.facts.get("module")
    file = settings.family.get("file", module)
    return f"transformers 5.23.0, models/{module}/" + (file if file.endswith(".py") else f"modeling_{file}.py")


def _doubt(file, model_type, record):
    """Why a file seems to belong to another model than its type names, in words; None if nothing says so."""
    names, embedding = _classes_named(file), file.get("position_embedding_type")
    of = record.get("file", f"{model_type} in transformers 5.23.0")
    if record and family(model_type)["encoding"] == "learned" and embedding not in (None, "absolute"):
        return f"position_embedding_type is {shown(embedding)}, and {of} has a learned table"
    known = set(map(_plain, (record.get("classes") or classes().get(record.get("module"), "")).split()))
    bodies = set(map(_body, known))
    for key, name in names if known else ():
        if _plain(name) not in known and not (key == "auto_map" and _body(_plain(name)) in bodies):
            return f"{key} names {shown(name)}, which is no class of {of}"
    return None


def _classes_named(file):
    """(key, class) of each class that a file names: classes of transformers, and classes of the code that ships with it."""
    names, own = file.get("architectures"), file.get("auto_map")
    names = [names] if isinstance(names, str) else names if isinstance(names, list) else []
    own = {key: name for key, name in own.items() if key.startswith("AutoModel")} if isinstance(own, dict) else {}
    found = [("architectures", name) for name in names] + [("auto_map", name) for name in own.values()]
    return [(key, name.rpartition(".")[2]) for key, name in found if isinstance(name, str)]


def _body(name):
    """llama for llamaforcausallm and for llamamodel: code that ships with checkpoints often adds a head to the same layers."""
    return re.split("for|model|lmhead", name)[0]


def _plain(name):
    """A class name without TF, Flax, capitals and underscores, which say nothing about the computation."""
    return re.sub("^(TF|Flax)|_", "", name).lower()


def query_heads(settings, kind):
    """The number of query heads. Step 3.5 has another number for its sliding layers, under one of two names."""
    if "tiled" in settings.family:
        times, usual = settings.family["tiled"]
        return settings.count("num_key_value_heads") * (settings.count(times) or usual)
    key = settings.family.get("heads_of", {}).get(kind)
    other = (settings["attention_other_setting"] or {}).get("num_attention_heads") if key and not settings.given(key) else None
    return other or (settings.count(key) if key else None) or settings.count("num_attention_heads")


def key_heads(settings, heads, kind=None):
    """The number of heads of keys and values, a divisor of the number of query heads; 1 where `multi_query` is true.

    A GGUF file says the number itself. Full layers of Gemma 4 have another number if they take their values from the keys.
    """
    key, without = settings.family.get("key_heads_of", {}).get(kind, (None, None))
    if key and settings["attention_k_eq_v"] is not False and (settings.count(key) or without):
        return settings.count(key) or without
    if settings.family.get("key_heads") == "one":
        return 1
    if settings.family.get("key_heads") == "heads":
        if settings.file.get("num_key_value_heads") == heads:
            settings.read.add("num_key_value_heads")  # it says the same
        return heads
    if settings.family.get("key_heads") == "attn_config":
        return (settings["attn_config"] or {}).get("kv_n_heads", 1)
    shared = settings.family.get("key_heads") == "multi_query" and not settings.file.get("posref_file")
    if shared and settings["multi_query"] and not settings["new_decoder_architecture"]:
        return 1
    key = "num_kv_heads" if shared else "num_key_value_heads"
    read = settings.family.get("key_heads") == "read" or key in settings.facts.get("defaults", {key})
    if not read and "posref_file" not in settings.file:
        return heads  # its class has no such key
    found = settings.count(key) or heads
    if heads and settings.given(key) and heads % found:
        raise settings.error(f"{key} is {found}, expected a divisor of the {heads} heads")
    return found * settings.family.get("more_key_heads", {}).get(kind, 1)


def norm(settings, kind, turned):
    """When queries and keys are normed: before or after their rotation, alone if nothing rotates them; None: never."""
    rule, of = settings.family.get("norm"), settings.family.get("norm_of", (kind,))
    switched = "norm_if" not in settings.family or settings[settings.family["norm_if"]]
    if not rule or not switched or not (turned if of == "turned" else kind in of):
        return None
    return rule if turned else "alone"


def _under_one_name(raw, names):
    """The keys of a file under the names that its class uses; ValueError if two names of one key have different values."""
    found = {}
    for key, value in raw.items():
        name = names.get(key, key)
        if found.get(name) is not None and value is not None and found[name] != value:
            first = next(other for other in raw if names.get(other, other) == name)
            raise ValueError(f"{key} is {shown(value)}, and {first}, another name of it, is {shown(found[name])}")
        found[name] = found.get(name) if value is None and name in found else value
    return found


@functools.cache
def facts():
    """{model type: what its configuration class says}, read from types.json."""
    return json.loads(resources.files(__package__).joinpath("types.json").read_text(encoding="utf-8"))


@functools.cache
def classes():
    """{module of transformers: names of its model classes, separated by spaces}."""
    return json.loads(resources.files(__package__).joinpath("classes.json").read_text(encoding="utf-8"))


@functools.cache
def fields():
    """Names of all fields of all configuration classes of transformers."""
    return frozenset(json.loads(resources.files(__package__).joinpath("fields.json").read_text(encoding="utf-8")).split())


@functools.cache
def family(model_type: str) -> dict[str, Any]:
    """What the module of this type does: its own row, which replaces entries of the row named by `like`."""
    row = FAMILIES.get(model_type, UNKNOWN)
    above = family(row["like"]) if "like" in row else {}
    return {**above, **row}


def shown(value):
    """A value as text for an error, at most 40 characters."""
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
