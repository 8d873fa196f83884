"""Shaw et al.: what an implementation can be asked for, and how it goes wrong."""

# Over budget: keys, values and gradients, with and without clipping

import numpy as np

from posref import attention
from posref import offsets as relative
from posref.ops import Mistake, inside, missing, result, using, with_words
from posref.ops.common import OVERWRITTEN, entry, last_wins, summed_as
from posref.ops.probe import painted
from posref.relative import shaw


def scores(q, k, key_table, query_positions, key_positions, *, scale, variant="relative_key"):
    return shaw.scores(q, k, key_table, _offsets(query_positions, key_positions), scale=scale, variant=variant)


def scores_gradient(score_gradient, q, k, key_table, query_positions, key_positions, *, scale, variant="relative_key", of):
    offsets, inputs = _offsets(query_positions, key_positions), {"q": q, "k": k, "key_table": key_table}
    found = entry(shaw.scores_gradient(score_gradient, **inputs, offsets=offsets, scale=scale, variant=variant), of)
    return summed_as(found, inputs[of])


def attend(q, k, v, key_table, query_positions, key_positions, value_table=None, *, scale, variant="relative_key", mask):
    offsets = _offsets(query_positions, key_positions)
    return shaw.attend(q, k, v, key_table, value_table, offsets, scale=scale, variant=variant, mask=mask)


def _offsets(query_positions, key_positions):
    offsets = relative.offsets(query_positions, key_positions)
    return offsets if offsets.ndim == 2 else offsets[:, None]


ARRAYS = {
    "key_table": lambda s: painted((9, s.head_dim), 6),
    "value_table": lambda s: painted((9, s.head_dim), 8),
    "score_gradient": lambda s: painted((s.batch, s.heads, s.n_query, s.n_key), 9),
}


def _key_part_left_out(f, a):
    return f(**a | {"variant": "relative_key"}) if a.variant == "relative_key_query" and a.of != "q" else missing()


def _scores(formula):
    """Other scores: formula(right, q, k, table, offsets, scale, variant)."""

    def change(right):
        def scores(q, k, table, offsets, *, scale, variant):
            return formula(right, q, k, table, offsets, scale, variant)

        return scores

    return inside(shaw, "scores", change)


def _position(right, x, table, offsets, scale):
    """scale x_i . a_ij alone."""
    no_keys = 0 * x[..., :1, :] + np.zeros((offsets.shape[-1], 1), int)
    return right(x, no_keys, table, offsets, scale=scale, variant="relative_key")


def _swapped(x):
    return np.swapaxes(x, -1, -2)


def _position_unscaled(right, q, k, table, offsets, scale, variant):
    return right(q, k, table, offsets, scale=scale, variant=variant) + _position(right, q, table, offsets, 1 - scale)


def _position_of_the_key(right, q, k, table, offsets, scale, variant):
    times = 2 if variant == "relative_key_query" else 1
    by_key = _swapped(_position(right, k, table, _swapped(offsets), scale))
    return attention.scores(q, k, scale=scale) + times * by_key


def _key_term_transposed(right, q, k, table, offsets, scale, variant):
    if variant != "relative_key_query":
        missing()
    by_key = _swapped(_position(right, k, table, -_swapped(offsets), scale))
    return attention.scores(q, k, scale=scale) + _position(right, q, table, offsets, scale) + by_key


def _clip(low, high):
    return inside(relative, "clip", lambda right: lambda offsets, first, last: right(offsets, first + low, last + high))


def _first_head(f, a):
    if a.key_table.ndim != 3:
        missing()
    return f(**a | {name: a[name][0] for name in ("key_table", "value_table") if a.get(name) is not None})


def _values(table):
    """Another table for the values, where they have one."""
    return using(value_table=lambda a: table(a) if a.value_table is not None else missing())


OTHER = {"relative_key": "relative_key_query", "relative_key_query": "relative_key"}

MISTAKES = with_words(
    __name__,
    rows_overwritten=Mistake(inside(relative, "scatter_rows", lambda right: last_wins), *OVERWRITTEN, only="scores_gradient"),
    gradient_unscaled=result(lambda y, a: y / a.scale),
    content_gradient_alone=using(key_table=lambda a: 0 * a.key_table if a.get("of") == "q" else missing()),
    key_part_left_out=_key_part_left_out,
    transposed="sign",
    clip_one_early=_clip(0, -1),
    clip_low_late=_clip(1, 0),
    wrapped=inside(relative, "clip", lambda right: lambda offsets, low, high: offsets % (high - low + 1) + low),
    no_position=_scores(lambda right, q, k, table, offsets, scale, variant: attention.scores(q, k, scale=scale)),
    content_scaled_alone=_scores(_position_unscaled),
    position_of_the_key=_scores(_position_of_the_key),
    other_variant=using(variant=lambda a: OTHER[a.variant]),
    key_term_transposed=_scores(_key_term_transposed),
    table_of_the_first_head=_first_head,
    no_value_term=_values(lambda a: None),
    value_transposed=_values(lambda a: a.value_table[..., ::-1, :]),
    value_by_key_table=_values(lambda a: a.key_table),
)

SCORES = {"shaw": ("one", "offset", "one", "offset"), "shaw clipped": ("one", "clipped", "one", "clipped")}


def _head(t):
    q, k, v = t.projected(t.x)
    keys, values = t.parameter(9, t.dim), t.parameter(9, t.dim)
    scores = shaw.scores(q, k, keys, t.offsets, scale=t.scale)
    return scores, shaw.attend(q, k, v, keys, values, t.offsets, scale=t.scale)
