"""What each op of nezha.json is in posref."""

from posref.absolute import sinusoidal
from posref.relative import nezha
from posref.relative.offsets import offsets


def _options(case):
    return {name: case.params[name] for name in ("max_distance", "convention")}


def table(case):
    return nezha.table(case.params["max_distance"], case.params["dim"], convention=case.params["convention"])


def encode(case):
    return nezha.encode(case.tensors["offsets"], sinusoidal.frequencies(case.params["dim"]), **_options(case))


def attend(case):
    q, k, v, queries, keys = (case.tensors[name] for name in ("q", "k", "v", "queries", "keys"))
    rows = nezha.table(case.params["max_distance"], q.shape[-1], convention=case.params["convention"])
    return nezha.attend(q, k, v, rows, offsets(queries, keys), scale=case.params["scale"])
