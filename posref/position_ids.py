r"""Position ids: which position a token has where it is not its place in the row.

Padding, packing, caches, parallel ranks and images all give a token another position than the place where it lies in memory.

Also called: KV cache, packing, ReRoPE, Self-Extend, LM-Infinite.

Definition. Positions are integers from 0; where no positions of queries and keys give them, offsets:

    padded        the number of tokens before it in its row, padding left out
    packed        i - start(document of i)
    cached        n_key - n_query + i for query i: the queries are the last of the keys
    zigzag        rank r of c has the chunks r and 2c - 1 - r of 2c equal ones
    streaming     of n tokens the first s and the last w stay, at the positions 0 .. s + w - 1 of their slots
    self_extend   j - i if i - j < w, else floor(j/g) - (floor(i/g) + w - floor(w/g))
    rerope        j - i if i - j < w, else -w; leaky by k: -(w + (i - j - w)/k)
    lambda_mask   keys with i - j < w, and the first n_g of the text; with the offsets of rerope it is LM-Infinite
    dual_chunk    j - i in a chunk of c = chunk_size - local tokens; j mod c - min(i mod c + c, chunk_size) in the next
    dual_chunk    j mod c - min(2c - 1, chunk_size) in chunks farther back
    multimodal    text: (p, p, p); a patch: (start + floor(interval frame), start + row, start + column); then p = largest + 1,
                  or start + max(rows, columns), which is less where a video has more frames
    temperature   1 + amount ln(1 + floor(p / length))

Symbols.

    mask (..., n)                        boolean, True = token
    lengths (documents,)                 tokens of each document: the differences of cu_seqlens
    i (n_query,), j (n_key,)             positions of queries and of keys
    g, w                                 group and window of Self-Extend, window of ReRoPE
    k, n_g                               `leak` of Leaky ReRoPE, `sinks` of LM-Infinite
    offsets (n_query, n_key)             key position minus query position

Conventions. Positions and masks are arguments of attention, which is equivariant: tokens may come in any order if positions
and masks come along. `temperature` makes what multiplies the scores of a query: a scale per row.

Where implementations differ.

    what | who | value | version | source
    id of padding | transformers' generation | 0 | 5.23.0 | generation/utils.py
    id of padding | transformers' Qwen2.5-Omni | 1 | 5.23.0 | modeling_qwen2_5_omni.py
    w - floor(w/g) | Self-Extend's authors, prefill | w - w/g, a real number | 18950b5a | self_extend_patch/Llama.py
    w - floor(w/g) | Self-Extend's authors, decoding with flash-attn | w - w//g | 18950b5a | self_extend_patch/Llama.py
    chunks farther back | ChunkLlama | min(2c - 1, chunk_size) | 15c5787c | chunkllama_attn_replace.py
    leak | Leaky ReRoPE's code | 16, by linear frequencies and an offset w (k - 1); w = 512 | acfe7884 | rerope
    scale of queries | ReRoPE's code | q max(1, ln(i + 1) / ln L), L the trained length | acfe7884 | rerope
    w | LM-Infinite's code | 4096, and 10 to 100 first tokens; a first one within the window keeps its distance | a0ce64c6
      | LM-Infinite
    ids | SHAPE's code | i + u with one random u a text up to K in training, and i + K in tests | a2b04a26 | fairseq
    temperature | Llama 4 | p + 1 for p, in layers without RoPE alone | 5.23.0 | modeling_llama4.py
    temperature | Ministral 3, Mistral 4 | p, in all layers | 5.23.0 | modeling_ministral3.py get_llama_4_attn_scale
    text after a video | Qwen2-VL's paper | largest position + 1 | 2409.12191v2 | section 2.1
    text after a video | transformers' Qwen2-VL and Qwen2.5-VL | largest position + 1 | 5.2.0 | get_rope_index
    text after a video | transformers' Qwen2-VL and Qwen2.5-VL | start + max(rows, columns) | 5.3.0 to 5.23.0
      | get_rope_index
    interval | transformers' Qwen2-VL | 1 for all videos | 5.23.0 | get_rope_index
    interval | transformers' Qwen2.5-VL | tokens_per_second second_per_grid_ts, of each video its own; 1 for images | 5.23.0
      | get_rope_index
    text after a video | transformers' Qwen2.5-Omni | largest position + 1 | 5.23.0 | modeling_qwen2_5_omni.py

References. Xiao et al., StreamingLLM, arXiv 2309.17453, section 3.2; Jin et al., Self-Extend, arXiv 2401.01325, section 3; An
et al., Dual Chunk Attention, arXiv 2402.17463; Wang et al., Qwen2-VL, arXiv 2409.12191, section 2.1; Su,
kexue.fm/archives/9708 (ReRoPE); Han et al., LM-Infinite, arXiv 2308.16137; Kiyono et al., SHAPE, arXiv 2109.05644.
Not here: randomized positions, arXiv 2305.16843, at every encoding: a sorted sample of n of 0 .. N - 1, in tests too;
Self-Extend of llama.cpp, at the cache: when n_past reaches a + w, positions a .. a + w - 1 are divided by g, later ones moved.
"""

from typing import Any, Literal, NamedTuple

import numpy as np

from posref import _require
from posref._contract import (
    Array,
    Booleans,
    Count,
    Factor,
    Integer,
    Integers,
    Number,
    Numbers,
    Positive,
    Signed,
    SignedIntegers,
    contract,
)

Phase = Literal["prefill", "decode"]
Temperature = Literal["llama4", "ministral3"]
TextAfterVideo = Literal["largest", "longer_side"]


class Slots(NamedTuple):
    """What a streaming cache holds: the places of its tokens in the text, and their positions."""

    kept: Array
    positions: Array


@contract
def padded(mask: Booleans[Array, "... n"], *, filler: Integer) -> Integers[Array, "... n"]:
    """Positions of a padded batch: tokens count from 0 in their row, padding has `filler`. Shape of `mask`.

    >>> padded(np.array([[False, True, True], [True, True, False]]), filler=0)
    array([[0, 0, 1],
           [0, 1, 0]])
    """
    return np.where(mask, np.cumsum(mask, axis=-1) - 1, filler)


@contract
def packed(lengths: SignedIntegers[Array, "documents"]) -> Integers[Array, "n"]:
    """Positions of documents behind each other in one row: integers `(sum of lengths,)`.

    >>> packed(np.array([2, 3]))
    array([0, 1, 0, 1, 2])
    """
    _require_lengths("packed", lengths)
    return np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)


@contract
def documents(lengths: SignedIntegers[Array, "documents"]) -> Integers[Array, "n"]:
    """The document of every token of a packed row. Tokens attend within their document: `of[:, None] == of[None, :]`.

    >>> documents(np.array([2, 3]))
    array([0, 0, 1, 1, 1])
    """
    _require_lengths("documents", lengths)
    return np.repeat(np.arange(len(lengths)), lengths)


@contract
def cached(n_query: Count, n_key: Count) -> Integers[Array, "n_query"]:
    """Positions of the last `n_query` of `n_key` tokens, as in decoding with a cache.

    >>> cached(2, 5)
    array([3, 4])
    """
    _require_last(n_query, n_key)
    return np.arange(n_query) + (n_key - n_query)


@contract
def zigzag(n: Count, *, ranks: Count, rank: Integer) -> Integers[Array, "tokens"]:
    """Positions of the tokens of one rank: the r-th chunk from either end, so that causal work is equal. Context parallelism.

    ValueError unless n is a multiple of 2 ranks.

    >>> zigzag(16, ranks=2, rank=0)
    array([ 0,  1,  2,  3, 12, 13, 14, 15])
    """
    _require_chunks(n, ranks, rank)
    chunk = n // (2 * ranks)
    return np.concatenate([np.arange(chunk) + rank * chunk, np.arange(chunk) + (2 * ranks - 1 - rank) * chunk])


@contract
def streaming(n: Count, *, sinks: Count, window: Count) -> Slots:
    """The tokens of n that a cache keeps, the first `sinks` and the last `window`, and their positions there. StreamingLLM.

    >>> streaming(10, sinks=2, window=3)
    Slots(kept=array([0, 1, 7, 8, 9]), positions=array([0, 1, 2, 3, 4]))
    """
    places = np.arange(n)
    kept = places[(places < sinks) | (places >= n - window)]
    return Slots(kept, np.arange(len(kept)))


@contract
def self_extend(
    query_positions: SignedIntegers[Array, "n_query"],
    key_positions: SignedIntegers[Array, "n_key"],
    *,
    group: Count,
    window: Count,
    phase: Phase,
) -> Numbers[Array, "n_query n_key"]:
    """Offsets of Self-Extend, `(n_query, n_key)`: exact for the nearest `window` keys, in steps of `group` beyond.

    phase="prefill" takes w - w/g, a real number, "decode" the paper's w - floor(w/g); they agree if g divides w. For causal
    attention: keys after the query keep their offset.

    >>> self_extend(np.array([9]), np.array([0, 4, 5, 6, 9]), group=2, window=4, phase="decode")
    array([[-6, -4, -4, -3,  0]])
    """
    i, j = query_positions[:, None], key_positions[None, :]
    shift = window - window // group if phase == "decode" else window - window / group
    return np.where(i - j < window, j - i, j // group - (i // group + shift))


@contract
def rerope(
    query_positions: SignedIntegers[Array, "n_query"],
    key_positions: SignedIntegers[Array, "n_key"],
    *,
    window: Count,
    leak: Factor | None = None,
) -> Numbers[Array, "n_query n_key"]:
    """Offsets of ReRoPE, `(n_query, n_key)`: exact below `window`, then constant; Leaky ReRoPE grows by 1/`leak`.

    A function of the distance, unlike Self-Extend's. For causal attention: keys after the query keep their offset.

    >>> rerope(np.array([9]), np.array([0, 4, 5, 6, 9]), window=4)
    array([[-4, -4, -4, -3,  0]])
    >>> rerope(np.array([9]), np.array([1, 5, 6]), window=4, leak=2)
    array([[-6., -4., -3.]])
    """
    offset = key_positions[None, :] - query_positions[:, None]
    beyond = np.minimum(offset + window, 0)
    return offset - beyond if leak is None else offset - beyond + beyond / leak


@contract
def lambda_mask(
    query_positions: SignedIntegers[Array, "n_query"],
    key_positions: SignedIntegers[Array, "n_key"],
    *,
    window: Count,
    sinks: Integer,
) -> Booleans[Array, "n_query n_key"]:
    """True for the last `window` keys up to the query and the first `sinks` of the text: boolean `(n_query, n_key)`.

    >>> lambda_mask(np.array([5]), np.arange(7), window=2, sinks=1)
    array([[ True, False, False, False,  True,  True, False]])
    """
    distance, first = query_positions[:, None] - key_positions[None, :], key_positions[None, :] < sinks
    return (distance >= 0) & ((distance < window) | first)


@contract
def dual_chunk(
    query_positions: SignedIntegers[Array, "n_query"],
    key_positions: SignedIntegers[Array, "n_key"],
    *,
    chunk_size: Count,
    local: Count,
) -> Integers[Array, "n_query n_key"]:
    """Offsets of Dual Chunk Attention, `(n_query, n_key)`: exact within a chunk, never farther than `chunk_size`; for causal
    attention.

    >>> dual_chunk(np.array([9]), np.array([0, 3, 5, 6, 9]), chunk_size=6, local=2)
    array([[-6, -3, -4, -3,  0]])
    """
    _require_part(local, chunk_size)
    chunk = chunk_size - local
    i, j = query_positions[:, None], key_positions[None, :]
    apart = i // chunk - j // chunk
    farther = np.where(apart == 1, np.minimum(i % chunk + chunk, chunk_size), np.minimum(2 * chunk - 1, chunk_size))
    return j % chunk - np.where(apart < 1, i % chunk, farther)


@contract
def multimodal(parts: Any, *, merge: Count, convention: TextAfterVideo, interval: Positive = 1) -> Integers[Array, "n 3"]:
    """Positions (time, row, column) of text and images, `(n, 3)`, as in Qwen2-VL.

    `parts` are in the order of the text: a number of tokens, also as (tokens, 0, 0), or the (frames, rows, columns) of patches,
    of which merge x merge are one token. What follows an image starts at start + max(rows, columns) // merge. A video of more
    frames than that is followed by the largest position + 1 with convention="largest" (the paper; transformers to 5.2.0), and
    by start + max(rows, columns) // merge with "longer_side" (transformers from 5.3.0). Frame f has the time
    start + floor(interval f); Qwen2.5-VL's interval is tokens_per_second times second_per_grid_ts.

    >>> multimodal([2, (1, 4, 2), 1], merge=2, convention="largest").tolist()
    [[0, 0, 0], [1, 1, 1], [2, 2, 2], [2, 3, 2], [4, 4, 4]]
    >>> [multimodal([(5, 2, 2), 1], merge=2, convention=name)[-1].tolist() for name in ("largest", "longer_side")]
    [[5, 5, 5], [1, 1, 1]]
    >>> multimodal([(3, 1, 1)], merge=1, convention="largest", interval=1.5)[:, 0].tolist()
    [0, 1, 3]
    """
    start, positions = 0, []
    for part in parts:
        counts = _merged(part, merge)
        steps = np.array([interval, 1, 1])[-len(counts) :]
        places = np.floor(np.argwhere(np.ones(counts)) * steps).astype(int)
        positions.append(np.broadcast_to(start + places, (len(places), 3)))
        start = start + (1 + places.max() if convention == "largest" else max(counts[-2:]))
    return np.concatenate([np.zeros((0, 3), dtype=int), *positions])


@contract(length="a configuration calls it floor_scale or original_max_position_embeddings")
def temperature(
    positions: Signed[Array, "..."], *, amount: Number, length: Positive, convention: Temperature
) -> Numbers[Array, "..."]:
    """1 + amount ln(1 + floor(p / length)): what multiplies the scores of a query, shape of `positions`.

    convention="llama4" takes p + 1 for p (`attn_scale`, `floor_scale`), "ministral3" p (`llama_4_scaling_beta`,
    `original_max_position_embeddings`). In attention it is a scale per row.

    >>> temperature(np.array([8190, 8191, 8192]), amount=0.1, length=8192, convention="llama4").round(6)
    array([1.      , 1.069315, 1.069315])
    >>> temperature(np.array([8190, 8191, 8192]), amount=0.1, length=8192, convention="ministral3").round(6)
    array([1.      , 1.      , 1.069315])
    """
    counted = positions + 1 if convention == "llama4" else positions
    return 1 + amount * np.log(1 + counted // length)


def _merged(part, merge):
    """How many tokens a part has along each of its axes."""
    sizes = [_require.integer("position_ids.multimodal", "parts", n) for n in ((part,) if np.ndim(part) == 0 else part)]
    text = sizes[1:] in ([], [0, 0])
    counts = sizes[:1] if text else (sizes[0], sizes[1] // merge, sizes[2] // merge)
    if min(counts) < 1:
        raise ValueError(
            f"position_ids.multimodal: parts hold {part}, expected a number of tokens, or frames, rows and columns of at least "
            f"merge = {merge} patches (spatial_merge_size)"
        )
    return counts


def _require_lengths(function, lengths):
    if (lengths < 0).any():
        raise ValueError(
            f"position_ids.{function}: lengths are {lengths.tolist()}; pass the differences of cu_seqlens, from 0 on"
        )


def _require_last(n_query, n_key):
    if n_query > n_key:
        raise ValueError(
            f"position_ids.cached: {n_query} queries and {n_key} keys; the queries are the last of the keys, pass them all"
        )


def _require_chunks(n, ranks, rank):
    if n % (2 * ranks) != 0:
        raise ValueError(
            f"position_ids.zigzag: n is {n} and ranks {ranks}; pad to a multiple of {2 * ranks}, two chunks a rank"
        )
    if not 0 <= rank < ranks:
        raise ValueError(f"position_ids.zigzag: rank is {rank} of {ranks}, expected 0 to {ranks - 1}")


def _require_part(local, chunk_size):
    if local >= chunk_size:
        raise ValueError(f"position_ids.dual_chunk: local is {local} and chunk_size {chunk_size}; it is a part of the chunk")
