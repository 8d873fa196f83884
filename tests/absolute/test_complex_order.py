"""Complex Order: what the released code leaves out, positions that words share."""

import numpy as np

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


ONE = np.ones(2)


def test_one_position_and_many_words():
    many = complex_order.encode(np.array([5]), np.ones((3, 2)), ONE, ONE)
    assert many.shape == (3, 2)
    assert (many == complex_order.encode(np.array(5), ONE / ONE, ONE, ONE)).all()
