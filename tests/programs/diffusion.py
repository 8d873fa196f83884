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
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from unittest import mock

import diffusers
import numpy as np
import torch

from posref.absolute import sinusoidal
from posref.explain import diffusers as rows
from posref.explain import explain
from posref.rotary import rope

NORM = re.compile(r"(^|_)norm_?(q|k)$|^(q|k|query|key)_?norm")
U = 2.0**-24
TEXT = 7
PICTURE = (2, 3, 5)  # frames, rows and columns of patches: odd ones show on which side a centre lies
SMALL = {
    "num_layers": 2,
    "num_single_layers": 1,
    "num_refiner_layers": 1,
    "num_attention_heads": 2,
    "attention_head_dim": 24,
    "axes_dims_rope": [4, 8, 12],
    "rope_axes_dim": [4, 8, 12],
    "in_channels": 4,
    "out_channels": 4,
    "joint_attention_dim": 16,
    "pooled_projection_dim": 16,
    "text_dim": 16,
    "text_embed_dim": 16,
    "freq_dim": 32,
    "ffn_dim": 32,
    "approximator_num_channels": 16,
    "approximator_hidden_dim": 16,
    "approximator_layers": 1,
    "patch_size": 1,
    "guidance_embeds": False,
    "text_embed_2_dim": 16,
    "image_embed_dim": 16,
    "text_encoder_dim": 12,
    "num_key_value_heads": 1,
    "intermediate_size": 32,
    "text_hidden_dim": 16,
    "num_text_layers": 2,
    "text_num_attention_heads": 2,
    "text_num_key_value_heads": 2,
    "text_intermediate_size": 16,
    "num_layerwise_text_blocks": 1,
    "num_refiner_text_blocks": 1,
    "hidden_size": 48,
    "num_kv_heads": 1,
    "axes_dim_rope": [4, 8, 12],
    "cap_feat_dim": 16,
    "dim": 48,
    "n_layers": 2,
    "n_refiner_layers": 1,
    "n_heads": 2,
    "axes_dims": [4, 8, 12],
    "time_embed_dim": 16,
    "condition_dim": 8,
}


class Case(NamedTuple):
    """How a class is built and run: its arguments, what makes its tables, the order of its tokens, its pictures."""

    inputs: Callable[..., dict[str, Any]]
    tables: str
    order: str = "text patches"
    pictures: Sequence[tuple[int, int, int]] = (PICTURE,)
    text: int = TEXT
    padded: int = 1  # the text has a multiple of this many tokens
    file: Mapping[str, Any] = MappingProxyType({})


def _random(*shape):
    return torch.randn(1, *shape)


def _packed(c, pictures, text):
    """Patches in one row, and a text."""
    given = {"hidden_states": _random(sum(map(math.prod, pictures)), c["in_channels"]), "timestep": torch.tensor([0.7])}
    return given | {"encoder_hidden_states": _random(text, c["joint_attention_dim"])}


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
    patch = c["patch_size"] if isinstance(c["patch_size"], list) else [c.get("patch_size_t", 1), *2 * [c["patch_size"]]]
    size = [n * p for n, p in zip(pictures[0], patch, strict=True)]
    given = {"hidden_states": _random(c["in_channels"], *size), "timestep": torch.tensor([700.0])}
    return given | {"encoder_hidden_states": _random(text, c[width])}


def _hunyuan(c, pictures, text):
    more = {
        "pooled_projections": _random(c["pooled_projection_dim"]),
        "encoder_attention_mask": torch.ones(1, text, dtype=torch.int64),
    }
    return _video(c, pictures, text, "text_embed_dim") | more


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
    return {
        **_packed({**c, "joint_attention_dim": 1}, pictures, text),
        "encoder_hidden_states": _random(text, c["num_text_layers"], c["text_hidden_dim"]),
        "position_ids": ids,
    }


def _lumina(c, pictures, text):
    return _flat(c, pictures, text, "cap_feat_dim")


def _z_image(c, pictures, text):
    size = (c["in_channels"], pictures[0][0], *[2 * n for n in pictures[0][1:]])
    return {"x": [torch.randn(size)], "t": torch.tensor([0.7]), "cap_feats": [torch.randn(text, c["cap_feat_dim"])]}


def _cogview(c, pictures, text):
    sizes = dict.fromkeys(("original_size", "target_size", "crop_coords"), torch.tensor([[64.0, 64.0]]))
    given = _flat(c, pictures, text) | sizes
    return {key: value for key, value in given.items() if key != "encoder_attention_mask"}


FLAT = ((1, 3, 5),)
SEVERAL = ((1, 3, 5), (1, 4, 2))
WAN = {"patch_size": [1, 2, 2], "attention_head_dim": 28}
CASES = {
    "FluxTransformer2DModel": Case(_flux, "transformers.transformer_flux.FluxPosEmbed.forward", pictures=FLAT),
    "ChromaTransformer2DModel": Case(_flux, "transformers.transformer_flux.FluxPosEmbed.forward", pictures=FLAT),
    "Flux2Transformer2DModel": Case(
        _flux2, "transformers.transformer_flux2.Flux2PosEmbed.forward", pictures=FLAT, file={"axes_dims_rope": [4, 8, 6, 6]}
    ),
    "QwenImageTransformer2DModel": Case(_qwen, "transformers.transformer_qwenimage.QwenEmbedRope.forward", pictures=SEVERAL),
    "QwenImageTransformer2DModel layered": Case(
        _qwen,
        "transformers.transformer_qwenimage.QwenEmbedLayer3DRope.forward",
        pictures=SEVERAL,
        file={"use_layer3d_rope": True},
    ),
    "WanTransformer3DModel": Case(
        _video,
        "transformers.transformer_wan.WanRotaryPosEmbed.forward",
        "patches",
        file=WAN,
    ),
    "HunyuanVideo15Transformer3DModel": Case(
        _hunyuan_15, "transformers.transformer_hunyuan_video15.HunyuanVideo15RotaryPosEmbed.forward", "patches text"
    ),
    "HunyuanImageTransformer2DModel": Case(
        _flat,
        "transformers.transformer_hunyuanimage.HunyuanImageRotaryPosEmbed.forward",
        "patches text",
        FLAT,
        file={"patch_size": [1, 1], "rope_axes_dim": [10, 14]},
    ),
    "SkyReelsV2Transformer3DModel": Case(
        _video, "transformers.transformer_skyreels_v2.SkyReelsV2RotaryPosEmbed.forward", "patches", file=WAN
    ),
    "WanVACETransformer3DModel": Case(
        _vace,
        "transformers.transformer_wan.WanRotaryPosEmbed.forward",
        "patches",
        file={**WAN, "vace_layers": [0], "vace_in_channels": 4},
    ),
    "ChronoEditTransformer3DModel": Case(
        _video,
        "transformers.transformer_chronoedit.ChronoEditRotaryPosEmbed.forward",
        "patches",
        file={**WAN, "attention_head_dim": 32},
    ),
    "BriaTransformer2DModel": Case(_flux, "transformers.transformer_bria.BriaEmbedND.forward", pictures=FLAT),
    "BriaFiboTransformer2DModel": Case(_fibo, "transformers.transformer_bria_fibo.BriaFiboEmbedND.forward", pictures=FLAT),
    "OvisImageTransformer2DModel": Case(_ovis, "transformers.transformer_ovis_image.OvisImagePosEmbed.forward", pictures=FLAT),
    "LongCatImageTransformer2DModel": Case(
        _longcat, "transformers.transformer_longcat_image.LongCatImagePosEmbed.forward", pictures=FLAT
    ),
    "Krea2Transformer2DModel": Case(_krea, "transformers.transformer_krea2.Krea2RotaryPosEmbed.forward", pictures=FLAT),
    "Lumina2Transformer2DModel": Case(
        _lumina, "transformers.transformer_lumina2.Lumina2RotaryPosEmbed._get_freqs_cis", pictures=FLAT
    ),
    "ZImageTransformer2DModel": Case(
        _z_image, "transformers.transformer_z_image.RopeEmbedder.__call__", "patches text", ((1, 4, 8),), 20, 32
    ),
    "CogView4Transformer2DModel": Case(
        _cogview, "transformers.transformer_cogview4.CogView4RotaryPosEmbed.forward", pictures=FLAT
    ),
    "HunyuanVideoTransformer3DModel": Case(
        _hunyuan, "transformers.transformer_hunyuan_video.HunyuanVideoRotaryPosEmbed.forward", "patches text"
    ),
}


class Call(NamedTuple):
    """One attention: where it stands, whether its queries and keys are normed, and what it was given."""

    place: str
    normed: bool
    q: np.ndarray
    k: np.ndarray
    scale: float | None


def file_of(name):
    """A small file of one case: the sizes above wherever its class has them."""
    kind = name.split()[0]
    has = inspect.signature(getattr(diffusers, kind).__init__).parameters
    return {"_class_name": kind, **{key: value for key, value in SMALL.items() if key in has}, **CASES[name].file}


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


def recorded(model, inputs, tables=None):
    """The attentions of one forward pass, and what its timesteps became; with `tables` they turn nothing."""
    calls, times, path = [], [], [("", model)]

    def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        name, module = path[-1]
        normed = any(NORM.search(child) and of is not None for child, of in module._modules.items())
        calls.append(Call(name, normed, *(x[0].double().numpy() for x in (query, key)), scale))
        return torch.zeros(*query.shape[:-1], value.shape[-1])

    def follow(name, module):
        module.register_forward_pre_hook(lambda *_: path.append((name, module)))
        module.register_forward_hook(lambda *_: path.pop() and None)
        if "Timesteps" in type(module).__name__:
            module.register_forward_hook(lambda _, given, made: times.append(made.numpy()))

    for name, module in model.named_modules():
        follow(name, module)
    with contextlib.ExitStack() as stack, torch.no_grad():
        stack.enter_context(mock.patch("torch.nn.functional.scaled_dot_product_attention", attention))
        if tables:
            place, _, method = tables.rpartition(".")
            owner, made = pkgutil.resolve_name(place), getattr(pkgutil.resolve_name(place), method)
            stack.enter_context(mock.patch.object(owner, method, lambda *given, **more: still(made(*given, **more))))
        model(**copy.deepcopy(inputs))
    return calls, times


def still(tables):
    """The same tables for an angle of 0."""
    if isinstance(tables, torch.Tensor) and tables.is_complex():
        return torch.ones_like(tables)
    if isinstance(tables, torch.Tensor):
        return tables
    real = len(tables) == 2 and all(isinstance(x, torch.Tensor) and not x.is_complex() for x in tables)
    return (torch.ones_like(tables[0]), torch.zeros_like(tables[1])) if real else type(tables)(map(still, tables))


def coordinates(positions, case):
    """Of every token in the order of the module, as the explanation says; where a text is not turned, 0."""
    patches, text = (positions.get(key, "").partition(" of ")[0] for key in ("images", "text"))
    _, H, W = map(max, zip(*case.pictures, strict=True))
    place, found = {"H": H, "W": W, "K": len(case.pictures), "n": case.text}, {"text": [], "patches": []}
    if patches:
        found["patches"] = [
            eval(patches, {**place, "T": T, "H": H, "W": W, "t": t, "h": h, "w": w, "k": k})
            for k, (T, H, W) in enumerate(case.pictures)
            for t, h, w in itertools.product(range(T), range(H), range(W))
        ]
    if text:
        tokens = range(-(-case.text // case.padded) * case.padded)
        still = [0] * len((found["patches"] or [()])[0])
        found["text"] = [eval(text, {**place, "i": i}) if text.startswith("(") else still for i in tokens]
    return np.array([at for name in case.order.split() for at in found[name]], dtype=np.float64)


def compare(name):
    """What has drifted in one case, as sentences, and how many layers were compared."""
    case, file = CASES[name], file_of(name)
    said, model = explain(file), built(file)
    layers = {
        (group["part"], i, group["kind"] == "cross_attention"): group for group in said["layers"] for i in group["indices"]
    }
    inputs = case.inputs(model.config, case.pictures, case.text)
    (turned, times), (plain, _) = recorded(model, inputs), recorded(built(file), inputs, f"diffusers.models.{case.tables}")
    drifted, seen = [*keys_of(file["_class_name"])], set()
    for before, after in zip(plain, turned, strict=True):
        stack, i = re.match(r"(.+?)\.(\d+)", after.place).groups()
        crossed = after.q.shape[-2] != after.k.shape[-2]
        layer = layers.get((stack, int(i), crossed))
        seen.add((stack, int(i), crossed))
        if layer is not None:
            drifted += [f"{after.place}: {words}" for words in attention(layer, before, after, case)]
        elif stack in {part for part, *_ in layers}:
            drifted.append(f"{after.place} attends and is not explained")
        elif not (np.array_equal(before.q, after.q) and said["unsupported"]):
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
    if after.k.shape[0] not in (layer["kv_heads"], layer["heads"]):
        yield f"its keys have {after.k.shape[0]} heads, explained as {layer['kv_heads']}"
    for name, x, y in (("queries", before.q, after.q), ("keys", before.k, after.k)):
        expected, size = x, np.abs(x).max()
        if layer["encoding"] == "rope":
            at, numbers = (
                coordinates(layer["positions"], case),
                {axis: a for a, axis in enumerate(dict.fromkeys(layer["axes"]))},
            )
            angle = at[:, [numbers[axis] for axis in layer["axes"]]] * np.array(layer["frequencies"])[layer["index"]]
            if len(angle) != x.shape[-2]:
                yield f"there are {x.shape[-2]} {name}, explained are {len(angle)}"
                return
            expected = rope.rotate(x, np.cos(angle), np.sin(angle), layout=layer["layout"])
            size = size * (1 + np.abs(angle).max())
        if not np.abs(expected - y).max() <= 40 * U * size:
            yield f"its {name} are other features than explained, by {np.abs(expected - y).max():.2g} of {np.abs(x).max():.2g}"


def timestep(said, inputs, times):
    """The first sinusoid of a timestep against the explained one."""
    words = {group["positions"].get("timestep") for group in said["layers"] if group.get("positions")} - {None}
    for expression in words:
        given = {"np": np, "sinusoidal": sinusoidal, "timestep": inputs["timestep"].numpy().astype(np.float64)}
        expected = eval(expression.partition(": ")[0], given)
        if not times or times[0].shape != expected.shape or np.abs(times[0] - expected).max() > 4000 * U:
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
