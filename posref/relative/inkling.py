r"""Inkling: a bias per distance that content chooses: the query's token mixes trained curves; late queries get a temperature.

A trained bias such as T5's is the same for every token. Here each token gives a few numbers per head, which mix curves that all
heads share: one number per distance. So a token can give most weight to its neighbor, or to tokens some hundred positions back.

Also called: relative logits, RelLogitsProj, content-conditioned relative bias, banded bias, log scaling.

Definition. Row c of P is a curve with one number for each distance 0 .. extent - 1, and r_i mixes the rows:

    b_ij = sum_c r_ic P_{c, i-j}       0 <= i - j < extent,  0 elsewhere
    tau_i = 1 + amount ln(max(i + 1, floor) / floor)
    s_ij = tau_i (scale q_i . k_j + b_ij)

Symbols.

    q (..., h, n_query, d)             queries
    k (..., h_key, n_key, d)           keys, which groups of query heads share
    r (..., h, n_query, curves)        `states`, a projection of the query's token; 16 numbers per head in released models
    P (curves, extent)                 `profiles`, trained, one table per layer for all heads
    i, j (..., n)                      positions, integers
    b (..., h, n_query, n_key)         bias
    tau (..., n_query)                 temperature, 1 up to the position `floor` - 1

Conventions. The distance is query minus key. Keys in the future and keys at `extent` or farther have the bias 0. The bias
masks nothing: attention needs a causal mask, and far keys stay visible. The bias is not multiplied by `scale`. The temperature
counts positions from 1 and multiplies products and bias alike. Layers with a sliding window have the window as extent and no
temperature: amount=0.

Example. One head, one curve, three tokens; the extent is 2.

>>> positions = np.arange(3)
>>> bias(np.array([[[1], [1], [10]]]), np.array([[5, 7]]), positions, positions)
array([[[ 5,  0,  0],
        [ 7,  5,  0],
        [ 0, 70, 50]]])

Where implementations differ.

    what | who | value | version | source
    scale | transformers' Inkling | 1/d, after an RMS norm of each head of q and k | 5.23.0 | modeling_inkling.py
    scale | transformers' Inkling 2 | 1/sqrt(d); q and k are shortened to the norm 22.6 if they are longer | 5.23.0
      | modeling_inkling2.py
    q | transformers' Inkling 2 | times a trained number per head and feature, before it is shortened | 5.23.0
      | modeling_inkling2.py Inkling2ScaledL2Clip
    r | transformers' Inkling 2 | times a trained number per head and curve, then shortened to the norm 8 if longer | 5.23.0
      | modeling_inkling2.py Inkling2ScaledL2Clip
    temperature | transformers' Inkling | from the cache slot: padding on the left counts | 5.23.0 | modeling_inkling.py
    temperature | transformers' Inkling 2 | from position_ids; distances from cache slots | 5.23.0
      | modeling_inkling2.py
    temperature of the bias | transformers' Inkling | multiplies b | 5.23.0 | modeling_inkling.py
    temperature of the bias | transformers' Inkling 2 | multiplies r, which is rounded before the product with P | 5.23.0
      | modeling_inkling2.py
    dtype of the temperature | transformers | float32 | 5.23.0 | modeling_inkling.py, modeling_inkling2.py
    dtype of the temperature | mlx-vlm | that of the activations | 03f36036 | mlx_vlm/models/inkling/language.py
    keys in the future | mlx-vlm | -1e30: bias and mask are one array | 03f36036 | mlx_vlm/models/inkling/language.py

References. Thinking Machines Lab, Inkling and Inkling 2, 2026: transformers 5.23.0, models/inkling and models/inkling2.
"""

import numpy as np

from posref import attention
from posref._contract import Array, Number, Numbers, Positive, Signed, SignedIntegers, contract
from posref.offsets import clip, gather_rows, offsets

PRESETS = {"inkling_2": {"amount": 0.1, "floor": 128000, "source": "transformers 5.23.0 configuration_inkling2.py"}}
CURVES = "one column per distance, one row per curve"


@contract(floor="a configuration calls it log_scaling_n_floor")
def temperature(positions: Signed[Array, "..."], *, amount: Number, floor: Positive) -> Numbers[Array, "..."]:
    """tau = 1 + amount ln(max(i + 1, floor) / floor): what multiplies the scores of a query, shape of `positions`.

    >>> temperature(np.array([7, 15]), amount=0.5, floor=8).round(6)
    array([1.      , 1.346574])
    """
    return 1 + amount * np.log(np.maximum(positions + 1, floor) / floor)


@contract(profiles=CURVES)
def bias(
    states: Numbers[Array, "... h n_query curves"],
    profiles: Numbers[Array, "curves extent"],
    query_positions: SignedIntegers[Array, "... n_query"],
    key_positions: SignedIntegers[Array, "... n_key"],
) -> Numbers[Array, "... h n_query n_key"]:
    """b_ij = r_i . P[:, i - j], 0 for the future and from `extent` on: `(..., h, n_query, n_key)`, for scaled scores.

    >>> bias(np.array([[[2]]]), np.array([[5, 7]]), np.array([4]), np.array([2, 3, 4, 5]))
    array([[[ 0, 14, 10,  0]]])
    """
    distances = -offsets(query_positions, key_positions)[..., None, :, :]
    nearest = clip(distances, 0, profiles.shape[-1] - 1)
    return np.where(distances == nearest, gather_rows(states @ profiles, nearest, 0), 0)


@contract(profiles=CURVES)
def scores(
    q: Numbers[Array, "... h%h_key n_query d"],
    k: Numbers[Array, "... h_key n_key d"],
    states: Numbers[Array, "... h n_query curves"],
    profiles: Numbers[Array, "curves extent"],
    query_positions: SignedIntegers[Array, "... n_query"],
    key_positions: SignedIntegers[Array, "... n_key"],
    *,
    scale: Number,
    amount: Number,
    floor: Positive,
) -> Numbers[Array, "... h n_query n_key"]:
    """s_ij = tau_i (scale q_i . k_j + b_ij): `(..., h, n_query, n_key)`, to go through a softmax with a causal mask.

    Computed in float64.

    >>> one, positions = np.ones((1, 2, 1)), np.array([0, 1])
    >>> scores(one, one, one, np.array([[4, 8]]), positions, positions, scale=0.5, amount=0, floor=1)
    array([[[4.5, 0.5],
            [8.5, 4.5]]])
    """
    tau = temperature(query_positions, amount=amount, floor=floor)[..., None, :, None]
    return tau * (attention.scores(q, k, scale=scale) + bias(states, profiles, query_positions, key_positions))
