"""Judge: are the values right; if so, in which precision and from what they cannot be told; if not, what are they?"""

import numpy as np

from posref.check import precision, reading, recipes, search
from posref.check.call import Callee, Misbehaved
from posref.check.report import Precision, Report
from posref.check.rotation import Pairs, moving, ratios, residual, turn
from posref.check.run import Run, fitness


def judge(report: Report, run: Run, call: Callee | None) -> None:
    """Add the check "values" and what follows from it; with `call`, the impulse response helps to find the mistake."""
    if _values(report, run):
        _blind_spots(report, run)
    else:
        search.explain(report, run, None if call is None else _impulse(report, call, run))


def _values(report: Report, run: Run) -> bool:
    turned = turn(run.start, run.x, run.positions)
    for model in run.models:
        worst = residual(run.got, turned, model)
        if worst <= 1:
            report.passed("values", f"within the bound, at most {worst:.2g} of it")
            angles = recipes.recognized(run, model) if run.start.form == "rotation" else ()
            report.precision = Precision(model, worst, precision.MEANING[model], angles)
            return True
    ratio = ratios(run.got, turned, run.models[-1])
    b, h, n, feature = np.unravel_index(int(np.argmax(ratio)), ratio.shape)
    at = np.broadcast_to(run.positions, ratio.shape[:-1])
    report.failed(
        "values",
        f"at batch {b}, head {h}, row {n}, feature {feature} (position {at[b, h, n]}) it is "
        f"{run.got[b, h, n, feature]:.9g}, expected {turned.y[b, h, n, feature]:.9g}, an error of {ratio.max():.3g} times the "
        f"bound of {run.models[-1]}; first wrong at position {at[(ratio > 1).any(axis=-1)].min()}, "
        f"{(ratio > 1).sum()} of {ratio.size} values differ",
    )
    return False


def _impulse(report: Report, call: Callee, run: Run) -> Pairs | None:
    try:
        found = reading.impulse(call, run.asked, int(run.positions.max()))
    except Misbehaved as error:
        report.skipped("impulse response", str(error))
        return None
    if found.pairs is not None and reading.same_pairs(found.pairs, moving(run.start).pairs):
        report.passed("impulse response", found.sentence)
    else:
        report.failed("impulse response", found.sentence)
    return found.pairs


def _blind_spots(report: Report, run: Run) -> None:
    """Mistakes that would have given the same output on this data."""
    seen = run._replace(got=turn(run.start, run.x, run.positions).y, models=run.models[:1])
    limit = int(run.positions.max())
    blind = [h.name for h in run.mistakes if fitness(seen, h.change(run.asked, run.start)) <= 1]
    rest = [name for name in blind if not name.startswith(("positions clamped", "positions modulo"))]
    if rest:
        more = f"; and {len(rest) - 12} more" if len(rest) > 12 else ""
        report.ambiguous.append(f"this data cannot tell {run.subject} as asked from: {'; '.join(rest[:12])}{more}.")
    if limit < 1_000_000:
        report.ambiguous.append(f"positions beyond {limit} were not tested.")
