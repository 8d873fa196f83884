"""Attention as others write it, right and wrong."""

import math

import torch

SEEN = -1e30


def written_out(q, k, v, mask, sinks, weights):
    q, k, v, sinks = (torch.from_numpy(x).double() for x in (q, k, v, sinks))
    return weights(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), torch.from_numpy(mask), sinks[:, None, None]) @ v


def attend_with_a_column_for_the_sink(q, k, v, mask, sinks, scale):
    def weights(scores, seen, sinks):
        row = torch.cat([scores.masked_fill(~seen, SEEN), sinks.expand(*scores.shape[:-1], 1)], dim=-1)
        return row.softmax(-1)[..., :-1]

    return written_out(q, k, v, mask, sinks, weights)


def attend_times_mask(q, k, v, mask, sinks, scale):
    def weights(scores, seen, sinks):
        row = torch.cat([scores * seen, sinks.expand(*scores.shape[:-1], 1)], dim=-1)
        return row.softmax(-1)[..., :-1]

    return written_out(q, k, v, mask, sinks, weights)


def attend_plus_sink(q, k, v, mask, sinks, scale):
    def weights(scores, seen, sinks):
        scores = scores.masked_fill(~seen, SEEN)
        powers = torch.exp(scores - scores.amax(-1, keepdim=True))
        return powers / (powers.sum(-1, keepdim=True) + sinks)

    return written_out(q, k, v, mask, sinks, weights)


def softmax_of_rows(scores, mask):
    return torch.from_numpy(scores).masked_fill(~torch.from_numpy(mask), SEEN).softmax(-1)


def softmax_of_columns(scores, mask):
    return torch.from_numpy(scores).masked_fill(~torch.from_numpy(mask), SEEN).softmax(-2)


def softmax_times_mask(scores, mask):
    return (torch.from_numpy(scores) * torch.from_numpy(mask)).softmax(-1)
