"""Whether `posref.explain` says what the classes of the installed diffusers do: each class with a row, built small and run.

The module runs twice, once with tables that turn nothing, and its attentions return zeros: so each attention is given the same
features without and with their rotation, whatever came before it. The specification turns the first by the explained
frequencies and coordinates of every token, and must give the second. Also compared are heads, softmax scale, the norm of
queries and keys, the sinusoid of the timestep, the keys of each class with their values, and which layers each stack has.

    python -m tests.programs.diffusion [CLASS ..]     prints classes and layers compared, and what has drifted
    python -m tests.programs.diffusion --write        writes posref/explain/diffusers.json
"""

import contextlib
import copy
import inspect
import itertools
import json
import math
import pkgutil
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from unittest import mock

import diffusers
import numpy as np
import torch

from posref.absolute import learned, sinusoidal, sinusoidal_2d
from posref.explain import diffusers as rows
from posref.explain import explain
from posref.rotary import rope
from tests.settings import settings

NORM = re.compile(r"(^|_)norm_?(q|k)$|(^|_)(q|k|query|key)_?(rms_)?norm")
U = 2.0**-24
TEXT = 7
PICTURE = (2, 3, 5)  # frames, rows and columns of patches: odd ones show on which side a centre lies
SMALL = settings("""
    num_layers=2 num_single_layers=1 num_refiner_layers=1 num_attention_heads=2 attention_head_dim=24 axes_dims_rope=[4,8,12]
    rope_axes_dim=[4,8,12] in_channels=4 out_channels=4 joint_attention_dim=16 pooled_projection_dim=16 text_dim=16
    text_embed_dim=16 freq_dim=32 ffn_dim=32 approximator_num_channels=16 approximator_hidden_dim=16 approximator_layers=1
    patch_size=1 guidance_embeds=False text_embed_2_dim=16 image_embed_dim=16 text_encoder_dim=12 num_key_value_heads=1
    intermediate_size=32 text_hidden_dim=16 num_text_layers=2 text_num_attention_heads=2 text_num_key_value_heads=2
    text_intermediate_size=16 num_layerwise_text_blocks=1 num_refiner_text_blocks=1 hidden_size=48 num_kv_heads=1
    axes_dim_rope=[4,8,12] cap_feat_dim=16 dim=48 n_layers=2 n_refiner_layers=1 n_heads=2 axes_dims=[4,8,12] time_embed_dim=16
    condition_dim=8
""")


class Case(NamedTuple):
    """How a class is built and run: its arguments, what makes its tables, the order of its tokens, its pictures."""

    inputs: Callable[..., dict[str, Any]]
    tables: str = ""
    order: str = "text patches"
    pictures: Sequence[tuple[int, int, int]] = (PICTURE,)
    text: int = TEXT
    padded: int = 1  # the text has a multiple of this many tokens
    names: Mapping[str, Any] = MappingProxyType({})  # what the words of the coordinates name beside those of PLACE
    unit: float = U  # in which the module rounds
    made: str = ""  # what makes the table at the input, or the name of its parameter
    stack: str = "transformer_blocks"  # whose first layer is given this table


def _random(*shape):
    return torch.randn(1, *shape)


def _given(features, text, time=0.7, **more):
    """What nearly every class takes, by the extents of its features and of its text, and what this one takes besides."""
    usual = {"hidden_states": _random(*features), "encoder_hidden_states": _random(*text), "timestep": torch.tensor([time])}
    return usual | more


def _unmasked(given):
    return {key: value for key, value in given.items() if key != "encoder_attention_mask"}


def _packed(c, pictures, text):
    """Patches in one row, and a text."""
    return _given((sum(map(math.prod, pictures)), c["in_channels"]), (text, c["joint_attention_dim"]))


def _flux(c, pictures, text):
    ((_, rows, columns),) = pictures
    ids = diffusers.FluxPipeline._prepare_latent_image_ids(1, rows, columns, "cpu", torch.float32)
    pooled = {"pooled_projections": _random(c["pooled_projection_dim"])} if "pooled_projection_dim" in c else {}
    return _packed(c, pictures, text) | {"img_ids": ids, "txt_ids": torch.zeros(text, 3)} | pooled


def _flux2(c, pictures, text):
    of, ((_, rows, columns),) = diffusers.Flux2Pipeline, pictures
    ids = {"img_ids": of._prepare_latent_ids(torch.zeros(1, 4, rows, columns))[0]}
    return _packed(c, pictures, text) | ids | {"txt_ids": of._prepare_text_ids(torch.zeros(1, text, 4))[0]}


def _qwen(c, pictures, text):
    return _packed(c, pictures, text) | {"img_shapes": [[*pictures]]}


def _video(c, pictures, text, width="text_dim"):
    patch = c["patch_size"] if isinstance(c["patch_size"], list) else [c.get("patch_size_t") or 1, *2 * [c["patch_size"]]]
    size = [n * p for n, p in zip(pictures[0], patch, strict=True)]
    return _given((c["in_channels"], *size), (text, c[width]), 700.0)


def _hunyuan(c, pictures, text):
    more = {"pooled_projections": _random(c["pooled_projection_dim"])}
    return _video(c, pictures, text, "text_embed_dim") | more | {"encoder_attention_mask": torch.ones(1, text).long()}


def _hunyuan_15(c, pictures, text):
    """Two texts and a picture, in one row of tokens."""
    masks = {"encoder_attention_mask": torch.ones(1, text - 4), "encoder_attention_mask_2": torch.ones(1, 2)}
    more = {"encoder_hidden_states_2": _random(2, c["text_embed_2_dim"]), "image_embeds": _random(2, c["image_embed_dim"])}
    return _video(c, pictures, text - 4, "text_embed_dim") | masks | more


def _flat(c, pictures, text, width="text_embed_dim"):
    """A picture without an axis of frames."""
    patch = c["patch_size"] if isinstance(c["patch_size"], list) else 2 * [c["patch_size"]]
    given = _video({**c, "patch_size": [1, *patch]}, pictures, text, width)
    mask = torch.ones(1, text, dtype=torch.int64)
    return {**given, "hidden_states": given["hidden_states"][:, :, 0], "encoder_attention_mask": mask}


def _vace(c, pictures, text):
    given = _video(c, pictures, text)
    return given | {"control_hidden_states": _random(c["vace_in_channels"], *given["hidden_states"].shape[2:])}


def _fibo(c, pictures, text):
    layers = c["num_layers"] + c["num_single_layers"]
    return _flux(c, pictures, text) | {"text_encoder_layers": [_random(text, c["text_encoder_dim"]) for _ in range(layers)]}


def _ovis(c, pictures, text):
    return _flux(c, pictures, text) | {"txt_ids": torch.tensor([[0.0, i, i] for i in range(text)])}


def _longcat(c, pictures, text):
    ((_, rows, columns),) = pictures
    of = pkgutil.resolve_name("diffusers.pipelines.longcat_image.pipeline_longcat_image").prepare_pos_ids
    ids = of(1, "image", (512, 512), height=rows, width=columns)
    return _packed(c, pictures, text) | {"img_ids": ids, "txt_ids": of(0, "text", (0, 0), num_token=text)}


def _krea(c, pictures, text):
    ids = diffusers.Krea2Pipeline.prepare_position_ids(text, *pictures[0][1:], "cpu")
    states = {"encoder_hidden_states": _random(text, c["num_text_layers"], c["text_hidden_dim"])}
    return _packed({**c, "joint_attention_dim": 1}, pictures, text) | states | {"position_ids": ids}


def _z_image(c, pictures, text):
    size = (c["in_channels"], pictures[0][0], *[2 * n for n in pictures[0][1:]])
    return {"x": [torch.randn(size)], "t": torch.tensor([0.7]), "cap_feats": [torch.randn(text, c["cap_feat_dim"])]}


def _cogview(c, pictures, text):
    sizes = dict.fromkeys(("original_size", "target_size", "crop_coords"), torch.tensor([[64.0, 64.0]]))
    return _unmasked(_flat(c, pictures, text)) | sizes


def _flux3(c, pictures, text):
    """Coordinates that a caller may give: all axes differ."""
    return _packed(c, pictures, text) | {key: torch.tensor(IDS[key]) for key in IDS}


def _controlled(inputs, c, pictures, text):
    given = inputs(c, pictures, text)
    return given | {"controlnet_cond": torch.zeros_like(given["hidden_states"])}


def _anyflow(c, pictures, text):
    given, times = _video(c, pictures, text), torch.tensor([[700.0] * pictures[0][0]])
    return given | {"hidden_states": given["hidden_states"].permute(0, 2, 1, 3, 4), "timestep": times, "r_timestep": times}


def _cogvideo(c, pictures, text, pipeline=diffusers.CogVideoXPipeline, method="_prepare_rotary_positional_embeddings"):
    """With the tables of the pipeline, which counts pixels, 8 to a latent."""
    given, (frames, *grid) = _video(c, pictures, text, "text_embed_dim"), pictures[0]
    of = mock.Mock(vae_scale_factor_spatial=8, transformer=mock.Mock(config=mock.Mock(**c)))
    frames = frames * (c.get("patch_size_t") or 1)
    tables = getattr(pipeline, method)(of, height=16 * grid[0], width=16 * grid[1], num_frames=frames, device="cpu")
    return given | {"hidden_states": given["hidden_states"].permute(0, 2, 1, 3, 4), "image_rotary_emb": tables}


def _consisid(c, pictures, text):
    of = pkgutil.resolve_name("diffusers.pipelines.consisid.pipeline_consisid").get_3d_rotary_pos_embed
    region = GRIDS["consisid"](pictures[0][1:], c["sample_width"] // 2, c["sample_height"] // 2)
    tables = of(c["attention_head_dim"], region, pictures[0][1:], pictures[0][0], device="cpu")
    given = _video(c, pictures, text, "text_embed_dim")
    return given | {"hidden_states": given["hidden_states"].permute(0, 2, 1, 3, 4), "image_rotary_emb": tables}


def _glm(c, pictures, text):
    n, sizes = math.prod(pictures[0]), dict.fromkeys(("target_size", "crop_coords"), torch.tensor([[64.0, 64.0]]))
    more = {"prior_token_id": torch.zeros(1, n, dtype=torch.int64), "prior_token_drop": torch.zeros(1, n, dtype=torch.bool)}
    return _unmasked(_flat(c, pictures, text)) | sizes | more


def _hunyuan_dit(c, pictures, text):
    region = GRIDS["hunyuandit"](pictures[0][1:], 512 // 8 // 2)
    tables = diffusers.models.embeddings.get_2d_rotary_pos_embed(c["attention_head_dim"], region, pictures[0][1:])
    ones = {"text_embedding_mask": 4, "text_embedding_mask_t5": text - 4, "image_meta_size": 6}
    more = {"encoder_hidden_states_t5": _random(text - 4, c["cross_attention_dim_t5"]), "style": torch.tensor([0])}
    more |= {name: torch.ones(1, n) for name, n in ones.items()} | {"image_rotary_emb": tables}
    return _unmasked(_flat(c, pictures, 4, "cross_attention_dim")) | more


def _stable(c, pictures, text):
    of, steps = diffusers.models.embeddings.get_1d_rotary_pos_embed, pictures[0][0]
    tables = of(c["attention_head_dim"] // 2, steps + 1, use_real=True, repeat_interleave_real=False)
    more = {"global_hidden_states": _random(1, c["global_states_input_dim"]), "rotary_embedding": tables}
    return _given((c["in_channels"], steps), (text, c["cross_attention_input_dim"]), **more)


def _stable3(c, pictures, text):
    more = {"global_hidden_states": _random(c["global_cond_dim"])}
    return _given((c["io_channels"], pictures[0][0]), (text, c["cond_token_dim"]), **more)


def _music(c, pictures, text):
    return _given((c["in_channels"], pictures[0][0]), (pictures[0][0], c["condition_dim"]))


def _longcat_audio(c, pictures, text):
    mask = torch.ones(1, text)
    return _given((pictures[0][0], c["latent_dim"]), (text, c["dit_text_dim"]), encoder_attention_mask=mask)


def _prx(c, pictures, text):
    return _unmasked(_flat(c, pictures, text, "context_in_dim")) | {"timestep": torch.tensor([0.7])}


def _joy_plus(c, pictures, text):
    patches = (sum(map(math.prod, pictures)), c["in_channels"], *c["patch_size"])
    return _given(patches, (text, c["text_dim"]), 700.0, shape_list=[[*pictures]])


def _ideogram(c, pictures, text):
    names = ("position_ids", "segment_ids", "indicator")
    made = diffusers.Ideogram4Pipeline._prepare_ids([text], *pictures[0][1:], text, "cpu")
    n = made[0].shape[1]
    return _given((n, c["in_channels"]), (n, c["llm_features_dim"]), **dict(zip(names, made, strict=True)))


def _kandinsky(c, pictures, text):
    given = _video({**c, "in_channels": c["in_visual_dim"]}, pictures, text, "in_text_dim")
    more = {"pooled_projections": _random(c["in_text_dim2"]), "scale_factor": (1.0, 2.0, 2.0)}
    more |= {"visual_rope_pos": [torch.arange(n) for n in pictures[0]], "text_rope_pos": torch.arange(text)}
    return given | {"hidden_states": given["hidden_states"].permute(0, 2, 3, 4, 1)} | more


def _hidream(c, pictures, text):
    size = [c["patch_size"] * n for n in pictures[0][1:]]
    return {
        "hidden_states": _random(c["in_channels"], *size),
        "timesteps": torch.tensor([700.0]),
        "encoder_hidden_states_t5": _random(2, c["caption_channels"][0]),
        "encoder_hidden_states_llama3": [_random(2, c["caption_channels"][1]) for _ in c["llama_layers"]],
        "pooled_embeds": _random(c["text_emb_dim"]),
    }


def _cosmos(c, pictures, text):
    return _video(c, pictures, text, "text_embed_dim") | {"fps": 30}


def _ace(c, pictures, text):
    steps, own = pictures[0][0] * c["patch_size"], c["audio_acoustic_hidden_dim"]
    more = {"timestep_r": torch.tensor([0.7]), "context_latents": _random(steps, c["in_channels"] - own)}
    return _given((steps, own), (text, c["hidden_size"]), **more)


def _fibo2(c, pictures, text):
    sizes = [(c["in_channels"], *[2 * n for n in grid]) for _, *grid in pictures]
    texts = (1 + len(c["injection_layer_ids"]), text, c["cap_feat_dim"])
    return _given(sizes[0], texts, context_latents=[_random(*size) for size in sizes[1:]])


def _minimax(c, pictures, text):
    """Text, patches, then one step of sound, with coordinates that a caller may give."""
    n, patch = math.prod(pictures[0]), math.prod(c["patch_size"])
    places, zeros = torch.arange(text + n), torch.zeros(text + n, dtype=torch.int64)
    more = {"video_indices": places[text:], "audio_indices": places[:0], "text_indices": places[:text]}
    more |= {"timestep_indices": zeros, "token_tags": zeros, "position_ids": torch.tensor(PLACES)}
    more |= {"audio_hidden_states": _random(0, c["audio_in_channels"])}
    return _given((n, c["in_channels"] * patch), (text, c["text_dim"]), 700.0, **more)


def _animate(c, pictures, text):
    given = _video(c, pictures, text)
    frames, size = pictures[0][0], c["motion_encoder_size"]
    latents = [c["latent_channels"], frames - 1, *given["hidden_states"].shape[-2:]]
    faces = _random(3, 4 * (frames - 1), size, size)
    return given | {"pose_hidden_states": _random(*latents), "face_pixel_values": faces}


def _sd3(c, pictures, text):
    return _unmasked(_flat(c, pictures, text, "joint_attention_dim")) | {
        "pooled_projections": _random(c["pooled_projection_dim"])
    }


def _dit(c, pictures, text):
    given = _flat({**c, "text_dim": 1}, pictures, text, "text_dim")
    return {key: given[key] for key in ("hidden_states", "timestep")} | {"class_labels": torch.tensor([1])}


_pixart, _latte = partial(_flat, width="cross_attention_dim"), partial(_video, width="caption_channels")


def _aura(c, pictures, text):
    return _unmasked(_flat(c, pictures, text, "joint_attention_dim")) | {"timestep": torch.tensor([0.7])}


PLACES = [[p, 2 * p % 7, 3 * p % 5] for p in range(TEXT + math.prod(PICTURE))]
GRIDS = {
    name: pkgutil.resolve_name(f"diffusers.pipelines.{place}").get_resize_crop_region_for_grid
    for name, place in {
        "cogvideo": "cogvideo.pipeline_cogvideox",
        "consisid": "consisid.pipeline_consisid",
        "hunyuandit": "hunyuandit.pipeline_hunyuandit",
    }.items()
}
REGIONS = {name: {"get_resize_crop_region_for_grid": region} for name, region in GRIDS.items()}
IDS = {"img_ids": [[1, 2 * p, 3 + p, 0] for p in range(15)], "txt_ids": [[0, 0, 1, 2 * i + 1] for i in range(TEXT)]}
FLAT = ((1, 3, 5),)
STEPS = ((9, 1, 1),)
SEVERAL = ((1, 3, 5), (1, 4, 2))
WAN = {"patch_size": [1, 2, 2], "attention_head_dim": 28}
COG = settings("patch_size=2 attention_head_dim=32 use_rotary_positional_embeddings=True sample_height=12 sample_width=14")
HUNYUAN_DIT = settings("patch_size=2 hidden_size=48 cross_attention_dim=16 cross_attention_dim_t5=16 text_len=4 text_len_t5=3")
JOY = {"patch_size": [1, 2, 2], "rope_dim_list": [4, 8, 12]}
SD3, PIXART, DIT = (f"{name}Transformer2DModel" for name in ("SD3", "PixArt", "DiT"))
TWO = {"patch_size": 2, "sample_size": 12}
TABLE_2D, TABLE_3D = (f"embeddings.get_{n}d_sincos_pos_embed" for n in (2, 3))
CASES = {
    **dict.fromkeys((SD3, f"{SD3} 3.5"), Case(_sd3, order="patches text", pictures=FLAT, made=TABLE_2D)),
    "SD3ControlNetModel": Case(partial(_controlled, _sd3), order="patches text", pictures=FLAT, made=TABLE_2D),
    **dict.fromkeys((PIXART, f"{PIXART} scaled", "Transformer2DModel"), Case(_pixart, pictures=FLAT, made=TABLE_2D)),
    **dict.fromkeys((DIT, "Transformer2DModel of classes"), Case(_dit, pictures=((1, 4, 4),), made=TABLE_2D)),
    "AuraFlowTransformer2DModel": Case(
        _aura, order="text patches", pictures=FLAT, made="pos_embed.pos_embed", stack="joint_transformer_blocks"
    ),
    "CogView3PlusTransformer2DModel": Case(_cogview, pictures=FLAT, made=TABLE_2D),
    "CogVideoXTransformer3DModel 2b": Case(_cogvideo, made=TABLE_3D),
    "ConsisIDTransformer3DModel sines": Case(_consisid, made=TABLE_3D),
    "LatteTransformer3DModel": Case(_latte, made=TABLE_2D),
    "LatteTransformer3DModel frames": Case(
        _latte,
        pictures=((3, 1, 1),),
        made="latte_transformer_3d.get_1d_sincos_pos_embed_from_grid",
        stack="temporal_transformer_blocks",
    ),
    "AceStepTransformer1DModel": Case(_ace, "ace_step_transformer._ace_step_rotary_freqs", "patches", STEPS),
    "BriaFibo2Transformer2DModel": Case(_fibo2, "transformer_bria_fibo2.RopeEmbedder.__call__", pictures=SEVERAL),
    "MiniMaxH3Transformer3DModel": Case(
        _minimax,
        "transformer_minimax_h3.MiniMaxH3RotaryPosEmbed.forward",
        names={"position_ids": PLACES, "text_indices": range(TEXT), "video_indices": range(TEXT, TEXT + math.prod(PICTURE))},
    ),
    "WanAnimateTransformer3DModel": Case(_animate, "transformer_wan_animate.WanRotaryPosEmbed.forward", "patches"),
    "FluxControlNetModel": Case(partial(_controlled, _flux), "transformer_flux.FluxPosEmbed.forward", pictures=FLAT),
    "QwenImageControlNetModel": Case(
        partial(_controlled, _qwen), "transformer_qwenimage.QwenEmbedRope.forward", pictures=SEVERAL
    ),
    "NucleusMoEImageTransformer2DModel": Case(
        _qwen, "transformer_nucleusmoe_image.NucleusMoEEmbedRope.forward", "patches text", FLAT
    ),
    "Flux3Transformer2DModel": Case(_flux3, "transformer_flux3.Flux3PosEmbed.forward", pictures=FLAT, names=IDS),
    "AnyFlowTransformer3DModel": Case(_anyflow, "transformer_anyflow.AnyFlowRotaryPosEmbed._forward_full_frame", "patches"),
    "HeliosTransformer3DModel": Case(_video, "transformer_helios.HeliosRotaryPosEmbed.get_frequency_batched", "patches"),
    "CogVideoXTransformer3DModel": Case(_cogvideo, "embeddings.apply_rotary_emb", names=REGIONS["cogvideo"]),
    "CogVideoXTransformer3DModel 1.5": Case(_cogvideo, "embeddings.apply_rotary_emb"),
    "ConsisIDTransformer3DModel": Case(_consisid, "embeddings.apply_rotary_emb", names=REGIONS["consisid"]),
    "EasyAnimateTransformer3DModel": Case(
        partial(_video, width="text_embed_dim"),
        "transformer_easyanimate.EasyAnimateRotaryPosEmbed.forward",
        names=REGIONS["cogvideo"],
    ),
    "GlmImageTransformer2DModel": Case(_glm, "transformer_glm_image.GlmImageRotaryPosEmbed.forward", pictures=FLAT),
    "HunyuanDiT2DModel": Case(
        _hunyuan_dit,
        "embeddings.apply_rotary_emb",
        "patches",
        FLAT,
        names=REGIONS["hunyuandit"],
    ),
    "HunyuanDiT2DControlNetModel": Case(
        partial(_controlled, _hunyuan_dit),
        "embeddings.apply_rotary_emb",
        "patches",
        FLAT,
        names=REGIONS["hunyuandit"],
    ),
    "StableAudioDiTModel": Case(_stable, "embeddings.apply_rotary_emb", pictures=STEPS),
    "StableAudio3DiTModel": Case(_stable3, "transformer_stable_audio3.StableAudio3RotaryEmbedding.forward", pictures=STEPS),
    "MiniMaxMusic3Transformer1DModel": Case(
        _music, "transformer_minimax_music3.MiniMaxMusic3RotaryEmbedding.forward", pictures=STEPS
    ),
    "LongCatAudioDiTTransformer": Case(
        _longcat_audio, "transformer_longcat_audio_dit.AudioDiTRotaryEmbedding.forward", "patches", STEPS
    ),
    "PRXTransformer2DModel": Case(_prx, "transformer_prx.PRXEmbedND.forward", pictures=FLAT),
    "JoyImageEditTransformer3DModel": Case(
        _video, "transformer_joyimage.JoyImageEditTransformer3DModel.get_rotary_pos_embed", "patches text"
    ),
    "JoyImageEditTransformer3DModel mrope": Case(
        _video, "transformer_joyimage.JoyImageEditTransformer3DModel.get_rotary_pos_embed", "patches text"
    ),
    "JoyImageEditPlusTransformer3DModel": Case(
        _joy_plus,
        "transformer_joyimage_edit_plus.JoyImageEditPlusTransformer3DModel._get_rotary_pos_embed_for_range",
        "patches text",
        ((2, 3, 5), (1, 4, 2)),
    ),
    "Ideogram4Transformer2DModel": Case(_ideogram, "transformer_ideogram4.Ideogram4MRoPE.forward", pictures=FLAT),
    "MotifVideoTransformer3DModel": Case(
        partial(_video, width="text_embed_dim"),
        "transformer_motif_video.MotifVideoRotaryPosEmbed.forward",
        "patches text",
    ),
    "Kandinsky5Transformer3DModel": Case(
        _kandinsky,
        " ".join(f"transformer_kandinsky.Kandinsky5RoPE{n}D.forward" for n in (1, 3)),
        names={"f": 1.0, "g": 2.0},
        unit=2.0**-9,  # of bfloat16
    ),
    "HiDreamImageTransformer2DModel": Case(
        _hidream, "transformer_hidream_image.HiDreamImageEmbedND.forward", "patches text", ((1, 4, 4),), 6
    ),
    "CosmosTransformer3DModel": Case(_cosmos, "transformer_cosmos.CosmosRotaryPosEmbed.forward", "patches", names={"fps": 30}),
    "FluxTransformer2DModel": Case(_flux, "transformer_flux.FluxPosEmbed.forward", pictures=FLAT),
    "ChromaTransformer2DModel": Case(_flux, "transformer_flux.FluxPosEmbed.forward", pictures=FLAT),
    "Flux2Transformer2DModel": Case(_flux2, "transformer_flux2.Flux2PosEmbed.forward", pictures=FLAT),
    "QwenImageTransformer2DModel": Case(_qwen, "transformer_qwenimage.QwenEmbedRope.forward", pictures=SEVERAL),
    "QwenImageTransformer2DModel layered": Case(_qwen, "transformer_qwenimage.QwenEmbedLayer3DRope.forward", pictures=SEVERAL),
    "WanTransformer3DModel": Case(_video, "transformer_wan.WanRotaryPosEmbed.forward", "patches"),
    "HunyuanVideo15Transformer3DModel": Case(
        _hunyuan_15, "transformer_hunyuan_video15.HunyuanVideo15RotaryPosEmbed.forward", "patches text"
    ),
    "HunyuanImageTransformer2DModel": Case(
        _flat, "transformer_hunyuanimage.HunyuanImageRotaryPosEmbed.forward", "patches text", FLAT
    ),
    "SkyReelsV2Transformer3DModel": Case(_video, "transformer_skyreels_v2.SkyReelsV2RotaryPosEmbed.forward", "patches"),
    "WanVACETransformer3DModel": Case(_vace, "transformer_wan.WanRotaryPosEmbed.forward", "patches"),
    "ChronoEditTransformer3DModel": Case(_video, "transformer_chronoedit.ChronoEditRotaryPosEmbed.forward", "patches"),
    "BriaTransformer2DModel": Case(_flux, "transformer_bria.BriaEmbedND.forward", pictures=FLAT),
    "BriaFiboTransformer2DModel": Case(_fibo, "transformer_bria_fibo.BriaFiboEmbedND.forward", pictures=FLAT),
    "OvisImageTransformer2DModel": Case(_ovis, "transformer_ovis_image.OvisImagePosEmbed.forward", pictures=FLAT),
    "LongCatImageTransformer2DModel": Case(_longcat, "transformer_longcat_image.LongCatImagePosEmbed.forward", pictures=FLAT),
    "Krea2Transformer2DModel": Case(_krea, "transformer_krea2.Krea2RotaryPosEmbed.forward", pictures=FLAT),
    "Lumina2Transformer2DModel": Case(
        partial(_flat, width="cap_feat_dim"),
        "transformer_lumina2.Lumina2RotaryPosEmbed._get_freqs_cis",
        pictures=FLAT,
    ),
    "ZImageTransformer2DModel": Case(
        _z_image, "transformer_z_image.RopeEmbedder.__call__", "patches text", ((1, 4, 8),), 20, 32
    ),
    "CogView4Transformer2DModel": Case(_cogview, "transformer_cogview4.CogView4RotaryPosEmbed.forward", pictures=FLAT),
    "HunyuanVideoTransformer3DModel": Case(
        _hunyuan, "transformer_hunyuan_video.HunyuanVideoRotaryPosEmbed.forward", "patches text"
    ),
}
CROPPED = {**TWO, "pos_embed_max_size": 8, "caption_projection_dim": 48}
SINGLE = {**TWO, "sample_size": 128, "norm_type": "ada_norm_single"}
CAPTIONED = {**SINGLE, "use_additional_conditions": False, "cross_attention_dim": 16}
LATTE = {**SINGLE, "caption_channels": 16, "cross_attention_dim": 48}
COG_2B = {"patch_size": 2, "attention_head_dim": 32, "max_text_seq_length": TEXT}
FILES = {  # what a class needs beside or in the place of the sizes above
    SD3: CROPPED,
    f"{SD3} 3.5": {**CROPPED, "pos_embed_max_size": 9, "dual_attention_layers": [0], "qk_norm": "rms_norm"},
    "SD3ControlNetModel": CROPPED,
    **dict.fromkeys((PIXART, "Transformer2DModel"), CAPTIONED),
    f"{PIXART} scaled": {**CAPTIONED, "interpolation_scale": 3},
    DIT: {**TWO, "sample_size": 128},
    "Transformer2DModel of classes": {**TWO, "norm_type": "ada_norm_zero", "num_embeds_ada_norm": 10},
    "AuraFlowTransformer2DModel": {
        **TWO,
        **settings("num_mmdit_layers=2 num_single_dit_layers=1 caption_projection_dim=48 pos_embed_max_size=49"),
    },
    "CogView3PlusTransformer2DModel": {**TWO, "pos_embed_max_size": 8},
    **dict.fromkeys(("CogVideoXTransformer3DModel 2b", "ConsisIDTransformer3DModel sines"), COG_2B),
    "LatteTransformer3DModel": {**LATTE, "video_length": 2},
    "LatteTransformer3DModel frames": {**LATTE, "video_length": 3},
    "AceStepTransformer1DModel": settings("""
        num_hidden_layers=3 head_dim=24 in_channels=12 audio_acoustic_hidden_dim=4 patch_size=2 sliding_window=3
    """),
    "BriaFibo2Transformer2DModel": {"min_num_gist_tokens": TEXT, "max_num_gist_tokens": TEXT}
    | settings("injection_layer_ids=[1] patch_size=2 perceiver_num_layers=1 gist_step=1 axes_lens=[32,16,16]"),
    "MiniMaxH3Transformer3DModel": settings("patch_size=[1,2,2] audio_in_channels=4 rope_freq_dim=3 time_embed_hidden_dim=16"),
    "WanAnimateTransformer3DModel": WAN
    | settings("""
        in_channels=12 latent_channels=4 image_dim=None motion_encoder_channel_sizes={'4':4,'8':4,'16':4} motion_encoder_size=16
        motion_style_dim=8 motion_dim=4 motion_encoder_dim=8 face_encoder_hidden_dim=8 inject_face_latents_blocks=1
    """),
    "NucleusMoEImageTransformer2DModel": {"moe_enabled": False},
    "Flux3Transformer2DModel": {"axes_dims_rope": [4, 8, 6, 6]},
    "AnyFlowTransformer3DModel": WAN,
    "HeliosTransformer3DModel": {**WAN, "attention_head_dim": 24, "rope_dim": [4, 8, 12], "rope_theta": 500.0},
    "CogVideoXTransformer3DModel": COG,
    "CogVideoXTransformer3DModel 1.5": {**COG, "patch_size_t": 2},
    "ConsisIDTransformer3DModel": COG,
    "EasyAnimateTransformer3DModel": {"patch_size": 2, "attention_head_dim": 32, "mmdit_layers": 1},
    "GlmImageTransformer2DModel": {"patch_size": 2},
    "HunyuanDiT2DModel": HUNYUAN_DIT,
    "HunyuanDiT2DControlNetModel": {**HUNYUAN_DIT, "transformer_num_layers": 6},
    "StableAudioDiTModel": settings("""
        num_key_value_attention_heads=1 cross_attention_dim=48 time_proj_dim=16 global_states_input_dim=16
        cross_attention_input_dim=16
    """),
    "StableAudio3DiTModel": {"num_memory_tokens": TEXT}
    | settings("""
        io_channels=4 embed_dim=48 depth=2 num_heads=2 cond_token_dim=16 global_cond_dim=16 timestep_features_dim=16
    """),
    "MiniMaxMusic3Transformer1DModel": {"rotary_dim": 8, "ff_inner_dim": 32, "fourier_embedding_dim": 16},
    "LongCatAudioDiTTransformer": {"dit_dim": 48, "dit_depth": 2, "dit_heads": 2, "dit_text_dim": 16, "latent_dim": 4},
    "PRXTransformer2DModel": {"context_in_dim": 16, "num_heads": 2, "depth": 2, "axes_dim": [8, 16]},
    "JoyImageEditTransformer3DModel": JOY,
    "JoyImageEditTransformer3DModel mrope": {**JOY, "rope_type": "mrope"},
    "JoyImageEditPlusTransformer3DModel": JOY,
    "Ideogram4Transformer2DModel": {"adaln_dim": 16, "llm_features_dim": 16, "mrope_section": [6, 3, 3]},
    "Kandinsky5Transformer3DModel": settings("""
        in_visual_dim=4 in_text_dim=16 in_text_dim2=16 time_dim=16 out_visual_dim=4 patch_size=[1,2,2] model_dim=48
        ff_dim=32 num_text_blocks=1 num_visual_blocks=2 axes_dims=[4,8,12]
    """),
    "HiDreamImageTransformer2DModel": settings(
        "patch_size=2 caption_channels=[16,16] text_emb_dim=16 llama_layers=[0,1,2] max_resolution=[16,16]"
    ),
    "CosmosTransformer3DModel": settings("""
        attention_head_dim=28 max_size=[16,16,16] patch_size=[1,2,2] rope_scale=[2.0,3.0,4.0] concat_padding_mask=False
    """),
    "Flux2Transformer2DModel": {"axes_dims_rope": [4, 8, 6, 6]},
    "QwenImageTransformer2DModel layered": {"use_layer3d_rope": True},
    "WanTransformer3DModel": WAN,
    "HunyuanImageTransformer2DModel": {"patch_size": [1, 1], "rope_axes_dim": [10, 14]},
    "SkyReelsV2Transformer3DModel": WAN,
    "WanVACETransformer3DModel": {**WAN, "vace_layers": [0], "vace_in_channels": 4},
    "ChronoEditTransformer3DModel": {**WAN, "attention_head_dim": 32},
}


class Call(NamedTuple):
    """One attention: where it stands, whether its queries and keys are normed, and what it was given."""

    place: str
    normed: bool
    q: np.ndarray
    k: np.ndarray
    scale: float | None
    seen: np.ndarray | None  # which keys a query sees


def file_of(name):
    """A small file of one case: the sizes above wherever its class has them."""
    kind = name.split()[0]
    has = inspect.signature(getattr(diffusers, kind).__init__).parameters
    return {"_class_name": kind, **{key: value for key, value in SMALL.items() if key in has}, **FILES.get(name, {})}


def built(file):
    """The module in float32, with random weights everywhere: those of its norms are not 1."""
    torch.manual_seed(0)
    model = getattr(diffusers, file["_class_name"])(
        **{key: value for key, value in file.items() if not key.startswith("_")}
    ).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.2 * torch.randn_like(weight))
    return model


def recorded(model, inputs, tables=""):
    """The attentions of one forward pass, what its timesteps became, and what each stack is given; `tables` are left out."""
    calls, times, given, path = [], [], {}, [("", model)]

    def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        name, module = path[-1]
        normed = any(NORM.search(child) and of is not None for child, of in module._modules.items())
        mask = None if attn_mask is None else (attn_mask if attn_mask.dtype == torch.bool else attn_mask > -1e4).numpy()
        seen = None if mask is None else np.broadcast_to(mask, (*mask.shape[:-2], query.shape[-2], key.shape[-2]))
        calls.append(Call(name, normed, *(x[0].double().numpy() for x in (query, key)), scale, seen))
        return torch.zeros(*query.shape[:-1], value.shape[-1])

    def follow(name, module):
        module.register_forward_pre_hook(lambda *_: path.append((name, module)))
        module.register_forward_hook(lambda *_: path.pop() and None)
        if "Timesteps" in type(module).__name__:
            module.register_forward_hook(lambda _, given, made: times.append(made.numpy()))
        if name.endswith(".0"):
            module.register_forward_pre_hook(partial(first, name.removesuffix(".0")), with_kwargs=True)

    def first(stack, module, values, named):
        given[stack] = inspect.signature(module.forward).bind(*values, **named).arguments.get("hidden_states")

    for name, module in model.named_modules():
        follow(name, module)
    with without(tables), mock.patch("torch.nn.functional.scaled_dot_product_attention", attention), torch.no_grad():
        model(**copy.deepcopy(inputs))
    return calls, times, given


@contextlib.contextmanager
def without(tables):
    """These functions of diffusers make tables that turn nothing and add nothing."""
    with contextlib.ExitStack() as stack:
        for each in tables.split():
            home = "diffusers.models" if each.startswith("embeddings") else "diffusers.models.transformers"
            place, _, method = f"{home}.{each}".rpartition(".")
            owner = pkgutil.resolve_name(place)
            stack.enter_context(mock.patch.object(owner, method, plain(getattr(owner, method))))
        yield


def table(layer, case, file, inputs):
    """Whether the table at the input is the explained one: what the first layer is given, less the same without the table."""
    model = built(file)
    parameters = dict(model.named_parameters())
    with without("" if case.made in parameters else case.made), torch.no_grad():
        bare = built(file)
        dict(bare.named_parameters()).get(case.made, torch.zeros(1)).zero_()
        plain = recorded(bare, inputs)[2][case.stack].double().numpy()
    given = recorded(model, inputs)[2][case.stack].double().numpy()
    at = coordinates(layer["positions"], case, "patches")
    rows = parameters[case.made][0].detach().double().numpy() if case.made in parameters else None
    known = {"np": np, "sinusoidal": sinusoidal, "sinusoidal_2d": sinusoidal_2d, "learned": learned, "table": rows}
    expected = eval(layer["call"], {**known, "p": at if rows is None else at.astype(np.int64)})
    added = (given - plain).reshape(-1, given.shape[-1])
    if added.shape != expected.shape or not np.abs(added - expected).max() <= 8 * U * (at.max() + np.abs(given).max()):
        yield f"the table at the input is another than explained, {layer['call']}"


def plain(made):
    """The same function with tables that turn nothing; one that turns returns what it is given."""
    if made.__name__ == "apply_rotary_emb":
        return lambda x, *given, **more: x
    return lambda *given, **more: still(made(*given, **more))


def still(tables):
    """The same tables for an angle of 0: complex numbers, matrices, angles, or cosines and sines."""
    if isinstance(tables, torch.Tensor) and tables.is_complex():
        return torch.ones_like(tables)
    if isinstance(tables, torch.Tensor):
        return torch.eye(2).expand_as(tables) if tables.shape[-2:] == (2, 2) else torch.zeros_like(tables)
    if tables is None:
        return None
    real = len(tables) == 2 and all(isinstance(x, torch.Tensor) and not x.is_complex() for x in tables)
    return (torch.ones_like(tables[0]), torch.zeros_like(tables[1])) if real else type(tables)(map(still, tables))


def coordinates(positions, case, order):
    """Of every token in the order of the module, as the explanation says; where a text is not turned, 0."""
    images = positions.get("images", "")
    said = positions.get("text", "")
    patches, text = (words.partition(" of ")[0] for words in (images, said))
    _, H, W = map(max, zip(*case.pictures, strict=True))
    place = {"np": np, **case.names, "T": case.pictures[0][0], "H": H, "W": W, "K": len(case.pictures), "n": case.text}
    for equation in re.findall(r"; ([^;]* = [^;]*)", images):
        exec(equation, place)
    found = {"text": [], "patches": []}
    if patches:
        for k, (T, H, W) in enumerate(case.pictures):
            place |= {"T": T, "H": H, "W": W, "k": k, "T0": sum(T for T, *_ in case.pictures[:k])}
            places = itertools.product(range(T), range(H), range(W))
            found["patches"] += [eval(patches, {**place, "t": t, "h": h, "w": w, "p": p}) for p, (t, h, w) in enumerate(places)]
    if text:
        tokens = range(-(-case.text // case.padded) * case.padded if re.search("token i|turned", said) else 1)
        still = [0] * len((found["patches"] or [()])[0])
        found["text"] = [eval(text, {**place, "i": i}) if not text.startswith("its tokens") else still for i in tokens]
    return np.array([at for name in order.split() for at in found[name]], dtype=np.float64)


def compare(name):
    """What has drifted in one case, as sentences, and how many layers were compared."""
    case, file = CASES[name], file_of(name)
    said, model = explain(file), built(file)
    layers = {
        (group["part"], i, group["kind"] == "cross_attention"): group for group in said["layers"] for i in group["indices"]
    }
    inputs = case.inputs(model.config, case.pictures, case.text)
    (turned, times, _), (plain, *_) = recorded(model, inputs), recorded(built(file), inputs, case.tables)
    drifted, seen = [*keys_of(file["_class_name"])], set()
    for group in said["layers"]:
        if group["encoding"] not in ("rope", "none") and group["part"] == case.stack:
            drifted += table(group, case, file, inputs)
    for before, after in zip(plain, turned, strict=True):
        if not (place := re.match(r"(.+?)\.(\d+)", after.place)):
            drifted += [] if np.array_equal(before.q, after.q) else [f"{after.place} rotates and is not explained"]
            continue
        stack, i = place.groups()
        crossed = after.q.shape[-2] != after.k.shape[-2] and (stack, int(i), True) in layers
        layer = layers.get((stack, int(i), crossed))
        seen.add((stack, int(i), crossed))
        if layer is not None:
            drifted += [f"{after.place}: {words}" for words in attention(layer, before, after, case)]
        elif stack in {part for part, *_ in layers}:
            drifted.append(f"{after.place} attends and is not explained")
        elif not (
            np.array_equal(before.q, after.q) and (said["unsupported"] or stack in said["layers"][0]["positions"]["images"])
        ):
            drifted.append(f"{after.place} rotates and is not explained")
    drifted += [f"layer {key} is explained and does not attend" for key in set(layers) - seen]
    return [*drifted, *timestep(said, inputs, times)], len(set(layers) & seen)


def attention(layer, before, after, case):
    """How one attention differs from what is said of its layer."""
    if after.normed != bool(layer["norm"]):
        yield f"its queries and keys are normed: {after.normed}, explained as {layer['norm']}"
    heads, width = after.q.shape[0], after.q.shape[-1]
    if (heads, width) != (layer["heads"], layer["head_dim"]):
        yield f"its queries have {heads} heads of {width}, explained as {layer['heads']} of {layer['head_dim']}"
    scale = after.scale or width**-0.5
    if abs(scale - layer["softmax_scale"]) > 4 * U * scale:
        yield f"its scores are scaled by {scale}, explained as {layer['softmax_scale']}"
    offsets = np.arange(after.k.shape[-2]) - np.arange(after.q.shape[-2])[:, None]
    if not np.all((abs(offsets) < (layer["window"] or np.inf)) == (True if after.seen is None else after.seen)):
        yield f"its queries see other keys than explained, window {layer['window']}"
    if after.k.shape[0] not in (layer["kv_heads"], layer["heads"]):
        yield f"its keys have {after.k.shape[0]} heads, explained as {layer['kv_heads']}"
    crossed, alone = layer["kind"] == "cross_attention", (layer.get("positions") or {}).get("text", "").endswith("no queries")
    orders = ("patches", "text" if crossed else case.order) if crossed or alone else (case.order, case.order)
    for name, order, x, y in (("queries", orders[0], before.q, after.q), ("keys", orders[1], before.k, after.k)):
        expected, size = x, np.abs(x).max()
        if layer["encoding"] == "rope":
            at = coordinates(layer["positions"], case, order)
            numbers = {axis: a for a, axis in enumerate(axis for axis in "thwl" if axis in layer["axes"])}
            angle = at[:, [numbers[axis] for axis in layer["axes"]]] * np.array(layer["frequencies"])[layer["index"]]
            if len(angle) != x.shape[-2]:
                yield f"there are {x.shape[-2]} {name}, explained are {len(angle)}"
                return
            expected = rope.rotate(x, np.cos(angle), np.sin(angle), layout=layer["layout"], rotary_dim=layer["rotary_dim"])
            size = size * (1 + np.abs(angle).max())
        if not np.abs(expected - y).max() <= 40 * case.unit * size:
            yield f"its {name} are other features than explained, by {np.abs(expected - y).max():.2g} of {np.abs(x).max():.2g}"


def timestep(said, inputs, times):
    """The sinusoids of the timesteps, one of which is the explained one."""
    words = {group["positions"].get("timestep") for group in said["layers"] if group.get("positions")} - {None}
    for expression in words:
        given = {"np": np, "sinusoidal": sinusoidal, "timestep": inputs["timestep"].numpy().ravel().astype(np.float64)}
        expected = eval(expression.partition(": ")[0], given)
        if not any(made.shape == expected.shape and np.abs(made - expected).max() <= 4000 * U for made in times):
            yield f"its timesteps become {times[:1]}, explained as {expected}"


def keys_of(kind):
    """The keys of a class and their values are those of posref/explain/diffusers.json."""
    if rows.classes().get(kind) != facts(kind):
        yield f"{kind} of diffusers {diffusers.__version__} has other keys: python -m tests.programs.diffusion --write"


def facts(kind):
    """The module of a class, and the values of its keys."""
    of = getattr(diffusers, kind)
    values = {key: each.default for key, each in [*inspect.signature(of.__init__).parameters.items()][1:]}
    return {"module": of.__module__.rpartition(".")[2], "defaults": json.loads(json.dumps(values))}


def main(names):
    if names == ["--write"]:
        text = ",\n".join(f"{json.dumps(kind)}: {json.dumps(facts(kind))}" for kind in sorted(rows.ROWS))
        (Path(rows.__file__).parent / "diffusers.json").write_text(f"{{\n{text}\n}}\n", encoding="utf-8")
        return
    count, wrong = 0, 0
    for name in names or CASES:
        drifted, layers = compare(name)
        count, wrong = count + layers, wrong + bool(drifted)
        print(f"{name:36} {layers} layers compared", *drifted[:4], sep="\n    ", flush=True)
    print(f"{len(rows.ROWS)} classes of diffusers {diffusers.__version__}, {count} layers compared, {wrong} cases drifted")


if __name__ == "__main__":
    main(sys.argv[1:])
