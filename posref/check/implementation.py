"""Implementation: somebody else's function for any op of `posref.ops`, and where it is wrong which mistake it makes."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from posref import ops
from posref.check import engine, precision
from posref.check.boxes import where
from posref.check.call import Misbehaved, converted, output, raised
from posref.check.gradients import check_gradient
from posref.check.name import named
from posref.check.report import Precision, Report
from posref.check.tensors import dtype_name
from posref.ops import Arguments, Op

AXES = ("bhnd", "bnhd", "thd")
MODELS = {
    "float64": ("f64", "f32"),
    "float32": ("f32",),
    "float16": ("f16-f32math", "f16-f32sums", "f16-all"),
    "bfloat16": ("bf16-f32math", "bf16-f32sums", "bf16-all"),
}
# settings to show shapes with, where there is no default
EXAMPLES = {
    **{"form": "signed", "layout": "half", "convention": "released", "padding": "zero", "attn_type": "bi"},
    **{"bidirectional": True, "undo": True, "scale": 0.25, "alpha": 0.25, "low": -4, "max_position": 60},
    **{"denominator": "length", "source": "microsoft"},
}
# beside the first probe: one row, one text, one head, many heads, lengths that are no multiple of a tile
BATTERY: tuple[dict[str, int], ...] = (
    {"n_query": 1},
    {"n_query": 1, "n_key": 1},
    {"batch": 1},
    {"heads": 1},
    {"heads": 32},
    {"n_query": 33, "n_key": 33},
    {"n_query": 17, "n_key": 129},
)


def check(
    fn: Callable[..., Any],
    name: str | None = None,
    *,
    preset: str | None = None,
    to: Callable[[Any], Any] | None = None,
    to_positions: Callable[[Any], Any] | None = None,
    axes: str = "bhnd",
    model: str | None = None,
    **settings: Any,
) -> Report:
    """Check `fn` against an op of `posref.ops`, such as "alibi.bias", and name the mistake if it is another formula.

    `fn` receives the arrays of `contract(name)` in their order, float32 or what `to` makes of them, and by keyword the settings
    that its own signature names (`mask` too). It returns one array in the axes of the specification. `to_positions` converts
    integers where `to` would round them. `axes` says how `fn` wants arrays of four axes and returns them: "bhnd", "bnhd", or
    "thd" `(batch n, heads, d)` with positions `(batch n,)`. `positions=` "batch", "shared", "range" (none passed, counted from
    0) or "offset" (one integer, where they start). `preset` names a released configuration; `model` demands a precision.

    After the first probe a battery of other shapes is tried, and the report says which; wrong elements that form a box are
    described. ValueError for settings that make no sense; whatever `fn` does wrong is in the report.

    >>> from posref.relative import alibi
    >>> def bias(query_positions, key_positions):
    ...     return alibi.bias(query_positions, key_positions, alibi.slopes(12)[::-1], form="signed")
    >>> check(bias, "alibi.bias", heads=12, form="signed").ok
    False
    """
    op, settings = _asked(name, preset, settings)
    if axes not in AXES:
        raise ValueError(f"check.check: axes is {axes!r}, expected one of {', '.join(map(repr, AXES))}")
    caller = Caller(fn, op, to, to_positions, axes, settings.get("positions", "batch"))
    words = " ".join(f"{key}={value}" for key, value in settings.items() if not isinstance(value, np.ndarray))
    report = Report(f"{op.name} {words}".strip())
    question = _first(report, caller, op.make(**settings), model)
    if question is not None and report.ok:
        _battery(report, caller, op, settings, question)
        check_gradient(report, caller, op, op.make(**settings))
    if caller.modified:
        report.advice.append(f"The input {caller.modified} was modified: callers that need it afterwards must copy it.")
    return report


def contract(name: str) -> list[str]:
    """What the function receives, one line an array, and the settings with their defaults.

    >>> contract("t5.bias")[0]
    'query_positions: integers (3, 5)'
    """
    op = ops.op(name)
    sizes = {p.name: _example(p) for p in inspect.signature(op.make).parameters.values()}
    try:
        made = op.make(**sizes)
        lines = [f"{each}: {_described(made[each])}" for each in op.given if made.get(each) is not None]
    except (TypeError, ValueError):
        lines = list(op.given)
    return lines + [f"{each}=" + ("" if p.default is p.empty else f"{p.default}") for each, p in _settings(op).items()]


def _settings(op: Op) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(op.make).parameters)


def _example(p: inspect.Parameter) -> Any:
    """A setting to show shapes with."""
    if p.default is not p.empty:
        return p.default
    return EXAMPLES.get(p.name, 8)


def _described(value: Any) -> str:
    if not isinstance(value, np.ndarray):
        return f"a {type(value).__name__}"
    return f"{'integers' if value.dtype.kind in 'iu' else 'numbers'} {value.shape}"


def _asked(name: str | None, preset: str | None, settings: dict[str, Any]) -> tuple[Op, dict[str, Any]]:
    """The op and its settings; those of a preset first."""
    if preset is None:
        if name is None:
            raise ValueError(f"check.check: name an op, for instance 'alibi.bias'; systems are {', '.join(ops.names())}")
        return ops.op(name), settings
    presets = ops.presets()
    key = preset.replace("-", "_")
    if key not in presets:
        raise ValueError(f"check.check: there is no preset {preset!r}; there are {', '.join(presets)}")
    default, values = presets[key]
    op = ops.op(name or default)
    known = _settings(op)
    return op, {setting: value for setting, value in values.items() if setting in known} | settings


class Caller:
    """`fn`, called with copies in its own tensors and axes, its result as float64."""

    def __init__(self, fn: Any, op: Op, to: Any, to_positions: Any, axes: str, positions: str):
        self.fn, self.op, self.axes, self.positions = fn, op, axes, positions
        self.to = to or (lambda a: a)
        self.to_positions = to_positions or self.to
        self.modified = ""
        self.dtype = ""
        self.named = _names(fn) - set(op.given)

    def __call__(self, a: Arguments) -> np.ndarray:
        """The output in the axes of the specification. Misbehaved if it raised or returned no array."""
        given = [(name, self.tensor(name, a)) for name in self.op.given if name in a]
        given = [(name, value) for name, value in given if value is not None]
        before = [output(value) for _, value in given]
        result = self.run([value for _, value in given], a)
        got = output(result)
        self.dtype = dtype_name(result)
        for (name, value), old in zip(given, before, strict=True):
            if not np.array_equal(old, output(value)):
                self.modified = name
        return self.restored(got, a)

    def run(self, given: list[Any], a: Arguments) -> Any:
        """The result of `fn` as it is."""
        try:
            return self.fn(*given, **{name: self.setting(a[name]) for name in self.named & a.keys()})
        except (Exception, SystemExit) as error:
            shapes = ", ".join(f"{name} {np.shape(a[name])}" for name in self.op.given if name in a)
            raise Misbehaved(f"it raised {raised(error)}; called with {shapes}") from error

    def tensor(self, name: str, a: Arguments) -> Any:
        """An argument as `fn` wants it; None for what it does not receive."""
        value = a[name]
        if "positions" in name and self.positions in ("range", "offset"):
            return None if self.positions == "range" else int(np.min(value))
        if not isinstance(value, np.ndarray):
            return value
        whole = value.dtype.kind in "iub"
        array = value.copy() if whole else self.laid_out(value).astype(np.float32)
        array = array.reshape(-1) if self.axes == "thd" and "positions" in name else array
        made, values = converted("check.check", "to", self.to_positions if whole else self.to, array)
        if whole and not np.array_equal(values, array):
            raise ValueError(
                f"check.check: to= turns integers up to {array.max()} into {dtype_name(made)}, which does not hold them; "
                "pass to_positions=, for instance torch.from_numpy or jax.numpy.asarray"
            )
        return made

    def setting(self, value: Any) -> Any:
        return self.to_positions(value.copy()) if isinstance(value, np.ndarray) else value

    def laid_out(self, x: np.ndarray) -> np.ndarray:
        """`(batch, heads, n, d)` in the axes of `fn`."""
        if x.ndim != 4 or self.axes == "bhnd":
            return x.copy()
        x = np.ascontiguousarray(np.swapaxes(x, 1, 2))
        return x if self.axes == "bnhd" else x.reshape(-1, *x.shape[2:])

    def restored(self, got: np.ndarray, a: Arguments) -> np.ndarray:
        """The result of `fn` in the axes of the specification, where it has those of `fn`."""
        if self.axes == "bhnd" or not any(isinstance(a[name], np.ndarray) and a[name].ndim == 4 for name in self.op.given):
            return got
        first = next(a[name] for name in self.op.given if isinstance(a[name], np.ndarray) and a[name].ndim == 4)
        if self.axes == "thd" and got.ndim == 3:
            got = got.reshape(len(first), -1, *got.shape[1:])
        heads_last = got.ndim == 4 and got.shape[2] == first.shape[1] and got.shape[1] == first.shape[2]
        return np.swapaxes(got, 1, 2) if heads_last else got


def _names(fn: Any) -> set[str]:
    """The arguments that a function takes by name; none of one that does not say."""
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return set()
    return {p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)}


def _first(report: Report, caller: Caller, a: Arguments, model: str | None) -> engine.Question | None:
    """Call, shape, dtype, finite numbers, values; and the mistake if they are wrong."""
    try:
        got = caller(a)
    except Misbehaved as error:
        report.failed("call", str(error))
        report.advice.append(f"The contract is fn({', '.join(caller.op.given)}); wrap the implementation, or pass to=.")
        return None
    report.passed("call", f"the input {caller.modified} was modified: it works in place" if caller.modified else "")
    kind = "float64" if caller.dtype.startswith(("int", "uint", "bool")) else caller.dtype
    if kind not in MODELS:
        report.failed("dtype", f"the output has dtype {caller.dtype}, expected one of {', '.join(MODELS)}")
        return None
    report.passed("dtype", caller.dtype)
    question = engine.Question(caller.op, a, MODELS[kind] if model is None else (model,))
    _judged(report, question, got)
    return question


def _judged(report: Report, question: engine.Question, got: np.ndarray) -> None:
    right = question.right
    if got.shape != right.shape and got.size == right.size and got.squeeze().shape == right.squeeze().shape:
        got = got.reshape(right.shape)  # axes of extent 1 more or less
    if got.shape != right.shape:
        report.failed("shape", f"the output has shape {got.shape}, expected {right.shape}")
        named(report, question, got)
        return
    report.passed("shape")
    if not np.isfinite(got).all():
        bad = ~np.isfinite(got)
        report.failed("finite", f"{bad.sum()} of {got.size} values are NaN or infinite{where(bad)}")
        return
    found = question.ask(got)
    if found.ok:
        report.passed("values", f"within the bound, at most {found.worst:.2g} of it")
        report.precision = Precision(found.model, found.worst, precision.MEANING.get(found.model, "sums in float32"))
        _blind(report, question, found.model)
        return
    ratio = np.abs(got - right) / np.maximum(question.tolerance[question.models[-1]], 1e-300)
    place = tuple(map(int, np.unravel_index(int(np.argmax(ratio)), ratio.shape)))
    report.failed(
        "values",
        f"the element at {place} is {got[place]:.9g}, expected {right[place]:.9g} ({ratio[place]:.3g} times the bound of "
        f"{question.models[-1]}); {(ratio > 1).sum()} of {ratio.size} differ{where(ratio > 1, got, question.a)}",
    )
    named(report, question, got, pairs=True)


def _blind(report: Report, question: engine.Question, model: str) -> None:
    blind = question.blind(model)
    if blind:
        more = f"; and {len(blind) - 12} more" if len(blind) > 12 else ""
        report.ambiguous.append(f"this data cannot tell {question.op.name} as asked from: {'; '.join(blind[:12])}{more}.")
    if 2 * len(blind) > len(question.wrong) and model not in ("f64", "f32"):
        report.skipped("resolution", f"{model} hides {len(blind)} of {len(question.wrong)} mistakes; check in float32 as well")


def _battery(report: Report, caller: Caller, op: Op, settings: dict[str, Any], first: engine.Question) -> None:
    """The same question at other shapes; the first that fails is described."""
    tried = []
    for shape in _shapes(op, settings):
        a = op.make(**settings | shape)
        words = ", ".join(f"{key}={value}" for key, value in shape.items())
        try:
            got = caller(a)
        except Misbehaved as error:
            report.failed(f"shape {words}", str(error))
            return
        question = engine.Question(op, a, first.models)
        part = Report(report.subject)
        _judged(part, question, got)
        if not part.ok:
            report.failed(f"shape {words}", next(check.detail for check in part.checks if check.status == "failed"))
            report.diagnosis += part.diagnosis
            report.advice += part.advice
            return
        tried.append(words)
    if tried:
        report.passed("shapes", "; ".join(tried))


def _shapes(op: Op, settings: dict[str, Any]) -> Iterator[dict[str, int]]:
    """The extents of the battery that change an array of this op and were not chosen."""
    sizes = _extents(op.make(**settings))
    own = {*settings, *inspect.signature(op.spec).parameters} | ({"heads"} if "key_heads" in _settings(op) else set())
    for shape in BATTERY:
        possible = shape.keys() <= _settings(op).keys() - own and _runs(op, settings | shape)
        if possible and _extents(op.make(**settings | shape)) != sizes:
            yield shape


def _runs(op: Op, settings: dict[str, Any]) -> bool:
    """False where the specification refuses the shape."""
    try:
        op.spec(**op.make(**settings))
    except (TypeError, ValueError):
        return False
    return True


def _extents(a: Arguments) -> list[tuple[int, ...]]:
    return [np.shape(value) for value in a.values()]
