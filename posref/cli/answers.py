"""The other commands: each prints what it is asked for, and returns the exit code."""

import inspect
import json
import os
from pathlib import Path

import posref
from posref.cli import typed
from posref.cli.typed import Usage

SCREEN = f"""\
posref {posref.__version__}: the reference implementation of position in Transformers.

Positional encodings and position-aware attentions as NumPy functions whose bodies are the formulas, with proofs
about these functions, and golden vectors for tests in any language.

Try:
  posref list           all systems, one line each
  posref show rope      one system: definition, conventions, code, who differs, what is proved
  posref demo           read, prove and diagnose RoPE, in half a minute

`posref --help` lists all commands, `posref COMMAND --help` explains one."""


def screen(_):
    print(SCREEN)
    return 0


def systems(arguments):
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


def show(arguments):
    from posref import discovery, printed

    function = None if arguments.models else typed.or_usage(discovery.function, arguments.name)
    if arguments.models:
        name = typed.resolved(arguments.name)
        found = printed.users(name)
        if not found:
            raise Usage(f"no released model rotates like {name}; `posref explain MODEL` says how a model encodes position")
        print(found)
    elif function is not None:
        print(f"{discovery.contract_lines(function)}\n\n{inspect.getsource(function)}", end="")
    elif arguments.name.lower() in discovery.FAMILIES:
        print(printed.listed(arguments.name.lower()))
    else:
        print(printed.page(typed.resolved(arguments.name)))
    return 0


def table(arguments):
    from posref import comparison, printed

    rows = comparison.table()
    if arguments.json:
        print(json.dumps([row._asdict() for row in rows], indent=2))
    else:
        print(f"{inspect.getdoc(comparison)}\n\n{printed.compared(rows)}")
    return 0


def find(arguments):
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


def claims(arguments):
    import pydoc

    from posref import claims, printed

    sources = {key or "posref": key for key in claims.SOURCES} | {"all": None, None: None}
    for name, given, known in (("who", arguments.who, sources), ("verdict", arguments.verdict, (*claims.VERDICTS, None))):
        if given not in known:
            words = [*filter(None, known)]
            raise Usage(f"--{name} {given}: expected one of {', '.join(words)}{typed.near(given, words)}")
    words = " ".join(arguments.words)
    found = claims.claims(words, who=sources[arguments.who], verdict=arguments.verdict)
    if not found:
        raise Usage(f"no claim has the words {words!r}; try one word, `posref claims --who all` prints all claims")
    if arguments.json:
        print(json.dumps([claim._asdict() for claim in found], indent=2))
    elif words or arguments.who or arguments.verdict:
        pydoc.pager(f"{printed.claimed(found)}\n")
    else:
        print(printed.sources())
    return 0


def demo(_):
    from posref import demo

    return demo.run()


def mistakes(arguments):
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
        arguments.name = ".".join([typed.resolved(system).split(".")[-1], *[op] * bool(op)])
    known = typed.or_usage(pages.mistakes, arguments.name)
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


def explain(arguments):
    from posref.explain import command

    try:
        print(command.answer(arguments))
    except ValueError as error:
        raise Usage(error) from None
    return 0


def express(arguments):
    from posref import expressivity

    chosen = [arguments.meaning] if arguments.meaning else expressivity.MEANINGS
    if arguments.system and not arguments.by:
        near = typed.near(arguments.system, expressivity.SYSTEMS)
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


def precision(arguments):
    from posref import precision

    try:
        rows = precision.table(arguments.dim, arguments.base, length=arguments.length, tolerance=arguments.tolerance)
    except ValueError as error:
        raise Usage(error) from None
    print(json.dumps(rows, indent=2) if arguments.json else precision.page(rows, arguments.length, arguments.tolerance))
    return 0


def vectors_list(arguments):
    from posref import vectors

    ids = [*vectors.ids(arguments.pattern)]
    if not ids:
        raise Usage(
            f"no case matches {arguments.pattern!r}; `posref vectors list` prints all ids; write 'rope/*' for those of one "
            "system, 'released/*' for released models"
        )
    print(json.dumps(ids, indent=2) if arguments.json else "\n".join(ids))
    return 0


def vectors_export(arguments):
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


def vectors_verify(arguments):
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


def aliases(arguments):
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
