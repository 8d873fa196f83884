"""`python -m proofs.vectors [--check] [NAME ..]`: write the golden vectors, or check that they would come out the same.

`--matrix` says which mistakes the cases kill, `--second` computes every value by other code, `--archive -o DIR` writes the
release, and `--config FILE -o DIR` the vectors of one model.
"""

import argparse
import hashlib
import json
import os
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from posref.vectors import CATALOGUE, DIRECTORY, catalogue, data_files, read
from posref.vectors.formats import to_json, to_text
from proofs.vectors import _archive, _matrix, _model, _mutants, _recipes, _second
from proofs.vectors._documents import VERSION, systems, timed

OTHERS = ("released", "kernels")  # files beside those of the systems


def render(names=(), directory=DIRECTORY):
    """What the files should contain: {file name: text}. ValueError if a case of the catalogue changed."""
    documents = {}
    chosen = [name for name in names if name not in OTHERS]
    modules = systems(chosen) if chosen or not names else {}
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        recipes = _recipes.records(pool.map) if not names or "kernels" in names else None  # the longest, so they begin first
        made = pool.map(timed, modules)
        models = _model.released(pool.map, version=VERSION) if not names or "released" in names else ()
        for name, (content, seconds) in zip(modules, made, strict=True):
            documents[f"{name}.json"] = content
            print(f"{name}: {len(content['cases'])} cases, {seconds:.1f} s", flush=True)
        for name, content in models:
            documents[f"released/{name}.json"] = content
            print(f"released/{name}: {len(content['cases'])} cases", flush=True)
        if recipes:
            documents["kernels/attend.json"] = content = _recipes.document(recipes, version=VERSION)
            print(f"kernels: {len(content['cases'])} cases", flush=True)
    files = {name: to_json(content) for name, content in documents.items()}
    if broken := list(changed(documents, Path(directory))):
        raise ValueError("\n".join(broken))
    return files


def manifest(directory):
    """The text of MANIFEST.sha256, as `sha256sum -c` reads it."""
    sums = ((hashlib.sha256(path.read_bytes()).hexdigest(), path) for path in data_files(directory))
    return "".join(f"{sum}  {path.relative_to(directory).as_posix()}\n" for sum, path in sums)


def listed(directory):
    """The catalogue of the files that are there."""
    files = [path for path in data_files(directory) if path.suffix == ".json" and path.stem != "schema"]
    return catalogue({path.relative_to(directory).as_posix(): read(path) for path in files})


def write(path, text):
    """Replace a file at once, or not at all."""
    path.parent.mkdir(exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".posref-")
    try:
        with os.fdopen(handle, "w", encoding="ascii", newline="\n") as file:
            file.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def differences(files, directory, *, complete):
    """Sentences about every file of `directory` that is not as `files` says; `complete`: other data files must not be there."""
    for name, text in files.items():
        path = directory / name
        if not path.is_file():
            yield f"{name} is missing"
        elif (found := path.read_bytes().decode("ascii", "replace")) != text:
            yield f"{name} differs, {_first_difference(found, text)}"
    if complete:
        expected = {*files, "schema.json"}
        patterns = ("*.json", "*.txt", "released/*", "kernels/*")
        for path in sorted(path for pattern in patterns for path in directory.glob(pattern)):
            if path.relative_to(directory).as_posix() not in expected:
                yield f"{path.name} is there and no generator writes it"
    if not (directory / "MANIFEST.sha256").is_file() or (directory / "MANIFEST.sha256").read_text() != manifest(directory):
        yield "MANIFEST.sha256 does not list the files as they are"
    documents = {name: json.loads(text) for name, text in files.items() if name.endswith(".json")}
    if complete and (not (directory / CATALOGUE).is_file() or (directory / CATALOGUE).read_text() != catalogue(documents)):
        yield f"{CATALOGUE} does not list the cases as they are"


def changed(documents, directory):
    """Sentences about cases of the catalogue in `directory` that are gone or mean something else: ids are for ever."""
    if not (directory / CATALOGUE).is_file():
        return
    now = {record["id"]: record["sha256"] for document in documents.values() for record in document["cases"]}
    for line in (directory / CATALOGUE).read_text().splitlines()[1:]:
        id, file, *_, sha256 = line.split("\t")
        if file in documents and now.get(id) != sha256:
            yield f"{id} is {'not what it was' if id in now else 'gone'}; keep it, withdrawn if it is wrong, and take a new id"


def _first_difference(found, text):
    start = next((n for n, (a, b) in enumerate(zip(found, text, strict=False)) if a != b), min(len(found), len(text)))
    line, context = text.count("\n", 0, start) + 1, slice(max(0, start - 20), start + 40)
    return f"line {line}: it has ..{found[context]!r}.. and should have ..{text[context]!r}.."


def _of_a_model(options):
    """Write the vectors of one model; exit code 2 if there are none to write."""
    try:
        if options.directory is None:
            raise ValueError("--config needs -o DIR, the folder of the new files")
        content = _model.document(options.config, options.layer, options.part, version=VERSION)
    except ValueError as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 2
    target = Path(options.directory)
    target.mkdir(parents=True, exist_ok=True)
    write(target / "rope.json", to_json(content))
    write(target / "rope.txt", to_text(content))
    write(target / CATALOGUE, listed(target))
    write(target / "MANIFEST.sha256", manifest(target))
    print(f"{target / 'rope.json'}: {len(content['cases'])} cases")
    return 0


def main(arguments=None, directory=DIRECTORY):
    """Exit code 0 if all is well, 1 if --check finds a difference, 2 if the vectors cannot be made."""
    parser = argparse.ArgumentParser(prog="python -m proofs.vectors", description=__doc__.split(": ", 1)[1])
    parser.add_argument("names", nargs="*", metavar="NAME", help="systems such as rope, `released` or `kernels`; all if none")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file would change")
    config = "vectors of the rotation of one model, from its configuration; needs -o"
    parser.add_argument("--config", metavar="FILE", help=config)
    parser.add_argument("--layer", type=int, metavar="N", help="with --config, the layer")
    parser.add_argument("--part", metavar="NAME", help="with --config, the part, for instance text_config")
    matrix = "print which mistakes the cases of every op kill; exit 1 if one is open"
    parser.add_argument("--matrix", action="store_true", help=matrix)
    parser.add_argument("--second", action="store_true", help="compute every value by other code; exit 1 if one differs")
    mutants = "print mutants without a case or a reason; exit 1 if there is one"
    parser.add_argument("--mutants", action="store_true", help=mutants)
    parser.add_argument("--archive", action="store_true", help="write the release: every format of every system, one archive")
    parser.add_argument("--directory", "-o", metavar="DIR", help="with --config or --archive, where to; it is made if missing")
    options = parser.parse_args(arguments)
    if options.config:
        return _of_a_model(options)
    if options.matrix:
        missing = _matrix.missing(options.names)
        print("\n".join([_matrix.report(options.names), *missing]))
        return int(bool(missing))
    if options.second or options.mutants:
        line, wrong = _second.report() if options.second else _mutants.report(options.names)
        print("\n".join([line, *wrong]))
        return int(bool(wrong))
    if options.archive:
        print(_archive.write(Path(options.directory or "."), VERSION))
        return 0
    try:
        files = render(options.names, directory)
    except ValueError as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 2
    if options.check:
        found = list(differences(files, Path(directory), complete=not options.names))
        print("\n".join(found) or f"{len(files)} files are as they should be")
        return 1 if found else 0
    for name, text in files.items():
        write(Path(directory) / name, text)
    write(Path(directory) / CATALOGUE, listed(Path(directory)))
    write(Path(directory) / "MANIFEST.sha256", manifest(Path(directory)))
    missing = [] if Path(directory) != DIRECTORY else _matrix.missing(options.names)
    print("\n".join(missing), end="\n" if missing else "")
    return int(bool(missing))


if __name__ == "__main__":
    sys.exit(main())
