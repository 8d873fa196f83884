"""Functions that receive tables are asked as they are: every convention, right and wrong, in NumPy, torch and transformers."""

import functools
import importlib
import inspect

import numpy as np
import pytest

from posref import pairing
from posref.check import check, check_rope, contract
from posref.check.conventions import recognised
from posref.ops import op
from tests.every import every

WIDTH = 8


def turned(x, cos, sin, layout):
    a, b = pairing.split(x, layout)
    return pairing.join(a * cos - b * sin, a * sin + b * cos, layout)


def halved(table, layout):
    """One entry per pair, of tables that have one per pair or one per feature in either layout."""
    return table if table.shape[-1] == WIDTH // 2 else pairing.split(table, layout)[0]


def conventions(layout, wrong):
    """The same rotation behind each signature; `wrong` changes (cos, sin, layout) or what is returned."""
    lay = {"other_layout": {"half": "interleaved", "interleaved": "half"}[layout]}.get(wrong, layout)

    def rotate(x, cos, sin):
        cos, sin = (sin, cos) if wrong == "cos_sin_swapped" else (cos, -sin if wrong == "sign" else sin)
        return turned(x, cos, sin, lay)

    def pair(q, k, cos, sin):
        return rotate(q, cos, sin), k if wrong == "positions_zero" else rotate(k, cos, sin)

    def apply_rotary_pos_emb(q, k, cos, sin, position_ids=None, unsqueeze_dim=1):
        assert cos.shape == (len(q), q.shape[2], WIDTH)
        return pair(q, k, *(halved(np.expand_dims(y, unsqueeze_dim), layout) for y in (cos, sin)))

    def of_features(x, cos, sin):
        assert cos.shape[-1] == x.shape[-1]
        return rotate(x, halved(cos, layout), halved(sin, layout))

    def of_pairs(x, *, sin, cos):
        return rotate(x, cos, sin)

    def of_complex(xq, xk, freqs_cis):
        assert freqs_cis.dtype == np.complex64
        return pair(xq, xk, freqs_cis.real, freqs_cis.imag)

    def of_angles(t, freqs, scale=1):
        assert freqs.shape[-1] == WIDTH
        angles = halved(freqs, layout)
        return rotate(t, np.cos(angles), np.sin(angles)) * scale

    def angles_first(freqs, t):
        assert freqs.ndim == 2
        return of_angles(t, freqs)

    def of_complex_angles(x, freqs):
        assert freqs.dtype == np.complex64
        return rotate(x, freqs.real, freqs.imag)

    return [apply_rotary_pos_emb, of_features, of_pairs, of_complex, of_angles, angles_first, of_complex_angles]


WRONG = ("", "other_layout", "sign", "cos_sin_swapped", "positions_zero")
CASES = [  # each convention right and with one mistake, and each mistake in both layouts
    (layout, wrong, conventions(layout, wrong)[i])
    for i in range(7)
    for layout, wrong in ((pairing.LAYOUTS[i % 2], ""), (pairing.LAYOUTS[i // 4], WRONG[1 + i % 4]))
]


@every(CASES, name=lambda case: f"{case[:2]} {case[2].__name__}")
def test_a_convention_is_right_or_its_mistake_is_named(layout, wrong, fn):
    report = check_rope(fn, dim=WIDTH, layout=layout)
    assert report.ok == (not wrong), str(report)
    assert [finding.name for finding in report.diagnosis] == [wrong] * bool(wrong), str(report)
    assert f"called as {recognised(fn)}" in str(report)
    assert "frequencies and positions were given, not checked" in str(report)
    assert ("result k" in str(report) or "result xk" in str(report)) == (wrong == "positions_zero")


@pytest.mark.parametrize(
    ("family", "name", "settings"),
    [
        ("glm", "apply_rotary_pos_emb", {"layout": "interleaved", "rotary_dim": 8}),
        ("gptj", "apply_rotary_pos_emb", {"layout": "interleaved", "axes": "bnhd"}),
        ("deepseek_v3", "apply_rotary_pos_emb_interleave", {"layout": "interleaved_to_half"}),
        ("llama4", "apply_rotary_emb", {"layout": "interleaved", "axes": "bnhd", "positions": "shared"}),
    ],
)
def test_functions_of_transformers(family, name, settings):
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    fn = getattr(importlib.import_module(f"transformers.models.{family}.modeling_{family}"), name)
    if "unsqueeze_dim" in inspect.signature(fn).parameters and settings.get("axes") == "bnhd":
        fn = functools.partial(fn, unsqueeze_dim=2)
    check_rope(fn, dim=16, to=torch.from_numpy, **settings).require()


SINES = {"layout": "interleaved"}


def from_one(max_len, dim):
    return op("sinusoidal.encode").spec(np.arange(max_len) + 1, dim=dim, **SINES)


SLOPES = 0.5 ** np.arange(1, 9)
BIAS = "alibi.bias", {"heads": 8, "form": "signed"}
FLEX = [
    (*BIAS, lambda score, b, h, q_idx, kv_idx: score + SLOPES[h] * (kv_idx - q_idx), ""),
    (*BIAS, lambda score, b, h, q_idx, kv_idx: score - SLOPES[h] * (kv_idx - q_idx), "sign"),
    ("attention.causal_mask", {}, lambda b, h, q_idx, kv_idx: kv_idx <= q_idx + 1, "sees_one_ahead"),
    ("attention.window_mask", {"width": 3}, lambda b, h, q_idx, kv_idx: abs(q_idx - kv_idx) <= 3, "window_one_more"),
    ("position_ids.lambda_mask", {"window": 3, "sinks": 2}, lambda b, h, q_idx, kv_idx: kv_idx <= q_idx, "WINDOW"),
]
LENGTHS = [  # of queries and keys, of queries and what came before, or of all
    ("attention.causal_mask", {}, lambda q_len, past_len: np.tri(q_len, q_len + past_len, past_len) > 0, ""),
    ("attention.causal_mask", {}, lambda q_len, past_len: np.tri(q_len, q_len + past_len, past_len - 1) > 0, "causal_strict"),
    ("attention.causal_mask", {}, lambda n: np.tri(n, k=1) > 0, "sees_one_ahead"),
    ("attention.causal_mask", {}, lambda n, m: m[..., None, :] <= n[..., None], ""),  # of positions, whatever their names
    ("attention.causal_mask", {"positions": "range"}, lambda a, b: np.tri(a, b, b - a) > 0, ""),
    (*BIAS, lambda seq_len, heads: SLOPES[:heads, None, None] * (np.arange(seq_len) - np.arange(seq_len)[:, None]), ""),
    ("sinusoidal.encode", {"dim": 16, **SINES}, from_one, "starts_at_one"),
]


@every(FLEX + LENGTHS, name=lambda case: f"{case[0]} {case[3]}")
def test_functions_of_indices_and_of_lengths(op, settings, fn, wrong):
    report = check(fn, op, **settings)
    assert report.ok == (not wrong), str(report)
    assert wrong in ("", "WINDOW") or [finding.name for finding in report.diagnosis] == [wrong], str(report)


def test_tensors_are_proposed_to_a_score_mod():
    torch = pytest.importorskip("torch")
    score = lambda score, b, h, q_idx, kv_idx: score - torch.exp2(-h - 1) * (q_idx - kv_idx)  # noqa: E731
    report = check(score, BIAS[0], **BIAS[1])
    assert report.advice == ["It runs with tensors: pass to=torch.from_numpy."]
    report = check_rope(lambda x, cos, sin: x * cos.clone(), dim=8, layout="half")
    assert report.advice == ["It received numpy arrays; if it expects tensors, pass to=torch.from_numpy."]


def test_a_score_that_is_not_used_is_said():
    report = check(lambda score, b, h, q_idx, kv_idx: SLOPES[h] * (kv_idx - q_idx), "alibi.bias", heads=8, form="signed")
    assert "returns the same whatever the score is: return score + bias" in str(report)


def test_what_makes_its_own_tables_is_not_taken_for_one_that_receives_them():
    def of_positions(x, positions, cos=None, sin=None):
        return x

    def with_more(q, k, v, cos, sin):
        return q

    bound = functools.partial(lambda x, positions, cos, sin: x, cos=1, sin=0)
    assert [recognised(fn) for fn in (of_positions, with_more, bound, lambda x, positions: x, lambda x, cos: x)] == [None] * 5


@every([("half", 0, "the first half"), ("interleaved", 1, "the second of each pair of columns")])
def test_the_half_of_the_tables_that_alone_is_read_is_said(layout, half, said):
    reader = lambda x, cos, sin: turned(x, *(pairing.split(y, layout)[half] for y in (cos, sin)), layout)  # noqa: E731
    assert f"where {said}" in check_rope(reader, dim=WIDTH, layout=layout).subject


def test_both_halves_of_the_tables_are_read():
    assert (
        "alone" not in check_rope(lambda x, cos, sin: x * cos + turned(x, 0, 1, "half") * sin, dim=WIDTH, layout="half").subject
    )


def test_tables_are_made_for_given_positions():
    with pytest.raises(ValueError, match=r"fn\(x, cos, sin\) receives tables.* leave out positions="):
        check_rope(lambda x, cos, sin: x, dim=8, layout="half", positions="range")


def test_a_result_that_reads_the_other_array_is_said():
    """q cos + turned(k) sin: a slip of one letter."""

    def apply_rotary_pos_emb(q, k, cos, sin):
        half = np.r_[-np.ones(WIDTH // 2), np.ones(WIDTH // 2)] * np.roll(k, WIDTH // 2, -1)
        return turned(q, cos[..., : WIDTH // 2], sin[..., : WIDTH // 2], "half"), q * cos + half * sin

    report = check_rope(apply_rotary_pos_emb, dim=WIDTH, layout="half")
    assert "call: the result of k depends on q: with other numbers" in str(report)
    assert "raised" not in str(report)
    assert not report.diagnosis


def test_metas_function_is_asked_in_its_axes():
    def apply_rotary_emb(xq, xk, freqs_cis):
        assert freqs_cis.shape == (xq.shape[1], xq.shape[-1] // 2)  # of tokens, before the heads
        rotated = (turned(x, freqs_cis.real[:, None], freqs_cis.imag[:, None], "interleaved") for x in (xq, xk))
        return tuple(y.astype(np.float32) for y in rotated)

    report = check_rope(apply_rotary_emb, dim=WIDTH, layout="interleaved")
    assert report.ok, str(report)
    assert "axes=bnhd" in report.subject
    assert any("positions were shared" in line for line in report.ambiguous)
    back = lambda xq, xk, freqs_cis: apply_rotary_emb(xq, xk, freqs_cis.conj())  # noqa: E731
    wrong = check_rope(back, dim=WIDTH, layout="interleaved")
    assert [finding.name for finding in wrong.diagnosis] == ["sign"]


def rotary(width, base=10000.0, low=lambda y: y):
    """forward(x, position_ids) of a module of transformers, which returns cos and sin."""

    def forward(x, position_ids):
        angle = position_ids[..., None] * low(base ** (-2 * np.arange(width // 2) / width))
        return tuple(np.concatenate([y, y], axis=-1).astype(np.float32) for y in (np.cos(angle), np.sin(angle)))

    return forward


def test_a_module_of_tables_is_asked_as_it_is():
    report = check_rope(rotary(WIDTH), dim=WIDTH, layout="half")
    assert report.ok
    assert "it returned cos and sin" in report.subject
    half = rotary(WIDTH, low=lambda w: w.astype(np.float16))
    for module, layout, name in (
        (rotary(WIDTH, 500.0), "half", "wrong_base 500"),
        (half, "half", "f16_inv_freq"),
        (rotary(WIDTH), "interleaved", "tiled_tables"),
    ):
        named = check_rope(module, dim=WIDTH, layout=layout).diagnosis
        assert [finding.name for finding in named] == [name]


def test_a_module_that_rotates_both_is_asked_as_it_is():
    class Module:
        def __call__(self, *given):
            return self.forward(*given)

        def forward(self, q, k, position_ids):
            tables = [y[:, None, :, : WIDTH // 2] for y in rotary(WIDTH)(q, position_ids)]
            return turned(q, *tables, "half"), k

    report = check_rope(Module(), dim=WIDTH, layout="half")
    assert [finding.name for finding in report.diagnosis] == ["positions_zero"]
    assert "result k" in report.subject


def half_turned(x, cos, sin, wrong):
    cos, sin = (y[..., : WIDTH // 2] for y in (cos, sin))
    return turned(x, cos, -sin if wrong == "sign" else sin, "half")


def flux(wrong):
    """diffusers: freqs_cis is a tuple of real tables, one number per feature."""

    def apply_rotary_emb(x, freqs_cis):
        cos, sin = freqs_cis
        assert cos.shape == (x.shape[-2], x.shape[-1])
        return half_turned(x, cos[None, None], sin[None, None], wrong)

    return apply_rotary_emb


def tokens_first(wrong):
    """flash-attn: x (batch, n, heads, d); vLLM: x (tokens, heads, d)."""

    def apply_rotary_emb(x, cos, sin):
        assert cos.shape == (*x.shape[:-2], WIDTH // 2)
        return half_turned(x, cos[..., None, :], sin[..., None, :], wrong)

    return apply_rotary_emb


def of_rows(wrong):
    """transformers up to 4.37: tables of all rows."""

    def apply_rotary_pos_emb(q, k, cos, sin, position_ids):
        assert cos.shape[1:] == (WIDTH,)
        rows = np.arange(q.shape[2])[None] if wrong == "positions_ignored" else position_ids
        return tuple(half_turned(x, cos[rows][:, None], sin[rows][:, None], wrong) for x in (q, k))

    return apply_rotary_pos_emb


def by_keyword(wrong):
    """torchtune: input_pos is a keyword."""

    def forward(x, *, input_pos=None):
        rows = np.arange(x.shape[2])[None] if wrong == "positions_ignored" else input_pos
        return half_turned(x, *(y[:, None] for y in rotary(WIDTH)(x, rows)), wrong).astype(np.float32)

    return forward


RELEASED = [
    (flux, {}, "(cos, sin), real (n, features, layout half)", "sign"),
    (tokens_first, {}, "(batch, n, pairs), axes=bnhd", "sign"),
    (tokens_first, {"axes": "thd"}, "(tokens, pairs)", ""),
    (of_rows, {}, "fn(q, k, cos, sin, position_ids) with tables (rows, features", ""),
    (of_rows, {}, "fn(q, k, cos, sin, position_ids) with tables (rows, features", "positions_ignored"),
    (by_keyword, {"max_position": 4095}, "positions were passed as input_pos=", ""),
    (by_keyword, {"max_position": 4095}, "positions were passed as input_pos=", "positions_ignored"),
]


@every(RELEASED, name=lambda case: f"{case[0].__name__} {case[1]} {case[3]}")
def test_a_form_of_released_code_is_asked_as_it_is(of, ways, said, wrong):
    report = check_rope(of(wrong), dim=WIDTH, layout="half", **ways)
    assert said in report.subject, str(report)
    assert report.ok == (not wrong), str(report)
    assert [finding.name for finding in report.diagnosis] == [wrong] * bool(wrong), str(report)


def test_cos_and_sin_of_every_feature_are_tables():
    for made, wrong in ((rotary(WIDTH), ""), (rotary(WIDTH, 500.0), "wrong_base 500")):
        for module in (made, lambda positions, made=made: made(None, positions)):
            report = check(module, "rope.tables", dim=WIDTH)
            assert "it returned cos and sin of every feature" in report.subject
            assert [finding.name for finding in report.diagnosis] == [wrong] * bool(wrong), str(report)
            assert report.ok == (not wrong)


def test_a_function_without_a_mask_makes_the_causal_one():
    def causal(q, k, v, query_positions, key_positions, scale, shift=0):
        mask = key_positions[:, None, None] <= query_positions[:, None, :, None] + shift
        settings = {"dim": 8, "layout": "half", "scale": scale}
        return op("rope.attend").spec(q, k, v, query_positions, key_positions, mask, **settings).astype(np.float32)

    for shift, wrong in ((0, ""), (1, "sees_one_ahead")):
        attend = functools.partial(causal, shift=shift)
        report = check(attend, "rope.attend", dim=8, layout="half", scale=0.3, causal=True)
        assert "it has no parameter for a mask, and none was passed" in report.subject
        assert report.ok == (not wrong), str(report)
        assert [finding.name for finding in report.diagnosis] == [wrong] * bool(wrong), str(report)
    lines = contract("rope.attend", dim=8, layout="half", scale=0.3, causal=True)
    assert any("or leave out this parameter, and make the causal mask" in line for line in lines)
