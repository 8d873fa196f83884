"""The model of the kit against numpy: right code agrees at every size and dtype, code that only numbers can tell does not."""

import itertools

import numpy as np
import pytest

from proofs import attention as about_attention
from proofs.kit import Refuted, entries, numbers, prove_equal, size, sized, theorem
from proofs.rotary import rope as about_rope

N = size("n")


@pytest.mark.parametrize("t", [about_rope.pinned, about_attention.pinned_scores, about_attention.blind_to_a_row_shift])
def test_shipped_functions_are_what_the_model_says(t):
    assert numbers.check(t) > 0


def plain(x):
    return x * 3


WRONG = {
    "a cast": lambda x: (x * 3).astype(np.float16),
    "a write": lambda x: np.add(x, 2 * x, out=x),
    "a cut": lambda x: np.trunc(x * 3),
    "a narrow integer": lambda x: (x * 100).astype(np.int8) * 0.03,
    "a size": lambda x: x if x.shape == (80,) else x * 3,
}


@pytest.mark.parametrize("name", WRONG)
def test_numbers_alone_tell(name):
    """The model is right, the code that runs is not: as if the kit did not see it."""
    with pytest.raises(Refuted):
        every_size(WRONG[name], 3 * sized("x", N))


def every_size(function, model):
    for extents, dtype in itertools.product(numbers.SIZES, numbers.DTYPES):
        numbers._agree(function, {"x": sized("x", N)}, model, None, extents, dtype)


def test_shipped_code_is_run_at_every_size():
    @theorem(of=[plain], sizes="all n")
    def holds():
        prove_equal(*entries(None, plain(sized("x", N)), 3 * sized("x", N)))

    assert numbers.check(holds) == 30  # ten assignments of sizes, three dtypes
