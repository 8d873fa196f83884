"""Shaw et al.: relative position representations, compiled. The definition is `posref.relative.shaw`.

numpy computes the products as in the specification: queries with keys, and queries with the 2k + 1 rows. A compiled kernel adds
the entry of each offset and scales (`posref.fast.entries`), in the order of the specification, so `scores` has the same bits.
It needs memory for n_query n_key numbers, because the first product is made in the array of the scores. `attend` first adds
the weights of each table row, which are (n_query, 2k + 1) numbers per head instead of (n_query, n_key, d_v). This rounds
differently: at most n_key + 2k + 1 additions per number.

Heads are done in groups that stay in the cache. numpy's products use the threads of its library, which stay busy for a while
afterwards, so the kernel uses one thread unless `threads` says more. Results are float32 or float64.
"""

import numpy as np

from posref import attention
from posref._contract import twin
from posref.fast import _machine, _pairs, entries
from posref.relative import shaw

__all__ = ["attend", "scores"]


@twin(shaw.scores)
def scores(q, k, key_table, offsets, *, scale, variant="relative_key", out=None, threads=None):
    """scale (q_i . k_j + q_i . a_ij), and + k_j . a_ij for "relative_key_query": `(..., h, n_query, n_key)`. Eqs. (4), (5).

    Arguments and errors are those of `posref.relative.shaw.scores`, and bit for bit its result. `out` is the array to write
    to, `threads` how many threads the kernel takes, None for one. TypeError unless the result is float32 or float64;
    ValueError or TypeError for an `out` that does not fit or overlaps.

    >>> q, k = np.array([[[1.0], [2.0]]]), np.array([[[1.0], [1.0]]])
    >>> scores(q, k, np.array([[-10.0], [0.0], [10.0]]), np.array([[0, 1], [-1, 0]]), scale=1.0)
    array([[[  1.,  11.],
            [-18.,   2.]]])
    """
    return _scores("fast.shaw.scores", q, k, key_table, offsets, scale, variant, out, threads)


@twin(shaw.attend)
def attend(q, k, v, key_table, value_table, offsets, *, scale, mask=None, variant="relative_key", out=None, threads=None):
    """o_i = sum_j softmax_j(s_ij) (v_j + a^V_ij): `(..., h, n_query, d_v)`. Shaw et al. Eqs. (3), (4).

    Arguments and errors are those of `posref.relative.shaw.attend`; with value_table=None bit for bit its result, else up to
    the order of a sum. `out` and `threads` as in `scores`.

    >>> q, k, v = np.zeros((1, 2, 1)), np.zeros((1, 2, 1)), np.array([[[1.0], [3.0]]])
    >>> table = np.array([[-10.0], [0.0], [10.0]])
    >>> attend(q, k, v, table, table, np.array([[0, 1], [-1, 0]]), scale=1.0)
    array([[[ 7.],
            [-3.]]])
    """
    name = "fast.shaw.attend"
    weights = attention.softmax(_scores(name, q, k, key_table, offsets, scale, variant, None, threads), mask)
    reads = {"q": q, "k": k, "v": v, "key_table": key_table, "offsets": offsets}
    reads |= {} if mask is None else {"mask": mask}
    reads |= {} if value_table is None else {"value_table": value_table}
    values = (v,) if value_table is None else (v, value_table)
    shape = (*np.broadcast_shapes(weights.shape[:-2], v.shape[:-2]), weights.shape[-2], v.shape[-1])
    dtype = np.result_type(weights, *values)
    _machine.floating(name, "the result", dtype)
    out = _machine.output(name, "out", out, shape, dtype, reads=reads)
    if value_table is None:
        return _pairs.finish(out, weights @ v)
    sums = np.zeros((*weights.shape[:-1], value_table.shape[-2]), weights.dtype)
    if weights.size > 0:
        threads = _machine.thread_count(name, 1 if threads is None else threads, weights.nbytes)
        index = _pairs.integers(name, "offsets", offsets)
        _machine.run(_sum, _sum_calls(weights, index, sums, threads), threads)
    return np.add(weights @ v, sums @ value_table, out=out)


def _scores(name, q, k, key_table, offsets, scale, variant, out, threads):
    index = _pairs.integers(name, "offsets", offsets)
    lead = np.broadcast_shapes(q.shape[:-2], k.shape[:-2])
    shape = (*lead, q.shape[-2], k.shape[-2])
    terms = [np.result_type(q, k), np.result_type(q, key_table)]
    if variant == "relative_key_query":
        terms.append(np.result_type(k, key_table))
    reads = {"q": q, "k": k, "key_table": key_table, "offsets": offsets}
    out, scale, threads = _pairs.result(name, out, threads, shape, *terms, scale=scale, reads=reads)
    if out.size == 0:
        return out
    made, reach = _pairs.contiguous(out), key_table.shape[-2] // 2
    if variant == "relative_key":
        ends = entries.Ends(reach, 1, -reach, reach)
        entries.add(q, k, index, key_table, ends, None, None, scale, made, threads)
    else:
        for at, *products in _pairs.products(lead, (q, k), (q, key_table), (k, key_table)):
            calls = _key_query_calls(*products, _pairs.part(index, at), reach, scale, made[at], threads)
            _machine.run(_key_query, calls, threads)
    return _pairs.finish(out, made)


@_machine.jit
def _key_query(content, by_query, by_key, offsets, reach, scale, out):
    """out (heads, n_query, n_key); content, by_query and by_key (heads, n_key, ..) have more columns than are read."""
    heads, n_query, n_key = out.shape
    for i in range(n_query):
        for h in range(heads):
            for j in range(n_key):
                row = min(max(offsets[i, j], -reach), reach) + reach
                out[h, i, j] = scale * (content[h, i, j] + (by_query[h, i, row] + by_key[h, j, row]))


@_machine.jit
def _sum(weights, offsets, out):
    """Add the weights (heads, n_query, n_key) of each table row to out (heads, n_query, 2 reach + 1), which starts as zeros."""
    heads, n_query, n_key = weights.shape
    reach = out.shape[2] // 2
    for i in range(n_query):
        for h in range(heads):
            for j in range(n_key):
                out[h, i, min(max(offsets[i, j], -reach), reach) + reach] += weights[h, i, j]


def _key_query_calls(content, by_query, by_key, index, reach, scale, out, threads):
    return [
        (c[part, rows], q[part, rows], k[part], at[rows], reach, scale, o[part, rows])
        for at, part, rows, c, q, k, o in _pairs.work(index, threads, content, by_query, by_key, out)
    ]


def _sum_calls(weights, index, sums, threads):
    return [(w[part, rows], at[rows], s[part, rows]) for at, part, rows, w, s in _pairs.work(index, threads, weights, sums)]
