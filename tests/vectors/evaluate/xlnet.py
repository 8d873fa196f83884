"""What each op of xlnet.json is in posref."""

from posref import attention
from posref.relative import transformer_xl, xlnet


def distances(case):
    rest = {"attn_type": case.params["attn_type"], "clamp_len": case.params["clamp_len"] or None}
    return xlnet.distances(case.params["n_query"], case.params["n_key"], **rest)


def scores(case):
    q, k, r, e, u, v, s, same = (case.tensors[name] for name in ("q", "k", "r", "e", "u", "v", "s", "same"))
    return xlnet.scores(q, k, r, e, u, v, s, same == 1, scale=case.params["scale"])


def attend(case):
    values = case.tensors["values"]
    mask = None if case.params["attn_type"] == "bi" else transformer_xl.visible(case.tensors["q"].shape[-2], values.shape[-2])
    return attention.softmax(scores(case), mask) @ values
