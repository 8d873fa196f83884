"""2-D sinusoids: values of the official code, counts with padding, refused conventions."""

import numpy as np
import pytest

from posref.absolute import sinusoidal, sinusoidal_2d

W = sinusoidal.frequencies(4)


def sums(values):
    """The sum of all entries, and of each times (1 + n mod 13) / 16."""
    n = np.arange(np.size(values))
    return [np.sum(values), np.sum(np.ravel(values) * (1 + n % 13) / 16)]


def test_values_of_mae():
    """mae efb2a8062c, util/pos_embed.py: 8 features, 3 x 3 patches, [CLS] in front."""
    grid = np.array([*np.ndindex(3, 3)])
    got = np.concatenate([np.zeros((1, 8)), sinusoidal_2d.encode(grid, W, convention="mae")])
    np.testing.assert_allclose(sums(got), [35.4280343284, 15.9402319762], rtol=1e-11)


def test_values_of_detr():
    """detr 29901c51d7, models/position_encoding.py: 4 features an axis, 2 x 3 pixels in 3 x 4, features first."""
    counts = sinusoidal_2d.counted(np.arange(3)[:, None] + 4 * (np.arange(4) > 2) < 2)
    for at, expected in (
        (counts, [38.7849019129, 16.0222602433]),
        (sinusoidal_2d.normalized(counts), [36.824345642, 15.6580252513]),
    ):
        got = np.moveaxis(sinusoidal_2d.encode(at, W, convention="detr"), -1, 0)
        np.testing.assert_allclose(sums(got), expected, rtol=1e-10)


def test_each_axis_is_a_sinusoid():
    got = sinusoidal_2d.encode(np.array([[3, 40]]), W, convention="mae")[0]
    assert got[:4].tolist() == sinusoidal.encode(np.array(40), W, layout="half").tolist()
    assert got[4:].tolist() == sinusoidal.encode(np.array(3), W, layout="half").tolist()


def test_an_image_of_padding_has_places_all_the_same():
    counts = sinusoidal_2d.counted(np.zeros((2, 3), bool))
    assert not counts.any()
    assert not sinusoidal_2d.normalized(counts).any()


def test_refused():
    with pytest.raises(ValueError, match="convention is 'moco', expected one of"):
        sinusoidal_2d.encode(np.array([[0, 0]]), W, convention="moco")
    with pytest.raises(ValueError, match="coordinates has shape"):
        sinusoidal_2d.encode(np.array([[0, 0, 0]]), W, convention="mae")
