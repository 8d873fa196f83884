"""CoPE: positions that count the keys that gates let through."""

import mpmath
import numpy as np

from proofs.relative.cope import between, count
from proofs.vectors import case, painted, terms

SOURCES = ("Golovneva et al., Contextual Position Encoding, arXiv 2405.18719, Eqs. (3) to (5)",)

CONVENTIONS = {
    "axes": "q (n_query, d), k (n_key, d), table (rows, d); scores (n_query, n_key), 0 where seen is 0",
    "convention": "official: scale (q . k + z); nodiv: scale q . k + z",
    "seen": "the mask as integers: 1 may be seen and is counted, 0 not",
    "op positions": "the sum of the gates from a key on, at most rows - 1",
    "op scores": "with the gates sigmoid(scale q . k)",
}
MPF = np.vectorize(mpmath.mpf, otypes=[object])


def vectors():
    yield _positions()
    for convention in ("official", "nodiv"):
        yield _scores(convention, "causal", np.tri(5, 5, dtype=int), "")
        yield _scores(convention, "decode", np.tri(2, 5, 3, dtype=int), "mask_left_aligned")


def _positions():
    gates, rows = abs(painted((3, 6), 1)) / 2, 3
    sums = [count([*MPF(row)], 10**6) for row in gates]
    return case(
        "cope/positions/r3/painted",
        op="positions",
        params={"rows": rows},
        tensors={"gates": gates},
        expected=[count([*MPF(row)], rows) for row in gates],
        cond={"amp": terms(6, sums)},
        kills="own_gate_left_out counted_from_the_start not_clipped",
    )


def _scores(convention, probe, seen, kills, d=4, rows=3, scale=0.5):
    queries, keys = seen.shape
    q, k, table = painted((queries, d), 1), painted((keys, d), 2), painted((rows, d), 4)
    exact_q, exact_k, exact_table = MPF(q), MPF(k), MPF(table)
    expected, amp = np.zeros(seen.shape, dtype=object), np.zeros(seen.shape, dtype=object)
    factor = scale if convention == "official" else 1
    for i in range(queries):
        content, by_row = scale * (exact_k @ exact_q[i]), exact_table @ exact_q[i]
        gates = [s / (1 + mpmath.exp(-c)) for c, s in zip(content, seen[i], strict=True)]
        p = count(gates, rows)
        z = [between([*by_row], each, mpmath) for each in p]
        expected[i] = seen[i] * (content + factor * np.array(z))
        # a score of d products, a gate whose slope is at most 1/4, their sum, the rows on both sides
        size = scale * (abs(exact_k) @ abs(exact_q[i])) + 1
        rise, most = max(abs(np.diff(by_row))), abs(exact_table) @ abs(exact_q[i])
        off = terms(d + 4, seen[i] @ size / 4 + sum(p) + 1, bits=24) * rise + terms(d + 5, max(most), bits=24)
        amp[i] = seen[i] * (terms(d + 2, size, bits=24) + factor * off)
    return case(
        f"cope/{convention}/d{d}-r{rows}/{probe}",
        op="scores",
        params={"scale": scale, "convention": convention},
        tensors={"q": q, "k": k, "table": table, "seen": seen},
        expected=expected,
        cond={"amp": amp},
        kills=f"other_convention own_gate_left_out counted_from_the_start nearest_row gates_not_scaled scale_ignored {kills}",
        models=("f64", "f32"),  # a position in 16 bits is no position: rows are read between integers
    )
