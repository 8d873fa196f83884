"""CoPE: the functions to check, and the mistakes that implementations make."""

import numpy as np

from posref import attention
from posref.ops import Mistake, inside, using
from posref.ops.probe import painted
from posref.relative import cope

positions = cope.positions


def scores(q, k, table, mask, *, scale, convention):
    """The scores; masked entries have no meaning and are 0 here."""
    return mask * cope.scores(q, k, table, mask, scale=scale, convention=convention)


ARRAYS = {
    "gates": lambda s: abs(painted((s.batch, s.n_query, s.n_key), 1)) / 2,
    "table": lambda s: painted((4, s.head_dim), 4),
    "mask": lambda s: np.tri(s.n_query, s.n_key, s.n_key - s.n_query, dtype=bool),
}


MEANT = {"scores": lambda a: a.mask}


def _positions(change):
    return Mistake(inside(cope, "positions", lambda right: lambda gates, *, rows: change(right, gates, rows)))


def _all_counted(right):
    def scores(q, k, table, mask, *, scale, convention):
        return right(q, k, table, np.ones_like(mask), scale=scale, convention=convention)

    return scores


def _plain_gates(right):
    def scores(q, k, table, mask, *, scale, convention):
        p = cope.positions(mask / (1 + np.exp(-attention.scores(q, k, scale=1))), rows=table.shape[-2])
        z = cope.interpolate(q @ np.swapaxes(table, -1, -2), p)
        return attention.scores(q, k, scale=scale) + (scale * z if convention == "official" else z)

    return scores


MISTAKES = {
    "other_convention": Mistake(using(convention=lambda a: {"official": "nodiv", "nodiv": "official"}[a.convention])).words("""
        z is scaled where it should not be, or the reverse
        Positions weigh sqrt(d) times too little, or too much.
        Say which: the paper's code scales z, unless --cope-nodiv; x-transformers does not."""),
    "own_gate_left_out": _positions(lambda right, gates, rows: np.minimum(right(gates, rows=10**6) - gates, rows - 1)).words("""
        the sum runs over l > j: the key's own gate is not counted
        The own token is at 0, and all others one gate too near.
        Count j as well."""),
    "counted_from_the_start": _positions(lambda right, gates, rows: np.minimum(np.cumsum(gates, axis=-1), rows - 1)).words("""
        the sum runs over l <= j: gates are summed from the first key on
        Absolute positions, and they fall short at the start.
        Sum from the last key backwards."""),
    "not_clipped": _positions(lambda right, gates, rows: right(gates, rows=10**6)).words("""
        positions beyond the last row of the table are not clipped
        Far keys have no position at all.
        At most P - 1."""),
    "nearest_row": Mistake(inside(cope, "interpolate", lambda right: lambda by_row, p: right(by_row, np.rint(p)))).words("""
        positions are rounded to the nearest row of the table instead of interpolated
        Nothing can be learned through the gates.
        Interpolate between the two rows."""),
    "future_counted": Mistake(inside(cope, "scores", _all_counted)).words("""
        the gates of masked keys are counted
        The positions of early queries depend on what comes.
        Mask before the sum."""),
    "gates_not_scaled": Mistake(inside(cope, "scores", _plain_gates)).words("""
        sigmoid(q . k): the gate takes the scores without the scale
        Gates are nearly open or closed.
        The gate takes the scaled score."""),
}

CAUSAL = True
SCORES = "positions come from the scores; where all gates are open, it is shaw clipped, causal"


def _head(t):
    q, k, v = t.projected(t.x)
    mask = np.tri(len(q), dtype=bool)
    return t.scored(cope.scores(q, k, t.parameter(16, t.dim), mask, scale=t.scale, convention="nodiv"), v)
