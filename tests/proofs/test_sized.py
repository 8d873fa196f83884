"""Arrays of symbolic size against numpy: each program runs on both, at sizes 1 to 4, and every cell is compared.

numpy computes on object arrays of the same symbols, so agreement is equality of expressions, not of numbers.
"""

import itertools

import numpy as np
import pytest
import sympy as sp

from proofs.kit import *

N, H = size("n"), size("h")


def written(y):
    out = np.empty_like(y)
    out[...] = y
    return out


def interleaved_out_of_place(x):
    out = np.empty_like(x)
    out[..., 0::2] = x[..., 0::2] + x[..., 1::2]
    out[..., 1::2] = x[..., 0::2] - x[..., 1::2]
    return out


def halves_out_of_place(x):
    h = x.shape[-1] // 2
    out = np.empty_like(x)
    out[..., :h] = x[..., :h] + x[..., h:]
    out[..., h:] = x[..., :h] - x[..., h:]
    return out


def in_place(x, copied):
    """The aliased rotation: the second line reads what the first has written, unless a copy was taken."""
    y = x.copy()
    first, second = y[..., 0::2], y[..., 1::2]
    if copied:
        first, second = first.copy(), second.copy()
    y[..., 0::2] = 2 * first - 3 * second
    y[..., 1::2] = 3 * first + 2 * second
    return y


def halves_in_place(x, copied):
    y, h = x.copy(), x.shape[-1] // 2
    first, second = y[..., :h], y[..., h:]
    if copied:
        first = first.copy()
    y[..., :h] = first - second
    y[..., h:] = first + second
    return y


def eager(x):
    y = x.copy()
    before, view = y + 0, y[..., ::2]
    y[..., ::2] = 7 * x[..., 1::2]
    return before[..., ::2] + view * 10


def overwritten(x):
    y = np.zeros_like(x)
    y[...] = x
    y[..., 1::2] = 5
    y[0:1] = 3
    return y


def written_row(x):
    y = np.ones_like(x)
    y[...] = x[:1]
    return y


def copy_of_a_copy(x):
    y = x.copy()
    z = y[..., ::2].copy()
    y[...] = 2 * y
    z[...] = z + y[..., ::2]
    return z + y[..., 1::2]


x, y, z = "x", "y", "z"
WIDE = {"x": (N, 2 * H), "y": (N, 2 * H), "z": (2 * H,)}
BATCH = {"x": (2, N, H), "y": (2, H, N), "z": (N, 1)}

PROGRAMS = {
    "sums and differences": (WIDE, lambda x, y, z: x + y * z - x / 3),
    "numbers on both sides": (WIDE, lambda x, y, z: 2 - x * 3 + (-y) / 2),
    "powers": (WIDE, lambda x, y, z: x**2 + np.square(y) - (+z)),
    "elementary functions": (WIDE, lambda x, y, z: np.cos(x) * np.sin(z) + np.exp(y)),
    "conjugate": (WIDE, lambda x, y, z: np.conjugate(x)),
    "an axis at the end": (WIDE, lambda x, y, z: x[:, 0][..., None] * z),
    "an axis at the front": (WIDE, lambda x, y, z: (z[None] + x)[None, :, 0]),
    "axes in the middle": (WIDE, lambda x, y, z: x[:, None, None, 1] + z),
    "rows and columns": (WIDE, lambda x, y, z: x[..., 0::2] * y[..., 1::2] + z[1::2]),
    "slices of slices": (WIDE, lambda x, y, z: x[..., 0::2][..., :][:, ::1] - x[..., 1:][..., ::2]),
    "halves": (WIDE, lambda x, y, z: x[..., : x.shape[-1] // 2] * y[..., y.shape[-1] // 2 :]),
    "from the end": (WIDE, lambda x, y, z: x[..., -1] + y[-1, 0] + z[-2]),
    "ends that count from the end": (WIDE, lambda x, y, z: x[..., :-1] + y[..., 1:] * z[-1]),
    "reversed": (WIDE, lambda x, y, z: x[..., ::-1] + y[::-1]),
    "transposed": (WIDE, lambda x, y, z: x.T * 2 + np.swapaxes(y, 0, 1)),
    "axes exchanged": (BATCH, lambda x, y, z: np.swapaxes(x, 0, -1)),
    "matrices": (WIDE, lambda x, y, z: x @ y.T),
    "inner product": (WIDE, lambda x, y, z: (z @ z) * z),
    "stacks of matrices": (BATCH, lambda x, y, z: x @ y + z),
    "a stack times a matrix": (BATCH, lambda x, y, z: x @ y[0] @ x),
    "a matrix times a stack": (BATCH, lambda x, y, z: y[1] @ x[:, :, :]),
    "a stack of one": (BATCH, lambda x, y, z: x[:1] @ y),
    "a number of columns": (BATCH, lambda x, y, z: np.swapaxes(x, 0, 1) @ np.swapaxes(np.swapaxes(x, 0, 1), -1, -2)),
    "sum of an axis": (WIDE, lambda x, y, z: x.sum(axis=-1)[:, None] + y.sum(axis=0) * z),
    "sum that keeps its axis": (WIDE, lambda x, y, z: x / (1 + x.sum(axis=-1, keepdims=True)) + y.sum(axis=-2, keepdims=True)),
    "sum in the middle": (BATCH, lambda x, y, z: x.sum(axis=1) - y.sum(axis=-1, keepdims=False)),
    "cumulative sum": (WIDE, lambda x, y, z: np.cumsum(x, axis=0) + np.cumsum(y, axis=-1)),
    "cumulative sum of sums": (WIDE, lambda x, y, z: np.cumsum(np.cumsum(x, axis=0), axis=0)),
    "sum of products of sums": (WIDE, lambda x, y, z: (x @ (y * z).sum(axis=0)[:, None]) * x.sum(axis=-1, keepdims=True)),
    "concatenate at the end": (WIDE, lambda x, y, z: np.concatenate([x, y[:, :1], x[:, 1:]], axis=-1)),
    "concatenate rows": (WIDE, lambda x, y, z: np.concatenate([x, y, z[None]], axis=-2)),
    "concatenate at the front": (WIDE, lambda x, y, z: np.concatenate([z, x[0], z])),
    "stack and merge": (WIDE, lambda x, y, z: np.stack([x, y], axis=-1).reshape(*x.shape[:-1], 2 * x.shape[-1])),
    "stack of three": (WIDE, lambda x, y, z: np.stack([z, z * 2, 1 + z], axis=-1).reshape(-1)),
    "split the last": (WIDE, lambda x, y, z: x.reshape(*x.shape[:-1], x.shape[-1] // 2, 2)),
    "gather rows by an array": (WIDE, lambda x, y, z: x[rows(x)] + y),
    "gather along an axis": (WIDE, lambda x, y, z: np.take_along_axis(x, rows(x)[:, None], axis=-2)),
    "gather with a broadcast": (WIDE, lambda x, y, z: np.take_along_axis(x, columns(x), axis=-1)),
    "where": (WIDE, lambda x, y, z: np.where(rows(x)[:, None] >= 0, x, y)),
    "where of scalars": (
        WIDE,
        lambda x, y, z: np.where(rows(x)[:, None] < 0, 7, y) + np.where(rows(x)[:, None] == rows(x)[:, None], z, 9),
    ),
    "broadcast_to": (WIDE, lambda x, y, z: np.broadcast_to(z, x.shape) - np.broadcast_to(x[:, :1], x.shape)),
    "zeros and ones": (WIDE, lambda x, y, z: np.zeros_like(x) + np.ones_like(y) * z),
    "written once": (WIDE, lambda x, y, z: written(x * y)),
    "written and broadcast": (WIDE, lambda x, y, z: written_row(x) + written_row(y)),
    "out of place, interleaved": (WIDE, lambda x, y, z: interleaved_out_of_place(x)),
    "out of place, halves": (WIDE, lambda x, y, z: halves_out_of_place(x)),
    "in place, interleaved": (WIDE, lambda x, y, z: in_place(x, False)),
    "in place, interleaved, copied": (WIDE, lambda x, y, z: in_place(x, True)),
    "in place, halves": (WIDE, lambda x, y, z: halves_in_place(x, False)),
    "in place, halves, copied": (WIDE, lambda x, y, z: halves_in_place(x, True)),
    "values and views": (WIDE, lambda x, y, z: eager(x)),
    "overwritten": (WIDE, lambda x, y, z: overwritten(x)),
    "copy of a copy": (WIDE, lambda x, y, z: copy_of_a_copy(x)),
    "windows": (WIDE, lambda x, y, z: np.lib.stride_tricks.sliding_window_view(x, 2, axis=-1)),
}


def rows(x):
    """0 .. n - 1 as an index array: symbolic for arrays of symbolic size."""
    return SizedArray(x.shape[:1], lambda i: i) if isinstance(x, SizedArray) else np.arange(x.shape[0])


def columns(x):
    return (
        SizedArray((1, x.shape[1]), lambda i, j: x.shape[1] - 1 - j)
        if isinstance(x, SizedArray)
        else np.arange(x.shape[1])[None, ::-1]
    )


def concrete(name, shape):
    """The same free entries as `sized(name, ..)`, in numpy."""
    out, base = np.empty(shape, dtype=object), sp.IndexedBase(name, real=True)
    for ix in np.ndindex(*shape):
        out[ix] = Scalar(base[ix])
    return out


def plain(e):
    """Sums written out."""
    if not e.has(sp.Sum):
        return e
    if isinstance(e, sp.Sum):
        inner, (j, low, high) = (sp.Sum(e.function, *e.limits[:-1]) if e.limits[1:] else e.function), e.limits[-1]
        return sp.Add(*[plain(inner.subs(j, value)) for value in range(int(low), int(high) + 1)])
    return e.func(*map(plain, e.args))


def cells(array, sizes):
    """Every cell of a symbolic result at concrete sizes, computed at a generic index first."""
    generic = [index(length, f"g{axis}_") if not length.is_Integer else None for axis, length in enumerate(array.extents)]
    shape = tuple(int(length.subs(sizes)) for length in array.extents)
    out = np.empty(shape, dtype=object)
    for ix in np.ndindex(*shape):
        e = array.at(*[sp.Integer(i) if g is None else g for i, g in zip(ix, generic, strict=True)])
        out[ix] = plain(e.subs(sizes).subs({g: i for g, i in zip(generic, ix, strict=True) if g is not None}))
    return out


def cells_directly(array, sizes):
    """Every cell read at its own number, for results without one formula for all indices."""
    shape = tuple(int(length.subs(sizes)) for length in array.extents)
    out = np.empty(shape, dtype=object)
    for ix in np.ndindex(*shape):
        known = [relation(k * s, k * value) for s, value in sizes.items() for k in range(1, 7) for relation in (sp.Ge, sp.Le)]
        with assuming(*known):
            out[ix] = plain(array.at(*ix).subs(sizes))
    return out


def by_pairs(array, layout, sizes):
    """Every cell, computed at both members of a generic pair of the last axis."""
    lead, (t, *members) = [index(n, f"g{axis}_") for axis, n in enumerate(array.shape[:-1])], pair(layout, array.shape[-1])
    shape = tuple(int(length.subs(sizes)) for length in array.extents)
    out = np.empty(shape, dtype=object)
    for member in members:
        e = array.at(*lead, member)
        for ix in np.ndindex(*shape[:-1], shape[-1] // 2):
            where = {**sizes, **dict(zip((*lead, t), ix, strict=True))}
            out[(*ix[:-1], int(member.subs(where)))] = plain(e.subs(where))
    return out


@pytest.mark.parametrize("name", PROGRAMS)
def test_symbolic_sizes_mean_what_numpy_means(name):
    """By one formula for a generic cell; else by two for a generic pair; else cell by cell."""
    shapes, program = PROGRAMS[name]
    symbolic = program(**{k: sized(k, *shape) for k, shape in shapes.items()})
    for n, h in ((2, 1), (1, 3), (3, 2)):
        if n * h > 3 and ("concatenate" in name or name == "overwritten"):  # read cell by cell, which is slow
            continue
        sizes = {N.e: n, H.e: h}
        arrays = {k: concrete(k, tuple(int(sp.sympify(length).subs(sizes)) for length in shape)) for k, shape in shapes.items()}
        expected = program(**arrays)
        assert tuple(int(length.subs(sizes)) for length in symbolic.extents) == expected.shape
        readings = [cells, lambda a, s: by_pairs(a, "interleaved", s), lambda a, s: by_pairs(a, "half", s), cells_directly]
        for read in readings:
            try:
                got = read(symbolic, sizes)
                break
            except Undecided:
                if read is readings[-1]:
                    raise
        for ix in np.ndindex(*expected.shape):
            assert is_zero(got[ix] - expression(expected[ix])), (sizes, ix, got[ix], expected[ix])


def test_merged_axes_run_through_the_last_first():
    """Cell i * width + j of the merged axis is cell (i, j), whatever the width."""
    x, i, j = sized("x", N, 2 * H), index(N), index(2 * H)
    assert x.reshape(N * 2 * H).at(i * 2 * H + j) == x.at(i, j)
    both = (x[:, None] + x[None]).reshape(-1, x.shape[-1])
    assert both.at(index(N) * N + i, j).subs(N.e, 3) != both.at(i * N + i, j).subs(N.e, 3)
    assert both.at(i * N + i, j) == 2 * x.at(i, j)
    y = concrete("x", (3, 2))
    flat = (y[:, None] + y[None]).reshape(-1, 2)
    assert is_zero(flat[2 * 3 + 2, 1].e - 2 * y[2, 1].e)


# what the in-place programs prove


@pytest.mark.parametrize("program", [in_place, halves_in_place])
def test_an_aliased_rotation_is_refuted_and_its_copy_proved(program):
    x = sized("x", N, 2 * H)
    layout = "interleaved" if program is in_place else "half"
    a, b = (x[..., 0::2], x[..., 1::2]) if layout == "interleaved" else (x[..., :H], x[..., H:])
    first, second = (2 * a - 3 * b, 3 * a + 2 * b) if layout == "interleaved" else (a - b, a + b)
    if layout == "interleaved":
        expected = np.stack([first, second], axis=-1).reshape(*first.shape[:-1], 2 * first.shape[-1])
    else:
        expected = np.concatenate([first, second], axis=-1)
    prove_equal(*entries(layout, program(x, copied=True), expected))
    with pytest.raises(Refuted):
        prove_equal(*entries(layout, program(x, copied=False), expected))


def test_sums_over_pairs_are_the_sum():
    x, y = sized("x", N, 2 * H), sized("y", N, 2 * H)
    expected = concrete("x", (2, 4)) @ concrete("y", (2, 4)).T
    for layout in ("interleaved", "half"):
        with summing(layout):
            got = cells(x @ y.T, {N.e: 2, H.e: 2})
        assert all(is_zero(got[ix] - expected[ix].e) for ix in np.ndindex(2, 2))


# maxima


def test_a_maximum_is_any_number_of_the_other_indices():
    x = sized("x", N, 2 * H)
    peak = x.max(axis=-1, keepdims=True)
    left, right = entries(None, np.exp(x - peak) * np.exp(peak), np.exp(x))
    prove_equal(left, right)
    with pytest.raises(AssertionError, match="maxima can be compared"):
        prove_equal(*entries(None, x.max(axis=-1), x.min(axis=-1)))


# comparisons


def test_clip_and_absolute_on_every_path():
    x, got = sized("x", N), []
    for _, value in all_paths(lambda: np.clip(x, -2, 2).at(index(N))):
        got.append(value if value.is_number else "x")
    assert sorted(map(str, got)) == ["-2", "2", "x"]
    paths = [[answer for _, answer in asked] for asked, _ in all_paths(lambda: np.absolute(x).at(index(N)))]
    assert sorted(paths) == [[False], [True]]


def test_a_sum_over_compared_terms_is_refused():
    """Every path would answer once for all terms, so relu(x) and relu(-x) would never be positive together."""
    x = sized("x", N)
    for _, product in all_paths(lambda: np.maximum(x, 0).sum(axis=0).at() * np.maximum(-x, 0).sum(axis=0).at()):
        with pytest.raises(Undecided, match="compared once for all summands"):
            prove_equal([product], [0])


# refusals

X, V, K = sized("x", N, 2 * H), sized("v", N), sized("k", H)

REFUSED = {
    "asarray": lambda: np.asarray(X),
    "array": lambda: np.array(X),
    "array of a list": lambda: np.array([X, X]),
    "truth value": lambda: bool(X == X),
    "an if": lambda: 1 if X < 0 else 0,
    "einsum": lambda: np.einsum("ij,kj->ik", X, X),
    "dot": lambda: np.dot(X, X),
    "sum as a function": lambda: np.sum(X, axis=-1),
    "sum of all": lambda: X.sum(),
    "cumulative sum of all": lambda: np.cumsum(X),
    "an index array and a number": lambda: X[rows(X), 0],
    "two index arrays": lambda: X[rows(X), rows(X)],
    "numpy's index array": lambda: X[np.array([0])],
    "a list": lambda: X[[0]],
    "a boolean": lambda: V[True],
    "a mask": lambda: V[np.array([True])],
    "an index that may lie outside": lambda: V[1],
    "an index of another axis": lambda: V[index(H)],
    "an end that may lie outside": lambda: V[:2],
    "an end that may be negative": lambda: K[: H - 3],
    "a start behind the end": lambda: X[:, H:][:, 2 * H :],
    "a step backwards over a part": lambda: X[:, H::-1],
    "a symbolic step": lambda: sized("w", H + 1)[::H],
    "in place": lambda: X.copy().__iadd__(X),
    "out": lambda: np.add(X, X, out=X.copy()),
    "reduce": lambda: np.add.reduce(X),
    "a write through a view": lambda: X.copy()[..., ::2].__setitem__(slice(None), 0),
    "a write to a cell": lambda: X.copy().__setitem__((0, 0), 0),
    "arctan2": lambda: np.arctan2(X, X),
    "an unwritten cell": lambda: np.empty_like(X).at(0, 0),
    "too few indices": lambda: X.at(0),
    "matrix and vector": lambda: X @ sized("w", 2 * H),
    "stack at the front": lambda: np.stack([X, X]),
    "comparison outside all_paths": lambda: np.maximum(X, 0).at(0, 0),
    "odd pairs": lambda: entries("half", V),
    "pairs of single cells": lambda: entries("single", X),
    "sum over pairs of different parts": lambda: np.concatenate([K, V]).sum(axis=0).at(),
    "windows longer than the axis": lambda: np.lib.stride_tricks.sliding_window_view(V, H, axis=0),
    "reshape of another kind": lambda: X.reshape(2, H, N),
    "gather by free entries": lambda: X[sized("g", N)].at(0, 0),
}

ERRORS = {
    "sum": (lambda: X + V, ValueError),
    "product": (lambda: X @ X, ValueError),
    "inner product": (lambda: V @ K, ValueError),
    "stack": (lambda: np.stack([X, X[:1]], axis=-1), ValueError),
    "concatenate": (lambda: np.concatenate([X, X], axis=2), ValueError),
    "concatenate of lengths": (lambda: np.concatenate([X, V[None]], axis=0), ValueError),
    "broadcast_to": (lambda: np.broadcast_to(V, (H,)), ValueError),
    "reshape": (lambda: X.reshape(N * H), ValueError),
    "axis of a sum": (lambda: X.sum(axis=2), ValueError),
    "axis of a cumulative sum": (lambda: np.cumsum(X, axis=-3), ValueError),
    "axis of a gather": (lambda: np.take_along_axis(X, X, axis=2), ValueError),
    "axes of a gather": (lambda: np.take_along_axis(X, V, axis=-1), ValueError),
    "exchange": (lambda: np.swapaxes(X, 0, 2), IndexError),
    "write": (lambda: X.copy().__setitem__(Ellipsis, V), ValueError),
    "entries": (lambda: entries(None, X, V), ValueError),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_modelled_is_refused(name):
    with pytest.raises(Undecided):
        REFUSED[name]()


@pytest.mark.parametrize("name", ERRORS)
def test_shapes_that_do_not_fit_are_errors_as_in_numpy(name):
    program, error = ERRORS[name]
    with pytest.raises(error):
        program()


def test_it_has_no_real_part():
    assert not hasattr(X, "real")
    assert not hasattr(X, "imag")


def test_filled_has_one_value():
    assert filled((N, 2), 5).at(index(N), 1) == 5


def test_generic_indices_are_all_different():
    names = [index(N, name) for name, _ in itertools.product(("i", "i1", "i1#", "j"), range(20))]
    assert len(set(names)) == len(names)
