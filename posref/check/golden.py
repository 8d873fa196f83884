"""Golden: outputs that were dumped by another program, against a golden case.

Rotations, tables and gradients of RoPE are judged as in `check_rope`. Every other case is compared element by element,
then with what every mistake of its op gives (`posref.ops`, `engine`).
"""

from typing import Any

import numpy as np

from posref import _require, ops, vectors
from posref.check import engine, precision, tensors
from posref.check.first_level import allowed_models, finite, same_shape
from posref.check.judge import judge
from posref.check.name import named
from posref.check.report import Precision, Report
from posref.check.rotated import ROTATED
from posref.check.search import settle
from posref.check.wrong_answers import wrong_frequencies


def diagnose(case: Any, output: Any, *, dtype: str | None = None, model: str | None = None) -> Report:
    """Compare an output with a golden case and say what it equals.

    `case` is one of `posref.vectors` or its id; `output` is an array or tensor of the shape of the expected one, `dtype` its
    dtype where the array does not say (bf16 that was widened to float32). The mistakes of `posref mistakes` are named, alone
    or with all that give the same numbers at this case; if none fits, the worst element is reported with the mistakes that the
    case was made to catch. ValueError for an unknown case or model.

    >>> from posref import vectors
    >>> got = vectors.case("rope/interleaved/d8-b1e4/tiny").expected
    >>> diagnose("rope/half/d8-b1e4/tiny", got).diagnosis[0].name
    'layout interleaved'
    """
    if model is not None:
        _require.choice("check.diagnose", "model", model, tuple(n for n in precision.MODELS if not n.endswith("-given")))
    if not isinstance(case, vectors.Case):
        case = vectors.case(case)
    report = Report(case.id)
    kind = tensors.dtype_name(output) if dtype is None else tensors.DTYPES.get(dtype, dtype)
    _judged(report, case, tensors.as_float64(output), kind, model)
    if case.flags and not (report.ok or report.diagnosis):
        report.advice.append(_caught(case))
    return report


def _judged(report: Report, case: Any, got: np.ndarray, kind: str, model: str | None) -> None:
    fits = same_shape(report, got.shape, case.expected.shape)
    allowed = _models(report, case, kind, model)
    if not allowed:
        return
    if not fits:
        named(report, _question(case, allowed), got)
        return
    if case.id.startswith("rope/") and case.op in ROTATED:
        run = ROTATED[case.op](case, got, allowed)
        if finite(report, run.got, run.positions[:, 0]):
            judge(report, run, None)
            if not (report.ok or report.diagnosis):
                named(report, _question(case, allowed), got)
        return
    allowed = tuple(dict.fromkeys(name.removesuffix("-iterative") for name in allowed))
    if finite(report, got) and not _compared(report, case, got, allowed):
        if case.op in ("inv_freq", "frequencies"):
            settle(report, [wrong_frequencies(case, got, allowed)], "the answer")
        if not report.diagnosis:
            named(report, _question(case, allowed), got)


def _question(case: Any, models: tuple[str, ...]) -> engine.Question:
    op, arguments = ops.of_case(case)
    models = tuple(dict.fromkeys(name.removesuffix("-iterative") for name in models))
    tolerance = {name: vectors.tolerance(case, name) for name in models}
    return engine.Question(op, arguments, models, right=case.expected, tolerance=tolerance, gauge=case.gauge)


def _models(report: Report, case: Any, kind: str, model: str | None) -> tuple[str, ...]:
    """The models by which this output may be judged. Where equality is meant integers will do."""
    if case.cond is None and kind.startswith(("int", "uint", "bool")):
        report.passed("dtype", kind)
        return case.models[:1]
    allowed = allowed_models(report, kind, model)
    fitting = tuple(name for name in allowed if name.removesuffix("-iterative") in case.models)
    if allowed and not fitting:
        report.failed("dtype", f"{kind} cannot hold this case; it is meant for {', '.join(case.models)}")
    return fitting


def _compared(report: Report, case: Any, got: np.ndarray, models: tuple[str, ...]) -> bool:
    """Element by element, in the gauge of the case."""
    for model in models:
        worst = vectors.error(case, got, model)
        if worst <= 1 and case.cond is None:
            report.passed("values", "equal")
            return True
        if worst <= 1:
            report.passed("values", f"within the bound, at most {worst:.2g} of it")
            report.precision = Precision(model, worst, precision.MEANING[model])
            return True
    describe = _worst_pair if case.gauge == "row_constant" else _worst_element
    report.failed("values", describe(case, got, models[-1]))
    return False


def _worst_element(case: Any, got: np.ndarray, model: str) -> str:
    error, allowed = np.abs(got - case.expected), vectors.tolerance(case, model)
    ratio = precision.in_bounds(error, allowed)
    most = ratio == ratio.max()
    place = _place(np.where(most, error, -1))
    bound = f" ({ratio[place]:.3g} times the bound of {model})" if allowed[place] > 0 else ""
    return (
        f"the element at ({_listed(place)}) is {got[place]:.9g}, expected {case.expected[place]:.9g}{bound}; "
        f"{(ratio > 1).sum()} of {ratio.size} differ"
    )


def _worst_pair(case: Any, got: np.ndarray, model: str) -> str:
    """Rows may be off by a constant each, so that only differences within a row say something."""
    allowed = vectors.tolerance(case, model)
    given, expected = (a[..., :, None] - a[..., None, :] for a in (got, case.expected))
    ratio = precision.in_bounds(np.abs(given - expected), allowed[..., :, None] + allowed[..., None, :])
    place = _place(ratio)
    one, other = place[:-1], (*place[:-2], place[-1])
    return (
        f"the elements at ({_listed(one)}) and ({_listed(other)}) differ by {given[place]:.9g}, expected "
        f"{expected[place]:.9g} ({ratio[place]:.3g} times the bound of {model}); a constant may be added to a whole row"
    )


def _place(values: np.ndarray) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(values)), values.shape))


def _listed(place: tuple[int, ...]) -> str:
    return ", ".join(map(str, place))


def _caught(case: Any) -> str:
    name = case.id.split("/")[0]
    known = vectors.load(name).flags
    bugs = "; ".join(f"{known[flag]['bug']} ({flag})" for flag in case.flags)
    return f"This case is meant to catch: {bugs}. posref/vectors/{name}.json describes them under flags."
