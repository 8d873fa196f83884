r"""DeBERTa: disentangled attention; content meets position twice, and absolute positions enter at the end.

Definition. With projected content q_i, k_j and projected position rows q^r, k^r, 2K of each:

    s_ij = scale (q_i . k_j  +  q_i . k^r[delta(i, j)]  +  k_j . q^r[p2c_ij])
    delta(i, j) = clip(i - j + K, 0, 2K - 1)
    p2c_ij = delta(j, i)  (convention="paper")  or  delta(i, j)  (convention="released")

Symbols. q (..., h, n_query, d), k (..., h, n_key, d); q_r, k_r (..., h, 2K, d); offsets j - i, integers (n_query, n_key).

Conventions. The paper counts i - j, the negative of the offset here. `scale` covers all terms: 1/sqrt(3d) with both
position terms, 1/sqrt(d (1 + terms)) in general. K is half the number of rows: 512 in the paper. In versions 2 and 3 K counts
the log buckets, `offsets` is `log_bucket(offsets, ..)`, and the rows pass a LayerNorm (norm_rel_ebd) and the projections of
the content itself (share_att_key).

Where implementations differ. The second index: delta(j, i) in the paper, Eq. (4), delta(i, j) in microsoft/DeBERTa
(deberta/disentangled_attention.py) and transformers 5.23.0 (modeling_deberta.py, modeling_deberta_v2.py), so their
checkpoints want "released". Reversing the rows of q_r, m to 2K - m, turns one into the other for |j - i| < K. Ends: delta
tells K keys to the right apart, K - 1 to the left. microsoft/DeBERTa (da_utils.py) clips offsets to max_position - 1 before
log_bucket and so never reads row 0; in transformers keys max_position to the right read it. Both take the ceil of float32
logarithms: one off at some exact ties (transformers, buckets 18, max_position 17, distance 12: 14, not 13), not for the
published 256 and 512. transformers' version 2 fails unless n_query is n_key. The enhanced mask decoder starts from p in the
paper, from H + p in microsoft/DeBERTa; transformers leaves it out (z_steps = 0).

Properties. proofs/relative/deberta.py: pinned (both conventions); conventions_agree_exactly_on_symmetric_rows; index_pinned,
ends_are_asymmetric and translation_invariant; without_position_to_position; scale_counts_terms; ends_pinned and
log_buckets_pinned (in integers, ties included); rounded_logarithms (float32 and float64); decoder_pinned.

References. He et al., arXiv 2006.03654, Eqs. (3), (4), section 3.2 and appendix A.8; microsoft/DeBERTa 4d7fe0b.
"""

from bisect import bisect_right

import numpy as np

from posref import _require
from posref.relative.offsets import clip, gather_rows

CONVENTIONS = ("paper", "released")
SOURCES = ("microsoft", "transformers")
PRESETS = {
    "deberta": {"rows": 1024, "terms": 2, "source": "arXiv 2006.03654 section 3.1.1"},
    "deberta_v3": {"rows": 512, "terms": 2, "buckets": 256, "max_position": 512, "source": "microsoft/DeBERTa rtd_base.json"},
}


def scores(q, k, q_r, k_r, offsets, *, scale, convention):
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
    _require.array("deberta.scores", "q", q, ndim=3)
    _require.array("deberta.scores", "k", k, ndim=3)
    _require.same_width("deberta.scores", "q", q, "k", k)
    _require.choice("deberta.scores", "convention", convention, CONVENTIONS)
    _require_offsets("deberta.scores", offsets, ndim=2)
    if offsets.shape[-2:] != (q.shape[-2], k.shape[-2]):
        raise ValueError(f"deberta.scores: offsets has shape {offsets.shape}, expected (.., {q.shape[-2]}, {k.shape[-2]})")
    total = q @ np.swapaxes(k, -1, -2)
    if k_r is not None:
        total = total + content_to_position(q, k_r, offsets)
    if q_r is not None:
        total = total + position_to_content(k, q_r, offsets, convention=convention)
    return scale * total


def content_to_position(q, k_r, offsets):
    """q_i . k^r[delta(i, j)], not scaled: `(..., h, n_query, n_key)`. He et al. Eq. (4) (b).

    >>> content_to_position(np.ones((1, 1, 1)), np.arange(4.0)[None, :, None], np.array([[-5, -1, 0, 1, 2, 5]]))
    array([[[3., 3., 2., 1., 0., 0.]]])
    """
    _require_rows("deberta.content_to_position", "q", q, "k_r", k_r, offsets, axis=-2)
    index = position_index(offsets, span=k_r.shape[-2] // 2)
    return gather_rows(q @ np.swapaxes(k_r, -1, -2), index, 0)


def position_to_content(k, q_r, offsets, *, convention):
    """k_j . q^r[delta(j, i)], He et al. Eq. (4) (c), or k_j . q^r[delta(i, j)], not scaled: `(..., h, n_query, n_key)`.

    >>> k, rows, offsets = np.ones((1, 6, 1)), np.arange(4.0)[None, :, None], np.array([[-5, -1, 0, 1, 2, 5]])
    >>> position_to_content(k, rows, offsets, convention="paper")
    array([[[0., 1., 2., 3., 3., 3.]]])
    >>> position_to_content(k, rows, offsets, convention="released")
    array([[[3., 3., 2., 1., 0., 0.]]])
    """
    _require.choice("deberta.position_to_content", "convention", convention, CONVENTIONS)
    _require_rows("deberta.position_to_content", "k", k, "q_r", q_r, offsets, axis=-1)
    span = q_r.shape[-2] // 2
    index = position_index(-clip(offsets, -span, span) if convention == "paper" else offsets, span=span)
    by_key = gather_rows(k @ np.swapaxes(q_r, -1, -2), np.swapaxes(index, -1, -2), 0)
    return np.swapaxes(by_key, -1, -2)


def position_index(offsets, *, span):
    """delta(i, j) = clip(i - j + K, 0, 2K - 1) with K = `span`, from the offsets j - i. He et al. Eq. (3).

    >>> position_index(np.array([-3, -2, -1, 0, 1, 2, 3]), span=2)
    array([3, 3, 3, 2, 1, 0, 0])
    """
    _require_offsets("deberta.position_index", offsets)
    _require.count("deberta.position_index", "span", span)
    return span - clip(offsets, 1 - span, span)


def bucket_ends(buckets, max_position):
    """The last distance of every log bucket 0 .. buckets - 1: int64 `(buckets,)`, exact.

    With m = buckets/2 and M = max_position - 1: k itself up to m, then the weighted geometric means m^{1-k/(m-1)} M^{k/(m-1)},
    k = 0 .. m - 1, rounded down; the powers are integers, so no rounded logarithm decides. Equal neighbors are unused buckets.
    ValueError unless `buckets` is even, at least 4, and `max_position` > buckets/2 + 1.

    >>> bucket_ends(8, 109)
    array([  0,   1,   2,   3,   4,  12,  36, 108])
    """
    _require.integer("deberta.bucket_ends", "buckets", buckets)
    _require.integer("deberta.bucket_ends", "max_position", max_position)
    if buckets % 2 != 0 or buckets < 4 or max_position < buckets // 2 + 2:
        raise ValueError(
            f"deberta.bucket_ends: buckets is {buckets} and max_position {max_position}; expected an even number of at least 4 "
            f"and a position of at least {buckets // 2 + 2}, beyond the distances with their own bucket"
        )
    middle, last = buckets // 2, max_position - 1
    power, distances = middle - 1, range(last + 1)
    means = [last**k * middle ** (power - k) for k in range(middle)]
    return np.array([*range(middle), *(bisect_right(distances, mean, key=lambda n: n**power) - 1 for mean in means)])


def log_bucket(offsets, *, buckets, max_position, source):
    """Offsets beyond buckets/2 on a logarithmic scale, sign kept: integers, shape of `offsets`. make_log_bucket_position.

    A distance of max_position or more counts as max_position - 1 ("microsoft") or is in bucket `buckets` ("transformers",
    which goes on counting; `position_index` clips that away, at one end to another row than "microsoft").

    >>> far = np.array([-512, -511, -200, -128, 0, 127, 129, 511, 512])
    >>> log_bucket(far, buckets=256, max_position=512, source="microsoft")
    array([-255, -255, -169, -128,    0,  127,  129,  255,  255])
    >>> log_bucket(far, buckets=256, max_position=512, source="transformers")
    array([-256, -255, -169, -128,    0,  127,  129,  255,  256])
    """
    _require_offsets("deberta.log_bucket", offsets)
    _require.choice("deberta.log_bucket", "source", source, SOURCES)
    ends = bucket_ends(buckets, max_position)
    far = max_position if source == "transformers" else max_position - 1
    near = clip(offsets, -far, far)
    return np.sign(near) * np.searchsorted(ends, np.abs(near), side="left")


def enhanced_mask_decoder(layer, hidden, positions, *, steps=2, convention):
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
    _require.array("deberta.enhanced_mask_decoder", "hidden", hidden, ndim=2)
    _require.array("deberta.enhanced_mask_decoder", "positions", positions, ndim=2)
    _require.broadcasts_to("deberta.enhanced_mask_decoder", "positions", positions, "hidden", hidden.shape)
    _require.count("deberta.enhanced_mask_decoder", "steps", steps)
    _require.choice("deberta.enhanced_mask_decoder", "convention", convention, CONVENTIONS)
    query = hidden + positions if convention == "released" else np.broadcast_to(positions, hidden.shape)
    for _ in range(steps):
        query = layer(query, hidden)
    return query


def _require_offsets(function, offsets, ndim=0):
    _require.array(function, "offsets", offsets, kinds=_require.INTEGERS, ndim=ndim)
    if offsets.dtype.kind == "u":
        raise TypeError(f"{function}: offsets has dtype {offsets.dtype}, whose negatives wrap; use .astype(np.int64)")


def _require_rows(function, content_name, content, rows_name, rows, offsets, *, axis):
    _require.array(function, content_name, content, ndim=3)
    _require.array(function, rows_name, rows, ndim=3)
    _require.same_width(function, content_name, content, rows_name, rows)
    _require_offsets(function, offsets, ndim=2)
    if rows.shape[-2] % 2 != 0:
        raise ValueError(f"{function}: {rows_name} has {rows.shape[-2]} rows, expected an even number, half for each direction")
    if offsets.shape[axis] != content.shape[-2]:
        raise ValueError(f"{function}: offsets has shape {offsets.shape} and {content_name} {content.shape[-2]} positions")
    if 2 < len(offsets.shape) < len(content.shape):
        raise ValueError(
            f"{function}: offsets has {len(offsets.shape)} axes and {content_name} {len(content.shape)} "
            f"(shapes {offsets.shape} and {content.shape}); give batched offsets a head axis with [:, None]"
        )
