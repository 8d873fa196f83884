"""Every form of a configuration, and every way in which a file can be broken: one line, exit code 2."""

import copy
import json
import math
import re
import struct
from pathlib import Path

import numpy as np
import pytest

from posref import cli
from posref.explain import explain, explanation, gguf, output
from posref.explain.command import question
from posref.explain.words import describe
from posref.rotary import rope, scaling

LLAMA = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "rope_theta": 500000.0}
LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}


def one(config):
    (group,) = explain(config)["layers"]
    return group


def test_spellings_of_one_schedule():
    """v4 with `type`, v4 with `rope_type`, and v5, flat: the same frequencies."""
    plain = rope.frequencies(16, 500000.0)
    expected = scaling.llama3(plain, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_length=8192)
    forms = [
        LLAMA | {"rope_scaling": {"type": "llama3", **LLAMA3}},
        LLAMA | {"rope_scaling": {"rope_type": "llama3", **LLAMA3}},
        {key: value for key, value in LLAMA.items() if key != "rope_theta"}
        | {"rope_parameters": {"rope_type": "llama3", "rope_theta": 500000.0, **LLAMA3}},
    ]
    for form in forms:
        np.testing.assert_array_equal(one(form)["frequencies"], expected)


def test_architectures_stand_for_a_missing_type():
    config = {**LLAMA, "architectures": ["LlamaForCausalLM"]}
    del config["model_type"]
    assert explain(config)["model_type"] == "llama"


def test_native_weights_are_interleaved_and_scaled_as_the_released_model():
    group = one({"dim": 4096, "n_layers": 32, "n_heads": 32, "n_kv_heads": 8, "rope_theta": 500000.0})
    assert (group["layout"], group["rotary_dim"], group["kv_heads"]) == ("interleaved", 128, 8)
    keys = {"dim": 7168, "n_layers": 61, "n_heads": 128, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64}
    group = one(keys)
    assert group["softmax_scale"] == pytest.approx(0.135233778861, abs=5e-13)
    assert group["scaling"]["ramp"] == [10.0, 23.0]


CHATGLM = {"model_type": "chatglm", "hidden_size": 4096, "num_layers": 28, "num_attention_heads": 32, "kv_channels": 128}
CHATGLM |= {"multi_query_attention": True, "multi_query_group_num": 2}


def test_the_first_files_of_chatglm_are_read_as_its_code_does():
    group = one(CHATGLM | {"rope_ratio": 500, "seq_length": 8192})
    assert (group["layout"], group["rotary_dim"], group["head_dim"], group["kv_heads"]) == ("interleaved", 64, 128, 2)
    assert (group["base"], group["max_position_embeddings"], len(group["indices"])) == (5e6, 8192, 28)
    assert one(CHATGLM)["base"] == 1e4
    with pytest.raises(ValueError, match=r"^rope_ratio is 'many', expected a number$"):
        explain(CHATGLM | {"rope_ratio": "many"})


def gguf_bytes(entries):
    def text(value):
        return struct.pack("<Q", len(value)) + value.encode()

    kinds = {str: (8, text), int: (4, lambda x: struct.pack("<I", x)), float: (6, lambda x: struct.pack("<f", x))}
    body = b"".join(text(key) + struct.pack("<I", kinds[type(v)][0]) + kinds[type(v)][1](v) for key, v in entries.items())
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(entries)) + body


GGUF = {
    "general.architecture": "llama",
    "llama.embedding_length": 4096,
    "llama.block_count": 32,
    "llama.attention.head_count": 32,
    "llama.attention.head_count_kv": 8,
    "llama.rope.freq_base": 500000.0,
    "llama.rope.dimension_count": 128,
    "llama.context_length": 8192,
}


def test_gguf(tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf_bytes(GGUF))
    group = one(str(path))
    assert (group["layout"], group["rotary_dim"], group["base"]) == ("interleaved", 128, 500000.0)
    np.testing.assert_array_equal(group["frequencies"], rope.frequencies(128, 500000.0))
    assert one(GGUF) == group


def gguf_with(tensors):
    """The file above with tensors of float32 numbers behind its metadata."""
    entries, infos, data = gguf_bytes(GGUF), b"", b""
    for name, values in tensors.items():
        data += bytes(-len(data) % 32)
        infos += struct.pack("<Q", len(name)) + name.encode() + struct.pack("<IQIQ", 1, len(values), 0, len(data))
        data += struct.pack(f"<{len(values)}f", *values)
    head = entries[:8] + struct.pack("<Q", len(tensors)) + entries[16:] + infos
    return head + bytes(-len(head) % 32) + data


def test_gguf_whose_tensors_divide_the_frequencies(tmp_path):
    path = tmp_path / "model.gguf"
    factors = [1.0] * 20 + [8.0] * 44
    path.write_bytes(gguf_with({"output.weight": [0.5] * 7, "rope_freqs.weight": factors}))
    np.testing.assert_array_equal(one(str(path))["frequencies"], rope.frequencies(128, 500000.0) / np.array(factors))
    path.write_bytes(gguf_with({"rope_freqs.weight": factors[:63]}))
    with pytest.raises(ValueError, match="63 values, expected 64"):
        explain(str(path))
    path.write_bytes(gguf_with({"rope_freqs.weight": factors})[:-9])
    with pytest.raises(ValueError, match=r"rope_freqs.weight lies beyond the end"):
        explain(str(path))


def test_gguf_of_longrope(tmp_path):
    keys = {"llama.rope.scaling.original_context_length": 4096, "llama.rope.scaling.attn_factor": 1.19023807142}
    lists = {"rope_factors_long.weight": [4.0] * 64, "rope_factors_short.weight": [2.0] * 64}
    group = one(GGUF | keys | lists)
    np.testing.assert_array_equal(group["frequencies"], rope.frequencies(128, 500000.0) / 2)
    np.testing.assert_array_equal(group["frequencies_long"], rope.frequencies(128, 500000.0) / 4)
    assert group["magnitude"] == 1.19023807142


def test_a_listing_of_gguf_does_not_show_its_tensors(tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf_bytes(GGUF))
    assert any("rope_freqs.weight" in sentence for sentence in explain(GGUF)["traps"])
    assert not any("rope_freqs.weight" in sentence for sentence in explain(str(path))["traps"])


def assert_refused(path, capsys, word):
    assert cli.main(["explain", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1, err
    assert "Traceback" not in err
    assert word in err


SHORT = {"type": "longrope", "short_factor": [1], "long_factor": [1]}
EDGES = {"rope_type": "yarn", "factor": 4, "beta_fast": 1, "beta_slow": 32}
BROKEN = {  # what a file says, or what keys of LLAMA are, and a word of the refusal
    "empty": ("", "no JSON"),
    "truncated": (json.dumps(LLAMA)[:-9], "no JSON"),
    "list": ("[1, 2]", "list"),
    "null": ("null", "holds None"),
    "page": ("<!DOCTYPE html><html></html>", "web page"),
    "no type": ('{"hidden_size": 64}', "model_type"),
    "twice": ('{"model_type": "llama", "hidden_size": 64, "hidden_size": 128}', "twice"),
    "deep": ("[" * 100000, ""),
    "long number": ('{"model_type": "llama", "hidden_size": ' + "1" * 5000 + "}", "has 5000 digits; no size"),
    "parameters are a number": ({"rope_scaling": 1.0}, "rope_scaling"),
    "unknown schedule": ({"rope_scaling": {"rope_type": "magic"}}, "magic"),
    "schedule is a list": ({"rope_scaling": {"rope_type": ["yarn"]}}, "rope_type"),
    "edge missing": ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, "is missing in the rotary parameters"),
    "factor missing": ({"rope_scaling": {"rope_type": "linear"}}, "factor"),
    "factor is infinite": ({"rope_scaling": {"rope_type": "linear", "factor": math.inf}}, "factor"),
    "factor is text": ({"rope_scaling": {"rope_type": "linear", "factor": "8"}}, "factor"),
    "factor below 1": ({"rope_scaling": {"rope_type": "linear", "factor": 0.5}}, "factor"),
    "base is text": ({"rope_theta": "1e6"}, "rope_theta"),
    "base is infinite": ({"rope_theta": float("inf")}, "rope_theta"),
    "base is true": ({"rope_theta": True}, "rope_theta"),
    "layers are text": ({"num_hidden_layers": "32"}, "num_hidden_layers"),
    "layers are negative": ({"num_hidden_layers": -1}, "num_hidden_layers"),
    "layers without end": ({"num_hidden_layers": 10**12}, "num_hidden_layers"),
    "heads are zero": ({"num_attention_heads": 0}, "num_attention_heads"),
    "width is half a number": ({"hidden_size": 64.5}, "hidden_size"),
    "head is wide": ({"head_dim": 10**10}, "head_dim"),
    "part is a list": (json.dumps({"model_type": "gemma3", "text_config": [1]}), "text_config"),
    "kinds are numbers": ({"model_type": "qwen2", "layer_types": [1, 2]}, "layer_types"),
    "kinds are few": ({"model_type": "qwen2", "layer_types": ["full_attention"]}, "layer_types"),
    "kinds are unknown": ({"model_type": "qwen2", "layer_types": ["a", "b"]}, "layer_types"),
    "window is text": ({"model_type": "mistral", "sliding_window": "4096"}, "sliding_window"),
    "list of short factors": ({"model_type": "phi3", "rope_scaling": SHORT}, "short_factor"),
    "yarn edges in the wrong order": ({"rope_scaling": EDGES}, "beta_fast"),
    "share above 1": ({"model_type": "phi", "partial_rotary_factor": 2.0}, "partial_rotary_factor"),
    "share is nothing": ({"model_type": "phi", "partial_rotary_factor": 0.0}, "pair"),
    "two spellings contradict": (json.dumps({"model_type": "gpt2", "n_layer": 12, "num_hidden_layers": 24}), "n_layer"),
    "architecture of GGUF": (json.dumps({"general.architecture": "martian"}), "martian"),
    "part of a GGUF": (json.dumps({"general.architecture": "llama"}), "llama.embedding_length"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken(name, tmp_path, capsys):
    said, word = BROKEN[name]
    path = tmp_path / "config.json"
    path.write_text(said if isinstance(said, str) else json.dumps(LLAMA | said), encoding="utf-8")
    assert_refused(path, capsys, word)


def test_no_text_and_a_large_file(tmp_path, capsys):
    path = tmp_path / "config.json"
    path.write_bytes(b"\xff\xfe\x00\x80" * 10)
    assert_refused(path, capsys, "UTF-8")
    with open(path, "wb") as file:
        file.write(b'{"model_type": "')
        file.truncate(100 * 2**20)
    assert_refused(path, capsys, "has at least 104857600 bytes, a configuration at most 4194304")


def test_directory_and_nothing(tmp_path, capsys):
    assert_refused(tmp_path / "none.json", capsys, "No such file")
    assert_refused(tmp_path, capsys, "directory")
    (tmp_path / "config.json").write_text(json.dumps(LLAMA), encoding="utf-8")
    assert_refused(tmp_path, capsys, "config.json")


def test_a_mark_of_byte_order_is_no_fault(tmp_path):
    path = tmp_path / "config.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(LLAMA).encode())
    assert one(str(path))["base"] == 500000.0


RECORDS = json.loads(Path(__file__).with_name("configs.json").read_text(encoding="utf-8"))
STRANGE = (None, "x", "", -1, 0, 1, 3.5, math.inf, math.nan, True, [], [1], ["a"], [[1]], {}, {"a": 1}, 10**30, 1e308, "yarn")
STRANGE += ({"rope_type": "yarn"}, {"type": "longrope"}, {"full_attention": None}, {"full_attention": {"rope_type": "linear"}})


def places(config, path=()):
    for key, value in config.items():
        yield (*path, key)
        if isinstance(value, dict):
            yield from places(value, (*path, key))


@pytest.mark.parametrize("files", [120, pytest.param(1600, marks=pytest.mark.slow)])
def test_strange_values(files):
    """Released files with one or two values replaced: an explanation that is JSON, or one line."""
    random = np.random.default_rng(files)
    for _ in range(files):
        config = copy.deepcopy(RECORDS[random.integers(len(RECORDS))]["config"])
        for _ in range(random.integers(1, 3)):
            found = list(places(config))
            inner, *keys = config, *found[random.integers(len(found))]
            for key in keys[:-1]:
                inner = inner[key]
            inner[keys[-1]] = copy.deepcopy(STRANGE[random.integers(len(STRANGE))])
        try:
            explained = explanation(config)
        except ValueError as error:
            assert str(error).count("\n") == 0  # noqa: PT017
            continue
        json.dumps(explained.as_dict(), allow_nan=False)
        assert describe(explained, "file")


def test_sections_that_do_not_add_up():
    config = {"model_type": "qwen2_vl_text", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2}
    asked = config | {"rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]}}
    assert "".join(one(asked)["axes"]) == "tthhhwww"
    with pytest.raises(ValueError, match=r"^mrope_section \[1, 1, 1\] adds up to 3, expected 8: half the rotated width$"):
        explain(config | {"rope_scaling": {"type": "mrope", "mrope_section": [1, 1, 1]}})


@pytest.mark.parametrize(
    ("kind", "head", "words"), [("glm4v_text", 32, "32 pairs, and 64"), ("qwen2_vl_text", 16, "64 pairs, and 128")]
)
def test_sections_of_a_class_that_do_not_add_up(kind, head, words):
    """transformers takes the sections of its class where a file has none, and splits the pairs by them when it is called."""
    config = {"model_type": kind, "hidden_size": 4096, "num_attention_heads": head, "num_hidden_layers": 2}
    assert any(words in each for each in explain(config)["traps"])
    with pytest.raises(ValueError, match=f"mrope_section adds up to {words} pairs turn"):
        question(config)


def test_names_of_models(capsys):
    """A name of a hub is accepted where its model is known; another name gets names like it."""
    assert explain("meta-llama/Llama-3.1-8B") == explain("Llama-3.1-8B")
    assert_refused("llama-9", capsys, "Llama-3.1-8B")
    assert_refused("zzzzzz", capsys, "models known by name")


def test_names_of_model_types():
    """A model type is read as transformers builds it without a file, and a trap says so."""
    found, of_defaults = explanation("llama"), explanation({"model_type": "llama"})
    assert found.layers == of_defaults.layers
    assert (found.layers[0].rotary_dim, found.layers[0].base) == (128, 10000)
    (said,) = set(found.traps) - set(of_defaults.traps)
    assert "without a file" in said
    assert "Llama-3.1-8B" in said
    assert "released" not in str(explanation("beit").traps)


def gguf_values(entries):
    """A file with integers, texts, floats, booleans and arrays of integers."""

    def text(value):
        return struct.pack("<Q", len(value)) + value.encode()

    def value(x):
        if isinstance(x, list):
            return struct.pack("<IIQ", 9, 4, len(x)) + struct.pack(f"<{len(x)}I", *x)
        return (
            struct.pack("<I", 8) + text(x)
            if isinstance(x, str)
            else struct.pack("<If", 6, x)
            if isinstance(x, float)
            else struct.pack("<II", 4, x)
        )

    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(entries)) + b"".join(text(key) + value(x) for key, x in entries)


def test_gguf_arrays_old_keys_and_duplicates(tmp_path):
    path = tmp_path / "model.gguf"

    def of(*entries):
        path.write_bytes(gguf_values([*GGUF.items(), *entries]))
        return explain(str(path))

    (group,) = of(("llama.rope.scale_linear", 4.0))["layers"]
    np.testing.assert_array_equal(group["frequencies"], rope.frequencies(128, 500000.0) / 4)
    assert "GGUF" in group["source"]
    with pytest.raises(ValueError, match=r"llama.context_length' twice, with 8192 and 4096$"):
        of(("llama.context_length", 4096))
    assert of(("llama.context_length", 8192)) == of()
    lists = {**GGUF, "llama.attention.head_count": [32] * 16 + [16] * 16, "llama.attention.head_count_kv": [8, 0] * 16}
    path.write_bytes(gguf_values(lists.items()))
    explained = explain(str(path))
    assert [(group["heads"], group["kv_heads"]) for group in explained["layers"]] == [(32, 8), (16, 8)]
    assert explained["unsupported"][0]["indices"] == list(range(1, 32, 2))
    with pytest.raises(ValueError, match="remove the wrong one"):
        of(("llama.rope.scale_linear", 4.0), ("llama.rope.scaling.factor", 2.0))
    none = of(("llama.rope.scaling.type", "none"), ("llama.rope.scaling.factor", 2.0))
    assert none["unread"] == ["llama.rope.scaling.factor"]
    assert of(("llama.rope.scaling.type", "linear"), ("llama.rope.scaling.factor", 2.0))["unread"] == []


@pytest.mark.parametrize(
    "whole",
    [gguf_with({"rope_freqs.weight": [1.0] * 64}), gguf_values([*GGUF.items(), ("llama.rope.sections", [1, 2])])],
    ids=["tensor", "array"],
)
def test_damaged_gguf(tmp_path, whole):
    """Bytes changed, removed and doubled at places of a seed: an explanation that is JSON, or one line."""
    random, path = np.random.default_rng(0), tmp_path / "damaged.gguf"
    for _ in range(100):
        data = bytearray(whole)
        for _ in range(random.integers(1, 4)):
            i, what = random.integers(len(data)), random.integers(3)
            data[i : i + 1] = [bytes([random.integers(256)]), b"", bytes(data[i : i + 1]) * 2][what]
        path.write_bytes(bytes(data))
        try:
            explained = explanation(str(path))
        except ValueError as error:
            assert str(error).count("\n") == 0  # noqa: PT017
            continue
        json.dumps(explained.as_dict(), allow_nan=False)
        assert describe(explained, "file")


def test_strange_values_of_a_gguf_listing():
    random = np.random.default_rng(0)
    for _ in range(120):
        listing = GGUF | {"llama.rope.scaling.type": "yarn", "llama.rope.scaling.factor": 4.0, "llama.rope.sections": [1, 2]}
        for _ in range(random.integers(1, 3)):
            listing[list(listing)[random.integers(len(listing))]] = copy.deepcopy(STRANGE[random.integers(len(STRANGE))])
        try:
            explained = explain(listing)
        except ValueError as error:
            assert str(error).count("\n") == 0  # noqa: PT017
            continue
        json.dumps(explained, allow_nan=False)


def test_no_control_characters_reach_the_terminal(tmp_path, capsys):
    """Of a type, a class, a key, a kind of layer and the name of the file; in words, differences and errors."""
    evil = "\x1b[31mred\x07\r\n\u202e\x9b"
    config = {"model_type": f"llama{evil}", f"rope{evil}": 1, "text_config": {"model_type": evil}, "architectures": [evil]}
    schedules = ({"rope_type": evil}, {evil: 1})
    files = [LLAMA | config, LLAMA | {f"rope{evil}": [evil]}, *(LLAMA | {"rope_scaling": each} for each in schedules)]
    paths = [tmp_path / f"a\x1b[1m{i}.json" for i in range(len(files))]
    for path, file in zip(paths, files, strict=True):
        path.write_text(json.dumps(file), encoding="utf-8")
    for arguments in [[str(path)] for path in paths] + [[str(paths[0]), "--diff", str(paths[1])], ["no\x1b[1m.json"], ["no\0"]]:
        cli.main(["explain", *arguments])
        out, err = capsys.readouterr()
        assert not set("\x1b\x07\r\u202e\x9b\0") & set(out + err)
        assert "\nred" not in out


@pytest.mark.parametrize("name", gguf.ARCHITECTURES)
def test_every_architecture_follows_its_gguf_file(name):
    """Base and width are the file's, whatever the keys of its class are called; what is printed as unread is in the file."""
    latent = name in ("deepseek2", "minicpm3")
    keys = {"block_count": 12, "embedding_length": 64, "attention.head_count": 4, "attention.key_length": 16 + 8 * latent}
    keys |= {"context_length": 128, "rope.freq_base": 12345.0, "rope.dimension_count": 8, "attention.sliding_window": 6}
    metadata = {"general.architecture": name} | {f"{name}.{key}": value for key, value in keys.items()}
    try:
        explained = explain(metadata)
    except ValueError as error:
        assert str(error).startswith(f"{name}.attention.sliding_window is 6: ")  # noqa: PT017
        explained = explain(metadata | {f"{name}.attention.sliding_window": 0})
    assert {*explained["unread"]} <= {*metadata}
    for group in explained["layers"]:
        if group["encoding"] == "rope":
            assert group["rotary_dim"] == 8
            assert group["base"] == (12345.0 if group["kind"] != "sliding_attention" else group["base"])
            assert group["scaling"] is None
    assert any(group["base"] == 12345.0 for group in explained["layers"]) or name in ("bert", "gpt2", "bloom", "t5")


def test_what_a_gguf_file_leaves_out_is_not_the_value_of_a_class():
    """llama.cpp turns the whole head and scales nothing, where gpt-oss and GPT-NeoX of transformers do otherwise."""
    for name in ("gpt-oss", "gptneox", "stablelm", "qwen3next"):
        keys = {"block_count": 4, "embedding_length": 64, "attention.head_count": 4, "context_length": 128}
        group = explain({"general.architecture": name} | {f"{name}.{key}": value for key, value in keys.items()})["layers"][0]
        assert (group["rotary_dim"], group["scaling"], group["base"]) == (16, None, 10000.0)
    t5 = {"general.architecture": "t5", "t5.block_count": 4, "t5.embedding_length": 64, "t5.attention.head_count": 4}
    decoder = explain(t5 | {"t5.decoder_block_count": 6})["layers"][1]
    assert (decoder["part"], len(decoder["indices"])) == ("decoder", 6)
    bert = {"modern-bert.block_count": 3, "modern-bert.embedding_length": 64, "modern-bert.attention.head_count": 4}
    window = {"general.architecture": "modern-bert", "modern-bert.attention.sliding_window": 8}
    assert [group["window"] for group in explain(bert | window)["layers"]] == [None, 5]  # itself and 4 on each side


YARN = {"rope.scaling.type": "yarn", "rope.scaling.factor": 16.0, "rope.scaling.original_context_length": 16384}


def listing(name, keys):
    """Metadata of an architecture: those of GGUF above under its name, and some keys more; None takes a key away."""
    own = {key.removeprefix("llama."): value for key, value in GGUF.items()} | keys
    named = {f"{name}.{key}": value for key, value in own.items() if key != "general.architecture" and value is not None}
    return {"general.architecture": name, **named}


def test_yarn_of_mistral_3_has_the_edges_and_the_temperature_of_its_file():
    edges = {"rope.scaling.yarn_beta_fast": 4.0, "rope.scaling.yarn_beta_slow": 2.0}
    group = one(listing("mistral3", YARN | edges | {"attention.temperature_scale": 0.25}))
    plain = rope.frequencies(128, 500000.0)
    expected = scaling.yarn(
        plain, factor=16.0, original_length=16384, base=500000.0, beta_fast=4.0, beta_slow=2.0, truncate=True
    )
    np.testing.assert_array_equal(group["frequencies"], expected)
    assert (group["temperature"]["a"], group["temperature"]["f"]) == (0.25, 16384)
    quotient = (1 + 0.1 * math.log(16)) / (1 + 0.2 * math.log(16))  # llama.cpp: mscale is 1, the key is mscale_all_dim
    for given in ({}, {"rope.scaling.attn_factor": 2.0}):
        group = one(listing("mistral3", YARN | {"rope.scaling.yarn_log_multiplier": 2.0} | given))
        assert group["magnitude"] == pytest.approx(quotient * given.get("rope.scaling.attn_factor", 1.0), rel=1e-14)


@pytest.mark.parametrize(
    ("key", "value", "silent"),
    [
        ("rope.scaling.yarn_beta_fast", 4.0, 32.0),
        ("rope.scaling.yarn_ext_factor", 0.5, 1.0),
        ("rope.scaling.yarn_log_multiplier", 0.5, 0.0),
        ("rope.scaling.yarn_attn_factor", 1.0, None),
        ("rope.scaling.finetuned", False, True),
        ("rope.scaling.alpha", 1000.0, None),
        ("rope.freq_base_swa", 10000.0, 500000.0),
        ("rope.dimension_sections", [16, 24, 24, 0], None),
        ("rope.freq_scale_of_tomorrow", 2.0, None),
        ("attention.temperature_scale", 0.25, 0.0),
        ("attention.scale", 0.5, 0.0),
        ("attention.max_alibi_bias", 8.0, 0.0),
        ("attention.key_length_swa", 64, 128),
        ("attention.sliding_window", 64, 0),
        ("attention.sliding_window_pattern", 2, None),
    ],
)
def test_no_gguf_key_of_rotation_or_scores_is_left_out_of_an_answer(key, value, silent, tmp_path, capsys):
    """What a program computes by such a key is not described, so nobody's code is measured by it."""
    usual = YARN | {"attention.key_length": 128}
    path = tmp_path / "model.json"
    path.write_text(json.dumps(listing("llama", usual | {key: value})), encoding="utf-8")
    assert_refused(path, capsys, f"llama.{key} is ")
    assert cli.main(["check", "no_file.py:rotate", "--config", str(path)]) == 2
    assert f"llama.{key} is " in capsys.readouterr().err
    if silent is not None:
        assert explain(listing("llama", usual | {key: silent}))["layers"] == explain(listing("llama", usual))["layers"]
    with pytest.raises(ValueError, match=r"^llama.rope.scaling.attn_factor is 2.0: "):
        explain(listing("llama", {"rope.scaling.factor": 4.0, "rope.scaling.attn_factor": 2.0}))


def test_what_some_architectures_read():
    assert one(listing("granite", {"attention.scale": 0.0078125}))["softmax_scale"] == 0.0078125
    assert one(listing("granite", {}))["softmax_scale"] == 128**-0.5  # 1 in its class
    assert one(listing("llama", {"attention.causal": False}))["causal"] is False
    for pattern in (2, [True, False] * 16):
        keys = {"attention.sliding_window": 64, "rope.freq_base_swa": 12345.0, "attention.sliding_window_pattern": pattern}
        windowed, full = explain(listing("gemma3", keys))["layers"]
        assert (windowed["indices"], windowed["base"], full["base"]) == (list(range(0, 32, 2)), 12345.0, 500000.0)
    keys = {"attention.sliding_window": 64, "attention.sliding_window_pattern": 4}
    first = explain(listing("modern-bert", keys))["layers"][0]
    assert (first["kind"], first["indices"]) == ("full_attention", list(range(0, 32, 4)))


WRONG = {
    "a base of nothing": ({"rope.freq_base": 0.0}, "llama.rope.freq_base is 0.0, "),
    "bases": ({"rope.freq_base": [1e4, 1e6]}, "llama.rope.freq_base is [10000.0, 1000000.0], "),
    "no feature": ({"rope.dimension_count": 0}, "llama.rope.dimension_count is 0, expected an integer from 2 to 128"),
    "a wider rotation": ({"rope.dimension_count": 256}, "llama.rope.dimension_count is 256, "),
    "no key heads": ({"attention.head_count_kv": 0}, "llama.attention.head_count_kv is 0, expected a positive number"),
    "key heads": ({"attention.head_count_kv": 5}, "llama.attention.head_count_kv is 5, expected a divisor of the 32 heads"),
    "a list of heads": ({"attention.head_count": [8, 4]}, "llama.attention.head_count is [8, 4], "),
    "no layers": ({"block_count": 0}, "llama.block_count is 0, "),
    "no factor": ({"rope.scaling.factor": 0.0}, "llama.rope.scaling.factor is 0.0, "),
    "factor left out": (YARN | {"rope.scaling.factor": None}, "llama.rope.scaling.factor is missing"),
    "a bool": ({"rope.freq_base": True}, "llama.rope.freq_base is True, expected a positive number"),
    "no width": ({"attention.key_length": 0}, "llama.attention.key_length is 0, "),
    "no magnitude": (YARN | {"rope.scaling.attn_factor": 0.0}, "llama.rope.scaling.attn_factor is 0.0, "),
    "no tables": ({"rope.scaling.type": "longrope"}, "rope_factors_short.weight is missing, expected 64 positive numbers"),
    "a schedule that GGUF lacks": (
        YARN | {"rope.scaling.type": "dynamic"},
        "llama.rope.scaling.type is 'dynamic'; known are linear",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_error_names_the_key_of_the_gguf_file(name):
    keys, begin = WRONG[name]
    with pytest.raises(ValueError, match=f"{re.escape(begin)}"):
        explain(listing("llama", keys))


@pytest.mark.parametrize("key", ["attention.key_length", "rope.dimension_count"])
def test_widths_of_latent_heads_are_those_of_the_file(key):
    keys = {"attention.key_length": 192, "rope.dimension_count": 64}
    assert one(listing("deepseek2", keys))["rotary_dim"] == 64
    with pytest.raises(ValueError, match=f"have no deepseek2.{key}"):
        explain(listing("deepseek2", keys | {key: None}))


def test_tables_of_a_gguf_file_that_are_wrong(tmp_path, capsys):
    path = tmp_path / "model.gguf"
    for wrong in (float("nan"), 0.0, -8.0):
        path.write_bytes(gguf_with({"rope_freqs.weight": [1.0, wrong, *[1.0] * 62]}))
        assert_refused(path, capsys, f"rope_freqs.weight[1] is {wrong}, expected a positive number")
    path.write_bytes(gguf_with({"rope_factors_long.weight": [2.0] * 64}))
    assert_refused(path, capsys, "has the tensor rope_factors_long.weight and no rope_factors_short.weight")
    path.write_bytes(gguf_with({"rope_factors_short.weight": [2.0] * 64}))
    assert_refused(path, capsys, "has the tensor rope_factors_short.weight and no rope_factors_long.weight")
    both = {"rope_factors_long.weight": [4.0] * 64, "rope_factors_short.weight": [2.0] * 64}
    with pytest.raises(ValueError, match=r"has rope.scaling.type yarn and the tensor rope_factors_short.weight"):
        explain(listing("llama", YARN) | both)
    with pytest.raises(ValueError, match=r"has llama.rope.scaling.factor and LongRoPE's lists"):
        explain(listing("llama", {"rope.scaling.factor": 4.0}) | both)
    with pytest.raises(ValueError, match=r"^llama.rope.scaling.factor is 4.0: posref does not know the effect of this key"):
        explain(listing("llama", {"rope.scaling.factor": 4.0}) | {"rope_freqs.weight": [1.0] * 64})
    whole = gguf_with({"rope_freqs.weight": [1.0] * 64})
    info = whole.index(b"rope_freqs.weight") + len("rope_freqs.weight")
    path.write_bytes(whole[: info + 16] + struct.pack("<Q", 2**62) + whole[info + 24 :])
    assert_refused(path, capsys, f"{path}: the tensor rope_freqs.weight lies beyond the end of the GGUF file")


def test_what_is_wrong_with_a_gguf_file(tmp_path, capsys):
    path = tmp_path / "model.gguf"
    for data, words in (
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 1), "this GGUF file is big-endian"),
        (b"GGUF" + struct.pack("<IQQ", 0, 0, 1), "GGUF version 0 is not read"),
        *((gguf_bytes(GGUF)[:n], f"the GGUF file is cut short: it ends at byte {n}") for n in (60, 200)),
        (gguf_bytes(GGUF).replace(b"llama.block", b"llama\xffblock"), "is not UTF-8"),
        (gguf_bytes({"llama.block_count": 2}), "the GGUF file has no key general.architecture"),
    ):
        path.write_bytes(data)
        assert_refused(path, capsys, f"{path}: ")
        assert_refused(path, capsys, words)


def test_a_gguf_file_without_a_length():
    """Its class has 2048, which the file does not say."""
    explained = explain(listing("llama", {"context_length": None}))
    assert "max_position_embeddings" not in explained["layers"][0]
    assert "this GGUF file has no context_length, so its largest number of positions is not known" in explained["traps"]


@pytest.mark.parametrize(("listed", "whole"), [([], []), ([1], [1]), (None, [7, 15, 23, 31])])
def test_an_empty_list_of_layers_names_none(listed, whole):
    """SAM 3's class has None for its four layers that see the whole picture (configuration_sam3.py)."""
    groups = explain({"model_type": "sam3_vit_model", "global_attn_indexes": listed})["layers"]
    assert [i for group in groups if group["kind"] == "full_attention" for i in group["indices"]] == whole


def test_null_in_the_second_spelling_of_a_part_is_as_no_key():
    explained = explain({"model_type": "clip", "text_config": {"num_hidden_layers": 3}, "text_config_dict": None})
    assert {group["part"]: len(group["indices"]) for group in explained["layers"]} == {"text_config": 3, "vision_config": 12}


@pytest.mark.parametrize(
    ("heads", "words", "title"),
    [
        (16, "in head 0 alone; heads 1-15 have no position", "head 0 of 16 heads alone"),
        (1, "in head 0 alone\n", "head 0 of 1 head alone"),
        (None, "in head 0 alone; the other heads have no position", "head 0 alone"),
    ],
)
def test_heads_that_do_not_rotate(heads, words, title):
    found = explanation({"model_type": "qwen2_5_omni_dit", "num_attention_heads": heads, "look_ahead_layers": []})
    page = describe(found, "file")
    assert words in page
    assert "tokens of one chunk of 24 see each other; each token also sees 1 chunk before its own chunk" in page
    assert f"rotates {title}." in output.code(found, "numpy", "x")
