"""The command line: what each command prints, and its exit codes: 0 success, 1 mismatch, 2 wrong use without a traceback."""

import ast
import contextlib
import importlib.util
import inspect
import json
import os
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import posref
from posref import cli, demo, discovery, finding, ops, printed, statements, vectors
from posref.check import implementation
from posref.relative import t5
from posref.rotary import rope
from posref.vectors import formats
from tests.release import stages

ROOT = Path(__file__).resolve().parents[1]

IMPLEMENTATIONS = """
import numpy as np

def half(x, positions):
    angle = positions[:, None, :, None] * 10000.0 ** (-2 * np.arange(x.shape[-1] // 2) / x.shape[-1])
    a, b = np.split(x, 2, axis=-1)
    return np.concatenate([a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)], axis=-1)

def interleaved(x, positions):
    angle = positions[:, None, :, None] * 10000.0 ** (-2 * np.arange(x.shape[-1] // 2) / x.shape[-1])
    a, b = x[..., ::2], x[..., 1::2]
    out = np.stack([a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)], axis=-1)
    return out.reshape(x.shape)

def quarter(x, positions):
    return half(x, positions / 4)

def partial(x, positions):
    angle = positions[:, None, :, None] * 10000.0 ** (-2 * np.arange(4) / 16)
    a, b, rest = x[..., :4], x[..., 4:8], x[..., 8:]
    return np.concatenate([a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle), rest], axis=-1)

def queries_and_keys(q, k, p):
    return half(q, p), half(k, p)

def twice(array):
    return array

def slopes(heads):
    return 2.0 ** (-8 * np.arange(1, heads + 1) / heads)

def bias(i, j):
    return slopes(4)[:, None, None] * (j[:, None, None, :] - i[:, None, :, None])

number = 7
"""

TORCH = """
import torch

def half(x, positions):
    angle = positions[:, None, :, None] * 10000.0 ** (-torch.arange(0, 64, 2) / 64)
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)
"""


UNRULY = """
import os
import sys

import numpy as np

import my_ops

print("import noise")
os.system("echo noise of a child")

def noisy(x, positions):
    print("call noise \\u2207")
    return my_ops.half(x, positions)

def leaves(x, positions):
    sys.exit(3)

def interrupted(x, positions):
    raise KeyboardInterrupt

def raises(x, positions):
    raise RuntimeError("no kernel")

def converts_badly(array):
    raise RuntimeError("no device")
"""


@pytest.fixture
def run(capfd):
    def run(*arguments):
        try:
            code = cli.main([str(argument) for argument in arguments])
        except SystemExit as leave:  # argparse
            code = leave.code
        out, err = capfd.readouterr()
        return code, out, err

    return run


@pytest.fixture
def shell(run, tmp_path, monkeypatch):
    """The command in a folder with implementations to check, which no other test has imported."""
    (tmp_path / "my_ops.py").write_text(IMPLEMENTATIONS)
    (tmp_path / "my_torch.py").write_text(TORCH)
    (tmp_path / "broken_ops.py").write_text("raise RuntimeError('no device')")
    (tmp_path / "needs.py").write_text("import surely_not_installed")
    (tmp_path / "unruly.py").write_text(UNRULY)
    (tmp_path / "leaves.py").write_text("import sys\nsys.exit(7)")
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").touch()
    (tmp_path / "pkg" / "plain.py").write_text(IMPLEMENTATIONS)
    (tmp_path / "pkg" / "ops.py").write_text("from .plain import half")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "json.py").write_text(IMPLEMENTATIONS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    imported = {**sys.modules}
    for name in ("my_ops", "my_torch", "unruly", "leaves", "pkg"):
        sys.modules.pop(name, None)
    yield run
    for name, module in list(sys.modules.items()):
        if str(tmp_path) in str(getattr(module, "__file__", None)):
            del sys.modules[name]
    sys.modules.update(imported)  # one of the modules is called json


def usage_error(result):
    """The one line on stderr."""
    code, out, err = result
    assert code == 2
    assert out == ""
    assert err.startswith("posref: ")
    assert err.count("\n") == 1
    return err


def test_one_screen_without_a_command(run):
    code, out, _ = run()
    assert (code, out.count("\n") <= 24) == (0, True)
    shown = [line.split("  ")[1].split()[1:] for line in out.splitlines() if line.startswith("  posref ")]
    assert len(shown) == 3
    assert all(cli.parser.all_commands().parse_args(words) for words in shown)


def test_list_names_every_system(run):
    code, out, _ = run("list")
    assert code == 0
    listed = [line.split()[0] for line in out.splitlines() if line.startswith("  ") and line[2] != " "]
    assert listed == [system.name for system in discovery.systems()]
    on_disk = {f"{p.parent.name}.{p.stem}" for f in discovery.FAMILIES for p in (ROOT / "posref" / f).glob("[!_]*.py")}
    assert set(listed) == on_disk


def test_list_json(run):
    code, out, _ = run("list", "--json")
    assert code == 0
    systems = {system["name"]: system for system in json.loads(out)}
    assert list(systems) == [system.name for system in discovery.systems()]
    rope = systems["rotary.rope"]
    assert list(rope) == ["name", "title", "family", "references", "presets", "vectors"]
    assert (rope["title"], rope["family"]) == ("RoPE: rotary position embedding.", "rotary")
    assert "2104.09864" in rope["references"]
    assert {"Llama-2-7b-hf", "gpt-j-6b"} <= set(rope["presets"])
    assert rope["vectors"] == [case.id for case in vectors.load("rope").cases]


def test_list_markdown_is_the_table_of_the_pages(run):
    assert run("list", "--markdown") == (0, f"{discovery.table()}\n", "")


@pytest.mark.parametrize("name", ["posref.rotary.rope", "RoPE"])
def test_show(run, name):
    code, out, _ = run("show", name)
    assert code == 0
    parts = [
        "posref.rotary.rope",
        "RoPE: rotary",
        "Definition.",
        "def frequencies",
        "def rotate(",
        "Where implementations differ.",
        "References.",
        "Model Llama-2-7b-hf: rope.frequencies(128, 10000.0), half\n",
    ]
    places = [out.index(part) for part in parts]
    assert places == sorted(places)
    assert "pairing.join(a * cos - b * sin, a * sin + b * cos, layout)" in out
    listed = run("show", name, "--models")[1].count("\nModel ") + 1
    assert out.count("\nModel ") <= printed.FEW < listed
    assert f"\n{listed} models in all: `posref show rotary.rope --models` lists them" in out


def test_show_prints_one_function(run):
    code, out, _ = run("show", "t5.bucket")
    assert (code, out) == run("show", "posref.relative.t5.bucket")[:2]
    assert code == 0
    parts = [
        "relative.t5.bucket",
        "offsets        (...), signed integers",
        "buckets        an integer, 32 by default",
        "@contract",
    ]
    assert [out.count(part) for part in parts] == [1, 1, 1, 1]
    assert out.rstrip().endswith(inspect.getsource(t5.bucket).rstrip().split("\n")[-1])


def test_short_names_are_unique():
    short = [name.split(".")[-1] for name in (*discovery.names(), *discovery.COMMON)]
    assert len(set(short)) == len(short)


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["show"], ["check", "--axes", "hbnd"], ["vectors"], ["list", "--json", "--markdown"]]
)
def test_argparse_refuses_with_2(run, arguments):
    code, out, err = run(*arguments)
    assert code == 2
    assert out == ""
    assert re.fullmatch(r"posref: .*[;?] (for instance )?`posref .*`.*\n", err), err


def test_version(run):
    assert run("--version") == (0, f"posref {posref.__version__}\n", "")


ROPE = ("--as", "rope", "--dim", "64", "--base", "10000")


def test_check_converts_to_torch(shell):
    pytest.importorskip("torch", reason="--to torch.bfloat16 needs torch")
    half = ("check", "my_torch:half", *ROPE, "--layout", "half")
    code, out, err = shell(*half, "--to", "torch.bfloat16", "--json")
    assert code == 0, out + err
    assert json.loads(out)["precision"]["model"].startswith("bf16")
    assert "torch has no such dtype" in usage_error(shell(*half, "--to", "torch.no_such_dtype"))
    code, out, _ = shell(*half)
    assert (code, "pass --to torch.from_numpy" in out, "my_torch.py:5" in out) == (1, True, True)
    code, out, err = shell(*half, "--to", "torch.from_numpy")
    assert code == 0, out + err


SCALED = "0.25,0.025,0.0025,0.00025"  # 10000^(-2t/8) / 4


def test_check_frequencies(shell):
    """tests/check/test_tensors.py has those of files."""
    asked = ("--as", "rope", "--dim", "8", "--layout", "half", "--frequencies", SCALED)
    code, out, err = shell("check", "my_ops:quarter", *asked)
    assert code == 0, out + err
    code, out, _ = shell("check", "my_ops:half", *asked, "--json")
    assert code == 1
    assert "frequencies_ignored" in [finding["name"] for finding in json.loads(out)["diagnosis"]]


WORDS = {  # what stands for more words in the rows below
    "@rope": "--as rope --dim 64 --base 10000",
    "@half": "--as rope --dim 64 --base 10000 --layout half",
    "@64": "--as rope --dim 64 --layout half",
    "@drive": "C:",
    "@nines": "9" * 400,
    "@many": ",".join(["1e300"] * 32),
}


def asked(command):
    """The arguments of a row."""
    return shlex.split(re.sub("@[a-z0-9]+", lambda word: WORDS[word[0]], command))


REFUSED = r"""
check my_ops:half @half --frequencies 1,0.1 | leave out base
check collections:OrderedDict @half | is a class; make one
check my_ops:half --as rope --dim 4 --layout half --frequencies 1,x | give numbers with commas
check my_ops:half --as rope --dim 4 --layout half --frequencies 1,2,3 | 4 rotated features need
check my_ops:half --as rope --dim 4 --layout half --frequencies no.npy | No such file
check my_ops @half | write MODULE:FUNCTION
check no_such_module:rope @half | run posref where no_such_module.py lies
check needs:rope @half | No module named 'surely_not_installed'
check my_ops:nothing @half | check the name after the colon
check my_ops:number @half | is an int, not a function
check broken_ops:rope @half | RuntimeError: no device
check my_ops:half @rope | needs --layout
check my_ops:half @rope --layout neox | expected interleaved, half, interleaved_to_half
check my_ops:half --as rope.rotate --dim 8 --rotary-dim 4 --layout half | --dim is the width that turns here
check my_ops:half --as rope.rotate --dim 128 --rotary-dim 200 --layout half | --rotary-dim cannot exceed --dim
check my_ops:half --as rope.rotate --dim 0 --layout half | dim is 0, expected an integer
check my_ops:half --as rope.rotate --dim 8 --layout half --schedule linear --factor 4 | check with --as rope, which takes it
check my_ops:half --as rope --dim 63 --base 10000 --layout half | 63
check ./nothing.py:half @half | there is no file
check '@drive\code\bad.py:half' @half | there is no file
check '@drive\code\bad.py' @half | write MODULE:FUNCTION or FILE.py:FUNCTION
check ./broken_ops.py:rope @half | broken_ops.py:1
check my_ops:half @64 --base 1e308 | base is 1e+308
check my_ops:half @64 --base 1e20 --exponent-dim 2 | leave 1e-30 .. 1e30
check my_ops:half @64 --max-position 9223372036854775807 | --max-position is 9223372036854775807, expected at most
check my_ops:half @64 --max-position @nines | --max-position is 999
check my_ops:half --as rope --layout half --dim 1099511627776 | dim is 1099511627776, expected at most
check my_ops:half @64 --frequencies . | give numbers with commas
check my_ops:half @64 --frequencies @many | below 1e30
check my_ops:half --as rope --dim 64 --layout neox | neox is half, write --layout half
check my_ops:half --as rope --dim 64 --layout HALF | HALF is half
check my_ops:half --as rope --dim 64 --layout is_neox_style=False | is interleaved
check my_ops:half --as rope --dim 64 --layout rope | `posref aliases` says which is yours
check my_ops:half @64 --to numpy:float16 | pass --to-positions, for instance torch.from_numpy
check my_ops:half @64 --to unruly:converts_badly | --to raised RuntimeError: no device
check my_ops:half @64 --to leaves:rope | importing leaves raises SystemExit: 7
check --contract --as alibi.bias --heads 12 --form nope | --form nope: expected signed, absolute or key
check --contract --as rope --schedule yarn | the contract of rope.rotate has no --schedule; leave it out
check my_ops:half --config t5-base | no layer of this model rotates; `posref explain t5-base` says what its layers do
check my_ops:half --config baichuan | no layer of baichuan is described; `posref explain baichuan` says why
check my_ops:half --preset bloom_176b --as rope | --preset bloom_176b is of alibi.bias; leave --as rope out
serve "'unclosed" --as rope --dim 16 --layout half | cannot be read: No closing quotation; close its quotation mark
explain llama --longer 0 | --longer 0: the model was trained on 2048 tokens; name a greater length
explain llama --plot '' | a picture is written to an .svg file
explain llama --frequencies a.npy --code torch | --frequencies and --code are two answers; leave --code out
explain llama --code torch --json | --code and --json are two answers; leave --json out
explain llama --diff qwen2 --longer 9000 | --longer and --diff are two answers; leave --diff out
explain baichuan --code torch | no described layer of this model rotates
explain bailing_moe | the class has no other default: name a config.json
explain 'baichuan 7B' | name a config.json, a params.json, a GGUF file or a model type such as llama
check --contract --preset Olmo-3.1-32B-Instruct | choose one: --layer 0; --layer 3
check | check needs --as SYSTEM.OP, for instance --as alibi.bias
check --as alibi.biases | no op 'alibi.biases'; did you mean alibi.bias or
mistakes alibi.zzzz | did you mean alibi.bias? `posref check --as alibi` lists the ops
check my_ops:half --as alibi.bias --form signed | --as alibi.bias needs --heads
check my_ops:half --as alibi.bias --head 3 | check has no --head here; did you mean --heads or --head-dim
check my_ops:half --preset none | there is no preset 'none'; there are paper_8
mistakes | mistakes needs a NAME
mistakes nothing | there is no system 'nothing'
mistakes --symptom xyzzy | no symptom has the words 'xyzzy'
mistakes rope --symptom 'left padding' | a NAME or --symptom WORDS, not both
mistakes --symptom 'left padding' --long | leave out --long, or write NAME --long
show rotary.roqe | roqe'; did you mean rotary.rope
check my_ops:half @64 --schedule linear | --schedule linear needs --factor; `posref check --as scaling.linear --contract`
check my_ops:half @64 --schedule yarn --factor 4 | --schedule yarn needs --original-length, --truncate or --no-truncate;
show zzzz | `posref list` prints all systems
show rope.rotat | rotary.rope has no 'rotat'; did you mean rotate?
show relative.t5.buckets | relative.t5 has no 'buckets'; did you mean bucket?
""".strip()  # a command | what its sentence says


@pytest.mark.parametrize("row", REFUSED.splitlines())
def test_a_wrong_use_is_one_sentence(shell, row):
    """After what the user's own code prints."""
    command, words = row.split(" | ")
    code, out, err = shell(*asked(command))
    assert (code, out) == (2, "")
    *printed, said = err.splitlines()
    assert said.startswith("posref: ")
    assert words in said
    assert "check_rope" not in said
    assert not printed or "unruly" in command


ANSWERED = """
0 | check my_ops:half @half | ok
1 | check my_ops:interleaved @half | interleaved
0 | check my_ops:half @half --to my_ops:twice | ok
0 | check my_ops:quarter --as rope --dim 8 --layout half --schedule linear --factor 4 | ok
1 | check my_ops:half @64 --schedule linear --factor 4 | unscaled
0 | check my_ops:partial --as rope --dim 16 --rotary-dim 8 --layout half --exponent-dim 16 | ok
1 | check my_ops:partial --as rope --dim 16 --rotary-dim 8 --layout half | exponent_head_dim: theta_t = base^(-2t/head_dim)
1 | check my_ops:queries_and_keys @half | lambda x, positions: fn(x, x, positions)[0].
0 | aliases | rotate_half
0 | aliases --json | rotate_half
""".strip()  # exit code | a command | what it prints


@pytest.mark.parametrize("row", ANSWERED.splitlines())
def test_an_answer_has_its_exit_code(shell, row):
    code, command, words = row.split(" | ")
    found, out, err = shell(*asked(command))
    assert found == int(code), out + err
    assert words in out
    assert code == "1" or "Diagnosis" not in out


CASE = "rope/half/d4-b1e4/one"


def test_diagnose(run, tmp_path):
    np.save(tmp_path / "bad.npy", -vectors.case(CASE).expected)
    code, out, _ = run("diagnose", CASE, tmp_path / "bad.npy", "--json")
    assert (code, json.loads(out)["ok"]) == (1, False)
    buckets = "t5/causal/b32-d128/t5"
    vectors.case(buckets).expected.astype("<i4").tofile(tmp_path / "buckets.bin")
    assert run("diagnose", buckets, tmp_path / "buckets.bin", "--dtype", "i32")[0] == 0
    assert "truncated" in usage_error(run("diagnose", buckets, tmp_path / "buckets.bin", "--dtype", "i64"))


def test_diagnose_refuses(run, tmp_path):
    expected = vectors.case(CASE).expected
    for name, values in (("good", expected), ("complex", expected * 1j), ("words", np.full(expected.shape, "a"))):
        np.save(tmp_path / f"{name}.npy", values)
    (tmp_path / "text.npy").write_text("no array")
    (tmp_path / "empty.npy").touch()
    for case, file, words in (
        (CASE, "missing.npy", "missing.npy"),
        (CASE, "text.npy", "text.npy"),
        (CASE, "complex.npy", "complex128"),
        (CASE, "words.npy", "<U1"),
        (CASE, "empty.npy", "expected 8 bytes got 0"),
        ("no/such/case", "good.npy", "no vectors of 'no'"),
        ("rope/such", "good.npy", "no case 'rope/such'"),
    ):
        assert words in usage_error(run("diagnose", case, tmp_path / file))
    assert "f8" in usage_error(run("diagnose", CASE, tmp_path / "good.npy", "--dtype", "f8"))
    assert "is a directory" in usage_error(run("diagnose", CASE, tmp_path, "--dtype", "f32"))


def test_vectors_list(run):
    code, out, _ = run("vectors", "list")
    assert code == 0
    assert out.splitlines() == [case.id for case in vectors.cases("*")]
    code, out, _ = run("vectors", "list", "rope/*/one", "--json")
    assert json.loads(out) == [case.id for case in vectors.cases("rope/*/one")]
    assert "zzz" in usage_error(run("vectors", "list", "zzz*"))


def test_vectors_export(run, tmp_path):
    code, out, _ = run("vectors", "export", CASE, "--format", "txt", "-o", tmp_path / "new")
    assert code == 0
    (written,) = map(Path, out.splitlines())
    assert f"case {CASE}\n" in written.read_text()
    _, out, _ = run("vectors", "export", CASE, "--format", "npz", "-o", tmp_path / "new", "--json")
    assert json.loads(out) == [str(tmp_path / "new" / "rope.npz")]
    assert "cannot write" in usage_error(run("vectors", "export", CASE, "--format", "txt", "-o", written))
    assert "expected 'json'" in usage_error(run("vectors", "export", "--format", "yaml", "-o", tmp_path))
    assert "zzz" in usage_error(run("vectors", "export", "zzz*", "--format", "txt", "-o", tmp_path))


@pytest.mark.whole
def test_vectors_verify(run, tmp_path):
    assert run("vectors", "verify")[0] == 0
    run("vectors", "export", "rope/*", "--format", "json", "-o", tmp_path)
    assert run("vectors", "verify", tmp_path)[0] == 1
    code, out, _ = run("vectors", "verify", tmp_path, "--json")
    assert code == 1
    assert json.loads(out) == vectors.verify(tmp_path)
    assert "is no directory" in usage_error(run("vectors", "verify", tmp_path / "nowhere"))


@pytest.mark.whole
def test_closed_pipe_is_no_traceback():
    command = f"{sys.executable} -m posref show rope | head -n 1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("posref.rotary.rope\n", "")


def test_the_demo_shows_a_body_as_it_stands():
    body = demo._formula(rope.rotate)
    assert ast.dump(ast.parse(f"def f():\n{textwrap.indent(body, '    ')}").body[0].body[-1]) == ast.dump(
        ast.parse(textwrap.dedent(inspect.getsource(rope.rotate))).body[0].body[-1]
    )
    assert len(ast.parse(f"def f():\n{textwrap.indent(body, '    ')}").body[0].body) == 3


@pytest.mark.slow  # that it runs is the first stage of the CI
def test_demo(run):
    """Every step of the demo comes out as it must; the proofs print from a process of their own, unseen here."""
    code, out, _ = run("demo")
    assert code == 0
    assert "offset 3: score -6.6695978191" in out
    assert out.count("Diagnosis: your output equals rope.rotate with ") == 3


# bad days: other people's code, closed and full streams, encodings ---------------------------------------------------------


@pytest.fixture
def unruly(shell, tmp_path):
    """`shell` with code that prints and leaves; the first argument is for Python or for bash, which gets {command}."""

    def run(*arguments, bash="{command}", **environment):
        words = [sys.executable, "-m", "posref", *map(str, arguments)]
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
        done = subprocess.run(
            ["bash", "-c", bash.format(command=shlex.join(words))],
            cwd=tmp_path,
            env={**kept, **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        assert "Exception ignored" not in done.stderr, done.stderr
        return done.returncode, done.stdout, done.stderr

    return run


HALF = (*ROPE, "--layout", "half")


def test_what_user_code_prints_goes_to_stderr(shell):
    quiet = shell("check", "my_ops:half", *HALF, "--json")
    code, out, err = shell("check", "unruly:noisy", *HALF, "--json")
    assert (code, out) == quiet[:2]
    assert [said for said in ("import noise", "noise of a child", "call noise") if said not in err] == []


def test_user_code_that_leaves(shell):
    code, out, _ = shell("check", "unruly:leaves", *HALF)
    assert code == 1
    assert "it raised SystemExit: 3" in out
    error = usage_error(shell("check", "leaves:rope", *HALF))
    assert "importing leaves raises SystemExit: 7" in error
    assert "leaves.py:2" in error


def test_an_interrupt_is_one_line(shell):
    code, out, err = shell("check", "unruly:interrupted", *HALF)
    assert (code, out, err.splitlines()[-1]) == (130, "", "posref: interrupted")


@pytest.mark.whole
def test_closed_and_full_streams(unruly, run):
    for arguments in (("list",), ("--help",)):
        assert unruly(*arguments, bash="{command} >&-") == (0, "", "")
        code, out, err = unruly(*arguments, bash="{command} >/dev/full")
        assert (code, out) == (2, "")
        assert err == "posref: stdout: No space left on device; the output is not complete\n"
    assert unruly("list", bash="{command} 2>/dev/full") == (0, run("list")[1], "")


@pytest.mark.whole
def test_the_exit_code_of_a_check_survives_closed_streams(unruly):
    for bash in ("{command} >&-", "{command} >&- 2>&-", "{command} >&- 2>&- <&-"):
        assert unruly("check", "unruly:noisy", *HALF, bash=bash)[0] == 0
    assert unruly("check", "my_ops:interleaved", *HALF, bash=bash)[0] == 1
    for leaves, code in (("half", 0), ("interleaved", 1)):
        assert unruly("check", f"my_ops:{leaves}", *HALF, bash="{command} | true; exit ${{PIPESTATUS[0]}}") == (code, "", "")
    assert unruly("check", "no_such_module:rope", *HALF, bash="{command} 2>&-")[:2] == (2, "")
    assert unruly("check", "my_ops:half", *HALF, bash="{command} >/dev/full")[0] == 2


@pytest.mark.whole
def test_what_an_encoding_lacks_is_escaped(unruly, tmp_path):
    (tmp_path / "\u2207ops.py").write_text(IMPLEMENTATIONS)
    code, out, err = unruly("check", "unruly:noisy", *HALF, PYTHONIOENCODING="ascii")
    assert code == 0, out + err
    assert unruly("check", "\u2207ops:interleaved", *HALF, PYTHONIOENCODING="ascii")[0] == 1
    assert "no_\\u2207" in usage_error(unruly("check", "no_\u2207:rope", *HALF, PYTHONIOENCODING="ascii"))
    target = tmp_path / "\u2207"
    code, out, err = unruly("vectors", "export", CASE, "--format", "txt", "-o", target, PYTHONIOENCODING="ascii")
    assert code == 0, out + err
    assert (target / "rope.txt").is_file()


@pytest.mark.parametrize("path", ["./my_ops", "pkg/ops.py", "sub/json.py"])
def test_a_file_is_named_by_its_path(shell, path):
    """Also one with the name of a module that is already imported, and one in a package, with its relative imports."""
    code, out, err = shell("check", f"{path}:half", *HALF)
    assert code == 0, out + err


def test_advice_is_in_options(run, tmp_path):
    """What Python calls to= and dtype= are --to and --dtype."""
    (tmp_path / "raw.bin").write_bytes(b"1234")
    code, _, err = run("diagnose", CASE, str(tmp_path / "raw.bin"))
    assert (code, "is a raw file; say what it holds with --dtype one of f64," in err) == (2, True)
    assert "load_output" not in err
    assert cli.messages.in_shell("wrap it, or pass to=, which converts.") == "wrap it, or pass --to, which converts."
    assert (
        cli.messages.in_shell("check.check_rope: ask for another with exponent_dim=.") == "ask for another with --exponent-dim."
    )
    assert cli.messages.in_shell("pass max_position= with the last") == "pass --max-position with the last"
    assert cli.messages.in_shell('pass positions="shared".') == "pass --positions shared."


def test_advice_for_a_function_that_raises(shell):
    code, out, _ = shell("check", "unruly:raises", *HALF)
    assert code == 1
    assert re.search(r"failed: call: it raised .*\n  Advice: Debug \S+unruly.py:\d+, which raised ", out)


def test_export_needs_a_directory_and_verify_a_manifest(run, tmp_path):
    assert "directory is ''" in usage_error(run("vectors", "export", CASE, "--format", "txt", "-o", ""))
    (tmp_path / "rope.txt").mkdir()
    said = usage_error(run("vectors", "export", CASE, "--format", "txt", "-o", tmp_path))
    assert re.search(r"rope.txt: \w[\w ]+\)?; choose another directory", said), said
    assert "Errno" not in said
    assert "pass a complete copy of posref/vectors" in run("vectors", "verify", tmp_path)[1]


# every op ----------------------------------------------------------------------------------------------------------------


def test_any_op_is_checked_with_its_own_options(shell):
    code, out, _ = shell("check", "my_ops:bias", "--as", "alibi.bias", "--heads", "4", "--form", "signed")
    assert (code, out.startswith("posref: alibi.bias heads=4 form=signed ok")) == (0, True)
    code, out, _ = shell("check", "my_ops:slopes", "--as", "alibi.slopes", "--heads", "12", "--json")
    assert (code, [finding["name"] for finding in json.loads(out)["diagnosis"]]) == (1, ["plain_geometric"])
    code, out, _ = shell("check", "my_ops:bias", "--preset", "paper_8")
    assert (code, "expected (3, 8, 5, 7)" in out) == (1, True)


def test_a_contract_says_what_the_op_means_where_no_function_does(run):
    assert "returns: the depth of every draft token" in run("check", "--as", "position_ids.tree", "--contract")[1]
    assert "posref check --as position_ids.tree --contract" in run("show", "position_ids.tree")[2]


def shapes_without():
    """(op, setting, array, its shape without the setting), where an array has another shape if the setting is None."""
    for op in (op for system in ops.names() for op in ops.system(system).values()):
        usual = implementation.example(op)
        was = op.make(**usual)
        for setting in inspect.signature(op.make).parameters.keys() - was.keys():
            with contextlib.suppress(TypeError, ValueError):
                without = op.make(**usual | {setting: None})
                op.spec(**without)
                for name in (name for name in op.given if np.shape(without[name]) != np.shape(was[name])):
                    yield op, setting, name, np.shape(without[name])


def test_a_setting_that_may_be_none_is_said_and_can_be_asked(shell, tmp_path):
    """One gate per head is right there, and the advice of the usual question names the setting; checked for one op."""
    found = {op.name: (op, *more) for op, *more in shapes_without()}
    assert {"delta.attend", "gated.attend"} <= found.keys()
    for op, setting, name, shape in found.values():
        settings = [f"--{key.replace('_', '-')}={value}" for key, value in implementation.example(op).items()]
        asked = ["--as", op.name, *settings]
        said = f"--{setting}: leave it out, or pass none: then {name} has shape {shape}"
        assert f"  {said}\n" in shell("check", *asked, "--contract")[1]
        without = shell("check", *asked, f"--{setting}", "none", "--contract")[1]
        assert f"{name}: numbers {shape}\n" in re.sub(r"\w+=(\d)", r"\1", without)
    told = {key: value for key, value in op.make(**implementation.example(op)).items() if key not in op.given}
    (tmp_path / "one.py").write_text(
        f"from posref import ops\ndef fn({', '.join(op.given)}):\n    {name} = {name}[..., :1]\n"
        f"    return ops.op({op.name!r}).spec({', '.join(op.given)}, **{told})\n"
    )
    code, out, _ = shell("check", "one.py:fn", *asked, f"--{setting}", "none")
    assert code == 0, out
    code, out, _ = shell("check", "one.py:fn", *asked)
    assert (code, f"right where {name} has shape {shape}: pass --{setting} none" in out) == (1, True), out


def test_ops_and_contracts_are_listed(run):
    code, out, _ = run("check", "--as", "alibi")
    assert (code, out.splitlines()[2]) == (0, "alibi.bias(query_positions, key_positions)")
    code, out, _ = run("check", "--as", "t5.bias", "--contract")
    assert code == 0
    assert "t5.bias receives, in this order (the sizes are examples):\n  query_positions: integers" in out


CONTRACTS = """
--as attention.attend | mask: booleans (batch=3, 1, queries=5, keys=7), True = may attend
--as alibi.bias --heads 12 --form signed | key_positions: integers (batch=3, keys=7) ; --heads 12 ; --form signed
--preset wavlm | table: numbers (buckets=320, heads=2) ; --max-distance 800 ; --bidirectional
--preset wavlm --heads 12 | table: numbers (buckets=320, heads=12)
--as t5.bias | --bidirectional or --no-bidirectional: required ; returns: numbers (batch=3, heads=2, queries=5, keys=7)
--as axes.rotate --dim 64 | x: numbers (batch=3, heads=2, tokens=7, features=64) ; --axis: required
--as convolution.convolve | state: numbers (batch=3, rows=3, features=8)
--as rope | positions: integers (batch=3, tokens=23) ; --layout: required, one of interleaved, half ; --head-dim: as --dim
@64 --rotary-dim 16 | x: numbers (batch=3, heads=5, tokens=23, features=64) ; --dim 16 ; --head-dim 64
@64 --axes bnhd | x: numbers (batch=3, tokens=23, heads=5, features=64)
@64 --axes thd | x: numbers (tokens=69, heads=5, features=64)
--preset llama-3.1-8b | x: numbers (batch=3, heads=5, tokens=23, features=128) ; --dim 128
--preset Olmo-3.1-32B-Instruct --layer 3 | --dim 128
--as sinusoidal_2d.counted | mask: booleans (4, 5), True = no padding
""".strip()  # what is asked | lines of its contract


@pytest.mark.parametrize("row", CONTRACTS.splitlines())
def test_a_contract_is_that_of_what_one_checks(run, row):
    words, _, lines = row.partition(" | ")
    code, out, _ = run("check", *asked(words), "--contract")
    assert code == 0
    assert set(lines.split(" ; ")) <= {line.strip() for line in out.splitlines()}


@pytest.mark.parametrize("command", ["mistakes alibi", "mistakes t5.bias", "check --contract --as t5.bias"])
def test_a_system_may_have_its_family_before_its_name(run, command):
    code, out, err = run(*command.split())
    before, _, name = command.rpartition(" ")
    assert (code, out, err) == run(*before.split(), f"relative.{name}") == run(*before.split(), f"posref.relative.{name}")
    assert code == 0


@pytest.mark.parametrize("name", ["roformer", "ROPE", "ROPE.rotate"])
def test_mistakes_take_the_words_of_show(run, name):
    assert run("mistakes", name) == run("mistakes", "rope.rotate" if "." in name else "rope")


def test_mistakes_and_symptoms(run):
    code, out, _ = run("mistakes", "alibi", "--long")
    assert code == 0
    assert "sorted_slopes: the slopes are sorted" in out
    assert "  Seen in: NVIDIA/TensorRT-LLM#1611" in out
    short, _, further = run("mistakes", "alibi")[1].partition("\ntried where none of these fits\n")
    assert "  row_form: the bias is -m i" in further
    assert sorted(re.findall(r"^  (\w+): ", short, re.M)) == sorted(re.findall(r"^(\w+): ", out, re.M))
    code, out, _ = run("mistakes", "--symptom", "left padding", "--json")
    assert code == 0
    assert any("alibi.row_for_position" in entry["mistakes"] for entry in json.loads(out))
    code, out, _ = run("mistakes", "rope.rotate", "--json")
    assert json.loads(out)["in_place"]["remedy"] == "Read both members of a pair before writing either."


MEANT = {
    "rotary.rope": "roformer, llama-2",
    "absolute.learned": "trainable, gpt-2",
    "absolute.zero_padding": "cnn, hubert, conv positional embedding",
    "absolute.recurrent": "rnn",
    "relative.deberta": "emd",
    "relative.tupe": "untied",
    "relative.alibi": "bloom",
    "rotary.scaling": "yarn",
    "position_ids": "kv-cache, kv cache, packing",
    "rotary.axes": "qwen2-vl, xdrope, riflex, qwen-image",
    "relative.shaw": "classic",
    "absolute.merge": "multiplicative",
    "rotary.generators": "golden gate",
    "absolute.sinusoidal_2d": "fourier features",
}


@pytest.mark.parametrize("system", MEANT)
def test_the_words_of_the_field_find_a_system(system):
    assert [word for word in MEANT[system].split(", ") if finding.meant(word) != [system]] == []


def test_find_and_show_take_a_word(capsys):
    assert cli.main(["find", "bloom"]) == 0
    assert capsys.readouterr().out.startswith("relative.alibi  preset: bloom_176b\n")
    assert cli.main(["find", "bloom", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["name"] == "relative.alibi"
    assert cli.main(["show", "trainable"]) == 0
    assert capsys.readouterr().out.startswith("posref.absolute.learned\n")
    assert cli.main(["show", "relative"]) == 0
    assert "relative.tupe" in capsys.readouterr().out
    assert cli.main(["show", "llama"]) == cli.main(["find", "gibberish"]) == cli.main(["claims", "gibberish", "--json"]) == 2
    assert "posref find llama" not in capsys.readouterr().out


@pytest.mark.parametrize("words", ["jamba", "falcon h1", "recurrent gemma"])
def test_find_names_the_state_of_a_model_first(words, capsys):
    assert cli.main(["find", *words.split()]) == 0
    assert capsys.readouterr().out.startswith("state.")


def test_find_leads_from_a_symptom_to_its_mistakes(capsys):
    for word, code in (("gibberish", 2), ("left padding", 0), ("zzz", 2), ("bloom", 0)):
        assert cli.main(["find", *word.split()]) == code
        told = "".join(capsys.readouterr())
        assert (f"`posref mistakes --symptom {word!r}`" in told) == (word in ("gibberish", "left padding")), told
        assert cli.main(["find", *word.split(), "--json"]) == code
        out, err = capsys.readouterr()
        said = {hit["symptom"] for hit in json.loads(out or "[]")}
        assert said == ({f"posref mistakes --symptom {word!r}" if word == "left padding" else ""} if code == 0 else set())
        assert (f"`posref mistakes --symptom {word!r}`" in err) == (word == "gibberish")


@pytest.mark.parametrize("name", ["t5.bucket", "value"])
def test_what_check_may_say_of_an_op_is_printed(name, capsys):
    assert cli.main(["mistakes", name]) == 0
    said = capsys.readouterr().out
    asked = [op for op in ops.system(name.split(".")[0]).values() if name in (op.name, op.name.split(".")[0])]
    of_attention = ops.further(ops.op("attention.attend")).keys() | ops.op("attention.attend").mistakes.keys()
    names = {each for op in asked for each in {**op.mistakes, **ops.further(op)}}
    assert {each for each in names - of_attention if f"  {each}: " not in said} == set()


def test_claims_are_printed_with_what_shows_them(capsys):
    assert cli.main(["claims", "sarkale", "oscillation"]) == 0
    shown = capsys.readouterr().out
    assert "imprecise: " in shown
    assert "witness: " in shown
    assert "python -m proofs absolute.sinusoidal.components_reach_both_signs" in shown
    assert cli.main(["claims", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) > 200
    assert cli.main(["claims", "--who", "slides", "--verdict", "wrong"]) == 0
    assert capsys.readouterr().out.count("  wrong: ") == 4
    assert cli.main(["claims"]) == 0
    assert "  su         J. Su, Transformer" in (counts := capsys.readouterr().out)
    assert sum(map(int, re.findall(r"(\d+) (?:right|imprecise|wrong|undecided)", counts))) > 200
    assert cli.main(["claims", "--who", "nobody"]) == cli.main(["claims", "--verdict", "nice"]) == 2


@pytest.mark.parametrize("command", ["list", "claims su", "find llama", "show relative"])
def test_output_fits_the_terminal(command, run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = run(*command.split())
    assert (code, max(map(len, out.splitlines())) <= 80) == (0, True)


def test_a_page_fits_the_terminal_but_for_its_code(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "90")
    for name in (*discovery.names(), *discovery.COMMON):
        assert printed.page(name).startswith(f"posref.{name}\n")
        text = printed.page(name).replace(printed.code(importlib.import_module(f"posref.{name}")), "")
        prose = "\n\n".join(paragraph for paragraph in text.split("\n\n") if ">>>" not in paragraph)
        assert max(map(len, prose.splitlines())) <= 90, name


def test_a_page_states_what_is_proved():
    text = printed.page("absolute.sinusoidal")
    assert text.index("Where implementations differ.") < text.index("Properties.") < text.index("References.")
    assert "dot_product: p_i . p_j = sum_t cos(w_t (m_i - m_j))" in " ".join(text.split())
    assert "Properties" not in printed.page("pairing").partition("def ")[0] or statements.about("pairing")


PAGES = {page for folder in (ROOT, ROOT / "docs", vectors.DIRECTORY) for page in folder.glob("*.md")} - {ROOT / "CHANGELOG.md"}
PAGES |= {*(ROOT / "docs" / "pages" / "templates").glob("*.html")}


@pytest.mark.parametrize("page", sorted(PAGES), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_of_a_page_are_known(page):
    """Options that a command has no word for are settings of the op that `--as` names; a module that is run is there, with its
    options."""
    text = re.sub(r"{{.*?}}", "rope", page.read_text(encoding="utf-8"))
    text = re.sub(r"</?code>", "`", text) if page.suffix == ".html" else text
    assert {*re.findall(r"--format (\w+)", text)} <= {*formats.FORMATS, *formats.ALIASES, "FORMAT"}
    for line in re.findall(r"(?:`|^\$ |^(?=.* --))posref ([a-z][^`\n]*)", text, re.MULTILINE):
        name, *words = shlex.split(line.replace("<system>", "rope").replace("FORMAT", "json"))
        assert name in cli.parser.COMMANDS, line
        _, rest = cli.parser.all_commands().parse_known_args([name, *words]) if words else (None, [])
        given = {word.removeprefix("--") for word in rest if word.startswith("--")}
        assert not given or given <= inspect.signature(ops.op(words[words.index("--as") + 1]).make).parameters.keys(), line
    for module, words in re.findall(r"python -m ([\w.]+)([^`\n|]*)", text):
        assert importlib.util.find_spec(module), module
        stage = re.match(r" ([\w.]+)", words)
        assert module != "tests.release" or not stage or stage[1] in stages.STAGES, words
        file = ROOT / module.replace(".", "/")
        source = file / "__main__.py" if file.is_dir() else file.with_suffix(".py")
        assert not source.is_file() or all(flag in source.read_text() for flag in re.findall(r"--[\w-]+", words)), words


FILES = re.compile(r"\.py|output|config\.json|\./rope| -o |copy_of|posref demo|posref table|verify")


@pytest.mark.parametrize("name", [*cli.parser.COMMANDS, *(f"vectors {each}" for each in cli.parser.OF_VECTORS)])
def test_the_help_of_a_command_begins_with_a_sentence_and_two_examples(name, capsys):
    """Each example is understood, and runs where it needs no file of the user; what takes seconds runs in other tests."""
    assert cli.main([*name.split(), "--help"]) == 0
    _, sentence, examples = capsys.readouterr().out.split("\n\n")[:3]
    assert sentence.strip().endswith((".", "what is wrong with it."))
    lines = [line.strip() for line in examples.splitlines()]
    assert len(lines) == 2
    for line in lines:
        words = shlex.split(line)
        assert words[0] == "posref"
        arguments, rest = cli.parser.all_commands().parse_known_args(words[1:])
        assert not rest or arguments.run in (cli.checking.check, cli.checking.serve), line
        if not FILES.search(line):
            assert cli.main(words[1:]) == 0, line


def test_every_command_is_in_the_first_help():
    text = cli.parser.all_commands().format_help()
    assert all(re.search(rf"\b{name}\b", text) for name in cli.parser.COMMANDS)
    (known,) = [action.choices for action in cli.parser.all_commands()._actions if action.choices]
    assert set(known) == set(cli.parser.COMMANDS)
