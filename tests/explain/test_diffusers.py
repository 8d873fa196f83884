"""Files of diffusers, which have `_class_name`: described, or named as not described; that modules do so is in tests/parity."""

import itertools
import json

import numpy as np
import pytest

from posref.explain import diffusers, explain

WAN = {"_class_name": "WanTransformer3DModel", "_diffusers_version": "0.42.1"}
WAN |= {"attention_head_dim": 128, "num_attention_heads": 40}


def test_wan_turns_by_time_row_and_column():
    """44, 42 and 42 of 128 features; 40 layers, of its class, and as many attentions to the text, which turn nothing."""
    patches, text = explain(WAN)["layers"]
    assert patches["indices"] == text["indices"] == list(range(40))
    assert [patches["axes"].count(axis) for axis in "thw"] == [22, 21, 21]
    first = [patches["frequencies"][i] for i in (0, 22, 43)]
    assert first == [1.0, 1.0, 1.0]
    assert np.isclose(patches["frequencies"][42], 10000 ** (-40 / 42), rtol=1e-14)
    assert (text["kind"], text["encoding"]) == ("cross_attention", "none")


def test_keys_of_meta_are_not_those_of_a_class_of_diffusers():
    """dim, n_layers and n_heads stand in a params.json too: Z-Image turns by row and column, and is no Llama."""
    image = {"_class_name": "ZImageTransformer2DModel", "dim": 3840, "n_layers": 30, "n_heads": 30}
    assert {group["part"] for group in explain(image)["layers"]} == {"layers", "noise_refiner", "context_refiner"}
    assert explain(image)["layers"][0]["base"] == 256
    assert explain({**image, "_class_name": "NoSuchModel"})["layers"] == []


@pytest.mark.parametrize("name", ["FlowMatchEulerDiscreteScheduler", "NoSuchModel"])
def test_a_class_without_a_row_is_named(name):
    found = explain(
        {"_class_name": name, "rope_theta": 1e4, "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 3}
    )
    assert found["layers"] == []
    (entry,) = found["unsupported"]
    assert entry["model_type"] == name
    assert entry["indices"] == [0, 1, 2]
    assert f"posref does not know how {name} of diffusers uses positions" == entry["why"]


def test_the_index_of_a_pipeline_names_its_models():
    index = {
        "_class_name": "FluxPipeline",
        "transformer": ["diffusers", "FluxTransformer2DModel"],
        "tokenizer": ["transformers", "T5"],
    }
    (entry,) = explain(index)["unsupported"]
    assert entry["why"].endswith("name the configuration of one: transformer")


def test_layers_beside_the_described_ones_are_named():
    found = explain({"_class_name": "HunyuanVideoTransformer3DModel"})
    assert [(entry["counted_by"], len(entry["indices"])) for entry in found["unsupported"]] == [("num_refiner_layers", 2)]


def test_a_key_that_the_class_ignores_is_named():
    found = explain({**WAN, "rope_theta": 5.0})
    assert found["traps"] == ["diffusers 0.42.1 ignores rope_theta: WanTransformer3DModel has no such key"]
    assert found["layers"] == explain(WAN)["layers"]


def test_a_type_of_transformers_is_read_as_one():
    llama = {"_class_name": "SomeModel", "model_type": "llama", "hidden_size": 64, "num_attention_heads": 4}
    assert explain(llama)["layers"][0]["model_type"] == "llama"


ODD = (None, "x", {}, [8, "x", 8], -4, 0.5, 1e300)


@pytest.mark.parametrize("name", diffusers.ROWS)
def test_a_value_of_another_kind_is_one_sentence(name):
    """Every key of a class, with values that it cannot have: an answer, or a ValueError in one line."""
    for key, value in itertools.product(diffusers.classes()[name]["defaults"], ODD):
        try:
            said = json.dumps(explain({"_class_name": name, key: value}))
        except ValueError as error:
            said = str(error)
        assert "\n" not in said
