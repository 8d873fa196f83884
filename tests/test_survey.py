"""Every step of the survey agrees with the survey and rests on a theorem, and a wrong step is noticed."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from posref import statements

SCRIPT = Path(__file__).resolve().parents[1] / "examples" / "survey.py"


@pytest.fixture(scope="module")
def survey():
    if not SCRIPT.is_file():
        pytest.skip("the examples are not part of an installation")
    found = importlib.util.spec_from_file_location("survey", SCRIPT)
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_every_step_agrees(survey, capsys):
    survey.main()
    printed = capsys.readouterr().out
    assert f"{len(survey.STEPS)} steps agree" in printed
    pictures = {line.removeprefix("picture: ") for line in printed.splitlines() if line.startswith("picture: ")}
    assert len(pictures) > 10
    assert all((SCRIPT.parents[1] / picture).is_file() for picture in pictures)
    assert {step()[2] for step in survey.STEPS} <= statements.statements().keys()


def test_a_step_that_disagrees_is_noticed(survey, monkeypatch):
    monkeypatch.setattr(survey, "p", survey.p + 1e-6)
    with pytest.raises(AssertionError):
        survey.main()
    assert np.isfinite(survey.equation_2()[0]).all()
