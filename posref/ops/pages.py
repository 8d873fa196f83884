"""Pages: the mistakes of a system, and the mistakes that show a symptom."""

from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from posref import ops, vectors
from posref.ops import Mistake


class Wrong(NamedTuple):
    """Where a mistake is first seen: a golden case, the place in its result, the wrong value there, and the right one."""

    case: str
    at: tuple[int, ...]
    value: Any
    right: Any


def mistakes(name: str) -> dict[str, Mistake]:
    """The mistakes of a system or of one op, by name.

    >>> mistakes("alibi.slopes")["sorted_slopes"].bug
    'the slopes are sorted where the number of heads is no power of two'
    """
    if "." in name:
        return ops.op(name).mistakes
    found: dict[str, Mistake] = {}
    for op in ops.system(name).values():
        found |= {mistake: m for mistake, m in op.mistakes.items() if mistake not in found}
    return found


def first_wrong(name: str, mistake: str) -> Wrong | None:
    """The first wrong value of a mistake in the smallest golden case of the op (or of any op of a system); None if none shows
    it.

    >>> first_wrong("alibi", "sign")
    Wrong(case='alibi/key/h2/fractional', at=(0, 0, 0), value=-0.03125, right=0.03125)
    """
    system, _, op = name.partition(".")
    known = [case for case in _cases(system) if mistake in case.flags and op in ("", case.op)]
    return next(filter(None, (_first(case, mistake) for case in sorted(known, key=lambda case: case.expected.size))), None)


@cache
def _cases(system: str) -> list[Any]:
    return vectors.load(system).cases if system in vectors.names() else []


def _first(case: Any, mistake: str) -> Wrong | None:
    op, arguments = ops.of_case(case)
    try:
        with np.errstate(all="ignore"):
            got = np.asarray(op.mistakes[mistake].wrong(op.spec, arguments))
    except (ops.NotHere, TypeError, ValueError, LookupError, ArithmeticError):
        return None  # the mistake has no answer here
    if got.shape != case.expected.shape:
        return None
    wrong = np.argwhere(np.abs(got - case.expected) > 1e-6 * (1 + np.abs(case.expected)))
    return next((Wrong(case.id, at, got[at].item(), case.expected[at].item()) for at in map(tuple, wrong.tolist())), None)


def page(name: str) -> str:
    """The mistakes of a system or op as text: bug, effect, remedy, and where each was seen."""
    return "\n\n".join(_described(mistake, m, first_wrong(name, mistake)) for mistake, m in mistakes(name).items())


def symptoms(words: str) -> list[tuple[str, list[tuple[str, str]]]]:
    """All effects that contain these words, with the mistakes that have them, as (effect, [(name, bug)]).

    >>> symptoms("future punished")
    [('Keys in the future are punished.', [('alibi.absolute', '|j - i| is used where the signed form is meant')])]
    """
    found: dict[str, dict[str, str]] = {}
    for name in ops.names():
        for mistake, m in mistakes(name).items():
            if all(word.lower() in f"{m.effect} {m.bug}".lower() for word in words.split()):
                found.setdefault(m.effect, {})[f"{name}.{mistake}"] = m.bug
    return [(effect, list(by.items())) for effect, by in found.items()]


def suspects(names: Iterable[str]) -> list[tuple[str, str]]:
    """The mistakes with these names, in every system that can make them, in this order, as (name, bug)."""
    of = {system: mistakes(system) for system in ops.names()}
    return [(f"{system}.{name}", known[name].bug) for name in names for system, known in of.items() if name in known]


def _described(name: str, m: Mistake, wrong: Wrong | None) -> str:
    lines = [f"{name}: {m.bug}", f"  What one sees: {m.effect}"]
    if wrong:
        at = ", ".join(map(str, wrong.at))
        lines += [f"  First wrong value: at ({at}) of {wrong.case} it gives {wrong.value:.6g}, expected {wrong.right:.6g}"]
    lines += [f"  Remedy: {m.remedy}"] if m.remedy else []
    return "\n".join(lines + ([f"  Seen in: {', '.join(m.seen_in)}"] if m.seen_in else []))
