"""The site and the figures, from the project's own data, in a checkout with the extra `dev`:

python docs/make.py -o DIR      static pages: no network, no script from elsewhere, the same bytes twice
python docs/make.py --figures   docs/figures/*.svg
python docs/make.py --findings  docs/findings.md
"""

import argparse
import json
import re
import sys
from html import escape, unescape
from itertools import count
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS), str(DOCS.parent)]

import findings  # noqa: E402
from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: E402
from markdown import markdown  # noqa: E402
from pages import data, text  # noqa: E402
from pictures import files  # noqa: E402

from posref import __version__, drawing  # noqa: E402

FIRST = ("start", "compare", "symptoms", "findings")  # texts that every page names at its top
ENVIRONMENT = Environment(loader=FileSystemLoader(DOCS / "pages" / "templates"), undefined=StrictUndefined, trim_blocks=True)
MACROS = ENVIRONMENT.get_template("macros.html").module
WHOLE = r"(<(code|pre|a|h\d|div|figure|b|math)\b.*?</\2>)"  # where no formula is looked for
DERIVATIONS = dict(re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", data.texts()["derivations"], re.MULTILINE | re.DOTALL))


def first_page():
    """The first example of the README, its five uses, and the two large pictures."""
    source = data.README.split("```python\n")[1].split("```")[0]
    command, output = data.README.split("```console\n$ ")[1].split("```")[0].split("\n", 1)
    uses = re.findall(r"^\*\*\d\. ([^*]*?)\.?\*\*,? (.*?)(?=\n\n\*\*|\n\n## )", data.README, flags=re.MULTILINE | re.DOTALL)
    pictures = {name: data.figure(key) for name, key in (("map", "map"), ("tall", "map-tall"), ("sheet", "sheet"))}
    hero = {"source": text.python(source.split("\n\n\n")[1]), "command": command, "output": output.rstrip()}
    install = data.README.split("```sh\n")[1].split("```")[0].rstrip()
    return {"install": install, "hero": hero, "uses": [(title, _html(words)) for title, words in uses], **pictures}


def _html(words):
    """Markdown as HTML; links of a document to another are links of the pages, other relative ones are words.

    An image of docs/figures is the drawing itself, with its caption.
    """
    drawn = lambda found: str(MACROS.figure(data.figure(found[1]))).replace("\n", " ")  # a block of HTML is one line
    words = re.sub(r"!\[\]\(figures/([\w-]+)\.svg\)", drawn, words)
    words = re.sub(r"\[([^\]]*)\]\((?!https:|#|(?:docs/|\.\./)?\w+\.md)[^)]*\)", r"\1", words)
    body = markdown(words, extensions=["tables", "fenced_code", "toc"])
    latex = lambda found: text.from_latex(unescape(found[1]))
    body = re.sub(r'<pre><code class="language-math">([^<]*)</code></pre>', lambda m: _formulas(latex(m)), body)
    body = re.sub(r"\$<code>([^<]*)</code>\$", lambda m: text.mathml(latex(m), "inline"), body)
    body = re.sub(rf"{WHOLE}|([^<>]+)(?=<)", lambda m: m[1] or text.pretty(unescape(m[3])), body, flags=re.DOTALL)
    body = re.sub(r"<table>.*?</table>", lambda m: _cards(m[0]), body, flags=re.DOTALL)
    option = lambda m: re.sub(r"(?<![\w-])--\w[\w-]*", r'<span class="w">\g<0></span>', m[0])  # no line ends in its dashes
    body = re.sub(r"(?<!<pre>)<code>[^<]*</code>", option, body)
    return re.sub(r'href="(?:docs/|\.\./)?(\w+)\.md', r'href="\1.html', body)


def _formulas(block):
    said = [re.split(r"\s{3,}", line.strip()) for line in block.strip().split("\n")]
    note = lambda words: f'<span class="note">{text.pretty(words[0])}</span>' if words else ""
    lines = "".join(f'<div class="row"><span class="f">{text.mathml(line)}</span>{note(words)}</div>' for line, *words in said)
    return f'<div class="math">{lines}</div>'


def derivation(name):
    """The section of docs/derivations.md about a system: sentences, and chains of equal lines."""
    words = DERIVATIONS.get(name, "").strip().split("\n\n")
    said = lambda w: _formulas(w) if w.startswith("    ") else f"<p>{text.pretty(' '.join(w.split()))}</p>"
    return _linked("".join(map(said, filter(None, words))))


def document(name, words):
    """A text of docs as a page; derivations are those of the systems."""
    if name != "derivations":
        return _findings(_html(words)) if name == "findings" else _linked(_html(words))
    titles = {name: f'<h2 id="{name}"><a href="{name}.html">{data.overview.short(name)}</a></h2>' for name in DERIVATIONS}
    return _html(words.partition("\n## ")[0]) + "".join(titles[name] + derivation(name) for name in DERIVATIONS)


def _findings(body):
    """Patches in colours, the last table folded."""
    changed = lambda m: f"<{(tag := {'+': 'ins', '-': 'del'}[m[1]])}>{m[0]}</{tag}>"
    body = re.sub(r'(?<=language-diff">)[^<]*', lambda m: re.sub(r"(?m)^([-+]).*$", changed, m[0]), body)
    return "<details><summary>all rows</summary><table".join(_linked(body).rsplit("<table", 1)) + "</details>"


def _linked(body):
    """Names of systems, theorems and explained mistakes are links to them."""
    split = lambda code: re.sub(r"(?<=\w)([._])(?=\w)", r"\1<wbr>", code)
    link = lambda m: f'<a href="{data.links()[m[2] + m[3]]}">{split(m[1])}</a>{m[3]}' if m[2] + m[3] in data.links() else m[0]
    return re.sub(r"(<code>([\w.]+)</code>)(?!</a>)(:?)", link, body)


def _defined(page):
    """The page of a system; in its first part each word of the glossary is a link to its card where it stands first."""
    before, learn, after = re.split(r'(?=<main)|(?=<p class="part">)', page)
    cards = {
        word.lower(): f'href="glossary.html#{data.anchor(word)}" title="{escape(re.sub("[`*]", "", said))}"'
        for word, said, _ in data.GLOSSARY
    }
    words = rf"<(?:(code|pre|a|h\d|svg|math|table)\b.*?</\1>|[^>]*>)|\b({'|'.join(cards)})(s?)\b"
    link = lambda m: f'<a class="word" {card}>{m[0]}</a>' if (card := cards.pop((m[2] or "").lower(), "")) else m[0]
    return before + re.sub(words, link, learn, flags=re.DOTALL | re.IGNORECASE) + after


def _cards(table):
    """A table whose rows are cards on a phone: each cell knows its column, and each row of the glossary its word."""
    heads = [re.sub("<[^>]+>", "", head) for head in re.findall(r"<th[^>]*>(.*?)</th>", table)]
    at = count()
    cell = lambda m: f'<td data-l="{heads[next(at) % len(heads)]}"{m[1]}><div>{m[2]}</div></td>'
    row = lambda m: f'<tr id="{data.anchor(m[1])}">{m[0][4:]}' if heads[0] == "word" else m[0]
    table = re.sub(r"<tr>\n<td>(.*?)</td>", row, table)
    return re.sub(r"<td([^>]*)>(.*?)</td>", cell, table).replace(
        "<table>", f'<table class="cards{" word" * (heads[0] == "word")}">'
    )


def site():
    """File name -> contents of every page."""
    texts = {name: (data.headings(words)[0], words) for name, words in data.texts().items()}
    named = {"first": FIRST, "texts": {name: title for name, (title, _) in texts.items() if name.isalpha()}}
    ENVIRONMENT.globals |= named | {"version": __version__, "toc": (), "dict": dict}
    render = lambda template, title, **more: ENVIRONMENT.get_template(f"{template}.html").render(title=title, **more)
    everything, models = [data.page(name) for name in data.NAMES], data.models()
    systems = [p for p in everything if p["family"] != "common"]
    total = sum(t["basis"] != "example" for p in everything for t in p["theorems"]), sum(len(p["vectors"]) for p in everything)
    out = {"index.html": render("index", "posref", shared=[p for p in everything if p not in systems], **first_page())}
    for before, p, after in zip([None, *everything], everything, [*everything[1:], None], strict=False):
        said = {"p": p, "derivation": derivation(p["name"]), "before": before, "after": after}
        toc = re.findall(r'<section id="(\w+)">(?:<details><summary>)?<h2>(.*?)</h2>', render("system", p["short"], **said))
        out[p["file"]] = _defined(render("system", p["short"], toc=toc, **said))
    out["table.html"] = render("table", "All systems", systems=systems, columns=data.columns(), total=total)
    out["claims.html"] = render("claims", "What introductions say", pages=everything, sources=data.by_source())
    out["models.html"] = render("models", "Models", models=models)
    for name, (title, words) in texts.items():
        out[f"{name}.html"] = render("text", title, body=document(name, words))
    out["style.css"] = drawing.schemes(":root") + drawing.SHAPES + (DOCS / "pages" / "style.css").read_text(encoding="utf-8")
    out["start.js"] = (DOCS / "pictures" / "start.js").read_text(encoding="utf-8")
    given = {m["name"]: {"layers": m["said"], "turns": m["turns"]} for m in models}
    out["compare.js"] = _script(DOCS / "pictures" / "compare.js", "MODELS", given)
    out["site.js"] = _script(DOCS / "pages" / "site.js", "INDEX", data.search(everything, models))
    return out


def _script(path, name, value):
    """A script in which a name is replaced by its value."""
    return path.read_text(encoding="utf-8").replace(name, json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def written(folder, contents):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / name).write_text(content, encoding="utf-8")
    print(f"{len(contents)} files in {folder}")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", metavar="DIR", type=Path, help="write the site there")
    parser.add_argument("--figures", action="store_true", help="write the figures to docs/figures")
    parser.add_argument("--findings", action="store_true", help="write docs/findings.md")
    given = parser.parse_args(arguments)
    if given.o is None and not given.figures and not given.findings:
        parser.error("say -o DIR, --figures or --findings")
    if given.findings:
        (DOCS / "findings.md").write_text(findings.page(), encoding="utf-8")
    if given.figures:
        written(DOCS / "figures", files())
    if given.o is not None:
        written(given.o, site())


if __name__ == "__main__":
    main()
