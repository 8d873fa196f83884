"""`python -m tests.release [STAGE ..]`: run the stages of a release, and write what they showed to docs/release.json."""

import datetime
import json
import platform
import sys
import time
import traceback

from tests.release.stages import ROOT, STAGES, fingerprint

RECORD = ROOT / "docs" / "release.json"


def main(names):
    """1 if a stage failed; a stage that was not run keeps its record."""
    if unknown := set(names) - STAGES.keys():
        print(f"error: no stage is called {', '.join(sorted(unknown))}; there are {', '.join(STAGES)}", file=sys.stderr)
        return 2
    record = json.loads(RECORD.read_text()) if RECORD.is_file() else {}
    for name in names or STAGES:
        record[name] = shown(name)
        verdict = "passed" if record[name]["passed"] else "FAILED"
        print(f"{verdict} {name} in {record[name]['seconds']} s: {record[name]['result']}", flush=True)
        RECORD.write_text(json.dumps({stage: record[stage] for stage in STAGES if stage in record}, indent=1) + "\n")
    return int(not all(record[name]["passed"] for name in names or STAGES))


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
