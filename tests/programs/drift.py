"""Whether `posref.explain` says what the installed transformers does: every type that can be built, layer by layer.

For each type a tiny file is given to both. Compared are: which layers attend and which of them rotate, pairing read and
written, sign, magnitude, width and place of the turned features (the specification turns the module's own queries and keys),
the norms of queries and keys before or after it, every table, softmax scale, window (as keyword and in the mask), softcap and
sinks; that nothing is claimed that the module has not; and how the tokens of a padded row are counted.

The classes of diffusers are compared by tests.programs.diffusion, which runs at the end.

    python -m tests.programs.drift [TYPE ..]      prints types and layers explained and verified, and what has drifted
"""

import contextlib
import functools
import importlib.util
import inspect
import itertools
import re
import sys
from collections import Counter
from typing import NamedTuple

import numpy as np

from posref import attention as attend
from posref import position_ids
from posref.absolute import learned, sinusoidal, sinusoidal_2d
from posref.explain import configuration, explain, unrotated_layers
from posref.explain.inventory import CONVOLUTIONS, CONVOLVED
from posref.relative import alibi, deberta, decomposed, inkling, shaw, swin, t5, transformer_xl
from posref.rotary import axes, rope
from tests.programs import models, states

STACKS = ("speech_encoder", "t2u_encoder", "t2u_decoder", "encoder", "decoder", "predictor", "mit", "r_layers", "x_layers")
CALLS = ("attentions", "softmaxes")
COUNTERS = {"position_ids": position_ids, "learned": learned}
CROSS = re.compile("EncDec|encoder_attn|encoder_decoder_attention|cross")
TERM = re.compile(r"(^|[._])pos(_|[.]|$)|position|relative|rotary|inv_freq")
MASKED_OUTSIDE = ("blt_global_transformer", "blt_local_encoder")  # BltModel gives them a mask that they do not make
U = 2.0**-24  # unit roundoff of float32, in which transformers calculates tables and turns


ASPECTS = (
    "rotation",
    "temperature",
    "mask",
    "scores",
    "state",
)  # scores: scale, cap, bias, sinks and the key head of each query head


class Pair(NamedTuple):
    """Queries and keys of a module."""

    layer: str
    module: object
    q: np.ndarray
    k: np.ndarray


class Verdict(NamedTuple):
    """One type: layers explained, layers that were compared in every aspect they have, what drifted, what was not compared.

    `compared` and `missed` count layers per aspect; `missed` has the reason too.
    """

    model_type: str
    explained: int
    verified: int
    drifted: list
    compared: Counter
    missed: Counter


def compare(model_type, **changes):
    """Explain a tiny file, build and run its module, and compare."""
    file = {**models.keys(model_type), **changes}
    said = of_text(file)
    model = models.build(models.configuration(file))
    return compare_module(model_type, said, model, models.run(model))


def compare_module(model_type, said, model, record):
    """What is said of a module against its record, and against further passes through it."""
    verdict = judge(model_type, said, record)
    for further in (by_three_axes, on_a_grid, convolved, unordered, axial, boxed, of_objects, added_in_each_layer):
        verdict.drifted.extend(further(said, model))
    return verdict


def boxed(said, model):
    """Which rows of the tables of boxes are read at the input: those of two edges each."""
    biases = [group["bias"] for group in said if group.get("bias") and "boxes" in group["bias"]]
    tables = (
        [(name, x) for name, x in model.named_modules() if re.search(r"\b[xy]_position_embeddings$", name)] if biases else []
    )
    inputs, read = models.inputs_of(model), {}
    for name, table in tables:
        table.register_forward_hook(lambda _, given, __, name=name: read.setdefault(name, []).append(given[0][0].numpy()))
    with models.torch.no_grad():
        model(**inputs) if tables else None
    for name, table in tables:
        edges = inputs["bbox"][0].numpy()[:, [0, 2] if name.split(".")[-1][0] == "x" else [1, 3]]
        expected = np.floor(edges * (1 if edges.max() > 1 else biases[0]["box_table"] - 1))
        if not np.array_equal(np.stack(read[name], axis=-1), expected) or len(table.weight) != biases[0]["box_table"]:
            yield f"{name} reads rows {np.stack(read[name], axis=-1)[:2]}, explained as {expected[:2]}"


def unordered(said, model):
    """Tokens without position: in another order they give the same results, in that order; a class token may stand first.

    Latents are weights; the tokens that they see, in any order, change nothing.
    """
    alone = any(group["encoding"] == "none" and group["kind"] == "full_attention" and not group["causal"] for group in said)
    inputs = models.inputs_of(model)
    ordered = "query_embeds|hidden_states|context|inputs|visual_(feats|pos)|box_embeddings"
    names = [name for name in inputs if re.fullmatch(ordered, name)]
    if not names or not (alone or any(group["encoding"] == "unordered" for group in said)):
        return
    latents = [x for key, x in model.named_parameters() if key.endswith("latents") and {"context", "inputs"} & {*names}]
    moved = {**inputs, **{name: inputs[name].roll(1, dims=1) for name in names}}
    count = len(latents[0]) if latents else inputs[names[0]].shape[1]
    with models.torch.no_grad():
        for x in latents:
            x.normal_()
        own = slice(count) if "box_embeddings" in names else slice(-count, None)  # [CLS] stands last
        y, z = (models.states_of(model(**each))[:, own] for each in (inputs, moved))
        same = [(y if latents else y.roll(1, dims=1), z)]
        for x in latents:
            x.copy_(x.roll(1, dims=0))
            same.append((y.roll(1, dims=1), models.states_of(model(**inputs))))
    if not all(np.allclose(*pair, atol=1e-5) for pair in same):
        yield "its tokens in another order give other results, explained as without position"


def axial(said, model):
    """Reformer's two tables, joined: the rows of quotients and those of remainders."""
    if not any(group["encoding"] == "learned_axial" for group in said):
        return
    ids, embeddings = models.inputs_of(model)["input_ids"], model.embeddings
    first, second = (x.detach().numpy().reshape(-1, x.shape[-1]) for x in embeddings.position_embeddings.weights)
    p = np.arange(models.TOKENS)
    expected = np.concatenate([first[p // len(second)], second[p % len(second)]], axis=-1)
    added = (embeddings(input_ids=ids) - embeddings.word_embeddings(ids))[0].detach().numpy()
    if said[0]["table"] != [len(first), len(second)] or not np.allclose(added, expected, atol=1e-5):
        yield f"its input adds {added[1, :4]}, explained as {expected[1, :4]}"


def added_in_each_layer(said, model):
    """What DETR adds to what queries and keys are projected from, and not to that of values; RT-DETR with eval_size nothing."""
    inputs = models.inputs_of(model)
    if not {"pixel_values", "vision_pos_embeds"} & {*inputs} or not any(
        re.match("sinusoidal_2d|none", group["encoding"]) for group in said
    ):
        return
    linears = models.run(model, inputs).linears
    given = inputs["vision_pos_embeds"][0].shape if "vision_pos_embeds" in inputs else None
    grid = given[-2:] if given else [side // 32 for side in inputs["pixel_values"].shape[-2:]]  # of the last feature map
    counts = np.moveaxis(np.indices(grid), 0, -1).reshape(-1, 2)
    for name, (x, _) in linears.items():
        attention, _, which = name.rpartition(".")
        alike = [each for each in said if each["part"] in ("", name.split(".")[0])] if which in ("q_proj", "k_proj") else []
        crossing = bool(CROSS.search(name))
        group = next((each for each in alike if crossed(each) == "cross" * crossing), None)
        if group is None or (crossing and which == "q_proj"):  # those of objects, which no projection shows alone
            continue
        added = (x - linears[f"{attention}.v_proj"][0])[0]
        if group["encoding"] == "object_queries":
            expected = model.query_position_embeddings.weight.detach().numpy()[:, : added.shape[-1]]  # others begin the objects
        elif group["encoding"] == "none":
            expected = np.zeros_like(added)
        else:
            counted = group["encoding"] == "sinusoidal_2d_counted"
            at = counts[:, ::-1] if counted else sinusoidal_2d.normalized(counts.reshape(*grid, 2) + 1).reshape(-1, 2)
            w = sinusoidal.frequencies(added.shape[-1] // 2, group["base"])
            scaled = "again " * place(name, (), ())[1] + "encoder.query_scale.layers.1"  # of DAB-DETR
            times = linears[scaled][1][0] if scaled in linears else 1.0
            expected = times * sinusoidal_2d.encode(at, w, convention="mae" if counted else "detr")
        if added.shape != expected.shape or not np.allclose(added, expected, atol=1e-5):
            yield f"{name} adds {added.ravel()[:4]}, explained as {expected.ravel()[:4]}"


def of_objects(said, model):
    """Sinusoids of boxes or centres of objects, at the input of a network or projection, and trained vectors of objects."""
    group = next((group for group in said if group["encoding"] in ("object_boxes", "object_points")), None)
    if group is None:
        return
    inputs = models.inputs_of(model)
    with models.torch.no_grad():
        output = model(**inputs)
    linears = models.run(model, inputs).linears
    first = r"ref_point_head\.(layer1|layers\.0)$" if group["encoding"] == "object_boxes" else r"\.0\.\w+\.q_pos_sine_proj$"
    taken = [x[0] for name, (x, _) in linears.items() if re.search(first, name)]
    boxes = getattr(output, "reference_boxes", getattr(output, "reference_points", None)).numpy()
    boxes = boxes.reshape(-1, *taken[0].shape[:1], boxes.shape[-1])
    if len({len(boxes), len(taken)} - {1}) > 1:
        yield f"{len(taken)} sinusoids of {len(boxes)} boxes"
    w = sinusoidal.frequencies(taken[0].shape[-1] // boxes.shape[-1], 10000.0)
    for x, box in zip(taken, [*boxes, *[boxes[-1]] * (len(taken) - len(boxes))], strict=True):
        parts = [sinusoidal.encode(2 * np.pi * box[:, c], w, layout="interleaved") for c in (1, 0, 2, 3)[: box.shape[-1]]]
        if not np.allclose(x, np.concatenate(parts, axis=-1), atol=1e-4):
            yield f"the sinusoids of its boxes begin {x[0, :4]}, explained as {parts[0][0, :4]}"
    for name, (x, _) in linears.items():
        if name.endswith("self_attn.q_pos_proj") and not np.allclose(
            x, model.query_position_embeddings.weight.detach().numpy()
        ):
            yield f"{name} is given other numbers than the vectors of objects"


def convolved(said, model):
    """A convolution at the input is as explained; without its weights the encoder orders nothing, with them it does."""
    for group in said if any(group.get("convolution") for group in said) else ():
        inside = [x for x in model.encoder.pos_conv_embed.modules() if isinstance(x, models.torch.nn.Conv1d)]
        found = [(x.kernel_size[0], x.stride[0], x.groups, len(inside)) for x in inside]
        if set(found) != {tuple(group["convolution"].values())}:
            yield f"its convolutions at the input are {found}, explained as {group['convolution']}"
        stride = group["convolution"]["stride"]
        x = models.torch.randn(1, 8 * stride, model.config.hidden_size)
        ordered = []
        for _ in range(2):
            with models.torch.no_grad():
                y, z = (model.encoder(each.clone())[0] for each in (x, x.roll(4 * stride, dims=1)))
            ordered.append(not np.allclose(y.roll(4 * stride, dims=1), z, atol=1e-5))
            for name, weight in model.encoder.pos_conv_embed.named_parameters():
                weight.data *= name.endswith("original1")  # a direction, whose length is another weight
            relative = [x for name, x in model.named_parameters() if name.endswith("rel_embeddings.weight")]
            for weight in [*relative, *(table.weight for table in models.bias_modules(model).values())]:
                weight.data *= 0
        if ordered != [True, False]:
            yield f"that its tokens are ordered is {ordered[0]}, and without the convolution {ordered[1]}"


def of_text(file):
    """The groups of the text, of an encoder and of a decoder; the text of an encoder is its part."""
    named = {"encoder.text_config": "encoder"}
    found = [{**layer, "part": named.get(layer["part"], layer["part"])} for layer in explain(file)["layers"]]
    return [layer for layer in found if layer["part"] in ("", *STACKS)]


def by_three_axes(said, model):
    """Rotations at positions whose time, row and column differ: which pair reads which of them."""
    text = [group for group in said if group.get("axes") and group["positions"]["forward"]]
    groups = {i: group for group in text for i in group["indices"]}
    if not groups:
        return
    letters = "thw" if "t" in text[0]["axes"] else "hw"  # few pairs may leave out an axis, which the module reads all the same
    at = np.stack([np.arange(models.TOKENS) * factor for factor in (1, 2, 3)[: len(letters)]])
    position_ids = models.torch.tensor(at)[:, None]
    for turn in models.run(model, {**models.inputs_of(model), "position_ids": position_ids}).turns:
        _, i, _ = place(turn.layer, set(), ())
        layer = {**groups[i], "coordinates": dict(zip(letters, at, strict=True))}
        yield from (f"layer {i}, three axes: {words}" for words in rotation(layer, turn, []))


def on_a_grid(said, model):
    """Rows and columns of a picture that is no square: each patch has its own, and each axis its extent."""
    inputs = models.inputs_of(model)
    grid = models.grid_of(model, inputs)
    pictured = [group for group in said if group.get("axes") and not group["positions"]["forward"]]
    groups = {i: group for group in pictured for i in group["indices"]}
    if not groups or not grid or grid[0] == grid[1]:
        return
    letters = [axis for axis in "thw" if axis in pictured[0]["axes"]]
    extents = (2, *grid)[-len(letters) :]  # a video has two frames
    for turn in models.run(model, inputs).turns:
        _, i, _ = place(turn.layer, set(), ())
        if turn.before.shape[-2] >= np.prod(extents):  # class tokens stand first
            found = {axis: at[-np.prod(extents) :] for axis, at in coordinates(groups[i], turn).items()}
            patches = sorted(set(zip(*(found[axis].round(3).tolist() for axis in letters), strict=True)))
            expected = sorted(itertools.product(*(coordinates_of(groups[i]["order"], extent) for extent in extents)))
            if not np.allclose(patches, expected, atol=0.02) if len(patches) == len(expected) else True:
                yield f"layer {i}: its patches have rows and columns {patches[:4]} .., expected {expected[:4]} .."


def coordinates_of(order, extent):
    """The coordinates of an axis as posref.explain.positions says them."""
    if order == "hw_centred":
        return ((2 * (np.arange(extent) + 0.5) / extent - 1) * 2 * np.pi).tolist()
    return (np.arange(extent) + (order == "wh_from_one")).tolist()


def judge(model_type, groups, record):
    """The verdict on one record, without attention of kinds that nobody has read."""
    if "read" in configuration.family(model_type):
        record = record._replace(turns=[], attentions=[], tables=[], norms=[], softmaxes=[])
    stacks = {group["part"] for group in groups} - {""}
    one_is_not = stacks and all(group["part"] for group in groups)
    other = tuple(f"{stack}." for stack in STACKS if one_is_not and stack not in stacks)  # a stack that is not described
    record = record._replace(attentions=[call for call in record.attentions if not call.layer.startswith(other)])
    said = {(layer["part"], i, crossed(layer)): layer for layer in groups for i in layer["indices"]}
    aspects, drifted = {key: {} for key in said}, []
    if configuration.family(model_type).get("shared"):  # one module, called once for each layer
        called = [call._replace(layer=f"{i}") for i, call in enumerate(record.attentions)]
        record = record._replace(attentions=called, softmaxes=[])
    if several(configuration.family(model_type)):
        record = in_order(record)
    for call in record.attentions:
        key = place(call.layer, stacks, said)
        if CROSS.search(call.layer) and configuration.family(model_type).get("cross") is False:  # it is not described
            continue
        if key not in said:
            drifted.append(f"layer {named(key)} attends and is not explained")
            continue
        drifted += [f"layer {named(key)}: {words}" for words in attention(said[key], call, record, aspects[key])]
    through = {call.layer for call in record.attentions}
    for call in record.softmaxes:
        key = place(call.layer, stacks, said)
        other = bool(CROSS.search(call.layer)) and not key[2]
        other |= "AttentionResidual" in type(call.module).__name__  # of Inkling 2, over blocks of layers
        if key in said and not other and (call.layer not in through or said[key]["encoding"] == "transformer_xl"):
            drifted += [f"layer {named(key)}: {words}" for words in by_itself(said[key], call, record, aspects[key])]
    turning = {}
    for turn in record.turns:
        if turn.function != "rotate_queries_or_keys" and not re.search(r"compressor|cross", turn.layer):
            turning.setdefault(place(turn.layer, stacks, said), []).append(turn)
    for key, turns in turning.items():
        if said.get(key, {}).get("encoding") != "rope":
            drifted.append(f"layer {named(key)} rotates and is explained as {said.get(key, {}).get('encoding')}")
            continue
        aspects[key]["rotation"] = ""
        for turn in [] if said[key].get("rotated_heads") else turns:  # their attention compares them
            if "indexer" in turn.layer and turn.before.shape[-1] < said[key]["rotary_dim"] and not said[key].get("indexer"):
                continue  # a trap says that it is no rotation
            layer = {**said[key], **(said[key].get("indexer") or {})} if "indexer" in turn.layer else said[key]
            at = [call for call in record.attentions if call.layer == turn.layer]
            drifted += [f"layer {named(key)}: {words}" for words in rotation(layer, turn, at)]
            norms = [norm for norm in record.norms if norm.layer == turn.layer]
            drifted += [f"layer {named(key)}: {words}" for words in order(layer, turn, norms, at)]
    for call in record.attentions:
        key = place(call.layer, stacks, said)
        normed = "alone" if any(norm.layer == call.layer for norm in record.norms) else None
        if key in said and key not in turning and not key[2] and said[key]["norm"] != normed:
            drifted.append(f"layer {named(key)}: its queries and keys are normed {normed}, explained as {said[key]['norm']}")
    if turning:
        claimed = {key for key, layer in said.items() if layer["encoding"] == "rope"} - set(turning)
        drifted += [f"layer {named(key)} is explained as rope and does not rotate" for key in sorted(claimed)]
    if record.attentions:
        silent = {key for key, found in aspects.items() if not found and not key[2]}
        drifted += [f"layer {named(key)} is explained and does not attend" for key in sorted(silent)]
    drifted += states.compared({key[1]: layer for key, layer in said.items() if key[2] == "state"}, record, aspects)
    drifted += [*compare_tables(said.values(), record.tables), *biases(groups, record, aspects), *norming(record)]
    return counted(model_type, said, aspects, drifted)


def several(family):
    """Whether the layers of a row stand in several lists of its module, one after the other."""
    stacks = unrotated_layers.STACKS[family.get("stacks", "one")].values()
    return "staged" in family or any("more" in stack or stack["layers"] == "depths" for stack in stacks)


def in_order(record):
    """The record with the attentions named by the order in which they are called."""
    record = record._replace(
        softmaxes=[
            call for call in record.softmaxes if not re.search("downsample|Subsample", f"{call.layer} {type(call.module)}")
        ]
    )
    calls = dict.fromkeys(call.layer for call in (*record.attentions, *record.softmaxes))
    names = {name: f"layers.{i}" for i, name in enumerate(calls)}
    inside = re.compile("|".join(rf"\b{re.escape(name)}(?=\.)" for name in sorted(names, key=len, reverse=True)) or "^$")
    renamed = {
        field: {inside.sub(lambda found: names[found[0]], name): value for name, value in getattr(record, field).items()}
        for field in ("linears", "projected")
    }
    calls = {field: [call._replace(layer=names[call.layer]) for call in getattr(record, field)] for field in CALLS}
    return record._replace(**renamed, **calls)


def counted(model_type, said, aspects, drifted):
    """The verdict: an aspect that a layer has and that nothing compared is counted with its reason."""
    compared, missed = Counter(), Counter()
    verified = 0
    for key, layer in said.items():
        has = {"rotation": layer["encoding"] == "rope", "temperature": bool(layer["temperature"]), "state": False}
        wanted = ["state"] if layer.get("state") else [aspect for aspect in ASPECTS if has.get(aspect, True)]
        reasons = {
            aspect: aspects[key].get(aspect, "this layer did not run through the recorded interface") for aspect in wanted
        }
        compared.update(aspect for aspect in wanted if not reasons[aspect])
        missed.update((aspect, reason) for aspect, reason in reasons.items() if reason)
        verified += not any(reasons.values())
    return Verdict(model_type, len(said), verified, drifted, compared, missed)


def crossed(layer):
    """ "cross" for the second attention of a decoder layer, "state" for a state, which have their own lines; "" elsewhere."""
    return "cross" if layer["kind"] == "cross_attention" else "state" if layer.get("state") else ""


def place(name, stacks, said):
    """The stack, the number of the layer and which of its attentions a module is, from its name."""
    first = next((each for each in name.removeprefix("text_").split(".")[:2] if each in stacks), "")
    number = re.search(r"(?:^|\.)layers\.(\d+)", name) or re.search(r"(?:^|\.)(\d+)(?:\.|$)", name)
    key = (first, int(number.group(1)) if number else -1)
    return (*key, "cross" if CROSS.search(name) and (*key, "cross") in said else "")


def named(key):
    return " ".join(map(str, filter(lambda word: word != "", key)))


def attention(layer, call, record, aspects):
    """How one attention differs from what is said of its layer; notes in `aspects` what was compared, or why not."""
    scale = call.keywords.get("scaling")
    scales = {scale, getattr(call.module, "scaling", scale)} if scale == 1.0 else {scale}  # queries may be scaled already
    numbers = [number for number in scales if isinstance(number, (int, float))]
    known = layer["softmax_scale"] is not None
    if numbers and known and all(abs(number - layer["softmax_scale"]) > 4 * U * abs(number) for number in numbers):
        yield f"scores are scaled by {scale}, explained as {layer['softmax_scale']}"
    width = layer["window"] or 0  # the keyword may count the last key of a side, or both sides
    widths = {width, width - 1, width + (layer["window_after"] or 1) - 1} if layer["window_sides"] == "both" else {width}
    if "sliding_window" in call.keywords and (call.keywords["sliding_window"] or 0) not in widths:
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
    yield from loudness(layer, call, record)
    yield from mask(layer, call, aspects)
    if layer["encoding"] == "two_angles_per_pair":
        yield from by_thirds(layer, call, record)
    if layer.get("rotated_heads"):
        yield from of_first_heads(layer, call, record)
    yield from scores(layer, call, record, aspects)
    if layer["temperature"]:
        yield from temperature(layer, call, record, aspects)


def by_thirds(layer, call, record):
    """Queries and keys of V-JEPA 2 by posref; the predictor has each patch twice."""
    n, width = call.q.shape[-2], layer["head_dim"] // 3 // 2 * 2
    grid = (call.module.grid_depth, call.module.grid_size, call.module.grid_size)
    at = np.unravel_index(np.arange(n) // (n // np.prod(grid)), grid)
    angles = [places[:, None] * rope.frequencies(width, layer["base"]) for places in at]
    for name, found in (("query", call.q), ("key", call.k)):
        x = record.linears[f"{call.layer}.{name}"][1].reshape(1, n, layer["heads"], -1).swapaxes(1, 2).astype(float)
        thirds = zip(np.split(x[..., : 3 * width], 3, axis=-1), angles, strict=True)
        turned = [axes.rotate_vjepa2(part, np.cos(a), np.sin(a), convention="released") for part, a in thirds]
        if not np.allclose(np.concatenate([*turned, x[..., 3 * width :]], axis=-1), found, atol=1e-5):
            yield f"its {name} is not that of axes.rotate_vjepa2 by thirds"


def of_first_heads(layer, call, record):
    """Queries and keys of Qwen2.5-Omni's DiT by posref, from their projections: the first heads alone rotate."""
    angles = np.arange(call.q.shape[-2])[:, None] * np.array(layer["frequencies"])
    for name, found in (("to_q", call.q), ("to_k", call.k)):
        x = record.linears[f"{call.layer}.{name}"][1].reshape(1, len(angles), layer["heads"], -1).swapaxes(1, 2).astype(float)
        first, rest = np.split(x, [layer["rotated_heads"]], axis=1)
        cos, sin = (layer["magnitude"] * function(angles) for function in (np.cos, np.sin))
        expected = np.concatenate([turned(layer, first, cos, sin), rest], axis=1)
        if not np.allclose(expected, found, atol=1e-5):
            yield f"its heads after {name} are not those of a rotation of the first {layer['rotated_heads']} heads"


def loudness(layer, call, record):
    """Queries are those of the projection, or of their norm, times the explained factor: a rotation keeps their length."""
    made = [norm.after for norm in record.norms if norm.layer == call.layer]
    if not made or CROSS.search(call.layer):  # BLT norms what its queries are projected from
        made = record.projected.get(f"{call.layer}.q_proj", [])
    sizes = [np.linalg.norm(x) for x in made if x is not None and x.size == call.q.size]
    before = layer["softmax_scale"] if call.keywords.get("scaling") == 1.0 else 1.0  # queries may be scaled already
    # layers of Idefics that attend to pictures stand beside layers of the text, and do not rotate
    magnitude = 1.0 if CROSS.search(call.layer) and layer["kind"] != "cross_attention" else layer["magnitude"]
    factor, found = layer["query_scale"] * (before or 1.0) * magnitude, np.linalg.norm(call.q)
    partly = layer["magnitude"] != 1 and layer["rotary_dim"] != layer["head_dim"]
    varied = partly or layer["temperature"] or layer["norm"] == "after" or layer["encoding"] == "transformer_xl"
    known = layer["softmax_scale"] is not None  # TimesFM trains a factor for each feature of its queries
    if sizes and known and not varied and not any(abs(found - factor * size) <= 1e-4 * found for size in sizes):
        yield f"its queries are scaled by {found / sizes[0]:.6g}, explained as {factor:.6g}"
    sizes = [np.linalg.norm(x) for x in record.projected.get(f"{call.layer}.k_proj", []) if x.size == call.k.size]
    factor, found = layer.get("key_scale", 1.0) * magnitude, np.linalg.norm(call.k)
    other = any(norm.layer == call.layer for norm in record.norms) or hasattr(call.module, "k_sconv")  # convolved keys
    if sizes and not partly and not other and not any(abs(found - factor * size) <= 1e-4 * found for size in sizes):
        yield f"its keys are scaled by {found / sizes[0]:.6g}, explained as {factor:.6g}"


def mask(layer, call, aspects):
    """Which keys each query sees, square or not, against what is said."""
    rows, keys = call.q.shape[-2], call.k.shape[-2]
    added = call.mask[call.mask > -1e4] if call.mask is not None and call.mask.dtype != bool else np.zeros(1)
    if (
        added.size and np.ptp(added) and not layer.get("bias") and not layer["selected"]
    ):  # a softmax ignores what all keys share
        yield f"its mask adds {added[:4]}, explained as without a bias"
    if layer["model_type"] in MASKED_OUTSIDE and call.mask is None:
        aspects["mask"] = "the model around it makes its mask"
        return
    if layer.get("segment") and layer["model_type"] != "pixtral":  # each is a row of its own
        height, width = models.GRID
        side = layer.get("window_side", height * width)
        lengths = {2 * height * width} if "video" in layer["segment"] else set()
        lengths |= {min(side, height - i) * min(side, width - j) for i in range(0, height, side) for j in range(0, width, side)}
        if rows - (layer["model_type"] == "inkling2_vision") not in lengths:  # whose pictures have a class token each
            yield f"{rows} of its patches see each other, explained as: {layer['segment']}"
    if layer["mask_unknown"] or layer["causal"] is None:
        aspects["mask"] = "the explanation says that it does not know the mask"
        return
    if call.mask is not None and (call.mask.ndim != 4 or call.mask.shape[-2:] != (rows, keys)):
        aspects["mask"] = "the mask has other axes than queries and keys"
        return
    yield from compared_masks(layer, seen_by(call.mask) if call.mask is not None else np.ones((rows, keys), bool), aspects)


def compared_masks(layer, visible, aspects):
    expected = expected_mask(layer, *visible.shape)
    if expected is None:
        aspects["mask"] = "{} queries and {} keys, of which the explanation does not speak".format(*visible.shape)
        return
    aspects["mask"] = ""
    expected = selected(layer, visible, expected)
    if not np.array_equal(visible, expected):
        row = int(np.argmax((visible != expected).any(axis=1)))
        found = [each[row].astype(int) for each in (visible, expected)]
        yield f"row {row} of its mask is {found[0]}, explained as {found[1]}"


def seen_by(mask):
    """The boolean mask of the first sequence and head."""
    return mask[0, 0] if mask.dtype == bool else mask[0, 0] > -1e4


def expected_mask(layer, rows, keys):
    """Which keys each query sees, tokens first and then compressed keys or those of the encoder; None where nothing says it."""
    further = layer["further_keys"] and "encoder" in layer["further_keys"]
    pooled = layer["encoding"] == "pooled" and layer["bias"]["query_step"] != layer["bias"]["key_step"]
    own = keys if layer["kind"] == "cross_attention" or pooled or layer["encoding"] == "convolved" else rows
    i, j = np.arange(rows)[:, None], np.arange(own)
    visible = np.ones((rows, own), bool) if layer["causal"] is False or layer["window_sides"] == "both" else j <= i
    if layer["window"] is not None:
        visible = visible & (i - j < layer["window"]) & (j - i < (layer["window_after"] or layer["window"]))
    if layer["chunk"] is not None:
        ahead, before = j // layer["chunk"] - i // layer["chunk"], layer.get("chunks_before", 0)
        visible = visible & ((-before <= ahead) | (before < 0)) & (ahead <= layer.get("chunks_after", 0))
    if keys > own and further:
        visible = np.concatenate([visible, np.ones((rows, keys - own), bool)], axis=1)
    if layer["compressed"] and keys - own == rows // layer["compressed"]["rate"]:
        last = (np.arange(keys - own) + 1) * layer["compressed"]["rate"] - 1
        visible = np.concatenate([visible, last <= i], axis=1)
    return visible if visible.shape == (rows, keys) else None


def selected(layer, visible, expected):
    """What is left where an indexer selects keys: whole blocks, as many as are said, the local ones among them.

    Which blocks score highest is the module's own answer.
    """
    compressed = layer["compressed"] and layer["compressed"]["most"]
    chosen = {"most": compressed, "block": 1, "local": 0} if compressed else layer["selected"]
    if not chosen:
        return expected
    start = len(expected) if compressed else 0
    left = expected.copy()
    for i, row in enumerate(expected):
        blocks = [range(at, min(at + chosen["block"], len(row))) for at in range(start, len(row), chosen["block"])]
        open_blocks = [block for block in blocks if row[block].any()]
        taken = [block for block in open_blocks if visible[i, block].any()]
        last = i // chosen["block"] + 1
        local = [block for block in open_blocks if block in blocks[max(last - chosen["local"], 0) : last]]
        if len(taken) == min(chosen["most"], len(open_blocks)) and all(block in taken for block in local):
            left[i] = row & np.isin(np.arange(len(row)), [j for block in [range(start), *taken] for j in block])
    return left


def scores(layer, call, record, aspects):
    """The output made of the recorded queries, keys, values and mask, with scale, cap, bias, sinks and key heads as said."""
    q, k, v = (x.astype(np.float64) for x in (call.q, call.k, call.v))
    if q.ndim != 4 or q.shape[1] % k.shape[1] or layer["softmax_scale"] is None or call.output.ndim != 4:
        aspects["scores"] = "queries, keys or output have other axes, or the scale is not known"
        return
    called = layer["bias"]["call"] if layer.get("bias") else None
    apart = call.mask is None or call.keywords.get("position_bias") is not None  # its bias is not in its mask
    if called in AS_A_MASK and not apart:
        if not np.allclose(call.mask[0], AS_A_MASK[called](layer, call, record, q[0], k[0]), atol=1e-6):
            yield "its mask is not the bias of the explained heads and offsets"
    elif called not in (None, "t5.bias", "alibi.bias", "inkling.bias", "shaw.scores"):
        aspects["scores"] = f"the terms of {called} are not recorded here"
        return
    group = q.shape[1] // k.shape[1]
    k, v = (np.repeat(x, group, axis=1) for x in (k, v))
    scale = 1.0 if call.keywords.get("scaling") == 1.0 else layer["softmax_scale"]
    s = scale * q @ k.swapaxes(-1, -2)
    if layer["softcap"]:
        s = layer["softcap"] * np.tanh(s / layer["softcap"])
    s = s + t5_bias(layer, call, record) + inkling_bias(layer, call, record)
    if called == "shaw.scores" and apart:
        s = s + shaw_terms(layer, call, record, q, k)
    if call.mask is not None:
        s = np.where(call.mask, s, -np.inf) if call.mask.dtype == bool else s + call.mask
    sinks = sinks_of(layer, call)
    weights = np.exp(s - np.maximum(s.max(axis=-1, keepdims=True), sinks))
    weights /= weights.sum(axis=-1, keepdims=True) + np.exp(sinks - np.maximum(s.max(axis=-1, keepdims=True), sinks))
    y = (weights @ v).swapaxes(1, 2)
    aspects["scores"] = "" if y.shape == call.output.shape else "the output has other axes"
    if y.shape == call.output.shape:
        off, size = np.abs(y - call.output).max(), np.abs(v).max()
        if not off <= 1e-4 * size:
            yield f"its output is not that of the explained scale, cap, bias, sinks and key heads, by {off:.2g} of {size:.2g}"


def by_itself(layer, call, record, aspects):
    """An attention beside the interface: its scores are made of what two of its linear layers gave, as said."""
    called = layer["bias"]["call"] if layer.get("bias") else None
    called = "pooled" if layer["encoding"] == "pooled" else called
    if layer.get("bias") and "blocks" in layer["bias"]:
        yield from summed(layer, call, record)
    if layer["window"] and (call.scores.ndim == 5 or call.scores.shape[2:] == (layer["heads"], 2 * layer["window"] - 1)):
        values = {"scores": -np.inf, "weights": 0.0}
        call = call._replace(
            **{name: squared(layer, call.module, getattr(call, name), empty) for name, empty in values.items()}
        )
    padded = (layer["chunk"] or 0) > models.TOKENS
    if padded:
        n = models.TOKENS
        call = call._replace(scores=call.scores[..., :n, :n], weights=call.weights[..., :n, :n])
    rows, keys = call.scores.shape[-2:]
    # of Hiera: the patches of a unit stand so far apart
    units = call.scores.shape[2] if call.scores.ndim == 5 and "MaskUnit" in type(call.module).__name__ else 0
    if units:
        call = call._replace(scores=call.scores[:, :, 0], weights=call.weights[:, :, 0])
    elif layer["mask_unknown"] and models.TOKENS not in (rows, keys):
        aspects["scores"] = "its softmax is over blocks, of which the explanation does not speak"
        return
    if call.scores.ndim == 5 and called == "t5.bucket":  # streams of which nothing is said
        return
    batch = call.scores.size // (layer["heads"] * rows * keys)  # windows of a picture, or one
    if call.scores.size != batch * layer["heads"] * rows * keys:
        aspects["scores"] = "its softmax has other axes"
        return
    s, weights = (x.reshape(batch, -1, rows, keys)[0].astype(np.float64) for x in (call.scores, call.weights))
    if units:
        aspects["mask"] = "the explanation says that it does not know the mask"
    else:
        yield from compared_masks(layer, weights[0] > 0, aspects)
    if called not in BESIDE:
        aspects["scores"] = f"the terms of {called} are not recorded here"
        return
    owner = call.layer.removesuffix(".softmax")
    made = [y.astype(np.float64) for name, (_, y) in record.linears.items() if name.split()[-1].startswith(f"{owner}.")]
    longer = layer["window"] or padded or called == "t5.bucket"  # they may be padded, or other streams follow
    made = [y.reshape(-1, y.shape[-1])[:rows] if longer else y[:, :: max(units, 1)] for y in made]
    made = [y for y in made if y.size % (batch * y.shape[-1]) == 0]  # without the output, whose padding is cut off
    made = [y.reshape(batch, -1, y.shape[-1])[0] if batch > 1 else y for y in made]
    made += by_weights(call, record) + apart(layer, call, record)
    normed = [norm.after[0].astype(np.float64) for norm in record.norms if norm.layer == owner]
    turned = [x for turn in record.turns if turn.layer == owner for x in whole_heads(layer, turn, made)] or normed
    if layer["encoding"] == "rope" and {x.shape[-1] for x in turned} != {layer["head_dim"]}:
        aspects["scores"] = "its whole turned queries and keys are not recorded"
        return
    queries, others = (turned or [x for y in made for x in of_heads(y, n, layer)] for n in (rows, keys))
    queries = [x.reshape(len(x), -1, rows, x.shape[-1]).max(axis=1) for x in others] if units else queries
    terms, scale = functools.partial(BESIDE[called], layer, call, record), layer["softmax_scale"]
    before = softplus(call.module.per_dim_scale) if called and "queries" in layer["bias"] else 1.0
    pairs = ((before * q, k) for q in queries for k in others if q is not k)
    products = (scale * q @ (layer.get("key_scale", 1.0) * k).swapaxes(-1, -2) + terms(q, k) for q, k in pairs)
    cap = layer["softcap"]
    products = (cap * np.tanh(product / cap) if cap else product for product in products)
    aspects["scores"] = ""
    near, seen = 1e-4 * np.abs(s[weights > 0]).max(), np.where(weights > 0, 0.0, -np.inf)
    s = s - (s + seen).max(axis=-1, keepdims=True)  # a softmax ignores what all scores of a row share
    products = (product - (product + seen).max(axis=-1, keepdims=True) for product in products)
    if not any(np.abs(product - s)[weights > 0].max() <= near for product in products):
        yield "its scores are not those of two of its linear layers with the explained scale"


def whole_heads(layer, turn, made):
    """A query or key with all features: behind the rotated features stand the other features, as a linear layer gave them."""
    before, after = (x[0].astype(np.float64) for x in (turn.before, turn.after))
    times = (1.0, layer["query_scale"])
    rest = (factor * x for factor in times for y in made for x in of_heads(y, before.shape[-2], layer))
    width = before.shape[-1]
    found = [x for x in rest if before.shape[0] == len(x) and np.allclose(x[..., :width], before, atol=1e-6)]
    partly = width < layer["head_dim"] and layer["rotated"] == "first"
    return [np.concatenate([after, x[..., width:]], axis=-1) for x in found] if partly else [after]


def softplus(x):
    return np.logaddexp(0, x.detach().double().numpy())


def squared(layer, module, x, empty):
    """A band of keys (Longformer), or those of a block and its neighbours (LongT5, Gemma), as (1, heads, tokens, tokens)."""
    n = models.TOKENS
    before = getattr(module, "max_past_horizon", x.shape[3])
    if x.ndim == 5:  # LongT5's keys that are sums of blocks follow
        x = x[..., : 3 * before] if x.shape[1] != layer["heads"] else x.swapaxes(1, 2)
    y = np.full((1, layer["heads"], n, n), empty, x.dtype)
    for i in range(n):
        size = x.shape[3] if x.ndim == 5 else x.shape[3] // 2
        block, place = divmod(i, size) if x.ndim == 5 else (i, 0)
        row, first = (x[0, block, :, place], block * size - before) if x.ndim == 5 else (x[0, i], i - size)
        seen = [j for j in range(first, first + row.shape[-1]) if 0 <= j < n]
        y[0, :, i, seen] = row[:, [j - first for j in seen]].T
    return y


def summed(layer, call, record):
    """The scores of the keys of LongT5 that are sums of blocks of tokens; the last block takes what is left over."""
    said, n = layer["bias"], models.TOKENS
    (x, q), (given, k) = (record.linears[name] for name in (f"{call.layer}.q", f"again {call.layer}.k"))
    first = next(each.module for each in record.softmaxes if hasattr(each.module, "global_relative_attention_bias"))
    block = np.minimum(np.arange(n) // said["blocks"], n // said["blocks"] - 1)
    sums = np.stack([x[0, block == i].sum(axis=0) for i in range(block[-1] + 1)])
    q, k = (y.reshape(-1, layer["heads"], layer["head_dim"]).swapaxes(0, 1).astype(float) for y in (q, k))
    table = first.global_relative_attention_bias.weight.detach().double().numpy()
    rule = {"max_distance": said["max_distance"], "bidirectional": said["bidirectional"]}
    expected = q @ k.swapaxes(-1, -2) + t5.bias(block, np.arange(len(sums)), table, **rule)
    found = call.scores[0].swapaxes(0, 1).reshape(layer["heads"], -1, call.scores.shape[-1])[:, :n, -len(sums) :]
    if not np.allclose(given[0], sums / np.sqrt((sums**2).mean(axis=-1, keepdims=True) + 1e-6), atol=1e-4):
        yield f"its keys are not normed sums of {said['blocks']} tokens"
    if not np.allclose(found, expected, atol=1e-3):
        yield f"its scores of sums of {said['blocks']} tokens are not as explained"


def by_weights(call, record):
    """Queries and keys of WavLM and BridgeTower, which give PyTorch's attention the weights of their projections."""
    if call.layer in record.linears:  # a module of PyTorch, whose tokens stand before the batch
        x, weights = record.linears[call.layer][0][:, 0].astype(float), (call.module.in_proj_weight, call.module.in_proj_bias)
        each = zip(*(np.split(weight.detach().double().numpy(), 3) for weight in weights), strict=True)
        return [x @ w.T + b for w, b in each]
    x = record.linears.get(f"{call.layer}.gru_rel_pos_linear", [None])[0]
    if x is None:
        return []
    x = models.torch.tensor(x[0].swapaxes(0, 1).reshape(x.shape[2], -1))
    return [projection(x).detach().double().numpy() for projection in (call.module.q_proj, call.module.k_proj)]


def apart(layer, call, record):
    """Queries and keys of DAB-DETR: sums of projected features and positions; in wider heads a position is beside the sum."""
    names = re.compile(rf"{re.escape(call.layer)}_(query|key)_(content|pos|pos_sine)_proj")
    y = {match.groups(): pair[1][0] for name, pair in record.linears.items() if (match := names.fullmatch(name))}
    if not y:
        return []
    added = ("query", "pos") in y
    sums = {which: y[which, "content"] + (y[which, "pos"] if added else 0.0) for which in ("query", "key")}
    if ("query", "pos_sine") not in y:
        return [*sums.values()]
    pairs = zip(sums.values(), (y["query", "pos_sine"], y["key", "pos"]), strict=True)
    halves = ([x.reshape(len(x), layer["heads"], -1) for x in pair] for pair in pairs)
    return [np.concatenate(pair, axis=-1).reshape(len(pair[0]), -1).astype(np.float64) for pair in halves]


def gates(call, record):
    """What multiplies the rows of T5's bias, from the input of a WavLM layer."""
    linear = call.module.gru_rel_pos_linear
    numbers = (linear.weight, linear.bias, call.module.gru_rel_pos_const.flatten())
    x = record.linears[f"{call.layer}.gru_rel_pos_linear"][0][0].astype(float)
    return t5.gate(x, *(number.detach().double().numpy() for number in numbers))[..., None]


def token_terms(layer, call, record, q, k):
    """The rows that a ProphetNet layer projects from each token; those of the streams that predict follow."""
    said, n = layer["bias"], q.shape[-2]
    rows = record.linears[f"{call.layer}.relative_pos_embeddings"][1][0, :n].astype(float).reshape(n, said["buckets"], -1)
    rule = {name: said[name] for name in ("buckets", "max_distance", "bidirectional")}
    at = t5.bucket(np.arange(n) - np.arange(n)[:, None], **rule)
    return np.moveaxis(np.take_along_axis(rows, at[..., None], axis=1), -1, 0)


def distance_terms(layer, call, record, q, k):
    """The terms by posref, from a sinusoid of each distance, its projection, and the two trained vectors of the module."""
    n, said = q.shape[-2], layer["bias"]
    at = transformer_xl.distances(n, n, bidirectional=True)
    w = sinusoidal.frequencies(said["dim"], said["base"], divisor=said.get("divisor", "dim"))
    expected = sinusoidal.encode(at, w, layout=said["layout"])
    own = rf"{call.layer}\.(linear_pos|relative_k_proj|relative_position_embedding\.pos_proj)"
    (sines, r) = next(pair for name, pair in record.linears.items() if re.fullmatch(own, name))
    u, v = [x.detach().double().numpy() for name, x in call.module.named_parameters() if re.search("bias_[uv]$", name)] or [
        np.zeros((layer["heads"], layer["head_dim"]))
    ] * 2
    r = r.astype(np.float64).reshape(-1, len(u), layer["head_dim"]).swapaxes(0, 1)
    if "distances" in said:
        of, first, last = re.match(r"(.*) from (\d+) to (-?\d+)", said["distances"]).groups()
        x, table = eval(of, {"i": at, "j": 0}), np.arange(int(first), int(last) - 1, -1)
        expected = sinusoidal.encode(table, w, layout=said["layout"])
        r = (x[:, None] == table) @ r if r.shape[1] == len(table) else np.nan * np.ones((len(u), len(at), layer["head_dim"]))
    if sines.size != expected.size or not np.allclose(sines.reshape(expected.shape), expected, atol=1e-5):
        return np.nan
    scale = layer["softmax_scale"]
    return transformer_xl.scores(q, k, r, u, v, scale=scale) - scale * q @ k.swapaxes(-1, -2)


def pooled_terms(layer, call, record, q, k):
    """The scores of Funnel by posref: [CLS] has only the terms of content; equal and different segments have a vector each."""
    said, module = layer["bias"], call.module
    names = ("r_w_bias", "r_r_bias", "r_s_bias", "r_kernel", "seg_embed")
    u, v, s, kernel, segments = (getattr(module, name).detach().double().numpy() for name in names)
    steps = ((said["query_step"], q.shape[-2]), (said["key_step"], k.shape[-2]))
    i, j = (1 - step + step * np.arange(count) for step, count in steps)
    at, row = np.unique(i[:, None] - j, return_inverse=True)
    sines = sinusoidal.encode(at, sinusoidal.frequencies(said["dim"], said["base"]), layout=said["layout"])
    of_distance = (q + v[:, None]) @ np.einsum("td,dnh->nht", sines, kernel)
    of_distance = np.take_along_axis(of_distance, np.broadcast_to(row.reshape(len(i), -1), (len(q), len(i), len(j))), axis=-1)
    if max(i[-1], j[-1]) >= models.TOKENS:
        return np.nan
    kinds = [np.array(models.SEGMENTS)[np.maximum(at, 0)] for at in (i, j)]
    of_segment = np.einsum("nih,snh->sni", q + s[:, None], segments)[..., None]
    of_segment = np.where(kinds[0][:, None] == kinds[1], of_segment[1], of_segment[0])
    behind = (np.arange(len(i)) > 0)[:, None] & (np.arange(len(j)) > 0)
    return layer["softmax_scale"] * ((u[:, None] @ k.swapaxes(-1, -2)) + behind * (of_distance + of_segment))


def decomposed_terms(layer, call, record, q, k):
    """The terms by posref, from the tables of the module; a window or a picture of another size is not as explained."""
    sides = [layer["bias"][side] for side in ("height", "width")]
    tables = [getattr(call.module, f"rel_pos_{axis}").detach().double().numpy() for axis in "hw"]
    if np.prod(sides) != q.shape[-2]:
        return np.nan
    at = np.divmod(np.arange(np.prod(sides)), sides[1])
    rows = [decomposed.rows(x, x, query_size=n, key_size=n) for x, n in zip(at, sides, strict=True)]
    return decomposed.bias(q, *tables, *rows)


def swin_terms(layer, call, record, *_):
    """The bias by posref, from the tables of this layer and of all layers; of another picture it is not as explained."""
    said = layer["bias"]
    at = np.stack(np.divmod(np.arange(said["height"] * said["width"]), said["width"]), axis=-1)
    rows = swin.rows_with_cls(at, height=said["height"], width=said["width"])
    number = place(call.layer, (), ())[1]
    words = {-1: "one, used by all", number: "every layer"}
    own = {place(name, (), ())[1]: table for name, table in record.offset_tables.items()}
    if {words[i] for i in own if i in words} != set(said["table_of"].split(" and ")):
        return np.nan
    return sum(swin.bias(rows, own[i].astype(float)) for i in own if i in words)


def shaw_terms(layer, call, record, q, k):
    """The terms by posref, whose tables have as many rows to the right as to the left: the last row of a side is repeated."""
    said, n = layer["bias"], np.arange(q.shape[-2])
    names = "distance_embedding|rel_pos_emb|emb_rel_k"
    own = (x[0] if x.ndim == 3 else x for name, x in call.module.named_parameters() if re.search(names, name))
    table = next((x.detach().double().numpy() for x in own), next(iter(record.bias_tables.values()), None))[
        :: 1 if said["offset"] == "j - i" else -1
    ]
    table = np.pad(table, ((1, 1), (0, 0))) if "first_and_last_row" in said else table
    if len(table) != said["left"] + said["right"] + 1:
        return np.nan
    more = said["left"] - said["right"]
    table = np.pad(table, ((max(-more, 0), max(more, 0)), (0, 0)), mode="edge")
    scale = layer["softmax_scale"]
    return shaw.scores(q, k, table, n - n[:, None], scale=scale) - scale * q @ k.swapaxes(-1, -2)


def stream_terms(layer, call, record, q, k):
    """The scores of LiLT's second stream by posref."""
    width, scale = layer["bias"]["head_dim"], layer["bias"]["scale"]
    given = [record.linears[f"{call.layer}.layout_{name}"][1][0] for name in ("query", "key")]
    return attend.scores(*(x.reshape(len(x), -1, width).swapaxes(0, 1).astype(float) for x in given), scale=scale)


def box_terms(layer, call, record, q, k):
    """The scores of BROS's queries and projected sinusoids of the differences of boxes."""
    said = layer["bias"]
    b = float(said["x"].split()[0]) * record.boxes[:, [0, 1, 2, 1, 2, 3, 0, 3]].astype(float)
    w = sinusoidal.frequencies(said["dim"], said["base"])
    expected = sinusoidal.encode(b - b[:, None], w, layout=said["layout"])
    (x, y) = record.linears["bbox_embeddings.bbox_projection"]
    if x.size != expected.size or not np.allclose(x.reshape(expected.shape), expected, atol=1e-4):
        return np.nan
    return layer["softmax_scale"] * np.einsum("hid,ijd->hij", q, y.reshape(*x.shape[:2], -1))


def clipped_terms(layer, call, record, *_):
    """A trained number for each offset, and the 1 that tokens of a row have more than padding."""
    reach, n = layer["bias"]["reach"], np.arange(call.q.shape[-2])
    (table,) = record.bias_tables.values()
    rows = eval(layer["bias"]["rows"], {"clip": np.clip, "j": n, "i": n[:, None]})
    return 1 + swin.bias(rows, table) if len(table) == 2 * reach else np.nan


def unsigned_terms(layer, call, record, q, k):
    """A trained number for each distance in rows and in columns."""
    n, table = np.arange(q.shape[-2]), call.module.attention_biases.detach().double().numpy().T
    rows = eval(layer["bias"]["rows"], {"j": n, "i": n[:, None]})
    return swin.bias(rows, table) if len(table) == len(n) == layer["bias"]["side"] ** 2 else np.nan


AS_A_MASK = {"swin.bias_with_cls": swin_terms, "shaw.scores": shaw_terms, "swin.bias": clipped_terms}
BESIDE = {
    "attention.scores": stream_terms,
    "sinusoidal.encode": box_terms,
    "shaw.scores": shaw_terms,
    "swin.bias": unsigned_terms,
    "swin.bias_with_cls": swin_terms,
    None: lambda *_: 0.0,
    "t5.bucket": token_terms,
    "t5.bias": lambda layer, call, record, q, k: t5_bias(layer, Pair(call.layer, call.module, q, k), record),
    "transformer_xl.scores": distance_terms,
    "pooled": pooled_terms,
    "decomposed.bias": decomposed_terms,
}


def of_heads(y, n, layer):
    """What a linear layer gave, as (heads, tokens, features): alone, or beside one or two others, by parts or by heads."""
    heads, width = layer["heads"], layer["head_dim"]
    if y.ndim > 2 and y.shape[-1] == n and y.shape[-2] != n:  # a convolution leaves features before tokens
        y = y.swapaxes(-1, -2)
    count = y.size // (n * heads * width)
    if count not in (1, 2, 3) or y.size != count * n * heads * width:
        return
    by_parts, by_heads = y.reshape(n, count, heads, width), y.reshape(n, heads, count, width).swapaxes(1, 2)
    yield from (part[:, i].swapaxes(0, 1) for part in (by_parts, by_heads)[:count] for i in range(count))


def t5_bias(layer, call, record):
    """The bias by posref, from the table of the module; nothing in attention to an encoder."""
    if not layer.get("bias") or layer["bias"]["call"] != "t5.bias":
        return 0.0
    said = layer["bias"]
    times = said.get("times", "1")
    factor = gates(call, record) if times.startswith("t5.gate") else {"1": 1, "1/sqrt(d)": layer["head_dim"] ** -0.5}[times]
    at = [np.arange(x.shape[-2]) for x in (call.q, call.k)]
    tables = {key: x for key, x in record.bias_tables.items() if "boxes" not in said or re.match(BOX_TABLES, key)}
    table = nearest(tables, call.layer)
    if len(table) != said["buckets"] + said.get("segments", 0) ** 2:
        return np.nan
    table, pairs = np.split(table, [said["buckets"]])
    found = t5.bias(*at, table, max_distance=said["max_distance"], bidirectional=said["bidirectional"])
    for table, offsets in (
        zip([*tables.values()][1:], OF_BOXES[said["boxes"]](record.boxes), strict=True) if "boxes" in said else ()
    ):
        rule = {"buckets": said["box_buckets"], "max_distance": said["box_max_distance"], "bidirectional": True}
        found = found + np.moveaxis(table[t5.bucket(offsets, **rule)], -1, 0)
    if "segments" in said:  # 0 is the prompt, 2 the text
        i, j = 2 * (at[0] >= said["prompt"])[:, None], 2 * (at[1] >= said["prompt"])
        found = np.where(i == j, found, np.moveaxis(pairs[i * said["segments"] + j], -1, 0))
    return factor * found


BOX_TABLES = r"encoder\.(relative_bias\.biases|rel_pos)"
OF_BOXES = {
    "x0 and y1": lambda boxes: [x - x[:, None] for x in boxes.T[[0, 3]]],
    "100 (x0 + x1) / 2 and 100 (y0 + y1) / 2, differences rounded to 0": lambda boxes: [
        np.trunc(100 * (x - x[:, None])).astype(int) for x in ((boxes[:, 0] + boxes[:, 2]) / 2, (boxes[:, 1] + boxes[:, 3]) / 2)
    ],
}


def inkling_bias(layer, call, record):
    """The bias by posref, from what r_proj gives and the curves of the module; its queries have the temperature already."""
    if not layer.get("bias") or layer["bias"]["call"] != "inkling.bias":
        return 0.0
    at, curves = np.arange(call.q.shape[-2]), call.module.rel_logits_proj.proj.detach().double().numpy()
    if curves.shape != (layer["bias"]["curves"], layer["bias"]["extent"]):
        return np.nan  # as no output is
    r = record.linears[f"{call.layer}.r_proj"][1].astype(float).reshape(1, len(at), -1, len(curves)).swapaxes(1, 2)
    longest = getattr(call.module.config, "rel_l2_clip_threshold", np.inf)  # of Inkling 2
    r = r * np.minimum(longest / np.maximum(np.linalg.norm(r, axis=-1, keepdims=True), 1e-6), 1)
    return factors(layer, at)[:, None] * inkling.bias(r, curves, at, at)


def nearest(tables, name):
    """The table of this module, or else the only one of its stack, which stands in its first layer."""
    return tables.get(name, next(table for key, table in tables.items() if key.split(".")[0] == name.split(".")[0]))


def sinks_of(layer, call):
    """One number per head, in Inkling 2 one per head and query; minus infinity where there is no sink."""
    if call.keywords.get("sinks") is not None:
        return call.keywords["sinks"].detach().double().numpy()
    if not layer["sinks"]:
        return -np.inf
    given = call.keywords.get("s_aux")
    return (given if given is not None else call.module.sinks).detach().double().numpy().reshape(1, -1, 1, 1)


TEMPERATURES = {
    "1 + a ln(1 + floor((p + 1) / f))": lambda p, a, f: 1 + a * np.log1p(np.floor((p + 1) / f)),
    "1 + a ln(1 + floor(p / f))": lambda p, a, f: 1 + a * np.log1p(np.floor(p / f)),
    "(1 + (p + 1) / f)^a": lambda p, a, f: (1 + (p + 1) / f) ** a,
    "1 + a ln(max((p + 1) / f, 1))": lambda p, a, f: inkling.temperature(p, amount=a, floor=f),
}


def factors(layer, p):
    """The factor of each query at positions p."""
    rule = layer["temperature"]
    return TEMPERATURES[rule["rule"]](p, rule["a"], rule["f"]) if rule else np.ones(len(p))


def temperature(layer, call, record, aspects):
    """Queries that grow with their position: the recorded ones against those before, from the rotation or the projection."""
    expected = factors(layer, np.arange(call.q.shape[-2]))
    turns = [turn.after for turn in record.turns if turn.layer == call.layer and turn.after.shape == call.q.shape]
    normed = [norm.after for norm in record.norms if norm.layer == call.layer and norm.after.size == call.q.size]
    projected = normed[0] if normed else record.projected.get(f"{call.layer}.q_proj", [None])[-1]
    latent = record.linears.get(f"{call.layer}.q_b_proj", [None])[-1]  # of which the last features turn
    projected = latent if projected is None else projected
    if not turns and (projected is None or projected.size != call.q.size):
        aspects["temperature"] = "queries before the factor are not recorded"
        return
    before = turns[0] if turns else projected.reshape(1, call.q.shape[-2], call.q.shape[1], -1).swapaxes(1, 2)
    if latent is not None:
        (after,) = (x.after for x in record.turns if x.layer == call.layer and x.after.shape[:3] == call.q.shape[:3])
        before = np.concatenate([before[..., : -after.shape[-1]], after], axis=-1)
    if len(set(expected)) == 1:
        aspects["temperature"] = "the factor is constant at these lengths"
        return
    aspects["temperature"] = ""
    if not np.allclose(before * expected[:, None], call.q, rtol=1e-5, atol=1e-6):
        found = (np.abs(call.q).sum(axis=(0, 1, 3)) / np.abs(before).sum(axis=(0, 1, 3))).round(6)
        yield f"its queries are multiplied by {found}, explained as {expected.round(6)}"


def biases(groups, record, aspects):
    """What was computed for scores beside the interface: ALiBi, the offsets of DeBERTa, the shift of XLNet."""
    for group in groups:
        if not group.get("bias") or group["bias"]["call"] == "t5.bias":
            continue
        kind = group["bias"]["call"].partition(".")[0]
        found = [each for each in record.biases if each.kind == kind]
        for each in found:
            expected, got = EXPECTED[kind](group, each)
            if got.shape != expected.shape or not np.allclose(got, expected, rtol=2e-2 if each.rounded else 1e-6, atol=1e-6):
                yield f"{kind}: {each.function} gives {got.ravel()[:6]}, explained as {expected.ravel()[:6]}"
        for i in group["indices"] if found else ():
            own = aspects[group["part"], i, ""]
            own["scores"] = f"{each.function} was compared, the sum of the terms was not"
            own.setdefault("mask", "this attention returns no weights")


def _alibi(group, each):
    """Biases of keys, less the one of the first key: a constant of a row is no difference."""
    form = group["bias"]
    n = each.result.shape[-1]
    expected = alibi.bias(np.arange(n), np.arange(n), alibi.slopes(form["heads"], max_bias=form["maximum"]), form="key")
    got = each.result.reshape(-1, n)[: form["heads"]]
    return expected[:, 0], got - got[:, :1]


def _deberta(group, each):
    n = each.result.shape[-1]
    offsets, bias = np.arange(n)[:, None] - np.arange(n), group["bias"]
    if bias["position_buckets"] and bias["position_buckets"] > 0:
        numbers = {"buckets": bias["position_buckets"], "max_position": bias["max_relative_positions"]}
        offsets = deberta.log_bucket(offsets, **numbers, source="transformers")
    return offsets, each.result.reshape(n, n)


def _xlnet(group, each):
    """Column n - i + j of row i: the score of the distance i - j, where the columns count from the distance n down."""
    n = each.result.shape[-1]
    columns = n - np.arange(n)[:, None] + np.arange(n)
    there = columns < each.given.shape[-1]  # in one direction later keys, which are hidden, have no column
    found = np.take_along_axis(each.given, np.broadcast_to(columns * there, each.result.shape), axis=-1)
    return np.where(there, found, each.result), each.result


EXPECTED = {"alibi": _alibi, "deberta": _deberta, "xlnet": _xlnet}


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


def norming(record):
    """A norm makes the lengths of rows more alike, as far as its epsilon lets it; its weights are still 1."""
    for norm in record.norms:
        before, after = (np.linalg.norm(x, axis=-1) for x in (norm.before, norm.after))
        if before.shape != after.shape:
            continue
        before, after = (np.log(x[(before > 0) & (after > 0)]) for x in (before, after))
        if before.size and np.ptp(after) > max(0.9 * np.ptp(before), 0.1):
            lengths = np.exp([after.min(), after.max()])
            yield f"{norm.layer}: what is called a norm leaves rows of the lengths {lengths[0]:.3g} to {lengths[1]:.3g}"


def passed_on(given, taken):
    return bool(np.isin(taken, given).all())


def counting(model_type):
    """How the tokens of a padded row are counted otherwise than explained: by the rotation, and by the rows of a table."""
    file = models.keys(model_type)
    groups = of_text(file)
    model = models.build(models.configuration(file))
    if not {"input_ids", "attention_mask"} <= set(inspect.signature(model.forward).parameters):
        return
    inputs = models.left_padded(model)
    said = {(layer["part"], i, crossed(layer)): layer for layer in groups for i in layer["indices"]}
    stacks = {group["part"] for group in groups} - {""}
    mask, ids = (inputs[name][0].numpy() for name in ("attention_mask", "input_ids"))
    record = models.run(model, inputs)
    for turn in record.turns:
        layer = said.get(place(turn.layer, stacks, said))
        if layer is not None and layer["positions"] and "indexer" not in turn.layer and "compressor" not in turn.layer:
            counted = eval(layer["positions"]["forward"], {"arange": np.arange, "n": len(ids), "mask": mask > 0, **COUNTERS})
            yield from rotation({**layer, "counted": counted}, turn, [])
    for call in record.attentions:
        key = place(call.layer, stacks, said)
        yield from (f"layer {named(key)}: {words}" for words in padding(said.get(key), call, mask > 0, record))
    groups = [group for group in groups if group["positions"]]
    for name, rows in models.rows_read(model, inputs).items():
        (forward,) = {group["positions"]["forward"] for group in groups if group["part"] == place(name, stacks, said)[0]}
        n = len(ids)
        expected = eval(forward, {"arange": np.arange, "n": n, "mask": mask > 0, "ids": ids, **COUNTERS})
        if not np.array_equal(rows[:n], expected):  # Longformer pads once more
            yield f"{name} reads rows {rows}, explained as {expected}"


def decoding(model_type, cached=6):
    """How the tokens after cached ones are turned, counted and masked otherwise than explained."""
    file = models.keys(model_type)
    groups = [group for group in of_text(file) if group["causal"] is True and group["part"] == "" and not group.get("state")]
    model = models.build(models.configuration(file))
    inputs = models.step(model, cached) if groups else None
    if inputs is None:
        return
    rest = inputs["input_ids"].shape[-1]
    starts = [counted_after(group["positions"]["cached"], rest, cached)[0] if group["positions"] else 0 for group in groups]
    said = {
        (group["part"], i, ""): {**group, "cached": start}
        for group, start in zip(groups, starts, strict=True)
        for i in group["indices"]
    }
    counted = {group["positions"]["cached"] for group in groups if group["positions"]}
    record = models.run(model, inputs)
    for turn in record.turns:
        layer = said.get(place(turn.layer, set(), said))
        if layer is not None and layer["encoding"] == "rope" and not re.search("indexer|compressor", turn.layer):
            yield from rotation(layer, turn, [])
    for call in record.attentions:
        layer = said.get(place(call.layer, set(), said))
        expected = layer and expected_mask(layer, models.TOKENS, models.TOKENS)
        if (
            expected is None
            or call.mask is None
            or CROSS.search(call.layer)
            or layer["selected"]
            or layer["compressed"]
            or layer["mask_unknown"]
        ):
            continue
        visible = seen_by(call.mask)
        if not np.array_equal(visible, expected[cached:, models.TOKENS - visible.shape[-1] :]):
            yield f"{call.layer}: after {cached} cached tokens its mask is {visible.astype(int).tolist()}"
    read = models.rows_read(model, models.step(model, cached))
    for name, rows in read.items() if len(counted) == 1 and any(group.get("table") for group in groups) else ():
        expected = counted_after(*counted, rest, cached)
        if not np.array_equal(rows, expected):
            yield f"after {cached} cached tokens {name} reads rows {rows}, explained as {expected}"


def counted_after(expression, n, c):
    """The rows that `cached` of posref.explain.positions says, of a text without padding."""
    whole, ids = np.ones(c + n, bool), np.arange(3, 3 + c + n)
    if expression.startswith("the last n of "):
        inner = expression.removeprefix("the last n of ").rpartition(", of all")[0]
        return eval(inner, {"arange": np.arange, "n": c + n, "mask": whole, "ids": ids, **COUNTERS})[c:]
    return eval(expression, {"arange": np.arange, "n": n, "c": c})


def enters(model_type):
    """Tables at the input that are explained and change nothing: other rows must change what the first layer is given."""
    file = models.keys(model_type)
    own = [group for group in of_text(file) if not crossed(group)]
    if not any(group.get("table") and group["encoding"] in ("learned", "learned_2d", "sinusoidal") for group in own):
        return
    model = models.build(models.configuration(file))
    if of_text(file)[0]["encoding"] == "learned_2d":
        inputs = models.inputs_of(model)
        for axis, (name, rows) in enumerate(models.rows_read(model, inputs).items()):
            if not np.array_equal(rows, inputs["flattened_patches"][0, :, axis]):
                yield f"{name} reads rows {rows}, explained as row and column"
    before = models.run(model)
    tables = models.position_tables(model)
    for table in tables.values():
        table.add_(models.torch.randn(table.shape))
    if tables and before.attentions and np.array_equal(before.attentions[0].q, models.run(model).attentions[0].q):
        yield f"other rows of {', '.join(tables)} change nothing in the first layer"


def padding(layer, call, kept, record):
    """Whether a token sees keys of padding: by the mask, and by the output."""
    n, keys = len(kept), call.k.shape[-2]
    if layer is None or keys % n or layer["model_type"] in MASKED_OUTSIDE:
        return
    visible = seen_by(call.mask) if call.mask is not None else np.ones((n, keys), bool)
    if visible.shape == (n, keys) and visible[kept][:, np.tile(~kept, keys // n)].any():
        yield "its queries see keys of padding"
    known = not (layer["mask_unknown"] or layer["selected"] or layer["compressed"] or layer["causal"] is None or keys > n)
    expected = expected_mask(layer, *[int(kept.sum())] * 2) if known else None
    if expected is not None and not np.array_equal(visible[np.ix_(kept, kept)], expected):
        yield "its tokens after padding have another mask than a text without padding, as explained"
    yield from scores(layer, call, record, {})


def proportional(features, after):
    """Equal up to one number: some models scale their queries once more."""
    after = np.broadcast_to(after, features.shape)
    return np.allclose(features, (features * after).sum() / (after * after).sum() * after, atol=1e-6)


def part(layer, width):
    return slice(-width, None) if layer["rotated"] == "last" else slice(None, width)


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
    if "coordinates" in layer:
        pairs = zip(layer["axes"], frequencies, strict=True)
        return np.stack([layer["coordinates"][axis] * w for axis, w in pairs], axis=-1)
    if layer["positions"]["forward"]:
        return layer.get("counted", layer.get("cached", 0) + np.arange(turn.before.shape[-2]))[:, None] * frequencies
    at = coordinates(layer, turn)
    return np.stack([at[axis] * w for axis, w in zip(layer["axes"], frequencies, strict=True)], axis=-1)


def coordinates(layer, turn):
    """{axis: coordinate of each patch}, from one pair of each axis."""
    pairs = {axis: [t for t, other in enumerate(layer["axes"]) if other == axis] for axis in set(layer["axes"])}
    which = -1 if layer["order"] == "hw_centred" else 0
    return {axis: coordinate(layer, turn, found[which]) for axis, found in pairs.items()}


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
    # PhiMoE multiplies by another magnitude in its forward, SAM 3 scales coordinates
    layers = [layer for layer in layers if layer["model_type"] not in ("phimoe", "sam3_vit_model")]
    said = [(np.array(layer["frequencies"]), layer["magnitude"]) for layer in layers if len(layer["frequencies"])]
    for table in tables:
        # Molmo2 has both tables where rope_scaling_layers names every layer; DeepSeek-V4 turns windowed layers alone by main
        windowed = any(layer["kind"] == "sliding_attention" for layer in layers) and "compressor" not in table.module
        unused = table.module.startswith(("rotary_emb_unscaled", "protein_encoder.")) or (
            table.layer_type == "main" and not windowed
        )
        if said and not unused and not any(same(table, *one) for one in said):
            yield f"table {table.module} {table.layer_type or ''} ({len(table.frequencies)} pairs) is not explained"
    for frequencies, magnitude in said:
        if tables and not any(same(table, frequencies, magnitude) for table in tables):
            yield f"no table of the module has {len(frequencies)} pairs down to {frequencies[-1]:.3g}, magnitude {magnitude}"
            return


def same(table, frequencies, magnitude):
    if table.frequencies.shape != frequencies.shape or abs(table.magnitude - magnitude) > 4 * U * magnitude:
        return False
    return bool(np.allclose(table.frequencies, frequencies, rtol=(np.log(1e8) + 4) * U, atol=0))


def without_term():
    """What differs from the reasons of `posref.explain.inventory` for types that convolutions order."""
    for name in (*CONVOLUTIONS.split(), *CONVOLVED.split()):
        made = models.CONFIG_MAPPING[name]()
        reader = getattr(models.transformers, type(made).__name__.replace("Config", "ForTextRecognition"), None)
        with models.torch.device("meta"):  # the attention of readers of text is in their head
            model = reader(made) if reader else models.build(made, device="meta")
        homes = {type(module) for module in model.modules() if type(module).__module__.startswith("transformers.models")}
        attends = any(re.search("softmax|attention_interface", inspect.getsource(kind.forward)) for kind in homes)
        terms = [key for key, _ in (*model.named_parameters(), *model.named_buffers()) if TERM.search(key)]
        convolved = any("Conv" in type(module).__name__ for module in model.modules())
        if not convolved or attends != (name in CONVOLVED.split()) or terms:
            yield f"{name}: convolutions {convolved}, attention {attends}, terms for position {terms[:3]}"


def types():
    """All types of which something is said of the text, the encoder or the decoder."""
    for name in models.types():
        with contextlib.suppress(Exception):  # a class without defaults, or one that explain refuses
            if any(layer["part"] in ("", *STACKS) for layer in explain(models.keys(name))["layers"]):
                yield name


def main(names):
    explained = verified = as_explained = 0
    compared, missed = Counter(), Counter()
    drifted = Counter()
    for model_type in names or types():
        try:
            verdict = compare(model_type)
            verdict.drifted.extend([*counting(model_type), *decoding(model_type), *enters(model_type)])
        except Exception as error:
            print(
                f"{model_type:28} {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:170], flush=True
            )
            missed["all", "its module was not built or not run"] += 1
            continue
        as_explained += not verdict.drifted
        explained, verified = explained + verdict.explained, verified + verdict.verified
        compared, missed = compared + verdict.compared, missed + verdict.missed
        drifted.update(aspect_of(words) for words in verdict.drifted)
        print(
            f"{model_type:28} {verdict.verified} of {verdict.explained} layers verified",
            *verdict.drifted[:4],
            sep="\n    ",
            flush=True,
        )
    for words in () if names else without_term():
        drifted[aspect_of(words)] += 1
        print(f"    {words}")
    for (aspect, reason), count in sorted(missed.items()):
        print(f"not compared: {aspect} of {count} {'types' if aspect == 'all' else 'layers'}: {reason}")
    lost = {aspect: sum(count for (of, _), count in missed.items() if of == aspect) for aspect in ASPECTS}
    each = [f"{aspect} {compared[aspect]} / {lost[aspect]} / {drifted[aspect]}" for aspect in ASPECTS]
    print(
        f"{as_explained} types as explained; {verified} of {explained} layers verified in every aspect; "
        f"compared / not compared / drifted: {', '.join(each)}"
    )
    if not names and importlib.util.find_spec("diffusers") is None:
        print("not compared: classes of diffusers, which is not installed")
    elif not names:
        importlib.import_module("tests.programs.diffusion").main([])


def aspect_of(words):
    """The aspect that a sentence about a difference is of."""
    signs = {
        "state": "its state|its convolution|its decays|its strengths",
        "mask": "mask|window",
        "temperature": "multiplied by",
        "scores": "scaled|capped|sinks|heads|output|alibi|deberta|xlnet",
    }
    return next((aspect for aspect, sign in signs.items() if re.search(sign, words)), "rotation")


if __name__ == "__main__":
    main(sys.argv[1:])
