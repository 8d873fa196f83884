"""Positions of a layer: how a model counts its tokens, with padding, with a KV cache and in pictures.

The answers are expressions of posref in n (tokens of a row), c (tokens in the cache), mask (True = token) and ids (of tokens):

    forward     the positions that the module uses if it is given none
    generate    the positions that generate() gives (transformers 5.23.0, generation/utils.py
                _prepare_position_ids_for_generation)
    cached      the positions of the next n tokens after c cached tokens
    images      the coordinates of patches
"""

PLACES = "arange(n)"
TOKENS = "position_ids.padded(mask, filler=0)"
ROWS = {
    "bert": PLACES,
    "bart": "arange(n) + 2",
    "prophetnet": "arange(n) + {first}",
    "from_one": "arange(n) + 1",
    "after_context": "arange(n) + {context}",
    "opt": "learned.position_ids(mask, convention='opt')",
    "roberta": "learned.position_ids(ids != {pad}, convention='roberta', padding_idx={pad})",
}
TIMES = "position_ids.multimodal(parts, merge=.., convention=..): time, row and column"
PATCHES = {
    None: "one row of the table for each patch",
    "hw_centred": "row and column of the centre of each patch, from -1 to 1, times 2 pi",
    "thirds": "frame of each patch, then axes.grid(height, width): its row and column, in the order of the patches",
    "wh_from_one": "column and row of each patch, counted from 1",
}


def positions(settings, group):
    """The positions of one set of layers; None if no positions enter these layers."""
    if group.encoding in ("none", "convolved", "convolution_input", "unordered", "sinusoids_of_the_class"):
        return None
    if group.encoding == "two_angles_per_pair":
        return _answers(images=PATCHES["thirds"])
    if group.encoding == "sinusoidal_2d_counted":
        return _answers(images="axes.grid(height, width): row and column of each patch of the last feature map, from 0")
    if group.encoding.startswith(("sinusoidal_2d", "object_")):
        turns = "patches from 1, padding is not counted: sinusoidal_2d.normalized(sinusoidal_2d.counted(mask))"
        return _answers(images=None if group.encoding in ("object_queries", "object_boxes") else turns)
    if group.encoding == "learned_2d":
        return _answers(images="row and column of each patch, the first two numbers of its row of flattened_patches")
    if group.encoding in ("swin", "swin_v2", "swin_with_cls", "decomposed"):
        place = "window" if "window" in group.kind else "picture"
        return _answers(images=f"row and column of each patch within its {place}")
    if _of_a_picture(settings, group):
        grid = "axes.grid(height, width): row and column of each patch, in the order of the patches"
        return _answers(images=settings.family.get("patches") or PATCHES.get(group.order, grid))
    forward, text = _forward(settings, group), settings.family.get("text") if not group.causal else None
    alone = group.causal is True and not group.part.endswith("decoder")
    asked = alone and settings.family.get("asks", True) and group.encoding != "alibi"
    cached = _cached(forward) if group.encoding == "alibi" else settings.family.get("cached", _cached(forward))
    return _answers(
        forward=forward,
        generate=settings.family.get("generate", TOKENS) if asked else None,
        cached=cached if group.causal else None,
        images=settings.family.get("patches", TIMES if group.axes else None),
    ) | ({"text": text} if text else {})


def _answers(forward=None, generate=None, cached=None, images=None):
    return {"forward": forward, "generate": generate, "cached": cached, "images": images}


def _of_a_picture(settings, group):
    axes = group.axes
    pictured = "image_size" in settings.facts.get("defaults", {}) and "text" not in settings.family
    return pictured if not axes or "t" in axes else settings.family["axes"] != "in_turn"


def _forward(settings, group):
    if group.encoding == "alibi":  # BLOOM and Falcon count the tokens of the mask, MPT places
        return ROWS.get(settings.family.get("rows"), TOKENS)
    if group.encoding not in ("learned", "learned_and_buckets", "sinusoidal"):
        return settings.family.get("forward", PLACES)
    pad = settings.count("pad_token_id", least=0)
    rows = settings.family.get("rows", "bert")
    rows = rows.get(group.part.rpartition(".")[2], "bert") if isinstance(rows, dict) else rows
    context = settings.count("context_length") or settings.count("prediction_length") or "context_length"
    return ROWS[rows].format(pad="pad_token_id" if pad is None else pad, first=(pad or 0) + 1, context=context)


def _cached(forward):
    if forward.startswith(PLACES):
        return forward.replace(PLACES, "arange(c, c + n)")
    return f"the last n of {forward}, of all c + n tokens"
