"""The three uses of posref on RoPE, in half a minute: read the definition, prove its property, diagnose a mistake."""

import ast
import importlib.util
import inspect
import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np

from posref import attention, discovery
from posref.rotary import rope

CHECKOUT = Path(__file__).resolve().parents[1]


def run():
    """Print the demonstration; return the exit code, 0 if every step had the expected result."""
    _title("1. Read: the body of the function is the formula")
    print(discovery.page("rotary.rope").sections["Definition"])
    print("\nThe body of posref.rotary.rope.rotate, without its docstring:\n")
    print(textwrap.indent(_formula(rope.rotate), "    "))
    print()
    same = _scores()
    _title("2. Prove: for all positions, frequencies and vectors, about this very function")
    proved = _prove()
    _title("3. Diagnose: what does an implementation compute that disagrees?")
    found = _diagnose()
    _title("Next")
    print("posref list          all systems")
    print("posref show rope     the whole page, with conventions and where implementations differ")
    print("posref check my_module:my_rope --as rope --dim 64 --base 10000 --layout half")
    return 0 if same and proved and found else 1


def _title(text):
    print(f"\n{text}\n{'-' * len(text)}\n", flush=True)


def _formula(function):
    """The body of a function as written, without its docstring."""
    source = textwrap.dedent(inspect.getsource(function))
    first = ast.parse(source).body[0].body[1]
    return textwrap.dedent("\n".join(source.splitlines()[first.lineno - 1 :]))


def _scores():
    """Scores of one query and one key at several pairs of positions: they depend on the offset alone."""
    q, k = np.array([[1.0, 2.0, 3.0, 4.0]]), np.array([[4.0, -1.0, 2.0, 1.0]])
    theta = rope.frequencies(4)

    def score(m, n):
        turned = [rope.rotate(x, *rope.tables(np.array([position]), theta), layout="half") for x, position in ((q, m), (k, n))]
        return attention.scores(*turned, scale=1.0).item()

    pairs = ((0, 3), (5, 8), (1000, 1003), (0, 4))
    for m, n in pairs:
        print(f"query at {m:4}, key at {n:4}, offset {n - m}: score {score(m, n):.10f}")
    near = [abs(score(m, n) - score(0, 3)) < 1e-9 for m, n in pairs]
    return near == [True, True, True, False]


def _prove():
    """Run the proofs of RoPE if they are installed; else say how to get them."""
    if not (CHECKOUT / "proofs" / "rotary" / "rope.py").is_file():
        print("The proofs live in the repository, not in the installed package. In a checkout:")
    elif importlib.util.find_spec("sympy") is None:
        print("The proofs need sympy:")
    else:
        return _run_proofs()
    print('    pip install -e ".[proofs]"\n    python -m proofs rotary.rope')
    return True


def _run_proofs():
    """Run the theorems in another process, without mutants: their lines, and whether all are proved."""
    command = ["-m", "proofs", "rotary.rope", "--no-mutants"]
    print(f"$ python {' '.join(command)}\n", flush=True)
    run = subprocess.run([sys.executable, *command, "--json"], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    if not run.stdout.startswith("{"):
        print(run.stderr)
        return False
    found = json.loads(run.stdout)
    for theorem in found["theorems"]:
        name = theorem["name"].removeprefix("rotary.rope.")
        statement = re.split(r"\. (?=[A-Z])", theorem["statement"])[0].rstrip(".")
        line = f"{theorem['status']}: {name} ({theorem['sizes']}). {statement}."
        print(textwrap.fill(line, width=120, subsequent_indent="    "))
    controls = sum(len(theorem["controls"]) for theorem in found["theorems"])
    print(f"\n{len(found['theorems'])} theorems and {controls} controls (false, must be refuted), in {found['seconds']} s")
    return run.returncode == 0


def _diagnose():
    """Check wrong implementations and print each report; every report must fail and give a reason."""
    from posref.check import broken, check_rope

    settings = {"dim": broken.DIM, "base": 10000.0, "layout": "half"}
    first, *others = broken.EXAMPLES
    print(inspect.getsource(first.function))
    print(f'>>> print(check_rope({first.function.__name__}, dim=64, base=10000.0, layout="half"))')
    reports = [check_rope(first.function, **settings)]
    for line in str(reports[0]).splitlines():
        print(textwrap.fill(line, width=120, subsequent_indent=" " * 4))
    for example in others:
        reports.append(check_rope(example.function, **settings))
        print(f"\n{inspect.getdoc(example.function)}")
        print("\n".join(f"    Diagnosis: {finding.sentence}" for finding in reports[-1].diagnosis))
    return all(not report.ok and report.diagnosis for report in reports)
