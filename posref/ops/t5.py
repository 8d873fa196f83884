"""T5: what an implementation can be asked for, and how it goes wrong."""

# Over budget: buckets of two sides, exact and by logarithm, and gradients

import numpy as np

from posref import attention
from posref.ops import Mistake, inside, instead, missing, using, with_words
from posref.ops.common import FIRST_ROW, OVERWRITTEN, last_wins, rounded
from posref.ops.probe import painted
from posref.relative import t5

starts = t5.bucket_starts
bucket = t5.bucket
bias = t5.bias


def bias_gradient(score_gradient, query_positions, key_positions, *, buckets=32, max_distance=128, bidirectional: bool):
    given = {"buckets": buckets, "max_distance": max_distance, "bidirectional": bidirectional}
    return t5.bias_gradient(score_gradient, query_positions, key_positions, **given)


def attend(q, k, v, query_positions, key_positions, table, *, max_distance=128, bidirectional: bool, mask=None):
    added = t5.bias(query_positions, key_positions, table, max_distance=max_distance, bidirectional=bidirectional)
    return attention.attend(q, k, v, scale=1, bias=added, mask=mask)


gate = t5.gate


def cross_attend(q, k, v):
    return attention.attend(q, k, v, scale=1)


EXTENTS = {"buckets": 32}
ARRAYS = {
    "offsets": lambda s: np.arange(-s.max_distance - 9, s.max_distance + 10),
    "table": lambda s: painted((s.buckets, s.heads), 6),
    "weight": lambda s: painted((8, s.head_dim), 2) / 4,
    "offset": lambda s: painted((8,), 4) / 4,
    "constant": lambda s: painted((s.heads,), 6),
    "score_gradient": lambda s: painted((s.batch, s.heads, s.n_query, s.n_key), 9),
}


def _overwritten(score_gradient, query_positions, key_positions, buckets, max_distance, bidirectional):
    offsets = key_positions[..., None, :] - query_positions[..., None]
    rows = t5.bucket(offsets, buckets=buckets, max_distance=max_distance, bidirectional=bidirectional)
    rows = np.broadcast_to(rows[..., None, :, :], score_gradient.shape)
    by_head = [np.swapaxes(x, -3, 0).reshape(score_gradient.shape[-3], -1) for x in (score_gradient, rows)]
    return last_wins(*by_head, 0, buckets).T


def _of_the_first_text(f, a):
    if a.score_gradient.ndim < 4 or len(a.score_gradient) == 1:
        missing()
    rows = {name: a[name][:1] if a[name].ndim > 1 else a[name] for name in ("query_positions", "key_positions")}
    return f(**a | rows | {"score_gradient": a.score_gradient[:1]})


def _averaged(f, a):
    count = f(**a | {"score_gradient": 0 * a.score_gradient + 1})
    return f(**a) / np.maximum(count, 1)


def _by_distance(far, exactly=2):
    """Buckets with far(n, exact, steps, max_distance, side) beyond the exact ones, `side` buckets in a direction."""

    def bucket(offsets, *, buckets=32, max_distance=128, bidirectional):
        side = buckets // 2 if bidirectional else buckets
        exact = side // exactly
        n = np.abs(offsets) if bidirectional else np.maximum(-offsets, 0)
        beyond = far(np.maximum(n, exact).astype(float), float(exact), float(side - exact), float(max_distance), side)
        found = np.where(n < exact, n, beyond).astype(int)
        return found + side * (offsets > 0) if bidirectional else found

    return bucket


def _bucket(far):
    return inside(t5, "bucket", lambda right: _by_distance(far))


def _logarithm(rounding, bits=None):
    """The published formula: min(exact + rounding(log(n / exact) / log(max_distance / exact) steps), side - 1)."""

    def narrow(x):
        return x if bits is None else rounded(x, bits)

    def far(n, exact, steps, max_distance, side):
        ratio = narrow(narrow(np.log(narrow(narrow(n) / exact))) / narrow(np.log(narrow(max_distance / exact))))
        return np.minimum(exact + rounding(narrow(ratio * steps)), side - 1)

    return _bucket(far)


def _factor_first(n, exact, steps, max_distance, side):
    return np.minimum(exact + np.floor(np.log(n / exact) * (steps / np.log(max_distance / exact))), side - 1)


def _unlimited(n, exact, steps, max_distance, side):
    return exact + np.floor(np.log(n / exact) / np.log(max_distance / exact) * steps + 1e-9)


def _no_minimum(right, a):
    """Buckets run on; a gather beyond the table reads its last row."""
    far = _by_distance(_unlimited)
    return far if "table" not in a else lambda offsets, **rest: np.minimum(far(offsets, **rest), a.table.shape[0] - 1)


def _one_side(right, wrong, side):
    return lambda offsets, **rest: np.where(side(offsets), wrong(offsets, **rest), right(offsets, **rest))


def _linear(offsets, *, buckets=32, max_distance=128, bidirectional):
    side = buckets // 2 if bidirectional else buckets
    n = np.abs(offsets) if bidirectional else np.maximum(-offsets, 0)
    return np.minimum(n * side // max_distance, side - 1) + (side * (offsets > 0) if bidirectional else 0)


def _zero_after(right):
    def bucket(offsets, *, buckets=32, max_distance=128, bidirectional):
        found = right(offsets, buckets=buckets, max_distance=max_distance, bidirectional=bidirectional)
        return found + buckets // 2 * (offsets == 0) if bidirectional else missing()

    return bucket


def _scores(change):
    """change(right, q, k, bias, 1 / sqrt(d)) for the scores of attention."""

    def changed(right):
        return lambda q, k, *, scale, bias=None, **_: change(right, q, k, bias, 1 / np.sqrt(q.shape[-1]))

    return inside(attention, "scores", changed)


def _bias_scaled(right, q, k, bias, scale):
    return scale * right(q, k, scale=1, bias=bias) if bias is not None else missing()


def _gated(change):
    """change(u, r, c) in the place of u (r c - 1) + 2."""

    def wrong(x, weight, offset, constant):
        sums = (x @ weight.T + offset).reshape(*x.shape[:-1], 2, 4).sum(axis=-1)
        return change(*np.moveaxis(1 / (1 + np.exp(-sums)), -1, 0), constant[:, None])

    return instead(wrong)


def _half(a):
    return a.buckets // 2 if a.buckets % 2 == 0 else 2 * a.buckets


def _painted_bias(f, a):
    """The op has no table; it is painted."""
    n, m, table = a.q.shape[-2], a.k.shape[-2], 2 * painted((32, a.q.shape[-3]), 6)
    return attention.attend(**a, scale=1, bias=t5.bias(np.arange(n), np.arange(m), table, bidirectional=True))


MISTAKES = with_words(
    __name__,
    rows_overwritten=Mistake(instead(_overwritten), *OVERWRITTEN, only="bias_gradient"),
    first_batch_row=Mistake(_of_the_first_text, *FIRST_ROW, only="bias_gradient"),
    averaged=_averaged,
    direction="sign",
    other_direction=using(bidirectional=lambda a: not a.bidirectional),
    no_minimum=inside(t5, "bucket", _no_minimum),
    linear=_bucket(lambda n, exact, steps, max_distance, side: np.minimum(n, side - 1)),
    rounded_up=_logarithm(lambda x: np.ceil(x - 1e-9)),
    rounded_to_nearest=_logarithm(np.rint),
    zero_in_the_future=inside(t5, "bucket", _zero_after),
    bf16_logarithm=_logarithm(np.floor, 8),
    factor_first=_bucket(_factor_first),
    f64_logarithm=_logarithm(np.floor),
    max_distance_ignored=using(max_distance=128),
    half_the_buckets=using(buckets=_half),
    heads_of_the_transposed_table=using(table=lambda a: a.table.reshape(a.table.shape[::-1]).T),
    scaled=_scores(lambda right, q, k, bias, scale: right(q, k, scale=scale, bias=bias)),
    bias_scaled=_scores(_bias_scaled),
    no_bias="no_bias",
    gates_exchanged=_gated(lambda u, r, c: r * (u * c - 1) + 2),
    no_constant=_gated(lambda u, r, c: u * (r - 1) + 2),
    halves_interleaved=using(weight=lambda a: np.swapaxes(a.weight.reshape(2, 4, -1), 0, 1).reshape(8, -1)),
    bias_in_cross_attention=_painted_bias,
)

PRESETS = {name: ("bias", t5.PRESETS[name]) for name in t5.PRESETS}

SCORES = {"t5 encoder": ("one", "one", "one", "buckets"), "t5 decoder": ("one", "one", "one", "causal buckets")}


def _head(t):
    q, k, v = t.projected(t.x)
    bias = t5.bias(t.positions, t.positions, t.parameter(8, 1), max_distance=16, bidirectional=True)[0]
    return t.scored(attention.scores(q, k, scale=1, bias=bias), v)


FURTHER = with_words(
    __name__,
    no_minimum_in_the_past=inside(t5, "bucket", lambda right, a: _one_side(right, _no_minimum(right, a), lambda o: o < 0)),
    no_minimum_in_the_future=inside(t5, "bucket", lambda right, a: _one_side(right, _no_minimum(right, a), lambda o: o > 0)),
    quarter_exact=inside(t5, "bucket", lambda right: _by_distance(lambda *x: np.minimum(_unlimited(*x), x[-1] - 1), 4)),
    linear_to_the_maximum=inside(t5, "bucket", lambda right: _linear),
)
