"""Sections: which axis each pair reads, and how fast time runs, in an output that no mistake of the list explains."""

from collections.abc import Iterator
from itertools import groupby, permutations
from typing import Any

import numpy as np

from posref import pairing
from posref.check.engine import Named, Question, distance
from posref.ops import Arguments, Mistake, using
from posref.ops.position_ids import _timed
from posref.ops.rope import MISTAKES as ROPE
from posref.rotary import rope


def stage(question: Question, got: np.ndarray) -> list[Named]:
    """Mistakes in the axes: the axis that explains each pair, also if more features turn than asked for."""
    a, found = question.a, list[Named]()
    asked = np.array(a.axis)
    if got.shape != question.right.shape:
        return found
    read = _axes(question, got, a, asked)
    if asked.max() > 0 and read is not None and (read != asked).any():
        words = f"the pairs read the axes {_runs(read)}, one after the other; asked are {_runs(asked)}"
        t = np.argmax(read != asked)
        words += f"; pair {t} reads axis {read[t]} instead of {asked[t]}"
        effect, remedy = "Right for text, wrong for images.", "Read mrope_section."
        found = [("other_axes", Mistake(using(axis=read), words, effect, remedy, kind="positions"))]
    if asked.max() > 0 and read is None:
        found = _of_features(question, got)
    w = rope.frequencies(a.dim, a.base) if a.frequencies is None else a.frequencies
    found += _of_the_other_axis(w, asked) if a.order is None else ()
    head = a.x.shape[-1]
    if head == a.dim:
        return found
    if a.order is None and len(w) > 1 and (w > 0).all():
        pairs, ratio = np.arange(head // 2), w[1] / w[0]
        for name, theta in (
            ("all_rotated", w[0] * ratio ** (pairs * a.dim / head)),
            ("all_rotated_same_exponent", w[0] * ratio**pairs),
            ("pairs_across_head", np.where(pairs < len(w), np.resize(w, head // 2), 0)),
        ):
            change = {"dim": head, "frequencies": theta}
            read = _axes(question, got, a | change, np.resize(asked, head // 2))
            if read is not None:
                bug = f"{ROPE[name].bug}; the pairs read the axes {_runs(read[theta > 0])}"
                found.append((name, ROPE[name]._replace(wrong=using(**change, axis=read), bug=bug)))
    return [*found, *((name, ROPE[name]) for name in ("tail_rotated", "tail_zeroed"))]


def _of_the_other_axis(w: np.ndarray, asked: np.ndarray) -> Iterator[Named]:
    """The pairs of one axis turn by the frequencies of the pairs of another axis with as many."""
    remedy = "Give each axis the frequencies of its own pairs."
    for one, other in permutations(range(asked.max() + 1), 2):
        if (asked == one).sum() == (asked == other).sum():
            used, bug = w.copy(), f"axis {one} turns by the frequencies of axis {other}"
            used[asked == one] = w[asked == other]
            mistake = Mistake(using(frequencies=used), bug, "Right where that axis is at 0.", remedy, kind="base")
            yield f"axis_{one}_by_the_frequencies_of_axis_{other}", mistake


def _of_features(question: Question, got: np.ndarray) -> list[Named]:
    """The axis that each feature reads, if the two features of a pair read different axes."""
    a, bound = question.a, np.broadcast_to(question.tolerance[question.models[-1]], got.shape)
    asked = np.array(a.axis)
    alone = [np.asarray(question.op.spec(**a | {"axis": np.full_like(asked, each)})) for each in range(asked.max() + 1)]
    off = np.array([[distance(got[..., f], y[..., f], bound[..., f]) for y in alone] for f in range(a.dim)])
    if (off.min(axis=1) > 1).any() or a.dim < a.x.shape[-1]:
        return []
    read = np.argmin(off > 1, axis=1)

    def wrong(f: Any, a: Any) -> Any:
        y = f(**a)
        for each in range(asked.max() + 1):
            y = np.where(read == each, f(**a | {"axis": np.full_like(asked, each)}), y)
        return y

    bug = f"the features, not the pairs, read the axes {_runs(read)}, so that both members of a pair may read different ones"
    effect, remedy = (
        "Not a rotation: norms change; right for text.",
        "Split the pairs into sections: an even number of features each.",
    )
    return [("axes_of_features", Mistake(wrong, bug, effect, remedy, kind="positions"))]


def time(question: Question, got: np.ndarray) -> list[Named]:
    """The factor on the times of the frames of a video, found from the first video with more than three frames."""
    a, start = question.a, 0
    for frames, rows, columns in a.parts.tolist():
        size = frames * (rows // a.merge) * (columns // a.merge) if rows else frames
        if rows and frames > 3 and got.shape == question.right.shape:
            number = np.arange(1, frames)
            later = (got[start : start + size, 0].reshape(frames, -1)[1:, 0] - got[start, 0]).astype(int)
            steps = ((int(np.ceil(later * q / number).max()), q) for q in range(1, 13))
            step = next((p / q for p, q in steps if p > 0 and (p * number // q == later).all()), None)
            return [] if step is None else [_timed(step, kept) for kept in (True, False)]
        start += size
    return []


def _axes(question: Question, got: np.ndarray, a: Arguments, asked: np.ndarray) -> np.ndarray | None:
    """The axis that explains each pair; None if no axis explains some pair."""
    bound, spec = question.tolerance[question.models[-1]], question.op.spec
    alone = [np.asarray(spec(**a | {"axis": np.full_like(asked, each)})) for each in range(asked.max() + 1)]
    members = np.stack(pairing.split(np.arange(a.dim), layout=a.layout), axis=-1)
    read = np.array([_read(pair, t, got, alone, bound) for pair, t in zip(members, asked, strict=True)])
    return None if (read < 0).any() else read


def _read(pair: np.ndarray, asked: int, got: np.ndarray, alone: list[np.ndarray], bound: np.ndarray) -> int:
    """The axis that gives the two features of a pair, the axis asked for first; -1 if none does."""
    order = sorted(range(len(alone)), key=lambda each: each != asked)
    most = np.broadcast_to(bound, got.shape)[..., pair]
    return next((each for each in order if distance(got[..., pair], alone[each][..., pair], most) <= 1), -1)


def _runs(axes: np.ndarray) -> str:
    """Words for runs of equal axes: "0 x 4, 1 x 6, 2 x 6"."""
    runs = [f"{axis} x {len(list(pairs))}" for axis, pairs in groupby(axes.tolist())]
    return ", ".join(runs[:6] + ["..."] * (len(runs) > 6))
