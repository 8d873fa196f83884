"""The README is executed: its examples, its commands and its table. `python tests/test_readme.py` rewrites the table."""

import doctest
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from posref import cli, discovery, vectors

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
TABLE = re.compile(r"(<!-- systems:.*?-->\n)(.*?)(<!-- /systems -->)", re.DOTALL)


def text():
    return README.read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{re.escape(language)}\n(.*?)^```$", text(), flags=re.MULTILINE | re.DOTALL)


def test_examples_print_what_they_say():
    joined = "\n".join(blocks("pycon"))
    test = doctest.DocTestParser().get_doctest(joined, {}, "README.md", str(README), 0)
    assert len(test.examples) >= 10
    report = []
    result = doctest.DocTestRunner(optionflags=doctest.IGNORE_EXCEPTION_DETAIL).run(test, out=report.append)
    assert result.failed == 0, "".join(report)


def test_torch_example():
    pytest.importorskip("torch", reason="the torch example of the README needs torch")
    (block,) = blocks("python")
    names = {}
    exec(block, names)
    names["test_my_rope"]()
    names["my_rope"] = lambda x, positions: x
    with pytest.raises(AssertionError, match="FAILED"):
        names["test_my_rope"]()


CPP_MAIN = r"""
#include <cstdio>
int main(int, char** argv) {
  for (const Case& c : load(argv[1]))
    for (const auto& [name, t] : c.tensor) {
      std::printf("%s %s %s %s", c.id.c_str(), c.op.c_str(), c.param.at("layout").c_str(), name.c_str());
      for (size_t n : t.shape) std::printf(" %zu", n);
      for (double v : t.values) std::printf(" %.17g", v);
      std::printf("\n");
    }
}
"""
RUST_MAIN = """
fn main() {
    for c in load(&std::env::args().nth(1).unwrap()) {
        for (name, (shape, values)) in &c.tensor {
            print!("{} {} {} {}", c.id, c.op, c.param["layout"], name);
            for n in shape { print!(" {}", n); }
            for v in values { print!(" {}", v); }
            println!();
        }
    }
}
"""


@pytest.mark.parametrize(
    ("language", "compiler", "program"),
    [
        ("cpp", ["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-xc++"], CPP_MAIN),
        ("rust", ["rustc", "-Dwarnings"], RUST_MAIN),
    ],
)
def test_loaders(language, compiler, program, tmp_path):
    """The printed loader, compiled, reads every number of an export to the last bit."""
    if shutil.which(compiler[0]) is None:
        pytest.skip(f"{compiler[0]} is not installed")
    (block,) = blocks(language)
    (tmp_path / "main").write_text(block + program)
    subprocess.run([*compiler, str(tmp_path / "main"), "-o", str(tmp_path / "program")], check=True)
    (exported,) = vectors.export(tmp_path, "txt", "rope/half/*")
    run = subprocess.run([tmp_path / "program", exported], capture_output=True, text=True, check=True)
    read = {tuple(line.split()[:4]): [float(word) for word in line.split()[4:]] for line in run.stdout.splitlines()}
    for case in vectors.cases("rope/half/*"):
        tensors = {**case.tensors, "expected": case.expected, **{f"stage.{name}": v for name, v in case.stages.items()}}
        for name, tensor in tensors.items():
            assert read[case.id, case.op, "half", name] == [*tensor.shape, *tensor.ravel()], (case.id, name)
    assert len(read) >= 2 * len(vectors.cases("rope/half/*"))


def test_table_is_what_discovery_finds():
    found = TABLE.search(text())[2].strip()
    assert found == discovery.table(), "the table is out of date; run: python tests/test_readme.py"


def test_one_line_commands():
    """Two commands, each one line that makes its own environment and needs extras that exist."""
    lines = "".join(blocks("sh")).splitlines()
    commands = [line for line in lines if line.startswith("python3 -m venv .venv && .venv/bin/pip install -q -e ")]
    assert [line.split(" && ")[-1] for line in commands] == [".venv/bin/posref demo", ".venv/bin/python -m pytest"]


def test_named_files_exist():
    for path in re.findall(r"`((?:posref|proofs|examples|tests)/[\w/.]*)`", text()):
        assert (ROOT / path).exists(), path


def test_named_commands_parse():
    """Every `posref ...` in the text is accepted by the parser."""
    parser = cli._parser()
    commands = re.findall(r"`posref ([a-z][^`]*)`", text())
    assert len(commands) >= 6
    for command in commands:
        parser.parse_args([word.strip("'") for word in command.split()])


if __name__ == "__main__":
    README.write_text(TABLE.sub(lambda match: match[1] + discovery.table() + "\n" + match[3], text()), encoding="utf-8")
