"""Streaming attention, compiled: the Python source of the kernels is the specification."""

import functools
import itertools
import types

import numpy as np

from posref import attention, shards
from posref.fast import attention as fast
from proofs.kit import all_paths, array, prove_equal, prove_that, room, symbol, symbols, theorem


def source(kernel):
    """The Python source of a kernel, calling that of the kernels it calls; exp is exp instead of its polynomial."""
    function = kernel.py_func
    called = {name: function.__globals__[name] for name in function.__code__.co_names if name in function.__globals__}
    uncompiled = {name: source(value) for name, value in called.items() if hasattr(value, "py_func")}
    return types.FunctionType(
        function.__code__, {**function.__globals__, **uncompiled}, function.__name__, function.__defaults__
    )


def zeros(*shape):
    return array(np.zeros(shape, dtype=int))


def attend(q, k, v, bias=None, *, low, high, kernel=fast._attend, divide=True, lanes=2, tile=4, **rules):
    """The State that a kernel writes, called as `_stream` calls it: in two pieces. `rules` are row_scale, softcap and sinks."""
    (heads, n_query, dim), width = q.shape, v.shape[2]
    q = q * rules.get("row_scale", np.ones(n_query, dtype=int))[:, None]
    bias = None if bias is None else np.concatenate([bias[:, ::-1], zeros(heads, lanes)], axis=-1)
    out, maximum, denominator = room("o", heads, n_query, width), *(room(x, heads, n_query + lanes) for x in "md")
    maximum[...], denominator[...] = rules.get("sinks", -(10**9) * symbol("unit", positive=True)), int("sinks" in rules)
    few, many = (
        [room("s", tile + 2)],
        [room("t", dim, lanes), room("s", (tile + 1) * lanes), room("a", (width + width % 2) * lanes)],
    )
    for x in (out, *few, *many):
        x[...] = 0
    for first in range(2):
        source(kernel)(
            *(q, k, v, bias, out, maximum, denominator, rules.get("softcap"), low, high, first, 2),
            *((*many, lanes, tile) if kernel is fast._attend else (*few, tile)),
        )
    maximum, denominator = (x[:, :n_query, None] for x in (maximum, denominator))
    if divide:
        np.divide(out, denominator, out=out, where=(denominator > 0).astype(bool))
    return shards.State(maximum, denominator, out)


KERNELS = (fast._attend, fast._attend_few)


# the step


@theorem(
    of=[fast._step],
    sizes="lanes, keys, d_v = 1, 1, 1 and 2, 1, 2 and 1, 2, 2",
    argument="induction over the keys: every step adds its own to the sums of those before",
    equivalent={
        "_step: maximum[r] = s[c, r] if s[c, r] > maximum[r] else maximum[r]  ->  "
        "maximum[r] = s[c, r] if s[c, r] >= maximum[r] else maximum[r]": "equal either way",
    },
)
def step_keeps_the_sums():
    """One key of score s: denominator e^maximum grows by e^s, accumulator e^maximum stays, weight e^maximum = e^s, on every
    path of the maximum. So after any keys they are the sums over the keys, whatever the maxima were."""
    for lanes, count, width in ((1, 1, 1), (2, 1, 2), (1, 2, 2)):

        def run(lanes=lanes, count=count, width=width):
            s, m, d, a = room("s", 4, lanes), room("m", lanes), room("d", lanes), room("a", width, lanes)
            source(fast._step)(s, count, m, d, a, lanes)
            return s, m, d, a

        before = [room("s", 4, lanes), room("m", lanes), room("d", lanes), room("a", width, lanes)]
        for _, (s, m, d, a) in all_paths(run):
            s0, m0, d0, a0 = before
            weights = np.exp(s0[:count])
            prove_equal(d * np.exp(m), d0 * np.exp(m0) + weights.sum(axis=0), mention=s0[:count])
            prove_equal(a * np.exp(m), a0 * np.exp(m0), mention=a0)
            prove_equal(s[:count] * np.exp(m), weights)
            prove_equal(s[count + 1 :], s0[count + 1 :])
    highest = np.array([2], dtype=object)
    source(fast._step)(np.array([[1], [3], [0], [0]], dtype=object), 3, highest, room("d", 1), room("a", 1, 1), 1)
    prove_that(highest[0] == 3, "it is the maximum")


@step_keeps_the_sums.control
def the_denominator_is_not_scaled():
    """The denominator only grows, by e^(s - maximum): it need not be moved to the new maximum."""

    def run():
        s, m, d, a = room("s", 2, 1), room("m", 1), room("d", 1), room("a", 1, 1)
        source(fast._step)(s, 1, m, d, a, 1)
        return m, d

    for _, (maximum, denominator) in all_paths(run):
        prove_equal(denominator, symbols("d", 1) + np.exp(room("s", 2, 1)[0] - maximum))


@theorem(
    of=[fast._multiply],
    sizes="lanes = 3, rows = 3, 4, columns = 0 .. 3",
    equivalent={
        "_multiply: two, last = (sums[i * lanes:(i + 2) * lanes], min(i + 1, a.shape[0] - 1))  ->  "
        "two, last = (sums[i * lanes:(i + 3) * lanes], min(i + 1, a.shape[0] - 1))": "a longer view",
    },
)
def multiply_adds_the_product():
    """sums += a x over the columns of a, cell by cell; of an odd number of rows the last is met twice, its double is spare."""
    for rows, count in itertools.product((3, 4), range(4)):
        a, x, sums = room("a", rows, count), symbols("x", 3, 3), room("s", 12)
        source(fast._multiply)(a, x, sums, 3)
        product = a @ x[:count] if count else zeros(rows, 3)
        prove_equal(sums[: 3 * rows].reshape(rows, 3), room("s", 12)[: 3 * rows].reshape(rows, 3) + product)


@multiply_adds_the_product.control
def multiply_replaces():
    """sums = a x."""
    a, x, sums = room("a", 2, 1), symbols("x", 1, 1), room("s", 2)
    source(fast._multiply)(a, x, sums, 1)
    prove_equal(sums, (a @ x)[:, 0])


def adjusted(after, before, softcap=None, bias=None):
    """Scores of two keys in three lanes, and the denominator, after `_adjust`."""
    s, denominator = room("s", 3, 3), room("d", 3)
    source(fast._adjust)(s, 2, softcap, bias, 1, 5, after, before, denominator, 3)
    return s, denominator


GUARD = "_adjust: if after + c > 0 or before + c < lanes:  ->  "


@theorem(
    of=[fast._adjust],
    sizes="lanes = 3, keys = 2, all bands",
    equivalent={
        "_adjust: denominator[r] += s[c, r] - s[c, r]  ->  denominator[r] -= s[c, r] - s[c, r]": "0 or NaN either way",
        **{
            GUARD + more: "asks lanes of which none is masked"
            for more in (
                "if after + c > -1 or before + c < lanes:",
                "if after + c >= 0 or before + c < lanes:",
                "if after + c > 0 or before - c < lanes:",
                "if after + c > 0 or before + c <= lanes:",
            )
        },
    },
)
def scores_pinned():
    """Key c scores s + bias[head, start - c + r] in lane r, and -infinity unless after + c <= r < before + c; the search for
    numbers that are not finite leaves the denominator as it is."""
    b = symbols("b", 2, 8)
    for after, before, bias in itertools.product(range(-5, 5), range(-4, 6), (None, b)):
        (s, denominator), s0 = adjusted(after, before, bias=bias), room("s", 3, 3)
        for c, r in itertools.product(range(2), range(3)):
            if after + c <= r < before + c:
                prove_equal([s[c, r]], [s0[c, r] + (0 if bias is None else bias[1, 5 - c + r])])
            else:
                prove_that(s[c, r] == -np.inf, f"lane {r} is outside")
        prove_equal(s[2], s0[2])
        prove_equal(denominator, room("d", 3))


@scores_pinned.control
def the_bias_is_read_along_the_keys():
    """The bias of key c in lane r is bias[start + c - r]."""
    b = symbols("b", 2, 8)
    prove_equal([adjusted(-9, 9, bias=b)[0][1, 0]], [room("s", 3, 3)[1, 0] + b[1, 6]])


@theorem(of=[fast._cap, fast._adjust], sizes="lanes = 3, keys = 2")
def scores_are_capped():
    """x becomes c tanh(x / c), as `attention.cap` has it, before the bias is added."""
    x, c, b = room("x", 3), symbol("c", positive=True), symbols("b", 2, 8)
    source(fast._cap)(x, c)
    prove_equal(x, attention.cap(symbols("x", 3), softcap=c))
    prove_equal(adjusted(-9, 9, c, b)[0][0], attention.cap(room("s", 3, 3)[0], softcap=c) + b[1, 5:])


@scores_are_capped.control
def the_cap_is_a_clip():
    """A score below the cap stays."""
    x = room("x", 1)
    source(fast._cap)(x, symbol("c", positive=True))
    prove_equal(x, symbols("x", 1))


# the whole kernels


def example(n, m, d=3, width=1):
    """Scores that compare: distinct integers times one positive symbol. Values are free. Four heads on two of the keys."""
    unit = symbol("unit", positive=True)
    q = array(np.arange(4 * n * d).reshape(4, n, d) ** 2 % 11 - 5)
    k = unit * (np.arange(2 * m * d).reshape(2, m, d) ** 3 % 13 - 6)
    return q, k, symbols("v", 2, m, width), unit * (np.arange(4 * (n + m - 1)).reshape(4, n + m - 1) ** 3 % 17)


@theorem(of=[*KERNELS, fast._meet], sizes="n = 1, m = 2, lanes = 1, tile = 4; every path")
def kernels_cap_scores():
    """With a softcap the kernels attend with capped scores."""
    q, k, v, c = symbols("q", 1, 1, 1), symbols("k", 1, 2, 1), symbols("v", 1, 2, 1), 1
    weights = np.exp(attention.cap(q[0] @ k[0].T, softcap=c))
    for kernel in KERNELS:
        for _, state in all_paths(functools.partial(attend, q, k, v, low=-9, high=9, kernel=kernel, lanes=1, softcap=c)):
            prove_equal(state.accumulator[0] * weights.sum(), weights @ v[0])


@kernels_cap_scores.control
def capped_scores_are_scores():
    """The cap leaves the weights as they are."""
    q, k, v = symbols("q", 1, 1, 1), symbols("k", 1, 2, 1), symbols("v", 1, 2, 1)
    weights = np.exp(q[0] @ k[0].T)
    for _, state in all_paths(lambda: attend(q, k, v, low=-9, high=9, lanes=1, softcap=1)):
        prove_equal(state.accumulator[0] * weights.sum(), weights @ v[0])


@theorem(
    of=[*KERNELS, fast._meet],
    sizes="n = 2, m = 2, 3 and n = 1, m = 5; lanes = 1, 2, tile = 4; every path; causal and not",
)
def kernels_attend_on_every_path():
    """The kernels are attend_by_offset for any queries, keys, values, bias, temperature and sinks, however scores compare."""
    for lanes, n, m, high in ((1, 2, 3, 1), (2, 2, 2, 9), (1, 1, 5, 9), (0, 2, 3, 1), (0, 1, 5, 9)):
        kernel = KERNELS[lanes == 0]
        q, k, v, b = symbols("q", 1, n, 1), symbols("k", 1, m, 1), symbols("v", 1, m, 1), symbols("b", 1, n + m - 1)
        temperature, offset = symbols("r", n), np.arange(m) - np.arange(n)[:, None]
        weights = np.where(offset <= high, np.exp(temperature[:, None] * (q[0] @ k[0].T) + b[0][offset + n - 1]), 0)
        total = weights.sum(axis=-1, keepdims=True)
        call = functools.partial(attend, q, k, v, b, low=-9, high=high, kernel=kernel, lanes=lanes, row_scale=temperature)
        for _, state in all_paths(call):
            prove_equal(state.accumulator[0], weights @ v[0] / total, mention=[*q.ravel(), *v.ravel()])
            prove_equal(state.denominator[0] * np.exp(state.maximum[0]), total)


@kernels_attend_on_every_path.control
def the_maximum_is_no_part_of_the_state():
    """The denominator alone is the sum over the keys (two of them)."""
    q, k, v, b = symbols("q", 1, 1, 1), symbols("k", 1, 2, 1), symbols("v", 1, 2, 1), symbols("b", 1, 2)
    for _, state in all_paths(lambda: attend(q, k, v, b, low=-9, high=9, lanes=1)):
        prove_equal(state.denominator[0], np.exp(q[0] @ k[0].T + b).sum(axis=-1, keepdims=True))


MASKS = [(False, None), (True, None), (False, 3), (True, 2)]
SIZES = "h = 4 on 2 heads of keys, n = 3, 4, m = 5 and n = 4, m = 1, d = 3, d_v = 1, 3, lanes = 2, tile = 4"


@theorem(
    of=[*KERNELS, fast._meet, fast._band],
    sizes=SIZES + "; causal, windows and both; with and without sinks",
    equivalent={
        "_attend: group, blocks = (heads // k.shape[0], (n_query + lanes - 1) // lanes)  ->  "
        "group, blocks = (heads // k.shape[0], (n_query + lanes - 0) // lanes)": "one block more, without rows",
        "_meet: denominator += s[-1] * s[c]  ->  denominator -= s[-1] * s[c]": "0 or NaN either way",
        "_meet: highest = s[c] if s[c] > highest else highest  ->  highest = s[c] if s[c] >= highest else highest": "equal",
        **{
            "_meet: if after > 0 or before < count:  ->  " + more: "asks keys of which none is masked"
            for more in (
                "if after > -1 or before < count:",
                "if after >= 0 or before < count:",
                "if after > 0 or before <= count:",
            )
        },
    },
)
def kernels_pinned():
    """The kernels are attend_by_offset: tiles, heads, blocks, bands, sinks, the division, and zeros where there is no key."""
    for (n, m), (causal, window) in (*(((4, 5), mask) for mask in MASKS), ((4, 1), (True, None))):
        q, k, v, b = example(n, m, width=1 if m > 1 else 3)
        b = b if m > 1 else None
        rules = {"sinks": symbol("unit", positive=True) * np.array([[3], [-5], [40], [0]])} if window == 2 else {}
        low, high = fast._band(n, m, causal, window, n - m)
        expected = attention.attend_by_offset(q, k, v, scale=1, bias_by_offset=b, causal=causal, window=window, **rules)
        for kernel in KERNELS:
            got = attend(q, k, v, b, low=low, high=high, kernel=kernel, **rules)
            prove_equal(got.accumulator, expected, mention=v[:, -1])


@kernels_pinned.control
def band_aligned_at_the_start():
    """Without a shift the first query sees the first key alone."""
    q, k, v, b = example(3, 5)
    low, high = fast._band(3, 5, True, None, 0)
    expected = attention.attend_by_offset(q, k, v, scale=1, bias_by_offset=b, causal=True)
    prove_equal(attend(q, k, v, b, low=low, high=high).accumulator, expected)


@theorem(of=[*KERNELS, fast._meet, fast._band], sizes=SIZES + "; shifts -6 .. 6")
def partial_pinned():
    """Undivided, the kernels are shards.attend over keys that begin `shift` after the queries, up to the chosen maximum."""
    q, k, v, b = example(3, 5)
    offset = np.arange(5) - np.arange(3)[:, None]
    k_all, v_all, bias = np.repeat(k, 2, axis=0), np.repeat(v, 2, axis=0), b[:, offset + 2]
    for shift, (causal, window) in zip((0, -6, -3, 0, 2, 6), [*MASKS, (False, 3), (True, None)], strict=True):
        mask = (offset + shift <= (0 if causal else 99)) & (abs(offset + shift) < (99 if window is None else window))
        expected = shards.attend(q, k_all, v_all, scale=1, bias=bias, mask=mask)
        low, high = fast._band(3, 5, causal, window, shift)
        met = mask.any(axis=-1)
        for kernel in KERNELS:
            state = attend(q, k, v, b, low=low, high=high, kernel=kernel, divide=False)
            for got, right in zip(state[1:], expected[1:], strict=True):
                prove_equal(got * np.exp(state.maximum), right * np.exp(expected.maximum))
            if met.any():
                prove_equal(state.maximum[:, met], expected.maximum[:, met])
            prove_that(all(d == 0 for d in state.denominator[:, ~met].ravel()), "no key, no denominator")


@partial_pinned.control
def shift_counts_the_other_way():
    """`shift` is the position of the first query minus that of the first key."""
    q, k, v, b = example(3, 5)
    offset = np.arange(5) - np.arange(3)[:, None]
    low, high = fast._band(3, 5, True, None, 2)
    state = attend(q, k, v, b, low=low, high=high, divide=False)
    expected = shards.attend(
        q, np.repeat(k, 2, axis=0), np.repeat(v, 2, axis=0), scale=1, bias=b[:, offset + 2], mask=offset - 2 <= 0
    )
    prove_equal(state.denominator * np.exp(state.maximum), expected.denominator * np.exp(expected.maximum))
