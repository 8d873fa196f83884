"""What can be asked: the ops of a system, and what a function for one op receives."""

import inspect
import json
import re

from posref.cli import messages, questions, typed
from posref.cli.typed import Usage


def contract(arguments):
    """What can be asked: the ops of a system, or what a function for one op receives."""
    from posref import check, ops

    name = questions.of_a_model(arguments).op if arguments.config else arguments.system
    name = "rope.rotate" if name == "rope" and (arguments.config or arguments.contract) else name
    name = name if arguments.preset is None or "." in (name or "") else questions.of_preset(arguments)[0]
    if name is None:
        raise Usage(
            "check needs --as SYSTEM.OP, for instance --as alibi.bias --heads 8; `posref list` prints all systems, "
            "`posref check --as SYSTEM` the ops of one"
        )
    if "." in name or arguments.preset:
        options = _contract_of(arguments, name)
        pairs = _example_of_pairs(name, options)
        try:
            lines = check.contract(name or None, preset=arguments.preset, **options | pairs)
        except (TypeError, ValueError) as error:
            raise Usage(messages.in_shell(str(error))) from None
        lines = [f"{line.split('=')[0]}: required" if line.split("=")[0] in pairs else line for line in lines]
        means = _meaning(name or questions.of_preset(arguments)[0], lines)
        if arguments.json:
            print(json.dumps({"op": name, "receives": lines, "means": means}, indent=2))
        else:
            _print_contract(arguments, ops.op(name or questions.of_preset(arguments)[0]), options | pairs, lines)
            if means:
                print("\n".join(["Meaning:", *(f"  {word}: {words}" for word, words in means.items())]))
            print("If a parameter of your function has the name of a setting, it receives this setting by keyword.")
            print(f"`posref mistakes {name or questions.of_preset(arguments)[0]}` lists what can be wrong.")
        return 0 if arguments.contract or arguments.function is None else 2
    found = typed.system(name)
    options = [typed.option(key) for key in typed.CHECK_OPTIONS if getattr(arguments, key) is not None]
    if options or arguments.rest:
        known = ", ".join(op.name for op in found.values())
        raise Usage(f"--as {name} lists ops and takes no {[*options, *arguments.rest][0]}; name one of its ops: --as {known}")
    if arguments.json:
        print(json.dumps({op.name: op.given for op in found.values()}, indent=2))
    else:
        print("\n".join(f"{op.name}({', '.join(op.given)})" for op in found.values()))
        first = next(iter(found.values())).name
        print(f"`posref check MODULE:FUNCTION --as {first}` checks one; --contract prints its settings.")
    return 0 if arguments.function is None else 2


def _meaning(name, lines):
    """The meaning of an op's result and arrays, from the conventions of its golden vectors."""
    from posref import vectors

    system, _, own = name.rpartition(".")
    said = vectors.load(system).conventions
    found = {
        word: said.get(f"op {own}" if word == "returns" else word) for word in (re.split("[:=]", line)[0] for line in lines)
    }
    return {word: words for word, words in found.items() if words}


def _example_of_pairs(name, options):
    """An example of the numbers per pair that an op requires, where they were not given, for the width that was."""
    import numpy as np

    from posref import ops
    from posref.check import implementation

    pairs = max(1, options["dim"] // 2) if "dim" in options else 0
    examples = implementation.example(ops.op(name)) if name and pairs else {}
    return {key: np.resize(value, pairs) for key, value in examples.items() if np.ndim(value) and key not in options}


def _print_contract(arguments, op, options, lines):
    """The lines of `check.contract` with a name for each axis, and the settings as one types them."""
    from posref.check import axes, implementation

    parameters = inspect.signature(op.make).parameters
    usual = {name: p.default for name, p in parameters.items()} | implementation.example(op)
    of_model = questions.of_preset(arguments)[1] if arguments.preset else {}
    settings = usual | of_model | {name: value for name, value in options.items() if name in parameters}
    named, why = {}, ""
    try:
        a = op.make(**settings)
        if ":" not in lines[0]:
            op.spec(**a)
        named = axes.axes(op, a)
        for name in axes.with_tokens_behind_heads(op, a) if arguments.axes else ():
            batch, heads, tokens, *rest = named[name]
            named[name] = (batch, tokens, heads, *rest) if arguments.axes == "bnhd" else (tokens, heads, *rest)
    except (TypeError, ValueError) as error:
        why = f"No shapes, since no arguments fit these settings: {messages.plain(error)}."
    end = next((i + 1 for i, line in enumerate(lines) if line.startswith("returns:")), len(op.given))
    said = {re.split("[:=]", line)[0] for line in lines[end:]}
    sizes = {name: value for name, value in settings.items() if type(value) is int and name in said}
    if "dim: required" in lines:
        lines = ["head_dim: as --dim" if line.startswith("head_dim=") else line for line in lines]
    print(f"{op.name} receives, in this order (the sizes are examples):")
    print("\n".join(f"  {_with_axes(line, named, sizes)}" for line in lines[:end]))
    if why and ":" not in lines[0]:
        print(why)
    if lines[end:]:
        print("\n".join(["Settings:", *(f"  {_as_option(line, parameters)}" for line in lines[end:])]))


def _with_axes(line, named, sizes):
    """A line of a contract, `x: numbers (3, 7)`, with what each axis counts: `x: numbers (batch=3, tokens=7)`."""
    from posref.check.axes import COUNTED

    tokens = {"n_query": "queries", "n_key": "keys"} if sizes.keys() >= {"n_query", "n_key"} else {}
    words = {"tokens": tokens, "rows": {name: name for name in sizes.keys() - COUNTED}}
    words[""] = {"dim": "features", "head_dim": "features"}

    def axis(counted, size):
        found = {word for name, word in words.get(counted, {}).items() if sizes.get(name) == int(size)}
        name = found.pop() if len(found) == 1 else counted
        return f"{name}={size}" if name else size

    def shape(found):
        each = found[1].rstrip(",").split(", ")
        counted = named.get("the result" if line.startswith("returns:") else line.partition(":")[0], ())
        return f"({', '.join(map(axis, counted, each))})" if any(counted) and len(counted) == len(each) else found[0]

    return re.sub(r"\((\d[\d, ]*)\)", shape, line, count=1)


def _as_option(line, parameters):
    """A setting as one types it.

    >>> _as_option("max_distance=128", {}), _as_option("layout: required, one of 'interleaved', 'half'", {})
    ('--max-distance 128', '--layout: required, one of interleaved, half')
    """
    name, sign, words = re.match(r"(\w+)(=|: )(.*)", line.replace("'", "")).groups()
    option = typed.option(name)
    default = parameters[name].default if name in parameters else None
    if name in parameters and (parameters[name].annotation is bool or isinstance(default, bool)):
        no = f"--no{option[1:]}"
        return f"{option} or {no}{sign}{words}" if sign == ": " else no if words == "False" else option
    return f"{option}: not given" if words == "None" else f"{option}{sign.replace('=', ' ')}{words}"


def _contract_of(arguments, name):
    """The settings of `check.contract`; for rope, those of its op that mean the same."""
    from posref import check, ops

    parameters = inspect.signature(typed.or_usage(ops.op, name).make).parameters if name else {}
    known = {*parameters, *inspect.signature(check.contract).parameters} | ({"rotary_dim"} if name == "rope.rotate" else set())
    known |= {"config", "layer", "part"} if arguments.config or arguments.preset else set()
    options = questions.chosen(arguments, known, f"the contract of {name}") | typed.settings(parameters, arguments.rest)
    options.pop("preset", None)
    if "frequencies" in options:
        options["frequencies"] = typed.numbers("--frequencies", options["frequencies"])
    if options.pop("config", None):
        settings = questions.of_a_model(arguments).settings
        made = _made_by_its_schedule(settings)
        asked = {key: value for key, value in settings.items() if key in known and not (made and key == "base")} | made
        options = {key: value for key, value in options.items() if key not in ("layer", "part")} | asked
    if name == "rope.rotate" and "rotary_dim" in options:
        width = options.pop("rotary_dim")
        options |= {"dim": width, "head_dim": options.get("dim", width)}
    return options | {key: typed.converter(key, options[key]) for key in ("to", "to_positions") if key in options}


def _made_by_its_schedule(settings):
    """The frequencies of a schedule with its base and its own settings; none where there is no schedule."""
    from posref import check
    from posref.check.rotary import schedules

    if "schedule" not in settings:
        return {}
    width = settings.get("rotary_dim", settings["dim"])
    own = {key: value for key, value in settings.items() if key not in inspect.signature(check.check_rope).parameters}
    return {"frequencies": schedules.asked(settings["schedule"], width, settings["base"], own)[0]}
