"""check: implementations of any op, right and wrong, in other axes, on a device, with gradients; none imports posref.ops."""

import inspect
import re

import numpy as np
import pytest

from posref import ops
from posref.absolute import floater
from posref.check import check, contract, engine, implementation, verdict
from posref.check.report import Report
from posref.check.stages import positions
from posref.check.stages.later_questions import features
from posref.check.wrong_elements import columns, untouched, where
from posref.explain import explain, presets, sources
from posref.relative import alibi, sandwich
from posref.rotary import axes, rope, scaling
from tests import own
from tests.every import every
from tests.ops.test_ops import settings


def published_slopes(heads):
    """Press et al., as their code writes it."""
    if heads & (heads - 1) == 0:
        start = 2.0 ** (-8.0 / heads)
        return [start ** (a + 1) for a in range(heads)]
    power = 1 << (heads.bit_length() - 1)
    return published_slopes(power) + published_slopes(2 * power)[0::2][: heads - power]


def distances(queries, keys):
    return keys[..., None, None, :] - queries[..., None, :, None]


def bias(queries, keys, slopes=None):
    slopes = np.float32(published_slopes(12) if slopes is None else slopes)
    return slopes[:, None, None] * distances(queries, keys).astype(np.float32)


def names(report):
    return [finding.name for finding in report.diagnosis]


def test_right():
    report = check(bias, "alibi.bias", heads=12, form="signed")
    assert report.ok, report
    assert "n_query=33, n_key=33" in str(report)


def test_what_is_no_mistake_of_the_list_is_not_named():
    report = check(lambda i, j: bias((i + 8) // 16 * 16 if i.max() > 4096 else i, j), "alibi.bias", heads=12, form="signed")
    assert (report.ok, names(report)) == (False, []), report


def test_of_mistakes_with_one_other_shape_the_right_one_is_named():
    """64 frequencies for 45: those of RoPE, and not what base 10000 would keep of its own."""
    wrong = check(lambda: 5e6 ** (-np.arange(64) / 64), preset="intern_s1_pro")
    assert names(wrong) == ["all_frequencies"], wrong
    assert "the output has shape (64,), expected (45,)" in str(wrong)


def mixed(pad, heads=lambda each: each):
    """FoPE as released code computes it, in float32: matrices of `heads`, sin padded with `pad`."""

    def rotate(x, positions, cos_coef, sin_coef):
        w = np.float32(1e4) ** (-np.arange(cos_coef.shape[1], dtype=np.float32) / np.float32(8))
        angle = np.float32(positions)[:, None, :, None] * w
        cos, sin = np.cos(angle) @ np.float32(heads(cos_coef)), np.sin(angle) @ np.float32(heads(sin_coef))
        cos, sin = (np.pad(y, [(0, 0)] * 3 + [(0, 5)], constant_values=rest) for y, rest in ((cos, 1), (sin, pad)))
        half = np.concatenate([-x[..., 8:], x[..., :8]], axis=-1)
        return np.float32(x * np.tile(cos, 2) + half * np.tile(sin, 2))

    return rotate


def test_fope():
    asked = {"dim": 16, "length": 64, "convention": "released"}
    check(mixed(1), "fope.rotate", **asked).require()
    assert names(check(mixed(0), "fope.rotate", **asked)) == ["other_padding"]
    first = mixed(1, lambda each: np.broadcast_to(each[:1], each.shape))
    assert names(check(first, "fope.rotate", **asked)) == ["of_the_first_head"]


def polar(length=lambda x: np.logaddexp(0, x), clamp=lambda phases: np.clip(phases, -2 * np.pi, 0)):
    """PoPE's keys as x-transformers computes them, in float32."""

    def keys(x, positions, phases):
        w = np.float32(1e4) ** (-np.arange(6, dtype=np.float32) / np.float32(6))
        angle = np.float32(positions)[:, None, :, None] * w + np.float32(clamp(phases))[:, None]
        sizes = np.float32(length(np.float32(x)))
        return np.concatenate([sizes * np.cos(angle), sizes * np.sin(angle)], axis=-1)

    return keys


@pytest.mark.parametrize(
    ("named", "fn"),
    [
        ([], polar()),
        (["relu"], polar(length=lambda x: np.maximum(x, 0))),
        (["phases_not_clamped"], polar(clamp=lambda phases: phases)),
        (["no_phases"], polar(clamp=np.zeros_like)),
    ],
)
def test_pope(named, fn):
    report = check(fn, "pope.encode", dim=6, layout="half", side="key")
    assert names(report) == named, report
    assert report.ok == (not named), report


def test_two_mistakes_at_once():
    report = check(lambda i, j: -bias(i, j, sorted(published_slopes(12), reverse=True)), "alibi.bias", heads=12, form="signed")
    assert names(report) == ["sorted_slopes and sign"], report


def rotate(x, positions, theta=None):
    width = x.shape[-1] // 2
    theta = np.float32(10000.0 ** (-np.arange(width) / width)) if theta is None else theta
    angle = positions[:, None, :, None].astype(np.float32) * theta
    a, b = x[..., :width], x[..., width:]
    cos, sin = np.cos(angle), np.sin(angle)
    return np.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)


ROPE = {"dim": 16, "layout": "half"}


def other_axes(fn, to, back):
    return lambda x, positions: to(fn(back(x), positions))


def test_axes_of_kernels():
    rows_first = other_axes(rotate, lambda y: np.swapaxes(y, 1, 2), lambda x: np.swapaxes(x, 1, 2))
    check(rows_first, "rope.rotate", axes="bnhd", **ROPE).require()

    def packed(x, positions):
        y = rotate(np.swapaxes(x[None], 1, 2), positions[None])
        return np.swapaxes(y, 1, 2)[0]

    check(packed, "rope.rotate", axes="thd", **ROPE).require()
    with pytest.raises(ValueError, match="axes is 'hbnd', expected one of 'bhnd', 'bnhd', 'thd'"):
        check(rotate, "rope.rotate", axes="hbnd", **ROPE)


def test_libraries_with_ranges_and_offsets():
    def ranged(x):
        return rotate(x, np.broadcast_to(np.arange(x.shape[2]), (len(x), x.shape[2])))

    def offset(x, start):
        return rotate(x, np.broadcast_to(start + np.arange(x.shape[2]), (len(x), x.shape[2])))

    check(ranged, "rope.rotate", positions="range", **ROPE).require()
    check(offset, "rope.rotate", positions="offset", **ROPE).require()
    forgotten = check(lambda x, start: ranged(x), "rope.rotate", positions="offset", **ROPE)
    assert "positions_ignored" in names(forgotten), forgotten


def said(report, name):
    return [(c.status, c.detail) for c in report.checks if c.name == name]


def test_positions_before_0_and_other_dtypes_are_said_and_not_accused():
    assert said(check(rotate, "rope.rotate", **ROPE), "negative positions") == [("passed", "")]
    floored = check(lambda x, p: rotate(x, np.maximum(p, 0)), "rope.rotate", **ROPE)
    assert floored.ok
    ((status, detail),) = said(floored, "negative positions")
    assert (status, detail.split(";")[0]) == ("skipped", "wrong before 0: clamped_at_0")
    warm = {"amount": 0.1, "length": 8192, "convention": "llama4"}  # has a logarithm, and no numbers far before 0
    with np.errstate(all="ignore"):
        check(
            lambda p: np.nan_to_num(ops.op("position_ids.temperature").spec(p, **warm)), "position_ids.temperature", **warm
        ).require()
    wide = check(lambda x, p: rotate(x, p).astype(float), "rope.rotate", **ROPE)
    assert said(wide, "dtype") == [("passed", "float64, of inputs in float32")]


def test_in_place_aliasing_is_named():
    def in_place(x, positions):
        width = x.shape[-1] // 2
        angle = positions[:, None, :, None] * np.float32(10000.0 ** (-np.arange(width) / width))
        x[..., :width] = x[..., :width] * np.cos(angle) - x[..., width:] * np.sin(angle)
        x[..., width:] = x[..., :width] * np.sin(angle) + x[..., width:] * np.cos(angle)
        return x

    report = check(in_place, "rope.rotate", **ROPE)
    assert names(report) == ["in_place"], report
    assert any("must copy it" in text for text in report.advice)

    def moves_on(x, positions):
        y = rotate(x, positions)
        positions += 1
        return y

    assert said(check(moves_on, "rope.rotate", **ROPE), "inputs")[0][1].startswith("positions was modified")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda x: x.shape[2] == 1, "shape n_query=1, n_key=1"),
        (lambda x: len(x) == 1, "shape batch=1"),
        (lambda x: x.shape[1] == 1, "shape heads=1"),
    ],
)
def test_wrong_at_one_shape(change, words):
    report = check(lambda x, p: rotate(x, p + change(x)), "rope.rotate", **ROPE)
    assert not report.ok
    assert any(check.name == words and check.status == "failed" for check in report.checks), report
    assert "position_plus_one" in names(report), report


def test_tails_and_blocks_of_a_kernel_are_described():
    def tail(x, p):
        y = rotate(x, p)
        whole = max(x.shape[2] // 16 * 16, 16)
        y[:, :, whole:] = x[:, :, whole:]
        return y

    assert "wrong for rows 16 to 22 alone, which equal x" in str(check(tail, "rope.rotate", **ROPE))

    def heads(x, p):
        y = rotate(x, p)
        y[:, 8:] = 0
        return y

    assert "wrong for heads 8 to 31 alone, which are 0" in str(check(heads, "rope.rotate", **ROPE))


@pytest.mark.parametrize(
    ("features", "words"),
    [
        ([5, 13], "; all in features 5 and 13"),
        (range(1, 16, 2), "; all in odd features"),
        (range(11, 16), "; all in features 11 to 15"),
        (range(8), "; all in features 0 to 7"),
        ([3], "; all in feature 3"),
    ],
)
def test_features_that_differ_are_said(features, words):
    """A pair, every second feature, a tail, a half, one."""
    assert columns(np.isin(np.arange(16), [*features])[None].repeat(5, axis=0)) == words


def test_a_pair_that_differs_is_said_and_two_mistakes_are_not_sought_in_few_bits(monkeypatch):
    """One pair with the middle of its angle: mistakes one by one in 16 bits, pairs of mistakes in float32 alone."""
    asked, pairs = [], engine.Question.pairs
    monkeypatch.setattr(engine.Question, "pairs", lambda self: asked.append(self.models) or pairs(self))

    def partly(x, positions):
        y = rotate(x, positions)
        y[..., [5, 13]] = rotate(x, positions / 2)[..., [5, 13]] * np.float32(0.9)
        return y

    report = check(partly, "rope.rotate", **ROPE)
    assert (report.ok, report.diagnosis) == (False, []), report
    assert "none of" in str(report)
    assert "all in features 5 and 13, which are pair 5" in said(report, "values")[0][1], report
    assert asked == [("f32", "f32-iterative")]


def test_boxes():
    wrong, names = np.zeros((2, 3, 5, 4), dtype=bool), ["batch rows", "heads", "rows", "features"]
    assert where(wrong, names) == ""
    wrong[1, :, 2:4] = True
    assert where(wrong, names) == "; wrong for batch row 1, rows 2 to 3 alone"
    wrong[0, 0, 0] = True
    assert where(wrong, names) == ""
    assert where(~np.zeros((3, 4), dtype=bool), names[2:]) == ""


class OnADevice:
    """A tensor of which numpy can make nothing until it is brought to the host."""

    def __init__(self, values):
        self.values, self.fetched = values, False
        self.dtype, self.shape = values.dtype, values.shape

    def __array__(self, *args, **named):
        raise TypeError("can't convert a device tensor to numpy")

    def detach(self):
        return self

    def cpu(self):
        return Host(self.values)


class Host(OnADevice):
    def numpy(self):
        return self.values


def test_tensors_of_a_device_are_fetched_and_that_none_was_sliced_is_said():
    report = check(lambda x, p: OnADevice(rotate(x.values, p.values)), "rope.rotate", to=OnADevice, **ROPE)
    assert report.ok, report
    assert said(report, "strides")[0][0] == "skipped"


def test_integers_that_do_not_survive_are_refused():
    with pytest.raises(ValueError, match=r"check\.check: to= turns integers up to 60000 into float16.*pass to_positions="):
        check(rotate, "rope.rotate", to=lambda a: a.astype(np.float16), max_position=60000, **ROPE)


@pytest.mark.parametrize("error", [2.0**-11, 1.0])
def test_the_first_cosine_of_a_process_has_half_the_digits(error):
    """What else differs from call to call, such as memory that was never written, is far off."""
    torch, errors = pytest.importorskip("torch", reason="a known error of torch"), [error]

    def turned(x, positions):
        off = errors.pop() * np.random.default_rng(1).uniform(-1, 1, x.shape) if errors else 0
        return torch.from_numpy(rotate(x.numpy(), positions.numpy()) + off)

    report = check(turned, "rope.rotate", to=torch.from_numpy, **ROPE)
    assert ("oneMKL" in str(report)) == (error < 1), str(report)
    assert "a second call with the same arguments gives another output" in str(report)


def test_gradients_through_torch():
    torch = pytest.importorskip("torch", reason="gradients through torch")

    def turned(x, positions, sign=1):
        width = x.shape[-1] // 2
        angle = positions[:, None, :, None].float() * 10000.0 ** (-torch.arange(width) / width)
        a, b, cos, sin = x[..., :width], x[..., width:], angle.cos(), sign * angle.sin()
        return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)

    class Kernel(torch.autograd.Function):
        @staticmethod
        def forward(context, x, positions):
            context.save_for_backward(positions)
            return turned(x, positions)

        @staticmethod
        def backward(context, flow):
            return turned(flow, context.saved_tensors[0]), None

    assert [status for status, _ in said(check(turned, "rope.rotate", to=torch.from_numpy, **ROPE), "gradient")] == ["passed"]
    wrong = check(Kernel.apply, "rope.rotate", to=torch.from_numpy, **ROPE)
    assert not wrong.ok
    assert "gradient_forward" in names(wrong), wrong
    detached = check(lambda x, p: turned(x.detach(), p), "rope.rotate", to=torch.from_numpy, **ROPE)
    assert names(detached) == ["gradient_severed"]
    assert said(detached, "gradient") == [("failed", "the result does not depend on x by autograd: a gradient was expected")]
    lost = check(lambda x, p: turned(x.detach(), p) + 0 * x, "rope.rotate", to=torch.from_numpy, **ROPE)
    assert [f.sentence for f in lost.diagnosis] == [
        "the gradient of your output with respect to x is 0 everywhere: it was lost on the way, and the values are right"
    ]


def gradients_of(op, torch):
    """The gradients that arrive at an op's own function while it is checked; those of ones ask whether there is a way."""
    flows = []

    class Recorded(torch.autograd.Function):
        @staticmethod
        def forward(context, numbers, *given):
            context.shapes = [x.shape if isinstance(x, torch.Tensor) and x.is_floating_point() else None for x in given]
            return torch.from_numpy(numbers)

        @staticmethod
        def backward(context, flow):
            flows.append(flow.numpy())
            return None, *(shape and torch.zeros(shape) for shape in context.shapes)

    def recorded(*given, **named):
        arrays = (x.detach().numpy() if isinstance(x, torch.Tensor) else x for x in given)
        return Recorded.apply(op.spec(**dict(zip(op.given, arrays, strict=False)), **named), *given)

    recorded.__signature__ = inspect.signature(op.spec)
    check(recorded, op.name, to=torch.from_numpy, **own.first(op))
    return [flow for flow in flows if len(np.unique(flow)) > 2]


def test_no_gradient_is_asked_of_elements_without_a_meaning():
    """The values are the specification's; what arrives at the backward pass is 0 where any number is as good."""
    torch, asked = pytest.importorskip("torch", reason="gradients through torch"), 0
    made = ((op, op.make(**own.first(op))) for op in own.OPS if "gradient" not in op.tags)
    for op, a in made:
        if not np.all(op.meant(a)) and features(op, a):
            meant = np.broadcast_to(op.meant(a), np.shape(op.spec(**a)))
            flows = [flow for flow in gradients_of(op, torch) if flow.shape == meant.shape]
            assert flows, op.name
            assert all(flow[meant].all() and not flow[~meant].any() for flow in flows), op.name
            asked += 1
    assert asked > 3


@every(sources.models())
def test_layers_of_shipped_models_can_be_asked_for(model):
    """What `posref.explain` says of every layer is a question whose right answer passes; a layer alone asks for one thing."""
    for group in explain(model)["layers"]:
        if group["layout"] or group["encoding"] == "t5":
            name, settings = presets.op_and_settings(model, group["indices"][0], group["part"])
            a = ops.op(name).make(**settings)
            assert np.isfinite(ops.op(name).spec(**a)).all()


def test_a_model_by_name():
    def rotated(w, layout):
        return lambda x, positions: rope.rotate(x, *rope.tables(positions[:, None], w), layout=layout)

    edges = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_length": 8192}
    plain = rope.frequencies(128, 5e5)
    scaled = scaling.llama3(plain, factor=8.0, **edges)
    assert check(rotated(scaled, "half"), preset="llama_3.1_8b").ok
    assert not check(rotated(plain, "half"), preset="Llama-3.1-8B").ok


def test_a_model_of_several_axes_and_a_second_rotation():
    def qwen(x, coordinates, axis):
        angle = axes.angles(coordinates, rope.frequencies(128, 1e6), axis)
        return rope.rotate(x, np.cos(angle), np.sin(angle), layout="half")

    sizes = np.array([16, 24, 24])
    asked = {"preset": "Qwen2-VL-2B-Instruct", "part": "text_config"}
    swapped = check(lambda x, c: qwen(x, c[:, [0, 2, 1]], axes.sections(sizes)), **asked)
    assert names(swapped) == ["rows_and_columns_exchanged"]
    main, indexer = (presets.op_and_settings("DeepSeek-V3.2", part=part)[1] for part in (None, "indexer"))
    assert (main["layout"], indexer["layout"], indexer["head_dim"]) == ("interleaved_to_half", "half", 128)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (
            {"preset": "Qwen2-VL-2B-Instruct"},
            r'ask for 2 things; choose one: layer=0, part="vision_config"; layer=0, part="text',
        ),
        ({"preset": "Olmo-3.1-32B-Instruct"}, r"ask for 2 things; choose one: layer=0; layer=3$"),
        ({"preset": "Olmo-3.1-32B-Instruct", "layer": 64}, r"there is no layer 64; "),
        ({"preset": "gpt2-medium"}, r"no layer has what can be checked"),
        ({"preset": "llama-3.1-9b"}, r"there is no preset 'llama-3.1-9b'; .* models like llama-3.1-8b"),
    ],
)
def test_models_that_need_a_choice(asked, words):
    with pytest.raises(ValueError, match=f"^check.check: .*{words}"):
        check(bias, **asked)


@pytest.mark.parametrize("axis", [[0, 1], [0, 1, -1, 0], [0, 1, 4, 0], "0,1", [0.0, 1.0, 0.0, 1.0]])
def test_an_axis_for_every_pair(axis):
    with pytest.raises(ValueError, match=r"axes\.rotate: axis is .*, expected 4 whole numbers from 0 to 3, one per pair"):
        check(bias, "axes.rotate", dim=8, layout="half", axis=axis)


def t5_bias(buckets, max_distance):
    """Both directions, as WavLM and T5 compute it: log in float32, floor."""

    def bias(query_positions, key_positions, table):
        offset = key_positions[:, None, :] - query_positions[:, :, None]
        side, exact, n = buckets // 2, buckets // 4, np.abs(offset)
        far = (
            np.log(np.maximum(n, exact).astype(np.float32) / exact) / np.float32(np.log(max_distance / exact)) * (side - exact)
        )
        rows = side * (offset > 0) + np.where(n < exact, n, np.minimum(exact + far.astype(int), side - 1))
        return np.moveaxis(table[rows], -1, 1)

    return bias


def test_buckets_of_a_bias_are_asked_for():
    assert check(t5_bias(320, 800), preset="wavlm").ok
    assert ops.op("t5.bias").make(buckets=320, bidirectional=True).table.shape == (320, 2)
    assert "buckets=32" in contract("t5.attend")


def test_a_preset_that_says_what_its_op_cannot_be_asked_is_refused(monkeypatch):
    monkeypatch.setattr(ops, "presets", lambda: {"wavlm": ("t5.bias", {"buckets": 320, "depth": 3})})
    with pytest.raises(ValueError, match=r"check.check: wavlm says depth, and t5.bias has no such setting"):
        check(t5_bias(320, 800), preset="wavlm")


def test_preset_and_its_errors():
    slopes = np.float32(published_slopes(112))
    report = check(lambda i, j: slopes[:, None, None] * j[:, None, None].astype(np.float32), preset="bloom-176b")
    assert report.ok, report
    for name, chosen in ops.presets().values():  # `make` refuses a setting that the op does not have
        assert np.isfinite(ops.op(name).spec(**ops.op(name).make(**chosen))).all(), name
    with pytest.raises(ValueError, match="there is no preset 'bloom'; there are"):
        check(bias, preset="bloom")
    with pytest.raises(ValueError, match="name an op, for instance"):
        check(bias)


@every([op.name for op in own.OPS], parts=16)
def test_an_error_of_any_function_is_in_the_report(name):
    def broken(*arrays):
        raise RuntimeError("no such kernel")

    usual, said = settings(ops.op(name)), contract(name)
    report = check(
        broken,
        name,
        **{key: value for key, value in usual.items() if any(line.startswith(f"{key}: required") for line in said)},
    )
    assert "it raised RuntimeError: no such kernel" in str(report)


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("attention.attend_gradient", {"scale": 0.5, "of": "w"}, "of is 'w', expected one of 'q', 'k', 'v', 'bias'"),
        ("swin.shift_mask", {"height": 4, "width": 6, "shift": (5, 0)}, r"shifts are \[5, 0\] and sides \[4, 6\], expected"),
        ("swin.shift_mask", {"height": 4, "width": 6, "shift": (1, 1, 1)}, r"shift is \(1, 1, 1\), expected one number, or 2"),
        ("shaw.scores_gradient", {"scale": 0.5, "of": "w"}, "of is 'w', expected one of 'q', 'k', 'key_table'"),
        ("rope.rotate", {"dim": 8, "layout": "half", "heads": 1.5}, "heads is 1.5, expected an integer"),
        ("rope.rotate", {"dim": 8, "layout": "half", "batch": 0}, "batch is 0, expected an integer of at least 1"),
        ("rope.rotate", {"dim": 8, "layout": "half", "max_position": -1}, "max_position is -1, expected an integer"),
        ("alibi.bias", {"heads": 8, "form": "key", "positions": "rows"}, "positions is 'rows', expected one of 'batch'"),
    ],
)
def test_settings_that_make_no_sense(name, settings, words):
    with pytest.raises((ValueError, TypeError), match=words):
        check(lambda *arrays: arrays[0], name, **settings)


def test_numbers_below_the_normal_range_may_be_flushed():
    """At 129 keys a weight is 5e-46, which float32 does not have; a device may have no subnormal numbers at all."""

    def weights(scores, mask):
        left = np.cumsum(np.where(mask, -np.logaddexp(np.float32(0), scores), 0)[..., ::-1], axis=-1, dtype=np.float32)[
            ..., ::-1
        ]
        y = np.where(mask, np.exp(scores + left), np.float32(0))
        return np.where(y < 2.0**-126, np.float32(0), y)

    check(weights, "stick_breaking.weights").require()
    assert not check(
        lambda scores, mask: np.where(weights(scores, mask) < 1e-30, 0, weights(scores, mask)), "stick_breaking.weights"
    ).ok


def test_what_is_masked_may_be_anything():
    def scores(q, k, table, mask, *, gates_seen=lambda mask: mask):
        s = q @ k.swapaxes(-1, -2) / np.sqrt(8)
        p = np.cumsum((gates_seen(mask) / (1 + np.exp(-s)))[..., ::-1], axis=-1)[..., ::-1]
        p, z = np.minimum(p, len(table) - 1), q @ table.T
        low, high = (np.take_along_axis(z, f(p).astype(int), -1) for f in (np.floor, np.ceil))
        return s + (low + (high - low) * (p % 1)) / np.sqrt(8)

    asked = {"scale": 1 / np.sqrt(8), "convention": "official"}
    for hidden in (-np.inf, np.nan):
        check(
            lambda q, k, table, mask, hidden=hidden: np.where(mask, scores(q, k, table, mask), hidden), "cope.scores", **asked
        ).require()
    report = check(lambda *arrays: scores(*arrays, gates_seen=np.ones_like), "cope.scores", **asked)
    assert names(report) == ["future_counted"]


def test_contract():
    assert contract("alibi.bias")[:2] == ["query_positions: integers (3, 5)", "key_positions: integers (3, 7)"]
    assert contract("alibi.bias", heads=8)[2:4] == ["returns: numbers (3, 8, 5, 7)", "heads=8"]
    assert "form: required, one of 'signed', 'absolute', 'key'" in contract("alibi.bias")
    assert "variant=relative_key, one of 'relative_key', 'relative_key_query'" in contract("shaw.attend")
    assert "returns: numbers (3, 23, 5, 8)" in contract("rope.rotate", dim=8, layout="half", axes="bnhd")


@every([op.name for op in own.OPS], parts=12)
def test_every_contract_says_what_is_returned_and_has_numbers_that_can_be_others(name):
    lines, op = contract(name), ops.op(name)
    usual = implementation.example(op)
    (line,) = (line for line in lines if line.startswith("returns: "))
    assert line.split(": ")[1].startswith(("numbers (", "integers (", "booleans (")), line
    assert str(np.shape(op.spec(**op.make(**usual)))) in line
    for setting, value in (found.groups() for line in lines if (found := re.fullmatch(r"(\w+)=(\d+)", line))):
        try:
            contract(name, **usual | {setting: int(value) + 1})
        except ValueError as error:  # other numbers may not fit each other
            assert "changes nothing" not in str(error)  # noqa: PT017


def test_what_a_function_does_wrong_is_reported():
    assert "it raised KeyError" in str(check(lambda i, j: {}["x"], "alibi.bias", heads=12, form="signed"))
    shape = check(lambda i, j: bias(i, j)[:, :3], "alibi.bias", heads=12, form="signed")
    assert "the output has shape (3, 3, 5, 7), expected (3, 12, 5, 7)" in str(shape)
    nan = check(lambda i, j: bias(i, j) * np.nan, "alibi.bias", heads=12, form="signed")
    assert "are NaN or infinite" in str(nan)


def biased(change):
    """ALiBi in float32, of positions that were changed first."""
    slopes = alibi.slopes(3)
    return lambda i, j: alibi.bias(change(i), change(j), slopes, form="signed").astype(np.float32)


def far_positions(report):
    return [(c.status, c.detail) for c in report.checks if c.name == "far positions"]


@pytest.mark.parametrize(("bits", "named"), [(15, ["int16_positions"]), (16, ["positions_modulo_65536"])])
def test_positions_that_wrap_beyond_the_first_probe_are_found(bits, named):
    half = 2**15 if bits == 15 else 0
    report = check(biased(lambda p: (p + half) % 2**16 - half), "alibi.bias", heads=3, form="signed")
    assert [finding.name for finding in report.diagnosis] == named
    assert [c.name for c in report.checks if c.status == "failed"] == [f"positions from {2**bits} on"]


@pytest.mark.parametrize(("edge", "line"), [(2**16, "Wrong from 65536 on: uint16 ends there."), (30000, None)])
def test_a_dtype_that_ends_is_said_whatever_follows(edge, line):
    report = check(biased(lambda p: np.where(p < edge, p, 3 * p + 7)), "alibi.bias", heads=3, form="signed")
    assert not report.ok
    assert not report.diagnosis
    assert [each for each in report.advice if "ends there" in each] == ([line] if line else [])


@pytest.mark.parametrize(
    ("causal", "seen", "named"),
    [
        (True, lambda q, k, width: (q >= k) & (q < k + width), ["int16_key_plus_width"]),
        (True, lambda q, k, width: (q >= k) & (q - width < k), ["int16_query_minus_width"]),
        (False, lambda q, k, width: (q < k + width) & (q > k - width), ["int16_key_plus_width", "int16_query_minus_width"]),
    ],
)
def test_a_window_whose_ends_wrap_is_named(causal, seen, named):
    def mask(query_positions, key_positions):
        return seen(
            query_positions.astype(np.int16)[..., :, None], key_positions.astype(np.int16)[..., None, :], np.int16(1024)
        )

    report = check(mask, "attention.window_mask", width=1024, causal=causal)
    assert (report.ok, names(report)) == (False, named)
    assert any("ends there" in each for each in report.advice)


def test_positions_that_end_are_found_in_float16():
    def ends(x, positions):
        return rotate(x, np.minimum(positions, 2**20 - 1)).astype(np.float16)

    assert names(check(ends, "rope.rotate", **ROPE)) == ["positions_end_at_1048575"]


def test_a_shift_with_a_fraction_is_added_in_float32():
    """As Self-Extend's authors add it, before the key is subtracted; far out float32 has no fractions, then no odd numbers."""
    group, window = 3, 8

    def offsets(query_positions, key_positions):
        i, j = query_positions[:, None], key_positions[None, :]
        far = (j // group).astype(np.float32) - ((i // group).astype(np.float32) + np.float32(window - window / group))
        return np.where(i - j < window, (j - i).astype(np.float32), far)

    report = check(offsets, "position_ids.self_extend", group=group, window=window, phase="prefill")
    assert (report.ok, report.diagnosis) == (True, []), report


def test_one_entry_everywhere_is_no_order():
    report = check(lambda parents: np.zeros(len(parents), dtype=int), "position_ids.tree")
    assert names(report) == ["nothing_computed"]
    assert "in this order" not in str(report)


def test_positions_in_float32_are_said_and_not_accused():
    whole = check(biased(lambda p: p), "alibi.bias", heads=3, form="signed")
    assert far_positions(whole) == [("passed", "up to 2147483392")]
    assert said(whole, "odd positions near 2^24") == [("passed", "")]
    rounded = check(biased(lambda p: p.astype(np.float32).astype(int)), "alibi.bias", heads=3, form="signed")
    assert rounded.ok
    assert far_positions(rounded) == far_positions(whole)
    assert said(rounded, "odd positions near 2^24") == [
        ("skipped", "wrong from 16777216 on: f32_positions; all else was checked")
    ]
    for report in (whole, rounded):
        assert "f32_positions" not in "".join(report.ambiguous)


def test_what_far_positions_cannot_tell_is_said_with_its_reason():
    def rotate(x, positions):
        angles = positions[:, None, :, None].astype(np.float32) * rope.frequencies(8).astype(np.float32)
        return rope.rotate(x, np.cos(angles), np.sin(angles), layout="half")

    report = check(rotate, "rope.rotate", dim=8, layout="half")
    assert said(report, "odd positions near 2^24") == [("skipped", "from 16777216 on float32 positions are within the bound")]
    assert report.ambiguous[-1].endswith(": f32_positions.")
    assert far_positions(check(rotate, "rope.rotate", dim=8, layout="half", max_position=60)) == []
    ((status, reason),) = far_positions(check(lambda p, table: table[p], "learned.encode"))
    assert status == "skipped"
    assert "table has 2060 rows" in reason


def test_a_table_that_ends_is_no_mistake():
    rows = np.arange(5000)
    report = check(biased(lambda p: rows[p]), "alibi.bias", heads=3, form="signed")
    assert report.ok
    assert far_positions(report)[0][1].startswith("none from 16384 on: it raised IndexError")


def test_a_table_of_all_positions_is_not_asked_for(monkeypatch):
    asked, seconds = [], iter((0.01, 0.01, 0.1, 0.2, 2.0))
    monkeypatch.setattr(positions, "_seconds", lambda caller, a: next(seconds))
    report = check(biased(lambda p: asked.append(p.max()) or p), "alibi.bias", heads=3, form="signed")
    assert max(asked) < 2**19
    assert far_positions(report) == [("skipped", "none beyond 262144, which takes 2.0 s, as a table of all positions does")]


def test_products_of_sinusoids_are_an_honest_sandwich():
    def bias(i, j):
        sines = [p[..., None].astype(np.float32) * sandwich.frequencies(16).astype(np.float32) for p in (i, j)]
        q, k = (np.concatenate([np.sin(angle), np.cos(angle)], axis=-1) for angle in sines)
        return (q @ np.swapaxes(k, -1, -2) - np.float32(8))[:, None] * sandwich.slopes(3).astype(np.float32)[:, None, None]

    check(bias, "sandwich.bias", dim=16, heads=3).require()


@pytest.mark.parametrize("n_key", [7, pytest.param(33, marks=pytest.mark.slow)])
def test_a_field_of_hundreds_of_steps_is_not_accused(n_key):
    def field(start, times):
        return floater.encode(
            lambda t, p: np.stack([p[..., 1] - t * p[..., 0], t - p[..., 0] * p[..., 1]], -1), start, times, substeps=5
        )

    report = check(lambda start, times: field(start, times).astype(np.float32), "floater.field", n_key=n_key)
    assert report.ok, report
    assert not any(each.status == "skipped" for each in report.checks if each.name == "shapes"), report


def test_a_field_that_leaves_float32_on_the_way_is_not_accused():
    """At a drawn size the curve ends within float64, and the product of two of its numbers beyond float32."""
    report = check(ops.op("floater.field").spec, "floater.field", substeps=1, n_key=8, seed=13)
    assert report.ok, report


def test_a_mask_that_is_added_is_told_from_a_boolean_one():
    """0 where a key may be seen, and -inf, or the lowest number of the format, where not."""
    for lowest in (-np.inf, -1e9):
        added = check(
            lambda i, j, lowest=lowest: np.where(distances(i, j)[..., 0, :, :] <= 0, 0, lowest).astype(np.float32),
            "attention.causal_mask",
        )
        assert [each.name for each in added.diagnosis] == ["additive_mask"]
        assert "attention.causal_mask is asked for booleans, True = may be seen" in str(added)
        assert "mask == 0" in added.advice[0]


VALUES = {"dim": 16, "layout": "half", "undo": True, "scale": 0.25}


def test_what_computes_nothing_is_called_that():
    """An input, or zeros, are on the grid of bfloat16, whose bounds of a long formula hold nearly anything."""
    none, v = "nothing was computed", ", or all numbers of v are 0"
    for fn, words in ((lambda *a: a[0], f"equals q: {none}"), (lambda *a: 0 * a[0], f"is 0 everywhere: {none}{v}")):
        report = check(fn, "value.attend", **VALUES)
        assert [(f.name, f.sentence) for f in report.diagnosis] == [("nothing_computed", f"your output {words}")]


def test_a_table_that_is_returned_in_another_shape_is_called_that():
    """A resize that is skipped where the number of tokens is the same: nothing is resized, though a mistake equals it here."""
    report = check(lambda table: table.reshape(5, 3, -1), "resizing.resize", height=5, width=3, convention="timm")
    assert [finding.name for finding in report.diagnosis] == ["unchanged", "all_in_a_row"]
    assert report.advice == []


@every(own.OPS, name=lambda op: op.name, parts=4)
def test_zeros_that_leave_an_input_as_it_is_are_said(op):
    """Zeros in the place of each array, where the output is an input then: no position, or no table, may be the cause."""
    a = op.make(**implementation.example(op))
    question = engine.Question(op, a, ("f32",))
    for name in (name for name in op.given if np.asarray(a.get(name)).dtype.kind in "if"):
        got, report = question.answer(name, ops.using(**{name: lambda a, name=name: 0 * a[name]})), Report(op.name)
        if got is not None and untouched(got, a) and not verdict.judged(report, question, got):
            for each in (each.sentence for each in report.diagnosis if each.name == "nothing_computed"):
                assert re.search(rf", or all numbers of .*\b{name}\b.* are 0$", each), each
