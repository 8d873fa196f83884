"""No generator and no definition divides plain numbers in float64: it would be rounded before the 200 bits begin.

Every `/` and `**` of the modules of proofs is replaced by a function that looks at its operands, in a process of its own.
"""

import ast
import importlib.machinery
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
PLAIN = (int, float, np.integer, np.floating)
FOUND = set()


def rounded(sign, a, b):
    """Whether a / b or a ** b of two plain numbers is not exact."""
    result = a / b if sign == "/" else a**b
    if not (isinstance(a, PLAIN) and isinstance(b, PLAIN) and isinstance(result, (float, np.floating)) and np.isfinite(result)):
        return False
    if sign == "**" and Fraction(b).denominator > 1:
        return True
    return Fraction(float(result)) != (Fraction(a) / Fraction(b) if sign == "/" else Fraction(a) ** int(b))


def look(sign, a, b):
    for x, y in np.nditer([a, b], ["refs_ok"]) if isinstance(a, np.ndarray) or isinstance(b, np.ndarray) else [(a, b)]:
        x, y = (each.item() if isinstance(each, np.ndarray) else each for each in (x, y))
        if not (sign == "/" and isinstance(y, PLAIN) and y == 0) and rounded(sign, x, y):
            frame = sys._getframe(1)
            FOUND.add(f"{Path(frame.f_code.co_filename).relative_to(ROOT)}:{frame.f_lineno}: {x!r} {sign} {y!r}")
    return a / b if sign == "/" else a**b


class Looking(ast.NodeTransformer):
    def visit_BinOp(self, node):
        self.generic_visit(node)
        signs = {ast.Div: "/", ast.Pow: "**"}
        if type(node.op) not in signs:
            return node
        sign = ast.Constant(signs[type(node.op)])
        return ast.copy_location(ast.Call(ast.Name("__look__", ast.Load()), [sign, node.left, node.right], []), node)


class Loader(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname):
        looking = Looking().visit(ast.parse(self.get_data(self.path)))
        return compile(ast.fix_missing_locations(looking), self.path, "exec")

    def exec_module(self, module):
        module.__look__ = look
        super().exec_module(module)


class Finder:
    @staticmethod
    def find_spec(name, path, target=None):
        spec = importlib.machinery.PathFinder.find_spec(name, path) if name.startswith("proofs") else None
        if spec and spec.origin and spec.origin.endswith(".py"):
            spec.loader = Loader(name, spec.origin)
        return spec


@pytest.mark.slow
def test_no_plain_numbers_are_divided():
    """All generators run once: 30 s."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.vectors.test_exact"], cwd=ROOT, capture_output=True, text=True, timeout=900
    )
    assert (run.returncode, run.stdout.splitlines()[-1:]) == (0, ["0 divisions are rounded"]), run.stdout + run.stderr


@pytest.mark.parametrize(("sign", "a", "b"), [("/", 1, 3), ("/", 1.0, np.int64(5)), ("**", 2, 0.5), ("**", 3.0, -1)])
def test_a_rounded_division_is_seen(sign, a, b):
    assert rounded(sign, a, b)


@pytest.mark.parametrize(("sign", "a", "b"), [("/", 1, 4), ("/", 6, 3), ("**", 3, 2), ("**", 2.0, -3), ("/", Fraction(1), 3)])
def test_an_exact_one_is_not(sign, a, b):
    assert not rounded(sign, a, b)


if __name__ == "__main__":
    sys.meta_path.insert(0, Finder)
    sys.dont_write_bytecode = True
    from proofs.vectors import _documents as generators

    for name, module in generators.systems().items():
        generators.document(name, module, generators.described(name))
    print(*sorted(FOUND), f"{len(FOUND)} divisions are rounded", sep="\n")
