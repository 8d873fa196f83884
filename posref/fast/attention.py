"""Attention with a bias by offset, compiled: it streams over the keys. The definition is `posref.attention.attend_by_offset`.

The matrix of scores is never stored: for each block of LANES queries the kernel reads the keys in tiles, and keeps the maximum,
denominator and accumulator of every row (online softmax). Memory is O(n d) for copies of inputs that are rotated or not
contiguous, O(h n) for the bias, and a few tiles per thread. Tiles outside the causal triangle or the window are skipped. A
vector register holds numbers of many queries. With up to FEW queries, as in a decoding step, it holds numbers of many keys, and
each key and value is read once for all heads that share it, two queries at a time; each shard of SHARD keys has its State, and
the States are merged. In both cases results do not depend on `threads`.

A NaN in the keys is found when the scores are computed, not by another pass over the keys. `out` is already changed then.

`partial_by_offset` stops before the division and returns a State of `posref.shards`, which `merge` joins with the States of
other shards of the keys: ring attention and context parallelism compute it on each device.

RoPE. `query_tables` and `key_tables` are the (cos, sin) of `rope.tables` for the rows of q and k, of one axis or of several.
`fast.rope.rotate` rotates the rows first: for arrays of one dtype the result has the same bits as
`attend_by_offset(rotate(q, ..), rotate(k, ..), v, ..)`. That expression is the definition; attention itself knows no encoding.

Bias by rule. `bias_rule` (near, before, after) is a bias by offset in fewer numbers. near `(h, 2 r + 1)` has the bias of the
offsets -r to r; positions are aligned at the end, as for masks. Beyond r the bias is linear in the offset, with the slopes
before `(h,)` for keys before the query and after `(h,)` for keys after it. `fast.alibi.rule` and `fast.t5.rule` make the rules
of ALiBi and T5. Results have the same bits as with `bias_by_offset` and the same numbers.

A call compiles only what it needs: without a softcap the kernel has no code for a softcap. A missing bias is passed as an array
without columns, so calls with and without a bias use the same kernel.

Error. Let u be half a unit in the last place (2^-24 or 2^-53), a_ij and m_i the exact weights and maxima of the float inputs,
n_i the keys that row i sees and T_i <= n_i / TILE + 2 its tiles (n_i / STRETCH + 3 for few queries). To first order in u
every output is within

    sum_j a_ij |v_je| (E_ij + sum_l a_il E_il + u),
    E_ij = u ((d + 4) |f_i| sum_t |q_it k_jt| + 6 c + |b_ij| + m_i - s_ij + n_i + 3 T_i + 3)

of the exact one, with f_i = scale row_scale_i and the softcap c or 0. m_i and n_i count the sink as a key. Weights below e^-87
(float32) or e^-708 (float64) count as 0. The maximum is subtracted before exp, so results are finite whenever the scores are.
proofs/mathematics/streaming.py derives each term from the source: inner_products (d, and three of the factor and its product
with the query), bias_and_cap, tanh_is_within_four_units, exp_is_within_two_units, sums_of_weights (n_i additions, a rescaling
for each tile, whose differences add up to m_i minus the maximum then), the_division; the_bound_covers_every_operation adds up
what whole kernels round.

One difference to the specification: results are float32 or float64, and other dtypes give a TypeError. Inputs of several
dtypes are first converted to the dtype of the result.

Proofs, proofs/fast/attention.py: the source of the kernels, with exp and tanh themselves in place of what is compiled for them.
step_keeps_the_sums: one step of the online softmax, on both branches of its maximum; a_tile_of_any_size, products_of_any_size,
a_band_of_any_size, keys_of_any_number, any_number_of_tiles: every loop by its invariant, for all lanes, keys and tiles;
kernels_attend_on_every_path, kernels_pinned, partial_pinned: the whole kernels are the specification, at small sizes.
Rounding, threads and large sizes are tested.
"""

import functools
import math

import numba
import numpy as np

from posref import _require, attention, pairing
from posref._contract import Array, Integer, Numbers, finite, twin
from posref.fast import _machine, rope
from posref.pairing import Layout
from posref.shards import State, finish, merge

__all__ = ["State", "attend_by_offset", "finish", "merge", "partial_by_offset"]

LANES = 64  # queries side by side, a multiple of every panel
ROWS = 4  # of sums, which are in registers at a time
FEW = 16  # queries: a block of LANES takes as long as so many of them two by two
TILE = 64  # keys at a time: in float32 a tile of keys, queries and scores is 48 kB, as large as a first cache
STRETCH = 32 * TILE  # keys at a time for few queries: they are read where they are, the faster the longer
SHARD = 2 * STRETCH  # keys of a piece for few queries, so that one head of keys is work for several threads
TABLES = ("query_tables[0]", "query_tables[1]", "key_tables[0]", "key_tables[1]")
PAIR = "pass the pair (cos, sin) of rope.tables; batched tables have one entry for all heads"
PIECES = 8  # a thread, so that one that is held up leaves its rest to the others


@twin(attention.attend_by_offset, finds=("k",), query_tables=PAIR, key_tables=PAIR)
def attend_by_offset(
    q,
    k,
    v,
    *,
    scale,
    bias_by_offset=None,
    bias_rule: tuple[Numbers[Array, "#h offsets", finite], Numbers[Array, "#h", finite], Numbers[Array, "=bias_rule[1]"]]
    | None = None,
    causal=False,
    window=None,
    row_scale=None,
    softcap=None,
    sinks=None,
    query_tables: tuple[Numbers[Array, "(...) #1 n_query d/2"], Numbers[Array, "=query_tables[0]"]] | None = None,
    key_tables: tuple[Numbers[Array, "(...) #1 n_key d/2"], Numbers[Array, "=key_tables[0]"]] | None = None,
    layout: Layout | None = None,
    out=None,
    threads=None,
):
    """Attention with a bias that depends on the offset alone, and masks by rule: `(..., h, n_query, d_v)`.

    Arguments and errors are those of `posref.attention.attend_by_offset`; `bias_rule` is a bias by rule; `query_tables`,
    `key_tables` and `layout` rotate the rows of q and k first (see above). `out` is the array to write to, which overlaps no
    input; `threads` a number or None to choose by size. ValueError or TypeError for an `out` that does not fit or overlaps, for
    tables without `layout`, and for two biases.

    >>> ones = np.ones((1, 3, 1))
    >>> v = np.array([[[0.0], [2.0], [4.0]]])
    >>> attend_by_offset(ones, ones, v, scale=1.0, causal=True)[0, :, 0]
    array([0., 1., 2.])
    """
    band, rules, turn = (causal, window, None), (row_scale, softcap, sinks), (query_tables, key_tables, layout)
    return _stream(
        attend_by_offset, q, k, v, scale, (bias_by_offset, bias_rule), band, rules, turn, True, out, threads
    ).accumulator


@twin(attention.attend_by_offset, finds=("k",), query_tables=PAIR, key_tables=PAIR)
def partial_by_offset(
    q,
    k,
    v,
    *,
    scale,
    bias_by_offset=None,
    bias_rule: tuple[Numbers[Array, "#h offsets", finite], Numbers[Array, "#h", finite], Numbers[Array, "=bias_rule[1]"]]
    | None = None,
    causal=False,
    window=None,
    row_scale=None,
    softcap=None,
    shift: Integer | None = None,
    query_tables: tuple[Numbers[Array, "(...) #1 n_query d/2"], Numbers[Array, "=query_tables[0]"]] | None = None,
    key_tables: tuple[Numbers[Array, "(...) #1 n_key d/2"], Numbers[Array, "=key_tables[0]"]] | None = None,
    layout: Layout | None = None,
    threads=None,
):
    """The State of `attend_by_offset` over a shard of the keys: `posref.shards.attend`, streamed.

    `q` and `k` are any rows of a longer sequence. `shift` is the position of the first key minus that of the first query, so
    that causal means j - i + shift <= 0 and a window |j - i + shift| < w. Without `shift` the last query and the last key
    are aligned. `bias_by_offset` has entry j - i + n_query - 1 for row i and column j of this call. From a bias `(h, 2 n - 1)`
    of the whole sequence, take the slice `[..., n - n_query + shift :][..., : n_query + n_key - 1]`.

    >>> q, k, v = np.ones((1, 1, 1)), np.ones((1, 3, 1)), np.array([[[0.0], [2.0], [4.0]]])
    >>> partial_by_offset(q, k, v, scale=1.0, causal=True, shift=-1)
    State(maximum=array([[[1.]]]), denominator=array([[[2.]]]), accumulator=array([[[2.]]]))
    """
    band, rules, turn = (causal, window, shift), (row_scale, softcap, None), (query_tables, key_tables, layout)
    return _stream(partial_by_offset, q, k, v, scale, (bias_by_offset, bias_rule), band, rules, turn, False, None, threads)


def _stream(function, q, k, v, scale, biases, band, rules, turn, divide, out, threads):
    """The State over the keys; with `divide`, its accumulator is divided by the denominator."""
    name, (causal, window, shift), (row_scale, softcap, sinks) = function.contract.where, band, rules
    bias, rule = biases
    tables = _tables(name, *turn)
    heads, n_query, n_key, width = q.shape[-3], q.shape[-2], k.shape[-2], v.shape[-1]
    batch = np.broadcast_shapes(q.shape[:-3], k.shape[:-3], v.shape[:-3])
    added = {"bias_by_offset": bias, "row_scale": row_scale, "sinks": sinks}
    reads = {"q": q, "k": k, "v": v, **{argument: x for argument, x in added.items() if x is not None}, **tables}
    reads |= {} if rule is None else _rule(name, bias, rule)
    dtype = np.result_type(scale, *reads.values())
    dtype = np.dtype(np.float64) if dtype.kind in "iu" else dtype
    _machine.floating(name, "the result", dtype)
    out = _machine.output(name, "out", out, (*batch, heads, n_query, width), dtype, reads=reads)
    products = math.prod(batch) * heads * n_query * n_key * (q.shape[-1] + width)
    size = max(products // 3, (k.nbytes + v.nbytes) // 2)  # as long as it takes to write this many bytes
    threads = _machine.thread_count(name, threads, size)
    shift = n_query - n_key if shift is None else int(shift)
    low, high = _band(n_query, n_key, causal, window, shift)
    q, keys, v = (np.require(x, dtype, "CA") for x in (q, k, v))
    q, keys = (x if pair is None else _turned(x, pair, turn[2], threads) for x, pair in ((q, turn[0]), (keys, turn[1])))
    factor = np.asarray(scale if row_scale is None else scale * row_scale, dtype)[..., None]
    rows, count = np.empty((heads, 0), dtype), max(0, n_query + n_key - 1) + LANES  # lanes without a query read LANES more
    if bias is not None:
        rows = np.zeros((*bias.shape[:-2], heads, count), dtype)
        rows[..., : bias.shape[-1]] = bias[..., ::-1]  # forwards along the queries
    if rule is not None:
        rows = _extended(rule, np.empty((heads, count), dtype), n_key - 1 + shift, threads)
    few = n_query <= FEW
    shards = max(1, -(-n_key // SHARD)) if few else 1
    straight = shards == 1 and out.flags.carray
    sums = out[None] if straight else np.empty((shards, *out.shape), dtype)
    if few:
        q, sums[...] = q * factor, 0
    factor = np.array(np.broadcast_to(factor, (*factor.shape[:-3], heads, n_query, 1)))
    maximum, denominator = _machine.on_a_line((2, shards, *batch, heads, n_query + -n_query % LANES), dtype)
    maximum[...], denominator[...] = np.finfo(dtype).min, 0
    if sinks is not None:
        maximum[0], denominator[0] = sinks, 1
    kernel, units = (_attend_few, shards * k.shape[-3]) if few else (_attend, heads * -(-n_query // LANES))
    step = 1 if threads == 1 else max(1, min(PIECES * threads, units))
    softcap = None if softcap is None else dtype.type(softcap)
    calls = []
    for b in np.ndindex(*batch):
        arrays = [_at(x, b) for x in (q, keys, v)] + [_at(rows[..., None], b)[..., 0]]
        at = (slice(None) if few else 0, *b)
        arrays += [x[at] for x in (sums, maximum, denominator)]
        arrays += [] if few else [_at(factor, b), divide]
        calls += [(kernel, *arrays, softcap, low, high, first, step) for first in range(step)]
    _machine.run(_piece, calls, threads)
    maximum, denominator = (x[..., :n_query, None] for x in (maximum, denominator))
    _search(function, k, slice(max(0, low), max(0, n_query + high) if maximum.size > 0 else 0), maximum, denominator)
    maximum, denominator, sums = functools.reduce(merge, map(State, maximum, denominator, sums))
    if divide and few:
        np.divide(sums, np.where(denominator > 0, denominator, 1), out=sums)  # where=, a condition for each number, is slower
    if not straight:
        out[...] = sums
    return State(maximum, denominator, out)


def _turned(x, tables, layout, threads):
    """`x`, rotated; the tables may have more leading axes than `x`."""
    lead = np.broadcast_shapes(x.shape[:-3], tables[0].shape[:-3])
    tables = (table.astype(x.dtype, copy=False) for table in tables)
    return rope.rotate(np.broadcast_to(x, (*lead, *x.shape[-3:])), *tables, layout=layout, threads=threads)


def _piece(kernel, q, k, v, bias, out, *rest):
    """Run the kernel on a piece of the work, with tiles of its own."""
    heads, n_query, dim = q.shape
    width = v.shape[-1] + -v.shape[-1] % ROWS
    shapes = [(dim * LANES,), ((TILE + 1) * LANES,), (width * LANES,)]
    if kernel is _attend_few:
        shapes = [(heads // k.shape[0] * n_query, min(STRETCH, k.shape[1]) + 2)]
        q, out = q.reshape(heads * n_query, dim), out.reshape(len(out), heads * n_query, v.shape[-1])
    rooms = [_machine.on_a_line(shape, q.dtype) for shape in shapes]
    for room in rooms:
        room[...] = 0
    kernel(q, k, v, bias, out, *rest, *rooms)


def _search(function, k, met, maximum, denominator):
    """ValueError for keys that are not finite; if the kernel read one, a denominator is NaN."""
    if not all(np.isfinite(x).all() for x in (maximum, denominator, k[..., : met.start, :], k[..., met.stop :, :])):
        if not np.isfinite(k).all():
            raise function.contract.not_finite("k", k)
        raise ValueError(
            f"{function.contract.where}: scores are NaN or infinite: factors are too large for {k.dtype} or tables not finite; "
            "make them smaller, or pass float64"
        )


def _tables(name, query_tables, key_tables, layout):
    """{name: table} for the check that nothing overlaps `out`; ValueError for tables without a layout."""
    tables = {}
    for argument, pair in (("query_tables", query_tables), ("key_tables", key_tables)):
        if pair is not None:
            _require.choice(name, "layout", layout, pairing.LAYOUTS)
            tables |= {f"{argument}[0]": pair[0], f"{argument}[1]": pair[1]}
    return tables


def _rule(name, bias, rule):
    """{name: array of the rule} for the check that nothing overlaps `out`; ValueError for two biases."""
    if bias is not None:
        raise ValueError(f"{name}: bias_by_offset and bias_rule are given, expected one of them; add the rule to the array")
    if rule[0].shape[1] % 2 == 0:
        shape = rule[0].shape
        raise ValueError(
            f"{name}: bias_rule[0] has shape {shape}, expected an odd number of offsets; give as many on both sides"
        )
    return {f"bias_rule[{place}]": x for place, x in enumerate(rule)}


def _band(n_query, n_key, causal, window, shift):
    """(low, high): the offsets j - i that may attend; the causal triangle and the window are both such bands."""
    everything = n_query + n_key
    reach = everything + abs(shift) if window is None else int(window) - 1
    high = min(0, reach) if causal else reach
    return max(-reach - shift, -everything), min(high - shift, everything)


def _extended(rule, rows, first, threads):
    """`rows`, filled by the rule with the bias of the offsets first, first - 1, .."""
    shapes = (len(rows), rule[0].shape[1]), len(rows), len(rows)
    rule = [np.array(np.broadcast_to(x, shape), rows.dtype, order="C") for x, shape in zip(rule, shapes, strict=True)]
    calls = [(*(x[part] for x in rule), first, rows[part]) for part in _machine.parts(len(rows), threads)]
    _machine.run(_extend, calls, threads)
    return rows


def _at(x, b):
    """Entry `b` of the batch of `x` `(.., _, _, _)`; leading axes of length 1 are broadcast."""
    lead = x.shape[:-3]
    return x[tuple(i if n > 1 else 0 for n, i in zip(lead, b[len(b) - len(lead) :], strict=True))]


def _exp(x):
    """e^x for x <= 0. The compiled form is one of the two sums below, because numba's own exp is a call for each number.

    x = n ln 2 + r with |r| <= ln 2 / 2. The series of e^r ends with r^7 / 7!, for float64 r^13 / 13!: the rest is below
    0.09 u, or 0.04 u. The first part of ln 2 has few bits, so its product with n is exact, and so is the difference by
    cancellation; the second part leaves an error of r below 0.5 u. With the rounded sum it is less than 2 u, fused or not
    (proofs/mathematics/streaming.py). `python -m tests.release exp` tests every float32 of the range: 1.33 u at most, fused.
    """
    return np.exp(x)


def _exp_float32(x):
    y = x if x > np.float32(-87) else np.float32(-87)
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
    y = x if x > -708.0 else -708.0
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


def _tanh(x):
    """tanh x. The compiled form is (1 - t) / (1 + t) with t = e^(-2 |x|) and the sign of x; its absolute error is at most 4 u.

    t is off by 2 u t, which moves the quotient by at most 4 u t / (1 + t)^2 <= u; the sum, the difference and the quotient
    round by u each, at most.
    """
    return np.tanh(x)


@numba.extending.overload(_tanh, jit_options={"fastmath": {"contract"}, "error_model": "numpy"})
def _compiled_tanh(x):
    kind = {numba.types.float32: np.float32, numba.types.float64: np.float64}.get(x)

    def tanh(x):
        t = _exp(kind(-2) * abs(x))
        return math.copysign((kind(1) - t) / (kind(1) + t), x)

    return tanh


def _fetch(row):
    """Does nothing in Python; the compiled form prefetches the memory ahead of a row."""


numba.extending.overload(_fetch)(_machine.fetch)


@_machine.jit(fastmath={"contract"}, error_model="numpy")
def _cap(x, softcap):
    """x becomes c tanh(x / c)."""
    for r in range(len(x)):
        x[r] = softcap * _tanh(x[r] / softcap)


def _panel(x, lanes):
    """The number of lanes of `x` that are summed in registers together: here all, in compiled code as many as fit."""
    return lanes


@numba.extending.overload(_panel)
def _compiled_panel(x, lanes):
    panel = _machine.PANEL // x.dtype.bitwidth
    return lambda x, lanes: panel


@_machine.jit(pipeline_class=_machine.Separate, fastmath={"contract"}, error_model="numpy")
def _multiply(a, x, factor, sums):
    """sums = factor sums + a x, or sums = a x if factor is empty; factor has one number per lane.

    x and sums are flat: their rows of LANES numbers follow each other. x has a row for each column of a, sums a row for each
    row of a. Four rows of sums, each as wide as a panel, stay in registers.
    """
    last, panel = a.shape[0] - 1, _panel(x, LANES)
    for i in range(0, a.shape[0], ROWS):
        i1, i2, i3 = min(i + 1, last), min(i + 2, last), min(i + 3, last)
        for p in range(0, LANES, panel):
            four = sums[i * LANES + p : (i + ROWS) * LANES]
            for row in range(0, ROWS * LANES, LANES):
                for r in range(panel):
                    four[row + r] = factor[p + r] * four[row + r] if len(factor) > 0 else 0
            for t in range(a.shape[1]):
                line = x[t * LANES + p :]  # before the four numbers, which are then loaded into all lanes of a register at once
                a0, a1, a2, a3 = a[i, t], a[i1, t], a[i2, t], a[i3, t]
                for r in range(panel):
                    four[r] += a0 * line[r]
                    four[LANES + r] += a1 * line[r]
                    four[2 * LANES + r] += a2 * line[r]
                    four[3 * LANES + r] += a3 * line[r]


@_machine.jit(pipeline_class=_machine.Separate, fastmath=False)
def _extend(near, before, after, first, rows):
    """Set rows[h, x] to the bias of the offset first - x.

    `near` holds the biases of the offsets -reach to reach. Beyond them the bias is linear, with the slope `before` for lower
    offsets and the slope `after` for higher offsets.
    """
    reach = near.shape[1] // 2
    for h in range(rows.shape[0]):
        for x in range(rows.shape[1]):
            offset = first - x
            end = min(max(offset, -reach), reach)
            rows[h, x] = near[h, end + reach] + (before[h] if offset < 0 else after[h]) * (offset - end)


@_machine.jit(pipeline_class=_machine.Separate, fastmath={"contract"}, error_model="numpy")
def _adjust(s, count, softcap, bias, head, start, after, before, denominator):
    """Cap the score of key c for query r, add bias[head, start - c + r], and set masked scores to -infinity.

    Lanes after + c to before + c - 1 may attend to key c. A score that is not finite makes the denominator NaN.
    """
    for c in range(count):
        row = s[c * LANES : (c + 1) * LANES]
        for r in range(LANES):
            denominator[r] += row[r] - row[r]
        if softcap is not None:
            _cap(row, softcap)
        if bias.shape[1] > 0:
            line = bias[head, start - c :]  # an index that might be negative is no vector
            for r in range(LANES):
                row[r] += line[r]
        if after + c > 0 or before + c < LANES:
            for r in range(LANES):
                row[r] = row[r] if after + c <= r < before + c else -np.inf


@_machine.jit(pipeline_class=_machine.Separate, fastmath={"contract"}, error_model="numpy")
def _step(s, count, maximum, denominator):
    """Online softmax: raise the maxima by `count` scores of each lane, make weights of the scores, add them to the denominator.

    denominator e^maximum grows by the sum of e^s. Row `count` holds the old maximum as one more score. Its weight is the factor
    that rescales old sums to the new maximum: the denominator here, the accumulator where the weighted values are added.
    """
    old = s[count * LANES :]
    for r in range(LANES):
        old[r] = maximum[r]
    for c in range(count):
        row = s[c * LANES :]
        for r in range(LANES):
            maximum[r] = row[r] if row[r] > maximum[r] else maximum[r]
    for c in range(count + 1):
        row = s[c * LANES :]
        for r in range(LANES):
            row[r] = _exp(row[r] - maximum[r])
    for r in range(LANES):
        denominator[r] *= old[r]
    for c in range(count):
        row = s[c * LANES :]
        for r in range(LANES):
            denominator[r] += row[r]


@_machine.jit(pipeline_class=_machine.Separate, fastmath={"contract"}, error_model="numpy")
def _attend(q, k, v, bias, out, maximum, denominator, factor, divide, softcap, low, high, first, step, turned, products, sums):
    """Every `step`-th block of (h, n_query / LANES): late blocks first, since they have the most keys under a causal mask."""
    heads, n_query, dim = q.shape
    n_key, width = v.shape[1], v.shape[2]
    group, blocks = heads // k.shape[0], (n_query + LANES - 1) // LANES
    for w in range(first, heads * blocks, step):
        h, i = w // blocks, (blocks - 1 - w % blocks) * LANES
        rows, top, total = min(LANES, n_query - i), maximum[h, i : i + LANES], denominator[h, i : i + LANES]
        for r in range(rows):
            for t in range(dim):
                turned[t * LANES + r] = q[h, i + r, t] * factor[h, i + r, 0]
        sums[:] = 0
        end = min(n_key, i + rows + high)
        for j in range(max(0, i + low), end, TILE):
            count = min(TILE, end - j)
            _multiply(k[h // group, j : j + count, :dim], turned, turned[:0], products)
            _adjust(products, count, softcap, bias, h, n_key - 1 - j + i, j - i - high, j - i - low + 1, total)
            _step(products, count, top, total)
            _multiply(v[h // group, j : j + count, :width].T, products, products[count * LANES :], sums)
        for r in range(rows):
            products[r] = total[r] if divide and total[r] > 0 else 1
            for e in range(width):
                out[h, i + r, e] = sums[e * LANES + r] / products[r]


@_machine.jit(pipeline_class=_machine.Separate, fastmath={"contract", "reassoc", "nsz"}, error_model="numpy")
def _score(q, keys, s):
    """s[r, c] = q[r] . keys[c]. A key is read once for two rows at a time."""
    rows, dim = q.shape
    for c in range(len(keys)):
        _fetch(keys[c])
        for r in range(0, rows - 1, 2):
            s[r, c] = 0
            first = second = s[r, c]  # in registers while they grow
            for t in range(dim):
                first += q[r, t] * keys[c, t]
                second += q[r + 1, t] * keys[c, t]
            s[r, c], s[r + 1, c] = first, second
        for r in range(rows - rows % 2, rows):
            s[r, c] = 0
            for t in range(dim):
                s[r, c] += q[r, t] * keys[c, t]


@_machine.jit(pipeline_class=_machine.Separate, fastmath={"contract", "reassoc", "nsz"}, error_model="numpy")
def _meet(s, count, softcap, bias, head, start, after, before, sums, maximum, denominator):
    """Make weights of the scores of a query, which sees keys after to before - 1; return its new maximum and denominator."""
    for c in range(count):
        denominator += s[-1] * s[c]  # 0 or NaN; the compiler may not take it for 0 as it does 0 * s or s - s
    if softcap is not None:
        _cap(s[:count], softcap)
    if bias.shape[1] > 0:
        for c in range(count):
            s[c] += bias[head, start - c]
    if after > 0 or before < count:
        for c in range(count):
            s[c] = s[c] if after <= c < before else -np.inf
    s[count], highest = maximum, maximum
    for c in range(count):
        highest = s[c] if s[c] > highest else highest
    for c in range(count + 1):
        s[c] = _exp(s[c] - highest)
    denominator *= s[count]
    for c in range(count):
        denominator += s[c]
    for e in range(len(sums)):
        sums[e] *= s[count]
    return highest, denominator


@_machine.jit(pipeline_class=_machine.Separate, fastmath={"contract", "reassoc", "nsz"}, error_model="numpy")
def _gather(s, values, sums):
    """sums[r] += s[r] . values. A value is read once for all rows; sums are read and written once for 4 values."""
    count, (rows, width) = len(values), sums.shape
    for c in range(0, count - 3, 4):
        w, x, y, z = values[c], values[c + 1], values[c + 2], values[c + 3]
        for value in (w, x, y, z):
            _fetch(value)
        for r in range(0, rows - 1, 2):
            a = s[r, c], s[r, c + 1], s[r, c + 2], s[r, c + 3]
            b = s[r + 1, c], s[r + 1, c + 1], s[r + 1, c + 2], s[r + 1, c + 3]
            for e in range(width):
                sums[r, e] += a[0] * w[e] + a[1] * x[e] + a[2] * y[e] + a[3] * z[e]
                sums[r + 1, e] += b[0] * w[e] + b[1] * x[e] + b[2] * y[e] + b[3] * z[e]
        for r in range(rows - rows % 2, rows):
            a = s[r, c], s[r, c + 1], s[r, c + 2], s[r, c + 3]
            for e in range(width):
                sums[r, e] += a[0] * w[e] + a[1] * x[e] + a[2] * y[e] + a[3] * z[e]
    for c in range(count - count % 4, count):
        for r in range(rows):
            for e in range(width):
                sums[r, e] += s[r, c] * values[c, e]


@_machine.jit(pipeline_class=_machine.Separate, fastmath={"contract"}, error_model="numpy")
def _attend_few(q, k, v, bias, out, maximum, denominator, softcap, low, high, first, step, s):
    """Every `step`-th head and shard of the keys; the keys are read once for all queries that share them.

    q (h n_query, d); out (shards, h n_query, d_v).
    """
    shards, heads, n_key = len(out), maximum.shape[1], v.shape[1]
    n_query, group = len(q) // heads, heads // k.shape[0]
    for g in range(k.shape[0]):
        top, end = g * group * n_query, (g + 1) * group * n_query
        for p in range((first - g * shards) % step, shards, step):
            sums, last = out[p, top:end], min(n_key, (p + 1) * SHARD)
            for j in range(max(p * SHARD, low), min(last, n_query + high), STRETCH):
                keys, values = k[g, j : min(j + STRETCH, last)], v[g, j : min(j + STRETCH, last)]
                _score(q[top:end], keys, s)
                for h in range(g * group, (g + 1) * group):
                    for i in range(n_query):
                        r = h * n_query + i - top
                        scores = s[r], len(keys), softcap, bias, h, n_key - 1 - j + i, i + low - j, i + high + 1 - j
                        state = _meet(*scores, sums[r], maximum[p, h, i], denominator[p, h, i])
                        maximum[p, h, i], denominator[p, h, i] = state
                _gather(s, values, sums)
