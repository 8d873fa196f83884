"""Inputs: the first question with other contents: 24-bit mantissas, features as large as outliers, far scores, other masks."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from posref import attention
from posref.check import engine, general
from posref.check.call import Caller, Misbehaved, output
from posref.check.report import Report
from posref.check.stages.later_questions import (
    failed,
    features,
    is_right,
    later_question,
    models_after,
    question_with,
    reshaped,
)
from posref.check.verdict import judged
from posref.ops import Arguments, Mistake, NotHere, changing, common, inside, missing, probe, result, using
from posref.ops.variation import steps

BITS = {"float16 or TF32": 11, "bfloat16": 8}
TRIANGLE = Mistake(None, kind="mask").words("""
    the given mask is replaced by the causal mask
    Right in plain decoding; prefixes, images and packed texts see the wrong keys.
    Apply the mask that is given.""")
TRIANGLE_TOO = Mistake(using(mask=lambda a: a.mask & probe.triangle(a.mask)), kind="mask").words("""
    the causal mask is applied in addition to the given mask: keys after the query are always hidden
    Right in plain decoding; prefixes and images do not see later keys.
    Apply only the mask that is given.""")


def fine_numbers(report: Report, caller: Caller, first: engine.Question) -> None:
    """Inputs with more bits than 16-bit formats hold, if the inputs and the output of the function are wider."""
    arrays = {name: first.a[name] for name in caller.op.given if name in first.a}
    arrays = {name: probe.fine(x) for name, x in arrays.items() if isinstance(x, np.ndarray) and x.dtype.kind == "f"}
    wide = report.ok and arrays and {caller.given, caller.dtype} <= {"float32", "float64"}
    if wide and all(np.array_equal(output(caller.to(x.astype(np.float32))), x) for x in arrays.values()):
        _contents(
            report,
            caller,
            first,
            Arguments(first.a | arrays),
            "inputs with 24-bit mantissas",
            lambda got: _roundings([*arrays]),
        )


# on both sides of numbers that replace masked scores or start a maximum, and beyond the range of exp in float32
NEAR = (-20000.0, 20000.0, -200.0, 200.0, -1000000.0)


def _masked_as(number: float) -> Any:
    """The wrong answer in which masked scores are this number."""

    def changed(right: Any) -> Any:
        return lambda s, mask=None, *rest: right(np.where(mask, s, number), None, *rest) if mask is not None else missing()

    return inside(attention, "softmax", changed)


FINITE_MASKS = {
    f"masked_scores_above_{2 * number:.0f}": Mistake(
        _masked_as(number),
        f"masked scores are a finite number between {2 * number:.0f} and {number / 50:g}: rows whose scores are all below it "
        "see masked keys",
        remedy="Use minus infinity, or the least number of the dtype.",
    )
    for number in (-100.0, -10000.0, -500000.0)
} | {
    f"masked_scores_{number:.0f}": Mistake(
        _masked_as(number),
        f"masked scores are {number:.0f}: rows whose scores are as low see masked keys",
        remedy="Use minus infinity, or the least number of the dtype.",
    )
    for number in (-200.0, -20000.0)
}
LARGEST = 1024  # result of the question about large features: far below the end of float16, above that of 8-bit formats


def large_features(report: Report, caller: Caller, first: engine.Question) -> None:
    """Features as large as outliers, in arguments in which the result is linear: nothing may saturate."""
    names = [name for name in features(caller.op, first.a) if is_linear(first, name)]
    size = np.abs(first.right).max(initial=0)
    if not report.ok or not names or not 0 < size < LARGEST:
        return
    factor = 2.0 ** (np.log2(LARGEST / size) // len(names))
    large = Arguments(first.a | {name: factor * first.a[name] for name in names})
    _contents(report, caller, first, large, f"{' and '.join(names)} times {factor:g}", general.clipped)


def small_features(report: Report, caller: Caller, first: engine.Question) -> None:
    """Features whose squares are about as small as the eps of their norm, in float32: with usual features any eps would
    pass."""
    eps, wide = first.a.get("eps"), {caller.given, caller.dtype} <= {"float32", "float64"}
    if not report.ok or not eps or not wide:
        return
    names = [name for name in features(caller.op, first.a) if not is_linear(first, name)]
    small = {name: first.a[name] * 2.0 ** np.rint(np.log2(eps) / 2) for name in names}
    _contents(report, caller, first, Arguments(first.a | small), f"{' and '.join(names)} about as small as eps", lambda got: {})


def low_scores(report: Report, caller: Caller, first: engine.Question) -> None:
    """Scores that are all near -softcap: there a key that is masked before the cap weighs as much as a visible one."""
    a, wide = first.a, {caller.given, caller.dtype} <= {"float32", "float64"}
    if not report.ok or not wide or not a.get("softcap") or not {"q", "k", "scale"} <= a.keys():
        return
    usual = np.abs(a.scale) * np.abs(a.k).mean() * a.k.shape[-1]
    low = {"q": -4.0 * a.softcap / usual * (a.q != 0), "k": np.abs(a.k)}
    _contents(report, caller, first, Arguments(a | low), "scores near -softcap", lambda got: {})


def far_scores(report: Report, caller: Caller, first: engine.Question) -> None:
    """Rows whose scores are all far from 0: they show a finite number that stands for a masked score, or for the maximum.

    The scores of one row differ by more than the rounding of float32, and by far less than their distance from 0.
    """
    a, wide = first.a, {caller.given, caller.dtype} <= {"float32", "float64"}
    if not report.ok or not wide or attention.softmax not in steps(first.op.spec):
        return
    turned = {"base", "frequencies"} & a.keys()
    if turned and (
        ("mask" in a and "mask" not in {*caller.received, *caller.named}) or caller.positions in ("range", "offset")
    ):
        return  # it makes the causal mask itself, perhaps of the positions, or the positions, which are all 0 here
    far = _far_scores(a)
    if not far:
        return
    near = np.resize(NEAR, a[next(iter(far))].shape[-2])[:, None]
    words = f"scores near {', '.join(f'{number:g}' for number in NEAR)}"
    try:
        got = caller(Arguments(a | far))
    except Misbehaved as error:
        report.skipped(words, str(error))
        return
    if not _zeros_within_bounds(report, words, first, Arguments(a | far), got, near):
        _contents(
            report, caller, first, Arguments(a | far), words, lambda got: FINITE_MASKS | _lost_rows(got, near), lambda _: got
        )


def _zeros_within_bounds(
    report: Report, name: str, first: engine.Question, a: Arguments, got: np.ndarray, near: np.ndarray
) -> bool:
    """Say so if whole rows are exactly 0: no rounding of weights gives that, but bounds this far from 0 may accept it."""
    right = first.op.spec(**a)
    if got.shape != right.shape or got.ndim < 2:
        return False
    size = np.abs(right).max(axis=-1, keepdims=True, initial=0)
    lost = ~got.any(axis=-1, keepdims=True) & (size > 2.0**-20 * size.max(initial=0))
    if not lost.any() or not is_right(later_question(first.op, a, models_after(report, first)), got):
        return False
    ((name, mistake),) = _lost_rows(np.where(lost, got, 1), near).items()
    report.failed(name, f"{lost.sum()} of {lost.size} rows are 0")
    report.found(name, mistake.bug, mistake.remedy)
    return True


def _far_scores(a: Arguments) -> dict[str, np.ndarray]:
    """Scores, or queries and keys that give them; if these are rotated, all are at one position, so that none turns."""
    if "scores" in a:
        far = np.resize(NEAR, a.scores.shape[-2])[:, None] + a.scores / 16
        return {"scores": far.astype(np.float32).astype(float)}
    places = [name for name in ("query_positions", "key_positions") if name in a]
    if not {"q", "k", "scale"} <= a.keys() or ({"base", "frequencies"} & a.keys() and len(places) < 2):
        return {}
    q = np.resize(NEAR, a.q.shape[-2])[:, None] / (np.abs(a.scale) * a.k.shape[-1]) * np.ones_like(a.q)
    far = {"q": q.astype(np.float32).astype(float), "k": 1 + a.k / 1024}  # who adds -10000 to masked scores hides them here too
    return far | {name: np.zeros_like(a[name]) for name in places if {"base", "frequencies"} & a.keys()}


def _lost_rows(got: np.ndarray, near: np.ndarray) -> dict[str, Mistake]:
    """Rows that are 0 or not finite although their keys have values, by the sign of their scores."""
    lost, high = (~np.isfinite(got) | (got == 0)).all(axis=-1, keepdims=True), (near > 0) & ~np.isfinite(got[..., :1])
    signs, found = {"underflows": lost & ~high, "overflows": lost & high}, {}
    for verb, rows in signs.items():
        if got.ndim >= 2 and rows.any():
            scores = " or ".join(f"{n:g}" for n in np.unique(near[rows.any(axis=(*range(got.ndim - 2),))]))
            found[f"exp_{verb}"] = Mistake(
                result(partial(_where_lost, rows, got)),
                f"rows whose scores are all near {scores} are lost: exp {verb}",
                remedy="Subtract from all scores of a row the largest one that may be seen, in every block, and no masked one.",
            )
    return found


def _where_lost(rows: np.ndarray, got: np.ndarray, y: Any, a: Arguments) -> Any:
    return np.where(rows & (y != 0), got, y)


def is_linear(first: engine.Question, name: str) -> bool:
    """Whether twice the argument gives exactly twice the result; False if the specification refuses it."""
    try:
        with np.errstate(all="ignore"):
            return np.array_equal(first.op.spec(**first.a | {name: 2 * first.a[name]}), 2 * first.right)
    except ValueError:
        return False


def other_masks(report: Report, caller: Caller, settings: dict[str, Any], first: engine.Question) -> None:
    """Another mask than the causal one, if the function receives a mask; within the causal one if that was asked for."""
    mask = first.a.get("mask")
    if (
        report.ok
        and "mask" in {*caller.received, *caller.named}
        and isinstance(mask, np.ndarray)
        and (mask <= probe.triangle(mask)).all()
    ):
        holes = probe.scattered(mask) & mask if settings.get("causal") else probe.scattered(mask)
        wrong = {"causal_mask_instead": TRIANGLE._replace(wrong=using(mask=mask))}
        wrong |= {"causal_mask_as_well": TRIANGLE_TOO}
        _contents(report, caller, first, Arguments(first.a | {"mask": holes}), "a mask with holes", lambda got: wrong)
        _no_key(report, caller, first, holes)


def counts(report: Report, caller: Caller, first: engine.Question) -> None:
    """Other lengths, the second of which is 0, or another tree. No mistake is named that the first output refutes."""
    arrays = {name: np.asarray(first.a.get(name)) for name in caller.op.given if name not in (*probe.PLACED, "offsets")}
    whole = {name: x for name, x in arrays.items() if x.dtype.kind in "iu" and x.ndim == 1 and x.min(initial=0) >= 0}
    words, remedy = "zeros are left out: an empty text has no number", "Count empty texts too: add 1 at each boundary."
    left_out = {f"{n}_without_zeros": Mistake(changing(lambda x: x[x > 0], n), words, remedy=remedy) for n in whole}
    for name, x in whole.items():
        for other in (np.where(np.arange(len(x)) == 1, 0, x), x // 2):
            a = Arguments(first.a | {name: other})
            with suppress(ValueError, IndexError):  # refused by the specification
                caller.op.spec(**a)
                if report.ok and (other != x).any():
                    _contents(report, caller, first, a, f"{name} {other.tolist()}", lambda got: left_out, before=first)
                    break


def _no_key(report: Report, caller: Caller, first: engine.Question, mask: np.ndarray) -> None:
    """A first query that sees no key: no paper defines its result, but all other rows have to stay right."""
    name, blind = "a query without any key", Arguments(first.a | {"mask": mask & (np.arange(mask.shape[-2]) > 0)[:, None]})
    if not report.ok or attention.softmax not in steps(first.op.spec) or mask.shape[-2] < 2:
        return
    seeing, blinded = (first.op.spec(**first.a | {"mask": each}) for each in (mask, blind.mask))
    if blinded[..., 0, :].any() or (seeing != blinded)[..., 1:, :].any():
        return  # rows of the result are not of queries, as in gradients of keys

    def rest(a: Arguments) -> np.ndarray:
        got, right = caller(a), first.op.spec(**a)
        if got.shape != right.shape:
            return got
        if not (got[..., 0, :] == 0).all():
            words = "numbers" if np.isfinite(got[..., 0, :]).all() else "NaN or infinity"
            report.ambiguous.append(f"a query that sees no key: your output has {words} there, posref zeros.")
        return np.where((np.arange(got.shape[-2]) > 0)[:, None], got, 0)

    _contents(report, caller, first, blind, name, lambda got: {}, rest)


def _contents(
    report: Report,
    caller: Caller,
    first: engine.Question,
    a: Arguments,
    name: str,
    wrong: Callable[[np.ndarray], dict[str, Mistake]],
    ask: Callable[[Arguments], np.ndarray] | None = None,
    before: engine.Question | None = None,
) -> None:
    """Ask this question; `wrong` gives the mistakes that would show here, some of them read from the output."""
    try:
        got = (ask or caller)(a)
        question = question_with(report, caller, first, a, wrong(got))
        question.before = before
        got = reshaped(got, question)
    except (NotHere, ValueError):
        return
    except Misbehaved as error:
        report.skipped(name, str(error))
        return
    part = Report(report.subject)
    if judged(part, question, got) or failed(report, name, part):
        report.passed(name)


def _roundings(names: list[str]) -> dict[str, Mistake]:
    """All inputs, or one of them, rounded to few bits."""
    sets = {"inputs": names} if len(names) > 1 else {}
    sets |= {name: [name] for name in names}
    return {
        f"{words}_in_{bits}_bits": Mistake(changing(partial(common.rounded, bits=bits), *some), kind="precision").words(f"""
            {words} rounded to {kind} before use
            Right for numbers with few bits; other numbers are off by this rounding.
            Compute with the input as it is given; switch TF32 off where products are compared in float32.""")
        for words, some in sets.items()
        for kind, bits in BITS.items()
    }
