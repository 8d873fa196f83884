"""Angles: which way of computing RoPE's float32 angles an output shows. The ways differ at long positions, even in bfloat16."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from posref import pairing
from posref.check.engine import Question, lifted
from posref.check.ranged import Ranged, allowed, units
from posref.ops import Arguments, inside
from posref.rotary import rope

f32 = np.float32


def recognized(question: Question, got: np.ndarray, model: str) -> tuple[str, ...]:
    """The ways to compute float32 angles that explain the most pairs, at least three quarters of them; later rounding is
    allowed.

    Libraries differ in the last bit of powers and exponentials, so the right way may miss a few pairs.
    """
    if "rotation" not in question.op.tags:
        return ()
    a, u, explained = question.a, units(model), {}
    first, second = pairing.indices(a.dim, a.layout.split("_to_")[-1])
    for name, recipe in _recipes(a).items():
        y, bounds = allowed(inside(rope, "tables", _tables(recipe, u))(question.op.spec, lifted(a, u)), u)
        fits = (np.abs(got - y) <= 2 * bounds[model]).all(axis=tuple(range(got.ndim - 1)))  # a library's cos is off by twice u
        explained[name] = (fits[first] & fits[second]).mean()
    best = max(explained.values())
    return tuple(name for name, share in explained.items() if share == best >= 0.75)


def _tables(recipe: Callable[..., Any], u: Any) -> Callable[..., Any]:
    def tables(positions: Any, w: Any) -> tuple[Any, Any]:
        angle = Ranged(recipe(positions).astype(float), u)
        return np.cos(angle), np.sin(angle)

    return lambda right: tables


def _recipes(a: Arguments) -> dict[str, Callable[..., Any]]:
    """Angles from positions, by name: exact, and in several float32 ways whose functions are correctly rounded."""
    divisor, even = a.exponent_dim or a.dim, np.arange(0, a.dim, 2)
    exact = a.base ** (-even / divisor) if a.frequencies is None else a.frequencies
    frequencies = {"exact frequencies cast to float32": exact.astype(f32)}
    if a.frequencies is None:
        power = np.power(a.base, (even.astype(f32) / f32(divisor)).astype(float)).astype(f32)
        frequencies |= {
            "float32 1 / base**(2t/dim) (transformers)": f32(1) / power,
            "float32 exp(-2t ln(base)/dim)": np.exp((even.astype(f32) * f32(-np.log(a.base) / divisor)).astype(float)).astype(
                f32
            ),
        }
    recipes: dict[str, Callable[..., Any]] = {name: partial(_product, theta=theta) for name, theta in frequencies.items()}
    if a.frequencies is None:
        ratio = np.power(a.base, np.float64(f32(-2 / divisor))).astype(f32)
        recipes["float32 repeated multiplication (ggml)"] = lambda p: _repeated(p.astype(f32), ratio, len(even))
    return {"exact angles": lambda p: p[..., None] * exact} | recipes


def _product(positions: np.ndarray, theta: np.ndarray) -> np.ndarray:
    return positions.astype(f32)[..., None] * theta


def _repeated(angle: np.ndarray, ratio: np.float32, pairs: int) -> np.ndarray:
    steps = [angle]
    for _ in range(pairs - 1):
        steps.append(steps[-1] * ratio)
    return np.stack(steps, axis=-1)
