"""Check: is somebody else's implementation what was asked for, and if not, what is it?

    check_rope(fn, dim=64, base=10000.0, layout="half", to=torch.from_numpy).require()
    check(fn, "alibi.bias", heads=12, form="signed").require()
    check(fn, preset="bloom_176b").require()

`fn(x, positions)` gets x `(batch, heads, n, dim)` and integer positions `(batch, n)` and returns the rotated x. The report,
which `require` raises if a check failed, says "your output equals RoPE with layout="interleaved"; you asked for
layout="half"", what to change, and what this data cannot tell apart. `diagnose(case, output)` does the same for an output
that another program computed from a golden case, `load_output` reads its file, and `aliases()` is the table of what each
framework calls the layouts.

Levels: call, shape, dtype, finite numbers (`first_level`); properties that need no reference (`properties`); the values
within a derived bound (`judge`, `precision`); the operator read from basis vectors and phases (`reading`); enumerated
mistakes (`wrong_pairs`, `wrong_positions`, `wrong_numbers`), tried alone and together (`search`, `combinations`); how the
angles were computed (`recipes`). Golden cases: `golden`, those that are rotations `rotated`, others `wrong_answers`.
Any op of `posref.ops`: `check` (`implementation`), `engine`, tolerances from `ranged`, `boxes`, `gradients`.
A mistake is claimed only if the right answer leaves its bound and the mistake stays within it.
"""

from posref.check.frameworks import aliases
from posref.check.golden import diagnose
from posref.check.implementation import check, contract
from posref.check.report import Check, Finding, Precision, Report
from posref.check.rope import check_rope
from posref.check.tensors import load_output

__all__ = ["Check", "Finding", "Precision", "Report", "aliases", "check", "check_rope", "contract", "diagnose", "load_output"]
