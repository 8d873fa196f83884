"""ALiBi: what an implementation can be asked for, and how it goes wrong."""

import numpy as np

from posref import attention
from posref.ops import Mistake, inside, missing, using, with_words
from posref.ops.common import rounded
from posref.relative import alibi

slopes = alibi.slopes


def shard(heads, first, count, *, max_bias=8):
    return alibi.slopes(heads, max_bias=max_bias)[first : first + count]


def bias(query_positions, key_positions, *, heads, max_bias=8, form):
    return alibi.bias(query_positions, key_positions, alibi.slopes(heads, max_bias=max_bias), form=form)


def attend(q, k, v, query_positions, key_positions, *, heads, max_bias=8, form, scale, mask):
    added = bias(query_positions, key_positions, heads=heads, max_bias=max_bias, form=form)
    return attention.attend(q, k, v, scale=scale, bias=added, mask=mask)


def _slopes(change):
    """Other slopes wherever they are used: change(right, heads, max_bias)."""
    return inside(alibi, "slopes", lambda right: lambda heads, *, max_bias: change(right, heads, max_bias))


def _without_steps(right, heads, b):
    whole = 2 ** (int(heads).bit_length() - 1)
    more = right(2 * whole, max_bias=b)[: heads - whole] if heads > whole else missing()
    return np.concatenate([right(whole, max_bias=b), more])


def _form(name):
    """Another form, with an entry for every query as broadcasting gives."""

    def changed(right):
        def bias(queries, keys, slopes, *, form):
            if form == name:
                missing()
            return right(queries, keys, slopes, form=name) + np.zeros((queries.shape[-1], 1), int)

        return bias

    return inside(alibi, "bias", changed)


def _f16(right):
    return lambda queries, keys, slopes, *, form: rounded(right(queries, keys, slopes, form="key"), 11)


MISTAKES = with_words(
    __name__,
    sorted_slopes=_slopes(lambda right, heads, b: np.sort(right(heads, max_bias=b))[::-1]),
    plain_geometric=_slopes(lambda right, heads, b: 2 ** (-b * np.arange(1, heads + 1) / heads)),
    next_power=_slopes(lambda right, heads, b: right(1 << heads.bit_length(), max_bias=b)[:heads]),
    heads_from_zero=_slopes(lambda right, heads, b: 2 ** (-b * np.arange(heads) / heads)),
    max_bias_ignored=using(max_bias=8),
    slopes_of_the_shard=using(heads=lambda a: a.count, first=0),
    first_slopes=using(first=0),
    sign=inside(alibi, "bias", lambda right: lambda *x, form: -right(*x, form=form)),
    absolute=_form("absolute"),
    signed=_form("signed"),
    key_form=_form("key"),
    queries_left_aligned="queries_left_aligned",
    positions_ignored="positions_ignored",
    bias_before_scale="bias_before_scale",
    no_mask="no_mask",
    f16_key_form=inside(alibi, "bias", _f16),
)

PRESETS = {name: ("bias", alibi.PRESETS[name]) for name in alibi.PRESETS}

CAUSAL = True
SCORES = {
    "alibi signed": ("one", "one", "one", "signed"),
    "alibi absolute": ("one", "one", "one", "absolute"),
    "alibi key": ("one", "one", "one", "key form"),
}


def _head(t):
    bias = alibi.bias(t.positions, t.positions, alibi.slopes(8)[:1], form="signed")[0]
    return t.attended(*t.projected(t.x), bias)


FURTHER = with_words(
    __name__,
    **{
        f"{short}_slopes": Mistake(
            _slopes(lambda right, heads, b, bits=bits: rounded(right(heads, max_bias=b), bits)),
            f"the slopes are held in {long} ({bits} bits)",
            "Right where the number of heads is a power of two.",
            "Keep the slopes in float32.",
        )
        for short, long, bits in (("bf16", "bfloat16", 8), ("f16", "float16", 11))
    },
    row_form=inside(alibi, "bias", lambda right: lambda i, j, slopes, *, form: right(i, 0 * j, slopes, form="signed")),
    key_form_from_one=inside(alibi, "bias", lambda right: lambda i, j, slopes, *, form: right(i, j + 1, slopes, form="key")),
    harmonic_slopes=_slopes(lambda right, heads, b: 1 / np.arange(1, heads + 1)),
    further_slopes_in_a_row=_slopes(_without_steps),
    heads_dealt_out=lambda right, a: right(**a | {"first": 0, "count": a.heads})[a.first // a.count :: a.heads // a.count],
    one_slope=_slopes(lambda right, heads, b: 0 * np.arange(heads) + right(heads, max_bias=b)[0]),
)
