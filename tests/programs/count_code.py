"""Code by folder: logical statements, without docstrings, comments, blank lines and however they are wrapped.

python tests/programs/count_code.py              this checkout
python tests/programs/count_code.py v0.1.0       two columns: a revision of git, and this checkout
"""

import ast
import io
import subprocess
import sys
import tarfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


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


def main(revisions):
    columns = [(revision, counted(at(revision))) for revision in revisions] + [("here", counted(here()))]
    print(f"{'folder':24}" + "".join(f"{name + ' statements':>24}{name + ' lines':>20}" for name, _ in columns))
    for name in sorted(set().union(*(pair[0] for _, pair in columns))):
        print(f"{name:24}" + "".join(f"{pair[0][name]:24}{pair[1][name]:20}" for _, pair in columns))
    print(f"{'all':24}" + "".join(f"{sum(pair[0].values()):24}{sum(pair[1].values()):20}" for _, pair in columns))


if __name__ == "__main__":
    main(sys.argv[1:])
