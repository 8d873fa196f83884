"""Check: does an implementation compute what it should, and if not, what does it compute?

    check_rope(fn, dim=64, base=10000.0, layout="half", to=torch.from_numpy).require()
    check(fn, "alibi.bias", heads=12, form="signed").require()
    check(fn, preset="bloom_176b").require()

`fn` gets the arrays of `contract(op)` and returns the result; for `check_rope` these are x `(batch, heads, n, dim)` and integer
positions `(batch, n)`. The report says, for example, "your output equals rope.rotate with layout="interleaved"; you asked for
layout="half"", then what to change and what this data cannot distinguish; `require` raises it if a check failed.
`diagnose(case, output)` does the same for an output that another program computed from a golden case, and `load_output` reads
its file. `aliases()` is the table of what each framework calls the layouts.

`implementation` calls somebody's function (`call`) at a first probe. If that output is right, the `stages` call the function
again: a second time and with other strides (`repeated_calls`), at other `shapes` and `positions`, with other contents
(`inputs`), for its `gradients`, and with data drawn from a seed (`seeded`). `golden` reads a golden case. `verdict` compares an
output with the right answer and every mistake of `posref.ops` (`engine`); the tolerances come from running formulas on numbers
that carry their error (`ranged`). It also says where the output is wrong (`wrong_elements`), and tries other values of settings
(`other_settings`) and mistakes that any op can have (`general`). `rotary` holds what applies to RoPE alone. Stages ask for the
tags of an op, never for its name. `cache` checks attention with a KV cache, call by call. A mistake is named only if the right
answer exceeds its tolerance and the answer of the mistake stays within its own.
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
