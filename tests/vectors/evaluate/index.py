"""What each op of index.json is in posref."""

import numpy as np

from posref.absolute import index


def encode(case):
    return index.encode(case.tensors["positions"])


def encode_normalized(case):
    return index.encode_normalized(case.tensors["positions"], **case.params)


def steps(case):
    return np.diff(index.encode_normalized(np.arange(case.params["length"]), **case.params), axis=0)
