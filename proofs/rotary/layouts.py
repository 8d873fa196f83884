"""Pair layouts: converting features and weights between the two pairings."""

# Over budget: every conversion of features, weights and gains

import numpy as np

from posref import pairing
from posref.rotary import layouts, rope
from proofs.kit import *

N, H, REST = size("n"), size("h"), size("rest")
BOTH = (("interleaved", "half"), ("half", "interleaved"))
TO_HALF = {"source": "interleaved", "target": "half"}
TURNED = [layouts.convert, rope.rotate, pairing.split, pairing.join]


def definition(rows, heads, rotary_dim, source, target):
    """For each row of the converted projection, the row that it comes from: pair t of every head moves from its place in
    layout `source` to that in `target`; the rest of the head stays. transformers, convert_llama_weights_to_hf.py, permute."""
    place = {"interleaved": lambda t, second: 2 * t + second, "half": lambda t, second: t + second * rotary_dim // 2}
    head_dim, origin = rows // heads, list(range(rows))
    for head in range(heads):
        for t in range(rotary_dim // 2):
            for second in (0, 1):
                start = head * head_dim
                origin[start + place[target](t, second)] = start + place[source](t, second)
    return origin


# what it is


@theorem(of=[layouts.convert, pairing.split, pairing.join], sizes="all n, even d, even rotary_dim")
def pinned():
    """convert moves pair t of `source` to pair t of `target`, touches no value, and leaves the features from rotary_dim on."""
    x, y = sized("x", N, 2 * H), sized("x", N, 2 * H + REST)
    i, t, tail = index(N), index(H), 2 * H + index(REST)
    places = {"interleaved": (2 * t, 2 * t + 1), "half": (t, t + H)}
    for source in pairing.LAYOUTS:
        for target in pairing.LAYOUTS:
            converted = layouts.convert(x, source=source, target=target)
            prove_equal([converted.at(i, c) for c in places[target]], [x.at(i, c) for c in places[source]])
            converted = layouts.convert(y, source=source, target=target, rotary_dim=2 * H)
            prove_equal([converted.at(i, c) for c in places[target]], [y.at(i, c) for c in places[source]])
            prove_equal([converted.at(i, tail)], [y.at(i, tail)])


@pinned.control
def pinned_from_target_to_source():
    """The inverse permutation (d = 6; at d = 4 it is the same)."""
    x = symbols("x", 6)
    prove_equal(layouts.convert(x, **TO_HALF), layouts.convert(x, source="half", target="interleaved"))


@pinned.control
def tail_moves_too():
    """With rotary_dim = 4 the whole head of 6 is converted."""
    x = symbols("x", 6)
    prove_equal(layouts.convert(x, **TO_HALF, rotary_dim=4), layouts.convert(x, **TO_HALF))


@example(
    of=[layouts.permute_projection, layouts.convert], sizes="1 to 3 heads of 2 to 10, every rotary_dim; weights and biases"
)
def projection_pinned():
    """permute_projection moves the rows of every head as `convert` moves features; columns stay. No row is lost."""
    for heads in (1, 2, 3):
        for head_dim in (2, 4, 6, 7, 10):
            rows = heads * head_dim
            weight = np.arange(rows * 3 * 2).reshape(rows, 3, 2)
            for rotary_dim in range(2, head_dim + 1, 2):
                for source in pairing.LAYOUTS:
                    for target in pairing.LAYOUTS:
                        origin = definition(rows, heads, rotary_dim, source, target)
                        premise(sorted(origin) == list(range(rows)), "the definition is a permutation")
                        change = {"heads": heads, "rotary_dim": rotary_dim, "source": source, "target": target}
                        moved = layouts.permute_projection(weight, **change)
                        prove_that(moved.tolist() == weight[origin].tolist(), f"a weight, {change}")
                        bias = layouts.permute_projection(np.arange(rows), **change)
                        prove_that(bias.tolist() == origin, f"a bias, {change}")


@projection_pinned.claim("The rows are permuted within each head.")
def projection_permuted_as_one_head():
    """The rows are permuted over the whole projection (2 heads of 4), llama.cpp issue 3018."""
    bias = symbols("b", 8)
    whole = layouts.permute_projection(bias, heads=1, rotary_dim=8, **TO_HALF)
    prove_equal(layouts.permute_projection(bias, heads=2, rotary_dim=4, **TO_HALF), whole)


# what it does


@theorem(of=[layouts.convert, pairing.split, pairing.join], sizes="all n, d, rotary_dim; 3 rows at d = 2", as_written="runs")
def bijection():
    """The opposite conversion undoes a conversion, so it is a permutation; source = target is the identity, and so is every
    conversion of a single pair: a head of width 2 has one layout."""
    x, y, two = sized("x", N, 2 * H), sized("x", N, 2 * H + REST), symbols("x", 3, 2)
    for source, target in (*BOTH, ("half", "half"), ("interleaved", "interleaved")):
        there = layouts.convert(x, source=source, target=target)
        prove_equal(*entries(source, layouts.convert(there, source=target, target=source), x))
        there = layouts.convert(y, source=source, target=target, rotary_dim=2 * H)
        back = layouts.convert(there, source=target, target=source, rotary_dim=2 * H)
        prove_equal(*entries(source, back[..., : 2 * H], y[..., : 2 * H]))
        prove_equal(*entries(None, back[..., 2 * H :], y[..., 2 * H :]))
        if source == target:
            prove_equal(*entries(source, layouts.convert(x, source=source, target=target), x))
        prove_equal(layouts.convert(two, source=source, target=target), two)


@bijection.claim("Only at width 4, where the permutation exchanges two features.")
def its_own_inverse():
    """Converting twice in one direction gives x back (d = 6): true for heads of 4, which is how it goes unnoticed."""
    x = symbols("x", 6)
    prove_equal(layouts.convert(layouts.convert(x, **TO_HALF), **TO_HALF), x)


@theorem(of=TURNED, sizes="all n, d, rotary_dim", as_written="runs")
def commutes_with_rotation():
    """rotate(convert(x), layout=target) = convert(rotate(x, layout=source)), with any tables."""
    x, y, c, s = sized("x", N, 2 * H), sized("x", N, 2 * H + REST), sized("c", N, H), sized("s", N, H)
    for source, target in BOTH:
        change = {"source": source, "target": target}
        after = rope.rotate(layouts.convert(x, **change), c, s, layout=target)
        prove_equal(*entries(target, after, layouts.convert(rope.rotate(x, c, s, layout=source), **change)))
        partial = {"rotary_dim": 2 * H}
        after = rope.rotate(layouts.convert(y, **change, **partial), c, s, layout=target, **partial)
        before = layouts.convert(rope.rotate(y, c, s, layout=source, **partial), **change, **partial)
        prove_equal(*entries(target, after[..., : 2 * H], before[..., : 2 * H]))
        prove_equal(*entries(None, after[..., 2 * H :], before[..., 2 * H :]))


@commutes_with_rotation.claim("Scores are equal; rotated vectors differ by the permutation.")
def rotated_vectors_are_equal():
    """Not only scores: the rotated vectors of both layouts are equal after converting x (d = 4)."""
    x, c, s = symbols("x", 1, 4), symbols("c", 1, 2), symbols("s", 1, 2)
    converted = rope.rotate(layouts.convert(x, **TO_HALF), c, s, layout="half")
    prove_equal(converted, rope.rotate(x, c, s, layout="interleaved"))


@commutes_with_rotation.claim("Pair t has column t of the tables in either layout.")
def tables_are_converted_as_well():
    """The columns of the tables change their order too (d = 8)."""
    x, c, s = symbols("x", 1, 8), symbols("c", 1, 4), symbols("s", 1, 4)
    after = rope.rotate(layouts.convert(x, **TO_HALF), *(layouts.convert(t, **TO_HALF) for t in (c, s)), layout="half")
    prove_equal(after, layouts.convert(rope.rotate(x, c, s, layout="interleaved"), **TO_HALF))


@theorem(of=TURNED, sizes="all n, d")
def keeps_scores():
    """P q . P k = q . k; and the score of rotated vectors is kept when both are converted and the layout is switched, which is
    also why reading interleaved and writing half (DeepSeek-V3 in transformers) has the scores of an interleaved rotation."""
    q, k, c, s, i, j = sized("q", N, 2 * H), sized("k", N, 2 * H), sized("c", N, H), sized("s", N, H), index(N), index(N)
    as_they_are, turned = lambda x, layout: x, lambda x, layout: rope.rotate(x, c, s, layout=layout)
    for source, target in BOTH:
        for form in (as_they_are, turned):
            with summing(source):
                before = (form(q, source) @ form(k, source).T).at(i, j)
            moved = [form(layouts.convert(x, source=source, target=target), target) for x in (q, k)]
            with summing(target):
                prove_equal([(moved[0] @ moved[1].T).at(i, j)], [before])


@keeps_scores.control
def keys_stay_in_the_other_layout():
    """Converting q alone keeps scores."""
    q, k = symbols("q", 4), symbols("k", 4)
    prove_equal([layouts.convert(q, **TO_HALF) @ k], [q @ k])


@keeps_scores.claim("The layout pairs other features with each frequency, so scores change.")
def layout_alone_keeps_scores():
    """The layout does not matter as long as q and k share it, once positions differ."""
    q, k, c, s = symbols("q", 1, 4), symbols("k", 1, 4), symbols("c", 2, 2), symbols("s", 2, 2)
    score = lambda layout: rope.rotate(q, c[:1], s[:1], layout=layout) @ rope.rotate(k, c[1:], s[1:], layout=layout).T
    prove_equal(score("half"), score("interleaved"))


# checkpoints


def scores(layout, rotary_dim, head_dim, change=lambda name, array, heads: array):
    """Scores of a query token and a key token of width 2: projections with weights and biases, 4 heads of q on 2 of k."""
    projected = {}
    for name, heads in (("q", 4), ("k", 2)):
        weight = change(name + "_weight", symbols("w" + name, heads * head_dim, 2), heads)
        bias = change(name + "_bias", symbols("b" + name, heads * head_dim), heads)
        x, c, s = symbols("x" + name, 2), symbols("c" + name, 1, rotary_dim // 2), symbols("s" + name, 1, rotary_dim // 2)
        features = (weight @ x + bias).reshape(heads, 1, head_dim)
        projected[name] = rope.rotate(features, c, s, layout=layout, rotary_dim=rotary_dim)
    return projected["q"] @ np.swapaxes(np.repeat(projected["k"], 2, axis=0), -1, -2)


def permuted(rotary_dim, source, target, *, forget="", heads_of_k=2):
    """The change that converts a checkpoint; the array named by `forget` stays unconverted."""

    def change(name, array, heads):
        number = heads_of_k if name.startswith("k") else heads
        if name == forget:
            return array
        return layouts.permute_projection(array, heads=number, rotary_dim=rotary_dim, source=source, target=target)

    return change


@theorem(
    of=[layouts.permute_projection, *TURNED], sizes="4 heads on 2 key heads; head_dim = 4, 5, rotary_dim = 4", as_written="runs"
)
def converted_checkpoints_keep_scores():
    """Permuting the rows of W_Q, W_K and their biases, each with its own number of heads, and switching the layout leaves every
    score of every input as it was, for all weights and tables, with features that pass and grouped queries."""
    for source, target in BOTH:
        for head_dim in (4, 5):
            prove_equal(scores(target, 4, head_dim, permuted(4, source, target)), scores(source, 4, head_dim))


@converted_checkpoints_keep_scores.control
def switch_forgotten():
    """The weights are converted and the layout stays."""
    prove_equal(scores("interleaved", 4, 4, permuted(4, "interleaved", "half")), scores("interleaved", 4, 4))


@converted_checkpoints_keep_scores.claim("Biases are permuted like the rows of their weights.")
def bias_forgotten():
    """Weights are converted and the bias of k is not."""
    prove_equal(scores("half", 4, 4, permuted(4, "interleaved", "half", forget="k_bias")), scores("interleaved", 4, 4))


@converted_checkpoints_keep_scores.control
def keys_forgotten():
    """W_Q is converted and W_K is not."""
    prove_equal(scores("half", 4, 4, permuted(4, "interleaved", "half", forget="k_weight")), scores("interleaved", 4, 4))


@converted_checkpoints_keep_scores.claim("W_K is cut into its own number of heads.")
def keys_permuted_with_the_heads_of_queries():
    """k is cut into as many heads as q has: 2 heads of 8 as 4 heads of 4, which rotary_dim = 4 does not betray."""
    wrong = permuted(4, "interleaved", "half", heads_of_k=4)
    prove_equal(scores("half", 4, 8, wrong), scores("interleaved", 4, 8))


@theorem(of=[layouts.permute_projection, layouts.convert], sizes="head_dim = 6, rotary_dim = 4, 6", as_written="runs")
def gains_permute_like_a_bias():
    """Gains g of a normalization of q and k: P (x g) = (P x)(P g) and |P x|^2 = |x|^2, so x / rms(x) times g is converted by
    converting x and g."""
    x, g = symbols("x", 2, 6), symbols("g", 6)
    for source, target in BOTH:
        for rotary_dim in (4, 6):
            change = {"rotary_dim": rotary_dim, "source": source, "target": target}
            gains, moved = layouts.permute_projection(g, heads=1, **change), layouts.convert(x, **change)
            prove_equal(moved * gains, layouts.convert(x * g, **change))
            prove_equal((moved**2).sum(axis=-1), (x**2).sum(axis=-1))


@gains_permute_like_a_bias.control
def gains_stay():
    """The gains keep their order."""
    x, g = symbols("x", 6), symbols("g", 6)
    prove_equal(layouts.convert(x, **TO_HALF) * g, layouts.convert(x * g, **TO_HALF))
