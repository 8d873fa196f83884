"""Facts as data: each file fits its schema, and a fact stands in one place."""

import json
import re
from pathlib import Path

import pytest

from posref import facts

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "posref" / "facts"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json") if path.stem != "schema")
SCHEMA = json.loads((FOLDER / "schema.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", NAMES)
def test_rows_fit_their_schema(name):
    jsonschema = pytest.importorskip("jsonschema", reason="pip install posref[dev]")
    jsonschema.validate(facts.read(name), {**SCHEMA, "$ref": f"#/definitions/{name}"})


def sentences(value):
    """All strings of 60 characters and more, but titles of sources: short ones may be said by anybody."""
    if isinstance(value, str):
        yield from [value] if len(value) >= 60 else []
    elif isinstance(value, (dict, list)):
        for each in [value[key] for key in value if key != "sources"] if isinstance(value, dict) else value:
            yield from sentences(each)


def plain(text):
    """Without quotation marks, line ends and signs of comments, as a copy may have others."""
    return " ".join(re.sub(r"[\"'\\#*`]", "", text).split())


def test_a_fact_stands_in_one_place():
    sources = {path: plain(path.read_text(encoding="utf-8")) for path in ROOT.glob("[!.]*/**/*.py")}
    found = {plain(each) for name in NAMES for each in sentences(facts.read(name))}
    assert [f"{path.relative_to(ROOT)}: {each[:80]}" for path, text in sources.items() for each in found if each in text] == []
