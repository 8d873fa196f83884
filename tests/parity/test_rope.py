"""RoPE of real libraries: what no row of the corpus has (tests/parity/test_wild.py), and the example that checks them."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from posref import pairing
from posref.rotary import layouts, rope

torch = pytest.importorskip("torch", reason="pip install posref[parity]")

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "check_real_implementations.py"


def load_example():
    specification = importlib.util.spec_from_file_location("check_real_implementations", EXAMPLE)
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module
    specification.loader.exec_module(module)
    return module


example = load_example()
F32 = 2.0**-24  # unit roundoff
POSITIONS = np.array([[0, 1, 5, 64, 1023, 4095, 4096], [4097, 3, 3, 48040, 17, 131071, 2]])


def paint(*shape):
    """Numbers of 8 bits, so that bfloat16 holds them: (k - 125) / 64."""
    return (np.random.default_rng(0).integers(0, 251, shape) - 125).astype(np.float32) / 64


# -- gradients, weights


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
    (a, b), (c, s) = (np.abs(part) for part in pairing.split(split[..., :rotary_dim], layout)), (np.abs(cos), np.abs(sin))
    turned = pairing.join(a * c[:, None] + b * s[:, None], a * s[:, None] + b * c[:, None], layout)
    assert (error[..., :rotary_dim] <= 7 * F32 * turned).all()  # tables, products, sums and the result are rounded
    assert (error[..., rotary_dim:] == 0).all()


# -- the example


def test_example_prints_layouts(monkeypatch, capsys):
    pytest.importorskip("transformers", reason=example.PIP)
    llama = example.REAL[0]
    rotate = llama.function()
    backwards = llama._replace(name="backwards", make=lambda *sizes: lambda x, positions: rotate(x, -positions))
    for real, status, line in (
        (llama, 0, "  ok       transformers Llama               layout=half"),
        (backwards, 1, "  FAILED   backwards                        layout=none"),
    ):
        monkeypatch.setattr(example, "REAL", (real,))
        assert example.main() == status
        assert line in capsys.readouterr().out.splitlines()


def test_example_skips_what_is_not_installed(monkeypatch, capsys):
    monkeypatch.setattr(example, "available", lambda subject: False)
    assert example.main() == 0
    printed = capsys.readouterr().out
    assert printed.count("skipped") == len(example.REAL)
    assert 'needs torch and transformers; pip install -e ".[parity]"' in printed
