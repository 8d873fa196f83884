"""The parts of the check against definitions: the rotation, its rounding, the probe, the phases."""

import numpy as np
import pytest

from posref.check import aliases, probe, reading, search, tensors
from posref.check.rotation import Asked, correct, paired, turn
from posref.rotary import rope


@pytest.mark.parametrize("layout", ["half", "interleaved"])
@pytest.mark.parametrize(("dim", "width"), [(8, 8), (12, 4)])
def test_the_correct_rotation_is_the_specification(dim, width, layout):
    at = probe.positions(1000)
    x = probe.painted((3, 5, at.shape[1], dim), 1)
    cos, sin = rope.tables(at[:, None], rope.frequencies(width, 500.0))
    expected = rope.rotate(x, cos, sin, layout=layout, rotary_dim=width)
    assert np.array_equal(turn(correct(Asked(dim, width, 500.0, layout)), x, at[:, None]).y, expected)


def test_rounding_to_bfloat16_is_to_nearest_even():
    exact = pytest.importorskip("ml_dtypes", reason="bfloat16 arrays").bfloat16
    values = np.concatenate([np.random.default_rng(0).normal(size=2000), [1 + 2**-8, 1 + 3 * 2**-8, 257.0, 259.0, 0.0, 3e38]])
    values = values.astype(np.float32)
    assert np.array_equal(tensors.round_to(values, "bfloat16"), values.astype(exact).astype(float))


def test_painted_inputs_are_exact_in_bfloat16_and_never_zero():
    x = probe.painted((3, 5, 23, 64), 1)
    assert np.array_equal(tensors.round_to(x, "bfloat16"), x)
    assert np.abs(x).min() > 0
    assert np.abs(x).max() < 2
    both = x + probe.painted(x.shape, 3)
    assert np.array_equal(tensors.round_to(both, "bfloat16"), both)


@pytest.mark.parametrize("limit", [1, 2, 255, 4095, 1_000_000])
def test_positions_stay_below_the_limit_and_tell_rows_apart(limit):
    at = probe.positions(limit)
    assert at.min() >= 0
    assert at.max() == limit
    assert {0, 1} <= set(at.reshape(-1).tolist())
    assert at.shape[1] % 2 == 1
    if limit > 100:
        assert len({tuple(row) for row in at.tolist()}) == 3
        assert (np.diff(at[1]) < 0).any()


def test_phases_give_frequencies_and_positions_back():
    at = probe.positions(1_000_000)
    x = probe.painted((3, 5, at.shape[1], 64), 1)
    theta = rope.frequencies(64, 5e5)
    cos, sin = rope.tables(at[:, None], theta)
    y = rope.rotate(x, cos, sin, layout="half").astype(np.float32)
    read = reading.phases(x, y, at[:, None], paired("half", 64))
    fit = reading.fit(read)
    assert np.abs(fit.frequencies / theta - 1).max() < 1e-5
    assert abs(fit.base / 5e5 - 1) < 1e-5
    assert abs(fit.factor - 1) < 1e-6
    assert np.array_equal(np.rint(reading.positions_of(read.phases, theta)), at.reshape(-1))


@pytest.mark.parametrize("asked", [Asked(64, 64, 1e4, "half"), Asked(96, 24, 5e5, "interleaved"), Asked(2, 2, 10.0, "half")])
def test_hypotheses_have_one_name_each_and_a_remedy(asked):
    found = search.mistakes(asked, (3, 5, 7, asked.dim))
    assert len({h.name for h in found}) == len(found)
    assert all(h.sentence and h.remedy.endswith(".") for h in found)


def test_aliases_name_both_layouts_differently():
    for row in aliases():
        assert row.setting("half") != row.setting("interleaved")
        assert row.source


class Torchlike:
    """What a torch tensor shows: detach, cpu, float, numpy, and no bfloat16 in numpy."""

    def __init__(self, values, dtype):
        self.values, self.dtype = values, dtype

    def detach(self):
        return self

    def cpu(self):
        return self

    def float(self):
        return Torchlike(self.values, "torch.float32")

    def numpy(self):
        if self.dtype == "torch.bfloat16":
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self.values


def test_tensors_are_widened_without_their_library():
    tensor = Torchlike(np.array([1.5]), "torch.bfloat16")
    assert tensors.dtype_name(tensor) == "bfloat16"
    assert np.array_equal(tensors.as_float64(tensor), [1.5])
