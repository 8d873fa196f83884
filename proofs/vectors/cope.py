"""CoPE: positions that count the keys that gates let through."""

import mpmath
import numpy as np

from proofs.relative.cope import between, count
from proofs.vectors import *

SOURCES = ("Golovneva et al., Contextual Position Encoding, arXiv 2405.18719, Eqs. (3) to (5)",)

CONVENTIONS = {
    "axes": "q (n_query, d), k (n_key, d), table (rows, d); scores (n_query, n_key), without a meaning where seen is 0",
    "convention": "official: scale (q . k + z); nodiv: scale q . k + z",
    "seen": "the mask as integers: 1 may be seen and is counted, 0 not",
    "op positions": "the sum of the gates from a key on, at most rows - 1",
    "op scores": "with the gates sigmoid(scale q . k)",
}
REJECTED = (("cope/nodiv/d4-r3/causal", "no-convention", {"convention": None}, "missing", "z is divided by sqrt(d), or not."),)
REASONS = """
scores * log_sigmoid_of_small* | the gate is exp of it, and 0 is right there
"""


EVERY = "other_convention own_gate_left_out counted_from_the_start nearest_row gates_not_scaled scale_ignored"


def vectors():
    yield _positions()
    for convention in ("official", "nodiv"):
        yield _scores(convention, "causal", np.tri(5, 5, dtype=int), "")
        heads = "heads_exchanged keys_of_the_first_head keys_of_the_first_batch_row queries_and_keys_swapped"
        yield _scores(convention, "heads", np.tri(3, dtype=int), heads, 2, 3, 0.1875, (2, 2))
        yield _scores(convention, "decode", np.tri(2, 5, 3, dtype=int), "mask_left_aligned")
        holes = np.array([[1, 0, 1, 0], [0, 1, 1, 1], [1, 1, 0, 1]])
        yield _scores(convention, "holes", holes, "own_gate_left_out counted_from_the_start", 4, 3, 0.5, (1,))
        yield _scores(convention, "large", holes, "own_gate_left_out counted_from_the_start", 4, 3, 256.0, (1,))


def _positions():
    gates, rows = abs(painted((3, 6), 1)) / 2, 3
    sums = [count([*numbers(row)], 10**6) for row in gates]
    expected, kills = [count([*numbers(row)], rows) for row in gates], "own_gate_left_out counted_from_the_start not_clipped"
    return case("cope/positions/r3/painted", "positions", {"rows": rows}, {"gates": gates}, expected, terms(6, sums), kills)


def _scores(convention, probe, seen, kills, d=4, rows=3, scale=0.5, lead=()):
    slope = (lambda gate: 3 * gate * (1 - gate)) if probe == "large" else (lambda gate: mpmath.mpf(1) / 4)
    queries, keys = seen.shape
    q, k, table = painted((*lead, queries, d), 1), painted((*lead, keys, d), 2), painted((rows, d), 4)
    expected, amp = (np.zeros((*lead, *seen.shape), dtype=object) for _ in (0, 1))
    for head in np.ndindex(lead):
        given = numbers(q[head]), numbers(k[head]), numbers(table)
        expected[head], amp[head] = _of_a_head(*given, seen, scale, convention, slope)
    id, params = f"cope/{convention}/d{d}-r{rows}/{probe}", {"scale": scale, "convention": convention}
    tensors, kills = {"q": q, "k": k, "table": table, "seen": seen}, f"{EVERY} {kills}" if not lead else kills
    # positions lie between integers, and 16 bits do not hold them
    return case(id, "scores", params, tensors, expected, amp, kills, ignore=np.asarray(seen) == 0, models=("f64", "f32"))


def _of_a_head(q, k, table, seen, scale, convention, slope):
    """Scores and their amp; `slope` bounds that of a gate, within one unit of the score."""
    expected, amp, d = np.zeros(seen.shape, dtype=object), np.zeros(seen.shape, dtype=object), q.shape[-1]
    factor = scale if convention == "official" else 1
    for i in range(len(q)):
        content, by_row = scale * (k @ q[i]), table @ q[i]
        gates = [s / (1 + mpmath.exp(-c)) for c, s in zip(content, seen[i], strict=True)]
        p = count(gates, len(table))
        z = [between([*by_row], each, mpmath) for each in p]
        expected[i] = seen[i] * (content + factor * np.array(z))
        # a score of d products, a gate, their sum, the rows on both sides
        size = scale * (abs(k) @ abs(q[i])) + 1
        rise, most = max(abs(np.diff(by_row))), abs(table) @ abs(q[i])
        slopes = np.array([slope(gate) for gate in gates])
        off = terms(d + 4, (seen[i] * slopes) @ size + sum(p) + 1, bits=24) * rise + terms(d + 5, max(most), bits=24)
        amp[i] = seen[i] * (terms(d + 2, size, bits=24) + factor * off)
    return expected, amp
