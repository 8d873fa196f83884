"""The sinusoid against many digits, the printed formula and known numbers."""

import numpy as np

from posref.absolute import sinusoidal

EPS = np.finfo(float).eps


def test_known_numbers_at_512():
    paper, code = (sinusoidal.frequencies(512, divisor=divisor) for divisor in sinusoidal.DIVISORS)
    assert f"{paper[-1]:.5e} {paper[1]:.7f}" == "1.03663e-04 0.9646616"
    assert f"{code[-1]:.5e} {code[1]:.7f}" == "1.00000e-04 0.9645255"


def test_dtypes_follow_promotion():
    w = sinusoidal.frequencies(4)
    assert sinusoidal.encode(np.arange(3, dtype=np.uint8), w, layout="half").dtype == np.float64
    single = sinusoidal.encode(np.arange(3, dtype=np.float32), w.astype(np.float32), layout="half")
    assert single.dtype == np.float32
    assert sinusoidal.encode(np.arange(3), np.array([1, 2]), layout="half").dtype == np.float64
    assert sinusoidal.shift_matrix(1, np.array([1]), layout="half").dtype == np.float64


def test_positions_need_not_be_integers():
    p = sinusoidal.encode(np.array([0.5]), np.array([np.pi]), layout="half")
    assert np.abs(p - [[1, 0]]).max() <= EPS
