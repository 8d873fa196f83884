"""The generator: the same bytes every time, and nothing that could be wrong gets written."""

import contextlib
import json
import shutil
import subprocess
import tarfile
import textwrap
import zlib
from fractions import Fraction
from types import ModuleType, SimpleNamespace
from unittest import mock

import jsonschema
import mpmath
import numpy as np
import pytest
import sympy

from posref import ops, vectors
from proofs import vectors as generator
from proofs.vectors import ZERO_FREE, __main__, _archive, _documents, case, narrow, painted, rounded, tensor, terms
from tests import golden

SCHEMA = json.loads((vectors.DIRECTORY / "schema.json").read_text())


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """A copy of all files, and generators that run in this process."""
    monkeypatch.setattr(__main__, "ProcessPoolExecutor", lambda **_: contextlib.nullcontext(SimpleNamespace(map=map)))
    for path in (*vectors.data_files(vectors.DIRECTORY), vectors.DIRECTORY / "MANIFEST.sha256"):
        (tmp_path / path.relative_to(vectors.DIRECTORY)).parent.mkdir(exist_ok=True)
        shutil.copy(path, tmp_path / path.relative_to(vectors.DIRECTORY))
    return tmp_path


@pytest.fixture
def precise():
    with mpmath.workprec(200):
        yield


def op_with(mistakes, spec=lambda offsets, *, heads: offsets / 3):
    """An op `bias` of a system that is not there, with these variations as its mistakes."""
    named = {name: ops.Mistake(wrong, name, name) for name, wrong in mistakes.items()}
    op = ops.Op("linear.bias", spec, ("offsets",), dict, named)
    return mock.patch.object(ops, "system", return_value={"bias": op})


def bias(**changes):
    """A small case, right unless changed; `mistakes` are what they give."""
    given = changes.pop("mistakes", {"sign": [0.7, 0.3, 0.0]})
    arguments = {
        "op": "bias",
        "params": {"heads": 1},
        "tensors": {"offsets": [-2, -1, 0]},
        "expected": [mpmath.mpf(-2) / 3, mpmath.mpf(-1) / 3, mpmath.mpf(0)],
        "cond": {"amp": terms(1, [mpmath.mpf(2) / 3, mpmath.mpf(1) / 3, 0])},
        "kills": " ".join(given),
    }
    with op_with({name: lambda f, a, wrong=wrong: np.array(wrong) for name, wrong in given.items()}):
        return case(changes.pop("id", "linear/h1/bias"), **arguments | changes)


def test_the_schema_is_one_of_json_schema():
    """`verify` applies it to every file by code of its own."""
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    for name in vectors.names()[::12]:
        jsonschema.validate(vectors.read(vectors.DIRECTORY / f"{name}.json"), SCHEMA)
    document = vectors.read(vectors.DIRECTORY / "merge.json")
    document["cases"][0]["unknown"] = 1
    with pytest.raises(jsonschema.ValidationError, match="Additional properties are not allowed"):
        jsonschema.validate(document, SCHEMA)


def test_size():
    """What ships is small: at most 3 MB in a wheel, which is a zip, and 5.3 MB where it is installed."""
    files = [path.read_bytes() for path in vectors.data_files(vectors.DIRECTORY)]
    assert sum(len(zlib.compress(data)) for data in files) <= 3_000_000
    assert sum(map(len, files)) <= 5_300_000


def test_no_value_is_what_200_bits_leave_of_0():
    """2^-200 is 6e-61: the sine of 2 pi is 0, and no golden value is that small."""
    found = [case.id for case in golden.cases() if ((case.expected != 0) & (np.abs(case.expected) < 1e-50)).any()]
    assert found == []


def test_text_holds_what_json_holds(tmp_path):
    vectors.export(tmp_path, "txt")
    for name in vectors.names()[::5]:
        document = vectors.read(vectors.DIRECTORY / f"{name}.json")
        found, here = {}, None
        for line in (tmp_path / f"{name}.txt").read_text().splitlines():
            word, *rest = line.split(" ")
            if word == "case":
                here = found[rest[0]] = {}
            elif word == "tensor":
                rank = int(rest[1])
                here[rest[0]] = [int(n) for n in rest[2 : 2 + rank]], [float(x) for x in rest[2 + rank :]]
        for record in document["cases"]:
            tensors = dict(vectors.formats.tensors(record))
            assert found[record["id"]] == {name: (t["shape"], [float(x) for x in t["data"]]) for name, t in tensors.items()}


def test_check_says_what_differs(copy, capsys):
    path = copy / "sinusoidal.json"
    path.write_text(path.read_text().replace("0.8414709848078965", "0.8414709848078966", 1))
    assert __main__.main(["--check", "sinusoidal"], copy) == 1
    output = capsys.readouterr().out
    assert "sinusoidal.json differs, line" in output
    assert "8966" in output
    assert "MANIFEST.sha256 does not list the files as they are" in output


def test_check_finds_missing_truncated_and_foreign_files(copy):
    files = [path for pattern in ("*.json", "released/*", "kernels/*") for path in copy.glob(pattern) if path.stem != "schema"]
    rendered = {path.relative_to(copy).as_posix(): path.read_text() for path in files}
    assert list(__main__.differences(rendered, copy, complete=True)) == []
    (copy / "learned.json").unlink()
    text = (copy / "rope.json").read_text()
    (copy / "rope.json").write_text(text[:-100])
    (copy / "stale.json").write_text("{}")
    found = "\n".join(__main__.differences(rendered, copy, complete=True))
    assert "learned.json is missing" in found
    assert f"rope.json differs, line {text.count(chr(10)) - text[-100:].count(chr(10)) + 1}" in found
    assert "stale.json is there and no generator writes it" in found


def test_writing_changes_only_what_is_named(copy, capsys):
    other = (copy / "rope.json").read_text().replace("0.8414709848078965", "0.8414709848078966", 1)
    (copy / "sinusoidal.json").write_text("{}")
    (copy / "rope.json").write_text(other)
    assert __main__.main(["sinusoidal"], copy) == 0
    assert (copy / "sinusoidal.json").read_bytes() == (vectors.DIRECTORY / "sinusoidal.json").read_bytes()
    assert (copy / "rope.json").read_text() == other
    assert not list(copy.glob(".posref*"))
    assert f"sinusoidal: {len(vectors.load('sinusoidal').cases)} cases" in capsys.readouterr().out


def test_ids_are_for_ever(copy, capsys):
    """A case that is gone, or that asks something else than the catalogue knows, is refused, and nothing is written."""
    path = copy / "catalogue.tsv"
    known = path.read_text()
    changed = known.replace(vectors.read(vectors.DIRECTORY / "merge.json")["cases"][0]["sha256"], "0" * 64)
    path.write_text(changed + "merge/gone\tmerge.json\tadd\tactive\tf64\t0\n")
    assert __main__.main(["merge"], copy) == 2
    assert "is not what it was; keep it" in (refusal := capsys.readouterr().err)
    assert "merge/gone is gone; keep it" in refusal


@pytest.mark.slow
def test_archive(tmp_path, monkeypatch):
    """Every format of every system, what reads them, checksums that fit, and the same bytes again."""
    monkeypatch.setattr(vectors, "names", lambda: ["merge", "xpos"])
    monkeypatch.setattr(_archive._recipes, "whole", lambda record: record)  # tests/vectors/test_recipes.py writes one out
    path = _archive.write(tmp_path / "new", "9.9.9")
    assert path.read_bytes() == _archive.write(tmp_path / "again", "9.9.9").read_bytes()
    subprocess.run(["sha256sum", "--check", "--quiet", f"{path.name}.sha256"], cwd=path.parent, check=True)
    with tarfile.open(path) as archive:
        archive.extractall(tmp_path, filter="data")
    root = tmp_path / "posref-vectors-9.9.9"
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=root, check=True)
    found = {file.relative_to(root).as_posix() for file in root.rglob("*") if file.is_file()}
    assert {"catalogue.tsv", "schema.json", "README.md", "LICENSE", "languages/vectors.go", "raw/xpos.index"} <= found
    for format, suffix in (("json", "json"), ("txt", "txt"), ("npz", "npz"), ("safetensors", "safetensors"), ("c", "h")):
        assert {f"{format}/merge.{suffix}", f"{format}/xpos.{suffix}"} <= found
        assert {f"{format}/released/llama-3.1-8b.{suffix}", f"{format}/kernels/attend.{suffix}"} <= found
    assert {"npz/kernels/attend-whole.npz", "raw/kernels/attend-whole.bin"} <= found
    headers = [path.read_text() for path in (root / "c").rglob("*.h")]
    guards = [text.split("#ifndef ")[2].split()[0] for text in headers]
    assert len(set(guards)) == len(guards)


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    path.write_text("old")
    monkeypatch.setattr(__main__.os, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        __main__.write(path, "new")
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("a.json", "old")]


def test_unknown_system(capsys):
    assert __main__.main(["ropes"]) == 2
    assert "no generator is called ropes; there are" in capsys.readouterr().err


def test_the_small_case_is_right(precise):
    assert bias()["flags"] == ["sign"]


def test_an_undetectable_mistake_is_refused(precise):
    close = [mpmath.mpf(-2) / 3 + 2.0**-9, mpmath.mpf(-1) / 3 + 2.0**-9, 0]
    with pytest.raises(ValueError, match=r"linear/h1/bias: mistake sign is 1\.\d* tolerances of model bf16-f32math away"):
        bias(mistakes={"sign": close}, models=("f32", "bf16-f32math"))
    assert bias(mistakes={"sign": close}, models=("f32",))["models"] == ["f32"]


def test_a_mistake_equal_to_the_right_answer_is_refused(precise):
    for cond in (None, {"amp": [1.0, 2.0, 3.0]}):
        with pytest.raises(ValueError, match="mistake sign is 0 tolerances of model f64 away, not distinguished"):
            bias(mistakes={"sign": bias()["expected"]["data"]}, cond=cond)


def test_a_mistake_that_softmax_hides_is_refused(precise):
    shifted = {"shifted": [mpmath.mpf(n) / 3 + 5 for n in (-2, -1, 0)]}
    assert bias(mistakes=shifted)["gauge"] == "none"
    with pytest.raises(ValueError, match=r"mistake shifted is .* not distinguished"):
        bias(mistakes=shifted, gauge="row_constant")


def test_exact_cases_tell_any_difference(precise):
    record = bias(expected=[3, 1, 2], cond=None, mistakes={"sign": [3, 2, 1]})
    assert record["expected"]["data"] == [3, 1, 2]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"expected": [0.1, 0.2, 0.3]}, r"expected holds 0\.1, the result of float arithmetic"),
        ({"expected": [mpmath.inf, 0, 0]}, "inf has no place in a vector file"),
        ({"expected": [mpmath.nan, 0, 0]}, "nan has no place in a vector file"),
        ({"tensors": {"x": [0.1]}}, "input x is not exact in bf16"),
        ({"tensors": {"x": [257.5]}}, "input x is not exact in bf16"),
        ({"cond": {"amp": [1.0]}}, r"cond amp has shape \(1,\), expected has \(3,\)"),
        ({"cond": {"size": [1.0, 1.0, 1.0]}}, "cond has 'size', expected amp, phase or out"),
        ({"gauge": "column"}, "gauge is 'column', expected one of"),
        ({"id": "Linear/H1"}, "ids are lower case"),
    ],
)
def test_refused(precise, changes, message):
    with pytest.raises(ValueError, match=message):
        bias(**changes)


def test_low_precision_is_refused():
    refusal = r"mpmath works with 53 bits; run python -m proofs\.vectors, which sets 200"
    with mpmath.workprec(53), pytest.raises(ValueError, match=refusal):
        bias()


FLAGS = {"sign": {"bug": "bug", "effect": "effect", "seen_in": ["owner/project#1"]}}


def module(*records):
    return SimpleNamespace(
        __doc__="Linear: a bias.", SOURCES=("paper",), CONVENTIONS={"op bias": "b"}, vectors=lambda: iter(records)
    )


def test_document(precise):
    document = _documents.document("linear", module(bias()), FLAGS | {"unused": FLAGS["sign"]})
    jsonschema.validate(document, SCHEMA)
    assert [document["title"], len(document["cases"]), document["flags"]] == ["Linear: a bias.", 1, FLAGS]


@pytest.mark.parametrize(
    ("ids", "flags", "message"),
    [
        (("linear/a", "linear/a"), FLAGS, "linear: ids occur twice: linear/a"),
        (("cubic/a",), FLAGS, "linear: ids must begin with linear/: cubic/a"),
        (("linear/a",), {}, r"linear: flags that posref/ops/linear\.py does not have: sign"),
    ],
)
def test_document_refused(precise, ids, flags, message):
    with pytest.raises(ValueError, match=message):
        _documents.document("linear", module(*(bias(id=id) for id in ids)), flags)


def test_the_example_of_the_docstring_works():
    lines = generator.__doc__.splitlines()
    example = textwrap.dedent("\n".join(line for line in lines if line.startswith("    ")))
    made = ModuleType("linear_bias")
    vars(made).update({name: getattr(generator, name) for name in generator.__all__}, mpmath=mpmath, sympy=sympy)
    exec(compile(example, "example", "exec"), vars(made))
    with op_with({"sign": ops.result(lambda y: -y)}, lambda offsets, *, heads: offsets / 2.0 ** np.array([[1], [2], [4]])):
        document = _documents.document("linear_bias", made, FLAGS)
    jsonschema.validate(document, SCHEMA)
    assert document["title"] == "Linear bias: a number per offset."
    assert document["cases"][0]["expected"]["data"][:2] == [-2.0, -1.5]


@pytest.mark.parametrize("tag", ZERO_FREE)
def test_painted(tag):
    """Zero-free over the whole period, and exact in bfloat16: at most 8 bits."""
    numbers = painted((251,), tag)
    assert (numbers != 0).all()
    assert (np.abs(numbers) < 2).all()
    assert all(float(narrow(x, 8)) == x for x in numbers)
    assert len(set(painted((502,), tag)[:251])) > 100
    n = 17
    assert numbers[n] == ((7 * n * n + 31 * n + 17 * tag) % 251 - 125) / 64


def test_painted_refuses_zeros():
    with pytest.raises(ValueError, match="tag is 3, which paints zeros"):
        painted((4,), 3)


def test_rounding_is_to_nearest(precise):
    """Against exact fractions, halfway cases to even among them."""
    ulp = Fraction(1, 2**52)
    for exact in (1 + ulp / 2, 1 + 3 * ulp / 2, 1 + ulp / 2 + ulp / 2**40, -(1 + ulp / 2) / 3, Fraction(1, 10)):
        value = mpmath.mpf(exact.numerator) / exact.denominator
        man, exponent = int(value.man) * (-1 if value < 0 else 1), int(value.exp)
        assert rounded(value) == man / 2**-exponent  # division of integers is rounded correctly
    assert tensor([mpmath.mpf(1), 2]) == {"shape": [2], "data": [1.0, 2.0]}
    assert [type(x) for x in tensor([1, np.int64(2)])["data"]] == [int, int]


def test_sensitivities_are_rounded_up(precise):
    stored = bias(cond={"amp": [mpmath.mpf("1.2301"), mpmath.mpf("0.00045600001"), mpmath.mpf(7)]}, mistakes={})["cond"]
    assert stored == {"amp": [1.24, 0.000457, 7.0]}


def alibi_case(kills):
    return case(
        "alibi/signed/h1/tiny",
        op="bias",
        params={"heads": 1, "max_bias": 8, "form": "signed"},
        tensors={"queries": [2], "keys": [0, 1, 2]},
        expected=[[[mpmath.mpf(-2) / 256, mpmath.mpf(-1) / 256, mpmath.mpf(0)]]],
        cond={"amp": terms(1, [[[0.01, 0.01, 0]]])},
        kills=kills,
    )


def test_a_mistake_that_leaves_the_numbers_is_told_apart(precise):
    with mock.patch.dict(ops.op("alibi.bias").mistakes, beyond=ops.Mistake(ops.result(lambda y: np.exp(y + 800)), "", "")):
        record = alibi_case("beyond")
    assert (record["flags"], record["fingerprints"]) == (["beyond"], {})


def test_sums_of_roundings_are_no_fingerprint(precise):
    """Two entries off by amounts that cancel in the first sum but for roundings."""
    first, second, _ = painted((3,), 1)
    wrong = np.array(bias()["expected"]["data"]) + np.array([1 / first, -1 / second, 0])
    assert bias(mistakes={"sign": wrong})["fingerprints"]["sign"][0] == 0


def test_mistakes_come_from_the_ops(precise):
    assert alibi_case("sign queries_left_aligned")["flags"] == ["queries_left_aligned", "sign"]
    with pytest.raises(ValueError, match=r"mistake sorted_slopes is 0 tolerances of model f64 away, not distinguished"):
        alibi_case("sorted_slopes")
    with pytest.raises(ValueError, match=r"posref/ops has no scale_squared for alibi\.bias"):
        alibi_case("scale_squared")
    with pytest.raises(ValueError, match="mistake signed has no place here"):
        alibi_case("signed")
