"""The wall of verdicts: it names what is wrong with a layer, and its page is what it printed."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="pip install posref[parity]")
pytest.importorskip("transformers", reason="pip install posref[parity]")
sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

import _wild_transformers as layers
import wild

from posref import attention
from tests.programs import models
from tests.release import stages

PAGE = (Path(__file__).parents[2] / "docs" / "wild.md").read_text()
FINDINGS = (Path(__file__).parents[2] / "docs" / "findings.md").read_text()


@pytest.fixture(scope="module")
def calls():
    return models.run(models.build(models.tiny("gemma2"))).attentions


def changed(call, **arguments):
    """A layer that makes a mistake: its output is attention with other arguments than it was given."""
    y = attention.attend(**layers.attention_of(call) | arguments)
    return call._replace(output=np.swapaxes(y, 1, 2))


def test_layers_agree(calls):
    assert re.fullmatch(r"13 layers agree to \de-07", layers.recomputed(calls))


def test_sinks_of_every_query():
    """A sink that the query computes is one key more."""
    calls = models.run(models.build(models.tiny("inkling2_text", num_hidden_layers=1))).attentions
    assert calls[0].keywords["sinks"].shape[2] == models.TOKENS
    assert re.fullmatch(r"1 layers agree to \de-0[78]", layers.recomputed(calls))
    forgotten = calls[0]._replace(keywords={**calls[0].keywords, "sinks": None})
    assert "nothing explains" in layers.recomputed([forgotten])


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("scale_squared", {"scale": 1 / 256}), ("scale_ignored", {"scale": 1.0}), ("no_mask", {"mask": None, "bias": None})],
)
def test_a_wrong_layer_is_named(calls, name, wrong):
    assert layers.attention_of(calls[0])["scale"] == 1 / 16
    assert f"({name})" in layers.recomputed([calls[0], changed(calls[0], **wrong)])


@pytest.mark.parametrize(
    "layer", [layers.bloom, layers.mpt, lambda: layers.roformer(False), layers.deberta_1, layers.deberta_2]
)
def test_a_layer_with_other_positions_differs(monkeypatch, layer):
    monkeypatch.setattr(layers, "P", 2 * layers.P)
    monkeypatch.setattr(layers, "OFFSETS", -layers.OFFSETS)
    assert layer().startswith("differs")


def test_what_nothing_explains(calls):
    noise = calls[0]._replace(output=np.random.default_rng(0).standard_normal(calls[0].output.shape))
    assert re.fullmatch(r"differs: nothing explains .* in layers\.0\.self_attn", layers.recomputed([noise]))


def test_rotations_are_judged():
    from posref.rotary import rope

    def turn(x, positions):
        return rope.rotate(x, *rope.tables(positions[:, None], rope.frequencies(64, 500.0)), layout="half")

    assert wild.rotation(turn, dim=64, base=500.0) == "agrees: layout half, f64"
    assert "base" in wild.rotation(turn, dim=64)


def test_every_library_has_one_environment():
    """Its version on the page is the one that is pinned there."""
    pins = [pin.replace("[cpu]", "").split("==") for pins in wild.ENVIRONMENTS.values() for pin in pins.split()]
    versions = {tuple(re.split(r" *\| *", line)[1:3]) for line in PAGE.splitlines() if re.match(r"\| .*\d\.\d", line)}
    assert {(library, version) for library, version in map(tuple, pins) if library in dict(versions)} == versions
    assert all([library for library, _ in pins].count(library) == 1 for library in dict(versions))


def test_rows_of_an_environment(monkeypatch, tmp_path):
    """A group prints its own rows; one without an environment has none, and says so."""
    monkeypatch.setattr(wild, "ENVIRONMENTS", {"here": "onnx==1", "nowhere": "posref-of-nobody==0"})
    here = str(tmp_path / "here")

    def python_of(folder, pins):
        if str(folder) == here:
            return sys.executable
        raise wild.subprocess.CalledProcessError(1, "pip")

    monkeypatch.setattr(wild, "python_of", python_of)
    *found, missing = wild.printed(tmp_path)
    expected = [line for line in PAGE.splitlines() if line.startswith("| onnx |")]
    assert [line.split("|")[3:] for line in found] == [line.split("|")[3:] for line in expected]  # at any version
    assert len(expected) == 2
    assert re.fullmatch(r"not measured: no environment of posref-of-nobody==0: .*pip.*", missing)


def test_an_environment_is_made_once(monkeypatch, tmp_path):
    calls = []
    monkeypatch.setattr(wild.subprocess, "run", lambda command, check: calls.append(command[1:4]))
    (tmp_path / "group").mkdir()
    for pins in (["numpy==2"], ["numpy==2"], ["numpy==3"]):
        assert wild.python_of(tmp_path / "group", pins) == str(tmp_path / "group" / "bin" / "python")
    assert calls == [["-m", "venv", "--clear"], ["-m", "pip", "install"]] * 2


def test_every_row_is_on_the_page():
    """Rows of the page are those of the program, in its order; a library that was not installed then has none."""
    listed = [tuple(cell.strip() for cell in line.split("|")[1:4]) for line in PAGE.splitlines() if line.startswith("| ")][2:]
    known = [(row.library, row.what) for row in wild.rows()]
    found = [(library, what) for library, _, what in listed]
    assert [row for row in found if row not in known] == []
    assert [row for row in known if row not in found] == []


def test_the_findings_count_the_layers_of_the_page():
    agree = set(re.findall(r"\| attention of `([\w-]+)`[^|]* \| (?:\d+ layers )?agree", PAGE))
    assert f"the attention of {len(agree)} model types" in FINDINGS


def test_what_posref_found_is_on_the_page():
    """Every row that differs is in the list of docs/findings.md, by version and by the first name of what shows it."""
    told = re.findall(r"^\* (\S+ \S+): (.*(?:\n  .*)*)", FINDINGS, re.MULTILINE)
    rows = [line.split(" | ") for line in PAGE.splitlines() if "| differs" in line]
    assert {f"{row[0].strip('| ')} {row[1]}" for row in rows} == {version for version, _ in told}
    for row in rows:
        name = re.search(r"(?:`|node `)(\w+)", row[-1]).group(1)
        assert any(version == f"{row[0].strip('| ')} {row[1]}" and name in text for version, text in told), row
    for version, text in told:
        assert re.search(r"ffected|Released (models|sizes)|convention|faithful", " ".join(text.split())), f"{version}: {text}"


def test_a_verdict_that_depends_on_the_processor_is_compared_by_its_first_word():
    here, there = (
        f"| t | 1 | T5 | differs: {n} of 73 differ | `f()`; how many differ depends on the processor |" for n in (2, 4)
    )
    assert stages.compared(here) == stages.compared(there) != stages.compared(here.replace("differs:", "agrees:"))
    assert stages.compared(here.replace("depends", "is")) != stages.compared(there.replace("depends", "is"))
    assert [row for row in PAGE.splitlines() if "34 up to 27" in row and "depends on the processor" in row]
