r"""Pair layouts: converting features and weights between the two pairings.

A checkpoint made for one pairing gives wrong results, without an error, under the other. A permutation of its rows repairs it.

Also called: rotate_half, NeoX style, GPT-J style, permute.

Definition. A layout says which two features form pair t (`posref.pairing`). Changing it is a permutation P of features:

    convert(x) = P x
    rotate(P x, layout=target) = P rotate(x, layout=source)

so a query or key projection y = W x + b trained for `source` becomes one for `target` as W -> P W and b -> P b, within
every head. Scores keep their value, since P q . P k = q . k; the rotated vectors themselves do not: they are permuted.

Symbols.

    x (..., d)                   features of a head, d = head_dim
    W (heads * head_dim, ..)     a projection, one row for each output feature
    b (heads * head_dim,)        its bias
    rotary_dim                   at most d; only the first rotary_dim features are paired and permuted, the rest stay

Conventions. Weights have one row for each output feature, as in torch.nn.Linear and safetensors files made from it; transpose
a weight stored with inputs first. Weights and biases of q and k change, and gains of a normalization of q and k (q_norm,
k_norm), which permute like a bias; v and the output projection never do. With grouped queries k has fewer heads than q, and
each is permuted with its own number. Reading interleaved and writing half, as DeepSeek-V3 does, is
rotate(convert(x, source="interleaved", target="half"), cos, sin, layout="half"): the scores of an interleaved rotation in
another order of features.

Example. Eight features, which are four pairs: feature 1, the partner of 0 in the one layout, goes to place 4.

>>> convert(np.arange(8), source="interleaved", target="half")
array([0, 2, 4, 6, 1, 3, 5, 7])

Where implementations differ.

    what | who | value | version | source
    weights | Meta's Llama | interleaved | - | llama/model.py apply_rotary_emb
    weights | transformers' Llama | half, made by its converter | 5.23.0 | convert_llama_weights_to_hf.py permute
    weights | GGUF, Llama family | converted back to interleaved | - | -
    word for half | flash-attn apply_rotary_emb | interleaved=False, the default | 2.8.4 | flash_attn/layers/rotary.py
    word for half | flash-attn flash_attn_with_kvcache | rotary_interleaved=False; the default is True | 2.8.4
      | flash_attn/flash_attn_interface.py
    word for half | ONNX RotaryEmbedding | interleaved=0, the default | - | -
    word for half | MLX | traditional=False | - | -
    word for half | vLLM | is_neox_style=True | - | -
    word for half | ggml | NEOX; NORMAL is interleaved | - | -
    both | transformers' DeepSeek-V3 | reads interleaved, writes half | 5.23.0 | apply_rotary_pos_emb_interleave

References. transformers issue 25199 (the two pairings of one checkpoint); Su et al., RoFormer, arXiv 2104.09864, Eq. (34).
"""

import numpy as np

from posref import _require, pairing
from posref._contract import Array, Complex, Count, Even, Numbers, contract, kept
from posref.pairing import Layout

ROWS = "its first axis is heads * head_dim: transpose a weight stored with inputs first; k of grouped queries has fewer heads"


@contract
def convert(
    x: Complex[Array, "... rotary_dim+", kept], *, source: Layout, target: Layout, rotary_dim: Even | None = None
) -> Complex[Array, "... d"]:
    """P x: the pairs of `source` moved to where `target` looks for them, `(..., d)`; values are not touched.

    With `rotary_dim` the features from there on stay in place. ValueError for an odd or too large width or an unknown layout.

    >>> convert(np.arange(8), source="interleaved", target="half")
    array([0, 2, 4, 6, 1, 3, 5, 7])
    >>> convert(np.arange(8), source="half", target="interleaved", rotary_dim=6)
    array([0, 3, 1, 4, 2, 5, 6, 7])
    """
    if rotary_dim is not None:
        paired = convert(x[..., :rotary_dim], source=source, target=target)
        return np.concatenate([paired, x[..., rotary_dim:]], axis=-1)
    return pairing.join(*pairing.split(x, source), target)


@contract(weight=ROWS)
def permute_projection(
    weight: Numbers[Array, "rows%heads ...", kept], *, heads: Count, rotary_dim: Even, source: Layout, target: Layout
) -> Numbers[Array, "rows ..."]:
    """P W or P b: the rows of a q or k projection reordered within every head, shape of `weight`.

    `weight` `(heads * head_dim, ..)`: a weight, or a bias of one axis. `heads` counts the heads of *this* projection: for k
    with grouped queries the key heads. `rotary_dim` has no default: said explicitly, it exposes too large a `heads`, which
    would cut heads narrower than it. Integers pass, so 16-bit weights can be permuted as their uint16 bits. ValueError if the
    rows do not divide into heads, or a head is narrower than `rotary_dim`.

    >>> bias = np.arange(8)
    >>> permute_projection(bias, heads=2, rotary_dim=4, source="interleaved", target="half")
    array([0, 2, 1, 3, 4, 6, 5, 7])
    >>> permute_projection(bias, heads=1, rotary_dim=4, source="interleaved", target="half")
    array([0, 2, 1, 3, 4, 5, 6, 7])
    """
    head_dim = weight.shape[0] // heads
    _require.at_most("layouts.permute_projection", "rotary_dim", rotary_dim, f"each of {heads} heads", head_dim, ROWS)
    rows = convert(np.arange(head_dim), source=source, target=target, rotary_dim=rotary_dim)
    return weight.reshape(heads, head_dim, *weight.shape[1:])[:, rows].reshape(weight.shape)
