"""Conformance checks and diagnosis of somebody else's implementation.

    report = check_rope(fn, dim=64, base=10000.0, layout="half", to=torch.from_numpy)
    assert report.ok, report

`diagnose(case, output)` does the same for an output that was dumped by another program, `load_output` reads the dump,
`aliases()` is the table of what each framework calls the layouts.
"""

from posref.check.frameworks import aliases
from posref.check.golden import diagnose
from posref.check.report import Check, Finding, Precision, Report
from posref.check.rope import check_rope
from posref.check.tensors import load_output

__all__ = ["Check", "Finding", "Precision", "Report", "aliases", "check_rope", "diagnose", "load_output"]
