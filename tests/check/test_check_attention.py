"""check and diagnose name what a handwritten attention, xPos or latent attention does wrong."""

import numpy as np

from posref import ops, vectors
from posref.check import check, diagnose
from posref.check.call import Caller
from posref.check.engine import Question
from posref.check.tensors import round_to
from tests.every import every


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


def is_mistake(name, settings, fn, mistake):
    """Whether a mistake of the op, asked alone, is the name of what the function gives."""
    op = ops.op(name)
    a = op.make(**settings)
    known = op.mistakes | ops.further(op, a)
    got = Caller(fn, op, None, None, "bhnd", "batch")(a)
    return Question(op, a, ("f32",)).names(got, (mistake, known[mistake]))


BIASED, SINKS, ROWS = ({"scale": 0.25, name: True} for name in ("bias", "sinks", "row_scale"))
ATTENDED = [
    ("scale_ignored", PLAIN, lambda q, k, v, mask: attend(q, k, v, mask, scale=1)),
    ("scale_squared", PLAIN, lambda q, k, v, mask: attend(q, k, v, mask, scale=1 / 16)),
    ("no_mask", PLAIN, lambda q, k, v, mask: attend(q, k, v)),
    ("mask_inverted", PLAIN, lambda q, k, v, mask: attend(q, k, v, ~mask)),
    ("mask_after_softmax", PLAIN, lambda q, k, v, mask: softmax(0.25 * q @ np.swapaxes(k, -1, -2)) * mask @ v),
    ("base_two", PLAIN, lambda q, k, v, mask: attend(q, k, v, mask, scale=0.25 * np.log(2))),
    ("no_bias", BIASED, lambda q, k, v, bias, mask: attend(q, k, v, mask)),
    ("bias_before_scale", BIASED, lambda q, k, v, bias, mask: attend(q, k, v, mask, bias / 4)),
    ("bias_twice", BIASED, lambda q, k, v, bias, mask: attend(q, k, v, mask, bias + bias)),
    ("bias_of_the_first_head", BIASED, lambda q, k, v, bias, mask: attend(q, k, v, mask, bias[:1])),
    ("cap_left_out", GEMMA, lambda q, k, v, bias, mask: attend(q, k, v, mask, bias)),
    ("cap_without_division", GEMMA, lambda *x, mask: attend(*x[:3], mask, x[3], cap=lambda s: 2.5 * np.tanh(s))),
    ("cap_without_factor", GEMMA, lambda *x, mask: attend(*x[:3], mask, x[3], cap=lambda s: np.tanh(s / 2.5))),
    ("cap_before_scale", GEMMA, lambda *x, mask: attend(*x[:3], mask, x[3], scale=1, cap=lambda s: gemma(s) / 4)),
    ("cap_after_bias", GEMMA, lambda q, k, v, bias, mask: attend(q, k, v, mask, cap=lambda s: gemma(s + bias))),
    ("cap_after_mask", GEMMA, lambda q, k, v, bias, mask: attend(q, k, v, mask, bias, cap=gemma, low=-2.5)),
    ("sink_left_out", SINKS, lambda q, k, v, mask, sinks: attend(q, k, v, mask)),
    ("sink_of_zero", SINKS, lambda q, k, v, mask, sinks: attend(q, k, v, mask, sinks=0 * sinks)),
    ("sink_of_the_first_head", SINKS, lambda q, k, v, mask, sinks: attend(q, k, v, mask, sinks=0 * sinks + sinks[0])),
    ("sink_scaled", SINKS, lambda q, k, v, mask, sinks: attend(q, k, v, mask, sinks=sinks / 4)),
    ("heads_tiled", PLAIN | {"heads": 4, "key_heads": 2}, lambda q, k, v, mask: attend(q, k, v, mask, repeat=tile)),
    ("row_scale_left_out", ROWS, lambda q, k, v, mask, rows: attend(q, k, v, mask)),
]


@every(ATTENDED, name=lambda case: case[0])
def test_the_mistakes_of_attention_are_what_they_say(name, settings, wrong):
    assert is_mistake("attention.attend", settings, wrong, name)


def test_who_masks_what_was_asked_as_well_is_right():
    """The question says causal, and so may the function: no mask of it shows keys after the query."""

    def fn(q, k, v, query_positions, key_positions, mask):
        q, k = (turned(x, positions) for x, positions in ((q, query_positions), (k, key_positions)))
        back = query_positions[:, None, :, None] - key_positions[:, None, None, :]
        mask = mask & (back >= 0) & (back < 3)
        return np.where(mask.any(-1)[..., None], attend(q, k, v, mask), 0)

    def turned(x, positions):
        angle = positions[:, None, :, None] * 10000.0 ** (-np.arange(8) / 8)
        a, b = np.split(x, 2, axis=-1)
        return np.concatenate([a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)], axis=-1)

    asked = {"dim": 16, "layout": "half", "scale": 0.25, "causal": True, "window": 3}
    check(fn, "rope.attend", **asked).require()


def test_a_position_that_ends_has_no_name_that_the_first_output_refutes():
    """Positions clamped far out look like positions divided by a thousand, which nearer ones are not."""
    right = ops.op("rope.attend").spec

    def fn(q, k, v, query_positions, key_positions, mask):
        at = (np.minimum(positions, 8191) for positions in (query_positions, key_positions))
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


def by_offset(q, k, v, *, shift=None, width=3):
    n_query, n_key = q.shape[2], k.shape[2]
    back = np.arange(n_query)[:, None] + (n_key - n_query if shift is None else shift) - np.arange(n_key)
    seen = (back >= 0) & (back < width)
    return np.where(seen.any(-1)[:, None], attend(q, k, v, seen), 0)


def test_windows():
    wrong = check(lambda q, k, v: by_offset(q, k, v, width=4), "attention.attend_by_offset", scale=0.25, window=3)
    assert "window_one_more" in names(wrong), wrong
    wrong = check(lambda q, k, v: by_offset(q, k, v, shift=0, width=999), "attention.attend_by_offset", scale=0.25)
    assert "causal_left_aligned" in names(wrong), wrong


def test_gradients():
    def backward(flow, q, k, v, mask, *, of, centered=True, scale=0.25):
        weights = softmax(np.where(mask, 0.25 * q @ np.swapaxes(k, -1, -2), -1e9))
        ds = flow @ np.swapaxes(v, -1, -2)
        ds = weights * (ds - centered * (weights * ds).sum(-1, keepdims=True))
        return scale * ds @ k if of == "q" else scale * np.swapaxes(ds, -1, -2) @ q

    wrong = check(lambda *x, of: backward(*x, of=of, scale=1), "attention.attend_gradient", scale=0.25, of="k")
    assert "gradient_unscaled" in names(wrong), wrong
    wrong = check(lambda *x, of: backward(*x, of=of, centered=False), "attention.attend_gradient", scale=0.25, of="q")
    assert "row_sum_left_out" in names(wrong), wrong


def test_a_dump_with_an_empty_row():
    case = vectors.case("attention/attend/h2-d4/left-padding")
    x = case.tensors
    got = attend(x["q"], x["k"], x["v"], x["seen"] != 0, scale=case.params["scale"])
    assert names(diagnose(case, got)) == ["empty_row_uniform"]


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

    for name, own in {
        "each_by_its_width": (0.25 * (10 / 6) ** 0.5, 0.25 * (10 / 4) ** 0.5),
        "scale_of_the_content": (0.25 * (10 / 6) ** 0.5,) * 2,
    }.items():
        report = check(lambda *x, own=own: latent(*x, own=own), "decoupled.attend", scale=0.25)
        assert name in names(report), (name, str(report))
