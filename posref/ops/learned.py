"""Learned positions: the functions to check, and the mistakes that implementations make."""

import numpy as np

from posref.absolute import learned
from posref.ops import Mistake, inside, instead, missing, using
from posref.ops.probe import painted


def position_ids(mask, *, convention, padding_idx=None):
    return learned.position_ids(mask == 1, convention=convention, padding_idx=padding_idx)


def token_ids(mask, *, convention, padding_idx=None):
    return position_ids(mask, convention=convention, padding_idx=padding_idx)[mask == 1]


encode = learned.encode


def embed(mask, table, *, convention, padding_idx=None):
    return learned.encode(position_ids(mask, convention=convention, padding_idx=padding_idx), table)


similarity = learned.similarity
TAGS = dict.fromkeys(("position_ids", "token_ids", "embed"), "padding")


def _tokens(n, left, right):
    """True for a token, False for padding: `left` places on the left, `right` on the right if tokens remain, and one inside."""
    return (n >= left) & (n < np.maximum(n.size - right, 1)) & (n != left + 2)


ARRAYS = {
    "mask": lambda s: _tokens(np.arange(s.n_key), np.array([0, 2, 1])[: s.batch, None], np.array([1, 0, 2])[: s.batch, None]),
    "table": lambda s: painted((s.n_key + (2053 if "positions" in s.given else 5), s.head_dim), 2),
    # positions near 0, 257 and 2049: bfloat16 does not hold 257, and float16 does not hold 2049
    "positions": lambda s: (
        np.arange(s.batch * s.n_key).reshape(s.batch, s.n_key) * 5 % (s.n_key + 3) + np.resize([1, 255, 2048], s.batch)[:, None]
    ),
}


def _first(convention, padding_idx):
    """The table row of the first token."""
    if convention == "opt":
        return 2
    return (1 if padding_idx is None else padding_idx) + 1 if convention in ("roberta", "m2m100") else 0


def _ids(formula):
    """Other rows: formula(right rows, mask, tokens counted from 0, first row, convention)."""

    def change(right):
        def position_ids(mask, *, convention, padding_idx=None):
            rows = right(mask, convention=convention, padding_idx=padding_idx)
            return formula(rows, mask, np.cumsum(mask, -1) - 1, _first(convention, padding_idx), convention)

        return position_ids

    return inside(learned, "position_ids", change)


def _from_zero(f, a):
    if a.convention == "generate":
        missing()
    if "table" in a:
        return _ids(lambda rows, mask, n, first, c: np.where(mask, n, 0))(f, a)
    return _ids(lambda rows, mask, n, first, c: rows - first)(f, a)


def _unit(table):
    return table / np.sqrt((table * table).sum(axis=-1, keepdims=True))


# the shared mistakes of causal masks do not apply: this mask marks padding
REPLACED = {"no_mask", "mask_of_the_future", "mask_strict", "sees_one_ahead", "mask_left_aligned"}

MISTAKES = {
    "counts_padding": Mistake(_ids(lambda rows, mask, n, first, c: np.arange(mask.shape[-1]) + first + 0 * rows)).words("""
        the row is i instead of the count of tokens: padding is counted
        Left-padded texts are shifted, silently.
        Count the tokens alone: cumsum(mask)."""),
    "padding_not_counted": Mistake(
        _ids(lambda rows, mask, n, first, c: np.where(mask, n, 0) if c == "bert" else missing())
    ).words("""
        the row is the count of tokens: padding is skipped though BERT counts it
        Left-padded texts move.
        Take row i for token i; BERT counts padding too."""),
    "zero_based": Mistake(_from_zero, seen_in=("huggingface/transformers#47496", "sbryngelson/ANEForge#257"))
    .words("""
        rows are counted from 0 though the table begins at 2
        No error, other rows: cosine 0.65 with the right output.
        Add the first row of the convention: 2 in OPT, padding_idx + 1 in RoBERTa.""")
    .where("""convention=roberta
        rows are counted from 0 though they begin at padding_idx + 1
        No error, other rows.
        Add padding_idx + 1.""")
    .where("""convention=m2m100
        rows are counted from 0 though they begin at padding_idx + 1
        No error, other rows.
        Add padding_idx + 1."""),
    "one_short": Mistake(_ids(lambda rows, mask, n, first, c: np.where(mask, rows - 1, rows))).words("""
        rows begin at padding_idx instead of padding_idx + 1
        The first token has the row of padding.
        Begin at padding_idx + 1; row padding_idx belongs to padding."""),
    "padding_as_token": Mistake(_ids(lambda rows, mask, n, first, c: n + first if c != "bert" else missing())).words("""
        padding has the row of the token before it
        Padding is no longer zero.
        Multiply the count by the mask, so that padding gets its own row."""),
    "mask_inverted": Mistake("mask_inverted").words("""
        the mask is inverted: True is read as padding
        Padding is counted, tokens are not.
        True means token here; invert a mask of padding once."""),
    "wrapped": Mistake(using(positions=lambda a: a.positions % (a.table.shape[0] - 2))).words("""
        r mod rows: row numbers are taken modulo a power of two
        Long texts repeat positions.
        Refuse a row outside the table; do not wrap it."""),
    "clipped": Mistake(using(positions=lambda a: np.minimum(a.positions, a.table.shape[0] // 2 - 1))).words("""
        min(r, last): row numbers beyond 4 read row 4
        Long texts lose order.
        Refuse a row outside the table; do not clip it."""),
    "dot_product": Mistake(instead(lambda table: table @ np.swapaxes(table, -1, -2)), only="similarity").words("""
        the product is not divided by the norms
        Long rows look similar to all.
        Divide by the norms of both rows."""),
    "one_norm": Mistake(instead(lambda table: _unit(table) @ np.swapaxes(table, -1, -2)), only="similarity").words("""
        the product is divided by one of the two norms
        Not symmetric.
        Divide by the norms of both rows."""),
}

SCORES = {"added": ("one", "key", "query", "any")}


def _head(t):
    return t.added(learned.encode(t.positions, t.parameter(t.trained, t.dim)))


FURTHER = {
    f"row_{row}_zero": Mistake(
        using(table=lambda a, row=row: np.where(np.arange(len(a.table))[:, None] == row, 0, a.table))
    ).words(f"""
        row {row} of the table is 0: it is taken for the row of padding
        One position has no encoding.
        Pass no padding_idx to a table of positions, or the one that it was trained with.""")
    for row in (0, 1)
} | {
    f"rows_beyond_{n - 1}_{how}": Mistake(
        using(positions=lambda a, n=n, change=change: change(a.positions, n)), only="encode"
    ).words(f"""
        position p reads row {formula.format(n)}
        Long texts lose order.
        Refuse a position outside the table.""")
    for n in (256, 512, 1024, 2048)
    for how, formula, change in (
        ("clamped", "min(p, {0} - 1), as a gather that clamps", lambda p, n: np.minimum(p, n - 1)),
        ("wrapped", "p mod {0}", lambda p, n: p % n),
    )
}
