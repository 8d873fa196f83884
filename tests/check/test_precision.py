"""The derived bounds hold for every float32 recipe, and none is so wide that it says nothing."""

import numpy as np
import pytest

from posref import ops
from posref.check import check, engine, implementation
from posref.check.ranged import growth
from posref.check.report import Report
from posref.check.verdict import judged
from posref.ops.common import ANGLES_IN_16_BITS, PLACES
from posref.ops.variation import steps
from posref.rotary import rope
from posref.vectors.models import F32
from tests import own
from tests.every import every

torch = pytest.importorskip("torch", reason="numbers of 16 bits are torch's")

f32 = np.float32
POSITIONS = np.array([0, 1, 2, 3, 17, 255, 257, 1000, 4095, 65535, 131073, 1000000, 1048575])
DIMS = (6, 10, 64, 80, 92, 128, 256, 512)
BASES = (100.0, 1e4, 150000.0, 5e5, 1e6, 1e7)


def exact_frequencies(dim, base):
    return np.exp(-2 * np.arange(dim // 2).astype(np.longdouble) / dim * np.log(np.longdouble(base)))


def transformers(dim, base):
    return f32(1) / (f32(base) ** (np.arange(0, dim, 2).astype(f32) / f32(dim)))


def exp_log_python(dim, base):
    return np.exp(np.arange(0, dim, 2).astype(f32) * f32(-np.log(base) / dim))


def exp_log_single(dim, base):
    return np.exp(-(np.arange(0, dim, 2).astype(f32) * np.log(f32(base))) / f32(dim))


def cast(dim, base):
    return rope.frequencies(dim, base).astype(f32)


def angles(frequencies):
    return POSITIONS[:, None].astype(f32) * frequencies


def iterative_angles(dim, base):
    ratio = f32(base) ** f32(-2 / dim)
    angle, rows = POSITIONS.astype(f32), []
    for _ in range(dim // 2):
        rows.append(angle)
        angle = angle * ratio
    return np.stack(rows, axis=-1)


def relative_error(angle, dim, base):
    true = POSITIONS[1:, None] * exact_frequencies(dim, base)
    return np.abs(angle[1:].astype(np.longdouble) - true) / true


@pytest.mark.parametrize("recipe", [transformers, exp_log_python, exp_log_single, cast])
def test_angles_stay_within_k_unit_roundoffs(recipe):
    worst = [
        (relative_error(angles(recipe(dim, base)), dim, base) / (F32 * growth(rope.frequencies(dim, base)))).max()
        for dim in DIMS
        for base in BASES
    ]
    assert max(worst) <= 1
    assert max(worst) >= 0.2


def test_iterative_angles_stay_within_their_own_bound_and_leave_the_direct_one():
    own, direct = [], []
    for dim in DIMS:
        for base in BASES:
            w = rope.frequencies(dim, base)
            error = relative_error(iterative_angles(dim, base), dim, base) / F32
            own.append((error / growth(w, "repeated")).max())
            direct.append((error / growth(w)).max())
    assert 0.2 <= max(own) <= 1
    assert max(direct) > 1


def given_angles(theta, factor):
    """theta stored in float32, and times the position; with a factor (linear scaling) that divides one or the other."""
    m, stored = POSITIONS[1:, None].astype(f32), theta.astype(f32)
    return [m * stored, m * (stored / f32(factor)), (m / f32(factor)) * stored]


@pytest.mark.parametrize("factor", [3.0, 8.0, 32.7])
def test_given_frequencies_stay_within_four_unit_roundoffs(factor):
    k, worst = growth(np.array([1.0, 1e-3, 1e-7]), "given"), []
    assert k.tolist() == [4, 4, 4]
    for dim in DIMS:
        theta = exact_frequencies(dim, 5e5)
        for angle, scale in zip(given_angles(theta, factor), (1, f32(factor), f32(factor)), strict=True):
            exact = POSITIONS[1:, None] * theta / np.longdouble(scale)
            worst.append((np.abs(angle.astype(np.longdouble) - exact) / exact).max() / F32)
    assert 1.5 <= max(worst) <= 4


def test_frequencies_from_float32_powers_leave_the_bound_of_given_ones():
    error = relative_error(angles(exp_log_single(128, 5e5)), 128, 5e5) / F32
    assert error.max() > 4
    assert (error <= growth(rope.frequencies(128, 5e5))).all()


def test_the_uniform_bound_would_accuse_correct_implementations():
    worst = max(
        (relative_error(angles(exp_log_single(dim, base)), dim, base) / (F32 * (np.log(base) + 4))).max()
        for dim in DIMS
        for base in BASES
    )
    assert worst > 1


def held(x, dtype):
    """Numbers as torch holds them in this dtype, in float32."""
    return torch.from_numpy(np.asarray(x, dtype=f32)).to(dtype).float().numpy()


def angles_of_autocast(positions, w, low, part):
    """Cosines and sines of positions and frequencies, of which a part is held in 16 bits."""
    chain = part.startswith("chain")
    p, w = (held(x, low) if chain or part == name else x for name, x in (("positions", positions), ("frequencies", w)))
    angle = np.asarray(p, dtype=f32)[..., None] * np.asarray(w, dtype=f32)
    angle = held(angle, low) if chain or part == "angles" else angle
    return [held(wave, low) if part.endswith("tables") else wave for wave in (np.cos(angle), np.sin(angle))]


def turned(x, cos, sin):
    a, b = np.split(x, 2, axis=-1)
    return np.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)


def inverse(width, base=10000.0):
    return (base ** (-2 * np.arange(width // 2) / width)).astype(f32)


def of_axes(waves, x, coordinates):
    axis, w = [0, 0, 1, 1, 1, 2, 2, 2], inverse(16)
    pairs = [waves(coordinates[:, a], w[t : t + 1]) for t, a in enumerate(axis)]
    return turned(x, *(np.concatenate(each, axis=-1) for each in zip(*pairs, strict=True)))


def of_indexer(waves, q, k, weights, query_positions, key_positions):
    q, k = (
        np.concatenate([turned(x[..., :4], *waves(p, inverse(4))), x[..., 4:]], axis=-1)
        for x, p in ((q, query_positions[:, None]), (k, key_positions))
    )
    return np.einsum("bhij,bih->bij", np.maximum(np.einsum("bhid,bjd->bhij", q, k), 0), weights).astype(f32)


def of_mae(waves, coordinates):
    columns, rows = (waves(coordinates[..., i], inverse(8)) for i in (1, 0))
    return np.concatenate([columns[1], columns[0], rows[1], rows[0]], axis=-1)


IN_16_BITS = [  # op, its settings, what makes its cosines and sines of positions and frequencies, and the part in 16 bits
    ("axes.rotate", {"dim": 16, "axis": [0, 0, 1, 1, 1, 2, 2, 2], "layout": "half"}, of_axes, "bf16_chain"),
    (
        "sinusoidal.encode",
        {"dim": 32, "layout": "half"},
        lambda waves, p: np.concatenate(waves(p, inverse(32))[::-1], axis=-1),
        "f16_chain_and_tables",
    ),
    ("sinusoidal_2d.encode", {"dim": 16, "convention": "mae"}, of_mae, "bf16_tables"),
    ("indexer.scores", {"scale": 1.0, "layout": "half"}, of_indexer, "f16_frequencies"),
]


@every(IN_16_BITS)
def test_angles_in_16_bits_are_named_wherever_an_op_makes_angles(name, settings, function, low):
    dtype, _, part = low.partition("_")
    held_in = {"bf16": torch.bfloat16, "f16": torch.float16}[dtype]
    few, right = (lambda p, w, part=part: angles_of_autocast(p, w, held_in, part) for part in (part, ""))
    report = check(lambda *given: function(few, *given), name, **settings)
    assert low in [finding.name for finding in report.diagnosis], report  # near 0 others give the same
    assert check(lambda *given: function(right, *given), name, **settings).ok


WHOLE_OFFSETS = {"nezha.attend"}  # whose offsets are whole numbers, of which rows are made


@every(own.OPS, name=lambda op: op.name)
def test_every_op_that_takes_cosines_of_positions_has_the_angles_in_16_bits(op):
    a = op.make(**implementation.example(op))
    waves = any({"cos", "sin"} & {*f.__code__.co_names} for f in (op.spec, *steps(op.spec)))
    if not waves or not {*PLACES} & {*a}:
        return
    known = ops.further(op, a)
    for name in ANGLES_IN_16_BITS.keys() & known.keys() if op.name not in WHOLE_OFFSETS else ():
        with np.errstate(invalid="ignore"):  # float16 ends at 65504
            assert known[name].wrong(op.spec, a).shape == np.shape(op.spec(**a)), name


def scaled(y, kept, top):
    peak = y.abs().amax(dim=-1, keepdim=True).clamp(min=1e-9) / top
    return kept(y / peak) * peak


FEW_BITS = {
    "fp8 (e4m3)": lambda y: y.to(torch.float8_e4m3fn).float(),
    "fp8 (e5m2)": lambda y: scaled(y, lambda part: part.to(torch.float8_e5m2).float(), 57344),
    "int8": lambda y: scaled(y, torch.round, 127),
}


@every(own.OPS, name=lambda op: op.name, parts=8)
def test_the_right_numbers_in_fewer_than_16_bits_are_named(op):
    a = op.make(**implementation.example(op))
    right = np.asarray(op.spec(**a))
    if (
        right.dtype.kind != "f" or right.ndim < 2 or not np.isfinite(right).all() or np.abs(right).max() > 448
    ):  # e4m3 ends there
        return
    for name, change in FEW_BITS.items():
        got, report = change(torch.from_numpy(np.float32(right))).double().numpy(), Report(op.name)
        if len(np.unique(got)) >= 32 and not judged(report, engine.Question(op, a, ("f32",)), got):
            assert f"the right one, rounded to {name}" in str(report), report
