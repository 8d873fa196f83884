r"""Stick-breaking attention: each key takes a share of the weight that the keys after it have left, nearest first.

A softmax does not depend on order. Here the most recent key that matches takes most of the weight, so the order of tokens
enters through the weights themselves, and no position is needed.

Also called: stick breaking, geometric attention.

Definition. With z_ij = q_i . k_j / sqrt(d) and the keys j < i, or j <= i:

    A_ij = sigmoid(z_ij) prod_{j<l<i} (1 - sigmoid(z_il))
    r_i  = prod_{j<i} (1 - sigmoid(z_ij)) = 1 - sum_j A_ij
    o_i  = sum_j A_ij v_j

Symbols.

    z, scores (..., n_query, n_key)   scaled scores
    mask (n_query, n_key)             True where a key may take, in the order of the keys
    A (..., n_query, n_key)           weights
    r (..., n_query)                  the remainder: what no key took

Conventions. The stick is broken from the last allowed key to the first. Masked keys take nothing and leave everything. By
default a token does not see itself, so the first one has weights 0 and the remainder 1. Rows do not sum to 1.

Example. Every score is 0, so each key takes half of what is left.

>>> weights(np.zeros((3, 3)), np.tril(np.ones((3, 3), bool), -1))
array([[0.  , 0.  , 0.  ],
       [0.5 , 0.  , 0.  ],
       [0.25, 0.5 , 0.  ]])

Where implementations differ.

    what | who | value | version | source
    keys | paper's code | j < i; j <= i with attend_current | 3147a3841b | stickbreaking_attention/sb_ref.py
    remainder | paper's code | given beside o; its tests add r_i v_i | 3147a3841b | tests/test_varlen.py

References. Tan et al., Scaling Stick-Breaking Attention, arXiv 2410.17980; github.com/shawntan/stickbreaking-attention.
"""

import numpy as np

from posref._contract import Array, Booleans, Numbers, Signed, contract, finite
from posref.relative.forgetting import log_sigmoid


@contract
def weights(
    scores: Signed[Array, "... n_query n_key", finite], mask: Booleans[Array, "(...) #n_query #n_key"]
) -> Numbers[Array, "... n_query n_key"]:
    """A_ij = exp(z_ij + sum_{l>=j} ln(1 - sigmoid(z_il))), the product as a sum of logarithms: shape of `scores`.

    The ratio sigmoid(z) / (1 - sigmoid(z)) is exp(z), so one sum of logarithms is enough. Only keys allowed by `mask` are
    summed.

    >>> weights(np.array([[0.0, 1000.0, 0.0]]), np.array([[True, True, True]]))
    array([[0. , 0.5, 0.5]])
    """
    z = mask * scores
    left = mask * log_sigmoid(-z)
    return mask * np.exp(z + np.cumsum(left[..., ::-1], axis=-1)[..., ::-1])


@contract
def remainder(
    scores: Signed[Array, "... n_query n_key", finite], mask: Booleans[Array, "(...) #n_query #n_key"]
) -> Numbers[Array, "... n_query"]:
    """r_i = prod (1 - sigmoid(z_ij)), the weight that no key took: `(..., n_query)`. The paper's code returns r too.

    >>> remainder(np.zeros((2, 2)), np.array([[False, False], [True, True]]))
    array([1.  , 0.25])
    """
    return np.exp((mask * log_sigmoid(-scores)).sum(axis=-1))
