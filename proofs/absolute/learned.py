"""Learned table: one trained vector for each position."""

import itertools

import numpy as np
import sympy as sp

from posref.absolute import learned
from proofs.kit import *

N, R, D = size("n"), size("r"), size("d")
MASKS = {n: np.array([*itertools.product((False, True), repeat=n)]) for n in range(1, 6)}
START = {"bert": 0, "generate": 0, "opt": 2, "roberta": 2, "m2m100": 2}  # of an unpadded text


def definition(mask, convention, padding_idx=1):
    """The row of each token, one by one: BERT; transformers' generate(); OPTLearnedPositionalEmbedding;
    create_position_ids_from_input_ids of RoBERTa and M2M100."""
    rows, tokens = [], 0
    for i, is_token in enumerate(mask):
        tokens += int(is_token)
        if convention == "bert":
            rows.append(i)
        elif convention == "generate":
            rows.append(tokens - 1 if is_token else 0)
        elif convention == "opt":
            rows.append((tokens - 1 if is_token else -1) + 2)
        else:
            rows.append(tokens + padding_idx if is_token else padding_idx)
    return rows


# lookup


@theorem(of=[learned.encode], sizes="all n, rows, d; 2 x 2 tokens in a table of 5 rows and 3 features")
def pinned():
    """A token with row number r gets row r of the table, whatever the table holds; a linear combination of tables gives
    that of encode."""
    p, q, c = sized("P", R, D), sized("Q", R, D), symbol("c")
    r, i, t = index(R), index(N), index(D)
    lookup = lambda table: learned.encode(filled((N,), r), table).at(i, t)
    prove_equal([lookup(p)], [p.at(r, t)], mention=[p.at(r, t)])
    prove_equal([lookup(c * p + q)], [c.e * lookup(p) + lookup(q)], mention=[c])
    table, rows = symbols("P", 5, 3), np.array([[4, 0], [2, 2]])
    prove_equal(learned.encode(rows, table), [[table[4], table[0]], [table[2], table[2]]])


@pinned.control
def rows_count_from_one():
    """Position 1 has the first row."""
    table = symbols("P", 3, 2)
    prove_equal(learned.encode(np.array([1]), table), table[:1])


@pinned.claim("A table distinguishes what its rows distinguish; nothing forces rows to differ.")
def every_table_tells_positions_apart():
    """Different positions have different vectors, for any table."""
    first, second = learned.encode(np.array([0, 1]), np.array([[3, 4], [3, 4]]))
    witness = f"a table with equal rows: position 0 has {first}, position 1 has {second}"
    prove_that(bool((first != second).any()), counterexample=witness)


# row numbers


@example(of=[learned.position_ids], sizes="all masks of length 1 .. 5, padding_idx 0 .. 3")
def ids_pinned():
    """position_ids is the count, token by token, of each convention."""
    for masks in MASKS.values():
        for convention in learned.CONVENTIONS:
            got = learned.position_ids(masks, convention=convention).tolist()
            prove_that(got == [definition(mask, convention) for mask in masks], convention)
        for padding_idx, convention in itertools.product(range(4), ("roberta", "m2m100")):
            got = learned.position_ids(masks, convention=convention, padding_idx=padding_idx).tolist()
            prove_that(got == [definition(mask, convention, padding_idx) for mask in masks], f"{convention} {padding_idx}")


@ids_pinned.claim("On tokens they differ by 2; padding has row 1 in both.")
def opt_and_generate_differ_by_two():
    """OPT's rows are those of generate() plus 2, also for padding, which has row 1."""
    got, base = (learned.position_ids(MASKS[5], convention=name) for name in ("opt", "generate"))
    prove_equal(got, base + 2)


@ids_pinned.claim("RoBERTa's first token has row padding_idx + 1 = 2.")
def roberta_begins_at_zero():
    """0-based rows fit a RoBERTa table."""
    got = learned.position_ids(np.array([True, True, True]), convention="roberta").tolist()
    prove_equal(got, [0, 1, 2])


@theorem(of=[learned.position_ids], sizes="all n; padding_idx 0 .. 3")
def starts():
    """Without padding token i has row i (bert, generate), i + 2 (opt), i + padding_idx + 1 (roberta, m2m100); so tables with R
    rows hold texts of R, R - 2 and R - padding_idx - 1 tokens."""
    mask, i = filled((N,), True), index(N)
    for convention, start in START.items():
        prove_equal([learned.position_ids(mask, convention=convention).at(i)], [i + start], mention=[i])
    for padding_idx, convention in itertools.product(range(4), ("roberta", "m2m100")):
        got = learned.position_ids(mask, convention=convention, padding_idx=padding_idx).at(i)
        prove_equal([got], [i + padding_idx + 1], mention=[i])


@starts.claim("514 rows hold 512 tokens.")
def roberta_base_holds_its_rows():
    """The 514 rows of RoBERTa hold 514 tokens."""
    last = learned.position_ids(np.full(514, True), convention="roberta")[-1]
    rows = learned.PRESETS["roberta_base"]["rows"]
    prove_that(bool(last < rows), counterexample=f"the last of 514 tokens has row {last}; the table has {rows} rows")


@example(of=[learned.position_ids], sizes="all masks of length 1 .. 5")
def padding_moves_no_token():
    """But for bert the c-th token has one row, wherever the padding is; opt equals roberta with padding_idx 1."""
    for masks in MASKS.values():
        for convention in ("generate", "opt", "roberta", "m2m100"):
            got = learned.position_ids(masks, convention=convention)
            for mask, rows in zip(masks, got, strict=True):
                expected = [START[convention] + c for c in range(mask.sum())]
                prove_that(rows[mask].tolist() == expected, f"{convention} on {mask}")
        same = [learned.position_ids(masks, convention="opt")]
        same += [learned.position_ids(masks, convention=name, padding_idx=1) for name in ("roberta", "m2m100")]
        prove_that(np.array_equal(same[0], same[1]) and np.array_equal(same[0], same[2]), "opt, roberta, m2m100")


@padding_moves_no_token.claim("BERT counts padding: left padding moves every token.")
def bert_ignores_padding():
    """With BERT's rows left padding moves no token."""
    mask = np.array([False, False, True])
    prove_equal(learned.position_ids(mask, convention="bert")[mask], [0])


# similarity


def named(cells, table, norms):
    """The entries with the square root of |row i|^2 written as norms[i]; both are positive with one square."""
    roots = {sp.sqrt(sum(expression(x) ** 2 for x in row)): expression(n) for row, n in zip(table, norms, strict=True)}
    return array([[expression(cell).subs(roots) for cell in row] for row in cells])


@theorem(
    of=[learned.similarity],
    sizes="3 rows, d = 4",
    equivalent={
        "similarity: rows = table / _require.nonzero('learned.similarity', 'table', table)  ->  "
        "rows = table * _require.nonzero('learned.similarity', 'table', table)": "it cancels; a test has its overflow",
        "similarity: return unit @ np.swapaxes(unit, -1, -2)  ->  return unit @ np.swapaxes(unit, 1, -2)": "there are two axes",
    },
    values="a norm is the root of the sum of squares",
)
def similarity_pinned():
    """S = similarity(P) has S_ij |P_i| |P_j| = <P_i, P_j>, so S is symmetric, and
    S_ii = |P_i|^2 / |P_i|^2 = 1; the norms are symbols."""
    table, norms = symbols("P", 3, 4), symbols("norm", 3, positive=True)
    s = named(learned.similarity(table), table, norms)
    prove_equal(s * norms[:, None] * norms, table @ table.T, mention=table)
    prove_equal(s, s.T)
    prove_equal([s[i, i] * norms[i] ** 2 for i in range(3)], [row @ row for row in table])


@similarity_pinned.control
def similarity_without_norms():
    """S is the product of rows."""
    table = np.array([[3, 4], [6, 8]])
    prove_equal(learned.similarity(table), table @ table.T)


@theorem(of=[learned.similarity], sizes="3 rows, d = 4", as_written="runs", values="a norm is the root of the sum of squares")
def similarity_sees_directions_alone():
    """Rows c_i P_i with c_i > 0 have the similarity of the rows P_i."""
    table, norms = symbols("P", 3, 4), symbols("norm", 3, positive=True)
    c = symbols("c", 3, positive=True)
    scaled = c[:, None] * table
    before, after = named(learned.similarity(table), table, norms), named(learned.similarity(scaled), scaled, c * norms)
    prove_equal(after, before, mention=table)


@similarity_sees_directions_alone.control
def similarity_is_blind_to_signs():
    """A row may be negated."""
    table = np.array([[3, 4], [4, 3]])
    prove_equal(learned.similarity(table[:1].repeat(2, axis=0)), learned.similarity(np.array([[3, 4], [-3, -4]])))
