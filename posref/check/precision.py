r"""Precision models: how far a correct rotation may be from the exact one.

Definition. A pair (a, b) turns by phi = m theta. With unit roundoffs u of the angle, the tables, the products and the
output, to first order in u:

    |error| <= hypot(a, b) |phi| k u_angle  +  (|a cos| + |b sin|) (u_table + 2 u_arithmetic)  +  |y| u_output  +  floor

    phase = hypot(a, b) |phi| k       amp = |a cos| + |b sin|  (first member),  |a sin| + |b cos|  (second member)
    tolerance = (1 + 2^-6) (c_phase phase + c_amp amp + c_out |y|) + c_floor

1 + 2^-6 covers the second-order terms. k counts the roundings that an angle went through:

* theta = base^(-2t/dim) through a power or exp(-2t ln(base) / dim): up to three roundings of an exponent of size |ln theta|
  (the logarithm or the quotient, the product, the division), each turned into a relative error |ln theta| u by the
  exponential; one for the function, one for a reciprocal, one for m theta, one spare for a function that is not
  correctly rounded. k = 3 |ln theta| + 4.
* angles by repeated multiplication, phi_t = phi_{t-1} r (ggml): every step adds its own rounding and the error of r,
  up to 2 u and one rounded exponent. k = |ln theta| + 3t + 4.

The floor is the half spacing of subnormal numbers, which float16 reaches: of the output alone (2^-25), or of two table
entries, two products and the output for |a| + |b| <= 4 (7 * 2^-25, rounded up to 2^-22).

A bound with the same k for every pair, ln(base) + 4, is too small: float32 exp-log recipes exceed it 1.4 times, and
dim for the repeated multiplication is exceeded 1.2 times at small dim. `tests/check/test_precision.py` holds both ends:
no recipe leaves its bound, and each comes near it.
"""

from typing import Any, NamedTuple

import numpy as np

from posref import pairing

Array = Any  # numpy arrays; the specification functions are untyped


class Model(NamedTuple):
    """Coefficients of the bound, and how the angles were made."""

    c_phase: float
    c_amp: float
    c_out: float
    c_floor: float
    iterative: bool


F64, F32, F16, BF16 = 2.0**-53, 2.0**-24, 2.0**-11, 2.0**-8  # unit roundoffs


def _model(angle: float, table: float, arithmetic: float, output: float, floor: float = 0.0, iterative: bool = False) -> Model:
    return Model(angle, table + 2 * arithmetic, output, floor, iterative)


MODELS: dict[str, Model] = {
    "f64": _model(F64, F64, F64, F64),
    "f32": _model(F32, F32, F32, F32),
    "f32-iterative": _model(F32, F32, F32, F32, iterative=True),
    "f16-f32math": _model(F32, F32, F32, F16, floor=2.0**-25),
    "f16-f32math-iterative": _model(F32, F32, F32, F16, floor=2.0**-25, iterative=True),
    "f16-all": _model(F32, F16, F16, F16, floor=2.0**-22),
    "bf16-f32math": _model(F32, F32, F32, BF16),
    "bf16-f32math-iterative": _model(F32, F32, F32, BF16, iterative=True),
    "bf16-all": _model(F32, BF16, BF16, BF16),
}

# Per dtype of the output, from the strictest to the loosest model that a correct implementation may need.
BY_DTYPE: dict[str, tuple[str, ...]] = {
    "float64": ("f64", "f32", "f32-iterative"),
    "float32": ("f32", "f32-iterative"),
    "float16": ("f16-f32math", "f16-f32math-iterative", "f16-all"),
    "bfloat16": ("bf16-f32math", "bf16-f32math-iterative", "bf16-all"),
}

MEANING: dict[str, str] = {
    "f64": "float64 throughout",
    "f32": "float32 angles, tables and products",
    "f32-iterative": "float32, angles accumulated by repeated multiplication",
    "f16-f32math": "float32 mathematics, rounded once to float16",
    "f16-f32math-iterative": "float32 mathematics, angles by repeated multiplication, rounded once to float16",
    "f16-all": "float32 angles; tables and products in float16",
    "bf16-f32math": "float32 mathematics, rounded once to bfloat16",
    "bf16-f32math-iterative": "float32 mathematics, angles by repeated multiplication, rounded once to bfloat16",
    "bf16-all": "float32 angles; tables and products in bfloat16",
}


def phase_growth(frequencies: Array, *, iterative: bool = False) -> Array:
    """k of every pair, `(dim/2,)`: how many unit roundoffs its angle may be off, relative to the angle.

    >>> phase_growth(np.array([1.0, 0.01])).round(1)
    array([ 4. , 17.8])
    """
    exponent = np.abs(np.log(np.abs(frequencies)))
    if iterative:
        return exponent + 3 * np.arange(len(frequencies)) + 4
    return 3 * exponent + 4


def rope_condition(
    x: Array, positions: Array, frequencies: Array, *, layout: str, rotary_dim: int | None = None, iterative: bool = False
) -> tuple[Array, Array]:
    """`amp` and `phase` of every entry of the rotated x, both of the shape of `x`; zero where features pass.

    `positions` broadcast as in `rope.tables`: `(batch, 1, n)` for x `(batch, heads, n, d)`.
    """
    width = x.shape[-1] if rotary_dim is None else rotary_dim
    a, b = pairing.split(x[..., :width], layout)
    angle = positions[..., None] * frequencies
    cos, sin = np.abs(np.cos(angle)), np.abs(np.sin(angle))
    reach = np.hypot(a, b) * np.abs(angle) * phase_growth(frequencies, iterative=iterative)
    amp = pairing.join(np.abs(a) * cos + np.abs(b) * sin, np.abs(a) * sin + np.abs(b) * cos, layout)
    phase = pairing.join(reach, reach, layout)
    rest = np.zeros((*x.shape[:-1], x.shape[-1] - width))
    return np.concatenate([amp, rest], axis=-1), np.concatenate([phase, rest], axis=-1)


def tolerance(amp: Array, phase: Array, expected: Array, model: str) -> Array:
    """The bound from stored conditions. `phase` already holds k.

    >>> float(tolerance(1.0, 0.0, 0.5, "bf16-f32math")) < 0.00199
    True
    """
    m = MODELS[model]
    return (1 + 2.0**-6) * (m.c_phase * phase + m.c_amp * amp + m.c_out * np.abs(expected)) + m.c_floor


def rope_tolerance(
    x: Array,
    positions: Array,
    frequencies: Array,
    *,
    layout: str,
    model: str,
    expected: Array,
    rotary_dim: int | None = None,
) -> Array:
    """The bound for every entry of `expected`, the exact rotation of `x` at `positions`."""
    amp, phase = rope_condition(
        x, positions, frequencies, layout=layout, rotary_dim=rotary_dim, iterative=MODELS[model].iterative
    )
    return tolerance(amp, phase, expected, model)
