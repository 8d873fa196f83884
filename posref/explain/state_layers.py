"""Layers that keep a state: the system of posref.state, the decay as a formula, heads and sizes, and the convolution.

The entry `state` of a row in `posref.explain.families` holds them. A number there is fixed in the model's code. A text lists
keys of the file, and the first key with a number is used; `*` and `/` combine numbers, keys and sizes that stand before.
"""

import json
import re

from posref.explain import layer_kinds
from posref.explain.configuration import source_file
from posref.explain.layer import Layer

SIZES = ("value_heads", "key_heads", "key_width", "value_width", "chunk")
FORMULAS = ("keys", "step", "log_decay", "strength", "values", "skip", "gated")


def groups(settings):
    """One group for all layers with a state; no group for a file of another program, because the row does not know its keys."""
    row = settings.family.get("state")
    if not row or settings.file.get("posref_file"):
        return []
    kinds = row.get("kinds", [layer_kinds.LINEAR])
    indices = [i for i, kind in enumerate(layer_kinds.kinds(settings)) if kind in kinds]
    group = Layer(
        part=settings.path,
        model_type=settings.model_type,
        kind=kinds[0],
        indices=indices,
        encoding=row["call"].partition(".")[0],
        causal=True,
        source=source_file(settings),
        state=_state(settings, row),
    )
    return [group] if indices else []


def keys(row):
    """All words of a row of families; the keys that the row names are among them."""
    return set(re.findall(r"\w+", json.dumps(row)))


def _state(settings, row):
    found = {"call": row["call"]}
    for name in SIZES:
        if name in row:
            found[name] = int(_number(settings, row[name], found))
    _possible(settings, row, found)
    found |= {name: _formula(settings, row[name], found) for name in FORMULAS if name in row}
    low, high = _limits(settings, row)
    if low > 0 or high < float("inf"):
        found["step"] = f"clip({found['step']}, {low:g}, {high:g})"
    if "key_heads" in found:
        found["key_head"] = row.get("key_head", "h // {share}").format(
            share=found["value_heads"] // found["key_heads"], **found
        )
        found["scale"] = row.get("scale") or found["key_width"] ** -0.5
    found |= {name: row[name] for name in ("decay_per", "unit", "normed") if name in row}
    multipliers = {name: _number(settings, rule, {}) for name, rule in row.get("multipliers", {}).items()}
    found |= {"multipliers": multipliers} if any(number != 1 for number in multipliers.values()) else {}
    found |= {name: _word(settings, row[name]) for name in ("activation",) if name in row}
    if row.get("convolution"):
        rule = row["convolution"]
        said = {name: _word(settings, rule[name]) for name in ("activation", "bias")}
        found["convolution"] = {**rule, **said, "width": int(_number(settings, rule["width"], {}))}
    return found


def _possible(settings, row, found):
    """ValueError for sizes that transformers refuses: heads that do not divide, or that do not fill the inner width."""
    heads, width, inner = found.get("value_heads"), found.get("value_width"), row.get("inner")
    if heads and heads % found["key_heads"]:
        key = str(row["key_heads"]).split()[0]
        raise settings.error(f"{key} is {found['key_heads']}, expected a divisor of the {heads} heads of the values")
    if inner and heads * width != int(_number(settings, inner, found)):
        whole = int(_number(settings, inner, found))
        raise settings.error(f"{heads} heads of {width} features are not the {whole} of {inner.split()[0]}")


def _word(settings, rule):
    """The value of a key; a rule that is no key of the class is itself the value, fixed in the code."""
    return settings[rule] if rule in settings.facts["defaults"] else rule


def _limits(settings, row):
    """The limits to which the step is clipped: a pair in the file, or only a smallest value."""
    given = settings[row["limits"]] if "limits" in row else None
    pair = given if isinstance(given, list) else [given or 0, float("inf")]
    return [float(each["__float__"]) if isinstance(each, dict) else each for each in pair]


def _formula(settings, rule, known):
    """A formula with its numbers filled in; a rule (key, formula, other) means `formula` if the key is set, else `other`."""
    if isinstance(rule, list):
        rule = rule[2 if _first(settings, rule[0]) in (None, False) else 1]
    return re.sub(r"{([^}]+)}", lambda name: f"{_number(settings, name[1], known):.12g}", rule)


def _first(settings, words):
    """The value of the first of several keys that has one; `outer.inner` is a key in a dictionary, or an index in a list."""
    for word in words.split():
        outer, _, inner = word.partition(".")
        value = settings[outer]
        if inner:
            value = value[int(inner)] if isinstance(value, list) else (value or {}).get(inner)
        if value not in (None, "auto"):
            return value
    return None


def _number(settings, rule, known):
    if not isinstance(rule, str):
        return rule
    for product in rule.split():
        first, *others = re.findall(r"([*/]?)([^*/]+)", product)
        found = _factor(settings, first[1], known)
        for sign, name in others:
            value = _factor(settings, name, known)
            found = None if None in (found, value) else found * value if sign == "*" else found / value
        if found is not None:
            return found
    raise settings.error(f"{rule} is missing, expected a number")


def _factor(settings, name, known):
    if name[0].isdigit():
        return float(name)
    value = known.get(name, _first(settings, name))
    if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)):
        return value
    raise settings.error(f"{name} is {value!r}, expected a number")
