"""Run the proofs: `python -m proofs [NAME ..]`.

NAME is a system (rope, rotary.rope) or one theorem (rope.relative); without NAME all are run. The exit code is 0 only if every
theorem is proved, every control refuted and every mutant noticed or listed as equivalent.
"""

import argparse
import json
import random
import sys
import time
from pathlib import Path

from posref.statements import FILE
from proofs.kit import *
from proofs.kit import coq, export, report, statements
from proofs.kit.numbers import MORE_SIZES, SIZES
from proofs.kit.runner import PASSED, find, names, run, slow


def main(arguments=None):
    options = _parser().parse_args(arguments)
    try:
        chosen = list({t.name: t for name in options.names or names() for t in find(name)}.values())
    except LookupError as error:
        _parser().error(str(error))
    try:
        if options.derive:
            print("\n\n".join(report.derivation(t, options.latex) for t in chosen))
        elif options.tamper is not None:
            print(report.tampered(chosen, options.tamper))
        elif options.export:
            print(export.write(chosen, Path(options.export)))
        elif options.export_coq:
            lemmas = coq.write(map(export.theorem, chosen), Path(options.export_coq))
            print(
                f"{sum(map(len, lemmas.values()))} lemmas in {options.export_coq}: coqc Sums.v, then coqc on each of the others"
            )
        else:
            return _prove(chosen, options)
    except (AssertionError, Undecided) as failure:
        print(f"NOT PROVED: {type(failure).__name__}: {failure}")
        return 1
    return 0


def _parser():
    parser = argparse.ArgumentParser(prog="python -m proofs", description=__doc__.split("\n\n")[1])
    parser.add_argument("names", nargs="*", metavar="NAME", help="a system or a theorem, such as rope or rope.relative")
    parser.add_argument("--no-mutants", action="store_true", help="the quick tier: theorems, controls and tripwires")
    parser.add_argument(
        "--every-size", action="store_true", help="compare in numbers at more sizes, up to 256, and in more dtypes"
    )
    parser.add_argument("--table", action="store_true", help="one line per theorem, in numbers")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument("--derive", action="store_true", help="print every obligation and its normal form")
    parser.add_argument("--latex", action="store_true", help="with --derive: in LaTeX (amsmath)")
    parser.add_argument(
        "--tamper",
        nargs="?",
        type=int,
        const=random.randrange(10**6),
        metavar="SEED",
        help="draw three edits of the shipped code, make them in memory, and see who notices",
    )
    travel = parser.add_mutually_exclusive_group()
    travel.add_argument("--write-statements", action="store_true", help=f"write posref/{FILE.name} from what was proved")
    travel.add_argument("--check-statements", action="store_true", help=f"fail if posref/{FILE.name} says anything else")
    parser.add_argument("--export", metavar="DIR", help="write the obligations and a program that checks them without the kit")
    parser.add_argument("--export-coq", metavar="DIR", help="write the obligations and their proofs as files of Coq")
    return parser


def _prove(chosen, options):
    start = time.perf_counter()
    results, survivors, unused = run(chosen, not options.no_mutants, MORE_SIZES if options.every_size else SIZES)
    seconds = time.perf_counter() - start
    if options.json:
        rest = {"survivors": survivors, "unused": unused, "slow": slow(results), "seconds": round(seconds, 2)}
        print(json.dumps({"theorems": results, **rest}, indent=1))
    else:
        body = report.table(results) if options.table else _text(results, options.names)
        print(body, report.conclusion(results, survivors, unused, seconds), sep="\n\n")
    if not results or not all(r["status"] in PASSED for r in results) or survivors or unused:
        return 1
    return _statements(results, options)


def _statements(results, options):
    """Write or check the file of statements, if the arguments ask for it."""
    if options.write_statements:
        FILE.write_text(statements.text(results), encoding="utf-8")
    problem = statements.difference(results) if options.check_statements else ""
    print(problem, end="\n" if problem else "", file=sys.stderr)
    return 1 if problem else 0


def _text(results, asked):
    """The report as text, or only the statements if the arguments ask for them."""
    return "\n\n".join(map(report.block, results)) if asked else report.sentences(results)


if __name__ == "__main__":
    sys.exit(main())
