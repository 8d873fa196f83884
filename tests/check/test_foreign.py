"""Wrong implementations by other hands: what the list knows is named, what it does not know is not called something else.

The files in `foreign` import nothing of posref. `posref/facts/foreign.json` says what each function is: an op, its settings,
and functions by kind: "right", the name of a listed mistake, "unlisted", a mistake that no ops file has, or "= NAME; NAME", one
that no ops file has either and whose numbers are those of other settings, read from the phases or tried: RoPE applied twice is
linear scaling by 0.5. What is `missed` has another answer than its kind, with the reason.
"""

import ast
import importlib.util
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from posref import facts, ops
from posref.check import check

torch = pytest.importorskip("torch", reason="implementations by other hands are written in torch")

pytestmark = pytest.mark.slow

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

    @property
    def listed(self):
        return self.kind not in ("right", "unlisted") and not self.kind.startswith("= ")


def loaded(path):
    spec = importlib.util.spec_from_file_location(f"foreign_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def answers(row, module):
    settings = {
        name: eval(value, {"torch": torch}) if name == "to" else value for name, value in row.get("settings", {}).items()
    }
    for kind, names in row["functions"].items():
        for name in names:
            report = check(eval(name, vars(module)), row["op"], **settings)
            said = "; ".join(f"{each.name}: {each.detail}" for each in report.checks if each.status == "failed")
            named = [part for finding in report.diagnosis for part in (finding.name, *finding.name.split(" and "))]
            yield Answer(f"{row['file']}.{name}", kind, report.ok, named, said)


def test_kinds_are_mistakes_of_the_op():
    for row in ROWS:
        listed = {kind for kind in row["functions"] if not kind.startswith("= ")}
        assert listed <= ops.op(row["op"]).mistakes.keys() | {"right", "unlisted"}, row["op"]
        assert {*row.get("missed", ())} <= {name for names in row["functions"].values() for name in names}, row["missed"]


@pytest.fixture(scope="module")
def found():
    modules = {path.stem: loaded(path) for path in sorted(FOLDER.glob("*.py"))}
    assert modules.keys() == {row["file"] for row in ROWS}
    return [answer for row in ROWS for answer in answers(row, modules[row["file"]])]


def rate(answers):
    """The part with the demanded answer, and those without it, one a line."""
    misses = [f"{a.name} is {a.kind}: {'passed' if a.ok else a.named or a.said}" for a in answers if not a.good]
    return 1 - len(misses) / len(answers), "\n".join(["", *misses])


def test_they_are_foreign_and_many(found):
    for path in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            named = [node.module or "."] if isinstance(node, ast.ImportFrom) else []
            named += [name.name for name in node.names] if isinstance(node, ast.Import) else []
            assert not any(name.split(".")[0] in ("posref", "") for name in named), path.name
    kinds = Counter("right" if a.kind == "right" else "listed" if a.listed else "unlisted" for a in found)
    assert kinds["listed"] + kinds["unlisted"] >= 150
    assert kinds["unlisted"] >= 75


def test_listed_mistakes_are_named(found):
    part, misses = rate([a for a in found if a.listed])
    assert part >= 0.95, misses


def test_what_equals_another_setting_is_named_by_it(found):
    part, misses = rate([a for a in found if a.kind.startswith("= ") and a.name not in MISSED])
    assert part == 1, misses


def test_no_mistake_gets_a_false_name(found):
    """Neither one that is unlisted, nor one that is listed under another name."""
    wrong = [f"{a.name} is {a.kind}: {a.named}" for a in found if a.named and not a.good and a.name not in MISSED]
    assert not wrong, "\n".join(["", *wrong])


def test_no_mistake_passes(found):
    passed = [a.name for a in found if a.kind != "right" and a.ok and a.name not in MISSED]
    assert not passed, passed


def test_right_implementations_pass(found):
    part, misses = rate([a for a in found if a.kind == "right"])
    assert part == 1, misses
