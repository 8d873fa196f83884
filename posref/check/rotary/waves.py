"""Waves: sinusoidal embeddings as tables of RoPE, cosines then sines, so that the stages for tables explain them."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from posref import ops, pairing
from posref.check.engine import Named, Question
from posref.check.rotary import phases
from posref.ops import Arguments, Mistake


def stages(question: Question, got: np.ndarray) -> Iterator[Iterable[Named]]:
    """The stages of the tables that are in this result, as mistakes of the sinusoid."""
    a, op = question.a, ops.op("rope.tables")
    if "waves" not in question.op.tags or got.shape != question.right.shape or a.zeros:
        return
    inner = Question(op, _tables(a), question.models)
    pairs = pairing.split(got, layout=a.layout)
    tables = np.concatenate(pairs if a.order == "cos_sin" else pairs[::-1], axis=-1)
    for stage in ({**op.mistakes, **op.further}.items(), *phases.stages(inner, tables)):
        yield [(name, _of_wave(mistake)) for name, mistake in stage]


def _tables(a: Any) -> Arguments:
    positions = a.positions if a.factor == 1 else a.factor * a.positions
    over = {"dim": None, "dim - 2": a.dim - 2}[a.divisor]
    given = {"positions": positions, "dim": a.dim, "base": a.base, "exponent_dim": over, "frequencies": None}
    return Arguments(given, magnitude=1, sign=1)


def _of_wave(mistake: Mistake) -> Mistake:
    def wrong(f: Any, a: Any) -> Any:
        y = mistake.wrong(ops.op("rope.tables").spec, _tables(a))
        half = a.dim // 2
        cos, sin = y[..., :half], y[..., half:]
        return pairing.join(*((cos, sin) if a.order == "cos_sin" else (sin, cos)), a.layout)

    return mistake._replace(wrong=wrong)
