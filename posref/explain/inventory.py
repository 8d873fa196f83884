"""Inventory: the layers that a configuration counts, and those among them that `explain` does not describe."""

import re

from posref.explain import layer_kinds
from posref.explain.configuration import MOST_LAYERS, UNKNOWN_TYPE, shown

# a key that counts the layers of one stack: num_hidden_layers, n_layer, decoder_layers, vision_num_layers, depths, ..
COUNTS = re.compile(
    r"^((num|n)_)?layers?$|^(\w+_)?(num|n)_(hidden_)?layers$|^(num_)?(\w+_)?(en|de)coder_(hidden_)?layers$|^[lxr]_layers$"
    r"|^num_(attention|auxiliary|global|mtp|nextn_predict|patch_transformer|pooler|spatial|temporal)_layers$|^(\w+_)?depths?$|^block_sizes$"
)
NO_STACK = re.compile(r"^num_sparse_|^iou_head_|predictor|wavenet|^max_|^min_|^scale_|^router_|_per_")
# a key that names each layer, read where no key counts them
LISTS = ("layer_types", "layers_block_type", "hybrid_override_pattern", "attn_layers", "block_configs", "attention_types")
FURTHER = ("num_nextn_predict_layers", "num_mtp_layers", "mtp_num_hidden_layers")  # they draft further tokens (MTP)
UNKNOWN = "posref does not know how they use positions"
WHY = {
    "linear_attention": "a state that decays orders the tokens",
    "conv": "a short convolution orders the tokens",
    "no_attention": "the file says that these layers have no attention",
    "moe": "experts; tokens do not meet in this layer",
    "mlp": "a feed-forward layer; tokens do not meet in it",
}

CONVOLUTIONS = (  # without attention
    "align_vision_model bit convnext convnextv2 dac dinov3_convnext efficientnet fastspeech2_conformer_hifigan "
    "flava_image_codebook focalnet hgnet_v2 mobilenet_v1 mobilenet_v2 muse_spark_audio pp_lcnet pp_lcnet_v3 pp_lcnet_v4 "
    "qwen2_5_omni_bigvgan regnet resnet rt_detr_resnet speecht5_hifigan superpoint textnet univnet uvdoc_backbone "
    "vibevoice_acoustic_tokenizer vibevoice_acoustic_tokenizer_decoder vibevoice_acoustic_tokenizer_encoder"
)
CONVOLVED = (  # with attention that has no term for position
    "chameleon_vqgan cvt emu3_vqgan janus_vqgan mobilevit mobilevitv2 pp_ocrv5_mobile_rec pp_ocrv5_server_rec "
    "pp_ocrv6_small_rec swiftformer"
)
DEFORMABLE = (
    "d_fine deformable_detr deimv2 grounding-dino lw_detr mm-grounding-dino pp_doclayout_v2 pp_doclayout_v3 "
    "pp_doclayout_v4 rf_detr rt_detr rt_detr_v2"
)
SAMS = ("sam", "sam_hq", "sam2", "sam2_video", "edgetam", "edgetam_video", "sam3_tracker", "sam3_tracker_video")
OF_PAIRS = "layers update features of pairs of tokens, which begin with the offset of their places"
REASONS = {
    name: reason
    for reason, names in {
        "deformable attention: each query chooses the points of the picture that it reads": DEFORMABLE,
        "tables of places and boxes at the input, and T5's buckets of both in the scores; not compared, since its module needs "
        "detectron2": "layoutlmv2 layoutxlm",
        WHY["linear_attention"]: "rwkv xlstm",
        "a learned table at the input, and a Fourier transform over the tokens instead of attention": "fnet",
        "they are convolutions without attention: their weights read neighbours in order": CONVOLUTIONS,
        "convolutions order what it reads; the attention between them has no term for position": CONVOLVED,
        "convolutions enlarge the features": "sapiens2_head",
        "convolutions and an LSTM read the frames in order": "encodec",
        "each patch is averaged with its neighbours, instead of attention": "poolformer",
        "each layer joins the features of neighbouring patches and projects them": "inkling_vision",
        "linear layers over all patches read them in order; a table at the input, with use_positional_encoding, and attention, "
        "with self_attn, are not described": "patchtsmixer",
        "a learned row for the row and one for the column of each patch; it has no layers": "gemma4_unified_vision",
        "no layers: each frame or patch goes through by itself": "gemma4_unified_audio glm_image_vqmodel inkling_audio",
        "feed-forward layers: each token goes through them by itself": "vibevoice_diffusion",
        "a model of timm, which posref does not describe": "gemma3n_vision timm_backbone timm_wrapper",
        "random Fourier features of the coordinates of points and boxes; it has no layers": " ".join(
            f"{name}_prompt_encoder" for name in SAMS
        ),
        "each layer adds embeddings of the prompts, and Fourier features of places of the picture, to queries and keys, except "
        "in the self-attention of the first layer": " ".join(f"{name}_mask_decoder" for name in SAMS),
        "in self-attention trained projections of the coordinates of keypoints are the angles by which neighbouring features "
        "of queries and keys rotate; then keypoints read the other picture without position": "lightglue",
        "convolutions order the patches, and attention is within windows or between features; rows and columns of the last "
        "features have learned tables, and frames have sinusoids": "florence_vision",
        "convolutions in the predictor of durations, which read neighbours in order": "vits",
        "Transformer-XL's terms within chunks of frames; not compared, since its eager attention gives NaN": (
            "nemotron_asr_streaming_encoder"
        ),
        "a model of timm and convolutions at the input, then RoPE; not compared, since its module needs timm": (
            "pe_video_encoder"
        ),
        "the pooler of the classifier has attention without a term for position": "vjepa2",
        "in self-attention queries and keys, which a convolution and max pooling compute, rotate by row and column "
        "in turn before heads are cut: each head has its own frequencies; then each picture reads the other without position": (
            "efficientloftr"
        ),
        "neighbourhood attention with a learned bias for each offset; not compared, since its module needs natten": "dinat",
        "a second learned table at the input; all patches see each other": "hiera",
        "the mean of a group of patches reads them; it has no term for position": "molmo2_adapter",
        "self-attention and attention to the memory rotate by row and column, and the keys of the memory get sinusoids and a "
        "trained vector of their frame; convolutions make the memory": "edgetam_video sam2_video sam3_tracker_video",
        "an LSTM reads the tokens in order": "nemotron3_5_asr nemotron_asr_streaming parakeet_rnnt parakeet_tdt",
        "deformable attention in the pixel decoder; then trained queries read features with 2-D sinusoids": (
            "mask2former oneformer"
        ),
        "the text reads patches, averaged over the frames, without a term for position": "xclip",
        "trained queries read the patches, without a term for position": "aria",
        "one layer for each of extract_layers, whose attention between patches has no term for position": "clipseg",
        "the attention of a GRU cell to the features of the picture has no term for position": "slanet slanext",
        "what a network makes of the coordinates of keypoints is added to their features; then keypoints read those of their "
        "own picture or of the other picture, without a term for position": "superglue",
        "layers above two towers, which add no position": "bridgetower",
        "layers above the described ones, which add no position": "videoprism_vision_model",
        "an indexer chooses blocks of tokens by one key for each": "glm5_next_text qwen4_exp_text",
        OF_PAIRS: "esmfold2",
        "in the encoder 2-D sinusoids are added to queries and keys, as in RT-DETR; deformable attention in the decoder": (
            "omdet-turbo"
        ),
        "frames of sound rotate, before the text reads them, by their time in seconds times their place and their window": (
            "musicflamingo"
        ),
        "it holds the two models that its file names, and gives the second what the first finds in an index": "rag",
        "trained latents read the tokens of the protein, without a term for position": "evolla EvollaModel",
        "as in PE audio; not compared, since its module needs timm": "pe_audio_video_encoder",
        "convolutions, and attention to the prompt without a term for position": (
            "sam3_lite_text_mask_decoder sam3_mask_decoder"
        ),
        "sinusoids at the input, counted by the decoder from context_length - label_length; auto-correlation instead of "
        "attention, which aligns the series by shifts": "autoformer",
    }.items()
    for name in names.split()
}

NOT_SAID = "the file does not say what this part is"
PARTS = {  # whose type neither a file nor a class says: {type of the model}.{key of the part}
    "esmfold2.atom_encoder": "features rotate by the three coordinates of an atom and by the place of its token",
    **{f"esmfold2.{key}": OF_PAIRS for key in ("confidence_head", "lm_encoder", "msa_encoder", "structure_head")},
    "fun_asr_nano.adaptor_config": "its attention has no term for position; the frames come from layers with sinusoids",
    **dict.fromkeys(
        ("gradium_phonon_tts.flow_head_config", "pocket_tts.flow_head_config"),
        "feed-forward layers: each frame goes through them by itself",
    ),
    "nemotron3_diarization.head_config": "linear layers, and convolutions that enlarge the time: each frame by itself",
    "nemotron3_diarization.streaming_config": "no layers: how many frames of the past are kept",
    "pp_doclayout_v2.reading_order_config": "biases by bucket of places and of boxes, as in LayoutLMv3, with other scales",
    "qwen3_omni_moe.talker_config": "it has two parts, text_config and code_predictor_config",
    "rf_detr.backbone_config": NOT_SAID,
}


def stacks(settings):
    """{key: number of layers} for each stack of one part, from the file or else from its class."""
    own = settings.facts.get("defaults", {})
    # the class of a model with parts reads only the counts that it declares; other counts belong to its text part
    raw = {key: value for key, value in settings.file.items() if key in own} if settings.facts.get("parts") else settings.file
    values = {**own, **raw}
    if values.get("num_decoder_layers", 0) is None:
        values["num_decoder_layers"] = values.get("num_layers")  # as T5 and its kin fill it
    found = {key: size(value) for key, value in values.items() if counts_layers(key) and key not in LISTS}
    found = {key: count for key, count in found.items() if count and (key not in FURTHER or key in settings.file)}
    for key in [key for key in found if _another_name(key, found)]:
        del found[key]
    if {"encoder_layers", "decoder_layers"} & set(found):
        found.pop("num_hidden_layers", None)  # another name of one of the two
    listed = [key for key in LISTS if isinstance(values.get(key), (list, str)) and values[key]]
    return found or {key: len(values[key]) for key in listed[:1]}


def _another_name(key, found):
    """Whether a key repeats the count of another key: vt_num_hidden_layers and num_hidden_layers, or two names of MTP layers.

    Beside num_hidden_layers, `depth` counts layers without attention (Janus: those of its aligner). Beside `depths`,
    num_hidden_layers counts stages (CLAP) or is the sum of `depths` (GroupViT).
    """
    if {"depth": "num_hidden_layers", "num_hidden_layers": "depths"}.get(key) in found:
        return True
    numbers = [other for other in found if other.startswith(("num_", "n_"))]
    same = [other for other in numbers if other != key and found[other] == found[key]]
    first = next((other for other in found if other in FURTHER), key)
    return any(key.endswith(f"_{other}") for other in same) if key not in FURTHER else key != first


def counts_layers(key):
    """Whether a key counts the layers of a stack, or names each of them."""
    return key in LISTS or bool(COUNTS.search(key) and not NO_STACK.search(key))


def size(value):
    """The number of layers that a counting key means: its number, or the sum of its list; 0 for any other value."""
    if isinstance(value, list):
        return sum(n for n in value if n > 0) if all(type(n) is int for n in value) else 0
    whole = type(value) is int or (type(value) is float and value.is_integer())
    return max(int(value), 0) if whole else 0


def require_few(counts):
    """ValueError if the counts add up to more layers than a model has; `counts` is {(part, key): number of layers}."""
    total = sum(counts.values())
    if total > MOST_LAYERS:
        name = ".".join(filter(None, max(counts, key=counts.get)))
        words = f"{name} is the largest count of layers; all counts together are {shown(total)}, expected at most {MOST_LAYERS}"
        raise ValueError(words)


def undescribed(settings, groups):
    """An entry of `unsupported` for each set of layers of a part that no group describes; `groups` None: none is described."""
    known = groups is not None and settings.family["encoding"] is not None
    described = {i for group in groups or () for i in group.indices}
    named = _by_kind(settings, described) if known else []
    counts = {key: count for key, count in stacks(settings).items() if not known or key not in settings.read}
    named += [(None, key, list(range(count))) for key, count in counts.items()]
    return [_entry(settings, *each) for each in named or ([] if groups else [(None, None, [])])]


def _by_kind(settings, described):
    """(kind, None, indices) for each kind of layers that are not described, in a part whose layers have kinds."""
    listed = layer_kinds.kinds(settings) if settings.family["encoding"] in ("rope", "none") else None
    found = {}
    for i, kind in enumerate(listed or ()):
        if i not in described:
            found.setdefault(kind, []).append(i)
    return [(kind, None, indices) for kind, indices in found.items()]


def _entry(settings, kind, key, indices):
    return {
        "part": settings.path,
        "model_type": settings.model_type,
        "kind": kind,
        "counted_by": key,
        "indices": indices,
        "why": _why(settings, kind, key),
    }


def _why(settings, kind, key):
    if settings.doubt:
        return settings.doubt
    if settings.model_type == UNKNOWN_TYPE:
        named = f"{settings.outer.get('model_type')}.{settings.path.rpartition('.')[2]}"
        return PARTS.get(named, UNKNOWN if settings.file else NOT_SAID)
    return "they draft further tokens" if key in FURTHER else WHY.get(kind, REASONS.get(settings.model_type, UNKNOWN))
