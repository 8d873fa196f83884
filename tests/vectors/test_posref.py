"""posref itself against the golden vectors: every op of `posref.ops` at every case."""

import contextlib

import numpy as np
import pytest

from posref import ops, vectors
from tests import golden
from tests.every import every

CASES = golden.cases()


def evaluate(case):
    op, arguments = ops.of_case(case)
    return op.spec(**arguments)


@every(CASES, name=lambda case: case.id)
def test_posref_passes(case):
    before = {name: tensor.copy() for name, tensor in case.tensors.items()}
    assert vectors.error(case, evaluate(case), "f64") <= 1
    assert all(np.array_equal(case.tensors[name], tensor) for name, tensor in before.items())


@every(CASES, name=lambda case: case.id)
def test_check_and_the_vectors_ignore_the_same_elements(case):
    op, arguments = ops.of_case(case)
    ignored = False if case.ignore is None else case.ignore
    assert (np.broadcast_to(op.meant(arguments), case.expected.shape) != ignored).all()


@every(vectors.names())
def test_some_case_comes_near_the_bound(name):
    """A bound that nothing ever approaches would hide mistakes."""
    errors = [vectors.error(case, evaluate(case), "f64") for case in CASES if case.id.startswith(f"{name}/") and case.cond]
    assert not errors or max(errors) > 1 / 50


GROWS = {"floater/field", "gated/log-gates", "gated/bounded-log-gates"}  # exponential in time, and in the parameter


@every(vectors.names())
def test_large_numbers_overflow_nothing(name):
    """Every result is finite when one of the floating-point arguments is a million times as large, or is refused."""
    for case in (case for case in CASES if case.id.startswith(f"{name}/") and not case.id.startswith(tuple(GROWS))):
        op, arguments = ops.of_case(case)
        for key, given in arguments.items():
            for factor in (1e6, -1e6) if isinstance(given, np.ndarray) and given.dtype.kind == "f" else ():
                with np.errstate(over="raise", invalid="raise"), contextlib.suppress(ValueError):
                    result = op.spec(**{**arguments, key: factor * given})
                    parts = result if isinstance(result, tuple) else (result,)
                    assert all(np.isfinite(part).all() for part in parts), f"{case.id}: {key} times {factor}"


@pytest.mark.parametrize("width", [64, 128, 256])
def test_prefill_chunks_and_steps_share_one_output(width):
    """The parts of a text are the last rows of the whole, number by number, and its last queries."""
    cases = [case for case in CASES if case.op == "attend" and case.id.startswith("rope/") and case.params["dim"] == width]
    shared = 0
    for whole in (case for case in cases if case.id.endswith(("attend-prefill", "attend-causal"))):
        text = whole.id.rpartition("/")[0]
        ends = ("attend-chunk", "attend-step") if whole.id.endswith("prefill") else ("causal-chunk", "causal-step")
        for part in (case for case in cases if case.id.rpartition("/")[0] == text and case.id.endswith(ends)):
            rows = part.expected.shape[-2]
            assert np.array_equal(part.expected, whole.expected[..., -rows:, :])
            assert np.array_equal(part.tensors["q"], whole.tensors["q"][..., -rows:, :])
            assert all(np.array_equal(part.tensors[name], whole.tensors[name]) for name in ("k", "v", "k_positions"))
            shared += 1
    assert shared >= 2


def test_every_schedule_and_order_of_axes_has_cases():
    from posref.rotary import scaling
    from proofs.vectors import _model

    assert _model.SCHEDULES.keys() <= {case.op for case in CASES if case.id.startswith("scaling/")}
    assert all(hasattr(scaling, name) for name in _model.SCHEDULES)
    orders = {case.id.split("/")[2] for case in CASES if case.id.startswith("axes/rotate/")}
    assert {"qwen2-vl", "qwen3-vl", "ernie4.5-vl", "qwen2-vl-vision", "pixtral"} <= orders
    leftovers = {case.params.get("leftover") for case in CASES if case.op == "interleaved_sections"}
    assert leftovers == {"transformers", "ggml"}
