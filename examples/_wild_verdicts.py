"""How a verdict of the wall is reached."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from posref import pairing
from posref.check import check, check_rope

GPT_OSS = {"factor": 32.0, "original_length": 4096, "base": 150000.0, "beta_fast": 32.0, "beta_slow": 1.0}


def rotation(fn: Callable, **settings: Any) -> str:
    """The layout that it turns out to have, or what differs from the rotation asked for."""
    reports = {layout: check_rope(fn, layout=layout, **settings) for layout in pairing.LAYOUTS}
    for layout, report in reports.items():
        if report.ok:
            return f"agrees: layout {layout}, {report.precision.model}"
    return differs(*reports.values())


def differs(*reports: Any) -> str:
    """The shortest diagnosis; where there is none, what was found at the first wrong element."""
    found = [[re.sub(EQUALS, "", claim.sentence) for claim in report.diagnosis] for report in reports if report.diagnosis]
    failed = next(check.detail for report in reports for check in report.checks if check.status == "failed")
    shortest = " and ".join(min(found, key=lambda sentences: len("".join(sentences)), default=()))
    return f"differs: {shortest or re.sub(TOLERANCE, '', failed)}"


EQUALS = re.compile(r"^your output equals \S+ with (the mistakes? [^:]*: )?")
TOLERANCE = re.compile(r" \([^)]* times what rounding in [\w-]+ allows\)")


def numbers(found: Any, expected: Any, otherwise: str = "") -> str:
    """The largest difference relative to the largest number; float32 explains 1e-4 of an angle of some thousands."""
    found, expected = np.asarray(found, dtype=float), np.asarray(expected, dtype=float)
    error = np.abs(found - expected).max() / np.abs(expected).max()
    if error == 0:
        return "agrees exactly"
    return f"agrees to {error:.0e}" if error < 2e-4 else f"differs by {error:.2g} of the largest value{otherwise}"


def asked(fn: Callable, name: str, **settings: Any) -> str:
    """The precision that a function has as an op, or what differs from it; its tensors are of torch unless `to` is given."""
    report = check(fn, name, **{"to": tensor} | settings)
    return f"agrees: {report.precision.model}" if report.ok else differs(report)


def tensor(values: np.ndarray) -> Any:
    import torch

    return torch.from_numpy(values)


def double(values: np.ndarray) -> Any:
    return tensor(values).double()


def array(x: Any) -> np.ndarray:
    """A tensor of torch in float64."""
    return x.detach().double().numpy()
