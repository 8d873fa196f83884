"""check_rope accepts what is right, in every precision and recipe, and names what is wrong.

The implementations here are written in plain numpy, as other people write them; none of them calls posref.
"""

import numpy as np
import pytest

from posref.check import broken, check_rope

f32 = np.float32


def low(value, dtype):
    """Round to float16 or bfloat16 and back to float32; bfloat16 by cutting 16 bits after adding half, ties to even."""
    value = np.asarray(value, dtype=f32)
    if dtype == "float16":
        with np.errstate(over="ignore"):
            return value.astype(np.float16).astype(f32)
    bits = value.view(np.uint32).astype(np.uint64)
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return bits.astype(np.uint32).view(f32)


def rotate_half(x):
    a, b = np.split(x, 2, axis=-1)
    return np.concatenate([-b, a], axis=-1)


def rotate_every_two(x):
    y = np.empty_like(x)
    y[..., 0::2], y[..., 1::2] = -x[..., 1::2], x[..., 0::2]
    return y


DTYPES = ("float32", "bfloat16", "float16")
FLOATS = ["float32", *(pytest.param(few, marks=pytest.mark.slow) for few in DTYPES[1:])]
TURNED = {"half": rotate_half, "interleaved": rotate_every_two}


def tile(table, layout):
    return np.concatenate([table, table], axis=-1) if layout == "half" else np.repeat(table, 2, axis=-1)


def inverse_frequencies(width, base):
    return f32(1) / f32(base) ** (np.arange(0, width, 2).astype(f32) / f32(width))


def plain(
    x,
    positions,
    *,
    layout="half",
    tiling=None,
    base=10000.0,
    rotary_dim=None,
    theta=None,
    mapped=lambda p: p,
    angle_of=lambda p, theta: p[..., None].astype(f32) * theta,
    tables=lambda cos, sin: (cos, sin),
    out=lambda y: y,
):
    """x * cos + turned(x) * sin with float32 angles, the way most implementations are written."""
    width = x.shape[-1] if rotary_dim is None else rotary_dim
    theta = inverse_frequencies(width, base) if theta is None else theta
    with np.errstate(invalid="ignore"):
        angle = angle_of(mapped(positions), theta)
        cos, sin = np.cos(angle), np.sin(angle)
    cos, sin = tables(cos, sin)
    cos, sin = (tile(t, tiling or layout)[:, None] if t.ndim == 3 else tile(t, tiling or layout) for t in (cos, sin))
    head, tail = x[..., :width], x[..., width:]
    y = head * cos + TURNED[layout](head) * sin
    return out(np.concatenate([y, tail], axis=-1))


def rounded(dtype):
    """Tensors of a dtype: numpy's, or ml_dtypes' bfloat16."""
    if dtype == "bfloat16":
        return pytest.importorskip("ml_dtypes", reason="bfloat16 arrays").bfloat16
    return np.dtype(dtype).type


def returning(dtype, **choices):
    """`plain` with float32 mathematics and one rounding at the end."""
    kind = rounded(dtype)
    return lambda x, p: plain(x, p, **choices).astype(kind)


# right -----------------------------------------------------------------------------------------------------------------


def transformers(width, base):
    return inverse_frequencies(width, base)


def exp_log(width, base):
    return np.exp(np.arange(0, width, 2).astype(f32) * f32(-np.log(base) / width))


def cast(width, base):
    return (base ** (-np.arange(0, width, 2) / width)).astype(f32)


def double(width, base):
    return base ** (-np.arange(0, width, 2) / width)


RECIPES = {
    "transformers": {"theta_of": transformers},
    "exp-log": {"theta_of": exp_log},
    "cast": {"theta_of": cast},
    "exact angles": {"theta_of": double, "angle_of": lambda p, theta: p[..., None] * theta},
    "angles cast": {"theta_of": double, "angle_of": lambda p, theta: (p[..., None] * theta).astype(f32)},
}
CONFIGURATIONS = [
    (128, 5e5, None, "half"),
    (80, 1e4, 32, "half"),
    (64, 1e6, 24, "interleaved"),
    (64, 1e7, None, "interleaved"),
    (6, 100.0, None, "half"),
]


def correct(width, base, layout, rotary_dim, recipe, out=lambda y: y):
    choices = dict(RECIPES[recipe])
    theta = choices.pop("theta_of")(width, base)
    return lambda x, p: out(plain(x, p, layout=layout, rotary_dim=rotary_dim, theta=theta, **choices))


@pytest.mark.parametrize(("recipe", "asked", "dtype"), [*zip(RECIPES, CONFIGURATIONS, DTYPES * 2, strict=False)])
def test_right_in_float32_mathematics(recipe, asked, dtype):
    kind, (dim, base, rotary_dim, layout) = rounded(dtype), asked
    fn = correct(rotary_dim or dim, base, layout, rotary_dim, recipe, lambda y: y.astype(kind))
    report = check_rope(fn, dim=dim, base=base, layout=layout, rotary_dim=rotary_dim)
    assert report.ok, report
    assert report.precision.model.removesuffix("-iterative") == {"float32": "f32", "float16": "f16-f32math"}.get(
        dtype, "bf16-f32math"
    )
    assert report.diagnosis == []


def all_low(x, p, theta, kind):
    """transformers: tables cast to the dtype of x, products and sums in it."""
    angle = p[..., None].astype(f32) * theta
    cos, sin = (np.concatenate([t, t], axis=-1)[:, None].astype(kind) for t in (np.cos(angle), np.sin(angle)))
    x = x.astype(kind)
    return x * cos + rotate_half(x) * sin


@pytest.mark.parametrize("dtype", FLOATS[1:])
def test_right_with_everything_but_the_angles_in_16_bits(dtype):
    kind, theta = rounded(dtype), inverse_frequencies(80, 5e5)
    report = check_rope(lambda x, p: all_low(x, p, theta, kind), dim=80, base=5e5, layout="half")
    assert report.ok, report
    # tables and products are rounded; the sum of two products is rounded once, in 16 bits and after 32 bits alike
    assert report.precision.model == {"float16": "f16-f32sums", "bfloat16": "bf16-f32sums"}[dtype]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("dim", "width"), [(64, 64), (96, 24)])
def test_right_with_angles_by_repeated_multiplication(dim, width, dtype):
    """ggml: the angle of the next pair is the last one times a constant, the exponent is over the head or over what turns."""

    def steps(p, theta):
        ratio = np.full((*p.shape, width // 2 - 1), f32(1e4) ** f32(-2 / dim))
        return np.multiply.accumulate(np.concatenate([p[..., None].astype(f32), ratio], axis=-1), axis=-1)

    report = check_rope(
        returning(dtype, rotary_dim=width, angle_of=steps), dim=dim, rotary_dim=width, exponent_dim=dim, layout="half"
    )
    assert report.ok, report
    assert "float32 repeated multiplication (ggml)" in report.precision.angles


def test_right_in_float32_for_inputs_in_bfloat16():
    options = {"dim": 64, "base": 1e4, "layout": "half", "to": lambda a: low(a, "bfloat16"), "to_positions": np.asarray}
    report = check_rope(plain, **options)
    assert report.ok, report
    moved = check_rope(lambda x, p: plain(x, p, mapped=lambda p: p + 1), **options)
    assert named(moved) == ["position_plus_one"], moved


def test_right_in_float64():
    theta = double(64, 1e4)
    fn = lambda x, p: plain(x.astype(float), p, theta=theta, angle_of=lambda p, theta: p[..., None] * theta)  # noqa: E731
    report = check_rope(fn, dim=64, layout="half", to=lambda a: a.astype(np.float64))
    assert report.ok, report
    assert report.precision.model == "f64"
    assert report.precision.angles == ("exact angles",)
    assert check_rope(fn, dim=64, layout="half", to=lambda a: a.astype(np.float64), model="f64").ok


def well_rounded_exp_log(width, base):
    """As in torch; numpy's own float32 exp is off by one unit in half of the pairs."""
    return np.exp((np.arange(0, width, 2).astype(f32) * f32(-np.log(base) / width)).astype(float)).astype(f32)


@pytest.mark.parametrize(
    ("theta_of", "words"),
    [(transformers, "(transformers)"), (well_rounded_exp_log, "exp("), (cast, "cast to float32")],
    ids=["transformers", "exp-log", "cast"],
)
def test_the_angle_recipe_is_recognized_even_in_bfloat16(theta_of, words):
    kind, theta = rounded("bfloat16"), theta_of(128, 1e4)
    report = check_rope(lambda x, p: plain(x, p, theta=theta).astype(kind), dim=128, layout="half")
    assert len(report.precision.angles) == 1
    assert words in report.precision.angles[0], report


def test_what_works_in_place_passes_and_is_reported():
    def in_place(x, p):
        x[...] = plain(x, p)
        return x

    report = check_rope(in_place, dim=64, layout="half")
    assert report.ok, report
    assert "in place" in report.checks[0].detail
    assert any("copy" in text for text in report.advice)


def test_positions_shared_by_all_rows():
    report = check_rope(lambda x, p: plain(x, p[None]), dim=64, layout="half", positions="shared")
    assert report.ok, report
    assert any("rows of a batch" in text for text in report.ambiguous)


# wrong -----------------------------------------------------------------------------------------------------------------


def along_heads(x, p):
    """x taken for (batch, n, heads, dim): head h turns by positions[b, h]."""
    theta = inverse_frequencies(x.shape[-1], 1e4)
    angle = p[:, : x.shape[1], None].astype(f32) * theta
    cos, sin = (np.concatenate([t, t], axis=-1)[:, :, None] for t in (np.cos(angle), np.sin(angle)))
    return x * cos + rotate_half(x) * sin


def table(dtype):
    return {"tables": lambda cos, sin: (low(cos, dtype), low(sin, dtype))}


def positions(mapped):
    return {"mapped": mapped}


def theta_of(exponent):
    """base^-exponent(t) for 32 pairs."""
    return {"theta": (10000.0 ** -exponent(np.arange(32))).astype(f32)}


def over_the_head(pairs, dim, base=1e4, still=0):
    """base^(-2t/dim), one pair after another; then pairs that do not turn, as in Gemma 4's proportional rotation."""
    return np.array([base ** (-2 * t / dim) for t in range(pairs)] + [0] * still).astype(f32)


def llama3(theta, low, high, factor, length):
    """Llama 3.1: long wavelengths are divided by the factor, short ones stay, between them a ramp."""
    wavelength = 2 * np.pi / theta
    ramp = np.clip((length / wavelength - low) / (high - low), 0, 1)
    return theta / factor * (1 - ramp) + theta * ramp


def third(y):
    return np.concatenate([y[..., 0::2], y[..., 1::2]], axis=-1)


EXACT = {"linear": double(64, 1e4) / 4, "llama3": llama3(double(64, 5e5), 1, 4, 8, 8192)}
IN_FLOAT32 = {
    "linear": transformers(64, 1e4) / f32(4),
    "llama3": llama3(transformers(64, 5e5), f32(1), f32(4), f32(8), f32(8192)),
}
HALF = {"dim": 64, "layout": "half"}
PART = {"dim": 96, "rotary_dim": 24, "layout": "half"}
OVER = PART | {"exponent_dim": 96}
STILL = {"dim": 96, "layout": "half", "frequencies": over_the_head(12, 96, still=36)}
GIVEN = HALF | {"frequencies": EXACT["llama3"]}
SCALED = {"theta": EXACT["llama3"].astype(f32)}
INTERLEAVED = {"layout": "interleaved"}
# Names, what is asked, and keywords of `plain` or a function; test_foreign.py has more, each as others wrote it.
NTK = 1e4 * 4 ** (96 / 94)
WRONG = [
    ("tiled_tables", HALF, {"tiling": "interleaved"}),
    ("tables_alone_right", HALF, {"layout": "interleaved", "tiling": "half"}),
    ("positions_zero", HALF, lambda x, p: x.copy()),
    ("positions_from_first", HALF, positions(lambda p: p[:, :1] + np.arange(p.shape[-1]))),
    ("positions_reversed", HALF, positions(lambda p: p[:, ::-1])),
    ("positions_along_heads", HALF, along_heads),
    ("position_plus_one", HALF, positions(lambda p: p + 1)),
    ("position_minus_one", HALF, positions(lambda p: p - 1)),
    ("position_minus_one_floored", HALF, positions(lambda p: np.maximum(p - 1, 0))),
    ("positions_clamped", HALF, positions(lambda p: np.minimum(p, 4095))),
    ("positions_clamped 2999", {"dim": 4, "layout": "half"}, positions(lambda p: np.minimum(p, 2999))),
    ("positions_modulo 2048", HALF, positions(lambda p: p % 2048)),
    ("positions_modulo 5000", HALF, positions(lambda p: p % 5000)),
    ("linear_scaling", HALF, positions(lambda p: p / 4)),
    ("rotate_twice", HALF, lambda x, p: plain(plain(x, p), p)),
    ("wrong_base", HALF, {"base": 5e5}),
    ("wrong_base 12346", HALF, {"base": 12346.0}),
    (f"wrong_base {NTK:.6g}", PART, {"rotary_dim": 24, "base": NTK}),
    ("exponent_doubled", HALF, theta_of(lambda t: 4 * t / 64)),
    ("exponent_shifted", HALF, theta_of(lambda t: 2 * (t + 1) / 64)),
    ("magnitude", HALF, {"tables": lambda cos, sin: (cos * f32(1.138629436), sin * f32(1.138629436))}),
    ("bf16_inv_freq", HALF, {"theta": low(inverse_frequencies(64, 1e4), "bfloat16")}),
    ("bf16_positions", HALF, positions(lambda p: low(p, "bfloat16"))),
    ("f16_positions", HALF, positions(lambda p: low(p, "float16"))),
    ("rotary_dim 32", HALF, {"rotary_dim": 32}),
    ("other_layout and wrong_base 500000", HALF, INTERLEAVED | {"base": 5e5}),
    ("other_layout and bf16_positions", HALF, INTERLEAVED | positions(lambda p: low(p, "bfloat16"))),
    ("other_layout and positions_modulo 300", {"dim": 8, "layout": "half"}, INTERLEAVED | positions(lambda p: p % 300)),
    ("wrong_base 500000 and positions_clamped 69999", HALF, positions(lambda p: np.minimum(p, 69999)) | {"base": 5e5}),
    ("magnitude 1.34657 and wrong_base 150000", HALF, lambda x, p: plain(x, p, base=150000.0) * f32(1.3465736)),
    ("third_layout and wrong_base 50000", HALF, lambda x, p: third(plain(x, p, layout="interleaved", base=5e4))),
    ("exponent_head_dim", PART, {"rotary_dim": 24, "theta": over_the_head(12, 96)}),
    ("all_rotated", PART, {}),
    ("all_rotated_same_exponent", PART, {"theta": (1e4 ** (-np.arange(48) / 12)).astype(f32)}),
    ("exponent_rotary_dim", OVER, {"rotary_dim": 24}),
    ("wrong_base 12345", OVER, {"rotary_dim": 24, "theta": over_the_head(12, 96, 12345.0)}),
    ("proportional", OVER, {"theta": over_the_head(12, 96, still=36)}),
    ("proportional and wrong_base 1e+06", PART | INTERLEAVED, {"theta": over_the_head(12, 96, 1e6, still=36)}),
    ("rotary_dim 24", STILL, {"rotary_dim": 24, "theta": over_the_head(12, 96)}),
    ("wrong_base 12345", STILL, {"theta": over_the_head(12, 96, 12345.0, still=36)}),
    ("still_pairs_turn", STILL, {}),
    ("frequencies_ignored", HALF | {"frequencies": EXACT["linear"]}, {}),
    ("wrong_base 500000", GIVEN, {"base": 5e5}),
    ("other_layout", GIVEN, SCALED | INTERLEAVED),
    ("bf16_inv_freq", GIVEN, {"theta": low(EXACT["llama3"], "bfloat16")}),
    ("frequencies_ascending", GIVEN, {"theta": EXACT["llama3"][::-1].astype(f32)}),
    ("frequencies_inverted", GIVEN, {"theta": (1 / EXACT["llama3"]).astype(f32)}),
    ("linear_scaling 8 and wrong_base 500000", GIVEN, {"theta": (double(64, 5e5) / 8).astype(f32)}),
    ("wrong_base 600000", GIVEN, {"theta": double(64, 6e5).astype(f32)}),
    ("rotary_dim 32", GIVEN, {"rotary_dim": 32, "theta": EXACT["llama3"][:16].astype(f32)}),
    ("positions_clamped 8191", GIVEN, SCALED | positions(lambda p: np.minimum(p, 8191))),
]
SAID = {
    "wrong_base 12346": "No configuration known here has such a base",
    f"wrong_base {NTK:.6g}": " = 10000 * 4^(96/94): NTK scaling by 4 over a width of 96",
    "positions_zero": "all positions, or all frequencies, are 0",
    "rotate_twice": "applied twice",
    "tiled_tables": "Not a rotation: norms change.",
    "exponent_rotary_dim": "base^(-2t/dim)",
    "proportional": "p-RoPE: the first dim/2 pairs (t, t + head_dim/2) turn",
    "wrong_base 500000": "frequencies 500000^(-2t/dim), not scaled",
}


def wrong(name):
    made = next(made for each, _, made in WRONG if each == name)
    return made if callable(made) else lambda x, p: plain(x, p, **made)


def named(report):
    return [finding.name for finding in report.diagnosis]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("name", "asked", "made"), WRONG, ids=lambda value: value if isinstance(value, str) else "")
def test_named(name, asked, made, dtype):
    kind = rounded(dtype)
    function = made if callable(made) else lambda x, p: plain(x, p, **made)
    report = check_rope(lambda x, p: function(x, p).astype(kind), **asked)
    assert not report.ok
    found = [set(each.split(" and ")) for each in named(report)]
    assert found == [set(name.split(" and "))] if dtype == "float32" else set(name.split(" and ")) in found, report
    assert report.diagnosis[0].residual <= 1
    assert SAID.get(name, "") in report.diagnosis[0].sentence + report.diagnosis[0].remedy
    assert all(ratio > 1 for _, ratio in report.nearest)
    assert report.advice


IN_FLOATS = pytest.mark.parametrize("dtype", FLOATS)


@IN_FLOATS
@pytest.mark.parametrize(("dim", "width", "layout"), [(96, 24, "half"), (64, 64, "interleaved")])
def test_exponent_over_the_head(dim, width, layout, dtype):
    report = check_rope(
        returning(dtype, rotary_dim=width, layout=layout, theta=over_the_head(width // 2, dim)),
        **{"dim": dim, "rotary_dim": width, "layout": layout, "exponent_dim": dim},
    )
    assert report.ok, report
    assert report.diagnosis == []
    assert report.precision.angles


def test_half_of_the_head_cannot_tell_two_mistakes_apart():
    """2t/32 is 4t/64: over the rotated half, or a factor 2 too many. Both are named."""
    report = check_rope(returning("float32", rotary_dim=32), dim=64, rotary_dim=32, exponent_dim=64, layout="half")
    assert named(report) == ["exponent_rotary_dim", "exponent_doubled"], report
    assert any("all give these numbers" in text for text in report.ambiguous)


def test_the_proportional_frequencies_are_those_of_the_references():
    one = np.arange(1.0, 9.0, dtype=f32)[None, None, None]
    expected = [-3.667052618, 1.391007831, 3, 4, 3.542982514, 6.169691825, 7, 8]
    found = plain(one, np.array([[1]]), theta=over_the_head(2, 8, still=2))[0, 0, 0]
    assert np.allclose(found, expected, rtol=0, atol=1e-6)


def test_proportional_rope_is_asked_for_by_its_frequencies():
    check_rope(returning("float32", theta=over_the_head(12, 96, still=36)), **STILL).require()


@IN_FLOATS
@pytest.mark.parametrize("schedule", EXACT)
def test_given_frequencies(schedule, dtype):
    asked = HALF | {"frequencies": EXACT[schedule]}
    report = check_rope(returning(dtype, theta=EXACT[schedule].astype(f32)), **asked)
    assert report.ok, report
    assert report.precision.model.endswith("-given")
    assert report.precision.angles == ("exact frequencies cast to float32",)
    report = check_rope(returning(dtype, theta=IN_FLOAT32[schedule].astype(f32)), **asked)
    assert report.ok, report


def test_given_frequencies_that_no_base_explains():
    steep = np.array([1e-12**t for t in range(20)])
    report = check_rope(lambda x, p: plain(x, p, theta=steep), dim=40, layout="half", frequencies=steep)
    assert report.ok, report
    report = check_rope(plain, dim=40, layout="half", frequencies=steep)
    assert named(report) == ["frequencies_ignored"], report


def test_frequencies_that_are_computed_are_told_from_given_ones():
    theta = exp_log(64, 5e5)
    asked = HALF | {"frequencies": double(64, 5e5)}
    report = check_rope(returning("float32", theta=theta), **asked)
    assert report.ok
    assert report.precision.model == "f32"
    assert not check_rope(returning("float32", theta=theta), **asked, model="f32-given").ok


def test_other_frequencies_are_measured():
    """High frequencies stay, low ones are divided by 8, without a ramp."""
    theta = inverse_frequencies(64, 5e5)
    scaled = np.where(2 * np.pi / theta > 8192, theta / 8, theta).astype(f32)
    report = check_rope(lambda x, p: plain(x, p, theta=scaled), dim=64, base=5e5, layout="half")
    assert named(report) == ["other_frequencies"], report
    assert "1 at pair 0" in report.diagnosis[0].sentence
    assert "8 at pair 31" in report.diagnosis[0].sentence


def test_frequencies_that_differ_are_shown():
    theta = inverse_frequencies(64, 5e5) * np.where(np.isin(np.arange(32), [14, 15]), -3, 1)
    (found,) = check_rope(lambda x, p: plain(x, p, theta=theta.astype(f32)), dim=64, base=5e5, layout="half").diagnosis
    assert f"as if they were {theta[14]:.4g} of pair 14, {theta[15]:.4g} of pair 15: " in found.sentence
    assert "30 of 32 are right" in found.sentence


def test_pairs_without_a_name_are_read_from_basis_vectors():
    order = np.random.default_rng(0).permutation(16)
    back = np.argsort(order)
    report = check_rope(lambda x, p: plain(x[..., order], p)[..., back], dim=16, layout="half")
    assert named(report) == ["other_entries_of_x"], report
    pair = f"changes with x[:, :, :, {sorted([0, int(order[(back[0] + 8) % 16])])}]"
    assert pair in report.diagnosis[0].sentence
    report = check_rope(lambda x, p: plain(x, p)[..., ::-1], dim=16, layout="half")
    assert named(report) == ["other_pairs"], report
    assert "pair 1 reads features (1, 9) and writes (14, 6)" in report.diagnosis[0].sentence


@pytest.mark.parametrize("dtype", FLOATS[1:])
def test_16_bit_numbers_in_a_wider_dtype(dtype):
    def once(x, p, **choices):
        return low(plain(x, p, **choices), dtype)

    def throughout(x, p, **choices):
        return low(plain(low(x, dtype), p, **table(dtype), **choices), dtype)

    report = check_rope(once, dim=64, layout="half")
    assert named(report) == [f"computed in {dtype}"], report
    report = check_rope(lambda x, p: throughout(x, p, layout="interleaved"), dim=64, layout="half")
    assert named(report) == [f"other_layout and computed in {dtype}"], report


def test_float16_tables_are_told_from_bfloat16_tables():
    report = check_rope(lambda x, p: plain(x, p, **table("float16")), dim=64, layout="half")
    assert named(report) == ["f16_tables"], report


# advice, ambiguity -----------------------------------------------------------------------------------------------------


def test_the_advice_names_the_setting_that_gives_what_was_asked():
    half = str(check_rope(lambda x, p: plain(x, p, layout="interleaved"), dim=64, layout="half"))
    assert 'equals rope.rotate with layout="interleaved"; you asked for layout="half"' in half
    for setting in ("MLX traditional=False", "is_neox_style=True", "interleaved=0", "LLAMA_ROPE_TYPE_NEOX"):
        assert setting in half
    assert "traditional=True" not in half
    other = str(check_rope(lambda x, p: plain(x, p, layout="half"), dim=64, layout="interleaved"))
    for setting in ("MLX traditional=True", "is_neox_style=False", "interleaved=1", "LLAMA_ROPE_TYPE_NORM"):
        assert setting in other
    assert "traditional=False" not in other


def test_one_pair_has_one_layout():
    report = check_rope(lambda x, p: plain(x, p, layout="interleaved"), dim=2, layout="half")
    assert report.ok, report
    assert any("other_layout" in text for text in report.ambiguous)


def test_short_positions_do_not_show_bfloat16_positions():
    report = check_rope(wrong("bf16_positions"), dim=64, layout="half", max_position=255)
    assert report.ok, report
    assert any("bf16_positions" in text for text in report.ambiguous)


# misbehavior -----------------------------------------------------------------------------------------------------------


def failing(fn, check, match, **options):
    report = check_rope(fn, dim=64, layout="half", **options)
    assert not report.ok
    failed = [c for c in report.checks if c.status == "failed" and c.name == check]
    assert failed, report
    assert match in failed[0].detail, report
    return report


def raising(x, p):
    raise RuntimeError("kernel launch failed")


def short_table(x, p):
    if p.max() >= 4096:
        raise IndexError("index out of range")
    return plain(x, p)


def one_dimensional(x, p):
    if p.ndim != 1:
        raise ValueError("positions must be 1-D")
    return plain(x, p[None])


def test_misbehavior_is_reported_not_raised():
    failing(raising, "call", "RuntimeError: kernel launch failed")
    report = failing(one_dimensional, "call", "1-D")
    assert any('positions="shared"' in text for text in report.advice)
    failing(lambda x, p: (x, x), "call", "tuple of 2")
    failing(lambda x, p: None, "call", "None")
    failing(lambda x, p: x + 0j, "call", "complex")
    failing(lambda x, p: "text", "call", "str")
    failing(lambda x, p: x[..., :32], "shape", "(3, 5, 23, 32), expected (3, 5, 23, 64)")
    failing(lambda x, p: np.swapaxes(plain(x, p), 1, 2), "shape", "(batch, n, heads, dim), not (batch, heads, n, dim)")
    failing(lambda x, p: x.astype(int), "dtype", "int64")
    failing(lambda x, p: x * np.nan, "finite", "from position 0 on")
    failing(lambda x, p: np.ones_like(x), "values", "differ")


def test_a_table_that_ends_is_said_and_not_accused():
    """Far positions that nobody asked for are left out; those that were asked for are a failure."""
    report = check_rope(short_table, dim=64, layout="half")
    assert report.ok, report
    detail = next(check.detail for check in report.checks if check.status == "skipped")
    assert "IndexError" in detail
    assert "up to 4095 it runs" in detail
    assert check_rope(short_table, dim=64, layout="half", max_position=4095).ok
    asked = check_rope(short_table, dim=64, layout="half", max_position=5000)
    assert not asked.ok
    assert any("max_position=4095" in text for text in asked.advice)


def test_the_report_says_what_a_wrong_answer_keeps():
    """A magnitude changes position 0 and lengths, a later position keeps lengths."""

    def status(report):
        return {check.name: check.status for check in report.checks}

    longer = status(check_rope(lambda x, p: plain(x, p) * f32(1.25), dim=64, layout="half"))
    assert (longer["right at position 0"], longer["lengths kept"]) == ("failed", "failed")
    later = status(check_rope(lambda x, p: plain(x, p + 1), dim=64, layout="half"))
    assert (later["right at position 0"], later["lengths kept"]) == ("failed", "passed")


def test_sixteen_bit_positions_overflow_and_are_named():
    report = failing(wrong("f16_positions"), "finite", "from position 65535 on")
    assert named(report) == ["f16_positions"]


def test_positions_that_to_would_round_are_refused():
    with pytest.raises(ValueError, match="float16, which does not hold them; pass to_positions="):
        check_rope(plain, dim=64, layout="half", to=lambda a: a.astype(np.float16), max_position=60000)
    options = {"to": lambda a: a.astype(np.float16), "to_positions": lambda a: a}
    assert check_rope(lambda x, p: plain(x.astype(f32), p).astype(np.float16), dim=64, layout="half", **options).ok


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"dim": 7, "layout": "half"}, "dim is 7"),
        ({"dim": 8, "layout": "neox"}, "layout is 'neox'"),
        ({"dim": 8, "layout": "half", "rotary_dim": 16}, "rotary_dim is 16 and dim 8"),
        ({"dim": 8, "layout": "half", "base": -1.0}, "base is -1"),
        ({"dim": 8, "layout": "half", "max_position": 0}, "max_position is 0"),
        ({"dim": 8, "layout": "half", "positions": "1d"}, "positions is '1d'"),
        ({"dim": 8, "layout": "half", "model": "fp8"}, "there is no model 'fp8'"),
        ({"dim": 8, "layout": "half", "model": "f32-given"}, "there is no model 'f32-given'"),
        ({"dim": 8, "layout": "half", "exponent_dim": 0}, "exponent_dim is 0"),
        ({"dim": 4, "layout": "half", "frequencies": [1, 0.1], "base": 1e4}, "leave out base and exponent_dim"),
        ({"dim": 4, "layout": "half", "frequencies": [1, 0.1], "exponent_dim": 4}, "leave out base and exponent_dim"),
        ({"dim": 4, "layout": "half", "frequencies": [1, 0.1], "model": "f32-iterative"}, "there is no model 'f32-iterative'"),
        ({"dim": 4, "layout": "half", "frequencies": [1, 0.1, 1, 0.1]}, r"shape \(4,\), 4 rotated features need \(2,\)"),
        ({"dim": 4, "layout": "half", "frequencies": [1, -0.1]}, "run from -0.1 to 1"),
        ({"dim": 4, "layout": "half", "frequencies": [0, 0]}, "not all 0"),
        ({"dim": 4, "layout": "half", "frequencies": [1, np.nan]}, "expected finite"),
    ],
)
def test_arguments_that_make_no_sense(options, match):
    with pytest.raises(ValueError, match=match):
        check_rope(plain, **options)


# report ----------------------------------------------------------------------------------------------------------------


def test_the_report_is_plain_data():
    import json

    for fn in (wrong("f16_positions"), raising):
        report = check_rope(fn, dim=64, layout="half")
        data = json.loads(json.dumps(report.as_dict(), allow_nan=False))
        assert data["ok"] is report.ok
        assert len(data["checks"]) == len(report.checks)


@pytest.mark.parametrize(
    ("example", "name"), [*zip(broken.EXAMPLES, ["other_layout", "bf16_positions", "position_plus_one"], strict=True)]
)
def test_the_examples_that_ship(example, name):
    assert named(check_rope(example.function, dim=broken.DIM, layout="half")) == [name]
