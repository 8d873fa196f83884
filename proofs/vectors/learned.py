"""Learned table: one trained vector for each position."""

import mpmath
import numpy as np

from proofs.absolute.learned import definition
from proofs.vectors import *

SOURCES = (
    "Devlin et al., BERT, arXiv 1810.04805",
    "transformers 5.23.0: generation/utils.py, modeling_opt.py, modeling_roberta.py, modeling_m2m_100.py",
    "Wang and Chen, What Do Position Embeddings Learn?, EMNLP 2020 (similarity)",
)

CONVENTIONS = {
    "axes": "mask and positions are (batch, n), table is (rows, d); 1 in a mask is a token, 0 is padding",
    "op position_ids": "the row numbers, padding included",
    "op token_ids": "the row numbers of the tokens alone, in one axis; what padding gets has changed between versions",
    "op encode": "rows of the table by number; a number outside the table is an error, never wrapped or clipped",
    "op embed": "position_ids, then encode",
    "op similarity": "cosine of every two rows",
}
REJECTED = (
    ("learned/any/r10-d3/encode", "beyond-the-table", {"positions": [[0, 10]]}, "range", "The table has rows 0 to 9."),
    ("learned/any/r10-d3/encode", "negative", {"positions": [[0, -1]]}, "range", "Row -1 is not the last row."),
    ("learned/any/r10-d3/encode", "fractional", {"positions": [[0.5, 1.0]]}, "type", "There is no row between two rows."),
    ("learned/bert/any/ids", "no-convention", {"convention": None}, "missing", "The first row differs by model."),
    ("learned/bert/any/ids", "padding-idx", {"padding_idx": 1}, "choice", "BERT counts from 0 whatever the padding is."),
    ("learned/roberta/r7-d3/embed", "table-too-short", {"table": lambda t: t[:4]}, "range", "The third token has row 4."),
)
REASONS = """
encode any positions_absolute | positions are rows of a table
encode any positions_below_2^20 | a table of 2^20 rows is no small case
encode any f16_positions | needs a table of more than 2048 rows, which is no small case
encode any positions_clamped | needs a table of more than 4096 rows, which is no small case
encode any positions_modulo* | needs a table of more rows than the modulus; those of 128 and 256 are killed
encode any int16_positions | needs a table of more than 32768 rows, which is no small case
encode any f32_positions | needs a table of more than 2^24 rows, which is no small case
position_ids bert counts_padding | BERT counts padding: the mistake is the rule
position_ids bert mask_inverted | BERT's positions do not depend on the mask
position_ids bert zero_based | BERT counts from 0: the mistake is the rule
token_ids generate padding_as_token | the positions of padding are not in the result of this op
mutant position_ids: *tokens_so_far - 1, 0)* | the positions of padding are not in the result of `token_ids`
"""

BATCH = np.array([[0, 0, 1, 1, 1], [1, 1, 1, 0, 0], [1, 0, 1, 0, 1]])


def vectors():
    for convention, padding_idx in (("bert", None), ("generate", None), ("opt", None), ("roberta", 1), ("m2m100", 3)):
        yield _ids(convention, padding_idx)
    yield _ids("roberta", None)
    yield _encode(painted((10, 3), 1), [[9, 0, 4, 4], [8, 1, 7, 2]], "wrapped clipped", "")
    narrow = [[255, 256, 257, 4], [251, 129, 128, 0]]
    yield _encode(painted((260, 1), 4), narrow, "bf16_positions", ": one feature, so that the table is small")
    yield _embed()
    yield _similarity()


IDS = {
    "bert": "padding_not_counted",
    "generate": "counts_padding",
    "opt": "counts_padding zero_based padding_as_token",
    "roberta": "counts_padding zero_based padding_as_token one_short",
    "m2m100": "counts_padding zero_based padding_as_token one_short",
}


def _ids(convention, padding_idx):
    tokens_alone, whole = convention == "generate", [definition(mask, convention, padding_idx or 1) for mask in BATCH]
    id = f"learned/{convention}/{'any' if padding_idx is None else f'pad{padding_idx}'}/ids"
    params = {"convention": convention, **({} if padding_idx is None else {"padding_idx": padding_idx})}
    tensors, expected = {"mask": BATCH}, np.array(whole)[BATCH == 1] if tokens_alone else np.array(whole)
    kills, comment = IDS[convention], "The first mask is padded on the left, the second on the right."
    return case(id, "token_ids" if tokens_alone else "position_ids", params, tensors, expected, kills=kills, comment=comment)


def _encode(table, rows, kills, comment):
    id, tensors = f"learned/any/r{len(table)}-d{table.shape[1]}/encode", {"positions": np.array(rows), "table": table}
    note = f"Entries of the table, unchanged{comment}."
    return case(id, "encode", {}, tensors, table[np.array(rows)], kills=kills, comment=note)


def _embed():
    table = painted((7, 3), 2)
    params, tensors = {"convention": "roberta", "padding_idx": 1}, {"mask": BATCH, "table": table}
    expected, kills = table[np.array([definition(mask, "roberta") for mask in BATCH])], "counts_padding zero_based one_short"
    comment = "Seven rows hold five tokens."
    return case("learned/roberta/r7-d3/embed", "embed", params, tensors, expected, kills=kills, comment=comment)


def _similarity():
    table, d = painted((4, 5), 4), 5
    exact = [[mpmath.mpf(x) for x in row] for row in table]
    pairs = [[(a, b) for b in exact] for a in exact]
    inner = lambda a, b: sum(x * y for x, y in zip(a, b, strict=True))
    size = lambda a, b: sum(abs(x * y) for x, y in zip(a, b, strict=True)) / mpmath.sqrt(inner(a, a) * inner(b, b))
    share = [[size(a, b) for a, b in row] for row in pairs]
    id, expected = "learned/any/r4-d5/similarity", [[cosine(a, b) for a, b in row] for row in pairs]
    # roundings: d + 4 of the two norms and quotients, a product, d - 1 sums
    return case(id, "similarity", {}, {"table": table}, expected, terms(2 * d + 4, share), "dot_product one_norm")


def cosine(a, b):
    """<a, b> / (|a| |b|)"""
    inner = lambda x, y: sum(s * t for s, t in zip(x, y, strict=True))
    return inner(a, b) / (mpmath.sqrt(inner(a, a)) * mpmath.sqrt(inner(b, b)))
