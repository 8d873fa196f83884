"""Code by folder: logical statements, without docstrings, comments, blank lines and however they are wrapped.

python tests/count_code.py              this checkout
python tests/count_code.py v0.1.0       two columns: a revision of git, and this checkout
python tests/count_code.py --mistakes   check + ops + flags + evaluate: what knows the mistakes, in 0.1.0 and here
"""

import ast
import io
import subprocess
import sys
import tarfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BEFORE = "a4ff504"  # the last revision of 0.1.0
EVALUATE = "tests/vectors/evaluate/"  # the ops of 0.1.0, one file a system; its flags stood in proofs
SHARED = ("__init__", "attention", "common", "pages", "probe")  # files of posref/ops that are no system


def statements(text):
    """Statements of a module; a docstring is none, a signature is one."""
    tree, count = ast.parse(text), 0
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            count -= ast.get_docstring(node) is not None
        count += isinstance(node, ast.stmt)
    return count


def lines(text):
    """Lines that hold code, docstrings not counted."""
    tree, held = ast.parse(text), set()
    docstrings = {
        line
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None
        for line in range(node.body[0].lineno, node.body[0].end_lineno + 1)
    }
    for node in ast.walk(tree):
        if isinstance(node, (ast.stmt, ast.expr)):
            held |= set(range(node.lineno, node.end_lineno + 1))
    text_lines = text.split("\n")
    return sum(
        1 for line in held - docstrings if text_lines[line - 1].strip() and not text_lines[line - 1].strip().startswith("#")
    )


def folder(path):
    """posref/rotary and the like; the files of posref itself, and tests as a whole."""
    parts = path.split("/")
    return parts[0] if parts[0] == "tests" or len(parts) == 1 else "/".join(parts[:2]) if len(parts) > 2 else parts[0]


def counted(files):
    """Folder -> (statements, lines), of (path, text)."""
    by_statement, by_line = Counter(), Counter()
    for path, text in files:
        by_statement[folder(path)] += statements(text)
        by_line[folder(path)] += lines(text)
    return by_statement, by_line


def here():
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return [(path, (ROOT / path).read_text(encoding="utf-8")) for path in listed if (ROOT / path).is_file()]


def at(revision):
    done = subprocess.run(["git", "archive", revision], cwd=ROOT, capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        return [(m.name, archive.extractfile(m).read().decode()) for m in archive if m.name.endswith(".py") and m.isfile()]


def flags(text):
    """The tables of mistakes of a file of 0.1.0, which named them and computed none."""
    assigned = [node for node in ast.parse(text).body if isinstance(node, ast.Assign)]
    return "\n".join(ast.get_source_segment(text, node) for node in assigned if ast.unparse(node.targets[0]) == "FLAGS")


def without_head(text):
    """A file of ops without what `posref table` measures, which is no mistake."""
    kept = [node for node in ast.parse(text).body if getattr(node, "name", "") != "_head"]
    return "\n".join(ast.get_source_segment(text, node) for node in kept)


def mistakes():
    """(what, statements, lines) of the code that knows the mistakes: all of it in 0.1.0; here for its systems and for all."""
    old, new = dict(at(BEFORE)), dict(here())
    systems = {Path(path).stem for path in old if path.startswith(EVALUATE)}
    before = [text for path, text in old.items() if path.startswith(("posref/check/", EVALUATE))]
    before += [flags(text) for path, text in old.items() if path.startswith("proofs/")]
    now = {path: text for path, text in new.items() if path.startswith("posref/check/")}
    now |= {path: without_head(text) for path, text in new.items() if path.startswith("posref/ops/") and "layers" not in path}
    same = [text for path, text in now.items() if "/check/" in path or Path(path).stem in {*systems, *SHARED}]
    for what, texts in (
        (f"0.1.0 ({BEFORE}): check, evaluate and flags of {len(systems)} systems", before),
        (f"here: check, and ops of the same {len(systems)} systems", same),
        (f"here: check, and ops of all {sum('/ops/' in path for path in now) - len(SHARED)} systems", now.values()),
    ):
        yield what, sum(map(statements, texts)), sum(map(lines, texts))


def main(revisions):
    if revisions == ["--mistakes"]:
        for what, by_statement, by_line in mistakes():
            print(f"{what:64}{by_statement:6} statements{by_line:8} lines")
        return
    columns = [(revision, counted(at(revision))) for revision in revisions] + [("here", counted(here()))]
    print(f"{'folder':24}" + "".join(f"{name + ' statements':>24}{name + ' lines':>20}" for name, _ in columns))
    for name in sorted(set().union(*(pair[0] for _, pair in columns))):
        print(f"{name:24}" + "".join(f"{pair[0][name]:24}{pair[1][name]:20}" for _, pair in columns))
    print(f"{'all':24}" + "".join(f"{sum(pair[0].values()):24}{sum(pair[1].values()):20}" for _, pair in columns))


if __name__ == "__main__":
    main(sys.argv[1:])
