"""Hierarchical decomposition: a trained table of n positions stretched to n^2."""

import mpmath
import numpy as np

from proofs.absolute.hierarchical import definition
from proofs.vectors import *

SOURCES = ("Su, kexue.fm/archives/7947", "bert4keras 0.11.5, layers.py, PositionEmbedding: hierarchical, alpha 0.4")

CONVENTIONS = {
    "axes": "table is (n, d); positions count from 0 and are below n^2",
    "digits": "position = i n + j; alpha belongs to i, 1 - alpha to j",
    "op extend": "all n^2 rows",
    "op encode": "the rows of the positions",
}
REJECTED = (
    ("hierarchical/a0.4-n5-d2/encode", "beyond-n-squared", {"positions": [[0, 25]]}, "range", "Five rows serve 25 positions."),
    ("hierarchical/a0.4-n5-d2/encode", "alpha-1", {"alpha": 1.0}, "range", "Division by 1 - alpha."),
)
REASONS = """
encode any positions_absolute | positions are rows of a table
encode any positions_below_2^20 | a table of 2^20 rows is no small case
encode any f32_positions | positions beyond 2^24 need a table of more than 4096 rows, which is no small case
pair encode any counts_from_one position_plus_one | counting from one, positions are one more
mutant extend: *q.reshape(-2,* | numpy infers the size that is negative, whichever it is
"""


def vectors():
    for alpha, n, d in ((0.4, 3, 4), (0.25, 4, 2), (-0.5, 2, 3)):
        table = painted((n, d), 1)
        yield _case("extend", f"a{alpha}-n{n}-d{d}", alpha, table, np.arange(n * n))
    yield _case("encode", "a0.4-n5-d2", 0.4, painted((5, 2), 2), np.array([[0, 4, 5], [24, 7, 13]]))
    far = np.array([[4095, 4096, 257], [32767, 32768, 66002]])
    yield _case("encode", "a0.4-n257-d1", 0.4, painted((257, 1), 4), far, WRAPPED.removeprefix("int16_positions "))
    yield _case("encode", "a0.25-n5-d2", 0.25, painted((5, 2), 4), np.array([[0, 4, 5], [24, 7, 13]]))


def _case(op, params, alpha, table, positions, more=""):
    n, exact = len(table), np.frompyfunc(mpmath.mpf, 1, 1)
    p, a = exact(table), mpmath.mpf(alpha)
    i, j = positions // n, positions % n
    sizes = [a / (1 - a) * p[i], p[j], a * a / (1 - a) * p[0], a * p[0]]
    # two roundings of alpha, those of 1 - alpha, two products, two sums, a quotient
    roundings = int(mpmath.ceil(8 + 2 * abs(a / (1 - a))))
    tensors = {"table": table, **({"positions": positions} if op == "encode" else {})}
    cond = terms(roundings, *(np.broadcast_to(x, p[i].shape) for x in sizes))
    kills = f"alpha_swapped digits_swapped no_base_vectors counts_from_one wrapped half {more}"
    return case(f"hierarchical/{params}/{op}", op, {"alpha": alpha}, tensors, definition(p[0], p[i], p[j], a), cond, kills)
