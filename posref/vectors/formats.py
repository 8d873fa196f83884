"""Renderings of vector files: JSON, flat text, npz, raw little-endian, C header.

`export` writes all of a rendering or nothing. JSON and text hold the same numbers, decimal, shortest form that reads back
to the same float64.
"""

import json
import os
import re
import shutil
import tempfile
from pathlib import Path

import numpy as np


def canonical(record):
    """The text whose sha256 a case carries: JSON of the case without it, keys sorted, no blanks."""
    without = {key: value for key, value in record.items() if key != "sha256"}
    return json.dumps(without, sort_keys=True, separators=(",", ":"), allow_nan=False)


def to_json(value, depth=4, indent=""):
    """JSON, one item a line down to `depth`, so that every tensor is one line.

    >>> print(to_json({"a": {"data": [1, 2.5]}}, depth=1), end="")
    {
     "a": {"data":[1,2.5]}
    }
    """
    return _expand(value, depth, indent) + "\n"


def to_text(document):
    """The flat twin: lines `case ID`, `op NAME`, `param NAME VALUE`, `tensor NAME RANK SIZES.. VALUES..`; # begins a comment.

    Stages are named stage.NAME; the outcome is `expected`; its sensitivities are cond.amp, cond.phase, cond.out.
    """
    lines = [f"# {document['title']} Generated from {document['encoding']}.json, {document['schema']}"]
    for record in document["cases"]:
        lines += [f"case {record['id']}", f"op {record['op']}", f"gauge {record['gauge']}"]
        lines += [f"param {name} {_word(value)}" for name, value in record["params"].items()]
        lines += [_line(name, tensor["shape"], tensor["data"]) for name, tensor in tensors(record)]
    return "\n".join(lines) + "\n"


def tensors(record):
    """Every tensor of a case under the name it has outside JSON: pairs (name, {"shape", "data"})."""
    shape = record["expected"]["shape"]
    yield from record["tensors"].items()
    yield from ((f"stage.{name}", tensor) for name, tensor in record["stages"].items())
    yield "expected", record["expected"]
    yield from ((f"cond.{name}", {"shape": shape, "data": values}) for name, values in (record["cond"] or {}).items())


def to_npz(document, path):
    """One array `ID:NAME` per tensor."""
    arrays = {f"{r['id']}:{name}": _numbers(t).reshape(t["shape"]) for r in document["cases"] for name, t in tensors(r)}
    np.savez_compressed(path, **arrays)


def to_raw(document, path):
    """All numbers as little-endian float64 or int64 in one file; the index has lines `ID NAME f64|i64 BYTE_OFFSET SIZES..`."""
    index, blobs, offset = [], [], 0
    for record in document["cases"]:
        for name, tensor in tensors(record):
            numbers = _numbers(tensor)
            kind = "i64" if numbers.dtype.kind == "i" else "f64"
            index.append(" ".join(map(str, (record["id"], name, kind, offset, *tensor["shape"]))))
            blobs.append(numbers.astype("<i8" if kind == "i64" else "<f8").tobytes())
            offset += len(blobs[-1])
    path.write_bytes(b"".join(blobs))
    path.with_suffix(".index").write_text("\n".join(index) + "\n", encoding="ascii")


def to_c(document):
    """A header: `static const double NAME[]` (or long long) for every tensor, its shape in a comment."""
    lines = [f"/* {document['title']} {document['schema']}; CC0 1.0 */", "#pragma once", ""]
    for record in document["cases"]:
        lines.append(f"/* {record['id']}: op {record['op']}, {json.dumps(record['params'])} */")
        for name, tensor in tensors(record):
            kind = "long long" if _numbers(tensor).dtype.kind == "i" else "double"
            identifier = re.sub(r"\W", "_", f"{record['id']}_{name}", flags=re.ASCII)
            size = "".join(f"[{n}]" for n in tensor["shape"])
            lines.append(f"static const {kind} {identifier}[] = {{{', '.join(map(repr, tensor['data']))}}}; /* {size} */")
    return "\n".join(lines) + "\n"


FORMATS = {
    "json": lambda document, path: path.write_text(to_json(document), encoding="ascii"),
    "txt": lambda document, path: path.write_text(to_text(document), encoding="ascii"),
    "npz": to_npz,
    "bin": to_raw,
    "h": lambda document, path: path.write_text(to_c(document), encoding="ascii"),
}
ALIASES = {"raw": "bin", "c": "h"}


def export(directory, format, pattern="*"):
    """Write the cases whose id matches `pattern` to `directory`, one file a system: the list of paths written.

    `format` is json, txt, npz, raw (NAME.bin and NAME.index) or c (NAME.h). Existing files of these names are replaced; if
    a rendering fails, none is. ValueError for an unknown format or a pattern that matches nothing; OSError if `directory`
    cannot be written.
    """
    from posref import vectors

    suffix = ALIASES.get(format, format)
    if suffix not in FORMATS:
        raise ValueError(f"vectors.export: format is {format!r}, expected 'json', 'txt', 'npz', 'raw' or 'c'")
    wanted = {case.id for case in vectors.cases(pattern)}
    if not wanted:
        raise ValueError(
            f"vectors.export: no case matches {pattern!r}; write 'rope/*' for a system, "
            f"the systems are {', '.join(vectors.names())}"
        )
    if directory == "":
        raise ValueError("vectors.export: directory is '', expected a name; write '.' for the current one")
    directory = Path(directory)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(dir=directory, prefix=".posref-"))
    except OSError as problem:
        raise OSError(f"vectors.export: cannot write to {directory} ({problem}); choose another directory") from problem
    try:
        for name in sorted({id.split("/")[0] for id in wanted}):
            document = vectors.read(vectors.DIRECTORY / f"{name}.json")
            document["cases"] = [record for record in document["cases"] if record["id"] in wanted]
            FORMATS[suffix](document, staging / f"{name}.{suffix}")
        written = [directory / path.name for path in sorted(staging.iterdir())]
        for path in written:
            os.replace(staging / path.name, path)
        return written
    finally:
        shutil.rmtree(staging)


def _expand(value, depth, indent):
    if depth == 0 or not value or not isinstance(value, (dict, list)):
        return json.dumps(value, separators=(",", ":"), allow_nan=False)
    inner = indent + " "
    if isinstance(value, dict):
        items = [f"{json.dumps(key)}: {_expand(item, depth - 1, inner)}" for key, item in value.items()]
    elif all(not isinstance(item, (dict, list)) for item in value):
        return json.dumps(value, separators=(",", ":"), allow_nan=False)
    else:
        items = [_expand(item, depth - 1, inner) for item in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return opening + "\n" + ",\n".join(inner + item for item in items) + "\n" + indent + closing


def _line(name, shape, data):
    return " ".join(map(str, ("tensor", name, len(shape), *shape, *map(repr, data))))


def _word(value):
    return json.dumps(value) if isinstance(value, bool) else str(value)


def _numbers(tensor):
    return np.array(tensor["data"], dtype=np.int64 if all(isinstance(n, int) for n in tensor["data"]) else np.float64)
