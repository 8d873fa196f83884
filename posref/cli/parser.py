"""The parser of all commands, with their help."""

import argparse

import posref
from posref.cli import answers, checking, typed


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


def all_commands():
    parser = typed.Parser(prog="posref", description="The reference implementation of position in Transformers.")
    parser.add_argument("--version", action="version", version=f"posref {posref.__version__}")
    parser.set_defaults(run=answers.screen, parser=parser)
    others = ", ".join(name for name in COMMANDS if name not in FIRST)
    parser.epilog = f"More commands: {others}. `posref COMMAND --help` explains each, with examples."
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    listing = _command(commands, "list")
    form = listing.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="as JSON")
    form.add_argument("--markdown", action="store_true", help="as the table of docs/systems.md")
    listing.set_defaults(run=answers.systems)

    show = _command(commands, "show")
    show.add_argument("name", metavar="NAME", help="a system, a function or a family: rope or roformer, t5.bucket, relative")
    show.add_argument("--models", action="store_true", help="print only the released models that rotate like this system")
    show.set_defaults(run=answers.show)

    table = _command(commands, "table")
    table.add_argument("--json", action="store_true", help="as JSON")
    table.set_defaults(run=answers.table)

    find = _command(commands, "find")
    find.add_argument("words", nargs="+", metavar="WORD", help="for instance bloom, yarn, trainable, qwen2-vl")
    find.add_argument("--json", action="store_true", help="as JSON")
    find.set_defaults(run=answers.find)

    claims = _command(commands, "claims")
    claims.add_argument(
        "words", nargs="*", metavar="WORD", help="for instance unique, decay; without words and options: the sources"
    )
    claims.add_argument("--who", metavar="SOURCE", help="one source, for instance su, vaswani or posref; or all")
    claims.add_argument("--verdict", help="right, imprecise, wrong or undecided")
    claims.add_argument("--json", action="store_true", help="as JSON")
    claims.set_defaults(run=answers.claims)

    demo = _command(commands, "demo")
    demo.set_defaults(run=answers.demo)

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
    check.set_defaults(run=checking.check)

    serve = _command(commands, "serve")
    serve.epilog = (
        "Options are those of `posref check`; --to float16 or bfloat16 sends that dtype. docs/serve.md has the protocol."
    )
    serve.add_argument("program", metavar="PROGRAM", help="the command that starts it, for instance ./rope or 'python rope.py'")
    _asking(serve, to=("DTYPE", "send arrays as float32, float16 or bfloat16"), to_positions=("CONVERTER", argparse.SUPPRESS))
    serve.add_argument("--json", action="store_true", help="the report as JSON")
    serve.set_defaults(run=checking.serve, function="PROGRAM", contract=False)

    diagnose = _command(commands, "diagnose")
    diagnose.add_argument("case", metavar="CASE", help="id of a golden vector, see `posref vectors list`")
    diagnose.add_argument("file", metavar="FILE", help=".npy, .npz, .safetensors, or raw little-endian numbers with --dtype")
    diagnose.add_argument("--dtype", help="of a raw file: f64, f32, f16, bf16, i32 or i64; for other files only bf16")
    diagnose.add_argument("--json", action="store_true", help="the report as JSON")
    diagnose.set_defaults(run=checking.diagnose)

    mistakes = _command(commands, "mistakes")
    words = "a system or an op, for instance alibi or t5.bias"
    mistakes.add_argument("name", nargs="?", type=typed.without_family, metavar="NAME", help=words)
    mistakes.add_argument("--symptom", metavar="WORDS", help="what you see, for instance 'left padding' or 'position 0'")
    mistakes.add_argument(
        "--long", action="store_true", help="also print the effect and the remedy of each mistake, and where it was seen"
    )
    mistakes.add_argument("--json", action="store_true", help="as JSON")
    mistakes.set_defaults(run=answers.mistakes)

    _add_vectors(_command(commands, "vectors"))

    _add_explain(_command(commands, "explain"))

    _add_express(_command(commands, "express"))
    _add_precision(_command(commands, "precision"))

    aliases = _command(commands, "aliases")
    aliases.add_argument("--json", action="store_true", help="as JSON")
    aliases.set_defaults(run=answers.aliases)
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


def _asking(parser, **otherwise):
    """The options that say what is asked: those of a check, and of a program that answers one, where some say otherwise."""
    words = "what the function should compute, for instance rope or alibi.bias"
    parser.add_argument("--as", dest="system", type=typed.without_family, metavar="SYSTEM.OP", help=words)
    for name, (metavar, words) in (typed.CHECK_OPTIONS | otherwise).items():
        kind = {"choices": ONE_OF[name]} if name in ONE_OF else {"type": NUMBERS.get(name, str), "metavar": metavar}
        parser.add_argument(typed.option(name), help=words, **kind)


def _add_vectors(parser):
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    listing = _command(commands, "list", OF_VECTORS, OF_VECTORS)
    listing.add_argument("pattern", nargs="?", default="*", metavar="PATTERN", help="for instance 'rope/half/*'; default: all")
    listing.add_argument("--json", action="store_true", help="as JSON")
    listing.set_defaults(run=answers.vectors_list)
    export = _command(commands, "export", OF_VECTORS, OF_VECTORS)
    export.add_argument("pattern", nargs="?", default="*", metavar="PATTERN", help="for instance 'rope/half/*'; default: all")
    export.add_argument("--format", required=True, help="json, txt, npz, safetensors, raw or c")
    export.add_argument("--directory", "-o", required=True, help="folder to write to; made if missing")
    export.add_argument("--json", action="store_true", help="the paths written, as JSON")
    export.set_defaults(run=answers.vectors_export)
    verify = _command(commands, "verify", OF_VECTORS, OF_VECTORS)
    verify.add_argument(
        "directory", nargs="?", metavar="DIRECTORY", help="a copy of the vectors; without it, the installed ones"
    )
    verify.add_argument("--json", action="store_true", help="the problems, as JSON")
    verify.set_defaults(run=answers.vectors_verify)


class _Models(argparse.Action):
    """Print the names of the models that explain knows, and leave."""

    def __call__(self, parser, *_):
        from posref.explain import sources

        print("\n".join(sources.models()))
        parser.exit()


def _add_explain(parser):
    parser.add_argument(
        "file",
        metavar="FILE|NAME",
        help="config.json, params.json, a GGUF file, a model such as gpt-oss-20b, or a model type such as llama",
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
    parser.set_defaults(run=answers.explain)


def _add_express(parser):
    parser.add_argument("system", nargs="?", metavar="ROW", help="the system whose scores are wanted, for instance 'alibi key'")
    parser.add_argument("by", nargs="?", metavar="COLUMN", help="the system that should give them, for instance rope")
    parser.add_argument(
        "--meaning", help="exact, row (up to a constant per row) or causal (keys up to the query); default: all"
    )
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.set_defaults(run=answers.express)


def _add_precision(parser):
    parser.add_argument("--dim", type=WHOLE, help="rotated width; without it, the usual widths and bases")
    parser.add_argument("--base", type=REAL, help="base of the frequencies")
    parser.add_argument("--length", type=WHOLE, default=131072, metavar="N", help="largest position, 131072 by default")
    parser.add_argument("--tolerance", type=REAL, default=0.01, metavar="RAD", help="largest error, 0.01 radians by default")
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.set_defaults(run=answers.precision)
