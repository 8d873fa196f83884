"""Mutants of the specification: the vectors notice what changes a value, and say what they do not notice."""

import time

from posref import vectors
from posref.absolute import recurrent
from proofs.kit.mutants import mutants
from proofs.vectors import _mutants


def test_what_is_not_noticed_survives(monkeypatch):
    monkeypatch.setattr(_mutants, "_noticed", lambda case: False)
    monkeypatch.setattr(_mutants, "_run_by", lambda cases: {recurrent.encode: cases})
    assert [label for _, label in _mutants.survivors(["recurrent"])] == [label for label, _ in mutants(recurrent.encode)]


def test_most_mutants_are_noticed():
    all_of_it = len(list(mutants(recurrent.encode)))
    alive = [label for function, label in _mutants.survivors(["recurrent"]) if function.__name__ == "encode"]
    assert len(alive) < all_of_it / 4


def test_a_mutant_without_an_end_is_noticed(monkeypatch):
    case = vectors.case("recurrent/linear/d3/integers")
    assert not _mutants._noticed(case)
    monkeypatch.setattr(_mutants, "SECONDS", 1)
    monkeypatch.setattr(_mutants.ops, "of_case", lambda case: (_Endless, {}))
    assert _mutants._noticed(case)


class _Endless:
    @staticmethod
    def spec():
        time.sleep(60)
