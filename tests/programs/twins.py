"""Mutants of the wrappers in posref.fast: the twins, replayed against their specifications, must notice each.

The kernels are proved in proofs/fast. The code around the kernels cuts the work, copies arrays and chooses a kernel; its
functions are mutated as those of the specification are (`proofs.kit.mutants`). Each mutant is judged in a process of its own,
by rules of tests/fast/test_twins.py at few sizes and then by the tests of its module. Most of what nobody notices changes how
the work is cut and no result; read each. It takes minutes for a module.

    python -m tests.programs.twins [WORD ..]      prints what nobody notices, of functions whose name has a WORD
"""

import itertools
import os
import signal
import sys
import types

import numpy as np
import pytest

from proofs.kit.mutants import mutants, python_function, swapped
from tests.fast import test_twins as rules

SECONDS = 60  # a mutant may never end
COMPILED = """_read _compiled_read _cosine_and_sine _compiled_cosine_and_sine _series _exp _compiled_exp _exp_float32
    _exp_float64 _tanh _compiled_tanh _fetch _compiled_fetch _ask _panel _compiled_panel jit"""  # parts of kernels


def main(words=()):
    """How many mutants nobody notices, as a line."""
    print(f"{len(list(survivors(words)))} mutants are not noticed")


def survivors(words=()):
    """The labels of mutants that nobody notices."""
    ran = [(twin, _run_by(twin)) for twin in rules.TWINS]
    for function in _wrappers():
        module, name = function.__module__.rpartition(".")[2], function.__name__
        if not words or any(word in f"{module}.{name}" for word in words):
            judges = [twin for twin, codes in ran if function.__code__ in codes]
            for label, code in mutants(function):
                with swapped(function, code):
                    if not _in_a_process(judges, module):
                        print(f"not noticed: {module}.{label}", flush=True)
                        yield f"{module}.{label}"


def _wrappers():
    """The Python functions of posref.fast, contracts taken off; kernels are compiled and have no code to swap."""
    for name, module in list(sys.modules.items()):
        if name.startswith("posref.fast."):
            own = (python_function(f) for f in vars(module).values() if isinstance(f, types.FunctionType))
            yield from dict.fromkeys(f for f in own if f.__module__ == name and f.__name__ not in COMPILED.split())


def _run_by(twin):
    seen = set()
    sys.setprofile(lambda frame, event, _: seen.add(frame.f_code) if event == "call" else None)
    try:
        _judge(twin)
    finally:
        sys.setprofile(None)
    return seen


def _judge(twin):
    """Raises AssertionError or whatever the mutant raises."""
    few = twin._replace(sizes=twin.sizes[:: max(1, len(twin.sizes) // 12)])
    with pytest.MonkeyPatch.context() as patch, np.errstate(all="ignore"):
        rules.test_every_size(few, np.float32)
        rules.test_leading_axes_broadcast(twin, patch)
        rules.test_dtypes_promote_like_the_specification(twin)
        rules.test_any_memory_of_the_arguments(twin, np.float64, patch)
        rules.test_any_memory_of_out(twin, np.float32, patch)
        rules.test_out_over_the_arguments_is_refused_and_nothing_written(twin)
        rules.test_what_a_kernel_cannot_do_is_refused(twin)
        for sizes, leads, setting in itertools.product(few.sizes, [{}, *twin.leads] * twin.reorders, twin.settings):
            given = twin.make(np.float64, *sizes, **leads) | setting
            np.testing.assert_allclose(twin.compiled(**given), twin.specification(**given), rtol=1e-9, atol=1e-9)


def _in_a_process(judges, module):
    """Whether the judges fail, crash or do not end; a kernel that is given wrong shapes may write anywhere."""
    child = os.fork()
    if not child:
        signal.alarm(SECONDS)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
        try:
            for twin in judges:
                _judge(twin)
            tests = "tests/fast/test_safety.py" if module.startswith("_") else f"tests/fast/test_{module}.py"
            code = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", tests]) != 0)
        except BaseException:
            code = 1
        os._exit(code)
    return os.waitpid(child, 0)[1] != 0


if __name__ == "__main__":
    main(sys.argv[1:])
