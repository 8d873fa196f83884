"""Pictures of explanations: `posref explain FILE --plot OUT.svg` draws one model, or two models for comparison.

All panels stand in one column, to fit a phone. Words come from `posref.explain.words`, numbers from the fields of `Layer`.
"""

import json
import math
import re
import textwrap
from dataclasses import replace
from html import escape
from typing import Any, NamedTuple

import numpy as np

from posref import attention
from posref._printable import in_one_line
from posref.drawing import Panel, Plot, compose, power
from posref.explain import output, words

WIDTH, LINE = 340, 15
COLOURS = ("rot", "abs", "rel", "pink", "gold", "mut")
OF_TWO = (COLOURS[:2], COLOURS[2:])  # of two models; of the sets of layers of each
AXES = {"t": ("time", "pink"), "h": ("row", "rel"), "w": ("column", "abs")}
TOKENS, FEW = 12, 4  # of a small mask, and the most that a window or a chunk has there
SOME = 0.35  # the strength of keys of which a query sees some
UNBROKEN = "\N{NO-BREAK SPACE}//\N{NO-BREAK SPACE}"
BESIDE = ("position", "bias", "mask", "cap", "sinks", "temperature")  # lines of `words.rows` beside a small mask


class Curve(NamedTuple):
    """One rotation: its layers, its colour, and its name in the legend."""

    group: Any
    colour: str
    name: str


def drawn(explained, name):
    """The picture of one model, as SVG."""
    return compose(panels(explained, name), 1)


def compared(ours, theirs, names):
    """The picture of two models in the same panels, as SVG."""
    return compose(panels_of_two(ours, theirs, names), 1)


def panels(explained, name):
    """The panels of one model: wavelengths, layers and masks, traps."""
    explained, name = in_one_line(explained), in_one_line(name)
    turns = [panel for curve in _curves(_coloured(explained, COLOURS)) for panel in _turns([curve])]
    traps = [_text(title, sentences) for title, sentences in words.lists(explained) if sentences]
    return [_title([(name, "fg")], explained.model_type), *turns, *_masks([(explained, "", "fg")], COLOURS), *traps]


def panels_of_two(ours, theirs, names):
    """The panels of two models: their rotations in one plot, their layers and masks, and their differences in words."""
    models = [in_one_line(each) for each in (ours, theirs)]
    named = list(zip(models, map(in_one_line, names), OF_TWO[0], strict=True))
    curves = [
        Curve(group, colour, _with_lengths(name, group))
        for explained, name, colour in named
        for group, _, _ in _curves(_coloured(explained, COLOURS))
        if not output.of_a_picture(group)
    ]
    changes = _text("What changes", output.differences(ours, theirs) or ["the positions are the same"])
    title = _title([(name, colour) for _, name, colour in named], " and ".join(each.model_type for each in models))
    return [title, *(_turns(curves) if curves else []), *_masks(named, OF_TWO[1]), changes]


def _coloured(explained, colours):
    """(set of layers, colour) in the order of the explanation; each part of the model starts with the first colour."""
    parts = [group.part for group in explained.layers]
    return [(group, colours[parts[:n].count(group.part) % len(colours)]) for n, group in enumerate(explained.layers)]


def _curves(coloured):
    """A curve for each rotation; sets of layers that share one rotation have one curve."""
    keys, found = (*output.TURNED_BY, "max_position_embeddings", "part"), {}
    for group, colour in coloured:
        if group.encoding == "rope" and group.frequencies:
            found.setdefault(json.dumps([getattr(group, key) for key in keys]), []).append((group, colour))
    for shared in found.values():
        group = replace(shared[0][0], indices=sorted(i for group, _ in shared for i in group.indices))
        yield Curve(group, shared[0][1] if len(shared) == 1 else "fg", f"{group.part} {_layers(group.indices)}".strip())


def _layers(indices):
    return f"layer{'s' * (len(indices) > 1)} {words.runs(indices)}"


def _title(labels, types):
    panel = Panel(WIDTH, 0, "; ".join(name for name, _ in labels))
    lines = [(line, colour) for name, colour in labels for line in _lines(name, 38)]
    for n, (line, colour) in enumerate(lines):
        panel.text(4, 18 + 19 * n, line, "b", fill=colour, size=15)
    return _written(panel, 4, 16 + 19 * len(lines), _lines(f"model_type {types}"), "m s")


# Wavelengths


def _turns(curves):
    """Plots of the tokens for one full turn of each pair and, if a schedule slows pairs down, of how much it does."""
    groups, legend = [curve.group for curve in curves], [(line, c.colour) for c in curves for line in _lines(c.name, 48)]
    legend = list(dict.fromkeys(legend))
    legend += [("thin: by the base alone, without the schedule", "mut")] * any(map(_scaled, groups))
    legend += [("dashed: the long list", "mut")] * any(group.frequencies_long is not None for group in groups)
    axes = groups[0].axes if len(curves) == 1 else None
    legend += [AXES[axis] for axis in AXES if axis in (axes or ())]
    facts = [line for fact in _facts(groups[0]) for line in _lines(fact)] if len(curves) == 1 else []
    seen = [tokens for group in groups for each in _periods(group) for tokens in each if np.isfinite(tokens)]
    high = max([*seen, *(length for group in groups for length in _lengths(group).values())])
    powers = range(1, int(math.log10(3 * high)) + 1)[:: 1 + int(math.log10(high)) // 5]
    plot = _plot("Tokens for one full turn", legend, curves, (4, 3 * high), "log", 170, len(facts))
    plot.axes(_ticks(curves), [(10.0**e, power(10, e)) for e in powers], f"pair, of {_pairs(curves)}", plot.label)
    for name, length in dict.fromkeys(item for group in groups for item in _lengths(group).items()):
        y = plot.py(length)
        plot.line(plot.left, y, plot.right, y, "mut", 1.2, "1 3")
        if len(curves) == 1:
            plot.text(plot.left + 5, y + (12 if name == "trained" else -4), f"{name} {length}", "m s halo")
    for group, colour, _ in curves:
        if axes:
            for pair, (axis, period) in enumerate(zip(axes, _periods(group)[0], strict=True)):
                plot.dot(pair, period, AXES[axis][1], 2.2)
        else:
            _drawn(plot, [*_periods(group), *([_plain(group)] if _scaled(group) else [])], colour, _scaled(group))
    _written(plot, 4, plot.bottom + 52, facts)
    return [plot, *([_slower(curves)] if any(map(_scaled, groups)) else [])]


def _slower(curves):
    """A plot of the factor by which each pair rotates slower than by its base alone."""
    ratios = [
        (curve, [each / _plain(curve.group) for each in _periods(curve.group)]) for curve in curves if _scaled(curve.group)
    ]
    most = max(x for _, lists in ratios for each in lists for x in each if np.isfinite(x))
    plot = _plot("Times slower than by the base alone", [], curves, (0, 1.15 * most), "linear", 100)
    plot.axes(
        _ticks(curves),
        [(each, f"{each:g}") for each in sorted({1, round(most / 2, 1), round(most, 1)})],
        f"pair, of {_pairs(curves)}",
        plot.label,
    )
    for curve, lists in ratios:
        _drawn(plot, lists, curve.colour)
    return plot


def _plot(title, legend, curves, span, scale, height, below=0):
    """Empty axes under a title and a legend, with room for `below` lines under them."""
    top, pairs = 30 + LINE * len(legend), (0, max(_pairs(curves) - 1, 1))
    plot = Plot(WIDTH, top + height + 40 + LINE * below, title, pairs, span, "linear", scale, 40, 10, top, 40 + LINE * below)
    for n, (line, colour) in enumerate(legend):
        plot.text(4, 33 + LINE * n, line, "s", fill=colour)
    return plot


def _drawn(plot, lists, colour, thin=False):
    """Draw the first list thick and a long list dashed; with `thin`, the last list, by the base alone, is thin."""
    for n, values in enumerate(lists):
        known = [(pair, value) for pair, value in enumerate(values) if np.isfinite(value)]
        plain = thin and n == len(lists) - 1
        if known:
            plot.drawn(*zip(*known, strict=True), colour, 1 if plain else 2.4, "5 3" if n and not plain else None)


def _pairs(curves):
    return max(len(_periods(curve.group)[0]) for curve in curves)


def _ticks(curves):
    return sorted({0, (_pairs(curves) - 1) // 2, _pairs(curves) - 1})


def _periods(group):
    """The tokens for one full turn of each pair, as a list of arrays; the second is that of a long list, if there is one."""
    picked = [group.frequencies[i] for i in group.index] if group.axes else group.frequencies
    with np.errstate(divide="ignore"):
        return [2 * np.pi / np.array(each) for each in (picked, group.frequencies_long) if each is not None]


def _plain(group):
    """The tokens for one full turn of each pair by the base alone, without the schedule."""
    width = group.rotary_dim if group.rotary_dim % 2 else 2 * len(group.frequencies)
    return 2 * np.pi * group.base ** (2 * np.arange(len(group.frequencies)) / width)


def _scaled(group):
    turning = [each for each in _periods(group) if not group.axes and group.scaling]
    return any(not np.allclose(np.where(np.isfinite(each), each, _plain(group)), _plain(group)) for each in turning)


def _lengths(group):
    """The length that a schedule starts from, and the length that the model reads."""
    reaches = None if output.of_a_picture(group) else output.reach(group)
    found = {"trained": (group.scaling or {}).get("original_length"), "reaches": reaches}
    return {name: int(length) for name, length in found.items() if length}


def _with_lengths(name, group):
    """gpt-oss-20b: trained 4096, reaches 131072"""
    said = ", ".join(f"{word} {length}" for word, length in _lengths(group).items())
    return f"{name}: {said}" if said else name


def _facts(group):
    """Sentences about the rotation that a reader cannot take from the curve."""
    periods, lengths = _periods(group)[0], _lengths(group)
    length, still = lengths.get("trained", lengths.get("reaches")), int(np.isinf(periods).sum())
    if length and not group.axes:
        yield f"{int((periods <= length).sum())} of {len(periods)} pairs make a full turn within {length} tokens."
    if still:
        yield f"{still} of {len(periods)} pairs stand still."
    if words.changed(group):
        yield f"{words.SCHEDULES[group.scaling['type']]}: {words.changed(group)}."
    if group.magnitude != 1:
        yield f"Cosine and sine are multiplied by {group.magnitude:.6g}, scores by {group.magnitude**2:.6g}."


# Masks


def _masks(named, colours):
    """A panel for each part of each model (explanation, name, colour), then a legend of the small masks."""
    found = []
    for explained, name, fill in named:
        coloured = _coloured(explained, colours)
        for part in dict.fromkeys(
            [entry.part for entry in explained.layers] + [entry["part"] for entry in explained.unsupported]
        ):
            rows = [(group, colour) for group, colour in coloured if group.part == part]
            title = " ".join(["Layers and masks", *([f"of {name}"] if name else []), *([f"({part})"] if part else [])])
            found.append(_part(title, fill, rows, [entry for entry in explained.unsupported if entry["part"] == part]))
    groups = [group for explained, _, _ in named for group in explained.layers]
    meaning = [f"A row of a small mask is a query, a column a key, of {TOKENS} tokens."]
    if any((width or 0) > FEW for group in groups for width in (group.window, group.window_after, group.chunk)):
        meaning.append(f"Windows and chunks of more than {FEW} tokens are drawn as {FEW}.")
    if any(_known(group) and (seen(group) == SOME).any() for group in groups):
        meaning.append("Of pale keys a query sees some.")
    return [*found, _written(Panel(WIDTH, 0, "masks"), 4, 0, _lines(" ".join(meaning)), "m s")]


def _part(title, fill, rows, others):
    """The panel of one part: a cell per layer, then each set of layers in words beside its small mask."""
    panel, lines, y = Panel(WIDTH, 0, title), _lines(title, 44), 44
    _written(panel, 4, 16, lines, "b", fill)
    y += LINE * len(lines)
    _strip(panel, y - 31, rows, [i for entry in others if not entry["counted_by"] for i in entry["indices"]])
    said = [
        (group, colour, _lines(f"{_layers(group.indices)} ({len(group.indices)})", 40), _beside(group))
        for group, colour in rows
    ]
    for group, colour, head, lines in [*said, *((None, "", [], _lines(words.undescribed(entry), 46)) for entry in others)]:
        _small(panel, group, colour, y)
        _written(panel, 4 * TOKENS + 16, y + 11, head, "b s")
        _written(panel, 4 * TOKENS + 16, y + 11 + LINE * len(head), lines)
        y += max(LINE * (len(head) + len(lines)), 4 * TOKENS) + 14
    panel.h = y
    return panel


def _beside(group):
    return [line for word, text in words.rows(group) if word in BESIDE for line in _lines(text, 46)]


def _strip(panel, y, rows, empty):
    """Draw a cell per layer in the colours of its sets of layers, one for each attention; empty if it is not described."""
    own = {}
    for group, colour in rows:
        for i in group.indices:
            own.setdefault(i, []).append(colour)
    cell = min(14, (WIDTH - 8) / (1 + max([*own, *empty], default=0)))
    for i, colours in own.items():
        for n, colour in enumerate(colours):
            panel.rect(4 + cell * i, y + 16 * n / len(colours), cell * 0.85, 16 / len(colours), colour)
    for i in empty:
        panel.rect(4 + cell * i, y, cell * 0.85, 16, None, "mut", width=0.8)


def _known(group):
    return not group.mask_unknown and (group.causal is not None or bool(group.segment))


def _small(panel, group, colour, y):
    size = 4 * TOKENS
    if group and _known(group):
        panel.heat(4, y, size, seen(group), colour)
    else:
        panel.text(4 + size / 2, y + size / 2 + 5, "?", "b m", "middle")
    panel.rect(4, y, size, size, None, "mut", width=0.8)


def seen(group):
    """The keys that each of TOKENS queries sees: 1 if it sees the key, SOME if it sees only some of such keys, 0 otherwise."""
    i = np.arange(TOKENS)
    ahead, apart = i - i[:, None], group.chunk or group.segment or "swin" in group.encoding
    near = attention.causal_mask(i, i) if group.causal else np.ones((TOKENS, TOKENS), bool)
    if group.window:
        after = group.window_after or group.window
        near = near & (-ahead < min(group.window, FEW)) & (ahead < (min(after, FEW) if group.window_sides == "both" else 1))
    if apart:
        side = min(group.chunk or FEW, FEW) if group.chunk or group.window_side or "swin" in group.encoding else TOKENS // 2
        near = near & (i // side == i[:, None] // side)
    pale = np.ones_like(near) if group.further_keys else attention.causal_mask(i, i) if group.compressed else near
    return np.where(near, SOME if group.selected else 1, np.where(pale, SOME, 0))


# Text


def _text(title, sentences):
    panel, y = Panel(WIDTH, 0, title), 36
    for line in _lines(title, 44):
        panel.text(4, y - 20, line, "b")
        y += LINE
    y -= LINE
    for sentence in sentences:
        lines = _lines(sentence)
        _written(panel.text(4, y, "\N{BULLET}", "s"), 14, y, lines)
        y += LINE * len(lines)
    panel.h = y - LINE
    return panel


def _written(panel, x, y, lines, style="s", fill=None):
    """Write the lines on the panel, which grows to hold them."""
    for n, line in enumerate(lines):
        panel.text(x, y + LINE * n, line, style, fill=fill)
    panel.h = max(panel.h, y + LINE * len(lines) - 10)
    return panel


def _lines(text, width=54):
    """A text in lines of at most `width` characters that SVG may contain."""
    return [escape(re.sub("[\ufffe\uffff]", "?", line)) for line in textwrap.wrap(str(text).replace(" // ", UNBROKEN), width)]
