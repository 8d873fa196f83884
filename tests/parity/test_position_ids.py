"""Position ids of transformers: images and videos of Qwen2-VL."""

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
