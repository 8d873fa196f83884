"""What the systems of this family share: a result with its state, gates between two tokens, and a text in chunks."""

from typing import Any, Literal, NamedTuple

import numpy as np

from posref import _require
from posref._contract import Array, Numbers

Queries = Numbers[Array, "... n! d"]
Keys = Numbers[Array, "... n d"]
Values = Numbers[Array, "... n d_v"]
Gates = Numbers[Array, "... n #d"]  # logarithms: one per feature, or one per head
Layout = Literal["kv", "vk"]
State = Numbers[Array, "... rows columns"] | None


class Remembered(NamedTuple):
    """What was read at each token, and the state after the last token."""

    output: Numbers[Array, "... n d_v"]
    state: Numbers[Array, "... d d_v"]


def start(k: Any, v: Any, state: Any, layout: Layout = "kv") -> Any:
    """The state before the first token, keys by values: zeros `(..., d, d_v)` if none is given."""
    empty = 0 * (k[..., 0, :, None] * v[..., 0, None, :])
    if state is None:
        return empty
    _require.matrices("state.start", "state, as keys by values,", laid(state, layout), "k v^T", empty)
    return laid(state, layout)


def laid(state: Any, layout: Layout) -> Any:
    """From keys by values to the layout, or back."""
    return state if layout == "kv" else np.swapaxes(state, -1, -2)


def pairs(q: Any, k: Any, c: Any) -> Any:
    """sum_a q_ia exp(c_ia - c_ja) k_ja for j <= i, 0 beyond: `(..., n, n)`."""
    tokens = np.arange(k.shape[-2])
    seen = tokens[:, None] >= tokens
    kept = np.exp(seen[..., None] * (c[..., :, None, :] - c[..., None, :, :]))
    return seen * (kept * q[..., :, None, :] * k[..., None, :, :]).sum(axis=-1)


def in_chunks(form: Any, chunk: Any, state: Any, *arrays: Any) -> Remembered:
    """`form` of `chunk` tokens after `chunk` tokens; each begins with the state that the one before left."""
    outputs = []
    for first in range(0, arrays[0].shape[-2], chunk):
        output, state = form(*[x[..., first : first + chunk, :] for x in arrays], state=state)
        outputs.append(output)
    return Remembered(np.concatenate(outputs, axis=-2), state)
