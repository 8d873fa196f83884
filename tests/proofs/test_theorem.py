"""Whatever makes a theorem worthless is reported, by name, and by the exit code of `python -m proofs`."""

import functools
import importlib
import itertools
import json
import re
import subprocess
import sys

import numpy as np
import pytest
import sympy as sp

import proofs
import proofs.__main__ as main_module
from posref._contract import Array, Numbers, contract
from posref.rotary import rope
from proofs.kit import *
from proofs.kit import numbers as numbers_module
from proofs.kit import recheck, runner
from proofs.kit.loops import Loop
from proofs.kit.mutants import mutants, swapped
from proofs.kit.runner import find
from proofs.kit.theorem import Theorem, examine, kill_mutants

machinery = importlib.import_module("proofs.kit.theorem")  # the package has a function of this name
N, H = size("n"), size("h")


def double(x):
    return x + x


def unrelated(x):
    return x


def make(body, *, of=(double,), control=None, **options):
    t = theorem(of=of, sizes="one", **({"as_written": "formula"} if body is doubled else {}) | options)(body)
    if control:
        t.control(control)
    return t


def doubled():
    """double(x) = 2x"""
    x = symbol("x")
    prove_equal(double(x), 2 * x)


def tripled():
    """double(x) = 3x"""
    x = symbol("x")
    prove_equal(double(x), 3 * x)


def test_a_sound_theorem_is_proved():
    result = examine(make(doubled, control=tripled))
    assert result.status == "proved"
    assert result.obligations == 1
    assert result.statement == "double(x) = 2x"
    assert (result.basis, result.trivial) == ("machine", 1)
    (control,) = result.controls
    assert (control.name, control.statement, control.kind, control.truth) == ("tripled", "double(x) = 3x", "guard", "")
    assert " at x = " in control.witness


def test_a_control_that_people_claim_carries_the_true_sentence():
    t = make(doubled)
    t.claim("double(x) = 2x")(tripled)
    (control,) = examine(t).controls
    assert (control.kind, control.truth) == ("claim", "double(x) = 2x")


def test_the_basis_says_what_carries_a_theorem():
    bases = {
        make(doubled, **ground).basis
        for ground in ({}, {"argument": "a"}, {"citation": "c"}, {"argument": "a", "citation": "c"})
    }
    assert bases == {"machine", "machine + argument", "machine + citation", "machine + argument + citation"}
    assert example(of=[double], sizes="one")(doubled).basis == "example"


def test_what_is_zero_as_written_is_counted_apart():
    def body():
        x = symbol("x").e
        prove_equal([x, (x + 1) ** 2], [x, x**2 + 2 * x + 1])
        prove_that(double(1) == 2, "1 + 1 = 2")

    result = examine(make(body, control=tripled))
    assert (result.obligations, result.trivial) == (3, 1)


def nothing():
    pass


def crash():
    raise ZeroDivisionError


def undecided():
    prove_equal([sp.Abs(symbol("x").e)], [symbol("x").e])


def other_shapes():
    prove_equal([1, 2], [1])


def no_truth():
    prove_that(sp.Lt(symbol("x").e, 0), "x is negative")


def none_at_all():
    prove_that(None, "nothing is said")


@pytest.mark.parametrize(
    ("t", "status"),
    [
        (make(nothing, control=tripled), "Unsound: .* asserts nothing"),
        (make(tripled, control=tripled), "Refuted: "),
        (make(doubled), "Unsound: .* has no control"),
        (make(doubled, control=doubled), "Unsound: the control doubled .* was not refuted"),
        (make(doubled, control=crash), "ZeroDivisionError"),
        (make(doubled, control=undecided), "Undecided"),
        (make(doubled, control=other_shapes), "NotProved: shapes"),
        (make(doubled, control=no_truth), "Undecided: neither true nor false"),
        (make(doubled, control=none_at_all), "Undecided: neither true nor false"),
        (make(doubled, control=tripled, of=[double, unrelated]), "Unsound: .* does not execute unrelated"),
        (make(undecided, control=tripled), "Undecided: outside the fragment"),
    ],
)
def test_what_makes_a_theorem_worthless_is_its_status(t, status):
    result = examine(t)
    with pytest.raises(AssertionError, match=status):
        raise AssertionError(result.status)


def test_a_tripwire_is_only_noticed_if_it_is_pulled(monkeypatch):
    """A theorem that ends otherwise, say by running out of time, has not noticed."""
    calls = []

    def slow():
        calls.append(1)
        while len(calls) > 1:
            pass

    t = make(slow, of=[unrelated])
    monkeypatch.setattr(machinery, "SECONDS_PER_MUTANT", 0.2)
    t.body()
    with pytest.raises(Unsound, match="does not execute unrelated"):
        t.check_tripwires()


def test_a_mutant_that_never_ends_is_killed(monkeypatch):
    def forever(x):
        while True:
            x = x

    monkeypatch.setattr(machinery, "SECONDS_PER_MUTANT", 0.2)
    assert make(doubled).outcome(double, forever.__code__) == "failed"
    assert double(2) == 4


def test_outcomes_are_told_apart():
    codes = {label.split("->")[1].strip(): code for label, code in mutants(double)}
    t = make(doubled)
    assert t.outcome(double, codes["return x - x"]) == "refuted"
    assert t.outcome(double, double.__code__) == "survived"
    assert t.outcome(double, crash.__code__) == "failed"


def both(x):
    return x + x + 0 * x


def test_survivors_and_unused_labels_are_reported():
    def weak():
        prove_that(both(0) == 0, "at 0")

    def strong():
        prove_equal(both(symbol("x")), 2 * symbol("x"))

    module = __name__
    label = "both: return x + x + 0 * x  ->  return x + x - 0 * x"
    score, survivors, unused = kill_mutants([make(weak, of=[both])], module)
    assert score[make(weak).name]["survived"] == len(survivors) == len(list(mutants(both)))
    score, survivors, unused = kill_mutants([make(strong, of=[both])], module)
    assert survivors == [label]
    assert unused == []
    score, survivors, unused = kill_mutants([make(strong, of=[both], equivalent={label: "0 has no sign"})], module)
    assert (survivors, unused) == ([], [])
    assert score[make(strong).name] == {"killed": 4, "refuted": 4, "survived": 0, "equivalent": 1}
    wrong = "both: return x + x + 0 * x  ->  return x - x + 0 * x"
    equivalent = {label: "0 has no sign", wrong: "it is not", "no such label": "none"}
    score, survivors, unused = kill_mutants([make(strong, of=[both], equivalent=equivalent)], module)
    assert (survivors, unused) == ([], sorted([wrong, "no such label"]))


# what theorems assert


def test_the_identity_passes_the_bare_relative_statement_and_not_one_that_mentions_positions():
    q, k, w, m, n = symbols("q", 1, 2), symbols("k", 1, 2), symbols("w", 1), symbol("m"), symbol("n")

    def score(p, r):
        return [
            (
                rope.rotate(q, *rope.tables(array([p]), w), layout="half")
                @ rope.rotate(k, *rope.tables(array([r]), w), layout="half").T
            )[0, 0]
        ]

    def identity(x, cos, sin, *, layout, rotary_dim=None):
        return x

    prove_equal(score(m, n), score(symbol("o"), n - m + symbol("o")), mention=[m, n])
    with swapped(rope.rotate, identity.__code__):
        prove_equal(score(m, n), score(symbol("o"), n - m + symbol("o")))
        with pytest.raises(NotProved, match=r"vacuous: \['m', 'n'\] do not occur"):
            prove_equal(score(m, n), score(symbol("o"), n - m + symbol("o")), mention=[m, n])


def test_nothing_to_compare_is_not_proved():
    for left, right in (([], []), (np.zeros((2, 0)), np.zeros((2, 0))), ([1, 1], [1]), ([[1]], [1]), (1, [1])):
        with pytest.raises(NotProved):
            prove_equal(left, right)


def test_entries_of_every_cell_are_compared():
    x = symbols("x", 2, 3)
    for cell in np.ndindex(2, 3):
        y = x.copy()
        y[cell] = y[cell] + 1
        with pytest.raises(Refuted):
            prove_equal(x, y)


def test_floats_are_compared_as_the_numbers_they_are():
    x = symbol("x")
    prove_equal([x * 0.5], [x / 2])
    with pytest.raises(Refuted):
        prove_equal([x * 0.1], [x / 10])
    for left in ([0.1 * x.e], [x.e / 10 + 1e-30 * x.e]):
        with pytest.raises(Undecided, match="rounded"):
            prove_equal(left, [x / 10])


def test_an_array_of_symbolic_size_is_not_one_cell():
    for left in (sized("x", N), [sized("x", N)]):
        with pytest.raises(Undecided):
            prove_equal(left, left)


def test_a_false_claim_about_sums_is_refuted_at_a_size_and_one_about_maxima_is_not():
    x = sized("x", N, H)
    with pytest.raises(Refuted, match=r"h = \d"):
        prove_equal(*entries(None, x.sum(axis=-1), 2 * x.sum(axis=-1)))
    with pytest.raises(NotProved) as caught:
        prove_equal(*entries(None, x.max(axis=-1), 2 * x.max(axis=-1)))
    assert not isinstance(caught.value, Refuted)


def test_prove_that_takes_truth_alone():
    for fact in (True, np.True_, sp.true):
        prove_that(fact, "so")
    for fact in (False, np.False_, sp.false):
        with pytest.raises(Refuted):
            prove_that(fact, "so")
    for fact in (1, 0, None, "yes", [], sp.Symbol("x") > 0):
        with pytest.raises(Undecided):
            prove_that(fact, "so")


def test_a_control_without_numbers_is_an_error():
    wordless = make(doubled, control=lambda: prove_that(double(1) == 3, "they fall"))
    assert "is refuted without numbers: not so: they fall; pass a counterexample" in examine(wordless).status
    numbers = make(doubled, control=lambda: prove_that(double(1) == 3, counterexample=f"double(1) is {double(1)}, expected 3"))
    assert examine(numbers).controls[0].witness == "double(1) is 2, expected 3"
    assert "which no result is part of" in examine(make(doubled, control=lambda: prove_equal([sp.Integer(1)], [2]))).status
    with pytest.raises(TypeError, match="a claim in words, or in a control a counterexample"):
        prove_that(True)


def test_a_control_is_about_a_function_of_the_theorem():
    elsewhere = make(doubled, control=lambda: prove_equal([symbol("x")], [symbol("x") + 1]))
    assert "executes no function of the theorem" in examine(elsewhere).status


def test_a_witness_says_where_what_is_there_and_what_is_expected():
    x = symbol("x").e
    for left, right, words in (
        ([1, 2, 3], [1, 2, 4], r"^at entry 2: 3, expected 4$"),
        ([sp.Rational(1, 2)], [1], r"^the value is 0\.5, expected 1$"),
        ([x, 2 * x], [x, 3 * x], r"^2\*x != 3\*x; at x = [-/\d]+, entry 1: [-.\d]+, expected [-.\d]+$"),
    ):
        with pytest.raises(Refuted, match=words):
            prove_equal(left, right)


def test_two_theorems_or_controls_of_one_name_are_an_error(tmp_path, monkeypatch):
    text = "from proofs.kit import example\n" + 2 * "@example(of=[], sizes='one')\ndef same():\n    pass\n\n\n"
    (tmp_path / "twice.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    factory = (
        "def made():\n    @example(of=[], sizes='one')\n    def same():\n        pass\n    return same\na, b = made(), made()\n"
    )
    (tmp_path / "factory.py").write_text("from proofs.kit import example\n" + factory)
    for name in ("twice", "factory"):
        with pytest.raises(Unsound, match=f"{name} defines same twice, and one is lost; rename one"):
            machinery.theorems(importlib.import_module(name))
    t = make(doubled, control=tripled)
    with pytest.raises(Unsound, match="has two controls named tripled; rename one"):
        t.control(tripled)


def test_induction_needs_both_its_base_and_its_step():
    n = symbol("n", integer=True).e
    prove_induction(n, n * (n - 1) / 2, n)
    with pytest.raises(Refuted):
        prove_induction(n, n * (n - 1) / 2 + 1, n)
    with pytest.raises(Refuted):
        prove_induction(n, n * (n + 1) / 2, n)


def test_solving_for_all_positions():
    m, a, b, w = symbol("m").e, symbol("a").e, symbol("b").e, symbol("w").e
    assert solve_forall([a * sp.cos(w * m) + b * sp.sin(w * m)], [a, b]) == {a: 0, b: 0}
    assert solve_forall([(a - b) * sp.exp(m)], [a, b]) == {a: b, b: b}
    assert solve_forall([0 * a], [a]) == {a: a}
    with pytest.raises(NotProved, match="0 solution sets"):
        solve_forall([a * sp.exp(m) - 1], [a])
    with pytest.raises(Undecided, match="for all values of the other symbols"):
        solve_forall([a * m + b], [a, b])
    for nonlinear in (a * sp.exp(b * m) - a * sp.exp(m), a * b, a**2):
        with pytest.raises(Undecided, match="not linear"):
            solve_forall([nonlinear], [a, b])


# the command


OTHER = "pairing.indices(2, 'half')[0].tolist() == [1]"
GOOD = '''
"""A proof file."""
from posref import pairing
from proofs.kit import prove_that, theorem


@theorem(of=[pairing.indices], sizes="d = 2, 4", argument="other widths have more of the same pairs"{options})
def places():
    """Where the members of pairs stand."""
    for dim, firsts, seconds in ((2, [0], [1]), (4, [0, 2], [1, 3])):
        first, second = pairing.indices(dim, "interleaved")
        prove_that(first.tolist() == firsts and second.tolist() == seconds, "interleaved")


@places.control
def elsewhere():
    """They stand elsewhere."""
    pairing.indices(2, "half")
    prove_that({control}, counterexample="d = 2: the members stand at " + str(pairing.indices(2, "half")))
'''


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    """`main` in this process, on a proof file of its own about posref.pairing."""
    monkeypatch.setattr(proofs, "__path__", [*proofs.__path__, str(tmp_path)])
    monkeypatch.setattr(runner, "kill_mutants", lambda everything, _: kill_mutants(everything, "posref.pairing"))
    numbers = itertools.count()

    def run(text, *arguments):
        name = f"scratch_{next(numbers)}_{tmp_path.name}"
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        importlib.invalidate_caches()
        return main_module.main([name, *arguments]), capsys.readouterr().out

    return run


def report(*arguments, capsys):
    """What the command prints, without the time."""
    assert main_module.main([*arguments]) == 0
    return capsys.readouterr().out


ASSERTED = "first.tolist() == firsts and second.tolist() == seconds"
CASES = "(2, [0], [1]), (4, [0, 2], [1, 3])"


def test_the_exit_code_is_zero_for_what_is_sound(command):
    assert command(GOOD.format(options="", control=OTHER))[0] == 0


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            GOOD.format(options=', equivalent={"no such label": "none"}', control=OTHER),
            "listed as equivalent: no such label",
        ),
        (GOOD.format(options="", control="True"), "NOT PROVED .*the control elsewhere of .* was not refuted"),
        (GOOD.format(options="", control="None"), "NOT PROVED .*neither true nor false"),
        (GOOD.format(options="", control=OTHER).replace("@places.control", ""), "NOT PROVED .*has no control"),
        (GOOD.format(options="", control=OTHER).replace(CASES, "(2, [0], [2]),"), "NOT PROVED .*Refuted"),
        (GOOD.format(options="", control=OTHER).replace(CASES, ""), "NOT PROVED .*asserts nothing"),
        (GOOD.format(options="", control=OTHER).replace("[pairing.indices]", "[pairing.join]"), "not execute join"),
        (GOOD.format(options="", control=OTHER).replace(ASSERTED, "first.tolist()[0] == 0"), "SURVIVOR +split: "),
        ("from posref import pairing", "0 of 0 theorems proved"),
    ],
)
def test_the_exit_code_is_not_zero_and_the_report_says_why(command, text, complaint):
    text = text.replace("of=[pairing.indices]", "of=[pairing.indices, pairing.split]")
    code, out = command(text)
    assert code != 0
    assert re.search(complaint, out), out


def test_json_has_the_keys_of_the_format(capsys):
    said = json.loads(report("pairing", "--json", capsys=capsys))
    assert {"theorems", "seconds"} <= set(said)
    assert said["survivors"] == said["unused"] == []
    for t in said["theorems"]:
        assert {"name", "statement", "of", "sizes", "hypotheses", "basis", "obligations", "controls", "status"} <= set(t)
        assert {"mutants", "seconds"} <= set(t)
        assert {"killed", "survived", "equivalent"} <= set(t["mutants"])
        assert t["status"] == ("checked" if t["basis"] == "example" else "proved")
    assert sum(t["mutants"]["killed"] for t in said["theorems"]) >= 10


def test_a_theorem_is_found_by_its_short_name():
    wanted = ["rotary.rope.relative"]
    assert [t.name for t in find("rotary.rope.relative")] == [t.name for t in find("rope.relative")] == wanted
    assert [t.name for t in find("rope")] == [t.name for t in find("rotary.rope")] != [t.name for t in find("fast.rope")]


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("no.such", "no proof file 'no.such'"),
        ("rpoe", "did you mean rope"),
        ("rope.relativ", "rotary.rope has no theorem 'relativ'; did you mean relative"),
    ],
)
def test_a_wrong_name_is_a_usage_error(name, answer, capsys):
    with pytest.raises(SystemExit) as ended:
        main_module.main([name])
    assert ended.value.code == 2
    assert answer in capsys.readouterr().err


def test_one_theorem_is_printed_with_all_it_rests_on(capsys):
    out = report("rope.relative", "--no-mutants", capsys=capsys)
    for line in (
        "rotary.rope.relative: proved",
        "  <R(m) q, R(n) k> = <q, R(n - m) k>",
        "  about         rotary.rope.rotate",
        "  sizes         all d",
        "  basis         machine",
        "  refuted       <q, R(n) k> = <q, R(n - m) k>",
        "1 of 1 theorems proved",
    ):
        assert line in out
    assert " at k_0_0 = " in " ".join(out.split())
    assert "theorem  " not in out
    assert "mutants noticed first" in report("pairing.split_pinned", "--no-mutants", "--table", capsys=capsys)


def test_progress_counts_theorems(capsys):
    main_module.main(["pairing", "--no-mutants"])
    err = capsys.readouterr().err
    total = len(find("pairing"))
    assert [f"[{k}/{total}] pairing." in line for k, line in enumerate(err.splitlines(), 1)] == [True] * total


def test_a_slow_file_is_named():
    late = {"name": "a.b.c", "seconds": runner.SLOW}
    assert runner.slow([late]) == {}
    assert runner.slow([late, {"name": "a.b.d", "seconds": 0.1}, {"name": "e.f", "seconds": 1}]) == {"a.b": runner.SLOW + 0.1}


def test_a_derivation_shows_obligations_and_their_normal_form(capsys):
    out = report("rope.group", "--derive", capsys=capsys)
    assert "cos((m + n)*w[" in out
    assert "normal form: " in out
    assert "e^(i*(m + n)*w[" in out
    assert not re.search(r"#|_b\d|\bI\*", out)


def test_a_derivation_is_written_in_latex(capsys):
    out = report("rope.relative", "--derive", "--latex", capsys=capsys)
    assert out.count(r"\begin{align*}") == out.count(r"\end{align*}") == 2
    assert r"\sum_{j=0}^{h - 1}" in out
    assert r"e^{i \left(m - n\right) {w}_{j}}" in out


@pytest.mark.slow
def test_tampering_shows_three_edits_and_a_witness_each(capsys):
    x, before = np.ones((1, 4)), rope.rotate.__code__
    out = report("rope.pinned", "--tamper", "2", capsys=capsys)
    assert out.count("became") == out.count("posref/rotary/rope.py:") == 3
    assert out.count(" fail") + out.count("nobody notices") == 3
    again = report("rope.pinned", "--tamper", "2", capsys=capsys)
    assert [re.findall(r"became\n(.*)", text) for text in (out, again)] == [re.findall(r"became\n(.*)", out)] * 2
    assert "Refuted: " in out
    assert rope.rotate.__code__ is before
    assert rope.rotate(x, *rope.tables(np.array([0]), np.ones(2)), layout="half").tolist() == x.tolist()


# obligations for others


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported")
    assert main_module.main(["rope.relative", "rope.exponentials_multiply", "--export", str(folder)]) == 0
    return folder


def checked(folder, obligations):
    """The exported checker, alone in an interpreter that can import neither posref nor the proofs."""
    path = folder / "changed.json"
    path.write_text(json.dumps(obligations), encoding="utf-8")
    command = [sys.executable, "-I", str(folder / "check.py"), str(path)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_exported_obligations_hold_without_the_kit(exported):
    source = (exported / "check.py").read_text(encoding="utf-8")
    assert len(source.splitlines()) <= 275
    assert not re.search(r"^\s*(?:import|from)\s+(?:posref|proofs)", source, flags=re.MULTILINE)
    written = json.loads((exported / "obligations.json").read_text(encoding="utf-8"))
    done = checked(exported, written)
    assert done.returncode == 0, done.stdout
    assert "every obligation holds" in done.stdout
    written["theorems"][0]["evaluated"] = ["n < m", "m < n"]
    assert checked(exported, written).stdout.count("0 left out, 2 facts not checked") == 1
    assert re.search(r"exponentials_multiply: 7 decided by normal form, 0 at 12 random points, 0 left out", done.stdout)
    assert re.search(r"relative: 2 decided by normal form, 0 at 12 random points", done.stdout)


def test_a_falsified_obligation_is_caught_by_the_checker(exported):
    """Every one of a theorem, by a small change of its right side."""
    name, written = "rotary.rope.relative", json.loads((exported / "obligations.json").read_text(encoding="utf-8"))
    (t,) = [t for t in written["theorems"] if t["name"] == name]
    for number, pair in enumerate(t["obligations"]):
        changed = [
            [left, ["add", right, "1/1000000"]] if k == number else [left, right]
            for k, (left, right) in enumerate(t["obligations"])
        ]
        done = checked(exported, {"theorems": [t | {"obligations": changed}]})
        assert done.returncode == 1, pair
        assert f"WRONG {name}, obligation {number + 1}: " in done.stdout
        assert "1 obligations fail" in done.stdout


def product(*factors):
    return functools.reduce(lambda left, right: ["mul", left, right], factors)


def x_less(number, x="x"):
    return ["add", ["x", x], str(-number)]


HALF = ["mul", "1/2", ["x", "x"]]
SUMS = [["sum", ["at", "a", ["x", j]], j, "0", x_less(6, "n")] for j in ("j", "k")]
TRUE = [
    (["cos", ["mul", "2", ["x", "x"]]], ["add", "-1", ["mul", "2", ["pow", ["cos", ["x", "x"]], "2"]]]),
    (["pow", ["sin", HALF], "2"], ["mul", "1/2", ["add", "1", ["mul", "-1", ["cos", ["x", "x"]]]]]),
    (
        ["pow", ["add", "1", ["exp", ["x", "x"]]], "-1"],
        product(["exp", ["mul", "-1", ["x", "x"]]], ["pow", ["add", "1", ["exp", ["mul", "-1", ["x", "x"]]]], "-1"]),
    ),
    (["exp", ["mul", ["i"], ["x", "x"]]], ["add", ["cos", ["x", "x"]], ["mul", ["i"], ["sin", ["x", "x"]]]]),
    (["mul", ["x", "x"], SUMS[0]], ["sum", ["mul", ["x", "x"], ["at", "a", ["x", "k"]]], "k", "0", x_less(6, "n")]),
    (product(["pow", ["x", "p"], ["x", "x"]], ["x", "p"]), ["pow", ["x", "p"], x_less(-1)]),
]
FALSE = [
    (["exp", product(*(x_less(c, "n") for c in (3, 4, 5)))], "1"),
    (["exp", product(*(x_less(c, "k") for c in (0, 1, 2)))], "1"),
    (["exp", product(*(x_less(c, "n") for c in range(1, 13)))], "1"),
    (["cos", product(*(x_less(c, "k") for c in range(13)))], "1"),
    (["exp", product(*(x_less(c, "z") for c in range(-50, 51)))], "1"),
    (SUMS[0], "0"),
    (["sum", "1", "j", "0", x_less(6, "n")], x_less(5, "n")),
    (["pow", ["sin", HALF], "2"], ["mul", "1/2", ["add", "1", ["cos", ["x", "x"]]]]),
    (["mul", *SUMS], ["pow", ["sum", ["pow", ["at", "a", ["x", "j"]], "2"], "j", "0", x_less(6, "n")], "1"]),
    (["pow", ["add", "1", ["exp", ["x", "x"]]], "-1"], ["add", "1", ["exp", ["mul", "-1", ["x", "x"]]]]),
    (["exp", ["mul", ["i"], ["x", "x"]]], ["add", ["sin", ["x", "x"]], ["mul", ["i"], ["cos", ["x", "x"]]]]),
    (["floor", ["mul", "1/13", ["x", "k"]]], "0"),
    (["floor", ["mul", "1/900", ["x", "n"]]], "0"),
    (["abs", x_less(13, "z")], ["add", "13", ["mul", "-1", ["x", "z"]]]),
    (["abs", x_less(500, "k")], ["add", "500", ["mul", "-1", ["x", "k"]]]),
    (["sum", ["x", "j"], "j", "0", x_less(20, "n")], "0"),
    (["sum", ["sum", ["x", "j"], "j", "0", x_less(20, "k")], "k", "0", x_less(1, "n")], "0"),
]
KINDS = {"n": "size", "k": "natural", "x": "real", "p": "positive", "j": "natural", "z": "integer"}


@pytest.mark.parametrize(("left", "right"), TRUE)
def test_the_checker_decides_what_its_normal_form_holds(left, right):
    assert recheck.failure(left, right, KINDS, {}, "seed") == (None, True)


@pytest.mark.parametrize(("left", "right"), FALSE)
def test_the_checker_refuses_what_is_false_at_many_small_numbers(left, right):
    assert recheck.failure(left, right, KINDS, {}, "seed")[0]


def test_a_mistake_of_the_ops_is_a_control():
    """It is refuted where it is wrong, and unsound where the symbols hide it: at position 0 any sign will do."""
    from proofs.kit import symbols
    from proofs.rotary.rope import adjoint

    given = {"g": symbols("g", 1, 2), "dim": 2, "base": 10000, "layout": "half"}
    assert [control.__name__ for control in adjoint.controls] == ["gradient_forward"]
    hidden = Theorem(adjoint.body, adjoint.of, "n", {})
    hidden.control_by("rope.gradient", "gradient_forward", positions=np.zeros(1, dtype=int), **given)
    with pytest.raises(Unsound, match=r"the control gradient_forward of .* was not refuted"):
        hidden.check_controls()
    shown = Theorem(adjoint.body, adjoint.of, "n", {})
    shown.control_by("rope.gradient", "gradient_forward", positions=symbols("m", 1), **given)
    assert "!=" in shown.check_controls()["gradient_forward"]


# honest sizes


def rotated(x):
    return [np.cos(x) ** 2, np.sin(x) ** 2]


def one_pair():
    """cos(x)^2 = 1 - sin(x)^2"""
    c, s = rotated(symbol("x"))
    prove_equal([c], [1 - s])


def numbers_pinned():
    """rotated is tested."""
    prove_equal(rotated(0), [1, 0])


def its_own_pinned():
    """It keeps the length."""
    expected = rotated(symbol("x"))[0]
    prove_equal([1 - rotated(symbol("x"))[1]], [expected])


def the_same_twice():
    """Two calls agree."""
    prove_equal(rotated(symbol("x")), [*rotated(symbol("x"))])


def doubled_numbers():
    """double(x) is 2 x for every x."""
    prove_equal(double(np.array([3])), [6])


def under_a_circle():
    """cos(x)^2 = 1 - sin(x)^2"""
    a, b, c = (symbol(name, integer=True).e for name in "abc")
    with assuming(sp.Gt(a, b), sp.Gt(b, c), sp.Gt(c, a)):
        one_pair()


def under_a_cube():
    """cos(x)^2 = 1 - sin(x)^2"""
    a = symbol("a", integer=True).e
    with assuming(sp.Ge(a, 2), sp.Le(a**3, 1)):
        one_pair()


def under_a_square():
    """cos(x)^2 = 1 - sin(x)^2"""
    a = symbol("a").e
    with assuming(sp.Le(a**2 - 2 * a + 2, 0)):
        one_pair()


def on_the_first_path():
    """|x| = x"""
    x = symbol("x")
    (_, value), *_ = all_paths(lambda: rotated(abs(x)))
    prove_equal([value[0]], [1 - rotated(x)[1]])


def on_paths_pinned():
    """It keeps the length."""
    for _, found in all_paths(lambda: rotated(symbol("x"))):
        prove_equal([1 - rotated(symbol("x"))[1]], [found[0]])


def summed(x, n):
    total = 0
    for k in range(n):
        total = total + k * x
    return total


def one_turn():
    x = symbol("x")
    k = symbol("k")
    prove_equal([Loop(summed, 0).turn({"x": x, "total": 2 * x}, k=k)["total"]], [2 * x + k * x])


DISHONEST = [
    (under_a_circle, "one", {}, "assumes what holds for no numbers that were tried"),
    (under_a_cube, "one", {}, "assumes what holds for no numbers that were tried"),
    (under_a_square, "one", {}, "assumes what holds for no numbers that were tried"),
    (on_the_first_path, "one", {}, "does not go through all of all_paths"),
    (one_pair, "all n", {}, "says 'all n', and runs x"),
    (one_pair, "d = 2; all n, d", {}, "says 'all n, d', and runs x"),
    (numbers_pinned, "all widths", {}, "says 'all widths', and runs no symbol"),
    (its_own_pinned, "one", {}, "expects .*, which rotated computes, and its sentence does not name rotated"),
    (on_paths_pinned, "one", {}, "expects .*, which rotated computes, and its sentence does not name rotated"),
    (the_same_twice, "one", {}, "no obligation that is more than 0 = 0"),
    (one_pair, "one", {"as_written": "runs"}, "has an obligation that is more than 0 = 0"),
    (one_turn, "one", {"as_written": "runs"}, "single turns of a loop"),
    (one_turn, "one", {"as_written": "runs", "argument": "induction"}, r"runs turns of summed; call covers\(summed\)"),
]


@pytest.mark.parametrize(("body", "sizes", "said", "problem"), DISHONEST)
def test_a_theorem_says_what_ran(body, sizes, said, problem):
    t = theorem(of=[rotated], sizes=sizes, **said)(body)
    t.prove()
    with pytest.raises(Unsound, match=problem):
        t.check_honesty()


Rows = Numbers[Array, "... n"]


@contract
def floored(x: Rows) -> Rows:
    """The whole part."""
    return x // 1


def floored_integers():
    """floored(x) is x."""
    x = integers("x", N)
    prove_equal(*entries(None, floored(x), x))


@contract
def two_halves(x: Rows) -> Rows:
    """All but the middle."""
    h = x.shape[-1] // 2
    return np.concatenate([x[..., :h], x[..., x.shape[-1] - h :]], axis=-1)


def halves_of_even_sizes():
    """two_halves(x) is x."""
    x = sized("x", 2 * H)
    prove_equal(*entries("half", two_halves(x), x))


@pytest.mark.parametrize(
    ("function", "body", "sizes", "better", "problem"),
    [
        (floored, floored_integers, "all n, x", "all n, whole x", "says any x, and floored.* gets whole numbers alone"),
        (two_halves, halves_of_even_sizes, "all n", "all even n", "says 'all n', and calls its functions with"),
    ],
)
def test_whole_numbers_and_even_sizes_are_said(function, body, sizes, better, problem):
    with pytest.raises(NotProved, match=problem):
        numbers_module.check(theorem(of=[function], sizes=sizes)(body))
    assert numbers_module.check(theorem(of=[function], sizes=better)(body)) > 0


def test_an_argument_that_is_any_has_been_a_symbol():
    assert numbers_module.check(theorem(of=[double], sizes="all x")(doubled)) > 0
    with pytest.raises(NotProved, match="says any x, and double"):
        numbers_module.check(theorem(of=[double], sizes="one")(doubled_numbers))
