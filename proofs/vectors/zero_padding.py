"""Zero padding: how a convolution without any position encoding comes to know the border."""

import itertools

import numpy as np

from posref.absolute import zero_padding
from proofs.absolute.zero_padding import definition
from proofs.vectors import *

SOURCES = ("Islam et al., arXiv 2001.08248", "PyTorch Conv1d: padding same, padding_mode circular")

CONVENTIONS = {
    "axes": "x is (batch, n, c_in), kernel (width, c_in, c_out), the result (batch, n or n - width + 1, c_out)",
    "kernel": "not turned around: y_i = sum_k x_{i + k - c} W_k",
    "alignment": "c = (width - 1) // 2 on the left, width // 2 on the right",
    "op convolve": "the convolution with params padding: zero, circular or valid",
}
REJECTED = (
    ("zero_padding/zero/w3/constant", "padding", {"padding": "same"}, "choice", "What is written at the ends must be said."),
)

INSTEAD = {"zero": "wrapped", "circular": "zeros", "valid": "padded"}


def vectors():
    for padding, width in itertools.product(zero_padding.PADDINGS, (3, 4)):
        yield _case(padding, "integers", _integers((2, 6, 2), 7), _integers((width, 2, 3), 5))
    for padding in ("zero", "circular"):
        yield _case(padding, "constant", np.ones((1, 5, 1), dtype=int), np.array([[[1]], [[2]], [[4]]]))


def _integers(shape, modulus):
    n = np.arange(np.prod(shape))
    values = (3 * n * n + n + 1) % modulus - modulus // 2
    return np.where(values == 0, 1, values).reshape(shape)


def _case(padding, probe, x, kernel):
    flags = [INSTEAD[padding]]
    if probe != "constant" or padding == "zero":
        flags.append("flipped")
    if probe != "constant" and padding != "valid":
        flags += ["causal"] + ["left_heavy"] * (len(kernel) % 2 == 0)
    id, tensors = f"zero_padding/{padding}/w{len(kernel)}/{probe}", {"x": x, "kernel": kernel}
    expected, comment = [definition(each.tolist(), kernel.tolist(), padding) for each in x], "Integers, exact in every format."
    return case(id, "convolve", {"padding": padding}, tensors, expected, kills=" ".join(flags), comment=comment)
