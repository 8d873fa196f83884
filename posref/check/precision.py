r"""Precision: which ways to compute a correct output may come from, and how far each may be from the exact rotation.

The bound and its coefficients are those of the golden vectors, derived in `posref/vectors/models.py`:

    tolerance = (1 + 2^-5) (c_phase phase + c_amp amp + c_out |y|) + floor
    phase = hypot(a, b) |m theta| k       amp = |a cos| + |b sin|  (first member),  |a sin| + |b cos|  (second member)

k counts the roundings of an angle, in units u of its size. It depends on the way in which theta is made:

    "power"      k = 3 |ln theta| + 4         a power or an exponential: three roundings of the exponent, see there
    "repeated"   k = |ln theta| + 3t + 4      phi_t = phi_{t-1} r (ggml): every step adds its own rounding and the error of r,
                                              up to 2 u and the rounding of one exponent
    "given"      k = 4                        theta is given, so no exponent is rounded: storing theta, dividing it or the
                                              position by a factor, the product with the position, one spare

Models whose name ends in "-iterative" allow the second way, "-given" the third alone. Where frequencies are given, an
implementation may use them as they are or compute them itself with powers: both are allowed, and the report says which.

One k for all pairs is too small: float32 exp-log recipes exceed ln(base) + 4 by 1.4 times, repeated multiplication exceeds
dim by 1.2 times at small dim. `tests/check/test_precision.py` holds both ends: no recipe leaves its bound, each comes near it.
"""

from typing import Any, NamedTuple

import numpy as np

from posref.vectors import models as golden
from posref.vectors.models import BF16, F16, F32, F64

__all__ = [
    "BF16",
    "BY_DTYPE",
    "F16",
    "F32",
    "F64",
    "MEANING",
    "MODELS",
    "Model",
    "by_dtype",
    "in_bounds",
    "phase_growth",
    "tolerance",
]

Array = Any  # numpy arrays; the specification functions are untyped
SECOND_ORDER = 1 + 2.0**-5


class Model(NamedTuple):
    """Coefficients of the bound, and the way in which angles are made."""

    c_phase: float
    c_amp: float
    c_out: float
    floor: float
    way: str


SUFFIXES = {"power": "", "repeated": "-iterative", "given": "-given"}

MODELS: dict[str, Model] = {
    f"{name}{suffix}": Model(*model, way) for way, suffix in SUFFIXES.items() for name, model in golden.MODELS.items()
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
    "f16-f32math": "float32 mathematics, rounded once to float16",
    "f16-all": "float32 angles; tables and products in float16",
    "bf16-f32math": "float32 mathematics, rounded once to bfloat16",
    "bf16-all": "float32 angles; tables and products in bfloat16",
}
MEANING |= {
    f"{name}{SUFFIXES[way]}": f"{text}; {words}"
    for name, text in MEANING.items()
    for way, words in (("repeated", "angles by repeated multiplication"), ("given", "frequencies as given"))
}


def by_dtype(dtype: str, *, given: bool) -> tuple[str, ...]:
    """The models for an output of this dtype, strictest first, with `given` frequencies or without; none for other dtypes.

    >>> by_dtype("float32", given=False), by_dtype("float32", given=True)
    (('f32', 'f32-iterative'), ('f32-given', 'f32'))
    """
    names = BY_DTYPE.get(dtype, ())
    if not given:
        return names
    return tuple(f"{name}{suffix}" for name in names if MODELS[name].way == "power" for suffix in ("-given", ""))


def phase_growth(frequencies: Array, way: str = "power") -> Array:
    """k of every pair, `(dim/2,)`: how many unit roundoffs its angle may be off, relative to the angle.

    >>> phase_growth(np.array([1.0, 0.01])).round(1)
    array([ 4. , 17.8])
    """
    exponent = np.abs(np.log(np.where(frequencies == 0, 1, np.abs(frequencies))))  # an angle of 0 has no error
    return {"power": 3 * exponent, "repeated": exponent + 3 * np.arange(len(frequencies)), "given": 0 * exponent}[way] + 4


def tolerance(amp: Array, phase: Array, expected: Array, model: str) -> Array:
    """The bound from stored conditions. `phase` already holds k.

    >>> round(float(tolerance(1.0, 0.0, 0.5, "bf16-f32math")), 6)
    0.002014
    """
    m = MODELS[model]
    return SECOND_ORDER * (m.c_phase * phase + m.c_amp * amp + m.c_out * np.abs(expected)) + m.floor


def in_bounds(error: Array, allowed: Array) -> Array:
    """error / allowed, entry by entry; no error is 0 of any bound, and an error where none is allowed is infinite.

    >>> in_bounds(np.array([1.0, 0.0, 1.0]), np.array([2.0, 0.0, 0.0]))
    array([0.5, 0. , inf])
    """
    return np.divide(error, allowed, out=np.where(error == 0, 0.0, np.inf), where=allowed > 0)
