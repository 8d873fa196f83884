"""Facts about the world, as rows of data with a schema: what people claim, what was found in their code, who computes what.

A fact stands in one place: pages, commands and tests read it here. `schema.json` says what each file holds.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any


@cache
def read(name: str) -> Any:
    """What `name`.json holds.

    >>> sorted(read("claims"))
    ['claims', 'sources']
    """
    return json.loads(Path(__file__).with_name(f"{name}.json").read_text(encoding="utf-8"))
