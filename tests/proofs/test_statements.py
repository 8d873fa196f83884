"""The statements that travel are those of the theorems; `python -m proofs --check-statements` compares what has to be run."""

import json
from dataclasses import asdict

import pytest

pytest.importorskip("numba", reason="needs posref[fast]: some theorems are about compiled functions")

import proofs.__main__ as command
from posref import statements
from proofs.kit import statements as written
from proofs.kit.runner import in_file, names
from proofs.kit.theorem import examine, sentence
from tests.every import every

THEOREMS = {t.name: t for file in sorted(names()) for t in in_file(file)}


def test_each_theorem_travels_in_order():
    assert list(statements.statements()) == list(THEOREMS)


@every(list(THEOREMS))
def test_sentences_are_current(name):
    t, kept = THEOREMS[name], statements.statements()[name]
    assert (kept.statement, kept.sizes, kept.basis) == (t.statement, t.sizes, t.basis)
    assert (kept.argument, kept.citation) == (t.argument, t.citation)
    assert [f.rpartition(".")[2] for f in kept.of] == [getattr(f, "py_func", f).__name__ for f in t.of]
    said = [(c.__name__, sentence(c), t.truths.get(c.__name__, "")) for c in t.controls]
    assert [(r.name, r.sentence, r.truth) for r in kept.refuted] == said
    assert all(r.witness and (r.kind == "claim") == bool(r.truth) for r in kept.refuted)


def test_what_is_proved_is_what_is_written():
    results = [asdict(examine(t)) for t in in_file("pairing")]
    assert written.difference(results) == ""
    results[0]["hypotheses"] = ["d > 4"]
    assert "not current" in written.difference(results)


def test_a_witness_is_cut_where_numbers_remain():
    long = "x" * 300
    for witness, kept in {
        "x != y; at x = 1, y = 2: 1, expected 2": "x != y; at x = 1, y = 2: 1, expected 2",
        f"{long} != y; at x = 1: 1, expected 2": "at x = 1: 1, expected 2",
        f"y != x; at {long} = 1: 1, expected 2": "the value is 1, expected 2",
        "at entry 4: 2, expected 3": "at entry 4: 2, expected 3",
        "head 3 has the slope 0.5, head 4 has 0.7": "head 3 has the slope 0.5, head 4 has 0.7",
    }.items():
        assert written._shortened(witness) == kept


def test_the_command_writes_and_checks(tmp_path, monkeypatch, capsys):
    file = tmp_path / "statements.json"
    monkeypatch.setattr(command, "FILE", file)
    monkeypatch.setattr(written, "FILE", file)
    assert command.main(["pairing", "--no-mutants", "--write-statements"]) == 0
    assert command.main(["pairing", "--no-mutants", "--check-statements"]) == 0
    file.write_text(file.read_text().replace("machine", "example"))
    assert command.main(["pairing", "--no-mutants", "--check-statements"]) == 1
    assert "--write-statements" in capsys.readouterr().err
    assert set(json.loads(file.read_text())) == {t.name for t in in_file("pairing")}
