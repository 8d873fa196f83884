"""RoPE of real libraries: equal to posref to the rounding of the type they calculate in, in exactly one layout."""

import importlib.util
import math
import sys
from pathlib import Path

import numpy as np
import pytest

from posref import pairing
from posref.rotary import layouts, rope, value

torch = pytest.importorskip("torch", reason="pip install posref[parity]")

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "check_real_implementations.py"


def load_example():
    specification = importlib.util.spec_from_file_location("check_real_implementations", EXAMPLE)
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module
    specification.loader.exec_module(module)
    return module


example = load_example()
F32, BF16 = 2.0**-24, 2.0**-8  # unit roundoffs
POSITIONS = np.array([[0, 1, 5, 64, 1023, 4095, 4096], [4097, 3, 3, 48040, 17, 131071, 2]])


def named(subjects):
    return [pytest.param(subject, id=subject.name) for subject in subjects]


def right_layout(subject):
    return "half" if any(word in subject.name for word in ("Llama", "NeoX", "interleaved=0")) else "interleaved"


def require(subject):
    for name in subject.needs:
        pytest.importorskip(name, reason=example.PIP)


def bound(x, theta, positions, *, layout, base, angle=F32, rest=F32):
    """How far a rotation whose angles are made with unit roundoff `angle`, the rest with `rest`, may be from the exact one.

    theta is a power: its exponent is rounded, which the power turns into a relative error of ln(base) roundings at most; the
    power adds two (an ulp), the reciprocal one, the product with the position one: |d phi| <= |phi| (ln base + 4) u, and
    the pair moves by hypot(a, b) |d phi|. cos and sin are off by two roundings and stored with one more in 16 bits, each
    product has one, the sum one of y itself, and one more when y is stored.
    """
    a, b = pairing.split(x[..., : 2 * len(theta)], layout)
    phi = positions[:, None, :, None] * theta
    cos, sin = np.abs(np.cos(phi)), np.abs(np.sin(phi))
    a, b = np.abs(a), np.abs(b)
    turned = pairing.join(a * cos + b * sin, a * sin + b * cos, layout)
    moved = np.hypot(a, b) * phi * (math.log(base) + 4) * angle
    second_order = 1 + 2.0**-6
    return second_order * (pairing.join(moved, moved, layout) + turned * (3 * rest + 2 * F32) + 2 * rest * turned)


def as_numpy(tensor):
    return tensor.double().numpy() if isinstance(tensor, torch.Tensor) else np.asarray(tensor, dtype=np.float64)


def paint(*shape):
    """Numbers of 8 bits, so that bfloat16 holds them: (k - 125) / 64."""
    return (np.random.default_rng(0).integers(0, 251, shape) - 125).astype(np.float32) / 64


# -- every library, both layouts


@pytest.mark.parametrize("subject", named(example.REAL))
def test_rotation_of_the_library(subject):
    require(subject)
    x = paint(2, 3, 7, subject.dim)
    y = as_numpy(subject.function()(subject.to(x) if subject.to else x, POSITIONS))
    x = x.astype(np.float64)
    theta = rope.frequencies(subject.rotary_dim, subject.base)
    np.testing.assert_array_equal(y[..., subject.rotary_dim :], x[..., subject.rotary_dim :])
    angle = 0 if "onnx" in subject.needs else F32  # its tables are ours, rounded once
    rest = BF16 if "bfloat16" in subject.name else F32
    worst = {}
    for layout in pairing.LAYOUTS:
        exact = rope.rotate(x, *rope.tables(POSITIONS[:, None], theta), layout=layout, rotary_dim=subject.rotary_dim)
        slack = bound(x, theta, POSITIONS, layout=layout, base=subject.base, angle=angle, rest=rest)
        worst[layout] = (np.abs(y - exact)[..., : subject.rotary_dim] / (slack + 1e-300)).max()
    right, wrong = sorted(worst, key=worst.get)
    assert worst[right] <= 1
    assert worst[right] > 1 / 50  # the bound is of the size of what happens
    assert worst[wrong] > 100
    assert right == right_layout(subject)


# -- gradients, values, weights


@pytest.mark.parametrize("layout", pairing.LAYOUTS)
def test_gradient_is_what_autograd_finds(layout):
    llama = pytest.importorskip("transformers.models.llama.modeling_llama", reason=example.PIP)
    gptj = pytest.importorskip("transformers.models.gptj.modeling_gptj", reason=example.PIP)
    cos, sin = rope.tables(POSITIONS, rope.frequencies(8))
    x = torch.from_numpy(paint(2, 3, 7, 8).astype(np.float64)).requires_grad_()
    g = torch.from_numpy(paint(2, 3, 7, 8)[..., ::-1].astype(np.float64).copy())
    if layout == "half":
        doubled = (torch.from_numpy(np.concatenate([table, table], axis=-1)) for table in (cos, sin))
        y = llama.apply_rotary_pos_emb(x, x, *doubled)[0]
    else:
        y = gptj.apply_rotary_pos_emb(x.transpose(1, 2), torch.from_numpy(sin), torch.from_numpy(cos)).transpose(1, 2)
    y.backward(g)
    ours = rope.gradient(g.numpy(), cos[:, None], sin[:, None], layout=layout)
    np.testing.assert_allclose(x.grad.numpy(), ours, rtol=0, atol=4 * 4 * 2.0**-53)
    forward = rope.rotate(g.numpy(), cos[:, None], sin[:, None], layout=layout)
    assert not np.allclose(x.grad.numpy(), forward, atol=0.1)


def test_roformer_turns_values_and_does_not_undo():
    module = pytest.importorskip("transformers.models.roformer.modeling_roformer", reason=example.PIP)
    heads, d, n = 2, 8, 6
    config = module.RoFormerConfig(
        hidden_size=heads * d, embedding_size=heads * d, num_attention_heads=heads, rotary_value=True,
        max_position_embeddings=64, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    attention = module.RoFormerSelfAttention(config).double().eval()
    x = torch.from_numpy(paint(2, n, heads * d).astype(np.float64))
    positions, theta = np.arange(n) + 3, rope.frequencies(d)
    cos, sin = rope.tables(positions, theta)
    sinusoid = torch.from_numpy(np.concatenate([sin, cos], axis=-1))[None, None]
    with torch.no_grad():
        theirs = attention(x, sinusoidal_pos=sinusoid)[0].numpy()
        q, k, v = (
            layer(x).view(2, n, heads, d).transpose(1, 2).numpy() for layer in (attention.query, attention.key, attention.value)
        )
    ours = {
        undo: value.attend(q, k, v, positions, theta, layout="interleaved", scale=d**-0.5, undo=undo)
        .swapaxes(1, 2)
        .reshape(2, n, heads * d)
        for undo in (True, False)
    }
    np.testing.assert_allclose(theirs, ours[False], rtol=0, atol=1000 * 2.0**-53)  # 8 + 6 products of numbers below 8
    assert not np.allclose(theirs, ours[True], atol=0.1)


@pytest.mark.parametrize("heads", [4, 2])
def test_llama_converter_permutes_as_we_do(heads):
    # what permute does in convert_llama_weights_to_hf.py, which the wheel of transformers does not contain
    head_dim, d_model = 8, 10
    weight = torch.from_numpy(paint(heads * head_dim, d_model))
    theirs = weight.view(heads, head_dim // 2, 2, d_model).transpose(1, 2).reshape(heads * head_dim, d_model)
    ours = layouts.permute_projection(weight.numpy(), heads=heads, rotary_dim=head_dim, source="interleaved", target="half")
    np.testing.assert_array_equal(ours, theirs.numpy())


# -- the operator of ONNX: the forms that the example does not use


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("runtime", ["onnx", "onnxruntime"])
def test_onnx_with_three_axes_and_tables_for_every_row(runtime, interleaved):
    # (batch, n, heads * d) with num_heads, tables (batch, n, rotary_dim / 2) and no position_ids
    helper = pytest.importorskip("onnx.helper", reason=example.PIP)
    pytest.importorskip(runtime, reason=example.PIP)
    heads, d, rotary_dim = 3, 10, 6
    node = helper.make_node(
        "RotaryEmbedding", ["x", "cos", "sin"], ["y"],
        interleaved=interleaved, rotary_embedding_dim=rotary_dim, num_heads=heads,
    )  # fmt: skip
    inputs = [helper.make_tensor_value_info(name, 1, [None] * 3) for name in ("x", "cos", "sin")]
    graph = helper.make_graph([node], "rope", inputs, [helper.make_tensor_value_info("y", 1, [None] * 3)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    x = paint(2, 7, heads * d)
    theta = rope.frequencies(rotary_dim)
    cos, sin = rope.tables(POSITIONS, theta)
    feeds = {"x": x, "cos": cos.astype(np.float32), "sin": sin.astype(np.float32)}
    if runtime == "onnx":
        from onnx.reference import ReferenceEvaluator

        y = ReferenceEvaluator(model).run(None, feeds)[0]
    else:
        import onnxruntime

        y = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)[0]
    split = x.astype(np.float64).reshape(2, 7, heads, d).swapaxes(1, 2)
    layout = "interleaved" if interleaved else "half"
    exact = rope.rotate(split, cos[:, None], sin[:, None], layout=layout, rotary_dim=rotary_dim)
    error = np.abs(y.reshape(2, 7, heads, d).swapaxes(1, 2) - exact)
    assert (error[..., :rotary_dim] <= bound(split, theta, POSITIONS, layout=layout, base=10000.0, angle=0)).all()
    assert (error[..., rotary_dim:] == 0).all()


# -- the check itself on all of them


IN_TORCH = [row for row in example.REAL if row.to is example.to_torch]
IN_BFLOAT16 = [row._replace(name=f"{row.name}, bfloat16", to=example.to_bfloat16) for row in IN_TORCH]


@pytest.mark.parametrize("subject", named([IN_TORCH[0], *IN_BFLOAT16[1:3]]))
def test_check_finds_the_layout(subject):
    require(subject)
    right = right_layout(subject)
    wrong = "interleaved" if right == "half" else "half"
    report = subject.check(right)
    assert report.ok, str(report)
    assert report.diagnosis == []
    report = subject.check(wrong)
    assert not report.ok
    assert [finding.name for finding in report.diagnosis] == ["other_layout"], str(report)
    assert f'layout="{right}"; you asked for layout="{wrong}"' in report.diagnosis[0].sentence


def test_example_prints_verdicts_and_diagnoses(monkeypatch, capsys):
    pytest.importorskip("transformers", reason=example.PIP)
    llama, decoding = example.REAL[0], example.BROKEN[2]
    rotate = llama.function()
    backwards = llama._replace(name="backwards", make=lambda *sizes: lambda x, positions: rotate(x, -positions))
    monkeypatch.setattr(example, "BROKEN", (decoding,))
    for real, status, line in (
        (llama, 0, "  ok       transformers Llama               layout=half"),
        (backwards, 1, "  FAILED   backwards                        layout=none"),
    ):
        monkeypatch.setattr(example, "REAL", (real,))
        assert example.main() == status
        printed = capsys.readouterr().out
        assert line in printed.splitlines()
        assert f"{decoding.subject.name}:\n{decoding.subject.check(decoding.layout)}\n" in printed


def test_example_skips_what_is_not_installed(monkeypatch, capsys):
    monkeypatch.setattr(example, "available", lambda subject: False)
    assert example.main() == 0
    printed = capsys.readouterr().out
    assert printed.count("skipped") == len(example.REAL) + len(example.BROKEN)
    assert 'needs torch and transformers; pip install -e ".[parity]"' in printed
