"""Common mistakes: every row names mistakes that exist, and stands for layers of a configuration that was released."""

import json
import math
import re
from pathlib import Path

import pytest

from posref import ops
from posref.explain import explain, explanation, slips
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
    {"model_type": "xlnet", "clamp_len": 400},
    {"model_type": "inkling_text", "log_scaling_n_floor": 128000},
    {"model_type": "swin"},
    {"model_type": "swinv2"},
    {"_class_name": "SD3Transformer2DModel"},
    {"model_type": "minimax"},
    {"model_type": "olmo_hybrid"},
    GGUF | {"rope_freqs.weight": [1.0] * 8},
]


def groups():
    for config in [*CONFIGS, *WRITTEN]:
        try:
            yield from explanation(config).layers
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


def test_numbers_of_a_slip_are_those_of_the_model(every_group):
    """0.1 ln s + 1 of YaRN and sqrt(1 + ln s / ln L) of LongRoPE; no mistake has a number that is not its configuration's."""
    assert said("gpt-oss-20b", "magnitude_on_queries") == (
        "queries times 1.34657, keys as they were",
        "Scores are multiplied by 1.34657 instead of 1.81326.",
    )
    lists = {"short_factor": [1.0] * 48, "long_factor": [2.0] * 48}
    phi3 = {"model_type": "phi3", "max_position_embeddings": 131072, "original_max_position_embeddings": 4096}
    phi3 |= {"rope_theta": 1e4, "rope_scaling": {"type": "longrope", **lists}}
    grown = math.sqrt(1 + math.log(32) / math.log(4096))
    assert said(phi3, "no_magnitude") == ("tables without the magnitude 1.19024", f"Scores are divided by {grown**2:.6g}.")
    deberta = {"model_type": "deberta-v2", **SIZES, "relative_attention": True, "pos_att_type": "c2p"}
    assert said(deberta, "scale_of_one_term")[1] == "Scores are sqrt(2) times too large."
    for group in every_group:
        words = " ".join(slip["bug"] + " " + slip["effect"] for slip in group.slips)
        own = {f"{group.magnitude**power:.6g}" for power in (1, 2)}
        ramps = set(re.findall(r"factor of ([\d.]+)\.", words))
        assert set(re.findall(r"\d+\.\d+", words)) <= own | ramps


def test_a_ramp_cut_to_whole_pairs():
    """gpt-oss: edges 8.0928 and 17.3980 of the ramp, beside 8 and 18, computed by its own formula."""
    pairs = [150000.0 ** (-2 * t / 64) for t in range(32)]
    edges = [64 * math.log(4096 / (turns * 2 * math.pi)) / (2 * math.log(150000)) for turns in (32, 1)]

    def yarn(low, high):
        kept = [1 - min(max((t - low) / (high - low), 0), 1) for t in range(32)]
        return [w * (share + (1 - share) / 32) for w, share in zip(pairs, kept, strict=True)]

    ratios = [a / b for a, b in zip(yarn(*edges), yarn(math.floor(edges[0]), math.ceil(edges[1])), strict=True)]
    assert said("gpt-oss-20b", "truncated")[1].endswith(f"a factor of {max(max(ratios), 1 / min(ratios)):.3g}.")


def said(source, mistake):
    layer = explain(source)["layers"][0]
    return next((slip["bug"], slip["effect"]) for slip in layer["slips"] if slip["mistake"] == mistake)


def test_slips_of_a_model():
    (sliding, full) = explain("gpt-oss-20b")["layers"]
    names = [f"{slip['op'].split('.')[0]}.{slip['mistake']}" for slip in sliding["slips"]]
    assert set(names) >= {"scaling.truncated", "rope.other_layout", "attention.window_one_more", "attention.sink_left_out"}
    assert "scaling.not_truncated" not in names
    assert "attention.window_one_more" not in [f"attention.{slip['mistake']}" for slip in full["slips"]]
    threads = next(slip["seen_in"] for slip in sliding["slips"] if slip["mistake"] == "truncated")
    assert threads == list(ops.op("scaling.yarn").mistakes["truncated"].seen_in)
    assert "scaling.truncated: floor and ceil" in describe(explanation("gpt-oss-20b"), "gpt-oss-20b")
