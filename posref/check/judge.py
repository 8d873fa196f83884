"""Judge: are the values right; if so, in which precision and from what they cannot be told; if not, what are they?"""

import numpy as np

from posref.check import precision, reading, recipes, search
from posref.check.call import Callee, Misbehaved
from posref.check.hypotheses import all_hypotheses
from posref.check.report import Precision, Report
from posref.check.rotation import Pairs, correct, ratios, residual, turn
from posref.check.run import Run, fitness


def judge(report: Report, run: Run, call: Callee | None) -> None:
    """Add the check "values" and what follows from it; with `call`, the impulse response helps to find the mistake."""
    if _values(report, run):
        _blind_spots(report, run)
    else:
        search.explain(report, run, None if call is None else _impulse(report, call, run))


def _values(report: Report, run: Run) -> bool:
    turned = turn(correct(run.asked), run.x, run.positions)
    for model in run.models:
        worst = residual(run.got, turned, model)
        if worst <= 1:
            report.passed("values", f"within the bound, at most {worst:.2g} of it")
            report.precision = Precision(model, worst, precision.MEANING[model], recipes.recognized(run, model))
            return True
    ratio = ratios(run.got, turned, run.models[-1])
    b, h, n, feature = np.unravel_index(int(np.argmax(ratio)), ratio.shape)
    at = np.broadcast_to(run.positions, ratio.shape[:-1])
    report.failed(
        "values",
        f"worst error {ratio.max():.3g} times the bound of {run.models[-1]}, at batch {b}, head {h}, row {n}, "
        f"feature {feature} (position {at[b, h, n]}); first wrong at position {at[(ratio > 1).any(axis=-1)].min()}, "
        f"{(ratio > 1).mean():.0%} of the values",
    )
    return False


def _impulse(report: Report, call: Callee, run: Run) -> Pairs | None:
    try:
        found = reading.impulse(call, run.asked, int(run.positions.max()))
    except Misbehaved as error:
        report.skipped("impulse response", str(error))
        return None
    asked = correct(run.asked).pairs
    if found.pairs is not None and reading.same_pairs(found.pairs, asked):
        report.passed("impulse response", found.sentence)
    else:
        report.failed("impulse response", found.sentence)
    return found.pairs


def _blind_spots(report: Report, run: Run) -> None:
    """Mistakes that would have given the same output on this data."""
    seen = run._replace(got=turn(correct(run.asked), run.x, run.positions).y, models=run.models[:1])
    limit, blind = int(run.positions.max()), []
    for h in all_hypotheses(run.asked):
        changed = h.change(run.asked, correct(run.asked))
        if h.axis is not None and run.x.shape[h.axis] == 1:
            continue
        if fitness(seen, changed) <= 1:
            blind.append(h.name)
    rest = [name for name in blind if not name.startswith(("positions clamped", "positions modulo"))]
    if rest:
        more = f"; and {len(rest) - 12} more" if len(rest) > 12 else ""
        report.ambiguous.append(f"this data cannot tell RoPE as asked from: {'; '.join(rest[:12])}{more}.")
    if limit < 1_000_000:
        report.ambiguous.append(f"positions beyond {limit} were not tested.")
