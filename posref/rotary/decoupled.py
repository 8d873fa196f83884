r"""Decoupled RoPE: features without position beside a rotated part that all heads share (multi-head latent attention).

A small cache can hold one latent vector per token, from which one matrix recomputes all keys; a rotation in between would make
that impossible. So most features are not rotated, and one small rotated key is shared by all heads.

Also called: MLA, multi-head latent attention.

Definition. For each head a, with the latent c_j of token j in the cache and one rotated key r_j for all heads:

    k_aj = c_j W_a
    s_aij = scale (q_ai . k_aj + R(i) p_ai . R(j) r_j)
    s_aij = scale ((q_ai W_a^T) . c_j + R(i) p_ai . R(j) r_j)     absorbed: no key of any head is ever made

Symbols.

    q (..., h, n_query, d)          content of the queries: `qk_nope_head_dim` features
    p (..., h, n_query, d_rope)     their part that is rotated: `qk_rope_head_dim` features, rotated by the caller
    k (..., h_key, n_key, d)        content of the keys, which heads may share as in `posref.attention`
    r (..., 1, n_key, d_rope)       the rotated key of each token, one for all heads
    c (..., 1, n_key, d_latent)     latents: what a cache holds beside r
    W (h, d_latent, d)              the part of `kv_b_proj` that makes keys of latents

Conventions. `scale` is (d + d_rope)^-1/2 in DeepSeek, times the square of YaRN's magnitude. Which part comes first in a
joined vector changes nothing if it is the same for queries and keys. p and r are rotated before: `rope.rotate`, in the layout
of the model.

Example. Three equal tokens: content scores 1 everywhere, and the rotated part adds cos(j - i).

>>> one, rotated = np.ones((3, 1)), np.stack([np.cos(np.arange(3)), np.sin(np.arange(3))], axis=-1)
>>> scores(one, rotated, one, rotated, scale=1).round(3)
array([[2.   , 1.54 , 0.584],
       [1.54 , 2.   , 1.54 ],
       [0.584, 1.54 , 2.   ]])

Where implementations differ.

    what | who | value | version | source
    order in a joined vector | DeepSeek-V3 | content first, the rotated part last | 9b4e9788 | inference/model.py
    layout | DeepSeek-V3, its code | interleaved | 9b4e9788 | inference/model.py
    layout | transformers' DeepSeek-V3 | reads interleaved, writes half | 5.23.0 | modeling_deepseek_v3.py
    layout | transformers' DeepSeek-V2 | interleaved | 5.23.0 | modeling_deepseek_v2.py
    layout of the sparse indexer | transformers' DeepSeek-V3.2 | half, the rotated part first | 5.23.0
      | modeling_deepseek_v32.py

References. DeepSeek-AI, DeepSeek-V2, arXiv 2405.04434, Eqs. (14) to (19).
"""

import numpy as np

from posref import attention
from posref._contract import Array, Booleans, Number, Numbers, contract


@contract
def scores(
    q: Numbers[Array, "... n_query d"],
    q_turned: Numbers[Array, "... n_query d_rope"],
    k: Numbers[Array, "%... n_key d"],
    k_turned: Numbers[Array, "%... n_key d_rope"],
    *,
    scale: Number,
) -> Numbers[Array, "... n_query n_key"]:
    """scale (q_i . k_j + q_turned_i . k_turned_j): `(..., h, n_query, n_key)`. DeepSeek-V2 Eqs. (16) to (18).

    >>> one = np.ones((1, 1, 1))
    >>> scores(one, 2 * one, 3 * one, 4 * one, scale=0.5)
    array([[[5.5]]])
    """
    return attention.scores(q, k, scale=scale) + attention.scores(q_turned, k_turned, scale=scale)


@contract
def absorbed_scores(
    q: Numbers[Array, "... h n_query d"],
    q_turned: Numbers[Array, "... h n_query d_rope"],
    latents: Numbers[Array, "... 1 n_key d_latent"],
    k_turned: Numbers[Array, "... 1 n_key d_rope"],
    w_k: Numbers[Array, "h d_latent d"],
    *,
    scale: Number,
) -> Numbers[Array, "... h n_query n_key"]:
    """`scores` for keys latents @ w_k, without making them: the query goes through the matrix instead.

    >>> one = np.ones((1, 1, 1))
    >>> absorbed_scores(one, 2 * one, one, 4 * one, 3 * one, scale=0.5)
    array([[[5.5]]])
    """
    return scores(q @ np.swapaxes(w_k, -1, -2), q_turned, latents, k_turned, scale=scale)


@contract
def attend(
    q: Numbers[Array, "... n_query d"],
    q_turned: Numbers[Array, "... n_query d_rope"],
    k: Numbers[Array, "%... n_key d"],
    k_turned: Numbers[Array, "%... n_key d_rope"],
    v: Numbers[Array, "%... n_key d_v"],
    *,
    scale: Number,
    mask: Booleans[Array, "(...) #n_query #n_key"] | None = None,
) -> Numbers[Array, "... n_query d_v"]:
    """o_i = sum_j softmax_j(s_ij) v_j with the scores of both parts: `(..., h, n_query, d_v)`.

    >>> one = np.ones((1, 1, 1))
    >>> attend(one, one, one, one, 7 * one, scale=1.0)
    array([[[7.]]])
    """
    weights = attention.softmax(scores(q, q_turned, k, k_turned, scale=scale), mask)
    return weights @ attention.with_heads_of(weights, v)
