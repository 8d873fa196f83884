"""Pictures of relative encodings and of masks, computed with the functions of posref."""

import numpy as np

from posref import attention, position_ids
from posref.drawing import Panel, Plot, power
from posref.offsets import clip, offsets
from posref.relative import alibi, deberta, shaw, t5, transformer_xl


def _ranges(starts):
    """What each bucket holds, in words."""
    last = [*(after - 1 for after in starts[1:]), None]
    return [f"{a}+" if b is None else str(a) if a == b else f"{a}\N{EN DASH}{b}" for a, b in zip(starts, last, strict=True)]


def _strip():
    p, y = Panel(330, 290, "the distances that share a bucket, encoder 16 per side, decoder 32"), 16
    for title, side in (("encoder: 16 buckets per side", 16), ("decoder: 32 buckets, the past alone", 32)):
        p.text(4, y, title, "b")
        for b, words in enumerate(_ranges(t5.bucket_starts(side, 128).tolist())):
            x, top = 4 + 40.4 * (b % 8), y + 10 + 39 * (b // 8)
            p.rect(x, top, 38.5, 36, "rel", None, 0.07 + 0.4 * b / (side - 1), 4)
            p.text(x + 19, top + 15, b, "s m", "middle")
            p.text(x + 19, top + 29, words, "s b", "middle", size=min(11.5, 54 / len(words)))
        y += 10 + 39 * side // 8 + 26
    p.h = y - 12
    return p


def _steps():
    plot = Plot(330, 290, "bucket against distance for encoder and decoder", (0, 136), (0, 34), left=30)
    ends = {side: int(t5.bucket_starts(side, 128)[-1]) for side in (16, 32)}
    plot.axes([0, 32, 64, *ends.values()], [0, 8, 15, 24, 31], "distance to a key in the past", "bucket")
    for name, both, side, colour, (x, y) in (
        ("decoder", False, 32, "abs", (6, 27)),
        ("encoder", True, 16, "rel", (46, 9.5)),
    ):
        plot.drawn(range(137), t5.bucket(-np.arange(137), bidirectional=both), colour, 2.2, step=True).name(x, y, name, colour)
        plot.stem(ends[side], side - 1, colour).dot(ends[side], side - 1, colour, 3.5)
    return plot.line(plot.px(128), plot.top, plot.px(128), plot.bottom, "bad", 1.2, "4 3").name(126, 20, "128", "bad", "end")


def _matrix(name, both):
    m = np.arange(24)
    o = offsets(m, m)
    buckets = t5.bucket(o, bidirectional=both)
    p = Panel(330, 318, f"buckets of 24 queries and 24 keys, {name}")
    p.text(4, 16, f"{name}: bucket of (query i, key j)", "b")
    strength = 0.15 + 0.85 * (buckets % 16 / 12 if both else buckets / 20)
    p.heat(26, 30, 264, np.where(o > 0, 0, strength), "rel")
    if both:
        p.heat(26, 30, 264, np.where(o > 0, strength, 0), "rot").text(204, 74, "keys after: 16 + ...", "b", "middle", "bg")
    else:
        p.text(206, 84, "every future key: 0", "b m", "middle")
    p.text(100, 250, "keys before", "b", "middle", "bg").rect(26, 30, 264, 264, None, "mut")
    for v in (0, 8, 16, 23):
        p.text(20, 30 + 11 * v + 10, v, "s m", "end").text(26 + 11 * v + 5.5, 309, v, "s m", "middle")
    return p


def t5_buckets():
    """Near distances have a bucket of their own, far ones share. Encoder and decoder have 32 buckets each, but the encoder
    keeps half of them for keys to the right, so the two disagree from distance 8 on. The last bucket starts long before
    max_distance, 128."""
    return [_strip(), _steps(), _matrix("encoder", True), _matrix("decoder", False)]


def alibi_slopes():
    """For a power of two the slopes are a geometric row. For 12 heads the row of 8 comes first, then every other slope of
    16. The hollow dots are 2^(-8a/12), a common mistake: another model."""
    panels = []
    for heads in (8, 12):
        plot = Plot(330, 270, f"slopes of {heads} heads, on a logarithmic scale", (0.2, heads + 0.8), (-8.8, 0.2), left=46)
        ticks = [(-v, power(2, f"-{v}")) for v in (2, 4, 6, 8)]
        plot.axes(range(1, heads + 1), ticks, "head a, in the published order", f"slope, {heads} heads")
        if heads == 12:
            for a in range(1, 13):
                plot.dot(a, -8 * a / 12, "bad", 4, hollow=True)
            plot.text(plot.px(1.3), plot.py(-0.3), f"hollow: {power(2, '-8a/12')}, wrong", "b s halo", fill="bad")
        for a, slope in enumerate(np.log2(alibi.slopes(heads)), 1):
            plot.stem(a, slope, "rel").dot(a, slope, "rel", 4.5)
        panels.append(plot)
    return panels


def alibi_bias():
    """The bias of four heads of eight for a query at position 48: straight lines, the first head the steepest. What lies in
    the future is hidden by the causal mask, not by the bias."""
    m, slopes = np.arange(49), alibi.slopes(8)
    bias = alibi.bias(np.array([48]), m, slopes, form="signed")[:, 0]
    plot = Plot(330, 250, "bias against the key's position", (0, 48), (-12, 0.5), left=36)
    plot.axes([0, 16, 32, 48], [-12, -8, -4, 0], "position of the key; the query is at 48", "added to the score")
    for head, colour, x in ((0, "abs", 34), (1, "rot", 6), (2, "rel", 2), (4, "pink", 2)):
        seen = bias[head] >= -12
        plot.drawn(m[seen], bias[head][seen], colour)
        at = max(x, int(m[seen][0]))
        plot.name(at, bias[head][at] - 0.9, f"head {head + 1}: {slopes[head]:g}", colour)  # lines rise: below them is room
    return [plot]


def deberta_sum():
    """Twelve tokens, K = 6, random vectors; blue is positive, orange negative, one scale for all four. Content to position
    reads the row of the query along offsets, position to content the column of the key: one table, met from two sides."""
    rng, d, span, m = np.random.default_rng(3), 16, 6, np.arange(12)
    q, k = rng.normal(size=(2, 1, 12, d))
    q_r, k_r = rng.normal(size=(2, 1, 2 * span, d))
    o, scale = offsets(m, m), (3 * d) ** -0.5
    parts = {
        "content to content": scale * attention.scores(q, k, scale=1)[0],
        "content to position": scale * deberta.content_to_position(q, k_r, o)[0],
        "position to content": scale * deberta.position_to_content(k, q_r, o, convention="paper")[0],
        "their sum": deberta.scores(q, k, q_r, k_r, o, scale=scale, convention="paper")[0],
    }
    top, panels = max(np.abs(part).max() for part in parts.values()), []
    for title, part in parts.items():
        p = Panel(160, 184, f"DeBERTa, {title}")
        panels.append(p.text(2, 14, title, "b").signed_heat(2, 24, 152, part, top))
    return panels


def shift():
    """Three queries, three keys, no memory. One product with the vectors of distances 2, 1, 0 gives the left matrix: a
    column is a distance. Moving row i left by 2 - i puts every entry at its key. What is right of the diagonal is no score;
    the mask hides it."""
    before = np.tile(transformer_xl.distances(3, 3, bidirectional=False), (3, 1))
    after, seen, panels = transformer_xl.shift(before), transformer_xl.visible(3, 3), []
    for title, values, real, below in (
        ("before: a column is a distance", before, np.full((3, 3), True), "column"),
        ("after: a column is a key", after, seen, "key"),
    ):
        strength = np.where(real, 0.3, 0.06)
        p = Panel(330, 220, title).text(4, 16, title, "b")
        p.cells(52, 32, 56, values, lambda i, j, v: ("abs", "rot", "rel")[i], lambda i, j, v, s=strength: s[i, j])
        for i in range(3):
            p.text(44, 64 + 56 * i, f"query {i}", "s m", "end").text(80 + 56 * i, 214, f"{below} {i}", "s m", "middle")
        panels.append(p)
    return panels


def shaw_clip():
    """Eight tokens and a table of 2k + 1 = 5 rows, k = 2: offsets beyond k share the outermost row, so far keys are alike, but
    left and right are not."""
    m = np.arange(8)
    o = offsets(m, m)
    rows = shaw.embed(np.arange(5.0)[:, None], o)[..., 0].astype(int)
    colours = ("abs", "abs", "mut", "rot", "rot")
    panels = []
    for title, values in (("offset j - i, clipped to -2 .. 2", clip(o, -2, 2)), ("row of the table", rows)):
        p = Panel(330, 300, title)
        p.text(4, 16, title, "b")
        depth = 0.12 + 0.2 * np.abs(rows - 2)
        p.cells(4, 28, 33, values, lambda i, j, v: colours[rows[i, j]], lambda i, j, v, depth=depth: depth[i, j])
        panels.append(p)
    return panels


def masks():
    """Who may see whom, 12 queries by 12 keys, where filled. A window of 4 counts the query's own key; packed texts of 5, 4
    and 3 tokens stay apart; in cached decoding four new queries see the eight keys of the cache too."""
    m = np.arange(12)
    document = position_ids.documents(np.array([5, 4, 3]))
    causal = attention.causal_mask(m, m)
    padded = np.arange(12) >= 3
    made = {
        "causal": causal,
        "window of 4": causal & attention.window_mask(m, m, width=4),
        "packed texts": causal & (document[:, None] == document),
        "padded on the left": causal & padded & padded[:, None],
        "decoding 4 after 8": attention.causal_mask(position_ids.cached(4, 12), m),
    }
    panels = []
    for title, mask in made.items():
        p = Panel(160, 180, f"mask: {title}")
        high = 152 * len(mask) / 12
        p.text(2, 14, title, "b").heat(2, 24, 152, 0.85 * mask, "rel", high).rect(2, 24, 152, high, None, "mut")
        panels.append(p)
    return panels


PICTURES = {
    "t5-buckets": ("relative.t5", t5_buckets, 2),
    "alibi-slopes": ("relative.alibi", alibi_slopes, 2),
    "alibi-bias": ("relative.alibi", alibi_bias, 1),
    "deberta-sum": ("relative.deberta", deberta_sum, 4),
    "shift": ("relative.transformer_xl", shift, 2),
    "shaw-clip": ("relative.shaw", shaw_clip, 2),
    "masks": ("attention", masks, 5),
}
