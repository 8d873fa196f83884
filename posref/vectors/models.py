r"""Tolerance: the largest errors of a correct implementation, for each element and for all elements together.

Definition. A precision model says how coarsely an implementation rounds; a case says how sensitive each element is:

    tolerance = (1 + 2^-5) (c_phase growth phase + c_amp amp + c_out out) + floor
    worst = max |error| / tolerance <= 1
    spread = rms(error / tolerance) / r <= 1

Symbols. u = unit roundoff: 2^-53 (f64), 2^-24 (f32), 2^-11 (f16), 2^-8 (bf16). A model has c_phase, c_amp, c_out, floor. A
case has arrays phase, amp, out with the shape of its expected values (absent: 0, 0, |expected|), rounded up to three digits;
for some models it has growth (absent: 1) and r (absent: spread is not checked).

Derivation, for a pair (a, b) rotated by phi = p theta, y = a cos phi - b sin phi (its partner in the same way):

* theta = base^(-2t/dim) as a power or as exp(-2t ln(base) / dim): up to three roundings of an exponent of size |ln theta|, each
  a relative error |ln theta| u of theta; one rounding of the function, one of a reciprocal, one of p theta, one in reserve. So
  |d phi| <= k u |phi| with k = 3 |ln theta| + 4, and |dy / d phi| <= hypot(a, b): phase = hypot(a, b) |phi| k, c_phase = u.
* Each term is rounded in its table (2u for a library function within one unit in the last place, u for a table rounded to
  a format), in its product (u) and in the sum (u): amp = |a cos phi| + |b sin phi|, c_amp = u_table + 2 u_arithmetic.
* The result is rounded once to the output format: out = |y|, c_out = u of the output.
* Values of f16 below 2^-14 round absolutely: 2^-25 at the output; in all-f16 also table entries times |a| + |b| <= 4 and two
  products, 7 * 2^-25 in all. That is the floor.
* Products of these errors: at u = 2^-8 at most 1.6 % of the amp and out terms and (3 sqrt(2) + 1) u = 2.1 % of the phase term,
  below 2^-5.
* f32-iterative (ggml) is f32 with theta_t = theta_{t-1} base^(-2/dim): every step adds its own rounding and the error of the
  factor, two roundings and its share of |ln theta|, so k = |ln theta| + 3t + 4. With |ln theta| = 2t ln(base) / dim the
  quotient of this k and the k above is monotone in t: growth is the larger end, 1 or that of the last pair t = dim/2 - 1.

Sums of n terms (dot products, averages) use the same coefficients, since c_amp >= 3u in every model: a term that is rounded r
times counts r/3 times in amp, and intermediate results stored in the output format count in out.

The second criterion, spread, is for attention in 16 bits and float32: errors differ in sign, so this sum of worst cases is 5 to
50 times the errors of correct code. It is also for cases of 16 bits whose tolerances would pass the right output divided by
1.1. r is three times the largest rms(error / tolerance) of correct implementations (posref/check/rounded.py: orders of sums,
places of the 16 bits, exp and exp2, random roundings), but at least that of one rounding of an exact result at its largest, and
at most 1, rounded up to two digits. So correct code is at a third of r or less. That holds for few elements too: code like the
16 random implementations is refused only if its spread is three times that of each. For one element and normal errors the
odds are P(|x| < t)^16 P(|x| > 3t), at most 6e-6 (at t = 1.1 standard deviations), and less for more elements.
"""

from typing import NamedTuple

import numpy as np


class Model(NamedTuple):
    """The coefficients of one precision model."""

    c_phase: float
    c_amp: float
    c_out: float
    floor: float = 0.0


F64, F32, F16, BF16 = 2.0**-53, 2.0**-24, 2.0**-11, 2.0**-8

MODELS = {
    "f64": Model(F64, 4 * F64, F64),  # everything in float64
    "f32": Model(F32, 4 * F32, F32),  # everything in float32
    "f32-iterative": Model(F32, 4 * F32, F32),  # angles by repeated multiplication; `growth` of the case makes them coarser
    "f16-f32math": Model(F32, 4 * F32, F16, floor=2.0**-25),  # float32 inside, result stored as float16
    "bf16-f32math": Model(F32, 4 * F32, BF16),  # float32 inside, result stored as bfloat16
    "f16-all": Model(F32, 3 * F16, F16, floor=7 * 2.0**-25),  # float32 angles; tables, products and sums in float16
    "bf16-all": Model(F32, 3 * BF16, BF16),  # float32 angles; tables, products and sums in bfloat16
}


def tolerance(case, model):
    """The largest allowed |error| of every element: float64, shape of `case.expected`; zeros if results must be equal.

    `model` is a name in MODELS. ValueError if there is no such model.

    >>> from posref import vectors
    >>> tiny = vectors.case("rope/half/d4-b1e4/one")
    >>> [f"{tolerance(tiny, name).max():.0e}" for name in ("f64", "f32", "bf16-all")]
    ['3e-15', '2e-06', '6e-02']
    """
    if model not in MODELS:
        raise ValueError(f"vectors.tolerance: model is {model!r}, expected one of {', '.join(map(repr, MODELS))}")
    if case.cond is None:
        return np.zeros(case.expected.shape)
    c, cond = MODELS[model], case.cond
    rounded = c.c_amp * cond.get("amp", 0.0) + c.c_out * cond.get("out", np.abs(case.expected))
    return (1 + 2**-5) * (c.c_phase * case.growth.get(model, 1) * cond.get("phase", 0.0) + rounded) + c.floor


def error(case, got, model):
    """The larger of `worst` and `spread`: at most 1.0 passes.

    >>> from posref import vectors
    >>> tiny = vectors.case("rope/half/d4-b1e4/one")
    >>> error(tiny, tiny.expected, "f64"), error(tiny, -tiny.expected, "f64") > 1
    (0.0, True)
    """
    return max(worst(case, got, model), spread(case, got, model))


def worst(case, got, model):
    """The worst error in units of its tolerance; inf for a wrong shape, NaN, or any difference if results must be equal.

    With `case.gauge == "row_constant"`, each row may be shifted by a constant, which softmax ignores. Then the worst pair of
    elements in a row counts: |difference of their errors| / (sum of their tolerances). Elements in `case.ignore` may have any
    value, infinity and NaN included.
    """
    difference = differences(case, got)
    if difference is None:
        return float("inf")
    allowed, counts = tolerance(case, model), _counts(case)
    if case.gauge == "row_constant":
        difference = difference[..., :, None] - difference[..., None, :]
        allowed = allowed[..., :, None] + allowed[..., None, :]
        counts = counts[..., :, None] & counts[..., None, :]
    return float(ratios(difference, allowed).max(initial=0.0, where=counts))


def spread(case, got, model):
    """The root mean square of the errors in units of their tolerances, divided by `case.rms[model]`; 0 without an rms.

    >>> from posref import vectors
    >>> cross = vectors.case("t5/cross/h3-d4/attend")
    >>> large = 1.1 * cross.expected  # no element beyond its tolerance
    >>> worst(cross, large, "bf16-all") < 1, spread(cross, large, "bf16-all") > 1
    (True, True)
    """
    if model not in case.rms:
        return 0.0
    difference = differences(case, got)
    return (
        float("inf") if difference is None else rms(ratios(difference, tolerance(case, model)), _counts(case)) / case.rms[model]
    )


def rms(values, counts=True):
    """The root mean square of the values that count; 0 if none counts."""
    squares = np.square(values)
    chosen = squares.ravel() if counts is True else squares[np.broadcast_to(counts, squares.shape)]
    return float(np.sqrt(chosen.mean())) if chosen.size else 0.0


def ratios(difference, allowed):
    """|difference| / allowed; 0 where both are 0, infinite where only `allowed` is 0."""
    found = np.where(difference == 0, 0.0, np.inf)
    return np.divide(np.abs(difference), allowed, out=found, where=allowed > 0)


def on_host(value):
    """A numpy array, or a tensor of torch, jax or mlx, as a numpy array; bfloat16, which NumPy lacks, becomes float32."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        return np.asarray((value.float() if str(value.dtype) == "torch.bfloat16" else value).numpy())
    if str(getattr(value, "dtype", "")) == "mlx.core.bfloat16":
        return np.array(value.tolist(), np.float32).reshape(value.shape)
    return np.asarray(value)


def differences(case, got):
    """got - expected as float64, 0 where elements are ignored; None for another shape, NaN or infinity."""
    got = on_host(got)
    if got.shape != case.expected.shape:
        return None
    difference = np.where(_counts(case), got.astype(np.float64), case.expected) - case.expected
    return difference if np.isfinite(difference).all() else None


def fingerprint(case, got):
    """Four weighted sums of the differences, which identify a mistake. The weights are `recipes.painted` with tags 1, 2, 4, 6.

    In the gauge row_constant, the first difference of each row is first subtracted from the row.

    >>> from posref import vectors
    >>> tiny = vectors.case("rope/half/d4-b1e4/one")
    >>> [round(x, 3) for x in fingerprint(tiny, tiny.expected + 1)]
    [-2.312, -1.25, 0.875, -0.922]
    """
    difference = differences(case, got)
    if difference is None:
        return None
    if case.gauge == "row_constant":
        difference = (difference - difference[..., :1]) * _counts(case)
    n = np.arange(difference.size)
    return [float(((7 * n * n + 31 * n + 17 * tag) % 251 - 125) / 64 @ difference.ravel()) for tag in (1, 2, 4, 6)]


def named(case, got):
    """The mistakes whose fingerprint differs from the fingerprint of `got` by less than 1/64.

    >>> from posref import vectors
    >>> named(vectors.case("rope/half/d4-b1e4/one"), vectors.case("rope/interleaved/d4-b1e4/one").expected)
    ['other_layout']
    """
    sums = fingerprint(case, got)
    if sums is None:
        return []
    whole = np.abs(sums).sum()
    rest = {flag: np.abs(np.subtract(sums, known)).sum() for flag, known in case.fingerprints.items()}
    return [flag for flag, left in rest.items() if left < whole / 64]


def _counts(case):
    return np.ones(case.expected.shape, dtype=bool) if case.ignore is None else ~case.ignore
