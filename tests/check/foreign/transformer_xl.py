"""Transformer-XL and XLNet as others write them, right and wrong."""

import numpy as np
import torch


def distances_right(n_query, n_key):
    return torch.arange(n_key - 1, -1, -1)


def distances_upwards(n_query, n_key):
    return np.arange(n_key)


def distances_negative(n_query, n_key):
    return -np.arange(n_key - 1, -1, -1)


def distances_from_one(n_query, n_key):
    return np.arange(n_key, 0, -1)


def distances_of_the_queries(n_query, n_key):
    return np.maximum(np.arange(n_key - 1, -1, -1), n_key - n_query)


def embeddings_right(distances, dim):
    w = 1 / 10000 ** (torch.arange(0.0, dim, 2, dtype=torch.float64) / dim)
    a = torch.outer(torch.from_numpy(distances).double(), w)
    return torch.cat([a.sin(), a.cos()], -1)


def embeddings_interleaved(distances, dim):
    return embeddings_right(distances, dim).unflatten(-1, (2, dim // 2)).mT.flatten(-2)


def embeddings_of_negative_distances(distances, dim):
    return embeddings_right(-distances, dim)


def embeddings_of_absolute_distances(distances, dim):
    return embeddings_right(np.abs(distances), dim)


def embeddings_cosines_first(distances, dim):
    return embeddings_right(distances, dim).roll(dim // 2, -1)


def embeddings_of_half_the_width(distances, dim):
    return embeddings_right(distances, 2 * dim)[:, np.r_[: dim // 2, dim : 3 * dim // 2]]


def embeddings_backwards(distances, dim):
    return embeddings_right(distances, dim).flip(0)


def by_distance(q, r, n_key, row):
    """q . r of the row for the query i and the key j, 0 where there is none."""
    out = np.zeros((*q.shape[:-1], n_key), np.float32)
    for i in range(q.shape[-2]):
        for j in range(n_key):
            index = row(i, j)
            if 0 <= index < r.shape[-2]:
                out[..., i, j] = (q[..., i, :] * r[..., index, :]).sum(-1)
    return out


def published(q, k, r, u, v, scale, row=None, future=0):
    n_query, n_key = q.shape[-2], k.shape[-2]
    row = row or (lambda i, j: n_query - 1 - i + j)
    s = (q + u[:, None]) @ k.mT + by_distance(q + v[:, None], r, n_key, row)
    seen = np.arange(n_key) <= np.arange(n_query)[:, None] + n_key - n_query
    return np.where(seen, scale * s, future).astype(np.float32)


def scores_by_loops(q, k, r, u, v, scale):
    return published(q, k, r, u, v, scale)


def scores_shifted(q, k, r, u, v, scale):
    """The pad and reshape of the published code."""
    q, k, r, u, v = map(torch.from_numpy, (q, k, r, u, v))
    x = (q + v[:, None]) @ r.mT
    x = torch.nn.functional.pad(x, (1, 0)).view(*x.shape[:2], -1, x.shape[2])[:, :, 1:].reshape(x.shape)
    return torch.tril(((q + u[:, None]) @ k.mT + x) * scale, diagonal=k.shape[2] - q.shape[2])


def scores_with_the_vectors_exchanged(q, k, r, u, v, scale):
    return published(q, k, r, v, u, scale)


def scores_without_u(q, k, r, u, v, scale):
    return published(q, k, r, 0 * u, v, scale)


def scores_without_v(q, k, r, u, v, scale):
    return published(q, k, r, u, 0 * v, scale)


def scores_not_shifted(q, k, r, u, v, scale):
    return published(q, k, r, u, v, scale, lambda i, j: j)


def scores_with_r_reversed(q, k, r, u, v, scale):
    return published(q, k, r[:, ::-1], u, v, scale)


def scores_with_garbage(q, k, r, u, v, scale):
    x = (torch.from_numpy(q) + torch.from_numpy(v)[:, None]) @ torch.from_numpy(r).mT
    x = torch.nn.functional.pad(x, (1, 0)).view(*x.shape[:2], -1, x.shape[2])[:, :, 1:].reshape(x.shape)
    return ((torch.from_numpy(q + u[:, None]) @ torch.from_numpy(k).mT) + x) * scale


def scores_with_content_scaled(q, k, r, u, v, scale):
    content = published(q, k, 0 * r, u, v, scale)
    return content + published(q, 0 * k, r, u, v, 1)


def scores_with_minus_v(q, k, r, u, v, scale):
    return published(q, k, r, u, -v, scale)


def scores_without_content(q, k, r, u, v, scale):
    return published(q, 0 * k, r, u, v, scale)


def scores_one_row_late(q, k, r, u, v, scale):
    return published(q, k, r, u, v, scale, lambda i, j: q.shape[2] - i + j)


def scores_with_infinite_future(q, k, r, u, v, scale):
    return published(q, k, r, u, v, scale, future=-1e4)


def scores_with_u_for_both(q, k, r, u, v, scale):
    return published(q, k, r, u, u, scale)


def softmax(s, mask=None):
    s = s if mask is None else np.where(mask, s, -1e30)
    w = np.exp(s - s.max(-1, keepdims=True))
    return w / w.sum(-1, keepdims=True)


def visible(s):
    n_query, n_key = s.shape[-2:]
    return np.arange(n_key) <= np.arange(n_query)[:, None] + n_key - n_query


def attend_right(q, k, r, u, v, values, scale):
    s = published(q, k, r, u, v, scale)
    return softmax(s, visible(s)) @ values


def attend_without_mask(q, k, r, u, v, values, scale):
    return softmax(published(q, k, r, u, v, scale)) @ values


def attend_masking_after_softmax(q, k, r, u, v, values, scale):
    s = published(q, k, r, u, v, scale)
    return np.where(visible(s), softmax(s), 0) @ values


def attend_strictly(q, k, r, u, v, values, scale):
    s = published(q, k, r, u, v, scale)
    return softmax(s, visible(s) & ~np.eye(*s.shape[-2:], s.shape[-1] - s.shape[-2], dtype=bool)) @ values


def shift_right(x):
    n = x.shape[-2]
    rows = [np.pad(x[..., i, n - 1 - i :], [(0, 0)] * (x.ndim - 2) + [(0, n - 1 - i)]) for i in range(n)]
    return np.stack(rows, -2)


def shift_dropping_the_end(x):
    n, width = x.shape[-2:]
    y = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(1, 0)]).reshape(*x.shape[:-2], width + 1, n)
    return y[..., :-1, :].reshape(x.shape)


def shift_not(x):
    return x


def shift_by_rolling(x):
    n = x.shape[-2]
    return np.stack([np.roll(x[..., i, :], i + 1 - n, -1) for i in range(n)], -2)


def shift_the_other_way(x):
    n, width = x.shape[-2:]
    return np.stack([np.pad(x[..., i, : width - i], [(0, 0)] * (x.ndim - 2) + [(i, 0)]) for i in range(n)], -2)


def xlnet_scores(q, k, r, e, u, v, s, same, scale, first=1, rows=lambda x: x):
    n_query = q.shape[-2]
    position = by_distance(q + v[:, None], rows(r), k.shape[-2], lambda i, j: first + n_query - 1 - i + j)
    one, other = ((q + s[:, None]) @ e[c][None, ..., None] for c in (0, 1))
    return scale * ((q + u[:, None]) @ k.mT + position + np.where(same == 1, one, other))


def xlnet_right(q, k, r, e, u, v, s, same, scale):
    return xlnet_scores(q, k, r, e, u, v, s, same, scale)


def xlnet_by_einsum(q, k, r, e, u, v, s, same, scale):
    q, k, r, e, u, v, s = map(torch.from_numpy, (q, k, r, e, u, v, s))
    n_query, n_key = q.shape[2], k.shape[2]
    index = n_query - torch.arange(n_query)[:, None] + torch.arange(n_key)
    ac = torch.einsum("bhid,bhjd->bhij", q + u[:, None], k)
    bd = torch.einsum("bhid,hijd->bhij", q + v[:, None], r[:, index])
    ef = torch.einsum("bhid,shd->bhis", q + s[:, None], e)
    return (ac + bd + torch.where(torch.from_numpy(same) == 1, ef[..., :1], ef[..., 1:])) * scale


def xlnet_with_segments_exchanged(q, k, r, e, u, v, s, same, scale):
    return xlnet_scores(q, k, r, e[::-1], u, v, s, same, scale)


def xlnet_without_segments(q, k, r, e, u, v, s, same, scale):
    return xlnet_scores(q, k, r, 0 * e, u, v, s, same, scale)


def xlnet_without_s(q, k, r, e, u, v, s, same, scale):
    return xlnet_scores(q, k, r, e, u, v, 0 * s, same, scale)


def xlnet_with_the_rows_of_transformer_xl(q, k, r, e, u, v, s, same, scale):
    return xlnet_scores(q, k, r, e, u, v, s, same, scale, first=0)


def xlnet_with_vectors_in_another_order(q, k, r, e, u, v, s, same, scale):
    return xlnet_scores(q, k, r, e, v, s, u, same, scale)


def xlnet_with_segments_of_queries_alone(q, k, r, e, u, v, s, same, scale):
    return xlnet_scores(q, k, r, e, u, v, s, np.broadcast_to(same[..., :1], same.shape), scale)


def xlnet_of_the_first_texts_segments(q, k, r, e, u, v, s, same, scale):
    return xlnet_scores(q, k, r, e, u, v, s, same[0], scale)


def xlnet_adding_both_segments(q, k, r, e, u, v, s, same, scale):
    return xlnet_scores(q, k, r, 0 * e + e.sum(0), u, v, s, same, scale)


def xlnet_with_segments_as_a_bias(q, k, r, e, u, v, s, same, scale):
    bias = e.sum(-1)
    return xlnet_scores(q, k, r, 0 * e, u, v, s, same, scale) + np.where(same == 1, *bias[:, :, None, None])


def xlnet_with_rows_upwards(q, k, r, e, u, v, s, same, scale):
    return xlnet_scores(q, k, r, e, u, v, s, same, scale, rows=lambda x: x[:, ::-1])


def xlnet_with_s_twice(q, k, r, e, u, v, s, same, scale):
    return xlnet_scores(q, k, r, e, u, v, 2 * s, same, scale)


def xlnet_distances(n_query, n_key):
    return np.arange(n_key, -n_query, -1)


def xlnet_distances_reversed(n_query, n_key):
    return np.arange(n_key, -n_query, -1)[::-1]


def xlnet_distances_of_transformer_xl(n_query, n_key):
    return np.arange(n_key - 1, -n_query, -1)


def xlnet_distances_absolute(n_query, n_key):
    return np.abs(np.arange(n_key, -n_query, -1))


def xlnet_attend(q, k, r, e, u, v, s, same, values, scale):
    return softmax(xlnet_scores(q, k, r, e, u, v, s, same, scale)) @ values


def xlnet_attend_causally(q, k, r, e, u, v, s, same, values, scale):
    x = xlnet_scores(q, k, r, e, u, v, s, same, scale)
    return softmax(x, visible(x)) @ values
