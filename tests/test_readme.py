"""README and the pages with examples are executed. `python tests/test_readme.py` rewrites the table of docs/systems.md."""

import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import posref
from posref import cli, discovery, vectors
from posref.explain import explain
from posref.rotary import rope

ROOT = Path(__file__).resolve().parents[1]
README, USE, COMPARE = ROOT / "README.md", ROOT / "docs" / "use.md", ROOT / "docs" / "compare.md"
SYSTEMS = ROOT / "docs" / "systems.md"
TABLE = re.compile(r"(<!-- systems:.*?-->\n)(.*?)(<!-- /systems -->)", re.DOTALL)


def text():
    return "".join(path.read_text(encoding="utf-8") for path in (README, USE, COMPARE))


def blocks(language):
    return re.findall(rf"^```{re.escape(language)}\n(.*?)^```$", text(), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", ["README.md docs/use.md", "docs/start.md", "docs/longer.md"])
def test_examples_print_what_they_say(page):
    pages = "".join((ROOT / name).read_text(encoding="utf-8") for name in page.split())
    joined = "\n".join(re.findall(r"^```pycon\n(.*?)^```$", pages, flags=re.MULTILINE | re.DOTALL))
    test = doctest.DocTestParser().get_doctest(joined, {}, page, page, 0)
    assert len(test.examples) >= 8
    report = []
    with np.printoptions():  # a page may set how arrays are printed, and other tests of this process print arrays too
        result = doctest.DocTestRunner(optionflags=doctest.IGNORE_EXCEPTION_DETAIL).run(test, out=report.append)
    assert result.failed == 0, "".join(report)


@pytest.fixture
def user(tmp_path, monkeypatch):
    """A folder with the file of the first example, and a dump of positions counted from 1."""
    (block,) = [block for block in blocks("python") if block.startswith("# my_ops.py")]
    (tmp_path / "my_ops.py").write_text(block)
    case = vectors.case("rope/half/d8-b1e4/tiny")
    tables = rope.tables(case.tensors["positions"] + 1, rope.frequencies(8))
    rope.rotate(case.tensors["x"], *tables, layout="half").astype(np.float32).tofile(tmp_path / "out.bin")
    monkeypatch.chdir(tmp_path)
    return {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "160"}


CONSOLE = [tuple(block.removeprefix("$ ").split("\n", 1)) for block in blocks("console")]


@pytest.mark.parametrize(("command", "printed"), CONSOLE, ids=[command for command, _ in CONSOLE])
def test_commands_print_what_they_say(command, printed, user):
    """Lines that are `...` stand for what is left out."""
    if "proofs" in command:
        pytest.importorskip("sympy", reason="needs posref[proofs]")
    words = shlex.split(command)
    start = ["-m", "posref", *words[1:]] if words[0] == "posref" else words[1:]
    done = subprocess.run([sys.executable, *start], env=user, capture_output=True, text=True, check=False)
    same = doctest.OutputChecker().check_output(printed.rstrip() + "\n", done.stdout, doctest.ELLIPSIS)
    assert same, f"$ {command}\n{done.stdout}{done.stderr}"


def test_five_uses():
    assert len(CONSOLE) == 6  # five uses, and the page that compares two models
    assert re.findall(r"^\*\*(\d)\. ", text(), flags=re.MULTILINE) == list("12345")


RULES = {"none": None, "linear": "linear", "dynamic NTK": "dynamic_ntk"}
RULES |= {"YaRN": "yarn", "Llama 3": "llama3", "LongRoPE": "longrope"}


def test_models_have_the_rule_of_their_row():
    page = (ROOT / "docs" / "longer.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]*) \|.*\| ([^|]+) \|$", page, flags=re.MULTILINE)[1:]
    assert [rule for rule, _ in rows] == [*RULES]
    for rule, models in rows:
        for model in models.replace("`", "").split(", "):
            scalings = [layers["scaling"] for layers in explain(model)["layers"] if layers["encoding"] == "rope"]
            assert RULES[rule] in [scaling and scaling["type"] for scaling in scalings], model


def test_the_readme_is_short_and_counts_the_systems():
    """At most 1200 words, the first command within 20 lines."""
    readme = README.read_text(encoding="utf-8")
    assert len(readme.split()) <= 1200
    assert "```sh" in readme.splitlines()[:20]
    assert f" {len(discovery.names())} positional encodings and position-aware attentions" in readme


def test_citation_has_the_version():
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert cited[1] == posref.__version__


def test_torch_example():
    pytest.importorskip("torch", reason="the torch example of the README needs torch")
    (block,) = [block for block in blocks("python") if "import torch" in block]
    names = {}
    exec(block, names)
    names["test_my_rope"]()
    names["my_rope"] = lambda x, positions: x
    with pytest.raises(AssertionError, match="FAILED"):
        names["test_my_rope"]()


CPP_ROPE = r"""
#include <cstdlib>
std::vector<double> my_rope(const std::vector<double> &x, const std::vector<double> &positions, int dim) {
  float sign = std::atof(std::getenv("SIGN"));
  std::vector<double> y(x.size());
  for (size_t i = 0; i < x.size(); i++) {
    int t = i % dim, half = dim / 2;
    float angle = sign * positions[i / dim] * std::pow(10000.0f, -2.0f * (t % half) / dim);
    float other = t < half ? -x[i + half] : x[i - half];
    y[i] = float(x[i]) * std::cos(angle) + other * std::sin(angle);
  }
  return y;
}
"""


def test_cpp_example(tmp_path):
    """The printed test, compiled: it passes float32 RoPE, names the other direction and refuses NaN."""
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    (block,) = blocks("cpp")
    (command,) = re.findall(r"`posref (vectors export .*? --format txt) -o \.`", text())
    assert cli.main([*shlex.split(command), "-o", str(tmp_path)]) == 0
    shutil.copy(ROOT / "posref" / "vectors" / "languages" / "vectors.hpp", tmp_path)
    (tmp_path / "main.cpp").write_text(block + CPP_ROPE)
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["g++", *flags, "main.cpp", "-o", "program"], cwd=tmp_path, check=True)
    for sign, wrong in (("1", False), ("-1", True), ("nan", True)):
        run = subprocess.run(["./program"], cwd=tmp_path, env={"SIGN": sign}, capture_output=True, text=True, check=False)
        assert run.returncode == wrong
        assert bool(run.stdout) == wrong
        assert ("  sign: " in run.stdout) == (sign == "-1")


def test_table_is_what_discovery_finds():
    found = TABLE.search(SYSTEMS.read_text(encoding="utf-8"))[2].strip()
    assert found == discovery.table(), "the table is out of date; run: python tests/test_readme.py"


def test_disagreements_name_theorems():
    section = SYSTEMS.read_text(encoding="utf-8").split("## Where the sources disagree\n")[1]
    rows = [line.split(" | ") for line in section.splitlines() if line.startswith("| ") and "---" not in line][1:]
    assert len(rows) >= 15
    order = [system.name for system in discovery.systems()]
    places = [order.index(row[-1].strip("` |").rsplit(".", 1)[0]) for row in rows]
    assert places == sorted(places), "rows stand in the order of the table"
    for row in rows:
        module, theorem = row[-1].strip("` |").rsplit(".", 1)
        source = (ROOT / "proofs" / f"{module.replace('.', '/')}.py").read_text()
        assert re.search(rf"^def {theorem}\(\):", source, flags=re.MULTILINE), f"{module} has no {theorem}"


def test_one_line_commands():
    """Two commands, each one line that makes its own environment and needs extras that exist."""
    lines = "".join(blocks("sh")).splitlines()
    commands = [line for line in lines if line.startswith("python3 -m venv .venv && .venv/bin/pip install -q -e ")]
    assert [line.split(" && ")[-1] for line in commands] == [".venv/bin/posref demo", ".venv/bin/python -m pytest -n auto"]


def test_named_files_exist():
    pages = [*ROOT.glob("*.md"), *SYSTEMS.parent.glob("*.md"), ROOT / "posref" / "vectors" / "README.md"]
    for page in pages:
        for path in re.findall(r"`((?:posref|proofs|examples|tests|docs)/[\w/.]*)`", page.read_text(encoding="utf-8")):
            assert (ROOT / path).exists(), f"{page.name}: {path}"


def test_named_tests_exist():
    """A test that a command asks by its name: without it the command runs no test at all."""
    for page in (ROOT / ".ci" / "run", *ROOT.glob("*.md")):
        for path, name in re.findall(r"(tests/[\w/]+\.py)::(\w+)", page.read_text(encoding="utf-8")):
            assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), f"{page.name}: {path} has no {name}"


if __name__ == "__main__":
    page = SYSTEMS.read_text(encoding="utf-8")
    SYSTEMS.write_text(TABLE.sub(lambda match: match[1] + discovery.table() + "\n" + match[3], page), encoding="utf-8")
