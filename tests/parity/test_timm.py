"""Systems of images against timm's own code: random weights, tiny configurations. timm wants torchvision for its data alone."""

import importlib.abc
import importlib.util
import sys
import types
from importlib.machinery import ModuleSpec

import numpy as np
import pytest

from posref import attention
from posref.absolute import resizing, sinusoidal, sinusoidal_2d
from posref.relative import swin
from posref.rotary import axes, generators, rope

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
CLOSE = {"rtol": 0, "atol": 2.0**-40}  # some hundred products of numbers below 16


@pytest.mark.parametrize("window", WINDOWS)
def test_rows(window):
    from timm.layers.pos_embed_rel import gen_relative_position_index as theirs

    given = {"height": window[0], "width": window[1]}
    assert np.array_equal(swin.rows(grid(*window), **given), numpy(theirs(window)))
    assert np.array_equal(swin.rows_with_cls(grid(*window), **given), numpy(theirs(window, class_token=True)))


@pytest.mark.parametrize("window", WINDOWS)
def test_swin_window_attention(window):
    from timm.models.swin_transformer import WindowAttention

    n = window[0] * window[1]
    theirs, x = filled(WindowAttention(8, 2, window_size=window)), torch.randn(3, n, 8).double() / 4
    q, k, v = projected(theirs.qkv, x, 2)
    index = swin.rows(grid(*window), height=window[0], width=window[1])
    bias = swin.bias(index, numpy(theirs.relative_position_bias_table))
    ours = merged(attention.attend(q, k, v, scale=0.5, bias=bias))
    got = numpy(theirs(x))
    np.testing.assert_allclose(ours @ numpy(theirs.proj.weight).T + numpy(theirs.proj.bias), got, **CLOSE)


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


@pytest.mark.parametrize(("side", "same"), [(8, True), (7, False)])
def test_the_mask_of_shifted_windows(side, same):
    """The image is rolled before it is padded, and its mask is the padded image's: wrong where windows do not divide it."""
    from timm.models.swin_transformer import SwinTransformerBlock

    block = SwinTransformerBlock(8, (side, side), 2, window_size=4, shift_size=2, always_partition=True)
    corners = [np.array([y, x]) for y in (0, 4) for x in (0, 4)]
    for length, agree in ((side, same), (8, True)):
        ours = [swin.shift_bias(swin.shift_mask(grid(4, 4) + at, height=length, width=length, shift=2)) for at in corners]
        assert np.array_equal(ours, numpy(block.attn_mask)) == agree


def test_beit_attention():
    from timm.models.beit import Attention

    theirs, x = filled(Attention(8, 2, qkv_bias=True, window_size=(2, 3))), torch.randn(2, 7, 8).double() / 4
    biases = torch.cat([theirs.q_bias, 0 * theirs.q_bias, theirs.v_bias])
    q, k, v = projected(lambda x: torch.nn.functional.linear(x, theirs.qkv.weight, biases), x, 2)
    bias = swin.bias(swin.rows_with_cls(grid(2, 3), height=2, width=3), numpy(theirs.relative_position_bias_table))
    ours = merged(attention.attend(q, k, v, scale=0.5, bias=bias)) @ numpy(theirs.proj.weight).T + numpy(theirs.proj.bias)
    np.testing.assert_allclose(ours, numpy(theirs(x)), **CLOSE)


@pytest.mark.parametrize(("old", "new"), [((4, 4), (6, 6)), ((7, 7), (3, 5)), ((5, 3), (3, 5))])
def test_resized_tables(old, new):
    from timm.layers.pos_embed import resample_abs_pos_embed

    table = torch.randn(1, 1 + old[0] * old[1], 6)
    got = numpy(resample_abs_pos_embed(table, list(new), list(old), num_prefix_tokens=1))[0]
    ours = resizing.resize(numpy(table)[0, 1:].reshape(*old, 6), *new, convention="timm").reshape(-1, 6)
    assert np.array_equal(got[0], numpy(table)[0, 0])
    np.testing.assert_allclose(got[1:], ours, rtol=0, atol=64 * 2.0**-24 * np.abs(numpy(table)).max())  # in float32


def test_sinusoids_of_two_axes():
    from timm.layers.pos_embed_sincos import build_sincos2d_pos_embed

    got = numpy(build_sincos2d_pos_embed([5, 3], dim=16))
    ours = sinusoidal_2d.encode(grid(5, 3), sinusoidal.frequencies(8), convention="timm")
    np.testing.assert_allclose(got, ours, rtol=0, atol=2.0**-20)  # float32: angles below 5


def test_mixed_rope():
    """get_mixed_freqs with 'xy', which is columns first, and frequencies as they are before training, at phi = 0."""
    from timm.layers.pos_embed_sincos import RotaryEmbeddingMixed, init_random_2d_freqs

    at_first = numpy(init_random_2d_freqs(8, 2, 1, temperature=10.0, rotate=False))  # (2, depth, heads, pairs)
    ours = generators.mixed(rope.frequencies(4, 10.0), np.zeros(2))
    np.testing.assert_allclose(at_first.reshape(2, 2, 4).swapaxes(0, 1), ours, rtol=0, atol=2.0**-22)
    theirs = RotaryEmbeddingMixed(dim=16, depth=1, num_heads=2, temperature=10.0, feat_shape=[3, 4], grid_indexing="xy")
    sin, cos = numpy(theirs.get_embed())[0].reshape(2, 12, 2, 8).transpose(2, 0, 1, 3)
    angles = grid(3, 4)[:, ::-1] @ numpy(theirs.freqs).reshape(2, 2, 4).swapaxes(0, 1)
    np.testing.assert_allclose(sin[..., ::2], np.sin(angles), rtol=0, atol=2.0**-20)
    np.testing.assert_allclose(cos[..., ::2], np.cos(angles), rtol=0, atol=2.0**-20)


def test_axial_rope():
    """Rows first, base 10000 and coordinates as they are: pairs that stand beside each other share an angle."""
    from timm.layers.pos_embed_sincos import RotaryEmbeddingCat

    theirs = RotaryEmbeddingCat(16, in_pixels=False, feat_shape=[3, 4], temperature=100.0)
    sin, cos = np.split(numpy(theirs.get_embed()), 2, axis=-1)
    frequencies = np.tile(rope.frequencies(8, 100.0), 2)
    angles = axes.angles(grid(3, 4), frequencies, axes.sections(np.array([4, 4])))
    np.testing.assert_allclose(sin[:, ::2], np.sin(angles), rtol=0, atol=2.0**-20)
    np.testing.assert_allclose(cos[:, ::2], np.cos(angles), rtol=0, atol=2.0**-20)


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
