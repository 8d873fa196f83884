"""Masks of layers: which keys a query sees beyond causal, full or windowed masks, and which masks are not described.

Every rule names the file of transformers 5.23.0 that it was read in.
"""

from dataclasses import replace

from posref.explain.configuration import shown
from posref.explain.layer import Layer

# {model type of the whole model: how its images or its prompt change the masks of its text layers}
PROMPTS = {
    "paligemma": "all tokens of the prompt see each other (token_type_ids 0, modeling_paligemma.py)",
    "gemma3": "tokens of one image see each other, later ones too (token_type_ids, modeling_gemma3.py)",
    **dict.fromkeys(("molmo2", "git"), "tokens of images see each other, later ones too (token types, modeling_{}.py)"),
    **dict.fromkeys(
        ("gemma4", "gemma4_unified"),
        'tokens of one image see each other where use_bidirectional_attention is "vision" (modeling_{}.py)',
    ),
    "hrm_text": "all tokens of the prompt see each other where token_type_ids are given (modeling_hrm_text.py)",
}
IMAGES_DECIDE = (
    "not described: the keys are tokens of images, and the argument cross_attention_mask says which tiles a token sees; a "
    "token that may see no tile has output zero (modeling_mllama.py)"
)
NO_BLOCKS = {
    model_type: f"not described: its inputs decide which tokens see each other (modeling_{model_type}.py)"
    for model_type in ("deepseek_ocr2", "pi0", "unlimited_ocr")
}
BLOCKS = {
    "diffusion_gemma_text": "not described: tokens of the block that is denoised see each other and the cache of an encoder "
    "(modeling_diffusion_gemma.py)",
    "muse_glimmer_assistant": "not described: tokens of the drafted block see each other and accepted tokens on both sides "
    "(modeling_muse_glimmer_assistant.py)",
}
BLOCK_SPARSE = (
    "not described: of a text of more than {} tokens, a block of {} sees itself, its neighbours, the first and the last block, "
    "and {} that are drawn at random (modeling_{}.py)"
)
SELECTED_BEYOND = (
    "causal in texts of fewer than {1} tokens ({0}.dense_len); longer texts are not described: on a GPU each query selects "
    "blocks of earlier keys (MiniCPMInfLLMv2Attention of modeling_minicpm.py)"
)
BY_THE_MASK = {
    "aimv2_text_model": "not described: earlier tokens only where attention_mask is given, as tokenizers give it; without it "
    "all tokens see each other (modeling_aimv2.py)",
}
OWN_MASK = "not described: causal_attn is false, a key that transformers 5.23.0 does not read"
# modules of transformers whose vision layers receive several pictures as one row (get_vision_cu_seqlens of vision_utils.py)
PACKED = (
    "cohere_compass cosmos3_edge dots3_note ernie4_5_vl_moe exaone4_5 glm4v glm4v_moe glm5_next glm_image glm_ocr hunyuan_vl "
    "inkling2 lfm3_vl muse_glimmer muse_spark paddleocr_vl qwen2_5_omni qwen2_5_vl qwen2_vl qwen3_5 qwen3_5_moe "
    "qwen3_omni_moe qwen3_vl qwen3_vl_moe qwen4_exp video_llama_3"
)
SEGMENTS = {
    **dict.fromkeys(PACKED.split(), "patches of one picture, or of one frame of a video, see each other"),
    "kimi_k25": "patches of one picture, or of one video, see each other",
    "minimax_m3_vl": "patches of one picture, or of one video, see each other",
    **dict.fromkeys(("moonvit", "pixtral"), "patches of one picture see each other"),
}
# modules whose layers also attend to an encoder where add_cross_attention is set
CROSSING = [
    "bert",
    "bert_generation",
    "bridgetower",
    "camembert",
    "clap",
    "data2vec",
    "electra",
    "ernie",
    "esm",
    "gpt2",
    "gpt_bigcode",
    "roberta",
    "roberta_prelayernorm",
    "roc_bert",
    "roformer",
    "xglm",
    "xlm_roberta",
    "xlm_roberta_xl",
    "xmod",
]
OWN_CAUSAL = (  # types that make this mask themselves
    "coarse_acoustics fsmt gpt_neo imagegpt kosmos_2_text_model openai-gpt prophetnet semantic timesfm xlnet"
)
GLOBAL = "tokens of global_attention_mask see all tokens, by projections of their own, and all tokens see them (modeling_{}.py)"
SUMMED = (
    "and one key for each {} tokens: their sum, normed, with a bias by bucket of the distance of blocks from a second table "
    "(modeling_longt5.py)"
)
MERGED = "and all tokens of the encoder, in the same softmax (modeling_t5gemma2.py)"


def described(settings, group):
    """The group with its mask: `causal`, windows on each side, compressed and further keys, or why it has no description."""
    found = replace(group, **_decoder(settings, group), **_segment(settings, group))
    found = replace(found, **{**_not_causal(settings, found), **_encoder(settings, found), **_hidden(settings, found)})
    outer = settings.outer.get("model_type", settings.model_type)
    if isinstance(outer, str) and found.causal and outer in PROMPTS:
        found = replace(found, further_keys=PROMPTS[outer].format(outer))
    if isinstance(outer, str) and found.causal and outer in NO_BLOCKS:
        found = replace(found, mask_unknown=NO_BLOCKS[outer])
    if settings.model_type in ("longformer", "led") and found.kind == "sliding_attention":
        found = replace(found, further_keys=GLOBAL.format(settings.model_type))
    if found.bias and "blocks" in found.bias:
        found = replace(found, further_keys=SUMMED.format(found.bias["blocks"]))
    if settings.model_type == "t5gemma2_decoder":
        found = replace(found, further_keys=MERGED)
    if found.kind != "cross_attention" and {"sees", "mask"} & set(settings.family):
        stack, hidden = found.part.rpartition(".")[2] if found.part != settings.path else "", settings.family.get("mask")
        seen = settings.family.get("sees", {}).get(stack)
        found = replace(found, further_keys=seen, mask_unknown=hidden.get(stack) if isinstance(hidden, dict) else hidden)
    if settings["attention_type"] == "block_sparse" and found.causal is False and found.kind == "full_attention":
        size, drawn = settings.count("block_size"), settings.count("num_random_blocks")
        words = BLOCK_SPARSE.format((5 + 2 * drawn) * size, size, drawn, settings.facts.get("module"))
        found = replace(found, mask_unknown=words)
    hidden = settings[settings.family["mask_if"]] if "mask_if" in settings.family else None
    if hidden is not None:
        length = hidden.get("dense_len", 8192)
        if type(length) is not int or length < 1:
            raise settings.error(f"dense_len is {shown(length)}, expected an integer from 1 on")
        found = replace(found, mask_unknown=SELECTED_BEYOND.format(settings.family["mask_if"], length))
    undecided = {**BLOCKS, **BY_THE_MASK}
    if settings.model_type in undecided:
        found = replace(found, causal=None, mask_unknown=undecided[settings.model_type])
    if found.causal and settings["causal_attn"] is False:
        found = replace(found, causal=None, mask_unknown=OWN_MASK)
    if settings.model_type == "mllama_text_model" and found.kind == "cross_attention":
        found = replace(found, causal=None, mask_unknown=IMAGES_DECIDE)
    if settings.model_type == "deepseek_v4":
        return replace(found, compressed=_compressed(settings, found.kind))
    return replace(found, selected=_selected(settings, found.kind))


def cross_attention(group):
    """The attention of a decoder layer to an encoder: no rotation, no window, all keys."""
    usual = vars(Layer(kind="cross_attention", causal=False))
    changed = ("kind", "encoding", "causal", "window", "window_sides", "positions", "table", "bias")
    rotation = ("frequencies", "layout", "rotary_dim", "base", "scaling", "magnitude", "call")
    return replace(group, **{name: usual[name] for name in (*changed, *rotation)})


def _window_side(settings):
    """Patches on a side of a window (get_vision_window_index of vision_utils.py)."""
    merge = settings.count("spatial_merge_size")
    given = settings.count("pos_emb_height")  # of Muse, which merges afterwards
    if merge is None:  # SAM counts patches
        return given or settings.count("window_size")
    return given or settings.count("window_size") // merge // settings.count("patch_size") * merge


def _segment(settings, group):
    """Which patches of a vision layer see each other: those of a picture, of a frame or of a window."""
    if settings.family.get("parameters") != "axial" and group.encoding != "decomposed":
        return {}
    if group.kind == "window_attention":
        side = _window_side(settings)
        return {"segment": f"patches of one window of {side} x {side} see each other", "window_side": side}
    return {"segment": SEGMENTS.get(settings.facts.get("module", settings.model_type))}


def _decoder(settings, group):
    """With `is_decoder: true` in a file of BERT or a similar model, the layers see earlier tokens only."""
    key = settings.family.get("decoder_if")
    return {"causal": True} if key and settings[key] is True and group.kind != "cross_attention" else {}


def _not_causal(settings, group):
    """If `is_causal` is false, null or 0, create_causal_mask makes the mask of an encoder, whose window has one key more.

    create_chunked_causal_mask and the types of OWN_CAUSAL do not read this key.
    """
    own = group.chunk or "code" in settings.family or settings.model_type in OWN_CAUSAL.split()
    if not group.causal or own or settings.raw.get("is_causal", True):
        return {}
    if group.kind == "minimax_m3_sparse":  # its indexer selects earlier blocks alone
        return {}
    if settings.model_type == "unlimited_ocr_text":
        return {"mask_unknown": "not described: is_causal is false, and its window then also has later tokens"}
    return {"causal": False} | ({"window": group.window + 1, "window_sides": "both"} if group.window else {})


def _encoder(settings, group):
    """T5Gemma has one row for encoder and decoder. T5Gemma 2 halves the window; an even one has one more key behind it."""
    stack = settings.path.rpartition(".")[2]
    if settings.model_type == "t5_gemma_module" and stack in ("encoder", "decoder"):
        both = stack == "encoder"
        window = group.window and {"window": group.window + both, "window_sides": "both" if both else "past"}
        return {"causal": not both} | (window or {})
    if settings.model_type == "t5gemma2_text" and group.window:
        width = group.window
        return {"window": (width + 1) // 2, "window_after": width // 2 + 1, "window_sides": "both"}
    return {}


def _hidden(settings, group):
    """With a window of 0 or fewer keys, the mask of transformers hides every key, even the key of the query's own token."""
    rule = settings.family.get("window", {})
    width = settings[rule["key"]] if rule and group.kind in rule.get("kinds", [group.kind]) else None
    if width is not None and "zero_unless" in rule and not settings[rule["zero_unless"]]:
        words = f"{rule['zero_unless']} is false, so that {rule['key']} becomes 0"
        return {"window": None, "mask_unknown": f"not described: {words}, and transformers 5.23.0 hides every key then"}
    if group.window or width is None or width > 0 or ("if" in rule and not settings[rule["if"]]):
        return {}
    return {"mask_unknown": f"not described: {rule['key']} is {shown(width)}, and transformers 5.23.0 hides every key then"}


def _compressed(settings, kind):
    """Compressed keys: each is made of `rate` tokens, and a query sees those whose tokens are all at or before it."""
    old = {"compressed_sparse_attention": ("compress_rate_csa", 4), "heavily_compressed_attention": ("compress_rate_hca", 128)}
    if kind not in old:
        return None
    key, usual = old[kind]  # the old key wins, configuration_deepseek_v4.py
    rate = settings.count(key) or (settings["compress_rates"] or {}).get(kind, usual)
    sparse = kind == "compressed_sparse_attention"
    return {"rate": rate, "most": settings.count("index_topk") if sparse else None}


def _selected(settings, kind):
    """Which keys of the mask stay: at most `most` blocks of `block` tokens, with the last `local` blocks always among them."""
    if settings.model_type == "doge":
        return {"most": settings.count("keep_window_size"), "block": 1, "local": 0}
    if kind == "indexed_attention":
        return {"most": settings.count("index_topk"), "block": 1, "local": 0}
    if kind != "minimax_m3_sparse":
        return None
    old = settings["sparse_attention_config"] or {}  # its names win, configuration_minimax_m3_vl.py
    names = {
        "most": ("sparse_topk_blocks", "index_topk_blocks"),
        "block": ("sparse_block_size", "index_block_size"),
        "local": ("sparse_local_block", "index_local_blocks"),
    }
    found = {name: settings.count(new, least=0) if old.get(key) is None else old[key] for name, (key, new) in names.items()}
    return found | ({"local": 0} if found["local"] > found["most"] else {})  # of which any may stay: their scores are equal


def _selection(group):
    most, block, local = (group.selected[key] for key in ("most", "block", "local"))
    if group.model_type == "doge":
        return f"; of these keys a query sees the {most} whose dynamic mask is largest, and this mask is added to its scores"
    if group.selected_before:
        return f"; of these keys a query sees the {most} that the last layer with an indexer selected"
    if block == 1:
        return f"; of these keys a query sees the {most} that the indexer scores highest"
    own = f"; the last {local} of these blocks are always among them" if local else ""
    return f"; of these keys a query sees those in the {most} blocks of {block} that the indexer scores highest{own}"


def in_words(group):
    """The mask in words, as one sentence."""
    if group.mask_unknown:
        return group.mask_unknown
    seen = "causal" if group.causal else "all tokens see each other" if group.causal is False else "as the model is used"
    seen = group.segment or seen
    if group.kind == "cross_attention" and group.causal is False:
        seen = "all tokens of the encoder"
    if group.window and group.window_after not in (None, group.window):
        seen += f", window: earlier keys at a distance below {group.window}, later ones below {group.window_after}"
    elif group.window:
        before = f"window: the query's own token and the {group.window - 1} before it"
        seen += f", {before}" + ", and as many after it" * (group.window_sides == "both")
    if group.chunk:
        whole = seen == "all tokens see each other"
        seen = f"tokens of one chunk of {group.chunk} see each other" if whole else f"{seen}, within chunks of {group.chunk}"
        sides = ((group.chunks_before, "before"), (group.chunks_after, "after"))
        further = [f"{'all' if n < 0 else n} chunk{'s' * (n != 1)} {side}" for n, side in sides if n]
        seen += f"; each token also sees {' and '.join(further)} its own chunk" * bool(further)
    if group.compressed:
        rate, most = group.compressed["rate"], group.compressed["most"]
        seen += f", and one compressed key per {rate} tokens, visible from the last of these tokens on"
        seen += f"; of the compressed keys the {most} that the indexer scores highest" if most else ""
        seen += " (modeling_deepseek_v4.py)"
    seen += _selection(group) if group.selected else ""
    return f"{seen}; {group.further_keys}" if group.further_keys else seen
