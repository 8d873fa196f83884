r"""Reading: the operator itself, from its impulse response and its phases.

Rotation is linear, so basis vectors show which features form a pair. With the pairs known, every pair of an output over the
same pair of the input is the complex number  magnitude e^{i phi},  and over positions 0, 1, 2, 4, .. the phases give
the frequencies by doubling: an estimate good to d at position p predicts the phase at 2p to 2pd, which is unwrapped and
gives d/2. The frequencies give base and factor, phi at 0 the offset, and one position after another what was used for it.
"""

from typing import NamedTuple

import numpy as np

from posref.check.call import Callee
from posref.check.rotation import Asked, Pairs, paired

ZERO = 2.0**-26  # below the smallest number of float16


class Impulse(NamedTuple):
    """Pairs as found, None if the features do not fall into pairs, and a sentence."""

    pairs: Pairs | None
    sentence: str


class Phases(NamedTuple):
    """Of every pair: `positions` `(m,)`, `phases` `(m, pairs)` in radians, one magnitude and its relative spread."""

    positions: np.ndarray
    phases: np.ndarray
    magnitude: float
    spread: float


class Fit(NamedTuple):
    """Frequencies as found, positive; sign +1 or -1; offset of the positions; base and factor of the fitted geometric law."""

    frequencies: np.ndarray
    sign: int
    offset: float
    base: float
    factor: float


def impulse(call: Callee, asked: Asked, limit: int) -> Impulse:
    """Which features reach which, from basis vectors at a few positions."""
    at = np.unique(np.minimum([0, 1, 2, 3, 19, 100, limit], limit))
    x = np.broadcast_to(np.eye(asked.dim)[:, None, None, :], (asked.dim, 1, len(at), asked.dim))
    response = np.abs(call(x, np.broadcast_to(at, (asked.dim, len(at)))))
    if response.shape != x.shape or not np.isfinite(response).all():
        return Impulse(None, "basis vectors give another shape or values that are not finite")
    return _grouped(response[:, 0], asked)


def _grouped(response: np.ndarray, asked: Asked) -> Impulse:
    """`response[i, p, j]`: how much of feature i of the input shows in feature j of the output, for a few positions p."""
    supports = [tuple(np.flatnonzero(row).tolist()) for row in response.max(axis=1) > ZERO]
    groups: dict[tuple[int, ...], list[int]] = {}
    for feature, support in enumerate(supports):
        if support != (feature,):
            groups.setdefault(support, []).append(feature)
    odd = [(inputs, support) for support, inputs in groups.items() if len(support) != 2 or len(inputs) != 2]
    if odd:
        inputs, support = odd[0]
        return Impulse(None, f"features {_few(inputs)} reach features {_few(support)}: not a pair that turns")
    if not groups:
        return Impulse(None, "no feature reaches another: nothing turns")
    ordered = sorted((inputs, support) for support, inputs in groups.items())
    (first, second), (to_first, to_second) = (np.array(side).T for side in zip(*ordered, strict=True))
    if not np.array_equal(first, to_first) and (response[first, 0, to_second] > response[first, 0, to_first]).mean() > 0.5:
        to_first, to_second = to_second, to_first  # the output is permuted, and at the first position it says how
    column = np.arange(len(first))
    pairs = Pairs(first, second, to_first, to_second, column, column)
    return Impulse(pairs, f"{_named(pairs, asked)}; {2 * len(first)} of {asked.dim} features turn")


def _few(features: tuple[int, ...] | list[int]) -> str:
    shown = ", ".join(str(int(f)) for f in features[:4])
    return f"({shown}{', ..' if len(features) > 4 else ''})"


def same_pairs(one: Pairs, other: Pairs) -> bool:
    """Equal features read and written."""
    return all(np.array_equal(a, b) for a, b in zip(one[:4], other[:4], strict=True))


def _named(pairs: Pairs, asked: Asked) -> str:
    width = 2 * len(pairs.first)
    for layout in ("half", "interleaved"):
        if same_pairs(pairs, paired(layout, width)):
            return f'pairs as in layout="{layout}"'
    return one_pair(pairs)


def one_pair(pairs: Pairs) -> str:
    """What pair 1 reads and writes; pair 0 if there is no other."""
    t = min(1, len(pairs.first) - 1)
    read, written = (int(pairs.first[t]), int(pairs.second[t])), (int(pairs.to_first[t]), int(pairs.to_second[t]))
    return f"pair {t} reads features {read} and writes {written}"


def phases(x: np.ndarray, y: np.ndarray, positions: np.ndarray, pairs: Pairs) -> Phases | None:
    """Phases from any x and y `(b, h, n, d)` at positions `(b, 1, n)`, heads averaged; None if pairs do not turn rigidly."""
    before = x[..., pairs.first] + 1j * x[..., pairs.second]
    after = y[..., pairs.to_first] + 1j * y[..., pairs.to_second]
    if not np.isfinite(after).all():
        return None
    ratio = (after * before.conj()).sum(axis=1) / (np.abs(before) ** 2).sum(axis=1)
    at = np.broadcast_to(positions, (x.shape[0], 1, x.shape[2]))[:, 0].reshape(-1)
    sizes = np.abs(ratio)
    magnitude = float(np.median(sizes))
    if magnitude == 0:
        return None
    spread = float(np.abs(sizes / magnitude - 1).max())
    return Phases(at, np.angle(ratio).reshape(len(at), -1), magnitude, spread)


def wrap(angle: np.ndarray) -> np.ndarray:
    """The same angle in [-pi, pi)."""
    return (angle + np.pi) % (2 * np.pi) - np.pi


def fit(read: Phases, limit: float = np.inf) -> Fit | None:
    """Frequencies by doubling along the positions up to `limit`; None without positions 0 and 1 or with nothing that turns."""
    order = [int(np.flatnonzero(read.positions == p)[0]) for p in np.unique(read.positions) if p <= limit]
    at, phase = read.positions[order], read.phases[order]
    if len(at) < 3 or at[0] != 0 or at[1] != 1:
        return None
    start, estimate = phase[0], wrap(phase[1] - phase[0])
    for p, row in zip(at[2:], phase[2:], strict=True):
        estimate = estimate + wrap(row - start - p * estimate) / p
    sign = 1 if np.median(estimate[: max(1, len(estimate) // 2)]) >= 0 else -1
    frequencies = sign * estimate
    if (frequencies <= 0).any():
        return None
    base, factor = geometric(frequencies)
    return Fit(frequencies, sign, sign * float(positions_of(start[None], estimate)[0]), base, factor)


def geometric(frequencies: np.ndarray) -> tuple[float, float]:
    """base and factor of factor base^(-2t/dim), least squares with weights that fall with the frequency."""
    if len(frequencies) == 1:
        return float("nan"), float(frequencies[0])
    t = np.arange(len(frequencies)) / len(frequencies)
    slope, intercept = np.polyfit(t, np.log(frequencies), 1, w=np.sqrt(frequencies))
    return float(np.exp(min(-slope, 100.0))), float(np.exp(intercept))


def positions_of(phase: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
    """The positions that phases `(m, pairs)` belong to, nearest to 0, from the slowest pair to the fastest.

    A slow pair places the position roughly, each faster one says where within its turn: mixed radix, as on a clock.
    """
    order = np.argsort(np.abs(frequencies))
    found = wrap(phase[:, order[0]]) / frequencies[order[0]]
    for t in order[1:]:
        found = found + wrap(phase[:, t] - frequencies[t] * found) / frequencies[t]
    return found


def limits(read: Phases, frequencies: np.ndarray, noise: float, relative: np.ndarray) -> tuple[list[int], list[int]]:
    """Where positions may be clamped, and moduli by which they may wrap: up to four of each that agree with all phases.

    Both lie between the last position before the first wrong one and that one. A phase may be off by `noise`, and by the
    fraction `relative` `(pairs,)` of its angle.
    """

    def agree(phase: np.ndarray, used: np.ndarray, t: int) -> np.ndarray:
        angle = used * frequencies[t]
        return np.abs(wrap(phase - angle)) <= noise + relative[t] * np.abs(angle)

    pairs = range(len(frequencies))
    right = np.all([agree(read.phases[:, t], read.positions, t) for t in pairs], axis=0)
    if right.all() or (read.positions != np.rint(read.positions)).any():
        return [], []
    first = int(read.positions[~right].min())
    low = int(read.positions[read.positions < first].max(initial=0))
    wrong_first = np.argsort(right, kind="stable")
    found = []
    for used_of in (np.minimum, np.mod):
        candidates = np.arange(max(low, 1), first + 1)
        for position, phase in zip(read.positions[wrong_first], read.phases[wrong_first], strict=True):
            for t in pairs if len(candidates) else ():
                candidates = candidates[agree(phase[t], used_of(int(position), candidates), t)]
        found.append(candidates[:4].tolist())
    return found[0], found[1]
