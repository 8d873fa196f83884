"""Golden: compares the output of another program with a golden case."""

import functools
from typing import Any

import numpy as np

from posref import _require, ops, vectors
from posref.check import tensors
from posref.check.engine import Question
from posref.check.ranged import BY_DTYPE, MEANING, models
from posref.check.report import Report
from posref.check.rotary import phases
from posref.check.verdict import blind, decided, judged

_system = functools.cache(vectors.load)  # which is read here and never written


def diagnose(case: Any, output: Any, *, dtype: str | None = None, model: str | None = None) -> Report:
    """Compare an output with a golden case and say what it equals.

    `case` is a case of `posref.vectors` or its id. `output` is an array or tensor of the expected shape, `dtype` its dtype if
    the array does not say it (bf16 that was widened to float32); `model` demands one precision model. The report names the
    mistake of `posref mistakes` that fits, or all that give the same numbers at this case. If none fits, it shows the worst
    element and the mistakes that the case was made to catch. ValueError for an unknown case or model.

    >>> from posref import vectors
    >>> got = vectors.case("rope/interleaved/d8-b1e4/tiny").expected
    >>> diagnose("rope/half/d8-b1e4/tiny", got).diagnosis[0].name
    'other_layout'
    """
    if model is not None:
        _require.choice("check.diagnose", "model", model, tuple(name for name in MEANING if not name.endswith("-given")))
    if not isinstance(case, vectors.Case):
        case = vectors.case(case)
    report = Report(case.id)
    kind = tensors.dtype_name(output) if dtype is None else tensors.DTYPES.get(dtype, dtype)
    question = _question(report, case, kind, model)
    got = tensors.as_float64(output)
    if case.ignore is not None and got.shape == case.expected.shape:
        got = np.where(case.ignore, case.expected, got)
    if question and judged(report, question, got, phases.stages) and decided(report, question):
        blind(report, question)
    if report.diagnosis:
        report.advice.append(_alone(case, {name for each in report.diagnosis for name in each.name.split(" and ")}))
    compared = any(check.name == "values" for check in report.checks)
    if case.flags and compared and not (report.ok or report.diagnosis):
        report.advice.append(_caught(case))
    return report


def _question(report: Report, case: Any, kind: str, model: str | None) -> Question | None:
    """The question of a case, in the models that the dtype allows; None if it allows none. Exact cases accept integers."""
    op, arguments = ops.of_case(case)
    exact = case.cond is None and kind.startswith(("int", "uint", "bool"))
    allowed = case.models[:1] if exact else models(kind, arguments)
    if not allowed:
        report.failed("dtype", f"the output has dtype {kind}, expected one of {', '.join(BY_DTYPE)}")
        return None
    meant = tuple(n for n in allowed if n.removesuffix("-iterative").replace("f32sums", "all") in case.models)
    if model is not None:
        meant = tuple(n for n in (model,) if n.removesuffix("-iterative") in case.models)
    if not meant:
        report.failed("dtype", f"{kind} cannot hold this case; it is meant for {', '.join(case.models)}")
        return None
    report.passed("dtype", kind)
    tolerance = {name: vectors.tolerance(case, name) for name in meant if name in case.models}
    return Question(
        op, arguments, meant, right=case.expected, tolerance=tolerance, gauge=case.gauge, rms=case.rms, meant=case.models
    )


def _alone(case: Any, names: set[str]) -> str:
    """A sentence that the diagnosis is on one case, and how many cases of the op would show the same mistake."""
    same = [each for each in _system(case.id.split("/")[0]).cases if each.op == case.op]
    telling = sum(not names.isdisjoint(each.flags) for each in same)
    told = (
        f"{telling} of {len(same)} cases of {case.op} would tell" if telling else f"compare all {len(same)} cases of {case.op}"
    )
    return f"The diagnosis is on this case alone; {told if len(same) > 1 else f'{case.op} has no other case'}."


def _caught(case: Any) -> str:
    name = case.id.split("/")[0]
    known = _system(name).flags
    bugs = "; ".join(f"{known[flag]['bug']} ({flag})" for flag in case.flags)
    return f"This case is meant to catch: {bugs}. posref/vectors/{name}.json describes them under flags."
