"""Layers without rotation: position enters through tables at the input or through biases on the scores.

A model has one stack of layers, or an encoder, a decoder and the decoder's attention to the encoder. The entry `stacks` of a
row in `posref.explain.families` chooses the keys that count these layers.
"""

import math
from dataclasses import replace

from posref.explain.configuration import key_heads, norm, shown, source_file
from posref.explain.layer import Layer

ENCODER_DECODER = {
    "encoder": {
        "layers": "encoder_layers",
        "heads": "encoder_attention_heads",
        "rows": "max_source_positions",
        "causal": False,
    },
    "decoder": {
        "layers": "decoder_layers",
        "heads": "decoder_attention_heads",
        "rows": "max_target_positions",
        "causal": True,
    },
}
LED = {name: {**stack, "rows": f"max_{name}_position_embeddings"} for name, stack in ENCODER_DECODER.items()}
T5 = {
    "encoder": {"layers": "num_hidden_layers", "heads": "num_attention_heads", "causal": False},
    "decoder": {"layers": "num_decoder_layers", "else": "num_hidden_layers", "heads": "num_attention_heads", "causal": True},
}
FASTSPEECH2 = {
    name: {"layers": f"{name}_layers", "heads": f"{name}_num_attention_heads", "causal": False}
    for name in ("encoder", "decoder")
}
DETR = {name: {**stack, "causal": False} for name, stack in ENCODER_DECODER.items()}
PROPHETNET = {
    name: {"layers": f"num_{name}_layers", "heads": f"num_{name}_attention_heads", "causal": name == "decoder"}
    for name in ("encoder", "decoder")
}
ONE = {"": {"layers": "num_hidden_layers", "heads": "num_attention_heads", "causal": None}}
DECODER = {"": {key: ENCODER_DECODER["decoder"][key] for key in ("layers", "heads", "rows", "causal")}}
REFORMER = {"": {**ONE[""], "layers": "attn_layers"}}
PERCEIVER_BLOCKS = {"": {"layers": "num_self_attends_per_block", "heads": "num_self_attention_heads", "causal": False}}
PERCEIVER = {"": {"layers": "resampler_depth", "heads": "resampler_n_heads", "causal": False}}
MLLAMA_VISION = {"": {**ONE[""], "more": "num_global_layers"}}
GEMMA3N_AUDIO = {"": {"layers": "conf_num_hidden_layers", "heads": "conf_num_attention_heads", "causal": False}}
LXMERT = {"": {**ONE[""], "layers": "l_layers"}} | {
    name: {**ONE[""], "layers": name, "causal": False} for name in ("r_layers", "x_layers")
}
PHI4_AUDIO = {"": {**ONE[""], "layers": "num_blocks"}}
VIDEOPRISM = {"": {**ONE[""], "layers": "num_spatial_layers", "more": "num_temporal_layers"}}
FUNNEL = {"": {**ONE[""], "layers": "block_sizes", "more": "num_decoder_layers"}}
STACKS = {
    "funnel": FUNNEL,
    "mllama_vision": MLLAMA_VISION,
    "videoprism": VIDEOPRISM,
    "gemma3n_audio": GEMMA3N_AUDIO,
    "phi4_audio": PHI4_AUDIO,
    "lxmert": LXMERT,
    "depths": {"": {**ONE[""], "layers": "depths"}},
    "reformer": REFORMER,
    "perceiver": PERCEIVER,
    "perceiver_blocks": PERCEIVER_BLOCKS,
    "decoder": DECODER,
    "encoder_decoder": ENCODER_DECODER,
    "led": LED,
    "t5": T5,
    "one": ONE,
    "prophetnet": PROPHETNET,
    "detr": DETR,
    "detr_encoder": {"encoder": DETR["encoder"]},
    "detr_decoder": {"decoder": DETR["decoder"]},
    "fastspeech2": FASTSPEECH2,
}


def groups(settings):
    """One group for each stack, and one for each attention from a decoder to an encoder."""
    if "staged" in settings.family:
        return _staged(settings)
    found = []
    only = only_stack(settings.file, settings.path)
    for name, stack in STACKS[settings.family.get("stacks", "one")].items():
        named = settings[stack["layers"]]
        count = len(named) if isinstance(named, list) else settings.count(stack["layers"])
        count = sum(settings.counts(stack["layers"])) if stack["layers"] in ("depths", "block_sizes") else count
        count = count or settings.count(stack.get("else", stack["layers"]))
        times = settings.count(settings.family["times"]) if "times" in settings.family else 1
        if count is None:
            raise settings.error(f"{stack['layers']} is {shown(None)}, expected a number of layers")
        if only and name not in ("", only):
            continue
        count += settings.count(stack["more"]) if "more" in stack else 0
        group = _group(settings, name, stack, settings.numbered(stack["layers"], count * times))
        if family_reads(settings, "scale_attn_by_inverse_layer_idx"):
            found += _by_depth(group)
        else:
            found += _by_block(settings, group) if group.encoding == "pooled" else _windowed(settings, name, group)
        cross = settings.family.get("cross", name == "decoder")
        if cross:
            step = settings.count(cross) if isinstance(cross, str) else 1
            encoding = settings.family.get("crossing", "none")
            width = group.head_dim * settings.family.get("crossing_wider", 1)
            crossing = replace(group, kind="cross_attention", encoding=encoding, causal=False, bias=None, table=None)
            crossing = replace(crossing, head_dim=width, softmax_scale=_scale(settings, width))
            found.append(replace(crossing, base=_base(settings, encoding), indices=group.indices[::step]))
    return found


def _staged(settings):
    """A group for each stage; the layers of a stage have their own width and number of heads."""
    rule = settings.family["staged"]
    stages = len(settings.counts(next(iter(rule)))) if settings[next(iter(rule))] else 0
    listed = [_of_stages(settings, key, usual, stages) for key, usual in rule.items()]
    if len({*map(len, listed)}) > 1:
        raise settings.error(
            f"{', '.join(rule)} name {', '.join(str(len(each)) for each in listed)} stages; they must be as many"
        )
    found, first = [], 0
    for depth, width, heads, *own in zip(*listed, strict=True):
        layers, head = settings.numbered(next(iter(rule)), first + depth)[first:], own[0] if own else width // heads
        group = plain(settings, settings.path, layers, heads, head, False, settings.family["encoding"])
        rows = settings.family.get("rows_key", "max_position_embeddings")
        found.append(replace(group, softmax_scale=_scale(settings, head), **added(settings, group, rows)))
        first += depth
    return found


def _of_stages(settings, key, usual, stages):
    """A number per stage: from a list, or from the number of the first stage times powers of a factor, whose key is `usual`."""
    if isinstance(usual, str):
        return [int(settings.count(key) * settings.number(usual) ** stage) for stage in range(stages)]
    return usual if settings[key] is None else settings.counts(key)


def only_stack(file, path=""):
    """The stack of a class that has only one, such as T5EncoderModel (text_encoder of MusicGen) or BartForCausalLM; or None."""
    named = file.get("architectures")
    name = named[0] if isinstance(named, list) and named and isinstance(named[0], str) else ""
    if name.endswith(("EncoderModel", "ForTokenClassification", "ForAudioClassification")) or path.endswith("text_encoder"):
        return "encoder"
    return "decoder" if name.endswith("ForCausalLM") or path.endswith("decoder_config") else None


def family_reads(settings, key):
    """Whether the class of this type has a boolean key, and the key is set."""
    return key in settings.facts["defaults"] and bool(settings[key])


def _by_depth(group):
    """A group for each layer: its scores are also divided by the layer number, counted from 1 (modeling_gpt2.py)."""
    return [replace(group, indices=[i], softmax_scale=group.softmax_scale / (i + 1)) for i in group.indices]


def _by_block(settings, group):
    """A group for each pair (query step, key step): the first layer of a later block pools its queries, not its keys."""
    sizes, found = settings.counts("block_sizes"), {}
    blocks = [(block, i == 0) for block, size in enumerate(sizes) for i in range(size)]
    for i in group.indices:
        block, first = blocks[i] if i < len(blocks) else (0, False)
        found.setdefault((2**block, 2 ** max(block - first, 0)), []).append(i)
    steps = ({"query_step": query, "key_step": key} for query, key in found)
    return [
        replace(group, indices=indices, bias={**group.bias, **step})
        for step, indices in zip(steps, found.values(), strict=True)
    ]


def _windowed(settings, name, group):
    """A group for each width of a window; a file may list one width per layer."""
    rule = settings.family.get("window")
    if rule is None or name not in ("", rule["stack"]):
        return [group]
    listed = isinstance(settings[rule["key"]], (list, tuple))
    widths = settings.counts(rule["key"]) if listed else [settings.count(rule["key"])] * len(group.indices)
    if len(widths) != len(group.indices):
        raise settings.error(f"{rule['key']} lists {len(widths)} windows, expected one for each of {len(group.indices)} layers")
    seen = [width // (2 if rule.get("halved") else 1) + rule["plus"] for width in widths]
    one = replace(group, kind="sliding_attention", window_sides="both", window_after=_after(settings, *rule.get("after", ())))
    return [replace(one, window=width, indices=[i for i in group.indices if seen[i] == width]) for width in dict.fromkeys(seen)]


def _after(settings, key=None, plus=0):
    """The number of keys that a query sees from its own key on, its own included; None if no key of the file says it."""
    return max(settings.count(key, least=0) + plus, 1) if key else None


def _group(settings, name, stack, indices):
    family = settings.family
    whole = next(filter(None, map(settings.count, family.get("whole", "hidden_size").split())), None)
    heads = whole // family["per_head"] if "per_head" in family else settings.count(stack["heads"])
    width = settings.count(family["head"]) if "head" in family else None
    width = width or whole // heads
    heads = heads // family.get("fewer_heads", 1)
    causal = _causal(settings) if stack["causal"] is None else stack["causal"]
    switched = [encoding for key, encoding in family.get("encoding_if", {}).items() if settings[key]]
    encoding = next(iter(switched), family.get("encoding_else", family.get(name, family["encoding"])))
    group = plain(settings, ".".join(filter(None, (settings.path, name))), indices, heads, width, causal, encoding)
    return replace(
        group,
        softmax_scale=_scale(settings, width),
        key_scale=family.get("keys_times", 1.0),
        chunk=_number(settings, family["chunk"]) if "chunk" in family else None,
        **chunks(settings, indices[0]),
        softcap=settings.number(family["softcap"]) if "softcap" in family else None,
        norm=norm(settings, "full_attention", turned=False),
        base=_base(settings, encoding),
        convolution=_convolution(settings) if encoding == "convolution_input" else None,
        **added(settings, group, family.get("rows_key", stack.get("rows", "max_source_positions"))),
    )


def chunks(settings, i):
    """The numbers of chunks before and after its own chunk that a query of layer i sees."""
    rules = settings.family.get("chunks", {})
    given = {
        f"chunks_{side}": settings[key] if isinstance(settings[key], list) else settings.number(key, int)
        for side, key in rules.items()
    }
    return {name: int(i in value) if isinstance(value, list) else max(value, -1) for name, value in given.items()}


def _base(settings, encoding):
    """The base of the sinusoids that layers add, or of the angles by which layers rotate; None for other encodings."""
    if encoding == "object_boxes":
        return 10000.0
    added = ("object_queries_and_patches", "object_points", "two_angles_per_pair")
    based = encoding.startswith("sinusoidal_2d") or encoding in added
    return _number(settings, settings.family["base"]) if based else None


def _number(settings, rule):
    """A number of a row, or the value of the key that the row names."""
    return settings.number(rule) if isinstance(rule, str) else rule


def _convolution(settings):
    """The convolution: data2vec has several in a row, SEW has a stride (modeling_data2vec_audio.py, modeling_sew.py)."""
    several = settings.count("conv_pos_kernel_size")
    width, groups = several or settings.count("num_conv_pos_embeddings"), settings.count("num_conv_pos_embedding_groups")
    number = settings.count("num_conv_pos_embeddings") if several else 1
    return {"width": width, "stride": settings.count("squeeze_factor") or 1, "groups": groups, "number": number}


def plain(settings, part, indices, heads, width, causal, encoding):
    """Layers that rotate nothing and see all keys."""
    return Layer(
        part=part,
        model_type=settings.model_type,
        indices=indices,
        encoding=encoding,
        head_dim=width,
        heads=heads,
        kv_heads=key_heads(settings, heads),
        causal=causal,
        source=source_file(settings),
    )


def added(settings, group, rows="max_source_positions"):
    """The number of rows of a table at the input, and the bias of the scores."""
    scored = settings.family.get("also", group.encoding)
    listed = isinstance(settings[rows], list)
    table = settings.counts(rows) if listed else settings.number(rows) or settings.number("max_position_embeddings")
    table = table or settings.family.get("table")
    return {
        "table": table if group.encoding in AT_THE_INPUT else None,
        "bias": BIASES[scored](settings, group) if scored in BIASES else None,
    }


def _causal(settings):
    """Whether layers are causal: the row says it, or a key of the file with the value bi or uni."""
    rule = settings.family.get("causal")
    if not isinstance(rule, str):
        return rule
    if settings[rule] not in ("bi", "uni"):
        raise settings.error(f"{rule} is {shown(settings[rule])}, expected bi or uni")
    return settings[rule] == "uni"


def _scale(settings, width):
    rule = settings.family["scale"]
    if "scale_attn_weights" in settings.facts["defaults"] and settings["scale_attn_weights"] is False:
        return 1.0
    if rule == "terms":  # DeBERTa divides by the root of the width times the number of its terms
        return float((width * (1 + len(_terms(settings)))) ** -0.5)
    if rule == "softplus":  # queries are also multiplied by softplus of a trained number, which is ln 2 before training
        return width**-0.5 / math.log(2)
    return width**-0.5 if rule == "head" else float(rule)


def _terms(settings):
    """The terms of DeBERTa besides content-to-content; the file has a list, or names separated by bars."""
    given = settings["pos_att_type"] or []
    given = given.split("|") if isinstance(given, str) else given
    return [term for term in given if term in ("c2p", "p2c")] if settings["relative_attention"] else []


def sides(settings, key):
    """The rows and columns under a key of the file, which has one number for both, or a list."""
    return settings.counts(key) if isinstance(settings[key], (list, tuple)) else [settings.count(key)] * 2


def _t5(settings, group):
    family = settings.family
    summed = settings["encoder_attention_type"] == "transient-global" and not group.causal
    return {
        "call": "t5.bias",
        "buckets": settings.count(family.get("buckets", "relative_attention_num_buckets")),
        "max_distance": settings.count(family.get("reach", "relative_attention_max_distance")) or 128,
        "bidirectional": not group.causal,
        "table_of": "every layer" if family.get("every_layer") else family.get("table_of", "layer 0, used by all"),
        **dict(zip(("segments", "prompt"), map(settings.count, family.get("segments", ())), strict=False)),
        **({"times": "t5.gate of the layer's input"} if family.get("gated") else {}),
        **({"blocks": settings.count("global_block_size")} if summed else {}),
    }


def _boxes(settings, group):
    """Three biases: by the positions of tokens, by the columns of their boxes, and by the rows of their boxes."""
    buckets, reach = (_number(settings, rule) for rule in settings.family["box_buckets"])
    return {
        **_t5(settings, group),
        **settings.family.get("of_places", {}),
        "table_of": "the encoder, used by all layers",
        "boxes": settings.family["boxes"],
        "box_buckets": buckets,
        "box_max_distance": reach,
        "box_table": settings.count("max_2d_position_embeddings"),
    } | ({"times": "1/sqrt(d)"} if group.encoding == "learned" else {})


def _alibi(settings, group):
    return {
        "call": "alibi.bias",
        "heads": group.heads,
        "form": settings.family.get("form"),
        "maximum": settings.family.get("maximum", 8),
    }


def _disentangled(settings, group):
    limit = settings["max_relative_positions"]
    return {
        "call": "deberta.scores",
        "terms": _terms(settings),
        "max_relative_positions": settings["max_position_embeddings"] if limit is None or limit < 1 else limit,
        "position_buckets": settings["position_buckets"],
        "input_table": settings["max_position_embeddings"] if settings["position_biased_input"] else None,
    }


def _xlnet(settings, group):
    """With bi_data, half of a batch has offsets of the opposite sign; clamp_len -1 means no limit."""
    limit = settings.number("clamp_len")
    return {
        "call": "xlnet.scores",
        "attn_type": settings["attn_type"],
        "scale": (settings.count("hidden_size") // group.heads) ** -0.5,
        "clamp_len": limit if limit and limit > 0 else None,
        "bi_data": bool(settings["bi_data"]),
        "memory": settings["mem_len"],
        "same_length": bool(group.causal and settings["same_length"]),
    }


def _decomposed(settings, group):
    """Windows are padded, and patches see the padding; rows and columns have a table each (modeling_sam.py)."""
    height, width = (side // settings.count("patch_size") for side in sides(settings, "image_size"))
    table = height * width if settings["use_abs_pos"] else None
    if group.kind == "window_attention":
        height = width = settings.count("window_size")
    return {"call": "decomposed.bias", "height": height, "width": width, "input_table": table}


def _swin_with_cls(settings, group):
    """For a picture that is not square, the code exchanges the sides of the table (modeling_beit.py)."""
    height, width = (side // settings.count("patch_size") for side in sides(settings, "image_size"))
    tables = {"every layer": "use_relative_position_bias", "one, used by all": "use_shared_relative_position_bias"}
    return {
        "call": "swin.bias_with_cls",
        "height": height,
        "width": width,
        "table_of": " and ".join(words for words, key in tables.items() if settings[key]),
        "table_read_as": None if height == width else f"{width} rows and {height} columns, before it is resized",
        "input_table": height * width + 1 if settings["use_absolute_position_embeddings"] else None,
    }


def _transformer_xl(settings, group):
    return {"call": "transformer_xl.scores", "base": 10000, "layout": "interleaved", "dim": settings.count("hidden_size")}


def _distances(settings, group):
    """Gemma 3n's table has the distances that a query sees; Gemma 4's goes from half of the keys of a chunk down to 0."""
    chunk, left, right = (settings.count(key, least=0) for key in settings.family["around"])
    gemma4 = group.model_type == "gemma4_audio"
    first, last = ((chunk + left - 1 + right) // 2, 0) if gemma4 else (left - 1, -right)
    of = "i - j" if first == left - 1 else f"i - j + {first - left + 1}"
    trained = "times softplus(per_dim_scale), a trained number per feature"
    found = {**_transformer_xl(settings, group), "layout": "half", "divisor": "dim - 2", "u": 0, "v": 0}
    return {**found, "distances": f"{of} from {first} to {last} (no term at other distances)", "queries": trained}


def _layout_stream(settings, group):
    """The scores of the second stream of LiLT, for boxes, whose heads are narrower (modeling_lilt.py)."""
    width = group.head_dim // settings.count("channel_shrink_ratio")
    of = "x0, y0, x1, y1, height and width of each box, with queries and keys of their own"
    table = settings.count("max_2d_position_embeddings")
    return {"call": "attention.scores", "boxes": of, "box_table": table, "head_dim": width, "scale": width**-0.5}


def _box_offsets(settings, group):
    """The product of queries with projected sinusoids of the difference of two boxes (modeling_bros.py)."""
    corners, times = settings.count("dim_bbox"), settings.number("bbox_scale")
    of = f"{times:g} (b_j - b_i), b = {'x0, y0, x1, y0, x1, y1, x0, y1' if corners == 8 else 'box'}"
    width = settings.count("hidden_size") // 4 // corners
    found = {"call": "sinusoidal.encode", "x": of, "dim": width, "base": 10000, "layout": "half"}
    return {**found, "meets": "queries, after a projection"}


def _clipped(settings, group):
    reach = settings.count("bias_max_distance")
    return {"call": "swin.bias", "rows": f"clip(j - i, -{reach}, {reach} - 1) + {reach}", "reach": reach}


def _unsigned(settings, group):
    """LeViT's table has a row for each distance in rows and columns; each stage halves the number of patches per side."""
    stage = sum(group.indices[0] >= sum(settings.counts("depths")[: i + 1]) for i in range(len(settings.counts("depths"))))
    side = -(-(settings.count("image_size") // settings.count("patch_size")) // 2**stage)
    return {
        "call": "swin.bias",
        "rows": f"{side} * abs(i // {side} - j // {side}) + abs(i % {side} - j % {side})",
        "side": side,
    }


def _shaw(settings, group):
    """If larger offsets have no vector, the table has a first and a last row of zeros for them."""
    left, right, offset = settings.family["vectors"]
    zero = "beyond" in settings.family
    reach = {"left": settings.count(left) + zero - settings.family.get("fewer", 0), "right": settings.count(right) + zero}
    return {"call": "shaw.scores", **reach, "offset": offset} | ({"first_and_last_row": 0} if zero else {})


def _inkling(settings, group):
    """The width of the window, if there is one, is also the extent of the bias (modeling_inkling.py)."""
    return {"call": "inkling.bias", "curves": settings.count("d_rel"), "extent": group.window or settings.count("rel_extent")}


def _t5_of_token(settings, group):
    """T5's buckets, with rows that are projected from the token of the query (modeling_prophetnet.py)."""
    return {**_t5(settings, group), "call": "t5.bucket", "table_of": "each token, projected from it"}


AT_THE_INPUT = ("learned", "learned_2d", "learned_axial", "learned_and_buckets", "object_boxes", "object_queries", "sinusoidal")
BIASES = {
    "learned_and_buckets": _t5_of_token,
    "t5": _t5,
    "boxes": _boxes,
    "alibi": _alibi,
    "disentangled": _disentangled,
    "xlnet": _xlnet,
    "inkling": _inkling,
    "decomposed": _decomposed,
    "swin_with_cls": _swin_with_cls,
    "transformer_xl": _transformer_xl,
    "pooled": lambda settings, group: {**_transformer_xl(settings, group), "layout": "half"},
    "distances": _distances,
    "offsets": _clipped,
    "unsigned": _unsigned,
    "layout_stream": _layout_stream,
    "box_offsets": _box_offsets,
    **dict.fromkeys(("relative", "relative_after_sinusoids"), _shaw),
}
