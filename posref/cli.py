"""The command line: `posref` and `python -m posref`.

Exit codes: 0 yes, 1 no, 2 a wrong command or input, a full disk or an error of posref, 130 interrupted. An error of use is one
line on stderr that names the remedy. Each command imports its modules when it runs. What a checked function prints goes to
stderr, so stdout has only the answer.
"""

import argparse
import contextlib
import importlib
import importlib.util
import inspect
import json
import os
import re
import shlex
import shutil
import sys
import traceback
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import posref
from posref._printable import printable

SCREEN = f"""\
posref {posref.__version__}: the reference implementation of position in Transformers.

Positional encodings and position-aware attentions as NumPy functions whose bodies are the formulas, with proofs
about these functions, and golden vectors for tests in any language.

Try:
  posref list           all systems, one line each
  posref show rope      one system: definition, conventions, code, who differs, what is proved
  posref demo           read, prove and diagnose RoPE, in half a minute

`posref --help` lists all commands, `posref COMMAND --help` explains one."""


CHECK_OPTIONS = {
    "config": ("FILE|NAME", "rotate as this model does: its config.json, or a name of `posref explain --models`"),
    "layer": ("N", "which layer, if --config or --preset names a model"),
    "part": ("NAME", "which part, if --config or --preset names a model; for instance text_config"),
    "preset": ("NAME", "a released configuration, for instance bloom_176b or llama-3.1-8b"),
    "axes": ("AXES", "axes of the arrays of the function: b batch, h heads, n tokens, d features, t all tokens of the batch"),
    "dim": ("DIM", "width of a head"),
    "rotary_dim": ("DIM", "how many features are rotated, if not all"),
    "base": ("BASE", "base of the frequencies, for instance 10000"),
    "exponent_dim": ("DIM", "DIM in the frequencies base^(-2t/DIM), if it is not the number of rotated features"),
    "frequencies": ("LIST|FILE", "instead of a base: numbers with commas, or a .npy or .json file of them"),
    "schedule": (
        "NAME",
        "scale the frequencies with this function of rotary.scaling; its keywords are options: --schedule linear --factor 4",
    ),
    "layout": ("LAYOUT", "which features form a pair: half or interleaved (`posref aliases` translates)"),
    "to": (
        "CONVERTER",
        "converts NumPy arrays to your tensors: torch.from_numpy, torch.bfloat16, jax.float32 or MODULE:FUNCTION",
    ),
    "to_positions": ("CONVERTER", "converts positions, if --to would round them"),
    "max_position": ("N", "try no larger position, for instance because your table ends at N"),
    "seed": ("N", "also call with random sizes, positions and numbers, drawn from this seed"),
    "positions": (
        "FORM",
        "what your function receives: batch, an array (batch, n); shared, (n,); range, nothing or n; offset, one integer",
    ),
    "model": ("MODEL", "require this arithmetic, for instance bf16-f32math: bfloat16 arrays, computed in float32"),
}


def _number(kind, words):
    """A converter for argparse, whose own message names Python's types."""

    def converter(text):
        try:
            return kind(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"expected {words}, got {text!r}") from None

    return converter


WHOLE, REAL = _number(int, "a whole number"), _number(float, "a number")
NUMBERS = {"base": REAL} | dict.fromkeys(("layer", "dim", "rotary_dim", "exponent_dim", "max_position", "seed"), WHOLE)
ONE_OF = {"axes": ("bhnd", "bnhd", "thd"), "positions": ("batch", "shared", "range", "offset")}
NEVER_OF_A_CONFIG = {"dim", "rotary_dim", "base", "exponent_dim", "frequencies", "schedule", "layout", "magnitude", "sign"}

LIBRARIES = {"torch": "torch", "jax": "jax.numpy"}  # where --to LIBRARY.dtype finds its dtypes
CONVERTERS = {"torch.from_numpy": "torch:from_numpy", "jax.numpy.asarray": "jax.numpy:asarray"}  # as in Python


OURS = ("check", "discovery", "explain", "expressivity", "finding", "ops", "precision", "schema", "vectors")  # no op is theirs


FIRST = ("list", "show", "check", "diagnose", "explain", "vectors", "mistakes")  # those that `posref --help` explains
COMMANDS = {  # what each does, and two examples
    "list": ("List all systems, family by family.", "posref list", "posref list --json"),
    "show": (
        "Print one system: definition, conventions, code, who differs, what is proved. Or one function or family.",
        "posref show rope",
        "posref show t5.bucket",
    ),
    "check": (
        "Check a function of yours against a specification, and name its mistake.",
        "posref check my_ops.py:rope --as rope --dim 64 --layout half",
        "posref check --as t5.bias --contract",
    ),
    "diagnose": (
        "Say what is wrong with an output that a program in any language wrote to a file.",
        "posref diagnose rope/half/d8-b1e4/tiny output.npy",
        "posref diagnose rope/half/d8-b1e4/tiny output.bin --dtype f32",
    ),
    "explain": (
        "Say what the positions of a model do, layer by layer, from its configuration.",
        "posref explain Llama-3.1-8B",
        "posref explain config.json --code torch",
    ),
    "vectors": (
        "List, export or verify the golden vectors.",
        "posref vectors list 'rope/half/*'",
        "posref vectors export 'rope/half/*' --format json -o vectors",
    ),
    "mistakes": (
        "List the mistakes of a system, or the causes of a symptom.",
        "posref mistakes t5.bias",
        "posref mistakes --symptom 'left padding'",
    ),
    "serve": (
        "Check a program in any language: it reads a line of JSON and answers with one.",
        "posref serve ./rope --as rope --dim 64 --layout half",
        "posref serve 'python rope.py' --as rope --dim 64 --layout half --to bfloat16",
    ),
    "find": ("Find the systems that a word or the name of a model stands for.", "posref find bloom", "posref find qwen2-vl"),
    "table": ("Compare all systems: each cell is measured on one head of attention.", "posref table", "posref table --json"),
    "claims": (
        "Print claims about position: whether each holds, what is true, a counterexample.",
        "posref claims unique",
        "posref claims --who su --verdict wrong",
    ),
    "express": (
        "Say which system can give the scores of another, or which equation rules it out.",
        "posref express 'alibi key' rope",
        "posref express",
    ),
    "precision": (
        "Print how far angles are off, by precision, base and width.",
        "posref precision",
        "posref precision --dim 128 --base 500000",
    ),
    "aliases": (
        "Print what other projects call the layouts and conventions.",
        "posref aliases",
        "posref aliases --json",
    ),
    "demo": ("Read, prove and diagnose RoPE, in half a minute.", "posref demo", "posref show rope"),
}
OF_VECTORS = {
    "list": ("Print the ids of the golden vectors.", "posref vectors list", "posref vectors list 'rope/half/*'"),
    "export": (
        "Write golden vectors to files for a test in another language.",
        "posref vectors export 'rope/half/*' --format json -o vectors",
        "posref vectors export --format c -o vectors",
    ),
    "verify": (
        "Compare the files of the golden vectors with their checksums, their schema and the installed numbers.",
        "posref vectors verify",
        "posref vectors verify copy_of_vectors --json",
    ),
}


class Usage(Exception):
    """An error of use: printed as one line, exit code 2."""


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, with the name that was meant, or an example of what is missing."""

    example = "posref list"

    def error(self, message):
        found = re.fullmatch(r"argument (\S+): invalid choice: '(.*)' \(choose from (.*)\)", message)
        if found:
            name, given, known = found[1], found[2], found[3].replace("'", "").split(", ")
            message = f"{name} is {given!r}, expected one of {', '.join(known)}{_near(given, known)}"
        missing = message.startswith("the following arguments are required:")
        message = message.replace("the following arguments are required:", "needs").removeprefix("argument ")
        remedy = f"for instance `{self.example}`" if missing else f"`{self.prog} --help` explains it"
        raise Usage(f"{self.prog.removeprefix('posref')} {message}; {remedy}".strip())

    def refuse(self, rest):
        if rest:
            near = _near(rest[0], re.findall(r"--[\w-]+", self.format_usage()))
            raise Usage(f"{self.prog.removeprefix('posref ')} takes no {rest[0]}{near}; see `{self.prog} --help`")


def _near(name, known):
    from posref import _require

    return _require.near(name, known)


class _Shown:
    """stdout: text of files and programs cannot steer a terminal, and a reader that leaves (`| head`) changes no exit code."""

    def __init__(self, stream):
        self.stream = stream

    def __getattr__(self, name):
        return getattr(self.stream, name)

    def write(self, text):
        with _unless_closed():
            self.stream.write(printable(text.replace("\x7f", r"\u007f")))  # the only one that JSON leaves as it is

    def flush(self):
        with _unless_closed():
            self.stream.flush()


@contextlib.contextmanager
def _unless_closed():
    try:
        yield
    except BrokenPipeError:
        _discard_stdout()


def main(argv=None):
    """Run one command; return its exit code."""
    _open_streams()
    with contextlib.redirect_stdout(_Shown(sys.stdout)):
        try:
            code = _run(argv)
            sys.stdout.flush()
            return code
        except KeyboardInterrupt:
            return _fail("interrupted", 130)
        except MemoryError as error:
            return _fail(f"not enough memory: {error}; ask for less", 2)
        except OSError as error:  # a full disk
            _discard_stdout()
            return _fail(f"{error.filename or 'stdout'}: {error.strerror}; the output is not complete", 2)
        except Exception as error:  # 1 would say that the answer is no
            with contextlib.suppress(OSError):
                sys.stdout.flush()
                print(printable(traceback.format_exc()), end="", file=sys.stderr)
            return _fail(
                f"an error of posref itself, {type(error).__name__}: {error}; please report it with the lines above", 2
            )


def _run(argv):
    try:
        parser = _parser()
        argv = sys.argv[1:] if argv is None else list(argv)
        arguments, arguments.rest = parser.parse_known_args(argv)
        if arguments.run is _check and _is_a_value(argv, arguments):
            first = argv.index("check") + 1
            arguments, arguments.rest = parser.parse_known_args([*argv[:first], "no:function", *argv[first:]])
            arguments.function = None
        if arguments.run not in (_check, _serve):  # a check has the settings of its op
            arguments.parser.refuse(arguments.rest)
        return arguments.run(arguments)
    except Usage as error:
        return _fail(error, 2)
    except SystemExit as leave:  # argparse has printed
        return leave.code


def _is_a_value(argv, arguments):
    """Whether what was taken for the function of a check stands after a setting of its op: `--heads 12`."""
    found = arguments.function
    return found is not None and ":" not in found and (found in (b for a, b in pairwise(argv) if a in arguments.rest))


def _fail(message, code):
    with contextlib.suppress(OSError):
        print(f"posref: {printable(' '.join(_plain(message).split()))}", file=sys.stderr)
    return code


def _plain(message):
    """A message of the library for a terminal, without the name of a function of ours."""
    text = re.sub(rf"^({'|'.join(OURS)})(\.\w+)?: ", "", str(message)).replace("?; ", "? ")
    if not _is_about_a_file(message):  # whose keys are no options
        text = re.sub(r"^(?:\w+\.\w+: )?([a-z]\w+) is (?=[-'\d].*expected)", lambda found: f"{_option(found[1])} is ", text)
    text = re.sub(r"^(meaning|format|directory) is ", r"--\1 is ", text)
    text = re.sub(r"\b(the systems|there) are (?:\w+, ){20,}\w+", "`posref list` prints all systems", text)
    text = re.sub(r"^(there is no op '([\w.]+)\.[^']*'); there are [^;]+(?:; (did you mean .*\?))?$", _no_op, text)
    text = re.sub(r"\bthe systems are '.*", "`posref express` prints all systems", text)
    return re.sub(r"\bvectors\.cases\((.*?)\) lists", r"`posref vectors list \1` lists", text)


def _no_op(found):
    """Names that are near, and the command that lists all; the ops of a system can be 15."""
    said, system, near = found.groups()
    return f"{said};{f' {near}' * bool(near)} `posref check --as {system}` lists the ops of {system}"


def _open_streams():
    """Streams that were closed swallow; what an encoding lacks is escaped."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        stream = getattr(sys, name)
        if getattr(stream, "errors", None) in ("strict", "surrogateescape"):
            stream.reconfigure(errors="backslashreplace")


def _discard_stdout():
    with contextlib.suppress(OSError):  # what is still in its buffer, at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextlib.contextmanager
def _prints_go_to_stderr():
    """What other people's code prints, and the programs it starts."""
    sys.stdout.flush()
    try:
        stdout = os.dup(1)
        os.dup2(2, 1)
    except OSError:  # one of them is closed
        yield
        return
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(stdout, 1)
        os.close(stdout)


def _parser():
    parser = _Parser(prog="posref", description="The reference implementation of position in Transformers.")
    parser.add_argument("--version", action="version", version=f"posref {posref.__version__}")
    parser.set_defaults(run=_screen, parser=parser)
    others = ", ".join(name for name in COMMANDS if name not in FIRST)
    parser.epilog = f"More commands: {others}. `posref COMMAND --help` explains each, with examples."
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    listing = _command(commands, "list")
    form = listing.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="as JSON")
    form.add_argument("--markdown", action="store_true", help="as the table of docs/systems.md")
    listing.set_defaults(run=_list)

    show = _command(commands, "show")
    show.add_argument("name", metavar="NAME", help="a system, a function or a family: rope or roformer, t5.bucket, relative")
    show.add_argument("--models", action="store_true", help="print only the released models that rotate like this system")
    show.set_defaults(run=_show)

    table = _command(commands, "table")
    table.add_argument("--json", action="store_true", help="as JSON")
    table.set_defaults(run=_table)

    find = _command(commands, "find")
    find.add_argument("words", nargs="+", metavar="WORD", help="for instance bloom, yarn, trainable, qwen2-vl")
    find.add_argument("--json", action="store_true", help="as JSON")
    find.set_defaults(run=_find)

    claims = _command(commands, "claims")
    claims.add_argument(
        "words", nargs="*", metavar="WORD", help="for instance unique, decay; without words and options: the sources"
    )
    claims.add_argument("--who", metavar="SOURCE", help="one source, for instance su, vaswani or posref; or all")
    claims.add_argument("--verdict", help="right, imprecise, wrong or undecided")
    claims.add_argument("--json", action="store_true", help="as JSON")
    claims.set_defaults(run=_claims)

    demo = _command(commands, "demo")
    demo.set_defaults(run=_demo)

    check = _command(commands, "check")
    check.epilog = "Other options are settings of the op: `posref check --as alibi.bias --contract` prints them."
    check.add_argument(
        "function",
        nargs="?",
        metavar="MODULE:FUNCTION",
        help="for instance my_ops:rope, or src/my_ops.py:rope; without it, --as SYSTEM lists the ops",
    )
    _asking(check)
    check.add_argument("--contract", action="store_true", help="print what the function receives, and check nothing")
    check.add_argument("--json", action="store_true", help="the report as JSON")
    check.set_defaults(run=_check)

    serve = _command(commands, "serve")
    serve.epilog = (
        "Options are those of `posref check`; --to float16 or bfloat16 sends that dtype. docs/serve.md has the protocol."
    )
    serve.add_argument("program", metavar="PROGRAM", help="the command that starts it, for instance ./rope or 'python rope.py'")
    _asking(serve)
    serve.add_argument("--json", action="store_true", help="the report as JSON")
    serve.set_defaults(run=_serve, function="PROGRAM", contract=False)

    diagnose = _command(commands, "diagnose")
    diagnose.add_argument("case", metavar="CASE", help="id of a golden vector, see `posref vectors list`")
    diagnose.add_argument("file", metavar="FILE", help=".npy, .npz, .safetensors, or raw little-endian numbers with --dtype")
    diagnose.add_argument("--dtype", help="of a raw file: f64, f32, f16, bf16, i32 or i64; for other files only bf16")
    diagnose.add_argument("--json", action="store_true", help="the report as JSON")
    diagnose.set_defaults(run=_diagnose)

    mistakes = _command(commands, "mistakes")
    words = "a system or an op, for instance alibi or t5.bias"
    mistakes.add_argument("name", nargs="?", type=_without_family, metavar="NAME", help=words)
    mistakes.add_argument("--symptom", metavar="WORDS", help="what you see, for instance 'left padding' or 'position 0'")
    mistakes.add_argument(
        "--long", action="store_true", help="also print the effect and the remedy of each mistake, and where it was seen"
    )
    mistakes.add_argument("--json", action="store_true", help="as JSON")
    mistakes.set_defaults(run=_mistakes)

    _add_vectors(_command(commands, "vectors"))

    _add_explain(_command(commands, "explain"))

    _add_express(_command(commands, "express"))
    _add_precision(_command(commands, "precision"))

    aliases = _command(commands, "aliases")
    aliases.add_argument("--json", action="store_true", help="as JSON")
    aliases.set_defaults(run=_aliases)
    return parser


def _command(commands, name, described=COMMANDS, first=FIRST):
    """The parser of a command, whose help begins with a sentence and two examples."""
    sentence, *examples = described[name]
    known = {"help": sentence} if name in first else {}
    made = commands.add_parser(
        name,
        **known,
        description="\n".join([sentence, "", *(f"  {example}" for example in examples)]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=name not in ("check", "serve"),
    )
    made.set_defaults(parser=made)
    made.example = examples[0]
    return made


def _add_vectors(parser):
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    listing = _command(commands, "list", OF_VECTORS, OF_VECTORS)
    listing.add_argument("pattern", nargs="?", default="*", metavar="PATTERN", help="for instance 'rope/half/*'; default: all")
    listing.add_argument("--json", action="store_true", help="as JSON")
    listing.set_defaults(run=_vectors_list)
    export = _command(commands, "export", OF_VECTORS, OF_VECTORS)
    export.add_argument("pattern", nargs="?", default="*", metavar="PATTERN", help="for instance 'rope/half/*'; default: all")
    export.add_argument("--format", required=True, help="json, txt, npz, safetensors, raw or c")
    export.add_argument("--directory", "-o", required=True, help="folder to write to; made if missing")
    export.add_argument("--json", action="store_true", help="the paths written, as JSON")
    export.set_defaults(run=_vectors_export)
    verify = _command(commands, "verify", OF_VECTORS, OF_VECTORS)
    verify.add_argument(
        "directory", nargs="?", metavar="DIRECTORY", help="a copy of the vectors; without it, the installed ones"
    )
    verify.add_argument("--json", action="store_true", help="the problems, as JSON")
    verify.set_defaults(run=_vectors_verify)


class _Models(argparse.Action):
    """Print the names of the models that explain knows, and leave."""

    def __call__(self, parser, *_):
        from posref.explain import sources

        print("\n".join(sources.models()))
        parser.exit()


def _add_explain(parser):
    parser.add_argument(
        "file", metavar="FILE|NAME", help="config.json, params.json, a GGUF file, or a model such as gpt-oss-20b"
    )
    parser.add_argument("--models", action=_Models, nargs=0, help="list the models that are known by name")
    parser.add_argument("--layer", type=WHOLE, metavar="N", help="only the layers that treat positions as layer N does")
    parser.add_argument("--part", metavar="NAME", help="only this part, for instance text_config")
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.add_argument("--frequencies", metavar="OUT", help="write the frequencies to a .npy, .json or .h file")
    parser.add_argument("--code", metavar="LANGUAGE", help="print code of exactly these positions: numpy, torch, jax or c")
    parser.add_argument("--diff", metavar="OTHER", help="what changes in another configuration or model")
    parser.add_argument("--plot", metavar="OUT", help="draw wavelengths, masks and traps to an .svg file; with --diff, of both")
    parser.add_argument("--longer", type=WHOLE, metavar="N", help="compare the scaling rules for texts of N tokens")
    parser.set_defaults(run=_explain)


def _add_express(parser):
    parser.add_argument("system", nargs="?", metavar="ROW", help="the system whose scores are wanted, for instance 'alibi key'")
    parser.add_argument("by", nargs="?", metavar="COLUMN", help="the system that should give them, for instance rope")
    parser.add_argument(
        "--meaning", help="exact, row (up to a constant per row) or causal (keys up to the query); default: all"
    )
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.set_defaults(run=_express)


def _add_precision(parser):
    parser.add_argument("--dim", type=WHOLE, help="rotated width; without it, the usual widths and bases")
    parser.add_argument("--base", type=REAL, help="base of the frequencies")
    parser.add_argument("--length", type=WHOLE, default=131072, metavar="N", help="largest position, 131072 by default")
    parser.add_argument("--tolerance", type=REAL, default=0.01, metavar="RAD", help="largest error, 0.01 radians by default")
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.set_defaults(run=_precision)


def _screen(_):
    print(SCREEN)
    return 0


def _list(arguments):
    from posref import discovery, printed

    systems = discovery.systems()
    if arguments.json:
        fields = ("name", "title", "family", "references", "presets", "vectors")
        print(json.dumps([{field: getattr(system, field) for field in fields} for system in systems], indent=2))
    elif arguments.markdown:
        print(discovery.table())
    else:
        print(printed.listed())
    return 0


def _show(arguments):
    from posref import discovery, printed

    function = None if arguments.models else _usage(discovery.function, arguments.name)
    if arguments.models:
        name = _resolved(arguments.name)
        found = printed.users(name)
        if not found:
            raise Usage(f"no released model rotates like {name}; `posref explain --models` lists all models")
        print(found)
    elif function is not None:
        print(f"{discovery.contract_lines(function)}\n\n{inspect.getsource(function)}", end="")
    elif arguments.name.lower() in discovery.FAMILIES:
        print(printed.listed(arguments.name.lower()))
    else:
        print(printed.page(_resolved(arguments.name)))
    return 0


def _resolved(name):
    """The system of a name, or the one that a word of the field means."""
    from posref import discovery, finding

    try:
        return discovery.resolve(name)
    except LookupError as error:
        meant = finding.meant(name) if name.strip() else []
        if not meant:
            raise Usage(error) from None
        if len(meant) > 1:
            raise Usage(f"{name!r} can mean {', '.join(meant)}; show one of them, or see `posref find {name}`") from None
        return meant[0]


def _table(arguments):
    from posref import comparison, printed

    rows = comparison.table()
    if arguments.json:
        print(json.dumps([row._asdict() for row in rows], indent=2))
    else:
        print(f"{inspect.getdoc(comparison)}\n\n{printed.compared(rows)}")
    return 0


def _find(arguments):
    from posref import finding, printed, symptoms

    words = " ".join(arguments.words)
    hits, meant = finding.found(words), finding.meant(words)
    symptom = f"posref mistakes --symptom {words!r}" if symptoms.found(words) and not meant else ""
    hint = f"`{symptom}` lists the mistakes with this symptom" if symptom else ""
    if not hits:
        raise Usage(f"nothing here says {words!r}; {hint or '`posref list` prints all systems'}")
    if arguments.json:
        print(json.dumps([{**hit._asdict(), "symptom": symptom} for hit in hits], indent=2))
    else:
        print(printed.found(words), *[f"\n{hint}"] * bool(hint), sep="\n")
    return 0


def _claims(arguments):
    import pydoc

    from posref import claims, printed

    sources = {key or "posref": key for key in claims.SOURCES} | {"all": None, None: None}
    for name, given, known in (("who", arguments.who, sources), ("verdict", arguments.verdict, (*claims.VERDICTS, None))):
        if given not in known:
            words = [*filter(None, known)]
            raise Usage(f"--{name} {given}: expected one of {', '.join(words)}{_near(given, words)}")
    words = " ".join(arguments.words)
    found = claims.claims(words, who=sources[arguments.who], verdict=arguments.verdict)
    if arguments.json:
        print(json.dumps([claim._asdict() for claim in found], indent=2))
    elif not found:
        raise Usage(f"no claim has the words {words!r}; try one word, `posref claims --who all` prints all claims")
    elif words or arguments.who or arguments.verdict:
        pydoc.pager(f"{printed.claimed(found)}\n")
    else:
        print(printed.sources())
    return 0


def _is_about_a_file(error):
    first = getattr(error, "__context__", None) or error  # a Usage is raised where another error was met
    frames = traceback.walk_tb(getattr(first, "__traceback__", None))
    return any(frame.f_globals["__name__"].startswith("posref.explain") for frame, _ in frames)


def _demo(_):
    from posref import demo

    return demo.run()


def _option(name):
    return f"--{name.replace('_', '-')}"


def _without_family(name):
    """t5.bias for relative.t5.bias: `find` and `list` print the family of a system, and no op has one."""
    from posref import discovery

    return re.sub(rf"^(posref\.)?(({'|'.join(discovery.FAMILIES)})\.)?", "", name)


def _asking(parser):
    """The options that say what is asked: those of a check, and of a program that answers one."""
    words = "what the function should compute, for instance rope or alibi.bias"
    parser.add_argument("--as", dest="system", type=_without_family, metavar="SYSTEM.OP", help=words)
    for name, (metavar, words) in CHECK_OPTIONS.items():
        kind = {"choices": ONE_OF[name]} if name in ONE_OF else {"type": NUMBERS.get(name, str), "metavar": metavar}
        parser.add_argument(_option(name), help=words, **kind)


def _check(arguments):
    of_one = (arguments.system or "").count(".") == 1 or arguments.system == "rope"
    if arguments.function is None or arguments.contract or not (of_one or arguments.config or arguments.preset):
        return _contract(arguments)
    run, options = _question(arguments)
    with _prints_go_to_stderr():
        function = _function(arguments.function)
        if isinstance(function, type):
            raise Usage(
                f"{arguments.function} is a class; make one, for instance rope = {function.__name__}(..), and name that"
            )
        options |= {name: _converter(name, options[name]) for name in ("to", "to_positions") if name in options}
        report = _judged(run, function, options)
    return _print_report(report, arguments.json)


def _serve(arguments):
    from posref import ops
    from posref.check import program

    if not (arguments.system or arguments.config or arguments.preset):
        raise Usage("serve needs --as SYSTEM.OP, for instance --as alibi.bias --heads 8; `posref list` prints all systems")
    run, options = _question(arguments)
    dtype = options.pop("to", "float32")
    if dtype not in ("float32", "float16", "bfloat16") or "to_positions" in options:
        given = "--to-positions is given" if "to_positions" in options else f"--to is {dtype!r}"
        raise Usage(f"{given}: serve takes --to float32, float16 or bfloat16 alone, and sends integers as they are")
    words = shlex.split(arguments.program)
    if not words or shutil.which(words[0]) is None:
        raise Usage(f"there is no program {arguments.program!r}; write the command that starts it, or build it first")
    name = (
        arguments.system
        if "." in (arguments.system or "")
        else (arguments.preset and _of_preset(arguments)[0]) or "rope.rotate"
    )
    op = _usage(ops.op, name)
    with program.Program(arguments.program, name, op.given, inspect.signature(op.make).parameters) as function:
        report = _judged(run, function, options | {"to": partial(program.tensor, dtype)})
    wrap = "wrap the implementation, or pass --to, which converts its arrays"
    report.advice = [text.replace(wrap, "docs/serve.md shows a call and its answer") for text in report.advice]
    return _print_report(report, arguments.json)


def _question(arguments):
    """What is asked: the function of `posref.check` that asks it, and its options."""
    if arguments.config:
        run, options = _of_a_config(arguments)
    elif arguments.system == "rope" and not arguments.preset:
        run, options = _of_rope(arguments)
    else:
        run, options = _of_an_op(arguments)
    if "layout" in options:
        _known_layout(options["layout"])
    if isinstance(options.get("frequencies"), str):
        options["frequencies"] = _numbers("--frequencies", options["frequencies"])
    return run, options


def _judged(run, function, options):
    try:
        report = run(function, **options)
    except (TypeError, ValueError) as error:
        raise Usage(_in_shell(str(error))) from None
    report.advice = [_in_shell(text) for text in report.advice]
    report.diagnosis = [replace(found, sentence=_as_typed(found.sentence)) for found in report.diagnosis]
    return report


def _as_typed(sentence):
    """A diagnosis that compares settings, with options.

    >>> _as_typed('with form="key"; you asked for form="signed"'), _as_typed("with causal=True; you asked for causal=False")
    ('with --form key; you asked for --form signed', 'with --causal; you asked for --no-causal')
    """

    def option(found):
        name, value = _option(found[1]), found[2].strip('"')
        return {"True": name, "False": f"--no{name[1:]}"}.get(value, f"{name} {value.lower() if value == 'None' else value}")

    words = re.compile(r'\b([a-z]\w*)=("[^"]*"|[^\s,;()`"]+)')
    return words.sub(option, sentence) if "; you asked for " in sentence else sentence


TEXT_ALONE = (
    "each pair of this model reads one of three positions, and only texts were checked, where the three are equal; images, and "
    "which pair reads which position, were not: a function(x, coordinates) receives all three, (n, 3)"
)


def _given(arguments, known, way):
    """The options that were given. Usage for one that is not known to this way of asking."""
    given = {name: getattr(arguments, name) for name in CHECK_OPTIONS if getattr(arguments, name) is not None}
    width, head = given.get("rotary_dim"), given.get("dim")
    if None not in (width, head) and width > head:
        raise Usage(f"--rotary-dim is {width} and --dim {head}; --rotary-dim cannot exceed --dim, the width of a head")
    for name in given:
        if name not in known:
            remedy = "leave it out"
            if name == "rotary_dim" and {"dim", "head_dim"} <= set(known):
                remedy = f"write --dim {given[name]} --head-dim {given.get('dim', 'DIM')}: --dim is the width that turns here"
            if name == "schedule" and way.endswith("rope.rotate"):
                remedy = "leave it out, or check with --as rope, which takes it"
            meaning = CHECK_OPTIONS[name][1]
            raise Usage(f"{way} has no {_option(name)}; {remedy}. It is for: {meaning}")
    return given


def _needed(parameters, options, way, op):
    missing = [
        f"{_option(name)} or --no-{_option(name)[2:]}" if parameter.annotation is bool else _option(name)
        for name, parameter in parameters.items()
        if parameter.default is parameter.empty and parameter.kind is parameter.KEYWORD_ONLY and name not in options
    ]
    if missing:
        raise Usage(f"{way} needs {', '.join(missing)}; `posref check --as {op} --contract` explains its settings")


def _of_a_config(arguments):
    """A model's rotation: its configuration says all about it. Where pairs read time, rows and columns, a function that names
    `coordinates` receives all three; another one is asked at positions of a text, and the report says so.
    """
    from posref import check
    from posref.check.implementation import another_layer, whole_heads

    asked = _of_a_model(arguments)
    known = inspect.signature(check.check_rope).parameters.keys() - NEVER_OF_A_CONFIG
    given = _given(arguments, known | {"config", "layer", "part", "layout"}, "--config, which says the rotation,")
    arguments.parser.refuse(arguments.rest)
    given = {name: given[name] for name in given if name not in ("config", "layer", "part", "layout")}

    def run(function, **options):
        if asked.op == "rope.rotate":
            return _as_it_is(function, asked, options)
        if asked.op == "axes.rotate":
            return check.check(function, "axes.rotate", **asked.settings, **options)
        if asked.axes and "coordinates" in inspect.signature(function).parameters:
            return check.check(function, "axes.rotate", **asked.axes, **options)
        report = check.check_rope(function, **asked.settings, **options)
        another_layer(report, function, arguments.config, **options)
        if asked.axes:
            report.skipped("time, row and column", TEXT_ALONE)
        if asked.place:
            if report.ok:
                whole_heads(report, function, arguments.config, arguments.layer, arguments.part, asked.head_dim, **options)
            if report.checks[-1].name == "heads":
                report.skipped("scores", "their scale was not checked")
            else:
                words = f"that they are {asked.place}, and the scale of scores"
                report.skipped("heads", f"only the rotated features were checked; not checked: {words}")
        if asked.pictures:
            report.skipped("pictures", f"their rotation was not checked; it is chosen with {' or '.join(asked.pictures)}")
        return report

    return run, given


def _as_it_is(function, asked, options):
    """The report on a layer without positions, whose queries and keys stay as they are."""
    from posref import check
    from posref.check.report import Finding

    report = check.check(function, asked.op, **asked.settings, **options)
    report.subject, report.ambiguous = "a layer without positions returns x as it is", []
    if not report.ok and asked.turning and check.check_rope(function, **asked.turning, **options).ok:
        sentence, remedy = "your output is rotated as in the layers with positions", "Leave this layer out of the rotation."
        report.diagnosis, report.advice = [Finding("layer_with_positions", sentence, remedy)], [remedy]
    return report


def _of_rope(arguments):
    from posref import check, ops

    parameters = inspect.signature(check.check_rope).parameters
    options = _given(arguments, parameters, "--as rope")
    schedule = f"scaling.{arguments.schedule}"
    known = inspect.signature(ops.op(schedule).spec).parameters if arguments.schedule in ops.system("scaling") else {}
    of_schedule = {name: p.replace(kind=p.KEYWORD_ONLY) for name, p in known.items() if name not in parameters}
    more = {name: parameters[name] for name in ("magnitude", "sign")} | of_schedule
    found = _settings(more, arguments.rest, "; --as rope.rotate takes others too")
    options |= found | {name: _numbers(f"--{name}", found[name]) for name in ("factors",) if isinstance(found.get(name), str)}
    _needed(parameters, options, "--as rope", "rope")
    _needed(of_schedule, options, f"--schedule {arguments.schedule}", schedule)
    return check.check_rope, options


def _of_an_op(arguments):
    from posref import check, ops

    system = arguments.system if "." in (arguments.system or "") else None  # a preset says the op of its system
    name, way = system or _of_preset(arguments)[0], f"--as {system}" if system else f"--preset {arguments.preset}"
    settings = _usage(ops.op, name).make if name else check.check
    parameters = inspect.signature(settings).parameters | inspect.signature(check.check).parameters
    of_model = {"layer", "part"} if arguments.preset and arguments.preset.replace("-", "_") not in ops.presets() else set()
    options = _given(arguments, parameters.keys() | of_model, way) | _settings(parameters, arguments.rest)
    _needed({} if arguments.preset else parameters, options, way, name)
    return lambda function, **options: check.check(function, arguments.system, **options), options


def _of_preset(arguments):
    """The op of a preset or of a model, and its settings; none for what `check` will refuse."""
    from posref import ops
    from posref.explain import presets

    with contextlib.suppress(ValueError):
        name = (arguments.preset or "").replace("-", "_")
        asked = arguments.preset, arguments.layer, arguments.part, arguments.layout
        return ops.presets().get(name) or presets.op_and_settings(*asked)
    return "", {}


def _of_a_model(arguments):
    """What is asked so that a function rotates as a model does."""
    from posref.explain import command

    if arguments.system not in (None, "rope"):
        raise Usage(f"--config is about rotations; leave --as {arguments.system} out")
    try:
        return command.question(arguments.config, arguments.layer, arguments.part, arguments.layout)
    except ValueError as error:
        remedy = f"; `posref explain {arguments.config}` says what its layers do, choose the op with --as"
        raise Usage(f"{error}{remedy if 'no layer of' in str(error) else ''}") from None


def _meaning(name, lines):
    """The meaning of an op's result and arrays, from the conventions of its golden vectors."""
    from posref import vectors

    system, _, own = name.rpartition(".")
    said = vectors.load(system).conventions
    found = {
        word: said.get(f"op {own}" if word == "returns" else word) for word in (re.split("[:=]", line)[0] for line in lines)
    }
    return {word: words for word, words in found.items() if words}


def _contract(arguments):
    """What can be asked: the ops of a system, or what a function for one op receives."""
    from posref import check, ops

    name = _of_a_model(arguments).op if arguments.config else arguments.system
    name = "rope.rotate" if name == "rope" and (arguments.config or arguments.contract) else name
    name = name if arguments.preset is None or "." in (name or "") else _of_preset(arguments)[0]
    if name is None:
        raise Usage(
            "check needs --as SYSTEM.OP, for instance --as alibi.bias --heads 8; `posref list` prints all systems, "
            "`posref check --as SYSTEM` the ops of one"
        )
    if "." in name or arguments.preset:
        options = _contract_of(arguments, name)
        pairs = _example_of_pairs(name, options)
        try:
            lines = check.contract(name or None, preset=arguments.preset, **options | pairs)
        except (TypeError, ValueError) as error:
            raise Usage(_in_shell(str(error))) from None
        lines = [f"{line.split('=')[0]}: required" if line.split("=")[0] in pairs else line for line in lines]
        means = _meaning(name or _of_preset(arguments)[0], lines)
        if arguments.json:
            print(json.dumps({"op": name, "receives": lines, "means": means}, indent=2))
        else:
            _print_contract(arguments, ops.op(name or _of_preset(arguments)[0]), options | pairs, lines)
            if means:
                print("\n".join(["Meaning:", *(f"  {word}: {words}" for word, words in means.items())]))
            print("If a parameter of your function has the name of a setting, it receives this setting by keyword.")
            print(f"`posref mistakes {name or _of_preset(arguments)[0]}` lists what can be wrong.")
        return 0 if arguments.contract or arguments.function is None else 2
    found = _system(name)
    options = [_option(key) for key in CHECK_OPTIONS if getattr(arguments, key) is not None]
    if options or arguments.rest:
        known = ", ".join(op.name for op in found.values())
        raise Usage(f"--as {name} lists ops and takes no {[*options, *arguments.rest][0]}; name one of its ops: --as {known}")
    if arguments.json:
        print(json.dumps({op.name: op.given for op in found.values()}, indent=2))
    else:
        print("\n".join(f"{op.name}({', '.join(op.given)})" for op in found.values()))
        first = next(iter(found.values())).name
        print(f"`posref check MODULE:FUNCTION --as {first}` checks one; --contract prints its settings.")
    return 0 if arguments.function is None else 2


def _example_of_pairs(name, options):
    """An example of the numbers per pair that an op requires, where they were not given, for the width that was."""
    import numpy as np

    from posref import ops
    from posref.check import implementation

    pairs = max(1, options["dim"] // 2) if "dim" in options else 0
    examples = implementation.example(ops.op(name)) if name and pairs else {}
    return {key: np.resize(value, pairs) for key, value in examples.items() if np.ndim(value) and key not in options}


def _print_contract(arguments, op, options, lines):
    """The lines of `check.contract` with a name for each axis, and the settings as one types them."""
    from posref.check import axes, implementation

    parameters = inspect.signature(op.make).parameters
    usual = {name: p.default for name, p in parameters.items()} | implementation.example(op)
    of_model = _of_preset(arguments)[1] if arguments.preset else {}
    settings = usual | of_model | {name: value for name, value in options.items() if name in parameters}
    named, why = {}, ""
    try:
        a = op.make(**settings)
        if ":" not in lines[0]:
            op.spec(**a)
        named = axes.axes(op, a)
        for name in axes.with_tokens_behind_heads(op, a) if arguments.axes else ():
            batch, heads, tokens, *rest = named[name]
            named[name] = (batch, tokens, heads, *rest) if arguments.axes == "bnhd" else (tokens, heads, *rest)
    except (TypeError, ValueError) as error:
        why = f"No shapes, since no arguments fit these settings: {_plain(error)}."
    end = next((i + 1 for i, line in enumerate(lines) if line.startswith("returns:")), len(op.given))
    said = {re.split("[:=]", line)[0] for line in lines[end:]}
    sizes = {name: value for name, value in settings.items() if type(value) is int and name in said}
    if "dim: required" in lines:
        lines = ["head_dim: as --dim" if line.startswith("head_dim=") else line for line in lines]
    print(f"{op.name} receives, in this order (the sizes are examples):")
    print("\n".join(f"  {_with_axes(line, named, sizes)}" for line in lines[:end]))
    if why and ":" not in lines[0]:
        print(why)
    if lines[end:]:
        print("\n".join(["Settings:", *(f"  {_as_option(line, parameters)}" for line in lines[end:])]))


def _with_axes(line, named, sizes):
    """A line of a contract, `x: numbers (3, 7)`, with what each axis counts: `x: numbers (batch=3, tokens=7)`."""
    from posref.check.axes import COUNTED

    tokens = {"n_query": "queries", "n_key": "keys"} if sizes.keys() >= {"n_query", "n_key"} else {}
    words = {"tokens": tokens, "rows": {name: name for name in sizes.keys() - COUNTED}}
    words[""] = {"dim": "features", "head_dim": "features"}

    def axis(counted, size):
        found = {word for name, word in words.get(counted, {}).items() if sizes.get(name) == int(size)}
        name = found.pop() if len(found) == 1 else counted
        return f"{name}={size}" if name else size

    def shape(found):
        each = found[1].rstrip(",").split(", ")
        counted = named.get("the result" if line.startswith("returns:") else line.partition(":")[0], ())
        return f"({', '.join(map(axis, counted, each))})" if any(counted) and len(counted) == len(each) else found[0]

    return re.sub(r"\((\d[\d, ]*)\)", shape, line, count=1)


def _as_option(line, parameters):
    """A setting as one types it.

    >>> _as_option("max_distance=128", {}), _as_option("layout: required, one of 'interleaved', 'half'", {})
    ('--max-distance 128', '--layout: required, one of interleaved, half')
    """
    name, sign, words = re.match(r"(\w+)(=|: )(.*)", line.replace("'", "")).groups()
    option = _option(name)
    default = parameters[name].default if name in parameters else None
    if name in parameters and (parameters[name].annotation is bool or isinstance(default, bool)):
        no = f"--no{option[1:]}"
        return f"{option} or {no}{sign}{words}" if sign == ": " else no if words == "False" else option
    return f"{option}: not given" if words == "None" else f"{option}{sign.replace('=', ' ')}{words}"


def _contract_of(arguments, name):
    """The settings of `check.contract`; for rope, those of its op that mean the same."""
    from posref import check, ops

    parameters = inspect.signature(_usage(ops.op, name).make).parameters if name else {}
    known = {*parameters, *inspect.signature(check.contract).parameters} | ({"rotary_dim"} if name == "rope.rotate" else set())
    known |= {"config", "layer", "part"} if arguments.config or arguments.preset else set()
    options = _given(arguments, known, f"the contract of {name}") | _settings(parameters, arguments.rest)
    options.pop("preset", None)
    if "frequencies" in options:
        options["frequencies"] = _numbers("--frequencies", options["frequencies"])
    if options.pop("config", None):
        settings = _of_a_model(arguments).settings
        made = _made_by_its_schedule(settings)
        asked = {key: value for key, value in settings.items() if key in known and not (made and key == "base")} | made
        options = {key: value for key, value in options.items() if key not in ("layer", "part")} | asked
    if name == "rope.rotate" and "rotary_dim" in options:
        width = options.pop("rotary_dim")
        options |= {"dim": width, "head_dim": options.get("dim", width)}
    return options | {key: _converter(key, options[key]) for key in ("to", "to_positions") if key in options}


def _made_by_its_schedule(settings):
    """The frequencies of a schedule with its base and its own settings; none where there is no schedule."""
    from posref import check
    from posref.check.rotary import schedules

    if "schedule" not in settings:
        return {}
    width = settings.get("rotary_dim", settings["dim"])
    own = {key: value for key, value in settings.items() if key not in inspect.signature(check.check_rope).parameters}
    return {"frequencies": schedules.asked(settings["schedule"], width, settings["base"], own)[0]}


def _settings(parameters, rest, more=""):
    """The settings of an op that the command line has no option of its own for."""
    parser = _Parser(prog="posref check", allow_abbrev=False, add_help=False)
    for name, parameter in parameters.items():
        option = _option(name)
        if parameter.annotation is bool or isinstance(parameter.default, bool):
            parser.add_argument(option, action=argparse.BooleanOptionalAction, default=argparse.SUPPRESS)
        elif name not in CHECK_OPTIONS:
            parser.add_argument(option, type=_value, default=argparse.SUPPRESS)
    found, unknown = parser.parse_known_args(rest)
    if unknown:
        if ":" in unknown[0]:
            raise Usage(f"put MODULE:FUNCTION first: posref check {unknown[0]} --as ..")
        names = [_option(name) for name in parameters if name not in ("fn", "name", "settings")]
        near = _near(unknown[0].partition("=")[0], [*names, *map(_option, CHECK_OPTIONS)])
        raise Usage(f"check has no {unknown[0]} here{near}; the settings are {', '.join(names)}{more}")
    return vars(found)


def _value(text):
    """A number where it is one, an array where it is numbers with commas, nothing where it is none, else the word."""
    import numpy as np

    if text.lower() == "none":
        return None
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    parts = [_value(part) for part in text.split(",")] if "," in text else [text]
    return text if any(isinstance(part, str) for part in parts) else np.array(parts)


def _usage(function, *arguments):
    try:
        return function(*arguments)
    except ValueError as error:
        raise Usage(error) from None


def _system(name):
    """The ops of a system; Usage with the systems that a word of the field means."""
    from posref import finding, ops

    try:
        return ops.system(name)
    except ValueError as error:
        meant = [each.split(".")[-1] for each in finding.meant(name) if each.split(".")[-1] in ops.names()]
        raise Usage(f"no system {name}; did you mean {' or '.join(meant)}?" if meant and name.strip() else error) from None


def _mistakes(arguments):
    from posref import finding, ops, printed, symptoms
    from posref.ops import pages

    if arguments.symptom is not None:
        if arguments.long:
            raise Usage("--long is for a NAME, and --symptom names several systems: leave out --long, or write NAME --long")
        if arguments.name is not None:
            raise Usage("mistakes takes a NAME or --symptom WORDS, not both; leave one of them out")
        found = [(each.sees, pages.suspects(each.suspects), each.ask) for each in symptoms.found(arguments.symptom)]
        found += [(effect, by, "") for effect, by in pages.symptoms(arguments.symptom)]
        if not found or not arguments.symptom.strip():
            words = ", ".join(each.words.split()[0] for each in symptoms.SYMPTOMS)
            raise Usage(f"no symptom has the words {arguments.symptom!r}; try {words}, or position 0")
        if arguments.json:
            print(json.dumps([{"effect": effect, "mistakes": dict(by), "ask": ask} for effect, by, ask in found], indent=2))
        else:
            asks = ([f"  Run next: {ask}"] if ask else [] for _, _, ask in found)
            told = ("\n".join([effect, *_by_mistake(by), *ask]) for (effect, by, _), ask in zip(found, asks, strict=True))
            print("\n\n".join(told))
        return 0
    if arguments.name is None:
        raise Usage("mistakes needs a NAME, for instance alibi or t5.bias, or --symptom WORDS")
    system, _, op = arguments.name.partition(".")
    if system not in ops.names() and len(finding.meant(system)) == 1:
        arguments.name = ".".join([_resolved(system).split(".")[-1], *[op] * bool(op)])
    known = _usage(pages.mistakes, arguments.name)
    if arguments.json:
        words = {name: {key: value for key, value in m._asdict().items() if key != "wrong"} for name, m in known.items()}
        for name, made in ((name, pages.first_wrong(arguments.name, name)) for name in words):
            words[name]["first_wrong"] = made and {**made._asdict(), "value": str(made.value), "right": str(made.right)}
        print(json.dumps(words, indent=2))
    else:
        print(pages.page(arguments.name) if arguments.long else printed.mistaken(arguments.name))
    return 0


def _by_mistake(named):
    """One line per mistake, with the systems that can make it, or their number where they are many."""
    systems = {}
    for name, bug in named:
        system, mistake = name.split(".")
        systems.setdefault((mistake, bug), []).append(system)
    where = (", ".join(each) if len(each) < 6 else f"{len(each)} systems" for each in systems.values())
    return [f"  {mistake}: {bug} (in {of})" for (mistake, bug), of in zip(systems, where, strict=True)]


def _known_layout(layout):
    from posref.check.frameworks import layout_of
    from posref.check.rotary.rotation import LAYOUTS

    if layout not in LAYOUTS:
        meant = layout_of(layout)
        remedy = f"{layout} is {meant}, write --layout {meant}" if meant else "`posref aliases` says which is yours"
        remedy = f"{_near(layout, LAYOUTS)[2:]}; {remedy}".removeprefix("; ")
        raise Usage(f"--layout {layout}: expected {', '.join(LAYOUTS)}; {remedy}")


def _in_shell(text):
    """A message of posref.check with options instead of arguments."""
    text = re.sub(r"check\.(check(_\w+)?|load_output): ", "", text)
    text = re.sub(r"^(?:[\w.]+: )?(\w+) is '([^']*)', expected one of (.*)$", _expected, text)

    text = re.sub(r"\b(\w+)=None\b", lambda found: f"{_option(found[1])} none", text)

    def option(found):
        name, value = found.group(1).replace("_", "-"), found.group(2)
        return f"--{name} {value}" if value.strip(".") else f"--{name}{value}"

    return re.sub(r'\b(to|to_positions|max_position|positions|exponent_dim|layer|part|dtype|layout)="?([\w.]*)"?', option, text)


def _expected(found):
    """An option that takes one of several words.

    >>> _expected(re.fullmatch("(.*)=(.*), one of (.*)", "form=foo, one of 'signed', 'absolute', 'key'"))
    '--form foo: expected signed, absolute or key'
    """
    name, value, words = found.groups()
    *others, last = words.replace("'", "").split(", ")
    return f"{_option(name)} {value}: expected {', '.join(others)}{' or ' if others else ''}{last}"


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
        raise Usage(_in_shell(str(error))) from None
    report = check.diagnose(case, output, dtype=dtype)
    report.advice = [_in_shell(text) for text in report.advice]
    return _print_report(report, arguments.json)


def _explain(arguments):
    from posref.explain import command

    try:
        print(command.answer(arguments))
    except ValueError as error:
        raise Usage(error) from None
    return 0


def _express(arguments):
    from posref import expressivity

    chosen = [arguments.meaning] if arguments.meaning else expressivity.MEANINGS
    if arguments.system and not arguments.by:
        near = _near(arguments.system, expressivity.SYSTEMS)
        raise Usage(f"express needs a second system, for instance 'alibi key' rope{near}; `posref express` prints all systems")
    try:
        if arguments.json:
            print(json.dumps(expressivity.records(chosen, arguments.system, arguments.by), indent=2))
        elif arguments.system:
            said = [expressivity.sentence(arguments.system, arguments.by, meaning) for meaning in chosen]
            print("\n".join([*said, f"Here {expressivity.FORM}."]))
        else:
            print("\n\n".join([expressivity.LEGEND, *map(expressivity.page, chosen), expressivity.left_out()]))
    except ValueError as error:
        raise Usage(error) from None
    return 0


def _precision(arguments):
    from posref import precision

    try:
        rows = precision.table(arguments.dim, arguments.base, length=arguments.length, tolerance=arguments.tolerance)
    except ValueError as error:
        raise Usage(error) from None
    print(json.dumps(rows, indent=2) if arguments.json else precision.page(rows, arguments.length, arguments.tolerance))
    return 0


def _numbers(option, text):
    """An array from numbers with commas, or from a .npy or .json file."""
    import numpy as np

    from posref.check import tensors

    remedy = "give numbers with commas, or a .npy or .json file with a list of them"
    try:
        if text.endswith((".npy", ".json")):
            return tensors.load_numbers(text)
    except OSError as error:
        raise Usage(f"{option} {text}: {error.strerror}; give the path of a .npy or .json file") from None
    except ValueError as error:
        raise Usage(f"{option}: {error}; {remedy}") from None
    try:
        return np.array([float(number) for number in text.split(",")])
    except ValueError:
        raise Usage(f"{option} {text}: no list of numbers; {remedy}") from None


def _print_report(report, as_json):
    print(json.dumps(report.as_dict(), indent=2) if as_json else report)
    return 0 if report.ok else 1


def _vectors_list(arguments):
    from posref import vectors

    ids = [*vectors.ids(arguments.pattern)]
    if not ids:
        raise Usage(
            f"no case matches {arguments.pattern!r}; `posref vectors list` prints all ids; write 'rope/*' for those of one "
            "system, 'released/*' for released models"
        )
    print(json.dumps(ids, indent=2) if arguments.json else "\n".join(ids))
    return 0


def _vectors_export(arguments):
    from posref import vectors

    try:
        written = vectors.export(arguments.directory, arguments.format, arguments.pattern)
    except (LookupError, ValueError) as error:
        raise Usage(error) from None
    except OSError as error:
        said = f"{error.filename2 or error.filename}: {error.strerror}; choose another directory"
        raise Usage(said if error.strerror else error) from None
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
        print("\n".join(problems or [_agreement(arguments.directory)]))
    return 1 if problems else 0


def _agreement(directory):
    """What is known of files that fit the MANIFEST.sha256 beside them, which could be anybody's."""
    from posref import vectors

    others = [] if directory is None else vectors.differing(Path(directory))
    if not others:
        return f"all files are those of posref {posref.__version__}" if directory else "all files agree with MANIFEST.sha256"
    more = f" and {len(others) - 10} more" if len(others) > 10 else ""
    return (
        "all files agree with the MANIFEST.sha256 beside them; these files are missing or different in the installed "
        f"posref {posref.__version__}: {', '.join(others[:10])}{more}"
    )


def _aliases(arguments):
    from posref import check

    rows = check.aliases()
    if arguments.json:
        print(json.dumps([row._asdict() for row in rows], indent=2))
    else:
        table = [
            ("posref", "half", "interleaved"),
            *((r.framework, r.half or "-", r.interleaved or "-") for r in rows),
        ]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        print("\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in table))
    return 0


def _function(path):
    """The object behind MODULE:FUNCTION, looked for from the current directory first, or FILE.py:FUNCTION."""
    from posref.check.call import raised

    name, _, attribute = path.rpartition(":")
    if not name or not all(part.isidentifier() for part in attribute.split(".")):
        raise Usage(f"{path!r} is no function; write MODULE:FUNCTION or FILE.py:FUNCTION, for instance my_ops:rope")
    try:
        found = _module(name)
    except Usage:
        raise
    except ModuleNotFoundError as error:
        top = name.split(".")[0]
        remedy = f"run posref where {top}.py lies" if error.name == top else "install what it imports"
        raise Usage(f"{path}: {error}; {remedy}") from None
    except (Exception, SystemExit) as error:
        raise Usage(f"{path}: importing {name} raises {raised(error)}; make that work first") from None
    try:
        for part in attribute.split("."):
            found = getattr(found, part)
    except AttributeError as error:
        near = _near(part, [name for name in dir(found) if not name.startswith("_")])
        raise Usage(f"{path}: {error}{near or '; check the name after the colon'}") from None
    if not callable(found):
        from posref import _require

        raise Usage(f"{path} is {_require.kind(found)}, not a function; name what takes the arrays")
    return found


def _module(name):
    """The module of a dotted name, or of a file: inside its package, if it lies in one."""
    file = Path(name)
    if file.suffix != ".py" and file.name == name:
        sys.path.insert(0, os.getcwd())
        return importlib.import_module(name)
    file = file.with_suffix(".py").absolute()
    if not file.is_file():
        near = _near(file.name, [each.name for each in file.parent.glob("*.py")])
        raise Usage(f"{name}: there is no file {file}{near}; write MODULE:FUNCTION or FILE.py:FUNCTION")
    folder, dotted = file.parent, file.stem
    while (folder / "__init__.py").is_file():
        folder, dotted = folder.parent, f"{folder.name}.{dotted}"
    sys.path.insert(0, str(folder))
    spec = importlib.util.spec_from_file_location(dotted, file)
    module = sys.modules[dotted] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _converter(name, text):
    """A function of NumPy arrays: MODULE:FUNCTION, what Python calls it, or a dtype of torch or jax such as torch.bfloat16.

    A dtype is that of all arrays of its kind: floats or integers. Other arrays keep theirs.
    """
    text = CONVERTERS.get(text, text)
    library, _, dtype = text.partition(".")
    if library not in LIBRARIES or ":" in text:
        return _function(text)
    option = f"{_option(name)} {text}"
    try:
        module = importlib.import_module(LIBRARIES[library])
    except ImportError as error:
        raise Usage(f"{option}: {error}; pip install {library}") from None
    made = getattr(module, dtype, None)
    if not isinstance(made, type(module.float32)):
        raise Usage(f"{option}: {library} has no such dtype; try {library}.float32 or {library}.bfloat16")
    if library == "jax":
        kind = module.dtype(made).kind.replace("V", "f")  # bfloat16 is none of NumPy's
        return lambda array: module.asarray(array, dtype=made if array.dtype.kind == kind else None)
    kind = "f" if made.is_floating_point else "i"
    return lambda array: module.from_numpy(array).to(made) if array.dtype.kind == kind else module.from_numpy(array)
