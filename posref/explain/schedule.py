"""Schedules: frequencies and magnitude of one kind of layer, from its rotary parameters and the width of its head.

`posref.rotary` computes all numbers; this file chooses the function and its arguments, and writes the call for the reader.
`rope.frequencies` refuses an odd width; transformers divides by the odd width and has one pair more, so this file does too.
"""

from typing import Any, NamedTuple

import numpy as np

from posref import precision
from posref.explain.configuration import shown
from posref.rotary import rope, scaling

WIDEST = 1024  # features of a head that rotates; released ones have at most 576


class Schedule(NamedTuple):
    """The frequencies of a layer, the magnitude of its tables, and the calls of posref that give the frequencies."""

    frequencies: np.ndarray
    magnitude: float
    rotary_dim: int
    base: float
    scaling: dict[str, Any] | None
    call: str
    long: np.ndarray | None = None


def schedule(values, head_dim, settings):
    """The schedule of `rope_type`; a ValueError names a missing key or an unknown type."""
    kind = values.get("rope_type")
    if not isinstance(kind, str) or kind not in KINDS:
        first = ", the first name of longrope, which transformers 5.23.0 reads for Phi-3 alone" if kind == "su" else ""
        raise ValueError(f"{where(settings)}rope_type is {shown(kind)}{first}; known are {', '.join(sorted({*KINDS} - OWN))}")
    if head_dim > WIDEST:
        raise ValueError(f"{where(settings)}a head of {head_dim} features rotates, expected at most {WIDEST}")
    base = need(values, "rope_theta", settings)
    share = values.get("partial_rotary_factor")
    if settings.file.get("posref_file") == "GGUF":
        share = settings.raw.get("partial_rotary_factor", share)  # llama.cpp turns rope.dimension_count features in every model
    elif kind == "default" and "partial" not in settings.family:
        share = 1.0
    share = 1.0 if share is None else share
    if not isinstance(share, (int, float)) or not 0 <= share <= 1:
        raise ValueError(f"{where(settings)}partial_rotary_factor is {shown(share)}, expected a share from 0 to 1")
    if kind in ("axial", "proportional"):
        return KINDS[kind](values, head_dim, base, settings)
    dim = int(head_dim * share)
    if dim < 2:
        raise ValueError(f"{where(settings)}no pair is left to turn: int({head_dim} * {share}) is {dim}")
    plain = rope.frequencies(dim, float(base)) if dim % 2 == 0 else float(base) ** (-2 * np.arange((dim + 1) // 2) / dim)
    found = KINDS[kind](values, plain, dim, float(base), settings)
    if kind == "default" or "magnitudes" not in settings.family:
        return found
    short, _ = (need(values, key, settings) for key in settings.family["magnitudes"])  # a trap speaks of the second
    return found._replace(magnitude=float(short))


def need(values, key, settings):
    """The positive number that a key of the rotary parameters has; else a ValueError that names the key."""
    value = values.get(key)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and np.isfinite(value) and value > 1e-300:
        return value
    said = "missing" if value is None else shown(value)
    raise ValueError(f"{where(settings)}{key} is {said} in the rotary parameters, expected a positive number")


def where(settings):
    return f"{settings.path}: " if settings.path else ""


def _default(values, plain, dim, base, settings):
    if settings.family.get("axes") == "ernie":
        *_, time = values.get("mrope_section") or settings.family["sections"]
        fast, slow = plain[:-time], plain[-time:]
        plain = np.concatenate([fast[0::2], fast[1::2], slow])
    return Schedule(plain, 1.0, dim, base, None, f"rope.frequencies({dim}, {base})")


def _linear(values, plain, dim, base, settings):
    options = {"factor": need(values, "factor", settings)}
    return _scaled("linear", plain, dim, base, options)


def _dynamic(values, plain, dim, base, settings):
    """Frequencies stay up to the trained length; beyond it they depend on the length of the text."""
    options = {
        "factor": need(values, "factor", settings),
        "original_length": settings.count("max_position_embeddings", most=10**12),
    }
    found = Schedule(plain, 1.0, dim, base, {"type": "dynamic_ntk", **options}, "")
    arguments = ", ".join(f"{key}={value}" for key, value in options.items())
    return found._replace(call=f"scaling.dynamic_ntk(rope.frequencies({dim}, {base}), length=.., {arguments})")


def _dynamic_by_doubling(values, plain, dim, base, settings):
    """The length of a prompt is rounded up to 2, 4, .. times the trained length, for dynamic NTK with factor 2."""
    length = need(values, "original_max_position_embeddings", settings)
    call = (
        f"scaling.dynamic_ntk(rope.frequencies({dim}, {base}), length={length} * 2 ** ceil(log2(n / {length})), factor=2.0, "
        f"original_length={length}), n: tokens of the prompt"
    )
    return Schedule(plain, 1.0, dim, base, {"type": "dynamic_ntk_by_doubling", "original_length": length}, call)


def _ntk_alpha(values, plain, dim, base, settings):
    return _scaled("ntk", plain, dim, base, {"factor": need(values, "alpha", settings)})


def _llama3(values, plain, dim, base, settings):
    keys = ("factor", "low_freq_factor", "high_freq_factor")
    options = {key: need(values, key, settings) for key in keys}
    options["original_length"] = need(values, "original_max_position_embeddings", settings)
    return _scaled("llama3", plain, dim, base, options)


def _yarn(values, plain, dim, base, settings):
    original = need(values, "original_max_position_embeddings", settings)
    factor = values.get("factor")
    factor = settings.number("max_position_embeddings") / original if factor is None else need(values, "factor", settings)
    options = {
        "factor": factor,
        "original_length": original,
        "base": base,
        "beta_fast": values.get("beta_fast") or 32.0,
        "beta_slow": values.get("beta_slow") or 1.0,
        "truncate": True if values.get("nested") else bool(values.get("truncate", True)),
    }
    found = _scaled("yarn", plain, dim, base, options)
    low, high = scaling.yarn_range(dim, base, **{key: options[key] for key in options if key not in ("factor", "base")})
    return found._replace(
        magnitude=_yarn_magnitude(values, factor), scaling={**found.scaling, "ramp": [float(low), float(high)]}
    )


def _yarn_magnitude(values, factor):
    given = values.get("attention_factor")
    if given is not None:
        return float(given)
    if values.get("mscale_all_dim") and values.get("mscale"):
        return float(magnitude(factor, values["mscale"]) / magnitude(factor, values["mscale_all_dim"]))
    return float(magnitude(factor, 1.0))


def magnitude(factor, mscale):
    """0.1 mscale ln s + 1, or 1 if s <= 1, for the factor s."""
    return scaling.yarn_magnitude(factor, mscale=mscale) if factor > 1 else 1.0


def _longrope(values, plain, dim, base, settings):
    original = need(values, "original_max_position_embeddings", settings)
    factor = values.get("factor")
    factor = settings.number("max_position_embeddings") / original if factor is None else need(values, "factor", settings)
    lists = [_factors(values, key, len(plain), settings) for key in ("short_factor", "long_factor")]
    given = values.get("attention_factor")
    grown = scaling.longrope_magnitude(factor, original_length=original) if factor > 1 else 1.0
    short, long = (scaling.longrope(plain, factors=factors) for factors in lists)
    words = {"type": "longrope", "original_length": original, "factor": factor}
    words |= {"short_factor": lists[0].tolist(), "long_factor": lists[1].tolist()}
    call = f"scaling.longrope(rope.frequencies({dim}, {base}), factors=short_factor), long_factor beyond {original} tokens"
    found = Schedule(short, float(grown if given is None else given), dim, base, words, call, long)
    if not values.get("long_alone"):
        return found
    return found._replace(
        frequencies=long, long=None, call=f"scaling.longrope(rope.frequencies({dim}, {base}), factors=long_factor)"
    )


def _by_factors(values, plain, dim, base, settings):
    """Frequencies divided by a list, which a GGUF file holds."""
    factors = _factors(values, "factors", len(plain), settings)
    call = f"scaling.longrope(rope.frequencies({dim}, {base}), factors=rope_freqs)"
    return Schedule(
        scaling.longrope(plain, factors=factors), 1.0, dim, base, {"type": "factors", "factors": factors.tolist()}, call
    )


def _factors(values, key, pairs, settings):
    found = values.get(key)
    if not isinstance(found, list) or len(found) != pairs:
        got = f"has {len(found)} values" if isinstance(found, list) else "is missing" if found is None else f"is {shown(found)}"
        raise ValueError(f"{where(settings)}{key} {got}, expected {pairs} positive numbers, one for each pair")
    for i, number in enumerate(found):
        if not isinstance(number, (int, float)) or not number > 0:
            raise ValueError(f"{where(settings)}{key}[{i}] is {shown(number)}, expected a positive number")
    return np.array(found, dtype=np.float64)


def _proportional(values, head_dim, base, settings):
    share, factor = values.get("partial_rotary_factor", 1.0), values.get("factor", 1.0)
    found = scaling.proportional(rope.frequencies(head_dim, float(base)), fraction=share, factor=factor)
    call = f"scaling.proportional(rope.frequencies({head_dim}, {base}), fraction={share}, factor={factor})"
    turned = 2 * int(np.count_nonzero(found))
    return Schedule(found, 1.0, turned, float(base), {"type": "proportional", "fraction": share, "factor": factor}, call)


def _axial(values, head_dim, base, settings):
    """Half of the pairs read the row and half the column, with equal frequencies, except that Pixtral has two lists."""
    axes = settings.family.get("axes")
    if axes == "hw_split":
        both = rope.frequencies(head_dim, float(base))
        both = np.concatenate([both[0::2], both[1::2]])
        return Schedule(
            both, 1.0, head_dim, float(base), None, f"rope.frequencies({head_dim}, {base}), even ones by row, odd by column"
        )
    if axes == "thirds":  # of time, row and column
        width = head_dim // 3 // 2 * 2
        call = f"rope.frequencies({width}, {base}) for each axis"
        return Schedule(rope.frequencies(width, float(base)), 1.0, 3 * width, float(base), None, call)
    found = rope.frequencies(head_dim // 2, float(base))
    if values.get("stretch", 1.0) != 1.0:
        stretched = _scaled("linear", found, head_dim, float(base), {"factor": values["stretch"]})
        return stretched._replace(call=f"{stretched.call.replace(str(head_dim), str(head_dim // 2), 1)} for each axis")
    return Schedule(found, 1.0, head_dim, float(base), None, f"rope.frequencies({head_dim // 2}, {base}) for each axis")


def _scaled(name, plain, dim, base, options):
    found = getattr(scaling, name)(plain, **options)
    arguments = ", ".join(f"{key}={value}" for key, value in options.items())
    words = {"type": name, **{key: value for key, value in options.items() if key != "base"}}
    return Schedule(found, 1.0, dim, base, words, f"scaling.{name}(rope.frequencies({dim}, {base}), {arguments})")


def phase_error(frequencies, length):
    """The largest error of the angles up to a length, in radians, if they are computed in float32 or in bfloat16."""
    exact = frequencies, np.zeros_like(frequencies)
    single = precision.phase_of(np.float32(frequencies), exact, length, bits=24, position_bits=24)
    half = precision.phase_of(precision.bfloat16(frequencies), exact, length, bits=8, position_bits=8)
    return {"float32": single, "bfloat16": min(half, float(np.pi))}


OWN = {"axial", "dynamic_ntk_by_doubling", "factors", "ntk_alpha"}  # names of this file; the others are those of transformers
KINDS = {
    "default": _default,
    "linear": _linear,
    "dynamic": _dynamic,
    "dynamic_ntk_by_doubling": _dynamic_by_doubling,
    "ntk_alpha": _ntk_alpha,
    "llama3": _llama3,
    "yarn": _yarn,
    "longrope": _longrope,
    "factors": _by_factors,
    "proportional": _proportional,
    "axial": _axial,
}
