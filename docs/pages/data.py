"""What the pages say, read from posref or computed with it; nothing is typed here that stands elsewhere."""

import ast
import importlib
import inspect
import json
import re
import textwrap
from functools import cache
from pathlib import Path

import numpy as np
from pictures import PICTURES, overview

from pages import text
from posref import check, claims, comparison, discovery, ops, statements, symptoms, vectors
from posref.check import frameworks
from posref.check.engine import NO_ANSWER
from posref.explain import explanation, sources, words
from posref.ops import pages

NAMES = (*(system.name for system in discovery.systems()), *discovery.COMMON)
BEYOND = {
    "continues": "goes on beyond the trained length",
    "error": "ends at the trained length",
    "clips": "gives all distances beyond the trained ones one score",
    "repeats": "repeats earlier scores beyond the trained length",
}
DOCS = Path(__file__).parents[1]
README = (DOCS.parent / "README.md").read_text(encoding="utf-8")  # what it prints is tested
ROWS = (DOCS / "glossary.md").read_text(encoding="utf-8").split("|---|---|---|\n")[1].splitlines()
GLOSSARY = [tuple(cell.strip() for cell in row.split("|")[1:4]) for row in ROWS]  # word, what it means, other words for it
COQ = json.loads((DOCS / "coq.json").read_text(encoding="utf-8"))["theorems"]


def page(name):
    """Everything that the page of a system says."""
    said, last = discovery.page(name), name.rsplit(".", 1)[-1]
    return {
        "name": name,
        "file": overview.href(name),
        "family": name.split(".")[0] if "." in name else "common",
        "short": overview.short(name),
        "what": text.pretty(said.title.split(": ", 1)[1].rstrip(".")),
        "motivation": text.pretty(said.motivation) if said.formulas else "",
        "facts": facts(name),
        "traits": traits(name),
        "neighbours": neighbours(name),
        "alike": alike(name),
        "figures": figures(name),
        "definition": _definition(said.sections.get("Definition") or said.sections["title"].partition("\n\n")[2]),
        "equations": _equations(said.sections.get("Definition", "")),
        "symbols": [(s.names, text.pretty(s.meaning)) for s in said.symbols],
        "conventions": text.prose(said.conventions),
        "example": text.prose(textwrap.dedent(said.example)),
        "weights": overview.example(name),
        "differ": [[text.pretty(cell) if cell != "-" else "" for cell in row] for row in said.differ],
        "aliases": frameworks.aliases() if name in ("pairing", "rotary.rope", "rotary.layouts") else (),
        "claims": claimed(name),
        "theorems": theorems(name),
        "functions": [*map(function, filter(inspect.isfunction, discovery.members(importlib.import_module(f"posref.{name}"))))],
        "mistakes": sorted(mistakes(last), key=lambda m: -len(m["seen_in"])) if last in ops.names() else [],
        "shared": len({*pages.mistakes(last)} - {*ops.flags(last)}) if last in ops.names() else 0,
        "vectors": cases(last) if last in vectors.names() else [],
        "references": text.linked(" ".join(said.references.split())),
        "source": f"posref/{name.replace('.', '/')}.py",
    }


def _definition(section):
    """Paragraphs and blocks of formulas, in their order: [(kind, html or [(name, formula, note)])]."""
    formulas = lambda p: ("formulas", [text.formula(line) for line in p.split("\n")])
    parts = filter(str.strip, section.split("\n\n"))
    return [formulas(p) if p.startswith("    ") else ("prose", text.prose(p)) for p in parts]


def _equations(section):
    """Function -> its formulas, where the lines of the Definition begin with the name of a function."""
    found = {}
    for name, formula, _ in (text.formula(line) for line in section.split("\n") if line.startswith("    ")):
        found.setdefault(name, []).append(formula)
    return found


def columns():
    """Columns of that table, and what each says."""
    said = re.findall(r"^ {4}(\w+) +(.*)$", inspect.getdoc(comparison), flags=re.MULTILINE)
    return [(name, text.pretty(meaning)) for name, meaning in said]


@cache
def facts(name):
    """What is measured and counted: word -> value."""
    row = comparison.row(name)._asdict() if "." in name else {}
    return {word: _few(row[word]) for word, _ in columns() if word in row}


def traits(name):
    """The facts in one sentence, and what was proved and tested in another."""
    f, proved = facts(name), [s for s in statements.about(name) if s.is_theorem]
    said = [f"{len(proved)} theorems, {len(discovery.case_ids(name))} golden vectors."]
    if f.get("relative") in ("yes", "no"):
        kind = "Sees offsets alone" if f["relative"] == "yes" else "Sees positions, not only offsets"
        trained = "no trained numbers" if f["parameters"] == "0" else "trained numbers"
        cached = "keys can be cached" if f["cache"] == "yes" else "keys cannot be cached"
        said.insert(0, f"{kind}, {cached}, {trained}, {BEYOND[f['beyond']]}.")
    return [*said, *([f"Models: {f['models']}."] if f.get("models", "-") != "-" else [])]


def neighbours(name):
    """Systems that a theorem of a few lines connects with this one."""
    found = {}
    for s in sorted(statements.statements().values(), key=lambda s: len(s.statement)):
        home, last = s.name.rsplit(".", 1)
        systems = {home, *(of.rsplit(".", 1)[0] for of in s.of)} & set(discovery.names())
        if home in systems and name in systems and len(systems) == 2 and len(s.statement) < 250:
            found.setdefault(*(systems - {name}), (text.pretty(s.statement), f"{overview.href(home)}#{last}"))
    nearest = [other for other in sorted(NAMES, key=overview.importance) if other in found][:6]
    return [(overview.short(other), overview.href(other), *found[other]) for other in nearest]


def alike(name):
    """Systems with the same measured answers."""
    same = lambda a: [v for word, v in facts(a).items() if word not in ("parameters", "multiplies", "memory", "models")]
    others = [a for a in discovery.names() if "." in name and a != name and same(a) == same(name)]
    return [(overview.short(a), overview.href(a)) for a in others]


def _few(names, most=6):
    """Of many names the first ones."""
    known = names.split(", ")
    return names if len(known) <= most else f"{', '.join(known[:most])} and {len(known) - most} more"


def figures(name):
    """The pictures of a system; one that has none of its own shows its attention."""
    own = [figure(key) for key, (of, _, _) in PICTURES.items() if name in of.split()]
    return own or ([figure("attention", overview.alone, name)] if overview.example(name) is not None else [])


def figure(key, draw=None, *given):
    _, draw, columns = PICTURES.get(key, ("", draw, 2))
    caption = text.pretty(" ".join((draw.__doc__ or "").split()))
    return {"key": key, "columns": columns, "panels": [p.svg() for p in draw(*given)], "caption": caption}


def claimed(name):
    """What is claimed of a system and what is true; claims with a source first."""
    return [claim(c) for c in claims.claims() if _theorem(c.by).rpartition(".")[0] == name]


def claim(c):
    of, _, last = _theorem(c.by).rpartition(".")
    words = {word: text.pretty(getattr(c, word)) for word in ("sentence", "truth")}
    shown = {"by": c.by.replace("/", ": "), "href": f"{overview.href(of)}#{last}" if of else ""}
    said = {"source": claims.SOURCES[c.source] if c.source else "", "verdict": c.verdict}
    return words | shown | said | {"witness": text.witness(c.witness)}


def _theorem(by):
    """The theorem that shows a claim, "" if it is a command that does."""
    return by.partition("/")[0] if " " not in by else ""


def by_source():
    """Source -> its claims; false sentences without a source stand on the pages of the systems."""
    return {words: [claim(c) for c in claims.claims() if c.source == key] for key, words in claims.SOURCES.items() if key}


def theorems(name):
    return [
        {
            "name": s.name.rsplit(".", 1)[1],
            "plain": s.statement,
            "statement": text.pretty(s.statement),
            "sizes": text.pretty(s.sizes),
            "basis": s.basis,
            "why": text.pretty(s.argument or s.citation),
            "hypotheses": text.pretty("; ".join(s.hypotheses)),
            "coq": COQ.get(s.name, "0"),
            "refuted": [(text.pretty(r.sentence), text.witness(r.witness)) for r in s.refuted if r.kind != "claim"],
        }
        for s in statements.about(name)
    ]


def function(f):
    """Signature, words, body and example of one function, apart."""
    source = textwrap.dedent(inspect.getsource(f))
    node, lines = ast.parse(source).body[0], source.split("\n")
    doc, _, example = (inspect.getdoc(f) or "").partition(">>> ")
    head = "\n".join(lines[node.lineno - 1 : node.body[0].lineno - 1])
    return {
        "name": f.__name__,
        "head": text.python(head),
        "words": text.prose(doc.strip()),
        "summary": doc.split("\n")[0],
        "body": text.python(textwrap.dedent("\n".join(lines[node.body[1].lineno - 1 :]))) if len(node.body) > 1 else "",
        "example": text.console(">>> " + example) if example else "",
    }


def mistakes(last):
    """Every mistake of a system, made on the first golden case that tells it, and what `posref diagnose` says to it."""
    found, known = [], sorted(vectors.cases(f"{last}/*"), key=lambda case: case.expected.size)
    for flag, m in pages.mistakes(last).items():
        if flag in ops.flags(last):
            made = next(filter(None, (_made(flag, case) for case in known if flag in case.flags)), None)
            words = {word: text.pretty(getattr(m, word)) for word in ("bug", "effect", "remedy")}
            kind = {"kind": m.kind or "of this system alone"}
            found.append({"flag": flag, "made": made, "seen_in": m.seen_in, "mistake": m, **kind, **words})
    return found


def _made(flag, case):
    """What `posref diagnose` says, and the first element that is wrong; None where the mistake has no answer here."""
    op, arguments = ops.of_case(case)
    try:
        with np.errstate(all="ignore"):
            got = np.asarray(op.mistakes[flag].wrong(op.spec, arguments))
    except NO_ANSWER:
        return None
    says = check.diagnose(case, got).diagnosis[0].sentence.removeprefix("your output ")
    says = says.removesuffix(f": {op.mistakes[flag].bug}")  # the row begins with it
    same, number = got.shape == case.expected.shape, lambda x: f"{float(np.real(x)):.5g}".replace("-", text.MINUS)
    wrong = zip(*np.nonzero(np.abs(got - case.expected) > 1e-6 * (1 + np.abs(case.expected))), strict=True) if same else ()
    first = (f"at {', '.join(map(str, at))}: {number(got[at])}, expected {number(case.expected[at])}" for at in wrong)
    return {"case": case.id, "says": says, "first": next(first, "")}


def cases(last):
    shape = lambda case: "\N{MULTIPLICATION SIGN}".join(map(str, case.expected.shape)) or "1"
    return [(c.id, c.op, shape(c), sorted(c.flags), text.pretty(c.comment)) for c in vectors.load(last).cases]


@cache
def links():
    """Where each system, theorem and mistake stands; the name of a mistake ends with a colon."""
    found = {}
    for name in sorted(NAMES, key=overview.importance, reverse=True):
        last = name.rsplit(".", 1)[-1]
        found |= {f"{flag}:": f"{overview.href(name)}#m-{flag}" for flag in ops.flags(last)} if last in ops.names() else {}
    theorems = {s.name: ".html#".join(s.name.rsplit(".", 1)) for name in NAMES for s in statements.about(name)}
    return found | theorems | {name: overview.href(name) for name in NAMES}


def anchor(word):
    return re.sub(r"[^\w -]", "", word).lower().replace(" ", "-")


def texts():
    """Name -> Markdown of the texts that the README lists, in its order; each step of start.md is a text of its own."""
    listed = re.findall(r"\]\(((?:docs/)?\w+)\.md\)", README.split("## Where to read on")[1])
    found = {name.removeprefix("docs/"): (DOCS.parent / f"{name}.md").read_text(encoding="utf-8") for name in listed}
    steps = re.findall(r"^## (\d[^\n]*)\n\n(.*?)\n\n(.*?)(?=^## )", found["start"], re.MULTILINE | re.DOTALL)
    links = [f'<a href="start{n}.html">{title}</a>' for n, (title, _, _) in enumerate(steps, 1)]
    linked = "".join(f"## {link}\n\n{wrong}\n\n" for link, (_, wrong, _) in zip(links, steps, strict=True))
    whole = re.sub(r"^## \d.*(?=^## )", lambda _: linked, found["start"], flags=re.MULTILINE | re.DOTALL)
    way = {"start": whole} | {f"start{n}": "# {}\n\n{}\n\n{}".format(*step) for n, step in enumerate(steps, 1)}
    chain = ["", '<a href="start.html">Start here</a>', *links, ""]
    turn = '{}\n\n<nav class="turn"><span>{}</span><span>{}</span></nav>'
    return found | {name: turn.format(way[name].rstrip(), *ends) for name, *ends in zip(way, chain, chain[2:], strict=False)}


def headings(words):
    return re.findall(r"^#+ (?:<a[^>]*>)?(.*?)(?:</a>)?$", words, flags=re.MULTILINE)


def models():
    """Released configurations and what `posref explain` says of them."""
    found = []
    for name, record in sorted(sources.models().items(), key=lambda item: item[0].lower()):
        said = explanation(record["config"])
        told = {"name": name, "words": words.describe(said, name), "source": record["source"], "traps": said.traps}
        told["said"] = [_said("\n".join(words.block([group]))) for group in said.layers]
        told["rows"] = [_layers(*each) for each in zip(said.layers, told["said"], strict=True)]
        told["turns"] = [[float(f"{2 * np.pi / w:.4g}") for w in g.frequencies if w] for g in said.layers if g.frequencies]
        found.append(told)
    return found


def _said(block):
    """Word -> what `posref explain` says of one set of layers."""
    head, *parts = re.split(r"\n  (?=\w)", block)
    return {"layers": head.split("   ")[0]} | {p[:12].strip(): re.sub(r"\n\s+", "\n", p[12:].strip()) for p in parts}


def _layers(group, said):
    length = said.get("lengths", "").partition("; angles")[0].removeprefix("max_position_embeddings ")
    turned = f"{group.rotary_dim or '?'} of {group.head_dim}" if group.layout else ""
    return f"{group.part} {len(group.indices)}".strip(), group.window, group.encoding, group.layout, turned, length, group.call


def search(all_pages, all_models):
    """[title, what it is, address, colour, other words, each after a blank] of everything that can be found."""
    known = lambda said: "".join(f" {word}" for word in sorted(set(re.findall(r"[\w+#/.-]*\w\+*", said.lower()))))
    return [[*shown, known(said)] for *shown, said in _entries(all_pages, all_models)]


def _entries(all_pages, all_models):
    for s in symptoms.SYMPTOMS:
        yield s.sees, f"suspect {', '.join(s.suspects)}; {s.words}", f"symptoms.html#{anchor(s.sees)}", "bad", ""
    for name, said in texts().items():
        (title, *heads), lead = headings(said), re.search(r"\n\n(?!```)([^#|<].*?)\n\n", said, re.DOTALL)[1]
        more = f"{' '.join(lead.split())} {', '.join([*heads, *re.findall('<!-- asked: (.*) -->', said)])}"
        yield title, re.sub(r"[`*]|\]\(.*?\)", "", more), f"{name}.html", "gold", said
    for word, said, other in GLOSSARY:
        yield word, f"Glossary: {said}", f"glossary.html#{anchor(word)}", "gold", other
    for p in sorted(all_pages, key=lambda p: overview.importance(p["name"])):
        last, colour, file, said = p["name"].split(".")[-1], overview.colour(p["name"]), p["file"], discovery.page(p["name"])
        module = importlib.import_module(f"posref.{p['name']}")
        also = f"{module.__doc__} {' '.join(getattr(module, 'PRESETS', ()))}"
        yield p["short"], ", ".join((said.title.rstrip("."), *said.also_called)), file, colour, also
        for f in p["functions"]:
            yield f"{last}.{f['name']}", f["summary"], f"{file}#fn-{f['name']}", colour, ""
        for flag, m in ((each["flag"], each["mistake"]) for each in p["mistakes"]):
            yield m.bug, f"{p['short']}: {m.effect}", f"{file}#m-{flag}", "bad", f"{flag} {' '.join(m.seen_in)}"
        for t in p["theorems"]:
            yield f"{last}.{t['name']}", t["plain"][:140], f"{file}#{t['name']}", "mut", "theorem proved"
    for m in all_models:
        positions = ", ".join(sorted({row[2] for row in m["rows"]}))
        yield m["name"], f"what its positions do: {positions}", f"models.html#{m['name']}", "gold", m["words"][:2000]
