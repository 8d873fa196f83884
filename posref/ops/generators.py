"""Generators: what an implementation can be asked for, and how it goes wrong."""

import numpy as np

from posref.ops import instead, layers, result, using, with_words
from posref.ops.probe import painted
from posref.rotary import generators, rope

skew = generators.skew
circulant = generators.circulant


def partition(blocks, *, count):
    return generators.partition(blocks, count)


planes = generators.planes


def mixed(magnitudes, phi):
    return generators.mixed(magnitudes, phi)


def cayley(matrix):
    return generators.cayley(generators.skew(matrix))


def turn(x, coordinates, matrices, *, terms=18, halvings=6):
    turns = generators.exponential(coordinates, generators.skew(matrices), terms=terms, halvings=halvings)
    return (turns @ x[..., None])[..., 0]


ARRAYS = {
    "matrix": lambda s: painted((2, 4, 4), 1),
    "row": lambda s: painted((2, 5), 2),
    "blocks": lambda s: painted((3, 2, 2), 4),
    "frequencies": lambda s: painted((2, 3), 6),
    "x": lambda s: painted((s.n_key, 4), 1),
    "magnitudes": lambda s: np.abs(painted((3,), 6)),
    "phi": lambda s: painted((s.heads,), 9),
    "coordinates": lambda s: painted((s.n_key, 2), 2),
    "matrices": lambda s: painted((2, 4, 4), 4),
}


def _one_after_the_other(x, coordinates, matrices, terms, halvings):
    for a in range(matrices.shape[0]):
        x = turn(x, coordinates[..., a : a + 1], matrices[a : a + 1], terms=terms, halvings=halvings)
    return x


MISTAKES = with_words(
    __name__,
    lower_triangle=using(matrix=lambda a: np.swapaxes(a.matrix, -1, -2)),
    whole_matrix=instead(lambda matrix: matrix - np.swapaxes(matrix, -1, -2)),
    symmetric=instead(lambda matrix: np.triu(matrix, 1) + np.swapaxes(np.triu(matrix, 1), -1, -2)),
    turned_back=result(lambda y: np.swapaxes(y, -1, -2)),
    blocks_in_runs=result(
        lambda y, a: np.stack(
            [
                np.where(
                    (np.arange(y.shape[-1]) // a.blocks.shape[1] * a.count // len(a.blocks) == i)[:, None], y.sum(axis=0), 0
                )
                for i in range(a.count)
            ]
        )
    ),
    half_of_the_matrix=using(matrix=lambda a: a.matrix / 2),
    no_normal=result(lambda y: np.concatenate([y[..., : y.shape[-1] // 2]] * 2, axis=-1)),
    quarter_turn_back=result(lambda y: y * np.repeat([1, -1], y.shape[-1] // 2)),
    rows_first=result(lambda y: y[..., ::-1, :]),
    axes_exchanged=using(coordinates=lambda a: a.coordinates[..., ::-1]),
    backwards=using(coordinates=lambda a: -a.coordinates),
    one_after_the_other=instead(_one_after_the_other),
    first_order=using(terms=1),
)

SCORES = "positions of more than one axis, turned in planes of their own; on one axis it is RoPE"


def _head(t):
    coordinates = np.stack(np.divmod(t.positions, 8), axis=-1)  # rows of 8
    angles = coordinates @ t.parameter(2, t.dim // 2)  # what generators.planes turn by
    q, k, v = t.projected(t.x)
    return t.attended(*(rope.rotate(y, np.cos(angles), np.sin(angles), layout=layers.LAYOUT) for y in (q, k)), v)
