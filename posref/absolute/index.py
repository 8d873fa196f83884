r"""Index: the position itself, as a number.

The index is the simplest way to tell a model the order of its tokens. The other encodings repair its faults.

Also called: counting, normalized index.

Definition. The token at position i of a sequence of n tokens gets one feature p_i:

    encode               p_i = i
    encode_normalized    p_i = i / n          denominator="length"
    encode_normalized    p_i = i / (n - 1)    denominator="length - 1"

Symbols.

    i (...)       positions, in tokens
    n             the number of tokens, `length` in the code
    p (..., 1)    one feature, which `merge.concatenate` appends to the embedding

Conventions. 0-based. The index grows without bound. The normalized index lies in [0, 1) or in [0, 1], but the number of a
position, and the step between neighbors, change with the length. The denominator has no default: only "length - 1" reaches 1,
and it is 0/0 for a single token.

Example. Five tokens, normalized in both ways:

>>> import numpy as np
>>> for denominator in DENOMINATORS:
...     print(encode_normalized(np.arange(5), 5, denominator=denominator)[:, 0])
[0.  0.2 0.4 0.6 0.8]
[0.   0.25 0.5  0.75 1.  ]

Where implementations differ.

    what | who | value | version | source
    patch i in a row of n | transformers' DINOv3 | its center, 2 (i + 1/2) / n - 1 | 5.23.0
      | modeling_dinov3_vit.py get_patches_center_coordinates

References. The first trials that motivate the sinusoid in most introductions; no paper of their own.
"""

from typing import Literal, get_args

from posref import _require
from posref._contract import Array, Count, Numbers, contract, finite

Denominator = Literal["length", "length - 1"]
DENOMINATORS = get_args(Denominator)


@contract
def encode(positions: Numbers[Array, "..."]) -> Numbers[Array, "... 1"]:
    """p_i = i as a feature: `positions.shape + (1,)`, dtype of `positions`.

    TypeError if `positions` is not an array of numbers.

    >>> import numpy as np
    >>> encode(np.array([0, 1, 2]))
    array([[0],
           [1],
           [2]])
    """
    return positions[..., None]


@contract
def encode_normalized(
    positions: Numbers[Array, "...", finite], length: Count, *, denominator: Denominator
) -> Numbers[Array, "... 1"]:
    """p_i = i / length or i / (length - 1): `positions.shape + (1,)`.

    ValueError for a position outside 0 .. length - 1, an unknown denominator, or a single token with `"length - 1"`.

    >>> import numpy as np
    >>> encode_normalized(np.array([0, 1, 4]), 5, denominator="length")[:, 0]
    array([0. , 0.2, 0.8])
    >>> encode_normalized(np.array([0, 1, 4]), 5, denominator="length - 1")[:, 0]
    array([0.  , 0.25, 1.  ])
    """
    _require.within("index.encode_normalized", "positions", positions, length)
    if length == 1 and denominator == "length - 1":
        raise ValueError('index.encode_normalized: length is 1, and i / (length - 1) is 0/0; use denominator="length"')
    return positions[..., None] / (length if denominator == "length" else length - 1)
