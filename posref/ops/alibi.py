"""ALiBi: the functions to check, and the mistakes that implementations make."""

# Over budget: words for each of the three forms

import numpy as np

from posref import attention
from posref.ops import Mistake, inside, missing, using
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
    """Other slopes in every function that uses them: change(right, heads, max_bias)."""
    return inside(alibi, "slopes", lambda right: lambda heads, *, max_bias: change(right, heads, max_bias))


def _without_steps(right, heads, b):
    whole = 2 ** (int(heads).bit_length() - 1)
    more = right(2 * whole, max_bias=b)[: heads - whole] if heads > whole else missing()
    return np.concatenate([right(whole, max_bias=b), more])


def _between(right, heads, b):
    whole = 2 ** (int(heads).bit_length() - 1)
    more = right(2 * whole, max_bias=b)[1::2][: heads - whole] if heads > whole else missing()
    return np.concatenate([right(whole, max_bias=b), more])


def _form(name):
    """Another form, repeated for every query by broadcasting."""

    def changed(right):
        def bias(queries, keys, slopes, *, form):
            if form == name:
                missing()
            return right(queries, keys, slopes, form=name) + np.zeros((queries.shape[-1], 1), int)

        return bias

    return inside(alibi, "bias", changed)


def _f16(right):
    return lambda queries, keys, slopes, *, form: rounded(right(queries, keys, slopes, form="key"), 11)


ABSOLUTE = "Add -m |j - i|, which is 0 on the diagonal and lower on both sides."
KEY = "Add m j, with keys counted from 0."

MISTAKES = {
    "sorted_slopes": Mistake(
        _slopes(lambda right, heads, b: np.sort(right(heads, max_bias=b))[::-1]), seen_in=("NVIDIA/TensorRT-LLM#1611",)
    ).words("""
        the slopes are sorted where the number of heads is no power of two
        Heads exchange their slopes: trained weights see other biases.
        Keep the published order: the slopes of H heads, H the power of two below, then every other slope of 2H heads."""),
    "plain_geometric": Mistake(
        _slopes(lambda right, heads, b: 2 ** (-b * np.arange(1, heads + 1) / heads)),
        seen_in=("ml-explore/mlx#343", "ml-explore/mlx#3071", "huggingface/transformers#28380"),
    ).words("""
        slope 2^(-8 h / heads) for every number of heads, not only for powers of two
        All slopes are off; with 12 heads the first is 0.63 and not 0.5.
        Take the slopes of H heads, H the power of two below, then every other slope of 2H heads."""),
    "next_power": Mistake(_slopes(lambda right, heads, b: right(1 << heads.bit_length(), max_bias=b)[:heads])).words("""
        the first h slopes of the next power of two are used, without those of the power below
        The flat heads are missing.
        Take all slopes of the power of two below, then every other slope of the power of two above."""),
    "heads_from_zero": Mistake(
        _slopes(lambda right, heads, b: 2 ** (-b * np.arange(heads) / heads)), seen_in=("paiml/aprender#2143",)
    ).words("""
        heads are counted from 0, so every exponent is one step short
        The first slope is 1.
        Count heads from 1; the first slope of 8 heads is 1/2."""),
    "max_bias_ignored": Mistake(using(max_bias=8)).words("""
        the slopes use 8 instead of the configured max_bias
        Every slope is another.
        Read max_bias from the configuration; MPT calls it alibi_bias_max."""),
    "slopes_of_the_shard": Mistake(using(heads=lambda a: a.count, first=0)).words("""
        each rank computes slopes for its own number of heads, instead of its part of all slopes
        Another model with two ranks.
        Compute the slopes of all heads and slice those of the rank."""),
    "first_slopes": Mistake(
        using(first=0), seen_in=("bigscience-workshop/Megatron-DeepSpeed#227", "flashinfer-ai/flashinfer#1606")
    ).words("""
        every rank takes the first slopes: the index of its first head is left out
        Another model with two ranks.
        Slice from the first head of the rank on: slopes[first : first + count]."""),
    "sign": Mistake(inside(alibi, "bias", lambda right: lambda *x, form: -right(*x, form=form)))
    .words("""
        the distance is query - key
        Far tokens are preferred.
        Add m (j - i), or -m |j - i|, so that far keys lose.""")
    .where(f"""form=absolute
        the bias is m |j - i| where -m |j - i| is asked for: the sign is wrong
        Far tokens are preferred.
        {ABSOLUTE}""")
    .where(f"""form=key
        the bias is -m j where m j is asked for: the sign is wrong
        Far tokens are preferred.
        {KEY}"""),
    "absolute": Mistake(_form("absolute"), kind="form")
    .words("""
        |j - i| is used where the signed form is meant
        Keys in the future are punished.
        Take j - i without the absolute value; the mask removes keys in the future.""")
    .where(f"""form=key
        the bias is -m |j - i| where the key form m j is asked for
        Keys in the future are punished; equal after a causal softmax, not before.
        {KEY}"""),
    "signed": Mistake(
        _form("signed"),
        seen_in=("mosaicml/llm-foundry#186", "Dao-AILab/flash-attention#540", "ofirpress/attention_with_linear_biases#5"),
        kind="form",
    )
    .words("""
        the causal form, j - i or j, is used in both directions
        Keys in the future are rewarded for their distance.
        Add -m |j - i| where keys in the future are seen.""")
    .where(f"""form=key
        the bias is m (j - i), the signed form, where the key form m j is asked for
        Equal after softmax, not before.
        {KEY}"""),
    "key_form": Mistake(_form("key"), kind="form")
    .words("""
        the bias is m j where the signed form m (j - i) is meant
        Equal after softmax, not before.
        Add m (j - i); with a sink, or a cap after the bias, m j is another model.""")
    .where(f"""form=absolute
        the bias is m j, the slope times the position of the key, where -m |j - i| is asked for
        Keys in the future are rewarded for their distance; under a causal mask it is equal after softmax.
        {ABSOLUTE}"""),
    "queries_left_aligned": Mistake("queries_left_aligned", seen_in=("Dao-AILab/flash-attention#907",)).words("""
        the queries start at position 0 though there are fewer queries than keys
        Cached decoding sees keys in the future."""),
    "positions_ignored": Mistake("positions_ignored", seen_in=("huggingface/transformers#17866",)).words("""
        the positions given are replaced by 0, 1, 2, ..: padding is counted, or the cache is not
        Rows that are padded on the left have other distances."""),
    "bias_before_scale": Mistake("bias_before_scale").words("""
        scale (q k^T + bias): the bias is scaled with the scores, as in Falcon
        Biases are sqrt(d) times too small."""),
    "no_mask": Mistake("no_mask").words("""
        no causal mask: the bias is expected to mask
        Keys in the future have the largest bias."""),
    "f16_key_form": Mistake(inside(alibi, "bias", _f16), kind="form")
    .words("""
        the key form m j is computed in float16, which rounds positions beyond 2048
        Neighboring keys get one bias.
        Make the bias in float32, or take the signed form, which is small for near keys.""")
    .where(f"""form=absolute
        the bias is m j, computed in float16, where -m |j - i| is asked for
        Keys in the future are rewarded for their distance, and neighboring keys beyond 2048 get one bias.
        {ABSOLUTE} Make it in float32."""),
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


FURTHER = {
    **{
        f"{short}_slopes": Mistake(
            _slopes(lambda right, heads, b, bits=bits: rounded(right(heads, max_bias=b), bits))
        ).words(f"""
            the slopes are held in {long} ({bits} bits)
            Right where the number of heads is a power of two.
            Keep the slopes in float32.""")
        for short, long, bits in (("bf16", "bfloat16", 8), ("f16", "float16", 11))
    },
    "row_form": Mistake(
        inside(alibi, "bias", lambda right: lambda i, j, slopes, *, form: right(i, 0 * j, slopes, form="signed"))
    )
    .words("""
        the bias is -m i, by the row of the query alone
        One number for a whole row, which a softmax does not see: there is no position.
        Multiply the slope by the offset j - i.""")
    .where(f"""form=absolute
        the bias is -m i, by the row of the query alone
        One number for a whole row, which a softmax does not see: there is no position.
        {ABSOLUTE}"""),
    "key_form_from_one": Mistake(
        inside(alibi, "bias", lambda right: lambda i, j, slopes, *, form: right(i, j + 1, slopes, form="key"))
    )
    .words("""
        the bias is m (j + 1): the position of the key, counted from 1
        Equal to m (j - i) after a softmax, not before.
        Add m (j - i), or ask with form=key and count from 0.""")
    .where(f"""form=absolute
        the bias is m (j + 1), the position of the key counted from 1, where -m |j - i| is asked for
        Keys in the future are rewarded for their distance; under a causal mask it is equal after softmax.
        {ABSOLUTE}""")
    .where(f"""form=key
        the bias is m (j + 1): the position of the key, counted from 1
        Equal after softmax, not before.
        {KEY}"""),
    "harmonic_slopes": Mistake(_slopes(lambda right, heads, b: 1 / np.arange(1, heads + 1))).words("""
        the slopes are 1 / h for head h instead of powers of two
        All heads look at near tokens.
        The slopes of H heads are 2^(-8 h / H)."""),
    "further_slopes_in_a_row": Mistake(_slopes(_without_steps)).words("""
        beyond the power of two below, the slopes are the first ones of twice as many heads, not every other one
        The last heads have slopes of the wrong size; right for 8, 16, 32 heads.
        Take every other slope of 2H heads: [0::2]."""),
    "heads_dealt_out": Mistake(
        lambda right, a: right(**a | {"first": 0, "count": a.heads})[a.first // a.count :: a.heads // a.count], only="shard"
    ).words("""
        heads are dealt out to the ranks one by one, where a rank has a block of them
        Another model with two ranks.
        Slice from the first head of the rank on: slopes[first : first + count]."""),
    "one_slope": Mistake(_slopes(lambda right, heads, b: 0 * np.arange(heads) + right(heads, max_bias=b)[0])).words("""
        every head has the slope of the first
        All heads look as near as the nearest.
        Index the slopes by the head."""),
    "further_slopes_between": Mistake(_slopes(_between)).words("""
        beyond the power of two below, the slopes are those of twice as many heads from the second on: [1::2] for [0::2]
        The last heads repeat slopes of the first; right for 8, 16, 32 heads.
        Take every other slope of 2H heads from the first on: [0::2]."""),
    "slopes_of_half_the_heads": Mistake(
        _slopes(lambda right, heads, b: np.tile(right(heads // 2, max_bias=b), 2) if heads % 2 == 0 else missing())
    ).words("""
        the slopes are those of half as many heads, twice
        Each half of the heads has the slopes of a smaller model.
        Make the slopes for all heads, then give each rank its own."""),
}
