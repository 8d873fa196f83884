"""Pictures of rotary encodings, computed with the functions of posref."""

import itertools
import math

import numpy as np

from posref import attention, pairing
from posref.check import frameworks
from posref.drawing import Panel, Plot, power, sub
from posref.ops.common import rounded
from posref.rotary import axes, rope, scaling, value, xpos

FOUR = ("abs", "rot", "rel", "pink")


def layouts():
    """Both are RoPE: features of one colour rotate together. Weights trained with one layout are wrong with the other, and
    nothing crashes."""
    panels = []
    for layout in ("interleaved", "half"):
        words = [a for a in frameworks.aliases() if a.setting(layout)]
        p = Panel(330, 150 + 17 * len(words), f"layout {layout}: which of eight features form a pair")
        p.text(4, 16, f'layout="{layout}"', "k b")
        a, b = pairing.indices(8, layout)
        for t, pair in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
            x1, x2 = (22 + 40 * feature for feature in pair)
            height = 16 if layout == "interleaved" else 46 - 4 * t
            p.curve(f"M{x1} 74C{x1} {74 - height} {x2} {74 - height} {x2} 74", FOUR[t], 1.8)
            for x, feature in zip((x1, x2), pair, strict=True):
                p.rect(x - 18, 76, 36, 36, FOUR[t], FOUR[t], 0.2, 5, 1.5)
                p.text(x, 99, sub("x", feature), "b", "middle", FOUR[t])
                p.text(x, 128, sub("theta", t), "s", "middle", FOUR[t])
        for i, alias in enumerate(words):
            p.text(4, 154 + 17 * i, alias.framework, "s").text(
                326, 154 + 17 * i, _short(alias.setting(layout)), "k m", "end", size=10.5
            )
        panels.append(p)
    return panels


def _short(words):
    return words if len(words) < 34 else words.split("=")[-1]


def clocks():
    """Every pair of features is a hand that moves by theta_t radians a token; the thick hand is position 7. Right: the
    score of two vectors against their offset. With q = k it falls and swings; with q rotated by 40 it peaks at 40: RoPE can
    look anywhere."""
    theta, panel = rope.frequencies(8), Panel(330, 300, "four pairs as clock hands at positions 0 to 7")
    panel.text(4, 16, "8 features are 4 clocks; hands at m = 0 .. 7", "b")
    hands = rope.rotate(np.tile([1.0, 0.0], (8, 4)), *rope.tables(np.arange(8), theta), layout="interleaved")
    for t in range(4):
        cx, cy = 86 + 160 * (t % 2), 88 + 134 * (t // 2)
        panel.circle(cx, cy, 46, None, "line")
        for m in range(8):
            x, y = hands[m, 2 * t], hands[m, 2 * t + 1]
            end = f"M{cx} {cy}L{cx + 43 * x:.2f} {cy - 43 * y:.2f}"
            panel.curve(end, FOUR[t], 3 if m == 7 else 1.4, opacity=1 if m == 7 else 0.25 + 0.07 * m)
            if t == 0:
                panel.text(cx + 56 * x, cy - 56 * y + 4, m, "s m", "middle")
        panel.circle(cx, cy, 2.5, FOUR[t])
        words = f"{sub('theta', t)} = {theta[t]:g}, period {2 * math.pi / theta[t]:,.0f}"
        panel.text(cx, cy + (72 if t == 0 else 66), words, "s m", "middle")
    reach, theta, k = 128, rope.frequencies(64), np.ones((1, 64))
    keys = _at(np.repeat(k, reach + 1, 0), np.arange(reach + 1), theta)
    plot = Plot(330, 300, "score against offset for two queries", (0, reach), (0, 70), left=34)
    plot.axes([0, 40, 80, 120], [0, 32, 64], "offset of the key, in tokens", "q . R(offset) k, 64 features")
    plot.drawn(range(reach + 1), (k @ keys.T)[0], "rot").name(4, 66, "q = k", "rot")
    plot.drawn(range(reach + 1), (_at(k, [40], theta) @ keys.T)[0], "abs", 2, "5 3").name(46, 58, "q = R(40) k", "abs")
    return [panel, plot]


def _at(x, positions, theta):
    return rope.rotate(x, *rope.tables(np.asarray(positions), theta), layout="half")


def decay():
    """The bound that is cited for decay with distance, max|h_{t+1} - h_t| times the sum of |S_j|, beside what it bounds: 64
    scores of random queries and keys, 128 features. The scores stay where they are; the bound lies above even the sum of
    all |q_t| |k_t|."""
    rng, offsets, theta = np.random.default_rng(0), np.unique(np.geomspace(1, 4096, 90).astype(int)), rope.frequencies(128)
    q, k = (pairing.split(x, "half") for x in rng.normal(size=(2, 64, 128)))
    h = (q[0] + 1j * q[1]) * np.conj(k[0] + 1j * k[1])
    cos, sin = rope.tables(offsets, theta)
    scores = np.abs(np.real(h @ (cos + 1j * sin).T))
    partial = np.abs(np.cumsum(cos + 1j * sin, axis=-1)).sum(-1)
    step = np.abs(np.diff(h, axis=-1, append=0)).max(-1)
    plot = Plot(660, 320, "decay bound and scores against the offset", (1, 4096), (0.5, 60000), "log", "log", left=48)
    plot.axes(
        [1, 8, 64, 512, 4096],
        [1, 10, 100, (1000, "1000"), (10000, "10 000")],
        "offset, in tokens",
        "|score|, and what bounds it",
    )
    plot.drawn(offsets, np.median(step) * partial, "bad", 2.4).name(2, 19000, "RoFormer's bound (median)", "bad")
    plot.line(
        plot.left, plot.py(np.median(np.abs(h).sum(-1))), plot.right, plot.py(np.median(np.abs(h).sum(-1))), "mut", 1.6, "5 3"
    )
    plot.text(
        plot.right - 4,
        plot.py(np.median(np.abs(h).sum(-1))) - 7,
        "sum of |q_t| |k_t|: holds at every offset",
        "b s halo",
        "end",
        "mut",
    )
    for share, width in ((0.9, 1.2), (0.5, 2.4)):
        plot.drawn(offsets, np.quantile(scores, share, axis=0), "abs", width)
    return [plot.name(30, 2.2, "half of the scores below, and nine of ten", "abs", "middle")]


def same_score():
    """The score of two equal vectors, the sum of cos(o theta_t) over 64 pairs, up to offset 4096, base 10 000. It falls like a
    logarithm, and it is negative from 1707 on again and again."""
    offsets = np.arange(0, 4097)
    total = rope.tables(offsets, rope.frequencies(128))[0].sum(-1)
    plot = Plot(660, 250, "sum of cosines against the offset", (0, 4096), (-10, 66), left=36)
    plot.axes([0, 1024, 2048, 3072, 4096], [0, 32, 64], "offset, in tokens", "sum of cos(o theta), 64 pairs")
    plot.drawn(offsets[::4], total[::4], "rot", 1.4)
    first = int(offsets[total < 0][0])
    plot.stem(first, 50, "bad").dot(first, total[first], "bad").name(
        first + 40, 48, f"below 0 for the first time: {first}", "bad"
    )
    return [plot]


SCHEDULES = {"linear": ("abs", None), "NTK": ("pink", "2 3"), "YaRN": ("rel", "7 3"), "Llama 3": ("rot", None)}


def schedules(theta, *, base, factor, length):
    """Four ways to stretch `length` tokens by `factor`."""
    return {
        "linear": scaling.linear(theta, factor=factor),
        "NTK": scaling.ntk(theta, factor=factor),
        "YaRN": scaling.yarn(theta, factor=factor, original_length=length, base=base, truncate=True),
        "Llama 3": scaling.llama3(theta, factor=factor, low_freq_factor=1, high_freq_factor=4, original_length=length),
    }


def wavelengths():
    """Base 500 000, 64 pairs, 8192 tokens stretched by 8. Left: the thick line is unscaled; pairs above "trained" make
    less than a full turn. Right: linear slows every pair alike; NTK spreads; YaRN and Llama 3 keep the fast pairs as they
    are."""
    length, base, factor = 8192, 500000.0, 8.0
    theta, t = rope.frequencies(128, base), range(64)
    scaled = schedules(theta, base=base, factor=factor, length=length)
    up = Plot(330, 290, "wavelength of every pair before and after scaling", (0, 63), (4, 4e7), "linear", "log", left=40)
    up.axes([0, 16, 32, 48, 63], [(10.0**e, power(10, e)) for e in (1, 3, 5, 7)], "pair t (of 64)", "tokens for one full turn")
    for v, words in ((length, "trained: 8192"), (length * factor, "wanted: 65 536")):
        up.line(up.left, up.py(v), up.right, up.py(v), "mut", 1.2, "1 3")
        up.text(up.left + 5, up.py(v) - 5, words, "s m halo")
    up.drawn(t, 2 * np.pi / theta, "fg", 2.6).name(50, 2.4e5, "unscaled", "fg")
    down = Plot(330, 290, "by how much every pair is slowed", (0, 63), (0.6, 9.4), left=34)
    down.axes([0, 16, 32, 48, 63], [(v, f"\N{MULTIPLICATION SIGN}{v}") for v in (1, 2, 4, 6, 8)], "pair t (of 64)", "slowed by")
    for name, frequencies in scaled.items():
        up.drawn(t, 2 * np.pi / frequencies, SCHEDULES[name][0], 1.8, SCHEDULES[name][1])
        down.drawn(t, theta / frequencies, SCHEDULES[name][0], 2.2, SCHEDULES[name][1])
    up.text(up.px(42), up.py(9e6), "all four: \N{MULTIPLICATION SIGN}8 in the end", "b s halo m", "end")
    for name, x, y in (("linear", 3, 8.4), ("NTK", 12, 2.9), ("YaRN", 21, 5.6), ("Llama 3", 38, 4.1)):
        down.name(x, y, name, SCHEDULES[name][0])
    return [up, down]


def phase_errors(dim=128, base=10000.0):
    """Name -> (positions, largest error of an angle over pairs and positions up to there), for four ways to store them."""
    theta, edges = rope.frequencies(dim, base), np.unique(np.round(2 ** np.linspace(0, 20, 61)).astype(int))
    ways = {
        "float32 throughout": lambda m: (m.astype(np.float32)[:, None] * theta.astype(np.float32)).astype(float),
        "positions in float16": lambda m: np.where(m < 65520, rounded(m, 11), np.nan)[:, None] * theta,
        "positions in bfloat16": lambda m: rounded(m, 8)[:, None] * theta,
        "theta in bfloat16": lambda m: m[:, None] * rounded(theta, 8),
    }
    rng, tried = np.random.default_rng(0), []
    for low, high in itertools.pairwise(edges):
        tried.append(np.unique(np.r_[low : min(high, low + 400), rng.integers(low, high + 1, 300), high]))
    found = {}
    for name, angles in ways.items():
        worst = [np.abs(angles(m) - m[:, None] * theta).max() for m in tried]
        found[name] = edges[1:], np.maximum.accumulate(worst)
    return found


def precision():
    """The worst pair and position so far, 128 features, base 10 000. bfloat16 positions collide from 257 on, float16 positions
    from 2049 on, and float16 ends at 65 504. Compute angles in float32 or better, whatever the model runs in."""
    plot = Plot(660, 330, "largest error of an angle against position", (2, 2**20), (1e-8, 30), "log", "log", left=44, right=36)
    xticks = [(2**4, "16"), (2**8, "256"), (2**12, "4096"), (2**16, "65 536"), (2**20, "1 048 576")]
    yticks = [*((10.0**e, power(10, e)) for e in (-7, -5, -3, -1)), (math.pi, "\N{GREEK SMALL LETTER PI}")]
    plot.axes(xticks, yticks, "position", "error of the worst angle, radians")
    styles = {"float32 throughout": ("rel", None), "positions in float16": ("abs", "2 3")}
    styles |= {"positions in bfloat16": ("rot", None), "theta in bfloat16": ("pink", "7 3")}
    for name, (x, y) in phase_errors().items():
        seen = (y > 1e-8) & (y < 30)
        plot.drawn(x[seen], y[seen], styles[name][0], 2.2, styles[name][1])
    for name, x, y in (
        ("theta in bfloat16", 3, 0.2),
        ("float32 throughout", 600, 3e-7),
        ("positions in bfloat16", 60, 9),
        ("positions in float16", 5000, 0.05),
    ):
        plot.name(x, y, name, styles[name][0])
    return [plot]


def xpos_scores():
    """The score of two equal vectors, 64 features, RoPE and xPos. xPos shrinks every pair by a rate of its own, so the
    score of keys in the past falls, and that of keys in the future would grow: it is made for causal attention."""
    dim, m = 64, np.arange(-1024, 1025, 4)
    theta, x = rope.frequencies(dim), np.ones((len(m), dim))
    one, zero = np.ones((1, dim)), np.array([0])
    scores = {"RoPE": (_at(one, zero, theta) @ _at(x, m, theta).T)[0]}
    made = [xpos.scales(p, dim, center=0) for p in (zero, m)]
    q = xpos.rotate(one, *rope.tables(zero, theta), made[0], layout="half", side="query")
    scores["xPos"] = (q @ xpos.rotate(x, *rope.tables(m, theta), made[1], layout="half", side="key").T)[0]
    plot = Plot(660, 250, "score of RoPE and xPos against the offset", (-1024, 1024), (-90, 115), left=36)
    plot.axes(
        [(-1024, "-1024"), (-512, "-512"), 0, 512, 1024], [0, 32, 64], "offset of the key, in tokens", "score, 64 features"
    )
    plot.drawn(m, scores["RoPE"], "mut", 1.6).drawn(m, scores["xPos"], "rot", 2.2)
    return [plot.name(-1000, 35, "RoPE", "mut").name(-1000, -25, "xPos", "rot")]


def three_axes():
    """Which coordinate each of 24 pairs reads: time, height or width. Left: Qwen2-VL's blocks. Right: Qwen3-VL's,
    interleaved, so that every coordinate has fast and slow pairs."""
    panels, names = [], ("time", "height", "width")
    made = (
        ("sections: blocks", axes.sections(np.array([8, 8, 8]))),
        ("interleaved_sections", axes.interleaved_sections(np.array([8, 8, 8]), leftover="transformers")),
    )
    for title, axis in made:
        p = Panel(330, 96, title)
        p.text(4, 16, title, "k b")
        for t, a in enumerate(axis.tolist()):
            p.rect(4 + 13.4 * t, 28, 12, 26, FOUR[a], None, 0.75, 2).text(10 + 13.4 * t, 45, names[a][0], "s", "middle", "bg")
        p.text(4, 74, "fast pairs", "m s").text(325, 74, "slow pairs", "m s", "end")
        panels.append(p.text(4, 92, "t: time, h: height, w: width", "m s"))
    return panels


def rotated_values():
    """The first feature of the output for 48 equal tokens, with the values rotated by their keys' positions. Rotated back by
    the query's position it stays the same inside the text; left as it is, it says where the query stands."""
    theta, m, x = rope.frequencies(8), np.arange(48), np.ones((1, 48, 8))
    near = attention.window_mask(m, m, width=4)
    plot = Plot(660, 240, "first feature of the output against the query's position", (0, 47), (-1.1, 1.9), left=36)
    plot.axes([0, 12, 24, 36, 47], [-1, 0, 1], "position of the query", "output, feature 0, window of 4")
    for undo, colour, dash in ((False, "abs", "5 3"), (True, "rot", None)):
        settings = {"layout": "half", "scale": 1.0, "undo": undo, "mask": near}
        plot.drawn(m, value.attend(x, x, x, m, theta, **settings)[0, :, 0], colour, 2, dash)
    return [plot.name(1, 1.65, "undo=False: absolute", "abs").name(15, 1.15, "undo=True: relative", "rot")]


PICTURES = {
    "rotated-values": ("rotary.value", rotated_values, 1),
    "clocks": ("rotary.rope", clocks, 2),
    "layouts": ("rotary.layouts pairing", layouts, 2),
    "same-score": ("rotary.rope", same_score, 1),
    "decay": ("rotary.rope", decay, 1),
    "precision": ("rotary.rope", precision, 1),
    "wavelengths": ("rotary.scaling", wavelengths, 2),
    "xpos": ("rotary.xpos", xpos_scores, 1),
    "axes": ("rotary.axes", three_axes, 2),
}
