"""Every option and keyword of a check is used or refused, whichever way one asks; what a user has bound stays bound."""

import inspect
import json
from functools import partial, partialmethod, wraps

import numpy as np
import pytest

from posref import cli, ops
from posref.check import check, check_rope, contract
from posref.check.implementation import AXES
from tests.every import every

CONFIG = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "max_position_embeddings": 4096,
    "rope_theta": 1e6,
}
WAYS = {
    "rope": "--as rope --dim 16 --layout half",
    "op": "--as rope.rotate --dim 16 --layout half",
    "bias": "--as alibi.bias --heads 4 --form signed",
    "no arrays": "--as alibi.slopes --heads 4",
    "config": "--config config.json",
    "model": "--preset llama-3.1-8b",
    "preset": "--preset bloom_176b",
    "ops": "--as alibi",
    "contract": "--as rope --contract --dim 16 --layout half",
}
VALUES = {  # of every option, one that changes the question where it has a meaning
    **{"config": "other.json", "layer": "77", "part": "none", "preset": "bloom_176b", "axes": "bnhd", "dim": "32"},
    **{"rotary_dim": "8", "base": "77", "exponent_dim": "6", "schedule": "linear", "layout": "interleaved"},
    **{"frequencies": ",".join(["0.5"] * 8), "to": "converters:small", "to_positions": "converters:short"},
    **{"max_position": "77", "positions": "offset", "model": "none"},
}


CONVERTERS = """
import numpy as np


def small(x):
    return x.astype({"f": np.float16, "i": np.int32}[x.dtype.kind])


def short(x):
    return x.astype(np.int16 if x.max() < 9000 else np.uint32)


def said(x):
    return f"{np.shape(x)} {x.dtype} {np.sum(x, dtype=float):.3g}" if hasattr(x, "dtype") else f"{type(x)} {x}"


def tells(*given, **named):
    raise ValueError(" ".join(map(said, (*given, *named.values()))))
"""


@pytest.fixture
def asked(tmp_path, monkeypatch, capsys):
    """What `posref check` prints about a function that says what it received, and fails."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "other.json").write_text(json.dumps(CONFIG | {"rope_theta": 77.0}))
    (tmp_path / "converters.py").write_text(CONVERTERS)

    def run(*arguments):
        code = cli.main(["check", *arguments])
        out, err = capsys.readouterr()
        return code, out + err

    return run


@pytest.mark.parametrize("way", WAYS)
def test_every_option_changes_the_question_or_is_refused(way, asked):
    assert cli.CHECK_OPTIONS.keys() == VALUES.keys()
    start = [] if way in ("ops", "contract") else ["converters:tells"]
    plain = asked(*start, *WAYS[way].split())
    silent = []
    for name, value in VALUES.items():
        option = f"--{name.replace('_', '-')}"
        if option in WAYS[way]:
            continue
        code, said = asked(*start, *WAYS[way].split(), option, value)
        refused = code == 2 and said.count("\n") == 1 and (option in said or f"{name}=" in said or value in said)
        if not refused and (code == 2 or (code, said) == plain):
            silent.append((option, said))
    assert not silent


def test_a_refusal_says_what_the_option_is_for(asked):
    code, said = asked("converters:tells", *WAYS["rope"].split(), "--layer", "3")
    assert (code, said) == (2, "posref: --as rope has no --layer; leave it out. It is for: with --config or the --preset of a "
                            "model, the layer\n")  # fmt: skip
    code, said = asked("converters:tells", *WAYS["preset"].split(), "--exponent-dim", "3")
    assert (code, "--preset bloom_176b has no --exponent-dim" in said) == (2, True)


@pytest.mark.parametrize("function", [check, contract])
@pytest.mark.parametrize(
    ("name", "settings", "extra"),
    [
        ("alibi.slopes", {"heads": 4}, {"n_query": 9, "positions": "shared", "axes": "bnhd", "batch": 2}),
        ("alibi.bias", {"heads": 4, "form": "signed"}, {"head_dim": 9, "axes": "thd", "layer": 1}),
        ("attention.attend", {"scale": 0.5}, {"positions": "shared", "axes": "thd", "window": 3, "to_positions": None}),
        (
            "rope.rotate",
            {"dim": 8, "layout": "half", "frequencies": np.ones(4)},
            {"base": 7.0, "exponent_dim": 6, "n_query": 3},
        ),
        ("rope.rotate", {"dim": 8, "layout": "half", "positions": "range"}, {"max_position": 99}),
    ],
)
def test_a_setting_that_changes_nothing_is_refused(function, name, settings, extra):
    given = () if function is contract else (lambda *x: x[0],)
    for setting, value in extra.items():
        if setting == "to_positions":
            continue
        with pytest.raises((TypeError, ValueError), match=setting):
            function(*given, name, **settings, **{setting: value})
    with pytest.raises(ValueError, match=r"to=.*receives none"):
        function(*given, "alibi.slopes", heads=4, to=np.asarray)
    with pytest.raises(ValueError, match=r"to_positions=.*receives none"):
        function(*given, "generators.skew", to_positions=np.asarray)


def rotated(x, positions, axes="bhnd", base=1e4):
    """RoPE in each of the axes, without posref."""
    half = x.shape[-1] // 2
    angle = positions[..., None] * np.float32(base) ** (-np.arange(half, dtype=np.float32) / half)
    angle = angle[:, None] if axes == "bhnd" else angle[:, :, None] if axes == "bnhd" else angle[:, None]
    cos, sin = np.cos(angle), np.sin(angle)
    return np.concatenate([x[..., :half] * cos - x[..., half:] * sin, x[..., half:] * cos + x[..., :half] * sin], axis=-1)


ROPE = {"dim": 16, "layout": "half"}
ASKING = [
    lambda fn, **more: check_rope(fn, **ROPE, **more),
    lambda fn, **more: check(fn, "rope", **ROPE, **more),
    lambda fn, **more: check(fn, "rope.rotate", **ROPE, **more),
    lambda fn, **more: check_rope(fn, **ROPE, schedule="linear", factor=1.0, **more),
]


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("ask", ASKING)
def test_axes_reach_every_way_of_asking(ask, axes):
    def ranks(x, positions):
        assert x.ndim == len(axes), "wrong rank"
        return rotated(x, positions, axes)

    ask(ranks, axes=axes).require()
    for other in {"bhnd": ["thd"], "bnhd": ["bhnd", "thd"], "thd": ["bhnd"]}[axes]:
        assert not ask(ranks, axes=other).ok


def test_a_result_of_another_rank_is_not_ok():
    """One axis more or less, where its extent is 1 and the numbers are right."""

    def four(x, positions):
        return rotated(x, positions, "thd")[None]

    assert not check(four, "rope.rotate", **ROPE, axes="thd", batch=1).ok
    assert not check(lambda x, p: np.swapaxes(rotated(x, p, "bnhd"), 1, 2), "rope.rotate", **ROPE, axes="bnhd").ok


def attend(q, k, v, bias=None, mask=None, sinks=None, *, scale=0.5, softcap=None):
    k, v = (np.repeat(x, q.shape[2] // x.shape[2], axis=2) for x in (k, v))
    s = scale * np.einsum("bihd,bjhd->bhij", q, k)
    s = s if bias is None else s + bias
    s = s if mask is None else np.where(mask, s, -1e30)
    weights = np.exp(s - s.max(-1, keepdims=True))
    return np.einsum("bhij,bjhd->bihd", weights / weights.sum(-1, keepdims=True), v)


def test_attention_and_scores_with_heads_behind_the_sequence():
    """Also where there are as many heads as queries: scores are never exchanged, features always."""
    for heads in (2, 5, 7):
        check(attend, "attention.attend", scale=0.5, heads=heads, axes="bnhd").require()
        scores = {"dim": 8, "layout": "half", "scale": 1.0, "heads": heads, "key_heads": heads}

        def turned(q, k, i, j):
            return np.einsum("bihd,bjhd->bhij", rotated(q, i, "bnhd"), rotated(k, j, "bnhd"))

        check(turned, "rope.scores", **scores, axes="bnhd").require()
    with pytest.raises(ValueError, match="ask with bhnd or bnhd"):
        check(attend, "attention.attend", scale=0.5, axes="thd")


class Holder:
    def __init__(self, **kept):
        self.kept = kept

    def turn(self, x, positions, base=1e4):
        return rotated(x, positions, base=base)

    bound = partialmethod(turn, base=5e5)
    __call__ = partialmethod(turn, base=5e5)


def based(base, x, positions):
    return rotated(x, positions, base=base)


BOUND = {
    "keyword": partial(rotated, base=5e5),
    "twice": partial(partial(rotated, axes="bhnd"), base=5e5),
    "rebound": partial(partial(rotated, base=1e4), base=5e5),
    "place": partial(based, 5e5),
    "method": partial(Holder().turn, base=5e5),
    "partialmethod": Holder().bound,
    "callable": Holder(),
    "wrapped": wraps(partial(rotated, base=5e5))(lambda x, p, **named: partial(rotated, base=5e5)(x, p, **named)),
}


@pytest.mark.parametrize("bound", BOUND.values(), ids=BOUND)
@pytest.mark.parametrize("ask", ASKING[:3])
def test_what_is_bound_is_not_overridden(ask, bound):
    report = ask(bound, base=1e4)
    assert not report.ok
    assert "500000" in str(report.diagnosis[0])
    ask(bound, base=5e5).require()


@every([op for name in ops.names() for op in ops.system(name).values()], name=lambda op: op.name)
def test_no_setting_of_any_op_is_passed_where_it_is_bound(op):
    """A function that takes all settings and has each of them bound in turn gets the bound one."""
    from posref.check.call import Caller

    settings = [name for name, p in inspect.signature(op.spec).parameters.items() if p.kind is p.KEYWORD_ONLY]
    for name in (*settings, *op.given):
        caller = Caller(partial(op.spec, **{name: "mine"}), op, None, None, "bhnd", "batch")
        assert name not in caller.named
        assert name not in caller.received
