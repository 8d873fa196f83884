r"""Zero padding: how a convolution without any position encoding comes to know the border.

A convolution does the same thing at every position, except where it reads the zeros beyond the ends. These zeros are its only
information about position, and each further layer carries it further inwards.

Also called: CNN, convolution, convolutional positional embedding, conv positional embedding.

Definition. A one-dimensional convolution with a kernel of `width` matrices W_k, in the sense of neural networks (the kernel
is not turned around), with c = (width - 1) // 2:

    y_i = sum_k x_{i + k - c} W_k    k = 0 .. width - 1, padding="zero": x is 0 outside 0 .. n - 1
    y_i = sum_k x_{i + k - c} W_k    k = 0 .. width - 1, padding="circular": x_{i + n} = x_i
    y_i = sum_k x_{i + k} W_k        k = 0 .. width - 1, padding="valid": i = 0 .. n - width

Symbols.

    x (..., n, c_in)                                   features of n tokens
    W (width, c_in, c_out)                             `kernel` in the code
    y (..., n, c_out) or (..., n - width + 1, c_out)   the latter for "valid"

Conventions. Row vectors, x_j W_k. An even width reaches one further to the right: c zeros on the left, width // 2 on the
right. A kernel and features of PyTorch come here by kernel.transpose(2, 1, 0) and np.swapaxes(x, -1, -2).

Example. Four equal features and a kernel of three ones: the sum of a neighborhood shows where a zero took part:

>>> constant, ones = np.array([[1], [1], [1], [1]]), np.array([[[1]], [[1]], [[1]]])
>>> for padding in PADDINGS:
...     print(f"{padding:8}", convolve(constant, ones, padding=padding)[:, 0])
zero     [2 3 3 2]
circular [3 3 3 3]
valid    [3 3]

Where implementations differ.

    what | who | value | version | source
    name of "zero", with this alignment | PyTorch Conv1d | padding="same" | 2.13.0 | torch/nn/modules/conv.py
    name of "zero", with this alignment | Keras Conv1D | padding="same" | 1c000ff | keras/src/layers/convolutional/base_conv.py
    name of "circular" | PyTorch Conv1d | padding="same", padding_mode="circular" | 2.13.0 | torch/nn/modules/conv.py
    kernel | Keras Conv1D | (width, c_in, c_out), as here | 1c000ff | keras/src/layers/convolutional/base_conv.py
    kernel | PyTorch Conv1d | (c_out, c_in, width), and channels before tokens in x | 2.13.0 | torch/nn/modules/conv.py
    even width | wav2vec2, HuBERT, WavLM, SpeechT5 | one row more on the left: `convolve` with a last entry of zeros | 5.23.0
      | modeling_wav2vec2.py Wav2Vec2SamePadLayer
    use | wav2vec2, HuBERT, WavLM, SpeechT5 | x + gelu(y + bias) before the first layer, width 128 in 16 groups | 5.23.0
      | modeling_wav2vec2.py Wav2Vec2PositionalConvEmbedding
    use | Data2Vec audio | 5 of width 19, each with a LayerNorm without weights before gelu | 5.23.0
      | modeling_data2vec_audio.py Data2VecAudioPositionalConvLayer
    use | SEW, SEW-D | one output for two tokens: a stride of squeeze_factor | 5.23.0 | modeling_sew.py

References. Islam et al., How Much Position Information Do Convolutional Neural Networks Encode?, arXiv 2001.08248; Su,
kexue.fm/archives/8130, section "CNN-Style".
"""

from typing import Literal, get_args

import numpy as np

from posref import _require
from posref._contract import Array, Numbers, contract

Padding = Literal["zero", "circular", "valid"]
PADDINGS = get_args(Padding)


@contract
def convolve(
    x: Numbers[Array, "... n c_in"], kernel: Numbers[Array, "width! c_in! c_out!"], *, padding: Padding
) -> Numbers[Array, "... n|n-width+1 c_out"]:
    """y_i = sum_k x_{i + k - c} W_k: `(..., n, c_out)`, or `(..., n - width + 1, c_out)` for `"valid"`.

    ValueError if the channels of `x` and `kernel` differ, or a valid convolution has fewer entries than the kernel.

    >>> difference = np.array([[[-1]], [[0]], [[1]]])
    >>> convolve(np.array([[1], [4], [9], [16]]), difference, padding="valid")[:, 0]
    array([ 8, 12])
    """
    _require.entries("zero_padding.convolve", "x", x, kernel.shape[0] if padding == "valid" else 1)
    width = kernel.shape[0]
    padded = _pad(x, (width - 1) // 2, width // 2, padding)
    n = padded.shape[-2] - width + 1
    return sum(padded[..., k : k + n, :] @ kernel[k] for k in range(width))


def _pad(x, left, right, padding):
    if padding == "valid":
        return x
    if padding == "circular":
        n = x.shape[-2]
        return x[..., np.arange(-left, n + right) % n, :]
    nothing = np.zeros_like(x[..., :1, :])
    return np.concatenate([*[nothing] * left, x, *[nothing] * right], axis=-2)
