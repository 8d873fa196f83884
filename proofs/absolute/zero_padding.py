"""Zero padding: how a convolution without position encoding knows where the border is."""

import itertools

import numpy as np

from posref.absolute import zero_padding
from proofs.kit import *

ROUNDS = {"_pad": "pinned"}

M = size("m")
OF = [zero_padding.convolve, zero_padding._pad]
WIDTHS = (1, 2, 3, 4)


def definition(x, kernel, padding, *, left=None):
    """y_i = sum_k x_{i + k - c} W_k with c = (width - 1) // 2; rows outside are 0, or those at i modulo n, or never read."""
    width, n = len(kernel), len(x)
    left = (width - 1) // 2 if left is None else left
    starts = range(n - width + 1) if padding == "valid" else range(-left, n - left)

    def row(j):
        return x[j % n] if padding == "circular" or 0 <= j < n else [0] * len(x[0])

    return [
        [sum(row(s + k)[a] * kernel[k][a][b] for k in range(width) for a in range(len(x[0]))) for b in range(len(kernel[0][0]))]
        for s in starts
    ]


def convolve(x, kernel, padding):
    return zero_padding.convolve(x, kernel, padding=padding)


# what it is


@theorem(of=OF, sizes="batch 2, n = 5, widths 1 .. 4, 2 and 3 channels")
def pinned():
    """y_i = sum_k x_{i + k - c} W_k for each padding; valid has n - width + 1 rows, the others n."""
    x = symbols("x", 2, 5, 2)
    for width, padding in itertools.product(WIDTHS, zero_padding.PADDINGS):
        kernel = symbols("w", width, 2, 3)
        got = convolve(x, kernel, padding)
        for b in range(2):
            prove_equal(got[b], definition(x[b], kernel, padding), mention=kernel)


@pinned.claim("Deep learning's convolution is a correlation: y_i = sum_k x_{i + k - c} W_k.")
def kernel_is_turned_around():
    """y_i = sum_k x_{i - k + c} W_k, a convolution in the sense of mathematics."""
    x, kernel = symbols("x", 4, 1), symbols("w", 3, 1, 1)
    prove_equal(convolve(x, kernel, "zero"), definition(x, kernel[::-1], "zero"))


@pinned.control
def even_widths_reach_to_the_left():
    """Of two taps the first reads the entry before."""
    x, kernel = symbols("x", 4, 1), symbols("w", 2, 1, 1)
    prove_equal(convolve(x, kernel, "zero"), definition(x, kernel, "zero", left=1))


@theorem(of=OF, sizes="all n; widths 1 .. 4, 2 and 3 channels")
def pinned_inside():
    """Zero padding and valid are one sum over the kernel away from the border, for any n of at least the width."""
    for width in WIDTHS:
        x, kernel, c = sized("x", M + width - 1, 2), symbols("w", width, 2, 3), (width - 1) // 2
        i = index(M)
        for b in range(3):
            expected = sum(x.at(i + k, a) * kernel[k, a, b].e for k in range(width) for a in range(2))
            prove_equal([convolve(x, kernel, "valid").at(i, b)], [expected])
            prove_equal([convolve(x, kernel, "zero").at(i + c, b)], [expected])


@pinned_inside.control
def zero_padding_begins_with_the_window():
    """Row 0 of zero padding is row 0 of valid."""
    x, kernel = symbols("x", 4, 1), symbols("w", 3, 1, 1)
    prove_equal(convolve(x, kernel, "zero")[0], convolve(x, kernel, "valid")[0])


# what it knows of position


@theorem(of=OF, sizes="n = 5, 6, widths 1 .. 4 and 7, all turns", as_written="runs")
def circular_is_equivariant():
    """Turning the sequence turns the result of a circular convolution: it knows no position."""
    for n, width in itertools.product((5, 6), (*WIDTHS, 7)):
        x, kernel = symbols("x", n, 2), symbols("w", width, 2, 1)
        y = convolve(x, kernel, "circular")
        for turn in range(1, n):
            prove_equal(convolve(np.roll(x, turn, axis=0), kernel, "circular"), np.roll(y, turn, axis=0))


@circular_is_equivariant.claim("Circular padding is; zero padding is not, at the border.")
def zero_padding_is_equivariant():
    """So does zero padding."""
    x, kernel = symbols("x", 5, 1), symbols("w", 3, 1, 1)
    prove_equal(convolve(np.roll(x, 1, axis=0), kernel, "zero"), np.roll(convolve(x, kernel, "zero"), 1, axis=0))


@theorem(of=OF, sizes="n = 5, 6, widths 1 .. 4", as_written="the code computes the difference as it is written")
def zero_padding_differs_at_the_border_alone():
    """Circular minus zero is what the kernel reads beyond the border: nothing, but in the first c and last width // 2 rows."""
    for n, width in itertools.product((5, 6), WIDTHS):
        x, kernel, c = symbols("x", n, 2), symbols("w", width, 2, 1), (width - 1) // 2
        gap = convolve(x, kernel, "circular") - convolve(x, kernel, "zero")
        for i in range(n):
            beyond = [k for k in range(width) if not 0 <= i + k - c < n]
            premise(bool(beyond) == (i < c or i >= n - width // 2), "the rows within reach of the border")
            prove_equal(gap[i], sum((x[(i + k - c) % n] @ kernel[k] for k in beyond), start=array([0])))


@zero_padding_differs_at_the_border_alone.control
def zero_padding_differs_nowhere():
    """Padding with zeros adds nothing, so the first row is the same too."""
    x, kernel = symbols("x", 5, 1), symbols("w", 3, 1, 1)
    prove_equal(convolve(x, kernel, "circular")[0], convolve(x, kernel, "zero")[0])


@theorem(of=OF, sizes="n = 5, width 3; n = 6, widths 1 .. 4")
def constant_input_shows_the_border():
    """A constant c gives c (w_1 + w_2), c (w_0 + w_1 + w_2), .., c (w_0 + w_1) with zero padding: the border is seen where the
    content says nothing. Circular and valid convolutions give a constant."""
    c, w = symbol("c"), symbols("w", 3, 1, 1)
    whole, first, last = c * (w[0] + w[1] + w[2]), c * (w[1] + w[2]), c * (w[0] + w[1])
    prove_equal(convolve(array([[c]] * 5), w, "zero"), [first[0], whole[0], whole[0], whole[0], last[0]])
    for width in WIDTHS:
        w, left = symbols("w", width, 1, 1), (width - 1) // 2
        got = convolve(array([[c]] * 6), w, "zero")
        read = lambda i, width=width, left=left: range(max(0, left - i), min(width, 6 + left - i))
        prove_equal(got[:, 0], [c * sum(w[k, 0, 0] for k in read(i)) for i in range(6)])
        for padding in ("circular", "valid"):
            flat = convolve(array([[c]] * 6), w, padding)
            prove_equal(flat, [c * w.sum(axis=0)[0]] * len(flat), mention=w)


@constant_input_shows_the_border.claim("Zero padding shows the border even of a constant.")
def constant_input_stays_constant():
    """Zero padding gives a constant as well."""
    got = convolve(array([[symbol("c")]] * 5), symbols("w", 3, 1, 1), "zero")
    prove_equal(got[0], got[2])


@theorem(of=OF, sizes="n = 7, width 3, one and two layers", values="all weights are 1, an example in which the border is seen")
def layers_carry_the_border_inwards():
    """A constant through L such layers differs from the middle in the first L and the last L rows, and nowhere else."""
    one, w = array([[1]] * 7), symbols("w", 3, 1, 1)
    for layers in (1, 2):
        y = one
        for _ in range(layers):
            y = convolve(y, w, "zero")
        middle = y[3, 0]
        total = w.sum(axis=0)[0, 0]
        prove_equal([middle], [total**layers])
        for i in range(layers, 7 - layers):
            prove_equal([y[i, 0]], [middle])
        for i in range(layers):
            unlike = [(v.e - middle.e).subs({x.e: 1 for x in w.ravel()}) for v in (y[i, 0], y[6 - i, 0])]
            prove_that(all(v < 0 for v in unlike), f"rows {i} and {6 - i} differ for a kernel of ones")


@layers_carry_the_border_inwards.control
def two_layers_see_no_further():
    """With two layers row 1 is like the middle."""
    w = symbols("w", 3, 1, 1)
    y = convolve(convolve(array([[1]] * 5), w, "zero"), w, "zero")
    prove_equal(y[1], y[2])


@theorem(of=OF, sizes="all n; widths 1 .. 4, 2 and 3 channels", as_written="runs")
def valid_is_equivariant_where_defined():
    """The valid convolution of a sequence without its first row is that of the sequence, without its first row."""
    for width in WIDTHS:
        x, kernel = sized("x", M + width, 2), symbols("w", width, 2, 3)
        cut, whole, i = convolve(x[1:], kernel, "valid"), convolve(x, kernel, "valid"), index(M)
        prove_equal([cut.at(i, b) for b in range(3)], [whole.at(i + 1, b) for b in range(3)])


@valid_is_equivariant_where_defined.control
def zero_padding_forgets_what_was_cut():
    """The same with zero padding: the row before the cut does not matter."""
    x, kernel = symbols("x", 4, 1), symbols("w", 3, 1, 1)
    prove_equal(convolve(x[1:], kernel, "zero"), convolve(x, kernel, "zero")[1:])
