"""The map of the three families, and the sheet: the attention of every encoding on one input."""

import numpy as np

from pictures.draw import Panel
from posref import attention, discovery
from posref.absolute import (
    complex_order,
    floater,
    hierarchical,
    index,
    learned,
    merge,
    recurrent,
    resizing,
    sinusoidal,
    sinusoidal_2d,
    zero_padding,
)
from posref.offsets import offsets
from posref.relative import (
    alibi,
    cope,
    deberta,
    decomposed,
    fire,
    forgetting,
    kerple,
    nezha,
    sandwich,
    shaw,
    stick_breaking,
    swin,
    t5,
    transformer_xl,
    tupe,
    xlnet,
)
from posref.rotary import axes, decoupled, fope, linear_attention, path, pope, rope, scaling, xpos

COLOURS = {"absolute": "abs", "rotary": "rot", "relative": "rel"}
WHERE = {  # where position enters, in two lines
    "absolute": ("Absolute", "a vector for the position", "joins the token"),
    "rotary": ("Rotary", "queries and keys turn", "by their position"),
    "relative": ("Relative", "the score gets a term", "for the offset"),
}


def href(name):
    """The page of a system."""
    return f"{name}.html"


def short(name):
    return discovery.page(name).title.split(":")[0]


def colour(name):
    return COLOURS.get(name.split(".")[0], "mut")


def _names(family):
    return [name for name in discovery.names() if name.startswith(family)]


def _glyph(p, x, y, family):
    p.circle(x, y, 17, COLOURS[family])
    if family == "rotary":
        p.curve(f"M{x - 8} {y + 3}a8.5 8.5 0 1 1 5 5", "bg", 2.4)
        return p.curve(f"M{x - 12.5} {y + 0.5}L{x - 7.6} {y + 5.5}L{x - 3.2} {y}", "bg", 2.2)
    return p.curve(f"M{x - 8} {y}H{x + 8}M{x} {y - 8}V{y + 8}", "bg", 2.6)


def _box(p, x, y, w, label):
    p.rect(x, y - 20, w, 40, "card", "mut", 1, 7)
    p.text(x + w / 2, y + 5, label, "b", "middle")


def map_wide():
    """Where position enters attention: at the token, at queries and keys, or at the score."""
    p, y = Panel(1060, 0, map_wide.__doc__), 36
    for x, w, label in ((6, 92, "token x"), (300, 124, "queries, keys"), (606, 96, "scores q . k"), (846, 84, "softmax")):
        _box(p, x, y, w, label)
    p.text(1054, y + 5, "times values", "b", "end")
    for x1, x2 in ((100, 177), (215, 298), (426, 492), (530, 604), (704, 761), (799, 844), (932, 952)):
        p.arrow(x1, y, x2, y)
    for family, x, left in (("absolute", 196, 6), ("rotary", 511, 370), ("relative", 780, 730)):
        colour = COLOURS[family]
        _glyph(p, x, y, family)
        p.path([(x, y + 18), (x, 92)], colour, 1.6).path([(left, 92), (left + 322, 92)], colour, 2.4)
        title, one, two = WHERE[family]
        p.text(left, 118, title, "b", fill=colour, size=18)
        p.text(left, 138, f"{one} {two}", "m")
        names = _names(family)
        rows = (len(names) + 1) // 2
        across = 24 + 6.5 * max(len(short(name)) for name in names[:rows])  # a column as wide as its longest name
        for i, name in enumerate(names):
            p.text(left + across * (i // rows), 170 + 28 * (i % rows), short(name), fill=colour, href=href(name), size=13.5)
        p.h = max(p.h, 156 + 28 * rows)
    return p


def map_tall():
    """Where position enters attention, from top to bottom."""
    p, y = Panel(340, 0, map_tall.__doc__), 24
    for label, family in (("token x", "absolute"), ("q, k", "rotary"), ("q . k", "relative")):
        _box(p, 2, y, 78, label)
        p.arrow(41, y + 20, 41, y + 43)
        y += 62
        _glyph(p, 41, y, family)
        title, one, two = WHERE[family]
        p.text(98, y - 2, title, "b", fill=COLOURS[family], size=17)
        p.text(98, y + 16, f"{one}", "m s").text(98, y + 31, two, "m s")
        names = _names(family)
        for j, name in enumerate(names):
            p.text(98, y + 58 + 27 * j, short(name), fill=COLOURS[family], href=href(name), size=14)
        height = 54 + 27 * len(names)
        p.arrow(41, y + 18, 41, y + height)
        y += height + 22
    _box(p, 2, y, 78, "softmax")
    p.h = y + 24
    return p


# The sheet


def encodings(size=24):
    """Attention weights as functions of tokens (n, 16) and their positions, by the name of a system; "" has no position."""
    rng, d = np.random.default_rng(0), 16
    scale = d**-0.5
    w_q, w_k, w_r = rng.normal(size=(3, d, d)) / d**0.5
    frequencies, rows, row_table = sinusoidal.frequencies(d), rng.normal(size=(64, d)), rng.normal(size=(17, d))
    u, v, s = rng.normal(size=(3, 1, d))
    q_r, k_r, segments = rng.normal(size=(1, 16, d)), rng.normal(size=(1, 16, d)), rng.normal(size=(2, 1, d))
    u_q, u_k = rng.normal(size=(2, 1, d, d)) / d**0.5
    buckets, word = rng.normal(size=(32, 1)), rng.normal(size=(3, d))
    kernel, turn = rng.normal(size=(3, d, d)) / d**0.5, floater.antisymmetric(frequencies, layout="half")
    vectors, patches = rng.normal(size=(77, 1)), lambda m: np.stack(np.divmod(m, 6), axis=-1)
    across = axes.interleaved_sections(np.array([2, 3, 3]), leftover="transformers")

    def weights(scores):
        return attention.softmax(scores)[0]

    def plain(x):
        return weights(attention.scores((x @ w_q)[None], (x @ w_k)[None], scale=scale))

    def added(encode):
        return lambda x, m: plain(merge.add(x, encode(m)))

    def turned(angles):
        def attend(x, m):
            q, k = (rope.rotate(x @ w, *_tables(angles(m)), layout="half")[None] for w in (w_q, w_k))
            return weights(attention.scores(q, k, scale=scale))

        return attend

    def by_offset(scores):
        return lambda x, m: weights(scores((x @ w_q)[None], (x @ w_k)[None], offsets(m, m), m))

    def biased(bias, own_scale=scale):
        return by_offset(lambda q, k, o, m: attention.scores(q, k, scale=own_scale, bias=bias(m)))

    def shaws(table):
        return by_offset(lambda q, k, o, m: shaw.scores(q, k, table, o, scale=scale))

    def waves(x, m):
        z = complex_order.encode(m, x[:, :1] * word[0], x[:, 1:2] * word[1], word[2])[None]
        return weights(complex_order.scores(z, z).real * scale)

    def recurrence(x, m):
        state = recurrent.encode(lambda p: np.tanh(p @ turn + 0.5 * p), rows[0], int(m.max()) + 1)
        return plain(x + state[m])

    def flow(x, m):
        return plain(x + floater.encode(lambda t, p: p @ turn / 4, rows[0], np.arange(m.max() + 1.0), substeps=1)[m])

    def transformer_xls(x, m):
        r = transformer_xl.embeddings(transformer_xl.distances(len(m), len(m), bidirectional=True), frequencies) @ w_r
        return weights(transformer_xl.scores((x @ w_q)[None], (x @ w_k)[None], r[None], u, v, scale=scale))

    def xlnets(x, m):
        r = transformer_xl.embeddings(xlnet.distances(len(m), len(m), attn_type="bi"), frequencies) @ w_r
        same = np.ones((len(m), len(m)), bool)
        return weights(xlnet.scores((x @ w_q)[None], (x @ w_k)[None], r[None], segments, u, v, s, same, scale=scale))

    def tupes(x, m):
        q, k, zero, own = (x @ w_q)[None], (x @ w_k)[None], np.zeros(1), (2 * d) ** -0.5
        positions = tupe.positional_scores(rows[m], u_q, u_k, scale=own)
        return weights(tupe.scores(q, k, positions, zero, zero, scale=own, convention="paper"))

    def decoupleds(x, m):
        tables = rope.tables(m, rope.frequencies(8))
        q, k = (x @ w_q)[None], (x @ w_k)[None]
        q_t, k_t = (rope.rotate(y[..., 8:], *tables, layout="half") for y in (q, k))
        return weights(decoupled.scores(q[..., :8], q_t, k[..., :8], k_t, scale=scale))

    def xposes(x, m):
        tables, scales = rope.tables(m, frequencies), xpos.scales(m, d, center=0, scale_base=32.0)
        q = xpos.rotate((x @ w_q)[None], *tables, scales, layout="half", side="query")
        k = xpos.rotate((x @ w_k)[None], *tables, scales, layout="half", side="key")
        return weights(attention.scores(q, k, scale=scale))

    def linear(x, m):
        one = np.eye(len(m))[None]
        q, k = (x @ w_q)[None], (x @ w_k)[None]
        tables = rope.tables(m, frequencies)
        settings = {"layout": "half", "feature_map": linear_attention.elu_plus_one, "causal": False}
        return linear_attention.attend(q, k, one, *tables, **settings)[0]

    def forgets(x, m):
        gates = forgetting.log_sigmoid(x @ v[0] + 2)[None]
        bias = forgetting.bias(gates, form="difference")
        return weights(attention.scores((x @ w_q)[None], (x @ w_k)[None], scale=scale, bias=np.tril(bias)))

    def breaks(x, m):
        return stick_breaking.weights((x @ w_q) @ (x @ w_k).T * scale, np.tril(np.ones((len(m), len(m)), bool), -1))

    def counts(x, m):
        mask = np.tril(np.ones((len(m), len(m)), bool))
        scored = cope.scores((x @ w_q)[None], (x @ w_k)[None], rows[:8], mask, scale=scale, convention="official")
        return attention.softmax(scored, mask)[0]

    def decomposeds(x, m):
        between = [decomposed.rows(p, p, query_size=n, key_size=n) for p, n in zip(patches(m).T, (4, 6), strict=True)]
        q, k = (x @ w_q)[None], (x @ w_k)[None]
        return weights(attention.scores(q, k, scale=scale) + decomposed.bias(q, row_table[:7], row_table[:11], *between))

    stretched = resizing.resize(rows[:6].reshape(2, 3, d), 4, 6, convention="transformers")

    def reflected(x, m):
        w = np.tile(v[0], (len(m), 1)) / (v[0] @ v[0]) ** 0.5
        scored = path.scores(x @ w_q, x @ w_k, w, np.full(len(m), 1.75), scale=scale)
        return attention.softmax(scored, np.tri(len(m), dtype=bool))

    def polar(x, m):
        w = pope.frequencies(d)
        q = pope.encode((x @ w_q)[None], *rope.tables(m, w), layout="half")
        k = pope.encode((x @ w_k)[None], *pope.tables(m, w, pope.clamp(v)), layout="half")
        return weights(attention.scores(q, k, scale=scale))

    def mixes(x, m):
        w = fope.frequencies(d, length=64)
        noise = np.outer(v[0][: len(w)], v[0][: len(w)])[None] / 2
        eye = fope.step_eye(len(w), len(w))
        tables = fope.tables(m, w, eye + noise, eye - noise, dim=d, convention="released")
        q, k = (rope.rotate((x @ each)[None], *tables, layout="half") for each in (w_q, w_k))
        return weights(attention.scores(q, k, scale=scale))

    slow = scaling.yarn(frequencies, factor=8.0, original_length=64, base=10000.0, truncate=True)
    return {
        "": lambda x, m: plain(x),
        "absolute.index": added(lambda m: np.repeat(index.encode(m), d, -1)),
        "absolute.sinusoidal": added(lambda m: sinusoidal.encode(m, frequencies, layout="interleaved")),
        "absolute.sinusoidal_2d": added(
            lambda m: sinusoidal_2d.encode(patches(m), sinusoidal.frequencies(d // 2), convention="mae")
        ),
        "absolute.resizing": added(lambda m: stretched.reshape(24, d)[m]),
        "absolute.learned": added(lambda m: learned.encode(m, rows)),
        "absolute.hierarchical": added(lambda m: hierarchical.encode(m, rows[:8], alpha=0.4)),
        "absolute.recurrent": recurrence,
        "absolute.floater": flow,
        "absolute.complex_order": waves,
        "absolute.zero_padding": lambda x, m: plain(x + zero_padding.convolve(x, kernel, padding="zero")),
        "absolute.merge": lambda x, m: plain(
            merge.multiply(x, sinusoidal.encode(m, frequencies, layout="interleaved"), convention="paper")
        ),
        "rotary.rope": turned(lambda m: m[:, None] * frequencies),
        "rotary.scaling": turned(lambda m: m[:, None] * slow),
        "rotary.axes": turned(lambda m: axes.angles(np.stack([0 * m, m // 6, m % 6], -1), frequencies, across)),
        "rotary.generators": turned(lambda m: np.stack([m // 6, m % 6], -1) @ np.stack([frequencies, frequencies[::-1]])),
        "rotary.path": reflected,
        "rotary.pope": polar,
        "rotary.fope": mixes,
        "rotary.xpos": xposes,
        "rotary.decoupled": decoupleds,
        "rotary.linear_attention": linear,
        "relative.shaw": shaws(row_table),
        "relative.nezha": shaws(nezha.table(8, d, convention="paper")),
        "relative.transformer_xl": transformer_xls,
        "relative.xlnet": xlnets,
        "relative.t5": biased(lambda m: t5.bias(m, m, buckets, bidirectional=True), 1),
        "relative.decomposed": decomposeds,
        "relative.swin": biased(lambda m: swin.bias(swin.rows(patches(m), height=4, width=6), vectors)),
        "relative.tupe": tupes,
        "relative.deberta": by_offset(
            lambda q, k, o, m: deberta.scores(q, k, q_r, k_r, o, scale=(3 * d) ** -0.5, convention="paper")
        ),
        "relative.alibi": biased(lambda m: alibi.bias(m, m, np.array([0.125]), form="absolute")),
        "relative.cope": counts,
        "relative.fire": biased(
            lambda m: fire.network(fire.progress(m, m, c=1.0, threshold=6, eps=0), s[0], v[0], -u.T, v[0, :1])
        ),
        "relative.forgetting": forgets,
        "relative.kerple": biased(lambda m: kerple.bias(m, m, np.ones(1), np.ones(1), form="log")),
        "relative.sandwich": biased(lambda m: sandwich.bias(m, m, sandwich.frequencies(d), sandwich.slopes(1))),
        "relative.stick_breaking": breaks,
    }


def _tables(angles):
    return np.cos(angles), np.sin(angles)


def token():
    """The vector that stands at every place."""
    return np.random.default_rng(1).normal(size=16)


def sheet():
    """Twenty-four equal tokens, so that everything you see is position. A row is a query, a column a key. Half strength is an
    even spread, 1/24; darker is more. Without an encoding attention is flat. Stripes mean that the offset decides; anything
    else means that the place does. Random weights, 16 features; systems of two axes see a grid of 4 by 6."""
    return [_attention(name, attend, 152) for name, attend in encodings().items()]


def alone(name):
    """Attention on twenty-four equal tokens, so that everything you see is position. A row is a query, a column a key. Half
    strength is an even spread, 1/24; darker is more. Random weights, 16 features."""
    return [_attention(each, encodings()[each], 260) for each in ("", name)]


def _attention(name, attend, size):
    share = attend(np.tile(token(), (24, 1)), np.arange(24)) * 24
    words, page = (short(name), href(name)) if name else ("none", None)
    p = Panel(size + 8, size + 26, f"attention on equal tokens: {words}").text(
        2, 14, words, "b s", fill=colour(name), href=page
    )
    p.heat(2, 22, size, np.clip(share / (np.abs(share) + 1), 0, 1), colour(name))
    return p.rect(2, 22, size, size, None, "line")


def example(name):
    """The weights of four equal tokens, or None where the system gives no weights."""
    attend = encodings().get(name)
    return None if attend is None else attend(np.tile(token(), (4, 1)), np.arange(4))
