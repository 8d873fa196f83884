"""What each op of tupe.json is in posref."""

from posref import attention
from posref.relative import tupe


def positional(case):
    p, u_q, u_k = (case.tensors[name] for name in ("p", "u_q", "u_k"))
    return tupe.positional_scores(p, u_q, u_k, scale=case.params["scale"])


def reset(case):
    return tupe.reset(case.tensors["t"], case.tensors["theta_1"], case.tensors["theta_2"])


def untie(case):
    return tupe.reset(*tupe.untie(case.tensors["t"]))


def scores(case):
    q, k, t, theta_1, theta_2 = (case.tensors[name] for name in ("q", "k", "t", "theta_1", "theta_2"))
    return tupe.scores(q, k, t, theta_1, theta_2, relative_bias=case.tensors.get("b"), **case.params)


def attend(case):
    return attention.softmax(scores(case)) @ case.tensors["v"]
