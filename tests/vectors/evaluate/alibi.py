"""What each op of alibi.json is in posref."""

from posref import attention
from posref.relative import alibi


def slopes(case):
    return alibi.slopes(case.params["heads"], max_bias=case.params["max_bias"])


def shard(case):
    first = case.params["first"]
    return slopes(case)[first : first + case.params["count"]]


def bias(case):
    return alibi.bias(case.tensors["queries"], case.tensors["keys"], slopes(case), form=case.params["form"])


def attend(case):
    q, k, v, queries, keys = (case.tensors[name] for name in ("q", "k", "v", "queries", "keys"))
    mask = attention.causal_mask(queries, keys) if case.params["causal"] else None
    return attention.attend(q, k, v, scale=case.params["scale"], bias=bias(case), mask=mask)
