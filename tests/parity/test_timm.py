"""Systems of images against timm's own code: random weights, tiny configurations. timm wants torchvision for its data alone."""

import importlib.abc
import importlib.util
import sys
import types
from importlib.machinery import ModuleSpec

import numpy as np
import pytest

from posref import attention
from posref.absolute import sinusoidal, sinusoidal_2d
from posref.relative import swin

torch = pytest.importorskip("torch", reason="needs torch: pip install posref[parity]")
if importlib.util.find_spec("timm") is None:
    pytest.skip("needs timm: pip install --no-deps timm==1.0.31", allow_module_level=True)


class Anything(type):
    def __getattr__(cls, name):
        return f"{cls.__name__}.{name}"


class Stand(types.ModuleType, importlib.abc.Loader, importlib.abc.MetaPathFinder):
    """A torchvision of empty classes; nothing about positions uses one."""

    __path__ = ()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything(name, (), {})

    def find_spec(self, name, path=None, target=None):
        return ModuleSpec(name, self, is_package=True) if name.split(".")[0] == "torchvision" else None

    def create_module(self, spec):
        return Stand(spec.name)

    def exec_module(self, module):
        pass


@pytest.fixture(scope="module", autouse=True)
def timm():
    """timm, with torchvision as it is installed, or else the stand-in."""
    stand = Stand("torchvision")
    if importlib.util.find_spec("torchvision") is None:
        sys.meta_path.append(stand)
    yield pytest.importorskip("timm")
    if stand in sys.meta_path:
        sys.meta_path.remove(stand)
        for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
            del sys.modules[name]


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def numpy(tensor):
    return tensor.detach().to(torch.float64).numpy()


def grid(height, width):
    return np.array([*np.ndindex(height, width)])


def filled(module):
    for p in module.parameters():
        torch.nn.init.normal_(p)
    return module.double().eval()


def projected(layer, x, count):
    """Queries, keys and values with an axis for the heads."""
    y = numpy(layer(x)).reshape(*x.shape[:-1], 3, count, -1)
    return np.moveaxis(y, (-3, -2), (0, -3))


def merged(x):
    return np.moveaxis(x, -3, -2).reshape(*x.shape[:-3], x.shape[-2], -1)


WINDOWS = ((2, 3), (3, 2), (4, 4))


@pytest.mark.parametrize("trained", [0, 6])
def test_swin_v2_window_attention(trained):
    """The mask is added once; transformers adds it twice."""
    from timm.models.swin_transformer_v2 import WindowAttention

    theirs = filled(WindowAttention(8, (3, 3), 2, pretrained_window_size=(trained, trained)))
    theirs._init_buffers()  # the table of coordinates, now in float64 and made in float32
    torch.nn.init.constant_(theirs.logit_scale[1], 5.0)  # beyond the cap
    x, mask = torch.randn(2, 9, 8).double(), -2.0 * (torch.arange(9)[:, None] // 5 != torch.arange(9) // 5)[None].double()
    biases = torch.cat([theirs.q_bias, 0 * theirs.q_bias, theirs.v_bias])
    q, k, v = projected(lambda x: torch.nn.functional.linear(x, theirs.qkv.weight, biases), x, 2)
    network = [numpy(p) for p in (theirs.cpb_mlp[0].weight, theirs.cpb_mlp[0].bias, theirs.cpb_mlp[2].weight)]
    side = trained or 3
    scores = swin.scores(q, k, numpy(theirs.logit_scale).ravel())
    scores = scores + swin.continuous_bias(grid(3, 3), *network, height=side, width=side) + numpy(mask)
    ours = merged(attention.softmax(scores) @ v) @ numpy(theirs.proj.weight).T + numpy(theirs.proj.bias)
    # coordinates are off by 4 units of float32 at most, which 512 hidden features carry to the bias and this to the output
    np.testing.assert_allclose(ours, numpy(theirs(x, mask)), rtol=0, atol=2.0**-12)


@pytest.mark.parametrize("window", WINDOWS)
def test_networks_of_offsets(window):
    from timm.layers.pos_embed_rel import RelPosMlp

    for mode in ("cr", "swin"):
        theirs = filled(RelPosMlp(window, num_heads=2, hidden_dim=16, mode=mode))
        theirs._init_buffers()
        network = [numpy(p) for p in theirs.mlp.parameters()]
        ours = (
            swin.logarithmic_bias(grid(*window), *network)
            if mode == "cr"
            else swin.continuous_bias(grid(*window), *network, height=window[0], width=window[1])
        )
        # logarithms of float32, to 16 features of weights below 4 and on: 2^-22 x 16 x 16
        np.testing.assert_allclose(ours, numpy(theirs.get_bias())[0], rtol=0, atol=2.0**-14)


def test_swin_v2_cr():
    from timm.models.swin_transformer_v2_cr import WindowMultiHeadAttention

    theirs = filled(WindowMultiHeadAttention(8, 2, (2, 3), meta_hidden_dim=16))
    theirs._init_buffers()
    x = torch.randn(2, 6, 8).double()
    q, k, v = projected(theirs.qkv, x, 2)
    bias = swin.logarithmic_bias(grid(2, 3), *(numpy(p) for p in theirs.meta_mlp.parameters()))
    scores = swin.scores(q, k, numpy(theirs.logit_scale)) + bias
    ours = merged(attention.softmax(scores) @ v) @ numpy(theirs.proj.weight).T + numpy(theirs.proj.bias)
    np.testing.assert_allclose(ours, numpy(theirs(x)), rtol=0, atol=2.0**-12)


@pytest.mark.parametrize("side", [8, 7])
def test_the_mask_of_shifted_windows(side):
    """The image is rolled before it is padded, and its mask is the padded image's: wrong where windows do not divide it."""
    from timm.models.swin_transformer import SwinTransformerBlock

    block = SwinTransformerBlock(8, (side, side), 2, window_size=4, shift_size=2, always_partition=True)
    corners = [np.array([y, x]) for y in (0, 4) for x in (0, 4)]
    ours = [swin.shift_bias(swin.shift_mask(grid(4, 4) + at, height=8, width=8, shift=2)) for at in corners]
    assert np.array_equal(ours, numpy(block.attn_mask))


def test_sinusoids_of_two_axes():
    from timm.layers.pos_embed_sincos import build_sincos2d_pos_embed

    got = numpy(build_sincos2d_pos_embed([5, 3], dim=16))
    ours = sinusoidal_2d.encode(grid(5, 3), sinusoidal.frequencies(8), convention="timm")
    np.testing.assert_allclose(got, ours, rtol=0, atol=2.0**-20)  # float32: angles below 5


def test_tables_of_maxvit_and_tiny_vit():
    """MaxViT of TensorFlow subtracts the query from the key; TinyViT has a row for each pair of distances."""
    from timm.layers.pos_embed_rel import RelPosBiasTf
    from timm.models.tiny_vit import Attention

    theirs = filled(RelPosBiasTf((2, 3), num_heads=2))
    theirs._init_buffers()
    table = numpy(theirs.relative_position_bias_table).reshape(2, 15).T
    rows = swin.rows(-grid(2, 3), height=2, width=3)
    np.testing.assert_allclose(swin.bias(rows, table), numpy(theirs.get_bias()).reshape(2, 6, 6), rtol=0, atol=2.0**-40)
    down, right = np.abs(grid(2, 3)[:, None] - grid(2, 3)).transpose(2, 0, 1)
    assert np.array_equal(numpy(Attention(8, 4, num_heads=2, resolution=(2, 3)).attention_bias_idxs), down * 3 + right)
