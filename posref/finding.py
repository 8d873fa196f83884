"""Finding: searches the systems for words of the field, in their names, functions, presets, models and pages."""

import importlib
import inspect
import re
from functools import cache
from typing import NamedTuple

from posref import discovery
from posref.explain.families import FAMILIES
from posref.explain.presets import of_states, of_type, uses


class Hit(NamedTuple):
    """A system in which the words were found; a lower rank is a better hit."""

    rank: int
    name: str
    where: str


def found(words: str) -> list[Hit]:
    """The systems that have all the words in one place, best hits first; at most one hit per system.

    >>> [hit.name for hit in found("bloom")][0], found("t5.bucket")[0].name
    ('relative.alibi', 'relative.t5')
    """
    hits = sorted(hit for name in [*discovery.names(), *discovery.COMMON] for hit in _hits(name, words))
    return [hit for i, hit in enumerate(hits) if hit.name not in [before.name for before in hits[:i]]]


def meant(words: str) -> list[str]:
    """The systems of the best rank: one if the words are clear, none if only the text of pages has them.

    >>> meant("foo"), found("foo")[0].name
    ([], 'relative.alibi')
    """
    hits = [hit for hit in found(words) if hit.rank < len(_places(hit.name)) - 2]
    return [hit.name for hit in hits if hit.rank == hits[0].rank]


def _hits(name, words):
    """The hits in all places of a system; whole words are better hits than beginnings of words."""
    places = _places(name)
    for whole in (True, False):
        for rank, (place, texts) in enumerate(places):
            there = next((text for text in texts if _occurs(words, text, whole)), None)
            if there is not None:
                yield Hit(rank if whole else rank + len(places), name, f"{place}: {_line(words, there)}")


@cache
def _places(name):
    """(place, texts) of a system, with the places of the best hits first."""
    module, page = importlib.import_module(f"posref.{name}"), discovery.page(name)
    text = inspect.getdoc(module) or ""
    return (
        ("name", [name]),
        ("also called", page.also_called),
        ("function", [f"{name.split('.')[-1]}.{f.__name__}" for f in discovery.members(module)]),
        ("preset", list(getattr(module, "PRESETS", {}))),
        ("title", [page.title]),
        ("model with a state", [kind for kind in FAMILIES if name in of_states(kind)]),
        ("model", [*(model for model, used in uses().items() if name in used), *(t for t in FAMILIES if name in of_type(t))]),
        ("motivation", [page.motivation]),
        ("implementation", [row.who for row in page.differ]),
        ("page", text.splitlines()),  # words in one line are a better hit than words that are far apart
        ("page", [text]),
    )


@cache
def _occurs(words, text, whole=False):
    """Whether the text has each word, or a word that begins with it; hyphens and similar signs count as blanks."""
    end = " " if whole else ""
    return all(f" {_plain(word).strip()}{end}" in f" {_plain(text)} " for word in words.split())


def _plain(text):
    return re.sub(r"[\W_]+", " ", text.lower())


def _line(words, text):
    """The first line with the words, or else the first line."""
    return " ".join(next((line for line in text.split("\n") if _occurs(words, line)), text.split("\n")[0]).split())
