"""The table of docs/systems.md of what each encoding gives, against the theorems that decide it; this file writes it.

A row stands in `ANSWERS` of a proof file, beside four theorems with the names of the columns: a system may hold both.
"""

import importlib
import re
from pathlib import Path

import pytest

from posref import discovery

pytest.importorskip("sympy", reason="the theorems need posref[proofs]")
from proofs.kit.runner import names
from proofs.kit.theorem import theorems

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "systems.md"
FILES = [name for name in names() if "\nANSWERS = " in (ROOT / "proofs" / f"{name.replace('.', '/')}.py").read_text("utf-8")]
PROOFS = [importlib.import_module(f"proofs.{name}") for name in FILES]
ORDER = [system.name for system in discovery.systems()]
ANSWERS = {row: answers for proof in PROOFS for row, answers in proof.ANSWERS.items()}
ANSWERS = dict(sorted(ANSWERS.items(), key=lambda item: ORDER.index(item[1][0])))
COLUMNS = ("length_independent", "content_independent", "unique", "small")


def rows(text):
    """The cells of every line of the table in its section."""
    (section,) = re.findall(r"^## What an encoding should be\n(.*?)^## ", text, flags=re.MULTILINE | re.DOTALL)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("|")]


def test_table_is_what_the_proofs_say():
    header, _, *body = rows(PAGE.read_text(encoding="utf-8"))
    assert header == ["Encoding", *(f"`{name}`" for name in COLUMNS)]
    assert body == [[f"{name} (`{system}`)", *answers] for name, (system, *answers) in ANSWERS.items()], "run this file"
    assert len(ANSWERS) == sum(len(proof.ANSWERS) for proof in PROOFS) > 20


@pytest.mark.parametrize("proof", PROOFS, ids=lambda proof: proof.__name__)
def test_columns_are_theorems_about_every_row(proof):
    proved = {theorem.body.__name__: theorem for theorem in theorems(proof)}
    for column in COLUMNS:
        asked = getattr(proof, "OF_PLACES", {}).values() if column == "content_independent" else ()  # for arguments: not run
        about = {function.__module__.removeprefix("posref.") for function in [*proved[column].of, *asked]}
        assert {system for system, *_ in proof.ANSWERS.values()} <= about, column


def test_rows_are_systems_with_answers():
    for name, (system, *answers) in ANSWERS.items():
        assert system in discovery.names(), name
        assert len(answers) == len(COLUMNS), name
        for answer in answers:
            assert re.fullmatch(r"yes|yes: .+|no: .+|depends: .+", answer), f"{name}: {answer}"


def test_a_changed_cell_is_seen():
    text = PAGE.read_text(encoding="utf-8")
    assert rows(text.replace("no: i itself", "yes", 1)) != rows(text)


if __name__ == "__main__":
    lines = [f"| {' | '.join((f'{name} (`{system}`)', *answers))} |\n" for name, (system, *answers) in ANSWERS.items()]
    head, rest = PAGE.read_text(encoding="utf-8").split("| --- | --- | --- | --- | --- |\n", 1)
    rest = rest[rest.index("\n\n") + 1 :]
    PAGE.write_text(f"{head}| --- | --- | --- | --- | --- |\n{''.join(lines)}{rest}", encoding="utf-8")
