"""RoPE over several axes: V-JEPA 2 is no rotation, and what the body refuses."""

import numpy as np

from posref.rotary import axes, rope
from tests.refused import refused


def test_vjepa2_is_no_rotation():
    """d = 20, frequencies of base 10000: lengths change by up to 41 percent of their square, offsets are not seen."""
    w = rope.frequencies(20)

    def matrix(m):
        return axes.rotate_vjepa2(np.eye(20), *rope.tables(np.array([m]), w), convention="released").T

    gram = matrix(5).T @ matrix(5)
    assert f"{np.abs(gram - np.eye(20)).max():.2f}" == "0.41"
    assert f"{np.abs(matrix(5).T @ matrix(9) - matrix(4)).max():.2f}" == "1.70"


test_refused = refused(
    vars(axes),
    r"""
    angles(np.zeros((5, 2)), np.ones(4), a(0, 1, 2, 0)) | axis .*2 .*(2 rows|2 axes)
    angles(np.zeros((5, 2)), np.ones(4), a(0, 1, -1, 0)) | axis .*-1
    sections(a(1, 0)) | sizes are \[1, 0\], expected at least one pair an axis .mrope_section
    grid(3, 4, merge=2) | 3 x 4 patches are no whole squares of 2 x 2
    """,
)
