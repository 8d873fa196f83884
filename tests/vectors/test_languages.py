"""What other languages are given: loaders and comparators that judge as Python does, and formats that are complete."""

import json
import re
import shutil
import struct
import subprocess

import numpy as np
import pytest

from posref import vectors
from posref.vectors.formats import head, settings, tensors, to_text
from tests.release import languages

PATTERN = "transformer_xl/causal/*"
README = (vectors.DIRECTORY / "README.md").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("language", languages.LANGUAGES)
def test_judged_alike(language, tmp_path):
    """Ignored elements and rows that may be shifted; all systems: `python -m tests.release languages`."""
    if shutil.which(languages.LANGUAGES[language]) is None:
        pytest.skip(f"{languages.LANGUAGES[language]} is not installed")
    command = languages.build(language, tmp_path)
    for name in ("transformer_xl", "alibi"):
        count, different = languages.judge(command, language, name, tmp_path)
        assert count > 50
        assert different == []
    assert languages.rope(command, language, tmp_path) == []
    file = tmp_path / f"rope.{languages.READS[language]}"
    file.write_text(file.read_text().replace(vectors.SCHEMA, "posref-vectors-4"))
    run = subprocess.run([*command, "rope", file, "half"], capture_output=True, text=True, timeout=300)
    assert run.returncode
    assert "schema posref-vectors-4" in run.stderr


@pytest.mark.parametrize("language", ["hpp", "js", "rs", "go"])
def test_short(language):
    """Loading, comparing and naming together are short enough to copy: 40 lines each."""
    lines = (languages.SOURCES / f"vectors.{language}").read_text().splitlines()
    assert len([line for line in lines if line.strip()]) <= 3 * 40


def described(document):
    """Every line of the text that is no tensor: what the binary formats carry beside their numbers."""
    lines = [*head(document)]
    for record in document["cases"]:
        lines += settings(record)
    return lines


@pytest.fixture
def document():
    document = vectors.read(vectors.DIRECTORY / "transformer_xl.json")
    document["cases"] = [record for record in document["cases"] if record["id"].startswith("transformer_xl/causal/")]
    assert any(record["ignore"] for record in document["cases"])
    return document


def test_every_word_is_described(document):
    """The text has every field of the JSON: coefficients, conventions, bugs, settings, models, flags, comments."""
    text = "\n".join(described(document))
    words = [*document["conventions"].values(), *document["source"], document["title"]]
    words += [flag["bug"] for flag in document["flags"].values()]
    for record in document["cases"]:
        words += [record[field] for field in ("id", "op", "gauge", "status", "sha256", "comment")]
        words += [f"param {name} " for name in record["params"]] + [f"fingerprint {flag}" for flag in record["flags"]]
    for coefficients in document["models"].values():
        words += map(repr, coefficients.values())
    assert [word for word in words if word not in text] == []


def test_safetensors(tmp_path, document):
    (path,) = vectors.export(tmp_path, "safetensors", PATTERN)
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    index, numbers = json.loads(data[8 : 8 + length]), data[8 + length :]
    assert index.pop("__metadata__")["settings"].splitlines() == described(document)
    wanted = {f"{r['id']}:{name}": tensor for r in document["cases"] for name, tensor in tensors(r)}
    assert index.keys() == wanted.keys()
    for name, entry in index.items():
        start, end = entry["data_offsets"]
        found = np.frombuffer(numbers[start:end], {"F64": "<f8", "I64": "<i8"}[entry["dtype"]])
        assert (entry["shape"], found.tolist()) == (wanted[name]["shape"], wanted[name]["data"])
    library = pytest.importorskip("safetensors.numpy", reason="pip install safetensors")
    assert {name: x.ravel().tolist() for name, x in library.load_file(path).items()} == {
        name: tensor["data"] for name, tensor in wanted.items()
    }


def test_settings_of_npz_and_raw(tmp_path, document):
    (path,) = vectors.export(tmp_path, "npz", PATTERN)
    with np.load(path) as file:
        assert str(file["settings"]).splitlines() == described(document)
    _, index = vectors.export(tmp_path, "raw", PATTERN)
    assert [line for line in index.read_text().splitlines() if not line.startswith("tensor ")] == described(document)


TABLE = """
#include <stdio.h>
#include "rope.h"
#include "transformer_xl.h"
int main(void) {
  for (const posref_case *c = posref_transformer_xl_cases; c->name; c++) {
    printf("%s|%s|%s|%s|%s|%s", c->name, c->op, c->gauge, c->compare, c->models, c->comment);
    for (const posref_setting *p = c->params; p->name; p++) printf("|%s=%s=%.17g", p->name, p->text, p->number);
    for (const posref_tensor *t = c->tensors; t->name; t++) {
      long long count = 1;
      for (int n = 0; n < t->rank; n++) count *= t->shape[n];
      printf("|%s:%.17g", t->name, t->f64 ? t->f64[count - 1] : (double)t->i64[count - 1]);
    }
    for (const posref_fingerprint *f = c->fingerprints; f->name; f++) printf("|%s %d", f->name, f->size);
    printf("\\n");
  }
  for (const posref_model *m = posref_rope_models; m->name; m++) printf("%s %.17g %.17g\\n", m->name, m->c_phase, m->floor);
  for (const posref_setting *s = posref_rope_conventions; s->name; s++) printf("%s %s\\n", s->name, s->text);
  printf("%s\\n", posref_rope_flags[0].text);
  return 0;
}
"""


@pytest.mark.parametrize("compiler", [("gcc", "-std=c99", "main.c"), ("g++", "-std=c++17", "main.cpp")])
def test_c_table(tmp_path, document, compiler):
    """Both headers in one program: every case with its settings, the last number of every tensor, and what all share."""
    if shutil.which(compiler[0]) is None:
        pytest.skip(f"{compiler[0]} is not installed")
    vectors.export(tmp_path, "c", PATTERN)
    vectors.export(tmp_path, "c", "rope/half/d4*")
    (tmp_path / compiler[2]).write_text(TABLE)
    flags = ["-Wall", "-Wextra", "-Wno-unused-variable", "-Wno-unused-const-variable", "-Werror", "-o", "main"]
    subprocess.run([*compiler, *flags], cwd=tmp_path, check=True, timeout=100)
    lines = subprocess.run([tmp_path / "main"], check=True, capture_output=True, text=True, timeout=20).stdout.splitlines()
    rows = []
    for record in document["cases"]:
        row = [record["id"], record["op"], record["gauge"], "equal" if record["cond"] is None else "tolerance"]
        row += [" ".join(record["models"]), record["comment"]]
        for name, value in record["params"].items():
            number = float(value) if not isinstance(value, str) else 0.0
            row.append(f"{name}={str(value).lower() if isinstance(value, bool) else value}={number:.17g}")
        row += [f"{name}:{tensor['data'][-1]:.17g}" for name, tensor in tensors(record)]
        row += [f"{flag} {len(record['fingerprints'].get(flag, ()))}" for flag in record["flags"]]
        rows.append("|".join(row))
    assert lines[: len(rows)] == rows
    rope = vectors.read(vectors.DIRECTORY / "rope.json")
    shared = [f"{name} {m['c_phase']:.17g} {m['floor']:.17g}" for name, m in rope["models"].items()]
    shared += [f"{name} {text}" for name, text in rope["conventions"].items()]
    assert lines[len(rows) : len(rows) + len(shared)] == shared


def test_the_table_of_words():
    """The README of the files names every field of a case."""
    record = vectors.read(vectors.DIRECTORY / "rope.json")["cases"][0]
    assert [field for field in record if f"`{field}`" not in README] == []


def test_the_readme_names_the_first_word_of_every_line_of_the_text_in_order():
    """`WORD NAME REST`; what stands before the first case also in the order of the file."""
    lines = to_text(vectors.read(vectors.DIRECTORY / "rope.json")).splitlines()
    words = list(dict.fromkeys(line.split(" ")[0] for line in lines))
    told = re.findall(r"`([#a-z\d]+)[ `]", README.partition("The text begins with")[2])
    assert [word for word in words if word not in told] == []
    head = words[: words.index("case") + 1]
    assert told[: len(head)] == head
