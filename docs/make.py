"""The site and the figures, from the project's own data, in a checkout with the extra `dev`:

python docs/make.py -o DIR      static pages: no network, no script from elsewhere, the same bytes twice
python docs/make.py --figures   docs/figures/*.svg
"""

import argparse
import contextlib
import io
import json
import os
import re
import shlex
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS), str(DOCS.parent)]

import numpy as np  # noqa: E402
from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: E402
from markdown import markdown  # noqa: E402
from pages import data, text  # noqa: E402
from pictures import draw, files  # noqa: E402

import posref  # noqa: E402
from posref import cli, vectors  # noqa: E402
from posref.rotary import rope  # noqa: E402

WRONG = """import numpy as np


def my_rope(x, positions):
    angle = positions[:, None, :, None] * 10000.0 ** (-np.arange(0, 64, 2) / 64)
    cos, sin = np.cos(angle), np.sin(angle)
    a, b = x[..., 0::2], x[..., 1::2]
    y = np.stack([a * cos - b * sin, a * sin + b * cos], axis=-1)
    return y.reshape(x.shape)
"""
CHECK = "posref check my_ops:my_rope --as rope --dim 64 --base 10000 --layout half"
CASE = "rope/half/d8-b1e4/tiny"
USES = [  # title, why, command, lines shown
    ("Read", "What T5 does, exactly, and who does it differently: offline, in a terminal.", "posref show t5", 16),
    ("Know", "What the position of a model does, from its configuration, layer by layer.", "posref explain deepseek-v3", 12),
    (
        "Check",
        "Your function against a released model: ALiBi as BLOOM has it.",
        "posref check my_ops:bias --preset bloom_176b",
        6,
    ),
    ("Port", "A program in any language dumped numbers. What are they?", f"posref diagnose {CASE} out.npy", 4),
    ("Find", "A symptom, and what shows it.", 'posref mistakes --symptom "garbage"', 12),
]
BIAS = """import numpy as np


def bias(query_positions, key_positions):
    slopes = 2 ** (-8 * np.arange(1, 113) / 112)
    return slopes[:, None, None] * key_positions[..., None, None, :]
"""


def printed(command):
    """What a command of posref prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        cli.main(shlex.split(command)[1:])
    return re.sub(r" in \d+(\.\d+)? s\b", "", out.getvalue()).rstrip()


@contextlib.contextmanager
def a_user():
    """A folder with the files that the commands of the first page name."""
    before, path = Path.cwd(), list(sys.path)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("my_ops.py").write_text(WRONG + BIAS.split("\n", 2)[2], encoding="utf-8")
        case = vectors.case(CASE)
        x, positions = (np.asarray(case.tensors[name]) for name in ("x", "positions"))
        np.save("out.npy", rope.rotate(x, *rope.tables(positions + 1, rope.frequencies(8)), layout="half"))
        try:
            yield
        finally:
            os.chdir(before)
            sys.path[:] = path


def first_page():
    with a_user():
        hero = {"source": text.python(WRONG.split("\n\n\n")[1]), "command": CHECK, "output": _lines(printed(CHECK), 4)}
        uses = [{"title": t, "why": w, "command": c, "output": _lines(printed(c), n)} for t, w, c, n in USES]
    return {
        "hero": hero,
        "uses": uses,
        **{k: data.figure(f) for k, f in (("map", "map"), ("tall", "map-tall"), ("sheet", "sheet"))},
    }


def _lines(output, n):
    lines = output.split("\n")
    return "\n".join(lines[:n] + [text.DOTS] * (len(lines) > n))


def site():
    """File name -> contents of every page."""
    environment = Environment(
        loader=FileSystemLoader(DOCS / "pages" / "templates"), undefined=StrictUndefined, trim_blocks=True
    )
    texts = sorted(DOCS.glob("*.md"))
    environment.globals |= {"texts": [path.stem for path in texts], "version": posref.__version__, "toc": (), "dict": dict}
    render = lambda template, title, **more: environment.get_template(f"{template}.html").render(title=title, **more)
    everything, models = [data.page(name) for name in data.NAMES], data.models()
    systems = [p for p in everything if p["family"] != "common"]
    total = sum(t["basis"] != "example" for p in everything for t in p["theorems"]), sum(len(p["vectors"]) for p in everything)
    out = {"index.html": render("index", "posref", shared=[p for p in everything if p not in systems], **first_page())}
    for p in everything:
        toc = re.findall(r'<section id="(\w+)"><h2>(.*?)</h2>', render("system", p["short"], p=p))
        out[p["file"]] = render("system", p["short"], p=p, toc=toc)
    columns = list(next(iter(data.measured().values())))
    out["table.html"] = render("table", "All systems", systems=systems, columns=columns, total=total)
    out["claims.html"] = render("claims", "What introductions say", pages=everything)
    out["models.html"] = render("models", "Models", models=models)
    for path in texts:
        body = markdown(path.read_text(encoding="utf-8"), extensions=["tables", "fenced_code", "toc"])
        out[f"{path.stem}.html"] = render("text", path.stem.capitalize(), body=_links(body))
    out["style.css"] = draw.schemes(":root") + draw.SHAPES + (DOCS / "pages" / "style.css").read_text(encoding="utf-8")
    script, index = (DOCS / "pages" / "site.js").read_text(encoding="utf-8"), data.search(everything, models)
    out["site.js"] = script.replace("INDEX", json.dumps(index, ensure_ascii=False, separators=(",", ":")))
    return out


def _links(body):
    """Links of a document to another are links of the pages."""
    return re.sub(r'href="(?:docs/)?(\w+)\.md', r'href="\1.html', body)


def written(folder, contents):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / name).write_text(content, encoding="utf-8")
    print(f"{len(contents)} files in {folder}")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", metavar="DIR", type=Path, help="write the site there")
    parser.add_argument("--figures", action="store_true", help="write the figures to docs/figures")
    given = parser.parse_args(arguments)
    if given.o is None and not given.figures:
        parser.error("say -o DIR, --figures, or both")
    if given.figures:
        written(DOCS / "figures", files())
    if given.o is not None:
        written(given.o, site())


if __name__ == "__main__":
    main()
