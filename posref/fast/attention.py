"""Attention with a bias by offset, compiled: it streams over the keys. The definition is `posref.attention.attend_by_offset`.

The matrix of scores is never stored: for each block of LANES queries the keys pass in tiles, and maximum, denominator and
accumulator of every row are carried along (online softmax). Memory is O(n d) for copies of inputs that are not contiguous,
O(n) for the bias, and a few tiles a thread. Tiles outside the causal triangle or the window are skipped. Queries lie side
by side in the vectors, so each sum runs over the keys in their order: results do not depend on `threads`, and one query alone,
as in a decoding step, takes as long as LANES of them.

`partial_by_offset` stops before the division and returns the State that `merge` joins with those of other shards of the keys:
what ring attention and context parallelism compute on each device. A State is that of `posref.shards`.

RoPE on the fly. `query_tables` and `key_tables` are the (cos, sin) of `rope.tables` for the rows of q and of k; rows are turned
as they are read, by the operations of `fast.rope.rotate`: for arrays of one dtype the result is bit for bit that of
`attend_by_offset(rotate(q, ..), rotate(k, ..), v, ..)`. That expression is the definition; attention itself knows no encoding.

Error. Let u be half a unit in the last place (2^-24 or 2^-53), a_ij and m_i the exact weights and maxima of the float inputs,
n_i the keys that row i sees and T_i <= n_i / TILE + 2 its tiles. To first order in u every output is within

    sum_j a_ij |v_je| (E_ij + sum_l a_il E_il + u),
    E_ij = u ((d + 4) |scale| sum_t |q_it k_jt| + |b_ij| + m_i - s_ij + n_i + 4 T_i + 4)

of the exact one: d + 1 roundings in an inner product, one each of scale, product, bias and sum; exp of a rounded difference and
its own error of 3 u; for every tile a factor of the same kind, whose differences add up to m_i minus the maximum then; n_i
additions and the division. Weights below e^-87 (float32) or e^-708 (float64) count as 0. The maximum is subtracted before exp,
so results are finite whenever the scores are.

One difference to the specification: results are float32 or float64, for other dtypes there is a TypeError. Inputs of several
dtypes are all converted to that of the result first.

Proofs, proofs/fast/attention.py: the source of the kernels, with exp itself in place of its polynomial. step_keeps_the_sums:
one step of the online softmax, on both branches of its maximum, hence any number of keys; kernel_attends_on_every_path,
kernel_pinned, partial_pinned, rope_on_the_fly: the whole kernel is the specification, at small sizes. Rounding, threads and
large sizes are tested.
"""

import math

import numba
import numpy as np
from numba.core.compiler import Compiler

from posref import _require, attention, pairing
from posref._contract import Array, Integer, Numbers, twin
from posref.fast import _machine
from posref.pairing import Layout
from posref.shards import State, finish, merge

__all__ = ["State", "attend_by_offset", "finish", "merge", "partial_by_offset"]

LANES = 64  # queries side by side: four vectors of sixteen float32, times four rows fill half of the registers of AVX-512
TILE = 64  # keys at a time: all tiles of a thread fit into 100 kB
TABLES = ("query_tables[0]", "query_tables[1]", "key_tables[0]", "key_tables[1]")
PAIR = "pass the pair (cos, sin) of rope.tables; batched tables have one entry for all heads"
PIECES = 8  # a thread, so that one that is held up leaves its rest to the others


class _Separate(Compiler):
    """Compiles under the promise that arguments share no memory that is written: then sums stay in registers as they grow."""

    def define_pipelines(self):
        self.state.flags.noalias = True
        return super().define_pipelines()


@twin(attention.attend_by_offset, query_tables=PAIR, key_tables=PAIR)
def attend_by_offset(
    q,
    k,
    v,
    *,
    scale,
    bias_by_offset=None,
    causal=False,
    window=None,
    query_tables: tuple[Numbers[Array, "(...) #1 n_query d/2"], Numbers[Array, "=query_tables[0]"]] | None = None,
    key_tables: tuple[Numbers[Array, "(...) #1 n_key d/2"], Numbers[Array, "=key_tables[0]"]] | None = None,
    layout: Layout | None = None,
    out=None,
    threads=None,
):
    """Attention with a bias that depends on the offset alone, and masks by rule: `(..., h, n_query, d_v)`.

    Arguments and errors are those of `posref.attention.attend_by_offset`; `query_tables`, `key_tables` and `layout` turn the
    rows of q and k first (see above). `out` is the array to write to, not overlapping any input; `threads` a number or None
    to choose by size. ValueError or TypeError for an `out` that does not fit or overlaps, and for tables without `layout`.

    >>> ones = np.ones((1, 3, 1))
    >>> v = np.array([[[0.0], [2.0], [4.0]]])
    >>> attend_by_offset(ones, ones, v, scale=1.0, causal=True)[0, :, 0]
    array([0., 1., 2.])
    """
    name, turn = "fast.attention.attend_by_offset", (query_tables, key_tables, layout)
    return _stream(name, q, k, v, scale, bias_by_offset, causal, window, None, turn, True, out, threads).accumulator


@twin(attention.attend_by_offset, query_tables=PAIR, key_tables=PAIR)
def partial_by_offset(
    q,
    k,
    v,
    *,
    scale,
    bias_by_offset=None,
    causal=False,
    window=None,
    shift: Integer | None = None,
    query_tables: tuple[Numbers[Array, "(...) #1 n_query d/2"], Numbers[Array, "=query_tables[0]"]] | None = None,
    key_tables: tuple[Numbers[Array, "(...) #1 n_key d/2"], Numbers[Array, "=key_tables[0]"]] | None = None,
    layout: Layout | None = None,
    threads=None,
):
    """The State of `attend_by_offset` over a shard of the keys: `posref.shards.attend`, streamed.

    `q` and `k` are any rows of a longer sequence. `shift` is the position of the first key minus that of the first query, so
    that causal means j - i + shift <= 0 and a window |j - i + shift| < w; without it the last query and the last key are
    aligned. `bias_by_offset` has entry j - i + n_query - 1 for row i and column j of this call: of a bias
    `(h, 2 n - 1)` for the whole sequence it is the slice `[..., n - n_query + shift :][..., : n_query + n_key - 1]`.

    >>> q, k, v = np.ones((1, 1, 1)), np.ones((1, 3, 1)), np.array([[[0.0], [2.0], [4.0]]])
    >>> partial_by_offset(q, k, v, scale=1.0, causal=True, shift=-1)
    State(maximum=array([[[1.]]]), denominator=array([[[2.]]]), accumulator=array([[[2.]]]))
    """
    name, turn = "fast.attention.partial_by_offset", (query_tables, key_tables, layout)
    return _stream(name, q, k, v, scale, bias_by_offset, causal, window, shift, turn, False, None, threads)


def _stream(name, q, k, v, scale, bias, causal, window, shift, turn, divide, out, threads):
    """The State over the keys, its accumulator divided by the denominator if `divide`."""
    tables = _tables(name, *turn)
    heads, n_query, n_key, width = q.shape[-3], q.shape[-2], k.shape[-2], v.shape[-1]
    batch = np.broadcast_shapes(q.shape[:-3], k.shape[:-3], v.shape[:-3])
    reads = {"q": q, "k": k, "v": v, **({} if bias is None else {"bias_by_offset": bias}), **tables}
    dtype = np.result_type(scale, *reads.values())
    dtype = np.dtype(np.float64) if dtype.kind in "iu" else dtype
    _machine.floating(name, "the result", dtype)
    out = _machine.output(name, "out", out, (*batch, heads, n_query, width), dtype, reads=reads)
    products = math.prod(batch) * heads * n_query * n_key * (q.shape[-1] + width)
    threads = _machine.thread_count(name, threads, products // 2)  # as long as it takes to write this many bytes
    low, high = _band(n_query, n_key, causal, window, n_query - n_key if shift is None else int(shift))
    none = np.empty((max(n_query, n_key), 0), dtype)
    q, k, v, *turning = (np.require(x, dtype, "CA") for x in (q, k, v, *(tables.get(x, none) for x in TABLES)))
    bias = _reversed(bias, n_query + n_key - 1, dtype)
    sums = out if out.flags.carray else np.empty(out.shape, dtype)
    maximum, denominator = np.empty((2, *batch, heads, n_query), dtype)
    numbers = dtype.type(scale), dtype.type(np.finfo(dtype).min), low, high, turn[2] == "interleaved", divide
    step = PIECES * threads if threads > 1 else 1
    calls = []
    for b in np.ndindex(*batch):
        arrays = [_at(x, b) for x in (q, k, v)] + [_at(bias[..., None], b)[..., 0]]
        arrays += [_at(x, b)[0] if x.ndim > 2 else x for x in turning]
        arrays += [sums[b], maximum[b], denominator[b]]
        calls += [(*arrays, *numbers, first, step) for first in range(step)]
    _machine.run(_attend, calls, threads)
    if sums is not out:
        out[...] = sums
    return State(maximum[..., None], denominator[..., None], out)


def _tables(name, query_tables, key_tables, layout):
    """The tables by name, for what must not overlap; they need a layout."""
    tables = {}
    for argument, pair in (("query_tables", query_tables), ("key_tables", key_tables)):
        if pair is not None:
            _require.choice(name, "layout", layout, pairing.LAYOUTS)
            tables |= {f"{argument}[0]": pair[0], f"{argument}[1]": pair[1]}
    return tables


def _band(n_query, n_key, causal, window, shift):
    """The j - i that may attend, from low to high; the causal triangle and the window are both bands."""
    everything = n_query + n_key
    reach = everything + abs(shift) if window is None else int(window) - 1
    high = min(0, reach) if causal else reach
    return max(-reach - shift, -everything), min(high - shift, everything)


def _reversed(bias, offsets, dtype):
    """The bias by i - j, so that it is read forwards along the queries; LANES more, which the last block reads in vain."""
    bias = np.zeros((1, 0), dtype) if bias is None else bias[..., ::-1].reshape(*bias.shape[:-1] or (1,), bias.shape[-1])
    padded = np.zeros((*bias.shape[:-1], max(0, offsets) + LANES), dtype)
    padded[..., : bias.shape[-1]] = bias
    return padded


def _at(x, b):
    """Entry `b` of the batch of `x` `(.., _, _, _)`, along whose axes of one entry it is broadcast."""
    lead = x.shape[:-3]
    return x[tuple(i if n > 1 else 0 for n, i in zip(lead, b[len(b) - len(lead) :], strict=True))]


def _exp(x):
    """e^x for x <= 0. Compiled it is one of the two sums below; numba's own is a call for each number.

    x = n ln 2 + r with |r| <= ln 2 / 2. The series of e^r ends with r^7 / 7!, for float64 r^13 / 13!: the rest is below
    0.09 u, or 0.04 u. The first part of ln 2 has few bits, so its product with n is exact, and so is the difference by
    cancellation; the second part leaves an error of r below 0.5 u. The rounded sum adds at most 2.4 u: the last addition
    rounds by u, the last product and what is below it by 1.4 u. Together less than 3 u, fused or not.
    """
    return np.exp(x)


def _exp_float32(x):
    y = max(x, np.float32(-87))
    n = np.floor(y * np.float32(1.4426950408889634) + np.float32(0.5))
    r = y - n * np.float32(355 / 512) + n * np.float32(0.00021219444005469057)
    p = np.float32(1 / 5040)
    p = p * r + np.float32(1 / 720)
    p = p * r + np.float32(1 / 120)
    p = p * r + np.float32(1 / 24)
    p = p * r + np.float32(1 / 6)
    p = p * r + np.float32(1 / 2)
    p = p * r + np.float32(1)
    p = p * r + np.float32(1)
    p = p * np.int32((np.int32(n) + 127) << 23).view(np.float32)
    return p if x >= np.float32(-87) else np.float32(0)


def _exp_float64(x):
    y = max(x, -708.0)
    n = np.floor(y * 1.4426950408889634 + 0.5)
    r = y - n * (2977044472 / 2**32) + n * 4.2009150726810846e-11
    p = 1 / 6227020800
    p = p * r + 1 / 479001600
    p = p * r + 1 / 39916800
    p = p * r + 1 / 3628800
    p = p * r + 1 / 362880
    p = p * r + 1 / 40320
    p = p * r + 1 / 5040
    p = p * r + 1 / 720
    p = p * r + 1 / 120
    p = p * r + 1 / 24
    p = p * r + 1 / 6
    p = p * r + 1 / 2
    p = p * r + 1.0
    p = p * r + 1.0
    p = p * np.int64((np.int64(n) + 1023) << 52).view(np.float64)
    return p if x >= -708.0 else 0.0


@numba.extending.overload(_exp, jit_options={"fastmath": {"contract"}, "error_model": "numpy"})
def _compiled_exp(x):
    return {numba.types.float32: _exp_float32, numba.types.float64: _exp_float64}.get(x)


@_machine.jit(pipeline_class=_Separate, fastmath=False)  # said aloud: left open, it is taken from the kernel that calls
def _take(x, first, count, cos, sin, interleaved, tile):
    """tile[c] = row first + c of x, turned where the tables have columns: the products and sums of `fast.rope`, unfused."""
    pairs = cos.shape[1]
    for c in range(count):
        for t in range(x.shape[1]):
            tile[c, t] = x[first + c, t]
    for c in range(count):
        for t in range(pairs):
            a, b = (2 * t, 2 * t + 1) if interleaved else (t, t + pairs)
            x0, x1 = x[first + c, a], x[first + c, b]
            cosine, sine = cos[first + c, t], sin[first + c, t]
            tile[c, a] = x0 * cosine - x1 * sine
            tile[c, b] = x0 * sine + x1 * cosine


@_machine.jit(pipeline_class=_Separate, fastmath={"contract"}, error_model="numpy")
def _multiply(a, x, count, sums, lanes=LANES):
    """sums += a x, over `count` columns of a and rows of x `(.., lanes)`; sums is flat, its rows are taken four at a time."""
    for i in range(0, a.shape[0], 4):
        four = sums[i * lanes : (i + 4) * lanes]
        for t in range(count):
            a0, a1, a2, a3 = a[i, t], a[i + 1, t], a[i + 2, t], a[i + 3, t]
            for r in range(lanes):
                four[r] += a0 * x[t, r]
                four[lanes + r] += a1 * x[t, r]
                four[2 * lanes + r] += a2 * x[t, r]
                four[3 * lanes + r] += a3 * x[t, r]


@_machine.jit(pipeline_class=_Separate, fastmath={"contract"}, error_model="numpy")
def _score(s, count, scale, bias, start, after, before, lanes=LANES):
    """The scores from the inner products s `(tile, lanes)`: row c is a key, to which lanes after + c to before + c attend."""
    for c in range(count):
        near = bias[start - c : start - c + lanes]
        for r in range(lanes):
            s[c, r] = s[c, r] * scale + near[r]
        for r in range(min(after + c, lanes)):
            s[c, r] = -np.inf
        for r in range(max(before + c + 1, 0), lanes):
            s[c, r] = -np.inf


@_machine.jit(pipeline_class=_Separate, fastmath={"contract"}, error_model="numpy")
def _step(s, count, maximum, denominator, accumulator, shrink, lanes=LANES):
    """Online softmax: raise the maxima by `count` scores of each lane, make weights of the scores, add them to the denominator.

    denominator e^maximum grows by the sum of e^s, accumulator e^maximum stays; the weights times the values come later.
    """
    for r in range(lanes):
        shrink[r] = maximum[r]
    for c in range(count):
        for r in range(lanes):
            maximum[r] = max(maximum[r], s[c, r])
    for r in range(lanes):
        shrink[r] = _exp(shrink[r] - maximum[r])
        denominator[r] *= shrink[r]
    for c in range(count):
        for r in range(lanes):
            s[c, r] = _exp(s[c, r] - maximum[r])
            denominator[r] += s[c, r]
    for e in range(accumulator.shape[0]):
        for r in range(lanes):
            accumulator[e, r] *= shrink[r]


@_machine.jit(pipeline_class=_Separate, fastmath={"contract"}, error_model="numpy")
def _attend(
    q,
    k,
    v,
    bias,
    q_cos,
    q_sin,
    k_cos,
    k_sin,
    out,
    maximum,
    denominator,
    scale,
    lowest,
    low,
    high,
    interleaved,
    divide,
    first,
    step,
    lanes=LANES,
    tile=TILE,
):
    """One block in `step` of the (h, n_query / lanes): late blocks first, since they have the most keys under a causal mask."""
    heads, n_query, dim = q.shape
    n_key, width = v.shape[1], v.shape[2]
    group, blocks, fours = heads // k.shape[0], (n_query + lanes - 1) // lanes, width + -width % 4
    queries, turned = np.zeros((lanes, dim), q.dtype), np.zeros((dim, lanes), q.dtype)
    keys, values = np.zeros((tile, dim), q.dtype), np.zeros((tile, fours), q.dtype)
    products, sums = np.zeros(tile * lanes, q.dtype), np.zeros(fours * lanes, q.dtype)
    s, accumulator = products.reshape(tile, lanes), sums.reshape(fours, lanes)
    straight = k_cos[:, :0]
    top, total, shrink = np.zeros(lanes, q.dtype), np.zeros(lanes, q.dtype), np.zeros(lanes, q.dtype)
    for w in range(first, heads * blocks, step):
        h, i = w // blocks, (blocks - 1 - w % blocks) * lanes
        rows = min(lanes, n_query - i)
        _take(q[h], i, rows, q_cos, q_sin, interleaved, queries)
        for t in range(dim):
            for r in range(lanes):
                turned[t, r] = queries[r, t]
        top[:] = lowest
        total[:] = 0
        sums[:] = 0
        end = min(n_key, i + rows + high)
        for j in range(max(0, i + low), end, tile):
            count = min(tile, end - j)
            _take(k[h // group], j, count, k_cos, k_sin, interleaved, keys)
            _take(v[h // group], j, count, straight, straight, interleaved, values)
            products[:] = 0
            _multiply(keys, turned, dim, products, lanes)
            _score(s, count, scale, bias[h % len(bias)], n_key - 1 - j + i, j - i - high, j - i - low, lanes)
            _step(s, count, top, total, accumulator, shrink, lanes)
            _multiply(values.T, s, count, sums, lanes)
        for r in range(rows):
            maximum[h, i + r], denominator[h, i + r] = top[r], total[r]
            for e in range(width):
                out[h, i + r, e] = accumulator[e, r] / total[r] if divide and total[r] > 0 else accumulator[e, r]
