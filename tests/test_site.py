"""The site and the figures: they are built, complete, linked and of this version, and load nothing from the network."""

import base64
import html
import importlib.util
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from posref import claims, discovery, facts, ops, statements, symptoms
from posref.explain import explain, sources
from tests.test_claims import quoted

for needed in ("jinja2", "markdown", "pygments"):
    pytest.importorskip(needed, reason="the site is built with the extra dev")

pytestmark = pytest.mark.whole
ROOT = Path(__file__).resolve().parents[1]
MAKE = ROOT / "docs" / "make.py"
NUMBER = re.compile(r"(?<![\w.#])-?\d+(?:\.\d+)?")
IMAGE = re.compile(r"data:image/png;base64,([\w+/=]+)")


WITHOUT_PICTURE = {"offsets", "position_ids", "shards"}


@pytest.fixture(scope="module")
def make():
    spec = importlib.util.spec_from_file_location("posref_docs_make", MAKE)
    module = importlib.util.module_from_spec(spec)
    before = list(sys.path)
    spec.loader.exec_module(module)
    yield module
    sys.path[:] = before


@pytest.fixture(scope="module")
def site(make):
    return make.site()


class Page(HTMLParser):
    """The links, addresses and ids of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loaded, self.ids = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids += [given["id"]] if "id" in given else []
        if tag == "a":
            self.links.append(given["href"])
        elif tag in ("link", "script", "img", "image", "iframe"):
            self.loaded += [given[name] for name in ("href", "src") if name in given]


@pytest.fixture(scope="module")
def found(site):
    """The pages, read once."""
    return {name: Page(text) for name, text in site.items() if name.endswith(".html")}


def pixels(image):
    """The bytes of a stored PNG, whatever its checksums."""
    return list(base64.b64decode(image)[50:-20])


def test_the_page_of_findings_is_what_its_facts_say(make, site):
    text = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
    assert text == make.findings.page(), "run python docs/make.py --findings"
    rows = facts.read("findings")["findings"]
    assert site["findings.html"].count("<b class='severity ") == len(rows) == text.count("\n<b class=")
    assert site["findings.html"].count("<ins>") >= sum("patch" in row for row in rows)
    assert all(f'#{row["by"].rpartition(".")[2]}"><code>' in site["findings.html"] for row in rows if "expected" in row)


def same_figure(new, old):
    """The same drawing: equal text, numbers that differ by rounding at most, and pixels by a shade."""
    images = list(zip(IMAGE.findall(new), IMAGE.findall(old), strict=False))
    shades = all(abs(a - b) <= 1 for one, two in images for a, b in zip(pixels(one), pixels(two), strict=True))
    plain = [re.sub(r"\bh[0-9a-f]{8}\b", "h", IMAGE.sub("", text)) for text in (new, old)]
    numbers = [[float(n) for n in NUMBER.findall(text)] for text in plain]
    words = [NUMBER.sub("n", text) for text in plain]
    close = len(numbers[0]) == len(numbers[1]) and all(abs(a - b) < 0.03 for a, b in zip(*numbers, strict=True))
    return shades and close and words[0] == words[1]


def test_figures_are_current(make):
    folder = ROOT / "docs" / "figures"
    made = make.files()
    assert sorted(made) == sorted(path.name for path in folder.iterdir()), "run: python docs/make.py --figures"
    for name, text in made.items():
        ElementTree.fromstring(text)
        assert same_figure(text, (folder / name).read_text(encoding="utf-8")), f"{name}: run python docs/make.py --figures"


def test_another_figure_is_noticed(make):
    one = make.files()["t5-buckets.svg"]
    assert same_figure(one, one)
    assert not same_figure(one.replace("encoder", "decoder"), one)
    assert not same_figure(re.sub(r"M30 (\d+)", "M30 1", one, count=1), one)


def test_every_system_has_a_page(site):
    for name in (*discovery.names(), *discovery.COMMON):
        page = site[f"{name}.html"]
        assert "<svg class" in page or name in WITHOUT_PICTURE, f"{name} has no picture"
        for function in discovery.system(name).functions:
            assert f'id="fn-{function}"' in page, f"{name} lacks {function}"
        for flag in ops.flags(name.split(".")[-1]) if name.split(".")[-1] in ops.names() else ():
            assert f'id="m-{flag}"' in page, f"{name} lacks the mistake {flag}"


def test_every_link_resolves(found):
    for name, page in found.items():
        assert len(page.ids) == len(set(page.ids)), f"{name}: ids that stand twice"
        for link in page.links:
            file, _, anchor = link.partition("#")
            if link.startswith("https://"):
                continue
            target = found.get(file or name)
            assert target is not None, f"{name} links to {link}"
            assert not anchor or anchor in target.ids, f"{name} links to {link}"


def test_the_index_of_the_search_resolves(site, found):
    entries = json.loads(re.search(r"entries = (\[.*?\]), form", site["site.js"], re.DOTALL)[1])
    for _, _, address, _, _ in entries:
        file, _, anchor = address.partition("#")
        assert not anchor or anchor in found[file].ids, address


def test_a_theorem_is_found_with_the_name_of_its_system(site):
    titles = {
        title: address for title, _, address, _, _ in json.loads(re.search(r"entries = (\[.*?\]), form", site["site.js"])[1])
    }
    known = [s.name for name in (*discovery.names(), *discovery.COMMON) for s in statements.about(name)]
    assert [name for name in known if ".".join(name.split(".")[-2:]) not in titles] == []


def test_texts_link_the_systems_and_mistakes_that_they_name(make, found):
    assert {f"{name}.html" for name in discovery.names()} <= set(found["systems.html"].links)
    assert {f"#{make.data.anchor(each.sees)}" for each in symptoms.SYMPTOMS} <= set(found["symptoms.html"].links)
    anchors = {anchor for page in found.values() for anchor in page.ids}
    suspects = {f"m-{flag}" for each in symptoms.SYMPTOMS for flag in each.suspects}
    assert suspects & anchors == {link.partition("#")[2] for link in found["symptoms.html"].links} & suspects
    assert len(suspects & anchors) > 40


def test_every_word_of_the_glossary_has_a_card_that_pages_link_once(site, found):
    rows = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").split("|---|---|---|\n")[1].splitlines()
    cards = {row.split("|")[1].strip().lower().replace(" ", "-") for row in rows}
    assert cards <= set(found["glossary.html"].ids)
    for name in discovery.names():
        linked = [link for link in found[f"{name}.html"].links if link.startswith("glossary.html#")]
        assert len(linked) == len(set(linked)) >= 4, name
    assert '#offset" title="key position minus query position">offsets</a>' in site["relative.t5.html"]


def test_the_steps_have_a_page_each_and_a_page_that_lists_them(site, found):
    text = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")
    heads = re.findall(r"^## (\d+\. .*)$", text, flags=re.MULTILINE)
    named = [f"start{n}.html" for n in range(1, 11)]
    assert len(heads) == 10
    assert [link for link in found["start.html"].links if link in named] == [*named, named[0]], "all, and the next"
    anchors = [re.sub(r"[^\w\s-]", "", head).lower().replace(" ", "-") for head in heads]
    assert set(anchors) <= set(found["start.html"].ids), "the addresses of the one page of before"
    for before, name, after, head in zip(["start.html", *named], named, [*named[1:], None], heads, strict=False):
        body = site[name].split("<main")[1].split("</main>")[0]
        assert head in words(body.split("</h1>")[0])
        assert body.count("data-try=") == body.count("<figure") == 1, name
        assert {before, *filter(None, [after])} <= set(Page(body).links), name


def test_every_text_is_a_page_and_each_row_of_steps_leads_on(site):
    assert {
        f"{path.stem}.html" for path in (*(ROOT / "docs").glob("*.md"), ROOT / "CONTRIBUTING.md", ROOT / "AGENTS.md")
    } <= set(site)
    turn = [Page(site[name].split('class="turn"')[1].split("</nav>")[0]).links for name in ("start.html", "start1.html")]
    assert turn == [["start1.html"], ["start.html", "start2.html"]]


def test_a_row_of_a_mistake_says_its_words_once(site):
    for name in discovery.names():
        for row in re.findall(r'<tr id="m-.*?</tr>', site[f"{name}.html"], re.DOTALL):
            bug, says = words(row.split("<small>")[0]), words(row.partition('data-l="says">')[2])
            assert len(bug) < 25 or bug not in says, f"{name}: {bug}"


def test_a_neighbour_is_one_short_sentence(site):
    for name in discovery.names():
        found = re.search(r'<section id="neighbours">(.*?)</section>', site[f"{name}.html"], re.DOTALL)
        for each in re.findall(r"<li>(.*?)<a class=\"size\"", found[1], re.DOTALL) if found else ():
            assert len(words(each)) < 300, f"{name}: {words(each)}"


def test_vectors_rotate_and_a_full_turn_is_an_angle():
    """In texts and captions; the words of the findings are recorded with their programs."""
    for path in {*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "pictures").glob("*.py")} - {ROOT / "docs" / "findings.md"}:
        text = path.read_text(encoding="utf-8")
        assert not re.findall(r"(?<!full )(?<!in )\bturn(?:s|ed|ing)?\b(?![ -](?:in)?to\b).*", text), path.name


def test_no_code_ends_with_an_empty_line(site):
    assert [name for name, text in site.items() if re.search(r"\n\n</code></pre>|</span>\n\n</pre>", text)] == []


def test_formulas_in_the_tables_of_texts_are_set(site):
    for path in (ROOT / "docs").glob("*.md"):
        for cell in re.findall(r"<td.*?</td>", site[f"{path.stem}.html"], re.DOTALL):
            shown = re.sub(r"<[^>]+>", "", re.sub(r"<code>.*?</code>", "", cell, flags=re.DOTALL))
            assert not re.search(r"\^|\w_\w|_\{|\w<|sqrt\(", shown), f"{path.name}: {shown}"


def test_the_totals_of_the_findings_link_them(site):
    rows = facts.read("findings")["findings"]
    assert {f"#{row['id']}" for row in rows} <= set(Page(site["findings.html"]).links)


def test_every_block_of_a_text_is_a_formula_or_has_a_language(site):
    for name, text in site.items():
        assert not re.search(r"<pre><code>|language-math|\$<code>", text), name


def test_the_first_page_says_how_to_begin(site):
    links = Page(site["index.html"].split('id="map"')[0].split("<main")[1]).links
    assert {"start.html", "symptoms.html", "longer.html", "compare.html", "findings.html"} <= set(links)
    assert "pip install" in words(site["index.html"]).split("Four places")[0]


def test_the_traps_of_a_model_are_not_folded(site):
    shown = re.sub(r"<details>.*?</details>", "", site["models.html"], flags=re.DOTALL)
    assert shown.count("Trap: ") == sum(len(explain(name)["traps"]) for name in sources.models()) > 20


def test_nothing_is_loaded_from_elsewhere(site, found):
    for name, page in found.items():
        assert {address.split(",")[0].split(";")[0] for address in page.loaded} <= {
            "style.css",
            "site.js",
            "start.js",
            "compare.js",
            "data:image/svg+xml",
            "data:image/png",
        }, name
    assert "http" not in site["style.css"]


def test_formulas_and_pictures_are_well_formed(site):
    count = 0
    for name, text in site.items():
        for part in re.findall(r"<math.*?</math>|<svg.*?</svg>", text, re.DOTALL) if name.endswith(".html") else ():
            ElementTree.fromstring(part)
            count += 1
    assert count > 150


def test_a_formula_is_read(make):
    read = make.text.mathml
    assert "<msub><mi>q</mi><mrow><mi>i</mi></mrow></msub><mo>\N{MIDDLE DOT}</mo>" in read("q_i . k_j")
    assert "<msubsup>" in read("a^K_ij")
    assert '<mrow><mo form="prefix">\N{MINUS SIGN}</mo><mn>2</mn>' in read("b^(-2t)")
    assert read("n^(2 (c - 1) / 2)").count("<msup>") == 1
    assert "<mo>\N{LEFT FLOOR}</mo><mi>x</mi>" in read("floor(x)")
    assert "<msqrt><mi>d</mi></msqrt>" in read("q / sqrt(d)")
    assert "<munder>" in read("sum_j a_ij v_j")
    assert "<msup><mi>w</mi><mo>\N{PRIME}</mo></msup>" in read("L |w' - w|"), "a letter with a prime is italic, as the letter"
    assert "\N{MATHEMATICAL LEFT ANGLE BRACKET}" not in read("prod_{j<l<i} z_l")


def test_latex_is_read(make):
    """As forges show it; a command that is not known is an error, not a word."""
    read, given = make.text.mathml, make.text.from_latex
    assert given(r"|w'| \le \mathrm{base}^{-2t/d} \to \sum_t \cos(o w_t)") == "|w'| <= base^{-2t/d} -> sum_t cos(o w_t)"
    assert read(given(r"\frac{b - a}{2 \pi}")) == read("(b - a) / (2 pi)")
    assert '</mi><mspace width="0.2em"/><mfrac>' in read(given(r"\log \frac{2 (n - 1)}{\pi}")), "no numerator has the log"
    with pytest.raises(KeyError, match="mathfrak"):
        given(r"\mathfrak{a}")


@pytest.mark.parametrize(
    ("formula", "above", "below"),
    [
        ("q_i . k_j / sqrt(d) + b", "qi\N{MIDDLE DOT}kj", "d"),
        ("(p_k - p_0) / (1 - r)", "pk\N{MINUS SIGN}p0", "1\N{MINUS SIGN}r"),
        ("a + (1 - c_t) w_t / s + x", "(1\N{MINUS SIGN}ct)wt", "s"),
        ("L / 2 pi beta", "L", "2\u03c0\u03b2"),
        ("1 + ln s / ln L", "lns", "lnL"),
        ("(a + b) (c + d) / n", "(a+b)(c+d)", "n"),
        ("h / (8 a) sum_t x_t", "h", "8a"),
    ],
)
def test_a_fraction_has_its_factors_above_and_below(make, formula, above, below):
    (fraction,) = re.findall(
        r"<mfrac><mrow>(.*)</mrow><mrow>(.*?)</mrow></mfrac>", make.text.mathml(formula).replace("\u200b", "")
    )
    assert tuple(html.unescape(re.sub(r"<[^>]+>", "", part)) for part in fraction) == (above, below)


def test_a_sentence_is_set_with_whole_formulas_and_no_sign_of_html(make, site):
    known = statements.statements().values()
    said = [each for c in claims.claims() for each in (c.sentence, c.truth)]
    said += [s.statement for s in known] + [r.sentence for s in known for r in s.refuted]
    for sentence in said:
        shown = re.sub(r"<code>.*?</code>", "", make.text.pretty(sentence))
        assert not re.search(r"\^|_\{|\w_\w|\0", re.sub(r"<[^>]+>", "", shown)), sentence
        assert re.sub(r"[^()]", "", re.sub(r"<[^>]+>", "", shown)).count("(") <= sentence.count("("), sentence
        for formula in re.findall(r"<math.*?</math>", shown):
            marked = [each for each in ElementTree.fromstring(formula).iter() if re.match("msu|mfrac|msqrt", each.tag)]
            inner = ["".join(part.itertext()) for each in marked for part in each]
            assert all(text.count(a) == text.count(b) for text in inner for a, b in ("()", "[]", "{}")), sentence
    for name, text in site.items():
        assert not name.endswith(".html") or not re.search(r"&amp;(lt|gt|amp|quot|#\d+);", text), name


def words(text):
    """A page without tags and its space; what marks a quotation is a quotation mark."""
    text = re.sub(r"</?(?:q|blockquote|cite)\b[^>]*>", '"', text)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", text)).split())


def test_a_claim_shows_its_source_and_is_not_in_quotation_marks_without_one(make, site):
    texts = {name: words(text) for name, text in site.items() if name.endswith(".html")}
    for claim in claims.claims():
        sentence = words(make.text.pretty(claim.sentence))
        file = f"{claim.by.partition('/')[0].rpartition('.')[0]}.html"
        assert file not in texts or sentence in texts[file], sentence
        for name, text in texts.items():
            assert not quoted(sentence, text), name
            for found in re.finditer(re.escape(sentence), text) if claim.source else ():
                heads = [
                    text.rfind(said, 0, found.start())
                    for said in (claims.SOURCES[claim.source], *claims.SOURCES.values())
                    if said
                ]
                said_above = name == "claims.html" and heads[0] == max(heads) > 0
                assert said_above or text[found.end() :].startswith(f"source: {claims.SOURCES[claim.source]}"), name
    assert texts["claims.html"].count("source: ") == 0, "each heading is the source of what stands below it"
    assert not re.search(r"(open|close)-quote|content:\s*(['\"])(\\?['\"\u2018-\u201f\u00ab\u00bb])", site["style.css"])


@pytest.mark.slow
def test_same_bytes_twice(tmp_path):
    for name, seed in (("one", "1"), ("two", "2")):
        command = [sys.executable, MAKE, "-o", tmp_path / name]
        subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, check=True, capture_output=True)
    first, second = ({p.name: p.read_bytes() for p in (tmp_path / name).iterdir()} for name in ("one", "two"))
    assert first == second
    assert len(first) > 30


def test_ours_is_small():
    """A site of at most 1050 lines of ours, a third of them set formulas; the pictures are counted apart."""
    lines = [path.read_text(encoding="utf-8").splitlines() for path in (MAKE, *(ROOT / "docs" / "pages").rglob("*.*"))
             if path.suffix in (".py", ".html", ".css", ".js")]  # fmt: skip
    assert sum(map(len, lines)) <= 1050


def test_the_first_page_has_the_five_uses_of_the_readme(make):
    titles = [title for title, _ in make.first_page()["uses"]]
    assert len(titles) == 5
    assert all(len(title) < 40 for title in titles), titles
