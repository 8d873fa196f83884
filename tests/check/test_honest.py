"""No correct implementation is accused: specifications run in few bits, in 16 styles of rounding and adding."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from posref import ops
from posref.check import engine
from posref.check.ranged import BY_DTYPE as MODELS
from posref.ops.probe import painted
from tests import golden
from tests.every import every

pytestmark = pytest.mark.slow

SPEC = importlib.util.spec_from_file_location("low", Path(__file__).parent / "low.py")
low = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(low)

CASES = [case for case in golden.cases() if case.cond]


def outcome(op, arguments, models, got, questions, gauge="none"):
    question = questions.setdefault(models, engine.Question(op, arguments, models, gauge=gauge))
    return question.ask(np.broadcast_to(got, question.right.shape))


@every(CASES, name=lambda case: case.id, parts=16)
def test_honest_results_of_the_cases_pass(case):
    op, arguments = ops.of_case(case)
    questions = {}
    for style in low.STYLES:
        models = tuple(name for name in MODELS[style.stored] if name.replace("f32sums", "all") in case.models)
        if models and not (style.arithmetic != "float32" and models[-1].endswith("f32math")):
            found = outcome(op, arguments, models, low.run(op.spec, arguments, style), questions, case.gauge)
            assert found.ok, (style, found)


def sizes():
    """Ops at the sizes of models."""
    for dim in (2, 64, 128):
        for base in (100.0, 1e4, 5e5, 12345.0):
            for layout in ("half", "interleaved"):
                yield "rope.rotate", {"dim": dim, "base": base, "layout": layout}
    for heads in (1, 3, 12, 112):
        for form in ("signed", "absolute", "key"):
            yield "alibi.bias", {"heads": heads, "form": form, "max_bias": 8 if heads != 3 else 4.5}
    for n in (5, 33, 64):
        rows = {"n_query": n, "n_key": n, "head_dim": 16, "scale": 0.25}
        yield "alibi.attend", {**rows, "heads": 3, "form": "signed"}
        yield "shaw.attend", rows
        yield "value.attend", {**rows, "dim": 16, "layout": "half", "undo": True}
        yield "nezha.attend", {**rows, "max_distance": 4, "convention": "released"}


@every([*sizes()], name=str, parts=4)
def test_honest_results_at_the_sizes_of_models_pass(name, settings):
    op = ops.op(name)
    arguments, questions = op.make(**settings), {}
    for style in low.STYLES:
        found = outcome(op, arguments, MODELS[style.stored], low.run(op.spec, arguments, style), questions)
        assert found.ok, (style, found)


def test_the_styles_differ():
    """The tool rounds: orders and formats give different numbers, all near the right ones."""
    op = ops.op("alibi.attend")
    arguments = op.make(heads=3, form="signed", scale=0.25)
    results = [low.run(op.spec, arguments, style) for style in low.STYLES]
    assert len({result.tobytes() for result in results}) > 8
    right = op.spec(**arguments)
    assert all(0 < np.abs(result - right).max() < 0.2 for result in results)
    assert painted((3,), 1).dtype == float
