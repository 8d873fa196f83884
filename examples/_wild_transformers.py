"""Rows of the wall: transformers. Small modules with random weights, from `tests/programs/models.py`."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from _wild_verdicts import array, asked, double, numbers, rotation, tensor

from posref import attention, ops
from posref.absolute import sinusoidal
from posref.offsets import offsets
from posref.relative import alibi, deberta, shaw, swin, t5, transformer_xl, xlnet
from posref.rotary import rope

# Layers that go through its AttentionInterface: what each received


def layers(model_type: str) -> str:
    """Every attention of one pass of a small model with random weights."""
    from tests.programs import models

    calls = models.run(models.build(models.tiny(model_type))).attentions
    return recomputed(calls) if calls else "not measured: no attention was recorded"


def every_type() -> str:
    """The layers of all types that a tiny configuration builds and runs, and that call transformers' AttentionInterface."""
    from tests.programs import models

    count, layers, worst, different = 0, 0, 0.0, []
    for model_type in models.types():
        try:
            weights = models.build(models.tiny(model_type), device="meta").parameters()
            if sum(weight.numel() for weight in weights) > 3e7:  # its tiny configuration is not tiny
                continue
            calls = models.run(models.build(models.tiny(model_type))).attentions
        except Exception:  # it needs a picture, a sound or sizes of its own: nothing is said of it
            continue
        error, names = judged(calls)
        count, layers, worst = count + bool(calls), layers + len(calls), max(worst, error)
        different += [f"{model_type}: {'; '.join(sorted(names))}"] * bool(names)
    return f"differs: {', '.join(different)}" if different else f"{layers} layers of {count} types agree to {worst:.0e}"


def recomputed(calls: list) -> str:
    """What posref makes of recorded calls; where it differs, the mistake of `attention.attend` that explains it."""
    worst, names = judged(calls)
    return f"differs: {'; '.join(sorted(names))}" if names else f"{len(calls)} layers agree to {worst:.0e}"


def judged(calls: list) -> tuple[float, set]:
    """The largest distance, and what explains those that are not rounding."""
    worst, names = 0.0, set()
    for call in calls:
        arguments = attention_of(call)
        error = _distance(attention.attend(**arguments), call.output)
        worst = max(worst, error)
        if error > 1e-5:
            names |= set(explained(arguments, call.output)) or {f"nothing explains {error:.1g} in {call.layer}"}
    return worst, names


def attention_of(call: Any) -> dict:
    """The arguments of `attention.attend` from what the module received, in float64."""
    open_ = None if call.mask is None else call.mask if call.mask.dtype == bool else call.mask > -1e30
    bias = None if open_ is None or call.mask.dtype == bool else np.where(open_, call.mask, 0.0).astype(float)
    if (added := call.keywords.get("position_bias")) is not None:
        bias = added.detach().double().numpy() + (0.0 if bias is None else bias)
    q, k, v = (x.astype(float) for x in (call.q, call.k, call.v))
    if (own := call.keywords.get("sinks")) is not None:  # one per query: a key without features, whose bias it is
        shape = (*q.shape[:-1], k.shape[-2])
        bias = np.concatenate([np.broadcast_to(0.0 if bias is None else bias, shape), own.detach().double().numpy()], axis=-1)
        open_ = np.pad(np.broadcast_to(True if open_ is None else open_, shape), [(0, 0)] * 3 + [(0, 1)], constant_values=True)
        k, v = (np.pad(x, [(0, 0), (0, 0), (0, 1), (0, 0)]) for x in (k, v))
    sinks = call.keywords.get("s_aux")
    return {
        "q": q,
        "k": k,
        "v": v,
        "scale": call.keywords.get("scaling") or q.shape[-1] ** -0.5,
        "bias": bias,
        "mask": open_,
        "softcap": call.keywords.get("softcap"),
        "sinks": None if sinks is None else sinks.detach().double().numpy()[:, None],
    }


def _distance(y: np.ndarray, output: np.ndarray) -> float:
    return float(np.abs(np.swapaxes(y, 1, 2) - output).max() / np.abs(output).max())


def explained(arguments: dict, output: np.ndarray) -> Iterator[str]:
    """Mistakes of the op that give this output."""
    op = ops.op("attention.attend")
    given = ops.Arguments({name: value for name, value in arguments.items() if value is not None})
    for name, mistake in op.mistakes.items():
        try:
            if _distance(mistake.wrong(attention.attend, given), output) < 1e-5:
                yield f"{mistake.bug} ({name})"
        except (ops.NotHere, ValueError):
            continue


# Layers that do not: their own projections, and everything about position by posref

P = np.arange(11)  # the tokens of a small model
OFFSETS, CAUSAL = offsets(P, P), attention.causal_mask(P, P)


def first(kind: str, model: Any, output: str = "", **inputs: Any) -> tuple[Any, dict, np.ndarray]:
    """The first attention of a model in float64: module, arguments, and the outputs of its heads, which `output` projects."""
    from tests.programs import models

    module, found = next(m for m in model.modules() if type(m).__name__ == kind), {}
    names = inspect.signature(module.forward).parameters

    def receive(_, given, named):
        found.update(zip(names, given, strict=False), **named)

    module.register_forward_pre_hook(receive, with_kwargs=True)
    if output:
        getattr(module, output).register_forward_pre_hook(lambda _, given: found.update(heads=given[0]))
    else:
        module.register_forward_hook(lambda _, given, result: found.update(heads=result[0]))
    model(**(inputs or models.inputs_of(model)))
    return module.requires_grad_(False), found, array(found["heads"])


def random(model: Any) -> Any:
    """Weights of a size that shows; tables that are not trained stay."""
    import torch

    torch.manual_seed(0)
    for weight in model.parameters():
        if weight.requires_grad:
            torch.nn.init.normal_(weight, std=0.3)
    return model.double().eval().requires_grad_(False)


def small(model_type: str, **changes: Any) -> Any:
    from tests.programs import models

    with models.quiet():
        return random(models.build(models.tiny(model_type, **changes)))


def split(count: int, *xs: Any) -> list:
    """(batch, n, features) to (batch, heads, n, d)."""
    return [array(x.unflatten(-1, (count, -1)).transpose(1, 2)) for x in xs]


def merged(y: np.ndarray) -> np.ndarray:
    return np.swapaxes(y, 1, 2).reshape(y.shape[0], y.shape[2], -1)


def attended(found: np.ndarray, q: np.ndarray, k: np.ndarray, v: np.ndarray, **words: Any) -> str:
    return numbers(found, merged(attention.attend(q, k, v, **{"scale": q.shape[-1] ** -0.5} | words)))


def bloom() -> str:
    module, given, y = first("BloomAttention", small("bloom"), "dense")
    q, k, v = map(array, module._reshape(module.query_key_value(given["hidden_states"])))
    return attended(y, q, k, v, bias=alibi.bias(P, P, alibi.slopes(q.shape[1]), form="key"), mask=CAUSAL)


def mpt() -> str:
    module, given, y = first("MptAttention", small("mpt"), "out_proj")
    q, k, v = split(module.n_heads, *module.Wqkv(given["hidden_states"]).chunk(3, -1))
    return attended(y, q, k, v, bias=alibi.bias(P, P - P[-1], alibi.slopes(q.shape[1]), form="key"), mask=CAUSAL)


def falcon(with_alibi: bool, path: str = "eager") -> str:
    """The bias is added before the scale; its slopes, powers of two here, are exact in bfloat16."""
    model = small("falcon", alibi=with_alibi)
    model.config._attn_implementation = path
    module, given, y = first("FalconAttention", model, "dense")
    q, k, v = (array(x).swapaxes(1, 2) for x in module._split_heads(module.query_key_value(given["hidden_states"])))
    if not with_alibi:
        return attended(y, *(turned(x, "half") for x in (q, k)), v, mask=CAUSAL)
    bias = alibi.bias(P, P, alibi.slopes(q.shape[1]), form="key") * q.shape[-1] ** -0.5
    words = {"q": q, "k": k, "v": v, "scale": q.shape[-1] ** -0.5, "bias": bias, "mask": CAUSAL}
    verdict = numbers(y, merged(attention.attend(**words)))
    named = explained(words, y.reshape(*y.shape[:2], q.shape[1], -1))
    return f"differs: {', '.join(named)}" if verdict.startswith("differs") else verdict


def falcon_paths() -> str:
    """One set of weights by four paths: no reference is needed to see that they differ."""
    import torch

    from tests.programs import models

    ids, found = torch.arange(3, 27)[None], {}
    for path in ("eager", "sdpa"):
        with models.quiet():
            config = models.tiny("falcon", alibi=True, num_hidden_layers=1)
            model = random(models.AutoModel.from_config(config, attn_implementation=path))
        found[path] = model(input_ids=ids, use_cache=False).last_hidden_state
        cache = model(input_ids=ids[:, :-1], use_cache=True).past_key_values
        last = model(input_ids=ids[:, -1:], past_key_values=cache).last_hidden_state
        found[f"{path} cached"] = torch.cat([found[path][:, :-1], last], dim=1)
    with models.quiet():
        found["sdpa with output_attentions"] = model(input_ids=ids, output_attentions=True).last_hidden_state
    moved = {path: float((y - found["sdpa"]).abs().max()) for path, y in found.items() if path != "sdpa"}
    others = ", ".join(f"{path} by {error:.2g}" for path, error in moved.items() if error > 1e-5)
    return f"differs: from sdpa {others}" if others else f"agrees: {', '.join(found)}"


def turned(x: np.ndarray, layout: str) -> np.ndarray:
    return rope.rotate(x, *rope.tables(P, rope.frequencies(x.shape[-1])), layout=layout)


def roformer(rotary_value: bool) -> str:
    module, given, y = first("RoFormerSelfAttention", small("roformer", rotary_value=rotary_value))
    projections = (module.query, module.key, module.value)
    q, k, v = split(module.num_attention_heads, *(project(given["hidden_states"]) for project in projections))
    return attended(y, *(turned(x, "interleaved") for x in (q, k)), turned(v, "interleaved") if rotary_value else v)


def weighed(found: np.ndarray, scores: np.ndarray, v: np.ndarray) -> str:
    return numbers(found, merged(attention.softmax(scores) @ v))


def deberta_1() -> str:
    words = {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "max_relative_positions": 6}
    module, given, y = first("DisentangledSelfAttention", small("deberta", **words))
    q, k, v = module.transpose_for_scores(module.in_proj(given["hidden_states"])).chunk(3, -1)
    q, v = (x + module.transpose_for_scores(b[None, None]) for x, b in ((q, module.q_bias), (v, module.v_bias)))
    q, k, v = map(array, (q, k, v))
    rows = split(q.shape[1], *(project(given["rel_embeddings"])[None] for project in (module.pos_q_proj, module.pos_proj)))
    words = {"scale": (3 * q.shape[-1]) ** -0.5, "convention": "released"}
    return weighed(y, deberta.scores(q, k, rows[0][0], rows[1][0], OFFSETS, **words), v)


def deberta_2() -> str:
    words = {"position_buckets": 4, "max_relative_positions": 9, "share_att_key": True}
    words |= {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]}
    module, given, y = first("DisentangledSelfAttention", small("deberta-v2", **words))
    both = (module.query_proj, module.key_proj)
    heads = module.num_attention_heads
    q, k, v = split(heads, *(project(given["hidden_states"]) for project in (*both, module.value_proj)))
    rows = split(heads, *(project(given["rel_embeddings"])[None] for project in both))
    steps = deberta.log_bucket(OFFSETS, buckets=4, max_position=9, source="transformers")
    words = {"scale": (3 * q.shape[-1]) ** -0.5, "convention": "released"}
    return weighed(y, deberta.scores(q, k, rows[0][0], rows[1][0], steps, **words), v)


def xlnet_layer() -> str:
    from tests.programs import models

    model, found = small("xlnet"), {}
    layer = model.layer[0].rel_attn
    core, segment = layer.rel_attn_core, P > 3

    def caught(q, k, v, r, **words):
        found.update(given=(q, k, v, r), y=core(q, k, v, r, **words))
        return found["y"]

    layer.rel_attn_core = caught
    model(**models.inputs_of(model), token_type_ids=tensor(segment.astype(int))[None])
    q, k, v, r = (array(x).transpose(1, 2, 0, 3) for x in found["given"])
    weights = (array(w) for w in (layer.seg_embed, layer.r_w_bias, layer.r_r_bias, layer.r_s_bias))
    scores = xlnet.scores(q, k, r, *weights, segment[:, None] == segment, scale=q.shape[-1] ** -0.5)
    return weighed(array(found["y"]).transpose(1, 0, 2, 3).reshape(1, len(P), -1), scores, v)


def speech(model_type: str, kind: str, **words: Any) -> tuple:
    """The attention of a model of sounds on random features: its file, itself, q, k, v and what its heads put out."""
    import importlib

    import torch

    from tests.programs import models

    name = model_type.replace("-", "_")
    file = importlib.import_module(f"transformers.models.{name}.modeling_{name}")
    with models.quiet():
        config = models.tiny(model_type, **words)
    config._attn_implementation = "eager"
    module = random(getattr(file, kind)(config))
    x = torch.randn(2, len(P), config.hidden_size).double()
    rows = {}
    if words["position_embeddings_type"] == "relative":
        rows = {"relative_position_embeddings": file.Wav2Vec2ConformerRelPositionalEmbedding(config)(x).double()}
    _, _, y = first(kind, module, "linear_out", hidden_states=x, **rows)
    return module, *split(module.num_heads, *(f(x) for f in (module.linear_q, module.linear_k, module.linear_v))), y


def conformer() -> str:
    words = {"position_embeddings_type": "relative"}
    module, q, k, v, y = speech("wav2vec2-conformer", "Wav2Vec2ConformerSelfAttention", **words)
    distances = transformer_xl.distances(len(P), len(P), bidirectional=True)
    rows = sinusoidal.encode(distances, sinusoidal.frequencies(module.linear_pos.in_features), layout="interleaved")
    r = (rows @ array(module.linear_pos.weight).T).reshape(len(rows), q.shape[1], -1).swapaxes(0, 1)
    given = array(module.pos_bias_u), array(module.pos_bias_v)
    return weighed(y, transformer_xl.scores(q, k, r, *given, scale=q.shape[-1] ** -0.5), v)


def wav2vec2_bert() -> str:
    words = {"position_embeddings_type": "relative_key"}
    words |= {"left_max_position_embeddings": 5, "right_max_position_embeddings": 3}
    module, q, k, v, y = speech("wav2vec2-bert", "Wav2Vec2BertSelfAttention", **words)
    table = array(module.distance_embedding.weight)
    table = np.concatenate([table, np.repeat(table[-1:], 2, axis=0)])  # as long on the right
    return weighed(y, shaw.scores(q, k, table, OFFSETS, scale=q.shape[-1] ** -0.5), v)


# Parts


def every_rotation() -> str:
    """tests.programs.rotations: each is asked for as what it is, and as another, which must be named."""
    from tests.programs import rotations

    verdicts = list(rotations.report())
    wrong = [verdict.subject for verdict in verdicts if verdict.problem and verdict.subject not in rotations.NOT_ASKED]
    passed = sum(not verdict.problem for verdict in verdicts)
    return f"differs: {', '.join(wrong)}" if wrong else f"agrees: {passed} of {len(verdicts)}; the others cannot be asked for"


def t5_buckets(**sizes: Any) -> str:
    from transformers.models.t5.modeling_t5 import T5Attention

    def bucket(offsets, buckets, max_distance, bidirectional):
        return T5Attention._relative_position_bucket(offsets, bidirectional, buckets, max_distance)

    return asked(bucket, "t5.bucket", **sizes)


def mpnet(buckets: int) -> str:
    import torch
    from transformers import MPNetConfig
    from transformers.models.mpnet.modeling_mpnet import MPNetEncoder

    sizes = {"hidden_size": 12, "num_attention_heads": 3, "num_hidden_layers": 1}
    torch.manual_seed(0)
    encoder = MPNetEncoder(MPNetConfig(**sizes, relative_attention_num_buckets=buckets))
    table, positions = array(encoder.relative_attention_bias.weight), np.arange(150)
    found = array(encoder.compute_position_bias(torch.zeros(1, 150, 12)))[0]
    return numbers(found, t5.bias(positions, positions, table, bidirectional=True), "; its buckets are those of 32")


def deberta_buckets(buckets: int, max_position: int) -> str:
    from transformers.models.deberta_v2.modeling_deberta_v2 import make_log_bucket_position

    def bucket(offsets):  # it counts on, and the index clips that away
        return make_log_bucket_position(offsets, buckets, max_position).clip(-buckets, buckets)

    return asked(bucket, "deberta.log_bucket", buckets=buckets, max_position=max_position, source="transformers")


def distinct(build: Callable, dtype: str) -> str:
    """How many of the biases of 2048 keys are distinct, in the head that has most of them."""
    import torch

    bias = array(build(torch.ones(1, 2048, dtype=torch.long), 4, getattr(torch, dtype))).reshape(4, 2048)
    count = max(len(np.unique(head)) for head in bias)
    return f"agrees: {count} biases for 2048 keys" if count == 2048 else f"differs: {count} distinct biases for 2048 keys"


def falcon_bias() -> str:
    from transformers.models.falcon.modeling_falcon import build_alibi_tensor

    return distinct(build_alibi_tensor, "float32")


def bloom_bias(dtype: str) -> str:
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor

    return distinct(build_alibi_tensor, dtype)


def table(rows: Any, **settings: Any) -> str:
    return asked(lambda positions: rows[positions], "sinusoidal.encode", dim=64, layout="half", **settings)


def marian() -> str:
    from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding

    return f"{table(MarianSinusoidalPositionalEmbedding(2**14, 64).create_weight())}; layout half, divisor dim"


def whisper() -> str:
    from transformers.models.whisper.modeling_whisper import sinusoids

    return f"{table(sinusoids(2**14, 64), divisor='dim - 2')}; layout half, divisor dim - 2"


def opt() -> str:
    import torch
    from transformers.models.opt.modeling_opt import OPTLearnedPositionalEmbedding

    module = OPTLearnedPositionalEmbedding(512, 1)
    module.weight.data = torch.arange(514.0)[:, None]
    return asked(lambda mask: module(mask)[..., 0].long(), "learned.position_ids", convention="opt")


def roberta() -> str:
    import torch
    from transformers.models.roberta.modeling_roberta import RobertaEmbeddings

    def ids(mask):
        return RobertaEmbeddings.create_position_ids_from_input_ids(torch.where(mask != 0, 5, 1), 1)

    return asked(ids, "learned.position_ids", convention="roberta", padding_idx=1)


def swin_bias() -> str:
    from transformers.models.swin.modeling_swin import SwinRelativePositionBias

    module = SwinRelativePositionBias(2, (3, 5))

    def bias(coordinates, table):
        module.relative_position_bias_table.data = table
        return module()[0]

    return asked(bias, "swin.bias", height=3, width=5)


def swin_mask() -> str:
    import torch
    from transformers.models.swin.modeling_swin import SwinConfig, SwinLayer

    found = SwinLayer(SwinConfig(window_size=4), 8, (8, 12), 2, shift_size=2).get_attn_mask(8, 12, torch.float32, "cpu")
    window, corners = np.array([*np.ndindex(4, 4)]), np.array([(y, x) for y in (0, 4) for x in (0, 4, 8)])
    masks = [swin.shift_mask(window + corner, height=8, width=12, shift=2) for corner in corners]
    return numbers(array(found), [swin.shift_bias(mask) for mask in masks])


def swin_2_mask() -> str:
    """How much of the logarithm of the weights a mask of -2 moves."""
    import torch
    from transformers import Swinv2Config
    from transformers.models.swinv2.modeling_swinv2 import Swinv2SelfAttention

    module = Swinv2SelfAttention(Swinv2Config(), 8, 2, (3, 3), [0, 0]).double().eval()
    module.relative_coords_table = module.relative_coords_table.double()
    x, mask = torch.randn(2, 9, 8).double(), torch.zeros(1, 9, 9).double()
    mask[..., 5:] = -2
    plain, masked = (module(x, attention_mask=given, output_attentions=True)[1] for given in (0 * mask, mask))
    moved = array((masked / plain).log())
    moved = float((moved[..., 5:] - moved[..., :1]).mean())
    return f"{'agrees' if abs(moved + 2) < 1e-6 else 'differs'}: a mask of -2 acts as {moved:.3g}"


def beit_bias(make: str, height: int, width: int) -> str:
    import torch

    module = {"beit": beit, "data2vec": data2vec}[make]((4 * height, 4 * width)).double()

    def bias(coordinates, table):
        module.relative_position_bias_table = torch.nn.Parameter(table)
        return module((height, width)).reshape(-1, 1 + height * width, 1 + height * width)

    return asked(bias, "swin.bias_with_cls", to=double, to_positions=tensor, height=height, width=width)


def beit(image_size: tuple) -> Any:
    from transformers.models.beit.modeling_beit import BeitConfig, BeitRelativePositionBias

    return BeitRelativePositionBias(BeitConfig(image_size=image_size, patch_size=4, num_attention_heads=2))


def data2vec(image_size: tuple) -> Any:
    from transformers.models.data2vec import modeling_data2vec_vision as file

    config = file.Data2VecVisionConfig(image_size=image_size, patch_size=4, num_attention_heads=2)
    return file.Data2VecVisionRelativePositionBias(config, window_size=tuple(side // 4 for side in image_size))


def sam_rows(query_size: int, key_size: int) -> str:
    import torch
    from transformers.models.sam.modeling_sam import SamVisionAttention

    numbered = torch.arange(2.0 * max(query_size, key_size) - 1)[:, None]
    rows = SamVisionAttention.get_rel_pos(None, query_size, key_size, numbered)[..., 0].long()
    words = {"query_size": query_size, "key_size": key_size}
    return asked(lambda query_places, key_places: rows[query_places][:, key_places], "decomposed.rows", **words)


def vjepa_2() -> str:
    import torch
    from transformers.models.vjepa2.modeling_vjepa2 import rotate_queries_or_keys

    def turn(x, positions):
        return torch.cat([rotate_queries_or_keys(x[b : b + 1], positions[b]) for b in range(len(x))])

    return rotation(turn, dim=64, to=tensor)


def minimax_width() -> str:
    """How many features of a head turn."""
    from tests.programs import models

    with models.quiet():
        model = models.build(models.configuration({**models.keys("minimax_m3_vl_text"), "rotary_dim": 8}))
    width = 2 * len(models.tables(model)[0].frequencies)
    return f"{'agrees' if width == 8 else 'differs'}: {width} features turn, configured 8"
