"""The report: what a test, a notebook and a shell show of it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from posref.check import broken, check_rope

ROOT = Path(__file__).resolve().parents[2]
SENTENCE = 'your output equals RoPE with layout="interleaved"; you asked for layout="half"'

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


def test_require_raises_the_report():
    with pytest.raises(AssertionError) as raised:
        interleaved().require()
    assert str(raised.value) == str(interleaved())
    assert SENTENCE in str(raised.value)
    assert right().require() is None


def test_repr_has_every_line_and_the_reason_first():
    report = interleaved()
    assert SENTENCE in repr(report)[:118], "pytest keeps so many characters"
    assert sorted(map(str.strip, repr(report).splitlines())) == sorted(map(str.strip, str(report).splitlines()))
    report = check_rope(lambda x, positions: None, dim=8, layout="half")
    assert "it returned None" in repr(report)[:118]
    assert sorted(map(str.strip, repr(report).splitlines())) == sorted(map(str.strip, str(report).splitlines()))
    assert repr(right()).splitlines()[0] == "posref: rope dim=8 base=10000 layout=half ok"


def test_pytest_prints_the_sentence(tmp_path):
    """Under the rewriting of assertions, for each way to write the test."""
    (tmp_path / "test_mine.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path / "test_mine.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for test, text in (("require", SENTENCE), ("assert", SENTENCE), ("bare", SENTENCE), ("raises", "no such kernel")):
        run = [*map(str, command), "-k", f"test_{test}"]
        out = subprocess.run(run, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False).stdout
        assert "1 failed" in out
        assert any(text in line and "raise ValueError" not in line for line in out.splitlines()), out
        assert "report.py" not in out
