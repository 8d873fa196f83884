"""Real libraries under the conformance check: is the rotation right, and which features does it pair?

    pip install -e ".[parity]"
    python examples/check_real_implementations.py

Every library is checked against both layouts; the one that it turns out to use is printed.

An implementation becomes checkable as a function of x (batch, heads, n, dim) and positions (batch, n). The wrappers below
are all it takes; copy the one that is nearest to yours.
"""

import argparse
import importlib.util
import sys
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from posref import facts, pairing
from posref.check import check_rope
from posref.rotary import rope

PIP = 'pip install -e ".[parity]"'
TRANSFORMERS, ONNX, ONNXRUNTIME = ("torch", "transformers"), ("onnx",), ("onnx", "onnxruntime")
X_TRANSFORMERS, ROTARY_EMBEDDING_TORCH = ("torch", "x_transformers"), ("torch", "rotary_embedding_torch")
NEEDS = {
    "transformers": TRANSFORMERS,
    "onnx": ONNX,
    "onnxruntime": ONNXRUNTIME,
    "x-transformers": X_TRANSFORMERS,
    "rotary-embedding-torch": ROTARY_EMBEDDING_TORCH,
}


def to_torch(values: np.ndarray) -> Any:
    """numpy to torch, float32."""
    import torch

    return torch.from_numpy(np.array(values, dtype=np.float32))


def to_bfloat16(values: np.ndarray) -> Any:
    """numpy to torch, bfloat16."""
    return to_torch(values).bfloat16()


# Wrappers: each takes the sizes and returns a function of x (batch, heads, n, dim) and integer positions (batch, n), numpy


def llama(dim: int, base: float, rotary_dim: int) -> Callable:
    """transformers' Llama."""
    import torch
    from transformers.models.llama import modeling_llama

    config = modeling_llama.LlamaConfig(
        hidden_size=4 * dim, num_attention_heads=4, rope_parameters={"rope_type": "default", "rope_theta": base}
    )
    module = modeling_llama.LlamaRotaryEmbedding(config)

    def rotate(x, positions):
        cos, sin = module(x, torch.from_numpy(positions))
        return modeling_llama.apply_rotary_pos_emb(x, x, cos, sin)[0]

    return rotate


def gpt_neox(dim: int, base: float, rotary_dim: int) -> Callable:
    """transformers' GPT-NeoX, partial."""
    import torch
    from transformers.models.gpt_neox import modeling_gpt_neox

    parameters = {"rope_type": "default", "rope_theta": base, "partial_rotary_factor": rotary_dim / dim}
    config = modeling_gpt_neox.GPTNeoXConfig(hidden_size=4 * dim, num_attention_heads=4, rope_parameters=parameters)
    module = modeling_gpt_neox.GPTNeoXRotaryEmbedding(config)

    def rotate(x, positions):
        cos, sin = module(x, torch.from_numpy(positions))
        return modeling_gpt_neox.apply_rotary_pos_emb(x, x, cos, sin)[0]

    return rotate


def gpt_j(dim: int, base: float, rotary_dim: int) -> Callable:
    """transformers' GPT-J, partial, base 10000 and (batch, n, heads, dim) inside."""
    import torch
    from transformers.models.gptj import modeling_gptj

    if base != 10000:
        raise ValueError("GPT-J has base 10000")
    table = cache(lambda length: modeling_gptj.create_sinusoidal_positions(length, rotary_dim))

    def rotate(x, positions):
        picked = table(1 << int(positions.max()).bit_length())[torch.from_numpy(positions)].to(x.dtype)
        sin, cos = torch.split(picked, rotary_dim // 2, dim=-1)
        x = x.transpose(1, 2)
        turned = modeling_gptj.apply_rotary_pos_emb(x[..., :rotary_dim], sin, cos)
        return torch.cat([turned, x[..., rotary_dim:]], dim=-1).transpose(1, 2)

    return rotate


def x_transformers(dim: int, base: float, rotary_dim: int) -> Callable:
    """x-transformers, partial if the frequencies are fewer than the features."""
    import torch
    from x_transformers import x_transformers as library

    module = library.RotaryEmbedding(rotary_dim, base=base)

    def rotate(x, positions):
        frequencies, _ = module(torch.from_numpy(positions))
        return library.apply_rotary_pos_emb(x, frequencies)

    return rotate


def rotary_embedding_torch(dim: int, base: float, rotary_dim: int) -> Callable:
    """rotary-embedding-torch, partial if the frequencies are fewer than the features."""
    import torch
    from rotary_embedding_torch import RotaryEmbedding, apply_rotary_emb

    module = RotaryEmbedding(rotary_dim, theta=base)

    def rotate(x, positions):
        frequencies = module(torch.from_numpy(positions)[:, None])
        return apply_rotary_emb(frequencies, x)

    return rotate


def onnx_model(rotary_dim: int, interleaved: int) -> Any:
    """A model of one RotaryEmbedding node, opset 23."""
    from onnx import TensorProto, helper

    inputs = [
        ("x", TensorProto.FLOAT, 4),
        ("cos", TensorProto.FLOAT, 2),
        ("sin", TensorProto.FLOAT, 2),
        ("ids", TensorProto.INT64, 2),
    ]
    names = [name for name, _, _ in inputs]
    node = helper.make_node("RotaryEmbedding", names, ["y"], interleaved=interleaved, rotary_embedding_dim=rotary_dim)
    declared = [helper.make_tensor_value_info(name, kind, [None] * axes) for name, kind, axes in inputs]
    graph = helper.make_graph([node], "rope", declared, [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * 4)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)


def onnx_feeds(x: np.ndarray, positions: np.ndarray, base: float, rotary_dim: int) -> dict:
    """The inputs of the node. Its tables are an argument: here with one row for every position that occurs."""
    rows = np.union1d(positions, np.arange(positions.shape[-1]))  # onnxruntime refuses tables with fewer rows than tokens
    cos, sin = (table.astype(np.float32) for table in rope.tables(rows, rope.frequencies(rotary_dim, base)))
    return {"x": x, "cos": cos, "sin": sin, "ids": np.searchsorted(rows, positions)}


def onnx_reference(dim: int, base: float, rotary_dim: int, *, interleaved: int) -> Callable:
    """The reference evaluator of the onnx package."""
    from onnx.reference import ReferenceEvaluator

    session = ReferenceEvaluator(onnx_model(rotary_dim, interleaved))
    return lambda x, positions: session.run(None, onnx_feeds(x, positions, base, rotary_dim))[0]


def onnxruntime(dim: int, base: float, rotary_dim: int, *, interleaved: int) -> Callable:
    """onnxruntime on the CPU."""
    import onnxruntime as library

    options = library.SessionOptions()
    options.intra_op_num_threads = 1
    model = onnx_model(rotary_dim, interleaved).SerializeToString()
    session = library.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return lambda x, positions: session.run(None, onnx_feeds(x, positions, base, rotary_dim))[0]


# What is checked


class Subject(NamedTuple):
    """One implementation: how it is made, for which sizes, and how numpy arrays become its tensors."""

    name: str
    needs: tuple[str, ...]
    make: Callable
    to: Callable | None
    dim: int = 64
    rotary_dim: int = 64
    base: float = 10000.0

    def function(self) -> Callable:
        return self.make(self.dim, self.base, self.rotary_dim)

    def check(self, layout: str) -> Any:
        rotary_dim = None if self.rotary_dim == self.dim else self.rotary_dim
        sizes = {"dim": self.dim, "base": self.base, "rotary_dim": rotary_dim}
        return check_rope(self.function(), layout=layout, to=self.to, to_positions=np.asarray, **sizes)


def subject(row: dict) -> Subject:
    """A row of the corpus: how it is made, for which sizes."""
    make, settings = globals()[row["call"].partition(".")[2]], {"rotary_dim": row["settings"]["dim"], **row["settings"]}
    to = {"to_torch": to_torch, "to_bfloat16": to_bfloat16}.get(settings.pop("to", ""))
    name = f"{row['who']} {row['what'].removeprefix('RoPE: ')}"
    return Subject(name, NEEDS[row["who"]], partial(make, **row.get("with", {})), to, **settings)


REAL = tuple(subject(row) for row in facts.read("corpus")["rows"] if row["call"].startswith("check_real_implementations."))


def available(subject: Subject) -> bool:
    return all(importlib.util.find_spec(name) for name in subject.needs)


def main() -> int:
    """Print the layouts; 1 if an implementation is not right in exactly one layout."""
    failed = False
    print("Real implementations: the layout that each turns out to have\n")
    for subject in REAL:
        if not available(subject):
            print(f"  skipped  {subject.name}: needs {' and '.join(subject.needs)}; {PIP}")
            continue
        fits = [layout for layout in pairing.LAYOUTS if subject.check(layout).ok]
        failed |= len(fits) != 1
        print(f"  {'ok' if len(fits) == 1 else 'FAILED':<8} {subject.name:<32} layout={' or '.join(fits) or 'none'}")
    return int(failed)


if __name__ == "__main__":
    argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0]).parse_args()
    sys.exit(main())
