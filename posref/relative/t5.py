r"""T5 bias: one trained number per head and per bucket of offsets is added to the score.

Exact offsets matter for near keys, rough offsets for far keys. Each near offset has its own bucket; farther offsets share
buckets that become wider and wider.

Also called: bucketed bias, relative position bias, RPB, MPNet, umT5, WavLM, gated relative position bias.

Definition. One side has b buckets: the first e = floor(b/2) hold one distance each, the other L = b - e hold ranges that
grow up to max_distance D. Query i and key j in head h, and a distance n >= 0:

    s_ij = q_i . k_j + B[bucket(j - i), h]
    side(n) = n                                                   for n < e
    side(n) = min(e + floor(L log(n / e) / log(D / e)), b - 1)    for n >= e
    bucket(o) = side(|o|) + (b if o > 0, else 0)                  bidirectional: b is half of the buckets
    bucket(o) = side(max(-o, 0))                                  causal: b is all of them

The same without a logarithm, whose rounding would decide at some n: side(n) is the last bucket that starts at or before n,

    start_k = k                                                   for k < e
    start_{e+k} = the smallest integer n with n^L >= e^{L-k} D^k  for k = 0 .. L-1

WavLM multiplies row i by a gate. In each head a linear layer makes eight numbers of the layer's input x_i; they give u and r:

    u = sigmoid(sum_{l=1}^4 (W x_i + w)_l)
    r = sigmoid(sum_{l=5}^8 (W x_i + w)_l)
    gate_i = u (r c_h - 1) + 2

Symbols.

    q (..., h, n_query, d)               queries
    k (..., h, n_key, d)                 keys
    B (buckets, h)                       table, trained
    o = j - i (..., n_query, n_key)      offsets, in tokens
    b                                    buckets on one side
    D                                    max_distance, at which the formula would reach bucket b
    B[bucket(o), h] (..., h, n_query, n_key)    bias
    x (..., h, n, d)                     WavLM: the layer's input, its features in heads
    weight W (8, d), offset w (8,)       WavLM: shared by the heads
    constant c (h,)                      WavLM: starts at 1, where gates are between 1 and 2

Conventions. The offset is key minus query. Bidirectional: the first half of the buckets is for the past and the query itself,
the other half, at +buckets/2, for the future. Causal: all buckets are for the past, and every future key shares bucket 0 with
the query's own. The score carries **no 1/sqrt(d)**: pass scale=1 to `posref.attention`.

Example. Four tokens and eight buckets, so e = 2 and L = 2: distances 2 to 15 share a bucket.

>>> positions = np.arange(4)
>>> bucket(positions - positions[:, None], buckets=8, bidirectional=True)
array([[0, 5, 6, 6],
       [1, 0, 5, 6],
       [2, 1, 0, 5],
       [2, 2, 1, 0]])

Where implementations differ.

    what | who | value | version | source
    buckets on a side, of 32 | T5's encoder | 16; the last starts at 91, the paper says 128 | - | arXiv 1910.10683 section 2.1
    buckets on a side, of 32 | T5's decoder | 32; the last starts at 113, the paper says 128 | - | arXiv 1910.10683 section 2.1
    rounding of the logarithm | Mesh TensorFlow | float32, right for 32 buckets and 128 | -
      | mesh_tensorflow/transformer/transformer_layers.py
    rounding of the logarithm | transformers | float32, right for 32 buckets and 128 | 5.23.0 | modeling_t5.py
    rounding of the logarithm | t5x | eps is added inside the logarithm | - | t5x/examples/t5/layers.py
    rounding of the logarithm | log(n/e) (L / log(D/e)) in float64 | 5.999999999999999, not 6, for n = 64 in the encoder | - | -
    buckets | transformers' MPNet | always 32, whatever relative_attention_num_buckets is | 5.23.0
      | modeling_mpnet.py compute_position_bias
    max_distance | llama.cpp | always 128 | - | llama_relative_position_bucket
    table | t5x | (h, buckets) | - | t5x/examples/t5/layers.py
    scale | WavLM, MPNet | scores times 1/sqrt(d) | 5.23.0 | modeling_wavlm.py, modeling_mpnet.py
    bias | WavLM | times `gate`, of the layer's input; the last bucket starts at 778, its max_distance is 800 | 5.23.0
      | modeling_wavlm.py
    the gate's input | WavLM's own code, second branch (scripted, incremental) | the projected and scaled query | 666c9fce51
      | unilm wavlm/modules.py
    tables | T5, MPNet, WavLM | one, in the first layer, used by all | 5.23.0 | modeling_t5.py
    tables | umT5 | one in every layer | 5.23.0 | modeling_umt5.py

References. Raffel et al., arXiv 1910.10683, section 2.1; mesh_tensorflow/transformer/transformer_layers.py.
"""

from bisect import bisect_left

import numpy as np

from posref._contract import Array, Integer, Integers, Numbers, SignedIntegers, contract, kept
from posref.offsets import clip
from posref.offsets import offsets as offsets_between

PRESETS = {
    "mpnet_base": {
        "buckets": 32,
        "max_distance": 128,
        "bidirectional": True,
        "source": "transformers 5.23.0 configuration_mpnet.py, modeling_mpnet.py",
    },
    "wavlm": {
        "buckets": 320,
        "max_distance": 800,
        "bidirectional": True,
        "source": "transformers 5.23.0 configuration_wavlm.py",
    },
}


@contract
def bucket_starts(buckets: Integer, max_distance: Integer) -> Integers[Array, "buckets"]:
    """The first distance of every bucket of one side: int64 `(buckets,)`, exact.

    `buckets` counts one side: 16 for T5's encoder, 32 for its decoder. Equal neighbors are buckets that no distance reaches
    (a small `max_distance` has fewer integers than buckets); the last of them is the one in use.
    ValueError unless `buckets` >= 2 and `max_distance` > buckets // 2.

    >>> bucket_starts(16, 128)
    array([ 0,  1,  2,  3,  4,  5,  6,  7,  8, 12, 16, 23, 32, 46, 64, 91])
    """
    _require_range("t5.bucket_starts", buckets, 1, max_distance)
    exact = buckets // 2
    power, distances = buckets - exact, range(max_distance)  # where it ends is max_distance
    means = [max_distance**k * exact ** (power - k) for k in range(power)]
    return np.array([*range(exact), *(bisect_left(distances, mean, key=lambda n: n**power) for mean in means)])


@contract
def bucket(
    offsets: SignedIntegers[Array, "..."], *, buckets: Integer = 32, max_distance: Integer = 128, bidirectional: bool
) -> Integers[Array, "..."]:
    """The bucket of every offset: integers 0 .. buckets - 1, shape of `offsets`.

    `buckets` counts both sides when bidirectional and is even. TypeError unless `offsets` are signed integers, ValueError for
    an odd or too small number of buckets or a `max_distance` inside the exact ones.

    >>> bucket(np.array([-200, -91, -1, 0, 1, 128]), bidirectional=True)
    array([15, 15,  1,  0, 17, 31])
    >>> bucket(np.array([-200, -91, -1, 0, 1, 128]), bidirectional=False)
    array([31, 29,  1,  0,  0,  0])
    """
    sides = 2 if bidirectional else 1
    _require_range("t5.bucket", buckets, sides, max_distance)
    side = buckets // sides
    near = clip(offsets, -max_distance, max_distance if bidirectional else 0)
    by_distance = np.searchsorted(bucket_starts(side, max_distance), np.abs(near), side="right") - 1
    return by_distance + side * (offsets > 0) if bidirectional else by_distance


@contract(table="one row per bucket, one column per head")
def bias(
    query_positions: SignedIntegers[Array, "... n_query"],
    key_positions: SignedIntegers[Array, "... n_key"],
    table: Numbers[Array, "buckets h", kept],
    *,
    max_distance: Integer = 128,
    bidirectional: bool,
) -> Numbers[Array, "... h n_query n_key"]:
    """B[bucket(j - i), h]: `(..., h, n_query, n_key)`, to be added to the scores of every layer.

    `query_positions` `(..., n_query)`, `key_positions` `(..., n_key)` integers; `table` `(buckets, h)`. Positions of shape
    (batch, n) give (batch, h, n_query, n_key). One decoding step, queries at [n - 1], is the last row of the full bias.
    Cross-attention has no bias in T5. Errors as in `bucket`.

    >>> table = np.arange(8.0)[:, None]
    >>> bias(np.array([2, 3]), np.array([0, 1, 2, 3]), table, bidirectional=True)
    array([[[2., 1., 0., 5.],
            [2., 2., 1., 0.]]])
    """
    offset = offsets_between(query_positions, key_positions)
    index = bucket(offset, buckets=table.shape[0], max_distance=max_distance, bidirectional=bidirectional)
    return np.moveaxis(table[index], -1, -3)


@contract
def gate(
    x: Numbers[Array, "... h n d"],
    weight: Numbers[Array, "8 d"],
    offset: Numbers[Array, "8"],
    constant: Numbers[Array, "h"],
) -> Numbers[Array, "... h n"]:
    """WavLM's u (r c - 1) + 2 for each row of the bias: `(..., h, n)`; `gate(..)[..., None] * bias(..)` is added to the scores.

    `x` is the input of the layer, not the query; u and r are sigmoids of sums of 4 outputs of the linear layer each.

    >>> gate(np.zeros((1, 1, 2)), np.ones((8, 2)), np.zeros(8), np.array([1.0]))
    array([[1.75]])
    """
    parts = x @ np.swapaxes(weight, 0, 1) + offset
    update, reset = ((1 + np.tanh(half.sum(axis=-1) / 2)) / 2 for half in (parts[..., :4], parts[..., 4:]))
    return update * (reset * constant[:, None] - 1) + 2


@contract
def bias_gradient(
    score_gradient: Numbers[Array, "... h n_query n_key"],
    query_positions: SignedIntegers[Array, "... n_query"],
    key_positions: SignedIntegers[Array, "... n_key"],
    *,
    buckets: Integer = 32,
    max_distance: Integer = 128,
    bidirectional: bool,
) -> Numbers[Array, "buckets h"]:
    """The gradient by the table of `bias`: the gradient by each score is added to the bucket of its offset, `(buckets, h)`.

    >>> positions = np.array([0, 1, 2])
    >>> bias_gradient(np.ones((1, 3, 3)), positions, positions, buckets=4, max_distance=8, bidirectional=False)[:, 0]
    array([6., 2., 1., 0.])
    """
    offset = offsets_between(query_positions, key_positions)
    index = bucket(offset, buckets=buckets, max_distance=max_distance, bidirectional=bidirectional)
    same = index[..., None, :, :, None] == np.arange(buckets)
    by_bucket = np.where(same, score_gradient[..., None], 0).sum(axis=(-3, -2))
    return by_bucket.sum(axis=tuple(range(by_bucket.ndim - 2))).T


def _require_range(function, buckets, sides, max_distance):
    """Every side has exact buckets and logarithmic ones, and max_distance lies beyond the exact ones."""
    side = buckets // sides
    if buckets % sides != 0:
        raise ValueError(f"{function}: buckets is {buckets}, expected an even number when bidirectional: half for each side")
    if side < 2:
        raise ValueError(f"{function}: buckets is {buckets}, which leaves {side} on a side, expected at least 2")
    if max_distance <= side // 2:
        raise ValueError(
            f"{function}: max_distance is {max_distance} and the first {side // 2} distances have their own bucket; "
            f"expected at least {side // 2 + 1}"
        )
