"""The command line: `posref` and `python -m posref`.

Exit codes: 0 yes, 1 no, 2 a wrong command or input, a full disk or an error of posref, 130 interrupted. An error of use is one
line on stderr that names the remedy. Each command imports its modules when it runs. What a checked function prints goes to
stderr, so stdout has only the answer.
"""

import contextlib
import os
import sys
import traceback
from itertools import pairwise

from posref._printable import printable
from posref.cli import checking, messages, parser
from posref.cli.typed import Usage


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
        commands = parser.all_commands()
        argv = sys.argv[1:] if argv is None else list(argv)
        arguments, arguments.rest = commands.parse_known_args(argv)
        if arguments.run is checking.check and _is_a_value(argv, arguments):
            first = argv.index("check") + 1
            arguments, arguments.rest = commands.parse_known_args([*argv[:first], "no:function", *argv[first:]])
            arguments.function = None
        if arguments.run not in (checking.check, checking.serve):  # a check has the settings of its op
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
        print(f"posref: {printable(' '.join(messages.plain(message).split()))}", file=sys.stderr)
    return code


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
