"""Run proof files side by side, one process a core."""

import importlib
import multiprocessing
import os
import pkgutil
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict

import proofs
from proofs.kit.theorem import examine, kill_mutants, theorems

SKIPPED = ("proofs.kit", "proofs.vectors", "proofs.__main__")


def names():
    """All proof files, as rotary.rope."""
    found = pkgutil.walk_packages(proofs.__path__, "proofs.")
    return [
        m.name.removeprefix("proofs.") for m in found if not m.ispkg and not m.name.startswith(SKIPPED) and "._" not in m.name
    ]


def run_file(name, with_mutants):
    """Results of one file: a list of dictionaries, labels of surviving mutants, labels listed for nothing."""
    everything = theorems(importlib.import_module(f"proofs.{name}"))
    results = [examine(t) for t in everything]
    survivors, unused = [], []
    if with_mutants and all(r.status == "proved" for r in results):
        start = time.perf_counter()
        score, survivors, unused = kill_mutants(everything, f"posref.{name}")
        share = (time.perf_counter() - start) / max(len(results), 1)
        for result in results:
            result.mutants, result.seconds = score[result.name], result.seconds + share
            if result.mutants["survived"]:
                result.status = "mutants survive"
    return [asdict(r) for r in results], survivors, unused


def run(files, with_mutants):
    """Run files side by side, one process a core, with a line of progress for each theorem."""
    done, survivors, unused = {}, [], []
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(os.cpu_count() or 1, len(files)), mp_context=context) as pool:
        jobs = {pool.submit(run_file, name, with_mutants): name for name in files}
        for job in as_completed(jobs):
            done[jobs[job]], alive, idle = job.result()
            survivors, unused = survivors + alive, unused + idle
            for r in done[jobs[job]]:
                print(
                    f"[{len(done)}/{len(files)}] {r['name']}: {r['status']} ({r['seconds']:.2f} s)", file=sys.stderr, flush=True
                )
    return [r for name in files for r in done[name]], survivors, unused
