r"""Retention: one state per head replaces the KV cache; each head forgets at a fixed rate.

At each step attention reads all earlier tokens again. Retention keeps one matrix per head. At each token the matrix is
multiplied by the head's decay, and k v^T of the token is added. So a step costs the same at any length.

Also called: RetNet, retentive network, lightning attention, MiniMax.

Definition. Head h has the decay g between 0 and 1; queries and keys may have been rotated before (RoPE, xPos):

    S_i = g S_{i-1} + k_i v_i^T                            recurrent, S_{-1} = 0 or the last state of an earlier call
    o_i = s q_i . S_i
    o_i = s sum_{j<=i} g^(i-j) (q_i . k_j) v_j + s g^(i+1) q_i . S_{-1}      quadratic
    g_h = 1 - 2^(-5-h)                                     decays of RetNet, h from 0

and chunked: the quadratic form of a few tokens at a time; each chunk begins with the last state of the chunk before.

Symbols.

    q, k (..., h, n, d)       queries and keys, rotated or not
    v (..., h, n, d_v)        values
    decays (h,)               g, one per head
    s                         scale; RetNet and MiniMax differ
    S (..., h, d, d_v)        `state`: keys by values
    o (..., h, n, d_v)        output

Conventions. The token's own key and value do not decay: their weight is q_i . k_i; the token before has the factor g. There is
no softmax and no denominator; RetNet normalizes the output per head and token afterwards, so a factor per row has no effect
there. A text that goes on takes the state that the last call returned. A score g^(i-j) q . R(j - i) k depends on the offset
alone; xPos with one pair of features, without a softmax, is a retention.

Example. Equal keys and values, decay 1/2: the sum 1 + 1/2 + 1/4 + .. is built up.

>>> one = np.ones((1, 3, 1))
>>> recurrent(one, one, one, np.array([0.5]), scale=1).output.ravel()
array([1.  , 1.5 , 1.75])

Where implementations differ.

    what | who | value | version | source
    scale | torchscale | the key is multiplied by d^(-1/2) | 4d1e0e82e5 | torchscale/component/multiscale_retention.py
    scale | MiniMax in transformers | 1; queries, keys and values go through SiLU | 5.23.0 | modeling_minimax.py
    decay | MiniMax in transformers | exp(-m f), m = 2^(-8(h+1)/H), f = 1 - layer / (layers - 1 + 1e-5) + 1e-5 | 5.23.0
      | modeling_minimax.py get_slope_rate
    normalization | torchscale, parallel | rows over sqrt(sum_j g^(i-j)), then over max(1, sum_j |.|), at most 5e4 | 4d1e0e82e5
      | torchscale/component/multiscale_retention.py parallel_forward
    normalization | torchscale, recurrent | the state is divided by sqrt(sum_j g^(i-j)) alone; RMSNorm makes them equal
      | 4d1e0e82e5 | torchscale/component/multiscale_retention.py recurrent_forward
    rotation | fla, reference | none: the layer rotates q and k before | bc3b101dcb | fla/ops/retention/naive.py
    frequencies | torchscale | base^(-t / (d/2 - 1)), so the last is 1/base; RoPE divides by d/2 | 4d1e0e82e5
      | torchscale/architecture/retnet.py

References. Sun et al., Retentive Network, arXiv 2307.08621, Eq. (1) to (8); Qin et al., Lightning Attention-2,
arXiv 2401.04658.
"""

import numpy as np

from posref._contract import Array, Count, Number, Numbers, contract
from posref.state._memory import Remembered, in_chunks, start

Queries = Numbers[Array, "... h n! d"]
Keys = Numbers[Array, "... h n d"]
Values = Numbers[Array, "... h n d_v"]
Decays = Numbers[Array, "h"]
State = Numbers[Array, "... h d d_v"] | None


@contract
def decays(heads: Count) -> Numbers[Array, "heads"]:
    """g_h = 1 - 2^(-5-h), h from 0: `(heads,)`. Sun et al., Eq. (8).

    >>> decays(2)
    array([0.96875 , 0.984375])
    """
    return 1 - 1 / 2 ** (5 + np.arange(heads))


@contract
def recurrent(q: Queries, k: Keys, v: Values, decays: Decays, *, scale: Number, state: State = None) -> Remembered:
    """o_i and the last S: `(..., h, n, d_v)` and `(..., h, d, d_v)`. Sun et al., Eq. (6).

    >>> one = np.ones((1, 2, 1))
    >>> recurrent(one, one, one, np.array([0.5]), scale=1, state=np.array([[[4.0]]]))
    Remembered(output=array([[[3. ],
            [2.5]]]), state=array([[[2.5]]]))
    """
    s, outputs = start(k, v, state), []
    for t in range(k.shape[-2]):
        s = decays[:, None, None] * s + k[..., t, :, None] * v[..., t, None, :]
        outputs.append(scale * (q[..., t, None, :] @ s))
    return Remembered(np.concatenate(outputs, axis=-2), s)


@contract
def quadratic(q: Queries, k: Keys, v: Values, decays: Decays, *, scale: Number, state: State = None) -> Remembered:
    """The result of `recurrent`, from the matrix of all g^(i-j) q_i . k_j. Sun et al., Eq. (5).

    >>> one = np.ones((1, 2, 1))
    >>> quadratic(one, one, one, np.array([0.5]), scale=1).output.ravel()
    array([1. , 1.5])
    """
    s, tokens = start(k, v, state), np.arange(k.shape[-2])
    powers = np.stack([decays**m for m in range(k.shape[-2] + 1)], axis=-1)
    seen = tokens[:, None] >= tokens
    weights = scale * (q @ np.swapaxes(k, -1, -2)) * seen * powers[:, seen * (tokens[:, None] - tokens)]
    after = powers[:, -1, None, None] * s + np.swapaxes(powers[:, -2::-1, None] * k, -1, -2) @ v
    return Remembered(weights @ v + scale * ((powers[:, 1:, None] * q) @ s), after)


@contract
def chunked(q: Queries, k: Keys, v: Values, decays: Decays, *, scale: Number, chunk: Count, state: State = None) -> Remembered:
    """The result of `recurrent`, `chunk` tokens at a time; the last chunk may be shorter. Sun et al., Eq. (7).

    >>> one = np.ones((1, 5, 1))
    >>> chunked(one, one, one, np.array([0.5]), scale=1, chunk=2).output.ravel()
    array([1.    , 1.5   , 1.75  , 1.875 , 1.9375])
    """

    def form(q, k, v, *, state):
        return quadratic(q, k, v, decays, scale=scale, state=state)

    return in_chunks(form, chunk, state, q, k, v)
