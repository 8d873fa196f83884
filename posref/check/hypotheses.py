"""Hypotheses: all mistakes that can be stated for a call, in the order of reporting."""

from posref.check.hypothesis import Hypothesis
from posref.check.rotation import Asked
from posref.check.wrong_numbers import wrong_frequencies, wrong_precision
from posref.check.wrong_pairs import wrong_pairs, wrong_signs
from posref.check.wrong_positions import wrong_positions


def all_hypotheses(asked: Asked) -> list[Hypothesis]:
    """Every single mistake.

    >>> len(all_hypotheses(Asked(dim=64, rotary_dim=64, base=10000.0, layout="half"))) > 80
    True
    """
    return [*wrong_pairs(asked), *wrong_signs(), *wrong_positions(), *wrong_frequencies(asked), *wrong_precision()]
