"""`posref explain` and `posref check --config` as a user runs them; printed code is executed and checked."""

import contextlib
import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from posref import cli
from posref.check import check_rope
from posref.explain import command, configuration, explain, explanation, families, output, presets, sources
from posref.explain.words import kind
from posref.rotary import rope, scaling

CONFIGS = Path(__file__).with_name("configs.json")
SIZES = {"hidden_size": 512, "num_attention_heads": 8, "num_hidden_layers": 4, "rope_theta": 10000.0}
LLAMA = {"model_type": "llama", **SIZES}
GLM = {"model_type": "glm4", **SIZES, "head_dim": 64}
PHI = {"model_type": "phi", **SIZES}
GEMMA = {"model_type": "gemma3_text", **SIZES, "rope_theta": 1e6, "head_dim": 64, "sliding_window": 512}
GEMMA |= {"num_hidden_layers": 12}


@pytest.fixture
def file(tmp_path):
    def write(config, name="config.json"):
        path = tmp_path / name
        path.write_text(json.dumps(config), encoding="utf-8")
        return str(path)

    return write


def printed(capsys, *arguments):
    assert cli.main(["explain", *arguments]) == 0
    return capsys.readouterr().out


def test_words(file, capsys):
    text = printed(capsys, file(GEMMA))
    assert "layers 0-4, 6-10 (10, sliding attention)" in text
    assert "layers 5, 11 (2, full attention)" in text
    assert "window: the query's own token and the 511 before it" in text
    assert "rope.frequencies(64, 10000.0)" in text
    assert "half: pairs (t, t + 32)" in text


def test_layers_that_differ_in_one_line_are_one_block(file, capsys):
    """gpt-oss: only the masks differ. Gemma 3 above: the frequencies differ too, so its layers stay apart."""
    text = printed(capsys, "gpt-oss-20b")
    even, odd = (", ".join(map(str, range(start, 24, 2))) for start in (0, 1))
    assert text.count("\n  position ") == text.count("\n  mask ") == 1
    assert "\nlayers 0-23 (24, sliding attention and full attention)   transformers" in text
    window = "causal, window: the query's own token and the 127 before it; query head h uses key head h // 8"
    assert f"\n  mask         layers {even} (12, sliding attention): {window}\n" in text
    assert f"\n               layers {odd} (12, full attention): causal; query head h uses key head h // 8\n" in text
    assert printed(capsys, "gpt-oss-20b", "--layer", "1").count("layers 1, 3, ") == 1
    assert text.count("\n  position ") < printed(capsys, file(GEMMA)).count("\n  position ") == 2


def test_blocks_of_one_layer_say_what_reads_position_in_them():
    """A hybrid layer has a block for its attention and one for its state."""
    twice = 0
    for model_type in families.FAMILIES:
        with contextlib.suppress(ValueError):  # its class has no number of layers
            groups = explanation({"model_type": model_type}).layers
            for part, i in {(group.part, i) for group in groups for i in group.indices}:
                own = [group for group in groups if group.part == part and i in group.indices]
                kinds = list(map(kind, own))
                assert len(set(kinds)) == len(kinds), (model_type, kinds)
                for said, group in zip(kinds, own, strict=True):
                    assert bool(re.search("state|convolution", said)) == bool(group.state), (model_type, said)
                    assert group.state or "attention" in said, (model_type, said)
                twice += len(own) > 1
    assert twice > 0


def test_what_is_not_known_is_loud(file, capsys):
    assert "NOT DESCRIBED" in printed(capsys, file({"model_type": "autoformer"}))
    text = printed(capsys, file({"model_type": "martian", **SIZES}))
    assert "NOT KNOWN: no key says which features form a pair" in text


def test_json_is_the_dictionary(file, capsys):
    path = file(GEMMA)
    assert json.loads(printed(capsys, path, "--json")) == json.loads(json.dumps(explain(path)))


def test_one_layer(file, capsys):
    (group,) = json.loads(printed(capsys, file(GEMMA), "--json", "--layer", "5"))["layers"]
    assert group["indices"] == [5, 11]
    assert cli.main(["explain", file(GEMMA), "--layer", "99"]) == 2


@pytest.mark.parametrize("name", ["f.npy", "f.json", "f.h"])
def test_frequencies(name, file, tmp_path, capsys):
    out = str(tmp_path / name)
    assert printed(capsys, file(LLAMA), "--frequencies", out) == out + "\n"
    expected = rope.frequencies(64, 10000.0)
    if name.endswith("npy"):
        np.testing.assert_array_equal(np.load(out), expected)
        return
    with open(out, encoding="utf-8") as written:
        text = written.read()
    numbers = json.loads(text if name.endswith("json") else "[" + text.split("{")[1].split("}")[0] + "]")
    np.testing.assert_array_equal(numbers, expected)


def test_several_rotations_must_be_chosen_from(file, capsys):
    assert cli.main(["explain", file(GEMMA), "--code", "numpy"]) == 2
    assert "choose one: --layer 0; --layer 5" in capsys.readouterr().err
    assert cli.main(["explain", file(LLAMA), "--code", "cobol"]) == 2


LATENT = {"model_type": "deepseek_v3", **SIZES, "qk_rope_head_dim": 16, "qk_nope_head_dim": 32}
UNUSUAL = [(LATENT, "numpy"), *(({"model_type": name, **SIZES}, "numpy") for name in ("nanochat", "gpt_oss"))]


@pytest.mark.parametrize(
    ("config", "language"), [(GLM, "numpy"), (PHI, "torch"), *UNUSUAL, pytest.param(PHI, "jax", marks=pytest.mark.slow)]
)
def test_code_passes_its_own_test(config, language, file, capsys):
    """Also a sign, another layout written and a magnitude; below the code is compared with what is explained."""
    pytest.importorskip(language)
    if language == "jax":
        pytest.importorskip("jax").config.update("jax_enable_x64", True)
    space = {}
    exec(printed(capsys, file(config), "--code", language, "--layer", "0"), space)
    space["test_rope"]()


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize("config", [GLM, PHI], ids=lambda config: config["model_type"])
def test_c_code(config, file, tmp_path, capsys):
    import ctypes

    (tmp_path / "rope.c").write_text(printed(capsys, file(config), "--code", "c"), encoding="utf-8")
    library = tmp_path / "rope.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "rope.c", "-lm"], check=True)
    turn = ctypes.CDLL(str(library)).rope

    def function(x, positions):
        y = np.ascontiguousarray(x, dtype=np.float64)
        for place in np.ndindex(y.shape[:-1]):
            turn(y[place].ctypes.data_as(ctypes.c_void_p), ctypes.c_long(int(positions[place[0], place[2]])))
        return y

    check_rope(function, **command.rope_arguments(file(config))).require()


WHOLE = """
import numpy as np

def turned(x, positions):
    angles = np.asarray(positions)[..., None, :, None] * 1e4 ** (-np.arange(8) / 8)
    z = (x[..., ::2] + 1j * x[..., 1::2]) * np.exp(1j * angles)
    return np.concatenate([z.real, z.imag], -1)

def in_place(x, positions): return right(x, positions)[..., [*range(x.shape[-1] - 16), *np.r_[-16:0].reshape(2, 8).T.ravel()]]
def in_place_from_one(x, positions): return in_place(x, positions + 1)
def right(x, positions): return np.concatenate([x[..., :-16], turned(x[..., -16:], positions)], -1)
def part_alone(x, positions): return turned(x.reshape(*x.shape[:-1], 16), positions)
def first_features(x, positions): return np.concatenate([turned(x[..., :16], positions), x[..., 16:]], -1)
def others_doubled(x, positions): return np.concatenate([2 * x[..., :-16], turned(x[..., -16:], positions)], -1)
def others_rounded(x, positions):
    return np.concatenate([x[..., :-20], x[..., -20:-16] // 1, turned(x[..., -16:], positions)], -1)
def scaled_at_the_start(x, positions):
    return np.concatenate([x[..., :-16], (2 if x.shape[-1] > 16 else 1) * turned(x[..., -16:], positions)], -1)
"""


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("right", 0, "heads (whole ones of 48 features, of which the last 16 turn)"),
        ("part_alone", 0, "that they are the last 16 of 48"),
        ("first_features", 0, "that they are the last 16 of 48"),
        ("others_doubled", 1, "heads of 48, the first 32 features, which do not turn, come back times 2."),
        ("others_rounded", 1, "heads of 48, features 28 to 31, which do not turn, come back changed."),
        ("scaled_at_the_start", 1, "heads of 48, the last 16 are turned, and 2 times as long as they should be."),
    ],
)
def test_whole_heads_keep_what_does_not_turn(file, tmp_path, capsys, name, code, words):
    (tmp_path / "mine.py").write_text(WHOLE, encoding="utf-8")
    assert cli.main(["check", f"{tmp_path / 'mine.py'}:{name}", "--config", file(LATENT)]) == code
    assert words in capsys.readouterr().out


IN_PLACE = "your function leaves each pair (2t, 2t + 1) in its place"


@pytest.mark.parametrize(
    ("name", "layout", "code", "words"),
    [
        ("in_place", "", 0, IN_PLACE),
        ("in_place", "interleaved", 0, "heads (whole ones of 48 features, of which the last 16 turn)"),
        ("in_place", "interleaved_to_half", 1, "you asked for --layout interleaved_to_half"),
        ("right", "interleaved", 1, "you asked for --layout interleaved "),
        ("in_place_from_one", "", 1, "with the mistake position_plus_one"),
    ],
)
def test_pairs_that_stay_in_their_place_give_the_same_scores(file, tmp_path, capsys, name, layout, code, words):
    (tmp_path / "mine.py").write_text(WHOLE, encoding="utf-8")
    asked = ["check", f"{tmp_path / 'mine.py'}:{name}", "--config", file(LATENT), *["--layout", layout] * bool(layout)]
    assert cli.main(asked) == code
    said = capsys.readouterr().out
    assert words in said, said
    assert (IN_PLACE in said) == (not layout)


def test_a_layer_of_a_text_is_chosen_before_one_of_a_picture(file, capsys):
    """Layer 3 of the text does not turn, though layer 3 of the tower does; and a contract has the numbers of its schedule."""
    scaled = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "rope_theta": 5e5}
    text = {"model_type": "llama4_text", "num_hidden_layers": 4, "no_rope_layers": [1, 1, 1, 0], "head_dim": 16}
    text |= {"num_attention_heads": 4, "num_key_value_heads": 4, "hidden_size": 64, "max_position_embeddings": 131072}
    text |= {"rope_parameters": scaled | {"original_max_position_embeddings": 8192}}
    tower = {"model_type": "llama4_vision_model", "num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 4}
    tower |= {"image_size": 56, "patch_size": 14}
    config = str(file({"model_type": "llama4", "text_config": text, "vision_config": tower}))
    for layer, words in (("3", "--frequencies 0..0"), ("0", f"--frequencies {5e5 ** (-14 / 16) / 8:g}..1")):
        assert cli.main(["check", "--config", config, "--layer", layer, "--contract"]) == 0
        assert words in capsys.readouterr().out
    assert cli.main(["check", "--config", config, "--layer", "0", "--as", "alibi.bias", "--contract"]) == 2


def test_a_chosen_layer_without_positions_returns_what_it_receives(file, tmp_path, capsys):
    (tmp_path / "mine.py").write_text(
        "from posref.rotary import rope\n"
        "def same(x, positions): return x\n"
        "def turned(x, positions): return rope.rotate(x, *rope.tables(positions[:, None], FREQUENCIES), layout='half')\n"
        "FREQUENCIES = rope.frequencies(16, 1e4)\n"
        "def halved(x, positions): return turned(x, positions / 2)\n",
        encoding="utf-8",
    )
    config = str(file(LLAMA | {"model_type": "smollm3", "no_rope_layers": [1, 1, 1, 0], "head_dim": 16}))
    for function, layer, code, words in (
        ("same", 3, 0, "a layer without positions returns x as it is ok"),
        ("turned", 3, 1, "Diagnosis: your output is rotated as in the layers with positions."),
        ("halved", 3, 1, "Diagnosis: your output is rotated as in the layers with positions, but for another mistake."),
    ):
        assert cli.main(["check", f"{tmp_path / 'mine.py'}:{function}", "--config", config, "--layer", str(layer)]) == code
        assert words in capsys.readouterr().out


def test_a_model_of_texts_and_pictures_is_asked_for_its_texts(file, capsys):
    vision = {"depth": 2, "embed_dim": 64, "num_heads": 2, "hidden_size": 64}
    text = LLAMA | {"rope_scaling": {"type": "mrope", "mrope_section": [8, 12, 12]}}
    config = str(file(text | {"model_type": "qwen2_vl", "vision_config": vision}))
    named = command.question(config)
    assert named.op == "rope"
    assert named.pictures == ["--layer 0 --part vision_config"]
    assert command.question(config, part="vision_config").op == "axes.rotate"
    wrong = file(text | {"model_type": "qwen2_vl", "vision_config": vision, "rope_scaling": {"mrope_section": [1, 1, 1]}})
    with pytest.raises(ValueError, match="rows and columns of a picture"):
        command.question(wrong)  # its text is not described: that of pictures is no answer for it


ROWS = """
import numpy as np

def turned(x, angles):
    a, b = np.split(x, 2, axis=-1)
    return np.concatenate([a * np.cos(angles) - b * np.sin(angles), a * np.sin(angles) + b * np.cos(angles)], axis=-1)

def of_pairs(position_ids, sections):
    rows = position_ids if position_ids.ndim == 3 else np.stack([position_ids] * 3)
    return np.moveaxis(rows[np.repeat([0, 1, 2], sections)], 0, -1)[:, None] * 1e4 ** (-np.arange(32) / 32)

def right(x, position_ids): return turned(x, of_pairs(position_ids, [8, 12, 12]))
def wrong(x, position_ids): return turned(x, of_pairs(position_ids, [12, 10, 10]))
def of_both(q, k, position_ids): return right(q, position_ids), wrong(k, position_ids)
def of_texts(x, position_ids): return turned(x, position_ids[:, None, :, None] * 1e4 ** (-np.arange(32) / 32))
"""


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("right", 0, "time, row and column (position_ids (3, batch, n))"),
        ("wrong", 1, "pair 8 reads axis 0 instead of 1"),
        ("of_both", 1, "failed: time, row and column of k: "),
        ("of_texts", 0, "skipped: time, row and column: "),
    ],
)
def test_position_ids_of_three_rows_are_tried(file, tmp_path, capsys, name, code, words):
    (tmp_path / "mine.py").write_text(ROWS, encoding="utf-8")
    config = LLAMA | {"model_type": "qwen2_vl_text", "rope_scaling": {"type": "mrope", "mrope_section": [8, 12, 12]}}
    assert cli.main(["check", f"{tmp_path / 'mine.py'}:{name}", "--config", file(config)]) == code
    assert words in capsys.readouterr().out


def test_rules_for_a_longer_context_stand_beside_each_other(file, capsys):
    """Counted here from the definition: a pair that never made a turn in training reaches new angles if w' n > w L."""
    config = file(LLAMA | {"max_position_embeddings": 4096, "head_dim": 128})
    found = json.loads(printed(capsys, config, "--longer", "32768", "--json"))
    rows = {each["rule"]: each for each in found["rules"]}
    w = 10000.0 ** (-np.arange(64) / 64)
    assert rows["none"]["new"] == (w * 4096 < 2 * np.pi).sum() == 18
    assert [rows[each]["new"] for each in ("linear", "ntk", "yarn", "llama3")] == [0, 17, 0, 0]  # ntk slows the last pair
    assert rows["linear"]["slower"] == [8, 8, 8]
    assert rows["ntk"]["slower"][::2] == pytest.approx([1, 8])
    assert rows["yarn"]["scores"] == pytest.approx((0.1 * np.log(8) + 1) ** 2)
    assert "scaling.yarn(w, factor=8, original_length=4096" in printed(capsys, config, "--longer", "32768")
    assert cli.main(["explain", config, "--longer", "4096"]) == 2
    assert "name a greater length" in capsys.readouterr().err


def test_difference(file, capsys):
    first, second = file(LLAMA, "a.json"), file(LLAMA | {"rope_theta": 500000.0}, "b.json")
    assert printed(capsys, first, "--diff", second) == f"{first} -> {second}\nlayers 0-3: base 10000.0 -> 500000.0\n"
    assert printed(capsys, first, "--diff", first) == "the positions are the same\n"
    longer = file(LLAMA | {"num_hidden_layers": 6}, "c.json")
    assert "layers 4-5: only in the second file" in printed(capsys, first, "--diff", longer)


def test_difference_in_words(file, capsys):
    """YaRN of factor 4 and 8 of a head of 128: magnitudes 0.1 ln s + 1, squared; 40 of 64 pairs are not divided whole."""
    yarn = {"rope_type": "yarn", "original_max_position_embeddings": 32768}
    said = {"num_hidden_layers": 2, "num_attention_heads": 4, "rope_theta": 1e6, "max_position_embeddings": 32768}
    files = [file(LLAMA | said | {"rope_scaling": yarn | {"factor": factor}}, f"{factor}.json") for factor in (4.0, 8.0)]
    plain = file(LLAMA | said, "plain.json")
    first = printed(capsys, files[0], "--diff", files[1]).splitlines()[1]
    assert first == "layers 0-1: 24 slow pairs: 4x -> 8x slower; scores x 1.296 -> x 1.459; reaches 131072 -> 262144"
    assert "24 slow pairs: 1x -> 4x slower; scores x 1 -> x 1.296" in printed(capsys, plain, "--diff", files[0])
    assert "slow pairs" not in printed(capsys, "CodeLlama-7b", "--diff", "gemma-2-9b")  # other widths, and no schedule


def test_schedules_differ_in_words(file, capsys):
    yarn = {"rope_type": "yarn", "original_max_position_embeddings": 4096}
    four, eight = (file(LLAMA | {"rope_scaling": yarn | {"factor": factor}}, f"{factor}.json") for factor in (4.0, 8.0))
    assert "layers 0-3: scaling: factor 4.0 -> 8.0\n" in printed(capsys, four, "--diff", eight)
    words = "YaRN (factor 4.0, original_length 4096, beta_fast 32.0, beta_slow 1.0, truncate yes)"
    assert f"layers 0-3: scaling none -> {words}\n" in printed(capsys, file(LLAMA), "--diff", four)


def test_no_difference_of_shipped_models_is_printed_in_python():
    found = [explanation(name) for name in sources.models()]
    for ours, theirs in pairwise(found):
        for line in output.differences(ours, theirs):
            assert not re.search(r"[{}]|\b(None|True|False)\b", line), line


def test_layers_that_also_attend_to_an_encoder_differ_in_both(file, capsys):
    """Layer 0 of this decoder has two attentions."""
    plain = {"model_type": "roformer", "is_decoder": True, "add_cross_attention": True, "num_hidden_layers": 1}
    files = [file(plain | {"num_attention_heads": heads, "hidden_size": 64 * heads}, f"{heads}.json") for heads in (4, 2)]
    assert "layers 0: heads 4 -> 2\n" in printed(capsys, files[0], "--diff", files[1])
    other = file(plain | {"num_attention_heads": 4, "hidden_size": 256, "is_decoder": False}, "other.json")
    assert printed(capsys, files[0], "--diff", other).splitlines()[1] == "layers 0: causal yes -> no"


@pytest.mark.parametrize(
    "changed",
    [
        {"is_causal": False},
        {"architectures": ["XForCausalLM"]},
        {"rope_thetas": 3},
        {"lookback": 3},
        {"rope_scaling": {"rope_type": "linear", "factor": 2.0}},
        {"mtp_layers": {"num_hidden_layers": 1}},
    ],
)
def test_what_differs_is_never_the_same(changed, file, capsys):
    said = printed(capsys, file(LLAMA, "a.json"), "--diff", file(LLAMA | changed, "b.json"))
    assert said != "the positions are the same\n"


MODULE = """
import numpy as np
from posref.rotary import rope

def mine(x, positions):
    cos, sin = rope.tables(positions[:, None], rope.frequencies({dim}, {base}))
    return rope.rotate(x, cos, sin, layout="{layout}", rotary_dim={dim})
"""


@pytest.mark.parametrize(
    ("config", "dim", "base", "layout", "code"), [(LLAMA, 64, 5e5, "half", 1), (GLM, 32, 1e4, "interleaved", 0)]
)
def test_check_by_configuration(config, dim, base, layout, code, file, tmp_path, monkeypatch):
    (tmp_path / "mine_of_test.py").write_text(MODULE.format(dim=dim, base=base, layout=layout), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    sys.modules.pop("mine_of_test", None)
    assert cli.main(["check", "mine_of_test:mine", "--config", file(config)]) == code


def test_known_names_are_listed(capsys):
    """Each on a line of its own; an unknown name says how to list them, and gets names like it."""
    assert cli.main(["explain", "--models"]) == 0
    assert capsys.readouterr().out.splitlines() == list(sources.models())
    assert cli.main(["explain", "llama-"]) == 2
    said = capsys.readouterr().err
    assert "did you mean Llama-2-7b-hf, Llama-3.1-8B" in said
    assert "`posref explain --models` lists" in said
    assert cli.main(["explain", "meta-llama/Llama-3.1-8B-Instruct"]) == 2
    assert "did you mean Llama-3.1-8B, " in capsys.readouterr().err


def test_every_shipped_model_is_explained_and_has_a_source():
    for name, record in sources.models().items():
        explained = explain(name)
        assert explained["layers"], name
        described = {group["part"] for group in explained["layers"]}
        for entry in explained["unsupported"]:  # layers of another kind in a described part
            assert entry["model_type"] == "gemma4_audio" or entry["part"] in described, name
        assert "@" in record["source"]


@pytest.mark.parametrize(
    ("model", "system", "call"),
    [
        ("pixtral-12b", "rotary.axes", "rope.frequencies(64, 10000.0), even ones by row, odd by column, axes hw_split, half"),
        ("DeepSeek-V3.2", "rotary.scaling", "truncate=True), 64 of 192, interleaved_to_half"),
        ("ModernBERT-base", "rotary.rope", "rope.frequencies(64, 10000.0), half"),
        ("dinov3-vitb16-pretrain-lvd1689m", "rotary.axes", "rope.frequencies(32, 100.0) for each axis, axes hw_centred, half"),
        ("gemma-3-4b", "rotary.scaling", "scaling.linear(rope.frequencies(256, 1000000.0), factor=8.0), half"),
        ("Qwen3-VL-8B-Instruct", "rotary.axes", "rope.frequencies(128, 5000000.0), axes interleaved, half"),
        ("internlm2_5-7b", "rotary.scaling", "original_length=32768), half"),
    ],
)
def test_pages_list_the_models_of_the_table(model, system, call):
    (line,) = [line for line in presets.of(system) if line.startswith(f"Model {model}:") and call in line]
    assert line.endswith(sources.models()[model]["source"])


def test_what_pages_print_can_be_run():
    """The calls of the table are Python: they give the frequencies of the layer."""
    for name in sources.models():
        for layer in explain(name)["layers"]:
            if layer["encoding"] == "rope" and ".." not in layer["call"] and "rule" not in layer["call"]:
                call = layer["call"].split(" for each axis")[0].split(", even ones")[0].split(", long_factor")[0]
                short = np.array((layer["scaling"] or {}).get("short_factor", ()))
                given = {"rope": rope, "scaling": scaling, "short_factor": short}
                np.testing.assert_array_equal(np.sort(eval(call, given)), np.sort(layer["frequencies"]), err_msg=name)


def plain_rotation(group, x, positions):
    """Every pair by itself, from what is explained and nothing else."""
    head, width = group.head_dim, 2 * len(group.frequencies)
    y, half = x.copy(), width // 2
    read, _, write = group.layout.partition("_to_")
    pairs = {"half": lambda t: (t, t + half), "interleaved": lambda t: (2 * t, 2 * t + 1)}
    assert x.shape[-1] == (width if group.rotated == "last" else head)
    for t, frequency in enumerate(group.frequencies):
        angle = group.sign * frequency * positions[:, None, :]
        cos, sin = group.magnitude * np.cos(angle), group.magnitude * np.sin(angle)
        (a, b), (first, second) = pairs[read](t), pairs[write or read](t)
        y[..., first], y[..., second] = x[..., a] * cos - x[..., b] * sin, x[..., a] * sin + x[..., b] * cos
    return y


def test_printed_code_is_the_rotation_or_is_refused():
    """Of every released file and of the defaults of every type: the code runs, and turns as every group says; in jax for the
    first of them, since jax compiles every operation."""
    sources = [json.loads(line.rstrip(",")) for line in CONFIGS.read_text(encoding="utf-8").splitlines() if line[:1] == "{"]
    files = [record["config"] for record in sources] + [{"model_type": name} for name in configuration.facts()]
    seen, random, ran, refused = set(), np.random.default_rng(0), 0, 0
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    tensor = {"numpy": np.asarray, "torch": torch.from_numpy, "jax": jax.numpy.asarray}
    for config in files:
        try:
            explained = explanation(config)
        except ValueError:
            continue
        for group in explained.layers:
            key = json.dumps([getattr(group, name) for name in (*output.TURNED_BY, "head_dim", "encoding")])
            if group.encoding != "rope" or key in seen:
                continue
            seen.add(key)
            one = replace(explained, layers=[group])
            try:
                codes = {language: output.code(one, language, "config.json") for language in tensor}
            except ValueError:
                refused += 1
                special = group.axes or group.frequencies_long or group.layout is None or group.rotary_dim % 2
                assert special or group.model_type == "telechat" or group.scaling["type"] == "dynamic_ntk"
                continue
            assert not group.axes
            x = random.normal(size=(2, 3, 4, output.attending(group)))
            positions = random.integers(0, 5000, (2, 4)).astype(float)
            expected = plain_rotation(group, x, positions)
            if ran:
                del codes["jax"]
            for language, code in codes.items():
                module = {}
                exec(code.split("\n\ndef test_rope")[0], module)
                given = map(tensor[language], (x, positions))
                np.testing.assert_allclose(np.asarray(module["rope"](*given)), expected, atol=1e-9, rtol=0)
            ran += 1
    assert ran > 50
    assert refused > 20


def test_printed_code_names_what_the_model_does_beside_it():
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32, "llama_4_scaling_beta": 0.1}
    warm = explanation({"model_type": "ministral3", "rope_parameters": yarn | {"rope_theta": 1e6}})
    assert "also multiplies queries by 1 + a ln(1 + floor(p / f)), a = 0.1, f = 32" in output.code(warm, "numpy", "file")
    back = explanation({"model_type": "deepseek_v4"})
    one = replace(back, layers=back.layers[:1])
    assert "rotates the output of attention back" in output.code(one, "c", "file")


@pytest.mark.parametrize(
    ("config", "name"),
    [
        ({"model_type": "phi", "partial_rotary_factor": 0.4}, "all_rotated"),
        ({"model_type": "llama", "rope_scaling": {"type": "linear", "factor": 4.0}}, "unscaled"),
    ],
)
def test_a_check_varies_what_the_configuration_says(file, config, name):
    def rotate(x, positions):
        return rope.rotate(x, *rope.tables(positions[:, None], rope.frequencies(80)), layout="half")

    sizes = {"hidden_size": 160, "num_attention_heads": 2, "num_hidden_layers": 2, "max_position_embeddings": 2048}
    report = check_rope(rotate, **command.rope_arguments(file(sizes | config)))
    assert [finding.name for finding in report.diagnosis] == [name], report
