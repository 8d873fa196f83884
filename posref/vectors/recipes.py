"""Recipes: cases at the sizes of kernels. The files stay small: a formula makes the inputs, and 68 numbers are the output.

>>> from posref import vectors
>>> case = vectors.kernels("rope/kernel/decode-*")[0]
>>> given = inputs(case)
>>> given["q"].shape, given["k"].shape, case.expected.shape
((1, 4, 1, 128), (1, 2, 4097, 128), (68,))

In a test: `vectors.error(case, entries(case, my_attention(**inputs(case), **case.params)), "f32") <= 1`.
"""

import numpy as np

TAGS = (1, 2, 4, 6)  # of the four sums


def painted(size, tag):
    """x[n] = ((7 n^2 + 31 n + 17 tag) mod 251 - 125) / 64 for n = 0 .. size - 1.

    >>> painted(3, 1)
    array([-1.6875 , -1.09375, -0.28125])
    """
    n = np.arange(size)
    return ((7 * n * n + 31 * n + 17 * tag) % 251 - 125) / 64


def inputs(case):
    """Queries, keys and values, the positions of both, and `seen`, 1 where a query may attend to a key."""
    q, k, v = (_input(case, name) for name in "qkv")
    n_query, n_key = q.shape[-2], k.shape[-2]
    place = np.arange(n_key) - case.tensors["padding"][:, None]
    positions = case.params["first"] + np.maximum(place, 0)
    past = np.arange(n_key - n_query, n_key)[:, None] - np.arange(n_key)
    near = (past >= 0) & (past < case.params.get("window", n_key))
    seen = near & (place >= 0)[:, None]
    return {
        "q": q,
        "k": k,
        "v": v,
        "q_positions": positions[:, n_key - n_query :],
        "k_positions": positions,
        "seen": seen.astype(np.int64),
    }


def entries(case, output):
    """The numbers to compare: the output at `indices`, then four sums weighted by the formula, in float64.

    >>> from posref import vectors
    >>> case = vectors.kernels("rope/kernel/decode-*")[0]
    >>> entries(case, np.ones((1, 4, 1, 128)))[[0, -1]]
    array([  1.      , -40.828125])
    """
    output = np.asarray(output, dtype=np.float64)
    sums = [painted(output.size, tag) @ output.ravel() for tag in TAGS]
    return np.array([*output[tuple(case.tensors["indices"].T)], *sums])


def _input(case, name):
    shape = case.tensors[f"{name}_shape"]
    return (painted(shape.prod(), case.params[f"{name}_tag"]) / case.params[f"{name}_over"]).reshape(shape)
