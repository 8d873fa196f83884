"""Rotation of one model: golden vectors at its own sizes, `python -m proofs.vectors --config config.json -o DIR`.

Those of released models, posref/vectors/models, come from their records in posref/explain/models.json.

Frequencies and magnitude are computed anew with 200 bits from the numbers that `posref.explain` read in the configuration; the
formulas are those of the papers, and nothing of posref.rotary is called.
"""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import mpmath
import numpy as np

import posref.explain as explain_package
from posref import attention, ops
from posref.check import rounded
from posref.check.engine import CONSTANTS
from posref.explain import command, explanation, output
from posref.rotary import rope as rotation
from posref.vectors import _case as read_case
from posref.vectors import error
from proofs.vectors import *
from proofs.vectors import BITS, described, rope, scaling
from proofs.vectors._documents import written

POSITIONS = (0, 1, 2, 257, 4095)
FLAGS = ops.flags("scaling") | described("rope")

CONVENTIONS = {
    "layout": "interleaved pairs features (2t, 2t+1), half (t, t + dim/2); interleaved_to_half reads one and writes the other",
    "op inv_freq": "radians per position of every pair",
    "op rotate": "(a, b) -> magnitude (a cos - b sin, a sin + b cos) of every pair at position * inv_freq",
    "op attend": "softmax(cap(scale <q, k>)) v of rotated q and k over the keys with 1 in `seen`; cap(s) = softcap "
    "tanh(s / softcap) if given; sinks, one per head, enter the sum of the exponentials",
}


def document(file, layer=None, part=None, *, version):
    """The vectors of one rotation of a model, as the document of a file; ValueError if it has several, or one of a picture."""
    group = output.of_text(command.chosen(explanation(file), layer, part))
    if group.sign < 0:
        raise ValueError("vectors are written for rotations counter-clockwise; negate the positions of those of another model")
    if _follows_the_length(group):
        raise ValueError("the frequencies of this rotation change with the length of a text; vectors are written for one list")
    with mpmath.workprec(BITS):
        records = list(cases(group, f"rope/{group.layout}/model"))
    title = f"Rotation of a model of type {group.model_type}, layers {group.indices[0]} and those like it."
    conventions = {**CONVENTIONS, "frequencies": group.call, "layout": group.layout}
    return written("rope", title, [group.source], conventions, records, FLAGS, version)


def released(map=map, *, version):
    """Pairs (name, document) of every model of posref.explain whose text layers turn counter-clockwise."""
    records = json.loads((Path(explain_package.__file__).parent / "models.json").read_text(encoding="ascii"))
    made = map(partial(_of_released, version), records, records.values())
    return ((model.lower(), content) for model, content in zip(records, made, strict=True) if content)


def _of_released(version, model, facts):
    """The document of one model; None if no layer of it is written."""
    name, groups = model.lower(), list(_rotations(model))
    conventions = {**CONVENTIONS, "configuration": json.dumps(facts["config"], sort_keys=True)}
    found = []
    for group in groups:
        place = f"layer{group.indices[0]}" if len(groups) > 1 else "all"
        conventions |= {f"{place} frequencies": group.call, f"{place} layout": group.layout}
        conventions[f"{place} layers"] = ", ".join(map(str, group.indices))
        with mpmath.workprec(BITS):
            found += cases(group, f"rope/{name}/{place}", ((_last(group) - 257, 1, _last(group)),))
    return written("rope", f"Rotation of {model}.", [facts["source"]], conventions, found, FLAGS, version) if found else None


def _rotations(model):
    """The rotations of its text layers that vectors are written for, each once: none whose frequencies follow the length."""
    explained, seen = explanation(model), set()
    for group in explained.layers:
        try:
            one = output.of_text(replace(explained, layers=[group]))
        except ValueError:
            continue
        new = (one.call, one.layout, one.magnitude) not in seen
        if one.sign > 0 and len(one.frequencies) and not _follows_the_length(one) and new:
            seen.add((one.call, one.layout, one.magnitude))
            yield one


def _follows_the_length(group):
    return (group.scaling or {}).get("type", "").startswith("dynamic_ntk")


def _last(group):
    return group.max_position_embeddings - 1 if group.max_position_embeddings else 32767


def cases(group, prefix, rows=None):
    """Frequencies first, then turned features, near and at the last positions of the trained length, and a step of decoding."""
    base, divisor = mpmath.mpf(group.base), _divisor(group)
    plain = [base ** (-mpmath.mpf(2 * t) / divisor) for t in range(len(group.frequencies))]  # RoFormer, Eq. (15)
    theta, magnitude = scaled(group, plain), _magnitude(group)
    params = {"dim": 2 * len(theta), "base": float(group.base), "layout": group.layout, "magnitude": float(magnitude)}
    phase, mistakes = [w * growth(w) if w else mpmath.mpf(0) for w in theta], {"unscaled": plain} if group.scaling else {}
    note = "Compare before anything else: radians per position of every pair."
    yield case(f"{prefix}/inv_freq", "inv_freq", params, {}, theta, {"phase": phase}, mistakes=mistakes, comment=note)
    last = _last(group)
    probes = (("near", POSITIONS, 1), ("far", (last // 2, last - 1, last), 2)) if rows is None else (("turned", *rows, 1),)
    for probe, positions, tag in probes:
        x = painted((len(positions), 2 * len(theta)), tag)
        wrong = {"other_layout": rope._turn(x, positions, theta, _other(group)), "sign": turned(group, x, positions, theta, -1)}
        if group.scaling and magnitude != 0:
            wrong["unscaled"] = turned(group, x, positions, plain)
        if magnitude != 1:
            wrong["no_magnitude"] = turned(group, x, positions, theta)
        wrong["sign"] = wrong["sign"] * magnitude
        tensors, note = {"x": x, "positions": np.array(positions)}, f"Its frequencies are those of {prefix}/inv_freq."
        expected = turned(group, x, positions, theta, magnitude=magnitude)
        cond = _sensitivity(group, x, positions, theta, magnitude)
        yield case(f"{prefix}/{probe}", "rotate", params, tensors, expected, cond, mistakes=wrong, comment=note)
    yield _step(group, prefix, plain, theta, magnitude, params)


STEP = "The new token at the end of the trained length; frequencies are those of inv_freq. A wider head has zeros beside these."


def _step(group, prefix, plain, theta, magnitude, params):
    """One new token against three keys of the cache: the first that its window holds, the one before, and its own."""
    last, width = _last(group), 2 * len(theta)
    first = max(last + 1 - group.window, 2) if group.window else last - 256
    at, scale = np.array([first - 1, first, last]), float(group.softmax_scale)
    size = 1.0 if group.softcap else 0.25
    q, k = _halves((1, width), 1) * size / 2.0 ** round(np.log2(scale * np.sqrt(width))), _halves((3, width), 9)
    sinks, v = np.array([0.5]) if group.sinks else None, painted((3, 4), 4)
    seen = np.array([[at[0] > last - (group.window or last), True, True]])

    right = {"theta": theta, "layout": group.layout, "magnitude": magnitude, "scale": scale, "seen": seen, "sinks": sinks}
    right |= {"softcap": group.softcap, "models": ("f64",)}

    def attended(**change):
        theta, layout, magnitude, scale, seen, sinks, softcap, models = (right | change).values()
        read = replace(group, layout=layout)
        turn = lambda x: stored(turned(read, *x, theta, magnitude=magnitude), _sensitivity(read, *x, theta, magnitude))
        scores = dot(turn((q, at[2:])), turn((k, at)), scale, bits=24)
        scores = rearranged(lambda x: x[None], cap(scores, softcap) if softcap else scores)
        return average(softmax(scores, seen, None if sinks is None else sinks[:, None], models), exact(v[None]))

    def honest(way, bits):
        given = {"q": q[None], "k": k[None], "v": v[None], "frequencies": np.array(theta, dtype=float), "scale": scale}
        return rounded.run(_attended(group, at, magnitude, seen, sinks), given, way, bits, CONSTANTS)

    wrong = {"other_layout": {"layout": _other(group)}}
    wrong |= {"scale_ignored": {"scale": 1.0}} if scale != 1 else {}
    wrong |= {"unscaled": {"theta": plain}} if group.scaling and plain != theta else {}
    wrong |= {"no_magnitude": {"magnitude": 1}} if magnitude != 1 else {}
    wrong |= {"window_ignored": {"seen": seen | True}} if not seen.all() else {}
    wrong |= {"sink_left_out": {"sinks": None}} if sinks is not None else {}
    wrong |= {"cap_left_out": {"softcap": None}} if group.softcap else {}
    words = {name: getattr(group, name) for name in ("window", "softcap") if getattr(group, name)}
    tensors = {"q": q[None], "k": k[None], "v": v[None], "q_positions": at[2:], "k_positions": at, "seen": seen.astype(int)}
    tensors |= {} if sinks is None else {"sinks": sinks}
    answers = {name: attended(**change)[0] for name, change in wrong.items()}
    for models in (MATH_IN_F32, ("f64",))[last >= 2**20 :]:  # float32 has no angles after a million tokens
        given = f"{prefix}/step", "attend", {**params, "scale": scale, **words}, tensors, *attended(models=models)
        rest = {"models": models, "comment": STEP, "honest": honest}
        found = read_case(case(*given, **rest))
        if told := {n: y for n, y in answers.items() if min(error(found, y.astype(float), m) for m in models) > 2}:
            return case(*given, **rest, mistakes=told)
    raise ValueError(f"{prefix}/step tells none of {', '.join(answers)} from the right answer")


def _attended(group, at, magnitude, seen, sinks):
    """The step with the functions of posref, for what rounding does to it."""
    layout, words = _read(group), {"softcap": group.softcap, "sinks": None if sinks is None else sinks[:, None]}

    def turned(x, positions, frequencies):
        return rotation.rotate(x, *(float(magnitude) * y for y in rotation.tables(positions, frequencies)), layout=layout)

    def attend(q, k, v, frequencies, scale):
        q, k = turned(q, at[2:], frequencies), turned(k, at, frequencies)
        return attention.attend(q, k, v, scale=scale, mask=seen, **words)

    return attend


def _halves(shape, tag):
    """`painted` in halves, which are short in a file."""
    return np.round(2 * painted(shape, tag)) / 2


def _divisor(group):
    """The exponent is divided by the turned width, and by that of the whole head where only some of its pairs turn."""
    proportional = (group.scaling or {}).get("type") == "proportional"
    return 2 * len(group.frequencies) if proportional else group.rotary_dim


def _read(group):
    return group.layout.partition("_to_")[0]


def _other(group):
    return "interleaved" if _read(group) == "half" else "half"


def turned(group, x, positions, theta, sign=1, *, magnitude=1):
    return _written(group, rope._turn(x, [sign * p for p in positions], theta, _read(group))) * magnitude


def _written(group, y):
    """What was read as adjacent pairs may be left as halves."""
    return np.concatenate([y[..., 0::2], y[..., 1::2]], axis=-1) if "_to_" in group.layout else y


def _sensitivity(group, x, positions, theta, magnitude):
    found = rope._sensitivity(x, positions, [w or mpmath.mpf(2) ** -900 for w in theta], _read(group))
    return {name: _written(group, np.array(values, dtype=object)) * magnitude for name, values in found.items()}


def _magnitude(group):
    """With 200 bits where a formula gives it; the number of the file where it stands there."""
    given = group.magnitude
    words = group.scaling or {}
    factor = mpmath.mpf(words.get("factor", 1))
    longrope = mpmath.sqrt(1 + mpmath.log(factor) / mpmath.log(words.get("original_length", 2)))
    formulas = {"yarn": mpmath.log(factor) / 10 + 1, "longrope": longrope}
    computed = formulas.get(words.get("type"), mpmath.mpf(1))
    return computed if abs(computed - given) < mpmath.mpf(2) ** -50 else mpmath.mpf(given)


def scaled(group, plain):
    """The frequencies after the schedule of the configuration, from the papers."""
    return plain if group.scaling is None else SCHEDULES[group.scaling["type"]](group.scaling, plain, group)


def _yarn(words, plain, group):
    settings = 2 * len(plain), group.base, words["original_length"], words["truncate"], (words["beta_fast"], words["beta_slow"])
    return scaling.scaled("yarn", plain, words["factor"], along=mpmath.mpf, **scaling.ramp(*settings))


def _llama3(words, plain, group):
    low, high = mpmath.mpf(words["low_freq_factor"]), mpmath.mpf(words["high_freq_factor"])
    return scaling.scaled("llama3", plain, words["factor"], low=low, high=high, length=words["original_length"])


def _longrope(words, plain, group):
    return [w / mpmath.mpf(divisor) for w, divisor in zip(plain, words["short_factor"], strict=True)]


def _proportional(words, plain, group):
    kept = int(mpmath.floor(mpmath.mpf(words["fraction"]) * len(plain)))
    return [w / mpmath.mpf(words["factor"]) if t < kept else mpmath.mpf(0) for t, w in enumerate(plain)]


SCHEDULES = {
    "linear": lambda words, plain, group: scaling.scaled("linear", plain, words["factor"]),
    "ntk": lambda words, plain, group: scaling.stretched(plain, words["factor"]),
    "dynamic_ntk": lambda words, plain, group: plain,
    "yarn": _yarn,
    "llama3": _llama3,
    "longrope": _longrope,
    "proportional": _proportional,
}
