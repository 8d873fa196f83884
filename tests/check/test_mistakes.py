"""Every mistake that a golden case says it kills is named by diagnose, from values computed with 200 bits."""

import contextlib

import numpy as np
import pytest

from posref import ops, vectors
from posref.check import diagnose
from posref.check.tensors import round_to

mpmath = pytest.importorskip("mpmath", reason="the generator needs mpmath")
generator = pytest.importorskip("proofs.vectors.rope", reason="the generator needs sympy")

pytestmark = pytest.mark.slow

# mistake of the generator -> how diagnose begins its name
NAMES = {
    "other_layout": "layout ",
    "third_layout": "interleaved in, half out",
    "tiled_tables": "tables tiled for the other layout",
    "sign": "sign",
    "cos_sin_swapped": "cos and sin swapped",
    "position_plus_one": "positions +1",
    "position_minus_one": "positions -1",
    "positions_ignored": "positions ignored",
    "positions_zero": "no rotation",
    "positions_shared_across_batch": "positions shared across the batch",
    "batch_row_0_only": "only the first row of the batch rotated",
    "positions_reversed": "positions reversed",
    "positions_clamped": "positions clamped at 4095",
    "positions_modulo": "positions modulo 4096",
    "wrong_axis": "head number as position",
    "wrong_base": "base ",
    "exponent_head_dim": "exponent 2t/",
    "exponent_doubled": "exponent 4t/dim",
    "exponent_halved": "exponent t/dim",
    "exponent_shifted": "exponent 2(t+1)/dim",
    "exponent_to_end": "exponent 2t/(dim-2)",
    "frequencies_ascending": "frequencies ascending",
    "linear_scaling": "positions times 0.25",
    "magnitude": "magnitude 1.13863",
    "pairs_across_head": "pairs across the head, exponent 2t/",
    "tail_rotated": "last features rotated",
    "all_rotated": "all ",
    "bf16_inv_freq": "frequencies in bfloat16",
    "bf16_positions": "positions in bfloat16",
    "f16_positions": "positions in float16",
    "bf16_tables": "tables in bfloat16",
}
WITHOUT_A_HYPOTHESIS = {"rotary_dim_rounded", "f32_positions"}
PAIRS = [
    (case, flag)
    for case in vectors.cases("rope/*")
    if case.op == "rotate"
    for flag in case.flags
    if flag not in WITHOUT_A_HYPOTHESIS
]


@pytest.mark.parametrize(("case", "flag"), PAIRS, ids=[f"{case.id}-{flag}" for case, flag in PAIRS])
def test_named(case, flag):
    x, positions = case.tensors["x"], case.tensors["positions"]
    got = generator._mistake(flag, x, positions.tolist(), case.params["dim"], int(case.params["base"]), case.params["layout"])
    report = diagnose(case, got.astype(float))
    names = [finding.name for finding in report.diagnosis]
    assert any(name.startswith(NAMES[flag]) for name in names), report


# op -> mistake of the generator -> name
OTHER_OPERATIONS = {
    "inv_freq": {
        "wrong_base": "base ",
        "exponent_doubled": "exponent 4t/dim",
        "exponent_halved": "exponent t/dim",
        "frequencies_ascending": "frequencies ascending",
    },
    "tables": {
        "cos_sin_swapped": "sin first",
        "frequencies_ascending": "frequencies ascending",
        "bf16_inv_freq": "frequencies in bfloat16",
    },
    "gradient": {"gradient_forward": "gradient turned forward", "other_layout": "layout "},
}


def wrong_values():
    """(case, flag, values): what the generator asserts to be told from the right answer."""
    found = []

    def keep(id, *, mistakes=None, **rest):
        found.extend((vectors.case(id), flag, np.array(values).astype(float)) for flag, values in (mistakes or {}).items())

    with pytest.MonkeyPatch.context() as patch, mpmath.workprec(200):
        patch.setattr(generator, "case", keep)
        for dim in (4, 6, 8, 10, 64, 92, 128):
            generator._inv_freq(dim, 10**4)
        generator._inv_freq(128, 10**6)
        generator._tables("tiny", range(8), 8, 10**4)
        generator._tables("sparse", (1, 257, 4097, 131071, 1048575), 64, 10**4)
        for part in (generator._scores, generator._gradients, generator._permutations):
            list(part())
    return found


WRONG = wrong_values()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("case", "flag", "got"), WRONG, ids=[f"{case.id}-{flag}" for case, flag, _ in WRONG])
def test_named_in_other_operations(case, flag, got, dtype):
    report = diagnose(case, got.astype(dtype))
    names = [finding.name for finding in report.diagnosis]
    assert any(name.startswith(OTHER_OPERATIONS.get(case.op, {}).get(flag, flag)) for name in names), report
    assert all(finding.residual <= 1 for finding in report.diagnosis)


# the wrong answer needs what the op has no argument for, or leaves the range of float64
DECLARED = {("t5/cross/h3-d4/attend", "bias_in_cross_attention"), ("floater/field/d2-s3/field", "whole_size")}
SINGLE = [case for case in vectors.cases() if not case.id.startswith("rope/") and case.op != "frequencies"]


@pytest.mark.parametrize("case", SINGLE, ids=lambda case: case.id)
def test_every_flag_of_a_case_is_named(case):
    """What a mistake gives, rounded to float32 and where the case allows it to bfloat16, has its name among the diagnoses."""
    op, arguments = ops.of_case(case)
    low = [("float32", "f32"), ("bf16", "bf16-f32math")] if case.cond else [("float32", "f32")]
    for flag in case.flags:
        if (case.id, flag) in DECLARED:
            continue
        with np.errstate(all="ignore"), contextlib.suppress(ValueError):  # of another shape: it stays as it is
            got = np.asarray(op.mistakes[flag].wrong(op.spec, arguments))
            got = np.broadcast_to(got, case.expected.shape)
        for dtype, model in low:
            if model in case.models and got.shape == case.expected.shape:
                rounded = round_to(got, "float32" if dtype == "float32" else "bfloat16")
                report = diagnose(case, rounded, dtype=dtype)
                assert flag in [finding.name for finding in report.diagnosis], (flag, dtype, str(report))


def test_nothing_is_named_where_no_mistake_is():
    """One wrong element is no mistake of the list."""
    for case in SINGLE:
        got = case.expected.astype(float)
        if got.size > 8:
            got.flat[got.size // 2] += 1
            assert diagnose(case, got, dtype="f64").diagnosis == [], case.id
