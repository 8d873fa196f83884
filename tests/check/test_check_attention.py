"""check and diagnose name what a handwritten attention, xPos or latent attention does wrong."""

import numpy as np
import pytest

from posref import ops, vectors
from posref.check import check, diagnose
from posref.check.tensors import round_to


def softmax(s):
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attend(q, k, v, mask=None, bias=0.0, sinks=None, rows=1.0, *, scale=0.25, cap=lambda s: s, low=-1e9, repeat=np.repeat):
    """Scores, cap, bias, mask, sink as one column more."""
    k, v = (repeat(x, q.shape[1] // x.shape[1], 1) for x in (k, v))
    s = cap(scale * q @ np.swapaxes(k, -1, -2) * np.reshape(rows, (-1, 1))) + bias
    s = s if mask is None else np.where(mask, s, low)
    if sinks is None:
        return softmax(s) @ v
    column = np.broadcast_to(sinks[:, None, None], (*s.shape[:-1], 1))
    return softmax(np.concatenate([s, column], -1))[..., :-1] @ v


def tile(x, count, axis):
    return np.concatenate([x] * count, axis)


def names(report):
    return [finding.name for finding in report.diagnosis]


def gemma(s):
    return 2.5 * np.tanh(s / 2.5)


PLAIN = {"scale": 0.25}
GEMMA = {"scale": 0.25, "softcap": 2.5, "bias": True}


@pytest.mark.parametrize(
    ("settings", "right", "wrongs"),
    [
        (
            PLAIN,
            lambda q, k, v, mask: attend(q, k, v, mask),
            {
                "scale_ignored": lambda q, k, v, mask: attend(q, k, v, mask, scale=1),
                "scale_squared": lambda q, k, v, mask: attend(q, k, v, mask, scale=1 / 16),
                "no_mask": lambda q, k, v, mask: attend(q, k, v),
                "mask_inverted": lambda q, k, v, mask: attend(q, k, v, ~mask),
                "mask_after_softmax": lambda q, k, v, mask: softmax(0.25 * q @ np.swapaxes(k, -1, -2)) * mask @ v,
                "base_two": lambda q, k, v, mask: attend(q, k, v, mask, scale=0.25 * np.log(2)),
            },
        ),
        (
            PLAIN | {"bias": True},
            lambda q, k, v, bias, mask: attend(q, k, v, mask, bias),
            {
                "no_bias": lambda q, k, v, bias, mask: attend(q, k, v, mask),
                "bias_before_scale": lambda q, k, v, bias, mask: attend(q, k, v, mask, bias / 4),
                "bias_twice": lambda q, k, v, bias, mask: attend(q, k, v, mask, bias + bias),
                "bias_of_the_first_head": lambda q, k, v, bias, mask: attend(q, k, v, mask, bias[:1]),
            },
        ),
        (
            GEMMA,
            lambda q, k, v, bias, mask: attend(q, k, v, mask, bias, cap=gemma),
            {
                "cap_left_out": lambda q, k, v, bias, mask: attend(q, k, v, mask, bias),
                "cap_without_division": lambda q, k, v, bias, mask: attend(q, k, v, mask, bias, cap=lambda s: 2.5 * np.tanh(s)),
                "cap_without_factor": lambda q, k, v, bias, mask: attend(q, k, v, mask, bias, cap=lambda s: np.tanh(s / 2.5)),
                "cap_before_scale": lambda q, k, v, bias, mask: attend(
                    q, k, v, mask, bias, scale=1, cap=lambda s: gemma(s) / 4
                ),
                "cap_after_bias": lambda q, k, v, bias, mask: attend(q, k, v, mask, cap=lambda s: gemma(s + bias)),
                "cap_after_mask": lambda q, k, v, bias, mask: attend(q, k, v, mask, bias, cap=gemma, low=-2.5),
            },
        ),
        (
            PLAIN | {"sinks": True},
            lambda q, k, v, mask, sinks: attend(q, k, v, mask, sinks=sinks),
            {
                "sink_left_out": lambda q, k, v, mask, sinks: attend(q, k, v, mask),
                "sink_of_zero": lambda q, k, v, mask, sinks: attend(q, k, v, mask, sinks=0 * sinks),
                "sink_of_the_first_head": lambda q, k, v, mask, sinks: attend(
                    q, k, v, mask, sinks=np.repeat(sinks[:1], len(sinks))
                ),
                "sink_scaled": lambda q, k, v, mask, sinks: attend(q, k, v, mask, sinks=sinks / 4),
            },
        ),
        (
            PLAIN | {"heads": 4, "key_heads": 2},
            lambda q, k, v, mask: attend(q, k, v, mask),
            {"heads_tiled": lambda q, k, v, mask: attend(q, k, v, mask, repeat=tile)},
        ),
        (
            PLAIN | {"row_scale": True},
            lambda q, k, v, mask, rows: attend(q, k, v, mask, rows=rows),
            {"row_scale_left_out": lambda q, k, v, mask, rows: attend(q, k, v, mask)},
        ),
    ],
    ids=["plain", "bias", "softcap", "sinks", "grouped", "row_scale"],
)
def test_attend(settings, right, wrongs):
    check(right, "attention.attend", **settings).require()
    for name, wrong in wrongs.items():
        report = check(wrong, "attention.attend", **settings)
        assert name in names(report), (name, str(report))


@pytest.mark.parametrize("window", [None, 3])
def test_who_masks_what_was_asked_as_well_is_right(window):
    """The question says causal, and so may the function: no mask of it shows keys after the query."""

    def fn(q, k, v, query_positions, key_positions, mask):
        q, k = (turned(x, positions) for x, positions in ((q, query_positions), (k, key_positions)))
        back = query_positions[:, None, :, None] - key_positions[:, None, None, :]
        mask = mask & (back >= 0) & (back < (window or np.inf))
        return np.where(mask.any(-1)[..., None], attend(q, k, v, mask), 0)

    def turned(x, positions):
        angle = positions[:, None, :, None] * 10000.0 ** (-np.arange(8) / 8)
        a, b = np.split(x, 2, axis=-1)
        return np.concatenate([a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)], axis=-1)

    asked = {"dim": 16, "layout": "half", "scale": 0.25, "causal": True} | ({"window": window} if window else {})
    check(fn, "rope.attend", **asked).require()


@pytest.mark.parametrize("last", [8191, 12000])
def test_a_position_that_ends_has_no_name_that_the_first_output_refutes(last):
    """Positions clamped far out look like positions divided by a thousand, which nearer ones are not."""
    right = ops.op("rope.attend").spec

    def fn(q, k, v, query_positions, key_positions, mask):
        at = (np.minimum(positions, last) for positions in (query_positions, key_positions))
        return right(q, k, v, *at, mask, dim=64, layout="half", scale=0.125)

    report = check(fn, "rope.attend", dim=64, layout="half", scale=0.125, heads=4, key_heads=2)
    assert not report.ok
    assert not any(name.startswith("positions_whole") for name in names(report)), report


def test_a_scale_near_the_right_one_is_no_name_in_16_bits():
    """0.13 for 0.125: two of 640 elements are beyond the bound, and 0.1337 would fit them as well."""
    case = vectors.case("rope/half/d64-b1e4/attend-prefill")
    a = ops.of_case(case)[1]
    got = ops.op("rope.attend").spec(**a | {"scale": 0.13})
    report = diagnose(case, round_to(got, "bfloat16"), dtype="bfloat16")
    assert not report.ok
    assert not names(report), report
    assert "softmax over the row" not in str(report)


def by_offset(q, k, v, *, ahead=0, shift=None, width=3):
    n_query, n_key = q.shape[2], k.shape[2]
    back = np.arange(n_query)[:, None] + (n_key - n_query if shift is None else shift) - np.arange(n_key)
    seen = (back >= -ahead) & (back < width)
    out = attend(q, k, v, seen)
    return np.where(seen.any(-1)[:, None], out, 0)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("window_one_more", {"width": 4}),
        ("window_one_less", {"width": 2}),
        ("window_ignored", {"width": 99}),
        ("sees_one_ahead", {"ahead": 1}),
        ("causal_strict", {"ahead": -1}),
    ],
)
def test_windows(name, change):
    settings = {"scale": 0.25, "window": 3}
    check(by_offset, "attention.attend_by_offset", **settings).require()
    assert name in names(check(lambda q, k, v: by_offset(q, k, v, **change), "attention.attend_by_offset", **settings))


def test_alignment_at_the_start():
    settings = {"scale": 0.25}
    wrong = check(lambda q, k, v: by_offset(q, k, v, shift=0, width=999), "attention.attend_by_offset", **settings)
    assert "causal_left_aligned" in names(wrong), wrong


def test_gradients():
    def backward(flow, q, k, v, mask, *, of, centered=True, scale=0.25):
        weights = softmax(np.where(mask, 0.25 * q @ np.swapaxes(k, -1, -2), -1e9))
        ds = flow @ np.swapaxes(v, -1, -2)
        ds = weights * (ds - centered * (weights * ds).sum(-1, keepdims=True))
        columns, by_key = np.swapaxes(ds, -1, -2), np.swapaxes(weights, -1, -2)
        return {"q": scale * ds @ k, "k": scale * columns @ q, "v": by_key @ flow, "bias": ds}[of]

    for of in ("q", "k", "v", "bias"):
        check(backward, "attention.attend_gradient", scale=0.25, of=of).require()
    wrong = check(lambda *x, of: backward(*x, of=of, scale=1), "attention.attend_gradient", scale=0.25, of="k")
    assert "gradient_unscaled" in names(wrong), wrong
    wrong = check(lambda *x, of: backward(*x, of=of, centered=False), "attention.attend_gradient", scale=0.25, of="q")
    assert "row_sum_left_out" in names(wrong), wrong


def test_a_dump_with_an_empty_row():
    case = vectors.case("attention/attend/h2-d4/left-padding")
    x = case.tensors
    got = attend(x["q"], x["k"], x["v"], x["seen"] != 0, scale=case.params["scale"])
    assert names(diagnose(case, got)) == ["empty_row_uniform"]


def test_one_text_at_once_in_chunks_and_in_steps():
    whole = vectors.case("attention/by-offset/h1-d2-w64/prefill").expected
    for probe, rows in (("chunk", slice(60, 70)), ("step", slice(69, 70)), ("full-window", slice(63, 64))):
        assert np.array_equal(vectors.case(f"attention/by-offset/h1-d2-w64/{probe}").expected, whole[:, rows])


def spread(x, positions, *, scale_base=512):
    """xPos of a query around 40, by complex numbers, interleaved pairs."""
    t = np.arange(x.shape[-1] // 2) * 2 / x.shape[-1]
    m = positions[:, None, :, None]
    z = (x[..., 0::2] + 1j * x[..., 1::2]) * np.exp(1j * m * 1e4**-t) * ((t + 0.4) / 1.4) ** ((m - 40) / scale_base)
    return np.stack([z.real, z.imag], -1).reshape(x.shape)


def test_xpos():
    asked = {"dim": 8, "layout": "interleaved", "center": 40, "positions": "shared"}

    def at(x, m, **change):
        return spread(x, np.broadcast_to(m, (len(x), x.shape[2])), **change)

    check(at, "xpos.rotate", side="query", **asked).require()
    assert "both_multiplied" in names(check(at, "xpos.rotate", side="key", **asked))
    unscaled = check(lambda x, m: at(x, m, scale_base=1e99), "xpos.rotate", side="query", **asked)
    assert "unscaled" in names(unscaled)


def test_decoupled():
    def latent(q, q_turned, k, k_turned, v, mask, *, own=(0.25, 0.25)):
        s = own[0] * q @ np.swapaxes(k, -1, -2) + own[1] * q_turned @ np.swapaxes(k_turned, -1, -2)
        return softmax(np.where(mask, s, -1e9)) @ v

    check(latent, "decoupled.attend", scale=0.25).require()
    for name, own in {
        "each_by_its_width": (0.25 * (10 / 6) ** 0.5, 0.25 * (10 / 4) ** 0.5),
        "scale_of_the_content": (0.25 * (10 / 6) ** 0.5,) * 2,
        "turned_unscaled": (0.25, 1),
        "content_alone": (0.25, 0),
        "scale_squared": (1 / 16, 1 / 16),
    }.items():
        report = check(lambda *x, own=own: latent(*x, own=own), "decoupled.attend", scale=0.25)
        assert name in names(report), (name, str(report))
