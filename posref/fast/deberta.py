"""DeBERTa: disentangled attention, compiled. The definition is `posref.relative.deberta`.

The products are the specification's own, of content with content and with the 2K rows; a compiled kernel adds the entry of each
offset and scales, in the specification's order. So `scores` is bit for bit that of the specification, in one array of
(n_query, n_key) a head.

Heads are done in groups that stay in the cache: numpy's products with the threads of its library, which keep a processor
busy for a while after, and the kernel, therefore on one thread unless `threads` says more. Results are float32 or float64.
"""

import numpy as np

from posref._contract import twin
from posref.fast import _machine, _pairs
from posref.relative import deberta
from posref.relative.deberta import log_bucket

__all__ = ["log_bucket", "scores"]


@twin(deberta.scores)
def scores(q, k, q_r, k_r, offsets, *, scale, convention, out=None, threads=None):
    """Content, content-to-position and position-to-content: `(..., h, n_query, n_key)`. He et al. Eq. (4).

    Arguments and errors are those of `posref.relative.deberta.scores`, and bit for bit its result. `out` is the array to write
    to, `threads` how many threads the kernel takes, None for one. TypeError unless the result is float32 or float64;
    ValueError or TypeError for an `out` that does not fit or overlaps.

    >>> q = k = np.ones((1, 2, 1))
    >>> q_r, k_r = np.array([[[0.0], [10.0], [20.0], [30.0]]]), np.array([[[0.0], [1.0], [2.0], [3.0]]])
    >>> scores(q, k, q_r, k_r, np.array([[0, 1], [-1, 0]]), scale=1, convention="paper")
    array([[[23., 32.],
            [14., 23.]]])
    """
    name = "fast.deberta.scores"
    index = _pairs.integers(name, "offsets", offsets)
    reads, terms, leads = {"q": q, "k": k, "offsets": offsets}, [np.result_type(q, k)], [q.shape[:-2], k.shape[:-2]]
    for argument, rows, content in (("k_r", k_r, q), ("q_r", q_r, k)):
        if rows is not None:
            reads[argument] = rows
            terms.append(np.result_type(content, rows))
            leads += [rows.shape[:-2], offsets.shape[:-2]]
    lead = np.broadcast_shapes(*leads)
    shape = (*lead, q.shape[-2], k.shape[-2])
    out, scale, threads = _pairs.result(name, out, threads, shape, *terms, scale=scale, reads=reads)
    if out.size == 0:
        return out
    made, rows = _pairs.contiguous(out), sum(x.shape[-2] for x in (k, k_r, q_r) if x is not None)
    for at in _pairs.groups(lead, rows * q.shape[-2] * out.itemsize):
        some_q, some_k, target = _pairs.part(q, at), _pairs.part(k, at), made[at]
        content = _pairs.product(some_q, some_k, target)
        by_query, by_key = _by_row(some_q, k_r, at, target), _by_row(some_k, q_r, at, target)
        if by_query is None and by_key is None:
            np.multiply(scale, content, out=target)
        else:
            calls = _calls(content, by_query, by_key, _pairs.part(index, at), convention, scale, target, threads)
            _machine.run(lambda kernel, *arguments: kernel(*arguments), list(calls), threads)
    return _pairs.finish(out, made)


@_machine.jit
def _both(content, by_query, by_key, offsets, low, sign, scale, out):
    """content, out (heads, n_query, n_key), may be one; by_query (heads, n_query, 2K), by_key (heads, n_key, 2K').

    Row K - o of by_query for the offset o, clipped to 1 - K .. K; row K' + sign o of by_key, clipped to low .. low + 2K' - 1.
    """
    heads, n_query, n_key = out.shape
    span, span_key = by_query.shape[2] // 2, by_key.shape[2] // 2
    high = low + 2 * span_key - 1
    for i in range(n_query):
        for h in range(heads):
            for j in range(n_key):
                offset = offsets[i, j]
                sum_by_query = content[h, i, j] + by_query[h, i, span - min(max(offset, 1 - span), span)]
                out[h, i, j] = scale * (sum_by_query + by_key[h, j, span_key + sign * min(max(offset, low), high)])


@_machine.jit
def _by_query(content, by_query, offsets, scale, out):
    """`_both` without by_key."""
    heads, n_query, n_key = out.shape
    span = by_query.shape[2] // 2
    for i in range(n_query):
        for h in range(heads):
            for j in range(n_key):
                row = span - min(max(offsets[i, j], 1 - span), span)
                out[h, i, j] = scale * (content[h, i, j] + by_query[h, i, row])


@_machine.jit
def _by_key(content, by_key, offsets, low, sign, scale, out):
    """`_both` without by_query."""
    heads, n_query, n_key = out.shape
    span = by_key.shape[2] // 2
    high = low + 2 * span - 1
    for i in range(n_query):
        for h in range(heads):
            for j in range(n_key):
                row = span + sign * min(max(offsets[i, j], low), high)
                out[h, i, j] = scale * (content[h, i, j] + by_key[h, j, row])


def _by_row(content, rows, at, target):
    """The products of queries or keys with the rows of the other, for the heads of `target`; None without rows."""
    if rows is None:
        return None
    return _pairs.spread(content @ np.swapaxes(_pairs.part(rows, at), -1, -2), target.shape[:-2])


def _calls(content, by_query, by_key, index, convention, scale, out, threads):
    """Kernels and arguments for every piece: delta(j, i) is K + o, delta(i, j) is K - o, with its own ends."""
    stacked = [array for array in (content, by_query, by_key, out) if array is not None]
    for at, part, rows, *stack in _pairs.work(index, threads, *stacked):
        c, o = stack[0][part, rows], stack[-1][part, rows]
        second = ()
        if by_key is not None:
            span = by_key.shape[-1] // 2
            second = (stack[-2][part], at[rows], *((-span, 1) if convention == "paper" else (1 - span, -1)))
        if by_query is None:
            yield _by_key, c, *second, scale, o
        elif by_key is None:
            yield _by_query, c, stack[1][part, rows], at[rows], scale, o
        else:
            yield _both, c, stack[1][part, rows], *second, scale, o
