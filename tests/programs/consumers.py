"""The patches of examples/consumers: each is applied in an empty folder, checked by its project's formatter and linter, and run
with its project's released package.

python -m tests.programs.consumers [PROJECT ..]
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.programs import packages

ROOT = Path(__file__).parents[2]
PATCHES = ROOT / "examples" / "consumers"
PINS = {  # what is installed beside posref and pytest
    "onnx": ["onnx==1.23.2"],
    "keras_hub": ["keras-hub==0.32.0", "jax==0.10.2", "grain==0.2.18"],  # the base class of keras-hub's tests imports grain
    "mlx": ["mlx[cpu]==0.32.4"],
}
TOOLS = {  # the versions that requirements-lintrunner.txt and .pre-commit-config.yaml of the project name
    "onnx": ["ruff==0.16.0"],
    "keras_hub": ["ruff==0.9.2"],
    "mlx": ["black==26.1.0", "isort==7.0.0"],
}
SETTINGS = {  # of these tools for a test file, from the project's pyproject.toml
    "onnx": """[tool.ruff]
target-version = "py310"
[tool.ruff.lint]
select = ["A", "ARG", "B", "BLE", "C4", "D", "DTZ", "E", "F", "FA", "FLY", "FURB", "G", "I", "ISC", "LOG", "N", "NPY", "PERF",
    "PGH", "PIE", "PL", "PYI", "RET", "RSE", "RUF", "S", "SIM", "SLOT", "T10", "TC", "TID", "TRY", "UP", "W", "YTT"]
ignore = ["D1", "D205", "D400", "D415", "E501", "N803", "N806", "NPY002", "PLR0913", "PLR0917", "PLR2004", "S101", "S311",
    "TRY003"]
isort = {known-first-party = ["onnx"], required-imports = ["from __future__ import annotations"]}
pydocstyle.convention = "google"
""",
    "keras_hub": """[tool.ruff]
line-length = 80
[tool.ruff.lint]
select = ["E", "F", "I"]
isort = {force-single-line = true, known-first-party = ["keras_hub"]}
""",
    "mlx": "",
}
STYLE = {  # a command for each tool
    "onnx": ["ruff format --check", "ruff check"],
    "keras_hub": ["ruff format --check", "ruff check"],
    "mlx": ["black --check", "isort --profile=black --check"],
}
# The base class of mlx's tests is in no package. It also chooses a device; here there is only the CPU.
STAND_IN = "from unittest import TestCase as MLXTestCase\nfrom unittest import main as MLXTestRunner\n"


def apply(patch, folder):
    """The files that the patch adds to `folder`, a new repository: `git apply` accepts the patch, `git am` commits it."""
    author = ["-c", "user.name=posref", "-c", "user.email=posref@example.org"]
    for command in (["init", "-q", "."], ["apply", "--check", patch], [*author, "am", "-q", patch]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return re.findall(r"^\+\+\+ b/(\S+)$", patch.read_text(), re.MULTILINE)


def run(project):
    """What pytest said of the tests that the patch adds."""
    with tempfile.TemporaryDirectory() as scratch:
        python, folder = Path(scratch) / "venv" / "bin" / "python", Path(scratch) / "project"
        folder.mkdir()
        wheel, _ = packages.build(Path(scratch) / "dist")
        subprocess.run([sys.executable, "-m", "venv", python.parents[1]], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "pytest", *PINS[project], *TOOLS[project], wheel], check=True)
        added = apply(PATCHES / f"{project}.patch", folder)
        (folder / "pyproject.toml").write_text(SETTINGS[project])
        for command in STYLE[project]:
            subprocess.run([python, "-m", *command.split(), *added], cwd=folder, check=True)
        if project == "mlx":
            (folder / added[0]).with_name("mlx_tests.py").write_text(STAND_IN)
        # tf.test.TestCase, from which keras-hub's base class inherits, has a test_session that is always skipped
        command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "not test_session", *added]
        done = subprocess.run(command, cwd=folder, env=os.environ | {"KERAS_BACKEND": "jax"}, capture_output=True, text=True)
    said = (done.stdout.splitlines() or [done.stderr])[-1].strip("= ")
    if done.returncode or " passed" not in said or "skipped" in said:
        raise AssertionError(f"{project}: {said}\n{done.stdout[-2000:]}")
    said = re.sub(r" in .*|, \d+ deselected", "", said)
    return f"{' '.join(PINS[project])}: {said}, checked by {' and '.join(TOOLS[project])}"


if __name__ == "__main__":
    for each in sys.argv[1:] or PINS:
        print(run(each), flush=True)
