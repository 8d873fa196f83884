"""2-D sinusoids: values of the official code, counts with padding, refused conventions."""

import numpy as np
import pytest

from posref.absolute import sinusoidal, sinusoidal_2d

W = sinusoidal.frequencies(4)


def test_an_image_of_padding_has_places_all_the_same():
    counts = sinusoidal_2d.counted(np.zeros((2, 3), bool))
    assert not counts.any()
    assert not sinusoidal_2d.normalized(counts).any()


def test_refused():
    with pytest.raises(ValueError, match="convention is 'moco', expected one of"):
        sinusoidal_2d.encode(np.array([[0, 0]]), W, convention="moco")
    with pytest.raises(ValueError, match="coordinates has shape"):
        sinusoidal_2d.encode(np.array([[0, 0, 0]]), W, convention="mae")
