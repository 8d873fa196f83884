"""What each op of floater.json is in posref."""

import numpy as np

from posref.absolute import floater, sinusoidal


def sinusoid(case):
    frequencies, layout = sinusoidal.frequencies(case.params["dim"], case.params["base"]), case.params["layout"]
    generator = floater.antisymmetric(frequencies, layout=layout)
    start = sinusoidal.encode(np.array(0), frequencies, layout=layout)
    times = case.params["step"] * np.arange(case.params["length"])
    return floater.encode(lambda t, p: generator @ p, start, times, substeps=case.params["substeps"])


def field(case):
    def derivative(t, p):
        return np.stack([p[..., 1] - t * p[..., 0], t - p[..., 0] * p[..., 1]], axis=-1)

    return floater.encode(derivative, case.tensors["start"], case.tensors["times"], substeps=case.params["substeps"])
