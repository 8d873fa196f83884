"""Attention in shards of the keys, over processes, merged and compared with attention over all keys.

    python examples/merge_shards.py
    python examples/merge_shards.py --length 2048 --shards 5 --window 300

This is what ring attention and context parallelism must compute. A process is given a block of queries and a block of keys
of one sequence and returns the State of its block: maximum, denominator, accumulator. The States of a block of queries are
merged, in whatever order they arrive, and divided once. What goes wrong in practice shows here: a shard that forgets where
in the sequence it is, a shard in which some query sees no key, maxima that are not carried along.

To check your own kernel, put it in the place of `partial`, and compare its result with `whole`.
"""

import argparse
import itertools
import random
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

import numpy as np

from posref import attention, shards
from posref.relative import alibi


def partial(q, k, v, bias_by_offset, query_start, key_start, *, causal, window):
    """The State of a block of queries over a block of keys; the blocks know where in the sequence they start.

    `bias_by_offset` is that of the whole sequence: entry j - i + length - 1. posref.fast.attention.partial_by_offset computes
    the same without the matrix of scores; there key_start - query_start is its `shift`.
    """
    query, key = query_start + np.arange(q.shape[-2]), key_start + np.arange(k.shape[-2])
    mask = attention.causal_mask(query, key) if causal else np.ones((len(query), len(key)), dtype=bool)
    if window is not None:
        mask &= attention.window_mask(query, key, width=window)
    bias = bias_by_offset[:, key - query[:, None] + (bias_by_offset.shape[-1] - 1) // 2]
    return shards.attend(q, k, v, scale=q.shape[-1] ** -0.5, bias=bias, mask=mask)


def block(q, k, v, bias_by_offset, queries, keys, options):
    """What one process does: its rows of q, k and v, then the State and the queries it belongs to."""
    parts = q[:, slice(*queries)], k[:, slice(*keys)], v[:, slice(*keys)]
    return queries, partial(*parts, bias_by_offset, queries[0], keys[0], **options)


def in_shards(q, k, v, bias_by_offset, cuts, options):
    """Attention from all pairs of blocks, computed by two processes, merged in the order in which they come."""
    states, blocks = {}, list(itertools.pairwise(cuts))
    pairs = list(itertools.product(blocks, blocks))
    random.Random(0).shuffle(pairs)  # a ring visits them in another order on every device
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        jobs = [pool.submit(block, q, k, v, bias_by_offset, queries, keys, options) for queries, keys in pairs]
        for job in as_completed(jobs):
            queries, state = job.result()
            states[queries] = shards.merge(states[queries], state) if queries in states else state
    return np.concatenate([shards.finish(states[queries]) for queries in blocks], axis=-2)


def whole(q, k, v, bias_by_offset, options):
    return attention.attend_by_offset(q, k, v, scale=q.shape[-1] ** -0.5, bias_by_offset=bias_by_offset, **options)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--length", type=int, default=200, help="tokens (200)")
    parser.add_argument("--shards", type=int, default=3, help="blocks of the sequence, of unequal length (3)")
    parser.add_argument("--window", type=int, help="sliding window; without it all keys up to the query's own")
    options = parser.parse_args(arguments)
    if not 1 <= options.shards <= options.length:
        parser.error(f"--shards is {options.shards}, expected 1 .. {options.length}, one token a shard at least")
    rng, length, heads, dim = np.random.default_rng(0), options.length, 4, 8
    q, k, v = rng.standard_normal((3, heads, length, dim))
    offsets = np.arange(2 * length - 1)
    bias_by_offset = alibi.bias(np.array([length - 1]), offsets, alibi.slopes(heads), form="signed")[:, 0]
    cuts = [0, *sorted(rng.choice(np.arange(1, length), options.shards - 1, replace=False).tolist()), length]
    rule = {"causal": True, "window": options.window}
    merged, expected = in_shards(q, k, v, bias_by_offset, cuts, rule), whole(q, k, v, bias_by_offset, rule)
    difference = np.abs(merged - expected).max()
    print("blocks of the sequence begin at", cuts[:-1])
    print(f"largest difference between merged shards and attention over all keys: {difference:.1e}")
    # every output is a mean of values: a few hundred roundings of 2^-53 at most, relative to the largest of them
    return 0 if difference <= 2.0**-53 * 8 * (length + 100) * np.abs(v).max() else 1


if __name__ == "__main__":
    sys.exit(main())
