"""Resizing: the weights of six conventions, entry by entry in fractions, and what they keep."""

from fractions import Fraction

import numpy as np
import sympy as sp

from posref.absolute import resizing
from proofs.kit import Scalar, all_paths, example, expression, premise, prove_equal, prove_that, symbol, symbols, theorem

SIZES = [(1, 1), (1, 3), (2, 1), (2, 4), (3, 2), (4, 6), (5, 3), (4, 4), (7, 2)]


def kernel(x, c):
    """Keys's cubic. Keys 1981, Eqs. (7), (15)."""
    x = abs(x)
    if x <= 1:
        return (c + 2) * x**3 - (c + 3) * x**2 + 1
    return c * x**3 - 5 * c * x**2 + 8 * c * x - 4 * c if x < 2 else x * 0


def definition(t, m, n, convention):
    """The weights of m rows at new place t of n, as fractions: torch's upsample_bicubic2d, its antialiased kind, and linear."""
    row, half = [Fraction(0)] * m, Fraction(1, 2)
    if convention in ("vilt", "beit"):
        place = Fraction(t * (m - 1), max(n - 1, 1)) if convention == "vilt" else (t + half) * m / n - half
        place = min(max(place, Fraction(0)), Fraction(m - 1))
        low, part = int(place), place - int(place)
        row[low] += 1 - part
        row[min(low + 1, m - 1)] += part
        return row
    if convention in ("timm", "siglip2"):
        stretch = max(Fraction(m, n), Fraction(1))
        shape = (lambda x: kernel(x, -half)) if convention == "timm" else lambda x: max(1 - abs(x), Fraction(0))
        raw = [shape((j - (t + half) * m / n + half) / stretch) for j in range(m)]
        return [x / sum(raw) for x in raw]
    place = (t + half) * m / (n + (Fraction(1, 10) if convention == "dino" else 0)) - half
    first = place.numerator // place.denominator - 1
    for tap in range(first, first + 4):
        row[min(max(tap, 0), m - 1)] += kernel(place - tap, Fraction(-3, 4))
    return row


def off(m, n, convention, expected):
    """The largest difference between the shipped weights and other ones."""
    got = resizing.weights(m, n, convention=convention)
    pairs = zip(got.ravel().tolist(), np.ravel(expected).tolist(), strict=True)
    return float(max(abs(Fraction(x) - Fraction(y)) for x, y in pairs))


def stated(m, n, convention):
    return np.array([definition(t, m, n, convention) for t in range(n)], dtype=object)


@theorem(of=[resizing.cubic], sizes="all x, and 0, 1, -1, 2, 3; every a", values="a piece of the kernel at a distance")
def cubic_pinned():
    """cubic is Keys's kernel: even, 1 at 0, 0 at 1 and from 2 on, and its four weights sum to 1 at every place."""
    x, a = symbol("x"), symbol("a")
    for _, (got, expected) in all_paths(lambda: (resizing.cubic(np.array([x]), a=a)[0], kernel(x, a))):
        prove_equal([got], [expected])
    prove_equal(resizing.cubic(np.array([Scalar(sp.Integer(n)) for n in (0, 1, -1, 2, 3)]), a=a), [1, 0, 0, 0, 0])
    part, distance = symbol("part"), symbol("distance", nonnegative=True)
    pieces = {}
    for _, (got, expected) in all_paths(lambda: (resizing.cubic(np.array([distance]), a=a)[0], kernel(distance, a))):
        prove_equal([got], [expected])
        pieces[expression(got)] = None
    near, far, none = pieces
    at = lambda piece, x: piece.subs(distance.e, x)
    four = at(near, part.e) + at(near, 1 - part.e) + at(far, 1 + part.e) + at(far, 2 - part.e)
    prove_equal([four, none], [1, 0])


@cubic_pinned.control
def cubic_does_not_depend_on_a():
    """The kernel with -3/4 is that with -1/2."""
    x = np.array([Scalar(sp.Rational(1, 2))])
    prove_equal(resizing.cubic(x, a=sp.Rational(-3, 4)), resizing.cubic(x, a=sp.Rational(-1, 2)))


@example(
    of=[resizing.weights, resizing.cubic],
    sizes="nine pairs of up to 7 rows and 6 places",
    equivalent={
        f"weights: beyond = np.arange(-2, length + 2)  ->  beyond = np.arange({ends})": "the kernel is 0 there"
        for ends in ("-3, length + 2", "-2, length + 3")
    },
)
def weights_pinned():
    """weights is each convention's formula within 2^-45, whose rows sum to 1 exactly: a constant table is kept. A place below 8
    is off by 4 roundings, the kernel's slope is below 3, and its terms, at most 18, meet 6: 4 * 8 * 3 + 6 * 18 < 2^8 units of
    2^-53."""
    for m, n in SIZES:
        for convention in resizing.CONVENTIONS:
            expected = stated(m, n, convention)
            premise((expected.sum(axis=-1) == 1).all(), "rows of the formulas sum to 1")
            prove_that(off(m, n, convention, expected) <= 2.0**-45, f"{convention}: {m} rows at {n} places")


@weights_pinned.claim("Corners on corners, and half a patch within them: they differ at every place but the middle.")
def centres_are_corners():
    """It makes no difference whether corners or centres are laid on each other (2 rows, 4 places)."""
    found = off(2, 4, "vilt", stated(2, 4, "beit"))
    prove_that(found <= 2.0**-45, counterexample=f"the largest difference of two weights is {found:.4f}, expected 0")


@weights_pinned.claim("Its kernel has another constant, so it differs also where patches get more.")
def antialias_is_for_shrinking():
    """antialias changes nothing where patches get more (4 rows, 6 places)."""
    found = off(4, 6, "timm", stated(4, 6, "transformers"))
    prove_that(found <= 2.0**-45, counterexample=f"the largest difference of two weights is {found:.4f}, expected 0")


@example(of=[resizing.weights, resizing.cubic], sizes="1 to 9 rows at as many places")
def as_many_places():
    """With as many places as rows nothing changes, but for DINO, whose scale is a little too large."""
    for m in range(1, 10):
        for convention in ("transformers", "timm", "vilt", "beit", "siglip2"):
            prove_that(off(m, m, convention, np.eye(m)) == 0, f"{convention}: {m} rows")


@as_many_places.claim("It does: every place moves. The code returns the table as it is for the number it was trained with.")
def dino_changes_nothing_either():
    """DINO's scale of (n + 0.1) / n changes nothing at the trained size."""
    found = off(4, 4, "dino", np.eye(4))
    prove_that(found == 0, counterexample=f"n = 4: the largest change of a weight is {found:.4f}, expected 0")


@theorem(
    of=[resizing.resize, resizing.weights, resizing.cubic], sizes="2 x 3 and 1 x 2 patches to two other grids; every table"
)
def resize_pinned():
    """By products of the weights A and B, a place gets P[y, x] = sum_ab A[y, a] B[x, b] T[a, b], features alike: rows are
    resized, then columns."""
    for (m, n), (height, width) in (((2, 3), (3, 2)), ((1, 2), (2, 5))):
        table = symbols("T", m, n, 2)
        for convention in resizing.CONVENTIONS:
            rows, columns = (resizing.weights(*sizes, convention=convention) for sizes in ((m, height), (n, width)))
            got = resizing.resize(table, height, width, convention=convention)
            expected = np.zeros((height, width, 2), dtype=object)
            for y, x, a, b in np.ndindex(height, width, m, n):
                expected[y, x] += [expression(rows[y, a]) * expression(columns[x, b]) * cell.e for cell in table[a, b]]
            prove_equal(got, expected, mention=[table[0, 0, 0]])


resize_pinned.control_by("resizing.resize", "nearest", table=symbols("T", 2, 2, 1), height=1, width=4, convention="timm")
resize_pinned.control_by("resizing.resize", "all_in_a_row", table=symbols("T", 2, 2, 1), height=2, width=4, convention="vilt")


@resize_pinned.claim("The table must be laid out as its grid: (height, width).")
def transposed_table():
    """A table read as (width, height) gives the same (2 x 3 patches, as many places)."""
    table = symbols("T", 2, 3, 1)
    prove_that(table.shape != table.swapaxes(0, 1).shape, "another grid")
    prove_equal(resizing.resize(table.reshape(3, 2, 1), 2, 3, convention="beit"), table)
