"""How a claim can fail."""


class Undecided(Exception):
    """The claim lies outside what the kit can decide; neither proved nor refuted."""


class Unseen(Undecided):
    """A claim of a control, or some paths of a theorem, that no result of a function is part of."""


class NotProved(AssertionError):
    """The claim could not be proved."""


class Refuted(NotProved):
    """The claim is false; the message holds a point where it fails, or what was done wrong."""


def frozen():
    """What every write to an argument ends in."""
    return Refuted("a write to an argument: shipped functions leave their arguments as they are")
