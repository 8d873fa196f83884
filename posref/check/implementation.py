"""Implementation: checks a function against any op of `posref.ops`, and names the mistake if it is wrong."""

import difflib
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from posref import _require, ops, vectors
from posref.check import conventions, engine
from posref.check.axes import RESULT, with_tokens_behind_heads
from posref.check.call import Caller, Misbehaved, line_of
from posref.check.ranged import BY_DTYPE, models
from posref.check.report import Finding, Report
from posref.check.rotary import angles, invariants, phases
from posref.check.stages.gradients import check_gradient
from posref.check.stages.inputs import counts, far_scores, fine_numbers, large_features, low_scores, other_masks, small_features
from posref.check.stages.later_questions import failed, is_right, of_lengths_left, other_weights, overflow, reshaped
from posref.check.stages.positions import far_keys, far_positions, negative_positions
from posref.check.stages.reads import other_reads
from posref.check.stages.repeated_calls import call_repeats, reused_buffers, second_call, strides
from posref.check.stages.seeded import seeded
from posref.check.stages.shapes import LARGE, SMALL, confirmed, distinguished, large_counts, other_shapes, trained_lengths
from posref.check.stages.tiles import empty_tiles
from posref.check.tensors import dtype_name
from posref.check.verdict import ALL, blind, decided, judged
from posref.check.wrong_elements import columns
from posref.explain import explanation
from posref.explain import presets as released
from posref.explain import sources as shipped
from posref.ops import Arguments, Op, probe
from posref.ops.probe import FAR, usable
from posref.ops.scaling import ByLength

AXES = ("bhnd", "bnhd", "thd")
SHORTER = (131071, 32767, 8191, 4095, 2047, 1023, 511, 127, 15)  # tables end at such positions


def check(
    fn: Callable[..., Any],
    name: str | Op | None = None,
    *,
    preset: str | None = None,
    to: Callable[[Any], Any] | None = None,
    to_positions: Callable[[Any], Any] | None = None,
    axes: str = "bhnd",
    model: str | None = None,
    seed: int | None = None,
    **settings: Any,
) -> Report:
    """Check `fn` against an op of `posref.ops`, such as "alibi.bias", and name the mistake if it is another formula.

    `fn` receives the arrays of `contract(name)` in their order, as float32 or as `to` converts them, and by keyword the
    settings that its own signature names (`mask` too). It returns one array in the axes of the specification. `to_positions`
    converts integers if `to` would round them. `axes` says how `fn` wants and returns arrays of four axes: "bhnd", "bnhd", or
    "thd" `(batch n, heads, d)` with positions `(batch n,)`. `positions=` is "batch", "shared", "range" (none are passed, they
    count from 0; if no other array shows how many, their number is passed) or "offset" (one integer, the first position).
    `preset` names a released configuration, or a model of `posref.explain`, whose `layer=` and `part=` choose among layers that
    differ. `model` demands one precision model.

    After the first probe come other shapes, steps of decoding, positions below 0 and up to 2^31, keys far from their queries,
    long texts, many heads, features as large as outliers, masks with holes and, in torch or jax, gradients; the report says
    which of these ran. `seed=` adds calls whose sizes, positions and numbers are drawn from the seed, which a function cannot
    know beforehand. `max_position=` limits the positions. ValueError for settings that make no sense; whatever `fn` does wrong
    is in the report.

    >>> from posref.relative import alibi
    >>> def bias(query_positions, key_positions):
    ...     return alibi.bias(query_positions, key_positions, alibi.slopes(12)[::-1], form="signed")
    >>> check(bias, "alibi.bias", heads=12, form="signed").ok
    False
    """
    tables = name == "rope.rotate" and conventions.recognised(fn)
    if (name == "rope" or tables) and preset is None:  # in the words of check_rope, which asks again here
        from posref.check.rotary.rotation import check_rope

        if missing := [each for each in ("dim", "layout") if each not in settings]:
            raise ValueError(f"check.check: {name} needs {' and '.join(missing)}; or pass preset=, which has them")
        return check_rope(fn, to=to, to_positions=to_positions, axes=axes, model=model, seed=seed, **settings)
    op, settings = _asked(name, preset, settings)
    if isinstance(settings.get("frequencies"), ByLength):
        op = op._replace(mistakes=op.mistakes | settings["frequencies"].mistakes(), further=settings["frequencies"].further())
    a = op.make(**settings)
    with usable(op.spec, settings):
        _known_words(op, a)
    of_lengths = "positions" in _settings(op).keys() - settings.keys() and conventions.of_lengths(fn, op, said=False)
    if of_lengths and not _works(Caller(fn, op, to, to_positions, axes, "batch"), a):
        settings["positions"] = "range"
        a = op.make(**settings)
    told, ways = list[str](), _laid_out(op, settings, a, axes)
    fn = conventions.of_indices(fn, op, a, to, to_positions) or conventions.of_two_tables(fn, op, a, to, told)
    if "lengths" in ways:
        fn = conventions.of_lengths(fn, op, said=True) or fn
        told.append("; it received lengths, not positions")
    caller = Caller(fn, op, to, to_positions, *ways)
    if settings.get("causal") and conventions.makes_its_mask(
        fn, [*caller.tensors(a)], {*inspect.signature(op.spec).parameters}
    ):
        caller.received.remove("mask")
        told.append("; it has no parameter for a mask, and none was passed")
    _every_option_is_used(name, op, settings, a, {"to": to, "to_positions": to_positions})
    if model is not None:
        _known_model(model, list(dict.fromkeys(name for dtype in BY_DTYPE for name in models(dtype, a))))
    if seed is not None:
        _require.count("check.check", "seed", seed)
    drawn = {} if seed is None else {"seed": seed}
    report = Report(" ".join([op.name, *(f"{key}={_said(value)}" for key, value in {**settings, **drawn}.items())]))
    settings, a, got = _called(report, caller, op, settings, a)
    question = None if got is None else _question(report, caller, a, model)
    if question is not None and _first(report, caller, question, got):
        op = of_lengths_left(op, question)
        asked = [question, *second_call(report, caller, question), *other_shapes(report, caller, op, settings, question)]
        if {"query_positions", "key_positions"} <= a.keys():
            asked += other_shapes(report, caller, op, settings, question, SMALL, "positions", probe.dense, " without gaps")
        asked += trained_lengths(report, caller, op, settings, question)
        asked += far_positions(report, caller, settings, *asked)
        asked += far_keys(report, caller, settings, *asked)
        asked += other_shapes(report, caller, op, settings, question, LARGE, "large shapes")
        large_counts(report, caller, question)
        strides(report, caller, question)
        reused_buffers(report, caller, question)
        negative_positions(report, caller, settings, question)
        fine_numbers(report, caller, question)
        large_features(report, caller, question)
        small_features(report, caller, question)
        low_scores(report, caller, question)
        far_scores(report, caller, question)
        counts(report, caller, question)
        other_masks(report, caller, settings, question)
        empty_tiles(report, caller, op, settings, question)
        check_gradient(report, caller, op, a)
        if seed is not None:
            seeded(report, caller, settings, question, seed)
        blind(report, *asked)  # what was named is not undecided
    elif question is not None and got is not None:
        distinguished(report, caller, op, settings, question)
        confirmed(report, caller, op, settings, question, reshaped(got, question))
        for each, (shapes, other) in _may_be_none(caller, settings).items():
            with suppress(Misbehaved):
                if is_right(engine.Question(op, other, question.models), caller(other)):
                    report.advice.append(f"Your output is right where {shapes}: pass {each}=None if your model has that shape.")
    report.subject += "".join(told[:1])
    if preset is not None and shipped.model(preset) is not None:
        another_layer(report, fn, preset, **settings | {"to": to, "to_positions": to_positions, "axes": axes})
    if caller.positions != "batch":
        report.ambiguous.append("whether rows of a batch may have positions of their own: positions were shared.")
    if caller.modified and np.asarray(a[caller.modified]).dtype.kind in "iub":
        report.failed("inputs", f"{caller.modified} was modified: the next layer gets other numbers; work on a copy")
    elif caller.modified:
        report.advice.append(f"The input {caller.modified} was modified: callers that need it afterwards must copy it.")
    return report


def another_layer(report: Report, fn: Callable[..., Any], source: Any, **asked: Any) -> None:
    """Say so if the values are wrong for the layer asked for and right for another layer of the model `source`."""
    wrong = any(each.name == "values" and each.status == "failed" for each in report.checks)
    ways = asked.get("to"), asked.get("to_positions"), asked.get("axes", "bhnd"), asked.get("positions", "batch")
    chosen = {name: asked[name] for name in ("positions", "max_position") if name in asked}
    for group in explanation(source).layers if wrong else ():
        with suppress(ValueError, TypeError, Misbehaved):
            name, settings = released.op_and_settings(source, group.indices[0], group.part, asked.get("layout"))
            caller = Caller(fn, ops.op(name), *ways)
            a = caller.op.make(**settings | chosen)
            got = caller(a)
            if is_right(engine.Question(caller.op, a, models(caller.dtype, a)), got):
                place = f"layer {group.indices[0]}" + (f" of {group.part}" if group.part else "")
                remedy = "Choose base, scaling and width by the kind of each layer, as layer_types or its pattern says."
                words = f"your output is right for {place} of this model, and not for the layer that was asked"
                report.diagnosis, report.advice = [Finding(f"rotation_of_{place}".replace(" ", "_"), words, remedy)], [remedy]
                report.ambiguous = [line for line in report.ambiguous if not line.endswith(ALL)]
                return


def whole_heads(report: Report, fn: Callable[..., Any], source: Any, layer: Any, part: Any, width: int, **asked: Any) -> None:
    """If `fn` takes whole heads of `width` features and rotates their last ones, check that the others are unchanged."""
    ways = asked.get("to"), asked.get("to_positions"), asked.get("axes", "bhnd"), asked.get("positions", "batch")
    try:
        name, settings = released.op_and_settings(source, layer, part, asked.get("layout"))
        caller = Caller(fn, ops.op(name), *ways)
        a = caller.op.make(**settings | {name: asked[name] for name in ("positions", "max_position") if name in asked})
        draw, first = np.random.default_rng(0), width - a["x"].shape[-1]
        rest = (2 * draw.integers(-32, 32, (*a["x"].shape[:-1], first)) + 1) / 8  # exact in each dtype, and never 0
        got = caller(Arguments(a | {"x": np.concatenate([rest, a["x"]], axis=-1)}))
    except (ValueError, Misbehaved):  # layers that ask for several things; a function of the turned features alone
        return
    if got.shape[-1] != width:
        return
    question, turned = engine.Question(caller.op, a, models(caller.dtype, a)), got[..., first:]
    factor = 1.0 if is_right(question, turned) else float(np.linalg.norm(turned) / np.linalg.norm(question.right))
    if factor == 0 or not is_right(question, turned / factor):
        return  # it turns all of what it receives, or the first features
    if not (words := _changed(got[..., :first], rest, width - first, factor)):
        report.passed("heads", f"whole ones of {width} features, of which the last {width - first} turn")
        return
    said = f"in whole heads of {width}, {words}"
    remedy = f"Return the others as they are, and turn and multiply the last {width - first} alone."
    report.failed("heads", said)
    report.found("other_features_changed", said, remedy)


def of_three_rows(report: Report, fn: Callable[..., Any], settings: dict[str, Any], **asked: Any) -> bool:
    """Whether `fn` takes position_ids `(3, batch, n)`; the report then says whether each pair reads the row of its axis.

    With two texts of five heads, code that knows no such rows raises, or returns another shape.
    """
    to, to_positions, axes = asked.get("to"), asked.get("to_positions"), asked.get("axes", "bhnd")
    parts = conventions.of_rows(fn, settings, to, to_positions) if axes != "thd" and max(settings["axis"]) == 2 else []
    for name, part in zip(("time, row and column", "time, row and column of k"), parts, strict=False):
        caller = Caller(part, ops.op("axes.rotate"), to, to_positions, axes, "batch")
        a = caller.op.make(**settings, batch=2, heads=5)
        try:
            got = caller(a)
        except Misbehaved:
            return False
        question, found = engine.Question(caller.op, a, models(caller.dtype, a)), Report(report.subject)
        if got.shape != question.right.shape:
            return False
        if not judged(found, question, got, partial(phases.stages, call=caller), pairs=True):
            failed(report, name, found)
            return True
    if parts:
        report.passed("time, row and column", "position_ids (3, batch, n)")
    return bool(parts)


def _changed(others: np.ndarray, given: np.ndarray, rotated: int, factor: float) -> str:
    """What is wrong with a whole head whose last features are rotated; "" if nothing is."""
    wrong, words = others != given, list[str]()
    if wrong.any():
        factors = np.unique((others / given)[wrong])
        where = columns(wrong).removeprefix("; all in ") or f"the first {others.shape[-1]} features"
        words.append(f"{where}, which do not turn, come back {f'times {factors[0]:g}' if len(factors) == 1 else 'changed'}")
    if factor != 1:
        words.append(f"the last {rotated} are turned, and {factor:.4g} times as long as they should be")
    return "; ".join(words)


def contract(
    name: str | None = None,
    *,
    preset: str | None = None,
    to: Callable[[Any], Any] | None = None,
    to_positions: Callable[[Any], Any] | None = None,
    axes: str = "bhnd",
    **settings: Any,
) -> list[str]:
    """What the function receives and returns, one line per array, then the settings with their values or defaults.

    Shapes and dtypes are those of `check` with the same arguments. A required setting that is missing here is replaced by an
    example.

    >>> contract("t5.bias", buckets=64)[:3]
    ['query_positions: integers (3, 5)', 'key_positions: integers (3, 7)', 'table: numbers (64, 2)']
    """
    op, settings = _asked(name, preset, settings)
    examples = example(op)
    try:
        made = op.make(**examples | settings)
        op.spec(**made)
    except (TypeError, ValueError):
        said = any(isinstance(value, str) for value in settings.values())  # words fit whatever the numbers are
        if said or (settings and examples.keys() <= settings.keys()) or axes != "bhnd":
            raise
        lines, words, unused, no_number = list(op.given), {}, set(), set()
    else:
        _every_option_is_used(name, op, settings, made, {"to": to, "to_positions": to_positions})
        caller = Caller(contract, op, to, to_positions, *_laid_out(op, examples | settings, made, axes))
        lines = [f"{each}: {_described(op, each, value)}" for each, value in caller.tensors(made).items()]
        result = caller.laid_out(RESULT, np.asarray(op.spec(**made)), made)
        own = "; or leave out this parameter, and make the causal mask of the positions" if settings.get("causal") else ""
        lines = [line + own * line.startswith("mask: booleans") for line in lines]
        lines.append(f"returns: {_described(op, RESULT, result)}")
        words = _words(op, made)
        defaults = {each: p.default for each, p in _settings(op).items() if p.default is not p.empty}
        asks = defaults.keys() - settings.keys() - inspect.signature(op.spec).parameters.keys()
        asks |= {"base", "exponent_dim"} & defaults.keys() - settings.keys() if "frequencies" in settings else set()
        unused = {each for each in asks if _same(op, examples | settings | {each: defaults[each]}, made, each)}
        optional = _may_be_none(caller, examples | settings)
        words |= {each: f", or pass none: then {shapes}" for each, (shapes, _) in optional.items()}
        no_number = unused & optional.keys()  # every number gives the same arrays, and is refused
        unused -= no_number
    usual = {each: p.default for each, p in _settings(op).items()}
    usual |= {"head_dim": settings["dim"]} if "dim" in settings and "head_dim" in usual else {}
    if _limited(op) and "max_position" not in settings:  # the default limits the first call alone
        usual["max_position"] = f"none: positions up to {FAR[-1]} are tried, while rounding is small enough to show a wrong one"
    for each, value in ((each, value) for each, value in (usual | settings).items() if each not in unused):
        line = f"{each}: required" if value is inspect.Parameter.empty else f"{each}={_said(value)}"
        line = f"{each}: leave it out" if each in no_number else line
        lines.append(line if each in settings else line + words.get(each, ""))
    return lines


def _may_be_none(caller: Caller, settings: dict[str, Any]) -> dict[str, tuple[str, Arguments]]:
    """The settings that were not chosen and whose value None changes a shape: the new shape, and the arguments."""
    op, found = caller.op, dict[str, tuple[str, Arguments]]()
    arrays = caller.tensors(op.make(**settings))
    unchosen = _settings(op).keys() - settings.keys() - inspect.signature(op.spec).parameters.keys()
    for name in (name for name in unchosen if _settings(op)[name].default is not None):
        with suppress(TypeError, ValueError), np.errstate(all="ignore"):
            a = op.make(**settings | {name: None})
            op.spec(**a)
            shapes = {each: np.shape(array) for each, array in caller.tensors(a).items()}
            changed = [f"{each} has shape {shape}" for each, shape in shapes.items() if shape != np.shape(arrays.get(each, 0))]
            found |= {name: (" and ".join(changed), a)} if changed else {}
    return found


def example(op: Op) -> dict[str, Any]:
    """The settings without a default, with their values in the first golden case of the op."""
    cases = (case for case in vectors.load(op.name.split(".")[0]).cases if ops.of_case(case)[0].name == op.name)
    a = ops.of_case(next(cases))[1]
    return {name: a.get(name, 8) for name, p in _settings(op).items() if p.default is p.empty}


def _words(op: Op, a: Arguments) -> dict[str, str]:
    """The words that each setting accepts, as the specification lists them when it refuses another one."""
    found = {}
    for name in (name for name, value in a.items() if isinstance(value, str)):
        try:
            op.spec(**a | {name: "?"})
        except ValueError as error:
            found[name] = "".join(re.findall(r"is '\?'(?:, expected)( one of [^;]*)", str(error)))
    return {name: f",{words}" for name, words in found.items() if words}


def _known_words(op: Op, a: Arguments) -> None:
    """Raises for a setting with an unknown word, or with a word for a number, before `fn` is called and blamed for it."""
    try:
        with np.errstate(all="ignore"):
            op.spec(**a)
    except ValueError as error:
        if "expected one of" in str(error):
            raise


def _known_model(model: str, known: list[str]) -> None:
    plain = [name for name in known if not name.endswith(("-iterative", "-given"))]
    if model not in known:
        words = "-f32math computes in float32, -f32sums multiplies in 16 bits and adds in float32, -all does both in 16 bits"
        more = "; -iterative after any: angles by repeated multiplication" if f"{plain[0]}-iterative" in known else ""
        raise ValueError(f"check.check: there is no model {model!r}; expected {', '.join(plain)}: {words}{more}")


def _laid_out(op: Op, settings: dict[str, Any], a: Arguments, axes: str) -> tuple[str, str]:
    """The axes and the kind of positions with which `fn` is called.

    ValueError if `axes` changes nothing, if these positions cannot be counted, or if texts would run into each other on one
    axis.
    """
    _require.choice("check.check", "axes", axes, AXES)
    positions = settings.get("positions", "batch")
    if positions in ("range", "offset"):
        lengths = _lengths(op, settings, a)
        if not all(others and np.ndim(a[name]) == 1 for name, others in lengths.items()):
            alone = "query_positions" in lengths and "key_positions" not in lengths  # how many tokens are before them?
            if positions == "range" and not alone and all(np.ndim(a[name]) == 1 for name in lengths):
                return axes, "lengths"
            words = (
                f"positions={positions} passes no array of positions, and no other array of {op.name} says how many there are"
            )
            raise ValueError(f"check.check: {words}; pass positions")
    if axes == "bhnd":
        return axes, positions
    moved = with_tokens_behind_heads(op, a)
    if moved <= {RESULT}:
        raise ValueError(
            f"check.check: axes={axes} is for arrays (batch, heads, n, ..), and {op.name} receives none; leave it out"
        )
    alone = len(moved) == 2 and RESULT in moved
    if axes == "thd" and not alone:
        words = "axes=thd puts the tokens of all texts on one axis, which is for functions of one token"
        raise ValueError(f"check.check: {words}; {op.name} takes several together: ask with bhnd or bnhd")
    if axes == "thd" and positions in ("range", "offset"):
        raise ValueError(
            f"check.check: axes=thd has several texts on one axis, which positions={positions} cannot count; pass positions"
        )
    return axes, positions


def _lengths(op: Op, settings: dict[str, Any], a: Arguments) -> dict[str, list[tuple[str, int]]]:
    """For each array of positions: the other arrays, with the axis, that are as long as the positions."""
    found: dict[str, list[tuple[str, int]]] = {}
    for extent in {"n_query", "n_key"} & _settings(op).keys():
        longer = op.make(**settings | {extent: settings.get(extent, _settings(op)[extent].default) + 1})
        shapes = {name: (np.shape(a[name]), np.shape(longer[name])) for name in op.given if name in a and name in longer}
        grown = [
            (name, axis - len(old))
            for name, (old, new) in shapes.items()
            for axis in range(len(old))
            if len(old) == len(new) and old[axis] != new[axis]
        ]
        found |= {name: [(n, i) for n, i in grown if "positions" not in n] for name, _ in grown if "positions" in name}
    return found


def _every_option_is_used(name: Any, op: Op, settings: dict[str, Any], a: Arguments, converters: dict[str, Any]) -> None:
    """ValueError for a setting that changes nothing, and for a converter of arrays that this op does not have."""
    replaced = {"base", "exponent_dim"} if isinstance(name, str) and settings.get("frequencies") is not None else set()
    for setting in settings.keys() - (inspect.signature(op.spec).parameters.keys() - replaced):
        if _same(op, settings, a, setting):
            raise ValueError(
                f"check.check: {setting}={_said(settings[setting])} changes nothing in {op.name} as asked; leave it out"
            )
    kinds = {value.dtype.kind for value in a.values() if isinstance(value, np.ndarray)}
    for name, these in (("to", kinds), ("to_positions", kinds & set("iub"))):
        if converters[name] is not None and not these:
            what = "arrays" if name == "to" else "positions and other integers"
            raise ValueError(f"check.check: {name}= converts {what}, and {op.name} receives none; leave it out")


def _same(op: Op, settings: dict[str, Any], a: Arguments, name: str) -> bool:
    """Whether another value of a setting gives the same arrays; False if that value is refused."""
    value: Any = settings[name]
    other: Any
    if isinstance(value, str):
        other = "shared" if value == "batch" else "batch"
    elif name == "max_position":  # a limit, which may be beyond the first probe
        other = int(value == 1) + 1
    else:
        other = not value if isinstance(value, bool) else 1 if value is None else value + 1
    try:
        b = op.make(**settings | {name: other})
    except (TypeError, ValueError):
        return False
    return all(np.array_equal(a[each], b[each]) for each in a if each != name)


def _settings(op: Op) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(op.make).parameters)


def _described(op: Op, name: str, value: Any) -> str:
    if not hasattr(value, "shape"):
        return _require.kind(value)
    meant = {"mask": "True = no padding" if "padding" in op.tags else "True = may attend", "padding_mask": "True = no padding"}
    usual = {"int64": "integers", "bool": "booleans", "float32": "numbers", "float64": "numbers"}
    kind = usual.get(dtype_name(value), dtype_name(value)) if isinstance(value, np.ndarray) else dtype_name(value)
    return f"{kind} {tuple(value.shape)}" + (f", {meant[name]}" if kind in ("booleans", "bool") and name in meant else "")


def _asked(name: str | Op | None, preset: str | None, settings: dict[str, Any]) -> tuple[Op, dict[str, Any]]:
    """The op and its settings: those of a preset, which `settings` override."""
    if isinstance(name, Op):
        return name, settings
    if preset is None:
        if name is None:
            raise ValueError(f"check.check: name an op, for instance 'alibi.bias'; systems are {', '.join(ops.names())}")
        return ops.op("rope.rotate" if name == "rope" else name), settings
    default, values = _of_preset(preset, settings)
    op = ops.op(default if name in (None, default.split(".")[0]) else name)
    if unknown := values.keys() - _settings(op).keys():
        words = f"{preset} says {', '.join(sorted(unknown))}, and {op.name} has no such setting"
        raise ValueError(f"check.check: {words}; it belongs to {default}: ask that op, or pass settings without preset=")
    return op, values | settings


def _of_preset(preset: str, settings: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The op and the settings of a preset, or of the layers of a shipped model that `layer` and `part` choose."""
    presets = ops.presets()
    if preset.replace("-", "_") in presets:
        return presets[preset.replace("-", "_")]
    if shipped.model(preset) is None:
        near = difflib.get_close_matches(preset.lower(), [model.lower() for model in shipped.models()], n=3)
        models = f"models like {', '.join(near)}" if near else "the models that `posref explain` knows by name"
        raise ValueError(f"check.check: there is no preset {preset!r}; there are {', '.join(presets)} and {models}")
    try:
        chosen = settings.pop("layer", None), settings.pop("part", None)
        return released.op_and_settings(preset, *chosen, settings.get("layout"))
    except ValueError as error:
        raise ValueError(f"check.check: {preset}: {error}") from None


def _said(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.size > 3:
        return f"{value.min():.6g}..{value.max():.6g}"
    if isinstance(value, np.ndarray):  # one for each axis
        return ",".join(f"{number:.6g}" for number in value.ravel())
    return f"{value:g}" if isinstance(value, float) else str(value)


def _called(
    report: Report, caller: Caller, op: Op, settings: dict[str, Any], a: Arguments
) -> tuple[dict[str, Any], Arguments, np.ndarray | None]:
    """Settings, arguments and output. No output if `fn` raised or returned no array; then the report says what works instead.

    The default positions may be beyond a table of `fn`: then nearer positions are asked for.
    """
    try:
        got = caller(a)
    except Misbehaved as error:
        near = {} if "max_position" in settings else _near(caller, op, settings, a)
        if near:
            limit = near["max_position"]
            beyond = f"at positions up to {_farthest(op, a)} {error}; up to {limit} it runs, and all else was checked there"
            report.skipped("far positions", f"{beyond}; pass max_position= with the last position of its table")
            return _called(report, caller, op, near, op.make(**near))
        report.failed("call", str(error))
        working = (words for words, other, made in _others(caller, op, settings, a) if _works(other, made))
        report.advice.append(next(working, None) or _advice(caller, op, error))
        return settings, a, None
    report.passed("call", f"the input {caller.modified} was modified: it works in place" if caller.modified else "")
    return settings, a, got


def _advice(caller: Caller, op: Op, error: Misbehaved) -> str:
    """What to do about a failed call, if no other way to call works."""
    if caller.plain and "torch" in sys.modules and "numpy.ndarray" in str(error):
        return "It received numpy arrays; if it expects tensors, pass to=torch.from_numpy."
    if str(error).startswith("the result of "):
        return "Compute each of the two results from its own array alone."
    contract = f"The contract is fn({', '.join(caller.received)})"
    if where := error.__cause__ and line_of(error.__cause__):
        raised = type(error.__cause__).__name__
        return f"Debug {where}, which raised {raised}. {contract}; wrap the function if it expects others."
    other = isinstance(error.__cause__, TypeError) or str(error).startswith("it returned None")  # no converter mends these
    return f"{contract}; wrap the implementation{'' if other else ', or pass to=, which converts its arrays'}."


def _near(caller: Caller, op: Op, settings: dict[str, Any], a: Arguments) -> dict[str, Any]:
    """The settings with the farthest positions at which `fn` works; empty if there are none."""
    shorter = _shorter(op, settings, a)
    return next((near for near in shorter if _works(caller, op.make(**near))), {})


def _shorter(op: Op, settings: dict[str, Any], a: Arguments) -> Iterator[dict[str, Any]]:
    """The settings with a smaller `max_position`, at lengths where tables end."""
    yield from (settings | {"max_position": limit} for limit in SHORTER if limit < _farthest(op, a))


def _farthest(op: Op, a: Arguments) -> int:
    """The largest position of the probe, if `max_position` limits it; 0 if not, or if that is a number of the formula."""
    return max((int(a[name].max()) for name in op.given if "positions" in name), default=0) if _limited(op) else 0


def _limited(op: Op) -> bool:
    return "max_position" in _settings(op).keys() - inspect.signature(op.spec).parameters.keys()


def _others(caller: Caller, op: Op, settings: dict[str, Any], a: Arguments) -> Iterator[tuple[str, Caller, Arguments]]:
    """Other calls that may work: with tensors, without an array, with nearer positions, with positions of one axis."""
    for words, other in caller.others():
        yield words, other, a
    for each, (shapes, without) in _may_be_none(caller, settings).items():
        yield f"It runs where {shapes}: pass {each}=None.", caller, without
    for near in _shorter(op, settings, a):
        limit = near["max_position"]
        yield f"It runs with positions up to {limit}: pass max_position={limit}.", caller, op.make(**near)
    if "max_position" in _settings(op):
        yield (
            'It runs with one-dimensional positions: pass positions="shared".',
            caller,
            op.make(**settings | {"positions": "shared"}),
        )


def _works(caller: Caller, a: Arguments) -> bool:
    try:
        return caller(a).shape == np.shape(caller.op.spec(**a))
    except Misbehaved:
        return False


def _question(report: Report, caller: Caller, a: Arguments, model: str | None) -> engine.Question | None:
    """The question, in the models that the dtype of the output allows; None if it allows none. Integers have to be exact."""
    right = np.asarray(caller.op.spec(**a))
    whole = caller.dtype.startswith(("int", "uint", "bool")) and bool((right == np.rint(right)).all())
    few = right.dtype.kind in "iub" and caller.dtype in ("bfloat16", "float16")  # as exact as whole numbers have to be
    allowed = models("float64" if whole else "float32" if few else caller.dtype, a)
    if not allowed:
        report.failed("dtype", f"the output has dtype {caller.dtype}, expected one of {', '.join(BY_DTYPE)}")
        return None
    other = f", of inputs in {caller.given}" if caller.given and not whole and caller.given != caller.dtype else ""
    report.passed("dtype", caller.dtype + other)
    return engine.Question(caller.op, a, allowed if model is None else (model,))


def _of_masked_keys(report: Report, caller: Caller, question: engine.Question, got: Any) -> None:
    """Say so if numbers that are not finite come from the mask: without masked keys the output is right."""
    a = question.a
    if np.asarray(a.get("mask", ())).dtype != bool or a.mask.all():
        return
    open_mask = Arguments(a | {"mask": np.ones_like(a.mask)})
    with suppress(Misbehaved):
        if is_right(engine.Question(question.op, open_mask, question.models), caller(open_mask)):
            finite = np.isfinite(got)
            if not is_right(question, np.where(finite, got, question.right)):
                report.advice.append("Where no key is masked your output is right: find the mask that it applies.")
                return
            words = "your output is right where no key is masked; masked keys make it infinite or NaN"
            remedy = "Put -inf into the scores, before the softmax, and select with where: 0 times inf, and inf - inf, are NaN."
            report.found("mask_not_finite", words, remedy)


def _first(report: Report, caller: Caller, question: engine.Question, got: Any) -> bool:
    """Whether the first output is right; the report says how its angles were computed, or else what the output is."""
    got = reshaped(got, question)
    right = judged(report, question, got, partial(phases.stages, call=caller), pairs=True) and decided(report, question)
    if got.any():  # zeros have one name
        invariants.check(report, question, got)
    if not right:
        overflow(report, caller, question, got)
    if not right and not report.diagnosis and not np.isfinite(got).all():
        _of_masked_keys(report, caller, question, got)
    if not right and not report.diagnosis:
        call_repeats(report, caller, question, got)
    if not right and not report.diagnosis and np.isfinite(got).all() and not other_weights(report, caller, question, got):
        other_reads(report, caller, question, got)
    if right and report.precision:
        ways = angles.recognized(question, got, report.precision.model)
        report.precision = replace(report.precision, angles=ways)
    return right
