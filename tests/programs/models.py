"""Real modules of the installed transformers: the one builder of them, and a record of what each of their layers did.

`tiny(model_type)` is a small configuration, `build(configuration)` its module on the CPU, `run(model)` what happened in it:
every rotation (features before and after, and where), every attention that went through transformers' AttentionInterface
(queries, keys, values, mask, keywords, output) and every rotary module with its tables. Parity, the drift test of
`posref.explain` and the list of verdicts are reports over these records.

    python -m tests.programs.models          which types can be built and run, and what was recorded
"""

import contextlib
import copy
import functools
import importlib
import importlib.util
import inspect
import os
import re
import sys
import warnings
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "critical")

if importlib.util.find_spec("torchvision") is None:
    sys.modules.setdefault("torchvision", None)  # a half-installed torchvision breaks the import of most models

import torch
import transformers
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoModel, DynamicCache, EncoderDecoderCache
from transformers.modeling_utils import AttentionInterface
from transformers.models.auto.configuration_auto import (
    CONFIG_MAPPING,
    CONFIG_MAPPING_NAMES,
    SPECIAL_MODEL_TYPE_TO_MODULE_NAME,
)
from transformers.models.auto.modeling_auto import MODEL_MAPPING
from transformers.models.idefics import perceiver, vision

from tests.settings import settings

# types of parts of released files that its mapping does not list
CONFIG_MAPPING_NAMES |= {
    "semantic": "BarkSemanticConfig",
    "coarse_acoustics": "BarkCoarseConfig",
    "fine_acoustics": "BarkFineConfig",
}
SPECIAL_MODEL_TYPE_TO_MODULE_NAME.update(dict.fromkeys(("semantic", "coarse_acoustics", "fine_acoustics"), "bark"))
TOKENS = 11  # no other extent of a tiny model is 11, so the axis of the tokens can be told
LAYERS = 13  # two periods of the longest pattern of layers (6), and a first layer that may differ

SEGMENTS = [2] + [0] * 5 + [1] * 5  # of tokens of Funnel, of which [CLS] has its own
GRID = (4, 6)  # rows and columns of patches of a picture
POOLED = (3, 6)  # of a picture whose patches are pooled 3 by 3

# The cap and the limits of time steps are where scores and steps of tiny models are; buckets become logarithmic within 11
# tokens; an indexer chooses fewer keys than there are.
SIZES = {"num_hidden_layers": LAYERS} | settings("""
    vocab_size=64 hidden_size=64 num_attention_heads=4 num_key_value_heads=2 head_dim=16 intermediate_size=48
    moe_intermediate_size=16 max_position_embeddings=512 sliding_window=5 attn_logit_softcapping=0.02 attention_chunk_size=5
    local_attention=6 qk_rope_head_dim=8 qk_nope_head_dim=24 v_head_dim=16 kv_lora_rank=12 q_lora_rank=20 num_experts=4
    num_local_experts=4 n_routed_experts=4 num_experts_per_tok=2 n_group=1 topk_group=1 index_head_dim=16 index_n_heads=2
    index_topk=2 index_topk_blocks=2 index_block_size=3 keep_window_size=4 pad_token_id=0 bos_token_id=1 eos_token_id=2
    vocab_size_per_layer_input=64 image_size=32 global_head_dim=32 num_global_key_value_heads=2 rotary_dim=8
    decoder_attention_heads=4 encoder_layers=3 decoder_layers=3 encoder_ffn_dim=48 decoder_ffn_dim=48 d_kv=16
    relative_attention_num_buckets=8 relative_attention_max_distance=16 d_ff=48 depth=3 embed_dim=64 num_heads=4
    word_embed_proj_dim=64 embedding_size=64 hidden_size_per_layer_input=8 max_window_layers=6 first_k_dense_replace=1
    shared_expert_intermediate_size=16 moe_num_experts=4 linear_num_key_heads=2 linear_num_value_heads=4 linear_key_head_dim=8
    linear_value_head_dim=8 num_nextn_predict_layers=0 chunk_size=4 mamba_chunk_size=4 block_size=4 mamba_n_groups=2
    mamba_d_state=8 linear_num_heads=4 linear_head_dim=8 time_step_limit=[0.7,1.3] time_step_min=1.3
""")
SAM = (
    "deepseek_ocr2_sam_vision_model got_ocr2_vision pp_formulanet_vision sam_hq_vision_model sam_vision_model slanext_vision "
    "unlimited_ocr_sam_vision_model pp_chart2table_vision"
)
THREE_AXES = (
    "qwen2_vl_text qwen2_5_vl_text qwen2_5_omni_text qwen3_vl_text qwen3_vl_moe_text qwen3_omni_moe_text paddleocr_vl_text "
    "qwen2_5_omni_talker qwen3_omni_moe_talker_text cosmos3_edge_text"
)
THREE_AXES_OF_HALF = "glm4v_text glm_ocr_text glm4v_moe_text glm_image_text qwen3_5_text qwen3_5_moe_text"
WHOLE = {"rope_parameters": {"rope_type": "default", "rope_theta": 20000.0, "mrope_section": [2, 3, 3]}}
HALF = {"rope_parameters": {"rope_theta": 20000.0, "mrope_section": [1, 2, 1], "partial_rotary_factor": 0.5}}
HYBRID_ENCODERS = "d_fine deimv2 pp_doclayout_v2 pp_doclayout_v3 pp_doclayout_v4 rt_detr rt_detr_v2"  # of RT-DETR
FEATURES_FIRST = (  # before frames, of which there are as many
    "audioflamingo3_encoder glmasr_encoder moss_transcribe_diarize_audio qwen2_audio_encoder voxtral_encoder "
    "voxtral_realtime_encoder whisper"
)
OF_CHUNKS = settings("""
    left_max_position_embeddings=7 right_max_position_embeddings=4 speech_encoder_chunk_size=10 speech_encoder_left_chunk_num=2
    t2u_variance_predictor_embed_dim=64
""")
SPECIAL = {  # what a class needs beside its sizes
    **{model_type: WHOLE for model_type in THREE_AXES.split()},
    **{model_type: HALF for model_type in THREE_AXES_OF_HALF.split()},
    "ernie4_5_vl_moe_text": {"rope_parameters": {"rope_theta": 20000.0, "mrope_section": [3, 3, 2]}},
    "deepseek_v2": {"num_experts_per_tok": 2, "topk_method": "greedy"},
    "dots1": {"n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1},
    "dbrx": settings("attn_config={'rope_theta':20000.0,'kv_n_heads':2,'clip_qkv':8.0} d_model=64 n_heads=4 n_layers=4"),
    "esm": settings("vocab_size=64 mask_token_id=3 pad_token_id=1 position_embedding_type='rotary' token_dropout=False"),
    "chameleon": {"vocabulary_map": {"<image>": 4}},
    "zaya": {"num_experts_per_tok": 1},
    "gemma3n_text": {"num_kv_shared_layers": 0, "num_hidden_layers": 10, "laurel_rank": 8, "intermediate_size": 48},
    "longcat_flash": {"num_layers": 3, "head_dim": 8},
    "nemotron": {"num_key_value_heads": 2},
    "nemotron_h": settings("""
        layer_types=['linear_attention','full_attention','mlp','full_attention'] num_hidden_layers=4 mamba_num_heads=4
        mamba_head_dim=8 n_groups=2 ssm_state_size=8 time_step_min=0.2
    """),
    "qwen4_exp_text": {"layer_types": ["linear_attention", "indexed_attention"] * 6 + ["linear_attention"]}
    | settings("indexer_n_heads=2 indexer_kv_heads=1 indexer_head_dim=16 indexer_budget=4 indexer_compress_ratio=2"),
    "glm5_next_text": {"index_kpool": 2, "qk_rope_head_dim": 0},
    "lfm2": {"layer_types": ["conv", "full_attention"] * 6 + ["conv"]},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"] * 3 + ["conv"], "num_hidden_layers": 7},
    "zamba2": {"layers_block_type": ["mamba", "hybrid"] * 4} | settings("num_hidden_layers=8 n_mamba_heads=4 mamba_ngroups=2"),
    "mamba2": {"num_heads": 8, "n_groups": 2, "state_size": 8, "time_step_limit": [0.01, 0.05], "time_step_min": 0.001},
    "falcon_h1": {"key_multiplier": 0.5, "ssm_in_multiplier": 1.5, "ssm_multipliers": [0.9, 0.7, 1.3, 1.1, 0.6]},
    "bamba": {"attn_layer_indices": [3]},
    "granitemoehybrid": {"layer_types": ["linear_attention"] * 6 + ["full_attention"] * 7},
    **{name: {"time_step_min": 0.001} for name in ("mamba", "falcon_mamba")},
    "step3p5": {"layer_types": (["full_attention"] + ["sliding_attention"] * 3) * 3 + ["full_attention"]}
    | settings("sliding_window=5 num_attention_groups=2 num_sliding_attention_heads=4 moe_top_k=2"),
    "deepseek_ocr2_text": {"mlp_layer_types": ["dense"] * LAYERS},
    "diffusion_gemma_text": {"moe_intermediate_size": 16, "num_experts": 4, "top_k_experts": 2, "num_experts_per_tok": 2},
    "inkling_text": settings("""
        log_scaling_n_floor=4 rel_extent=7 swa_num_attention_heads=8 swa_num_key_value_heads=4 swa_head_dim=8
        initializer_range=1.0
    """),
    "inkling2_text": settings("""
        log_scaling_n_floor=4 rel_extent=7 swa_num_attention_heads=8 swa_num_key_value_heads=4 swa_head_dim=8
        num_hidden_layers=7 initializer_range=0.15 rel_l2_clip_threshold=4.0
    """),
    "cohere_compass_text": {
        "rope_parameters": {kind: WHOLE["rope_parameters"] for kind in ("full_attention", "sliding_attention")}
    },
    "llama4_vision_model": {"intermediate_size": 256, "patch_size": 8},
    "esmc": {"num_key_value_heads": 4},
    "mllama_text_model": {"cross_attention_layers": [3, 8]},
    "deberta": {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "max_relative_positions": 8},
    "deberta-v2": settings("relative_attention=True pos_att_type=['c2p','p2c'] max_relative_positions=16 position_buckets=4"),
    "ministral3": {
        "rope_parameters": settings("""
        rope_type='default' rope_theta=20000.0 original_max_position_embeddings=4 llama_4_scaling_beta=0.1
    """)
    },
    "mistral4": {
        "rope_parameters": settings("""
        type='yarn' rope_theta=20000.0 factor=8.0 original_max_position_embeddings=4 beta_fast=0.5 beta_slow=0.001 mscale=1.0
        mscale_all_dim=1.0 llama_4_scaling_beta=0.1
    """)
    },
    "llama4_text": {"floor_scale": 4, "attn_scale": 0.3},
    **{name: {"window_size": 56} for name in ("qwen2_5_vl_vision", "qwen2_5_omni_vision_encoder", "exaone4_5_vision")},
    **{name: {"patch_size": 8, "window_size": 2} for name in SAM.split()},
    "mllama_vision_model": {
        "patch_size": 8,
        "attention_heads": 4,
        "num_global_layers": 2,
        "intermediate_layers_indices": [1, 2],
    },
    "videoprism_vision_model": settings("num_spatial_layers=3 num_temporal_layers=2 num_frames=5 tubelet_size=[1,8,8]"),
    "sam2_hiera_det_model": settings("""
        hidden_size=32 blocks_per_stage=[1,2,2] embed_dim_per_stage=[32,64,96] num_attention_heads_per_stage=[1,2,6]
        window_size_per_stage=[4,2,2] global_attention_blocks=[2] num_query_pool_stages=2
    """),
    "pvt": {"image_size": 64, "depths": [2, 1, 2, 1], "hidden_sizes": [32, 64, 64, 96], "num_attention_heads": [1, 2, 4, 6]},
    "groupvit_vision_model": {"depths": [2, 1, 2], "num_group_tokens": [6, 3, 0], "num_output_groups": [6, 3, 0]},
    "sam3_vit_model": {"patch_size": 8, "window_size": 2, "pretrain_image_size": 16},
    "gpt_neo": {"attention_types": [[["global", "local"], 6], [["global"], 1]], "window_size": 5},
    "dpt": {"backbone_config": None},
    "moonshine": {"encoder_num_hidden_layers": 3, "decoder_num_hidden_layers": 3, "decoder_num_attention_heads": 8},
    **{
        name: {"num_encoder_blocks": 4, "sr_ratios": [2, 2, 1, 1], "strides": [4, 2, 1, 1]}
        for name in ("glpn", "pvt_v2", "segformer")
    },
    "seggpt": {"image_size": [64, 32]},
    **{
        name: {"prediction_length": TOKENS, "lags_sequence": [1, 2], "num_time_features": 1, "d_model": 64, **more}
        for name, more in (("informer", {"attention_type": "full"}), ("time_series_transformer", {}))
    },
    **{name: {"cross_attn_k": 1} for name in ("blt_local_encoder", "blt_local_decoder")},
    "moonshine_streaming": {"num_key_value_heads": 4, "encoder_config": {"hidden_size": 64}},
    "trocr": {"is_decoder": True},
    "cpmant": settings("prompt_length=5 segment_types=3 dim_head=16 position_bias_num_buckets=8 position_bias_max_distance=16")
    | {"init_std": 0.1},
    "dots3_note_text": settings(
        "sliding_window=5 swa_num_attention_heads=2 swa_num_key_value_heads=2 swa_kv_lora_rank=24 swa_q_lora_rank=32"
    ),
    "dots3_note_audio_encoder": settings("adapter_input_size=64 downsample_hidden_size=8 adapter_out_dim=64"),
    "dia_decoder": settings("cross_num_attention_heads=8 cross_num_key_value_heads=4 cross_head_dim=12 cross_hidden_size=64"),
    **{
        name: {"num_conv_pos_embeddings": 6}
        for name in ("wav2vec2", "hubert", "sew", "unispeech", "unispeech-sat", "wavlm", "sew-d")
    },
    "data2vec-audio": {"num_conv_pos_embeddings": 2, "conv_pos_kernel_size": 5},
    "granite_speech5_encoder": {"context_size": 6, "head_dim": 16, "num_key_value_heads": 4},
    **{
        name: {"context_size": 6, "dim_head": 16, "num_heads": 4, "hidden_dim": 64, "num_layers": 3}
        for name in ("granite_speech_encoder", "granite_speech_plus_encoder")
    },
    "gemma3n_audio": settings("""
        conf_attention_chunk_size=4 conf_attention_context_left=5 conf_num_attention_heads=4 conf_num_hidden_layers=3
        conf_attention_logit_cap=0.02
    """),
    "gemma4_audio": settings("attention_chunk_size=4 attention_context_left=5 attention_logit_cap=0.02")
    | {"use_clipped_linears": False},
    "phi4_multimodal_audio": settings("""
        chunk_size=-1 num_blocks=3 bias_max_distance=4 ext_pw_out_channel=64 depthwise_separable_out_channel=64
        nemo_conv_channels=16
    """),
    "lilt": {"hidden_size": 96},
    "qwen2_5_omni_dit": settings("mel_dim=64 repeats=1 num_embeds=64 look_ahead_layers=[1,3] look_backward_layers=[2,3]"),
    "hiera": settings("""
        image_size=[32,32] depths=[2,2,1] embed_dim=32 num_heads=[1,2,4] masked_unit_size=[4,4] num_query_pool=2
        masked_unit_attention=[True,False,False]
    """),
    "levit": settings("image_size=80 depths=[2,2,1] attention_ratio=[1,1,1] key_dim=[16,8,16]"),
    "bridgetower_vision_model": {"hidden_size": 192},
    "clvp_encoder": {"hidden_size": 192, "projection_dim": 64},
    "unlimited_ocr_text": {"num_key_value_heads": 4},
    "dots3_note_vision_encoder": {"num_hidden_layers": 42, "adapter_in_dim": 64},
    "granite_docling_vision": {"patch_size": 8},
    "kyutai_speech_to_text": {"audio_pad_token_id": 3},
    "moshi_depth": {"num_codebooks": TOKENS, "audio_vocab_size": 64, "max_position_embeddings": TOKENS},
    "tvp": {"num_frames": 2, "max_img_size": 192, "visual_prompt_size": 32}
    | {"backbone_config": {"model_type": "resnet", "out_features": ["stage4"], "hidden_sizes": [8, 8, 16, 16]}},
    "idefics_perciever": {"use_resampler": True, "resampler_n_latents": 7, "qk_layer_norms_perceiver": True},
    "vjepa2": settings("patch_size=8 crop_size=32 frames_per_clip=4 pred_hidden_size=32 pred_num_attention_heads=2")
    | {"pred_num_hidden_layers": 3, "num_hidden_layers": 4},
    "speecht5": {"encoder_max_relative_position": 4},
    "wav2vec2-bert": {"left_max_position_embeddings": 7, "right_max_position_embeddings": 4},
    **{
        name: {"speech_encoder_layers": 3, "speech_encoder_attention_heads": 8, "add_adapter": False, **more}
        | {f"t2u_{stack}": size for stack, size in SIZES.items() if re.match("(en|de)coder_(layers|ffn)", stack)}
        | {"t2u_encoder_layers": 2, "t2u_encoder_attention_heads": 2, "t2u_decoder_attention_heads": 8}
        for name, more in (("seamless_m4t", {}), ("seamless_m4t_v2", OF_CHUNKS))
    },
    "step3p5_vision": {"patch_size": 8},
    "idefics2_perceiver": {"resampler_n_latents": 7},
    "perceiver": settings("num_latents=7 d_latents=64 d_model=48 qk_channels=32 v_channels=64 num_self_attends_per_block=3"),
    "reformer": {
        **{"axial_pos_shape": [8, 4], "axial_pos_embds_dim": [24, 40]},
        **settings("attention_head_size=16 local_attn_chunk_length=4 lsh_attn_chunk_length=4 num_buckets=2"),
    },
    **{name: {"max_source_positions": 48, "num_mel_bins": 96, "n_window": 48} for name in FEATURES_FIRST.split()},
    "vivit": {"num_frames": 4},
    **{
        name: {"upsample_groups": 64, "num_filters": 8}
        for codec in ("mimi", "pocket_tts_audio_tokenizer")
        for name in (codec, f"{codec}_encoder", f"{codec}_decoder")
    },
    "hunyuan_vl_text": {"head_dim": 16, "rope_parameters": {"rope_theta": 20000.0, "mrope_section": [2, 2, 2, 2]}},
    "rf_detr_dinov2": {"num_windows": 2, "image_size": 64, "window_block_indexes": [0, 1, 3]},
    "lw_detr_vit": {"num_windows": 4, "image_size": 64, "window_block_indices": [0, 1, 3]},
    **{name: {"num_key_value_heads": 4} for name in ("nemotron3_diarization_audio", "nemotron3_5_transcribe_asr_audio")},
    "nemotron3_5_transcribe_word_timestamp": {"num_key_value_heads": 4, "blank_token_id": 3},
    "inkling2_vision": {"spatial_merge_size": 1},
    "mobilebert": {"intra_bottleneck_size": 32},
    **{name: {"attention_type": "original_full"} for name in ("big_bird", "bigbird_pegasus")},
    **{
        name: {"num_queries": 7, "d_model": 64, "image_size": 96}
        for name in ("conditional_detr", "deformable_detr", "detr", "table-transformer")
    },
    "dab-detr": {"num_queries": 7, "hidden_size": 64, "image_size": 96},
    "sam3_detr_decoder": {"num_queries": 7, "num_layers": 3},
    "sam3_lite_text_detr_decoder": {"num_queries": 7, "num_layers": 3},
    **{name: {"backbone_config": None, "encoder_layers": 1, "image_size": 128} for name in HYBRID_ENCODERS.split()},
    "mpnet": {"relative_attention_num_buckets": 32, "pad_token_id": 1},
    **{name: {"attention_window": 6} for name in ("longformer", "led")},
    "longt5": {"local_radius": 3},
    "prophetnet": settings("""
        num_encoder_layers=3 num_decoder_layers=3 num_decoder_attention_heads=8 num_buckets=8 relative_max_distance=16
    """),
    "layoutlmv3": settings("coordinate_size=8 shape_size=16 input_size=32 rel_pos_bins=8 max_rel_pos=16 rel_2d_pos_bins=16"),
    "udop": {"relative_attention_num_buckets": 32, "relative_attention_max_distance": 128, "max_2d_position_embeddings": 500},
    "pix2struct_text_model": {"num_heads": 4, "initializer_range": 0.02},  # which its class has not, and its module reads
    "pix2struct_vision_model": {"initializer_range": 0.5},
    **{name: {"use_relative_position_bias": True, "patch_size": 8} for name in ("beit", "data2vec-vision")},
    **{name: {"pos_emb_height": 3, "pos_emb_width": 3} for name in ("muse_glimmer_vision", "muse_spark_vision")},
    "minimax_m3_vl_text": {"layer_types": ["full_attention", "minimax_m3_sparse"] * 6 + ["full_attention"]},
    "deepseek_v4": {"compress_rates": {"compressed_sparse_attention": 4, "heavily_compressed_attention": 3}},
}
STACKS_ALONE = {  # the stack that is described apart from the other parts of its model
    "cohere_asr": "CohereAsrDecoder",
    "csm": "CsmBackboneModel",
    "funnel": "FunnelModel",
    "moonshine_streaming": "MoonshineStreamingDecoder",
    "pp_chart2table_vision": "GotOcr2VisionEncoder",
    "videomae": "VideoMAEForPreTraining",
    "vit_mae": "ViTMAEForPreTraining",
}
WITH_CHANNELS = ("pocket", "mimi", "pe_audio_encoder")  # of the sound
CROSSING = (
    "blip_2_qformer musicgen_decoder canary_decoder cohere_asr dia_decoder moonshine_streaming instructblip_qformer "
    "instructblipvideo_qformer pix2struct_text_model pp_formulanet_text trocr blip_text_model"
)
CODEBOOKS = {"csm": 32, "dia_decoder": 9, "kyutai_speech_to_text": 33}
ANY_PICTURE = ("dinov3_vit", "step3p5_vision", "pixtral", *HYBRID_ENCODERS.split())  # which take a picture that is no square
NORM = re.compile(r"^(q|k|qk|query|key|q_b|kv)_?(layer)?_?norms?$")
POSITIONS = re.compile(
    r"^(embed_positions|pos_emb|(char_)?position_embeddings?|wpe|positions_embed|position_embeds_layer|row_embedder|column_embedder)$"
)
TABLES_OF_T5 = re.compile(
    r"\.(relative_attention_bias|rel_attn_embed|bias_values|pe_k)$|(?<=rel_pos_bias)$|(?<=rel_pos_[xy]_bias)$"
)
STATES = re.compile(
    r"^(causal_conv1d_fn|mamba2_chunk_scan|mamba_selective_scan|torch_chunk_gated_delta_rule|chunk_kimi_delta_attention)$"
)
ROTATION = re.compile(r"^_?((vision_)?apply_(rotary|multidimensional_rope|rotary_time)|rotate_queries_or_keys)")


BIASES = {
    "build_mpt_alibi_tensor": "alibi",
    "build_relative_position": "deberta",
    "rel_shift_bnij": "xlnet",
}


class Turn(NamedTuple):
    """One call of a function that rotates: one array before and after it, `(batch, heads, tokens, features)`."""

    layer: str
    function: str
    before: np.ndarray
    after: np.ndarray


class Attention(NamedTuple):
    """One call through the AttentionInterface; `keywords` hold scaling, sliding_window, softcap, sinks and the rest."""

    layer: str
    module: Any
    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    mask: np.ndarray | None
    keywords: dict
    output: np.ndarray


class Table(NamedTuple):
    """One table of a rotary module: its frequencies in float32 and what multiplies cosine and sine."""

    module: str
    layer_type: str | None
    frequencies: np.ndarray
    magnitude: float


class Norm(NamedTuple):
    """One norm of queries or keys: an array before and after it."""

    layer: str
    before: np.ndarray
    after: np.ndarray


class Bias(NamedTuple):
    """One call of a function that makes biases or places of the scores: its first array and its result."""

    kind: str
    function: str
    given: np.ndarray
    result: np.ndarray
    rounded: bool


class State(NamedTuple):
    """One call of a function that computes a state or a short convolution: its arguments by their names, and the result."""

    layer: str
    module: Any
    function: str
    given: dict
    result: np.ndarray


class Softmax(NamedTuple):
    """One softmax of an attention: its scores and weights; five axes where queries are in blocks."""

    layer: str
    module: Any
    scores: np.ndarray
    weights: np.ndarray


class Record(NamedTuple):
    """`projected` is what the projections of queries and keys gave, call by call, by their names; `bias_tables` those of
    T5, `offset_tables` those of BEiT; `states` what layers with a state computed, and `linears` what went into the linear
    layers and came out, by their names; `boxes` those of the tokens.
    """

    turns: list
    attentions: list
    tables: list
    norms: list
    biases: list
    projected: dict
    bias_tables: dict
    offset_tables: dict
    softmaxes: list
    states: list
    linears: dict
    boxes: np.ndarray | None


def types():
    """All model types that the installed transformers has a configuration for."""
    return sorted(CONFIG_MAPPING_NAMES)


def keys(model_type):
    """The keys of a small configuration file of this type: the sizes above wherever its class has them."""
    return {"model_type": model_type, **_sizes(CONFIG_MAPPING[model_type]), **SPECIAL.get(model_type, {})}


def tiny(model_type, **changes):
    """A small configuration of this type, from the keys of its file."""
    return configuration({**keys(model_type), **changes})


def configuration(file):
    """What transformers makes of the keys of a file."""
    with quiet():
        return CONFIG_MAPPING[file["model_type"]](
            **{key: value for key, value in copy.deepcopy(file).items() if key != "model_type"}
        )


def build(configuration, *, device="cpu", seed=0):
    """The module of this configuration in float32, with random weights; ValueError if transformers maps it to no module."""
    mapped = type(configuration) in MODEL_MAPPING
    inside = configuration.model_type in INNER
    alone = configuration.model_type in STACKS_ALONE or not mapped
    kind = _class_of(type(configuration)) if alone and not inside else AutoModel
    torch.manual_seed(seed)
    with quiet(), torch.device(device):
        make = kind.from_config if kind is AutoModel else kind._from_config
        given = {"attn_implementation": "eager", "dtype": torch.float32}
        model = _inner_module(configuration) if inside else make(configuration, **given).eval()
    if configuration.model_type == "qwen2_5_omni_dit":  # which does not run with eager attention
        model.config._attn_implementation = "sdpa"
    for name, weight in model.named_parameters() if device == "cpu" else ():
        if (
            re.search(r"pos_|position|bias_[uv]|per_dim|attention_biases", name) and not weight.any()
        ):  # a table that begins as zeros would show nothing
            torch.nn.init.normal_(weight)
    return model


def _inner_module(configuration):
    """A module that transformers makes only inside of another model."""
    configuration._attn_implementation = "eager"
    model = INNER[configuration.model_type](configuration).eval()
    model.config, model.main_input_name = configuration, next(iter(inspect.signature(model.forward).parameters))
    return model


def _resampler(configuration):
    whole = CONFIG_MAPPING["idefics"](perceiver_config=configuration, vision_config={"embed_dim": 64})
    configuration.hidden_size = 64  # of its context
    sizes = (getattr(configuration, f"resampler_{name}") for name in ("depth", "n_heads", "head_dim", "n_latents"))
    return perceiver.IdeficsPerceiverResampler(whole, 64, *sizes)


def _boxes(configuration):
    """SAM 3's encoder of boxes; without torchvision, numbers made of a box replace the picture's features inside the box."""
    home = importlib.import_module(configuration.__module__.replace("configuration_", "modeling_"))
    stand_in = lambda x, boxes, size: boxes[0].sum(-1)[:, None, None, None].expand(-1, x.shape[1], size, size)  # noqa: E731
    if not hasattr(home, "torchvision"):
        home.torchvision = SimpleNamespace(ops=SimpleNamespace(roi_align=stand_in))
    return getattr(home, type(configuration).__name__.removesuffix("Config"))(configuration)


class _Frames(torch.nn.Module):
    """The stacks of X-CLIP for the patches of each frame and for the frames, as XCLIPModel calls them."""

    def __init__(self, configuration):
        super().__init__()
        given = {"vision_config": configuration.to_dict(), "projection_dim": configuration.mit_hidden_size}
        whole = AutoModel.from_config(CONFIG_MAPPING["xclip"](**given), attn_implementation="eager")
        self.vision_model, self.visual_projection, self.mit = whole.vision_model, whole.visual_projection, whole.mit

    def forward(self, pixel_values):
        return self.mit(self.visual_projection(self.vision_model(pixel_values).pooler_output)[None])


class _Translation(torch.nn.Module):
    """All stacks of Seamless M4T; SeamlessM4TModel calls the stacks of units only in generate()."""

    def __init__(self, configuration):
        super().__init__()
        whole = AutoModel.from_config(configuration, attn_implementation="eager")
        self.text_encoder, self.text_decoder, self.speech_encoder = whole.text_encoder, whole.text_decoder, whole.speech_encoder
        if configuration.model_type == "seamless_m4t_v2":  # whose eager attention does not hide other chunks
            of_sound = copy.deepcopy(configuration)
            of_sound._attn_implementation = "sdpa"
            self.speech_encoder = type(whole.speech_encoder)(of_sound)
        self.t2u_encoder, self.t2u_decoder = whole.t2u_model.model.encoder, whole.t2u_model.model.decoder

    def forward(self, input_ids, input_features, attention_mask=None):
        self.speech_encoder(input_features)
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        x = self.text_encoder(input_ids, attention_mask=attention_mask)[0]
        given = {"attention_mask": attention_mask, "encoder_attention_mask": attention_mask, "use_cache": False}
        x = self.text_decoder(input_ids, encoder_hidden_states=x, **given)[0]
        x = self.t2u_encoder(inputs_embeds=x, attention_mask=attention_mask)[0]
        if self.config.model_type == "seamless_m4t":
            self.t2u_decoder(input_ids, encoder_hidden_states=x, **given)
        else:  # two characters for each token
            characters = input_ids[mask == 1].repeat_interleave(2)[None]
            self.t2u_decoder(char_input_ids=characters, char_count_per_id=2 * mask, encoder_hidden_states=x)


INNER = {
    **dict.fromkeys(("seamless_m4t", "seamless_m4t_v2"), _Translation),
    "idefics_vision": vision.IdeficsVisionTransformer,
    "idefics_perciever": _resampler,
    "xclip_vision_model": _Frames,
    **dict.fromkeys(("sam3_geometry_encoder", "sam3_lite_text_geometry_encoder"), _boxes),
}


def run(model, inputs=None):
    """Record one forward pass."""
    inputs = inputs or inputs_of(model)
    boxes = inputs["bbox"][0].numpy() if "bbox" in inputs else None
    record = Record([], [], tables(model), [], [], {}, bias_tables(model), offset_tables(model), [], [], {}, boxes)
    with _recording(model, record), quiet(), torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
        model(**inputs)
    return record


def states_of(output):
    """The hidden states of an output, which may be they alone."""
    return output if torch.is_tensor(output) else getattr(output, "vision_output", output.get("last_hidden_state"))


def left_padded(model, padding=3):
    """The same inputs with a mask whose first tokens are padding, and the identifiers of padding there."""
    inputs = inputs_of(model)
    mask = (torch.arange(TOKENS) >= padding).long()[None]
    kept = (mask == 1).reshape(1, TOKENS, *[1] * (inputs["input_ids"].ndim - 2))  # Bark has rows of several tokens
    ids = torch.where(kept, inputs["input_ids"], getattr(model.config, "pad_token_id", None) or 0)
    mask = torch.cat([torch.ones_like(mask), mask], dim=1) if "query_embeds" in inputs else mask
    changed = {"input_ids": ids, "attention_mask": mask, "decoder_input_ids": ids, "decoder_attention_mask": mask}
    names = inspect.signature(model.forward).parameters
    return inputs | {name: value for name, value in changed.items() if name in names}


def grid_of(model, inputs):
    """Rows and columns of the patches of the picture of these inputs; None without one."""
    if "pixel_position_ids" in inputs:
        return POOLED
    if any("grid" in name for name in inputs):
        return GRID
    patch = getattr(model.config, "patch_size", None)
    pictured = "pixel_values" in inputs and isinstance(patch, int)
    return tuple(side // patch for side in inputs["pixel_values"].shape[-2:]) if pictured else None


def step(model, cached):
    """The inputs of the tokens after `cached` ones, with the cache that these leave; None for a module without a cache."""
    inputs = inputs_of(model)
    if not {"input_ids", "use_cache", "past_key_values"} <= set(inspect.signature(model.forward).parameters):
        return None
    crossing = "encoder_hidden_states" in inputs  # two caches, as generate() makes them
    given = {"past_key_values": EncoderDecoderCache(DynamicCache(), DynamicCache())} if crossing else {}
    with quiet(), torch.no_grad():
        found = model(**{**inputs, **given, "input_ids": inputs["input_ids"][:, :cached], "use_cache": True})
    cache = getattr(found, "past_key_values", None)
    return cache and {**inputs, "input_ids": inputs["input_ids"][:, cached:], "use_cache": True, "past_key_values": cache}


def rows_read(model, inputs):
    """Which rows of its position tables a model reads, by the name of the table: each row holds its number, and ones."""
    found, handles = {}, []
    for name, table in position_tables(model).items():
        table.fill_(1)
        table[:, 0] = torch.arange(len(table))
        module = model.get_submodule(name)
        handles.append(module.register_forward_hook(lambda _, __, y, name=name: found.update({name: _rows(y)})))
    with quiet(), torch.no_grad():
        model(**inputs)
    for handle in handles:
        handle.remove()
    return found


def position_tables(model):
    """{name of the module: its table} of the tables of positions at the input."""
    found = {}
    for name, module in model.named_modules():
        values = [*module.parameters(recurse=False), *module.buffers(recurse=False)]
        tables = [value for value in values if value.ndim == 2 and len(value) > TOKENS and value.is_floating_point()]
        if POSITIONS.search(name.split(".")[-1]) and len(tables) == 1:
            found[name] = tables[0].detach()
    return found


def _rows(y):
    """The numbers, whatever the rows are multiplied by."""
    y = _array(y[0] if isinstance(y, tuple) else y)
    return np.rint(y[..., 0] / y[..., 1]).reshape(-1).astype(int)


INPUTS = {
    "input_features": lambda configuration: torch.randn(1, 96, _features(configuration)),
    "flattened_patches": lambda configuration: torch.cat(
        [torch.cartesian_prod(*map(torch.arange, GRID))[None], torch.randn(1, 24, configuration.patch_embed_hidden_size)], dim=2
    ),
    "input_values": lambda configuration: _samples(configuration),
    "past_values": lambda configuration: _series(configuration),
    "latents": lambda configuration: torch.randn(1, configuration.hidden_size, 24),
    "query_embeds": lambda configuration: torch.randn(1, TOKENS, configuration.hidden_size),
    "inputs": lambda configuration: torch.randn(1, TOKENS, configuration.d_model),
    "image": lambda configuration: torch.randn(1, 3, *2 * [configuration.image_size]),
    "context": lambda configuration: torch.randn(1, TOKENS, configuration.hidden_size),
    "prompt_pixel_values": lambda configuration: torch.randn(
        1, 3, configuration.image_size[0] // 2, configuration.image_size[1]
    ),
    "pixel_values_videos": lambda configuration: torch.randn(1, 2, 3, *2 * [getattr(configuration, "image_size", 32)]),
    "audio_mel": lambda configuration: torch.randn(1, 96, _features(configuration)),
    "hidden_states": lambda configuration: torch.randn(
        1, TOKENS * getattr(configuration, "time_reduction", 1), _inner(configuration)
    ),
}


def _samples(configuration):
    """Samples of sound; PE takes many for a frame."""
    many = configuration.model_type == "pe_audio_encoder"
    return torch.randn(1, *[1] * configuration.model_type.startswith(WITH_CHANNELS), 24000 if many else 4000)


def _series(configuration):
    """A series of numbers in patches: as many patches as tokens, and of PatchTST as its configuration says, per channel."""
    if configuration.model_type == "patchtst":
        return torch.randn(1, configuration.context_length, configuration.num_input_channels)
    return torch.randn(1, TOKENS * getattr(configuration, "patch_length", 1))


def _inner(configuration):
    """Features of what enters the layers, or of a frame of sound."""
    names = ("input_dim", "input_size", "hidden_size")
    return next(getattr(configuration, name) for name in names if hasattr(configuration, name))


def _features(configuration):
    """Features of a frame of sound; Granite Speech 5 stacks four frames."""
    stacked = 4 if configuration.model_type == "granite_speech5_encoder" else 1
    names = ("feature_projection_input_dim", "input_size", "input_feat_per_channel", "num_mel_bins", "input_feat_size")
    return stacked * next(filter(None, (getattr(configuration, name, None) for name in names)), 128)


def inputs_of(model):
    """Arguments for one forward pass: tokens 0 .. TOKENS-1, or what an encoder of pictures or sound asks for."""
    names = inspect.signature(model.forward).parameters
    configuration = model.config
    ids = torch.arange(3, 3 + TOKENS)[None]
    needed = {name for name, each in names.items() if each.default is inspect.Parameter.empty} | {model.main_input_name}
    needed |= {"flattened_patches"} & {*names}
    needed |= {"query_embeds"} if configuration.model_type.endswith("qformer") else set()
    inputs = {name: INPUTS[name](configuration) for name in INPUTS if name in needed}
    if "input_ids" in names:
        inputs["input_ids"] = ids
    elif "inputs_embeds" in names and not needed & {*INPUTS, "pixel_values"}:
        inputs["inputs_embeds"] = torch.randn(1, TOKENS, configuration.hidden_size)
    if configuration.model_type == "audio-spectrogram-transformer":
        inputs["input_values"] = torch.randn(1, configuration.max_length, configuration.num_mel_bins)
    if "input_features_mask" in names and "input_features" in inputs:
        inputs["input_features_mask"] = torch.ones(1, 96, dtype=torch.long)
    if "spatial_shapes" in names and "vision_pos_encoding" not in names:
        pixels = configuration.num_channels * configuration.patch_size**2
        inputs |= {"pixel_values": torch.randn(1, 24, pixels), "pixel_attention_mask": torch.ones(1, 24, dtype=torch.long)}
        inputs["spatial_shapes"] = torch.tensor([GRID])
    if "chunk_sample_lengths" in names:
        inputs["input_features"] = torch.randn(1, configuration.feature_size, 8 * TOKENS)
        inputs["chunk_sample_lengths"] = torch.tensor([8 * TOKENS * configuration.hop_length])
    if "audio_mel" in inputs:
        inputs["audio_mel_mask"] = torch.zeros(1, 96, dtype=torch.bool)
    if configuration.model_type == "tvp":
        inputs["pixel_values"] = torch.randn(1, configuration.num_frames, 3, *2 * [configuration.max_img_size])
    if "visual_feats" in names:
        sizes = {"visual_feats": configuration.visual_feat_dim, "visual_pos": configuration.visual_pos_dim}
        inputs |= {name: torch.rand(1, TOKENS, size) for name, size in sizes.items()}
    if "feature_lens" in names:
        inputs = {"input_features": torch.randn(configuration.num_mel_bins, 48), "feature_lens": torch.tensor([48])}
    if configuration.model_type in CODEBOOKS:  # a row of tokens for each codebook, side by side
        inputs["input_ids"] = ids[..., None].repeat(1, 1, CODEBOOKS[configuration.model_type])
    if configuration.model_type == "mgp-str":
        inputs["pixel_values"] = torch.randn(1, 3, *configuration.image_size)
    if configuration.model_type == "idefics":
        inputs |= {"image_encoder_embeddings": torch.randn(1, 1, 4, 64), "image_attention_mask": torch.ones(1, 1, 1)}
    if configuration.model_type == "speecht5":
        inputs = {name: torch.randn(1, TOKENS, configuration.hidden_size) for name in ("input_values", "decoder_input_values")}
    if "vision_pos_embeds" in names:
        home = importlib.import_module(type(model).__module__)
        sine = getattr(home, type(model).__name__.replace("DetrEncoder", "SinePositionEmbedding"))
        picture = torch.randn(1, configuration.hidden_size, *GRID)
        given = sine(configuration.hidden_size // 2, normalize=True)(picture.shape, picture.device, picture.dtype)
        inputs = {"vision_features": [picture], "vision_pos_embeds": [given]}
        inputs["text_features"] = torch.randn(1, TOKENS, configuration.hidden_size)
    if "box_embeddings" in names:
        inputs = {"box_embeddings": torch.rand(1, TOKENS, 4), "box_labels": torch.zeros(1, TOKENS)}
        inputs["box_mask"] = torch.ones(1, TOKENS, dtype=torch.bool)
        inputs["img_feats"] = inputs["img_pos_embeds"] = [torch.randn(1, configuration.hidden_size, *GRID)]
    if "vision_pos_encoding" in names:
        extents = {"vision_features": 24, "vision_pos_encoding": 24, "text_features": TOKENS}
        inputs = {name: torch.randn(1, extent, configuration.hidden_size) for name, extent in extents.items()}
        inputs["spatial_shapes"] = torch.tensor([GRID])
    if configuration.model_type == "moshi_depth":
        inputs["last_hidden_state"] = torch.randn(1, TOKENS, configuration.input_size)
    if configuration.model_type == "vjepa2":
        side = configuration.crop_size
        inputs["pixel_values_videos"] = torch.randn(1, configuration.frames_per_clip, 3, side, side)
    if configuration.model_type == "funnel":
        inputs["token_type_ids"] = torch.tensor([SEGMENTS])
    if "quantized_code" in names:
        inputs["condition_vector"] = torch.randn(1, 24, configuration.mel_dim)
        inputs["speaker_embedding"] = torch.randn(1, TOKENS, configuration.enc_emb_dim)
        inputs |= {"quantized_code": ids, "time_step": torch.rand(()), "apply_cfg": False}
    if configuration.model_type == "phi4_multimodal_audio":
        inputs["mask"] = None
    if {"context", "attention_mask"} <= {*names} or "lengths" in names:  # XLM counts tokens of padding without a mask
        inputs["attention_mask"] = torch.ones(1, TOKENS, dtype=torch.long)
    if configuration.model_type.startswith("blt_local"):  # patches of two bytes, as attention over bytes reads them
        inputs |= {"inputs_embeds": torch.randn(1, TOKENS, 64), "num_patches": 6, "patch_ids": torch.arange(TOKENS)[None] // 2}
        inputs["patch_embeds"] = torch.randn(1, 6, getattr(configuration, "hidden_size_global", 64))
        inputs = {name: value for name, value in inputs.items() if name in names}
    if configuration.model_type == "fine_acoustics":
        inputs |= {"codebook_idx": 1, "input_ids": ids[..., None].repeat(1, 1, configuration.n_codes_total)}
    if "future_time_features" in names:
        past, future = torch.randn(1, TOKENS + 2), torch.randn(1, TOKENS)
        inputs = {"past_values": past, "past_time_features": past[..., None], "past_observed_mask": torch.ones_like(past)}
        inputs |= {"future_values": future, "future_time_features": future[..., None]}
    if configuration.model_type == "seggpt":
        inputs["prompt_masks"] = inputs["pixel_values"] = inputs["prompt_pixel_values"]
    if configuration.model_type.startswith("musicgen"):  # a row of tokens for each codebook
        inputs["input_ids"] = ids.repeat(configuration.num_codebooks, 1)
    if "decoder_input_ids" in names:
        inputs["decoder_input_ids"] = ids
    if configuration.model_type in CROSSING.split():
        inputs["encoder_hidden_states"] = torch.randn(1, TOKENS + 2, getattr(configuration, "encoder_hidden_size", 64))
    if "grid_thw" in names or "image_grid_thw" in names:
        grid = "grid_thw" if "grid_thw" in names else "image_grid_thw"
        first = next(iter(names))
        frames = 2 if configuration.model_type == "minimax_m3_vl_vision" else 1
        inputs[grid] = torch.tensor([[frames, *GRID]])
        inputs[first] = torch.randn(24 * frames, *_patch(model))
        if configuration.model_type == "paddleocr_vl_vision":
            inputs[first] = inputs[first].reshape(1, 24, 3, *2 * [configuration.patch_size])
        if configuration.model_type == "inkling2_vision":
            inputs[first] = inputs[first].reshape(24, configuration.patch_size, -1, 3)
        if "merge_sizes" in names:
            inputs["merge_sizes"] = torch.tensor([1])
    elif "pixel_position_ids" in names:
        rows, columns = POOLED
        inputs["pixel_values"] = torch.rand(1, rows * columns, *_patch(model))
        inputs["pixel_position_ids"] = torch.tensor([[[x, y] for y in range(rows) for x in range(columns)]])
    elif "pixel_values" in names and (not inputs or configuration.model_type == "vilt"):
        side = getattr(configuration, "image_size", 32)
        side = side if isinstance(side, int) else 32
        width = 3 * side // 2 if configuration.model_type in ANY_PICTURE else side
        inputs["pixel_values"] = torch.randn(1, getattr(configuration, "num_channels", 3), side, width)
        if configuration.model_type == "xclip_vision_model":
            inputs["pixel_values"] = inputs["pixel_values"].repeat(configuration.num_frames, 1, 1, 1)
        if configuration.model_type in ("timesformer", "videomae", "vivit"):
            inputs["pixel_values"] = inputs["pixel_values"].repeat(1, configuration.num_frames, 1, 1, 1)
        if configuration.model_type == "videomae":
            tubes = configuration.num_frames // configuration.tubelet_size
            inputs["bool_masked_pos"] = torch.arange(tubes * (side // configuration.patch_size) ** 2)[None] % 2 == 0
    if "past_values_padding" in names:
        inputs |= {"past_values_padding": torch.zeros_like(inputs["past_values"]), "freq": torch.zeros(1, 1, dtype=torch.long)}
    if "aspect_ratio_ids" in names:
        tiles = configuration.max_num_tiles
        inputs["pixel_values"] = inputs["pixel_values"].expand(1, 1, tiles, -1, -1, -1)
        inputs |= {"aspect_ratio_ids": torch.ones(1, 1, dtype=torch.long), "aspect_ratio_mask": torch.ones(1, 1, tiles)}
    if configuration.model_type == "videoprism_vision_model":
        side = configuration.image_size
        inputs["pixel_values_videos"] = torch.randn(1, configuration.num_frames, configuration.num_channels, side, side)
    if "target_sizes" in names:  # patches side by side
        side = configuration.patch_size
        inputs["pixel_values"] = torch.randn(1, configuration.num_channels, side, side * GRID[0] * GRID[1])
        inputs |= {"target_sizes": torch.tensor([GRID]), "use_vit_merger": False}
    if "use_cache" in names:
        inputs["use_cache"] = False
    if "bbox" in names:  # x0, y0, x1, y1, from 0 to 1 in UDOP
        corners = torch.rand(1, TOKENS, 2, 2).sort(dim=2).values.flatten(2)
        inputs["bbox"] = corners if configuration.model_type in ("bros", "udop") else (1000 * corners).long()
    return inputs


def _patch(model):
    """The shape of a patch of a picture: what the first weight of an encoder takes, pixels if it is a convolution of one."""
    weights = {
        name: weight for name, weight in model.named_parameters() if re.search("patch|^embed", name) and weight.ndim >= 2
    }
    named = (weights[name] for name in weights if re.search(r"proj|patch_embedding\.weight", name))
    weight = next(named, next(iter(weights.values())))
    return weight.shape[1:] if type(model).__name__.startswith("Kimi") else (weight[0].numel(),)


def tables(model):
    """The tables of every rotary module of a model, made afresh on the CPU where the model has only shapes."""
    found = []
    for name, module in model.named_modules():
        buffers = {key: value for key, value in module.named_buffers(recurse=False) if key.endswith("inv_freq")}
        if buffers and any(value.is_meta for value in buffers.values()):
            with quiet():
                module = type(module)(module.config)
            buffers = {key: value for key, value in module.named_buffers(recurse=False) if key.endswith("inv_freq")}
        for key, value in buffers.items():
            if "original" in key:
                continue
            kind = key.removesuffix("inv_freq").rstrip("_") or None
            magnitude = getattr(module, f"{kind}_attention_scaling" if kind else "attention_scaling", 1.0)
            found.append(Table(name, kind, value.double().numpy().ravel(), float(magnitude)))
    return found


@contextlib.contextmanager
def quiet():
    """transformers warns of much that is of no interest here."""
    transformers.logging.set_verbosity(50)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def with_states(model):
    """Whether a model has a short convolution or a lightning attention."""
    names = (type(module).__name__ for module in model.modules())
    return any(re.search("Conv1d|LightningAttention", name) for name in names)


@contextlib.contextmanager
def _recording(model, record):
    path = [""]
    handles = [hook for name, module in model.named_modules() for hook in _follow(module, name, path)]
    handles += [_watch_norm(module, name, record) for name, module in norms(model)]
    handles += [
        _watch_projection(x, name, record) for name, x in model.named_modules() if name.endswith((".q_proj", ".k_proj"))
    ]
    handles += [_watch_alibi(module, record) for module in model.modules()]
    handles += [_watch_linear(module, name, record) for name, module in model.named_modules() if _linear(module)]
    handles += _watch_inner(model, record) if with_states(model) else []
    undo = [
        *_watch_rotations(model, record, path),
        *_watch_biases(model, record),
        *_watch_attention(record, path),
        *_watch_states(model, record, path),
    ]
    try:
        with _Softmaxes(model, record, path):
            yield
    finally:
        for handle in handles:
            handle.remove()
        for owner, name, original in undo:
            setattr(owner, name, original)


def _follow(module, name, path):
    return (
        module.register_forward_pre_hook(lambda *_: path.append(name)),
        module.register_forward_hook(lambda *_: path.pop() and None, always_call=True),
    )


def norms(model):
    """(name, module) of what norms queries or keys; a norm that is switched off may be left as an identity."""
    named = ((name, module) for name, module in model.named_modules() if NORM.match(name.split(".")[-1]))
    return [(name, module) for name, module in named if not isinstance(module, torch.nn.Identity)]


def _watch_norm(module, name, record):
    layer = name.rpartition(".")[0]

    def watch(_, given, result):
        results = result if isinstance(result, tuple) else (result,)
        record.norms.extend(Norm(layer, _array(x), _array(y)) for x, y in zip(given, results, strict=True))

    return module.register_forward_hook(watch)


def _watch_rotations(model, record, path):
    homes = {type(module).__module__ for module in model.modules()}
    for home in sorted(home for home in homes if home.startswith("transformers.models.")):
        file = importlib.import_module(home)
        for name, function in list(vars(file).items()):
            if inspect.isfunction(function) and ROTATION.match(name):
                setattr(file, name, _recorded(function, name, record, path))
                yield file, name, function


def bias_tables(model):
    """Tables of T5's biases, one row per bucket and one column per head, by the name of their attention."""
    found = {
        name: _array(module.weight.T if isinstance(module, torch.nn.Linear) else module.weight)
        for name, module in bias_modules(model).items()
    }
    whole = {name: _array(x) for name, x in model.named_parameters() if name == "position_bias.relative_attention_bias"}
    return found | {f"encoder.{name}": x for name, x in whole.items()}


def offset_tables(model):
    """Tables of BEiT's biases, one row per offset of rows and columns, by their names."""
    named = model.named_parameters()
    return {name: _array(weight) for name, weight in named if name.endswith("relative_position_bias_table")}


def bias_modules(model):
    """{name of an attention, or of the table: the module that holds the table of buckets}."""
    named = ((name, module) for name, module in model.named_modules() if TABLES_OF_T5.search(name))
    return {TABLES_OF_T5.sub("", name): module for name, module in named}


def _watch_projection(module, name, record):
    def watch(_, __, y):
        record.projected.setdefault(name, []).append(_array(y))

    return module.register_forward_hook(watch)


def _watch_alibi(module, record):
    def given(_, __, keywords):
        if torch.is_tensor(keywords.get("alibi")):
            bias = _array(keywords["alibi"])
            record.biases.append(Bias("alibi", "alibi", None, bias, "Falcon" in type(module).__name__))

    return module.register_forward_pre_hook(given, with_kwargs=True)


class _Softmaxes(TorchDispatchMode):
    """Notes each softmax of an attention, also of one that does not go through the interface."""

    def __init__(self, model, record, path):
        super().__init__()
        self.model, self.record, self.path = model, record, path

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        y = function(*arguments, **(keywords or {}))
        if (
            function in (torch.ops.aten._softmax.default, torch.ops.aten._safe_softmax.default)
            and y.ndim in (3, 4, 5)
            and arguments[1] in (-1, y.ndim - 1)  # over keys
            and re.search("att", f"{self.path[-1]} {type(self.model.get_submodule(self.path[-1]))}", re.IGNORECASE)
        ):
            self.record.softmaxes.append(
                Softmax(self.path[-1], self.model.get_submodule(self.path[-1]), _array(arguments[0]), _array(y))
            )
        return y


def _linear(module):
    """A linear layer, under one of its names; a convolution of one token or patch is one too, and PyTorch's own attention."""
    return isinstance(module, (torch.nn.Linear, torch.nn.MultiheadAttention)) or re.fullmatch(
        "Conv1D|Conv1d|QuantLinear", type(module).__name__
    )


def _watch_linear(module, name, record):
    def given(_, x, y):
        if not x:  # by their names
            return
        pair = [each[0] if isinstance(each, tuple) else each for each in (x, y)]
        calls = sum(key.split()[-1] == name for key in record.linears)
        record.linears["again " * calls + name] = tuple(map(_array, pair))

    return module.register_forward_hook(given)


def _watch_biases(model, record):
    """The functions of BIASES in the files of a model, and XLNet's shift, which is a method."""
    for home in sorted(
        {type(module).__module__ for module in model.modules() if "transformers.models." in type(module).__module__}
    ):
        file = importlib.import_module(home)
        owners = [file, *(kind for kind in vars(file).values() if inspect.isclass(kind) and kind.__module__ == home)]
        for owner in owners:
            for name in set(BIASES) & set(vars(owner)):
                original = vars(owner)[name]
                function = original.__func__ if isinstance(original, staticmethod) else original
                watched = _bias_recorded(function, name, record, method=owner is not file and function is original)
                setattr(owner, name, staticmethod(watched) if function is not original else watched)
                yield owner, name, original


def _bias_recorded(function, name, record, method):
    def call(*arguments, **keywords):
        result = function(*arguments, **keywords)
        given = next((x for x in arguments[method:] if torch.is_tensor(x)), None)
        given = None if given is None else _array(given)
        record.biases.append(Bias(BIASES[name], name, given, _array(result), False))
        return result

    return call


def _recorded(function, name, record, path):
    depth = []

    def call(*arguments, **keywords):
        depth.append(name)
        before = [_array(x) for x in arguments if torch.is_tensor(x)]
        result = function(*arguments, **keywords)
        depth.pop()
        results = result if isinstance(result, tuple) else (result,)
        for x, y in zip(before, results, strict=False):
            if torch.is_tensor(y) and y.ndim in (3, 4) and x.shape == tuple(y.shape) and not depth:
                record.turns.append(Turn(path[-1], name, _heads_first(x), _heads_first(_array(y))))
        return result

    return call


def _watch_states(model, record, path):
    """The functions of STATES in the files of a model; MiniMax computes its state in the layer itself."""
    for home in sorted({type(module).__module__ for module in model.modules()}):
        file = importlib.import_module(home)
        for name in filter(STATES.match, list(vars(file))):
            original = vars(file)[name]
            setattr(file, name, _state_recorded(original, name, record, path, model))
            yield file, name, original


def _state_recorded(function, name, record, path, model):
    def call(*arguments, **keywords):
        result = function(*arguments, **keywords)
        given = inspect.signature(function).bind(*arguments, **keywords)
        given.apply_defaults()
        given = {key: _array(x) if torch.is_tensor(x) else x for key, x in given.arguments.items()}
        output = _array(result[0] if isinstance(result, tuple) else result)
        record.states.append(State(path[-1], model.get_submodule(path[-1]), name, given, output))
        return result

    return call


def _watch_inner(model, record):
    """The linear layers of a model with states, and what enters the norm of a lightning attention."""
    for name, module in model.named_modules():
        if name.endswith((".conv_1d", ".rg_lru")):
            yield module.register_forward_hook(functools.partial(_state_of_module, name, record))
        if name.endswith(".rg_lru"):  # its positions begin again after four tokens, as in a row of several texts
            yield module.register_forward_pre_hook(lambda _, given: (given[0], given[1] % 4))
        if type(module).__name__.endswith("LightningAttention"):
            yield module.norm.register_forward_pre_hook(
                lambda _, x, name=name, module=module: record.states.append(State(name, module, "lightning", {}, _array(x[0])))
            )


def _state_of_module(name, record, module, given, y):
    """Recurrent Gemma calls a convolution, whose padding is cut off afterwards, and a recurrence as modules."""
    if name.endswith("conv_1d"):
        function, y = "causal_conv1d_fn", y[..., : given[0].shape[-1]]
        more = {"weight": _array(module.weight[:, 0]), "bias": _array(module.bias)}
    else:
        function, y, more = "rg_lru", y[..., None], {"position_ids": _array(given[1])}
    record.states.append(State(name, module, function, {"hidden_states": _array(given[0]), **more}, _array(y)))


def _heads_first(x):
    """`(batch, heads, tokens, features)`: tiny models have fewer heads than tokens; encoders of pictures have no batch."""
    x = x if x.ndim == 4 else x[None]
    return x.swapaxes(1, 2) if x.shape[1] > x.shape[2] else x


def _watch_attention(record, path):
    """Attention functions, which modules take by get_interface, or by their name alone."""

    def recorded(attend):
        def call(module, query, key, value, *rest, **keywords):
            result = attend(module, query, key, value, *rest, **keywords)
            mask = keywords.pop("attention_mask", None) if not rest else rest[0]
            if torch.is_tensor(mask) and mask.ndim == 4 and mask.shape[2] == 1:  # one row for all queries
                mask = mask.expand(-1, -1, query.shape[-2], -1)
            arrays = [_array(x) if torch.is_tensor(x) else None for x in (query, key, value, mask)]
            record.attentions.append(Attention(path[-1], module, *arrays, keywords, _array(result[0])))
            return result

        call.recorded = True
        return attend if hasattr(attend, "recorded") else call

    def watch(original):
        return lambda *arguments: recorded(original(*arguments))

    for name in ("get_interface", "__getitem__"):
        original = getattr(AttentionInterface, name)
        setattr(AttentionInterface, name, watch(original))
        yield AttentionInterface, name, original


def _array(x):
    if x.is_meta:
        return np.broadcast_to(np.float32(0), tuple(x.shape))
    return x.detach().cpu().numpy().copy() if x.dtype != torch.bfloat16 else x.detach().float().cpu().numpy()


def _sizes(kind):
    """The tiny sizes that a configuration class has, under its own names; those of its parts too."""
    fields = getattr(kind, "__dataclass_fields__", {})
    spelled = {v: k for k, v in getattr(kind, "attribute_map", {}).items()}
    sizes = {}
    for name in fields:
        common = spelled.get(name, name)
        default = getattr(kind, name, None)
        if (
            common in SIZES
            and (default is not None or common in ("head_dim", "num_key_value_heads"))
            and not isinstance(default, (list, tuple, dict))
        ):
            sizes[name] = SIZES[common]
    if "kv_lora_rank" in sizes and "num_key_value_heads" in sizes:  # one latent serves every head
        sizes["num_key_value_heads"] = sizes["num_attention_heads"]
    for name, part in getattr(kind, "sub_configs_defaults", {}).items():
        config = getattr(part, "config_class", part)
        model_type = getattr(part, "model_type", None)
        if model_type in CONFIG_MAPPING_NAMES:
            sizes[name] = {"model_type": model_type, **_sizes(CONFIG_MAPPING[model_type])}
        elif isinstance(config, type) and hasattr(config, "model_type"):
            sizes[name] = _sizes(config)
    return sizes


def _class_of(configuration):
    """The model class of a part that has no entry in the automatic mapping: the one whose `config_class` it is."""
    home = configuration.__module__.replace("configuration_", "modeling_").replace("pp_chart2table", "got_ocr2")
    with quiet():
        file = importlib.import_module(home)
    found = [
        kind
        for kind in vars(file).values()
        if inspect.isclass(kind)
        and issubclass(kind, transformers.PreTrainedModel)
        and kind.__module__.rpartition(".")[0] == home.rpartition(".")[0]
        and _annotated(kind) == configuration.__name__
    ]
    if configuration.model_type in STACKS_ALONE:
        return vars(file)[STACKS_ALONE[configuration.model_type]]
    if not found:
        raise ValueError(f"no module of {home} takes {configuration.__name__}")
    return min(
        found,
        key=lambda kind: (
            kind.__name__.endswith(("Stack", "PreTrainedModel")),
            "For" in kind.__name__,
            not kind.__name__.endswith("Backbone"),
            len(kind.__name__),
        ),
    )


def _annotated(kind):
    config = vars(kind).get("config") or vars(kind).get("__annotations__", {}).get("config")
    if config is None:
        config = inspect.signature(kind.__init__).parameters.get("config")
        config = config and config.annotation
    return config if isinstance(config, str) else getattr(config, "__name__", None)


def main(names):
    for model_type in names or types():
        try:
            model = build(tiny(model_type))
        except Exception as error:
            print(
                f"{model_type:34} not built: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:150]
            )
            continue
        try:
            record = run(model)
        except Exception as error:
            print(f"{model_type:34} not run: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:150])
            continue
        counts = (
            len({turn.layer for turn in record.turns}),
            len({call.layer for call in record.attentions}),
            len(record.tables),
        )
        print("{:34} layers that turn {}, that attend {}, tables {}".format(model_type, *counts), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
