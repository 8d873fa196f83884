"""Every option and keyword of a check is used or refused, whichever way one asks; what a user has bound stays bound."""

import ast
import contextlib
import inspect
import io
import json
import re
from functools import partial, partialmethod, wraps

import numpy as np
import pytest

from posref import cli, ops
from posref.check import check, check_rope, contract
from posref.check.engine import Question
from posref.check.implementation import AXES, example
from posref.check.rotary.rotation import LAYOUTS
from posref.check.wrong_elements import names
from posref.explain import presets
from tests import own
from tests.every import every
from tests.ops.test_ops import settings

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
    **{"max_position": "77", "positions": "offset", "model": "none", "seed": "7"},
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
    assert cli.typed.CHECK_OPTIONS.keys() == VALUES.keys()
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


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_is_asked_on_the_command_line(layout, asked):
    """A function that raises is told so, and the question is no error of usage."""
    code, said = asked("converters:tells", "--as", "rope", "--dim", "16", "--layout", layout)
    assert (code, f"layout={layout} " in said) == (1, True)


@every(own.OPS, name=lambda op: op.name, parts=16)
def test_every_op_is_asked_on_the_command_line_as_in_python(op):
    """Its first settings give the same contract."""
    chosen = own.first(op)
    words = [word for name, value in chosen.items() for word in in_shell(name.replace("_", "-"), value)]
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        code = cli.main(["check", "--as", op.name, "--contract", "--json", *words])
    assert code == 0, out.getvalue()
    assert json.loads(out.getvalue())["receives"] == contract(op.name, **chosen)


def in_shell(name, value):
    if isinstance(value, bool):
        return [f"--{name}" if value else f"--no-{name}"]
    return [] if value is None else [f"--{name}", ",".join(map(str, value)) if np.ndim(value) else str(value)]


def test_a_refusal_says_what_the_option_is_for(asked):
    code, said = asked("converters:tells", *WAYS["rope"].split(), "--layer", "3")
    purpose = "which layer, if --config or --preset names a model"
    assert (code, said) == (2, f"posref: --as rope has no --layer; leave it out. It is for: {purpose}\n")
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
]


@pytest.mark.parametrize(("ask", "axes"), list(zip(ASKING, AXES, strict=False)))
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

    def turned(q, k, i, j):
        return np.einsum("bihd,bjhd->bhij", rotated(q, i, "bnhd"), rotated(k, j, "bnhd"))

    check(attend, "attention.attend", scale=0.5, heads=5, axes="bnhd").require()
    check(turned, "rope.scores", dim=8, layout="half", scale=1.0, heads=5, key_heads=5, axes="bnhd").require()
    with pytest.raises(ValueError, match="ask with bhnd or bnhd"):
        check(attend, "attention.attend", scale=0.5, axes="thd")


def growing(op, usual, *extents):
    """The axes of every array and of the result that are longer where one of these extents is."""
    settings = {name: value for name, value in usual.items() if name not in ("n_query", "n_key")}

    def shapes(**more):
        a = op.make(**settings | more)
        return {name: np.shape(a[name]) for name in op.given} | {"returns": np.shape(op.spec(**a))}

    found = {name: set() for name in shapes()}
    for extent in {*extents} & inspect.signature(op.make).parameters.keys():
        asked = settings | {extent: 2 * (settings.get(extent) or inspect.signature(op.make).parameters[extent].default or 1)}
        with contextlib.suppress(ValueError):
            for name, shape in shapes(**asked).items():
                found[name] |= {i for i, sizes in enumerate(zip(shape, shapes()[name], strict=True)) if sizes[0] != sizes[1]}
    return found


@every([op.name for op in own.OPS], parts=8)
def test_tokens_stand_before_heads_in_every_array_that_has_both(name):
    """As each contract says it; a state, a bias and scores arrive as they are."""
    op = ops.op(name)
    usual = example(op)
    batch, heads = growing(op, usual, "batch"), growing(op, usual, "heads", "key_heads")
    widths, columns = growing(op, usual, "head_dim", "dim"), growing(op, usual, "n_query", "n_key", "length")
    plain = [re.fullmatch(r"(\w+): (?:numbers|integers|booleans) (\(.*?\)).*", line) for line in contract(name)]
    shapes = {found[1]: ast.literal_eval(found[2]) for found in plain if found}
    both = {
        each
        for each, shape in shapes.items()
        if 0 in batch[each] and (1 in heads[each] or shape[1:2] == (1,)) and len(shape) > 2
        if 2 not in widths[each] and 1 not in columns[each] and 3 not in columns[each]
    }
    if both <= {"returns"}:
        with pytest.raises(ValueError, match="receives none; leave it out"):
            contract(name, axes="bnhd", **usual)
        return
    said = contract(name, axes="bnhd", **usual)
    for each, (first, *rest) in shapes.items():
        expected = (first, rest[1], rest[0], *rest[2:]) if each in both else (first, *rest)
        assert any(re.fullmatch(rf"{each}: \w+ {re.escape(str(expected))}.*", line) for line in said), (each, expected, said)


def test_a_state_with_tokens_before_heads():
    """The recurrence of gated delta rules in its usual layout, whose state is (batch, heads, d, d_v)."""

    def step(q, k, v, beta, log_gates, state):
        rows = []
        for t in range(v.shape[1]):
            state = state * np.exp(log_gates[:, t])[..., None]
            error = v[:, t] - np.einsum("bhkv,bhk->bhv", state, k[:, t])
            state = state + np.einsum("bhk,bhv->bhkv", k[:, t], beta[:, t, :, None] * error)
            rows.append(0.5 * np.einsum("bhkv,bhk->bhv", state, q[:, t]))
        return np.stack(rows, axis=1), state

    check(lambda *arrays: step(*arrays)[0], "delta.attend", scale=0.5, state_layout="kv", axes="bnhd").require()
    check(lambda k, *arrays: step(k, k, *arrays)[1], "delta.remember", state_layout="kv", axes="bnhd").require()


@every([op.name for op in own.OPS], parts=8)
def test_axes_of_a_result_are_called_by_what_they_count(name):
    """Heads are called heads wherever they stand, and nothing else is."""
    op = ops.op(name)
    usual = example(op)
    a = op.make(**usual)
    said = names(Question(op, a, ("f64",)))
    meant = {"batch rows": ("batch",), "heads": ("heads", "key_heads"), "rows": ("n_query", "n_key")}
    meant["features"] = ("head_dim", "dim")
    grown = {words: growing(op, usual, *extents)["returns"] for words, extents in meant.items()}
    for i, words in enumerate(said[:-1]):
        counted = [each for each, axes in grown.items() if i in axes]
        alone = len(counted) == 1 and len(grown[counted[0]] - {len(said) - 1}) == 1
        assert words == counted[0] if alone else words not in ("batch rows", "heads"), (said, grown)


@pytest.mark.parametrize(
    ("name", "settings"),
    [("gated.log_gates", {}), ("alibi.bias", {"form": "signed", "heads": 4})],
)
def test_the_batch_row_that_is_wrong_is_said(name, settings):
    op = ops.op(name)

    def wrong(*arrays):
        y = op.spec(*arrays, **told).astype(np.float32)
        y[2] += 1 + y[2] ** 2
        return y

    told = {key: value for key, value in op.make(**settings).items() if key not in op.given}
    assert "wrong for batch row 2 alone" in str(check(wrong, name, **settings))


class Holder:
    def turn(self, x, positions, base=1e4):
        return rotated(x, positions, base=base)

    bound = __call__ = partialmethod(turn, base=5e5)


BOUND = {
    "keyword": partial(rotated, base=5e5),
    "rebound": partial(partial(rotated, base=1e4), base=5e5),
    "place": partial(lambda base, x, positions: rotated(x, positions, base=base), 5e5),
    "partialmethod": Holder().bound,
    "callable": Holder(),
    "wrapped": wraps(partial(rotated, base=5e5))(lambda x, p, **named: partial(rotated, base=5e5)(x, p, **named)),
}


@pytest.mark.parametrize(("ask", "bound"), [*((ASKING[2], bound) for bound in BOUND.values()), (ASKING[0], BOUND["keyword"])])
def test_what_is_bound_is_not_overridden(ask, bound):
    """Every binding is asked in one way, and one binding in every way."""
    report = ask(bound, base=1e4)
    assert not report.ok
    assert "500000" in str(report.diagnosis[0])
    ask(bound, base=5e5).require()


@every(own.OPS, name=lambda op: op.name)
def test_no_setting_of_any_op_is_passed_where_it_is_bound(op):
    """A function that takes all settings and has each of them bound in turn gets the bound one."""
    from posref.check.call import Caller

    settings = [name for name, p in inspect.signature(op.spec).parameters.items() if p.kind is p.KEYWORD_ONLY]
    for name in (*settings, *op.given):
        caller = Caller(partial(op.spec, **{name: "mine"}), op, None, None, "bhnd", "batch")
        assert name not in caller.named
        assert name not in caller.received


PHI = CONFIG | {"model_type": "phi3", "max_position_embeddings": 32768, "original_max_position_embeddings": 2048}
LISTS = {"short_factor": [1.0] * 8, "long_factor": [1.0 + t for t in range(8)]}
BY_LENGTH = {
    "longrope": PHI | {"rope_scaling": {"type": "longrope", **LISTS}},
    "dynamic": CONFIG | {"max_position_embeddings": 2048, "rope_scaling": {"type": "dynamic", "factor": 2.0}},
}


def by_length(kind, length):
    """The frequencies of transformers for a text of so many tokens, by its formulas."""
    exponent = np.arange(0, 16, 2) / 16
    if kind == "longrope":
        return 1 / (np.array(LISTS["long_factor" if length > 2048 else "short_factor"]) * 1e6**exponent)
    return (1e6 * (2 * max(length, 2048) / 2048 - 1) ** (16 / 14)) ** -exponent


class Kept:
    """Dynamic NTK as transformers has it: the longest length stays until a text is shorter than the trained length."""

    longest = 2048

    def __call__(self, length):
        self.longest = max(self.longest, length) if length >= 2048 else 2048
        return by_length("dynamic", self.longest)


def turning(choose, settings):
    """RoPE whose frequencies are chosen by positions: one list, or one per token."""

    def fn(x, positions):
        angle = (positions[..., None] * choose(positions))[:, None]
        cos, sin = (settings.get("magnitude", 1.0) * f(angle) for f in (np.cos, np.sin))
        return np.concatenate([x[..., :8] * cos - x[..., 8:] * sin, x[..., 8:] * cos + x[..., :8] * sin], axis=-1)

    return fn


@pytest.mark.parametrize("kind", BY_LENGTH)
def test_frequencies_follow_the_length_that_is_asked(kind):
    op, settings = presets.op_and_settings(BY_LENGTH[kind])
    kept = Kept()
    if kind == "dynamic":
        check(turning(lambda p: kept(int(p.max()) + 1), settings), op, **settings).require()
    for limit in (2047, 2048, 30000):
        right = turning(lambda p: by_length(kind, int(p.max()) + 1), settings)
        check(right, op, **settings, max_position=limit).require()
    for wrong, name in ((2048, "length_ignored"), (4096, "always_long")):
        report = check(turning(lambda p, wrong=wrong: by_length(kind, wrong), settings), op, **settings, max_position=3000)
        assert not report.ok
        assert name in [finding.name for finding in report.diagnosis]


@pytest.mark.parametrize("lists", [("long", "long"), ("long", "short")], ids="_".join)
def test_which_list_is_wrong_is_told_at_another_length(lists):
    """Beyond the trained length alone, lists exchanged and one list always give the same numbers."""
    op, settings = presets.op_and_settings(BY_LENGTH["longrope"])

    def chosen(positions):
        return by_length("longrope", 4096 if lists[int(positions.max()) >= 2048] == "long" else 8)

    report = check(turning(chosen, settings), op, **settings)
    name = "lists_exchanged" if lists[0] != lists[1] else "always_long"
    assert [finding.name for finding in report.diagnosis] == [name], report
    assert len(report.advice) == len({*report.advice}) > 0
    assert not any(name in line for line in report.ambiguous)


LENGTHS = {  # of positions, the length by which each token is turned
    "length_of_each_row": lambda p: p.max(axis=-1, keepdims=True) + 1 + 0 * p,
    "length_of_the_first_row": lambda p: p[0].max() + 1 + 0 * p,
    "length_one_less": lambda p: p.max() + 0 * p,
    "changes_early": lambda p: p.max() + 2 + 0 * p,
}


@pytest.mark.parametrize(("kind", "name"), [("longrope", name) for name in LENGTHS] + [("dynamic", "length_one_less")])
def test_another_length_is_named(kind, name):
    op, settings = presets.op_and_settings(BY_LENGTH[kind])

    def chosen(positions):
        lengths, places = np.unique(LENGTHS[name](positions), return_inverse=True)
        return np.array([by_length(kind, int(length)) for length in lengths])[places.reshape(positions.shape)]

    other = "changes_late" if (kind, name) == ("longrope", "length_one_less") else name
    assert [finding.name for finding in check(turning(chosen, settings), op, **settings).diagnosis] == [other]


def test_the_rotation_of_another_layer_is_named():
    """Gemma 3: layers with a window have base 10000, the others a million, divided by 8."""
    report = check(lambda x, p: rotated(x, p / 8, base=1e6), preset="gemma-3-4b", layer=0)
    assert [finding.name for finding in report.diagnosis] == ["rotation_of_layer_5_of_text_config"], report
    assert "right for layer 5 " in str(report)


def test_a_causal_mask_moves_with_its_positions():
    """A function that makes its own causal mask of the positions is right wherever the mask is."""
    from posref import attention
    from posref.ops import alibi

    def own(q, k, v, i, j):
        mask = attention.causal_mask(i, j)[:, None]
        return alibi.attend(q, k, v, i, j, heads=3, form="signed", scale=0.5, mask=mask)

    check(own, "alibi.attend", heads=3, form="signed", scale=0.5, causal=True).require()


def test_windows_of_models_and_keys_after_the_query():
    def near(i, j):
        return i[..., :, None] - j[..., None, :]

    causal = {"width": 3, "causal": True}
    check(lambda i, j: (near(i, j) >= 0) & (near(i, j) < 3), "attention.window_mask", **causal).require()
    report = check(lambda i, j: abs(near(i, j)) < 3, "attention.window_mask", **causal)
    assert [finding.name for finding in report.diagnosis] == ["window_forward_too"]
    for sign in (0, 1):  # 0, or the offset, after the query
        check(
            lambda i, j, sign=sign: np.where(near(i, j) < 0, -sign * near(i, j), np.maximum(-near(i, j), -5)),
            "position_ids.rerope",
            window=5,
        ).require()


@every(own.OPS, name=lambda op: op.name)
def test_a_word_that_a_setting_does_not_have_is_refused_before_the_function_is_called(op):
    """Every setting of every op that takes a word; the error names the setting, and so does that of the contract."""
    usual = settings(op)
    words = [name for name, value in op.make(**usual).items() if isinstance(value, str)]
    for name in words:
        for ask in (partial(check, lambda *arrays: pytest.fail("called")), contract):
            with pytest.raises(ValueError, match=f"{name} is 'nonsense', expected one of"):
                ask(op.name, **usual | {name: "nonsense"})
