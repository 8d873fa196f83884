"""Recipes: the ways in which float32 angles are computed. They differ at long positions, and even bfloat16 outputs show it."""

import numpy as np

from posref import pairing
from posref.check import precision
from posref.check.rotation import Asked, turn
from posref.check.run import Run
from posref.rotary import rope

f32 = np.float32


def recognized(run: Run, model: str) -> tuple[str, ...]:
    """The ways to compute float32 angles that explain most pairs, three quarters of them or more, but for later rounding.

    Libraries differ in the last bit of powers and exponentials, so the right recipe may miss a few pairs.
    """
    first, second = pairing.indices(run.asked.rotary_dim, run.asked.layout)
    turned = turn(run.start, run.x, run.positions)
    exact = precision.tolerance(turned.amp, turned.phase(), turned.y, "f64")
    explained = {}
    for name, angles in angle_recipes(run.asked, run.positions).items():
        y = rope.rotate(run.x, np.cos(angles), np.sin(angles), layout=run.asked.layout, rotary_dim=run.asked.rotary_dim)
        inside = np.abs(run.got - y) <= precision.tolerance(turned.amp, 0 * turned.amp, y, model) + exact
        explained[name] = (inside[..., first] & inside[..., second]).all(axis=(0, 1, 2)).mean()
    best = max(explained.values())
    return tuple(name for name, share in explained.items() if share == best >= 0.75)


def angle_recipes(asked: Asked, positions: np.ndarray) -> dict[str, np.ndarray]:
    """Angles `positions.shape + (pairs,)` as float64, computed exactly and in float32 ways, functions well rounded."""
    divisor, base, exact = asked.divisor, asked.base, asked.frequencies
    m, frequencies = positions.astype(f32), {"exact frequencies cast to float32": exact.astype(f32)}
    if asked.given is None:
        even = np.arange(0, asked.rotary_dim, 2).astype(f32)
        power = np.power(base, (even / f32(divisor)).astype(np.float64)).astype(f32)
        frequencies |= {
            "float32 1 / base**(2t/dim) (transformers)": f32(1) / power,
            "float32 exp(-2t ln(base)/dim)": np.exp((even * f32(-np.log(base) / divisor)).astype(np.float64)).astype(f32),
        }
    recipes = {"exact angles": positions[..., None] * exact}
    recipes |= {name: (m[..., None] * theta).astype(np.float64) for name, theta in frequencies.items()}
    if asked.given is not None:
        return recipes
    angle, steps, ratio = m, [], np.power(base, np.float64(f32(-2 / divisor))).astype(f32)
    for _ in range(asked.rotary_dim // 2):
        steps.append(angle)
        angle = angle * ratio
    recipes["float32 repeated multiplication (ggml)"] = np.stack(steps, axis=-1).astype(np.float64)
    return recipes
