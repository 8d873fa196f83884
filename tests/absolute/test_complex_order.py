"""Complex Order against scalar waves, RoPE as its special case, and every refusal."""

import numpy as np
import pytest

from posref.absolute import complex_order

RNG = np.random.default_rng(0)


def waves(shape):
    return RNG.uniform(0.5, 2, shape), RNG.uniform(-1, 1, shape), RNG.uniform(-np.pi, np.pi, shape)


def test_scores_of_reals_and_integers():
    assert complex_order.scores(np.array([[1, 2]]), np.array([[3, 4]])).tolist() == [[11]]


def test_the_released_code_has_no_phase():
    amplitude, frequency, _ = waves((3, 2))
    g = complex_order.encode(np.array([1, 2, 0]), amplitude, frequency, np.zeros_like(frequency))
    assert np.array_equal(g[2], amplitude[2].astype(complex))


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
