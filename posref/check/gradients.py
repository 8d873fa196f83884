"""Gradients: what automatic differentiation of the implementation gives, where the system has a gradient to compare with."""

import importlib
import sys
from dataclasses import replace
from typing import Any

import numpy as np

from posref import ops
from posref.check import engine
from posref.check.call import RESULT, Misbehaved, output, raised
from posref.check.judge import judged
from posref.check.ranged import models
from posref.check.report import Finding, Report
from posref.ops import Arguments, Op
from posref.ops.probe import painted


def check_gradient(report: Report, caller: Any, op: Op, a: Arguments) -> None:
    """Compare the gradient through torch or jax with the gradient op of the system, if there is one."""
    system, name = op.name.split(".")
    of = getattr(importlib.import_module(f"posref.ops.{system}"), "GRADIENTS", {}).get(name)
    if of is None:
        return
    gradient, argument = ops.op(f"{system}.{of[0]}"), of[1]
    flow = painted(np.shape(op.spec(**a)), 2)
    try:
        got = _through(caller, op, a, argument, flow)
    except Misbehaved as error:
        report.skipped("gradient", str(error))
        return
    if got is None:
        return
    asked = Arguments({key: a[key] for key in a if key != argument} | {of[2]: flow})
    dtype = "float32" if caller.dtype in ("float32", "float64") else caller.dtype
    question, part = engine.Question(gradient, asked, models(dtype, asked)[-1:]), Report(report.subject)
    if judged(part, question, caller.restored(got, a, argument)):
        report.passed("gradient", part.checks[-1].detail)
        return
    report.failed("gradient", f"with respect to {argument}: {next(c.detail for c in part.checks if c.status == 'failed')}")
    report.diagnosis += [_of_the_gradient(finding, argument) for finding in part.diagnosis]
    report.advice += part.advice


def _of_the_gradient(finding: Finding, argument: str) -> Finding:
    """What is said of an output, said of its gradient; its values are right."""
    sentence = finding.sentence.replace("your output", f"the gradient of your output with respect to {argument}")
    return replace(
        finding, sentence=sentence.replace("nothing was computed", "it was lost on the way, and the values are right")
    )


def _through(caller: Any, op: Op, a: Arguments, argument: str, flow: np.ndarray) -> np.ndarray | None:
    """The gradient of sum(result flow) with respect to one argument; None where the tensors know none."""
    given = caller.tensors(a)
    try:
        if hasattr(given[argument], "requires_grad_"):
            given[argument] = given[argument].detach().clone().requires_grad_(True)
            result = caller.run(given, a)
            if not result.requires_grad:
                raise Misbehaved("the result has no gradient: it was detached on the way")
            result.backward(caller.to(caller.laid_out(RESULT, flow, a).astype(np.float32)).to(result.dtype))
            return output(given[argument].grad)
        if type(given[argument]).__module__.startswith("jax"):
            jax = sys.modules["jax"]

            def of_argument(x: Any) -> Any:
                return caller.run(given | {argument: x}, a)

            result, back = jax.vjp(of_argument, given[argument])
            return output(back(caller.to(caller.laid_out(RESULT, flow, a).astype(np.float32)).astype(result.dtype))[0])
    except Misbehaved:
        raise
    except Exception as error:
        raise Misbehaved(f"differentiating it raised {raised(error)}") from error
    return None
