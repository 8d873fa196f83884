"""DeBERTa: disentangled attention, compiled. The definition is `posref.relative.deberta`.

numpy computes the products, as in the specification: content with content, and content with the 2K rows. A compiled kernel adds
the entry of each offset and scales (`posref.fast.entries`), in the order of the specification, so `scores` has the same bits.
The first product is made in the array of the scores. The others need memory for one group of heads, (n_query + n_key, 2K)
numbers per head, and for the entries of the keys for 64 queries.

Heads are done in groups that stay in the cache. numpy's products use the threads of its library, which stay busy for a while
afterwards, so the kernel uses one thread unless `threads` says more. Results are float32 or float64.
"""

import numpy as np

from posref._contract import twin
from posref.fast import _pairs, entries
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
    made = _pairs.contiguous(out)
    by_query, by_key = (None if rows is None else _ends(rows, form) for rows, form in ((k_r, "released"), (q_r, convention)))
    entries.add(q, k, index, k_r, by_query, q_r, by_key, scale, made, threads)
    return _pairs.finish(out, made)


def _ends(rows, form):
    """The Ends for delta(j, i) = K + o (form "paper") or delta(i, j) = K - o."""
    span = rows.shape[-2] // 2
    return entries.Ends(span, 1, -span, span - 1) if form == "paper" else entries.Ends(span, -1, 1 - span, span)
