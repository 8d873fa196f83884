"""Promises (docs/promises.md): every later version keeps the cases, names, commands and options of a release.

Run `python -m tests.test_promises` once, when a version is released. It adds one line per new item to tests/released.txt:
`case` (its id and the hash of its record), `name` (a public name with its arguments), `call` (also with kinds and defaults),
`keys` (of a command of `ASKED`), `exit` (the exit code of a command of `EXITS`), `option` (of a command, in a page of `SHOWN`)
and `serve` (a line of the protocol).
"""

import argparse
import contextlib
import functools
import importlib
import inspect
import io
import json
import pkgutil
import re
import shlex
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import posref
from posref import cli, discovery, ops, vectors
from posref.check.program import Program
from posref.vectors import formats
from tests.programs import consumers

RELEASED = Path(__file__).with_name("released.txt")
LISTED = ("check", "explain", "vectors")  # their public names are those of __all__
PAGE = Path(__file__).parents[1] / "docs" / "promises.md"
SHOWN = ("README.md", "AGENTS.md", "docs/use.md")  # pages whose options keep their names
ASKED = {  # commands whose keys of --json are the same for every model, function and word
    "list": ["list"],
    "find": ["find", "bucket"],
    "claims": ["claims", "bucket"],
    "check": ["check", "posref.relative.alibi:slopes", "--as", "alibi.slopes", "--heads", "3", "--max-bias", "4"],
    "explain": ["explain", "gpt-oss-20b"],
    "express": ["express", "alibi key", "rope"],
    "precision": ["precision"],
    "aliases": ["aliases"],
}
EXITS = {
    "listed": ["list"],
    "a-right-function": ASKED["check"],
    "a-wrong-function": ["check", "posref.relative.alibi:slopes", "--as", "alibi.slopes", "--heads", "3", "--max-bias", "-4"],
    "an-unknown-command": ["no_such_command"],
    "an-unknown-option": ["list", "--no-such-option"],
    "an-unknown-system": ["show", "no_such_system"],
    "interrupted": None,
}


def names():
    """The public names, with full dots: what the packages list, and every function of a specification and of its fast twin."""
    for package in LISTED:
        yield from (f"{package}.{name}" for name in importlib.import_module(f"posref.{package}").__all__)
    twins = [f"fast.{found.name}" for found in pkgutil.iter_modules(importlib.import_module("posref.fast").__path__)]
    for module in (*discovery.names(), *discovery.COMMON, *(twin for twin in twins if "._" not in twin)):
        for name, value in vars(importlib.import_module(f"posref.{module}")).items():
            own = getattr(value, "__module__", "") == f"posref.{module}"
            if own and inspect.isroutine(value) and not name.startswith("_"):
                yield f"{module}.{name}"


def column(name):
    """A column of the catalogue of golden cases, by id; `vectors.verify` compares the catalogue with the cases."""
    head, *rows = [line.split("\t") for line in (Path(vectors.__file__).parent / vectors.CATALOGUE).read_text().splitlines()]
    return {row[0]: row[head.index(name)] for row in rows}


@functools.cache
def hashes():
    """The hash of each golden case, by id."""
    return {id: held[:16] for id, held in column("sha256").items()}


def called(name):
    """The public name with its arguments, if it is called: "module.name(first,second=)", `=` for a default; "" for none."""
    module, _, own = name.rpartition(".")
    try:
        found = getattr(importlib.import_module(f"posref.{module}"), own)
    except (ModuleNotFoundError, AttributeError):
        return ""
    given = inspect.signature(found).parameters.values() if callable(found) else ()
    words = ",".join(each.name + "=" * (each.default is not each.empty) for each in given)
    return f"{name}({words})" if callable(found) else name


def arguments(name):
    """The arguments of a public name as Python writes them, without annotations and blanks; "" if it is not called or is gone.

    >>> arguments("rotary.scaling.linear")
    'frequencies,*,factor'
    """
    if not called(name).endswith(")"):
        return ""
    module, _, own = name.rpartition(".")
    given = inspect.signature(getattr(importlib.import_module(f"posref.{module}"), own)).parameters.values()
    bare = inspect.Signature([each.replace(annotation=each.empty) for each in given])
    return str(bare).replace("<factory>", "...").replace(" ", "")[1:-1]


def still_fits(was, now):
    """Whether each call that fits the arguments of old fits those of today, and means the same: both as `arguments` writes."""
    was, now = (inspect.signature(eval(f"lambda {text}: 0")).parameters for text in (was, now))
    in_order = [name for name, each in was.items() if each.kind is each.POSITIONAL_OR_KEYWORD]
    in_order_now = [name for name, each in now.items() if each.kind is each.POSITIONAL_OR_KEYWORD]
    kept = all(name in now and each.default in (each.empty, now[name].default) for name, each in was.items())
    new = [each for name, each in now.items() if name not in was and each.kind is not each.VAR_KEYWORD]
    return kept and in_order == in_order_now[: len(in_order)] and all(each.default is not each.empty for each in new)


def still_called(was, now):
    """Whether a call of what was, is one of what is: the arguments stay in order, and new ones have a default."""
    (name, opened, was), (name_now, opened_now, now) = was.partition("("), now.partition("(")
    was, now = re.findall(r"\w+=?", was), re.findall(r"\w+=?", now)
    kept = [each for each in now if each in was or each.rstrip("=") in was]
    in_order = [each.rstrip("=") for each in kept] == [each.rstrip("=") for each in was]
    return (name, opened) == (name_now, opened_now) and in_order and all("=" in each for each in now if each not in kept)


def keys(command):
    """All keys that a command of `ASKED` prints, sorted, by commas."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        cli.main([*ASKED[command], "--json"])
    return ",".join(sorted(set(_keys(json.loads(printed.getvalue())))))


def _keys(value):
    if isinstance(value, (dict, list)):
        yield from value if isinstance(value, dict) else ()
        for each in value.values() if isinstance(value, dict) else value:
            yield from _keys(each)


def exit_code(asked):
    """The exit code of one of `EXITS`."""
    interrupted = mock.patch.object(cli, "_run", side_effect=KeyboardInterrupt)
    quiet = contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO())
    with quiet[0], quiet[1], interrupted if EXITS[asked] is None else contextlib.nullcontext():
        return cli.main(EXITS[asked])


def parsers():
    """The parser of each command: `explain`, `vectors list`, .."""
    queue = [("", cli.parser.all_commands())]
    for name, parser in queue:
        under = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
        queue += [(f"{name} {word}".strip(), found) for each in under for word, found in each.choices.items()]
    return dict(queue)


def shown_options():
    """Pairs (command, option) in the pages of `SHOWN`, and settings of ops as ("check OP", option)."""
    for page in SHOWN:
        for line in re.findall(r"(?<![\w/])posref ([a-z][^`\n]*)", (PAGE.parents[1] / page).read_text()):
            command = max((name for name in parsers() if f"{line} ".startswith(f"{name} ".lstrip())), key=len)
            op = re.search(r"--as (\w+\.\w+)", line)
            for option in re.findall(r"(?<!\S)--?[a-z][\w-]*", line):
                own = op is None or option in parsers()[command]._option_string_actions
                yield (command if own else f"check {op[1]}"), option


def accepted(command, option):
    """Whether the parser of the command has the option, or the op the setting."""
    if not command.startswith("check "):
        return command in parsers() and option in parsers()[command]._option_string_actions
    settings = inspect.signature(ops.op(command.split()[1]).make).parameters
    return option.removeprefix("--").replace("-", "_") in settings


def released():
    """The lines of tests/released.txt in columns: version, kind, name, and what is kept of it."""
    return [line.split(" ") for line in RELEASED.read_text().splitlines()]


def kept(kind):
    """What released.txt says last of each name of a kind."""
    return {row[2]: row[3] for row in released() if row[1] == kind}


def test_released_cases_are_as_they_were():
    was = kept("case")
    assert len(was) >= 1003
    assert {id: hashes().get(id) for id in was} == was, "a case keeps its id, its values and, if it is withdrawn, its place"


def test_a_released_case_that_is_withdrawn_is_listed():
    """Cases under `/reject/` were released with the status reject, all others with the status active."""
    page, status = PAGE.read_text(), column("status")
    changed = {id for id in kept("case") if status[id] != ("reject" if "/reject/" in id else "active")}
    assert changed
    assert {status[id] for id in changed} == {"withdrawn"}
    assert [id for id in changed if f"`{id}`" not in page] == [], "docs/promises.md lists each withdrawn case"


def test_the_page_says_of_each_field_of_a_case_whether_it_may_change():
    record = json.loads((vectors.DIRECTORY / "alibi.json").read_text())["cases"][0]
    rows = dict(
        re.findall(r"^\| (golden vectors|tolerances and names of mistakes|a wrong case) \| (.*) \|$", PAGE.read_text(), re.M)
    )
    words = {what: set(re.findall(r"`(\w+)`", row)) for what, row in rows.items()}
    assert words["golden vectors"] == {*formats.MEANT}
    assert record.keys() - {"sha256"} == set().union(*words.values())


def test_released_names_are_called_as_they_were():
    page = PAGE.read_text()
    was = {row[2] for row in released() if row[1] == "name"}
    assert len(was) >= 228
    gone = {name.partition("(")[0] for name in was if not still_called(name, called(name.partition("(")[0]))}
    assert not [name for name in gone if f"`{name}`" not in page], "docs/promises.md names what is gone, with its reason"


@pytest.mark.parametrize("command", ASKED)
def test_released_keys_are_printed(command):
    was = {key for row in released() if row[1:3] == ["keys", command] for key in row[3].split(",")}
    assert was
    gone = set(re.findall(rf"^\* `posref {command} .*instead of `(\w+)`", PAGE.read_text(), re.MULTILINE))
    assert was - gone <= set(keys(command).split(",")), "docs/promises.md names what is gone, with its reason"


def test_released_calls_mean_what_they_meant():
    page = PAGE.read_text()
    gone = {name for name, was in kept("call").items() if not (called(name).endswith(")") and still_fits(was, arguments(name)))}
    assert len(kept("call")) >= 250
    assert not [name for name in gone if f"`{name}`" not in page], "docs/promises.md names what is gone, with its reason"


def test_a_changed_kind_or_default_is_noticed():
    assert all(still_fits("a,b=1,*,c=2", now) for now in ("a,b=1,c=2", "a=0,b=1,*,d=3,c=2", "a,b=1,e=0,*,c=2,**more"))
    changed = ("a,b=2,*,c=2", "a,*,b=1,c=2", "a,c=2,b=1", "a,e=0,b=1,*,c=2", "a,b=1,*,c=2,d", "a,b,*,c=2", "a,b=1,**c")
    assert not any(still_fits("a,b=1,*,c=2", now) for now in changed)


@pytest.mark.parametrize("asked", EXITS)
def test_released_exit_codes_stay(asked):
    assert exit_code(asked) == int(kept("exit")[asked])


def test_released_options_are_accepted():
    was = {tuple(row[2].replace(",", " ").rsplit(" ", 1)) for row in released() if row[1] == "option"}
    shown = {*shown_options()}
    assert len(was) >= 20
    assert [pair for pair in was | shown if not accepted(*pair)] == []
    assert not accepted("explain", "--no-such-option")
    assert not accepted("check t5.bias", "--no-such-option")


def test_a_released_line_of_serve_is_sent_and_understood(tmp_path):
    """Version 1 of the protocol: one call, its answer, and the answer of a program that fails."""
    was, page = kept("serve"), (PAGE.parent / "serve.md").read_text()
    script = "import pathlib, sys\npathlib.Path(sys.argv[2]).write_text(input())\nprint(sys.argv[1], flush=True)\n"
    (tmp_path / "answers.py").write_text(script)

    def told(answer):
        command = [sys.executable, str(tmp_path / "answers.py"), answer, str(tmp_path / "call")]
        with Program(shlex.join(command), "rope.rotate", ("x", "positions")) as rotate:
            return rotate(np.array([[[[1, 0.5]]]], dtype=np.float32), np.array([[3]]))

    result = told(was["answer"])
    assert json.loads((tmp_path / "call").read_text()) == json.loads(was["call"])
    assert result.dtype == np.float32
    assert result.tolist() == np.array([[[[-1.0605525, -0.35387623]]]], dtype=np.float32).tolist()
    with pytest.raises(RuntimeError, match=r"^why$"):
        told(was["error"])
    said = [json.loads(text) for text in re.findall(r"^(?:\* `)?(\{.call.*?\}|\{.posref.*?\})(?:`|$)", page, re.MULTILINE)]
    assert [line for line in was.values() if json.loads(line) not in said] == [], "docs/serve.md shows other lines"


def test_a_lost_name_and_a_changed_call_are_noticed():
    assert [called(f"check.{name}") for name in ("no_such_name", "no_module.name")] == ["", ""]
    assert called("offsets.offsets") == "offsets.offsets(query_positions,key_positions)"
    assert all(still_called("f(a,b=)", now) for now in ("f(a,b=)", "f(a=,b=)", "f(a,c=,b=)"))
    assert not any(still_called("f(a,b=)", now) for now in ("", "f", "f(a)", "f(b=,a)", "f(a,b)", "f(a,b=,c)"))


def test_a_changed_case_is_noticed(monkeypatch):
    id, held = next(iter(hashes().items()))
    monkeypatch.setitem(hashes(), id, held[::-1])
    with pytest.raises(AssertionError, match="a case keeps its id"):
        test_released_cases_are_as_they_were()


def test_the_page_names_the_versions_that_ran():
    setup = (PAGE.parents[1] / "setup.cfg").read_text()
    supported = re.findall(r"Python :: (3\.\d+)", setup)
    assert supported == re.findall(r"^\| Python (3\.\d+)\b", PAGE.read_text(), re.MULTILINE)


def test_every_patch_for_another_project_is_listed_with_the_version_that_ran():
    page = (PAGE.parents[1] / "CONSUMERS.md").read_text()
    assert {patch.stem for patch in consumers.PATCHES.iterdir()} == consumers.PINS.keys()
    for project, (pin, *_) in consumers.PINS.items():
        name, version = pin.replace("[cpu]", "").split("==")
        assert f"| {name} {version} | [{project}.patch](examples/consumers/{project}.patch)" in page


if __name__ == "__main__":
    old = [row for row in released() if row[0] != posref.__version__]
    now = [["case", id, held] for id, held in hashes().items()] + [["name", called(name)] for name in names()]
    now += [["call", name, arguments(name)] for name in names() if called(name).endswith(")")]
    now += [["keys", command, keys(command)] for command in ASKED] + [["exit", each, str(exit_code(each))] for each in EXITS]
    now += [["option", ",".join(pair).replace(" ", ",")] for pair in sorted({*shown_options()})]
    now += [["serve", name, line] for name, line in kept("serve").items()]  # written by hand, as docs/serve.md shows them
    new = [[posref.__version__, *row] for row in now if row not in [known[1:] for known in old]]
    RELEASED.write_text("".join(" ".join(row) + "\n" for row in old + new))
