"""A function that is right where posref always looks, and wrong elsewhere, fails with a seed; a right one passes with any."""

import inspect

import numpy as np
import pytest

from posref import cli, ops
from posref.check import check, check_rope
from posref.check.implementation import example
from posref.rotary import rope
from tests.every import every
from tests.own import OPS

THETA = rope.frequencies(16)
SEEDS = range(1, 6)


def right(x, positions):
    return rope.rotate(x, *rope.tables(positions[:, None], THETA), layout="half")


def known_shapes():
    seen = set()

    def recorded(x, positions):
        seen.add(x.shape)
        return right(x, positions)

    assert check_rope(recorded, dim=16, layout="half").ok
    return frozenset(seen)


SHAPES = known_shapes()


def cheat(when):
    """1 % too large where `when(x, positions)`, at shapes that a check without a seed does not ask for."""

    def rotate(x, positions):
        y = right(x, positions)
        return np.where(when(x, positions), 1.01 * y, y) if x.shape not in SHAPES else y

    return rotate


def rows(x):
    return np.arange(x.shape[2])[:, None]


CHEATS = {
    "every shape": lambda x, p: True,
    **{f"batch {b}": lambda x, p, b=b: len(x) == b for b in (1, 2, 3, 4, 5, 6)},
    **{f"{h} heads": lambda x, p, h=h: x.shape[1] == h for h in (1, 2, 3, 4, 5, 6, 7, 8, 10)},
    **{f"n % {m}": lambda x, p, m=m: x.shape[2] % m == m - 1 for m in (2, 3, 4, 5, 6, 7, 8)},
    **{f"row {r}": lambda x, p, r=r: rows(x) == r for r in (6, 11, 23, 40)},
    **{f"last row, n > {n}": lambda x, p, n=n: (rows(x) == x.shape[2] - 1) & (x.shape[2] > n) for n in (1, 10, 33, 64)},
    **{f"head {h}": lambda x, p, h=h: (np.arange(x.shape[1]) == h)[:, None, None] for h in (0, 1, 3, 6)},
    "the last text": lambda x, p: (np.arange(len(x)) == len(x) - 1)[:, None, None, None],
    "an even sum of positions": lambda x, p: p.sum() % 2 == 0,
    "an even sum of numbers": lambda x, p: int(64 * x.sum()) % 2 == 0,
    "another first number": lambda x, p: x.flat[0] != np.float32(-1.953125),
    "positions beyond 500": lambda x, p: (p > 500)[:, None, :, None],
    "positions from 20 to 200": lambda x, p: ((p > 20) & (p < 200))[:, None, :, None],
    "many texts": lambda x, p: len(x) > 6,
    "many heads": lambda x, p: x.shape[1] > 12,
    "more tokens": lambda x, p: x.shape[2] > 90,
    "large numbers": lambda x, p: np.abs(x) > 100,
    "few tokens": lambda x, p: x.shape[2] < 5,
    "many tokens": lambda x, p: x.shape[2] > 80,
}


@every([*CHEATS.items()][1::60], name=lambda item: item[0])
def test_a_cheat_passes_without_a_seed_and_fails_with_one(name, when):
    assert check_rope(cheat(when), dim=16, layout="half").ok
    report = check_rope(cheat(when), dim=16, layout="half", seed=1)
    assert [each.name.split(",")[0].split(" ")[0] for each in report.checks if each.status == "failed"] == ["shape"], report


@pytest.mark.slow
def test_cheats_fail_with_almost_any_seed():
    """Sizes are drawn: a cheat at one size of twelve is missed with a probability of about (11/12)^32."""
    assert len(CHEATS) >= 40
    passed = [(name, seed) for name, when in CHEATS.items() for seed in SEEDS if asked(when, seed).ok]
    assert len(passed) <= 0.02 * len(CHEATS) * len(SEEDS), passed


def asked(when, seed):
    return check_rope(cheat(when), dim=16, layout="half", seed=seed)


def itself(op):
    """The specification, which takes its settings by name."""
    kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    known = inspect.signature(op.spec).parameters

    def function(*arrays, **named):
        return op.spec(**dict(zip(op.given, arrays, strict=False)), **named)

    more = [inspect.Parameter(name, kinds[1], default=p.default) for name, p in known.items() if name not in op.given]
    function.__signature__ = inspect.Signature([*(inspect.Parameter(name, kinds[0]) for name in op.given), *more])
    return function


def accused(name, seed):
    """The report of an op that does not pass itself, or that was not asked with the seed."""
    op = ops.op(name)
    report = check(itself(op), name, seed=seed, **example(op))
    asked = any(each.name == f"seed {seed}" for each in report.checks)
    return "" if report.ok and asked else f"{name}, seed {seed}: {report}"


@every(OPS[::120], name=lambda op: op.name)
def test_the_specification_passes(op):
    """All of them with seed after seed are a stage of the release."""
    assert not accused(op.name, seed=1)


def test_the_command_line_has_it(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "seen.py").write_text("""
import numpy as np
from tests.check.test_seeded import cheat

def few(x, positions):
    return cheat(lambda x, p: x.shape[2] < 5)(x, positions)
""")
    asked = ["check", "seen.py:few", "--as", "rope", "--dim", "16", "--layout", "half"]
    assert cli.main(asked) == 0
    assert cli.main([*asked, "--seed", "7"]) == 1
    assert "failed: shape batch=" in capsys.readouterr().out


def attention(q, k, v, mask, subtracted):
    """In float32, where exp(s) overflows; what is NaN, as rows without keys are, becomes 0."""
    with np.errstate(all="ignore"):
        s = np.where(mask, np.float32(0.25) * q @ k.swapaxes(-1, -2), np.float32(-np.inf))
        powers = np.exp(s - s.max(axis=-1, keepdims=True) if subtracted else s)
        return np.nan_to_num(powers / powers.sum(axis=-1, keepdims=True)) @ v


def test_nan_may_be_read_as_0_in_rows_without_keys_and_nowhere_else():
    right, hidden = (
        check(lambda q, k, v, mask, way=way: attention(q, k, v, mask, way), "attention.attend", scale=0.25, seed=1)
        for way in (True, False)
    )
    assert right.ok, right
    assert not hidden.ok
