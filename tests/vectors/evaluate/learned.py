"""What each op of learned.json is in posref."""

from posref.absolute import learned


def position_ids(case):
    return learned.position_ids(case.tensors["mask"] == 1, **case.params)


def token_ids(case):
    return position_ids(case)[case.tensors["mask"] == 1]


def encode(case):
    return learned.encode(case.tensors["positions"], case.tensors["table"])


def embed(case):
    return learned.encode(position_ids(case), case.tensors["table"])


def similarity(case):
    return learned.similarity(case.tensors["table"])
