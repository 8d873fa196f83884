"""The patches of examples/consumers, each applied in an empty folder and run with the project's released package.

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
    "keras_hub": ["keras-hub==0.32.0", "jax==0.10.2"],
    "mlx": ["mlx[cpu]==0.32.4"],
}


def run(project):
    """What pytest said of the tests that the patch adds."""
    patch = PATCHES / f"{project}.patch"
    with tempfile.TemporaryDirectory() as scratch:
        python = Path(scratch) / "venv" / "bin" / "python"
        wheel, _ = packages.build(Path(scratch) / "dist")
        subprocess.run([sys.executable, "-m", "venv", python.parents[1]], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "pytest", *PINS[project], wheel], check=True)
        subprocess.run(["git", "init", "-q", "."], cwd=scratch, check=True)
        subprocess.run(["git", "apply", patch], cwd=scratch, check=True)
        added = re.findall(r"^\+\+\+ b/(\S+)$", patch.read_text(), re.MULTILINE)
        command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *added]
        done = subprocess.run(command, cwd=scratch, env=os.environ | {"KERAS_BACKEND": "jax"}, capture_output=True, text=True)
    said = (done.stdout.splitlines() or [done.stderr])[-1].strip("= ")
    if done.returncode or " passed" not in said or "skipped" in said:
        raise AssertionError(f"{project}: {said}\n{done.stdout[-2000:]}")
    return f"{' '.join(PINS[project])}: {re.sub(' in .*', '', said)}"


if __name__ == "__main__":
    for each in sys.argv[1:] or PINS:
        print(run(each), flush=True)
