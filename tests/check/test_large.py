"""Functions of large arguments: what overflows on the way is seen, what takes care passes in every format."""

import inspect

import numpy as np
import pytest

from posref import ops
from posref.check import check


def softmax(s, mask):
    weights = np.where(mask, np.exp(s - np.where(mask, s, -np.inf).max(axis=-1, keepdims=True)), 0)
    return (weights / weights.sum(axis=-1, keepdims=True)).astype(s.dtype)


def softmax_without_the_maximum(s, mask):
    weights = np.where(mask, np.exp(s), 0)
    return weights / weights.sum(axis=-1, keepdims=True)


def stick(z, mask, softplus):
    left = np.where(mask, -softplus(z), 0)
    later = np.cumsum(left[..., ::-1], axis=-1)[..., ::-1] - left
    return np.where(mask, np.exp(z - softplus(z) + later), 0).astype(z.dtype)


def broken_stick(z, mask):
    """Products of shares, as the paper has them; where one is 1 the rest is 0."""
    share = np.where(mask, 1 / (1 + np.exp(-z)), 0).astype(z.dtype)
    left = np.cumprod(1 - share[..., ::-1], axis=-1)[..., ::-1]
    return share * np.concatenate([left[..., 1:], np.ones_like(left[..., :1])], axis=-1)


def careful(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def careless(x):
    return np.log(1 + np.exp(x))


def attend(softmax, tanh=np.tanh):
    def attended(q, k, v, mask, softcap):
        s = (q @ np.swapaxes(k, -1, -2)) * q.dtype.type(0.25)
        s = s if softcap is None else tanh(s / q.dtype.type(softcap)) * q.dtype.type(softcap)
        return softmax(s, np.ones(s.shape, bool) if mask is None else mask) @ v

    return attended


def tanh_by_exponentials(x):
    return (np.exp(2 * x) - 1) / (np.exp(2 * x) + 1)


LARGE = [
    ("forgetting.log_sigmoid", {}, [lambda x: -careful(-x)], lambda x: np.log(1 / (1 + np.exp(-x)))),
    ("attention.softmax", {}, [softmax], softmax_without_the_maximum),
    (
        "stick_breaking.weights",
        {},
        [broken_stick, lambda z, mask: stick(z, mask, careful)],
        lambda z, mask: stick(z, mask, careless),
    ),
    ("attention.attend", {"scale": 0.25}, [attend(softmax)], attend(softmax_without_the_maximum)),
    ("attention.attend", {"scale": 0.25, "softcap": 4.0}, [attend(softmax)], attend(softmax, tanh_by_exponentials)),
]


@pytest.mark.parametrize("dtype", ["float32", *(pytest.param(few, marks=pytest.mark.slow) for few in ("float16", "bfloat16"))])
@pytest.mark.parametrize(("name", "settings", "right", "wrong"), LARGE)
def test_overflow_of_large_arguments_is_seen(name, settings, right, wrong, dtype):
    """Some numbers of the probe are large: what takes care of them is right in every format, what does not gives NaN."""
    kind = pytest.importorskip("ml_dtypes", reason="bfloat16 arrays").bfloat16 if dtype == "bfloat16" else np.dtype(dtype)

    def to(x):
        return x.astype(kind)

    with np.errstate(all="ignore"):
        for fn in right:
            check(fn, name, to=to, **settings).require()
        report = check(wrong, name, to=to, **settings)
    assert any(each.name == "finite" and each.status == "failed" for each in report.checks), report


def chunks_alone(name, length):
    """Chunks that hand on what they wrote alone: k^T v in the place of f S + k^T v. In float32, whatever arrives."""
    attend, remember = (ops.op(f"{name}.{each}").spec for each in ("attend", "remember"))
    signature, taken = inspect.signature(attend), inspect.signature(remember).parameters

    def attended(*given, **named):
        given = signature.bind(*given, **named).arguments
        a = {key: x if isinstance(x, (str, float)) else x.astype("f4") for key, x in given.items()}
        outputs, state = [], a.pop("state")
        for first in range(0, a["k"].shape[-2], length):
            part = {key: x[:, :, first : first + length] if key in OF_TOKENS else x for key, x in a.items()}
            outputs.append(attend(**part, state=state))
            state = remember(**{key: x for key, x in part.items() if key in taken}, state=0 * state)
        return np.concatenate(outputs, axis=-2).astype(given["q"].dtype)

    attended.__signature__ = signature
    return attended


OF_TOKENS = ("q", "k", "v", "beta", "log_gates")
LOST = [("retention", "float32", 256)]
FEW = [("delta", "float16", 256), ("gated", "bfloat16", 16)]


@pytest.mark.parametrize(("name", "dtype", "length"), [*LOST, *(pytest.param(*few, marks=pytest.mark.slow) for few in FEW)])
def test_a_state_that_is_lost_between_chunks_is_seen(name, dtype, length):
    """Some heads keep their state over more tokens than a chunk has; in one chunk the same function passes."""
    kind = pytest.importorskip("ml_dtypes", reason="bfloat16 arrays").bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    told = {"scale": 0.25} | ({} if name == "retention" else {"state_layout": "kv"})
    lost = chunks_alone(name, length)
    op = ops.op(f"{name}.attend")._replace(mistakes={"lost": ops.Mistake(lambda _, a: lost(**a))})
    assert check(chunks_alone(name, 10**4), op, to=lambda x: x.astype(kind), **told).ok
    report = check(lost, op, to=lambda x: x.astype(kind), **told)
    assert [finding.name for finding in report.diagnosis] == ["lost"], report
