"""What released libraries compute, row by row: the wall of verdicts.

    python examples/wild.py                      the rows of the libraries that are installed
    python examples/wild.py keras-hub timm       the rows of these
    python examples/wild.py --environments DIR   docs/wild.md: all rows, in an environment for each group of `ENVIRONMENTS`
    python examples/wild.py types                the attention of every type of transformers, not only of the rows; minutes

A verdict is measured when this runs: it agrees with posref (and in which convention, to which precision), or it differs, with
the name of the mistake or the size of the difference. The line beside it shows it without posref. Layers of transformers come
from `tests/parity/models.py`: queries, keys, values and mask of one pass, recomputed by `posref.attention.attend`.
"""

import datetime
import importlib.metadata
import importlib.util
import os
import platform
import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from posref import attention, ops, pairing
from posref.absolute import sinusoidal
from posref.check import check_rope
from posref.relative import alibi
from posref.rotary import axes, rope, scaling

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # tests/parity builds the modules, examples/ has the wrappers
os.environ.setdefault("KERAS_BACKEND", "jax")

ENVIRONMENTS = {  # libraries that go together, at the versions of the page
    "torch": "torch==2.13.0 transformers==5.23.0 onnx==1.23.2 onnxruntime==1.31.1 x-transformers==2.31.10 "
    "rotary-embedding-torch==0.9.1 diffusers==0.42.1",
    "litgpt": "torch==2.13.0 litgpt==0.5.13",
    # a torchvision without CUDA is in no index, and one with CUDA wants its own torch, 5 GB
    "vision": "torch==2.14.1 torchvision==0.29.1 timm==1.0.31 torchtune==0.6.1 torchao==0.9.0",
    "jax": "jax==0.10.2 flax==0.12.8 equinox==0.13.8 keras-hub==0.32.0",
    "mlx": "mlx[cpu]==0.32.4 numpy==2.4.6",
}


class Row(NamedTuple):
    """One thing of a library: `verdict()` measures it, `line` shows it."""

    library: str
    what: str
    verdict: Callable[[], str]
    line: str
    module: str = ""

    def installed(self) -> bool:
        return importlib.util.find_spec(self.module or self.library.replace("-", "_")) is not None


# How a verdict is reached


def rotation(fn: Callable, **settings: Any) -> str:
    """The layout that it turns out to have, or what differs from the rotation asked for."""
    reports = {layout: check_rope(fn, layout=layout, **settings) for layout in pairing.LAYOUTS}
    for layout, report in reports.items():
        if report.ok:
            return f"agrees: layout {layout}, {report.precision.model}"
    return differs(*reports.values())


def differs(*reports: Any) -> str:
    """The shortest diagnosis; where there is none, what was found at the first wrong element."""
    found = [[re.sub(EQUALS, "", claim.sentence) for claim in report.diagnosis] for report in reports if report.diagnosis]
    failed = next(check.detail for report in reports for check in report.checks if check.status == "failed")
    shortest = " and ".join(min(found, key=lambda sentences: len("".join(sentences)), default=()))
    return f"differs: {shortest or re.sub(TOLERANCE, '', failed)}"


EQUALS = re.compile(r"^your output equals \S+ with (the mistakes? [^:]*: )?")
TOLERANCE = re.compile(r" \([^)]* times the bound of \w+\)")


def numbers(found: Any, expected: Any, otherwise: str = "") -> str:
    """The largest difference relative to the largest number; float32 explains 1e-4 of an angle of some thousands."""
    found, expected = np.asarray(found, dtype=float), np.asarray(expected, dtype=float)
    error = np.abs(found - expected).max() / np.abs(expected).max()
    return f"agrees to {error:.0e}" if error < 2e-4 else f"differs by {error:.2g} of the largest value{otherwise}"


# Rotations


def equinox_after_another() -> str:
    import equinox
    import jax

    equinox.nn.RotaryPositionalEmbedding(64, theta=10000.0)(np.zeros((4096, 64), np.float32))
    turn = jax.vmap(jax.vmap(equinox.nn.RotaryPositionalEmbedding(64, theta=500000.0)))
    return rotation(turn, dim=64, base=500000.0, positions="range", max_position=2048)


def equinox_alone() -> str:
    import equinox
    import jax

    turn = jax.vmap(jax.vmap(equinox.nn.RotaryPositionalEmbedding(32, theta=10000.0)))
    return rotation(turn, dim=32, positions="range", max_position=2048)


def keras_rope(**words: Any) -> Callable:
    import keras_hub

    layer = keras_hub.layers.RotaryEmbedding(**words)

    def turn(x, positions):  # (batch, n, heads, dim) inside; one row of positions a call
        rows = [layer(x[b : b + 1].swapaxes(1, 2), positions=positions[b].astype("float32")) for b in range(len(x))]
        return np.concatenate([np.asarray(row).swapaxes(1, 2) for row in rows])

    return turn


def keras_dynamic() -> str:
    expected = scaling.dynamic_ntk(rope.frequencies(64), factor=4.0, length=4 * 4096, original_length=4096)
    return rotation(keras_rope(rope_type="dynamic", scaling_factor=4.0), dim=64, frequencies=expected)


def diffusers_rope(real: bool, **words: Any) -> Callable:
    import torch
    from diffusers.models import embeddings

    def turn(x, positions):
        halves = []
        for b in range(len(x)):
            tables = embeddings.get_1d_rotary_pos_embed(
                x.shape[-1],
                positions[b].astype(float),
                use_real=True,
                repeat_interleave_real=not real,
                freqs_dtype=torch.float64,
                **words,
            )
            unbind = -2 if real else -1
            halves.append(embeddings.apply_rotary_emb(torch.tensor(x[b : b + 1]), tables, use_real_unbind_dim=unbind))
        return torch.cat(halves)

    return turn


def diffusers_ntk() -> str:
    expected = scaling.ntk(rope.frequencies(64), factor=4.0)
    return rotation(diffusers_rope(False, ntk_factor=4.0), dim=64, frequencies=expected)


def mlx_rope(traditional: bool) -> Callable:
    import mlx.core as mx
    import mlx.nn

    module = mlx.nn.RoPE(64, traditional=traditional)
    return lambda x: np.array(module(mx.array(x)))


def litgpt_rope(**extra: Any) -> tuple:
    import litgpt.model
    import torch

    cos, sin = litgpt.model.build_rope_cache(2, 64, base=150000, extra_config=extra or None)
    return torch.atan2(sin[1], cos[1])[:32].double().numpy(), float(torch.hypot(sin[1], cos[1])[0])


def torchtune_rope(kind: str = "RotaryPositionalEmbeddings", **words: Any) -> Callable:
    import torch
    import torchtune.models.llama3_1
    import torchtune.models.phi3
    import torchtune.models.qwen2
    import torchtune.modules

    homes = (torchtune.modules, torchtune.models.llama3_1, torchtune.models.phi3, torchtune.models.qwen2)
    module = next(getattr(home, kind) for home in homes if hasattr(home, kind))(64, max_seq_len=4096, **words)

    def turn(x, positions):  # (batch, n, heads, dim) inside
        return module(torch.tensor(x).swapaxes(1, 2), input_pos=torch.tensor(positions)).swapaxes(1, 2)

    return turn


def torchtune_llama3() -> str:
    words = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_length": 8192}
    expected = scaling.llama3(rope.frequencies(64, 500000.0), factor=8.0, **words)
    return rotation(torchtune_rope("Llama3ScaledRoPE", base=500000), dim=64, frequencies=expected, max_position=4095)


def torchtune_too_long() -> str:
    import torch
    from torchtune.modules import RotaryPositionalEmbeddings

    try:
        RotaryPositionalEmbeddings(64, max_seq_len=16)(torch.zeros(1, 32, 1, 64))
    except RuntimeError as refusal:
        return f"differs: refused, {type(refusal).__name__}, where its documentation says the cache is computed again"
    return "agrees: computed again"


def timm_rope(half: bool) -> str:
    """Rows of a picture in the first half of the pairs, columns in the second, each pair twice in the tables."""
    import torch
    from timm.layers import apply_rot_embed_cat, build_rotary_pos_embed

    x = np.random.default_rng(0).standard_normal((2, 3, 20, 64))
    sin, cos = build_rotary_pos_embed([4, 5], dim=64, in_pixels=False, rotate_half=half)
    found = apply_rot_embed_cat(torch.tensor(x), torch.cat([sin, cos], -1).double(), half=half)
    angle = axes.angles(axes.grid(4, 5), np.tile(rope.frequencies(32), 2), axes.sections(np.array([16, 16])))
    layout = "half" if half else "interleaved"
    return f"{numbers(found, rope.rotate(x, np.cos(angle), np.sin(angle), layout=layout))}: layout {layout}, rows first"


def timm_sincos(interleave: bool) -> str:
    """Four blocks of 16 features; which, is measured."""
    from timm.layers import build_sincos2d_pos_embed

    found = build_sincos2d_pos_embed([4, 5], dim=64, interleave_sin_cos=interleave).numpy().reshape(20, 4, 16)
    sinusoids = [f(axes.grid(4, 5)[:, a, None] * rope.frequencies(32)) for a in (0, 1) for f in (np.sin, np.cos)]
    names = dict(zip(("sin h", "cos h", "sin w", "cos w"), sinusoids, strict=True))
    blocks = [next((n for n, s in names.items() if np.allclose(found[:, b], s, atol=1e-5)), "?") for b in range(4)]
    said = "agrees" if "?" not in blocks else "differs"
    return f"{said}: blocks {', '.join(blocks)}" + ("; documented as sin, cos, sin, cos" if interleave else "")


def flax_attention(module: str) -> str:
    """Its attention with its own causal mask and a bias, scale 1 / sqrt(d); axes (batch, n, heads, d)."""
    import importlib

    home = importlib.import_module(f"flax.{module}")
    rng = np.random.default_rng(0)
    q, k, v = rng.standard_normal((3, 2, 7, 3, 8), dtype=np.float32)
    bias = alibi.bias(np.arange(7), np.arange(7), alibi.slopes(3), form="signed").astype(np.float32)
    mask = np.asarray(home.make_causal_mask(np.ones((2, 7)))) != 0
    found = np.asarray(home.dot_product_attention(q, k, v, bias=bias[None], mask=mask)).swapaxes(1, 2)
    q, k, v = (x.swapaxes(1, 2).astype(float) for x in (q, k, v))
    return numbers(found, attention.attend(q, k, v, scale=8**-0.5, bias=bias.astype(float), mask=mask))


GPT_OSS = {"factor": 32.0, "original_length": 4096, "base": 150000.0, "beta_fast": 32.0, "beta_slow": 1.0}


def litgpt_yarn() -> str:
    words = {"factor": 32.0, "original_max_seq_len": 4096, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False}
    found, _ = litgpt_rope(**words)
    asked, arguments = ops.op("scaling.yarn"), ops.Arguments(dim=64, truncate=False, **GPT_OSS)
    if np.allclose(found, asked.spec(**arguments), rtol=1e-5, atol=0):
        return "agrees"
    for name, mistake in asked.mistakes.items():
        try:
            wrong = mistake.wrong(asked.spec, arguments)
        except ops.NotHere:
            continue
        if np.shape(wrong) == found.shape and np.allclose(found, wrong, rtol=1e-4, atol=0):
            return f"differs: {mistake.bug} ({name}), to {np.abs(found / wrong - 1).max():.1g}"
    return "differs: no mistake of the list; {} of the unscaled at pairs 0, 12, 31".format(
        ", ".join(f"{x:.3g}" for x in (found / rope.frequencies(64, 150000.0))[[0, 12, 31]])
    )


def onnxruntime_scale() -> str:
    import onnxruntime
    from onnx import TensorProto, helper

    def run(**words):
        names = ["x", "ids", "cos", "sin"]
        node = helper.make_node("RotaryEmbedding", names, ["y"], domain="com.microsoft", **words)
        kinds = [TensorProto.FLOAT, TensorProto.INT64, TensorProto.FLOAT, TensorProto.FLOAT]
        axes = [4, 2, 2, 2]
        given = [helper.make_tensor_value_info(n, k, [None] * a) for n, k, a in zip(names, kinds, axes, strict=True)]
        graph = helper.make_graph([node], "g", given, [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * 4)])
        opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        x = np.random.default_rng(1).standard_normal((1, 2, 8, 16)).astype(np.float32)
        cos, sin = (t.astype(np.float32) for t in rope.tables(np.arange(8), rope.frequencies(16)))
        return session.run(None, {"x": x, "ids": np.arange(8)[None], "cos": cos, "sin": sin})[0]

    moved = np.abs(run(scale=2.0) - run(scale=1.0)).max()
    return (
        "differs: the attribute scale is ignored, outputs of 1.0 and 2.0 are equal"
        if moved == 0
        else f"scale moves {moved:.2g}"
    )


# Sinusoids and biases


def keras_sinusoid(dtype: str) -> str:
    import keras_hub

    layer = keras_hub.layers.SinePositionEncoding(dtype=dtype)
    found = np.asarray(layer(np.zeros((1, 2048, 64), np.float32))).astype(float)[0]
    expected = sinusoidal.encode(np.arange(2048), sinusoidal.frequencies(64), layout="interleaved")
    return numbers(found, expected, "; positions are rounded to the dtype of the layer")


def keras_alibi(dtype: str) -> str:
    import keras_hub

    layer = keras_hub.layers.AlibiBias(dtype=dtype)
    found = np.asarray(layer(np.zeros((1, 8, 1, 2048), np.float32))).astype(float)[0, 0, 0]
    count = len(np.unique(found))
    return f"agrees: {count} biases for 2048 keys" if count == 2048 else f"differs: {count} distinct biases for 2048 keys"


def mlx_alibi() -> str:
    import mlx.nn

    return numbers(np.array(mlx.nn.ALiBi.create_alibi_slope(12)).ravel(), alibi.slopes(12))


def mlx_sinusoid() -> str:
    import mlx.core as mx
    import mlx.nn

    found = np.array(mlx.nn.SinusoidalPositionalEncoding(64)(mx.arange(512)))
    expected = sinusoidal.encode(np.arange(512), sinusoidal.frequencies(64, divisor="dim - 2"), layout="half")
    return f"{numbers(found / np.sqrt(2 / 64), expected)}: layout half, divisor dim - 2, times sqrt(2 / dim)"


def diffusers_timestep(**words: Any) -> np.ndarray:
    import torch
    from diffusers.models.embeddings import get_timestep_embedding

    return get_timestep_embedding(torch.arange(1000), 64, **words).numpy()


def diffusers_sinusoid() -> str:
    expected = sinusoidal.encode(np.arange(1000), sinusoidal.frequencies(64, divisor="dim - 2"), layout="half")
    return f"{numbers(diffusers_timestep(), expected)}: layout half, divisor dim - 2"


def x_transformers_alibi() -> str:
    from x_transformers import x_transformers

    found = x_transformers.AlibiPositionalBias(12)(20, 20).detach().numpy()
    expected = alibi.bias(np.arange(20), np.arange(20), alibi.slopes(12), form="absolute")
    return f"{numbers(found, expected)}: form absolute"


# Layers of transformers

LAYERS = """
llama mistral mixtral qwen2 qwen3 gemma gemma2 gemma3_text cohere cohere2 glm glm4 granite olmo olmo2 olmo3
phi phi3 stablelm starcoder2 nemotron gpt_neox gpt_oss smollm3 exaone4 seed_oss apertus ernie4_5 helium
deepseek_v3 modernbert t5 mt5
"""


def layers(model_type: str) -> str:
    """Every attention of one pass of a small model with random weights."""
    from tests.parity import models

    return recomputed(models.run(models.build(models.tiny(model_type))).attentions)


def every_type() -> str:
    """The layers of all types that a tiny configuration builds and runs, and that call transformers' AttentionInterface."""
    from tests.parity import models

    count, layers, worst, different = 0, 0, 0.0, []
    for model_type in models.types():
        try:
            weights = models.build(models.tiny(model_type), device="meta").parameters()
            if sum(weight.numel() for weight in weights) > 3e7:  # its tiny configuration is not tiny
                continue
            calls = models.run(models.build(models.tiny(model_type))).attentions
        except Exception:  # it needs a picture, a sound or sizes of its own: nothing is said of it
            continue
        error, names = judged(calls)
        count, layers, worst = count + bool(calls), layers + len(calls), max(worst, error)
        different += [f"{model_type}: {'; '.join(sorted(names))}"] * bool(names)
    return f"differs: {', '.join(different)}" if different else f"{layers} layers of {count} types agree to {worst:.0e}"


def recomputed(calls: list) -> str:
    """What posref makes of recorded calls; where it differs, the mistake of `attention.attend` that explains it."""
    worst, names = judged(calls)
    return f"differs: {'; '.join(sorted(names))}" if names else f"{len(calls)} layers agree to {worst:.0e}"


def judged(calls: list) -> tuple[float, set]:
    """The largest distance, and what explains those that are not rounding."""
    worst, names = 0.0, set()
    for call in calls:
        arguments = attention_of(call)
        error = _distance(attention.attend(**arguments), call.output)
        worst = max(worst, error)
        if error > 1e-5:
            names |= set(explained(arguments, call.output)) or {f"nothing explains {error:.1g} in {call.layer}"}
    return worst, names


def attention_of(call: Any) -> dict:
    """The arguments of `attention.attend` from what the module received, in float64."""
    open_ = None if call.mask is None else call.mask if call.mask.dtype == bool else call.mask > -1e30
    bias = None if open_ is None or call.mask.dtype == bool else np.where(open_, call.mask, 0.0).astype(float)
    if (added := call.keywords.get("position_bias")) is not None:
        bias = added.detach().double().numpy() + (0.0 if bias is None else bias)
    q, k, v = (x.astype(float) for x in (call.q, call.k, call.v))
    if (own := call.keywords.get("sinks")) is not None:  # one a query: a key without features, whose bias it is
        shape = (*q.shape[:-1], k.shape[-2])
        bias = np.concatenate([np.broadcast_to(0.0 if bias is None else bias, shape), own.detach().double().numpy()], axis=-1)
        open_ = np.pad(np.broadcast_to(True if open_ is None else open_, shape), [(0, 0)] * 3 + [(0, 1)], constant_values=True)
        k, v = (np.pad(x, [(0, 0), (0, 0), (0, 1), (0, 0)]) for x in (k, v))
    sinks = call.keywords.get("s_aux")
    return {
        "q": q,
        "k": k,
        "v": v,
        "scale": call.keywords.get("scaling") or q.shape[-1] ** -0.5,
        "bias": bias,
        "mask": open_,
        "softcap": call.keywords.get("softcap"),
        "sinks": None if sinks is None else sinks.detach().double().numpy()[:, None],
    }


def _distance(y: np.ndarray, output: np.ndarray) -> float:
    return float(np.abs(np.swapaxes(y, 1, 2) - output).max() / np.abs(output).max())


def explained(arguments: dict, output: np.ndarray) -> Iterator[str]:
    """Mistakes of the op that give this output."""
    asked = ops.op("attention.attend")
    given = ops.Arguments({name: value for name, value in arguments.items() if value is not None})
    for name, mistake in asked.mistakes.items():
        try:
            if _distance(mistake.wrong(attention.attend, given), output) < 1e-5:
                yield f"{mistake.bug} ({name})"
        except (ops.NotHere, ValueError):
            continue


def falcon() -> str:
    """One configuration with one set of weights, by its two paths: no reference is needed to see that they differ."""
    import torch

    from tests.parity import models

    config = models.tiny("falcon", alibi=True, num_hidden_layers=1)
    found = []
    for path in ("eager", "sdpa"):
        with models.quiet(), torch.no_grad():
            model = models.AutoModel.from_config(config, attn_implementation=path, dtype=torch.float32).eval()
            torch.manual_seed(0)
            for weight in model.parameters():
                weight.copy_(torch.randn_like(weight) * 0.2)
            found.append(model(input_ids=torch.arange(3, 27)[None], use_cache=False).last_hidden_state)
    moved = float((found[0] - found[1]).abs().max())
    if moved < 1e-4:
        return f"agrees: eager and sdpa to {moved:.0e}"
    return f"differs: outputs of eager and sdpa by {moved:.2g} with the same weights"


def olmo3_truncate() -> str:
    """YaRN's truncate with rope parameters by layer type."""
    import transformers

    from tests.parity import models

    yarn = {"rope_type": "yarn", "rope_theta": 150000.0, "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0}
    yarn |= {"truncate": False, "original_max_position_embeddings": 4096}
    each = {kind: dict(yarn) for kind in ("full_attention", "sliding_attention")}
    with models.quiet():
        file = {**models.keys("olmo3"), "head_dim": 64, "hidden_size": 256, "rope_parameters": each, "model_type": "olmo3"}
        model = models.build(models.configuration(file))
    table = next(t for t in models.tables(model) if t.layer_type == "full_attention" or t.layer_type is None)
    plain = rope.frequencies(64, 150000.0)
    fits = [
        cut for cut in (False, True) if np.allclose(table.frequencies, scaling.yarn(plain, truncate=cut, **GPT_OSS), rtol=1e-5)
    ]
    said = {False: "agrees: truncate False", True: "differs: frequencies of truncate True where False is configured"}
    return said[fits[0]] if fits else f"differs: neither, {transformers.__version__}"


def rows() -> Iterator[Row]:
    from check_real_implementations import REAL

    for subject in REAL:
        rotary_dim = None if subject.rotary_dim == subject.dim else subject.rotary_dim
        sizes = {"dim": subject.dim, "base": subject.base, "rotary_dim": rotary_dim}
        settings = {**sizes, "to": subject.to, "to_positions": np.asarray}
        name, _, rest = subject.name.partition(" ")
        library = name.rstrip(",")
        yield Row(library, f"RoPE: {rest or 'default'}", lambda s=subject, k=settings: rotation(s.function(), **k), "-")
    yield from LIBRARIES
    yield Row("transformers", "Falcon with ALiBi, its two paths", falcon, FALCON)
    yield Row("transformers", "OLMo 3, YaRN by layer type, truncate False", olmo3_truncate, TRUNCATE)
    for model_type in LAYERS.split():
        yield Row("transformers", f"attention of `{model_type}`", lambda t=model_type: layers(t), "-")


FALCON = "`FalconConfig(alibi=True)`, one state dict, `attn_implementation='eager'` and `'sdpa'`"
TRUNCATE = "`Olmo3Config(rope_parameters={'full_attention': {.., 'truncate': False}, ..})`"
EQUINOX = "`RotaryPositionalEmbedding(8, theta=10.)(x)`, then `RotaryPositionalEmbedding(8, theta=1e6)(x)`: equal"
LIBRARIES = (
    Row("equinox", "RoPE, theta 10000", equinox_alone, "-"),
    Row("equinox", "RoPE, theta 500000 after 10000", equinox_after_another, EQUINOX),
    Row("keras-hub", "RoPE", lambda: rotation(keras_rope(), dim=64), "-"),
    Row(
        "keras-hub",
        "RoPE, dynamic, factor 4",
        keras_dynamic,
        "`RotaryEmbedding(rope_type='dynamic', scaling_factor=4.)` slows pair 0 too",
    ),
    Row("keras-hub", "sinusoid, float32", lambda: keras_sinusoid("float32"), "-"),
    Row("keras-hub", "sinusoid, bfloat16", lambda: keras_sinusoid("bfloat16"), "`SinePositionEncoding(dtype='bfloat16')`"),
    Row("keras-hub", "ALiBi, float32", lambda: keras_alibi("float32"), "-"),
    Row("keras-hub", "ALiBi, bfloat16", lambda: keras_alibi("bfloat16"), "`AlibiBias(dtype='bfloat16')`"),
    Row("diffusers", "RoPE", lambda: rotation(diffusers_rope(False), dim=64), "-"),
    Row(
        "diffusers",
        "RoPE, repeat_interleave_real False, unbind -2",
        lambda: rotation(diffusers_rope(True), dim=64),
        "-",
    ),
    Row("diffusers", "RoPE, ntk_factor 4 as NTK by 4", diffusers_ntk, "`get_1d_rotary_pos_embed(64, 9, ntk_factor=4.)`"),
    Row("diffusers", "timestep embedding", diffusers_sinusoid, "-"),
    Row("mlx", "RoPE, traditional True", lambda: rotation(mlx_rope(True), dim=64, positions="range"), "-"),
    Row("mlx", "RoPE, traditional False", lambda: rotation(mlx_rope(False), dim=64, positions="range"), "-"),
    Row("mlx", "ALiBi slopes, 12 heads", mlx_alibi, "-"),
    Row("mlx", "sinusoid", mlx_sinusoid, "-"),
    Row("litgpt", "RoPE", lambda: numbers(litgpt_rope()[0], rope.frequencies(64, 150000.0)), "-"),
    Row("litgpt", "YaRN of gpt-oss", litgpt_yarn, "`build_rope_cache(2, 64, base=150000, extra_config={'factor': 32., ..})`"),
    Row("torchtune", "RoPE", lambda: rotation(torchtune_rope(), dim=64, max_position=4095), "-"),
    Row("torchtune", "RoPE of Llama 3.1", torchtune_llama3, "-"),
    Row(
        "torchtune",
        "RoPE of Phi-3",
        lambda: rotation(torchtune_rope("Phi3RotaryPositionalEmbeddings"), dim=64, max_position=4095),
        "-",
    ),
    Row(
        "torchtune",
        "RoPE of Qwen 2",
        lambda: rotation(torchtune_rope("Qwen2RotaryPositionalEmbeddings", base=10000), dim=64, max_position=4095),
        "-",
    ),
    Row(
        "torchtune",
        "RoPE beyond max_seq_len",
        torchtune_too_long,
        "`RotaryPositionalEmbeddings(64, max_seq_len=16)` on 32 tokens",
    ),
    Row("timm", "RoPE of pictures, half False", lambda: timm_rope(False), "-"),
    Row("timm", "RoPE of pictures, half True", lambda: timm_rope(True), "-"),
    Row("timm", "sinusoid of pictures", lambda: timm_sincos(False), "-"),
    Row("timm", "sinusoid of pictures, interleave_sin_cos", lambda: timm_sincos(True), "-"),
    Row("flax", "linen.dot_product_attention", lambda: flax_attention("linen"), "-"),
    Row("flax", "nnx.dot_product_attention", lambda: flax_attention("nnx"), "-"),
    Row("x-transformers", "ALiBi, 12 heads", x_transformers_alibi, "-"),
    Row(
        "onnxruntime",
        "com.microsoft.RotaryEmbedding, attribute scale",
        onnxruntime_scale,
        "a node `RotaryEmbedding` with `scale=2.0`",
    ),
)


def measured(wanted: tuple[str, ...] = ()) -> Iterator[tuple[Row, str, str]]:
    """Every row that can be measured here: (row, version, verdict)."""
    for row in rows():
        if not row.installed() or (wanted and row.library not in wanted):
            continue
        try:
            verdict = row.verdict()
        except Exception as problem:
            verdict = f"not measured: {type(problem).__name__}: {str(problem).splitlines()[0] if str(problem) else ''}"[:150]
        yield row, importlib.metadata.version(row.library), verdict


def python_of(folder: Path, pins: list[str]) -> str:
    """The Python of an environment with these packages, made unless it is there."""
    made, python = folder / "pins.txt", folder / "bin" / "python"
    if not made.is_file() or made.read_text().split() != pins:
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *pins], check=True)
        made.write_text(" ".join(pins))
    return str(python)


def printed(folder: Path) -> Iterator[str]:
    """The table of every group, as this program prints it in the environment of the group; or why there is none."""
    for name, pins in ENVIRONMENTS.items():
        libraries = [re.split(r"==|\[", pin)[0] for pin in pins.split()]
        try:
            command = [python_of(folder / name, pins.split()), __file__, *libraries]
        except (OSError, subprocess.CalledProcessError) as problem:
            yield f"not measured: no environment of {pins}: {problem}"
            continue
        environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        said = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment).stdout.splitlines()
        yield from (line for line in said if line.startswith("| ") and line not in TABLE)


TABLE = ("| library | version | what | verdict | shows it |", "| --- | --- | --- | --- | --- |")


def main(*words: str) -> int:
    warnings.simplefilter("ignore")
    if words == ("types",):
        print(every_type())
        return 0
    print("# Released libraries, measured\n")
    made = f"on {datetime.date.today()}, Python {platform.python_version()}"
    print(f"`python examples/wild.py --environments DIR` printed this {made}.")
    print("Every verdict is measured, in an environment for each group of libraries that go together.\n")
    print(*TABLE, sep="\n")
    if words[:1] == ("--environments",):
        lines = printed(Path(words[1]).absolute())
    else:
        lines = (
            f"| {row.library} | {version} | {row.what} | {verdict} | {row.line} |" for row, version, verdict in measured(words)
        )
    failed = False
    for line in lines:
        failed |= "not measured" in line
        print(line, flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
