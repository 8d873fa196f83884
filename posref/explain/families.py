"""What the modules of each model type do with position: a row per type, which says what a configuration does not.

The rows are posref/facts/families.json, and the definition `families` in posref/facts/schema.json says what each entry means.
A drift test compares them with transformers 5.23.0. `UNKNOWN` is the row of every other type: posref describes nothing of it.
"""

from functools import reduce
from typing import Any

from posref import facts

UNKNOWN = {"encoding": None}


def _whole(value, *place):
    """An entry at this place of a row; where it says `like`, with what stands at the same place of the row of that name."""
    if not isinstance(value, dict):
        return value
    own = {key: _whole(each, *place, key) for key, each in value.items() if key != "like"}
    if "like" not in value:
        return own
    other = _whole(reduce(dict.__getitem__, place, facts.read("families")[value["like"]]), *place)
    return {**other, **own} if own else other


FAMILIES: dict[str, dict[str, Any]] = {
    name: {key: _whole(value, key) for key, value in row.items()} for name, row in facts.read("families").items()
}
