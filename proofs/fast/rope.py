"""RoPE, compiled: the kernels are the specification."""

import numpy as np

from posref.fast import rope as fast
from posref.rotary import rope
from proofs.kit import *
from proofs.kit.numbers import FUNCTION
from proofs.kit.twins import Twin

DEFAULTS = {"in_place": False}

B, H, G, N, P, REST = (size(name) for name in ("batch", "heads", "groups", "n", "pairs", "rest"))
KERNELS = {"interleaved": fast._interleaved, "half": fast._half}
PAST_CACHES = {"interleaved": fast._interleaved_past_caches, "half": fast._half_past_caches}


def rounded_once(given, dtype):
    """The specification at the angle in float64, which numpy may miss by `FUNCTION`, and how far off the module says it is."""
    angle = given["positions"][..., None] * given["frequencies"].astype(float)
    units = 1 if dtype.char == "d" else 0.5 + 2.0**-20
    exact = [x[..., 0] for x in rope.tables(angle, np.ones(1))]
    return [(x, units * np.spacing(abs(x.astype(dtype))) + FUNCTION * 2.0**-53 * abs(x)) for x in exact]


TWINS = {
    "tables": Twin(near=rounded_once),
    "rotator": Twin(lambda function, given: function(**given)(*(given[name] for name in ("x", "cos", "sin")))),
}


def arrays():
    """x, cos and sin in the shapes of the kernels, and the result of the specification."""
    x, cos, sin = sized("x", B, H, G, N, 2 * P + REST), sized("c", B, G, N, P), sized("s", B, G, N, P)
    turned = {name: rope.rotate(x, cos[:, None], sin[:, None], layout=name, rotary_dim=2 * P) for name in KERNELS}
    return x, cos, sin, turned


@theorem(of=list(KERNELS.values()), sizes="all batches, heads, groups, n, d, rotary_dim", as_written="kernel")
def kernels_rotate():
    """The compiled rotations write every cell once, with the value of the specification, in both layouts."""
    x, cos, sin, turned = arrays()
    for layout, kernel in KERNELS.items():
        out = Output(x.shape)
        prove_kernel(kernel, [x, cos, sin, out], (out, turned[layout]))


@kernels_rotate.control
def kernels_of_the_other_layout():
    """The kernel for halves is the specification of interleaved pairs (d = 4)."""
    x, c, s = symbols("x", 1, 1, 1, 1, 4), symbols("c", 1, 1, 1, 2), symbols("s", 1, 1, 1, 2)
    out = room("out", 1, 1, 1, 1, 4)
    fast._half.py_func(x, c, s, out)
    prove_equal(out, rope.rotate(x, c[:, None], s[:, None], layout="interleaved"))


@theorem(of=list(KERNELS.values()), sizes="all batches, heads, groups, n, d, rotary_dim", as_written="kernel")
def kernels_work_in_place():
    """Without x `out` is turned itself: every pair is read before it is written, by the iteration that writes it."""
    x, cos, sin, turned = arrays()
    for layout, kernel in KERNELS.items():
        both = Output(x.shape, contents=x)
        prove_kernel(kernel, [None, cos, sin, both], (both, turned[layout]))


@kernels_work_in_place.control
def halves_may_be_written_early():
    """Writing the first member before the second is read works in place too."""
    x, c, s = symbols("x", 1, 1, 1, 1, 2), symbols("c", 1, 1, 1, 1), symbols("s", 1, 1, 1, 1)
    early, at_once = x.copy(), x.copy()
    KERNELS["half"].py_func(None, c, s, at_once)
    early[..., 0] = early[..., 0] * c - early[..., 1] * s
    early[..., 1] = early[..., 0] * s + early[..., 1] * c
    prove_equal(early, at_once)


@theorem(of=list(PAST_CACHES.values()), sizes="batch 2, three heads, one group, n = 2, d = 7, three pairs", as_written="kernel")
def kernels_past_the_caches():
    """By way of a row the compiled rotations write the same numbers to the same cells, in both layouts."""
    x, c, s = symbols("x", 2, 3, 1, 2, 7), symbols("c", 2, 1, 2, 3), symbols("s", 2, 1, 2, 3)
    for layout in KERNELS:
        prove_equal(by_rows(layout, x, c, s), rope.rotate(x, c[:, None], s[:, None], layout=layout, rotary_dim=6))


def by_rows(layout, x, c, s):
    """The result of the kernel that writes through a row."""
    out = room("out", *x.shape)
    PAST_CACHES[layout].py_func(x, c, s, out, room("row", x.shape[-1]))
    return out


@kernels_past_the_caches.control
def rows_of_the_other_layout():
    """Rows of halves are the specification of interleaved pairs (d = 4)."""
    x, c, s = symbols("x", 1, 1, 1, 1, 4), symbols("c", 1, 1, 1, 2), symbols("s", 1, 1, 1, 2)
    prove_equal(by_rows("half", x, c, s), rope.rotate(x, c[:, None], s[:, None], layout="interleaved"))


@theorem(
    of=[fast._tables],
    sizes="all n, d",
    equivalent={
        "_tables: for p in range(positions.shape[0]):  ->  for p in range(positions.shape[-1]):": "one axis",
        "_tables: for t in range(frequencies.shape[0]):  ->  for t in range(frequencies.shape[-1]):": "one axis",
        "_tables: cos[p, t], sin[p, t] = _cosine_and_sine(positions[p] * frequencies[t], cos)  ->  "
        "cos[p, t], sin[p, t] = _cosine_and_sine(positions[p] * frequencies[t], sin)": "both are of one dtype",
    },
    as_written="kernel",
)
def kernel_tabulates():
    """The compiled tables are cos and sin of positions times frequencies, but for what is compiled for cos and sin."""
    positions, frequencies = sized("m", N), sized("w", P)
    cos, sin = Output((N, P)), Output((N, P))
    expected = rope.tables(positions, frequencies)
    prove_kernel(fast._tables, [positions, frequencies, cos, sin], (cos, expected[0]), (sin, expected[1]))


@kernel_tabulates.control
def tables_change_places():
    """The first table is the sine."""
    positions, frequencies, cos, sin = symbols("m", 1), symbols("w", 1), room("c", 1, 1), room("s", 1, 1)
    fast._tables.py_func(positions, frequencies, cos, sin)
    prove_equal(cos, rope.tables(positions, frequencies)[1])
