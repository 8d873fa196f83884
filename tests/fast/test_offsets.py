"""What compiled offset matrices cannot do; the rest of their contract is in test_twins."""

import importlib

import numpy as np
import pytest

pytest.importorskip("numba", reason="needs posref[fast]")
fast = importlib.import_module("posref.fast.offsets")

B, AT = np.arange(12.0).reshape(2, 6), np.zeros((3, 4), int)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: fast.dense(B.astype(int), 3, 4), TypeError, "dense: by_offset would have dtype int64; .* float32 and float64"),
        (lambda: fast.gather(B, AT, 1), ValueError, "gather: offsets run from 0 to 0 and by_offset holds 6 entries for 1 to 6"),
        (lambda: fast.gather(B, AT + 6, 0), ValueError, "gather: offsets run from 6 to 6 .* 0 to 5"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=rf"^fast\.offsets\.{message}"):
        call()


def test_one_number_is_gathered():
    """A result of one cell is written, too."""
    out = np.full((1, 1), np.nan)
    assert fast.gather(np.array([4.0, 7.0]), np.array([[1]]), 0, out=out) is out
    assert out == 7
