"""The loader: what is stored comes back, and damage is found and named."""

import hashlib
import json
import os
import re
import shutil
import stat
from pathlib import Path

import numpy as np
import pytest

from posref import vectors
from posref.vectors.formats import canonical, tensors, to_json


@pytest.fixture
def copy(tmp_path):
    """Twenty cases of RoPE alone, with a catalogue and a manifest of their own."""
    target = tmp_path / "vectors"
    target.mkdir()
    document = vectors.read(vectors.DIRECTORY / "rope.json")
    (target / "rope.json").write_text(to_json(document | {"cases": document["cases"][:20]}))
    shutil.copy(vectors.DIRECTORY / "schema.json", target)
    (target / vectors.CATALOGUE).write_text(vectors.catalogue({"rope.json": vectors.read(target / "rope.json")}))
    (target / "MANIFEST.sha256").touch()
    for name in ("rope.json", "schema.json", vectors.CATALOGUE):
        sign(target, name)
    return target


def sign(directory, name):
    """Make the manifest fit a changed file again."""
    manifest = directory / "MANIFEST.sha256"
    lines = [line for line in manifest.read_text().splitlines() if not line.endswith(f"  {name}")]
    digest = hashlib.sha256((directory / name).read_bytes()).hexdigest()
    manifest.write_text("\n".join([*lines, f"{digest}  {name}"]) + "\n")


def change(directory, edit, name="rope.json"):
    document = json.loads((directory / name).read_text())
    edit(document)
    (directory / name).write_text(to_json(document))
    sign(directory, name)


def test_round_trip():
    """JSON to arrays: every float has the bits of its decimal, integers are integers, shapes fit."""
    for name in vectors.names():
        document, system = vectors.read(vectors.DIRECTORY / f"{name}.json"), vectors.load(name)
        assert [case.id for case in system.cases] == [record["id"] for record in document["cases"]]
        for case, record in zip(system.cases, document["cases"], strict=True):
            assert list(case.expected.shape) == record["expected"]["shape"]
            assert case.expected.ravel().tolist() == record["expected"]["data"]
            for key, tensor in record["tensors"].items():
                whole = all(isinstance(x, int) for x in tensor["data"])
                assert case.tensors[key].dtype == (np.int64 if whole else np.float64)
                assert case.tensors[key].tolist() == np.reshape(np.array(tensor["data"]), tensor["shape"]).tolist()
            assert (case.cond is None) == (record["cond"] is None)


def test_cases_by_pattern():
    assert {case.id.split("/")[1] for case in vectors.cases("rope/half/*")} == {"half"}
    every = [case for name in vectors.names() for case in vectors.load(name).cases]
    by_status = [case.id for status in ("active", "withdrawn", "reject") for case in vectors.cases(status=status)]
    assert sorted(by_status) == sorted(case.id for case in every)
    assert vectors.cases("nothing*") == []


def test_ids_of_every_file_by_pattern():
    """A star crosses slashes; released models and kernels are found by their files, by whole ids, and not by a lone star."""
    catalogue = [line.split("\t") for line in (vectors.DIRECTORY / vectors.CATALOGUE).read_text().splitlines()[1:]]
    active = {row[0]: row[1] for row in catalogue if row[3] == "active"}
    assert [*vectors.ids()] == [id for id, file in active.items() if "/" not in file]
    for file in sorted({file for file in active.values() if "/" in file})[::12]:
        there = {id for id in active if active[id] == file}
        assert there == {*vectors.ids(file.removesuffix(".json"))} <= {*vectors.ids(f"*{Path(file).stem}")}
        assert all([*vectors.ids(id)] == [id] for id in there)
    for folder in ("released", "kernels"):
        assert {*vectors.ids(f"{folder}/*")} == {id for id, file in active.items() if file.startswith(f"{folder}/")} != set()
    across = {case.id for name in vectors.names() for case in vectors.load(name).cases if case.status == "active"}
    assert {case.id for case in vectors.cases("*/tiny")} == {id for id in across if id.endswith("/tiny")} != set()


def test_a_withdrawn_case_says_why():
    (case,) = vectors.cases("swin/v2/*", status="withdrawn")
    with pytest.raises(
        ValueError, match=r"'swin/v2/.* is withdrawn: seven values .* take swin/v2/w2x3-trained4x5/continuous-bias-2"
    ):
        vectors.case(case.id)
    better = vectors.case(f"{case.id}-2").expected
    off = np.abs(case.expected - better) / np.spacing(better)
    assert np.flatnonzero(off).tolist() == [4, 9, 11, 16, 18, 25, 32]
    assert off.max() == 1


def test_tensors_of_torch_are_compared_as_they_are():
    torch = pytest.importorskip("torch", reason="tensors of torch need torch")
    case = vectors.case("rope/half/d4-b1e4/one")
    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
        given = torch.tensor(case.expected, dtype=dtype, requires_grad=True)
        assert vectors.error(case, given, "f64") == vectors.error(case, given.detach().double().numpy(), "f64")


def test_withdrawn_cases_are_not_listed(copy, monkeypatch):
    monkeypatch.setattr(vectors, "DIRECTORY", copy)
    change(copy, lambda document: document["cases"][0].update(status="withdrawn"))
    assert len(vectors.cases("rope/*")) == len(vectors.load("rope").cases) - 1 == 19


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: vectors.load("ropes"), "there are no vectors of 'ropes'; there are .*rope"),
        (lambda: vectors.case("rope/half/d8-b1e4/tony"), r"did you mean 'rope/half/d8-b1e4/tiny'\?"),
        (lambda: vectors.case("rope/none"), r"there is no case 'rope/none'; vectors.cases\('rope/\*'\) lists them"),
    ],
)
def test_unknown(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("keep", [0, 100, -3])
def test_truncated_file(copy, monkeypatch, keep):
    path = copy / "rope.json"
    path.write_text(path.read_text()[:keep])
    monkeypatch.setattr(vectors, "DIRECTORY", copy)
    with pytest.raises(ValueError, match=r"rope.json is not a complete vector file .*; restore it from the release"):
        vectors.load("rope")
    problems = "\n".join(vectors.verify(copy))
    assert "rope.json does not have the sha256 that MANIFEST.sha256 lists" in problems
    assert "is not a complete vector file" in problems


@pytest.mark.parametrize(
    "text", ["[]", pytest.param("[" * 200000, id="deep"), '{"schema": "other"}', '{"schema": "posref-vectors-3", "x": NaN}']
)
def test_not_a_vector_file(tmp_path, text):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(ValueError, match=r"a.json (does not say schema 'posref-vectors-3'|is not a complete vector file)"):
        vectors.read(tmp_path / "a.json")


def test_one_changed_digit(copy):
    path = copy / "rope.json"
    path.write_text(path.read_text().replace("0.8414709848078965", "0.8414709848078966", 1))
    assert vectors.verify(copy)[0] == "rope.json does not have the sha256 that MANIFEST.sha256 lists"
    sign(copy, "rope.json")
    (problem,) = vectors.verify(copy)
    assert problem.startswith("rope.json: rope/")
    assert problem.endswith("does not have its sha256")


def edited(key, value):
    def edit(document):
        record = document["cases"][0]
        record[key] = value(record.get(key))
        record["sha256"] = hashlib.sha256(canonical(record).encode()).hexdigest()

    return edit


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda document: document["cases"].append(document["cases"][0]), "rope/any/d4-b1e4/inv_freq occurs twice"),
        (lambda document: document["models"].pop("f64"), "the models differ from posref.vectors.MODELS"),
        (lambda document: document.pop("cases"), r"rope.json: \$ has no cases"),
        (edited("gauge", lambda g: "banana"), r"\$.cases\[0\].gauge is 'banana', expected one of"),
        (edited("params", lambda p: p | {"deep": {"er": 1}}), r"\$.cases\[0\].params.deep is no number or string or boolean"),
        (edited("extra", lambda _: 1), r"\$.cases\[0\] has 'extra', which is no field"),
        (edited("ignore", lambda _: [1]), "ignore has 1 numbers, expected has 2"),
        (edited("fingerprints", lambda _: {"typo": [1, 2, 3, 4]}), r"has fingerprints without a flag: \['typo'\]"),
        (edited("expected", lambda t: {"shape": [3], "data": t["data"]}), r"expected has shape \[3\] and 2 numbers"),
        (edited("cond", lambda c: {"amp": [1.0]}), "cond amp has 1 numbers, expected has 2"),
        (edited("flags", lambda f: ["typo"]), r"has unknown flags \['typo'\]"),
        (edited("models", lambda f: ["f8"]), r"has unknown models \['f8'\]"),
    ],
)
def test_damage_under_a_fitting_manifest(copy, edit, message):
    change(copy, edit)
    assert re.search(message, "\n".join(vectors.verify(copy)))


def test_files_and_manifest_fit(copy):
    assert vectors.verify(copy) == []
    (copy / "rope.json").unlink()
    (copy / "more.json").write_text("{}")
    assert vectors.verify(copy) == [
        "more.json is not listed in MANIFEST.sha256",
        "rope.json is listed in MANIFEST.sha256 and missing",
    ]
    (copy / "MANIFEST.sha256").unlink()
    assert vectors.verify(copy) == [
        f"{copy / 'MANIFEST.sha256'} is missing; pass a complete copy of posref/vectors; "
        "exported files have none and cannot be verified"
    ]


PATTERN = "rope/half*/*d8*"


def expected_tensors():
    document = vectors.read(vectors.DIRECTORY / "rope.json")
    wanted = {case.id for case in vectors.cases(PATTERN)}
    assert 5 < len(wanted) < 30
    return {(r["id"], name): tensor for r in document["cases"] if r["id"] in wanted for name, tensor in tensors(r)}


def array(tensor):
    return np.array(tensor["data"]).reshape(tensor["shape"])


def test_export_npz(tmp_path):
    (path,) = vectors.export(tmp_path, "npz", PATTERN)
    with np.load(path) as file:
        wanted = expected_tensors()
        assert set(file) == {"settings", *(f"{id}:{name}" for id, name in wanted)}
        for (id, name), tensor in wanted.items():
            assert np.array_equal(file[f"{id}:{name}"], array(tensor))
            assert file[f"{id}:{name}"].dtype == array(tensor).dtype


def test_export_raw(tmp_path):
    data, index = vectors.export(tmp_path / "new" / "folder", "raw", PATTERN)
    assert (data.name, index.name) == ("rope.bin", "rope.index")
    wanted, content, used = expected_tensors(), data.read_bytes(), 0
    for line in index.read_text().splitlines():
        if line.startswith("case "):
            id = line.split()[1]
        if not line.startswith("tensor "):
            continue
        _, name, kind, offset, _, *sizes = line.split()
        numbers = np.frombuffer(
            content, {"f64": "<f8", "i64": "<i8"}[kind], np.prod(list(map(int, sizes)), dtype=int), int(offset)
        )
        used += numbers.nbytes
        assert np.array_equal(numbers.reshape(list(map(int, sizes))), array(wanted.pop((id, name))))
    assert not wanted
    assert used == len(content)


def test_export_json(tmp_path):
    (path,) = vectors.export(tmp_path, "json", PATTERN)
    assert {r["id"] for r in vectors.read(path)["cases"]} == {id for id, _ in expected_tensors()}
    written = vectors.export(tmp_path / "all", "json")
    assert len(written) == len(vectors.names())
    for path in written:
        assert path.read_bytes() == (vectors.DIRECTORY / path.name).read_bytes()


@pytest.mark.parametrize(
    ("format", "pattern", "message"),
    [
        ("yaml", "*", "format is 'yaml', expected 'json', 'txt', 'npz', 'safetensors', 'raw' or 'c'"),
        ("json", "rop/*", "no case matches 'rop/\\*'; write 'rope/\\*' for a system, the systems are .*rope"),
        ("json", "rope", "no case matches 'rope'; write 'rope/\\*' for a system"),
    ],
)
def test_export_refused(tmp_path, format, pattern, message):
    with pytest.raises(ValueError, match=message):
        vectors.export(tmp_path / "new", format, pattern)
    assert list(tmp_path.iterdir()) == []


def test_export_where_a_file_is(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"cannot write to .*file .*; choose another directory"):
        vectors.export(tmp_path / "file", "json", PATTERN)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="needs a directory that this user cannot write")
def test_export_to_a_read_only_directory(tmp_path):
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    with pytest.raises(OSError, match="cannot write to"):
        vectors.export(tmp_path, "json", PATTERN)


def test_a_failed_export_leaves_nothing(tmp_path, monkeypatch):
    (tmp_path / "rope.json").write_text("old")
    monkeypatch.setitem(vectors.FORMATS, "json", lambda document, path: (path.write_text("half"), 1 / 0))
    with pytest.raises(ZeroDivisionError):
        vectors.export(tmp_path, "json", PATTERN)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("rope.json", "old")]


@pytest.mark.parametrize("wrong", [3, None, b"rope/half/d4-b1e4/one", ["rope"]])
def test_what_is_no_string_is_refused(wrong, tmp_path):
    with pytest.raises(TypeError, match=r"vectors\.case: id is .*, expected a string"):
        vectors.case(wrong)
    with pytest.raises(TypeError, match=r"vectors\.cases: pattern is .*, expected a string"):
        vectors.cases(wrong)
    with pytest.raises(TypeError, match="expected a string"):
        vectors.export(tmp_path, "txt", wrong)
