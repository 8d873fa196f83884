"""Edits that operators of mutation miss, and who notices them: `python -m tests.programs.sabotage [--alone] [NAME ..]`.

Each edit is a guard around what a shipped function returns, a dropped keyword, a write to an argument, or another default.
The table counts, by class, who notices first: the house rules, the golden vectors, the proofs of the function on symbols, the
same theorems in numbers, the tests of the module, or nobody. With --alone each is asked on its own. NAME is rotary.xpos, or
fast.alibi: of a twin the wrapper is edited, in memory, so that its kernels stay compiled. Without a name it is all modules.
"""

import ast
import contextlib
import copy
import importlib.util
import inspect
import io
import itertools
import os
import sys
from typing import NamedTuple

import numpy as np
import pytest

from posref import ops, vectors
from proofs.kit import numbers
from proofs.kit.mutants import code_of, original, python_function, swapped
from proofs.kit.runner import in_file, names
from tests import test_house as house

SIZES = (64, 80, 128, 256)
WAYS = {
    "cast": "({e}).astype('float32')",
    "fraction": "np.trunc({e})",
    "clamp": "np.minimum({e}, 2 ** 20)",
    "overflow": "({e}).astype('int8')",
}
WHOLE = ("Integers", "SignedIntegers", "Booleans")  # they have no fraction
RULES = (house.defaults_as_published, house.no_other_numbers)
RULES_OF_SPECIFICATIONS = (house.runs_on_symbols, house.exact_numbers)
RULES_OF_MODULES = (house.asks_no_size, house.only_formulas)
JUDGES = ("rules", "vectors", "proofs", "numbers", "tests")
# Edits that change nothing.
EQUIVALENT = {
    "row_maximum: axis dropped from scores.min(keepdims=True)": "any number below the largest of the row will do",
    "gather_rows: axis dropped from np.take_along_axis(spread, index)": "the last axis is numpy's default",
    "tables: threads dropped from tables(m[far], theta)": "threads change no bit, and rows far away are few",
    "_sum: out[...] = out / 2": "out is zero before",
    "_interleaved_past_caches: out[...] = out / 2": "all of out is written, and none of it is read",
    "_half_past_caches: out[...] = out / 2": "all of out is written, and none of it is read",
    "_extend: rows[...] = rows / 2": "all of rows is written, and none of it is read",
    "_farthest: return np.trunc(..)": "whole numbers have no fraction",
    "_ends: return np.trunc(..)": "whole numbers have no fraction",
    "_ascend: return np.trunc(..)": "truth values have no fraction",
    "log_bucket: side dropped from np.searchsorted(ends, np.abs(near))": "left is numpy's default",
}


class Edit(NamedTuple):
    """One edit of a function: its class, what it does, the source that it leaves, and a context in which it is made."""

    kind: str
    label: str
    text: str
    made: object


def edits(public):
    """Every edit of one function."""
    function = python_function(public)
    root = original(function)
    definition = root.body[0]
    arguments = [a.arg for a in (*definition.args.args, *definition.args.kwonlyargs)]
    arrays = [a for a in arguments if f"{a}.shape" in ast.unparse(root) or _is_array(definition, a)]
    for kind, (label, changed) in [*_returns(root, arrays), *_writes(root, arrays), *_keywords(root)]:
        code = code_of(function, copy.deepcopy(changed))
        changed.body[0].body.insert(0, ast.Expr(ast.Constant(function.__doc__ or "")))  # which says numbers
        yield Edit(kind, f"{function.__name__}: {label}", ast.unparse(changed), lambda code=code: swapped(function, code))
    parameters = {} if hasattr(public, "py_func") else inspect.signature(public).parameters  # compiled functions keep theirs
    for name, parameter in parameters.items():
        other = _other(parameter.default)
        if other is not None:
            text = f"def {function.__name__}(*, {name}={other!r}): pass"
            yield Edit("default", text, text, lambda name=name, other=other: _default(public, name, other))


def _other(value):
    """Another default of the same type; None if there is none to change."""
    if isinstance(value, bool):
        return not value
    return value * 2 if isinstance(value, (int, float)) else None


@contextlib.contextmanager
def _default(public, name, value):
    """Run with another default of an argument."""
    places = [name for name, p in inspect.signature(public).parameters.items() if p.kind == p.POSITIONAL_OR_KEYWORD]
    own = public.__defaults__, public.__kwdefaults__
    if name in (own[1] or {}):
        public.__kwdefaults__ = {**own[1], name: value}
    else:
        given = [*own[0]]
        given[places.index(name) - len(places)] = value
        public.__defaults__ = tuple(given)
    try:
        yield
    finally:
        public.__defaults__, public.__kwdefaults__ = own


def _is_array(definition, name):
    every = [*definition.args.args, *definition.args.kwonlyargs]
    return any(a.arg == name and a.annotation is not None and "Array" in ast.unparse(a.annotation) for a in every)


def _returns(root, arrays):
    ways = dict(WAYS)
    if ast.unparse(root.body[0].returns or ast.Constant("")).startswith(WHOLE):
        del ways["fraction"]
    for number, a in enumerate(arrays[:2]):
        ways[f"size of {a}"] = f"-({{e}}) if {a}.shape and {a}.shape[-1] == {SIZES[number]} else {{e}}"
    if len(arrays) > 1:
        a, b = arrays[:2]
        both = f"len({a}.shape) > 1 and len({b}.shape) > 1 and {a}.shape[-2] == {b}.shape[-2]"
        ways["equal sizes"] = f"-({{e}}) if {both} else {{e}}"
    for kind, way in ways.items():
        changed = copy.deepcopy(root)
        found = [n for n in ast.walk(changed) if isinstance(n, ast.Return) and n.value is not None]
        for node in found:
            if not isinstance(node.value, ast.Tuple):
                node.value = ast.parse(way.format(e=ast.unparse(node.value)), mode="eval").body
        if any(not isinstance(node.value, ast.Tuple) for node in found):
            yield kind.split(" of ")[0], (f"return {way.format(e='..')}", changed)


def _writes(root, arrays):
    for a in arrays:
        changed = copy.deepcopy(root)
        written = f"{a}[...] = {a} / 2"  # twice what empty memory holds could overflow, which is noticed by chance
        changed.body[0].body.insert(0, ast.parse(written).body[0])
        yield "write", (written, changed)


def _keywords(root):
    count = sum(len(n.keywords) for n in ast.walk(root) if isinstance(n, ast.Call))
    for number in range(count):
        changed, at = copy.deepcopy(root), number
        for call in (n for n in ast.walk(changed) if isinstance(n, ast.Call)):
            if at < len(call.keywords):
                word = call.keywords.pop(at).arg
                yield "keyword", (f"{word} dropped from {ast.unparse(call)}", changed)
                break
            at -= len(call.keywords)


def in_numbers(theorems):
    """Those that agree in numbers as long as nothing is edited; the others could notice nothing."""
    agreeing = []
    for t in theorems:
        try:
            numbers.check(t, numbers.MORE_SIZES)
        except Exception as error:
            print(f"NOT IN NUMBERS  {t.name}: {type(error).__name__}: {str(error)[:100]}", flush=True)
        else:
            agreeing.append(t)
    return agreeing


def noticed(edit, function, file, theorems, agreeing):
    """Who notices an edit, of `JUDGES`, one after the other."""
    with edit.made():
        code = python_function(function).__code__
        judges = {
            "rules": lambda: _by_rules(edit, file),
            "vectors": lambda: any(map(_wrong, _cases(file))),
            "proofs": lambda: any(t.failure(function, code) is not None for t in theorems),
            "numbers": lambda: any(map(_disagrees, agreeing)),
            "tests": lambda: not hasattr(function, "py_func") and _fails(file),  # compiled, it is what it was
        }
        for judge in JUDGES:
            with contextlib.redirect_stdout(io.StringIO()):
                notices = judges[judge]()
            if notices:
                yield judge


def _by_rules(edit, file):
    if any([*rule(edit.text)] for rule in RULES):
        return True
    return file in house.SPECIFICATIONS and (
        any([*rule(edit.text)] for rule in RULES_OF_SPECIFICATIONS)
        or any([*rule(edit.text, file)] for rule in RULES_OF_MODULES)
    )


def _disagrees(theorem):
    try:
        numbers.check(theorem, numbers.MORE_SIZES)
    except Exception:
        return True
    return False


def _cases(file):
    return [case for case in vectors.cases() if case.id.startswith(f"{file.split('.')[-1]}/") and "fast" not in file]


def _wrong(case):
    op, arguments = ops.of_case(case)
    before = copy.deepcopy(case.tensors)
    try:
        wrong = vectors.error(case, op.spec(**arguments), "f64") > 1
    except Exception:
        return True
    finally:
        written = any(not np.array_equal(before[name], tensor) for name, tensor in case.tensors.items())
        for name, tensor in before.items():
            case.tensors[name][...] = tensor
    return wrong or written


def _fails(file):
    *family, system = file.split(".")
    paths = ["/".join(["tests", *family, f"test_{system}.py"]), f"posref/{file.replace('.', '/')}.py"]
    paths = [*filter(os.path.exists, paths)]  # a system of which the laws say everything has no tests of its own
    if family == ["fast"]:
        paths = ["tests/fast/test_twins.py", *paths, "-k", system]
    # plain: posref, which an installed plugin names, is imported already and cannot be rewritten
    options = ["-q", "-x", "--assert=plain", "--doctest-modules", "-p", "no:cacheprovider", "-p", "no:xdist"]
    return pytest.main([*options, *paths]) == 1


def functions(file, theorems):
    """The functions of a module: those that its theorems are about and those with a contract."""
    module = importlib.import_module(f"posref.{file}")
    known = [f for t in theorems for f in t.of] + [
        f for f in vars(module).values() if inspect.isfunction(f) and hasattr(f, "contract")
    ]
    return {python_function(f): f for f in known if python_function(f).__module__ == module.__name__}


def run(files, *, alone=False):
    """Make every edit in the functions of these modules; prints the table, and returns the labels of what nobody noticed."""
    score, survivors = {}, set()
    for file in files:
        theorems = in_file(file) if file in names() else []
        for t in theorems:
            t.prove()
        agreeing = in_numbers(theorems)
        for own, public in functions(file, theorems).items():
            about = sorted((t for t in theorems if own in map(python_function, t.of)), key=lambda t: t.seconds)
            for edit in edits(public):
                by = noticed(edit, public, file, about, [t for t in about if t in agreeing])
                by = ([*by] if alone else [*itertools.islice(by, 1)]) or ["nobody"]
                row = score.setdefault(edit.kind, dict.fromkeys(("edits", *JUDGES, "nobody"), 0))
                for judge in ("edits", *by):
                    row[judge] += 1
                if by == ["nobody"]:
                    print(f"NOBODY  {file} {edit.kind}: {edit.label}", flush=True)
                    survivors.add(edit.label)
        print(f"{file} is edited", file=sys.stderr, flush=True)
    print("\n".join(table(score)))
    return survivors


def table(score):
    """Lines of Markdown."""
    columns = ("edits", *JUDGES, "nobody")
    yield "| class | " + " | ".join(columns) + " |"
    yield "|---" * (len(columns) + 1) + "|"
    for kind, row in score.items():
        yield f"| {kind} | " + " | ".join(str(row[column]) for column in columns) + " |"


def everything():
    """Every module that theorems are about; the twins, whose tests take longest, at the end."""
    there = [file for file in names() if not file.startswith("mathematics") and importlib.util.find_spec(f"posref.{file}")]
    return sorted(there, key=lambda file: file.startswith("fast"))


if __name__ == "__main__":
    given = sys.argv[1:]
    unnoticed = run([name for name in given if name != "--alone"] or everything(), alone="--alone" in given)
    sys.exit(int(not unnoticed <= EQUIVALENT.keys()))
