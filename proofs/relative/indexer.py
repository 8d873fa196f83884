"""Indexer: scores, the keys that they select, and blocks that are compressed to one key."""

# Over budget: scores, selections, two kinds of compression, and which blocks and tokens a query sees

import itertools

import numpy as np
import sympy as sp

from posref import attention, pairing
from posref.relative import indexer
from posref.rotary import rope
from proofs.kit import *

ROUNDS = {"unfinished_mask": "unfinished_pinned"}
WHOLE = [indexer._mean, attention.softmax]


def definition(q, k, weights, scale):
    """One score from the queries of all heads and one key: scale sum_a w_a max(q_a . k, 0). arXiv 2512.02556, Eq. (1)."""
    return scale * sum(
        w * _relu(sum(x * y for x, y in zip(of_head, k, strict=True))) for of_head, w in zip(q, weights, strict=True)
    )


def _relu(x):
    return x if x >= 0 else 0 * x


def chosen(scores, seen, top):
    """The keys of one query: `top` times the key with the largest score that is left; of equal scores the earlier. Eq. (2)."""
    left, found = [j for j in range(len(scores)) if seen[j]], []
    while left and len(found) < top:
        best = left[0]
        for j in left[1:]:
            best = j if scores[j] > scores[best] else best
        found, left = [*found, best], [j for j in left if j != best]
    return [j in found for j in range(len(scores))]


def mean(vectors, logits, m=sp):
    """sum_t exp(l_t) x_t / sum_t exp(l_t), one feature of one block. DeepSeek-V4, its code in transformers."""
    powers = [m.exp(each) for each in logits]
    return sum(p * x for p, x in zip(powers, vectors, strict=True)) / sum(powers)


# scores


@theorem(of=[indexer.scores], sizes="2 heads, 2 queries, 1 key and 1 query, 2 keys, width 2; every path")
def pinned():
    """A score is scale times the sum of the weights of the query's token times the positive parts of the products."""
    for n, m in ((2, 1), (1, 2)):
        q, k, w, scale = symbols("q", 2, n, 2), symbols("k", m, 2), symbols("w", n, 2), symbol("scale")
        cells = [*np.ndindex(n, m)]
        both = lambda q=q, k=k, w=w, scale=scale, cells=cells: (
            indexer.scores(q, k, w, scale=scale),
            [definition(q[:, i], k[j], w[i], scale) for i, j in cells],
        )
        for _, (got, stated) in all_paths(both):
            prove_that(got.shape == (n, m), "a score for each query and key")
            prove_equal(got.ravel(), stated)


@pinned.claim("Products below 0 count as 0, head by head.")
def no_relu():
    """The score is the sum of all products with their weights."""
    q, k, w = symbols("q", 1, 1, 1), symbols("k", 1, 1), symbols("w", 1, 1)
    for _, got in all_paths(lambda: indexer.scores(q, k, w, scale=1)):
        prove_equal(got[0], [w[0, 0] * q[0, 0, 0] * k[0, 0]])


@pinned.control
def one_relu_for_all_heads():
    """The positive part can be taken of the sum over the heads."""
    q, k, w = symbols("q", 2, 1, 1), symbols("k", 1, 1), symbols("w", 1, 2)
    both = lambda: (indexer.scores(q, k, w, scale=1)[0, 0], _relu(sum(w[0, a] * q[a, 0, 0] * k[0, 0] for a in range(2))))
    for _, (got, stated) in all_paths(both):
        prove_equal([got], [stated])


@theorem(
    of=[indexer.scores, rope.rotate, rope.tables],
    sizes="one head, width 4, of which 2 features turn; both layouts, either end",
    argument="equal products have equal scores",
)
def relative():
    """Scores depend on queries and keys through their products alone; with both rotated at either end of the head, in
    either layout, the products depend on the offset alone."""
    q, k, w, m, n, theta = symbols("q", 1, 4), symbols("k", 1, 4), symbols("w", 1, 1), symbol("m"), symbol("n"), symbols("t", 1)
    for _, (got, of_products) in all_paths(
        lambda: (indexer.scores(q[None], k, w, scale=1), indexer.scores((q @ k.T)[None], array([[1]]), w, scale=1))
    ):
        prove_equal(got, of_products)
    for layout, end in itertools.product(pairing.LAYOUTS, (0, 2)):
        products = lambda i, j, layout=layout, end=end: _turned(q, i, theta, layout, end) @ _turned(k, j, theta, layout, end).T
        prove_equal(products(m, n), products(0 * m, n - m), mention=[m, n, theta[0]])


def _turned(x, position, theta, layout, first):
    """Two features of four from `first` on, rotated."""
    part = rope.rotate(x[:, first : first + 2], *rope.tables(array([position]), theta), layout=layout)
    return np.concatenate([x[:, :first], part, x[:, first + 2 :]], axis=-1)


@relative.claim("Queries and keys are rotated at the same end; the two ends must not be mixed.")
def the_ends_may_differ():
    """Queries may be rotated at the first features and keys at the last."""
    q, k, m, n, theta = symbols("q", 1, 4), symbols("k", 1, 4), symbol("m"), symbol("n"), symbols("t", 1)
    products = lambda i, j: _turned(q, i, theta, "half", 0) @ _turned(k, j, theta, "half", 2).T
    prove_equal(products(m, n), products(0 * m, n - m))


@relative.control
def position_does_not_occur():
    """Rotated queries and keys have the products of those that are not."""
    q, k, m, theta = symbols("q", 1, 4), symbols("k", 1, 4), symbol("m"), symbols("t", 1)
    prove_equal(_turned(q, m, theta, "half", 0) @ _turned(k, 0 * m, theta, "half", 0).T, q @ k.T)


# selection

MASKS = [np.array([bits], dtype=bool) for bits in itertools.product((False, True), repeat=3)]


def orders():
    """Scores of three keys in every order, ties included: a lowest number, and positive steps from level to level."""
    lowest, steps = symbol("lowest"), symbols("step", 2, positive=True)
    levels = [lowest, lowest + steps[0], lowest + steps[0] + steps[1]]
    return [array([[levels[each] for each in row]]) for row in itertools.product(range(3), repeat=3)]


@theorem(of=[indexer.select], sizes="three keys, scores in each order, with equal ones; each mask, top 1, 2, 3")
def largest_first():
    """`top` times, the key of the largest score is selected among the allowed keys that are left, of equal scores the
    earlier one: exactly min(top, allowed) keys, and never a masked one."""
    for s, mask, top in itertools.product(orders(), MASKS, (1, 2, 3)):
        stated = np.array(chosen(s[0], mask[0], top))
        got = indexer.select(s, mask, top=top)
        prove_that((got[0] == stated).all(), "the keys of the definition")
        prove_equal(got[0] * s[0], stated * s[0])
        prove_that(sum(got[0].tolist()) == min(top, mask.sum()), "as many as there can be")
    two = np.concatenate([orders()[5], orders()[15]])
    prove_that(indexer.select(two, MASKS[-1], top=1).tolist() == [chosen(each, MASKS[-1][0], 1) for each in two], "by rows")


@largest_first.claim("A mask after the selection leaves fewer keys; it must come before.")
def the_mask_may_come_later():
    """Selecting among all keys and masking then is the same."""
    for s in orders():
        first, later = indexer.select(s, MASKS[4], top=1), indexer.select(s, MASKS[-1], top=1) & MASKS[4]
        said = f"3 keys, mask {MASKS[4][0].tolist()}, top 1: {later[0].tolist()} selected, expected {first[0].tolist()}"
        prove_that(bool((first == later).all()), "equal", counterexample=said)


# blocks


@theorem(of=[indexer.compress, *WHOLE], sizes="2 blocks of 1 token, 1 block of 2, two features; every path")
def blocks_pinned():
    """Feature by feature a block becomes the mean of its tokens, weighted by the softmax of gates + bias."""
    for blocks, rate in ((2, 1), (1, 2)):
        x, g, b = symbols("x", blocks, rate, 2), symbols("g", blocks, rate, 2), symbols("b", rate, 2)
        for _, got in all_paths(lambda x=x, g=g, b=b: indexer.compress(x, g, b)):
            for m, c in np.ndindex(blocks, 2):
                prove_equal([got[m, c]], [mean(_list(x[m, :, c]), _list((g[m] + b)[:, c]))], mention=x[m, :, c])


def _list(values):
    return [expression(each) for each in values]


@blocks_pinned.control
def the_bias_is_of_the_vectors():
    """The bias is added to the vectors instead of the gates."""
    x, g, b = symbols("x", 1, 2, 1), symbols("g", 1, 2, 1), symbols("b", 2, 1)
    for _, got in all_paths(lambda: indexer.compress(x, g, b)):
        prove_equal(got[0], [mean(_list((x[0] + b)[:, 0]), _list(g[0, :, 0]))])


UNSEEN = "what stands in front of block 0 is never seen"
BEFORE = "_with_block_before: before = np.concatenate([0 * first[..., :1, :, :], first[..., :-1, :, :]], axis=-3)  ->  "
BEFORE += "before = np.concatenate([%s[..., :1, :, :], first[..., :-1, :, :]], axis=-3)"


@theorem(
    of=[indexer.compress_overlapping, indexer._with_block_before, pairing.split, *WHOLE],
    sizes="3 blocks of 1 token and 1 block of 2; every path",
    equivalent={BEFORE % ("-1 * first",): UNSEEN, BEFORE % ("0 * second",): UNSEEN},
)
def overlap_pinned():
    """A block becomes the mean of the first halves of the features in the block before and of the second halves in its own
    tokens; block 0 has its own tokens alone."""
    for blocks, rate in ((3, 1), (1, 2)):
        x, g, b = symbols("x", blocks, rate, 2), symbols("g", blocks, rate, 2), symbols("b", rate, 2)
        logits = g + b
        for _, got in all_paths(lambda x=x, g=g, b=b: indexer.compress_overlapping(x, g, b)):
            prove_that(got.shape == (blocks, 1), "half of the features")
            for m in range(blocks):
                slots = [(m - 1, t, 0) for t in range(rate) if m > 0] + [(m, t, 1) for t in range(rate)]
                stated = mean(*([expression(of[slot]) for slot in slots] for of in (x, logits)))
                prove_equal(got[m], [stated], mention=[x[slot] for slot in slots])


@overlap_pinned.control
def zeros_stand_before_block_0():
    """In front of block 0 there is a block of zeros with the logit 0."""
    x, g = symbols("x", 1, 1, 2), symbols("g", 1, 1, 2)
    for _, got in all_paths(lambda: indexer.compress_overlapping(x, g, array([[0, 0]]))):
        prove_equal(got[0], [mean([sp.Integer(0), x[0, 0, 1].e], [sp.Integer(0), g[0, 0, 1].e])])


@theorem(
    of=[indexer.block_mask, indexer.block_positions, attention.causal_mask],
    sizes="one query, one block, rates 1, 2, 5; every path",
)
def no_token_of_the_future():
    """A block stands at its first token, m r, and is visible exactly to the queries for which none of its tokens is in the
    future."""
    i, m = symbols("i", 1, integer=True), symbols("m", 1, integer=True)
    for rate in (1, 2, 5):
        prove_equal(indexer.block_positions(m, rate=rate), [rate * m[0]], mention=m)
        tokens = [rate * m[0] + t for t in range(rate)]
        both = lambda rate=rate, tokens=tokens: (indexer.block_mask(i, m, rate=rate), all(t <= i[0] for t in tokens))
        for _, (got, stated) in all_paths(both):
            prove_that(bool(got[0, 0]) == stated, "visible when no token is in the future")


@no_token_of_the_future.claim("It waits for the last token of the block.")
def visible_from_the_first_token_on():
    """A block is visible when its first token is not in the future."""
    visible = bool(indexer.block_mask(np.array([6]), np.array([3]), rate=2)[0, 0])
    witness = f"block 3 holds the tokens 6 and 7, the query is at 6: visible is {visible}, expected True"
    prove_that(visible, counterexample=witness)


@example(of=[indexer.unfinished_mask, attention.causal_mask], sizes="positions -10 .. 19, rates 1, 2, 5")
def unfinished_pinned():
    """Of the keys up to a query those are unfinished that no visible block holds; keys in the future never are."""
    at = np.arange(-10, 20)
    for rate in (1, 2, 5):
        held = indexer.block_mask(at, at // rate, rate=rate)
        got = indexer.unfinished_mask(at, at, rate=rate)
        prove_that(got.tolist() == ((at <= at[:, None]) & ~held).tolist(), f"blocks of {rate}")


@unfinished_pinned.control
def of_the_last_tokens():
    """They are the last `rate` tokens up to the query."""
    seen = indexer.unfinished_mask(np.array([3]), np.arange(4), rate=4)[0].tolist()
    prove_that(seen == [True] * 4, counterexample=f"blocks of 4 at the query 3: {seen}, expected four times True")
