"""Inkling: the query's token mixes curves of the distance, and a temperature depends on the position."""

import numpy as np
import sympy as sp

from posref import attention
from posref.offsets import clip, gather_rows, offsets
from posref.relative import inkling, shaw
from proofs.kit import *

BIAS = [inkling.bias, offsets, clip, gather_rows]
WHOLE = [inkling.scores, inkling.temperature, attention.scores, *BIAS]
AMOUNT, FLOOR = symbol("amount"), symbol("floor", positive=True)


def definition(distance, state, profiles):
    """b at a distance: a state times the column of P. transformers 5.23.0, modeling_inkling.py InklingRelativeLogits."""
    inside = 0 <= distance < len(profiles[0])
    return sum(r * row[distance] for r, row in zip(state, profiles, strict=True)) if inside else 0


def tau(position, amount, floor, log=lambda x: sp.log(expression(x))):
    """The temperature of a query. transformers 5.23.0, modeling_inkling.py InklingAttention."""
    return 1 + amount * log((position + 1) / floor) if position + 1 >= floor else 1 + 0 * amount


def every_bias(states, profiles, queries, keys):
    """`definition` for all heads and pairs."""
    cells = [
        [[definition(i - j, r, profiles) for j in keys] for i, r in zip(queries, of_head, strict=True)] for of_head in states
    ]
    return np.array(cells, dtype=object)


# the temperature


@theorem(of=[inkling.temperature], sizes="every position, amount and floor; both paths")
def temperature_pinned():
    """tau is 1 up to the position floor - 1, and 1 + amount ln((i + 1) / floor) from there on."""
    p = symbols("p", 1, integer=True)
    both = lambda: (inkling.temperature(p, amount=AMOUNT, floor=FLOOR), tau(p[0], AMOUNT, FLOOR))
    for _, (got, stated) in all_paths(both):
        prove_equal(got, [stated])


@temperature_pinned.claim("Positions are counted from 1: the query at `floor` is the first whose temperature is not 1.")
def the_query_at_the_floor_has_1():
    """The temperature is 1 up to the position floor."""
    prove_equal(inkling.temperature(np.array([8]), amount=AMOUNT, floor=8), [1])


temperature_pinned.control_by("inkling.temperature", "temperature_of_llama_4", positions=np.array([11]), amount=AMOUNT, floor=8)


@theorem(of=WHOLE, sizes="h = 2 and one key head, n = 2, m = 3, two curves, d = 1; every floor and amount; every path")
def scores_pinned():
    """A score is tau_i (scale q_i . k_j + b_ij), with the bias of its head and pair: tau multiplies both parts."""
    q, k, r = symbols("q", 2, 2, 1), symbols("k", 1, 3, 1), symbols("r", 2, 2, 2)
    profiles, scale, at = symbols("P", 2, 3), symbol("scale"), np.array([3, 5, 6])
    both = lambda: (
        inkling.scores(q, k, r, profiles, at[[0, 2]], at, scale=scale, amount=AMOUNT, floor=FLOOR),
        [tau(i, AMOUNT, FLOOR) for i in (3, 6)],
    )
    added = every_bias(r, profiles, (3, 6), (3, 5, 6))
    for _, (got, temperatures) in all_paths(both):
        for h, i, j in np.ndindex(2, 2, 3):
            prove_equal([got[h, i, j]], [temperatures[i] * (scale * q[h, i, 0] * k[0, j, 0] + added[h, i, j])], mention=[scale])


ALONE = {"states": symbols("r", 1, 1, 1), "profiles": symbols("P", 1, 2), "query_positions": np.array([8])}
ALONE |= {"q": symbols("q", 1, 1, 1), "k": symbols("k", 1, 1, 1), "key_positions": np.array([7]), "scale": symbol("scale")}
scores_pinned.control_by("inkling.scores", "bias_without_temperature", **ALONE, amount=1, floor=4)
scores_pinned.control_by("inkling.scores", "bias_before_scale", **ALONE, amount=1, floor=4)


@theorem(of=WHOLE, sizes="h = 1, n = 2, m = 2, two curves, d = 2; positions 8 and 9, floor 4")
def the_temperature_may_enter_earlier():
    """Queries and states may be multiplied by tau before the products, as in Inkling 2, or queries and bias, as in Inkling."""
    q, k, r, profiles = symbols("q", 1, 2, 2), symbols("k", 1, 2, 2), symbols("r", 1, 2, 2), symbols("P", 2, 3)
    scale, at = symbol("scale"), np.array([8, 9])
    got = inkling.scores(q, k, r, profiles, at, at, scale=scale, amount=AMOUNT, floor=4)
    t = inkling.temperature(at, amount=AMOUNT, floor=4)[:, None]
    added = inkling.bias(t * r, profiles, at, at)
    prove_equal(attention.scores(t * q, k, scale=scale, bias=added), got, mention=[AMOUNT])
    prove_equal(attention.scores(t * q, k, scale=scale, bias=t * inkling.bias(r, profiles, at, at)), got)


@the_temperature_may_enter_earlier.claim("The bias needs it as well.")
def of_the_queries_alone():
    """It is enough to multiply the queries."""
    q, k, r, profiles, at = *(symbols(name, 1, 1, 1) for name in "qkr"), symbols("P", 1, 1), np.array([8])
    got = inkling.scores(q, k, r, profiles, at, at, scale=1, amount=AMOUNT, floor=4)
    t = inkling.temperature(at, amount=AMOUNT, floor=4)
    prove_equal(attention.scores(t * q, k, scale=1, bias=inkling.bias(r, profiles, at, at)), got)


# the bias


@theorem(of=BIAS, sizes="batch 2, h = 2, n = 2, m = 5, two curves, extent 1, 2, 3")
def bias_pinned():
    """b is the state of the head's query times the column of P at the distance i - j, for distances 0 .. extent - 1: the
    query's own token reads the first column. It is 0 for keys in the future and from the distance `extent` on."""
    queries, keys = np.array([[4, 7], [3, 2]]), np.array([[1, 7, 4, 6, 5], [2, 3, 1, 0, 9]])
    r = symbols("r", 2, 2, 2, 2)
    for extent in (1, 2, 3):
        profiles = symbols("P", 2, extent)
        got = inkling.bias(r, profiles, queries, keys)
        for b in range(2):
            prove_equal(got[b], every_bias(r[b], profiles, queries[b].tolist(), keys[b].tolist()), mention=[r[b, 1, 0, 1]])


@bias_pinned.claim("T5 and Shaw et al. share the last row; here keys at `extent` or farther have no bias.")
def far_keys_share_the_last_column():
    """Keys at `extent` or farther have the bias of the last column."""
    r, profiles = symbols("r", 1, 1, 1), symbols("P", 1, 2)
    prove_equal(inkling.bias(r, profiles, np.array([5]), np.array([0]))[0, 0], [r[0, 0, 0] * profiles[0, 1]])


HEADS = {"states": symbols("r", 2, 1, 1), "profiles": symbols("P", 1, 2)}
HEADS |= {"query_positions": np.array([1]), "key_positions": np.arange(3)}
bias_pinned.control_by("inkling.bias", "distance_from_one", **HEADS)
bias_pinned.control_by("inkling.bias", "future_at_distance_0", **HEADS)
bias_pinned.control_by("inkling.bias", "states_of_the_first_head", **HEADS)


@theorem(of=WHOLE, sizes="h = 1, n = 2, m = 4, two curves, extent 3, d = 1", as_written="runs")
def relative():
    """The bias does not change when all tokens move by -1, 5 or 10^9, and without a temperature (amount = 0) no score does."""
    q, k, r, profiles = symbols("q", 1, 2, 1), symbols("k", 1, 4, 1), symbols("r", 1, 2, 2), symbols("P", 2, 3)
    query, key = np.array([3, 4]), np.array([1, 3, 4, 9])
    score = lambda s: inkling.scores(q, k, r, profiles, query + s, key + s, scale=1, amount=0, floor=2)
    for s in (-1, 5, 10**9):
        prove_equal(inkling.bias(r, profiles, query + s, key + s), inkling.bias(r, profiles, query, key), mention=profiles[1])
        prove_equal(score(s), score(0))


@relative.claim("Queries beyond `floor` are sharper the later they stand.")
def with_a_temperature():
    """Scores with a temperature do not change either."""
    q, r, profiles = symbols("q", 1, 1, 1), symbols("r", 1, 1, 1), symbols("P", 1, 1)
    score = lambda i: inkling.scores(q, q, r, profiles, np.array([i]), np.array([i]), scale=1, amount=1, floor=2)
    prove_equal(score(3), score(4))


@relative.claim("The query's token mixes the curves: the bias of one distance differs from token to token.")
def by_distance_alone():
    """Two queries have the same bias at the same distance."""
    r, profiles, at = symbols("r", 1, 2, 1), symbols("P", 1, 1), np.arange(2)
    got = inkling.bias(r, profiles, at, at)[0]
    prove_equal(got[0, 0], got[1, 1])


@theorem(of=[*BIAS, shaw.scores], sizes="h = 2, d = 3, two curves, extent 2; every offset from -4 to 4")
def a_table_of_shaw():
    """Where the states are a linear map of the queries, r = q W, the bias is the position term of Shaw et al.: row t of their
    table is column t of W P for distances t < extent, and 0 for the distance `extent` and for the future."""
    q, w, profiles, at = symbols("q", 2, 1, 3), symbols("w", 3, 2), symbols("P", 2, 2), np.arange(-4, 5)
    columns = (w @ profiles).T
    table = np.concatenate([0 * columns[:1], columns[::-1], 0 * columns])
    keys = np.zeros((2, 9, 3), int)
    got = inkling.bias(q @ w, profiles, np.array([0]), at)
    prove_equal(shaw.scores(q, keys, table, at[None], scale=1), got, mention=profiles[0])


@a_table_of_shaw.claim("The last row of their table is shared by all far keys, so it has to be 0.")
def without_zeros_at_the_end():
    """The table needs no zeros at its end: its last row is that of the distance extent - 1."""
    q, profiles = symbols("q", 1, 1, 1), symbols("P", 1, 1)
    table, at = np.concatenate([profiles.T, profiles.T, 0 * profiles.T]), np.array([[-3]])
    got = inkling.bias(q, profiles, np.array([0]), at[0])
    prove_equal(shaw.scores(q, np.zeros((1, 1, 1), int), table, at, scale=1), got)
