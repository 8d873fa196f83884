"""xPos: decay. Numbers of the released module are in tests/test_spot_values.py."""

import numpy as np

from posref.rotary import rope, xpos


def test_scores_decay_with_the_offset():
    """With aligned pairs the score of a slow pair falls for keys in the past, and grows for keys to come."""
    x, m = np.ones((1, 8)), np.array([0, -512, 512])
    at = [*rope.tables(m, np.zeros(4)), xpos.scales(m, 8, center=0)]
    k = xpos.rotate(np.ones((3, 8)), *at, layout="half", side="key")
    now, past, future = (x @ k.T)[0]
    assert past < now < future
