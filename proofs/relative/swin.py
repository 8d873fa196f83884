"""Swin: the table of a window, logarithmic coordinates, capped cosine scores, and a mask that is not minus infinity."""

# Over budget: two versions, BEiT's table, shifted windows and released masks

import itertools

import numpy as np
import sympy as sp

from posref import attention
from posref.offsets import offsets
from posref.relative import swin
from proofs.absolute.learned import named
from proofs.kit import *

WINDOWS = [(1, 1), (1, 3), (2, 3), (3, 2), (4, 3), (1, 5)]


def grid(height, width):
    return np.array([*np.ndindex(height, width)])


def row(query, key, height, width):
    """(dy + H - 1)(2W - 1) + dx + W - 1 with (dy, dx) = query - key. Liu et al., arXiv 2103.14030, section 3.2."""
    (dy, dx) = (int(a - b) for a, b in zip(query, key, strict=True))
    return (dy + height - 1) * (2 * width - 1) + dx + width - 1


def spaced(x, window, m=sp):
    """sign(x) log_8(1 + 8 |x| / (W - 1)). Liu et al., arXiv 2111.09883, Eq. (4), and its code."""
    size = m.log(1 + 8 * abs(x) / (window - 1), 2) / 3
    return -size if x < 0 else size


def network(dy, dx, w_1, b_1, w_2, window, m=sp):
    """16 sigmoid(w_2 . max(w_1 x + b_1, 0)) at x = (g(dy), g(dx)); one head. Eq. (3) and its code."""
    x = spaced(dy, window[0], m), spaced(dx, window[1], m)
    hidden = [a * x[0] + b * x[1] + c for (a, b), c in zip(w_1, b_1, strict=True)]
    return 16 / (1 + m.exp(-sum(w * (h if h >= 0 else 0) for w, h in zip(w_2, hidden, strict=True))))


def cosine(q, k, tau, m=sp):
    """tau q . k / (|q| |k|). Eq. (2)."""
    dot = lambda x, y: sum(a * b for a, b in zip(x, y, strict=True))
    return tau * dot(q, k) / m.sqrt(dot(q, q)) / m.sqrt(dot(k, k))


# the table


@theorem(
    of=[swin.rows, swin.bias, offsets], sizes="six windows of 1 by 1 up to 4 by 5; every table; all of them moved by (5, 7)"
)
def pinned():
    """Entry (a, i, j) of bias is T[row(query - key), a], T being free; moving all tokens changes nothing."""
    for height, width in WINDOWS:
        places, rows = grid(height, width), (2 * height - 1) * (2 * width - 1)
        table = symbols("T", rows, 2)
        expected = [[[table[row(q, k, height, width), a] for k in places] for q in places] for a in range(2)]
        for moved in (places, places + np.array([5, 7])):
            prove_equal(swin.bias(swin.rows(moved, height=height, width=width), table), expected)


pinned.control_by("swin.bias", "sign", coordinates=grid(2, 3), table=symbols("T", 15, 1), height=2, width=3)
pinned.control_by("swin.bias", "stride_of_the_height", coordinates=grid(2, 3), table=symbols("T", 15, 1), height=2, width=3)


@pinned.claim("It sees the vector: one token on in the text may be a row down and two columns back.")
def the_offset_in_the_text_decides():
    """Tokens of a window are a text, and the bias depends on j - i."""
    found = swin.rows(grid(2, 3), height=2, width=3)
    prove_equal([found[0, 1]], [found[2, 3]])


@example(of=[swin.rows], sizes="all windows up to 6 by 6")
def every_vector_has_a_row():
    """rows maps the vectors of a window one to one onto 0 .. (2H - 1)(2W - 1) - 1."""
    for height, width in itertools.product(range(1, 7), repeat=2):
        places, by_vector = grid(height, width), {}
        found = swin.rows(places, height=height, width=width)
        for i, j in np.ndindex(found.shape):
            by_vector.setdefault(tuple(places[i] - places[j]), set()).add(int(found[i, j]))
        rows = sorted(x for values in by_vector.values() for x in values)
        prove_that(rows == list(range((2 * height - 1) * (2 * width - 1))), f"one to one for {height} x {width}")


@every_vector_has_a_row.claim("With 2H - 1 two vectors share a row if 1 < H < W, and if H > W some are beyond the table.")
def the_stride_may_be_the_height():
    """The stride may be 2H - 1 as well (a window of 2 x 4)."""
    found = swin.rows(grid(2, 4), height=2, width=4)
    other = (found // 7) * 3 + found % 7
    witness = f"a window of 2 x 4 has {len(np.unique(other))} rows, expected {len(np.unique(found))}"
    prove_that(len(np.unique(other)) == len(np.unique(found)), counterexample=witness)


@theorem(of=[swin.rows_with_cls, swin.bias], sizes="six windows of 1 by 1 up to 4 by 5; every table")
def pinned_with_cls():
    """BEiT: the patches have Swin's rows; row N - 3 is (CLS, any), N - 2 (any, CLS), N - 1 (CLS, CLS) of N rows."""
    for height, width in WINDOWS:
        places, rows = grid(height, width), (2 * height - 1) * (2 * width - 1) + 3
        table, n = symbols("T", rows, 1), height * width
        found = swin.rows_with_cls(places, height=height, width=width)
        expected = [[rows - 1] + [rows - 3] * n]
        expected += [[rows - 2, *(row(q, k, height, width) for k in places)] for q in places]
        prove_equal(swin.bias(found, table)[0], table[:, 0][np.array(expected)])


@pinned_with_cls.claim("transformers reads it so: right for square windows alone.")
def the_table_may_be_read_as_width_by_height():
    """The table of a window of H x W may be read as (2W - 1) x (2H - 1) and laid out for W x H."""
    table = symbols("T", 15, 1)
    turned = np.concatenate([table[:15].reshape(5, 3, 1).swapaxes(0, 1).reshape(15, 1)])
    found = swin.rows(grid(2, 3), height=2, width=3)
    prove_equal(swin.bias(found, turned), swin.bias(found, table))


# version 2


@theorem(
    of=[swin.log_spaced],
    sizes="all offsets and windows",
    equivalent={
        "log_spaced: return np.where(offsets < 0, -size, size)  ->  return np.where(offsets <= 0, -size, size)": "0 is its own "
        "negative"
    },
)
def log_spaced_pinned():
    """g(x, W) = sign(x) log_8(1 + 8 |x| / (W - 1)): 0 at 0, odd, increasing with the slope 8 / ((W - 1 + 8 |x|) ln 8), and
    log_8(9) = 1.0566 at the window's end."""
    x, reach = symbol("x", positive=True), symbol("r", positive=True)
    plus, minus, zero, end = swin.log_spaced(array([x, -x, 0, reach]), window=reach + 1)
    prove_equal([plus], [spaced(x.e, reach.e + 1)], mention=[x, reach])
    prove_equal([-minus, zero, end], [spaced(x.e, reach.e + 1), 0, sp.log(9, 2) / 3])
    prove_equal([expression(plus).diff(x.e)], [8 / (reach.e + 8 * x.e) / 3 / sp.log(2)])


@log_spaced_pinned.claim("It ends at log_8(9) = 1.0566, since 1 is added before the logarithm.")
def coordinates_run_to_one():
    """Coordinates lie between -1 and 1."""
    prove_equal(swin.log_spaced(array([7]), window=8), [1])


@theorem(
    of=[swin.continuous_bias, swin.log_spaced, offsets],
    sizes="2 tokens at vectors whose coordinates are multiples of 1/3, 2 hidden features; every network of 1 head",
)
def pinned_continuous():
    """Entry (i, j) is 16 sigmoid of the network at (g(dy), g(dx)), for every network: nothing but the vector enters."""
    w_1, b_1, w_2, window = symbols("w", 2, 2), symbols("b", 2), symbols("u", 1, 2), (sp.Integer(9), sp.Integer(17))
    given = {"height": Scalar(window[0]), "width": Scalar(window[1])}
    for tokens in (np.array([[0, 0], [3, 2]]), np.array([[0, 14], [7, 8]])):
        cells = lambda tokens=tokens: (
            swin.continuous_bias(tokens, w_1, b_1, w_2, **given)[0],
            [[network(*map(int, q - k), w_1, b_1, w_2[0], window) for k in tokens] for q in tokens],
        )
        for _, (got, expected) in all_paths(cells):
            prove_equal([[expression(x).rewrite(sp.exp) for x in r] for r in got], expected)


@pinned_continuous.claim("The window that was trained divides; by the new one every bias would change.")
def the_new_window_divides():
    """Fine-tuned at another window, the coordinates are those of the new window."""
    one = array([[1, 0]]), array([0]), symbols("u", 1, 1)
    tokens = np.array([[0, 0], [7, 0]])
    small, large = (swin.continuous_bias(tokens, *one, height=Scalar(n), width=Scalar(n)) for n in (9, 57))
    prove_equal(small, large)


MOVED = "logarithmic_bias: return np.moveaxis(_network(np.where(vector {} 0, -size, size), w_1, b_1, w_2) + b_2, -1, -3)"


@theorem(
    of=[swin.logarithmic_bias, offsets],
    sizes="2 tokens at four vectors, 2 hidden features; every network of 2 heads",
    equivalent={
        MOVED.format("<") + "  ->  " + MOVED.format("<=")[len("logarithmic_bias: ") :]: "0 is its own negative",
        MOVED.format("<") + "  ->  " + MOVED.format("<").replace(" 0,", " 1,")[len("logarithmic_bias: ") :]: "so it is, and "
        "offsets are whole",
    },
)
def pinned_logarithmic():
    """Entry (a, i, j) is head a of the network at sign(x) ln(1 + |x|) of dy and dx, with its last bias and no sigmoid; b_2 is
    one number for all keys, which a softmax does not see."""
    w_1, b_1, w_2, b_2 = symbols("w", 2, 2), symbols("b", 2), symbols("u", 2, 2), symbols("c", 2)
    far = lambda x: sp.sign(int(x)) * sp.log(1 + abs(int(x)))

    def cells(tokens):
        stated = []
        for q, k in itertools.product(tokens, repeat=2):
            hidden = [max(w[0] * far(q[0] - k[0]) + w[1] * far(q[1] - k[1]) + b, 0) for w, b in zip(w_1, b_1, strict=True)]
            stated.append((w_2 * array(hidden)).sum(axis=-1) + b_2)
        return swin.logarithmic_bias(array(tokens), w_1, b_1, w_2, b_2), np.reshape(np.transpose(stated), (2, 2, 2))

    for tokens in (np.array([[0, 0], [3, 2]]), np.array([[0, 4], [1, 0]])):
        for _, (got, stated) in all_paths(lambda tokens=tokens: cells(tokens)):
            prove_equal(got, stated, mention=[b_2[0]])


LAYERS = {"w_1": array([[1, 1]]), "b_1": array([9]), "w_2": array([[1]]), "b_2": array([0])}
pinned_logarithmic.control_by("swin.logarithmic_bias", "base_of_8", coordinates=grid(1, 2), **LAYERS)


@theorem(
    of=[swin.scores],
    sizes="2 heads, 1 query, 2 keys, d = 2; every logit scale",
    values="a norm is the root of the sum of squares",
    equivalent={
        "scores: tau = np.exp(np.minimum(logit_scale, np.log(100 + 0 * logit_scale)))  ->  "
        "tau = np.exp(np.minimum(logit_scale, np.log(100 - 0 * logit_scale)))": "0 has no sign",
        "_unit: x = x / _require.nonzero('swin.scores', name, x)  ->  "
        "x = x * _require.nonzero('swin.scores', name, x)": "a factor of the row cancels",
    },
)
def scores_pinned():
    """A score is tau cos(q, k) with tau = min(e^s, 100), the same for longer queries; and tau^2 - score^2 is a square, so a
    score is tau at most. The norms are symbols."""
    q, k, s, c = symbols("q", 2, 1, 2), symbols("k", 2, 2, 2), symbols("s", 2), symbol("c", positive=True)
    ours = lambda: (swin.scores(q, k, s), swin.scores(c * q, k, s), [np.exp(x) if x <= sp.log(100) else 100 for x in s])
    for _, (got, longer, tau) in all_paths(ours):
        for a, j in np.ndindex(2, 2):
            rows, norms = [q[a, 0], k[a, j]], symbols("norm", 2, positive=True)
            expected = tau[a] * (q[a, 0] @ k[a, j]) / norms[0] / norms[1]
            prove_equal(named(got[a, :, j : j + 1], rows, norms), [[expected]], mention=rows[0])
            scaled = [c * rows[0], rows[1]], [c * norms[0], norms[1]]
            prove_equal(named(longer[a, :, j : j + 1], *scaled), [[expected]])
            (w, x), (y, z) = rows
            room = (tau[a] * (w * z - x * y)) ** 2 / (w * w + x * x) / (y * y + z * z)
            prove_equal([sp.expand(expression(tau[a] ** 2 - got[a, 0, j] ** 2))], [room])


@scores_pinned.claim("Cosines are not divided by sqrt(d); the temperature is learned.")
def scores_are_scaled_as_usual():
    """The scores are divided by sqrt(d) (d = 4)."""
    got = swin.scores(array([[[3, 4, 0, 0]]]), array([[[0, 2, 0, 0]]]), array([0]))
    prove_equal(got, [[[sp.Rational(4, 5) / 2]]])


# windows that are shifted


def region(x, side, window, shift):
    """0, 1 or 2: before n - window, before n - shift, or beyond; the released code's slices of one axis."""
    return (x >= side - window) + (x >= side - shift)


@example(of=[swin.shift_mask], sizes="five images up to 12 x 8 with every shift below the window")
def shifted_windows():
    """Two tokens of a window see each other if and only if they stand as far apart in the image as in the rolled one; and if
    and only if they are of one of the released code's nine regions."""
    for height, width, window in ((4, 4, 2), (4, 6, 2), (6, 9, 3), (8, 4, 4), (12, 8, 4)):
        places, sides = grid(height, width), np.array([height, width])
        together = (places[:, None] // window == places // window).all(-1)
        for shift in range(window):
            got = swin.shift_mask(places, height=height, width=width, shift=shift)
            before = (places + shift) % sides
            near = (before[:, None] - before == places[:, None] - places).all(-1)
            regions = np.array([[region(int(x), int(n), window, shift) for x, n in zip(p, sides, strict=True)] for p in places])
            for expected in (near, (regions[:, None] == regions).all(-1)):
                prove_that(bool((got == expected)[together].all()), f"{height} x {width}, window {window}, shift {shift}")


shifted_windows.control_by("swin.shift_mask", "not_rolled", coordinates=grid(4, 4), height=4, width=4, shift=1)


shifted_windows.control_by("swin.shift_mask", "padded_after_rolling", coordinates=grid(4, 4), height=4, width=4, shift=1)


@theorem(of=[attention.attend], sizes="one token and one of padding; all scores, values and biases of the projections")
def padding_takes_a_share():
    """A token of padding has the bias of the keys as its key and that of the values as its value, and nothing forbids it: a
    token with the score s that is alone in its window gives (v + e^(t - s) b_v) / (1 + e^(t - s)), t = q . b_k, and v / 2 where
    both biases are 0 and s is 0."""
    q, k, v, b_k, b_v = (symbols(name, 1, 2) for name in ("q", "k", "v", "f", "g"))
    window = lambda token, padding: np.concatenate([token, padding])
    for _, got in all_paths(lambda: attention.attend(q, window(k, b_k), window(v, b_v), scale=1)):
        other = sp.exp(expression((q @ b_k.T)[0, 0] - (q @ k.T)[0, 0]))
        prove_equal(got[0], [(a.e + other * b.e) / (1 + other) for a, b in zip(v[0], b_v[0], strict=True)], mention=[v[0, 0]])
    prove_equal(attention.attend(0 * q, window(k, 0 * k), window(v, 0 * v), scale=1), v / 2, mention=[])


@padding_takes_a_share.claim("A score of 0 is a score; only a mask takes a key out.")
def padding_of_zeros_changes_nothing():
    """Tokens of zeros have no weight."""
    v = symbols("v", 1, 2)
    prove_equal(attention.attend(array([[0, 0]]), np.zeros((2, 2), int), np.concatenate([v, 0 * v]), scale=1), v)


@theorem(of=[swin.shift_bias, attention.softmax], sizes="two keys, one of them forbidden; all scores")
def a_mask_of_100_leaks():
    """A forbidden score that is larger by 100 + p keeps the share 1 / (1 + e^-p) when -100 is added to it, and one larger by
    200 + p when that is added twice, as transformers does. Swin v2's cosines at the cap are 200 apart, for q = -k on the key
    that is allowed and q = k on the other: the share is 1 / (1 + e^-100), or 1/2; under a mask it is 0."""
    s, p, forbidden = symbol("s"), symbol("p"), swin.shift_bias(np.array([[True, False]] * 2))[0]
    for times in (1, 2):
        scores = array([s, s + p + 100 * times]) + times * forbidden
        for _, weights in all_paths(lambda scores=scores: attention.softmax(scores)):
            prove_equal(weights, [1 / (1 + sp.exp(p.e)), 1 / (1 + sp.exp(-p.e))], mention=[p])
    opposite = swin.scores(array([[[1]]]), array([[[-1], [1]]]), array([10]))[0, 0]
    prove_equal(opposite, [-100, 100])
    prove_equal(attention.softmax(opposite + 2 * forbidden), [sp.Rational(1, 2)] * 2)
    prove_equal(attention.softmax(opposite, forbidden == 0), [1, 0])


@a_mask_of_100_leaks.claim("It is a number: where logits differ by 200 the forbidden key has nearly all the weight.")
def a_mask_of_100_is_a_mask():
    """-100 is as good as minus infinity."""
    scores = array([symbol("s"), symbol("s") + 200]) + 2 * swin.shift_bias(np.array([[True, False]] * 2))[0]
    prove_equal(attention.softmax(scores), attention.softmax(scores, np.array([True, False])))
