"""docs/catalogue.md names functions that exist, and every system of posref."""

import importlib
import re
from pathlib import Path

from posref import _pages, discovery

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "catalogue.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| ")]
HERE = [row[-1] for row in ROWS if row[-1] not in ("In posref", "---")]


def test_entries_are_numbered():
    numbers = [int(row[0]) for row in ROWS if row[0].isdigit()]
    assert numbers == [*range(1, len(numbers) + 1)]
    assert f"{len(numbers)} entries" in PAGE


def test_names_exist():
    for name in re.findall(r"`([a-z_0-9.]+)`", " ".join(HERE)):
        module, _, function = name.rpartition(".")
        is_module = name in (*discovery.names(), *discovery.COMMON, "explain")
        assert is_module or hasattr(importlib.import_module(f"posref.{module}"), function), name


def test_every_system_has_an_entry():
    text = " ".join(HERE)
    assert [name for name in discovery.names() if f"`{name}." not in text and f"`{name}`" not in text] == []


def test_rows_are_on_their_pages():
    """A row is under `Not here:`; SHAPE's is a difference between implementations."""
    for name in re.findall(r"row of `([a-z_0-9.]+)`", " ".join(HERE)):
        assert "Not here:" in _pages.page(importlib.import_module(f"posref.{name}").__doc__).references, name


def test_every_entry_is_here_or_says_why_not():
    for cell in HERE:
        assert "`" in cell or cell.startswith("left out: "), cell
