"""docs/catalogue.md lists every system and names functions that exist; `python tests/test_catalogue.py` writes its table."""

import importlib
import re
from pathlib import Path

from posref import _pages, discovery

FILE = Path(__file__).resolve().parents[1] / "docs" / "catalogue.md"
PAGE = FILE.read_text(encoding="utf-8")
TABLE = re.compile(r"(<!-- systems:.*?-->\n)(.*?)(<!-- /systems -->)", re.DOTALL)
HERE = [line.strip("| ").split(" | ")[-1] for line in PAGE.split("In posref |\n")[-1].splitlines()[1:] if line.startswith("|")]


def table():
    """Every system with its other names and its functions, as Markdown."""
    rows = [("System", "Also called", "Functions"), ("---", "---", "---")]
    for name in (*discovery.names(), *discovery.COMMON):
        functions = ", ".join(f"`{function}`" for function in discovery.system(name).functions)
        rows.append((f"`{name}`", ", ".join(discovery.page(name).also_called) or "-", functions or "-"))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def test_table_is_what_discovery_finds():
    assert TABLE.search(PAGE)[2] == table(), "the table is out of date; run: python tests/test_catalogue.py"


def test_names_exist():
    for name in re.findall(r"`([a-z_0-9.]+)`", " ".join(HERE)):
        module, _, function = name.rpartition(".")
        is_module = name in (*discovery.names(), *discovery.COMMON, "explain")
        assert is_module or hasattr(importlib.import_module(f"posref.{module}"), function), name


def test_rows_are_on_their_pages():
    """A row is under `Not here:`, or is a difference between implementations."""
    for name in re.findall(r"row of `([a-z_0-9.]+)`", " ".join(HERE)):
        assert "Not here:" in _pages.page(importlib.import_module(f"posref.{name}").__doc__).references, name


def test_every_entry_is_here_or_says_why_not():
    assert len(HERE) > 10
    for cell in HERE:
        assert "`" in cell or cell.startswith("left out: "), cell


if __name__ == "__main__":
    FILE.write_text(TABLE.sub(lambda match: match[1] + table() + match[3], PAGE), encoding="utf-8")
