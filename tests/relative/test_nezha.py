"""NEZHA's table against the formula in mpmath, in both conventions, and Shaw's attention with it against loops."""

import mpmath
import numpy as np
import pytest

from posref import offsets
from posref.absolute import sinusoidal
from posref.relative import nezha, shaw

K, DIM = 5, 6


def formula(index, dim):
    """sin and cos of index / 10000^(2t/dim), interleaved, in 40 digits."""
    with mpmath.workdps(40):
        angles = [mpmath.mpf(index) / mpmath.power(10000, mpmath.mpf(2 * t) / dim) for t in range(dim // 2)]
        return [float(f(a)) for a in angles for f in (mpmath.sin, mpmath.cos)]


@pytest.mark.parametrize(("convention", "first"), [("paper", -K), ("released", 0)])
def test_table_is_the_formula(convention, first):
    got = nezha.table(K, DIM, convention=convention)
    want = np.array([formula(first + r, DIM) for r in range(2 * K + 1)])
    # A frequency is off by 2 units of 2^-53 (exponent and power), an angle of at most 10 by 3, its sine by 1 more.
    assert np.abs(got - want).max() <= (3 * 10 + 2) * 2.0**-53
    assert got.dtype == np.float64


def test_conventions_differ():
    paper, released = (nezha.table(64, 64, convention=c) for c in ("paper", "released"))
    assert np.abs(paper - released).max() > 1
    assert paper[64].tolist() == [0.0, 1.0] * 32
    assert released[0].tolist() == [0.0, 1.0] * 32
    assert np.array_equal(paper[64:], released[:65])


def test_released_is_the_paper_turned_by_one_rotation():
    """a_released = M(k) a_paper for every row, so q . a_released = (M^T q) . a_paper."""
    paper, released = (nezha.table(K, DIM, convention=c) for c in ("paper", "released"))
    turn = sinusoidal.shift_matrix(K, sinusoidal.frequencies(DIM), layout="interleaved")
    # Two products and a sum of numbers of size 1, from tables that are off by up to 17 units of 2^-53 each.
    assert np.abs(paper @ turn.T - released).max() <= 64 * 2.0**-53
    assert np.abs(turn.T @ turn - np.eye(DIM)).max() <= 8 * 2.0**-53
    q = np.arange(1.0, DIM + 1)
    assert np.abs(released @ q - paper @ (turn.T @ q)).max() <= 64 * DIM * DIM * 2.0**-53


def test_paper_row_mirrors_its_negative():
    table = nezha.table(K, DIM, convention="paper")
    assert np.array_equal(table[::-1, 0::2], -table[:, 0::2])
    assert np.array_equal(table[::-1, 1::2], table[:, 1::2])


@pytest.mark.parametrize("convention", nezha.CONVENTIONS)
def test_encode_clips_and_equals_the_table(convention):
    table = nezha.table(K, DIM, convention=convention)
    steps = offsets.offsets(np.array([0, 48040]), np.array([0, 3, 9, 48041]))
    got = nezha.encode(steps, sinusoidal.frequencies(DIM), max_distance=K, convention=convention)
    assert got.shape == (2, 4, DIM)
    for i, j in np.ndindex(steps.shape):
        assert got[i, j].tolist() == table[min(max(steps[i, j], -K), K) + K].tolist()


@pytest.mark.parametrize("convention", nezha.CONVENTIONS)
def test_attend_is_the_definition(convention):
    rng = np.random.default_rng(0)
    q, k, v = rng.integers(-4, 5, (2, 3, 4, DIM)), rng.integers(-4, 5, (2, 3, 7, DIM)), rng.integers(-4, 5, (2, 3, 7, DIM))
    steps = offsets.offsets(np.arange(3, 7), np.arange(7))
    table = nezha.table(2, DIM, convention=convention)
    got = nezha.attend(q, k, v, table, steps, scale=0.25)
    want = np.zeros((2, 3, 4, DIM))
    for b, h, i in np.ndindex(2, 3, 4):
        a = [formula(min(max(j - i - 3, -2), 2) + (2 if convention == "released" else 0), DIM) for j in range(7)]
        weights = [mpmath.exp(mpmath.fdot(q[b, h, i].tolist(), k[b, h, j] + a[j]) / 4) for j in range(7)]
        for t in range(DIM):
            want[b, h, i, t] = mpmath.fdot(weights, [v[b, h, j, t] + a[j][t] for j in range(7)]) / mpmath.fsum(weights)
    # A score is a sum of 6 products of at most 4 and 5, times 1/4: off by at most 8 eps 30, and so is the logarithm of a
    # weight, on both sides of the quotient; the averages add 2 n + 5; |v + a| <= 5.
    assert np.abs(got - want).max() <= (2 * 8 * 30 + 2 * 7 + 5) * 2.0**-52 * 5


def test_attend_is_shaw_with_one_table():
    rng = np.random.default_rng(1)
    q, k, v = rng.normal(size=(3, 2, 5, DIM))
    table, steps = nezha.table(2, DIM, convention="released"), offsets.offsets(np.arange(5), np.arange(5))
    mask = np.tril(np.ones((5, 5), dtype=bool))
    got = nezha.attend(q, k, v, table, steps, scale=0.5, mask=mask)
    assert np.array_equal(got, shaw.attend(q, k, v, table, table, steps, scale=0.5, mask=mask))
    assert not np.allclose(got, nezha.attend(q, k, v, nezha.table(2, DIM, convention="paper"), steps, scale=0.5, mask=mask))


def test_presets_make_tables():
    for preset in nezha.PRESETS.values():
        assert nezha.table(preset["max_distance"], preset["dim"], convention=preset["convention"]).shape == (129, 64)


@pytest.mark.parametrize(
    ("max_distance", "dim", "convention", "error", "message"),
    [
        (2, 5, "paper", ValueError, "dim is 5, expected an even number"),
        (0, 4, "paper", ValueError, r"nezha\.table: max_distance is 0"),
        (2.5, 4, "paper", TypeError, r"nezha\.table: max_distance is 2\.5"),
        (2, 4, "code", ValueError, "convention is 'code', expected one of 'paper', 'released'"),
    ],
)
def test_table_rejects(max_distance, dim, convention, error, message):
    with pytest.raises(error, match=message):
        nezha.table(max_distance, dim, convention=convention)


def test_encode_rejects():
    with pytest.raises(TypeError, match=r"nezha\.encode: offsets is a int"):
        nezha.encode(1, np.array([1.0]), max_distance=1, convention="paper")
    with pytest.raises(ValueError, match=r"nezha\.encode: max_distance is 0"):
        nezha.encode(np.array([1]), np.array([1.0]), max_distance=0, convention="paper")
    with pytest.raises(ValueError, match=r"nezha\.encode: frequencies has shape"):
        nezha.encode(np.array([1]), np.array(1.0), max_distance=1, convention="paper")
