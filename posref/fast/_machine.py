"""Shared by all fast paths: compiling, threads and the output argument."""

import _thread
import contextlib
import ctypes
import functools
import itertools
import math
import os
import sys
from collections import deque

import numba
import numpy as np
from llvmlite import ir
from numba.core.codegen import get_host_cpu_features
from numba.core.compiler import Compiler

# A second thread pays off if twice this many bytes are written: starting it takes 0.1 to 0.3 ms, as long as writing 1 to 3 MB,
# and if memory is the limit, two threads save a tenth of the time. The limit also keeps many cores from crowding a memory bus.
BYTES_PER_THREAD = 2**23

WORD = 64  # bits: of the words that list processors
LINE = 64  # bytes: a vector of 512 bits that begins inside a line of the cache ends in the next one, and costs two accesses
LARGE = 2**16  # bytes: a result as large begins with a line, which `rotate` writes faster
# Bytes between the address that is read now and the address that `fetch` loads into the cache. Decoding took up to
# 1.3 times as long with 2**10 or 2**13 on one processor, and 1.08 times as long with 2**12 on another.
AHEAD = 2**11
ADDRESS, NUMBER = ir.IntType(8).as_pointer(), ir.IntType(32)

# The processor that numba compiles for. Four rows of sums, each as wide as a panel, fill 16 of AVX-512's 32 registers, 8 of
# AVX2's 16 and 16 of ARM's 32; 8 or more registers hide the time that a multiply-add takes.
FEATURES = os.environ.get("NUMBA_CPU_FEATURES", get_host_cpu_features())
PANEL = 2048 if "+avx512f" in FEATURES else 512

_linux = ctypes.PyDLL(None) if sys.platform == "linux" else None  # keeps the interpreter lock: else a new thread waits twice
_processor, _affinity = (getattr(_linux, name, None) for name in ("sched_getcpu", "pthread_setaffinity_np"))


def jit(kernel=None, **options):
    """Compile at the first call, to code that releases the interpreter lock; cached on disk if numba finds a writable folder.

    The key of numba's cache is the content of the kernel's own file (time and size before numba 0.68), the argument types, the
    processor and numba's version, but not the files that it imports from. So a kernel calls no compiled function of another
    module and reads no constant from one; then a new version of posref never uses old code.
    """
    if kernel is None:
        return functools.partial(jit, **options)
    try:
        return numba.njit(nogil=True, no_cfunc_wrapper=True, cache=True, **options)(kernel)
    except RuntimeError:  # numba found no folder to write to, as in a read-only installation
        return numba.njit(nogil=True, no_cfunc_wrapper=True, **options)(kernel)


try:
    from numba.core.compiler_machinery import register_pass
    from numba.core.lowering import Lower
    from numba.core.typed_passes import NativeLowering

    class WideLower(Lower):
        """Makes LLVM use vectors of 512 bits if the processor has them; on many Intel processors it would choose 256."""

        def lower_normal_function(self, fndesc):
            super().lower_normal_function(fndesc)
            set.add(self.function.attributes, '"prefer-vector-width"="512"')

    @register_pass(mutates_CFG=True, analysis_only=False)
    class WideLowering(NativeLowering):
        _name = "wide_native_lowering"
        lowering_class = WideLower

    WIDE = {NativeLowering: WideLowering}
except (ImportError, TypeError):  # numba has no public option for it: where its compiler is another, LLVM chooses
    WIDE = {}


class Separate(Compiler):
    """Compiles under the promise that written arguments share no memory with others, so sums can stay in registers.

    Vectors are as wide as the processor allows.
    """

    def define_pipelines(self):
        self.state.flags.noalias = True
        pipelines = super().define_pipelines()
        for pipeline in pipelines:
            pipeline.passes = [(WIDE.get(step, step), name) for step, name in pipeline.passes]
            pipeline.finalize()
        return pipelines


def fetch(row):
    """The compiled form of a function that does nothing in Python: it prefetches the memory AHEAD bytes after `row`."""

    def compiled(row):
        start = row.ctypes.data + AHEAD
        for line in range(0, row.size * row.itemsize, LINE):
            _ask(start + line)

    return compiled


@numba.extending.intrinsic
def _ask(typing_context, address):
    """The prefetch instruction of the processor, for an address in bytes; an address outside all memory does no harm."""

    def generate(context, builder, signature, arguments):
        function = ir.FunctionType(ir.VoidType(), [ADDRESS, NUMBER, NUMBER, NUMBER])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [ADDRESS], function)
        where = builder.inttoptr(arguments[0], ADDRESS)
        builder.call(prefetch, [where, NUMBER(0), NUMBER(3), NUMBER(1)])  # to be read, into every cache, data
        return arguments[0]

    return numba.types.intp(numba.types.intp), generate


def thread_count(function, threads, size):
    """The number of threads: `threads`, or if it is None as many processors as pay off for `size` written bytes."""
    if threads is None:
        processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return max(1, min(processors, size // BYTES_PER_THREAD))
    if not isinstance(threads, (int, np.integer)) or isinstance(threads, bool):
        raise TypeError(f"{function}: threads is {threads!r}, expected an integer or None to choose by size")
    if threads < 1:
        raise ValueError(f"{function}: threads is {threads}, expected at least 1, or None to choose by size")
    return int(threads)


def parts(n, count):
    """range(n) in `count` slices of nearly equal length, fewer if some would be empty.

    >>> parts(5, 2)
    [slice(0, 2, None), slice(2, 5, None)]
    """
    count = max(1, min(n, count))
    return [slice(n * i // count, n * (i + 1) // count) for i in range(count)]


def run(kernel, calls, threads):
    """Call `kernel(*arguments)` for every tuple in `calls`, which write to different cells. A free thread takes the next call.

    The caller is one of the threads. The other threads end with this call, so there is no state, nothing to shut down, and
    nothing that a fork could break. They are started directly: a ThreadPoolExecutor takes 0.1 to 0.2 ms longer to begin.
    """
    workers = min(threads, len(calls)) - 1
    if workers <= 0:
        for arguments in calls:
            kernel(*arguments)
        return
    waiting, errors, ends = deque(calls), [], []

    def work():
        while waiting:
            try:
                arguments = waiting.popleft()
            except IndexError:  # another thread took the last one
                return
            kernel(*arguments)

    def other(placed, end):
        try:
            with placed:
                pass
            _free(allowed)
            work()
        except BaseException as error:  # raised below
            errors.append(error)
        finally:
            end.release()

    allowed, homes = _homes(workers)
    try:
        for home in homes:
            placed, end = _thread.allocate_lock(), _thread.allocate_lock()
            end.acquire()
            with placed:
                thread = _thread.start_new_thread(other, (placed, end))
                ends.append(end)
                _place(thread, home)
        work()
    finally:
        for end in ends:
            end.acquire()
    if errors:
        raise errors[0]


def _homes(workers):
    """The allowed processors, and for each worker a processor to begin on, if possible not that of the caller.

    A thread first waits for the interpreter lock. Linux may wake it on the processor of the caller and move it milliseconds
    later, when short work is already done. So the caller puts it on another processor; then the system may move it freely.
    """
    if _processor is None or _affinity is None:
        return set(), [None] * workers
    allowed, own = os.sched_getaffinity(0), _processor()
    others = itertools.cycle(sorted(allowed - {own}) or [own])
    return allowed, list(itertools.islice(others, workers))


def _place(thread, home):
    """Move a running thread to the processor `home`, if there is one and the system allows it."""
    if home is not None:
        words = (ctypes.c_uint64 * (home // WORD + 1))()
        words[home // WORD] = 1 << home % WORD
        _affinity(ctypes.c_ulong(thread), ctypes.c_size_t(ctypes.sizeof(words)), words)


def _free(processors):
    """Let the calling thread run on these processors, if there are any and the system allows it."""
    with contextlib.suppress(OSError):
        if processors:
            os.sched_setaffinity(0, processors)


def floating(function, argument, dtype):
    """Require a dtype that the kernels compute in: native float32 or float64."""
    if dtype.char not in "fd" or not dtype.isnative:
        raise TypeError(
            f"{function}: {argument} would have dtype {dtype}; the compiled kernels know float32 and float64; "
            "convert the inputs with .astype, or use the specification, which takes every dtype"
        )


def output(function, argument, out, shape, dtype, *, reads, in_place=False):
    """The array to write to: `out` if it fits, a new one if it is None.

    `reads` maps names to the arrays that the kernel reads. None of them may share memory with `out`, except that with
    `in_place` the first may be `out` itself, cell by cell; then that array is returned.
    """
    if out is None:
        large = math.prod(shape) * dtype.itemsize >= LARGE
        return on_a_line(shape, dtype) if large else np.empty(shape, dtype)
    if not isinstance(out, np.ndarray):
        raise TypeError(f"{function}: {argument} is a {type(out).__name__}, expected a numpy array to write to")
    if out.shape != shape:
        raise ValueError(f"{function}: {argument} has shape {out.shape} and the result has {shape}; they must be equal")
    if out.dtype != dtype:
        raise TypeError(f"{function}: {argument} has dtype {out.dtype} and the result has {dtype}; they must be equal")
    if not out.flags.writeable:
        raise ValueError(f"{function}: {argument} is read-only; pass a .copy() of it")
    if 0 in out.strides and any(step == 0 and n > 1 for step, n in zip(out.strides, out.shape, strict=True)) and out.size > 0:
        raise ValueError(f"{function}: {argument} has strides {out.strides}, so that cells share memory; pass a .copy() of it")
    result = out
    for name, array in reads.items():
        if np.shares_memory(array, out):
            if not (in_place and _same_cells(array, out)):
                either = f"pass {name} itself to work in place, or " if in_place else ""
                raise ValueError(
                    f"{function}: {argument} overlaps {name} in memory; {either}pass {name}.copy() or another {argument}"
                )
            result = array
        in_place = False
    return result


def on_a_line(shape, dtype):
    """An array, not filled, whose memory begins at a line of the cache."""
    size, line = math.prod(shape), LINE // dtype.itemsize
    room = np.empty(size + line, dtype)
    start = -room.ctypes.data // dtype.itemsize % line
    return room[start : start + size].reshape(shape)


def _same_cells(a, b):
    same = a.shape == b.shape and a.strides == b.strides and a.dtype == b.dtype
    return a is b or (same and a.ctypes.data == b.ctypes.data)
