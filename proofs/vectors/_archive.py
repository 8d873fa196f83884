"""The release: one archive with every system in every format, what reads it, and SHA256SUMS; everywhere the same bytes."""

import gzip
import hashlib
import io
import shutil
import tarfile
import tempfile
import zipfile
from pathlib import Path

import mpmath

from posref import vectors
from posref.vectors import formats
from proofs.vectors import BITS, _recipes

FORMATS = ("json", "txt", "npz", "safetensors", "raw", "c")
WHOLE = ("npz", "safetensors", "raw")


def write(directory, version):
    """posref-vectors-VERSION.tar.gz in `directory`, made if missing, and its checksum beside it: the path of the archive."""
    directory.mkdir(parents=True, exist_ok=True)
    name = f"posref-vectors-{version}"
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / name
        _fill(root)
        data = _packed(root)
    path = directory / f"{name}.tar.gz"
    path.write_bytes(data)
    path.with_suffix(".gz.sha256").write_text(f"{hashlib.sha256(data).hexdigest()}  {path.name}\n", encoding="ascii")
    return path


def _fill(root):
    for format in FORMATS:
        vectors.export(root / format, format)
    for path in sorted(path for folder in ("released", "kernels") for path in vectors.DIRECTORY.glob(f"{folder}/*.json")):
        document = vectors.read(path)
        _write(document, root, path.parent.name, path.stem)
        if path.parent.name == "kernels":
            _write(_whole(document), root, "kernels", f"{path.stem}-whole", WHOLE)
    for path in (root / "npz").rglob("*.npz"):
        _without_dates(path)
    for path in vectors.data_files(vectors.DIRECTORY):
        if path.suffix != ".json" or path.stem == "schema":
            target = root / path.relative_to(vectors.DIRECTORY)
            target.parent.mkdir(exist_ok=True)
            shutil.copy(path, target)
    files = sorted(path for path in root.rglob("*") if path.is_file())
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(root)}\n" for path in files]
    (root / "SHA256SUMS").write_text("".join(sums), encoding="ascii")


def _write(document, root, folder, name, chosen=FORMATS):
    """A file beside those of the systems, in the folder of each format."""
    for format in chosen:
        suffix, target = formats.ALIASES.get(format, format), root / format / folder
        target.mkdir(exist_ok=True)
        formats.FORMATS[suffix](document, target / f"{name}.{suffix}")


def _whole(document):
    """What the recipes say, written out."""
    with mpmath.workprec(BITS):
        return {**document, "flags": {}, "cases": [_recipes.whole(record) for record in document["cases"]]}


def _without_dates(path):
    """The same arrays under the earliest date that the format knows."""
    with zipfile.ZipFile(path) as old:
        members = [(zipfile.ZipInfo(name), old.read(name)) for name in old.namelist()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for member, data in members:
            new.writestr(member, data, zipfile.ZIP_DEFLATED)


def _packed(root):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in sorted(root.rglob("*")):
            archive.add(path, path.relative_to(root.parent), recursive=False, filter=_plain)
    return gzip.compress(buffer.getvalue(), mtime=0)


def _plain(member):
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    member.mode = 0o755 if member.isdir() else 0o644
    return member
