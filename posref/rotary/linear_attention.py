r"""RoPE in linear attention: rotated feature maps above the fraction, unrotated below.

Definition. With a non-negative feature map phi,

    o_i = sum_j <R(i) phi(q_i), R(j) phi(k_j)> v_j  /  sum_j <phi(q_i), phi(k_j)>

over all j, or over j <= i when causal. Both sums factor, so no (n, n) matrix is needed: R(i) phi(q_i) meets the prefix sum
S_i = sum_{j <= i} R(j) phi(k_j) v_j^T, and phi(q_i) meets z_i = sum_{j <= i} phi(k_j).

Symbols. q, k (..., h, n, d); v (..., h, n, d_v); cos, sin (..., n, d/2) from `rope.tables`; S (..., h, n, d, d_v);
o (..., h, n, d_v). If phi changes the width, d is the width after it.

Conventions. The rotation comes after phi; no scale. The paper allows a map each for queries and keys, here one serves both.
Row order is time: causal means j <= i by row, whatever the positions in the tables. Queries and keys are the same tokens.

Where implementations differ. Rotating q and k before phi is another system: its weights are positive but, phi not being
linear, they depend on i and j, not on j - i. Rotating the denominator as well is relative, but it can vanish or turn negative:
with d = 2, theta = 1 and phi(q) = phi(k) = (1, 0) one key at offset 3 gives cos 3 = -0.99. The paper's denominator is
positive, and the price is that weights may be negative and need not sum to 1.

Properties. proofs/rotary/linear_attention.py: pinned and pinned_for_every_width (the double sum is the prefix sums);
causal_is_all_keys_so_far; relative, with a denominator that mentions no position; weights_are_no_average; rotated_denominator;
feature_map_pinned.

References. Su et al., RoFormer, arXiv 2104.09864, section 3.3, Eq. (19); the feature map: Katharopoulos et al.,
arXiv 2006.16236.
"""

import numpy as np

from posref import _require
from posref.rotary import rope


def elu_plus_one(x):
    """phi(x) = elu(x) + 1, that is x + 1 where x > 0 and e^x elsewhere; positive. Katharopoulos et al.

    >>> elu_plus_one(np.array([-1.0, 0.0, 2.0])).round(4)
    array([0.3679, 1.    , 3.    ])
    """
    _require.array("linear_attention.elu_plus_one", "x", x)
    _require.wide("linear_attention.elu_plus_one", x=x)
    return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0 * x)))  # the other branch must not overflow


def attend(q, k, v, cos, sin, *, layout, feature_map, causal):
    """o_i of RoFormer Eq. (19): `(..., n, d_v)`; all keys, or the keys up to the query's row if `causal`.

    `feature_map` is a function of arrays that maps every row by itself, for instance `elu_plus_one`. ValueError if q, k and
    v differ in length, or a denominator is zero, which a positive feature map rules out.

    >>> ones = np.ones((2, 2))
    >>> cos, sin = rope.tables(np.array([0, 1]), np.array([1.0]))
    >>> attend(ones, ones, np.array([[1.0], [3.0]]), cos, sin, layout="half", feature_map=elu_plus_one, causal=True).round(4)
    array([[1.    ],
           [1.7702]])
    """
    _require_tokens("linear_attention.attend", q, k, v, feature_map, causal)
    phi_q, phi_k = feature_map(q), feature_map(k)
    turned_q, turned_k = (rope.rotate(phi, cos, sin, layout=layout) for phi in (phi_q, phi_k))
    if causal:
        prefix = np.cumsum(turned_k[..., :, None] * v[..., None, :], axis=-3)
        numerator = (turned_q[..., None, :] @ prefix)[..., 0, :]
        total = np.cumsum(phi_k, axis=-2)
    else:
        numerator = turned_q @ (np.swapaxes(turned_k, -1, -2) @ v)
        total = phi_k.sum(axis=-2, keepdims=True)
    denominator = (phi_q * total).sum(axis=-1, keepdims=True)
    _require_nonzero("linear_attention.attend", denominator)
    return numerator / denominator


def _require_tokens(function, q, k, v, feature_map, causal):
    for name, value in (("q", q), ("k", k), ("v", v)):
        _require.array(function, name, value, ndim=2)
        _require.same_width(function, "q", q, name, value, axis=-2)
        _require.leading_axes(function, "q", q, name, value)
    _require.same_width(function, "q", q, "k", k)
    _require.choice(function, "causal", causal, (True, False))
    _require.function(function, "feature_map", feature_map)


def _require_nonzero(function, denominator):
    if denominator.dtype.kind == "f" and (denominator == 0).any():
        raise ValueError(
            f"{function}: {int((denominator == 0).sum())} of {denominator.size} queries have denominator zero; "
            "use a positive feature_map, for instance elu_plus_one"
        )
