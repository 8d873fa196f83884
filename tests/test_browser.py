"""The site in a real browser: Chromium, driven by playwright; skipped if one of them is missing.

pip install playwright, apt-get install chromium, python -m pytest -m slow tests/test_browser.py
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from posref.explain import explain
from posref.rotary import rope

pytestmark = pytest.mark.slow
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ROOT = Path(__file__).resolve().parents[1]
SCREENS = [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]
TALLEST = 12_000  # pixels of a page of a system, as it opens, at 1280
CLIPPED = """[...document.querySelectorAll("main *, header, footer, aside")].filter(e => {
  const box = e.getBoundingClientRect();
  const hidden = getComputedStyle(e).overflowX != "visible" && e.scrollWidth > e.clientWidth + 1;
  return box.width && (hidden || (!e.children.length && box.right > innerWidth + 1));
}).map(e => `${e.tagName} ${e.textContent.trim().slice(0, 60)}`)"""
COLLIDING = """[...document.querySelectorAll("main svg")].flatMap(svg => {
  const found = [...svg.querySelectorAll("text")].map(e => [e.textContent, e.getBoundingClientRect()]).filter(f => f[1].width);
  return found.flatMap(([one, a], i) => found.slice(i + 1).filter(([, b]) =>
    Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > a.height / 4
  ).map(([other]) => `${one} | ${other}`));
})"""
BROKEN = """[...document.querySelectorAll("td:first-child code")].filter(
  e => !/\\s/.test(e.textContent) && new Set([...e.getClientRects()].map(r => r.top)).size > 1).map(e => e.textContent)"""
TORN = """[...document.querySelectorAll(".seen a, .text td")].flatMap(e => {
  const walk = document.createTreeWalker(e, NodeFilter.SHOW_TEXT), range = document.createRange(), found = [];
  while (walk.nextNode()) for (const word of walk.currentNode.textContent.matchAll(/[^\\s/._-]+(?:e-\\d+)?/g)) {
    range.setStart(walk.currentNode, word.index);
    range.setEnd(walk.currentNode, word.index + word[0].length);
    if (new Set([...range.getClientRects()].map(r => r.top)).size > 1) found.push(word[0]);
  }
  return found;
})"""
SPLIT = TORN.replace(".seen a, .text td", ".text :not(pre) > code, .cmd").replace(r"[^\s/._-]+(?:e-\d+)?", r"--\w[\w-]*")
SMALL = """[...document.querySelectorAll("main *, header *, footer *")].filter(e =>
  [...e.childNodes].some(n => n.nodeType == 3 && n.textContent.trim()) && e.getClientRects().length
  && !e.closest("script, select")
).filter(e => {
  const drawn = e.closest("svg"), size = parseFloat(getComputedStyle(e).fontSize) * (drawn ? e.getScreenCTM().a : 1);
  return size < (drawn || e.closest("math") ? 8.9 : 11);
}).map(e => `${e.tagName} ${e.textContent.trim().slice(0, 60)}`)"""
LAPPING = """[...document.querySelectorAll(".math .f")].flatMap(line => {
  const parts = [...line.querySelectorAll("math")].map(m => m.getBoundingClientRect());
  return parts.slice(1).filter((b, i) =>
    Math.min(b.right, parts[i].right) - Math.max(b.left, parts[i].left) > 1 && b.top < parts[i].bottom - 1
  ).map(() => line.textContent);
})"""
EDGES = """new Set([".name", document.querySelector(".toc p")?.offsetParent ? ".toc p" : "h1", "footer p + p"].map(at => {
  const range = document.createRange();
  range.selectNodeContents(document.querySelector(at));
  return Math.round(range.getBoundingClientRect().left / 3);
})).size"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    pytest.importorskip("playwright", reason="the browser is driven by playwright")
    if BROWSER is None:
        pytest.skip("no Chromium is installed")
    made = tmp_path_factory.mktemp("site")
    subprocess.run([sys.executable, ROOT / "docs" / "make.py", "-o", made], check=True, capture_output=True)
    return made


@pytest.fixture(scope="module")
def browser(folder):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as run:
        opened = run.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def page(browser):
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.complaints = []
    page.on("console", lambda message: page.complaints.append(message.text))
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.on("requestfailed", lambda request: page.complaints.append(request.url))
    yield page
    context.close()


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_every_page_fits_and_says_nothing(page, folder, width, scheme):
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    files = sorted(folder.glob("*.html"))
    assert len(files) > 30
    for file in files:
        page.goto(file.as_uri())
        wider = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wider <= 0, f"{file.name} is {wider} pixels wider than a screen of {width}"
        assert page.complaints == [], file.name


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_clipped_and_no_labels_collide(page, folder, width):
    """With everything unfolded; a page of a system is at most so tall before."""
    page.set_viewport_size({"width": width, "height": 900})
    for file in sorted(folder.glob("*.html")):
        page.goto(file.as_uri())
        if width == 1280 and "." in file.stem:
            assert page.evaluate("document.documentElement.scrollHeight") <= TALLEST, file.name
        assert width < 1280 or page.evaluate(BROKEN) == [], file.name
        assert page.evaluate(EDGES) == 1, f"{file.name}: header, title and footer do not begin at one edge"
        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert page.evaluate(CLIPPED) == [], file.name
        assert page.evaluate(COLLIDING) == [], file.name
        assert page.evaluate(LAPPING) == [], file.name
        assert page.evaluate(SMALL) == [], file.name
        assert width < 1280 or page.evaluate(TORN) == [], file.name
        assert page.evaluate(SPLIT) == [], f"{file.name}: a line ends in the dashes of an option"
        assert file.stem != "index" or page.evaluate(COLLIDING.replace("> 1\n", "> -4\n")) == [], "labels of the map touch"


def test_a_folded_mistake_is_shown_where_an_address_names_it(page, folder):
    page.goto((folder / "rotary.rope.html").as_uri() + "#fn-rotate")
    assert page.is_visible("#fn-rotate h3")


def test_dark_is_dark(page, folder):
    shade = "parseInt(getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0])"
    page.goto((folder / "index.html").as_uri())
    page.emulate_media(color_scheme="light")
    assert page.evaluate(shade) > 200
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(shade) < 60


@pytest.mark.parametrize(
    ("words", "address"),
    [
        ("bloom", "relative.alibi.html"),
        ("yarn", "rotary.scaling.html"),
        ("deepseek-v3", "models.html#DeepSeek-V3"),
        ("t5.bucket", "relative.t5.html#fn-bucket"),
        ("left padding", "symptoms.html"),
        ("gibberish", "symptoms.html"),
        ("kv cache", "symptoms.html"),
        ("where do I start?", "start.html"),
        ("install", "start.html"),
        ("binary digits", "start4.html"),
        ("compare", "compare.html"),
        ("which scaling", "longer.html"),
        ("inverse frequency", "glossary.html#frequency"),
        ("deepseek", "models.html#DeepSeek"),
        ("m-rope", "rotary.axes.html"),
        ("c++", "use.html"),
        ("transformers#25199", "rotary.rope.html#m-"),
    ],
)
def test_search_finds(page, folder, words, address):
    page.goto((folder / "index.html").as_uri())
    page.keyboard.press("/")
    page.keyboard.type(words)
    links = page.eval_on_selector_all("#search li a", "found => found.map(a => a.getAttribute('href'))")
    assert any(link.startswith(address) for link in links[:3]), links
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/" + links[0])
    assert page.complaints == []


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("why does a transformer need positions", "start.html"),
        ("pairs", "rotary.layouts.html"),
        ("garbage after 4096 tokens", "symptoms.html#short-texts-are-right-beyond-some-length-the-text-turns-to-nonsense"),
        ("off by one", "symptoms.html#output-with-a-kv-cache-differs-from-output-without-a-kv-cache"),
        ("left padding", "symptoms.html#a-text-alone-is-right-in-a-batch-with-padding-it-is-not"),
        ("which one for long context?", "longer.html"),
        ("which scaling for 128k", "longer.html"),
        ("why does RoPE work?", "start.html"),
        ("meta-llama/Llama-3.1-8B", "models.html#Llama-3.1-8B"),
        ("compare llama and qwen", "compare.html"),
        ("normal form", "trust.html"),
        ("what is proved", "trust.html"),
        ("is my library wrong", "findings.html"),
        ("add a new system", "CONTRIBUTING.html"),
        ("released vectors", "use.html"),
        ("what an encoding should be", "systems.html"),
    ],
)
def test_a_question_has_its_page_first(page, folder, question, first):
    page.goto((folder / "index.html").as_uri())
    page.fill("#search input", question)
    assert page.get_attribute("#search li a >> nth=0", "href") == first


def test_search_says_when_there_is_nothing(page, folder):
    page.goto((folder / "index.html").as_uri())
    page.fill("#search input", "zzzz")
    assert "Nothing" in page.inner_text("#search ul")
    page.keyboard.press("Escape")
    assert page.is_hidden("#search ul")


def test_every_anchor_is_reached(page, folder):
    for file in sorted(folder.glob("*.html")):
        page.goto(file.as_uri())
        inner = page.evaluate(
            "[...document.querySelectorAll('a[href^=\"#\"]')].filter(a => !document.getElementById(a.hash.slice(1))).length"
        )
        assert inner == 0, file.name


def test_it_reads_without_scripts(browser, folder):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((folder / "rotary.rope.html").as_uri())
    assert page.is_visible("math >> nth=0")
    assert page.is_hidden("#search")
    context.close()


@pytest.mark.parametrize(("query", "key"), [(0, 3), (17, 20), (40, 33)])
def test_the_sliders_of_the_rotation_have_the_score_of_posref(page, folder, query, key):
    """q = (1, 2), k = (3, -1), 0.5 radians per token, as in the code of the page."""
    page.goto((folder / "start6.html").as_uri())
    for slider, position in zip(page.locator("[data-try=rope] input").all(), (query, key), strict=True):
        slider.fill(str(position))
    turned = [
        rope.rotate(np.array([x]), *rope.tables(np.array([at]), np.array([0.5])), layout="interleaved")[0]
        for x, at in (([1.0, 2.0], query), ([3.0, -1.0], key))
    ]
    assert f"offset {key - query}: score {turned[0] @ turned[1]:.4f}." in page.inner_text("[data-try=rope] p")
    assert page.complaints == []


@pytest.mark.parametrize(
    ("first", "second"), [("Llama-2-7b-hf", "Llama-3.1-8B"), ("t5-base", "gemma-3-4b"), ("gpt2-medium",) * 2]
)
def test_two_models_are_compared(page, folder, first, second):
    page.goto((folder / "compare.html").as_uri())
    for select, name in zip(page.locator(".compare select").all(), (first, second), strict=True):
        select.select_option(name)
    read = "rows => rows.map(r => [r.className, ...[...r.cells].map(c => c.textContent)])"
    rows = page.eval_on_selector_all(".compare tbody tr", read)
    assert all((kind == "unlike") == (a != b) for kind, _, a, b in rows)
    differing = dict.fromkeys(word for kind, word, _, _ in rows if kind == "unlike")
    assert page.inner_text(".compare p") == (f"Different: {', '.join(differing)}." if differing else "Nothing differs.")
    for column, name in ((2, first), (3, second)):
        layers = explain(name)["layers"]
        scales = [float(row[column].split()[0]) for row in rows if row[1] == "scale" and row[column] != "\N{EN DASH}"]
        assert sorted(scales) == pytest.approx(sorted(each["softmax_scale"] for each in layers))
    assert page.locator(".compare polyline").count() == sum(
        bool(g["frequencies"]) for n in (first, second) for g in explain(n)["layers"]
    )
    assert page.complaints == []


@pytest.mark.parametrize(
    ("first", "second", "abreast"),
    [
        ("gpt-oss-20b", "Llama-3.1-8B", ["sliding|", "full|full"]),
        ("Llama-3.1-8B", "gemma-3-4b", ["full|text full", "|text sliding", "|vision full"]),
        ("Mistral-7B-Instruct-v0.3", "DeepSeek-V4-Flash", ["full|sliding", "|compressed", "|heavily"]),
        ("t5-base", "Llama-3.1-8B", ["encoder full|", "decoder full|full", "decoder cross|"]),
        (
            "Qwen2.5-VL-7B-Instruct",
            "gemma-3-4b",
            ["vision window|", "vision full|vision full", "text full|text full", "|text sliding"],
        ),
    ],
)
def test_layers_of_one_kind_stand_side_by_side(page, folder, first, second, abreast):
    page.goto((folder / "compare.html").as_uri())
    for select, name in zip(page.locator(".compare select").all(), (first, second), strict=True):
        select.select_option(name)
    rows = page.eval_on_selector_all(".compare tbody tr", "rows => rows.map(r => [...r.cells].map(c => c.textContent))")
    form = re.compile(r"^(?:([a-z]+)(?:_config)?: )?.*\(\d+, (\w+).*|.*")
    assert ["|".join(form.sub(r"\1 \2", said).strip() for said in row[1:]) for row in rows if row[0] == "layers"] == abreast


def test_every_slider_draws_and_says_something_else(page, folder):
    for step in range(1, 11):
        page.goto((folder / f"start{step}.html").as_uri())
        (box,) = page.locator("div.try").all()
        before = box.locator("svg").inner_html(), box.locator("p").inner_text()
        for slider in box.locator("input").all():
            slider.fill("13")
        assert all(
            a != b for a, b in zip(before, (box.locator("svg").inner_html(), box.locator("p").inner_text()), strict=True)
        ), step
