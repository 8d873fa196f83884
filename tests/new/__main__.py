"""The files of a new system, to be filled: `python -m tests.new relative.name` writes five, which hold for a first formula.

The formula is a bias that falls with the distance (relative), angles that grow with the position (rotary), a vector times the
position (absolute), or the logarithm of a decay (state). Replace it file by file, the specification first.
`tests/test_house.py` finds each FILL that is left.
"""

import sys
from pathlib import Path

from posref import discovery

TEMPLATES = Path(__file__).parent
MARK = "TO" + "DO"  # which the tests of the house refuse
FILES = {
    "specification": "posref/{family}/{name}.py",
    "ops": "posref/ops/{name}.py",
    "proofs": "proofs/{family}/{name}.py",
    "vectors": "proofs/vectors/{name}.py",
    "tests": "tests/{family}/test_{name}.py",
}
WORDS = {
    "absolute": {
        "FUNCTION": "encode",
        "FACTOR": "direction",
        "HEAD": "return t.added(NAME.encode(t.positions, t.parameter(t.dim)))",
    },
    "rotary": {"FUNCTION": "angles", "FACTOR": "frequencies", "HEAD": "return t.turned(t.parameter(t.dim // 2))"},
    "relative": {},
    "state": {
        "FUNCTION": "log_decay",
        "FACTOR": "rates",
        "HEAD": "return t.attended(*t.projected(t.x), NAME.log_decay(t.offsets, t.parameter(1))[..., 0])",
    },
}


def write(full, root):
    """The paths of the five files of a system such as "relative.name"; ValueError if the name cannot be one or is taken."""
    family, _, name = full.partition(".")
    if family not in WORDS or not (name.isidentifier() and name.islower()):
        raise ValueError(f"{full!r} is no name: write family.name, with one of {', '.join(WORDS)} and a word in small letters")
    if taken := [known for known in discovery.names() if known.rpartition(".")[2] == name]:
        raise ValueError(f"{name} is the name of {taken[0]}; choose another")
    words = {**WORDS[family], "FAMILY": family, "NAME": name, "FILL": MARK}
    paths = []
    for template, pattern in FILES.items():
        folder = "bias" if family == "relative" else "line"
        text = (TEMPLATES / folder / f"{template}.template").read_text(encoding="utf-8")
        for word, meaning in words.items():
            text = text.replace(word, meaning)
        path = root / pattern.format(family=family, name=name)
        path.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths


if __name__ == "__main__":
    try:
        written = write("".join(sys.argv[1:]), TEMPLATES.parents[1])
    except ValueError as problem:
        sys.exit(f"{__doc__}\n{problem}")
    print("\n".join(map(str, written)), "next: fill the first, then python -m pytest -q -x tests/test_house.py", sep="\n")
