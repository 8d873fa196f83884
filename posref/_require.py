"""Checks of arguments: every error names the function, the argument, the numbers and the remedy.

They read shapes and dtypes only through `!=`, `%` and `.kind`, so arrays of symbols and arrays of symbolic size pass
through them unchanged.
"""

import numpy as np

FLOATS = "iufO"  # numbers; O holds symbols
COMPLEX = "iufcO"
INTEGERS = "iuO"
SIGNED = "iO"  # what a difference of positions needs: unsigned integers wrap below 0
SIGNED_NUMBERS = "ifO"
BOOLEANS = "bO"

WANTED = {
    FLOATS: "numbers",
    COMPLEX: "numbers",
    INTEGERS: "integers",
    SIGNED: "signed integers",
    SIGNED_NUMBERS: "signed numbers",
    BOOLEANS: "booleans",
}


def array(function, argument, value, *, kinds=FLOATS, ndim=0):
    """`value` is an array of one of the dtype kinds, with at least `ndim` axes and only finite entries."""
    if not hasattr(value, "shape") or not hasattr(getattr(value, "dtype", None), "kind"):  # dtypes of torch have no kind
        raise TypeError(f"{function}: {argument} is a {type(value).__name__}, not an array; pass np.array({argument})")
    if value.dtype.kind not in kinds:
        raise TypeError(
            f"{function}: {argument} has dtype {value.dtype}, expected {WANTED.get(kinds, 'numbers')}; convert it with .astype"
        )
    if len(value.shape) < ndim:
        raise ValueError(f"{function}: {argument} has shape {value.shape}, expected at least {ndim} axes; add them with [None]")
    if value.dtype.kind in "fc" and not np.isfinite(value).all():
        count = value.size - int(np.isfinite(value).sum())
        raise ValueError(
            f"{function}: {argument} has {count} of {value.size} values that are NaN or infinite; "
            "remove them (a position to be ignored belongs in a boolean mask)"
        )


def wide(function, **arrays):
    """No integers of 8 or 16 bits, whose sums and products wrap silently."""
    for argument, value in arrays.items():
        if value.dtype.kind in "iu" and value.dtype.itemsize < 4:
            raise TypeError(
                f"{function}: {argument} has dtype {value.dtype}, whose sums and products wrap; use .astype(np.int64)"
            )


def axes(function, argument, value, shape):
    """`value` has exactly the axes that `shape`, such as "(n, d)", names, none of them empty."""
    if len(value.shape) != shape.count(",") + (not shape.endswith(",)")) or any(n == 0 for n in value.shape):
        raise ValueError(f"{function}: {argument} has shape {value.shape}, expected {shape} with at least one entry along each")


def axis(function, argument, value):
    """`value` is an array, of whatever, with at least one axis."""
    if not hasattr(value, "shape"):
        raise TypeError(f"{function}: {argument} is a {type(value).__name__}, not an array; pass np.array({argument})")
    if len(value.shape) == 0:
        raise ValueError(f"{function}: {argument} has shape (), expected at least 1 axes; add them with [None]")


def same_shape(function, left_name, left, right_name, right):
    """Two arrays have one shape."""
    axis(function, left_name, left)
    axis(function, right_name, right)
    if left.shape != right.shape:
        raise ValueError(f"{function}: {left_name} has shape {left.shape} and {right_name} {right.shape}; they must be equal")


def same_width(function, left_name, left, right_name, right, *, axis=-1):
    """Two arrays agree along one axis."""
    if left.shape[axis] != right.shape[axis]:
        raise ValueError(
            f"{function}: {left_name} has {left.shape[axis]} entries along axis {axis} and {right_name} has "
            f"{right.shape[axis]} (shapes {left.shape} and {right.shape}); they must be equal"
        )


def leading_axes(function, left_name, left, right_name, right):
    """Two stacks of matrices have leading axes that broadcast to each other."""
    pairs = zip(reversed(left.shape[:-2]), reversed(right.shape[:-2]), strict=False)
    if any(n != m and n != 1 and m != 1 for n, m in pairs):  # equality first: for sizes that are symbols it is known
        raise ValueError(
            f"{function}: {left_name} has shape {left.shape} and {right_name} {right.shape}; the axes before the last two "
            f"(batch, heads) must be equal or 1{_grouped(left_name, left.shape[-3:-2], right.shape[-3:-2])}"
        )


def _grouped(left_name, heads, key_heads):
    if left_name != "q" or not heads or not key_heads or key_heads[0] == 0 or heads[0] % key_heads[0] != 0:
        return ""
    group = heads[0] // key_heads[0]
    return f"; for grouped queries pass np.repeat(k, {group}, axis=-3) and v alike, or use attention.attend_by_offset"


def together(function, **shapes):
    """Shapes broadcast to each other; the keywords name the arguments."""
    for axis in range(1, max(map(len, shapes.values())) + 1):
        sizes = [shape[-axis] for shape in shapes.values() if len(shape) >= axis]
        if (
            any(n != sizes[0] for n in sizes)
            and len([n for n in sizes if n != 1 and any(n != m and m != 1 for m in sizes)]) > 0
        ):
            listed = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
            raise ValueError(
                f"{function}: the shapes {listed} do not broadcast; align trailing axes and insert missing ones with [None]"
            )


def broadcasts_to(function, argument, value, target_name, shape):
    """`value` broadcasts to `shape` without enlarging it."""
    extra = len(value.shape) - len(shape)
    if extra > 0 or any(n != m and n != 1 for n, m in zip(reversed(value.shape), reversed(shape), strict=False)):
        raise ValueError(
            f"{function}: {argument} has shape {value.shape}, which does not broadcast to {target_name} of shape {shape}; "
            "align trailing axes and insert missing ones with [None]"
        )


def mask(function, value, shape):
    """A boolean mask broadcasts to the scores; if batched, it has all their axes, so that no batch is read as heads."""
    array(function, "mask", value, kinds=BOOLEANS)
    if 2 < len(value.shape) < len(shape):
        raise ValueError(
            f"{function}: mask has shape {value.shape} and the scores {shape}; a batch of masks has as many axes as the "
            "scores, for instance (batch, 1, n_query, n_key)"
        )
    broadcasts_to(function, "mask", value, "scores", shape)


def pairs(function, argument, value, shape):
    """`value` `(..., n_query, n_key)` has an entry for every pair of the scores; if batched, it has all their axes."""
    if value.shape[-2:] != shape[-2:] or 2 < len(value.shape) < len(shape):
        raise ValueError(
            f"{function}: {argument} has shape {value.shape} and the scores {shape}; the last two axes must be equal, and a "
            "batch of them has as many axes as the scores, for instance (batch, 1, n_query, n_key)"
        )
    broadcasts_to(function, argument, value, "the scores", shape)


def choice(function, argument, value, allowed):
    """`value` is one of the allowed words."""
    if value not in allowed:
        raise ValueError(f"{function}: {argument} is {value!r}, expected one of {', '.join(map(repr, allowed))}")


def rows(function, argument, index, n, target):
    """`index` is an integer array with entries 0 .. n - 1; a negative index would silently count from the end."""
    array(function, argument, index, kinds=INTEGERS)
    if index.dtype.kind != "O" and index.size and not (index.min() >= 0 and index.max() < n):
        raise ValueError(
            f"{function}: {argument} runs from {index.min()} to {index.max()} and {target} has {n} rows, 0 .. {n - 1}; "
            "positions are neither wrapped nor clipped here"
        )


def within(function, argument, positions, length):
    """Positions, whole or not, lie in 0 .. length - 1."""
    if positions.dtype.kind != "O" and positions.size and not (positions.min() >= 0 and positions.max() <= length - 1):
        raise ValueError(
            f"{function}: {argument} run from {positions.min()} to {positions.max()} and length is {length}; "
            f"they must lie in 0 .. {length - 1}"
        )


def nonzero(function, argument, norms):
    """No row of an array has length 0, which has no direction; `norms` `(rows, 1)`."""
    if norms.dtype.kind != "O" and (norms == 0).any():
        raise ValueError(
            f"{function}: rows {np.flatnonzero(norms == 0).tolist()} of {argument} have norm 0 and no direction; leave them out"
        )


def like(function, argument, value, other_name, other):
    """What a function of the caller's gave has the shape of what it was given, and is finite."""
    array(function, argument, value)
    if value.shape != other.shape:
        raise ValueError(f"{function}: {argument} has shape {value.shape} and {other_name} {other.shape}; they must be equal")


def entries(function, argument, value, least):
    """A sequence `(..., n, d)` of at least so many entries."""
    if value.shape[-2] < least:
        raise ValueError(f"{function}: {argument} has {value.shape[-2]} entries, expected at least {least}")


def values(function, q, k, v):
    """Queries, keys and values of attention: two axes at least, one value a key, leading axes that broadcast."""
    for name, value in (("q", q), ("k", k), ("v", v)):
        array(function, name, value, ndim=2)
    same_width(function, "k", k, "v", v, axis=-2)
    leading_axes(function, "q", q, "v", v)


def integer(function, argument, number):
    """A single integer; a symbol says so itself."""
    symbolic = hasattr(number, "is_integer") and not isinstance(number, (float, np.floating))
    if isinstance(number, bool) or not (isinstance(number, (int, np.integer)) or symbolic):
        raise TypeError(f"{function}: {argument} is {number!r}, expected an integer")


def count(function, argument, number):
    """An integer of at least 1."""
    integer(function, argument, number)
    if number < 1:
        raise ValueError(f"{function}: {argument} is {number}, expected an integer of at least 1")


def number(function, argument, value):
    """A single finite number."""
    if isinstance(value, str) or not (np.isscalar(value) or hasattr(value, "is_positive")):
        raise TypeError(f"{function}: {argument} is {value!r}, expected one number")
    if isinstance(value, (float, np.floating)) and not np.isfinite(value):
        raise ValueError(f"{function}: {argument} is {value}, expected a finite number")


def function(name, argument, value):
    """Something to be called."""
    if not callable(value):
        raise TypeError(f"{name}: {argument} is {value!r}, expected a function of arrays")


def last_queries(function, n_query, n_key):
    """1 <= n_query <= n_key, where the queries are the last of the keys."""
    count(function, "n_query", n_query)
    count(function, "n_key", n_key)
    if n_key < n_query:
        raise ValueError(f"{function}: {n_query} queries and {n_key} keys; the queries are the last of the keys, pass them all")


def even(function, argument, number):
    """A width that is split into pairs is even and positive."""
    integer(function, argument, number)
    if number % 2 != 0 or number == 0 or (isinstance(number, (int, np.integer)) and number < 0):
        raise ValueError(f"{function}: {argument} is {number}, expected an even number of at least 2; features turn in pairs")


def positive(function, argument, number):
    """A single positive finite number."""
    if isinstance(number, str) or not (np.isscalar(number) or hasattr(number, "is_positive")):
        raise TypeError(f"{function}: {argument} is {number!r}, expected one number")
    if not number > 0 or number == float("inf"):
        raise ValueError(f"{function}: {argument} is {number}, expected a positive finite number")


def differences(function, left_name, left, right_name, right):
    """Differences of integers fit into int64, with either sign."""
    if not isinstance(left, np.ndarray) or not isinstance(right, np.ndarray):
        return  # arrays of symbols: that differences fit is a hypothesis
    if left.dtype.kind != "i" or right.dtype.kind != "i" or not (left.size and right.size):
        return
    low, high = int(left.min()) - int(right.max()), int(left.max()) - int(right.min())
    if max(-low, high) >= 2**63:
        raise ValueError(
            f"{function}: {left_name} run from {left.min()} to {left.max()} and {right_name} from {right.min()} to "
            f"{right.max()}; their differences do not fit into int64; shift the positions"
        )


def ordered(function, low_name, low, high_name, high):
    """Two ends of a range are in order."""
    if low > high:
        raise ValueError(f"{function}: {low_name} is {low} and {high_name} is {high}; {low_name} cannot exceed {high_name}")


def inside(function, argument, offsets, target, size, lowest):
    """Every offset has its entry in `target`, which holds `size` of them from `lowest` on."""
    if offsets.size and (offsets.min() < lowest or offsets.max() >= lowest + size):
        raise ValueError(
            f"{function}: {argument} run from {offsets.min()} to {offsets.max()} and {target} holds {size} entries for "
            f"{lowest} to {lowest + size - 1}; clip the offsets or pass a larger table"
        )


def at_most(function, argument, number, target, size, remedy):
    """A number that counts entries of something does not exceed them."""
    if number > size:
        raise ValueError(f"{function}: {argument} is {number} and {target} has {size}; {remedy}")


def denominators(function, denominator, remedy):
    """No query divides by zero."""
    if denominator.dtype.kind == "f" and (denominator == 0).any():
        raise ValueError(
            f"{function}: {int((denominator == 0).sum())} of {denominator.size} queries have denominator zero; {remedy}"
        )


def same_tokens(function, q, k, remedy):
    """Queries and keys are the same tokens."""
    if q.shape[-2] != k.shape[-2]:
        raise ValueError(f"{function}: q has {q.shape[-2]} positions and k has {k.shape[-2]}; {remedy}")
