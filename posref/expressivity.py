r"""Expressivity: which system can give the scores of which other system, and the shortest text that shows it if not.

Every score here is affine in the content x of the query and in the content y of the key, by four functions of places i, j:

    s(x, y, i, j) = x' M_ij y + x' u_ij + y' v_ij + b_ij

With a constant feature and enough width, a system attains exactly the products of four linear spaces of functions of (i, j).
T expresses S if each space of S lies in the same space of T. Exact ranks of small integer matrices, made from the index
functions of posref, decide this. A no has a witness: an equation between entries that holds in T and fails in S, there and in
every longer text that begins with these tokens. A yes is computed for texts of up to `MOST` tokens, and `basis` names the
theorems of proofs/mathematics/expressivity.py that prove the inclusion for all lengths, with the constructions. That a system
attains all products of its spaces is an argument: each component has features of its own, and their sum is the score.

A system of two axes has its places in rows of `COLUMNS`.

Three meanings: exact; up to a row constant, which a softmax without sinks and caps ignores (u and b of T may add any function
of i); and up to a row constant in causal attention, j <= i. Masks, values and the caps of single models are not considered.
"""

import functools
import importlib
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from posref import _require, discovery
from posref.offsets import clip, offsets
from posref.relative import alibi, deberta, swin, t5

__all__ = [
    "MEANINGS",
    "MOST",
    "SYSTEMS",
    "basis",
    "grid",
    "left_out",
    "outside",
    "page",
    "reason",
    "records",
    "sentence",
    "verdict",
]

MOST = 9  # tokens
MEANINGS = ("exact", "row", "causal")
TITLES = {
    "exact": "exact: the same scores",
    "row": "row: the same scores, up to a constant per row, which softmax ignores",
    "causal": "causal: the same scores for keys at or before the query, up to a constant per row",
}
FORM = "score(i, j) = x' M_ij y + x' u_ij + y' v_ij + b_ij, with x the content of query i and y the content of key j"
LEGEND = f"""\
Can the system of a column give the scores of the system of a row, with as many features as it needs? Each score has the form

    {FORM}

and a cell says:

    =    yes
    u3   no: with 3 tokens or more, the column cannot give all u of the row; M2, v2, b2 in the same way

Rows that are no system by themselves: none, no positions; any bias, one free number per offset; added, a vector per position
that is added to the input; deberta c2p and p2c, one of DeBERTa's two terms. `posref express ROW COLUMN` gives the reason."""
CLIP, SPAN, BUCKETS, MAX_DISTANCE, COLUMNS = 2, 3, 8, 6, 3  # small, so that all of them show within MOST tokens


class System(NamedTuple):
    """The names of the spaces of M, u, v and b, and the modules that have these spaces."""

    spaces: tuple[str, str, str, str]
    of: tuple[str, ...]


def _found() -> dict[str, Any]:
    """{system: `SCORES` of its ops file}: the spaces of its scores per row of the table, or the reason for having no row."""
    scores = {name: importlib.import_module(f"posref.ops.{name.rpartition('.')[2]}") for name in discovery.names()}
    return {name: getattr(module, "SCORES", "not placed yet") for name, module in scores.items()}


def _systems() -> dict[str, System]:
    """The rows, family by family, after two rows that are no system; ValueError if one name has two meanings."""
    rows = {"none": System(("one", "one", "one", "one"), ()), "any bias": System(("one", "one", "one", "offset"), ())}
    for name, said in _found().items():
        for row, spaces in said.items() if isinstance(said, dict) else ():
            before = rows.get(row, System(spaces, ()))
            if before.spaces != spaces:
                raise ValueError(f"expressivity: {row!r} is {spaces} in {name} and {before.spaces} in {before.of}")
            rows[row] = System(spaces, (*before.of, name))
    return rows


SYSTEMS = _systems()
WIDTHS = (  # what, by what, the fewest features on n tokens, on what that rests
    ("any bias by offset", "shaw, t5 in shaw, deberta p2c", "1, a constant feature", "a_bias_by_offset"),
    ("any bias by offset", "transformer_xl", "1, which contents do not use", "a_bias_by_offset"),
    (
        "any bias by offset",
        "rope, frequencies given",
        "2n - 1, one of which does not rotate",
        "any_bias_by_rope, width_of_an_arbitrary_bias + argument",
    ),
    ("any bias by offset", "rope, frequencies chosen after it", "not known: between 2 ceil((2n - 1)/3) and 2n - 1", "open"),
    ("any bias by offset, j <= i", "rope, frequencies given", "n", "argument"),
    ("any matrix", "added, tupe", "its rank, n at most", "any_matrix + argument"),
    ("alibi signed", "features that do not rotate", "2", "two_plain_features"),
    ("alibi signed", "rope, any frequencies", "2n - 2", "argument"),
    ("alibi key", "features that do not rotate", "1", "two_plain_features"),
    ("alibi absolute and a constant, n odd", "rope", "n - 1", "the_triangle_wave + argument"),
    ("none", "rope without a frequency of 0", "2n", "argument"),
)
PARTS = "Muvb"
WITNESS = ("part", "tokens", "equation")


def _one(n):
    return np.ones((1, n, n), int)


def _indicators(values):
    return np.array([values == x for x in np.unique(values)]).astype(int)


def _grid(n):
    """The rows and columns of n places, in rows of COLUMNS."""
    return np.stack(np.divmod(np.arange(n), COLUMNS), axis=-1)


def _line(form):
    """A line with a free slope, and the constant of a constant feature."""

    def space(n):
        bias = alibi.bias(np.arange(n), np.arange(n), np.ones(1, int), form=form)
        return np.concatenate([_one(n), np.broadcast_to(bias, (1, n, n)).astype(int)])

    return space


def _buckets(bidirectional):
    return lambda o: t5.bucket(o, buckets=BUCKETS, max_distance=MAX_DISTANCE, bidirectional=bidirectional)


INDEX: dict[str, Callable[[np.ndarray], np.ndarray]] = {  # name: offsets -> what a table is read at
    "offset": lambda o: o,
    "clipped": lambda o: clip(o, -CLIP, CLIP),
    "c2p": lambda o: deberta.position_index(o, span=SPAN),
    "p2c": lambda o: deberta.position_index(-clip(o, -SPAN, SPAN), span=SPAN),  # the paper's delta(j, i)
    "buckets": _buckets(True),
    "causal buckets": _buckets(False),
}


def _by_index(index):
    return lambda n: _indicators(index(offsets(np.arange(n), np.arange(n))))


SPACES: dict[str, Callable[[int], np.ndarray]] = {  # name: n -> a basis, integers (functions, n, n)
    "one": _one,
    "query": lambda n: _indicators(np.repeat(np.arange(n)[:, None], n, axis=1)),
    "key": lambda n: _indicators(np.repeat(np.arange(n)[None], n, axis=0)),
    "any": lambda n: np.eye(n * n, dtype=int).reshape(-1, n, n),
    "vector": lambda n: _indicators(swin.rows(_grid(n), height=n, width=COLUMNS)),
    **{name: _by_index(index) for name, index in INDEX.items()},
    "row + column": lambda n: np.concatenate([_indicators(offsets(x, x)) for x in _grid(n).T]),
    "c2p + p2c": lambda n: np.concatenate([SPACES["c2p"](n), SPACES["p2c"](n)]),
    "signed": _line("signed"),
    "absolute": _line("absolute"),
    "key form": _line("key"),
}


def verdict(s, t, *, meaning):
    """None if t expresses s up to MOST tokens; else (part, tokens, equation) with an equation that holds in all of t, not in s.

    >>> verdict("t5 encoder", "shaw", meaning="exact")
    >>> verdict("tupe", "any bias", meaning="exact")
    ('b', 2, 'b_11 = b_00')
    """
    _require_known(s, t, meaning)
    for n, part in itertools.product(range(1, MOST + 1), range(4)):
        small, large = SYSTEMS[s].spaces[part], SYSTEMS[t].spaces[part]
        row = meaning != "exact" and PARTS[part] in "ub"
        equation = _broken(small, large, n, row, meaning == "causal")
        if equation is not None:
            return PARTS[part], n, _written(PARTS[part], n, equation, meaning == "causal")
    return None


def reason(s, t, *, meaning):
    """Why t expresses s: for each part its functions in s, and the functions of t that contain them."""
    parts = zip(PARTS, SYSTEMS[s].spaces, SYSTEMS[t].spaces, strict=True)
    free = {part: " + a constant per row" for part in "ub"} if meaning != "exact" else {}
    where = ", where j <= i" if meaning == "causal" else ""
    among = [(part, a, "in both" if a == b else f"is among {b}{free.get(part, '')}") for part, a, b in parts if a != "one"]
    return ("; ".join(f"{part}: {a} {where_it_is}" for part, a, where_it_is in among) or "it has no positions") + where


def basis(s, t, *, meaning):
    """The basis of an answer for texts of all lengths: the theorems that prove the inclusion of each part, or the witness.

    >>> basis("shaw", "rope", meaning="exact")
    'machine, all n: the same functions'
    >>> basis("shaw clipped", "shaw", meaning="exact")
    'machine, all n: mathematics.expressivity.functions_of_the_offset'
    """
    if verdict(s, t, meaning=meaning) is not None:
        return "machine: integers; all longer texts hold these tokens"
    parts = zip(SYSTEMS[s].spaces, SYSTEMS[t].spaces, strict=True)
    named = dict.fromkeys(theorem for a, b in parts for theorem in _theorems(a, b))
    return "machine, all n: " + (", ".join(f"mathematics.expressivity.{name}" for name in named) or "the same functions")


def _theorems(small, large):
    """The theorems that prove one space to lie in another; none where the spaces are equal or the larger has all functions."""
    if small in (large, "one") or large == "any":
        return []
    if large == "row + column":  # the offset is 3 down + right, a sum of a function of each
        return ["functions_of_a_vector", "forms_of_alibi"]
    if small == "key form":
        return ["forms_of_alibi", *_theorems("signed", large)]
    if large == "vector":
        return ["functions_of_a_vector", *_theorems(small, "offset")]
    if large == "offset":
        return ["functions_of_the_offset"]
    return ["functions_of_an_index" if small in INDEX else "forms_of_alibi"]


def outside():
    """{system: reason} of all systems that are not in the table.

    >>> outside()["rotary.layouts"]
    'only the order of features differs'
    """
    return {name: said for name, said in _found().items() if isinstance(said, str)}


def sentence(s, t, meaning):
    """One answer in words.

    >>> print(sentence("alibi key", "alibi signed", "row"))
    row: yes, alibi signed can give the scores of alibi key: b: key form is among signed + a constant per row
        proved for texts of any length: mathematics.expressivity.forms_of_alibi
    >>> sentence("alibi key", "alibi signed", "exact")
    'exact: no, alibi signed cannot give the scores of alibi key: with 2 tokens b_11 = b_00 in alibi signed, not in alibi key'
    """
    found = verdict(s, t, meaning=meaning)
    if found is None:
        ground = basis(s, t, meaning=meaning).removeprefix("machine, all n: ")
        why = f"{reason(s, t, meaning=meaning)}\n    proved for texts of any length: {ground}"
        return f"{meaning}: yes, {t} can give the scores of {s}: {why}"
    _, n, equation = found
    return f"{meaning}: no, {t} cannot give the scores of {s}: with {n} tokens {equation} in {t}, not in {s}"


def records(meanings, s=None, t=None):
    """The answers as dictionaries, for one pair of systems or for all pairs."""
    pairs = [(s, t)] if s else list(itertools.product(SYSTEMS, SYSTEMS))
    return [
        {
            "system": a,
            "by": b,
            "meaning": meaning,
            "expressed": found is None,
            "witness": found and dict(zip(WITNESS, found, strict=True)),
            "basis": basis(a, b, meaning=meaning),
        }
        for meaning in meanings
        for a, b in pairs
        for found in [verdict(a, b, meaning=meaning)]
    ]


def left_out():
    """Text about the fewest features, and about the systems that are not in the table, with the reason."""
    widths = [f"  {what}, from {by}: {width} ({ground})" for what, by, width, ground in WIDTHS]
    reasons = [f"  {name}: {why}" for name, why in outside().items()]
    title = "Fewest features for n tokens (the theorem of mathematics.expressivity, or argument: docs/mathematics.md)"
    return "\n".join([title, *widths, "", "Systems that are not in the table, and why", *reasons])


def page(meaning):
    """The table as text, which `LEGEND` explains: = if the column expresses the row, else part and tokens of the witness."""
    _require_known(*[next(iter(SYSTEMS))] * 2, meaning)
    names = list(SYSTEMS)
    lines = [TITLES[meaning], ""]
    lines += [" " * 17 + "".join(f"{k:>4}" for k in range(1, len(names) + 1))]
    for k, s in enumerate(names, 1):
        cells = [verdict(s, t, meaning=meaning) for t in names]
        lines.append(f"{k:2} {s:14}" + "".join(f"{'=' if cell is None else f'{cell[0]}{cell[1]}':>4}" for cell in cells))
    return "\n".join(lines)


def grid():
    """One Markdown table for all meanings: the least help with which the column expresses the row.

    `=` no help, `r` a constant per row, `c` a constant per row and a causal mask, `.` never.
    """
    names = list(SYSTEMS)
    marks = dict(zip(MEANINGS, "=rc", strict=True))
    lines = [["", *map(str, range(1, len(names) + 1))], ["---", *[":-:"] * len(names)]]
    for k, s in enumerate(names, 1):
        found = ([mark for meaning, mark in marks.items() if verdict(s, t, meaning=meaning) is None] for t in names)
        lines.append([f"{k} {s}", *(each[0] if each else "." for each in found)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


@functools.cache
def _broken(small, large, n, row, causal):
    """The coefficients of an equation between entries that holds in the large space, not in the small space; or None."""
    basis, pivots = _echelon(large, n, row, causal)
    given = _entries(small, n, causal)
    common = np.lcm.reduce(np.append(basis[np.arange(len(pivots)), pivots], 1))
    scaled = basis * (common // basis[np.arange(len(pivots)), pivots])[:, None]  # each pivot is `common`
    rest = common * given - given[:, pivots] @ scaled
    wrong = np.flatnonzero(np.any(rest, axis=0))
    if not len(wrong):
        return None
    entry = min(wrong, key=lambda p: (np.count_nonzero(scaled[:, p]), p))
    return int(common), int(entry), {int(p): int(c) for p, c in zip(pivots, scaled[:, entry], strict=True) if c}


@functools.cache
def _echelon(space, n, row, causal):
    """A basis in reduced echelon form and its pivots, computed with integers, without rounding."""
    rows = _entries(space, n, causal)
    rows = np.concatenate([rows, _entries("query", n, causal)]) if row else rows
    done, pivots = 0, []
    for column in range(rows.shape[1]):
        found = done + np.flatnonzero(rows[done:, column])
        if not len(found):
            continue
        rows[[done, found[0]]] = rows[[found[0], done]]
        others = np.arange(len(rows)) != done
        rows[others] = rows[others] * rows[done, column] - rows[others, column][:, None] * rows[done]
        rows //= np.maximum(np.gcd.reduce(rows, axis=1, keepdims=True), 1)
        rows[done] *= np.sign(rows[done, column])
        pivots.append(column)
        done += 1
    return rows[:done], np.array(pivots)


def _entries(space, n, causal):
    """Each function as a row of its entries; without the entries above the diagonal if attention is causal."""
    functions = SPACES[space](n)
    return functions[:, np.tril(np.ones((n, n), bool))] if causal else functions.reshape(len(functions), -1)


def _written(part, n, equation, causal):
    """An equation as text, with an entry named by its row and its column, both from 0."""
    common, entry, terms = equation
    names = [f"{part}_{i}{j}" for i in range(n) for j in range(i + 1 if causal else n)]
    return f"{_sum({entry: common}, names)} = {_sum(terms, names) or 0}"


def _sum(terms, names):
    words = [f"{'-' if c < 0 else '+'} {'' if abs(c) == 1 else f'{abs(c)} '}{names[p]}" for p, c in terms.items()]
    text = " ".join(words)
    return f"-{text[2:]}" if text.startswith("-") else text[2:]


def _require_known(s, t, meaning):
    for name in (s, t):
        if name not in SYSTEMS:
            near, known = _require.near(name, SYSTEMS), ", ".join(map(repr, SYSTEMS))
            raise ValueError(f"expressivity.verdict: there is no system {name!r}{near}; the systems are {known}")
    if meaning not in MEANINGS:
        raise ValueError(f"expressivity.verdict: meaning is {meaning!r}, expected one of {', '.join(MEANINGS)}")
