"""`posref explain --plot`: numbers are read off the drawn lines, small masks are compared with rules written out here."""

import json
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from posref import cli
from posref.explain import configuration, explanation, picture, sources
from posref.explain.layer import Layer

CONFIGS = Path(__file__).with_name("configs.json")
SVG = "{http://www.w3.org/2000/svg}"
SIZES = {"hidden_size": 512, "num_attention_heads": 8, "num_hidden_layers": 4, "rope_theta": 10000.0}
LLAMA = {"model_type": "llama", **SIZES, "max_position_embeddings": 2048}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2048}


@pytest.fixture
def file(tmp_path):
    def write(config, name="config.json"):
        path = tmp_path / name
        path.write_text(json.dumps(config), encoding="utf-8")
        return str(path)

    return write


def plotted(tmp_path, *arguments):
    out = tmp_path / "out.svg"
    assert cli.main(["explain", *arguments, "--plot", str(out)]) == 0
    return ElementTree.parse(out).getroot()


def texts(element):
    return ["".join(text.itertext()).replace("\u200b", "") for text in element.iter(f"{SVG}text")]


def written(element):
    """Everything written, as one text; a minus is a hyphen again."""
    return re.sub(r"\s+", " ", " ".join(texts(element))).replace("\u2212", "-").replace("\N{HORIZONTAL ELLIPSIS}", "...")


def panel(root, title):
    (found,) = [group for group in root.iter(f"{SVG}g") if title in texts(group)]
    return found


def curves(group):
    """(width of the stroke, whether dashed, [(x, y)]) of each line of a plot."""
    for path in group.iter(f"{SVG}path"):
        style = path.get("style")
        points = [tuple(map(float, point.split())) for point in path.get("d")[1:].split("L")]
        yield float(re.search(r"stroke-width:([\d.]+)", style)[1]), "dasharray" in style, points


def heights(group):
    """What is written beside the vertical axis -> its height: that of the line that begins beside it."""
    lines = [float(line.get("y1")) for line in group.iter(f"{SVG}line") if "stroke-dasharray:2 3" in line.get("style")]
    marks = [text for text in group.iter(f"{SVG}text") if text.get("text-anchor") == "end"]
    return {"".join(mark.itertext()).rstrip("\u200b"): y for mark, y in zip(marks, lines, strict=True)}


def tokens(group, y):
    """The number at a height of the plot of full turns, by two of its marks, 10^1 and 10^3."""
    marks = heights(group)
    return 10 ** (1 + 2 * (marks["101"] - y) / (marks["101"] - marks["103"]))


def test_wavelengths_and_lengths_are_those_of_the_definition(file, tmp_path):
    """64 features, base 1e4: a turn of pair t takes 2 pi 1e4^(t/32) tokens, 4 times as many for the last pair of YaRN."""
    root = plotted(tmp_path, file(LLAMA | {"rope_scaling": YARN}))
    group = panel(root, "Tokens for one full turn")
    (_, _, yarn), (thin, _, plain) = sorted(curves(group), reverse=True)
    assert thin == 1
    expected = 2 * np.pi * 1e4 ** (np.arange(32) / 32)
    np.testing.assert_allclose([tokens(group, y) for _, y in plain], expected, rtol=2e-3)
    np.testing.assert_allclose([tokens(group, yarn[t][1]) for t in (0, 31)], expected[[0, 31]] * [1, 4], rtol=2e-3)
    dotted = [float(line.get("y1")) for line in group.iter(f"{SVG}line") if "stroke-dasharray:1 3" in line.get("style")]
    assert sorted(tokens(group, y) for y in dotted) == pytest.approx([2048, 4 * 2048], rel=2e-3)
    assert {"trained 2048", "reaches 8192"} <= set(texts(group))
    assert f"scores by {(0.1 * np.log(4) + 1) ** 2:.6g}" in written(group)


def test_pairs_that_turn_are_counted(file, tmp_path):
    """2 pi 1e4^(t/32) <= 2048 holds up to t = 20.1: 21 pairs; the linear schedule of 8 leaves those up to t = 12.8: 13."""
    assert "21 of 32 pairs make a full turn within 2048 tokens" in written(plotted(tmp_path, file(LLAMA)))
    linear = {"rope_scaling": {"rope_type": "linear", "factor": 8.0}}
    assert "13 of 32 pairs make a full turn within 2048 tokens" in written(plotted(tmp_path, file(LLAMA | linear)))


def test_how_much_slower_is_read_off_the_second_plot(file, tmp_path):
    """The linear schedule slows every pair alike; a plain rotation has no second plot."""
    root = plotted(tmp_path, file(LLAMA | {"rope_scaling": {"rope_type": "linear", "factor": 8.0}}))
    group = panel(root, "Times slower than by the base alone")
    ((_, _, points),) = curves(group)
    assert {y for _, y in points} == {heights(group)["8"]}
    assert "Times slower" not in written(plotted(tmp_path, file(LLAMA)))


def test_a_long_list_is_dashed(tmp_path):
    factors = sources.models()["Phi-3.5-mini-instruct"]["config"]["rope_scaling"]["long_factor"]
    group = panel(plotted(tmp_path, "Phi-3.5-mini-instruct"), "Tokens for one full turn")
    (dashed,) = [points for _, dash, points in curves(group) if dash]
    expected = 2 * np.pi * 1e4 ** (np.arange(48) / 48) * factors
    np.testing.assert_allclose([tokens(group, y) for _, y in dashed], expected, rtol=3e-3)


MASKS = {
    "causal": (Layer(causal=True), lambda i, j: j <= i),
    "all": (Layer(causal=False), lambda i, j: True),
    "window": (Layer(causal=True, window=128, window_sides="past"), lambda i, j: 0 <= i - j < 4),
    "narrow": (Layer(causal=True, window=2, window_sides="past"), lambda i, j: 0 <= i - j < 2),
    "both sides": (Layer(causal=False, window=65, window_sides="both"), lambda i, j: abs(i - j) < 4),
    "two widths": (Layer(causal=False, window=9, window_after=2, window_sides="both"), lambda i, j: -2 < i - j < 4),
    "chunks": (Layer(causal=True, chunk=8192), lambda i, j: j <= i and i // 4 == j // 4),
    "pictures": (Layer(causal=False, segment="patches of one picture see each other"), lambda i, j: i // 6 == j // 6),
    "windows": (Layer(causal=False, segment="patches of one window", window_side=8), lambda i, j: i // 4 == j // 4),
    "swin": (Layer(causal=False, encoding="swin"), lambda i, j: i // 4 == j // 4),
}
PALE = {
    "images": (Layer(causal=True, further_keys="tokens of one image"), lambda i, j: 1 if j <= i else picture.SOME),
    "selected": (Layer(causal=True, selected={"most": 9}), lambda i, j: picture.SOME if j <= i else 0),
    "compressed": (
        Layer(causal=True, window=9, window_sides="past", compressed={"rate": 4}),
        lambda i, j: 1 if 0 <= i - j < 4 else picture.SOME if j <= i else 0,
    ),
}


@pytest.mark.parametrize("name", [*MASKS, *PALE])
def test_small_masks(name):
    group, rule = {**MASKS, **PALE}[name]
    expected = [[float(rule(i, j)) for j in range(12)] for i in range(12)]
    np.testing.assert_array_equal(picture.seen(group), expected)


def test_each_layer_has_a_cell_in_the_colour_of_its_mask(tmp_path):
    """gpt-oss-20b: 24 layers, of which the even ones have the window."""
    group = panel(plotted(tmp_path, "gpt-oss-20b"), "Layers and masks")
    cells = sorted((float(r.get("x")), r.get("style")) for r in group.iter(f"{SVG}rect") if r.get("y") == "28")
    masks = [r.get("style") for r in group.iter(f"{SVG}rect") if r.get("mask")]
    assert [style.split(";")[0] for _, style in cells] == [masks[i % 2] for i in range(24)]
    assert "Windows and chunks of more than 4 tokens are drawn as 4" in written(plotted(tmp_path, "gpt-oss-20b"))
    assert "drawn as 4" not in written(plotted(tmp_path, "Llama-3.1-8B"))


def test_traps_and_layers_that_are_not_described_are_written(tmp_path):
    for name in ("Qwen3.5-397B-A17B", "t5-base", "Phi-3.5-mini-instruct"):
        explained, said = explanation(name), written(plotted(tmp_path, name))
        assert all(" ".join(trap.split()) in said for trap in explained.traps), name
        assert said.count("not described") == len(explained.unsupported)
    file = tmp_path / "nemotron.json"
    file.write_text(json.dumps({"model_type": "nemotron_h", "hybrid_override_pattern": "M-*-"}), encoding="utf-8")
    for name, title, expected in (
        ("Qwen3.5-397B-A17B", "Layers and masks (text_config)", (60, 0)),
        (str(file), "Layers and masks", (4, 2)),
    ):
        (group,) = [group for group in plotted(tmp_path, name).iter(f"{SVG}g") if title in texts(group)]
        cells = [r.get("style").split(";")[0] for r in group.iter(f"{SVG}rect") if r.get("height") == "16"]
        assert (len(cells), cells.count("fill:none")) == expected


def test_two_models(tmp_path):
    root = plotted(tmp_path, "gpt-oss-20b", "--diff", "Llama-3.1-8B")
    group = panel(root, "Tokens for one full turn")
    legend = {"gpt-oss-20b: trained 4096, reaches 131072", "Llama-3.1-8B: trained 8192, reaches 131072"}
    assert legend <= set(texts(group))
    ends = sorted(tokens(group, points[-1][1]) for width, _, points in curves(group) if width > 2)
    last = [8 * 2 * np.pi * 500000 ** (63 / 64), 32 * 2 * np.pi * 150000 ** (31 / 32)]
    np.testing.assert_allclose(ends, sorted(last), rtol=3e-3)
    said = written(root)
    assert "Layers and masks of gpt-oss-20b" in said
    assert "14 -> 29 slow pairs: 32x -> 8x slower than by its own base" in said
    assert "the positions are the same" in written(plotted(tmp_path, "t5-base", "--diff", "t5-base"))


@pytest.mark.whole
def test_the_same_bytes_in_every_process():
    """Sets of strings have another order in each."""
    command = "from posref.explain import explanation, picture; a, b = map(explanation, ('gpt-oss-20b', 'Llama-3.1-8B')); "
    command += "print(picture.drawn(a, 'a') + picture.compared(a, b, 'ab'))"
    made = {
        subprocess.run(
            [sys.executable, "-c", command], env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in "1234"
    }
    assert len(made) == 1


def test_what_a_file_says_is_text_in_the_picture(file, tmp_path):
    config = {"model_type": "<script>&\x1b[2J\ufffe", "num_hidden_layers": 2, "rope_theta": 1e4, "no_rope_layers": ["]]>"]}
    said = written(plotted(tmp_path, file(config | {"hidden_size": 64, "num_attention_heads": 1}, "a <b>&.json")))
    assert "model_type <script>&\\x1b[2J" in said
    assert "a <b>&.json" in said
    assert "\x1b" not in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--plot", "out.png"], "out.png: a picture is written to an .svg file"),
        (["--plot", "out.svg", "--longer", "9000"], "leave --longer out"),
        (["--plot", "out.svg", "--code", "numpy"], "leave --code out"),
        (["--plot", "out.svg", "--layer", "99"], "there is no layer 99"),
        (["--plot", "out.svg", "--diff", "absent.json"], "absent.json: No such file"),
    ],
)
def test_a_picture_is_refused_before_its_file_is_touched(arguments, words, file, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("out.svg").write_text("before", encoding="utf-8")
    assert cli.main(["explain", file(LLAMA), *arguments]) == 2
    assert words in capsys.readouterr().err
    assert Path("out.svg").read_text(encoding="utf-8") == "before"
    assert {path.name for path in tmp_path.iterdir()} == {"config.json", "out.svg"}


def inside(svg):
    """Whether a picture is XML in which every number is one, and no shape leaves the sheet."""
    root = ElementTree.fromstring(svg)
    width, height = float(root.get("width")), float(root.get("height"))
    for group in root.iter(f"{SVG}g"):
        left, top = map(float, re.findall(r"[\d.]+", group.get("transform")))
        for shape in group.iter():
            given = {key: float(shape.get(key)) for key in ("x", "y", "x1", "x2", "y1", "y2", "cx", "cy") if shape.get(key)}
            points = re.findall(r"[ML]([-\d.a-z]+) ([-\d.a-z]+)", shape.get("d", ""))
            xs = [v for key, v in given.items() if "x" in key] + [float(x) for x, _ in points]
            ys = [v for key, v in given.items() if "y" in key] + [float(y) for _, y in points]
            assert all(0 <= left + x <= width for x in xs)
            assert all(0 <= top + y <= height for y in ys)
    return True


def test_every_shipped_model_is_drawn():
    names = list(sources.models())
    for name in names:
        assert inside(picture.drawn(explanation(name), name)), name
    for one, other in pairwise(names[::4]):
        assert inside(picture.compared(explanation(one), explanation(other), (one, other))), (one, other)


@pytest.mark.slow
def test_every_released_file_and_every_type_is_drawn():
    files = [
        json.loads(line.rstrip(","))["config"] for line in CONFIGS.read_text(encoding="utf-8").splitlines() if line[:1] == "{"
    ]
    drawn = 0
    for config in files + [{"model_type": name} for name in configuration.facts()]:
        try:
            explained = explanation(config)
        except ValueError:
            continue
        drawn += inside(picture.drawn(explained, "config.json"))
    assert drawn > 900
