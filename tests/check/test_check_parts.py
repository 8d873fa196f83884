"""The parts of the check against definitions: rounding, the probe, the phases."""

import ast
from pathlib import Path

import numpy as np
import pytest

import posref
from posref import ops
from posref.check import aliases, engine, tensors
from posref.check.rotary import phases


def test_rounding_to_bfloat16_is_to_nearest_even():
    exact = pytest.importorskip("ml_dtypes", reason="bfloat16 arrays").bfloat16
    values = np.concatenate([np.random.default_rng(0).normal(size=2000), [1 + 2**-8, 1 + 3 * 2**-8, 257.0, 259.0, 0.0, 3e38]])
    values = values.astype(np.float32)
    assert np.array_equal(tensors.round_to(values, "bfloat16"), values.astype(exact).astype(float))


@pytest.mark.parametrize("limit", [1, 2, 255, 4095, 1_000_000])
def test_positions_of_rope_stay_below_the_limit_and_tell_rows_apart(limit):
    at = ops.op("rope.rotate").make(dim=8, layout="half", max_position=limit).positions
    assert at.min() >= 0
    assert at.max() == limit
    assert {0, 1} <= set(at.reshape(-1).tolist())
    if limit > 100:
        assert len({tuple(row) for row in at.tolist()}) == 3
        assert (np.diff(at[1]) < 0).any()


def test_inputs_of_rope_are_exact_in_bfloat16_and_never_zero():
    x = ops.op("rope.rotate").make(dim=64, layout="half").x
    assert np.array_equal(tensors.round_to(x, "bfloat16"), x)
    assert 0 < np.abs(x).min() <= np.abs(x).max() < 2


@pytest.mark.parametrize(("name", "settings"), [("rope.rotate", {"layout": "interleaved"}), ("rope.tables", {})])
def test_a_base_is_read_from_the_phases(name, settings):
    """With as many digits as it takes to fit float32 numbers, and no more."""
    op = ops.op(name)
    a = op.make(dim=64, base=10000.0, **settings)
    question = engine.Question(op, a, ("f32",))
    got = op.spec(**a | {"base": 345678.0}).astype(np.float32).astype(float)
    found = question.ask(got, phases.stages)
    assert [name for name, _, _ in found.fits] == ["wrong_base 345678"]


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


def test_stages_look_for_tags_and_never_for_the_name_of_an_op():
    def named(source):
        """Comparisons of an op's name with anything but another op's name, and questions about its letters."""
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Compare):
                sides = [ast.unparse(side) for side in (node.left, *node.comparators)]
                if any(side.endswith("op.name") for side in sides) and not all(side.endswith(".name") for side in sides):
                    yield ast.unparse(node)
            elif isinstance(node, ast.Call | ast.Subscript):
                text = ast.unparse(node)
                if "op.name.startswith(" in text or "op.name.endswith(" in text or "[question.op.name]" in text:
                    yield text

    assert all(
        list(named(f"if {bad}: pass")) for bad in ('op.name != "rope.rotate"', '"gradient" in op.name', "a.op.name in NAMES")
    )
    assert [said for path in Path(posref.__file__).parent.glob("check/**/*.py") for said in named(path.read_text())] == []
