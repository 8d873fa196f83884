"""`verify` of a damaged copy: whatever is wrong with a file is a sentence, and a loader raises ValueError at most."""

import contextlib
import copy
import hashlib
import json
import os
import shutil

import pytest

from posref import cli, vectors
from posref.vectors.formats import MEANT, canonical
from tests.vectors.test_loader import change, sign

SYSTEM = min((path for path in vectors.DIRECTORY.glob("*.json") if path.stem != "schema"), key=lambda path: path.stat().st_size)
NAMES = (SYSTEM.name, "schema.json", "README.md", "LICENSE", "languages/vectors.go", vectors.CATALOGUE)


@pytest.fixture
def small(tmp_path):
    """A copy with one small system, its catalogue, and a manifest that fits."""
    made = tmp_path / "vectors"
    (made / "languages").mkdir(parents=True)
    for name in NAMES[:-1]:
        shutil.copy(vectors.DIRECTORY / name, made / name)
    (made / vectors.CATALOGUE).write_text(vectors.catalogue({SYSTEM.name: vectors.read(SYSTEM)}))
    (made / "MANIFEST.sha256").touch()
    for name in NAMES:
        sign(made, name)
    assert vectors.verify(made) == []
    return made


def as_nothing(path):
    path.unlink()


def as_folder(path):
    path.unlink()
    path.mkdir()


def as_pipe(path):
    path.unlink()
    os.mkfifo(path)


def as_link_to_itself(path):
    path.unlink()
    path.symlink_to(path)


def as_link_to_no_end(path):
    path.unlink()
    path.symlink_to("/dev/zero")


def as_huge(path):
    with open(path, "r+b") as file:
        file.truncate(2**40)


BYTES = {
    "empty": lambda old: b"",
    "cut": lambda old: old[: len(old) // 2],
    "no utf-8": lambda old: b"\xff\xfe" + old,
    "binary": lambda old: bytes(range(256)),
    "nulls": lambda old: b"\0" * 1000,
    "one line": lambda old: old.replace(b"\n", b""),
    "one blank": lambda old: old.replace(b"  ", b" "),
    "deep": lambda old: b"[" * 100_000,
    "more": lambda old: old + b"more\n",
}
DAMAGE = [as_nothing, as_folder, as_pipe, as_link_to_itself, as_link_to_no_end, as_huge, *BYTES.values()]


@pytest.mark.parametrize("name", [*NAMES, "MANIFEST.sha256"])
def test_every_damage_of_every_file_is_a_sentence(small, name, tmp_path):
    for n, damage in enumerate(DAMAGE):
        made = shutil.copytree(small, tmp_path / str(n))
        old = (made / name).read_bytes()
        if damage in BYTES.values():
            (made / name).write_bytes(damage(old))
            if (made / name).read_bytes() == old:
                continue
        else:
            damage(made / name)
        found = vectors.verify(made)
        assert found, n
        assert any(name in sentence for sentence in found), (n, found)


def test_a_catalogue_that_nobody_lists_is_missing(small):
    manifest = small / "MANIFEST.sha256"
    manifest.write_text("".join(line for line in manifest.read_text().splitlines(True) if vectors.CATALOGUE not in line))
    (small / vectors.CATALOGUE).unlink()
    assert vectors.verify(small) == ["catalogue.tsv is missing"]


HOSTILE = (None, True, -1, 10**30, 10**4000, 1.5, "", "\x1b[31m", "x", [], [[]], [10**30], [9] * 1000, {}, {"x": [{}]})


def places(value, path=()):
    """Paths to every value of a document; of a list to the first."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, each in inner:
        yield from places(each, (*path, key))


def replaced(document, path, value):
    made = copy.deepcopy(document)
    place = made
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return made


DOCUMENT = json.loads(SYSTEM.read_text())
DOCUMENT["cases"] = DOCUMENT["cases"][:1]
REPLACED = [(path, value) for path in [*places(DOCUMENT)][1:] for value in HOSTILE]


@pytest.mark.parametrize("asked", [REPLACED[::17], pytest.param(REPLACED, marks=pytest.mark.slow)], ids=len)
def test_every_value_that_is_replaced_is_a_sentence_or_harmless(asked, small, monkeypatch):
    """The manifest and the hash of the case fit, as after a forgery; what a case asks and answers is compared with ours."""
    for name in NAMES[1:]:
        (small / name).unlink()
    (small / "MANIFEST.sha256").write_text("")
    monkeypatch.setattr(vectors, "names", lambda: [SYSTEM.stem])
    forged = 0
    for path, value in asked:
        made = replaced(DOCUMENT, path, value)
        record = made["cases"][0] if isinstance(made["cases"], list) and made["cases"] else None
        if isinstance(record, dict) and record.keys() >= {*MEANT} and path[-1] != "sha256":
            record["sha256"] = hashlib.sha256(canonical(record).encode()).hexdigest()
        (small / SYSTEM.name).write_text(json.dumps(made))
        sign(small, SYSTEM.name)
        found = [sentence for sentence in vectors.verify(small) if sentence != "catalogue.tsv is missing"]
        assert all(isinstance(sentence, str) for sentence in found)
        if path[:2] == ("cases", 0) and path[2:] and path[2] in {*MEANT} - {"id"} and made != DOCUMENT:
            assert found, (path, value)
            forged += 1
        with monkeypatch.context() as patch, contextlib.suppress(ValueError):
            patch.setattr(vectors, "DIRECTORY", small)
            vectors.load(SYSTEM.stem)
    assert forged > len(asked) / 10


def test_forged_numbers_under_a_fitting_manifest_are_found(small, capsys):
    """An id keeps its numbers, so the installed catalogue knows them; what no rule holds fast is said, not called right."""

    def forge(document):
        record = document["cases"][0]
        record["expected"]["data"][0] += 1
        record["sha256"] = hashlib.sha256(canonical(record).encode()).hexdigest()

    def again():
        (small / vectors.CATALOGUE).write_text(vectors.catalogue({SYSTEM.name: vectors.read(small / SYSTEM.name)}))
        sign(small, vectors.CATALOGUE)
        return cli.main(["vectors", "verify", str(small)]), capsys.readouterr().out

    code, said = again()
    assert (code, "catalogue.tsv" in said, SYSTEM.name in said) == (0, True, False)  # one system has a catalogue of its own
    change(small, lambda document: document.update(title="Forged"), SYSTEM.name)
    code, said = again()
    assert (code, "catalogue.tsv" in said, SYSTEM.name in said, "published" in said) == (0, True, True, False)
    change(small, forge, SYSTEM.name)
    code, said = again()
    assert (code, "has other numbers than the installed posref has under this id" in said) == (1, True)


def test_a_file_of_more_than_16_mb_is_not_read(small):
    """As SECURITY.md says; JSON may end with any number of blanks."""
    path, most = small / SYSTEM.name, 16 * 2**20
    text = path.read_text()
    path.write_text(text + " " * (most - len(text)))
    assert vectors.read(path)["cases"]
    path.write_text(text + " " * (most + 1 - len(text)))
    with pytest.raises(ValueError, match=f"longer than {most} bytes"):
        vectors.read(path)
    assert [said for said in vectors.verify(small) if f"longer than {most} bytes" in said]


def test_text_of_a_manifest_reaches_no_terminal_as_it_is(small, capsys):
    with open(small / "MANIFEST.sha256", "a") as manifest:
        manifest.write(f"{'0' * 64}  \x1b[31mred\x07\n")
    for form in ([], ["--json"]):
        assert cli.main(["vectors", "verify", str(small), *form]) == 1
        out = capsys.readouterr().out
        assert "[31mred" in out
        assert not {"\x1b", "\x07"} & {*out}
