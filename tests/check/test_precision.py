"""The derived bounds hold for every float32 recipe, and none is so wide that it says nothing."""

import numpy as np
import pytest

from posref.check.ranged import growth
from posref.rotary import rope
from posref.vectors.models import F32

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
