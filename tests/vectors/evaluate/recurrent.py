"""What each op of recurrent.json is in posref."""

import numpy as np

from posref.absolute import recurrent, sinusoidal


def _run(matrix, start, length):
    return recurrent.encode(lambda p: (matrix @ p[..., None])[..., 0], start, length)


def linear(case):
    return _run(case.tensors["matrix"], case.tensors["start"], case.params["length"])


def sinusoid(case):
    w, layout = sinusoidal.frequencies(case.params["dim"], case.params["base"]), case.params["layout"]
    start = sinusoidal.encode(np.array(0), w, layout=layout)
    return _run(sinusoidal.shift_matrix(1, w, layout=layout), start, case.params["length"])
