"""Every mistake that a golden case says it kills is named by diagnose, from values computed with 200 bits."""

import numpy as np
import pytest

from posref import vectors
from posref.check import diagnose

mpmath = pytest.importorskip("mpmath", reason="the generator needs mpmath")
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
    "gradient_tables": {
        "gradient_forward": "gradient turned forward",
        "gradient_turned_first": "gradient turned before the product",
    },
    "permute": {
        "permuted_back": "permuted back",
        "not_permuted": "not permuted",
        "permuted_across_heads": "permuted as 1 heads",
        "tail_permuted": "rows permuted that pass",
    },
    "scores": {
        "other_layout": "layout ",
        "sign": "sign",
        "queries_left_aligned": "queries left aligned",
        "positions_zero": "no rotation",
        "heads_modulo": "heads modulo key_heads",
        "q_not_rotated": "queries not rotated",
    },
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
    assert any(name.startswith(OTHER_OPERATIONS[case.op][flag]) for name in names), report
    assert all(finding.residual <= 1 for finding in report.diagnosis)
