"""RoPE: rotary position embedding."""

# Over budget: all layouts, widths, schedules of positions, scores and attention

import mpmath
import numpy as np
import sympy

from proofs.rotary.rope import definition, frequency
from proofs.vectors import *
from proofs.vectors import BITS

SOURCES = (
    "Su et al., RoFormer, arXiv 2104.09864, Eqs. (13)-(16) and (34)",
    "Weights between layouts: transformers, models/llama/convert_llama_weights_to_hf.py, permute",
)

CONVENTIONS = {
    "axes": "x is (batch, heads, n, d) or (n, d); positions broadcast to all axes of x but the last",
    "dim": "the rotated width; theta_t = base^(-2t/dim); features from dim on pass",
    "layout": "interleaved pairs features (2t, 2t+1), half pairs (t, t + dim/2)",
    "rotation": "counter-clockwise by position * theta: (a, b) -> (a cos - b sin, a sin + b cos)",
    "op inv_freq": "theta, dim/2 numbers",
    "op tables": "cos of all angles, then sin: (n, dim)",
    "op rotate": "R(positions) x",
    "op scores": "scale * <R(i) q_i, R(j) k_j>; query head a uses key head floor(a * key_heads / heads)",
    "op attend": "softmax(cap(scale <R(i) q_i, R(j) k_j>)) v over the keys that are seen: those at or before the query if "
    "causal, 1 in `seen`, within `window` positions; sinks, one per head, enter the sum of the exponentials",
    "q_weight": "(head_dim,), and k_weight for keys: each head becomes x / sqrt(mean(x^2) + eps) times it, before the rotation",
    "op gradient": "of rotate with respect to x, from the gradient g of its result: R(-positions) g",
    "op gradient_tables": "of x * cos + turned(x) * sin with respect to x, for full-width tables whose halves differ; "
    "turned(x) is (-b, a) for every pair",
    "op permute": "rows of a projection (heads * head_dim, ..) reordered within every head from layout source to layout target",
}
REJECTED = (
    ("rope/half/d4-b1e4/one", "odd-dim", {"dim": 3}, "range", "Features turn in pairs."),
    ("rope/half/d4-b1e4/one", "no-layout", {"layout": None}, "missing", "Both layouts are in use, and neither is an error."),
    ("rope/half/d4-b1e4/one", "layout-neox", {"layout": "neox"}, "choice", "Words for layouts differ; nothing is guessed."),
    ("rope/half/d4-b1e4/one", "dim-too-large", {"dim": 6}, "shape", "Six features cannot turn where there are four."),
    ("rope/half/d4-b1e4/one", "dim-0", {"dim": 0}, "range", "Nothing turns."),
    ("rope/half/d4-b1e4/one", "base-0", {"base": 0.0}, "range", "The frequencies are infinite."),
    ("rope/half/d6-b1e4/fractional", "positions-short", {"positions": cut}, "shape", "Two positions for three rows."),
    ("rope/half-to-interleaved/h4-d8/q-bias", "heads", {"heads": 5}, "shape", "32 rows are no five heads."),
    ("rope/half-to-interleaved/h4-d8/q-bias", "odd-dim", {"dim": 7}, "range", "Features turn in pairs."),
)
REASONS = """
pair attend * cos_sin_swapped sign | queries and keys turn a quarter further, and scores see their difference
pair scores * cos_sin_swapped sign | queries and keys turn a quarter further, and scores see their difference
pair gradient * gradient_forward sign | two signs
"""

SPARSE = (0, 1, 2, 3, 5, 17, 100, 255, 256, 257, 511, 1000, 4095, 65535, 131073, 1048575)

# What a probe can tell: any with a position beside 0, one with far positions, one with positions out of order.
ANY = (
    "other_layout third_layout tiled_tables sign cos_sin_swapped position_plus_one position_minus_one positions_zero "
    "wrong_base exponent_doubled exponent_halved exponent_shifted exponent_to_end "
    "frequencies_ascending linear_scaling magnitude"
)
FAR = "positions_clamped positions_modulo bf16_inv_freq bf16_positions"
FAR_NARROW = "positions_clamped positions_modulo bf16_positions int16_positions"  # float16 has no such numbers
ORDER = "positions_ignored positions_reversed"


def vectors():
    for dim in (4, 6, 8, 10, 64, 92, 128):
        yield _inv_freq(dim, 10**4)
    for base in (5 * 10**5, 10**6):
        yield _inv_freq(128, base)
    yield _tables("tiny", range(8), 8, 10**4)
    yield _tables("sparse", (1, 257, 4097, 131071, 1048575), 64, 10**4, "bf16_inv_freq")
    x = np.array([[1.0, 2.0, 3.0, 4.0]])
    for layout in OTHER:
        yield _rotate("one", x, [1], 4, 10**4, layout, "other_layout third_layout tiled_tables sign positions_zero")
        yield _rotate("tiny", painted((8, 8), 1), range(8), 8, 10**4, layout, ANY + " positions_reversed", stages=True)
        yield _rotate("sparse1m", painted((16, 64), 2), SPARSE, 64, 10**4, layout, f"{ANY} {FAR} {ORDER}")
    yield _rotate("far", painted((2, 128), 4), (48040, 131071), 128, 5 * 10**5, "half", f"{ANY} {FAR} {ORDER}")
    yield _rotate("far", painted((2, 92), 6), (65535, 1048575), 92, 10**6, "interleaved", f"{ANY} {FAR} {ORDER}")
    for parts in (_axes, _edges, _partial, _scores, _placed_scores, _attention, _gradients, _permutations):
        yield from parts()


def _axes():
    shuffled = [[[7, 3, 3, 4097, 0]], [[48040, 1, 2, 300, 5]]]
    flags = f"{ANY} {ORDER} positions_shared_across_batch batch_row_0_only wrong_axis"
    for layout in OTHER:
        narrow = flags + " f16_positions bf16_positions"
        yield _rotate("shuffled", painted((2, 3, 5, 10), 8), shuffled, 10, 10**4, layout, narrow)
    padded = [[[0, 0, 0, 1]], [[257, 258, 259, 260]]]
    yield _rotate("padded", painted((2, 3, 4, 6), 9), padded, 6, 10**6, "half", flags, comment="Row 0 is padded on the left.")
    x, positions = painted((2, 5, 3, 8), 10), [[[1], [2], [3], [4], [5]], [[9], [8], [4097], [6], [5]]]
    yield _rotate("sequence-first", x, positions, 8, 10**4, "half", "wrong_axis", comment="x is (batch, n, heads, d).")


def _edges():
    rows = np.repeat(painted((1, 3, 1, 8), 13), 2, axis=0)
    decode = "other_layout sign positions_zero positions_ignored batch_row_0_only"
    for layout in OTHER:
        origin = "position_plus_one position_minus_one cos_sin_swapped magnitude third_layout"
        yield _rotate("origin", painted((1, 8), 14), [0], 8, 10**4, layout, origin, comment="Position 0 is the identity.")
        yield _rotate("decode", rows, [[[5]], [[5]]], 8, 10**4, layout, decode, comment="Equal rows give equal results.")
    decode += " positions_shared_across_batch bf16_positions"
    yield _rotate("decode-offsets", painted((2, 3, 1, 8), 11), [[[5]], [[4097]]], 8, 10**4, "half", decode)
    yield _rotate("fractional", painted((3, 6), 15), [0.5, 2.25, -3.0], 6, 10**4, "half", "sign other_layout positions_ignored")
    yield _rotate("tables", painted((2, 64), 17), [1, 17], 64, 10**4, "half", "bf16_tables", models=MATH_IN_F32)
    yield _rotate("beyond-f32", painted((1, 8), 18), [2**24 + 1], 8, 10**4, "half", "f32_positions", models=("f64",))
    given = {"models": ("f64",)}
    yield _rotate("beyond-f32", painted((1, 8), 18), [2**24 + 1], 8, 10**4, "interleaved", "f32_positions", **given)
    yield _tables("beyond-f32", PLACES[2], 4, 10**4, "f32_positions sign", **given)
    wrong = f"wrong_base sign positions_shared_across_batch {FAR_NARROW}"
    yield _tables("places", PLACES[:2], 4, 5 * 10**5, wrong, models=MATH_IN_F32)
    for probe, at in (("fractional", HALVES), ("negative", BELOW)):
        yield _tables(probe, at, 4, 10**4, "sign positions_ignored linear_scaling")
        yield _rotate(probe, painted((4, 4), 15), at, 4, 10**4, "interleaved", "sign other_layout positions_ignored")


def _partial():
    x = np.arange(1.0, 9.0)[None]
    flags = "exponent_head_dim tail_zeroed tail_rotated all_rotated positions_zero other_layout"
    for layout in OTHER:
        own = flags + " pairs_across_head" * (layout == "half")
        yield _rotate("one", x, [1], 4, 10**4, layout, own)
        yield _rotate("partial", painted((2, 80), 19), [3, 4097], 32, 10**4, layout, own + " wrong_base")
    trap = {"head_dim": 100, "factor": 0.29}
    note = "dim = int(head_dim * factor); the product is 28.999999999999996."
    yield _rotate("int", painted((1, 100), 20), [7], 28, 10**4, "half", "rotary_dim_rounded", params=trap, comment=note)


def _scores():
    scale, theta = 0.25, _theta(8, 10**4)
    q, k, shared = painted((2, 4, 3, 8), 1), painted((2, 2, 5, 8), 2), [0, 0, 1, 1]
    for layout in OTHER:
        for probe, first in (("grouped", 0), ("grouped-far", 48040)):
            rows, columns = np.arange(2, 5) + first, np.arange(5) + first
            turned = {"q_rotated": _turn(q, rows, theta, layout), "k_rotated": _turn(k, columns, theta, layout)}
            id = f"rope/{layout}/d8-b1e4/scores-{probe}"
            params = {"dim": 8, "base": 10000.0, "layout": layout, "scale": scale, "heads": 4, "key_heads": 2}
            tensors = {"q": q, "k": k, "q_positions": rows, "k_positions": columns}
            kills = "other_layout sign queries_left_aligned positions_zero heads_modulo q_not_rotated"
            comment = "3 queries are the last of 5 tokens; 4 query heads share 2 key heads."
            left = stored(turned["q_rotated"], _sensitivity(q, rows, theta, layout))
            right = stored(turned["k_rotated"][:, shared], _sensitivity(k[:, shared], columns, theta, layout))
            answer = dot(left, right, scale)
            yield case(id, "scores", params, tensors, *answer, kills, stages=turned if first == 0 else {}, comment=comment)


NEAR = "other_layout q_not_rotated scale_ignored values_turned"
TURNED = NEAR + " positions_zero"
PARTS = {"prefill": 0, "chunk": 3, "step": 4}


def _placed_scores():
    """Two texts of two heads, positions in no order and on both sides of where narrow numbers end."""
    q, k = painted((2, 2, 4, 4), 1), painted((2, 1, 4, 4), 2)
    wrong = f"{FAR_NARROW} other_layout sign positions_ignored positions_shared_across_batch wrong_base row_for_position"
    for layout in OTHER:
        for probe, at, base, scale, flags in (
            ("places", PLACES[:2, None], 5 * 10**5, 0.1875, wrong),
            ("beyond-f32", PLACES[2], 10**4, 0.375, "f32_positions positions_ignored"),
            ("fractional", HALVES, 5 * 10**5, 0.375, "positions_ignored sign"),
            ("negative", BELOW, 5 * 10**5, 0.375, "positions_ignored sign"),
        ):
            theta = _theta(4, base)
            turned = [stored(_turn(x, at, theta, layout), _sensitivity(x, at, theta, layout)) for x in (q, np.repeat(k, 2, 1))]
            given = {"dim": 4, "base": float(base), "layout": layout, "scale": scale, "heads": 2, "key_heads": 1}
            id = f"rope/{layout}/d4-{_base(base)}/scores-{probe}"
            places = at.reshape(-1, 4) if at.ndim > 1 else at
            tensors = {"q": q, "k": k, "q_positions": places, "k_positions": places}
            models = ("f64",) if probe == "beyond-f32" else ("f64", "f32")
            yield case(id, "scores", given, tensors, *dot(*turned, scale), flags, models=models)


def _attention():
    """Queries, keys and values as wide as a head, as kernels have them; the parts of one text share one output."""
    causal = {"causal": True}
    yield from _attend(64, 10**4, "half", TURNED + " queries_left_aligned", PARTS, causal, n=5, heads=2, first=300)
    yield from _attend(64, 10**4, "interleaved", TURNED, {"prefill": 0}, causal, n=5, first=300)
    far = {"n": 3, "at": np.array([61, 68, 105])}
    parts = {"causal": 0, "causal-chunk": 1, "causal-step": 2}
    yield from _attend(128, 5 * 10**5, "half", NEAR + " no_mask", parts, causal, **far)
    far = {"n": 2, "at": np.array([7, 29])}
    yield from _attend(256, 10**4, "interleaved", NEAR + " no_mask", {"causal": 0, "causal-step": 1}, causal, **far)
    far = {"n": 3, "at": np.array([5, 61, 105])}
    yield from _attend(256, 10**4, "half", NEAR, {"prefill": 0, "chunk": 1, "step": 2}, causal, **far)
    wrong = "other_layout window_ignored window_one_more window_one_less scale_ignored"
    yield from _attend(64, 10**4, "half", wrong, {"window": 0, "window-step": 5}, causal | {"window": 3}, n=6)
    wrong, sinks = "sink_left_out sink_of_zero sink_of_the_first_head heads_tiled", np.array([0.75, -1.5, 0.25, 1.0])
    yield from _attend(64, 150000, "half", wrong, {"sinks": 0}, causal, n=2, heads=4, key_heads=2, sinks=sinks)
    wrong = "cap_left_out cap_without_division cap_without_factor"
    yield from _attend(64, 10**4, "half", wrong, {"softcap": 0}, causal | {"softcap": 0.5}, n=3)
    rows = f"{FAR_NARROW} positions_shared_across_batch wrong_base keys_of_the_first_batch_row heads_exchanged no_mask"
    for layout in OTHER:
        two = {"n": 4, "heads": 2, "key_heads": 2, "divided": 1}
        yield from _attend(4, 5 * 10**5, layout, rows, {"places": 0}, causal, at=PLACES[:2], **two)
        cached = "mask_left_aligned queries_left_aligned positions_ignored no_mask"
        if layout == "interleaved":  # halves have one already
            yield from _attend(4, 5 * 10**5, layout, cached, {"places-cached": 2}, causal, at=PLACES[:2], **two)
        more = {"models": ("f64", "f32"), "divided": 1}
        for probe, at, wrong in (("fractional", HALVES, ""), ("negative", BELOW, " sign no_mask")):
            wrong = f"positions_ignored{wrong}"
            yield from _attend(4, 5 * 10**5, layout, wrong, {probe: 0}, causal, n=4, at=at, **more)
        wrong, more["scale"] = "scale_ignored q_not_rotated mask_inverted values_turned", 256.0
        yield from _attend(4, 5 * 10**5, layout, wrong, {"large": 0}, causal, n=4, at=HALVES, **more)
        more = {"models": ("f64",), "scale": 0.375, "divided": 1}
        yield from _attend(4, 10**4, layout, "f32_positions", {"beyond-f32": 0}, causal, n=4, at=PLACES[2], **more)
    at, seen = np.array([[0, 0, 0, 1], [0, 1, 2, 3]]), np.array([np.tri(4) * [0, 0, 1, 1], np.tri(4)])[:, None].astype(int)
    wrong = "other_layout positions_zero no_mask mask_inverted scale_ignored empty_row_uniform"
    note = "The first text is padded on the left: its first two queries see nothing."
    for layout, dim in (("half", 64), ("interleaved", 4)):
        yield from _attend(dim, 10**4, layout, wrong, {"left-padding": 0}, {}, n=4, at=at, seen=seen, comment=note)


def _attend(
    dim, base, layout, wrong, parts, rules, *, n, heads=1, key_heads=1, first=0, at=None, seen=None, sinks=None, **rest
):
    """A case for each part: the rows from there to the end of one text."""
    at, theta = np.arange(n) + first if at is None else at, _theta(dim, base)
    scale, divided = rest.pop("scale", float(narrow(1 / mpmath.sqrt(dim), 8))), rest.pop("divided", 4)
    models = rest.pop("models", MATH_IN_F32)
    batch, rows = (len(at), at[:, None]) if at.ndim == 2 else (1, at)
    size = lambda h: (batch, h, n, dim)
    q, k, v = painted(size(heads), 1) / min(divided, 2), painted(size(key_heads), 2) / divided, painted(size(key_heads), 4)
    mask = seen != 0 if seen is not None else (at[..., None, :] <= at[..., None]).reshape(-1, 1, n, n)
    if "window" in rules:
        mask = mask & (at[:, None] - at < rules["window"])
    turned = lambda x: stored(_turn(x, rows, theta, layout), _sensitivity(x, rows, theta, layout))
    shared = lambda x: np.repeat(x, heads // key_heads, axis=1)
    s = dot(turned(q), turned(shared(k)), scale, bits=24)
    s = cap(s, rules["softcap"]) if "softcap" in rules else s
    weights = softmax(s, mask, None if sinks is None else sinks[:, None], models)
    whole = average(weights, exact(shared(v)))
    given = {"dim": dim, "base": float(base), "layout": layout, "scale": scale, "heads": heads, "key_heads": key_heads}
    for probe, start in parts.items():
        tensors = {"q": q[:, :, start:], "k": k, "v": v, "q_positions": at[..., start:], "k_positions": at}
        tensors |= {} if sinks is None else {"sinks": sinks}
        tensors |= {} if seen is None else {"seen": seen[..., start:, :]}
        answer = rearranged(lambda x, start=start: x[:, :, start:], whole)
        id = f"rope/{layout}/d{dim}-{_base(base)}/attend-{probe}"
        kills = _seen_from(start, n, wrong if start or probe != "prefill" else wrong.replace("queries_left_aligned", "no_mask"))
        yield case(id, "attend", given | rules, tensors, *answer, kills, models=models, **rest)


def _seen_from(start, n, wrong):
    """The last query sees every key, so a mask that is left out shows in the others."""
    return wrong.replace(" no_mask", "") if start == n - 1 else wrong


def _gradients():
    g, positions, theta = painted((3, 8), 21), np.array([1, 300, 4097]), _theta(8, 10**4)
    cos, sin = painted((3, 8), 27), painted((3, 8), 31)
    placed, slow = painted((2, 4, 4), 21), _theta(4, 5 * 10**5)
    for layout in OTHER:
        id, params = f"rope/{layout}/d8-b1e4/gradient", {"dim": 8, "base": 10000.0, "layout": layout}
        expected, cond = _turn(g, -positions, theta, layout), _sensitivity(g, positions, theta, layout)
        yield case(id, "gradient", params, {"g": g, "positions": positions}, expected, cond, "gradient_forward other_layout")
        for probe, at, models, flags in (
            ("places", PLACES[:2], ("f64", "f32"), f"{FAR_NARROW} positions_shared_across_batch wrong_base gradient_forward"),
            ("beyond-f32", PLACES[1:], ("f64",), "f32_positions"),
            ("fractional", HALVES[None], ("f64", "f32"), "positions_ignored"),
            ("negative", BELOW[None], ("f64", "f32"), "positions_ignored"),
        ):
            id, params = f"rope/{layout}/d4-b5e5/gradient-{probe}", {"dim": 4, "base": 500000.0, "layout": layout}
            expected, cond = _turn(placed[: len(at)], -at, slow, layout), _sensitivity(placed[: len(at)], at, slow, layout)
            yield case(id, "gradient", params, {"g": placed[: len(at)], "positions": at}, expected, cond, flags, models=models)
        right, size = np.zeros((3, 8)), np.zeros((3, 8))  # products of 8-bit numbers: exact
        for a, b in pairs(8, layout):
            (ga, gb), (ca, cb), (sa, sb) = ((z[:, a], z[:, b]) for z in (g, cos, sin))
            right[:, a], right[:, b] = ga * ca + gb * sb, gb * cb - ga * sa
            size[:, a], size[:, b] = abs(ga * ca) + abs(gb * sb), abs(gb * cb) + abs(ga * sa)
        id, tensors = f"rope/{layout}/d8/gradient-tables", {"g": g, "cos": cos, "sin": sin}
        kills = "gradient_forward gradient_turned_first"
        comment = "The halves of the tables differ on purpose; these tables are no rotation."
        yield case(id, "gradient_tables", {"dim": 8, "layout": layout}, tensors, right, terms(2, size), kills, comment=comment)


def _permutations():
    for name, shape, heads, dim in (
        ("q-weight", (32, 3), 4, 8),
        ("k-weight", (16, 3), 2, 8),
        ("q-bias", (32,), 4, 8),
        ("partial-weight", (20, 3), 2, 6),
    ):
        weight = painted(shape, 1)
        for source, target in OTHER.items():
            partial = dim < len(weight) // heads
            id = f"rope/{source}-to-{target}/h{heads}-d{dim}/{name}"
            params = {"heads": heads, "dim": dim, "source": source, "target": target}
            kills = "permuted_back not_permuted permuted_across_heads" + " tail_permuted" * partial
            yield case(id, "permute", params, {"weight": weight}, _permuted(weight, heads, dim, source, target), kills=kills)


def pairs(dim, layout):
    """The features of pair t = 0 .. dim/2 - 1."""
    return [(2 * t, 2 * t + 1) if layout == "interleaved" else (t, t + dim // 2) for t in range(dim // 2)]


def _theta(dim, base):
    exact = [frequency(sympy.Integer(t), dim, sympy.Integer(base)) for t in range(dim // 2)]
    return [mpmath.mpf(each._to_mpmath(BITS)) for each in exact]


def _every(x, positions):
    """Indices of all vectors of x with their position; positions broadcast to x without its features."""
    at = np.broadcast_to(np.array(positions, dtype=object), x.shape[:-1])
    return [(index, at[index]) for index in np.ndindex(at.shape)]


def _turn(x, positions, theta, layout):
    """`definition` for every pair of every vector of x."""
    y = x.astype(object)
    for index, position in _every(x, positions):
        for w, (a, b) in zip(theta, pairs(2 * len(theta), layout), strict=True):
            y[index][a], y[index][b] = definition(x[index][a].item(), x[index][b].item(), position, w, mpmath)
    return y


def _sensitivity(x, positions, theta, layout):
    """`amp` and `phase` of every rotated feature; 0 where features pass."""
    amp, phase = np.zeros(x.shape, dtype=object), np.zeros(x.shape, dtype=object)
    for index, position in _every(x, positions):
        for w, (a, b) in zip(theta, pairs(2 * len(theta), layout), strict=True):
            angle, first, second = abs(position * w), abs(x[index][a].item()), abs(x[index][b].item())
            cos, sin = abs(mpmath.cos(angle)), abs(mpmath.sin(angle))
            amp[index][a], amp[index][b] = first * cos + second * sin, first * sin + second * cos
            phase[index][a] = phase[index][b] = mpmath.hypot(first, second) * angle * growth(w)
    return {"amp": amp, "phase": phase}


def _permuted(weight, heads, dim, source, target):
    """Rows reordered in every head; pair t moves from where source keeps it to where target looks for it."""
    moved, width = weight.copy(), len(weight) // heads
    for head in range(heads):
        for old, new in zip(pairs(dim, source), pairs(dim, target), strict=True):
            for i, j in zip(old, new, strict=True):
                moved[head * width + j] = weight[head * width + i]
    return moved


def _base(base):
    return {10**4: "b1e4", 15 * 10**4: "b15e4", 5 * 10**5: "b5e5", 10**6: "b1e6"}[base]


def _inv_freq(dim, base):
    theta = _theta(dim, base)
    id, cond = f"rope/any/d{dim}-{_base(base)}/inv_freq", {"phase": [w * growth(w) for w in theta]}
    kills = "wrong_base exponent_doubled exponent_halved frequencies_ascending"
    comment = "Compare before anything else: radians per position of every pair."
    return case(id, "inv_freq", {"dim": dim, "base": float(base)}, {}, theta, cond, kills, comment=comment)


def _angles(positions, theta):
    return np.array(positions, dtype=object)[..., None] * np.array(theta)


def _tables(probe, positions, dim, base, kills="", **rest):
    theta = _theta(dim, base)
    values = np.concatenate([np.frompyfunc(f, 1, 1)(_angles(positions, theta)) for f in (mpmath.cos, mpmath.sin)], axis=-1)
    reach = abs(_angles(positions, [w * growth(w) for w in theta]))
    id, params = f"rope/any/d{dim}-{_base(base)}/tables-{probe}", {"dim": dim, "base": float(base)}
    tensors = {"positions": np.array(positions)}
    cond = {"amp": terms(3, values), "phase": np.concatenate([reach, reach], axis=-1)}
    kills = f"cos_sin_swapped frequencies_ascending {kills}"
    return case(id, "tables", params, tensors, values, cond, kills, stages={"inv_freq": theta}, **rest)


def _rotate(probe, x, positions, dim, base, layout, kills, *, stages=False, params=None, **rest):
    theta, width = _theta(dim, base), x.shape[-1]
    tables = {name: np.frompyfunc(getattr(mpmath, name), 1, 1)(_angles(positions, theta)) for name in ("cos", "sin")}
    id = f"rope/{layout}/d{width}{f'-r{dim}' * (dim < width)}-{_base(base)}/{probe}"
    words = {"dim": dim, "base": float(base), "layout": layout, **(params or {})}
    tensors, expected = {"x": x, "positions": np.array(positions)}, _turn(x, positions, theta, layout)
    cond = _sensitivity(x, positions, theta, layout)
    stages = {"inv_freq": theta, **tables} if stages else {}
    return case(id, "rotate", words, tensors, expected, cond, kills, stages=stages, **rest)
