"""The answers of the command `posref explain`."""

import contextlib
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from posref.explain import explanation, longer, output, picture, presets
from posref.explain.output import chosen
from posref.explain.words import describe
from posref.rotary import rope, scaling

SCHEDULES = ("linear", "ntk", "llama3", "yarn", "proportional")  # of `posref.rotary.scaling`, by their own keywords


def answer(arguments):
    """The text that answers one call; ValueError for a file that cannot be explained."""
    _require_one(arguments)
    found = chosen(explanation(arguments.file), arguments.layer, arguments.part)
    other = None if arguments.diff is None else chosen(explanation(arguments.diff), arguments.layer, arguments.part)
    if arguments.plot is not None:
        _plot(found, other, arguments)
        return arguments.plot
    if arguments.frequencies is not None:
        output.write_frequencies(found, arguments.frequencies)
        return arguments.frequencies
    if arguments.code is not None:
        return output.code(found, arguments.code, os.path.basename(arguments.file))
    if arguments.longer is not None:
        options = longer.options(found, arguments.longer)
        return json.dumps(options, indent=2) if arguments.json else longer.page(options)
    if other:
        changes = output.differences(found, other)
        words = [f"{arguments.file} -> {arguments.diff}", *changes] if changes else ["the positions are the same"]
        return json.dumps(changes, indent=2) if arguments.json else "\n".join(words)
    return json.dumps(found.as_dict(), indent=2) if arguments.json else describe(found, arguments.file)


def _require_one(arguments):
    """ValueError for two options that do not combine. --plot with --diff, and --json with --longer or --diff, do combine."""
    given = [name for name in ("plot", "frequencies", "code", "longer", "diff") if getattr(arguments, name) is not None]
    given += ["json"] * bool(arguments.json)
    if len(given) > 1 and tuple(given) not in (("plot", "diff"), ("longer", "json"), ("diff", "json")):
        raise ValueError(f"--{given[0]} and --{given[1]} are two answers; leave --{given[1]} out")


def _plot(found, other, arguments):
    """Write the picture of one model, or of two, to an .svg file."""
    if not arguments.plot.endswith(".svg"):
        raise ValueError(f"{arguments.plot}: a picture is written to an .svg file")
    names = (arguments.file, arguments.diff)
    text = picture.compared(found, other, names) if other else picture.drawn(found, arguments.file)
    with open(arguments.plot, "w", encoding="utf-8") as file:
        file.write(text)


def rope_arguments(file, layer=None, part=None, layout=None):
    """The arguments of `check_rope` for the rotation of a model's text; ValueError if the text has several rotations.

    `layout` says how features are paired, see `presets.in_layout`.
    """
    found, _ = _text(file, layer, part)
    paired = [presets.in_layout(group, layout) for group in found.layers]
    if layout and paired == found.layers and layout not in {group.layout for group in paired}:
        raise ValueError(f"{file} says which features form a pair; leave --layout out")
    found = replace(found, layers=paired)
    group = output.of_text(found)
    settings = {"dim": output.attending(group), "layout": group.layout, **_law(group)}
    width = 2 * len(group.frequencies)
    unusual = {"rotary_dim": (width, settings["dim"]), "magnitude": (group.magnitude, 1.0), "sign": (group.sign, 1)}
    return settings | {name: value for name, (value, usual) in unusual.items() if value != usual}


class Question(NamedTuple):
    """What to check for a model: an op, or `rope` for check_rope, its settings, and what this check leaves out."""

    op: str
    settings: dict[str, Any]
    axes: dict[str, Any] | None = None  # settings of axes.rotate, for a function that receives the coordinates too
    pictures: Sequence[str] = ()  # options that choose the rotations of pictures
    turning: dict[str, Any] | None = None  # of a layer without positions: what the others are asked for
    place: str = ""  # which features of a head these are, where the function receives them alone
    head_dim: int = 0  # of such a layer


def question(file, layer=None, part=None, layout=None):
    """What to check for the rotation of a text, or of a picture; a chosen layer without positions must return its input."""
    explained, pictures = _text(file, layer, part)
    if not explained.layers:
        raise ValueError(f"no layer of {file} is described")
    said = layer is not None or part is not None or not explained.unsupported
    first, encodings = explained.layers[0], {group.encoding for group in explained.layers}
    if layer is not None and encodings == {"none"}:
        still = {"dim": first.head_dim, "layout": "half", "frequencies": np.zeros(first.head_dim // 2)}
        with contextlib.suppress(ValueError):
            return Question("rope.rotate", still, turning=rope_arguments(file, None, part, layout))
        return Question("rope.rotate", still)
    axes = axes_settings(file, layer, part)
    if output.of_a_picture(first) and said:
        return Question("axes.rotate", axes)
    places = [
        f"the {group.rotated} {output.attending(group)} of {group.head_dim}"
        for group in explained.layers
        if group.encoding == "rope" and group.head_dim > output.attending(group)
    ]
    place = " or ".join(dict.fromkeys(places))
    return Question("rope", rope_arguments(file, layer, part, layout), axes, pictures, place=place, head_dim=first.head_dim)


def _text(file, layer, part):
    """The explanation of the text, and the options that choose the pictures; if a part was chosen, or there is no text: all."""
    found = chosen(explanation(file), layer, part)
    pictures = [group for group in found.layers if output.of_a_picture(group)]
    texts = [group for group in found.layers if not output.of_a_picture(group)]
    left = layer is not None or any(group.encoding == "rope" for group in texts)
    if part is not None or not (texts and left):
        return found, []
    return replace(found, layers=texts), [output.place(group) for group in pictures]


def _law(group):
    """The base and schedule that give the frequencies, since a check can vary these; the frequencies where none gives them."""
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


def axes_settings(file, layer=None, part=None):
    """The settings of axes.rotate for a rotation with several axes; empty for other rotations."""
    (group,) = _text(file, layer, part)[0].layers[:1]
    settings = presets.rotation(group)[1] if group.axes else {}
    return {name: np.array(value) if isinstance(value, list) else value for name, value in settings.items()}
