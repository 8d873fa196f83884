"""Pictures of absolute encodings, computed with the functions of posref."""

import numpy as np

from posref.absolute import hierarchical, index, learned, sinusoidal, zero_padding
from posref.drawing import Panel, Plot

FOUR = ("abs", "rot", "rel", "pink")


def division_and_position():
    """Left: the division term, the frequency 1/10000^(2i/d) of every pair. Right: the position is a factor; the angle of the
    first pair is the position itself, that of the last hardly leaves 0. Here d = 64."""
    theta, i = sinusoidal.frequencies(64), range(32)
    left = Plot(330, 270, "frequency of pair i", (0, 31), (0, 1), left=34)
    left.axes([0, 8, 16, 24, 31], [0, 0.5, 1], "pair i", "1 / 10000^(2i/d)").drawn(i, theta, "abs", 2.2)
    for t in (0, 4, 8):
        left.dot(t, theta[t], "abs").text(left.px(t) + 9, left.py(theta[t]) + 3, f"i = {t}: {theta[t]:.3g}", "s halo")
    right = Plot(330, 270, "angle of pair i for four positions", (0, 31), (0, 4), left=34, right=50)
    right.axes([0, 8, 16, 24, 31], range(5), "pair i", "position times frequency")
    for position, colour in zip((1, 2, 3, 4), FOUR, strict=True):
        right.drawn(i, position * theta, colour)
        right.text(right.px(14), right.py(1.2 + 0.6 * position), f"position {position}", "b s", fill=colour)
    return [left, right]


def odd_and_even():
    """The two halves of the encoding against the pair: sines, which tend to 0, and cosines, which tend to 1, since the last
    frequencies hardly move within so few tokens."""
    theta, panels = sinusoidal.frequencies(64), []
    p = sinusoidal.encode(np.arange(1, 5), theta, layout="interleaved")
    for name, first, height in (("even features: sin", 0, 0.95), ("odd features: cos", 1, 0.1)):
        plot = Plot(330, 260, f"{name} of the angle for positions 1 to 4", (0, 31), (-1.05, 1.05), left=34)
        plot.axes([0, 8, 16, 24, 31], [(-1, "-1"), 0, 1], "pair i", name)
        for k, (row, colour) in enumerate(zip(p, FOUR, strict=True)):
            plot.drawn(range(32), row[first::2], colour)
            plot.text(plot.px(16), plot.py(height - 0.2 * k), f"position {k + 1}", "b s", fill=colour)
        panels.append(plot)
    return panels


def one_vector():
    """The whole vector of three positions: sine and cosine in turn. It swings where pairs are fast, and ends as 0, 1, 0,
    1, .. It does not move when the sentence gets longer."""
    theta, panels = sinusoidal.frequencies(64), []
    for position, colour in zip((1, 10, 30), FOUR, strict=False):
        plot = Plot(330, 190, f"encoding of position {position}", (0, 63), (-1.1, 1.1), left=34)
        plot.axes([0, 16, 32, 48, 63], [-1, 0, 1], "feature", f"position {position}")
        plot.drawn(range(64), sinusoidal.encode(np.array([position]), theta, layout="interleaved")[0], colour, 1.6)
        panels.append(plot)
    return panels


def heatmap():
    """One hundred positions of 64 features; blue is positive, orange negative. Left: sine and cosine in turn, as in the paper.
    Right: sines first, then cosines, as tensor2tensor, fairseq and Whisper have it: the same numbers in other columns."""
    panels = []
    for layout, who in (("interleaved", "the paper"), ("half", "tensor2tensor")):
        p = Panel(330, 400, f"sinusoidal encoding, layout {layout}, as a heat map")
        p.text(4, 16, f'layout="{layout}"', "k b").text(326, 16, who, "m s", "end")
        values = sinusoidal.encode(np.arange(100), sinusoidal.frequencies(64), layout=layout)
        p.signed_heat(34, 28, 292, values, 1.0, 340)
        for v in (0, 25, 50, 75, 99):
            p.text(28, 28 + 3.4 * v + 5, v, "m s", "end")
        for v in (0, 16, 32, 48, 63):
            p.text(34 + 292 * (v + 0.5) / 64, 384, v, "m s", "middle")
        p.text(180, 398, "feature; rows are positions", "m s", "middle")
        panels.append(p)
    return panels


def relative_or_absolute():
    """Left: p_i . p_j depends on the offset alone. Right: p_i W_Q . p_j W_K with random W, as attention computes it: it
    does not. The sinusoid is relative only as long as nothing is between the two."""
    rng, theta, m = np.random.default_rng(0), sinusoidal.frequencies(64), np.arange(32)
    p, (w_q, w_k) = sinusoidal.encode(m, theta, layout="interleaved"), rng.normal(size=(2, 64, 64)) / 8
    panels = []
    for title, values in (("p . p, constant along diagonals", p @ p.T), ("p W_Q . p W_K, not so", p @ w_q @ (p @ w_k).T)):
        panel = Panel(330, 330, title)
        panel.text(4, 16, title, "b").signed_heat(4, 28, 292, values, np.abs(values).max())
        panels.append(panel)
    return panels


def dot_product():
    """The sum of cos(k theta_t) over all pairs, which is p_i . p_j at offset k, for 64 features. It falls and
    swings; it does not fall all the way."""
    k, theta = np.arange(0, 513), sinusoidal.frequencies(64)
    p = sinusoidal.encode(k, theta, layout="interleaved")
    plot = Plot(660, 240, "dot product of two sinusoidal vectors against their offset", (0, 512), (0, 33), left=34)
    plot.axes([0, 128, 256, 384, 512], [0, 16, 32], "offset k, in tokens", "p(0) . p(k)")
    return [plot.drawn(k, p @ p[0], "abs", 1.6)]


def learned_similarity():
    """Cosine similarity of all pairs of rows. Left: a table of random numbers, which is what training starts from: nothing is
    near anything. Right: a table that holds a sinusoid: neighbours are alike. posref ships no trained table."""
    rng, panels = np.random.default_rng(0), []
    tables = (
        ("random table", rng.normal(size=(48, 64))),
        (
            "sinusoid as a table",
            sinusoidal.encode(np.arange(48), sinusoidal.frequencies(64), layout="half"),
        ),
    )
    for title, table in tables:
        p = Panel(330, 330, f"cosine similarity, {title}")
        panels.append(p.text(4, 16, title, "b").signed_heat(4, 28, 292, learned.similarity(table), 1.0))
    return panels


def growth():
    """Two first ideas. The index grows without end. Divided by the length it stays small, but the same place gets another
    number as soon as the text is longer."""
    left = Plot(330, 240, "index against position", (0, 24), (0, 24), left=34)
    m = np.arange(25)
    left.axes([0, 8, 16, 24], [0, 8, 16, 24], "position", "index").drawn(m, index.encode(m)[:, 0], "abs", 2.2)
    right = Plot(330, 240, "normalized index against position for three lengths", (0, 24), (0, 1), left=34)
    right.axes([0, 8, 16, 24], [0, 0.5, 1], "position", "normalized index")
    for length, colour in zip((8, 16, 24), FOUR, strict=False):
        n = np.arange(length)
        y = index.encode_normalized(n, length, denominator="length")[:, 0]
        right.drawn(n, y, colour).name(length - 1, y[-1] + 0.03, f"n = {length}", colour, "end")
    return [left, right]


def digits():
    """A trained table of 8 rows stretched to 64: position 8a + b gets a part of row a and a part of row b. Blocks repeat, and
    that is the point. Cosine similarity of the 64 rows, alpha = 0.4."""
    table = np.random.default_rng(0).normal(size=(8, 64))
    p = Panel(330, 330, "cosine similarity of a stretched table")
    similarity = learned.similarity(hierarchical.extend(table, alpha=0.4))
    return [p.text(4, 16, "64 positions from 8 rows", "b").signed_heat(4, 28, 292, similarity, 1.0)]


def border():
    """A convolution of width 5 with all weights 1 over twelve equal tokens. With zeros at the border it knows how far the
    border is; without padding, or with a circle, it knows nothing."""
    x, kernel = np.ones((12, 1)), np.ones((5, 1, 1))
    plot = Plot(330, 240, "output of a convolution at every place, for three paddings", (0, 11), (0, 6), left=34)
    plot.axes([0, 3, 6, 9, 11], [0, 3, 5], "position", "sum over five neighbours")
    plot.drawn(range(12), zero_padding.convolve(x, kernel, padding="zero")[:, 0], "abs", 2.4)
    plot.drawn(range(12), zero_padding.convolve(x, kernel, padding="circular")[:, 0], "rot", 2, "5 3")
    return [plot.name(1.2, 3.2, 'padding="zero"', "abs").name(3, 5.35, 'padding="circular"', "rot")]


PICTURES = {
    "division-and-position": ("absolute.sinusoidal", division_and_position, 2),
    "odd-and-even": ("absolute.sinusoidal", odd_and_even, 2),
    "one-vector": ("absolute.sinusoidal", one_vector, 2),
    "heatmap": ("absolute.sinusoidal", heatmap, 2),
    "relative-or-absolute": ("absolute.sinusoidal", relative_or_absolute, 2),
    "dot-product": ("absolute.sinusoidal", dot_product, 1),
    "learned-similarity": ("absolute.learned", learned_similarity, 2),
    "index": ("absolute.index", growth, 2),
    "stretched-table": ("absolute.hierarchical", digits, 1),
    "border": ("absolute.zero_padding", border, 1),
}
