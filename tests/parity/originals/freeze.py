"""Run the authors' own code once, and keep what went in and came out: `python freeze.py CLONES [NAME ..]`, in this folder.

CLONES has a clone of every repository below, at its commit. Functions and classes are taken out of their files by name and run
as they stand; what a file imports for other purposes is not needed. Nothing of theirs is stored but a small NAME.json: numbers
and `source`, which tests/parity/test_originals.py compares posref with. PyTorch runs most, TensorFlow the two that need it.
"""

import ast
import functools
import json
import math
import sys
import typing
from pathlib import Path
from types import SimpleNamespace

import numpy as np

HERE = Path(__file__).parent
REPOSITORIES = {
    "transformer_xl": ("kimiyoung/transformer-xl", "44781ed21dba", "pytorch/mem_transformer.py"),
    "deberta": ("microsoft/DeBERTa", "4d7fe0bd4fb3", "DeBERTa/deberta/disentangled_attention.py"),
    "floater": ("xuanqing94/FLOATER", "d788b5e3516f", "fairseq/modules/flow_funcs.py"),
    "nezha": ("huawei-noah/Pretrained-Language-Model", "0598f02d7fc4", "NEZHA-PyTorch/modeling_nezha.py"),
    "tupe": ("guolinke/TUPE", "4c64ff748a70", "fairseq/modules/transformer_sentence_encoder.py"),
    "tensor2tensor": ("tensorflow/tensor2tensor", "bafdc1b67730", "tensor2tensor/layers/common_attention.py"),
    "bert4keras": ("bojone/bert4keras", "c1ae0dc5eff6", "bert4keras/layers.py"),
    "complex_order": ("iclr-complex-order/complex-order", "4c4ec2466683", "TEXT CLASSIFICATION/CNN/model_cnn/Complex_order.py"),
    "pope": ("lucidrains/PoPE-pytorch", "ee11cab0dda8", "PoPE_pytorch/pope.py"),
    "falcon": ("WasimAkramShaikh/falcon-7b-instruct-clone", "eb410fb6ffa9", "modelling_RW.py"),
    "baichuan_7b": ("baichuan-inc/Baichuan-7B", "6f3ef4633a90", "models/modeling_baichuan.py"),
    "baichuan_13b": ("jrd77/Baichuan2-13B-Chat", "d022d7264467", "modeling_baichuan.py"),
    "bailing_moe": ("inclusionAI/Ling", "5ccaeae073d6", "models/modeling_bailing_moe.py"),
    "deepseek": (
        "yellowtree123/Deterministic-Differentiable-Pruning",
        "a373238bccb8",
        "deepseek-moe-16b-base/modeling_deepseek.py",
    ),
    "stablelm_epoch": ("Zumwaltboi68/stable-code-3b", "7c4583da0a36", "modeling_stablelm_epoch.py"),
    "codeshell": ("wwnaitang/CodeShell-7B-Chat-int4", "a280a3acd987", "modeling_codeshell.py"),
}
TORCHDIFFEQ = ("rtqichen/torchdiffeq", "657943acefa8", "torchdiffeq")


def take(path, *names, **space):
    """Functions and classes of a file, by name, run in a namespace of what they need."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    tree.body = [node for node in tree.body if getattr(node, "name", None) in names]
    exec(compile(tree, str(path), "exec"), space)
    found = [space[name] for name in names]
    return found if len(found) > 1 else found[0]


def seeded(module):
    """The module in float64 with weights of size one."""
    import torch

    torch.manual_seed(0)
    with torch.no_grad():
        for weight in module.parameters():
            weight.copy_(torch.randn(weight.shape))
    return module.double().eval()


def kept(modules):
    """What the named modules gave and got, filled when they run."""
    found = {}
    for name, module in modules.items():
        module.register_forward_hook(lambda _, x, y, name=name: found.update({f"{name}_in": x[0], name: y}))
    return found


def transformer_xl(path):
    """Scores are inside; what is kept are heads, rows of positions, and the averages before the projection."""
    import torch

    names = "PositionalEmbedding", "RelMultiHeadAttn", "RelPartialLearnableMultiHeadAttn"
    space = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional}
    positions, _, kind = take(path, *names, **space)
    layer = seeded(kind(3, 12, 4, 0.0))
    hooked = kept({"qkv": layer.qkv_net, "r": layer.r_net, "output": layer.o_net})
    out = {}
    for memory in (0, 5):
        torch.manual_seed(1)
        w, mems = torch.randn(4, 2, 12).double(), torch.randn(memory, 2, 12).double()
        u, v = torch.randn(3, 4).double(), torch.randn(3, 4).double()
        rows = positions(12).double()(torch.arange(4 + memory - 1, -1, -1.0).double())
        mask = torch.triu(torch.ones(4, 4 + memory), 1 + memory).bool()[:, :, None]
        layer(w, rows, u, v, attn_mask=mask, mems=mems if memory else None)
        heads = hooked["qkv"].reshape(4 + memory, 2, 3, 3, 4).permute(2, 1, 3, 0, 4)
        r = hooked["r"].reshape(4 + memory, 3, 4).permute(1, 0, 2)
        output = hooked["output_in"].reshape(4, 2, 3, 4).permute(1, 2, 0, 3)
        given = {"q": heads[0][:, :, memory:], "k": heads[1], "values": heads[2], "r": r, "u": u, "v": v}
        given |= {"rows": rows[:, 0], "w_r": layer.r_net.weight, "output": output}
        out |= {f"{name}_{memory}": value for name, value in given.items()}
    return out


def deberta(path):
    """Scores before the softmax, in float32 as the code has them, less the largest of each row."""
    import torch

    relative = take(
        path.with_name("da_utils.py"),
        "make_log_bucket_dict",
        "make_log_bucket_position",
        "build_relative_position",
        torch=torch,
        math=math,
        lru_cache=functools.lru_cache,
    )[2]
    stub = SimpleNamespace(apply=lambda scores, mask, axis: torch.softmax(scores, axis))
    space = {"torch": torch, "nn": torch.nn, "math": math, "StableDropout": torch.nn.Dropout, "XSoftmax": stub}
    kind = take(path, "DisentangledSelfAttention", build_relative_position=relative, **space)
    out = {}
    for name, words in {
        "v1": {"max_relative_positions": 4, "pos_att_type": "c2p|p2c"},
        "v2": {"max_relative_positions": 40, "position_buckets": 8, "pos_att_type": "c2p|p2c", "share_att_key": True},
    }.items():
        config = {"num_attention_heads": 3, "hidden_size": 12, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
        layer = seeded(kind(SimpleNamespace(**config, relative_attention=True, max_position_embeddings=64, **words)))
        torch.manual_seed(1)
        x, rows = torch.randn(2, 14, 12).double(), torch.randn(2 * layer.pos_ebd_size, 12).double()
        shared = words.get("share_att_key", False)
        q_r = layer.query_proj(rows) if shared else layer.pos_query_proj(rows)
        k_r = layer.key_proj(rows) if shared else layer.pos_key_proj(rows)
        scores = layer(x, None, rel_embeddings=rows)["attention_logits"]
        heads = lambda z: z.reshape(*z.shape[:-1], 3, 4).transpose(-3, -2)  # noqa: E731
        q, k = (heads(projection(x)) for projection in (layer.query_proj, layer.key_proj))
        out |= {f"{n}_{name}": z for n, z in {"q": q, "k": k, "q_r": heads(q_r), "k_r": heads(k_r), "scores": scores}.items()}
        out |= {f"offsets_{name}": relative(14, 14, layer.position_buckets, layer.max_relative_positions)[0]}
    return out


def floater(path):
    """The released flow, by the released solver and step."""
    import torch

    clones = next(folder for folder in path.parents if (folder / folder_of(TORCHDIFFEQ[0])).is_dir())
    sys.path.insert(0, str(clones / folder_of(TORCHDIFFEQ[0])))
    from torchdiffeq import odeint

    _, kind = take(path, "Linear_t", "flow_func_linear", torch=torch, nn=torch.nn)
    flow = seeded(kind(3, 2, 4))
    with torch.no_grad():
        for weight in flow.parameters():
            weight.mul_(0.5)
    start = torch.randn(3, 2, 4).double()
    times, step = torch.arange(12).double() * 0.1, 0.1
    curve = odeint(flow, start.clone(), times, method="rk4", options={"step_size": step / 5.0})
    weights = {f"w{n}": layer.linear.weight for n, layer in enumerate(flow.layers) if hasattr(layer, "linear")}
    biases = {f"b{n}": layer.linear.bias for n, layer in enumerate(flow.layers) if hasattr(layer, "linear")}
    return {"start": start, "times": times, "curve": curve, **weights, **biases}


def nezha(path):
    import torch

    names = "_generate_relative_positions_embeddings", "NeZhaSelfAttention"
    torch.Tensor.cuda = lambda self: self
    embeddings, kind = take(path, *names, torch=torch, nn=torch.nn, np=np, math=math)
    config = {"hidden_size": 12, "num_attention_heads": 3, "max_relative_position": 3, "attention_probs_dropout_prob": 0.0}
    layer = seeded(kind(SimpleNamespace(**config)))
    layer.relative_positions_embeddings = layer.relative_positions_embeddings.double()
    x = torch.randn(2, 9, 12).double()
    output, scores = layer(x, torch.zeros(2, 1, 1, 9).double())
    heads = {name: layer.transpose_for_scores(getattr(layer, name)(x)) for name in ("query", "key", "value")}
    given = dict(zip("qkv", heads.values(), strict=True))
    return {**given, "rows": embeddings(9, 4, 3), "scores": scores, "output": output.reshape(2, 9, 3, 4).transpose(1, 2)}


def tupe(path):
    import torch

    seen = []

    class Layer(torch.nn.Module):
        def __init__(self, **_):
            super().__init__()

        def forward(self, x, self_attn_bias, **_):
            seen.append(self_attn_bias)
            return x

    space = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional, "math": math, "TransformerSentenceEncoderLayer": Layer}
    space |= {"LayerNorm": lambda width, export: torch.nn.LayerNorm(width), "Optional": typing.Optional, "Tuple": tuple}
    bucket, kind = take(path, "relative_position_bucket", "TransformerSentenceEncoder", **space)
    model = seeded(
        kind(
            0,
            11,
            num_encoder_layers=1,
            embedding_dim=12,
            num_attention_heads=3,
            max_seq_len=9,
            rel_pos=True,
            rel_pos_bins=8,
            max_rel_pos=16,
        )
    )
    model(torch.arange(1, 10)[None])
    p = model.pos_ln(model.pos.weight)
    given = {"p": p, "w_q": model.pos_q_linear.weight, "b_q": model.pos_q_linear.bias}
    given |= {"w_k": model.pos_k_linear.weight, "b_k": model.pos_k_linear.bias, "scale": np.float64(model.pos_scaling)}
    offsets = torch.arange(9)[None, :] - torch.arange(9)[:, None]
    buckets = bucket(offsets, num_buckets=8, max_distance=16)
    return {**given, "table": model.relative_attention_bias.weight, "buckets": buckets, "bias": seen[0]}


def tensor2tensor(path):
    """The signal, and Shaw's attention with the last queries of the keys."""
    import tensorflow.compat.v1 as tf

    names = "get_timing_signal_1d", "_generate_relative_positions_matrix", "_relative_attention_inner"
    scopes = SimpleNamespace(add_name_scope=lambda: lambda f: f)
    signal, places, inner = take(path, *names, tf=tf, math=math, expert_utils=scopes)
    out = {
        f"signal_{channels}_{start}": signal(12, channels, start_index=start)[0] for channels in (2, 6, 64) for start in (0, 7)
    }
    rng = np.random.default_rng(0)
    key_table, value_table = rng.normal(size=(2, 5, 4))
    q, k, v = rng.normal(size=(3, 2, 3, 6, 4))
    index = places(6, 6, 2).numpy()
    scores = inner(tf.constant(q), tf.constant(k), tf.constant(key_table[index]), True)
    output = inner(tf.nn.softmax(scores), tf.constant(v), tf.constant(value_table[index]), False)
    given = {"q": q, "k": k, "v": v, "key_table": key_table, "value_table": value_table, "index": index}
    return out | given | {"index_of_last": places(3, 7, 2).numpy(), "scores": scores, "output": output}


def bert4keras(path):
    """Its backend is Keras's, of which NumPy has these functions."""
    keras = SimpleNamespace(
        arange=np.arange,
        pow=np.power,
        cast=lambda x, _: x,
        floatx=lambda: "float64",
        sin=np.sin,
        cos=np.cos,
        stack=np.stack,
        ndim=np.ndim,
        shape=np.shape,
        int_shape=np.shape,
        prod=np.prod,
        reshape=np.reshape,
        gather=lambda table, at: table[at],
        dtype=lambda x: str(x.dtype),
        tile=np.tile,
        concatenate=lambda parts: np.concatenate(parts, axis=-1),
    )
    flatten, sinusoid = take(path.with_name("backend.py"), "flatten", "sinusoidal_embeddings", K=keras, tf=np)
    keras.flatten = flatten
    kind = take(path, "PositionEmbedding", Layer=object, K=keras)
    rng = np.random.default_rng(0)
    table, x = rng.normal(size=(6, 4)), rng.normal(size=(2, 36, 4))
    out = {"table": table, "x": x, "sinusoid": sinusoid(np.arange(50.0), 8)}
    for hierarchical in (None, True):
        for mode in ("add", "mul", "zero", "concat"):
            layer = object.__new__(kind)
            words = {"input_dim": 6, "embeddings": table, "merge_mode": mode, "hierarchical": hierarchical}
            layer.__dict__.update(words, custom_position_ids=False)
            out[f"{mode}_{hierarchical}"] = layer.call(x if hierarchical else x[:, :6])
    return out


def complex_order(path):
    import tensorflow.compat.v1 as tf

    layer = type("Layer", (), {"__call__": lambda self, inputs: self.call(inputs)})
    multiply = take(path.parents[1] / "multiply.py", "ComplexMultiply", Layer=layer, K=SimpleNamespace(cos=tf.cos, sin=tf.sin))
    kind = take(path, "CNN", tf=tf, ComplexMultiply=lambda: object.__new__(multiply))
    model = object.__new__(kind)
    model.batch_size, model.vocab_size = 2, 30
    words, positions = np.array([[3, 29, 7], [1, 1, 0]]), np.array([[1, 2, 3], [1, 2, 0]])
    amplitude = np.random.default_rng(0).normal(size=(30, 6)).astype(np.float32)
    model.embedding_W, model.embedding_W_pos = tf.constant(amplitude), model.Position_Embedding(6)
    real, imaginary = model.concat_embedding(words, positions)
    return {"words": words, "positions": positions, "amplitude": amplitude, "real": real, "imaginary": imaginary}


def pope(path):
    """Two texts with positions of their own, and the last queries of a text alone; phases on both sides of their ends."""
    import einops
    import torch

    space = {"torch": torch, "F": torch.nn.functional, "einsum": einops.einsum, "rearrange": einops.rearrange, "pi": math.pi}
    space |= {
        "PolarEmbedReturn": lambda freqs, bias: (freqs, bias),
        "slice_right_at_dim": lambda x, n, dim: x.narrow(dim, -n, n),
    }
    space |= {
        "autocast": torch.amp.autocast,
        "exists": lambda x: x is not None,
        "Module": torch.nn.Module,
        "Tensor": torch.Tensor,
    }
    space |= {"Parameter": torch.nn.Parameter, "arange": torch.arange, "cat": torch.cat, "is_tensor": torch.is_tensor}
    apply, kind = take(path, "apply_pope_to_qk", "PoPE", **space)
    layer = kind(6, heads=2).double()
    torch.manual_seed(0)
    torch.nn.init.uniform_(layer.bias, -9, 3)
    positions = torch.tensor([[0, 1, 2, 3, 4], [7, 3, 12, 40, 41]])
    q, k = torch.randn(2, 2, 5, 6).double(), torch.randn(2, 2, 5, 6).double()
    q_turned, k_turned = apply(layer(positions), q, k)
    last, _ = apply(layer(5), q[:, :, :2], k)
    given = {"phases": layer.bias, "positions": positions, "q": q, "k": k}
    return {**given, "q_turned": q_turned, "k_turned": k_turned, "last": last}


def for_shipped(path, *names):
    """Functions and classes of code that ships with a checkpoint, with what their annotations need."""
    import torch

    space = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional, "math": math, "xops": None, "Cache": None}
    configs = "RWConfig BaiChuanConfig BaichuanConfig BailingMoeConfig DeepseekConfig StableLMEpochConfig"
    annotations = {name: getattr(typing, name) for name in ("Optional", "Tuple", "Union")}
    return take(path, *names, **space, **dict.fromkeys(configs.split()), **annotations)


def attended(layer, tokens, width, *given, **named):
    """The heads that a layer projects and what they attend to, before the last projection; `width` is that of a token."""
    import torch

    names = ("query_key_value", "W_pack", "c_attn", "q_proj", "k_proj", "v_proj", "dense", "o_proj", "c_proj")
    *first, last = filter(None, (getattr(layer, name, None) for name in names))
    hooked = kept({**{f"first_{i}": projection for i, projection in enumerate(first)}, "result": last})
    torch.manual_seed(1)
    layer(torch.randn(1, tokens, width).double() / 8, *given, **named)
    return {"qkv": torch.cat([hooked[f"first_{i}"][0] for i in range(len(first))], -1), "output": hooked["result_in"][0]}


def falcon(path):
    """Three heads with one key head, with a rotation and with ALiBi."""
    import torch

    helpers = "rotate_half", "RotaryEmbedding", "Linear", "_make_causal_mask"
    kind, alibi, *_, causal = for_shipped(path, "Attention", "build_alibi_tensor", *helpers)
    out = {}
    for name in ("rope", "alibi"):
        sizes = {"hidden_size": 24, "n_head": 3, "head_dim": 8, "multi_query": True, "rotary": name == "rope"}
        layer = seeded(kind(SimpleNamespace(**sizes, bias=False, hidden_dropout=0.0, attention_dropout=0.0)))
        bias = None if name == "rope" else alibi(torch.ones(1, 5), 3, torch.float64)
        found = attended(layer, 5, 24, bias, causal((1, 5), torch.device("cpu"), 0))
        out |= {f"{key}_{name}": value for key, value in found.items()}
    return out


def baichuan_7b(path):
    """One head of the width of the model."""
    import torch

    kind, *_ = for_shipped(path, "Attention", "RotaryEmbedding", "rotate_half", "apply_rotary_pos_emb")
    layer = seeded(kind(SimpleNamespace(hidden_size=128, num_attention_heads=1, max_position_embeddings=16)))
    hidden = torch.full((4, 4), -1e300, dtype=torch.float64).triu(1)[None, None]
    return attended(layer, 4, 128, hidden, torch.arange(4)[None])


def baichuan_13b(path):
    import torch

    helpers = "_get_interleave", "_fill_with_neg_inf"
    kind, mask, *_ = for_shipped(path, "BaichuanAttention", "_gen_alibi_mask", *helpers)
    layer = seeded(kind(SimpleNamespace(hidden_size=24, num_attention_heads=3, model_max_length=16)))
    return attended(layer, 5, 24, mask(torch.zeros(1), 3, 5).double())


def bailing_moe(path):
    """Four heads with two key heads, with YaRN whose magnitude is that of mscale alone."""
    import torch

    yarn = ("linear_ramp_mask", "find_correction_range", "find_correction_dim", "get_mscale")
    rotation = "BailingMoeRotaryEmbedding", "BailingMoeYarnRotaryEmbedding", "rotate_half", "apply_rotary_pos_emb", "repeat_kv"
    kind, *_ = for_shipped(path, "BailingMoeAttention", *rotation, *(f"yarn_{name}" for name in yarn))
    scaling = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "mscale": 0.707}
    sizes = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "rope_theta": 6e5}
    config = SimpleNamespace(**sizes, rope_scaling=scaling, max_position_embeddings=64, attention_dropout=0.0)
    config.use_bias = config.use_qkv_bias = False
    hidden = torch.full((5, 5), -1e300, dtype=torch.float64).triu(1)[None, None]
    return attended(seeded(kind(config, 0)), 5, 64, hidden, torch.arange(5)[None])


def causal():
    import torch

    return torch.full((5, 5), -1e300, dtype=torch.float64).triu(1)[None, None], torch.arange(5)[None]


GROUPED = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64}


def deepseek(path):
    """Four heads with two key heads, with linear scaling."""
    scaled = "DeepseekRotaryEmbedding", "DeepseekLinearScalingRotaryEmbedding"
    kind, *_ = for_shipped(path, "DeepseekAttention", *scaled, "rotate_half", "apply_rotary_pos_emb", "repeat_kv")
    config = SimpleNamespace(**GROUPED, rope_theta=5e3, rope_scaling={"type": "linear", "factor": 2.5}, pretraining_tp=1)
    config.attention_bias, config.attention_dropout = False, 0.0
    return attended(seeded(kind(config, 0)), 5, 64, *causal())


def stablelm_epoch(path):
    """Half of each head turns."""
    kind, *_ = for_shipped(path, "Attention", "RotaryEmbedding", "rotate_half", "apply_rotary_pos_emb", "repeat_kv")
    return attended(seeded(kind(SimpleNamespace(**GROUPED, rope_theta=5e3, rope_pct=0.5))), 5, 64, *causal())


def codeshell(path):
    """The base is 10000, whatever the file says."""
    kind, *_ = for_shipped(
        path, "CodeShellAttention", "CodeShellRotaryEmbedding", "rotate_half", "apply_rotary_pos_emb", "repeat_kv"
    )
    config = SimpleNamespace(**GROUPED, num_query_groups=2, group_query_attention=True, position_embedding_type="rope")
    config.rope_scaling, config.attn_pdrop, config.resid_pdrop = None, 0.0, 0.0
    hidden, places = causal()
    return attended(seeded(kind(config)), 5, 64, attention_mask=hidden == 0, position_ids=places)


def folder_of(repository):
    return repository.replace("/", "+")


def written(x):
    x = x.detach().numpy() if hasattr(x, "detach") else np.asarray(x)
    return {"shape": x.shape, "data": x.ravel().tolist()}


def main(clones, *names):
    for name in names or REPOSITORIES:
        repository, commit, file = REPOSITORIES[name]
        found = globals()[name]((Path(clones) / folder_of(repository) / file).resolve())
        others = [TORCHDIFFEQ] if name == "floater" else []
        source = "; ".join(f"{r}@{c}, {f}" for r, c, f in [(repository, commit, file), *others])
        lines = [f"{json.dumps(key)}: {json.dumps(written(x), separators=(',', ':'))}" for key, x in found.items()]
        text = ",\n".join([f'"source": {json.dumps(source)}', *lines])
        (HERE / f"{name}.json").write_text(f"{{\n{text}\n}}\n", encoding="ascii")
        print(f"{name}: {', '.join(found)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
