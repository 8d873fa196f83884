"""How tokens are counted, in the file's own words; that modules count so is in tests/parity/test_drift.py."""

import pytest

from posref.explain import explain, explanation
from posref.explain.words import describe

SIZES = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4}
TOKENS = "position_ids.padded(mask, filler=0)"
SAID = {  # model type: forward, generate, cached
    "llama": ("arange(n)", TOKENS, "arange(c, c + n)"),
    "gpt2": ("arange(n)", TOKENS, "arange(c, c + n)"),
    "bert": ("arange(n)", None, None),
    "roberta": ("learned.position_ids(ids != 1, convention='roberta', padding_idx=1)", None, None),
    "biogpt": ("arange(n) + 2", TOKENS, "arange(c, c + n) + 2"),
    "bloom": (TOKENS, None, f"the last n of {TOKENS}, of all c + n tokens"),
    "falcon": ("arange(n)", TOKENS, "arange(c, c + n)"),
    "mpt": ("arange(n)", None, "arange(c, c + n)"),
    "clip_text_model": ("arange(n)", None, "arange(c, c + n)"),
}


@pytest.mark.parametrize("model_type", SAID)
def test_positions(model_type):
    (group,) = explain({"model_type": model_type, **SIZES})["layers"]
    assert tuple(group["positions"][key] for key in ("forward", "generate", "cached")) == SAID[model_type]


def test_the_row_of_padding_is_that_of_the_file():
    (group,) = explain({"model_type": "roberta", **SIZES, "pad_token_id": 5})["layers"]
    assert group["positions"]["forward"].endswith("padding_idx=5)")
    for wrong in ("x", -5, 1.5, True):
        with pytest.raises(ValueError, match="pad_token_id"):
            explain({"model_type": "roberta", **SIZES, "pad_token_id": wrong})


def test_encoders_and_decoders():
    encoder, decoder, cross = explain({"model_type": "bart", "d_model": 64, "encoder_layers": 2, "decoder_layers": 2})["layers"]
    assert encoder["positions"]["forward"] == decoder["positions"]["forward"] == "arange(n) + 2"
    assert encoder["positions"]["cached"] is None
    assert decoder["positions"]["cached"] == "arange(c, c + n) + 2"
    assert decoder["positions"]["generate"] is None
    assert cross["positions"] is None


def test_pictures():
    vision, text = explain({"model_type": "qwen2_vl", "hidden_size": 1536})["layers"]
    assert vision["positions"]["forward"] is None
    assert vision["positions"]["images"].startswith("axes.grid(height, width)")
    assert "position_ids.multimodal" in text["positions"]["images"]
    (vit,) = explain({"model_type": "vit"})["layers"]
    assert vit["positions"]["images"] == "one row of the table for each patch"


def test_layers_without_position_have_none():
    groups = explain({"model_type": "cohere2", **SIZES, "num_hidden_layers": 4})["layers"]
    assert [group["positions"] is None for group in groups] == [False, True]


def test_words():
    text = describe(explanation({"model_type": "opt", **SIZES}), "opt")
    assert (
        "positions    without position_ids: the tokens of the mask are counted from 2; padding has 1: learned.position_ids"
        in text
    )
    assert "in generate(): the tokens of the mask are counted from 0; padding has 0" in text
