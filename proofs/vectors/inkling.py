"""Inkling: curves of the distance that the query's token mixes, and a temperature by position."""

import mpmath
import numpy as np

from proofs.relative.inkling import definition, tau
from proofs.vectors import *

SOURCES = ("transformers 5.23.0, models/inkling and models/inkling2",)

CONVENTIONS = {
    "axes": "q is (batch, heads, n_query, d), k and v (batch, key_heads, n_key, d), states (batch, heads, n_query, curves)",
    "profiles": "(curves, extent): column t for the distance t, query minus key",
    "temperature": "1 + amount ln(max(p + 1, floor) / floor) of the query at p",
    "mask": "causal: the key's position is at most the query's",
    "op temperature": "of every position",
    "op bias": "states . profiles[:, i - j] for 0 <= i - j < extent, else 0",
    "op scores": "temperature of the query times (scale q . k + bias)",
    "op attend": "softmax(scores) v over the keys that the mask allows",
}
REJECTED = (
    ("inkling/bias/h2-c2-e3/square", "curves", {"states": cut}, "shape", "A number for each curve."),
    ("inkling/bias/h2-c2-e3/square", "rows", {"states": fewer}, "shape", "A state for each query."),
    ("inkling/temperature/f8/near", "floor", {"floor": 0.0}, "range", "Positions are divided by the floor."),
)
REASONS = """
pair scores * no_temperature temperature_twice | tau once, whoever multiplies
pair attend * no_temperature temperature_twice | tau once, whoever multiplies
pair temperature * counted_from_0 position_plus_one | one less and one more
"""
AMOUNT = 0.125
HOT = "no_temperature counted_from_0 not_clamped temperature_of_llama_4"
BAND = "sign last_column_beyond_the_extent wrapped one_column_less one_distance_more distance_from_one profiles_reversed"
READ = f"{BAND} profiles_reshaped states_of_the_first_head"

ROWS = f"{WRAPPED} positions_shared_across_batch wrong_axis"
ONCE = "no_bias bias_before_scale bias_without_temperature temperature_twice temperature_of_the_key"


def vectors():
    two = {"models": ("f64", "f32")}
    yield _temperature("near", [0, 1, 6, 7, 8, 9, 15, 100], HOT, **two)
    yield _temperature("places", PLACES[:2], ROWS, 2, **two)
    yield _temperature("beyond-f32", PLACES[2], "f32_positions", 2, models=("f64",))
    yield _temperature("fractional", HALVES, "positions_ignored", 2)
    yield _temperature("negative", BELOW, "positions_ignored", 1)
    for op in ("bias", "scores", "attend"):
        unseen = "future_at_distance_0" if op != "attend" else ""
        yield _case(op, "square", range(2, 7), range(2, 7), f"{READ} {unseen} states_of_the_key", key_heads=2, **two)
        yield _case(op, "chunk", [3, 7], range(8), READ if op == "bias" else "sign distance_from_one")
        yield _case(op, "places", PLACES[:2], PLACES[:2], ROWS, **two)
        yield _case(op, "beyond", FAR[3:], FAR, NARROW)
        yield _case(op, "negative", [-1, 2], [-3, -1, 0, 2], "positions_ignored")
    for op in ("scores", "attend"):
        yield _case(op, "hot", [1, 7, 39], [0, 1, 4, 5, 6, 7, 39], f"{READ} {HOT} {ONCE}", **two)
    yield _case("attend", "large", [1, 2], range(3), "scale_ignored", scale=16384.0, **two)


def _tau(positions, floor):
    """Two roundings in the logarithm, two for it, one for the product and one for the sum."""
    value = np.frompyfunc(lambda p: tau(mpmath.mpf(p), mpmath.mpf(AMOUNT), floor, mpmath.log), 1, 1)(positions)
    return stored(value, {"amp": terms(2, AMOUNT * (value != 1)) + terms(4, value - 1) + terms(1, value)})


def _temperature(probe, positions, kills, floor=8, **rest):
    expected, cond = _tau(np.array(positions), floor)
    id, params = f"inkling/temperature/f{floor}/{probe}", {"amount": AMOUNT, "floor": float(floor)}
    return case(id, "temperature", params, {"positions": positions}, expected, cond["amp"], kills, **rest)


def _bias(states, profiles, distances):
    """The definition, and the sensitivities of the products with all columns."""
    (r, _), (rows, _), value = exact(states), exact(profiles), np.zeros((*states.shape[:3], distances.shape[-1]), dtype=object)
    for b, h, i, j in np.ndindex(value.shape):
        value[b, h, i, j] = definition(int(distances[b, 0, i, j]), r[b, h, i], rows)
    columns = np.broadcast_to(np.clip(distances, 0, profiles.shape[1] - 1), value.shape)
    read = lambda x: np.where(columns == distances, np.take_along_axis(x, columns, axis=-1), 0)
    return value, rearranged(read, dot(exact(states), exact(profiles.T)))[1]


def _case(op, probe, queries, keys, kills, key_heads=1, floor=4, scale=0.375, **rest):
    i, j = np.atleast_2d(queries), np.atleast_2d(keys)
    (batch, n), m = i.shape, j.shape[1]
    q, r, profiles = painted((batch, 2, n, 2), 1) / 4, painted((batch, 2, n, 2), 6) / 4, painted((2, 3), 8)
    k, v = painted((batch, key_heads, m, 2), 2) / 4, painted((batch, key_heads, m, 2), 4)
    result = _bias(r, profiles, (i[:, :, None] - j[:, None])[:, None])
    tensors, params = {"states": r, "profiles": profiles, "queries": np.array(queries), "keys": np.array(keys)}, {}
    if op != "bias":
        result = product(_tau(i[:, None, :, None], floor), total(dot(exact(q), exact(k), scale), result))
        tensors, params = {"q": q, "k": k} | tensors, {"scale": scale, "amount": AMOUNT, "floor": float(floor)}
    if op == "attend":
        weights = softmax(result, (j[:, None] <= i[:, :, None])[:, None], models=rest.get("models", tuple(MODELS)))
        result, tensors, params = average(weights, exact(v)), {"v": v} | tensors, params | {"causal": True}
    name, (expected, cond) = f"inkling/{op}/h2-c2-e3/{probe}", result
    return case(name, op, params, tensors, expected, cond, kills, **rest)
