"""What `posref.explain` says of a class of diffusers is what the installed one does; a changed class or key fails here."""

import importlib
import re

import numpy as np
import pytest

pytest.importorskip("diffusers", reason="pip install posref[parity]")

import diffusers
import torch
from diffusers.models.attention_processor import Attention

from posref.absolute import sinusoidal, sinusoidal_2d
from posref.explain import diffusers as rows
from posref.explain import explain
from posref.rotary import rope
from tests.programs import diffusion


@pytest.mark.parametrize("name", diffusion.CASES)
def test_as_explained(name):
    drifted, layers = diffusion.compare(name)
    assert drifted == []
    assert layers > 0


def test_every_row_is_compared():
    assert {name.split()[0] for name in diffusion.CASES} == set(rows.ROWS)


WRONG = {
    "layout": ("FluxTransformer2DModel", {"layout": "half"}),
    "base": ("FluxTransformer2DModel", {"base": 256}),
    "norm": ("FluxTransformer2DModel", {"norm": None}),
    "timestep": ("FluxTransformer2DModel", {"timestep": (1, 256)}),
    "text": ("FluxTransformer2DModel", {"text": "(0, i, i)"}),
    "a text that turns": ("HunyuanVideoTransformer3DModel", {"text": "(1, 0, 0)"}),
    "centre": ("QwenImageTransformer2DModel", {"patches": "(k + t, h - H // 2, w - W // 2)"}),
    "pictures": ("QwenImageTransformer2DModel", {"patches": "(t, h - (H - H // 2), w - (W - W // 2))"}),
    "axes exchanged": ("WanTransformer3DModel", {"patches": "(t, w, h)"}),
    "sizes": ("WanTransformer3DModel", {"sizes": lambda d, key: [8, 8, d - 16]}),
    "a stack": ("FluxTransformer2DModel", {"stacks": {"transformer_blocks": "num_layers"}}),
    "no second attention": ("WanTransformer3DModel", {"cross": False}),
    "a second attention that turns": ("HunyuanDiT2DModel", {"cross": True}),
    "a second attention whose text turns": ("HunyuanDiT2DModel", {"text": "(i, i)"}),
    "a region of the grid": ("EasyAnimateTransformer3DModel", {"patches": "(t, h, w)"}),
    "width": ("StableAudioDiTModel", {"sizes": lambda d, key: [d // 3]}),
    "a first token": ("StableAudioDiTModel", {"patches": "(t,)"}),
    "queries of the text": ("NucleusMoEImageTransformer2DModel", {"keys": False}),
    "a rule of axes": ("Ideogram4Transformer2DModel", {"map": ("sections", "mrope_section")}),
    "bases": ("CosmosTransformer3DModel", {"base": 10000}),
    "a trained table": ("AuraFlowTransformer2DModel", {"patches": "(h * 7 + w,)"}),
    "middle of a table": ("SD3Transformer2DModel", {"patches": "((4 - H // 2 + h) * 6 / 8, (4 - W // 2 + w) * 6 / 8)"}),
    "row and column exchanged": ("PixArtTransformer2DModel", {"patches": "(w / (W / 64) / 2, h / (H / 64) / 2)"}),
    "order of features": ("CogView3PlusTransformer2DModel", {"table": ("", lambda n: rows._mae(n).replace("mae", "timm"))}),
    "scale of a table": ("DiTTransformer2DModel", {"patches": rows._stretched}),
    "divisor": ("DiTTransformer2DModel", {"timestep": (1, 256)}),
    "rate": ("CosmosTransformer3DModel", {"patches": "(t, h, w)"}),
}


def test_a_wrong_window_is_noticed(monkeypatch):
    kind = "AceStepTransformer1DModel"
    sliding, full = rows.ROWS[kind]
    monkeypatch.setitem(rows.ROWS, kind, [sliding | {"window": lambda key: key["sliding_window"]}, full])
    assert any("see other keys" in words for words in diffusion.compare(kind)[0])


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_row_is_noticed(name, monkeypatch):
    kind, row = WRONG[name]
    monkeypatch.setitem(rows.ROWS, kind, {**rows.ROWS[kind], **row})
    assert diffusion.compare(kind)[0]


def test_tables_are_made_in_float64():
    """An angle of float32 would be off by half an ulp of 90 radians."""
    size = {"attention_head_dim": 24, "num_attention_heads": 2, "pos_embed_max_size": 91}
    model = diffusion.built(diffusion.file_of("CogView3PlusTransformer2DModel") | size)
    places = np.indices((91, 91)).reshape(2, -1).T
    expected = sinusoidal_2d.encode(places, sinusoidal.frequencies(24), convention="mae")
    assert np.abs(model.patch_embed.pos_embed.reshape(-1, 48).numpy() - expected).max() <= 2**-24


@pytest.mark.parametrize("learned", [True, False])
def test_a_trained_table_beside_a_rotation(learned):
    """CogVideoX-5b-I2V: stored with the weights; without the key there is no table."""
    file = diffusion.file_of("CogVideoXTransformer3DModel 1.5") | {"use_learned_positional_embeddings": learned}
    assert ("patch_embed.pos_embedding" in diffusion.built(file).state_dict()) == learned
    assert explain(file)["layers"][0].get("input") == ("learned" if learned else None)


@pytest.mark.parametrize("kind", [kind for kind, why in rows.WHY.items() if why == rows.CONVOLUTIONS])
def test_pixels_have_no_position_in_attentions(kind):
    """Permuted pixels give permuted outputs, in each module that has attentions."""
    sizes = {"block_out_channels": (32, 32), "layers_per_block": 1, "norm_num_groups": 4, "cross_attention_dim": 16}
    up = {"up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D")} if kind.startswith("UNet") else {}
    model = getattr(diffusers, kind)(down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), **sizes, **up).eval()
    x, text, order = torch.randn(1, 32, 3, 5), torch.randn(1, 4, 16), torch.randperm(15)
    inner = [each for each in model.modules() if isinstance(each, diffusers.Transformer2DModel)]
    attentions = {each for module in inner for each in module.modules() if isinstance(each, Attention)}
    assert attentions == {each for each in model.modules() if isinstance(each, Attention)} != set()
    for module in inner:
        plain, moved = (module(each, text)[0] for each in (x, x.flatten(2)[..., order].reshape(x.shape)))
        assert torch.allclose(plain.flatten(2)[..., order], moved.flatten(2), atol=1e-5)


NEEDED = {
    "ControlNetUnionModel": {"addition_time_embed_dim": 8},
    "AutoencoderKLHunyuanImage": {
        **{"in_channels": 3, "out_channels": 3, "latent_channels": 64, "block_out_channels": (128, 256), "layers_per_block": 1},
        **{"spatial_compression_ratio": 2, "sample_size": 64},
    },
}


@pytest.mark.parametrize("kind", rows.CONVOLVED.split())
def test_convolutions_alone_order_pixels(kind):
    with torch.device("meta"):
        model = getattr(diffusers, kind)(**NEEDED.get(kind, {}))
    names = [type(module).__name__ for module in model.modules()] + [name for name, _ in model.named_parameters()]
    assert not [name for name in names if re.search("pos(ition)?(al)?_?emb|rotary|rope", name, re.IGNORECASE)]
    assert any(
        max(each.kernel_size) > 1 for each in model.modules() if "Conv" in type(each).__name__ and hasattr(each, "kernel_size")
    )


def test_no_class_is_silent():
    """Every model of these folders has layers, or one sentence that says why it is not described."""
    names = ("transformers", "unets", "controlnets", "autoencoders")
    folders = [importlib.import_module(f"diffusers.models.{name}") for name in names]
    for kind, of in (item for folder in folders for item in vars(folder).items()):
        if isinstance(of, type) and issubclass(of, diffusers.ModelMixin):
            found = explain(diffusion.file_of(kind) if kind in rows.ROWS else {"_class_name": kind})
            assert found["layers"] or [kind in rows.WHY and kind in entry["why"] for entry in found["unsupported"]] == [True]


def test_each_head_of_ltx_has_its_own_frequencies():
    """Why LTX has no row: the features of all heads turn as one vector, by frequencies that grow from head to head."""
    sizes = {"attention_head_dim": 28, "cross_attention_dim": 56, "caption_channels": 16}
    file, extents = diffusion.file_of("LTXVideoTransformer3DModel") | sizes, np.array(diffusion.PICTURE)
    counts = dict(zip(("num_frames", "height", "width"), diffusion.PICTURE, strict=True))
    more = counts | {"encoder_attention_mask": torch.ones(1, 7), "rope_interpolation_scale": (1 / 3, 32, 32)}
    inputs = diffusion._given((extents.prod(), file["in_channels"]), (7, 16), **more)
    tables = ("transformer_ltx.LTXVideoRotaryPosEmbed.forward", "")
    plain, turned = (diffusion.recorded(diffusion.built(file), inputs, each)[0][0].q for each in tables)
    fractions = np.indices(extents).reshape(3, -1).T * (1 / 3, 32, 32) / (20, 2048, 2048)
    growing = np.pi / 2 * 10000 ** np.linspace(0, 1, 56 // 6)
    angle = ((2 * fractions - 1)[:, None] * growing[:, None]).reshape(len(fractions), -1)
    angle = np.pad(angle, ((0, 0), (1, 0))).reshape(-1, 2, 14).swapaxes(0, 1)  # the first pair of the first head stays
    bound = 40 * diffusion.U * np.abs(plain).max() * (1 + np.abs(angle).max(axis=(1, 2)))
    for at, same in ((angle, True), (angle[::-1], False)):
        expected = rope.rotate(plain, np.cos(at), np.sin(at), layout="interleaved")
        assert ((np.abs(expected - turned).max(axis=(1, 2)) <= bound) == same).all()
    (entry,) = explain(file)["unsupported"]
    assert entry["why"].endswith("each head has its own frequencies")
