"""Wrong pairs: other layouts, tables for another layout, other widths, other signs."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from posref import pairing
from posref.check import frameworks
from posref.check.rotation import Asked, Pairs, Rotation, paired, powers
from posref.check.run import Change, Hypothesis


def other(layout: Any) -> str:
    """The other of the two layouts."""
    return "interleaved" if layout == "half" else "half"


def members(layout: Any, width: int) -> str:
    """The pair of a layout in code."""
    return f"(x[t], x[t + {width // 2}])" if layout == "half" else "(x[2t], x[2t + 1])"


def wrong_pairs(asked: Asked) -> Iterator[Hypothesis]:
    """Features that should not turn together, or not at all."""
    width, layout, wrong = asked.rotary_dim, asked.layout, other(asked.layout)
    remedy = (
        f"Rotate {members(layout, width)}, not {members(wrong, width)}; or permute the q and k weights (posref.rotary.layouts)."
    )
    settings = f"Settings {frameworks.advice(layout)}."
    equal_at_two = ("at a rotated width of 2 the two layouts are one",) if width == 2 else ()

    def hypothesis(name: str, sentence: str, remedy: str, pairs: Pairs, same_as: tuple[str, ...] = ()) -> Hypothesis:
        return Hypothesis(name, "pairs", sentence, remedy, lambda asked, r: replace(r, pairs=pairs), same_as)

    yield hypothesis(
        f"layout {wrong}",
        f'with layout="{wrong}"; you asked for layout="{layout}"',
        f"{remedy}\n{settings}",
        paired(wrong, width),
        equal_at_two,
    )
    right, left = paired(layout, width), paired(wrong, width)
    yield hypothesis(
        f"{layout} in, {wrong} out",
        f'that reads layout="{layout}" and writes layout="{wrong}": the output is left permuted',
        f"Write the pair back where it was read, {members(layout, width)}. Scores of q and k with the same permutation agree.",
        right._replace(to_first=left.first, to_second=left.second),
        equal_at_two,
    )
    yield hypothesis(
        f"{wrong} in, {layout} out",
        f'that reads layout="{wrong}" and writes layout="{layout}": the input is read permuted',
        f"Read the pair {members(layout, width)}. transformers' DeepSeek-V3 does this on purpose for its own weights.",
        left._replace(to_first=right.first, to_second=right.second),
        equal_at_two,
    )
    yield hypothesis(
        "tables tiled for the other layout",
        f'that pairs features as layout="{layout}" but tiles cos and sin for layout="{wrong}": this is not a rotation',
        f"Tile the tables as the pairs stand: {_tiling(layout)}, not {_tiling(wrong)}.",
        _tiled(layout, wrong, width),
        equal_at_two,
    )
    yield hypothesis(
        "pairs and tables of different layouts",
        f'that pairs features as layout="{wrong}" and tiles cos and sin for layout="{layout}": this is not a rotation',
        f"The tables are right. Rotate {members(layout, width)}.",
        _tiled(wrong, layout, width),
        equal_at_two,
    )
    yield from _widths(asked)


def _tiling(layout: Any) -> str:
    return "concatenate([cos, cos])" if layout == "half" else "repeat(cos, 2)"


def _tiled(layout: Any, tiling: Any, width: int) -> Pairs:
    pairs = paired(layout, width)
    column = pairing.join(pairs.column_first, pairs.column_first, tiling)
    return pairs._replace(column_first=column[pairs.first], column_second=column[pairs.second])


class Law(NamedTuple):
    """Frequencies, how to say them, and the divisor of their exponent."""

    said: str
    frequencies: np.ndarray
    divisor: int


def _turning(name: str, sentence: str, remedy: str, pairs: Pairs, law: Law, claim: str = "equals {subject}") -> Hypothesis:
    def change(asked: Asked, r: Rotation) -> Rotation:
        return replace(r, pairs=pairs, frequencies=law.frequencies, divisor=law.divisor)

    return Hypothesis(name, "pairs", sentence, remedy, change, claim=claim)


def _widths(asked: Asked) -> Iterator[Hypothesis]:
    dim, width, layout = asked.dim, asked.rotary_dim, asked.layout

    def laws(pairs: int, *divisors: int) -> Iterator[Law]:
        """Frequencies for a number of pairs: with given ones, the first of them, if there are as many."""
        if asked.given is None:
            for divisor in dict.fromkeys((*divisors, asked.divisor)):
                yield Law(f", exponent 2t/{divisor}", powers(asked.base, pairs, divisor), divisor)
        elif pairs <= len(asked.given):
            yield Law("", asked.given[:pairs], asked.divisor)

    if width < dim:
        remedy = f"Rotate the first {width} features and pass the other {dim - width}."
        for law in laws(dim // 2, dim, width):
            name, sentence = f"all {dim} features rotated{law.said}", f"of all {dim} features{law.said}"
            yield _turning(name, sentence, remedy, paired(layout, dim), law)
        right, skip = paired(layout, width), dim - width
        shifted = right._replace(
            first=right.first + skip,
            second=right.second + skip,
            to_first=right.first + skip,
            to_second=right.second + skip,
        )
        name, sentence = "last features rotated", f"of the last {width} features instead of the first"
        yield _turning(name, sentence, remedy, shifted, Law("", asked.frequencies, asked.divisor))
        yield from _across(asked, laws(width // 2, dim, width))
    if (asked.frequencies == 0).any():
        name, sentence = f"all {width} features turn", f"where all {width} features turn, none with frequency 0"
        law = Law("", powers(asked.base, width // 2, asked.divisor), asked.divisor)
        yield _turning(name, sentence, "Keep the frequencies of 0: pairs that pass.", paired(layout, width), law)
    for part in (dim // 2, dim // 4):
        if part % 2 == 0 and 0 < part < width:
            for law in laws(part // 2, part, dim):
                name, sentence = f"first {part} features rotated{law.said}", f"of the first {part} features only{law.said}"
                yield _turning(name, sentence, f"Rotate {width} features.", paired(layout, part), law)


def _across(asked: Asked, laws: Iterable[Law]) -> Iterator[Hypothesis]:
    """Pairs (t, t + dim/2), where they should lie within the rotated features."""
    half, t = asked.dim // 2, np.arange(asked.rotary_dim // 2)
    pairs = Pairs(t, t + half, t, t + half, t, t)
    remedy = (
        f"Pair within the first {asked.rotary_dim} features: {members(asked.layout, asked.rotary_dim)}.\n"
        f"Pairs across the head are another encoding, proportional RoPE (p-RoPE; Gemma 4): for weights trained with it, check "
        f"with rotary_dim={asked.dim} and frequencies= that end in zeros."
    )
    for law in laws:
        sentence = f"pairs (t, t + {half}) across the whole head, t < {len(t)}{law.said}"
        if asked.given is None and law.divisor == asked.dim:
            yield _turning("proportional RoPE", sentence, remedy, pairs, law, "is proportional RoPE:")
        else:
            yield _turning(f"pairs across the head{law.said}", f"with {sentence}", remedy, pairs, law)


def wrong_signs() -> Iterator[Hypothesis]:
    """Right pairs, wrong combination of cos and sin."""

    def form(name: str) -> Change:
        return lambda asked, r: replace(r, form=name)

    yield Hypothesis(
        "sign",
        "sign",
        "turned the other way, by -m theta",
        "Use (a cos - b sin, a sin + b cos). Scores of q and k that both turn backwards agree.",
        form("inverse"),
        ("the inverse rotation", "negated positions", "negated sin", "exchanged members of every pair"),
    )
    yield Hypothesis(
        "cos and sin swapped",
        "sign",
        "with cos and sin exchanged",
        "Multiply x by cos and the turned x by sin; check the order in which the tables are returned and unpacked.",
        form("swapped"),
        ("turned by pi/2 - m theta",),
    )
    yield Hypothesis(
        "both members with a minus",
        "sign",
        "with (a cos - b sin, b cos - a sin): this is not a rotation",
        "The second member is a sin + b cos; only one of the two halves of the turned x is negated.",
        form("both minus"),
    )
    yield Hypothesis(
        "both members with a plus",
        "sign",
        "with (a cos + b sin, a sin + b cos): this is not a rotation",
        "The first member is a cos - b sin; negate the second members before they take the place of the first.",
        form("both plus"),
    )
