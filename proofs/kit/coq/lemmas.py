"""One obligation as a lemma."""

from proofs.kit.coq.steps import of_parts, of_sums
from proofs.kit.coq.terms import NATURAL, complex_, defined, divisors, named, parts, real, symbols


def lemma(name, left, right, kinds):
    """One obligation and its proof."""
    left, right = (defined(side, kinds) for side in (left, right))
    both = ["equal", left, right]
    free = sorted(symbols(both, kinds))
    arrays = {e[1]: len(e) - 2 for e in parts(both) if e[0] in ("at", "call")}
    declared = [f"({named(x)} : {'nat' if kinds[x] in NATURAL else 'R'})" for x in free]
    declared += [f"({named(x)} : {'R -> ' * count}R)" for x, count in sorted(arrays.items())]
    given = [f"(1 <= {named(x)})%nat" for x in free if kinds[x] == "size"]
    given += [f"0 < {named(x)}" for x in free if kinds[x] == "positive"]
    given += [f"{real(e, kinds)} <> 0" for e in divisors(both) if e[0] in ("x", "at") and kinds.get(e[1]) not in NATURAL]
    turns = ["i"] in list(parts(both))
    sides = " =\n    ".join((complex_ if turns else real)(side, kinds) for side in (left, right))
    statement = "".join(f"{each} -> " for each in given) + "\n    " * bool(given) + sides
    for_all = f"forall {' '.join(declared)},\n    " if declared else ""
    find = of_parts if turns else of_sums
    steps = ["reflexivity."] if left == right else find(left, right, kinds | {"index": "natural"})
    line = "\n  "
    return f"Lemma {name} : {for_all}{statement}.\nProof.\n  intros.\n  {line.join(steps)}\nQed.\n"
