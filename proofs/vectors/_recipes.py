"""Recipes: attention with RoPE at the sizes of kernels, from integers: `posref/vectors/kernels/attend.json`.

What other generators do with mpf numbers, a few thousand tokens would take minutes: here a number is an integer over 2^BITS,
tables come from one power each, e^(i (p + 1) w) = e^(i p w) e^(i w), and only exponentials are mpmath's. Sensitivities have
three digits and are float64.
"""

import math

import mpmath
import numpy as np

from posref import ops
from posref.check import rounded
from posref.check.engine import CONSTANTS
from posref.ops import probe
from posref.vectors import MODELS
from posref.vectors import _case as read_case
from posref.vectors.recipes import TAGS, entries, inputs, painted
from proofs.rotary.rope import frequency
from proofs.vectors import BITS as PRECISION
from proofs.vectors import MATH_IN_F32, case, described
from proofs.vectors._documents import written
from proofs.vectors.rope import pairs

BITS = 240  # of the fractions: the last 40 hold what some thousand roundings lose
ONE = 1 << BITS
ENTRIES = 64
SOURCES = ("Su et al., RoFormer, arXiv 2104.09864, Eqs. (13)-(16)", "Vaswani et al., arXiv 1706.03762, Eq. (1)")
CONVENTIONS = {
    "inputs": "q, k and v have the shapes q_shape, k_shape, v_shape: (batch, heads, n, dim); in row-major order and 64-bit "
    "integers x[n] = ((7 n^2 + 31 n + 17 t) mod 251 - 125) / 64 / over, where t and over are the params x_tag and x_over",
    "positions": "key j of text b is at first + max(j - padding[b], 0); the queries are the last of the keys",
    "seen": "keys before padding[b] are seen by nobody; a query sees itself and the keys before it, with a window only the "
    "window - 1 next to it",
    "op attend": "softmax(scale <R(i) q_i, R(j) k_j>) v over the keys that are seen, zeros if there are none; query head a "
    "uses key head floor(a key_heads / heads); R turns features as in rope.json",
    "expected": "the output at the 64 rows of `indices` (batch, head, query, feature), then four sums over the whole output y "
    "in row-major order: of y[n] ((7 n^2 + 31 n + 17 t) mod 251 - 125) / 64 for t = 1, 2, 4, 6, in float64 or exactly",
}


def document(records, *, version):
    """The file of all recipes."""
    title = "Attention with RoPE at the sizes of kernels."
    return written("rope", title, SOURCES, CONVENTIONS, list(records), described("rope"), version)


def records(map=map):
    """The records of all recipes, in the order of `SETTINGS`."""
    return map(_record, SETTINGS)


def _record(settings):
    with mpmath.workprec(PRECISION):
        return recipe(**settings)


COMMON = "scale_ignored"
PADDED = f"{COMMON} other_layout last_keys_left_out empty_row_uniform no_mask"
WINDOW = f"{COMMON} other_layout last_keys_left_out window_one_more window_one_less"
SETTINGS = (
    {"name": "prefill", "heads": 2, "n": 277, "dim": 128, "base": 500000, "kills": f"{COMMON} no_mask"},
    {"name": "padded", "heads": 2, "key_heads": 2, "n": 130, "dim": 64, "padding": (0, 67), "kills": PADDED},
    {"name": "window", "n": 193, "dim": 64, "window": 64, "layout": "interleaved", "models": MATH_IN_F32[:3], "kills": WINDOW},
    {"name": "chunk", "n": 65, "keys": 333, "dim": 256, "first": 1000, "kills": f"{COMMON} queries_left_aligned"},
    {"name": "decode", "heads": 4, "key_heads": 2, "n": 1, "keys": 4097, "dim": 128, "base": 1000000, "kills": COMMON},
)


def recipe(kills, models=MATH_IN_F32, **settings):
    """The record of one recipe: `expected` are entries and sums of the whole output."""
    right = _asked(**settings)
    given = inputs(right)
    output, cond = attended(right, given)
    asked = right._replace(tensors=right.tensors | {"indices": indices(right, given)})
    amount = {part: _compared(asked, values, np.abs) for part, values in cond.items()}
    rest = {
        "mistakes": {flag: entries(asked, wrong(flag, asked, given)) for flag in kills.split()},
        "honest": lambda way, bits: None if bits == 24 else entries(asked, _output(asked, given, way, bits)),
        "comment": f"{math.prod(asked.tensors['q_shape'][:3])} rows of {asked.tensors['k_shape'][2]} keys.",
    }
    right = _compared(asked, output, lambda x: x)
    return case(asked.id, "attend", asked.params, asked.tensors, right, amount, models=models, **rest)


def _output(case, given, way, bits):
    """Products in float64: what sums of thousands of terms lose in float32 is nothing beside 16 bits, and takes minutes.

    In float32 it is not nothing, so there a recipe has no `rms`.
    """
    return rounded.run(*_asked_of(case, given), way._replace(sum=53), bits, CONSTANTS)


def whole(record):
    """The case of a recipe, written out: inputs, and every element of the output with its sensitivities."""
    asked = read_case(record)
    given = inputs(asked)
    output, cond = attended(asked, given)
    exact = np.frompyfunc(lambda x: mpmath.mpf(int(x)) / ONE, 1, 1)(output)
    kept = ("dim", "base", "layout", "scale", "heads", "key_heads", "window")
    params = {name: asked.params[name] for name in kept if name in asked.params}
    honest = lambda way, bits: None if bits == 24 else _output(asked, given, way, bits)
    rest = {"models": asked.models, "comment": asked.comment, "honest": honest}
    return case(asked.id.replace("/kernel/", "/kernel-whole/"), "attend", params, given, exact, cond, **rest)


def _asked(name, n, dim, *, keys=None, heads=1, key_heads=1, base=10000, layout="half", first=0, window=None, padding=(0,)):
    keys, scale = keys or n, 2.0 ** -round(np.log2(dim) / 2) * 1.25
    params = {"dim": dim, "base": float(base), "layout": layout, "scale": scale, "heads": heads, "key_heads": key_heads}
    params |= {"first": first, "q_tag": 1, "q_over": 1, "k_tag": 2, "k_over": 2, "v_tag": 4, "v_over": 1}
    params |= {"window": window} if window else {}
    shapes = {"q": (len(padding), heads, n, dim), "k": (len(padding), key_heads, keys, dim)}
    tensors = {"q_shape": shapes["q"], "k_shape": shapes["k"], "v_shape": shapes["k"], "padding": padding}
    record = {"id": f"rope/kernel/{name}-h{heads}-k{key_heads}-n{n}-m{keys}-d{dim}", "op": "attend", "params": params}
    tensors = {key: {"shape": [len(value)], "data": list(value)} for key, value in tensors.items()}
    empty = {"stages": {}, "expected": {"shape": [0], "data": []}, "cond": None, "gauge": "none", "comment": "", "ignore": None}
    empty |= {"growth": {}, "rms": {}}
    return read_case(record | empty | {"flags": [], "status": "active", "models": [], "tensors": tensors, "fingerprints": {}})


def indices(case, given):
    """First and last entry, both sides of the edges of tiles, rows that see nothing, and others spread over all: 64 of them."""
    shape, size = case.tensors["q_shape"], int(case.tensors["q_shape"].prod())
    edges = {place for tile in (16, 32, 64, 128) for place in (tile - 1, tile) if place < shape[2]}
    rows = sorted({0, shape[2] - 1, *edges})
    features = (0, shape[3] // 2 - 1, shape[3] // 2, shape[3] - 1)
    chosen = [(b, h, i, features[(b + h + i) % 4]) for b in range(shape[0]) for h in (0, shape[1] - 1) for i in rows]
    chosen += [(0, 0, 0, 0), tuple(shape - 1)]
    empty = np.argwhere(~given["seen"].any(axis=-1))
    chosen += [(b, 0, i, 1) for b, i in (empty[0], empty[-1])] if len(empty) else []
    chosen = list(dict.fromkeys(tuple(map(int, each)) for each in chosen))
    spread = (tuple(map(int, np.unravel_index(997 * t % size, shape))) for t in range(1, size))
    chosen += [each for each, _ in zip((s for s in spread if s not in set(chosen)), range(ENTRIES - len(chosen)), strict=False)]
    return np.array(sorted(chosen[:ENTRIES]))


def attended(case, given):
    """(output, cond): the output in integers, its sensitivities in float64."""
    theta = [frequency(t, case.params["dim"], mpmath.mpf(case.params["base"])) for t in range(case.params["dim"] // 2)]
    scale, group = case.params["scale"], case.params["heads"] // case.params["key_heads"]
    output = np.zeros(case.tensors["q_shape"], dtype=object)
    cond = {name: np.zeros(case.tensors["q_shape"]) for name in ("amp", "phase", "out")}
    for b, h in np.ndindex(*output.shape[:2]):
        k, v, seen = given["k"][b, h // group], given["v"][b, h // group], given["seen"][b] != 0
        q_turned = turned(given["q"][b, h], given["q_positions"][b], theta, case.params["layout"])
        k_turned = turned(k, given["k_positions"][b], theta, case.params["layout"])
        scores = np.zeros(seen.shape)
        for i in range(len(seen)):
            if seen[i].any():
                output[b, h, i], scores[i, seen[i]] = _row(q_turned[0][i], k_turned[0][seen[i]], v[seen[i]], scale)
        for name, values in _sensitivity(q_turned[1], k_turned[1], v, scores, seen, scale).items():
            cond[name][b, h] = values
    return output, {**cond, "out": cond["out"] + np.abs((output / ONE).astype(float))}


def _row(q, k, v, scale):
    """One query: its output as integers, its scores as floats."""
    scaled = [mpmath.mpf(int(s)) / ONE / ONE * scale for s in k @ q]
    largest = max(scaled)
    powers = np.array([int(mpmath.exp(s - largest) * ONE) for s in scaled], dtype=object)
    whole = np.frompyfunc(lambda x: int(x * 4096), 1, 1)(v)  # inputs have 12 bits behind the point
    return (powers @ whole) * ONE // (int(powers.sum()) * 4096), np.array([float(s) for s in scaled])


def turned(x, positions, theta, layout):
    """(integers, {amp, phase, out and value as floats}) of the rotated rows."""
    start, steps = int(positions[0]), positions - positions[0]
    cos, sin = (np.array([int(f(start * w) * ONE) for w in theta], dtype=object) for f in (mpmath.cos, mpmath.sin))
    c, s = (np.array([int(f(w) * ONE) for w in theta], dtype=object) for f in (mpmath.cos, mpmath.sin))
    y, amp, phase = np.zeros(x.shape, dtype=object), np.zeros(x.shape), np.zeros(x.shape)
    whole = np.frompyfunc(lambda z: int(z * 4096), 1, 1)(x)
    first, second = (list(side) for side in zip(*pairs(2 * len(theta), layout), strict=True))
    growth = np.array([float(w * (3 * abs(mpmath.log(w)) + 4)) for w in theta])
    at = 0
    for row, step in enumerate(steps):
        while at < step:
            cos, sin, at = (cos * c - sin * s) >> BITS, (sin * c + cos * s) >> BITS, at + 1
        a, b = whole[row, first], whole[row, second]
        y[row, first], y[row, second] = (a * cos - b * sin) >> 12, (a * sin + b * cos) >> 12
        fa, fb = np.abs(x[row, first]), np.abs(x[row, second])
        fc, fs = (np.abs((z / ONE).astype(float)) for z in (cos, sin))
        amp[row, first], amp[row, second] = fa * fc + fb * fs, fa * fs + fb * fc
        phase[row, first] = phase[row, second] = np.hypot(fa, fb) * float(positions[row]) * growth
    value = (y / ONE).astype(float)
    return y, {"value": value, "amp": amp, "phase": phase, "out": np.abs(value)}


def _terms(roundings, sums):
    """`terms` of floats, for models that compute in float32."""
    return np.abs(sums) * (roundings / 3 / (1 - roundings / 2.0**24))


def _sensitivity(q, k, v, scores, seen, scale):
    """What `dot`, `softmax` and `average` of proofs/vectors/_sensitivity.py say, in floats."""
    names = ("amp", "phase", "out")
    size, k_size = np.abs(q["value"]), np.abs(k["value"])
    delta = {name: scale * (q[name] @ k_size.T + size @ k[name].T) for name in names}
    delta["amp"] += _terms(q["value"].shape[-1] + 1, scale * (size @ k_size.T))
    delta["out"] += np.abs(scores)
    top = np.max(scores, axis=-1, keepdims=True, where=seen, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0)
    powers = np.where(seen, np.exp(np.minimum(scores - top, 0)), 0)
    p = powers / np.maximum(powers.sum(axis=-1, keepdims=True), 1e-300)
    bend = _bend(delta, seen)
    weight = {name: bend * p * (each + (p * each).sum(axis=-1, keepdims=True)) for name, each in delta.items()}
    count = seen.sum(axis=-1, keepdims=True)
    weight["amp"] += _terms(count + 2, p) + _terms(1, p * (top - scores))
    weight["out"] += p
    cond = {name: each @ np.abs(v) for name, each in weight.items()}
    cond["amp"] += _terms((p != 0).sum(axis=-1, keepdims=True), p @ np.abs(v))
    return cond


def _bend(delta, seen):
    """As in `softmax`: what is beyond the first order in the coarsest model."""
    models = [MODELS[name] for name in MATH_IN_F32]
    bounds = [c.c_phase * delta["phase"] + c.c_amp * delta["amp"] + c.c_out * delta["out"] for c in models]
    largest = max(float(np.max(bound, where=seen, initial=0)) for bound in bounds)
    length = 2 * np.expm1(largest)
    return np.expm1(length) / length * np.expm1(largest) / largest


def _compared(case, values, size):
    """Entries and sums: of exact integers, or of sensitivities, with the sizes of the weights and past what a sum loses."""
    picked = list(values[tuple(case.tensors["indices"].T)])
    weights = [size(np.frompyfunc(lambda x: int(x * 64), 1, 1)(painted(values.size, tag))) for tag in TAGS]
    if size is np.abs:
        return np.array([*picked, *(np.sum(w.astype(float) * values.ravel()) / 64 for w in weights)]) * (1 + 2.0**-30)
    sums = [int((w * values.ravel()).sum()) for w in weights]
    return [mpmath.mpf(int(x)) / ONE for x in picked] + [mpmath.mpf(x) / ONE / 64 for x in sums]


def wrong(flag, case, given):
    """The output of a kernel with a mistake, in float64."""
    spec, arguments = _asked_of(case, given)
    if flag.startswith("window"):  # the mask holds the window already
        near = given["k_positions"][:, None, None] <= given["q_positions"][:, None, :, None]
        arguments["mask"] = near & np.ones_like(arguments["mask"])
    return ops.op("rope.attend").mistakes[flag].wrong(spec, arguments)


def _asked_of(case, given):
    """The specification of a recipe and its arguments."""
    spec = ops.op("rope.attend").spec
    tensors = {"q": given["q"], "k": given["k"], "v": given["v"], "mask": given["seen"][:, None] != 0}
    tensors |= {"query_positions": given["q_positions"], "key_positions": given["k_positions"]}
    words = {name: case.params[name] for name in ("dim", "base", "layout", "scale", "key_heads")}
    words["window"] = case.params.get("window")
    return spec, probe.completed(spec, tensors | words)
