"""Short convolution: its definition, a text in chunks, and what it shows about the order of tokens."""

from itertools import pairwise

import numpy as np

from posref.absolute import zero_padding
from posref.state import convolution
from proofs.kit import *

WIDTHS = (1, 2, 4)


def definition(x, kernel, i, c):
    """y_ic = sum_t w_ct x_{i - (width - 1) + t, c}; rows before the first are 0. Fu et al., section 3."""
    width = len(kernel[c])
    return sum(kernel[c][t] * x[i - (width - 1) + t][c] for t in range(width) if i - (width - 1) + t >= 0)


def numbers(x):
    return [[expression(each) for each in row] for row in x]


@theorem(of=[convolution.causal], sizes="n = 1, 5, widths 1, 2, 4, two features")
def pinned():
    """y is the sum over the last `width` tokens, feature by feature, with the bias; the state is the last width - 1 rows."""
    for n in (1, 5):
        for width in WIDTHS:
            x, kernel, b, s = symbols("x", n, 2), symbols("w", 2, width), symbols("b", 2), symbols("s", width - 1, 2)
            plain, whole = convolution.causal(x, kernel), convolution.causal(x, kernel, b, state=s)
            rows = [*numbers(s), *numbers(x)]
            for i, c in np.ndindex(n, 2):
                prove_equal([plain.output[i, c]], [definition(numbers(x), numbers(kernel), i, c)], mention=[kernel[c, -1]])
                stated = definition(rows, numbers(kernel), i + width - 1, c) + b[c].e
                prove_equal([whole.output[i, c]], [stated], mention=[b[c], x[i, c]])
            prove_that(whole.state.shape == (width - 1, 2), "width - 1 rows")
            if width > 1:
                prove_equal(whole.state, rows[n:])


GIVEN = {"x": symbols("x", 3, 2), "kernel": symbols("w", 2, 3), "bias": symbols("b", 2), "state": symbols("s", 2, 2)}
pinned.control_by("convolution.convolve", "kernel_turned_around", **GIVEN)
pinned.control_by("convolution.convolve", "one_token_late", **GIVEN)
pinned.control_by("convolution.convolve", "state_one_row_ahead", **GIVEN)
pinned.control_by("convolution.convolve", "state_in_reverse", **GIVEN)


@theorem(of=[convolution.causal], sizes="n = 5, width 3, one feature, every cut", as_written="runs")
def any_split_is_the_whole():
    """A text that is cut anywhere gives the same, if the rows are handed on: also token by token."""
    x, kernel, s = symbols("x", 5, 1), symbols("w", 1, 3), symbols("s", 2, 1)
    whole = convolution.causal(x, kernel, state=s)
    for ends in ((0, 1, 5), (0, 2, 5), (0, 3, 5), (0, 4, 5), (0, 1, 2, 3, 4, 5)):
        state, parts = s, []
        for a, b in pairwise(ends):
            part, state = convolution.causal(x[a:b], kernel, state=state)
            parts.append(part)
        prove_equal(np.concatenate(parts), whole.output)
        prove_equal(state, whole.state)


@any_split_is_the_whole.control
def the_rows_need_not_be_handed_on():
    """The second part begins with zeros."""
    x, kernel = symbols("x", 2, 1), symbols("w", 1, 2)
    parts = [convolution.causal(x[t : t + 1], kernel).output for t in range(2)]
    prove_equal(np.concatenate(parts), convolution.causal(x, kernel).output)


@theorem(
    of=[convolution.causal, zero_padding.convolve, zero_padding._pad], sizes="n = 5, width 3, two features", as_written="runs"
)
def zero_padding_on_one_side():
    """It is the valid convolution of `zero_padding` with width - 1 zero rows in front, and a diagonal matrix for each tap; its
    state is the last width - 1 rows."""
    x, kernel = symbols("x", 5, 2), symbols("w", 2, 3)
    taps = np.stack([np.eye(2, dtype=int) * kernel[:, t] for t in range(3)])
    padded = np.concatenate([np.zeros((2, 2), dtype=int), x])
    valid = zero_padding.convolve(padded, taps, padding="valid")
    made = convolution.causal(x, kernel)
    prove_equal(made.output, valid, mention=[kernel[0, 0]])
    prove_equal(made.state, x[-2:])


@zero_padding_on_one_side.control
def zero_padding_in_the_middle():
    """It is the zero padding of `zero_padding`, which reads the future too."""
    x, kernel = symbols("x", 4, 1), symbols("w", 1, 3)
    prove_equal(convolution.causal(x, kernel).output, zero_padding.convolve(x, kernel.T[..., None], padding="zero"))


@theorem(of=[convolution.causal], sizes="n = 4, width 3, two features")
def the_gradient_is_the_text_backwards():
    """sum_i u_i . y_i is the product of all rows, state and text, with u convolved from the last token on and width - 1 rows of
    zeros behind it: so the same kernel gives the gradient of the text, and of the rows before it."""
    x, kernel, s, u = symbols("x", 4, 2), symbols("w", 2, 3), symbols("s", 2, 2), symbols("u", 4, 2)
    read = convolution.causal(x, kernel, state=s).output
    back = convolution.causal(np.concatenate([u[::-1], 0 * s]), kernel).output[::-1]
    prove_equal([(u * read).sum()], [(np.concatenate([s, x]) * back).sum()], mention=[s[0, 1], x[3, 0], kernel[1, 0]])


@the_gradient_is_the_text_backwards.control
def the_kernel_is_turned_too():
    """So it is with the kernel turned around."""
    x, kernel, u = symbols("x", 2, 1), symbols("w", 1, 2), symbols("u", 2, 1)
    back = convolution.causal(u[::-1], kernel[:, ::-1]).output[::-1]
    prove_equal([(u * convolution.causal(x, kernel).output).sum()], [(x * back).sum()])


# what it can tell


@theorem(of=[convolution.causal], sizes="n = 6, width 3, one feature", as_written="runs")
def it_sees_width_tokens():
    """Token i depends on the last `width` tokens and on nothing else: texts that agree there have equal outputs, wherever they
    stand. So it tells the order within the width, the start of a text up to width - 1 tokens on, and no more."""
    x, other, kernel = symbols("x", 6, 1), symbols("y", 3, 1), symbols("w", 1, 3)
    changed = convolution.causal(np.concatenate([other, x[3:]]), kernel).output
    prove_equal(convolution.causal(x, kernel).output[5], changed[5])
    prove_equal(convolution.causal(x[3:], kernel).output[2], changed[5])


@it_sees_width_tokens.claim("The order within the width counts, and nothing before it.")
def order_does_not_matter():
    """Exchanging the two tokens before changes nothing."""
    x, kernel = symbols("x", 3, 1), symbols("w", 1, 3)
    exchanged = x[np.array([1, 0, 2])]
    prove_equal(convolution.causal(exchanged, kernel).output[2], convolution.causal(x, kernel).output[2])


@it_sees_width_tokens.control
def equal_tokens_show_their_place():
    """Among equal tokens the place can be read off beyond the start."""
    one, kernel = array([[1]] * 5), symbols("w", 1, 2)
    y = convolution.causal(one, kernel).output
    prove_equal(y[0], y[4])
