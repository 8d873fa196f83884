"""What honest implementations do: `rms` and `growth` of a case, as posref/vectors/models.py derives them.

Nothing here depends on the machine: the figures come from float64 that is rounded to fewer digits and from a frozen stream of
random numbers; two digits are kept, and a figure that another last digit of float64 could move to the next is refused.
"""

from decimal import ROUND_UP, Context, Decimal

import mpmath

from posref import ops
from posref.check import rounded
from posref.check.engine import CONSTANTS
from posref.vectors import MODELS, tolerance, worst

TWO_DIGITS = Context(prec=2, rounding=ROUND_UP)
THREE_DIGITS = Context(prec=3, rounding=ROUND_UP)


def growth(params):
    """By how much more angles may be off if every frequency is the one before it times a constant; None if none are made.

    >>> float(growth({"dim": 128, "base": 10000.0}).__round__(3))
    6.389
    """
    if not {"dim", "base"} <= params.keys() or params["base"] <= 1:
        return None
    last = mpmath.mpf(params["dim"] // 2 - 1)
    exponent = 2 * last * mpmath.log(params["base"]) / params["dim"]
    return max(mpmath.mpf(1), (exponent + 3 * last + 4) / (3 * exponent + 4))


def growths(params, cond):
    """`growth` of a case, for the models that have one: three digits, rounded up."""
    found = growth(params) if cond and "phase" in cond else None
    return {} if found is None else {"f32-iterative": float(THREE_DIGITS.create_decimal(Decimal(str(found))))}


def spreads(case, outputs=None):
    """`rms` of a case, {model: r}: of attention, and where the tolerances hold the right output divided by 1.1.

    `outputs(way, bits)` are those of an honest implementation, or None where it has no such bits.
    """
    if case.cond is None or case.gauge != "none":
        return {}
    outputs = outputs or _specification(case)
    judged = [name for name in case.models if rounded.bits(name) and (ops.attends(case.op) or _wide(case, name))]
    models = [name for name in judged if outputs(next(rounded.ways(name)), rounded.bits(name)) is not None]
    return {model: _two_digits(case, _spread(case, model, outputs)) for model in models}


def _wide(case, model):
    return case.expected.any() and worst(case, 0.9091 * case.expected, model) <= 1  # 1 / 1.1


def _specification(case):
    op, arguments = ops.of_case(case)
    return lambda way, bits: rounded.run(op.spec, arguments, way, bits, CONSTANTS)


def _spread(case, model, outputs):
    bits = rounded.bits(model)
    found = [outputs(way, bits) for way in rounded.ways(model)]
    for way, got in zip(rounded.ways(model), found, strict=True):
        if (distance := worst(case, got, model)) > 1:
            raise ValueError(f"case {case.id}: {way} is honest, and {distance:.3g} tolerances of model {model} away")
    counts = True if case.ignore is None else ~case.ignore
    return rounded.allowed_together(found, case.expected, tolerance(case, model), MODELS[model].c_out, counts)


def _two_digits(case, value):
    below, above = (TWO_DIGITS.create_decimal(Decimal(value) * Decimal(1 + side)) for side in (-1e-9, 1e-9))
    if below != above and value != 1:
        raise ValueError(f"case {case.id}: the spread {value!r} is too near to two digits; take other numbers")
    return float(min(above, 1))
