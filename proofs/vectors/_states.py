"""Cases of systems with a state: outputs, the state after the last token in both layouts, and several texts in one row."""

import itertools

import numpy as np

from proofs.vectors import *


def gates(shape, first):
    """Logarithms of gates, not above 0; those of the first token may be given."""
    found = -abs(painted(shape, 8))
    found[..., 0, :] = first or found[..., 0, :]
    return found


def growth(given):
    """The largest sum of logarithms of gates."""
    return float(np.abs(np.cumsum(given["log_gates"], axis=-2)).max())


def attend_and_remember(name, given, both, roundings, kills, of_reading, layout=None, scale=0.5):
    """Two cases: `name` has a place for the op; `both(given, f)` is output and state, with f = abs the sizes of their terms."""
    right, size = both(given, lambda x: x), both(given, abs)
    swapped = lambda x, wanted: np.swapaxes(x, -1, -2) if wanted and layout == "vk" else x
    told, params = {key: swapped(x, key == "state") for key, x in given.items()}, {"state_layout": layout} if layout else {}
    for op, kind in (("attend", 0), ("remember", 1)):
        reads = op == "attend"
        words = params | ({"scale": scale} if reads else {})
        tensors = {key: x for key, x in told.items() if key != "q" or reads}
        cond, flags = terms(roundings, swapped(size[kind], not reads), bits=24), f"{kills} {of_reading}" if reads else kills
        # states are kept in float32
        yield case(name.format(op), op, words, tensors, swapped(right[kind], not reads), cond, flags, models=("f64", "f32"))


def packed(id, given, both, ends, roundings, kills):
    """Texts behind each other in one row, each from an empty state."""
    outputs = []
    for f in (lambda x: x, abs):
        parts = [
            {x: 0 * y if x == "state" else y[..., a:b] if x == "beta" else y[..., a:b, :] for x, y in given.items()}
            for a, b in itertools.pairwise(ends)
        ]
        outputs.append(np.concatenate([both(part, f)[0] for part in parts], axis=-2))
    tensors = {name: x for name, x in given.items() if name != "state"} | {"boundaries": np.array(ends)}
    cond = terms(roundings, outputs[1], bits=24)
    return case(id, "packed", {"scale": 0.5}, tensors, outputs[0], cond, kills, models=("f64", "f32"))
