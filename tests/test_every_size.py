"""Functions of single numbers: integers at every size up to 400, real numbers at fractions; no number is a special case.

Theorems use concrete numbers for such arguments, so they hold for these numbers only. The definitions here use Python's
integers, exactly or with `math`, one entry at a time.
"""

import math
from itertools import pairwise

import numpy as np
import pytest

from posref import attention, offsets, pairing, position_ids
from posref.absolute import hierarchical, index, recurrent, sinusoidal
from posref.relative import alibi, nezha, shaw, t5, transformer_xl, xlnet
from posref.rotary import axes, decoupled, layouts, rope, scaling, xpos

FRACTIONS = (0.3, 1.7, 2.5, 17.25, 1e6 + 0.5)
SIZES = range(1, 401)
EVEN = range(2, 801, 2)
LAYOUTS = pairing.LAYOUTS


def close(got, expected):
    """Within four roundings of float64."""
    expected = np.array(expected, dtype=float)
    assert got.shape == expected.shape
    assert (np.abs(got - expected) <= 4 * np.finfo(float).eps * np.abs(expected)).all()


def exact(got, expected):
    assert got.tolist() == expected


def members(layout, dim):
    """The two features of every pair."""
    return [(2 * t, 2 * t + 1) if layout == "interleaved" else (t, t + dim // 2) for t in range(dim // 2)]


@pytest.mark.parametrize("module", [rope, sinusoidal])
def test_frequencies(module):
    for dim in EVEN:
        close(module.frequencies(dim), [10000.0 ** (-2 * t / dim) for t in range(dim // 2)])
        close(module.frequencies(dim, 4.0), [2 ** (-4 * t / dim) for t in range(dim // 2)])


def test_frequencies_of_another_divisor():
    for dim in EVEN[1:]:
        close(sinusoidal.frequencies(dim, 4.0, divisor="dim - 2"), [2 ** (-4 * t / (dim - 2)) for t in range(dim // 2)])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_pairs(layout):
    for dim in EVEN:
        first, second = (list(each) for each in zip(*members(layout, dim), strict=True))
        exact(np.array(pairing.indices(dim, layout)), [first, second])
        exact(np.array(pairing.split(np.arange(dim), layout)), [first, second])
        exact(pairing.join(np.array(first), np.array(second), layout), list(range(dim)))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rotations(layout):
    """Angles that are multiples of a quarter turn, so that every entry is nearly 0, 1 or -1."""
    for dim in EVEN:
        x, quarters = np.arange(1.0, dim + 1), np.arange(dim // 2) % 4
        turned = [0.0] * dim
        for (a, b), q in zip(members(layout, dim), quarters, strict=True):
            c, s = ((1, 0), (0, 1), (-1, 0), (0, -1))[q]
            turned[a], turned[b] = c * x[a] - s * x[b], s * x[a] + c * x[b]
        cos, sin = rope.tables(np.array([1]), quarters * (np.pi / 2))
        bound = 4 * dim * np.finfo(float).eps * dim
        assert np.abs(rope.rotate(x[None], cos, sin, layout=layout)[0] - turned).max() <= bound
        assert np.abs(rope.rotate_efficient(x[None], cos, sin, layout=layout)[0] - turned).max() <= bound
        if dim <= 256:
            assert np.abs(rope.matrix(1, quarters * (np.pi / 2), layout=layout) @ x - turned).max() <= bound
            shift = sinusoidal.shift_matrix(-1, quarters * (np.pi / 2), layout=layout)
            assert np.abs(shift @ x - turned).max() <= bound


def test_scales():
    for dim in EVEN:
        close(xpos.scales(np.array([512]), dim, center=0)[0], [(2 * t / dim + 0.4) / 1.4 for t in range(dim // 2)])


def test_slopes():
    for heads in SIZES:
        power = 2 ** math.floor(math.log2(heads))
        steps = [8 * a / power for a in range(1, power + 1)] + [4 * (2 * c - 1) / power for c in range(1, heads - power + 1)]
        close(alibi.slopes(heads), [2**-s for s in steps])


def test_projections():
    for heads in SIZES:
        rows = [h * 6 + f for h in range(heads) for f in (0, 2, 1, 3, 4, 5)]
        got = layouts.permute_projection(np.arange(6 * heads), heads=heads, rotary_dim=4, source="half", target="interleaved")
        exact(got, rows)
    for width in EVEN[:200]:
        order = [f for t in range(width // 2) for f in (t, t + width // 2)]
        given = {"heads": 2, "rotary_dim": width, "source": "half", "target": "interleaved"}
        exact(layouts.permute_projection(np.arange(2 * width), **given), order + [width + f for f in order])


def test_repeated_heads():
    for heads in SIZES:
        for own in (each for each in range(1, heads + 1) if heads % each == 0):
            got = attention.repeat_heads(np.arange(own)[:, None, None], heads=heads)[:, 0, 0]
            exact(got, [a // (heads // own) for a in range(heads)])


def test_lengths():
    for n in SIZES:
        exact(index.encode_normalized(np.array([0, n - 1]), n, denominator="length")[:, 0], [0, (n - 1) / n])
        exact(position_ids.cached(n, n + 7), list(range(7, n + 7)))
        exact(position_ids.streaming(n, sinks=4, window=9).kept, [i for i in range(n) if i < 4 or i >= n - 9])
        exact(position_ids.zigzag(4 * n, ranks=2, rank=1), list(range(n, 3 * n)))
        exact(position_ids.packed(np.array([n, 2])), [*range(n), 0, 1])
        exact(position_ids.documents(np.ones(n, dtype=int)), list(range(n)))
        exact(position_ids.padded(np.ones(n, dtype=bool), filler=0), list(range(n)))


def test_steps():
    for n in (1, 2, 3, 400):
        exact(recurrent.encode(lambda p: p + 1, np.zeros(1), n)[:, 0], list(range(n)))


def test_distances():
    for n in SIZES:
        exact(transformer_xl.distances(n, n + 2, bidirectional=True), list(range(n + 1, -n, -1)))
        exact(transformer_xl.distances(n, n + 2, bidirectional=False), list(range(n + 1, -1, -1)))
        exact(xlnet.distances(n, n + 2, attn_type="bi"), list(range(n + 2, -n, -1)))
        exact(xlnet.distances(n, n + 2, attn_type="uni", clamp_len=5), [min(d, 5) for d in range(n + 2, -1, -1)])


@pytest.mark.parametrize("more", [0, 3])
def test_matrices_of_offsets(more):
    for n in range(1, 130):
        by_offset = np.arange(2 * n + more - 1)
        expected = [[j - i + n - 1 for j in range(n + more)] for i in range(n)]
        exact(offsets.toeplitz(by_offset, n, n + more), expected)
        exact(offsets.skew(np.broadcast_to(by_offset, (n, len(by_offset)))), expected)


def test_tables_of_offsets():
    for k in range(1, 200):
        assert nezha.table(k, 2, convention="paper").shape == (2 * k + 1, 2)
        reach = np.arange(-k - 2, k + 3)[None]
        table = np.arange(-k, k + 1)[:, None]
        exact(shaw.embed(table, reach)[0, :, 0], [min(max(o, -k), k) for o in range(-k - 2, k + 3)])


def test_starts_of_buckets():
    """Start s of a logarithmic bucket is the first distance with s^p >= M^k e^(p-k); p logarithmic buckets, e exact ones."""
    for buckets in range(2, 65):
        starts, e = t5.bucket_starts(buckets, 128).tolist(), buckets // 2
        assert starts[:e] == list(range(e))
        assert all(low <= high for low, high in pairwise(starts))
        for k, start in enumerate(starts[e:]):
            mean = 128**k * e ** (buckets - e - k)
            assert start ** (buckets - e) >= mean
            assert start == 0 or (start - 1) ** (buckets - e) < mean


def test_grids():
    for n in range(1, 60):
        exact(axes.grid(n, 3), [[row, column] for row in range(n) for column in range(3)])
        exact(axes.grid(3, n), [[row, column] for row in range(3) for column in range(n)])
        squares = [[2 * r + a, 2 * c + b] for r in range(n) for c in range(2) for a in (0, 1) for b in (0, 1)]
        exact(axes.grid(2 * n, 4, merge=2), squares)
        exact(axes.sections(np.array([n, 2])), [0] * n + [1, 1])
        close(axes.centers(n, 3)[::3, 0], [(2 * row + 1) / n - 1 for row in range(n)])


def test_heads():
    """Head h of what has h heads is what it is alone."""
    for heads in (*range(1, 34), 40, 48, 64, 96, 112, 128):
        x = np.arange(1.0, heads + 1)[:, None, None]
        latent = np.ones((1, 1, 1))
        exact(decoupled.absorbed_scores(x, x, latent, latent, x, scale=1.0)[:, 0, 0], [h * h + h for h in range(1, heads + 1)])
        exact(attention.attend(x, x, x, scale=1.0)[:, 0, 0], list(range(1, heads + 1)))
        exact(
            alibi.bias(np.array([0]), np.array([2]), x[:, 0, 0], form="signed")[:, 0, 0], [2 * h for h in range(1, heads + 1)]
        )
        exact(
            t5.bias(np.array([0]), np.array([1]), x[:, 0].T.repeat(4, axis=0), bidirectional=True)[:, 0, 0],
            [*range(1, heads + 1)],
        )


# fractions


@pytest.mark.parametrize("number", FRACTIONS)
@pytest.mark.parametrize("sign", [1, -1])
def test_positions_between_tokens(number, sign):
    at, zeta = sign * number, 0.4 / 1.4
    close(xpos.scales(np.array([at]), 2, center=at + 0.75, scale_base=1.5)[0], [zeta**-0.5])
    close(rope.matrix(at, np.ones(1), layout="half")[:, 0], [math.cos(at), math.sin(at)])
    close(sinusoidal.shift_matrix(at, np.ones(1), layout="half")[0], [math.cos(at), math.sin(at)])
    close(sinusoidal.encode(np.array(at), np.ones(1), layout="half"), [math.sin(at), math.cos(at)])
    close(np.array(rope.tables(np.array(at), np.ones(1)))[:, 0], [math.cos(at), math.sin(at)])
    exact(offsets.offsets(np.array([at]), np.array([2 * at])), [[at]])
    exact(offsets.clip(np.array([at - 1, at + 1]), at - 0.5, at + 0.25), [at - 0.5, at + 0.25])
    exact(alibi.bias(np.array([at]), np.array([0.0]), np.ones(1), form="absolute"), [[[-number]]])
    exact(attention.causal_mask(np.array([at]), np.array([at + 0.25, at, at - 0.25])), [[False, True, True]])


@pytest.mark.parametrize("number", FRACTIONS)
def test_real_parameters(number):
    close(attention.cap(np.array([number / 2]), softcap=number), [number * math.tanh(0.5)])
    close(alibi.slopes(1, max_bias=number), [2**-number])
    close(
        position_ids.temperature(np.array([3.5 * number]), amount=0.5, length=number, convention="ministral3"),
        [1 + math.log(2)],
    )
    close(
        hierarchical.extend(np.array([[0.0], [1.0]]), alpha=-number)[:, 0],
        [0, 1, -number / (1 + number), 1 - number / (1 + number)],
    )
    above = 1 + number
    close(scaling.linear(np.ones(1), factor=above), [1 / above])
    close(scaling.ntk(np.ones(2), factor=above), [1, 1 / above])
    close(scaling.dynamic_ntk(np.ones(2), factor=above, length=2 * number, original_length=number), [1, 1 / (above + 1)])
    close(scaling.proportional(np.ones(4), fraction=0.7, factor=above), [1 / above, 1 / above, 0, 0])
    close(np.array(scaling.yarn_magnitude(above, mscale=number)), 0.1 * number * math.log(above) + 1)
    close(np.array(scaling.longrope_magnitude(above, original_length=above**2)), math.sqrt(1.5))
