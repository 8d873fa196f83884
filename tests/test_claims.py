"""Every claim rests on a theorem, control or command that exists, and its counterexample can be computed."""

import re
import shlex
from pathlib import Path

import numpy as np

from posref import claims, cli, discovery, facts, offsets, printed, statements
from posref.absolute import index, sinusoidal
from posref.relative import t5
from posref.rotary import rope
from tests.every import every

ROOT = Path(__file__).resolve().parents[1]
QUOTES = r"[\"\u201c\u201d\u201e\u2018\u00ab\u00bb]|(?<!\w)'"  # no apostrophes
NAMES = {"np": np, "index": index, "sinusoidal": sinusoidal, "t5": t5, "rope": rope, "offsets": offsets}


@every(claims.SAID, name=lambda claim: claim.sentence)
def test_a_verdict_rests_on_a_theorem_or_a_command(claim):
    assert claim.source in claims.SOURCES
    assert claim.truth
    if claim.by.startswith("posref "):
        command = cli.parser.all_commands().parse_args(shlex.split(claim.by)[1:])
        assert command.run is not cli.answers.screen
        if command.run is cli.answers.show:
            discovery.resolve(command.name)
    else:
        theorem, _, control = claim.by.partition("/")
        refuted = {r.name: r for r in statements.statements()[theorem].refuted}
        assert not control or control in refuted


@every([row for row in facts.read("claims")["claims"] if "witness" in row], name=lambda row: row["sentence"])
def test_a_witness_is_true(row):
    assert bool(eval(row["witness"], NAMES)) is True


REFUTED = [(f"{s.name}/{r.name}", r) for s in statements.statements().values() for r in s.refuted if r.kind == "claim"]
WITNESSES = [(f"{s.name}/{r.name}", r.witness) for s in statements.statements().values() for r in s.refuted]


@every(WITNESSES, name=lambda pair: pair[0])
def test_a_counterexample_is_a_sentence_with_numbers(name, witness):
    assert re.search(r"\d", witness)
    assert not re.search(r"not so:|at :|\b0\.?e-\d+\*I", witness)


@every(claims.claims(), name=lambda claim: f"{claim.by} {claim.sentence}")
def test_only_words_of_a_source_stand_in_quotation_marks(claim):
    assert not re.search(QUOTES, claim.sentence + claim.truth) or claim.source


@every(REFUTED, name=lambda pair: pair[0])
def test_false_sentences_of_our_own_quote_nobody(name, refuted):
    assert not re.search(QUOTES, refuted.sentence + refuted.truth)


def quoted(sentence, text):
    """Places of a text where the whole sentence stands in quotation marks, other than its own."""
    places = [(m.start(), m.end()) for m in re.finditer(re.escape(sentence), text)]
    around = [(text[:start].rstrip()[-1:], text[end:].lstrip()[:1]) for start, end in places]
    return [f"{before}{sentence}{after}" for before, after in around if re.search(QUOTES, f"{before} {after}")]


def test_nothing_printed_puts_a_claim_in_quotation_marks():
    printers = {"posref claims": printed.claimed(claims.claims())}
    printers |= {f"posref show {name}": printed.page(name) for name in (*discovery.names(), *discovery.COMMON)}
    printers |= {path.name: path.read_text("utf-8") for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]}
    texts = {name: " ".join(text.split()) for name, text in printers.items()}
    for claim in claims.claims():
        sentence = " ".join(claim.sentence.split())
        assert sentence in texts["posref claims"]
        assert not [found for text in texts.values() for found in quoted(sentence, text)]
        said = f"{sentence} source: {claims.SOURCES[claim.source]}"
        assert (said in texts["posref claims"]) == bool(claim.source)


def test_claims_are_found_by_their_words():
    assert {c.source for c in claims.claims("sarkale oscillation")} == {"sarkale"}
    assert claims.claims("no such words at all") == []
    assert {c.source for c in claims.claims(who="su")} == {"su"}
    assert {(c.source, c.verdict) for c in claims.claims(verdict="wrong", who="su")} == {("su", "wrong")}
    everything = claims.claims()
    assert len(everything) == len({(c.source, c.sentence, c.by) for c in everything})
    refuted = [r for s in statements.statements().values() for r in s.refuted if r.kind == "claim"]
    assert len(everything) >= len(refuted)
