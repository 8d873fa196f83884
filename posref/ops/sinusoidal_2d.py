"""2-D sinusoids: what an implementation can be asked for, and how it goes wrong."""

import numpy as np

from posref.absolute import sinusoidal, sinusoidal_2d
from posref.ops import Mistake, instead, missing, result, using, with_words
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


MISTAKES = with_words(
    __name__,
    as_mae=_as("mae"),
    as_detr=_as("detr"),
    as_timm=_as("timm"),
    rows_and_columns_exchanged=using(coordinates=lambda a: a.coordinates[..., ::-1]),
    starts_at_one=using(coordinates=lambda a: a.coordinates + 1),
    frequencies_of_the_whole_width=instead(_of_the_whole_width),
    two_pi_left_out=using(matrix=lambda a: a.matrix / (2 * np.pi)),
    coordinates_from_0_to_1=using(coordinates=lambda a: (a.coordinates + 1) / 2),
    cosines_first=result(lambda y: np.roll(y, y.shape[-1] // 2, axis=-1)),
    sine_and_cosine_in_turn=result(lambda y: np.stack(np.split(y, 2, axis=-1), axis=-1).reshape(y.shape)),
    padding_counted=lambda f, a: f(mask=a.mask | True) if "coordinates" not in a else missing(),
    from_zero=result(lambda y: y - 1),
    divided_by_the_size=lambda f, a: 2 * np.pi * sinusoidal_2d.counted(a.mask) / np.array(a.mask.shape[-2:]),
)


def _moved(pixels):
    def wrong(f, a):
        counts = sinusoidal_2d.counted(a.mask)
        last = np.stack([counts[..., -1:, :, 0] + 0 * counts[..., 0], counts[..., -1:, 1] + 0 * counts[..., 1]], axis=-1)
        return f(**a) + 2 * np.pi * pixels / (last + 1e-6)

    return wrong


FURTHER = {
    f"half_a_pixel_{words}": Mistake(
        _moved(pixels),
        f"half a pixel is {done} the counts before they are divided{where}",
        "All places move by half a pixel: weights of DETR expect others.",
        "Divide the counts as they are.",
        only="normalized",
    )
    for words, pixels, done, where in (
        ("less", -0.5, "subtracted from", ", as Deformable DETR does"),
        ("more", 0.5, "added to", ""),
    )
} | with_words(
    __name__,
    in_turns=using(matrix=lambda a: 2 * np.pi * a.matrix),
)

PRESETS = {name: ("encode", sinusoidal_2d.PRESETS[name]) for name in sinusoidal_2d.PRESETS}

SCORES = {"added": ("one", "key", "query", "any")}


def _head(t):
    """Rows of eight."""
    coordinates = np.stack(np.divmod(t.positions, 8), axis=-1)
    return t.added(sinusoidal_2d.encode(coordinates, sinusoidal.frequencies(t.dim // 2), convention="mae"))
