"""Pages: the docstring of a module as data.

    Name: what it is.                       the title
    (a blank line)
    One sentence of motivation.
    (a blank line)
    Also called: other names, with commas.                                             if there are some
    Definition. ..                          its indented lines are formulas, one per line
    Symbols.                                indented, one per line: `q (..., h, n_query, d)   queries`
    Conventions. ..
    Example. ..                             if there is one: a few tokens worked out, as a doctest
    Where implementations differ.           indented rows under `what | who | value | version | source`; "-" is unknown, and a
                                            line that is indented deeper continues its row
    References. ..

Properties do not stand here, because proofs state them.
"""

import re
from typing import NamedTuple

SECTIONS = ("Definition", "Symbols", "Conventions", "Where implementations differ", "References")
EXAMPLE = "Example"  # may stand after Conventions
COLUMNS = ("what", "who", "value", "version", "source")


class Row(NamedTuple):
    """One row of "Where implementations differ": a fact about an implementation."""

    what: str
    who: str
    value: str
    version: str
    source: str


class Symbol(NamedTuple):
    """A line of the Symbols section: names as in the formulas, with their shape, and their meaning."""

    names: str
    meaning: str


class Page(NamedTuple):
    """A parsed docstring; `sections` holds the text of each section without its name."""

    title: str
    motivation: str
    also_called: tuple[str, ...]
    formulas: tuple[str, ...]
    symbols: tuple[Symbol, ...]
    conventions: str
    example: str
    differ: tuple[Row, ...]
    references: str
    sections: dict[str, str]


def sections(docstring: str) -> dict[str, str]:
    """A docstring as a dict: the text under "title", then that of each section under its name.

    >>> sections("Null: nothing.\\n\\nDefinition. None\\n\\n    0\\n\\nReferences. No one.")
    {'title': 'Null: nothing.', 'Definition': 'None\\n\\n    0', 'References': 'No one.'}
    """
    title, *paragraphs = docstring.split("\n\n")
    found, current = {"title": title.strip()}, "title"
    for paragraph in paragraphs:
        head = re.match(rf"({'|'.join((*SECTIONS, EXAMPLE, 'Properties'))})\.(\s+|$)", paragraph)
        if head:
            current = head[1]
            found[current] = paragraph[head.end() :]
        else:
            found[current] += "\n\n" + paragraph
    return {name: text.strip("\n") for name, text in found.items()}


def page(docstring: str) -> Page:
    """A docstring as a `Page`; a part that does not follow the grammar stays empty.

    >>> page("Null: nothing.\\n\\nIt is small.\\n\\nSymbols.\\n\\n    x (n,)   a number").symbols
    (Symbol(names='x (n,)', meaning='a number'),)
    """
    found = sections(docstring)
    title, motivation, also = (*found["title"].split("\n\n"), "", "")[:3]
    return Page(
        title=title,
        motivation=" ".join(motivation.split()),
        also_called=tuple(" ".join(also.removeprefix("Also called:").rstrip(".").split()).split(", "))
        if also.startswith("Also called:")
        else (),
        formulas=tuple(line.strip() for line in _indented(found.get("Definition", ""))),
        symbols=tuple(_symbol(line) for line in _indented(found.get("Symbols", ""))),
        conventions=found.get("Conventions", ""),
        example=found.get(EXAMPLE, ""),
        differ=tuple(_rows(found.get("Where implementations differ", ""))),
        references=found.get("References", ""),
        sections=found,
    )


def _indented(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.startswith("    ")]


def _symbol(line: str) -> Symbol:
    names, *meaning = re.split(r"\s{2,}", line.strip(), maxsplit=1)
    return Symbol(names, *(meaning or [""]))


def _rows(text: str) -> list[Row]:
    lines: list[str] = []
    for line in _indented(text):
        if line.startswith("     ") and lines:
            lines[-1] += " " + line.strip()
        else:
            lines.append(line.strip())
    cells = [[cell.strip() for cell in line.split(" | ")] for line in lines]
    return [Row(*row) for row in cells if len(row) == len(COLUMNS) and tuple(row) != COLUMNS]
