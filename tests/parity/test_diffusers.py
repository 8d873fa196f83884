"""What `posref.explain` says of a class of diffusers is what the installed one does; a changed class or key fails here."""

import pytest

pytest.importorskip("diffusers", reason="pip install posref[parity]")

from posref.explain import diffusers as rows
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
