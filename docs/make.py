"""The site and the figures, from the project's own data, in a checkout with the extra `dev`:

python docs/make.py -o DIR      static pages: no network, no script from elsewhere, the same bytes twice
python docs/make.py --figures   docs/figures/*.svg
python docs/make.py --findings  docs/findings.md
"""

import argparse
import json
import re
import sys
from html import unescape
from itertools import count
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS), str(DOCS.parent)]

import findings  # noqa: E402
from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: E402
from markdown import markdown  # noqa: E402
from pages import data, text  # noqa: E402
from pictures import draw, files  # noqa: E402

import posref  # noqa: E402
from posref import statements  # noqa: E402

FIRST = ("start", "use", "symptoms", "findings")  # texts that every page names at its top; it names the others at its end
WHOLE = r"(<(code|pre|a|h\d|div|figure|b|math|table)\b.*?</\2>)"  # where no formula is looked for
README = (DOCS.parent / "README.md").read_text(encoding="utf-8")  # what it prints is tested
DERIVATIONS = dict(
    re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", (DOCS / "derivations.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
)


def first_page():
    """The first example of the README, its five uses, and the two large pictures."""
    source = README.split("```python\n")[1].split("```")[0]
    command, output = README.split("```console\n$ ")[1].split("```")[0].split("\n", 1)
    uses = re.findall(r"^\*\*\d\. ([^*]*)\*\*,? (.*?)(?=\n\n\*\*|\n\n## )", README, flags=re.MULTILINE | re.DOTALL)
    pictures = {name: data.figure(key) for name, key in (("map", "map"), ("tall", "map-tall"), ("sheet", "sheet"))}
    hero = {"source": text.python(source.split("\n\n\n")[1]), "command": command, "output": output.rstrip()}
    return {"hero": hero, "uses": [(title, _html(words)) for title, words in uses], **pictures}


def _html(words):
    """Markdown as HTML; links of a document to another are links of the pages, other relative ones are words.

    An image of docs/figures is the drawing itself, with its caption.
    """
    words = re.sub(r"!\[\]\(figures/([\w-]+)\.svg\)", lambda found: _drawing(found[1]), words)
    words = re.sub(r"\[([^\]]*)\]\((?!https:|(?:docs/)?\w+\.md)[^)]*\)", r"\1", words)
    body = markdown(words, extensions=["tables", "fenced_code", "toc"])
    body = re.sub(
        r"<pre><code>((?:[^<\[;\n]*(?: = |-&gt;|&lt;=)[^<\[;\n]*\n){1,2})</code></pre>",
        lambda m: _formulas(unescape(m[1])),
        body,
    )
    body = re.sub(rf"{WHOLE}|([^<>]+)(?=<)", lambda m: m[1] or text.pretty(unescape(m[3])), body, flags=re.DOTALL)
    body = re.sub(r"<table>.*?</table>", lambda m: _cards(m[0]), body, flags=re.DOTALL)
    return re.sub(r'href="(?:docs/)?(\w+)\.md', r'href="\1.html', body)


def _formulas(block):
    said = [re.split(r"\s{3,}", line.strip()) for line in block.strip().split("\n")]
    note = lambda words: f'<span class="note">{text.pretty(words[0])}</span>' if words else ""
    lines = "".join(f'<div class="row"><span class="f">{text.mathml(line)}</span>{note(words)}</div>' for line, *words in said)
    return f'<div class="math">{lines}</div>'


def derivation(name):
    """The section of docs/derivations.md about a system: sentences, and chains of equal lines."""
    words = DERIVATIONS.get(name, "").strip().split("\n\n")
    return "".join(_formulas(w) if w.startswith("    ") else f"<p>{text.pretty(' '.join(w.split()))}</p>" for w in words if w)


def document(path):
    """A text of docs as a page; derivations are those of the systems."""
    words = path.read_text(encoding="utf-8")
    if path.stem != "derivations":
        return _findings(_html(words)) if path.stem == "findings" else _html(words)
    titles = {name: f'<h2 id="{name}"><a href="{name}.html">{data.overview.short(name)}</a></h2>' for name in DERIVATIONS}
    return _html(words.partition("\n## ")[0]) + "".join(titles[name] + derivation(name) for name in DERIVATIONS)


def _findings(body):
    """Patches in colours, theorems as links, the last table folded."""
    link = lambda m: f'<a href="{data.overview.href(m[2])}#{m[3]}">{m[0]}</a>' if m[1] in statements.statements() else m[0]
    changed = lambda m: f"<{(tag := {'+': 'ins', '-': 'del'}[m[1]])}>{m[0]}</{tag}>"
    body = re.sub(r"<code>((\w+\.\w+)\.(\w+))</code>", link, body)
    body = re.sub(r'(?<=language-diff">)[^<]*', lambda m: re.sub(r"(?m)^([-+]).*$", changed, m[0]), body)
    return "<details><summary>all rows</summary><table".join(body.rsplit("<table", 1)) + "</details>"


def _cards(table):
    """A table whose rows are cards on a phone: each cell knows its column."""
    heads = [re.sub("<[^>]+>", "", head) for head in re.findall(r"<th[^>]*>(.*?)</th>", table)]
    at = count()
    cell = lambda m: f'<td data-l="{heads[next(at) % len(heads)]}"{m[1]}><div>{m[2]}</div></td>'
    return re.sub(r"<td([^>]*)>(.*?)</td>", cell, table).replace("<table>", '<table class="cards">')


def _drawing(key):
    """One line, so that it is a block of HTML in Markdown."""
    drawn = data.figure(key)
    panels = "".join(drawn["panels"]).replace("\n", " ")
    return (
        f'<figure class="fig c{drawn["columns"]}"><div class="panels">{panels}</div>'
        f"<figcaption>{drawn['caption']}</figcaption></figure>"
    )


def site():
    """File name -> contents of every page."""
    environment = Environment(
        loader=FileSystemLoader(DOCS / "pages" / "templates"), undefined=StrictUndefined, trim_blocks=True
    )
    texts = sorted(DOCS.glob("*.md"))
    environment.globals |= {
        "first": FIRST,
        "texts": [path.stem for path in texts],
        "version": posref.__version__,
        "toc": (),
        "dict": dict,
    }
    render = lambda template, title, **more: environment.get_template(f"{template}.html").render(title=title, **more)
    everything, models = [data.page(name) for name in data.NAMES], data.models()
    systems = [p for p in everything if p["family"] != "common"]
    total = sum(t["basis"] != "example" for p in everything for t in p["theorems"]), sum(len(p["vectors"]) for p in everything)
    out = {"index.html": render("index", "posref", shared=[p for p in everything if p not in systems], **first_page())}
    for before, p, after in zip([None, *everything], everything, [*everything[1:], None], strict=False):
        said = {"p": p, "derivation": derivation(p["name"]), "before": before, "after": after}
        toc = re.findall(r'<section id="(\w+)">(?:<details><summary>)?<h2>(.*?)</h2>', render("system", p["short"], **said))
        out[p["file"]] = render("system", p["short"], toc=toc, **said)
    out["table.html"] = render("table", "All systems", systems=systems, columns=data.columns(), total=total)
    out["claims.html"] = render("claims", "What introductions say", pages=everything, sources=data.by_source())
    out["models.html"] = render("models", "Models", models=models)
    for path in texts:
        out[f"{path.stem}.html"] = render("text", path.stem.capitalize(), body=document(path))
    out["style.css"] = draw.schemes(":root") + draw.SHAPES + (DOCS / "pages" / "style.css").read_text(encoding="utf-8")
    out["start.js"] = (DOCS / "pictures" / "start.js").read_text(encoding="utf-8")
    script, index = (DOCS / "pages" / "site.js").read_text(encoding="utf-8"), data.search(everything, models)
    out["site.js"] = script.replace("INDEX", json.dumps(index, ensure_ascii=False, separators=(",", ":")))
    return out


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
