r"""RoPE in linear attention: rotated feature maps above the fraction, unrotated below.

Linear attention needs no matrix of all pairs of tokens. A rotation acts on each vector alone, so it keeps this property.

Also called: linear RoPE, rotary Performer.

Definition. With a non-negative feature map phi, over all j, or over j <= i when causal:

    o_i = sum_j <R(i) phi(q_i), R(j) phi(k_j)> v_j  /  sum_j <phi(q_i), phi(k_j)>
    S_i = sum_{j <= i} R(j) phi(k_j) v_j^T
    z_i = sum_{j <= i} phi(k_j)

Both sums factor, so no (n, n) matrix is needed: R(i) phi(q_i) meets the prefix sum S_i, and phi(q_i) meets z_i.

Symbols.

    q, k (..., h, n, d)        queries and keys
    v (..., h, n, d_v)         values
    cos, sin (..., n, pairs)   from `rope.tables`, for half the width that phi gives
    S (..., h, n, d, d_v)      prefix sums of the numerator
    z (..., h, n, d)           prefix sums of the denominator
    o (..., h, n, d_v)         output

Conventions. The rotation comes after phi; no scale. The paper allows a map each for queries and keys, here one serves both.
Row order is time: causal means j <= i by row, whatever the positions in the tables. Queries and keys are the same tokens.
Rotating q and k before phi is another system: its weights are positive but, phi not being linear, they depend on i and j, not
on j - i. Rotating the denominator as well is relative, but it can vanish or become negative: with d = 2, theta = 1 and
phi(q) = phi(k) = (1, 0) one key at offset 3 gives cos 3 = -0.99. The paper's denominator is positive, and the price is that
weights may be negative and need not sum to 1.

Example. Three equal tokens whose values are 1: an average would be 1, and with rotated numerators it is less.

>>> x, one = np.zeros((3, 2)), np.ones((3, 1))
>>> cos, sin = rope.tables(np.arange(3), np.ones(1))
>>> given = {"layout": "half", "feature_map": elu_plus_one}
>>> attend(x, x, one, cos, sin, **given, causal=False).round(3).ravel()
array([0.375, 0.694, 0.375])

Where implementations differ.

    what | who | value | version | source
    rotation | Su et al. | after phi, in the numerator alone | arXiv 2104.09864 | section 3.3, Eq. (19)
    feature map | Katharopoulos et al. | elu(x) + 1 | arXiv 2006.16236 | section 3.2.1

References. Su et al., RoFormer, arXiv 2104.09864, section 3.3, Eq. (19); the feature map: Katharopoulos et al.,
arXiv 2006.16236.
"""

from collections.abc import Callable

import numpy as np

from posref import _require
from posref._contract import Array, Numbers, contract
from posref.pairing import Layout
from posref.rotary import rope


@contract
def elu_plus_one(x: Numbers[Array, "..."]) -> Numbers[Array, "..."]:
    """phi(x) = elu(x) + 1, that is x + 1 where x > 0 and e^x elsewhere; positive. Katharopoulos et al.

    >>> elu_plus_one(np.array([-1.0, 0.0, 2.0])).round(4)
    array([0.3679, 1.    , 3.    ])
    """
    return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0 * x)))  # the other branch must not overflow


@contract
def attend(
    q: Numbers[Array, "... n d"],
    k: Numbers[Array, "... n d"],
    v: Numbers[Array, "... n d_v"],
    cos: Numbers[Array, "(...) #n pairs"],
    sin: Numbers[Array, "=cos"],
    *,
    layout: Layout,
    feature_map: Callable[[Array], Array],
    causal: bool,
) -> Numbers[Array, "... n d_v"]:
    """o_i of RoFormer Eq. (19): `(..., n, d_v)`; all keys, or the keys up to the query's row if `causal`.

    `feature_map` is a function of arrays that maps every row by itself, for instance `elu_plus_one`. ValueError if q, k and
    v differ in length, or a denominator is zero, which a positive feature map rules out.

    >>> ones = np.ones((2, 2))
    >>> cos, sin = rope.tables(np.array([0, 1]), np.array([1.0]))
    >>> attend(ones, ones, np.array([[1.0], [3.0]]), cos, sin, layout="half", feature_map=elu_plus_one, causal=True).round(4)
    array([[1.    ],
           [1.7702]])
    """
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
    _require.denominators("linear_attention.attend", denominator, "use a positive feature_map, for instance elu_plus_one")
    return numerator / denominator
