"""Hierarchical positions: the functions to check, and the mistakes that implementations make."""

import numpy as np

from posref.absolute import hierarchical
from posref.ops import Mistake, using
from posref.ops.probe import painted

extend = hierarchical.extend
encode = hierarchical.encode


ARRAYS = {
    "table": lambda s: painted((46, s.head_dim), 2),
    "positions": lambda s: (607 * np.arange(s.batch * s.n_key) % 2116).reshape(s.batch, s.n_key),
}


def _rows(formula):
    """Another row for each position m: formula(u, m, n, alpha, table), with n trained rows and base vectors u."""

    def wrong(f, a):
        n = a.table.shape[0]
        m = a.get("positions", np.arange(n * n))
        u = (a.table - a.alpha * a.table[:1]) / (1 - a.alpha)
        return formula(u, m, n, a.alpha, a.table)

    return wrong


def _mixed(rows, slow, fast, alpha):
    return alpha * rows[slow] + (1 - alpha) * rows[fast]


def _between(table, places):
    below = np.floor(places).astype(int)
    share = (places - below)[..., None]
    return (1 - share) * table[below] + share * table[np.minimum(below + 1, len(table) - 1)]


MISTAKES = {
    "alpha_swapped": Mistake(using(alpha=lambda a: 1 - a.alpha)).words("""
        1 - alpha for alpha: the digits exchange their weights
        Right for the table's own rows, wrong beyond them.
        Give alpha to the slow digit, position // n, and 1 - alpha to the fast one."""),
    "digits_swapped": Mistake(_rows(lambda u, m, n, alpha, table: _mixed(u, m % n, m // n, alpha))).words("""
        position % n is the slow digit: i and j are exchanged
        The first n rows are not the table.
        The slow digit is position // n, the fast one position % n."""),
    "no_base_vectors": Mistake(_rows(lambda u, m, n, alpha, table: _mixed(table, m // n, m % n, alpha))).words("""
        the trained rows p are mixed in place of the base vectors u
        The first n rows are not the table.
        Mix the base vectors: u = (p - alpha p_0) / (1 - alpha)."""),
    "counts_from_one": Mistake(
        _rows(lambda u, m, n, alpha, table: _mixed(u, np.maximum(m - 1, 0) // n, np.maximum(m - 1, 0) % n, alpha))
    ).words("""
        positions are counted from 1: the paper's 1-based digits are used with 0-based positions
        Rows are off by one.
        Count from 0: the digits are position // n and position % n."""),
    "wrapped": Mistake(_rows(lambda u, m, n, alpha, table: table[m % n])).words("""
        position % n alone: the table is repeated
        Positions beyond n repeat.
        Use both digits, position // n and position % n."""),
    "half": Mistake(using(alpha=0.5)).words("""
        alpha = 1/2: both digits have the same weight
        (i, j) and (j, i) collide.
        Take alpha in (0, 1) other than 1/2; bert4keras has 0.4."""),
}

PRESETS = {"bert4keras": ("extend", hierarchical.PRESETS["bert4keras"])}

FURTHER = {
    "interpolated": Mistake(_rows(lambda u, m, n, alpha, table: _between(table, m * (n - 1) / (n * n - 1)))).words("""
        the table is stretched: rows between the trained ones are interpolated
        The first n rows are not the table.
        Mix two base vectors: that of position // n and that of position % n."""),
    "base_of_the_last_row": Mistake(
        _rows(lambda u, m, n, alpha, table: _mixed((table - alpha * table[-1:]) / (1 - alpha), m // n, m % n, alpha))
    ).words("""
        the base vectors are (p - alpha p_last) / (1 - alpha): the last row is subtracted for the first
        The first n rows are not the table.
        Subtract row 0: u = (p - alpha p_0) / (1 - alpha)."""),
}

SCORES = {"added": ("one", "key", "query", "any")}


def _head(t):
    return t.added(hierarchical.encode(t.positions, t.parameter(t.trained, t.dim), alpha=0.4))
