"""sympy shows that every line of docs/derivations.md equals the line before it; the systems and theorems in it exist."""

import itertools
import re
from pathlib import Path

import pytest

from posref import discovery, statements

sp = pytest.importorskip("sympy", reason="needs posref[proofs]")
from sympy.parsing import sympy_parser as parser  # noqa: E402

PAGE = (Path(__file__).parents[1] / "docs" / "derivations.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", PAGE, flags=re.MULTILINE | re.DOTALL))
FUNCTIONS = {"cos": sp.cos, "sin": sp.sin, "exp": sp.exp, "ln": sp.log, "sqrt": sp.sqrt, "pi": sp.pi}
RULES = (*parser.standard_transformations, parser.convert_xor, parser.implicit_multiplication)
AT = (sp.Rational(7, 5), sp.Rational(3, 2), sp.Rational(11, 7), sp.Rational(9, 4), sp.Rational(5, 3), sp.Rational(12, 5))


def chains():
    """The indented blocks: (system, lines without their reasons)."""
    for system, section in SECTIONS.items():
        for block in re.findall(r"(?:^    .*\n)+", section, flags=re.MULTILINE):
            yield system, [re.split(r"\s{3,}", line.strip())[0].removeprefix("= ") for line in block.splitlines()]


STEPS = [(system, *pair) for system, lines in chains() for pair in itertools.pairwise(lines)]


def read(line):
    """Letters are positive numbers: an equation of analytic functions that holds for these holds wherever both sides exist."""
    names = {name: sp.Symbol(name, positive=True) for name in re.findall(r"[A-Za-z]\w*", line)}
    return parser.parse_expr(line, local_dict=names | FUNCTIONS, transformations=RULES)


def equal(one, other):
    """Exactly, and at points at which both are computed with 30 digits."""
    difference = read(one) - read(other)
    points = [dict(zip(sorted(difference.free_symbols, key=str), AT[n:] + AT[:n] + AT, strict=False)) for n in range(3)]
    if any(abs(difference.evalf(30, subs=at)) > 1e-20 for at in points):
        return False
    if sp.powsimp(sp.expand(difference.rewrite(sp.exp))) == 0:
        return True
    logarithms = sp.expand_log(sp.log(read(one)) - sp.log(read(other)), force=True)
    return sp.simplify(difference) == 0 or sp.simplify(logarithms) == 0


@pytest.mark.parametrize(("system", "before", "after"), STEPS, ids=[f"{s}-{n}" for n, (s, _, _) in enumerate(STEPS)])
def test_a_line_equals_the_line_before(system, before, after):
    assert equal(before, after), f"{system}: {before} = {after}"


@pytest.mark.parametrize(("system", "before", "after"), STEPS[::4])
def test_another_line_does_not(system, before, after):
    """A sign is changed, or a factor of 2 is put in front."""
    wrong = re.sub(r" ([+-]) ", lambda m: " - " if m[1] == "+" else " + ", after, count=1)
    assert not equal(before, wrong if wrong != after else f"2 ({after})"), system


@pytest.mark.parametrize("system", SECTIONS)
def test_systems_and_theorems_exist(system):
    assert system in discovery.names()
    named = re.findall(r"`(\w+\.\w+\.\w+)`", SECTIONS[system])
    assert named
    assert set(named) <= statements.statements().keys()


@pytest.mark.parametrize("system", SECTIONS)
def test_a_derivation_has_four_to_eight_lines(system):
    assert 4 <= sum(len(lines) for of, lines in chains() if of == system) <= 8
