"""Transformer-XL: four terms in two products and a shift, compiled. The definition is `posref.relative.transformer_xl`.

numpy computes the two products, as in the specification. A compiled kernel reads the second product at j - i + n_query - 1,
where the specification makes a shifted copy, and adds and scales in the same order. So `scores` has the same bits.

Heads are done in groups that stay in the cache. numpy's products use the threads of its library, which stay busy for a while
afterwards, so the kernel uses one thread unless `threads` says more. Results are float32 or float64.
"""

import numpy as np

from posref._contract import twin
from posref.fast import _machine, _pairs
from posref.relative import transformer_xl
from posref.relative.transformer_xl import distances, embeddings, visible

__all__ = ["distances", "embeddings", "scores", "visible"]


@twin(transformer_xl.scores)
def scores(q, k, r, u, v, *, scale, out=None, threads=None):
    """scale ((q_i + u) . k_j + (q_i + v) . r_{i-j}): `(..., h, n_query, n_key)`. Section 3.3.

    Arguments, errors and the bits of the result are those of `posref.relative.transformer_xl.scores`: if `r` has n_key rows,
    entries with j > i + mem are exactly 0 and must be masked. `out` is the array to write to, `threads` how many threads the
    kernel takes, None for one. TypeError unless the result is float32 or float64; ValueError or TypeError for an `out` that
    does not fit or overlaps.

    >>> q, k, r = np.ones((1, 2, 1)), np.array([[[1.0], [2.0]]]), np.array([[[10.0], [20.0]]])
    >>> scores(q, k, r, np.array([[1.0]]), np.array([[0.0]]), scale=1.0)
    array([[[22.,  0.],
            [12., 24.]]])
    """
    name = "fast.transformer_xl.scores"
    n_query, n_key, rows = q.shape[-2], k.shape[-2], r.shape[-2]
    content_query, position_query = q + u[..., None, :], q + v[..., None, :]
    lead = np.broadcast_shapes(q.shape[:-2], k.shape[:-2])
    terms = np.result_type(content_query, k), np.result_type(position_query, r)
    reads = {"q": q, "k": k, "r": r, "u": u, "v": v}
    out, scale, threads = _pairs.result(name, out, threads, (*lead, n_query, n_key), *terms, scale=scale, reads=reads)
    made, kernel = _pairs.contiguous(out), _bidirectional if rows == n_query + n_key - 1 else _causal
    for at, *products in _pairs.products(lead, (content_query, k), (position_query, r)):
        _machine.run(kernel, _calls(*products, scale, made[at], threads), threads)
    return _pairs.finish(out, made)


@_machine.jit
def _bidirectional(content, position, after, scale, out):
    """content and out (heads, n_query, n_key) may be the same; position (heads, n_query, n_query + n_key - 1)."""
    heads, n_query, n_key = out.shape
    for h in range(heads):
        for i in range(n_query):
            row = position[h, i, after + n_query - 1 - i :]
            for j in range(n_key):
                out[h, i, j] = scale * (content[h, i, j] + row[j])


@_machine.jit
def _causal(content, position, after, scale, out):
    """As `_bidirectional`, with n_key columns of position; `after` is the number of queries after these."""
    heads, n_query, n_key = out.shape
    for h in range(heads):
        for i in range(n_query):
            future = after + n_query - 1 - i
            row = position[h, i, future:]
            for j in range(n_key - future):
                out[h, i, j] = scale * (content[h, i, j] + row[j])
            for j in range(future):
                out[h, i, n_key - future + j] = 0


def _calls(content, position, scale, out, threads):
    """The arguments of the kernels for every piece of the work."""
    n_query = out.shape[-2]
    shared = np.empty((n_query, 0))  # there are no offsets that would differ along leading axes
    return [
        (c[part, rows], p[part, rows], n_query - rows.stop, scale, o[part, rows])
        for _, part, rows, c, p, o in _pairs.work(shared, threads, content, position, out)
    ]
