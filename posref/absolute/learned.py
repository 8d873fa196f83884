r"""Learned table: one trained vector for each position.

The model learns what each position means, up to the end of the table. Most bugs are in the row number of a token, above all
when a batch is padded.

Also called: trainable, learned absolute position embedding, wpe.

Definition. Token i gets row r_i of a table P; c_i is the number of tokens among 0 .. i, padding not counted, and m_i is 1 for
a token and 0 for padding:

    encode          p_i = P[r_i]
    position_ids    r_i = i                        convention="bert": padding counts
    position_ids    r_i = m_i (c_i - 1)            convention="generate"
    position_ids    r_i = m_i c_i + 1              convention="opt"
    position_ids    r_i = m_i c_i + padding_idx    convention="roberta" and "m2m100"
    similarity      S_ij = <P_i, P_j> / (|P_i| |P_j|)

Symbols.

    r (...)          row numbers, `positions` in the code
    P (rows, d)      the table
    p (..., d)       the encoding
    mask (..., n)    boolean, True = token
    S (rows, rows)   cosine similarity of every two rows

Conventions. 0-based rows. A row outside the table is an error, never wrapped or clipped; a negative one too. The first row of
a token is 0, or 2 in "opt", whose first two rows belong to no token, or padding_idx + 1 in "roberta", where padding gets row
padding_idx. So the longest text is `rows`, `rows - 2` or `rows - padding_idx - 1`. With padding_idx 1, "opt" and "roberta"
agree. A 0-based id that is fed to a RoBERTa table raises nothing and reads rows that are shifted by two.

Example. Two tokens of padding and then three tokens:

>>> mask = np.array([False, False, True, True, True])
>>> for convention in CONVENTIONS:
...     print(f"{convention:9}", position_ids(mask, convention=convention))
bert      [0 1 2 3 4]
generate  [0 0 0 1 2]
opt       [1 1 2 3 4]
roberta   [1 1 2 3 4]
m2m100    [1 1 2 3 4]

Where implementations differ.

    what | who | value | version | source
    row of a token | transformers' BERT, GPT-2 | bert | 5.23.0 | modeling_bert.py; modeling_gpt2.py
    row of a token | transformers' generate(), for every model it calls | generate | 5.23.0 | generation/utils.py
    row of a token | transformers' OPT | opt | 5.23.0 | modeling_opt.py OPTLearnedPositionalEmbedding
    row of a token | transformers' RoBERTa, XLM-R | roberta | 5.23.0 | modeling_roberta.py create_position_ids_from_input_ids
    row of a token | transformers' M2M100 | m2m100 | 5.23.0 | modeling_m2m_100.py create_position_ids_from_input_ids
    table | transformers' M2M100, fairseq's sinusoid | the sinusoid, with row padding_idx set to zero | 5.23.0; 0491f26
      | modeling_m2m_100.py get_embedding; modules/sinusoidal_positional_embedding.py get_embedding
    given embeddings, no tokens | transformers' RoBERTa | nothing is padding: pass a mask of True | 5.23.0
      | modeling_roberta.py create_position_ids_from_inputs_embeds
    with a cache | transformers' RoBERTa | adds the length of the past, padding included | 5.23.0
      | modeling_roberta.py create_position_ids_from_input_ids
    with a cache | transformers' OPT | counts the tokens of the whole, keeps the last rows | 5.23.0
      | modeling_opt.py OPTLearnedPositionalEmbedding

References. Gehring et al., Convolutional Sequence to Sequence Learning, arXiv 1705.03122, section 3.1; Devlin et al., BERT,
arXiv 1810.04805; the picture of similarities: Wang and Chen, What Do Position Embeddings Learn?, EMNLP 2020.
"""

from typing import Literal, get_args

import numpy as np

from posref import _require
from posref._contract import Array, Booleans, Integer, Integers, Numbers, contract, kept

Convention = Literal["bert", "generate", "opt", "roberta", "m2m100"]
CONVENTIONS = get_args(Convention)

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


@contract
def encode(positions: Integers[Array, "..."], table: Numbers[Array, "rows d", kept]) -> Numbers[Array, "... d"]:
    """p_i = P[r_i]: `positions.shape + (d,)`, dtype of `table`.

    ValueError for a row outside the table, TypeError for positions that are not integers.

    >>> encode(np.array([1, 0, 1]), np.array([[0.5, 0.0], [0.0, 2.0]]))
    array([[0. , 2. ],
           [0.5, 0. ],
           [0. , 2. ]])
    """
    _require.rows("learned.encode", "positions", positions, table.shape[0], "table")
    return table[positions]


@contract
def position_ids(
    mask: Booleans[Array, "... n"], *, convention: Convention, padding_idx: Integer | None = None
) -> Integers[Array, "... n"]:
    """Row numbers r_i of the tokens of a padded batch: integers, shape of `mask`, counted along its last axis.

    `padding_idx` belongs to `"roberta"` and `"m2m100"`; it is 1 in their published checkpoints and by default. ValueError if
    another convention is given one, TypeError if `mask` is not boolean.

    >>> position_ids(np.array([[True, True, False], [False, True, True]]), convention="roberta", padding_idx=1)
    array([[2, 3, 1],
           [1, 2, 3]])
    """
    padding_row = _padding_row(convention, padding_idx)
    if convention == "bert":
        return np.cumsum(np.ones_like(mask), axis=-1) - 1
    tokens_so_far = np.cumsum(mask, axis=-1)
    if convention == "generate":
        return np.where(mask, tokens_so_far - 1, 0)
    return tokens_so_far * mask + padding_row


@contract
def similarity(table: Numbers[Array, "rows d"]) -> Numbers[Array, "rows rows"]:
    """Cosine similarity of every two rows: `(rows, rows)`. ValueError for a row of zeros, which has no direction.

    >>> similarity(np.array([[3.0, 0.0], [1.0, 1.0]])).round(4)
    array([[1.    , 0.7071],
           [0.7071, 1.    ]])
    """
    rows = table / _require.nonzero("learned.similarity", "table", table)
    unit = rows / np.sqrt((rows * rows).sum(axis=-1, keepdims=True))
    return unit @ np.swapaxes(unit, -1, -2)


def _padding_row(convention, padding_idx):
    if convention in ("roberta", "m2m100"):
        row = 1 if padding_idx is None else padding_idx
        if row < 0:
            raise ValueError(f"learned.position_ids: padding_idx is {row}, expected the row of padding, an integer from 0 on")
        return row
    if padding_idx is not None:
        raise ValueError(
            f"learned.position_ids: padding_idx is {padding_idx} and convention {convention!r} has none; "
            'it belongs to "roberta" and "m2m100"'
        )
    return 1
