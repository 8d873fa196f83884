"""Golden vectors of one model: right at its own sizes, and telling apart what goes wrong with it."""

import json

import numpy as np
import pytest

from posref import attention, vectors
from posref.explain import command, explanation
from posref.rotary import rope
from proofs.vectors import _model
from proofs.vectors.__main__ import main
from tests.every import some

MODELS = {
    "gpt-oss-20b": (["--layer", "0"], {"no_magnitude", "other_layout", "unscaled", "sign"}),
    "gemma-4-26b": (["--layer", "5", "--part", "text_config"], {"other_layout", "unscaled", "sign"}),
    "deepseek-v3": ([], {"other_layout", "unscaled", "sign"}),
}


@pytest.mark.parametrize("name", some([*MODELS], len(MODELS)))
def test_vectors_of_a_model(name, tmp_path):
    options, flags = MODELS[name]
    assert main(["--config", name, *options, "-o", str(tmp_path)]) == 0
    assert vectors.verify(tmp_path) == []
    document = json.loads((tmp_path / "rope.json").read_text(encoding="ascii"))
    group = command.chosen(explanation(name), *((int(options[1]), options[3]) if len(options) > 2 else ())).layers[0]
    table, near, far, _ = document["cases"]
    assert set(near["flags"]) == flags
    expected = np.array(table["expected"]["data"])
    # 64-bit powers and quotients against 200 bits: a dozen roundings
    np.testing.assert_allclose(group.frequencies, expected, rtol=2.0**-47, atol=0)
    for case in (near, far):
        x, positions, y = (
            np.array(part["data"], dtype=np.float64).reshape(part["shape"])
            for part in (case["tensors"]["x"], case["tensors"]["positions"], case["expected"])
        )
        cos, sin = rope.tables(positions, expected)
        turned = rope.rotate(x, cos, sin, layout=group.layout.partition("_to_")[0]) * group.magnitude
        turned = np.concatenate([turned[..., 0::2], turned[..., 1::2]], axis=-1) if "_to_" in group.layout else turned
        assert np.abs(turned - y).max() <= (positions.max() + 16) * 2.0**-51


def decoded(group, w, step):
    """The step by posref's functions, with what the configuration says of the layer."""
    read, given = group.layout.partition("_to_")[0], step.tensors

    def turn(x, at):
        return rope.rotate(x, *rope.tables(at, w), layout=read) * group.magnitude

    words = {"scale": group.softmax_scale, "softcap": group.softcap, "sinks": given["sinks"][:, None] if group.sinks else None}
    at = given["k_positions"]
    seen = attention.causal_mask(given["q_positions"], at)
    if group.window:
        seen &= attention.window_mask(given["q_positions"], at, width=group.window)
    assert np.array_equal(seen, given["seen"] != 0)
    return attention.attend(turn(given["q"], given["q_positions"]), turn(given["k"], at), given["v"], mask=seen, **words)


RELEASED = sorted(path.stem for path in vectors.DIRECTORY.glob("released/*.json"))


@pytest.mark.parametrize("name", RELEASED)
def test_released(name):
    """The frequencies are those that `explain` reads for that layer, and the turned features those of the specification."""
    groups, system = _model._rotations(name), vectors.released(name)
    assert {f"op {case.op}" for case in system.cases} <= system.conventions.keys()
    for group, table, turned, step in zip(groups, *(system.cases[n::3] for n in range(3)), strict=True):
        assert turned.id.split("/")[2] in ("all", f"layer{group.indices[0]}")
        np.testing.assert_allclose(group.frequencies, table.expected, rtol=2.0**-47, atol=0)
        cos, sin = rope.tables(turned.tensors["positions"], table.expected)
        y = rope.rotate(turned.tensors["x"], cos, sin, layout=group.layout.partition("_to_")[0]) * group.magnitude
        y = np.concatenate([y[..., 0::2], y[..., 1::2]], axis=-1) if "_to_" in group.layout else y
        assert vectors.error(turned, y, "f64") <= 1
        assert vectors.named(turned, 2 * turned.expected) == []
        assert {"other_layout", "sign"} <= set(turned.flags)
        assert vectors.error(step, decoded(group, table.expected, step), "f64") <= 1
        assert step.tensors["k_positions"][-1] == step.tensors["q_positions"][0] == turned.tensors["positions"][-1]
        assert step.flags


def test_no_released_model_without_vectors():
    with pytest.raises(ValueError, match=r"there are no vectors of 'gpt-5'; there are .*llama-3\.1-8b"):
        vectors.released("gpt-5")


def test_a_model_with_several_rotations(tmp_path, capsys):
    assert main(["--config", "gemma-4-26b", "-o", str(tmp_path)]) == 2
    assert "choose one" in capsys.readouterr().err
    assert main(["--config", "llama-3.1-8b"]) == 2
    assert "needs -o" in capsys.readouterr().err


@pytest.mark.parametrize("config", [{"model_type": "qwen", "seq_length": 2048}, "internlm2_5-7b"])
def test_frequencies_that_follow_the_length_have_no_vectors(config, tmp_path, capsys):
    name = config
    if isinstance(config, dict):
        (tmp_path / "config.json").write_text(json.dumps(config), encoding="ascii")
        name = str(tmp_path / "config.json")
    assert main(["--config", name, "-o", str(tmp_path / "out")]) == 2
    assert "change with the length of a text; vectors are written for one list" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
