"""RoPE scaling: linear, NTK, dynamic NTK, YaRN, Llama 3, LongRoPE, proportional."""

# Over budget: seven schedules, each in the words of its paper and of released code

import numpy as np
import sympy as sp

from posref import attention, pairing
from posref.rotary import rope, scaling
from proofs.kit import *

DEFAULTS = {"beta_fast": 32.0, "beta_slow": 1.0, "factor": 1, "mscale": 1.0, "ramp": "index"}  # YaRN
ROUNDS = {"proportional": "pinned_proportional", "yarn_range": "yarn_range_counts_turns"}
BRANCHES_ON_NUMBERS = {"dynamic_length": "lengths_by_rule", "longrope_list": "lengths_by_rule"}

N, H, REST = size("n"), size("h"), size("rest")
EXCESS = symbol("excess", nonnegative=True)
S = 1 + EXCESS  # a factor of at least 1


def definition(rule, w, t, *, factor, m=sp, **given):
    """One frequency of each schedule, from the papers and Meta's loop; `given` are the numbers that the rule needs."""
    return {"linear": _linear, "ntk": _ntk, "yarn": _yarn, "llama3": _llama3}[rule](w, t, factor, m=m, **given)


def _linear(w, t, factor, m):
    return w / factor


def _ntk(w, t, factor, m, pairs):
    return w * factor ** (sp.Rational(-t, pairs - 1) if m is sp else -m.mpf(t) / (pairs - 1))


def _yarn(w, t, factor, m, along, start, end):
    ramp = (along - start) / (end - start)
    ramp = 0 if ramp < 0 else 1 if ramp > 1 else ramp
    return (1 - ramp) * w + ramp * w / factor


def _llama3(w, t, factor, m, low, high, length):
    # symbols meet the float pi of the shipped code, which the proofs treat as any number
    turns = length * w / (2 * (np.pi if m is sp else m.pi))
    if turns < low:
        return w / factor
    if not turns < high:
        return w
    smooth = (turns - low) / (high - low)
    return (1 - smooth) * w / factor + smooth * w


def paths(run):
    """The result on every path that is not refused; every refusal comes from posref."""

    def attempt():
        try:
            return run()
        except ValueError as error:
            return error

    taken = 0
    for _, result in all_paths(attempt):
        refused = isinstance(result, ValueError)
        prove_that(not refused or str(result).startswith("scaling."), "a contract or a check of posref refuses these settings")
        if not refused:
            taken += 1
            yield result
    prove_that(taken > 0, "some path is not refused")


# the simple ones


@theorem(of=[scaling.linear, scaling.longrope], sizes="all d")
def pinned_quotients():
    """linear(w)_t = w_t / s and longrope(w)_t = w_t / lambda_t."""
    w, lam, t = sized("w", H), sized("lambda", H), index(H)
    prove_equal([scaling.linear(w, factor=S).at(t)], [definition("linear", w.at(t), t, factor=S.e)], mention=[EXCESS, w.at(t)])
    expected = definition("linear", w.at(t), t, factor=lam.at(t))
    prove_equal([scaling.longrope(w, factors=lam).at(t)], [expected], mention=[lam.at(t), w.at(t)])


@pinned_quotients.control
def the_factor_multiplies():
    """linear(w) = s w"""
    w = symbols("w", 2)
    prove_equal(scaling.linear(w, factor=S), w * S)


@pinned_quotients.control
def the_list_reversed():
    """The factors belong to the pairs from the last to the first."""
    w, lam = symbols("w", 2), symbols("lambda", 2)
    prove_equal(scaling.longrope(w, factors=lam), scaling.longrope(w, factors=lam[::-1]))


@theorem(of=[scaling.linear, rope.tables], sizes="all n, d; s >= 1", as_written="runs")
def interpolation_of_positions():
    """Position m with frequencies linear(w) is position m / s with w: the angles are equal for all m."""
    w, m, s = sized("w", H), sized("m", N), symbol("s", positive=True)
    with assuming(s.e >= 1):
        divided, original = rope.tables(m, scaling.linear(w, factor=s)), rope.tables(m / s, w)
    for left, right in zip(divided, original, strict=True):
        prove_equal(*entries(None, left, right), mention=[s])


@interpolation_of_positions.control
def positions_multiplied():
    """Position m with frequencies linear(w) is position m s with w."""
    w, m = symbols("w", 1), symbols("m", 1)
    prove_equal(rope.tables(m, scaling.linear(w, factor=2))[0], rope.tables(m * 2, w)[0])


# NTK


@theorem(of=[scaling.ntk, rope.frequencies], sizes="d = 4, 6, 10, 18, 34; s >= 1")
def pinned_ntk():
    """ntk(w)_t = w_t s^(-t / (h - 1)) for any w: the first is kept, the last divided by exactly s; and of
    b^(-2t / dim) it makes the frequencies of the base b s^(dim / (dim - 2)), here written z^dim."""
    s, z = symbol("s", positive=True), symbol("z", positive=True)
    for pairs in (2, 3, 5, 9, 17):
        w, dim = symbols("w", pairs), 2 * pairs
        with assuming(s.e >= 1):
            scaled = scaling.ntk(w, factor=s)
        expected = [definition("ntk", w[t].e, t, factor=s.e, pairs=pairs) for t in range(pairs)]
        prove_equal(scaled, expected, mention=[s, w[1]])
        prove_equal([scaled[0], scaled[-1]], [w[0], w[-1] / s])
        # z^dim is b s^(dim/(dim-2))
        plain = array([z.e ** (-2 * t) * s.e ** sp.Rational(2 * t, dim - 2) for t in range(pairs)])
        with assuming(s.e >= 1):
            prove_equal(scaling.ntk(plain, factor=s), rope.frequencies(sp.Integer(dim), z**dim), mention=[z])


@pinned_ntk.claim("The base is b s^(dim / (dim - 2)).")
def the_base_times_the_factor():
    """Scaling is the base b s, as in diffusers' ntk_factor."""
    s, z = symbol("s", positive=True), symbol("z", positive=True)
    plain = array([1, z.e**-2 * s.e ** sp.Rational(1, 2)])  # z^4 is b s, not b s^2
    with assuming(s.e >= 1):
        prove_equal(scaling.ntk(plain, factor=s), rope.frequencies(sp.Integer(4), z**4))


@pinned_ntk.claim("NTK keeps the first frequency and divides the last by s.")
def every_frequency_divided():
    """All frequencies are divided by one number, as keras-hub's rope_type=dynamic does."""
    w, s = symbols("w", 3), symbol("s", positive=True)
    with assuming(s.e >= 1):
        scaled = scaling.ntk(w, factor=s)
    prove_equal(scaled / w, array([scaled[1] / w[1]] * 3))


@theorem(of=[scaling.dynamic_ntk, scaling.ntk], sizes="3 frequencies; every length")
def pinned_dynamic_ntk():
    """dynamic_ntk is ntk with the factor s max(l, L) / L - (s - 1): nothing changes for l <= L. At l = s L, the length that
    vLLM always takes, the last frequency is divided by s^2 - s + 1."""
    w, length, root = symbols("w", 3), symbol("L", integer=True, positive=True), 1 + symbol("g", nonnegative=True)
    more, s = symbol("more", integer=True, nonnegative=True), S

    def scaled(text, length=length):
        with assuming(expression(text) >= length.e if text is longer else sp.true):
            return scaling.dynamic_ntk(w, factor=s, length=text, original_length=length)

    longer = length * (root * root + s - 1) / s  # whose factor is r^2: every length from L on has this form
    stated = [definition("ntk", w[t], t, factor=root * root, pairs=3) for t in range(3)]
    prove_equal(scaled(longer), stated, mention=[w[1], symbol("g", nonnegative=True)])
    for original in (length, length + 1 + more):
        prove_equal(scaled(length, original), w)
    prove_equal([scaled(length * s)[-1]], [w[-1] / (s * s - s + 1)])


@pinned_dynamic_ntk.claim("At l = s L it is divided by s^2 - s + 1.")
def the_last_frequency_divided_by_the_factor():
    """At l = s L the last frequency is divided by s."""
    w, length = symbols("w", 3), symbol("L", integer=True, positive=True)
    prove_equal([scaling.dynamic_ntk(w, factor=S, length=length * S, original_length=length)[-1]], [w[-1] / S])


# YaRN

TURN, BASE, X, Y = symbol("turn", positive=True), symbol("logb", positive=True), symbol("x"), symbol("y")
# every setting is of this form: the first of b^(-2t / dim) makes e^x beta_fast and e^(x + y) beta_slow turns
SETTINGS = {"original_length": 2 * np.pi * TURN, "beta_fast": TURN * np.exp(-X), "beta_slow": TURN * np.exp(-X - Y)}
B = np.exp(BASE)


def edges(dim):
    """low and high without truncation, on every path."""
    return paths(lambda: scaling.yarn_range(dim, B, **SETTINGS, truncate=False))


def stated_edges(dim):
    """dim ln(L / (2 pi beta)) / (2 ln b) for both betas, whose logarithms are x and x + y; cut to 0 and to dim - 1."""
    low, high = (dim * logarithm / (2 * BASE) for logarithm in (X, X + Y))
    return np.maximum(low, 0), np.minimum(high, dim - 1)


@theorem(of=[scaling.yarn_range], sizes="d = 4, 128; two examples with rounding")
def yarn_range_counts_turns():
    """low is the real index whose frequency b^(-2 low / dim) makes exactly beta_fast turns in L tokens, but at least 0; high is
    that of exactly beta_slow turns, but at most dim - 1."""
    for dim in (4, 128):
        both = lambda dim=dim: (scaling.yarn_range(dim, B, **SETTINGS, truncate=False), stated_edges(dim))
        for shipped, stated in paths(both):
            prove_equal([*shipped], [*stated])
    for name, exponent in (("beta_fast", X), ("beta_slow", X + Y)):  # b^(-2 low / dim) is e^-x
        prove_equal([SETTINGS["original_length"] * np.exp(-exponent) / (2 * np.pi)], [SETTINGS[name]], mention=[TURN])
    prove_equal(scaling.yarn_range(8, 10000.0, original_length=16, truncate=True), [0, 1])
    prove_equal(scaling.yarn_range(8, 2.0, original_length=64, truncate=True), [0, 7])


@yarn_range_counts_turns.control
def the_edges_count_features():
    """The index counts features, not pairs: b^(-low / dim) makes beta_fast turns."""
    for low, _ in edges(4):
        prove_equal([SETTINGS["original_length"] * np.exp(-BASE * low / 4) / (2 * np.pi)], [SETTINGS["beta_fast"]])


@yarn_range_counts_turns.claim("The pair at the truncated edge makes more turns than beta_fast: gpt-oss at t = 8 makes 33.1.")
def truncation_changes_nothing():
    """Whether low and high are rounded makes no difference."""
    given = {"factor": 32, "original_length": 4096, "base": 150000.0}
    w = array([sp.Rational(1, 2)] * 32)
    prove_equal(scaling.yarn(w, **given, truncate=True), scaling.yarn(w, **given, truncate=False))


@theorem(of=[scaling.yarn, scaling.yarn_range], sizes="d = 6, edges that are not rounded")
def pinned_yarn():
    """yarn(w)_t = (1 - e_t) w_t + e_t w_t / s, e_t = clip((t - low) / (high - low), 0, 1), for any w and settings; low and high
    are those of `yarn_range_counts_turns`."""
    w = symbols("w", 3)

    def both():
        low, high = stated_edges(6)
        shipped = scaling.yarn(w, factor=S, base=B, **SETTINGS, truncate=False)
        stated = [definition("yarn", w[t], t, factor=S, along=t, start=low, end=high) for t in range(3)]
        return shipped, stated

    for shipped, stated in paths(both):
        prove_equal(shipped, stated, mention=[w[2]])


@pinned_yarn.claim("1 - e_t is what is kept: litgpt 0.5.13 blends with e_t and divides the fast pairs.")
def the_ramp_upside_down():
    """The fast pairs are divided and the slow ones kept."""
    w = symbols("w", 4)
    given = {"factor": 4, "original_length": 4096, "base": 10000.0, "beta_fast": 32, "beta_slow": 1, "truncate": True}
    low, high = scaling.yarn_range(8, 10000.0, original_length=4096, truncate=True)
    upside_down = [definition("yarn", w[t], t, factor=4, along=t, start=high, end=low) for t in range(4)]
    prove_equal(scaling.yarn(w, **given), upside_down)


def lengths():
    """The length of training and the two edges of YaRN's ramp."""
    return [symbol(name, positive=True) for name in ("L", "fast", "slow")]


@theorem(of=[scaling.yarn], sizes="2 frequencies")
def pinned_yarn_over_turns():
    """With ramp="turns", as in the paper, e_t = clip((beta_fast - n_t) / (beta_fast - beta_slow), 0, 1), n_t = L w_t / 2 pi."""
    w, (length, fast, slow) = symbols("w", 2), lengths()
    given = {"original_length": length, "beta_fast": fast, "beta_slow": slow}

    def both():
        shipped = scaling.yarn(w, factor=S, base=B, **given, ramp="turns", truncate=False)
        turns = [length * w[t] / (2 * np.pi) for t in range(2)]
        stated = [definition("yarn", w[t], t, factor=S, along=-turns[t], start=-fast, end=-slow) for t in range(2)]
        return shipped, stated

    for shipped, stated in paths(both):
        prove_equal(shipped, stated, mention=[w[1]])


@pinned_yarn_over_turns.claim("Between the edges the two ramps differ: turns fall geometrically with the index.")
def the_ramps_are_one():
    """A ramp over the index and one over the turns are the same."""
    w = array([sp.Rational(1, 10**t) for t in range(4)])  # of base 10^4
    given = {"factor": 4, "original_length": 4096, "base": 10000.0, "truncate": False}
    prove_equal(scaling.yarn(w, **given), scaling.yarn(w, **given, ramp="turns"))


@theorem(of=[scaling.yarn], sizes="d = 4", argument="e_t is a clipped line: it lies between 0 and 1 and grows with t")
def yarn_stays_between():
    """w'_t = w_t / s + (1 - e_t) (w_t - w_t / s), so w_t / s <= w'_t <= w_t; e_t is 0, 1 or on the line; s = 1 keeps all."""
    w, (length, fast, slow) = symbols("w", 2), lengths()
    given = {"base": B, "original_length": length, "beta_fast": fast, "beta_slow": slow, "ramp": "turns", "truncate": False}
    for scaled, same in paths(lambda: [scaling.yarn(w, factor=factor, **given) for factor in (S, 1)]):
        prove_equal(same, w)
        for t in range(2):
            line = (fast - length * w[t] / (2 * np.pi)) / (fast - slow)
            ramp = [e for e in (0, 1, line) if is_zero(expression(scaled[t] - (w[t] / S + (1 - e) * (w[t] - w[t] / S))))]
            prove_that(len(ramp) == 1, f"pair {t} is blended by 0, 1 or the line")
    for dim, base, length in ((64, 10000.0, 4096), (128, 1000000.0, 32768), (64, 150000.0, 4096)):
        w = rope.frequencies(dim, base)
        ratio = scaling.yarn(w, factor=4.0, original_length=length, base=base, truncate=True) / w
        prove_that(bool((np.diff(ratio) <= 0).all()), "the ratio w' / w falls with the pair")


@yarn_stays_between.control
def the_ramp_is_not_clipped():
    """Every pair is on the line."""
    w, (length, fast, slow) = symbols("w", 1), lengths()
    given = {"base": B, "original_length": length, "beta_fast": fast, "beta_slow": slow, "ramp": "turns", "truncate": False}
    line = (fast - length * w[0] / (2 * np.pi)) / (fast - slow)
    for scaled in paths(lambda: scaling.yarn(w, factor=S, **given)):
        prove_equal(scaled, [w[0] - line * (w[0] - w[0] / S)])


# Llama 3

BLEND = "blend = (turns - low_freq_factor) / (span {} (span == {}))"


@theorem(
    of=[scaling.llama3],
    sizes="2 frequencies",
    equivalent={
        f"llama3: {BLEND.format('+', 0)}  ->  {BLEND.format(*other)}": "the divisor of a blend that no pair takes"
        for other in (("+", -1), ("-", 0))
    },
)
def pinned_llama3():
    """llama3(w)_t is w_t / s below low turns, w_t from high turns on, and between them (1 - c) w_t / s + c w_t,
    c = (n_t - low) / (high - low): Meta's loop, for any frequencies."""
    w, length, low, more = symbols("w", 2), *(symbol(name, positive=True) for name in ("L", "low", "more"))
    given = {"low": low, "high": low + more, "length": length}
    settings = {"low_freq_factor": low, "high_freq_factor": low + more, "original_length": length}

    def both():
        stated = [definition("llama3", w[t], t, factor=S, **given) for t in range(2)]
        return scaling.llama3(w, factor=S, **settings), stated

    for shipped, stated in paths(both):
        prove_equal(shipped, stated, mention=[w[0], w[1]])


@pinned_llama3.claim("The blend is linear in the turns, which are proportional to the frequency.")
def blended_by_wavelength():
    """Between the edges the frequency is blended linearly in the wavelength."""
    w = 2 * np.pi * array([2]) / 8192  # two turns
    wavelength, long, short = sp.Rational(8192, 2), sp.Rational(8192, 1), sp.Rational(8192, 4)
    kept = (long - wavelength) / (long - short)
    given = {"low_freq_factor": 1, "high_freq_factor": 4, "original_length": 8192}
    prove_equal(scaling.llama3(w, factor=8, **given), w * (1 - kept) / 8 + w * kept)


@theorem(of=[scaling.llama3], sizes="one pair; each pair is scaled by itself")
def llama3_in_other_words():
    """Between the edges the result is w / f with ggml's factor f = 1 / ((1 - c) / s + c), as mlx-lm's period; and the
    wavelength 2 pi / w is above L / low if the turns are below low: 2 pi / w - L / low = (low - n) 2 pi / (w low)."""
    w, length, low, more = (symbol(name, positive=True) for name in ("w", "L", "low", "more"))
    turns = length * w / (2 * np.pi)
    kept = (turns - low) / more
    prove_equal([2 * np.pi / w - length / low], [(low - turns) * 2 * np.pi / (w * low)], mention=[w, length])
    settings = {"low_freq_factor": low, "high_freq_factor": low + more, "original_length": length}
    factors = [1 / ((1 - c) / S + c) for c in (0, kept, 1)]
    for scaled in paths(lambda: scaling.llama3(array([w]), factor=S, **settings)[0]):
        prove_that(sum(is_zero(expression(scaled - w / factor)) for factor in factors) == 1, "one of the three factors")


@llama3_in_other_words.control
def the_factor_of_the_blend_is_blended():
    """The divisor is (1 - c) s + c."""
    w = 2 * np.pi * array([2]) / 8192
    given = {"low_freq_factor": 1, "high_freq_factor": 4, "original_length": 8192}
    prove_equal(scaling.llama3(w, factor=8, **given), w / (sp.Rational(17, 3)))


@theorem(of=[scaling.llama3], sizes="one pair; each pair is scaled by itself")
def llama3_is_continuous():
    """At the edges the blend meets its neighbours: w / s at low turns, w at high turns, if low < high."""
    length, low, more = (symbol(name, positive=True) for name in ("L", "low", "more"))
    settings = {"low_freq_factor": low, "high_freq_factor": low + more, "original_length": length}
    edges = array([2 * np.pi * low / length, 2 * np.pi * (low + more) / length])
    for scaled in paths(lambda: scaling.llama3(edges, factor=S, **settings)):
        prove_equal(scaled, [edges[0] / S, edges[1]], mention=[EXCESS])


@llama3_is_continuous.claim("With equal edges, as in Llama 4 Scout, the frequency jumps by the factor.")
def llama3_is_continuous_with_equal_edges():
    """A frequency just below the edge is scaled as one on it."""
    below, edge = (2 * np.pi * array([n]) / 8192 for n in (sp.Rational(10**9 - 1, 10**9), 1))
    given = {"factor": 16, "low_freq_factor": 1, "high_freq_factor": 1, "original_length": 8192}
    prove_equal(scaling.llama3(below, **given) / below, scaling.llama3(edge, **given) / edge)


# proportional


@theorem(of=[scaling.proportional], sizes="1, 3, 4 and 5 frequencies; fraction = 1/4, 1/2, 3/5, 1")
def pinned_proportional():
    """The first floor(fraction h) frequencies are divided by s, the others are 0."""
    fractions = (sp.Rational(1, 4), sp.Rational(1, 2), sp.Rational(3, 5), sp.Integer(1))
    for pairs, kept in ((1, (0, 0, 0, 1)), (3, (0, 1, 1, 3)), (4, (1, 2, 2, 4)), (5, (1, 2, 3, 5))):
        w = symbols("w", pairs)
        for fraction, count in zip(fractions, kept, strict=True):
            scaled = scaling.proportional(w, fraction=fraction, factor=S)
            prove_equal(scaled, [w[t] / S if t < count else 0 for t in range(pairs)])


@pinned_proportional.claim("The kept pairs are those of the whole head: other denominators, and in half layout other partners.")
def proportional_is_partial_rotary():
    """fraction = 1/2 is RoPE of half the width."""
    x, z, m = symbols("x", 1, 8), symbol("z", positive=True), symbols("m", 1)
    whole, part = rope.frequencies(sp.Integer(8), z**8), rope.frequencies(sp.Integer(4), z**8)
    at = lambda w: rope.tables(m, w)
    turned = rope.rotate(x, *at(scaling.proportional(whole, fraction=sp.Rational(1, 2))), layout="half")
    prove_equal(turned, rope.rotate(x, *at(part), layout="half", rotary_dim=4))


# magnitudes


@theorem(of=[rope.rotate, attention.scores], sizes="all n, d")
def magnitude_is_scale():
    """If all features turn, tables times g give the scores of the softmax scale times g^2, exactly."""
    q, k, c, s, g = sized("q", N, 2 * H), sized("k", N, 2 * H), sized("c", N, H), sized("s", N, H), symbol("g")
    scale = symbol("scale")
    for layout in pairing.LAYOUTS:
        with summing(layout):
            larger = [rope.rotate(x, c * g, s * g, layout=layout) for x in (q, k)]
            plain = [rope.rotate(x, c, s, layout=layout) for x in (q, k)]
            left, right = attention.scores(*larger, scale=scale), attention.scores(*plain, scale=scale * g * g)
            prove_equal(*entries(None, left, right), mention=[g])


@magnitude_is_scale.claim("Features that do not turn are not multiplied: the two differ with a partial rotary width.")
def magnitude_is_scale_for_partial_rotation():
    """Tables times g are the softmax scale times g^2, also if half of the features pass."""
    q, k, c, s, g = symbols("q", 1, 4), symbols("k", 1, 4), symbols("c", 1, 1), symbols("s", 1, 1), symbol("g")
    larger, plain = ([rope.rotate(x, c * f, s * f, layout="half", rotary_dim=2) for x in (q, k)] for f in (g, 1))
    prove_equal(attention.scores(*larger, scale=1), attention.scores(*plain, scale=g * g))


@theorem(of=[scaling.yarn_magnitude, scaling.longrope_magnitude], sizes="no sizes")
def pinned_magnitudes():
    """yarn_magnitude is 0.1 mscale ln s + 1, and the square of longrope_magnitude, which is positive, is 1 + ln s / ln L; both
    are 1 for s = 1."""
    x, y, m = symbol("x", positive=True), symbol("y", positive=True), symbol("m")
    for yarn in paths(lambda: [scaling.yarn_magnitude(np.exp(x), mscale=m)]):
        prove_equal(yarn, [m * x / 10 + 1], mention=[m, x])
    for root in paths(lambda: [scaling.longrope_magnitude(np.exp(x), original_length=np.exp(y))]):
        prove_equal([root[0] ** 2], [1 + x / y], mention=[x, y])
        prove_that(bool(expression(root[0]).is_positive), "the root is positive")
    prove_equal([scaling.yarn_magnitude(1), scaling.longrope_magnitude(1, original_length=4096)], [1, 1])


@pinned_magnitudes.control
def magnitude_with_a_decimal_logarithm():
    """0.1 log10 s + 1"""
    prove_equal([scaling.yarn_magnitude(10.0)], [sp.Rational(11, 10)])


# one schedule in one cache


@theorem(of=[rope.rotate, rope.tables, scaling.linear], sizes="all d")
def one_schedule_is_relative():
    """With one schedule for queries and keys, here any frequencies divided by 4, the score depends on the offset alone."""
    q, k, w, m, n, shift = sized("q", 1, 2 * H), sized("k", 1, 2 * H), sized("w", H), symbol("m"), symbol("n"), symbol("shift")
    at = lambda x, p: rope.rotate(x, *rope.tables(filled((1,), p), scaling.linear(w, factor=4)), layout="half")
    with summing("half"):
        score = lambda m, n: at(q, m) @ np.swapaxes(at(k, n), -1, -2)
        prove_equal(*entries(None, score(m + shift, n + shift), score(m, n)), mention=[shift])


@one_schedule_is_relative.claim(
    "Keys turned before the text grew keep the old schedule, and their scores change with the position."
)
def keys_of_two_schedules_in_one_cache():
    """Keys cached with one factor and queries of another still see the offset alone."""
    q, k, w, m, n, shift = symbols("q", 1, 2), symbols("k", 1, 2), symbols("w", 1), symbol("m"), symbol("n"), symbol("shift")
    at = lambda x, p, f: rope.rotate(x, *rope.tables(array([p]), scaling.linear(w, factor=f)), layout="half")
    score = lambda m, n: at(q, m, 2) @ at(k, n, 1).T
    prove_equal(score(m + shift, n + shift), score(m, n))


# lengths


@theorem(of=[scaling.longrope_list], sizes="all lengths")
def lists_by_rule():
    """transformers takes the long list if the text is longer than L, vLLM and llama.cpp if the server's length is, and mlx-lm
    always."""
    length, original, server = (symbol(name, integer=True, positive=True) for name in ("l", "L", "served"))
    for rule, deciding in (("transformers", length), ("vllm", server), ("llama.cpp", server)):
        choose = lambda rule=rule: scaling.longrope_list(rule, length=length, original_length=original, model_length=server)
        for name in paths(lambda deciding=deciding, choose=choose: (choose(), "long" if deciding > original else "short")):
            prove_that(name[0] == name[1], f"{rule} chooses by {deciding}")
    always = scaling.longrope_list("mlx-lm", length=length, original_length=original, model_length=server)
    prove_that(always == "long", "mlx-lm takes the long list")


@lists_by_rule.claim("transformers looks at the batch, vLLM and llama.cpp at what they were started for, mlx-lm at nothing.")
def all_programs_take_one_list():
    """For a text of 100 tokens all programs take the short list."""
    given = {"length": 100, "original_length": 4096, "model_length": 131072}
    rules = ("transformers", "vllm", "llama.cpp", "mlx-lm")
    prove_equal([int(scaling.longrope_list(rule, **given) == "short") for rule in rules], [1, 1, 1, 1])


@theorem(of=[scaling.dynamic_length], sizes="three calls")
def lengths_by_rule():
    """transformers: the longest since the last text shorter than L, at least L; mlx-lm: the present text; vLLM: s L."""
    original = symbol("L", integer=True, positive=True)
    texts = [symbol(f"l{i}", integer=True, positive=True) for i in range(3)]
    given = {"lengths": array(texts), "original_length": original, "factor": S}

    def both():
        stated = original
        for text in texts[next((i + 1 for i in (2, 1, 0) if not texts[i] >= original), 0) :]:
            stated = stated if not text > stated else text
        return scaling.dynamic_length("transformers", **given), stated

    for shipped, stated in paths(both):
        prove_equal([shipped], [stated])
    for present, server in paths(lambda: [scaling.dynamic_length(rule, **given) for rule in ("mlx-lm", "vllm")]):
        prove_equal([present, server], [texts[-1], original * S])


@lengths_by_rule.claim(
    "transformers keeps the longest text seen, so a shorter text later is turned otherwise than if it came first."
)
def transformers_has_no_memory():
    """A text of 3000 tokens has one length, whatever came before."""
    given = {"original_length": 2048, "factor": 2}
    first = scaling.dynamic_length("transformers", lengths=np.array([3000]), **given)
    prove_equal([first], [scaling.dynamic_length("transformers", lengths=np.array([5000, 3000]), **given)])
