"""The proof kit: shipped functions executed on symbols, and claims about the result decided exactly.

How to prove something about a shipped function, from the simplest to the strongest:

1. Concrete sizes. `symbols("q", 3, 4)` is an object array of real symbols; call the function with it, compare with
   `prove_equal(result, expected)`. Comparisons inside the function (max, clip, abs) run on every path: wrap the call in
   `for _, result in all_paths(lambda: f(x)): prove_equal(..)`.
2. All sizes. `h, n = size("h"), size("n")`; `sized("q", n, 2 * h)` is an array of symbolic size, `filled((1,), m)` a single
   position. Compare one generic cell: `left, right = entries("half", result, expected)`, or `entries(None, ..)` where the
   last axis is not paired; `t, a, b = pair("half", 2 * h)` are the indices of a generic pair. A sum over 2h features is taken
   over pairs: put both sides under `with summing("half")`.
3. Kernels. `out = Output((n, 2 * h))`; `prove_kernel(kernel, [x, cos, sin, out], (out, specification(x, cos, sin)))`.
4. All n by induction: `prove_induction(term, closed, n)`; a loop that carries something by its invariant, `proofs.kit.loops`.
5. "Which W ..?": `solve_forall(expressions, unknowns)`. Facts about integers: `prove_that(fact, "in words")`. A fact that
   depends on no result, such as a fact of mathematics or about an expected value: `premise(fact, "in words")`.

A symbolic size is any size. Where a contract or a kernel asks about it, the whole theorem is run for each answer, and each size
at its least as well; other code may not ask (`proofs/kit/cases.py`).

A control that uses `prove_that` passes `counterexample=`: where the false sentence fails, what is there, what is expected.
Each theorem names the functions it is about, and each has a control, a false sentence that must be refuted: `@name.control`, or
`@name.claim("the true sentence")` if readers are to see both sentences; `name.control_by("rope.rotate", "sign", x=.., ..)`
takes a mistake of `posref.ops` on symbols. What is evaluated at concrete numbers alone is an `@example`.
`python -m proofs` runs everything, `python -m proofs rope` one file, `python -m proofs rope.relative` one theorem.
"""

import proofs.kit.functions  # noqa: F401, fills the tables of SizedArray
from proofs.kit.cases import nonnegative
from proofs.kit.claims import premise, prove_equal, prove_induction, prove_that, solve_forall
from proofs.kit.kernels import Output, prove_kernel, run_kernel
from proofs.kit.normal_form import coefficients, is_zero, normal_form
from proofs.kit.paths import all_paths, assuming
from proofs.kit.sized import SizedArray, entries, filled, integers, pair, sized, summing
from proofs.kit.symbols import Scalar, array, expression, index, room, size, symbol, symbols
from proofs.kit.theorem import Theorem, Unsound, example, theorem
from proofs.kit.verdicts import NotProved, Refuted, Undecided

__all__ = [
    "NotProved",
    "Output",
    "Refuted",
    "Scalar",
    "SizedArray",
    "Theorem",
    "Undecided",
    "Unsound",
    "all_paths",
    "array",
    "assuming",
    "coefficients",
    "entries",
    "example",
    "expression",
    "filled",
    "index",
    "integers",
    "is_zero",
    "nonnegative",
    "normal_form",
    "pair",
    "premise",
    "prove_equal",
    "prove_induction",
    "prove_kernel",
    "prove_that",
    "room",
    "run_kernel",
    "size",
    "sized",
    "solve_forall",
    "summing",
    "symbol",
    "symbols",
    "theorem",
]
