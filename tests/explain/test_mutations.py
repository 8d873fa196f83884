"""Released configurations, changed at random by a seed: each gives an explanation or one line, without control characters."""

import copy
import json
import random
import re
from pathlib import Path

import pytest

from posref import cli
from posref.explain import explain, explanation
from posref.explain.words import describe

RECORDS = json.loads(Path(__file__).with_name("configs.json").read_text(encoding="utf-8"))
STRANGE = ["\x1b[31mred", "a\nb", "\u202eevil", "\x9b31m", "\u2028z"]
STRANGE += ["", None, True, -1, 0, 0.5, 10**30, float("nan"), [], [[1]], {}]
PYTHON = re.compile(r"(Type|Key|Index|Attribute|ZeroDivision)Error|object|unsupported operand|unhashable|NoneType")


def places(config, above=()):
    for key, value in config.items():
        yield above, key
        if isinstance(value, dict):
            yield from places(value, (*above, key))


def mutated(config, rng):
    """One to three keys renamed, moved into a dictionary, left out, given a strange value, or a list of another length."""
    found = copy.deepcopy(config)
    for _ in range(rng.randint(1, 3)):
        above, key = rng.choice(list(places(found)) or [((), "model_type")])
        inner = found
        for name in above:
            inner = inner[name]
        value = inner.pop(key, None)
        how = rng.choice(["rename", "nest", "drop", "value", "length", "text"])
        if how == "rename":
            inner[key + rng.choice(["_2", "\x1b[2J", "\u2066", "\ue000", "_layers"])] = value
        elif how == "nest":
            inner[rng.choice(["text_config", "inner"])] = {key: value}
        elif how == "length":
            inner[key] = [*value, *value[:1]] if isinstance(value, list) else [value]
        elif how in ("value", "text"):
            inner[key] = rng.choice(STRANGE[:5] if how == "text" else STRANGE)
    return found


def controls(text):
    return [c for c in text if c != "\n" and not c.isprintable()]


@pytest.mark.parametrize("seeds", [range(20), pytest.param(range(20, 300), marks=pytest.mark.slow)], ids=str)
def test_changed_files(seeds, tmp_path, capsys):
    for seed in seeds:
        answered_or_refused(random.Random(seed), tmp_path / "config.json", capsys)


def answered_or_refused(rng, path, capsys):
    config = mutated(rng.choice(RECORDS)["config"], rng)
    path.write_text(json.dumps(config), encoding="utf-8")
    try:
        explained = explain(config)
        assert not controls(describe(explanation(config), "x"))
        said = [entry["why"] for entry in explained["unsupported"]]
    except ValueError as error:
        said = [str(error)]
    assert not any(PYTHON.search(words) for words in said), said
    for command in (["explain", str(path)], ["explain", str(path), "--code", "numpy"], ["check", "m:f", "--config", str(path)]):
        assert cli.main(command) in (0, 2)
        out, err = capsys.readouterr()
        assert not controls(out + err)
        assert err.count("\n") <= 1, err
