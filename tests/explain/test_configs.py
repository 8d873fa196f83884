"""Released configurations, each with what transformers 5.23.0 made of it: tables, magnitudes, softmax scales, windows.

`configs.json` holds of each released file the keys that bear on position, where it stands (repository, path, commit), and a
condensate of the modules that transformers built from the whole file: some entries and the sum of each table.
"""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from posref.explain import explain, explanation, sources
from posref.explain.parts import layer_counts, parts
from posref.explain.unrotated_layers import only_stack
from posref.explain.words import describe
from tests.every import every

RECORDS = json.loads(Path(__file__).with_name("configs.json").read_text(encoding="utf-8"))
ANSWERED = [record for record in RECORDS if "transformers" in record]
BY_NAME = {record["name"]: record for record in RECORDS}
# why transformers has a table or a layer more than is explained, or less
UNUSED = {"deepseek-ai__DeepSeek-V4-Pro", "sgl-project__DeepSeek-V4-Pro-FP8"}  # a table for sliding layers, and no such layer
NOT_BUILT = {"LocateAnything", "maxtext_qwen3_omni_30b_a3b"}  # their encoders were not among the modules that were recorded
OF_A_MERGER = {"MiniCPMV4_6"}  # one attention that merges patches
REFUSED = {  # seven files without a type, and one whose rope_scaling is a number, which transformers refuses too
    *("DeBERTa_deberta_base", "NEZHA-TensorFlow_nezha_bert_base_rel_config_vocab_100503", "mllm_llama_config_tiny_llama"),
    *("mllm_minicpm4_config_minicpm4", "mllm_qwen2_5vl_config_3B_w32a32", "mllm_qwen2_5vl_config_3B_w4a32_kai"),
    *("mllm_qwen_ascend_config_0.6B", "mllm_qwen3_moe_config_30B_A3B_gguf"),
}
# llava_llama, which transformers does not know; it was built as llama, by choice. JinaBERT has ALiBi; it was built as BERT.
UNKNOWN_TYPE = {"vila1.5-3b", "jina-embeddings-v2-base-en"}


@cache
def explained_file(name):
    return explain(BY_NAME[name]["config"])


def test_records():
    assert len(RECORDS) == 165
    assert len(ANSWERED) == 140
    assert all("@" in record["source"] for record in RECORDS)


def same(table, group):
    """Some entries and the sum to 1e-12; 3e-7 where only the float32 table of the module is known."""
    near = 3e-7 if table["float32"] else 1e-12
    found = np.array(group["frequencies"])
    if len(found) != table["pairs"] or abs(group["magnitude"] - table["magnitude"]) > 1e-12:
        return False
    entries = all(abs(found[int(i)] - value) <= near * abs(value) for i, value in table["at"].items())
    return entries and abs(found.sum() - table["sum"]) <= near * table["sum"]


@every(ANSWERED, name=lambda record: record["name"])
def test_as_transformers(record):
    config, explained = record["config"], explained_file(record["name"])
    if only_stack(config) == "encoder":  # the answers are of AutoModel, which builds both stacks
        explained = explain({key: value for key, value in config.items() if key != "architectures"})
    groups, answer = explained["layers"], record["transformers"]
    if record["name"] in UNKNOWN_TYPE:
        assert not groups
        assert explained["unsupported"]
        return
    rotating = [group for group in groups if group["frequencies"]]
    unexplained = [table for table in answer["tables"] if not any(same(table, group) for group in rotating)]
    assert len(unexplained) <= (record["name"] in UNUSED), unexplained
    if answer["tables"] and record["name"] not in NOT_BUILT:
        for group in rotating:
            shown = any(same(table, group) for table in answer["tables"])
            assert shown or group["model_type"] == "llama4_vision_model", (group["part"], "claims a table that no module has")
    for attention in answer["attention"]:
        fits = [group for group in groups if alike(group, attention)]
        short = attention["layers"] - sum(len(group["indices"]) for group in fits)
        assert short <= (record["name"] in OF_A_MERGER), attention


def alike(group, attention):
    scale = attention["scale"]
    if scale is not None and (group["softmax_scale"] is None or abs(group["softmax_scale"] - scale) > 1e-12):
        return False
    if attention["has_window"] and group["window"] != attention["window"]:
        return False
    return attention["turns"] is None or bool(attention["turns"]) == (group["encoding"] == "rope")


def rope(name):
    return next(group for group in explained_file(name)["layers"] if group["frequencies"])


def test_layouts():
    assert rope("Llama3")["layout"] == "half"
    assert rope("deepseek-ai__DeepSeek-V3")["layout"] == "interleaved_to_half"
    assert rope("maxtext_deepseek2_16b")["layout"] == "interleaved"
    assert rope("llama-4-scout-17b-16e-instruct-fp8-dynamic")["layout"] == "interleaved"
    assert rope("rtp_glm45")["layout"] == "half"


def test_layers_without_position():
    groups = explained_file("llama-4-scout-17b-16e-instruct-fp8-dynamic")["layers"]
    silent = [group for group in groups if group["encoding"] == "none"]
    assert [group["indices"] for group in silent] == [list(range(3, 48, 4))]
    assert silent[0]["temperature"]["f"] == 8192
    assert {group["chunk"] for group in groups if group["encoding"] == "rope" and group["part"] == "text_config"} == {8192}


def test_an_unknown_type_is_explained_as_far_as_its_keys_decide():
    group = rope("mlc_orion")
    assert group["layout"] is None
    assert group["softmax_scale"] is None
    assert group["base"] == BY_NAME["mlc_orion"]["config"]["rope_theta"]


@every(RECORDS, name=lambda record: record["name"])
def test_no_layer_is_silent(record):
    """Every layer that the keys of a part count is described or named, or one line says what is not known of the file."""
    if record["name"] in REFUSED:
        with pytest.raises(ValueError, match=r"^[^\n]*(no model_type|rope_scaling is 1.0)[^\n]*$"):
            explain(record["config"])
        return
    explained, config = explained_file(record["name"]), sources.read(record["config"])
    json.dumps(explained, allow_nan=False)
    said = [*explained["layers"], *explained["unsupported"]]
    assert said
    for (part, _), count in layer_counts(parts(config, config["model_type"])).items():
        found = {i for entry in said if entry["part"].removesuffix(".encoder") == part for i in entry["indices"]}
        stacks = {i for entry in said if entry["part"] in ("encoder", "decoder") for i in entry["indices"]}
        assert set(range(count)) <= (found | stacks)


def test_layers_that_are_not_described_are_named():
    """All 60 layers of Qwen3.5 are described, and the 64 of 118 of Nemotron-H in which tokens meet."""
    for name, part, expected in (
        ("nvidia__Qwen3.5-397B-A17B-NVFP4", "text_config", 0),
        ("nvidia__Nemotron-H-56B-Base-8K", "", 54),
    ):
        explained = explained_file(name)
        entries = [entry for entry in explained["unsupported"] if entry["part"] == part and entry["kind"]]
        assert sum(len(entry["indices"]) for entry in entries) == expected
        assert describe(explanation(BY_NAME[name]["config"]), name).count(": not described") == len(explained["unsupported"])
