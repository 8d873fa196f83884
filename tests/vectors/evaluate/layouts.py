"""What each op of layouts.json is in posref."""

import numpy as np

from posref import attention
from posref.rotary import layouts, rope


def scores(case):
    p, x = case.params, case.tensors["x"]
    tables = rope.tables(case.tensors["positions"], rope.frequencies(p["dim"], p["base"]))
    change = {"rotary_dim": p["dim"], "source": p["source"], "target": p["target"]}

    def turned(name, heads):
        weight, bias = (layouts.permute_projection(case.tensors[f"{a}_{name}"], heads=heads, **change) for a in "wb")
        features = np.swapaxes((x @ weight.T + bias).reshape(*x.shape[:-1], heads, p["head_dim"]), 1, 2)
        return rope.rotate(features, *tables, layout=p["target"], rotary_dim=p["dim"])

    k = np.repeat(turned("k", p["key_heads"]), p["heads"] // p["key_heads"], axis=1)
    return attention.scores(turned("q", p["heads"]), k, scale=p["scale"])
