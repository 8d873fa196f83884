"""Every mistake that a golden case says it kills is named by diagnose, from values computed with 200 bits."""

import pytest

from posref import vectors
from posref.check import diagnose

generator = pytest.importorskip("proofs.vectors.rope", reason="the generator needs sympy")

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
    "pairs_across_head": "pairs across the head",
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
