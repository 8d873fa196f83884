"""The site in a real browser: every test of tests/test_browser.py, and none may be skipped."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run() -> str:
    """What pytest said in its last line; RuntimeError if the browser or its driver is missing."""
    command = [sys.executable, "-m", "pytest", "-q", "-m", "slow", "tests/test_browser.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=3000, check=False)
    said = (done.stdout.splitlines() or [""])[-1].strip("= ")
    if "skipped" in said:
        raise RuntimeError(f"{said}: pip install playwright, apt-get install chromium")
    if done.returncode:
        raise AssertionError("\n".join(done.stdout.splitlines()[-15:]))
    browser = next(filter(shutil.which, ("chromium", "chromium-browser", "google-chrome")))
    version = subprocess.run([browser, "--version"], capture_output=True, text=True, check=False).stdout.strip()
    return f"{version}: {said}"


if __name__ == "__main__":
    print(run())
