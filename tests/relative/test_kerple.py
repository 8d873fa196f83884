"""KERPLE: what the body refuses. Released numbers are in tests/test_spot_values.py."""

from posref.relative import kerple
from tests.refused import refused

test_refused = refused(
    vars(kerple),
    r"""
    bias(a(0), a(0), a(0.75, 1.5), a(0.5, -0.25), form="log") | kerple\.bias: a runs from -0\.25 to 0\.5, expected 0 or more
    bias(a(0), a(0), a(3.0, 0.75), a(0.5, 0.25), form="power") | kerple\.bias: p runs from 0\.75 to 3\.0, expected 0 \.\. 2
    bias(a(0), a(0), a(0.0, 1.0), a(0.5, 0.25), form="log") | p runs from 0\.0 to 1\.0, expected positive numbers
    bias(a(0), a(0), a(0.0, 1.0), a(0.5, 0.25), form="power") | p runs from 0\.0 to 1\.0, expected positive numbers
    """,
)
