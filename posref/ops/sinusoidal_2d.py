"""2-D sinusoids: the functions to check, and the mistakes that implementations make."""

import numpy as np

from posref.absolute import sinusoidal, sinusoidal_2d
from posref.ops import Mistake, instead, missing, result, using
from posref.ops.probe import painted


def encode(coordinates, *, dim, base=10000.0, convention):
    return sinusoidal_2d.encode(coordinates, sinusoidal.frequencies(dim // 2, base), convention=convention)


fourier = sinusoidal_2d.fourier
counted = sinusoidal_2d.counted


def normalized(mask):
    return sinusoidal_2d.normalized(sinusoidal_2d.counted(mask))


TAGS = dict.fromkeys(("counted", "normalized"), "padding")


ARRAYS = {
    "coordinates": lambda s: np.stack(np.divmod(np.arange(s.n_key), 3), axis=-1),
    "matrix": lambda s: painted((2, 4), 1),
    "mask": lambda s: np.arange(4)[:, None] + 0 * np.arange(5) < 3 + 2 * (np.arange(5) < 2),
}


def _as(convention):
    return using(convention=lambda a: convention if a.convention != convention else missing())


def _of_the_whole_width(coordinates, dim, base, convention):
    return sinusoidal_2d.encode(coordinates, sinusoidal.frequencies(dim, base)[: dim // 4], convention=convention)


MISTAKES = {
    "as_mae": Mistake(_as("mae")).words("""
        the features are in MAE's order: columns first, sines before cosines
        A permutation of features: harmless in training, wrong with somebody's weights.
        Permute the features, or the projection that reads them."""),
    "as_detr": Mistake(_as("detr")).words("""
        the features are in DETR's order: rows first, sine and cosine in turn
        A permutation of features: harmless in training, wrong with somebody's weights.
        Permute the features, or the projection that reads them."""),
    "as_timm": Mistake(_as("timm")).words("""
        the features are in timm's order: sines of both axes first
        A permutation of features: harmless in training, wrong with somebody's weights.
        Permute the features, or the projection that reads them."""),
    "rows_and_columns_exchanged": Mistake(using(coordinates=lambda a: a.coordinates[..., ::-1])).words("""
        rows and columns are exchanged
        Images are transposed.
        In MAE the first half is the column, in DETR and timm the row; SAM's points are (column, row)."""),
    "starts_at_one": Mistake(using(coordinates=lambda a: a.coordinates + 1), only="encode")
    .words("""
        patches are counted from 1, as DETR counts pixels
        Every patch has its diagonal neighbour's place.
        MAE and timm count from 0.""")
    .where("""convention=detr
        1 is added to the coordinates
        Every pixel has its diagonal neighbour's place.
        Use the coordinates as given: DETR's count from 1 is made where they are made."""),
    "frequencies_of_the_whole_width": Mistake(instead(_of_the_whole_width)).words("""
        10000^(-2t / D): the width D of both axes is taken for that of one
        The slow half of the waves is missing.
        Each axis has D/2 features: 10000^(-4t / D)."""),
    "two_pi_left_out": Mistake(using(matrix=lambda a: a.matrix / (2 * np.pi)), only="fourier").words("""
        B / (2 pi): a stored matrix that counts turns is read as radians
        All waves are 6.28 times too slow: neighbouring points look alike.
        Multiply SAM's matrix by 2 pi."""),
    "coordinates_from_0_to_1": Mistake(using(coordinates=lambda a: (a.coordinates + 1) / 2), only="fourier").words("""
        the coordinates run from 0 to 1 where they should run from -1 to 1
        Every point has another place, and points are half as far apart.
        Take 2 c - 1."""),
    "cosines_first": Mistake(result(lambda y: np.roll(y, y.shape[-1] // 2, axis=-1)), only="fourier").words("""
        the cosines stand before the sines
        A permutation of features: harmless in training, wrong with somebody's weights.
        Sines first."""),
    "sine_and_cosine_in_turn": Mistake(
        result(lambda y: np.stack(np.split(y, 2, axis=-1), axis=-1).reshape(y.shape)), only="fourier"
    ).words("""
        sine and cosine of a pair stand beside each other
        A permutation of features: harmless in training, wrong with somebody's weights.
        All sines, then all cosines."""),
    "padding_counted": Mistake(
        lambda f, a: f(mask=a.mask | True) if "coordinates" not in a else missing(), only="counted normalized"
    ).words("""
        padding is counted: the mask is not read
        A padded image has other places than the same image alone.
        Sum up the mask."""),
    "from_zero": Mistake(result(lambda y: y - 1), only="counted").words("""
        pixels are counted from 0: one is subtracted
        Every pixel has its neighbour's place.
        The sum includes the pixel itself."""),
    "divided_by_the_size": Mistake(
        lambda f, a: 2 * np.pi * sinusoidal_2d.counted(a.mask) / np.array(a.mask.shape[-2:]), only="normalized"
    ).words("""
        the counts are divided by height and width of the padded image
        A padded image is squeezed.
        Divide by the last count."""),
}


def _measured(pixels=0.0, eps=1e-6):
    def wrong(f, a):
        counts = sinusoidal_2d.counted(a.mask)
        last = np.stack([counts[..., -1:, :, 0] + 0 * counts[..., 0], counts[..., -1:, 1] + 0 * counts[..., 1]], axis=-1)
        return 2 * np.pi * (counts + pixels) / (last + eps)

    return wrong


FURTHER = (
    {
        f"half_a_pixel_{words}": Mistake(_measured(pixels), only="normalized").words(f"""
        half a pixel is {done} the counts before they are divided{where}
        All places move by half a pixel: weights of DETR expect others.
        Divide the counts as they are.""")
        for words, pixels, done, where in (
            ("less", -0.5, "subtracted from", ", as Deformable DETR does"),
            ("more", 0.5, "added to", ""),
        )
    }
    | {
        f"eps_{eps:g}": Mistake(_measured(eps=eps), only="normalized").words(f"""
        the counts are divided by the last count plus {eps:g} instead of plus 1e-06
        The last place falls short of 2 pi.
        Add 1e-6, as DETR does.""")
        for eps in (1, 1e-3, 1e-4, 1e-5)
    }
    | {
        "in_turns": Mistake(using(matrix=lambda a: 2 * np.pi * a.matrix), only="fourier").words("""
        the angles are multiplied by 2 pi
        All features are 2 pi times as fast.
        Multiply by 2 pi where the matrix is made or where it is used, as the model does: not in both places.""")
    }
)

PRESETS = {name: ("encode", sinusoidal_2d.PRESETS[name]) for name in sinusoidal_2d.PRESETS}

SCORES = {"added": ("one", "key", "query", "any")}


def _head(t):
    """Words in rows of eight."""
    coordinates = np.stack(np.divmod(t.positions, 8), axis=-1)
    return t.added(sinusoidal_2d.encode(coordinates, sinusoidal.frequencies(t.dim // 2), convention="mae"))
