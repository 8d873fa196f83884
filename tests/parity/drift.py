"""Whether `posref.explain` says what the installed transformers does: every type that can be built, layer by layer.

For each type a tiny file is given to both. Compared are: which layers attend and which of them rotate, pairing read and written,
sign, magnitude, width and place of the turned features (the specification turns the module's own queries and keys), every table,
softmax scale, window (as keyword and in the mask), softcap and sinks; and that nothing is claimed that the module has not.

    python -m tests.parity.drift [TYPE ..]      prints types and layers explained and verified, and what has drifted
"""

import re
import sys
from typing import NamedTuple

import numpy as np

from posref.explain import explain
from posref.explain.families import FAMILIES
from posref.rotary import rope
from tests.parity import models

U = 2.0**-24  # unit roundoff of float32, in which transformers calculates tables and turns


class Verdict(NamedTuple):
    """One type: layers explained, layers whose attention or rotation was seen to be as explained, and what was not."""

    model_type: str
    explained: int
    verified: int
    drifted: list


def compare(model_type):
    """Explain a tiny file, build and run its module, and compare."""
    file = models.keys(model_type)
    said = explain(file)["layers"]
    model = models.build(models.configuration(file))
    return judge(model_type, said, models.run(model), model)


def judge(model_type, said, record, model):
    """The verdict on one record; layers are told apart by the first number in the name of their module."""
    said = {i: layer for layer in said for i in layer["indices"]}
    seen, drifted = set(), []
    for call in record.attentions:
        i = index(call.layer)
        if i not in said:
            drifted.append(f"layer {i} attends and is not explained")
            continue
        seen.add(i)
        drifted += [f"layer {i}: {words}" for words in attention(said[i], call)]
    turned = {}
    for turn in record.turns:
        turned.setdefault(index(turn.layer), []).append(turn)
    for i, turns in turned.items():
        if said.get(i, {}).get("encoding") != "rope":
            drifted.append(f"layer {i} rotates and is explained as {said.get(i, {}).get('encoding')}")
            continue
        seen.add(i)
        calls = [call for call in record.attentions if index(call.layer) == i]
        drifted += [f"layer {i}: {words}" for turn in turns for words in rotation(said[i], turn, calls)]
    if turned:
        claimed = {i for i, layer in said.items() if layer["encoding"] == "rope"} - set(turned)
        drifted += [f"layer {i} is explained as rope and does not rotate" for i in sorted(claimed)]
    if record.attentions:
        drifted += [f"layer {i} is explained and does not attend" for i in sorted(set(said) - seen)]
    return Verdict(model_type, len(said), len(seen), [*drifted, *compare_tables(said.values(), record.tables)])


def index(name):
    found = re.search(r"(?:^|\.)(\d+)(?:\.|$)", name)
    return int(found.group(1)) if found else -1


def attention(layer, call):
    """How one attention differs from what is said of its layer."""
    scale = call.keywords.get("scaling")
    if isinstance(scale, (int, float)) and abs(scale - layer["softmax_scale"]) > 4 * U * abs(scale):
        yield f"scores are scaled by {scale}, explained as {layer['softmax_scale']}"
    if "sliding_window" in call.keywords and (call.keywords["sliding_window"] or None) != layer["window"]:
        yield f"its window is {call.keywords['sliding_window']}, explained as {layer['window']}"
    if call.q.shape[-1] != layer["head_dim"]:
        yield f"its heads are {call.q.shape[-1]} wide, explained as {layer['head_dim']}"
    if (call.keywords.get("softcap") or None) != layer["softcap"]:
        yield f"its scores are capped at {call.keywords.get('softcap')}, explained as {layer['softcap']}"
    if (call.keywords.get("s_aux") is not None) != layer["sinks"]:
        yield f"its sinks are {call.keywords.get('s_aux') is not None}, explained as {layer['sinks']}"
    visible = seen_by(call.mask)
    if visible is not None and not np.array_equal(visible, expected_mask(layer, len(visible))):
        yield f"row 8 of its mask is {visible[8].astype(int)}, explained as {expected_mask(layer, len(visible))[8].astype(int)}"


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
    width = min(turn.before.shape[-1], 2 * len(layer["frequencies"]))
    positions = np.arange(turn.before.shape[-2])
    cos, sin = rope.tables(layer["sign"] * positions, np.array(layer["frequencies"]))
    x = turn.before.astype(np.float64)
    inside = x if width == x.shape[-1] else x[..., :width] if layer["rotated"] == "first" else x[..., -width:]
    read, _, write = layer["layout"].partition("_to_")
    y = rope.rotate(inside, layer["magnitude"] * cos, layer["magnitude"] * sin, layout=read)
    if write:
        y = np.concatenate([y[..., 0::2], y[..., 1::2]], axis=-1)
    after = (
        turn.after
        if width == x.shape[-1]
        else turn.after[..., :width]
        if layer["rotated"] == "first"
        else turn.after[..., -width:]
    )
    # the phase of float32 angles, plus the roundings of the products
    bound = (positions[:, None] * 40 + 20) * U * np.abs(x).max() * layer["magnitude"]
    if np.any(np.abs(y - after) > bound):
        yield f"{turn.function} gives other features than explained, by {np.abs(y - after).max():.2g} of {np.abs(after).max():.2g}"
    for call in calls:
        place = call.q[..., :width] if layer["rotated"] == "first" else call.q[..., -width:]
        if (
            turn.after.shape == call.q.shape
            or turn.after.shape[1] != call.q.shape[1]
            or layer["norm"] == "after"
            or layer["temperature"]
        ):
            continue
        if turn is not None and not any(np.array_equal(place, x) for x in (turn.after[..., :width], turn.after[..., -width:])):
            if np.abs(place - turn.after[..., :width]).max() > 1e-5 and not np.array_equal(call.k.shape, turn.after.shape):
                yield f"the {layer['rotated']} {width} features of its queries are not the turned ones"


def compare_tables(layers, tables):
    """Every table of the module is explained, and every explained one is there; one float32 rounding of a power apart."""
    said = [(np.array(layer["frequencies"]), layer["magnitude"]) for layer in layers if len(layer["frequencies"])]
    for table in tables:
        if said and not any(same(table, *one) for one in said):
            yield f"table {table.module} {table.layer_type or ''} ({len(table.frequencies)} pairs) is not explained"
    for frequencies, magnitude in said:
        if tables and not any(same(table, frequencies, magnitude) for table in tables):
            yield f"{len(frequencies)} frequencies to {frequencies[-1]:.3g} with magnitude {magnitude} are in no table of the module"
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
