"""RoPE scaling: frequencies of the schedules of released models, and YaRN's tables."""

# Over budget: seven schedules, and what released code makes of them

import mpmath
import numpy as np

from proofs.rotary.rope import frequency
from proofs.rotary.scaling import definition
from proofs.vectors import *

SOURCES = (
    "Chen et al., Position Interpolation, arXiv 2306.15595; Peng et al., YaRN, arXiv 2309.00071",
    "meta-llama/llama-models, models/llama3/model.py apply_scaling; Ding et al., LongRoPE, arXiv 2402.13753",
)

CONVENTIONS = {
    "frequencies": "theta_t = base^(-2t/dim), then scaled; dim/2 numbers",
    "factor": "rope_scaling's factor; original_length is original_max_position_embeddings",
    "truncate": "YaRN: the edges of the ramp are rounded down and up",
    "op linear": "theta / factor",
    "op ntk": "the base is base factor^(dim/(dim-2))",
    "op dynamic_ntk": "ntk with factor max(length, original_length) / original_length - (factor - 1)",
    "op yarn": "a ramp over the index of the pair between the edges of beta_fast and beta_slow turns; with ramp turns, as in "
    "the paper, over the turns themselves",
    "op yarn_tables": "cos and sin of the angles, half and half, times 0.1 ln(factor) + 1",
    "op llama3": "a blend between low_freq_factor and high_freq_factor turns in original_length tokens",
    "op longrope": "theta_t / factors_t",
    "op proportional": "the first floor(fraction dim/2) frequencies of the whole head, then zeros",
}
REJECTED = (
    ("scaling/linear/vicuna-16k/frequencies", "factor-0", {"factor": 0.0}, "range", "A factor stretches, from 1 on."),
    ("scaling/ntk/d4/frequencies", "one-pair", {"dim": 2}, "range", "One pair is first and last: kept and divided."),
    ("scaling/yarn/gpt-oss/frequencies", "no-truncate", {"truncate": None}, "missing", "gpt-oss: false; elsewhere true."),
    ("scaling/yarn/gpt-oss/frequencies", "betas", {"beta_fast": 1.0, "beta_slow": 32.0}, "range", "The ramp would fall."),
    ("scaling/llama3/llama3.1/frequencies", "factors", {"low_freq_factor": 8.0}, "range", "The low one is above the high one."),
    ("scaling/longrope/quarters/frequencies", "factors", {"factors": cut}, "shape", "One factor for each pair."),
    ("scaling/proportional/gemma4/frequencies", "fraction", {"fraction": 1.5}, "range", "A part of the pairs."),
)
REASONS = """
pair yarn* not_truncated truncated | one setting, twice the other
pair yarn yarn ramp_over_index ramp_over_turns | one setting, twice the other
pair yarn_tables * magnitude_squared no_magnitude | multiplied by the magnitude, and divided
mutant llama3: kept = *<= *_freq_factor* | on an edge a frequency is 2 pi times a fraction, which is no double
"""

YARN = {
    "qwen2.5-128k": (128, 1000000.0, 4.0, 32768, True),
    "deepseek-v3": (64, 10000.0, 40.0, 4096, True),
    "gpt-oss": (64, 150000.0, 32.0, 4096, False),
    "olmo3": (128, 500000.0, 8.0, 8192, True),
}
BLENDED = "no_blend blended_by_wavelength factor_of_the_other_release"
LLAMA3 = {
    "llama3.1": (128, 8.0, 4.0, BLENDED),
    "llama3.2-1b": (64, 32.0, 4.0, BLENDED),
    "llama4-scout": (128, 16.0, 1.0, ""),
    "d16": (16, 8.0, 2.0, BLENDED),
}


def vectors():
    yield _simple("linear", "vicuna-16k", 128, 10000.0, 4.0, "unscaled twice inverted")
    flags = "unscaled every_frequency every_frequency_by_the_power"
    yield _simple("ntk", "d4", 4, 10000.0, 2.0, f"{flags} base_times_factor")
    yield _simple("ntk", "d128", 128, 10000.0, 8.0, flags)
    for length in (1024, 2049, 4096):
        yield _dynamic("llama", 128, 10000.0, 2.0, length, 2048)
    yield _dynamic("internlm2", 128, 1000000.0, 2.0, 65536, 32768)
    for name, settings in YARN.items():
        yield _yarn(name, *settings)
    yield _tables("gpt-oss", *YARN["gpt-oss"])
    small = 16, 1000000.0, 4.0, 4096, True, (16, 2)
    rows = "positions_clamped positions_modulo int16_positions bf16_positions positions_shared_across_batch wrong_axis"
    yield _tables("d16", *small, probe="places", positions=PLACES[:2], kills=f"{rows} wrong_base", models=("f64", "f32"))
    yield _tables("d16", *small, probe="beyond-f32", positions=PLACES[2], kills="f32_positions", models=("f64",))
    for probe, at in (("fractional", HALVES), ("negative", BELOW)):
        yield _tables("d16", *small, probe=probe, positions=at, kills="positions_ignored sign", models=("f64", "f32"))
    yield _yarn("d16", *small)
    for settings in (YARN["deepseek-v3"], small):
        yield _yarn_over_turns(*settings)
    yield _yarn("cut", 8, 4.0, 4.0, 128, False, same=("truncated", "betas_exchanged"))
    yield _simple("linear", "d16", 16, 1000000.0, 8.0, "unscaled twice inverted")
    yield _simple("ntk", "d16", 16, 1000000.0, 2.0, f"{flags} base_times_factor")
    yield _dynamic("d16", 16, 10000.0, 4.0, 4096, 1024)
    for name, settings in LLAMA3.items():
        yield _llama3(name, *settings)
    yield _longrope()
    yield _longrope("eighths", 12, 500000.0, [1 + t / 8 for t in range(6)], kills="wrong_base")
    yield _proportional("gemma4", 512, 1000000.0, 0.25, 1.0)
    yield _proportional("third", 192, 10000.0, 0.334, 2.0)


def plain(dim, base):
    return [frequency(t, dim, mpmath.mpf(base)) for t in range(dim // 2)]


def edge(beta, dim, base, length, m=mpmath):
    """The real index of the pair that makes beta turns; YaRN's find_correction_dim."""
    return dim * m.log(length / (2 * m.pi * m.mpf(beta))) / (2 * m.log(base))


def ramp(dim, base, length, truncate, betas=(32, 1)):
    low, high = (edge(beta, dim, mpmath.mpf(base), length) for beta in betas)
    if truncate:
        low, high = mpmath.floor(low), mpmath.ceil(high)
    return {"start": max(low, 0), "end": min(high, dim - 1)}


def scaled(rule, w, factor, **given):
    """`definition` of every pair; `given` may be functions of the pair."""
    factor = mpmath.mpf(factor)
    of = lambda t: {name: value(t) if callable(value) else value for name, value in given.items()}
    return [definition(rule, v, t, factor=factor, m=mpmath, **of(t)) for t, v in enumerate(w)]


def stretched(w, factor):
    return scaled("ntk", w, factor, pairs=len(w))


def _sensitivity(values, w, blend=0):
    """Frequencies are powers, of which a few roundings are made; `blend` is what an error of the blend adds to each pair."""
    blend = blend or [0] * len(w)
    phase = [abs(v) * growth(x) + more for v, x, more in zip(values, w, blend, strict=True)]
    return {"phase": phase, "amp": terms(6, values)}


def _of_the_ramp(dim, base, factor, original, truncate, betas=(32, 1)):
    """A pair in the ramp moves by |w - w/s| times the error of e = (t - low) / (high - low). An edge that is not rounded is a
    quotient of logarithms, off by at most 10 roundings of itself; the quotient e has 4 of its own."""
    low, high = ramp(dim, base, original, truncate, betas).values()
    roundings = 4 + (0 if truncate else 10 * (low + high) / (high - low))
    w = plain(dim, base)
    return [roundings * (v - v / mpmath.mpf(factor)) if low < t < high else 0 for t, v in enumerate(w)]


def _of_the_turns(w, factor, original, low, high):
    """The same for Llama 3: c = (n - low) / (high - low), n = L w / 2 pi with the roundings of w and 4 of its own."""
    turns = [original * v / (2 * mpmath.pi) for v in w]
    span = [(growth(v) + 4) * n / (high - low) + 4 if low < n < high else 0 for v, n in zip(w, turns, strict=True)]
    return [more * (v - v / mpmath.mpf(factor)) for v, more in zip(w, span, strict=True)]


def _case(name, op, params, values, w, kills, blend=0, **more):
    id, cond = f"scaling/{op}/{name}/frequencies", _sensitivity(values, w, blend)
    # frequencies in 16 bits are always a mistake
    return case(id, op, params, more.pop("tensors", {}), values, cond, kills, models=("f64", "f32"), **more)


def _simple(op, name, dim, base, factor, kills):
    w = plain(dim, base)
    values = scaled("linear", w, factor) if op == "linear" else stretched(w, factor)
    return _case(name, op, {"dim": dim, "base": base, "factor": factor}, values, w, kills)


def _dynamic(name, dim, base, factor, length, original):
    w, s = plain(dim, base), mpmath.mpf(factor)
    values = stretched(w, s * max(mpmath.mpf(length), original) / original - (s - 1))
    stretches = " unscaled base_times_factor" * (length > original)
    kills = "factor_alone" + stretches + " at_its_longest" * (length != factor * original)
    params = {"dim": dim, "base": base, "factor": factor, "length": length, "original_length": original}
    return _case(f"{name}-{length}", "dynamic_ntk", params, values, w, kills)


def _blended(dim, base, factor, original, truncate, betas=(32, 1)):
    along = {"along": lambda t: mpmath.mpf(t)}
    return scaled("yarn", plain(dim, base), factor, **along, **ramp(dim, base, original, truncate, betas))


def _yarn(name, *settings, same=()):
    told = {"not_truncated" if settings[4] else "truncated", "betas_exchanged"} - set(same)
    kills = " ".join(["unscaled twice every_frequency ramp_upside_down ramp_over_turns", *sorted(told)])
    values, w = _blended(*settings), plain(*settings[:2])
    return _case(name, "yarn", _yarn_params(*settings), values, w, kills, _of_the_ramp(*settings))


def _yarn_over_turns(dim, base, factor, original, truncate, betas=(32, 1)):
    """The paper's ramp: 1 - e falls with the turns n_t from beta_fast to beta_slow."""
    w, (fast, slow) = plain(dim, base), map(mpmath.mpf, betas)
    values = scaled("yarn", w, factor, along=lambda t: -original * w[t] / (2 * mpmath.pi), start=-fast, end=-slow)
    params = _yarn_params(dim, base, factor, original, truncate, betas) | {"ramp": "turns"}
    kills = "unscaled twice every_frequency ramp_upside_down ramp_over_index betas_exchanged"
    blend = _of_the_turns(w, factor, original, slow, fast)
    return _case(f"d{dim}-over-turns", "yarn", params, values, w, kills, blend)


def _yarn_params(dim, base, factor, original, truncate, betas=(32, 1)):
    words = {"beta_fast": float(betas[0]), "beta_slow": float(betas[1])}
    return {"dim": dim, "base": base, "factor": factor, "original_length": original, **words, "truncate": truncate}


def _tables(name, dim, base, factor, *ramp, probe="tables", positions=(0, 1, 100, 48040), kills="", **rest):
    settings = dim, base, factor, *ramp
    positions, w = np.array(positions), _blended(*settings)
    magnitude = mpmath.log(factor) / 10 + 1
    angles = positions[..., None].astype(object) * np.array(w)
    values = magnitude * np.concatenate([np.frompyfunc(f, 1, 1)(angles) for f in (mpmath.cos, mpmath.sin)], axis=-1)
    blend = _of_the_ramp(*settings)
    by = [v * growth(x) + more for v, x, more in zip(w, plain(dim, base), blend, strict=True)]
    phase = magnitude * abs(positions)[..., None] * np.array(by * 2)
    id, cond = f"scaling/yarn_tables/{name}/{probe}", {"phase": phase, "amp": terms(3, 0 * values + magnitude)}
    kills = f"no_magnitude magnitude_squared {'not_truncated' if ramp[1] else 'truncated'} {kills}"
    return case(id, "yarn_tables", _yarn_params(*settings), {"positions": positions}, values, cond, kills, **rest)


def _llama3(name, dim, factor, high, flags):
    base, original, w = 500000.0, 8192, plain(dim, 500000.0)
    given = {"low": mpmath.mpf(1), "high": mpmath.mpf(high), "length": original}
    values = scaled("llama3", w, factor, **given)
    kills = f"unscaled twice every_frequency {flags}"
    edges = {"low_freq_factor": 1.0, "high_freq_factor": high, "original_length": original}
    blend = _of_the_turns(w, factor, original, 1, high) if flags else 0
    return _case(name, "llama3", {"dim": dim, "base": base, "factor": factor, **edges}, values, w, kills, blend)


def _longrope(name="quarters", dim=32, base=10000.0, factors=tuple(1 + t / 4 for t in range(16)), kills=""):
    w, params, tensors = plain(dim, base), {"dim": dim, "base": base}, {"factors": list(factors)}
    values = [v / mpmath.mpf(f) for v, f in zip(w, factors, strict=True)]
    kills = f"unscaled list_reversed factors_multiplied {kills}"
    return _case(name, "longrope", params, values, w, kills, tensors=tensors)


def _proportional(name, dim, base, fraction, factor):
    w, turned = plain(dim, base), int(fraction * dim // 2)
    zeros = [mpmath.mpf(0)] * (dim // 2 - turned)
    values = [v / factor for v in w[:turned]] + zeros
    params = {"dim": dim, "base": base, "fraction": fraction, "factor": factor}
    return _case(name, "proportional", params, values, w, "unscaled partial_rotary")
