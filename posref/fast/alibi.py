"""ALiBi: attention with linear biases, compiled. The definition is `posref.relative.alibi`.

Attention needs no array of the bias: `fast.attention` takes the `rule`. For positions without gaps, `posref.offsets.toeplitz`
of slopes (h, 1) times the n_query + n_key - 1 offsets makes a view in microseconds. `bias` writes the whole matrix for any
positions, bit for bit as the specification does: one difference and one product, each rounded once.

Results are float32 or float64. Integer positions give float64 as in the specification, for all dtypes of slopes; with
dtype=float32, or an `out` of float32, each number is rounded once more, when it is stored.
"""

import math
from typing import Literal

import numpy as np

from posref._contract import Array, Numbers, contract, finite, twin
from posref.fast import _machine, _pairs
from posref.relative import alibi
from posref.relative.alibi import slopes

__all__ = ["bias", "rule", "slopes"]


@twin(alibi.bias)
def bias(query_positions, key_positions, slopes, *, form, dtype=None, out=None, threads=None):
    """m (j - i), -m |j - i| or m j, to be added to scaled scores: `(..., h, n_query, n_key)`, with n_query 1 for "key".

    Arguments and errors are those of `posref.relative.alibi.bias`. `dtype` is float32 or float64; without it that of `out`,
    else by promotion as in the specification. `out` is the array to write to, `threads` a number or None to choose by size.
    TypeError for other dtypes, ValueError or TypeError for an `out` that does not fit or overlaps.

    >>> bias(np.array([1, 2]), np.array([0, 1, 2]), slopes(1) * 256, form="signed", dtype=np.float32)
    array([[[-1.,  0.,  1.],
            [-2., -1.,  0.]]], dtype=float32)
    """
    name = "fast.alibi.bias"
    query, key = _pairs.positions(name, query_positions, key_positions)
    exact = np.result_type(slopes, key_positions if form == "key" else key)  # the specification's
    _machine.floating(name, "the bias", exact)
    reads = {"query_positions": query_positions, "key_positions": key_positions, "slopes": slopes}
    lead = key_positions.shape[:-1] if form == "key" else key.shape[:-1]
    shape = (*lead, len(slopes), 1 if form == "key" else query.shape[-1], key.shape[-1])
    out = _machine.output(name, "out", out, shape, _dtype(name, exact, dtype, out), reads=reads)
    if form == "key":
        return _pairs.finish(out, alibi.bias(query_positions[..., :1], key_positions, slopes, form=form))
    threads = _machine.thread_count(name, threads, out.nbytes)
    made, slopes = _pairs.contiguous(out), slopes.astype(exact)
    if out.size > 0:
        kernel = {"signed": _signed, "absolute": _absolute}[form]
        calls = [
            (slopes[heads], query[at][rows], key[at], made[at][heads, rows])
            for at in np.ndindex(lead)
            for heads, rows in _pairs.cut(math.prod(lead), *shape[-3:-1], threads)
        ]
        _machine.run(kernel, calls, threads)
    return _pairs.finish(out, made)


@contract(slopes="one entry per head")
def rule(slopes: Numbers[Array, "h", finite], *, form: Literal["signed", "absolute"]):
    """m (j - i) or -m |j - i| as the `bias_rule` of `fast.attention.attend_by_offset`.

    >>> from posref.fast import attention
    >>> ones, v = np.ones((1, 3, 1)), np.array([[[0.0], [2.0], [4.0]]])
    >>> by_rule = attention.attend_by_offset(ones, ones, v, scale=1.0, bias_rule=rule(slopes(1), form="absolute"))
    >>> float(by_rule[0, 1, 0])
    2.0
    """
    return np.zeros((len(slopes), 1), slopes.dtype), slopes, slopes if form == "signed" else -slopes


@_machine.jit
def _signed(slopes, query, key, out):
    """slopes (heads,); query (n_query,); key (n_key,); out (heads, n_query, n_key)."""
    heads, n_query, n_key = out.shape
    for h in range(heads):
        for i in range(n_query):
            for j in range(n_key):
                out[h, i, j] = slopes[h] * (key[j] - query[i])


@_machine.jit
def _absolute(slopes, query, key, out):
    """slopes (heads,); query (n_query,); key (n_key,); out (heads, n_query, n_key)."""
    heads, n_query, n_key = out.shape
    for h in range(heads):
        for i in range(n_query):
            for j in range(n_key):
                out[h, i, j] = slopes[h] * -abs(key[j] - query[i])


def _dtype(function, exact, dtype, out):
    if dtype is None:
        dtype = out.dtype if isinstance(out, np.ndarray) else exact
    _machine.floating(function, "the bias", np.dtype(dtype))
    return np.dtype(dtype)
