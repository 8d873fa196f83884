"""The first sign changes of RoPE's sums, certified for nine widths and bases; what does the certifying can fail."""

import pytest

from proofs.kit import Refuted
from proofs.mathematics import decay


@pytest.mark.slow
@pytest.mark.parametrize(("dim", "base"), decay.FIRST)
def test_first_sign_change(dim, base):
    decay.certify(dim, base)


def test_a_wrong_place_is_refuted(monkeypatch):
    for wrong in ((726, 724.09217), (725, 724.1), (725, 724.08)):
        monkeypatch.setitem(decay.FIRST, (64, 10**4), wrong)
        with pytest.raises(Refuted):
            decay.certify(64, 10**4)
