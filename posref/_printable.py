"""Printable text: makes text from files safe for a terminal, with escapes for characters that are not printable."""

from dataclasses import is_dataclass, replace

LONGEST = 1000  # characters of a text of a file


def printable(text, kept="\n\t"):
    """The text with an escape for every character that is not printable, except those in `kept`.

    >>> printable("gpt\\x1b[31m")
    'gpt\\\\x1b[31m'
    """
    return "".join(c if c in kept or c.isprintable() else ascii(c)[1:-1] for c in text)


def in_one_line(value):
    """A structure with each of its texts cut to LONGEST characters and made printable in one line."""
    if isinstance(value, dict):
        return {in_one_line(key): in_one_line(inner) for key, inner in value.items()}
    if is_dataclass(value):
        return replace(value, **in_one_line(vars(value)))
    if isinstance(value, list):
        return [in_one_line(inner) for inner in value]
    if not isinstance(value, str):
        return value
    return printable(value if len(value) <= LONGEST else f"{value[: LONGEST - 3]}...", kept="")
