"""The command line: `posref` and `python -m posref`.

Exit codes: 0 fine, 1 mismatch, 2 usage. An error of use is one line on stderr that names the remedy. Every command imports
what it needs when it runs.
"""

import argparse
import importlib
import inspect
import json
import os
import sys

import posref

SCREEN = f"""\
posref {posref.__version__}: the reference implementation of position in Transformers.

Every positional encoding and position-aware attention as a NumPy function that reads as its definition, with
theorems proved about that function and golden vectors for tests in any language.

Try:
  posref list           what there is
  posref show rope      one system: definition, conventions, where implementations differ, code
  posref demo           read, prove and diagnose RoPE, in half a minute

`posref --help` lists all commands, `posref COMMAND --help` explains one."""


CHECK_OPTIONS = (
    *("dim", "rotary_dim", "base", "exponent_dim", "frequencies", "layout", "to", "to_positions"),
    *("max_position", "positions", "model"),
)


class Usage(Exception):
    """An error of use: printed as one line, exit code 2."""


def main(argv=None):
    """Run one command; return its exit code."""
    arguments = _parser().parse_args(argv)
    try:
        code = arguments.run(arguments)
        sys.stdout.flush()
        return code
    except Usage as error:
        print(f"posref: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # `posref show rope | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _parser():
    parser = argparse.ArgumentParser(prog="posref", description="The reference implementation of position in Transformers.")
    parser.add_argument("--version", action="version", version=f"posref {posref.__version__}")
    parser.set_defaults(run=_screen)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    listing = commands.add_parser("list", help="all systems, family by family")
    form = listing.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="as JSON")
    form.add_argument("--markdown", action="store_true", help="as the table of the README")
    listing.set_defaults(run=_list)

    show = commands.add_parser("show", help="the definition of one system, then its code")
    show.add_argument("name", metavar="NAME", help="for instance t5, relative.t5, attention")
    show.set_defaults(run=_show)

    demo = commands.add_parser("demo", help="read, prove and diagnose RoPE")
    demo.set_defaults(run=_demo)

    check = commands.add_parser("check", help="check a function of yours against a specification")
    check.add_argument("function", metavar="MODULE:FUNCTION", help="found from the current directory, for instance my_ops:rope")
    check.add_argument("--as", dest="system", required=True, metavar="SYSTEM", help="what it should compute, for instance rope")
    check.add_argument("--dim", type=int, help="width of a head")
    check.add_argument("--rotary-dim", type=int, help="how many features turn, if not all")
    check.add_argument("--base", type=float, help="base of the frequencies, for instance 10000")
    check.add_argument("--exponent-dim", type=int, help="what their exponent 2t is divided by, if not the rotated width")
    check.add_argument(
        "--frequencies", metavar="LIST|FILE", help="instead of a base: numbers with commas, or a .npy or .json file of them"
    )
    check.add_argument("--layout", help="which features form a pair: half or interleaved (`posref aliases` translates)")
    check.add_argument(
        "--to", metavar="CONVERTER", help="what turns NumPy arrays into yours: torch.bfloat16 or MODULE:FUNCTION"
    )
    check.add_argument("--to-positions", metavar="CONVERTER", help="the same for positions, where --to would round them")
    check.add_argument("--max-position", type=int, metavar="N", help="largest position used, for a shorter table")
    check.add_argument("--positions", choices=("batch", "shared"), help="shared: the function takes one-dimensional positions")
    check.add_argument("--model", help="demand one precision, for instance bf16-f32math")
    check.add_argument("--json", action="store_true", help="the report as JSON")
    check.set_defaults(run=_check)

    diagnose = commands.add_parser("diagnose", help="say what is wrong with an output dumped by a program in any language")
    diagnose.add_argument("case", metavar="CASE", help="id of a golden vector, see `posref vectors list`")
    diagnose.add_argument("file", metavar="FILE", help=".npy, or raw little-endian numbers with --dtype")
    diagnose.add_argument("--dtype", help="of a raw file: f64, f32, f16, bf16, i32 or i64")
    diagnose.add_argument("--json", action="store_true", help="the report as JSON")
    diagnose.set_defaults(run=_diagnose)

    _add_vectors(commands.add_parser("vectors", help="golden vectors: list, export, verify"))

    aliases = commands.add_parser("aliases", help="what other projects call the layouts and conventions")
    aliases.add_argument("--json", action="store_true", help="as JSON")
    aliases.set_defaults(run=_aliases)
    return parser


def _add_vectors(parser):
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    listing = commands.add_parser("list", help="ids of the cases")
    listing.add_argument("pattern", nargs="?", default="*", metavar="PATTERN", help="for instance 'rope/half/*'")
    listing.add_argument("--json", action="store_true", help="as JSON")
    listing.set_defaults(run=_vectors_list)
    export = commands.add_parser("export", help="write cases for a test in another language")
    export.add_argument("pattern", nargs="?", default="*", metavar="PATTERN", help="for instance 'rope/half/*'")
    export.add_argument("--format", required=True, help="json, txt, npz, raw or c")
    export.add_argument("--directory", "-o", required=True, help="where to; it is made if missing")
    export.add_argument("--json", action="store_true", help="the paths written, as JSON")
    export.set_defaults(run=_vectors_export)
    verify = commands.add_parser("verify", help="check the files against their checksums and schema")
    verify.add_argument(
        "directory", nargs="?", metavar="DIRECTORY", help="a copy of the vectors; without it, the installed ones"
    )
    verify.add_argument("--json", action="store_true", help="the problems, as JSON")
    verify.set_defaults(run=_vectors_verify)


def _screen(_):
    print(SCREEN)
    return 0


def _list(arguments):
    from posref import discovery

    systems = discovery.systems()
    if arguments.json:
        fields = ("name", "title", "family", "references", "presets", "vectors")
        print(json.dumps([{field: getattr(system, field) for field in fields} for system in systems], indent=2))
    elif arguments.markdown:
        print(discovery.table())
    else:
        width = max(len(system.name) for system in systems)
        for family in discovery.FAMILIES:
            print(inspect.getdoc(importlib.import_module(f"posref.{family}")))
            for system in systems:
                if system.family == family:
                    print(f"  {system.name:{width}}  {system.title}")
            print()
        print("posref show NAME prints one of them.")
    return 0


def _show(arguments):
    from posref import discovery

    try:
        name = discovery.resolve(arguments.name)
    except LookupError as error:
        raise Usage(error) from None
    module = importlib.import_module(f"posref.{name}")
    print(f"posref.{name}\n")
    print(inspect.getdoc(module))
    for preset, values in getattr(module, "PRESETS", {}).items():
        print(f"\nPreset {preset}: " + ", ".join(f"{key}={value!r}" for key, value in values.items()))
    for member in discovery.members(module):
        print(f"\n\n{inspect.getsource(member)}", end="")
    return 0


def _demo(_):
    from posref import demo

    return demo.run()


def _check(arguments):
    from posref import check

    checks = {name.removeprefix("check_"): getattr(check, name) for name in dir(check) if name.startswith("check_")}
    if arguments.system not in checks:
        raise Usage(f"--as {arguments.system}: there is no such check; the checks are: {', '.join(sorted(checks))}")
    run = checks[arguments.system]
    options = {name: getattr(arguments, name) for name in CHECK_OPTIONS if getattr(arguments, name) is not None}
    parameters = inspect.signature(run).parameters
    for name in options:
        if name not in parameters:
            raise Usage(f"--as {arguments.system} has no --{name.replace('_', '-')}; leave it out")
    for name, parameter in list(parameters.items())[1:]:
        if parameter.default is parameter.empty and name not in options:
            raise Usage(f"--as {arguments.system} needs --{name.replace('_', '-')}")
    function = _function(arguments.function)
    if options.get("to", "").startswith("torch.") and "to_positions" in parameters:
        options.setdefault("to_positions", "torch.int64")
    options |= {name: _converter(options[name]) for name in ("to", "to_positions") if name in options}
    if "frequencies" in options:
        options["frequencies"] = _numbers("--frequencies", options["frequencies"])
    try:
        report = run(function, **options)
    except (TypeError, ValueError) as error:
        raise Usage(error) from None
    return _print_report(report, arguments.json)


def _diagnose(arguments):
    from posref import check, vectors

    try:
        case = vectors.case(arguments.case)
    except ValueError as error:
        raise Usage(f"{error}; `posref vectors list` prints all ids") from None
    try:
        output, dtype = check.load_output(arguments.file, case.expected.shape, arguments.dtype)
    except OSError as error:
        raise Usage(f"{arguments.file}: {error.strerror}; give the path of the dumped output") from None
    except ValueError as error:
        raise Usage(error) from None
    return _print_report(check.diagnose(case, output, dtype=dtype), arguments.json)


def _numbers(option, text):
    """An array from numbers with commas, or from a .npy or .json file."""
    import numpy as np

    try:
        if text.endswith(".npy"):
            return np.load(text, allow_pickle=False)
        if text.endswith(".json"):
            with open(text, encoding="utf-8") as file:
                return np.array(json.load(file), dtype=np.float64)
        return np.array([float(number) for number in text.split(",")])
    except OSError as error:
        raise Usage(f"{option} {text}: {error.strerror}; give the path of a .npy or .json file") from None
    except (TypeError, ValueError) as error:
        raise Usage(
            f"{option} {text}: {error}; give numbers with commas, or a .npy or .json file with a list of them"
        ) from None


def _print_report(report, as_json):
    print(json.dumps(report.as_dict(), indent=2) if as_json else report)
    return 0 if report.ok else 1


def _vectors_list(arguments):
    from posref import vectors

    ids = [case.id for case in vectors.cases(arguments.pattern)]
    if not ids:
        raise Usage(f"no case matches {arguments.pattern!r}; `posref vectors list` prints all ids; write 'rope/*' for a system")
    print(json.dumps(ids, indent=2) if arguments.json else "\n".join(ids))
    return 0


def _vectors_export(arguments):
    from posref import vectors

    try:
        written = vectors.export(arguments.directory, arguments.format, arguments.pattern)
    except (OSError, LookupError, ValueError) as error:
        raise Usage(error) from None
    paths = [str(path) for path in written]
    print(json.dumps(paths, indent=2) if arguments.json else "\n".join(paths))
    return 0


def _vectors_verify(arguments):
    from posref import vectors

    if arguments.directory is not None and not os.path.isdir(arguments.directory):
        raise Usage(
            f"{arguments.directory} is no directory; name a copy of the vectors, or leave it out for the installed ones"
        )
    problems = vectors.verify(arguments.directory)
    if arguments.json:
        print(json.dumps(problems, indent=2))
    else:
        print("\n".join(problems) if problems else "all files are as published")
    return 1 if problems else 0


def _aliases(arguments):
    from posref import check

    rows = check.aliases()
    if arguments.json:
        print(json.dumps([row._asdict() for row in rows], indent=2))
    else:
        table = [
            ("", 'layout="half"', 'layout="interleaved"'),
            *((r.framework, r.half or "-", r.interleaved or "-") for r in rows),
        ]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        print("\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in table))
    return 0


def _function(path):
    """The object behind MODULE:FUNCTION, looked for from the current directory first."""
    name, colon, attribute = path.partition(":")
    if not (name and colon and attribute):
        raise Usage(f"{path!r} is no function; write MODULE:FUNCTION, for instance my_ops:rope")
    if name.endswith(".py"):
        raise Usage(f"{path}: MODULE is a name as in import; write {os.path.basename(name)[:-3]}:{attribute}, in its folder")
    sys.path.insert(0, os.getcwd())
    try:
        found = importlib.import_module(name)
        for part in attribute.split("."):
            found = getattr(found, part)
    except ModuleNotFoundError as error:
        raise Usage(f"{path}: {error}; run posref where {name.split('.')[0]}.py lies, or install what it imports") from None
    except AttributeError as error:
        raise Usage(f"{path}: {error}; check the name after the colon") from None
    except Exception as error:
        raise Usage(
            f"{path}: importing {name} raises {type(error).__name__}: {error}; make `import {name}` work first"
        ) from None
    if not callable(found):
        raise Usage(f"{path} is a {type(found).__name__}, not a function; name what takes the arrays")
    return found


def _converter(text):
    """A function of NumPy arrays from MODULE:FUNCTION, or from a torch dtype such as torch.bfloat16."""
    if ":" in text or not text.startswith("torch."):
        return _function(text)
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise Usage(f"--to {text}: {error}; pip install torch") from None
    dtype = getattr(torch, text.removeprefix("torch."), None)
    if not isinstance(dtype, torch.dtype):
        raise Usage(f"--to {text}: torch has no such dtype; try torch.float32 or torch.bfloat16")
    return lambda array: torch.from_numpy(array).to(dtype)
