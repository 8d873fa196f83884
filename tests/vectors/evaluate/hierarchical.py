"""What each op of hierarchical.json is in posref."""

from posref.absolute import hierarchical


def extend(case):
    return hierarchical.extend(case.tensors["table"], **case.params)


def encode(case):
    return hierarchical.encode(case.tensors["positions"], case.tensors["table"], **case.params)
