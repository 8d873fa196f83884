"""docs/mathematics.md holds what the commands and the certificates say."""

from pathlib import Path

import pytest

from posref import expressivity, precision

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "mathematics.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| ")]


@pytest.mark.parametrize("meaning", expressivity.MEANINGS)
def test_tables_of_who_expresses_whom(meaning):
    assert expressivity.page(meaning) in PAGE


@pytest.mark.parametrize("recipe", precision.RECIPES)
def test_figures_of_precision(recipe):
    """Tables of float32 differ a little between machines."""
    longest, phase = [row[1:] for row in ROWS if row[0] == recipe]
    for (dim, base), last, bound in zip(precision.USUAL, longest, phase, strict=True):
        found = precision.phase(recipe, dim, base, 131072)
        near = 0.5 if recipe.startswith("float32") and "float64" not in recipe else 0.02
        assert float(last) == pytest.approx(precision.longest(recipe, dim, base, tolerance=0.01), rel=near)
        assert bound == "lost" if found >= 3.14 else float(bound) == pytest.approx(found, rel=near)


def test_first_sign_changes():
    decay = pytest.importorskip("proofs.mathematics.decay", reason="pip install posref[proofs]")
    stated = {(int(row[0]), int(row[1])): (int(row[2]), float(row[3])) for row in ROWS if row[0].isdigit()}
    assert stated == decay.FIRST
