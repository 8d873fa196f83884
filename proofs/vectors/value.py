"""RoPE on values: rotated values, turned back by the query's angle or not."""

# Over budget: turned back and not, with masks, caches and positions of two texts

import itertools

import mpmath
import numpy as np

from proofs.rotary.rope import definition as turn
from proofs.rotary.value import definition
from proofs.vectors import *

SOURCES = (
    "Su, kexue.fm/archives/8130, last section: rotated values, not undone",
    "labml.ai, transformers/rope/value_pe: rotated values, undone",
)

CONVENTIONS = {
    "axes": "q, k, v are (batch, heads, n, dim); positions broadcast to all axes but the last",
    "frequencies": "theta_t = base^(-2t/dim); all features turn, counter-clockwise by position * theta",
    "layout": "interleaved pairs features (2t, 2t+1), half pairs (t, t + dim/2)",
    "causal": "if true, a query sees the keys at positions up to its own",
    "op attend": "sum_j softmax_j(scale <R(i) q_i, R(j) k_j>) R(j) v_j, turned by R(-i) if undo is true",
}
REJECTED = (("value/half-undone/d4-b1e4/one", "no-undo", {"undo": None}, "missing", "Turned back: relative; not: absolute."),)
REASONS = """
pair attend * not_undone undone_twice | left out, and twice
mutant attend: * ->  key_cos, key_sin = (sin, sin) if * | the op is given the positions of keys
mutant attend: * ->  key_cos, key_sin = (cos, cos) if * | the op is given the positions of keys
"""

ANY = "other_layout sign positions_ignored values_unturned values_other_layout"
UNDONE = {True: "not_undone undone_twice undone_forward", False: "undone"}


PLACED = PLACES[:2, None].tolist()


def vectors():
    here, there = [[[0, 3, 7, 9]], [[2, 11, 4, 30]]], [[[0, 3, 5, 7, 9]], [[2, 3, 40, 11, 17]]]
    near, before = [2, 6, 7, 9], [1, 2, 6, 7, 9]
    far, cached = [48047], [48040, 48041, 48043, 48046, 48047]
    for layout, undo in itertools.product(OTHER, (True, False)):
        yield _attend("one", (1, 1, 4), [1], [3], layout, undo, ANY, scale=2.0**-6, comment="One key: its weight is 1.")
        if (layout == "half") == undo:
            batch = ANY + " positions_shared_across_batch"
            yield _attend("batch", (2, 3, 4, 5, 6), here, there, layout, undo, batch)
        else:
            yield _attend("causal", (3, 4, 5, 6), near, before, layout, undo, ANY + " causal_ignored", causal=True)
        rows = "int16_positions positions_clamped positions_modulo positions_shared_across_batch wrong_base wrong_axis"
        rows += " queries_and_keys_swapped causal_ignored mask_left_aligned keys_of_the_first_batch_row other_layout"
        more = {"base": 500000, "scale": 0.1875, "models": ("f64", "f32")}
        yield _attend("places", (2, 2, 4, 4, 4), PLACED, PLACED, layout, undo, rows, causal=True, **more)
        for probe, at in (("fractional", HALVES), ("negative", BELOW)):
            yield _attend(probe, (1, 4, 4, 4), at, at, layout, undo, "positions_ignored", causal=True, **more)
        more["scale"] = 256.0
        yield _attend("large", (1, 4, 4, 4), HALVES, HALVES, layout, undo, "scale_ignored", causal=True, **more)
        given = PLACES[2], PLACES[2], layout, undo, "f32_positions"
        yield _attend("beyond-f32", (1, 4, 4, 4), *given, causal=True, models=("f64",))
        yield _attend("decode", (2, 3, 1, 5, 4), far, cached, layout, undo, ANY, comment="One query, the last of five tokens.")


def turned(x, positions, theta, layout):
    """R(positions) x of a pair (values, sensitivities), positions broadcasting to all axes but the last; stored."""
    (values, cond), at, theta = x, np.array(positions, dtype=object)[..., None], np.array(theta)
    members = _split(values, layout)
    cos, sin = (abs(np.frompyfunc(f, 1, 1)(at * theta)) for f in (mpmath.cos, mpmath.sin))
    mixed = lambda a, b: _join(a * cos + b * sin, a * sin + b * cos, layout)
    reach = np.frompyfunc(mpmath.hypot, 2, 1)(*members) * abs(at * theta) * np.array([growth(w) for w in theta])
    cond = {name: mixed(*_split(each, layout)) for name, each in cond.items()}
    cond["amp"], cond["phase"] = cond["amp"] + mixed(*map(abs, members)), cond["phase"] + _join(reach, reach, layout)
    pairs = np.frompyfunc(lambda *pair: turn(*pair, m=mpmath), 4, 2)(*members, at, theta)
    return stored(_join(*pairs, layout), cond)


def _split(x, layout):
    return (x[..., 0::2], x[..., 1::2]) if layout == "interleaved" else np.split(x, 2, axis=-1)


def _join(a, b, layout):
    return np.stack([a, b], axis=-1).reshape(*a.shape[:-1], -1) if layout == "interleaved" else np.concatenate([a, b], axis=-1)


def _theta(dim, base=10000):
    return [mpmath.power(base, -mpmath.mpf(2 * t) / dim) for t in range(dim // 2)]


def _output(q, k, v, here, there, theta, layout, *, undo, scale, mask):
    """`definition` of every head."""
    out = np.empty(q.shape, dtype=object)
    for lead in np.ndindex(q.shape[:-2]):
        i, j = here[lead], there[lead]
        heads = (q[lead].tolist(), k[lead].tolist(), v[lead].tolist(), i.tolist(), j.tolist(), theta)
        seen = None if mask is None else mask[lead]
        out[lead] = definition(*heads, layout=layout, scale=scale, undo=undo, mask=seen, m=mpmath)
    return out


def _attend(probe, extents, here, there, layout, undo, flags, *, causal=False, scale=0.25, base=10000, **rest):
    *lead, n_query, n_key, dim = extents
    q, k, v = painted((*lead, n_query, dim), 1), painted((*lead, n_key, dim), 2), painted((*lead, n_key, dim), 4)
    i, j, theta = np.broadcast_to(here, q.shape[:-1]), np.broadcast_to(there, k.shape[:-1]), _theta(dim, base)
    mask = j[..., None, :] <= i[..., None] if causal else None
    options = {"undo": undo, "scale": scale, "mask": mask}
    right = _output(q, k, v, i, j, theta, layout, **options)
    rotated_inputs = (turned(exact(x), at, theta, layout) for x, at in ((q, i), (k, j), (v, j)))
    out = attend(*rotated_inputs, scale, mask=mask, models=rest.get("models", tuple(MODELS)))
    id = f"value/{layout}-{'undone' if undo else 'absolute'}/d{dim}-{'b1e4' if base == 10000 else 'b5e5'}/{probe}"
    params = {"dim": dim, "base": float(base), "layout": layout, "scale": scale, "undo": undo, "causal": causal}
    tensors = {"q": q, "k": k, "v": v, "q_positions": np.array(here), "k_positions": np.array(there)}
    cond = (turned(out, -i, theta, layout) if undo else out)[1]
    return case(id, "attend", params, tensors, right, cond, f"{flags} {UNDONE[undo]}", **rest)
