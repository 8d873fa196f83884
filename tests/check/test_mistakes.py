"""Every mistake that a golden case says it kills is named by diagnose."""

import contextlib

import numpy as np
import pytest

from posref import ops
from posref.check import diagnose
from posref.check.tensors import round_to
from tests import golden
from tests.every import every

pytestmark = pytest.mark.slow

# the wrong answer leaves the range of float64, or that of normal numbers in float32
DECLARED = {("floater/field/d2-s3/field", "whole_size"), ("forgetting/gates/h3/log-sigmoid", "gate_not_logarithm")}
CONSTANT_IN_BF16 = {("alibi/signed/h8/collision", "f16_key_form")}  # steps of 4 at 4096 are below its spacing: no bias is left


@every(golden.cases(), name=lambda case: case.id, parts=16)
def test_every_flag_of_a_case_is_named(case):
    """What a mistake gives, rounded to float32 and where the case allows it to bfloat16, has its name among the diagnoses."""
    op, arguments = ops.of_case(case)
    for flag in case.flags:
        if (case.id, flag) in DECLARED:
            continue
        with np.errstate(all="ignore"), contextlib.suppress(ValueError):  # of another shape: it stays as it is
            got = np.asarray(op.mistakes[flag].wrong(op.spec, arguments))
            got = np.broadcast_to(got, case.expected.shape)
        one = got.shape == case.expected.shape and np.count_nonzero(got - case.expected.astype(float)) == 1
        coarse = case.cond and not one and (case.id, flag) not in CONSTANT_IN_BF16  # 8 bits of one number are met by any cause
        for dtype, model in [("float32", "f32"), ("bf16", "bf16-f32math")][: 1 + bool(coarse)]:
            if model in case.models and got.shape == case.expected.shape:
                rounded = round_to(got, "float32" if dtype == "float32" else "bfloat16")
                report = diagnose(case, rounded, dtype=dtype)
                names = [finding.name for finding in report.diagnosis]
                if (
                    np.asarray(op.spec(**arguments)).dtype == bool and rounded.all()
                ):  # who returns True everywhere reads no positions
                    kinds = {op.mistakes[name].kind for name in names if name in op.mistakes}
                    assert names, str(report)
                    assert "positions" not in kinds, str(report)
                    continue
                name = flag if rounded.any() else "nothing_computed"  # zeros have one name, whatever computed them
                assert name in names, (flag, dtype, str(report))


def test_nothing_is_named_where_no_mistake_is():
    """One wrong element is no mistake of the list."""
    for case in golden.cases():
        got = case.expected.astype(float)
        if got.size > 8:  # 1 more may be a mistake's in a mask, and among offsets: -3 in the place of the one -4 is a limit
            got.flat[got.size // 2] += 2 if np.isin(got, (0, 1)).all() else 0.5 if (got == np.rint(got)).all() else 1
            assert diagnose(case, got, dtype="f64").diagnosis == [], case.id
