"""Pairing: which two features form a pair.

    layout="interleaved"   pair t is (x[2t], x[2t + 1])        RoFormer, Llama's own code, GPT-J; "traditional", "NORM"
    layout="half"          pair t is (x[t], x[t + dim/2])      transformers, GPT-NeoX, flash-attn's layer; "rotate_half"

`t = 0 .. dim/2 - 1`. Only this module knows the layouts; rotations and sinusoids use the pairs.
"""

from typing import Literal

import numpy as np

from posref._contract import Anything, Array, Even, Integers, contract

Layout = Literal["interleaved", "half"]
LAYOUTS = ("interleaved", "half")


@contract(x="features turn in pairs")
def split(
    x: Anything[Array, "... 2*pairs"], layout: Layout
) -> tuple[Anything[Array, "... pairs"], Anything[Array, "... pairs"]]:
    """First and second members of every pair: two arrays `(..., dim/2)` from `x` `(..., dim)`.

    TypeError if `x` is not an array, ValueError if its width is odd or the layout unknown.

    >>> split(np.arange(4), "half")
    (array([0, 1]), array([2, 3]))
    """
    if layout == "interleaved":
        return x[..., 0::2], x[..., 1::2]
    half = x.shape[-1] // 2
    return x[..., :half], x[..., half:]


@contract
def join(
    first: Anything[Array, "... pairs"], second: Anything[Array, "=first"], layout: Layout
) -> Anything[Array, "... 2*pairs"]:
    """The inverse of `split`: `(..., dim)` from two arrays `(..., dim/2)` of one shape, or ValueError.

    >>> join(np.array([0, 1]), np.array([2, 3]), "interleaved")
    array([0, 2, 1, 3])
    """
    if layout == "interleaved":
        return np.stack([first, second], axis=-1).reshape(*first.shape[:-1], 2 * first.shape[-1])
    return np.concatenate([first, second], axis=-1)


@contract
def indices(dim: Even, layout: Layout) -> tuple[Integers[Array, "dim/2"], Integers[Array, "dim/2"]]:
    """The indices of the two members of every pair: two integer arrays `(dim/2,)`.

    >>> indices(6, "half")
    (array([0, 1, 2]), array([3, 4, 5]))
    """
    return split(np.arange(dim), layout)
