r"""Learned table: one trained vector for each position.

Definition. For a table P with one row for each position, and a row number r_i for token i:

    p_i = P[r_i]

    position_ids    r_i, with c_i tokens among 0 .. i (padding not counted) and m_i = 1 for a token, 0 for padding
        "bert"              i                        padding counts
        "generate"          c_i - 1, padding 0
        "opt"               c_i m_i - 1 + 2          the first two rows belong to no token
        "roberta"           c_i m_i + padding_idx    rows 0 .. padding_idx belong to no token; padding gets row padding_idx
        "m2m100"            the same

    similarity      S_ij = <P_i, P_j> / (|P_i| |P_j|)

Symbols. positions (...) row numbers; table P (rows, d); p (..., d); mask (..., n) boolean, True = token; S (rows, rows).

Conventions. 0-based rows. A position beyond the table is an error, never wrapped or clipped; a negative one too.
The longest sequence is `rows` for "bert" and "generate", `rows - 2` for "opt", `rows - padding_idx - 1` for "roberta".

Where implementations differ. Where counting starts and what padding gets, as above: BERT and GPT-2 use i; transformers'
generate() hands models c_i - 1 with 0 for padding (5.23.0 generation/utils.py); OPT's table adds 2 (modeling_opt.py);
RoBERTa, XLM-R and other descendants of fairseq start at padding_idx + 1, which is 2 in the published checkpoints, and so
does M2M100, whose table is the sinusoid with row padding_idx set to zero. With padding_idx 1, "opt" and "roberta" agree.
A 0-based id fed to a RoBERTa table raises nothing and reads rows that are shifted by two. Given embeddings instead of
tokens, RoBERTa takes nothing for padding: pass a mask of True. With a cache it adds the length of the past, padding
included; OPT counts the tokens of the whole and keeps the last rows.

Properties. proofs/absolute/learned.py: pinned (a lookup, linear in the table); ids_pinned for all masks of up to 5 tokens;
starts; padding_moves_no_token (but for "bert"); similarity_pinned (symmetric, 1 on the diagonal);
similarity_sees_directions_alone.

References. Gehring et al., Convolutional Sequence to Sequence Learning, arXiv 1705.03122, section 3.1; Devlin et al.,
BERT, arXiv 1810.04805; the cosine-similarity picture: Wang and Chen, What Do Position Embeddings Learn?, EMNLP 2020.
"""

import numpy as np

from posref import _require

CONVENTIONS = ("bert", "generate", "opt", "roberta", "m2m100")

PRESETS = {
    "bert_base": {"rows": 512, "dim": 768, "convention": "bert", "source": "transformers 5.23.0 BertConfig"},
    "gpt2": {"rows": 1024, "dim": 768, "convention": "bert", "source": "transformers 5.23.0 GPT2Config"},
    "opt_125m": {"rows": 2050, "dim": 768, "convention": "opt", "source": "transformers 5.23.0 OPTConfig, modeling_opt.py"},
    "roberta_base": {
        "rows": 514,
        "dim": 768,
        "convention": "roberta",
        "padding_idx": 1,
        "source": "FacebookAI/roberta-base config.json",
    },
}


def encode(positions, table):
    """p_i = P[r_i]: `positions.shape + (d,)`, dtype of `table`.

    ValueError for a row outside the table, TypeError for positions that are not integers.

    >>> encode(np.array([1, 0, 1]), np.array([[0.5, 0.0], [0.0, 2.0]]))
    array([[0. , 2. ],
           [0.5, 0. ],
           [0. , 2. ]])
    """
    _require.array("learned.encode", "table", table)
    _require.axes("learned.encode", "table", table, "(rows, d)")
    _require.rows("learned.encode", "positions", positions, table.shape[0], "table")
    return table[positions]


def position_ids(mask, *, convention, padding_idx=None):
    """Row numbers r_i of the tokens of a padded batch: integers, shape of `mask`, counted along its last axis.

    `padding_idx` belongs to `"roberta"` and `"m2m100"`; it is 1 in their published checkpoints and by default. ValueError if
    another convention is given one, TypeError if `mask` is not boolean.

    >>> mask = np.array([False, False, True, True, True])
    >>> for convention in CONVENTIONS:
    ...     print(f"{convention:9}", position_ids(mask, convention=convention))
    bert      [0 1 2 3 4]
    generate  [0 0 0 1 2]
    opt       [1 1 2 3 4]
    roberta   [1 1 2 3 4]
    m2m100    [1 1 2 3 4]
    """
    _require.array("learned.position_ids", "mask", mask, kinds=_require.BOOLEANS, ndim=1)
    _require.choice("learned.position_ids", "convention", convention, CONVENTIONS)
    padding_row = _padding_row(convention, padding_idx)
    if convention == "bert":
        return np.cumsum(np.ones_like(mask), axis=-1) - 1
    tokens_so_far = np.cumsum(mask, axis=-1)
    if convention == "generate":
        return np.where(mask, tokens_so_far - 1, 0)
    return tokens_so_far * mask + padding_row


def similarity(table):
    """Cosine similarity of every two rows: `(rows, rows)`. ValueError for a row of zeros, which has no direction.

    >>> similarity(np.array([[3.0, 0.0], [1.0, 1.0]])).round(4)
    array([[1.    , 0.7071],
           [0.7071, 1.    ]])
    """
    _require.array("learned.similarity", "table", table)
    _require.axes("learned.similarity", "table", table, "(rows, d)")
    rows = table / 1  # small integer dtypes become floats before they are squared
    norms = np.sqrt((rows * rows).sum(axis=-1, keepdims=True))
    if norms.dtype.kind != "O" and (norms == 0).any():
        raise ValueError(
            f"learned.similarity: rows {np.flatnonzero(norms == 0).tolist()} of table have norm 0 and no direction; "
            "leave them out (M2M100 and fairseq keep a zero row for padding)"
        )
    unit = rows / norms
    return unit @ np.swapaxes(unit, -1, -2)


def _padding_row(convention, padding_idx):
    if convention in ("roberta", "m2m100"):
        row = 1 if padding_idx is None else padding_idx
        if not isinstance(row, (int, np.integer)) or row < 0:
            raise ValueError(f"learned.position_ids: padding_idx is {row!r}, expected the row of padding, an integer from 0 on")
        return row
    if padding_idx is not None:
        raise ValueError(
            f"learned.position_ids: padding_idx is {padding_idx} and convention {convention!r} has none; "
            'it belongs to "roberta" and "m2m100"'
        )
    return 1
