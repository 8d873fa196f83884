"""The page of findings, docs/findings.md, from `posref/facts`: what was found, how it is seen, and all that was measured."""

from collections import Counter
from difflib import unified_diff
from textwrap import fill

from posref import facts

CORPUS, FINDINGS = facts.read("corpus"), facts.read("findings")
PINS = (pin.split("==") for pins in CORPUS["environments"].values() for pin in pins)
VERSIONS = {name.partition("[")[0]: version for name, version in PINS}
HEAD = """\
# Findings

Errors that posref found in released libraries. Each finding has:

* a snippet that needs the library alone, and what it prints
* the correct value, and why: a theorem of posref, or what the library documents
* the line, and a patch where a few lines are enough

`python -m tests.release findings` runs every snippet, then again with its patch. "Not examined" means that nobody looked.

[Conventions](#conventions-and-faithful-oddities) are not errors. [Everything that was measured](#everything-that-was-measured):
{agree} rows agree and {differ} differ; the attention of {types} model types of transformers agrees.
"""
MEASURED = """\
## Everything that was measured

`python examples/wild.py --environments DIR` makes an environment for each group of libraries and measures each row there. An
error whose snippet alone shows it has no row here.

| library | version | what | verdict |
| --- | --- | --- | --- |
"""


def page():
    """The whole text."""
    rows = CORPUS["rows"]
    differ = sum(row["verdict"].startswith("differs") for row in rows)
    types = {
        row["what"].split("`")[1] for row in rows if row["what"].startswith("attention of") and "differs" not in row["verdict"]
    }
    parts = [HEAD.format(agree=len(rows) - differ, differ=differ, types=len(types)), totals()]
    parts += [finding(row) for row in FINDINGS["findings"]]
    parts.append("## Conventions and faithful oddities\n")
    parts += [_wrapped(f"* {_who(row)}: {row['title']} {row['affected']}", "  ") for row in FINDINGS["conventions"]] + [""]
    return "\n".join([*parts, MEASURED + "\n".join(map(measured, rows)), ""])


def totals():
    """How many findings of which severity each library has."""
    words = FINDINGS["severities"]
    count = Counter((row["library"], row["severity"]) for row in FINDINGS["findings"])
    lines = [f"| library | {' | '.join(words)} | findings |", f"| --- |{' --: |' * len(words)} --- |"]
    for library in sorted({library for library, _ in count}):
        numbers = " | ".join(str(count[library, word] or "-") for word in words)
        links = ", ".join(f"[`{row['id']}`](#{row['id']})" for row in FINDINGS["findings"] if row["library"] == library)
        lines.append(f"| {library} {VERSIONS[library]} | {numbers} | {links} |")
    total = [sum(n for (_, each), n in count.items() if each == word) for word in words]
    lines.append(f"| all | {' | '.join(map(str, total))} | {sum(total)} |")
    return "\n".join([*lines, "", *(f"* **{word}**: {meaning}" for word, meaning in words.items()), ""])


def finding(row):
    """One finding: what, how bad, the snippet, both values, the place and the patch."""
    path, _, line = row["where"].partition(":")
    place = f"[{path}]({FINDINGS['libraries'][row['library']]}{path}){f', line {line}' if line else ''}"
    known = row.get("known", "")
    link = f"https://github.com/{known.replace('#', '/issues/')}"
    parts = [
        f"## {row['id']}\n",
        _wrapped(f"<b class='severity {row['severity']}'>Severity: {row['severity']}.</b> {_who(row)}: {row['title']}"),
        _wrapped(f"Affected: {row['affected']}"),
        *("```python", *row["code"], "```\n"),
        f"* it prints: `{row['prints']}`",
        f"* correct: {_code(row, 'right')}",
        f"* because: {_code(row, 'by')}",
        f"* where: {place} of {_who(row)}",
    ]
    parts += [f"* see also: [{known}]({link})"] * bool(known)
    if "patch" in row:
        parts += ["", "```diff", *[*unified_diff(row["there"], row["patch"], lineterm="")][3:], "```"]
    return "\n".join([*parts, ""])


def measured(row):
    found = f" [{row['finding']}](#{row['finding']})" if row.get("finding") in IDS else ""
    return f"| {row['who']} | {VERSIONS[row['who']]} | {row['what']} | {row['verdict']}{found} |"


IDS = {row["id"] for row in FINDINGS["findings"]}


def _wrapped(text, indent=""):
    """Lines of at most 128 characters."""
    return fill(text, 128, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False) + "\n" * (not indent)


def _who(row):
    return f"{row['library']} {VERSIONS[row['library']]}"


def _code(row, key):
    """Values and theorems are code, sentences are not."""
    return f"`{row[key]}`" if "expected" in row or (key == "right" and "patch" in row) else row[key]
