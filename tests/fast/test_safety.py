"""What must not go wrong around the kernels: overlapping memory, threads, an installation nobody may write to, stale code."""

import ast
import functools
import importlib
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import types
from pathlib import Path

import numpy as np
import pytest

import posref
from posref.rotary import rope
from tests.fast.bits import other_memory

numba = pytest.importorskip("numba", reason="needs posref[fast]")
fast = importlib.import_module("posref.fast.rope")
machine = importlib.import_module("posref.fast._machine")
pairs = importlib.import_module("posref.fast._pairs")

LAYOUTS = ("interleaved", "half")
PACKAGE = Path(posref.__file__).parent


def inputs(*shape, dtype=np.float64):
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    cos, sin = rope.tables(np.arange(shape[-2]), rope.frequencies(shape[-1]))
    return x, cos.astype(dtype), sin.astype(dtype)


# Memory


@pytest.mark.parametrize("layout", LAYOUTS)
def test_in_place_is_exact(layout):
    for length, width, tail in itertools.product((0, 1, 3, 33, 257), (2, 6, 34, 130), (0, 1, 5)):
        x, (_, cos, sin) = np.random.default_rng(0).standard_normal((3, length, width + tail)), inputs(length, width)
        expected = rope.rotate(x, cos, sin, layout=layout, rotary_dim=width)
        view = x[:]  # another array object on the same cells
        assert fast.rotate(x, cos, sin, layout=layout, rotary_dim=width, out=view, threads=3) is view
        assert np.array_equal(x, expected)
    for _, other in other_memory(np.random.default_rng(0).standard_normal((2, 3, *x.shape[1:]))):
        if other.flags.writeable and other.dtype.isnative:
            expected = rope.rotate(other, cos, sin, layout=layout, rotary_dim=width)
            assert fast.rotate(other, cos, sin, layout=layout, rotary_dim=width, out=other, threads=2) is other
            assert np.array_equal(other, expected)
    expected, frozen = x.copy(), x[:]
    frozen.flags.writeable = False  # the cells are written through `out` alone
    assert fast.rotate(frozen, cos, sin, layout=layout, rotary_dim=width, out=x) is x
    assert np.array_equal(x, rope.rotate(expected, cos, sin, layout=layout, rotary_dim=width))


OVERLAPS = {
    "shifted by one row": lambda buffer: (buffer[:4], buffer[1:5]),
    "shifted by one feature": lambda buffer: (buffer.ravel()[:80].reshape(2, 5, 8), buffer.ravel()[1:81].reshape(2, 5, 8)),
    "backwards": lambda buffer: (buffer, buffer[::-1]),
    "pairs swapped": lambda buffer: (buffer, buffer[..., ::-1]),
    "every other against the first": lambda buffer: (buffer[::2], buffer[:3]),
    "transposed": lambda buffer: (buffer[:5, :, :], buffer[:5].swapaxes(0, 1)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", OVERLAPS)
def test_partial_overlap_is_refused_and_nothing_written(layout, name):
    buffer = np.random.default_rng(0).standard_normal((6, 5, 8))
    before = buffer.copy()
    x, out = OVERLAPS[name](buffer)
    _, cos, sin = inputs(5, 8)
    with pytest.raises(ValueError, match=r"out overlaps x in memory; pass x itself to work in place, or pass x.copy\(\)"):
        fast.rotate(x, cos, sin, layout=layout, out=out)
    assert np.array_equal(buffer, before)


def test_interleaved_memory_that_shares_no_cell_is_fine():
    buffer = np.random.default_rng(0).standard_normal((5, 16))
    x, out = buffer[:, ::2], buffer[:, 1::2]  # the same span, no common cell
    _, cos, sin = inputs(5, 8)
    expected = rope.rotate(x, cos, sin, layout="half")
    fast.rotate(x, cos, sin, layout="half", out=out)
    assert np.array_equal(out, expected)


def test_tables_over_their_inputs_are_refused():
    buffer = np.arange(8.0)
    with pytest.raises(ValueError, match=r"out\[0\] overlaps positions"):
        fast.tables(buffer[:4], np.ones(1), out=(buffer[:4, None], np.empty((4, 1))))


@pytest.mark.parametrize("shape", [(0, 8), (1, 8), (0, 3, 8), (2, 0, 8), (1, 1, 1, 2), (2, 0, 3, 8)])
def test_nothing_and_one(shape):
    x, cos, sin = inputs(*shape)
    for threads in (None, 1, 8):
        for out in (None, np.empty_like(x), x.copy()):
            got = fast.rotate(x, cos, sin, layout="interleaved", out=out, threads=threads)
            assert got.shape == shape
            assert np.array_equal(got, rope.rotate(x, cos, sin, layout="interleaved"))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.longdouble])
def test_a_large_result_begins_with_a_line_of_the_cache(dtype):
    size = machine.LARGE // np.dtype(dtype).itemsize
    results = [machine.output("f", "out", None, (2, size + more), np.dtype(dtype), reads={}) for more in range(5)]
    assert [result.ctypes.data % machine.LINE for result in results] == [0] * 5
    assert all(result.flags.carray and result.shape == (2, size + more) for more, result in enumerate(results))


# Threads


def test_nothing_is_one_part():
    assert machine.parts(0, 3) == [slice(0, 0)]


def meeting(count):
    """A function that returns once so many threads have called it.

    The limit is a second of the thread's own processor time, which a busy machine does not take from it.
    """
    arrived = []

    def wait():
        arrived.append(0)
        end = time.thread_time() + 1
        while len(arrived) < count:
            assert time.thread_time() < end, "no other thread comes"

    return wait


def test_two_calls_run_at_one_time_in_two_threads():
    """Each of them waits for the other."""
    machine.run(meeting(2), [(), ()], 2)


def test_thread_count_by_size(monkeypatch):
    def count(size):
        return machine.thread_count("f", None, int(size * machine.BYTES_PER_THREAD))

    assert 1 <= count(2**40) <= os.cpu_count()
    monkeypatch.setattr(machine, "os", types.SimpleNamespace(sched_getaffinity={0: [0, 4, 5]}.get))
    assert [*map(count, (0, 0.9, 1.9, 2, 2.9, 3, 99))] == [1, 1, 1, 2, 2, 3, 3]
    monkeypatch.setattr(machine, "os", types.SimpleNamespace(cpu_count=lambda: 2))
    assert count(99) == 2
    monkeypatch.setattr(machine, "os", types.SimpleNamespace(cpu_count=lambda: None))
    assert count(99) == 1
    assert machine.thread_count("f", 7, 1) == 7
    kernels = {"scale": 1.0, "reads": {}}  # after numpy's products they take one thread, or as many as are asked for
    assert [pairs.result("f", None, threads, (3,), np.dtype(float), **kernels)[2] for threads in (None, 3)] == [1, 3]


def test_every_call_is_made_once_and_errors_arrive():
    for threads in (1, 2, 3, 50):
        seen = []
        machine.run(seen.append, [(i,) for i in range(20)], threads)
        assert sorted(seen) == list(range(20))

        def fail(i):
            if i == 13:
                raise ZeroDivisionError(i)

        with pytest.raises(ZeroDivisionError, match="13"):
            machine.run(fail, [(i,) for i in range(20)], threads)
    machine.run(fail, [], 4)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system does not tell where a thread runs")
def test_threads_begin_apart_and_are_free_afterwards(monkeypatch):
    """The caller puts each worker on another processor than its own, once; then all may run where the caller may."""
    get, bind, affinity, calls = os.sched_getaffinity, os.sched_setaffinity, machine._affinity, []
    allowed = get(0)
    own = next(iter(allowed))

    def told(pid):
        assert pid == 0, "the calling thread alone"
        return get(pid)

    def noted(pid, processors):
        assert pid == 0, "the calling thread alone"
        calls.append((threading.get_ident(), threading.get_ident(), processors))
        bind(pid, processors)

    def placed(thread, size, words):
        mask = int.from_bytes(bytes(words)[: size.value], sys.byteorder)
        calls.append((threading.get_ident(), thread.value, {p for p in range(8 * size.value) if mask >> p & 1}))
        assert affinity(thread, size, words) == 0

    monkeypatch.setattr(os, "sched_getaffinity", told)
    monkeypatch.setattr(os, "sched_setaffinity", noted)
    monkeypatch.setattr(machine, "_affinity", placed)
    monkeypatch.setattr(machine, "_processor", lambda: own)
    meet, seen = meeting(3), []
    machine.run(lambda i: (meet(), seen.append(os.sched_getaffinity(0))), [(i,) for i in range(3)], 3)
    assert seen == [allowed] * 3
    homes = {thread: where for caller, thread, where in calls if caller == threading.get_ident()}
    free = {thread: where for caller, thread, where in calls if caller == thread}
    others = [{processor} for processor in sorted(allowed - {own})] or [{own}]
    assert len(homes) == 2
    assert all(home in others for home in homes.values()), "on another processor"
    assert free == dict.fromkeys(homes, allowed), "then free"

    monkeypatch.setattr(os, "sched_setaffinity", lambda pid, processors: bind(-1, processors))
    for processor in (lambda: own, None):  # where the system refuses, and where it does not tell
        monkeypatch.setattr(machine, "_processor", processor)
        seen.clear()
        machine.run(seen.append, [(i,) for i in range(3)], 3)
        assert sorted(seen) == [0, 1, 2]
    assert os.sched_getaffinity(0) == allowed


def python(code, *, root=PACKAGE.parent, **environment):
    """Standard output of a fresh process that imports the package below `root`; a variable that is None is unset."""
    merged = {**os.environ, **environment}
    variables = {name: value for name, value in merged.items() if value is not None}
    command = [sys.executable, "-B", "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, env=variables, cwd=root, timeout=300)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_slices_are_not_counted_where_no_array_is_made():
    """numba has no public option for it: this fails when its compiler no longer takes the flag."""
    entries = importlib.import_module("posref.fast.entries")

    def counts(**options):
        compiled = numba.njit(**options)(entries._lay_columns.py_func)  # anew, since cached code cannot be inspected
        compiled(np.ones((3, 5)), 0, (2, 1, -2, 2), np.ones((2, 3)))
        (code,) = compiled.inspect_llvm().values()
        return code.count("NRT_incref")

    assert counts(_nrt=False) == 0 < counts()


def test_two_python_threads_call_at_once():
    """In its own process, since the failure this guards against is an abort of the process."""
    out = python("""
import threading
import numpy as np
from posref.fast import rope as fast
from posref.rotary import rope

x = np.random.default_rng(0).standard_normal((4, 64, 32))
cos, sin = rope.tables(np.arange(64), rope.frequencies(32))
expected = rope.rotate(x, cos, sin, layout="half")
start, right = threading.Barrier(4), []

def call():
    start.wait()  # the first calls compile, all at once
    for _ in range(25):
        right.append(np.array_equal(fast.rotate(x, cos, sin, layout="half", threads=2), expected))
        fast.tables(np.arange(64), rope.frequencies(32), threads=2)

callers = [threading.Thread(target=call) for _ in range(4)]
for caller in callers:
    caller.start()
for caller in callers:
    caller.join()
print(len(right), all(right))
""")
    assert out.split() == ["100", "True"]


# Installation


SHOW = """
import numpy as np
import posref
from posref.fast import rope
x = np.array([[3.0, 4.0]])
turned = rope.rotate(x, np.array([[0.5]]), np.array([[0.25]]), layout="half")
stats = rope._half.stats
print(posref.__file__, turned[0, 0], sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""  # 3 / 2 - 4 / 4 = 0.5


@pytest.fixture
def installed(tmp_path):
    """A copy of the package and the environment that uses it."""
    shutil.copytree(PACKAGE, tmp_path / "posref", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def shown(text, installed):
    file, *numbers = text.split()
    assert Path(file).parent == installed / "posref"
    return [float(number) for number in numbers]


@pytest.mark.whole
def test_installation_without_a_folder_to_write_to(installed):
    """Folders that cannot be made even by root: __pycache__ is a file, and the home is below a device."""
    (installed / "posref" / "fast" / "__pycache__").write_text("")
    nowhere = {"HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null/cache", "NUMBA_CACHE_DIR": None}
    plain = """
try:
    rope.numba.njit(cache=True)(rope._half.py_func)
except RuntimeError as error:
    assert "no locator available" in str(error)
else:
    raise AssertionError("numba finds a place by itself")
"""
    for program in (SHOW + plain, SHOW):
        assert shown(python(program, root=installed, **nowhere), installed) == [0.5, 0, 1]


@pytest.mark.whole
def test_machine_code_is_kept_between_processes_but_for_a_new_version(installed):
    """Which has the same file name, size and time, and other content: 3 / 2 + 4 / 4."""
    environment = {"NUMBA_CACHE_DIR": str(installed / "cache")}
    assert shown(python(SHOW, root=installed, **environment), installed) == [0.5, 0, 1]
    assert shown(python(SHOW, root=installed, **environment), installed) == [0.5, 1, 0]
    module = installed / "posref" / "fast" / "rope.py"
    times, text = (module.stat().st_atime, module.stat().st_mtime), module.read_text(encoding="utf-8")
    module.write_text(text.replace("first * c - second * s", "first * c + second * s"), encoding="utf-8")
    os.utime(module, times)
    assert shown(python(SHOW, root=installed, **environment), installed) == [2.5, 0, 1]


STREAM = """
import re
import numpy as np
from posref.fast import _machine, attention
from posref import attention as specification
q, k, v = np.random.default_rng(0).standard_normal((3, 2, 70, 5), np.float32)
got = attention.attend_by_offset(q, k, v, scale=0.5)
near = np.abs(got - specification.attend_by_offset(q, k, v, scale=0.5)).max() < 1e-6
hits = sum(attention._attend.stats.cache_hits.values())
anew = _machine.numba.njit(pipeline_class=_machine.Separate, fastmath={"contract"})(attention._multiply.py_func)
ones = np.ones(4 * attention.LANES, np.float32)
anew(np.ones((4, 4), np.float32)[:, :4], ones, ones, np.zeros(4 * attention.LANES, np.float32))
(code,) = anew.inspect_asm().values()
wide, narrow = (len(re.findall("vfmadd.*" + register, code)) for register in ("zmm", "ymm"))
loaded = not re.search("vbroadcastss.%xmm", code)  # into all lanes, not copied there from another register
print(near, hits, _machine.PANEL, wide > 0, narrow > 0, loaded, got.tobytes().hex())
"""
WIDE = "+avx512f" in machine.FEATURES
NARROW = {"NUMBA_CPU_FEATURES": re.sub(r"\+(avx512|avx10|amx)", r"-\1", machine.FEATURES)}


@pytest.mark.slow
@pytest.mark.skipif(not WIDE, reason="the processor has no vectors of 512 bits")
def test_vectors_are_as_wide_as_the_processor_has(installed):
    """Both widths, each of which a second process takes from the cache; sums of products have the same bits in both."""
    environment = {"NUMBA_CACHE_DIR": str(installed / "cache")}
    for hits in (0, 1):
        wide = python(STREAM, root=installed, **environment).split()
        narrow = python(STREAM, root=installed, **environment, **NARROW).split()
        assert wide[:-1] == ["True", str(hits), "2048", "True", "False", "True"]
        assert narrow[:-1] == ["True", str(hits), "512", "False", "True", "True"]
        assert wide[-1] == narrow[-1]


def test_where_the_compiler_is_another_vectors_are_as_it_chooses(monkeypatch):
    monkeypatch.setattr(machine, "WIDE", {})
    double = numba.njit(pipeline_class=machine.Separate)(lambda x: 2 * x)
    assert double(21) == 42


@pytest.mark.slow
@pytest.mark.skipif(not WIDE, reason="narrow vectors are all that there are")
@pytest.mark.parametrize("file", [path.name for path in sorted(Path(__file__).parent.glob("test_*.py"))])
def test_narrow_vectors_pass_the_tests(file):
    """Every test of the fast paths, compiled as for a processor with vectors of 256 bits."""
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", str(Path(__file__).with_name(file))]
    run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **NARROW}, timeout=600)
    assert run.returncode == 0, run.stdout


def kernels():
    for path in sorted((PACKAGE / "fast").glob("[!_]*.py")):
        module = importlib.import_module(f"posref.fast.{path.stem}")
        for name, value in vars(module).items():
            if hasattr(value, "py_func") and value.py_func.__module__ == module.__name__:
                yield f"{path.stem}.{name}", value


@functools.cache
def constants(module):
    """Constants that a file makes of nothing that it imports."""
    found = set()
    for statement in ast.parse(Path(module.__file__).read_text(encoding="utf-8")).body:
        if (
            isinstance(statement, ast.Assign)
            and not {n.id for n in ast.walk(statement.value) if isinstance(n, ast.Name)} - found
        ):
            found |= {target.id for target in statement.targets if isinstance(target, ast.Name)}
    return found


def outside(kernel):
    """Names a kernel uses that a cached copy would not notice changing: anything from another file but numpy and builtins."""
    function = kernel.py_func
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        foreign = getattr(value, "py_func", value)
        if foreign is None or foreign is np or name in constants(sys.modules[function.__module__]):
            continue
        if not isinstance(foreign, types.FunctionType) or foreign.__module__ != function.__module__:
            yield name


def test_kernels_depend_on_their_own_file_alone():
    found = {name: list(outside(kernel)) for name, kernel in kernels()}
    assert [name for name, names in found.items() if names] == []
    assert {"rope._half", "rope._interleaved", "rope._tables"} <= set(found)


def test_kernels_have_no_defaults():
    """numba asks what they stand for at every call from Python, longer than a decoding step of one short text takes."""
    assert [name for name, kernel in kernels() if kernel.py_func.__defaults__] == []


def test_a_dependence_on_another_file_is_seen():
    def kernel(x):
        return PACKAGE, LAYOUTS, machine.jit(x), python(x), np.cos(x), range(x)

    assert list(outside(types.SimpleNamespace(py_func=kernel))) == ["PACKAGE", "machine"]


def test_missing_numba_is_an_import_error_with_the_remedy():
    out = python("""
import sys
sys.modules["numba"] = None
import posref, posref.rotary.rope
try:
    from posref.fast import rope
except ImportError as error:
    print(error)
""")
    assert "posref.fast needs numba" in out
    assert "pip install numba" in out


# The benchmark


@pytest.mark.slow  # that it runs is a stage of the CI
def test_benchmark_runs_and_reports_its_structure():
    script = PACKAGE.parent / "examples" / "benchmark.py"
    if not script.exists():
        pytest.skip("the examples are not part of an installation")
    command = [sys.executable, str(script), "--quick", "--json"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout)
    columns = {"limit", "specification", "einsum", "transformers", "onnxruntime", "torch"}
    assert report["quick"] is True
    about = report["machine"]["processor"]
    assert about["vector_bits"] in (256, 512)
    assert min(about["gigaflops"], about["gigabytes_per_second"]) > 0
    assert {"rotate_half", "rotate_interleaved", "tables", "decode"} <= {row["work"] for row in report["rows"]}
    for row in report["rows"]:
        assert set(row["columns"]) == columns
        assert row["milliseconds"] > 0
        assert (row["error"] is None) == (row["work"] == "contract_of_rotate")
        for cell in row["columns"].values():
            if "skipped" in cell:
                assert cell["skipped"].endswith(("not installed", "no such operation"))
            else:
                assert 0 < cell["low"] <= cell["median"] <= cell["high"]
        assert "median" in row["columns"]["limit"]
        assert "median" in row["columns"]["specification"]
    assert "rotate_half: limit" in run.stderr
