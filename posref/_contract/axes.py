"""Axes: the shape text of an annotation, parsed into data, and which leading axes broadcast together."""

import ast
from typing import NamedTuple

TOGETHER, BESIDE = ("...", "%..."), ("#...", "(...)", "[...]")
LEADS = TOGETHER + BESIDE


class Term(NamedTuple):
    """A linear expression in extents, `numerator / divisor`: coefficients of the names, and a constant under ""."""

    text: str
    coefficients: dict
    divisor: int

    @property
    def names(self):
        return [name for name in self.coefficients if name]

    @property
    def scaled(self):
        """Whether the term is a multiple or a part of one extent, such as 2*span or dim/2: such an axis is never empty."""
        return self.divisor > 1 or any(abs(self.coefficients[name]) > 1 for name in self.names)


class Axis(NamedTuple):
    """One axis: its mark ("", "#", "?", "+" or "!") and the terms that its extent may equal. `by` names an extent that divides
    it, and `least` an extent that it must reach; both are "" where there is none."""

    mark: str
    terms: tuple
    by: str
    least: str


class Shape(NamedTuple):
    """The axes of one argument: `lead` is "" or one of LEADS, `axes` the other axes, `like` an argument of the same shape.

    `open` says that any axes may follow `axes`; `front` is the number of axes before the leading ones.
    """

    text: str
    lead: str
    axes: tuple
    like: str
    open: bool
    front: int

    def at(self, place):
        """The index of an axis: counted from the back, unless the shape is open or the axis stands before the leading ones."""
        return place if self.open or place < self.front else place - len(self.axes)

    def __str__(self):
        words = words_of(self)
        words[self.front : self.front] = ["..."] * bool(self.lead)
        inner = ", ".join(words + ["..."] * self.open)
        return f"({inner},)" if len(self.axes) == 1 and not self.lead and not self.open else f"({inner})"

    @property
    def least(self):
        return sum(axis.mark not in ("#", "?") for axis in self.axes)


def shape_of(text):
    """The `Shape` that a text describes.

    >>> shape_of("... n 2*dim").axes[1].terms[0].coefficients
    {'dim': 2}
    """
    if text.startswith("="):
        return Shape(text, "", (), text[1:], False, 0)
    words = text.split()
    front = next((place for place, word in enumerate(words[:-1] or words) if word in LEADS), 0)
    lead = words.pop(front) if words[front:] and words[front] in LEADS else ""
    behind = words[-1:] == ["..."]
    return Shape(text, lead, tuple(_axis(word) for word in words[: len(words) - behind]), "", behind, front)


def _axis(word):
    mark = word[0] if word[0] == "#" else word[-1] if word[-1] in "?+!" else ""
    terms, _, least = word.strip("#?+!").partition(">=")
    terms, _, by = terms.partition("%")
    return Axis(mark, tuple(_term(part) for part in terms.split("|")), by, least)


def _term(text):
    divisor, node = 1, ast.parse(text, mode="eval").body
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        divisor, node = ast.literal_eval(node.right), node.left
    coefficients: dict = {}
    _collect(node, 1, coefficients)
    return Term(text, coefficients, divisor)


def _collect(node, factor, into):
    if isinstance(node, ast.Name):
        into[node.id] = into.get(node.id, 0) + factor
    elif isinstance(node, ast.Constant):
        into[""] = into.get("", 0) + factor * node.value
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and isinstance(node.left, ast.Constant):
        _collect(node.right, factor * ast.literal_eval(node.left), into)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        _collect(node.left, factor, into)
        _collect(node.right, factor if isinstance(node.op, ast.Add) else -factor, into)
    else:
        raise ValueError(f"{ast.unparse(node)} is no extent; write sums of names with factors, such as n_query+n_key-1 or 2*k")


def joined(left, right):
    """The shape to which both tuples of leading axes broadcast; None if they do not.

    >>> joined((2, 1), (3,)), joined((2,), (3,))
    ((2, 3), None)
    """
    if len(left) < len(right):
        left, right = right, left
    both = list(left)
    for place, m in enumerate(right, len(left) - len(right)):
        n = both[place]
        if n != m and m != 1:
            if n != 1:
                return None
            both[place] = m
    return tuple(both)


def shared(left, right):
    """As `joined`, but the last axis of `right` may also divide the last axis of `left`.

    >>> shared((2, 8), (2, 4)), shared((4,), (8,)), shared((8,), (3,))
    ((2, 8), None, None)
    """
    both = joined(left, right)
    if both is not None or not left or not right or right[-1] == 0 or left[-1] % right[-1] != 0:
        return both
    rest = joined(left[:-1], right[:-1])
    return None if rest is None else (*rest, left[-1])


def reaches(shape, target):
    """Whether `shape` broadcasts to `target` and enlarges none of its axes.

    >>> reaches((1, 3), (2, 3)), reaches((2, 3), (1, 3)), reaches((), (2,))
    (True, False, True)
    """
    extra = len(target) - len(shape)
    return extra >= 0 and not any(n != m and n != 1 for n, m in zip(shape, target[extra:], strict=True))


def words_of(shape):
    return [word.strip("#?+!").split(">=")[0].split("%")[0] for word in shape.text.split() if word not in LEADS]


def value_of(term, values):
    known = {name: values.get(f"_{name}") for name in term.names}
    if None in known.values():
        return term.text
    total = sum(c * (known[name] if name else 1) for name, c in term.coefficients.items())
    return total / term.divisor if total % term.divisor else total // term.divisor
