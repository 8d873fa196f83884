"""Inkling: the functions to check, and the mistakes that implementations make."""

from functools import partial

import numpy as np

from posref import attention
from posref import offsets as relative
from posref.ops import Mistake, inside, missing, using
from posref.ops.common import of_the_first, rounded
from posref.ops.probe import painted
from posref.relative import inkling

temperature = inkling.temperature
bias = inkling.bias


def scores(q, k, states, profiles, query_positions, key_positions, *, scale, amount=0.125, floor=4.0):
    at = query_positions, key_positions
    return inkling.scores(q, k, states, profiles, *at, scale=scale, amount=amount, floor=floor)


def attend(q, k, v, states, profiles, query_positions, key_positions, *, scale, amount=0.125, floor=4.0, mask):
    s = scores(q, k, states, profiles, query_positions, key_positions, scale=scale, amount=amount, floor=floor)
    return attention.softmax(s, mask) @ attention.with_heads_of(s, v)


EXTENTS = {"curves": 3, "extent": 7}
ARRAYS = {
    "states": lambda s: painted((s.batch, s.heads, s.n_query, s.curves), 6),
    "profiles": lambda s: painted((s.curves, s.extent), 8),
}


def _in(name, change):
    """`change(right, ..)` in place of the specification's function `name`."""
    return inside(inkling, name, lambda right: partial(change, right))


def _columns(change):
    """Another column of P and another band: column, seen = change(distance, extent)."""

    def bias(right, states, profiles, queries, keys):
        column, seen = change(-relative.offsets(queries, keys)[..., None, :, :], profiles.shape[-1])
        return np.where(seen, relative.gather_rows(states @ profiles, np.clip(column, 0, profiles.shape[-1] - 1), 0), 0)

    return _in("bias", bias)


def _of_the_key(right, states, profiles, i, j):
    return np.swapaxes(right(states, profiles, -j, -i), -1, -2) if states.shape[-2] == j.shape[-1] else missing()


def _tau(a, at="query_positions"):
    return inkling.temperature(a[at], amount=a.amount, floor=a.floor)[..., None, :, None]


REPLACED = {"bias_twice"}  # of attention that adds the bias itself
MISTAKES = {
    "sign": Mistake(_in("bias", lambda right, states, profiles, i, j: right(states, profiles, -i, -j))).words("""
        the distance is key - query
        Keys in the past have the bias 0.
        The column of P is i - j, query minus key."""),
    "last_column_beyond_the_extent": Mistake(_columns(lambda t, n: (t, t >= 0))).words("""
        distances beyond the table read its last column: the index is clamped and the result is not masked
        Far keys are rewarded or punished as if they stood at `extent` - 1.
        The bias is 0 from `extent` on."""),
    "wrapped": Mistake(_columns(lambda t, n: (t % n, t >= 0))).words("""
        the distance is taken modulo the extent
        Right in short texts; far keys look near.
        The bias is 0 from `extent` on."""),
    "one_column_less": Mistake(_columns(lambda t, n: (t, (t >= 0) & (t < n - 1)))).words("""
        i - j < extent - 1: the last column is never read
        One distance has no bias.
        The distances are 0 .. extent - 1."""),
    "one_distance_more": Mistake(_columns(lambda t, n: (t, (t >= 0) & (t <= n)))).words("""
        i - j <= extent: the distance `extent` reads the last column
        One distance too many has a bias.
        The distances are 0 .. extent - 1."""),
    "distance_from_one": Mistake(_columns(lambda t, n: (t - 1, (t >= 1) & (t <= n)))).words("""
        P_{c, i - j - 1}: the first column is read at the distance 1
        The query's own token has no bias; every other key has that of the key after it.
        Column 0 is the query's own token."""),
    "profiles_reversed": Mistake(using(profiles=lambda a: a.profiles[:, ::-1])).words("""
        the first column is read at the farthest distance
        Near and far change places.
        Column 0 is the query's own token."""),
    "profiles_reshaped": Mistake(using(profiles=lambda a: a.profiles.reshape(a.profiles.shape[::-1]).T)).words("""
        the stored table is read as (extent, curves)
        All curves are mixed up.
        Released tables are (curves, extent): states @ P, without a transpose."""),
    "future_at_distance_0": Mistake(_columns(lambda t, n: (t, t < n)), only="bias scores").words("""
        keys in the future read column 0: the index is clamped and the result is not masked
        Harmless with a causal mask; wrong where the bias is compared or stored.
        The bias is 0 for keys in the future."""),
    "states_of_the_key": Mistake(_in("bias", _of_the_key)).words("""
        r_j . P: the key's token mixes the curves
        The bias depends on the key's token instead of the query's.
        Take the states of the query."""),
    "states_of_the_first_head": Mistake(of_the_first("states", -3)).words("""
        all heads mix the curves by the states of head 0
        Head 0 is right and no other.
        Split the projection into heads first, then into the numbers of one state."""),
    "no_bias": Mistake(using(states=lambda a: 0 * a.states), kind="bias", only="scores attend").words("""
        the bias is not added
        The model sees order through the mask and the short convolutions alone.
        Add the bias before the softmax."""),
    "bias_before_scale": Mistake(using(states=lambda a: a.states * a.scale), kind="scale", only="scores attend").words("""
        scale (q . k + b): the bias is scaled with the products
        Position weighs too little.
        Add the bias after scaling."""),
    "no_temperature": Mistake(using(amount=0)).words("""
        the temperature is left out
        Right up to the position `floor` - 1, then attention is too flat.
        Multiply scores of layers without a window by tau."""),
    "bias_without_temperature": Mistake(using(states=lambda a: a.states / _tau(a)), kind="temperature").words("""
        tau scale q . k + b: the temperature multiplies the products alone
        Right up to the position `floor` - 1, then the bias is too weak.
        Multiply products and bias by tau once: q and r, or q and b, or the scores."""),
    "temperature_twice": Mistake(
        using(q=lambda a: a.q * _tau(a), states=lambda a: a.states * _tau(a)), kind="temperature"
    ).words("""
        tau^2: queries and states have the temperature, and the scores again
        Right up to the position `floor` - 1, then attention is too sharp.
        Multiply products and bias by tau once: q and r, or q and b, or the scores."""),
    "temperature_of_the_key": Mistake(using(amount=0, k=lambda a: a.k * _tau(a, "key_positions")), kind="temperature").words("""
        scale q . (tau_j k_j) + b: the keys have the temperature of their own position, and the bias none
        Each key's score is sharpened by another number, so the weights of one query are wrong.
        Take the position of the query."""),
    "counted_from_0": Mistake(_in("temperature", lambda right, p, **given: right(p - 1, **given)), kind="temperature").words("""
        ln(i / floor): positions are counted from 0
        The temperature of each query is that of the one before it.
        Divide i + 1, the number of tokens up to the query."""),
    "not_clamped": Mistake(
        _in("temperature", lambda _, p, amount, floor: 1 + amount * np.log((p + 1) / floor) if np.all(p >= 0) else missing()),
        kind="temperature",
    ).words("""
        ln((i + 1) / floor) is negative before `floor`: the maximum with 1 is left out
        Attention in short texts is too flat.
        Take the maximum with 1 before the logarithm."""),
    "temperature_of_llama_4": Mistake(
        _in("temperature", lambda _, p, amount, floor: 1 + amount * np.log(1 + np.maximum(p + 1, 0) // floor)),
        kind="temperature",
    ).words("""
        ln(1 + floor((i + 1) / floor)): Llama 4's temperature
        The temperature rises in steps and is too high.
        Neither round the quotient nor add 1 to it."""),
}

FURTHER = {
    "temperature_in_bf16": Mistake(
        _in("temperature", lambda right, p, **given: rounded(right(p, **given), 8)), kind="temperature"
    ).words("""
        the temperature is rounded to bfloat16 (8 bits)
        The temperature rises in steps of 1/128, and scores are up to 0.4 % off.
        Keep the temperature in float32.""")
}

PRESETS = {name: ("temperature", inkling.PRESETS[name]) for name in inkling.PRESETS}

CAUSAL = True
SCORES = "Shaw's key vectors for the past, limited to mixtures of a few curves; then a temperature per query"


def _head(t):
    q, k, v = (x[None] for x in t.projected(t.x))
    states, profiles, settings = t.x[None] @ t.parameter(t.dim, 4), t.parameter(4, 16), {"amount": 0.1, "floor": t.trained}
    s = inkling.scores(q, k, states, profiles, t.positions, t.positions, scale=t.scale, **settings)
    return t.scored(s[0], v[0])
