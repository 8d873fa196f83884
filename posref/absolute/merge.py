r"""Merging: how an absolute encoding enters the token embedding.

An absolute encoding is one more vector per token. Almost every model adds it to the embedding; it can also be multiplied or
appended.

Also called: addition, multiplicative, concatenation.

Definition. For the embedding x_i of token i and its encoding p_i, of the same width for the first three:

    add            x_i + p_i
    multiply       x_i p_i          convention="paper", feature by feature
    multiply       x_i (1 + p_i)    convention="released"
    concatenate    [x_i ; p_i]

Symbols.

    x (..., n, d)                     token embeddings
    p (..., n, d) or (..., n, d_p)    encodings, the latter for `concatenate`

Conventions. Nothing is scaled here: Vaswani et al. multiply x by sqrt(d) first, and that is the caller's line to write. With
the sinusoid the paper's product deletes the sine half of token 0, since p_0 = (0, 1, 0, 1, ..).

Example. One token, and the sinusoid of position 0:

>>> x, p = np.array([[3.0, 2.0]]), np.array([[0.0, 1.0]])
>>> print(add(x, p), multiply(x, p, convention="paper"), multiply(x, p, convention="released"), concatenate(x, p))
[[3. 3.]] [[0. 2.]] [[3. 4.]] [[3. 2. 0. 1.]]

Where implementations differ.

    what | who | value | version | source
    multiplication | Su's text | x p | - | kexue.fm/archives/8130
    multiplication | bert4keras, merge_mode="mul" | x (1 + p) | 0.11.5 | layers.py PositionEmbedding

References. Su, kexue.fm/archives/8130.
"""

from typing import Literal, get_args

import numpy as np

from posref._contract import Array, Numbers, contract, kept

Convention = Literal["paper", "released"]
CONVENTIONS = get_args(Convention)


@contract
def add(x: Numbers[Array, "... d"], p: Numbers[Array, "#... d"]) -> Numbers[Array, "=x"]:
    """x + p: `(..., n, d)`. ValueError for another width, or a p that does not broadcast to x.

    >>> add(np.array([[1.0, 2.0]]), np.array([[0.0, 1.0]]))
    array([[1., 3.]])
    """
    return x + p


@contract
def multiply(x: Numbers[Array, "... d"], p: Numbers[Array, "#... d"], *, convention: Convention) -> Numbers[Array, "=x"]:
    """x p (`"paper"`) or x (1 + p) (`"released"`, bert4keras): `(..., n, d)`. ValueError as in `add`.

    >>> multiply(np.array([[3.0, 2.0]]), np.array([[0.0, 1.0]]), convention="paper")
    array([[0., 2.]])
    >>> multiply(np.array([[3.0, 2.0]]), np.array([[0.0, 1.0]]), convention="released")
    array([[3., 4.]])
    """
    return x * p if convention == "paper" else x * (1 + p)


@contract
def concatenate(x: Numbers[Array, "... d", kept], p: Numbers[Array, "#... d_p", kept]) -> Numbers[Array, "... d+d_p"]:
    """[x ; p]: `(..., n, d + d_p)`. ValueError if the leading axes of `p` do not broadcast to those of `x`.

    >>> concatenate(np.array([[1.0, 2.0]]), np.array([[0.0]]))
    array([[1., 2., 0.]])
    """
    p = np.broadcast_to(p, (*x.shape[:-1], p.shape[-1]))
    return np.concatenate([x, p], axis=-1)
