import numpy as np
import pytest

from posref.rotary import rope, value


def test_keys_of_another_number_need_positions():
    q, k = np.ones((4, 6)), np.ones((7, 6))
    with pytest.raises(ValueError, match=r"value.attend: q has 4 positions and k has 7; pass key_positions= for the keys"):
        value.attend(q, k, k, np.arange(4), rope.frequencies(6), layout="half", scale=1.0, undo=True)
