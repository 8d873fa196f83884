"""T5: buckets against exact integers, the published lists; what the body refuses."""

import numpy as np
import pytest

from posref.relative import t5
from tests.refused import refused

ENCODER_STARTS = [0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91]
DECODER_STARTS = [*range(17), 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113]

# i - j = 0 .. 30, as printed in the article on position encodings (kexue.fm/archives/8130). It does not say so, but this is
# the past side of the bidirectional encoder: 16 buckets on the side, max_distance 128.
PRINTED_TABLE = [0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 8, 8, 9, 9, 9, 9, 10, 10, 10, 10, 10, 10, 10, 11, 11, 11, 11, 11, 11, 11, 11]


def test_published_starts():
    assert t5.bucket_starts(16, 128).tolist() == ENCODER_STARTS
    assert t5.bucket_starts(32, 128).tolist() == DECODER_STARTS


def test_printed_table():
    distance = np.arange(31)
    assert t5.bucket(-distance, bidirectional=True).tolist() == PRINTED_TABLE
    assert t5.bucket(distance[1:], bidirectional=True).tolist() == [16 + b for b in PRINTED_TABLE[1:]]
    assert t5.bucket(-distance, bidirectional=False).tolist() != PRINTED_TABLE


def test_large_arguments_are_exact():
    starts = t5.bucket_starts(64, 10**12).tolist()
    assert starts[32] == 32
    for k in (1, 7, 31):
        target = 10 ** (12 * k) * 32 ** (32 - k)
        assert (starts[32 + k] - 1) ** 32 < target <= starts[32 + k] ** 32


def test_the_largest_distance_is_that_of_int64():
    """The first n with n^2 >= 2 D is 2^32 for D = 2^63 - 1; no offset is farther."""
    assert t5.bucket_starts(4, 2**63 - 1).tolist() == [0, 1, 2, 2**32]
    ends = np.array([-(2**63), 0, 2**63 - 1])
    assert t5.bucket(ends, buckets=8, max_distance=2**63 - 1, bidirectional=True).tolist() == [3, 0, 7]


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_the_smallest_integer_whose_absolute_value_wraps(dtype):
    ends = np.iinfo(dtype)
    offsets = np.array([ends.min, ends.min + 1, -1, 0, 1, ends.max], dtype)
    assert t5.bucket(offsets, bidirectional=True).tolist() == [15, 15, 1, 0, 17, 31]
    assert t5.bucket(offsets, bidirectional=False).tolist() == [31, 31, 1, 0, 0, 0]


def test_unused_buckets():
    # 128 buckets on one side and 100 distances: 27 of them start where the next one does and are never returned.
    starts = t5.bucket_starts(128, 100)
    used = set(t5.bucket(-np.arange(500), buckets=128, max_distance=100, bidirectional=False).tolist())
    unused = {k for k in range(127) if starts[k] == starts[k + 1]}
    assert len(unused) == 27
    assert used == set(range(128)) - unused


test_refused = refused(
    vars(t5),
    r"""
    bucket_starts(1, 128) | t5\.bucket_starts: buckets is 1, which leaves 1 on a side, expected at least 2
    bucket_starts(32, 16) | max_distance is 16 and the first 16 distances .* expected at least 17
    bucket(a(0), buckets=31, bidirectional=True) | t5\.bucket: buckets is 31, expected an even number when bidirectional
    bucket(a(0), buckets=2, bidirectional=True) | t5\.bucket: buckets is 2, which leaves 1 on a side
    bias(a(0), a(0), np.zeros((31, 2)), bidirectional=True) | buckets is 31
    bias_gradient(np.zeros((2, 3, 3)), a(0, 1, 2), a(0, 1, 2), buckets=3, bidirectional=True) | buckets is 3
    """,
)


@pytest.mark.parametrize("name", t5.PRESETS)
def test_presets_run(name):
    preset = {key: value for key, value in t5.PRESETS[name].items() if key != "source"}
    assert t5.bucket(np.array([-(10**6)]), **preset).item() == preset["buckets"] // (1 + preset["bidirectional"]) - 1


def test_the_gate_of_wavlm():
    """Zeros give 2 - 1/2 + c/4; the middle of 0 and 1 in both sigmoids. Far sums end at 2, and at 1 + c."""
    zeros, weight = np.zeros((2, 3, 1, 4)), np.zeros((8, 4))
    c = np.array([1.0, -2.0, 4.0])
    assert t5.gate(zeros, weight, np.zeros(8), c)[0, :, 0].tolist() == (1.5 + c / 4).tolist()
    closed, open_ = np.repeat([-200.0, 200.0], 4), np.full(8, 200.0)
    assert t5.gate(zeros, weight, closed, c)[1, :, 0].tolist() == [2.0, 2.0, 2.0]
    assert t5.gate(zeros, weight, open_, c)[1, :, 0].tolist() == (1 + c).tolist()
