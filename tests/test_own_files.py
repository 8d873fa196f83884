"""A system consists of its own files: a copy and a new system of `python -m tests.new` are found without other edits."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.new.__main__ import MARK, WORDS, write

for needed in ("sympy", "jinja2", "markdown", "pygments"):
    pytest.importorskip(needed, reason="proofs and pages are made with the extra dev")

ROOT = Path(__file__).resolve().parents[1]
FILES = ("posref/{family}/{name}.py", "posref/ops/{name}.py", "proofs/{family}/{name}.py", "proofs/vectors/{name}.py")
COPY = "_copied"

# Prints what posref says about systems: {system: {where: text}}.
SAYS = """
import contextlib, io, json, sys, tempfile
sys.path.insert(0, "docs")
import numpy as np
from pages import data
from posref import check, cli, comparison, discovery, expressivity, ops, statements, vectors

def printed(*words):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        code = cli.main([*words])
    assert code == (words[0] == "diagnose"), words
    return out.getvalue()

def checked(op):
    try:
        return str(check.check(op.spec, op.name))
    except ValueError as error:  # a setting has no default
        return str(error)

def diagnosed(case):
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/wrong.npy", case.expected + 1)
        return printed("diagnose", case.id, f"{folder}/wrong.npy")

def said(name, short):
    yield from ((word, printed(word, short)) for word in ("show", "mistakes"))
    yield "table", comparison.row(name)
    yield "list", [line for line in printed("list").splitlines() if f"{short} " in line]
    yield "vectors", printed("vectors", "list", f"{short}/*")
    yield "express", [expressivity.outside().get(name), [row for row, s in expressivity.SYSTEMS.items() if name in s.of]]
    yield "statements", statements.about(name)
    yield "check", [checked(op) for op in ops.system(short).values()]
    yield "diagnose", [diagnosed(case) for case in vectors.load(short).cases if case.expected.size][0]
    yield "page", data.page(name)

print(json.dumps({name: dict(said(name, name.split(".")[1])) for name in sys.argv[1:]}, default=str))
"""


def copied(names, root):
    """The tree with these systems a second time, and the names of the copies."""
    for folder in ("posref", "proofs", "docs", "tests"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__", "*.nb?"))
    for path in ("README.md", "CITATION.cff", "setup.cfg"):
        shutil.copy(ROOT / path, root / path)
    for family, name in (full.split(".") for full in names):
        for pattern in FILES:
            text = (ROOT / pattern.format(family=family, name=name)).read_text(encoding="utf-8")
            (root / pattern.format(family=family, name=name + COPY)).write_text(renamed(text, family, name), encoding="utf-8")
    return [name + COPY for name in names]


def renamed(text, family, name):
    """Imports, ids and paths of a system name its copy; in the code the module keeps its name."""
    imports = rf"^from (?:posref|proofs)\.(?:{family}|ops) import (?:\([^)]*\)|.*)$"
    text = re.sub(imports, lambda m: re.sub(rf"\b{name}\b(?! as)", f"{name}{COPY} as {name}", m[0]), text, flags=re.MULTILINE)
    return re.sub(rf"(?<=[\"']){name}(?=/)|(?<={family}[./]){name}\b", name + COPY, text)


def run(root, *words):
    done = subprocess.run(
        [sys.executable, *words],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(map(str, words))[:80]}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


def plain(said):
    """Texts without what belongs to the copy's name, what Coq has not read of it, and the blanks that align columns."""
    apart = r' at 0x\w+|(\\n|\s)+|"coq": "\d+( of \d+)?"'
    return {where: re.sub(apart, " ", json.dumps(text).replace(COPY, "")) for where, text in said.items()}


@pytest.mark.whole
@pytest.mark.parametrize("families", [("state",), pytest.param(tuple(WORDS), marks=pytest.mark.slow)])
def test_copies_and_new_systems_are_found(families, tmp_path):
    """A family; all of them in the release tier."""
    copied(["relative.fire"], tmp_path)
    new = {f"{family}.new_in_{family}": write(f"{family}.new_in_{family}", tmp_path) for family in families}
    added = [f"relative.fire{COPY}", *new]
    run(tmp_path, "-m", "proofs", *added, "--no-mutants", "--write-statements")
    run(tmp_path, "-m", "proofs.vectors", *(name.split(".")[1] for name in added))
    said = json.loads(run(tmp_path, "-c", SAYS, "relative.fire", *added))
    assert plain(said["relative.fire"]) == plain(said[f"relative.fire{COPY}"])
    for name, paths in new.items():
        assert all(MARK in path.read_text(encoding="utf-8") for path in paths)
        assert f"posref: {name.partition('.')[2]}." in said[name]["check"][0]
        assert " ok\n" in said[name]["check"][0]
        assert len(said[name]["page"]["theorems"]) == len(said[name]["page"]["mistakes"]) == 1
    files = [path for paths in new.values() for path in (paths[0], paths[-1])]
    run(tmp_path, "-m", "pytest", "-q", "-n0", "tests/test_budget.py", "tests/test_house.py::test_systems_are_whole", *files)


@pytest.mark.parametrize(
    ("name", "said"), [("relative.t5", "is the name of relative.t5"), ("t6", "is no name"), ("scores.new", "is no name")]
)
def test_a_name_that_is_taken_or_none_is_refused(name, said, tmp_path):
    with pytest.raises(ValueError, match=said):
        write(name, tmp_path)
