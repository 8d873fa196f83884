"""The record of the theorem that runs: what it has to show, and what it takes for granted.

The claims of the kit write it, and `python -m proofs` prints it; a proof file has no part in it.
"""

import contextlib
from dataclasses import dataclass, field


@dataclass
class Record:
    """Obligations met since the theorem began, and the ground that they stand on; dictionaries keep the order of time."""

    equalities: list = field(default_factory=list)  # (left, right) that the normal form decided
    bare: list = field(default_factory=list)  # claims in which no size occurs, each as a text
    facts: list = field(default_factory=list)  # in words, decided by evaluation
    premises: dict = field(default_factory=dict)  # in words: facts that no result is part of
    hypotheses: dict = field(default_factory=dict)  # text -> relation that holds by assumption; None if an array says it
    in_cases: dict = field(default_factory=dict)  # text of a hypothesis -> what it says is >= 0, in each case
    denominators: dict = field(default_factory=dict)  # expressions taken as non-zero
    together: list = field(default_factory=list)  # expressions that are >= 0 by assumption at one time
    cases: list = field(default_factory=list)  # of sizes, that ran
    sizes: list = field(default_factory=list)  # symbolic sizes that ran
    asked: set = field(default_factory=set)  # symbols in comparisons
    kernels: list = field(default_factory=list)  # (kernel, arguments, results) that were proved
    loops: list = field(default_factory=list)  # (function, place) that ran as a piece of a loop, or around one
    cells: set = field(default_factory=set)  # (index, length of its axis) of cells that are read
    arrays: dict = field(default_factory=dict)  # name of an entry -> the name of its array
    silent: list = field(default_factory=list)  # numbers of paths on none of which something was claimed
    turns: list = field(default_factory=list)  # (function, name, value) that a turn of a loop leaves to the next one

    def clear(self):
        for entries in vars(self).values():
            entries.clear()

    @contextlib.contextmanager
    def of_another_run(self):
        """A record that is empty at first, and is forgotten: what one run leaves is not compared by the claims of another."""
        known = vars(self).copy()
        vars(self).update({name: type(entries)() for name, entries in known.items()})
        try:
            yield
        finally:
            vars(self).update(known)

    @property
    def obligations(self):
        return len(self.equalities) + len(self.facts)

    @property
    def trivial(self):
        """How many equalities are 0 = 0 as soon as both sides are written down."""
        return sum(left - right == 0 for left, right in self.equalities)


RECORD = Record()
