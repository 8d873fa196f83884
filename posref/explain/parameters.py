"""The rotary parameters of each kind of layer, from all spellings that configurations use.

transformers 5 writes the dictionary `rope_parameters`, flat or with a dictionary for each kind of layer. transformers 4 wrote
`rope_theta`, `rope_scaling` with `type` or `rope_type`, and names of single families. Each rule here does what one class does
with these keys, as read in `modeling_rope_utils.py` and in `convert_rope_params_to_dict` of its configuration. Where a class
drops a key, the rule drops it too, and `posref.explain.traps` says so.
"""

import copy
import math

from posref.explain.configuration import Keys, shown
from posref.explain.schedule import magnitude
from posref.explain.unrotated_layers import sides

NESTED = {"nested": True}  # parameters of one kind of layer, in a dictionary of its own
TRAINED_LENGTH = ("llama3", "yarn", "longrope")


def parameters(settings, kinds):
    """{kind: dictionary with rope_type, rope_theta and so on, or None where the file has none for this kind}."""
    rule = settings.family["parameters"]
    return RULES[rule](settings, list(dict.fromkeys(kinds)))


def _dictionary(settings, key):
    value = settings[key]
    if value is None or isinstance(value, dict):
        return copy.deepcopy(value)
    raise settings.error(f"{key} is {shown(value)}, expected a dictionary")


def _given(settings):
    """The dictionary of the file, or else the default of its class."""
    found = _dictionary(settings, "rope_scaling") or _dictionary(settings, "rope_parameters")
    return found or copy.deepcopy(settings.family.get("without")) or {}


def _base(settings):
    """The rope_theta that stands beside the dictionary, or the default of the class."""
    if "rope_theta" in settings.raw:
        return settings["rope_theta"]
    return settings["rope_theta"] or settings.facts.get("theta", 10000.0)


NUMBERS = ("factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "attention_factor", "partial_rotary_factor", "alpha")


def _checked(settings, values):
    """ValueError that names the key, unless numbers are numbers and sections are positive integers."""
    if not isinstance(values, dict):
        raise settings.error(f"rotary parameters are {shown(values)}, expected a dictionary")
    for key in NUMBERS:
        value = dict.get(values, key)  # to check a value is not to understand it
        if value is not None and not (isinstance(value, (int, float)) and abs(value) < 1e300):
            raise settings.error(f"{key} is {shown(value)}, expected a number")
    sections = dict.get(values, "mrope_section")
    if sections is not None and not (
        isinstance(sections, list) and sections and all(type(n) is int and n > 0 for n in sections)
    ):
        raise settings.error(f"mrope_section is {shown(sections)}, expected positive integers")


def _standard(settings, values, *, flat):
    """One dictionary, changed as `standardize_rope_params` of transformers changes it."""
    _checked(settings, values)
    values.setdefault("rope_type", values.get("type") or "default")
    if values["rope_type"] == "default" and settings.facts.get("rope_type", "default") != "default":
        values["rope_type"] = settings.facts["rope_type"]
    if values["rope_type"] == "su" and not settings.facts:  # as the code of Phi-3-vision, whose type transformers lacks
        values["rope_type"] = "longrope"
    if values["rope_type"] in TRAINED_LENGTH:
        outside = settings["original_max_position_embeddings"]
        if flat and (outside is not None):
            values["original_max_position_embeddings"] = outside
        values.setdefault("original_max_position_embeddings", settings["max_position_embeddings"])
    return values


def _flat(settings, kinds, *, theta="rope_theta", partial="partial_rotary_factor"):
    found = _given(settings)
    nested = [kind for kind in found if kind in kinds] if "layer_types" in settings.facts.get("defaults", {}) else []
    for values in [found[kind] for kind in nested if found[kind] is not None] if nested else [found]:
        _checked(settings, values)
        values.setdefault("rope_theta", settings[theta] if settings.given(theta) else _base(settings))
        share = settings[partial] if partial else None
        share = settings.family.get("partial") if share is None else share
        if share is not None:
            values.setdefault("partial_rotary_factor", share)
        _standard(settings, values, flat=not nested)
    if nested:
        return {kind: found.get(kind) and found[kind] | NESTED for kind in kinds}
    return {kind: found for kind in kinds}


def _without_scaling(settings, kinds):
    """standardize_rope_params ignores the field rope_scaling of this class; it stays unread here, so posref prints it."""
    found = _dictionary(settings, "rope_parameters") or {}
    found.setdefault("rope_theta", _base(settings))
    return dict.fromkeys(kinds, _standard(settings, found, flat=True))


def _axial(settings, kinds):
    """SAM 3 multiplies the coordinates of a whole picture by window_size / columns (modeling_sam3.py)."""
    found = _flat(settings, kinds)
    for kind in set(settings.family.get("stretched", ())) & set(found):
        picture, patch = (sides(settings, key)[0] for key in ("image_size", "patch_size"))
        found[kind] = found[kind] | {"stretch": picture // patch / settings.count("window_size")}
    return found


def _llama4_vision(settings, kinds):
    """A table for each of two axes; its class calls this rope_type default."""
    return {kind: {**values, "rope_type": "axial"} for kind, values in _flat(settings, kinds).items()}


def _gpt_neox(settings, kinds):
    """GPT-NeoX has its own names for keys, and ignores a rope_theta beside the dictionary."""
    settings.raw.setdefault("rotary_emb_base", settings.facts.get("theta", 10000.0))
    return _flat(settings, kinds, theta="rotary_emb_base", partial="rotary_pct")


def _nested(settings, kinds, bases, scaled=("full_attention",)):
    """Full and sliding layers have a base each; `rope_scaling` applies only to the kinds in `scaled`."""
    found = _dictionary(settings, "rope_parameters")
    if found is None:
        found = Keys(
            {"sliding_attention": {"rope_type": "default"}, "full_attention": {"rope_type": "default"}}, "", settings.read
        )
    for kind in scaled:
        if settings.given("rope_scaling"):
            found.setdefault(kind, Keys({}, "", settings.read))
            found[kind].update(_dictionary(settings, "rope_scaling"))
    for kind, (key, without) in bases.items():
        found[kind] = found.get(kind) or {"rope_type": "default"}
        found[kind].setdefault("rope_theta", settings[key] if key and settings.given(key) else without)
        if settings["partial_rotary_factor"] is not None:
            found[kind].setdefault("partial_rotary_factor", settings["partial_rotary_factor"])
        _standard(settings, found[kind], flat=False)
    return {kind: found.get(kind) and found[kind] | NESTED for kind in kinds}


def _gemma3(settings, kinds):
    default = settings.facts["theta"]
    bases = {
        "full_attention": ("rope_theta", default["global"]),
        "sliding_attention": ("rope_local_base_freq", default["local"]),
    }
    return _nested(settings, kinds, bases)


def _modernbert(settings, kinds):
    default = settings.facts["theta"]
    bases = {
        "full_attention": ("global_rope_theta", default["global"]),
        "sliding_attention": ("local_rope_theta", default["local"]),
    }
    return _nested(settings, kinds, bases, scaled=tuple(bases))


def _olmo3(settings, kinds):
    """A rope_theta beside the dictionary applies only to the full layers, because the class reads it once and removes it."""
    default = settings.facts["theta"]
    return _nested(settings, kinds, {"full_attention": ("rope_theta", default), "sliding_attention": (None, default)})


def _dots3(settings, kinds):
    """Without rope_parameters, each kind of layer has its own key for the base. With rope_parameters, a dictionary without
    rope_theta gets the base that stands beside rope_parameters. The class sets partial_rotary_factor to 1."""
    bases = {"indexed_attention": ("rope_theta", settings.facts["theta"]), "sliding_attention": ("swa_rope_theta", 50000.0)}
    given = settings.given("rope_parameters")
    found = _lfm3(settings, kinds) if given else _nested(settings, kinds, bases, scaled=())
    for kind, values in found.items():
        if values is None:
            raise settings.error(f"rope_parameters has no dictionary for {kind}")
    return {kind: values | {"partial_rotary_factor": 1.0} for kind, values in found.items()}


def _as_given(settings, kinds, base=None):
    """The dictionary of each kind of layer, from the file or else from the class. If the row of the type has `partial`, a
    partial_rotary_factor beside the dictionary is read too.

    `base` is the rope_theta that the class adds to a dictionary without one; None: the class adds none.
    """
    found = _dictionary(settings, "rope_parameters") or copy.deepcopy(settings.family["without"])
    result = {}
    for kind in kinds:
        values = found.get(kind) if kind in found or any(isinstance(value, dict) for value in found.values()) else found
        if values is not None and base is not None:
            _checked(settings, values)
            values.setdefault("rope_theta", base)
        if values and "partial" in settings.family and "partial_rotary_factor" not in values:
            share = settings["partial_rotary_factor"] if settings.family.get("beside", True) else None
            values["partial_rotary_factor"] = settings.family["partial"] if share is None else share
        result[kind] = values and _standard(settings, values, flat=False) | NESTED
    return result


def _lfm3(settings, kinds):
    return _as_given(settings, kinds, _base(settings))


def _phi3(settings, kinds):
    found = _given(settings)
    found.setdefault("rope_theta", settings["rope_theta"] if settings.given("rope_theta") else 10000.0)
    share = settings["partial_rotary_factor"]
    found.setdefault("partial_rotary_factor", 1.0 if share is None else share)
    _standard(settings, found, flat=True)
    if found["rope_type"] in ("su", "yarn"):
        found["rope_type"] = "longrope"
        _standard(settings, found, flat=True)
    return {kind: found for kind in kinds}


def _mrope(settings, kinds):
    found = _given(settings)
    found.setdefault("rope_theta", _base(settings))
    if found.get("rope_type", found.get("type")) == "mrope":
        found["rope_type"] = "default"
    return dict.fromkeys(kinds, _standard(settings, found, flat=True))


def _minimax_m2(settings, kinds):
    if not settings.given("partial_rotary_factor") and settings["rotary_dim"] is not None:
        head = settings["head_dim"] or settings.count("hidden_size") // settings.count("num_attention_heads")
        settings.raw["partial_rotary_factor"] = settings.count("rotary_dim") / head
    return _flat(settings, kinds)


def _mistral4(settings, kinds):
    turned, head = settings["qk_rope_head_dim"], settings["qk_rope_head_dim"] + settings["qk_nope_head_dim"]
    found = _flat(settings, kinds, partial=None)
    for values in found.values():
        values.setdefault("partial_rotary_factor", turned / head)
    return found


def _hunyuan(settings, kinds):
    found = _flat(settings, kinds)
    for values in found.values():
        if values["rope_type"] in ("dynamic", "xdrope") and values.get("alpha"):
            values["rope_type"] = "ntk_alpha"
    return found


def _molmo2(settings, kinds):
    """Layers outside rope_scaling_layers rotate by the base alone."""
    found = _flat(settings, kinds)
    plain = {"rope_type": "default", "rope_theta": found[kinds[0]]["rope_theta"]}
    return {kind: plain if kind == "unscaled_attention" else found[kind] for kind in kinds}


def _deepseek_v4(settings, kinds):
    found = _given(settings)
    found.setdefault("rope_type", found.get("type") or "default")
    share = settings["partial_rotary_factor"]
    if share is None:
        turned = settings["qk_rope_head_dim"]
        share = settings.family["partial"] if turned is None else turned / settings["head_dim"]
    if isinstance(found.get("main"), dict) and isinstance(found.get("compress"), dict):
        main, compress = found["main"], found["compress"]
    else:
        main = {"rope_type": "default", "rope_theta": settings["rope_theta"]}
        compress = found | {"rope_theta": settings["compress_rope_theta"], "main": None, "compress": None}
        compress["partial_rotary_factor"] = share
        compress.setdefault("rope_type", "default")
        if compress["rope_type"] == "yarn":
            compress.setdefault("attention_factor", 1.0)
    for values in (main, compress):
        values.setdefault("partial_rotary_factor", share)
        _standard(settings, values, flat=False)
    return {kind: (main if kind == "sliding_attention" else compress) | NESTED for kind in kinds}


def _step3p5(settings, kinds):
    found = _dictionary(settings, "rope_parameters") or {}
    if all(isinstance(found.get(kind), dict) for kind in kinds):
        return {kind: _standard(settings, found[kind], flat=False) | NESTED for kind in kinds}
    given = settings["rope_theta"]
    given = _base(settings) if given is None else given
    shares, layer_types = settings["partial_rotary_factors"], settings["layer_types"] or kinds
    result = {}
    for kind in kinds:
        first = layer_types.index(kind)
        theta = given[first] if isinstance(given, list) else given
        values = Keys({}, "", settings.read) | {"rope_type": "default", "rope_theta": theta}
        if shares:
            values["partial_rotary_factor"] = shares[first]
        if kind == "full_attention":
            values.update(_dictionary(settings, "rope_scaling") or {})
        result[kind] = _standard(settings, values, flat=False) | NESTED
    return result


def _filled(settings, kinds):
    """The dictionary of each kind of layer; missing keys have the default of the class, the base that of rope_theta."""
    found = _dictionary(settings, "rope_parameters") or {}
    base = {"rope_theta": settings["rope_theta"]} if settings.given("rope_theta") else {}
    usual = {kind: Keys({}, "", settings.read) | settings.family["without"][kind] | base for kind in kinds}
    return {kind: _standard(settings, usual[kind] | (found.get(kind) or {}), flat=False) | NESTED for kind in kinds}


def _linear_or_dynamic(settings, kinds):
    """The code of the checkpoint reads only `type` and `factor`, and accepts only linear and dynamic."""
    given = _dictionary(settings, "rope_scaling")
    if given is not None and (set(given) != {"type", "factor"} or given["type"] not in ("linear", "dynamic")):
        raise settings.error(f"rope_scaling is {shown(given)}, expected type linear or dynamic, and a factor")
    return _flat(settings, kinds)


def _internlm(settings, kinds):
    """The later code of InternLM reads `rotary`; the earlier code has no such key, and its base is 10000."""
    given = _dictionary(settings, "rotary") or {"type": "origin", "base": 10000.0}
    if given.get("type") not in ("origin", "dynamic") or given.get("base") is None:
        raise settings.error(f"rotary is {shown(given)}, expected type origin or dynamic, and a base")
    found = {"rope_type": "default", "rope_theta": given["base"]}
    if given["type"] == "dynamic":
        found |= {"rope_type": "dynamic", "factor": given.get("scaling_factor", 1.0)}
    return dict.fromkeys(kinds, found)


def _ultrabert(settings, kinds):
    return _as_given(settings, kinds, 10000.0)  # whatever the file says beside the dictionary


def _bailing_moe(settings, kinds):
    """The modeling file reads `type`, not `rope_type`, and has its own defaults for the keys of YaRN."""
    given, found = _dictionary(settings, "rope_scaling"), {"rope_type": "default", "rope_theta": _base(settings)}
    if given is not None:
        _checked(settings, given)
        found |= {"rope_type": given.get("type"), "factor": given.get("factor")}
        if found["rope_type"] not in ("linear", "dynamic", "yarn") or found["factor"] is None:
            raise settings.error(f"rope_scaling is {shown(given)}, expected type linear, dynamic or yarn, and a factor")
    if found["rope_type"] == "yarn":
        usual = {"original_max_position_embeddings": 4096, "beta_fast": 32, "beta_slow": 1}
        found |= {key: given.get(key, value) for key, value in usual.items()}
        amount, below = (magnitude(found["factor"], given.get(key, n)) for key, n in (("mscale", 1), ("mscale_all_dim", 0)))
        found["attention_factor"] = float(amount / below)
    return dict.fromkeys(kinds, found)


def _qwen(settings):
    """With each doubling of the prompt beyond seq_length the base changes (get_ntk_alpha of modeling_qwen.py)."""
    names = ("kv_channels", "num_attention_heads", "hidden_size", "seq_length")
    width, heads, whole, trained = (settings.count(name, most=10**9) for name in names)
    if trained is None:
        raise settings.error("seq_length is missing, and the code of qwen has no value of its own for it")
    if width * heads != whole:
        raise settings.error(f"kv_channels x num_attention_heads is {width * heads}, expected {whole}: hidden_size")
    kind = "dynamic_ntk_by_doubling" if settings["use_dynamic_ntk"] else "default"
    found = {"rope_type": kind, "rope_theta": settings["rotary_emb_base"], "original_max_position_embeddings": trained}
    return found | {"partial_rotary_factor": settings["rotary_pct"]}


def ntk_length(settings):
    """The length from which TeleChat counts its NTK factor."""
    rule = settings.family["ntk_length"]
    return settings.count(rule) if isinstance(rule, str) else rule


def _telechat(settings):
    """All texts of up to training_seqlen tokens use the factor for this length (get_ntk_alpha of modeling_telechat.py)."""
    factor = 2 ** math.ceil(math.log2(settings.count("training_seqlen") / ntk_length(settings)) + 1) - 1
    return {"rope_theta": 10000.0} | ({"rope_type": "ntk_alpha", "alpha": factor} if factor > 1 else {"rope_type": "default"})


def _minicpm(settings):
    """LongRoPE of modeling_minicpm.py reads neither factor nor attention_factor. Its first table has
    max_position_embeddings rows: if they exceed the original length, every text uses the long list."""
    given, found = _dictionary(settings, "rope_scaling"), {"rope_type": "default", "rope_theta": _base(settings)}
    if given is None:
        return found
    _checked(settings, given)
    kind, length = given.get("rope_type") or given.get("type"), settings.count("max_position_embeddings")
    if kind not in ("linear", "dynamic", "longrope"):
        raise settings.error(f"rope_type is {shown(kind)}; the code of minicpm knows linear, dynamic and longrope")
    found["rope_type"] = kind
    if kind != "longrope":
        return found | {"factor": given.get("factor")}
    original = given.get("original_max_position_embeddings")
    if type(original) is not int or not 1 < original <= length:
        words = f"original_max_position_embeddings is {shown(original)}, expected an integer from 2 to {length}"
        raise settings.error(f"{words}: max_position_embeddings")
    found |= {"original_max_position_embeddings": original, "factor": length / original, "long_alone": length > original}
    return found | {key: given.get(key) for key in ("short_factor", "long_factor")}


def _alike(rule):
    """A rule that gives every kind of layer the same parameters."""
    return lambda settings, kinds: dict.fromkeys(kinds, rule(settings))


def _fixed(base, key=None, kind="default"):
    """A rule with the base that the code fixes; where `key` is given and the file has it, its value is the base."""

    def rule(settings, kinds):
        theta = settings[key] if key and settings[key] is not None else base
        return {name: {"rope_type": kind, "rope_theta": theta} for name in kinds}

    return rule


RULES = {
    "flat": _flat,
    "gpt_neox": _gpt_neox,
    "gemma3": _gemma3,
    "modernbert": _modernbert,
    "olmo3": _olmo3,
    "dots3": _dots3,
    "given": _as_given,
    "lfm3": _lfm3,
    "phi3": _phi3,
    "mrope": _mrope,
    "minimax_m2": _minimax_m2,
    "mistral4": _mistral4,
    "hunyuan": _hunyuan,
    "by_layer": _flat,
    "molmo2": _molmo2,
    "without_scaling": _without_scaling,
    "deepseek_v4": _deepseek_v4,
    "step3p5": _step3p5,
    "ultrabert": _ultrabert,
    "filled": _filled,
    "internlm": _internlm,
    "linear_or_dynamic": _linear_or_dynamic,
    "axial": _axial,
    "qwen": _alike(_qwen),
    "telechat": _alike(_telechat),
    "minicpm": _alike(_minicpm),
    "llama4_vision": _llama4_vision,
    "esm": _fixed(10000.0, "rope_theta"),
    "dinov3": _fixed(100.0, "rope_theta", "axial"),
    **dict.fromkeys(("clvp", "gptj"), _fixed(10000.0)),
    **dict.fromkeys(("roformer", "fixed"), _fixed(10000.0)),
    "bailing_moe": _bailing_moe,
}
