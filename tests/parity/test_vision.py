"""Systems of images against transformers' own code: random weights, tiny configurations, eager attention."""

import importlib
import re
import types
from pathlib import Path

import numpy as np
import pytest

from posref import attention
from posref.absolute import resizing, sinusoidal_2d
from posref.explain import explain
from posref.explain.configuration import facts, family
from posref.relative import swin
from posref.rotary import axes

torch = pytest.importorskip("torch", reason="needs torch: pip install posref[parity]")
transformers = pytest.importorskip("transformers", reason="needs transformers: pip install posref[parity]")


def numpy(tensor):
    return tensor.detach().to(torch.float64).numpy()


def grid(height, width):
    return np.array([*np.ndindex(height, width)])


def heads(layer, x, count):
    """The rows of a projection, an axis for the heads."""
    return numpy(layer(x).view(*x.shape[:-1], count, -1).transpose(-3, -2))


# Swin


@pytest.mark.parametrize("trained", [0, 6])
def test_swin_v2_attention(trained):
    """The mask is added twice: with a mask of -2 the weights are those of -4, and not of -2."""
    from transformers import Swinv2Config
    from transformers.models.swinv2.modeling_swinv2 import Swinv2SelfAttention

    torch.manual_seed(0)
    theirs = Swinv2SelfAttention(Swinv2Config(), 8, 2, (3, 3), [trained, trained]).double().eval()
    theirs.relative_coords_table = theirs.create_coords_table_and_index()[0].double()
    torch.nn.init.constant_(theirs.logit_scale[1], 5.0)  # beyond the cap
    x, mask = torch.randn(2, 9, 8).double(), -2.0 * (torch.arange(9)[:, None] // 5 != torch.arange(9) // 5)[None].double()
    weights = numpy(theirs(x, attention_mask=mask, output_attentions=True)[1])
    scores = swin.scores(*(heads(layer, x, 2) for layer in (theirs.query, theirs.key)), numpy(theirs.logit_scale).ravel())
    network = theirs.continuous_position_bias_mlp
    given = [numpy(p) for p in (network[0].weight, network[0].bias, network[2].weight)]
    side = trained or 3
    scores = scores + swin.continuous_bias(grid(3, 3), *given, height=side, width=side)
    for times in (1, 2):
        ours = attention.softmax(scores + times * numpy(mask))
        # their table of coordinates is made in float32: g is off by 4 units of it, and the bias has a slope of 4
        assert np.allclose(ours, weights, rtol=0, atol=2.0**-16) == (times == 2)


# 2-D sinusoids


@pytest.mark.parametrize("model", ["sam", "sam2", "edgetam"])
def test_sam_points_and_patches(model):
    """Points are (column, row) in pixels, of pictures (height, width); the centres of patches are `axes.centers`."""
    theirs, name = importlib.import_module(f"transformers.models.{model}.modeling_{model}"), {"edgetam": "EdgeTam"}
    name = name.get(model, model.capitalize())
    config = types.SimpleNamespace(scale=3.0, hidden_size=8, num_pos_feats=4)
    module = getattr(theirs, f"{name}PositionalEmbedding")(config).double()
    matrix = 2 * np.pi * numpy(module.positional_embedding)
    pixels = np.array([[0.5, 0.5], [10.25, 3.0], [15.0, 7.5]])
    got = numpy(module(torch.tensor(pixels)[None, None], (8, 16)))[0, 0]
    bound = 2.0**-52 * 4 * np.abs(matrix).sum(axis=0).max()
    ours = sinusoidal_2d.fourier(2 * pixels / np.array([16, 8]) - 1, matrix)
    np.testing.assert_allclose(got, ours, rtol=0, atol=bound)
    y, x = (np.arange(4) + 0.5) / 4, (np.arange(6) + 0.5) / 6
    got = numpy(module(torch.tensor(np.stack(np.meshgrid(x, y), axis=-1))))
    ours = sinusoidal_2d.fourier(axes.centers(4, 6)[..., ::-1], matrix)
    np.testing.assert_allclose(got.reshape(24, 8), ours, rtol=0, atol=bound)


def test_perceiver_has_one_axis_per_pair():
    """Bands from 1 to half of the resolution of the axis, times pi; the positions stand in front."""
    from transformers.models.perceiver import modeling_perceiver as theirs

    positions = np.stack(np.meshgrid(np.linspace(-1, 1, 4), np.linspace(-1, 1, 3), indexing="ij"), axis=-1).reshape(12, 2)
    given = {"num_bands": 5, "max_resolution": (12, 6), "concat_pos": True, "sine_only": False}
    got = numpy(theirs.generate_fourier_features(torch.tensor(positions)[None], **given))[0]
    matrix = np.zeros((2, 10))
    matrix[0, :5], matrix[1, 5:] = (np.pi * np.linspace(1, size / 2, 5) for size in (12, 6))
    ours = np.concatenate([positions, sinusoidal_2d.fourier(positions, matrix)], axis=-1)
    np.testing.assert_allclose(got, ours, rtol=0, atol=3 * np.pi * 6 * 2.0**-24)  # bands are float32


# tables that are resized


def test_vit_and_dinov2_resize():
    from transformers.models.dinov2.modeling_dinov2 import Dinov2Config, Dinov2Embeddings
    from transformers.models.vit.modeling_vit import ViTConfig, ViTEmbeddings

    for config, make in ((ViTConfig, ViTEmbeddings), (Dinov2Config, Dinov2Embeddings)):
        theirs = make(config(hidden_size=6, image_size=20, patch_size=4))
        theirs.position_embeddings = torch.nn.Parameter(torch.randn(1, 26, 6).double())
        table = numpy(theirs.position_embeddings)[0]
        got = numpy(theirs.interpolate_pos_encoding(torch.zeros(1, 1 + 7 * 3, 6).double(), 28, 12))[0]
        ours = resizing.resize(table[1:].reshape(5, 5, 6), 7, 3, convention="transformers").reshape(-1, 6)
        bound = 2.0**-23 if make is Dinov2Embeddings else 2.0**-44  # which computes in float32
        assert np.array_equal(got[0], table[0])  # [CLS]
        np.testing.assert_allclose(got[1:], ours, rtol=0, atol=64 * bound * np.abs(table).max())


def test_dinov2_with_registers_resizes_as_timm():
    from transformers.models.dinov2_with_registers import modeling_dinov2_with_registers as made

    config = made.Dinov2WithRegistersConfig(hidden_size=6, image_size=20, patch_size=4)
    theirs = made.Dinov2WithRegistersEmbeddings(config)
    theirs.position_embeddings = torch.nn.Parameter(torch.randn(1, 26, 6))
    table = numpy(theirs.position_embeddings)[0, 1:].reshape(5, 5, 6)
    got = numpy(theirs.interpolate_pos_encoding(torch.zeros(1, 1 + 7 * 3, 6), 28, 12))[0, 1:]
    for convention, same in (("timm", True), ("transformers", False)):
        ours = resizing.resize(table, 7, 3, convention=convention).reshape(-1, 6)
        assert np.allclose(got, ours, rtol=0, atol=64 * 2.0**-23 * np.abs(table).max()) == same


def test_antialiased_lines():
    """SigLIP 2's and VideoPrism's, which are BEiT's unless patches get fewer."""
    for m, n, same in ((4, 6, True), (5, 5, True), (7, 3, False), (5, 4, False)):
        table = torch.randn(1, 2, m, m).double()
        theirs = numpy(torch.nn.functional.interpolate(table, size=(n, n), mode="bilinear", antialias=True))[0]
        for convention, fits in (("siglip2", True), ("beit", same)):
            ours = resizing.resize(np.moveaxis(numpy(table)[0], 0, -1), n, n, convention=convention)
            assert np.allclose(np.moveaxis(ours, -1, 0), theirs, rtol=0, atol=2.0**-42) == fits


def test_glm4v_resizes():
    from transformers.models.glm4v.modeling_glm4v import Glm4vVisionConfig, Glm4vVisionEmbeddings

    theirs = Glm4vVisionEmbeddings(Glm4vVisionConfig(hidden_size=6, image_size=16, patch_size=4))
    torch.nn.init.normal_(theirs.position_embedding.weight)
    places = torch.from_numpy(grid(6, 3))
    shapes = torch.tensor([[1, 6, 3]])
    got = numpy(theirs(torch.zeros(18, 6), [18], shapes, places[:, 0], places[:, 1]))
    table = numpy(theirs.position_embedding.weight).reshape(4, 4, 6)
    ours = resizing.resize(table, 6, 3, convention="transformers").reshape(-1, 6)
    np.testing.assert_allclose(got, ours, rtol=0, atol=64 * 2.0**-24 * np.abs(table).max())


def _adds_a_table(model_type):
    """Whether a class for pictures of this type's module makes a table of positions: nn.Embedding or nn.Parameter."""
    module = facts()[model_type]["module"]
    source = Path(transformers.__file__).parent / "models" / module / f"modeling_{module}.py"
    found = re.split(r"^class ", source.read_text(encoding="utf-8"), flags=re.MULTILINE)
    made = re.compile(r"self\.(?!class_)\w*pos\w*emb\w* *= *nn\.(Embedding|Parameter)")
    return any("vision" in text.split("(")[0].lower() and made.search(text) for text in found)


def test_tables_at_the_input_beside_a_rotation_are_said():
    """Of every installed type of an encoder of pictures that turns: the source has a table if and only if explain says so."""
    turning = [
        name
        for name in facts()
        if family(name).get("axes") in {"hw", "hw_centred", "hw_split", "blocks", "wh_alternating", "wh_from_one"}
        and family(name)["encoding"] == "rope"
    ]
    assert len(turning) > 25
    for name in turning:
        (said, *_) = [group.get("input") == "learned" for group in explain({"model_type": name})["layers"]]
        assert said == _adds_a_table(name), name
