"""Output of `posref explain`: frequencies as files, code for a rotation, and the differences between two models."""

import json
import re
from dataclasses import replace
from itertools import zip_longest

import numpy as np

from posref._printable import in_one_line
from posref.explain.configuration import shown
from posref.explain.words import LONGER, SCHEDULES, counted, first_and_last, rule_in_words, runs
from posref.ops.scaling import ByLength
from posref.rotary import rope

PYTHON = '''"""{title}"""

{imports}

FREQUENCIES = {array}
MAGNITUDE = {magnitude!r}


def rope(x, positions):
    """x (batch, heads, n, {dim}), positions (batch, n): x with its features rotated."""
    angle = positions[:, None, :, None] * FREQUENCIES
    cos, sin = {cos} * MAGNITUDE, {sin} * MAGNITUDE
    {before}
    a, b = {split}
    rotated = {join}
    return {result}
'''
TEST = """

def test_rope():
    from posref.check import check_rope

    check_rope(rope, dim={dim}, {width}frequencies={plain}, layout="{layout}"{convert}).require()
"""
C = """/* {title} */
#include <math.h>

static const double frequencies[{pairs}] = {{{values}}};

/* Turn the {dim} features of one query or key at one position. */
void rope(double *x, long position) {{
    {shift}for (int t = 0; t < {pairs}; t++) {{
        double angle = position * frequencies[t];
        double c = {magnitude!r} * cos(angle), s = {magnitude!r} * sin(angle);
        double a = x[{first}], b = x[{second}];
        x[{first}] = a * c - b * s;
        x[{second}] = a * s + b * c;
    }}
}}
"""
LANGUAGES = ("numpy", "torch", "jax", "c")
LIBRARIES = {"numpy": ("np", "numpy"), "torch": ("torch", "torch"), "jax": ("jnp", "jax.numpy")}
ANSWERED = (
    "encoding",
    "layout",
    "heads",
    "kv_heads",
    "head_dim",
    "rotary_dim",
    "base",
    "scaling",
    "magnitude",
    "softmax_scale",
    "window",
    "chunk",
    "sinks",
    "softcap",
)
# {field: the field without which it has no meaning}: where one model has no window, window_sides is not compared
FOLLOWS = {"window_sides": "window", **dict.fromkeys(("index", "order", "learned_first"), "axes")}
# fields that decide how features rotate: layers that agree in them have one rotation
TURNED_BY = (
    *("layout", "rotary_dim", "rotated", "frequencies", "frequencies_long", "magnitude", "sign", "axes", "index", "order"),
    "learned_first",
)


def chosen(explained, layer=None, part=None):
    """The explanation of the chosen layers only; ValueError if there are no such layers."""
    kept = [group for group in explained.layers if part is None or group.part == part]
    kept = [group for group in kept if layer is None or layer in group.indices]
    if not kept and explained.layers:
        of = lambda part: f" of part {part!r}" if part else ""  # noqa: E731, a model of one part has no name for it
        asked = f"part {part!r}" if layer is None else f"layer {layer}{of(part)}"
        there = [f"{runs(group.indices)}{of(group.part)}" for group in explained.layers]
        raise ValueError(f"there is no {asked}; the layers are {'; '.join(dict.fromkeys(there))}")
    return replace(explained, layers=kept)


def one(explained):
    """The rotary layers of an explanation as one group; ValueError if there are none, or if their rotations differ."""
    groups = [group for group in explained.layers if group.encoding == "rope"]
    distinct = {
        json.dumps([getattr(group, key) for key in TURNED_BY] + [attending(group), by_length(group)]) for group in groups
    }
    if len(distinct) == 1:
        return groups[0]
    which = "; ".join(map(place, groups))
    raise ValueError(
        f"{len(distinct)} rotations in this model; choose one: {which}"
        if groups
        else f"no {'described ' * bool(explained.unsupported)}layer of this model rotates"
    )


def place(group):
    """The command-line options that choose these layers, such as --layer 0 --part vision_config."""
    return f"--layer {group.indices[0]}" + f" --part {group.part}" * bool(group.part)


def of_a_picture(group):
    """Whether these layers rotate by the axes of a picture or a video, not by positions in a text."""
    return bool(group.axes) and not group.positions["forward"]


def of_text(explained):
    """The rotation by positions in a text; ValueError for the axes of a picture, and if the layout is not known."""
    group = one(explained)
    if of_a_picture(group):
        raise ValueError("these layers rotate by the rows and columns of a picture, not by positions in a text")
    if group.layout is None:
        raise ValueError(f"which features of {shown(explained.model_type)} form a pair is not known; no key says it")
    return group


def write_frequencies(explained, path):
    """Write the frequencies of the one rotation to a .npy, .json or .h file."""
    frequencies = one(explained).frequencies
    if path.endswith(".npy"):
        np.save(path, np.array(frequencies))
        return
    if not path.endswith((".json", ".h", ".c")):
        raise ValueError(f"{path}: frequencies are written to a .npy, .json or .h file")
    values = ", ".join(map(repr, frequencies))
    text = (
        json.dumps(frequencies)
        if path.endswith(".json")
        else f"static const double frequencies[{len(frequencies)}] = {{{values}}};\n"
    )
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def code(explained, language, name):
    """Source code of one rotation; Python code ends with a test that passes the function to `check`."""
    if language not in LANGUAGES:
        raise ValueError(f"code is written in {', '.join(LANGUAGES)}, not in {language}")
    group = _written(of_text(explained))
    if longer := next((trap for trap in explained.traps if trap.startswith(LONGER)), None):
        raise ValueError(f"{longer}: the code printed here has one list of frequencies")
    name = re.sub(r"[^\w. -]", "_", name)  # it stands in a comment
    words = {"title": f"RoPE of {name}, layers {runs(group.indices)}: {group.call}.", "dim": attending(group)}
    if group.rotated == "last" and group.rotary_dim < group.head_dim:
        words["title"] += f" It takes the last {group.rotary_dim} of the {group.head_dim} features of a head alone."
    if group.rotated_heads:
        heads = f" of {group.heads} head{'s' * (group.heads > 1)}" if group.heads else ""
        words["title"] += f" The model rotates head {runs(range(group.rotated_heads))}{heads} alone."
    if group.temperature:
        words["title"] += f" The model also multiplies queries by {rule_in_words(group.temperature)}; this code does not."
    if group.undo:
        words["title"] += " The model also rotates values, and rotates the output of attention back; call it for both."
    return _c(group, words) if language == "c" else _python(group, words, language)


def _written(group):
    """The group, if code with one list of frequencies and one position per token can rotate it; else a ValueError says why."""
    if group.axes:
        raise ValueError(
            f"tokens of these layers have {len({*group.axes})} positions (axes {group.order}): the printed code takes one; "
            "posref.rotary.axes computes this rotation"
        )
    if group.frequencies_long is not None:
        length = group.scaling["original_length"]
        raise ValueError(
            f"these layers have two lists of frequencies, one up to {length} tokens and one for longer texts: the code printed "
            "here has one; --frequencies writes the short list, posref.rotary.scaling.longrope computes both"
        )
    if group.rotary_dim % 2:
        raise ValueError(f"the rotated width {group.rotary_dim} of these layers is odd: no features form the last pair")
    if (group.scaling or {}).get("type", "").startswith("dynamic_ntk"):
        length = group.scaling["original_length"]
        raise ValueError(
            f"the frequencies of these layers change with the length of a text beyond {length} tokens: the code printed here "
            "has one list; posref.rotary.scaling.dynamic_ntk computes them"
        )
    return group


def attending(group):
    """The width of the argument of the rotation: the last features of a head where only these rotate, else the whole head."""
    return group.rotary_dim if group.rotated == "last" else group.head_dim


def not_added_up(group):
    """Words for sections that have fewer pairs than turn, "" if they have all: transformers splits the pairs by them."""
    pairs, turn = len(group.axes or ()), len(group.frequencies or ())
    if group.order != "sections" or pairs >= turn:
        return ""
    words = "transformers 5.23.0 builds this model, and its first call raises"
    return f"mrope_section adds up to {pairs} pairs, and {turn} pairs turn, half the rotated width: {words}"


def frequencies(group):
    """The frequencies of rotary layers: an array; `ByLength` for LongRoPE and dynamic NTK, where they follow the length."""
    found, numbers = by_length(group), np.array(group.frequencies)
    if not found:
        return numbers
    long = None if group.frequencies_long is None else np.array(group.frequencies_long)
    return ByLength(numbers, found["original_length"], long, found["factor"])


def by_length(group):
    """The numbers that make frequencies from a length; empty if the frequencies do not depend on the length."""
    said = group.scaling or {}
    if group.axes or (group.frequencies_long is None and said.get("type") != "dynamic_ntk"):
        return {}
    return {"original_length": said["original_length"], "factor": said["factor"], "frequencies_long": group.frequencies_long}


def _python(group, words, language):
    short, module = LIBRARIES[language]
    half, width = len(group.frequencies), 2 * len(group.frequencies)
    values = "[" + ", ".join(map(repr, group.frequencies)) + "]"
    array = f"torch.tensor({values}, dtype=torch.float64)" if language == "torch" else f"{short}.array({values})"
    whole = width == words["dim"]
    source = "x" if whole else "first"
    halves = f"{source}[..., :{half}], {source}[..., {half}:]"
    split = halves if group.layout == "half" else f"{source}[..., 0::2], {source}[..., 1::2]"
    join = f"{short}.{'cat' if language == 'torch' else 'concatenate'}"
    axis = "dim=-1" if language == "torch" else "axis=-1"
    sine = "sin" if group.sign > 0 else "-sin"
    a, b = f"a * cos - b * {sine}".replace("- b * -sin", "+ b * sin"), f"a * {sine} + b * cos"
    together = f"{join}([{a}, {b}], {axis})"
    if group.layout == "interleaved":
        together = f"{short}.stack([{a}, {b}], {axis}).reshape({source}.shape)"
    imports = f"import {module}" if short == module else f"import {module} as {short}"
    fields = {
        **words,
        "imports": imports,
        "array": array,
        "magnitude": group.magnitude,
        "cos": f"{short}.cos(angle)",
        "sin": f"{short}.sin(angle)",
        "before": f"first, rest = x[..., :{width}], x[..., {width}:]" if not whole else "# every feature rotates",
        "split": split,
        "join": together,
        "result": "rotated" if whole else f"{join}([rotated, rest], {axis})",
    }
    convert = {"numpy": "", "torch": ", to=torch.from_numpy", "jax": ", to=jnp.asarray"}[language]
    plain = "FREQUENCIES.numpy()" if language == "torch" else "FREQUENCIES"
    convert += f", magnitude={group.magnitude!r}" * (group.magnitude != 1) + f", sign={group.sign}" * (group.sign != 1)
    narrow = "" if whole else f"rotary_dim={width}, "
    test = TEST.format(dim=words["dim"], width=narrow, plain=plain, layout=group.layout, convert=convert)
    return PYTHON.format(**fields) + test


def _c(group, words):
    pairs = len(group.frequencies)
    first, second = ("t", f"t + {pairs}") if group.layout == "half" else ("2 * t", "2 * t + 1")
    if "_to_" in group.layout:
        raise ValueError(
            "C code rotates features in place; this model reads adjacent pairs and leaves halves, use --code numpy"
        )
    values = ", ".join(map(repr, group.frequencies))
    sign = "position = -position;\n    " if group.sign < 0 else ""
    return C.format(**words, pairs=pairs, values=values, magnitude=group.magnitude, first=first, second=second, shift=sign)


TEXTS = ("", "text_config", "llm_config", "language_config")  # names of the part of the text
NO_ANSWERS = {"part", "indices", "model_type", "source", "slips", "call", "phase_error", "frequencies", "frequencies_long"}


def differences(ours, theirs):
    """The changes from `ours` to `theirs`, as lines: what the schedules change in words, then each field that differs."""
    found = []
    ours, theirs = in_one_line(ours), in_one_line(theirs)
    if ours.model_type != theirs.model_type:
        found.append(f"model_type: {ours.model_type} -> {theirs.model_type}")
    texts = {_text(ours), _text(theirs)}
    alike = dict.fromkeys(texts, "text") if len(texts - {None}) == 2 else {}
    a, b = (_by_place(side, alike) for side in (ours, theirs))
    changed = {}
    for place in sorted({*a, *b}, key=str):
        for before, after in zip_longest(a.get(place, ()), b.get(place, ())):
            for line in _changes(before, after):
                changed.setdefault((place[0], line), []).append(place[1])
    for (part, line), layers in changed.items():
        found.append(f"{part} layers {runs(sorted(set(layers)))}: {line}".strip())
    what = {"unsupported": "layers that are not described", "unread": "keys that were not understood"}
    what |= {"foreign": "keys that no class of transformers 5.23.0 has"}
    found += [f"{words} differ; see each file" for key, words in what.items() if getattr(ours, key) != getattr(theirs, key)]
    return found


def _text(explained):
    """The name of the text part; None if there is none."""
    parts = {group.part for group in explained.layers}
    return next((part for part in sorted(parts) if part.rpartition(".")[2] in TEXTS), None)


def _by_place(explained, alike):
    """{(part, index of a layer): its groups}; a decoder layer that also attends to an encoder has two groups.

    `alike` gives a common name to parts that two files name differently.
    """
    found = {}
    for group in explained.layers:
        for i in group.indices:
            found.setdefault((alike.get(group.part, group.part), i), []).append(group)
    return found


def _changes(before, after):
    """The changes of one layer, as lines; None for a side means that this file lacks the layer."""
    if before is None or after is None:
        return [f"only in the {'first' if after is None else 'second'} file"]
    words, a, b = _stretched(before, after), _answers(before), _answers(after)
    keys = [key for key in dict.fromkeys([*ANSWERED, *a, *b]) if a.get(key) != b.get(key)]
    keys = [key for key in keys if FOLLOWS.get(key) not in keys or None not in (a.get(FOLLOWS[key]), b.get(FOLLOWS[key]))]
    found = [_change(key, a.get(key), b.get(key)) for key in keys if key not in NO_ANSWERS]
    if not found and "frequencies" in keys:
        found = ["frequencies differ"]
    return [words, *found] if words else found


def _answers(group):
    """The fields of these layers, with words where None does not mean "none"."""
    unknown = {"causal": "as the model is used"} | ({"layout": "not known"} if group.encoding == "rope" else {})
    return {key: unknown.get(key) if value is None else value for key, value in group.as_dict().items()}


def _change(key, before, after):
    """window 128 -> none; scaling: factor 4.0 -> 8.0; scaling YaRN (factor 4.0, ..) -> Llama 3 (factor 8.0, ..)"""
    if isinstance(before, dict) and isinstance(after, dict) and before.get("type") == after.get("type"):
        changed = [name for name in dict.fromkeys([*before, *after]) if before.get(name) != after.get(name) and name != "ramp"]
        return f"{key}: " + ", ".join(_change(name, before.get(name), after.get(name)) for name in changed)
    return f"{key} {_in_words(before)} -> {_in_words(after)}"


def _in_words(value):
    if isinstance(value, dict):
        settings = ", ".join(f"{name} {_in_words(one)}" for name, one in value.items() if name not in ("type", "ramp"))
        return f"{SCHEDULES.get(value['type'], value['type'])} ({settings})" if "type" in value else f"({settings})"
    if isinstance(value, list):
        return counted(value) if isinstance(value[0], str) else first_and_last(value)
    return {"None": "none", "True": "yes", "False": "no"}.get(str(value), value)


def _stretched(before, after):
    """24 slow pairs: 4x -> 8x slower; scores x 1.296 -> x 1.459; reaches 131072 -> 262144"""
    if not before.encoding == after.encoding == "rope":
        return ""
    found = []
    slower = [_slower(group) for group in (before, after)]
    most = [max(ratios or [1]) for ratios in slower]
    if None not in slower and slower[0] != slower[1] and max(most) > 1:
        counts = [
            sum(ratio > 1 and np.isclose(ratio, top) for ratio in ratios) for ratios, top in zip(slower, most, strict=True)
        ]
        many = " -> ".join(map(str, dict.fromkeys(n for n in counts if n)))
        own = "" if before.base == after.base else " than by its own base"
        found.append(f"{many} slow pairs: {most[0]:.4g}x -> {most[1]:.4g}x slower{own}")
    scores, lengths = [group.magnitude**2 for group in (before, after)], [reach(group) for group in (before, after)]
    if scores[0] != scores[1]:
        whole = all(group.rotary_dim == group.head_dim for group in (before, after))
        found.append(f"scores{'' if whole else ' of rotated features'} x {scores[0]:.4g} -> x {scores[1]:.4g}")
    if None not in lengths and lengths[0] != lengths[1]:
        found.append(f"reaches {lengths[0]} -> {lengths[1]}")
    return "; ".join(found)


def _slower(group):
    """The factor by which each pair rotates slower than by its base alone; None for schedules with several lists, or axes."""
    n, kind = len(group.frequencies), (group.scaling or {}).get("type")
    if (
        kind in ("longrope", "dynamic_ntk", "dynamic_ntk_by_doubling", "proportional")
        or group.axes
        or 2 * n != group.rotary_dim
    ):
        return None
    plain = rope.frequencies(group.rotary_dim, float(group.base))
    return (plain / np.array(group.frequencies)).round(9).tolist()


def reach(group):
    """The longest text: max_position_embeddings, or the length to which YaRN or LongRoPE extends the original length."""
    said, length = group.scaling or {}, group.max_position_embeddings
    extended = said["original_length"] * said["factor"] if said.get("type") in ("yarn", "longrope") else 0
    return max(int(extended), length or 0) or None
