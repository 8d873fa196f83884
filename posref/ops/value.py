"""Rotated values: the functions to check, and the mistakes that implementations make."""

from posref.ops import Mistake, layers, missing, using
from posref.ops.common import OTHER_LAYOUT, per_head
from posref.rotary import rope, value


def attend(q, k, v, query_positions, key_positions, *, dim, base=10000.0, layout, scale, undo: bool, mask):
    given = {"layout": layout, "scale": scale, "undo": undo, "mask": mask, "key_positions": per_head(key_positions, k)}
    return value.attend(q, k, v, per_head(query_positions, q), rope.frequencies(dim, base), **given)


def _turned(a, x, positions, sign=1, layout=None):
    cos, sin = rope.tables(per_head(positions, x), rope.frequencies(a.dim, a.base))
    return rope.rotate(x, cos, sign * sin, layout=layout or a.layout)


def _values_unturned(f, a):
    """Values rotated back in advance, so that the specification's rotation leaves them as they were."""
    return f(**a | {"v": _turned(a, a.v, a.key_positions, -1), "undo": False})


def _values_in_the_other_layout(f, a):
    other = OTHER_LAYOUT[a.layout]
    v = _turned(a, _turned(a, a.v, a.key_positions, layout=other), a.key_positions, -1)
    o = f(**a | {"v": v, "undo": False})
    return _turned(a, o, a.query_positions, -1, other) if a.undo else o


def _after(sign):
    return lambda f, a: _turned(a, f(**a | {"undo": False}), a.query_positions, sign) if a.undo else missing()


def _values_turned(sign):
    """Values rotated by R(sign j), through the specification's own rotation by R(j)."""
    return lambda f, a: f(**a | {"v": _turned(a, _turned(a, a.v, a.key_positions, sign), a.key_positions, -1)})


def _undone_at(positions):
    return lambda f, a: _turned(a, f(**a | {"undo": False}), positions(a), -1) if a.undo else missing()


MISTAKES = {
    "not_undone": Mistake(using(undo=lambda a: False if a.undo else missing())).words("""
        R(-i) is left out: the output is not rotated back
        The output depends on absolute positions.
        Turn the output by R(-i), i the position of its query."""),
    "undone": Mistake(using(undo=lambda a: True if not a.undo else missing())).words("""
        the output is rotated back by R(-i), although it should not be
        Weights trained without it do not fit.
        Leave the output as the sum of the turned values."""),
    "undone_twice": Mistake(lambda f, a: _turned(a, f(**a), a.query_positions, -1) if a.undo else missing()).words("""
        R(-2i): the output is rotated back twice
        The output depends on absolute positions.
        Turn the output back in one place."""),
    "undone_forward": Mistake(_after(1)).words("""
        R(i) instead of R(-i): the output is rotated forward
        The output depends on absolute positions.
        Negate the sine when the output is turned."""),
    "values_unturned": Mistake(_values_unturned).words("""
        the values are not rotated
        Only the weights know positions.
        Turn the values by R(j), with the tables of the keys."""),
    "values_other_layout": Mistake(_values_in_the_other_layout).words("""
        the values use the other layout of pairs
        Weights right, output garbled.
        Use one layout for queries, keys and values."""),
    "sign": Mistake("sign").words("""
        angle -m theta: the sine has the wrong sign
        Scores and output see the negative offset."""),
    "causal_ignored": Mistake("no_mask").words("""
        the causal mask is left out
        Queries see the future."""),
}

FURTHER = {
    "values_turned_backward": Mistake(_values_turned(-1)).words("""
        the values are rotated by R(-j): the sine has the wrong sign for values alone
        Weights are right, the output is garbled.
        Turn the values by R(j), as the keys."""),
    "undone_at_the_last_key": Mistake(_undone_at(lambda a: a.key_positions[..., -1:] + 0 * a.query_positions)).words("""
        the output is rotated back by the position of the last key instead of its query
        Right for one new token at a time.
        Turn each row of the output by R(-i), i the position of its query."""),
}

SCORES = "scores of RoPE; the values are rotated too"


def _head(t):
    scores, _ = t.turned(rope.frequencies(t.dim))
    given = {"layout": layers.LAYOUT, "scale": t.scale, "undo": True}
    return scores, value.attend(*t.projected(t.x), t.positions, rope.frequencies(t.dim), **given)
