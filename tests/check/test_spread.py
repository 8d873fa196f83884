"""Of attention in 16 bits `check` judges all elements together too: what is a tenth too large is refused, honest code never."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from posref import ops, vectors
from posref.check import check, diagnose, engine, implementation, rounded
from posref.check.ranged import models
from posref.check.tensors import round_to
from posref.relative import alibi

SPEC = importlib.util.spec_from_file_location("low", Path(__file__).parent / "low.py")
low = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(low)
OPS = [op for system in ops.names() for op in ops.system(system).values() if "attention" in op.tags]
STYLES = {dtype: [style for style in low.STYLES if style.stored == dtype] for dtype in ("bfloat16", "float16")}


def asked(op):
    """Arguments of its first probe."""
    return op.make(**implementation.example(op))


@pytest.mark.slow
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_every_attention(op):
    a = asked(op)
    right = np.asarray(op.spec(**a))
    for dtype, styles in STYLES.items():
        question = engine.Question(op, a, models(dtype, a))
        for style in styles:
            assert question.ask(low.run(op.spec, a, style)).ok, style
        assert not question.ask(round_to(1.1 * right, dtype)).ok
        assert not question.ask(round_to(right / 1.2, dtype)).ok


def larger(factor):
    """ALiBi in bfloat16 times a factor: scores, softmax and outputs stored."""

    def attend(q, k, v, query_positions, key_positions, mask):
        bias = alibi.bias(query_positions, key_positions, alibi.slopes(q.shape[1]), form="signed")
        s = stored(stored(q @ np.swapaxes(k, -1, -2) * 0.25) + stored(bias))
        e = np.where(mask, np.exp(s - s.max(axis=-1, keepdims=True, where=mask, initial=-1e9)), 0)
        return factor * (stored(e / np.maximum(e.sum(axis=-1, keepdims=True), 1e-30)) @ v)

    return attend


def stored(x):
    return round_to(np.asarray(x, dtype=float), "bfloat16")


@pytest.mark.parametrize(("factor", "ok"), [(1, True), (1.1, False)])
def test_times_a_factor_in_bfloat16(factor, ok):
    """numpy has no bfloat16: what it says of the numbers alone is what it says of the dtype."""
    op = ops.op("alibi.attend")
    a = op.make(heads=12, form="signed", scale=0.25)
    got = stored(larger(factor)(a.q, a.k, a.v, a.query_positions, a.key_positions, a.mask))
    assert engine.Question(op, a, models("bfloat16", a)).ask(got).ok == ok


def test_of_a_tensor_in_bfloat16():
    torch = pytest.importorskip("torch", reason="pip install torch")

    def to(x):
        return torch.tensor(x).to(torch.bfloat16) if x.dtype.kind == "f" else torch.tensor(x)

    def attend(q, k, v, query_positions, key_positions, mask):
        given = (x.double().numpy() if x.is_floating_point() else x.numpy() for x in (q, k, v, query_positions, key_positions))
        return to(larger(1.1)(*given, np.asarray(mask)))

    report = check(attend, "alibi.attend", to=to, heads=3, form="signed", scale=0.25)
    assert not report.ok
    assert "each element alone is within what rounding in bf16-all allows, but all together are off by" in str(report)


def test_of_a_dump():
    """`diagnose` has the limit from the case."""
    case = vectors.case("t5/cross/h3-d4/attend")
    assert diagnose(case, stored(case.expected), dtype="bfloat16").ok
    report = diagnose(case, stored(1.1 * case.expected), dtype="bfloat16")
    assert not report.ok
    assert "all together are off by" in str(report)


@pytest.mark.parametrize("model", ["bf16-f32math", "f16-all"])
def test_no_more_ways_are_run_than_tell(model):
    """Few ways say of an error what all say of it."""
    op = ops.op("attention.attend")
    a = op.make(scale=0.25, heads=3, n_query=9, n_key=20, head_dim=16)
    limit = engine.Question(op, a, (model,)).limit(model)
    for share in (0.5, 0.99, 1.01, 2):
        assert (share * limit <= engine.Question(op, a, (model,)).limit(model, share * limit)) == (share <= 1)


@pytest.mark.parametrize("bits", [(24, 24, 24), (24, 24, 8), (8, 24, 8), (8, 8, 8)])
def test_one_product_after_the_other_is_the_sum_of_all(bits):
    a, b = (np.random.RandomState(0).randn(*shape) for shape in ((2, 3, 7, 16), (2, 3, 16, 9)))
    way = rounded.Way(*bits)
    a, b = (rounded._short(x, min(way.stored, way.product), way) if way.stored < way.product else x for x in (a, b))
    terms = rounded._short(np.moveaxis(a, -1, 0)[..., None] * np.moveaxis(b, -2, 0)[..., None, :], way.sum, way)
    np.testing.assert_array_equal(rounded._summed_one_by_one(a, b, way.sum), rounded._sum(terms, way.sum, way, "forward"))
