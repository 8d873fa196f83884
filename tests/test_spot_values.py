"""Values that the released code of other projects gave in float64, on inputs anybody can write down; nothing here made them.

Inputs are X(shape, t)[n] = ((7 n^2 + 31 n + 17 t) mod 251 - 125) / 64, `painted`. A row has entries by their place in memory,
the sum of all entries, and that of each entry times (1 + n mod 13) / 16, with twelve digits. Files and revisions are those that
the page of each system names. Written again from the code, and not run, were BEiT's index, Sandwich, the skew of Music
Transformer, offsets of position ids, and STRING, which has no code. Formulas that are a sentence of a page, and no function,
stand here as the page has them: RetNet, KERPLE's weight form, FoX's first gates, the scale of queries in ReRoPE.

Of schedules the entries are those at t = 1, n/4, n/2, 3n/4 and n - 1: transformers 5.23.0's own functions in float64, and for
LongRoPE, whose exponents are float32 there, 40 digits. Of PoPE, FoPE and the schedules the weighted sum was not kept.

Not compared:
- swin1.out, swin1.out_masked, swin2.out: the weights of the projections are not known; a search over tags below 12 and scales
  of powers of 2 found none.
- wavlm.bucket_at_past: many lists of 13 distances have its sums; the tests of t5 have the starts of all buckets.
- music.skewed: above the diagonal its numbers are those of other rows, where ours are zeros; below they are music.lower_only.
- selfextend.llamacpp_positions: no function here. interp.table4x4, shape.test_ids: nothing of ours is in them.
"""

from pathlib import Path

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
PRINTED = Path(__file__).with_name("spot_values.txt").read_text(encoding="utf-8")


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
