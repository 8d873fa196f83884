r"""RoPE on values too: the output depends on position, not only the weights.

In RoPE only the attention weights depend on the offset. If the values are rotated as well, the output also contains the offset
of each key that it reads.

Also called: rotated values.

Definition. Queries, keys and values rotate; the sum may be rotated back by the query's own angle:

    a_ij = softmax over j of (scale <R(i) q_i, R(j) k_j>)
    o_i = sum_j a_ij R(j) v_j                                             undo=False: absolute
    o_i = R(-i) sum_j a_ij R(j) v_j = sum_j a_ij R(j - i) v_j             undo=True: relative

Symbols.

    q (..., h, n_query, d)      queries
    k, v (..., h, n_key, d)     keys and values
    i, j (..., n)               positions
    theta (d/2,)                frequencies
    o (..., h, n_query, d)      output

Conventions. All features of a head rotate, of q, k and v alike. R(j) rotates counter-clockwise by +j theta, as in
`posref.rotary.rope`. Queries and keys are at the same positions unless `key_positions` says otherwise.

Example. Three tokens that attend alike, with the value (1, 0): undone, the output leans towards where the keys are.

>>> import numpy as np
>>> q, v = np.zeros((3, 2)), np.array([[1.0, 0.0]] * 3)
>>> given = {"layout": "half", "scale": 1, "undo": True}
>>> attend(q, q, v, np.arange(3), np.ones(1), **given).round(3)
array([[ 0.375,  0.584],
       [ 0.694,  0.   ],
       [ 0.375, -0.584]])

Where implementations differ.

    what | who | value | version | source
    undone | Su | no: a way to explicit absolute position | - | kexue.fm/archives/8130
    undone | transformers' RoFormer, rotary_value=True | no | 5.23.0 | modeling_roformer.py
    undone | labml's value_pe (RoPER, after Harik) | yes; pairs halves, rotates half of the features | -
      | transformers/rope/value_pe

References. Su, kexue.fm/archives/8130, last section (values); labml.ai, transformers/rope/value_pe.
"""

from posref import _require, attention
from posref._contract import Array, Booleans, Number, Numbers, contract
from posref.pairing import Layout
from posref.rotary import rope


@contract
def attend(
    q: Numbers[Array, "... n_query d"],
    k: Numbers[Array, "... n_key d"],
    v: Numbers[Array, "... n_key d"],
    positions: Numbers[Array, "(...) #n_query"],
    frequencies: Numbers[Array, "d/2"],
    *,
    layout: Layout,
    scale: Number,
    undo: bool,
    mask: Booleans[Array, "(...) #n_query #n_key"] | None = None,
    key_positions: Numbers[Array, "(...) #n_key"] | None = None,
) -> Numbers[Array, "... n_query d"]:
    """o_i = sum_j a_ij R(j) v_j, rotated back by R(-i) if `undo`: `(..., n_query, d)`.

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
    if key_positions is None:
        _require.same_tokens("value.attend", q, k, "pass key_positions= for the keys")
    cos, sin = rope.tables(positions, frequencies)
    key_cos, key_sin = (cos, sin) if key_positions is None else rope.tables(key_positions, frequencies)
    q = rope.rotate(q, cos, sin, layout=layout)
    k, v = (rope.rotate(x, key_cos, key_sin, layout=layout) for x in (k, v))
    o = attention.attend(q, k, v, scale=scale, mask=mask)
    return rope.rotate(o, cos, -sin, layout=layout) if undo else o
