"""Symptoms, in people's words, lead to mistakes that exist. `python tests/test_symptoms.py` writes docs/symptoms.md."""

import re
import shlex
from pathlib import Path

import pytest

from posref import cli, ops, symptoms
from posref.ops import pages

PAGE = Path(__file__).resolve().parents[1] / "docs" / "symptoms.md"
HEAD = """# I have a symptom

Find what you see and run its command; `my_ops.py:rope` stands for your function. With `--contract` the command only prints what
your function receives and which settings it needs: run it again with these settings, without `--contract`, and it names your
mistake.

"""


def page():
    """A mistake that RoPE has is explained in RoPE's words."""
    bugs = {flag: m.bug for system in [*ops.names(), "rope"] for flag, m in pages.mistakes(system).items()}
    heads = [each.sees.rstrip(".") for each in symptoms.SYMPTOMS]
    anchors = [re.sub(r"[^\w -]", "", head).lower().replace(" ", "-") for head in heads]
    listed = "".join(f"* [{head}](#{anchor})\n" for head, anchor in zip(heads, anchors, strict=True))
    return HEAD + listed + "".join(_section(head, each, bugs) for head, each in zip(heads, symptoms.SYMPTOMS, strict=True))


def _section(head, symptom, bugs):
    asks = ", ".join(f"`{ask}`" for ask in symptom.ask.split("; "))
    return f"\n## {head}\n\n{asks}\n\n" + "".join(f"* `{name}`: {bugs[name]}\n" for name in symptom.suspects)


def test_the_page_is_what_the_symptoms_say():
    assert PAGE.read_text() == page(), "run: python tests/test_symptoms.py"


@pytest.mark.parametrize("symptom", symptoms.SYMPTOMS, ids=lambda symptom: symptom.words.split()[0])
def test_a_symptom_leads_to_mistakes_and_to_a_question(symptom):
    known = {name for system in ops.names() for name in pages.mistakes(system)}
    assert set(symptom.suspects) <= known
    assert len(set(symptom.suspects)) == len(symptom.suspects) > 2
    for ask in symptom.ask.split("; "):
        arguments, rest = cli.parser.all_commands().parse_known_args(shlex.split(ask)[1:])
        assert not rest
        assert re.fullmatch(r"rope|None", str(system := getattr(arguments, "system", None))) or ops.op(system)
        assert cli.main([*shlex.split(ask)[1:]]) == 0 if "--contract" in ask else True


@pytest.mark.parametrize(
    ("words", "sees"),
    [
        ("gibberish", "Text is nonsense"),
        ("repetition", "generated text repeats"),
        ("long context", "beyond some length"),
        ("garbage after 4096 tokens", "beyond some length"),
        ("kv cache", "KV cache"),
        ("KV-cache", "KV cache"),
        ("left padding", "in a batch with padding"),
        ("fp16", "16 bits"),
        ("speculative decoding", "Speculative"),
        ("mrope", "Images or videos"),
        ("loops", "repeats itself"),
        ("tensor parallel", "split over devices"),
        ("NaN", "NaN"),
    ],
)
def test_people_find_it_in_their_words(words, sees, capsys):
    assert cli.main(["mistakes", "--symptom", words]) == 0
    assert sees in capsys.readouterr().out.split("\n\n")[0]


def test_words_of_nobody_are_answered_with_what_is_known(capsys):
    assert symptoms.found("of the wrong") == []
    assert cli.main(["mistakes", "--symptom", "zzz"]) == 2
    assert "try gibberish, long, repetition, kv, left, " in capsys.readouterr().err


if __name__ == "__main__":
    PAGE.write_text(page())
