import cmath

import mpmath
import numpy as np
import pytest


def partner(t, width, layout):
    """Where pair t stands, written out here so that no test asks posref.pairing about itself."""
    return {"interleaved": (2 * t, 2 * t + 1), "half": (t, t + width // 2)}[layout]


@pytest.fixture(scope="session")
def turned():
    """One vector turned to one position, from the definition: e^{i m theta} pair by pair."""

    def turn(x, position, theta, layout):
        out = [complex(value).real for value in x]
        for t, angle in enumerate(theta):
            i, j = partner(t, 2 * len(theta), layout)
            z = complex(x[i], x[j]) * cmath.exp(1j * float(position) * float(angle))
            out[i], out[j] = z.real, z.imag
        return np.array(out)

    return turn


class Digits:
    """A number of 50 digits that numpy can calculate with in arrays of objects."""

    __slots__ = ("value",)
    is_positive = None  # how a symbol tells posref that it is one number

    def __init__(self, value):
        self.value = value.value if isinstance(value, Digits) else mpmath.mpf(value)

    def _apply(self, other, operation):
        if isinstance(other, np.ndarray):
            return NotImplemented
        with mpmath.workdps(50):
            return Digits(operation(self.value, Digits(other).value))

    def __add__(self, other):
        return self._apply(other, lambda a, b: a + b)

    def __sub__(self, other):
        return self._apply(other, lambda a, b: a - b)

    def __mul__(self, other):
        return self._apply(other, lambda a, b: a * b)

    def __truediv__(self, other):
        return self._apply(other, lambda a, b: a / b)

    def __rsub__(self, other):
        return Digits(other) - self

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self):
        return self * -1

    def __lt__(self, other):
        return self.value < Digits(other).value

    def __gt__(self, other):
        return self.value > Digits(other).value

    def __ge__(self, other):
        return self.value >= Digits(other).value

    def __le__(self, other):
        return self.value <= Digits(other).value

    def __float__(self):
        return float(self.value)

    def cos(self):
        with mpmath.workdps(50):
            return Digits(mpmath.cos(self.value))

    def sin(self):
        with mpmath.workdps(50):
            return Digits(mpmath.sin(self.value))

    def exp(self):
        with mpmath.workdps(50):
            return Digits(mpmath.exp(self.value))


@pytest.fixture(scope="session")
def digits():
    """An array of floats as an array of 50-digit numbers, exactly."""

    def convert(values):
        values = np.asarray(values)
        out = np.empty(values.shape, dtype=object)
        for index in np.ndindex(values.shape):
            out[index] = Digits(values[index].item())
        return out

    return convert
