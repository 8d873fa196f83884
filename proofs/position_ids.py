"""Position ids: padding, packing, caches, ranks, evicted and grouped positions, images, temperature."""

import itertools
import math
from fractions import Fraction

import numpy as np

from posref import attention, position_ids, shards
from posref.rotary import rope, scaling
from proofs.kit import *

DEFAULTS = {"interval": 1}
BRANCHES_ON_SIZES = {"multimodal": "pinned_multimodal"}
ROUNDS = {"_merged": "pinned_multimodal", "multimodal": "pinned_multimodal", "temperature": "pinned_temperature"}
BRANCHES_ON_NUMBERS = {"_merged": "pinned_multimodal"}

N, H = size("n"), size("h")


def definition(builder, *given):
    """The definition of each function, token by token, from the papers and the released loops."""
    return _RULES[builder](*given)


def _padded(mask, filler):
    return [sum(mask[:i]) if here else filler for i, here in enumerate(mask)]


def _packed(lengths):
    return [i for length in lengths for i in range(length)]


def _documents(lengths):
    return [document for document, length in enumerate(lengths) for _ in range(length)]


def _cached(n_query, n_key):
    return list(range(n_key))[n_key - n_query :]


def _zigzag(n, ranks, rank):
    chunk = n // (2 * ranks)
    return [*range(rank * chunk, (rank + 1) * chunk), *range(n - (rank + 1) * chunk, n - rank * chunk)]


def _streaming(n, sinks, window):
    """(place in the text, position) of every token that the cache keeps."""
    kept = [i for i in range(n) if i < sinks or i >= n - window]
    return [kept, list(range(len(kept)))]


def _self_extend(i, j, group, window, shift):
    return j - i if i - j < window else j // group - (i // group + shift)


def _rerope(i, j, window, leak=None):
    """Su, kexue.fm/archives/9708 (ReRoPE)."""
    return j - i if i - j < window else -window if leak is None else -(window + Fraction(i - j - window) / Fraction(leak))


def _lambda_mask(i, j, window, sinks):
    return j <= i and (i - j < window or j < sinks)


def _dual_chunk(i, j, size, local):
    chunk = size - local
    successive = min(i % chunk + chunk, size)
    constant = min(2 * chunk - 1, size)
    return j % chunk - {0: i % chunk, 1: successive}.get(i // chunk - j // chunk, constant)


def _multimodal(parts, merge, convention, interval=1):
    """Wang et al., arXiv 2409.12191, section 2.1: "largest"; get_rope_index of transformers 5.3.0: "longer_side"."""
    start, out = 0, []
    for part in parts:
        if isinstance(part, int) or part[1:] == (0, 0):
            tokens = part if isinstance(part, int) else part[0]
            out += [[start + i] * 3 for i in range(tokens)]
            start += tokens
        else:
            frames, rows, columns = part[0], part[1] // merge, part[2] // merge
            times = [start + math.floor(interval * f) for f in range(frames)]
            out += [[time, start + r, start + c] for time in times for r in range(rows) for c in range(columns)]
            start = max(map(max, out)) + 1 if convention == "largest" else start + max(rows, columns)
    return out


_RULES = {
    "padded": _padded,
    "packed": _packed,
    "documents": _documents,
    "cached": _cached,
    "zigzag": _zigzag,
    "streaming": _streaming,
    "self_extend": _self_extend,
    "rerope": _rerope,
    "lambda_mask": _lambda_mask,
    "dual_chunk": _dual_chunk,
    "multimodal": _multimodal,
}


def turned(x, positions, w):
    return rope.rotate(x, *rope.tables(positions, w), layout="half")


# attention does not know the order of tokens


@theorem(of=[attention.scores, attention.causal_mask], sizes="3 tokens, d = 2, all orders", as_written="runs")
def equivariant():
    """Outputs of softmax attention are permuted if tokens are permuted and their positions come along: queries and keys
    rotated by RoPE at the positions 4, 0 and 7, with the causal mask of these positions."""
    q, k, v, w = symbols("q", 3, 2), symbols("k", 3, 2), symbols("v", 3, 2), symbols("w", 1)
    p = np.array([4, 0, 7])
    whole = output(q, k, v, p, w)
    for order in itertools.permutations(range(3)):
        moved = list(order)
        prove_equal(output(q[moved], k[moved], v[moved], p[moved], w), whole[moved], mention=[w[0]])


@equivariant.claim("Masks are part of what must come along: kernels that mask by place need the order of the text.")
def equivariant_with_the_mask_of_the_place():
    """A causal mask by place, as is_causal makes it, does for permuted tokens as well."""
    q, k, v, w, p = symbols("q", 2, 2), symbols("k", 2, 2), symbols("v", 2, 2), symbols("w", 1), np.array([0, 1])
    by_place = output(q[::-1], k[::-1], v[::-1], p[::-1], w, mask_positions=p)
    prove_equal(by_place, output(q, k, v, p, w)[::-1])


# a text at once, in chunks, in steps, on several ranks

UNIT = symbol("unit", positive=True)  # scores are distinct integers times one unit, so that their order is known
TOKENS = 5
Q, K = (np.arange(2 * TOKENS).reshape(TOKENS, 2) % period - period // 2 for period in (5, 7))
LEFT = np.array([False, True, True, True, True])


def by_ids(ids):
    """A bias that distinguishes any two ids, for the queries from `start` on of a text of `end` tokens."""

    def bias(start, end):
        own = ids(end) @ [1, 3, 7] if ids(end).ndim == 2 else ids(end)
        return (own[start:, None] + 2) * (own[None, :] + 1)

    return bias


def at(rule):
    """As `by_ids`, for offsets made from the positions of queries and keys."""
    return lambda start, end: rule(position_ids.cached(end - start, end), position_ids.cached(end, end))


def lengths(end):
    """The lengths of documents of 2 and 3 tokens, of which the first `end` tokens exist."""
    return np.clip(end - np.array([0, 2]), 0, [2, 3])


def parts(end):
    """The whole parts among the first tokens of: a word, an image of two patches, two words."""
    return [1, (1, 2, 1), 1, 1][: {1: 1, 3: 2, 4: 3, 5: 4}[end]]


BUILDERS = {
    "padded": (by_ids(lambda end: position_ids.padded(LEFT[:end], filler=1)), lambda end: LEFT[None, :end], (2, 4)),
    "packed": (
        by_ids(lambda end: position_ids.packed(lengths(end))),
        lambda end: np.equal.outer(*[position_ids.documents(lengths(end))] * 2),
        (2, 3),
    ),
    "cached": (by_ids(lambda end: position_ids.cached(end, end)), None, (2, 4)),
    "multimodal": (by_ids(lambda end: position_ids.multimodal(parts(end), merge=1, convention="largest")), None, (1, 3)),
    "dual_chunk": (at(lambda i, j: position_ids.dual_chunk(i, j, chunk_size=4, local=2)), None, (2, 3)),
    "self_extend": (at(lambda i, j: position_ids.self_extend(i, j, group=2, window=3, phase="decode")), None, (2, 3)),
}


def run(builder, start, end, *, cut=None):
    """Outputs of the tokens start .. end - 1 of a text of `end` tokens, over all keys at once or merged from two shards."""
    bias, allowed, _ = BUILDERS[builder]
    mask = attention.causal_mask(position_ids.cached(end - start, end), position_ids.cached(end, end))
    mask = mask if allowed is None else mask & np.broadcast_to(allowed(end), (end, end))[start:]
    given = Q[start:end], UNIT * K[:end], symbols("v", TOKENS, 1)[:end], UNIT * bias(start, end), mask
    return whole(*given) if cut is None else merged(*given, cut)


def whole(q, k, v, bias, mask):
    return attention.attend(q, k, v, scale=1, bias=bias, mask=mask)


def merged(q, k, v, bias, mask, cut):
    states = [
        shards.attend(q, k[keys], v[keys], scale=1, bias=bias[:, keys], mask=mask[:, keys])
        for keys in (slice(0, cut), slice(cut, None))
    ]
    return shards.finish(shards.merge(*states))


RUNS = [
    attention.attend,
    attention.softmax,
    attention.scores,
    attention.causal_mask,
    shards.attend,
    shards.merge,
    shards.finish,
]


@theorem(
    of=[*RUNS, *(getattr(position_ids, name) for name in BUILDERS)],
    sizes="5 tokens in pieces of 1 to 5; all values v, one example of queries and keys",
)
def prefill_is_chunks_steps_and_shards():
    """A text has one output, computed at once, in chunks, token by token, or merged from shards of its keys: with ids that are
    padded, packed, cached or multimodal, and with the offsets of Dual Chunk Attention and of Self-Extend's decoding, made anew
    whenever tokens come. For each of them what the last tokens see is decided when they come."""
    for builder, (_, _, cuts) in BUILDERS.items():
        prefill = run(builder, 0, TOKENS)
        chunks = [run(builder, start, end) for start, end in itertools.pairwise((0, *cuts, TOKENS))]
        prove_equal(np.concatenate(chunks), prefill)
        prove_equal(run(builder, TOKENS - 1, TOKENS), prefill[TOKENS - 1 :])
        prove_equal(run(builder, 0, TOKENS, cut=cuts[0]), prefill)


@prefill_is_chunks_steps_and_shards.claim("Keys move to other slots when tokens are evicted, so a step sees other distances.")
def streaming_steps_are_the_prefill():
    """With a cache of a sink and two tokens, a step has the row of a prefill that is masked to the same tokens."""
    kept, slots = position_ids.streaming(TOKENS, sinks=1, window=2)
    places = position_ids.cached(TOKENS, TOKENS)
    row = lambda keys, own: whole(Q[-1:], UNIT * K[keys], symbols("v", TOKENS, 1)[keys], UNIT * (own - own[-1])[None, :], None)
    prove_equal(row(kept, slots), row(kept, places[kept]))


@prefill_is_chunks_steps_and_shards.claim("They agree if the group divides the window.")
def self_extend_decodes_what_it_prefilled():
    """The rows of Self-Extend's prefill are those that it decodes (w = 3, g = 2)."""
    row = {}
    for phase in ("prefill", "decode"):
        i, j = position_ids.cached(1, TOKENS), position_ids.cached(TOKENS, TOKENS)
        bias = UNIT * array(position_ids.self_extend(i, j, group=2, window=3, phase=phase))
        row[phase] = whole(Q[-1:], UNIT * K, symbols("v", TOKENS, 1), bias, None)
    prove_equal(row["prefill"], row["decode"])


@prefill_is_chunks_steps_and_shards.claim("Keys in the cache keep the frequencies of the length at which they came.")
def dynamic_ntk_steps_are_the_prefill():
    """With dynamic NTK a step has the scores of a prefill: two frequencies, cached at length 4, read at length 8."""
    q, k, w = symbols("q", 1, 4), symbols("k", 1, 4), array([1, symbol("w")])
    at_length = lambda n: scaling.dynamic_ntk(w, factor=2, length=n, original_length=4)
    turn = lambda x, p, n: turned(x, np.array([p]), at_length(n))
    score = lambda n: attention.scores(turn(q, 7, 8), turn(k, 3, n), scale=1)
    prove_equal(score(4), score(8))


@theorem(
    of=[*(f for f in RUNS if f is not attention.causal_mask), position_ids.zigzag],  # any mask by position is shared so
    sizes="8 tokens, 2 ranks; all values v, one example of queries and keys",
)
def ranks_share_one_output():
    """Ranks of zigzag, each with its queries and the merged states of the keys of all ranks, have the rows of the whole at
    their positions."""
    ranks = [position_ids.zigzag(8, ranks=2, rank=rank) for rank in range(2)]
    everything = whole(*of_eight(np.arange(8), np.arange(8)))
    for own in ranks:
        prove_equal(merged(*of_eight(own, np.concatenate(ranks)), len(ranks[0])), everything[own])


@ranks_share_one_output.claim("The tokens of a rank do not follow each other: it needs a mask by position.")
def ranks_may_mask_by_place():
    """A rank can use is_causal, which aligns the last of its queries with the last key."""
    own, keys = position_ids.zigzag(8, ranks=2, rank=1), np.arange(8)
    q, k, v, bias, _ = of_eight(own, keys)
    by_place = attention.causal_mask(position_ids.cached(4, 8), keys)
    prove_equal(whole(q, k, v, bias, by_place), whole(*of_eight(keys, keys))[own])


def of_eight(i, j):
    """What the queries at i meet at the keys j of a text of eight tokens."""
    numbers = np.arange(16).reshape(8, 2)
    q, k, v = numbers % 5 - 2, UNIT * (numbers % 7 - 3), symbols("v", 8, 1)
    return q[i], k[j], v[j], UNIT * (i[:, None] + 1) * j, attention.causal_mask(i, j)


# one row of tokens


@example(of=[position_ids.padded], sizes="all masks of 5 tokens")
def pinned_padded():
    """The id of a token is the number of tokens before it, so padding on the left gives the ids of padding on the right."""
    for mask in itertools.product((False, True), repeat=5):
        for filler in (0, 1):
            prove_equal(position_ids.padded(np.array(mask), filler=filler), definition("padded", mask, filler))


@pinned_padded.claim("Without ids made from the mask, a left-padded text starts at the number of pads.")
def places_are_positions():
    """In a padded batch the place is the position."""
    prove_equal(position_ids.padded(np.array([False, True, True]), filler=0)[1:], [1, 2])


@example(of=[position_ids.packed, position_ids.documents], sizes="up to 3 documents of 0 to 3 tokens")
def pinned_packed():
    """packed counts every document from 0, and documents numbers them: what separate runs of the documents have."""
    for count in range(1, 4):
        for lengths in itertools.product(range(4), repeat=count):
            if sum(lengths) == 0:
                prove_that(position_ids.packed(np.array(lengths)).shape == (0,), "no tokens have no positions")
                continue
            prove_equal(position_ids.packed(np.array(lengths)), definition("packed", lengths))
            prove_equal(position_ids.documents(np.array(lengths)), definition("documents", lengths))


@pinned_packed.claim("A packed row without documents in its mask lets tokens attend into the text before theirs.")
def packed_tokens_need_no_mask():
    """Positions distinguish documents: no token is before another of the same position."""
    prove_equal(position_ids.packed(np.array([2, 2]))[2:] - position_ids.packed(np.array([2, 2]))[:2], [2, 2])


@example(of=[position_ids.cached], sizes="up to 6 keys")
def pinned_cached():
    """cached(n, m) is the last n of cached(m, m): prefill, chunks and single steps give a token one position."""
    for n_key in range(1, 7):
        for n_query in range(1, n_key + 1):
            prove_equal(position_ids.cached(n_query, n_key), definition("cached", n_query, n_key))


@pinned_cached.claim("The queries are the last of the keys.")
def cached_queries_start_at_zero():
    """A step of decoding has position 0."""
    prove_equal(position_ids.cached(1, 4), [0])


# ranks


@example(of=[position_ids.zigzag], sizes="1 to 4 ranks, chunks of 1 to 3")
def pinned_zigzag():
    """The ranks share 0 .. n - 1 without overlap, each has one chunk from either end, and equally many causal pairs."""
    for ranks in range(1, 5):
        for chunk in range(1, 4):
            n = 2 * ranks * chunk
            shares = [position_ids.zigzag(n, ranks=ranks, rank=rank) for rank in range(ranks)]
            prove_equal(np.sort(np.concatenate(shares)), range(n))
            for rank, share in enumerate(shares):
                prove_equal(share, definition("zigzag", n, ranks, rank))
                prove_equal([(share + 1).sum()], [(shares[0] + 1).sum()])


@pinned_zigzag.control
def contiguous_shares_work_equally():
    """A contiguous share has as many causal pairs as a share of zigzag."""
    share = position_ids.zigzag(8, ranks=2, rank=0)
    prove_equal([(share + 1).sum()], [(np.arange(4) + 1).sum()])


# a cache that drops tokens


@example(of=[position_ids.streaming], sizes="up to 8 tokens")
def pinned_streaming():
    """The first `sinks` and the last `window` tokens stay, in order, with the positions 0, 1, .. of their slots; the difference
    of two positions of the window is that of the text."""
    for n, sinks, window in itertools.product(range(1, 9), (1, 2), (1, 3)):
        kept, positions = position_ids.streaming(n, sinks=sinks, window=window)
        expected, slots = definition("streaming", n, sinks, window)
        prove_equal(kept, expected)
        prove_equal(positions, slots)
        last = [slot for slot, place in enumerate(expected) if place >= n - window]
        prove_equal(kept[last] - positions[last], [n - len(expected)] * len(last))


@pinned_streaming.claim("A sink is as near as its slot, and comes no farther while the text grows.")
def sinks_keep_their_distance():
    """The offset of a sink is that of the text."""
    kept, positions = position_ids.streaming(10, sinks=1, window=3)
    prove_equal([positions[0] - positions[-1]], [kept[0] - kept[-1]])


@theorem(of=[rope.rotate, rope.tables], sizes="all n, d")
def cached_keys_can_be_turned_on():
    """R(slot - p) R(p) k = R(slot) k: a key that was cached at its position p is brought to its slot by turning it on."""
    k, w, p, slot = sized("k", N, 2 * H), sized("w", H), sized("p", N), sized("slot", N)
    i, (t, a, b) = index(N), pair("half", 2 * H)
    on, direct = turned(turned(k, p, w), slot - p, w), turned(k, slot, w)
    prove_equal([on.at(i, a), on.at(i, b)], [direct.at(i, a), direct.at(i, b)], mention=[w.at(t), slot.at(i)])


@cached_keys_can_be_turned_on.claim(
    "Not if the key was turned with other frequencies, or with a magnitude: it is multiplied twice."
)
def keys_with_a_magnitude_can_be_turned_on():
    """Keys turned with tables times g are brought to their slot by tables times g."""
    k, w, g = symbols("k", 1, 2), symbols("w", 1), symbol("g")
    at = lambda x, p: rope.rotate(x, *(g * table for table in rope.tables(array([p]), w)), layout="half")
    p, slot = symbol("p"), symbol("slot")
    prove_equal(at(at(k, p), slot - p), at(k, slot))


# grouped and chunked offsets


@example(of=[position_ids.self_extend], sizes="20 tokens, groups 1 to 4, windows 1 to 8")
def pinned_self_extend():
    """The offset is j - i for i - j < w, else floor(j/g) - floor(i/g) - (w - floor(w/g)) in decoding, w - w/g in prefill; the
    two agree exactly if g divides w."""
    i = np.arange(20)
    for group, window in itertools.product(range(1, 5), range(1, 9)):
        got = {
            phase: position_ids.self_extend(i, i, group=group, window=window, phase=phase) for phase in ("prefill", "decode")
        }
        for phase, shift in (("prefill", window - window / group), ("decode", window - window // group)):
            expected = [[definition("self_extend", a, b, group, window, shift) for b in range(20)] for a in range(20)]
            prove_equal(got[phase], expected)
        prove_that((got["prefill"] == got["decode"]).all() == (window % group == 0), "prefill is decoding if g divides w")


@pinned_self_extend.claim("Only if the group divides the window: with w = 5 and g = 2 they differ by half a position.")
def prefill_is_decoding():
    """Self-Extend gives a token the same offsets in prefill and in decoding."""
    given = {"group": 2, "window": 5}
    i, j = np.array([9]), np.array([0])
    prove_equal(*(position_ids.self_extend(i, j, **given, phase=phase) for phase in ("prefill", "decode")))


@example(of=[position_ids.rerope, position_ids.lambda_mask], sizes="20 tokens, windows 1 to 8, leaks 1, 2, 4, 2 and 3 sinks")
def pinned_rerope():
    """The offset is j - i for i - j < w, else -w, or -(w + (i - j - w)/k): a function of j - i that never falls as keys come
    nearer, and with k = 1 it is j - i. LM-Infinite sees the last w keys and the first n_g."""
    i = np.arange(20)
    for window, leak in itertools.product(range(1, 9), (None, 1, 2, 4)):
        got = position_ids.rerope(i, i, window=window, leak=leak)
        prove_equal(got, [[definition("rerope", a, b, window, leak) for b in range(20)] for a in range(20)])
        prove_equal(got[1:, 1:], got[:-1, :-1])
        prove_that(bool((np.diff(got) >= 0).all()), "it never falls")
        prove_that((leak == 1) is bool((got == i - i[:, None]).all()), "the offset itself for k = 1 alone")
        for sinks in (2, 3):
            seen = position_ids.lambda_mask(i, i, window=window, sinks=sinks)
            stated = [[definition("lambda_mask", a, b, window, sinks) for b in range(20)] for a in range(20)]
            prove_that(seen.tolist() == stated, f"the mask of {window} and {sinks}")


@pinned_rerope.claim("ReRoPE's are; Self-Extend groups positions, and at the distance 9 it is 8 or 9 (w = 8, g = 4).")
def self_extend_is_a_function_of_the_distance():
    """Offsets beyond the window are functions of the distance, in Self-Extend as in ReRoPE."""
    i = np.arange(9, 14)
    prove_equal(np.diagonal(position_ids.rerope(i, i - 9, window=8)), [-8] * 5)
    got = np.diagonal(position_ids.self_extend(i, i - 9, group=4, window=8, phase="decode"))
    prove_equal(got, [got[0]] * 5)


@example(of=[position_ids.dual_chunk], sizes="24 tokens, 9 settings")
def pinned_dual_chunk():
    """Offsets are exact within a chunk, and up to min(local + 1, c) tokens back; none is farther than `chunk_size`."""
    i = np.arange(24)
    for most, local in ((2, 1), (4, 1), (4, 2), (4, 3), (6, 2), (8, 2), (8, 4), (9, 3), (30, 5)):
        got, chunk = position_ids.dual_chunk(i, i, chunk_size=most, local=local), most - local
        expected = [[definition("dual_chunk", a, b, most, local) if b <= a else 0 for b in range(24)] for a in range(24)]
        prove_equal(np.where(i[None, :] <= i[:, None], got, 0), expected)
        distance = i[:, None] - i[None, :]
        near = (distance >= 0) & (distance <= min(local + 1, chunk))
        prove_that((got == -distance)[near].all(), "near offsets are exact")
        prove_that(got[distance >= 0].min() >= -most, "no offset is farther than size")


@pinned_dual_chunk.claim("Beyond the next chunk nearer and farther tokens have the same offsets over and over.")
def dual_chunk_is_monotone():
    """A token farther back has an offset at least as far."""
    offsets = position_ids.dual_chunk(np.array([19]), np.arange(20), chunk_size=6, local=2)[0]
    prove_equal(np.sort(offsets), offsets)


# images


@example(of=[position_ids.multimodal], sizes="7 rows of text, images and videos")
def pinned_multimodal():
    """Text, also as (tokens, 0, 0), has three equal positions; a patch has start + (floor(interval frame), row, column); the
    next part starts max(rows, columns) later, or after the largest position if convention is "largest"."""
    prove_that(position_ids.multimodal([], merge=1, convention="largest").shape == (0, 3), "nothing has no positions")
    rows = [[3], [(1, 2, 2)], [2, (1, 4, 2), 1], [(3, 2, 2), 2], [1, (2, 4, 6), 3, (1, 2, 2), 1], [(2, 0, 0), (1, 2, 2)]]
    for merge, convention, interval in itertools.product((1, 2), ("largest", "longer_side"), (1, 2.5)):
        for parts in [*rows, [(2, merge, merge), 1]]:
            expected = np.array(definition("multimodal", parts, merge, convention, interval)).reshape(-1, 3)
            prove_equal(position_ids.multimodal(parts, merge=merge, convention=convention, interval=interval), expected)


@pinned_multimodal.claim("It starts after the longer side, so a video of more frames than that shares positions with the text.")
def text_goes_on_after_the_largest_position():
    """With convention=longer_side too, text starts after the largest position of the patches before it."""
    positions = position_ids.multimodal([(5, 2, 2), 1], merge=1, convention="longer_side")
    prove_equal([positions[-1, 0]], [positions[:-1].max() + 1])


# temperature


@theorem(of=[position_ids.temperature], sizes="positions 0 to 29; lengths 1, 3 and 8; every amount")
def pinned_temperature():
    """temperature is 1 + amount ln(1 + floor(p / length)), with p + 1 for p in Llama 4: the two conventions are one number
    apart, and so differ, for an amount that is not 0, where p + 1 is a multiple of the length and nowhere else."""
    amount = symbol("amount")
    for length in (1, 3, 8):
        p = np.arange(30)
        llama, ministral = (
            position_ids.temperature(p, amount=amount, length=length, convention=name) for name in ("llama4", "ministral3")
        )
        logarithm = lambda blocks: expression(float(np.log(1 + blocks)))
        prove_equal(llama, [1 + amount * logarithm((n + 1) // length) for n in p], mention=[amount])
        prove_equal(ministral, [1 + amount * logarithm(n // length) for n in p], mention=[amount])
        differ = [n for n in p if not is_zero(expression(llama[n] - ministral[n]))]
        prove_equal(differ, [n for n in p if (n + 1) % length == 0])


@pinned_temperature.claim("They differ at one position in `length`: 8191 has 1.069315 in Llama 4 and 1 in Ministral 3.")
def the_temperatures_are_one():
    """Llama 4 and Ministral 3 scale queries alike."""
    given = {"amount": 0.1, "length": 8192}
    prove_equal(*(position_ids.temperature(np.array([8191]), **given, convention=name) for name in ("llama4", "ministral3")))


def output(q, k, v, p, w, mask_positions=None):
    """Attention on generators, without subtracting the maximum."""
    where = p if mask_positions is None else mask_positions
    scores = attention.scores(turned(q, p, w), turned(k, p, w), scale=1)
    weights = np.where(attention.causal_mask(where, where), np.exp(scores), 0)
    return (weights / weights.sum(axis=-1, keepdims=True)) @ v
