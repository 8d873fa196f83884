"""Position ids of transformers: images and videos of Qwen2-VL, temperatures of Llama 4 and Ministral 3."""

from types import SimpleNamespace

import numpy as np
import pytest

from posref import position_ids

torch = pytest.importorskip("torch", reason="pip install posref[parity]")
pytest.importorskip("transformers", reason="pip install posref[parity]")


def qwen2_vl(parts, merge):
    from transformers.models.qwen2_vl.modeling_qwen2_vl import Qwen2VLModel

    kinds, images, videos = [], [], []
    for part in parts:
        if np.isscalar(part):
            kinds += [0] * part
        else:
            (images if part[0] == 1 else videos).append(part)
            kinds += [1 if part[0] == 1 else 2] * (part[0] * (part[1] // merge) * (part[2] // merge))
    module = SimpleNamespace(config=SimpleNamespace(vision_config=SimpleNamespace(spatial_merge_size=merge)))
    module.get_vision_position_ids = lambda *x, **named: Qwen2VLModel.get_vision_position_ids(module, *x, **named)
    grids = {
        "image_grid_thw": torch.tensor(images) if images else None,
        "video_grid_thw": torch.tensor(videos) if videos else None,
    }
    kinds = torch.tensor(kinds)[None]
    ids, _ = Qwen2VLModel.get_rope_index(module, torch.zeros_like(kinds), mm_token_type_ids=kinds, **grids)
    return ids[:, 0].T.numpy()


@pytest.mark.parametrize(
    "parts", [[5], [(1, 4, 6)], [2, (1, 4, 6), 3], [2, (1, 8, 2), 3, (4, 4, 4), 1], [1, (10, 4, 4), 2, (1, 2, 2), 1]]
)
def test_images_and_videos(parts):
    np.testing.assert_array_equal(position_ids.multimodal(parts, merge=2, convention="longer_side"), qwen2_vl(parts, 2))


def test_ministral_3():
    from transformers.models.ministral3.modeling_ministral3 import get_llama_4_attn_scale

    p = np.array([[0, 1, 8190, 8191, 8192, 16383, 16384, 100000]])
    got = get_llama_4_attn_scale(torch.tensor(p), 0.1, 8192).numpy()[:, 0, :, 0]
    expected = position_ids.temperature(p, amount=0.1, length=8192, convention="ministral3")
    np.testing.assert_allclose(got, expected, rtol=4 * 2.0**-24)


def test_llama_4():
    """Its attention module scales the queries of a layer without RoPE; what it passes on is caught."""
    from transformers import Llama4TextConfig
    from transformers.models.llama4 import modeling_llama4

    config = Llama4TextConfig(
        hidden_size=8,
        num_attention_heads=1,
        num_key_value_heads=1,
        head_dim=8,
        num_hidden_layers=4,
        floor_scale=4,
        attn_scale=0.1,
    )
    config._attn_implementation = "eager"
    module = modeling_llama4.Llama4TextAttention(config, layer_idx=3)
    assert not module.use_rope
    caught = {}

    def catch(module, q, k, v, mask, **named):
        caught["q"] = q
        return q.transpose(1, 2), None

    saved, modeling_llama4.eager_attention_forward = modeling_llama4.eager_attention_forward, catch
    try:
        x = torch.ones(1, 20, 8)
        module(x, None, None)
    finally:
        modeling_llama4.eager_attention_forward = saved
    q = caught["q"].detach().numpy()[0, 0]
    expected = position_ids.temperature(np.arange(20), amount=0.1, length=4, convention="llama4")
    np.testing.assert_allclose(q / q[:1], np.repeat(expected[:, None], 8, axis=1), rtol=1e-6)
