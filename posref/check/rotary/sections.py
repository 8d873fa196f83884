"""Sections: which axis each pair reads, from an output of rotation over several axes that no mistake of the list explains."""

from itertools import groupby

import numpy as np

from posref import pairing
from posref.check.engine import Named, Question, distance
from posref.ops import Mistake, using


def stage(question: Question, got: np.ndarray) -> list[Named]:
    """The axes that explain every pair, as one mistake; nothing where a pair is explained by none."""
    a, right, bound = question.a, question.right, question.tolerance[question.models[-1]]
    asked = np.array(a.axis)
    if got.shape != right.shape or asked.max() == 0:
        return []
    alone = [np.asarray(question.op.spec(**a | {"axis": np.full_like(asked, each)})) for each in range(asked.max() + 1)]
    members = np.stack(pairing.split(np.arange(a.dim), layout=a.layout), axis=-1)
    read = np.array([_read(pair, t, got, alone, bound) for pair, t in zip(members, asked, strict=True)])
    if (read < 0).any() or (read == asked).all():
        return []
    wrong = using(axis=read)
    bug = f"the pairs read the axes {_runs(read)}, one after the other; asked are {_runs(asked)}"
    return [("other_axes", Mistake(wrong, bug, "Right for text, wrong for images.", "Read mrope_section.", kind="positions"))]


def _read(pair: np.ndarray, asked: int, got: np.ndarray, alone: list[np.ndarray], bound: np.ndarray) -> int:
    """The axis that gives the two features of a pair, the asked one first; -1 if none does."""
    order = sorted(range(len(alone)), key=lambda each: each != asked)
    most = np.broadcast_to(bound, got.shape)[..., pair]
    return next((each for each in order if distance(got[..., pair], alone[each][..., pair], most) <= 1), -1)


def _runs(axes: np.ndarray) -> str:
    """0 x 4, 1 x 6, 2 x 6."""
    runs = [f"{axis} x {len(list(pairs))}" for axis, pairs in groupby(axes.tolist())]
    return ", ".join(runs[:6] + ["..."] * (len(runs) > 6))
