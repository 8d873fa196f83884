"""docs/mathematics.md holds what commands and certificates say; python tests/test_mathematics_page.py writes its tables."""

from pathlib import Path

import pytest

from posref import expressivity, precision

FILE = Path(__file__).resolve().parents[1] / "docs" / "mathematics.md"
PAGE = FILE.read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| ")]


@pytest.mark.parametrize("meaning", expressivity.MEANINGS)
def test_tables_of_who_expresses_whom(meaning):
    assert expressivity.page(meaning) in PAGE


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


def test_first_sign_changes():
    decay = pytest.importorskip("proofs.mathematics.decay", reason="pip install posref[proofs]")
    stated = {(int(row[0]), int(row[1])): (int(row[2]), float(row[3])) for row in ROWS if row[0].isdigit()}
    assert stated == decay.FIRST


def test_distances_and_determinants():
    truths = pytest.importorskip("proofs.mathematics.truths", reason="pip install posref[proofs]")
    stated = {row[0]: row[1:] for row in ROWS if row[0] in ("width", "distance", "offset") and len(row) == 7}
    columns = zip(stated["width"], stated["distance"], stated["offset"], strict=True)
    assert {int(d): (float(far), int(offset)) for d, far, offset in columns} == truths.NEAREST
    assert all(f"10^{power} at" in PAGE for power in truths.MAGNITUDES.values())
    assert all(f"{n} positions fill {low}" in PAGE for (_, n), (low, _) in truths.DIRECTIONS.items())


def written(page):
    """The page with the tables of who expresses whom as they are now."""
    for meaning in expressivity.MEANINGS:
        start = page.index(expressivity.TITLES[meaning])
        page = page[:start] + expressivity.page(meaning) + "\n" + page[page.index("```", start) :]
    return page


if __name__ == "__main__":
    FILE.write_text(written(PAGE), encoding="utf-8")
