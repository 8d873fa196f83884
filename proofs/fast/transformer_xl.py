"""Transformer-XL, compiled: the kernels read the entries that the specification shifts into place."""

import numpy as np
import sympy as sp

from posref import offsets
from posref.fast import transformer_xl as fast
from posref.relative import transformer_xl
from proofs.kit import *

N, M, H = size("n"), size("m"), size("h")
MEMORY = size("memory", least=0).e
SCALE = symbol("scale")


def shifted(position, n_query, n_key):
    """position[i, j - i + n_query - 1] where j <= i + memory, 0 beyond. Transformer-XL, appendix B."""

    def at(h, i, j):
        beyond = j - i - (n_key - n_query)
        if not (nonnegative(-beyond) or nonnegative(beyond - 1)):
            raise ValueError(f"is key {j} visible to query {i}?")
        return position.at(h, i, j - i + n_query - 1) if nonnegative(-beyond) else 0

    return SizedArray(position.shape, at)


def masked(content, n_query, n_key):
    """The content where j <= i + memory, 0 beyond."""
    return SizedArray(content.shape, lambda h, i, j: content.at(h, i, j) if nonnegative(n_key - n_query + i - j) else 0)


def sources(content):
    """An output in its own memory, and an output in the memory of the content."""
    both = Output(content.shape, contents=content)
    return (content, Output(content.shape)), (both, both)


@theorem(of=[fast._bidirectional], sizes="all heads, n, m", as_written="kernel")
def bidirectional_kernel_is_the_skew():
    """Cell (h, i, j) is scale (content + skew(position)), as in the specification, and is written once, in place too."""
    content, position = sized("c", H, N, M), sized("p", H, N, N + M - 1)
    with assuming(sp.Ge(N + M, 2)):
        for source, out in sources(content):
            expected = SCALE.e * (content + offsets.skew(position))
            prove_kernel(fast._bidirectional, [source, position, sp.Integer(0), SCALE, out], (out, expected))


@bidirectional_kernel_is_the_skew.control
def rows_are_not_shifted():
    """Row i reads the first columns."""
    content, position, out = symbols("c", 1, 2, 2), symbols("p", 1, 2, 3), room("out", 1, 2, 2)
    fast._bidirectional.py_func(content, position, 0, 3, out)
    prove_equal(out, 3 * (content + position[..., :2]))


@theorem(of=[fast._causal], sizes="all heads, n, memories", as_written="kernel")
def causal_kernel_is_the_shift():
    """Cell (h, i, j) is scale (content + shift(position)) up to j = i + memory and exactly 0 beyond; each is written once."""
    n_key = N + MEMORY
    content, position = sized("c", H, N, n_key), sized("p", H, N, n_key)
    for source, out in sources(content):
        expected = SCALE.e * (masked(content, N, n_key) + shifted(position, N, n_key))
        prove_kernel(fast._causal, [source, position, sp.Integer(0), SCALE, out], (out, expected))


@causal_kernel_is_the_shift.control
def future_keys_keep_their_content():
    """Beyond the last visible key the score is the content alone."""
    content, position, out = symbols("c", 1, 2, 2), symbols("p", 1, 2, 2), room("out", 1, 2, 2)
    fast._causal.py_func(content, position, 0, 3, out)
    prove_equal(out, 3 * (content + transformer_xl.shift(position)))


@theorem(
    of=[fast._calls, fast._bidirectional, fast._causal],
    sizes="batch 2, h = 1, 3; n = 1, 2, 5; m = 5, 6; d = 2; 1 to 3 threads; every vector",
    equivalent={"_calls: shared = np.empty((n_query, 0))  ->  shared = np.empty((n_query, 1))": "columns are not looked at"},
)
def pieces_are_the_scores():
    """With the products of the specification the pieces write its scores, in both forms."""
    for heads, n, m in ((1, 1, 5), (3, 2, 5), (1, 5, 6), (3, 5, 5)):
        q, k, u, v = symbols("q", 2, heads, n, 2), symbols("k", 2, heads, m, 2), symbols("u", heads, 2), symbols("v", heads, 2)
        for rows, kernel in ((m, fast._causal), (n + m - 1, fast._bidirectional)):
            r = symbols("r", heads, rows, 2)
            content, position = (q + u[:, None]) @ np.swapaxes(k, -1, -2), (q + v[:, None]) @ np.swapaxes(r, -1, -2)
            expected = transformer_xl.scores(q, k, r, u, v, scale=SCALE)
            for threads in (1, 2, 3):
                out, count = np.full(content.shape, None, dtype=object), 0
                for piece in fast._calls(content, position, SCALE, out, threads):
                    kernel.py_func(*piece)
                    count += piece[-1].size
                prove_that(count == out.size, "each cell once")
                prove_equal(out, expected)


@pieces_are_the_scores.control
def every_piece_is_the_last():
    """A piece need not know how many queries come after it."""
    content, position = symbols("c", 1, 3, 3), symbols("p", 1, 3, 5)
    whole, out = np.full((1, 3, 3), None, dtype=object), np.full((1, 3, 3), None, dtype=object)
    fast._bidirectional.py_func(content, position, 0, 3, whole)
    for c, p, _, scale, o in fast._calls(content, position, 3, out, 2):
        fast._bidirectional.py_func(c, p, 0, scale, o)
    prove_equal(out, whole)
