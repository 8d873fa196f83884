"""What released libraries compute, row by row: the wall of verdicts.

    python examples/wild.py                      the rows of the libraries that are installed
    python examples/wild.py keras-hub timm       the rows of these
    python examples/wild.py --environments DIR   all rows, in an environment for each group of libraries that go together
    python examples/wild.py types                the attention of every type of transformers, not only of the rows; minutes

The rows, their versions and the verdicts of the last release are `posref/facts/corpus.json`; `--write` puts the verdicts there.
A verdict is measured when this runs: it agrees with posref (and in which convention, to which precision), or it differs, with
the name of the mistake or the size of the difference. `_wild_transformers.py` has the layers of transformers: queries, keys,
values and mask of one pass, recomputed by `posref.attention.attend`; `_wild_states.py` asks functions that keep a state.
"""

import argparse
import importlib
import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import _wild_transformers
import numpy as np
from _wild_verdicts import GPT_OSS, array, asked, numbers, rotation, tensor

from posref import attention, facts, ops
from posref.absolute import sinusoidal
from posref.relative import alibi
from posref.rotary import axes, pope, rope, scaling, xpos

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # tests/parity builds the modules
os.environ.setdefault("KERAS_BACKEND", "jax")

CORPUS = facts.read("corpus")
MODULES = {"fla-core": "fla"}  # where it is not the name of the package


# Rotations


def equinox_alone() -> str:
    import equinox
    import jax

    turn = jax.vmap(jax.vmap(equinox.nn.RotaryPositionalEmbedding(32, theta=10000.0)))
    return rotation(turn, dim=32, positions="range")


def keras_rope(**words: Any) -> Callable:
    import keras_hub

    layer = keras_hub.layers.RotaryEmbedding(**words)

    def turn(x, positions):  # (batch, n, heads, dim) inside; one row of positions a call
        rows = [layer(x[b : b + 1].swapaxes(1, 2), positions=positions[b].astype("float32")) for b in range(len(x))]
        return np.concatenate([np.asarray(row).swapaxes(1, 2) for row in rows])

    return turn


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


def litgpt_plain() -> str:
    return numbers(litgpt_rope()[0], rope.frequencies(64, 150000.0))


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


def x_transformers_t5() -> str:
    from x_transformers import x_transformers

    def bucket(offsets, buckets, max_distance, bidirectional):
        words = {"causal": not bidirectional, "num_buckets": buckets, "max_distance": max_distance}
        return x_transformers.RelativePositionBias._relative_position_bucket(offsets, **words)

    return asked(bucket, "t5.bucket", bidirectional=True)


def x_transformers_sinusoid() -> str:
    import torch
    from x_transformers import x_transformers

    module = x_transformers.ScaledSinusoidalEmbedding(64)

    def encode(positions):
        return (module(torch.zeros(1, 1, 1), pos=positions.ravel().float()) * 8).view(*positions.shape, 64)

    return f"{asked(encode, 'sinusoidal.encode', dim=64, layout='half')}; layout half, divisor dim, times 1 / sqrt(dim)"


def x_transformers_xpos() -> str:
    from x_transformers import x_transformers

    x, p = np.random.default_rng(0).standard_normal((2, 3, 20, 64)), np.arange(20)
    angles, scale = x_transformers.RotaryEmbedding(64, use_xpos=True)(tensor(p))
    factors = xpos.scales(p, 64, center=10)
    words = {"layout": "interleaved", "side": "query"}
    expected = xpos.rotate(x, *rope.tables(p, rope.frequencies(64)), factors, **words)
    found = x_transformers.apply_rotary_pos_emb(tensor(x), angles, scale)
    return f"{numbers(array(found), expected)}: layout interleaved, centre n // 2"


def x_transformers_cope() -> str:
    import torch
    from x_transformers import x_transformers

    def scores(q, k, table, mask, scale):
        module = x_transformers.CoPE(q.shape[-1], q.shape[1], len(table))
        module.pos_emb.data = table
        logits = (scale * q @ k.mT).masked_fill(mask == 0, -torch.finfo(q.dtype).max)
        return torch.where(mask == 0, 0, logits + module(q, logits))

    return f"{asked(scores, 'cope.scores', scale=8**-0.5, convention='nodiv')}; convention nodiv"


def x_transformers_forgetting() -> str:
    import torch
    from x_transformers import x_transformers

    def bias(log_gates):
        module = x_transformers.DataDependentAlibi(6, log_gates.shape[1])
        module.to_forget_gates = torch.nn.Identity()
        return module(log_gates)

    return asked(bias, "forgetting.bias", form="difference")


def x_transformers_pope() -> str:
    """Scores as its attention makes them, for one text."""
    x, delta = np.random.default_rng(0).standard_normal((2, 1, 2, 9, 8)), -np.linspace(0, 6, 16).reshape(2, 8)
    q, k = polar_encoded(x, delta, np.arange(9))
    p, w = np.arange(9), pope.frequencies(8)
    ours_q = pope.encode(x[0, 0], *rope.tables(p, w), layout="half")
    ours_k = pope.encode(x[1, 0], *pope.tables(p, w, delta), layout="half")
    return numbers(array(q @ k.mT)[0], ours_q @ np.swapaxes(ours_k, -1, -2))


def polar_encoded(x: np.ndarray, delta: np.ndarray, positions: np.ndarray) -> list:
    from x_transformers import x_transformers

    module = x_transformers.PolarEmbedding(8, 2)
    module.learned_bias.data = tensor(delta).float()[:, None]
    angles, bias = module(tensor(positions))
    pairs = zip(x, (angles, angles + bias), strict=True)  # as in its Attention.forward
    return [x_transformers.apply_polar_pos_emb(tensor(each), angle) for each, angle in pairs]


def rotary_embedding_torch(**words: Any) -> Callable:
    import torch
    from rotary_embedding_torch import RotaryEmbedding

    module = RotaryEmbedding(64, **words)

    def turn(x, positions):
        rows = [module.rotate_queries_or_keys(x[b, :, i : i + 1], offset=int(p)) for b, i, p in each(positions)]
        return torch.stack(rows).view(*positions.shape, *rows[0].shape)[:, :, :, 0].transpose(1, 2)

    def each(positions):
        return ((b, i, p) for b, row in enumerate(positions) for i, p in enumerate(row))

    return turn


def rotary_embedding_torch_slower(**words: Any) -> str:
    factor = 4.0
    expected = (
        rope.frequencies(64) / factor if "interpolate_factor" in words else scaling.ntk(rope.frequencies(64), factor=factor)
    )
    settings = {"dim": 64, "frequencies": expected, "to": tensor, "to_positions": np.asarray, "max_position": 4096}
    return rotation(rotary_embedding_torch(**words), **settings)


def rotary_embedding_torch_cached(xpos: bool) -> str:
    """Scores of the last of 40 queries alone with the cached keys, against those of all at once."""
    import torch
    from rotary_embedding_torch import RotaryEmbedding

    q, k = torch.randn(2, 1, 2, 40, 64, generator=torch.Generator().manual_seed(0))
    module = RotaryEmbedding(64, use_xpos=xpos, cache_if_possible=False)
    whole = module.rotate_queries_and_keys(q, k) if xpos else map(module.rotate_queries_or_keys, (q, k))
    last = module.rotate_queries_with_cached_keys(q[..., -1:, :], k)
    whole, last = (array(x @ y.mT)[..., -1, :] for x, y in (whole, last))
    return numbers(last, whole, ", the scores of the same query among all: q and k have two centres")


def timm_index() -> str:
    from timm.layers import RelPosBias

    def bias(coordinates, table):
        module = RelPosBias((3, 5), table.shape[1])
        module.relative_position_bias_table.data = table
        return module.get_bias()[0]

    return asked(bias, "swin.bias", height=3, width=5)


def timm_beit() -> str:
    from timm.models.beit import Attention

    module = Attention(16, num_heads=2, window_size=(3, 5))

    def bias(coordinates, table):
        module.relative_position_bias_table.data = table
        return module._get_rel_pos_bias()[0]

    return asked(bias, "swin.bias_with_cls", height=3, width=5)


def timm_mixed() -> str:
    """Angles x fx + y fy with trained frequencies; columns first, as the authors have them."""
    from timm.layers.pos_embed_sincos import RotaryEmbeddingMixed

    module = RotaryEmbeddingMixed(32, 1, 2)
    y, x = (axis[:, None] for axis in axes.grid(4, 5).T)
    fx, fy = array(module.freqs)[:, 0, :, None]
    sin = array(module.get_embed((4, 5)))[0, :, :, : module.dim // 2 : 2]
    return f"{numbers(sin, np.sin(x * fx + y * fy))}: columns first"


def keras_t5(bidirectional: bool) -> str:
    import jax.numpy
    from keras_hub.src.models.t5.t5_multi_head_attention import T5MultiHeadAttention

    def bucket(offsets, buckets, max_distance):
        return T5MultiHeadAttention._relative_position_bucket(offsets, bidirectional, buckets, max_distance)

    return asked(bucket, "t5.bucket", bidirectional=bidirectional, to=jax.numpy.asarray)


def verdict(row: dict) -> str:
    """What one row of the corpus shows here: what its function says, or what the rotation is that its function makes."""
    home, _, name = row["call"].partition(".")
    made = getattr(importlib.import_module(home), name)
    if "settings" not in row:
        return made(**row.get("with", {}))
    if home == "check_real_implementations":
        subject = importlib.import_module(home).subject(row)
        sizes = {"rotary_dim": None, **row["settings"], "to": subject.to, "to_positions": np.asarray}
        return rotation(subject.function(), **sizes)
    return rotation(made(**row.get("with", {})), **row["settings"])


def measured(libraries: tuple[str, ...] = ()) -> Iterator[str]:
    """A line of the table for each row that can be measured here."""
    for row in CORPUS["rows"]:
        who = row["who"]
        if (libraries and who not in libraries) or not importlib.util.find_spec(MODULES.get(who, who.replace("-", "_"))):
            continue
        try:
            said = verdict(row)
        except Exception as problem:
            said = f"not measured: {type(problem).__name__}: {str(problem).splitlines()[0] if str(problem) else ''}"[:150]
        yield f"| {who} | {importlib.metadata.version(who)} | {row['what']} | {said} |"


def python_of(folder: Path, pins: list[str]) -> str:
    """The Python of an environment with these packages, made unless it is there."""
    made, python = folder / "pins.txt", folder / "bin" / "python"
    if not made.is_file() or made.read_text().split() != pins:
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *pins], check=True)
        made.write_text(" ".join(pins))
    return str(python)


def has(pins: list[str], library: str) -> bool:
    return any(pin.startswith((f"{library}==", f"{library}[")) for pin in pins)


def python_for(folder: Path, library: str) -> str:
    """The Python of the environment that has a library."""
    return next(python_of(folder / group, pins) for group, pins in CORPUS["environments"].items() if has(pins, library))


def printed(folder: Path) -> Iterator[str]:
    """The lines of every group, as this program prints them in the environment of the group; or why there are none."""
    for group, pins in CORPUS["environments"].items():
        libraries = [who for who in known_libraries() if has(pins, who)]
        try:
            command = [python_of(folder / group, pins), __file__, *libraries]
        except (OSError, subprocess.CalledProcessError) as problem:
            yield f"not measured: no environment of {' '.join(pins)}: {problem}"
            continue
        environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        said = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment).stdout.splitlines()
        yield from (line for line in said if line.startswith("| ") and line not in TABLE)


TABLE = ("| library | version | what | verdict |", "| --- | --- | --- | --- |")


def known_libraries() -> list[str]:
    return sorted({row["who"] for row in CORPUS["rows"]})


def write(lines: list[str]) -> None:
    """The verdicts of these lines into the corpus."""
    said = {tuple(line.strip("| ").split(" | ")[::2]): line.strip("| ").split(" | ")[3] for line in lines}
    rows = [row | {"verdict": said.get((row["who"], row["what"]), row["verdict"])} for row in CORPUS["rows"]]
    groups = [f"  {json.dumps(name)}: {json.dumps(pins)}" for name, pins in CORPUS["environments"].items()]
    text = ",\n".join(groups), ",\n".join(f"  {json.dumps(row, ensure_ascii=False)}" for row in rows)
    path = ROOT / "posref" / "facts" / "corpus.json"
    path.write_text('{{\n "environments": {{\n{}\n }},\n "rows": [\n{}\n ]\n}}\n'.format(*text), encoding="utf-8")


def main(*words: str) -> int:
    usage = (__doc__ or "").split("\n\n")
    parser = argparse.ArgumentParser(
        description="\n\n".join(usage[:2]), formatter_class=argparse.RawDescriptionHelpFormatter, usage="%(prog)s [LIBRARY ..]"
    )
    known = known_libraries()
    parser.add_argument("libraries", nargs="*", metavar="LIBRARY", help=f"types, or some of {', '.join(known)}")
    parser.add_argument("--environments", metavar="DIR", help="where the environments are made")
    parser.add_argument("--write", action="store_true", help="put the verdicts into posref/facts/corpus.json")
    options = parser.parse_args(words)
    warnings.simplefilter("ignore")
    if unknown := set(options.libraries) - {"types", *known}:
        parser.error(f"there is no library {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    if options.libraries == ["types"]:
        print(_wild_transformers.every_type())
        return 0
    print(*TABLE, sep="\n")
    lines = []
    folder = options.environments and Path(options.environments).absolute()
    for line in printed(folder) if folder else measured(tuple(options.libraries)):
        print(line, flush=True)
        lines.append(line)
    failed = any("not measured" in line for line in lines)
    if options.write and not failed:
        write(lines)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
