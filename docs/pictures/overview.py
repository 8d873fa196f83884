"""The map of the families, and the sheet: the attention of every encoding on one input."""

import numpy as np

from posref import attention, discovery
from posref.drawing import Panel
from posref.ops import layers

COLOURS = {"absolute": "abs", "rotary": "rot", "relative": "rel", "state": "pink"}
WHERE = {  # where position enters, in two lines
    "absolute": ("Absolute", "a vector for the position", "joins the token"),
    "rotary": ("Rotary", "queries and keys rotate", "by their position"),
    "relative": ("Relative", "the score gets a term", "for the offset"),
    "state": ("State", "what is remembered", "fades"),
}


def href(name):
    """The page of a system."""
    return f"{name}.html"


def short(name):
    return discovery.page(name).title.split(":")[0]


def colour(name):
    return COLOURS.get(name.split(".")[0], "mut")


def importance(name):
    """More released configurations first."""
    return -len(discovery.system(name).presets) if "." in name else 0


def _names(family):
    return [system.name for system in discovery.systems() if system.family == family]


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
    """Where position enters attention: at the token, at queries and keys, at the score, or in what is remembered."""
    p, y = Panel(1240, 0, map_wide.__doc__), 36
    for x, w, label in ((6, 92, "token x"), (300, 124, "queries, keys"), (606, 96, "scores q . k"), (846, 84, "softmax")):
        _box(p, x, y, w, label)
    p.text(1234, y + 5, "times values", "b", "end")
    for x1, x2 in ((100, 177), (215, 298), (426, 492), (530, 604), (704, 761), (799, 844), (932, 1021), (1059, 1132)):
        p.arrow(x1, y, x2, y)
    for family, x, left in (("absolute", 196, 6), ("rotary", 511, 370), ("relative", 780, 692), ("state", 1040, 1014)):
        colour = COLOURS[family]
        _glyph(p, x, y, family)
        p.path([(x, y + 18), (x, 92)], colour, 1.6).path([(left, 92), (left + 294 - 68 * (family == "state"), 92)], colour, 2.4)
        title, one, two = WHERE[family]
        p.text(left, 118, title, "b", fill=colour, size=18)
        p.text(left, 138, f"{one} {two}", "m")
        names = _names(family)
        rows = max((len(names) + 1) // 2, 5)
        across = 12 + 6.7 * max(len(short(name)) for name in names[:rows])  # a column as wide as its longest name
        for i, name in enumerate(names):
            p.text(left + across * (i // rows), 170 + 28 * (i % rows), short(name), fill=colour, href=href(name), size=12)
        p.h = max(p.h, 156 + 28 * rows)
    return p


def map_tall():
    """Where position enters attention, from top to bottom."""
    p, y = Panel(340, 0, map_tall.__doc__), 24
    for label, family in (("token x", "absolute"), ("q, k", "rotary"), ("q . k", "relative"), ("k v", "state")):
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


def weights(name, n):
    """The weights of n equal tokens in the head of a system; "" has no position."""
    rng = np.random.default_rng(8)
    text = layers.Text(np.tile(rng.normal(size=16), (n, 1)), tuple(rng.normal(size=(3, 16, 16)) / 4), 0, 24, [])
    return layers.weights(name, text) if name else attention.softmax(text.attended(*text.projected(text.x))[0])


def sheet():
    """Twenty-four equal tokens, so that everything you see is position. A row is a query, a column a key. Half strength is an
    even spread, 1/24; stronger is more. Without an encoding attention is flat. Stripes mean that the offset decides; anything
    else means that the place does. Random weights, 16 features; systems of two axes see a grid of 3 by 8."""
    return [_attention(name, 152) for name in ("", *(name for family in COLOURS for name in _names(family)))]


def alone(name):
    """Attention on twenty-four equal tokens, so that everything you see is position. A row is a query, a column a key. Half
    strength is an even spread, 1/24; stronger is more. Random weights, 16 features."""
    return [_attention(each, 260) for each in ("", name)]


def _attention(name, size):
    share = weights(name, 24) * 24
    words, page = (short(name), href(name)) if name else ("none", None)
    p = Panel(size + 8, size + 26, f"attention on equal tokens: {words}").text(
        2, 14, words, "b s", fill=colour(name), href=page, size=round(min(11.5, size / len(words) / 0.66), 1)
    )
    p.heat(2, 22, size, np.clip(share / (np.abs(share) + 1), 0, 1), colour(name))
    return p.rect(2, 22, size, size, None, "line")


def example(name):
    """The weights of four equal tokens, or None where the page is about no system."""
    return weights(name, 4) if "." in name else None
