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
    "sizes": ("WanTransformer3DModel", {"sizes": lambda d: [8, 8, d - 16]}),
    "a stack": ("FluxTransformer2DModel", {"stacks": {"transformer_blocks": "num_layers"}}),
    "no second attention": ("WanTransformer3DModel", {"cross": False}),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_row_is_noticed(name, monkeypatch):
    kind, row = WRONG[name]
    monkeypatch.setitem(rows.ROWS, kind, {**rows.ROWS[kind], **row})
    assert diffusion.compare(kind)[0]
