"""Mutants of the wrappers in posref.fast: the tests of the fast twins must notice each.

The kernels are proved in proofs/fast. The code around the kernels cuts the work, copies arrays and chooses a kernel; its
functions are mutated as those of the specification are (`proofs.kit.mutants`). Each mutant is judged in a process of its own,
by the tests and doctests that run the function, the fastest first, and by the theorems about the function.

    python -m tests.programs.twins [WORD ..]      prints what nobody notices, of functions whose name has a WORD
"""

import itertools
import os
import resource
import signal
import sys
import time
import types
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

import pytest

from proofs.kit.mutants import codes_run_by, mutants, python_function, swapped
from proofs.kit.runner import equivalent, in_file, names

ROOT = Path(__file__).parents[2]
SECONDS = 120  # of the processor, and ten times as many on the clock; a mutant may never end
COMPILED = """_read _compiled_read _cosine_and_sine _compiled_cosine_and_sine _series _exp _compiled_exp _exp_float32
    _exp_float64 _tanh _compiled_tanh fetch _fetch _send _compiled_send _panel _compiled_panel jit"""  # parts of kernels


# a pattern of mutants, and why no call can notice them
REASONS = """
*: if out.size > 0:  ->  if out.size >= 0: | nothing is written to an empty array
*: if out.size > 0:  ->  if out.size > -1: | nothing is written to an empty array
*_machine.thread_count: * or 1  ->  * or 0 | at least one thread works
*_machine.run: if workers <= 0:  ->  if workers < 0: | no other thread begins to work
*_machine.run: if workers <= 0:  ->  if workers <= -1: | no other thread begins to work
*: if weights.size > 0:  ->  if weights.size >= 0: | nothing is written to an empty array
*: if weights.size > 0:  ->  if weights.size > -1: | nothing is written to an empty array
*: if out.size == 0:  ->  if out.size == -1: | nothing is written to an empty array
*shaw.attend: threads = *  ->  * | any number of threads adds the same sums, and _scores has refused what is no number
*entries.calls: columns = * - rows.start*  ->  * + rows.start* | what is beyond the rows of a piece is not read
*entries.add: within = *  ->  * np.result_type(?, ?) | in a place of its own the content has the same bits
*_pairs.stacks: own = *(axes, 1)*  ->  *(axes, 2)* | one axis of heads more is gone through
*_pairs.stacks: own = *default=0)  ->  *default=1) | one axis of heads more is gone through
*_pairs.stacks: own = *default=0)  ->  *default=-1) | all axes of heads but one are gone through
*_pairs.cut: count = *  ->  * | the same cells in more or fewer pieces
*_pairs.cut: if heads >= count:  ->  if heads > count: | each head is one part
*alibi.bias: return *form=form))  ->  * | the form "key" reads no query
*offsets.dense: *_dense_calls(1,*  ->  *_dense_calls(2,* | the same cells in fewer pieces
*: if out.size > 0:  ->  if out.size > 1: | a row has two numbers at least
*_machine._place: words = *  ->  *home [*] WORD + 1* | a longer mask names no other processor
*_machine._place: words = *  ->  *home // WORD + 2* | a longer mask names no other processor
*_machine.output: large = *>= LARGE  ->  *> LARGE | where a result begins is a matter of time alone, here at one size
*_machine.on_a_line: size, line = *LINE // *  ->  *LINE [*] * | it begins with a line that is further on
*_pairs.stacks: own = *(axes, 1) if n > 1)*  ->  *(axes, 1) if n > 0)* | axes of one entry are gone through too
*_pairs.stacks: own = *(axes, 1) if n > 1)*  ->  *(axes, 1) if n >= 1)* | axes of one entry are gone through too
*_pairs.groups: heads = max(1, *  ->  *max(2, * | the same cells in fewer groups
*_pairs.groups: heads = *max(size, 1))  ->  *max(size, ?)) | each product has an entry, of 4 bytes at least
*_pairs.products: size = *  ->  * | the same cells in fewer or more groups
*_pairs.products: made = *heads[[]0]]*  ->  *heads[[]-1]]* | heads are one axis
*_pairs.products: for *strict=True*  ->  *strict=False* | a room is made for each of the factors
*_pairs.part: own = *strict=True)  ->  *strict=False) | at is cut to the length of lead
*_pairs.part: return *slice) else 0 *  ->  *slice) else -1 * | the last entry of an axis of one entry is its first
*_pairs._room: *LINE // dtype.itemsize*  ->  *LINE [*] dtype.itemsize* | columns that are beyond are not read
*rope.tables: m, theta = *.reshape(-1)*  ->  *.reshape(-2)* | numpy takes each length below 0 for what is left
*rope._pieces: whole, table = ((1, -1, *  ->  *((1, -2, * | numpy takes each length below 0 for what is left
*rope.tables: threads = *  ->  *] + cos.nbytes) | any number of threads makes the same bits
*rope.tables: threads = *  ->  * sin.nbytes) | cos and sin have one shape
*rope.tables: far = *< NEAR)  ->  *<= NEAR) | the series is as near at NEAR itself
*rope.rotator: like = (*  ->  like = (x, *, general(x, cos, sin)) | a prepared call looks at its own cos and sin
*rope.rotator: straight = x.size > 0 *  ->  straight = x.size > 1 * | a row has two numbers at least
*rope.rotator: pieces = *  ->  *, 1, False)* | fewer arrays are prepared for, the others go to `rotate`
*rope.rotator: if len(pieces) != 1 or *  ->  * > 2: | more arrays are prepared for, to be turned by one thread
*rope._pieces: if straight and threads == 1 *  ->  *threads == 0 * | what has one table is one piece either way
*rope._pieces: one = x.ndim > 1 *  ->  one = x.ndim > 2 * | what has one table is one piece either way
*rope._pieces: one = * cos.shape[[]-2:-1] *  ->  * cos.shape[[]-3:-1] * | what has one table is one piece either way
*rope._pieces: one = * cos.shape[[]-2:-1] *  ->  * cos.shape[[]-2:-2] * | what has one table is one piece either way
*rope._pieces: one = * == x.shape[[]-2:-1] *  ->  * == x.shape[[]-3:-1] * | what has one table is one piece either way
*rope._pieces: one = *(rows == 1 *  ->  *(rows == 0 * | what has one table is one piece either way
*rope._pieces: axes = max(2,*  ->  *max(3,* | an axis of one entry more
*attention._stream: products = *  ->  * | any number of threads makes the same bits
*attention._stream: size = *  ->  * | any number of threads makes the same bits
*attention._stream: rows, count = *n_key - 1) *  ->  *n_key - 2) * | the last block reads LANES - 1 zeros
*attention._stream: rows, count = *n_key - 1) *  ->  *n_key - 0) * | the last block reads LANES - 1 zeros
*attention._stream: rows, count = *n_key - 1) *  ->  *n_key + 1) * | the last block reads LANES - 1 zeros
*attention._stream: rows, count = *max(0, *  ->  *max(*1, * | without a pair of a query and a key nothing of it is read
*attention._extended: rule = *strict=True*  ->  *strict=False* | three arrays have three shapes
*attention._stream: few = n_query <= *  ->  *n_query < * | for FEW queries both kernels are right
*attention._stream: factor = *n_query, 1)))  ->  *n_query, 2))) | the kernel reads the first of two equal numbers
*attention._stream: shards = *  ->  *max(2, * | a shard without keys adds nothing
*attention._stream: shards = *else 1  ->  *else 2 | a shard without keys adds nothing
*attention._stream: straight = shards == 1 *  ->  straight = shards == 0 * | sums of their own are copied to out
*attention._stream: kernel, units = *  ->  *_attend_few, shards + k.shape* | pieces of any number do all of the work
*_stream: kernel, units = *  ->  *shards [*] k.shape[[]-3]) if * else (_attend, * | pieces of any number do all of the work
*attention._stream: step = *  ->  * | pieces of any number do all of the work
*attention._stream: arrays = *, b)[[]..., 0]]  ->  *, b)[[]..., -1]] | the last entry of an axis of one entry is its first
*attention._stream: at = *else 0,*  ->  *else -1,* | the last entry of an axis of one entry is its first
*attention._stream: _search(*slice(max(0, low),*  ->  *slice(max(*1, low),* | keys that were met are looked at once more
*attention._stream: _search(*maximum.size > 0 *  ->  *maximum.size > 1 * | there are LANES maxima at least
*attention._stream: np.divide(*denominator > 0,*  ->  *denominator > 1,* | it is 0, or 1 at least: the largest weight is 1
*attention._stream: np.divide(*, denominator, 1)*  ->  *, denominator, 2)* | sums of no weights are 0
*attention._piece: shapes = *TILE + 1) *  ->  *TILE + 2) * | nothing reads the other numbers
*attention._piece: shapes = *  ->  *(heads [*] k.shape[[]0] * | nothing reads the other rows
*attention._piece: shapes = *+ 2)]  ->  *+ 3)] | nothing reads the other column
*rope._blocks: * else 0  ->  *len(sin) > 1* | cos and sin have one shape
*rope._blocks: * else 0  ->  * else -1 | the last entry of an axis of one entry is its first
*rope._split: if count <= 1:  ->  if count <= 0: | one piece, also by way of parts
*rope._split: if count <= 1:  ->  if count < 1: | one piece, also by way of parts
*rope._split: axis = *  ->  * in range(2) * | axis 2 is taken if no axis before it has more than one entry
*rope._split: enough = * >= count *  ->  * > count * | as many pieces as entries, each of them once more in one piece
*attention._at: return *> 1 else 0 *  ->  *> 1 else -1 * | the last entry of an axis of one entry is its first
*attention._at: return *strict=True*  ->  *strict=False* | b is cut to the length of lead
*attention._turned: tables = *copy=False*  ->  *copy=True* | a copy has the same numbers
"""


def main(words=()):
    """How many mutants are noticed, in a line, and a list of what is open."""
    judge, options = Judge(words), ["-q", "-s", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    code = pytest.main([*options, *map(str, (ROOT / "tests/fast", ROOT / "posref/fast"))], plugins=[judge])
    if code or judge.broken:
        raise AssertionError(
            f"pytest ends with {code}; these fail unchanged, so that their mutants cannot be judged: {judge.broken}"
        )
    rows = dict(row.split(" | ") for row in REASONS.strip().splitlines())
    unproved = [label for label in judge.survivors if label not in equivalent()]
    used = {label: [row for row in rows if fnmatchcase(label, row)] for label in unproved}
    said = [f"survives: {label}" for label, found in used.items() if not found]
    if not words:
        said += [f"a reason explains nothing: {row}" for row in rows if not any(row in found for found in used.values())]
    alike = len(judge.survivors) - sum(not found for found in used.values())
    alive = len(judge.survivors)
    return f"{judge.count - alive} mutants noticed, {alike} change nothing, {alive - alike} survive", said


class Judge:
    """Runs the tests that pytest collects once, then for each mutant those that run its function."""

    def __init__(self, words):
        self.words, self.running, self.survivors, self.broken, self.count = words, {}, [], [], 0
        self.start = time.perf_counter()

    def pytest_runtestloop(self, session):
        ran = [(item, *_timed(session, item)) for item in session.items]
        if session.testsfailed:
            return True
        theorems = [t for file in names() if file.startswith("fast.") for t in in_file(file)]
        ran.sort(key=lambda each: each[1])
        everything = [item for item, _, _ in ran]
        asked = {f"{f.__module__}.{f.__name__}": f for f in _wrappers()}
        asked = {name: f for name, f in asked.items() if not self.words or any(word in name for word in self.words)}
        for number, (name, function) in enumerate(asked.items()):
            print(f"{number} of {len(asked)} functions after {time.perf_counter() - self.start:.0f} s: {name}", flush=True)
            known = [item for item, _, codes in ran if function.__code__ in codes]  # none if only other threads run it
            about = [t for t in theorems if function in map(python_function, t.of)]
            self._ask(function, [partial(_fails, session, item) for item in known or everything], about)
        self._wait(0)
        return True

    def _ask(self, function, tests, theorems):
        """The unchanged function is judged first, and must pass."""
        for t in theorems:
            t.prove()
        for label, code in itertools.chain([("", function.__code__)], mutants(function)):
            judges = [*tests, *(partial(t.failure, function, code) for t in theorems)]
            with swapped(function, code):
                self.running[_child(judges)] = f"{function.__module__}.{label or function.__name__}", not label
            self.count += bool(label)
            self._wait(len(os.sched_getaffinity(0)) - 1)

    def _wait(self, most):
        """Until at most so many children run."""
        while len(self.running) > most:
            child, status = os.wait()
            label, own = self.running.pop(child, ("", False))
            if not label:
                continue  # a process that a test has left
            if own and status != 0:
                self.broken.append(label)
                print(f"fails as it is: {label} {status}", flush=True)
            elif status == 0 and not own:
                self.survivors.append(label)
                print(f"not noticed: {label}", flush=True)


def _timed(session, item):
    """The seconds that a test takes, and what it runs; a doctest loses its names when it ends, and gets them back."""
    names_of_doctest = dict(item.dtest.globs) if hasattr(item, "dtest") else {}
    start = time.process_time()
    codes = codes_run_by(_fails, session, item)
    if names_of_doctest:
        item.dtest.globs = names_of_doctest
    return time.process_time() - start, codes


def _fails(session, item):
    before = session.testsfailed
    session.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
    return session.testsfailed > before


def _child(judges):
    """A process that ends with 0 if no judge fails; a kernel that is given wrong shapes may write anywhere."""
    if child := os.fork():
        return child
    failed = 1
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        signal.alarm(10 * SECONDS)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
        failed = any(
            judge() and judge() for judge in judges
        )  # twice: what is written beyond an array may fail a test by chance
    finally:
        os._exit(failed)


def _wrappers():
    """The Python functions of posref.fast, contracts taken off; kernels are compiled and have no code to swap."""
    for name, module in list(sys.modules.items()):
        if name.startswith("posref.fast."):
            own = (python_function(f) for f in vars(module).values() if isinstance(f, types.FunctionType))
            yield from dict.fromkeys(f for f in own if f.__module__ == name and f.__name__ not in COMPILED.split())


if __name__ == "__main__":
    said, survivors = main(sys.argv[1:])
    print(*survivors, said, sep="\n")
