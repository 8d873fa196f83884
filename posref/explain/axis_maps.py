"""Axis maps: which axis and which frequency each pair uses, for models whose tokens have several coordinates.

A map is a list with one `(axis, index)` per pair: pair t rotates by the coordinate on `axis` times `frequencies[index]`.
"""

DEFAULT_SECTIONS = (16, 24, 24)


def pairs(rule, entries, sections):
    """The map that a rule of `posref.explain.families` gives for a table with this many entries."""
    return RULES[rule](entries, sections)


def _sections(entries, sections):
    """A run of pairs for time, a run for the row, a run for the column, as in Qwen2-VL."""
    bounds = [sum(sections[: i + 1]) for i in range(len(sections))]
    return [("thw"[next(i for i, bound in enumerate(bounds) if t < bound) % 3], t) for t in range(min(entries, bounds[-1]))]


def _interleaved(entries, sections):
    """Time, row and column alternate until the sections of row and column are full; the rest reads time, as in Qwen3-VL."""
    return [("thw"[t % 3] if t < 3 * sections[t % 3] else "t", t) for t in range(entries)]


def _ernie(entries, sections):
    """Row and column alternate and use the fast frequencies, time the slow ones; the table lists those of rows first."""
    half, turning = (sections[0] + sections[1]) // 2, sections[0] + sections[1]
    return [("hw"[t % 2], t // 2 + half * (t % 2)) if t < turning else ("t", t) for t in range(entries)]


def _rows_then_columns(entries, sections):
    return [(axis, t) for axis in "hw" for t in range(entries)]


def _columns_then_rows(entries, sections):
    return [(axis, t) for axis in "wh" for t in range(entries)]


def _split(entries, sections):
    """Rows have the even and columns the odd frequencies of a list, as in Pixtral."""
    return [("hw"[t >= entries // 2], t) for t in range(entries)]


def _thirds(entries, sections):
    return [(axis, t) for axis in "thw" for t in range(entries)]


def _in_turn(entries, sections):
    """Row and column alternate, and each pair has its own frequency, as in NeoMME."""
    return [("hw"[t % 2], t) for t in range(entries)]


def _alternating(entries, sections):
    return [("wh"[t % 2], t // 2) for t in range(2 * entries)]


RULES = {
    "sections": _sections,
    "interleaved": _interleaved,
    "ernie": _ernie,
    "hw": _rows_then_columns,
    "blocks": _columns_then_rows,  # transformers calls the first one h, its image processor gives it x
    "hw_centred": _rows_then_columns,
    "wh": _columns_then_rows,
    "wh_from_one": _columns_then_rows,
    "hw_split": _split,
    "wh_alternating": _alternating,
    "thirds": _thirds,
    "in_turn": _in_turn,
}
