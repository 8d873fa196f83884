"""Name: what the engine found, as sentences of the report."""

import numpy as np

from posref.check.engine import Found, Question
from posref.check.report import Finding, Report
from posref.ops import Mistake


def named(report: Report, question: Question, got: np.ndarray, *, pairs: bool = False) -> Found:
    """Ask which mistake gave the output, and put what fits into the report."""
    found = question.ask(got, pairs=pairs)
    for name, worst in found.fits:
        parts = [question.op.mistakes[part] for part in name.split(" and ")]
        bugs = ", and ".join(mistake.bug for mistake in parts)
        sentence = f"your output equals {question.op.name} with the mistake {name}: {bugs}"
        report.diagnosis.append(Finding(name, sentence, "\n".join(map(_remedy, parts)), worst))
        report.advice += [line for line in map(_remedy, parts) if line not in report.advice]
    if len(found.fits) > 1:
        report.ambiguous.append("; ".join(found.names) + ": all give these numbers here.")
    report.nearest, report.ruled_out = list(found.nearest), found.tried
    return found


def _remedy(mistake: Mistake) -> str:
    return f"{mistake.description} {mistake.effect} {mistake.remedy}".strip()
