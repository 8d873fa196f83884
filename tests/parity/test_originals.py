"""posref against what the authors' own code computed, as kept in tests/parity/originals at commits that the files name.

Functions and classes were taken out of their files and run as they stand: numbers went in from a seed, weights had size one.

Every bound is a number of roundings of the arithmetic of that code times the sum of the sizes of the terms.
"""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from posref import attention, offsets
from posref.absolute import complex_order, floater, hierarchical, merge, sinusoidal
from posref.explain import explain
from posref.relative import alibi, deberta, nezha, shaw, t5, transformer_xl, tupe
from posref.rotary import pope, rope

FOLDER = Path(__file__).parent / "originals"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))
U32, U64 = 2.0**-24, 2.0**-53
DIM = 4


def frozen(name):
    found = json.loads((FOLDER / f"{name}.json").read_text(encoding="ascii"))
    source = found.pop("source")
    return {"source": source, **{key: np.array(x["data"]).reshape(x["shape"]) for key, x in found.items()}}


def sizes(*products):
    """Sum of |x| |y| over products of rows: what the rounding of a sum of dot products is measured in."""
    return sum(np.abs(x) @ np.swapaxes(np.abs(y), -1, -2) for x, y in products)


@pytest.mark.parametrize("name", NAMES)
def test_every_file_names_its_source(name):
    source = frozen(name)["source"]
    assert all(len(commit.split(",")[0]) == 12 for commit in source.split("@")[1:])
    assert re.search(r"/.*, .*\.py", source)


@pytest.mark.parametrize("memory", [0, 5])
def test_transformer_xl(memory):
    """The code masks in float32; rows of positions, scores and averages are its own."""
    got = {name.removesuffix(f"_{memory}"): x for name, x in frozen("transformer_xl").items() if name.endswith(f"_{memory}")}
    q, k, r, u, v = (got[name] for name in "qkruv")
    n_query, n_key = q.shape[-2], k.shape[-2]
    rows = transformer_xl.embeddings(transformer_xl.distances(n_query, n_key, bidirectional=False), sinusoidal.frequencies(12))
    assert np.abs(rows - got["rows"]).max() <= n_key * 10 * U32  # its frequencies are float32: 10 roundings of ln 10000
    projected = (got["rows"] @ got["w_r"].T).reshape(n_key, 3, DIM).transpose(1, 0, 2)
    np.testing.assert_allclose(projected, r, rtol=0, atol=24 * U64 * np.abs(got["w_r"]).sum())
    visible = transformer_xl.visible(n_query, n_key)
    weights = attention.softmax(transformer_xl.scores(q, k, r, u, v, scale=DIM**-0.5), visible)
    size = sizes((np.abs(q) + np.abs(u)[:, None], k), (np.abs(q) + np.abs(v)[:, None], r)).max() if memory else 0
    size = max(size, np.abs(q).sum(-1).max() * max(np.abs(k).max(), np.abs(r).max()) * 4)
    assert np.abs(weights @ got["values"] - got["output"]).max() <= 4 * U32 * size * np.abs(got["values"]).max()
    other = transformer_xl.scores(q, k, r[:, ::-1], u, v, scale=DIM**-0.5)
    assert np.abs(attention.softmax(other, visible) @ got["values"] - got["output"]).max() > 0.1


@pytest.mark.parametrize(("version", "span"), [("v1", 4), ("v2", 8)])
def test_deberta(version, span):
    """Scores in float32, each row less its largest."""
    got = {name.removesuffix(f"_{version}"): x for name, x in frozen("deberta").items() if name.endswith(version)}
    q, k, q_r, k_r = (got[name] for name in ("q", "k", "q_r", "k_r"))
    n = q.shape[-2]
    steps = offsets.offsets(np.arange(n), np.arange(n))
    if version == "v2":
        steps = deberta.log_bucket(steps, buckets=span, max_position=40, source="microsoft")
    assert np.array_equal(-steps, got["offsets"])  # the code subtracts the key
    words = {"scale": (3 * DIM) ** -0.5}
    released = deberta.scores(q, k, q_r, k_r, steps, convention="released", **words)
    released = released - released.max(axis=-1, keepdims=True)
    size = (sizes((q, k)).max() + sizes((q, k_r)).max() + sizes((k, q_r)).max()) * words["scale"]
    assert np.abs(released - got["scores"]).max() <= 2 * (DIM + 6) * U32 * size
    paper = deberta.scores(q, k, q_r, k_r, steps, convention="paper", **words)
    assert np.abs(paper - paper.max(axis=-1, keepdims=True) - got["scores"]).max() > 1


def test_floater():
    """The released flow by torchdiffeq's rk4 with a fifth of a time step."""
    got = frozen("floater")

    def flow(t, x):
        for n in (0, 2):
            time = np.ones((*x.shape[:-1], 1)) * t
            x = np.concatenate([x, time], axis=-1) @ got[f"w{n}"].T + got[f"b{n}"]
            x = np.maximum(x, 0) if n == 0 else x
        return x

    curve = floater.encode(flow, got["start"], got["times"], substeps=floater.PRESETS["released"]["substeps"])
    # 55 steps of 20 roundings, which slopes of this norm magnify over the whole time
    growth = np.exp(got["times"][-1] * np.prod([np.linalg.norm(got[f"w{n}"], 2) for n in (0, 2)]))
    bound = 55 * 20 * U64 * np.abs(got["curve"]).max() * growth
    assert np.abs(np.moveaxis(curve, -2, 0) - got["curve"]).max() <= bound
    assert np.abs(got["curve"][-1] - got["curve"][0]).max() > 1e6 * bound


def test_nezha():
    """A table of 2k + 1 rows in float32, one-hot products, and Shaw's attention with it on both sides."""
    got = frozen("nezha")
    table, steps = nezha.table(3, DIM, convention="released"), offsets.offsets(np.arange(9), np.arange(9))
    assert np.abs(table[np.clip(steps, -3, 3) + 3] - got["rows"]).max() <= 2 * U32
    q, k, v = (got[name] for name in "qkv")
    given = {"scale": DIM**-0.5}
    output = nezha.attend(q, k, v, table, steps, **given)
    slack = 2 * U32 * (1 + 2 * np.abs(q).sum(-1).max() * DIM**-0.5 * (np.abs(v).max() + 1))  # what the rounded table moves
    assert np.abs(output - got["output"]).max() <= slack
    paper = nezha.attend(q, k, v, nezha.table(3, DIM, convention="paper"), steps, **given)
    assert np.abs(paper - got["output"]).max() > 0.1


def test_tupe():
    """Normalized rows, projections with biases, the reset, and T5's buckets with a row for each side of [CLS]."""
    got = frozen("tupe")
    n, scale, bins = 9, float(got["scale"]), 8
    p = np.concatenate([got["p"], np.ones((n + 1, 1))], axis=-1)
    u_q, u_k = (np.concatenate([got[f"w_{x}"].T, got[f"b_{x}"][None]]).reshape(13, 3, DIM).transpose(1, 0, 2) for x in "qk")
    parts = tupe.untie(tupe.positional_scores(p, u_q, u_k, scale=scale))
    steps = offsets.offsets(np.arange(n), np.arange(n))
    assert np.array_equal(t5.bucket(steps, buckets=bins, max_distance=16, bidirectional=True), got["buckets"])
    relative = got["table"][got["buckets"]].transpose(2, 0, 1)
    own = tupe.reset(relative, got["table"][bins // 2], got["table"][bins])
    none = np.zeros((1, 3, n, DIM))
    found = tupe.scores(none, none, *parts, scale=scale, convention="released", relative_bias=own)[0]
    size = scale * (np.abs(p) @ np.abs(u_q)).max() * (np.abs(p) @ np.abs(u_k)).max() * DIM + np.abs(got["table"]).max()
    assert np.abs(found - got["bias"]).max() <= 2 * (2 * 13 + DIM + 6) * U64 * size
    assert np.abs(parts.position_scores + relative - got["bias"]).max() > 0.1  # without the reset


@pytest.mark.parametrize("channels", [2, 6, 64])
@pytest.mark.parametrize("start", [0, 7])
def test_tensor2tensor_signal(channels, start):
    """Sines, then cosines, of float32 angles: the exponent, exp, the product and the sine are rounded."""
    positions = start + np.arange(12)
    w = sinusoidal.frequencies(channels, divisor="dim - 2") if channels > 2 else np.ones(1)
    ours = sinusoidal.encode(positions, w, layout="half")
    angle = np.tile(positions[:, None] * w * (2 * np.abs(np.log(w)) + 4), (1, 2))
    assert (np.abs(ours - frozen("tensor2tensor")[f"signal_{channels}_{start}"]) <= (angle + 2) * 2 * U32).all()


def test_tensor2tensor_shaw():
    got = frozen("tensor2tensor")
    q, k, v, keys, values = (got[name] for name in ("q", "k", "v", "key_table", "value_table"))
    steps = offsets.offsets(np.arange(6), np.arange(6))
    assert np.array_equal(np.clip(steps, -2, 2) + 2, got["index"])
    assert np.array_equal(np.clip(offsets.offsets(np.arange(4, 7), np.arange(7)), -2, 2) + 2, got["index_of_last"])
    scores = shaw.scores(q, k, keys, steps, scale=1)
    size = sizes((q, k)) + np.abs(q).sum(-1, keepdims=True) * np.abs(keys).max()
    assert (np.abs(scores - got["scores"]) <= 2 * (DIM + 2) * U64 * size).all()
    output = shaw.attend(q, k, v, keys, values, steps, scale=1)
    bound = 2 * (2 * (DIM + 4) * size.max() + 20) * U64 * (np.abs(v).max() + np.abs(values).max())
    assert np.abs(output - got["output"]).max() <= bound
    assert np.abs(shaw.attend(q, k, v, keys[::-1], values, steps, scale=1) - got["output"]).max() > 0.1


def test_bert4keras():
    """Sinusoid in turn, the stretched table, and three ways to merge."""
    got = frozen("bert4keras")
    table, x, alpha = got["table"], got["x"], hierarchical.PRESETS["bert4keras"]["alpha"]
    angle = np.repeat(np.arange(50)[:, None] * sinusoidal.frequencies(8), 2, axis=-1)
    ours = sinusoidal.encode(np.arange(50), sinusoidal.frequencies(8), layout="interleaved")
    assert (np.abs(ours - got["sinusoid"]) <= (angle * 12 + 2) * U64).all()
    for name, p, given in (("None", table, x[:, :6]), ("True", hierarchical.encode(np.arange(36), table, alpha=alpha), x)):
        # the same operations, in another order at most: 8 roundings on |p| (1 + alpha) / (1 - alpha)
        bound = 8 * U64 * np.abs(table).max() * (1 + alpha) / (1 - alpha) * (2 + np.abs(x).max())
        assert np.abs(p - got[f"zero_{name}"]).max() <= bound
        assert np.abs(merge.add(given, p) - got[f"add_{name}"]).max() <= bound
        assert np.abs(merge.multiply(given, p, convention="released") - got[f"mul_{name}"]).max() <= bound
        assert np.abs(merge.multiply(given, p, convention="paper") - got[f"mul_{name}"]).max() > 1
        assert np.abs(merge.concatenate(given, p) - got[f"concat_{name}"]).max() <= bound


def test_complex_order():
    """Position times the frequency of the word, and no phase."""
    got = frozen("complex_order")
    amplitude, frequency = got["amplitude"][got["words"]], complex_order.released_frequencies(got["words"], 6)
    g = complex_order.encode(got["positions"], amplitude, frequency, np.zeros_like(frequency))
    # the exponent is rounded to float32, times ln 10000 = 9.2; the power, the product and the angle are rounded once each
    bound = np.abs(amplitude) * (got["positions"][..., None] * frequency * (9.3 * 2 + 3) + 1) * 2 * U32
    assert (np.abs(g.real - got["real"]) <= bound).all()
    assert (np.abs(g.imag - got["imaginary"]) <= bound).all()
    assert np.abs(g.imag).max() > 1e3 * bound.max()


def test_pope():
    """Pairs in turn; its frequencies are float32: a quotient and a power, on angles in float64."""
    got, w = frozen("pope"), pope.frequencies(6)
    phases = pope.clamp(got["phases"])
    assert (got["phases"] < -2 * np.pi).any()
    assert (got["phases"] > 0).any()
    size = 4 * np.abs(np.concatenate([got["q"], got["k"]])).max()  # a length is at most |x| + ln 2
    bound = size * got["positions"].max() * (w * (2 * np.abs(np.log(w)) + 4)).max() * U32
    tables = {"q": rope.tables(got["positions"][:, None], w), "k": pope.tables(got["positions"], w, phases)}
    for name, given in tables.items():
        assert np.abs(pope.encode(got[name], *given, layout="interleaved") - got[f"{name}_turned"]).max() <= bound
        assert np.abs(pope.encode(got[name], *given, layout="half") - got[f"{name}_turned"]).max() > 1e3 * bound
    last = pope.encode(got["q"][:, :, :2], *rope.tables(np.array([[[3, 4]]]), w), layout="interleaved")
    assert np.abs(last - got["last"]).max() <= bound


FALCON = {"model_type": "RefinedWebModel", "hidden_size": 24, "n_head": 3, "n_layer": 1, "multi_query": True}
BAICHUAN = {"model_type": "baichuan", "num_attention_heads": 3}
YARN = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "mscale": 0.707}
LING = {"model_type": "bailing_moe", "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16}
LING |= {"num_hidden_layers": 1, "rope_theta": 600000.0, "rope_scaling": YARN, "max_position_embeddings": 64}
GROUPED = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 1, "rope_theta": 5000.0}
DEEPSEEK = GROUPED | {"model_type": "deepseek", "rope_scaling": {"type": "linear", "factor": 2.5}}
CODESHELL = {"model_type": "codeshell", "n_embd": 64, "n_head": 4, "n_layer": 1, "num_query_groups": 2}
SHIPPED = [  # file of numbers, ending of its names, configuration, heads, key heads, and what multiplies the bias
    ("falcon", "_rope", FALCON, 3, 1, None),
    ("falcon", "_alibi", FALCON | {"alibi": True}, 3, 1, 8**-0.5),
    ("baichuan_7b", "", BAICHUAN | {"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32}, 1, 1, None),
    ("baichuan_13b", "", BAICHUAN | {"hidden_size": 5120, "num_hidden_layers": 40}, 3, 3, 1.0),
    ("bailing_moe", "", LING, 4, 2, None),
    ("deepseek", "", DEEPSEEK, 4, 2, None),
    ("stablelm_epoch", "", GROUPED | {"model_type": "stablelm_epoch", "rope_pct": 0.5}, 4, 2, None),
    ("codeshell", "", CODESHELL | {"position_embedding_type": "rope"}, 4, 2, None),
]


@pytest.mark.parametrize(("name", "ending", "config", "heads", "key_heads", "times"), SHIPPED)
def test_explained_code_that_ships_with_checkpoints(name, ending, config, heads, key_heads, times):
    """A layer attends as explained; Baichuan gives queries, keys and values one after the other, as the others do."""
    got = frozen(name)
    (group,) = explain(config)["layers"]
    qkv, output = got[f"qkv{ending}"], got[f"output{ending}"]
    n, width = len(qkv), qkv.shape[1] // (heads + 2 * key_heads)
    q, k, values = np.split(qkv.copy().reshape(n, -1, width).swapaxes(0, 1), [heads, heads + key_heads])
    k, values = (np.repeat(x, heads // key_heads, axis=0) for x in (k, values))
    bias = 0.0
    if times is None:
        angles = np.arange(n)[:, None] * group["frequencies"]
        cos, sin = (group["magnitude"] * function(angles) for function in (np.cos, np.sin))
        for x in (q, k):
            x[..., : group["rotary_dim"]] = rope.rotate(x[..., : group["rotary_dim"]], cos, sin, layout=group["layout"])
        assert group["softmax_scale"] == width**-0.5
    else:
        assert group["bias"] == {"call": "alibi.bias", "heads": heads, "form": "key", "maximum": 8}
        bias = times * alibi.bias(np.arange(n), np.arange(n), alibi.slopes(heads), form="key")
    scores = q @ k.swapaxes(1, 2) * width**-0.5 + bias
    found = attention.softmax(scores, attention.causal_mask(np.arange(n), np.arange(n))) @ values
    bound = 64 * n * U32 * np.abs(q).max() * np.abs(k).max() * np.abs(values).max()  # frequencies and slopes are float32
    assert np.abs(found.swapaxes(0, 1).reshape(n, -1) - output).max() <= bound < 0.01
