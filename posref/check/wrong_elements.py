"""Wrong elements: words for where an output is wrong: the box, the columns, the first position, the worst element."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, combinations, product
from typing import Any

import numpy as np

from posref import attention, pairing
from posref.check import general
from posref.check.axes import names
from posref.check.engine import NO_ANSWER, Named, Question, distance, ratios, separates
from posref.check.indices import bits
from posref.check.rotary import phases
from posref.check.tensors import round_to
from posref.ops import Arguments, Mistake, further, result
from posref.ops.common import per_head

PART = "Perhaps nothing is computed there; perhaps the inputs of this part are 0 or empty."
UNREAD = "Harmless where attention masks padding."
EXP = 88  # from here on exp leaves float32
SOME, FIRST = 12, 64  # rows that are listed, positions that are tried
COLUMNS, BITS = 4, 20  # columns that are few; bits in the wrong numbers, some of which choose the mistake and the columns


def where(wrong: np.ndarray, named: Sequence[str], got: np.ndarray | None = None, inputs: Any = None) -> str:
    """The words "; wrong for rows 16 to 22 alone" if the wrong elements mostly fill a box that is not everything, else "".

    With `got` and `inputs` they also say if the elements there equal an input, or are 0.

    >>> wrong = np.zeros((2, 5, 4), dtype=bool)
    >>> wrong[:, 3:] = True
    >>> where(wrong, ["heads", "rows", "features"])
    '; wrong for rows 3 to 4 alone'
    """
    if not wrong.ndim or not wrong.any():
        return ""
    spans, box = [], []
    for axis, name in enumerate(named):
        along = np.flatnonzero(wrong.any(axis=tuple(i for i in range(wrong.ndim) if i != axis)))
        first, last = int(along[0]), int(along[-1])
        box.append(slice(first, last + 1))
        if (first, last) != (0, wrong.shape[axis] - 1) and axis != wrong.ndim - 1:
            spans.append(f"{name} {first} to {last}" if last > first else f"{name[:-1]} {first}")
    inside = wrong[tuple(box)]
    if not spans or inside.any(axis=-1).mean() < 0.5:
        return ""
    return f"; wrong for {', '.join(spans)} alone{_equal(tuple(box), got, inputs)}"


def columns(wrong: np.ndarray, name: str = "features") -> str:
    """Words for the wrong entries of the last axis, if these are few, one or two runs, or every second: a pair, a half, a tail.

    >>> wrong = np.zeros((5, 8), dtype=bool)
    >>> wrong[1:, [2, 6]] = True
    >>> columns(wrong), columns(~wrong[1:]), columns(wrong[1:], "keys")
    ('; all in features 2 and 6', '', '; all in keys 2 and 6')
    """
    if wrong.ndim == 0:
        return ""
    along, size = np.flatnonzero(wrong.any(axis=tuple(range(wrong.ndim - 1)))), wrong.shape[-1]
    for first, words in ((0, "even"), (1, "odd")):
        if size > 4 and np.array_equal(along, np.arange(first, size, 2)):
            return f"; all in {words} {name}"
    runs = np.split(along, np.flatnonzero(np.diff(along) > 1) + 1)
    if len(along) in (0, size) or (len(runs) > 2 and len(along) > 4):
        return ""
    said = [words for run in runs for words in ([f"{run[0]} to {run[-1]}"] if len(run) > 2 else map(str, run))]
    listed = f"{', '.join(said[:-1])} and {said[-1]}" if len(said) > 1 else said[0]
    return f"; all in {name if len(along) > 1 else name[:-1]} {listed}"


def _equal(box: tuple[slice, ...], got: np.ndarray | None, inputs: Any) -> str:
    found = "" if got is None or untouched(got, inputs) else untouched(got, inputs, box)  # not where all of it is so
    several = np.prod([side.stop - side.start for side in box[:-1]]) > 1
    return f", which {_plural(found) if several else found}" if found else ""


def untouched(got: np.ndarray, inputs: Any, box: tuple[Any, ...] = ()) -> str:
    """What the elements are, if they are 0 or those of an input; else "".

    >>> untouched(np.ones(2), {"q": np.zeros(2), "k": np.ones(2)})
    'equals k'
    """
    if not got[box].any():
        return "is 0"
    for name, value in (inputs or {}).items():
        if isinstance(value, np.ndarray) and value.shape == got.shape and np.array_equal(value[box], got[box]):
            return f"equals {name}"
    return ""


def reshaped_input(question: Question, got: np.ndarray) -> str:
    """The name of the input of another shape that has the numbers of the output, in their order; else "".

    >>> from posref.ops import op
    >>> resize = op("resizing.resize")
    >>> question = Question(resize, resize.make(height=5, width=3, convention="timm"), ("f32",))
    >>> reshaped_input(question, question.a.table.reshape(5, 3, -1))
    'table'
    """
    for name in question.op.given if len(np.unique(got)) > 2 and got.size == question.right.size else ():
        value = question.a.get(name)
        if not isinstance(value, np.ndarray) or value.size != got.size or value.shape == got.shape:
            continue
        if np.array_equal(value.ravel(), got.ravel()):
            return name
    return ""


def _plural(found: str) -> str:
    """The words of `untouched`, for several elements."""
    return found.replace("is", "are").replace("equals", "equal")


def rows_of_an_input(question: Question, got: np.ndarray) -> str:
    """Words, if each row of the output is an unchanged row of one input, and not all right rows are."""
    for name, value in question.a.items():
        if not isinstance(value, np.ndarray) or value.ndim < 2 or value.shape[-1:] != got.shape[-1:] or value.dtype.kind != "f":
            continue
        place = {row.tobytes(): i for i, row in [*enumerate(_rows(value))][::-1]}
        found, right = ([place.get(row.tobytes()) for row in _rows(y)] for y in (got, question.right))
        if None not in found and len({*found}) > 2 and None in right and got.shape[-1] > 1:
            listed = ", ".join(map(str, found[:SOME])) + ", .." * (len(found) > SOME)
            return f"; each row of your output is an unchanged row of {name} ({listed}); not all right rows are"
    return ""


def _rows(y: np.ndarray) -> np.ndarray:
    return y.reshape(-1, y.shape[-1]).astype(float) + 0.0  # -0 is 0


def one_part(question: Question, got: np.ndarray) -> str:
    """Words for the row, head or batch row of the right result that the output is, or for the position at which it is right.

    The output lacks such an axis, or has one entry there. If several places fit, the axes on which they agree are named.
    """
    size = question.right.ndim
    got = got.squeeze() if got.ndim == size else got
    some = chain.from_iterable(combinations(range(size - 1), n) for n in range(1, size))
    for gone, model in product(some, question.ends):
        right, bound = (np.moveaxis(y, gone, range(len(gone))) for y in (question.right, question.tolerance[model]))
        if right.shape[len(gone) :] != got.shape or min(right.shape[: len(gone)]) < 2 or not _decides(got, bound.max()):
            continue
        places = [p for p in np.ndindex(*right.shape[: len(gone)]) if distance(got, right[p], bound[p]) <= 1]
        called = [names(question)[axis].removesuffix("s") for axis in gone]
        same = [f"{name} {i[0]}" for name, *i in zip(called, *places, strict=True) if len({*i}) == 1]
        if same:
            return f"; it is the right result of {', '.join(same)} alone"
    return _at_one_position(question, got)


def _at_one_position(question: Question, got: np.ndarray) -> str:
    """Words for the one position, of the first ones, at which an output without a position axis is right."""
    if not isinstance(question.a.get("positions"), np.ndarray):
        return ""
    try:
        each = Question(question.op, Arguments(question.a, positions=np.arange(FIRST)), question.models)
    except NO_ANSWER:
        return ""
    bound = each.tolerance[each.models[-1]]
    if each.right.shape != (FIRST, *got.shape) or not _decides(got, bound.max()):
        return ""
    found = [p for p in range(FIRST) if distance(got, each.right[p], bound[p]) <= 1]
    return f"; it is the right result of position {found[0]} alone" if len(found) == 1 else ""


def _decides(got: np.ndarray, bound: float) -> bool:
    """Whether the output has three different numbers, and the bound distinguishes them from others."""
    return len(np.unique(got)) > 2 and separates(got, np.full(got.shape, 2 * bound))


def not_computed(question: Question, got: np.ndarray) -> Iterator[Named]:
    """A part that is 0 or equals an input, if nothing else is wrong; at least three different numbers have to be lost.

    The part is some entries of one axis, or some vectors: all positions from one on, for instance.
    """
    wrong = ratios(got, question.right, question.tolerance[question.models[-1]]) > 1
    parts = [
        (name, np.asarray(wrong.any(axis=tuple(i for i in range(wrong.ndim) if i != axis), keepdims=True)))
        for axis, name in enumerate(names(question))
    ]
    found = [_lost(question, got, np.broadcast_to(part, wrong.shape), _entries(question, part, name)) for name, part in parts]
    vectors = np.broadcast_to(wrong.any(axis=-1, keepdims=True), wrong.shape)
    words = _vectors(question, vectors) if wrong.ndim > 1 and not any(found) else ""
    yield from [each for one in (*found, _lost(question, got, vectors, words) if words else []) for each in one]


def _lost(question: Question, got: np.ndarray, part: np.ndarray, words: str) -> list[Named]:
    """The mistake that a part of the result is 0 or equals an input; empty if it does not."""
    if part.all() or len(np.unique(question.right[part])) < 3:
        return []
    found = untouched(got, question.a, (part,))
    source = question.a[found.removeprefix("equals ")] if found.startswith("equals") else 0
    one = re.fullmatch(r"[a-z0-9 -]*[a-rt-z-] \d+", words)
    bug = f"{words} of the result {found if one else _plural(found)}"
    name = "part_zero" if found == "is 0" else "part_unchanged"
    return [(name, Mistake(result(partial(_put, part, source)), bug, "", PART))] if found else []


def _entries(question: Question, part: np.ndarray, name: str) -> str:
    axis = int(np.argmax(part.shape))
    said = _columns(question, part) if axis == part.ndim - 1 else columns(np.moveaxis(part, axis, -1), name)
    return said.removeprefix("; all in ") or f"some {name}"


def _vectors(question: Question, part: np.ndarray) -> str:
    """Words for a part that is all positions from one on; else words for the vectors outside the part."""
    rows, lost = _positions(question, part), part[..., 0]
    if rows is not None and lost.any() and np.array_equal(rows >= rows[lost].min(), lost):
        return f"all from position {rows[lost].min()} on, as where a table of cos and sin ends there,"
    left = where(~part, names(question)).removeprefix("; wrong for ").removesuffix(" alone")
    return f"{lost.sum()} of {lost.size} vectors{left and f', all but {left},'}"


def of_padding(question: Question, got: np.ndarray) -> Iterator[Iterable[Named]]:
    """Other numbers at padding, with right tokens or with those of a mistake; nobody reads padding, and models differ there."""
    right = question.right
    mask = np.asarray(question.a["mask"] if "padding" in question.op.tags else True) != 0  # files hold no booleans
    if not 0 < mask.ndim <= right.ndim or got.shape != right.shape:
        return
    padding = ~mask[..., -right.shape[mask.ndim - 1] :]
    if not padding.any() or padding.all() or (got == right)[padding].all() or not np.isfinite(got).all():
        return  # NaN of padding reaches the scores of a mask
    ours, theirs = (_one_row(question, y[padding]) for y in (got, right))
    has = f"has {ours} instead of {theirs}" if ours and theirs else "differs"
    put = partial(_put, padding.reshape(*padding.shape, *[1] * (right.ndim - mask.ndim)), got)
    words = f"for all tokens; padding alone {has}"
    yield [("padding_alone", Mistake(result(put), words, UNREAD, kind="padding"))]
    yield (
        (
            f"{name} (tokens)",
            mistake._replace(wrong=partial(_beside, put, mistake.wrong), bug=f"{mistake.bug}; and padding {has}"),
        )
        for name, mistake in chain(question.op.mistakes.items(), further(question.op, question.a).items())
    )


def _beside(put: Any, wrong: Any, f: Any, a: Any) -> Any:
    return put(wrong(f, a))


def _one_row(question: Question, rows: np.ndarray) -> str:
    """Words for the one number, or the row of an argument, that all these rows are; "" if they differ."""
    if (rows != rows[0]).any():
        return ""
    tables = [(name, x) for name, x in question.a.items() if np.ndim(x) == 2 and x.shape[1:] == rows.shape[1:]]
    places = [f"row {row} of {name}" for name, x in tables for row in np.flatnonzero((x == rows[0]).all(axis=1))]
    return "".join(places[:1]) if rows.ndim > 1 else f"{rows[0]:g}"


def of_a_part(
    question: Question, got: np.ndarray, mistakes: Callable[[], Iterable[Named]], pairs: bool = False
) -> Iterator[Named]:
    """Mistakes in some texts or heads only, or, if they are no pairs, at some positions or in some of a few columns."""
    wrong = ratios(got, question.right, question.tolerance[question.models[-1]]) > 1
    for part, those in chain(_texts_or_heads(question, wrong), () if pairs else _positions_or_columns(question, wrong)):
        for called, mistake in mistakes() if part.any() and not part.all() else ():
            answer = question.answer(called, mistake.wrong)
            if answer is None or not question.near(got, answer, part):
                continue
            made = partial(_in_place, part, mistake.wrong)
            yield f"{called} ({those})", mistake._replace(wrong=made, bug=f"in {those} alone: {mistake.bug}")


def _texts_or_heads(question: Question, wrong: np.ndarray) -> Iterator[tuple[np.ndarray, str]]:
    for axis, name in enumerate(names(question)[:-2]):
        if name in ("heads", "batch rows"):
            part = np.asarray(wrong.any(axis=tuple(i for i in range(wrong.ndim) if i != axis), keepdims=True))
            yield part, columns(np.moveaxis(part, axis, -1), name).removeprefix("; all in ") or f"some {name}"


def _positions_or_columns(question: Question, wrong: np.ndarray) -> Iterator[tuple[np.ndarray, str]]:
    """Positions on one side of a number, and columns if there are few; none if too little is wrong to recognise a mistake."""
    if not wrong.ndim or wrong.sum() * min(bits(question.right), 8) < BITS:
        return
    name = "positions" if "positions" in question.a else "query_positions"
    rows = _positions(question, wrong, name)
    if rows is not None:
        low, high = (reduced(rows[wrong.any(axis=-1)]) for reduced in (np.min, np.max))
        for part, those in ((rows <= high, f"up to {high}"), (rows >= low, f"from {low} on")):
            if part.any() and not part.all():
                yield part[..., None], f"{name} {those}"
    if wrong.ndim > 1 and wrong.shape[-1] <= COLUMNS:
        part, name = np.asarray(wrong.any(axis=tuple(range(wrong.ndim - 1)))), names(question)[-1]
        yield part, columns(part[None], name if name == "heads" else "columns").removeprefix("; all in ")


def _in_place(part: np.ndarray, wrong: Any, f: Any, a: Any) -> Any:
    return np.where(part, wrong(f, a), f(**a))


def _put(part: np.ndarray, source: Any, y: Any) -> Any:
    return np.where(part, source, y)


def not_finite(question: Question, got: np.ndarray, bad: np.ndarray) -> str:
    """Words for where values are NaN or infinite, and whether the others are right."""
    others = ratios(np.where(bad, question.right, got), question.right, question.tolerance[question.models[-1]]) <= 1
    alone = "; all others are right" if others.all() and not bad.all() else ""
    return (
        f"{bad.sum()} of {bad.size} values are NaN or infinite, the first at ({_listed(_place(bad))})"
        f"{_from(question, bad)}{where(bad, names(question))}{_columns(question, bad)}"
        f"{_beyond_float16(question, bad)}{_causal(question, bad)}{alone}"
    )


def large_scores(question: Question, rows: np.ndarray) -> float | None:
    """The least score of these rows, if they are exactly those with a score beyond the range of exp; None if q and k are
    rotated."""
    a = question.a
    if not {"q", "k", "scale"} <= a.keys() or {"base", "frequencies"} & a.keys() or a.q.shape[:-1] != rows.shape:
        return None
    scores = np.abs(attention.scores(a.q, attention.with_heads_of(a.q, a.k), scale=a.scale, bias=a.get("bias")))
    mask = a.get("mask")
    largest = (scores if mask is None else np.where(mask, scores, 0)).max(axis=-1)
    lost, others = largest[rows], largest[~rows]
    if not lost.size or not others.size or lost.min() < EXP or lost.min() <= others.max():
        return None
    return float(lost.min())


def _from(question: Question, wrong: np.ndarray) -> str:
    """Words for the first position with a wrong element, if rows have positions."""
    rows = _positions(question, wrong)
    if rows is None or not wrong.any():  # none is, where a mistake fits more closely
        return ""
    return f", from position {rows[wrong.any(axis=-1)].min()} on"


def _beyond_float16(question: Question, bad: np.ndarray) -> str:
    """Words, if exactly the positions that float16 rounds to infinity are wrong."""
    rows = _positions(question, bad)
    if rows is None:
        return ""
    infinite = np.isinf(round_to(rows.astype(float), "float16"))
    return "; 65504 is the largest number of float16" if np.array_equal(infinite, bad.any(axis=-1)) else ""


def _positions(question: Question, wrong: np.ndarray, name: str = "positions") -> np.ndarray | None:
    """The position of every row of the output; None if rows have no positions."""
    positions = question.a.get(name)
    if positions is None or wrong.ndim < 2:
        return None
    return broadcast(per_head(positions, wrong), wrong.shape[:-1])


def broadcast(values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray | None:
    try:
        return np.broadcast_to(values, shape)
    except ValueError:
        return None


def _causal(question: Question, bad: np.ndarray) -> str:
    """Words, if exactly the keys after the query are infinite: a causal mask is in the output."""
    if not {"query_positions", "key_positions"} <= question.a.keys() or bad.ndim < 2:
        return ""
    after = ~np.asarray(attention.causal_mask(question.a.query_positions, question.a.key_positions))
    after = after[..., None, :, :] if after.ndim == 3 and bad.ndim == 4 else after
    spread = broadcast(after, bad.shape)
    same = bad.shape[-2:] == after.shape[-2:] and spread is not None and np.array_equal(bad, spread)
    return ": exactly the keys after the query, so a causal mask is in it; leave the mask to the attention" if same else ""


def worst_element(question: Question, got: np.ndarray, model: str) -> str:
    """Words for the element that is farthest off in this model, and for where the wrong elements are."""
    ratio = ratios(got, question.right, question.tolerance[model])
    if question.gauge == "row_constant":
        return _worst_pair(question, got, model)
    if (ratio <= 1).all():
        question.limit(model)  # of all ways of rounding
        together = f"all together are off by {question.spread(got, model):.3g} times the limit"
        return f"each element alone is within what rounding in {model} allows, but {together}, three times what is usual"
    most = ratio == ratio.max()
    place = _place(np.where(most, np.abs(got - question.right), -1))
    rounded = np.isfinite(ratio[place]) and question.kind not in "iub"
    times = f"{ratio[place]:.3g} times" if ratio[place] < 2.0**64 else "far more than"
    bound = f" ({times} what rounding in {model} allows)" if rounded else ""
    wrong, words = ratio > 1, general.relation(question, got, model)
    words = rows_of_an_input(question, got) + (words and f"; {words}")
    return (
        f"the element at ({_listed(place)}) is {got[place]:.9g}, expected {question.right[place] + 0:.9g}{bound}; "
        f"{wrong.sum()} of {ratio.size} differ{_from(question, wrong)}{where(wrong, names(question), got, question.a)}"
        f"{_columns(question, wrong)}{_unwritten(question, wrong, got)}{_masked(question, wrong)}{_seen(question, got, wrong)}"
        f"{_one_number(question, got, wrong)}{_frequencies(question, got)}{words}"
    )


def _columns(question: Question, wrong: np.ndarray) -> str:
    """Words for the wrong features or keys, and for the pairs that they form, if they are few."""
    a, size = question.a, wrong.shape[-1:]
    shapes = {name: value.shape for name, value in a.items() if isinstance(value, np.ndarray)}
    keys = shapes["key_positions"][-1:] if "key_positions" in shapes else shapes.get("k", ())[-2:-1]
    if size and keys == size and "attention" not in question.op.tags:
        return columns(wrong, "keys")
    wide = [shapes[name][-1:] for name in ("x", "q", "v", "table") if name in shapes]
    if size not in [*wide, (a.get("dim"),)]:
        return columns(wrong, "heads" if names(question)[-1] == "heads" else "columns")
    said = columns(wrong)
    if not said or a.get("layout") not in pairing.LAYOUTS or a.dim % 2 or not 2 < a.dim <= size[0]:
        return said
    seen = np.asarray(wrong.reshape(-1, *size).any(axis=0))
    pairs = np.flatnonzero(np.logical_and(*pairing.split(seen[: a.dim], layout=a.layout)))
    whole = 0 < len(pairs) < 3 and seen.sum() == 2 * len(pairs)
    return said + (f", which are pair{'s' * (len(pairs) > 1)} {' and '.join(map(str, pairs))}" if whole else "")


def _unwritten(question: Question, wrong: np.ndarray, got: np.ndarray) -> str:
    """Words, if the wrong columns are 0 or those of an input."""
    along = np.flatnonzero(wrong.reshape(-1, *wrong.shape[-1:]).any(axis=0)) if wrong.ndim > 1 else np.zeros(0)
    found = untouched(got, question.a, (..., along)) if 0 < len(along) < wrong.shape[-1] else ""
    return f", which {_plural(found)}" if found else ""


def _masked(question: Question, wrong: np.ndarray) -> str:
    """Words, if all wrong elements are where a boolean argument is False, such as padding."""
    arrays = {name: x for name, x in question.a.items() if isinstance(x, np.ndarray) and x.ndim}
    flags = {name: x for name, x in arrays.items() if x.dtype == bool and x.shape == wrong.shape[: x.ndim]}
    return next((f"; all where {name} is False" for name, value in flags.items() if not wrong[value].any()), "")


def _seen(question: Question, got: np.ndarray, wrong: np.ndarray) -> str:
    """For a mask: how many keys are wrongly visible, how many wrongly hidden, and at which offsets from the query."""
    if question.kind != "b" or not np.isin(got, (0, 1)).all():
        return ""
    seen, count = np.count_nonzero(wrong & (got == 1)), np.count_nonzero(wrong)
    kinds = (seen, "seen that should be hidden"), (count - seen, "hidden that should be seen")
    parts = [f"{n} {'is' if n == 1 else 'are'} {words}" for n, words in kinds if n]
    square = got.ndim > 1 and got.shape[-1] == got.shape[-2]
    if not square and "key_positions" not in question.a:
        return f"; {', '.join(parts)}"
    every = np.broadcast_to(general.offsets(question.a, got), got.shape)[wrong]
    least, most = every.min(), every.max()
    at = f"the offset key - query of {least}" if least == most else f"offsets key - query of {least} to {most}"
    return f"; {', '.join(parts)}, at {at}"


def _one_number(question: Question, got: np.ndarray, wrong: np.ndarray) -> str:
    """Words, if all wrong numbers are equal, with the setting or sum of two that has this value; or are right at another
    entry."""
    values, whole = got[wrong], not np.isin(question.right, (0, 1)).all() and (question.right == np.rint(question.right)).all()
    for axis, name in enumerate(names(question)):
        if not wrong.any(axis=axis).all() and question.right.shape[axis] > 1 and not wrong.all(axis=axis).any():
            same = [(got == y)[wrong].all() for y in np.split(question.right, question.right.shape[axis], axis=axis)]
            if sum(same) == 1 and len(np.unique(values)) >= min(3, wrong.sum()):
                return f"; these are the right numbers of {name.removesuffix('s')} {same.index(True)}"
    if (values != values[0]).any() or (values.size <= 2 and not whole) or (values[0] in (0, 1) and not whole):
        return ""
    sizes = {name: value for name, value in question.a.items() if type(value) is int} | {"1": 1}
    known = {name: value for name, value in sizes.items() if value > 1} | {
        f"{one} {sign} {other}": sizes[one] + int(f"{sign}1") * sizes[other]
        for one, other in combinations(sizes, 2)
        for sign in "+-"
    }
    meant = [words for words, value in known.items() if value == values[0] > 1]
    return f"; all of them are {values[0]:.10g}" + (f", which is {' or '.join(meant)}" if 0 < len(meant) < 3 else "")


def _frequencies(question: Question, got: np.ndarray) -> str:
    """Words for wrong frequencies of a schedule: a frequency of 0 or below, or the ramp between those kept and those
    divided."""
    a, right = question.a, question.right
    if not {"dim", "base"} <= a.keys() or right.shape != (a.dim // 2,) or (right <= 0).any():
        return ""
    return "; a frequency is never 0 or below" if (got <= 0).any() else phases.where_scaled(right / got, right)


def _worst_pair(question: Question, got: np.ndarray, model: str) -> str:
    """Words for the worst difference within a row: rows may be off by a constant each, so only differences count."""
    bound = question.tolerance[model]
    given, expected = (y[..., :, None] - y[..., None, :] for y in (got, question.right))
    ratio = ratios(given, expected, bound[..., :, None] + bound[..., None, :])
    place = _place(ratio)
    one, other = place[:-1], (*place[:-2], place[-1])
    return (
        f"the elements at ({_listed(one)}) and ({_listed(other)}) differ by {given[place]:.9g}, expected "
        f"{expected[place]:.9g} ({ratio[place]:.3g} times what rounding in {model} allows); "
        "a constant may be added to a whole row"
    )


def _place(values: np.ndarray) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(values)), values.shape))


def _listed(place: tuple[int, ...]) -> str:
    return ", ".join(map(str, place))
