"""`python -m tests.release [STAGE ..]`: run the stages of a release, and write what they showed to docs/release.json.

`python -m tests.release --check` runs no stage: it prints what is missing for a release, and exits with 1 if anything is.
"""

import datetime
import json
import platform
import sys
import time
import traceback

from tests.release.stages import ROOT, STAGES, fingerprint

RECORD = ROOT / "docs" / "release.json"
PLACEHOLDER, PUBLISHED = "https://example.org/", ("setup.cfg", "CITATION.cff")


def main(names):
    """1 if a stage failed; a stage that was not run keeps its record."""
    if names == ["--check"]:
        missing = [*lacking()]
        print("\n".join(missing) or f"all {len(STAGES)} stages passed with the files that are here")
        return int(bool(missing))
    if unknown := set(names) - STAGES.keys():
        print(f"error: no stage is called {', '.join(sorted(unknown))}; there are {', '.join(STAGES)}", file=sys.stderr)
        return 2
    failed = False
    for name in names or STAGES:
        one = shown(name)
        failed |= not one["passed"]
        print(f"{'passed' if one['passed'] else 'FAILED'} {name} in {one['seconds']} s: {one['result']}", flush=True)
        record = recorded() | {name: one}  # read again: other stages may have run beside this one
        RECORD.write_text(json.dumps({stage: record[stage] for stage in STAGES if stage in record}, indent=1) + "\n")
    return int(failed)


def recorded():
    """The records of docs/release.json, by stage."""
    return json.loads(RECORD.read_text()) if RECORD.is_file() else {}


def lacking():
    """What is missing for a release, a sentence each: a stage without a record, that failed, or whose files have changed."""
    for name, record in ((name, recorded().get(name)) for name in STAGES):
        again = f"run python -m tests.release {name}"
        if record is None:
            yield f"{name}: has no record; {again}"
        elif not record["passed"]:
            yield f"{name}: failed on {record['date']}: {record['result']}; correct it and {again}"
        elif record["about"] != fingerprint(name):
            yield f"{name}: its files have changed since {record['date']}; {again}"
    for name in PUBLISHED:
        if PLACEHOLDER in (ROOT / name).read_text():
            yield f"{name}: has the placeholder {PLACEHOLDER}; write the address of the repository instead"


def shown(name):
    """The record of one run."""
    start, passed = time.perf_counter(), False
    try:
        result, passed = STAGES[name].run(), True
    except Exception as problem:
        traceback.print_exc()
        result = f"{type(problem).__name__}: {problem}".replace(f"{ROOT}/", "")
    return {
        "passed": passed,
        "result": result,
        "date": str(datetime.date.today()),
        "python": platform.python_version(),
        "seconds": round(time.perf_counter() - start),
        "about": fingerprint(name),
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
