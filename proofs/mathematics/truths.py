"""Exact truths near common sentences: components in [0, 1], rounded positions that collide, mirrored texts, causal masks."""

import functools

import numpy as np

from posref import attention, offsets, precision
from posref.absolute import sinusoidal
from posref.relative import alibi
from proofs.kit import *


@example(
    of=[sinusoidal.encode, sinusoidal.frequencies],
    sizes="d = 8, 64, 512; base 10000, 500000; n = 2, 10, 512",
    argument="for 0 < w <= pi: up to pi/2 both are in [0, 1]; the first m with m w > pi/2 has m w below 3 pi/2: its cosine is "
    "negative",
)
def components_in_zero_one():
    """Sine and cosine of pair t are in [0, 1] at all positions below n exactly if t >= (d/2) log_base(2 (n - 1) / pi)."""
    for dim, base in ((8, 1e4), (64, 1e4), (512, 1e4), (64, 5e5)):
        for n in (2, 10, 512):
            seen = stays(dim, base, n)
            first = dim / 2 * np.log(2 * (n - 1) / np.pi) / np.log(base)
            prove_that(seen.tolist() == [t >= first for t in range(dim // 2)], f"d {dim}, base {base:g}, n {n}")


def stays(dim, base, n):
    """Whether both components of each pair are in [0, 1] at positions 0 .. n - 1."""
    p = sinusoidal.encode(np.arange(n), sinusoidal.frequencies(dim, base), layout="half")
    return (p >= 0).all(axis=0).reshape(2, -1).all(axis=0)


@components_in_zero_one.claim("Half of a period is too much: cosines are negative from a quarter on.")
def components_in_zero_one_for_half_a_period():
    """They are in [0, 1] as long as (n - 1) w is at most pi."""
    w = sinusoidal.frequencies(64, 1e4)
    pair = int(np.argmax(stays(64, 1e4, 512) != (511 * w <= np.pi)))
    cosine = np.cos(511 * w[pair])
    prove_that(
        stays(64, 1e4, 512)[pair] == (511 * w[pair] <= np.pi),
        counterexample=f"n = 512: pair {pair} turns by {511 * w[pair]:.2f}, its last cosine is {cosine:.4f}",
    )


LENGTH = 1 << 17


def squared_distances(dim):
    """|p_m - p_(m+k)|^2 for k = 1 .. LENGTH - 1; it does not depend on m."""
    w, k = sinusoidal.frequencies(dim), np.arange(1, LENGTH)
    return sum(4 * np.sin(k * t / 2) ** 2 for t in w)


NEAREST = {  # width: the smallest distance of two rows below LENGTH, and their offset
    4: (0.0016, 84823),
    6: (0.0559, 32082),
    8: (0.0353, 100531),
    16: (1.0147, 1),
    64: (1.4718, 1),
    128: (1.9526, 1),
}
FORMATS = {"bfloat16": -9, "float16": -12, "float32": -25}  # rounding moves a number of [-1, 1] by at most this power of 2


@example(
    of=[sinusoidal.frequencies],
    sizes="d = 6, 8, 16, 64, 128; base 10000",
    argument="rounding moves an entry by at most 2^-9 in bfloat16 and 2^-12 in float16: rows that are farther apart than "
    "2 sqrt(d) times that stay different",
)
def rounded_rows_are_different():
    """Rows of the sinusoid that are rounded to bfloat16 or float16 are all different below 131072 at these widths, if angles
    are computed in float64: the closest are 0.0559 apart at d = 6 (offset 32082), 0.0353 at d = 8 (100531), and neighbours at
    d = 16, 64 and 128: 1.0147, 1.4718 and 1.9526."""
    for dim, (nearest, offset) in NEAREST.items():
        distance = np.sqrt(squared_distances(dim))
        prove_that(abs(distance.min() - nearest) < 5e-5 and distance.argmin() + 1 == offset, f"d = {dim}: {distance.min():.5f}")
        reach = 2 * np.sqrt(dim) * 2.0 ** FORMATS["bfloat16"] + 1e-6
        prove_that(bool(distance.min() > reach) == (dim > 4), f"d = {dim}: beyond what bfloat16 moves, but for d = 4")


@rounded_rows_are_different.claim("At d = 4 rows 7 and 84830 are one in bfloat16.")
def four_features_are_enough():
    """Four features are enough in 16 bits."""
    rows = precision.bfloat16(sinusoidal.encode(np.array([7, 84830]), sinusoidal.frequencies(4), layout="half"))
    prove_that(
        not np.array_equal(*rows),
        counterexample=f"in bfloat16 position 7 has {rows[0].tolist()}, position 84830 has {rows[1].tolist()}",
    )


def determinant(w):
    """ln |det [p_0 .. p_(d-1)]| = sum_t ln |sin w_t| + sum_(a<b) ln 4 (cos w_a - cos w_b)^2: Vandermonde in e^(i w_t)."""
    pairs = sum(np.log(4 * (np.cos(w[t]) - np.cos(w[t + 1 :])) ** 2).sum() for t in range(len(w)))
    return np.log(abs(np.sin(w))).sum() + pairs


def filled(dim, n):
    """The number of directions in which n positions of the sinusoid extend beyond 2^-8, and 2^-24, of their largest extent."""
    p = sinusoidal.encode(np.arange(n), sinusoidal.frequencies(dim), layout="half")
    extents = np.linalg.svd(np.linalg.qr(p, mode="r"), compute_uv=False)
    return tuple(int((extents > extents[0] * 2.0**-bits).sum()) for bits in (8, 24))


MAGNITUDES = {16: -127, 64: -2590, 128: -10780, 512: -177883}  # width: the power of 10 of the determinant, base 10000
DIRECTIONS = {(128, 512): (51, 56), (128, 4096): (81, 85)}  # width, positions: directions above 2^-8, and above 2^-24


@example(
    of=[sinusoidal.encode, sinusoidal.frequencies],
    sizes="determinants at d = 4, 6, 8; their size at d = 16 to 512; extents at d = 128, 512 and 4096 positions",
    argument="one linear map takes each p_m to p_(m+k) and no other does, as p_0 .. p_(d-1) span: w_t in (0, 1] are distinct",
)
def the_shift_is_unique_and_cannot_be_measured():
    """A shift has one map, for |det [p_0 .. p_(d-1)]| = prod |sin w_t| prod 4 (cos w_a - cos w_b)^2 is not 0; but it is
    10^-127 at d = 16, 10^-2590 at 64 and 10^-10780 at 128; and of the 128 directions at d = 128 512 positions reach farther
    than 2^-8 of the largest extent in 51 and than 2^-24 in 56, and 4096 positions in 81 and 85."""
    for dim in (4, 6, 8):
        w = sinusoidal.frequencies(dim, 4.0)
        rows = sinusoidal.encode(np.arange(dim), w, layout="half")
        prove_that(abs(np.linalg.slogdet(rows)[1] - determinant(w)) < 1e-6, f"d = {dim}")
    for dim, power in MAGNITUDES.items():
        prove_that(round(determinant(sinusoidal.frequencies(dim)) / np.log(10)) == power, f"10^{power} at d = {dim}")
    for (dim, n), directions in DIRECTIONS.items():
        prove_that(filled(dim, n) == directions, f"{directions} of {dim}, {n} positions")


@the_shift_is_unique_and_cannot_be_measured.claim("float32 holds 56 of the 128 directions; on the others any map does.")
def the_shift_can_be_fitted():
    """Least squares in float32 over 512 positions finds the matrix of the shift (d = 128)."""
    found = filled(128, 512)[1]
    prove_that(found == 128, counterexample=f"512 positions fill {found} of 128 directions")


@theorem(of=[offsets.offsets, alibi.bias], sizes="all positions, hence all n", as_written="runs")
def mirrored_distances():
    """Seen from the end, at n - 1 - i and n - 1 - j, an offset is its negative, and ALiBi's absolute form is the same."""
    n, i, m = (*(symbol(name, integer=True) for name in "ni"), symbols("m", 1))
    for far in (0 * i, symbol("o", integer=True, positive=True), -symbol("o", integer=True, positive=True)):
        here, there = (array([i]), array([i + far])), (array([n - 1 - i]), array([n - 1 - i - far]))
        prove_equal(offsets.offsets(*there), -offsets.offsets(*here))
        both = functools.partial(lambda *pairs: [alibi.bias(*at, m, form="absolute").ravel() for at in pairs], there, here)
        for _, (mirrored, plain) in all_paths(both):
            prove_equal(mirrored, plain)


@mirrored_distances.claim("Its sign is the order of the two tokens.")
def mirrored_offsets():
    """The signed form is the same seen from the end."""
    n, i, j, m = (*(symbol(name, integer=True) for name in "nij"), symbols("m", 1))
    pairs = (array([n - 1 - i]), array([n - 1 - j])), (array([i]), array([j]))
    prove_equal(*(alibi.bias(*at, m, form="signed").ravel() for at in pairs))


def attended(x, bias):
    """Attention with scores that are only a bias; it subtracts no maximum, so there is one path."""
    zero = array([[0]] * len(x))
    return attention.attend(zero, zero, x, scale=1, bias=bias)


@theorem(of=[attention.attend, offsets.toeplitz], sizes="n = 3; every path")
def symmetric_biases_are_mirrored():
    """Where the scores are a bias of the distance alone, attention over a mirrored text is the mirrored attention over the
    text: no such layer tells left from right."""
    x, (near, far, here) = symbols("x", 3, 1), symbols("b", 3)
    bias = offsets.toeplitz(array([far, near, here, near, far]), 3, 3)
    for _, (mirrored, plain) in all_paths(lambda: (attended(x[::-1], bias), attended(x, bias))):
        prove_equal(mirrored[::-1], plain)


@symmetric_biases_are_mirrored.claim("A bias with a sign distinguishes them.")
def signed_biases_are_mirrored():
    """Signed ALiBi is mirrored too (two tokens)."""
    x = symbols("x", 2, 1)
    bias = alibi.bias(np.arange(2), np.arange(2), symbols("m", 1), form="signed")[0]
    for _, (mirrored, plain) in all_paths(lambda: (attended(x[::-1], bias), attended(x, bias))):
        prove_equal(mirrored[::-1], plain)


@theorem(of=[attention.attend, attention.causal_mask], sizes="n = 1 to 6", as_written="formula")
def a_causal_mask_counts():
    """A causal mask alone gives positions: where every score is 0 and one feature of the values marks the first token, row i is
    1 / (i + 1), a number of its own for each i, so that the next layer can read where it is."""
    for n in range(1, 7):
        zero, first = array([[0]] * n), symbols("x", 1, 1)
        values = np.concatenate([first, array([[0]] * (n - 1)).reshape(n - 1, 1)])
        out = attention.attend(zero, zero, values, scale=1, mask=attention.causal_mask(np.arange(n), np.arange(n)))
        prove_equal(out[:, 0], [first[0, 0] / (i + 1) for i in range(n)])


@a_causal_mask_counts.claim("Without the mask all rows are 1/n.")
def without_the_mask_too():
    """Attention without a mask counts as well."""
    zero, values = array([[0], [0]]), np.concatenate([symbols("x", 1, 1), array([[0]])])
    prove_equal(attention.attend(zero, zero, values, scale=1)[:, 0], [values[0, 0], values[0, 0] / 2])
