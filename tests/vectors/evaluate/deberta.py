"""What each op of deberta.json is in posref."""

import numpy as np

from posref import attention
from posref.relative import deberta
from posref.relative.offsets import offsets


def index(case):
    return deberta.position_index(case.tensors["offsets"], span=case.params["span"])


def ends(case):
    return deberta.bucket_ends(case.params["buckets"], case.params["max_position"])


def log_bucket(case):
    return deberta.log_bucket(case.tensors["offsets"], **case.params)


def _scores(case, offset):
    q, k, q_r, k_r = (case.tensors[name] for name in ("q", "k", "q_r", "k_r"))
    terms = case.params["terms"].split("+")
    rows = q_r if "p2c" in terms else None, k_r if "c2p" in terms else None
    offset = offset[:, None] if offset.ndim == 3 else offset
    scale = 1 / np.sqrt(q.shape[-1] * (1 + len(terms)))
    return deberta.scores(q, k, *rows, offset, scale=scale, convention=case.params["convention"])


def scores(case):
    return _scores(case, offsets(case.tensors["queries"], case.tensors["keys"]))


def log_scores(case):
    rest = {name: case.params[name] for name in ("buckets", "max_position", "source")}
    return _scores(case, deberta.log_bucket(offsets(case.tensors["queries"], case.tensors["keys"]), **rest))


def decoder(case):
    rest = {name: case.params[name] for name in ("steps", "convention")}

    def layer(query, hidden):
        return query + attention.attend(query, hidden, hidden, scale=1)

    return deberta.enhanced_mask_decoder(layer, case.tensors["hidden"], case.tensors["positions"], **rest)
