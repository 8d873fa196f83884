"""What is claimed rests on something that exists, and shows a difference that can be computed."""

import shlex

import numpy as np

from posref import claims, cli, discovery, offsets, statements
from posref.absolute import index, sinusoidal
from posref.relative import t5
from posref.rotary import rope
from tests.every import every

NAMES = {"np": np, "index": index, "sinusoidal": sinusoidal, "t5": t5, "rope": rope, "offsets": offsets}


@every(claims.SAID, name=lambda claim: claim.sentence)
def test_a_verdict_rests_on_a_theorem_or_a_command(claim):
    assert claim.source in claims.SOURCES
    assert claim.verdict in claims.VERDICTS
    if claim.by.startswith("posref "):
        command = cli._parser().parse_args(shlex.split(claim.by)[1:])
        assert command.run is not cli._screen
        if command.run is cli._show:
            discovery.resolve(command.name)
    else:
        theorem, _, sibling = claim.by.partition("/")
        refuted = {r.name: r for r in statements.statements()[theorem].refuted}
        assert not sibling or sibling in refuted


@every([c for c in claims.SAID if c.witness], name=lambda claim: claim.sentence)
def test_a_witness_is_true(claim):
    assert bool(eval(claim.witness, NAMES)) is True


def test_claims_are_found_by_their_words():
    assert {c.source for c in claims.claims("sarkale oscillation")} == {"sarkale"}
    assert claims.claims("no such words at all") == []
    everything = claims.claims()
    assert len(everything) == len({(c.source, c.sentence, c.by) for c in everything})
    refuted = [r for s in statements.statements().values() for r in s.refuted if r.kind == "claim"]
    assert len(everything) >= len(refuted)
