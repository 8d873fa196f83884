"""docs/mathematics.md agrees with commands and certificates; python tests/test_mathematics_page.py writes its tables."""

from pathlib import Path

import pytest

from posref import expressivity, precision

FILE = Path(__file__).resolve().parents[1] / "docs" / "mathematics.md"
PAGE = FILE.read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| ")]


def test_grid_of_who_expresses_whom():
    assert expressivity.grid() in PAGE


def test_words_of_who_expresses_whom():
    """The sentences above the grid, cell by cell."""
    grid = {s: dict(zip(expressivity.SYSTEMS, marks, strict=True)) for s, marks in _rows()}
    by_offset = ["t5 encoder", "t5 decoder", "alibi signed", "alibi absolute", "shaw", "transformer_xl", "deberta"]
    assert {grid[s]["rope"] for s in by_offset} == {"="}
    assert [t for t, mark in grid["rope"].items() if mark != "."] == ["rope"]
    assert grid["shaw"]["transformer_xl"] == grid["transformer_xl"]["shaw"] == grid["any bias"]["shaw"] == "="
    assert grid["shaw clipped"]["deberta c2p"] == "="
    assert {grid[s]["added"] for s in ("any bias", "tupe", "swin", "alibi key")} == {"="}
    assert grid["rope"]["added"] == grid["shaw"]["added"] == "."
    assert grid["alibi key"]["alibi signed"] == grid["alibi signed"]["alibi key"] == "r"
    assert {grid["alibi absolute"][t] for t in ("alibi signed", "alibi key")} == {"c"}


def _rows():
    for line in expressivity.grid().splitlines()[2:]:
        name, *marks = [cell.strip() for cell in line.strip("|").split("|")]
        yield name.partition(" ")[2], marks


# A frequency is made within 4 units of float32 or 1 of float64, half a unit at best, and the product adds half a unit: machines
# differ by (4 + 1/2) / (1/2 + 1/2) at most. A table in float64 that is then rounded is the same on all of them.
MADE_HERE = {"float64": 1.5, "float32": 4.5, "float32 by exp and log": 4.5, "float32, pair from pair": 4.5}


@pytest.mark.parametrize("recipe", precision.RECIPES)
def test_figures_of_precision(recipe):
    longest, phase = [row[1:] for row in ROWS if row[0] == recipe]
    times = MADE_HERE.get(recipe, 1.02)
    for (dim, base), last, bound in zip(precision.USUAL, longest, phase, strict=True):
        found = precision.phase(recipe, dim, base, 131072)
        assert 1 / times <= float(last) / precision.longest(recipe, dim, base, tolerance=0.01) <= times
        assert found >= 3.14 if bound == "lost" else 1 / times <= float(bound) / found <= times


def test_first_answer_is_what_the_table_says():
    """Of recipes that give the same figures on all machines."""
    shortest = {row[0]: min(map(int, row[1:])) for row in reversed(ROWS) if row[0] in precision.RECIPES and row[1].isdigit()}
    assert f"right for {shortest['float32 of a float64 table']} positions or more" in PAGE
    assert f"a bfloat16 table for {shortest['bfloat16 table']} to 22" in PAGE


def test_first_sign_changes():
    decay = pytest.importorskip("proofs.mathematics.decay", reason="pip install posref[proofs]")
    stated = {(int(row[0]), int(row[1])): (int(row[2]), float(row[3])) for row in ROWS if row[0].isdigit()}
    assert stated == decay.FIRST


def test_distances_and_determinants():
    truths = pytest.importorskip("proofs.mathematics.truths", reason="pip install posref[proofs]")
    stated = {row[0]: row[1:] for row in ROWS if row[0] in ("width", "distance", "offset") and len(row) == 7}
    columns = zip(stated["width"], stated["distance"], stated["offset"], strict=True)
    assert {int(d): (float(far), int(offset)) for d, far, offset in columns} == truths.NEAREST
    assert all(f"$`10^{{{power}}}`$ at" in PAGE for power in truths.MAGNITUDES.values())
    assert all(f"{n} positions fill {low}" in PAGE for (_, n), (low, _) in truths.DIRECTIONS.items())


def written(page):
    """The page with the grid of who expresses whom as it is now."""
    first, last = "|  | 1 | 2 |", "\n\n**Good for.** Convert"
    return page[: page.index(first)] + expressivity.grid() + page[page.index(last) :]


if __name__ == "__main__":
    FILE.write_text(written(PAGE), encoding="utf-8")
