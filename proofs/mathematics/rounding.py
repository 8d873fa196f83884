"""Rounding: how errors of frequencies and products change an angle, and how wrong angles change a rotated score."""

import numpy as np

from posref import precision
from posref.rotary import rope
from proofs.kit import *

H = size("h")


def turned(x, angle):
    return rope.rotate(x, np.cos(angle), np.sin(angle), layout="half")


@theorem(of=[rope.rotate], sizes="all d")
def differences_of_errors():
    """Angles m w + e and n w + f give the score of the angles 0 and (n - m) w + (f - e): only the difference of what two angles
    are off by is seen."""
    q, k, w = sized("q", 1, 2 * H), sized("k", 1, 2 * H), sized("w", H)
    e, f, m, n = sized("e", H), sized("f", H), symbol("m"), symbol("n")
    with summing("half"):
        off = (turned(q, m * w + e) * turned(k, n * w + f)).sum(axis=-1)
        prove_equal([off.at(0)], [(q * turned(k, (n - m) * w + (f - e))).sum(axis=-1).at(0)])


@differences_of_errors.claim("A wrong frequency is still a relative encoding; angles rounded one by one are not.")
def rounded_angles_are_relative():
    """Rounding does not touch translation invariance: the score hangs on n - m."""
    q, k, w, e = sized("q", 1, 2 * H), sized("k", 1, 2 * H), sized("w", H), sized("e", H)
    m, n = symbol("m"), symbol("n")
    with summing("half"):
        off = (turned(q, m * w + e) * turned(k, n * w)).sum(axis=-1)
        prove_equal([off.at(0)], [(q * turned(k, (n - m) * w)).sum(axis=-1).at(0)])


REACH = 1 << 12


@example(of=[rope.frequencies], sizes="d = 16, base 10000, float32")
def no_angle_is_off_by_more():
    """|fl(m w') - m w| <= L |w' - w| + half a spacing at L w' for all pairs and all m <= L = 4096; some m comes
    within 1.1 of it."""
    exact = rope.frequencies(16, 10000.0)
    stored = exact.astype(np.float32).astype(np.float64)
    m = np.arange(1, REACH + 1)[:, None]
    off = abs((m * stored).astype(np.float32).astype(np.float64) - m * exact).max(axis=0)
    most = REACH * abs(stored - exact) + np.spacing((REACH * stored).astype(np.float32)) / 2
    prove_that((off <= most).all(), f"{off} <= {most}")
    bound, off = precision.phase_of(stored, (exact, 0 * exact), REACH, bits=24, position_bits=24), off.max()
    prove_that(off <= bound <= 1.1 * off, f"{off:.3g} <= {bound:.3g}, and nearly equal")


@no_angle_is_off_by_more.control
def the_rounding_of_the_table_alone():
    """The frequency's own rounding is all: |fl(m w') - m w| <= L |w' - w|."""
    exact = rope.frequencies(16, 10000.0)
    stored = exact.astype(np.float32).astype(np.float64)
    m = np.arange(1, REACH + 1)[:, None]
    off = abs((m * stored).astype(np.float32).astype(np.float64) - m * exact)
    said = REACH * abs(stored - exact).max()
    prove_that(
        off.max() <= said, counterexample=f"L = {REACH}: an angle is off by {off.max():.3g}, expected at most {said:.3g}"
    )
