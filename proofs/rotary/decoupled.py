"""Decoupled RoPE: each head has unrotated content, and all heads share a rotated key."""

import numpy as np
import sympy as sp

from posref import attention, pairing
from posref.rotary import decoupled, rope
from proofs.attention import definition as softmax
from proofs.attention import rows
from proofs.kit import *

N, M, D, R = size("n"), size("m"), size("d"), size("r")


def definition(content, turned, scale, m=sp):
    """One score from the products of its two parts; arXiv 2405.04434, Eqs. (16) to (18)."""
    return scale * (content + turned)


@theorem(of=[decoupled.scores], sizes="all n, m, widths")
def pinned():
    """A score is scale times the sum of both inner products."""
    q, p, k, r = sized("q", N, D), sized("p", N, R), sized("k", M, D), sized("r", M, R)
    scale, i, j, c, t = symbol("scale"), index(N), index(M), index(D), index(R)
    content = sp.Sum(q.at(i, c) * k.at(j, c), (c, 0, D - 1))
    turned = sp.Sum(p.at(i, t) * r.at(j, t), (t, 0, R - 1))
    got = decoupled.scores(q, p, k, r, scale=scale).at(i, j)
    prove_equal([got], [definition(content, turned, scale.e)], mention=[scale])


@pinned.claim("Both parts are divided by the root of the joint width: 192 in DeepSeek-V3, not 128.")
def each_part_has_its_scale():
    """Each part is divided by the root of its own width."""
    q, p, k, r, a = symbols("q", 1, 1), symbols("p", 1, 1), symbols("k", 1, 1), symbols("r", 1, 1), symbol("a")
    prove_equal(decoupled.scores(q, p, k, r, scale=a), a * (q @ k.T) + a * a * (p @ r.T))


@theorem(of=[decoupled.scores, attention.scores], sizes="2 queries, 2 keys, widths 2 and 2")
def joined_vectors():
    """The score is one inner product of joined vectors; either part may be the first, if it is so in queries and keys."""
    q, p, k, r, scale = symbols("q", 2, 2), symbols("p", 2, 2), symbols("k", 2, 2), symbols("r", 2, 2), symbol("scale")
    got = decoupled.scores(q, p, k, r, scale=scale)
    for order in (1, -1):
        joined = [np.concatenate(parts[::order], axis=-1) for parts in ([q, p], [k, r])]
        prove_equal(got, attention.scores(*joined, scale=scale), mention=[scale])


@joined_vectors.claim("V3.2's indexer has its turned part first, its main attention last: each with its own queries and keys.")
def the_orders_may_differ():
    """The turned part may come first in queries and last in keys."""
    q, p, k, r = symbols("q", 1, 1), symbols("p", 1, 1), symbols("k", 1, 1), symbols("r", 1, 1)
    joined = np.concatenate([p, q], axis=-1), np.concatenate([k, r], axis=-1)
    prove_equal(decoupled.scores(q, p, k, r, scale=1), attention.scores(*joined, scale=1))


@theorem(of=[decoupled.absorbed_scores, decoupled.scores], sizes="2 heads, 1 query, 2 keys, widths 2, latent 3")
def absorbed_is_naive():
    """Scores by latents, with the query sent through the matrix, are those of the keys that the matrix makes."""
    q, p, w = symbols("q", 2, 1, 2), symbols("p", 2, 1, 2), symbols("w", 2, 3, 2)
    latents, r, scale = symbols("c", 1, 2, 3), symbols("r", 1, 2, 2), symbol("scale")
    naive = decoupled.scores(q, p, latents @ w, r, scale=scale)
    prove_equal(decoupled.absorbed_scores(q, p, latents, r, w, scale=scale), naive, mention=[scale])


@absorbed_is_naive.claim("The turned part cannot be absorbed: the rotation stands between the two matrices.")
def turned_keys_are_absorbed():
    """Keys that are turned after the matrix can be absorbed as well."""
    q, c, w, m, n = symbols("q", 1, 2), symbols("c", 1, 2), symbols("w", 2, 2), symbols("m", 1), symbols("n", 1)
    at = lambda x, p: rope.rotate(x, *rope.tables(p, symbols("theta", 1)), layout="half")
    zero = symbols("zero", 1, 1) * 0
    absorbed = decoupled.scores(at(q @ w.T, m), zero, at(c, n), zero, scale=1)
    prove_equal(absorbed, decoupled.scores(at(q, m), zero, at(c @ w, n), zero, scale=1))


@theorem(of=[decoupled.scores, rope.rotate, rope.tables], sizes="one head, widths 1 and 4")
def relative():
    """With the shared part turned by RoPE scores do not change when all positions move."""
    q, p, k, r, w = symbols("q", 1, 1), symbols("p", 1, 4), symbols("k", 1, 1), symbols("r", 1, 4), symbols("w", 2)
    m, n, shift = symbol("m"), symbol("n"), symbol("shift")
    for layout in pairing.LAYOUTS:
        at = lambda x, position, layout=layout: rope.rotate(x, *rope.tables(array([position]), w), layout=layout)
        score = lambda m, n, at=at: decoupled.scores(q, at(p, m), k, at(r, n), scale=1)
        prove_equal(score(m + shift, n + shift), score(m, n), mention=[m, n])


@relative.control
def position_does_not_occur():
    """The turned part makes no difference."""
    q, p, k, r, w = symbols("q", 1, 1), symbols("p", 1, 2), symbols("k", 1, 1), symbols("r", 1, 2), symbols("w", 1)
    turned = rope.rotate(r, *rope.tables(array([symbol("n")]), w), layout="half")
    prove_equal(decoupled.scores(q, p, k, turned, scale=1), decoupled.scores(q, p, k, r, scale=1))


@theorem(of=[decoupled.attend], sizes="1 query, 2 keys, a mask; 4 heads that share 2; every path")
def pinned_attend():
    """attend averages values with the softmax of these scores, over the keys allowed; heads may share keys and values."""
    one, k, v, u = np.ones((4, 1, 1), dtype=int), np.array([[[1], [2]], [[7], [3]]]), symbols("v", 2, 2, 1), symbol("u")
    for _, out in all_paths(lambda: decoupled.attend(one, 0 * one, u * k, 0 * k[:1], v, scale=1)):
        weights = [softmax([u.e * x for x in k[a // 2, :, 0]]) for a in range(4)]
        prove_equal(out, [array([weights[a]]) @ v[a // 2] for a in range(4)], mention=[v[0, 0, 0], v[1, 1, 0]])
    q, p, k, r, v = symbols("q", 1, 1), symbols("p", 1, 1), symbols("k", 2, 1), symbols("r", 2, 1), symbols("v", 2, 1)
    scale = symbol("scale")
    for mask in (None, np.array([[True, False]]), np.array([[False, False]])):
        allowed = None if mask is None else mask[0]
        stated = softmax(rows(scale * (q @ k.T + p @ r.T))[0], allowed)
        for _, out in all_paths(lambda mask=mask: decoupled.attend(q, p, k, r, v, scale=scale, mask=mask)):
            prove_equal(out, array([stated]) @ v, mention=[scale] if mask is None else [])


@pinned_attend.control
def the_turned_part_is_left_out():
    """Attention by content alone."""
    q, p, k, r, v = symbols("q", 1, 1), symbols("p", 1, 1), symbols("k", 2, 1), symbols("r", 2, 1), symbols("v", 2, 1)
    for _, out in all_paths(lambda: decoupled.attend(q, p, k, r, v, scale=1)):
        prove_equal(out, array([softmax(rows(q @ k.T)[0])]) @ v)
