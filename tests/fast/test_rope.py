"""The compiled RoPE against the specification (bitwise), against many digits, and against its own Python source."""

import fractions
import importlib
import inspect
import itertools
import math
import platform
import re

import numpy as np
import pytest

from posref.rotary import rope
from tests.every import every
from tests.fast.bits import other_memory, same_bits

numba = pytest.importorskip("numba", reason="needs posref[fast]")
fast = importlib.import_module("posref.fast.rope")
machine = importlib.import_module("posref.fast._machine")

LAYOUTS = ("interleaved", "half")
KERNELS = {"interleaved": fast._interleaved, "half": fast._half}
FLOATS = (np.float32, np.float64)


def random(*shape, dtype=np.float64, seed=0):
    return (np.random.default_rng(seed).standard_normal(shape) * 8).astype(dtype)


def some_tables(*shape, dtype=np.float64):
    """Any pair of numbers is a table entry to the kernels; these are cosines and sines."""
    angle = random(*shape, seed=1)
    return np.cos(angle).astype(dtype), np.sin(angle).astype(dtype)


PREPARED = [
    ((2, 4, 9, 8), (9,)),
    ((2, 4, 1, 8), (2, 1, 1)),
    ((4, 1, 6), (1,)),
    ((5, 6), (5,)),
    ((6,), ()),
    ((32, 7), (32,)),
    ((2, 3, 5, 6), (2, 3, 5)),
]


@pytest.mark.parametrize(("dtype", "layout"), [*zip(FLOATS, LAYOUTS, strict=True)])
@pytest.mark.parametrize(("shape", "rows"), PREPARED)
def test_a_prepared_rotation(shape, rows, dtype, layout, monkeypatch):
    asked = {"layout": layout, "rotary_dim": 6}
    turn = fast.rotator(like := np.ones(shape, dtype), *some_tables(*rows, 3, dtype=dtype), **asked)
    assert (like == 1).all()
    x, (cos, sin) = random(*shape, dtype=dtype, seed=2), some_tables(*rows, 3, dtype=dtype)
    strided = (np.repeat(table, 2, axis=-1)[..., ::2] for table in (cos, sin))
    others = [(x, sin, cos), *((y, cos, sin) for _, y in other_memory(x)), (x, next(strided), sin), (x, cos, next(strided))]
    for each in [*others, (x[..., :6], cos, sin), (x.astype(np.float64), cos, sin), (x, cos.astype(np.float64), sin)]:
        assert same_bits(turn(*each), rope.rotate(*each, **asked))
    assert {getattr(kind, "layout", "C") for kinds in KERNELS[layout].signatures for kind in kinds} == {"C"}
    lists = (x.tolist(), cos, sin), (x, cos.tolist(), sin), (x, cos, sin.tolist())
    for each in ((x[..., :5], cos, sin), (x.astype(bool), cos, sin), *lists):
        with pytest.raises((TypeError, ValueError), match=r"fast\.rope\.rotate: "):
            turn(*each)
    monkeypatch.setattr(np, "result_type", None)  # which every rotation asks that is not prepared
    assert np.isfinite(turn(x, cos, sin)).all()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_is_not_prepared_is_rotated(layout):
    """Arrays without entries, and one that is strided; what no call could rotate is refused at once."""
    for x in (random(2, 0, 6), random(0, 3, 6), random(2, 3, 12)[..., ::2]):
        cos, sin = some_tables(x.shape[-2], 3)
        assert same_bits(fast.rotator(x, cos, sin, layout=layout)(x, cos, sin), rope.rotate(x, cos, sin, layout=layout))
    x, cos, sin = (np.ones((3, n), np.float16) for n in (2, 1, 1))
    for tables in ((cos, sin.astype(np.float32)), (cos.astype(np.float32), sin)):
        with pytest.raises(TypeError, match="float16"):
            fast.rotator(x, *tables, layout=layout)


DTYPES = (np.float32, np.float64, np.float16, np.int8, np.int32, np.int64, np.uint8, np.uint64)


@every(
    [(x, *tables) for x in DTYPES for tables in (*itertools.combinations_with_replacement(FLOATS, 2), (np.float32, np.float16))]
)
def test_dtypes_promote_like_the_specification(x_dtype, cos_dtype, sin_dtype):
    x = np.abs(random(4, 5, 6)).astype(x_dtype)
    cos, sin = some_tables(5, 2)
    cos, sin = cos.astype(cos_dtype), sin.astype(sin_dtype)
    arrives = np.int64 if x.dtype.kind in "iu" else x_dtype
    for layout in LAYOUTS:
        expected = rope.rotate(x, cos, sin, layout=layout, rotary_dim=4)
        if np.float16 in (np.result_type(arrives, cos), np.result_type(arrives, sin)):
            with pytest.raises(TypeError, match="float16"):
                fast.rotate(x, cos, sin, layout=layout, rotary_dim=4)
        else:
            assert same_bits(fast.rotate(x, cos, sin, layout=layout, rotary_dim=4), expected)


@pytest.mark.parametrize("dtype", [np.float16, np.longdouble, object])
def test_other_dtypes_are_refused(dtype):
    cos, sin = some_tables(2, 1)
    with pytest.raises(TypeError, match=r"^fast\.rope\.tables: dtype is 'bogus', expected np\.float32 or np\.float64$"):
        fast.tables(np.arange(2), np.ones(1), dtype="bogus")
    with pytest.raises(TypeError, match="kernels know float32 and float64"):
        fast.rotate(np.ones((2, 2), dtype), cos.astype(dtype), sin.astype(dtype), layout="half")


# Rounding: two products and one sum, each rounded


@pytest.mark.parametrize("layout", LAYOUTS)
def test_products_are_rounded_before_they_are_added(layout):
    """a = c = 1 + 2^-12 and b s = 1 in float32: a c = 1 + 2^-11 + 2^-24 rounds to 1 + 2^-11; fused, 2^-24 would survive."""
    a = np.float32(1 + 2.0**-12)
    x = np.tile(np.array([a, 1], np.float32), (64, 1))
    cos, sin = np.full((64, 1), a), np.ones((64, 1), np.float32)
    assert fractions.Fraction(float(a)) ** 2 - 1 == fractions.Fraction(2.0**-11 + 2.0**-24)
    assert (fast.rotate(x, cos, sin, layout=layout)[:, 0] == 2.0**-11).all()


@pytest.mark.parametrize("count", [1, 2, 3, 5, 12])
def test_a_block_is_cut_into_the_number_of_pieces_that_is_asked_for(count):
    """Up to a rounding of the number; each piece is contiguous, and has the rows of the tables that belong to it."""
    for batch, heads, n in itertools.product((1, 2, 3), (1, 2, 5), (1, 4, 7)):
        x, table = np.arange(batch * heads * n).reshape(batch, heads, n, 1), np.arange(batch * n).reshape(batch, n, 1)
        pieces = list(fast._split(x, table, table, x, count))
        assert count / 2 < len(pieces) < 2 * count or len(pieces) == x.size < count
        assert all(piece.flags.c_contiguous for _, _, _, piece in pieces)
        assert sorted(cell for _, _, _, piece in pieces for cell in piece.ravel()) == list(range(x.size))
        for rows, cos, _, _ in pieces:
            assert (rows % n == cos[:, None] % n).all()
            assert (rows // (heads * n) == cos[:, None] // n).all()


def test_strided_rows_with_one_axis_of_tables_are_one_block():
    """An axis along which the tables vary, and one along which they do not: both are merged, and none is walked."""
    for rows, tables in (((4, 5, 12), (4, 5, 3)), ((4, 5, 12), (1, 5, 3)), ((2, 4, 5, 12), (2, 1, 5, 3))):
        x, table = np.zeros(rows)[..., ::2], np.zeros(tables)
        assert len(list(fast._blocks(x, table, table, x))) == 1, (rows, tables)


def test_the_number_of_pieces():
    """One for one thread; PIECES for each of several; of arrays that are copied, as few as keep the copies small."""
    x, table, few = np.zeros((4, 3, 32, 6)), np.zeros((32, 3)), np.zeros((2, 1, 1, 1))
    found = [len(fast._pieces(x, table, table, x, *how)) for how in ((1, True), (2, True), (3, True), (3, False))]
    assert found == [1, 2 * fast.PIECES, 3 * fast.PIECES, 1]
    assert len(fast._pieces(x[:2, ..., :1, :2], few, few, x[:2, ..., :1, :2], 1, True)) == 1  # a table for each text
    assert [fast._groups(groups * fast.NEIGHBORS) for groups in (1, 2)] == [(1, fast.NEIGHBORS), (2, fast.NEIGHBORS)]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("length", [fast.NEIGHBORS + more for more in (-1, 0, 1, fast.NEIGHBORS, 2 * fast.NEIGHBORS + 1)])
def test_groups_of_positions(length, layout):
    """Lengths that are cut into groups and lengths that are not, with one table for all and one per sequence, and in place."""
    x, positions = random(2, 3, length, 10), np.random.default_rng(1).integers(0, 1000, (2, 1, length))
    for at in (positions[0, 0], positions):
        cos, sin = rope.tables(at, rope.frequencies(8))
        expected = rope.rotate(x, cos, sin, layout=layout, rotary_dim=8)
        for threads in (1, 3):
            got = fast.rotate(x, cos, sin, layout=layout, rotary_dim=8, threads=threads)
            assert np.array_equal(got, expected)
            assert np.array_equal(
                fast.rotate(got, cos, -sin, layout=layout, rotary_dim=8, threads=threads, out=got),
                rope.rotate(expected, cos, -sin, layout=layout, rotary_dim=8),
            )


@pytest.mark.parametrize(("dtype", "layout"), [*zip(FLOATS, LAYOUTS, strict=True)])
@pytest.mark.parametrize("rows", [(70,), (2, 1, 70), (1,), (2, 3, 70)])
def test_large_results_are_written_past_the_caches(rows, dtype, layout, monkeypatch):
    """Rows that are whole lines and rows that are not, and results that begin with a line and do not: always the same bits."""
    sent, past = [], fast._turn_past_caches
    monkeypatch.setattr(fast, "_turn_past_caches", lambda *arguments: sent.append(0) or past(*arguments))
    for dim, start in itertools.product((fast.LINE // 4, 20), (0, 1)):
        x, (cos, sin) = random(2, 3, 70, dim, dtype=dtype), some_tables(*rows, 6, dtype=dtype)
        monkeypatch.setattr(fast, "LARGE", x.nbytes)
        room = machine.on_a_line((x.size + 1,), x.dtype)
        out = room[start : x.size + start].reshape(x.shape)
        expected = rope.rotate(x, cos, sin, layout=layout, rotary_dim=12)
        for threads in (1, 3):
            out[...] = 0
            assert same_bits(fast.rotate(x, cos, sin, layout=layout, rotary_dim=12, out=out, threads=threads), expected)
        assert bool(sent) == (start == 0 and dim * x.itemsize % fast.LINE == 0)
        sent.clear()


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the instruction is that of x86")
@pytest.mark.parametrize("kernel", [fast._interleaved_past_caches, fast._half_past_caches])
def test_machine_code_writes_past_the_caches_and_asks_the_memory_ahead(kernel):
    x, table = np.ones((1, 1, 1, 1, 16), np.float32), np.ones((1, 1, 1, 8), np.float32)
    new = numba.njit(pipeline_class=machine.Separate)(kernel.py_func)  # code from a cache cannot be looked at
    new(x, table, table, machine.on_a_line(x.shape, x.dtype), machine.on_a_line((16,), x.dtype))
    (code,) = new.inspect_asm().values()
    assert "movnt" in code
    assert "prefetch" in code


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_nan_spoils_its_own_pair_only(layout):
    x, (cos, sin) = random(3, 6), some_tables(3, 3)
    clean = fast.rotate(x, cos, sin, layout=layout)
    x[1, 0] = np.nan
    spoiled = fast.rotate(x, cos, sin, layout=layout)
    pair = {"interleaved": [0, 1], "half": [0, 3]}[layout]
    assert np.isnan(spoiled[1, pair]).all()
    spoiled[1, pair] = clean[1, pair]
    assert same_bits(spoiled, clean)


# Tables

POSITIONS = np.array([0, 1, 2, 3, 1000, 48_000, 131_071, 1_000_003, 2**31 + 1])


def exact(positions, frequencies):
    """cos and sin of the float64 product, to 50 digits, row by row."""
    mpmath = pytest.importorskip("mpmath", reason="needs posref[proofs]")
    with mpmath.workdps(50):
        for m, theta in itertools.product(positions, frequencies):
            angle = mpmath.mpf(float(m) * float(theta))
            yield mpmath.cos(angle), mpmath.sin(angle)


def test_float32_tables_are_correctly_rounded_from_the_float64_angle():
    """The nearest float32: no farther from the exact value than either neighbor."""
    frequencies = rope.frequencies(128)
    made = fast.tables(POSITIONS, frequencies, dtype=np.float32)
    pairs = zip(*(table.ravel() for table in made), exact(POSITIONS, frequencies), strict=True)
    for cosine, sine, truth in pairs:
        for got, want in zip((cosine, sine), truth, strict=True):
            assert got.dtype == np.float32
            error = abs(float(got) - want)
            neighbors = (np.nextafter(got, np.float32(side)) for side in (-2, 2))
            assert all(error <= abs(float(neighbor) - want) for neighbor in neighbors)


def test_parts_of_half_pi():
    """At most 22 bits each but the last, so that a product with n < 2^31 is exact; together they are off by 2^-141."""
    mpmath = pytest.importorskip("mpmath", reason="needs posref[proofs]")
    for part in fast.HALF_PI[:-1]:
        numerator = fractions.Fraction(part).numerator
        assert numerator.bit_length() <= 22
    with mpmath.workprec(300):
        assert abs(mpmath.fsum(map(mpmath.mpf, fast.HALF_PI)) - mpmath.pi / 2) < mpmath.mpf(2) ** -141


def test_series_are_the_series():
    """Coefficient by coefficient."""
    for name, degree in (("c", 14), ("s", 13)):
        found = re.findall(
            rf"^    {name} = (?:{name} \* y )?([-+]?) ?([\d./ -]+)$", inspect.getsource(fast._series), re.MULTILINE
        )
        signs = [-1 if sign == "-" else 1 for sign, _ in found]
        degrees = range(degree, -1, -2) if name == "c" else range(degree, 1, -2)
        expected = [(-1) ** (k // 2) / math.factorial(k) for k in degrees]
        assert [sign * eval(each) for sign, (_, each) in zip(signs, found, strict=True)] == expected


def near_multiples():
    """For each power of 2 below 2^31 the float64 above it that is nearest to a multiple of pi/2, and how near.

    A float64 is M u, u = 2^(e - 52), and |M u - n pi/2| = u |M - n c|. Among all n up to q_(k+1) the convergents p_k / q_k of
    c = pi/2 / u have the least |p - q c|.
    """
    mpmath = pytest.importorskip("mpmath", reason="needs posref[proofs]")
    with mpmath.workprec(400):
        for e in range(31):
            u = mpmath.mpf(2) ** (e - 52)
            x = c = mpmath.pi / 2 / u
            p, q, last_p, last_q = int(c), 1, 1, 0
            while True:
                x = 1 / (x - mpmath.floor(x))
                p, q, last_p, last_q = int(x) * p + last_p, int(x) * q + last_q, p, q
                if q * c >= 2**53:
                    break
            yield float(last_p * u), abs(last_p - last_q * c) * u


def test_no_angle_is_nearer_to_a_multiple_of_half_pi():
    distances = [distance for _, distance in near_multiples()]
    assert 2**-60.5 < min(distances) < 2**-60.4


series = numba.njit(fast._series)


@pytest.mark.parametrize("largest", [1, fast.NEAR])
def test_series_from_both_sides(largest):
    """2^-44 of the value itself; and the bits of its Python source, which fuses nothing: those of every machine."""
    rng = np.random.default_rng(0)
    angles = rng.uniform(-largest, largest, 20_000)
    worst = 0
    for x in angles:
        got = series(x, None)
        assert got == fast._series(x, None)
        exact = np.cos(np.longdouble(x)), np.sin(np.longdouble(x))
        worst = max(worst, *(abs(a / b - 1) for a, b in zip(got, exact, strict=True)))
    assert 2**-45.1 < worst < 2**-44


def test_float32_tables_where_cancellation_is_worst():
    """Within 0.5 + 2^-20 units in the last place of 50 digits, at angles next to multiples of pi/2 and to NEAR."""
    mpmath = pytest.importorskip("mpmath", reason="needs posref[proofs]")
    angles = np.array([x for x, _ in near_multiples()] + [-(2**31 - 2**-21), 2**31 - 1, 2**31, 2**40, 1e300, 1e-300, 5e-324])
    cos, sin = (table[:, 0] for table in fast.tables(angles, np.ones(1), dtype=np.float32))
    with mpmath.workdps(400):
        for x, *got in zip(angles, cos, sin, strict=True):
            for value, exact in zip(got, (mpmath.cos(mpmath.mpf(float(x))), mpmath.sin(mpmath.mpf(float(x)))), strict=True):
                unit = float(np.spacing(np.abs(np.float32(float(exact)))))
                assert abs(mpmath.mpf(float(value)) - exact) <= (0.5 + 2**-20) * unit, x


def test_a_far_angle_changes_no_other():
    positions, frequencies = np.array([3.0, 2.0**31, 5.0]), np.array([1.0, 0.3])
    for whole, near in zip(
        fast.tables(positions, frequencies, dtype=np.float32),
        fast.tables(positions[::2], frequencies, dtype=np.float32),
        strict=True,
    ):
        assert same_bits(whole[::2], near)


def test_the_fastest_pair_says_which_angles_are_far():
    """At 2^30 the first angle is 10^15, for which the series is off, and the second is near."""
    positions, frequencies = np.array([2**30, -(2**30)]), np.array([1e6, 1e-3])
    angles = positions[:, None] * frequencies
    for made, exact in zip(
        fast.tables(positions, frequencies, dtype=np.float32), (np.cos(angles), np.sin(angles)), strict=True
    ):
        np.testing.assert_allclose(made, exact, rtol=0, atol=2**-24)


def test_float64_tables_are_one_of_the_two_floats_around_the_exact_value():
    frequencies = rope.frequencies(128)
    made = fast.tables(POSITIONS, frequencies)
    pairs = zip(*(table.ravel() for table in made), exact(POSITIONS, frequencies), strict=True)
    for cosine, sine, truth in pairs:
        for got, want in zip((cosine, sine), truth, strict=True):
            assert np.nextafter(got, -2.0) < want < np.nextafter(got, 2.0)


def test_table_angles_are_float64_even_from_float32():
    """131 071 times 1 in float32 is exact; times float32(0.9) it is 2^-8 off, and so would be the phase."""
    positions, frequencies = np.array([131_071], np.float32), np.array([0.9], np.float32)
    cos, sin = fast.tables(positions, frequencies)
    angle = float(positions[0]) * float(frequencies[0])
    assert cos.dtype == sin.dtype == np.float32
    assert cos == np.float32(np.cos(angle))
    assert sin == np.float32(np.sin(angle))
    assert np.float32(np.cos(angle)) != np.cos(np.float32(angle))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (300,), (2, 1, 5), (3, 0)])
def test_tables_of_every_shape_with_every_number_of_threads(shape, dtype):
    positions, frequencies = np.random.default_rng(0).integers(0, 5000, shape), rope.frequencies(10)
    cos, sin = fast.tables(np.array(positions), frequencies, dtype=dtype, threads=1)
    assert cos.shape == sin.shape == (*shape, 5)
    assert cos.dtype == sin.dtype == dtype
    angle = (np.array(positions)[..., None] * frequencies).astype(np.longdouble)
    assert np.allclose(cos, np.cos(angle), rtol=0, atol=np.finfo(dtype).eps)
    assert np.allclose(sin, np.sin(angle), rtol=0, atol=np.finfo(dtype).eps)
    for threads in (None, 2, 100):
        again = fast.tables(np.array(positions), frequencies, dtype=dtype, threads=threads)
        assert same_bits(again[0], cos)
        assert same_bits(again[1], sin)
    wide = np.full((2, *shape, 9), 7, dtype)
    out = (wide[0][..., :5], wide[1][..., 2:7])
    got = fast.tables(np.array(positions), frequencies, out=out)
    assert got[0] is out[0]
    assert got[1] is out[1]
    assert same_bits(out[0], cos)
    assert same_bits(out[1], sin)
    assert (wide[0][..., 5:] == 7).all()
    turned = tuple(np.empty((*shape, 5), dtype, order="F") for _ in range(2))
    fast.tables(np.array(positions), frequencies, out=turned)
    assert same_bits(turned[0], cos)
    assert same_bits(turned[1], sin)


def test_tables_kernel_equals_its_python_source():
    """numba's cosine is the C library's and numpy's may be its own: the source has more digits, of angles that need few."""
    positions, frequencies = np.arange(50.0), np.array([1, 0.375, 2**-7])
    compiled, source = np.zeros((2, 50, 3)), np.zeros((2, 50, 3), np.longdouble)
    fast._tables(positions, frequencies, *compiled)
    fast._tables.py_func(positions.astype(np.longdouble), frequencies, *source)
    assert (np.abs(compiled - source) <= np.spacing(np.abs(compiled))).all()


# Errors


X, (COS, SIN) = random(3, 5, 8), some_tables(5, 4)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"positions": [0, 1]}, TypeError, "positions is a list"),
        ({"frequencies": np.ones((2, 2))}, ValueError, r"frequencies has shape \(2, 2\), expected \(dim/2,\)"),
        ({"dtype": np.float16}, TypeError, "float16"),
        ({"dtype": np.int64}, TypeError, "int64"),
        ({"threads": 0}, ValueError, "threads is 0"),
        ({"out": np.empty((2, 2, 2))}, TypeError, "out is a ndarray, expected a tuple of two arrays"),
        ({"out": (np.empty((2, 2)),)}, TypeError, "expected a tuple of two arrays"),
        ({"out": ([0.0], np.empty((2, 2)))}, TypeError, r"out\[0\] is a list"),
        ({"out": (np.empty((2, 2)), np.empty((2, 3)))}, ValueError, r"out\[1\] has shape \(2, 3\)"),
        ({"out": (np.empty((2, 2)), np.empty((2, 2), np.float32))}, TypeError, r"out\[1\] has dtype float32"),
        ({"out": (np.empty((2, 2)),) * 2}, ValueError, r"out\[1\] overlaps out\[0\]"),
    ],
)
def test_errors_of_tables(change, error, message):
    arguments = {"positions": np.arange(2), "frequencies": np.ones(2), **change}
    with pytest.raises(error, match=message) as caught:
        fast.tables(**arguments)
    assert str(caught.value).startswith("fast.rope.tables: ")
