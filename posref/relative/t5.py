r"""T5 bias: one trained number a head and a bucket of offsets, added to the score.

Definition. With b buckets on one side, e = floor(b/2) of them exact, L = b - e logarithmic, and max_distance D:

    s_ij = q_i . k_j + B[bucket(j - i), h]
    start_k = k  for k < e,      start_{e+k} = smallest integer n with n^L >= e^{L-k} D^k  for k = 0 .. L-1

A distance n falls into the last bucket that starts at or before it. The starts of the logarithmic buckets are the weighted
geometric means e^{1-k/L} D^{k/L}, rounded up; the powers are integers, so no rounded logarithm decides.

Symbols. offsets (..., n_query, n_key) in tokens, table B (buckets, h), bias (..., h, n_query, n_key).

Conventions. The offset is key minus query. Bidirectional: half of the buckets for the past and the query itself, the other
half, at +buckets/2, for the future. Causal: all buckets for the past, and every future key shares bucket 0 with the
query's own. The score carries **no 1/sqrt(d)**: pass scale=1 to `posref.attention`.

Where implementations differ. "32 buckets, max_distance 128" has 16 buckets a side in the encoder and 32 in the decoder; the
last one starts at 91 and at 113, though the paper says 128. Implementations take floor(log(n/e) / log(D/e) L) in floating
point, which rounding can push below an integer: log(n/e) (L / log(D/e)) in float64 is 5.999999999999999, not 6, for n = 64
in the encoder. Mesh TensorFlow and transformers 5.23.0 (modeling_t5.py) use float32 and are right for 32/128; t5x
(examples/t5/layers.py) adds eps inside the logarithm; llama.cpp fixes D = 128. t5x stores the table as (h, buckets). WavLM
scales its scores by 1/sqrt(d) and multiplies the bias of row i by a gate made from the layer's input at i.

Properties. proofs/relative/t5.py: starts_pinned, buckets_pinned and pinned (against the powers above, ties and decoding steps
included); never_decreases, and is the last bucket from its start on; equivalent_to_the_logarithm over the reals;
rounded_logarithms (which order fails where); translation_invariant; no_scale.

References. Raffel et al., arXiv 1910.10683, section 2.1; mesh_tensorflow/transformer/transformer_layers.py.
"""

from bisect import bisect_left

import numpy as np

from posref import _require
from posref.relative.offsets import clip
from posref.relative.offsets import offsets as offsets_between

PRESETS = {
    "t5_encoder": {"buckets": 32, "max_distance": 128, "bidirectional": True, "source": "arXiv 1910.10683 section 2.1"},
    "t5_decoder": {"buckets": 32, "max_distance": 128, "bidirectional": False, "source": "arXiv 1910.10683 section 2.1"},
    "wavlm": {
        "buckets": 320,
        "max_distance": 800,
        "bidirectional": True,
        "source": "transformers 5.23.0 configuration_wavlm.py",
    },
}


def bucket_starts(buckets, max_distance):
    """The first distance of every bucket of one side: int64 `(buckets,)`, exact.

    `buckets` counts one side: 16 for T5's encoder, 32 for its decoder. Equal neighbors are buckets that no distance reaches
    (a small `max_distance` has fewer integers than buckets); the last of them is the one in use.
    ValueError unless `buckets` >= 2 and `max_distance` > buckets // 2.

    >>> bucket_starts(16, 128)
    array([ 0,  1,  2,  3,  4,  5,  6,  7,  8, 12, 16, 23, 32, 46, 64, 91])
    """
    _require_buckets("t5.bucket_starts", "buckets", buckets, buckets, max_distance)
    exact = buckets // 2
    power, distances = buckets - exact, range(max_distance + 1)
    means = [max_distance**k * exact ** (power - k) for k in range(power)]
    return np.array([*range(exact), *(bisect_left(distances, mean, key=lambda n: n**power) for mean in means)])


def bucket(offsets, *, buckets=32, max_distance=128, bidirectional):
    """The bucket of every offset: integers 0 .. buckets - 1, shape of `offsets`.

    `buckets` counts both sides when bidirectional and is even. TypeError unless `offsets` are signed integers, ValueError for
    an odd or too small number of buckets or a `max_distance` inside the exact ones.

    >>> bucket(np.array([-200, -91, -1, 0, 1, 128]), bidirectional=True)
    array([15, 15,  1,  0, 17, 31])
    >>> bucket(np.array([-200, -91, -1, 0, 1, 128]), bidirectional=False)
    array([31, 29,  1,  0,  0,  0])
    """
    _require.array("t5.bucket", "offsets", offsets, kinds=_require.SIGNED)
    _require.integer("t5.bucket", "buckets", buckets)
    if bidirectional and buckets % 2 != 0:
        raise ValueError(f"t5.bucket: buckets is {buckets}, expected an even number when bidirectional: half for each side")
    side = buckets // 2 if bidirectional else buckets
    _require_buckets("t5.bucket", "buckets", side, buckets, max_distance)
    near = clip(offsets, -max_distance, max_distance if bidirectional else 0)
    by_distance = np.searchsorted(bucket_starts(side, max_distance), np.abs(near), side="right") - 1
    return by_distance + side * (offsets > 0) if bidirectional else by_distance


def bias(query_positions, key_positions, table, *, max_distance=128, bidirectional):
    """B[bucket(j - i), h]: `(..., h, n_query, n_key)`, to be added to the scores of every layer.

    `query_positions` `(..., n_query)`, `key_positions` `(..., n_key)` integers; `table` `(buckets, h)`. Positions of shape
    (batch, n) give (batch, h, n_query, n_key). One decoding step, queries at [n - 1], is the last row of the full bias.
    Cross-attention has no bias in T5. Errors as in `bucket`.

    >>> table = np.arange(8.0)[:, None]
    >>> bias(np.array([2, 3]), np.array([0, 1, 2, 3]), table, bidirectional=True)
    array([[[2., 1., 0., 5.],
            [2., 2., 1., 0.]]])
    """
    _require.array("t5.bias", "query_positions", query_positions, kinds=_require.INTEGERS, ndim=1)
    _require.array("t5.bias", "key_positions", key_positions, kinds=_require.INTEGERS, ndim=1)
    _require.array("t5.bias", "table", table, ndim=2)
    if len(table.shape) != 2:
        raise ValueError(f"t5.bias: table has shape {table.shape}, expected two axes (buckets, heads)")
    offset = offsets_between(query_positions, key_positions)
    index = bucket(offset, buckets=table.shape[0], max_distance=max_distance, bidirectional=bidirectional)
    return np.moveaxis(table[index], -1, -3)


def _require_buckets(function, argument, side, total, max_distance):
    _require.integer(function, argument, total)
    _require.integer(function, "max_distance", max_distance)
    if side < 2:
        raise ValueError(f"{function}: {argument} is {total}, which leaves {side} on a side, expected at least 2")
    if max_distance <= side // 2:
        raise ValueError(
            f"{function}: max_distance is {max_distance} and the first {side // 2} distances have their own bucket; "
            f"expected at least {side // 2 + 1}"
        )
