"""Edits that operators of mutation miss, and who notices them: `python -m proofs.kit.sabotage [NAME ..]`.

Each edit is a guard around what a shipped function returns, a dropped keyword, or a write to an argument. It is
noticed by the proofs of the function (on symbols), by the same theorems in numbers, or by nobody; the table counts by class.
"""

import ast
import copy
import sys

from proofs.kit import numbers
from proofs.kit.mutants import code_of, original, python_function, swapped
from proofs.kit.runner import in_file, names
from proofs.kit.verdicts import Refuted

SIZES = (64, 80, 128, 256)
WAYS = {
    "cast": "({e}).astype('float32')",
    "fraction": "__import__('numpy').trunc({e})",
    "clamp": "__import__('numpy').minimum({e}, 2 ** 20)",
    "overflow": "({e}).astype('int8')",
}


def edits(function):
    """(class, label, code) of every edit of one function."""
    function = python_function(function)
    root = original(function)
    definition = root.body[0]
    arguments = [a.arg for a in (*definition.args.args, *definition.args.kwonlyargs)]
    arrays = [a for a in arguments if f"{a}.shape" in ast.unparse(root) or _is_array(definition, a)]
    for kind, change in [*_returns(root, arrays), *_writes(root, arrays), *_keywords(root)]:
        yield kind, f"{function.__name__}: {change[0]}", code_of(function, change[1])


def _is_array(definition, name):
    every = [*definition.args.args, *definition.args.kwonlyargs]
    return any(a.arg == name and a.annotation is not None and "Array" in ast.unparse(a.annotation) for a in every)


def _returns(root, arrays):
    ways = dict(WAYS)
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
        changed.body[0].body.insert(0, ast.parse(f"{a}[...] = 2 * {a}").body[0])
        yield "write", (f"{a}[...] = 2 * {a}", changed)


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
            numbers.check(t)
        except Exception as error:
            print(f"NOT IN NUMBERS  {t.name}: {type(error).__name__}: {str(error)[:100]}", flush=True)
        else:
            agreeing.append(t)
    return agreeing


def noticed(function, code, about, agreeing):
    """By whom an edit is noticed: proofs, numbers or nobody."""
    if any(t.outcome(function, code) != "survived" for t in about):
        return "proofs"
    try:
        with swapped(function, code):
            for t in agreeing:
                numbers.check(t)
    except Refuted:
        return "numbers"
    return "nobody"


def run(files):
    """Make every edit in the functions of these files; prints the table and who survives."""
    score = {}
    for file in files:
        judges = in_file(file)
        for t in judges:
            t.prove()
        agreeing = in_numbers(judges)
        own = {python_function(f): f for t in judges for f in t.of if python_function(f).__module__ == f"posref.{file}"}
        for function in own.values():
            about = sorted(
                (t for t in judges if any(python_function(f) is python_function(function) for f in t.of)),
                key=lambda t: t.seconds,
            )
            sound = [t for t in about if t in agreeing]
            for kind, label, code in edits(function):
                who = noticed(function, code, about, sound)
                row = score.setdefault(kind, {"proofs": 0, "numbers": 0, "nobody": 0})
                row[who] += 1
                if who == "nobody":
                    print(f"NOBODY  {file} {kind}: {label}", flush=True)
    print(f"{'class':14s} proofs numbers nobody")
    for kind, row in score.items():
        print(f"{kind:14s} {row['proofs']:6d} {row['numbers']:7d} {row['nobody']:6d}")


if __name__ == "__main__":
    run(sys.argv[1:] or names())
