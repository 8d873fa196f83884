"""What each op of merge.json is in posref."""

from posref.absolute import merge


def add(case):
    return merge.add(case.tensors["x"], case.tensors["p"])


def multiply(case):
    return merge.multiply(case.tensors["x"], case.tensors["p"], convention=case.params["convention"])


def concatenate(case):
    return merge.concatenate(case.tensors["x"], case.tensors["p"])
