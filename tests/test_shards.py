"""Attention in shards of the keys: bits that do not depend on the order, and what must not go wrong."""

import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from posref import attention, shards
from posref.shards import State


@pytest.fixture
def example():
    rng = np.random.default_rng(0)
    q, k, v, bias = (rng.standard_normal(shape) for shape in ((5, 3), (7, 3), (7, 2), (5, 7)))
    mask = rng.random((5, 7)) < 0.6
    mask[1], mask[2, :4], mask[3, 4:] = False, False, False  # nothing at all, nothing in the first shard, only in the first
    return q, k, v, bias, mask


def cut(q, k, v, bias, mask, cuts):
    for a, b in itertools.pairwise((0, *cuts, len(k))):
        yield shards.attend(q, k[a:b], v[a:b], scale=0.7, bias=bias[:, a:b], mask=mask[:, a:b])


def test_merge_is_commutative_to_the_bit(example):
    for a, b in itertools.combinations(cut(*example, (2, 5)), 2):
        for x, y in zip(shards.merge(a, b), shards.merge(b, a), strict=True):
            assert np.array_equal(x, y)


def test_an_empty_shard_changes_no_bit(example):
    for state in cut(*example, (2, 5)):
        zeros = [np.zeros_like(part) for part in state]
        for none in (State(*zeros), State(np.full((5, 1), 1e300), *zeros[1:])):
            for merged in (shards.merge(state, none), shards.merge(none, state)):
                met = state.denominator[:, 0] > 0
                for x, y in zip(merged, state, strict=True):
                    assert np.array_equal(x[met], y[met])
                assert (merged.denominator[~met] == 0).all()
                assert (merged.accumulator[~met] == 0).all()


def test_a_shard_masked_away_does_not_hide_a_far_lower_one():
    """The scores of the masked keys are 2000 higher: as a maximum they would take the other shard's weights below 2^-1074."""
    q, v, low, high = np.ones((1, 1)), np.array([[3.0]]), np.array([[-1000.0]]), np.array([[1000.0]])
    masked = shards.attend(q, high, v, scale=1.0, mask=np.array([[False]]))
    seen = shards.attend(q, low, v, scale=1.0)
    for merged in (shards.merge(masked, seen), shards.merge(seen, masked)):
        assert shards.finish(merged).tolist() == [[3.0]]


@pytest.mark.parametrize("size", [1e3, 1e300])
def test_huge_scores(size):
    q, k, v = np.ones((1, 1)), np.array([[-size], [size], [size]]), np.array([[1.0], [2.0], [4.0]])
    states = [shards.attend(q, k[j : j + 1], v[j : j + 1], scale=1.0) for j in range(3)]
    for a, b, c in itertools.permutations(states):
        assert shards.finish(shards.merge(shards.merge(a, b), c)).tolist() == [[3.0]]


# The example


def run_example(*arguments):
    script = Path(attention.__file__).parents[1] / "examples" / "merge_shards.py"
    if not script.exists():
        pytest.skip("the examples are not part of an installation")
    return subprocess.run([sys.executable, str(script), *arguments], capture_output=True, text=True, timeout=300)


@pytest.mark.whole
@pytest.mark.parametrize("arguments", [(), ("--length", "40", "--shards", "6", "--window", "3"), ("--shards", "1")])
def test_example_of_shards_over_processes(arguments):
    run = run_example(*arguments)
    assert run.returncode == 0, run.stdout + run.stderr
    difference = float(run.stdout.split()[-1])
    assert 0 <= difference < 1e-14


def test_example_refuses_more_shards_than_tokens():
    run = run_example("--length", "3", "--shards", "4")
    assert run.returncode == 2
    assert "--shards is 4, expected 1 .. 3" in run.stderr


def test_a_masked_score_sets_no_maximum():
    """The score 1e4 that is masked may not push the weight of the other, exp(1 - 1e4), below the smallest number."""
    q, k, v = np.ones((1, 1)), np.array([[1.0], [1e4]]), np.array([[3.0], [5.0]])
    state = shards.attend(q, k, v, scale=1.0, mask=np.array([[True, False]]))
    assert (state.maximum.item(), state.denominator.item(), shards.finish(state).item()) == (1.0, 1.0, 3.0)


def test_temperatures_and_caps_reach_every_shard():
    rng, given = np.random.default_rng(0), {"scale": 0.5, "row_scale": np.linspace(1, 2, 3), "softcap": 2.0}
    q, k, v = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 6, 4)), rng.normal(size=(2, 6, 4))
    parts = [shards.attend(q, k[:, c], v[:, c], **given) for c in (slice(0, 2), slice(2, 6))]
    np.testing.assert_allclose(shards.finish(shards.merge(*parts)), attention.attend(q, k, v, **given), rtol=1e-13)
