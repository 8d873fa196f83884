"""Wrong implementations by other hands: what the list knows is named, what it does not know is not called something else.

The files in `foreign` import nothing of posref. `posref/facts/foreign.json` says what each function is: an op, its settings,
and functions by kind: "right", the name of a listed mistake, "unlisted", a mistake that no ops file has, or "= NAME; NAME", one
that no ops file has either and whose numbers are those of other settings, read from the phases or tried: RoPE applied twice is
linear scaling by 0.5. What is `missed` has another answer than its kind, with the reason.
"""

import ast
import importlib.util
from pathlib import Path
from typing import NamedTuple

import pytest

from posref import facts, ops
from posref.check import check

torch = pytest.importorskip("torch", reason="implementations by other hands are written in torch")

FOLDER = Path(__file__).parent / "foreign"
ROWS = facts.read("foreign")
MISSED = {f"{row['file']}.{name}" for row in ROWS for name in row.get("missed", ())}


class Answer(NamedTuple):
    name: str
    kind: str
    ok: bool
    named: list[str]
    said: str

    @property
    def good(self):
        if self.kind == "right":
            return self.ok
        if self.kind.startswith("= "):
            return not self.ok and set(self.named) == set(self.kind[2:].split("; "))
        return not self.ok and (not self.named if self.kind == "unlisted" else self.kind in self.named)


def loaded(path):
    spec = importlib.util.spec_from_file_location(f"foreign_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def answer(row, kind, name, module):
    settings = {key: eval(value, {"torch": torch}) if key == "to" else value for key, value in row.get("settings", {}).items()}
    report = check(eval(name, vars(module)), row["op"], **settings)
    said = "; ".join(f"{each.name}: {each.detail}" for each in report.checks if each.status == "failed")
    named = [part for finding in report.diagnosis for part in (finding.name, *finding.name.split(" and "))]
    return Answer(f"{row['file']}.{name}", kind, report.ok, named, said)


def asked(file, long):
    """(row, kind, name) of the functions of a file: those that are cheap, or the others, for which everything is tried."""
    cheap, others = [], []
    for row, kind, names in ((r, *each) for r in ROWS if r["file"] == file for each in r["functions"].items()):
        costly = kind == "unlisted" or kind.startswith("= ") or row["op"] == "floater.field"  # whose steps are loops in Python
        usual = () if costly else names[: 1 if kind == "right" else None]
        cheap += [(row, kind, name) for name in usual]
        others += [(row, kind, name) for name in names if name not in usual]
    some = [each for each in others if each[1] != "unlisted"][3::6]
    return [each for each in others if each not in some] if long else cheap + some


def test_kinds_are_mistakes_of_the_op():
    for row in ROWS:
        listed = {kind for kind in row["functions"] if not kind.startswith("= ")}
        op = ops.op(row["op"])
        assert listed <= op.mistakes.keys() | ops.further(op).keys() | {"right", "unlisted"}, row["op"]
        assert {*row.get("missed", ())} <= {name for names in row["functions"].values() for name in names}, row["missed"]


def test_they_are_foreign_and_many():
    assert {path.stem for path in FOLDER.glob("*.py")} == {row["file"] for row in ROWS}
    for path in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            named = [node.module or "."] if isinstance(node, ast.ImportFrom) else []
            named += [name.name for name in node.names] if isinstance(node, ast.Import) else []
            assert not any(name.split(".")[0] in ("posref", "") for name in named), path.name
    kinds = [kind.partition("=")[0] for row in ROWS for kind, names in row["functions"].items() for _ in names]
    assert sum(kind not in ("right", "") for kind in kinds) >= 150
    assert kinds.count("unlisted") >= 75


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
@pytest.mark.parametrize("long", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["cheap", "others"])
def test_right_passes_and_a_mistake_has_its_name_or_none(path, long):
    """Right passes, wrong fails; a listed mistake and another setting have their names, and nothing has a false one."""
    module = loaded(path)
    said = [answer(*each, module) for each in asked(path.stem, long)]
    misses = [a for a in said if not a.good and a.name not in MISSED]
    assert not misses, "\n".join(f"{a.name} is {a.kind}: {'passed' if a.ok else a.named or a.said}" for a in misses)
