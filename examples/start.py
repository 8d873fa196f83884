"""The ten steps of docs/start.md as one session that grows: text, code, and what the code prints when it runs here.

python examples/start.py        all steps
python -i examples/start.py 6   six steps, and a prompt that knows what they defined
"""

import argparse
import doctest
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def told(words):
    """Text for a terminal: a picture is named, what only the site draws is left out."""
    words = re.sub(r"!\[\]\((.*?)\)", r"picture: docs/\1", words)
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"<div.*?</div>\n*", "", words)).strip()


def run(step, names):
    """Print a step; its code runs line by line and prints its values, as at a prompt."""
    for words, block in re.findall(r"(.*?)(?:^```pycon\n(.*?)^```$|\Z)", step, flags=re.MULTILINE | re.DOTALL):
        print(f"\n{told(words)}" if told(words) else "")
        for example in doctest.DocTestParser().get_examples(block):
            print(f"    >>> {example.source}", end="")
            exec(compile(example.source, "docs/start.md", "single"), names)


def main(last, names):
    first, *steps = re.split(r"^## (?=\d)", (ROOT / "docs" / "start.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    for step in [first, *steps[:last]]:
        run(step.partition("\n## ")[0], names)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("last", metavar="STEP", nargs="?", type=int, default=10, help="the last step that runs")
    main(parser.parse_args().last, globals())
