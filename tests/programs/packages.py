"""Wheel, archives of sources and site, and SHA256SUMS, always the same bytes: python -m tests.programs.packages DIR"""

import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import posref

ROOT = Path(__file__).parents[2]
BUILD = "import sys, setuptools.build_meta as b; to = sys.argv[1]; b.build_wheel(to); b.build_sdist(to)"
PYTHONS = ("3.10", "3.12", "3.13")
DATE = 315532800  # 1980-01-01, the first date that a wheel can hold


def build(folder):
    """The wheel and the archive of the sources, from what is committed, written to `folder`; their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        source, made = Path(scratch) / "source", Path(scratch) / "made"
        committed(source)
        made.mkdir()
        environment = os.environ | {"SOURCE_DATE_EPOCH": str(DATE)}
        subprocess.run([sys.executable, "-c", BUILD, made], cwd=source, env=environment, stdout=subprocess.DEVNULL, check=True)
        (wheel,), (archive,) = made.glob("*.whl"), made.glob("*.tar.gz")
        archive.write_bytes(without_dates(archive))
        return [Path(shutil.copy(path, folder)) for path in (wheel, archive)]


def site(folder):
    """The archive of the site; its path. It is no package, so it is not called posref-*."""
    path = folder / f"site-{posref.__version__}.tar.gz"
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run(
            [sys.executable, ROOT / "docs" / "make.py", "-o", Path(scratch) / "site"], check=True, stdout=subprocess.DEVNULL
        )
        with tarfile.open(path, "w:gz") as archive:
            archive.add(Path(scratch) / "site", "site")
    path.write_bytes(without_dates(path))
    return path


def release(folder):
    """All that a release uploads, and SHA256SUMS, written to `folder`; the paths of wheel, sources and site."""
    files = [*build(folder), site(folder)]
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (folder / "SHA256SUMS").write_text("".join(sums))
    return files


def committed(folder):
    """Copy what git lists, with the same permissions everywhere: what is not committed is not in a checkout."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, target)
        target.chmod(0o755 if name == ".ci/run" else 0o644)


def without_dates(path):
    """The bytes of a .tar.gz whose members are sorted and have no date and no owner."""
    buffer = io.BytesIO()
    with tarfile.open(path) as old, tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as new:
        for member in sorted(old.getmembers(), key=lambda member: member.name):
            member.mtime, member.uid, member.gid, member.uname, member.gname = DATE, 0, 0, "", ""
            member.pax_headers = {}
            new.addfile(member, old.extractfile(member))
    packed = gzip.compress(buffer.getvalue(), mtime=0)
    return packed[:9] + b"\xff" + packed[10:]  # the operating system: Python 3.11 writes Unix, 3.13 unknown


def interpreter(version):
    """The Python of this version: on the path, or installed by pyenv; RuntimeError if there is none that runs."""
    installed = sorted(Path.home().glob(f".pyenv/versions/{version}*/bin/python"), reverse=True)
    for python in (f"python{version}", *map(str, installed)):
        if shutil.which(python) and not subprocess.run([python, "--version"], capture_output=True).returncode:
            return python
    raise RuntimeError(f"Python {version} is not installed: nothing was tested with it")


def runs_with(version, file):
    """Install one of the files with NumPy alone in a new environment of this Python, and run what an empty machine would."""
    python = interpreter(version)
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([python, "-m", "venv", scratch], check=True, capture_output=True)
        bin = Path(scratch) / "bin"
        subprocess.run([bin / "pip", "install", "-q", file.resolve()], check=True, capture_output=True, timeout=600)
        for command in (["vectors", "verify"], ["list"], ["demo"], ["check", "--as", "alibi.bias", "--contract"]):
            subprocess.run([bin / "posref", *command], cwd=scratch, check=True, capture_output=True, timeout=300)
        code = "import numpy, platform, sys; print('Python', platform.python_version(), 'with NumPy', numpy.__version__)"
        return subprocess.run([bin / "python", "-c", code], check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    print(*release(Path(sys.argv[1])), sep="\n")
