"""Every finding, shown again: its snippet prints the wrong value, and the right one with the patch.

    python -m tests.programs.findings DIR [ID ..]     DIR has the environments of `python examples/wild.py --environments DIR`

The right value of a finding that rests on a theorem is computed by posref as well. A patch changes the module while it is
imported; no file of the library is written.
"""

import importlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from posref import facts, statements

ROOT = Path(__file__).parents[2]
NAMES = {
    name.rpartition(".")[2]: importlib.import_module(f"posref.{name}")
    for name in (
        "absolute.sinusoidal",
        "relative.alibi",
        "relative.swin",
        "relative.t5",
        "rotary.pope",
        "rotary.rope",
        "rotary.scaling",
    )
}
PATCHED = """
from importlib.machinery import SourceFileLoader as Loader
def patched(self, name, of=Loader.get_code):
    if not self.path.endswith({path!r}):
        return of(self, name)
    return compile(open(self.path).read().replace({old!r}, {new!r}, 1), self.path, "exec")
Loader.get_code = patched
"""


def right(row):
    """The correct value: what the expression says that its theorem is about, or what the library documents."""
    return eval(row["expected"], {"np": np, **NAMES}) if "expected" in row else row["right"]


def printed(python, row, patch=False):
    """What the snippet prints in an environment."""
    path, _, _ = row["where"].rpartition(":")
    change = PATCHED.format(path=path, old=text(row["there"]), new=text(row["patch"])) if patch else ""
    with tempfile.TemporaryDirectory() as empty:
        run = subprocess.run(
            [python, "-c", "\n".join([change, *row["code"]])],
            cwd=empty,
            env=os.environ | {"KERAS_BACKEND": "jax", "PYTHONPATH": ""},
            capture_output=True,
            text=True,
            timeout=600,
        )
    return (run.stdout.strip() or run.stderr.strip()).rpartition("\n")[2]


def text(lines):
    return "\n".join(lines) + "\n"


def line_of(python, row):
    """Where the lines of the finding stand in the installed library, "" if they stand there once and nowhere else."""
    path, _, line = row["where"].rpartition(":")
    code = (
        "import sys, pathlib; print([p for folder in sys.path for p in pathlib.Path(folder).glob(sys.argv[1])][0].read_text())"
    )
    source = subprocess.run([python, "-c", code, path], capture_output=True, text=True, check=True, cwd="/").stdout
    before = source.split("\n" + text(row["there"]))
    here = [each.count("\n") + 2 for each in before[:-1]]
    return "" if here == [int(line)] else f"its lines begin at {here}, expected {line}"


def problems(python, row):
    """What is not as the row says."""
    if "there" in row and (said := line_of(python, row)):
        yield said
    if (found := right(row)) != row["right"]:
        yield f"posref computes {found!r}, the row says {row['right']!r}"
    if "expected" in row and row["by"] not in statements.statements():
        yield f"{row['by']} is no theorem"
    if (found := printed(python, row)) != row["prints"]:
        yield f"it prints {found!r}, expected {row['prints']!r}"
    if "patch" in row and (found := printed(python, row, patch=True)) != row["right"]:
        yield f"with its patch it prints {found!r}, expected {row['right']!r}"


def run(folder, *names):
    """One line about all; AssertionError with what is not as it is said."""
    sys.path.insert(0, str(ROOT / "examples"))
    import wild

    rows = [row for row in facts.read("findings")["findings"] if row["id"] in names or not names]
    wrong = []
    for row in rows:
        python = wild.python_for(folder, row["library"])
        found = [f"{row['id']}: {said}" for said in problems(python, row)]
        print(*(found or [f"{row['id']}: {row['prints']}; right: {row['right']}"]), sep="\n", flush=True)
        wrong += found
    if wrong:
        raise AssertionError(f"{len(wrong)} of {len(rows)} findings are not as they are told, the first: {wrong[0]}")
    patches = sum("patch" in row for row in rows)
    return f"{len(rows)} findings print the wrong value, {patches} of them the right one with their patch"


if __name__ == "__main__":
    print(run(Path(sys.argv[1]), *sys.argv[2:]))
