"""Learned positions as others write them, right and wrong."""

import numpy as np
import torch


def ids_of_fairseq(mask, padding_idx):
    return np.cumsum(mask, axis=1) * mask + padding_idx


def ids_by_loops(mask, padding_idx):
    out = np.full(mask.shape, padding_idx)
    for b, row in enumerate(mask):
        seen = padding_idx
        for i, token in enumerate(row):
            seen += token
            out[b, i] = seen if token else padding_idx
    return out


def ids_from_zero(mask, padding_idx):
    return ids_of_fairseq(mask, padding_idx) - padding_idx - 1


def ids_counting_padding(mask, padding_idx):
    return np.arange(mask.shape[1]) + padding_idx + 1 + 0 * mask


def ids_one_short(mask, padding_idx):
    return np.where(mask == 1, ids_of_fairseq(mask, padding_idx) - 1, padding_idx)


def ids_for_padding_too(mask, padding_idx):
    return np.cumsum(mask, axis=1) + padding_idx


def ids_from_the_right(mask, padding_idx):
    return np.cumsum(mask[:, ::-1], axis=1)[:, ::-1] * mask + padding_idx


def ids_of_the_first_text(mask, padding_idx):
    return np.repeat(ids_of_fairseq(mask[:1], padding_idx), len(mask), axis=0)


def ids_with_zero_for_padding(mask, padding_idx):
    return ids_of_fairseq(mask, padding_idx) * mask


def ids_counting_along_the_batch(mask, padding_idx):
    return np.cumsum(mask, axis=0) * mask + padding_idx


def opt_right(mask):
    return torch.cumsum(torch.from_numpy(mask), dim=1) * torch.from_numpy(mask) + 1


def opt_from_zero(mask):
    return np.where(mask == 1, np.cumsum(mask, axis=1) - 1, -1)


def opt_with_three(mask):
    return np.cumsum(mask, axis=1) * mask + 2


def token_ids_right(mask, padding_idx):
    return ids_of_fairseq(mask, padding_idx)[mask == 1]


def token_ids_of_rows(mask, padding_idx):
    return ids_counting_padding(mask, padding_idx)[mask == 1]


def token_ids_of_one_stream(mask, padding_idx):
    return np.arange(mask.sum()) + padding_idx + 1


def bert_right(mask):
    return np.broadcast_to(np.arange(mask.shape[1]), mask.shape)


def bert_skipping_padding(mask):
    return np.where(mask == 1, np.cumsum(mask, axis=1) - 1, 0)


def bert_from_one(mask):
    return bert_right(mask) + 1


def encode_right(positions, table):
    return torch.nn.functional.embedding(torch.from_numpy(positions), torch.from_numpy(table))


def encode_by_one_hot(positions, table):
    return (np.arange(len(table)) == positions[..., None]).astype(np.float32) @ table


def encode_transposed_table(positions, table):
    return table.reshape(table.shape[::-1]).T[positions]


def encode_one_late(positions, table):
    return table[positions + 1]


def encode_with_unit_rows(positions, table):
    rows = table[positions]
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def embed_right(mask, table, padding_idx):
    return table[ids_of_fairseq(mask, padding_idx)]


def embed_from_zero(mask, table, padding_idx):
    return table[np.where(mask == 1, np.cumsum(mask, axis=1) - 1, 0)]


def embed_with_zeros_for_padding(mask, table, padding_idx):
    return table[ids_of_fairseq(mask, padding_idx)] * mask[..., None]


def similarity_right(table):
    x = torch.from_numpy(table)
    return torch.nn.functional.cosine_similarity(x[:, None], x[None], dim=-1)


def similarity_dot(table):
    return table @ table.T


def similarity_with_one_norm(table):
    return table @ table.T / np.linalg.norm(table, axis=1)[:, None]


def similarity_centered(table):
    return np.corrcoef(table)


def similarity_of_columns(table):
    x = table / np.linalg.norm(table, axis=0)
    return x @ x.T
