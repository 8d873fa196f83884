"""Promises (docs/promises.md): what a release has, every later version has too.

Run `python -m tests.test_promises` once, when a version is released. It adds to tests/released.txt one line for what is new:
a golden case (its id and the hash of its record), a public name with its arguments, a command of `ASKED` with the keys.
"""

import contextlib
import functools
import importlib
import inspect
import io
import json
import pkgutil
import re
from pathlib import Path

import pytest

import posref
from posref import cli, discovery, vectors
from tests.programs import consumers

RELEASED = Path(__file__).with_name("released.txt")
LISTED = ("check", "explain", "vectors")  # their public names are those of __all__
PAGE = Path(__file__).parents[1] / "docs" / "promises.md"
ASKED = {  # commands whose keys of --json are the same for every model, function and word
    "list": ["list"],
    "find": ["find", "bucket"],
    "claims": ["claims", "bucket"],
    "check": ["check", "posref.relative.alibi:slopes", "--as", "alibi.slopes", "--heads", "3", "--max-bias", "4"],
    "explain": ["explain", "gpt-oss-20b"],
    "express": ["express", "alibi key", "rope"],
    "precision": ["precision"],
    "aliases": ["aliases"],
}


def names():
    """The public names, with full dots: what the packages list, and every function of a specification and of its fast twin."""
    for package in LISTED:
        yield from (f"{package}.{name}" for name in importlib.import_module(f"posref.{package}").__all__)
    twins = [f"fast.{found.name}" for found in pkgutil.iter_modules(importlib.import_module("posref.fast").__path__)]
    for module in (*discovery.names(), *discovery.COMMON, *(twin for twin in twins if "._" not in twin)):
        for name, value in vars(importlib.import_module(f"posref.{module}")).items():
            own = getattr(value, "__module__", "") == f"posref.{module}"
            if own and inspect.isroutine(value) and not name.startswith("_"):
                yield f"{module}.{name}"


@functools.cache
def hashes():
    """The hash of each golden case, by id, from the catalogue; `vectors.verify` compares the catalogue with the cases."""
    rows = [line.split("\t") for line in (Path(vectors.__file__).parent / vectors.CATALOGUE).read_text().splitlines()[1:]]
    return {row[0]: row[-1][:16] for row in rows}


def called(name):
    """The public name with its arguments, if it is called: "module.name(first,second=)", `=` for a default; "" for none."""
    module, _, own = name.rpartition(".")
    try:
        found = getattr(importlib.import_module(f"posref.{module}"), own)
    except (ModuleNotFoundError, AttributeError):
        return ""
    given = inspect.signature(found).parameters.values() if callable(found) else ()
    words = ",".join(each.name + "=" * (each.default is not each.empty) for each in given)
    return f"{name}({words})" if callable(found) else name


def still_called(was, now):
    """Whether a call of what was, is one of what is: the arguments stay in order, and new ones have a default."""
    (name, opened, was), (name_now, opened_now, now) = was.partition("("), now.partition("(")
    was, now = re.findall(r"\w+=?", was), re.findall(r"\w+=?", now)
    kept = [each for each in now if each in was or each.rstrip("=") in was]
    in_order = [each.rstrip("=") for each in kept] == [each.rstrip("=") for each in was]
    return (name, opened) == (name_now, opened_now) and in_order and all("=" in each for each in now if each not in kept)


def keys(command):
    """All keys that a command of `ASKED` prints, sorted, by commas."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        cli.main([*ASKED[command], "--json"])
    return ",".join(sorted(set(_keys(json.loads(printed.getvalue())))))


def _keys(value):
    if isinstance(value, (dict, list)):
        yield from value if isinstance(value, dict) else ()
        for each in value.values() if isinstance(value, dict) else value:
            yield from _keys(each)


def released():
    """The lines of tests/released.txt in columns: version, kind, name, and the hash of a case or the keys."""
    return [line.split(" ") for line in RELEASED.read_text().splitlines()]


def test_released_cases_are_as_they_were():
    was = {row[2]: row[3] for row in released() if row[1] == "case"}
    assert len(was) >= 1003
    assert {id: hashes().get(id) for id in was} == was, "a case keeps its id, its values and, if it is withdrawn, its place"


def test_released_names_are_called_as_they_were():
    page = PAGE.read_text()
    was = {row[2] for row in released() if row[1] == "name"}
    assert len(was) >= 228
    gone = {name.partition("(")[0] for name in was if not still_called(name, called(name.partition("(")[0]))}
    assert not [name for name in gone if f"`{name}`" not in page], "docs/promises.md names what is gone, with its reason"


@pytest.mark.parametrize("command", ASKED)
def test_released_keys_are_printed(command):
    was = {key for row in released() if row[1:3] == ["keys", command] for key in row[3].split(",")}
    assert was
    assert was <= set(keys(command).split(","))


def test_a_lost_name_and_a_changed_call_are_noticed():
    assert [called(f"check.{name}") for name in ("no_such_name", "no_module.name")] == ["", ""]
    assert called("offsets.offsets") == "offsets.offsets(query_positions,key_positions)"
    assert all(still_called("f(a,b=)", now) for now in ("f(a,b=)", "f(a=,b=)", "f(a,c=,b=)"))
    assert not any(still_called("f(a,b=)", now) for now in ("", "f", "f(a)", "f(b=,a)", "f(a,b)", "f(a,b=,c)"))


def test_a_changed_case_is_noticed(monkeypatch):
    id, held = next(iter(hashes().items()))
    monkeypatch.setitem(hashes(), id, held[::-1])
    with pytest.raises(AssertionError, match="a case keeps its id"):
        test_released_cases_are_as_they_were()


def test_the_page_names_the_versions_that_ran():
    setup = (PAGE.parents[1] / "setup.cfg").read_text()
    supported = re.findall(r"Python :: (3\.\d+)", setup)
    assert supported == re.findall(r"^\| Python (3\.\d+)\b", PAGE.read_text(), re.MULTILINE)


def test_every_patch_for_another_project_is_listed_with_the_version_that_ran():
    page = (PAGE.parents[1] / "CONSUMERS.md").read_text()
    assert {patch.stem for patch in consumers.PATCHES.iterdir()} == consumers.PINS.keys()
    for project, (pin, *_) in consumers.PINS.items():
        name, version = pin.replace("[cpu]", "").split("==")
        assert f"| {name} {version} | [{project}.patch](examples/consumers/{project}.patch)" in page


if __name__ == "__main__":
    kept = [row for row in released() if row[0] != posref.__version__]
    now = [["case", id, held] for id, held in hashes().items()] + [["name", called(name)] for name in names()]
    now += [["keys", command, keys(command)] for command in ASKED]
    new = [[posref.__version__, *row] for row in now if row not in [known[1:] for known in kept]]
    RELEASED.write_text("".join(" ".join(row) + "\n" for row in kept + new))
