"""Exact truths beside what people say: components in [0, 1], rounded positions that collide, mirrored texts, causal masks."""

import numpy as np

from posref import attention, offsets, precision
from posref.absolute import sinusoidal
from posref.relative import alibi
from proofs.kit import all_paths, array, example, prove_equal, prove_that, symbols, theorem


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
    prove_that(stays(64, 1e4, 512).tolist() == (511 * w <= np.pi).tolist(), "half a period")


LENGTH = 1 << 17


def squared_distances(dim):
    """|p_m - p_(m+k)|^2 for k = 1 .. LENGTH - 1; it does not depend on m."""
    w, k = sinusoidal.frequencies(dim), np.arange(1, LENGTH)
    return sum(4 * np.sin(k * t / 2) ** 2 for t in w)


@example(
    of=[sinusoidal.frequencies],
    sizes="d = 6, 8, 16; base 10000; positions below 131072",
    argument="rounding to bfloat16 moves an entry by at most 2^-9: rows farther apart than 2 sqrt(d) 2^-9 stay different",
)
def rounded_rows_are_different():
    """Rows of the sinusoid that are rounded to bfloat16 are all different below 131072 at d = 6, 8 and 16, and at d = 16
    neighbours are the closest, if angles are computed in float64."""
    for dim in (6, 8, 16):
        distance = np.sqrt(squared_distances(dim))
        prove_that(distance.min() > 2 * np.sqrt(dim) * 2.0**-9 + 1e-6, f"d = {dim}: {distance.min():.4f}")
        prove_that(dim < 16 or distance.argmin() == 0, "neighbours are the closest")


@rounded_rows_are_different.claim("At d = 4 rows 7 and 84830 are one in bfloat16.")
def four_features_are_enough():
    """Four features are enough in 16 bits."""
    rows = precision.bfloat16(sinusoidal.encode(np.array([7, 84830]), sinusoidal.frequencies(4), layout="half"))
    prove_that(not np.array_equal(*rows), "rows 7 and 84830 differ")


def determinant(w):
    """ln |det [p_0 .. p_(d-1)]| = sum_t ln |sin w_t| + sum_(a<b) ln 4 (cos w_a - cos w_b)^2: Vandermonde in e^(i w_t)."""
    pairs = sum(np.log(4 * (np.cos(w[t]) - np.cos(w[t + 1 :])) ** 2).sum() for t in range(len(w)))
    return np.log(abs(np.sin(w))).sum() + pairs


def filled(dim, n, bits):
    """In how many directions n positions of the sinusoid reach farther than 2^-bits of their largest extent."""
    p = sinusoidal.encode(np.arange(n), sinusoidal.frequencies(dim), layout="half")
    extents = np.linalg.svd(p, compute_uv=False)
    return int((extents > extents[0] * 2.0**-bits).sum())


@example(
    of=[sinusoidal.encode, sinusoidal.frequencies],
    sizes="determinants at d = 4, 6, 8; extents at d = 128, 512 positions",
    argument="one linear map takes each p_m to p_(m+k) and no other does, as p_0 .. p_(d-1) span: w_t in (0, 1] are distinct",
)
def the_shift_is_unique_and_cannot_be_measured():
    """A shift has one map, for |det [p_0 .. p_(d-1)]| = prod |sin w_t| prod 4 (cos w_a - cos w_b)^2 is not 0; but it is
    10^-127 at d = 16, and 512 positions at d = 128 fill 56 directions in float32."""
    for dim in (4, 6, 8):
        w = sinusoidal.frequencies(dim, 4.0)
        rows = sinusoidal.encode(np.arange(dim), w, layout="half")
        prove_that(abs(np.linalg.slogdet(rows)[1] - determinant(w)) < 1e-6, f"d = {dim}")
    prove_that(round(determinant(sinusoidal.frequencies(16)) / np.log(10)) == -127, "d = 16")
    prove_that(filled(128, 512, 24) == 56, "56 of 128 directions")


@the_shift_is_unique_and_cannot_be_measured.claim("float32 holds 56 of the 128 directions; on the others any map does.")
def the_shift_can_be_fitted():
    """Least squares in float32 over 512 positions finds the matrix of the shift (d = 128)."""
    prove_that(filled(128, 512, 24) == 128, "all directions are filled")


def attended(x, bias):
    """Attention of values with scores that are a bias alone; no maximum is taken, so that there is one path."""
    zero = array([[0]] * len(x))
    return attention.attend(zero, zero, x, scale=1, bias=bias)


@theorem(of=[attention.attend, offsets.toeplitz], sizes="n = 3; every path")
def symmetric_biases_are_mirrored():
    """With a bias of the distance alone, attention over a mirrored text is the mirrored attention over the text: no such layer
    tells left from right."""
    x, (near, far, here) = symbols("x", 3, 1), symbols("b", 3)
    bias = offsets.toeplitz(array([far, near, here, near, far]), 3, 3)
    for _, (mirrored, plain) in all_paths(lambda: (attended(x[::-1], bias), attended(x, bias))):
        prove_equal(mirrored[::-1], plain)


@symmetric_biases_are_mirrored.claim("A bias with a sign tells them apart.")
def signed_biases_are_mirrored():
    """Signed ALiBi is mirrored too (two tokens)."""
    x = symbols("x", 2, 1)
    bias = alibi.bias(np.arange(2), np.arange(2), symbols("m", 1), form="signed")[0]
    for _, (mirrored, plain) in all_paths(lambda: (attended(x[::-1], bias), attended(x, bias))):
        prove_equal(mirrored[::-1], plain)


@theorem(of=[attention.attend, attention.causal_mask], sizes="n = 1 to 6")
def a_causal_mask_counts():
    """A causal mask alone gives positions: where every score is 0 and one feature of the values marks the first token, row i is
    1 / (i + 1), other for each i, so that the next layer can read where it is."""
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
