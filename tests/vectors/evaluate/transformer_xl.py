"""What each op of transformer_xl.json is in posref."""

from posref import attention
from posref.absolute import sinusoidal
from posref.relative import transformer_xl


def distances(case):
    rest = {"bidirectional": case.params["bidirectional"], "clamp_len": case.params["clamp_len"] or None}
    return transformer_xl.distances(case.params["n_query"], case.params["n_key"], **rest)


def embeddings(case):
    frequencies = sinusoidal.frequencies(case.params["dim"], case.params["base"])
    return transformer_xl.embeddings(case.tensors["distances"], frequencies)


def shift(case):
    return transformer_xl.shift(case.tensors["x"])


def scores(case):
    q, k, r, u, v = (case.tensors[name] for name in "qkruv")
    return transformer_xl.scores(q, k, r, u, v, scale=case.params["scale"])


def attend(case):
    values = case.tensors["values"]
    mask = None if case.params["bidirectional"] else transformer_xl.visible(case.tensors["q"].shape[-2], values.shape[-2])
    return attention.softmax(scores(case), mask) @ values
