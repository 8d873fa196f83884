"""check_rope on released implementations: they pass in the layout that the table of aliases says, and not in the other."""

import numpy as np
import pytest

from posref.check import check_rope

torch = pytest.importorskip("torch", reason="released implementations need torch")
LLAMA = pytest.importorskip("transformers.models.llama.modeling_llama", reason="transformers")
GPTJ = pytest.importorskip("transformers.models.gptj.modeling_gptj", reason="transformers")


def tables(positions, width, base):
    theta = 1.0 / (base ** (torch.arange(0, width, 2).float() / width))
    return positions[..., None].float() * theta


def llama(x, positions, dtype=torch.float32, base=10000.0):
    """transformers' Llama: rotate_half, tables in the dtype of the model."""
    angle = tables(positions, x.shape[-1], base)
    angle = torch.cat([angle, angle], dim=-1)
    return LLAMA.apply_rotary_pos_emb(x, x, angle.cos().to(dtype), angle.sin().to(dtype))[0]


def gptj(x, positions):
    """transformers' GPT-J: rotate_every_two; its axes are (batch, n, heads, dim)."""
    angle = tables(positions, x.shape[-1], 10000.0)
    return GPTJ.apply_rotary_pos_emb(x.transpose(1, 2), angle.sin(), angle.cos()).transpose(1, 2)


def by_complex_numbers(x, positions):
    """Meta's Llama."""
    turn = torch.polar(torch.ones(()), tables(positions, x.shape[-1], 10000.0))[:, None]
    return torch.view_as_real(torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2)) * turn).flatten(-2)


@pytest.mark.parametrize(
    ("fn", "layout"),
    [(llama, "half"), (gptj, "interleaved"), (by_complex_numbers, "interleaved")],
    ids=["llama", "gptj", "meta"],
)
def test_layouts_of_released_implementations(fn, layout):
    other = {"half": "interleaved", "interleaved": "half"}[layout]
    right = check_rope(fn, dim=64, layout=layout, to=torch.from_numpy)
    assert right.ok, right
    wrong = check_rope(fn, dim=64, layout=other, to=torch.from_numpy)
    assert [finding.name for finding in wrong.diagnosis] == ["other_layout"], wrong


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_tensors(dtype):
    kind = getattr(torch, dtype)
    report = check_rope(
        lambda x, p: llama(x, p, kind),
        dim=128,
        base=10000.0,
        layout="half",
        to=lambda a: torch.from_numpy(a).to(kind),
        to_positions=torch.from_numpy,
    )
    assert report.ok, report
    assert report.precision.model == {"bfloat16": "bf16-f32sums", "float16": "f16-f32sums"}[dtype]
    assert any("transformers" in name for name in report.precision.angles), report


def test_a_module_cast_to_bfloat16_is_named():
    """`.to(bfloat16)` reaches the buffer of frequencies."""
    theta = (1.0 / (10000.0 ** (torch.arange(0, 64, 2).float() / 64))).to(torch.bfloat16).float()

    def rotate(x, positions):
        angle = positions[..., None].float() * theta
        angle = torch.cat([angle, angle], dim=-1)
        return LLAMA.apply_rotary_pos_emb(x, x, angle.cos(), angle.sin())[0]

    report = check_rope(rotate, dim=64, layout="half", to=torch.from_numpy)
    assert [finding.name for finding in report.diagnosis] == ["bf16_inv_freq"], report


def test_released_rotary_embedding_torch():
    module = pytest.importorskip("rotary_embedding_torch", reason="rotary-embedding-torch")
    rotary = module.RotaryEmbedding(dim=64)

    def rotate(x, positions):
        return module.apply_rotary_emb(rotary(positions)[:, None], x)

    report = check_rope(rotate, dim=64, layout="interleaved", to=torch.from_numpy)
    assert report.ok, report


def test_onnx_operator():
    """interleaved=0 is half, interleaved=1 interleaved, by ONNX's own reference implementation."""
    reference = pytest.importorskip("onnx.reference.ops.op_rotary_embedding", reason="onnx")

    def operator(interleaved):
        def rotate(x, positions):
            theta = 10000.0 ** (-np.arange(0, 64, 2) / 64)
            angle = positions[..., None] * theta
            cos, sin = np.cos(angle).astype(x.dtype), np.sin(angle).astype(x.dtype)
            return reference.RotaryEmbedding.eval(x, cos, sin, interleaved=interleaved)

        return rotate

    for interleaved, layout in ((0, "half"), (1, "interleaved")):
        report = check_rope(operator(interleaved), dim=64, layout=layout)
        assert report.ok, report


def llama3(dim, base, low, high, factor, length):
    """Llama 3.1's schedule in float64: long wavelengths are divided by the factor, short ones stay, between them a ramp."""
    theta = []
    for w in (base ** (-2 * t / dim) for t in range(dim // 2)):
        ramp = min(max((length * w / (2 * np.pi) - low) / (high - low), 0.0), 1.0)
        theta.append(w * ramp + w / factor * (1 - ramp))
    return np.array(theta)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_released_llama3_scaling(dtype):
    """transformers computes the schedule itself, in float32; and "default" in its place is named."""
    scaling = {
        "rope_theta": 500000.0,
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }
    kind, given = getattr(torch, dtype), llama3(128, 500000.0, 1.0, 4.0, 8.0, 8192)

    def rotary(rope_type):
        config = LLAMA.LlamaConfig(
            hidden_size=128,
            num_attention_heads=1,
            max_position_embeddings=131072,
            rope_parameters={"rope_type": rope_type, **(scaling if rope_type == "llama3" else {"rope_theta": 500000.0})},
        )
        module = LLAMA.LlamaRotaryEmbedding(config)

        def rotate(x, positions):
            cos, sin = module(x, positions)
            return LLAMA.apply_rotary_pos_emb(x, x, cos, sin)[0]

        return rotate

    def check(fn):
        to = {"to": lambda a: torch.from_numpy(a).to(kind), "to_positions": torch.from_numpy}
        return check_rope(fn, dim=128, layout="half", frequencies=given, **to)

    right = check(rotary("llama3"))
    assert right.ok, right
    assert [finding.name for finding in check(rotary("default")).diagnosis] == ["wrong_base 500000"]
