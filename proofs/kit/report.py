"""What `python -m proofs` prints: theorems with all they rest on, derivations, shipped code tampered with, one table."""

import itertools
import random
import textwrap

from proofs.kit import numbers
from proofs.kit.claims import Refuted
from proofs.kit.mutants import python_function, swapped
from proofs.kit.readable import normal_form_text, text
from proofs.kit.record import RECORD
from proofs.kit.runner import PASSED, in_file, slow
from proofs.kit.tamper import drawn

WIDTH = 128
UNSEEN = {"error": "only an error tells that it matters", "nothing": "no claim sees what it returns"}
LABEL = 14
WITHOUT = "no compiled twin was called; they need numba, and mutants or --every-size"


def block(r):
    """One theorem: its statement, what it is about, what it rests on, and its refuted controls with their counterexamples."""
    m = r["mutants"]
    controls = [line for c in r["controls"] for line in _control(c)]
    lines = [
        f"{r['name']}: {r['status']} ({r['seconds']:.2f} s)",
        *_wrapped("", r["statement"]),
        *_wrapped("about", ", ".join(r["of"]) or "no shipped function"),
        *_wrapped("sizes", r["sizes"] + " (each size at least 1)" * r["from_one"]),
        *_wrapped("run for", "; ".join(r["cases"]) if r["cases"] != ["generic"] else ""),
        *_wrapped("basis", r["basis"]),
        *_wrapped("argument", r["argument"]),
        *_wrapped("citation", r["citation"]),
        *_wrapped("hypotheses", "; ".join(r["hypotheses"])),
        *_wrapped("values", r["values"]),
        *_wrapped("premises", "; ".join(r["premises"])),
        *_wrapped("signs", ", ".join(r["signs"])),
        *_wrapped("not zero", "; ".join(r["denominators"])),
        *_wrapped("sympy trusted", ", ".join(r["trusted"])),
        *_wrapped("obligations", f"{r['obligations'] - r['trivial']}, and {r['trivial']} that are 0 = 0 as written"),
        *_wrapped("as written", r["as_written"]),
        *_wrapped("in numbers", f"{r['numbers']} results compared" if r["numbers"] else f"none compared: {r['silent']}"),
        *_wrapped("twins", ", ".join(f"{count} results of {name}" for name, count in r["twins"].items())),
        *_wrapped("unseen", ", ".join(r["unseen"])),
        *(_wrapped("mutants", f"{m['killed']} noticed here first, {m['refuted']} of them by a witness") if m else []),
    ]
    return "\n".join([*lines, *controls])


def _control(control):
    """A refuted control: the sentence, the true sentence if it is a claim, and where it fails."""
    yield from _wrapped("refuted", control["statement"])
    yield from _wrapped("", f"true: {control['truth']}" if control["truth"] else "", indent=2)
    yield from _wrapped("", control["witness"], indent=2)


def _wrapped(label, text, indent=0):
    if not text:
        return []
    first = f"  {label:{LABEL + indent}}" if label or indent else "  "
    return textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=" " * len(first))


def sentences(results):
    """One paragraph a theorem: its name and its statement."""
    return "\n".join(textwrap.fill(f"{r['name']}. {r['statement']}", WIDTH, subsequent_indent="  ") for r in results)


def table(results):
    """One line per theorem, in numbers."""
    header = ("theorem", "functions", "sizes", "basis", "obligations", "0 = 0", "controls", "mutants noticed first", "seconds")
    rows = [header] + [_row(r) for r in results]
    widths = [max(len(row[c]) for row in rows) for c in range(len(header))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows)


def _row(r):
    functions = ", ".join(sorted({f.rsplit(".", 1)[-1] for f in r["of"]}))
    m = r["mutants"]
    killed = "-" if not m else f"{m['killed']}" + (f" ({m['equivalent']} equivalent)" if m["equivalent"] else "")
    numbers = (str(r["obligations"] - r["trivial"]), str(r["trivial"]), str(len(r["controls"])), killed, f"{r['seconds']:.2f}")
    return (r["name"], _short(functions), _short(r["sizes"]), r["basis"], *numbers)


def _short(text, width=32):
    return text if len(text) <= width else text[: width - 2] + ".."


def conclusion(results, survivors, unused, seconds):
    """What is wrong, if anything, then the totals."""
    lines = [f"NOT PROVED  {r['name']}: {r['status']}" for r in results if r["status"] not in PASSED]
    lines += [f"SURVIVOR    {label}" for label in survivors]
    lines += [f"NOT A SURVIVOR, listed as equivalent: {label}" for label in unused]
    lines += [f"in numbers nothing is compared, {reason}: {names}" for reason, names in _silent(results).items()]
    if late := slow(results):
        lines.append(f"slower than a file should be: {', '.join(f'{file} ({s} s)' for file, s in late.items())}")
    return "\n".join([*lines, f"{summary(results, survivors)}; {seconds:.1f} s"])


def _silent(results):
    """The theorems that compare nothing in numbers, by the reason."""
    found = {}
    for r in results:
        if r["silent"]:
            found[r["silent"]] = found.get(r["silent"], "") + f"{', ' if r['silent'] in found else ''}{r['name']}"
    return found


def summary(results, survivors):
    """One line: theorems by what carries them, examples, obligations, controls, and mutants if any were tried."""
    stated = [r for r in results if r["basis"] != "example"]
    bases = [r["basis"] for r in stated]
    carried = ", ".join(f"{bases.count(basis)} by {basis}" for basis in sorted(set(bases), key=len))
    checked = sum(r["status"] in PASSED for r in results if r["basis"] == "example")
    controls, trivial = [c for r in results for c in r["controls"]], sum(r["trivial"] for r in results)
    line = (
        f"{sum(r['status'] in PASSED for r in stated)} of {len(stated)} theorems proved ({carried}), "
        f"{checked} of {len(results) - len(stated)} examples checked; "
        f"{sum(r['obligations'] for r in results) - trivial} obligations and {trivial} that are 0 = 0 as written; "
        f"{len(controls)} controls refuted, {sum(bool(c['truth']) for c in controls)} of them printed beside the true sentence"
    )
    line += f"; {sum(len(r['premises']) for r in results)} premises"
    line += f"; {sum(bool(r['symbolic']) for r in stated)} theorems run a symbolic size"
    if plain := _plain(stated):
        whys = "; ".join(f"{plain.count(why)}: {why}" for why in dict.fromkeys(plain))
        line += f", and in {len(plain)} all is 0 = 0 as written ({whys})"
    compared = [r["numbers"] for r in results]
    by = f"{sum(map(bool, compared))} of {len(compared)}"
    line += f"; {sum(compared)} results were also compared in floating point, by {by}"
    called = sum(sum(r["twins"].values()) for r in results)
    line += f"; {called} results of compiled twins were compared with the specification's" if called else f"; {WITHOUT}"
    score = [r["mutants"] for r in results if r["mutants"]]
    if not score:
        return line
    line += "".join(_unseen(results, *each) for each in UNSEEN.items())
    killed, refuted, equivalent = (sum(m[word] for m in score) for word in ("killed", "refuted", "equivalent"))
    return f"{line}; {killed} mutants noticed ({refuted} by a witness), {equivalent} equivalent, {len(survivors)} survive"


def _unseen(results, noticed, words):
    """How many theorems run functions that no claim sees."""
    count = sum(noticed in r["unseen"].values() for r in results)
    return f"; {count} theorems run a function of which {words}" * bool(count)


def _plain(results):
    """Why all obligations are 0 = 0, for each theorem that has no other."""
    return [r["as_written"] or "checked" for r in results if r["obligations"] == r["trivial"]]


def derivation(t, latex=False):
    """The obligations of a theorem that are not 0 = 0 as written, each with the normal form that both sides have."""
    t.prove()
    pairs = list(dict.fromkeys(pair for pair in RECORD.equalities if pair[0] - pair[1] != 0))
    lines = [f"{t.name}: {t.statement}"]
    for number, (left, right) in enumerate(pairs, 1):
        lines += _in_latex(left, right) if latex else _in_text(number, left, right)
    lines += [f"  {RECORD.trivial} more are 0 = 0 as written"] * bool(RECORD.trivial)
    lines += [f"  evaluated: {fact}" for fact in dict.fromkeys(RECORD.facts)]
    return "\n".join(lines)


def _in_text(number, left, right):
    sides = text(left, beside=(right,)), text(right, beside=(left,)), normal_form_text(left, beside=(left, right))
    return [f"  {number}. {sides[0]}", f"     = {sides[1]}", f"     normal form: {sides[2]}"]


def _in_latex(left, right):
    sides = text(left, True, (right,)), text(right, True, (left,)), normal_form_text(left, True, (left, right))
    return [r"\begin{align*}", "  & " + " \\\\\n  ={} & ".join(sides), r"\end{align*}"]


def tampered(chosen, seed):
    """Three edits that are drawn, made in memory, and what the theorems of the file say to each."""
    judges = [t for file in dict.fromkeys(t.file for t in chosen) for t in in_file(file)]
    functions = dict.fromkeys(python_function(f) for t in chosen for f in t.of)
    own = [f for f in functions if f.__module__ in {f"posref.{t.file}" for t in chosen}] or functions
    for t in judges:
        t.prove()  # how long a tampered proof may take
    verdicts = [_verdict(edit, judges) for edit in itertools.islice(drawn(own, random.Random(seed)), 3)]
    return "\n\n".join([f"drawn with seed {seed}; --tamper {seed} draws the same edits", *verdicts])


def _verdict(edit, judges):
    """An edit, the best answer to it (a refutation has a witness), and who else noticed."""
    about = [t for t in judges if any(python_function(f) is edit.function for f in t.of)]
    failures = {t.name: t.failure(edit.function, edit.code) for t in about}
    if not any(failures.values()):  # a wrong dtype, for example, is seen in numbers alone
        failures = {t.name: _in_numbers(t, edit) for t in about}
    noticed = {name: failure for name, failure in failures.items() if failure}
    name = edit.function.__name__
    lines = [f"{edit.where}, in {name} ({edit.kind})", f"    {edit.before}", "became", f"    {edit.after}"]
    for first in sorted(noticed, key=lambda name: not isinstance(noticed[name], Refuted))[:1]:
        words = f"{first}: {type(noticed[first]).__name__}: {noticed[first]}"
        lines += textwrap.wrap(textwrap.shorten(words, 4 * WIDTH), WIDTH, subsequent_indent="    ")
    nobody = "nobody notices: the edit changes no result, or a theorem is missing"
    said = (
        f"{len(noticed)} of {len(about)} theorems about {name} fail" if noticed else f"{nobody}; {len(about)} are about {name}"
    )
    return "\n".join([*lines, said])


def _in_numbers(t, edit):
    """What the same theorem in numbers says to an edit; None if all results are compared as before."""
    try:
        with swapped(edit.function, edit.code):
            numbers.check(t)
    except Exception as error:
        return error
