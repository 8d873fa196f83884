"""Golden: outputs that were dumped by another program, against a golden case."""

from typing import Any

import numpy as np

from posref import _require, vectors
from posref.check import precision, tensors
from posref.check.first_level import allowed_models, finite, same_shape
from posref.check.judge import judge
from posref.check.report import Precision, Report
from posref.check.rotation import Asked
from posref.check.run import Run


def diagnose(case: Any, output: Any, *, dtype: str | None = None, model: str | None = None) -> Report:
    """Compare an output with a golden case and say what it equals.

    `case` is one of `posref.vectors` or its id; `output` is an array or tensor of the shape of the expected one, `dtype` its
    dtype where the array does not say (bf16 that was widened to float32). Rotations are diagnosed; of other operations the
    worst element is reported. ValueError for an unknown case or model.

    >>> from posref import vectors
    >>> got = vectors.case("rope/interleaved/d8-b1e4/tiny").expected
    >>> diagnose("rope/half/d8-b1e4/tiny", got).diagnosis[0].name
    'layout interleaved'
    """
    if model is not None:
        _require.choice("check.diagnose", "model", model, tuple(precision.MODELS))
    if isinstance(case, str):
        case = vectors.case(case)
    report = Report(case.id)
    kind = tensors.dtype_name(output) if dtype is None else tensors.DTYPES.get(dtype, dtype)
    got = tensors.as_float64(output)
    if not same_shape(report, got.shape, case.expected.shape):
        return report
    allowed = allowed_models(report, kind, model)
    if allowed is None:
        return report
    if case.cond is not None:
        allowed = tuple(name for name in allowed if name.removesuffix("-iterative") in case.models)
    if not allowed:
        report.failed("dtype", f"{kind} cannot hold this case; it is meant for {', '.join(case.models)}")
        return report
    if case.op != "rotate":
        _compare(report, case, got, allowed)
        return report
    run = _case_run(case, got, allowed)
    if finite(report, run.got, run.positions[:, 0]):
        judge(report, run, None)
    return report


def _case_run(case: Any, got: np.ndarray, models: tuple[str, ...]) -> Run:
    """The case with axes (batch, heads, n, dim) and positions (batch, 1, n)."""
    x, at = case.tensors["x"], case.tensors["positions"]
    asked = Asked(x.shape[-1], case.params["dim"], case.params["base"], case.params["layout"])
    if at.shape[-1] != x.shape[-2]:
        x, got, at = np.swapaxes(x, 1, 2), np.swapaxes(got, 1, 2), np.swapaxes(at, 1, 2)
    lead = (1,) * (4 - x.ndim)
    at = at.reshape((1,) * (3 - at.ndim) + at.shape)
    return Run(asked, x.reshape(lead + x.shape).astype(np.float64), at, got.reshape(lead + got.shape), models)


def _compare(report: Report, case: Any, got: np.ndarray, models: tuple[str, ...]) -> None:
    for model in models:
        golden = model.removesuffix("-iterative")
        worst = vectors.error(case, got, golden)
        if worst <= 1:
            report.passed("values", f"within the bound, at most {worst:.2g} of it")
            report.precision = Precision(golden, worst, precision.MEANING[golden])
            return
    error = np.abs(got - case.expected)
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(error)), error.shape))
    place = ", ".join(map(str, index))
    report.failed("values", f"the element at ({place}) is {got[index]:.9g}, expected {case.expected[index]:.9g}")
