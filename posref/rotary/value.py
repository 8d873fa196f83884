r"""RoPE on values too: the output sees position, not only the weights.

Definition. Queries, keys and values turn; the sum may be turned back by the query's own angle:

    a_ij = softmax over j of (scale <R(i) q_i, R(j) k_j>)
    o_i  = sum_j a_ij R(j) v_j                                            undo=False: absolute
    o_i  = R(-i) sum_j a_ij R(j) v_j = sum_j a_ij R(j - i) v_j            undo=True: relative

Symbols. q (..., h, n_query, d), k and v (..., h, n_key, d); positions (..., n); frequencies (d/2,); o (..., h, n_query, d).

Conventions. All features of a head turn, of q, k and v alike. R(j) turns counter-clockwise by +j theta, as in
`posref.rotary.rope`. Queries and keys are at the same positions unless `key_positions` says otherwise.

Where implementations differ. Su proposes turning v as a way to explicit absolute position, which it is without undoing.
transformers' RoFormer with rotary_value=True does that (modeling_roformer.py). labml's value_pe (RoPER, after Harik) undoes
and pairs halves; by default it turns half of the features of a head.

Properties. proofs/rotary/value.py: pinned, with R(j - i) v_j where undone, one_key_pinned and pinned_with_a_mask;
relative_if_undone, where a common shift of positions changes nothing; absolute_without_undo, where it turns the output by R(s).

References. Su, kexue.fm/archives/8130, last section (values); labml.ai, transformers/rope/value_pe.
"""

from posref import _require, attention
from posref.rotary import rope


def attend(q, k, v, positions, frequencies, *, layout, scale, undo, mask=None, key_positions=None):
    """o_i = sum_j a_ij R(j) v_j, turned back by R(-i) if `undo`: `(..., n_query, d)`.

    `positions` belong to the queries, and to the keys unless `key_positions` is given; `scale` is 1/sqrt(d) in RoFormer.
    ValueError if q, k and v differ in width, or k in length from q without `key_positions`.

    >>> import numpy as np
    >>> q, v, theta = np.zeros((1, 2)), np.array([[1.0, 0.0]]), np.array([0.5])
    >>> there = dict(layout="half", scale=1.0, key_positions=np.array([3]))
    >>> attend(q, q, v, np.array([1]), theta, undo=True, **there).round(4)
    array([[0.5403, 0.8415]])
    >>> attend(q, q, v, np.array([1]), theta, undo=False, **there).round(4)
    array([[0.0707, 0.9975]])
    """
    for name, value in (("q", q), ("k", k), ("v", v)):
        _require.array("value.attend", name, value, ndim=2)
        _require.same_width("value.attend", "q", q, name, value)
    _require.same_width("value.attend", "k", k, "v", v, axis=-2)
    _require.choice("value.attend", "undo", undo, (True, False))
    if key_positions is None and q.shape[-2] != k.shape[-2]:
        raise ValueError(
            f"value.attend: q has {q.shape[-2]} positions and k has {k.shape[-2]}; pass key_positions= for the keys"
        )
    cos, sin = rope.tables(positions, frequencies)
    key_cos, key_sin = (cos, sin) if key_positions is None else rope.tables(key_positions, frequencies)
    q = rope.rotate(q, cos, sin, layout=layout)
    k, v = (rope.rotate(x, key_cos, key_sin, layout=layout) for x in (k, v))
    o = attention.attend(q, k, v, scale=scale, mask=mask)
    return rope.rotate(o, cos, -sin, layout=layout) if undo else o
