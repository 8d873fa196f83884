"""Promises (docs/promises.md): what a release has, every later version has too.

Run `python -m tests.test_promises` once, when a version is released. It writes the list, tests/released.txt: one line for each
golden case (its id and the hash of its record), one for each public name.
"""

import functools
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import posref
from posref import discovery, vectors
from tests.programs import consumers

RELEASED = Path(__file__).with_name("released.txt")
LISTED = ("check", "explain", "vectors")  # their public names are those of __all__
PAGE = Path(__file__).parents[1] / "docs" / "promises.md"


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


def released():
    """The lines of tests/released.txt in columns: version, kind, name, hash of a case."""
    return [line.split(" ") for line in RELEASED.read_text().splitlines()]


@pytest.mark.parametrize("version", sorted({row[0] for row in released()}))
def test_released_cases_are_as_they_were(version):
    was = {row[2]: row[3] for row in released() if row[:2] == [version, "case"]}
    assert was
    assert {id: hashes().get(id) for id in was} == was, "a case keeps its id, its values and, if it is withdrawn, its place"


@pytest.mark.parametrize("version", sorted({row[0] for row in released()}))
def test_released_names_are_there(version):
    page = PAGE.read_text()
    was = {row[2] for row in released() if row[:2] == [version, "name"]}
    assert was
    gone = sorted(name for name in was if not _there(name))
    assert not [name for name in gone if f"`{name}`" not in page], "docs/promises.md names what is gone, with its reason"


def _there(name):
    module, _, own = name.rpartition(".")
    try:
        return hasattr(importlib.import_module(f"posref.{module}"), own)
    except ModuleNotFoundError:
        return False


def test_a_changed_case_and_a_lost_name_are_noticed(monkeypatch):
    id, held = next(iter(hashes().items()))
    assert [_there(f"check.{name}") for name in ("check", "no_such_name", "no_module.name")] == [True, False, False]
    monkeypatch.setitem(hashes(), id, held[::-1])
    with pytest.raises(AssertionError, match="a case keeps its id"):
        test_released_cases_are_as_they_were("0.2.0")


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
    new = [f"{posref.__version__} case {id} {held}" for id, held in hashes().items()]
    new += [f"{posref.__version__} name {name}" for name in names()]
    kept = [" ".join(row) for row in released() if row[0] != posref.__version__] if RELEASED.exists() else []
    RELEASED.write_text("\n".join(kept + new) + "\n")
