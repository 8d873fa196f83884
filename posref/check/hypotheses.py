"""Hypotheses: the mistakes that are made, as data. Each names a change of the specification, a sentence and a remedy.

A change is a function `(asked, rotation) -> rotation`, or None where it does not apply; changes of different kinds
("pairs", "sign", "magnitude", "positions", "frequencies", "precision") can be combined.
`same_as` lists what gives the same numbers whatever the data.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from posref import pairing
from posref.check import frameworks
from posref.check.rotation import Asked, Pairs, Positions, Rotation, paired

Change = Callable[[Asked, Rotation], "Rotation | None"]


@dataclass(frozen=True)
class Hypothesis:
    """One mistake. `sentence` completes "your output equals RoPE". Without two rows along `axis` it says nothing."""

    name: str
    kind: str
    sentence: str
    remedy: str
    change: Change
    same_as: tuple[str, ...] = ()
    axis: int | None = None


BASES = (10000.0, 500000.0, 1000000.0, 10000000.0, 100000.0, 150000.0, 160000.0, 50000.0, 8000000.0, 5000000.0, 1000.0, 100.0)
LENGTHS = tuple(2**k for k in range(4, 20))
FACTORS = (2.0, 4.0, 8.0, 16.0, 32.0, 0.5, 0.25, 0.125)
OFFSETS = (1, -1, 2, -2)


def other(layout: str) -> str:
    """The other of the two layouts."""
    return "interleaved" if layout == "half" else "half"


def members(layout: str, width: int) -> str:
    """The pair of a layout in code."""
    return f"(x[t], x[t + {width // 2}])" if layout == "half" else "(x[2t], x[2t + 1])"


def all_hypotheses(asked: Asked) -> list[Hypothesis]:
    """Every single mistake that can be stated for this call, in the order of reporting."""
    return [*_pairs(asked), *_signs(), *_positions(), *_frequencies(asked), *_scales(), *_precision()]


# pairs ---------------------------------------------------------------------------------------------------------------


def _pairs(asked: Asked) -> Iterator[Hypothesis]:
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


def _tiling(layout: str) -> str:
    return "concatenate([cos, cos])" if layout == "half" else "repeat(cos, 2)"


def _tiled(layout: str, tiling: str, width: int) -> Pairs:
    pairs = paired(layout, width)
    column = pairing.join(pairs.column_first, pairs.column_first, tiling)
    return pairs._replace(column_first=column[pairs.first], column_second=column[pairs.second])


def _widths(asked: Asked) -> Iterator[Hypothesis]:
    dim, width, layout = asked.dim, asked.rotary_dim, asked.layout

    def hypothesis(name: str, sentence: str, remedy: str, pairs: Pairs, divisor: int) -> Hypothesis:
        theta = asked.base ** (-2 * np.arange(len(pairs.first)) / divisor)
        return Hypothesis(name, "pairs", sentence, remedy, lambda asked, r: replace(r, pairs=pairs, frequencies=theta))

    if width < dim:
        remedy = f"Rotate the first {width} features, exponent 2t/{width}, and pass the other {dim - width}."
        for divisor in (dim, width):
            name = f"all {dim} features rotated, exponent 2t/{divisor}"
            yield hypothesis(name, f"of all {dim} features with exponent 2t/{divisor}", remedy, paired(layout, dim), divisor)
        right, skip = paired(layout, width), dim - width
        shifted = right._replace(
            first=right.first + skip,
            second=right.second + skip,
            to_first=right.first + skip,
            to_second=right.second + skip,
        )
        yield hypothesis("last features rotated", f"of the last {width} features instead of the first", remedy, shifted, width)
        t = np.arange(width // 2)
        across = Pairs(t, t + dim // 2, t, t + dim // 2, t, t)
        for divisor in (dim, width):
            yield hypothesis(
                f"pairs across the head, exponent 2t/{divisor}",
                f"of pairs (t, t + {dim // 2}) across the whole head, t < {width // 2}, exponent 2t/{divisor}",
                f"Pair within the first {width} features. Pairs across the head are another encoding (proportional rotary).",
                across,
                divisor,
            )
    for part in (dim // 2, dim // 4):
        if part % 2 == 0 and 0 < part < width:
            for divisor in (part, dim):
                yield hypothesis(
                    f"first {part} features rotated, exponent 2t/{divisor}",
                    f"of the first {part} features only, exponent 2t/{divisor}",
                    f"Rotate {width} features, exponent 2t/{width}.",
                    paired(layout, part),
                    divisor,
                )


# sign and form -------------------------------------------------------------------------------------------------------


def _signs() -> Iterator[Hypothesis]:
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


# positions -----------------------------------------------------------------------------------------------------------


def positions_change(mapped: Positions) -> Change:
    """Apply a map to the positions after those already there."""
    return lambda asked, r: replace(r, positions=(*r.positions, mapped))


def clamped(limit: int) -> Hypothesis:
    """Positions beyond a table use its last row."""
    return Hypothesis(
        f"positions clamped at {limit}",
        "positions",
        f"with positions clamped at {limit}",
        f"Make the table longer than {limit + 1} rows, or raise for positions beyond it.",
        positions_change(lambda p, shape: np.minimum(p, limit)),
    )


def modulo(length: int) -> Hypothesis:
    """Positions wrap around."""
    return Hypothesis(
        f"positions modulo {length}",
        "positions",
        f"with positions modulo {length}",
        f"Do not wrap positions; make the table longer than {length} rows.",
        positions_change(lambda p, shape: p % length),
    )


def offset(number: float) -> Hypothesis:
    """Positions shifted by a constant."""
    remedies = {1: "Count positions from 0", -1: "Count positions from 0, and advance the cache length after the step"}
    return Hypothesis(
        f"positions {number:+g}",
        "positions",
        f"with every position {'too large' if number > 0 else 'too small'} by {abs(number):g}",
        f"{remedies.get(int(number), 'Use the positions as they are given')}. Scores hide it if q and k share it.",
        positions_change(lambda p, shape: p + number),
    )


def scaled(factor: float) -> Hypothesis:
    """Positions, or frequencies, times a factor."""
    twice = ("the rotation applied twice",) if factor == 2 else ()
    return Hypothesis(
        f"positions times {factor:g}",
        "positions",
        f"with positions times {factor:g}",
        f"Remove the linear scaling (factor {1 / factor:g}), or ask for it." if factor != 2 else "Rotate once.",
        positions_change(lambda p, shape: p * factor),
        (f"frequencies times {factor:g}", *twice),
    )


def _positions() -> Iterator[Hypothesis]:
    simple: tuple[tuple[str, str, str, Positions, int | None, tuple[str, ...]], ...] = (
        (
            "no rotation",
            "at position 0 everywhere: nothing turns",
            "Pass the positions on, and check that the rotation is applied.",
            lambda p, shape: np.zeros_like(p),
            None,
            ("the rotation left out", "all positions zero"),
        ),
        (
            "positions ignored",
            "at positions 0, 1, 2, .. along the sequence: the given positions are ignored",
            "Index the tables with the positions instead of counting rows.",
            lambda p, shape: np.arange(shape[-2])[None, None],
            -2,
            (),
        ),
        (
            "only the first position used",
            "at positions that count on from the first one of each row",
            "Use every position; kernels that take one offset cannot serve gaps, packing or eviction.",
            lambda p, shape: p[..., :1] + np.arange(shape[-2]),
            -2,
            (),
        ),
        (
            "only the first position of the batch used",
            "at positions that count on from the first position of the first row, in all rows",
            "Use every position of every row.",
            lambda p, shape: p[:1, :, :1] + np.arange(shape[-2]),
            0,
            (),
        ),
        (
            "positions shared across the batch",
            "with the positions of the first row of the batch in all rows",
            "Give the tables a batch axis: (batch, 1, n, ..) for x of shape (batch, heads, n, dim).",
            lambda p, shape: p[:1],
            0,
            (),
        ),
        (
            "positions reversed",
            "with the positions of the sequence in reversed order",
            "Do not flip the sequence axis of the positions.",
            lambda p, shape: p[..., ::-1],
            -2,
            (),
        ),
        (
            "positions along the heads",
            "with the positions running along the heads instead of the sequence",
            "Axis -2 of x is the sequence: transpose (batch, n, heads, dim) first, or insert the missing axis.",
            lambda p, shape: np.swapaxes(p[..., np.arange(shape[-3]) % p.shape[-1]], -1, -2),
            -3,
            (),
        ),
        (
            "head number as position",
            "with the number of the head as the position",
            "Axis -2 of x is the sequence; shape[1] is the number of heads here.",
            lambda p, shape: np.arange(shape[-3])[None, :, None],
            -3,
            (),
        ),
        (
            "batch number as position",
            "with the number of the batch row as the position",
            "Axis -2 of x is the sequence.",
            lambda p, shape: np.arange(shape[0])[:, None, None],
            0,
            (),
        ),
        (
            "positions -1, not below 0",
            "with every position too small by 1, and 0 kept",
            "Count positions from 0, and advance the cache length after the step.",
            lambda p, shape: np.maximum(p - 1, 0),
            None,
            (),
        ),
        (
            "positions in int16",
            "with positions that wrap around as 16-bit integers",
            "Hold positions in int32 or int64.",
            lambda p, shape: (p + 2**15) % 2**16 - 2**15,
            None,
            (),
        ),
    )
    for name, sentence, remedy, mapped, axis, same_as in simple:
        yield Hypothesis(name, "positions", sentence, remedy, positions_change(mapped), same_as, axis)
    yield from (offset(number) for number in OFFSETS)
    yield from (clamped(length - 1) for length in LENGTHS)
    yield from (modulo(length) for length in LENGTHS)


# frequencies ---------------------------------------------------------------------------------------------------------


def based(base: float, asked: Asked) -> Hypothesis:
    """Another base, exponent as it should be."""
    return Hypothesis(
        f"base {base:g}",
        "frequencies",
        f"with base {base:.10g}; you asked for {asked.base:.10g}",
        f"Pass base={asked.base:.10g} (rope_theta); check that the configuration is read.",
        lambda asked, r: replace(r, frequencies=base ** (-2 * np.arange(len(r.frequencies)) / (2 * len(r.frequencies)))),
        (f"exponent 2t/dim times {np.log(base) / np.log(asked.base):.4g}",) if asked.base > 1 and base > 1 else (),
    )


def _exponent(name: str, formula: str, exponent: Callable[[np.ndarray, Asked], np.ndarray], *same_as: str) -> Hypothesis:
    def change(asked: Asked, r: Rotation) -> Rotation:
        t = np.arange(len(r.frequencies))
        return replace(r, frequencies=asked.base ** -exponent(t, asked))

    remedy = "theta_t = base^(-2t/dim), t = 0 .. dim/2 - 1, where dim is the rotated width."
    return Hypothesis(name, "frequencies", f"with theta_t = {formula}", remedy, change, same_as)


def _frequencies(asked: Asked) -> Iterator[Hypothesis]:
    width, dim, base = asked.rotary_dim, asked.dim, asked.base
    yield from (based(other_base, asked) for other_base in BASES if other_base != base)
    if dim != width:
        yield _exponent(
            f"exponent 2t/{dim}",
            f"base^(-2t/{dim}), over the head instead of the {width} rotated features",
            lambda t, asked: 2 * t / asked.dim,
            f"base {base ** (width / dim):.6g} with exponent 2t/{width}",
        )
    yield _exponent(
        "exponent t/dim",
        f"base^(-t/{width}), the factor 2 is missing",
        lambda t, asked: t / asked.rotary_dim,
        f"base {base**0.5:.6g} with exponent 2t/{width}",
        f"exponent 2t/{2 * width}",
    )
    yield _exponent(
        "exponent 4t/dim",
        f"base^(-4t/{width}), a factor 2 too many",
        lambda t, asked: 4 * t / asked.rotary_dim,
        f"base {base**2:.6g} with exponent 2t/{width}",
        f"exponent 2t/{width // 2}",
    )
    yield _exponent(
        "exponent 2(t+1)/dim",
        f"base^(-2(t+1)/{width}), counted from 1",
        lambda t, asked: 2 * (t + 1) / asked.rotary_dim,
        f"positions times {base ** (-2 / width):.6g}",
    )
    if width > 2:
        yield _exponent(
            "exponent 2t/(dim-2)",
            f"base^(-2t/{width - 2}), as in tensor2tensor's sinusoids",
            lambda t, asked: 2 * t / (asked.rotary_dim - 2),
            f"base {base ** (width / (width - 2)):.6g} with exponent 2t/{width}",
        )
        yield _exponent(
            "frequencies ascending", "those of RoPE in reversed order", lambda t, asked: 2 * t[::-1] / asked.rotary_dim
        )
    yield _exponent("exponent positive", f"base^(+2t/{width}), not inverted", lambda t, asked: -2 * t / asked.rotary_dim)


def _scales() -> Iterator[Hypothesis]:
    yield from (scaled(factor) for factor in FACTORS)


def magnified(magnitude: float) -> Hypothesis:
    """Rotated features times a constant."""
    return Hypothesis(
        f"magnitude {magnitude:.6g}",
        "magnitude",
        f"times {magnitude:.6g}{_yarn(magnitude)}",
        "Plain RoPE keeps norms. An attention factor (mscale) belongs to YaRN and LongRoPE; remove it or ask for them.",
        lambda asked, r: replace(r, magnitude=magnitude),
    )


def _yarn(magnitude: float) -> str:
    for power, word in ((1, ""), (2, ", squared")):
        factor = np.exp((abs(magnitude) ** (1 / power) - 1) / 0.1)
        if 1 < factor < 1000 and abs(factor - round(factor)) < 1e-2 and round(factor) > 1:
            return f", the YaRN attention factor 0.1 ln(s) + 1 of s = {round(factor)}{word}"
    return ""


# precision -----------------------------------------------------------------------------------------------------------


def _precision() -> Iterator[Hypothesis]:
    for dtype in ("bfloat16", "float16"):
        integers = 256 if dtype == "bfloat16" else 2048
        for what, words, why in (
            (
                "frequencies",
                "frequencies (inv_freq)",
                "a relative error of 2^-8" if dtype == "bfloat16" else "a relative error of 2^-11",
            ),
            ("positions", "positions", f"integers above {integers} are not all there"),
        ):
            yield _rounding(f"{what} in {dtype}", words, dtype, why, ((what, dtype),))
        everything = (("positions", dtype), ("frequencies", dtype), ("angles", dtype))
        yield _rounding(
            f"angles in {dtype}", "positions, frequencies and angles", dtype, "the product is rounded too", everything
        )
        both = (("positions", dtype), ("frequencies", dtype))
        yield _rounding(f"positions and frequencies in {dtype}", "positions and frequencies", dtype, "both are rounded", both)
        yield Hypothesis(
            f"tables in {dtype}",
            "precision",
            f"with cos and sin tables rounded to {dtype}",
            "Keep the tables in float32 and round the result once.",
            lambda asked, r, dtype=dtype: replace(r, table=dtype),  # type: ignore[misc]
        )
        short = {"bfloat16": "bf16", "float16": "f16"}[dtype]
        yield Hypothesis(
            f"computed in {dtype}",
            "precision",
            f"computed in {dtype} although the result has another dtype",
            "Compute in float32 and round the result once.",
            lambda asked, r, short=short: replace(r, model=f"{short}-all"),  # type: ignore[misc]
        )


def _rounding(name: str, words: str, dtype: str, why: str, rounded: tuple[tuple[str, str], ...]) -> Hypothesis:
    return Hypothesis(
        name,
        "precision",
        f"with {words} rounded to {dtype}: {why}",
        "Make positions int or float32 and frequencies and angles float32, whatever the dtype of the model; "
        "autocast, .to(dtype) and .half() of a module also reach its buffers.",
        lambda asked, r: replace(r, rounded=(*r.rounded, *rounded)),
    )
