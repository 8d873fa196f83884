"""Streaming attention, compiled: the Python source of the kernels is the specification."""

import functools
import itertools
import types

import numpy as np

from posref import attention, shards
from posref.fast import attention as fast
from posref.rotary import rope
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


def attend(q, k, v, bias, *, low, high, tables=None, layout="half", divide=True, scale=1, lanes=2, tile=4):
    """The State that the kernel writes, called as `_stream` calls it: in two pieces."""
    (heads, n_query, _), (_, n_key, width) = q.shape, v.shape
    reversed_bias = np.concatenate([bias[:, ::-1], zeros(heads, lanes)], axis=-1)
    none = np.empty((max(n_query, n_key), 0), dtype=object)
    tables = tables or (none,) * 4
    out, maximum, denominator = room("o", heads, n_query, width), room("m", heads, n_query), room("d", heads, n_query)
    lowest = -(10**9) * symbol("unit", positive=True)
    for first in range(2):
        source(fast._attend)(
            *(q, k, v, reversed_bias, *tables, out, maximum, denominator, scale, lowest, low, high),
            *(layout == "interleaved", divide, first, 2, lanes, tile),
        )
    return shards.State(maximum[..., None], denominator[..., None], out)


# the step


@theorem(
    of=[fast._step],
    sizes="lanes, keys, d_v = 1, 1, 1 and 2, 1, 2 and 1, 2, 2",
    argument="induction over the keys: every step adds its own to the sums of those before",
)
def step_keeps_the_sums():
    """One key of score s: denominator e^maximum grows by e^s, accumulator e^maximum stays, weight e^maximum = e^s, on every
    path of the maximum. So after any keys they are the sums over the keys, whatever the maxima were; and it may be any."""
    for lanes, count, width in ((1, 1, 1), (2, 1, 2), (1, 2, 2)):

        def run(lanes=lanes, count=count, width=width):
            s, m, d, a = room("s", 3, lanes), room("m", lanes), room("d", lanes), room("a", width, lanes)
            source(fast._step)(s, count, m, d, a, room("old", lanes), lanes)
            return s, m, d, a

        before = [room("s", 3, lanes), room("m", lanes), room("d", lanes), room("a", width, lanes)]
        for _, (s, m, d, a) in all_paths(run):
            s0, m0, d0, a0 = before
            weights = np.exp(s0[:count])
            prove_equal(d * np.exp(m), d0 * np.exp(m0) + weights.sum(axis=0), mention=s0[:count])
            prove_equal(a * np.exp(m), a0 * np.exp(m0), mention=a0)
            prove_equal(s[:count] * np.exp(m), weights)
            prove_equal(s[count:], s0[count:])


@step_keeps_the_sums.control
def the_denominator_is_not_scaled():
    """The denominator only grows, by e^(s - maximum): it need not be moved to the new maximum."""

    def run():
        s, *state = (symbols(name, 1).copy() for name in ("s", "m", "d", "old"))
        source(fast._step)(s.reshape(1, 1), 1, *state[:2], symbols("a", 1, 1).copy(), state[2], 1)
        return state

    for _, (maximum, denominator, _) in all_paths(run):
        prove_equal(denominator, symbols("d", 1) + np.exp(symbols("s", 1) - maximum))


@theorem(
    of=[fast._multiply],
    sizes="lanes = 3, rows = 8, columns = 0 .. 3",
    equivalent={
        "_multiply: four = sums[i * lanes:(i + 4) * lanes]  ->  four = sums[i * lanes:(i + 5) * lanes]": "a longer view",
    },
)
def multiply_adds_the_product():
    """sums += a x over the first `count` columns of a, cell by cell."""
    for count in range(4):
        a, x, sums = room("a", 8, 3), symbols("x", 3, 3), room("s", 24)
        source(fast._multiply)(a, x, count, sums, 3)
        product = a[:, :count] @ x[:count] if count else zeros(8, 3)
        prove_equal(sums.reshape(8, 3), room("s", 24).reshape(8, 3) + product)


@multiply_adds_the_product.control
def multiply_replaces():
    """sums = a x."""
    a, x, sums = room("a", 4, 1), symbols("x", 1, 1), room("s", 4)
    source(fast._multiply)(a, x, 1, sums, 1)
    prove_equal(sums, (a @ x)[:, 0])


@theorem(
    of=[fast._score],
    sizes="lanes = 3, keys = 2, all bands",
    equivalent={
        "_score: near = bias[start - c:start - c + lanes]  ->  near = bias[start - c:start + c + lanes]": "a longer view",
        "_score: for r in range(max(before + c + 1, 0), lanes):  ->  for r in range(max(before + c + 1, -1), lanes):": (
            "from lane -1, the last, where every lane is outside anyway"
        ),
    },
)
def score_pinned():
    """Key c scores scale s + bias[start - c + r] in lane r for after + c <= r <= before + c, elsewhere -infinity."""
    for after, before in itertools.product(range(-5, 5), repeat=2):
        s, bias, scale = room("s", 3, 3), symbols("b", 8), symbol("scale")
        source(fast._score)(s, 2, scale, bias, 5, after, before, 3)
        for c, r in itertools.product(range(2), range(3)):
            plain = (scale * room("s", 3, 3)[c, r] + bias[5 - c + r]).e
            if after + c <= r <= before + c:
                prove_equal([s[c, r]], [plain])
            else:
                prove_that(s[c, r] == -np.inf, f"lane {r} is outside")
        prove_equal(s[2], room("s", 3, 3)[2])


@score_pinned.control
def score_reads_the_bias_along_the_keys():
    """The bias of key c in lane r is bias[start + c - r]."""
    s, bias, scale = room("s", 2, 2), symbols("b", 5), symbol("scale")
    source(fast._score)(s, 2, scale, bias, 2, -5, 5, 2)
    prove_equal([s[1, 0]], [scale * room("s", 2, 2)[1, 0] + bias[3]])


@theorem(
    of=[fast._take],
    sizes="5 rows, d = 6",
    equivalent={
        "_take: a, b = (2 * t, 2 * t + 1) if interleaved else (t, t + pairs)  ->  "
        "a, b = (2 * t, 2 * t + 1) if interleaved else (t, t - pairs)": "counted from the end of 2 pairs features",
    },
)
def take_pinned():
    """tile[c] = row first + c, turned by its angle in either layout where the tables have columns; the rest stays."""
    x, cos, sin, none = symbols("x", 5, 6), symbols("c", 5, 3), room("s", 5, 3), symbols("n", 5, 0)
    for layout in ("interleaved", "half"):
        for tables, turned in (((none, none), x), ((cos, sin), rope.rotate(x, cos, sin, layout=layout))):
            for first, count in ((0, 2), (1, 3), (4, 1), (2, 0)):
                tile = room("t", 4, 6)
                source(fast._take)(x, first, count, *tables, layout == "interleaved", tile)
                prove_equal(tile[count:], room("t", 4, 6)[count:])
                if count:
                    prove_equal(tile[:count], turned[first : first + count])


@take_pinned.control
def take_mixes_up_layouts():
    """Both layouts turn alike (d = 4)."""
    x, cos, sin, tile = symbols("x", 1, 4), symbols("c", 1, 2), room("s", 1, 2), room("t", 1, 4)
    source(fast._take)(x, 0, 1, cos, sin, True, tile)
    prove_equal(tile, rope.rotate(x, cos, sin, layout="half"))


# the whole kernel


@theorem(of=[fast._attend], sizes="h = 2 on 1, n = 3, m = 5, d = 4, d_v = 2, lanes = 2, tile = 4; both layouts")
def rope_on_the_fly():
    """With tables the kernel attends to rotated queries and keys, values stay as they are."""
    unit, n, m = symbol("unit", positive=True), 3, 5
    q, k = array(np.arange(24).reshape(2, n, 4) ** 2 % 11), unit * (np.arange(20).reshape(1, m, 4) ** 3 % 13)
    v, b = symbols("v", 1, m, 2), unit * (np.arange(14).reshape(2, 7) ** 3 % 17)
    cos, sin = array(np.arange(10).reshape(m, 2) ** 2 % 7), array(np.arange(10).reshape(m, 2) ** 3 % 11)  # any numbers will do
    tables = cos[2:], sin[2:], cos, sin
    for layout in ("half", "interleaved"):
        turned = [rope.rotate(x, c, s, layout=layout) for x, c, s in ((q, cos[2:], sin[2:]), (k, cos, sin))]
        expected = attention.attend_by_offset(*turned, v, scale=1, bias_by_offset=b, causal=True)
        got = attend(q, k, v, b, low=-9, high=2, tables=tables, layout=layout)
        prove_equal(got.accumulator, expected, mention=v)


@rope_on_the_fly.control
def values_turn_too():
    """The values are rotated like the keys."""
    one, v, none = symbols("q", 1, 1, 2), symbols("v", 1, 1, 2), symbols("b", 1, 1)
    cos, sin = symbols("c", 1, 1), room("s", 1, 1)
    for _, state in all_paths(lambda: attend(one, one, v, none, low=0, high=0, tables=(cos, sin) * 2)):
        prove_equal(state.accumulator, rope.rotate(v, cos, sin, layout="half"))


@theorem(
    of=[fast._attend],
    sizes="lanes = 1, 2, tile = 4; n = 2, m = 3 and n = 1, m = 5; every path; causal and not",
    equivalent={
        "_attend: group, blocks, fours = (heads // k.shape[0], (n_query + lanes - 1) // lanes, width + -width % 4)  ->  "
        "group, blocks, fours = (heads // k.shape[0], (n_query + lanes - 0) // lanes, width + -width % 4)": (
            "one block more, without rows"
        ),
    },
)
def kernel_attends_on_every_path():
    """The kernel is attend_by_offset for any queries, keys, values and bias, however the scores compare."""
    for n, m, lanes, high in ((2, 3, 1, 1), (2, 2, 2, 9), (1, 5, 1, 9)):
        q, k, v, b = symbols("q", 1, n, 1), symbols("k", 1, m, 1), symbols("v", 1, m, 1), symbols("b", 1, n + m - 1)
        scale, offset = symbol("scale", positive=True), np.arange(m) - np.arange(n)[:, None]
        weights = np.where(offset <= high, np.exp(scale * (q[0] @ k[0].T) + b[0][offset + n - 1]), 0)
        expected = weights @ v[0] / weights.sum(axis=-1, keepdims=True)
        call = functools.partial(attend, q, k, v, b, low=-9, high=high, scale=scale, lanes=lanes)
        for _, state in all_paths(call):
            prove_equal(state.accumulator[0], expected, mention=[*q.ravel(), *v.ravel()])
            prove_equal(state.denominator[0] * np.exp(state.maximum[0]), weights.sum(axis=-1, keepdims=True))


@kernel_attends_on_every_path.control
def the_maximum_is_no_part_of_the_state():
    """The denominator alone is the sum over the keys (two of them)."""
    q, k, v, b = symbols("q", 1, 1, 1), symbols("k", 1, 2, 1), symbols("v", 1, 2, 1), symbols("b", 1, 2)
    for _, state in all_paths(lambda: attend(q, k, v, b, low=-9, high=9, lanes=1)):
        prove_equal(state.denominator[0], np.exp(q[0] @ k[0].T + b).sum(axis=-1, keepdims=True))


MASKS = [(False, None), (True, None), (False, 3), (True, 2)]
SIZES = "h = 4 on 2 heads of keys, n = 5, m = 7 and n = 7, m = 2, d = 2, d_v = 5, lanes = 2, tile = 4"


def example(n, m):
    """Scores that compare: distinct integers times one positive symbol. Values are free. Four heads on two of the keys."""
    unit = symbol("unit", positive=True)
    q = array(np.arange(8 * n).reshape(4, n, 2) ** 2 % 11 - 5)
    k = unit * (np.arange(4 * m).reshape(2, m, 2) ** 3 % 13 - 6)
    return q, k, symbols("v", 2, m, 5), unit * (np.arange(4 * (n + m - 1)).reshape(4, n + m - 1) ** 3 % 17)


@theorem(of=[fast._attend, fast._band], sizes=SIZES + "; causal, windows and both")
def kernel_pinned():
    """The kernel is attend_by_offset: its tiles, heads, blocks, bands and the division, and zeros where there is no key."""
    for (n, m), (causal, window) in itertools.product(((5, 7), (7, 2)), MASKS):
        q, k, v, b = example(n, m)
        low, high = fast._band(n, m, causal, window, n - m)
        expected = attention.attend_by_offset(q, k, v, scale=1, bias_by_offset=b, causal=causal, window=window)
        prove_equal(attend(q, k, v, b, low=low, high=high).accumulator, expected, mention=v[:, -1])


@kernel_pinned.control
def band_aligned_at_the_start():
    """Without a shift the first query sees the first key alone."""
    q, k, v, b = example(5, 7)
    low, high = fast._band(5, 7, True, None, 0)
    expected = attention.attend_by_offset(q, k, v, scale=1, bias_by_offset=b, causal=True)
    prove_equal(attend(q, k, v, b, low=low, high=high).accumulator, expected)


@theorem(of=[fast._attend, fast._band], sizes=SIZES + "; shifts -9 .. 9")
def partial_pinned():
    """Undivided, the kernel is shards.attend over keys that begin `shift` after the queries, up to the choice of a maximum."""
    q, k, v, b = example(5, 7)
    offset = np.arange(7) - np.arange(5)[:, None]
    k_all, v_all, bias = np.repeat(k, 2, axis=0), np.repeat(v, 2, axis=0), b[:, offset + 4]
    for shift, (causal, window) in zip((0, -9, -3, 0, 2, 9), [*MASKS, (False, 3), (True, None)], strict=True):
        mask = (offset + shift <= (0 if causal else 99)) & (abs(offset + shift) < (99 if window is None else window))
        expected = shards.attend(q, k_all, v_all, scale=1, bias=bias, mask=mask)
        low, high = fast._band(5, 7, causal, window, shift)
        state = attend(q, k, v, b, low=low, high=high, divide=False)
        for got, right in zip(state[1:], expected[1:], strict=True):
            prove_equal(got * np.exp(state.maximum), right * np.exp(expected.maximum))
        met = mask.any(axis=-1)
        if met.any():
            prove_equal(state.maximum[:, met], expected.maximum[:, met])
        prove_that(all(d == 0 for d in state.denominator[:, ~met].ravel()), "no key, no denominator")


@partial_pinned.control
def shift_counts_the_other_way():
    """`shift` is the position of the first query minus that of the first key."""
    q, k, v, b = example(5, 7)
    offset = np.arange(7) - np.arange(5)[:, None]
    low, high = fast._band(5, 7, True, None, 2)
    state = attend(q, k, v, b, low=low, high=high, divide=False)
    expected = shards.attend(
        q, np.repeat(k, 2, axis=0), np.repeat(v, 2, axis=0), scale=1, bias=b[:, offset + 4], mask=offset - 2 <= 0
    )
    prove_equal(state.denominator * np.exp(state.maximum), expected.denominator * np.exp(expected.maximum))
