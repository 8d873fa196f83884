"""Errors that were reported and once passed a check, as their projects had them, each beside the correct code."""

from itertools import pairwise

import numpy as np
import torch

SECTIONS = [0] * 2 + [1] * 3 + [2] * 3  # pairs of 16 features that read time, row and column


def turned(x, angle):
    a, b = np.split(x, 2, axis=-1)
    cos, sin = np.cos(angle), np.sin(angle)
    return np.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1).astype(x.dtype)


def theta(width=8):
    return 10000.0 ** (-np.arange(width) / width)


def rotate_by_sections(x, coordinates):
    return turned(x, coordinates[:, SECTIONS] * theta())


def rotate_axes_dealt_out(x, coordinates):
    """mlx-vlm 576: axes in turn, where Qwen2-VL has sections."""
    return turned(x, coordinates[:, np.arange(8) % 3] * theta())


def rotated(x, positions):
    angle = positions[:, None, :, None].double() * torch.from_numpy(theta(4))
    a, b = x.chunk(2, dim=-1)
    cos, sin = angle.cos().float(), angle.sin().float()
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


def rotated_and_severed(x, positions):
    """candle 3568: the kernel returns a tensor that has no way back to x."""
    return rotated(x.detach(), positions)


@torch.no_grad()
def rotated_for_inference(x, positions):
    return rotated(x, positions)


def rotated_in_numpy(x, positions):
    return torch.from_numpy(rotated(x.detach(), positions).numpy())


SLOPES = 2.0 ** (-8 * np.arange(1, 9) / 8)


def bias(query_positions, key_positions):
    offsets = key_positions[:, None, None, :] - query_positions[:, None, :, None]
    return (SLOPES[:, None, None] * offsets).astype(np.float32)


def bias_in_bfloat16(query_positions, key_positions):
    """vllm-fork 503 of HabanaAI: the table of biases is bfloat16; distances beyond 256 share values."""
    made = torch.from_numpy(bias(query_positions, key_positions)).to(torch.bfloat16)
    return made.float().numpy()


def looked_up(positions, table):
    return table[positions]


def looked_up_by_halves(positions, table):
    """text-generation-inference 1064: position ids in half precision; from 2049 on odd ones are lost."""
    return table[positions.astype(np.float16).astype(int)]


def looked_up_by_bfloat16(positions, table):
    return table[torch.from_numpy(positions).to(torch.bfloat16).long().numpy()]


def yarn_tables(positions, far=np.inf):
    """YaRN with factor 4 from 4096 positions, without rounding of the ramp's ends."""
    pairs = np.arange(8)
    low, high = (16 * np.log(4096 / (turns * 2 * np.pi)) / (2 * np.log(10000.0)) for turns in (32, 1))
    kept = 1 - np.clip((pairs - max(low, 0)) / (min(high, 15) - max(low, 0)), 0, 1)
    angle = positions[..., None] * (theta() * (kept + (1 - kept) / 4))
    angle = np.where(np.abs(angle) > far, 0, angle)
    magnitude = 0.1 * np.log(4) + 1
    return (magnitude * np.concatenate([np.cos(angle), np.sin(angle)], axis=-1)).astype(np.float32)


def yarn_tables_that_end(positions):
    """The reduction of the angle ends at 2^17 rad."""
    return yarn_tables(positions, 131072.0)


def seen(query_positions, key_positions, window=16, sinks=4):
    i, j = query_positions[:, None], key_positions
    return ((j <= i) & ((i - j < window) | (j < sinks))).astype(int)


def seen_with_3_sinks(query_positions, key_positions):
    return seen(query_positions, key_positions, sinks=3)


def seen_with_7_sinks(query_positions, key_positions):
    return seen(query_positions, key_positions, sinks=7)


def rotate_right(x, positions):
    return turned(x, positions[:, None, :, None] * theta(4))


def rotate_until_3_000_000(x, positions):
    return rotate_right(x, np.minimum(positions, 3_000_000))


def rotate_200_rows(x, positions):
    y = rotate_right(x, positions)
    y[:, :, 200:] = 0
    return y


def rotate_64_heads(x, positions):
    y = rotate_right(x, positions)
    y[:, 64:] = 0
    return y


class CachedByAddress:
    def __init__(self):
        self.known = {}

    def rotate(self, x, positions):
        kept, angle = self.known.get(positions.ctypes.data, (None, None))
        if kept is not positions:
            kept, angle = positions, positions[:, None, :, None] * theta(4)
            self.known[positions.ctypes.data] = kept, angle
        return turned(x, angle)


def attend(q, k, v, mask):
    s = np.where(mask, q @ np.swapaxes(k, -1, -2) / np.float32(2), -np.inf)
    weights = np.exp(s - s.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ v


def attend_causal_too(q, k, v, mask):
    return attend(q, k, v, np.tri(*mask.shape[-2:], mask.shape[-1] - mask.shape[-2], dtype=bool) & mask)


def attend_keys_that_any_query_sees(q, k, v, mask):
    """Padding is read from the mask, the triangle is the kernel's own."""
    first = np.argmax(mask[..., -1:, :], axis=-1)[..., None]
    causal = np.tri(*mask.shape[-2:], mask.shape[-1] - mask.shape[-2], dtype=bool)
    return attend(q, k, v, causal & (np.arange(mask.shape[-1]) >= first))


def inverse(dim, base=10000.0):
    return base ** (-np.arange(0, dim, 2) / dim)


def rotate_all_times_the_magnitude(x, positions):
    """mlx-lm, SuScaledRoPE of Phi-4-mini: the factor multiplies x, of which 72 of 96 features turn."""
    x = x * np.float32(1.19024)
    first = turned(x[..., :72], positions[:, None, :, None] * inverse(72))
    return np.concatenate([first, x[..., 72:]], axis=-1)


def llama3_blended_as_wavelengths(dim):
    """mlx-examples 907: wavelengths are blended, and the share runs backwards."""
    wavelength = 2 * np.pi / inverse(dim, 500000.0)
    share = (wavelength - 2048) / (8192 - 2048)
    between = wavelength * ((1 - share) * 8 + share)
    return 2 * np.pi / np.where(wavelength < 2048, wavelength, np.where(wavelength > 8192, 8 * wavelength, between))


def yarn_without_2_pi(dim):
    def index(turns):
        return dim * np.log(4096 / turns) / (2 * np.log(10000.0))

    low, high = np.floor(index(32)), np.ceil(index(1))
    share = np.clip((np.arange(dim // 2) - low) / (high - low), 0, 1)
    return inverse(dim) / 4 * share + inverse(dim) * (1 - share)


def mask_of_falling_positions(lengths):
    """ms-swift 9904: a document begins where the position falls."""
    positions = np.concatenate([np.arange(n) for n in lengths])
    of = np.cumsum(np.r_[False, positions[1:] < positions[:-1]])
    return (of[:, None] == of) & np.tri(len(of), dtype=bool)


def sampled_y_before_x(table):
    """torchtitan 4244: grid_sample reads (x, y) and receives (y, x)."""
    y, x = (torch.arange(4) + 0.5) / 4 * 2 - 1, (torch.arange(2) + 0.5) / 2 * 2 - 1
    grid = torch.stack(torch.meshgrid(y, x, indexing="ij"), dim=-1)[None]
    places = torch.nn.functional.grid_sample(table.permute(2, 0, 1)[None], grid, padding_mode="border", align_corners=False)
    return places[0].permute(1, 2, 0)


def resized(table):
    return torch.nn.functional.interpolate(table.permute(2, 0, 1)[None], size=(4, 2), mode="bilinear", align_corners=False)[0]


def resized_and_permuted(table):
    return resized(table).permute(1, 2, 0)


def resized_and_viewed(table):
    return resized(table).contiguous().view(4, 2, -1)


def places_without_rows(parts):
    """vllm 29425: the row of a patch is set to that of the first."""
    found, start = [], 0
    for frames, height, width in parts.tolist():
        rows, columns = height // 2, width // 2
        for place in np.ndindex(*((frames, rows, columns) if height else (frames, 1, 1))):
            found.append(start + np.array([place[0], 0, place[2]] if height else [place[0]] * 3))
        start += max(frames, rows, columns)
    return np.array(found)


def weighted(g, q, k, v, mask):
    """The weights of attention and their gradients; of a query that sees nothing none."""
    s = np.where(mask, np.einsum("bhid,bhjd->bhij", q, k) / 2, -1e30)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return np.where(mask, e / e.sum(axis=-1, keepdims=True), 0), np.einsum("bhid,bhjd->bhij", g, v)


def gradient_of_scores(g, q, k, v, mask):
    a, da = weighted(g, q, k, v, mask)
    return (a * (da - (a * da).sum(axis=-1, keepdims=True))).astype(np.float32)


def gradient_by_the_diagonal(g, q, k, v, mask):
    """cTensor 31: each weight is taken for a function of its own score."""
    a, da = weighted(g, q, k, v, mask)
    return ((a - a * a) * da).astype(np.float32)


def convolved(x, kernel, bias):
    w = kernel.shape[1]
    before = np.concatenate([np.zeros((len(x), w - 1, x.shape[2])), x], axis=1)
    return sum(before[:, t : t + x.shape[1]] * kernel[:, t] for t in range(w)) + bias


def convolved_in_texts(x, kernel, bias, boundaries):
    parts = [convolved(x[:, a:b], kernel, bias) for a, b in pairwise(boundaries)]
    return np.concatenate(parts, axis=1).astype(np.float32)


def convolved_in_shards(x, kernel, bias, boundaries):
    """prime-rl 3002: the row is cut in two, and each half begins anew."""
    middle = -(-x.shape[1] // 2)
    return convolved_in_texts(x, kernel, bias, sorted({*boundaries.tolist(), middle}))


def mask_of_documents(lengths, more=()):
    edges = sorted({*np.cumsum(lengths).tolist(), *more})
    of = np.searchsorted(edges, np.arange(edges[-1]), side="right")
    return (of[:, None] == of) & np.tri(len(of), dtype=bool)


def mask_cut_after_a_token(lengths):
    return mask_of_documents(lengths, [1])


def remembered(k, v, beta, log_gates, state, step):
    s = state.astype(float)
    for t in range(k.shape[2]):
        s = np.exp(log_gates[:, :, t, :, None].astype(float)) * s
        s = s + step(s, k[:, :, t], v[:, :, t], beta[:, :, t, None])
    return s.astype(np.float32)


def outer(x, y):
    return np.einsum("bhd,bhe->bhde", x, y)


def memory_right(*given):
    return remembered(*given, lambda s, k, v, b: outer(k, b * (v - np.einsum("bhde,bhd->bhe", s, k))))


def memory_of_keys(*given):
    """flash-linear-attention 623: what the value recalls is subtracted from the key."""
    return remembered(*given, lambda s, k, v, b: outer(b * (k - np.einsum("bhde,bhe->bhd", s, v)), v))


def memory_asked_by_values(*given):
    return remembered(*given, lambda s, k, v, b: outer(k, b * (v - np.einsum("bhde,bhd->bhe", s, v))))


def memory_written_across(*given):
    return remembered(*given, lambda s, k, v, b: outer(b * (v - np.einsum("bhde,bhd->bhe", s, k)), k))


def beit(table, y, x):
    """BEiT's table of a window of 3 by 4 with [CLS]; of an index beyond it, zeros, as TensorFlow's gather has on a GPU."""
    n, last = len(y), len(table)
    index = np.zeros((n + 1, n + 1), int)
    index[1:, 1:] = (y[:, None] - y + 2) * 7 + x[:, None] - x + 3
    index[0], index[:, 0], index[0, 0] = last - 3, last - 2, last - 1
    known = (index >= 0) & (index < last)
    return np.moveaxis(np.where(known[..., None], table[np.where(known, index, 0)], 0), -1, 0).astype(np.float32)


def beit_right(coordinates, table):
    return beit(table, *coordinates.T)


def beit_down_the_columns(coordinates, table):
    t = coordinates @ [4, 1]
    return beit(table, t % 3, t // 3)


def beit_with_width_first(coordinates, table):
    """keras_cv_attention_models 26: meshgrid of TensorFlow puts width first."""
    t = coordinates @ [4, 1]
    return beit(table, t // 3, t % 3)


def places_in(parts, grid=None, generated=None):
    """Places of text and patches; `grid` for all images, and `generated` for the last text, from the tokens before it."""
    found, start = [], 0
    for m, (frames, height, width) in enumerate(parts.tolist()):
        if not height:
            start = len(found) if generated and m == len(parts) - 1 else start
            found += [[start + i] * 3 for i in range(frames)]
            start += frames
            continue
        rows, columns = grid or (height // 2, width // 2)
        tokens = frames * height * width // 4
        found += [[start + i // (rows * columns), start + i // columns % rows, start + i % columns] for i in range(tokens)]
        start += max(frames, rows, columns)
    return np.array(found)


def places_in_a_fixed_grid(parts):
    """TensorRT-Model-Connect 768: the size that the model was built for."""
    return places_in(parts, grid=(4, 4))


def places_generated_by_tokens(parts):
    """imp 1178: the prompt is right, what is generated is counted by tokens."""
    return places_in(parts, generated=True)
