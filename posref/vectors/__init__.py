"""Golden vectors: exact numbers to test any implementation against, and their loader.

>>> from posref import vectors
>>> one = vectors.case("rope/half/d4-b1e4/one")
>>> one.tensors["x"], one.expected.round(4)
(array([[1., 2., 3., 4.]]), array([[-1.9841,  1.9599,  2.4624,  4.0198]]))

The values were computed with 200 bits from the papers' formulas, not by posref's functions, and rounded once. Every case
states how sensitive each element is, so that `error` can judge float32 and bfloat16 results; `README.md` beside this file
describes the format, also for other languages. The data are in the public domain (CC0).
"""

import difflib
import fnmatch
import hashlib
import json
import math
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from posref import _require
from posref.vectors.formats import FORMATS, canonical, export
from posref.vectors.models import MODELS, Model, error, fingerprint, named, spread, tolerance, worst
from posref.vectors.schema import problems

__all__ = [
    "FORMATS",
    "MODELS",
    "Case",
    "Model",
    "System",
    "case",
    "cases",
    "error",
    "export",
    "fingerprint",
    "ids",
    "kernels",
    "load",
    "named",
    "names",
    "read",
    "released",
    "spread",
    "tolerance",
    "verify",
    "worst",
]

DIRECTORY = Path(__file__).parent
SCHEMA = "posref-vectors-3"
CATALOGUE = "catalogue.tsv"
LARGEST = 2**24  # bytes of a file that is read; the largest has 1 MB
REMEDY = "restore it from the release or run python -m proofs.vectors in the repository"


class Case(NamedTuple):
    """One case, with float64 or int64 arrays. `cond` is None if results must be equal, `ignore` None if every element counts.

    `growth` and `rms` have numbers for some precision models: see `posref.vectors.models`.
    """

    id: str
    op: str
    flags: tuple
    status: str
    models: tuple
    params: dict
    tensors: dict
    stages: dict
    expected: np.ndarray
    cond: dict | None
    gauge: str
    comment: str
    fingerprints: dict
    ignore: np.ndarray | None
    growth: dict
    rms: dict


class System(NamedTuple):
    """One file: the entries that all its cases share, and the cases."""

    name: str
    title: str
    source: list
    conventions: dict
    flags: dict
    cases: list


def names():
    """The systems that have vectors, sorted.

    >>> "rope" in names()
    True
    """
    return sorted(path.stem for path in DIRECTORY.glob("*.json") if path.stem != "schema")


def load(name):
    """One system with all its cases. ValueError for an unknown name or a damaged file.

    >>> load("rope").title
    'RoPE: rotary position embedding.'
    """
    if name not in names():
        raise ValueError(
            f"vectors.load: there are no vectors of {name!r}; there are {', '.join(names())}{_require.near(name, names())}"
        )
    return _system(DIRECTORY / f"{name}.json")


def _system(path):
    document = read(path)
    try:
        found = [_case(record) for record in document["cases"]]
        return System(
            document["encoding"], document["title"], document["source"], document["conventions"], document["flags"], found
        )
    except (AttributeError, LookupError, OverflowError, TypeError, ValueError) as problem:  # the schema was not asked
        said = f"{path} is damaged ({type(problem).__name__}: {problem}); `posref vectors verify` says where"
        raise ValueError(f"vectors.load: {said}; {REMEDY}") from problem


def released(model):
    """The vectors of a released model at its own sizes: frequencies, rotated features, a step at the end of its trained length.

    >>> [c.id for c in released("llama-3.1-8b").cases]
    ['rope/llama-3.1-8b/all/inv_freq', 'rope/llama-3.1-8b/all/turned', 'rope/llama-3.1-8b/all/step']
    """
    found = sorted(path.stem for path in DIRECTORY.glob("released/*.json"))
    if model.lower() not in found:
        raise ValueError(
            f"vectors.released: there are no vectors of {model!r}; there are {', '.join(found)}{_require.near(model, found)}"
        )
    return _system(DIRECTORY / "released" / f"{model.lower()}.json")


def kernels(pattern="*"):
    """Cases at the sizes of kernels. `posref.vectors.recipes` makes their inputs and selects the outputs to compare.

    >>> [c.id for c in kernels("rope/kernel/d*")]
    ['rope/kernel/decode-h4-k2-n1-m4097-d128']
    """
    files = sorted(DIRECTORY.glob("kernels/*.json"))
    return [c for path in files for c in _system(path).cases if fnmatch.fnmatchcase(c.id, pattern)]


def cases(pattern="*", status="active"):
    """A list of all cases with this status whose id matches the shell pattern, in file order.

    An implementation must refuse the cases of status "reject".

    >>> [c.id for c in cases("rope/*/d4-b1e4/one")]
    ['rope/half/d4-b1e4/one', 'rope/interleaved/d4-b1e4/one']
    >>> [c.comment for c in cases("rope/*odd-dim", status="reject")]
    ['range: Features turn in pairs.', 'range: Features turn in pairs.']
    """
    if not isinstance(pattern, str):
        raise TypeError(f"vectors.cases: pattern is {pattern!r}, expected a string such as 'rope/half/*'")
    system = pattern.split("/")[0]
    chosen = [system] if system in names() else names() if set("*?[") & set(system) else []
    return [c for name in chosen for c in load(name).cases if c.status == status and fnmatch.fnmatchcase(c.id, pattern)]


def ids(pattern="*"):
    """{id: file} of all active cases that match a shell pattern.

    Patterns match ids. For released models and kernels they match files ("released/*", "llama*", "kernels/*") or whole ids.

    >>> [*ids("llama-3.1-8b")]
    ['rope/llama-3.1-8b/all/inv_freq', 'rope/llama-3.1-8b/all/turned', 'rope/llama-3.1-8b/all/step']
    """
    if not isinstance(pattern, str):
        raise TypeError(f"vectors.ids: pattern is {pattern!r}, expected a string such as 'rope/half/*'")
    return {id: file for id, file, _, status, *_ in _rows() if status == "active" and _matches(id, file, pattern)}


def _matches(id, file, pattern):
    if "/" not in file:
        return fnmatch.fnmatchcase(id, pattern)
    called = (file.removesuffix(".json"), Path(file).stem) if pattern != "*" else ()
    return id == pattern or any(fnmatch.fnmatchcase(name, pattern) for name in called)


def case(id):
    """The case with this id. ValueError if there is no such case, or if it was withdrawn; the error gives the reason.

    >>> case("rope/half/d4-b1e4/one").op
    'rotate'
    """
    if not isinstance(id, str):
        raise TypeError(f"vectors.case: id is {id!r}, expected a string such as 'rope/half/d4-b1e4/one'")
    found = {each.id: each for each in load(id.split("/")[0]).cases}
    if id in found and found[id].status == "withdrawn":
        raise ValueError(f"vectors.case: {id!r} is withdrawn: {found[id].comment}")
    if id in found:
        return found[id]
    near = difflib.get_close_matches(id, found, n=1)
    meant = f"did you mean {near[0]!r}? " if near else ""
    raise ValueError(f"vectors.case: there is no case {id!r}; {meant}vectors.cases('{id.split('/')[0]}/*') lists them")


def read(path):
    """The parsed file, a dict. ValueError that names the file and the remedy if the file is damaged."""
    try:
        document = json.loads(_content(path).decode("ascii"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as problem:
        raise ValueError(f"vectors.read: {path} is not a complete vector file ({problem}); {REMEDY}") from problem
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise ValueError(f"vectors.read: {path} does not say schema {SCHEMA!r}; {REMEDY}")
    return document


def verify(directory=None):
    """A list of sentences, one for each fault of the files in `directory` (default: the shipped files); empty if all are right.

    Checked: MANIFEST.sha256 against every file, the schema, the hash, shapes, flags and models of every case, unique ids, the
    catalogue, and that an id of the shipped files has its numbers. A fault of a file is always a sentence, never an error.

    >>> verify()
    []
    """
    directory = DIRECTORY if directory is None else Path(directory)
    manifest = directory / "MANIFEST.sha256"
    if not os.path.isfile(manifest):
        return [
            f"{manifest} is missing; pass a complete copy of posref/vectors; exported files have none and cannot be verified"
        ]
    there = {path.relative_to(directory).as_posix(): path for path in data_files(directory)}
    try:
        lines = _content(manifest).decode("utf-8", "backslashreplace").splitlines()
    except (OSError, ValueError) as problem:
        return [f"{manifest.name} cannot be read: {problem}"]
    shipped = {} if directory == DIRECTORY else {id: digest for id, *_, digest in _rows()}
    listed = [line.partition("  ") for line in lines]
    known = {name for _, _, name in listed}
    found = [f"{name} is not listed in {manifest.name}" for name in there if name not in known]
    documents = {}
    for n, (digest, blanks, name) in enumerate(listed, 1):
        if not blanks:
            found.append(f"line {n} of {manifest.name} is {digest[:100]!r}, expected a sha256, two blanks and a name")
        elif name not in there:
            found.append(f"{name} is listed in {manifest.name} and missing")
        else:
            found += _damage(there[name], name, digest, documents, shipped)
    if not found and (CATALOGUE not in there or _content(there[CATALOGUE]) != catalogue(documents).encode()):
        found.append(f"{CATALOGUE} does not list the cases as they are" if CATALOGUE in there else f"{CATALOGUE} is missing")
    return found


def differing(directory):
    """The names of data files in `directory` that the installed posref does not have, or has with other content."""
    names = [path.relative_to(directory).as_posix() for path in data_files(Path(directory))]
    return [
        name
        for name in names
        if not os.path.isfile(DIRECTORY / name) or _content(directory / name) != _content(DIRECTORY / name)
    ]


def _damage(path, name, digest, documents, shipped):
    """The faults of one file; its parsed document is added to `documents`."""
    found = []
    try:
        if hashlib.sha256(_content(path)).hexdigest() != digest:
            found.append(f"{name} does not have the sha256 that MANIFEST.sha256 lists")
        if path.suffix == ".json" and path.stem != "schema":
            documents[name] = document = read(path)
            found += [f"{name}: {problem}" for problem in list(problems(document)) or list(_problems(document, shipped))]
    except OSError as problem:
        found.append(f"{name} cannot be read: {problem.strerror}")
    except (ValueError, RecursionError) as problem:
        found.append(f"{name}: {problem}")
    return found


def _content(path):
    with open(path, "rb") as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise ValueError(f"it is longer than {LARGEST} bytes, the most that is read")
    return content


def _rows():
    """The rows of the shipped catalogue."""
    return [line.split("\t") for line in (DIRECTORY / CATALOGUE).read_text(encoding="ascii").splitlines()[1:]]


def data_files(directory):
    """The files that MANIFEST.sha256 lists: all installed data files except the manifest."""
    patterns = ("*.json", "released/*.json", "kernels/*.json", "*.tsv", "README.md", "LICENSE", "languages/*")
    return sorted(path for pattern in patterns for path in directory.glob(pattern) if os.path.isfile(path))


def catalogue(documents):
    """The text of the catalogue of {file name: document}: id, file, op, status, models and sha256 of every case."""
    rows = [("id", "file", "op", "status", "models", "sha256")]
    for name, document in sorted(documents.items()):
        rows += [(r["id"], name, r["op"], r["status"], " ".join(r["models"]), r["sha256"]) for r in document["cases"]]
    return "".join("\t".join(row) + "\n" for row in rows)


def _problems(document, shipped):
    seen = set()
    if document["models"] != {name: model._asdict() for name, model in MODELS.items()}:
        yield "the models differ from posref.vectors.MODELS"
    for record in document["cases"]:
        id = record["id"]
        if id in seen:
            yield f"{id} occurs twice"
        seen.add(id)
        if hashlib.sha256(canonical(record).encode()).hexdigest() != record["sha256"]:
            yield f"{id} does not have its sha256"
        if shipped.get(id, record["sha256"]) != record["sha256"]:
            yield f"{id} has other numbers than the installed posref has under this id, and an id keeps its numbers"
        for name, tensor in (*record["tensors"].items(), *record["stages"].items(), ("expected", record["expected"])):
            if len(tensor["shape"]) > 8 or len(tensor["data"]) != math.prod(tensor["shape"]):
                yield f"{id}: {name} has shape {str(tensor['shape'])[:100]} and {len(tensor['data'])} numbers"
        for name, values in (record["cond"] or {}).items():
            if len(values) != len(record["expected"]["data"]):
                yield f"{id}: cond {name} has {len(values)} numbers, expected has {len(record['expected']['data'])}"
        if record["ignore"] and len(record["ignore"]) != len(record["expected"]["data"]):
            yield f"{id}: ignore has {len(record['ignore'])} numbers, expected has {len(record['expected']['data'])}"
        if unknown := record["fingerprints"].keys() - set(record["flags"]):
            yield f"{id} has fingerprints without a flag: {sorted(unknown)}"
        if unknown := set(record["flags"]) - document["flags"].keys():
            yield f"{id} has unknown flags {sorted(unknown)}"
        if unknown := set(record["models"]) - MODELS.keys():
            yield f"{id} has unknown models {sorted(unknown)}"
        for name in ("growth", "rms"):
            if unknown := record[name].keys() - set(record["models"]):
                yield f"{id} has {name} of models that it is not meant for: {sorted(unknown)}"
        if record["rms"] and (record["cond"] is None or record["gauge"] != "none"):
            yield f"{id} has rms, which has no meaning where equality is meant or rows have a constant of their own"


def _case(record):
    expected = _array(record["expected"])
    cond = record["cond"]
    if cond is not None:
        cond = {name: np.array(values, dtype=np.float64).reshape(expected.shape) for name, values in cond.items()}
    return Case(
        id=record["id"],
        op=record["op"],
        flags=tuple(record["flags"]),
        status=record["status"],
        models=tuple(record["models"]),
        params=record["params"],
        tensors={name: _array(tensor) for name, tensor in record["tensors"].items()},
        stages={name: _array(tensor) for name, tensor in record["stages"].items()},
        expected=expected,
        cond=cond,
        gauge=record["gauge"],
        comment=record["comment"],
        fingerprints=record["fingerprints"],
        ignore=record["ignore"] and np.array(record["ignore"], dtype=bool).reshape(expected.shape),
        growth=record["growth"],
        rms=record["rms"],
    )


def _array(tensor):
    whole = all(isinstance(value, int) for value in tensor["data"])
    return np.array(tensor["data"], dtype=np.int64 if whole else np.float64).reshape(tensor["shape"])


def _no_constant(word):
    raise ValueError(f"it contains {word}")
