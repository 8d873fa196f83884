"""Longer contexts: a table of what each rule for a longer context would do to the rotation of a model.

In training on texts of L tokens, a pair with frequency w meets the angles from 0 to w L; beyond a full turn it has met all
angles. A rule with frequencies w' brings the pair to new angles at n tokens if w' n > w L and w L is below a full turn.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from posref.explain.output import one
from posref.rotary import rope, scaling

TURN = 2 * np.pi
NOT_SEEN = 1 + 2.0**-20  # more than rounding of float64 in a quotient


class Row(NamedTuple):
    """One rule: its call, the factors by which the first, middle and last pair rotate slower, and counts of pairs."""

    rule: str
    call: str
    slower: tuple[float, ...]
    unchanged: int
    new: int
    scores: float


def rules(w: np.ndarray, base: float, trained: int, wanted: int) -> Iterator[Row]:
    """A row for each rule of `posref.rotary.scaling` that needs no list: a text of `wanted` tokens, trained on `trained`."""
    s = wanted / trained
    yarn = scaling.yarn(w, factor=s, original_length=trained, base=base, truncate=True)
    llama3 = scaling.llama3(w, factor=s, low_freq_factor=1.0, high_freq_factor=4.0, original_length=trained)
    for rule, scaled, more, scores in (
        ("none", w, "", 1.0),
        ("linear", scaling.linear(w, factor=s), "", 1.0),
        ("ntk", scaling.ntk(w, factor=s), "", 1.0),
        ("yarn", yarn, f", original_length={trained}, base={base!r}, truncate=True", scaling.yarn_magnitude(s) ** 2),
        ("llama3", llama3, f", low_freq_factor=1.0, high_freq_factor=4.0, original_length={trained}", 1.0),
    ):
        call = f"scaling.{rule}(w, factor={s:g}{more})" if rule != "none" else "w"
        yield row(rule, call, w, scaled, trained, wanted, float(scores))


def row(rule: str, call: str, w: np.ndarray, scaled: np.ndarray, trained: int, wanted: int, scores: float) -> Row:
    new = (scaled * wanted > w * trained * NOT_SEEN) & (w * trained < TURN)
    slower = w / scaled
    some = tuple(float(slower[t]) for t in (0, len(w) // 2, -1))
    return Row(rule, call, some, int((slower < NOT_SEEN).sum()), int(new.sum()), scores)


def options(found, wanted):
    """The model's width, base and trained length, and a row for each rule. ValueError for a model with several rotations, with
    none, without a base or a trained length, or if it was trained on as many tokens already."""
    group = one(found)
    trained = (group.scaling or {}).get("original_length") or group.max_position_embeddings
    if group.base is None or trained is None:
        raise ValueError("no base, or no trained length, is in this file: rules for a longer context start from both")
    trained, w = int(trained), rope.frequencies(2 * len(group.frequencies), group.base)
    if wanted <= trained:
        raise ValueError(f"--longer {wanted}: the model was trained on {trained} tokens; name a greater length")
    rows, own = list(rules(w, group.base, trained, wanted)), _own(group, w, wanted)
    if group.scaling and group.frequencies_long is None and (own > 0).all():
        rows.append(row("the file's own", group.call, w, own, trained, wanted, group.magnitude**2))
    return {
        "dim": 2 * len(w),
        "base": group.base,
        "trained": trained,
        "wanted": wanted,
        "rules": [each._asdict() for each in rows],
    }


def _own(group, w, wanted):
    """The frequencies that the file's own schedule has for a text of `wanted` tokens."""
    kind, length = (group.scaling or {}).get("type", ""), wanted
    if not kind.startswith("dynamic_ntk"):
        return np.array(group.frequencies)
    original = group.scaling["original_length"]
    if kind == "dynamic_ntk_by_doubling":
        length = original * 2 ** math.ceil(math.log2(wanted / original))
    return scaling.dynamic_ntk(w, factor=group.scaling.get("factor", 2.0), length=length, original_length=original)


def page(found):
    """`options` as a table."""
    lines = [
        f"trained on {found['trained']} tokens, wanted {found['wanted']}: s = {found['wanted'] / found['trained']:g}, "
        f"w = rope.frequencies({found['dim']}, {found['base']!r})\n",
        f"{'rule':<15}{'unchanged':>10}{'slower: first, middle, last pair':>34}{'new angles':>12}{'scores':>10}",
    ]
    for each in found["rules"]:
        slower, scores = ", ".join(f"{x:.3g}" for x in each["slower"]), f"x {each['scores']:.3f}"
        lines.append(f"{each['rule']:<15}{each['unchanged']:>10}{slower:>34}{each['new']:>12}{scores:>10}")
    return "\n".join([*lines, "", *(each["call"] for each in found["rules"]), "", f"Of {found['dim'] // 2} pairs. {REMARKS}"])


REMARKS = (
    "New angles: pairs that turn further than in any text of the training. Scores: by what YaRN multiplies them.\n"
    "Dynamic NTK with the factor 1 is ntk with s = length / trained, anew for each length. LongRoPE's list is searched for.\n"
    "What a rule costs in quality no formula says; docs/longer.md says how each was published."
)
