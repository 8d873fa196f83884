"""Pictures of mathematics.md: which system imitates which, what a softmax does not see, and how exp rounds."""

import numpy as np

from pictures.overview import colour, href
from posref import attention, expressivity
from posref.drawing import Panel, Plot
from posref.fast.attention import _exp_float32
from posref.relative import t5

ROW, WIDTH = 62, 340


def _order():
    """(classes of systems that imitate each other, pairs of classes with none between them, the longest chain below each)."""
    names = [*expressivity.SYSTEMS]
    below = {(s, t) for s in names for t in names if expressivity.verdict(s, t, meaning="exact") is None}
    classes = {s: [t for t in names if {(s, t), (t, s)} <= below] for s in names}
    first = [s for s in names if classes[s][0] == s]
    less = {(s, t) for s in first for t in first if s != t and (s, t) in below}
    next_to = sorted((s, t) for s, t in less if not any({(s, u), (u, t)} <= less for u in first))
    height = dict.fromkeys(first, 0)
    for _ in first:
        height |= {t: max([height[s] + 1 for s, above in next_to if above == t], default=0) for t in first}
    return {s: classes[s] for s in first}, next_to, height


def imitation():
    """Which system imitates which, exactly, with free width, without masks, at the sizes of the grid. A system imitates all
    that lines lead down to; systems in one place imitate each other."""
    classes, next_to, height = _order()
    x, down = dict.fromkeys(classes, 0.0), dict.fromkeys(classes, 0)
    for level in range(max(height.values()), -1, -1):  # each near those above it, which stand already
        above = {s: [x[t] for one, t in next_to if one == s] or [WIDTH] for s in classes if height[s] == level}
        for i, s in enumerate(sorted(above, key=lambda s: np.mean(above[s]))):
            x[s], down[s] = WIDTH * (i + 0.5) / len(above), 30 * (i % 2) * (len(above) > 5)
    p = Panel(WIDTH, 70 + ROW * max(height.values()), "a line leads up from each system to those that imitate it")
    y = {s: p.h - (52 if height[s] else 22) - ROW * height[s] + down[s] for s in classes}
    for s, t in next_to:
        p.line(x[s], y[s] - 14, x[t], y[t] + 18, "mut")
    for s, same in classes.items():
        lines = same if len(same) > 1 else s.split()
        for k, line in enumerate(lines):
            of = expressivity.SYSTEMS[s].of
            at = y[s] + 4 + 13 * (k - (len(lines) - 1) / 2)
            p.text(x[s], at, line, "b s halo", "middle", colour(of[0]) if of else "mut", href(of[0]) if of else None)
    return [p]


def unseen_shift():
    """One number more in all buckets of T5: the bias of every offset rises, and no weight changes. With a sink, whose score
    does not rise, every weight changes. The last of 24 equal tokens."""
    n = np.arange(24)
    bias = t5.bias(n[-1:], n, -0.15 * np.arange(32.0)[:, None], bidirectional=False)[0, 0]
    left = Plot(330, 240, "the bias of the last query, and 1.5 more", (0, 23), (-3, 2))
    left.axes([0, 8, 16, 23], [-2, -1, 0, 1, 2], "key", "bias")
    right = Plot(330, 240, "its weights, without and with a sink", (0, 23), (0, 0.16))
    right.axes([0, 8, 16, 23], [0, 0.05, 0.1, 0.15], "key", "weight")
    right.drawn(n, attention.softmax(bias), "fg", 2.2).name(1, 0.14, "both without a sink", "fg")
    for more, said, hue, high in ((0, "b", "abs", 0.1), (1.5, "b + 1.5", "rot", 0.12)):
        left.drawn(n, bias + more, hue).name(1, bias[0] + more + 0.3, said, hue)
        weights = attention.softmax(np.append(bias + more, 2.0))[:-1]
        right.drawn(n, weights, hue, 1.8, "4 3").name(1, high, f"{said}, with a sink", hue)
    return [left, right]


def rounded_exp():
    """The error of exp in the kernel of streaming attention in float32, in u: the largest of 100 numbers around each x, where
    each operation is rounded. Between two of the thin lines, ln 2 apart, the same series is asked at the same remainders."""
    x = np.linspace(-3.5 * np.log(2), 0, 24001).astype(np.float32)
    exact = np.exp(x.astype(np.float64))
    error = np.abs([float(_exp_float32(one)) for one in x] / exact - 1) * 2**24
    p = Plot(660, 240, "errors of exp in the kernel, in u", (-3.5 * np.log(2), 0), (0, 2.2))
    p.axes([-2, -1, 0], [0, 0.5, 1, 1.5, 2], "x", "error in u")
    for n in range(4):
        p.drawn([-(n + 0.5) * np.log(2)] * 2, [0, 1.8], "mut", 0.7)
    p.drawn(x[50:-1:100], error[:-1].reshape(-1, 100).max(1), "fg", 1.4)
    p.drawn([x[0], x[-1]], [1.995] * 2, "rel", 1.8, "6 4").name(x[300], 2.06, "the bound of the intervals, 1.995", "rel")
    return [p]


PICTURES = {"imitation": ("", imitation, 1), "unseen-shift": ("", unseen_shift, 2), "rounded-exp": ("", rounded_exp, 1)}
