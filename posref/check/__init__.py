"""Check: does an implementation compute what it should, and if not, what does it compute?

    check_rope(fn, dim=64, base=10000.0, layout="half", to=torch.from_numpy).require()
    check(fn, "alibi.bias", heads=12, form="signed").require()
    check(fn, preset="bloom_176b").require()

`fn` gets the arrays of `contract(op)`, for `check_rope` x `(batch, heads, n, dim)` and integer positions `(batch, n)`, and
returns the result. The report, which `require` raises if a check failed, says "your output equals rope.rotate with
layout="interleaved"; you asked for layout="half"", what to change, and what this data cannot distinguish. `diagnose(case,
output)` does the same for an output that another program computed from a golden case, `load_output` reads its file, and
`aliases()` is the table of what each framework calls the layouts.

`implementation` calls somebody's function (`call`) at a first probe, then in the `stages`: a second time and with other
strides (`repeated_calls`), at other `shapes` and `positions`, with other contents (`inputs`), for its `gradients`, and at what
a seed draws (`seeded`); `golden` reads a golden case. `verdict` holds the output against the right answer and every mistake of
`posref.ops` (`engine`) within bounds that are derived by running formulas on numbers with error (`ranged`), says where it is
wrong (`wrong_elements`), tries other numbers in the place of its settings (`other_settings`), and what can go wrong with any
array (`general`). What is known of RoPE alone stands in `rotary`: its own words (`rotation`), what the phases say where no
list has the mistake (`phases`), known `schedules`, what a rotation keeps (`invariants`), and how right angles were made
(`angles`). Stages look for the tags of an op, never for its name. `cache` asks a cache call by call.
A mistake is claimed only if the right answer leaves its bound and the mistake stays within it.
"""

from posref.check.cache import check_cache
from posref.check.frameworks import aliases
from posref.check.golden import diagnose
from posref.check.implementation import check, contract
from posref.check.report import Check, Finding, Precision, Report
from posref.check.rotary.rotation import check_rope
from posref.check.tensors import load_output

__all__ = [
    "Check",
    "Finding",
    "Precision",
    "Report",
    "aliases",
    "check",
    "check_cache",
    "check_rope",
    "contract",
    "diagnose",
    "load_output",
]
