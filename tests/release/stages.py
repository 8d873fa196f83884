"""What a release must show and CI has no time, compiler or library for: every stage runs, or fails and says what it lacks.

A stage returns what it measured in one line, and raises what it found. `about` are the files that it is about: a record is
old when what they do has changed. A stage that runs posref whole is about all of `posref`. Tests are in `about` only where
the stage is about these tests: a new test does not make a record old.
"""

import ast
import concurrent.futures
import contextlib
import functools
import hashlib
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from posref.discovery import COMMON, FAMILIES
from tests.programs import packages

ROOT = Path(__file__).parents[2]
OLDEST, OLDEST_NUMBA, OLDEST_PYTHON = "numpy==1.24.*", "numba==0.59.*", "3.10"
SPECIFICATION = (*(f"posref/{family}" for family in FAMILIES), *(f"posref/{name}.py" for name in COMMON))
FILES_OF_TESTS = ("test_attention.py", "test_offsets.py", "test_spot_values.py", "vectors/test_posref.py")
CHECKS = tuple(f"check/test_{each}.py" for each in ("general", "reads", "edits", "cache", "check"))
GARBAGE = "tests/check/test_garbage.py"
OF_CHECK = "posref/ops", "posref/check", "posref/_contract"
PACKAGING = "MANIFEST.in", "setup.cfg", "setup.py", "pyproject.toml"
TESTS_OF_SPECIFICATION = (*FAMILIES, "fast", "ops", *CHECKS, *FILES_OF_TESTS)


class Stage(NamedTuple):
    run: Callable[[], str]
    about: tuple[str, ...]


def languages():
    """Loaders and comparators of all languages over all systems; a language without its compiler fails."""
    from posref import vectors
    from tests.release import languages as of

    total = 0
    for language, tool in of.LANGUAGES.items():
        if shutil.which(tool) is None:
            raise RuntimeError(f"{tool} is not installed: {language} was not tested")
        with tempfile.TemporaryDirectory() as scratch:
            command = of.build(language, Path(scratch))
            problems = of.rope(command, language, Path(scratch))
            for name in vectors.names():
                count, different = of.judge(command, language, name, Path(scratch))
                problems, total = problems + different, total + count
        if problems:
            raise AssertionError(f"{language}: {len(problems)} verdicts differ, for instance {problems[0]}")
    of.served()
    return f"{', '.join(of.LANGUAGES)}: {total} verdicts as in Python; the right rotation passes, the other is named"


def sources():
    """The archive of the sources, packed, unpacked, and tested by the README's own command in an environment of its own."""
    with tempfile.TemporaryDirectory() as scratch:
        _, archive = packages.build(Path(scratch))
        shutil.unpack_archive(archive, scratch, filter="data")
        root = Path(scratch) / archive.name.removesuffix(".tar.gz")
        command = next(line for line in (root / "README.md").read_text().splitlines() if line.endswith("pytest -n auto"))
        run = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command], cwd=root, capture_output=True, text=True, timeout=3000
        )
    said = run.stdout.splitlines()[-20:] or run.stderr.splitlines()[-20:]
    if run.returncode:
        raise AssertionError("\n".join(said))
    return f"{archive.name}: {said[-1].strip('= ')}"


def compared(verdict, varies):
    """What of a verdict two machines have in common: no size of roundings, and no count that depends on the processor."""
    return verdict.partition(":")[0] if varies else re.sub(r"\de-\d\d", "", verdict)


def wall():
    """The verdicts of the corpus are what `examples/wild.py` measures, but for the size of roundings; and the tests in jax."""
    from posref import facts

    command = [sys.executable, "examples/wild.py", "--environments", ".wall"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=6000, env=environment)
    lines = [line.strip("| ").split(" | ") for line in run.stdout.splitlines()[2:]]
    measured, rows = {(line[0], line[2]): line[3] for line in lines if len(line) == 4}, facts.read("corpus")["rows"]
    new = [
        row
        for row in rows
        for said in [measured.get((row["who"], row["what"]), "nothing")]
        if compared(said, "varies" in row) != compared(row["verdict"], "varies" in row)
    ]
    if run.returncode or new:
        raise AssertionError(f"{len(new)} verdicts are not those of posref/facts/corpus.json: {new[:1]} {run.stderr[-300:]}")
    tests = ["tests/vectors/test_jax.py", "tests/explain/test_command.py", "-k", "jax"]
    jax = [".wall/jax/bin/python", "-m", "pytest", "-q", *tests]
    run = subprocess.run(jax, cwd=ROOT, capture_output=True, text=True, timeout=3000, env=environment)
    if run.returncode:
        raise AssertionError("\n".join(run.stdout.splitlines()[-20:]))
    differ = sum(row["verdict"].startswith("differs") for row in rows)
    return f"{len(rows)} rows, {differ} of them differ, as in the corpus; in jax {run.stdout.splitlines()[-1].strip('= ')}"


def findings():
    """The snippet of every finding prints the wrong value, and the right one with its patch; posref computes the right one."""
    from tests.programs import findings as of

    return of.run(ROOT / ".wall")


def drift():
    """`posref.explain` against the installed transformers and diffusers; wrong versions of transformers are noticed."""
    if importlib.util.find_spec("diffusers") is None:
        raise RuntimeError("diffusers is not installed: its classes were not compared")
    from tests.programs import drift as of
    from tests.programs import mutations

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        of.main([])
    drifted = [line.strip() for line in printed.getvalue().splitlines() if line.startswith("    ")]
    if drifted:
        print(printed.getvalue())
        raise AssertionError(f"{len(drifted)} sentences about what has drifted, the first: {drifted[0]}")
    line = "; ".join(
        line for line in printed.getvalue().splitlines() if re.search("types as explained|diffusers .* cases drifted", line)
    )
    if lost := mutations.main([]):
        raise AssertionError(f"{len(lost)} wrong versions of transformers are not noticed: {', '.join(lost)}")
    return f"{line}; {len(mutations.MUTATIONS)} wrong versions of transformers noticed"


def keys():
    """`posref.explain` follows each key about position of each type, changed one at a time."""
    from tests.programs import changed_keys, drift

    if lost := changed_keys.main([]):
        raise AssertionError(f"{lost} changed files are explained otherwise than they run")
    return f"{len([*drift.types()])} types: explain follows each key, or says that it does not"


def coq():
    """The obligations of sinusoids, RoPE, ALiBi and T5, and of what comes cheaply, in a second kernel: `docs/coq.json`."""
    from tests.release import coq as of

    return of.run()


def exp():
    """The exponential of the streaming kernel at every float32 from -87 to 0: at most 2 units of rounding from e^x."""
    import numba
    import numpy as np

    from posref.fast import attention

    @numba.njit(error_model="numpy")
    def worst(first, last):
        most, numbers = 0.0, 0
        for bits in range(first, last + 1):
            x = np.uint32(bits).view(np.float32)
            exact = np.exp(np.float64(x))
            most = max(most, abs(np.float64(attention._exp(x)) - exact) / exact)
            numbers += 1
        return most * 2.0**24, numbers

    most, numbers = worst(0x80000000, int(np.float32(-87).view(np.uint32)))
    if not most < 2:
        raise AssertionError(f"the largest error is {most:.3g} units of rounding, expected less than 2")
    return f"{numbers} numbers, largest error {most:.3f} units of rounding"


def oldest():
    """The oldest Python, numpy and numba that setup.cfg allows, in an environment of their own: all but proofs and programs."""
    for said in (f"numpy>={OLDEST[7:11]}", f"numba>={OLDEST_NUMBA[7:11]}", f"python_requires = >={OLDEST_PYTHON}"):
        if said not in _read("setup.cfg"):
            raise AssertionError(f"setup.cfg does not say {said}")
    return _specification_on(OLDEST_PYTHON, [OLDEST, OLDEST_NUMBA])


def newest():
    """The newest Python that promises names, with the newest numpy and numba: all but proofs and programs."""
    return _specification_on(packages.PYTHONS[-1], ["numpy", "numba"])


def _specification_on(version, installed):
    """The tests of the specification and its fast twins on this Python, with these packages, in a new environment."""
    with tempfile.TemporaryDirectory() as scratch:
        python = str(Path(scratch) / "bin" / "python")
        subprocess.run([packages.interpreter(version), "-m", "venv", scratch], check=True)
        pip = [python, "-m", "pip", "install", "-q", *installed, "pytest>=8", "sympy", "jsonschema", "-e", "."]
        subprocess.run(pip, cwd=ROOT, check=True, timeout=600)
        command = [python, "-m", "pytest", "-q", "posref", *(f"tests/{each}" for each in TESTS_OF_SPECIFICATION)]
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=3000, env=os.environ | {"CI": "true"})
        versions = "import numba, numpy; print(f'numpy {numpy.__version__}, numba {numba.__version__}')"
        said = subprocess.run([python, "-c", versions], capture_output=True, text=True, check=True).stdout.strip()
    if run.returncode:
        raise AssertionError("\n".join(run.stdout.splitlines()[-5:]))
    return f"Python {version}, {said}: {run.stdout.splitlines()[-1].strip('= ')}"


def packed():
    """Wheel and archives: the same bytes twice; the wheel and the sources run on the oldest and the newest Python."""
    with tempfile.TemporaryDirectory() as scratch:
        all_files, again = (packages.release(Path(scratch) / folder) for folder in ("first", "second"))
        for one, other in zip(all_files, again, strict=True):
            if one.read_bytes() != other.read_bytes():
                raise AssertionError(f"{one.name} has other bytes when it is built again")
        installed = all_files[:2]
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", "twine", "check-jsonschema", "zizmor"], check=True)
        subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *installed], check=True)
        workflows = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
        lint = ["-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"]
        subprocess.run([sys.executable, *lint, *workflows], check=True)
        subprocess.run([Path(sys.executable).with_name("zizmor"), "--offline", "--min-severity=medium", *workflows], check=True)
        ran = [packages.runs_with(python, file) for python in packages.PYTHONS for file in installed]
        sizes = ", ".join(f"{file.name} {file.stat().st_size / 1e6:.2f} MB" for file in all_files)
    return f"{sizes}; the same bytes twice; {', '.join(dict.fromkeys(ran))}; {len(workflows)} workflows pass two linters"


def consumers():
    """The tests that other projects could merge (CONSUMERS.md), run with their released packages."""
    from tests.programs import consumers as of

    return "; ".join(map(of.run, of.PINS))


def fuzz(seconds=3600):
    """Damaged configurations, GGUF files, dumps and vectors for an hour: each is answered or refused by a ValueError."""
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "hypothesis"], check=True)
    command = [sys.executable, "-m", "tests.programs.fuzz", str(seconds)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=seconds + 600)
    if run.returncode:
        raise AssertionError("\n".join((run.stdout + run.stderr).splitlines()[-20:]))
    return f"{seconds} s: {run.stdout.strip()}"


def grids():
    """The tests that are marked slow, but for those of `check`: whole grids of shapes, dtypes and styles."""
    return _slow("tests", "--ignore=tests/check")


def questions():
    """The slow tests of `check`, but for those of the stage `garbage`: mistakes, factors and settings of all cases."""
    return _slow("tests/check", f"--ignore={GARBAGE}")


def garbage():
    """Noise, zeros and changed numbers in all cases, shapes and dtypes get no name that is not true."""
    return _slow(GARBAGE)


def probes():
    """Each argument, setting and extent of all ops is read: `check` fails where it is not, or a reason says why it cannot."""
    from tests.check import test_probed as of

    told = []
    for op, found in _of_each_op(of.all_untold):
        print(f"{op.name}: {len(found)} changes pass", *found, sep="\n    ", flush=True)
        told += found
    if wrong := [*of.unreasoned(told), *(f"nothing passes as {pattern}" for pattern in of.idle(told))]:
        raise AssertionError(f"{len(wrong)} changes pass without a reason, or the reverse, the first: {wrong[0]}")
    return f"{len(told)} changes pass, each with a reason; all others fail"


def _slow(*asked):
    """The last line of pytest; each test is printed as it ends."""
    command, said = [sys.executable, "-m", "pytest", "-n", "auto", "--dist", "worksteal", "-v", "-m", "slow", *asked], []
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as run:
        for line in run.stdout or ():
            print(line, end="", flush=True)
            said.append(line.strip("= \n"))
    if run.returncode:
        raise AssertionError("\n".join(line for line in said if line.startswith(("FAILED", "ERROR"))))
    return said[-1]


def own():
    """posref's own functions pass their own ops in every setting, through numpy, torch and jax; in numpy each with a seed."""
    from tests import own as of

    return f"{_of_all_ops('own', of.failures)} in {', '.join(of.languages())}: all pass"


def names():
    """Whoever is named has these numbers: `check` is asked about each wrong function that it offers in each op."""
    from tests.check import test_general as of

    return f"{_of_all_ops('names', of.failures)} of wrong functions: who is named has their numbers"


def seeds(runs=10_000):
    """posref's own functions pass their own ops with seed after seed."""
    from tests.own import OPS

    return f"{_of_all_ops('seeds', functools.partial(_with_seeds, range(1, 2 + runs // len(OPS))))}: none is accused"


def _with_seeds(drawn, name):
    from tests.check import test_seeded as of

    return len(drawn), [accused for seed in drawn if (accused := of.accused(name, seed))]


def _of_all_ops(stage, failures):
    """`failures(op)`: how many checks were made and what is wrong; raises if anything is.

    What was right is kept in `.release`, and not asked again while the stage's files are the same: it can be stopped.
    """
    kept = ROOT / ".release" / f"{stage}-{fingerprint(stage)[:16]}.json"
    counts, problems = json.loads(kept.read_text()) if kept.is_file() else {}, []
    kept.parent.mkdir(exist_ok=True)
    for op, (asked, wrong) in _of_each_op(failures, without=counts):
        print(f"{op.name}: {asked} checks, {len(wrong)} fail", *wrong, sep="\n    ", flush=True)
        problems += wrong
        if not wrong:
            counts[op.name] = asked
            kept.write_text(json.dumps(counts))
    if problems:
        raise AssertionError(f"{len(problems)} checks fail, the first: {problems[0]}")
    return f"{len(counts)} ops, {sum(counts.values())} checks"


def _of_each_op(function, without=()):
    """Each op with function(its name), in processes of one thread."""
    import torch

    from tests.own import OPS

    ops = [op for op in OPS if op.name not in without]
    with concurrent.futures.ProcessPoolExecutor(
        len(os.sched_getaffinity(0)), initializer=torch.set_num_threads, initargs=(1,)
    ) as pool:
        yield from zip(ops, pool.map(function, [op.name for op in ops]), strict=True)


def sabotage():
    """Edits that operators of mutation miss, in every module: all are noticed."""
    from tests.programs import sabotage as of

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        unnoticed = of.run(of.everything())
    print(printed.getvalue())
    rows = [line.strip("| ").split(" | ") for line in printed.getvalue().splitlines() if line.startswith("| ")]
    if unnoticed != of.EQUIVALENT.keys():
        apart = sorted(unnoticed ^ of.EQUIVALENT.keys())
        raise AssertionError(
            f"{len(apart)} edits are noticed by nobody, or have a reason and are noticed, for instance {apart[0]}"
        )
    count = sum(int(row[1]) for row in rows[1:])
    return f"{count} edits of {len(rows) - 1} classes, all noticed but {len(of.EQUIVALENT)} that change nothing"


def sizes():
    """Theorems in numbers at sizes up to 256; `python -m proofs` stops at 80."""
    done = subprocess.run([sys.executable, "-m", "proofs", "--no-mutants", "--every-size"], capture_output=True, text=True)
    if done.returncode:
        raise AssertionError("\n".join(line for line in done.stdout.splitlines() if line.startswith("NOT PROVED")))
    return done.stdout.splitlines()[-1]


def mutants():
    """Small wrong versions of the specification: a golden vector notices each, or a reason says why none can."""
    from proofs.vectors import _mutants

    line, wrong = _mutants.report()
    if wrong:
        raise AssertionError(f"{len(wrong)} sentences, the first: {wrong[0]}")
    return line


def twins():
    """Small wrong versions of the wrappers in posref.fast: a test or a theorem notices each, or a reason says why none can."""
    from tests.programs import twins as of

    line, wrong = of.main()
    if wrong:
        raise AssertionError(f"{len(wrong)} sentences, the first: {wrong[0]}")
    return line


def browser():
    """The site in a browser: `run()` of tests/release/browser.py."""
    if importlib.util.find_spec("tests.release.browser") is None:
        raise RuntimeError("tests/release/browser.py with a function run() -> str is not there: the site was not tested")
    return importlib.import_module("tests.release.browser").run()


STAGES = {
    "languages": Stage(
        languages,
        (
            *("posref/vectors/languages", "posref/vectors/*.py", "posref/check/program.py", "examples/serve"),
            *("tests/release/languages.py", "tests/release/judge.*"),
        ),
    ),
    "wall": Stage(
        wall, ("examples/*wild*.py", "posref/facts/corpus.json", "tests/programs/models.py", "tests/vectors/test_jax.py")
    ),
    "findings": Stage(findings, ("posref/facts/findings.json", "tests/programs/findings.py")),
    "sources": Stage(sources, ("posref", *PACKAGING)),
    "drift": Stage(
        drift,
        (
            *("posref/facts/families.json", "posref/explain/masks.py", "posref/explain/types.json", "tests/programs/drift.py"),
            *("posref/explain/diffusers.py", "posref/explain/diffusers.json", "tests/programs/diffusion.py"),
        ),
    ),
    "keys": Stage(
        keys, ("posref/explain", "posref/facts/families.json", "tests/programs/changed_keys.py", "tests/programs/drift.py")
    ),
    "coq": Stage(coq, ("proofs/kit/coq", "proofs/kit/export.py", "tests/release/coq.py")),
    "exp": Stage(exp, ("posref/fast/attention.py",)),
    "oldest": Stage(oldest, ("posref", "setup.cfg")),
    "newest": Stage(newest, ("posref", "setup.cfg")),
    "packages": Stage(packed, ("posref", *PACKAGING, ".github/workflows", "tests/programs/packages.py")),
    "consumers": Stage(consumers, ("examples/consumers", "tests/programs/consumers.py", "posref/check", "posref/vectors/*.py")),
    "fuzz": Stage(
        fuzz,
        (
            "tests/programs/fuzz.py",
            "posref/explain",
            "posref/facts/families.json",
            "posref/check/tensors.py",
            "posref/vectors/*.py",
        ),
    ),
    "grids": Stage(grids, ("posref/ops", "posref/check", "posref/fast", "posref/_contract")),
    "questions": Stage(questions, OF_CHECK),
    "names": Stage(names, OF_CHECK),
    "garbage": Stage(garbage, OF_CHECK),
    "probes": Stage(probes, OF_CHECK),
    "own": Stage(own, ("tests/own.py", "posref/ops", "posref/check")),
    "seeds": Stage(seeds, ("tests/check/test_seeded.py", "posref/ops", "posref/check")),
    "sabotage": Stage(sabotage, ("tests/programs/sabotage.py", "tests/test_house.py", *SPECIFICATION)),
    "sizes": Stage(sizes, ("proofs/kit/*.py", *SPECIFICATION)),
    "mutants": Stage(mutants, ("proofs/vectors", *SPECIFICATION)),
    "twins": Stage(
        twins, ("posref/fast", "tests/fast", "tests/programs/twins.py", "proofs/fast", "proofs/kit/*.py", *SPECIFICATION)
    ),
    "browser": Stage(browser, ("docs/make.py", "docs/pages", "docs/pictures", "posref/drawing.py", "tests/test_browser.py")),
}


def fingerprint(name):
    """The sha256 of the files that a stage is about, of Python its code alone; those that are not there count as empty."""
    digest = hashlib.sha256()
    for pattern in STAGES[name].about:
        found = sorted(ROOT.glob(pattern)) or [ROOT / pattern]
        files = [file for path in found for file in (sorted(path.rglob("*.*")) if path.is_dir() else [path])]
        for file in (file for file in files if "__pycache__" not in file.parts and file.is_file()):
            digest.update(f"{file.relative_to(ROOT)} ".encode() + _done(file))
    return digest.hexdigest()


def _done(file):
    if file.name == "setup.cfg":  # with the real address, which a publisher writes, it does the same
        return re.sub(rb"(?m)^url = \S+$", b"url = https://example.org/posref", file.read_bytes())
    return _code(file.read_text()).encode() if file.suffix == ".py" else file.read_bytes()


@functools.cache
def _code(text):
    """Python without what does nothing: docstrings, comments and empty lines."""
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            words = node.body[0]
            lines[words.lineno - 1 : words.end_lineno] = [""] * (words.end_lineno - words.lineno + 1)
    return "\n".join(line for line in lines if line.strip() and not line.lstrip().startswith("#"))


def _read(name):
    return (ROOT / name).read_text()
