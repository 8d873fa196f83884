import itertools

import numpy as np
import pytest

from posref.rotary import layouts, rope

BOTH = [("interleaved", "half"), ("half", "interleaved")]
TO_HALF = {"source": "interleaved", "target": "half"}


def test_order_of_features_for_a_head_of_8():
    # half: first members 0, 2, 4, 6 of the adjacent pairs, then second members; the other way feature i + 4 follows feature i
    assert layouts.convert(np.arange(8), source="interleaved", target="half").tolist() == [0, 2, 4, 6, 1, 3, 5, 7]
    assert layouts.convert(np.arange(8), source="half", target="interleaved").tolist() == [0, 4, 1, 5, 2, 6, 3, 7]


@pytest.mark.parametrize("dim", [2, 4, 6, 64, 92])
def test_order_by_the_definition_of_the_pairs(dim):
    half, interleaved = dim // 2, np.empty(dim, dtype=int)
    for t in range(half):
        interleaved[2 * t], interleaved[2 * t + 1] = t, t + half
    assert layouts.convert(np.arange(dim), source="half", target="interleaved").tolist() == interleaved.tolist()
    back = layouts.convert(interleaved, source="interleaved", target="half")
    assert back.tolist() == list(range(dim))


@pytest.mark.parametrize(("source", "target"), [*BOTH, ("half", "half"), ("interleaved", "interleaved")])
@pytest.mark.parametrize("rotary_dim", [None, 2, 6, 10])
def test_conversion_is_undone_by_the_opposite_one(source, target, rotary_dim):
    x = np.random.default_rng(0).standard_normal((2, 3, 10))
    there = layouts.convert(x, source=source, target=target, rotary_dim=rotary_dim)
    back = layouts.convert(there, source=target, target=source, rotary_dim=rotary_dim)
    np.testing.assert_array_equal(back, x)
    np.testing.assert_array_equal(np.sort(there), np.sort(x))
    np.testing.assert_array_equal(there[..., rotary_dim or 10 :], x[..., rotary_dim or 10 :])
    moved = source != target and rotary_dim != 2  # one pair is the same pair in both layouts
    assert (there != x).any() == moved


@pytest.mark.parametrize(("source", "target"), BOTH)
@pytest.mark.parametrize("rotary_dim", [None, 6])
def test_rotation_commutes_with_conversion_to_the_bit(source, target, rotary_dim):
    x = np.random.default_rng(1).standard_normal((2, 3, 5, 8))
    tables = rope.tables(np.array([0, 1, 48040, 3, 131071]), rope.frequencies(rotary_dim or 8))
    first = layouts.convert(
        rope.rotate(x, *tables, layout=source, rotary_dim=rotary_dim), source=source, target=target, rotary_dim=rotary_dim
    )
    converted = layouts.convert(x, source=source, target=target, rotary_dim=rotary_dim)
    np.testing.assert_array_equal(rope.rotate(converted, *tables, layout=target, rotary_dim=rotary_dim), first)


def test_third_layout_reads_interleaved_and_writes_half():
    x, tables = np.array([1.0, 2.0, 3.0, 4.0]), rope.tables(np.array(1), rope.frequencies(4))
    y = rope.rotate(layouts.convert(x, **TO_HALF), *tables, layout="half")
    np.testing.assert_allclose(y, [-1.142639664, 2.959850668, 1.922075597, 4.029799502], atol=5e-10)


def project(x, weight, bias, heads):
    """Rows of one token after another, head by head: (heads, n, head_dim)."""
    n, head_dim = len(x), weight.shape[0] // heads
    out = np.zeros((heads, n, head_dim))
    for h, i, r in itertools.product(range(heads), range(n), range(head_dim)):
        out[h, i, r] = weight[h * head_dim + r] @ x[i] + bias[h * head_dim + r]
    return out


@pytest.mark.parametrize(("source", "target"), BOTH)
@pytest.mark.parametrize("rotary_dim", [8, 6])
def test_converted_weights_give_the_same_scores(source, target, rotary_dim):
    # grouped queries: 4 heads of q, 2 of k; weights and biases of both permuted, each with its own number of heads
    rng = np.random.default_rng(2)
    d_model, head_dim, n = 7, 8, 5
    x = rng.standard_normal((n, d_model))
    tables = rope.tables(np.array([0, 3, 4097, 11, 5]), rope.frequencies(rotary_dim))
    weights = {h: (rng.standard_normal((h * head_dim, d_model)), rng.standard_normal(h * head_dim)) for h in (4, 2)}

    def rotated(heads, layout, change):
        weight, bias = weights[heads]
        if change:
            weight, bias = (
                layouts.permute_projection(w, heads=heads, rotary_dim=rotary_dim, source=source, target=target)
                for w in (weight, bias)
            )
        return rope.rotate(project(x, weight, bias, heads), *tables, layout=layout, rotary_dim=rotary_dim)

    def scores(layout, change):
        q, k = rotated(4, layout, change), np.repeat(rotated(2, layout, change), 2, axis=0)
        return np.einsum("hid,hjd->hij", q, k)

    before, after = scores(source, False), scores(target, True)
    # 8 products of numbers below 30, summed in another order
    np.testing.assert_allclose(after, before, rtol=0, atol=8 * 900 * 8 * 2.0**-53)
    assert not np.allclose(rotated(4, target, True), rotated(4, source, False), atol=0.1)  # the vectors are permuted
    # permuted weights with the old layout: right at offset 0 for token 0 alone, which position 0 leaves as it is
    forgotten = scores(source, True)
    np.testing.assert_allclose(forgotten[:, 0, 0], before[:, 0, 0], rtol=0, atol=8 * 900 * 8 * 2.0**-53)
    assert not np.allclose(forgotten[:, 1:, 0], before[:, 1:, 0], atol=0.1)


def test_wrong_number_of_heads_is_seen_by_rotary_dim():
    weight = np.zeros((2 * 8, 3))  # k with 2 heads of 8
    message = r"layouts.permute_projection: rotary_dim is 8 and each of 4 heads has 4; .* k of grouped queries has fewer heads"
    with pytest.raises(ValueError, match=message):
        layouts.permute_projection(weight, heads=4, rotary_dim=8, **TO_HALF)


@pytest.mark.parametrize(("heads", "head_dim"), [(1, 8), (3, 8), (2, 64)])
def test_reorder_of_the_llama_converter(heads, head_dim):
    # transformers' convert_llama_weights_to_hf.py views the rows of a head as (pairs, members) and swaps the two axes
    weight = np.random.default_rng(3).standard_normal((heads * head_dim, 5))
    rows = [h * head_dim + 2 * pair + member for h in range(heads) for member in range(2) for pair in range(head_dim // 2)]
    ours = layouts.permute_projection(weight, heads=heads, rotary_dim=head_dim, **TO_HALF)
    np.testing.assert_array_equal(ours, weight[rows])


def test_rows_of_the_tail_stay_in_every_head():
    ours = layouts.permute_projection(np.arange(16), heads=2, rotary_dim=6, **TO_HALF)
    assert ours.tolist() == [0, 2, 4, 1, 3, 5, 6, 7, 8, 10, 12, 9, 11, 13, 14, 15]


@pytest.mark.parametrize("shape", [(24,), (24, 5), (24, 5, 2)])
@pytest.mark.parametrize("rotary_dim", [8, 4])
def test_projection_is_undone_by_the_opposite_one(shape, rotary_dim):
    weight = np.arange(np.prod(shape)).reshape(shape)
    there = layouts.permute_projection(weight, heads=3, rotary_dim=rotary_dim, source="half", target="interleaved")
    assert (there != weight).any()
    np.testing.assert_array_equal(layouts.permute_projection(there, heads=3, rotary_dim=rotary_dim, **TO_HALF), weight)


def test_heads_of_one_pair_cannot_change():
    weight = np.arange(12.0).reshape(6, 2)
    np.testing.assert_array_equal(layouts.permute_projection(weight, heads=3, rotary_dim=2, **TO_HALF), weight)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.uint16, np.int8])
def test_values_keep_their_bits_and_type(dtype):
    weight = np.arange(16).astype(dtype)[:, None]
    ours = layouts.permute_projection(weight, heads=2, rotary_dim=8, **TO_HALF)
    assert ours.dtype == dtype
    assert ours[:, 0].tolist() == [0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15]
    assert layouts.convert(weight[:, 0], **TO_HALF).dtype == dtype


def test_normalization_gains_permute_like_a_bias():
    # RMS normalization of a head of q with one gain a feature, then rotation
    rng = np.random.default_rng(4)
    q, gain = rng.standard_normal((5, 8)), rng.uniform(1, 2, 8)
    tables = rope.tables(np.arange(5), rope.frequencies(8))

    def normalized(x, g):
        return x / np.sqrt((x**2).mean(axis=-1, keepdims=True)) * g

    before = layouts.convert(rope.rotate(normalized(q, gain), *tables, layout="interleaved"), **TO_HALF)
    new_gain = layouts.permute_projection(gain, heads=1, rotary_dim=8, **TO_HALF)
    after = rope.rotate(normalized(layouts.convert(q, **TO_HALF), new_gain), *tables, layout="half")
    np.testing.assert_allclose(after, before, rtol=0, atol=64 * 2.0**-53)  # the mean may be summed in another order
    unchanged = rope.rotate(normalized(layouts.convert(q, **TO_HALF), gain), *tables, layout="half")
    assert not np.allclose(unchanged, before, atol=0.1)


def test_symbols_pass_through():
    names = np.array(list("abcdefgh"), dtype=object)
    assert "".join(layouts.convert(names, **TO_HALF)) == "acegbdfh"
    assert "".join(layouts.permute_projection(names, heads=2, rotary_dim=4, **TO_HALF)) == "acbdegfh"


def test_arguments_are_left_alone_and_not_aliased():
    weight = np.arange(8.0)
    weight.flags.writeable = False
    for source, target in itertools.product(["interleaved", "half"], repeat=2):
        ours = layouts.permute_projection(weight, heads=1, rotary_dim=8, source=source, target=target)
        assert not np.shares_memory(ours, weight)


# -- errors


def test_layouts_are_named_and_have_no_default():
    with pytest.raises(TypeError, match="source"):
        layouts.convert(np.arange(4))
    with pytest.raises(ValueError, match=r"layouts.convert: source is 'neox', expected one of 'interleaved', 'half'"):
        layouts.convert(np.arange(4), source="neox", target="half")
    with pytest.raises(ValueError, match=r"layouts.convert: target is 'gptj', expected one of 'interleaved', 'half'"):
        layouts.convert(np.arange(4), source="half", target="gptj")
    with pytest.raises(TypeError, match="rotary_dim"):
        layouts.permute_projection(np.arange(4), heads=1, **TO_HALF)


def test_widths_are_checked():
    with pytest.raises(ValueError, match=r"rotary_dim is 5, as x has shape \(5,\), expected an even number"):
        layouts.convert(np.arange(5), **TO_HALF)
    with pytest.raises(ValueError, match=r"layouts.convert: x has shape \(4,\), .* at least rotary_dim = 6"):
        layouts.convert(np.arange(4), rotary_dim=6, **TO_HALF)
    for odd in (3, 0, -2):
        with pytest.raises(ValueError, match=rf"layouts.convert: rotary_dim is {odd}, expected an even number"):
            layouts.convert(np.arange(4), rotary_dim=odd, **TO_HALF)
    with pytest.raises(TypeError, match=r"layouts.permute_projection: rotary_dim is None, expected an integer"):
        layouts.permute_projection(np.arange(4), heads=1, rotary_dim=None, **TO_HALF)
    with pytest.raises(ValueError, match=r"layouts.permute_projection: rotary_dim is 3, expected an even number"):
        layouts.permute_projection(np.arange(4), heads=1, rotary_dim=3, **TO_HALF)


def test_heads_divide_the_rows():
    message = r"layouts.permute_projection: weight has shape \(10, 16\), .* a multiple of heads = 4; .* transpose"
    with pytest.raises(ValueError, match=message):
        layouts.permute_projection(np.zeros((10, 16)), heads=4, rotary_dim=4, **TO_HALF)
    with pytest.raises(ValueError, match=r"layouts.permute_projection: heads is 0, expected an integer of at least 1"):
        layouts.permute_projection(np.zeros((8, 3)), heads=0, rotary_dim=4, **TO_HALF)
    with pytest.raises(TypeError, match=r"layouts.permute_projection: heads is 2.0, expected an integer"):
        layouts.permute_projection(np.zeros((8, 3)), heads=2.0, rotary_dim=4, **TO_HALF)


def test_lists_scalars_and_broken_weights_are_refused():
    with pytest.raises(TypeError, match=r"layouts.convert: x is a list, not an array"):
        layouts.convert([1, 2], **TO_HALF)
    with pytest.raises(ValueError, match=r"layouts.convert: x has shape \(\)"):
        layouts.convert(np.array(1.0), **TO_HALF)
    with pytest.raises(TypeError, match=r"layouts.permute_projection: weight is a list, not an array"):
        layouts.permute_projection([[1.0]], heads=1, rotary_dim=2, **TO_HALF)
