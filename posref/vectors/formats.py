"""Renderings of vector files: JSON, flat text, npz, safetensors, raw little-endian, C header.

Each rendering is complete: numbers, settings, models with their coefficients, flags, conventions, and elements to ignore.
`export` writes a whole rendering or nothing. JSON and text hold the same decimal numbers, in the shortest form that reads
back to the same float64. Beside binary numbers stand the `settings`, as in the text rendering.
"""

import json
import os
import re
import shutil
import tempfile
from pathlib import Path

import numpy as np

OF_MODELS = ("growth", "rms")  # numbers of some models
MEANT = ("id", "op", "params", "tensors", "expected", "gauge")


def canonical(record):
    """The text whose sha256 a case carries: its inputs and outputs as JSON, with sorted keys and no blanks."""
    return json.dumps({key: record[key] for key in MEANT}, sort_keys=True, separators=(",", ":"), allow_nan=False)


def to_json(value, depth=4, indent=""):
    """JSON with one item per line down to `depth`, so that every tensor is on one line.

    >>> print(to_json({"a": {"data": [1, 2.5]}}, depth=1), end="")
    {
     "a": {"data":[1,2.5]}
    }
    """
    return _expand(value, depth, indent) + "\n"


def head(document):
    """The lines before the first case: `WORD NAME REST`. A line with # is a comment; a blank in a name becomes a point."""
    yield f"# {document['title']} {document['encoding']}.json holds the same"
    yield f"schema {document['schema']} {document['vectors_version']}"
    for name, coefficients in document["models"].items():
        yield " ".join(("model", name, *map(repr, coefficients.values())))
    yield from (f"source {text}" for text in document["source"])
    yield from (f"convention {name.replace(' ', '.')} {text}" for name, text in document["conventions"].items())
    yield from (f"flag {name} {flag['bug']}" for name, flag in document["flags"].items())


def settings(record):
    """The lines of a case except its tensors, among them `growth`, `rms` MODEL NUMBER and `fingerprint FLAG NUMBERS..`."""
    for name, value in _words(record).items():
        yield f"{name} {value}"
    yield from (f"param {name} {_word(value)}" for name, value in record["params"].items())
    yield from (f"{name} {model} {number!r}" for name in OF_MODELS for model, number in record[name].items())
    for flag in record["flags"]:
        yield " ".join(("fingerprint", flag, *map(repr, record["fingerprints"].get(flag, ()))))


def to_text(document):
    """Plain text: `head`, and for every case its `settings` and lines `tensor NAME RANK SIZES.. VALUES..`.

    A stage is the tensor stage.NAME and the result is `expected`; its sensitivities are cond.amp, cond.phase and cond.out.
    Elements without meaning have a 1 in the tensor `ignore`.
    """
    lines = [*head(document)]
    for record in document["cases"]:
        lines += [*settings(record), *(_line(name, tensor["shape"], tensor["data"]) for name, tensor in tensors(record))]
    return "\n".join(lines) + "\n"


def tensors(record):
    """(name, {"shape", "data"}) of every tensor of a case, with the name that it has outside JSON."""
    shape = record["expected"]["shape"]
    yield from record["tensors"].items()
    yield from ((f"stage.{name}", tensor) for name, tensor in record["stages"].items())
    yield "expected", record["expected"]
    yield from ((f"cond.{name}", {"shape": shape, "data": values}) for name, values in (record["cond"] or {}).items())
    if record["ignore"]:
        yield "ignore", {"shape": shape, "data": record["ignore"]}


def to_npz(document, path):
    """One array `ID:NAME` per tensor, and the array `settings`, a text."""
    np.savez_compressed(path, settings=np.array(_settings(document)), **dict(_arrays(document)))


def to_safetensors(document, path):
    """One tensor `ID:NAME` per tensor, and `settings` in the metadata."""
    index, blobs, offset = {"__metadata__": {"settings": _settings(document)}}, [], 0
    for name, numbers in _arrays(document):
        blobs.append(numbers.astype(numbers.dtype.newbyteorder("<")).tobytes())
        span = [offset, offset := offset + len(blobs[-1])]
        index[name] = {"dtype": f"{numbers.dtype.kind}64".upper(), "shape": list(numbers.shape), "data_offsets": span}
    text = json.dumps(index, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(blobs))


def to_raw(document, path):
    """All numbers as little-endian float64 or int64 in one file.

    The index is the text whose lines of tensors are `tensor NAME f64|i64 BYTE_OFFSET RANK SIZES..`.
    """
    lines, blobs, offset = [*head(document)], [], 0
    for record in document["cases"]:
        lines += settings(record)
        for name, tensor in tensors(record):
            numbers, shape = _numbers(tensor), tensor["shape"]
            lines.append(" ".join(map(str, ("tensor", name, f"{numbers.dtype.kind}64", offset, len(shape), *shape))))
            blobs.append(numbers.astype(numbers.dtype.newbyteorder("<")).tobytes())
            offset += len(blobs[-1])
    path.write_bytes(b"".join(blobs))
    path.with_suffix(".index").write_text("\n".join(lines) + "\n", encoding="ascii")


TYPES = """#ifndef POSREF_VECTORS
#define POSREF_VECTORS
#include <stddef.h>
/* Lists end with an entry whose name is NULL. `number` is 0 where the text is none; a tensor has f64 or i64. */
typedef struct { const char *name; double c_phase, c_amp, c_out, floor; } posref_model;
typedef struct { const char *name, *text; double number; } posref_setting;
typedef struct { const char *name; int size; double sums[4]; } posref_fingerprint;
typedef struct { const char *name; int rank; long long shape[8]; const double *f64; const long long *i64; } posref_tensor;
typedef struct {
  const char *name, *op, *gauge, *compare, *status, *models, *sha256, *comment;
  const posref_setting *params, *growth, *rms;
  const posref_fingerprint *fingerprints;
  const posref_tensor *tensors;
} posref_case;
#endif"""

ENDS = {
    "model": "{NULL, 0, 0, 0, 0}",
    "setting": "{NULL, NULL, 0}",
    "fingerprint": "{NULL, 0, {0}}",
    "tensor": "{NULL, 0, {0}, NULL, NULL}",
    "case": "{" + ", ".join(["NULL"] * 13) + "}",
}


def to_c(document, name=None):
    """A C header: an array for every tensor, and the tables `posref_NAME_cases`, `_models`, `_conventions`, `_flags`."""
    system = f"posref_{_identifier(name or document['encoding'])}"
    lines = [f"/* {document['title']} {document['schema']}; CC0 1.0 */", TYPES, f"#ifndef {system.upper()}"]
    lines += [f"#define {system.upper()}"]
    table = []
    for record in document["cases"]:
        name = _identifier(record["id"])
        entries = []
        for called, tensor in tensors(record):
            own, whole, shape = _identifier(f"{record['id']}_{called}"), _numbers(tensor).dtype.kind == "i", tensor["shape"]
            kind = "long long" if whole else "double"
            lines.append(f"static const {kind} {own}[] = {{{', '.join(map(repr, tensor['data'])) or '0'}}};")
            sizes, places = ", ".join(map(str, shape)) or "0", f"NULL, {own}" if whole else f"{own}, NULL"
            entries.append(f'{{"{called}", {len(shape)}, {{{sizes}}}, {places}}}')
        lines.append(_c_list("tensor", f"{name}_tensors", entries))
        lines.append(_c_list("setting", f"{name}_params", _c_settings(record["params"])))
        for numbers in OF_MODELS:
            lines.append(_c_list("setting", f"{name}_{numbers}", _c_settings(record[numbers])))
        prints = [(flag, record["fingerprints"].get(flag, ())) for flag in record["flags"]]
        entries = [f'{{"{flag}", {len(sums)}, {{{", ".join(map(repr, sums)) or "0"}}}}}' for flag, sums in prints]
        lines.append(_c_list("fingerprint", f"{name}_fingerprints", entries))
        words = ", ".join(json.dumps({"comment": "", **_words(record)}[word]) for word in WORDS)
        table.append(f"{{{words}, {name}_params, {name}_growth, {name}_rms, {name}_fingerprints, {name}_tensors}}")
    lines.append(_c_list("case", f"{system}_cases", table))
    models = [f'{{"{name}", {", ".join(map(repr, each.values()))}}}' for name, each in document["models"].items()]
    lines.append(_c_list("model", f"{system}_models", models))
    lines.append(_c_list("setting", f"{system}_conventions", _c_settings(document["conventions"])))
    bugs = {name: f"{flag['bug']}" for name, flag in document["flags"].items()}
    lines.append(_c_list("setting", f"{system}_flags", _c_settings(bugs)))
    return "\n".join([*lines, "#endif"]) + "\n"


FORMATS = {
    "json": lambda document, path: path.write_text(to_json(document), encoding="ascii"),
    "txt": lambda document, path: path.write_text(to_text(document), encoding="ascii"),
    "npz": to_npz,
    "safetensors": to_safetensors,
    "bin": to_raw,
    "h": lambda document, path: path.write_text(to_c(document, path.stem), encoding="ascii"),
}
ALIASES = {"raw": "bin", "c": "h"}


def export(directory, format, pattern="*"):
    """Write the cases whose id matches `pattern` to `directory`, one file per system; return the list of paths.

    `format` is json, txt, npz, safetensors, raw (NAME.bin and NAME.index) or c (NAME.h). Existing files of these names are
    replaced; if a rendering fails, no file is. ValueError for an unknown format or a pattern that matches nothing; OSError if
    `directory` cannot be written.
    """
    from posref import vectors

    suffix = ALIASES.get(format, format)
    if suffix not in FORMATS:
        raise ValueError(f"vectors.export: format is {format!r}, expected 'json', 'txt', 'npz', 'safetensors', 'raw' or 'c'")
    others = [case.id for status in ("reject", "withdrawn") for case in vectors.cases(pattern, status)]
    wanted = vectors.ids(pattern) | {id: f"{id.split('/')[0]}.json" for id in others}
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
        said = f"{problem.filename}: {problem.strerror}"
        raise OSError(f"vectors.export: cannot write to {directory} ({said}); choose another directory") from problem
    try:
        for file in sorted({*wanted.values()}):
            document = vectors.read(vectors.DIRECTORY / file)
            document["cases"] = [record for record in document["cases"] if record["id"] in wanted]
            FORMATS[suffix](document, staging / f"{Path(file).stem}.{suffix}")
        written = [directory / path.name for path in sorted(staging.iterdir())]
        for path in written:
            os.replace(staging / path.name, path)
        return written
    finally:
        shutil.rmtree(staging)


WORDS = ("case", "op", "gauge", "compare", "status", "models", "sha256", "comment")


def _words(record):
    """{first word of a line: its text} for the properties of a case that are words."""
    words = {
        "case": record["id"],
        "compare": "equal" if record["cond"] is None else "tolerance",
        "models": " ".join(record["models"]),
    }
    return {name: words.get(name, record.get(name)) for name in WORDS if words.get(name, record.get(name))}


def _settings(document):
    return "\n".join([*head(document), *(line for record in document["cases"] for line in settings(record))]) + "\n"


def _arrays(document):
    for record in document["cases"]:
        for name, tensor in tensors(record):
            yield f"{record['id']}:{name}", _numbers(tensor).reshape(tensor["shape"])


def _identifier(name):
    return re.sub(r"\W", "_", name, flags=re.ASCII)


def _c_list(kind, name, entries):
    return f"static const posref_{kind} {name}[] = {{{', '.join([*entries, ENDS[kind]])}}};"


def _c_settings(values):
    for name, value in values.items():
        number = float(value) if isinstance(value, (int, float)) else 0.0
        yield f"{{{json.dumps(name)}, {json.dumps(_word(value))}, {number!r}}}"


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
