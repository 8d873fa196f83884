r"""Position ids: which position a token has where it is not its place in the row.

Definition. Positions that programs give to tokens, as integers from 0; offsets where no position for both sides exists.

    padded        the number of tokens before it in its row, padding left out
    packed        the place in its document:  i - start(document of i)
    cached        n_key - n_query + i for query i: the queries are the last of the keys
    zigzag        rank r of c has chunks r and 2c - 1 - r of 2c equal ones
    streaming     of n tokens the first s and the last w stay, and have the positions 0 .. s + w - 1 of their slots
    self_extend   j - i if i - j < w, else floor(j/g) - (floor(i/g) + w - floor(w/g))
    dual_chunk    with chunks of c = size - local: j - i in one chunk, j mod c - min(i mod c + c, size) in the next, and
                  j mod c - min(2c - 1, size) beyond
    multimodal    text (p, p, p); a patch (start + frame, start + row, start + column), and text goes on max(rows, columns) later

Symbols. mask (..., n) boolean, True = token; lengths: tokens of each document; query and key positions (n_query,), (n_key,);
group g and window w of Self-Extend; results are integers, offsets (n_query, n_key).

Conventions. An offset is key position minus query position; positions and masks are arguments of attention, which is equivariant:
tokens may come in any order if ids and masks come along. `temperature` makes what multiplies a query's scores, a scale per row.

Where implementations differ. Padding has id 0 in transformers' generation and 1 in Qwen2.5-Omni's own. Packed kernels (flash-attn,
Transformer Engine) take cumulative lengths and never look at ids. Self-Extend's authors subtract w/g, a real division, in
prefill and floor(w/g) in decoding. Streaming gives slots, so a sink comes closer than its text is. The temperature of Llama 4
counts p + 1 and belongs to layers without RoPE, that of Ministral 3 counts p and belongs to all: they differ at one position in
8192. In a video of more frames than rows the text after it repeats positions.

Properties. proofs/position_ids.py.

References. Xiao et al., StreamingLLM, arXiv 2309.17453, section 3.2; Jin et al., Self-Extend, arXiv 2401.01325, section 3; An et
al., Dual Chunk Attention, arXiv 2402.17463; Wang et al., Qwen2-VL, arXiv 2409.12191, section 2.1.
"""

from typing import NamedTuple

import numpy as np

from posref import _require

PHASES = ("prefill", "decode")
TEMPERATURES = ("llama4", "ministral3")


class Slots(NamedTuple):
    """What a streaming cache holds: places of the tokens in the text, and their positions."""

    kept: np.ndarray
    positions: np.ndarray


def padded(mask, *, filler):
    """Positions of a padded batch: tokens count from 0 in their row, padding has `filler`. Shape of `mask`.

    >>> padded(np.array([[False, True, True], [True, True, False]]), filler=0)
    array([[0, 0, 1],
           [0, 1, 0]])
    """
    _require.array("position_ids.padded", "mask", mask, kinds=_require.BOOLEANS, ndim=1)
    _require.integer("position_ids.padded", "filler", filler)
    return np.where(mask, np.cumsum(mask, axis=-1) - 1, filler)


def packed(lengths):
    """Positions of documents behind each other in one row: `(sum of lengths,)`. `lengths` are differences of cu_seqlens.

    >>> packed((2, 3))
    array([0, 1, 0, 1, 2])
    """
    _require_counts("position_ids.packed", "lengths", lengths)
    return np.concatenate([np.arange(length) for length in lengths])


def documents(lengths):
    """The document of every token of a packed row. Tokens attend within theirs: `of[:, None] == of[None, :]`.

    >>> documents((2, 3))
    array([0, 0, 1, 1, 1])
    """
    _require_counts("position_ids.documents", "lengths", lengths)
    return np.repeat(np.arange(len(lengths)), lengths)


def cached(n_query, n_key):
    """Positions of the last `n_query` of `n_key` tokens, as in decoding with a cache.

    >>> cached(2, 5)
    array([3, 4])
    """
    _require.last_queries("position_ids.cached", n_query, n_key)
    return np.arange(n_query) + (n_key - n_query)


def zigzag(n, *, ranks, rank):
    """Positions of the tokens of one rank: the r-th chunk from either end, so that causal work is equal. Context parallelism.

    ValueError unless n is a multiple of 2 ranks.

    >>> zigzag(16, ranks=2, rank=0)
    array([ 0,  1,  2,  3, 12, 13, 14, 15])
    """
    _require.count("position_ids.zigzag", "n", n)
    _require.count("position_ids.zigzag", "ranks", ranks)
    if n % (2 * ranks) != 0:
        raise ValueError(f"position_ids.zigzag: n is {n} and ranks {ranks}; pad to a multiple of {2 * ranks}, two chunks a rank")
    _require.rows("position_ids.zigzag", "rank", np.array([rank]), ranks, "the group of ranks")
    chunk = n // (2 * ranks)
    return np.concatenate([np.arange(chunk) + rank * chunk, np.arange(chunk) + (2 * ranks - 1 - rank) * chunk])


def streaming(n, *, sinks, window):
    """What stays of n tokens in a cache of `sinks` first and `window` last ones, and the positions it has there. StreamingLLM.

    >>> streaming(10, sinks=2, window=3)
    Slots(kept=array([0, 1, 7, 8, 9]), positions=array([0, 1, 2, 3, 4]))
    """
    _require.count("position_ids.streaming", "n", n)
    _require.count("position_ids.streaming", "sinks", sinks)
    _require.count("position_ids.streaming", "window", window)
    places = np.arange(n)
    kept = places[(places < sinks) | (places >= n - window)]
    return Slots(kept, np.arange(len(kept)))


def self_extend(query_positions, key_positions, *, group, window, phase):
    """Offsets of Self-Extend, `(n_query, n_key)`: exact for the nearest `window` keys, in steps of `group` beyond.

    phase="prefill" takes w - w/g, a real number, "decode" the paper's w - floor(w/g); they agree if g divides w. For causal
    attention: keys after the query keep their offset.

    >>> self_extend(np.array([9]), np.array([0, 4, 5, 6, 9]), group=2, window=4, phase="decode")
    array([[-6, -4, -4, -3,  0]])
    """
    _require_positions("position_ids.self_extend", query_positions, key_positions)
    _require.count("position_ids.self_extend", "group", group)
    _require.count("position_ids.self_extend", "window", window)
    _require.choice("position_ids.self_extend", "phase", phase, PHASES)
    i, j = query_positions[:, None], key_positions[None, :]
    shift = window - window // group if phase == "decode" else window - window / group
    return np.where(i - j < window, j - i, j // group - (i // group + shift))


def dual_chunk(query_positions, key_positions, *, size, local):
    """Offsets of Dual Chunk Attention, `(n_query, n_key)`: never farther than `size`, exact within a chunk. For causal attention.

    >>> dual_chunk(np.array([9]), np.array([0, 3, 5, 6, 9]), size=6, local=2)
    array([[-6, -3, -4, -3,  0]])
    """
    _require_positions("position_ids.dual_chunk", query_positions, key_positions)
    _require.count("position_ids.dual_chunk", "size", size)
    _require.count("position_ids.dual_chunk", "local", local)
    if local >= size:
        raise ValueError(f"position_ids.dual_chunk: local is {local} and size {size}; the local window is a part of a chunk")
    chunk = size - local
    i, j = query_positions[:, None], key_positions[None, :]
    apart = i // chunk - j // chunk
    successive = np.minimum(i % chunk + chunk, size)
    query = np.where(apart == 0, i % chunk, np.where(apart == 1, successive, np.minimum(2 * chunk - 1, size)))
    return j % chunk - query


def multimodal(parts, *, merge):
    """Positions (time, row, column) of text and images, `(n, 3)`, as in Qwen2-VL: a number of tokens, or (frames, rows, columns).

    Rows and columns are patches before merging; an image has rows/merge by columns/merge tokens. Text after it starts at the
    start of the image + max(rows, columns) // merge: neither after its largest position nor after its frames.

    >>> multimodal((2, (1, 4, 2), 1), merge=2).tolist()
    [[0, 0, 0], [1, 1, 1], [2, 2, 2], [2, 3, 2], [4, 4, 4]]
    """
    _require.count("position_ids.multimodal", "merge", merge)
    start, positions = 0, []
    for part in parts:
        shape = (part,) if np.isscalar(part) else (part[0], part[1] // merge, part[2] // merge)
        _require_counts("position_ids.multimodal", "parts", shape)
        places = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), axis=-1).reshape(-1, len(shape))
        positions.append(start + places + np.zeros(3, dtype=int))
        start += max(shape[-2:])
    return np.concatenate(positions)


def temperature(positions, *, amount, length, convention):
    """1 + amount ln(1 + floor(p / length)): what multiplies the scores of a query, shape of `positions`.

    convention="llama4" takes p + 1 for p (`attn_scale`, `floor_scale`), "ministral3" p (`llama_4_scaling_beta`,
    `original_max_position_embeddings`). For attention: `scale=scale * temperature(..)[..., None]`.

    >>> temperature(np.array([8190, 8191, 8192]), amount=0.1, length=8192, convention="llama4").round(6)
    array([1.      , 1.069315, 1.069315])
    >>> temperature(np.array([8190, 8191, 8192]), amount=0.1, length=8192, convention="ministral3").round(6)
    array([1.      , 1.      , 1.069315])
    """
    _require.array("position_ids.temperature", "positions", positions, kinds=_require.SIGNED_NUMBERS)
    _require.number("position_ids.temperature", "amount", amount)
    _require.positive("position_ids.temperature", "length", length)
    _require.choice("position_ids.temperature", "convention", convention, TEMPERATURES)
    counted = positions + 1 if convention == "llama4" else positions
    return 1 + amount * np.log(1 + counted // length)


def _require_counts(function, argument, counts):
    if len(counts) == 0:
        raise ValueError(f"{function}: {argument} is empty, expected at least one number of tokens")
    for count in counts:
        _require.count(function, f"an entry of {argument}", count)


def _require_positions(function, query_positions, key_positions):
    for name, positions in (("query_positions", query_positions), ("key_positions", key_positions)):
        _require.array(function, name, positions, kinds=_require.SIGNED)
        _require.axes(function, name, positions, "(n,)")
