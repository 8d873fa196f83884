"""Values that the released code of other projects gave in float64, on inputs from a formula; posref computed none of them.

Inputs are X(shape, t)[n] = ((7 n^2 + 31 n + 17 t) mod 251 - 125) / 64, `painted`. A row has entries with their index in memory,
the sum of all entries, and the sum of entry n times (1 + n mod 13) / 16, with twelve digits. The page of each system names the
files and revisions. Some code was not run but written again: BEiT's index, Sandwich, the skew of Music Transformer, offsets of
position ids, and STRING, which has no code. Formulas that a page states and no function computes stand here as on the page:
RetNet, KERPLE's weight form, FoX's first gates, the scale of queries in ReRoPE.

For schedules the entries are t = 1, n/4, n/2, 3n/4 and n - 1, from the functions of transformers 5.23.0 in float64; for
LongRoPE, whose exponents are float32 there, from 40 digits. PoPE, FoPE and the schedules have no weighted sum.

Not compared:
- swin1.out, swin1.out_masked, swin2.out: the weights of the projections are not known; a search over tags below 12 and scales
  of powers of 2 found none.
- wavlm.bucket_at_past: many lists of 13 distances have its sums; the tests of t5 have the starts of all buckets.
- music.skewed: above the diagonal it has numbers of other rows, and posref has zeros; below it is music.lower_only.
- selfextend.llamacpp_positions: posref has no function for it. interp.table4x4, shape.test_ids: nothing in them is posref's.
"""

import numpy as np
import pytest

from posref import attention, position_ids
from posref.absolute import resizing, sinusoidal, sinusoidal_2d
from posref.relative import (
    alibi,
    cope,
    decomposed,
    fire,
    forgetting,
    kerple,
    sandwich,
    stick_breaking,
    swin,
    t5,
    transformer_xl,
)
from posref.rotary import axes, fope, generators, path, pope, rope, scaling, xpos
from posref.state import retention
from tests.painted import painted


def grid(height, width):
    return np.array([*np.ndindex(height, width)])


N6, N20, GRID, CAUSAL = np.arange(6), np.arange(20), grid(2, 3), np.tri(6, dtype=bool)
TABLE = painted((4, 4, 1), 1)
past = np.tril  # the released biases are 0 above the diagonal, ours are not


def scores(shape, *, scale=0.5):
    return scale * painted(shape, 1) @ painted(shape, 2).swapaxes(-1, -2)


def by_head(shape, tag):
    """(n, h, ..) to (h, n, ..), with the key's heads repeated for four query heads."""
    x = np.moveaxis(painted(shape, tag), 1, 0)
    return np.repeat(x, 4 // len(x), axis=0)


# images


def log_spaced(*trained):
    places = np.stack(np.meshgrid(np.arange(-1, 2), np.arange(-2, 3), indexing="ij"), axis=-1)
    return np.stack([swin.log_spaced(places[..., a], window=trained[a]) for a in (0, 1)], axis=-1)


def continuous(height, width):
    network = painted((512, 2), 1), painted((512,), 2), painted((2, 512), 3) / 512
    return swin.continuous_bias(GRID, *network, height=height, width=width)


def beit(places, table, window):
    return swin.bias(swin.rows_with_cls(places, height=window[0], width=window[1]), table)


def resized(table, old, new):
    """transformers reads the table as one of `old` sides, and stretches it."""
    patches = resizing.resize(table[:-3].reshape(*old, -1), *new, convention="beit")
    return np.concatenate([patches.reshape(-1, table.shape[-1]), table[-3:]])


def axis(queries, keys):
    return decomposed.rows(np.arange(queries), np.arange(keys), query_size=queries, key_size=keys)


def between(query, key):
    places = grid(*query).T, grid(*key).T
    return [decomposed.rows(places[0][a], places[1][a], query_size=query[a], key_size=key[a]) for a in (0, 1)]


def mvit():
    terms = decomposed.bias(painted((2, 17, 4), 1)[:, 1:], painted((7, 4), 2), painted((7, 4), 3), *between((4, 4), (2, 2)))
    return np.pad(terms, ((0, 0), (1, 0), (1, 0)))  # [CLS] has none


COUNTED = sinusoidal_2d.counted(np.arange(3)[:, None] + 4 * (np.arange(4) > 2) < 2)


def detr(places):
    return np.moveaxis(sinusoidal_2d.encode(places, sinusoidal.frequencies(4), convention="detr"), -1, 0)


# biases and weights


def power(p, a):
    return past(kerple.bias(N6, N6, np.array(p), np.array(a), form="power"))


def fires(threshold):
    x = fire.progress(N6, N6, c=0.1, threshold=threshold, eps=1e-6)
    return fire.network(x, painted((4,), 1), painted((4,), 2) / 8, painted((2, 4), 3).T, painted((2,), 4) / 8)


def copes(convention):
    q, k, table = painted((2, 6, 4), 1), painted((2, 6, 4), 2), painted((4, 4), 4).T
    return attention.softmax(cope.scores(q, k, table, CAUSAL, scale=0.5, convention=convention), CAUSAL)


def forgets(window):
    gates = forgetting.log_sigmoid(np.moveaxis(painted((6, 4), 4), 1, 0))
    mask = CAUSAL & attention.window_mask(N6, N6, width=window)
    q, k, v = by_head((6, 4, 4), 1), by_head((6, 2, 4), 2), by_head((6, 2, 4), 3)
    return np.moveaxis(attention.attend(q, k, v, scale=0.5, bias=forgetting.bias(gates, form="difference"), mask=mask), 0, 1)


def sticks(diagonal):
    z, v, mask = scores((2, 6, 4)), painted((2, 6, 4), 3), np.tri(6, 6, diagonal, dtype=bool)
    out, left = stick_breaking.weights(z, mask) @ v, stick_breaking.remainder(z, mask)
    return out, left, out + left[..., None] * v


def reflects(scale_of_gate):
    w, beta = by_head((7, 2, 4), 4), 2 * np.exp(forgetting.log_sigmoid(by_head((7, 2), 5)))
    w = w / np.linalg.norm(w, axis=-1, keepdims=True)
    gates = forgetting.log_sigmoid(np.moveaxis(painted((7, 4), 6), 1, 0))
    s = path.scores(by_head((7, 4, 4), 1), by_head((7, 2, 4), 2), w, beta, scale=0.5)
    s = s + scale_of_gate * forgetting.bias(gates, form="difference")
    return np.moveaxis(attention.softmax(s, np.tri(7, dtype=bool)) @ by_head((7, 2, 4), 3), 0, 1)


def gate():
    x = np.moveaxis(painted((5, 2, 4), 4), 1, 0)
    return t5.gate(x, painted((8, 4), 1), painted((8,), 2) / 8, np.array([1.0, 2.0]))


def music(table):
    return painted((2, 5, 4), 1) @ table.swapaxes(-1, -2)


# turns


def stretched(side, tag):
    given = *rope.tables(N6, rope.frequencies(8)), xpos.scales(N6, 8, center=3)
    return xpos.rotate(painted((6, 8), tag), *given, layout="interleaved", side=side)


LOG_DECAY = np.log(retention.decays(2))


def retained():
    """D_ij as torchscale normalizes it: a power of the distance is ALiBi's line under the exponential."""
    kept = past(np.exp(alibi.bias(N6, N6, -LOG_DECAY, form="signed")))
    return kept / np.sqrt(kept.sum(axis=-1, keepdims=True))


def exponential(places, made):
    return generators.exponential(np.array(places, dtype=float), made, terms=18, halvings=8)


def antisymmetric(shape):
    """ComRoPE reads both triangles."""
    return painted(shape, 1) - painted(shape, 1).swapaxes(-1, -2)


def whole(blocks):
    """(axes, count, size, size) with each block on the diagonal: (axes, count size, count size)."""
    return np.stack([generators.partition(each, 1)[0] for each in blocks])


MIDDLES = np.concatenate([[[0.5, 0.5]], (GRID + 0.5) / [2, 3]])
SCALED = np.repeat(painted((2, 2), 2), 4, axis=-1)[..., None]  # a number for each axis and block, in the rows of that block


def turned(heads):
    return np.stack([exponential(MIDDLES, made) for made in heads], axis=1)


def lie():
    made = generators.skew(painted((2, 2, 4, 4), 1))
    places = np.concatenate([[[0, 0]], GRID / [1, 2]])  # [CLS] is not turned
    return np.stack([exponential(places, made[:, block]) for block in (0, 1)], axis=1)


COLUMNS, MIXED = GRID[:, ::-1], painted((2, 2, 4), 1).swapaxes(0, 1) / 4
CAYLEY = generators.cayley(antisymmetric((6, 6)) / 4)


def at(position):
    return CAYLEY @ rope.matrix(position, rope.frequencies(6), layout="interleaved") @ CAYLEY.T


def fopes(convention):
    """Two heads of width 16, five tokens, length 64; the step-eye and 0.075 of noise."""
    w = fope.frequencies(16, length=64)
    c, s = (fope.step_eye(3, 3) + 0.075 * painted((2, 3, 3), tag) for tag in (1, 2))
    tables = fope.tables(np.arange(5), w, c, s, dim=16, convention=convention)
    q, k = (rope.rotate(painted((2, 5, 16), tag), *tables, layout="half") for tag in (3, 4))
    return attention.scores(q, k, scale=1)


def popes(layout):
    """x-transformers 2.31.10: five tokens, two heads of width 4."""
    w, n = pope.frequencies(4), np.arange(5)
    q = pope.encode(painted((2, 5, 4), 2), *rope.tables(n, w), layout=layout)
    k = pope.encode(painted((2, 5, 4), 3), *pope.tables(n, w, pope.clamp(painted((2, 4), 1))), layout=layout)
    return attention.scores(q, k, scale=1)


# schedules

SHORT, LONG = 1 + 0.05 * np.arange(48), 1 + 1.25 * np.arange(48)


def llama3(dim, factor, high=4.0):
    w = rope.frequencies(dim, 500000.0)
    return scaling.llama3(w, factor=factor, low_freq_factor=1.0, high_freq_factor=high, original_length=8192)


def dynamic(base, length, original_length):
    return scaling.dynamic_ntk(rope.frequencies(128, base), factor=2.0, length=length, original_length=original_length)


def yarn(dim, base, factor, original_length, truncate=True):
    w = rope.frequencies(dim, base)
    return scaling.yarn(w, factor=factor, original_length=original_length, base=base, truncate=truncate)


# positions


def extended(n, **given):
    return -past(position_ids.self_extend(N20[:n], N20[:n], **given))


LAMBDA = position_ids.lambda_mask(N20[:11], N20[:11], window=4, sinks=2)


def infinite():
    """The key stands still and the query is turned by the distance, at most 4."""
    distance = -position_ids.rerope(N20[:11], N20[:11], window=4)
    q, k, v = (painted((11, 4), tag) for tag in (1, 2, 3))
    queries = rope.rotate(np.repeat(q[:, None], 11, axis=1), *rope.tables(distance, rope.frequencies(4)), layout="half")
    return attention.softmax((queries * k).sum(axis=-1) / 2, LAMBDA) @ v


MADE = {
    "swin1.index": lambda: swin.rows(GRID, height=2, width=3),
    "swin1.bias": lambda: swin.bias(swin.rows(GRID, height=2, width=3), painted((15, 2), 1)),
    "swin2.coords": lambda: log_spaced(2, 3),
    "swin2.coords_pretrained12": lambda: log_spaced(12, 12),
    "swin2.bias": lambda: continuous(2, 3),
    "swin2.bias_pretrained12": lambda: continuous(12, 12),
    "beit.index_2x3": lambda: swin.rows_with_cls(GRID, height=2, width=3),
    "beit.bias_2x3": lambda: beit(GRID, painted((18, 2), 1), (2, 3)),
    "beit.hf_bias_2x3_as_shipped": lambda: beit(GRID, resized(painted((18, 2), 1), (5, 3), (3, 5)), (2, 3)),
    "beit.hf_resized_2x2_to_3x3": lambda: beit(grid(3, 3), resized(painted((12, 2), 1), (3, 3), (5, 5)), (3, 3)),
    "sam.bias_2x3": lambda: decomposed.bias(
        painted((2, 6, 4), 1), painted((3, 4), 2), painted((5, 4), 3), *between((2, 3), (2, 3))
    ),
    "sam.resized_3_to_7": lambda: decomposed.resize(painted((3, 4), 2), 7)[axis(4, 4), 0],
    "sam.resized_9_to_5": lambda: decomposed.resize(painted((9, 4), 2), 5)[axis(3, 3), 0],
    "mvit.q4x4_k2x2_cls": lambda: mvit(),
    "mvit.q3x3_k2x2_rows": lambda: painted((5, 1), 2)[axis(3, 2), 0],
    "mae.d8_grid3_cls": lambda: np.pad(
        sinusoidal_2d.encode(grid(3, 3), sinusoidal.frequencies(4), convention="mae"), ((1, 0), (0, 0))
    ),
    "detr.n4_norm_mask3x4": lambda: detr(sinusoidal_2d.normalized(COUNTED)),
    "detr.n4_plain_mask3x4": lambda: detr(COUNTED),
    "interp.bicubic_false_6x6": lambda: resizing.resize(TABLE, 6, 6, convention="transformers"),
    "interp.bicubic_antialias_6x6": lambda: resizing.resize(TABLE, 6, 6, convention="timm"),
    "interp.bicubic_antialias_3x3": lambda: resizing.resize(TABLE, 3, 3, convention="timm"),
    "interp.bicubic_false_3x3": lambda: resizing.resize(TABLE, 3, 3, convention="transformers"),
    "interp.bilinear_corners_6x6": lambda: resizing.resize(TABLE, 6, 6, convention="vilt"),
    "interp.bilinear_false_6x6": lambda: resizing.resize(TABLE, 6, 6, convention="beit"),
    "interp.dino_offset0.1_6x6": lambda: resizing.resize(TABLE, 6, 6, convention="dino"),
    "interp.scipy_zoom_order1_6x6": lambda: resizing.resize(TABLE, 6, 6, convention="vilt"),
    "kerple.log_n6": lambda: past(kerple.bias(N6, N6, np.array([1.5, 0.01]), np.array([0.25, 3.0]), form="log")),
    "kerple.power_n6": lambda: power([0.5, 2.0], [0.25, 3.0]),
    "kerple.power_weighted_n6": lambda: (
        painted((2, 6, 6), 1) * np.exp(power([1.0, 0.5], [0.1, 0.2])) + power([0.5, 1.0], [0.25, 3.0])
    ),
    "sandwich.nemo_n6_d8_H4": lambda: sandwich.bias(N6, N6, sandwich.frequencies(8), sandwich.slopes(4)),
    "sandwich.nemo_n3000_d128_H12_row": lambda: sandwich.bias(
        np.array([0]), 500 * np.arange(7), sandwich.frequencies(128), sandwich.slopes(12)
    ),
    "fire.n6_L512": lambda: fires(512.0),
    "fire.n6_L3": lambda: fires(3.0),
    "cope.official_default": lambda: copes("official") @ painted((2, 6, 4), 3),
    "cope.official_weights_default": lambda: copes("official"),
    "cope.official_nodiv": lambda: copes("nodiv") @ painted((2, 6, 4), 3),
    "cope.official_weights_nodiv": lambda: copes("nodiv"),
    "cope.positions_unclamped": lambda: cope.positions(CAUSAL * np.exp(forgetting.log_sigmoid(scores((2, 6, 4)))), rows=7),
    "cope.xtransformers_weights": lambda: copes("nodiv"),
    "fox.n6_hq4_hkv2_d4": lambda: forgets(6),
    "fox.window3": lambda: forgets(3),
    "fox.bias_n6": lambda: past(forgetting.bias(forgetting.log_sigmoid(painted((6, 4), 4).T), form="difference")),
    "fox.bias_init_T2_512_H4": lambda: -np.log(np.expm1(1 / np.geomspace(2, 512, 4))),
    "stick.out_default": lambda: sticks(-1)[0],
    "stick.remainder_default": lambda: sticks(-1)[1],
    "stick.out_plus_rem_v_default": lambda: sticks(-1)[2],
    "stick.out_current": lambda: sticks(0)[0],
    "stick.remainder_current": lambda: sticks(0)[1],
    "stick.out_plus_rem_v_current": lambda: sticks(0)[2],
    "path.out_nogate": lambda: reflects(0),
    "path.out_gate_scaled": lambda: reflects(0.5),
    "path.out_gate_unscaled_hypothetical": lambda: reflects(1),
    "wavlm.gate": lambda: gate(),
    "wavlm.bias_gated": lambda: (
        gate()[..., None] * t5.bias(N6[:5], N6[:5], painted((320, 2), 3), max_distance=800, bidirectional=True)
    ),
    "music.lower_only": lambda: transformer_xl.shift(music(painted((2, 5, 4), 2))),
    "music.length5_table3": lambda: transformer_xl.shift(music(np.pad(painted((2, 3, 4), 2), ((0, 0), (2, 0), (0, 0))))),
    "xpos.torchscale_scale": lambda: xpos.scales(np.array(512), 8, center=0),
    "xpos.torchscale_q": lambda: stretched("query", 1),
    "xpos.torchscale_k": lambda: stretched("key", 2),
    "xpos.torchscale_scores": lambda: stretched("query", 1) @ stretched("key", 2).T,
    "retnet.angle_dh8": lambda: np.repeat(sinusoidal.frequencies(8, divisor="dim - 2"), 2),
    "retnet.log_decay_H2": lambda: LOG_DECAY,
    "retnet.mask_n6": lambda: retained(),
    "liere.R_2x3_gen4": lambda: lie(),
    "comrope.positions_2x3_cls": lambda: MIDDLES,
    "comrope.ap_R": lambda: turned(generators.partition(blocks, 2) for blocks in antisymmetric((2, 4, 2, 2))),
    "comrope.ld_R": lambda: turned(SCALED * whole(blocks) for blocks in antisymmetric((2, 1, 2, 4, 4))),
    "comrope.liere_baseline_R": lambda: turned(whole(blocks) for blocks in antisymmetric((2, 2, 2, 4, 4))),
    "ropemixed.freqs_d8_H2_norotate": lambda: generators.mixed(rope.frequencies(4, 10.0), np.zeros(2)).swapaxes(0, 1),
    "ropemixed.cos_3x2": lambda: np.cos(COLUMNS @ MIXED),
    "ropemixed.sin_3x2": lambda: np.sin(COLUMNS @ MIXED),
    "ropemixed.axial_cos_d8_3x2": lambda: np.cos(
        axes.angles(COLUMNS, np.tile(rope.frequencies(4, 100.0), 2), axes.sections(np.array([2, 2])))
    ),
    "selfextend.prefill_n12_w4_g2": lambda: extended(12, group=2, window=4, phase="prefill"),
    "selfextend.prefill_n12_w5_g2": lambda: extended(12, group=2, window=5, phase="prefill"),
    "selfextend.decode_n12_w5_g2": lambda: extended(12, group=2, window=5, phase="decode"),
    "rerope.n10_w4": lambda: -past(position_ids.rerope(N20[:10], N20[:10], window=4)),
    "rerope.leaky_n10_w4_k16": lambda: -past(position_ids.rerope(N20[:10], N20[:10], window=4, leak=16)),
    "rerope.logscale_T8_n12": lambda: np.maximum(1, np.log(N20[:12] + 1) / np.log(8)),
    "dca.n20_chunk6_local2": lambda: -past(position_ids.dual_chunk(N20, N20, chunk_size=6, local=2)),
    "streaming.kept_after_9_start2_recent4": lambda: position_ids.streaming(9, sinks=2, window=4).kept,
    "streaming.kept_for_1_coming": lambda: position_ids.streaming(9, sinks=2, window=3).kept,
    "lminf.out_n11_local4_global2": lambda: infinite(),
    "lminf.offsets": lambda: np.where(LAMBDA, -position_ids.rerope(N20[:11], N20[:11], window=4), -1),
    "nope.flag_average_n7": lambda: attention.attend(
        *np.zeros((2, 7, 1)), np.eye(7)[:, :1], scale=1, mask=np.tri(7, dtype=bool)
    ),
    "string.cayley_P_d6": lambda: CAYLEY,
    "string.cayley_score_3_7": lambda: (at(3) @ painted((6,), 2)) @ (at(7) @ painted((6,), 3)),
    "string.circulant_R_2_3": lambda: exponential([2, 3], generators.circulant(np.repeat(painted((1, 6), 1), 2, axis=0) / 8)),
    "linear.vicuna": lambda: scaling.linear(rope.frequencies(128), factor=4.0),
    "linear.gemma3": lambda: scaling.linear(rope.frequencies(256, 1e6), factor=8.0),
    "dynamic.4096": lambda: dynamic(1e4, 4096, 2048),
    "dynamic.8192": lambda: dynamic(1e4, 8192, 2048),
    "dynamic.64k": lambda: dynamic(1e6, 65536, 32768),
    "llama3.8b": lambda: llama3(128, 8.0),
    "llama3.1b": lambda: llama3(64, 32.0),
    "llama3.scout": lambda: llama3(128, 16.0, high=1.0),
    "yarn.qwen": lambda: yarn(128, 1e6, 4.0, 32768),
    "yarn.llama2": lambda: yarn(128, 1e4, 16.0, 4096),
    "yarn.deepseek": lambda: yarn(64, 1e4, 40.0, 4096),
    "yarn.gpt_oss": lambda: yarn(64, 150000.0, 32.0, 4096, truncate=False),
    "yarn.gpt_oss_cut": lambda: yarn(64, 150000.0, 32.0, 4096),
    "yarn.olmo3": lambda: yarn(128, 5e5, 8.0, 8192),
    "yarn.ministral3": lambda: yarn(128, 1e6, 16.0, 16384),
    "proportional.gemma4": lambda: scaling.proportional(rope.frequencies(512, 1e6), fraction=0.25),
    "longrope.short": lambda: scaling.longrope(rope.frequencies(96), factors=SHORT),
    "longrope.long": lambda: scaling.longrope(rope.frequencies(96), factors=LONG),
    "yarn.magnitude_4": lambda: scaling.yarn_magnitude(4.0),
    "yarn.magnitude_16": lambda: scaling.yarn_magnitude(16.0),
    "yarn.magnitude_32": lambda: scaling.yarn_magnitude(32.0),
    "yarn.magnitude_8": lambda: scaling.yarn_magnitude(8.0),
    "longrope.magnitude_32": lambda: scaling.longrope_magnitude(32.0, original_length=4096),
    "yarn.deepseek_v3_scale": lambda: 192**-0.5 * scaling.yarn_magnitude(40.0) ** 2,
    "yarn.deepseek_v2_lite_scale": lambda: 192**-0.5 * scaling.yarn_magnitude(40.0, mscale=0.707) ** 2,
    "fope.frequencies": lambda: fope.frequencies(16, length=64),
    "fope.released": lambda: fopes("released"),
    "fope.zero_phase": lambda: fopes("zero_phase"),
    "pope.phases": lambda: pope.clamp(painted((2, 4), 1)),
    "pope.half": lambda: popes("half"),
    "pope.interleaved": lambda: popes("interleaved"),
}
SCHEDULES = ("linear.", "dynamic.", "llama3.", "yarn.", "proportional.", "longrope.")

# name, entries by their places, the sum of all and the weighted sum if they were printed
PRINTED = """
swin1.index 0:7 18:12 35:7 252 105.4375
swin1.bias 0:-0.921875 36:-1.1875 71:-1.1875 -36.296875 -15.544921875
swin2.coords 0:-1.05664166715 15:0 29:1.05664166715 4.4408920985e-16 0.4139072274
swin2.coords_pretrained12 0:-0.262831964935 15:0 29:0.431818627842 -1.11022302463e-16 0.0774386539875
swin2.bias 0:8.75903203143 36:7.5318408298 71:7.5318408298 587.352219412 245.950540815
swin2.bias_pretrained12 0:8.75903203143 36:7.5318408298 71:7.5318408298 586.851460857 245.677593827
beit.index_2x3 0:17 24:7 48:7 455 179.8125
beit.bias_2x3 0:0.03125 49:0.21875 97:-1.1875 -20.296875 -12.6328125
beit.hf_bias_2x3_as_shipped 0:0.03125 49:0.21875 97:-1.1875 -21.671875 -12.5768880208
beit.hf_resized_2x2_to_3x3 0:-0.84375 100:0.640625 199:-0.234375 -13.16875 -4.6828515625
sam.bias_2x3 0:0.29052734375 36:0.172607421875 71:0.182861328125 51.6403808594 15.5199890137
sam.resized_3_to_7 0:-1.65625 8:1.14285714286 15:-1.65625 -12.5 -3.82268415179
sam.resized_9_to_5 0:-0.96875 4:-0.96875 8:-0.96875 -3.0375 -1.00390625
mvit.q4x4_k2x2_cls 0:0 85:0 169:2.37329101562 -64.466796875 -20.7196960449
mvit.q3x3_k2x2_rows 0:-0.828125 3:-0.828125 5:-0.015625 -2.09375 -0.1279296875
mae.d8_grid3_cls 0:0 40:0.841470984808 79:0.999800006667 35.4280343284 15.9402319762
detr.n4_norm_mask3x4 0:1.57079554176e-06 48:0.86602575285 95:1 36.824345642 15.6580252513
detr.n4_plain_mask3x4 0:0.841470984808 48:0.841470984808 95:1 38.7849019129 16.0222602433
interp.bicubic_false_6x6 0:-1.71210244261 18:1.06889663508 35:-1.43967974627 -13.0358072917 -3.75125249227
interp.bicubic_antialias_6x6 0:-1.70735586911 18:1.0927049068 35:-1.37441298044 -13.1409071852 -3.94216913395
interp.bicubic_antialias_3x3 0:-1.75780820447 4:-0.247418283046 8:-0.726238617262 -3.23011597614 -0.809234732364
interp.bicubic_false_3x3 0:-1.68420776451 4:-0.2236328125 8:-0.86055984811 -3.28504774306 -0.869156747198
interp.bilinear_corners_6x6 0:-1.6875 18:0.690625 35:-1.1875 -12.834375 -4.0296484375
interp.bilinear_false_6x6 0:-1.6875 18:0.799479166667 35:-1.1875 -13.078125 -4.10416666667
interp.dino_offset0.1_6x6 0:-1.71244732422 18:0.948393781535 35:-1.36835505762 -13.1246661882 -3.7323103446
interp.scipy_zoom_order1_6x6 0:-1.6875 18:0.690625 35:-1.1875 -12.834375 -4.0296484375
kerple.log_n6 0:0 36:0 71:0 -10.2157287464 -4.69764139514
kerple.power_n6 0:0 36:0 71:0 -320.522268662 -106.191028972
kerple.power_weighted_n6 0:-1.6875 36:0.625 71:-0.296875 -116.112269299 -41.2383361766
sandwich.nemo_n6_d8_H4 0:0 72:0 143:0 -1.09229430458 -0.481566014781
sandwich.nemo_n3000_d128_H12_row 0:0 42:0 83:-7.42034754729 -1553.55832617 -625.890376136
fire.n6_L512 0:0.0513305664062 36:-0.06884765625 71:-0.06884765625 0.570618139503 0.264713655442
fire.n6_L3 0:0.0513305664062 36:-0.06884765625 71:-0.06884765625 15.5129436923 7.26773598571
cope.official_default 0:-1.15625 24:-1.046875 47:-0.360921178512 3.40160823386 3.58280277536
cope.official_weights_default 0:1 36:1 71:0.3006125623 12 5.18114228675
cope.official_nodiv 0:-1.15625 24:-1.046875 47:-0.802927220051 1.98518454148 2.4279563215
cope.official_weights_nodiv 0:1 36:1 71:0.206060654846 12 5.19846634404
cope.positions_unclamped 0:0.884489022237 36:0.92622035546 71:0.841923148638 62.4641726603 25.8098937093
cope.xtransformers_weights 0:1 36:1 71:0.206060654846 12 5.19846634404
fox.n6_hq4_hkv2_d4 0:-1.15625 48:-0.809678497864 95:-0.1701117626 11.7221037846 5.27427296959
fox.window3 0:-1.15625 48:-0.782471309393 95:-0.194964027775 11.6824664615 5.13023781989
fox.bias_n6 0:0 72:0 143:0 -126.46164621 -56.9412314471
fox.bias_init_T2_512_H4 0:0.432752129567 2:4.38372494991 3:6.23734790359 13.5557337596 2.72107100917
stick.out_default 0:0 24:0 47:-1.14757283475 2.84666765687 0.963733428813
stick.remainder_default 0:1 6:1 11:0.00948254221394 4.12728318542 1.29267885437
stick.out_plus_rem_v_default 0:-1.15625 24:-1.046875 47:-1.14327605781 4.45912728297 2.66800215191
stick.out_current 0:-1.02269043196 24:-0.969636934622 47:0.2000917263 5.15286717701 4.61739892476
stick.remainder_current 0:0.115510977763 6:0.0737796445401 11:0.00149897041609 0.490738427518 0.16920424122
stick.out_plus_rem_v_current 0:-1.15625 24:-1.046875 47:0.200770947269 5.48508312034 4.8892537423
path.out_nogate 0:-1.15625 56:0.337006788198 111:-0.26987804303 11.0447876968 4.67434554878
path.out_gate_scaled 0:-1.15625 56:0.599950651452 111:-0.400294384207 2.82378488086 1.16889795657
path.out_gate_unscaled_hypothetical 0:-1.15625 56:0.720911869232 111:-0.51089034426 -2.44230635635 -1.00765300743
wavlm.gate 0:1.99454192817 5:2.97714345533 9:1.50608580824 21.0201332667 7.39661074972
wavlm.bias_gated 0:-2.30618910445 25:-1.67464319362 49:-0.847173267135 -0.651494706075 -1.36707224047
music.lower_only 0:2.77294921875 25:4.42700195312 49:5.6904296875 20.5732421875 12.2477416992
music.length5_table3 0:-1.28662109375 25:-1.48388671875 49:-1.29711914062 0.385498046875 1.30516052246
xpos.torchscale_scale 0:0.285714285714 2:0.642857142857 3:0.821428571429 2.21428571429 0.401785714286
xpos.torchscale_q 0:-1.69993251257 24:1.51382190593 47:-0.0729117480364 -6.71753935729 1.25617553802
xpos.torchscale_k 0:-1.41147607023 24:1.21337014688 47:0.19413111721 -2.83758453489 2.07227537071
xpos.torchscale_scores 0:9.59375 18:1.51656540546 35:3.52490234375 29.6746058726 9.02948101345
retnet.angle_dh8 0:1 4:0.00215443469003 7:0.0001 2.09734064605 0.209381874996
retnet.log_decay_H2 0:-0.0317486983146 1:-0.0157483569681 -0.0474970552827 -0.00395283826568
retnet.mask_n6 0:1 36:1 71:0.416289180102 21.2923952091 9.15587338117
liere.R_2x3_gen4 0:1 112:-0.286114374936 223:0.201226251215 28.1696291052 12.3978419535
comrope.positions_2x3_cls 0:0.5 7:0.833333333333 13:0.833333333333 7 3.05208333333
comrope.ap_R 0:0.918609155795 448:0.995235416775 895:-0.80886808857 70.0180848473 31.4051977259
comrope.ld_R 0:0.390195669403 448:0.959674677224 895:0.900981449398 80.5108217346 34.1341087842
comrope.liere_baseline_R 0:0.533125295575 448:0.0588791479603 895:0.472125734611 22.1883919482 9.89585728953
ropemixed.freqs_d8_H2_norotate 0:1 8:0 15:0.316227766017 5.26491106407 1.64207741365
ropemixed.cos_3x2 0:1 24:1 47:0.772834946152 44.2317834797 18.1037170082
ropemixed.sin_3x2 0:0 24:0 47:-0.634607080015 -7.03339492645 -2.54958734614
ropemixed.axial_cos_d8_3x2 0:1 12:1 23:0.995004165278 18.8043718383 7.49844151906
selfextend.prefill_n12_w4_g2 0:0 72:5 143:0 242 126.5
selfextend.prefill_n12_w5_g2 0:0 72:5.5 143:0 256 132.625
selfextend.decode_n12_w5_g2 0:0 72:6 143:0 270 138.75
rerope.n10_w4 0:0 50:4 99:0 130 55.0625
rerope.leaky_n10_w4_k16 0:0 50:4.0625 99:0 132.1875 55.86328125
rerope.logscale_T8_n12 0:1 6:1 11:1.19498750024 12.5120824052 5.22545632866
dca.n20_chunk6_local2 0:0 200:6 399:0 722 317.875
streaming.kept_after_9_start2_recent4 0:0 3:6 5:8 27 7.75
streaming.kept_for_1_coming 0:0 2:6 4:8 22 5.5
lminf.out_n11_local4_global2 0:-1.15625 22:0.497085149286 43:1.04582232683 4.09046848463 3.57613014802
lminf.offsets 0:0 60:0 120:0 34 10.5
nope.flag_average_n7 0:1 3:0.25 6:0.142857142857 2.59285714286 0.4375
string.cayley_P_d6 0:0.20524831637 18:0.55501207047 35:0.385665036386 1.78274927695 -0.362502980132
string.cayley_score_3_7 0:3.38633635992 3.38633635992 0.211646022495
string.circulant_R_2_3 0:0.228852531896 18:-0.417210104874 35:0.228852531896 6 2.35007410762
linear.vicuna 1:0.21649108084 16:0.025 32:0.0025 48:0.00025 63:2.88695496172e-05 1.8649885334
linear.gemma3 1:0.112210891556 32:0.00395284707521 64:0.000125 96:3.95284707521e-06 127:1.39246732499e-07 1.22174148756
dynamic.4096 1:0.850994291341 16:0.0756530337024 32:0.00572338150838 48:0.000432991174145 63:3.8492732823e-05 6.71093243276
dynamic.8192 1:0.839625742564 16:0.0610059123382 32:0.00372172134021 48:0.000227047005828 63:1.64968854956e-05 6.23532831752
dynamic.64k 1:0.791911494513 16:0.0239235898401 32:0.000572338150838 48:1.36923831705e-05 63:4.13645920251e-07 4.80564589615
llama3.8b 1:0.814617233857 16:0.0376060309309 32:0.000524846160993 48:6.64786987118e-06 63:3.06892598891e-07 5.38605820073
llama3.1b 1:0.663601237696 8:0.0376060309309 16:0.000429556796559 24:1.6619674678e-06 31:9.41830672543e-08 2.96820229784
llama3.scout 1:0.814617233857 16:0.0376060309309 32:0.00141421356237 48:3.32393493559e-06 63:1.53446299446e-07 5.39037786447
yarn.qwen 1:0.805842187761 16:0.0316227766017 32:0.000602941176471 48:7.90569415042e-06 63:3.10234440188e-07 5.14403472174
yarn.llama2 1:0.86596432336 16:0.1 32:0.00567307692308 48:6.25e-05 63:7.21738740431e-06 7.36523470081
yarn.deepseek 1:0.749894209332 8:0.1 16:0.0055 24:2.5e-05 31:3.33380358041e-06 3.94893627408
yarn.gpt_oss 1:0.689044305888 8:0.0508132748155 16:0.000456483919223 24:4.0999784818e-06 31:3.02351142812e-07 3.18043827693
yarn.gpt_oss_cut 1:0.689044305888 8:0.0508132748155 16:0.000580947501931 24:4.0999784818e-06 31:3.02351142812e-07 3.1816594922
yarn.olmo3 1:0.814617233857 16:0.0376060309309 32:0.000395147907134 48:6.64786987118e-06 63:3.06892598891e-07 5.36472945548
yarn.ministral3 1:0.805842187761 16:0.0316227766017 32:0.000338235294118 48:1.97642353761e-06 63:7.7558610047e-08 5.13512937912
proportional.gemma4 1:0.947463525655 64:0 128:0 192:0 255:0 18.4324744947
longrope.short 1:0.786099224065 12:0.0625 24:0.00454545454545 36:0.000357142857143 47:3.61650047352e-05 4.7937932918
longrope.long 1:0.366846304564 12:0.00625 24:0.000322580645161 36:2.17391304348e-05 47:2.02766135335e-06 1.95513808559
yarn.magnitude_4 1.13862943611
yarn.magnitude_16 1.27725887222
yarn.magnitude_32 1.34657359028
yarn.magnitude_8 1.20794415417
longrope.magnitude_32 1.19023807142
yarn.deepseek_v3_scale 0.135233778861
yarn.deepseek_v2_lite_scale 0.114721386793
fope.frequencies 0:1 1:0.316227766017 2:0.1 1.416227766017
fope.released 0:-5.00308228977 25:28.814399941 49:32.9192788266 144.660729032
fope.zero_phase 0:-3.08975221165 25:17.9691850973 49:15.5418374203 90.2862173136
pope.phases 0:-1.6875 4:-1.921875 7:-0.78125
pope.half 0:2.6339002512 25:0.837349520763 49:2.62031782831 91.7175460946
pope.interleaved 0:2.6339002512 25:0.837349520763 49:2.62031782831 91.7175460946
"""


@pytest.mark.parametrize("row", PRINTED.strip().splitlines(), ids=lambda row: row.split()[0])
def test_values_of_released_code(row):
    name, *printed = row.split()
    places, stated = zip(*(("-1", each) if ":" not in each else each.split(":") for each in printed), strict=True)
    values = np.ravel(MADE[name]())
    n = np.arange(values.size)
    sums = [values.sum(), (values * (1 + n % 13) / 16).sum()][: places.count("-1")]
    got, stated = np.array([*values[[int(place) for place in places if place != "-1"]], *sums]), np.array(stated, dtype=float)
    # twelve digits are printed, and two programs may differ by 64 roundings of the largest entry in each
    size = np.where(np.array(places) == "-1", values.size, 1)
    rounding = 0 if name.startswith(SCHEDULES) else 2.0**-47 * max(1, np.abs(values).max()) * size  # there nothing cancels
    assert (np.abs(got - stated) <= 5e-12 * np.abs(stated) + rounding).all(), f"{got}, expected {stated}"


def test_every_expression_has_its_numbers():
    assert [row.split()[0] for row in PRINTED.strip().splitlines()] == [*MADE]
