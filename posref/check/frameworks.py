"""Frameworks: what each framework calls the two layouts.

Each row says what to write to get `layout="half"`, pairs (t, t + dim/2), or `layout="interleaved"`, pairs (2t, 2t + 1); None if
the framework has no such setting. `source` is where this was read.
"""

import re
from typing import NamedTuple

from posref import pairing


class Alias(NamedTuple):
    """One framework's words for the two layouts."""

    framework: str
    half: str | None
    interleaved: str | None
    source: str

    def setting(self, layout: str) -> str | None:
        """What to write for `layout`."""
        return self.half if layout == "half" else self.interleaved


ALIASES: tuple[Alias, ...] = (
    Alias("MLX", "traditional=False", "traditional=True", "docs of mlx.nn.RoPE and mlx.core.fast.rope"),
    Alias(
        "vLLM, SGLang", "is_neox_style=True", "is_neox_style=False", "vLLM rotary_embedding/common.py, apply_rotary_emb_torch"
    ),
    Alias("flash-attn", "interleaved=False", "interleaved=True", "flash_attn.layers.rotary, apply_rotary_emb_torch"),
    Alias(
        "flash-attn's KV cache",
        "rotary_interleaved=False",
        "rotary_interleaved=True",
        "flash_attn_interface.py, flash_attn_with_kvcache",
    ),
    Alias("FlashInfer", "interleave=False", "interleave=True", "docs of flashinfer.rope.apply_rope_pos_ids"),
    Alias("ONNX RotaryEmbedding", "interleaved=0", "interleaved=1", "ONNX operator RotaryEmbedding, opset 23"),
    Alias("llama.cpp", "LLAMA_ROPE_TYPE_NEOX", "LLAMA_ROPE_TYPE_NORM", "llama.h, ggml_rope_ext"),
    Alias("transformers", "rotate_half", "rotate_every_two", "models/llama and models/gptj"),
    Alias("Meta Llama", None, "apply_rotary_emb (view_as_complex)", "llama/model.py"),
    Alias("candle", "rotary_emb::rope", "rotary_emb::rope_i", "candle-nn/src/rotary_emb.rs"),
    Alias(
        "TransformerEngine (JAX)",
        'rotary_pos_emb_group_method="alternate"',
        'rotary_pos_emb_group_method="consecutive"',
        "transformer_engine/jax/flax/transformer.py, rotary_pos_emb",
    ),
    Alias("MindSpore", "mode=0", "mode=1", "docs of mindspore.ops.rotary_position_embedding"),
    Alias("torch_npu", 'rotary_mode="half"', 'rotary_mode="interleave"', "docs of torch_npu.npu_rotary_mul"),
    Alias("in words", "GPT-NeoX style", "GPT-J style", "docs of vLLM and MindSpore"),
)


def aliases() -> tuple[Alias, ...]:
    """What other projects call the two layouts, one row per project.

    >>> [row.setting("half") for row in aliases() if row.framework == "MLX"]
    ['traditional=False']
    """
    return ALIASES


def layout_of(word: str) -> str | None:
    """The layout that a word means: a setting of the table, or a part of settings for one layout only; else None.

    >>> layout_of("neox"), layout_of("traditional=True"), layout_of("rope")
    ('half', 'interleaved', None)
    """
    meant = [layout for layout in pairing.LAYOUTS if any(_says(setting, word) for setting in _settings(layout))]
    return meant[0] if len(meant) == 1 else None


def _settings(layout: str) -> list[str]:
    return [layout, *(setting for row in ALIASES if (setting := row.setting(layout)))]


def _says(setting: str, word: str) -> bool:
    setting, word = (re.sub("[^a-z0-9=]", "", text.lower()) for text in (setting, word))
    return setting == word or (len(word) > 3 and "=" not in setting and word in setting)


def advice(layout: str) -> str:
    """What to write in each framework to get `layout`.

    >>> advice("half").split("; ")[0]
    'for layout="half": MLX traditional=False'
    """
    settings = [f"{row.framework} {row.setting(layout)}" for row in ALIASES if row.setting(layout)]
    return f'for layout="{layout}": ' + "; ".join(settings)
