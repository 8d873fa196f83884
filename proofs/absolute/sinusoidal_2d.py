"""2-D sinusoids: three orders of one set of features, sums over both axes, and counts that stop at padding."""

import numpy as np
import sympy as sp

from posref.absolute import sinusoidal, sinusoidal_2d
from proofs.absolute.sinusoidal import definition as waves
from proofs.kit import *

ENCODE = [sinusoidal_2d.encode, sinusoidal.encode]


def definition(y, x, frequencies, convention, m=sp):
    """MAE: the column's sinusoid, then the row's; DETR: row, then column, sine and cosine in turn; timm: sines, then cosines.
    He et al., arXiv 2111.06377; Carion et al., arXiv 2005.12872, appendix A.4; and their code."""
    if convention == "timm":
        return [f(c * w) for f in (m.sin, m.cos) for c in (y, x) for w in frequencies]
    axes, layout = ((x, y), "half") if convention == "mae" else ((y, x), "interleaved")
    return [value for c in axes for value in waves(c, frequencies, layout, m)]


def features(c, matrix, m=sp):
    """sin(c . b) for each column b of the matrix, then the cosines. Tancik et al., arXiv 2006.10739, section 5."""
    angles = [sum(x * b for x, b in zip(c, column, strict=True)) for column in zip(*matrix, strict=True)]
    return [f(angle) for f in (m.sin, m.cos) for angle in angles]


def places(mask):
    """The counts of visible pixels along the column and the row up to each pixel, itself included, as nested lists."""
    height, width = len(mask), len(mask[0])
    up, left = (lambda y, x: sum(mask[z][x] for z in range(y + 1))), (lambda y, x: sum(mask[y][z] for z in range(x + 1)))
    return [[[up(y, x), left(y, x)] for x in range(width)] for y in range(height)]


def turn(count, last, m=sp):
    """2 pi count / (last + 10^-6)"""
    return 2 * m.pi * count * 10**6 / (last * 10**6 + 1)


# features


@theorem(of=ENCODE, sizes="2 patches, h = 1, 2; every place and frequency")
def pinned():
    """encode has the features of each convention in their order."""
    for h in (1, 2):
        c, w = symbols("c", 2, 2), symbols("w", h)
        for convention in sinusoidal_2d.CONVENTIONS:
            got = sinusoidal_2d.encode(c, w, convention=convention)
            expected = [definition(y.e, x.e, [v.e for v in w], convention) for y, x in c]
            prove_equal(got, expected, mention=[c[0, 0], c[0, 1], w[0]])


@pinned.claim("It is the column: the code makes a mesh with columns first, and calls it h.")
def the_first_half_of_mae_is_the_row():
    """MAE's first half is the row."""
    c, w = symbols("c", 1, 2), symbols("w", 1)
    got = sinusoidal_2d.encode(c, w, convention="mae")[0, :2]
    prove_equal(got, waves(c[0, 0].e, [w[0].e], "half"))


@theorem(of=ENCODE, sizes="h = 1, 2, 3", as_written="runs")
def orders_are_permutations():
    """Each convention is one permutation of the features of another, the same at every place: projections that are trained can
    undo it, weights of others cannot."""
    for h in (1, 2, 3):
        c, w = symbols("c", 2, 2), symbols("w", h)
        features = {name: sinusoidal_2d.encode(c, w, convention=name) for name in sinusoidal_2d.CONVENTIONS}
        blocks = {"mae": [0, 1, 2, 3], "timm": [2, 0, 3, 1]}  # sin x, cos x, sin y, cos y
        mae = features["mae"].reshape(2, 4, h)
        prove_equal(features["timm"], mae[:, blocks["timm"]].reshape(2, 4 * h), mention=[c[0, 0]])
        prove_equal(features["detr"].reshape(2, 2, h, 2), mae.reshape(2, 2, 2, h)[:, ::-1].swapaxes(2, 3), mention=[c[0, 1]])


@orders_are_permutations.control
def one_order():
    """timm's features are MAE's."""
    c, w = symbols("c", 1, 2), symbols("w", 1)
    prove_equal(sinusoidal_2d.encode(c, w, convention="timm"), sinusoidal_2d.encode(c, w, convention="mae"))


@theorem(of=ENCODE, sizes="h = 1, 2")
def dot_product():
    """p(y, x) . p(y', x') = sum_t cos(w_t (y - y')) + cos(w_t (x - x')): a function of the vector between them, even on each
    axis, a sum of both."""
    for h in (1, 2):
        c, w = symbols("c", 2, 2), symbols("w", h)
        (y, x), (v, u) = c
        expected = sum(sp.cos((t * a).e) for t in w for a in (y - v, x - u))
        for convention in sinusoidal_2d.CONVENTIONS:
            p = sinusoidal_2d.encode(c, w, convention=convention)
            prove_equal([p[0] @ p[1]], [expected], mention=[x, y])


@dot_product.claim("It is a sum over the axes, which favours patches in one row or one column.")
def the_distance_decides():
    """Patches at one distance are equally similar: (5, 0) and (3, 4)."""
    p = sinusoidal_2d.encode(array([[0, 0], [5, 0], [3, 4]]), symbols("w", 1), convention="mae")
    prove_equal([p[0] @ p[1]], [p[0] @ p[2]])


@theorem(of=[*ENCODE, sinusoidal.shift_matrix], sizes="h = 1, 2; every place and shift")
def shift_is_linear():
    """One linear map moves a patch by (b, a), a block for each axis: a rotation, the same at every place."""
    for h in (1, 2):
        c, w, b, a = symbols("c", 1, 2), symbols("w", h), symbol("b"), symbol("a")
        for convention, layout, order in (("mae", "half", (a, b)), ("detr", "interleaved", (b, a))):
            here, there = (sinusoidal_2d.encode(c + array([[s, t]]), w, convention=convention)[0] for s, t in ((0, 0), (b, a)))
            for axis, offset in enumerate(order):
                half = slice(2 * h * axis, 2 * h * axis + 2 * h)
                block = sinusoidal.shift_matrix(offset, w, layout=layout)
                prove_equal(there[half], block @ here[half], mention=[offset])


@shift_is_linear.control
def one_block_for_both_axes():
    """The blocks of both axes are one."""
    c, w, b, a = symbols("c", 1, 2), symbols("w", 1), symbol("b"), symbol("a")
    here, there = (sinusoidal_2d.encode(c + array([[s, t]]), w, convention="mae")[0] for s, t in ((0, 0), (b, a)))
    prove_equal(there[:2], sinusoidal.shift_matrix(b, w, layout="half") @ here[:2])


@theorem(of=[sinusoidal_2d.fourier], sizes="2 points, 1 to 3 axes, h = 1, 2")
def fourier_pinned():
    """Fourier features are the sines of c . b for all columns b of the matrix, then the cosines."""
    for axes in (1, 2, 3):
        for h in (1, 2):
            c, b = symbols("c", 2, axes), symbols("b", axes, h)
            expected = [features([x.e for x in row], [[x.e for x in each] for each in b]) for row in c]
            prove_equal(sinusoidal_2d.fourier(c, b), expected, mention=[c[0, axes - 1], b[0, h - 1]])


POINTS = {"coordinates": symbols("c", 1, 2), "matrix": symbols("b", 2, 1)}
fourier_pinned.control_by("sinusoidal_2d.fourier", "cosines_first", **POINTS)
fourier_pinned.control_by("sinusoidal_2d.fourier", "coordinates_from_0_to_1", **POINTS)


@theorem(of=[sinusoidal_2d.fourier], sizes="2 points, 2 axes, h = 1, 2")
def fourier_dot_product():
    """The product of two points is sum_b cos(b . (c - c')): a function of the vector between them."""
    for h in (1, 2):
        c, b = symbols("c", 2, 2), symbols("b", 2, h)
        p, offset = sinusoidal_2d.fourier(c, b), c[0] - c[1]
        expected = sum(sp.cos((offset @ b[:, t]).e) for t in range(h))
        prove_equal([p[0] @ p[1]], [expected], mention=[c[0, 1], b[1, 0]])


@fourier_dot_product.control
def a_sum_over_the_axes():
    """It is a sum over the axes, as that of the other encodings."""
    c, b = symbols("c", 2, 2), symbols("b", 2, 1)
    p, offset = sinusoidal_2d.fourier(c, b), c[0] - c[1]
    prove_equal([p[0] @ p[1]], [sum(sp.cos((offset[a] * b[a, 0]).e) for a in range(2))])


# DETR's coordinates


@example(of=[sinusoidal_2d.counted], sizes="images up to 4 by 5 in every larger one up to 6 by 6")
def padding_is_not_counted():
    """The pixels of an image have the same counts, from 1, however it is padded at the bottom and on the right."""
    for height, width in np.ndindex(4, 5):
        height, width = height + 1, width + 1
        alone = places([[1] * width] * height)
        for below, right in np.ndindex(7 - height, 7 - width):
            mask = np.zeros((height + below, width + right), bool)
            mask[:height, :width] = True
            got = sinusoidal_2d.counted(mask)
            prove_that(got.tolist() == places(mask.astype(int).tolist()), "counts of every pixel")
            prove_that(got[:height, :width].tolist() == alone, f"{height} x {width}, {below} below, {right} on the right")


@padding_is_not_counted.claim("Without its mask a padded image has more rows, and other places once they are normalized.")
def the_mask_does_not_matter():
    """Normalized places of an image do not depend on whether its padding is masked."""
    mask = np.array([[True], [True], [False]])
    with_mask, without = (sinusoidal_2d.normalized(sinusoidal_2d.counted(m)) for m in (mask, mask | True))
    witness = f"the place (0, 0) is {with_mask[0, 0, 0]:.4f} with the mask, {without[0, 0, 0]:.4f} without"
    prove_that(with_mask[0, 0, 0] == without[0, 0, 0], counterexample=witness)


@theorem(
    of=[sinusoidal_2d.normalized],
    sizes="images of 2 by 3 in a batch of 2; every count",
    equivalent={
        "normalized: turns = [count / (last + (1 + 0 * last) / 1000 / 1000) for count, last in ((y, y[..., -1:, :]), "
        "(x, x[..., -1:]))]  ->  turns = [count / (last + (1 - 0 * last) / 1000 / 1000) for count, last in "
        "((y, y[..., -1:, :]), (x, x[..., -1:]))]": "0 has no sign"
    },
)
def normalized_pinned():
    """normalized is 2 pi count / (last count + 10^-6): last in the pixel's own column for rows, in its own row for columns."""
    c = symbols("c", 2, 2, 3, 2)
    got, pi = sinusoidal_2d.normalized(c), expression(np.pi)
    for b, y, x in np.ndindex(2, 2, 3):
        last = c[b, 1, x, 0], c[b, y, 2, 1]
        expected = [turn(c[b, y, x, a].e, last[a].e) / sp.pi * pi for a in (0, 1)]
        prove_equal(got[b, y, x] * 1, expected, mention=[c[b, y, x, 0]])


@normalized_pinned.claim("The last pixel is 10^-6 short of a turn.")
def the_last_pixel_is_a_whole_turn():
    """The last pixel of a column is at 2 pi."""
    c = symbols("c", 1, 1, 2)
    prove_equal(sinusoidal_2d.normalized(c)[0, 0], [expression(2 * np.pi)] * 2)
