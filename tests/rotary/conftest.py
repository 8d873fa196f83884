import cmath

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
