"""Run the proofs: `python -m proofs [NAME ..] [--no-mutants] [--json]`.

NAME is a proof file such as rotary.rope. The exit code is 0 only if every theorem is proved, every control refuted and every
mutant killed or listed as equivalent.
"""

import argparse
import json
import sys
import time

from proofs.kit.runner import names, run


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m proofs", description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="a proof file such as rotary.rope; all of them if none")
    parser.add_argument("--no-mutants", action="store_true", help="the quick tier: theorems, controls and tripwires")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    options = parser.parse_args(arguments)
    known = names()
    for name in options.names:
        if name not in known:
            parser.error(f"no proof file {name!r}; there are {', '.join(known)}")
    start = time.perf_counter()
    results, survivors, unused = run(options.names or known, not options.no_mutants)
    seconds = time.perf_counter() - start
    if options.json:
        print(
            json.dumps({"theorems": results, "survivors": survivors, "unused": unused, "seconds": round(seconds, 2)}, indent=1)
        )
    else:
        print(table(results, survivors, unused, seconds))
    return 0 if results and all(r["status"] == "proved" for r in results) and not survivors and not unused else 1


def table(results, survivors, unused, seconds):
    """The table of theorems, then what is wrong, if anything."""
    header = ("theorem", "functions", "sizes", "obligations", "controls", "mutants killed", "seconds")
    rows = [header] + [_row(r) for r in results]
    widths = [max(len(row[c]) for row in rows) for c in range(len(header))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines += [f"NOT PROVED  {r['name']}: {r['status']}" for r in results if r["status"] != "proved"]
    lines += [f"SURVIVOR    {label}" for label in survivors]
    lines += [f"NOT A SURVIVOR, listed as equivalent: {label}" for label in unused]
    lines.append(f"{summary(results, survivors)}; {seconds:.1f} s")
    return "\n".join(lines)


def summary(results, survivors):
    """One line: theorems, obligations, controls, and mutants if any were tried."""
    proved = sum(r["status"] == "proved" for r in results)
    obligations, controls = sum(r["obligations"] for r in results), sum(len(r["controls"]) for r in results)
    line = f"{proved} of {len(results)} theorems proved, {obligations} obligations, {controls} controls refuted"
    score = [r["mutants"] for r in results if r["mutants"]]
    if not score:
        return line
    killed, refuted, equivalent = (sum(m[word] for m in score) for word in ("killed", "refuted", "equivalent"))
    return f"{line}, {killed} mutants killed ({refuted} by a witness), {equivalent} equivalent, {len(survivors)} survive"


def _row(r):
    functions = ", ".join(sorted({f.rsplit(".", 1)[-1] for f in r["of"]}))
    m = r["mutants"]
    killed = "-" if not m else f"{m['killed']}" + (f" ({m['equivalent']} equivalent)" if m["equivalent"] else "")
    numbers = (str(r["obligations"]), str(len(r["controls"])), killed, f"{r['seconds']:.2f}")
    return (r["name"], _short(functions), _short(r["sizes"]), *numbers)


def _short(text, width=44):
    return text if len(text) <= width else text[: width - 2] + ".."


if __name__ == "__main__":
    sys.exit(main())
