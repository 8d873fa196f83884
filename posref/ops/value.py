"""Rotated values: what an implementation can be asked for, and how it goes wrong."""

from posref.ops import layers, missing, using, with_words
from posref.ops.common import OTHER_LAYOUT, per_head
from posref.rotary import rope, value


def attend(q, k, v, query_positions, key_positions, *, dim, base=10000.0, layout, scale, undo: bool, mask):
    return value.attend(
        q,
        k,
        v,
        per_head(query_positions, q),
        rope.frequencies(dim, base),
        layout=layout,
        scale=scale,
        undo=undo,
        mask=mask,
        key_positions=per_head(key_positions, k),
    )


def _turned(a, x, positions, sign=1, layout=None):
    cos, sin = rope.tables(per_head(positions, x), rope.frequencies(a.dim, a.base))
    return rope.rotate(x, cos, sign * sin, layout=layout or a.layout)


def _values_unturned(f, a):
    """Values that arrive turned back: the specification's turn gives them as they were."""
    return f(**a | {"v": _turned(a, a.v, a.key_positions, -1), "undo": False})


def _values_in_the_other_layout(f, a):
    other = OTHER_LAYOUT[a.layout]
    v = _turned(a, _turned(a, a.v, a.key_positions, layout=other), a.key_positions, -1)
    o = f(**a | {"v": v, "undo": False})
    return _turned(a, o, a.query_positions, -1, other) if a.undo else o


def _after(sign):
    return lambda f, a: _turned(a, f(**a | {"undo": False}), a.query_positions, sign) if a.undo else missing()


MISTAKES = with_words(
    __name__,
    not_undone=using(undo=lambda a: False if a.undo else missing()),
    undone=using(undo=lambda a: True if not a.undo else missing()),
    undone_twice=lambda f, a: _turned(a, f(**a), a.query_positions, -1) if a.undo else missing(),
    undone_forward=_after(1),
    values_unturned=_values_unturned,
    values_other_layout=_values_in_the_other_layout,
    sign="sign",
    causal_ignored="no_mask",
)

SCORES = "scores of RoPE; the values turn too"


def _head(t):
    scores, _ = t.turned(rope.frequencies(t.dim))
    given = {"layout": layers.LAYOUT, "scale": t.scale, "undo": True}
    return scores, value.attend(*t.projected(t.x), t.positions, rope.frequencies(t.dim), **given)
