"""Claims: what introductions and papers say about position, and what is true.

A claim of SAID has a source, and is a row of `posref/facts/claims.json`. Words in quotation marks are the words of that source;
all other words are a summary. The verdict rests on `by`: a theorem ("rotary.rope.relative"), a refuted control of a theorem
("rotary.rope.relative/relative_with_two_schedules"), or a command that shows it. A `witness` in the file is an expression that
is true; the tests evaluate it. A row without truth or witness takes them from its control.

Claims without a source are posref's own: false sentences near a theorem, each with its counterexample. Nobody said them, so
they never stand in quotation marks.
"""

from typing import NamedTuple

from posref import facts
from posref.statements import statements

SOURCES = {**facts.read("claims")["sources"], "": "posref: false sentences near its theorems, each with a counterexample"}
VERDICTS = ("right", "imprecise", "wrong", "undecided")


class Claim(NamedTuple):
    """A claim, its verdict, the truth, the proof or command that shows it, and a counterexample; `source` may be ""."""

    source: str
    sentence: str
    verdict: str
    truth: str
    by: str
    witness: str = ""


def _claim(row: dict) -> Claim:
    """The claim of a row of the file; a missing truth or witness comes from the refuted control that the row names."""
    theorem, _, name = row["by"].partition("/")
    control = next((r for r in statements()[theorem].refuted if r.name == name), None) if name else None
    return Claim(**{field: getattr(control, field, "") for field in ("truth", "witness")} | row)


SAID = tuple(map(_claim, facts.read("claims")["claims"]))


def claims(words: str = "", *, who: str | None = None, verdict: str | None = None) -> list[Claim]:
    """The claims that contain all words, first those with a source; `who` selects a source of SOURCES, `verdict` a verdict.

    >>> [c.verdict for c in claims("oscillation ranges", who="sarkale")]
    ['imprecise']
    """
    by = {c.by for c in SAID}
    own = (
        Claim("", r.sentence, "wrong", r.truth, f"{s.name}/{r.name}", r.witness)
        for s in statements().values()
        for r in s.refuted
        if r.kind == "claim" and f"{s.name}/{r.name}" not in by
    )
    said = [c for c in (*SAID, *own) if who in (None, c.source) and verdict in (None, c.verdict)]
    return [c for c in said if all(word.lower() in _text(c) for word in words.split())]


def _text(claim: Claim) -> str:
    return " ".join((SOURCES[claim.source], *claim)).lower()
