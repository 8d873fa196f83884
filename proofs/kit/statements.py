"""What theorems state, as the data that travels in the package: `posref/statements.json`.

What has to be run (hypotheses, witnesses) comes from results; all else is read from the theorems alone, see `unproved`.
"""

import json

from posref.statements import FILE
from proofs.kit.runner import in_file, names

WITNESS = 240  # characters; of a longer one the numbers remain


def entry(r):
    """What is kept of a result; values in the place of symbols are something that it takes for granted."""
    kept = {key: r[key] for key in ("statement", "of", "sizes", "basis", "argument", "citation")}
    values = [f"values in the place of symbols: {r['values']}"] if r["values"] else []
    return kept | {"hypotheses": [*r["hypotheses"], *values], "refuted": [_refuted(c) for c in r["controls"]]}


def text(results):
    """The file as it should be: these results, and for all other theorems what it has; no theorem that is gone."""
    known = json.loads(FILE.read_text(encoding="utf-8")) if FILE.is_file() else {}
    known |= {r["name"]: entry(r) for r in results}
    everything = [t.name for file in sorted(names()) for t in in_file(file)]
    return json.dumps({name: known[name] for name in everything if name in known}, indent=1) + "\n"


def difference(results):
    """One sentence if the file is not as these results say, else nothing."""
    if not FILE.is_file() or FILE.read_text(encoding="utf-8") != text(results):
        return f"{FILE.name} is not current; run python -m proofs --write-statements"
    return ""


def _refuted(control):
    kept = {"name": control["name"], "sentence": control["statement"], "kind": control["kind"], "truth": control["truth"]}
    return kept | {"witness": _shortened(control["witness"])}


def _shortened(witness):
    """The whole of it, or where it fails with both values, or both values."""
    sides, _, point = witness.rpartition("; at ")
    forms = [witness, f"at {point}", f"the value is {point.partition(': ')[2]}"] if sides else [witness]
    return next((form for form in forms if len(form) <= WITNESS), forms[-1][:WITNESS] + " ..")
