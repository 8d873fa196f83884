"""Edits: the specification's own source with one expression changed, as a programmer might have written it.

One expression is replaced in one of the functions that an op runs, and the answer of the changed copy is compared like that of
any mistake. The diagnosis shows the expression of the specification and what the user's code has in its place. Checks of
arguments are not edited. If a state is carried through a text, the functions that compute it by chunks are edited too.
"""

import ast
import copy
import inspect
import re
import sys
import textwrap
import warnings
from collections.abc import Collection, Iterator
from contextlib import suppress
from functools import cache, partial
from itertools import chain, combinations, islice
from types import FunctionType
from typing import Any, Literal, get_origin

import numpy as np

from posref.check.engine import NO_ANSWER, Named, Question, ratios
from posref.check.fitted import explains
from posref.ops import Arguments, Mistake, NotHere, missing
from posref.ops.common import CHUNKS, rounded, wrapped
from posref.ops.variation import steps, varied

LEAST = 3  # different wrong numbers: fewer are met by some edit, whatever the cause
REGROUPED = ("regrouped",)  # edits that move parentheses
PARTS = ("part", *REGROUPED)  # and those that put a part of an expression in its place
MARKS = 12  # wrong entries of a mask, which have one bit each
SHORT = 12  # letters of what says nothing without what stands around it, nor does any name
MOST, STEPS = 2**25, 2**17  # elements of all answers, 2^13 each at least; rows, each a step of a loop where a state is carried
OTHERS: dict[type, tuple[type, ...]] = {
    ast.Add: (ast.Sub, ast.Mult),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div, ast.Add),
    ast.Div: (ast.Mult, ast.FloorDiv),
    ast.FloorDiv: (ast.Div, ast.Mod),
    ast.Mod: (ast.FloorDiv,),
    ast.Pow: (ast.Mult,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
    ast.Lt: (ast.LtE, ast.Gt, ast.GtE),
    ast.LtE: (ast.Lt, ast.GtE, ast.Gt, ast.Eq),
    ast.Gt: (ast.GtE, ast.Lt, ast.LtE),
    ast.GtE: (ast.Gt, ast.LtE, ast.Lt, ast.Eq),
    ast.Eq: (ast.NotEq, ast.LtE, ast.GtE),
    ast.NotEq: (ast.Eq,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
}
ALIKE = (
    {"cos", "sin"},
    {"minimum", "maximum"},
    {"min", "max"},
    {"floor", "ceil", "round", "rint", "trunc"},
    {"log", "log2", "log10", "log1p"},
    {"exp", "exp2", "expm1"},
    {"sum", "mean", "max"},
)
ACTIVATIONS = "x / (1 + np.exp(-x))", "np.log1p(np.exp(x))", "np.tanh(x)", "np.abs(x)"  # in the place of max(x, 0)
FEW_BITS = {"truncated": (0,), "wrapped": (8, 16), "rounded": (11, 8)}  # of int8 and int16, of float16 and bfloat16
COMMUTATIVE = ast.Add, ast.Mult, ast.BitAnd, ast.BitOr
SAME = {(ast.Add, ast.Sub), (ast.Mult, ast.Div), *((op, op) for op in COMMUTATIVE)}  # a + (b - c) is (a + b) - c
FIXED = "shape", "dtype", "ndim", "size"  # what is asked of an array is no number of the formula
NO_VALUE = ast.Slice, ast.JoinedStr, ast.FormattedValue  # expressions that stand where no call may stand
APART = "posref._", "posref.ops.common", "posref.ops.probe", "posref.check"
TOO_LARGE = f"if getattr({{}}, 'size', 0) > {2**21}: raise MemoryError"  # elements of what a loop keeps
REFUSED = NameError, IndexError, KeyError, AttributeError, RecursionError, *NO_ANSWER
DEPRECATED = FutureWarning, DeprecationWarning
REMEDY = "Compare that line of the specification with yours."
WIDER_WHOLE = "Keep that step in int32 or int64: whole numbers of 8 bits are those of int8, of 16 bits those of int16."
WIDER = "Keep that step in float32: numbers of 11 bits are those of float16, of 8 bits those of bfloat16."
WITH_FRACTIONS = "Keep that step in float32: a cast to integers drops what follows the point."
REMEDIES = {"truncated": WITH_FRACTIONS, "wrapped": WIDER_WHOLE, "rounded": WIDER}


def hypotheses(question: Question, got: np.ndarray) -> Iterator[Named]:
    """The first edit that explains an output, in the functions that the op runs or in their versions by chunks."""
    right = question.right
    if got.shape != right.shape:
        return
    wrong = ratios(got, right, question.tolerance[question.models[-1]]) > 1
    marks, whole = np.isin(right, (0, 1)).all(), question.kind in "iu"
    values = np.unique((got - whole * right)[wrong])  # whole numbers that are all off by one number show that number alone
    few = len(values) < LEAST and not marks
    handful = marks and wrong.sum() < MARKS
    if wrong.sum() < (LEAST if marks else MARKS * few) or (few and (wrong.all() or not whole)):
        return
    arrays = (x for x in (right, *question.a.values()) if isinstance(x, np.ndarray))
    rows = max((x.shape[-2] for x in arrays if x.ndim > 1), default=1)
    most = min(MOST // max(right.size, 2**13), STEPS // max(rows, 1))
    coarse = any((rounded(got, bits) == got).all() for bits in FEW_BITS["rounded"])
    ways = tuple(FEW_BITS)[: 3 - coarse]  # a result in few bits says nothing of a step
    spec, sizes = question.op.spec, _sizes(question.a, wrong)
    all_of = [every(spec, question.a, sizes), in_few_bits(spec, question.a, ways)]
    if few or handful:  # there are so few parts, and even fewer parentheses, that none fits by chance
        all_of = [_of_bodies(spec, question.a, PARTS if few else REGROUPED)]
    tried = chain.from_iterable(islice(each, most) for each in all_of)
    found = settled(question.a, (each for each in tried if _explains(question, got, each) and question.names(got, each)))
    question.cut = not found and any(next(each, None) for each in all_of)
    yield from found


def settled(a: Arguments, fitting: Iterator[Named]) -> list[Named]:
    """The first of the edits that fit; if it has another argument than the specification, the first with 0, which has none."""
    for first in fitting:
        after, before = ({*re.findall(r"\w+", code)} for code in first[1].bug.split("` for `"))
        zero = (each for each in fitting if " with 0 for " in each[0]) if after & a.keys() - before else iter(())
        return [next(zero, first)]
    return []


def _explains(question: Question, got: np.ndarray, named: Named) -> bool:
    answer = question.answer(named[0], named[1].wrong)
    return answer is not None and answer.shape == got.shape and bool((answer == got).all() or explains(question, got, answer))


def every(spec: Any, a: Arguments, sizes: Collection[int] = ()) -> Iterator[Named]:
    """All edits of the functions that an op runs; then those of the versions by chunks, with these chunk sizes."""
    yield from _of_bodies(spec, a)
    for core, chunked in _by_chunks(spec):
        for size in sizes:
            run = partial(_answer, core=core, chunked=chunked, size=size)
            for body in _bodies(chunked):
                for edited, words in edits(body):
                    yield _mistake(body, words, partial(run, body=body, edited=edited), f", by chunks of {size} tokens")


def in_few_bits(spec: Any, a: Arguments, ways: tuple[str, ...] = tuple(FEW_BITS)) -> Iterator[Named]:
    """The functions that an op runs, with the result of one step rounded to few bits."""
    yield from _of_bodies(spec, a, ways)


def _of_bodies(spec: Any, a: Arguments, ways: tuple[str, ...] = ()) -> Iterator[Named]:
    """Edits of the functions that an op runs, only in expressions that a run with these arguments evaluates."""
    for body in _bodies(spec, whole=np.asarray(spec(**a)).dtype.kind in "biu"):
        for edited, words in edits(body, ways, _evaluated(spec, a, body)):
            yield _mistake(body, words, partial(_answer, body=body, edited=edited))


def _sizes(a: Arguments, wrong: np.ndarray) -> list[int]:
    """Chunk sizes to try: the first wrong row begins the second chunk, or lies in the first, which may be the whole text."""
    n = a["k"].shape[-2] if "k" in a else 0
    rows = np.flatnonzero(wrong.reshape(-1, *wrong.shape[-2:]).any(axis=(0, 2))) if wrong.shape[-2:-1] == (n,) else [0]
    first = int(rows[0])
    return [*dict.fromkeys((first if first > 1 else n, *(size for size in CHUNKS if first <= size < n)))] if n else []


def _evaluated(spec: Any, a: Arguments, body: FunctionType) -> frozenset[int] | None:
    """The numbers of the expressions of a function that a run evaluates; None if the function cannot be followed."""
    seen: set[int] = set()

    def kept(number: int, value: Any) -> Any:
        seen.add(number)
        return value

    try:
        _answer(spec, a, body=body, edited=_followed(body, kept))
    except (SyntaxError, ValueError, *REFUSED):
        return None
    return frozenset(seen)


def _followed(function: FunctionType, kept: Any) -> FunctionType:
    """A copy that reports each expression when it is evaluated; expressions that have no value are reported at once."""
    root, definition = _parsed_function(function)
    for number, (*_, holder, key, node) in enumerate([*_places(definition)] if definition else []):
        loaded = isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
        parts = node.elts if isinstance(node, ast.Tuple) else [node]
        if loaded and not any(isinstance(each, NO_VALUE) for each in parts):
            _put(holder, key, ast.Call(ast.Name("kept", ast.Load()), [ast.Constant(number), node], []))
        else:
            kept(number, None)
    return _compiled(function, ast.fix_missing_locations(root), kept=kept) if definition else function


def _parsed_function(function: FunctionType) -> tuple[ast.Module, ast.FunctionDef | None]:
    """The source of a function without decorators and annotations, and its definition, or None if it cannot be edited."""
    try:
        root = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except OSError:  # a package without its sources
        return ast.Module([], []), None
    definition = root.body[0]
    if not isinstance(definition, ast.FunctionDef) or function.__closure__:
        return root, None
    definition.decorator_list, definition.returns = [], None
    for each in ast.walk(definition.args):
        if isinstance(each, ast.arg):
            each.annotation = None
    for loop in ast.walk(definition):
        if isinstance(loop, ast.For | ast.While):  # an edited step may add axes each time
            set_here = (node for each in loop.body if isinstance(each, ast.Assign | ast.AugAssign) for node in ast.walk(each))
            kept = {each.id for each in set_here if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
            loop.body += [ast.parse(TOO_LARGE.format(each)).body[0] for each in sorted(kept)]
    return root, definition


@cache
def edits(
    function: FunctionType, ways: tuple[str, ...] = (), among: Collection[int] | None = None
) -> tuple[tuple[FunctionType, str], ...]:
    """Copies of a function with one expression changed, or rounded to few bits, and words for each; no two have the same text.

    `among` are the numbers of the expressions to change, in the order of the code; None means all.

    >>> from posref.position_ids import cached
    >>> [words for _, words in edits(inspect.unwrap(cached))][:3]
    ['`np.arange(n_query)` for `np.arange(n_query) + (n_key - n_query)`', \
'`n_key - n_query` for `np.arange(n_query) + (n_key - n_query)`', \
'`np.arange(n_query) - (n_key - n_query)` for `np.arange(n_query) + (n_key - n_query)`']
    """
    root, definition = _parsed_function(function)
    if definition is None:
        return ()
    taken = definition.args
    placed = [*taken.posonlyargs, *taken.args][::-1]
    defaults = {each.arg: value for each, value in zip(placed, taken.defaults[::-1], strict=False)}
    defaults |= {each.arg: value for each, value in zip(taken.kwonlyargs, taken.kw_defaults, strict=True) if value}
    lists = {ast.unparse(each.value) for each in ast.walk(root) if isinstance(each, ast.Attribute) and each.attr == "append"}
    words = {each for each, of in function.__annotations__.items() if get_origin(of) is Literal}
    lists |= words if len(words) == 1 else set()  # of two, one may stand in the place of the other; of one, no number
    names = {each: defaults.get(each) for each in function.__code__.co_varnames if each not in lists}
    found: dict[tuple[int, str], tuple[FunctionType, str]] = {}
    texts = [ast.unparse(each) for each in definition.body]
    for number, (i, shown, holder, key, node) in enumerate([*_places(definition)]):
        if among is not None and number not in among:
            continue
        before = ast.unparse(shown)
        beside = {each.id for each in ast.walk(definition.body[i]) if isinstance(each, ast.Name)} & names.keys() - {"base"}
        for other in _replaced_by(node, ways) if ways else chain(_instead(node, names), _with_a_factor(node, beside)):
            _put(holder, key, ast.fix_missing_locations(other))
            text = ast.unparse(definition.body[i])
            if text != texts[i] and (i, text) not in found:
                with suppress(ValueError):  # no program, as Python 3.13 finds where 3.11 does not
                    after = ast.unparse(other if shown is node else shown)
                    found[i, text] = _compiled(function, root), f"`{after}` for `{before}`"
            _put(holder, key, node)
    return tuple(found.values())


def _places(definition: ast.FunctionDef) -> Iterator[tuple[int, ast.AST, Any, Any, ast.expr]]:
    """Each expression of the body outside argument checks: the number of its statement, the code around it to show, the holder
    and the key of the expression, and the expression itself."""
    body = enumerate(definition.body)
    waiting: list[tuple[int, ast.AST, ast.AST | None]] = [(n, each, None) for n, each in body if not _is_check(each)]
    while waiting:
        n, node, shown = waiting.pop(0)
        for field, value in ast.iter_fields(node):
            for i, each in enumerate(value if isinstance(value, list) else [value]):
                if not isinstance(each, ast.AST) or _is_check(each):
                    continue
                if not isinstance(each, ast.expr) or isinstance(each, ast.Starred):
                    waiting.append((n, each, shown))
                    continue
                within = shown if shown and (isinstance(each, ast.Name) or len(ast.unparse(each)) < SHORT) else each
                yield (n, within, value, i, each) if isinstance(value, list) else (n, within, node, field, each)
                waiting.append((n, each, within))


def _is_check(node: ast.AST) -> bool:
    """Whether a statement checks arguments or is a docstring."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) or "require" in ast.unparse(node)
    return isinstance(node, ast.Raise) or (isinstance(node, ast.If) and all(map(_is_check, node.body)) and not node.orelse)


def _put(holder: Any, key: Any, node: ast.expr) -> None:
    if isinstance(holder, list):
        holder[key] = node
    else:
        setattr(holder, key, node)


def _instead(node: ast.expr, names: dict[str, ast.expr | None]) -> Iterator[ast.expr]:
    """What may replace an expression: a part of it, another operator, other operands, another name or number."""
    if not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        return
    yield from _parts(node)
    yield from _regrouped(node)
    match node:
        case ast.BinOp(left, op, right):
            yield from (ast.BinOp(left, other(), right) for other in OTHERS.get(type(op), ()))
            yield from () if isinstance(op, COMMUTATIVE) else [ast.BinOp(right, op, left)]
            yield from [ast.Call(_parsed("np.abs"), [node], [])] if isinstance(op, ast.Sub) else ()
        case ast.BoolOp(op, values):
            yield from (ast.BoolOp(other(), values) for other in OTHERS.get(type(op), ()))
        case ast.Compare(left, [op], [right]):
            yield from (ast.Compare(left, [other()], [right]) for other in OTHERS.get(type(op), ()))
        case ast.Call(called, arguments, keywords):
            alike = [] if not isinstance(called, ast.Attribute) else _alike(called)
            yield from (ast.Call(called, [ast.Call(other, arguments, keywords)], []) for other in alike)
            yield from (ast.BinOp(node, op(), ast.Constant(1)) for op in (ast.Add, ast.Sub))
            yield from () if len(arguments) < 2 else [ast.Call(called, [arguments[1], arguments[0], *arguments[2:]], keywords)]
            if ast.unparse(called) == "np.clip" and len(arguments) == 3:
                yield _written("low + (x - low) % (high - low + 1)", x=arguments[0], low=arguments[1], high=arguments[2])
            if ast.unparse(called) == "np.maximum" and ast.unparse(arguments[1]) == "0":
                yield from (_written(activation, x=arguments[0]) for activation in ACTIVATIONS)
        case ast.Subscript(value, where):
            yield ast.BinOp(ast.Constant(0), ast.Mult(), node)
            yield from [value] if "::-1" in ast.unparse(where) else ()
        case ast.Attribute(attr=name, ctx=ast.Load()) if name not in FIXED:
            yield from _alike(node)
        case ast.Constant(bool()):
            yield ast.Constant(not node.value)
        case ast.Constant(int() | float() as value):
            yield from (ast.Constant(other) for other in (value + 1, value - 1, 2 * value, value / 2) if other != value)
        case ast.Name(name, ast.Load()) if name in names:
            yield from [default] if (default := names[name]) is not None else []  # an argument that is not passed on
            yield from (ast.Name(other, ast.Load()) for other in names if other not in (name, "base"))
            yield from (ast.UnaryOp(op(), node) for op in (ast.USub, ast.Invert))
            yield from (ast.Constant(0), ast.Constant(1), *map(_parsed, (f"np.swapaxes({name}, -1, -2)", f"{name}[..., :1]")))
            largest = (f"0 * {name} + np.max({name}{axis})" for axis in ("", ", axis=0", ", axis=-1, keepdims=True"))
            yield from map(_parsed, largest) if name.endswith("positions") else ()  # of the call, the batch or the text
            yield from (ast.BinOp(ast.Constant(1), op(), node) for op in (ast.Div, ast.Sub))  # 1 - x: shares that are exchanged
            yield ast.BinOp(ast.Constant(2), ast.Mult(), node)
            yield from (ast.BinOp(node, op(), ast.Constant(n)) for op, n in ((ast.Add, 1), (ast.Sub, 1), (ast.Div, 2)))
    variables = sorted({each.id for each in ast.walk(node) if isinstance(each, ast.Name) and each.id in names})
    if len(variables) == 1 and not isinstance(node, ast.Name):
        yield _Renamed(dict.fromkeys(variables, node)).visit(copy.deepcopy(node))
    for one, other in combinations([each for each in variables if each != "base"], 2):
        exchanged: dict[str, ast.expr] = {one: ast.Name(other, ast.Load()), other: ast.Name(one, ast.Load())}
        yield _Renamed(exchanged).visit(copy.deepcopy(node))


def _parts(node: ast.expr) -> list[ast.expr]:
    """The operands, arguments or branches of an expression, one of which may stand in its place."""
    match node:
        case ast.BinOp(left, _, right) | ast.IfExp(_, left, right):
            return [left, right]
        case ast.UnaryOp(ast.USub() | ast.Not() | ast.Invert(), operand):
            return [operand]
        case ast.BoolOp(_, values) | ast.Call(_, values):
            return [each for each in values if not isinstance(each, ast.Starred)]
    return []


def _regrouped(node: ast.expr) -> Iterator[ast.expr]:
    """The same operands with the parentheses moved: (a * b) ** c for a * b ** c; two calls in the other order: f(g(x)) for
    g(f(x)). An exponent takes in nothing: integers of Python would have too many digits."""
    match node:
        case ast.BinOp(ast.BinOp(_, ast.Pow(), _), _, _):
            pass
        case ast.BinOp(ast.BinOp(a, first, b), second, c) if (type(first), type(second)) not in SAME:
            yield ast.BinOp(a, first, ast.BinOp(b, second, c))
    match node:
        case ast.BinOp(a, first, ast.BinOp(b, second, c)) if (type(first), type(second)) not in SAME:
            yield ast.BinOp(ast.BinOp(a, first, b), second, c)
        case ast.Call(g, [ast.Call(f, [x, *inner], inner_keywords), *outer], keywords) if not isinstance(x, ast.Starred):
            yield ast.Call(f, [ast.Call(g, [x, *outer], keywords), *inner], inner_keywords)


def _with_a_factor(node: ast.expr, names: Collection[str]) -> Iterator[ast.expr]:
    """A constant multiplied or divided by one of the names beside it: a factor that belongs to it is dropped elsewhere."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value:
        yield from (ast.BinOp(node, op(), ast.Name(name, ast.Load())) for name in sorted(names) for op in (ast.Mult, ast.Div))


def _replaced_by(node: ast.expr, ways: tuple[str, ...]) -> Iterator[ast.expr]:
    """A part of an expression in its place, or other parentheses; or the result of an operator or a call, stored as a float of
    16 bits, as an integer, or as one of 8 or 16 bits."""
    if ways in (PARTS, REGROUPED):
        yield from _parts(node) if ways == PARTS else ()
        yield from _regrouped(node)
    elif isinstance(node, ast.BinOp | ast.Call):
        each = ((way, bits) for way in ways for bits in FEW_BITS[way])
        yield from (ast.Call(ast.Name(way, ast.Load()), [node, *[ast.Constant(bits)][:bits]], []) for way, bits in each)


def _alike(node: ast.Attribute) -> list[ast.expr]:
    """Functions of the same kind, such as sin for cos."""
    others = sorted({other for some in ALIKE if node.attr in some for other in some} - {node.attr})
    return [ast.Attribute(node.value, other, ast.Load()) for other in others]


def _parsed(code: str) -> ast.expr:
    return ast.parse(code, mode="eval").body


def _written(code: str, **parts: ast.expr) -> ast.expr:
    """The expression in `code`, with other expressions in place of its names."""
    written: ast.expr = _Renamed(parts).visit(_parsed(code))
    return written


class _Renamed(ast.NodeTransformer):
    """Replaces names by expressions. If x in f(x) is replaced by f(x) itself, f is applied twice."""

    def __init__(self, instead: dict[str, ast.expr]):
        self.instead = instead

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.instead.get(node.id, node)


def _truncated(x: Any) -> Any:
    """x without fractions; if no more than 0 and 1 are left, they may stand for a step that is left out."""
    return missing() if np.isin(whole := np.trunc(x), (0, 1)).all() else whole


def _compiled(function: FunctionType, root: ast.Module, **known: Any) -> FunctionType:
    space: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # a number in the place of a function
        outside = function.__globals__ | {"truncated": _truncated, "wrapped": wrapped, "rounded": rounded} | known
        exec(compile(root, "<edited>", "exec"), outside, space)
    edited: FunctionType = space[function.__name__]
    outside[function.__name__] = edited  # where it calls itself
    return edited


@cache
def _bodies(spec: Any, whole: bool = False) -> tuple[FunctionType, ...]:
    """The functions of the specification that an op runs, without the wrappers of their contracts; functions of `posref.ops`
    too if the result is whole numbers, since some of these masks and counts are defined there."""
    apart = APART if whole else (*APART, "posref.ops")
    found = dict.fromkeys(inspect.unwrap(step) for step in (spec, *steps(spec)))
    own = (each for each in found if isinstance(each, FunctionType) and not each.__module__.startswith(apart))
    return tuple(each for each in own if not each.__name__.startswith("_require"))


@cache
def _by_chunks(spec: Any) -> tuple[tuple[FunctionType, Any], ...]:
    """Pairs of a function that the op runs and a function of its module with the same parameters and `chunk`."""
    found = []
    for core in (step for step in (spec, *steps(spec)) if hasattr(step, "__wrapped__")):
        takes = inspect.signature(core).parameters.keys()
        beside = vars(sys.modules[core.__module__]).values() if takes else ()
        others = (each for each in beside if isinstance(each, FunctionType) and each.__module__ == core.__module__)
        found += [(core, each) for each in others if inspect.signature(each).parameters.keys() - takes == {"chunk"}]
    return tuple(found)


def _answer(f: Any, a: Arguments, body: Any, edited: Any, core: Any = None, chunked: Any = None, size: int = 0) -> Any:
    """The result of f with `edited` in place of `body`; with `core`, computed by chunks of `size` tokens."""
    form = partial(_replaced(chunked, body, edited), chunk=size) if core else edited
    try:
        with warnings.catch_warnings():
            for each in DEPRECATED:
                warnings.simplefilter("error", each)  # later versions of numpy refuse what older ones warn of
            return _replaced(f, core or body, form)(**a)
    except (*REFUSED, *DEPRECATED) as error:
        raise NotHere(str(error)) from None


def _replaced(f: Any, step: Any, new: Any) -> Any:
    return new if f is step else varied(f, step, new)


def _mistake(body: FunctionType, words: str, wrong: Any, more: str = "") -> Named:
    name, module = body.__name__.strip("_"), body.__module__.removeprefix("posref.")
    bug = f"with {words} in {module}.{name}{more}"
    remedy = next((remedy for way, remedy in REMEDIES.items() if f"{way}(" in words), REMEDY)
    return f"{name} with {words}{more}".replace("`", "").replace(" and ", " & "), Mistake(
        wrong, bug, remedy=remedy, kind="edit"
    )
