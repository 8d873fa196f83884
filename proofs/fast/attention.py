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


def attend(
    q, k, v, bias=None, *, low, high, kernel=fast._attend, tables=None, layout="half", divide=True, lanes=2, tile=4, **rules
):
    """The State that a kernel writes, called as `_stream` calls it: in two pieces. `rules` are row_scale, softcap and sinks."""
    (heads, n_query, _), (_, n_key, width) = q.shape, v.shape
    none = np.empty((max(n_query, n_key), 0), dtype=object)
    bias = none[:1] if bias is None else np.concatenate([bias[:, ::-1], zeros(heads, lanes)], axis=-1)
    factors = np.concatenate([rules.get("row_scale", np.ones(n_query, dtype=int)), np.zeros(lanes, dtype=int)])[None]
    sinks = rules.get("sinks", array([[-(10**9) * symbol("unit", positive=True)]]))
    out, maximum, denominator = room("o", heads, n_query, width), room("m", heads, n_query), room("d", heads, n_query)
    for first in range(2):
        source(kernel)(
            *(q, k, v, bias, factors, sinks, *(tables or (none,) * 4), out, maximum, denominator, rules.get("softcap", 0)),
            *(int("sinks" in rules), low, high, layout == "interleaved", divide, first, 2),
            *((lanes, tile) if kernel is fast._attend else (tile,)),
        )
    return shards.State(maximum[..., None], denominator[..., None], out)


KERNELS = (fast._attend, fast._attend_few)


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
    sizes="lanes = 3, rows = 4, columns = 0 .. 3",
    equivalent={
        "_multiply: two = sums[i * lanes:(i + 2) * lanes]  ->  two = sums[i * lanes:(i + 3) * lanes]": "a longer view",
    },
)
def multiply_adds_the_product():
    """sums += a x over the columns of a, cell by cell."""
    for count in range(4):
        a, x, sums = room("a", 4, count), symbols("x", 3, 3), room("s", 12)
        source(fast._multiply)(a, x, sums, 3)
        product = a @ x[:count] if count else zeros(4, 3)
        prove_equal(sums.reshape(4, 3), room("s", 12).reshape(4, 3) + product)


@multiply_adds_the_product.control
def multiply_replaces():
    """sums = a x."""
    a, x, sums = room("a", 2, 1), symbols("x", 1, 1), room("s", 2)
    source(fast._multiply)(a, x, sums, 1)
    prove_equal(sums, (a @ x)[:, 0])


@theorem(
    of=[fast._bias, fast._mask],
    sizes="lanes = 3, keys = 2, all bands",
    equivalent={
        "_bias: near = bias[start - c:start - c + lanes]  ->  near = bias[start - c:start + c + lanes]": "a longer view",
        "_mask: for r in range(max(before + c + 1, 0), lanes):  ->  for r in range(max(before + c + 1, -1), lanes):": (
            "from lane -1, the last, where every lane is outside anyway"
        ),
    },
)
def scores_pinned():
    """Key c scores s + bias[start - c + r] in lane r, and -infinity unless after + c <= r <= before + c."""
    for after, before in itertools.product(range(-5, 5), repeat=2):
        s, bias = room("s", 3, 3), symbols("b", 8)
        source(fast._bias)(s, 2, bias, 5, 3)
        source(fast._mask)(s, 2, after, before, 3)
        for c, r in itertools.product(range(2), range(3)):
            if after + c <= r <= before + c:
                prove_equal([s[c, r]], [room("s", 3, 3)[c, r] + bias[5 - c + r]])
            else:
                prove_that(s[c, r] == -np.inf, f"lane {r} is outside")
        prove_equal(s[2], room("s", 3, 3)[2])


@scores_pinned.control
def the_bias_is_read_along_the_keys():
    """The bias of key c in lane r is bias[start + c - r]."""
    s, bias = room("s", 2, 2), symbols("b", 5)
    source(fast._bias)(s, 2, bias, 2, 2)
    prove_equal([s[1, 0]], [room("s", 2, 2)[1, 0] + bias[3]])


@theorem(
    of=[fast._cap, fast._lost],
    sizes="n = 3",
    equivalent={
        "_lost: zero = np.zeros(1, x.dtype)[0]  ->  zero = np.zeros(2, x.dtype)[0]": "the first of two",
        "_lost: zero = np.zeros(1, x.dtype)[0]  ->  zero = np.zeros(1, x.dtype)[-1]": "the last of one",
        "_lost: total += zero * x[r]  ->  total -= zero * x[r]": "0 or NaN either way",
    },
)
def scores_are_capped():
    """x becomes c tanh(x / c), as `attention.cap` has it, and the search for NaN changes no number."""
    x, c = room("x", 3), symbol("c", positive=True)
    source(fast._cap)(x, c)
    prove_equal(x, attention.cap(symbols("x", 3), softcap=c))
    prove_equal([source(fast._lost)(symbols("x", 3), symbol("total"))], [symbol("total")])


@scores_are_capped.control
def the_cap_is_a_clip():
    """A score below the cap stays."""
    x = room("x", 1)
    source(fast._cap)(x, symbol("c", positive=True))
    prove_equal(x, symbols("x", 1))


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


# the whole kernels


def example(n, m, d=2, width=1):
    """Scores that compare: distinct integers times one positive symbol. Values are free. Four heads on two of the keys."""
    unit = symbol("unit", positive=True)
    q = array(np.arange(4 * n * d).reshape(4, n, d) ** 2 % 11 - 5)
    k = unit * (np.arange(2 * m * d).reshape(2, m, d) ** 3 % 13 - 6)
    return q, k, symbols("v", 2, m, width), unit * (np.arange(4 * (n + m - 1)).reshape(4, n + m - 1) ** 3 % 17)


@theorem(of=[*KERNELS, fast._meet], sizes="h = 2 on 1, n = 3, m = 5, d = 4, d_v = 1, lanes = 2, tile = 4; both layouts")
def rope_on_the_fly():
    """With tables the kernels attend to rotated queries and keys, values stay as they are."""
    q, k, v, b = (x[:2] for x in example(3, 5, d=4))
    k, v = k[:1], v[:1]
    cos, sin = array(np.arange(10).reshape(5, 2) ** 2 % 7), array(np.arange(10).reshape(5, 2) ** 3 % 11)  # any numbers will do
    tables = cos[2:], sin[2:], cos, sin
    for layout, kernel in zip(("half", "interleaved"), KERNELS, strict=True):
        turned = [rope.rotate(x, c, s, layout=layout) for x, c, s in ((q, cos[2:], sin[2:]), (k, cos, sin))]
        expected = attention.attend_by_offset(*turned, v, scale=1, bias_by_offset=b, causal=True)
        got = attend(q, k, v, b, low=-9, high=2, kernel=kernel, tables=tables, layout=layout)
        prove_equal(got.accumulator, expected, mention=v)


@rope_on_the_fly.control
def values_turn_too():
    """The values are rotated like the keys."""
    one, v, none = symbols("q", 1, 1, 2), symbols("v", 1, 1, 2), symbols("b", 1, 1)
    cos, sin = symbols("c", 1, 1), room("s", 1, 1)
    for _, state in all_paths(lambda: attend(one, one, v, none, low=0, high=0, tables=(cos, sin) * 2)):
        prove_equal(state.accumulator, rope.rotate(v, cos, sin, layout="half"))


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
SIZES = "h = 4 on 2 heads of keys, n = 3, 4, m = 5 and n = 4, m = 1, d = 2, d_v = 1, 3, lanes = 2, tile = 4"


@theorem(
    of=[*KERNELS, fast._meet, fast._band],
    sizes=SIZES + "; causal, windows and both; with and without sinks",
    equivalent={
        "_attend: s, accumulator, straight = (products.reshape(tile, lanes), sums.reshape(even, lanes), "
        "np.zeros((0, 0), q.dtype))  ->  s, accumulator, straight = (products.reshape(tile, lanes), sums.reshape(even, lanes), "
        "np.zeros((1, 0), q.dtype))": "no column either way",
        "_attend: turned[t, r] = factors[0, i + r] * queries[r, t]  ->  turned[t, r] = factors[-1, i + r] * queries[r, t]": (
            "one row"
        ),
        "_attend: top[:] = sinks[h % len(sinks), 0]  ->  top[:] = sinks[h % len(sinks), -1]": "one column",
        "_attend_few: queries[a, i, t] *= factors[0, i]  ->  queries[a, i, t] *= factors[-1, i]": "one row",
        "_attend_few: maximum[h], denominator[h], out[h] = (sinks[h % len(sinks), 0], sunk, 0)  ->  "
        "maximum[h], denominator[h], out[h] = (sinks[h % len(sinks), -1], sunk, 0)": "one column",
        "_meet: if len(bias) > 0:  ->  if len(bias) > 1:": "a bias has LANES numbers more than offsets",
        "_attend: if bias.shape[1] > 0:  ->  if bias.shape[1] > 1:": "likewise",
        "_attend: group, blocks, even = (heads // k.shape[0], (n_query + lanes - 1) // lanes, width + width % 2)  ->  "
        "group, blocks, even = (heads // k.shape[0], (n_query + lanes - 0) // lanes, width + width % 2)": (
            "one block more, without rows"
        ),
        "_attend: group, blocks, even = (heads // k.shape[0], (n_query + lanes - 1) // lanes, width + width % 2)  ->  "
        "group, blocks, even = (heads // k.shape[0], (n_query + lanes - 1) // lanes, width + (width + 2))": "even, and more",
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
