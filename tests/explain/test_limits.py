"""What a configuration may have at most: levels, keys, layers, parts; more is one sentence, whichever way the file enters."""

import json
import struct

import pytest

from posref import cli
from posref.explain import diffusers, explain, gguf, sources
from posref.explain.configuration import MOST_LAYERS, facts
from posref.explain.inventory import counts_layers
from posref.explain.parts import MOST_PARTS
from posref.explain.schedule import WIDEST
from tests.explain.test_reading import GGUF, LLAMA, assert_refused, gguf_bytes, gguf_with

WAYS = {
    "explain": ["explain", "{}"],
    "json": ["explain", "{}", "--json"],
    "part": ["explain", "{}", "--part", "text_config"],
    "layer": ["explain", "{}", "--layer", "0"],
    "longer": ["explain", "{}", "--longer", "4096"],
    "diff": ["explain", "Llama-3.1-8B", "--diff", "{}"],
    "code": ["explain", "{}", "--code", "torch"],
    "check": ["check", "no_file.py:rotate", "--config", "{}"],
}
OUTER = {
    "transformers": (LLAMA, "zz"),
    "parts": ({"model_type": "llava"}, "text_config"),
    "rotary parameters": (LLAMA, "rope_scaling"),
    "Meta": ({"dim": 4096, "n_layers": 32, "n_heads": 32}, "yarn"),
    "GGUF listing": (GGUF, "llama.rope"),
    "diffusers": ({"_class_name": "FluxTransformer2DModel"}, "zz"),
}


def nested(name, levels, listed=False):
    """A configuration of so many levels, each of which holds the keys of the outermost one, or a list."""
    outer, key = OUTER[name]
    inner = [] if listed else {}
    for _ in range(levels - 2):
        inner = [inner] if listed else {**outer, key: inner} if name == "parts" else {key: inner}
    return {**outer, key: inner}


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("levels", [sources.DEEPEST + 1, 900])
@pytest.mark.parametrize("name", OUTER)
def test_a_dictionary_that_is_nested_deeply(name, levels, listed):
    with pytest.raises(ValueError, match=r"^the configuration is nested more than 16 levels deep"):
        explain(nested(name, levels, listed))


@pytest.mark.parametrize("way", WAYS)
def test_a_file_that_is_nested_deeply(way, tmp_path, capsys):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(nested("parts", 400)), encoding="utf-8")
    assert cli.main([word.format(path) for word in WAYS[way]]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "nested more than 16 levels deep" in err


def test_keys_that_are_numbers_are_read_as_texts():
    """In `to_dict()` of transformers the keys of labels are integers; in a file they are strings."""
    labels, texts = ({"id2label": {key: "yes"}, "layers": {key: {key: 1}}, key: 4} for key in (7, "7"))
    assert explain(LLAMA | labels) == explain(LLAMA | texts)


def test_a_configuration_of_all_levels_is_read():
    assert explain(nested("transformers", sources.DEEPEST))["layers"] == explain(LLAMA)["layers"]


def test_a_dictionary_that_holds_itself():
    """As an anchor in YAML makes it; and one whose levels hold the next one twice, which is long when it is written out."""
    circle, doubled = dict(LLAMA), {}
    circle["zz"] = circle
    for _ in range(sources.DEEPEST - 2):
        doubled = {f"{i}": doubled for i in range(10)}
    with pytest.raises(ValueError, match="levels deep"):
        explain(circle)
    with pytest.raises(ValueError, match="more than 50000 keys and lists"):
        explain(LLAMA | {"zz": doubled})


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"zz": [{}] * sources.MOST_KEYS}, "has more than 50000 keys and lists"),
        ({f"zz{i}": 1 for i in range(sources.MOST_KEYS)}, "has more than 50000 keys and lists"),
        ({"zz": [0] * (sources.LONGEST_LIST + 1)}, "has a list of 100001 elements, expected at most 100000"),
        ({"z" * 128: {"y" * 129: 1}}, "has 257 characters, expected at most 256"),
    ],
)
def test_more_than_a_configuration_holds(more, words):
    with pytest.raises(ValueError, match=words):
        explain(LLAMA | more)


def test_labels_of_21841_classes_are_read():
    labels = {str(i): f"label {i}" for i in range(21841)}
    twice = {"id2label": labels, "label2id": {label: int(i) for i, label in labels.items()}}
    assert explain(LLAMA | twice)["layers"] == explain(LLAMA)["layers"]


COUNTED = [
    *(({"model_type": name}, key) for name, row in facts().items() for key in row.get("defaults", {}) if counts_layers(key)),
    *(
        ({"_class_name": name}, key)
        for name, row in diffusers.classes().items()
        for key in row["defaults"]
        if diffusers.COUNTS.search(key)
    ),
]


COUNTS = (MOST_LAYERS + 1, 1e6, 2**62, [2**40, 1], ["full_attention"] * 2000)


@pytest.mark.parametrize(("part", "count"), list(enumerate(COUNTS)), ids=lambda count: str(count)[:20])
def test_many_layers_of_all_types(part, count):
    """Refused in one line, or not counted by this key: no answer lists more layers than the stacks of a model."""
    for config, key in COUNTED[part::32]:
        try:
            explained = explain(config | {key: count})
        except ValueError as error:
            assert str(error).count("\n") == 0  # noqa: PT017
            continue
        assert sum(len(entry["indices"]) for entry in explained["layers"] + explained["unsupported"]) <= 2 * MOST_LAYERS


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (LLAMA | {"num_hidden_layers": 513}, "num_hidden_layers is the largest count of layers; all counts together are 513"),
        (LLAMA | {"num_hidden_layers": 1e6}, "num_hidden_layers is the largest count"),
        (LLAMA | {f"a{i}": LLAMA for i in range(MOST_PARTS)}, f"more than {MOST_PARTS} parts"),
        (LLAMA | {f"a{i}": LLAMA | {"num_hidden_layers": 100} for i in range(9)}, "a0.num_hidden_layers is the largest"),
        (LLAMA | {"head_dim": WIDEST + 2}, "a head of 1026 features rotates, expected at most 1024"),
        (GGUF | {"llama.block_count": 10**9}, "llama.block_count is 1000000000, expected at most 512 layers"),
        ({"model_type": "gpt_neo", "attention_types": [[["global"], 10**12]]}, "attention_types"),
        ({"model_type": "dots3_note_text", "rope_parameters": {"full_attention": {}}}, "no dictionary for indexed_attention"),
        ({"model_type": "inkling2_text", "log_scaling_alpha": None}, "log_scaling_alpha is None, expected a number"),
        ({"model_type": "molmo2", "vit_config": {"num_hidden_layers": 0}}, "reads layers .24, 18. of 0, expected integers"),
    ],
)
def test_more_than_a_model_has(config, words):
    with pytest.raises(ValueError, match=words):
        explain(config)


def tensor(*extents):
    """A GGUF file whose one tensor has these extents."""
    whole = gguf_with({})
    info = struct.pack("<Q1sI", 1, b"t", len(extents)) + struct.pack(f"<{len(extents)}Q", *extents) + struct.pack("<IQ", 0, 0)
    return whole[:8] + struct.pack("<Q", 1) + gguf_bytes(GGUF)[16:] + info


def arrays(levels):
    """A GGUF file with arrays in arrays."""
    key = struct.pack("<Q", 1) + b"k"
    return b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + key + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * levels


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (tensor(*[2**64 - 1] * 5), "the tensor 't' has 5 dimensions, expected at most 4"),
        (tensor(*[2**64 - 1] * 1000), "the tensor 't' has 1000 dimensions, expected at most 4"),
        (tensor(2**63), "the tensor 't' has the extents [-9223372036854775808], expected none below 0"),
        (arrays(1000), "its arrays are nested more than 8 levels deep"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 2**63), "the GGUF file is cut short"),
        (gguf_with({"rope_freqs.weight": [1.0] * (gguf.LONGEST + 1)}), "has 65537 numbers, expected at most 65536"),
    ],
)
def test_more_than_a_gguf_file_holds(data, words, tmp_path, capsys):
    path = tmp_path / "model.gguf"
    path.write_bytes(data)
    assert_refused(path, capsys, words)


def test_a_gguf_file_of_four_dimensions_is_read(tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(tensor(2**62, 2**62, 2**62, 2**62))
    assert explain(str(path))["layers"] == explain(GGUF)["layers"]


def test_metadata_without_end(tmp_path, capsys):
    path = tmp_path / "model.gguf"
    with open(path, "wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2**40))
        file.truncate(2**36)
    assert_refused(path, capsys, "more than the 33554432 bytes (32 MB) that posref reads")
