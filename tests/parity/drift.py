"""Whether `posref.explain` says what the installed transformers does: every type that can be built, layer by layer.

For each type a tiny file is given to both. Compared are: which layers attend and which of them rotate, pairing read and
written, sign, magnitude, width and place of the turned features (the specification turns the module's own queries and keys),
the norms of queries and keys before or after it, every table, softmax scale, window (as keyword and in the mask), softcap and
sinks; that nothing is claimed that the module has not; and how the tokens of a padded row are counted.

    python -m tests.parity.drift [TYPE ..]      prints types and layers explained and verified, and what has drifted
"""

import inspect
import re
import sys
from typing import NamedTuple

import numpy as np

from posref import position_ids
from posref.absolute import learned
from posref.explain import explain
from posref.explain.families import FAMILIES
from posref.rotary import rope
from tests.parity import models

STACKS = ("encoder", "decoder")
COUNTERS = {"position_ids": position_ids, "learned": learned}
CROSS = re.compile("EncDec|encoder_attn|cross")
U = 2.0**-24  # unit roundoff of float32, in which transformers calculates tables and turns


class Verdict(NamedTuple):
    """One type: layers explained, layers whose attention or rotation was seen to be as explained, and what was not."""

    model_type: str
    explained: int
    verified: int
    drifted: list


def compare(model_type, **changes):
    """Explain a tiny file, build and run its module, and compare."""
    file = {**models.keys(model_type), **changes}
    said = [layer for layer in explain(file)["layers"] if layer["part"] in ("", *STACKS)]
    model = models.build(models.configuration(file))
    return judge(model_type, said, models.run(model))


def judge(model_type, groups, record):
    """The verdict on one record."""
    stacks = {group["part"] for group in groups} - {""}
    said = {(layer["part"], i): layer for layer in groups for i in layer["indices"] if layer["kind"] != "cross_attention"}
    seen, drifted = set(), []
    for call in record.attentions:
        i = place(call.layer, stacks)
        if CROSS.search(call.layer):
            continue
        if i not in said:
            drifted.append(f"layer {named(i)} attends and is not explained")
            continue
        seen.add(i)
        drifted += [f"layer {named(i)}: {words}" for words in attention(said[i], call)]
    turning = {}
    for turn in record.turns:
        if not re.search(r"compressor|cross", turn.layer):
            turning.setdefault(place(turn.layer, stacks), []).append(turn)
    for i, turns in turning.items():
        if said.get(i, {}).get("encoding") != "rope":
            drifted.append(f"layer {named(i)} rotates and is explained as {said.get(i, {}).get('encoding')}")
            continue
        seen.add(i)
        for turn in turns:
            layer = {**said[i], **(said[i].get("indexer") or {})} if "indexer" in turn.layer else said[i]
            at = [call for call in record.attentions if call.layer == turn.layer]
            drifted += [f"layer {named(i)}: {words}" for words in rotation(layer, turn, at)]
            norms = [norm for norm in record.norms if norm.layer == turn.layer]
            drifted += [f"layer {named(i)}: {words}" for words in order(layer, turn, norms, at)]
    for call in record.attentions:
        i = place(call.layer, stacks)
        normed = "alone" if any(norm.layer == call.layer for norm in record.norms) else None
        if i in said and i not in turning and not CROSS.search(call.layer) and said[i]["norm"] != normed:
            drifted.append(f"layer {named(i)}: its queries and keys are normed {normed}, explained as {said[i]['norm']}")
    if turning:
        claimed = {i for i, layer in said.items() if layer["encoding"] == "rope"} - set(turning)
        drifted += [f"layer {named(i)} is explained as rope and does not rotate" for i in sorted(claimed)]
    if record.attentions:
        drifted += [f"layer {named(i)} is explained and does not attend" for i in sorted(set(said) - seen)]
    return Verdict(model_type, len(said), len(seen), [*drifted, *compare_tables(said.values(), record.tables)])


def place(name, stacks):
    """The stack and the number of the layer that a module belongs to, from its name."""
    first = name.split(".")[0]
    number = re.search(r"(?:^|\.)(\d+)(?:\.|$)", name)
    return (first if first in stacks else "", int(number.group(1)) if number else -1)


def named(i):
    return " ".join(map(str, filter(lambda word: word != "", i)))


def attention(layer, call):
    """How one attention differs from what is said of its layer."""
    scale = call.keywords.get("scaling")
    scales = {scale, getattr(call.module, "scaling", scale)} if scale == 1.0 else {scale}  # queries may be scaled already
    numbers = [number for number in scales if isinstance(number, (int, float))]
    if numbers and all(abs(number - layer["softmax_scale"]) > 4 * U * abs(number) for number in numbers):
        yield f"scores are scaled by {scale}, explained as {layer['softmax_scale']}"
    if "sliding_window" in call.keywords and (call.keywords["sliding_window"] or None) != layer["window"]:
        yield f"its window is {call.keywords['sliding_window']}, explained as {layer['window']}"
    if call.q.ndim == 4 and layer["heads"] and call.q.shape[1] != layer["heads"]:
        yield f"its queries have {call.q.shape[1]} heads, explained as {layer['heads']}"
    if call.k.ndim == 4 and layer["heads"] and call.k.shape[1] not in (layer["kv_heads"], layer["heads"]):
        yield f"its keys have {call.k.shape[1]} heads, explained as {layer['kv_heads']}"
    if call.q.shape[-1] != layer["head_dim"]:
        yield f"its heads are {call.q.shape[-1]} wide, explained as {layer['head_dim']}"
    if (call.keywords.get("softcap") or None) != layer["softcap"]:
        yield f"its scores are capped at {call.keywords.get('softcap')}, explained as {layer['softcap']}"
    if (call.keywords.get("s_aux") is not None) != layer["sinks"]:
        yield f"its sinks are {call.keywords.get('s_aux') is not None}, explained as {layer['sinks']}"
    visible = seen_by(call.mask)
    if visible is not None and not np.array_equal(visible, expected_mask(layer, len(visible))):
        rows = [mask[8].astype(int) for mask in (visible, expected_mask(layer, len(visible)))]
        yield f"row 8 of its mask is {rows[0]}, explained as {rows[1]}"


def seen_by(mask):
    """The boolean mask of the first sequence and head; None where there is none or it does not speak of pairs of tokens."""
    if mask is None or mask.ndim != 4 or mask.shape[-1] != mask.shape[-2] or mask.shape[-1] < 9:
        return None
    return mask[0, 0] if mask.dtype == bool else mask[0, 0] > -1e4


def expected_mask(layer, n):
    i, j = np.arange(n)[:, None], np.arange(n)
    visible = np.ones((n, n), bool) if layer["causal"] is False or layer["window_sides"] == "both" else j <= i
    if layer["window"] is not None:
        visible = visible & (abs(i - j) < layer["window"])
    if layer["chunk"] is not None:
        visible = visible & (i // layer["chunk"] == j // layer["chunk"])
    return visible


def rotation(layer, turn, calls):
    """How one rotation differs: the specification turns the same features by the explained tables."""
    angles = explained_angles(layer, turn)
    width = 2 * angles.shape[-1]
    x, after = (features[..., part(layer, width)].astype(np.float64) for features in (turn.before, turn.after))
    cos, sin = (layer["magnitude"] * function(layer["sign"] * angles) for function in (np.cos, np.sin))
    y = turned(layer, x, cos, sin)
    # the phase of float32 angles, plus the roundings of the products
    bound = (np.abs(angles).max(axis=-1, keepdims=True) * 40 + 20) * U * np.abs(x).max() * layer["magnitude"]
    wrong = np.abs(y - after) > bound
    if layer.get("learned_first"):  # the class token turns by learned angles
        wrong[..., 0, :] = False
    if layer["undo"] and np.any(wrong):  # the output, whose values were turned, is turned back
        wrong = np.abs(turned(layer, x, cos, -sin) - after) > bound
    if np.any(wrong):
        off, size = np.abs(y - after).max(), np.abs(after).max()
        yield f"{turn.function} gives other features than explained, by {off:.2g} of {size:.2g}"
    if layer["norm"] == "after" or layer["temperature"] or turn.after.shape[-1] == layer["head_dim"]:
        return
    for call in calls:
        placed = [features[..., part(layer, width)] for features in (call.q, call.k) if features.shape[2] == after.shape[2]]
        fits = [features for features in placed if after.shape[1] in (1, features.shape[1])]
        if fits and not any(proportional(features, after) for features in fits):
            yield f"the {layer['rotated']} {width} features of its queries and keys are not the turned ones"


def order(layer, turn, norms, calls):
    """Whether queries and keys are normed before their rotation or after it: the features that are passed on are the same."""
    if layer["undo"] and any(passed_on(call.output, turn.before) for call in calls):
        return
    scale = np.float32(layer["query_scale"])
    before = any(passed_on(np.append(norm.after, norm.after * scale), turn.before) for norm in norms)
    after = any(passed_on(turn.after, norm.before) for norm in norms)
    seen = "before" if before else "after" if after else None
    if seen != layer["norm"] and "indexer" not in turn.layer:
        yield f"its queries and keys are normed {seen} the rotation, explained as {layer['norm']}"


def passed_on(given, taken):
    return bool(np.isin(taken, given).all())


def counting(model_type):
    """How the tokens of a padded row are counted otherwise than explained: by the rotation, and by the rows of a table."""
    file = models.keys(model_type)
    groups = [layer for layer in explain(file)["layers"] if layer["part"] in ("", *STACKS) and layer["positions"]]
    model = models.build(models.configuration(file))
    if not {"input_ids", "attention_mask"} <= set(inspect.signature(model.forward).parameters):
        return
    inputs = models.left_padded(model)
    said = {(layer["part"], i): layer for layer in groups for i in layer["indices"]}
    for turn in models.run(model, inputs).turns:
        layer = said.get(place(turn.layer, {group["part"] for group in groups} - {""}))
        if layer is not None and "indexer" not in turn.layer and "compressor" not in turn.layer:
            yield from rotation(layer, turn, [])
    mask, ids = (inputs[name][0].numpy() for name in ("attention_mask", "input_ids"))
    for name, rows in models.rows_read(model, inputs).items():
        (forward,) = {group["positions"]["forward"] for group in groups}
        n = len(ids)
        expected = eval(forward, {"arange": np.arange, "n": n, "mask": mask > 0, "ids": ids, **COUNTERS})
        if not np.array_equal(rows, expected):
            yield f"{name} reads rows {rows}, explained as {expected}"


def proportional(features, after):
    """Equal up to one number: some models scale their queries once more."""
    after = np.broadcast_to(after, features.shape)
    return np.allclose(features, (features * after).sum() / (after * after).sum() * after, atol=1e-6)


def part(layer, width):
    return slice(None, width) if layer["rotated"] == "first" else slice(-width, None)


def turned(layer, x, cos, sin):
    """The specification of this layer's rotation: pairs read, turned and left as it says."""
    if layer.get("order") == "blocks":  # each axis has its half of the head
        halves = zip(np.split(x, 2, -1), np.split(cos, 2, -1), np.split(sin, 2, -1), strict=True)
        return np.concatenate([rope.rotate(a, c, s, layout=layer["layout"]) for a, c, s in halves], axis=-1)
    read, _, write = layer["layout"].partition("_to_")
    y = rope.rotate(x, cos, sin, layout=read)
    return np.concatenate([y[..., 0::2], y[..., 1::2]], axis=-1) if write else y


def explained_angles(layer, turn):
    """Angles of positions 0 .. n - 1; on a picture, of the coordinates that one pair of each axis shows."""
    frequencies = np.array(layer["frequencies"])[layer.get("index", slice(None))]
    axes = set(layer.get("axes", "t"))
    if "t" in axes:
        return np.arange(turn.before.shape[-2])[:, None] * frequencies
    pairs = {axis: [t for t, other in enumerate(layer["axes"]) if other == axis] for axis in axes}
    whole = layer["order"] != "hw_centred"
    coordinates = {axis: coordinate(layer, turn, pairs[axis][0 if whole else -1]) for axis in axes}
    return np.stack([coordinates[axis] * w for axis, w in zip(layer["axes"], frequencies, strict=True)], axis=-1)


def coordinate(layer, turn, pair):
    """The coordinate of each token on the axis of a pair, from the angle by which that pair turned.

    A whole number on a grid; between -1 and 1, times 2 pi, where coordinates are centred.
    """
    pairs = len(layer["axes"])
    if layer["order"] == "blocks":
        first, second = (pair, pair + pairs // 2) if pair < pairs // 2 else (pair + pairs // 2, pair + pairs)
    else:
        first, second = (pair, pair + pairs) if layer["layout"] == "half" else (2 * pair, 2 * pair + 1)
    x, y = (features[0, 0].astype(np.float64) for features in (turn.before, turn.after))
    cosine = x[:, first] * y[:, first] + x[:, second] * y[:, second]
    sine = x[:, first] * y[:, second] - x[:, second] * y[:, first]
    angle = np.arctan2(sine, cosine) / layer["frequencies"][layer["index"][pair]]
    if layer["order"] == "hw_centred":
        return angle
    return np.round(np.mod(angle, 2 * np.pi / layer["frequencies"][layer["index"][pair]]))


def compare_tables(layers, tables):
    """Every table of the module is explained, and every explained one is there; one float32 rounding of a power apart."""
    said = [(np.array(layer["frequencies"]), layer["magnitude"]) for layer in layers if len(layer["frequencies"])]
    for table in tables:
        if said and not any(same(table, *one) for one in said):
            yield f"table {table.module} {table.layer_type or ''} ({len(table.frequencies)} pairs) is not explained"
    for frequencies, magnitude in said:
        if tables and not any(same(table, frequencies, magnitude) for table in tables):
            yield f"no table of the module has {len(frequencies)} pairs down to {frequencies[-1]:.3g}, magnitude {magnitude}"
            return


def same(table, frequencies, magnitude):
    if table.frequencies.shape != frequencies.shape or abs(table.magnitude - magnitude) > 4 * U * magnitude:
        return False
    return bool(np.allclose(table.frequencies, frequencies, rtol=(np.log(1e8) + 4) * U, atol=0))


def main(names):
    explained = verified = types = 0
    for model_type in names or [name for name in models.types() if name in FAMILIES]:
        try:
            verdict = compare(model_type)
            verdict.drifted.extend(counting(model_type))
        except Exception as error:
            print(
                f"{model_type:28} {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:170], flush=True
            )
            continue
        types += not verdict.drifted
        explained, verified = explained + verdict.explained, verified + verdict.verified
        print(
            f"{model_type:28} {verdict.verified} of {verdict.explained} layers verified",
            *verdict.drifted[:4],
            sep="\n    ",
            flush=True,
        )
    print(f"{types} types as explained; {verified} of {explained} layers verified")


if __name__ == "__main__":
    main(sys.argv[1:])
