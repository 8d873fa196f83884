"""DeBERTa as others write it, right and wrong."""

import math

import numpy as np
import torch

SPAN = 4


def delta(query_positions, key_positions):
    """The row of each pair of tokens, as published: clip(i - j + span, 0, 2 span - 1), with an axis for heads."""
    return np.clip(query_positions[:, :, None] - key_positions[:, None, :] + SPAN, 0, 2 * SPAN - 1)[:, None]


def gathered(x, row):
    return np.take_along_axis(x, np.broadcast_to(row, (*x.shape[:-1], row.shape[-1])), -1)


def terms(q, k, q_r, k_r, row, back=None):
    """c2c, c2p and p2c; `back` is the row that the key reads, (.., n_key, n_query)."""
    back = np.swapaxes(row, -1, -2) if back is None else back
    c2p, p2c = gathered(q @ k_r.mT, row), np.swapaxes(gathered(k @ q_r.mT, back), -1, -2)
    return q @ k.mT, c2p, p2c


def scores_released(q, k, q_r, k_r, query_positions, key_positions):
    return sum(terms(q, k, q_r, k_r, delta(query_positions, key_positions))) / np.float32(math.sqrt(3 * q.shape[-1]))


def scores_by_loops(q, k, q_r, k_r, query_positions, key_positions):
    out = np.zeros((*q.shape[:3], k.shape[2]), np.float32)
    for b, h, i, j in np.ndindex(out.shape):
        r = min(max(query_positions[b, i] - key_positions[b, j] + SPAN, 0), 2 * SPAN - 1)
        out[b, h, i, j] = q[b, h, i] @ k[b, h, j] + q[b, h, i] @ k_r[h, r] + k[b, h, j] @ q_r[h, r]
    return out / math.sqrt(3 * q.shape[-1])


def scores_scaled_first(q, k, q_r, k_r, query_positions, key_positions):
    q, q_r = (torch.from_numpy(x) / math.sqrt(3 * q.shape[-1]) for x in (q, q_r))
    row = torch.from_numpy(delta(query_positions, key_positions)).expand(len(q), q.shape[1], -1, -1)
    k, k_r = torch.from_numpy(k), torch.from_numpy(k_r)
    return q @ k.mT + (q @ k_r.mT).gather(-1, row) + (k @ q_r.mT).gather(-1, row.mT).mT


def scores_of_the_paper(q, k, q_r, k_r, query_positions, key_positions):
    back = delta(key_positions, query_positions)
    return sum(terms(q, k, q_r, k_r, delta(query_positions, key_positions), back)) / math.sqrt(3 * q.shape[-1])


def scores_of_key_minus_query(q, k, q_r, k_r, query_positions, key_positions):
    row = np.swapaxes(delta(key_positions, query_positions), -1, -2)
    return sum(terms(q, k, q_r, k_r, row)) / math.sqrt(3 * q.shape[-1])


def scores_with_rows_exchanged(q, k, q_r, k_r, query_positions, key_positions):
    return scores_released(q, k, k_r, q_r, query_positions, key_positions)


def scores_scaled_for_one_term(q, k, q_r, k_r, query_positions, key_positions):
    return sum(terms(q, k, q_r, k_r, delta(query_positions, key_positions))) / math.sqrt(q.shape[-1])


def scores_with_content_scaled_alone(q, k, q_r, k_r, query_positions, key_positions):
    c2c, c2p, p2c = terms(q, k, q_r, k_r, delta(query_positions, key_positions))
    return c2c / math.sqrt(3 * q.shape[-1]) + c2p + p2c


def scores_with_position_to_position(q, k, q_r, k_r, query_positions, key_positions):
    row = delta(query_positions, key_positions)
    p2p = np.stack([(q_r[h] * k_r[h]).sum(-1)[row[:, 0]] for h in range(len(q_r))], 1)
    return (sum(terms(q, k, q_r, k_r, row)) + p2p) / math.sqrt(3 * q.shape[-1])


def scores_clipped_on_both_sides(q, k, q_r, k_r, query_positions, key_positions):
    return sum(terms(q, k, q_r, k_r, np.maximum(delta(query_positions, key_positions), 1))) / math.sqrt(3 * q.shape[-1])


def scores_without_p2c(q, k, q_r, k_r, query_positions, key_positions):
    return sum(terms(q, k, q_r, k_r, delta(query_positions, key_positions))[:2]) / math.sqrt(3 * q.shape[-1])


def scores_without_c2p(q, k, q_r, k_r, query_positions, key_positions):
    c2c, _, p2c = terms(q, k, q_r, k_r, delta(query_positions, key_positions))
    return (c2c + p2c) / math.sqrt(3 * q.shape[-1])


def scores_scaled_for_two_terms(q, k, q_r, k_r, query_positions, key_positions):
    return sum(terms(q, k, q_r, k_r, delta(query_positions, key_positions))) / math.sqrt(2 * q.shape[-1])


def scores_with_rows_reversed(q, k, q_r, k_r, query_positions, key_positions):
    return scores_released(q, k, q_r[:, ::-1], k_r[:, ::-1], query_positions, key_positions)


def scores_without_the_span(q, k, q_r, k_r, query_positions, key_positions):
    row = np.clip(query_positions[:, :, None] - key_positions[:, None, :], 0, 2 * SPAN - 1)[:, None]
    return sum(terms(q, k, q_r, k_r, row)) / math.sqrt(3 * q.shape[-1])


def scores_with_rows_of_the_first_head(q, k, q_r, k_r, query_positions, key_positions):
    return scores_released(q, k, 0 * q_r + q_r[:1], 0 * k_r + k_r[:1], query_positions, key_positions)


def index_right(offsets, span):
    return torch.clamp(torch.from_numpy(-offsets) + span, 0, 2 * span - 1)


def index_reversed(offsets, span):
    return np.clip(offsets + span, 0, 2 * span - 1)


def index_symmetric(offsets, span):
    return np.clip(span - offsets, 1, 2 * span - 1)


def index_one_too_far(offsets, span):
    return np.clip(span - offsets, 0, 2 * span)


def index_from_one(offsets, span):
    return np.clip(span - offsets - 1, 0, 2 * span - 1)


def index_wrapped(offsets, span):
    return (span - offsets) % (2 * span)


def bucketed(offsets, buckets, last, rounding=np.ceil):
    mid = buckets // 2
    n = np.abs(offsets)
    far = rounding(np.log(np.maximum(n, mid) / mid) / np.log(last / mid) * (mid - 1)) + mid
    return (np.where(n <= mid, n, far) * np.sign(offsets)).astype(int)


def log_bucket_of_transformers(offsets, buckets, max_position):
    return bucketed(offsets, buckets, max_position - 1)


def log_bucket_rounded_down(offsets, buckets, max_position):
    return bucketed(offsets, buckets, max_position - 1, np.floor)


def log_bucket_to_the_length(offsets, buckets, max_position):
    return bucketed(offsets, buckets, max_position)


def log_bucket_not(offsets, buckets, max_position):
    return offsets


def log_bucket_without_sign(offsets, buckets, max_position):
    return np.abs(bucketed(offsets, buckets, max_position - 1))


def log_bucket_with_all_steps(offsets, buckets, max_position):
    return np.where(np.abs(offsets) > buckets // 2, bucketed(offsets, buckets, max_position - 1) + np.sign(offsets), offsets)


def log_bucket_by_square_roots(offsets, buckets, max_position):
    return (np.sign(offsets) * np.rint(np.sqrt(np.abs(offsets)))).astype(int)


def layer(query, hidden):
    s = query @ hidden.mT
    w = np.exp(s - s.max(-1, keepdims=True))
    return query + w / w.sum(-1, keepdims=True) @ hidden


def decoder_right(hidden, positions):
    return layer(layer(hidden + positions, hidden), hidden)


def decoder_from_positions(hidden, positions):
    return layer(layer(np.broadcast_to(positions, hidden.shape), hidden), hidden)


def decoder_once(hidden, positions):
    return layer(hidden + positions, hidden)


def decoder_with_keys_that_follow(hidden, positions):
    first = layer(hidden + positions, hidden)
    return layer(first, first)


def decoder_with_positions_in_the_keys(hidden, positions):
    return layer(layer(hidden + positions, hidden + positions), hidden + positions)


def decoder_with_positions_in_each_step(hidden, positions):
    return layer(layer(hidden + positions, hidden) + positions, hidden)


def decoder_with_positions_last(hidden, positions):
    return layer(layer(hidden, hidden), hidden) + positions
