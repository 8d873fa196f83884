"""Transformers of diffusers 0.42.1: one row per class says what its configuration does not. The drift program tests the rows.

A file of diffusers has the key `_class_name`. A class whose stacks differ has several rows. Entries of a row:

    stacks      {name of the stack in the class: the key that counts its layers}; "patches" or "text" after the key: its layers
                see these tokens alone; a function of the settings gives the number of layers or the list of their indices
    heads, head the keys of the number of heads and of the width of a head, or functions of the settings; `over` is True where
                `head` is the width of all heads together
    kv          the key of the number of heads of keys and values; cross_kv: the same key for the attention to the text
    sizes       features of each axis of `axes` (default: the last letters of thw): the key, or a function of the width of a
                head and the settings; where `part` is True, the last features of a head may stay without rotation
    map         instead of sizes: a rule of `axis_maps` and the key of its sections
    base        of the frequencies: a number, the key, or a function of the settings and the sizes that gives one per axis
    layout      how features are paired
    table       instead of sizes, for a class that rotates nothing: the encoding of the table at its input, and a function that
                gives the call of posref for a width of a token; p in this call are the coordinates of all patches
    rows        the key that counts the rows of a trained table
    window      a function of the settings: the keys that a query sees on each side, itself included
    norm        of queries and keys: before, or the key that decides it; None or False for that key means no norm
    patches     coordinates of the patch in frame t, row h and column w of picture k of K, which has T x H x W patches; {key} is
                the value of a key; or a function of the settings. By default those of `axes`
    text        coordinates of token i of n tokens of the text (H, W: of the largest picture); None where the text is not
                rotated; False where the class has no text
    token       what the tokens of `text` are, if they are not text
    names       definitions of further names in the coordinates, as an equation or in words
    beside      a sentence about other tokens
    keys        True where the text has keys and no queries
    cross       True where each layer has a second attention, from the patches to the text, without rotation; "turned": with
                rotation; "alone": the layers have this attention only
    pipeline    the pipeline that gives the module these coordinates, if the module does not make them itself
    if          {key of the file: entries that change the row where this key is set}; "key=value": where it has this value
    only        {key: values}: a file with another value is not described
    timestep    (factor of the timestep, width of its sinusoid, and the divisor of the frequencies if it is not dim)
    input       learned: a trained table is also added to the patches
    segment     which patches see each other, where not all of them do

`diffusers.json` has the module of each class, and the defaults of the keys that a file leaves out. The explanation of a class
without a row says that posref does not describe the class.
"""

import functools
import json
import re
from dataclasses import replace
from importlib import resources

from posref.explain import axis_maps, slips
from posref.explain.configuration import Settings, facts, shown
from posref.explain.inventory import require_few, size
from posref.explain.layer import Explanation, Layer
from posref.explain.traps import unread
from posref.rotary import rope

SIZES = (("heads", "num_attention_heads"), ("head", "attention_head_dim"))
COUNTS = re.compile(r"(^|_)(n|num)_?(\w+_)?(layers|blocks)$|^nlayers$|(^|_)depth$")
FLUX = {
    "stacks": {"transformer_blocks": "num_layers", "single_transformer_blocks": "num_single_layers"},
    "sizes": "axes_dims_rope",
    "base": 10000,
    "norm": "before",
    "patches": "(0, h, w)",
    "text": "(0, 0, 0)",
    "pipeline": "FluxPipeline",
    "timestep": (1000, 256),
}
WAN = {
    "stacks": {"blocks": "num_layers"},
    "sizes": lambda d, key: [d - 4 * (d // 6), 2 * (d // 6), 2 * (d // 6)],
    "base": 10000,
    "norm": "before",
    "cross": True,
}
HUNYUAN = {
    **FLUX,
    "sizes": "rope_axes_dim",
    "base": "rope_theta",
    "norm": "qk_norm",
    "pipeline": None,
    "patches": None,
    "text": None,
    "timestep": (1, 256),
}
QWEN = {
    **FLUX,
    "stacks": {"transformer_blocks": "num_layers"},
    "pipeline": None,
    "patches": "(k + t, h - (H - H // 2), w - (W - W // 2))",
    "text": "(max(H // 2, W // 2) + i,) * 3",
    "timestep": (1000, 256),
}
GRID = "(top, left), (bottom, right) = "  # the region of a picture in the grid of the pictures that were trained on


def _mae(width, p="p"):
    """The call for a 2-D sinusoid; get_2d_sincos_pos_embed puts the column first, in its grid and in its features."""
    return f"sinusoidal_2d.encode({p}, sinusoidal.frequencies({width // 2}), convention='mae')"


def _mae_of_frames(width):
    """One quarter of the features encodes the frame, three quarters row and column, as in get_3d_sincos_pos_embed."""
    frames = f"sinusoidal.encode(p[:, 0], sinusoidal.frequencies({width // 4}), layout='half')"
    return f"np.concatenate([{frames}, {_mae(width // 4 * 3, 'p[:, 1:]')}], axis=-1)"


def _stretched(key, scale=None):
    """PatchEmbed without a largest size: coordinates of every picture are stretched to the range of the trained size."""
    base, scale = key["sample_size"] // key["patch_size"], scale or max(key["sample_size"] // 64, 1)
    return f"(h / (H / {base}) / {scale}, w / (W / {base}) / {scale})"


def _cropped(key):
    """PatchEmbed with pos_embed_max_size: coordinates are those of the middle of a larger table."""
    base, most = key["sample_size"] // key["patch_size"], key["pos_embed_max_size"]
    return f"((({most} - H) // 2 + h) / ({most} / {base}), (({most} - W) // 2 + w) / ({most} / {base}))"


def _row_of_middle(key):
    """The row of AuraFlow's table; if a side is odd, the middle differs from the middle in `_cropped`."""
    side = int(key["pos_embed_max_size"] ** 0.5)
    return f"(({side} // 2 - H // 2 + h) * {side} + {side} // 2 - W // 2 + w,)"


def _width(key):
    return key["num_attention_heads"] * key["attention_head_dim"]


SINES = {
    "stacks": {"transformer_blocks": "num_layers"},
    "table": ("sinusoidal_2d_input", _mae),
    "norm": None,
    "text": None,
    "timestep": (1, 256),
}
CROSSED = {"cross_attention_dim": {"cross": True}}
PIXART = {
    **SINES,
    "patches": lambda key: _stretched(key, key["interpolation_scale"]),
    "text": False,
    "if": CROSSED,
    "only": {"norm_type": ("ada_norm_single",), "attention_type": ("default",)},
}
OF_CLASSES = (1, 256, "dim - 2")  # the timestep beside labels of classes
SD3 = {
    **SINES,
    "patches": _cropped,
    "norm": "qk_norm",
    "if": {"dual_attention_layers": {"beside": "layers {dual_attention_layers} also have an attention of the patches alone"}},
}
COGVIDEO_SINES = {
    **SINES,
    "table": ("sinusoidal_3d_input", _mae_of_frames),
    "norm": "before",
    "patches": "(t / {temporal_interpolation_scale}, h / {spatial_interpolation_scale}, w / {spatial_interpolation_scale})",
    "timestep": None,
}
COGVIDEO = {
    "stacks": {"transformer_blocks": "num_layers"},
    "sizes": lambda d, key: [d // 4, d // 8 * 3, d // 8 * 3],
    "base": 10000,
    "norm": "before",
    "patches": "(t, np.linspace(top, bottom * (H - 1) / H, H)[h], np.linspace(left, right * (W - 1) / W, W)[w])",
    "text": None,
    "names": GRID + "get_resize_crop_region_for_grid((H, W), {sample_width} // {patch_size}, {sample_height} // {patch_size})",
    "pipeline": "CogVideoXPipeline",
    "table": None,
}
LEARNED = {"use_learned_positional_embeddings": {"input": "learned"}}
HUNYUAN_DIT = {
    "stacks": {"blocks": "num_layers"},
    "axes": "wh",
    "sizes": lambda d, key: [d // 2, d // 2],
    "base": 10000,
    "norm": "before",
    "patches": "(np.linspace(top, bottom * (H - 1) / H, H)[h], np.linspace(left, right * (W - 1) / W, W)[w])",
    "names": GRID + "get_resize_crop_region_for_grid((H, W), 512 // 8 // {patch_size})",
    "beside": "the pooling of the T5 text adds a learned table, which is not described here",
    "text": None,
    "cross": "turned",
    "pipeline": "HunyuanDiTPipeline",
}
SOUND_ROW = {
    "stacks": {"transformer_blocks": "num_layers"},
    "axes": "t",
    "patches": "(t,)",
    "part": True,
    "base": 10000,
    "layout": "half",
    "norm": "before",
}
JOY = {
    "over": True,
    "stacks": {"double_blocks": "num_layers"},
    "head": "hidden_size",
    "sizes": "rope_dim_list",
    "base": "theta",
    "norm": "before",
    "text": None,
    "timestep": (1, 256),
}
KANDINSKY = {
    "heads": lambda key: key["model_dim"] // sum(key["axes_dims"]),
    "head": lambda key: sum(key["axes_dims"]),
    "base": 10000,
    "norm": "before",
    "pipeline": "Kandinsky5T2VPipeline",
    "only": {"attention_type": ("regular",)},
}
COSMOS = {
    "stacks": {"transformer_blocks": "num_layers"},
    "sizes": lambda d, key: [d - 4 * (d // 6), 2 * (d // 6), 2 * (d // 6)],
    "base": lambda key, sizes: [1e4 * s ** (n / (n - 2)) for s, n in zip(key["rope_scale"], sizes, strict=True)],
    "layout": "half",
    "norm": "before",
    "patches": "(t * 24 / fps, h, w)",
    "names": "fps: frames per second, 24 where the caller names none",
    "beside": "with extra_pos_embed_type, {extra_pos_embed_type} here, every block adds a trained table to the patches",
    "cross": True,
}
ACE = {
    **SOUND_ROW,
    "head": "head_dim",
    "kv": "num_key_value_heads",
    "sizes": lambda d, key: [d],
    "base": "rope_theta",
    "cross": True,
    "cross_kv": "num_key_value_heads",
}
GLM = {
    "stacks": {"transformer_blocks": "num_layers"},
    "axes": "hw",
    "sizes": lambda d, key: [d // 2, d // 2],
    "base": 10000,
    "layout": "half",
    "norm": "before",
    "text": None,
}
FIBO2 = {
    "over": True,
    "heads": "n_heads",
    "head": "dim",
    "sizes": "axes_dims",
    "base": "rope_theta",
    "norm": "before",
}


def _ace(slides):
    """The indices of the layers with a window, or of those without; by default the two kinds alternate."""

    def found(key):
        kinds = key["layer_types"] or ["sliding_attention", "full_attention"] * key["num_hidden_layers"]
        return [i for i, kind in enumerate(kinds[: key["num_hidden_layers"]]) if (kind == "sliding_attention") == slides]

    return found


ROWS = {
    "FluxTransformer2DModel": FLUX,
    "ChromaTransformer2DModel": {**FLUX, "pipeline": "ChromaPipeline", "timestep": None},
    "Flux2Transformer2DModel": {
        **FLUX,
        "axes": "thwl",
        "base": "rope_theta",
        "patches": "(0, h, w, 0)",
        "text": "(0, 0, 0, i)",
        "pipeline": "Flux2Pipeline",
        "timestep": (1000, "timestep_guidance_channels"),
    },
    "QwenImageTransformer2DModel": {
        **QWEN,
        "if": {
            "use_layer3d_rope": {
                "patches": "(k + t if k < K - 1 else -1, h - (H - H // 2), w - (W - W // 2))",
                "text": "(max(H // 2, W // 2, K - 1) + i,) * 3",
            }
        },
    },
    "WanTransformer3DModel": {**WAN, "timestep": (1, "freq_dim")},
    "HunyuanVideoTransformer3DModel": HUNYUAN,
    "HunyuanVideo15Transformer3DModel": {**HUNYUAN, "stacks": {"transformer_blocks": "num_layers"}},
    "HunyuanImageTransformer2DModel": HUNYUAN,
    "SkyReelsV2Transformer3DModel": WAN,
    "WanVACETransformer3DModel": {
        **WAN,
        "stacks": {"blocks": "num_layers", "vace_blocks": "vace_layers"},
        "timestep": (1, "freq_dim"),
    },
    "ChronoEditTransformer3DModel": {
        **WAN,
        "sizes": lambda d, key: [d - 2 * (d // 3), d // 3, d // 3],
        "patches": "(t * ({rope_temporal_skip_len} - 1 if T == 2 else 1), h, w)",
        "timestep": (1, "freq_dim"),
    },
    "BriaTransformer2DModel": {**FLUX, "base": "rope_theta", "pipeline": "BriaPipeline", "timestep": None},
    "BriaFiboTransformer2DModel": {**FLUX, "base": "rope_theta", "pipeline": "BriaFiboPipeline", "timestep": None},
    "OvisImageTransformer2DModel": {**FLUX, "text": "(0, i, i)", "pipeline": "OvisImagePipeline"},
    "LongCatImageTransformer2DModel": {
        **FLUX,
        "patches": "(1, 512 + h, 512 + w)",
        "text": "(0, i, i)",
        "pipeline": "LongCatImagePipeline",
    },
    "Krea2Transformer2DModel": {
        **FLUX,
        "stacks": {"transformer_blocks": "num_layers"},
        "kv": "num_key_value_heads",
        "base": "rope_theta",
        "pipeline": "Krea2Pipeline",
        "timestep": None,
    },
    "Lumina2Transformer2DModel": {
        "over": True,
        "stacks": {
            "layers": "num_layers",
            "noise_refiner": "num_refiner_layers patches",
            "context_refiner": "num_refiner_layers text",
        },
        "head": "hidden_size",
        "kv": "num_kv_heads",
        "sizes": "axes_dim_rope",
        "base": 10000,
        "norm": "before",
        "patches": "(n, h, w)",
        "text": "(i, 0, 0)",
        "timestep": (1, 256),
    },
    "ZImageTransformer2DModel": {
        "over": True,
        "stacks": {
            "layers": "n_layers",
            "noise_refiner": "n_refiner_layers patches",
            "context_refiner": "n_refiner_layers text",
        },
        "heads": "n_heads",
        "head": "dim",
        "sizes": "axes_dims",
        "base": "rope_theta",
        "norm": "qk_norm",
        "patches": "(-n // 32 * -32 + 1 + t, h, w)",
        "text": "(1 + i, 0, 0)",
    },
    "CogView4Transformer2DModel": {**GLM, "patches": "(h * {rope_axes_dim[0]} // H, w * {rope_axes_dim[1]} // W)"},
    "FluxControlNetModel": FLUX,
    "QwenImageControlNetModel": QWEN,
    "NucleusMoEImageTransformer2DModel": {
        **QWEN,
        "kv": "num_key_value_heads",
        "keys": True,
        "timestep": (1000, _width),
    },
    "Flux3Transformer2DModel": {
        **FLUX,
        "stacks": {
            "mode_blocks.image": "num_layers patches",
            "txt_mode_blocks": "num_layers text",
            "single_transformer_blocks": "num_single_layers",
        },
        "axes": "thwl",
        "base": "rope_theta",
        "patches": "img_ids[p]",
        "names": "p: the place of the patch in its sequence; the caller gives img_ids",
        "beside": "those of a given picture turn by image_cond_ids, also in mode_blocks.image_cond, as many blocks",
        "text": "txt_ids[i]",
        "pipeline": None,
        "timestep": (1000, "timestep_channels"),
    },
    "AnyFlowTransformer3DModel": {**WAN, "timestep": (1, "freq_dim")},
    "HeliosTransformer3DModel": {
        **WAN,
        "sizes": "rope_dim",
        "base": "rope_theta",
        "beside": "those of the history, where it is given, are turned by means of tables, which is not described here",
        "timestep": (1, "freq_dim"),
    },
    "CogVideoXTransformer3DModel": {
        **COGVIDEO_SINES,
        "if": {
            "use_rotary_positional_embeddings": COGVIDEO,
            "patch_size_t": {"patches": "(t, h, w)", "names": ""},
            **LEARNED,
        },
    },
    "ConsisIDTransformer3DModel": {
        **COGVIDEO_SINES,
        "if": {"use_rotary_positional_embeddings": {**COGVIDEO, "pipeline": "ConsisIDPipeline"}, **LEARNED},
        "beside": "with is_train_face, {is_train_face} here, local_facial_extractor and perceiver_cross_attention attend too, "
        "which is not described here",
    },
    "EasyAnimateTransformer3DModel": {
        **COGVIDEO,
        "names": GRID + "get_resize_crop_region_for_grid((H, W), 90 // {patch_size}, 60 // {patch_size})",
        "pipeline": None,
    },
    "GlmImageTransformer2DModel": GLM,
    "HunyuanDiT2DModel": HUNYUAN_DIT,
    "HunyuanDiT2DControlNetModel": {**HUNYUAN_DIT, "stacks": {"blocks": lambda key: key["transformer_num_layers"] // 2 - 1}},
    "StableAudioDiTModel": {
        **SOUND_ROW,
        "sizes": lambda d, key: [d // 2],
        "norm": None,
        "patches": "(1 + t,)",
        "text": "(0,)",
        "token": "the token of the duration and the timestep, which stands first",
        "cross": True,
        "cross_kv": "num_key_value_attention_heads",
        "pipeline": "StableAudioPipeline",
    },
    "StableAudio3DiTModel": {
        **SOUND_ROW,
        "over": True,
        "stacks": {"transformer_blocks": "depth"},
        "heads": "num_heads",
        "head": "embed_dim",
        "sizes": lambda d, key: [d // 2],
        "patches": "({num_memory_tokens} + t,)",
        "text": "(i,)",
        "token": "memory token i of n, from 0, which stand first",
        "beside": "the output is the difference of two attentions: use_differential_attention is {use_differential_attention}",
        "cross": True,
    },
    "MiniMaxMusic3Transformer1DModel": {
        **SOUND_ROW,
        "sizes": "rotary_dim",
        "norm": None,
        "patches": "(1 + t,)",
        "text": "(0,)",
        "token": "the token of the timestep, which stands first",
    },
    "LongCatAudioDiTTransformer": {
        **SOUND_ROW,
        "over": True,
        "stacks": {"blocks": "dit_depth"},
        "heads": "dit_heads",
        "head": "dit_dim",
        "sizes": lambda d, key: [d],
        "base": 100000,
        "norm": "qk_norm",
        "text": "(i,)",
        "cross": "turned",
        "only": {"cross_attn": (True,)},
    },
    "PRXTransformer2DModel": {
        "over": True,
        "stacks": {"blocks": "depth"},
        "heads": "num_heads",
        "head": "hidden_size",
        "sizes": lambda d, key: key["axes_dim"] or [32, 32],
        "axes": "hw",
        "base": "theta",
        "norm": "before",
        "text": None,
        "keys": True,
    },
    "JoyImageEditTransformer3DModel": {**JOY, "if": {"rope_type=mrope": {"text": "(max(T, H, W) + i,) * 3"}}},
    "JoyImageEditPlusTransformer3DModel": {
        **JOY,
        "patches": "(T0 + t, h, w)",
        "names": "T0 is the number of frames of the pictures before",
    },
    "Ideogram4Transformer2DModel": {
        "stacks": {"layers": "num_layers"},
        "map": ("interleaved", "mrope_section"),
        "base": "rope_theta",
        "layout": "half",
        "norm": "before",
        "patches": "(65536, 65536 + h, 65536 + w)",
        "text": "(i, i, i)",
        "pipeline": "Ideogram4Pipeline",
    },
    "MotifVideoTransformer3DModel": {
        **HUNYUAN,
        "only": {
            "enable_text_cross_attention_dual": (False,),
            "enable_text_cross_attention_single": (False,),
            "num_decoder_layers": (0,),
        },
        "timestep": (1, 256),
    },
    "Kandinsky5Transformer3DModel": [
        {
            **KANDINSKY,
            "stacks": {"text_transformer_blocks": "num_text_blocks text"},
            "axes": "t",
            "sizes": lambda d, key: [d],
            "text": "(i,)",
        },
        {
            **KANDINSKY,
            "stacks": {"visual_transformer_blocks": "num_visual_blocks patches"},
            "sizes": "axes_dims",
            "patches": "(t / f, h / g, w / g)",
            "names": "f and g: what its pipeline gives as scale_factor, (f, g, g)",
            "beside": "turned queries and keys are rounded to bfloat16",
            "cross": True,
        },
    ],
    "HiDreamImageTransformer2DModel": {
        **FLUX,
        "stacks": {"double_stream_blocks": "num_layers", "single_stream_blocks": "num_single_layers"},
        "patches": "(0, h, w)",
        "beside": "where H is not W, patches (0, 0, 0) follow",
        "pipeline": None,
        "timestep": None,
    },
    "CosmosTransformer3DModel": COSMOS,
    "AceStepTransformer1DModel": [
        {**ACE, "stacks": {"layers": _ace(True)}, "window": lambda key: key["sliding_window"] + 1},
        {**ACE, "stacks": {"layers": _ace(False)}},
    ],
    "BriaFibo2Transformer2DModel": [
        {
            **FIBO2,
            "stacks": {"noise_refiner": "n_refiner_layers patches", "layers": "n_layers"},
            "patches": "({max_num_gist_tokens} + 1 + k, h, w)",
            "text": "(1 + i, 0, 0)",
            "token": "gist token i of n, from 0",
        },
        {**FIBO2, "stacks": {"layers": lambda key: [*key["injection_layer_ids"]]}, "cross": "alone"},
    ],
    "MiniMaxH3Transformer3DModel": {
        "stacks": {"transformer_blocks": "num_layers"},
        "part": True,
        "sizes": lambda d, key: 3 * [2 * key["rope_freq_dim"]],
        "base": "rope_theta",
        "layout": "half",
        "norm": "before",
        "patches": "position_ids[video_indices[p]]",
        "names": "p: the place of the patch in its sequence; the caller gives position_ids, (t, h, w)",
        "beside": "steps of the sound turn by position_ids[audio_indices[p]]",
        "text": "position_ids[text_indices[i]]",
        "timestep": (1, "freq_dim"),
    },
    "WanAnimateTransformer3DModel": {
        **WAN,
        "beside": "face_adapter, after every {inject_face_latents_blocks} blocks, attends too, which is not described here",
        "timestep": (1, "freq_dim"),
    },
    "SD3Transformer2DModel": SD3,
    "SD3ControlNetModel": {**SD3, "only": {"use_pos_embed": (True,), "pos_embed_type": ("sincos",)}},
    "PixArtTransformer2DModel": PIXART,
    "DiTTransformer2DModel": {**SINES, "text": False, "patches": lambda key: _stretched(key, 1), "timestep": OF_CLASSES},
    "Transformer2DModel": {
        **PIXART,
        "if": {**CROSSED, "norm_type=ada_norm_zero": {"timestep": OF_CLASSES}},
        "only": {
            "attention_type": ("default",),
            "norm_type": ("ada_norm_single", "ada_norm_zero"),
            "only_cross_attention": (False,),
            "double_self_attention": (False,),
        },
    },
    "AuraFlowTransformer2DModel": {
        **SINES,
        "stacks": {"joint_transformer_blocks": "num_mmdit_layers", "single_transformer_blocks": "num_single_dit_layers"},
        "table": ("learned", lambda width: "learned.encode(p[:, 0], table)"),
        "rows": "pos_embed_max_size",
        "norm": "before",
        "patches": _row_of_middle,
        "beside": "8 trained tokens, which have no position either, stand before the text",
        "timestep": (1000, 256),
    },
    "CogView3PlusTransformer2DModel": {**SINES, "norm": "before", "patches": "(h, w)", "timestep": (1, _width)},
    "LatteTransformer3DModel": [
        {
            **PIXART,
            "patches": _stretched,
            "segment": "the patches of one frame see each other",
            "only": {"norm_type": ("ada_norm_single",)},
        },
        {
            **SINES,
            "stacks": {"temporal_transformer_blocks": "num_layers"},
            "table": (
                "sinusoidal",
                lambda width: f"sinusoidal.encode(p[:, 0], sinusoidal.frequencies({width}), layout='half')",
            ),
            "patches": "(t,)",
            "text": False,
            "beside": "the first of these layers adds this table, unless there is one frame",
            "segment": "the patches of one place in all frames see each other",
        },
    ],
}
CONVOLUTIONS = "its attentions have no position; convolutions, which pad with zeros, order the pixels"
CONVOLVED = (  # with other attentions than those of CONVOLUTIONS, or with none
    "AsymmetricAutoencoderKL AutoencoderDC AutoencoderKL AutoencoderKLAllegro AutoencoderKLCogVideoX AutoencoderKLCosmos "
    "AutoencoderKLFlux2 AutoencoderKLHunyuanImage AutoencoderKLHunyuanImageRefiner AutoencoderKLHunyuanVideo "
    "AutoencoderKLHunyuanVideo15 AutoencoderKLKVAE AutoencoderKLKVAEAudio AutoencoderKLKVAEVideo AutoencoderKLLTX2Audio "
    "AutoencoderKLLTX2Video AutoencoderKLLTXVideo AutoencoderKLMagvit AutoencoderKLMochi AutoencoderKLQwenImage "
    "AutoencoderKLQwenImage21 AutoencoderKLTemporalDecoder AutoencoderKLWan AutoencoderOobleck AutoencoderTiny "
    "AutoencoderVidTok ConsistencyDecoderVAE ControlNetUnionModel Cosmos3AVAEAudioTokenizer DreamLiteUNetModel "
    "I2VGenXLUNet Kandinsky3UNet Kandinsky6SRLatentUpscalerBank Kandinsky6SRVAE LongCatAudioDiTVae MMAudioVAE "
    "MMAudioVocoder MiniMaxMusic3ConditionEncoder MiniMaxMusic3Vocoder StableCascadeUNet T2IAdapter UNet1DModel "
    "UNet2DModel UNet3DConditionModel UVit2DModel VQModel"
)
OF_SEVERAL_MODELS = (
    "FluxMultiControlNetModel HunyuanDiT2DMultiControlNetModel MultiAdapter MultiControlNetModel MultiControlNetUnionModel "
    "QwenImageMultiControlNetModel SD3MultiControlNetModel"
)
FRAMES = "convolutions order the pixels; sinusoids of the frames are added in its attention over frames"
WHY = {
    **dict.fromkeys(CONVOLVED.split(), "it has no term for position; convolutions order what it reads"),
    **dict.fromkeys(OF_SEVERAL_MODELS.split(), "it holds several models; name the configuration of one"),
    **dict.fromkeys(("MotionAdapter", "SparseControlNetModel", "UNetMotionModel", "UNetSpatioTemporalConditionModel"), FRAMES),
    **dict.fromkeys(
        ("ControlNetXSAdapter", "UNetControlNetXSModel"),
        "it joins a UNet with a smaller one, whose convolutions order the pixels",
    ),
    "AnyFlowFARTransformer3DModel": "tables of compressed frames are means of cosines and of sines, which is no rotation",
    "AnimaTextConditioner": "its queries rotate by places of one text, and its keys by places of the other",
    "AutoencoderKLMiniMaxH3": "layers of its decoder rotate by frame, row and column, which are divided by their extent",
    "AutoencoderKLMiniMaxH3Audio": "convolutions order the sound; its attention is causal, without a term for position",
    "AutoencoderRAE": "2-D sinusoids are added at the input of its decoder",
    "AutoencoderSAME": "its layers rotate a part of each head by places of the sound",
    "CosmosControlNetModel": "its layers are those of CosmosTransformer3DModel, and its tables too",
    "DreamLiteTransformer2DModel": "its attentions have no position; convolutions of the UNet around it order the pixels",
    "Kandinsky6SRTransformer3DModel": "blocks of patches see the blocks that their scores choose",
    "Kandinsky6Transformer3DModel": "video and sound, each with its text, rotate apart, and then see each other",
    "LTX2VideoDiffusionDecoderModel": "its layers rotate by frame, row and column, and patches see their neighbours",
    "MiniMaxMusic3RVQDepthDecoder": "a trained row for each codebook is added at the input; its mask is causal",
    "PriorTransformer": "a trained row for each of its tokens is added at the input; its mask is causal",
    **dict.fromkeys(
        ("RFD4ProteinaAutoencoder", "RFD4ProteinaTransformer"), "its scores have a bias made of features of each pair of tokens"
    ),
    "SanaControlNetModel": "its layers are those of SanaTransformer2DModel, whose attention is linear",
    "SanaWMLTX2RefinerTransformer3DModel": "each head has its own frequencies",
    "SanaWMTransformer3DModel": "most of its layers keep a state over frames, and features rotate by rays of the camera too",
    "T5FilmDecoder": "a fixed table is added at the input, a row for each frame of the sound",
    "TransformerTemporalModel": "its attention over frames has no position, unless the file has positional_embeddings",
    "WanAnimate2Transformer3DModel": "frames of the reference rotate by other offsets and steps, and their mask is given",
    "ZImageControlNetModel": "its layers are those of ZImageTransformer2DModel, whose tables it takes",
    **dict.fromkeys(("UNet2DConditionModel", "ControlNetModel"), CONVOLUTIONS),
    "AllegroTransformer3DModel": "each axis pairs the halves of its own features",
    "ErnieImageTransformer2DModel": "the two features of a pair turn by different angles, which is no rotation",
    "HunyuanVideoFramepackTransformer3DModel": "tables of the history are means of cosines and of sines, which is no rotation",
    "LTX2VideoTransformer3DModel": "each head has its own frequencies",
    "LTXVideoTransformer3DModel": "each head has its own frequencies",
    "LuminaNextDiT2DModel": "its pipeline changes the frequencies with the timestep",
    "Cosmos3OmniTransformer": "in each layer two streams of tokens have masks of their own",
    "MochiTransformer3DModel": "its frequencies are trained, per head",
    "OmniGenTransformer2DModel": "its frequencies are those of LongRoPE, and its mask is given by the caller",
    "QwenImage21Transformer2DModel": "its mask is causal within texts, and differs by segment",
    "SanaTransformer2DModel": "its attention is linear, and the convolutions of its feed-forward layers pad with zeros",
    "SanaVideoTransformer3DModel": "its attention is linear, and its denominator has queries and keys that are not turned",
}
PLACE = "of the patch in frame t, row h and column w, each from 0, of T x H x W patches"
SOUND = "of step t of the sound, from 0"
OF_SEVERAL = " of picture k of K"


def recognised(config):
    """Whether a class of diffusers reads this file; transformers reads a file with one of its own model types."""
    name = config.get("_class_name")
    return isinstance(name, str) and (name in ROWS or str(config.get("model_type")) not in facts())


@functools.cache
def classes():
    """{class of diffusers: its module and the defaults of its keys}, for the classes that have a row."""
    return json.loads(resources.files(__package__).joinpath("diffusers.json").read_text(encoding="utf-8"))


def explanation(config):
    """The explanation of one file; `unsupported` names the layers that no row describes."""
    name = config["_class_name"]
    settings = Settings({key: value for key, value in config.items() if not key.startswith("_")}, name)
    settings.facts = classes().get(name, {})
    rows = ROWS.get(name, [])
    rows = rows if isinstance(rows, list) else [rows]
    other = [key for row in rows for key, values in row.get("only", {}).items() if settings[key] not in values]
    given = settings.facts.get("defaults", {}) | settings.file
    require_few({("", key): size(value) for key, value in given.items() if COUNTS.search(key)})
    try:
        found = [group for row in rows for group in _groups(settings, row)] if not other else []
    except (TypeError, LookupError, ArithmeticError, AttributeError) as error:
        raise settings.error(f"a key has a value that {name} cannot have: {error}") from error
    counted = {key: settings.count(key, least=0) for key in given if COUNTS.search(key) and key not in settings.read}
    why = "posref does not know how these layers use positions" if found else _unknown(config, other)
    entry = {"part": "", "model_type": name, "kind": None, "counted_by": None, "indices": [], "why": why}
    left = [entry | {"counted_by": key, "indices": [*range(n)]} for key, n in counted.items() if n]
    ignored = [key for key in settings.file if found and key not in settings.facts["defaults"]]
    words = [f"diffusers 0.42.1 ignores {', '.join(ignored)}: {name} has no such key"] if ignored else []
    loud = [key for key in unread(settings, found) if key not in ignored] if found else []
    return Explanation(name, found, left or ([] if found else [entry]), words, loud, [])


def _unknown(config, other):
    """Why a class without a row, or a file with a value that the row does not know, is not described."""
    name = config["_class_name"]
    if name in WHY:
        return f"posref does not describe {name} of diffusers: {WHY[name]}"
    if other:
        return f"posref does not know how {name} of diffusers uses positions with this {other[0]}"
    parts = [key for key, value in config.items() if isinstance(value, list) and "diffusers" in value]
    if parts:
        return f"a pipeline of several models; name the configuration of one: {', '.join(parts)}"
    return f"posref does not know how {name} of diffusers uses positions"


def _groups(settings, row):
    for key, more in row.get("if", {}).items():
        key, _, value = key.partition("=")
        row = row | more if (settings[key] == value if value else settings[key]) else row
    heads, head = (_count(settings, row.get(key, usual)) for key, usual in SIZES)
    head = head // heads if row.get("over") else head
    turned, pairs = ((), ()) if row.get("table") else _pairs(settings, row, head)
    frequencies = [w for _, n, base in turned for w in rope.frequencies(n, base).tolist()]
    bases = {base for *_, base in turned}
    encoding, call = row.get("table") or ("rope", lambda width: None)
    norm = row["norm"] if row["norm"] in (None, "before") else "before" if settings[row["norm"]] else None
    folder = "controlnets" if settings.facts["module"].startswith("controlnet") else "transformers"
    layer = Layer(
        model_type=settings.model_type,
        encoding=encoding,
        head_dim=head,
        heads=heads,
        kv_heads=_count(settings, row["kv"]) if "kv" in row and settings[row["kv"]] is not None else heads,
        softmax_scale=head**-0.5,
        causal=False,
        window=row["window"](settings) if "window" in row else None,
        window_sides="both" if "window" in row else None,
        norm="alone" if norm and not turned else norm,
        layout=row.get("layout", "interleaved") if turned else None,
        sign=1 if turned else None,
        rotated="first" if turned else None,
        rotary_dim=2 * len(frequencies),
        base=bases.pop() if len(bases) == 1 else None,
        frequencies=frequencies,
        call=call(heads * head) or ", ".join(f"rope.frequencies({n}, {base}) by {axis}" for axis, n, base in turned),
        axes=[axis for axis, _ in pairs] or None,
        index=[at for _, at in pairs] or None,
        order=row["map"][0] if "map" in row else "sections" if turned else None,
        learned_first=False if turned else None,
        table=_count(settings, row["rows"]) if "rows" in row else None,
        segment=row.get("segment", ""),
        input=row.get("input"),
        source=f"diffusers 0.42.1, models/{folder}/{settings.facts['module']}.py",
    )
    layer, found = replace(layer, slips=slips.slips(layer)), []
    axes = [axis for axis, *_ in turned]
    said = _positions(settings, {**row, "patches": row.get("patches") or f"({', '.join(axes)})"})
    for stack, words in row["stacks"].items():
        key, *alone = (words,) if callable(words) else words.split()
        given = key(settings) if callable(key) else settings[key]
        count = len(given) if isinstance(given, list) else _count(settings, key, least=0)
        layers = settings.numbered(stack, count)
        layers = given if callable(key) and isinstance(given, list) else layers
        hidden = {"patches": ("text",), "text": ("images",)}[alone[0]] if alone else ()
        positions = {name: value for name, value in said.items() if name not in hidden}
        alone = row.get("cross") == "alone"
        found += [replace(layer, part=stack, indices=layers, positions=positions)] if layers and not alone else []
        if layers and row.get("cross") == "turned":
            found.append(replace(found[-1], kind="cross_attention"))
        elif layers and row.get("cross"):
            kv = _count(settings, row["cross_kv"]) if "cross_kv" in row else layer.kv_heads
            found.append(_cross(replace(layer, kv_heads=kv), stack, layers))
    return found


def _pairs(settings, row, head):
    """The frequencies as a list of (axis, features, base), and for each pair its axis and the index of its frequency."""
    if "map" in row:
        rule, key = row["map"]
        pairs, base = axis_maps.pairs(rule, head // 2, settings[key]), _base(settings, row["base"])
        return [(" and ".join(dict.fromkeys(axis for axis, _ in pairs)), head, base)], pairs
    sizes = row["sizes"](head, settings) if callable(row["sizes"]) else settings[row["sizes"]]
    sizes = [sizes] if type(sizes) is int else sizes
    axes = row.get("axes") or "thw"[-len(sizes) :]
    even = isinstance(sizes, list) and all(type(n) is int and n >= 0 and n % 2 == 0 for n in sizes)
    if not even or len(sizes) != len(axes) or sum(sizes) > head or not (row.get("part") or sum(sizes) == head):
        key = row["sizes"] if isinstance(row["sizes"], str) else "the list of features of each axis"
        raise settings.error(f"{key} is {shown(sizes)}, expected {len(axes)} even sizes that add up to {head}")
    bases = row["base"](settings, sizes) if callable(row["base"]) else [_base(settings, row["base"])] * len(sizes)
    turned = [(axis, n, base) for axis, n, base in zip(axes, sizes, bases, strict=True) if n]
    axes = [axis for axis, n, _ in turned for _ in range(n // 2)]
    return turned, [*zip(axes, range(len(axes)), strict=True)]


def _count(settings, key, least=1):
    if callable(key):
        return key(settings)
    found = settings.count(key, least=least)
    if found is None:
        raise settings.error(f"{key} is None, expected an integer")
    return found


def _base(settings, base):
    found = settings.number(base) if isinstance(base, str) else base
    if found is None or found <= 0:
        raise settings.error(f"{base} is {shown(found)}, expected a positive number")
    return float(found)


def _cross(layer, stack, layers):
    kept = ("model_type", "head_dim", "heads", "kv_heads", "softmax_scale", "causal", "norm", "source")
    alone = "alone" if layer.norm else None
    return Layer(
        **{key: getattr(layer, key) for key in kept} | {"norm": alone}, part=stack, kind="cross_attention", indices=layers
    )


def _positions(settings, row):
    text, place = row.get("text"), SOUND if row.get("axes") == "t" else PLACE
    given = f"; {row['pipeline']} gives the module these coordinates" if row.get("pipeline") else ""
    given = "".join(f"; {row[key].format_map(settings)}" for key in ("names", "beside") if key in row) + given
    patches = row["patches"](settings) if callable(row["patches"]) else row["patches"].format_map(settings)
    several = OF_SEVERAL * bool(re.search(r"\b[kK]\b", patches))
    images = f"{patches} {place}{several}{given}"
    found = {"forward": None, "generate": None, "cached": None, "images": images}
    if text or (text is None and row.get("cross") is not True):
        token = row.get("token", "token i of n tokens of the text, from 0")
        without = "its tokens have no position" if row.get("table") else "its tokens are not turned"
        found["text"] = f"{text.format_map(settings)} of {token}" if text else without
        found["text"] += "; it has keys and no queries" if row.get("keys") else ""
    if row.get("timestep"):
        factor, width, *divisor = row["timestep"]
        divisor = "".join(f", divisor='{each}'" for each in divisor)
        width = width if isinstance(width, int) else _count(settings, width)
        at = "timestep" if factor == 1 else f"{factor} * timestep"
        sines = f"sinusoidal.encode({at}, sinusoidal.frequencies({width}{divisor}), layout='half')"
        found["timestep"] = f"np.roll({sines}, {width // 2}, axis=-1): cosines first"
    return found
