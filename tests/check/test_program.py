"""Programs that answer calls line by line are checked as functions are; what is no answer is said."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from posref import cli
from posref.check import check_rope, program
from posref.rotary import rope

PAGE = (Path(__file__).parents[2] / "docs" / "serve.md").read_text()
ROTATES = """
import json, sys
import numpy as np
for line in sys.stdin:
    call = json.loads(line)
    x, positions = (np.array(a["data"]).reshape(a["shape"]) for a in call["arguments"].values())
    half = x.shape[-1] // 2
    angle = positions[:, None, :, None] * 10000.0 ** (-np.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    y = np.concatenate([a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)], axis=-1)
    result = {"dtype": call["arguments"]["x"]["dtype"], "shape": y.shape, "data": y.ravel().tolist()}
    print(json.dumps({"call": call["call"], "result": result}), flush=True)
"""


def command(tmp_path, text):
    (tmp_path / "program.py").write_text(text)
    return f"{sys.executable} {tmp_path / 'program.py'}"


def test_a_program_is_checked(tmp_path, capsys):
    asked = [command(tmp_path, ROTATES), "--as", "rope", "--dim", "8", "--layout"]
    assert cli.main(["serve", *asked, "half"]) == 0
    assert "strides: only contiguous arrays were checked" in capsys.readouterr().out
    assert cli.main(["serve", *asked, "interleaved", "--json"]) == 1
    assert [each["name"] for each in json.loads(capsys.readouterr().out)["diagnosis"]] == ["other_layout"]
    assert cli.main(["serve", *asked, "half", "--to", "bfloat16"]) == 0
    assert "dtype (bfloat16)" in capsys.readouterr().out


def test_settings_arrive_by_name(tmp_path, capsys):
    tells = "import sys\nfor line in sys.stdin:\n    sys.stderr.write(line); print('{', flush=True)"
    assert cli.main(["serve", command(tmp_path, tells), "--as", "t5.bias", "--bidirectional", "--heads", "3"]) == 1
    with program.Program("unused", "t5.bias", ("table",), ("bidirectional", "table")) as ask:
        assert [*ask.__signature__.parameters] == ["table", "bidirectional"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import sys; input(); sys.exit(3)", "no answer: the program ended with code 3"),
        ("import sys\nfor line in sys.stdin: print('log', flush=True)", "its line 'log' is no answer"),
        ("import sys\nfor line in sys.stdin: print('[' * 200000, flush=True)", "is no answer"),
        ("import sys\nfor line in sys.stdin: print('{\"call\": 0}', flush=True)", 'is no answer; expected {"call": 1, '),
        ('print(\'{"call": 1, "error": "no such device"}\', flush=True); input()', "no such device"),
        ("import time; time.sleep(60)", "no answer in 0.5 s"),
    ],
)
def test_what_is_no_answer(tmp_path, monkeypatch, text, words):
    monkeypatch.setattr(program, "SECONDS", 0.5 if "sleep" in text else 60)
    with program.Program(command(tmp_path, text), "rope.rotate", ("x", "positions")) as ask:
        report = check_rope(ask, dim=8, layout="half")
        assert ask.answered == ("input(); " not in text and "; input()" in text)  # else it is not called again
    assert words in report.checks[0].detail


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (None, "expected an object with dtype, shape and data"),
        ({"dtype": "float8", "shape": [1], "data": [1]}, "expected one of float64"),
        ({"dtype": "float32", "shape": [2], "data": [1]}, "cannot be read"),
        ({"dtype": "float32", "shape": [1], "data": ["x"]}, "cannot be read"),
        ({"dtype": "float32", "shape": [2], "data": [[1, 2], [3]]}, "cannot be read"),
    ],
)
def test_results_that_cannot_be_read(made, words):
    with pytest.raises(RuntimeError, match=words):
        program.decoded(made)


@pytest.mark.parametrize("dtype", program.DTYPES)
def test_what_is_encoded_is_decoded(dtype):
    x = np.array([[0.0, -1.5, 2.0**-20], [np.nan, np.inf, 2.0**-130]])
    x = x if dtype in ("float64", "float32", "float16", "bfloat16") else np.array([[0, 1, 1]])
    given = program.tensor(dtype, x) if dtype == "bfloat16" else x.astype(dtype)
    back = program.decoded(json.loads(json.dumps(program.encoded(given))))
    assert str(back.dtype) == dtype
    np.testing.assert_array_equal(np.asarray(back), np.asarray(given))


def test_the_page_shows_a_call_and_its_answer(tmp_path):
    call, answer = (json.loads(text) for text in re.findall(r"```json\n(.*)\n```", PAGE))
    x, positions = (np.array(a["data"], dtype=a["dtype"]).reshape(a["shape"]) for a in call["arguments"].values())
    replies = f"import pathlib; pathlib.Path({str(tmp_path / 'call')!r}).write_text(input()); print({json.dumps(answer)!r})"
    with program.Program(command(tmp_path, replies), call["op"], call["arguments"]) as ask:
        np.testing.assert_array_equal(ask(x, positions), program.decoded(answer["result"]))
    assert json.loads((tmp_path / "call").read_text()) == call
    exact = rope.rotate(x.astype(float), *rope.tables(positions[:, None], rope.frequencies(2)), layout="half")
    np.testing.assert_array_equal(program.decoded(answer["result"]), exact.astype(np.float32))
    assert f"{program.SECONDS} seconds" in PAGE


def test_a_program_that_is_not_there(capsys):
    assert cli.main(["serve", "no-such-program", "--as", "rope", "--dim", "8", "--layout", "half"]) == 2
    assert "there is no program 'no-such-program'" in capsys.readouterr().err
    assert cli.main(["serve", sys.executable]) == 2
    assert cli.main(["serve", sys.executable, "--as", "rope", "--dim", "8", "--layout", "half", "--to", "float8"]) == 2
