"""Expressivity: every yes and no is compared with ranks from a second method; the witnesses, and the command."""

import json

import numpy as np
import pytest

from posref import cli, expressivity, statements
from posref.relative import alibi

CELLS = [(s, t) for s in expressivity.SYSTEMS for t in expressivity.SYSTEMS]


def by_rank(s, t, meaning, n):
    """Whether t expresses s on n tokens, by ranks in floating point of stacked spaces."""
    seen = np.tril(np.ones((n, n), bool)) if meaning == "causal" else np.ones((n, n), bool)
    for part, a, b in zip("Muvb", expressivity.SYSTEMS[s].spaces, expressivity.SYSTEMS[t].spaces, strict=True):
        small, large = (expressivity.SPACES[space](n)[:, seen].astype(float) for space in (a, b))
        if meaning != "exact" and part in "ub":
            large = np.concatenate([large, np.eye(n)[np.nonzero(seen)[0]].T])
        if np.linalg.matrix_rank(np.concatenate([large, small])) > np.linalg.matrix_rank(large):
            return False
    return True


@pytest.mark.parametrize("meaning", expressivity.MEANINGS)
@pytest.mark.parametrize("n", [1, 3, 5])
def test_ranks(meaning, n):
    for s, t in CELLS:
        found = expressivity.verdict(s, t, meaning=meaning)
        assert by_rank(s, t, meaning, n) == (found is None or n < found[1]), (s, t)


@pytest.mark.parametrize("meaning", expressivity.MEANINGS)
def test_expressing_is_an_order(meaning):
    yes = {(s, t) for s, t in CELLS if expressivity.verdict(s, t, meaning=meaning) is None}
    assert all((s, s) in yes and ("none", s) in yes for s in expressivity.SYSTEMS)
    assert all((a, d) in yes for a, b in yes for c, d in yes if b == c)


def test_what_is_exact_holds_in_the_weaker_meanings():
    for s, t in CELLS:
        found = [expressivity.verdict(s, t, meaning=meaning) is None for meaning in expressivity.MEANINGS]
        assert found == sorted(found), (s, t)


def test_top_and_known_cells():
    """RoPE is above every system that sees offsets alone, added tables above every bias; neither expresses the other."""
    blind = [name for name in expressivity.SYSTEMS if name not in ("added", "tupe", "alibi key", "swin", "decomposed")]
    assert all(expressivity.verdict(name, "rope", meaning="exact") is None for name in blind)
    assert expressivity.verdict("rope", "added", meaning="exact") == ("M", 2, "M_01 = M_00")
    assert expressivity.verdict("added", "rope", meaning="causal") == ("v", 2, "v_11 = v_00")
    assert expressivity.verdict("tupe", "added", meaning="exact") is None
    assert expressivity.verdict("any bias", "swin", meaning="exact") is None  # a vector gives the offset in the text
    assert expressivity.verdict("swin", "rope", meaning="exact")[1] == expressivity.COLUMNS + 1
    assert expressivity.verdict("decomposed", "swin", meaning="exact")[0] == "u"
    assert expressivity.verdict("swin", "decomposed", meaning="exact")[1] == expressivity.COLUMNS + 1
    assert expressivity.verdict("alibi key", "alibi signed", meaning="exact") is not None
    assert expressivity.verdict("alibi key", "alibi signed", meaning="row") is None
    assert expressivity.verdict("alibi absolute", "alibi signed", meaning="row") is not None
    assert expressivity.verdict("alibi absolute", "alibi signed", meaning="causal") is None
    assert expressivity.verdict("shaw", "shaw clipped", meaning="exact")[1] == expressivity.CLIP + 2


def test_a_witness_holds_in_one_and_fails_in_the_other():
    """b_10 = 2 b_00 - b_01: signed ALiBi is a line, absolute ALiBi has a corner."""
    _, n, equation = expressivity.verdict("alibi absolute", "alibi signed", meaning="exact")
    assert equation == "b_10 = 2 b_00 - b_01"
    signed, absolute = (
        alibi.bias(np.arange(n), np.arange(n), np.array([0.5]), form=form)[0] for form in ("signed", "absolute")
    )
    assert signed[1, 0] == 2 * signed[0, 0] - signed[0, 1]
    assert absolute[1, 0] != 2 * absolute[0, 0] - absolute[0, 1]


@pytest.mark.parametrize("meaning", expressivity.MEANINGS)
def test_every_yes_rests_on_theorems_for_all_lengths(meaning):
    """They are there, by machine alone; and where two spaces are not the same, each answer names one."""
    proved = {name: record.basis for name, record in statements.statements().items()}
    for s, t in CELLS:
        if expressivity.verdict(s, t, meaning=meaning) is None:
            ground = expressivity.basis(s, t, meaning=meaning).removeprefix("machine, all n: ")
            named = [] if ground == "the same functions" else ground.split(", ")
            assert all(proved[name] == "machine" for name in named), (s, t)
            pairs = zip(expressivity.SYSTEMS[s].spaces, expressivity.SYSTEMS[t].spaces, strict=True)
            assert bool(named) == any(a not in (b, "one") and b != "any" for a, b in pairs), (s, t)


def test_every_system_has_a_place():
    assert [name for name, why in expressivity.outside().items() if why == "not placed yet"] == []


def test_a_row_has_one_meaning(monkeypatch):
    monkeypatch.setattr("posref.ops.swin.SCORES", {"rope": ("one", "one", "one", "vector")})
    with pytest.raises(ValueError, match=r"'rope' is .* in relative.swin and .* in \('rotary.decoupled'"):
        expressivity._systems()


def printed(capsys, *arguments):
    assert cli.main(["express", *arguments]) == 0
    return capsys.readouterr().out


def test_command(capsys):
    text = printed(capsys)
    assert text.count("the same scores") == 3
    assert "rotary.layouts: only the order of features differs" in text
    assert "with 4 tokens u_03 = u_02 in shaw clipped, not in shaw" in printed(capsys, "shaw", "shaw clipped")
    (record,) = json.loads(printed(capsys, "rope", "shaw", "--meaning", "exact", "--json"))
    assert record == {
        "system": "rope",
        "by": "shaw",
        "meaning": "exact",
        "expressed": False,
        "witness": {"part": "M", "tokens": 2, "equation": "M_01 = M_00"},
        "basis": "machine: integers; all longer texts hold these tokens",
    }
    assert len(json.loads(printed(capsys, "--json"))) == 3 * len(CELLS)


@pytest.mark.parametrize("wrong", [["rope"], ["rope", "martian"], ["rope", "shaw", "--meaning", "nearly"], ["--meaning", "x"]])
def test_refused(wrong, capsys):
    assert cli.main(["express", *wrong]) == 2
    assert capsys.readouterr().err.count("\n") == 1
