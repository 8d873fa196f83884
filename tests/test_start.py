"""The ten steps: each has its parts, may use definitions of earlier steps, and the script prints what the page shows."""

import ast
import doctest
import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")
STEPS = [part.partition("\n## ")[0] for part in re.split(r"^## (?=\d)", PAGE, flags=re.MULTILINE)[1:]]


def lines(step):
    return re.findall(r"^(?:>>>|\.\.\.) (.*)$", step, flags=re.MULTILINE)


def nodes(step, kind):
    return {
        node.id
        for node in ast.walk(ast.parse("\n".join(lines(step))))
        if isinstance(node, ast.Name) and isinstance(node.ctx, kind)
    }


def defined(step):
    imported = [
        alias.name
        for node in ast.walk(ast.parse("\n".join(lines(step))))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]
    return nodes(step, ast.Store) | {*imported}


@pytest.fixture(scope="module")
def session():
    """The script as a module, and the names that all ten steps define."""
    found = importlib.util.spec_from_file_location("start", ROOT / "examples" / "start.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    names = {}
    with np.printoptions():
        module.main(10, names)
    return module, names


def test_ten_steps():
    assert [step.partition(".")[0] for step in STEPS] == [str(n) for n in range(1, 11)]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.split("\n")[0])
def test_a_step_has_its_parts(step):
    """What is wrong before it in one paragraph, at most six lines that run, one picture, one slider."""
    wrong = step.split("\n\n")[1]
    assert wrong[0].isupper()
    assert wrong.count("\n") < 4
    assert 1 <= len(lines(step)) <= 6
    assert step.count("](figures/") == step.count('<div class="try"') == 1


def test_a_step_goes_on_with_names_of_the_steps_before():
    known = defined(STEPS[0])
    for step in STEPS[1:]:
        assert nodes(step, ast.Load) & known, step
        known |= defined(step)


def test_the_script_prints_the_steps_with_their_results(session, capsys):
    module, _ = session
    with np.printoptions():
        module.main(10, {})
    printed = capsys.readouterr().out
    for step in STEPS:
        assert step.split("\n\n")[0] in printed
        assert step.split("\n\n")[1] in printed
        wanted = [example.want for example in doctest.DocTestParser().get_examples(step.replace("```", ""))]
        assert any(wanted)
        assert all(want in printed for want in wanted)


def test_the_script_stops_after_a_step(session):
    names = {}
    with np.printoptions():
        session[0].main(2, names)
    assert "count" in names
    assert "digits" not in names


def test_what_the_encodings_of_the_steps_have(session):
    """The table of step 5, measured on the first 16 positions of texts of 16 and 32 words."""
    _, names = session
    m, index = names["count"][:16], names["index"]
    normalized = [index.encode_normalized(m, n, denominator="length - 1") for n in (16, 32)]
    one = {
        "number": index.encode(m),
        "number / length": normalized[0],
        "binary digits": names["digits"],
        "sinusoid": names["p"][:16],
    }
    other = one | {"number / length": normalized[1]}
    table = [[cell.strip() for cell in row.split("|")[1:-1]] for row in STEPS[4].splitlines() if row.startswith("| ")][1:]
    assert [row[0] for row in table] == [*one]
    for name, *cells in table:
        p = np.asarray(one[name], float)
        steps = np.linalg.norm(np.diff(p, axis=0), axis=1)
        measured = (np.abs(p).max() <= 1, np.allclose(p, other[name]), len(np.unique(p, axis=0)) == 16, np.ptp(steps) < 1e-9)
        assert cells == ["yes" if each else "no" for each in measured], name
