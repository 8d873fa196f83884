"""Printed text: lists, pages, mistakes and claims, which the commands print in the width of the terminal."""

import importlib
import inspect
import re
import shutil
import textwrap
from collections import Counter

from posref import claims, comparison, discovery, finding, ops, statements
from posref.explain import presets as released
from posref.ops import common, pages

WIDEST = 128  # of a line of the source
FEW = 12  # models of a page
HEADINGS = {"base": "frequencies", "cap": "cap of the scores", "empty": "fully masked rows"}  # of kinds of mistakes


def width():
    """The columns of the terminal, or the COLUMNS variable; at most 128, and 128 without a terminal."""
    return min(WIDEST, max(40, shutil.get_terminal_size((WIDEST, 24)).columns))


def fitted(text):
    """A text of paragraphs and indented lines, wrapped to the terminal; doctests stay as they are."""
    return "\n\n".join(_paragraph(paragraph) for paragraph in text.split("\n\n"))


def listed(family=None):
    """The list of all systems, family by family, or of one family."""
    systems = [system for system in discovery.systems() if family in (None, system.family)]
    longest = max(len(system.name) for system in systems)
    parts = []
    for each in dict.fromkeys(system.family for system in systems):
        rows = [(s.name, s.title) for s in systems if s.family == each]
        heading = inspect.getdoc(importlib.import_module(f"posref.{each}")) or each
        parts.append("\n".join([fitted(heading), *(_row(f"  {name:{longest}}  ", title) for name, title in rows)]))
    return "\n\n".join([*parts, "`posref show NAME` prints one of them."])


def page(name):
    """The page of a module: definition, code, differences between implementations, theorems, and models that use it."""
    module = importlib.import_module(f"posref.{name}")
    said, _, references = (inspect.getdoc(module) or "").rpartition("\n\nReferences.")
    defined, differ, rows = said.partition("\n\nWhere implementations differ.")
    presets = [f"Preset {preset}: {_values(values)}" for preset, values in getattr(module, "PRESETS", {}).items()]
    parts = [fitted((differ + rows).strip()), properties(name), fitted(f"References.{references}"), *map(fitted, presets)]
    after = "\n\n".join(filter(None, [*parts, users(name, FEW)]))
    return f"posref.{name}\n\n{fitted(defined)}\n\n\n{code(module)}\n\n\n{after}"


def code(module):
    """The source of the public functions and classes of a module."""
    return "\n\n\n".join(inspect.getsource(member).rstrip("\n") for member in discovery.members(module))


def users(name, most=None):
    """Released models with a rotation of this system; with `most`, a short list without the sources of configurations."""
    lines = released.of(name)
    if most is None or not lines:
        return "\n".join(map(fitted, lines))
    rest = f"{len(lines)} models in all: `posref show {name} --models` lists them, and where each configuration was read."
    return "\n".join(map(fitted, [*(line.rpartition("; ")[0] for line in lines[:most]), rest]))


def properties(name):
    """The theorems about a system as sentences, each with the sizes for which it holds; empty if there is none."""
    about = statements.about(name)
    if not about:
        return ""
    lines = [_row("", f"Properties. Proved about the code above, in a checkout of the project by `python -m proofs {name}`.\n")]
    lines += [_item(s) for s in about]
    false = sum(r.kind == "claim" for s in about for r in s.refuted)
    return "\n\n".join([lines[0], "\n".join(lines[1:])]) + (
        f"\n\n{false} false sentences, each with a counterexample: `posref claims {name}`" if false else ""
    )


def sources():
    """The sources of claims, and the number of their claims with each verdict."""
    rows = []
    for key, title in claims.SOURCES.items():
        found = Counter(c.verdict for c in claims.claims(who=key))
        rows.append(
            _row(f"  {key or 'posref':9}  ", f"{title}: {', '.join(f'{found[v]} {v}' for v in claims.VERDICTS if found[v])}")
        )
    narrower = (
        "`posref claims WORD` prints claims with a word, `posref claims --who su` those of a source, `--who all` all of them."
    )
    return "\n".join([*rows, "", narrower])


def claimed(found):
    """Claims, each with its verdict, the truth, and the proof or command that shows it."""
    parts = []
    for c in found:
        lines = [_row("", c.sentence), _row("  source: ", claims.SOURCES[c.source]) if c.source else ""]
        lines += [_row(f"  {c.verdict}: ", c.truth)]
        lines += [_row("  counterexample: " if c.verdict == "wrong" else "  witness: ", c.witness)] if c.witness else []
        parts.append("\n".join(filter(None, [*lines, f"  {_shows(c.by)}"])))
    return "\n\n".join(parts)


def compared(rows):
    """The table of `posref.comparison`, divided to fit the terminal; the column of models comes last."""
    names = [row.system.rpartition(".")[2] for row in rows]
    cells = [comparison.Row._fields[:-1], *((name, *row[1:-1]) for name, row in zip(names, rows, strict=True))]
    columns = [(max(len(row[c]) for row in cells), c) for c in range(1, len(cells[0]))]
    first, parts = max(len(row[0]) for row in cells), [[]]
    for size, c in columns:
        if first + sum(n + 2 for n, _ in [*parts[-1], (size, c)]) > width():
            parts.append([])
        parts[-1].append((size, c))
    lines = [[f"{row[0]:{first}}" + "".join(f"  {row[c]:{n}}" for n, c in part) for row in cells] for part in parts]
    models = [_row(f"{name:{first}}  ", row.models) for name, row in zip(names, rows, strict=True) if row.models != "-"]
    return "\n\n".join("\n".join(map(str.rstrip, part)) for part in [*lines, [*models]])


def found(words):
    """The systems in which the words were found, and the places."""
    hits = finding.found(words)
    longest = max((len(hit.name) for hit in hits), default=0)
    return "\n".join(_row(f"{hit.name:{longest}}  ", hit.where) for hit in hits)


def mistaken(name):
    """The mistakes of a system or an op, one line each, by kind: its own first, mistakes without golden vectors last."""
    kinds = {"": [f"{name} itself"]}
    for mistake, m in pages.mistakes(name).items():
        seen = f" (seen in {len(m.seen_in)} issue{'s' * (len(m.seen_in) > 1)})" if m.seen_in else ""
        kinds.setdefault(m.kind, [HEADINGS.get(m.kind, m.kind)]).append(_row(f"  {mistake}: ", m.bug + seen))
    kinds["further"] = ["tried where none of these fits", *(_row(f"  {each}: ", bug) for each, bug in _further(name).items())]
    more = (
        f"`posref mistakes {name} --long` says of those that golden vectors have what one sees, the first wrong value, the "
        "remedy and where each was seen."
    )
    return "\n\n".join([*("\n".join(lines) for lines in kinds.values() if len(lines) > 1), _row("", more)])


def _further(name):
    """{mistake: its sentence} of the mistakes tried after all others, without those that every op with attention can have."""
    system = name.split(".")[0]
    asked = [op for op in ops.system(system).values() if name in (op.name, system)]
    own = {**getattr(importlib.import_module(f"posref.ops.{system}"), "FURTHER", {}), **common.FURTHER}
    return {mistake: m.bug for op in asked for mistake, m in ops.further(op).items() if mistake in own}


def _item(statement):
    basis = statement.sizes if statement.is_theorem else f"{statement.sizes}; an example"
    return _indented(f"    {statement.name.rpartition('.')[2]}: {statement.statement} ({basis})")


def _shows(by):
    return f"see {by}" if by.startswith("posref ") else f"python -m proofs {by.partition('/')[0]}"


def _values(values):
    return ", ".join(f"{key}={value!r}" for key, value in values.items())


def _row(first, text):
    """One item; its further lines are indented to its text, or by 6 if the text begins far to the right."""
    indent = " " * (len(first) if len(first) < width() / 2 else 6)
    return textwrap.fill(text, width(), initial_indent=first, subsequent_indent=indent, break_on_hyphens=False)


def _paragraph(text):
    lines = text.split("\n")
    if ">>>" in text or all(len(line) <= width() for line in lines):
        return text
    if not any(line.startswith(" ") for line in lines):
        return _row("", " ".join(lines))
    return "\n".join(line if len(line) <= width() else _indented(line) for line in lines)


def _indented(line):
    indent = re.match(r" *", line)[0]
    return textwrap.fill(
        line.strip(), width(), initial_indent=indent, subsequent_indent=indent + "    ", break_on_hyphens=False
    )
