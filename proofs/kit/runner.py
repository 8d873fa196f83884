"""Find theorems by name and run them, one process a core, with a line of progress for each theorem."""

import difflib
import functools
import importlib
import multiprocessing
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path

import proofs
from proofs.kit import numbers, twins
from proofs.kit.mutants import python_function
from proofs.kit.theorem import examine, kill_mutants, theorems

OTHERS = ("kit", "vectors")  # what is no proof
PASSED = ("proved", "checked")
SLOW = 2  # seconds that a file may take without mutants


def names():
    """All proof files, as rotary.rope, found by their paths: a file is imported only when it is asked for."""
    roots = map(Path, proofs.__path__)
    parts = [path.relative_to(root).with_suffix("").parts for root in roots for path in root.rglob("*.py")]
    return sorted(".".join(part) for part in parts if part[0] not in OTHERS and not part[-1].startswith("__"))


def find(name):
    """The theorems that a name means: a file, a theorem of it, either with the file's short name (rope, rope.relative)."""
    wanted = name.lower().replace("-", "_").removeprefix("posref.").removeprefix("proofs.")
    head, _, tail = wanted.rpartition(".")
    if file := _file(wanted):
        return in_file(file)
    if file := _file(head):
        if found := [t for t in in_file(file) if t.body.__name__ == tail]:
            return found
        known = [t.body.__name__ for t in in_file(file)]
        raise LookupError(f"{file} has no theorem {tail!r}; {_near(tail, known)}")
    raise LookupError(f"no proof file {name!r}; {_near(wanted.split('.')[-1], [file.split('.')[-1] for file in names()])}")


@functools.cache
def in_file(file):
    """The theorems and examples of a proof file."""
    return theorems(importlib.import_module(f"proofs.{file}"))


@functools.cache
def equivalent():
    """Mutants that change nothing by the reason of a theorem, each with the module of its function."""
    listed = [(python_function(f), t.equivalent) for file in names() for t in in_file(file) for f in t.of]
    return {f"{f.__module__}.{label}" for f, labels in listed for label in labels if label.startswith(f"{f.__name__}: ")}


def _file(name):
    """A proof file by its full name, or by its last word if that is no kernel's."""
    return next((f for f in names() if f == name or (f.split(".")[-1] == name and not f.startswith("fast."))), None)


def _near(word, known):
    near = difflib.get_close_matches(word, known, n=2, cutoff=0.5)
    return f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known)}"


def run(chosen, with_mutants, sizes=numbers.SIZES):
    """Results of the chosen theorems in their order, labels of surviving mutants, labels listed for nothing.

    Mutants are tried in files whose theorems are all chosen, and all proved. With mutants, results are changed, too.
    """
    done, proof, survivors, unused = {}, {}, [], []
    files = list(dict.fromkeys(t.file for t in chosen))
    jobs = [(t.file, t.name, sizes, with_mutants) for t in chosen]
    for count, (result, seconds) in enumerate(_side_by_side(_examine, jobs, len(files)), 1):
        done[result["name"]], proof[result["name"]] = result, seconds
        _say(f"[{count}/{len(chosen)}] {result['name']}: {result['status']} ({result['seconds']:.2f} s)")
    whole = [f for f in files if all(t.name in done and done[t.name]["status"] in PASSED for t in in_file(f))]
    jobs = [(f, {t.name: proof[t.name] for t in in_file(f)}) for f in whole] if with_mutants else []
    jobs.sort(key=lambda job: -sum(job[1].values()))  # the longest first, so that no process waits for it at the end
    for file, score, alive, idle, seconds in _side_by_side(_kill, jobs, len(jobs)):
        survivors, unused = survivors + alive, unused + idle
        _say(f"mutants of {file}: {sum(s['killed'] for s in score.values())} noticed ({seconds:.1f} s)")
        for name, counts in score.items():
            done[name]["mutants"] = counts
            if counts["survived"]:
                done[name]["status"] = "mutants survive"
    return [done[t.name] for t in chosen], survivors, unused


def slow(results):
    """Files that take longer than they should without mutants: {file: seconds}."""
    seconds = {}
    for r in results:
        file = r["name"].rpartition(".")[0]
        seconds[file] = seconds.get(file, 0) + r["seconds"]
    return {file: round(s, 1) for file, s in seconds.items() if s > SLOW}


def _examine(file, name, sizes, with_results):
    t = next(t for t in in_file(file) if t.name == name)
    result = asdict(examine(t, with_results))
    more = _in_numbers(t, sizes, with_results) if result["status"] in PASSED else {}
    return result | more, t.seconds  # of its proof alone


def _in_numbers(t, sizes, with_named):
    """How many results of a theorem agree in numbers, or why none is compared; anything else is a status."""
    try:
        called = twins.INSTALLED and (with_named or sizes != numbers.SIZES)  # the quick tier would wait for their compiler
        count = numbers.check(t, sizes, with_named, called)
    except Exception as error:
        return {"status": f"in numbers: {type(error).__name__}: {error}"}
    reason = "" if count else numbers.silence(t)
    if not count and not reason:
        return {"status": "compares nothing in numbers, and does not say why"}
    if count and t.silent:
        return {"status": f"is said to compare nothing in numbers, and compares {count} results"}
    return {"numbers": count, "silent": reason, "twins": dict(Counter(twins.compared))}


def _kill(file, seconds):
    start, everything = time.perf_counter(), in_file(file)
    for t in everything:
        t.seconds = seconds[t.name]  # a mutant may take ten times as long
    score, survivors, unused = kill_mutants(everything, f"posref.{file}")
    return file, score, survivors, unused, time.perf_counter() - start


def _side_by_side(work, jobs, files):
    """Results as they come; the jobs of one file run in this process, which has imported it."""
    if files < 2:
        yield from (work(*job) for job in jobs)
        return
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")  # a fork has imported the proofs
    with ProcessPoolExecutor(min(os.cpu_count() or 1, len(jobs)), mp_context=context) as pool:
        for future in as_completed([pool.submit(work, *job) for job in jobs]):
            yield future.result()


def _say(line):
    print(line, file=sys.stderr, flush=True)
