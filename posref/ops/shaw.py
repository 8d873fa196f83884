"""Shaw et al.: the functions to check, and the mistakes that implementations make."""

# Over budget: keys, values and gradients, with and without clipping

import numpy as np

from posref import attention
from posref import offsets as relative
from posref.ops import Mistake, inside, missing, result, using
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

    return Mistake(inside(shaw, "scores", change))


def _position(right, x, table, offsets, scale):
    """Only the term scale x_i . a_ij."""
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
    """Another table for the values, if there is one."""
    return using(value_table=lambda a: table(a) if a.value_table is not None else missing())


OTHER = {"relative_key": "relative_key_query", "relative_key_query": "relative_key"}


def _by_distance(right, q, k, table, offsets, scale, variant):
    rows = table.shape[-2]
    return right(q, k, table, np.minimum(np.abs(offsets), rows - 1) - rows // 2, scale=scale, variant=variant)


MISTAKES = {
    "rows_overwritten": OVERWRITTEN._replace(
        wrong=inside(relative, "scatter_rows", lambda right: last_wins), only="scores_gradient"
    ),
    "gradient_unscaled": Mistake(result(lambda y, a: y / a.scale), kind="gradient", only="scores_gradient").words("""
        the gradient is not scaled
        It is sqrt(d) times too large.
        Multiply the gradient by the scale of the scores."""),
    "content_gradient_alone": Mistake(
        using(key_table=lambda a: 0 * a.key_table if a.get("of") == "q" else missing()), kind="gradient", only="scores_gradient"
    ).words("""
        ds k: the gradient of the queries leaves out the vectors of the table
        Queries learn from contents alone.
        Add the vectors: the gradient by q_i is scale sum_j g_ij (k_j + a_ij)."""),
    "key_part_left_out": Mistake(_key_part_left_out, kind="gradient", only="scores_gradient").words("""
        k_j . a_ij is left out: the backward pass is that of relative_key
        Keys and table learn from half of the scores.
        Add scale g_ij a_ij to the gradient of k_j, and scale g_ij k_j to that of the row."""),
    "transposed": Mistake("sign").words("""
        the offset is query - key: the table is read in reverse
        Past and future change places."""),
    "clip_one_early": Mistake(_clip(0, -1)).words("""
        offsets are clipped to (-k, k - 1), DeBERTa's interval
        The far future shares a row with its neighbor.
        Clip to (-k, k): the table has 2k + 1 rows."""),
    "clip_low_late": Mistake(_clip(1, 0)).words("""
        offsets are clipped to (1 - k, k): the first row is never used
        The far past shares a row with its neighbor.
        Clip to (-k, k): the table has 2k + 1 rows."""),
    "wrapped": Mistake(
        inside(relative, "clip", lambda right: lambda offsets, low, high: offsets % (high - low + 1) + low)
    ).words("""
        (j - i) mod (2k + 1): offsets wrap around the table, by a remainder or a negative index
        Every row is that of another offset, and far tokens look near.
        Clip to (-k, k), then add k."""),
    "no_position": _scores(lambda right, q, k, table, offsets, scale, variant: attention.scores(q, k, scale=scale)).words("""
        the key vectors of the table are left out
        The scores see no order.
        Add q_i . a_ij to q_i . k_j, and scale the sum."""),
    "content_scaled_alone": _scores(_position_unscaled).words("""
        scale q . k + q . a: the position term is not scaled
        Position outweighs content by sqrt(d).
        Add content and position first, then scale the sum."""),
    "position_of_the_key": _scores(_position_of_the_key).words("""
        k . a instead of q . a: the vector meets the key
        Another method of the same paper.
        Multiply the vector with the query; relative_key_query adds the key's product to it."""),
    "other_variant": Mistake(using(variant=lambda a: OTHER[a.variant])).words("""
        k . a is added where it should be left out, or the reverse
        A term too many or too few.
        Use the variant of the weights: relative_key_query alone has k_j . a_ij."""),
    "key_term_transposed": _scores(_key_term_transposed).words("""
        k_j . a_ji: the key's product reads the offset of the query
        Past and future change places in one term.
        Use a_ij in both products, the vector of the offset j - i."""),
    "table_of_the_first_head": Mistake(_first_head).words("""
        all heads read the table of head 0
        Heads look alike.
        Keep the axis of the heads: (h, 2k + 1, d)."""),
    "no_value_term": Mistake(_values(lambda a: None)).words("""
        the value vectors a^V of Eq. (3) are left out
        Values carry no position.
        Add a^V_ij to v_j before the sum."""),
    "value_transposed": Mistake(_values(lambda a: a.value_table[..., ::-1, :])).words("""
        the offset of the values is query - key: the value table is read in reverse
        Past and future change places in the values.
        Row r of the value table is the offset r - k, key - query."""),
    "value_by_key_table": Mistake(_values(lambda a: a.key_table)).words("""
        the values use the table of the keys
        NEZHA's sharing, without being NEZHA.
        Give the values their own table, w^V."""),
}

FURTHER = {
    "rows_by_distance": _scores(_by_distance).words("""
        the row of the table is the distance |j - i|, from row 0 on
        Past and future are read alike, and rows of the past mean other distances.
        Take row j - i + k, clipped at both ends; row k is that of offset 0.""")
}

SCORES = {"shaw": ("one", "offset", "one", "offset"), "shaw clipped": ("one", "clipped", "one", "clipped")}


def _head(t):
    q, k, v = t.projected(t.x)
    keys, values = t.parameter(9, t.dim), t.parameter(9, t.dim)
    scores = shaw.scores(q, k, keys, t.offsets, scale=t.scale)
    return scores, shaw.attend(q, k, v, keys, values, t.offsets, scale=t.scale)
