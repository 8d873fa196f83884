"""`posref explain`: what it answers."""

import json
import os

import numpy as np

from posref.explain import explain, output, presets
from posref.explain.output import chosen
from posref.explain.words import describe
from posref.rotary import rope, scaling

SCHEDULES = ("linear", "ntk", "llama3", "yarn", "proportional")  # of `posref.rotary.scaling`, by their own keywords


def answer(arguments):
    """The text that answers one call; ValueError for a file that cannot be explained."""
    explained = chosen(explain(arguments.file), arguments.layer, arguments.part)
    if arguments.frequencies:
        output.write_frequencies(explained, arguments.frequencies)
        return arguments.frequencies
    if arguments.code:
        return output.code(explained, arguments.code, os.path.basename(arguments.file))
    if arguments.diff:
        changes = output.differences(explained, chosen(explain(arguments.diff), arguments.layer, arguments.part))
        return json.dumps(changes, indent=2) if arguments.json else "\n".join(changes) or "the positions are the same"
    return json.dumps(explained, indent=2) if arguments.json else describe(explained, arguments.file)


def asked(file, layer=None, part=None, layout=None):
    """The arguments of `check_rope` for the rotation of a model; ValueError if it has several, or one of a picture.

    `layout` says how features are paired where no key of the file does.
    """
    explained = chosen(explain(file), layer, part)
    unknown = [group for group in explained["layers"] if group["encoding"] == "rope" and group["layout"] is None]
    if layout and not unknown:
        raise ValueError(f"{file} says which features form a pair; leave --layout out")
    for group in unknown if layout else ():
        group["layout"] = layout
    group = output.of_text(explained)
    found = {"dim": output.attending(group), "layout": group["layout"], **_law(group)}
    width = 2 * len(group["frequencies"])
    unusual = {"rotary_dim": (width, found["dim"]), "magnitude": (group["magnitude"], 1.0), "sign": (group["sign"], 1)}
    return found | {name: value for name, (value, usual) in unusual.items() if value != usual}


def _law(group):
    """The base and the schedule that give the frequencies of a rotation, which a check can vary; else the frequencies."""
    frequencies, said = output.frequencies(group), dict(group["scaling"] or {"type": None})
    schedule = said.pop("type")
    said.pop("ramp", None)
    if callable(frequencies) or schedule not in (None, *SCHEDULES):
        return {"frequencies": frequencies}
    plain = rope.frequencies(2 * len(frequencies), group["base"])
    of_base = {"base": group["base"]} if schedule == "yarn" else {}
    made = getattr(scaling, schedule)(plain, **said, **of_base) if schedule else plain
    if not np.array_equal(made, frequencies):
        return {"frequencies": frequencies}
    return {"base": group["base"], **({"schedule": schedule, **said} if schedule else {})}


def asked_axes(file, layer=None, part=None):
    """The settings of axes.rotate for a rotation that reads several positions; none for others."""
    (group,) = chosen(explain(file), layer, part)["layers"][:1]
    settings = presets.rotation(group)[1] if group.get("axes") else {}
    return {name: np.array(value) if isinstance(value, list) else value for name, value in settings.items()}
