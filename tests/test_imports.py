"""Imports: which module may import which, read from the source, and the modules that an import loads in a fresh process."""

import ast
import configparser
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from posref import discovery

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}
HEAVY = ("numba", "llvmlite", "sympy", "mpmath", "matplotlib", "torch", "transformers", "jax")
LIGHT = [
    "posref",
    "posref.attention",
    "posref.pairing",
    "posref.shards",
    "posref.discovery",
    "posref.cli",
    "posref.check",
    "posref.precision",
    "posref.expressivity",
    "posref.vectors",
]

SPECIFICATIONS = (*discovery.FAMILIES, *discovery.COMMON, "_require", "_contract")

# A paper that builds on the formula of another family's paper.
BUILDING_BLOCKS = {
    ("relative.nezha", "absolute.sinusoidal"),
    ("relative.transformer_xl", "absolute.sinusoidal"),
    ("relative.xlnet", "absolute.sinusoidal"),
}


def imports(text, module):
    """Full names of what a module imports; `from posref.relative import t5` is posref.relative.t5."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = ".".join(module.split(".")[: -node.level]) if node.level else ""
            base = ".".join(part for part in (package, node.module) if part)
            yield from (f"{base}.{name.name}" for name in node.names)


SEALED = {
    "asyncio",
    "dbm",
    "ftplib",
    "http",
    "marshal",
    "pickle",
    "shelve",
    "smtplib",
    "socket",
    "socketserver",
    "ssl",
    "urllib",
}


# Text that is evaluated: what contracts are written as, and edits of the source of the function that a user names.
EVALUATES = {"posref._contract.__init__", "posref.check.edits"}


def allowed_roots(module):
    """What may be imported from outside, by the part of the project a module belongs to."""
    if module.startswith("posref.fast"):
        return {"posref", "numpy", "numba", "llvmlite"}  # which numba is made of: it says what an instruction is
    if module == "posref.pytest_plugin":
        return {"posref", "pytest"}  # pytest imports it, nothing of posref does
    if module.startswith("posref"):
        return {"posref", "numpy"}
    return {"posref", "proofs", "numpy", "sympy", "mpmath"}


def complaints(text, module):
    """Imports that go against the direction numpy <- posref <- posref.fast and proofs -> both."""
    for name in imports(text, module):
        root, *rest = name.split(".")
        if root not in allowed_roots(module) and root not in sys.stdlib_module_names:
            yield f"{module} imports {name}"
        if module.startswith("posref") and root in SEALED:
            yield f"{module} imports {name}; SECURITY.md promises that nothing is unpickled and no connection is opened"
        if module.startswith("posref.") and not module.startswith(("posref.fast", "posref.cli")) and rest[:1] == ["fast"]:
            yield f"{module} imports {name}; only the user imports posref.fast"
        if module.startswith("proofs.") and not module.startswith("proofs.vectors") and name.startswith("proofs.vectors"):
            yield f"{module} imports {name}; generators import proofs, and nothing points back"
        package, *here = module.split(".")
        if package == root == "posref" and here and here[0] in SPECIFICATIONS and rest:
            block = (".".join(here[:2]), ".".join(rest[:2]))
            if rest[0] not in SPECIFICATIONS:
                yield f"{module} imports {name}; a specification imports specifications only"
            elif rest[0] in discovery.FAMILIES and rest[0] != here[0] and block not in BUILDING_BLOCKS:
                yield f"{module} imports {name}; no family imports another"


def modules(package):
    for path in sorted((ROOT / package).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        # the package itself keeps its __init__, so that a relative import in it resolves like in any module of it
        yield path, ".".join(parts)


def test_direction():
    files = [*modules("posref"), *modules("proofs")]
    assert [said for path, module in files for said in complaints(path.read_text(encoding="utf-8"), module)] == []


@pytest.mark.parametrize(
    ("text", "module"),
    [
        ("import numba", "posref.attention"),
        ("import sympy", "posref.rotary.rope"),
        ("from urllib import request", "posref.explain.sources"),
        ("def f():\n    import torch", "posref.check.rotary.rotation"),
        ("from proofs import kit", "posref.rotary.rope"),
        ("import tests", "posref.vectors.__init__"),
        ("from posref import fast", "posref.rotary.rope"),
        ("from posref.fast import rope", "posref.check.rotary.rotation"),
        ("from posref.rotary import rope", "posref.relative.t5"),
        ("from posref.relative import t5", "posref.attention"),
        ("from ..rotary import rope", "posref.relative.t5"),
        ("from posref import check", "posref.relative.t5"),
        ("import posref.absolute.sinusoidal", "posref.rotary.rope"),
        ("import numba", "proofs.rotary.rope"),
        ("import torch", "proofs.kit.normal"),
        ("import scipy", "posref.fast.rope"),
        ("from proofs.vectors import terms", "proofs.relative.t5"),
    ],
)
def test_direction_can_fail(text, module):
    assert list(complaints(text, module))


def evaluates(text):
    """Whether Python evaluates text as code."""
    called = (node.func for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    return bool({"eval", "exec", "compile", "__import__"} & {each.id for each in called if isinstance(each, ast.Name)})


def test_no_text_of_a_file_is_evaluated():
    """As SECURITY.md promises."""
    assert {module for path, module in modules("posref") if evaluates(path.read_text(encoding="utf-8"))} == EVALUATES


@pytest.mark.parametrize(
    ("text", "module"),
    [
        ("import numba", "posref.fast.rope"),
        ("from posref.absolute import sinusoidal", "posref.relative.nezha"),
        ("from posref import offsets", "posref.relative.t5"),
        ("from posref import _require, pairing", "posref.rotary.rope"),
        ("import sympy", "proofs.kit.normal"),
        ("from posref.fast import rope", "proofs.rotary.rope"),
        ("from proofs.rotary.rope import definition", "proofs.vectors.rope"),
        ("from proofs.vectors import terms", "proofs.vectors.rope"),
    ],
)
def test_direction_lets_the_good_pass(text, module):
    assert list(complaints(text, module)) == []


def needed(start, files):
    """What these modules, and the modules of ours that they import, need from outside."""
    todo, seen, roots = [*start], set(), set()
    while todo:
        here = todo.pop()
        if here in seen:
            continue
        seen.add(here)
        for name in imports(files[here], here):
            own = next((m for m in (name, name.rpartition(".")[0], f"{name}.__init__") if m in files), None)
            todo += [own] if own else []
            roots |= {name.split(".")[0]}
    return roots - {"posref", "proofs"} - sys.stdlib_module_names


@pytest.mark.whole
def test_the_extra_of_the_proofs_installs_all_that_they_import():
    """`pip install -e ".[proofs]"` is the first command of the README, and `python -m proofs` works after it.

    sympy brings mpmath, and numba llvmlite.
    """
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    wanted = setup["options"]["install_requires"] + setup["options.extras_require"]["proofs"]
    installed = {re.match(r"[\w-]+", line)[0] for line in wanted.split("\n") if line.strip()} | {"mpmath", "llvmlite"}
    files = {module: path.read_text(encoding="utf-8") for part in ("posref", "proofs") for path, module in modules(part)}
    assert needed([module for module in files if module.startswith("proofs.")], files) <= installed


@pytest.mark.whole
@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("[!_]*.py")), ids=lambda path: path.stem)
def test_every_example_has_help(example):
    run = subprocess.run([sys.executable, example, "--help"], capture_output=True, text=True, cwd=ROOT, env=ENVIRONMENT)
    assert (run.returncode, run.stdout[:6]) == (0, "usage:"), run.stdout[:500] + run.stderr[-500:]


def loaded_by(names):
    """Each module that a fresh process imports, in this order, and the heavy packages present after it."""
    code = f"""
import importlib, json, sys
def heavy(name):
    importlib.import_module(name)
    return [package for package in {HEAVY} if package in sys.modules]
print(json.dumps({{name: heavy(name) for name in {names}}}))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    return json.loads(run.stdout)


def test_specifications_load_numpy_only():
    names = [*LIGHT, *(f"posref.{name}" for name in discovery.names())]
    assert loaded_by(names) == {name: [] for name in names}


def test_what_is_loaded_is_seen():
    pytest.importorskip("sympy", reason="needs posref[proofs]")
    assert loaded_by(["posref", "sympy"]) == {"posref": [], "sympy": ["sympy", "mpmath"]}


def test_the_command_line_loads_no_numpy_before_a_command():
    code = "import sys, posref.cli; print('numpy' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert run.stdout.strip() == "False"
