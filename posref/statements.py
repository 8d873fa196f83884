"""Statements: the theorems about the code of posref, and their refuted controls, as data in the package.

`statements.json` is written by `python -m proofs --write-statements` and never by hand: an object of theorems by name, sorted,

    "rotary.rope.relative": {
        "statement":  the sentence, as the docstring of the theorem has it
        "of":         the functions of posref it is about, such as "rotary.rope.rotate"; none for pure mathematics
        "sizes":      the sizes for which it holds, such as "all d"
        "basis":      the kind of proof: "machine", "machine + argument", "machine + citation", or "example" (numbers alone)
        "argument":   the step that is prose, if there is one
        "citation":   the step that is somebody else's theorem, if there is one
        "hypotheses": the assumptions about the symbols
        "refuted":    its controls: name, sentence, kind ("claim" or "guard"), truth (of a claim), witness
    }

The proofs themselves run in a checkout of the project: `python -m proofs rope.relative`.
"""

import json
from functools import cache
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).with_suffix(".json")


class Refuted(NamedTuple):
    """A control of a theorem, a false sentence; the kind "claim" has the true sentence too, and readers see both."""

    name: str
    sentence: str
    kind: str
    truth: str
    witness: str


class Statement(NamedTuple):
    """The sentence of one theorem, and the basis of its proof."""

    name: str
    statement: str
    of: tuple[str, ...]
    sizes: str
    basis: str
    argument: str
    citation: str
    hypotheses: tuple[str, ...]
    refuted: tuple[Refuted, ...]

    @property
    def is_theorem(self) -> bool:
        """Whether the statement is more than an example with concrete numbers."""
        return self.basis != "example"


@cache
def statements() -> dict[str, Statement]:
    """All statements by name.

    >>> statements()["rotary.rope.relative"].of[0]
    'rotary.rope.rotate'
    """
    read = json.loads(FILE.read_text(encoding="utf-8"))
    return {name: _statement(name, entry) for name, entry in read.items()}


def about(name: str) -> list[Statement]:
    """The statements of the proof file of a system, in the order of that file.

    >>> about("pairing")[0].name
    'pairing.split_pinned'
    """
    return [s for s in statements().values() if s.name.rpartition(".")[0] == name]


def _statement(name: str, entry: dict) -> Statement:
    lists = {"of": tuple(entry["of"]), "hypotheses": tuple(entry["hypotheses"])}
    return Statement(name, **entry | lists | {"refuted": tuple(Refuted(**each) for each in entry["refuted"])})
