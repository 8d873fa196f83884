"""The usual slips: every row names mistakes that exist, and stands for layers of a configuration that was released."""

import json
from pathlib import Path

import pytest

from posref import ops
from posref.explain import explain, slips
from posref.explain.words import describe

CONFIGS = [record["config"] for record in json.loads(Path(__file__).with_name("configs.json").read_text(encoding="utf-8"))]
SIZES = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4}
GGUF = {"general.architecture": "llama", "llama.embedding_length": 64, "llama.block_count": 2, "llama.attention.head_count": 4}
# of a schedule, or a kind of position, that no file of configs.json has
WRITTEN = [
    {"model_type": "hunyuan_v1_dense", **SIZES, "rope_scaling": {"type": "dynamic", "alpha": 1000.0, "factor": 1.0}},
    {"model_type": "llama", **SIZES, "rope_scaling": {"rope_type": "linear", "factor": 2.0}},
    {"model_type": "llama", **SIZES, "rope_scaling": {"rope_type": "dynamic", "factor": 2.0}},
    {"model_type": "bloom", "n_layer": 2, "hidden_size": 96, "n_head": 6},
    {"model_type": "opt", **SIZES},
    {"model_type": "deberta-v2", **SIZES, "relative_attention": True, "pos_att_type": "p2c|c2p"},
    GGUF | {"rope_freqs.weight": [1.0] * 8},
]


def groups():
    for config in [*CONFIGS, *WRITTEN]:
        try:
            yield from explain(config)["layers"]
        except ValueError:
            continue


@pytest.fixture(scope="module")
def every_group():
    return list(groups())


@pytest.mark.parametrize("row", slips.ROWS, ids=lambda row: f"{row[1]} {row[2]}")
def test_a_row_stands_for_a_model(row, every_group):
    fits, op, names = row
    assert set(names.split()) <= set(ops.op(op).mistakes)
    assert any(fits(group) for group in every_group)
    assert not all(fits(group) for group in every_group)


def test_slips_of_a_model():
    (sliding, full) = explain("gpt-oss-20b")["layers"]
    names = [f"{slip['op'].split('.')[0]}.{slip['mistake']}" for slip in sliding["slips"]]
    assert set(names) >= {"scaling.truncated", "rope.other_layout", "attention.window_one_more", "attention.sink_left_out"}
    assert "scaling.not_truncated" not in names
    assert "attention.window_one_more" not in [f"attention.{slip['mistake']}" for slip in full["slips"]]
    threads = next(slip["seen_in"] for slip in sliding["slips"] if slip["mistake"] == "truncated")
    assert threads == list(ops.op("scaling.yarn").mistakes["truncated"].seen_in)
    assert "scaling.truncated: floor and ceil" in describe(explain("gpt-oss-20b"), "gpt-oss-20b")
