"""The second criterion and the model of repeated multiplication: honest code passes, and what is a tenth too large does not."""

import numpy as np
import pytest

from posref import ops, vectors
from posref.check import rounded
from posref.ops import rope as rope_ops
from posref.ops.common import per_head
from posref.relative import alibi, t5
from posref.rotary import rope
from posref.vectors.models import differences, ratios, rms, tolerance
from proofs.vectors import _honest
from tests import golden

JUDGED = [case for case in golden.cases() if case.rms]
RELEASED = [c for path in sorted(vectors.DIRECTORY.glob("released/*.json")) for c in vectors.released(path.stem).cases if c.rms]
EVERY = [*JUDGED, *RELEASED, *vectors.kernels()]
f32 = np.float32
PAIRS = [(case, model) for case in EVERY for model in case.rms]


def test_attention_and_wide_tolerances_have_it():
    """Attention in float32 and 16 bits; other cases in models whose tolerances hold the output divided by 1.1."""
    kernels = vectors.kernels()
    for case in [*golden.cases(), *RELEASED, *kernels]:
        wide = {
            m for m in case.models if case.cond and case.expected.any() and vectors.worst(case, case.expected / 1.1, m) <= 1
        }
        narrow = {m for m in case.models if "16" in m or (m.startswith("f32") and case not in kernels)}
        attention = narrow if ops.attends(case.op) and case.cond else set()
        wide = {m for m in wide if case.gauge == "none" and not (case in kernels and m.startswith("f32"))}
        assert case.rms.keys() == attention | wide, case.id
    assert len({case.id.split("/")[0] for case in JUDGED}) >= 13
    assert sum("bf16-all" in case.rms for case in JUDGED) > 40


@pytest.mark.parametrize("factor", [1.1, 1 / 1.1])
def test_outputs_times_a_factor_fail(factor):
    """In every model of every case that is no integer and not 0, those without r too; kernels have none in float32."""
    pairs = [(case, m) for case in golden.cases() for m in case.models if case.cond and case.expected.any()] + PAIRS
    passed = [f"{case.id} in {m}" for case, m in pairs if vectors.error(case, factor * case.expected, m) <= 1]
    assert passed == []


def test_the_first_criterion_alone_passes_them():
    """So the second is needed: these are within the tolerance of every element."""
    passed = {case.id.split("/")[0] for case, m in PAIRS if vectors.worst(case, 1.2 * case.expected, m) <= 1}
    assert {"linear_attention", "transformer_xl", "t5"} <= passed


def test_rolled_outputs_fail():
    pairs = [(case, m) for case, m in PAIRS if case.expected.shape[-1] > 1]
    passed = [case.id for case, m in pairs if vectors.error(case, np.roll(case.expected, 1, axis=-1), m) <= 1]
    assert passed == []


def test_a_small_r_refuses_honest_code_and_a_large_one_lets_wrong_code_pass():
    """r decides: the same outputs are judged otherwise when it is another number."""
    for case in (vectors.case(id) for id in ("t5/cross/h3-d4/attend", "transformer_xl/causal/q2-k5-h3-d4/attend-memory")):
        op, arguments = ops.of_case(case)
        way = next(rounded.ways("bf16-all"))
        honest = rounded.run(op.spec, arguments, way, 8, _honest.CONSTANTS)
        mutated = {r: case._replace(rms={"bf16-all": r * case.rms["bf16-all"]}) for r in (1, 1 / 20, 20)}
        assert vectors.error(mutated[1], honest, "bf16-all") <= 1 / 3 < 1 < vectors.error(mutated[1 / 20], honest, "bf16-all")
        wrong = 1.1 * case.expected
        assert vectors.error(mutated[20], wrong, "bf16-all") <= 1 < vectors.error(mutated[1], wrong, "bf16-all")


@pytest.mark.parametrize("system", ["alibi", "rope"])
def test_r_is_what_honest_ways_give(system):
    """The largest of them is at a third of r, unless one rounding of the result or the end at 1 decides."""
    case = next(case for case in JUDGED if case.id.startswith(f"{system}/") and case.op != "scores")
    assert _honest.spreads(case._replace(rms={})) == case.rms
    op, arguments = ops.of_case(case)
    for model, r in case.rms.items():
        bits, allowed = rounded.bits(model), tolerance(case, model)
        outputs = [rounded.run(op.spec, arguments, way, bits, _honest.CONSTANTS) for way in rounded.ways(model)]
        largest = max(rms(ratios(differences(case, got), allowed)) for got in outputs)
        once = rms(ratios(vectors.MODELS[model].c_out * case.expected, allowed))
        assert r / 1.11 < max(3 * largest, once) <= r or r == 1


def test_ignored_elements_are_not_counted():
    case = JUDGED[0]
    half = np.arange(case.expected.size).reshape(case.expected.shape) % 2 == 0
    got = case.expected * np.where(half, 1.1, 1.0)
    model = min(case.rms)
    every, odd, even = (case._replace(ignore=ignore) for ignore in (None, half, ~half))
    assert vectors.spread(odd, got, model) == 0 < vectors.spread(every, got, model) < vectors.spread(even, got, model)
    assert vectors.spread(every, np.zeros(3), model) == vectors.spread(every, got * np.nan, model) == np.inf


# other people's arithmetic


torch = pytest.importorskip("torch", reason="pip install torch")
WIDTH = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}


def eager(q, k, v, scale, bias, mask, inside):
    """As models write it: scores, softmax and products, each stored; the softmax in float32 or as it is."""
    s = q @ k.transpose(-1, -2) * scale
    s = s if bias is None else s + bias
    s = s if mask is None else s.masked_fill(~mask, torch.finfo(s.dtype).min)
    return torch.softmax(s, -1, dtype=inside).to(q.dtype) @ v


def sdpa(q, k, v, scale, bias, mask, inside):
    bias = bias if mask is None else (torch.zeros(mask.shape, dtype=q.dtype) if bias is None else bias).masked_fill(~mask, -1e4)
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=scale)


def streamed(q, k, v, scale, bias, mask, inside):
    """As kernels do: two keys at a time, a running maximum and sum in float32, weights stored before they meet the values."""
    rows = (*q.shape[:-1], 1)
    top, total, out = torch.full(rows, -1e30), torch.zeros(rows), torch.zeros((*q.shape[:-1], v.shape[-1]))
    for start in range(0, k.shape[-2], 2):
        part = slice(start, start + 2)
        s = q.float() @ k[..., part, :].float().transpose(-1, -2) * scale
        s = s if bias is None else s + bias[..., part].float()
        s = s if mask is None else s.masked_fill(~mask[..., part], -1e30)
        new = torch.maximum(top, s.amax(-1, keepdim=True))
        p = torch.exp(s - new) * (1 if mask is None else mask[..., part])
        total = total * torch.exp(top - new) + p.sum(-1, keepdim=True)
        out = out * torch.exp(top - new) + p.to(q.dtype).float() @ v[..., part, :].float()
        top = new
    return (out / total.clamp(min=1e-30)).to(q.dtype)


def one_by_one(q, k, v, scale, bias, mask, inside):
    """Every sum term by term from the last, every operation stored."""
    s = sum((q[..., :, None, d] * k[..., None, :, d] for d in reversed(range(q.shape[-1]))), torch.zeros((), dtype=q.dtype))
    s = scale * s if bias is None else scale * s + bias
    s = s if mask is None else s.masked_fill(~mask, torch.finfo(s.dtype).min)
    p = torch.exp(s - s.amax(-1, keepdim=True))
    p = p if mask is None else p * mask
    total = sum((p[..., :, j] for j in reversed(range(p.shape[-1]))), torch.zeros((), dtype=q.dtype))
    total = torch.where(total == 0, torch.ones_like(total), total)[..., None]
    return sum(
        (p[..., :, j, None] / total * v[..., None, j, :] for j in reversed(range(p.shape[-1]))), torch.zeros((), dtype=q.dtype)
    )


STYLES = {"eager": (eager, None), "eager, softmax in float32": (eager, torch.float32), "sdpa": (sdpa, None)}
STYLES |= {"streamed": (streamed, None), "one by one": (one_by_one, None)}


def asked(case):
    """(q, k, v, scale, bias, mask) of a case in float64, or None: what the five styles can be asked for."""
    t, p, system = case.tensors, case.params, case.id.split("/")[0]
    if p.get("softcap") or "sinks" in t or "row_scale" in t or p.get("window"):
        return None
    if system == "rope":
        return turned(case)
    if (system, case.op) not in {("attention", "attend"), ("t5", "attend"), ("t5", "cross_attend"), ("alibi", "attend")}:
        return None
    bias, mask = t.get("bias"), None if t.get("seen") is None else t["seen"] != 0
    if case.op == "attend" and system != "attention":
        mask = t["keys"][..., None, None, :] <= t["queries"][..., None, :, None] if p.get("causal") else None
        if system == "t5":
            bias = t5.bias(
                t["queries"], t["keys"], t["table"], max_distance=p["max_distance"], bidirectional=p["bidirectional"]
            )
        else:
            slopes = alibi.slopes(p["heads"], max_bias=p["max_bias"])
            bias = alibi.bias(t["queries"], t["keys"], slopes, form=p["form"])
    k, v = (np.repeat(x, t["q"].shape[-3] // x.shape[-3], axis=-3) for x in (t["k"], t["v"]))
    return t["q"], k, v, p.get("scale", 1.0), bias, mask


def turned(case):
    """Rotated in float32 with tables of float32, as models do."""
    a = ops.of_case(case)[1]
    theta = (1 / f32(a.base) ** (np.arange(0, a.dim, 2, dtype=f32) / f32(a.dim))).astype(f32)
    q, k = (
        rope.rotate(x.astype(f32), *rope.tables(per_head(at, x).astype(f32), theta), layout=a.layout, rotary_dim=a.dim)
        for x, at in ((a.q, a.query_positions), (a.k, a.key_positions))
    )
    k, v = (np.repeat(x, q.shape[-3] // x.shape[-3], axis=-3) for x in (k, a.v))
    return q, k, v, a.scale, None, a.mask


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("kind", WIDTH)
def test_honest_code_of_torch_passes(style, kind):
    """In a model of its dtype: five ways to compute attention, none of them among those of r."""
    function, inside = STYLES[style]
    number, most = 0, 0.0
    for case in JUDGED:
        models = [m for m in case.rms if m.partition("-")[0] == kind]
        meant = models[-1:] in ([f"{kind}-all"], ["f32"]) or function is not one_by_one  # which computes in 16 bits
        given = asked(case) if models and meant else None
        if given is None:
            continue
        *tensors, scale, bias, mask = given
        bias = None if bias is None else torch.tensor(np.asarray(bias)).to(WIDTH[kind])
        mask = None if mask is None else torch.tensor(np.array(mask))
        got = function(*(torch.tensor(x).to(WIDTH[kind]) for x in tensors), scale, bias, mask, inside).double().numpy()
        if mask is not None and function is not streamed:  # only some of them know rows that see nothing
            got = np.where(np.broadcast_to(mask.numpy(), (*got.shape[:-1], mask.shape[-1])).any(-1, keepdims=True), got, 0)
        worst = min(vectors.worst(case, got, m) for m in models)
        assert worst <= 1, (case.id, worst)
        spread = min(vectors.spread(case, got, m) for m in models if vectors.worst(case, got, m) <= 1)
        assert spread <= 1, (case.id, spread)
        number, most = number + 1, max(most, spread)
    assert number >= 11
    assert 0.1 < most <= 0.6


def power(dim, base):
    return f32(1) / f32(base) ** (np.arange(0, dim, 2, dtype=f32) / f32(dim))


def exp_log(dim, base):
    return np.exp(np.arange(0, dim, 2, dtype=f32) * f32(-np.log(base) / dim))


@pytest.mark.parametrize("recipe", [power, exp_log])
def test_angles_of_every_recipe_pass(recipe):
    """Far away the recipe of the frequencies decides, and r knows the rounding of all of them."""
    attends = [c for c in JUDGED if {"base", "dim"} <= c.params.keys() and ops.attends(c.op)]
    for case, model in [(c, m) for c in attends for m in c.rms][::7]:
        op, arguments = ops.of_case(case)
        change = ops.inside(rope, "frequencies", _given(recipe(case.params["dim"], case.params["base"]).astype(float)))
        way, bits = next(rounded.ways(model)), rounded.bits(model)
        got = rounded.run(lambda change=change, op=op, **a: change(op.spec, ops.Arguments(a)), arguments, way, bits, ())
        assert vectors.error(case, got, model) <= 1, (case.id, model)


# angles by repeated multiplication


def repeated(case, dtype=f32):
    """theta_t = theta_{t-1} base^(-2/dim), in float32."""
    dim = case.params["dim"]
    divisor = dim if case.params.get("divisor", "dim") == "dim" else max(dim - 2, 1)
    ratio = dtype(f32(case.params["base"]) ** f32(-2 / divisor))
    steps = [dtype(1)]
    for _ in range(dim // 2 - 1):
        steps.append(dtype(steps[-1] * ratio))
    return np.array(steps)


def test_repeated_multiplication_passes_its_own_model_alone():
    case = vectors.case("rope/any/d128-b1e4/inv_freq")
    assert vectors.error(case, repeated(case), "f32-iterative") <= 1 < vectors.error(case, repeated(case), "f32")


def test_sinusoids_by_repeated_multiplication():
    errors = {name: [] for name in ("f32", "f32-iterative")}
    for case in vectors.cases("sinusoidal/*"):
        if "f32-iterative" in case.models and case.op == "frequencies":
            for name, found in errors.items():
                found.append(vectors.error(case, repeated(case), name))
    wide = vectors.case("sinusoidal/dim/d512-b1e4/frequencies")
    assert vectors.error(wide, repeated(wide), "f32-iterative") <= 1 < vectors.error(wide, repeated(wide), "f32")
    assert max(errors["f32-iterative"]) <= 1 < max(errors["f32"])


def _given(value):
    return lambda right: lambda *_: value


@pytest.mark.parametrize("op", ["rotate", "attend"])
def test_turned_by_repeated_multiplication(op):
    """Rotations and attention in float32 with such angles."""
    most = 0.0
    for case in (c for c in vectors.cases("rope/*") if c.op == op and "f32-iterative" in c.models):
        op_, arguments = ops.of_case(case)
        floats = {name: x.astype(f32) for name, x in arguments.items() if getattr(x, "dtype", None) in (float, int)}
        change = ops.inside(rope_ops, "_theta", _given(repeated(case)))
        got = change(op_.spec, ops.Arguments(arguments | floats))
        most = max(most, vectors.error(case, got, "f32-iterative"))
        assert vectors.error(case, got, "f32-iterative") <= 1, case.id
    assert most > 0.015


@pytest.mark.parametrize(
    "wrong",
    [
        lambda case: repeated(case, np.float16),
        lambda case: repeated(case._replace(params=case.params | {"base": 1.001 * case.params["base"]})),
        lambda case: np.roll(repeated(case), 1),
        lambda case: repeated(case)[::-1],
        lambda case: repeated(case) * f32(1 + 2**-14),
    ],
)
def test_wrong_frequencies_are_refused(wrong):
    for id in ("rope/any/d128-b1e4/inv_freq", "sinusoidal/dim/d512-b1e4/frequencies"):
        case = vectors.case(id)
        assert vectors.error(case, wrong(case), "f32-iterative") > 1


def test_growth_by_its_definition():
    """The larger quotient of the two k over all pairs, and no smaller than any of them."""
    for case in (case for case in golden.cases() if case.growth):
        t, dim = np.arange(case.params["dim"] // 2), case.params["dim"]
        exponent = 2 * t * np.log(case.params["base"]) / dim
        largest = ((exponent + 3 * t + 4) / (3 * exponent + 4)).max()
        assert largest <= case.growth["f32-iterative"] <= 1.01 * max(largest, 1), case.id
