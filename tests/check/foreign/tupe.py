"""TUPE as others write it, right and wrong."""

import numpy as np
import torch


def positional_right(p, u_q, u_k, scale):
    p, u_q, u_k = map(torch.from_numpy, (p, u_q, u_k))
    return torch.einsum("nd,hde,mf,hfe->hnm", p, u_q, p, u_k) * scale


def positional_with_projections_exchanged(p, u_q, u_k, scale):
    return scale * ((p @ u_k) @ (p @ u_q).mT)


def positional_scaled_without_the_two(p, u_q, u_k, scale):
    return scale * 2**0.5 * ((p @ u_q) @ (p @ u_k).mT)


def positional_unscaled(p, u_q, u_k, scale):
    return (p @ u_q) @ (p @ u_k).mT


def positional_with_one_projection(p, u_q, u_k, scale):
    return scale * ((p @ u_q) @ (p @ u_q).mT)


def positional_unprojected(p, u_q, u_k, scale):
    return np.broadcast_to(scale * (p @ p.T), (len(u_q), len(p), len(p)))


def reset(t, row, column):
    t = t.copy()
    t[..., :, 0] = column[..., None]
    t[..., 0, :] = row[..., None]
    return t


def reset_right(t, theta_1, theta_2):
    return reset(t, theta_1, theta_2)


def reset_with_thetas_exchanged(t, theta_1, theta_2):
    return reset(t, theta_2, theta_1)


def reset_column_last(t, theta_1, theta_2):
    t = reset(t, theta_1, theta_2)
    t[..., 0, 0] = theta_2
    return t


def reset_row_alone(t, theta_1, theta_2):
    return np.concatenate([0 * t[:, :1] + theta_1[:, None, None], t[:, 1:]], 1)


def reset_not(t, theta_1, theta_2):
    return t


def reset_of_the_first_head(t, theta_1, theta_2):
    return reset(t, theta_1[:1], theta_2[:1])


def reset_column_alone(t, theta_1, theta_2):
    return np.concatenate([0 * t[..., :1] + theta_2[:, None, None], t[..., 1:]], -1)


def reset_of_the_last_token(t, theta_1, theta_2):
    return reset(t[:, ::-1, ::-1], theta_1, theta_2)[:, ::-1, ::-1]


def reset_added(t, theta_1, theta_2):
    return t + reset(0 * t, theta_1, theta_2)


def untie_right(t):
    return reset(t[:, 1:, 1:], t[:, 0, 0], t[:, 1, 1])


def untie_of_a_neighbor(t):
    return reset(t[:, 1:, 1:], t[:, 0, 0], t[:, 1, 0])


def untie_the_last_row(t):
    return reset(t[:, :-1, :-1], t[:, 0, 0], t[:, 1, 1])


def scores_released(q, k, t, theta_1, theta_2, b, scale):
    return scale * (q @ k.mT) + reset(t, theta_1, theta_2) + b


def scores_of_the_paper(q, k, t, theta_1, theta_2, b, scale):
    return scale * (q @ k.mT) + reset(t + b, theta_1, theta_2)


def scores_without_bias(q, k, t, theta_1, theta_2, b, scale):
    return scale * (q @ k.mT) + reset(t, theta_1, theta_2)


def scores_with_the_bias_transposed(q, k, t, theta_1, theta_2, b, scale):
    return scores_released(q, k, t, theta_1, theta_2, b.mT, scale)


def scores_of_one_term(q, k, t, theta_1, theta_2, b, scale):
    return scores_released(q, k, t, theta_1, theta_2, b, scale * 2**0.5)


def scores_with_everything_scaled(q, k, t, theta_1, theta_2, b, scale):
    return scale * (q @ k.mT + reset(t, theta_1, theta_2) + b)


def scores_without_position(q, k, t, theta_1, theta_2, b, scale):
    return scale * (q @ k.mT) + b


def scores_with_the_reset_bias_alone(q, k, t, theta_1, theta_2, b, scale):
    return scale * (q @ k.mT) + t + reset(b, theta_1, theta_2)


def attend_released(q, k, v, t, theta_1, theta_2, b, scale):
    s = scores_released(q, k, t, theta_1, theta_2, b, scale)
    w = np.exp(s - s.max(-1, keepdims=True))
    return w / w.sum(-1, keepdims=True) @ v


def attend_of_the_paper(q, k, v, t, theta_1, theta_2, b, scale):
    s = torch.from_numpy(scores_of_the_paper(q, k, t, theta_1, theta_2, b, scale))
    return s.softmax(-1) @ torch.from_numpy(v)


def attend_adding_after_softmax(q, k, v, t, theta_1, theta_2, b, scale):
    w = torch.from_numpy(scale * (q @ k.mT)).softmax(-1) + torch.from_numpy(reset(t, theta_1, theta_2) + b)
    return w @ torch.from_numpy(v)
