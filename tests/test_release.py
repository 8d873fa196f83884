"""The record of the release stages: it belongs to the current files, and a stage that cannot run fails."""

import inspect
import json
import re
import runpy
import tarfile

import pytest
import setuptools

import posref
from posref.absolute import index
from tests.own import OPS
from tests.programs import packages, sabotage
from tests.release import __main__ as tier
from tests.release import stages

RECORD = json.loads(tier.RECORD.read_text())


@pytest.mark.parametrize("name", stages.STAGES)
def test_record_is_up_to_date(name):
    """A record that failed fails here; a stage to run before the release is skipped here, with its name."""
    assert RECORD.get(name, {"passed": True})["passed"], RECORD[name]["result"]
    if name not in RECORD or RECORD[name]["about"] != stages.fingerprint(name):
        pytest.skip(f"no record is about the files that are here: run python -m tests.release {name}")


def test_what_is_missing_for_a_release_is_listed(monkeypatch, tmp_path, capsys):
    good = {"passed": True, "date": "2026-01-02", "result": "all"}
    records = {name: good | {"about": stages.fingerprint(name)} for name in stages.STAGES}
    monkeypatch.setattr(tier, "RECORD", tmp_path / "release.json")
    monkeypatch.setattr(tier, "PUBLISHED", ())
    tier.RECORD.write_text(json.dumps(records))
    assert tier.main(["--check"]) == 0
    del records["exp"]
    records["wall"]["passed"], records["own"]["about"] = False, "another"
    tier.RECORD.write_text(json.dumps(records))
    monkeypatch.setattr(tier, "PUBLISHED", ["setup.cfg"])
    monkeypatch.setattr(tier, "PLACEHOLDER", "name = posref")
    capsys.readouterr()
    assert tier.main(["--check"]) == 1
    printed = capsys.readouterr().out
    assert re.findall("^[^:]+: [a-z]+ [a-z]+", printed, re.MULTILINE) == [
        "wall: failed on",
        "exp: has no",
        "own: its files",
        "setup.cfg: has the",
    ]


def test_a_stage_that_runs_posref_whole_is_about_all_of_it():
    builds = re.compile(r"packages\.(build|release)|_specification_on\(")
    whole = [name for name, stage in stages.STAGES.items() if builds.search(inspect.getsource(stage.run))]
    assert len(whole) >= 4
    assert [name for name in whole if "posref" not in stages.STAGES[name].about] == []


def test_the_citation_and_the_packages_name_one_address_and_one_date():
    """The publisher writes the address into both files (docs/promises.md)."""
    cited, packed, changes = ((stages.ROOT / name).read_text() for name in ("CITATION.cff", "setup.cfg", "CHANGELOG.md"))
    assert re.findall(r"^url: (\S+)$", cited, re.MULTILINE) == re.findall(r"^url = (\S+)$", packed, re.MULTILINE)
    assert re.findall(r"^version: (\S+)\ndate-released: (\S+)$", cited, re.MULTILINE) == [
        re.search(r"^## (\S+), (\S+)$", changes, re.MULTILINE).groups()
    ]


def test_the_workflow_publishes_after_what_the_page_says():
    workflow, page = ((stages.ROOT / name).read_text() for name in (".github/workflows/release.yml", "docs/promises.md"))
    runs = re.findall(r"run: (python -m (?:tests|proofs)\S*(?: --\w+)?)", workflow)
    assert len(runs) == 3
    assert [command for command in runs if f"`{command}`" not in page.partition("\n7. Push")[2]] == []
    assert "  publish:\n    needs: [tests, build]\n" in workflow
    assert "  tests:\n    uses: ./.github/workflows/tests.yml\n  build:\n" in workflow
    assert "  workflow_call:\n" in (stages.ROOT / ".github" / "workflows" / "tests.yml").read_text()


def test_links_of_the_text_for_a_package_index_are_absolute_and_lead_to_files(monkeypatch):
    given = {}
    monkeypatch.setattr(setuptools, "setup", given.update)
    monkeypatch.chdir(stages.ROOT)
    runpy.run_path("setup.py")
    links = re.findall(r"\]\(([^)]*)\)", given["long_description"])
    assert len(links) >= 24
    kept = [re.fullmatch(rf"(.+)/(?:blob|raw)/v{re.escape(posref.__version__)}/([^#]+)(?:#.*)?", link) for link in links]
    assert [link for link, found in zip(links, kept, strict=True) if not found or not (stages.ROOT / found[2]).is_file()] == []
    assert [f"url = {url}\n" in (stages.ROOT / "setup.cfg").read_text() for url in {found[1] for found in kept}] == [True]


def test_what_a_stage_names_is_there():
    named = {pattern for stage in stages.STAGES.values() for pattern in stage.about}
    named |= {f"tests/{each}" for each in stages.TESTS_OF_SPECIFICATION}
    assert [pattern for pattern in named if not [*stages.ROOT.glob(pattern)]] == []


def test_the_archive_of_the_sources_does_not_say_which_python_packed_it(tmp_path):
    (tmp_path / "a.txt").write_text("a")
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "a.txt", "a.txt")
    assert packages.without_dates(tmp_path / "a.tar.gz")[:10] == bytes.fromhex("1f8b08000000000002ff")


def test_a_stage_that_lacks_something_fails(monkeypatch, tmp_path):
    monkeypatch.setattr(tier, "RECORD", tmp_path / "release.json")
    monkeypatch.setattr(stages.shutil, "which", lambda tool: None)
    assert tier.main(["languages"]) == 1
    written = json.loads((tmp_path / "release.json").read_text())
    assert written["languages"]["passed"] is False
    assert written["languages"]["result"] == "RuntimeError: g++ is not installed: cpp was not tested"
    assert tier.main(["nothing"]) == 2


def test_a_changed_file_is_noticed_and_changed_words_are_not(monkeypatch, tmp_path):
    monkeypatch.setattr(stages, "ROOT", tmp_path)
    (tmp_path / "posref" / "fast").mkdir(parents=True)

    def fingerprint(text):
        (tmp_path / "posref" / "fast" / "attention.py").write_text(text)
        return stages.fingerprint("exp")

    before = fingerprint('"""A."""\n\n\ndef f():\n    """A\n    B."""\n    return "a"  # b\n')
    assert fingerprint('"""B\n\nC."""\n\n# c\ndef f():\n    """C."""\n\n    return "a"  # b\n') == before
    assert fingerprint('"""A."""\n\n\ndef f():\n    """A\n    B."""\n    return "b"  # b\n') != before
    assert fingerprint('"""A."""\n\n\ndef f():\n    "a"\n    """A."""\n    return "a"  # b\n') != before


def test_a_stage_of_hours_goes_on_where_it_was_stopped_but_for_what_failed(monkeypatch, tmp_path):
    asked = []

    def of_each_op(failures, without):
        for op in [op for op in OPS[:4] if op.name not in without]:
            asked.append(op.name)
            yield op, failures(op.name)

    monkeypatch.setattr(stages, "ROOT", tmp_path)
    monkeypatch.setattr(stages, "_of_each_op", of_each_op)
    with pytest.raises(AssertionError, match=r"^1 checks fail, the first: wrong$"):
        stages._of_all_ops("own", lambda name: (3, ["wrong"] * (name == OPS[1].name)))
    with pytest.raises(ZeroDivisionError):
        stages._of_all_ops("own", lambda name: 1 // 0)
    asked.clear()
    assert stages._of_all_ops("own", lambda name: (3, [])) == "4 ops, 12 checks"
    assert asked == [OPS[1].name]


def test_the_address_that_a_publisher_writes_makes_no_record_old(monkeypatch, tmp_path):
    monkeypatch.setattr(stages, "ROOT", tmp_path)
    setup = (tier.ROOT / "setup.cfg").read_text()
    before, with_address, with_more = (
        (tmp_path / "setup.cfg").write_text(text) and stages.fingerprint("oldest")
        for text in (setup, setup.replace(tier.PLACEHOLDER, "https://forge.test/own/"), setup + "zip_safe = False\n")
    )
    assert before == with_address != with_more


def test_the_house_rules_notice_sabotage():
    """The stage as a whole takes an hour; this is its first judge, on one function."""
    assert {next(sabotage.noticed(edit, index.encode, "absolute.index", [], [])) for edit in sabotage.edits(index.encode)} == {
        "rules"
    }
