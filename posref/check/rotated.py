"""Rotated: golden cases of RoPE that are a rotation of something, as runs for `judge`.

rotate      R(m) x
tables      R(m) applied to pairs (1, 0) is (cos, sin); all first members stand before all second ones, layout "half"
gradient    R(-m) g
"""

from dataclasses import replace
from typing import Any

import numpy as np

from posref.check.rotation import Asked, correct
from posref.check.run import Hypothesis, Run
from posref.check.search import mistakes


def _rotate(case: Any, got: np.ndarray, models: tuple[str, ...]) -> Run:
    x, at = case.tensors["x"], case.tensors["positions"]
    if at.shape[-1] != x.shape[-2]:  # (batch, n, heads, d)
        x, got, at = np.swapaxes(x, 1, 2), np.swapaxes(got, 1, 2), np.swapaxes(at, 1, 2)
    return _run(case, x, at, got, models, case.params["layout"])


def _tables(case: Any, got: np.ndarray, models: tuple[str, ...]) -> Run:
    x = np.broadcast_to(np.repeat([1.0, 0.0], got.shape[-1] // 2), got.shape)
    run = _run(case, x, case.tensors["positions"], got, models, "half")
    said = {
        "half in, interleaved out": ("cos and sin alternate", "with cos and sin in alternating columns"),
        "sign": ("sin negated", "with -sin in place of sin"),
        "cos and sin swapped": ("sin first", "with sin before cos"),
    }
    remedy = "All cosines come first, (n, dim/2), then all sines; angles are +m theta."
    kept = [
        replace(h, name=said[h.name][0], sentence=said[h.name][1], remedy=remedy, same_as=()) if h.name in said else h
        for h in run.mistakes
        if h.name in said or h.kind not in ("pairs", "sign")
    ]
    return run._replace(mistakes=kept, subject="the tables of RoPE")


def _gradient(case: Any, got: np.ndarray, models: tuple[str, ...]) -> Run:
    run = _run(case, case.tensors["g"], case.tensors["positions"], got, models, case.params["layout"])
    forward = Hypothesis(
        "gradient turned forward",
        "sign",
        "turned by +m theta, as in the forward pass",
        "The transpose of R(m) is R(-m): negate the sine in the backward pass.",
        lambda asked, r: replace(r, form="rotation"),
    )
    kept = [forward, *(h for h in run.mistakes if h.kind != "sign")]
    return run._replace(start=replace(run.start, form="inverse"), mistakes=kept, subject="the gradient of RoPE")


def _run(case: Any, x: np.ndarray, at: np.ndarray, got: np.ndarray, models: tuple[str, ...], layout: str) -> Run:
    """Axes (batch, heads, n, dim) and positions (batch, 1, n)."""
    asked = Asked(x.shape[-1], case.params["dim"], case.params["base"], layout)
    lead = (1,) * (4 - x.ndim)
    x, got, at = x.reshape(lead + x.shape).astype(np.float64), got.reshape(lead + got.shape), at.reshape(_three(at.shape))
    return Run(asked, x, at, got, models, correct(asked), mistakes(asked, x.shape))


def _three(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (1,) * (3 - len(shape)) + shape


ROTATED = {"rotate": _rotate, "tables": _tables, "gradient": _gradient}
