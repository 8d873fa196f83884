"""What each op of sinusoidal.json is in posref."""

from posref.absolute import sinusoidal


def frequencies(case):
    return sinusoidal.frequencies(case.params["dim"], case.params["base"], divisor=case.params["divisor"])


def encode(case):
    return sinusoidal.encode(case.tensors["positions"], frequencies(case), layout=case.params["layout"])
