"""Schedules asked for by name, and those that somebody else's frequencies are. The implementations are loops over pairs."""

import math

import numpy as np
import pytest

from posref.check import check, check_rope

f32 = np.float32
DIM = 64
LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_length": 8192}
GPT_OSS = {"factor": 32.0, "original_length": 4096, "truncate": False}


def turned(theta):
    def rotate(x, positions):
        angle, (a, b) = positions[:, None, :, None].astype(f32) * f32(theta), np.split(x, 2, axis=-1)
        return np.concatenate([a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)], axis=-1)

    return rotate


def plain(base, dim=DIM):
    return [base ** (-2 * t / dim) for t in range(dim // 2)]


def linear(base, factor):
    return [w / factor for w in plain(base)]


def ntk(base, factor):
    return plain(base * factor ** (DIM / (DIM - 2)))


def llama3(base, factor, low, high, length, theta=None):
    """Meta's loop."""
    found = []
    for w in theta or plain(base):
        wavelength = 2 * math.pi / w
        if wavelength < length / high:
            found.append(w)
        elif wavelength > length / low:
            found.append(w / factor)
        else:
            smooth = (length / wavelength - low) / (high - low)
            found.append((1 - smooth) * w / factor + smooth * w)
    return found


def yarn(base, factor, length, truncate, fast=32, slow=1, of=None):
    low, high = (DIM * math.log(length / (turns * 2 * math.pi)) / (2 * math.log(of or base)) for turns in (fast, slow))
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, DIM - 1)
    shares = [min(1, max(0, (t - low) / (high - low))) for t in range(DIM // 2)]
    return [w * (1 - share) + w / factor * share for w, share in zip(plain(base), shares, strict=True)]


ASKED = {
    "linear": (linear(1e4, 4), {"base": 1e4, "factor": 4.0}),
    "ntk": (ntk(1e4, 4), {"base": 1e4, "factor": 4.0}),
    "dynamic_ntk": (ntk(1e4, 5), {"base": 1e4, "factor": 4.0, "length": 4096, "original_length": 2048}),  # 4 * 2 - 3 is 5
    "llama3": (llama3(5e5, 8, 1, 4, 8192), {"base": 5e5, **LLAMA3}),
    "yarn": (yarn(15e4, 32, 4096, False), {"base": 15e4, **GPT_OSS}),
    "longrope": ([w / (1 + t) for t, w in enumerate(plain(1e4))], {"factors": [1.0 + t for t in range(DIM // 2)]}),
    "proportional": ([*plain(1e4)[:8], *[0.0] * 24], {"fraction": 0.25}),
}


def by_wavelength(base, factor, length, fast, slow):
    kept = [min(max((length / slow - 2 * math.pi / w) / (length / slow - length / fast), 0), 1) for w in plain(base)]
    return [share * w + (1 - share) * w / factor for share, w in zip(kept, plain(base), strict=True)]


def mixed(base, other, factor, low, high, length):
    """A schedule whose kept frequencies have another base."""
    shares = [
        (v * factor / w - 1) / (factor - 1) for v, w in zip(llama3(base, factor, low, high, length), plain(base), strict=True)
    ]
    return [w / factor * (1 - s) + v * s for w, v, s in zip(plain(base), plain(other), shares, strict=True)]


def named(theta, **asked):
    report = check_rope(turned(theta), dim=DIM, layout="half", **asked)
    assert not report.ok
    return [finding.name for finding in report.diagnosis]


def test_exchanged_betas_turn_the_ramp_round_and_round_its_edges_otherwise():
    asked = {"base": 15e4} | GPT_OSS | {"truncate": True}
    assert named(yarn(15e4, 32, 4096, True, 1, 32), schedule="yarn", **asked) == ["betas_for_each_other"]


@pytest.mark.parametrize("schedule", ASKED)
def test_asked_by_name(schedule):
    theta, settings = ASKED[schedule]
    report = check_rope(turned(theta), dim=DIM, layout="half", schedule=schedule, **settings)
    assert report.ok, report
    assert f"frequencies: {schedule}(base=" in report.subject


@pytest.mark.parametrize(
    ("name", "theta", "schedule"),
    [
        ("unscaled", plain(15e4), "yarn"),
        ("truncated", yarn(15e4, 32, 4096, True), "yarn"),
        ("every_frequency", linear(15e4, 32), "yarn"),
        ("no_blend", llama3(5e5, 8, 3.999999, 4, 8192), "llama3"),
        ("at_its_longest", ntk(1e4, 13), "dynamic_ntk"),
        ("partial_rotary", [*plain(1e4, 16), *[0.0] * 24], "proportional"),
        ("schedule yarn", yarn(5e5, 8, 8192, True), "llama3"),
        ("pairs_still", [*plain(1e4)[:5], *[0.0] * 27], "proportional"),
        ("inverted", yarn(15e4, 1 / 32, 4096, False), "yarn"),
        ("ramp_upside_down", [w + w / 8 - v for w, v in zip(plain(5e5), llama3(5e5, 8, 1, 4, 8192), strict=True)], "llama3"),
        ("llama3_twice", llama3(5e5, 8, 1, 4, 8192, llama3(5e5, 8, 1, 4, 8192)), "llama3"),
        ("ramp_over_wavelengths", by_wavelength(15e4, 32, 4096, 32, 1), "yarn"),
        ("range_of_base_10000", yarn(15e4, 32, 4096, False, of=1e4), "yarn"),
        (
            "blend_reversed",
            [w + w / 8 - v if v not in (w, w / 8) else v for w, v in zip(plain(5e5), llama3(5e5, 8, 1, 4, 8192), strict=True)],
            "llama3",
        ),
        ("factor 4", yarn(15e4, 4, 4096, False), "yarn"),
        ("original_length 131072", yarn(15e4, 32, 131072, False), "yarn"),
        ("range_of_2_widths", yarn(15e4, 32, 4096, False, of=15e4**0.5), "yarn"),
        ("frequencies_in_groups_of_2", [w for w in yarn(15e4, 32, 4096, False)[::2] for _ in range(2)], "yarn"),
        ("base_10000_where_the_schedule_keeps", mixed(5e5, 1e4, 8, 1, 4, 8192), "llama3"),
        ("base_4.27752e+06_where_the_schedule_keeps", mixed(5e5, 5e5 * 8 ** (64 / 62), 8, 1, 4, 8192), "llama3"),
    ],
)
def test_mistakes_beside_a_schedule(name, theta, schedule):
    assert named(theta, schedule=schedule, **ASKED[schedule][1]) == [name]


@pytest.mark.parametrize(
    ("name", "theta", "base"),
    [
        ("schedule llama3", llama3(5e5, 32, 1, 4, 8192), 1e4),
        ("schedule yarn", yarn(15e4, 32, 4096, False), 15e4),
        ("schedule ntk", ntk(1e4, 4), 1e4),
        ("pairs_still", [*plain(1e4)[:8], *[0.0] * 24], 1e4),
        ("first_16_frequencies_again", 2 * plain(1e4)[:16], 1e4),
        ("ratio_in_float16", [float(np.float16(5e5 ** (-1 / 32))) ** t for t in range(32)], 5e5),
        ("products_in_float16", np.multiply.accumulate(np.float16([1, *[1e4 ** (-1 / 32)] * 31])), 1e4),
    ],
)
def test_schedules_where_none_is_asked(name, theta, base):
    assert named(theta, base=base) == [name]


def test_a_static_schedule_is_called_that_and_not_another_length():
    fixed = check(lambda dim: np.float32(ntk(1e4, 4)), "scaling.dynamic_ntk", dim=DIM, **ASKED["dynamic_ntk"][1])
    assert [finding.name for finding in fixed.diagnosis] == ["factor_alone"]
    assert "length=" not in fixed.diagnosis[0].sentence


def following(longest):
    """Frequencies of dynamic NTK with factor 2 for each text, or for the longest one of a list until now."""

    def rotate(x, p):
        lengths = [*longest, int(p.max()) + 1] if longest else [int(p.max()) + 1]
        longest[:] = longest and [max(lengths)]
        return turned(ntk(1e4, 2 * max(2048, *lengths, 0) / 2048 - 1))(x, p)

    return rotate


@pytest.mark.parametrize("length", [{}, {"length": 4096}], ids=str)
def test_frequencies_that_follow_the_length_are_right_with_or_without_a_length(length):
    asked = {"dim": DIM, "layout": "half", "schedule": "dynamic_ntk", "factor": 2.0, "original_length": 2048, **length}
    right = check_rope(following([]), **asked)
    assert right.ok, right
    assert any("follow that of each text" in line for line in right.ambiguous) == bool(length)
    if not length:
        assert [each.name for each in check_rope(following([2048]), **asked).diagnosis] == ["longest_length_kept"]
    assert check_rope(turned(ntk(1e4, 3)), **asked).ok == bool(length)


def narrow(width, over):
    """The first features turn, with the exponent over another width."""
    theta = [1e4 ** (-2 * t / over) for t in range(width // 2)]
    return lambda x, p: np.concatenate([turned(theta)(x[..., :width], p), x[..., width:]], axis=-1)


@pytest.mark.parametrize("dim", [24, pytest.param(128, marks=pytest.mark.slow)])
def test_fewer_features_turn_than_asked(dim):
    """The base is that of the width that turns, or of the one that was asked, and no power of it, such as 1e32 for 1e4."""
    asked = [{"schedule": "llama3", "base": 5e5, **LLAMA3}, {"frequencies": plain(1e4, dim)}, {"base": 5e5}]
    for settings, name in zip(asked, ("wrong_base 10000", "exponent_dim 16", "wrong_base 10000"), strict=True):
        report = check_rope(narrow(16, 16), dim=dim, layout="half", **settings)
        assert [finding.name for finding in report.diagnosis] == [f"rotary_dim 16 and {name}"], report
    report = check_rope(narrow(16, dim), dim=dim, layout="half", **asked[1])
    assert [finding.name for finding in report.diagnosis] == ["rotary_dim 16"], report
    report = check_rope(narrow(8, 16), dim=dim, rotary_dim=16, layout="half")  # as is: base 100 over 8 features
    assert [finding.name for finding in report.diagnosis] == ["rotary_dim 8 and exponent_dim 16"], report


def test_no_base_is_offered_that_nobody_would_choose():
    steep = check(lambda dim: np.float32(plain(1e16)), "rope.inv_freq", dim=DIM)
    assert not steep.diagnosis, steep
    chosen = check(lambda dim: np.float32(plain(1e11)), "rope.inv_freq", dim=DIM)
    assert [finding.name for finding in chosen.diagnosis] == ["wrong_base 1e+11"], chosen


@pytest.mark.parametrize(
    ("theta", "words"),
    [
        (llama3(5e5, 8, 1, 4, 8192), "frequencies: llama3(base=500000, factor=8, original_length=8192,"),
        (yarn(15e4, 32, 4096, False), "frequencies: yarn(base=150000, factor=32, original_length=4096, truncate=False)"),
        (ntk(1e4, 4), "frequencies: ntk(base=10000, factor=4)"),
        (linear(1e4, 4), "frequencies: linear(base=10000, factor=4)"),
        ([*plain(1e4)[:8], *[0.0] * 24], "frequencies: proportional(base=10000, fraction=0.25, factor=1)"),
        ([1 / (1 + t) for t in range(32)], ""),
    ],
)
def test_given_frequencies_that_are_a_known_schedule(theta, words):
    report = check_rope(turned(theta), dim=DIM, layout="half", frequencies=np.array(theta, dtype=f32))
    assert report.ok, report
    assert words in report.subject
    assert words or "frequencies:" not in report.subject


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"schedule": "ntkk"}, "schedule is 'ntkk', expected one of 'linear'"),
        ({"schedule": "dynamic_ntk", "factor": 0.5, "original_length": 8}, "^scaling.dynamic_ntk: factor is 0.5, expected a f"),
        ({"schedule": "dynamic_ntk", "factor": 2.0}, "dynamic_ntk needs original_length; it takes factor, length, orig"),
        ({"schedule": "yarn", "factor": 4.0, "original_length": 64}, "schedule yarn needs truncate; it takes factor"),
        ({"schedule": "linear", "factor": 4.0, "beta": 1}, "schedule linear has no beta; it takes factor"),
        ({"factor": 4.0}, "there is no factor="),
        ({"schedule": "longrope", "factors": [1.0, 2.0]}, "factors"),
        ({"schedule": "llama3", **LLAMA3 | {"low_freq_factor": 5.0}}, "low_freq_factor is 5.0 and high_freq_factor 4.0"),
        ({"schedule": "linear", "factor": 4.0, "frequencies": [1.0] * 32}, "leave out frequencies"),
        ({"schedule": "linear", "factor": 4.0, "exponent_dim": 128}, "exponent_dim"),
    ],
)
def test_schedules_that_make_no_sense(options, match):
    with pytest.raises((TypeError, ValueError), match=match):
        check_rope(turned(plain(1e4)), dim=DIM, layout="half", **options)


def test_an_exponent_beside_a_schedule_is_told_from_a_base():
    report = check_rope(turned(llama3(25e10, 8, 1, 4, 8192)), dim=DIM, layout="half", schedule="llama3", base=5e5, **LLAMA3)
    assert "base 2.5e+11, the same as the exponent 4t/dim, in the schedule; you asked for base=500000" in str(report)


@pytest.mark.parametrize(("slow", "advice"), [(8, "is a scaling for long context"), (1 / 8, "Compare your frequencies with")])
def test_advice_on_frequencies_is_about_their_ratios(slow, advice):
    """Slow pairs that are divided are those of a schedule; others are not."""
    theta = [w if t < 13 else w / slow ** min(1, (t - 12) / 7) for t, w in enumerate(plain(1e4))]
    report = check_rope(turned(theta), dim=DIM, layout="half")
    assert [finding.name for finding in report.diagnosis] == ["other_frequencies"]
    assert advice in report.diagnosis[0].remedy
    (found,) = check_rope(turned(theta), dim=DIM, layout="half", schedule="llama3", base=1e4, **LLAMA3).diagnosis
    assert "ask for it or remove it" not in found.remedy


@pytest.mark.parametrize(("schedule", "factor"), [("yarn", "0.1 ln(factor) + 1"), (None, "The rotation asked for keeps norms")])
def test_advice_on_a_magnitude_is_about_what_was_asked(schedule, factor):
    """Where a magnitude is asked for, it is of YaRN or of LongRoPE; where none is, it goes."""
    theta, settings = ASKED["yarn"] if schedule else (plain(1e4), {})
    asked = {"schedule": schedule, "magnitude": 1.1} if schedule else {}
    report = check_rope(lambda x, positions: 1.3 * turned(theta)(x, positions), dim=DIM, layout="half", **asked, **settings)
    assert factor in str(report.advice)
    assert not schedule or "LongRoPE sqrt(1 + ln(factor) / ln(original_length))" in str(report.advice)
