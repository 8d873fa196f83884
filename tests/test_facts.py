"""Facts as data: each file fits its schema, and each fact stands in one place."""

import json
import re
from pathlib import Path

import pytest

from posref import facts, statements
from tests.programs import findings as programs

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "posref" / "facts"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json") if path.stem != "schema")
SCHEMA = json.loads((FOLDER / "schema.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", NAMES)
def test_rows_fit_their_schema(name):
    jsonschema = pytest.importorskip("jsonschema", reason="pip install posref[dev]")
    jsonschema.validate(facts.read(name), {**SCHEMA, "$ref": f"#/definitions/{name}"})


def test_explain_reads_each_entry_of_a_family():
    said = SCHEMA["definitions"]["family"]["properties"].keys() - {"note"}
    code = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "posref" / "explain").glob("*.py"))
    assert sorted(name for name in said if f'"{name}"' not in code) == []


def test_findings_rest_on_what_is_there():
    """The right values are those of posref, theorems exist, and the page and README say what the rows say."""
    rows = facts.read("findings")["findings"]
    assert {row["library"] for row in rows} == facts.read("findings")["libraries"].keys()
    for row in rows:
        assert programs.right(row) == row["right"] != row["prints"], row["id"]
        assert ("expected" in row) == (row["by"] in statements.statements()), row["id"]
        assert re.search(r"ot affected|ot examined|first files|an error, no wrong number|was seen|none was", row["affected"]), (
            row["id"]
        )
    ids = [row["id"] for row in (*rows, *facts.read("findings")["conventions"])]
    assert len(ids) == len(set(ids))
    readme = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Three findings")[2].partition("[All")[0]
    bullets = [" ".join(each.split()) for each in readme.strip("\n *").split("\n* ")]
    versions = {
        name: version
        for pins in facts.read("corpus")["environments"].values()
        for name, version in (p.split("==") for p in pins)
    }
    assert set(bullets) < {f"{row['library']} {versions[row['library']]}: {row['title']}" for row in rows}
    assert len(bullets) == 3


def sentences(value, key=""):
    """What rows say in words, from 60 characters on: short sentences may be said by anybody."""
    if isinstance(value, str):
        yield from [value] if key in ("sentence", "truth", "title", "affected", "verdict") and len(value) >= 60 else []
    elif isinstance(value, (dict, list)):
        for name, each in value.items() if isinstance(value, dict) else ((key, each) for each in value):
            yield from sentences(each, name)


def plain(text):
    """Without quotation marks, line ends and signs of comments, as a copy may have others."""
    return " ".join(re.sub(r"[\"'\\#*`]", "", text).split())


def test_a_fact_stands_in_one_place():
    sources = {path: plain(path.read_text(encoding="utf-8")) for path in ROOT.glob("[!.]*/**/*.py")}
    found = {plain(each) for name in NAMES for each in sentences(facts.read(name))}
    assert [f"{path.relative_to(ROOT)}: {each[:80]}" for path, text in sources.items() for each in found if each in text] == []
