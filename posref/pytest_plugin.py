"""pytest plugin: the fixture `posref_check` fails a test with the report of a check. It is installed with posref.

def test_bias(posref_check):
    posref_check(my_bias, "alibi.bias", heads=12, form="signed")

def test_rotation(posref_check):
    posref_check(my_rope, "rope", dim=64, layout="half", to=torch.from_numpy)
"""

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def posref_check(record_property: Callable[[str, object], None]) -> Callable[..., Any]:
    """`posref.check.check`: returns its report, or fails the test with the report and without a traceback.

    Questions that the data left open become properties of the test, which `--junit-xml` writes.
    """

    def asked(fn: Callable[..., Any], name: Any = None, **options: Any) -> Any:
        from posref.check import check  # tests without a check need not wait for it

        report = check(fn, name, **options)
        if report.ambiguous:
            record_property("posref undecided", "; ".join(report.ambiguous))
        if not report.ok:
            pytest.fail(str(report), pytrace=False)
        return report

    return asked
