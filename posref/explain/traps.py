"""Traps: what goes wrong with models that have such a configuration, and which keys about position were not understood.

Each trap is a function that makes sentences from the settings of a part and its groups of layers. Each was seen in transformers
5.23.0, in the file that it names or in a test.
"""

import re

import numpy as np

from posref.explain import swin_layers
from posref.explain.configuration import ELSEWHERE, ROTARY, fields, shown
from posref.explain.output import not_added_up
from posref.explain.parameters import ntk_length
from posref.explain.rotary_layers import turned_width
from posref.explain.words import LONGER

# matches keys about position, at any depth; all keys in rotary parameters are about position too
SPEAKS = re.compile(
    r"rope|rotary|posit|(^|[_.])(pos|pe)(_|$)|window|alibi|relative_|yarn|ntk|chunk|theta|temperature|sink|mscale|inv_freq|freq_base"
    r"|per_layer|_of_layer|heads_by|layer_idx|layer_group|layers?(_block)?_type|block_(types|configs)|(local|random|global)_block"
    r"|causal|bidir|is_decoder|cross_attention|att(ention|n)_(type|mode|mask|config|layer)|mask_type|mixer_type|indexer|index_topk"
    r"|local_att|global_(att|tok)|full_att|fullatt|sliding|sparse|compress_|compression|no_op|pattern|interleav|mrope|sections?$"
    r"|context_(left|right|len)|seq(uence)?_?len|max_seq|model_max_len|(^|[_.])n_ctx|bucket|max_distance|clamp_len|kv_source"
    r"|prefix_(lm|len|att)|softcap|logit_?cap|attn_logit|max_attn|attn_output_mult|scale_(linear|att|q)|pre_attn|logn"
    r"|(attn|attention|softmax|floor)_scal|(attention|key)_multiplier|dilat|nope|xpos|cope|fourier"
    r"|head_dim|head_count|kv_head|key_value_head|swa_|(local|global|sliding)_\w*heads"
    r"|^(mem|reuse)_len|same_length|bi_data|look_(ahead|backward)|local_(layer|radius)|log_scaling|logits?_?soft|share_att|mem_blocks"
    r"|rel_(extent|ebd)|d_rel$|coordinate_size|(head|context|block)_size|kv_shared|(qk|query|key)_(dim|scale)_?factor|dim_head|d_head"
    r"|(min|max)_(period|timescale)|kv_lora_rank$|separate_cls|multi_query|value_scale|kv_channels|in_multiplier|use_(dsa|streaming|long_context)"
)
SILENT = re.compile(
    r"v_head_dim|temperature_init|chunk_size_feed|dropout|sinkhorn|sparsity|^temperature$|^finetuned$|initializer"
    r"|(?<!sink)(?<!global)_token|expert|moe|mlp|router|vocab|mamba|linear_|sparse_step|per_layer_input|^final_|fp32"
    r"|logit_scale_init|_cache|loss|image_|video_|audio_|vision_"
    r"|tdnn_|contrastive_|positionwise_|conv_pos_batch_norm|num_pos_feats|^dilation$|cross_attention_hidden_size"
    r"|^(attention_in_multiplier|visual_pos_dim)$"  # of what is projected
)
# keys that no class of transformers 5.23.0 has, and that say nothing about its layers
HARMLESS = re.compile(
    r"^_|_token_ids?$|dropout|label|length_penalty$|beam_groups$|_checkpoint|^(auto_map|quantization_config|(torch_)?dtype)$"
    r"|^(fp16|bf16|fp32|use_bfloat16|torchscript|pruned_heads|finetuning_task|tokenizer_class|task_specific_params)$"
    r"|^(do_sample|top_[kp]|typical_p|min_length|bad_words_ids|no_repeat_ngram_size|num_return_sequences|(diversity|repetition)_penalty)$"
    r"|^(output_(past|attentions|scores|hidden_states)|return_dict_in_generate|tf_legacy_loss|remove_invalid_values)$"
    r"|^(tie_encoder_decoder|cache_implementation|attn_implementation|use_flash_attn|flash_attn|transformers\.js_config)$"
    r"|^(vocabulary_map|ffn_act_fn)$"
)
NORM = re.compile(r"qk_?(layer_?)?norm")  # of a class without it, false says what is done
FOPE = {"fope_init_factor", "fope_sep_head", "num_inv_freq"}  # of Intern-S1-Pro: modeling_interns1_pro.py, vLLM, lmdeploy
BY_LAYER = ("gemma3", "modernbert", "olmo3")
FOREIGN = {"'chatglm'": "its own modeling_chatglm.py rotates the first half of every head, in adjacent pairs"}  # see native
RW = ("RefinedWebModel", "RefinedWeb")  # the types of the first Falcon
FIXED = {"clvp": "CLVP", "gptj": "GPT-J and CodeGen", "roformer": "RoFormer", "telechat": "TeleChat"}


def traps(settings, groups):
    """The sentences of all traps that apply to this part of the file."""
    found = [sentence for trap in TRAPS for sentence in trap(settings, groups)]
    if "file" in settings.facts:  # of its own code; what transformers would do with this file says nothing about it
        found = [sentence for sentence in found if "transformers" not in sentence] + list(_yarn_of_version(settings, groups))
    return [f"{settings.path}: {sentence}" if settings.path else sentence for sentence in dict.fromkeys(found)]


def unread(settings, groups=()):
    """Keys about position, at any depth, that posref has not read and that are not defaults; inner parts report their own."""
    leaves = [path for path, key, value in _leaves(_own(settings)) if _about_position(path, key, value)]
    settings.read.update(settings.facts.get("unused", "").split())
    found = [path for path in leaves if path not in settings.read]
    whole = settings.family.get("parameters") == "mistral4"  # which computes the width of its rotation from head_dim
    widths = {getattr(group, key) for group in groups for key in ("head_dim", "rotary_dim")[: 2 - whole]}
    found = [path for path in found if path != "head_dim" or settings.file[path] not in widths]  # it says the same
    loud = [_whole(settings, path) for path in found if not _usual(settings, path, settings.file.get(path))]
    loud = list(dict.fromkeys(re.sub(r"\[\d+\]", "[i]", path) for path in loud if ".ffn." not in path))  # one for all layers
    prefix = f"{settings.path}." if settings.path else ""
    loud = dict.fromkeys(settings.spelled.get(path, path) for path in loud)
    return [prefix + path for path in loud if path] + list(settings.file.get("posref_unread", ()))


def foreign(settings):
    """Keys that no class of transformers has and that posref has not read; a dictionary without any read key counts once."""
    found = []
    for path, key, value in _leaves(_own(settings)):
        first = re.split(r"[.\[]", path)[0]
        strange = first not in ROTARY and not {first, key} <= fields() and not any(map(HARMLESS.search, path.split(".")))
        if strange and value is not None and path not in settings.read and ".ffn." not in path:
            inside = first in fields() or any(each.startswith(f"{first}.") for each in settings.read)
            found.append(re.sub(r"\[\d+\]", "[i]", path) if inside else first)
    prefix = f"{settings.path}." if settings.path else ""
    return [prefix + settings.spelled.get(path, path) for path in dict.fromkeys(found)]


def _own(settings):
    """The keys of this part without those of its inner parts; empty if an inner part reads its keys here."""
    if not settings.layered and any(key not in settings.file for key in settings.parts):
        return {}
    return {key: value for key, value in settings.file.items() if key not in settings.parts and key not in ELSEWHERE}


def _leaves(values, above=""):
    """(path, last key, value) of all values in a dictionary and its inner dictionaries."""
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{above}{key}.")
        elif isinstance(value, list) and any(isinstance(each, dict) for each in value):
            for i, each in enumerate(value):
                yield from _leaves(each if isinstance(each, dict) else {}, f"{above}{key}[{i}].")
        elif not str(key).startswith("posref_"):
            yield f"{above}{key}", str(key), value


def _whole(settings, path):
    """The path of a key; if nothing was read of the dictionary about position that holds it, the name of this dictionary."""
    key = re.split(r"[.\[]", path)[0]
    inside = any(each == key or each.startswith(f"{key}.") for each in settings.read)
    return path if inside or path in settings.file or not SPEAKS.search(key) else key


def _about_position(path, key, value):
    if path.split(".")[0] in ROTARY:
        return value is not None and key not in ("finetuned", *FOPE)  # a trap speaks of FoPE
    if NORM.search(key):
        return bool(value)
    path, key = path.lower(), key.lower()
    return bool(SPEAKS.search(path)) and not SILENT.search(key)


def _usual(settings, key, value):
    """Whether a key says nothing new: it has the default, or no value, or for `causal` what the explanation says anyway."""
    if "causal" in key:
        return value is None or value == settings.family.get("causal")
    if key == "kv_lora_rank":  # of latent attention, whose head has two widths
        return value is None or settings.family.get("head") == "qk_rope_head_dim"
    if key in ("is_decoder", "add_cross_attention"):
        return not value or (key == "is_decoder" and bool(settings.family.get("causal")))
    return value == settings.facts.get("defaults", {}).get(key) and key in settings.facts.get("defaults", {})


def _dictionaries(settings):
    for name in ("rope_parameters", "rope_scaling"):
        given = settings.file.get(name)
        if isinstance(given, dict):
            inner = {key: value for key, value in given.items() if isinstance(value, dict)}
            yield from ((f"{name}.{key}", value) for key, value in inner.items())
            yield name, {key: value for key, value in given.items() if key not in inner and value is not None}


def _rotary(groups):
    return [group for group in groups if group.encoding == "rope"]


def _truncate(settings, groups):
    for name, values in _dictionaries(settings):
        nested = "." in name or settings.family.get("parameters") in (*BY_LAYER, "given", "lfm3")
        if nested and values.get("truncate") is False and any((g.scaling or {}).get("type") == "yarn" for g in groups):
            yield (
                f"{name}.truncate is false, and transformers looks for it outside the parameters of a kind of layer: it "
                "truncates YaRN's ramp to whole pairs, and so do the frequencies given here"
            )


def _dropped(settings, groups):
    given = settings.file.get("rope_parameters")
    flat = isinstance(given, dict) and given and not any(isinstance(value, dict) for value in given.values())
    if flat and settings.family.get("parameters") in BY_LAYER:
        yield (
            f"rope_parameters is flat, and the class of {settings.model_type} wants it by kind of layer: transformers keeps it "
            "and does not use it; the bases given here are those of the class"
        )


def _old_type(settings, groups):
    given = settings.file.get("rope_scaling")
    old = isinstance(given, dict) and "type" in given and "rope_type" not in given
    if old and settings.family.get("parameters") in BY_LAYER:
        yield 'rope_scaling says "type" and the class of this model reads "rope_type": transformers drops the scaling'
    for name, values in _dictionaries(settings):
        if "su" in (values.get("rope_type"), values.get("type")) and _rotary(groups):
            refused = settings.model_type == "phi3" and "original_max_position_embeddings" not in values
            words = f"; transformers 5.23.0 refuses it, unless {name} has original_max_position_embeddings" if refused else ""
            yield f'{name} has the type "su", the first name of longrope{words}'


def _no_base(settings, groups):
    keys = (
        "rope_theta",
        "rotary_emb_base",
        "rope_local_base_freq",
        "global_rope_theta",
        "local_rope_theta",
        "compress_rope_theta",
        "rotary",
    )
    inside = any("rope_theta" in values for _, values in _dictionaries(settings))
    if _rotary(groups) and not inside and not any(settings.file.get(key) is not None for key in keys):
        bases = ", ".join(sorted({f"{group.base:g}" for group in _rotary(groups) if group.base}))
        rule = settings.family.get("parameters")
        unread = settings.family.get("only", {}).get("rope_theta") == [None] and rule != "internlm"
        if rule in (*FIXED, "fixed") or unread:
            yield f"the base {bases} is fixed in the code of {FIXED.get(rule, settings.model_type)}; no key changes it"
        else:
            who = settings.facts.get("file", "transformers")
            key = "rotary_emb_base" if rule == "qwen" else "rope_theta"
            yield f"no {key} is given: {who} takes {bases} from its class, other programs may take another"


def _overridden(settings, groups):
    outside = settings.file.get("original_max_position_embeddings")
    for name, values in _dictionaries(settings):
        inside = values.get("original_max_position_embeddings")
        if outside is not None and inside is not None and inside != outside and "." not in name:
            yield (
                f"original_max_position_embeddings is {inside} in {name} and {outside} beside it; transformers lets the outer "
                "one win"
            )


def _no_rope_layers(settings, groups):
    if settings.family.get("nope") == "no_rope_layers":
        yield "no_rope_layers[i] = 1 means that layer i rotates, 0 that it does not"


def _nope(settings, groups):
    silent = isinstance(settings.family.get("nope"), list) or settings.family.get("nope") in ("unless_windowed", "muse")
    if silent and any(group.encoding == "none" and group.kind != "cross_attention" for group in groups):
        yield f"some layers of {settings.model_type} do not rotate; no key says so, the code does"


def _odd(settings, groups):
    for group in _rotary(groups):
        width = group.rotary_dim
        if width % 2 and width == group.head_dim > 4:
            yield f"the rotated width {width} is odd, and the whole head; transformers and posref.rotary.rope refuse it"
        elif width % 2:
            yield (
                f"the rotated width {width} is odd; transformers divides the exponent by it and rotates one pair more, "
                "posref.rotary.rope refuses it"
            )


def _bias_before_the_scale(settings, groups):
    for group in groups:
        if settings.model_type in ("falcon", *RW) and group.encoding == "alibi":
            scale = group.softmax_scale
            yield f"Falcon adds the bias before it scales the scores: its slopes are those of ALiBi times {scale:g}"
            yield "with a mask of integers Falcon computes the bias in bf16: positions beyond 256 are rounded"


def _shipped(settings, groups):
    if settings.model_type in RW and _rotary(groups):
        yield (
            "modelling_RW.py gives its attention no mask: padding is visible; after cached tokens positions start at 0 again, "
            "and query i sees keys 0 to i alone"
        )
    if settings.model_type == "baichuan" and any((group.encoding, group.heads) == ("alibi", 40) for group in groups):
        yield (
            "modeling_baichuan.py rounds the bias to the dtype of the weights: in bf16, 4096 positions have 752 different "
            "values in head 0"
        )


def _ignored(settings, groups):
    if settings.model_type == "dbrx" and (settings.file.get("attn_config") or {}).get("rope_theta"):
        theta = settings.file["attn_config"]["rope_theta"]
        yield f"attn_config.rope_theta is {theta:g}, and transformers 5.23.0 does not read it there: it rotates by base 10000"
    if settings.model_type.startswith("minimax_m3_vl_text") and settings.given("rotary_dim"):
        yield "rotary_dim is not read by transformers 5.23.0 for this type: the whole head rotates"
    bases = {group.kind: group.base for group in _rotary(groups)}
    if settings.family.get("parameters") == "olmo3" and settings.given("rope_theta") and len(set(bases.values())) == 2:
        yield (
            f"rope_theta {settings['rope_theta']:g} is the base of the full layers alone: transformers 5.23.0 rotates the "
            f"sliding layers by {bases['sliding_attention']:g}, the base of its class"
        )
    whole = [group for group in _rotary(groups) if group.rotary_dim == group.head_dim]
    for name, values in [("", settings.file), *_dictionaries(settings)]:
        share, kind = values.get("partial_rotary_factor"), name.rpartition(".")[2]
        turned = [group for group in whole if group.kind == kind or kind not in {each.kind for each in _rotary(groups)}]
        if share not in (None, 1) and turned and not any(_proportional(group) for group in turned):
            where = "here" if len(whole) == len(_rotary(groups)) else f"for {' and '.join(group.kind for group in whole)}"
            key = f"{name}.partial_rotary_factor".lstrip(".")
            yield f"{key} is {share}, and transformers 5.23.0 does not read it {where}: the whole head rotates"
        if share not in (None, 1) and "partial" not in settings.family and settings.file.get("posref_file") != "GGUF":
            for group in _rotary(groups):
                given, turned = 2 * len(group.frequencies), turned_width(settings, group.kind)
                if group.scaling and group.kind not in settings.family.get("stretched", ()) and given < turned:
                    yield (
                        f"transformers 5.23.0 stops at the first call: {group.scaling['type']} gives it {given // 2} "
                        f"frequencies by partial_rotary_factor, and the code of this type rotates all {turned} features"
                    )
        if values.get("mrope_interleaved") is False and any(group.order == "interleaved" for group in groups):
            yield f"{name}.mrope_interleaved is false, and transformers 5.23.0 does not read it: the axes are interleaved"


def _proportional(group):
    return (group.scaling or {}).get("type") == "proportional"


def _mixed(settings, groups):
    for name, values in _dictionaries(settings):
        for group in _rotary(groups) if FOPE & values.keys() else ():
            turns = np.asarray(group.frequencies) * (group.max_position_embeddings or np.inf) / (2 * np.pi)
            kept = values.get("num_inv_freq", np.count_nonzero(turns >= 1))
            yield (
                f"{name} speaks of FoPE (posref.rotary.fope): of the {len(turns)} frequencies given here the first {kept} are "
                "mixed by the matrices cos_coef and sin_coef of the weights, and the other pairs stand still; the code of "
                "Intern-S1-Pro pads both tables with 1, vLLM (151a2c744a) that of the sines with 0"
            )


def _window_off(settings, groups):
    rule = settings.family.get("window") or settings.family.get("kinds", {}).get("rule") == "qwen2"
    if rule and settings.given("sliding_window") and settings["use_sliding_window"] is False:
        yield "sliding_window is set and use_sliding_window is false: no layer has a window"


def _window_counts(settings, groups):
    if settings.family.get("window", {}).get("instead") == "sliding_window_size" and settings.given("sliding_window_size"):
        yield "sliding_window_size does not count the token itself: transformers adds 1"


def _longrope(settings, groups):
    for group in groups:
        if (group.scaling or {}).get("type") == "longrope" and settings.family.get("parameters") != "minicpm":
            yield (
                f"LongRoPE has two lists: up to {group.scaling['original_length']} tokens transformers takes the short one; "
                "other programs choose by the longest text they were started for (rotary.scaling.longrope_list)"
            )
            if settings.model_type == "phimoe":
                yield (
                    "up to this length tables are multiplied by short_mscale, beyond it by long_mscale; transformers 5.23.0 "
                    "takes the frequencies of the short list at every length (modeling_phimoe.py)"
                )
            elif not any("factor" in values for _, values in _dictionaries(settings)):
                yield (
                    "the magnitude depends on max_position_embeddings / original_max_position_embeddings: a file that was "
                    "shortened by the first key has another magnitude"
                )


def _qwen(settings, groups):
    if settings.family.get("parameters") != "qwen":
        return
    yield (
        "several new tokens after a cache all see each other, later ones too, unless FlashAttention 2.1 or later reads one "
        "text alone (modeling_qwen.py)"
    )
    if any(group.temperature for group in groups):
        yield "the temperature does not act in training; the code of the checkpoint fails for a text of more than 32767 tokens"
    for group in groups:
        if group.scaling:
            n = group.scaling["original_length"]
            yield (
                f"prompts of up to {n} tokens have the frequencies given here; those of up to {2 * n}, {4 * n}, {8 * n} tokens "
                "have scaling.ntk with factor 3, 7, 15; tokens generated later keep the frequencies of their prompt; training "
                "has no factor"
            )


def _telechat(settings, groups):
    if settings.family.get("parameters") == "telechat":
        n, after = settings.count("training_seqlen"), "each later token has those of its own length, cached keys keep theirs"
        if settings.row != "telechat 2":
            after = f"the code of the checkpoint fails at a token after a cache of {n} tokens or more"
        yield (
            f"{LONGER} {n} tokens has scaling.ntk with factor 2^ceil(log2(n / {ntk_length(settings)}) + 1) - 1 and "
            f"magnitude 0.1 ln(n / {n}) + 1; {after}"
        )
        if settings["flash_attn"]:
            yield "flash_attn is true: the code of the checkpoint then gives attention no mask, so padding is visible"


def _internlm(settings, groups):
    if settings.family.get("parameters") == "internlm" and settings["rotary"] is None:
        yield (
            "the file has no rotary: in longer texts the code of November 2023 then has dynamic NTK with factor 1, and "
            "it counts padding whatever position_ids says; the earlier code keeps these frequencies and reads position_ids"
        )


def _kept_frequencies(settings, groups):
    for group in groups if settings.family.get("parameters") in ("bailing_moe", "minicpm", "linear_or_dynamic") else ():
        kind = (group.scaling or {}).get("type")
        if kind == "longrope":
            yield (
                f"in texts of more than {group.max_position_embeddings} tokens, SDPA attention of modeling_minicpm.py rounds "
                "the frequencies to the dtype of the activations: in bf16 they are off by up to 0.2%"
            )
        if kind == "longrope" and group.frequencies_long is None:
            yield (
                "max_position_embeddings exceeds the original length: the code of the checkpoint takes the long list at every "
                "length, other programs take the short one for short texts (rotary.scaling.longrope_list)"
            )
        elif kind in ("longrope", "dynamic_ntk"):
            yield (
                f"once the code of the checkpoint has read a text of more than {group.scaling['original_length']} tokens, "
                "later texts have the frequencies of this text, shorter ones too"
            )


def _yarn_of_version(settings, groups):
    """The code of Ling 2 calls YaRN of the installed transformers, so its frequencies depend on the version."""
    given = (settings.raw.get("rope_scaling") or {}).get("original_max_position_embeddings")
    for group in groups if settings.row == "bailing_moe_v2" and given else ():
        own, rule = group.max_position_embeddings / given, group.scaling
        if rule["type"] == "yarn" and own != rule["factor"]:
            yield (
                "in transformers 4.52.3 the factor of YaRN is max_position_embeddings / original_max_position_embeddings = "
                f"{own:g}; in 4.56.1 and 4.57.1 it is the factor of the file, {rule['factor']:g} (modeling_rope_utils.py)"
            )


def _dynamic(settings, groups):
    if any((group.scaling or {}).get("type") == "dynamic_ntk" for group in groups):
        yield (
            "dynamic NTK changes the frequencies with the length of the text; the frequencies given here hold up to "
            "max_position_embeddings"
        )


def _squared(settings, groups):
    for group in _rotary(groups):
        plain = group.head_dim**-0.5
        if settings.family.get("scale") == "yarn" and group.softmax_scale > plain * 1.0001:
            yield f"the softmax scale includes YaRN's squared magnitude: it is {group.softmax_scale:.6g}, not {plain:.6g}"


def _twins(settings, groups):
    twins = {
        "glm4": "GLM-4 reads interleaved, GLM-4.5 (glm4_moe) half, glm4_moe_lite interleaved to half",
        "glm4_moe": "GLM-4.5 reads half, GLM-4 (glm4) interleaved, glm4_moe_lite interleaved to half",
        "deepseek_v32": "the indexer reads half and rotates its first features, the attention interleaved and its last",
        "deepseek_v2": "DeepSeek V2 leaves rotated features interleaved, V3 half: same scores, another order in the cache",
        "glm_moe_dsa": "this indexer reads interleaved, that of DeepSeek V3.2 half",
    }
    if settings.model_type in twins:
        yield twins[settings.model_type]


def _listing(settings, groups):
    if settings.file.get("posref_listing") and _rotary(groups):
        yield (
            "this is a listing of a GGUF file without its tensors: where it has rope_freqs.weight, llama.cpp divides the "
            "frequencies by it, and they are not those given here (all of Llama 3.1 and 3.2); name the file itself"
        )
    if settings.file.get("posref_file") == "GGUF" and settings["max_position_embeddings"] is None and _rotary(groups):
        yield "this GGUF file has no context_length, so its largest number of positions is not known"


def _rolls(settings, groups):
    shifted = any(group.kind == "shifted_window_attention" for group in groups)
    if settings.family["encoding"] == "swin_v2" and shifted:
        yield "transformers 5.23.0 adds the mask of rolled windows twice: -200, not -100"
    shifts = settings.family.get("shifts")
    if settings.family["encoding"] != "swin" or shifts == "everywhere":
        return
    if shifted and shifts is None:
        yield (
            "layers roll as they do for a picture of image_size; a layer of transformers 5.23.0 that once saw a picture which "
            "one window covers rolls no larger one afterwards, and those of a backbone roll every picture"
        )
    for stage in range(len(swin_layers.stages(settings))):
        sides, window = swin_layers.grid(settings, stage), settings.count("window_size")
        if min(sides) < window:
            key = settings.family["grid"][0]
            words = f"of {key} {shown(settings[key])}: stage {stage} has {sides[0]} x {sides[1]} patches"
            yield f"transformers 5.23.0 refuses a picture {words}, its bias is for windows of {window} x {window}"


def _both_directions(settings, groups):
    if settings.family["encoding"] == "xlnet" and settings["bi_data"]:
        yield (
            "bi_data is set: the second half of a batch has the distances with the other sign; transformers 5.23.0 refuses an "
            "odd batch, and for a single text its output is empty"
        )


def _flat_text(settings, groups):
    if settings.path and settings.path.endswith("text_config") and not settings.file and settings.outer.get("hidden_size"):
        yield (
            "the keys of the text stand at the top of the file; the class in transformers 5.23.0 does not look there and "
            "takes its own values, and so does this page"
        )


def _another_class(settings, groups):
    if settings.doubt and settings.layered:
        yield settings.doubt + ": what is said here follows from its keys alone" * bool(groups)
    elif settings.doubt:
        yield f"{settings.doubt}: its parts are described as their own types say"
    named = settings.file.get("model_type")
    if settings.foreign:
        yield f"the class of {settings.outer['model_type']} in transformers 5.23.0 does not build this part"
    if settings.path and settings.facts and isinstance(named, str) and named not in ("", settings.model_type):
        yield f"{settings.path}.model_type {shown(named)} is ignored: transformers 5.23.0 builds {settings.model_type} here"
    if "posref_without_file" in settings.file and not settings.doubt:
        like = settings.file["posref_without_file"]
        words = f"; released models of a like name: {', '.join(like)}" if like else ""
        yield f"{settings.model_type} was given as a model type, without a file: every size is the default of its class{words}"
    if settings.file.get("posref_given_type"):
        given = shown(settings.file["posref_given_type"])
        why = FOREIGN.get(given, "architectures names a class of this type")
        yield f"model_type {given} is read as {settings.model_type}: {why}"


def _contradictions(settings, groups):
    """Two keys for the same setting with different values, and a schedule without its name."""
    outside = settings.file.get("rope_theta")
    used = ", ".join(sorted({f"{group.base:g}" for group in _rotary(groups) if group.base}))
    for name, values in _dictionaries(settings):
        inside = values.get("rope_theta")
        if isinstance(outside, (int, float)) and isinstance(inside, (int, float)) and "." not in name and outside != inside:
            yield f"rope_theta is {inside:g} in {name} and {outside:g} beside it; the base used here is {used or 'neither'}"
        shares = [values.get("partial_rotary_factor"), settings.file.get("partial_rotary_factor")]
        if None not in shares and shares[0] != shares[1]:
            yield f"partial_rotary_factor is {shares[0]} in {name} and {shares[1]} beside it; transformers takes the first"
        kinds = [values.get(key) for key in ("rope_type", "type")]
        if None not in kinds and kinds[0] != kinds[1]:
            yield f"{name} has the rope_type {shown(kinds[0])} and the type {shown(kinds[1])}; transformers reads rope_type"
        if kinds == [None, None] and values.get("factor") not in (None, 1):
            yield (
                f"{name} has a factor and no rope_type: transformers 5.23.0 scales nothing; llama.cpp scales linearly where a "
                "GGUF file has a factor and no type"
            )
    yield from filter(None, map(not_added_up, _rotary(groups)))
    listed, layers = settings.file.get("layer_types"), settings["num_hidden_layers"]
    checked = "layer_types" in settings.facts.get("defaults", {})
    if checked and isinstance(listed, list) and isinstance(layers, int) and len(listed) > layers:
        yield f"layer_types names {len(listed)} layers and num_hidden_layers is {layers}; transformers 5.23.0 refuses the file"
    both = [settings.file.get(name) for name in ROTARY]
    if all(isinstance(values, dict) and values for values in both) and both[0] != both[1]:
        yield "rope_parameters and rope_scaling differ; transformers 5.23.0 lets rope_scaling win"
    based = isinstance(both[0], dict) and isinstance(both[0].get("rope_theta"), (int, float))
    if based and not both[1] and outside is None and _rotary(groups) and both[0]["rope_theta"] != 10000:
        yield (
            "the base stands in rope_parameters alone: transformers 4.57.1 does not read this key; it reads rope_theta at the "
            "top of a file and, without it, takes the base of its class"
        )


def _one_token(settings, groups):
    if any((group.state or {}).get("step", "").startswith("clip(") for group in groups):
        yield (
            "transformers 5.23.0 clips the step of a text of several tokens, and does not clip the step of a single token "
            "after a cache: where the clip acts, generate() gives other numbers than one pass over the same text"
        )


def _two_mixers(settings, groups):
    if settings.model_type == "hrm_text":
        yield "L_module and H_module each have all of these layers; a text passes both several times (H_cycles, L_cycles)"


def _passes(settings, groups):
    if settings.model_type == "perceiver" and settings.count("num_blocks") > 1:
        yield f"the latents pass all of these layers {settings.count('num_blocks')} times, with the same weights (num_blocks)"


def _narrow_indexer(settings, groups):
    for group in groups:
        if group.kind == "minimax_m3_sparse" and settings.count("index_head_dim") < group.rotary_dim:
            yield (
                f"index_head_dim is {settings['index_head_dim']}, and {group.rotary_dim} features of a head rotate: "
                "transformers 5.23.0 takes two frequencies for each pair of features of the indexer, which is no rotation"
            )


def _trained_with_positions(settings, groups):
    if settings.family["encoding"] == "sinusoidal_2d_counted" and settings["eval_size"]:
        yield "eval_size is set: transformers 5.23.0 adds the sinusoids of row and column in training alone"


TRAPS = (
    _passes,
    _narrow_indexer,
    _trained_with_positions,
    _one_token,
    _two_mixers,
    _another_class,
    _contradictions,
    _truncate,
    _dropped,
    _old_type,
    _no_base,
    _overridden,
    _no_rope_layers,
    _nope,
    _odd,
    _bias_before_the_scale,
    _shipped,
    _ignored,
    _mixed,
    _window_off,
    _window_counts,
    _longrope,
    _qwen,
    _telechat,
    _internlm,
    _kept_frequencies,
    _dynamic,
    _squared,
    _twins,
    _listing,
    _rolls,
    _both_directions,
    _flat_text,
)
