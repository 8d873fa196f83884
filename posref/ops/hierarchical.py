"""Hierarchical positions: what an implementation can be asked for, and how it goes wrong."""

import numpy as np

from posref.absolute import hierarchical
from posref.ops import using, with_words
from posref.ops.probe import painted

extend = hierarchical.extend
encode = hierarchical.encode


ARRAYS = {
    "table": lambda s: painted((46, s.head_dim), 2),
    "positions": lambda s: (607 * np.arange(s.batch * s.n_key) % 2116).reshape(s.batch, s.n_key),
}


def _rows(formula):
    """Another row for every position m: formula(u, m, n, alpha, table) with n trained rows and base vectors u."""

    def wrong(f, a):
        n = a.table.shape[0]
        m = a.get("positions", np.arange(n * n))
        u = (a.table - a.alpha * a.table[:1]) / (1 - a.alpha)
        return formula(u, m, n, a.alpha, a.table)

    return wrong


def _mixed(rows, slow, fast, alpha):
    return alpha * rows[slow] + (1 - alpha) * rows[fast]


MISTAKES = with_words(
    __name__,
    alpha_swapped=using(alpha=lambda a: 1 - a.alpha),
    digits_swapped=_rows(lambda u, m, n, alpha, table: _mixed(u, m % n, m // n, alpha)),
    no_base_vectors=_rows(lambda u, m, n, alpha, table: _mixed(table, m // n, m % n, alpha)),
    counts_from_one=_rows(lambda u, m, n, alpha, table: _mixed(u, np.maximum(m - 1, 0) // n, np.maximum(m - 1, 0) % n, alpha)),
    wrapped=_rows(lambda u, m, n, alpha, table: table[m % n]),
    half=using(alpha=0.5),
)

PRESETS = {"bert4keras": ("extend", hierarchical.PRESETS["bert4keras"])}

SCORES = {"added": ("one", "key", "query", "any")}


def _head(t):
    return t.added(hierarchical.encode(t.positions, t.parameter(t.trained, t.dim), alpha=0.4))
