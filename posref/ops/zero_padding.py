"""Convolutions that see the border: what an implementation can be asked for, and how it goes wrong."""

import numpy as np

from posref.absolute import zero_padding
from posref.ops import missing, using, with_words
from posref.ops.probe import painted

convolve = zero_padding.convolve


ARRAYS = {
    "x": lambda s: painted((s.batch, s.n_key, 3), 1),
    "kernel": lambda s: painted((4, 3, 2), 2),
}


def _left(of):
    """`of(width)` rows of padding on the left, the rest of the width - 1 on the right."""

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


MISTAKES = with_words(
    __name__,
    flipped=using(kernel=lambda a: a.kernel[::-1]),
    wrapped=_padding("zero", "circular"),
    zeros=_padding("circular", "zero"),
    left_heavy=_left(lambda width: width // 2),
    causal=_left(lambda width: width - 1),
    padded=_padding("valid", "zero"),
)

SCORES = "position comes from the border of a convolution"


def _head(t):
    kernel = t.parameter(3, t.dim, t.dim)
    return t.attended(*t.projected(zero_padding.convolve(t.x, kernel, padding="zero")))
