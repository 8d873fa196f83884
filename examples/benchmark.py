"""Speed of posref.fast as ratios, measured side by side in one run.

    python examples/benchmark.py                    the table
    python examples/benchmark.py --json             the same for a program
    python examples/benchmark.py --only rotate_half --pairs 50
    python examples/benchmark.py --only attention_alibi --growth --plot attention.png

One protocol. Every peer is timed in turn with posref.fast, A B A B .., and the ratio is taken inside each pair, because times
on a shared machine drift while ratios of neighbors hardly do. Printed: the median ratio and half the distance of its quartiles.
A peer's result is compared with the specification's before it is timed. Buffers are hot: each time follows a call that is not
timed, on the same arrays. Threads are those that each library takes by itself, but for onnxruntime, which would take all
processors where this process may use some. Those of numpy's products go on turning for
0.1 s after a call, those of torch for 0.01 s, and would hold a processor while the next library is timed: so before each turn
the process waits until it is idle. posref.fast and onnxruntime write to an array made beforehand; torch and transformers make
theirs. A peer that is missing, or breaks when it is imported, is skipped and the reason printed.

`limit` is posref.fast / a simple operation, which is named: copy, np.copyto of the same bytes; fill, ndarray.fill,
for a bias, which reads next to nothing; multiply-adds, as many as the kernel executes, in registers, by all processors;
products, np.matmul with as many multiplications; memory, np.max of the keys and values, once, by all processors. In all other
columns the ratio is peer / posref.fast: how many times faster posref.fast is. `error` is the largest error of posref.fast, and
each peer's stands behind its ratio; what they are compared with is the specification, of attention in float64. A ratio with ~
was measured beside a noisy peer: the quartiles of its pairs are more than a factor NOISY apart.

`--growth` measures causal attention of one head at doubling lengths up to 131072, with ALiBi and without a bias, each in its
own process: time, peak memory beyond inputs and output (of torch with the matrix of the bias, whose making is not timed), and
the exponent from each length to the next. Those that store a matrix of scores or of the bias stop at about 1 GiB.

A new row is one function: it takes `quick` and returns the Work.
"""

import argparse
import contextlib
import importlib.metadata
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np

from posref import attention, offsets
from posref._contract import compiled
from posref.fast import _machine
from posref.fast import alibi as fast_alibi
from posref.fast import attention as fast_attention
from posref.fast import deberta as fast_deberta
from posref.fast import rope as fast
from posref.fast import shaw as fast_shaw
from posref.fast import t5 as fast_t5
from posref.fast import transformer_xl as fast_transformer_xl
from posref.relative import alibi, deberta, shaw, t5, transformer_xl
from posref.rotary import rope

COLUMNS = ("limit", "specification", "einsum", "transformers", "onnxruntime", "torch")
NOTHING = "no such operation"
NOISY = 1.2
LONGEST = 1  # second a column: of calls that take long fewer pairs are timed, at least three


class Work(NamedTuple):
    """One row: what is done, by posref.fast and by others. Calls return their result, for the comparison, or None."""

    shape: tuple
    fast: Callable
    peers: dict  # column -> call, or why there is none; columns left out have no such operation
    expected: np.ndarray
    tolerance: float = 1e-5  # float32 on values of order one, and angles that are float32 in some peers
    limit: str = "copy"


def rotate_half(quick):
    return _rotate("half", (1, 4, 32, 16) if quick else (1, 32, 4096, 128))


def rotate_interleaved(quick):
    return _rotate("interleaved", (1, 4, 32, 16) if quick else (1, 32, 4096, 128))


def rotate_one_token(quick):
    """One new token of one sequence: the overhead of a call."""
    return _rotate("half", (1, 4, 1, 16) if quick else (1, 32, 1, 128))


def rotate_eight_tokens(quick):
    """One new token for each of eight sequences."""
    return _rotate("half", (2, 4, 1, 16) if quick else (8, 32, 1, 128))


def prepared_one_token(quick):
    """The same by a prepared call, which is checked once."""
    return _rotate("half", (1, 4, 1, 16) if quick else (1, 32, 1, 128), prepared=True)


def prepared_eight_tokens(quick):
    """The same for each of eight sequences."""
    return _rotate("half", (2, 4, 1, 16) if quick else (8, 32, 1, 128), prepared=True)


def contract_of_rotate(quick):
    """What rope.rotate asks of its arguments, for one new token of one sequence: its checks alone, before an empty body."""
    shape = (1, 4, 1, 16) if quick else (1, 32, 1, 128)
    x = np.random.default_rng(0).standard_normal(shape, np.float32)
    cos, sin = rope.tables(np.array([1000]), rope.frequencies(shape[-1]))
    target = np.empty_like(x)

    def rotate(x, cos, sin, *, layout, rotary_dim=None):
        return None

    checks = compiled(rotate, rope.rotate.contract, rope.rotate.contract.source)
    peers = {"limit": lambda: np.copyto(target, x), "specification": lambda: rope.rotate(x, cos, sin, layout="half")}
    return Work(shape, lambda: checks(x, cos, sin, layout="half"), peers, rope.rotate(x, cos, sin, layout="half"))


def tables(quick):
    """float32 tables of a long context. The angles of transformers and torch are float32 and lose phase."""
    length, dim = (64, 16) if quick else (131072, 128)
    positions, frequencies = np.arange(length), rope.frequencies(dim)
    out = tuple(np.empty((length, dim // 2), np.float32) for _ in range(2))
    source = np.zeros((2, length, dim // 2), np.float32)
    target = np.ones_like(source)
    return Work(
        shape=source.shape,
        fast=lambda: fast.tables(positions, frequencies, out=out),
        peers={
            "limit": lambda: np.copyto(target, source),
            "specification": lambda: rope.tables(positions, frequencies),
            "transformers": _peer("transformers", _transformers_tables, positions, dim),
            "torch": _peer("torch", _torch_tables, positions, frequencies),
        },
        expected=np.stack(rope.tables(positions, frequencies)),
        tolerance=length * 2.0**-23,  # half a unit of a float32 angle below `length`, and as much for its frequency
    )


def attention_alibi(quick):
    """Causal attention with ALiBi. The others are given the bias and the mask as a matrix, made beforehand."""
    inputs = _alibi(*((2, 64, 16) if quick else (8, 4096, 64)))
    return _attention(*inputs, _dense(inputs[-1]))


def attention_causal(quick):
    """Causal attention without a bias, which torch streams too."""
    q, k, v, _ = _alibi(*((2, 64, 16) if quick else (8, 4096, 64)))
    return _attention(q, k, v, None, None)


def decode(quick):
    """One query against many keys."""
    return _decode(quick, heads=32, key_heads=32, length=8192)


def decode_grouped(quick):
    """The same where four heads share keys and values."""
    return _decode(quick, heads=32, key_heads=8, length=8192)


def decode_turned(quick):
    """The same with keys that are kept before RoPE, which the kernel turns on the way; the others turn them first."""
    return _decode(quick, heads=32, key_heads=8, length=8192, turned=True)


def decode_long(quick):
    return _decode(quick, heads=8, key_heads=8, length=131072)


def t5_bias(quick):
    """The matrix of the encoder, written out."""
    positions, table, out = _t5(quick)
    return _bias(lambda: fast_t5.bias(positions, positions, table, bidirectional=True, out=out), positions, table, out)


def t5_bias_view(quick):
    """The same as a view of the bias of every offset, the first choice: nothing is written."""
    positions, table, out = _t5(quick)
    n = len(positions)

    def view():
        buckets = t5.bucket(np.arange(1 - n, n), buckets=len(table), bidirectional=True)
        return offsets.toeplitz(table[buckets].T, n, n)

    return _bias(view, positions, table, out)


def alibi_bias(quick):
    heads, n = (2, 16) if quick else (16, 2048)
    positions, slopes = np.arange(n), alibi.slopes(heads)
    out = np.empty((heads, n, n), np.float32)
    target = np.ones_like(out)
    return Work(
        shape=out.shape,
        fast=lambda: fast_alibi.bias(positions, positions, slopes, form="absolute", out=out),
        peers={
            "limit": lambda: target.fill(1.5),
            "specification": lambda: alibi.bias(positions, positions, slopes, form="absolute"),
            "torch": _peer("torch", _torch_alibi, positions, slopes),
        },
        expected=alibi.bias(positions, positions, slopes, form="absolute"),
        tolerance=n * 2.0**-24,  # half a unit of a float32 below n
        limit="fill",
    )


def shaw_scores(quick):
    """Against the form with one vector a pair: gathered, (n, n, d), and contracted by einsum."""
    q, k, (table,), at, out = _scores(quick, lambda n: 129)
    return _relative(
        lambda: fast_shaw.scores(q, k, table, at, scale=0.125, out=out),
        lambda: shaw.scores(q, k, table, at, scale=0.125),
        (q, k, table, None, at),
        out,
    )


def transformer_xl_scores(quick):
    q, k, (r,), at, out = _scores(quick, lambda n: 2 * n - 1)
    zero = np.zeros((1, q.shape[-1]), np.float32)
    return _relative(
        lambda: fast_transformer_xl.scores(q, k, r[None], zero, zero, scale=0.125, out=out),
        lambda: transformer_xl.scores(q, k, r[None], zero, zero, scale=0.125),
        (q, k, r, None, at),
        out,
    )


def deberta_scores(quick):
    q, k, (k_r, q_r), at, out = _scores(quick, lambda n: n, count=2)
    return _relative(
        lambda: fast_deberta.scores(q, k, q_r[None], k_r[None], at, scale=0.125, convention="released", out=out),
        lambda: deberta.scores(q, k, q_r[None], k_r[None], at, scale=0.125, convention="released"),
        (q, k, k_r[::-1], q_r[::-1], at),
        out,
    )


WORK = (
    rotate_half,
    rotate_interleaved,
    tables,
    rotate_one_token,
    rotate_eight_tokens,
    prepared_one_token,
    prepared_eight_tokens,
    contract_of_rotate,
    attention_alibi,
    attention_causal,
    decode,
    decode_grouped,
    decode_turned,
    decode_long,
    t5_bias,
    t5_bias_view,
    alibi_bias,
    shaw_scores,
    transformer_xl_scores,
    deberta_scores,
)


def _t5(quick):
    heads, n = (2, 16) if quick else (16, 2048)
    table = np.random.default_rng(0).standard_normal((32, heads), np.float32)
    return np.arange(n), table, np.empty((heads, n, n), np.float32)


def _bias(call, positions, table, out):
    target = np.ones_like(out)
    return Work(
        shape=out.shape,
        fast=call,
        peers={
            "limit": lambda: target.fill(1.5),
            "specification": lambda: t5.bias(positions, positions, table, bidirectional=True),
            "transformers": _peer("transformers", _transformers_t5, table, len(positions)),
        },
        expected=t5.bias(positions, positions, table, bidirectional=True),
        tolerance=0,
        limit="fill",
    )


def _scores(quick, rows, count=1):
    """q, k (h, n, 64), tables of so many rows for all heads, offsets of contiguous positions and an array for the scores."""
    heads, n, dim = (2, 16, 8) if quick else (8, 1024, 64)
    rng = np.random.default_rng(0)
    q, k = rng.standard_normal((heads, n, dim), np.float32), rng.standard_normal((heads, n, dim), np.float32)
    vectors = [rng.standard_normal((rows(n), dim), np.float32) for _ in range(count)]
    return q, k, vectors, offsets.offsets(np.arange(n), np.arange(n)), np.empty((heads, n, n), np.float32)


def _relative(call, specification, arrays, out):
    q, k, *tables, _ = arrays
    rows = [
        (x, y, np.empty((*out.shape[:-1], len(y)), out.dtype)) for x, y in zip((q, k), tables, strict=True) if y is not None
    ]

    def products():
        """The products that the scores contain, in arrays made beforehand."""
        np.matmul(q, k.swapaxes(1, 2), out=out)
        for x, y, target in rows:
            np.matmul(x, y.T, out=target)

    expected = specification()
    return Work(
        shape=out.shape,
        fast=call,
        peers={
            "limit": products,
            "specification": specification,
            "einsum": _numpy_einsum(*arrays),
            "torch": _peer("torch", _torch_einsum, *arrays),
        },
        expected=expected,
        tolerance=2e-4,  # 3 products of 64 terms of order one, 200 roundings of float32 of a sum below 16
        limit="products",
    )


def _transformers_t5(table, n):
    import torch
    from transformers.models.t5.modeling_t5 import T5Attention, T5Config

    config = T5Config(num_heads=table.shape[1], d_model=table.shape[1], d_kv=1, relative_attention_num_buckets=len(table))
    attention = T5Attention(config, has_relative_attention_bias=True, layer_idx=0).requires_grad_(False)
    attention.relative_attention_bias.weight.copy_(torch.from_numpy(table))
    return lambda: attention.compute_bias(n, n)[0]


def _torch_alibi(positions, slopes):
    """The formula in torch, float32."""
    import torch

    i, m = torch.from_numpy(positions), torch.from_numpy(slopes).float()
    return lambda: m[:, None, None] * -(i[None, :] - i[:, None]).abs()


def _numpy_einsum(q, k, by_query, by_key, at):
    """q_i . (k_j + a_ij) + k_j . b_ij as the formula, with a vector for every pair, (n, n, d); rows ascend in the offset."""
    by_query_at, by_key_at = (
        None if rows is None else np.clip(at + (len(rows) - 1) // 2, 0, len(rows) - 1) for rows in (by_query, by_key)
    )

    def call():
        total = np.einsum("hid,hjd->hij", q, k) + np.einsum("hid,ijd->hij", q, by_query[by_query_at])
        if by_key is not None:
            total += np.einsum("hjd,ijd->hij", k, by_key[by_key_at])
        return 0.125 * total

    return call


def _torch_einsum(q, k, by_query, by_key, at):
    """The same in torch, whose einsum and products are those of its BLAS."""
    import torch

    def pairs(rows):
        reach = (len(rows) - 1) // 2
        return torch.from_numpy(np.clip(at + reach, 0, len(rows) - 1)), torch.from_numpy(np.ascontiguousarray(rows))

    q, k = torch.from_numpy(q), torch.from_numpy(k)
    where, vectors = pairs(by_query)
    second = None if by_key is None else pairs(by_key)

    def call():
        total = q @ k.mT + torch.einsum("hid,ijd->hij", q, vectors[where])
        if second is not None:
            total += torch.einsum("hjd,ijd->hij", k, second[1][second[0]])
        return 0.125 * total

    return call


def _alibi(heads, length, dim):
    """q, k, v and the bias by offset; what lies in the future is masked."""
    q, k, v = np.random.default_rng(0).standard_normal((3, heads, length, dim), np.float32)
    bias = alibi.bias(np.array([length - 1]), np.arange(2 * length - 1), alibi.slopes(heads), form="signed")
    return q, k, v, bias[:, 0].astype(np.float32)


def _dense(by_offset):
    """The bias as a matrix, -infinity above the diagonal."""
    length = (by_offset.shape[-1] + 1) // 2
    dense = np.full((len(by_offset), length, length), -np.inf, by_offset.dtype)
    for i in range(length):
        dense[:, i, : i + 1] = by_offset[:, length - 1 - i : length]
    return dense


def _attention(q, k, v, bias, dense):
    heads, length, dim = q.shape
    arguments = {"scale": dim**-0.5, "bias_by_offset": bias, "causal": True}
    out, rows = np.empty_like(q), fast_attention.LANES
    keys_of_blocks = sum(
        min(i + rows, length) for i in range(0, length, rows)
    )  # those of a block of queries up to its last one

    return Work(
        shape=q.shape,
        fast=lambda: fast_attention.attend_by_offset(q, k, v, **arguments, out=out),
        peers={
            "limit": multiply_adds(2 * heads * rows * keys_of_blocks * dim),
            "specification": lambda: attention.attend_by_offset(q, k, v, **arguments),
            "transformers": _peer("transformers", _transformers_attention, q, k, v, dense),
            "onnxruntime": _peer("onnxruntime", _onnxruntime_attention, q, k, v, dense),
            "torch": _peer("torch", _torch_attention, q, k, v, dense),
        },
        expected=attention.attend_by_offset(*(x.astype(np.float64) for x in (q, k, v)), **arguments),
        limit="multiply-adds",
    )


REGISTERS = 4 * _machine.PANEL // 32  # float32 numbers, as many as the kernel of attention has sums in registers


@numba.njit(nogil=True, pipeline_class=_machine.Separate, fastmath={"contract"})
def _grow(sums, factor, turns):
    for _ in range(turns):
        for r in range(REGISTERS):
            sums[r] = sums[r] * factor + factor


def processors():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def multiply_adds(count):
    """A call that multiplies and adds so many float32 numbers in registers, shared by all processors."""
    pool, turns = ThreadPoolExecutor(processors()), count // (REGISTERS * processors())
    sums = [np.zeros(REGISTERS, np.float32) for _ in range(processors())]

    def call():
        list(pool.map(lambda own: _grow(own, np.float32(0.5), turns), sums))

    return call


def _decode(quick, heads, key_heads, length, dim=128, turned=False):
    heads, key_heads, length = (4, 2, 64) if quick else (heads, key_heads, length)
    rng, scale = np.random.default_rng(0), dim**-0.5
    q, k, v = (rng.standard_normal((h, n, dim), np.float32) for h, n in ((heads, 1), (key_heads, length), (key_heads, length)))
    out = np.empty_like(q)
    tables = fast.tables(np.arange(length), rope.frequencies(dim), dtype=np.float32) if turned else None
    asked = {"key_tables": tables, "layout": "half"} if tables else {}

    def keys(k):
        return rope.rotate(k, *tables, layout="half") if tables else k

    pool = ThreadPoolExecutor(processors())
    parts = [part for x in (k, v) for part in np.array_split(x.reshape(-1), processors())]

    def read():
        """The keys and the values, once, by all processors: one alone may not be as fast as the memory."""
        list(pool.map(np.max, parts))

    return Work(
        shape=(heads, key_heads, length, dim),
        fast=lambda: fast_attention.attend_by_offset(q, k, v, scale=scale, out=out, **asked),
        peers={
            "limit": read,
            "specification": lambda: attention.attend_by_offset(q, keys(k), v, scale=scale),
            "torch": _peer("torch", _torch_decode, q, k, v, tables),
        },
        expected=attention.attend_by_offset(q.astype(float), keys(k.astype(float)), v.astype(float), scale=scale),
        limit="memory",
    )


def _torch_decode(q, k, v, tables):
    import torch

    keys = _torch_rotate("half", k, *tables) if tables else lambda: torch.from_numpy(k)
    q, v = (torch.from_numpy(x)[None] for x in (q, v))
    grouped = q.shape[1] != v.shape[1]
    return lambda: torch.nn.functional.scaled_dot_product_attention(q, keys()[None], v, enable_gqa=grouped)[0]


def _torch_attention(q, k, v, dense):
    import torch

    q, k, v = (torch.from_numpy(x)[None] for x in (q, k, v))
    mask = {"is_causal": True} if dense is None else {"attn_mask": torch.from_numpy(dense)[None]}
    return lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, **mask)[0]


def _transformers_attention(q, k, v, dense):
    """eager_attention_forward of Llama; it adds the mask, so without a bias it is given a mask of 0 and -infinity."""
    import torch
    from transformers.models.llama.modeling_llama import eager_attention_forward

    length, dim = q.shape[1:]
    q, k, v = (torch.from_numpy(x)[None] for x in (q, k, v))
    mask = torch.full((length, length), -torch.inf).triu(1) if dense is None else torch.from_numpy(dense)[None]
    module = torch.nn.Module().eval()
    module.num_key_value_groups = 1
    return lambda: eager_attention_forward(module, q, k, v, mask, scaling=dim**-0.5)[0][0].transpose(0, 1)


def _onnxruntime_attention(q, k, v, dense):
    """The operator Attention of opset 23."""
    from onnx import helper

    feeds = {"Q": q[None], "K": k[None], "V": v[None]}
    causal = {"is_causal": 1} if dense is None else {}
    if dense is not None:
        feeds["mask"] = dense[None]
    call = _onnxruntime(helper.make_node("Attention", list(feeds), ["Y"], **causal), feeds, (1, *q.shape))
    return lambda: call()[0]


def _rotate(layout, shape, prepared=False):
    *_, length, dim = shape
    x = np.random.default_rng(0).standard_normal(shape, np.float32)
    target = np.empty_like(x)
    cos, sin = fast.tables(np.arange(length) + 1000, rope.frequencies(dim), dtype=np.float32)
    out = fast.rotate(x, cos, sin, layout=layout)
    turn = fast.rotator(x, cos, sin, layout=layout)
    return Work(
        shape=shape,
        fast=(lambda: turn(x, cos, sin)) if prepared else lambda: fast.rotate(x, cos, sin, layout=layout, out=out),
        peers={
            "limit": lambda: np.copyto(target, x),
            "specification": lambda: rope.rotate(x, cos, sin, layout=layout),
            "transformers": _peer("transformers", _transformers_rotate, layout, x, cos, sin),
            "onnxruntime": _peer("onnxruntime", _onnxruntime_rotate, layout, x, cos, sin),
            "torch": _peer("torch", _torch_rotate, layout, x, cos, sin),
        },
        expected=rope.rotate(x, cos, sin, layout=layout),
    )


def _transformers_rotate(layout, x, cos, sin):
    """apply_rotary_pos_emb of Llama (half) or Cohere (interleaved), with no heads of keys so that it turns `x` alone."""
    import torch

    if layout == "half":
        from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

        doubled = [torch.from_numpy(np.concatenate([table, table], axis=-1))[None] for table in (cos, sin)]
    else:
        from transformers.models.cohere.modeling_cohere import apply_rotary_pos_emb

        doubled = [torch.from_numpy(np.repeat(table, 2, axis=-1))[None] for table in (cos, sin)]
    q = torch.from_numpy(x)
    return lambda: apply_rotary_pos_emb(q, q[:, :0], *doubled)[0]


def _transformers_tables(positions, dim):
    import torch
    from transformers.models.llama.modeling_llama import LlamaConfig, LlamaRotaryEmbedding

    module = LlamaRotaryEmbedding(LlamaConfig(hidden_size=dim, num_attention_heads=1, num_key_value_heads=1))
    x, ids = torch.empty(1), torch.from_numpy(positions)[None]

    return lambda: [table[0, :, : dim // 2] for table in module(x, ids)]


def _torch_rotate(layout, x, cos, sin):
    """The formula in torch: with complex numbers as in Llama's own code (interleaved), by chunks (half)."""
    import torch

    x, cos, sin = (torch.from_numpy(array) for array in (x, cos, sin))
    if layout == "interleaved":
        turn = torch.complex(cos, sin)
        return lambda: torch.view_as_real(torch.view_as_complex(x.unflatten(-1, (-1, 2))) * turn).flatten(-2)

    def call():
        a, b = x.chunk(2, dim=-1)
        return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)

    return call


def _torch_tables(positions, frequencies):
    import torch

    m, theta = torch.from_numpy(positions).float(), torch.from_numpy(frequencies).float()

    def call():
        angle = torch.outer(m, theta)
        return angle.cos(), angle.sin()

    return call


def _onnxruntime_rotate(layout, x, cos, sin):
    """The operator RotaryEmbedding of opset 23, its output bound to an array made beforehand."""
    from onnx import helper

    feeds = {"X": x, "cos": np.repeat(cos[None], len(x), axis=0), "sin": np.repeat(sin[None], len(x), axis=0)}
    node = helper.make_node("RotaryEmbedding", list(feeds), ["Y"], interleaved=int(layout == "interleaved"))
    return _onnxruntime(node, feeds, x.shape)


def _onnxruntime(node, feeds, shape):
    """A call of one operator of opset 23, its inputs and its output bound beforehand."""
    import onnxruntime
    from onnx import TensorProto, helper

    described = [helper.make_tensor_value_info(name, TensorProto.FLOAT, array.shape) for name, array in feeds.items()]
    result = helper.make_tensor_value_info("Y", TensorProto.FLOAT, shape)
    graph = helper.make_graph([node], "one", described, [result])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = processors()
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    out = onnxruntime.OrtValue.ortvalue_from_numpy(np.empty(shape, np.float32))
    binding = session.io_binding()
    for name, array in feeds.items():
        binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(array))
    binding.bind_ortvalue_output("Y", out)

    def call():
        session.run_with_iobinding(binding)
        return out.numpy()  # a view

    return call


def _peer(package, make, *arguments):
    """The call, or why there is none. `make` imports what it needs."""
    try:
        return make(*arguments)
    except ImportError as error:
        return f"{error.name or package} not installed"
    except Exception as error:  # a package that is installed and does not import, such as torchvision for another torch
        return f"{package} broken: {type(error).__name__}"


def check(name, column, call, work):
    """The largest error. ValueError if a peer computes something else: a ratio to it would mean nothing."""
    result = call()
    if result is None:
        return None
    value = np.stack([np.asarray(part) for part in result]) if isinstance(result, (tuple, list)) else np.asarray(result)
    error = np.abs(value - work.expected).max()
    if value.shape != work.expected.shape or not error <= work.tolerance:
        raise ValueError(f"{name}: {column} differs from the specification by {error}, allowed are {work.tolerance}")
    return float(error)


def settle():
    """Return when this process has been idle for a moment: no thread of the last call is turning any more."""
    for _ in range(200):
        busy = time.process_time()
        time.sleep(2e-3)
        if time.process_time() - busy < 5e-4:
            return


def seconds(call, repeats):
    """The time of one of so many calls."""
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def hot(call, repeats):
    """The time of one of so many calls that begin when the last library is at rest, after one that is not timed."""
    settle()
    call()
    return seconds(call, repeats)


def compare(ours, peer, pairs, shortest):
    """Times of both in turn: two lists. Short calls are repeated until a time is at least `shortest` seconds."""
    once = [max(hot(call, 1), 1e-9) for call in (ours, peer)]
    repeats = [max(1, round(shortest / t)) for t in once]
    pairs = min(pairs, max(3, round(LONGEST / sum(once))))
    times = [(hot(ours, repeats[0]), hot(peer, repeats[1])) for _ in range(pairs)]
    return [list(column) for column in zip(*times, strict=True)]


def measure(make, quick, pairs):
    """One row: for every column the median ratio and its quartiles, or why it was skipped."""
    work = make(quick)
    error = check(make.__name__, "posref.fast", work.fast, work)
    row = {"work": make.__name__, "shape": list(work.shape), "error": error, "limit": work.limit, "columns": {}}
    for column in COLUMNS:
        print(f"{make.__name__}: {column}", file=sys.stderr)
        peer = work.peers.get(column, NOTHING)
        if isinstance(peer, str):
            row["columns"][column] = {"skipped": peer}
            continue
        error = check(make.__name__, column, peer, work)
        ours, theirs = compare(work.fast, peer, pairs, 0 if quick else 2e-3)
        over, under = (ours, theirs) if column == "limit" else (theirs, ours)
        low, median, high = statistics.quantiles([a / b for a, b in zip(over, under, strict=True)], n=4, method="inclusive")
        cell = {"median": median, "low": low, "high": high, "milliseconds": 1e3 * statistics.median(theirs), "error": error}
        row["columns"][column] = cell
        row["milliseconds"] = 1e3 * statistics.median(ours)
    return row


# growth


def growth(quick):
    """Seconds and peak bytes of causal attention at doubling lengths, for posref.fast, torch and the specification."""
    rows = []
    for length in (64, 128) if quick else (2**power for power in range(9, 18)):
        for name in (name for name, (_, longest) in GROWING.items() if length <= longest):
            print(f"growth: {name} {length}", file=sys.stderr)
            command = [sys.executable, __file__, "--grow", name, "--length", str(length)]
            run = subprocess.run(command, capture_output=True, text=True, check=True)
            rows.append({"name": name, "length": length, **json.loads(run.stdout)})
    return rows


def _grow_fast(q, k, v, bias):
    return lambda: fast_attention.attend_by_offset(q, k, v, scale=q.shape[-1] ** -0.5, bias_by_offset=bias, causal=True)


def _grow_fast_causal(q, k, v, bias):
    return _grow_fast(q, k, v, None)


def _grow_torch(q, k, v, bias):
    return _torch_attention(q, k, v, _dense(bias))


def _grow_torch_causal(q, k, v, bias):
    return _torch_attention(q, k, v, None)


def _grow_specification(q, k, v, bias):
    return lambda: attention.attend_by_offset(q, k, v, scale=q.shape[-1] ** -0.5, bias_by_offset=bias, causal=True)


GROWING = {  # and the longest text that each is asked for
    "posref.fast, ALiBi": (_grow_fast, 2**17),
    "posref.fast, no bias": (_grow_fast_causal, 2**17),
    "torch, no bias": (_grow_torch_causal, 2**17),
    "torch, ALiBi as a matrix": (_grow_torch, 2**14),
    "specification, ALiBi": (_grow_specification, 2**13),
}


def grow(name, length):
    """One length in this process: the best of three times, peak memory beyond q, k, v, the bias by offset and the output."""
    try:
        make, _ = GROWING[name]
        make(*_alibi(1, 64, 64))()  # compiles and imports
        inputs = _alibi(1, length, 64)
        before = resident(reset=True)
        call = make(*inputs)
        times = [seconds(call, 1)]
        used = max(0, resident() - before - inputs[0].nbytes)
        times += [seconds(call, 1) for _ in range(2)]
        return {"seconds": min(times), "bytes": used}
    except ImportError as error:
        return {"skipped": f"{error.name} not installed"}


def resident(*, reset=False):
    """The largest resident set in bytes so far, or from now on. ru_maxrss would do, but a child inherits that of its parent."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return 1024 * int(status.split("VmHWM:")[1].split()[0])


def show_growth(rows):
    print(f"{'causal attention, one head of width 64':40}{'n':>8}{'ms':>10}{'exponent':>10}{'MiB':>10}{'exponent':>10}")
    for name in GROWING:
        last = {}
        for row in (row for row in rows if row["name"] == name):
            if "skipped" in row:
                print(f"{name:40}{row['length']:>8}  skipped: {row['skipped']}")
                continue
            cells = [f"{name:40}{row['length']:>8}"]
            for key, unit in (("seconds", 1e-3), ("bytes", 2**20)):
                known = last.get(key, 0) > 0 < row[key]
                exponent = f"{math.log2(row[key] / last[key]):.2f}" if known else ""
                cells.append(f"{row[key] / unit:>10.1f}{exponent:>10}")
            last = row
            print("".join(cells))
    print("seconds: the best of three; bytes: peak of the resident set beyond inputs and output.")


def plot(report, file):
    """A picture of the ratios and, if measured, of the growth."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    rows, grown = report["rows"], [row for row in report.get("growth", []) if "skipped" not in row]
    panels = bool(rows) + 2 * bool(grown)
    figure, axes = pyplot.subplots(1, panels, figsize=(5 * panels, 4), squeeze=False, layout="constrained")
    axes = list(axes[0])
    if rows:
        axis = axes.pop(0)
        columns = [column for column in COLUMNS if column != "limit"]
        for c, column in enumerate(columns):
            cells = [(r, row["columns"][column]) for r, row in enumerate(rows) if "median" in row["columns"][column]]
            places = [r + (c - len(columns) / 2 + 0.5) / (len(columns) + 1) for r, _ in cells]
            axis.barh(places, [cell["median"] - 1 for _, cell in cells], 1 / (len(columns) + 1), left=1, label=column)
        axis.set(yticks=range(len(rows)), yticklabels=[row["work"] for row in rows], xscale="log")
        axis.set_xlabel("other / posref.fast")
        axis.axvline(1, color="black", linewidth=0.8)
        axis.legend()
    for axis, key, unit, label in zip(axes, ("seconds", "bytes"), (1, 2**20), ("seconds", "MiB"), strict=False):
        for name in GROWING:
            points = [(row["length"], row[key] / unit) for row in grown if row["name"] == name and row[key] > 0]
            if points:
                axis.plot(*zip(*points, strict=True), marker="o", label=name)
        axis.set(xscale="log", yscale="log", xlabel="length", ylabel=label)
        axis.legend()
    figure.savefig(file)


def caches():
    """Sizes of the data caches of the first processor, from the first to the last, where Linux tells them."""
    folders = sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"))
    kinds = [(folder / "type").read_text(encoding="ascii").strip() for folder in folders]
    sizes = [(folder / "size").read_text(encoding="ascii").strip() for folder in folders]
    return [size for size, kind in zip(sizes, kinds, strict=True) if kind != "Instruction"]


def processor():
    """Its name and family, vectors, caches, and what it reaches: multiply-adds and copying, best of ten, of one core."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if sys.platform.startswith("linux") else []
    known = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in reversed(lines))}
    name = " ".join([known.get("model name", "unknown"), *(known.get(key, "") for key in ("cpu family", "model"))])
    sums, source, turns = np.zeros(REGISTERS, np.float32), np.ones(2**24, np.float32), 10**5
    target = np.empty_like(source)
    adding = min(hot(lambda: _grow(sums, np.float32(0.5), turns), 1) for _ in range(10))
    copying = min(hot(lambda: np.copyto(target, source), 1) for _ in range(10))
    reached = {"gigaflops": 2e-9 * REGISTERS * turns / adding, "gigabytes_per_second": 2e-9 * source.nbytes / copying}
    return {"name": name, "vector_bits": 512 if "+avx512f" in _machine.FEATURES else 256, "caches": caches(), **reached}


def machine():
    versions = {"python": sys.version.split()[0], "numpy": np.__version__}
    for package in ("numba", "torch", "transformers", "onnxruntime"):
        with contextlib.suppress(ImportError):
            versions[package] = importlib.metadata.version(package)
    return {"processors": os.cpu_count(), "processor": processor(), "versions": versions}


def show(report):
    """A Markdown table of median ratios with half the distance of their quartiles."""
    print("| work | shape | error | " + " | ".join(COLUMNS) + " |")
    print("| --- | --- | --: |" + " --: |" * len(COLUMNS))
    for row in report["rows"]:
        ratios = [_ratio(row["columns"][column]) for column in COLUMNS]
        ratios[0] += f" {row['limit']}"
        cells = [f"`{row['work']}`", "x".join(map(str, row["shape"])), _error(row["error"]) or "-", *ratios]
        print("| " + " | ".join(cells) + " |")
    spread = max(cell["high"] / cell["low"] for row in report["rows"] for cell in row["columns"].values() if "low" in cell)
    print(
        f"\nlimit: posref.fast / limit. Others: other / posref.fast. Medians of {report['pairs']} pairs in turn, fewer of long"
    )
    print(f"calls, +- half the distance of the quartiles, which are at most {spread:.2f} apart as a ratio.")
    versions = ", ".join(f"{name} {version}" for name, version in report["machine"]["versions"].items())
    busy = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    about, count = report["machine"]["processor"], report["machine"]["processors"]
    print(f"{count} processors, {about['name']} (family, model): vectors of {about['vector_bits']} bits,")
    print(f"caches {', '.join(about['caches'])}; one core: {about['gigaflops']:.0f} GF/s of multiply-adds in registers,")
    print(f"{about['gigabytes_per_second']:.0f} GB/s copied{busy}; {versions}")


def _ratio(cell):
    if "skipped" in cell:
        return "-" if cell["skipped"] == NOTHING else cell["skipped"]
    noisy, error = "~" * (cell["high"] > NOISY * cell["low"]), _error(cell["error"])
    return f"{noisy}{cell['median']:.3g} +- {(cell['high'] - cell['low']) / 2:.2g}" + (f" ({error})" if error else "")


def _error(error):
    return "" if error is None else f"{error:.1e}" if error else "0"


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    parser.add_argument(
        "--quick", action="store_true", help="tiny sizes, to see that everything runs; the numbers mean nothing"
    )
    parser.add_argument("--only", choices=[make.__name__ for make in WORK], action="append", help="one row; may be repeated")
    parser.add_argument("--pairs", type=int, help="timed pairs a column; 21 without it, 3 with --quick")
    parser.add_argument("--growth", action="store_true", help="time and memory of attention at doubling lengths as well")
    parser.add_argument("--plot", metavar="FILE", help="draw the ratios, and the growth if measured; needs matplotlib")
    parser.add_argument("--grow", choices=list(GROWING), help=argparse.SUPPRESS)
    parser.add_argument("--length", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if (options.growth or options.grow) and not sys.platform.startswith("linux"):
        parser.error("--growth reads the memory in use from /proc, which is there on Linux only")
    if options.grow:
        print(json.dumps(grow(options.grow, options.length)))
        return
    pairs = options.pairs or (3 if options.quick else 21)
    chosen = [make for make in WORK if not options.only or make.__name__ in options.only]
    rows = [measure(make, options.quick, pairs) for make in chosen]
    report = {"machine": machine(), "quick": options.quick, "pairs": pairs, "rows": rows}
    if options.growth:
        report["growth"] = growth(options.quick)
    if options.plot:
        plot(report, options.plot)
    print(json.dumps(report, indent=1)) if options.json else show(report)
    if options.growth and not options.json:
        show_growth(report["growth"])


if __name__ == "__main__":
    main()
