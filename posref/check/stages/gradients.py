"""Gradients: compares automatic differentiation of the implementation with the gradient of the specification."""

import importlib
import re
import sys
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from posref import ops
from posref.check import engine
from posref.check.call import RESULT, Misbehaved, output, raised
from posref.check.ranged import models
from posref.check.report import Finding, Report
from posref.check.stages.later_questions import features
from posref.check.verdict import WRITES, judged
from posref.ops import Arguments, Op
from posref.ops.probe import painted

LEAVES_TORCH = {"numpy", "__array__", "tolist", "data_ptr", "__dlpack__"}  # what comes back has no way through autograd


def check_gradient(report: Report, caller: Any, op: Op, a: Arguments) -> None:
    """Compare the gradient through torch or jax with the gradient op of the system; without such an op, along directions."""
    if _severed(report, caller, op, a):
        return
    system, name = op.name.split(".")
    of = getattr(importlib.import_module(f"posref.ops.{system}"), "GRADIENTS", {}).get(name)
    if of is None:
        _along_directions(report, caller, op, a)
        return
    gradient, argument = ops.op(f"{system}.{of[0]}"), of[1]
    flow = _flow(op, a)
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
    report.advice += [advice for advice in part.advice if advice != WRITES]


STEP = 2.0**-16  # of the central difference, whose error is 2^-32 of the third derivative
LOOSE = 2.0**-6  # of the sizes of all terms: float32, and masked weights that differ by rounding, stay far below it


def _along_directions(report: Report, caller: Any, op: Op, a: Arguments) -> None:
    """Compare the gradient along one direction per array of features with the specification's central difference."""
    torch: Any = sys.modules.get("torch")
    names = [name for name in features(op, a) if _used(op, a, name)] if torch is not None and torch.is_grad_enabled() else []
    given = caller.tensors(a)
    names = [name for name in names if isinstance(given.get(name), torch.Tensor)]
    if not names or "gradient" in op.tags or caller.dtype not in ("float32", "float64"):
        return
    flow = _flow(op, a)
    for name in names:
        try:
            got = _through(caller, op, a, name, flow)
        except Misbehaved as error:
            report.skipped("gradient", str(error))
            return
        direction = painted(a[name].shape, 7)
        ends = [(op.spec(**a | {name: a[name] + step * direction}) * flow).sum() for step in (STEP, -STEP)]
        expected = float(ends[0] - ends[1]) / (2 * STEP)
        if got is None or not np.isfinite(expected):
            continue
        terms = caller.restored(got, a, name) * direction
        if abs(terms.sum() - expected) <= LOOSE * (np.abs(terms).sum() / terms.size**0.5 + abs(expected)):
            continue
        report.failed("gradient", f"with respect to {name} it is {terms.sum():.6g} along a direction, expected {expected:.6g}")
        factor = terms.sum() / expected if expected else 0
        known = {1 / a["scale"]: "not scaled", a["scale"]: "scaled twice", -1: "negated"} if "scale" in a else {-1: "negated"}
        words = next((words for number, words in known.items() if abs(factor / number - 1) < LOOSE), "wrong")
        sentence = f"the gradient of your output with respect to {name} is {words}; the values are right"
        report.diagnosis.append(Finding(f"gradient_{words.replace(' ', '_')}", sentence, ""))
        report.advice.append(f"Compare the backward pass for {name} with the derivative of the forward pass.")
        return
    report.passed("gradient", f"along a direction of {', '.join(names)}")


def _flow(op: Op, a: Arguments) -> np.ndarray:
    """A gradient of the loss with respect to the result; 0 where the result has no meaning and may depend on anything."""
    return np.where(op.meant(a), painted(np.shape(op.spec(**a)), 2), 0)


def _of_the_gradient(finding: Finding, argument: str) -> Finding:
    """A finding about an output, reworded for its gradient; the values are right."""
    sentence = finding.sentence.replace("your output", f"the gradient of your output with respect to {argument}")
    return replace(
        finding, sentence=re.sub("nothing was computed.*", "it was lost on the way, and the values are right", sentence)
    )


def _severed(report: Report, caller: Any, op: Op, a: Arguments) -> bool:
    """Whether there is no gradient to compare. No path from the result back to features that it depends on is a failure.

    A function that runs without autograd as a whole, in numpy or under no_grad, is for inference: the report only says so.
    """
    names = features(op, a)
    torch: Any = sys.modules.get("torch")
    if not names or "gradient" in op.tags or torch is None or not torch.is_grad_enabled():
        return False
    given = caller.tensors(a)
    if not all(isinstance(given.get(name), torch.Tensor) for name in names):
        return False
    leaves = {name: given[name].detach().clone().requires_grad_(True) for name in names}

    class Recorded(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        """Records the functions that run with autograd."""

        def __init__(self) -> None:
            super().__init__()
            self.ran = list[str]()

        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name = getattr(function, "__name__", "")
            self.ran += [name] if torch.is_grad_enabled() and "set_grad_enabled" not in name else []
            return function(*args, **kwargs or {})

    try:
        with Recorded() as recorded, warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="posref")  # those of the function stay
            result = caller.run(given | leaves, a)
        if not isinstance(result, torch.Tensor) or not result.is_floating_point():
            return False
        if not result.requires_grad and (result.is_inference() or {*recorded.ran} & LEAVES_TORCH or not recorded.ran):
            report.skipped("gradient", "the function runs without autograd")
            return True
        found = (
            torch.autograd.grad(result.sum(), [*leaves.values()], allow_unused=True)
            if result.requires_grad
            else [None] * len(names)
        )
    except Exception as error:
        report.skipped(
            "gradient", str(error) if isinstance(error, Misbehaved) else f"differentiating it raised {raised(error)}"
        )
        return True
    lost = [name for name, gradient in zip(names, found, strict=True) if gradient is None and _used(op, a, name)]
    if lost:
        words = " and ".join(lost)
        report.failed("gradient", f"the result does not depend on {words} by autograd: a gradient was expected")
        sentence = f"your output has no gradient with respect to {words}: it was detached on the way, and the values are right"
        report.diagnosis.append(Finding("gradient_severed", sentence, ""))
        remedy = "Remove detach() and .data from the way of the features"
        report.advice.append(f"{remedy}; a function for inference alone runs under torch.no_grad().")
    return bool(lost)


def _used(op: Op, a: Arguments, name: str) -> bool:
    """Whether the right answer depends on this argument."""
    return not np.allclose(
        op.spec(**a), op.spec(**a | {name: a[name] * (1 + painted(a[name].shape, 5) / 8)}), rtol=1e-3, atol=1e-5
    )


def _through(caller: Any, op: Op, a: Arguments, argument: str, flow: np.ndarray) -> np.ndarray | None:
    """The gradient of sum(result * flow) with respect to one argument; None if the tensors have no gradients."""
    given = caller.tensors(a)
    try:
        if hasattr(given[argument], "requires_grad_"):
            given[argument] = given[argument].detach().clone().requires_grad_(True)
            result = caller.run(given, a)
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
