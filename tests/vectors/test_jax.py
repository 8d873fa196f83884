"""Golden vectors in jax: stored tensors are loaded, computed with and compared, with 64-bit numbers and without."""

import numpy as np
import pytest

from posref import vectors
from posref.check import check, check_rope, diagnose, load_output

jax = pytest.importorskip("jax", reason="needs jax: pip install jax")
import jax.numpy as jnp  # noqa: E402


@pytest.fixture(params=[False, True], ids=["x64 off", "x64 on"])
def precise(request):
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", request.param)
    yield request.param
    jax.config.update("jax_enable_x64", before)


def rotate(x, positions, *, base=10000.0, layout="half"):
    angle = positions[..., None] * base ** (-jnp.arange(0, x.shape[-1], 2) / x.shape[-1])
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    if layout == "half":
        a, b = jnp.split(x, 2, axis=-1)
        return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1).astype(x.dtype)
    a, b = x[..., 0::2], x[..., 1::2]
    return jnp.stack([a * cos - b * sin, a * sin + b * cos], axis=-1).reshape(x.shape).astype(x.dtype)


compiled = jax.jit(rotate, static_argnames=("base", "layout"))


def loaded(directory, suffix):
    vectors.export(directory, suffix, "rope/*")
    if suffix == "npz":
        return np.load(directory / "rope.npz")
    safetensors = pytest.importorskip("safetensors.numpy", reason="needs safetensors: pip install safetensors")
    return safetensors.load_file(directory / "rope.safetensors")


@pytest.mark.parametrize("suffix", ["npz", "safetensors"])
def test_exported_tensors(precise, suffix, tmp_path):
    """Inputs are exact in float32 and positions fit int32, so that nothing is lost without 64-bit numbers."""
    stored = loaded(tmp_path, suffix)
    cases = [
        case for case in vectors.cases("rope/*") if case.op == "rotate" and case.params.keys() == {"dim", "base", "layout"}
    ]
    cases = [case for case in cases if case.tensors["x"].shape[-1] == case.params["dim"]]
    assert len(cases) > 15
    model, kinds = ("f64", {"f": "float64", "i": "int64"}) if precise else ("f32", {"f": "float32", "i": "int32"})
    for case in cases[::3]:
        given = {name: jnp.asarray(stored[f"{case.id}:{name}"]) for name in case.tensors}
        for name, expected in case.tensors.items():
            assert given[name].dtype == kinds[expected.dtype.kind]
            assert np.array_equal(given[name], expected)
        y = compiled(**given, base=case.params["base"], layout=case.params["layout"])
        assert vectors.error(case, y, model) <= 1, case.id


@pytest.mark.parametrize(("dtype", "model"), [("bfloat16", "bf16-f32math"), ("float16", "f16-f32math")])
def test_an_output_of_16_bits(precise, dtype, model, tmp_path):
    """numpy stores jax's bfloat16 as two bytes without a meaning: `load_output` is told the dtype."""
    case = vectors.case("rope/half/d8-b1e4/tiny")
    x, positions = jnp.asarray(case.tensors["x"], dtype), jnp.asarray(case.tensors["positions"])
    right, wrong = rotate(x, positions), rotate(x, positions, layout="interleaved")
    assert vectors.error(case, right, model) <= 1 < vectors.error(case, wrong, model)
    assert [claim.name for claim in diagnose(case, wrong).diagnosis] == ["other_layout"]
    np.savez(tmp_path / "right.npz", np.asarray(right))
    values, name = load_output(tmp_path / "right.npz", case.expected.shape, "bf16" if dtype == "bfloat16" else None)
    assert name == dtype
    assert np.array_equal(values, np.asarray(right, float))


def per_token(x, position, base=10000.0, layout="half"):
    """One token of one head."""
    return rotate(x[None], position[None], base=base, layout=layout)[0]


def heads(x, positions):
    return rotate(x, positions[:, None])


MAPPED = jax.vmap(jax.vmap(jax.vmap(per_token), in_axes=(0, None)))  # over the tokens, the heads, the batch


@pytest.mark.parametrize(("fn", "precise"), [(heads, False), (jax.jit(MAPPED), True)], indirect=["precise"])
def test_check(precise, fn):
    report = check_rope(fn, dim=64, layout="half", to=jnp.asarray)
    assert report.precision.model == "f32"  # its features are float32
    report.require()
    assert any(each.name == "gradient" and each.status == "passed" for each in report.checks)


def test_check_of_a_bias(precise):
    def bias(query_positions, key_positions, first=1):
        steps = key_positions[:, None, None, :] - query_positions[:, None, :, None]
        return 2.0 ** -jnp.arange(first, first + 8)[:, None, None] * steps

    words = {"heads": 8, "form": "signed", "to": jnp.asarray}
    check(jax.jit(bias), "alibi.bias", **words).require()
    wrong = check(jax.jit(lambda *given: bias(*given, first=0)), "alibi.bias", **words)
    assert [claim.name for claim in wrong.diagnosis] == ["heads_from_zero"]
