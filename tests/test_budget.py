"""A system has a budget of statements (`python tests/count_code.py`); one that needs more says why in a sentence."""

from pathlib import Path

from posref import discovery
from tests.count_code import statements

ROOT = Path(__file__).resolve().parents[1]
BUDGET = {"posref/{name}": 60, "posref/ops/{system}": 41, "proofs/{name}": 120, "proofs/vectors/{system}": 60}
MORE = {
    "posref/ops/axes.py": "grids, sections and orders, and the axes of released models",
    "posref/ops/deberta.py": "three models with conventions of their own, three terms, and gradients",
    "posref/ops/rope.py": "the mistakes that the world makes most, and the readers of phases for those that no list has",
    "posref/ops/scaling.py": "seven schedules, their ranges and their magnitudes",
    "posref/ops/shaw.py": "keys, values and gradients, with and without clipping",
    "posref/ops/swin.py": "two versions, BEiT's table, shifted windows and released masks",
    "posref/ops/t5.py": "buckets of two sides, exact and by logarithm, and gradients",
    "posref/ops/transformer_xl.py": "tables, the shift and its garbage, four terms",
    "posref/ops/xlnet.py": "four streams of positions, and segments",
    "posref/rotary/scaling.py": "seven schedules, and the lengths and lists that they choose by",
    "proofs/absolute/floater.py": "the solver's loops by their invariants, eight rooted trees, and what solves a linear field",
    "proofs/absolute/index.py": "the table of requirements of all absolute encodings",
    "proofs/absolute/sinusoidal.py": "the claims of four sources, most of them false",
    "proofs/relative/alibi.py": "three forms, where they agree, and the recursion of the slopes",
    "proofs/relative/deberta.py": "two conventions, logarithmic buckets, the decoder, and the gradient",
    "proofs/relative/shaw.py": "keys, values, one-sided clips and the gradient",
    "proofs/relative/swin.py": "two versions, BEiT's table, shifted windows and released masks",
    "proofs/relative/t5.py": "rounded logarithms are decided for every bucket, and the gradient",
    "proofs/relative/transformer_xl.py": "the shift above the diagonal, and the derivation from the absolute score",
    "proofs/relative/tupe.py": "the reset in both conventions, and what is absolute in it",
    "proofs/rotary/axes.py": "grids, released maps that are no rotation, and presets",
    "proofs/rotary/generators.py": "one lemma, five constructors and the one that does not commute",
    "proofs/rotary/layouts.py": "every conversion of features, weights and gains",
    "proofs/rotary/linear_attention.py": "prefix sums for every width, and why the denominator is not rotated",
    "proofs/rotary/rope.py": "the system that everything else is compared with",
    "proofs/rotary/scaling.py": "seven schedules, each in the words of its paper and of released code",
    "proofs/vectors/alibi.py": "three forms, times scale, causal, far and of many heads",
    "proofs/vectors/deberta.py": "both conventions, buckets, the decoder, and gradients",
    "proofs/vectors/rope.py": "all layouts, widths, schedules of positions, scores and attention",
    "proofs/vectors/scaling.py": "seven schedules, and what released code makes of them",
    "proofs/vectors/shaw.py": "keys, values and gradients",
    "proofs/vectors/swin.py": "two versions, BEiT's table, shifted windows and released masks",
    "proofs/vectors/t5.py": "buckets of every size and side, and gradients",
    "proofs/vectors/transformer_xl.py": "tables, shift and four terms",
    "proofs/vectors/tupe.py": "both conventions, with and without resets, masks and two texts",
    "proofs/vectors/value.py": "turned back and not, with masks, caches and positions of two texts",
}


def complaints(name):
    for pattern, most in BUDGET.items():
        file = pattern.format(name=name.replace(".", "/"), system=name.rpartition(".")[2]) + ".py"
        used = statements((ROOT / file).read_text(encoding="utf-8"))
        if (used > most) != (file in MORE):
            yield f"{file} has {used} statements, the budget is {most}; MORE says why it needs more"


def test_budget():
    assert [said for name in discovery.names() for said in complaints(name)] == []
