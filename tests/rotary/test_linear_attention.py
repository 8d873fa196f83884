import math
from fractions import Fraction

import numpy as np
import pytest

from posref.rotary import linear_attention, rope

LAYOUTS = ["interleaved", "half"]
U = 2.0**-53


def elu_plus_one(x):
    return [value + 1 if value > 0 else math.exp(value) for value in x]


def by_loops(q, k, v, positions, theta, *, layout, phi, causal, turned):
    """RoFormer Eq. (19) for one head: a double sum, the denominator without rotation."""
    out = []
    for i, m in enumerate(positions):
        above, below = np.zeros(v.shape[-1]), 0.0
        for j, n in enumerate(positions):
            if causal and j > i:
                continue
            weight = sum(turned(phi(q[i]), m, theta, layout) * turned(phi(k[j]), n, theta, layout))
            above, below = above + weight * v[j], below + sum(a * b for a, b in zip(phi(q[i]), phi(k[j]), strict=True))
        out.append(above / below)
    return np.array(out)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("causal", [True, False])
def test_against_the_double_sum(layout, causal, turned):
    rng = np.random.default_rng(0)
    q, k, v = rng.standard_normal((2, 3, 7, 6)), rng.standard_normal((2, 3, 7, 6)), rng.standard_normal((2, 3, 7, 4))
    positions, theta = np.array([[[0, 1, 2, 3, 4, 5, 6]], [[5, 0, 4097, 3, 3, 9, 1]]]), rope.frequencies(6)
    got = linear_attention.attend(
        q, k, v, *rope.tables(positions, theta), layout=layout, feature_map=linear_attention.elu_plus_one, causal=causal
    )
    assert got.shape == (2, 3, 7, 4)
    for b, h in np.ndindex(2, 3):
        expected = by_loops(
            q[b, h], k[b, h], v[b, h], positions[b, 0], theta,
            layout=layout, phi=elu_plus_one, causal=causal, turned=turned,
        )  # fmt: skip
        # 7 keys of 6 products each, the two ways of summing; weights over the denominator are below 2, values below 4
        np.testing.assert_allclose(got[b, h], expected, rtol=0, atol=7 * 6 * 2 * 4 * 16 * U)


@pytest.mark.parametrize("causal", [True, False])
def test_exactly_in_fractions(causal):
    # rational rotations and a rational feature map: the sums must agree exactly, and no float may enter
    rows = [[Fraction(n) for n in row] for row in ([1, -2, 3, 0], [2, 1, -1, 4], [0, 3, 1, -2])]
    q, k, v = (np.array(np.roll(rows, s, axis=0), dtype=object) for s in range(3))
    turns = [(Fraction(1), Fraction(0)), (Fraction(3, 5), Fraction(4, 5)), (Fraction(-7, 25), Fraction(24, 25))]
    cos, sin = (np.array([[turn[part]] * 2 for turn in turns], dtype=object) for part in range(2))

    def phi(x):
        return x * x + 1

    got = linear_attention.attend(q, k, v, cos, sin, layout="half", feature_map=phi, causal=causal)

    def turn(row, i):
        (a, b, c, d), (cosine, sine) = row, turns[i]
        return [a * cosine - c * sine, b * cosine - d * sine, a * sine + c * cosine, b * sine + d * cosine]

    for i in range(3):
        keys = range(i + 1) if causal else range(3)
        weights = [sum(a * b for a, b in zip(turn(phi(q[i]), i), turn(phi(k[j]), j), strict=True)) for j in keys]
        total = sum(sum(phi(q[i]) * phi(k[j])) for j in keys)
        expected = [sum(w * v[j][c] for w, j in zip(weights, keys, strict=True)) / total for c in range(4)]
        assert got[i].tolist() == expected
        assert all(isinstance(entry, Fraction) for entry in got[i])


def test_by_hand():
    # d = 2, theta = 1, phi = 2 everywhere: weights 8 cos(j - i), denominator 8 a key
    ones, v = np.ones((2, 2)), np.array([[1.0], [3.0]])
    tables = rope.tables(np.array([0, 1]), np.array([1.0]))
    options = {"layout": "half", "feature_map": linear_attention.elu_plus_one}
    causal = linear_attention.attend(ones, ones, v, *tables, causal=True, **options)
    np.testing.assert_allclose(causal[:, 0], [1, (math.cos(1) + 3) / 2], atol=1e-15)
    full = linear_attention.attend(ones, ones, v, *tables, causal=False, **options)
    np.testing.assert_allclose(full[:, 0], [(1 + 3 * math.cos(1)) / 2, (math.cos(1) + 3) / 2], atol=1e-15)


def test_causal_rows_do_not_see_the_future():
    rng = np.random.default_rng(1)
    q, k, v = rng.standard_normal((3, 6, 4))
    tables = rope.tables(np.arange(6), rope.frequencies(4))
    options = {"layout": "half", "feature_map": linear_attention.elu_plus_one}
    before = linear_attention.attend(q, k, v, *tables, causal=True, **options)
    k[4:], v[4:] = 100.0, -100.0
    after = linear_attention.attend(q, k, v, *tables, causal=True, **options)
    np.testing.assert_array_equal(after[:4], before[:4])
    assert (after[4:] != before[4:]).all()
    # and the last row sees everything: causal or not is the same for it
    full = linear_attention.attend(q, k, v, *tables, causal=False, **options)
    np.testing.assert_allclose(full[-1], after[-1], rtol=0, atol=6 * 4 * 200 * 200 * 4 * U)


def test_relative_after_the_feature_map_and_not_before():
    rng = np.random.default_rng(2)
    q, k, v = rng.standard_normal((3, 5, 4))
    theta = rope.frequencies(4)

    def after_phi(shift):
        tables = rope.tables(np.arange(5) + shift, theta)
        return linear_attention.attend(q, k, v, *tables, layout="half", feature_map=linear_attention.elu_plus_one, causal=False)

    def before_phi(shift):
        tables = rope.tables(np.arange(5) + shift, theta)
        still = rope.tables(np.zeros(5), theta)
        turned = (rope.rotate(x, *tables, layout="half") for x in (q, k))
        return linear_attention.attend(
            *turned, v, *still, layout="half", feature_map=linear_attention.elu_plus_one, causal=False
        )

    np.testing.assert_allclose(after_phi(100), after_phi(0), rtol=0, atol=5 * 4 * 100 * 16 * 4 * U)
    assert not np.allclose(before_phi(100), before_phi(0), atol=0.01)


def test_weights_may_be_negative_and_need_not_sum_to_one():
    # the example of the docstring: one key at offset 3 has weight cos 3 = -0.99 where a softmax would give 1
    q, v = np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([[1.0], [0.0]])
    tables = rope.tables(np.array([0, 3]), np.array([1.0]))
    o = linear_attention.attend(q, q, v, *tables, layout="half", feature_map=abs, causal=False)
    assert o[1, 0] == pytest.approx(math.cos(3) / 2, abs=1e-15)
    assert round(math.cos(3), 2) == -0.99
    # rotated, the denominator of this query would be 1 + cos 3; with the one key at offset 3 alone it is negative, and at a
    # quarter turn it is zero
    assert 1 + math.cos(3) == pytest.approx(0.01, abs=1e-3)


def test_elu_plus_one():
    x = np.array([-800.0, -1.0, -0.0, 0.0, 1e-3, 2.0, 800.0])
    expected = [0.0, math.exp(-1), 1, 1, 1.001, 3, 801]
    np.testing.assert_allclose(linear_attention.elu_plus_one(x), expected, rtol=2 * U, atol=0)
    # continuous with slope 1 at 0, and positive wherever e^x does not underflow
    assert linear_attention.elu_plus_one(np.array([-1e-9]))[0] == pytest.approx(1 - 1e-9, abs=1e-17)
    assert (linear_attention.elu_plus_one(np.linspace(-700, 700, 101)) > 0).all()
    np.testing.assert_allclose(linear_attention.elu_plus_one(np.array([-1, 3])), [math.exp(-1), 4], rtol=2 * U, atol=0)


def test_runs_on_50_digits(digits):
    rng = np.random.default_rng(3)
    q, k, v = rng.standard_normal((3, 4, 4))
    cos, sin = rope.tables(np.arange(4), np.array([1.0, 0.25]))
    for causal in (True, False):
        exact = linear_attention.attend(
            *map(digits, (q, k, v, cos, sin)), layout="half", feature_map=lambda x: x * x, causal=causal
        )
        close = linear_attention.attend(q, k, v, cos, sin, layout="half", feature_map=lambda x: x * x, causal=causal)
        np.testing.assert_allclose(close, exact.astype(float), rtol=0, atol=4 * 4 * 16 * 16 * U)


# -- errors


def call(q=(5, 4), k=(5, 4), v=(5, 3), n=5, feature_map=linear_attention.elu_plus_one, **changes):
    tables = rope.tables(np.arange(n), rope.frequencies(4))
    options = {"layout": "half", "causal": True, **changes}
    return linear_attention.attend(np.ones(q), np.ones(k), np.ones(v), *tables, feature_map=feature_map, **options)


def test_zero_denominators_are_refused_and_counted():
    message = r"linear_attention.attend: 5 of 5 queries have denominator zero; use a positive feature_map, .* elu_plus_one"
    for causal in (True, False):
        with pytest.raises(ValueError, match=message):
            call(feature_map=lambda x: np.maximum(-x, 0), causal=causal)


def test_shapes_must_fit():
    with pytest.raises(ValueError, match=r"linear_attention.attend: k has shape \(6, 4\), .* expected n = 5"):
        call(k=(6, 4), v=(6, 3))
    with pytest.raises(ValueError, match=r"linear_attention.attend: v has shape \(6, 3\), .* expected n = 5"):
        call(v=(6, 3))
    with pytest.raises(ValueError, match=r"linear_attention.attend: k has shape \(5, 6\), .* expected d = 4"):
        call(k=(5, 6))
    with pytest.raises(ValueError, match=r"linear_attention.attend: q has shape \(4,\), expected at least 2 axes"):
        call(q=(4,))
    with pytest.raises(ValueError, match=r"cos has shape \(3, 2\), .* does not broadcast to q of shape \(5, 4\)"):
        call(n=3)
    with pytest.raises(ValueError, match=r"cos has shape \(5, 2\), .* rotary_dim/2 = 4 .*, since x has shape \(5, 8\)"):
        call(feature_map=lambda x: np.concatenate([x, x], axis=-1))  # tables belong to the width after the feature map


def test_words_must_be_said():
    with pytest.raises(TypeError, match="feature_map"):
        linear_attention.attend(*(np.ones((5, 4)),) * 5, layout="half", causal=True)
    with pytest.raises(TypeError, match=r"linear_attention.attend: feature_map is 'elu', expected a function of arrays"):
        call(feature_map="elu")
    with pytest.raises(ValueError, match=r"linear_attention.attend: causal is 'yes', expected one of True, False"):
        call(causal="yes")
    with pytest.raises(ValueError, match=r"layout is 'neox', expected one of 'interleaved', 'half'"):
        call(layout="neox")
    with pytest.raises(TypeError, match=r"linear_attention.elu_plus_one: x is a list, not an array"):
        linear_attention.elu_plus_one([1.0])


def test_a_map_of_narrow_integers_is_refused():
    with pytest.raises(TypeError, match=r"linear_attention\.elu_plus_one: x has dtype int8, whose sums and products wrap"):
        linear_attention.elu_plus_one(np.array([127, -1], dtype=np.int8))  # 127 + 1 would be -128
    assert linear_attention.elu_plus_one(np.array([127, 0], dtype=np.int32)).tolist() == [128, 1]


@pytest.mark.parametrize("causal", [True, False])
def test_heads_that_do_not_meet_are_refused(causal):
    q, v = np.ones((3, 2, 4)), np.ones((2, 2, 4))
    cos, sin = rope.tables(np.arange(2), rope.frequencies(4))
    options = {"layout": "half", "feature_map": linear_attention.elu_plus_one, "causal": causal}
    with pytest.raises(ValueError, match=r"linear_attention\.attend: q has shape \(3, 2, 4\) and v \(2, 2, 4\)"):
        linear_attention.attend(q, q, v, cos, sin, **options)
