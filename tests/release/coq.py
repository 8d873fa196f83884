"""The obligations of all theorems in Coq, a kernel that knows neither sympy nor the kit; what it accepts goes to docs/coq.json.

A theorem of `ASKED` that exports nothing counts as one obligation that is open. `python -m tests.release.coq NAME ..` judges
these systems alone, and keeps the rows of the others.
"""

import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from proofs.kit import coq, export
from proofs.kit.runner import find, names

FILE = Path(__file__).parents[2] / "docs" / "coq.json"
ASKED, SHARE = ("absolute.sinusoidal", "rotary.rope", "relative.alibi", "relative.t5"), 0.95
SECONDS = 1500  # in which the systems are judged, those asked for first


def run():
    """Every system in time; of each of those asked for 95 % of the obligations must be closed."""
    rows, version = judged(names())
    for system in ASKED:
        own = [row for name, row in rows.items() if name.rpartition(".")[0] == system]
        done, all_ = sum(accepted for accepted, _ in own), sum(max(1, exported) for _, exported in own)
        if done < SHARE * all_:
            raise AssertionError(f"{done} of {all_} obligations of {system} are closed, expected {SHARE:.0%}")
    total = [*map(sum, zip(*rows.values(), strict=True))]
    return (
        f"Coq {version}: {total[0]} of {total[1]} obligations of {len(rows)} theorems by Qed, {SHARE:.0%} of {', '.join(ASKED)}"
    )


def judged(systems):
    """({theorem: (accepted, exported)}, Coq's version) of the systems judged in time, which docs/coq.json gets too."""
    _install()
    theorems = [export.theorem(t) for name in systems for t in find(name)]
    with tempfile.TemporaryDirectory() as scratch:
        files = coq.write(theorems, Path(scratch))
        subprocess.run(["coqc", "-q", "Sums.v"], cwd=scratch, check=True)
        closed, axioms = _judged(Path(scratch), sorted(files, key=lambda file: file not in map(_file, ASKED)))
    rows = {}
    for t in theorems:
        system, _, name = t["name"].rpartition(".")
        if _file(system) in closed:
            accepted = sum(re.fullmatch(rf"{name}_\d+", each) is not None for each in closed[_file(system)])
            rows[t["name"]] = accepted, len(t["obligations"])
            print(f"{t['name']}: {accepted} of {len(t['obligations'])} closed", flush=True)
    version = subprocess.run(["coqc", "--print-version"], capture_output=True, text=True, check=True).stdout.split()[0]
    known = json.loads(FILE.read_text(encoding="utf-8"))
    kept = {name: row for name, row in known["theorems"].items() if name.rpartition(".")[0] not in systems}
    said = kept | {name: f"{accepted} of {exported}" for name, (accepted, exported) in rows.items()}
    said = {t.name: said[t.name] for name in names() for t in find(name) if t.name in said}
    record = {"coq": version, "axioms": sorted({*known["axioms"], *axioms}), "theorems": said}
    FILE.write_text(json.dumps(record, indent=0) + "\n", encoding="utf-8")
    return rows, version


def _install():
    if shutil.which("coqc") is None:
        done = subprocess.run(["apt-get", "install", "-qy", "coq"], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"coq is not installed: {done.stderr.strip()[-200:]}")


def _file(system):
    return system.replace(".", "_")


def _judged(folder, files):
    """({file: lemmas that are closed}, all axioms), of the files for which there was time."""
    closed, axioms, end = {}, set(), time.monotonic() + SECONDS
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for file, found in zip(files, pool.map(lambda file: _in_time(folder, file, end), files), strict=True):
            closed |= {file: found[0]} if found else {}
            axioms |= found[1] if found else set()
    return closed, axioms


def _in_time(folder, file, end):
    """What `coq.judge` says, or None."""
    try:
        return coq.judge(folder, file) if time.monotonic() < end else None
    except subprocess.TimeoutExpired:
        return None


if __name__ == "__main__":
    judged(sys.argv[1:])
