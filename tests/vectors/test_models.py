"""The tolerances hold for honest arithmetic of every model, and honest arithmetic comes near them."""

import mpmath
import numpy as np
import pytest

from posref import pairing, vectors
from proofs.vectors import attend, case, dot, exact, painted, softmax, terms, total

f32 = np.float32


def to_bf16(x):
    bits = np.asarray(x, f32).view(np.uint32).astype(np.uint64)
    return (((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) << 16).astype(np.uint32).view(f32)


def to_f16(x):
    return np.asarray(x).astype(np.float16).astype(f32)


def to_f32(x):
    return np.asarray(x).astype(f32)


# model: dtype of the angles, rounding of tables and arithmetic, rounding of the output
RECIPES = {
    "f64": (np.float64, np.asarray, np.asarray),
    "f32": (f32, to_f32, to_f32),
    "f16-f32math": (f32, to_f32, to_f16),
    "bf16-f32math": (f32, to_f32, to_bf16),
    "f16-all": (f32, to_f16, to_f16),
    "bf16-all": (f32, to_bf16, to_bf16),
}


def power(dim, base, dtype):
    return 1 / dtype(base) ** (np.arange(0, dim, 2, dtype=dtype) / dtype(dim))


def exp_log(dim, base, dtype):
    return np.exp(np.arange(0, dim, 2, dtype=dtype) * dtype(-np.log(base) / dim))


def rotate(case, model, recipe):
    dtype, mid, out = RECIPES[model]
    dim, layout = case.params["dim"], case.params["layout"]
    x = mid(case.tensors["x"])
    angles = case.tensors["positions"].astype(dtype)[..., None] * recipe(dim, case.params["base"], dtype)
    cos, sin = mid(np.cos(angles)), mid(np.sin(angles))
    a, b = pairing.split(x[..., :dim], layout)
    first = mid(mid(a * cos) - mid(b * sin))
    second = mid(mid(a * sin) + mid(b * cos))
    turned = pairing.join(first, second, layout)
    return out(np.concatenate([turned, x[..., dim:]], axis=-1))


ROTATIONS = [c for c in vectors.cases("rope/*") if c.op == "rotate"]


@pytest.mark.parametrize("recipe", [power, exp_log])
@pytest.mark.parametrize("model", RECIPES)
def test_rotations(model, recipe):
    errors = [vectors.error(c, rotate(c, model, recipe), model) for c in ROTATIONS if model in c.models]
    assert 0.2 < max(errors) <= 1


def test_the_model_of_a_rotation_can_be_told():
    sparse = vectors.case("rope/half/d64-b1e4/sparse1m")
    coarse = rotate(sparse, "bf16-all", power)
    assert vectors.error(sparse, coarse, "bf16-f32math") > 10
    assert vectors.error(sparse, coarse, "f32") > 100


@pytest.mark.parametrize("model", RECIPES)
@pytest.mark.parametrize(
    ("flag", "change"),
    [
        ("other_layout", lambda c: {"layout": {"half": "interleaved", "interleaved": "half"}[c.params["layout"]]}),
        ("wrong_base", lambda c: {"base": 5e5 if c.params["base"] == 1e4 else 1e4}),
        ("position_plus_one", lambda c: {"positions": c.tensors["positions"] + 1}),
        ("positions_zero", lambda c: {"positions": c.tensors["positions"] * 0}),
        ("linear_scaling", lambda c: {"positions": c.tensors["positions"] / 4}),
    ],
)
def test_flags_hold_with_rounding(model, flag, change):
    """An implementation that makes the mistake and rounds fails every case that carries the flag."""
    cases = [c for c in ROTATIONS if flag in c.flags and model in c.models]
    assert len(cases) >= 5
    for c in cases:
        new = change(c)
        tensors = c.tensors | {name: new.pop(name) for name in ("positions",) if name in new}
        wrong = rotate(c._replace(params=c.params | new, tensors=tensors), model, power)
        assert vectors.error(c, wrong, model) > 1


@pytest.mark.parametrize("model", RECIPES)
def test_sinusoids(model):
    dtype, mid, out = RECIPES[model]
    errors = []
    for c in vectors.cases("sinusoidal/*"):
        if c.op == "encode" and c.params["divisor"] == "dim" and model in c.models:
            angles = c.tensors["positions"].astype(dtype)[..., None] * power(c.params["dim"], c.params["base"], dtype)
            got = out(pairing.join(mid(np.sin(angles)), mid(np.cos(angles)), c.params["layout"]))
            errors.append(vectors.error(c, got, model))
    assert 0.1 < max(errors) <= 1


def rounded_sum(terms, mid):
    """Sum over the last axis, rounded after every term."""
    result = np.zeros(terms.shape[:-1], dtype=terms.dtype)
    for n in range(terms.shape[-1]):
        result = mid(result + terms[..., n])
    return result


def rounded_product(a, b, mid):
    return rounded_sum(mid(a[..., :, None, :] * np.swapaxes(b, -1, -2)[..., None, :, :]), mid)


def as_case(pair):
    with mpmath.workprec(200):
        record = case(
            "test/attention", op="test", params={}, tensors={}, expected=pair[0], cond=pair[1], honest=lambda *_: None
        )
    return vectors._case(record)


@pytest.mark.parametrize("model", RECIPES)
@pytest.mark.parametrize(("n_query", "n_key", "dim"), [(3, 5, 4), (5, 16, 8)])
def test_attention(model, n_query, n_key, dim):
    """Scores, biased scores, weights and outputs with a mask, rounded after every operation."""
    _, mid, out = RECIPES[model]
    rng = np.random.default_rng(n_key)
    sizes = (2, n_query, dim), (2, n_key, dim), (2, n_key, 3), (n_query, n_key)
    q, k, v, bias = (mid(out(rng.standard_normal(size))).astype(np.float64) for size in sizes)
    mask, scale = painted((n_query, n_key), 8) < 1, 0.25
    with mpmath.workprec(200):
        scores = dot(exact(q), exact(k), scale)
        biased = total(scores, exact(np.broadcast_to(bias, (2, n_query, n_key))))
        weights = softmax(biased, mask)
        output = attend(exact(q), exact(k), exact(v), scale, exact(np.broadcast_to(bias, (2, n_query, n_key))), mask)
    got_scores = mid(mid(f32(scale)) * rounded_product(mid(q), np.swapaxes(mid(k), -1, -2), mid))
    got_biased = mid(out(got_scores) + mid(bias))
    seen = np.where(mask, got_biased, -np.inf)
    powers = np.where(mask, mid(np.exp(mid(seen - seen.max(axis=-1, keepdims=True)))), 0)
    got_weights = mid(powers / rounded_sum(powers, mid)[..., None])
    got_output = rounded_product(out(got_weights), mid(v), mid)
    for pair, got in ((scores, got_scores), (biased, got_biased), (weights, got_weights), (output, got_output)):
        assert 1 / 50 < vectors.error(as_case(pair), out(got), model) <= 1


def test_terms_of_a_sum():
    """2, 8 and 64 numbers added one by one in bfloat16."""
    rng = np.random.default_rng(0)
    for n in (2, 8, 64):
        numbers = to_bf16(rng.standard_normal((500, n)))
        with mpmath.workprec(200):
            values = [mpmath.fsum(map(float, row)) for row in numbers]
            amp = [terms(n - 1, sum(abs(float(x)) for x in row)) for row in numbers]
        error = vectors.error(as_case((values, {"amp": amp})), rounded_sum(numbers, to_bf16), "bf16-all")
        assert 1 / 50 < error <= 1


def test_too_many_roundings():
    with pytest.raises(ValueError, match="terms: 128 roundings are too many"):
        terms(128, 1.0)


def test_scores_too_large_for_a_coarse_softmax():
    scores = np.array([[100.0, -100.0]])
    with pytest.raises(ValueError, match=r"may be \d\.\d+ off in the coarsest model"):
        softmax((scores, {"amp": abs(scores), "phase": 0 * scores, "out": 0 * scores}))


def test_weights_by_their_worst_case():
    """Scores moved by their whole bound, against each other, in the worst direction."""
    for value, bound in ((0.0, 1.0), (-1.0, 10.0), (1.0, 20.0)):
        s = np.array([[value, 0.0, -1.0]])
        p, cond = softmax((s.astype(object), {"amp": np.full((1, 3), bound), "phase": 0 * s, "out": 0 * s}))
        coarse = vectors.MODELS["bf16-all"]
        delta = float(coarse.c_amp * bound)
        moved = s + np.array([[delta, -delta, -delta]])
        q = np.exp(moved) / np.exp(moved).sum()
        allowed = (coarse.c_amp * cond["amp"]).astype(float)
        error = np.abs(q - p.astype(float)) / allowed
        assert 1 / 4 < error.max() <= 1


@pytest.mark.parametrize("model", vectors.MODELS)
def test_models_are_ordered(model):
    """Every model allows what float64 allows."""
    least, other = vectors.MODELS["f64"], vectors.MODELS[model]
    assert all(a <= b for a, b in zip(least, other, strict=True))


def test_error_of_what_cannot_be_compared():
    one = vectors.case("rope/half/d4-b1e4/one")
    assert vectors.error(one, one.expected[0], "f32") == np.inf
    assert vectors.error(one, np.full((1, 4), np.nan), "f32") == np.inf
    with pytest.raises(ValueError, match="model is 'fp8', expected one of 'f64'"):
        vectors.error(one, one.expected, "fp8")


def test_error_up_to_a_constant_of_each_row():
    values, wrong = np.array([[0.0, 1.0, 3.0], [2.0, 2.5, 4.0]]), np.array([[0.0, 1.0, 3.5], [2.0, 2.5, 4.0]])
    with mpmath.workprec(200):
        record = case(
            "test/bias", op="bias", params={}, tensors={}, expected=values, cond={"amp": values}, gauge="row_constant"
        )
    bias = vectors._case(record)
    assert vectors.error(bias, values + np.array([[7.0], [-3.0]]), "f64") == 0
    assert vectors.error(bias, wrong, "bf16-all") > 1
    assert vectors.error(bias._replace(gauge="none"), values + 7, "bf16-all") > 1
    assert vectors.error(bias._replace(cond=None), values + 7, "f64") == 0
    assert vectors.error(bias._replace(cond=None), wrong, "f64") == np.inf
