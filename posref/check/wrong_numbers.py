"""Wrong numbers: another base or exponent, a magnitude, too few digits."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from posref.check.hypothesis import Hypothesis
from posref.check.rotation import Asked, Rotation

BASES = (10000.0, 500000.0, 1000000.0, 10000000.0, 100000.0, 150000.0, 160000.0, 50000.0, 8000000.0, 5000000.0, 1000.0, 100.0)


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


def wrong_frequencies(asked: Asked) -> Iterator[Hypothesis]:
    """A base that is used somewhere, an exponent that is written somewhere."""
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


DIGITS = {
    "bfloat16": "a relative error of 2^-8; integers above 256 are not all there",
    "float16": "a relative error of 2^-11; integers above 2048 are not all there",
}


def wrong_precision() -> Iterator[Hypothesis]:
    """Positions, frequencies or angles in 16 bits: seen at long positions whatever the dtype of the result."""
    for dtype in DIGITS:
        yield _rounded("frequencies", ("frequencies",), dtype)
        yield _rounded("positions", ("positions",), dtype)
        yield _rounded("positions and frequencies", ("positions", "frequencies"), dtype)
        yield _rounded("angles", ("positions", "frequencies", "angles"), dtype)


def _rounded(name: str, what: tuple[str, ...], dtype: str) -> Hypothesis:
    return Hypothesis(
        f"{name} in {dtype}",
        "precision",
        f"with {', '.join(what)} rounded to {dtype}: {DIGITS[dtype]}",
        "Keep positions in int or float32, frequencies (inv_freq) and angles in float32, whatever the dtype of the model; "
        "autocast, .to(dtype) and .half() of a module also reach its buffers.",
        lambda asked, r: replace(r, rounded=(*r.rounded, *((each, dtype) for each in what))),
    )


def low_tables(dtype: str) -> Hypothesis:
    """Tables in 16 bits under finer arithmetic. A wide bound, that covers smaller mistakes too."""
    return Hypothesis(
        f"tables in {dtype}",
        "precision",
        f"with cos and sin rounded to {dtype}, or errors of that size",
        "Keep the tables in float32 and round the result once.",
        lambda asked, r: replace(r, table=dtype),
    )


def low_result(dtype: str) -> Hypothesis:
    """A result of 16-bit numbers in a wider dtype."""
    return Hypothesis(
        f"computed in {dtype}",
        "precision",
        f"computed in {dtype}: every value of the result is a {dtype} number, though its dtype is wider",
        f"Compute in float32; if {dtype} is meant, return it, or diagnose with dtype={dtype}.",
        lambda asked, r: r,
    )
