"""Pages: the mistakes of a system, and which mistakes show a symptom."""

from posref import ops
from posref.ops import Mistake


def mistakes(name: str) -> dict[str, Mistake]:
    """The mistakes of a system or of one op, by name.

    >>> mistakes("alibi.slopes")["sorted_slopes"].bug
    'slopes sorted'
    """
    if "." in name:
        return ops.op(name).mistakes
    found: dict[str, Mistake] = {}
    for op in ops.system(name).values():
        found |= {mistake: m for mistake, m in op.mistakes.items() if mistake not in found}
    return found


def page(name: str) -> str:
    """What goes wrong in a system or op: what was done, what one sees, the remedy, where it was seen."""
    return "\n\n".join(_described(mistake, m) for mistake, m in mistakes(name).items())


def symptoms(words: str) -> list[tuple[str, list[tuple[str, str]]]]:
    """I have a symptom: every effect that has these words, with the mistakes that show it, as (effect, [(name, bug)]).

    >>> symptoms("punished")
    [('Keys in the future are punished.', [('alibi.absolute', '|j - i|')])]
    """
    found: dict[str, dict[str, str]] = {}
    for name in ops.names():
        for mistake, m in mistakes(name).items():
            if all(word.lower() in f"{m.effect} {m.description}".lower() for word in words.split()):
                found.setdefault(m.effect, {})[f"{name}.{mistake}"] = m.bug
    return [(effect, list(by.items())) for effect, by in found.items()]


def _described(name: str, m: Mistake) -> str:
    lines = [f"{name}: {m.bug}", f"  {m.description}", f"  What one sees: {m.effect}"]
    lines += [f"  Remedy: {m.remedy}"] if m.remedy else []
    return "\n".join(lines + ([f"  Seen in: {', '.join(m.seen_in)}"] if m.seen_in else []))
