"""The matrix of mistakes and cases: what it says can be wrong, and nothing is open."""

import numpy as np
import pytest

from posref import ops, vectors
from proofs.vectors import _matrix, _reasons


@pytest.mark.slow
def test_the_vectors_are_complete():
    """Every mistake is killed by a case or has a reason, every reason is needed, and no two mistakes cancel."""
    missing = _matrix.missing()
    assert not missing, "\n".join(missing)


def test_what_no_case_kills_is_open(monkeypatch):
    """Of a mistake that changes nothing: its cell is open until a reason stands there."""
    alibi = ops.op("alibi.slopes")
    monkeypatch.setitem(alibi.mistakes, "nothing", ops.Mistake(ops.result(lambda y: y), "none"))
    cases = vectors.cases("alibi/slopes/h3-b8/slopes")
    assert dict(_matrix._row(("alibi", "slopes", "slopes"), cases))["nothing"] == "open"
    monkeypatch.setattr(_matrix, "reason", lambda *cell: "it is none")
    assert dict(_matrix._row(("alibi", "slopes", "slopes"), cases))["nothing"] == "explained"


def test_what_no_case_has_is_open_where_the_op_can_be_asked():
    """A case without a batch says nothing of positions that its rows share."""
    cases = vectors.cases("alibi/signed/h3/square")
    assert dict(_matrix._row(("alibi", "bias", "signed"), cases))["positions_shared_across_batch"] == "open"
    assert dict(_matrix._row(("alibi", "bias", "signed"), cases))["slopes_of_the_shard"] == "absent"


def test_a_reason_that_explains_nothing_is_found():
    assert "alibi bias key queries_left_aligned" in _reasons.idle([("alibi", "bias", "signed", "sign")])
    assert "alibi bias key queries_left_aligned" not in _reasons.idle([("alibi", "bias", "key", "queries_left_aligned")])


@pytest.mark.parametrize(
    ("id", "variant"),
    [
        ("hierarchical/a0.4-n5-d2/encode", "any"),
        ("hierarchical/a-0.5-n2-d3/extend", "any"),
        ("index/length-1/n17/encode", "length-1"),
        ("alibi/signed/h3/square", "signed"),
    ],
)
def test_sizes_are_no_variant(id, variant):
    assert _matrix._variant(vectors.case(id))[2] == variant


@pytest.mark.parametrize("modulus", _matrix.MODULI)
def test_a_wrap_at_every_modulus_is_a_mistake(modulus):
    case = vectors.case("alibi/signed/h2/places")
    op, arguments = ops.of_case(case)
    assert _matrix.distance(case, _matrix.mistakes(op)[f"positions_modulo_{modulus}"], op.spec, arguments) > 2


@pytest.mark.parametrize(
    ("found", "status"),
    [
        ([None, None], "absent"),
        ([None, 1.5, 0.0], "open"),
        ([0.0, 2.5], "killed"),
        ([float("nan"), None], "refused"),
        ([float("nan"), 1.0], "refused"),
        ([float("nan"), 3.0], "killed"),
        ([float("inf")], "killed"),
    ],
)
def test_status(found, status):
    assert _matrix.status(found) == status


def test_distances():
    case = vectors.case("alibi/signed/h3/square")
    op, arguments = ops.of_case(case)
    found = {name: _matrix.distance(case, m.wrong, op.spec, arguments) for name, m in op.mistakes.items()}
    assert found["sign"] > 1000
    assert found["max_bias_ignored"] == 0
    assert _matrix.distance(case, lambda f, a: ops.missing(), op.spec, arguments) is None
    assert _matrix.distance(case, lambda f, a: np.zeros(7), op.spec, arguments) == np.inf


def test_mistakes_that_cancel_are_found(monkeypatch):
    """Two halves of the right answer, each wrong alone."""
    alibi = ops.op("alibi.slopes")
    twice = ops.Mistake(ops.result(lambda y: 2 * y), "twice")
    half = ops.Mistake(ops.result(lambda y: y / 2), "half")
    monkeypatch.setitem(alibi.mistakes, "twice", twice)
    monkeypatch.setitem(alibi.mistakes, "half", half)
    made, cancel = _matrix._made(vectors.cases("alibi/slopes/h3-b8/slopes"))
    assert made > len(cancel) > 0
    assert set(cancel) == {("twice", "half"), ("half", "twice")}


def test_pairs_are_made_in_both_orders_and_with_wraps(monkeypatch):
    """One that looks at positions beyond 2^7 sees none upon a wrap there, and does as the wrap undoes it."""
    op = ops.op("alibi.bias")
    far = ops.Mistake(ops.using(key_positions=lambda a: a.key_positions + 2**7), "far")
    back = ops.Mistake(ops.using(key_positions=lambda a: a.key_positions - 2**7), "back")
    monkeypatch.setitem(op.mistakes, "far", far)
    monkeypatch.setitem(op.mistakes, "back", back)
    cases = vectors.cases("alibi/signed/h3/square")
    assert {("far", "back"), ("back", "far")} <= set(_matrix._made(cases)[1])


def test_a_pair_that_cancels_needs_a_reason(monkeypatch):
    place = "rope", "rotate", "half"
    for pair, count in ((("position_plus_one", "position_minus_one"), 0), (("position_plus_one", "sign"), 1)):
        monkeypatch.setattr(_matrix, "pairs", lambda names, pair=pair: {place: (9, [pair])})
        said = [sentence for sentence in _matrix.missing(("merge",)) if "cancel" in sentence]
        assert len(said) == count
