"""RoPE over several axes: angles, sections, grids, and a released map that is no rotation."""

# Over budget: grids, released maps that are no rotation, and presets

import itertools

import numpy as np
import sympy as sp

from posref import attention, pairing
from posref.explain import presets
from posref.rotary import axes, rope
from proofs.kit import *

DEFAULTS = {"merge": 1}

N, H, A = size("n"), size("h"), size("a")


def definition(position, frequency, m=sp):
    """The angle of a pair that reads one coordinate; Qwen2-VL, section 2.1, is RoFormer Eq. (13) with it."""
    return position * frequency


def turned(x, angle, layout):
    return rope.rotate(x, np.cos(angle), np.sin(angle), layout=layout)


def dot(x, y):
    return x @ np.swapaxes(y, -1, -2)


def axis_of(t):
    """A free map from pairs to axes, and what is known of its value at pair t."""
    a = integers("axis", H)
    return a, assuming(sp.Ge(a.at(t), 0), sp.Le(a.at(t), A - 1))


@theorem(of=[axes.angles], sizes="all n, d, axes", silent="the map from pairs to axes has no numbers")
def pinned():
    """The angle of pair t of token i is p_i,a(t) w_t, for every map a from pairs to axes."""
    p, w, i, t = sized("p", N, A), sized("w", H), index(N), index(H)
    a, known = axis_of(t)
    with known:
        angle = axes.angles(p, w, a).at(i, t)
        prove_equal([angle], [definition(p.at(i, a.at(t)), w.at(t))], mention=[w.at(t)])


@pinned.control
def pinned_with_one_axis():
    """Every pair reads axis 0."""
    p, w = symbols("p", 1, 2), symbols("w", 2)
    prove_equal(axes.angles(p, w, np.array([0, 1])), p[:, :1] * w)


@theorem(of=[axes.angles, rope.tables], sizes="all n, d, axes", as_written="runs")
def equal_positions_are_rope():
    """If all axes of a token have one position, the angles are those of one-dimensional RoPE, for every map of pairs to
    axes."""
    m, w, i, t = sized("m", N), sized("w", H), index(N), index(H)
    a, known = axis_of(t)
    with known:
        angle = axes.angles(m[:, None] + filled((N, A), 0), w, a)
        for table, function in zip(rope.tables(m, w), (np.cos, np.sin), strict=True):
            prove_equal([function(angle).at(i, t)], [table.at(i, t)], mention=[w.at(t)])


@equal_positions_are_rope.claim("They agree on text, whose axes are equal, and differ on images.")
def sections_and_interleaved_sections_are_one():
    """Sections and interleaved sections of the same sizes are the same encoding."""
    p, w = symbols("p", 1, 3), symbols("w", 6)
    apart, dealt = axes.sections(np.array([2, 2, 2])), axes.interleaved_sections(np.array([2, 2, 2]), leftover="transformers")
    prove_equal(axes.angles(p, w, apart), axes.angles(p, w, dealt))


@theorem(of=[axes.angles, rope.rotate, attention.scores], sizes="d = 4, 2 axes, every map")
def relative():
    """Scores do not change when all tokens move by one vector: they see the vector of offsets alone."""
    q, k, w, shift = symbols("q", 1, 4), symbols("k", 1, 4), symbols("w", 2), symbols("shift", 1, 2)
    m, n = symbols("m", 1, 2), symbols("n", 1, 2)
    for layout in pairing.LAYOUTS:
        for axis in itertools.product((0, 1), repeat=2):
            at = lambda x, p, axis=axis, layout=layout: turned(x, axes.angles(p, w, np.array(axis)), layout)
            there = attention.scores(at(q, m + shift), at(k, n + shift), scale=1)
            prove_equal(there, attention.scores(at(q, m), at(k, n), scale=1), mention=[shift[0, axis[0]], shift[0, axis[1]]])


@relative.control
def relative_along_one_axis_alone():
    """Moving the key along the second axis alone changes nothing."""
    q, k, w, p = symbols("q", 1, 4), symbols("k", 1, 4), symbols("w", 2), symbols("p", 1, 2)
    at = lambda x, p: turned(x, axes.angles(p, w, np.array([0, 1])), "half")
    prove_equal(dot(at(q, p), at(k, p)), dot(at(q, p), at(k, p + array([0, 1]))))


@theorem(of=[axes.angles], sizes="3 axes, 4 frequencies, every permutation of one map", as_written="runs")
def permuted_axes():
    """Renaming the axes, in the positions and in the map alike, changes nothing."""
    p, w, axis = symbols("p", 2, 3), symbols("w", 4), np.array([0, 1, 2, 1])
    for order in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)):
        order = np.array(order)
        renamed = np.argsort(order)[axis]  # axis `order[b]` is called b
        prove_equal(axes.angles(p[:, order], w, renamed), axes.angles(p, w, axis), mention=[p[0, 0], p[0, 1], p[0, 2]])


@permuted_axes.claim("The map must be renamed with the positions: rows and columns exchanged are another encoding.")
def rows_and_columns_exchanged():
    """Whether rows or columns come first makes no difference."""
    p, w, axis = symbols("p", 1, 2), symbols("w", 2), np.array([0, 1])
    prove_equal(axes.angles(p[:, ::-1], w, axis), axes.angles(p, w, axis))


@example(of=[axes.sections, axes.interleaved_sections], sizes="eight lists of one to three sizes")
def pinned_sections():
    """sections: axis a has the pairs from sum_{b<a} n_b on; interleaved: pair t reads t mod k if t < k n_(t mod k), else 0,
    or k."""
    for sizes in ((16, 24, 24), (24, 20, 20), (11, 11, 10), (5,), (2, 1), (1, 3), (4, 1, 2), (1, 4, 3)):
        k, pairs = len(sizes), range(sum(sizes))
        prove_equal(axes.sections(np.array(sizes)), [sum(t >= sum(sizes[: a + 1]) for a in range(k)) for t in pairs])
        for leftover, other in (("transformers", 0), ("ggml", k)):
            dealt = [t % k if t < k * sizes[t % k] else other for t in pairs]
            prove_equal(axes.interleaved_sections(np.array(sizes), leftover=leftover), dealt)


@pinned_sections.claim("ggml turns pairs 61 and 62 of Qwen3-VL by a fourth stream of positions.")
def leftovers_are_one():
    """Qwen3-VL's [24, 20, 20] means the same in transformers and in ggml."""
    dealt = [axes.interleaved_sections(np.array([24, 20, 20]), leftover=leftover) for leftover in ("transformers", "ggml")]
    prove_equal(*dealt)


@example(of=[axes.grid, axes.centers], sizes="up to 4 x 6 patches")
def pinned_grid():
    """Patch i of a grid of width c is in row i div c and column i mod c; its centre is (2 row + 1) / rows - 1. With merge,
    patch i is in square i div merge^2, and in it row by row."""
    for height, width, merge in ((1, 1, 1), (2, 3, 1), (3, 2, 1), (4, 6, 2), (2, 4, 2), (3, 3, 3)):
        across, expected = width // merge, []
        for i in range(height * width):
            square, inside = divmod(i, merge * merge)
            expected.append([square // across * merge + inside // merge, square % across * merge + inside % merge])
        prove_equal(axes.grid(height, width, merge=merge), expected)
    for height, width in ((1, 2), (2, 4), (4, 2)):
        centre = lambda i, n: sp.Rational(2 * i + 1, n) - 1
        expected = [[centre(i // width, height), centre(i % width, width)] for i in range(height * width)]
        prove_equal(axes.centers(height, width), expected)


@pinned_grid.control
def grid_by_columns():
    """Patches are counted column by column."""
    prove_equal(axes.grid(2, 3), [[0, 0], [1, 0], [0, 1], [1, 1], [0, 2], [1, 2]])


@theorem(of=[axes.rotate_vjepa2], sizes="all n, d; released: one row, d = 4, 6")
def pinned_vjepa2():
    """convention="paper" is RoPE of adjacent pairs; "released" makes of (a, b), features 2t and 2t + 1, a cos x - b sin x and
    b cos y + a sin y, x and y being the angles 2t mod d/2 and (2t + 1) mod d/2."""
    x, c, s = sized("x", N, 2 * H), sized("c", N, H), sized("s", N, H)
    paper = axes.rotate_vjepa2(x, c, s, convention="paper")
    prove_equal(*entries("interleaved", paper, rope.rotate(x, c, s, layout="interleaved")))
    for pairs in (2, 3):
        x, c, s = symbols("x", 1, 2 * pairs), symbols("c", 1, pairs), symbols("s", 1, pairs)
        (y,) = axes.rotate_vjepa2(x, c, s, convention="released")
        for t in range(pairs):
            a, b, first, second = x[0, 2 * t], x[0, 2 * t + 1], 2 * t % pairs, (2 * t + 1) % pairs
            expected = [a * c[0, first] - b * s[0, first], b * c[0, second] + a * s[0, second]]
            prove_equal(y[2 * t : 2 * t + 2], expected, mention=[c[0, first], c[0, second]])


@pinned_vjepa2.claim("The released map changes lengths, and the score changes when all tokens move.")
def vjepa2_keeps_lengths():
    """V-JEPA 2 turns its features."""
    x, angle = symbols("x", 1, 4), symbols("angle", 1, 2)
    y = axes.rotate_vjepa2(x, np.cos(angle), np.sin(angle), convention="released")
    prove_equal(dot(y, y), dot(x, x))


@pinned_vjepa2.claim("It is not relative: R(5)^T R(9) is not R(4).")
def vjepa2_is_relative():
    """V-JEPA 2's scores see the offset alone."""
    q, k, w, m, n, shift = symbols("q", 1, 4), symbols("k", 1, 4), symbols("w", 2), symbol("m"), symbol("n"), symbol("shift")
    at = lambda x, p: axes.rotate_vjepa2(x, *rope.tables(array([p]), w), convention="released")
    prove_equal(dot(at(q, m + shift), at(k, n + shift)), dot(at(q, m), at(k, n)))


@theorem(of=[axes.rotate_features], sizes="all n, d")
def pinned_features():
    """rotate_features makes of the pair (a, b) a cos x - b sin x and b cos y + a sin y, x and y being the angles of its two
    features; with tables that repeat the angle of a pair it is RoPE."""
    x, c, s = sized("x", N, 2 * H), sized("c", N, 2 * H), sized("s", N, 2 * H)
    for layout in pairing.LAYOUTS:
        i, (_, a, b) = index(N), pair(layout, 2 * H)
        y = axes.rotate_features(x, c, s, layout=layout)
        expected = [x.at(i, a) * c.at(i, a) - x.at(i, b) * s.at(i, a), x.at(i, b) * c.at(i, b) + x.at(i, a) * s.at(i, b)]
        prove_equal([y.at(i, a), y.at(i, b)], expected, mention=[c.at(i, a), c.at(i, b)])
        cos, sin = sized("cos", N, H), sized("sin", N, H)
        doubled = axes.rotate_features(x, *(pairing.join(t, t, layout) for t in (cos, sin)), layout=layout)
        prove_equal(*entries(layout, doubled, rope.rotate(x, cos, sin, layout=layout)))


@pinned_features.claim(
    "Its sections count features of doubled tables: members of a pair read two axes, which differ in images."
)
def hunyuan_vl_keeps_lengths():
    """HunYuan-VL turns its features by the positions of patches."""
    x, w, p = symbols("x", 1, 4), symbols("w", 2), symbols("p", 1, 2)
    angle = axes.angles(p, np.concatenate([w, w]), axes.sections(np.array([2, 2])))
    y = axes.rotate_features(x, np.cos(angle), np.sin(angle), layout="half")
    prove_equal(dot(y, y), dot(x, x))


PICTURES = ("Qwen2.5-VL-7B-Instruct", "Llama-4-Scout-17B-16E-Instruct", "Devstral-Small-2-24B-Instruct")


@example(of=[axes.sections, axes.interleaved_sections], sizes="released models")
def models_read_as_stated():
    """Pairs of released models read the axes of their sections; every frequency is used, once, or once for each of two axes."""
    stated = {
        "Qwen2-VL-2B-Instruct": axes.sections(np.array([16, 24, 24])),
        "Qwen3-VL-8B-Instruct": axes.interleaved_sections(np.array([24, 20, 20]), leftover="transformers"),
        "Qwen3.5-397B-A17B": axes.interleaved_sections(np.array([11, 11, 10]), leftover="transformers"),
    }
    for name, axis in stated.items():
        prove_equal(presets.op_and_settings(name, part="text_config")[1]["axis"], axis)
    for name, part in [*((name, "text_config") for name in stated), *((name, "vision_config") for name in PICTURES)]:
        _, model = presets.op_and_settings(name, part=part)
        pairs = list(zip(model["axis"].tolist(), model["frequencies"].tolist(), strict=True))
        premise(len(set(pairs)) == len(pairs) == model["dim"] // 2, f"{name} uses a frequency once on an axis")


@models_read_as_stated.claim("Pixtral's rows and columns have different frequencies.")
def pixtral_is_qwens_vision_tower():
    """Pixtral gives rows and columns the same frequencies, as Qwen2-VL's vision tower does."""
    _, model = presets.op_and_settings("pixtral-12b", part="vision_config")
    prove_equal(model["axis"], axes.sections(np.array([16, 16])))
    prove_equal(model["frequencies"][:16], model["frequencies"][16:])
