"""check_rope on transformers' Llama: the model of 16 bits, and frequencies that are scaled. test_wild.py asks every library."""

import numpy as np
import pytest

from posref.check import check_rope

torch = pytest.importorskip("torch", reason="released implementations need torch")
LLAMA = pytest.importorskip("transformers.models.llama.modeling_llama", reason="transformers")


def tables(positions, width, base):
    theta = 1.0 / (base ** (torch.arange(0, width, 2).float() / width))
    return positions[..., None].float() * theta


def llama(x, positions, dtype=torch.float32, base=10000.0):
    """transformers' Llama: rotate_half, tables in the dtype of the model."""
    angle = tables(positions, x.shape[-1], base)
    angle = torch.cat([angle, angle], dim=-1)
    return LLAMA.apply_rotary_pos_emb(x, x, angle.cos().to(dtype), angle.sin().to(dtype))[0]


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
