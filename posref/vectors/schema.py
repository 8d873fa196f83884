"""Schema: checks a vector file against `schema.json`, without a library.

It knows the keywords of JSON Schema (draft-07) that `schema.json` uses; any other keyword is an error.
"""

import json
import re
from pathlib import Path

SCHEMA = json.loads((Path(__file__).parent / "schema.json").read_text(encoding="ascii"))
TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "number": (int, float),
    "integer": int,
    "null": type(None),
}
NOTES = {"$schema", "title", "definitions"}


def problems(value, rule=None, at="$"):
    """A sentence for each part of `value` that the rule does not allow; by default the rule for a whole file.

    >>> list(problems({"shape": [2], "data": "12"}, SCHEMA["definitions"]["tensor"]))
    ['$.data is no array']
    """
    rule = SCHEMA if rule is None else rule
    if "$ref" in rule:
        rule = SCHEMA["definitions"][rule["$ref"].rsplit("/", 1)[1]]
    if unknown := rule.keys() - WORDS.keys() - NOTES:
        raise ValueError(f"schema.problems: the rule has {', '.join(sorted(unknown))}, which only other programs know")
    if "type" in rule and not any(_is(value, kind) for kind in _listed(rule["type"])):
        yield f"{at} is no {' or '.join(_listed(rule['type']))}"
        return
    for word in rule.keys() - NOTES:
        yield from WORDS[word](value, rule, at)


def _is(value, kind):
    return isinstance(value, TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _listed(kinds):
    return [kinds] if isinstance(kinds, str) else kinds


def _say(wrong, sentence):
    return [sentence] if wrong else []


def _properties(value, rule, at):
    for name in value.keys() & rule["properties"].keys():
        yield from problems(value[name], rule["properties"][name], f"{at}.{name}")


def _additional(value, rule, at):
    for name in value.keys() - rule.get("properties", {}).keys():
        if rule["additionalProperties"] is False:
            yield f"{at} has {name!r}, which is no field"
        else:
            yield from problems(value[name], rule["additionalProperties"], f"{at}.{name}")


def _names(value, rule, at):
    for name in value:
        yield from problems(name, rule["propertyNames"], f"{at}, the name {name!r},")


def _items(value, rule, at):
    for n, item in enumerate(value):
        yield from problems(item, rule["items"], f"{at}[{n}]")


def _one_of(value, rule, at):
    found = [list(problems(value, each, at)) for each in rule["oneOf"]]
    fitting = found.count([])
    return [] if fitting == 1 else _say(fitting, f"{at} fits several forms") or max(found, key=len)


WORDS = {
    "type": lambda value, rule, at: [],
    "$ref": lambda value, rule, at: [],
    "const": lambda value, rule, at: _say(value != rule["const"], f"{at} is {value!r}, expected {rule['const']!r}"),
    "enum": lambda value, rule, at: _say(value not in rule["enum"], f"{at} is {value!r}, expected one of {rule['enum']}"),
    "pattern": lambda value, rule, at: _say(not re.search(rule["pattern"], value), f"{at} is {value!r}, not {rule['pattern']}"),
    "minimum": lambda value, rule, at: _say(value < rule["minimum"], f"{at} is {value}, below {rule['minimum']}"),
    "exclusiveMinimum": lambda value, rule, at: _say(
        value <= rule["exclusiveMinimum"], f"{at} is {value}, not above {rule['exclusiveMinimum']}"
    ),
    "maximum": lambda value, rule, at: _say(value > rule["maximum"], f"{at} is {value}, above {rule['maximum']}"),
    "minLength": lambda value, rule, at: _say(len(value) < rule["minLength"], f"{at} is too short"),
    "minItems": lambda value, rule, at: _say(len(value) < rule["minItems"], f"{at} is too short"),
    "maxItems": lambda value, rule, at: _say(len(value) > rule["maxItems"], f"{at} is too long"),
    "minProperties": lambda value, rule, at: _say(len(value) < rule["minProperties"], f"{at} is too short"),
    "uniqueItems": lambda value, rule, at: _say(len(set(map(str, value))) < len(value), f"{at} has an item twice"),
    "required": lambda value, rule, at: [f"{at} has no {name}" for name in rule["required"] if name not in value],
    "properties": _properties,
    "additionalProperties": _additional,
    "propertyNames": _names,
    "items": _items,
    "oneOf": _one_of,
}
