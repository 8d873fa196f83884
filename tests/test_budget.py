"""A system has a budget of statements (tests/programs/count_code.py); a file that needs more says `# Over budget: why`."""

import re
from pathlib import Path

from posref import discovery
from tests.programs.count_code import statements

ROOT = Path(__file__).resolve().parents[1]
BUDGET = {"posref/{name}": 60, "posref/ops/{system}": 41, "proofs/{name}": 120, "proofs/vectors/{system}": 60}


def complaints(name):
    for pattern, most in BUDGET.items():
        file = pattern.format(name=name.replace(".", "/"), system=name.rpartition(".")[2]) + ".py"
        text = (ROOT / file).read_text(encoding="utf-8")
        used = statements(text)
        if (used > most) != bool(re.search(r"^# Over budget: .{15,}$", text, flags=re.MULTILINE)):
            yield f"{file} has {used} statements, the budget is {most}; a file that needs more says # Over budget: why"


def test_budget():
    assert [said for name in discovery.names() for said in complaints(name)] == []
