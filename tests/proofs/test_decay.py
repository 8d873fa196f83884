"""The first sign changes of RoPE's sums, certified for nine widths and bases; what does the certifying can fail."""

from fractions import Fraction

import mpmath
import pytest

from proofs.kit import Refuted
from proofs.mathematics import decay


@pytest.mark.slow
@pytest.mark.parametrize(("dim", "base"), decay.FIRST)
def test_first_sign_change(dim, base):
    decay.certify(dim, base)


def test_sums_are_within_their_slack():
    """The integers of a walk against the sum itself with 300 bits: within the error that decides signs, and not by much."""
    walk, steps = decay.Walk(64, 10**4), 300
    point = walk.start()
    for _ in range(steps):
        point = walk.turned(point, Fraction(1))
    with mpmath.workprec(300):
        exact = mpmath.fsum(mpmath.cos(steps * mpmath.mpf(10**4) ** (-mpmath.mpf(2 * t) / 64)) for t in range(32))
        off = abs(exact * 2**decay.BITS - int(point[0].sum()))
    assert 1 < off < walk.slack(steps)


def test_a_wrong_place_is_refuted(monkeypatch):
    for wrong in ((726, 724.09217), (725, 724.0922), (725, 724.09215)):
        monkeypatch.setitem(decay.FIRST, (64, 10**4), wrong)
        with pytest.raises(Refuted):
            decay.certify(64, 10**4)
