"""Every option of every command with a bad value: the error is one clear sentence without internal details."""

import argparse
import io
import json
import re
import sys

import numpy as np
import pytest

from posref import cli

CASE = "rope/half/d8-b1e4/tiny"
HALF = """
import numpy as np

def half(x, positions):
    angle = positions[:, None, :, None] * 10000.0 ** (-np.arange(0, 8, 2) / 8)
    a, b = x[..., :4], x[..., 4:]
    return np.concatenate([a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)], axis=-1)
"""
GOOD = {  # arguments with which a command runs; a command that is not here runs without
    "show": ["rope"],
    "find": ["rope"],
    "check": ["my_ops:half", "--as", "rope", "--dim", "8", "--layout", "half"],
    "diagnose": [CASE, "out.npy"],
    "mistakes": ["rope"],
    "vectors list": ["rope/*"],
    "vectors export": ["rope/half/*", "--format", "json", "--directory", "made"],
    "explain": ["gpt-oss-20b"],
    "express": ["alibi key", "rope"],
    "precision": ["--dim", "8"],
}
BAD = ("", "nonsense", "-1", "0", "nan", "1e400", "empty", "binary", "folder", "no/such/file", "None", "\x1b[31m")
INSIDE = re.compile(
    r"Traceback|\b(Type|Value|Key|Attribute|Index|Name|Unicode\w*)Error\b|NoneType|object at 0x|<(class|function|module)"
    r"|_\w+\.py|\bposref\.[a-z]|\b\w+\(\) |keyword-only|positional argument|dtype\(|array\(|\x1b|"
    rf"\b({'|'.join(cli.messages.OURS)})\.\w+[:(]"
)


def commands(parser, path=()):
    """(words of a command, its parser), found in the parser itself."""
    inner = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not inner:
        yield " ".join(path), parser
    for action in inner:
        for name, command in action.choices.items():
            yield from commands(command, (*path, name))


def with_bad_value(command, parser, action, bad):
    """The arguments of the command, with this one bad."""
    words = list(GOOD.get(command, []))
    if not action.option_strings:
        place = [each for each in parser._actions if not each.option_strings].index(action)
        return [*command.split(), *words[:place], bad, *words[place + 1 :]]
    option = max(action.option_strings, key=len)
    if option in words:
        place = words.index(option)
        del words[place : place + 2]
    return [*command.split(), *words, option if action.nargs == 0 else f"{option}={bad}"]


ASKED = [
    (*with_bad_value(command, parser, action, bad), *form)
    for command, parser in commands(cli.parser.all_commands())
    for action in parser._actions
    if command not in ("demo", "table") and not isinstance(action, argparse._HelpAction)
    for bad in (BAD if action.nargs != 0 else BAD[:1])
    for form in ((), ("--json",))
    if not form or (bad == "nonsense" and "--json" in parser._option_string_actions)
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "empty").touch()
    (tmp_path / "binary").write_bytes(bytes(range(256)))
    (tmp_path / "folder").mkdir()
    (tmp_path / "my_ops.py").write_text(HALF)
    np.save(tmp_path / "out.npy", np.zeros((8, 8)))


@pytest.mark.parametrize("asked", [ASKED[::13], pytest.param(ASKED, marks=pytest.mark.slow)], ids=len)
def test_an_error_of_use_is_one_sentence_that_shows_nothing_of_the_inside(asked, folder, capsys):
    wrong, refused, codes = [], 0, {}
    for arguments in asked:
        code = codes[arguments] = cli.main(list(arguments))
        out, said = capsys.readouterr()
        refused += code == 2
        reasons = [f"exit {code}"] * (code not in (0, 1, 2))
        if code == 2:
            reasons += ["stdout"] * bool(out.strip()) + ["silent"] * (not said.strip())
            reasons += ["lines"] * (len(said.strip().splitlines()) > 1) + ["long"] * (len(said) > 500)
            reasons += ["inside"] * bool(INSIDE.search(said))
        wrong += [f"{reasons} {' '.join(arguments)!a}: {said.strip()!a}"] * bool(reasons)
    assert refused > len(asked) / 2
    assert not wrong, "\n".join(wrong)
    assert [each for each in codes if codes.get((*each, "--json"), codes[each]) != codes[each]] == []


NEAR = [
    (["show", "roppe"], "rope"),
    (["mistakes", "alibii"], "alibi"),
    (["mistakes", "t5.bais"], "t5.bias"),
    (["express", "alibi", "rope"], "alibi key"),
    (["express", "rope", "shw"], "shaw"),
    (["check", "my_ops:half", "--as", "roppe"], "rope"),
    (["check", "my_ops:half", "--as", "alibi.biass"], "alibi.bias"),
    (["diagnose", "rope/half/d8-b1e4/tinny", "out.npy"], CASE),
    (["diagnose", "ropee/half", "out.npy"], "rope"),
    (["explain", "gpt-oss-20"], "gpt-oss-20b"),
    (["lsit"], "list"),
    (["vectors", "exprt"], "export"),
    (["list", "--jsn"], "--json"),
    (["check", "--as", "alibi.bias", "--contract", "--frm", "key"], "--form"),
    (["check", "my_ops.py:haf", "--as", "rope", "--dim", "8", "--layout", "half"], "half"),
    (["check", "my_op.py:half", "--as", "rope", "--dim", "8", "--layout", "half"], "my_ops.py"),
    (["check", "my_ops.py:half", "--as", "rope", "--dim", "8", "--layout", "hlf"], "half"),
    (["check", "my_ops.py:half", "--as", "rope", "--dim", "8", "--axes", "bhd"], "bhnd"),
    (["claims", "--who", "suu"], "su"),
    (["claims", "--verdict", "wrng"], "wrong"),
]


@pytest.mark.parametrize(("arguments", "meant"), NEAR)
def test_a_name_that_is_nearly_right_is_suggested(arguments, meant, folder, capsys):
    assert cli.main(arguments) == 2
    said = capsys.readouterr().err
    assert re.search(rf"(did you mean|nearest \w+|like it:)[^;]*{re.escape(meant)}", said), said


# what is printed, and the code, on a bad day --------------------------------------------------------------------------------

NO = {  # a command whose answer is no, with arguments that make it so
    "check": ["wrong_ops:half", "--as", "rope", "--dim", "8", "--layout", "half"],
    "serve": [f"{sys.executable} program.py", "--as", "rope", "--dim", "8", "--layout", "half"],
    "diagnose": [CASE, "out.npy"],
    "vectors verify": ["folder"],
}
RUN = {
    name: NO.get(name, GOOD.get(name, [])) for name, _ in commands(cli.parser.all_commands()) if name != "demo"
}  # it takes half a minute


class Closed(io.StringIO):
    """A pipe whose reader has left."""

    def write(self, text=""):
        raise BrokenPipeError

    flush = write


@pytest.fixture
def programs(folder, tmp_path):
    text = "\x1b[31mred\x07\x7f\x9b"
    (tmp_path / "program.py").write_text(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        f"    print(json.dumps({{'call': json.loads(line)['call'], 'error': {text!a}}}), flush=True)\n"
    )
    (tmp_path / "wrong_ops.py").write_text(f"def half(x, positions):\n    raise ValueError({text!a})\n")


@pytest.mark.parametrize("command", RUN)
def test_a_reader_that_leaves_changes_no_exit_code(command, programs, monkeypatch):
    monkeypatch.setattr(sys, "stdout", Closed())
    assert cli.main([*command.split(), *RUN[command]]) == (1 if command in NO else 0)


def test_a_reader_of_help_may_leave(monkeypatch):
    monkeypatch.setattr(sys, "stdout", Closed())
    assert cli.main(["--help"]) == 0


@pytest.mark.parametrize("name", ["check", "serve"])
def test_what_a_function_or_a_program_says_cannot_steer_a_terminal(name, programs, capsys):
    code = cli.main([name, *NO[name]])
    out, _ = capsys.readouterr()
    assert (code, "[31mred" in out) == (1, True)
    assert not [c for c in out if not c.isprintable() and c != "\n"]
    cli.main([name, *NO[name], "--json"])
    out, _ = capsys.readouterr()
    details = [check["detail"] for check in json.loads(out)["checks"]]
    assert any("\x1b[31mred\x07\x7f\x9b" in detail for detail in details)
    assert not [c for c in out if not c.isprintable() and c != "\n"]


def test_every_character_is_shown_or_escaped(capsys):
    cli._Shown(sys.stdout).write("".join(map(chr, range(0x3000))))
    out, _ = capsys.readouterr()
    assert [c for c in out if not c.isprintable()] == ["\t", "\n"]


FUNCTIONS = {parser.get_default("run").__name__: parser.get_default("run") for _, parser in commands(cli.parser.all_commands())}


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_an_error_of_posref_is_no_answer(name, monkeypatch, capsys):
    def broken(arguments):
        print("half an answer")
        raise KeyError("\x1b[31m")

    monkeypatch.setattr(sys.modules[FUNCTIONS[name].__module__], name, broken)
    (command,) = [name for name, parser in commands(cli.parser.all_commands()) if parser.get_default("run") is broken]
    assert cli.main([*command.split(), *RUN.get(command, [])]) == 2
    out, err = capsys.readouterr()
    assert out == "half an answer\n"
    assert err.startswith("Traceback")
    assert re.fullmatch(r"posref: an error of posref itself, KeyError: '.*'; please report it .*", err.splitlines()[-1])
    assert "\x1b" not in err
