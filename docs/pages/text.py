"""From the plain text of docstrings to HTML: formulas as MathML, in lines of their own and in sentences; Python with colours.

The formulas are in the house's own ASCII: q_i . k_j, n^L, theta_t, e^{L-k}, floor(x), sum_j, sqrt(d). A division with spaces
around it is a fraction, one without is a slash. A line of a Definition may have a name before the formula and a note behind it,
parted by three blanks or more.
"""

import re
from functools import cache
from html import escape
from itertools import accumulate
from unicodedata import lookup

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonConsoleLexer, PythonLexer

LETTERS = "theta delta alpha phi pi beta zeta tau rho omega lamda"  # lambda, as Unicode spells it
GREEK = {name.replace("lamda", "lambda"): lookup(f"GREEK SMALL LETTER {name.upper()}") for name in LETTERS.split()}
LARGE = {"sum": "\N{N-ARY SUMMATION}", "prod": "\N{N-ARY PRODUCT}", "integral": "\N{INTEGRAL}"}
MINUS, DOT, DOTS, NOT_EQUAL = "\N{MINUS SIGN}", "\N{MIDDLE DOT}", "\N{HORIZONTAL ELLIPSIS}", "\N{NOT EQUAL TO}"
AT_MOST, AT_LEAST, TO = "\N{LESS-THAN OR EQUAL TO}", "\N{GREATER-THAN OR EQUAL TO}", "\N{RIGHTWARDS ARROW}"
LEFT, RIGHT, PRIME = "\N{MATHEMATICAL LEFT ANGLE BRACKET}", "\N{MATHEMATICAL RIGHT ANGLE BRACKET}", "\N{PRIME}"
WORDS = {"<=": AT_MOST, ">=": AT_LEAST, "->": TO, "!=": NOT_EQUAL, "..": DOTS, "-": MINUS, "+-": "\N{PLUS-MINUS SIGN}"}
SIGNS = WORDS | {".": DOT, "*": DOT, "~-": MINUS}
UPRIGHT = {"low", "high", "key", "query", "head", "max", "min", "released", "paper", "size", "idx", "sink", "fast", "slow"}
FUNCTIONS = {"ln", "log", "sin", "cos", "tanh", "exp", "log_8"}
NAMED = {"sin", "cos", "exp", "ln", "log", "max", "min", "clip", "floor", "ceil", "sqrt", "sign", "Re", "dim", "base", "scale"}
NAMED |= {"low", "high", "mscale", "softmax", "sigmoid", "relu", "tanh", "conj", *LARGE, *GREEK}
SMALL_WORDS = ("is", "of", "or", "in", "at", "if", "as", "so", "to", "by", "on", "an", "it", "no", "we", "be")
TOKEN = re.compile(r"\s+|<=|>=|->|!=|\.\.|[A-Za-z]+\d?[a-z]?(?![a-z])|\d+(?:\.\d+)?|[_^]|.")
CLOSING = {"(": ")", "{": "}", "[": "]", LEFT: RIGHT, "|": "|"}
APART = {"=", "+", "<", ">", ",", ";", ":", "~-", *WORDS}  # what parts two terms
OPENING = "([{" + LEFT
BREAKS = {"=", "<=", ">=", "->", "+", "-"}
LATEX = {"le": "<=", "ge": ">=", "to": "->", "frac": "frac", "quad": "", ",": " "} | {name: name for name in NAMED}
ANGLES = re.compile(r"<([^<>=]{1,60}?, [^<>=]{1,60}?)>")


def mathml(formula, display="block"):
    """One formula as MathML, in pieces between which a line can break; in a line of its own, sums have their limits below."""
    tokens = _prefixed(TOKEN.findall(ANGLES.sub(rf"{LEFT}\1{RIGHT}", formula)))
    pieces, depth, loose = [[]], 0, set()
    for i, t in enumerate(tokens):
        if t == "(" and depth == 0 and _is_loose(tokens, i):
            loose |= {i, _closing(tokens, i)}
        depth += (t in OPENING) - (t in ")]}" + RIGHT) if i not in loose else 0
        breaks = (t in BREAKS and tokens[i - 1].isspace()) or (len(t) > 2 and t.isspace()) or (t == "(" and i in loose)
        if depth == 0 and breaks and pieces[-1]:
            pieces.append([])
        pieces[-1].append(t)
        if depth == 0 and t == ",":
            pieces.append([])
    style = ' displaystyle="true"' if display == "block" else ""
    return "\u200b".join(f"<math{style}><mrow>{_row(piece)}</mrow></math>" for piece in pieces if piece)


def from_latex(formula):
    """A formula in LaTeX, which a forge typesets, in the house's own ASCII, where a fraction may also be frac{a}{b}."""
    return re.sub(r"\\([A-Za-z]+|.)", lambda m: LATEX[m[1]], re.sub(r"\\mathrm\{(\w+)\}", r"\1", formula))


def _is_loose(tokens, i):
    """Whether a line may break between the bracket at i and its end: it begins and ends a term, and is no argument."""
    end = _closing(tokens, i)
    after = [t for t in tokens[end + 1 :] if not t.isspace()][:1] if end else ["/"]
    before = "".join(tokens[:i])
    return (not after or after[0] in (*BREAKS, ",")) and not re.search(r"[\w^]$|/\s*$", before)


def _closing(tokens, i):
    """The place of the bracket that closes the one at i, or None."""
    if tokens[i] == "|":
        return next((j for j in range(i + 1, len(tokens)) if tokens[j] == "|"), None)
    depths = accumulate((t == tokens[i]) - (t == CLOSING[tokens[i]]) for t in tokens[i:])
    return next((i + n for n, depth in enumerate(depths) if depth == 0), None)


def _prefixed(tokens):
    """A minus that begins a term is told from one between two."""
    before = ["", *(t for t in tokens if not t.isspace())]
    at = iter(before)
    return [t if t.isspace() else "~-" if next(at) in ("", *CLOSING, ",", "=", "/", "->") and t == "-" else t for t in tokens]


def _row(tokens, fractions=True):
    """Terms; the factors before a spaced / are the numerator, the factor behind it (or, of a wide one, all) the denominator."""
    out, start, i = [], 0, 0
    while i < len(tokens):
        if fractions and tokens[i] == "/" and 0 < i < len(tokens) - 2 and tokens[i - 1].isspace():
            wide = len(tokens[i - 1]) > 1
            below, i = (_row(tokens[i + 2 :]), len(tokens)) if wide else _denominator(tokens, i + 2)
            out[start:] = [f"<mfrac><mrow>{_bare(out[start:])}</mrow><mrow>{_bare([below])}</mrow></mfrac>"]
            continue
        ends = tokens[i] in APART or (len(tokens[i]) > 2 and tokens[i].isspace())
        item, i = _factor(tokens, i, fractions)
        out.append(item)
        start = len(out) if ends else start
    return "".join(out)


def _denominator(tokens, i):
    """The factor at i; behind a plain number the letters too, as in 2 pi."""
    item, end = _factor(tokens, i)
    letter = lambda t: t in GREEK or (len(t) == 1 and t.isalpha())
    while tokens[i].isdigit() and tokens[end : end + 1] == [" "] and any(map(letter, tokens[end + 1 : end + 2])):
        more, end = _factor(tokens, end + 1)
        item += more
    return item, end


def _bare(items):
    """Factors; a bracket around all of them is not needed beside a line."""
    items = [item for item in items if item]
    one = re.fullmatch(r"<mrow><mo[^>]*>\(</mo>(.*)<mo[^>]*>\)</mo></mrow>", items[0]) if len(items) == 1 else None
    whole = one and all(one[1][:end].count(">(<") >= one[1][:end].count(">)<") for end in range(len(one[1])))
    return one[1] if whole else "".join(items)


def _factor(tokens, i, fractions=True):
    """An atom with its index and power, and the brackets that follow without a space."""
    large, opens = tokens[i] in LARGE and tokens[i + 1 : i + 2] in (["_"], ["^"]), tokens[i][0].isalnum() or tokens[i] in "(["
    start, (item, i), marks = i, _atom(tokens, i, fractions), {}
    while i < len(tokens) - 1 and tokens[i] in ("_", "^"):
        marks[tokens[i]], i = _mark(tokens, i)
    if marked := "".join(mark for mark in "_^" if mark in marks):
        kind = {"_": ("sub", "under"), "^": ("sup", "over"), "_^": ("subsup", "underover")}[marked][large]
        item = f"<m{kind}>{item}{''.join(f'<mrow>{marks[mark]}</mrow>' for mark in marked)}</m{kind}>"
    while i < len(tokens) and tokens[i] in ("(", "[") and opens and not large:
        group, i = _factor(tokens, i, fractions)
        item = f"<mrow>{item}{group}</mrow>"
    if tokens[start] in FUNCTIONS and tokens[i : i + 1] == [" "] and i + 1 < len(tokens) and tokens[i + 1][0].isalnum():
        argument, i = _factor(tokens, i + 1, fractions)
        item = f'<mrow>{item}<mspace width="0.2em"/>{argument}</mrow>'
    return (f"<mrow>{item}<mo>!</mo></mrow>", i + 1) if tokens[i : i + 1] == ["!"] else (item, i)


def _mark(tokens, i):
    """What stands behind a _ or ^ at i."""
    sign = tokens[i + 1] == "-" and i + 2 < len(tokens)
    i, minus = i + sign, f"<mo>{MINUS}</mo>" if sign else ""
    if tokens[i + 1] in ("{", "("):
        inner, end = _balanced(tokens, i + 1, False)
        return (f"{minus}<mo>(</mo>{inner}<mo>)</mo>" if sign else inner), end
    word = tokens[i + 1]
    if word.isalpha() and word not in GREEK:
        return minus + (f"<mtext>{word}</mtext>" if word in UPRIGHT else "".join(f"<mi>{c}</mi>" for c in word)), i + 2
    item, i = _atom(tokens, i + 1, False)
    if word.isdigit():  # as in q_2t+1
        end = i + (tokens[i : i + 1] != [] and len(tokens[i]) == 1 and tokens[i].isalpha())
        end += 2 * (end > i and tokens[end : end + 2] in (["+", "1"], ["-", "1"]))
        item, i = item + _row(tokens[i:end], False), end
    return minus + item, i


def _atom(tokens, i, fractions=True):
    t, after = tokens[i], tokens[i + 1] if i + 1 < len(tokens) else ""
    if t.isspace():
        signs = i == 0 or {tokens[i - 1], after} & {*SIGNS, *APART, "/", ""}
        return (f'<mspace width="{1.2 if len(t) > 2 else 0.2}em"/>' if len(t) > 2 or not signs else ""), i + 1
    if t in ("floor", "ceil", "sqrt") and after == "(":
        inner, end = _balanced(tokens, i + 1, fractions)
        name = {"floor": "FLOOR", "ceil": "CEILING"}.get(t)
        sides = [f"<mo>{lookup(f'{side} {name}')}</mo>" for side in ("LEFT", "RIGHT")] if name else ()
        return (f"<mrow>{inner.join(sides)}</mrow>" if name else f"<msqrt>{inner}</msqrt>"), end
    if t == "frac" and after == "{":
        above, i = _balanced(tokens, i + 1, fractions)
        below, i = _balanced(tokens, i, fractions)
        return f"<mfrac><mrow>{above}</mrow><mrow>{below}</mrow></mfrac>", i
    if t in CLOSING and _closing(tokens, i):
        inner, end = _balanced(tokens, i, fractions)
        still = 'lspace="0" rspace="0"' + ("" if "<mfrac" in inner else ' stretchy="false"')
        return "<mrow>" + inner.join(f"<mo {still}>{b}</mo>" for b in (t, CLOSING[t])) + "</mrow>", end
    if t[0].isalpha():
        if t in LARGE and (after in ("_", "^") or tokens[i + 3 : i + 4] == ["_"]):
            return f'<mo movablelimits="true">{LARGE[t]}</mo>', i + 1
        if t in GREEK or len(t) == 1:
            letter, prime = f"<mi>{GREEK.get(t, t)}</mi>", after == "'"
            return f"<msup>{letter}<mo>{PRIME}</mo></msup>" if prime else letter, i + 1 + prime
        if len(t) == 2 and t.isalpha() and t not in (*SMALL_WORDS, "ln"):
            return f"<mrow>{''.join(f'<mi>{c}</mi>' for c in t)}</mrow>" if t.islower() else f"<mi>{t}</mi>", i + 1
        if after in ("(", "_", "^", "[", ")") or t in NAMED:
            return f'<mi mathvariant="normal">{t}</mi>', i + 1
        return f"<mtext>&#160;{t}&#160;</mtext>", i + 1
    if t[0].isdigit():
        return f"<mn>{t}</mn>", i + 1
    form = "prefix" if t == "~-" else "infix" if t in BREAKS else ""
    still = ' stretchy="false"' if t in "()[]|" else f' form="{form}"' if form else ""
    return f"<mo{still}>{escape(SIGNS.get(t, t))}</mo>", i + 1


def _balanced(tokens, i, fractions=True):
    """What stands between the bracket at i and its closing one, and where it ends."""
    end = _closing(tokens, i) or len(tokens)
    return _row(tokens[i + 1 : end], fractions), end + 1


def formula(line):
    """(name, formula or words, note) of one line of a Definition, as HTML."""
    named = re.match(r"([a-z]\w+|\([a-d]\))\s{2,}(?![=-])(.*)", line.strip())
    name, rest = named.groups() if named else ("", line.strip())
    body, *parts = [part.strip(" ,") for part in re.split(r"\s{3,}|\s{2,}(?=convention=)", rest)]
    words = len(re.findall(r"\b[a-z]{3,}\b(?![(_])", body)) > 4
    return name, pretty(body) if words else mathml(body), "; ".join(pretty(part) for part in parts)


@cache
def pretty(text):
    """A sentence in plain text: its formulas, names of code, emphasis, signs."""
    held = []

    def hold(html):
        held.append(html)
        return f"\0{len(held) - 1}\0"

    text = re.sub(r"`([^`]+)`", lambda m: hold(f"<code>{escape(m[1])}</code>"), text)
    named = r"\b(?:\w+\.)+\w+_\w+|(?<!\^)(?<!\^-)(?<!\^\()(?<!\^\(-)\b_?[a-z]{2,}(?:_[a-z0-9]{2,})+\b"
    named += r"|\b[a-z]\w+=\"[^\"]*\"|\b\w+=(?:True|False|None)\b|\b\w+\.py\b"
    math = lambda name: name.split("_")[0] in (*LARGE, *GREEK, "log", "softmax") and name.count("_") < 2
    text = re.sub(named, lambda m: m[0] if math(m[0]) else hold(f"<code>{escape(m[0])}</code>"), text)
    bold = lambda m: hold(f"<b>{escape(m[1] or m[2])}</b>")
    text = re.sub(r"\*\*([^*]+)\*\*|(?<![\w*])\*([^*\s][^*]*)\*(?![\w*])", bold, text)
    text = "".join(
        hold(mathml(part, "inline")) if is_math else part for is_math, part in _runs(ANGLES.sub(rf"{LEFT}\1{RIGHT}", text))
    )
    text = re.sub(r"(?<![\w.])([A-Za-z]) \. ([A-Za-z])(?![a-z])", rf"\1 {DOT} \2", escape(text, quote=False))
    for name, letter in GREEK.items():
        text = re.sub(rf"(?<![A-Za-z]){name}(?![a-z]| (net|rule)\b)", letter, text)
    for sign, looks in WORDS.items():
        text = text.replace(f" {escape(sign)} ", f" {looks} ")
    text = re.sub(r"(?<=\de)-(?=\d)", MINUS, text)
    return re.sub("\0(\\d+)\0", lambda m: held[int(m[1])], re.sub("\0(\\d+)\0", lambda m: held[int(m[1])], text))


def _runs(text):
    """Parts of a sentence: (whether it is a formula, the part). A formula has an index, a power or a root, and no words."""
    tokens, at = TOKEN.findall(text), 0
    while at < len(tokens):
        end = at
        while end < len(tokens) and (further := _mathematical(tokens, end)):
            end = further
        for first, last in _pieces(tokens, at, end):
            piece = "".join(tokens[first:last])
            yield bool(re.search(r"[\w)\]|'][_^][\w({-]|sqrt\(|\) / \S|\S / \(\S", piece)), piece
        yield False, "".join(tokens[end : end + 1])
        at = end + 1


def _mathematical(tokens, i):
    """The end of the piece of a formula that begins at i, 0 if it is no such piece."""
    t, after, before = tokens[i], tokens[i + 1] if i + 1 < len(tokens) else " ", tokens[i - 1] if i else " "
    if t in ("_", "^") and after in ("(", "{"):
        end = (_closing(tokens, i + 1) or 0) + 1
        return end * (end > 1 and "\0" not in tokens[i:end])
    if before == "'" and t.isalpha():
        return 0
    if t in ("a", "A", "I") and (after + before).isspace():
        return (i + 1) * bool({*tokens[max(i - 2, 0) : i], *tokens[i + 2 : i + 3]} & {*SIGNS, *APART, "/"} - {",", ";", ":"})
    if t.isalpha() and len(t) > 1:
        known = t in NAMED and (t not in LARGE or after in "_^" or tokens[i + 3 : i + 4] == ["_"])
        return (i + 1) * (known or before in ("_", "^") or (t not in SMALL_WORDS and after in ("_", "^", "(")) or t == "mod")
    if t in "'!":
        return (i + 1) * bool(re.match(r"[\w)]", before) and not re.match(r"[^\W_]", after))
    return (i + 1) * (t not in '\0";:?`#' and not (t == "." and ((after.isspace() and not before.isspace()) or after == ")")))


def _pieces(tokens, first, last):
    """What stands between first and last, cut at brackets that do not fit, at commas and at what ends no formula."""
    opened, cuts, commas = [], set(), []
    for i in range(first, last):
        if tokens[i] in ("(", "[", "{", LEFT):
            opened.append(i)
        elif tokens[i] in (")", "]", "}", RIGHT):
            fits = opened and CLOSING[tokens[opened[-1]]] == tokens[i]
            cuts |= set() if fits else {i}
            commas = [c for c in commas if not fits or c < opened[-1]]
            opened = opened[:-1] if fits else opened
        elif tokens[i] == ",":
            commas.append(i)
    ends = {" ", ",", ".", "..", "/", "="}
    for i in [*sorted({*cuts, *opened, *commas}), last]:
        start, end = first, i
        while start < end and (tokens[start] in ends - {".."} or tokens[start].isspace()):
            start += 1
        while start < end and (tokens[end - 1] in ends | {"-", "+"} or tokens[end - 1].isspace()):
            end -= 1
        yield from ((first, start), (start, end), (end, min(i + 1, last)))
        first = min(i + 1, last)


def prose(text):
    """Paragraphs, indented lines and examples of a docstring."""
    lines = lambda p: "".join(f'<div class="ind">{pretty(line.strip())}</div>' for line in p.split("\n"))
    said = lambda p: lines(p) if p.startswith("    ") else f"<p>{pretty(' '.join(p.split()))}</p>"
    paragraphs = [p.rstrip() for p in text.split("\n\n") if p.strip()]
    return "".join(console(p) if ">>>" in p else said(p) for p in paragraphs)


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
