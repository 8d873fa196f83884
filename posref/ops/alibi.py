"""ALiBi: what an implementation can be asked for, and how it goes wrong."""

import numpy as np

from posref import attention
from posref.ops import Mistake, inside, missing, using
from posref.ops.common import rounded
from posref.relative import alibi


def slopes(heads, *, max_bias=8):
    return alibi.slopes(heads, max_bias=max_bias)


def shard(heads, first, count, *, max_bias=8):
    return slopes(heads, max_bias=max_bias)[first : first + count]


def bias(query_positions, key_positions, *, heads, max_bias=8, form):
    return alibi.bias(query_positions, key_positions, slopes(heads, max_bias=max_bias), form=form)


def attend(q, k, v, query_positions, key_positions, *, heads, max_bias=8, form, scale, mask):
    added = bias(query_positions, key_positions, heads=heads, max_bias=max_bias, form=form)
    return attention.attend(q, k, v, scale=scale, bias=added, mask=mask)


def _slopes(change):
    """Other slopes wherever they are used: change(right, heads, max_bias)."""
    return inside(alibi, "slopes", lambda right: lambda heads, *, max_bias: change(right, heads, max_bias))


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


MISTAKES = {
    "sorted_slopes": Mistake(
        _slopes(lambda right, heads, b: np.sort(right(heads, max_bias=b))[::-1]),
        "slopes sorted",
        "The slopes of a number of heads that is no power of two are put in order.",
        "Heads exchange their slopes: trained weights see other biases.",
        ("NVIDIA/TensorRT-LLM#1611",),
        remedy="Keep the published order: the slopes of H heads, H the power of two below, then every other slope of 2H heads.",
    ),
    "plain_geometric": Mistake(
        _slopes(lambda right, heads, b: 2 ** (-b * np.arange(1, heads + 1) / heads)),
        "2^(-8 a / h) for every h",
        "The formula for powers of two is used for other numbers of heads.",
        "All slopes are off; with 12 heads the first is 0.63 and not 0.5.",
        (
            "ml-explore/mlx#343",
            "ml-explore/mlx#3071",
            "huggingface/transformers#28380",
        ),
        remedy="Take the slopes of H heads, H the power of two below, then every other slope of 2H heads.",
    ),
    "next_power": Mistake(
        _slopes(lambda right, heads, b: right(1 << heads.bit_length(), max_bias=b)[:heads]),
        "the first h slopes of 2P heads",
        "The next power of two is used and cut.",
        "The flat heads are missing.",
        remedy="Take all slopes of the power of two below, then every other slope of the power of two above.",
    ),
    "heads_from_zero": Mistake(
        _slopes(lambda right, heads, b: 2 ** (-b * np.arange(heads) / heads)),
        "exponent one step short",
        "Heads are counted from 0.",
        "The first slope is 1.",
        ("paiml/aprender#2143",),
        remedy="Count heads from 1; the first slope of 8 heads is 1/2.",
    ),
    "max_bias_ignored": Mistake(
        using(max_bias=8),
        "8 instead of max_bias",
        "The configured max_bias is not read.",
        "Every slope is another.",
        remedy="Read max_bias from the configuration; MPT calls it alibi_bias_max.",
    ),
    "slopes_of_the_shard": Mistake(
        using(heads=lambda a: a.count, first=0),
        "slopes of fewer heads",
        "A rank computes slopes for the number of its own heads.",
        "Another model with two ranks.",
        remedy="Compute the slopes of all heads and slice those of the rank.",
    ),
    "first_slopes": Mistake(
        using(first=0),
        "every rank has the first slopes",
        "The offset of the rank's heads is left out.",
        "Another model with two ranks.",
        (
            "bigscience-workshop/Megatron-DeepSpeed#227",
            "flashinfer-ai/flashinfer#1606",
        ),
        remedy="Slice from the first head of the rank on: slopes[first : first + count].",
    ),
    "sign": Mistake(
        inside(alibi, "bias", lambda right: lambda *x, form: -right(*x, form=form)),
        "query - key",
        "The distance has the wrong sign.",
        "Far tokens are preferred.",
        remedy="Add m (j - i), or -m |j - i|, so that far keys lose.",
    ),
    "absolute": Mistake(
        _form("absolute"),
        "|j - i|",
        "The absolute form is used where signed is meant.",
        "Keys in the future are punished.",
        remedy="Take j - i without the absolute value; the mask removes keys in the future.",
        kind="form",
    ),
    "signed": Mistake(
        _form("signed"),
        "j - i or j",
        "The form for causal attention is used in both directions.",
        "Keys in the future are rewarded for their distance.",
        (
            "mosaicml/llm-foundry#186",
            "Dao-AILab/flash-attention#540",
            "ofirpress/attention_with_linear_biases#5",
        ),
        remedy="Add -m |j - i| where keys in the future are seen.",
        kind="form",
    ),
    "key_form": Mistake(
        _form("key"),
        "m j",
        "The key form where entries of the signed form are meant.",
        "Equal after softmax, not before.",
        remedy="Add m (j - i); with a sink, or a cap after the bias, m j is another model.",
        kind="form",
    ),
    "queries_left_aligned": Mistake(
        "queries_left_aligned",
        "queries start at 0",
        "Fewer queries than keys are aligned at the start instead of the end.",
        "Cached decoding sees keys in the future.",
        ("Dao-AILab/flash-attention#907",),
    ),
    "positions_ignored": Mistake(
        "positions_ignored",
        "0, 1, 2, .. instead of the positions given",
        "Padding is counted, or the cache is not.",
        "Rows that are padded on the left have other distances.",
        ("huggingface/transformers#17866",),
    ),
    "positions_shared_across_batch": Mistake(
        "positions_shared_across_batch",
        "positions of the first batch row",
        "Every row uses row 0.",
        "Batches go wrong.",
    ),
    "bias_before_scale": Mistake(
        "bias_before_scale",
        "scale (q k^T + bias)",
        "The bias is scaled with the scores, as in Falcon.",
        "Biases are sqrt(d) times too small.",
    ),
    "no_bias": Mistake(
        "no_bias",
        "no bias",
        "The bias is not added.",
        "The model sees order through the mask alone.",
    ),
    "no_mask": Mistake(
        "no_mask",
        "no mask",
        "The bias is taken for a causal mask.",
        "Keys in the future have the largest bias.",
    ),
    "f16_key_form": Mistake(
        inside(alibi, "bias", _f16),
        "m j in float16",
        "The key form is rounded to 11 bits, which positions beyond 2048 do not fit.",
        "Neighboring keys get one bias.",
        remedy="Make the bias in float32, or take the signed form, which is small for near keys.",
        kind="form",
    ),
}

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
