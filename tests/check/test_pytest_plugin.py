"""The fixture of posref in somebody's tests."""

import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

from posref import pytest_plugin

TESTS = """
from posref.relative import alibi

def right(query_positions, key_positions):
    return alibi.bias(query_positions, key_positions, alibi.slopes(12), form="signed")

def wrong(query_positions, key_positions):
    return alibi.bias(query_positions, key_positions, alibi.slopes(16)[:12], form="signed")

def test_right(posref_check):
    assert posref_check(right, "alibi.bias", heads=12, form="signed").ok

def test_wrong(posref_check):
    posref_check(wrong, "alibi.bias", heads=12, form="signed")
"""


def test_a_failed_check_fails_the_test_with_its_report(tmp_path):
    (tmp_path / "test_bias.py").write_text(TESTS)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", pytest_plugin.__name__, "-q", "--junit-xml", "tests.xml", "test_bias.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(Path(__file__).parents[2])},
        timeout=120,
    )
    assert "1 failed, 1 passed" in run.stdout
    assert "Diagnosis: your output equals alibi.bias" in run.stdout
    assert "Traceback" not in run.stdout
    assert "posref undecided" in (tmp_path / "tests.xml").read_text()


def test_it_is_installed_with_posref():
    setup = ConfigParser()
    setup.read(Path(__file__).parents[2] / "setup.cfg")
    assert setup["options.entry_points"]["pytest11"] == f"posref = {pytest_plugin.__name__}"
