"""From the plain text of docstrings to HTML: formulas as MathML, statements with indices, Python with colours.

The formulas are in the house's own ASCII: q_i . k_j, n^L, theta_t, e^{L-k}, floor(x), sum_j. A line of a Definition may have a
name before the formula and a note behind it, parted by three blanks or more.
"""

import re
from html import escape
from unicodedata import lookup

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonConsoleLexer, PythonLexer

LETTERS = ("theta", "delta", "alpha", "phi", "pi", "beta", "zeta", "lamda")  # lambda, as Unicode spells it
GREEK = {name.replace("lamda", "lambda"): lookup(f"GREEK SMALL LETTER {name.upper()}") for name in LETTERS}
LARGE = {"sum": "\N{N-ARY SUMMATION}", "integral": "\N{INTEGRAL}"}
MINUS, DOT, DOTS, NOT_EQUAL = "\N{MINUS SIGN}", "\N{MIDDLE DOT}", "\N{HORIZONTAL ELLIPSIS}", "\N{NOT EQUAL TO}"
AT_MOST, AT_LEAST, TO = "\N{LESS-THAN OR EQUAL TO}", "\N{GREATER-THAN OR EQUAL TO}", "\N{RIGHTWARDS ARROW}"
LEFT, RIGHT = "\N{MATHEMATICAL LEFT ANGLE BRACKET}", "\N{MATHEMATICAL RIGHT ANGLE BRACKET}"
WORDS = {"<=": AT_MOST, ">=": AT_LEAST, "->": TO, "!=": NOT_EQUAL, "..": DOTS, "-": MINUS}
SIGNS = WORDS | {".": DOT, "*": DOT, "<": LEFT, ">": RIGHT, " < ": "<", " > ": ">", "~-": MINUS}
UPRIGHT = {"low", "high", "key", "query", "head", "max", "min", "released", "paper", "size", "idx", "sink"}
TOKEN = re.compile(r" [<>] |\s+|<=|>=|->|!=|\.\.|[A-Za-z]+\d?[a-z]?(?![a-z])|\d+(?:\.\d+)?|[_^]|.")


def mathml(formula):
    """One formula as MathML."""
    return f'<math displaystyle="true"><mrow>{_row(TOKEN.findall(formula))}</mrow></math>'


def _row(tokens):
    tokens, out, i = _prefixed(tokens), [], 0
    while i < len(tokens):
        item, i = _atom(tokens, i)
        marks = {}
        while i < len(tokens) - 1 and tokens[i] in ("_", "^"):
            marks[tokens[i]], i = _mark(tokens, i)
        kind = {"_": "sub", "^": "sup", "_^": "subsup", "": ""}["".join(sorted(marks, reverse=True))]
        body = item + "".join(f"<mrow>{marks[m]}</mrow>" for m in "_^" if m in marks)
        out.append(f"<m{kind}>{body}</m{kind}>" if kind else item)
    return "".join(out)


def _prefixed(tokens):
    """A minus that begins a term is told from one between two."""
    before = ["", *(t for t in tokens if not t.isspace())]
    at = iter(before)
    return [t if t.isspace() else "~-" if next(at) in ("", "(", ",", "=", "[") and t == "-" else t for t in tokens]


def _mark(tokens, i):
    """What stands behind a _ or ^ at i."""
    if tokens[i + 1] in "{(":
        return _balanced(tokens, i + 2, tokens[i + 1])
    word = tokens[i + 1]
    if word.isalpha() and word not in GREEK:
        return (f"<mtext>{word}</mtext>" if word in UPRIGHT else "".join(f"<mi>{c}</mi>" for c in word)), i + 2
    return _atom(tokens, i + 1)


def _atom(tokens, i):
    t = tokens[i]
    after = tokens[i + 1] if i + 1 < len(tokens) else ""
    if t.isspace():
        return ('<mspace width="1.2em"/>' if len(t) > 2 else ""), i + 1
    if t == "floor" and after == "(":
        inner, end = _balanced(tokens, i + 2)
        return f"<mrow><mo>\N{LEFT FLOOR}</mo>{inner}<mo>\N{RIGHT FLOOR}</mo></mrow>", end
    if t[0].isalpha():
        if t in LARGE:
            return f"<mo>{LARGE[t]}</mo>", i + 1
        if t in GREEK or len(t) == 1:
            return f"<mi>{GREEK.get(t, t)}</mi>", i + 1
        if len(t) == 2 and t.isalpha() and t not in ("is", "of", "or", "in", "at", "if", "as", "so", "to", "by", "on"):
            return "".join(f"<mi>{c}</mi>" for c in t) if t.islower() and t != "ln" else f"<mi>{t}</mi>", i + 1
        if after in ("(", "_", "^", "[", ")") or t in ("scale", "base", "dim", "log", "ln", "sin", "cos"):
            return f'<mi mathvariant="normal">{t}</mi>', i + 1
        return f"<mtext>&#160;{t}&#160;</mtext>", i + 1
    if t[0].isdigit():
        return f"<mn>{t}</mn>", i + 1
    still = ' stretchy="false"' if t in "()[]|" else ' form="prefix"' if t == "~-" else ""
    still += ' lspace="0" rspace="0"' if t == "|" else ""
    return f"<mo{still}>{escape(SIGNS.get(t, t))}</mo>", i + 1


def _balanced(tokens, i, opening="("):
    """What stands between the opening bracket before i and its closing one, and where it ends."""
    closing, depth, end = {"(": ")", "{": "}"}[opening], 1, i
    while end < len(tokens) and depth:
        depth += (tokens[end] == opening) - (tokens[end] == closing)
        end += 1
    return _row(tokens[i : end - 1]), end


def formula(line):
    """(name, formula or words, note) of one line of a Definition, as HTML."""
    named = re.match(r"([a-z]\w+|\([a-d]\))\s{2,}(?![=-])(.*)", line.strip())
    name, rest = named.groups() if named else ("", line.strip())
    body, *parts = [part.strip(" ,") for part in re.split(r"\s{3,}", rest)]
    words = len(re.findall(r"\b[a-z]{3,}\b(?![(_])", body)) > 4
    return name, pretty(body) if words else mathml(body), "; ".join(pretty(part) for part in parts)


def pretty(text):
    """A sentence in plain text: indices, powers, Greek letters, names of code."""
    held = []

    def hold(html):
        held.append(html)
        return f"\0{len(held) - 1}\0"

    text = re.sub(r"`([^`]+)`", lambda m: hold(f"<code>{escape(m[1])}</code>"), text)
    named = r"\b(?:\w+\.)+\w+_\w+|\b[a-z]{2,}(?:_[a-z0-9]{2,})+\b|\b[a-z]\w+=\"[^\"]*\"|\b\w+=(?:True|False|None)\b|\b\w+\.py\b"
    text = re.sub(named, lambda m: m[0] if re.match(r"sum_|theta_", m[0]) else hold(f"<code>{escape(m[0])}</code>"), text)
    text = re.sub(
        r"\*\*([^*]+)\*\*|(?<![\w*])\*([^*\s][^*]*)\*(?![\w*])", lambda m: hold(f"<b>{escape(m[1] or m[2])}</b>"), text
    )
    text = re.sub(r"<([^<>]{1,40}?, [^<>]{1,40}?)>", rf"{LEFT}\1{RIGHT}", text)
    text = re.sub(
        r"\bsum_(\{[^}]*\}|\w)",
        lambda m: hold(f"\N{GREEK CAPITAL LETTER SIGMA}<sub>{m[1].strip('{}')}</sub>"),
        escape(text, quote=False),
    )
    for name, letter in GREEK.items():
        text = re.sub(rf"(?<![A-Za-z]){name}(?![a-z])", letter, text)
    text = re.sub(r"(?<=[A-Za-z\u03b1-\u03c9|)\]'])_\{([^}]+)\}", r"<sub>\1</sub>", text)
    text = re.sub(r"(?<![A-Za-z_])([A-Za-z\u03b1-\u03c9]'?)_(\w{1,2}(?:[+-]1)?)(?!\w)", r"\1<sub>\2</sub>", text)
    inner = r"(?:[^()]|\((?:[^()]|\([^()]*\))*\))+"  # brackets of a power hold brackets
    power = rf"\^(?:\{{([^}}]+)\}}|(-?)\(({inner})\)|(-?(?:\w+|\0\d+\0)))"
    text = re.sub(power, lambda m: f"<sup>{m[1] or m[4] or (f'-({m[3]})' if m[2] else m[3])}</sup>", text)
    text = re.sub(r"\bsqrt\((\w+)\)", "\N{SQUARE ROOT}\\1", text)
    text = re.sub(r"(?<![\w.])([A-Za-z](?:<sub>\w+</sub>)?) \. ([A-Za-z])(?![a-z])", rf"\1 {DOT} \2", text)
    for sign, looks in WORDS.items():
        text = text.replace(f" {escape(sign)} ", f" {looks} ")
    return re.sub("\0(\\d+)\0", lambda m: held[int(m[1])], text)


def prose(text):
    """Paragraphs, lists, indented lines and examples of a docstring."""
    out = []
    for paragraph in filter(None, (p.rstrip() for p in text.split("\n\n"))):
        if ">>>" in paragraph:
            out.append(console(paragraph))
        elif paragraph.startswith("    "):
            out.append("".join(f'<div class="ind">{pretty(line.strip())}</div>' for line in paragraph.split("\n")))
        elif paragraph.startswith("* "):
            out.append(
                "<ul>" + "".join(f"<li>{pretty(' '.join(i.split()))}</li>" for i in paragraph[2:].split("\n* ")) + "</ul>"
            )
        else:
            out.append(f"<p>{pretty(' '.join(paragraph.split()))}</p>")
    return "".join(out)


def linked(text):
    """References: numbers of arXiv and articles of kexue.fm are links."""
    text = re.sub(r"(?:arXiv )?\b(\d{4}\.\d{5})\b", r'<a href="https://arxiv.org/abs/\1">arXiv \1</a>', pretty(text))
    return re.sub(r"\bkexue\.fm/archives/(\d+)", r'<a href="https://kexue.fm/archives/\1">kexue.fm \1</a>', text)


def python(source):
    return highlight(source, PythonLexer(), HtmlFormatter(cssclass="code"))


def console(source):
    return highlight(source, PythonConsoleLexer(), HtmlFormatter(cssclass="code ex"))


def witness(text, longest=230):
    """Numbers of a refutation in readable signs, cut where they are many."""
    small = str.maketrans("0123456789", "\u2080\u2081\u2082\u2083\u2084\u2085\u2086\u2087\u2088\u2089")
    text = re.sub(r"(?<=[a-z])_(\d+)(?:_(\d+))?", lambda m: (m[1] + (m[2] or "")).translate(small), text)
    for a, b in (("**", "^"), ("*", DOT), ("!=", NOT_EQUAL), (" - ", f" {MINUS} ")):
        text = text.replace(a, b)
    return escape(text if len(text) <= longest else f"{text[: longest // 2]} {DOTS} {text[-longest // 2 :]}")
