"""What each op of complex_order.json is in posref."""

import numpy as np

from posref.absolute import complex_order


def _encode(case, prefix=""):
    names = ("positions", "amplitude", "frequency", "phase")
    return complex_order.encode(*(case.tensors[prefix + name] for name in names))


def encode(case):
    g = _encode(case)
    return np.stack([g.real, g.imag], axis=-1)


def scores(case):
    s = complex_order.scores(_encode(case, "q_"), _encode(case, "k_"))
    assert not s.imag.any()
    return s.real


def released_frequencies(case):
    return complex_order.released_frequencies(case.tensors["words"], case.params["dim"])
