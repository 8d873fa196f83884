r"""Pair layouts: converting features and weights between the two pairings.

Definition. A layout says which two features form pair t (`posref.pairing`). Changing it is a permutation P of features:

    convert(x) = P x,    rotate(P x, layout=target) = P rotate(x, layout=source)

so a query or key projection y = W x + b trained for `source` becomes one for `target` as W -> P W and b -> P b, within
every head. Scores keep their value, since P q . P k = q . k; the rotated vectors themselves do not: they are permuted.

Symbols. x (..., d); W (heads * head_dim, ..), b (heads * head_dim,); d = head_dim. With rotary_dim < d only the first
rotary_dim features are paired and permuted; the rest stay.

Conventions. Weights have one row for each output feature, as in torch.nn.Linear and safetensors files made from it; transpose
a weight stored with inputs first. Weights and biases of q and k change, and gains of a normalization of q and k (q_norm,
k_norm), which permute like a bias; v and the output projection never do. With grouped queries k has fewer heads than q, and
each is permuted with its own number.

Where implementations differ. Meta's Llama weights are interleaved; transformers' converter (permute in
convert_llama_weights_to_hf.py) makes them half, and GGUF files of the Llama family turn them back. flash-attn has two opposite
defaults: apply_rotary_emb(interleaved=False) is half, flash_attn_with_kvcache(rotary_interleaved=True) is not. ONNX
RotaryEmbedding: interleaved=1 or 0 (the default, half). MLX: traditional=True is interleaved. vLLM: is_neox_style=True is
half. ggml: NORMAL is interleaved, NEOX is half. transformers' DeepSeek-V3 (apply_rotary_pos_emb_interleave) reads interleaved
and writes half, which is rotate(convert(x, source="interleaved", target="half"), cos, sin, layout="half"): the scores of an
interleaved rotation in another order of features.

Properties. proofs/rotary/layouts.py: pinned and projection_pinned; bijection, undone by the opposite conversion;
commutes_with_rotation; keeps_scores; converted_checkpoints_keep_scores, with biases, grouped queries and features that pass;
gains_permute_like_a_bias.

References. transformers issue 25199 (the two pairings of one checkpoint); Su et al., RoFormer, arXiv 2104.09864, Eq. (34).
"""

import numpy as np

from posref import _require, pairing


def convert(x, *, source, target, rotary_dim=None):
    """P x: the pairs of `source` moved to where `target` looks for them, `(..., d)`; values are not touched.

    With `rotary_dim` the features from there on stay in place. ValueError for an odd or too large width or an unknown layout.

    >>> convert(np.arange(8), source="interleaved", target="half")
    array([0, 2, 4, 6, 1, 3, 5, 7])
    >>> convert(np.arange(8), source="half", target="interleaved", rotary_dim=6)
    array([0, 3, 1, 4, 2, 5, 6, 7])
    """
    _require.array("layouts.convert", "x", x, kinds=_require.COMPLEX, ndim=1)
    _require.choice("layouts.convert", "source", source, pairing.LAYOUTS)
    _require.choice("layouts.convert", "target", target, pairing.LAYOUTS)
    if rotary_dim is not None:
        _require_rotary_dim("layouts.convert", rotary_dim, x.shape[-1], "rotary_dim cannot exceed them")
        paired = convert(x[..., :rotary_dim], source=source, target=target)
        return np.concatenate([paired, x[..., rotary_dim:]], axis=-1)
    return pairing.join(*pairing.split(x, source), target)


def permute_projection(weight, *, heads, rotary_dim, source, target):
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
    _require.array("layouts.permute_projection", "weight", weight, ndim=1)
    _require.count("layouts.permute_projection", "heads", heads)
    if weight.shape[0] % heads != 0:
        raise ValueError(
            f"layouts.permute_projection: weight has {weight.shape[0]} rows, which {heads} heads do not divide; "
            "its first axis must be heads * head_dim, so transpose a weight stored with inputs first"
        )
    head_dim = weight.shape[0] // heads
    _require_rotary_dim(
        "layouts.permute_projection",
        rotary_dim,
        head_dim,
        f"{weight.shape[0]} rows make {heads} heads of {head_dim}, and k with grouped queries has fewer heads than q",
    )
    rows = convert(np.arange(head_dim), source=source, target=target, rotary_dim=rotary_dim)
    return weight.reshape(heads, head_dim, *weight.shape[1:])[:, rows].reshape(weight.shape)


def _require_rotary_dim(function, rotary_dim, head_dim, remedy):
    _require.even(function, "rotary_dim", rotary_dim)
    if rotary_dim > head_dim:
        raise ValueError(f"{function}: rotary_dim is {rotary_dim} and a head has {head_dim} features; {remedy}")
