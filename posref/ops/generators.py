"""Generators: the functions to check, and the mistakes that implementations make."""

import numpy as np

from posref.ops import Mistake, instead, layers, result, using
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


MISTAKES = {
    "lower_triangle": Mistake(using(matrix=lambda a: np.swapaxes(a.matrix, -1, -2))).words("""
        L - L^T: the entries below the diagonal are read
        Other generators.
        U - U^T with the entries above it."""),
    "whole_matrix": Mistake(instead(lambda matrix: matrix - np.swapaxes(matrix, -1, -2))).words("""
        P - P^T: both triangles are read
        Skew too: other generators.
        The upper triangle alone."""),
    "symmetric": Mistake(instead(lambda matrix: np.triu(matrix, 1) + np.swapaxes(np.triu(matrix, 1), -1, -2))).words("""
        U + U^T: the matrix is symmetric instead of skew
        Lengths are not kept.
        Subtract the transpose."""),
    "turned_back": Mistake(result(lambda y: np.swapaxes(y, -1, -2)), only="circulant planes cayley").words("""
        the transpose: rows and columns are exchanged
        Everything turns backwards.
        Matrices act on column vectors."""),
    "blocks_in_runs": Mistake(
        result(
            lambda y, a: np.stack(
                [
                    np.where(
                        (np.arange(y.shape[-1]) // a.blocks.shape[1] * a.count // len(a.blocks) == i)[:, None], y.sum(axis=0), 0
                    )
                    for i in range(a.count)
                ]
            )
        ),
        only="partition",
    ).words("""
        blocks are assigned to the axes in runs: the first blocks belong to the first axis
        Blocks turn with another axis.
        Block b turns with axis b mod A."""),
    "half_of_the_matrix": Mistake(using(matrix=lambda a: a.matrix / 2), only="cayley").words("""
        (1 - S/2)(1 + S/2)^-1: Cayley's approximation of exp(-S) in place of Cayley's map
        Orthogonal too: another basis, which a checkpoint does not have.
        S as it is."""),
    "no_normal": Mistake(result(lambda y: np.concatenate([y[..., : y.shape[-1] // 2]] * 2, axis=-1)), only="mixed").words("""
        both halves of the pairs use the same direction: the second half lacks its quarter turn
        Patches along the normal have no position before training.
        cos(phi + pi/2), sin(phi + pi/2) for the second half."""),
    "quarter_turn_back": Mistake(result(lambda y: y * np.repeat([1, -1], y.shape[-1] // 2)), only="mixed").words("""
        cos(phi - pi/2), sin(phi - pi/2): the normal points to the other side
        The second half turns backwards.
        Add the quarter turn."""),
    "rows_first": Mistake(result(lambda y: y[..., ::-1, :]), only="mixed").words("""
        the row is multiplied by cos phi: the axes of the frequencies are exchanged
        With phi = 0 the first half turns by the row.
        The first axis is the column."""),
    "axes_exchanged": Mistake(using(coordinates=lambda a: a.coordinates[..., ::-1])).words("""
        rows and columns of the grid are exchanged ('ij' for 'xy')
        Right on the diagonal of a square.
        Columns first."""),
    "backwards": Mistake(using(coordinates=lambda a: -a.coordinates)).words("""
        R(-x): vectors are multiplied from the left instead of the right
        The scores of queries and keys are exchanged.
        R(x) acts on column vectors."""),
    "one_after_the_other": Mistake(instead(_one_after_the_other)).words("""
        exp(x_2 S_2) exp(x_1 S_1): the axes rotate one after the other
        Right if the generators commute.
        Add, then take the exponential."""),
    "first_order": Mistake(using(terms=1)).words("""
        1 + S, squared back: the series is cut after its first order
        Lengths grow with the distance.
        18 terms, and halve until the rows sum to 1."""),
}

SCORES = "positions of more than one axis, rotated in planes of their own; on one axis it is RoPE"


def _head(t):
    coordinates = np.stack(np.divmod(t.positions, 8), axis=-1)  # rows of 8
    angles = coordinates @ t.parameter(2, t.dim // 2)  # what generators.planes turn by
    q, k, v = t.projected(t.x)
    return t.attended(*(rope.rotate(y, np.cos(angles), np.sin(angles), layout=layers.LAYOUT) for y in (q, k)), v)
