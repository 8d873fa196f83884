"""Transformers of diffusers: files with `_class_name`, one row a class, read in diffusers 0.42.1, held by the drift program.

A row says what a configuration does not:

    stacks      {name of the stack in the class: the key that counts its layers}; with "patches" or "text" after the key, its
                layers see these tokens alone
    heads, head the keys of the number of heads and of their width; of a width of all heads, `over` is True
    kv          the key of the number of heads of keys and values
    sizes       features of each axis of `axes`, by default the last ones of thw: the key, or a function of the width of a head
    base        of the frequencies of all axes: a number, or the key
    layout      how features are paired
    norm        of queries and keys: before, or the key that decides it; its value None or False is no norm
    patches     coordinates of the patch in frame t, row h and column w of picture k of K, which has T x H x W patches; {key} is
                the value of a key. By default those of `axes`
    text        coordinates of token i of n tokens of the text (H, W: of the largest picture); None where it is not turned
    cross       True where each layer has another attention, from the patches to the text, which turns nothing
    pipeline    that gives the module these coordinates, where it does not count itself
    if          {key of the file: what its class does otherwise where this key is set}
    timestep    (what multiplies the timestep, the width of its sinusoid)

`diffusers.json` has the module of each class, and the values of the keys that a file leaves out. A class without a row is said
not to be described.
"""

import functools
import json
import re
from dataclasses import replace
from importlib import resources

from posref.explain import slips
from posref.explain.configuration import Settings, facts, shown
from posref.explain.layer import Explanation, Layer
from posref.explain.traps import unread
from posref.rotary import rope

SIZES = (("heads", "num_attention_heads"), ("head", "attention_head_dim"))
COUNTS = re.compile(r"^(n|num)_?(\w+_)?(layers|blocks)$|^nlayers$|(^|_)depth$")
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
    "sizes": lambda d: [d - 4 * (d // 6), 2 * (d // 6), 2 * (d // 6)],
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
        **FLUX,
        "stacks": {"transformer_blocks": "num_layers"},
        "pipeline": None,
        "patches": "(k + t, h - (H - H // 2), w - (W - W // 2))",
        "text": "(max(H // 2, W // 2) + i,) * 3",
        "timestep": (1000, 256),
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
        "sizes": lambda d: [d - 2 * (d // 3), d // 3, d // 3],
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
    "CogView4Transformer2DModel": {
        "stacks": {"transformer_blocks": "num_layers"},
        "axes": "hw",
        "sizes": lambda d: [d // 2, d // 2],
        "base": 10000,
        "layout": "half",
        "norm": "before",
        "patches": "(h * {rope_axes_dim[0]} // H, w * {rope_axes_dim[1]} // W)",
        "text": None,
    },
}
PLACE = "of the patch in frame t, row h and column w, each from 0, of T x H x W patches"
OF_SEVERAL = " of picture k of K"


def recognised(config):
    """Whether a class of diffusers reads this file; a type of transformers in it would be read by transformers."""
    name = config.get("_class_name")
    return isinstance(name, str) and (name in ROWS or str(config.get("model_type")) not in facts())


@functools.cache
def classes():
    """class of diffusers -> its module and the values of its keys, for the classes that have a row."""
    return json.loads(resources.files(__package__).joinpath("diffusers.json").read_text(encoding="utf-8"))


def explanation(config):
    """The explanation of one file; what has no row is named in `unsupported`."""
    name = config["_class_name"]
    settings = Settings({key: value for key, value in config.items() if not key.startswith("_")}, name)
    settings.facts = classes().get(name, {})
    try:
        found = _groups(settings, ROWS[name]) if name in ROWS else []
    except (TypeError, LookupError, ArithmeticError, AttributeError) as error:
        raise settings.error(f"a key has a value that {name} cannot have: {error}") from error
    keys = {**settings.facts.get("defaults", {}), **settings.file}
    counted = {key: settings.count(key, least=0) for key in keys if COUNTS.search(key) and key not in settings.read}
    why = "posref does not know how these layers use positions" if found else _unknown(config)
    entry = {"part": "", "model_type": name, "kind": None, "counted_by": None, "indices": [], "why": why}
    left = [entry | {"counted_by": key, "indices": [*range(n)]} for key, n in counted.items() if n]
    ignored = [key for key in settings.file if found and key not in settings.facts["defaults"]]
    words = [f"diffusers 0.42.1 ignores {', '.join(ignored)}: {name} has no such key"] if ignored else []
    loud = [key for key in unread(settings, found) if key not in ignored] if found else []
    return Explanation(name, found, left or ([] if found else [entry]), words, loud, [])


def _unknown(config):
    """Why nothing is said of a class without a row."""
    parts = [key for key, value in config.items() if isinstance(value, list) and "diffusers" in value]
    if parts:
        return f"a pipeline of several models; name the configuration of one: {', '.join(parts)}"
    return f"posref does not know how {config['_class_name']} of diffusers uses positions"


def _groups(settings, row):
    row = {**row, **{name: value for key, more in row.get("if", {}).items() if settings[key] for name, value in more.items()}}
    heads, head = (_count(settings, row.get(key, usual)) for key, usual in SIZES)
    head = head // heads if row.get("over") else head
    sizes = row["sizes"](head) if callable(row["sizes"]) else settings[row["sizes"]]
    base, axes = _base(settings, row["base"]), row.get("axes") or "thw"[-len(sizes) :]
    even = isinstance(sizes, list) and all(type(n) is int and n >= 0 and n % 2 == 0 for n in sizes)
    if not even or len(sizes) != len(axes) or sum(sizes) != head:
        key = row["sizes"] if isinstance(row["sizes"], str) else "the list of features of each axis"
        raise settings.error(f"{key} is {shown(sizes)}, expected {len(axes)} even sizes that add up to {head}")
    turned = [(axis, n) for axis, n in zip(axes, sizes, strict=True) if n]
    frequencies = [w for _, n in turned for w in rope.frequencies(n, base).tolist()]
    norm = row["norm"] if row["norm"] in (None, "before") else "before" if settings[row["norm"]] else None
    layer = Layer(
        model_type=settings.model_type,
        encoding="rope",
        head_dim=head,
        heads=heads,
        kv_heads=_count(settings, row["kv"]) if "kv" in row else heads,
        softmax_scale=head**-0.5,
        causal=False,
        norm=norm,
        layout=row.get("layout", "interleaved"),
        sign=1,
        rotated="first",
        rotary_dim=head,
        base=base,
        frequencies=frequencies,
        call=", ".join(f"rope.frequencies({n}, {base}) by {axis}" for axis, n in turned),
        axes=[axis for axis, n in turned for _ in range(n // 2)],
        index=list(range(head // 2)),
        order="sections",
        learned_first=False,
        source=f"diffusers 0.42.1, models/transformers/{settings.facts['module']}.py",
    )
    layer, found = replace(layer, slips=slips.slips(layer)), []
    said = _positions(settings, {**row, "patches": row.get("patches") or f"({', '.join(axes)})"})
    for stack, words in row["stacks"].items():
        key, *alone = words.split()
        given = settings[key]
        layers = list(range(len(given) if isinstance(given, list) else _count(settings, key, least=0)))
        hidden = {"patches": ("text",), "text": ("images",)}[alone[0]] if alone else ()
        positions = {name: value for name, value in said.items() if name not in hidden}
        found += [replace(layer, part=stack, indices=layers, positions=positions)] if layers else []
        if layers and row.get("cross"):
            found.append(_cross(layer, stack, layers))
    return found


def _count(settings, key, least=1):
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
    text = row.get("text")
    given = f"; {row['pipeline']} gives the module these coordinates" if row.get("pipeline") else ""
    images = f"{row['patches'].format_map(settings)} {PLACE}{OF_SEVERAL * ('k' in row['patches'])}{given}"
    found = {"forward": None, "generate": None, "cached": None, "images": images}
    if "cross" not in row:
        found["text"] = f"{text} of token i of n tokens of the text, from 0" if text else "its tokens are not turned"
    if row.get("timestep"):
        factor, width = row["timestep"]
        width = _count(settings, width) if isinstance(width, str) else width
        at = "timestep" if factor == 1 else f"{factor} * timestep"
        sines = f"sinusoidal.encode({at}, sinusoidal.frequencies({width}), layout='half')"
        found["timestep"] = f"np.roll({sines}, {width // 2}, axis=-1): cosines first"
    return found
