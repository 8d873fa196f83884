"""Wrong versions of transformers, in memory: the drift program must notice each.

A row of `MUTATIONS` has a name, a model type, what is patched (`file:attribute`, where the name of a model stands for the file
of its modules) and what makes the wrong one of the right one.

    python -m tests.programs.mutations [WORD ..]      prints what the drift program says of each whose name has a WORD
"""

import functools
import importlib
import itertools
import sys
from unittest import mock

from transformers import masking_utils

from tests.programs import drift
from tests.programs.models import torch


def keywords(**changed):
    """A function that changes keywords of its original: each by a function of their value."""

    def wrong(original):
        @functools.wraps(original)
        def call(*given, **named):
            return original(*given, **{key: changed[key](value) if key in changed else value for key, value in named.items()})

        return call

    return wrong


def after(change):
    """An __init__ or __post_init__ after which `change` is made to the object."""

    def wrong(original):
        @functools.wraps(original)
        def call(self, *given, **named):
            original(self, *given, **named)
            change(self)

        return call

    return wrong


def times(name, factor, layer=None):
    """An attribute that is multiplied when an object is made, in one layer alone if it is named."""

    def change(self):
        if layer is None or self.layer_idx == layer:
            setattr(self, name, getattr(self, name) * factor)

    return after(change)


def returned(change):
    """A function whose result is changed."""
    return lambda original: lambda *given, **named: change(original(*given, **named))


def file_of(where):
    """The file of `llama:rotate_half` or `masking_utils:chunked_overlay`, and the name of its attribute."""
    home, attribute = where.split(":")
    home = home if "_utils" in home or "." in home else f"models.{home}.modeling_{home}"
    return importlib.import_module(f"transformers.{home}"), attribute


def instead(where):
    """Another function in its place."""
    return lambda original: getattr(*file_of(where))


def adjacent(original):
    def rotate_half(x):
        return torch.stack([-x[..., 1::2], x[..., 0::2]], dim=-1).flatten(-2)

    return rotate_half


def halves(original):
    return importlib.import_module("transformers.models.llama.modeling_llama").rotate_half


def tiled(original):
    return lambda x, n: x.repeat(1, n, 1, 1)


def sinks_doubled(original):
    def call(module, *given, **named):
        right = module.sinks.data
        module.sinks.data = 2 * right + 1
        result = original(module, *given, **named)
        module.sinks.data = right
        return result

    return call


def not_shifted(original):
    return lambda x, klen=-1: x[..., :klen]


def keys_tiled(original):
    @functools.wraps(original)
    def call(query, key, *given, **named):
        return original(*(torch.cat([x, x], dim=2) for x in (query, key)), *given, **named)

    return call


def kernel_turned_around(original):
    return functools.wraps(original)(lambda x, weight, *given, **named: original(x, weight.flip(-1), *given, **named))


def rolled(self):
    self.layer_types = [self.layer_types[-1], *self.layer_types[:-1]]


def rows_from_one(original):
    def forward(self, input_ids=None, **named):
        return original(self, input_ids=input_ids, **{**named, "position_ids": torch.arange(input_ids.shape[1])[None] + 1})

    return forward


def all_rotate(self):
    self.use_rope = 1


def exchanged(self):
    first, second, third = self.rope_parameters["mrope_section"]
    self.rope_parameters["mrope_section"] = [second, first, third]


def without_positions(original):
    def forward(self, input_ids=None, **named):
        return self.LayerNorm(self.word_embeddings(input_ids) + self.token_type_embeddings(torch.zeros_like(input_ids)))

    return forward


def one_later(original):
    """Tokens after a cache are counted one too far."""
    return lambda self, x, position_ids: original(self, x, position_ids + (position_ids[:, :1] > 0))


MUTATIONS = {  # name: (model type, file and attribute, how it is made wrong)
    "default theta": (
        "llama",
        "llama:LlamaRotaryEmbedding.compute_default_rope_parameters",
        returned(lambda found: (found[0] * 0.9, found[1])),
    ),
    "layout": ("llama", "llama:rotate_half", adjacent),
    "scale x 2": ("llama", "llama:LlamaAttention.__init__", times("scaling", 2)),
    "window + 1": ("mistral", "masking_utils:sliding_window_overlay", lambda f: lambda n: f(n + 1)),
    "window ignored": ("mistral", "mistral:create_sliding_window_causal_mask", instead("masking_utils:create_causal_mask")),
    "chunk + 1": ("llama4_text", "masking_utils:chunked_overlay", lambda f: lambda n, left: f(n + 1, left)),
    "DeepSeek layout": ("deepseek_v3", "deepseek_v3:apply_rotary_pos_emb_interleave", instead("llama:apply_rotary_pos_emb")),
    "BERT rows": ("bert", "bert:BertEmbeddings.forward", rows_from_one),
    "softcap x 2": ("gemma2", "gemma2:Gemma2Attention.__init__", times("attn_logit_softcapping", 2)),
    "NoPE layers rotate": ("smollm3", "smollm3:SmolLM3Attention.__init__", after(all_rotate)),
    "GLM-4 layout": ("glm4", "glm4:rotate_half", halves),
    "YaRN magnitude": (
        "gpt_oss",
        "modeling_rope_utils:ROPE_INIT_FUNCTIONS[yarn]",
        returned(lambda found: (found[0], found[1] * 1.01)),
    ),
    # what an earlier version of the drift program did not notice
    "key heads tiled": ("llama", "llama:repeat_kv", tiled),
    "sinks unused": ("gpt_oss", "gpt_oss:eager_attention_forward", instead("llama:eager_attention_forward")),
    "T5 bucket sign": (
        "t5",
        "t5:T5Attention._relative_position_bucket",
        lambda f: staticmethod(lambda offsets, **named: f(-offsets, **named)),
    ),
    "ALiBi slopes x 2": ("bloom", "bloom:_get_alibi_slopes", returned(lambda slopes: slopes * 2)),
    "DeBERTa buckets": (
        "deberta-v2",
        "deberta_v2:make_log_bucket_position",
        lambda f: lambda offsets, buckets, n: f(offsets, 2 * buckets, n),
    ),
    "XLNet shift": ("xlnet", "xlnet:XLNetRelativeAttention.rel_shift_bnij", lambda f: staticmethod(not_shifted(f))),
    "Llama 4 floor_scale x 2": ("llama4_text", "llama4:Llama4TextAttention.__init__", times("floor_scale", 2)),
    # further ones
    "MPT slopes x 2": ("mpt", "mpt:build_mpt_alibi_tensor", returned(lambda bias: bias * 2)),
    "DeBERTa sign": ("deberta", "deberta:build_relative_position", returned(lambda offsets: -offsets)),
    "Llama 4 attn_scale x 2": ("llama4_text", "llama4:Llama4TextAttention.__init__", times("attn_scale", 2)),
    "cross mask ignored": ("bart", "bart:create_bidirectional_mask", lambda f: lambda *given, **named: None),
    "mask dropped inside attention": (
        "bart",
        "bart:eager_attention_forward",
        lambda f: lambda module, q, k, v, mask, **named: f(module, q, k, v, None, **named),
    ),
    "window on one side": (
        "modernbert",
        "modernbert:create_bidirectional_sliding_window_mask",
        lambda f: lambda **named: masking_utils.create_sliding_window_causal_mask(**named, past_key_values=None),
    ),
    "softcap x 2 inside attention": ("gemma2", "gemma2:eager_attention_forward", keywords(softcap=lambda cap: 2 * cap)),
    "scale of one layer": ("mistral", "mistral:MistralAttention.__init__", times("scaling", 2, layer=3)),
    "scale x 2 inside attention": ("qwen3", "qwen3:eager_attention_forward", keywords(scaling=lambda s: 2 * s)),
    "sinks doubled": ("gpt_oss", "gpt_oss:eager_attention_forward", sinks_doubled),
    "learned table + 1": ("opt", "opt:OPTLearnedPositionalEmbedding.__init__", after(lambda self: setattr(self, "offset", 3))),
    "layers shifted by one": ("gemma2", "models.gemma2.configuration_gemma2:Gemma2Config.__post_init__", after(rolled)),
    "M-RoPE sections exchanged": (
        "qwen2_vl_text",
        "models.qwen2_vl.configuration_qwen2_vl:Qwen2VLTextConfig.__post_init__",
        after(exchanged),
    ),
    "encoder window halved": ("t5gemma", "masking_utils:sliding_window_bidirectional_overlay", lambda f: lambda n: f(n // 2)),
    "compressed keys early": (
        "deepseek_v4",
        "deepseek_v4:DeepseekV4HCACompressor.forward",
        returned(lambda found: (found[0], torch.zeros_like(found[1]))),
    ),
    "T5 buckets halved": (
        "t5",
        "t5:T5Attention._relative_position_bucket",
        lambda f: staticmethod(
            lambda offsets, bidirectional=True, num_buckets=32, max_distance=128: f(
                offsets, bidirectional=bidirectional, num_buckets=num_buckets // 2, max_distance=max_distance
            )
        ),
    ),
    "T5 max_distance": (
        "t5",
        "t5:T5Attention._relative_position_bucket",
        lambda f: staticmethod(lambda offsets, **named: f(offsets, **{**named, "max_distance": 64})),
    ),
    "positions not added": ("bert", "bert:BertEmbeddings.forward", without_positions),
    "queries scaled twice": (
        "openai_privacy_filter",
        "openai_privacy_filter:OpenAIPrivacyFilterAttention.__init__",
        times("scaling", 2),
    ),
    "a norm that is none": ("llama4_text", "llama4:Llama4TextL2Norm.forward", lambda f: lambda self, x: x),
    "curves by distance": (
        "inkling_text",
        "inkling:InklingRelativeLogits.forward",
        lambda f: lambda self, r, i, j: f(self, r, i - 1, j),
    ),
    "state: no norm": ("qwen3_next", "qwen3_next:l2norm", lambda f: lambda x, **named: x),
    "state: keys tiled": ("qwen3_next", "qwen3_next:torch_chunk_gated_delta_rule", keys_tiled),
    "state: strength": ("olmo_hybrid", "olmo_hybrid:torch_chunk_gated_delta_rule", keywords(beta=lambda b: b / 2)),
    "state: decay by feature": ("kimi_linear", "kimi_linear:KimiLinearForgetGate.forward", returned(lambda g: 1.1 * g)),
    "state: no softplus": ("mamba2", "mamba2:mamba2_chunk_scan", keywords(dt_softplus=lambda _: False)),
    "state: limits": ("nemotron_h", "nemotron_h:mamba2_chunk_scan", keywords(dt_limit=lambda _: (0.0, 9.0))),
    "state: decay": ("mamba", "mamba:mamba_selective_scan", keywords(delta_bias=lambda b: b + 0.1)),
    "state: slopes": ("minimax", "minimax:MiniMaxLightningAttention.get_slope_rate", returned(lambda m: m * 1.01)),
    "state: activation": ("mamba2", "mamba2:causal_conv1d_fn", keywords(activation=lambda _: None)),
    "state: kernel": ("lfm2", "lfm2:causal_conv1d_fn", kernel_turned_around),
    "state: chunk": ("bamba", "bamba:BambaMixer.__init__", times("chunk_size", 2)),
    "centres of patches": ("dinov3_vit", "dinov3_vit:get_patches_center_coordinates", returned(lambda at: at * 1.1)),
    "rows and columns exchanged": (
        "qwen2_vl_vision",
        "qwen2_vl:get_vision_position_ids",
        returned(lambda found: found.flip(-1)),
    ),
    "chunks count padding": ("llama4_text", "masking_utils:chunked_overlay", lambda f: lambda n, left: f(n, 0 * left)),
    "a step after a cache": ("llama", "llama:LlamaRotaryEmbedding.forward", one_later),
    "window of a step": (
        "mistral",
        "cache_utils:DynamicSlidingWindowLayer.get_mask_sizes",
        returned(lambda sizes: (sizes[0], sizes[1] + 1)),
    ),
}


def sentences(model_type, where, wrong):
    """What the drift program says while one attribute is wrong; an error counts as a sentence of the module itself."""
    owner, attribute = file_of(where)
    if attribute.endswith("]"):
        table, key = attribute[:-1].split("[")
        changed = mock.patch.dict(getattr(owner, table), {key: wrong(getattr(owner, table)[key])})
    else:
        *classes, name = attribute.split(".")
        owner = functools.reduce(getattr, classes, owner)
        kept = isinstance(vars(owner)[name], staticmethod)
        made = wrong(getattr(owner, name))
        changed = mock.patch.object(owner, name, staticmethod(made) if kept and not isinstance(made, staticmethod) else made)
    with changed:
        others = (ask(model_type) for ask in (drift.counting, drift.decoding, drift.enters))
        return [*drift.compare(model_type).drifted, *itertools.chain(*others)]


def main(words):
    lost = []
    for name, (model_type, where, wrong) in MUTATIONS.items():
        if words and not any(word in name for word in words):
            continue
        try:
            found = sentences(model_type, where, wrong)
        except Exception as error:  # such a mutation tests nothing
            found = []
            print(f"{name}: {type(error).__name__}: {error}")
        lost += [] if found else [name]
        print(f"{name:32} {model_type:14} {found[0] if found else 'NOT NOTICED'}"[:200], flush=True)
    print(f"{len(lost)} of {len(MUTATIONS)} mutations not noticed: {', '.join(lost)}")
    return lost


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:])))
