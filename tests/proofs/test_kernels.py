"""Programs that must be refused as kernels because iterations depend on each other, and kernels that must be accepted."""

import inspect

import numba
import numpy as np
import pytest

from posref.fast import rope as fast
from posref.rotary import rope
from proofs.kit import NotProved, Output, Undecided, all_paths, filled, prove_equal, prove_kernel, size, sized
from proofs.kit.cases import first_failure
from proofs.kit.kernels import run_kernel

N, M, P, REST = size("n"), size("m"), size("p"), size("rest")


# one axis: x and out (n,)


def prefix_sum_in_scratch(x, out, total):
    for i in range(x.shape[0]):
        total[0] = total[0] + x[i]
        out[i] = total[0]


class OneAxis:
    """Kernels of one axis that must be refused: functions without a self, the class is their list."""

    def prefix_sum(x, out):
        total = 0 * x[0]
        for i in range(x.shape[0]):
            total = total + x[i]
            out[i] = total

    def prefix_sum_augmented(x, out):
        total = 0
        for i in range(x.shape[0]):
            total += x[i]
            out[i] = total

    def prefix_sum_of_an_argument(x, out, total=0):
        for i in range(x.shape[0]):
            total = total + x[i]
            out[i] = total

    def prefix_sum_in_a_list(x, out):
        total = [0]
        for i in range(x.shape[0]):
            total[0] = total[0] + x[i]
            out[i] = total[0]

    def prefix_sum_in_an_inner_function(x, out):
        def go():
            total = 0
            for i in range(x.shape[0]):
                total = total + x[i]
                out[i] = total

        go()

    def prefix_sum_in_a_match(x, out):
        total = 0
        match x.ndim:
            case _:
                for i in range(x.shape[0]):
                    total = total + x[i]
                    out[i] = total

    def prefix_sum_by_output(x, out):
        for i in range(x.shape[0]):
            out[i] = x[i] + out[i - 1]

    def prefix_sum_by_augmented_store(x, out):
        for i in range(x.shape[0]):
            out[i] += x[i]

    def previous_by_tuple(x, out):
        last, now = x[0], x[0]
        for i in range(x.shape[0]):
            last, now = now, x[i]
            out[i] = last

    def carried_past_an_if(x, out):
        scale = 1
        for i in range(x.shape[0]):
            if x.ndim == 1:
                out[i] = x[i] * scale
            scale = 2

    def assigned_in_one_branch(x, out):
        scale = 1
        for i in range(x.shape[0]):
            if x[i] > 0:
                scale = x[i]
            out[i] = scale

    def first_cell_apart(x, out):
        for i in range(x.shape[0]):
            if i == 0:
                out[i] = 0
            else:
                out[i] = x[i]

    def last_cell_apart(x, out):
        for i in range(x.shape[0]):
            if x.shape[0] - 1 == i:
                out[i] = 0
            else:
                out[i] = x[i]

    def first_cell_by_truth(x, out):
        for i in range(x.shape[0]):
            if i:
                out[i] = x[i]
            else:
                out[i] = 0

    def one_row_apart(x, out):
        for i in range(x.shape[0]):
            if x.shape[0] == 1:
                out[i] = 0
            else:
                out[i] = x[i]

    def with_while(x, out):
        i = 0
        while i < x.shape[0]:
            out[i] = x[i]
            i = i + 1

    def with_break(x, out):
        for i in range(x.shape[0]):
            out[i] = x[i]
            break

    def with_continue(x, out):
        for i in range(x.shape[0]):
            if x[i] > 0:
                continue
            out[i] = x[i]

    def with_return(x, out):
        for i in range(x.shape[0]):
            out[i] = x[i]
            return

    def with_else(x, out):
        for i in range(x.shape[0]):
            out[i] = x[i]
        else:
            out[0] = 0

    def written_sometimes(x, out):
        for i in range(x.shape[0]):
            if x[i] > 0:
                out[i] = x[i]

    def written_twice(x, out):
        for i in range(x.shape[0]):
            out[i] = 0
            out[i] = x[i]

    def written_by_two_loops(x, out):
        for i in range(x.shape[0]):
            out[i] = 0
        for i in range(x.shape[0]):
            out[i] = x[i]

    def from_one(x, out):
        for i in range(1, x.shape[0]):
            out[i] = x[i]

    def one_short(x, out):
        for i in range(x.shape[0] - 1):
            out[i] = x[i]

    def one_long(x, out):
        for i in range(x.shape[0] + 1):
            out[i] = x[i]

    def one_cell(x, out):
        out[0] = x[0]

    def a_loop_for_nothing(x, out):
        for i in range(x.shape[0]):
            for j in range(x.shape[0]):
                out[i] = x[i] + 0 * x[j]

    def index_after_the_loop(x, out):
        for i in range(x.shape[0]):
            last = x[i]
        for j in range(x.shape[0]):
            out[j] = 0 * i + x[j] + 0 * last

    def a_list_of_cells(x, out):
        cells = [x[i] for i in range(x.shape[0])]
        for i in range(x.shape[0]):
            out[i] = cells[0]

    def a_sum_of_cells(x, out):
        for i in range(x.shape[0]):
            out[i] = sum(x[j] for j in range(1))

    def range_by_another_name(x, out):
        indices = range
        for i in indices(x.shape[0]):
            out[i] = x[i]

    def range_in_a_list(x, out):
        for i in list(range(x.shape[0])):
            out[i] = x[i]

    def writes_its_input(x, out):
        for i in range(x.shape[0]):
            x[0:1] = 0
            out[i] = x[i]

    def reversed_cells(x, out):
        for i in range(x.shape[0]):
            out[i] = x[x.shape[0] - 1 - i]

    def beside_the_cell(x, out):
        for i in range(x.shape[0]):
            out[i] = x[i + 1]

    def with_try(x, out):
        for i in range(x.shape[0]):
            try:
                out[i] = x[i]
            finally:
                out[i] = 0

    def with_global(x, out):
        global counter
        for i in range(x.shape[0]):
            counter = x[i]
            out[i] = counter


def right(x, out):
    for i in range(x.shape[0]):
        value = x[i]
        out[i] = value


ONE_AXIS = [f for f in vars(OneAxis).values() if inspect.isfunction(f)]

REFUSALS = (NotProved, Undecided, TypeError)


def prove(kernel, *more):
    x, out = sized("x", N), Output((N,))
    prove_kernel(kernel, [x, out, *more], (out, x))


def test_the_identity_is_accepted():
    """So the refusals below are not for the way the proof is set up."""
    prove(right)


@pytest.mark.parametrize("kernel", ONE_AXIS, ids=lambda kernel: kernel.__name__)
def test_refused(kernel):
    """None of these computes out = x, or none is known to."""
    with pytest.raises(REFUSALS):
        prove(kernel)


@pytest.mark.parametrize("kernel", ONE_AXIS, ids=lambda kernel: kernel.__name__)
def test_refused_on_every_path_or_on_one(kernel):
    """With comparisons answered both ways the wrong ones still fail somewhere; a comparison alone is not the reason."""
    with pytest.raises(REFUSALS):
        for _ in all_paths(lambda: prove(kernel)):
            pass


@pytest.mark.parametrize("pack", [lambda x: x, lambda x: (x,), lambda x: (1, (x,)), lambda x: [0]])
def test_scratch_is_refused(pack):
    with pytest.raises(Undecided, match="could pass something on"):
        prove(prefix_sum_in_scratch, pack(np.array([0], dtype=object)))


def test_what_cannot_be_stored_into_is_an_argument():
    """Tuples of numbers, also symbolic ones, and what is not there."""

    def shifted(x, out, ends, missing):
        low, sign = ends
        for i in range(x.shape[0]):
            if missing is None:
                out[i] = low + sign * x[i]

    x, out = sized("x", N), Output((N,))
    prove_kernel(shifted, [x, out, (N.e, -1), None], (out, N.e - x))
    with pytest.raises(REFUSALS):
        prove_kernel(shifted, [x, Output((N,)), (N.e, 1), None], (out, N.e - x))


def test_reasons_are_named():
    for kernel, reason in {
        OneAxis.prefix_sum: r"carried from one iteration to the next: \['total'\]",
        OneAxis.previous_by_tuple: r"carried from one iteration to the next: \['now'\]",
        OneAxis.prefix_sum_by_output: "reads its output",
        OneAxis.first_cell_apart: "a comparison of symbols outside all_paths",
        OneAxis.written_by_two_loops: "exactly once",
        OneAxis.one_cell: "exactly once",
        OneAxis.prefix_sum_by_augmented_store: "augmented store",
    }.items():
        with pytest.raises((NotProved, Undecided), match=reason):
            prove(kernel)


def test_one_generic_iteration_would_have_been_fooled():
    """At one element the refused programs are the identity: what the refusal protects from."""
    for kernel in (
        OneAxis.prefix_sum,
        OneAxis.prefix_sum_in_a_list,
        OneAxis.prefix_sum_in_an_inner_function,
        OneAxis.prefix_sum_in_a_match,
        OneAxis.previous_by_tuple,
    ):
        one, two = np.zeros(1), np.zeros(2)
        kernel(np.array([3.0]), one)
        kernel(np.array([3.0, 4.0]), two)
        assert one.tolist() == [3.0]
        assert two.tolist() != [3.0, 4.0]


# two axes


def diagonal(x, out):
    for i, j in zip(range(x.shape[0]), range(x.shape[1]), strict=False):
        out[i, j] = x[i, j]


def transposed(x, out):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[j, i] = x[i, j]


def beside_each_other(x, out):
    for i in range(x.shape[0]):
        row = i
    for j in range(x.shape[1]):
        out[row, j] = x[row, j]


def triangle(x, out):
    for i in range(x.shape[0]):
        for j in range(i + 1):
            out[i, j] = x[i, j]


def cells(x, out):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = x[i, j]


def transposed_loops(x, out):
    for j in range(x.shape[1]):
        for i in range(x.shape[0]):
            out[i, j] = x[i, j]


@pytest.mark.parametrize("kernel", [diagonal, transposed, beside_each_other, triangle], ids=lambda kernel: kernel.__name__)
def test_refused_on_two_axes(kernel):
    for shape in ((N, M), (N, N)):
        x, out = sized("x", *shape), Output(shape)
        with pytest.raises(REFUSALS):
            prove_kernel(kernel, [x, out], (out, x))


@pytest.mark.parametrize("kernel", [cells, transposed_loops], ids=lambda kernel: kernel.__name__)
def test_accepted_on_two_axes(kernel):
    x, out = sized("x", N, M), Output((N, M))
    prove_kernel(kernel, [x, out], (out, x))


def test_another_specification_is_refused():
    x = sized("x", N, N)
    for expected in (x.T, x + 1, sized("y", N, N), x[:, 0]):
        out = Output((N, N))
        with pytest.raises(NotProved):
            prove_kernel(cells, [x, out], (out, expected))
    with pytest.raises(NotProved, match="nothing to compare"):
        prove_kernel(cells, [x, Output((N, N))])
    with pytest.raises(NotProved):
        prove_kernel(cells, [x, Output((N, N))], (Output((N, N)), x))


# in place


def turn_early(x, cos, sin, out):
    for i in range(x.shape[0]):
        for t in range(cos.shape[1]):
            out[i, 2 * t] = x[i, 2 * t] * cos[i, t] - x[i, 2 * t + 1] * sin[i, t]
            out[i, 2 * t + 1] = x[i, 2 * t] * sin[i, t] + x[i, 2 * t + 1] * cos[i, t]


def turn(x, cos, sin, out):
    for i in range(x.shape[0]):
        for t in range(cos.shape[1]):
            a, b = x[i, 2 * t], x[i, 2 * t + 1]
            out[i, 2 * t] = a * cos[i, t] - b * sin[i, t]
            out[i, 2 * t + 1] = a * sin[i, t] + b * cos[i, t]


def halves_twice(x, cos, sin, out):
    for i in range(x.shape[0]):
        for t in range(2 * cos.shape[1]):
            out[i, t] = x[i, t]
            out[i, t + cos.shape[1]] = x[i, t]


def one_loop_for_each_half(x, cos, sin, out):
    pairs = cos.shape[1]
    for i in range(x.shape[0]):
        for t in range(pairs):
            out[i, t] = x[i, t] * cos[i, t] - x[i, t + pairs] * sin[i, t]
        for t in range(pairs):
            out[i, pairs + t] = x[i, t] * sin[i, t] + x[i, t + pairs] * cos[i, t]


def prove_turn(kernel, layout, aliased):
    x, c, s = sized("x", N, 2 * P), sized("c", N, P), sized("s", N, P)
    out = Output(x.shape, contents=x if aliased else None)
    prove_kernel(kernel, [out if aliased else x, c, s, out], (out, rope.rotate(x, c, s, layout=layout)))


def test_an_early_write_is_refused_in_place_and_accepted_elsewhere():
    prove_turn(turn, "interleaved", aliased=True)
    prove_turn(turn_early, "interleaved", aliased=False)
    with pytest.raises(NotProved, match="after it has written"):
        prove_turn(turn_early, "interleaved", aliased=True)


def test_cells_of_another_iteration_may_not_be_read_in_place():
    prove_turn(one_loop_for_each_half, "half", aliased=False)
    with pytest.raises(NotProved, match="another iteration writes"):
        prove_turn(one_loop_for_each_half, "half", aliased=True)


def test_halves_covered_twice_are_refused():
    with pytest.raises(REFUSALS):
        prove_turn(halves_twice, "half", aliased=False)


def test_the_other_layout_is_refused():
    with pytest.raises(REFUSALS):
        prove_turn(turn, "half", aliased=False)


def twice_over(out, rows, more):
    for i in range(rows):
        for k in range(more):
            a, b = out[i], out[rows + k]
            out[i] = 2 * a
            out[rows + k] = 2 * b


def test_stores_repeated_by_a_loop_around_them_are_refused():
    """Every cell is written by more than one iteration, in place: the factor would be a power of 2."""
    x = sized("x", N + M)
    out = Output((N + M,), contents=x)
    with pytest.raises(NotProved, match="stands in loops over"):
        prove_kernel(twice_over, [out, N, M], (out, 2 * x))


# lengths


def zeros(out, head):
    for i in range(head):
        out[i] = 0
    for i in range(out.shape[0] - head):
        out[head + i] = 0


def constant_after_a_loop(x, out, head):
    value = 1
    if head > 0:
        for i in range(head - 1):
            out[i] = x[i]
            value = 2
    for i in range(x.shape[0] - head + 1):
        out[head - 1 + i] = value


def test_a_loop_of_negative_length_is_refused():
    """head + (n - head) = n, but with head > n the first loop writes beyond the end."""
    out = Output((N + M,))
    prove_kernel(zeros, [out, N], (out, filled((N + M,), 0)))
    out = Output((N,))
    with pytest.raises(Undecided, match="may be negative"):
        prove_kernel(zeros, [out, M], (out, filled((N,), 0)))


def test_a_local_of_a_loop_inside_an_if_does_not_get_out():
    """With head = 1 the loop does not run and the value stays 1."""
    x = sized("x", N + M)
    out = Output(x.shape)
    expected = np.concatenate([x[: N - 1], filled((M + 1,), 2)])
    with pytest.raises(NotProved, match=r"carried .*\['value'\]"):
        prove_kernel(constant_after_a_loop, [x, out, N], (out, expected))


# the real ones


@numba.njit
def compiled(x, out):
    for i in range(x.shape[0]):
        out[i] = np.cos(x[i]) * 2


def test_a_compiled_function_is_proved_by_its_source():
    x, out = sized("x", N), Output((N,))
    prove_kernel(compiled, [x, out], (out, 2 * np.cos(x)))
    with pytest.raises(NotProved):
        prove_kernel(compiled, [x, Output((N,))], (out, 2 * np.sin(x)))


@pytest.mark.parametrize("layout", ["interleaved", "half"])
@pytest.mark.parametrize("aliased", [False, True])
def test_the_kernels_of_rope_are_accepted_and_only_as_what_they_are(layout, aliased):
    assert first_failure(lambda: the_kernels_of_rope(layout, aliased)) is None  # at one pair both layouts are one


def the_kernels_of_rope(layout, aliased):
    kernel = {"interleaved": fast._interleaved, "half": fast._half}[layout]
    x, c, s = sized("x", M, M, M, N, 2 * P + REST), sized("c", M, M, N, P), sized("s", M, M, N, P)
    for spec in ("interleaved", "half"):
        out = Output(x.shape, contents=x if aliased else None)
        expected = rope.rotate(x, c[:, None], s[:, None], layout=spec, rotary_dim=2 * P)
        if spec == layout:
            prove_kernel(kernel, [out if aliased else x, c, s, out], (out, expected))
        else:
            with pytest.raises(REFUSALS):
                prove_kernel(kernel, [out if aliased else x, c, s, out], (out, expected))


def test_run_kernel_reports_loops_and_writes():
    x, out = sized("x", N, M), Output((N, M))
    (i, n), (j, m) = run_kernel(cells, x, out)
    assert (n, m) == (N.e, M.e)
    assert [(cell, iteration) for cell, _, iteration in out.writes] == [((i, j), (i, j))]
    prove_equal([out.writes[0][1]], [x.at(i, j)])
