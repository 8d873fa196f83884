"""The loaders and comparators of posref/vectors/languages, compiled and run: their verdicts are those of posref.vectors.

`judge` has every program judge right, rounded, wrong, ignored and broken results of every case; `rope` runs a rotation that
is written in that language, with the right pairing and with the other.
"""

import json
import shutil
import subprocess
import tempfile

import numpy as np

from posref import ops, vectors
from posref.check import check_rope
from posref.check.program import Program

HERE = vectors.DIRECTORY.parents[1] / "tests" / "release"
SOURCES = vectors.DIRECTORY / "languages"
LANGUAGES = {"cpp": "g++", "js": "node", "rs": "rustc", "go": "go"}
READS = {"cpp": "txt", "rs": "txt", "js": "json", "go": "json"}


def build(language, folder):
    """The command that begins a run of the program."""
    loader = "vectors.hpp" if language == "cpp" else f"vectors.{language}"
    target = folder / "vectors" if language == "go" else folder
    target.mkdir(parents=True, exist_ok=True)
    shutil.copy(SOURCES / loader, target)
    source = shutil.copy(HERE / f"judge.{language}", folder)
    program = str(folder / "judge")
    if language == "js":
        return ["node", str(source)]
    if language == "cpp":
        command = ["g++", "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", str(source), "-o", program]
    elif language == "rs":
        command = ["rustc", "--edition=2021", "-O", "-Dwarnings", str(source), "-o", program]
    else:
        (folder / "go.mod").write_text("module judge\n\ngo 1.18\n")
        command = ["go", "build", "-o", program, "."]
    subprocess.run(command, cwd=folder, check=True, timeout=300)
    return [program]


def served():
    """The program of examples/serve in C++, which docs/serve.md shows, is right, and its layout is named."""
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/rope"
        source = HERE.parents[1] / "examples" / "serve" / "rope.cpp"
        subprocess.run(["g++", "-Wall", "-Wextra", "-Werror", "-O2", "-o", program, str(source)], check=True, timeout=300)
        for layout, names in (("half", []), ("interleaved", ["other_layout"])):
            with Program(program, "rope.rotate", ("x", "positions")) as rotate:
                report = check_rope(rotate, dim=16, layout=layout)
            if [finding.name for finding in report.diagnosis] != names or report.ok == bool(names):
                raise AssertionError(f"serve, asked for layout {layout}: {report}")


def said(command, mode, path, last):
    """What the program prints: rows (id, model, worst, names), in the order of results and models."""
    run = subprocess.run([*command, mode, str(path), str(last)], check=True, capture_output=True, text=True, timeout=300)
    words = [line.replace("+Inf", "inf").split() for line in run.stdout.splitlines()]
    return [(id, model, float(worst.lower()), sorted(names)) for id, model, worst, *names in words]


def results(case):
    """Outputs of all kinds: right, rounded, wrong by rounding, broken, of another length, and every mistake of the flags."""
    rng = np.random.default_rng(len(case.id))
    expected, within = case.expected.astype(float), vectors.tolerance(case, case.models[-1])
    yield expected
    yield expected + within * rng.uniform(-0.9, 0.9, expected.shape)
    yield expected + within * rng.uniform(-9, 9, expected.shape) + (case.cond is None)
    if case.ignore is not None:
        yield np.where(case.ignore, -np.inf, expected)
    broken = expected.copy()
    broken.flat[-1:] = np.nan
    yield broken
    yield np.append(expected.ravel(), 0.0)
    op, arguments = ops.of_case(case)
    for flag in case.flags:
        try:
            wrong = np.asarray(op.mistakes[flag].wrong(op.spec, arguments), dtype=float)
        except (KeyError, ValueError, ops.NotHere):
            continue  # its numbers come from the generator, or there are none
        if wrong.shape == expected.shape and np.isfinite(wrong).all():
            yield wrong


def wanted(case, got):
    """The rows that a program must print for one result."""
    shaped = got.reshape(case.expected.shape) if got.size == case.expected.size else got
    names = sorted(vectors.named(case, shaped))
    return [(case.id, model, vectors.error(case, shaped, model), names) for model in case.models]


def dump(given, kind, path):
    words = [(id, [repr(x).replace("nan", "NaN").replace("inf", "Infinity") for x in got]) for id, got in given]
    if kind == "json":
        path.write_text(json.dumps([{"Id": id, "Got": got} for id, got in words]))
    else:
        path.write_text("\n".join(f"case {id}\ntensor got 1 {' '.join([str(len(got)), *got])}" for id, got in words) + "\n")


def _every(name):
    """What must be refused too: there no number is right, and any is wrong."""
    return [*vectors.cases(f"{name}/*"), *vectors.cases(f"{name}/*", status="reject")]


def judge(command, language, name, folder):
    """How many results of the system were judged, and sentences about those judged otherwise than posref does."""
    given = [(case, got) for case in _every(name) for got in results(case)]
    rows = [row for case, got in given for row in wanted(case, got)]
    vectors.export(folder, READS[language], f"{name}/*")
    dump([(case.id, got.ravel().tolist()) for case, got in given], READS[language], folder / "got")
    found = said(command, "judge", folder / f"{name}.{READS[language]}", folder / "got")
    different = [f"{theirs}, expected {ours}" for theirs, ours in zip(found, rows, strict=False) if not _same(theirs, ours)]
    return len(found), different + [f"{len(found)} rows, expected {len(rows)}"] * (len(found) != len(rows))


def _same(theirs, ours):
    close = theirs[2] == ours[2] or abs(theirs[2] - ours[2]) <= 1e-9 * max(1, ours[2])
    return close and (theirs[0], theirs[1], theirs[3]) == (ours[0], ours[1], ours[3])


def rope(command, language, folder):
    """Sentences, none if the right rotation passes every model, and the other pairing fails and is named."""
    vectors.export(folder, READS[language], "rope/half/d8-b1e4/tiny")
    path = folder / f"rope.{READS[language]}"
    right, wrong = said(command, "rope", path, "half"), said(command, "rope", path, "interleaved")
    refused = [f"the right one is refused: {row}" for row in right if row[2] > 1]
    passed = [f"the wrong one is not named: {row}" for row in wrong if row[2] <= 1 or row[3] != ["other_layout"]]
    return refused + passed + ["it said nothing"] * (not right or not wrong)
