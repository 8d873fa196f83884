"""T5: buckets against exact integers, the seed's table and published lists; where floating-point logarithms fail."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from posref import attention
from posref.relative import t5

ENCODER_STARTS = [0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91]
DECODER_STARTS = [*range(17), 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113]

# i - j = 0 .. 30, as printed in the article on position encodings (kexue.fm/archives/8130). It does not say so, but this is
# the past side of the bidirectional encoder: 16 buckets on the side, max_distance 128.
PRINTED_TABLE = [0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 8, 8, 9, 9, 9, 9, 10, 10, 10, 10, 10, 10, 10, 11, 11, 11, 11, 11, 11, 11, 11]


def exact_bucket(n, buckets, max_distance):
    """One distance by counting up: the largest k with n^L e^k >= D^k e^L, cut at the last bucket."""
    e = buckets // 2
    power = buckets - e
    if n < e:
        return n
    k = 0
    while k + 1 < power and n**power * e ** (k + 1) >= max_distance ** (k + 1) * e**power:
        k += 1
    return e + k


def scalar_bucket(offset, buckets, max_distance, bidirectional):
    if not bidirectional:
        return exact_bucket(max(-offset, 0), buckets, max_distance)
    side = buckets // 2
    return exact_bucket(abs(offset), side, max_distance) + (side if offset > 0 else 0)


def test_published_starts():
    assert t5.bucket_starts(16, 128).tolist() == ENCODER_STARTS
    assert t5.bucket_starts(32, 128).tolist() == DECODER_STARTS


def test_printed_table():
    distance = np.arange(31)
    assert t5.bucket(-distance, bidirectional=True).tolist() == PRINTED_TABLE
    assert t5.bucket(distance[1:], bidirectional=True).tolist() == [16 + b for b in PRINTED_TABLE[1:]]
    assert t5.bucket(-distance, bidirectional=False).tolist() != PRINTED_TABLE


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(
    ("buckets", "max_distance"), [(32, 128), (4, 5), (6, 100), (10, 128), (32, 20), (40, 1000), (320, 800)]
)
def test_bucket_is_the_scalar_definition(buckets, max_distance, bidirectional):
    offsets = np.arange(-max_distance - 20, max_distance + 21)
    expected = [scalar_bucket(int(offset), buckets, max_distance, bidirectional) for offset in offsets]
    assert t5.bucket(offsets, buckets=buckets, max_distance=max_distance, bidirectional=bidirectional).tolist() == expected


def test_every_start_is_the_first_distance_over_the_geometric_mean():
    for buckets in range(2, 40):
        for max_distance in (buckets // 2 + 1, buckets, 60, 128, 1000):
            starts = t5.bucket_starts(buckets, max_distance).tolist()
            e = buckets // 2
            power = buckets - e
            assert len(starts) == buckets
            assert starts[:e] == list(range(e))
            for k in range(power):
                mean = Fraction(max_distance, e) ** k * e**power
                assert starts[e + k] ** power >= mean
                assert (starts[e + k] - 1) ** power < mean


def test_large_arguments_are_exact():
    starts = t5.bucket_starts(64, 10**12).tolist()
    assert starts[32] == 32
    for k in (1, 7, 31):
        target = 10 ** (12 * k) * 32 ** (32 - k)
        assert (starts[32 + k] - 1) ** 32 < target <= starts[32 + k] ** 32


def test_directions_and_saturation():
    offsets = np.array([1, -1, 128, -128, 10**9, -(10**9), 90, 91, -90, -91])
    assert t5.bucket(offsets, bidirectional=True).tolist() == [17, 1, 31, 15, 31, 15, 30, 31, 14, 15]
    assert t5.bucket(offsets, bidirectional=False).tolist() == [0, 1, 0, 31, 0, 31, 0, 0, 29, 29]
    assert t5.bucket(np.array([-112, -113]), bidirectional=False).tolist() == [30, 31]


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_the_smallest_integer_whose_absolute_value_wraps(dtype):
    ends = np.iinfo(dtype)
    offsets = np.array([ends.min, ends.min + 1, -1, 0, 1, ends.max], dtype)
    assert t5.bucket(offsets, bidirectional=True).tolist() == [15, 15, 1, 0, 17, 31]
    assert t5.bucket(offsets, bidirectional=False).tolist() == [31, 31, 1, 0, 0, 0]
    with pytest.raises(TypeError, match="offsets has dtype uint8, expected signed integers"):
        t5.bucket(np.array([0, 3], dtype=np.uint8), bidirectional=False)


def test_unused_buckets():
    # 128 buckets on one side and 100 distances: 27 of them start where the next one does and are never returned.
    starts = t5.bucket_starts(128, 100)
    used = set(t5.bucket(-np.arange(500), buckets=128, max_distance=100, bidirectional=False).tolist())
    unused = {k for k in range(127) if starts[k] == starts[k + 1]}
    assert len(unused) == 27
    assert used == set(range(128)) - unused


# Floating-point logarithms. Each step is rounded correctly (mpmath at 60 digits, then one rounding), so the outcome does
# not depend on the mathematical library of the machine.


def log(x, dtype):
    with mpmath.workdps(60):
        return dtype(mpmath.log(mpmath.mpf(float(x))))


def published(n, e, power, d, dtype):
    return log(dtype(n) / dtype(e), dtype) / log(dtype(d) / dtype(e), dtype) * dtype(power)


def reciprocal(n, e, power, d, dtype):
    return log(dtype(n) / dtype(e), dtype) * (dtype(1) / log(dtype(d) / dtype(e), dtype)) * dtype(power)


def factor_first(n, e, power, d, dtype):
    return log(dtype(n) / dtype(e), dtype) * (dtype(power) / log(dtype(d) / dtype(e), dtype))


def difference(n, e, power, d, dtype):
    return (log(n, dtype) - log(e, dtype)) / (log(d, dtype) - log(e, dtype)) * dtype(power)


def with_eps(n, e, power, d, dtype):
    return log(dtype(n) / dtype(e) + np.finfo(dtype).eps, dtype) / log(dtype(d) / dtype(e), dtype) * dtype(power)


def float_bucket(variant, n, buckets, max_distance, dtype):
    e = buckets // 2
    return min(e + int(variant(n, e, buckets - e, max_distance, dtype)), buckets - 1)


def ties(buckets, max_distance):
    """Distances where the logarithm is an integer exactly: the only ones at stake in the configurations below."""
    e = buckets // 2
    power = buckets - e
    exact = {max_distance**k * e ** (power - k) for k in range(power + 1)}
    return [n for n in range(e, max_distance + 1) if n**power in exact]


CONFIGURATIONS = [(16, 128), (32, 128), (3, 100), (9, 128), (20, 1000), (32, 256), (16, 2048), (8, 64), (24, 768), (12, 486)]


def failures(variant, dtype):
    return {
        (buckets, max_distance, n)
        for buckets, max_distance in CONFIGURATIONS
        for n in ties(buckets, max_distance)
        if float_bucket(variant, n, buckets, max_distance, dtype) != exact_bucket(n, buckets, max_distance)
    }


def test_ties():
    assert ties(16, 128) == [8, 16, 32, 64, 128]
    assert ties(32, 128) == [16, 128]
    for tie in (16, 32, 64):  # bucket 8 + log2(n / 8) * 2
        assert exact_bucket(tie, 16, 128) == 8 + 2 * (tie.bit_length() - 4)
        assert tie in t5.bucket_starts(16, 128)


def test_logarithm_in_the_published_order():
    assert failures(published, np.float32) == set()
    assert failures(with_eps, np.float32) == set()
    wrong = failures(published, np.float64)
    assert {(9, 128, 8), (9, 128, 16), (9, 128, 64)} <= wrong
    assert not any((buckets, d) in {(16, 128), (32, 128)} for buckets, d, n in wrong)


def test_logarithm_in_other_orders():
    assert factor_first(64, 8, 8, 128, np.float64) == 5.999999999999999
    assert (16, 128, 64) in failures(factor_first, np.float64)
    assert (32, 256, 64) in failures(difference, np.float64)
    wrong = failures(reciprocal, np.float32)
    assert {(3, 100, 10), (20, 1000, 100)} <= wrong
    assert not any((buckets, d) in {(16, 128), (32, 128)} for buckets, d, n in wrong)


@pytest.mark.parametrize(("buckets", "max_distance"), [(16, 128), (32, 128), (9, 128), (160, 800)])
@pytest.mark.parametrize("variant", [published, reciprocal, factor_first, difference])
def test_off_the_ties_every_order_is_right(variant, buckets, max_distance):
    e = buckets // 2
    for n in sorted(set(range(e, max_distance + 10)) - set(ties(buckets, max_distance))):
        expected = exact_bucket(n, buckets, max_distance)
        assert float_bucket(variant, n, buckets, max_distance, np.float64) == expected


# The bias


def test_bias_entry_by_entry():
    generator = np.random.default_rng(0)
    table = generator.standard_normal((8, 3))
    queries, keys = np.array([[4, 9], [0, 40]]), np.array([[0, 1, 5, 30], [2, 2, 0, 41]])
    for bidirectional in (True, False):
        bias = t5.bias(queries, keys, table, max_distance=20, bidirectional=bidirectional)
        assert bias.shape == (2, 3, 2, 4)
        for batch, head, i, j in np.ndindex(*bias.shape):
            index = scalar_bucket(int(keys[batch, j] - queries[batch, i]), 8, 20, bidirectional)
            assert bias[batch, head, i, j] == table[index, head]


@pytest.mark.parametrize("bidirectional", [True, False])
def test_decoding_step_is_the_last_row(bidirectional):
    table = np.random.default_rng(1).standard_normal((32, 2))
    positions = np.arange(150)
    full = t5.bias(positions, positions, table, bidirectional=bidirectional)
    step = t5.bias(positions[-1:], positions, table, bidirectional=bidirectional)
    assert np.array_equal(step, full[:, -1:])


def test_left_padding_shifts_nothing():
    # Positions by counting the real tokens: a padded row sees the same bias as the row without padding.
    table = np.random.default_rng(2).standard_normal((32, 2))
    mask = np.array([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]])
    positions = np.cumsum(mask, axis=-1) - 1
    bias = t5.bias(positions, positions, table, bidirectional=True)
    assert np.array_equal(bias[0][:, 2:, 2:], t5.bias(np.arange(3), np.arange(3), table, bidirectional=True))
    assert np.array_equal(bias[1], t5.bias(np.arange(5), np.arange(5), table, bidirectional=True))


def test_bias_fits_attention_with_scale_one():
    q, k = np.random.default_rng(3).standard_normal((2, 2, 4, 8))
    table = np.random.default_rng(4).standard_normal((32, 2))
    bias = t5.bias(np.arange(4), np.arange(4), table, bidirectional=True)
    output = attention.attend(q, k, np.eye(4)[None].repeat(2, axis=0), scale=1, bias=bias)
    s = np.einsum("hid,hjd->hij", q, k) + bias
    expected = np.exp(s) / np.exp(s).sum(axis=-1, keepdims=True)
    # A row is a softmax of 4 scores below 40 in size: 40 u from the exponent's argument, a few u from the sum.
    np.testing.assert_allclose(output, expected, rtol=100 * np.finfo(np.float64).eps)


def test_table_of_symbols_passes_through():
    table = np.array([[f"b{bucket}h{head}" for head in range(2)] for bucket in range(4)], dtype=object)
    bias = t5.bias(np.array([1]), np.array([0, 1, 2]), table, max_distance=8, bidirectional=True)
    assert bias.tolist() == [[["b1h0", "b0h0", "b3h0"]], [["b1h1", "b0h1", "b3h1"]]]


# Errors


def test_errors():
    offsets, table = np.array([0, 1]), np.zeros((32, 2))
    with pytest.raises(ValueError, match=r"t5\.bucket_starts: buckets is 1, which leaves 1 on a side, expected at least 2"):
        t5.bucket_starts(1, 128)
    with pytest.raises(ValueError, match=r"max_distance is 16 and the first 16 distances .* expected at least 17"):
        t5.bucket_starts(32, 16)
    with pytest.raises(TypeError, match=r"t5\.bucket_starts: buckets is 16\.0, expected an integer"):
        t5.bucket_starts(16.0, 128)
    with pytest.raises(TypeError, match=r"t5\.bucket_starts: max_distance is 128\.5, expected an integer"):
        t5.bucket_starts(16, 128.5)
    with pytest.raises(ValueError, match=r"t5\.bucket: buckets is 31, expected an even number when bidirectional"):
        t5.bucket(offsets, buckets=31, bidirectional=True)
    with pytest.raises(ValueError, match=r"t5\.bucket: buckets is 2, which leaves 1 on a side"):
        t5.bucket(offsets, buckets=2, bidirectional=True)
    with pytest.raises(TypeError, match=r"t5\.bucket: buckets is '32', expected an integer"):
        t5.bucket(offsets, buckets="32", bidirectional=True)
    with pytest.raises(TypeError, match=r"t5\.bucket: offsets has dtype float64, expected signed integers"):
        t5.bucket(np.array([0.5]), bidirectional=True)
    with pytest.raises(TypeError, match=r"t5\.bucket: offsets is a list"):
        t5.bucket([0, 1], bidirectional=True)
    with pytest.raises(ValueError, match=r"t5\.bias: table has shape \(32,\), expected at least 2 axes"):
        t5.bias(offsets, offsets, table[:, 0], bidirectional=True)
    with pytest.raises(ValueError, match=r"t5\.bias: table has shape \(1, 32, 2\), expected \(buckets, h\), with 2 axes"):
        t5.bias(offsets, offsets, table[None], bidirectional=True)
    with pytest.raises(TypeError, match=r"t5\.bias: query_positions has dtype float64, expected signed integers"):
        t5.bias(offsets * 1.0, offsets, table, bidirectional=True)
    with pytest.raises(TypeError, match=r"key_positions has dtype uint8"):
        t5.bias(offsets, offsets.astype(np.uint8), table, bidirectional=True)
    with pytest.raises(ValueError, match=r"buckets is 31"):
        t5.bias(offsets, offsets, table[:31], bidirectional=True)


@pytest.mark.parametrize("name", t5.PRESETS)
def test_presets_run(name):
    preset = {key: value for key, value in t5.PRESETS[name].items() if key != "source"}
    assert t5.bucket(np.array([-(10**6)]), **preset).item() == preset["buckets"] // (1 + preset["bidirectional"]) - 1


def test_bias_gradient_refuses():
    i = np.arange(3)
    with pytest.raises(ValueError, match=r"t5\.bias_gradient: .*n_key = 4"):
        t5.bias_gradient(np.zeros((2, 3, 4)), i, i, bidirectional=True)
    with pytest.raises(ValueError, match="buckets is 3"):
        t5.bias_gradient(np.zeros((2, 3, 3)), i, i, buckets=3, bidirectional=True)


def test_the_gate_of_wavlm():
    """Zeros give 2 - 1/2 + c/4; the middle of 0 and 1 in both sigmoids. Far sums end at 2, and at 1 + c."""
    zeros, weight = np.zeros((2, 3, 1, 4)), np.zeros((8, 4))
    c = np.array([1.0, -2.0, 4.0])
    assert t5.gate(zeros, weight, np.zeros(8), c)[0, :, 0].tolist() == (1.5 + c / 4).tolist()
    closed, open_ = np.repeat([-200.0, 200.0], 4), np.full(8, 200.0)
    assert t5.gate(zeros, weight, closed, c)[1, :, 0].tolist() == [2.0, 2.0, 2.0]
    assert t5.gate(zeros, weight, open_, c)[1, :, 0].tolist() == (1 + c).tolist()
    with pytest.raises(ValueError, match="weight has shape"):
        t5.gate(zeros, weight[:4], np.zeros(8), c)
