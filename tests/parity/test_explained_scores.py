"""What `posref.explain` says of Swin and of XLNet, and what the modules of transformers do that are built of the same file."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="compares with transformers")
transformers = pytest.importorskip("transformers", reason="compares with transformers")

from posref import ops  # noqa: E402
from posref.absolute import sinusoidal  # noqa: E402
from posref.explain import explain, presets  # noqa: E402
from posref.relative import swin, transformer_xl, xlnet  # noqa: E402

SMALL = {"patch_size": 4, "embed_dim": 8, "depths": [2, 3], "num_heads": [2, 4], "window_size": 4}
TYPES = {
    "swin": "SwinModel",
    "donut-swin": "DonutSwinModel",
    "maskformer-swin": "MaskFormerSwinModel",
    "swinv2": "Swinv2Model",
    "swin2sr": "Swin2SRModel",
    "clap_audio_model": "ClapAudioModel",
}
CLAP = {
    "patch_embeds_hidden_size": 8,
    "hidden_size": 16,
    "num_attention_heads": [2, 4],
    "num_mel_bins": 16,
    "patch_stride": [4, 4],
}


def file_of(model_type, side):
    """Small sizes and a picture; that of CLAP is made of sound, and all of its pictures have the size of the file."""
    if model_type == "clap_audio_model":
        return {"depths": [2, 3], "window_size": 4, "patch_size": 4, **CLAP, "spec_size": side[0] // 32 * 32}
    return {**SMALL, "image_size": list(side), **({"patch_size": 1} if model_type == "swin2sr" else {})}


def built(model_type, file):
    name = TYPES[model_type]
    module = getattr(transformers, name, None) or getattr(transformers.models.maskformer.modeling_maskformer_swin, name)
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(model_type, **file)
    return module._from_config(config, attn_implementation="eager").eval()


def blocks(model):
    encoder = getattr(model, "swin", getattr(model, "audio_encoder", model))
    encoder = getattr(encoder, "encoder", encoder)
    stages = encoder.stages if hasattr(encoder, "stages") else encoder.layers
    return [block for stage in stages for block in (stage.layers if hasattr(stage, "layers") else stage.blocks)]


def looked_at(model, side):
    torch.manual_seed(1)
    whole = getattr(model.config, "spec_size", None)  # 16 bins of many frames become a square
    shape = (1, 1, whole * (whole // 16), 16) if whole else (1, 3, *side)
    with torch.no_grad():
        return model(torch.randn(shape)).last_hidden_state


def said(config):
    return {i: group for group in explain(config)["layers"] for i in group["indices"]}


@pytest.mark.parametrize("side", [(64, 64), (32, 32), (64, 32), (68, 60)])
@pytest.mark.parametrize("model_type", TYPES)
def test_windows_and_rolls(model_type, side):
    """After a picture of the size of the file: the window, the roll, the heads and the scale of every layer."""
    file = file_of(model_type, side)
    model, layers = built(model_type, file), said({"model_type": model_type, **file})
    looked_at(model, side)
    assert len(blocks(model)) == len(layers) == 5
    for i, block in enumerate(blocks(model)):
        own = block.attention if model_type == "swin" else block.attention.self
        bias = layers[i]["bias"]
        assert (int(block.window_size), int(block.shift_size)) == (bias["window"], bias["shift"]), i
        assert own.num_attention_heads == layers[i]["heads"]
        width = own.head_dim if model_type == "swin" else own.attention_head_size
        assert width == layers[i]["head_dim"]
        if model_type == "swin":
            assert own.scaling == layers[i]["softmax_scale"]


@pytest.mark.parametrize("model_type", TYPES)
def test_what_a_mask_adds(model_type, monkeypatch):
    """The least that is added to a score in a layer that rolls; Swin v2 adds it twice."""
    file = file_of(model_type, (64, 64))
    model, layers = built(model_type, file), said({"model_type": model_type, **file})
    seen = []
    softmax = torch.nn.functional.softmax
    monkeypatch.setattr(torch.nn.functional, "softmax", lambda x, *a, **k: seen.append(x.min().item()) or softmax(x, *a, **k))
    looked_at(model, (64, 64))
    assert len(seen) == 5
    for i, least in enumerate(seen):
        assert abs(least - (layers[i]["bias"]["masked"] or 0)) < 40, i


@pytest.mark.parametrize("model_type", ["swin", "donut-swin"])
def test_a_layer_that_saw_a_small_picture_rolls_no_larger_one(model_type):
    file = {**SMALL, "image_size": 64}
    model = built(model_type, file)
    first = looked_at(model, (64, 64))
    assert blocks(model)[3].shift_size == said({"model_type": model_type, **file})[3]["bias"]["shift"] == 2
    looked_at(model, (32, 32))
    assert blocks(model)[3].shift_size == 0
    assert not torch.allclose(first, looked_at(model, (64, 64)))
    assert any("rolls no larger one afterwards" in trap for trap in explain({"model_type": model_type, **file})["traps"])


def test_a_backbone_rolls_every_picture():
    config = transformers.SwinConfig(**SMALL, image_size=32)
    torch.manual_seed(0)
    model = transformers.SwinBackbone._from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():
        model(torch.randn(1, 3, 32, 32))
    assert [block.shift_size for block in blocks(model)] == [0, 2, 0, 2, 0]
    assert said({"model_type": "swin", **SMALL, "image_size": 32})[3]["bias"]["shift"] == 0


def test_a_picture_smaller_than_a_window_is_refused():
    file = {**SMALL, "image_size": 16}
    (trap,) = (trap for trap in explain({"model_type": "swin", **file})["traps"] if "refuses" in trap)
    assert "stage 1 has 2 x 2 patches" in trap
    with pytest.raises(RuntimeError):
        looked_at(built("swin", file), (16, 16))


def test_the_bias_that_is_asked_for():
    """`asked` gives the settings with which the op makes the module's own bias."""
    file = {**SMALL, "image_size": 64}
    own = blocks(built("swin", file))[0].attention.relative_position_bias
    torch.nn.init.normal_(own.relative_position_bias_table)
    name, settings = presets.op_and_settings({"model_type": "swin", **file}, layer=0)
    table = own.relative_position_bias_table.detach().numpy()
    at = np.stack(np.divmod(np.arange(16), 4), axis=-1)
    sides = {side: settings[side] for side in ("height", "width")}
    assert np.array_equal(ops.op(name).spec(at, table, **sides), own().detach().numpy()[0])


@pytest.mark.parametrize("trained", [0, 6])
def test_the_network_that_is_asked_for(trained):
    file = {**SMALL, "image_size": 64, "pretrained_window_sizes": [trained, trained]}
    own = blocks(built("swinv2", file))[0].attention.self
    name, settings = presets.op_and_settings({"model_type": "swinv2", **file}, layer=0)
    assert name == "swin.continuous_bias"
    expected = own.relative_coords_table.numpy()[0, :, 0, 0]
    assert np.allclose(swin.log_spaced(np.arange(-3, 4), window=settings["height"]), expected, rtol=1e-6, atol=1e-6)


def test_two_directions_want_an_even_batch():
    file = {"vocab_size": 11, "d_model": 8, "n_head": 2, "n_layer": 1, "d_inner": 8, "bi_data": True}
    model = transformers.XLNetModel(transformers.XLNetConfig(**file)).eval()
    sizes = {n: len(model(torch.ones(n, 5, dtype=torch.long)).last_hidden_state) for n in (1, 2, 4)}
    assert sizes == {1: 0, 2: 2, 4: 4}
    with pytest.raises(RuntimeError):
        model(torch.ones(3, 5, dtype=torch.long))
    (trap,) = explain({"model_type": "xlnet", **file})["traps"]
    assert "refuses an odd batch, and for a single text its output is empty" in trap


@pytest.mark.parametrize("clamp_len", [-1, 3])
@pytest.mark.parametrize("bi_data", [False, True])
@pytest.mark.parametrize("attn_type", ["bi", "uni"])
def test_xlnet(attn_type, bi_data, clamp_len):
    """Distances, their sign in the second half of a batch, the scale and the mask."""
    sizes = {"vocab_size": 11, "d_model": 8, "n_head": 2, "n_layer": 3, "d_inner": 8}
    file = {**sizes, "attn_type": attn_type, "bi_data": bi_data, "clamp_len": clamp_len}
    model = transformers.XLNetModel(transformers.XLNetConfig(**file)).eval()
    (group,) = explain({"model_type": "xlnet", **file})["layers"]
    assert group["indices"] == [0, 1, 2]
    assert group["softmax_scale"] == group["bias"]["scale"] == model.layer[0].rel_attn.scale
    distances = xlnet.distances(4, 7, **{key: group["bias"][key] for key in ("attn_type", "clamp_len")})
    signs = (1, 1, *((-1, -1) if group["bias"]["bi_data"] else (1, 1)))
    released = model.relative_positional_encoding(4, 7, bsz=4).numpy()
    for text, sign in enumerate(signs):
        expected = transformer_xl.embeddings(sign * distances, sinusoidal.frequencies(8))
        assert np.allclose(released[:, text], expected, atol=1e-6)
    with torch.no_grad():
        *_, attentions = model(torch.tensor([[1, 2, 3, 4]] * 2), output_attentions=True, use_mems=False, return_dict=False)
    assert bool((attentions[0].triu(1) == 0).all()) == group["causal"] == (attn_type == "uni")
