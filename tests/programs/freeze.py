"""Freeze: what posref says today, in one file, so that a refactoring can show what it changed.

python -m tests.programs.freeze FILE [SECTION ..]    record; without sections all of them (about 20 minutes)
python -m tests.programs.freeze --compare OLD NEW    every key that differs, one per line; exit code 1 if there is one
"""

import contextlib
import hashlib
import importlib
import inspect
import io
import json
import pkgutil
import subprocess
import sys
from pathlib import Path

import numpy as np

import posref
from posref import explain, ops, vectors
from posref.check import diagnose
from posref.check.tensors import round_to

CONFIGS = Path(__file__).parents[1] / "explain" / "configs.json"
COMMANDS = (
    "", "list", "list --json", "table", "show t5", "show rope", "find bias", "aliases", "mistakes t5.bias", "mistakes rope",
    "claims bucket", "check", "check --as", "check --as alibi", "explain llama-3-8b", "explain deepseek-v3", "vectors list",
    "precision", "express alibi", "demo",
)  # fmt: skip


def signatures():
    """The signature of every public function."""
    for module in pkgutil.walk_packages(posref.__path__, "posref."):
        if "._" not in module.name and not module.name.endswith("__main__"):
            for name, value in vars(importlib.import_module(module.name)).items():
                if inspect.isfunction(value) and not name.startswith("_") and value.__module__ == module.name:
                    yield f"{module.name}.{name}", _parameters(value)


def _parameters(function):
    """Names, kinds and defaults: annotations may be printed in another way."""
    return [
        f"{p.kind.name} {p.name} {'' if p.default is p.empty else p.default}"
        for p in inspect.signature(function).parameters.values()
    ]


def cases():
    """A hash of every vector case, by id."""
    for case in vectors.cases():
        held = hashlib.sha256(repr((case.op, case.params, case.models)).encode())
        for name, tensor in sorted(case.tensors.items()):
            held.update(f"{name} {tensor.dtype} {tensor.shape}".encode() + tensor.tobytes())
        yield case.id, held.hexdigest()


def diagnoses():
    """The verdict and the names of `diagnose` for every case, mistake and precision."""
    for case in vectors.cases():
        op, arguments = ops.of_case(case)
        for flag in case.flags:
            with np.errstate(all="ignore"), contextlib.suppress(*_REFUSED):
                wrong = np.broadcast_to(np.asarray(op.mistakes[flag].wrong(op.spec, arguments)), case.expected.shape)
                for dtype, stored in (("f64", "float64"), ("float32", "float32"), ("bf16", "bfloat16")):
                    yield f"{case.id} {flag} {dtype}", _said(case, round_to(wrong, stored), dtype)


_REFUSED = (ops.NotHere, TypeError, ValueError, ArithmeticError)


def _said(case, output, dtype):
    try:
        report = diagnose(case, output, dtype=dtype)
    except ValueError as error:
        return str(error)
    return [report.ok, sorted(finding.name for finding in report.diagnosis)]


def explanations():
    """The explanation of every configuration at hand."""
    for row in json.loads(CONFIGS.read_text()):
        try:
            yield row["name"], json.loads(json.dumps(explain.explain(row["config"]), default=str))
        except ValueError as error:
            yield row["name"], str(error)


def outputs():
    """What the command line prints."""
    for command in COMMANDS:
        run = subprocess.run([sys.executable, "-m", "posref", *command.split()], capture_output=True, text=True, timeout=120)
        yield command, [run.returncode, run.stdout, run.stderr]


def theorems():
    """Status, obligations, controls and killed mutants of every theorem."""
    run = subprocess.run([sys.executable, "-m", "proofs", "--json"], capture_output=True, text=True, timeout=3000)
    for row in json.loads(run.stdout)["theorems"]:
        yield row["name"], {name: row[name] for name in ("status", "obligations", "controls", "mutants")}


def edits():
    """Who notices each edit of `tests.programs.sabotage` first."""
    from proofs.kit.mutants import python_function
    from proofs.kit.runner import in_file, names
    from tests.programs import sabotage as of

    for file in of.everything():
        found = in_file(file) if file in names() else []
        for theorem in found:
            theorem.prove()
        agreeing = of.in_numbers(found)
        for own, public in of.functions(file, found).items():
            about = [t for t in found if own in map(python_function, t.of)]
            for edit in of.edits(public):
                with contextlib.redirect_stdout(io.StringIO()):
                    yield f"{file} {edit.kind}: {edit.label}", next(of.noticed(edit, public, file, about, agreeing), "nobody")


SECTIONS = {section.__name__: section for section in (signatures, cases, diagnoses, explanations, outputs, theorems, edits)}


def record(path, names):
    """Write the sections one after the other, so that a run that ends early leaves whole ones."""
    held = json.loads(path.read_text()) if path.exists() else {}
    for name in names or SECTIONS:
        held[name] = dict(SECTIONS[name]())
        print(f"{name}: {len(held[name])}", file=sys.stderr, flush=True)
        path.write_text(json.dumps(held, indent=0, sort_keys=True, default=str))


def differences(old, new):
    """One line for each key that differs."""
    for section in old:
        for key in sorted({*old[section], *new.get(section, {})}):
            before, after = old[section].get(key, "-"), new.get(section, {}).get(key, "-")
            if before != after:
                yield f"{section} | {key} | {str(before)[:160]} | {str(after)[:160]}"


if __name__ == "__main__":
    if sys.argv[1] == "--compare":
        lines = [*differences(*(json.loads(Path(path).read_text()) for path in sys.argv[2:4]))]
        print("\n".join(lines))
        sys.exit(bool(lines))
    record(Path(sys.argv[1]), sys.argv[2:])
