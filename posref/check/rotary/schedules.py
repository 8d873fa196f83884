"""Schedules: RoPE's frequencies by the name of their scaling, its mistakes, and which schedule given frequencies are."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from inspect import Parameter, signature
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from posref import ops
from posref.check import fitted
from posref.check.engine import NO_ANSWER
from posref.check.other_settings import as_exponent, instead
from posref.ops import Mistake, using
from posref.ops.probe import completed
from posref.rotary import rope

NAMES = ("linear", "ntk", "dynamic_ntk", "yarn", "llama3", "longrope", "proportional")
BASES = (1e4, 5e5, 1e6)  # of released models; NTK shows base and factor as one number
LENGTHS = tuple(2**power for power in range(9, 21))  # tokens of training
DIGITS = (1, 2, 3)  # of a base and a factor that somebody chose


class Known(NamedTuple):
    """A schedule by its name, its settings, and its frequencies."""

    name: str
    settings: dict[str, Any]
    frequencies: np.ndarray

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{name}={_said(value)}' for name, value in self.settings.items())})"


def asked(
    schedule: str, dim: int, base: float, settings: dict[str, Any]
) -> tuple[np.ndarray, dict[str, Mistake], dict[str, Mistake]]:
    """The frequencies of a schedule, its mistakes as those of "rope.rotate", and the schedule with other settings. ValueError
    for missing or unknown settings."""
    op = ops.op(f"scaling.{schedule}")
    own = {name: p.default for name, p in signature(op.spec).parameters.items() if name not in ("dim", "base")}
    absent = [name for name, default in own.items() if default is Parameter.empty and name not in (*settings, "length")]
    unknown = [name for name in settings if name not in own]
    if absent or unknown:
        words = [f"{verb} {', '.join(names)}" for verb, names in (("needs", absent), ("has no", unknown)) if names]
        length = "; original_length is original_max_position_embeddings" if "original_length" in own else ""
        raise ValueError(f"check.check_rope: schedule {schedule} {' and '.join(words)}; it takes {', '.join(own)}{length}")
    arrays = {name: np.asarray(value, dtype=float) if isinstance(value, list) else value for name, value in settings.items()}
    a = completed(op.spec, {**arrays, "dim": dim, "base": base})
    right, found, plain = op.spec(**a), {}, rope.frequencies(dim, base)
    twice = {name: mistake for name, mistake in fitted.of_steps(op.spec, a) if name.endswith("_twice")}
    rarer, cause = {**ops.further(op), **twice}, ""
    for name, mistake in {**rarer, **op.mistakes}.items():
        with suppress(*NO_ANSWER), np.errstate(all="ignore"):
            wrong, bug = mistake.wrong(op.spec, a), mistake.bug
            if name in rarer and np.allclose(wrong, plain, rtol=1e-12, atol=0):
                cause = cause or f", or {bug}"
                continue
            bug += cause * (name == "unscaled")
            found[name] = mistake._replace(wrong=using(frequencies=wrong), bug=bug, kind="base", only="")
    return right, found, dict(_other_settings(op, a))


def _other_settings(op: ops.Op, a: ops.Arguments) -> Iterator[tuple[str, Mistake]]:
    """The schedule with another value of one setting, or with two settings exchanged."""
    names = [
        name for name in signature(op.spec).parameters if type(a.get(name)) in (int, float) and name not in ("dim", "fraction")
    ]
    changes = {words: {name: value} for name in names for words, value in instead(name, a, op)}
    factors = [float(2**power) for power in range(1, 7)] if "factor" in names else []
    changes |= {f"factor {factor:g}": {"factor": factor} for factor in factors if factor != a.factor}
    changes |= {f"{one} and {other} exchanged": {one: a[other], other: a[one]} for one, other in combinations(names, 2)}
    if {"factor", "original_length"} <= {*names}:
        longer = a.factor * a.original_length
        changes[f"original_length {longer:.10g}"] = {"original_length": longer}
    for words, change in changes.items():
        with suppress(*NO_ANSWER), np.errstate(all="ignore"):
            made, remedy = op.spec(**a | change), f"Pass {', '.join(change)} on as configured."
            power = as_exponent(change["base"], a.base) if [*change] == ["base"] else ""
            said = ", ".join(f"{name}={_said(a[name])}" for name in change)
            bug = f"{words}{power}{',' * bool(power)} in the schedule; you asked for {said}"
            yield words, Mistake(using(frequencies=made), bug, remedy=remedy, kind="setting")


def known(frequencies: np.ndarray, bases: Iterable[float], digits: int, near: float = 1e-3) -> Iterator[Known]:
    """Schedules whose frequencies equal these within `near`, relatively, with a factor of this many digits."""
    dim, turning = 2 * len(frequencies), frequencies > 0
    for base in dict.fromkeys(bases):
        last = np.flatnonzero(turning)[-1]
        factor = float(f"{base ** (-2 * last / dim) / frequencies[last]:.{digits}g}")
        for name, settings in _settings(factor, turning):
            with suppress(*NO_ANSWER):
                made = ops.op(f"scaling.{name}").spec(dim=dim, base=base, **settings)
                if np.allclose(made, frequencies, rtol=near, atol=0):
                    yield Known(name, {"base": base, **settings}, made)


def first_base(frequencies: np.ndarray, digits: int) -> float:
    """The base that the first two frequencies show; most schedules keep these two, or divide both alike."""
    first, second = frequencies[:2]
    with np.errstate(all="ignore"):
        base = (first / second) ** len(frequencies)
    return float(f"{base:.{digits}g}") if 1 < base < 1e30 else BASES[0]


def named(frequencies: np.ndarray) -> Known | None:
    """The schedule that given frequencies are, within float32 rounding; of several, the one with the fewest digits. Or None."""
    if len(frequencies) < 2 or not (frequencies[:2] > 0).all():
        return None
    found = (each for digits in DIGITS for each in known(frequencies, (first_base(frequencies, digits), *BASES), digits, 1e-5))
    return next(found, None)


def parts(frequencies: np.ndarray) -> Iterator[tuple[str, np.ndarray, np.ndarray, float]]:
    """Both parts of a schedule that keeps fast frequencies, blends, and divides slow ones: the share of each frequency that is
    of this part, what the other part adds, and the factor. Nothing for another schedule."""
    plain = frequencies[0] * (frequencies[1] / frequencies[0]) ** np.arange(len(frequencies))
    left = frequencies / plain
    kept = np.round((left - left[-1]) / (1 - left[-1]), 9) if left[-1] < 0.99 else left
    if np.abs(kept[:3] - 1).max() <= 1e-6 and np.abs(kept[-3:]).max() <= 1e-6:
        yield "keeps", kept * plain[0], (1 - kept) * plain * left[-1], 1 / left[-1]
        yield "divides", (1 - kept) * left[-1] * plain[0], kept * plain, 1 / left[-1]


def _settings(factor: float, turning: np.ndarray) -> Iterator[tuple[str, dict[str, Any]]]:
    """Schedules with this factor, and with the other settings that configurations usually have."""
    if not turning.all():
        yield "proportional", {"fraction": float(turning.mean()), "factor": factor}
        return
    if factor == 1:  # not scaled
        return
    yield from (("linear", {"factor": factor}), ("ntk", {"factor": factor}))
    for length in LENGTHS:
        given = {"factor": factor, "original_length": length}
        yield "llama3", {**given, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
        yield from (("yarn", {**given, "truncate": truncate}) for truncate in (True, False))


def _said(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value) if np.ndim(value) == 0 else f"{len(value)} numbers"
