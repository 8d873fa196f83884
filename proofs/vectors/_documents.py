"""The generators of all systems, and the document that one makes."""

import importlib
import pkgutil
import time

import mpmath

import proofs.vectors
from posref.vectors import DIRECTORY, MODELS, SCHEMA, read
from proofs.vectors import BITS, _rejected, described

VERSION = "1.3.0"


def systems(names=()):
    """The generators, one module a system: {system: module}; with names only these are imported."""
    found = {info.name for info in pkgutil.iter_modules(proofs.vectors.__path__) if not info.name.startswith("_")}
    if unknown := set(names) - found:
        raise ValueError(f"no generator is called {', '.join(sorted(unknown))}; there are {', '.join(sorted(found))}")
    return {name: importlib.import_module(f"proofs.vectors.{name}") for name in sorted(names or found)}


def timed(name):
    """The document of one system, and seconds."""
    start = time.perf_counter()
    return document(name, systems([name])[name], described(name)), time.perf_counter() - start


def document(name, module, flags):
    """The whole file of one system; `flags` explains its mistakes. ValueError: a double or foreign id, an unknown flag."""
    with mpmath.workprec(BITS):
        records = list(module.vectors())
        records += [*_rejected.of(getattr(module, "REJECTED", ()), records), *withdrawn(name, getattr(module, "WITHDRAWN", {}))]
    ids = [record["id"] for record in records]
    used = {flag for record in records for flag in record["flags"]}
    if twice := sorted({id for id in ids if ids.count(id) > 1}):
        raise ValueError(f"{name}: ids occur twice: {', '.join(twice)}")
    if foreign := [id for id in ids if not id.startswith(f"{name}/")]:
        raise ValueError(f"{name}: ids must begin with {name}/: {', '.join(foreign)}")
    if silent := sorted({record["op"] for record in records if f"op {record['op']}" not in module.CONVENTIONS}):
        raise ValueError(f"{name}: CONVENTIONS do not say what 'op {silent[0]}' computes")
    if unknown := sorted(used - flags.keys()):
        raise ValueError(f"{name}: flags that posref/ops/{name}.py does not have: {', '.join(unknown)}")
    return written(name, module.__doc__.splitlines()[0], module.SOURCES, module.CONVENTIONS, records, flags)


def written(encoding, title, sources, conventions, records, known, version=VERSION):
    """The document of a vector file, with the flags that its records use."""
    used = {flag for record in records for flag in record["flags"]}
    return {
        "schema": SCHEMA,
        "vectors_version": version,
        "encoding": encoding,
        "title": title,
        "source": list(sources),
        "conventions": conventions,
        "flags": {flag: note for flag, note in known.items() if flag in used},
        "models": {model: coefficients._asdict() for model, coefficients in MODELS.items()},
        "cases": records,
    }


def withdrawn(name, reasons):
    """The cases that a generator withdraws, {id: reason}, as they were released: ids are for ever."""
    released = {record["id"]: record for record in read(DIRECTORY / f"{name}.json")["cases"]} if reasons else {}
    return [released[id] | {"status": "withdrawn", "comment": reason} for id, reason in reasons.items()]
