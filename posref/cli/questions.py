"""What `posref check` and `posref serve` ask: the function of `posref.check`, and its options."""

import contextlib
import inspect

from posref.cli import typed
from posref.cli.typed import Usage

NEVER_OF_A_CONFIG = {"dim", "rotary_dim", "base", "exponent_dim", "frequencies", "schedule", "layout", "magnitude", "sign"}
TEXT_ALONE = (
    "each pair of this model reads one of three positions, and only texts were checked, where the three are equal; images, and "
    "which pair reads which position, were not: a function(x, coordinates) receives all three, (n, 3), and position_ids of "
    "shape (3, batch, n) are tried"
)
IN_PLACE = (
    "the order of the features: your function leaves each pair (2t, 2t + 1) in its place, as the code that DeepSeek released; "
    "transformers writes halves. Scores are the same where queries and keys agree; pass --layout to demand one order."
)


def question(arguments):
    """What is asked: the function of `posref.check` that asks it, and its options."""
    if arguments.config:
        run, options = _of_a_config(arguments)
    elif arguments.system == "rope" and not arguments.preset:
        run, options = _of_rope(arguments)
    else:
        run, options = _of_an_op(arguments)
    if "layout" in options:
        typed.known_layout(options["layout"])
    if isinstance(options.get("frequencies"), str):
        options["frequencies"] = typed.numbers("--frequencies", options["frequencies"])
    return run, options


def chosen(arguments, known, way):
    """The options that were given. Usage for one that is not known to this way of asking."""
    given = {name: getattr(arguments, name) for name in typed.CHECK_OPTIONS if getattr(arguments, name) is not None}
    width, head = given.get("rotary_dim"), given.get("dim")
    if None not in (width, head) and width > head:
        raise Usage(f"--rotary-dim is {width} and --dim {head}; --rotary-dim cannot exceed --dim, the width of a head")
    for name in given:
        if name not in known:
            remedy = "leave it out"
            if name == "rotary_dim" and {"dim", "head_dim"} <= set(known):
                remedy = f"write --dim {given[name]} --head-dim {given.get('dim', 'DIM')}: --dim is the width that turns here"
            if name == "schedule" and way.endswith("rope.rotate"):
                remedy = "leave it out, or check with --as rope, which takes it"
            meaning = typed.CHECK_OPTIONS[name][1]
            raise Usage(f"{way} has no {typed.option(name)}; {remedy}. It is for: {meaning}")
    return given


def _needed(parameters, options, way, op):
    missing = [
        f"{typed.option(name)} or --no-{typed.option(name)[2:]}" if parameter.annotation is bool else typed.option(name)
        for name, parameter in parameters.items()
        if parameter.default is parameter.empty and parameter.kind is parameter.KEYWORD_ONLY and name not in options
    ]
    if missing:
        raise Usage(f"{way} needs {', '.join(missing)}; `posref check --as {op} --contract` explains its settings")


def _of_a_config(arguments):
    """A model's rotation: its configuration says all about it. Where pairs read time, rows and columns, a function that names
    `coordinates` receives all three; another one is asked at positions of a text, and the report says so.
    """
    from posref import check
    from posref.check.implementation import another_layer, of_three_rows, whole_heads

    asked = of_a_model(arguments)
    known = inspect.signature(check.check_rope).parameters.keys() - NEVER_OF_A_CONFIG
    given = chosen(arguments, known | {"config", "layer", "part", "layout"}, "--config, which says the rotation,")
    arguments.parser.refuse(arguments.rest)
    given = {name: given[name] for name in given if name not in ("config", "layer", "part", "layout")}

    def run(function, **options):
        if asked.op == "rope.rotate":
            return _as_it_is(function, asked, options)
        if asked.op == "axes.rotate":
            return check.check(function, "axes.rotate", **asked.settings, **options)
        if asked.axes and "coordinates" in inspect.signature(function).parameters:
            return check.check(function, "axes.rotate", **asked.axes, **options)
        report, layout = check.check_rope(function, **asked.settings, **options), arguments.layout
        if layout is None and asked.settings["layout"] == "interleaved_to_half" and _of_layout(report):
            again = check.check_rope(function, **asked.settings | {"layout": "interleaved"}, **options)
            if again.ok or (again.diagnosis and not _of_layout(again)):
                report, layout = again, "interleaved"
                report.ambiguous.append(IN_PLACE)
        another_layer(report, function, arguments.config, **options, layout=layout)
        rows = asked.axes and report.ok and "positions" not in options and not {"magnitude", "sign"} & asked.settings.keys()
        if asked.axes and not (rows and of_three_rows(report, function, asked.axes, **options)):
            report.skipped("time, row and column", TEXT_ALONE)
        if asked.place:
            if report.ok:
                of = arguments.config, arguments.layer, arguments.part
                whole_heads(report, function, *of, asked.head_dim, **options, layout=layout)
            if report.checks[-1].name == "heads":
                report.skipped("scores", "their scale was not checked")
            else:
                words = f"that they are {asked.place}, and the scale of scores"
                report.skipped("heads", f"only the rotated features were checked; not checked: {words}")
        if asked.pictures:
            report.skipped("pictures", f"their rotation was not checked; it is chosen with {' or '.join(asked.pictures)}")
        return report

    return run, given


def _of_layout(report):
    """Whether a diagnosis is about the order of features."""
    return any("layout" in finding.sentence or "written_as_read" in finding.name for finding in report.diagnosis)


def _as_it_is(function, asked, options):
    """The report on a layer without positions, whose queries and keys stay as they are."""
    from posref import check
    from posref.check.report import Finding

    report = check.check(function, asked.op, **asked.settings, **options)
    report.subject, report.ambiguous = "a layer without positions returns x as it is", []
    turned = check.check_rope(function, **asked.turning, **options) if asked.turning and not report.ok else report
    if turned is not report and (turned.ok or (turned.diagnosis and not report.diagnosis)):
        sentence, remedy = "your output is rotated as in the layers with positions", "Leave this layer out of the rotation."
        sentence += ", but for another mistake" * (not turned.ok)
        report.diagnosis, report.advice = [Finding("layer_with_positions", sentence, remedy), *turned.diagnosis], [remedy]
    return report


def _of_rope(arguments):
    from posref import check, ops

    parameters = inspect.signature(check.check_rope).parameters
    options = chosen(arguments, parameters, "--as rope")
    schedule = f"scaling.{arguments.schedule}"
    known = inspect.signature(ops.op(schedule).spec).parameters if arguments.schedule in ops.system("scaling") else {}
    of_schedule = {name: p.replace(kind=p.KEYWORD_ONLY) for name, p in known.items() if name not in parameters}
    more = {name: parameters[name] for name in ("magnitude", "sign")} | of_schedule
    found = typed.settings(more, arguments.rest, "; --as rope.rotate takes others too")
    options |= found | {
        name: typed.numbers(f"--{name}", found[name]) for name in ("factors",) if isinstance(found.get(name), str)
    }
    _needed(parameters, options, "--as rope", "rope")
    needed = {name: p for name, p in of_schedule.items() if name != "length"}  # without one, several lengths are asked
    _needed(needed, options, f"--schedule {arguments.schedule}", schedule)
    return check.check_rope, options


def _of_an_op(arguments):
    from posref import check, ops

    system = arguments.system if "." in (arguments.system or "") else None  # a preset says the op of its system
    name, way = system or of_preset(arguments)[0], f"--as {system}" if system else f"--preset {arguments.preset}"
    if name and arguments.system and name.partition(".")[0] != arguments.system.partition(".")[0]:
        raise Usage(f"--preset {arguments.preset} is of {name}; leave --as {arguments.system} out, or leave --preset out")
    settings = typed.or_usage(ops.op, name).make if name else check.check
    parameters = inspect.signature(settings).parameters | inspect.signature(check.check).parameters
    of_model = {"layer", "part"} if arguments.preset and arguments.preset.replace("-", "_") not in ops.presets() else set()
    options = chosen(arguments, parameters.keys() | of_model, way) | typed.settings(parameters, arguments.rest)
    _needed({} if arguments.preset else parameters, options, way, name)
    return lambda function, **options: check.check(function, arguments.system, **options), options


def of_preset(arguments):
    """The op of a preset or of a model, and its settings; none for what `check` will refuse."""
    from posref import ops
    from posref.explain import presets

    with contextlib.suppress(ValueError):
        name = (arguments.preset or "").replace("-", "_")
        asked = arguments.preset, arguments.layer, arguments.part, arguments.layout
        return ops.presets().get(name) or presets.op_and_settings(*asked)
    return "", {}


def of_a_model(arguments):
    """What is asked so that a function rotates as a model does."""
    from posref.explain import command

    if arguments.system not in (None, "rope"):
        raise Usage(f"--config is about rotations; leave --as {arguments.system} out")
    try:
        return command.question(arguments.config, arguments.layer, arguments.part, arguments.layout)
    except ValueError as error:
        said = "why" if "is described" in str(error) else "what its layers do, choose the op with --as"
        remedy = f"; `posref explain {arguments.config}` says {said}" * ("layer of" in str(error))
        raise Usage(f"{error}{remedy}") from None
