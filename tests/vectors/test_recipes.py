"""Kernel-size recipes: the specification passes at every element, the twins at the entries, and what is wrong is told."""

import mpmath
import numpy as np
import pytest

from posref import ops, vectors
from posref.ops import probe
from posref.vectors import recipes
from proofs.vectors import BITS, _recipes, average, dot, exact, painted, rope, softmax, stored

CASES = vectors.kernels()


def output(case):
    """By posref's op, from the recipe alone."""
    given = {ops._CALLED.get(name, name): value for name, value in recipes.inputs(case).items()}
    asked = ops.op("rope.attend")
    mask = {"mask": given.pop("seen")[:, None] != 0}
    words = {name: value for name, value in case.params.items() if name != "window"}  # the mask holds it
    return asked.spec(**probe.completed(asked.spec, given | mask | words))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_posref_passes(case):
    y = output(case)
    assert vectors.error(case, recipes.entries(case, y), "f64") <= 1
    indices = case.tensors["indices"]
    assert len(indices) == len(np.unique(indices, axis=0)) == 64
    assert {(0, 0, 0, 0), tuple(np.array(y.shape) - 1)} <= set(map(tuple, indices.tolist()))
    last = y.copy()
    last[..., -1, -1] *= 1.5  # one element of every head, of which the sums know
    assert vectors.error(case, recipes.entries(case, last), "f64") > 1


def test_edges_of_tiles_and_empty_rows_are_among_the_entries():
    prefill, padded = (next(c for c in CASES if f"/{name}-" in c.id) for name in ("prefill", "padded"))
    assert {15, 16, 31, 32, 63, 64, 127, 128, 276} <= set(prefill.tensors["indices"][:, 2].tolist())
    empty = ~recipes.inputs(padded)["seen"].any(axis=-1)
    chosen = padded.tensors["indices"]
    assert empty[chosen[:, 0], chosen[:, 2]].sum() >= 2
    assert empty.sum() == 67


def test_inputs_are_painted():
    case = CASES[0]
    q = recipes.inputs(case)["q"]
    assert np.array_equal(q, painted(q.shape, case.params["q_tag"]) / case.params["q_over"])


@pytest.mark.slow
def test_every_element_of_a_recipe():
    """The padded one written out whole, and its sensitivities against those that all other cases have."""
    (record,) = (r for r in vectors.read(vectors.DIRECTORY / "kernels" / "attend.json")["cases"] if "/padded-" in r["id"])
    with mpmath.workprec(BITS):
        whole = vectors._case(_recipes.whole(record))
    case = vectors._case(record)
    assert vectors.error(whole, output(case), "f64") <= 1
    assert np.array_equal(whole.expected[tuple(case.tensors["indices"].T)], case.expected[:-4])
    assert vectors.error(case, recipes.entries(case, whole.expected), "f64") < 1
    assert whole.tensors.keys() == {"q", "k", "v", "q_positions", "k_positions", "seen"}


def test_integers_and_sensitivities_are_those_of_the_generators():
    """A recipe of six tokens by numbers of mpmath, and by `dot`, `softmax` and `average`."""
    settings = {"name": "small", "n": 4, "keys": 6, "dim": 4, "first": 300, "padding": (3,), "base": 10000}
    asked = _recipes._asked(**settings)
    given = recipes.inputs(asked)
    with mpmath.workprec(BITS):
        found, cond = _recipes.attended(asked, given)
        theta, seen = rope._theta(4, 10000), given["seen"][0] != 0
        q, k = (
            stored(rope._turn(x, at, theta, "half"), rope._sensitivity(x, at, theta, "half"))
            for x, at in ((given["q"][0, 0], given["q_positions"][0]), (given["k"][0, 0], given["k_positions"][0]))
        )
        scores = dot(q, k, asked.params["scale"], bits=24)
        value, known = average(softmax(scores, seen, models=_recipes.MATH_IN_F32), exact(given["v"][0, 0]))
        assert (
            max(abs(mpmath.mpf(int(x)) / _recipes.ONE - y) for x, y in zip(found.ravel(), value.ravel(), strict=True))
            < 300 * mpmath.mpf(2) ** -195
        )
    for name, values in known.items():
        # those bound higher orders of 8-bit arithmetic too, at most 8 roundings: 8/256
        np.testing.assert_allclose(cond[name][0, 0], values.astype(float), rtol=8 / 256, atol=0)
