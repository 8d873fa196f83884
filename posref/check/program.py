"""Program: a program in any language as the function of a check: it answers each call with one line of JSON (docs/serve.md)."""

import inspect
import json
import shlex
import subprocess
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from posref.check.tensors import round_to

VERSION = 1
SECONDS = 60  # for one answer
DTYPES = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "bool")


@dataclass(frozen=True)
class Tensor:
    """Numbers with a dtype that NumPy may not have, as a program receives them: a copy, without strides."""

    values: np.ndarray
    dtype: str

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    def __getitem__(self, place: Any) -> Any:
        raise TypeError("a program receives copies")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.values if dtype is None else self.values.astype(dtype)


class Program:
    """A command as a function: each call writes one line to its stdin and reads one line from its stdout.

    The program is started at the first call, and again if it ended after an answer. RuntimeError for an answer `{"error": ..}`,
    for a line that is no answer, and if no answer comes in time.
    """

    def __init__(self, command: str, op: str, names: Iterable[str], settings: Iterable[str] = ()):
        self.command, self.op, self.calls, self.answered = command, op, 0, False
        self.process: subprocess.Popen[str] | None = None
        kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
        arrays = [inspect.Parameter(name, kinds[0], default=None) for name in names]
        others = [inspect.Parameter(name, kinds[1], default=None) for name in settings if name not in names]
        self.__signature__ = inspect.Signature([*arrays, *others])

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        given = self.__signature__.bind(*arrays, **named).arguments
        self.calls += 1
        call = {"posref": VERSION, "call": self.calls, "op": self.op}
        return _result(self._answer(call | {"arguments": {name: encoded(value) for name, value in given.items()}}))

    def __enter__(self) -> "Program":
        return self

    def __exit__(self, *error: object) -> None:
        self._ended()

    def _answer(self, call: dict[str, Any]) -> dict[str, Any]:
        if self.calls > 1 and not self.answered:
            raise RuntimeError("it gave no answer before, and is not called again")
        process = self.process = self.process or _started(self.command)
        assert process.stdin is not None
        assert process.stdout is not None
        timer = threading.Timer(SECONDS, process.kill)
        timer.start()
        try:
            process.stdin.write(json.dumps(call) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except OSError:  # it does not read
            line = ""
        late = not timer.is_alive()
        timer.cancel()
        if not line:
            code, self.answered = self._ended(), self.answered and not late
            raise RuntimeError(f"no answer in {SECONDS} s" if late else f"no answer: the program ended with code {code}")
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict) or answer.get("call") != call["call"]:
            self._ended()
            wanted = f'{{"call": {call["call"]}, "result": ..}}'
            raise RuntimeError(f"its line {line[:60].strip()!r} is no answer; expected {wanted}, and stdout for answers alone")
        self.answered = True
        return answer

    def _ended(self) -> int | None:
        """Close the program's stdin, stop the program if it does not end, and return its exit code."""
        if self.process is None:
            return None
        process, self.process = self.process, None
        try:
            process.communicate(timeout=5)
        except (subprocess.TimeoutExpired, OSError, ValueError):
            process.kill()
            process.wait()
        return process.returncode


def _started(command: str) -> "subprocess.Popen[str]":
    pipe = subprocess.PIPE
    return subprocess.Popen(shlex.split(command), stdin=pipe, stdout=pipe, text=True, encoding="utf-8")


def tensor(dtype: str, array: np.ndarray) -> Tensor:
    """The array rounded to a dtype of floats; integers and booleans are unchanged."""
    if array.dtype.kind != "f":
        return Tensor(array, str(array.dtype))
    return Tensor(round_to(array, dtype).astype(np.float32), dtype)


def encoded(value: Any) -> Any:
    """A tensor or array as an object with dtype, shape and data, in C order; other values as JSON has them.

    >>> encoded(np.array([[1, 2]]))
    {'dtype': 'int64', 'shape': [1, 2], 'data': [1, 2]}
    """
    if isinstance(value, (np.ndarray, Tensor)):
        array = np.asarray(value)
        return {"dtype": str(value.dtype), "shape": [*array.shape], "data": array.ravel().tolist()}
    return value.item() if isinstance(value, np.generic) else value


def decoded(made: Any) -> Any:
    """What `encoded` wrote; numbers are rounded to their dtype, and null is NaN. RuntimeError for anything else.

    >>> decoded({"dtype": "bfloat16", "shape": [2], "data": [1.0, 0.1]}).values
    array([1.        , 0.10009766], dtype=float32)
    """
    if not isinstance(made, dict) or made.keys() < {"dtype", "shape", "data"}:
        raise RuntimeError(f"a result is {str(made)[:60]}, expected an object with dtype, shape and data")
    if made["dtype"] not in DTYPES:
        raise RuntimeError(f"a result has dtype {made['dtype']!r}, expected one of {', '.join(DTYPES)}")
    try:
        values = np.array([np.nan if each is None else each for each in made["data"]], dtype=np.float64).reshape(made["shape"])
    except (TypeError, ValueError) as error:
        raise RuntimeError(f"a result with shape {made['shape']} cannot be read: {error}") from None
    if made["dtype"] == "bfloat16":
        return tensor("bfloat16", values)
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(made["dtype"])


def _result(answer: dict[str, Any]) -> Any:
    if "error" in answer:
        raise RuntimeError(answer["error"])
    result = answer.get("result")
    return tuple(decoded(each) for each in result) if isinstance(result, list) else decoded(result)
