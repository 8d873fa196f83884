"""Forgetting attention: the sum of the logarithms of the gates in between."""

import mpmath
import numpy as np

from proofs.relative.forgetting import definition, log_gate
from proofs.vectors import *
from proofs.vectors import BITS

SOURCES = ("Lin et al., Forgetting Transformer, arXiv 2503.02130, section 3",)

CONVENTIONS = {
    "axes": "log_gates is (batch, heads, n), a bias (batch, heads, n, n), or (batch, heads, 1, n) where form is key",
    "form": "difference: c_i - c_j, the sum of log_gates over j + 1 .. i; key: -c_j",
    "op bias": "from the logarithms of the gates",
    "op log_sigmoid": "-ln(1 + exp(-x))",
}
REJECTED = (
    ("forgetting/key/h3/painted", "no-form", {"form": None}, "missing", "c_i - c_j, or -c_j, which is the same after softmax."),
)


def vectors():
    painted_gates = np.concatenate([4 * painted((2, 3, 4), 1), [[[-96.0], [0.5], [96.0]]] * 2], axis=-1)
    for probe, x in (("h3/log-sigmoid", painted_gates), ("any/large", np.array([[1000.0, -1000, 100, -100, 0.5]]))):
        with mpmath.workprec(BITS + 1500):  # the bits of 1 + exp(-1000)
            gates = np.vectorize(lambda each: log_gate(mpmath.mpf(each), mpmath), otypes=[object])(x)
        # roundings: the exponential, 1 plus the exponential, the logarithm, the difference of two terms
        cond, kills = terms(5, gates) + terms(4, np.minimum(1, abs(gates)) * 0 + 1), "gate_not_logarithm gate_of_the_negative"
        yield case(f"forgetting/gates/{probe}", "log_sigmoid", {}, {"x": x}, gates, cond, kills)
    for form in ("difference", "key"):
        yield _bias(form)


def _bias(form):
    log_gates = -abs(painted((2, 3, 6), 2))
    exact, n = numbers(log_gates), 6
    sums = np.cumsum(exact, axis=-1)
    expected, size = -sums[..., None, :], abs(sums)[..., None, :]
    if form == "difference":
        cells = [[[[definition(list(head), i, j) for j in range(n)] for i in range(n)] for head in text] for text in exact]
        expected, size = np.array(cells, dtype=object), size + np.swapaxes(size, -1, -2)
    kills = "sign key_gate_included not_summed summed_over_heads gates_of_the_first_head"
    kills += " both_gates_included" * (form == "difference")
    params, tensors = {"form": form}, {"log_gates": log_gates}
    return case(f"forgetting/{form}/h3/painted", "bias", params, tensors, expected, terms(n, size), kills)
