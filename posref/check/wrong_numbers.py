"""Wrong numbers: another base or exponent, a magnitude, too few digits."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from posref.check.rotation import Asked, powers
from posref.check.run import Hypothesis

BASES = (10000.0, 500000.0, 1000000.0, 10000000.0, 100000.0, 150000.0, 160000.0, 50000.0, 8000000.0, 5000000.0, 1000.0, 100.0)


def based(base: float, asked: Asked) -> Hypothesis:
    """Another base, exponent as it should be; or any base, where frequencies were given."""
    sentence = f"with base {base:.10g}; you asked for {asked.base:.10g}"
    remedy = f"Pass base={asked.base:.10g} (rope_theta); check that the configuration is read."
    same_as = (f"exponent 2t/dim times {np.log(base) / np.log(asked.base):.4g}",) if asked.base > 1 and base > 1 else ()
    if asked.given is not None:
        sentence = f"with frequencies {base:.10g}^(-2t/{asked.divisor}), not scaled; you asked for given ones"
        remedy, same_as = "Use the given frequencies; check that the scaling of the configuration is read.", ()
    return Hypothesis(
        f"base {base:g}",
        "frequencies",
        sentence,
        remedy,
        lambda asked, r: replace(r, frequencies=(r.frequencies != 0) * powers(base, len(r.frequencies), r.divisor)),
        same_as,
    )


def wrong_frequencies(asked: Asked) -> Iterator[Hypothesis]:
    """A base that is used somewhere, an exponent that is written somewhere, an order."""
    bases = dict.fromkeys(BASES if asked.given is None else (asked.base, *BASES))
    yield from (based(base, asked) for base in bases if asked.given is not None or base != asked.base)
    yield from _wrong_exponents(asked) if asked.given is None else _not_as_given(asked)
    if asked.rotary_dim > 2:
        yield Hypothesis(
            "frequencies ascending",
            "frequencies",
            "with the right frequencies in reversed order",
            "The fastest pair comes first.",
            lambda asked, r: replace(r, frequencies=r.frequencies[::-1]),
        )


def _wrong_exponents(asked: Asked) -> Iterator[Hypothesis]:
    width, dim, base, divisor = asked.rotary_dim, asked.dim, asked.base, asked.divisor
    over = {dim: f"the {dim} features of the head", width: f"the {width} rotated features"}

    def hypothesis(name: str, formula: str, step: float, *same_as: str, start: int = 0) -> Hypothesis:
        return Hypothesis(
            name,
            "frequencies",
            f"with theta_t = {formula}",
            f"theta_t = {base:.10g}^(-2t/{divisor}), t = 0 .. {width // 2 - 1}.",
            lambda asked, r: replace(r, frequencies=base ** (-step * (np.arange(len(r.frequencies)) + start))),
            same_as,
        )

    for n in over:
        if n != divisor:
            formula = f"base^(-2t/{n}), over {over[n]} instead of {over.get(divisor, divisor)}"
            same_as = f"base {base ** (divisor / n):.6g} with exponent 2t/{divisor}"
            yield hypothesis(f"exponent 2t/{n}", formula, 2 / n, same_as)
    yield hypothesis(
        "exponent t/dim",
        f"base^(-t/{divisor}), the factor 2 is missing",
        1 / divisor,
        f"base {base**0.5:.6g} with exponent 2t/{divisor}",
        f"exponent 2t/{2 * divisor}",
    )
    yield hypothesis(
        "exponent 4t/dim",
        f"base^(-4t/{divisor}), a factor 2 too many",
        4 / divisor,
        f"base {base**2:.6g} with exponent 2t/{divisor}",
        f"exponent 2t/{divisor // 2}",
    )
    yield hypothesis(
        "exponent 2(t+1)/dim",
        f"base^(-2(t+1)/{divisor}), counted from 1",
        2 / divisor,
        f"positions times {base ** (-2 / divisor):.6g}",
        start=1,
    )
    if divisor > 2:
        formula = f"base^(-2t/{divisor - 2}), as in tensor2tensor's sinusoids"
        same_as = f"base {base ** (divisor / (divisor - 2)):.6g} with exponent 2t/{divisor}"
        yield hypothesis("exponent 2t/(dim-2)", formula, 2 / (divisor - 2), same_as)
    yield hypothesis("exponent positive", f"base^(+2t/{divisor}), not inverted", -2 / divisor)


def _not_as_given(asked: Asked) -> Iterator[Hypothesis]:
    if asked.dim != asked.rotary_dim:
        yield Hypothesis(
            f"exponent 2t/{asked.dim}",
            "frequencies",
            f"with frequencies {asked.base:.10g}^(-2t/{asked.dim}), over the head and not scaled; you asked for given ones",
            "Use the given frequencies.",
            lambda asked, r: replace(r, frequencies=powers(asked.base, len(r.frequencies), asked.dim)),
        )
    if asked.frequencies.min() > 1e-8:  # one over less: float32 angles are off by turns from position 1 on, and anything fits
        yield Hypothesis(
            "frequencies inverted",
            "frequencies",
            "with one over the given frequencies",
            "theta is in radians per position; a wavelength over 2 pi, or a timescale, is its inverse.",
            lambda asked, r: replace(r, frequencies=1 / r.frequencies),
        )


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
        yield _rounded("angles and tables", ("positions", "frequencies", "angles", "tables"), dtype)


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
