"""What check_rope can be asked for beside base and layout: magnitude, sign, features written elsewhere, no positions."""

import numpy as np
import pytest

from posref.check import check_rope

f32 = np.float32


def turned(x, positions, *, read="half", written=None, sign=1, magnitude=1.0, width=None, rounded=lambda t: t):
    """One pair at a time, in float32."""
    width = width or x.shape[-1]
    y = x.copy()
    for t in range(width // 2):
        places = {"half": (t, t + width // 2), "interleaved": (2 * t, 2 * t + 1)}
        (i, j), (k, m) = places[read], places[written or read]
        angle = positions[:, None].astype(f32) * f32(10000.0 ** (-2 * t / width))
        cos, sin = rounded(f32(magnitude) * np.cos(angle)), rounded(f32(magnitude) * sign * np.sin(angle))
        y[..., k], y[..., m] = x[..., i] * cos - x[..., j] * sin, x[..., i] * sin + x[..., j] * cos
    return y


CHOICES = [
    ({"magnitude": 1.19, "sign": -1, "read": "interleaved", "written": "half"}, {"layout": "interleaved_to_half"}),
    ({"magnitude": 1.19, "width": 16}, {"rotary_dim": 16}),
]


@pytest.mark.parametrize("kind", [np.float32, np.float16])
@pytest.mark.parametrize(("made", "asked"), CHOICES)
def test_right(made, asked, kind):
    options = {"dim": 32, "layout": "half", **asked, **{k: made[k] for k in ("magnitude", "sign") if k in made}}
    check_rope(lambda x, p: turned(x, p, **made).astype(kind), **options).require()


@pytest.mark.parametrize(
    ("name", "made", "asked"),
    [
        ("magnitude_left_out", {}, {"magnitude": 1.3465735902799727}),
        ("magnitude_twice", {"magnitude": 1.25**2}, {"magnitude": 1.25}),
        ("sign", {}, {"sign": -1}),
        ("position_plus_one", {"magnitude": 1.19, "sign": -1}, {"magnitude": 1.19, "sign": -1}),
    ],
)
def test_named(name, made, asked):
    shift = 1 if name == "position_plus_one" else 0
    report = check_rope(lambda x, p: turned(x, p + shift, **made), dim=32, layout="half", **asked)
    assert name in [finding.name for finding in report.diagnosis], report


def test_functions_that_count_themselves():
    def ranged(x, start=0):
        return turned(x, np.broadcast_to(start + np.arange(x.shape[2]), (len(x), x.shape[2])))

    assert check_rope(ranged, dim=16, layout="half", positions="range").ok
    assert check_rope(ranged, dim=16, layout="half", positions="offset").ok
    wrong = check_rope(lambda x, start: ranged(x, start + 1), dim=16, layout="half", positions="offset")
    assert "position_plus_one" in [finding.name for finding in wrong.diagnosis], wrong
    wrong = check_rope(ranged, dim=16, layout="half", positions="range", magnitude=1.5)
    assert [finding.name for finding in wrong.diagnosis] == ["magnitude_left_out"], wrong


def test_positions_tiled_over_flattened_heads():
    """`repeat` in the place of `repeat_interleave` on the axis n * heads."""

    def flattened(x, positions):
        batch, heads, n, dim = x.shape
        flat = np.swapaxes(x, 1, 2).reshape(batch, 1, n * heads, dim)
        y = turned(flat, np.tile(positions, (1, heads)))
        return np.swapaxes(y.reshape(batch, n, heads, dim), 1, 2)

    report = check_rope(flattened, dim=32, layout="half")
    assert [finding.name for finding in report.diagnosis] == ["positions_tiled_over_heads"], report


def test_bfloat16_angles_and_tables_with_float32_inputs():
    ml = pytest.importorskip("ml_dtypes", reason="bfloat16 arrays").bfloat16

    def cast(x, positions):
        theta = (f32(1) / f32(10000) ** (np.arange(16, dtype=f32) / f32(16))).astype(ml)
        angle = positions.astype(f32).astype(ml)[:, None, :, None] * theta
        cos, sin = (table(angle.astype(f32)).astype(ml).astype(f32) for table in (np.cos, np.sin))
        a, b = x[..., :16], x[..., 16:]
        return np.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)

    report = check_rope(cast, dim=32, layout="half")
    assert [finding.name for finding in report.diagnosis] == ["bf16_chain_and_tables"], report


@pytest.mark.parametrize(("name", "value"), [("magnitude", 0), ("sign", 2), ("positions", "none"), ("layout", "half_to_half")])
def test_refused(name, value):
    with pytest.raises(ValueError, match=f"{name} is"):
        check_rope(turned, **{"dim": 32, "layout": "half", name: value})
