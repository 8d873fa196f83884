"""What the state systems share, on arrays that hold their own places."""

import numpy as np

from posref.state._memory import in_chunks


def test_chunks_are_joined_along_the_tokens():
    x = np.arange(20).reshape(2, 5, 2)
    output, state = in_chunks(lambda part, state: (part, state + part.shape[-2]), 2, 0, x)
    np.testing.assert_array_equal(output, x)
    assert state == 5
