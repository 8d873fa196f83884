"""Swin and XLNet: what a file says of their scores, what it leaves to its class, and the ways in which it can be broken.

`tests/parity/test_explained_scores.py` compares with the modules.
"""

import numpy as np
import pytest

from posref.check import check
from posref.explain import explain, explanation, presets
from posref.explain.words import describe
from posref.relative import swin

SWIN = {"model_type": "swin", "image_size": 64, "patch_size": 4, "embed_dim": 8, "depths": [2, 3], "num_heads": [2, 4]}


def test_stages_of_swin():
    """The class's own sizes: 56, 28, 14 and 7 patches a side, windows of 7, and none rolls where one window is all."""
    groups = explain({"model_type": "swin"})["layers"]
    assert [group["indices"] for group in groups] == [[0], [1], [2], [3], [4, 6, 8], [5, 7, 9], [10, 11]]
    assert [group["bias"]["shift"] for group in groups] == [0, 3, 0, 3, 0, 3, 0]
    assert [group["heads"] for group in groups] == [3, 3, 6, 6, 12, 12, 24]
    assert {(group["head_dim"], group["bias"]["window"], group["causal"]) for group in groups} == {(32, 7, False)}


def test_the_same_file_in_other_classes():
    """MaskFormer's Swin rolls where one window is all; Swin v2 scales by a trained number and masks by -200."""
    shifts = lambda name: [g["bias"]["shift"] for g in explain({"model_type": name})["layers"]]  # noqa: E731
    assert shifts("donut-swin") == shifts("swin") == shifts("swinv2")
    assert shifts("maskformer-swin") == [*shifts("swin"), 3]
    explained = explanation({"model_type": "swinv2", "pretrained_window_sizes": [12, 12, 12, 6]})
    assert [group.bias["height"] for group in explained.layers] == [12, 12, 12, 12, 12, 12, 6]
    assert explained.layers[1].bias["masked"] == -200
    assert "cosines times min(exp(logit_scale), 100)" in describe(explained, "x")


def test_a_swin_is_checked_by_its_file():
    name, settings = presets.op_and_settings({**SWIN, "window_size": 4}, layer=0)
    assert (name, settings["height"], settings["heads"]) == ("swin.bias", 4, 2)
    sides = {side: settings[side] for side in ("height", "width")}
    right = lambda at, table: swin.bias(swin.rows(at, **sides), table)  # noqa: E731
    assert check(right, name, heads=2, **sides).ok
    report = check(lambda at, table: right(at[:, ::-1].copy(), table), name, heads=2, **sides)
    assert [finding.name for finding in report.diagnosis] == ["rows_and_columns_exchanged"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"depths": [2]}, "depths names 1 stages and num_heads 2; they must be as many"),
        ({"depths": 4}, "depths is 4, expected a list of integers from 1 on"),
        ({"num_heads": [2, 0]}, r"num_heads is \[2, 0\], expected a list"),
        (
            {"model_type": "pvt", "depths": [2]},
            "depths, hidden_sizes, num_attention_heads name 1, 4, 4 stages; they must be as",
        ),
        ({"window_size": 0}, "window_size is 0, expected an integer from 1"),
        ({"image_size": [64, "x"]}, r"image_size is \[64, 'x'\], expected a list"),
    ],
)
def test_a_broken_swin(change, message):
    with pytest.raises(ValueError, match=rf"^the configuration: {message}[^\n]*$"):
        explain({**SWIN, **change})


def test_xlnet():
    (group,) = explain({"model_type": "xlnet"})["layers"]
    assert (group["heads"], group["head_dim"], group["causal"], len(group["indices"])) == (16, 64, False, 24)
    expected = {"call": "xlnet.scores", "attn_type": "bi", "scale": 0.125, "clamp_len": None, "bi_data": False, "memory": 512}
    assert {key: group["bias"][key] for key in expected} == expected
    (group,) = explain({"model_type": "xlnet", "attn_type": "uni", "clamp_len": 400, "same_length": True})["layers"]
    assert (group["causal"], group["bias"]["clamp_len"], group["bias"]["same_length"]) == (True, 400, True)
    assert "xlnet.clamp_ignored" in describe(explanation({"model_type": "xlnet", "clamp_len": 400}), "x")
    assert any("bi_data" in trap for trap in explain({"model_type": "xlnet", "bi_data": True})["traps"])
    assert presets.op_and_settings({"model_type": "xlnet"}) == (
        "xlnet.scores",
        {"heads": 16, "attn_type": "bi", "scale": 0.125},
    )
    with pytest.raises(ValueError, match=r"^the configuration: attn_type is 'both', expected bi or uni$"):
        explain({"model_type": "xlnet", "attn_type": "both"})


def test_parts_of_larger_models_are_explained():
    """Donut and MaskFormer hold a Swin."""
    explained = explain({"model_type": "maskformer"})
    assert [g["part"] for g in explained["layers"] if g["encoding"] == "swin"] == ["backbone_config"] * 7
    assert np.isfinite([g["softmax_scale"] for g in explained["layers"] if g["encoding"] == "swin"]).all()


def test_a_model_with_another_backbone_has_no_layers_of_its_own():
    """DPT builds what `backbone` or backbone_config names, in place of num_hidden_layers layers (modeling_dpt.py)."""
    for named in ({"backbone": "facebook/dinov2-small"}, {"backbone_config": {"model_type": "resnet"}}):
        assert not [group for group in explanation({"model_type": "dpt"} | named).layers if group.part == ""]
    assert explanation({"model_type": "dpt", "backbone": None}).layers


def test_jetmoe_repeats_its_keys_as_a_whole():
    """Its queries come from experts, and key_states.repeat gives query head h the key head h % 4 (modeling_jetmoe.py)."""
    explained = explanation({"model_type": "jetmoe", "num_key_value_heads": 4, "num_experts_per_tok": 3})
    (group,) = explained.layers
    assert (group.heads, group.kv_heads) == (12, 4)
    assert "query head h uses key head h % 4" in describe(explained, "file")
    assert "heads_tiled" not in [slip["mistake"] for slip in group.slips]
