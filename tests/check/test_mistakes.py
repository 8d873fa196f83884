"""Every mistake that a golden case says it kills is named by diagnose."""

import contextlib

import numpy as np
import pytest

from posref import ops, vectors
from posref.check import diagnose
from posref.check.tensors import round_to

pytestmark = pytest.mark.slow

# the wrong answer leaves the range of float64, or that of normal numbers in float32
DECLARED = {
    ("floater/field/d2-s3/field", "whole_size"),
    ("forgetting/gates/h3/log-sigmoid", "gate_not_logarithm"),
}
CONSTANT_IN_BF16 = {("alibi/signed/h8/collision", "f16_key_form")}  # steps of 4 at 4096 are below its spacing: no bias is left


@pytest.mark.parametrize("case", vectors.cases(), ids=lambda case: case.id)
def test_every_flag_of_a_case_is_named(case):
    """What a mistake gives, rounded to float32 and where the case allows it to bfloat16, has its name among the diagnoses."""
    op, arguments = ops.of_case(case)
    for flag in case.flags:
        if (case.id, flag) in DECLARED:
            continue
        with np.errstate(all="ignore"), contextlib.suppress(ValueError):  # of another shape: it stays as it is
            got = np.asarray(op.mistakes[flag].wrong(op.spec, arguments))
            got = np.broadcast_to(got, case.expected.shape)
        coarse = case.cond and (case.id, flag) not in CONSTANT_IN_BF16
        for dtype, model in [("float32", "f32"), ("bf16", "bf16-f32math")][: 1 + bool(coarse)]:
            if model in case.models and got.shape == case.expected.shape:
                rounded = round_to(got, "float32" if dtype == "float32" else "bfloat16")
                report = diagnose(case, rounded, dtype=dtype)
                name = flag if rounded.any() else "nothing_computed"  # zeros have one name, whatever computed them
                assert name in [finding.name for finding in report.diagnosis], (flag, dtype, str(report))


def test_nothing_is_named_where_no_mistake_is():
    """One wrong element is no mistake of the list."""
    for case in vectors.cases():
        got = case.expected.astype(float)
        if got.size > 8:
            got.flat[got.size // 2] += 1
            assert diagnose(case, got, dtype="f64").diagnosis == [], case.id
