"""Transformer-XL: four terms in two products and a shift, compiled. The definition is `posref.relative.transformer_xl`.

The products are the specification's own; a compiled kernel reads the second one at j - i + n_query - 1, where the specification
copies it into place, adds and scales in the same order. So `scores` is bit for bit that of the specification.

Heads are done in groups that stay in the cache: numpy's products with the threads of its library, which keep a processor
busy for a while after, and the kernel, therefore on one thread unless `threads` says more. Results are float32 or float64.
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

    Arguments and errors are those of `posref.relative.transformer_xl.scores`, and bit for bit its result: with n_key rows of
    `r` entries with j > i + mem are exactly 0, to be masked. `out` is the array to write to, `threads` how many threads the
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
    """content, out (heads, n_query, n_key), may be one; position (heads, n_query, n_query + n_key - 1); after: as `_causal`."""
    heads, n_query, n_key = out.shape
    for h in range(heads):
        for i in range(n_query):
            row = position[h, i, after + n_query - 1 - i :]
            for j in range(n_key):
                out[h, i, j] = scale * (content[h, i, j] + row[j])


@_machine.jit
def _causal(content, position, after, scale, out):
    """As `_bidirectional`, with n_key columns of position; `after` is how many queries come after these."""
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
    """Arguments of the kernels for every piece."""
    n_query = out.shape[-2]
    shared = np.empty((n_query, 0))  # there are no offsets that would differ along leading axes
    return [
        (c[part, rows], p[part, rows], n_query - rows.stop, scale, o[part, rows])
        for _, part, rows, c, p, o in _pairs.work(shared, threads, content, position, out)
    ]
