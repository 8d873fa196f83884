"""Streaming attention against the specification in extended precision, within the error bound that its docstring states."""

import importlib
import inspect
import itertools
import math
import re
import subprocess
import sys
from pathlib import Path

import mpmath
import numpy as np
import pytest

import posref
from posref import attention, shards
from posref.relative import alibi, t5
from posref.rotary import axes, rope
from tests.every import every

numba = pytest.importorskip("numba", reason="needs posref[fast]")
fast = importlib.import_module("posref.fast.attention")
machine = importlib.import_module("posref.fast._machine")
fast_alibi = importlib.import_module("posref.fast.alibi")
fast_t5 = importlib.import_module("posref.fast.t5")
streaming = importlib.import_module("proofs.mathematics.streaming")

FLOATS = (np.float32, np.float64)
ONE_FLOAT = pytest.mark.parametrize("dtype", [np.float32, pytest.param(np.float64, marks=pytest.mark.slow)])
FEW = (1, fast.FEW, fast.FEW + 1, fast.LANES, fast.LANES + 1)
TILES = (fast.TILE - 1, fast.TILE, fast.TILE + 1, 2 * fast.TILE, 2 * fast.TILE + 1)
STRETCHES = (fast.STRETCH - 1, fast.STRETCH, fast.STRETCH + 1, 2 * fast.STRETCH + 3)
MASKS = ((False, None), (True, None), (False, 3), (True, 2), (False, 1), (True, 3), (False, 10**300), (True, 40))
EVERY_MASK = [*MASKS[:4], *(pytest.param(*mask, marks=pytest.mark.slow) for mask in (*MASKS[4:], (False, 100)))]


def inputs(n_query, n_key, d, d_v, *, heads=(2, 2), dtype=np.float32, seed=0, spread=1.0):
    """q, k, v and a bias by offset."""
    rng = np.random.default_rng(seed)
    shapes = (heads[0], n_query, d), (heads[1], n_key, d), (heads[1], n_key, d_v), (heads[0], max(n_query + n_key - 1, 0))
    return [(rng.standard_normal(shape) * spread).astype(dtype) for shape in shapes]


def long(*arrays):
    return [array.astype(np.longdouble) for array in arrays]


def specification(q, k, v, bias, **arguments):
    """The specification on the same numbers with more digits."""
    q, k, v = long(q, k, v)
    bias = None if bias is None else bias.astype(np.longdouble)
    return attention.attend_by_offset(q, k, v, bias_by_offset=bias, **arguments)


def check(q, k, v, bias, **arguments):
    """Compiled and specification agree within the bound; returns the largest share of it that is used."""
    out = fast.attend_by_offset(q, k, v, bias_by_offset=bias, **arguments)
    expected = specification(q, k, v, bias, **arguments)
    assert out.dtype == q.dtype
    assert out.shape == expected.shape
    bound = streaming.error_bound(q, k, v, bias_by_offset=bias, **arguments)
    error = np.abs(out - expected)
    assert (error <= bound).all(), (error / np.where(bound == 0, 1, bound)).max()
    return (error / np.where(bound == 0, 1, bound)).max(initial=0)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("causal", "window"), EVERY_MASK)
@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_every_small_length(step, dtype, causal, window):
    for number, (n_query, n_key) in enumerate([*itertools.product(range(1, 21), repeat=2)][::step]):
        d, d_v = 1 + number % 9, 1 + number % 7
        q, k, v, bias = inputs(n_query, n_key, d, d_v, heads=((1, 1), (4, 2), (3, 1))[number % 3], dtype=dtype, seed=number)
        check(q, k, v, bias if number % 5 else None, scale=d**-0.5, causal=causal, window=window)


@pytest.mark.parametrize(("causal", "window"), EVERY_MASK)
def test_borders_of_tiles(causal, window):
    lengths = *itertools.product((*FEW, *TILES), (1, *TILES)), *itertools.product(FEW[:2], STRETCHES)
    for number, (n_query, n_key) in enumerate(lengths[causal + 2 * (window is None) :: 5]):
        q, k, v, bias = inputs(n_query, n_key, 5, 6, dtype=FLOATS[(number + n_query) % 2], seed=number)
        check(q, k, v, bias, scale=0.5, causal=causal, window=window)


@every(list(itertools.product([*range(1, 10), 64, 128], [*range(1, 10), 64, 128], FLOATS)), parts=7)
def test_every_width(d, d_v, dtype):
    check(*inputs(67, 70, d, d_v, dtype=dtype), scale=d**-0.5, causal=True)
    check(*inputs(3, 70, d, d_v, dtype=dtype), scale=d**-0.5, causal=True)


@pytest.mark.parametrize("n_key", [fast.SHARD, 2 * fast.SHARD + 3])
@pytest.mark.parametrize(("causal", "window"), [*MASKS[:2], (True, fast.SHARD), (False, 3 * fast.STRETCH)])
def test_shards_of_keys_for_few_queries(n_key, causal, window):
    """One head of keys for all queries is work for several threads, and has the same bits with any number of them."""
    q, k, v, bias = inputs(3, n_key, 5, 4, heads=(2, 1))
    arguments = {"scale": 0.5, "causal": causal, "window": window}
    for sinks in (None, np.array([[9.0], [-1.0]], np.float32)):  # the first weighs as much as thousands of keys
        check(q, k, v, bias, **arguments, sinks=sinks)
        one, three = (fast.attend_by_offset(q, k, v, **arguments, sinks=sinks, threads=threads) for threads in (1, 3))
        assert np.array_equal(one, three)
    spoiled = k.copy()
    spoiled[0, -1, 0] = np.inf
    with pytest.raises(ValueError, match="k has 1 of"):
        fast.attend_by_offset(q, spoiled, v, **arguments)


RULES = {
    "temperature": lambda rng, n: {"row_scale": rng.uniform(0.5, 2, n)},
    "softcap": lambda rng, n: {"softcap": 0.7},
    "sinks": lambda rng, n: {"sinks": rng.standard_normal((4, 1)) + np.array([[-3], [0], [1], [40]])},
}


@ONE_FLOAT
@pytest.mark.parametrize("n_query", [1, 9, 100])
@pytest.mark.parametrize("names", [*RULES, "temperature softcap sinks"])
def test_rules_of_a_score(names, n_query, dtype):
    rng = np.random.default_rng(0)
    q, k, v, bias = inputs(n_query, 130, 6, 5, heads=(4, 2), dtype=dtype, spread=2)
    rules = {}
    for name in names.split():
        rules |= {key: x.astype(dtype) if isinstance(x, np.ndarray) else x for key, x in RULES[name](rng, n_query).items()}
    for causal, window in MASKS[:4] if n_query < 100 else MASKS[1:3]:
        check(q, k, v, bias, scale=0.4, causal=causal, window=window, **rules)
    arguments = {"scale": 0.4, "bias_by_offset": bias}
    whole = fast.attend_by_offset(q, k, v, **arguments, **rules)
    assert not np.allclose(whole, fast.attend_by_offset(q, k, v, **arguments), rtol=0, atol=1e-3)
    sinks = rules.pop("sinks", None)
    state = fast.partial_by_offset(q, k, v, **arguments, **rules)
    state = state if sinks is None else shards.with_sinks(state, sinks)
    assert np.allclose(fast.finish(state), whole, rtol=0, atol=100 * np.finfo(dtype).eps)  # one exp more, of numbers below 4


def test_temperatures_of_a_batch():
    q, k, v, _ = (np.stack([x, 2 * x]) for x in inputs(5, 7, 4, 3, dtype=np.float64))
    factors = np.random.default_rng(0).uniform(0.5, 2, (2, 1, 5))
    out = fast.attend_by_offset(q, k, v, scale=0.5, row_scale=factors)
    expected = attention.attend_by_offset(q, k, v, scale=0.5, row_scale=factors)
    assert np.allclose(out, expected, rtol=0, atol=1e-14)


@ONE_FLOAT
@pytest.mark.parametrize("n_query", [1, 9, 100])
def test_biases_by_rule_are_those_by_offset(n_query, dtype):
    """Bit for bit: ALiBi in both forms, T5 in both directions, and a rule with a middle and slopes."""
    q, k, v, _ = inputs(n_query, 130, 6, 5, heads=(4, 2), dtype=dtype)
    rng, here, offsets = np.random.default_rng(0), np.array([0]), np.arange(n_query + 129) - 129
    slopes, table = alibi.slopes(4).astype(dtype), rng.standard_normal((8, 4)).astype(dtype)
    near, before, after = (rng.standard_normal((4, w)).astype(dtype) for w in (5, 1, 1))
    end = np.clip(offsets, -2, 2)
    biases = [(near[:, end + 2] + np.where(offsets < 0, before, after) * (offsets - end).astype(np.float64),
               (near, before[:, 0], after[:, 0]))]  # fmt: skip
    for form in ("signed", "absolute"):
        biases.append((alibi.bias(here, offsets, slopes, form=form)[:, 0], fast_alibi.rule(slopes, form=form)))
    for both in (False, True):
        arguments = {"max_distance": 40, "bidirectional": both}
        biases.append((t5.bias(here, offsets, table, **arguments)[:, 0], fast_t5.rule(table, **arguments)))
    for (by_offset, rule), (causal, window) in itertools.product(biases, MASKS[:4]):
        arguments = {"scale": 0.4, "causal": causal, "window": window}
        expected = fast.attend_by_offset(q, k, v, bias_by_offset=by_offset.astype(dtype), **arguments)
        for threads in (1, 3):
            assert np.array_equal(fast.attend_by_offset(q, k, v, bias_rule=rule, threads=threads, **arguments), expected)
        state = fast.partial_by_offset(q, k, v, bias_rule=rule, **arguments)
        assert np.allclose(fast.finish(state), expected, rtol=0, atol=8 * np.finfo(dtype).eps)
    one = fast.attend_by_offset(q, k, v, scale=0.4, bias_rule=tuple(x[:1] for x in rule))
    assert np.array_equal(one[0], fast.attend_by_offset(q, k, v, scale=0.4, bias_rule=rule)[0])


def test_a_rule_of_shards_counts_from_their_shift():
    q, k, v, _ = inputs(20, 90, 4, 3, dtype=np.float64)
    slopes, offset = alibi.slopes(2), np.arange(90) - np.arange(20)[:, None]
    for shift in (-85, 0, 12):
        state = fast.partial_by_offset(q, k, v, scale=0.5, shift=shift, bias_rule=fast_alibi.rule(slopes, form="absolute"))
        bias = -slopes[:, None, None] * abs(offset + shift)
        assert np.allclose(fast.finish(state), attention.attend(q, k, v, scale=0.5, bias=bias), rtol=0, atol=1e-14)


SHAPES = [
    ((2,), (2,), (2,), (4,)),
    ((2,), (2,), (2,), ()),
    ((2,), (2,), (2,), (1,)),
    ((2,), (1,), (2,), (2, 4)),
    ((1,), (2,), (1,), (2, 1)),
    ((1,), (1,), (3,), (1, 4)),
    ((2, 3), (2, 3), (2, 3), (4,)),
    ((2, 3), (1, 3), (2, 1), (2, 3, 4)),
    ((3,), (2, 3), (), (2, 1, 4)),
    ((0,), (0,), (1,), (4,)),
]


@pytest.mark.parametrize(("lead_q", "lead_k", "lead_v", "lead_bias"), SHAPES)
@pytest.mark.parametrize("heads_key", [1, 2, 4])
def test_batches_and_grouped_heads(lead_q, lead_k, lead_v, lead_bias, heads_key):
    rng = np.random.default_rng(0)
    q = rng.standard_normal((*lead_q, 4, 5, 3))
    k, v = rng.standard_normal((*lead_k, heads_key, 7, 3)), rng.standard_normal((*lead_v, heads_key, 7, 2))
    bias = rng.standard_normal((*lead_bias, 11))
    for causal in (False, True):
        check(q, k, v, bias, scale=0.5, causal=causal)
        check(q, k, v, None, scale=0.5, causal=causal)


def test_dtypes_promote_as_in_the_specification():
    arrays = inputs(5, 6, 4, 3, dtype=np.float64)
    for dtypes in itertools.product((np.float32, np.float64, np.int64), repeat=4):
        q, k, v, bias = (a.astype(t) for a, t in zip(arrays, dtypes, strict=True))
        for scale in (1, 0.5, np.float64(0.5), np.float32(0.5)):
            out = fast.attend_by_offset(q, k, v, scale=scale, bias_by_offset=bias)
            expected = attention.attend_by_offset(q, k, v, scale=scale, bias_by_offset=bias)
            assert out.dtype == expected.dtype
            assert np.allclose(out, expected, rtol=0, atol=1e-5)  # the specification mixes precisions; dtypes are the subject


# The error bound, from both sides


def exact_row(q, k, v, bias, scale, h, i, keys):
    """Row i of head h with 40 digits, from the definition."""
    with mpmath.workdps(40):
        n, number = q.shape[-2], mpmath.mpmathify
        s = [
            number(float(scale)) * mpmath.fdot(map(number, q[h, i]), map(number, k[h, j])) + number(bias[h, j - i + n - 1])
            for j in keys
        ]
        w = [mpmath.exp(x - max(s)) for x in s]
        return [mpmath.fdot(w, [number(v[h, j, e]) for j in keys]) / mpmath.fsum(w) for e in range(v.shape[-1])]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("n", "d", "spread"), [(2, 3, 1), (9, 4, 3), (300, 16, 1)])
def test_error_bound_from_both_sides(n, d, spread, dtype):
    q, k, v, bias = inputs(n, n, d, 3, dtype=dtype, spread=spread)
    scale = d**-0.5
    out = fast.attend_by_offset(q, k, v, scale=scale, bias_by_offset=bias, causal=True)
    bound = streaming.error_bound(q, k, v, bias_by_offset=bias, scale=scale, causal=True)
    used = []
    for h, i in itertools.product(range(2), sorted({0, 1, n // 2, n - 1})):
        exact = exact_row(q, k, v, bias, scale, h, i, range(i + 1))
        used += [float(abs(mpmath.mpf(float(out[h, i, e])) - exact[e]) / mpmath.mpf(float(bound[h, i, e]))) for e in range(3)]
    assert 1e-3 < max(used) <= 1


@numba.njit
def exp(x):
    out = np.empty_like(x)
    for i in range(len(x)):
        out[i] = fast._exp(x[i])
    return out


@pytest.mark.parametrize(("dtype", "end"), [(np.float32, -87), (np.float64, -708)])
def test_exp_from_both_sides(dtype, end):
    rng = np.random.default_rng(0)
    u = np.finfo(dtype).eps / 2
    near = -np.geomspace(1e-30, -end, 10_001)
    halves = -(np.arange(-end) + 0.5) * np.log(2)  # where the nearest multiple of ln 2 changes
    x = np.concatenate([near, rng.uniform(end, 0, 50_000), halves[halves > end], [0, end]]).astype(dtype)
    x = np.concatenate([x, np.nextafter(x, dtype(0)), np.maximum(np.nextafter(x, dtype(-np.inf)), dtype(end))])
    error = np.abs(exp(x) / np.exp(x.astype(np.longdouble)) - 1).max() / u
    assert 0.9 < error <= streaming.exp_error(dtype) < streaming.EXP
    assert exp(np.array([0, -0.0], dtype)).tolist() == [1, 1]
    assert exp(np.array([end * 1.001, -1e30, -np.inf], dtype)).tolist() == [0, 0, 0]
    assert exp(np.array([end], dtype))[0] > 0


def test_tanh_from_both_sides():
    """Within 4 u of it, absolutely; both signs of zero stay."""
    for dtype in FLOATS:
        x = np.concatenate([np.linspace(-30, 30, 200_001), np.geomspace(1e-30, 1, 10_001)]).astype(dtype)
        got = x.copy()
        fast._cap(got, dtype(1))
        error = np.abs(got - np.tanh(x.astype(np.longdouble))).max() / (np.finfo(dtype).eps / 2)
        assert 0.5 < error < streaming.TANH
        zeros = np.array([0.0, -0.0], dtype)
        fast._cap(zeros, dtype(1))
        assert np.signbit(zeros).tolist() == [False, True]


def test_the_compiler_is_promised_separate_memory():
    """numba has no public option for it: this fails when its compiler no longer takes the flag."""

    def promises(**options):
        compiled = numba.njit(**options)(fast._multiply.py_func)  # anew, since cached code cannot be inspected
        x = np.ones(2 * fast.LANES, np.float32)
        compiled(np.ones((2, 2), np.float32)[:, :2], x, x, np.zeros(4 * fast.LANES, np.float32))
        (code,) = compiled.inspect_llvm().values()
        return max(line.count("noalias") for line in code.splitlines() if line.startswith("define"))

    assert promises(pipeline_class=machine.Separate) > promises()


def test_the_compiler_asks_the_memory_ahead():
    """The instruction is there; without it results are the same and a decoding step takes longer."""
    compiled = numba.njit(fast._score.py_func)
    compiled(np.ones((2, 4)), np.ones((3, 4)), np.ones((2, 3)))
    (code,) = compiled.inspect_llvm().values()
    assert "@llvm.prefetch" in code


@pytest.mark.parametrize(("source", "terms"), [(fast._exp_float32, 8), (fast._exp_float64, 14)])
def test_exp_is_its_series(source, terms):
    """Coefficient by coefficient: one hundredth of the last is less than any error shows."""
    dtype = np.float32 if source is fast._exp_float32 else np.float64
    sums = re.findall(r"p = (?:p \* r \+ )?(.+)\n", inspect.getsource(source))
    assert len(sums) == terms + 1  # and the power of 2
    found = [eval(each, {"np": np}) for each in sums[:terms]]
    assert found == [dtype(1 / math.factorial(k)) for k in reversed(range(terms))]


# Edges


@pytest.mark.parametrize("n_query", [2, 60])
def test_keys_that_are_not_finite_are_found_wherever_they_are(n_query):
    """Also where no query meets them, or in a row that is masked; a NaN among the values is theirs alone."""
    q, k, v, bias = inputs(n_query, 200, 4, 3)
    ways = {}, {"causal": True}, {"window": 5}, {"softcap": 1.0, "bias_by_offset": bias}
    for arguments, where in itertools.product(ways, (0, 130, 199)):
        for wrong in (np.nan, np.inf, -np.inf):
            other = k.copy()
            other[1, where, 2] = wrong
            with pytest.raises(ValueError, match=r"attend_by_offset: k has 1 of 1600 values that are NaN or infinite"):
                fast.attend_by_offset(q, other, v, scale=1.0, **arguments)
    first = k.copy()
    first[:, 0] = np.nan
    with pytest.raises(ValueError, match="k has 8 of 800 values"):
        fast.attend_by_offset(q[:, :0], first[:, :100], v[:, :100], scale=1.0)
    with pytest.raises(ValueError, match=r"partial_by_offset: k has 8 of 1600"):
        fast.partial_by_offset(q, first, v, scale=1.0, causal=True, shift=1000)
    with pytest.raises(ValueError, match="scores are NaN or infinite: factors are too large for float32"):
        fast.attend_by_offset(q * np.float32(1e30), k * np.float32(1e30), v, scale=1.0)


def test_nothing_to_attend():
    q, k, v, _ = inputs(5, 0, 3, 2, dtype=np.float64)
    out = np.full((2, 5, 2), np.nan)
    assert fast.attend_by_offset(q, k, v, scale=1.0, out=out) is out
    assert np.array_equal(out, np.zeros((2, 5, 2)))
    q, k, v, bias = inputs(5, 2, 3, 2, dtype=np.float64)
    out = fast.attend_by_offset(q, k, v, scale=1.0, bias_by_offset=bias, causal=True)
    assert np.array_equal(out[:, :3], np.zeros((2, 3, 2)))  # before the first key
    assert np.array_equal(out[:, 3], v[:, 0])
    out = fast.attend_by_offset(*inputs(200, 3, 3, 2)[:3], scale=1.0, window=2)
    assert np.array_equal(out[:, :195], np.zeros((2, 195, 2)))
    assert (out[:, 196:] != 0).all()


@pytest.mark.parametrize("shape", [(0, 0, 3, 2), (0, 4, 3, 2), (4, 0, 3, 2), (4, 5, 3, 0), (4, 5, 0, 2)])
def test_empty_axes(shape):
    q, k, v, bias = inputs(*shape, dtype=np.float64)
    bias = bias if bias.shape[-1] else None
    for threads in (None, 1, 3):
        out = fast.attend_by_offset(q, k, v, scale=1.0, bias_by_offset=bias, threads=threads)
        expected = attention.attend_by_offset(q, k, v, scale=1.0, bias_by_offset=bias)
        assert out.shape == expected.shape
        assert np.allclose(out, expected, rtol=1e-14, atol=0)  # d = 0 has uniform weights
    no_heads = fast.attend_by_offset(q[:0], k, v, scale=1.0)
    assert no_heads.shape == (0, shape[0], shape[3])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("size", [1e4, 1e15])
def test_huge_scores_stay_finite(size, dtype):
    rng = np.random.default_rng(0)
    q, k = ((rng.standard_normal((1, 150, 4)) * size).astype(dtype) for _ in range(2))
    v = rng.standard_normal((1, 150, 3)).astype(dtype)
    for scale in (1.0, -1.0):
        out = fast.attend_by_offset(q, k, v, scale=scale)
        winner = (scale * q.astype(np.longdouble) @ np.swapaxes(k, -1, -2)).argmax(axis=-1)
        assert np.isfinite(out).all()
        assert np.array_equal(out[0], v[0, winner[0]])  # all weight on one key: the others are e^-1000 and less


def test_masked_keys_have_no_share():
    q, k, v, bias = inputs(70, 70, 4, 3)
    expected = fast.attend_by_offset(q, k, v, scale=0.5, bias_by_offset=bias, causal=True)
    for i in (0, 30, 63, 64, 68):
        other_k, other_v, other_bias = k.copy(), v.copy(), bias.copy()
        other_k[:, i + 1 :], other_v[:, i + 1 :], other_bias[:, 70:] = 1e15, 1e30, 1e30
        out = fast.attend_by_offset(q, other_k, other_v, scale=0.5, bias_by_offset=other_bias, causal=True)
        assert np.array_equal(out[:, : i + 1], expected[:, : i + 1])


# Memory


def test_repeated_rows_and_one_array_for_all():
    row = np.random.default_rng(0).standard_normal((1, 1, 8)).astype(np.float32)
    x = np.broadcast_to(row, (2, 70, 8))
    assert np.allclose(fast.attend_by_offset(x, x, x, scale=0.3), x, rtol=1e-5, atol=0)  # the average of equal rows
    x = np.random.default_rng(0).standard_normal((2, 70, 8)).astype(np.float32)
    expected = fast.attend_by_offset(x.copy(), x.copy(), x.copy(), scale=0.3)
    assert np.array_equal(fast.attend_by_offset(x, x, x, scale=0.3), expected)


def test_out_that_overlaps_tables_is_refused_and_nothing_written():
    (q, k, v, _), own = inputs(9, 7, 4, 5, dtype=np.float64), np.empty((2, 9, 5))
    for name, arguments in {
        r"query_tables\[0\]": {"layout": "half", "query_tables": (own[0, :, :2], np.ones((9, 2)))},
        r"key_tables\[1\]": {"layout": "half", "key_tables": (np.ones((7, 2)), own[0, :7, :2])},
    }.items():
        own[...] = 1
        with pytest.raises(ValueError, match=f"out overlaps {name} in memory"):
            fast.attend_by_offset(q, k, v, scale=1.0, **arguments, out=own)
        assert (own == 1).all()


PEAK = """
from pathlib import Path
import numpy as np
from posref.fast import attention

def peak():  # of this process alone: ru_maxrss would begin at that of the parent
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])

x, out = np.ones((2, 4096, 64), np.float32), np.ones((2, 4096, 64), np.float32)
bias = np.ones((2, 8191), np.float32)
attention.attend_by_offset(x[:, :70], x[:, :70], x[:, :70], scale=1.0, bias_by_offset=bias[:, :139], threads=2)
Path("/proc/self/clear_refs").write_text("5")
before = peak()
attention.attend_by_offset(x, x, x, scale=1.0, bias_by_offset=bias, causal=True, out=out, threads=2)
middle = peak()
np.ones(2**25, np.float32)
print(middle - before, peak() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the memory in use from /proc")
def test_memory_stays_small():
    """2 heads of 4096 in float32, where a matrix of scores would take 128 MiB: less than 32 MiB beyond inputs and output."""
    root = Path(posref.__file__).parents[1]
    run = subprocess.run([sys.executable, "-c", PEAK], capture_output=True, text=True, timeout=300, cwd=root)
    assert run.returncode == 0, run.stderr
    streamed, control = map(int, run.stdout.split())
    assert streamed < 32 * 1024
    assert control > 120 * 1024  # the measure sees an array of 128 MiB


# RoPE


@pytest.mark.parametrize(("layout", "dtype"), [("interleaved", np.float32), ("half", np.float64)])
def test_tables_are_rope_before(layout, dtype):
    q, k, v, bias = inputs(70, 140, 6, 5, heads=(4, 2), dtype=dtype)
    cos, sin = (t.astype(dtype) for t in rope.tables(np.arange(140) + 1000, rope.frequencies(6)))
    arguments = {"scale": 0.4, "bias_by_offset": bias, "causal": True}
    turned = [rope.rotate(x, cos[-x.shape[-2] :], sin[-x.shape[-2] :], layout=layout) for x in (q, k)]
    expected = fast.attend_by_offset(*turned, v, **arguments)
    tables = {"query_tables": (cos[-70:], sin[-70:]), "key_tables": (cos, sin), "layout": layout}
    assert np.array_equal(fast.attend_by_offset(q, k, v, **arguments, **tables), expected)
    one = fast.attend_by_offset(turned[0], k, v, **arguments, key_tables=(cos, sin), layout=layout)
    assert np.array_equal(one, expected)
    state = fast.partial_by_offset(q, k, v, **arguments, **tables)
    assert np.allclose(fast.finish(state), expected, rtol=0, atol=1e-6)
    assert not np.allclose(fast.attend_by_offset(q, k, v, **arguments), expected, rtol=0, atol=1e-3)


@pytest.mark.parametrize(
    ("batch", "shared", "positions"),
    [
        ((3,), (3,), (3, 1, 9)),
        ((3,), (3,), (9,)),
        ((), (3,), (3, 1, 9)),
        ((1,), (3,), (3, 1, 9)),
        ((2, 3), (2, 3), (1, 3, 1, 9)),
    ],
)
def test_batched_positions(batch, shared, positions):
    """Texts with positions of their own, or with the same; and queries of one text at the positions of several."""
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((*lead, 2, 9, 4)) for lead in (batch, shared, shared))
    cos, sin = rope.tables(rng.integers(0, 50, positions), rope.frequencies(4))
    turned = (rope.rotate(np.broadcast_to(x, k.shape), cos, sin, layout="half") for x in (q, k))
    expected = fast.attend_by_offset(*turned, v, scale=1.0)
    out = fast.attend_by_offset(q, k, v, scale=1.0, query_tables=(cos, sin), key_tables=(cos, sin), layout="half")
    assert np.array_equal(out, expected)


def test_tables_of_several_axes():
    """Images: half of the pairs turn with the row, half with the column of a token."""
    q, k, v, _ = inputs(30, 30, 8, 5, dtype=np.float64)
    angle = axes.angles(axes.grid(5, 6), rope.frequencies(8), axes.sections(np.array([2, 2])))
    cos, sin = np.cos(angle), np.sin(angle)
    expected = fast.attend_by_offset(*(rope.rotate(x, cos, sin, layout="half") for x in (q, k)), v, scale=1.0)
    out = fast.attend_by_offset(q, k, v, scale=1.0, query_tables=(cos, sin), key_tables=(cos, sin), layout="half")
    assert np.array_equal(out, expected)


# Shards of the keys


@ONE_FLOAT
@pytest.mark.parametrize(("causal", "window"), EVERY_MASK)
def test_shards_of_keys_merge_to_the_whole(dtype, causal, window):
    """Every pair of shards of queries and keys, as ring attention meets them; some shards have nothing to attend to."""
    n, cuts = 140, (0, 5, 64, 64, 139, 140)
    q, k, v, bias = inputs(n, n, 4, 3, heads=(4, 2), dtype=dtype)
    arguments = {"scale": 0.5, "causal": causal, "window": window}
    expected, bound = (
        specification(q, k, v, bias, **arguments),
        streaming.error_bound(q, k, v, bias_by_offset=bias, **arguments),
    )
    for a, b in itertools.pairwise(cuts):
        states = []
        for c, d in itertools.pairwise(cuts):
            shift, part = c - a, bias[:, n - (b - a) + c - a :][:, : max(0, b - a + d - c - 1)]
            states.append(
                fast.partial_by_offset(
                    q[:, a:b], k[:, c:d], v[:, c:d], bias_by_offset=part if b > a else None, shift=shift, **arguments
                )
            )
        for order in ([0, 1, 2, 3, 4], [4, 2, 0, 3, 1]):
            state = states[order[0]]
            for t in order[1:]:
                state = fast.merge(state, states[t])
            # a merge scales once more: one exp and one product for each shard beyond the tiles counted
            assert (np.abs(fast.finish(state) - expected[:, a:b]) <= 1.5 * bound[:, a:b]).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_partial_against_the_specification(dtype):
    q, k, v, bias = inputs(20, 90, 4, 3, dtype=dtype)
    offset = np.arange(90) - np.arange(20)[:, None]
    for shift in (-200, -85, -70, -3, 0, 12, 200, 10**12):
        state = fast.partial_by_offset(q, k, v, scale=0.5, bias_by_offset=bias, causal=True, window=50, shift=shift)
        mask = (offset + shift <= 0) & (abs(offset + shift) < 50)
        arguments = {"scale": 0.5, "bias": bias[:, offset + 19].astype(np.longdouble), "mask": mask}
        expected = shards.attend(*long(q, k, v), **arguments)
        met = expected.denominator > 0
        assert np.array_equal(state.denominator > 0, met)
        assert np.isfinite(state.maximum).all()
        u = np.finfo(dtype).eps / 2
        assert np.allclose(state.maximum[met], expected.maximum[met], rtol=0, atol=100 * u)  # |s| < 10, 10 roundings
        for got, right in zip(state[1:], expected[1:], strict=True):
            assert np.allclose(got, right, rtol=0, atol=400 * u * (1 + np.abs(right).max()))


# Errors


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"v": np.ones((2, 7, 2), np.longdouble)}, TypeError, "the result would have dtype float128"),
        ({"bias_rule": (np.ones((2, 4)), np.ones(2), np.ones(2))}, ValueError, r"bias_rule\[0\] has .* an odd number"),
        ({"bias_rule": (np.ones((3, 3)), np.ones(3), np.ones(3))}, ValueError, r"bias_rule\[0\] has shape \(3, 3\)"),
        ({"bias_rule": (np.ones((2, 3)), np.ones(2), np.ones(1))}, ValueError, r"bias_rule\[2\] has shape \(1,\)"),
        ({"bias_rule": (np.ones((1, 1)),) * 3, "bias_by_offset": np.ones(11)}, ValueError, "bias_rule"),
        ({"bias_rule": (np.ones((1, 1)), *[np.ones(1)] * 2), "bias_by_offset": np.ones(11)}, ValueError, "one of them"),
        ({"query_tables": np.ones((5, 2)), "layout": "half"}, TypeError, "query_tables is a ndarray, .* pass the pair"),
        ({"query_tables": (np.ones((5, 2)),) * 2}, ValueError, "layout is None, expected one of 'interleaved', 'half'"),
        ({"key_tables": (np.ones((7, 2)),) * 2, "layout": "neox"}, ValueError, "layout is 'neox'"),
        ({"key_tables": (np.ones((7, 3)),) * 2, "layout": "half"}, ValueError, "expected d/2 = 2"),
        ({"key_tables": (np.ones((1, 2)),) * 2, "layout": "half"}, ValueError, r"key_tables\[0\] has .* n_key = 7"),
        ({"key_tables": (np.ones((2, 7, 2)),) * 2, "layout": "half"}, ValueError, "one entry for all heads"),
    ],
)  # fmt: skip
def test_errors(change, error, message):
    arguments = {"q": np.ones((2, 5, 4)), "k": np.ones((2, 7, 4)), "v": np.ones((2, 7, 2)), "scale": 1.0, **change}
    for name in ("attend_by_offset", "partial_by_offset"):
        with pytest.raises(error, match=message) as caught:
            getattr(fast, name)(**arguments)
        assert str(caught.value).startswith(f"fast.attention.{name}: ")


def test_errors_of_shift():
    x = np.ones((1, 2, 2))
    with pytest.raises(TypeError, match=r"fast\.attention\.partial_by_offset: shift is 0\.5, expected an integer"):
        fast.partial_by_offset(x, x, x, scale=1.0, shift=0.5)
