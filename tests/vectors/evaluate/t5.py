"""What each op of t5.json is in posref."""

from posref import attention
from posref.relative import t5


def starts(case):
    return t5.bucket_starts(case.params["buckets"], case.params["max_distance"])


def bucket(case):
    return t5.bucket(case.tensors["offsets"], **case.params)


def bias(case):
    queries, keys, table = (case.tensors[name] for name in ("queries", "keys", "table"))
    rest = {name: case.params[name] for name in ("max_distance", "bidirectional")}
    return t5.bias(queries, keys, table, **rest)


def attend(case):
    q, k, v = (case.tensors[name] for name in ("q", "k", "v"))
    return attention.attend(q, k, v, scale=1, bias=bias(case))


def cross_attend(case):
    q, k, v = (case.tensors[name] for name in ("q", "k", "v"))
    return attention.attend(q, k, v, scale=1)
