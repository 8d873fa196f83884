"""What the systems of this family share: the result with its state, an empty state, and a text in chunks."""

from typing import Any, Literal, NamedTuple

import numpy as np

from posref._contract import Array, Numbers

StateLayout = Literal["kv", "vk"]


class Remembered(NamedTuple):
    """What was read at each token, and the state after the last token."""

    output: Numbers[Array, "... n d_v"]
    state: Numbers[Array, "... d d_v"]


def start(k: Any, v: Any, state: Any) -> Any:
    """The state before the first token: zeros `(..., d, d_v)` if none is given."""
    return 0 * (k[..., 0, :, None] * v[..., 0, None, :]) if state is None else state


def in_chunks(form: Any, chunk: Any, state: Any, *arrays: Any) -> Remembered:
    """`form` of `chunk` tokens after `chunk` tokens; each begins with the state that the one before left."""
    outputs = []
    for first in range(0, arrays[0].shape[-2], chunk):
        output, state = form(*[x[..., first : first + chunk, :] for x in arrays], state=state)
        outputs.append(output)
    return Remembered(np.concatenate(outputs, axis=-2), state)
