"""Wrong answers: what known mistakes give in golden cases that are no rotation, to compare an output with."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from posref import pairing, vectors
from posref.check import precision, reading
from posref.check.rotation import Asked, angles, correct, powers
from posref.check.run import Hypothesis, Outcome, joined
from posref.check.search import mistakes
from posref.check.wrong_numbers import based
from posref.check.wrong_pairs import other
from posref.check.wrong_positions import FACTORS, scaled
from posref.rotary import layouts, rope


def wrong_answers(case: Any, got: np.ndarray, models: tuple[str, ...]) -> Iterator[Outcome]:
    """Every mistake that is known for this case, and how well it fits."""
    system = case.id.split("/")[0]
    if (system, case.op) in (("rope", "inv_freq"), ("sinusoidal", "frequencies")):
        yield from _frequencies(case, got, models)
    elif system == "rope" and case.op in ANSWERS:
        for name, sentence, remedy, values in ANSWERS[case.op](case):
            wrong = Hypothesis(name, "answer", sentence, remedy, lambda asked, r: r)
            residual = min(vectors.error(case._replace(expected=values), got, model) for model in models)
            yield Outcome(wrong, residual, frozenset([name]))


def _frequencies(case: Any, got: np.ndarray, models: tuple[str, ...]) -> Iterator[Outcome]:
    """Frequencies are the angles at position 1, so whatever changes them as part of a rotation can be tried."""
    dim = case.params["dim"]
    divisor = max(dim - 2, 1) if case.params.get("divisor") == "dim - 2" else dim
    asked = Asked(dim, dim, case.params["base"], "half", divisor)
    start, one, shape = correct(asked), np.ones((1, 1, 1)), (1, 1, 1, dim)
    for h in _of_frequencies(asked, got):
        wrong = h.change(asked, start)
        theta = angles(wrong, one, shape).reshape(-1)
        phase = theta * precision.phase_growth(wrong.frequencies)
        bounds = (precision.tolerance(0, phase, theta, m) + precision.tolerance(0, phase, theta, "f64") for m in models)
        residual = min(float(precision.in_bounds(np.abs(got - theta), bound).max()) for bound in bounds)
        yield Outcome(replace(h, claim="equals the frequencies"), residual, frozenset(h.name.split(" and ")))


def _of_frequencies(asked: Asked, got: np.ndarray) -> Iterator[Hypothesis]:
    for h in mistakes(asked, (1, 1, 1, asked.dim)):
        if h.kind == "frequencies" or h.name.startswith("frequencies in"):
            yield h
    yield from (_times(factor) for factor in FACTORS)
    if len(got) > 2 and (got > 0).all():
        base, factor = reading.geometric(got)
        for digits in (1, 2, 3, 4, 6, 9):
            plain = float(f"{base ** (asked.divisor / asked.dim):.{digits}g}")
            if plain != asked.base:
                yield based(plain, asked)
                yield _both(based(plain, asked), _times(float(f"{factor:.{digits}g}")))
            yield _times(float(f"{factor:.{digits}g}"))


def _times(factor: float) -> Hypothesis:
    name = f"frequencies times {factor:g}"
    return replace(scaled(factor), name=name, sentence=f"times {factor:g}", same_as=())


def _both(first: Hypothesis, second: Hypothesis) -> Hypothesis:
    return replace(joined((first, second)), change=lambda asked, r: second.change(asked, first.change(asked, r)))


Answer = tuple[str, str, str, np.ndarray]  # name, sentence, remedy, values


def _gradient_tables(case: Any) -> Iterator[Answer]:
    g, cos, sin = (case.tensors[name] for name in ("g", "cos", "sin"))
    a, b = pairing.split(g, case.params["layout"])
    turned = pairing.join(-b, a, case.params["layout"])
    yield "gradient turned forward", "with the sign of the forward pass", "Negate the sine.", g * cos + turned * sin
    yield (
        "gradient turned before the product",
        "g cos - turned(g) sin; it is g cos - turned(g sin)",
        "Multiply by the sine first, then exchange the members of every pair.",
        g * cos - turned * sin,
    )


def _permute(case: Any) -> Iterator[Answer]:
    weight, heads, source, target = case.tensors["weight"], *(case.params[name] for name in ("heads", "source", "target"))
    head_dim = len(weight) // heads

    def moved(heads: int, width: int, source: str = source, target: str = target) -> np.ndarray:
        return layouts.permute_projection(weight, heads=heads, rotary_dim=width, source=source, target=target)

    dim = case.params["dim"]
    yield "not permuted", "with the rows as they were", "Permute the rows of every head.", weight
    yield "permuted back", f"from {target} to {source}", "Use the inverse permutation.", moved(heads, dim, target, source)
    if dim < head_dim:
        remedy = f"Permute {dim} rows of every head and leave the other {head_dim - dim}."
        yield "rows permuted that pass", f"with all {head_dim} rows of a head permuted", remedy, moved(heads, head_dim)
    for count in range(1, len(weight) // 2 + 1):
        if count != heads and len(weight) % (2 * count) == 0:
            sentence = f"permuted as if there were {count} heads"
            remedy = f"These are {heads} heads; k has its own number of them."
            yield f"permuted as {count} heads", sentence, remedy, moved(count, len(weight) // count)


def _scores(case: Any) -> Iterator[Answer]:
    p, q, k = case.params, case.tensors["q"], case.tensors["k"]
    rows, columns = case.tensors["q_positions"], case.tensors["k_positions"]
    theta, group = powers(p["base"], p["dim"] // 2, p["dim"]), p["heads"] // p["key_heads"]
    repeated, tiled = np.arange(p["heads"]) // group, np.arange(p["heads"]) % p["key_heads"]

    def scores(
        q_at: np.ndarray = rows, k_at: np.ndarray = columns, layout: Any = p["layout"], heads: np.ndarray = repeated
    ) -> np.ndarray:
        q_turned = rope.rotate(q, *rope.tables(q_at, theta), layout=layout)
        k_turned = rope.rotate(k[:, heads], *rope.tables(k_at, theta), layout=layout)
        return p["scale"] * (q_turned @ np.swapaxes(k_turned, -1, -2))

    wrong = other(p["layout"])
    remedy = "Rotate q and k alike, each at its own positions."
    yield f"layout {wrong}", f'with layout="{wrong}"', f'Pair features as layout="{p["layout"]}".', scores(layout=wrong)
    yield "sign", "turned the other way", "Use (a cos - b sin, a sin + b cos).", scores(-rows, -columns)
    yield "no rotation", "at position 0 everywhere", remedy, scores(0 * rows, 0 * columns)
    yield "queries not rotated", "with k turned and q not", remedy, scores(0 * rows)
    yield "keys not rotated", "with q turned and k not", remedy, scores(rows, 0 * columns)
    yield (
        "queries left aligned",
        "with the queries at the positions of the first keys",
        "The queries are the last tokens.",
        scores(columns[: len(rows)]),
    )
    yield (
        "heads modulo key_heads",
        "where query head a uses key head a mod key_heads",
        "Repeat key heads, do not tile them: floor(a key_heads / heads).",
        scores(heads=tiled),
    )
    yield "scale missing", "without the scale", f"Multiply by {p['scale']:g}.", scores() / p["scale"]


ANSWERS = {"gradient_tables": _gradient_tables, "permute": _permute, "scores": _scores}
