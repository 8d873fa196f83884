"""Every compiled function against its specification: one table of twins, and a test for each rule that all of them keep.

The bits are the specification's, whatever the sizes, the leading axes, the dtypes, the memory of the arguments and of `out`,
and the number of threads; what the contract refuses is refused in the same words. A twin that adds in another order keeps the
rules with its own bits on one thread (`reorders`); how far they are off is in the tests of its module.
"""

import importlib
import itertools
import re
import threading
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

from posref import attention, offsets
from posref.relative import alibi, deberta, shaw, t5, transformer_xl
from posref.rotary import rope
from tests.fast.bits import other_memory, random, same_bits
from tests.test_contract import wrong_values

pytest.importorskip("numba", reason="needs posref[fast]")
fast = {
    name: importlib.import_module(f"posref.fast.{name}")
    for name in ("alibi", "attention", "deberta", "entries", "offsets", "rope", "shaw", "t5", "transformer_xl")
}

FLOATS = (np.float32, np.float64)
INTEGERS = (np.int8, np.int16, np.int32, np.int64)


def integers(*shape, low=-9, high=10):
    return np.random.default_rng([*shape]).integers(low, high, shape)


def choices(**options):
    """One dictionary for every choice of each option."""
    return [dict(zip(options, each, strict=True)) for each in itertools.product(*options.values())]


def grid(*axes):
    """One tuple for every choice of a size on each axis."""
    return [*itertools.product(*axes)]


class Twin(NamedTuple):
    """`make(dtype, sizes.., **leads)` gives the arguments; `settings` are choices; `sizes` and `leads` what make takes."""

    name: str
    specification: Callable
    make: Callable
    settings: list[dict]
    sizes: list[tuple]
    leads: list[dict]
    sample: tuple
    reorders: bool = False

    @property
    def compiled(self):
        module, function = self.name.split(".")
        return getattr(fast[module], function)

    @property
    def expected(self):
        return (lambda **a: self.compiled(**a, threads=1)) if self.reorders else self.specification


def alibi_bias(dtype, n, m, heads, query=(), key=()):
    at = {"query_positions": integers(*query, n, low=-50, high=50), "key_positions": integers(*key, m, low=-50, high=50)}
    return at | {"slopes": random(heads, dtype=dtype)}


def t5_bias(dtype, n, m, heads, query=(), key=(), step=0):
    """Positions anywhere, and with steps of 1 or 3 in the queries."""
    at = {"query_positions": integers(*query, n, low=-50, high=50), "key_positions": integers(*key, m, low=-50, high=50)}
    if step:
        at = {"query_positions": np.arange(n) * step + 5, "key_positions": np.arange(m)[:: 2 - step or 1]}
    if query and n:
        at["query_positions"].reshape(-1, n)[:1] = np.arange(n)  # one row of the batch without gaps
    return at | {"table": random(32, heads, dtype=dtype)}


def deberta_scores(dtype, n, m, span, span_key, q=(2, 3), k=(2, 3), rows=(3,), at=(), terms=(True, True)):
    tables = {
        "q_r": random(*rows, 2 * span_key, 5, dtype=dtype, seed=2),
        "k_r": random(*rows, 2 * span, 5, dtype=dtype, seed=3),
    }
    tables = {name: table if there else None for (name, table), there in zip(tables.items(), terms, strict=True)}
    content = {"q": random(*q, n, 5, dtype=dtype), "k": random(*k, m, 5, dtype=dtype, seed=1)}
    return content | tables | {"offsets": integers(*at, n, m), "scale": 0.3}


def shaw_scores(dtype, n, m, reach, q=(2, 3), k=(2, 3), rows=(), at=()):
    content = {"q": random(*q, n, 5, dtype=dtype), "k": random(*k, m, 5, dtype=dtype, seed=1)}
    return content | {
        "key_table": random(*rows, 2 * reach + 1, 5, dtype=dtype, seed=2),
        "offsets": integers(*at, n, m),
        "scale": 0.3,
    }


def shaw_attend(dtype, n, m, reach, **leads):
    made = shaw_scores(dtype, n, m, reach, **leads)
    return made | {"v": random(*made["k"].shape[:-1], 4, dtype=dtype, seed=3), "value_table": None}


def xl_scores(dtype, n, m, causal, q=(2, 3), k=(2, 3), r=(3,), u=(3,)):
    content = {"q": random(*q, n, 5, dtype=dtype), "k": random(*k, m, 5, dtype=dtype, seed=1)}
    rows = random(*r, m if causal else n + m - 1, 5, dtype=dtype, seed=2)
    return content | {"r": rows, "u": random(*u, 5, dtype=dtype, seed=3), "v": random(*u, 5, dtype=dtype, seed=4), "scale": 0.3}


def dense(dtype, n, m, *lead):
    return {"by_offset": random(*lead, n + m - 1, dtype=dtype), "n_query": n, "n_key": m}


def gather(dtype, n, m, table=(3,), at=()):
    return {"by_offset": random(*table, 19, dtype=dtype), "offsets": integers(*at, n, m), "lowest": -9}


def rotate(dtype, n, width, tail=0, x=(3,), rows=None):
    angle = random(*((n,) if rows is None else rows), width // 2, seed=1)
    tables = {"cos": np.cos(angle).astype(dtype), "sin": np.sin(angle).astype(dtype)}
    return {"x": random(*x, n, width + tail, dtype=dtype)} | tables | {"rotary_dim": width}


def gradient(*sizes, **leads):
    made = rotate(*sizes, **leads)
    return {"output_gradient": made.pop("x")} | made


def attend(dtype, n, m, q=(4,), k=(2,), v=(2,), bias=(4,)):
    content = {"q": random(*q, n, 4, dtype=dtype), "k": random(*k, m, 4, dtype=dtype, seed=1)}
    return content | {
        "v": random(*v, m, 3, dtype=dtype, seed=2),
        "bias_by_offset": random(*bias, n + m - 1, dtype=dtype, seed=3),
        "scale": 0.5,
    }


LENGTHS = (0, 1, 2, 3, 7, 33, 130)
POSITIONS = [
    {"query": query, "key": key}
    for query, key in (((2,), ()), ((), (2,)), ((2,), (2,)), ((2, 1), (5,)), ((1,), (2,)), ((0,), ()), ((2, 3), (2, 3)))
]
OFFSETS = [{"at": at} for at in ((), (1, 1), (2, 1), (2, 3), (1, 3))]
CONTENT = [{"q": q, "k": k} for q, k in (((), ()), ((3,), (1,)), ((1,), (3,)), ((2, 1), (3,)), ((2, 3), ()), ((0,), (0,)))]
LAYOUTS = choices(layout=("interleaved", "half"))
# leading axes of x, and those of its tables with their rows
TABLES = [
    {"x": x, "rows": rows}
    for x, tables in {
        (): ((1,), ()),
        (4,): ((5,), (1,), (4, 5), (4, 1)),
        (2, 4): ((5,), (2, 1, 5), (2, 1, 1), (1, 4, 5), (2, 4, 5)),
        (1, 4): ((1, 4, 1), (1, 1, 5)),
        (2, 3, 4): ((2, 1, 4, 5), (1, 3, 1, 5), (2, 3, 1, 5)),
        (2, 1, 3, 1): ((2, 1, 1, 1, 5),),
        (0, 4): ((5,),),
        (2, 0): ((2, 1, 5),),
        (2,): ((2, 5),),
    }.items()
    for rows in tables
]

TERMS = [
    each | {"terms": terms}
    for terms in itertools.product((True, False), repeat=2)
    for each in (
        *OFFSETS,
        {"q": (3,), "k": (1,)},
        {"q": (1,), "k": (3,), "rows": (1,)},
        {"q": (2, 1)},
        {"q": (1, 3), "k": (1, 3), "at": (2, 1)},
        {"k": (3,), "rows": (2, 3)},
        {"q": (0,), "k": (0,), "rows": (1,)},
    )
]
MEMORIES = [
    {"q": (3,), "k": (1,), "r": ()},
    {"q": (1,), "k": (3,), "r": (1,), "u": (1,)},
    {"q": (2, 1), "k": (3,), "r": (), "u": (2, 1)},
    {"r": (3,), "u": (2, 3)},
    {"k": (3,), "r": (2, 3)},
    {"q": (0,), "k": (0,), "r": (), "u": (1,)},
]
GATHERED = [{"at": (2, 1)}, {"at": (2, 3)}, {"table": (1,), "at": (2, 1)}]
GATHERED += [{"table": (2, 3), "at": (2, 1)}, {"table": (2, 3), "at": (1,)}, {"table": ()}]
GATHERED += [{"table": (2, 3), "at": (3,)}, {"table": (2, 1, 3), "at": (2, 1)}, {"table": (3, 2, 2), "at": (3, 1, 2)}]
STREAMED = [{"k": (1,), "v": (1,), "bias": ()}, {"q": (2, 4), "bias": (2, 1)}, {"q": (0, 4)}]
WIDTHS = (2, 4, 6, 10, 18, 34, 62, 64, 130, 256)
BIASES, SCORES = grid(LENGTHS, LENGTHS, (1, 3)), grid((0, 1, 2, 3, 33, 100), (0, 1, 5, 34), (0, 1, 9))
DENSE = [*grid(LENGTHS[1:], LENGTHS[1:], (1, 3)), (3, 4), (3, 4, 0), (3, 4, 2, 3), (3, 4, 2, 0, 3)]
CAUSAL = [size for size in grid((1, 2, 3, 33, 100), (1, 2, 5, 34, 100, 131), (True, False)) if size[0] <= size[1]]
ROTATIONS = grid((0, 1, 2, 3, 7, 16, 33, 257), WIDTHS, (0, 1, 5))
CONVENTIONS, FORMS, VARIANTS = (
    choices(convention=deberta.CONVENTIONS),
    choices(form=alibi.FORMS),
    choices(variant=shaw.VARIANTS),
)
SIDES, MASKS = choices(bidirectional=(True, False), max_distance=(128, 20)), choices(causal=(True, False), window=(None, 9))
OF_DEBERTA, OF_SHAW = (
    grid((0, 1, 3, 33), (0, 1, 5, 34), (1, 9), (1, 4)),
    [*CONTENT, *OFFSETS, *({"rows": (3,), **each} for each in OFFSETS)],
)

TWINS = [
    Twin("alibi.bias", alibi.bias, alibi_bias, FORMS, BIASES, POSITIONS, (33, 40, 3)),
    Twin("t5.bias", t5.bias, t5_bias, SIDES, BIASES, [*POSITIONS, {"step": 1}, {"step": 3}], (33, 40, 3)),
    Twin("deberta.scores", deberta.scores, deberta_scores, CONVENTIONS, OF_DEBERTA, TERMS, (33, 40, 4, 3)),
    Twin("shaw.scores", shaw.scores, shaw_scores, VARIANTS, SCORES, OF_SHAW, (33, 40, 4)),
    Twin(
        "shaw.attend", shaw.attend, shaw_attend, VARIANTS, grid((1, 9), (1, 8), (0, 3)), [*CONTENT[:-1], *OFFSETS], (33, 40, 4)
    ),
    Twin("transformer_xl.scores", transformer_xl.scores, xl_scores, [{}], CAUSAL, MEMORIES, (33, 40, False)),
    Twin("offsets.dense", offsets.toeplitz, dense, [{}], DENSE, [], (33, 40, 2, 3)),
    Twin("offsets.gather", offsets.gather, gather, [{}], grid((0, 1, 2, 5, 33), (0, 1, 4, 17)), GATHERED, (33, 40)),
    Twin("rope.rotate", rope.rotate, rotate, LAYOUTS, ROTATIONS, TABLES, (33, 8, 3)),
    Twin("rope.gradient", rope.gradient, gradient, LAYOUTS, [(5, 6, 2)], TABLES[:3], (33, 8, 3)),
    Twin(
        "attention.attend_by_offset",
        attention.attend_by_offset,
        attend,
        MASKS,
        [(1, 1), (3, 70), (70, 75), (300, 310)],
        STREAMED,
        (70, 75),
        reorders=True,
    ),
]
SAMPLE_LEADS = {"rope.rotate": {"x": (2, 4), "rows": (2, 1, 33)}, "deberta.scores": {"at": (2, 1)}}
of_every_twin = pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.name)
of_every_float = pytest.mark.parametrize("dtype", FLOATS)
one_float = pytest.mark.parametrize("dtype", [FLOATS[0], pytest.param(FLOATS[1], marks=pytest.mark.slow)])


def of_step(step):
    """One of so many cases; all of them are slow."""
    return pytest.mark.parametrize("step", [step, pytest.param(1, marks=pytest.mark.slow)])


def small(twin):
    """Few queries, other numbers of everything else."""
    return (4, 6, *twin.sample[2:]) if "rope" not in twin.name else (5, 6)


def samples(twin, dtype=np.float64):
    """Arguments of a middle size, with each choice of settings."""
    made = twin.make(dtype, *twin.sample, **SAMPLE_LEADS.get(twin.name, {}))
    return [made | setting for setting in twin.settings]


def groups(twin, monkeypatch):
    """Once with products and kernels for all heads together, as with few positions; then head by head, as with many."""
    yield
    if twin.specification.__name__ in ("scores", "attend"):
        monkeypatch.setattr(importlib.import_module("posref.fast._pairs"), "GROUP", 1)
        yield


def arrays(arguments):
    return {name: value for name, value in arguments.items() if isinstance(value, np.ndarray)}


def agree(twin, arguments, *thread_counts):
    expected = twin.expected(**arguments)
    assert same_bits(twin.compiled(**arguments), expected)
    for threads in thread_counts:
        assert same_bits(twin.compiled(**arguments, threads=threads), expected), threads


@of_every_twin
@of_every_float
@of_step(5)
def test_every_size(twin, dtype, step):
    for sizes, setting in itertools.product(twin.sizes[::-step], twin.settings):
        agree(twin, twin.make(dtype, *sizes) | setting, 2, 5)


@of_every_twin
@of_step(3)
def test_leading_axes_broadcast(twin, step, monkeypatch):
    for number, _ in enumerate(groups(twin, monkeypatch)):
        for leads, setting in [*itertools.product(twin.leads, twin.settings)][number::step]:
            sizes = (1, *small(twin)[1:]) if leads.get("rows") == (1,) and leads.get("x") == () else small(twin)
            agree(twin, twin.make(np.float64, *sizes, **leads) | setting, 1, 2, 64)


@of_every_twin
def test_extents_that_are_alike(twin):
    """As many texts and heads as queries: how many entries an array has does not tell which axis has them."""
    sizes, asked = small(twin), 0
    for leads, setting in itertools.product(twin.leads, twin.settings):
        alike = {name: alike_extents(lead, sizes[0]) for name, lead in leads.items()}
        arguments = twin.make(np.float64, *sizes, **alike) | setting
        try:
            twin.specification(**arguments)
        except ValueError:  # extents that no longer fit
            continue
        agree(twin, arguments, 1, 2)
        asked += 1
    assert asked > len(twin.leads) // 3 or not twin.leads


def alike_extents(lead, n):
    """Leading axes whose extents are 0, 1 or n; what is no tuple of extents stays."""
    return tuple(n if type(count) is int and count > 1 else count for count in lead) if isinstance(lead, tuple) else lead


@of_every_twin
def test_dtypes_promote_like_the_specification(twin):
    for arguments in samples(twin):
        floats = [name for name, value in arrays(arguments).items() if value.dtype.kind == "f"]
        for wide in ((), floats[:1], floats[-1:], floats):
            given = arguments | {name: arguments[name].astype(FLOATS[name in wide]) for name in floats}
            for scale in (0.3, np.float32(0.3), np.float64(0.3), 2) if "scale" in arguments else (None,):
                given = given | ({"scale": scale} if scale is not None else {})
                made, right = twin.compiled(**given), twin.specification(**given)
                assert made.dtype == right.dtype
                assert twin.reorders or same_bits(made, right)
        for integer in INTEGERS:
            narrow = {name: value.astype(integer) for name, value in arrays(arguments).items() if value.dtype.kind == "i"}
            agree(twin, arguments | narrow)


def test_dtypes_of_content_alone_promote():
    """DeBERTa without tables: no other term has the wider dtype of queries or keys."""
    for dtypes in itertools.product(FLOATS, repeat=2):
        given = deberta_scores(np.float64, 3, 4, 2, 2, terms=(False, False)) | {"convention": "paper"}
        given |= {n: given[n].astype(t) for n, t in zip("qk", dtypes, strict=True)}
        assert same_bits(fast["deberta"].scores(**given), deberta.scores(**given))


@of_every_twin
@one_float
@of_step(3)
def test_any_memory_of_the_arguments(twin, dtype, step, monkeypatch):
    for number, arguments in enumerate(each for _ in groups(twin, monkeypatch) for each in samples(twin, dtype)):
        ways = {name: dict(other_memory(value)) for name, value in arrays(arguments).items()}
        for way in [*next(iter(ways.values()))][number % step :: step]:
            other = {name: made[way] for name, made in ways.items()}
            if not twin.specification(**arguments | other).dtype.isnative:
                with pytest.raises(TypeError, match="the compiled kernels know float32 and float64"):
                    twin.compiled(**arguments | other)
                continue
            plain = {name: np.ascontiguousarray(x.astype(x.dtype.newbyteorder("="))) for name, x in other.items()}
            for mixed in (other, *(plain | {name: other[name]} for name in other)):
                expected = twin.expected(**arguments | (plain if twin.reorders else mixed))  # numpy's products see the memory
                assert same_bits(twin.compiled(**arguments | mixed, threads=2), expected), way


@of_every_twin
@one_float
def test_any_memory_of_out(twin, dtype, monkeypatch):
    for arguments in (each for _ in groups(twin, monkeypatch) for each in samples(twin, dtype)):
        expected = twin.expected(**arguments)
        wide = np.full((*expected.shape[:-1], 3 * expected.shape[-1] + 5), 7, expected.dtype)
        inside = wide[..., 2 : 2 + expected.shape[-1]]
        others = [out for _, out in other_memory(np.zeros_like(expected)) if out.flags.writeable and out.dtype.isnative]
        for out in (np.full_like(expected, np.nan), inside, *others):
            assert twin.compiled(**arguments, out=out, threads=2) is out
            assert same_bits(out, expected)
        assert (np.delete(wide, range(2, 2 + expected.shape[-1]), axis=-1) == 7).all()


@of_every_twin
def test_out_over_the_arguments_is_refused_and_nothing_written(twin):
    for arguments in samples(twin):
        shape = twin.specification(**arguments).shape
        for name, value in arrays(arguments).items():
            buffer = np.zeros(1 + max(value.size, int(np.prod(shape))))
            over = buffer.view(value.dtype)[1 : 1 + value.size].reshape(value.shape)
            how = f"pass {name} itself" if name in ("x", "output_gradient") else rf"pass {name}\.copy"
            with pytest.raises(ValueError, match=rf"^fast\.{re.escape(twin.name)}: out overlaps {name} in memory; {how}"):
                twin.compiled(**arguments | {name: over}, out=buffer[: int(np.prod(shape))].reshape(shape))
            assert not buffer.any()


@pytest.mark.parametrize("name", ["mask", "value_table"])
def test_out_over_what_may_be_missing_is_refused(name):
    given = shaw_attend(np.float64, 7, 4, 3) | {"variant": "relative_key"}
    value = {"mask": np.ones((7, 4), bool), "value_table": random(7, 4)}[name]
    out = np.zeros((2, 3, 7, 4))
    over = out.reshape(-1).view(value.dtype)[: value.size].reshape(value.shape)
    over[...] = value
    with pytest.raises(ValueError, match=f"out overlaps {name} in memory"):
        fast["shaw"].attend(**given | {name: over}, out=out)


@of_every_twin
def test_python_threads_call_at_once(twin):
    calls, right, start = [(a, twin.expected(**a)) for a in samples(twin)], [], threading.Barrier(3)

    def call():
        start.wait()
        for _ in range(12 // len(calls)):
            right.extend(same_bits(twin.compiled(**arguments, threads=2), expected) for arguments, expected in calls)

    callers = [threading.Thread(target=call) for _ in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert right == [True] * 3 * (12 // len(calls)) * len(calls)


@of_every_twin
def test_refusals_are_those_of_the_specification(twin):
    """What the contract of one does not take, that of the other does not, in the same words behind the name of the function."""
    arguments, seen = samples(twin)[0], 0
    for name, rule in twin.specification.contract.arguments.items():
        if arguments.get(name) is None:
            continue
        wrong = [value for _, value, _ in wrong_values(rule, arguments[name])]
        for value in wrong + other_shapes(arguments[name]):
            try:
                twin.specification(**arguments | {name: value})
            except (TypeError, ValueError) as plain:
                where, said = str(plain).split(": ", 1)
                if where != twin.specification.contract.where:  # of a function that the specification calls
                    continue
                with pytest.raises(type(plain), match=re.escape(f"fast.{twin.name}: {said}")):
                    twin.compiled(**arguments | {name: value})
                seen += 1
    assert seen >= 8


def other_shapes(value):
    """An array with an entry more or less along each axis, with an axis more, and with one less."""
    if not isinstance(value, np.ndarray):
        return []
    longer = [np.concatenate([value, np.take(value, [0], axis)], axis) for axis in range(value.ndim)]
    shorter = [np.delete(value, 0, axis) for axis in range(value.ndim)]
    return [*longer, *shorter, value[None], value[0], value.ravel()[:1], np.stack([value] * 5)]


@of_every_twin
def test_what_a_kernel_cannot_do_is_refused(twin):
    arguments = samples(twin)[0]
    good = np.empty_like(twin.specification(**arguments))
    shape = re.escape(f"out has shape {good.T.shape} and the result has {good.shape}; they must be equal")
    frozen = good.copy()
    frozen.setflags(write=False)
    repeating = np.lib.stride_tricks.as_strided(good, good.shape, (0,) * good.ndim)
    kinds = {name: rule.rule.kind.dtypes for name, rule in twin.specification.contract.arguments.items() if rule.shape}
    halves = {name: x.astype(np.float16) for name, x in arrays(arguments).items() if "f" in kinds[name]}
    for change, error, message in (
        ({"out": [0.0]}, TypeError, "out is a list, expected a numpy array to write to"),
        ({"out": good.T}, ValueError, shape),
        ({"out": good.astype(complex)}, TypeError, "dtype complex128"),
        ({"out": frozen}, ValueError, "out is read-only"),
        ({"out": repeating}, ValueError, r"out has strides \(0, 0.*\), so that cells share memory"),
        ({"threads": 0}, ValueError, "threads is 0, expected at least 1"),
        ({"threads": -2}, ValueError, "threads is -2"),
        ({"threads": 1.5}, TypeError, "threads is 1.5"),
        ({"threads": True}, TypeError, "threads is True"),
        (halves, TypeError, "would have dtype float16; the compiled kernels know float32 and float64"),
        *(({name: x.astype(object)}, TypeError, "dtype object") for name, x in arrays(arguments).items()),
    ):
        with pytest.raises(error, match=rf"^fast\.{re.escape(twin.name)}: .*{message}"):
            twin.compiled(**arguments | change)


# What the proofs execute on symbols is `py_func`; what runs is machine code made from it.


def in_python(monkeypatch):
    """Kernels are Python from here on; the set of those that are not called yet."""
    left = set()
    for module in fast.values():
        for name, kernel in [*vars(module).items()]:
            if hasattr(kernel, "py_func"):
                left.add(kernel.py_func)
                monkeypatch.setattr(module, name, lambda *given, own=kernel.py_func: left.discard(own) or own(*given))
    return left


def of_every_kernel():
    """Twins and arguments that together call every kernel."""
    for twin in TWINS:
        made = [twin.make(np.float32, *small(twin), **leads) for leads in (twin.leads or [{}])[::3]]
        yield from ((twin, arguments | setting) for arguments, setting in itertools.product(made, twin.settings))
    more = {twin.name: twin for twin in TWINS}
    straight = {"offsets": np.arange(6) - np.arange(4)[:, None]}
    yield more["deberta.scores"], deberta_scores(np.float64, 4, 6, 2, 2) | straight | CONVENTIONS[0]
    yield more["shaw.attend"], shaw_attend(np.float64, 4, 6, 2) | straight | {"value_table": random(5, 4)} | VARIANTS[0]
    yield more["transformer_xl.scores"], xl_scores(np.float64, 4, 6, True)
    for tail, layout in itertools.product((0, 3, 8), LAYOUTS):
        yield more["rope.rotate"], rotate(np.float64, 5, 8, tail) | layout
    for n in (4, 70):
        content = attend(np.float32, n, 75, q=(2,), bias=(2,))
        yield more["attention.attend_by_offset"], content | {"softcap": 2.0}
        rule = random(2, 5, dtype=np.float32), *random(2, 2, dtype=np.float32)
        yield more["attention.attend_by_offset"], content | {"bias_by_offset": None, "bias_rule": rule}


def test_kernels_stay_within_their_arrays_and_equal_their_python_source(monkeypatch):
    """In Python numpy refuses an index beyond an array; machine code would read or write what lies there."""
    for module in (fast["rope"], importlib.import_module("posref.fast._machine")):
        monkeypatch.setattr(module, "LARGE", 0)  # such results are written past the caches
    asked = [(twin, arguments, twin.compiled(**arguments)) for twin, arguments in of_every_kernel()]
    left = in_python(monkeypatch)
    for twin, arguments, compiled in asked:
        for threads in (1, 3):
            source = twin.compiled(**arguments, threads=threads)
            near = np.allclose(source, compiled, rtol=1e-5, atol=1e-6) if twin.reorders else same_bits(source, compiled)
            assert near, twin.name
    fast["rope"].tables(np.arange(5), rope.frequencies(8))
    assert not left


def test_the_rest_is_the_specification():
    for module, names in {
        alibi: ["slopes"],
        t5: ["bucket", "bucket_starts"],
        deberta: ["log_bucket"],
        transformer_xl: ["distances", "embeddings", "visible"],
        rope: ["frequencies"],
    }.items():
        for name in names:
            assert getattr(fast[module.__name__.rpartition(".")[2]], name) is getattr(module, name)
