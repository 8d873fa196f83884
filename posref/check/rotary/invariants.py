"""Invariants: what every rotation keeps. The report says so for a right output and for a wrong one."""

import numpy as np

from posref.check.engine import Question, ratios
from posref.check.report import Report
from posref.ops.common import per_head


def check(report: Report, question: Question, got: np.ndarray) -> None:
    """Add "right at position 0" and "lengths kept" to the report of a rotation.

    A vector within its bound is longer or shorter than the right vector by at most the length of the bound.
    """
    right, bound = question.right, question.tolerance[question.models[-1]]
    if "rotation" not in question.op.tags or got.shape != right.shape or not np.isfinite(got).all():
        return
    start = np.broadcast_to(per_head(question.a.positions, got) == 0, got.shape[:-1])
    if start.any():
        off = (ratios(got, right, bound)[start] > 1).any(axis=-1)
        _verdict(report, "right at position 0", not off.any(), f"{off.sum()} of {off.size} vectors differ")
    length, expected, allowed = (np.sqrt((v * v).sum(axis=-1)) for v in (got, right, bound))
    low, high = (length / expected).min(), (length / expected).max()
    kept = bool((np.abs(length - expected) <= allowed).all())
    _verdict(report, "lengths kept", kept, f"vectors are {low:.6g} to {high:.6g} times as long as they should be")


def _verdict(report: Report, name: str, holds: bool, otherwise: str) -> None:
    if holds:
        report.passed(name)
    else:
        report.failed(name, otherwise)
