"""The commands `check`, `serve` and `diagnose`: a report, and whether it is good."""

import contextlib
import inspect
import json
import os
import shlex
import shutil
import sys
from dataclasses import replace
from functools import partial

from posref.cli import contracts, messages, questions, typed
from posref.cli.typed import Usage


def check(arguments):
    of_one = (arguments.system or "").count(".") == 1 or arguments.system == "rope"
    if arguments.function is None or arguments.contract or not (of_one or arguments.config or arguments.preset):
        return contracts.contract(arguments)
    run, options = questions.question(arguments)
    with _prints_go_to_stderr():
        function = typed.function(arguments.function)
        if isinstance(function, type):
            raise Usage(
                f"{arguments.function} is a class; make one, for instance rope = {function.__name__}(..), and name that"
            )
        options |= {name: typed.converter(name, options[name]) for name in ("to", "to_positions") if name in options}
        report = _judged(run, function, options)
    return _print_report(report, arguments.json)


def serve(arguments):
    from posref import ops
    from posref.check import program

    if not (arguments.system or arguments.config or arguments.preset):
        raise Usage("serve needs --as SYSTEM.OP, for instance --as alibi.bias --heads 8; `posref list` prints all systems")
    run, options = questions.question(arguments)
    dtype = options.pop("to", "float32")
    if dtype not in ("float32", "float16", "bfloat16") or "to_positions" in options:
        given = "--to-positions is given" if "to_positions" in options else f"--to is {dtype!r}"
        raise Usage(f"{given}: serve takes --to float32, float16 or bfloat16 alone, and sends integers as they are")
    try:
        words = shlex.split(arguments.program)
    except ValueError as error:
        raise Usage(f"the command {arguments.program!r} cannot be read: {error}; close its quotation mark") from None
    if not words or shutil.which(words[0]) is None:
        raise Usage(f"there is no program {arguments.program!r}; write the command that starts it, or build it first")
    name = (
        arguments.system
        if "." in (arguments.system or "")
        else (arguments.preset and questions.of_preset(arguments)[0]) or "rope.rotate"
    )
    op = typed.or_usage(ops.op, name)
    with program.Program(arguments.program, name, op.given, inspect.signature(op.make).parameters) as function:
        report = _judged(run, function, options | {"to": partial(program.tensor, dtype)})
    wrap = "wrap the implementation, or pass --to, which converts its arrays"
    report.advice = [text.replace(wrap, "docs/serve.md shows a call and its answer") for text in report.advice]
    return _print_report(report, arguments.json)


def _judged(run, function, options):
    try:
        report = run(function, **options)
    except (TypeError, ValueError) as error:
        raise Usage(messages.in_shell(str(error))) from None
    report.advice = [messages.in_shell(text) for text in report.advice]
    report.diagnosis = [replace(found, sentence=messages.as_typed(found.sentence)) for found in report.diagnosis]
    return report


def diagnose(arguments):
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
        raise Usage(messages.in_shell(str(error))) from None
    report = check.diagnose(case, output, dtype=dtype)
    report.advice = [messages.in_shell(text) for text in report.advice]
    return _print_report(report, arguments.json)


def _print_report(report, as_json):
    print(json.dumps(report.as_dict(), indent=2) if as_json else report)
    return 0 if report.ok else 1


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
