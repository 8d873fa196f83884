"""ALiBi: a slope that is NaN."""

import numpy as np

from posref.relative import alibi


def test_a_slope_that_is_no_number_shows_in_every_entry():
    positions = np.arange(3)
    for form in alibi.FORMS:
        first, second = alibi.bias(positions, positions, np.array([np.nan, 1.0]), form=form)
        assert np.isnan(first).all()
        assert np.isfinite(second).all()
