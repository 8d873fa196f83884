"""What theorems are about, and that nothing public goes without one; `python -m proofs` proves them and tries the mutants."""

import ast
import contextlib
import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest
import sympy as sp

import posref.fast
from posref import discovery
from proofs.kit import Scalar, SizedArray, language
from proofs.kit.mutants import Tripwire, python_function, swapped, tripwire
from proofs.kit.runner import names
from proofs.kit.theorem import theorems, vocabulary
from tests.every import every

ROOT = Path(__file__).resolve().parents[2]
FILES = names()
SPECIFICATIONS = [*discovery.COMMON, *discovery.names()]
KERNELS = [f"fast.{m.name}" for m in pkgutil.iter_modules(posref.fast.__path__)]


def proof_file(name):
    return importlib.import_module(f"proofs.{name}")


MAKERS = {"room", "symbol", "symbols", "sized", "integers", "size", "index", "pair", "Symbol"}
EVERY = [(name, t) for name in FILES for t in theorems(proof_file(name))]


@every(EVERY, name=lambda pair: pair[1].name)
def test_an_example_is_what_names_no_symbol(name, t):
    """A theorem speaks of symbols, its own or the file's; what is evaluated at numbers alone is declared an example."""
    words, names = vocabulary(t.body), vars(proof_file(name))
    symbolic = words & MAKERS or any(isinstance(names.get(word), (Scalar, sp.Basic, SizedArray)) for word in words)
    assert t.is_example != bool(symbolic)
    assert t.of or t.argument or not t.is_example
    assert t.statement
    assert t.sizes


@every(EVERY, name=lambda pair: pair[1].name)
def test_controls_run_what_the_theorem_is_about(name, t):
    """A control about other functions would show nothing about these; pure mathematics has none."""
    for control in t.controls:
        with contextlib.ExitStack() as stack:
            for function in {python_function(f): f for f in t.of}:
                stack.enter_context(swapped(function, tripwire(function)))
            with pytest.raises(Tripwire if t.of else AssertionError):
                control()


@every(sorted(FILES))
def test_no_theorem_is_lost(name):
    """Two of one name, or one that is not registered, would not be run."""
    tree = ast.parse((ROOT / "proofs" / name.replace(".", "/")).with_suffix(".py").read_text(encoding="utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    decorators = [ast.unparse(d) for node in functions for d in node.decorator_list]
    assert len({node.name for node in functions}) == len(functions)
    assert sum(d.startswith(("theorem(", "example(")) for d in decorators) == len(theorems(proof_file(name))) >= 1
    calls = [
        ast.unparse(node.value.func) for node in tree.body if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    ]
    controls = sum(d.endswith(".control") or ".claim(" in d for d in decorators) + sum(c.endswith(".control_by") for c in calls)
    assert controls == sum(len(t.controls) for t in theorems(proof_file(name)))


def proved(name):
    """The functions that the theorems of a file are about."""
    if name not in FILES:
        return set()
    return {python_function(f) for t in theorems(proof_file(name)) for f in t.of}


@every(SPECIFICATIONS)
def test_every_public_function_has_a_theorem(name):
    """In the proof file of its own name, so that its mutants are tried there."""
    module = importlib.import_module(f"posref.{name}")
    public = {
        python_function(f)
        for key, f in vars(module).items()
        if inspect.isfunction(f) and f.__module__ == module.__name__ and not key.startswith("_")
    }
    missing = sorted(f.__name__ for f in public - proved(name))
    assert not missing, f"proofs/{name.replace('.', '/')}.py has no theorem about {', '.join(missing)}"


def test_what_theorems_run_is_mutated():
    """A function of posref that a theorem runs has theorems in the proof file of its module, or its mutants are not tried."""
    run = {f for g in {g for _, t in EVERY for g in t.of} for f in language.reached(g, inside="posref")}
    elsewhere = {f"{f.__module__}.{f.__name__}" for f in run if f.__module__.removeprefix("posref.") not in FILES}
    assert {name for name in elsewhere if not name.startswith("posref.fast.")} == set()


@every(KERNELS)
def test_every_kernel_has_a_theorem(name):
    module = importlib.import_module(f"posref.{name}")
    kernels = {f.py_func for f in vars(module).values() if hasattr(f, "py_func") and f.__module__ == module.__name__}
    missing = sorted(f.__name__ for f in kernels - proved(name))
    assert not missing, f"proofs/{name.replace('.', '/')}.py has no theorem about {', '.join(missing)}"


def test_kernels_are_found():
    assert {"fast.rope"} <= {
        name for name in KERNELS if any(hasattr(f, "py_func") for f in vars(importlib.import_module(f"posref.{name}")).values())
    }
