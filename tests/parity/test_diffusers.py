"""What `posref.explain` says of a class of diffusers is what the installed one does; a changed class or key fails here."""

import numpy as np
import pytest

pytest.importorskip("diffusers", reason="pip install posref[parity]")

import torch

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
    "a region of the grid": ("CogVideoXTransformer3DModel", {"patches": "(t, h, w)"}),
    "width": ("StableAudioDiTModel", {"sizes": lambda d, key: [d // 3]}),
    "a first token": ("StableAudioDiTModel", {"patches": "(t,)"}),
    "queries of the text": ("NucleusMoEImageTransformer2DModel", {"keys": False}),
    "a rule of axes": ("Ideogram4Transformer2DModel", {"map": ("sections", "mrope_section")}),
    "bases": ("CosmosTransformer3DModel", {"base": 10000}),
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
