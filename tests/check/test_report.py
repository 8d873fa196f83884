"""The report: what a test, a notebook and a shell show of it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from posref import ops, pairing
from posref.check import broken, check, check_rope, diagnose

ROOT = Path(__file__).resolve().parents[2]
SENTENCE = 'your output equals rope.rotate with layout="interleaved"; you asked for layout="half"'

TESTS = """
from posref.check import broken, check_rope

def wrong_layout():
    return check_rope(broken.EXAMPLES[0].function, dim=broken.DIM, layout="half")

def test_require():
    wrong_layout().require()

def test_assert():
    report = wrong_layout()
    assert report.ok, report

def test_bare():
    assert wrong_layout().ok

def test_raises():
    def fn(x, positions):
        raise ValueError("no such kernel")

    report = check_rope(fn, dim=64, layout="half")
    assert report.ok, report
"""


def interleaved():
    return check_rope(broken.EXAMPLES[0].function, dim=broken.DIM, layout="half")


def right():
    from posref.rotary import rope

    def rotate(x, positions):
        return rope.rotate(x, *rope.tables(positions[:, None], rope.frequencies(8)), layout="half")

    return check_rope(rotate, dim=8, layout="half")


def test_require_raises_the_report_whose_repr_has_the_reason_first():
    report = interleaved()
    with pytest.raises(AssertionError) as raised:
        report.require()
    assert str(raised.value) == str(report)
    assert SENTENCE in repr(report)[:118], "pytest keeps so many characters"
    assert sorted(map(str.strip, repr(report).splitlines())) == sorted(map(str.strip, str(report).splitlines()))
    report = check_rope(lambda x, positions: None, dim=8, layout="half")
    assert "it returned None" in repr(report)[:118]
    assert sorted(map(str.strip, repr(report).splitlines())) == sorted(map(str.strip, str(report).splitlines()))
    assert right().require() is None
    assert repr(right()).splitlines()[0] == "posref: rope.rotate dim=8 layout=half base=10000 ok"


@pytest.mark.whole
def test_pytest_prints_the_sentence(tmp_path):
    """Under the rewriting of assertions, for each way to write the test."""
    (tmp_path / "test_mine.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path / "test_mine.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run([*map(str, command)], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    _, *shown = re.split(r"^_+ test_\w+ _+$", run.stdout, flags=re.MULTILINE)
    for out, text in zip(shown, (SENTENCE, SENTENCE, SENTENCE, "no such kernel"), strict=True):
        assert any(text in line and "raise ValueError" not in line for line in out.splitlines()), out
        assert "report.py" not in out


def test_the_last_line_of_ones_own_code_is_named():
    """Not that of numpy, into which it led."""

    def fails(x, positions):
        return np.linalg.inv(x[0, 0, :3, :2])

    def refused(x, positions):
        return pairing.split(x, "neox")

    for fn in (fails, refused):
        (check,) = check_rope(fn, dim=8, layout="half").checks
        assert f"({__file__}:{fn.__code__.co_firstlineno + 1})" in check.detail, check


def test_leaving_is_reported_and_an_interrupt_is_not():
    def leaves(x, positions):
        raise SystemExit(3)

    def interrupted(x, positions):
        raise KeyboardInterrupt

    assert "it raised SystemExit: 3" in repr(check_rope(leaves, dim=8, layout="half"))
    with pytest.raises(KeyboardInterrupt):
        check_rope(interrupted, dim=8, layout="half")


def test_extreme_results_raise_no_warning():
    """Warnings are errors in these tests."""

    def extreme(x, positions):
        y = x.astype(np.float16)
        y[..., 3] = np.inf
        return y

    assert not check_rope(extreme, dim=8, layout="half").ok


def test_the_function_keeps_its_own_treatment_of_errors():
    def divides(x, positions):
        return x / (x - x)

    with np.errstate(all="raise"):
        assert "it raised FloatingPointError" in repr(check_rope(divides, dim=8, layout="half"))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"to": lambda a: 1 / 0}, r"to= raised ZeroDivisionError: division by zero \(.*test_report\.py:\d+\)"),
        ({"to": lambda a: a, "to_positions": lambda a: 1 / 0}, "to_positions= raised ZeroDivisionError"),
        ({"to": lambda a: a * 1j}, "to= raised TypeError: .*complex"),
        ({"frequencies": [1j]}, "frequencies is no array of real numbers"),
        ({"frequencies": "a"}, "frequencies is no array of real numbers"),
    ],
)
def test_arguments_that_fail_are_named(options, match):
    with pytest.raises(ValueError, match=match):
        check_rope(lambda x, positions: x, dim=2, layout="half", **options)


@pytest.mark.parametrize("case", [3, None, {"id": "rope"}])
def test_what_is_no_case_is_refused(case):
    with pytest.raises(TypeError, match=r"vectors\.case: id is .*, expected a string"):
        diagnose(case, np.zeros(3))


def test_what_two_mistakes_say_alike_is_said_once():
    """A key multiplied like a query is on the wrong side, and not divided: one sentence, two remedies."""
    op = ops.op("xpos.rotate")
    asked = {"dim": 8, "layout": "half"}
    report = check(lambda x, positions: op.spec(x=x, positions=positions, side="query", **asked), op, side="key", **asked)
    assert [finding.name for finding in report.diagnosis] == ["other_side", "both_multiplied"]
    assert str(report).count('with side="query"; you asked for side="key"') == 1
