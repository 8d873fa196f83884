"""T5: the functions to check, and the mistakes that implementations make."""

# Over budget: buckets of two sides, exact and by logarithm, and gradients

import numpy as np

from posref import attention
from posref.ops import Mistake, inside, instead, missing, using
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
    """Buckets that are far(n, exact, steps, max_distance, side) beyond the exact ones; `side` is the number per direction."""

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
    """Buckets without an upper limit; a gather beyond the table reads its last row."""
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
    """Other scores of attention: change(right, q, k, bias, 1 / sqrt(d))."""

    def changed(right):
        return lambda q, k, *, scale, bias=None, **_: change(right, q, k, bias, 1 / np.sqrt(q.shape[-1]))

    return inside(attention, "scores", changed)


def _bias_scaled(right, q, k, bias, scale):
    return scale * right(q, k, scale=1, bias=bias) if bias is not None else missing()


def _gated(change):
    """change(u, r, c) in place of u (r c - 1) + 2."""

    def wrong(x, weight, offset, constant):
        sums = (x @ weight.T + offset).reshape(*x.shape[:-1], 2, 4).sum(axis=-1)
        return change(*np.moveaxis(1 / (1 + np.exp(-sums)), -1, 0), constant[:, None])

    return instead(wrong)


def _half(a):
    return a.buckets // 2 if a.buckets % 2 == 0 else 2 * a.buckets


def _painted_bias(f, a):
    """Attention with a painted table, since the op has none."""
    n, m, table = a.q.shape[-2], a.k.shape[-2], 2 * painted((32, a.q.shape[-3]), 6)
    return attention.attend(**a, scale=1, bias=t5.bias(np.arange(n), np.arange(m), table, bidirectional=True))


MISTAKES = {
    "rows_overwritten": OVERWRITTEN._replace(wrong=instead(_overwritten), only="bias_gradient"),
    "first_batch_row": FIRST_ROW._replace(wrong=_of_the_first_text, only="bias_gradient"),
    "averaged": Mistake(_averaged, kind="gradient", only="bias_gradient").words("""
        the gradients of a bucket are averaged instead of summed
        Buckets of far tokens hardly learn.
        Add up; do not divide by the number of entries."""),
    "direction": Mistake("sign").words("""
        the offset is query - key
        Past and future change places."""),
    "other_direction": Mistake(using(bidirectional=lambda a: not a.bidirectional)).words("""
        the flag bidirectional has the wrong value
        Distances fall into other buckets, the future into one.
        Pass bidirectional=True in the encoder, False in the decoder."""),
    "no_minimum": Mistake(inside(t5, "bucket", _no_minimum), seen_in=("huggingface/candle#1312",)).words("""
        distances beyond the last bucket are not limited to it
        Far keys read other rows of the table.
        Limit each side to its last bucket, b - 1."""),
    "linear": Mistake(_bucket(lambda n, exact, steps, max_distance, side: np.minimum(n, side - 1))).words("""
        buckets are the distance, clipped at the last bucket, without the logarithm
        Far keys share a bucket too early.
        Beyond e take e + floor(L log(n / e) / log(D / e))."""),
    "rounded_up": Mistake(_logarithm(lambda x: np.ceil(x - 1e-9))).words("""
        the logarithm is rounded up (ceil for floor)
        Every bucket starts one distance late.
        Round down: floor, or a cast to integers."""),
    "rounded_to_nearest": Mistake(_logarithm(np.rint)).words("""
        the logarithm is rounded to the nearest (round for floor)
        Every bucket starts half a step early.
        Round down: floor, or a cast to integers."""),
    "zero_in_the_future": Mistake(inside(t5, "bucket", _zero_after)).words("""
        offset >= 0 counts as the future: the token itself is among those after it
        The diagonal reads a row that was never trained.
        Compare with >: the offset 0 is in the first half, bucket 0."""),
    "bf16_logarithm": Mistake(_logarithm(np.floor, 8), seen_in=("mindspore-lab/mindone#670",)).words("""
        the logarithm is computed in bfloat16 (8 bits)
        Two distances of 128 are in another bucket, with 320 buckets every fourth.
        Compare distances with t5.bucket_starts; in float32 the logarithm is right for 32 buckets and 128."""),
    "factor_first": Mistake(_bucket(_factor_first)).words("""
        log(n/e) (L / log(D/e)) in float64: the factor is computed in advance
        5.999999999999999 for 6 at distance 64.
        Compare distances with t5.bucket_starts, which are whole numbers."""),
    "f64_logarithm": Mistake(_logarithm(np.floor)).words("""
        the published order of operations in float64, which rounds a tie down; float32 happens to be right
        Wrong at some ties, not with 32 buckets and max_distance 128.
        Compare distances with t5.bucket_starts, which are whole numbers."""),
    "max_distance_ignored": Mistake(using(max_distance=128)).words("""
        128 is used instead of the configured max_distance
        Far buckets are too narrow.
        Read relative_attention_max_distance from the configuration."""),
    "half_the_buckets": Mistake(using(buckets=_half), only="starts").words("""
        16 buckets for 32, or the reverse: the buckets of the other side are counted
        The list has another length.
        Pass the buckets of one side: 16 of 32 if bidirectional, else all."""),
    "heads_of_the_transposed_table": Mistake(using(table=lambda a: a.table.reshape(a.table.shape[::-1]).T)).words("""
        the table is read as (heads, buckets), the layout of t5x
        Rows are mixed up.
        The table is (buckets, heads): transpose one of t5x, do not reshape it."""),
    "scaled": Mistake(
        _scores(lambda right, q, k, bias, scale: right(q, k, scale=scale, bias=bias)),
        seen_in=("huggingface/transformers#46946",),
    ).words("""
        q k^T / sqrt(d): the scores are scaled, though T5 has no scale
        Attention is too even.
        Use scale 1: the scores of T5 are q k^T + bias."""),
    "bias_scaled": Mistake(_scores(_bias_scaled), seen_in=("tenstorrent/tt-metal#56406",)).words("""
        (q k^T + bias) / sqrt(d): scores and bias are scaled
        Attention is too even.
        Use scale 1: the scores of T5 are q k^T + bias."""),
    "no_bias": Mistake("no_bias", seen_in=("NVIDIA/TensorRT-LLM#13870",)).words("""
        the bias is not added, for instance on cached steps
        The model sees no order."""),
    "gates_exchanged": Mistake(_gated(lambda u, r, c: r * (u * c - 1) + 2), only="gate").words("""
        update and reset gate are exchanged: the first four numbers are taken for the last
        Rows of the bias are weighed otherwise.
        The first four make u, the last four r."""),
    "no_constant": Mistake(_gated(lambda u, r, c: u * (r - 1) + 2), only="gate").words("""
        c = 1: the trained constant of the head is left out
        Right at initialization alone.
        Multiply r by c."""),
    "halves_interleaved": Mistake(
        using(weight=lambda a: np.swapaxes(a.weight.reshape(2, 4, -1), 0, 1).reshape(8, -1)), only="gate"
    ).words("""
        the eight numbers are split into even and odd ones instead of two halves
        Rows of the bias are weighed otherwise.
        View them as (2, 4) and sum the last axis."""),
    "bias_in_cross_attention": Mistake(
        _painted_bias, seen_in=("huggingface/transformers#8518", "huggingface/transformers#7323"), only="cross_attend"
    ).words("""
        a bias is added in cross-attention
        Order of the target is imposed on the source.
        Add the bias in self-attention alone."""),
}

PRESETS = {name: ("bias", t5.PRESETS[name]) for name in t5.PRESETS}

SCORES = {"t5 encoder": ("one", "one", "one", "buckets"), "t5 decoder": ("one", "one", "one", "causal buckets")}


def _head(t):
    q, k, v = t.projected(t.x)
    bias = t5.bias(t.positions, t.positions, t.parameter(8, 1), max_distance=16, bidirectional=True)[0]
    return t.scored(attention.scores(q, k, scale=1, bias=bias), v)


FURTHER = {
    "no_minimum_in_the_past": Mistake(
        inside(t5, "bucket", lambda right, a: _one_side(right, _no_minimum(right, a), lambda o: o < 0)),
        seen_in=("huggingface/candle#1312",),
    ).words("""
        distances beyond the last bucket are not limited to it, for keys before the query alone
        Far keys of the past read other rows of the table.
        Limit both sides to their last bucket."""),
    "no_minimum_in_the_future": Mistake(
        inside(t5, "bucket", lambda right, a: _one_side(right, _no_minimum(right, a), lambda o: o > 0))
    ).words("""
        distances beyond the last bucket are not limited to it, for keys after the query alone
        Far keys of the future read other rows of the table.
        Limit both sides to their last bucket."""),
    "quarter_exact": Mistake(
        inside(t5, "bucket", lambda right: _by_distance(lambda *x: np.minimum(_unlimited(*x), x[-1] - 1), 4))
    ).words("""
        a quarter of the buckets of a side is exact, not half: they are halved once more
        Near keys share buckets too early.
        max_exact is half of the buckets of a side."""),
    "linear_to_the_maximum": Mistake(inside(t5, "bucket", lambda right: _linear)).words("""
        buckets are floor(side n / max_distance): linear over the whole range
        Near keys share a bucket.
        Half of the buckets are exact, the other half logarithmic."""),
    "powers_of_two": Mistake(
        _bucket(lambda n, exact, steps, max_distance, side: np.minimum(exact + np.floor(np.log2(n / exact)), side - 1))
    ).words("""
        buckets beyond the exact ones double in width: the logarithm to base 2 without max_distance
        Far keys share too few buckets.
        Beyond e take e + floor(L log(n / e) / log(D / e))."""),
    "rows_by_offset": Mistake(
        inside(t5, "bucket", lambda right: lambda offsets, *, buckets=32, **_: np.clip(offsets + buckets // 2, 0, buckets - 1))
    ).words("""
        the row of the table is the offset plus half of the buckets, clipped at both ends
        Trained rows mean other distances.
        Look up the bucket of each offset."""),
}
