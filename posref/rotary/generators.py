r"""Generators: RoPE over several axes by trained skew matrices, relative exactly if the matrices commute.

RoPE rotates each pair of features by one axis. LieRE, ComRoPE, STRING and RoPE-Mixed train the rotation: there is one skew
matrix per axis, and the rotation is the exponential of their weighted sum.

Also called: LieRE, ComRoPE, STRING, RoPE-Mixed, Lie algebra position encoding, golden gate RoPE.

Definition. A token at x = (x_1, .., x_A) and skew matrices S_1, .., S_A:

    q, k -> R(x) q, R(x) k     R(x) = exp(sum_a x_a S_a)
    R(x)^T R(y) = R(y - x) for all x, y   if and only if   S_a S_b = S_b S_a for all a, b

    LieRE         S_a = U_a - U_a^T, U_a any upper triangle: does not commute
    ComRoPE-AP    block b rotates with axis b mod A alone, by any skew block
    ComRoPE-LD    S_a = theta_a (P - P^T), in each block
    STRING        S_a = C_a - C_a^T with circulant C_a, or P R(x) P^T with P = (1 - S)(1 + S)^-1, S skew
    RoPE-Mixed    S_a has -w_at and w_at for pair t: pair t rotates by sum_a x_a w_at
                  at first w_t = f_t (cos phi, sin phi), then f_t (-sin phi, cos phi), phi one random angle per head

Symbols.

    coordinates (..., axes)         x
    generators (axes, d, d)         S
    matrices (..., d, d)            R(x), acting on column vectors
    matrix (..., d, d)              entries, of which the upper triangle is read
    row (..., d)                    the first row of C
    blocks (count, size, size)      skew blocks of ComRoPE-AP
    frequencies (axes, pairs)       w of RoPE-Mixed; in `mixed` f, `rope.frequencies(d // 2, 10.0)`
    phi (...)                       in radians, one per head and layer

Conventions. exp is the series of a matrix halved `halvings` times, cut after `terms`, and squared back: 18 terms are exact in
float64 for entries whose rows sum to 1 after the halvings. In P R(x) P^T the left factor P cancels in q.k, and the right factor
can be merged into the projections: STRING with Cayley's P is RoPE-Mixed with other weights. With phi = 0 RoPE-Mixed begins as
RoPE of two axes, columns first.

Example. Two axes; a pair rotates by x_1 and by half of x_2.

>>> S = planes(np.array([[1.0], [0.5]]), layout="half")
>>> exponential(np.array([[0, 0], [1, 0], [0, 2]]), S, terms=18, halvings=1)[:, 0].round(4)
array([[ 1.    ,  0.    ],
       [ 0.5403, -0.8415],
       [ 0.5403, -0.8415]])

Where implementations differ.

    what | who | value | version | source
    entries | LieRE's code | uniform in (0, 2 pi), less 0.5, which U - U^T cancels | b27b41ba0d | model.py
    coordinates | LieRE's code | linspace(0, n / n_train, n): steps of 1/(n - 1); CLS is not rotated | b27b41ba0d | model.py
    coordinates | ComRoPE's code | (i + 0.5) / n, and 0.5 for CLS | 7aeef083f8 | model.py
    LieRE in it | ComRoPE's code | a full P for each axis instead of blocks | 7aeef083f8 | model.py
    coordinates | RoPE-Mixed's code | integers at every resolution, columns first; CLS is not rotated | ce85c2e56c
      | rope-vit models/vit_rope.py
    base of f | RoPE-Mixed's code | 10, and 100 in its RoPE of two axes | ce85c2e56c | rope-vit models/vit_rope.py
    frequencies | golden gate RoPE | `planes` of m_t u_ht: a geometric series m, and a direction u per head and pair from a
      sequence that fills the sphere evenly | July 2025 | jerryxio.ng/posts/nd-rope
    frequencies | Falcon-Perception | golden gate RoPE on the second half of a head, read from the weights; the first half
      rotates by the place in the text | 627e10a817 | falcon_perception/rope.py
    coordinates | Falcon-Perception | rows, columns; columns from -sqrt(W / H) to sqrt(W / H), text 0 | 627e10a817
      | falcon_perception/data.py
    grid | timm | must be 'xy' to agree; 'ij' exchanges the axes | 1.0.31 | pos_embed_sincos.py get_mixed_freqs

References. Ostmeier et al., LieRE, arXiv 2406.10322; Yu et al., ComRoPE, arXiv 2506.03737; Schenck et al., STRING, arXiv
2502.02562; Heo et al., RoPE-Mixed, arXiv 2403.13298.
"""

import numpy as np

from posref import _require, pairing
from posref._contract import Array, Count, Numbers, Signed, contract, kept
from posref.pairing import Layout


@contract
def skew(matrix: Signed[Array, "... d d"]) -> Numbers[Array, "... d d"]:
    """U - U^T, U = `matrix` above the diagonal, else 0, as in LieRE: shape of `matrix`. ComRoPE has P - P^T of all of P.

    >>> skew(np.array([[9.0, 2.0], [5.0, 9.0]]))
    array([[ 0.,  2.],
           [-2.,  0.]])
    """
    i = np.arange(matrix.shape[-1])
    upper = (i[:, None] < i) * matrix
    return upper - np.swapaxes(upper, -1, -2)


@contract
def circulant(row: Signed[Array, "... d"]) -> Numbers[Array, "... d d"]:
    """C - C^T with C_ij = c_{(j - i) mod d}: `(..., d, d)`. STRING, section 3.2.

    >>> circulant(np.array([7.0, 1.0, 0.0]))
    array([[ 0.,  1., -1.],
           [-1.,  0.,  1.],
           [ 1., -1.,  0.]])
    """
    i = np.arange(row.shape[-1])
    c = row[..., (i - i[:, None]) % row.shape[-1]]
    return c - np.swapaxes(c, -1, -2)


@contract
def partition(blocks: Numbers[Array, "count size size", kept], axes: Count) -> Numbers[Array, "axes count*size count*size"]:
    """Block b on the diagonal of the generator of axis b mod A, zeros elsewhere: `(axes, count size, count size)`. ComRoPE-AP.

    >>> partition(np.array([[[5.0]], [[6.0]]]), 2)
    array([[[5., 0.],
            [0., 0.]],
    <BLANKLINE>
           [[0., 0.],
            [0., 6.]]])
    """
    count, size = blocks.shape[:2]
    made = np.zeros_like(blocks, shape=(axes, count * size, count * size))
    for b in range(count):
        made[b % axes, b * size : (b + 1) * size, b * size : (b + 1) * size] = blocks[b]
    return made


@contract
def planes(frequencies: Signed[Array, "axes pairs"], *, layout: Layout) -> Numbers[Array, "axes 2*pairs 2*pairs"]:
    """The generators of RoPE-Mixed: w_at rotates pair t counter-clockwise: `(axes, 2 pairs, 2 pairs)`.

    >>> planes(np.array([[3.0]]), layout="half")
    array([[[ 0., -3.],
            [ 3.,  0.]]])
    """
    axes, pairs = frequencies.shape
    a, b = pairing.indices(2 * pairs, layout)
    made = np.zeros_like(frequencies, shape=(axes, 2 * pairs, 2 * pairs))
    made[:, a, b], made[:, b, a] = -frequencies, frequencies
    return made


@contract
def mixed(frequencies: Numbers[Array, "pairs"], phi: Signed[Array, "..."]) -> Numbers[Array, "... 2 2*pairs"]:
    """RoPE-Mixed's w before training: half of the pairs read direction `phi`, the other half its normal: `(..., 2, 2 pairs)`.

    >>> mixed(np.array([1.0, 0.1]), np.array(0.0))
    array([[ 1. ,  0.1, -0. , -0. ],
           [ 0. ,  0. ,  1. ,  0.1]])
    """
    along, across = np.cos(phi[..., None]) * frequencies, np.sin(phi[..., None]) * frequencies
    columns, rows = np.concatenate([along, -across], axis=-1), np.concatenate([across, along], axis=-1)
    return np.stack([columns, rows], axis=-2)


@contract
def cayley(skew: Numbers[Array, "... d d"]) -> Numbers[Array, "... d d"]:
    """P = (1 - S)(1 + S)^-1, orthogonal for a skew S: `(..., d, d)`. STRING, section 3.2.

    By elimination: 1 + S keeps a positive part at every step, so that no rows need to be exchanged. Computed in float64.

    >>> cayley(np.array([[0.0, 1.0], [-1.0, 0.0]]))
    array([[ 0., -1.],
           [ 1.,  0.]])
    """
    i = np.arange(skew.shape[-1])
    one = 1 * (i[:, None] == i)
    left, right = one + skew, one - skew  # which commute, so that (1 + S)^-1 may come first
    for t in i:
        factor = (left[..., :, t] - one[t]) / left[..., t, t, None]
        left, right = (m - factor[..., None] * m[..., None, t, :] for m in (left, right))
    return right


@contract
def commutators(generators: Signed[Array, "axes d d"]) -> Numbers[Array, "axes axes d d"]:
    """S_a S_b - S_b S_a for all pairs of axes: `(axes, axes, d, d)`. R is relative if and only if all are 0.

    >>> commutators(skew(np.array([[[0, 1, 0], [0, 0, 0], [0, 0, 0]], [[0, 0, 0], [0, 0, 1], [0, 0, 0]]])))[0, 1]
    array([[ 0,  0,  1],
           [ 0,  0,  0],
           [-1,  0,  0]])
    """
    first, second = generators[:, None], generators[None]
    return first @ second - second @ first


@contract
def exponential(
    coordinates: Numbers[Array, "... axes"],
    generators: Numbers[Array, "axes d d"],
    *,
    terms: Count,
    halvings: Count,
) -> Numbers[Array, "... d d"]:
    """R(x) = exp(sum_a x_a S_a): `(..., d, d)`. ValueError if `halvings` are too few for a short series.

    Computed in float64.

    >>> exponential(np.array([np.pi]), np.array([[[0.0, -1.0], [1.0, 0.0]]]), terms=18, halvings=2).round(4) + 0.0
    array([[-1.,  0.],
           [ 0., -1.]])
    """
    s = (coordinates[..., None, None] * generators).sum(axis=-3) / 2**halvings
    _require.halved("generators.exponential", s)
    i = np.arange(s.shape[-1])
    turn = one = 1 * (i[:, None] == i)
    for n in range(terms, 0, -1):
        turn = one + s @ turn / n
    for _ in range(halvings):
        turn = turn @ turn
    return turn
