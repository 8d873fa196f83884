"""Convolutions that see the border: the functions to check, and the mistakes that implementations make."""

import numpy as np

from posref.absolute import zero_padding
from posref.ops import Mistake, missing, using
from posref.ops.probe import painted

convolve = zero_padding.convolve


ARRAYS = {"x": lambda s: painted((s.batch, s.n_key, 3), 1), "kernel": lambda s: painted((4, 3, 2), 2)}


def _left(of):
    """Padding with `of(width)` rows on the left, and the rest of the width - 1 rows on the right."""

    def wrong(f, a):
        width = a.kernel.shape[0]
        left = of(width)
        if a.padding == "circular":
            return f(**a | {"x": np.roll(a.x, left - (width - 1) // 2, axis=-2)})
        if a.padding == "valid":
            missing()
        nothing = 0 * a.x[..., :1, :]
        padded = np.concatenate([nothing.repeat(left, axis=-2), a.x, nothing.repeat(width - 1 - left, axis=-2)], axis=-2)
        return f(**a | {"x": padded, "padding": "valid"})

    return wrong


def _padding(asked, used):
    return using(padding=lambda a: used if a.padding == asked else missing())


def _padded(mode):
    """Padding in which rows beyond the ends are made from rows inside."""

    def wrong(f, a):
        width = a.kernel.shape[0]
        if a.padding != "zero" or a.x.shape[-2] <= width // 2:
            missing()
        beyond = [(0, 0)] * (a.x.ndim - 2) + [((width - 1) // 2, width // 2), (0, 0)]
        return f(**a | {"x": np.pad(a.x, beyond, mode=mode), "padding": "valid"})

    return wrong


MISTAKES = {
    "flipped": Mistake(using(kernel=lambda a: a.kernel[::-1])).words("""
        W_{width - 1 - k}: the kernel is reversed
        Left and right change places.
        Correlate: entry k of the kernel meets x_{i + k - c}."""),
    "wrapped": Mistake(_padding("zero", "circular")).words("""
        circular padding: the ends of the sequence are neighbors
        Nothing is known of the border.
        Pad both ends with zeros."""),
    "zeros": Mistake(_padding("circular", "zero")).words("""
        zero padding: rows beyond the ends are zero
        The border shows.
        Take the rows beyond one end from the other: x_{i + n} = x_i."""),
    "left_heavy": Mistake(_left(lambda width: width // 2)).words("""
        width // 2 on the left: an even width has its extra row on the left
        The result is shifted by one.
        Pad (width - 1) // 2 on the left and width // 2 on the right."""),
    "causal": Mistake(_left(lambda width: width - 1)).words("""
        width - 1 on the left: all padding is on the left
        The result is shifted.
        Pad (width - 1) // 2 on the left and width // 2 on the right."""),
    "padded": Mistake(_padding("valid", "zero")).words("""
        n rows: a convolution without padding ('valid') is padded
        The result is too long.
        Leave the ends as they are: n - width + 1 rows."""),
}

FURTHER = {
    "anticausal": Mistake(_left(lambda width: 0)).words("""
        nothing on the left: all padding is on the right
        The result is shifted.
        Pad (width - 1) // 2 on the left and width // 2 on the right."""),
    **{
        mode: Mistake(_padded(mode)).words(f"""
            rows beyond the ends are {words}, not zeros
            Little is known of the border.
            Pad both ends with zeros.""")
        for mode, words in (("edge", "copies of the first and the last row"), ("reflect", "mirrored at the ends"))
    },
}

SCORES = "position comes from the border of a convolution"


def _head(t):
    kernel = t.parameter(3, t.dim, t.dim)
    return t.attended(*t.projected(zero_padding.convolve(t.x, kernel, padding="zero")))
