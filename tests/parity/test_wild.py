"""The wall of verdicts: it names what is wrong with a layer, and the corpus has what it measured."""

import importlib
import importlib.metadata
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="pip install posref[parity]")
pytest.importorskip("transformers", reason="pip install posref[parity]")
sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

import _wild_transformers as layers
import check_real_implementations as example
import wild

from posref import attention, facts
from tests.programs import models
from tests.release import stages

CORPUS, FINDINGS = facts.read("corpus"), facts.read("findings")


@pytest.fixture(scope="module")
def calls():
    return models.run(models.build(models.tiny("gemma2"))).attentions


def changed(call, **arguments):
    """A layer that makes a mistake: its output is attention with other arguments than it was given."""
    y = attention.attend(**layers.attention_of(call) | arguments)
    return call._replace(output=np.swapaxes(y, 1, 2))


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
    for library in {*wild.known_libraries(), *(row["library"] for row in FINDINGS["findings"])}:
        assert sum(wild.has(pins, library) for pins in CORPUS["environments"].values()) == 1, library


def installed(row):
    """Whether the library of a row is here, in the version that the row was measured with."""
    try:
        pin = f"{row['who']}=={importlib.metadata.version(row['who'])}"
    except importlib.metadata.PackageNotFoundError:
        return False
    return any(pin in pins for pins in CORPUS["environments"].values())


# test_rotations asks a part of the rotary classes, and all of them in its slow test
HERE = [row for row in CORPUS["rows"] if installed(row) and row["call"] != "_wild_transformers.every_rotation"]


@pytest.mark.parametrize("row", HERE, ids=lambda row: f"{row['who']} {row['what']}")
def test_an_installed_library_gives_its_verdict(row):
    assert stages.compared(wild.verdict(row), "varies" in row) == stages.compared(row["verdict"], "varies" in row)


def test_rows_of_an_environment(monkeypatch, tmp_path):
    """A group prints its own rows; one without an environment has none, and says so."""
    environments = {"here": ["onnx==1"], "nowhere": ["posref-of-nobody==0"]}
    monkeypatch.setattr(wild, "CORPUS", {**CORPUS, "environments": environments})
    here = str(tmp_path / "here")

    def python_of(folder, pins):
        if str(folder) == here:
            return sys.executable
        raise wild.subprocess.CalledProcessError(1, "pip")

    monkeypatch.setattr(wild, "python_of", python_of)
    *found, missing = wild.printed(tmp_path)
    expected = [[row["what"], row["verdict"]] for row in CORPUS["rows"] if row["who"] == "onnx"]
    assert [line.strip("| ").split(" | ")[2:] for line in found] == expected
    assert len(expected) == 7
    assert re.fullmatch(r"not measured: no environment of posref-of-nobody==0: .*pip.*", missing)


def test_an_environment_is_made_once(monkeypatch, tmp_path):
    calls = []
    monkeypatch.setattr(wild.subprocess, "run", lambda command, check: calls.append(command[1:4]))
    (tmp_path / "group").mkdir()
    for pins in (["numpy==2"], ["numpy==2"], ["numpy==3"]):
        assert wild.python_of(tmp_path / "group", pins) == str(tmp_path / "group" / "bin" / "python")
    assert calls == [["-m", "venv", "--clear"], ["-m", "pip", "install"]] * 2


def test_what_differs_is_a_finding_or_a_convention():
    known = {row["id"]: row["library"] for row in (*FINDINGS["findings"], *FINDINGS["conventions"])}
    for row in CORPUS["rows"]:
        assert row["verdict"].startswith("differs" if "finding" in row else "agrees") or " layers agree " in row["verdict"], row
        assert "finding" not in row or known[row["finding"]] == row["who"], row
    assert len({(row["who"], row["what"]) for row in CORPUS["rows"]}) == len(CORPUS["rows"])


def test_every_row_can_be_asked():
    for home, _, name in {tuple(row["call"].partition(".")) for row in CORPUS["rows"]}:
        assert callable(getattr(importlib.import_module(home), name))


def test_verdicts_are_written(monkeypatch, tmp_path):
    """The file as it is, but for what was measured."""
    (tmp_path / "posref" / "facts").mkdir(parents=True)
    monkeypatch.setattr(wild, "ROOT", tmp_path)
    wild.write([])
    written = tmp_path / "posref" / "facts" / "corpus.json"
    assert written.read_text() == (Path(wild.facts.__file__).parent / "corpus.json").read_text()
    wild.write(["| onnx | 1 | RoPE: reference, interleaved=0 | agrees: otherwise |"])
    rows = json.loads(written.read_text())["rows"]
    assert [new["verdict"] for new, old in zip(rows, CORPUS["rows"], strict=True) if new != old] == ["agrees: otherwise"]


def test_a_verdict_that_depends_on_the_processor_is_compared_by_its_first_word():
    here, there = (f"differs: {n} of 73 differ" for n in (2, 4))
    assert stages.compared(here, True) == stages.compared(there, True) != stages.compared("agrees: f64", True)
    assert stages.compared(here, False) != stages.compared(there, False)
    assert stages.compared("agrees to 1e-07", False) == stages.compared("agrees to 2e-08", False)
    assert [row["what"] for row in CORPUS["rows"] if "varies" in row] == ["T5 buckets, 34 up to 27, bidirectional"]


def test_example_prints_layouts(monkeypatch, capsys):
    llama = example.REAL[0]
    rotate = llama.function()
    backwards = llama._replace(name="backwards", make=lambda *sizes: lambda x, positions: rotate(x, -positions))
    for real, status, line in (
        (llama, 0, "  ok       transformers Llama               layout=half"),
        (backwards, 1, "  FAILED   backwards                        layout=none"),
    ):
        monkeypatch.setattr(example, "REAL", (real,))
        assert example.main() == status
        assert line in capsys.readouterr().out.splitlines()


def test_example_skips_what_is_not_installed(monkeypatch, capsys):
    monkeypatch.setattr(example, "available", lambda subject: False)
    assert example.main() == 0
    printed = capsys.readouterr().out
    assert printed.count("skipped") == len(example.REAL)
    assert 'needs torch and transformers; pip install -e ".[parity]"' in printed
