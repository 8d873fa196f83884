"""Bounds of the angles: they hold at every position, are nearly reached, and belong to the paper's frequencies.

The measurement is exact: w comes from mpmath, a product of float32 numbers is exact in float64, and a product of float64
numbers is split into two parts.
"""

import json
import re

import numpy as np
import pytest

from posref import cli, precision
from posref.explain import explain
from posref.rotary import rope

mpmath = pytest.importorskip("mpmath", reason="pip install posref[proofs]")
LENGTH = 1 << 17
M = np.arange(1, LENGTH + 1, dtype=np.float64)


def defects(table, dim, base):
    """What the stored frequencies are off, by numbers of 160 bits."""
    with mpmath.workprec(160):
        exact = [mpmath.mpf(base) ** (-mpmath.mpf(2 * t) / dim) for t in range(dim // 2)]
        return np.array([float(mpmath.mpf(float(a)) - w) for a, w in zip(table, exact, strict=True)])


def worst(recipe, dim, base):
    """The largest |angle - m w| over every pair and every position up to LENGTH."""
    table = np.asarray(precision.RECIPES[recipe].table(dim, base))
    kind = precision.bfloat16 if recipe == "bfloat16" else np.float32
    rounded = split if recipe == "float64" else lambda w: off_by(kind, w)
    return max(np.abs(rounded(float(w)) + M * off).max() for w, off in zip(table, defects(table, dim, base), strict=True))


def off_by(kind, w):
    """fl(fl(m) w) - m w."""
    return kind(kind(M).astype(np.float64) * w).astype(np.float64) - M * w


def split(w):
    """fl(m w) - m w in float64: w in halves of 26 and 27 bits, m has 18."""
    high = w * 134217729.0 - (w * 134217729.0 - w)
    return (M * w - M * high) - M * (w - high)


USED = ("float64", "float32", "float32 by exp and log", "float32 of a float64 table", "bfloat16 table")


@pytest.mark.parametrize(("dim", "base"), [(64, 1e4), (128, 5e5), (256, 1e4)])
@pytest.mark.parametrize("recipe", USED)
def test_no_position_is_off_by_more_and_one_nearly_is(recipe, dim, base):
    bound, seen = precision.phase(recipe, dim, base, LENGTH), worst(recipe, dim, base)
    assert seen <= bound <= 1.1 * seen


def test_positions_in_bfloat16():
    bound, seen = precision.phase("bfloat16", 128, 1e4, LENGTH), worst("bfloat16", 128, 1e4)
    assert seen <= bound <= 1.5 * seen


@pytest.mark.parametrize(("dim", "base"), [(64, 1e4), (128, 1e6)])
def test_pair_from_pair(dim, base):
    """theta *= scale, as ggml makes them: the largest error grows from pair to pair, and the bound with it."""
    scale = precision.RECIPES["float32, pair from pair"].table(dim, base)
    angle, seen = M.astype(np.float32), 0.0
    with mpmath.workprec(160):
        exact = [mpmath.mpf(base) ** (-mpmath.mpf(2 * t) / dim) for t in range(dim // 2)]
        parts = [(float(w), float(w - mpmath.mpf(float(w)))) for w in exact]
    for high, low in parts[1:]:
        angle = angle * scale
        seen = max(seen, np.abs((angle.astype(np.float64) - M * high) - M * low).max())
    assert seen <= precision.phase("float32, pair from pair", dim, base, LENGTH) <= 2 * seen


def test_a_wrong_table_breaks_the_bound():
    """The bound knows the paper's frequencies: those of base 10001 are off by half a radian."""
    table, exact = rope.frequencies(64, 1e4), precision._exact(64, 1e4)
    assert precision.phase_of(table, exact, LENGTH, bits=53, position_bits=53) < 1e-10
    assert precision.phase_of(rope.frequencies(64, 10001.0), exact, LENGTH, bits=53, position_bits=53) > 0.5


def test_exact_frequencies():
    high, low = precision._exact(128, 5e5)
    np.testing.assert_allclose(defects(high, 128, 5e5), -low, rtol=1e-10)


def test_longest_is_the_last_length_within_the_tolerance():
    for recipe in precision.RECIPES:
        last = precision.longest(recipe, 128, 5e5, tolerance=0.01)
        assert precision.phase(recipe, 128, 5e5, max(last, 1)) < 0.01 or last == 0
        assert precision.phase(recipe, 128, 5e5, last + 1) >= 0.01


@pytest.mark.parametrize(("dim", "length"), [(64, 1 << 17), (128, 1 << 17)])
def test_scores_are_within_their_bound(dim, length):
    """float32 throughout, cosine and sine of numpy, positions far and near; the right score in float64 of the offset alone."""
    random = np.random.default_rng(dim)
    table, exact = precision.RECIPES["float32"].table(dim, 1e4), rope.frequencies(dim, 1e4)
    bound = precision.score("float32", dim, 1e4, length)
    m, n = (random.integers(0, length, 400) for _ in "qk")
    q, k = random.normal(size=(2, 400, dim)).astype(np.float32)
    turned = [rope.rotate(x, *rope.tables(p.astype(np.float32), table), layout="half") for x, p in ((q, m), (k, n))]
    still = rope.tables(np.zeros(400), exact)
    right = rope.rotate(q.astype(float), *still, layout="half") * rope.rotate(
        k.astype(float), *rope.tables(n - m, exact), layout="half"
    )
    sizes = [np.hypot(x[:, : dim // 2].astype(float), x[:, dim // 2 :]) for x in (q, k)]
    off = abs((turned[0] * turned[1]).sum(-1, dtype=np.float32) - right.sum(-1)) / (sizes[0] * sizes[1]).sum(-1)
    assert turned[0].dtype == np.float32
    assert off.max() <= bound
    assert off.max() >= bound / 50  # the worst pair of positions is rare


def test_the_page_of_rope_states_the_bound():
    """Its row on angles in float32, of a table that is the same on every machine."""
    stated, last = re.search(r"phase off by up to ([0-9.e-]+) rad near position (\d+)", rope.__doc__).groups()
    assert precision.phase("float32 of a float64 table", 128, 1e4, int(last)) == pytest.approx(float(stated), rel=0.01)


def test_explain_states_the_bound():
    (group,) = explain(
        {
            "model_type": "llama",
            "hidden_size": 4096,
            "num_attention_heads": 32,
            "num_hidden_layers": 1,
            "rope_theta": 10000.0,
            "max_position_embeddings": LENGTH,
        }
    )["layers"]
    assert group["phase_error"]["float32"] == pytest.approx(7.8e-3, rel=0.01)
    assert group["phase_error"]["bfloat16"] == np.pi


def printed(capsys, *arguments):
    assert cli.main(["precision", *arguments]) == 0
    return capsys.readouterr().out


def test_command(capsys):
    text = printed(capsys, "--dim", "128", "--base", "10000")
    assert "Longest text whose angles are right to 0.01 rad" in text
    assert "float32 of a float64 table" in text
    rows = json.loads(printed(capsys, "--dim", "64", "--length", "4096", "--json"))
    assert [row["recipe"] for row in rows] == list(precision.RECIPES)
    assert all(row["longest"] >= 1 for row in rows)


@pytest.mark.parametrize(
    "wrong",
    [
        ["--dim", "3"],
        ["--dim", "0"],
        ["--base", "1"],
        ["--base", "inf"],
        ["--length", "0"],
        ["--tolerance", "0"],
        ["--base", "nan"],
    ],
)
def test_refused(wrong, capsys):
    assert cli.main(["precision", *wrong]) == 2
    assert capsys.readouterr().err.count("\n") == 1
