"""Sensitivities of what attention computes: every function takes and gives pairs (value, cond).

`value` is an object array of exact numbers; `cond` has arrays amp, phase and out of its shape (posref/vectors/models.py). Every
result counts as stored once in the output format, which covers kernels that do and kernels that do not.

* A sum of terms: a term that meets r roundings counts r/3 |term| in amp; errors of the factors pass on times the other factor.
* Weights p = softmax(s), errors of the scores at most delta: |ln(p'_i / p_i)| <= delta_i + ln sum_j p_j exp(delta_j); to first
  order |d p_i| <= p_i (delta_i + sum_j p_j delta_j). The factor `_bend` of `softmax` bounds what is beyond the first order
  in the coarsest model. Own roundings: |s_i - max| for the difference, 2 for exp, n - 1 for the sum, 1 for the quotient.
"""

import mpmath
import numpy as np

from posref.vectors import MODELS

NAMES = ("amp", "phase", "out")


def terms(roundings, *sums, bits=8):
    """`amp` of a sum of terms that meet that many roundings each: roundings / 3 times the sum of |terms|.

    The divisor 1 - roundings / 2^bits holds the higher orders down to u = 2^-bits; so fewer than half as many roundings. With
    bits=24 it is for models that compute in float32.

    >>> float(terms(3, -2.0))
    2.0237154150197627
    """
    total = sum(abs(numbers(each)) for each in sums)
    if np.max(roundings) >= 2 ** (bits - 1):
        raise ValueError(f"terms: {np.max(roundings)} roundings are too many for {bits}-bit significands; take smaller shapes")
    return total * (numbers(roundings) / mpmath.mpf(3) / (1 - numbers(roundings) / mpmath.mpf(2) ** bits))


def exact(value):
    """An input: no error."""
    value = numbers(value)
    return value, dict.fromkeys(NAMES, value * 0)


def stored(value, cond):
    """A computed value with its amp and phase, stored once in the output format."""
    value = numbers(value)
    return value, {"amp": value * 0, "phase": value * 0, **cond, "out": abs(value) + cond.get("out", 0)}


def rearranged(how, pair):
    """`how` of a value and of its sensitivities: a view, a selection or a part."""
    value, cond = pair
    return how(value), {name: how(each) for name, each in cond.items()}


def dot(q, k, scale=1, bits=8):
    """scale q @ k^T: `(.., n_query, n_key)`; `bits` as in `terms`."""
    (q, q_cond), (k, k_cond) = q, k
    k_t = np.swapaxes(k, -1, -2)
    cond = {name: abs(scale) * (q_cond[name] @ abs(k_t) + abs(q) @ np.swapaxes(k_cond[name], -1, -2)) for name in NAMES}
    cond["amp"] = cond["amp"] + terms(q.shape[-1] + 1, abs(scale) * (abs(q) @ abs(k_t)), bits=bits)
    return stored(scale * (q @ k_t), cond)


def total(*parts):
    """The sum of pairs of one shape, or shapes that broadcast."""
    cond = {name: sum(part[name] for _, part in parts) for name in NAMES}
    cond["amp"] = cond["amp"] + terms(len(parts) - 1, *(value for value, _ in parts))
    return stored(sum(value for value, _ in parts), cond)


def product(a, b):
    """Element by element, of pairs whose shapes broadcast."""
    (x, x_cond), (y, y_cond) = a, b
    cond = {name: abs(x) * y_cond[name] + x_cond[name] * abs(y) for name in NAMES}
    cond["amp"] = cond["amp"] + terms(1, x * y)
    return stored(x * y, cond)


def cap(scores, softcap):
    """c tanh(s / c), whose slope is at most 1; one rounding for the quotient, two for tanh, one for the product."""
    s, cond = scores
    value = numbers(np.frompyfunc(lambda x: softcap * mpmath.tanh(x / softcap), 1, 1)(s))
    return stored(value, {**cond, "amp": cond["amp"] + terms(1, s) + terms(3, value)})


def softmax(scores, mask=None, sinks=None, models=tuple(MODELS)):
    """Weights over the last axis, where the boolean mask is True; a row of nothing is zeros. `models` are those of the case.

    Sinks, `(heads, 1)` and inputs, are one key more, which is left out in the end.
    """
    if sinks is not None:
        column = np.broadcast_to(numbers(sinks)[..., None], (*scores[0].shape[:-1], 1))
        joined = lambda x, y: np.concatenate([x, y], axis=-1)
        wider = joined(scores[0], column), {name: joined(scores[1][name], column * 0) for name in NAMES}
        seen = np.broadcast_to(True if mask is None else mask, scores[0].shape)
        weights, cond = softmax(wider, joined(seen, np.ones(column.shape, dtype=bool)), models=models)
        return rearranged(lambda x: x[..., :-1], (weights, cond))
    s, cond = scores
    mask = np.broadcast_to(True if mask is None else mask, s.shape)
    weights, beyond = np.zeros(s.shape, dtype=object), np.zeros(s.shape, dtype=object)
    for row in np.ndindex(s.shape[:-1]):
        seen = np.flatnonzero(mask[row])
        if len(seen):
            powers = numbers([mpmath.exp(score) for score in s[row][seen]])
            weights[row][seen] = powers / powers.sum()
            beyond[row][seen] = max(s[row][seen]) - s[row][seen]
    cond = {name: weights * (each + (weights * each).sum(axis=-1, keepdims=True)) for name, each in cond.items()}
    bend = _bend(scores, mask, models)
    cond = {name: each * bend for name, each in cond.items()}
    cond["amp"] = cond["amp"] + terms(mask.sum(axis=-1, keepdims=True) + 2, weights) + terms(1, weights * beyond)
    return stored(weights, cond)


def average(weights, v):
    """weights @ v: `(.., n_query, d_v)`; a weight of zero takes no part in the sum."""
    (p, p_cond), (v, v_cond) = weights, v
    cond = {name: p_cond[name] @ abs(v) + abs(p) @ v_cond[name] for name in NAMES}
    cond["amp"] = cond["amp"] + terms((p != 0).sum(axis=-1, keepdims=True), abs(p) @ abs(v))
    return stored(p @ v, cond)


def attend(q, k, v, scale=1, bias=None, mask=None, models=tuple(MODELS)):
    """softmax(scale q @ k^T + bias) @ v."""
    scores = dot(q, k, scale)
    return average(softmax(scores if bias is None else total(scores, bias), mask, models=models), v)


def _bend(scores, mask, models):
    """(e^L - 1) / L (e^delta - 1) / delta with L = 2 (e^delta - 1), for the largest delta of the coarsest model."""
    delta = mpmath.mpf(0)
    for c in (MODELS[model] for model in models):
        bound = c.c_phase * scores[1]["phase"] + c.c_amp * scores[1]["amp"] + c.c_out * scores[1]["out"]
        delta = max([delta, *bound[mask]])
    if delta > 1:
        raise ValueError(f"softmax: scores may be {float(delta):.2g} off in the coarsest model; take smaller scores")
    if not delta:
        return mpmath.mpf(1)
    length = 2 * mpmath.expm1(delta)
    return mpmath.expm1(length) / length * mpmath.expm1(delta) / delta


def numbers(value):
    """Every number as mpf, so that no arithmetic is done by floats."""
    return np.array(np.frompyfunc(mpmath.mpf, 1, 1)(np.asarray(value, dtype=object)))


def slopes(loss, given, of, roundings):
    """(gradient of loss(**given) by `given[of]`, cond); each term of the gradient meets `roundings` roundings.

    For each entry x the gradient is L(x + 1) - L(x): the loss is affine in every entry, as for scores and biases.
    """
    arrays = {name: numbers(x) for name, x in given.items()}
    sizes = _slopes(loss, {name: abs(x) for name, x in arrays.items()}, of)
    return _slopes(loss, arrays, of), {"amp": terms(roundings, sizes)}


def _slopes(loss, given, of):
    start, found = loss(**given), np.empty(given[of].shape, dtype=object)
    for place in np.ndindex(found.shape):
        moved = given[of].copy()
        moved[place] += mpmath.mpf(1)
        found[place] = loss(**given | {of: moved}) - start
    return found
