r"""DeBERTa: disentangled attention; content and position are two vectors, and absolute positions enter at the end.

The content of a word and its relative position are separate vectors. A score is the sum of three products: content with
content, content with position (seen from the query), and position with content (seen from the key).

Also called: disentangled attention, EMD, enhanced mask decoder, c2p, p2c.

Definition. Content q_i, k_j and position rows q^r_m, k^r_m, m = 0 .. 2K - 1, each after its own projection:

    s_ij = scale (c2c_ij + c2p_ij + p2c_ij)
    c2c_ij = q_i . k_j                         content to content
    c2p_ij = q_i . k^r_{delta(i, j)}           content to position
    p2c_ij = k_j . q^r_{delta(j, i)}           position to content, convention="paper"
    p2c_ij = k_j . q^r_{delta(i, j)}           position to content, convention="released"
    delta(i, j) = clip(i - j + K, 0, 2K - 1)

In versions 2 and 3 the offset o = j - i first goes into one of B = `buckets` on a logarithmic scale, with m = B/2 and
M = max_position - 1:

    bucket(o) = o                                                           for |o| <= m
    bucket(o) = sign(o) (m + ceil((m - 1) log(|o| / m) / log(M / m)))       for m < |o| <= M

The enhanced mask decoder runs the last layer on its input H, with the query from the absolute positions p:

    x_0 = p                convention="paper"
    x_0 = H + p            convention="released"
    x_t = layer(query = x_{t-1}, keys and values = H),  t = 1 .. steps

Symbols.

    q (..., h, n_query, d)          content, as queries
    k (..., h, n_key, d)            content, as keys
    q_r, k_r (..., h, 2K, d)        position rows, the same for all layers before their projection
    offsets (..., n_query, n_key)   integers j - i, the negative of the paper's i - j
    K                               span, half of the rows: 512 in the paper, the number of log buckets in versions 2 and 3
    H, p (..., n, d)                input of the last layer, and absolute positions

Conventions. `scale` covers all terms: 1/sqrt(3d) with both position terms, 1/sqrt(d (1 + terms)) in general. delta gives K
keys to the right and K - 1 to the left rows of their own. Reversing the rows of q_r, m to 2K - m, turns one convention into
the other for |j - i| < K. In versions 2 and 3 `offsets` is `log_bucket(offsets, ..)`, and the rows pass a LayerNorm
(norm_rel_ebd) and the projections of the content itself (share_att_key).

Example. Four tokens and K = 2: delta(i, j), whose transpose is delta(j, i).

>>> positions = np.arange(4)
>>> position_index(positions - positions[:, None], span=2)
array([[2, 1, 0, 0],
       [3, 2, 1, 0],
       [3, 3, 2, 1],
       [3, 3, 3, 2]])

Where implementations differ.

    what | who | value | version | source
    row of position to content | the paper | delta(j, i) | arXiv 2006.03654 | Eq. (4)
    row of position to content | microsoft/DeBERTa | delta(i, j), so its checkpoints want "released" | 4d7fe0b
      | deberta/disentangled_attention.py
    row of position to content | transformers | delta(i, j) | 5.23.0 | modeling_deberta.py, modeling_deberta_v2.py
    offsets before log_bucket | microsoft/DeBERTa | clipped to max_position - 1, so row 0 is never read | 4d7fe0b
      | deberta/da_utils.py
    offsets before log_bucket | transformers | not clipped; keys max_position to the right read row 0 | 5.23.0
      | modeling_deberta_v2.py
    rounding of the log buckets | microsoft/DeBERTa | ceil of float32 logarithms, right for 256 and 512 | 4d7fe0b
      | deberta/da_utils.py
    rounding of the log buckets | transformers | the same; buckets 18, max_position 17, distance 12: 14, not 13 | 5.23.0
      | modeling_deberta_v2.py
    n_query unequal to n_key | transformers, version 2 | fails | 5.23.0 | modeling_deberta_v2.py
    enhanced mask decoder | the paper | starts from p | arXiv 2006.03654 | appendix A.8
    enhanced mask decoder | microsoft/DeBERTa | starts from H + p | 4d7fe0b | -
    enhanced mask decoder | transformers | left out (z_steps = 0) | 5.23.0 | -

References. He et al., arXiv 2006.03654, Eqs. (3), (4), section 3.2 and appendix A.8; microsoft/DeBERTa 4d7fe0b.
"""

from bisect import bisect_right
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from posref._contract import Array, Count, Integer, Integers, Number, Numbers, SignedIntegers, contract
from posref.offsets import clip, gather_rows, scatter_rows

Convention = Literal["paper", "released"]
Source = Literal["microsoft", "transformers"]
CONVENTIONS, SOURCES = get_args(Convention), get_args(Source)
PRESETS = {
    "deberta": {"rows": 1024, "terms": 2, "source": "arXiv 2006.03654 section 3.1.1"},
    "deberta_v3": {"rows": 512, "terms": 2, "buckets": 256, "max_position": 512, "source": "microsoft/DeBERTa rtd_base.json"},
}

ROWS = "half of the rows are for each direction"


@contract(q_r=ROWS, k_r=ROWS)
def scores(
    q: Numbers[Array, "... n_query d"],
    k: Numbers[Array, "... n_key d"],
    q_r: Numbers[Array, "... 2*span_key d"] | None,
    k_r: Numbers[Array, "... 2*span d"] | None,
    offsets: SignedIntegers[Array, "[...] n_query n_key"],
    *,
    scale: Number,
    convention: Convention,
) -> Numbers[Array, "... n_query n_key"]:
    """Content, content-to-position and position-to-content: `(..., h, n_query, n_key)`. He et al. Eq. (4).

    `k_r=None` leaves out content-to-position, `q_r=None` position-to-content (and `scale` counts the terms that are left).
    `offsets` `(n_query, n_key)` or with all axes of q. TypeError unless signed integers; ValueError if shapes disagree.

    >>> q = k = np.ones((1, 2, 1))
    >>> q_r, k_r = np.array([[[0.0], [10.0], [20.0], [30.0]]]), np.array([[[0.0], [1.0], [2.0], [3.0]]])
    >>> offsets = np.array([[0, 1], [-1, 0]])
    >>> scores(q, k, q_r, k_r, offsets, scale=1, convention="paper")
    array([[[23., 32.],
            [14., 23.]]])
    """
    total = q @ np.swapaxes(k, -1, -2)
    if k_r is not None:
        total = total + content_to_position(q, k_r, offsets)
    if q_r is not None:
        total = total + position_to_content(k, q_r, offsets, convention=convention)
    return scale * total


class Gradient(NamedTuple):
    """The gradients of a scalar by the inputs of `scores`, given its gradient by every score."""

    q: Array
    k: Array
    q_r: Array
    k_r: Array


@contract(q_r=ROWS, k_r=ROWS)
def scores_gradient(
    score_gradient: Numbers[Array, "... n_query n_key"],
    q: Numbers[Array, "... n_query d"],
    k: Numbers[Array, "... n_key d"],
    q_r: Numbers[Array, "... 2*span d"],
    k_r: Numbers[Array, "... 2*span d"],
    offsets: SignedIntegers[Array, "[...] n_query n_key"],
    *,
    scale: Number,
    convention: Convention,
) -> Gradient:
    """The gradients by the four inputs, from the gradient by every score. Rows that a batch shares get the sum over the batch.

    >>> q = k = np.ones((1, 2, 1))
    >>> rows, offsets = np.array([[[0.0], [1.0], [2.0], [3.0]]]), np.array([[0, 1], [-1, 0]])
    >>> scores_gradient(np.ones((1, 2, 2)), q, k, rows, rows, offsets, scale=1, convention="paper").k_r[0, :, 0]
    array([0., 1., 2., 1.])
    """
    span, turned = k_r.shape[-2] // 2, np.swapaxes(score_gradient, -1, -2)
    by_query = scatter_rows(score_gradient, position_index(offsets, span=span), 0, 2 * span)
    by_key = scatter_rows(turned, np.swapaxes(_by_key(offsets, span, convention), -1, -2), 0, 2 * span)
    return Gradient(
        scale * (score_gradient @ k + by_query @ k_r),
        scale * (turned @ q + by_key @ q_r),
        scale * (np.swapaxes(by_key, -1, -2) @ k),
        scale * (np.swapaxes(by_query, -1, -2) @ q),
    )


@contract(k_r=ROWS)
def content_to_position(
    q: Numbers[Array, "... n_query d"],
    k_r: Numbers[Array, "... 2*span d"],
    offsets: SignedIntegers[Array, "[...] n_query n_key"],
) -> Numbers[Array, "... n_query n_key"]:
    """q_i . k^r[delta(i, j)], not scaled: `(..., h, n_query, n_key)`. He et al. Eq. (4) (b).

    >>> content_to_position(np.ones((1, 1, 1)), np.arange(4.0)[None, :, None], np.array([[-5, -1, 0, 1, 2, 5]]))
    array([[[3., 3., 2., 1., 0., 0.]]])
    """
    index = position_index(offsets, span=k_r.shape[-2] // 2)
    return gather_rows(q @ np.swapaxes(k_r, -1, -2), index, 0)


@contract(q_r=ROWS)
def position_to_content(
    k: Numbers[Array, "... n_key d"],
    q_r: Numbers[Array, "... 2*span d"],
    offsets: SignedIntegers[Array, "[...] n_query n_key"],
    *,
    convention: Convention,
) -> Numbers[Array, "... n_query n_key"]:
    """k_j . q^r[delta(j, i)], He et al. Eq. (4) (c), or k_j . q^r[delta(i, j)], not scaled: `(..., h, n_query, n_key)`.

    >>> k, rows, offsets = np.ones((1, 6, 1)), np.arange(4.0)[None, :, None], np.array([[-5, -1, 0, 1, 2, 5]])
    >>> position_to_content(k, rows, offsets, convention="paper")
    array([[[0., 1., 2., 3., 3., 3.]]])
    >>> position_to_content(k, rows, offsets, convention="released")
    array([[[3., 3., 2., 1., 0., 0.]]])
    """
    span = q_r.shape[-2] // 2
    index = _by_key(offsets, span, convention)
    by_key = gather_rows(k @ np.swapaxes(q_r, -1, -2), np.swapaxes(index, -1, -2), 0)
    return np.swapaxes(by_key, -1, -2)


def _by_key(offsets, span, convention):
    """The row that position-to-content reads for each pair: delta(j, i) in the paper, delta(i, j) as released."""
    return position_index(-clip(offsets, -span, span) if convention == "paper" else offsets, span=span)


@contract
def position_index(offsets: SignedIntegers[Array, "..."], *, span: Count) -> Integers[Array, "..."]:
    """delta(i, j) = clip(i - j + K, 0, 2K - 1) with K = `span`, from the offsets j - i. He et al. Eq. (3).

    >>> position_index(np.array([-3, -2, -1, 0, 1, 2, 3]), span=2)
    array([3, 3, 3, 2, 1, 0, 0])
    """
    return span - clip(offsets, 1 - span, span)


@contract
def bucket_ends(buckets: Integer, max_position: Integer) -> Integers[Array, "buckets"]:
    """The last distance of every log bucket 0 .. buckets - 1: int64 `(buckets,)`, exact.

    With m = buckets/2 and M = max_position - 1: k itself up to m, then the weighted geometric means m^{1-k/(m-1)} M^{k/(m-1)},
    k = 0 .. m - 1, rounded down; the powers are integers, so no rounded logarithm decides. Equal neighbors are unused buckets.
    ValueError unless `buckets` is even, at least 4, and `max_position` > buckets/2 + 1.

    >>> bucket_ends(8, 109)
    array([  0,   1,   2,   3,   4,  12,  36, 108])
    """
    _require_range("deberta.bucket_ends", buckets, max_position)
    middle, last = buckets // 2, max_position - 1
    power, distances = middle - 1, range(last + 1)
    means = [last**k * middle ** (power - k) for k in range(middle)]
    return np.array([*range(middle), *(bisect_right(distances, mean, key=lambda n: n**power) - 1 for mean in means)])


@contract
def log_bucket(
    offsets: SignedIntegers[Array, "..."], *, buckets: Integer, max_position: Integer, source: Source
) -> Integers[Array, "..."]:
    """Offsets beyond buckets/2 on a logarithmic scale, sign kept: integers, shape of `offsets`. make_log_bucket_position.

    A distance of max_position or more counts as max_position - 1 ("microsoft") or is in bucket `buckets` ("transformers",
    which goes on counting; `position_index` clips that away, at one end to another row than "microsoft").

    >>> far = np.array([-512, -511, -200, -128, 0, 127, 129, 511, 512])
    >>> log_bucket(far, buckets=256, max_position=512, source="microsoft")
    array([-255, -255, -169, -128,    0,  127,  129,  255,  255])
    >>> log_bucket(far, buckets=256, max_position=512, source="transformers")
    array([-256, -255, -169, -128,    0,  127,  129,  255,  256])
    """
    _require_range("deberta.log_bucket", buckets, max_position)
    ends = bucket_ends(buckets, max_position)
    far = max_position if source == "transformers" else max_position - 1
    near = clip(offsets, -far, far)
    return np.sign(near) * np.searchsorted(ends, np.abs(near), side="left")


@contract
def enhanced_mask_decoder(
    layer: Callable[[Any, Any], Any],
    hidden: Numbers[Array, "... n d"],
    positions: Numbers[Array, "#... n d"],
    *,
    steps: Count = 2,
    convention: Convention,
) -> Numbers[Array, "... n d"]:
    """The last layer run `steps` times over H, the input of that layer; the query starts from absolute positions.

    `layer(query, key_value)` is the whole last layer, residual on the query included; `hidden` H and the absolute encoding
    `positions` p are `(..., n, d)`. The first query is p ("paper", appendix A.8) or H + p ("released"), the next ones the
    previous output; keys and values are H each time. ValueError for steps below 1 or unequal widths.

    >>> layer = lambda query, key_value: 10 * query + key_value
    >>> enhanced_mask_decoder(layer, np.array([[1.0]]), np.array([[2.0]]), convention="paper")
    array([[211.]])
    >>> enhanced_mask_decoder(layer, np.array([[1.0]]), np.array([[2.0]]), convention="released")
    array([[311.]])
    """
    query = hidden + positions if convention == "released" else np.broadcast_to(positions, hidden.shape)
    for _ in range(steps):
        query = layer(query, hidden)
    return query


def _require_range(function, buckets, max_position):
    """Log buckets stand beyond the distances that have their own."""
    if buckets % 2 != 0 or buckets < 4 or max_position < buckets // 2 + 2:
        raise ValueError(
            f"{function}: buckets is {buckets} and max_position {max_position}; expected an even number of at least 4 "
            f"and a position of at least {buckets // 2 + 2}, beyond the distances with their own bucket"
        )
