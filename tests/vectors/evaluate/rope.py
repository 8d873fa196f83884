"""What each op of rope.json is in posref."""

import numpy as np

from posref import attention, pairing
from posref.rotary import layouts, rope


def _tables(case, positions):
    frequencies = rope.frequencies(case.params["dim"], case.params["base"])
    return rope.tables(case.tensors[positions], frequencies)


def inv_freq(case):
    return rope.frequencies(case.params["dim"], case.params["base"])


def tables(case):
    return np.concatenate(_tables(case, "positions"), axis=-1)


def rotate(case):
    layout, dim = case.params["layout"], case.params["dim"]
    return rope.rotate(case.tensors["x"], *_tables(case, "positions"), layout=layout, rotary_dim=dim)


def scores(case):
    layout, group = case.params["layout"], case.params["heads"] // case.params["key_heads"]
    q = rope.rotate(case.tensors["q"], *_tables(case, "q_positions"), layout=layout)
    k = rope.rotate(case.tensors["k"], *_tables(case, "k_positions"), layout=layout)
    return attention.scores(q, np.repeat(k, group, axis=-3), scale=case.params["scale"])


def gradient(case):
    return rope.gradient(case.tensors["g"], *_tables(case, "positions"), layout=case.params["layout"])


def gradient_tables(case):
    # posref has one column a pair; this op exists for kernels with full-width tables
    g, cos, sin = (case.tensors[name] for name in ("g", "cos", "sin"))
    a, b = pairing.split(g * sin, case.params["layout"])
    return g * cos + pairing.join(b, -a, case.params["layout"])


def permute(case):
    heads, dim, source, target = (case.params[name] for name in ("heads", "dim", "source", "target"))
    return layouts.permute_projection(case.tensors["weight"], heads=heads, rotary_dim=dim, source=source, target=target)
