r"""Index: the position itself, as a number.

Definition. For the token at position i of a sequence of `length` tokens:

    encode              p_i = i
    encode_normalized   p_i = i / length        (denominator="length")
                        p_i = i / (length - 1)  (denominator="length - 1")

Symbols. positions (...) in tokens; p (..., 1): one feature, which `merge.concatenate` appends to the embedding.

Conventions. 0-based. The index grows without bound; the normalized one lies in [0, 1) or in [0, 1], but the value of a
position and the step between neighbors change with the length of the sequence.

Where implementations differ. The denominator, hence a required keyword: only "length - 1" reaches 1, and it is 0/0 for a
single token. DINOv3 (transformers 5.23.0) centers its grid coordinates instead: 2 (i + 1/2) / length - 1.

Properties. proofs/absolute/index.py: pinned; and what is asked of an encoding, decided for this one and ten others:
length_independent (not the normalized one), content_independent, unique (the normalized one within one length alone), small
(the index grows without bound).

References. The first trials that motivate the sinusoid in most introductions; no paper of their own.
"""

from posref import _require

DENOMINATORS = ("length", "length - 1")


def encode(positions):
    """p_i = i as a feature: `positions.shape + (1,)`, dtype of `positions`.

    TypeError if `positions` is not an array of numbers.

    >>> import numpy as np
    >>> encode(np.array([0, 1, 2]))
    array([[0],
           [1],
           [2]])
    """
    _require.array("index.encode", "positions", positions)
    return positions[..., None]


def encode_normalized(positions, length, *, denominator):
    """p_i = i / length or i / (length - 1): `positions.shape + (1,)`.

    ValueError for a position outside 0 .. length - 1, an unknown denominator, or a single token with `"length - 1"`.

    >>> import numpy as np
    >>> encode_normalized(np.array([0, 1, 4]), 5, denominator="length")[:, 0]
    array([0. , 0.2, 0.8])
    >>> encode_normalized(np.array([0, 1, 4]), 5, denominator="length - 1")[:, 0]
    array([0.  , 0.25, 1.  ])
    """
    _require.array("index.encode_normalized", "positions", positions)
    _require.count("index.encode_normalized", "length", length)
    _require.choice("index.encode_normalized", "denominator", denominator, DENOMINATORS)
    _require_inside(positions, length)
    if length == 1 and denominator == "length - 1":
        raise ValueError('index.encode_normalized: length is 1, and i / (length - 1) is 0/0; use denominator="length"')
    return positions[..., None] / (length if denominator == "length" else length - 1)


def _require_inside(positions, length):
    if positions.dtype.kind != "O" and positions.size and not (positions.min() >= 0 and positions.max() <= length - 1):
        raise ValueError(
            f"index.encode_normalized: positions run from {positions.min()} to {positions.max()} and length is {length}; "
            f"they must lie in 0 .. {length - 1}"
        )
