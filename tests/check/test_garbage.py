"""Garbage has no name: noise has no diagnosis at a golden case of every op."""

import numpy as np

from posref import vectors
from posref.check import diagnose, tensors
from tests.every import every

FIRST = {case.op + case.id.split("/")[0]: case for case in vectors.cases() if case.cond is not None and case.expected.size > 8}


@every(FIRST.values(), name=lambda case: case.id)
def test_noise_has_no_name(case):
    noise = np.random.default_rng(5).normal(size=case.expected.shape) * np.abs(case.expected).max()
    for dtype in ("float32", "bfloat16"):
        report = diagnose(case, tensors.round_to(noise, dtype), dtype=dtype)
        assert not report.diagnosis, str(report)


def test_a_wide_bound_is_no_evidence():
    """Noise that consists of bf16 numbers is not called attention computed in bfloat16."""
    case = next(case for case in vectors.cases("attention/*") if case.op == "attend")
    noise = tensors.round_to(np.random.default_rng(5).normal(size=case.expected.shape), "bfloat16")
    assert not diagnose(case, noise, dtype="float32").diagnosis
