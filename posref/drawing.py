"""Drawing: writes SVG without a library. A panel is at most 340 units wide, so text has 11 to 14 px on phones and desktops.

Colours are CSS variables for a light and a dark scheme: a page sets them, and a standalone file contains them. The colours
differ in lightness too. The name of a curve stands beside it, or the names stand in the order of the curves.
"""

import base64
import math
import re
import struct
import zlib
from html import escape

LIGHT = {
    **{"bg": "#fbfbf9", "card": "#ffffff", "fg": "#1c1e22", "mut": "#5b616c", "line": "#dddfe4", "soft": "#f1f2f4"},
    **{"abs": "#0b5fb0", "rot": "#b1480a", "rel": "#0a7356", "pink": "#9c3a80", "gold": "#7d6000", "bad": "#b3261e"},
}
DARK = {
    **{"bg": "#131519", "card": "#1a1d22", "fg": "#e8e9ec", "mut": "#a3a9b5", "line": "#31353d", "soft": "#22262c"},
    **{"abs": "#6fb4f8", "rot": "#f6a561", "rel": "#4acb9f", "pink": "#e892cb", "gold": "#e0bd4b", "bad": "#ff8f86"},
}
SHAPES = """
.pf{font-family:Inter,ui-sans-serif,system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;font-size:13px}
.pf text{fill:var(--fg)}.pf .m{fill:var(--mut)}.pf .b{font-weight:650}.pf .s{font-size:11.5px}
.pf .k{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:12px}
.pf .halo{paint-order:stroke;stroke:var(--bg);stroke-width:4px;stroke-linejoin:round}
.pf a text{text-decoration:underline;text-underline-offset:3px}"""


def variables(colours):
    return "".join(f"--{name}:{value};" for name, value in colours.items())


def schemes(selector):
    """The CSS rules that set the colours of both schemes."""
    return f"{selector}{{{variables(LIGHT)}}}@media(prefers-color-scheme:dark){{{selector}{{{variables(DARK)}}}}}"


def number(x):
    """A coordinate as text, with at most two digits after the point."""
    text = f"{x:.2f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def words(s):
    """A text with typographic signs: a minus in -2 and a - b, a dot in q . k, a Greek letter for theta.

    >>> words("rope_theta is a key")
    'rope_theta is a key'
    """
    s = re.sub(r"(?<![\w\"])-(?=\d)|(?<= )-(?= )", "\N{MINUS SIGN}", str(s)).replace(" . ", " \N{MIDDLE DOT} ")
    return re.sub(r"\btheta", "\N{GREEK SMALL LETTER THETA}", s).replace("...", "\N{HORIZONTAL ELLIPSIS}")


def sub(letter, index):
    """A letter with an index."""
    return _moved(letter, index, 3)


def power(base, exponent):
    """A number with an exponent."""
    return _moved(base, exponent, -5)


def _moved(text, mark, down):
    return f'{text}<tspan dy="{down}" font-size="9">{mark}</tspan><tspan dy="{-down}">&#8203;</tspan>'


def png(matrix):
    """A grey PNG of numbers 0 .. 1, one pixel per entry, not compressed, so that every zlib makes the same bytes."""
    rows = b"".join(b"\0" + bytes(max(0, min(255, round(255 * float(v)))) for v in line) for line in matrix)
    head = struct.pack(">IIBBBBB", len(matrix[0]), len(matrix), 8, 0, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows, 0)), (b"IEND", b""))
    packed = (struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in chunks)
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(packed)).decode()


class Panel:
    """One drawing, with its description in words; a figure is a list of panels."""

    def __init__(self, width, height, label):
        self.w, self.h, self.label, self.parts = width, height, label, []

    def add(self, text):
        self.parts.append(text)
        return self

    def text(self, x, y, s, cls="", anchor="start", fill=None, href=None, size=None):
        style = (f"fill:var(--{fill});" if fill else "") + (f"font-size:{size}px;" if size else "")
        at = f' x="{number(x)}" y="{number(y)}"' + (f' text-anchor="{anchor}"' if anchor != "start" else "")
        body = f"<text{at}{_attribute('class', cls)}{_attribute('style', style)}>{words(s)}</text>"
        return self.add(f'<a href="{escape(href)}">{body}</a>' if href else body)

    def line(self, x1, y1, x2, y2, colour="line", width=1, dash=None):
        ends = f'x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" y2="{number(y2)}"'
        return self.add(f'<line {ends} style="{_stroke(colour, width, dash)}"/>')

    def path(self, points, colour="fg", width=1.8, dash=None):
        return self.curve("M" + "L".join(f"{number(x)} {number(y)}" for x, y in points), colour, width, dash)

    def curve(self, d, colour="fg", width=1.8, dash=None, opacity=1):
        faint = f"opacity:{number(opacity)};" if opacity != 1 else ""
        return self.add(f'<path d="{d}" style="fill:none;{_stroke(colour, width, dash)}stroke-linecap:round;{faint}"/>')

    def arrow(self, x1, y1, x2, y2, colour="mut", dash=None):
        a = math.atan2(y2 - y1, x2 - x1)
        head = [(x2 + 7 * math.cos(a + s), y2 + 7 * math.sin(a + s)) for s in (math.pi - 0.45, math.pi + 0.45)]
        return self.path([(x1, y1), (x2, y2)], colour, 1.6, dash).path([head[0], (x2, y2), head[1]], colour, 1.6)

    def rect(self, x, y, w, h, fill=None, stroke=None, opacity=1.0, rx=0, width=1):
        inside = f"fill:var(--{fill});fill-opacity:{number(opacity)};" if fill else "fill:none;"
        place = f'x="{number(x)}" y="{number(y)}" width="{number(w)}" height="{number(h)}"{_attribute("rx", rx)}'
        return self.add(f'<rect {place} style="{inside}{_stroke(stroke, width) if stroke else ""}"/>')

    def circle(self, x, y, r, fill=None, stroke=None):
        inside = f"fill:var(--{fill});" if fill else "fill:none;"
        outside = f"stroke:var(--{stroke});stroke-width:1.5;" if stroke else ""
        return self.add(f'<circle cx="{number(x)}" cy="{number(y)}" r="{number(r)}" style="{inside}{outside}"/>')

    def heat(self, x, y, w, values, fill, h=None):
        """Draw numbers 0 .. 1 as the strength of one colour, which follows the scheme."""
        data = png(values)
        place = f'x="{number(x)}" y="{number(y)}" width="{number(w)}" height="{number(h or w)}"'
        name = f"h{zlib.crc32(f'{self.label}{place}{fill}{data}'.encode()):08x}"
        image = f'<image {place} href="data:image/png;base64,{data}" preserveAspectRatio="none"'
        self.add(f'<mask id="{name}" style="mask-type:luminance">{image} style="image-rendering:pixelated"/></mask>')
        return self.add(f'<rect {place} mask="url(#{name})" style="fill:var(--{fill})"/>')

    def signed_heat(self, x, y, w, values, top, h=None):
        """Draw positive numbers in one colour and negative numbers in another, with full strength at `top`."""
        for sign, colour in ((1, "abs"), (-1, "rot")):
            self.heat(x, y, w, [[max(0, sign * v / top) for v in row] for row in values], colour, h)
        return self.rect(x, y, w, h or w, None, "mut")

    def cells(self, x, y, size, rows, colour, strength):
        """Draw a small matrix with its numbers; colour(i, j, v) and strength(i, j, v) give the look of a cell."""
        for i, row in enumerate(rows):
            for j, v in enumerate(row):
                left, top = x + size * j, y + size * i
                self.rect(left + 1, top + 1, size - 2, size - 2, colour(i, j, v), None, strength(i, j, v), 3)
                self.text(left + size / 2, top + size / 2 + 4, f"{v:g}", "s", "middle")
        return self

    def inner(self):
        return "".join(self.parts)

    def svg(self):
        size = f'viewBox="0 0 {number(self.w)} {number(self.h)}" width="{number(self.w)}" height="{number(self.h)}"'
        return f'<svg class="pf" {size} role="img" aria-label="{escape(self.label)}">{self.inner()}</svg>'


class Plot(Panel):
    """A panel with axes; a scale is "linear" or "log"."""

    def __init__(self, width, height, label, x, y, xscale="linear", yscale="linear", left=46, right=14, top=34, bottom=40):
        super().__init__(width, height, label)
        self.left, self.top, self.right, self.bottom = left, top, width - right, height - bottom
        self.x, self.y, self.xscale, self.yscale = x, y, xscale, yscale

    def px(self, v):
        return self.left + _share(v, *self.x, self.xscale) * (self.right - self.left)

    def py(self, v):
        return self.bottom - _share(v, *self.y, self.yscale) * (self.bottom - self.top)

    def axes(self, xticks, yticks, xlabel, title):
        """Draw the axes; a tick is a value, or a pair (value, label)."""
        for v, s in map(_tick, yticks):
            self.line(self.left, self.py(v), self.right, self.py(v), "line", 1, "2 3")
            self.text(self.left - 6, self.py(v) + 4, s, "m s", "end")
        for v, s in map(_tick, xticks):
            self.line(self.px(v), self.bottom, self.px(v), self.bottom + 4, "mut")
            self.text(self.px(v), self.bottom + 17, s, "m s", "middle")
        self.line(self.left, self.bottom, self.right, self.bottom, "mut")
        self.text(4, 16, title, "b")
        return self.text((self.left + self.right) / 2, self.bottom + 34, xlabel, "m s", "middle")

    def drawn(self, xs, ys, colour, width=2.0, dash=None, step=False):
        """Draw a curve; with `step` it keeps each value until the next."""
        points = []
        for x, y in zip(xs, ys, strict=True):
            if step and points:
                points.append((self.px(x), points[-1][1]))
            points.append((self.px(x), self.py(y)))
        return self.path(points, colour, width, dash)

    def name(self, x, y, s, fill, anchor="start"):
        """Write the name of a curve at a point of the plot."""
        return self.text(self.px(x), self.py(y), s, "b halo", anchor, fill)

    def dot(self, x, y, fill, r=4.0, hollow=False):
        return self.circle(self.px(x), self.py(y), r, "bg" if hollow else fill, fill)

    def stem(self, x, y, colour):
        return self.line(self.px(x), self.bottom, self.px(x), self.py(y), colour, 1.4, "2 3")


def compose(panels, columns, gap=20):
    """The text of a standalone SVG file with all panels."""
    rows = [panels[i : i + columns] for i in range(0, len(panels), columns)]
    width = max(sum(p.w for p in row) + gap * (len(row) - 1) for row in rows) + 20
    parts, y = [], 10
    for row in rows:
        x = 10
        for p in row:
            parts.append(f'<g transform="translate({number(x)} {number(y)})">{p.inner()}</g>')
            x += p.w + gap
        y += max(p.h for p in row) + gap
    height = y - gap + 10
    size = f'viewBox="0 0 {number(width)} {number(height)}" width="{number(width)}" height="{number(height)}"'
    label = escape("; ".join(p.label for p in panels))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" class="pf" {size} role="img" aria-label="{label}">'
    look = f"<style>{schemes('svg')}{SHAPES}</style>"
    return f'{head}{look}<rect width="100%" height="100%" style="fill:var(--bg)"/>{"".join(parts)}</svg>\n'


def _attribute(name, value):
    return f' {name}="{value}"' if value else ""


def _stroke(colour, width, dash=None):
    return f"stroke:var(--{colour});stroke-width:{width};" + (f"stroke-dasharray:{dash};" if dash else "")


def _tick(tick):
    return tick if isinstance(tick, tuple) else (tick, tick)


def _share(v, low, high, scale):
    if scale == "log":
        v, low, high = math.log(v), math.log(low), math.log(high)
    return (v - low) / (high - low)
