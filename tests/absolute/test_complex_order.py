"""Complex Order against scalar waves, RoPE as its special case, and every refusal."""

import cmath

import mpmath
import numpy as np
import pytest

from posref.absolute import complex_order
from posref.rotary import rope

RNG = np.random.default_rng(0)
EPS = np.finfo(float).eps


def waves(shape):
    return RNG.uniform(0.5, 2, shape), RNG.uniform(-1, 1, shape), RNG.uniform(-np.pi, np.pi, shape)


def test_encode_is_a_wave_in_every_feature():
    amplitude, frequency, phase = waves((2, 3, 4))
    positions = np.array([[0, 1, 2], [40, 7, 7]])
    g = complex_order.encode(positions, amplitude, frequency, phase)
    assert g.shape == (2, 3, 4)
    for ix in np.ndindex(2, 3, 4):
        m = int(positions[ix[:2]])
        with mpmath.workdps(30):
            z = amplitude[ix] * mpmath.expj(mpmath.mpf(frequency[ix]) * m + mpmath.mpf(phase[ix]))
        # The angle is rounded twice, the exponential and the product once each in both parts.
        bound = amplitude[ix] * (abs(frequency[ix]) * m + np.pi + 4) * EPS
        assert abs(g[ix] - complex(z)) <= bound


def test_going_on_by_n_is_one_factor_wherever_one_starts():
    amplitude, frequency, phase = waves(5)
    m = np.arange(6)
    g = complex_order.encode(m, amplitude, frequency, phase)
    further = complex_order.encode(m + 3, amplitude, frequency, phase)
    factor = [cmath.exp(3j * w) for w in frequency]
    assert np.abs(further - g * factor).max() <= 2 * (8 + np.pi + 8) * EPS


def test_rope_is_the_case_of_shared_frequencies():
    x = RNG.normal(size=(6, 8))
    positions = np.arange(6) * 5
    frequencies = rope.frequencies(8)
    pairs = x[:, 0::2] + 1j * x[:, 1::2]
    g = complex_order.encode(positions, np.abs(pairs), frequencies, np.angle(pairs))
    cos, sin = rope.tables(positions, frequencies)
    turned = rope.rotate(x, cos, sin, layout="interleaved")
    size = np.abs(pairs).max()
    bound = size * (25 + np.pi + 6) * EPS
    assert np.abs(g - (turned[:, 0::2] + 1j * turned[:, 1::2])).max() <= bound
    # A score adds 8 products of at most size^2, each off by both factors' errors, and rounds as often.
    assert np.abs(complex_order.scores(g, g) - turned @ turned.T).max() <= 8 * size * (2 * bound + size * 8 * EPS)


def test_scores_are_real_parts_of_conjugate_products():
    q, k = (RNG.normal(size=(2, n, 3)) + 1j * RNG.normal(size=(2, n, 3)) for n in (4, 5))
    s = complex_order.scores(q, k)
    assert s.shape == (2, 4, 5)
    assert (s.imag == 0).all()
    for b, i, j in np.ndindex(2, 4, 5):
        terms = [a.real * c.real + a.imag * c.imag for a, c in zip(q[b, i].tolist(), k[b, j].tolist(), strict=True)]
        assert abs(s[b, i, j].real - sum(terms)) <= 12 * EPS * np.abs(q[b, i]) @ np.abs(k[b, j])


def test_scores_of_reals_and_integers():
    assert complex_order.scores(np.array([[1, 2]]), np.array([[3, 4]])).tolist() == [[11]]


def test_the_released_code_has_no_phase():
    amplitude, frequency, _ = waves((3, 2))
    g = complex_order.encode(np.array([1, 2, 0]), amplitude, frequency, np.zeros_like(frequency))
    assert np.array_equal(g[2], amplitude[2].astype(complex))


def test_released_frequencies():
    w = complex_order.released_frequencies(np.array([[0, 1], [5, 29999]]), 6)
    assert w.shape == (2, 2, 6)
    for ix in np.ndindex(2, 2, 6):
        word = (0, 1, 5, 29999)[2 * ix[0] + ix[1]]
        exact = word * mpmath.power(10000, -mpmath.mpf(2 * ix[2]) / 6)
        # The exponent, at most 1.67, is rounded: its error times ln 10000 = 9.2; the power and the product are rounded too.
        assert abs(w[ix] - exact) <= (1.67 * 9.3 + 2) * EPS * exact


def test_positions_shared_by_a_batch_of_words():
    amplitude, frequency, phase = waves((4, 3, 2))
    shared = complex_order.encode(np.arange(3), amplitude, frequency, phase[:1])
    spread = complex_order.encode(np.tile(np.arange(3), (4, 1)), amplitude, frequency, np.tile(phase[:1], (4, 1, 1)))
    assert np.array_equal(shared, spread)


def test_dtypes_follow_promotion():
    single = np.ones(2, dtype=np.float32)
    assert complex_order.encode(np.arange(3, dtype=np.float32), single, single, single).dtype == np.complex64
    assert complex_order.encode(np.arange(3), np.array([2]), np.array([1]), np.array([0])).dtype == np.complex128


ONE = np.ones(2)


@pytest.mark.parametrize(
    ("positions", "amplitude", "frequency", "phase", "error", "message"),
    [
        ([0], ONE, ONE, ONE, TypeError, "positions is a list"),
        (np.arange(3), [1.0], ONE, ONE, TypeError, "amplitude is a list"),
        (np.arange(3), ONE, ONE * 1j, ONE, TypeError, "frequency has dtype complex128, expected numbers"),
        (np.arange(3), ONE, np.ones(3), ONE, ValueError, r"frequency has shape \(3,\), .* expected d = 2"),
        (np.arange(3), ONE, ONE, np.ones(1), ValueError, r"phase has shape \(1,\), .* expected d = 2"),
        (
            np.arange(3),
            np.ones((4, 2)),
            ONE,
            ONE,
            ValueError,
            r"positions has shape \(3,\) and amplitude \(4, 2\); .* must be equal or 1",
        ),
        (np.arange(3), ONE, ONE, np.ones((2, 4, 2)), ValueError, r"positions has shape \(3,\) and phase \(2, 4, 2\)"),
        (
            np.arange(3),
            np.ones((2, 3, 2)),
            np.ones((5, 3, 2)),
            ONE,
            ValueError,
            r"amplitude has shape \(2, 3, 2\) and frequency \(5, 3, 2\)",
        ),
    ],
)
def test_encode_refuses(positions, amplitude, frequency, phase, error, message):
    with pytest.raises(error, match=r"complex_order\.encode: " + message):
        complex_order.encode(positions, amplitude, frequency, phase)


def test_one_position_and_many_words():
    many = complex_order.encode(np.array([5]), np.ones((3, 2)), ONE, ONE)
    assert many.shape == (3, 2)
    assert (many == complex_order.encode(np.array(5), ONE / ONE, ONE, ONE)).all()


def test_scores_refuse():
    with pytest.raises(TypeError, match=r"complex_order\.scores: q is a list"):
        complex_order.scores([[1j]], np.ones((1, 1)))
    with pytest.raises(ValueError, match=r"k has shape \(3,\), expected at least 2 axes"):
        complex_order.scores(np.ones((1, 3)), np.ones(3))
    with pytest.raises(ValueError, match=r"k has shape \(1, 2\), .* expected d = 3 .* since q has shape \(1, 3\)"):
        complex_order.scores(np.ones((1, 3)), np.ones((1, 2)))
    with pytest.raises(ValueError, match=r"q has shape \(2, 1, 3\) and k \(4, 1, 3\)"):
        complex_order.scores(np.ones((2, 1, 3)), np.ones((4, 1, 3)))


def test_released_frequencies_refuse():
    with pytest.raises(TypeError, match="words has dtype float64, expected integers"):
        complex_order.released_frequencies(np.ones(2), 4)
    with pytest.raises(TypeError, match="words is a list"):
        complex_order.released_frequencies([1], 4)
    with pytest.raises(ValueError, match="dim is 0, expected an integer of at least 1"):
        complex_order.released_frequencies(np.array([1]), 0)
    with pytest.raises(TypeError, match=r"dim is 4\.0, expected an integer"):
        complex_order.released_frequencies(np.array([1]), 4.0)
