"""`posref explain`: what it answers."""

import json
import os
from dataclasses import replace

import numpy as np

from posref.explain import explanation, output, presets
from posref.explain.output import chosen
from posref.explain.words import describe
from posref.rotary import rope, scaling

SCHEDULES = ("linear", "ntk", "llama3", "yarn", "proportional")  # of `posref.rotary.scaling`, by their own keywords


def answer(arguments):
    """The text that answers one call; ValueError for a file that cannot be explained."""
    found = chosen(explanation(arguments.file), arguments.layer, arguments.part)
    if arguments.frequencies:
        output.write_frequencies(found, arguments.frequencies)
        return arguments.frequencies
    if arguments.code:
        return output.code(found, arguments.code, os.path.basename(arguments.file))
    if arguments.diff:
        changes = output.differences(found, chosen(explanation(arguments.diff), arguments.layer, arguments.part))
        return json.dumps(changes, indent=2) if arguments.json else "\n".join(changes) or "the positions are the same"
    return json.dumps(found.as_dict(), indent=2) if arguments.json else describe(found, arguments.file)


def asked(file, layer=None, part=None, layout=None):
    """The arguments of `check_rope` for the rotation of a model; ValueError if it has several, or one of a picture.

    `layout` says how features are paired where no key of the file does.
    """
    found = chosen(explanation(file), layer, part)
    unknown = [group for group in found.layers if group.encoding == "rope" and group.layout is None]
    if layout and not unknown:
        raise ValueError(f"{file} says which features form a pair; leave --layout out")
    if layout:
        found = replace(found, layers=[replace(group, layout=layout) if group in unknown else group for group in found.layers])
    group = output.of_text(found)
    settings = {"dim": output.attending(group), "layout": group.layout, **_law(group)}
    width = 2 * len(group.frequencies)
    unusual = {"rotary_dim": (width, settings["dim"]), "magnitude": (group.magnitude, 1.0), "sign": (group.sign, 1)}
    return settings | {name: value for name, (value, usual) in unusual.items() if value != usual}


def _law(group):
    """The base and the schedule that give the frequencies of a rotation, which a check can vary; else the frequencies."""
    frequencies, said = output.frequencies(group), dict(group.scaling or {"type": None})
    schedule = said.pop("type")
    said.pop("ramp", None)
    if callable(frequencies) or schedule not in (None, *SCHEDULES):
        return {"frequencies": frequencies}
    plain = rope.frequencies(2 * len(frequencies), group.base)
    of_base = {"base": group.base} if schedule == "yarn" else {}
    made = getattr(scaling, schedule)(plain, **said, **of_base) if schedule else plain
    if not np.array_equal(made, frequencies):
        return {"frequencies": frequencies}
    return {"base": group.base, **({"schedule": schedule, **said} if schedule else {})}


def asked_axes(file, layer=None, part=None):
    """The settings of axes.rotate for a rotation that reads several positions; none for others."""
    (group,) = chosen(explanation(file), layer, part).layers[:1]
    settings = presets.rotation(group)[1] if group.axes else {}
    return {name: np.array(value) if isinstance(value, list) else value for name, value in settings.items()}
