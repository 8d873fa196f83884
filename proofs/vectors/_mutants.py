"""Mutants: small wrong versions of the specification that no golden vector notices, `python -m proofs.vectors --mutants`.

Every function of `posref` that a case runs is mutated as for the proofs (`proofs.kit.mutants`). A mutant is noticed if a case
that runs the function raises an error or leaves the tolerance of its strictest model. One that survives is equivalent, which
the proofs say (`equivalent=`), or has a reason in `REASONS` of its generator, or wants a case.
"""

import signal
import sys
import warnings
from contextlib import contextmanager

import numpy as np

from posref import discovery, ops, vectors
from proofs.kit.mutants import codes_run_by, mutants, python_function, swapped
from proofs.kit.runner import equivalent
from proofs.vectors._reasons import idle, reason

SECONDS = 5  # a mutant may never end
FAMILIES = tuple(f"posref.{family}." for family in discovery.FAMILIES)
SHARED = ("posref.attention", "posref.offsets", "posref.pairing", "posref.position_ids")


def report(names=()):
    """What the cases notice, as a line, and what is open, as sentences; reasons may be idle where not all cases are asked."""
    alive = [f"{function.__module__}.{label}" for function, label in survivors(names)]
    unproved = [mutant for mutant in alive if mutant not in equivalent()]
    explained = [mutant for mutant in unproved if reason(mutant, kind="mutant")]
    said = [f"survives: {mutant}" for mutant in unproved if mutant not in explained]
    if not names:
        said += [f"a reason explains nothing: {pattern}" for pattern in idle([(mutant,) for mutant in explained], "mutant")]
    proved, unexplained = len(alive) - len(unproved), len(unproved) - len(explained)
    return f"{len(alive)} survive: {proved} equivalent, {len(explained)} with a reason, {unexplained} open", said


def survivors(names=()):
    """Pairs (function, label of a mutant), function by function; with names only the cases of these systems are asked."""
    cases = [case for case in vectors.cases() if not names or case.id.split("/")[0] in names]
    for function, own in sorted(_run_by(cases).items(), key=lambda item: item[0].__qualname__):
        for label, code in mutants(function):
            with swapped(function, code):
                if not any(_noticed(case) for case in own):
                    yield function, label


def _run_by(cases):
    """{function of the specification: cases that run it}, those with the fewest numbers first."""
    runs = [(case, codes_run_by(_noticed, case)) for case in sorted(cases, key=lambda case: case.expected.size)]
    if wrong := [case.id for case, _ in runs if _noticed(case)]:
        raise AssertionError(f"the specification fails {', '.join(wrong)}, which would notice every mutant")
    found = {f: [case for case, codes in runs if f.__code__ in codes] for f in map(python_function, _specification())}
    return {f: own for f, own in found.items() if own}


def _specification():
    for name, module in list(sys.modules.items()):
        if name.startswith(FAMILIES) or name in SHARED:
            own = (f for f in vars(module).values() if getattr(f, "__module__", None) == name)
            yield from (f for f in own if hasattr(python_function(f), "__code__"))


def _noticed(case):
    """Whether a case is wrong, refused, or without an end."""
    op, arguments = ops.of_case(case)
    try:
        with warnings.catch_warnings(), _at_most(SECONDS):
            warnings.simplefilter("ignore")
            got = np.asarray(op.spec(**arguments)).astype(float)
    except Exception:
        return True
    return vectors.error(case, got, "f64" if "f64" in case.models else case.models[0]) > 1


@contextmanager
def _at_most(seconds):
    def ended(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, ended)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
