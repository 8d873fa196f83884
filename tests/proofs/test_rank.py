"""Batches of the arguments of a theorem: a function that counts its axes from the left is refuted."""

import itertools

import numpy as np
import pytest

from posref._contract import Array, Booleans, Numbers, contract
from proofs.kit import extremes, language, rank
from proofs.kit.verdicts import Refuted, Undecided

X = np.array([[1.0, 2.0], [4.0, 8.0]])


@contract
def right(x: Numbers[Array, "... n d"], w: Numbers[Array, "(...) n"]) -> Numbers[Array, "... n d"]:
    """Sums along the rows."""
    return np.cumsum(x * w[..., None], axis=-2)


@contract
def of_the_first_axis(x: Numbers[Array, "... n d"], w: Numbers[Array, "(...) n"]) -> Numbers[Array, "... n d"]:
    """Sums along axis 0."""
    return np.cumsum(x * w[..., None], axis=0)


@contract
def of_row_0(x: Numbers[Array, "... n d"], w: Numbers[Array, "(...) n"]) -> Numbers[Array, "... n d"]:
    """The weights of the first text for all."""
    return x * w.reshape(-1, w.shape[-1])[0][:, None]


@contract
def of_four_axes(x: Numbers[Array, "... n d"], w: Numbers[Array, "(...) n"]) -> Numbers[Array, "... n d"]:
    """Another sign where there are batches and heads."""
    return -x if x.ndim == 4 else x


@contract
def twice(x: Numbers[Array, "... n d"], w: Numbers[Array, "(...) n"]) -> Numbers[Array, "... n d"]:
    """All rows, and all rows again."""
    return np.concatenate([x, x], axis=-2)


@contract
def longer(x: Numbers[Array, "... n d"], w: Numbers[Array, "(...) n"]) -> Numbers[Array, "... n+1 d"]:
    """All rows, and all rows again."""
    return np.concatenate([x, x], axis=-2)


@contract
def of_the_largest(x: Numbers[Array, "... n d"], w: Numbers[Array, "(...) n"]) -> Numbers[Array, "... n d"]:
    """Less the largest number of the whole batch."""
    return x - x.max()


@contract
def of_two_axes(x: Numbers[Array, "... n d"], w: Numbers[Array, "(...) n"]) -> Numbers[Array, "... n d"]:
    """Another sign where there is no batch."""
    return x if x.ndim > 2 else -x


@contract
def of_as_many_axes(x: Numbers[Array, "... n d"], w: Numbers[Array, "(...) n"]) -> Numbers[Array, "... n d"]:
    """The axes of the weights counted as those of x."""
    return x * np.moveaxis(w, x.ndim - 2, -1)[..., None]


def test_the_shape_behind_the_arrow():
    given = {"x": X[:, :1], "w": np.ones(2)}
    assert rank.wrong_extents(right, given, right(**given)) == []
    assert rank.wrong_extents(twice, given, twice(**given)) == ["n is 2 in the arguments of twice and 4 in its result"]
    assert rank.wrong_extents(longer, given, longer(**given)) == ["n+1 is 3 in the arguments of longer and 4 in its result"]


def test_a_batch_of_a_right_function():
    assert rank.agrees(right, {"x": X, "w": np.array([1.0, 3.0])}) == 3


@pytest.mark.parametrize("function", [of_the_first_axis, of_row_0, of_four_axes, of_the_largest])
def test_a_function_that_counts_axes_from_the_left(function):
    with pytest.raises(Refuted, match=f"{function.__name__} of a batch"):
        rank.agrees(function, {"x": X, "w": np.array([1.0, 3.0])})


def test_rows_of_a_theorem_about_a_batch_are_taken_alone():
    with pytest.raises(Refuted, match="of_two_axes of a batch"):
        rank.agrees(of_two_axes, {"x": X[None], "w": np.array([1.0, 3.0])})


@contract
def summed(x: Numbers[Array, "... n d"]) -> Numbers[Array, "d"]:
    """The sum over rows and texts."""
    return x.sum(axis=tuple(range(x.ndim - 1)))


@contract
def averaged(x: Numbers[Array, "... n d"]) -> Numbers[Array, "d"]:
    """The sum over rows, and the mean over texts."""
    return x.sum(axis=-2).reshape(-1, x.shape[-1]).mean(axis=0)


@contract
def like_its_argument(x: Numbers[Array, "... d"]) -> Numbers[Array, "=x"]:
    """Sums along axis 0."""
    return np.cumsum(x, axis=0)


def test_a_result_without_leading_axes_is_the_sum_of_the_rows():
    assert rank.agrees(summed, {"x": X}) == 2
    for function, x in ((averaged, X), (like_its_argument, X[0])):
        with pytest.raises(Refuted, match=f"{function.__name__} of a batch"):
            rank.agrees(function, {"x": x})


def test_a_failure_that_no_contract_states_is_an_error():
    with pytest.raises(np.exceptions.AxisError):
        rank.agrees(of_as_many_axes, {"x": X, "w": np.array([1.0, 3.0])})


def test_fewer_leading_axes_get_axes_of_length_1():
    """Heads of x have no weights of their own."""
    assert rank.agrees(right, {"x": np.stack([X, -X, 3 * X]), "w": np.array([1.0, 3.0])}) == 4


def test_what_is_refused_is_not_compared():
    assert rank.agrees(right, {"x": X, "w": np.ones(3)}) == 0
    assert rank.agrees(np.add, {"x": X}) == 0


@contract
def masked(x: Numbers[Array, "... n"], mask: Booleans[Array, "(...) n"]) -> Numbers[Array, "... n"]:
    """0 times infinity is no number."""
    return np.exp(x) * mask


@contract
def masked_before(x: Numbers[Array, "... n"], mask: Booleans[Array, "(...) n"]) -> Numbers[Array, "... n"]:
    """What is hidden is 0 before exp sees it."""
    return np.exp(x * mask) * mask


def test_what_a_mask_hides_may_be_large():
    given = {"x": np.array([1.0, 2.0]), "mask": np.array([True, False])}
    assert extremes.agrees(masked_before, given) == 2
    with pytest.raises(Refuted, match=r"masked with x = 900.0 where the mask is False: \[2.71828183 +nan\], with 0 there"):
        extremes.agrees(masked, given)


class Asking:
    """Questions about leading axes; the symbolic run, at one rank, answers each as if there were none."""

    def of_five_axes(x):
        return -x if x.ndim == 5 else x

    def of_a_batch_of_three(x):
        return -x if x.shape[:-2] == (3,) else x

    def of_the_length_of_a_shape(x):
        return -x if len(x.shape) == 6 else x

    def of_the_sum_of_a_shape(x):
        return -x if sum(x.shape[:-2]) == 7 else x

    def of_the_rest_of_a_shape(x):
        *lead, _, _ = x.shape
        return -x if lead == [3] else x

    def of_one_of_two_names(x):
        lead, last = x.shape[:-1], x.shape[-1]
        return x * last if lead == (3, 3) else x

    def of_a_slice_of_the_shape(x):
        return -x if x.shape[-3:-2] == (3,) else x

    def of_the_length_of_a_slice(x):
        return x * (1 + len(x.shape[-5:]) // 5)

    def of_all_cells(x):
        return x * (1 + x.size // (x.shape[-1] * x.shape[-2]) // 9)

    def of_a_number_for_each_row(x):
        return x * (1 - np.ones(x.shape[:-2]).sum() // 9)

    def of_a_table_of_ranks(x):
        return x * (1, 1, 1, 1, 1, 2)[x.ndim]

    def of_a_product_with_the_rank(x):
        return x * (1 + x.ndim // 5)

    def of_a_turn_for_each_axis(x):
        for _ in range(x.ndim - 4):
            x = -x
        return x

    def of_the_largest_of_all_rows(x):
        return x / x.max()


@pytest.mark.parametrize("function", [f for name, f in vars(Asking).items() if name.startswith("of_")])
def test_a_question_about_leading_axes_is_refused(function):
    with pytest.raises(Undecided, match="which asks about leading axes"):
        language.check(function)


def _signs(y):
    return np.concatenate([y[:7], -y[7:]], axis=-2)


def with_heads_of(y):
    return np.concatenate([y[:7], -y[7:]], axis=-2)


class Front:
    """What goes along the first axis: of a text its tokens, of a batch its texts."""

    @contract
    def of_a_part(x: Numbers[Array, "... n"]) -> Numbers[Array, "... n"]:
        """A sign from row 7 on."""
        y = 1 * x
        return np.concatenate([y[:7], -y[7:]], axis=0)

    @contract
    def of_a_length(x: Numbers[Array, "... n"]) -> Numbers[Array, "... n"]:
        """A sign if there are 7 rows."""
        return -x if len(x) == 7 else x

    @contract
    def of_turns(x: Numbers[Array, "... n"]) -> Numbers[Array, "... n"]:
        """A sign in row 7."""
        return np.stack([-row if i == 7 else row for i, row in enumerate(x)], axis=0)

    @contract
    def of_rows(x: Numbers[Array, "... n"]) -> Numbers[Array, "... n"]:
        """Each row."""
        return np.stack([row for row in x], axis=0)

    @contract
    def of_a_part_in_a_helper(x: Numbers[Array, "... n"]) -> Numbers[Array, "... n"]:
        """A sign from row 7 on."""
        return _signs(1 * x)

    @contract
    def of_a_part_in_a_helper_of_a_listed_name(x: Numbers[Array, "... n"]) -> Numbers[Array, "... n"]:
        """A sign from row 7 on."""
        return with_heads_of(1 * x)

    @contract
    def of_a_list(x: Numbers[Array, "... n"]) -> Numbers[Array, "... n"]:
        """A sign from row 7 on."""
        rows = [*x]
        return np.stack([*rows[:7], *[-r for r in rows[7:]]], axis=0)

    @contract
    def of_an_unpacked_row(x: Numbers[Array, "... n"]) -> Numbers[Array, "... n"]:
        """Twice the first row."""
        first, *rest = x
        return np.stack([2 * first, *rest], axis=0)

    @contract
    def of_an_iterator(x: Numbers[Array, "... n"]) -> Numbers[Array, "... n"]:
        """The first seven rows."""
        return np.stack([*itertools.islice(x, 7)], axis=0)

    @contract
    def of_axes_from_the_front(x: Numbers[Array, "... n"]) -> Numbers[Array, "... n"]:
        """A sign from row 7 on."""
        y = np.swapaxes(1 * x, 0, -1)
        return np.swapaxes(np.concatenate([y[..., :7], -y[..., 7:]], axis=-1), 0, -1)

    @contract
    def of_the_result_of_a_method(x: Numbers[Array, "... n"]) -> Numbers[Array, "... n"]:
        """A sign from row 7 on."""
        y = x.astype(np.float64)
        return np.stack([y[0], -y[1]], axis=-2)

    @contract
    def of_a_transpose(x: Numbers[Array, "... n"]) -> Numbers[Array, "... n"]:
        """A sign from row 7 on."""
        y = x.T
        return np.concatenate([y[..., :7], -y[..., 7:]], axis=-1).T


@pytest.mark.parametrize("function", [f for name, f in vars(Front).items() if name.startswith("of_")])
def test_an_array_with_leading_axes_is_indexed_from_the_back(function):
    with pytest.raises(Undecided, match="which asks about leading axes"):
        language.check(function)


def handing_on(x, w):
    lead = np.broadcast_shapes(x.shape[:-2], w.shape[:-1])
    return np.broadcast_to(x, (*lead, *x.shape[-2:])).sum(axis=tuple(range(x.ndim - 2)))


def test_leading_axes_may_be_handed_on():
    language.check(handing_on)
