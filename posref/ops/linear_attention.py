"""RoPE in linear attention: the functions to check, and the mistakes that implementations make."""

# Over budget: two heads of attention: scores, and weights that are no softmax of them

import numpy as np

from posref import attention
from posref.ops import Mistake, instead, layers, missing, using
from posref.ops.common import per_head
from posref.ops.probe import painted
from posref.rotary import linear_attention, rope

feature_map = linear_attention.elu_plus_one


def attend(q, k, v, positions, *, dim, base=10000.0, layout, causal=True):
    cos, sin = rope.tables(per_head(positions, q), rope.frequencies(dim, base))
    phi = linear_attention.elu_plus_one
    return linear_attention.attend(q, k, v, cos, sin, layout=layout, feature_map=phi, causal=causal)


ARRAYS = {
    "q": lambda s: painted((s.batch, s.heads, s.n_key, s.dim), 1),
    "k": lambda s: painted((s.batch, s.heads, s.n_key, s.dim), 2),
    "v": lambda s: painted((s.batch, s.heads, s.n_key, s.dim + 2), 4),
    "x": lambda s: painted((s.batch, s.n_key), 1),
}


def _attend(weights, denominator=None, seen=None, seen_below=None):
    """The definition with other weights(phi, turn, q, k), other weights in the denominator, or other visible keys in each
    sum."""
    seen = seen or (lambda a, offset: (offset <= 0) | (not a.causal))

    def wrong(f, a):
        if "q" not in a:
            missing()
        n = np.arange(a.q.shape[-2])
        tables = rope.tables(per_head(a.positions, a.q), rope.frequencies(a.dim, a.base))
        parts = linear_attention.elu_plus_one, lambda x: rope.rotate(x, *tables, layout=a.layout), a.q, a.k
        above = np.where(seen(a, n - n[:, None]), weights(*parts), 0)
        below = np.where((seen_below or seen)(a, n - n[:, None]), (denominator or weights)(*parts), 0)
        return (above @ a.v) / below.sum(axis=-1, keepdims=True)

    return Mistake(wrong)


def _mapped(phi):
    """Another feature map, alone or within attention."""

    def wrong(f, a):
        if "q" not in a:
            return phi(a.x)
        tables = rope.tables(per_head(a.positions, a.q), rope.frequencies(a.dim, a.base))
        return linear_attention.attend(a.q, a.k, a.v, *tables, layout=a.layout, feature_map=phi, causal=a.causal)

    return wrong


def _turned(phi, turn, q, k):
    return turn(phi(q)) @ np.swapaxes(turn(phi(k)), -1, -2)


def _plain(phi, turn, q, k):
    return phi(q) @ np.swapaxes(phi(k), -1, -2)


def _turned_first(phi, turn, q, k):
    return phi(turn(q)) @ np.swapaxes(phi(turn(k)), -1, -2)


def _if_causal(seen):
    return lambda a, offset: seen(offset) if a.causal else missing()


MISTAKES = {
    "denominator_rotated": _attend(_turned).words("""
        the denominator is the sum of the rotated weights
        The denominator can vanish or turn negative.
        Divide by the sum of the unrotated phi(q) . phi(k)."""),
    "rotated_before_phi": _attend(_turned_first).words("""
        phi(R x) instead of R phi(x): the feature map is applied after the rotation
        The weights depend on i and j, not on j - i.
        Apply the feature map first, then rotate."""),
    "not_rotated": Mistake("positions_zero").words("""
        all positions, or all frequencies, are 0: nothing is rotated
        The model sees no order."""),
    "sign": Mistake("sign").words("""
        angle -m theta: the sine has the wrong sign
        Past and future change places in the weights.
        Turn by +m theta: (a cos - b sin, a sin + b cos)."""),
    "causal_ignored": Mistake(using(causal=lambda a: False if a.causal else missing())).words("""
        the sums run over all keys
        Queries see the future.
        Sum over the keys up to the query: j <= i."""),
    "sees_one_ahead": _attend(_turned, _plain, _if_causal(lambda offset: offset <= 1)).words("""
        j <= i + 1: the prefix sums are one key ahead
        Every token sees the next.
        Read the sums after key i is added and before key i + 1 is."""),
    "denominator_of_all_keys": _attend(_turned, _plain, seen_below=_if_causal(lambda offset: offset < np.inf)).words("""
        the denominator sums over all keys, the numerator over the causal ones
        Early rows are too small.
        Make z a prefix sum too: add up phi(k_j) for j <= i."""),
    "elu": Mistake(instead(lambda x: np.where(x > 0, x, np.exp(np.minimum(x, 0 * x)) - 1))).words("""
        elu(x): the 1 is not added
        The feature map is negative below 0.
        Add 1: phi(x) = elu(x) + 1."""),
    "relu_plus_one": Mistake(instead(lambda x: np.maximum(x, 0 * x) + 1)).words("""
        max(x, 0) + 1: another positive feature map
        Negative features are constant.
        Take elu(x) + 1: x + 1 above 0, e^x below."""),
}

FURTHER = {
    "denominator_left_out": _attend(_turned, lambda phi, turn, q, k: np.eye(q.shape[-2])).words("""
        the sum of the weighted values is not divided
        Outputs grow with the length of the text.
        Divide by the sum of the unrotated phi(q) . phi(k)."""),
    **{
        f"phi_{name}": Mistake(_mapped(phi)).words(f"""
            the feature map is {words}
            Weights trained with elu(x) + 1 do not fit.
            Take elu(x) + 1: x + 1 above 0, e^x below.""")
        for name, words, phi in (
            ("exponential", "e^x", np.exp),
            ("softplus", "ln(1 + e^x)", lambda x: np.log1p(np.exp(x))),
            ("relu", "max(x, 0)", lambda x: np.maximum(x, 0 * x)),
            ("square", "x^2", lambda x: x * x),
        )
    },
}

SCORES = "its attention weights are not a softmax of scores"


def _head(t):
    q, k, v = t.projected(t.x)
    cos, sin = rope.tables(t.positions, rope.frequencies(t.dim))
    phi, given = linear_attention.elu_plus_one, {"layout": layers.LAYOUT}
    turned = (rope.rotate(phi(y), cos, sin, **given) for y in (q, k))
    return attention.scores(*turned, scale=1), linear_attention.attend(
        q, k, v, cos, sin, feature_map=phi, causal=False, **given
    )


def _weights(t):
    (q, k, _), tables = t.projected(t.x), rope.tables(t.positions, rope.frequencies(t.dim))
    given = {"layout": layers.LAYOUT, "feature_map": linear_attention.elu_plus_one}
    return linear_attention.attend(q, k, np.eye(len(q)), *tables, causal=False, **given)
