"""What is overwritten while it is still read has a name: half of a rotation, or of waves, over what the other half needs."""

import numpy as np

from posref.absolute import sinusoidal
from posref.check import check
from posref.ops import further, names, system
from posref.ops.variation import steps
from posref.rotary import rope
from tests.every import every

COLUMNS = {"half": (slice(0, 8), slice(8, 16)), "interleaved": (slice(0, None, 2), slice(1, None, 2))}
PLACES = COLUMNS | {"interleaved_to_half": (slice(0, 8), slice(8, 16))}
THETA = 10000.0 ** (-np.arange(8) / 8)


def waves_in_place(positions, angles, written, order, read=(0, 1)):
    """`order` are waves and the half that each is written to, one after the other, into the array of the angles."""
    y = np.empty((*positions.shape, 16))
    for columns in COLUMNS[angles]:
        y[..., columns] = positions[..., None] * THETA
    for (wave, half), member in zip(order, read, strict=True):
        y[..., COLUMNS[written][half]] = wave(y[..., COLUMNS[angles][member]])
    return y


def turned_in_place(x, angle, layout, order=(0, 1)):
    y, (a, b) = np.array(x, dtype=float), COLUMNS[layout.partition("_to_")[0]]
    for half in order:
        cos, sin = np.cos(angle), np.sin(angle)
        y[..., PLACES[layout][half]] = y[..., b] * cos + y[..., a] * sin if half else y[..., a] * cos - y[..., b] * sin
    return y


def of_both_axes(coordinates):
    """MAE's halves, of columns and of rows, each overwritten."""
    halves = [waves_in_place(coordinates[:, i], "half", "half", [(np.sin, 0), (np.cos, 1)], (0, 0)) for i in (1, 0)]
    return np.concatenate(halves, axis=-1)


def at(positions):
    return positions[:, None, :, None] * THETA


SIN_COS, COS_SIN = [(np.sin, 0), (np.cos, 1)], [(np.cos, 0), (np.sin, 1)]
WAVES = [  # of the sinusoid: layout, order, and how the array of the angles is overwritten
    ("half", "sin_cos", ("interleaved", "half", SIN_COS), "sines_over_angles_apart"),
    ("interleaved", "sin_cos", ("half", "interleaved", SIN_COS[::-1], (1, 0)), "cosines_over_angles_apart"),
    ("half", "cos_sin", ("interleaved", "half", COS_SIN), "cosines_over_angles_apart"),
    ("interleaved", "sin_cos", ("interleaved", "interleaved", SIN_COS, (0, 0)), "sines_over_angles"),
    ("half", "cos_sin", ("half", "half", COS_SIN, (0, 0)), "cosines_over_angles"),
    ("half", "sin_cos", ("half", "half", SIN_COS), None),
]
TURNED = {"dim": 16, "layout": "half"}
AXES = TURNED | {"axis": [0, 0, 1, 1, 0, 0, 1, 1], "frequencies": THETA}


def scores_in_place(q, k, i, j):
    return turned_in_place(q, at(i), "half", (1, 0)) @ turned_in_place(k, at(j), "half", (1, 0)).swapaxes(-1, -2) / 4


OVERWRITTEN = [
    *[
        ("sinusoidal.encode", {"dim": 16, "layout": layout, "order": order}, lambda p, how=how: waves_in_place(p, *how), name)
        for layout, order, how, name in WAVES
    ],
    ("sinusoidal_2d.encode", {"dim": 32, "convention": "mae"}, of_both_axes, "sines_over_angles"),
    (
        "rope.rotate",
        TURNED | {"layout": "interleaved_to_half"},
        lambda x, p: turned_in_place(x, at(p), "interleaved_to_half"),
        "in_place",
    ),
    ("rope.rotate", TURNED, lambda x, p: turned_in_place(x, at(p), "half", (1, 0)), "in_place_second_first"),
    ("rope.scores", TURNED | {"scale": 0.25, "heads": 4, "key_heads": 4}, scores_in_place, "in_place_second_first"),
    ("axes.rotate", AXES, lambda x, c: turned_in_place(x, c[..., AXES["axis"]] * THETA, "half"), "in_place"),
]


@every(OVERWRITTEN)
def test_what_is_overwritten_while_it_is_read_is_named(name, asked, fn, mistake):
    report = check(fn, name, **asked)
    assert [each.name for each in report.diagnosis] == [mistake] * (mistake is not None), str(report)
    assert report.ok == (mistake is None)


def test_every_op_that_writes_pairs_may_overwrite_them():
    steps_of = {"in_place": rope.rotate, "sines_over_angles": sinusoidal.encode}
    asked = [each for name in names() for each in system(name).values()]
    for mistake, step in steps_of.items():
        those = [each for each in asked if step in steps(each.spec)]
        assert len(those) > 3
        assert [each.name for each in those if mistake not in {**each.mistakes, **further(each)}] == []
