"""Lemmas for Coq, as texts: no prover is needed here. `python -m tests.release coq` runs it, and writes docs/coq.json."""

import json
import re
import zlib
from pathlib import Path

import pytest

from proofs import __main__ as main_module
from proofs.kit import export
from proofs.kit.coq import lemmas
from proofs.kit.coq.terms import Open
from proofs.kit.runner import find
from tests.release import coq as judge

RECORD = json.loads((Path(__file__).parents[2] / "docs" / "coq.json").read_text(encoding="utf-8"))


def x(name):
    return ["x", name]


@pytest.mark.parametrize(
    ("left", "right", "kinds", "said"),
    [
        (
            ["add", x("a"), "1/2"],
            x("b"),
            {"a": "real", "b": "real"},
            "forall (v_a : R) (v_b : R),\n    (v_a + (1 / 2)) =\n    v_b.",
        ),
        (
            ["pow", x("n"), "-1"],
            "1",
            {"n": "size"},
            "forall (v_n : nat),\n    (1 <= v_n)%nat -> \n    (/ ((INR v_n))) =\n    1.",
        ),
        (["pow", x("b"), x("t")], "1", {"b": "positive", "t": "real"}, "0 < v_b -> \n    exp ((v_t * ln (v_b))) =\n    1."),
        (["pow", x("a"), "-2"], "1", {"a": "real"}, "v_a <> 0 -> \n    (/ ((v_a) ^ 2)) =\n    1."),
        (["at", "q", x("i")], "0", {"i": "natural"}, "forall (v_i : nat) (v_q : R -> R),\n    v_q (INR v_i) =\n    0."),
        (["exp", ["mul", ["i"], x("a")]], "1", {"a": "real"}, "(exponential (times unit (real (v_a)))) =\n    (real (1))."),
    ],
)
def test_a_lemma_says_what_the_obligation_says(left, right, kinds, said):
    assert said in lemmas.lemma("l", left, right, kinds).split("Proof.")[0]


@pytest.mark.parametrize(
    ("left", "why"),
    [
        (["pow", x("a"), "1/2"], "a power whose exponent is no whole number"),
        (["floor", x("a")], "floor has no name in Coq"),
        (["sum", x("j"), "j", "1", x("n")], "a sum that does not run from 0 to n - 1"),
    ],
)
def test_what_has_no_proof_is_open(left, why):
    with pytest.raises(Open, match=why):
        lemmas.lemma("l", left, "0", {"a": "real", "j": "natural", "n": "size"})


def test_files_are_written(tmp_path, capsys):
    assert main_module.main(["rope.relative", "--export-coq", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("2 lemmas in ")
    written = (tmp_path / "rotary_rope.v").read_text(encoding="utf-8")
    assert written.count("Lemma relative_") == written.count("Qed.") == 2
    assert "Axiom" not in written + (tmp_path / "Sums.v").read_text(encoding="utf-8")
    assert "Admitted" not in written + (tmp_path / "Sums.v").read_text(encoding="utf-8")


# a changed theorem exports other obligations: all rows are compared in the slow run, and always those that a hash chooses
SAMPLE = [name for name in RECORD["theorems"] if zlib.crc32(name.encode()) % 25 == 0]


@pytest.mark.parametrize(
    "name", [name if name in SAMPLE else pytest.param(name, marks=pytest.mark.slow) for name in RECORD["theorems"]]
)
def test_the_record_counts_what_is_exported(name):
    """A theorem that has changed since has another number of obligations than Coq has seen."""
    (theorem,) = find(name)
    accepted, exported = map(int, RECORD["theorems"][name].split(" of "))
    assert exported == len(export.theorem(theorem)["obligations"]) >= accepted


def test_the_page_has_the_numbers_of_the_record():
    rows = {name: tuple(map(int, row.split(" of "))) for name, row in RECORD["theorems"].items()}
    asked = [row for name, row in rows.items() if name.rpartition(".")[0] in judge.ASKED]
    (accepted, exported), (own, of) = (map(sum, zip(*each, strict=True)) for each in (rows.values(), asked))
    both = sum(0 < a == b for a, b in rows.values())
    page = (Path(__file__).parents[2] / "docs" / "trust.md").read_text(encoding="utf-8")
    numbers = re.search(
        r"Of (\d+) ob.*? accepts (\d+) by.*?Of the (\d+) ob.*?accepts (\d+),.*? of (\d+) theorems", page, re.DOTALL
    )
    assert [int(number) for number in numbers.groups()] == [exported, accepted, of, own, both]


def test_axioms_are_those_of_the_real_numbers():
    assert RECORD["axioms"] == [
        "ClassicalDedekindReals.sig_forall_dec",
        "ClassicalDedekindReals.sig_not_dec",
        "Classical_Prop.classic",
        "FunctionalExtensionality.functional_extensionality_dep",
    ]
