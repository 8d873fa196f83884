"""Golden vectors of one model: right at its own sizes, and telling apart what goes wrong with it."""

import json

import numpy as np
import pytest

from posref import vectors
from posref.explain import command, explain
from posref.rotary import rope
from proofs.vectors.__main__ import main

MODELS = {
    "llama-3.1-8b": ([], {"other_layout", "unscaled", "sign"}),
    "gpt-oss-20b": (["--layer", "0"], {"no_magnitude", "other_layout", "unscaled", "sign"}),
    "deepseek-v3": ([], {"other_layout", "unscaled", "sign"}),
    "gemma-4-26b": (["--layer", "5", "--part", "text_config"], {"other_layout", "unscaled", "sign"}),
}


@pytest.mark.parametrize("name", MODELS)
def test_vectors_of_a_model(name, tmp_path):
    options, flags = MODELS[name]
    assert main(["--config", name, *options, "-o", str(tmp_path)]) == 0
    assert vectors.verify(tmp_path) == []
    document = json.loads((tmp_path / "rope.json").read_text(encoding="ascii"))
    group = command.chosen(explain(name), *((int(options[1]), options[3]) if len(options) > 2 else ()))["layers"][0]
    table, near, far = document["cases"]
    assert set(near["flags"]) == flags
    expected = np.array(table["expected"]["data"])
    # 64-bit powers and quotients against 200 bits: a dozen roundings
    np.testing.assert_allclose(group["frequencies"], expected, rtol=2.0**-47, atol=0)
    for case in (near, far):
        x, positions, y = (
            np.array(part["data"], dtype=np.float64).reshape(part["shape"])
            for part in (case["tensors"]["x"], case["tensors"]["positions"], case["expected"])
        )
        cos, sin = rope.tables(positions, expected)
        turned = rope.rotate(x, cos, sin, layout=group["layout"].partition("_to_")[0]) * group["magnitude"]
        turned = np.concatenate([turned[..., 0::2], turned[..., 1::2]], axis=-1) if "_to_" in group["layout"] else turned
        assert np.abs(turned - y).max() <= (positions.max() + 16) * 2.0**-51


def test_a_model_with_several_rotations(tmp_path, capsys):
    assert main(["--config", "gemma-4-26b", "-o", str(tmp_path)]) == 2
    assert "choose one" in capsys.readouterr().err
    assert main(["--config", "llama-3.1-8b"]) == 2
    assert "needs -o" in capsys.readouterr().err
