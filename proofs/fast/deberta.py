"""DeBERTa, compiled: the kernels add the entries at the specification's indices."""

from functools import partial

import numpy as np

from posref.fast import deberta as fast
from posref.relative import deberta
from proofs.kit import (
    Output,
    all_paths,
    integers,
    prove_equal,
    prove_kernel,
    prove_that,
    room,
    size,
    sized,
    symbol,
    symbols,
    theorem,
)

N, M, H, K, K2 = (size(name) for name in ("n", "m", "h", "K", "L"))
SCALE = symbol("scale")

# (batch, 1, n, m): offsets of its own for each row of the batch, beyond K = 2 and 3 on both sides
OWN = np.array([[[[-3, -2, 1], [0, 2, 3]]], [[[-4, 4, 0], [5, -1, -9]]]])


@theorem(
    of=[fast._calls, fast._both, fast._by_query, fast._by_key],
    sizes="batch 2, h = 3, n = 2, m = 3, d = 2, K = 2 and 3; none, one, two terms; every vector",
)
def pieces_are_the_scores():
    """With the products of the specification the pieces write its scores: both conventions, each term alone, shared offsets and
    those of a batch."""
    q, k, q_r, k_r = symbols("q", 2, 3, 2, 2), symbols("k", 2, 3, 3, 2), symbols("a", 3, 6, 2), symbols("b", 3, 4, 2)
    content = q @ np.swapaxes(k, -1, -2)
    by_query, by_key = q @ np.swapaxes(k_r, -1, -2), k @ np.swapaxes(q_r, -1, -2)
    for convention in deberta.CONVENTIONS:
        for first, second in ((by_query, by_key), (by_query, None), (None, by_key)):
            rows = q_r if second is not None else None, k_r if first is not None else None
            for at in (OWN[0, 0], OWN):
                expected = deberta.scores(q, k, *rows, at, scale=SCALE, convention=convention)
                for threads in (1, 2):
                    out, count = np.full(content.shape, None, dtype=object), 0
                    for kernel, *piece in fast._calls(content, first, second, at, convention, SCALE, out, threads):
                        kernel.py_func(*piece)
                        count += piece[-1].size
                    prove_that(count == out.size, "each cell once")
                    prove_equal(out, expected)


@pieces_are_the_scores.claim("The released code reads delta(i, j) in position-to-content, the paper delta(j, i).")
def conventions_are_one():
    """The released code computes the paper's scores."""
    content, by_key, out = symbols("c", 1, 2, 3), symbols("k", 1, 3, 6), np.full((1, 2, 3), None, dtype=object)
    expected = np.full((1, 2, 3), None, dtype=object)
    for convention, made in (("released", out), ("paper", expected)):
        for kernel, *piece in fast._calls(content, None, by_key, OWN[0, 0], convention, 3, made, 1):
            kernel.py_func(*piece)
    prove_equal(out, expected)


@theorem(of=[fast._both, fast._by_query, fast._by_key], sizes="all heads, n, m, K, other K; all offsets")
def kernels_add_and_scale():
    """Cell (h, i, j) is scale times the sum of the content, the query's entry at delta(i, j) and the key's at delta(j, i) or
    delta(i, j), with the specification's index; each cell is written once, in place too."""
    content, by_query, by_key = sized("c", H, N, M), sized("q", H, N, 2 * K), sized("k", H, M, 2 * K2)
    at = integers("o", N, M)

    def by_row():
        return np.take_along_axis(by_query, deberta.position_index(at, span=K)[None], axis=-1)

    def by_column(sign):
        rows = np.swapaxes(deberta.position_index(-sign * at, span=K2)[None], -1, -2)
        return np.swapaxes(np.take_along_axis(by_key, rows, axis=-1), -1, -2)

    def first(source, out):
        prove_kernel(fast._by_query, [source, by_query, at, SCALE, out], (out, SCALE.e * (content + by_row())))

    def second(source, out, sign=1, low=-K2):
        expected = SCALE.e * (content + by_column(sign))
        prove_kernel(fast._by_key, [source, by_key, at, low, sign, SCALE, out], (out, expected))

    def both(source, out, sign=1, low=-K2):
        expected = SCALE.e * (content + by_row() + by_column(sign))
        prove_kernel(fast._both, [source, by_query, by_key, at, low, sign, SCALE, out], (out, expected))

    released = {"sign": -1, "low": 1 - K2}
    for prove in (first, second, both, partial(second, **released), partial(both, **released)):
        for _ in all_paths(lambda prove=prove: prove(content, Output((H, N, M)))):
            pass
        for _ in all_paths(lambda prove=prove: prove(*[Output((H, N, M), contents=content)] * 2)):
            pass


@kernels_add_and_scale.control
def keys_read_their_own_row():
    """Position-to-content is read in the query's row."""
    by_key, out = symbols("k", 1, 2, 4), room("out", 1, 2, 2)
    at = np.array([[0, 1], [-1, 0]])
    fast._by_key.py_func(np.zeros((1, 2, 2), dtype=object), by_key, at, -2, 1, 3, out)
    prove_equal(out, 3 * np.take_along_axis(by_key, 2 + at[None], axis=-1))
