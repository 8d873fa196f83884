"""Reasons: why no case kills a mistake or a mutant. A row that explains nothing any more is an error.

`REASONS` of a generator has a row per reason, a shell pattern and the reason. A row is about "op variant mistake"; after `pair`
it is about "op variant mistake mistake", in the order of the alphabet: two mistakes that together are the right answer at every
input; after `mutant` it is about "function: statement  ->  its mutant" of the system's module. At most one cell of twenty may
have a reason. The proofs have their own list of equivalent mutants, which is not repeated here.
"""

import functools
import importlib
import pkgutil
from fnmatch import fnmatchcase

import proofs.vectors

AT_MOST = 0.05  # of all cells

# pairs of mistakes that systems share
PAIRS = """
position_minus_one position_plus_one | one more and one less
position_minus_one starts_at_one | one more and one less
base_of_10000 wrong_base | both are about the one base: the second takes 10000 for the right one
causal_strict sees_one_ahead | one more and one less
window_one_less window_one_more | one more and one less
"""


def _lines(page):
    return [tuple(part.strip() for part in line.split(" | ", 1)) for line in page.strip().splitlines()]


@functools.cache
def rows():
    """Kind -> pairs (pattern, reason), of all generators."""
    found = {"cell": [], "pair": [(f"* {pattern}", why) for pattern, why in _lines(PAIRS)], "mutant": []}
    for info in pkgutil.iter_modules(proofs.vectors.__path__):
        if not info.name.startswith("_"):
            for row, why in _lines(getattr(importlib.import_module(f"proofs.vectors.{info.name}"), "REASONS", "")):
                kind, _, pattern = row.partition(" ") if row.startswith(("pair ", "mutant ")) else ("cell", "", row)
                found[kind].append((f"posref.*{info.name}.{pattern}" if kind == "mutant" else f"{info.name} {pattern}", why))
    return found


def reason(*cell, kind="cell"):
    """The first reason that fits (system, op, variant, mistake), or (mutant,), or None."""
    return next((why for pattern, why in rows()[kind] if fnmatchcase(" ".join(cell), pattern)), None)


def idle(explained, kind="cell"):
    """Patterns that fit none of the cells (system, op, variant, mistake), or (mutant,), that needed a reason."""
    cells = [" ".join(cell) for cell in explained]
    return [pattern for pattern, _ in rows()[kind] if not any(fnmatchcase(cell, pattern) for cell in cells)]
