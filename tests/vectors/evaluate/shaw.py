"""What each op of shaw.json is in posref."""

from posref import attention
from posref.relative import shaw
from posref.relative.offsets import offsets


def _offsets(case):
    at = offsets(case.tensors["queries"], case.tensors["keys"])
    return at if at.ndim == 2 else at[:, None]


def scores(case):
    q, k, table = (case.tensors[name] for name in ("q", "k", "key_table"))
    return shaw.scores(q, k, table, _offsets(case), scale=case.params["scale"], variant=case.params["variant"])


def attend(case):
    q, k, v, table, queries, keys = (case.tensors[name] for name in ("q", "k", "v", "key_table", "queries", "keys"))
    mask = attention.causal_mask(queries, keys) if case.params["causal"] else None
    rest = {"scale": case.params["scale"], "variant": case.params["variant"], "mask": mask}
    return shaw.attend(q, k, v, table, case.tensors.get("value_table"), _offsets(case), **rest)
