"""Mutants of the specification: the vectors notice what changes a value, and say what they do not notice."""

import time

from posref import vectors
from posref.absolute import learned, recurrent
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


def test_what_survives_needs_a_reason_and_a_reason_what_survives(monkeypatch):
    proved = "similarity: return unit @ np.swapaxes(unit, -1, -2)  ->  return unit @ np.swapaxes(unit, 1, -2)"
    where = "return np.where(mask, tokens_so_far - 1, {})"
    explained = f"position_ids: {where.format(0)}  ->  {where.format(1)}"
    alive = [(learned.similarity, proved), (learned.position_ids, explained), (learned.similarity, "similarity: a  ->  b")]
    monkeypatch.setattr(_mutants, "survivors", lambda names: alive)
    line, said = _mutants.report(["learned"])
    assert line == "3 survive: 1 equivalent, 1 with a reason, 1 open"
    assert said == ["survives: posref.absolute.learned.similarity: a  ->  b"]
    everything = _mutants.report()[1]
    assert "a reason explains nothing: posref.*resizing.cubic: * ->  return np.where(x < 1, *" in everything
    assert not any("learned.position_ids: *" in sentence for sentence in everything)


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
