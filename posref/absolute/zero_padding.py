r"""Zero padding: how a convolution without any position encoding comes to know the border.

Definition. A one-dimensional convolution with a kernel of `width` matrices, in the sense of neural networks (the kernel is
not turned around):

    y_i = sum_k x_{i + k - c} W_k,   k = 0 .. width - 1,   c = (width - 1) // 2

    padding="zero"       x is 0 outside 0 .. n - 1                  y has n entries
    padding="circular"   x_{i + n} = x_i                            y has n entries
    padding="valid"      only entries that need nothing outside,    y has n - width + 1 entries, y_i = sum_k x_{i + k} W_k

Symbols. x (..., n, c_in); kernel W (width, c_in, c_out); y (..., n or n - width + 1, c_out).

Conventions. Row vectors, x_j W_k. An even width reaches one further to the right: (width - 1) // 2 zeros on the left,
width // 2 on the right, as PyTorch's padding="same" does.

Where implementations differ. PyTorch and TensorFlow call "zero" with this alignment "same"; PyTorch's Conv1d turns
it into "circular" by padding_mode. Keras stores the kernel as here; PyTorch stores (c_out, c_in, width) and takes channels
first: kernel.transpose(2, 1, 0) and np.swapaxes(x, -1, -2) bring both here.

Properties. proofs/absolute/zero_padding.py: pinned; pinned_inside for all n; circular_is_equivariant, so it knows no position;
zero_padding_differs_at_the_border_alone; constant_input_shows_the_border; layers_carry_the_border_inwards;
valid_is_equivariant_where_defined.

References. Islam et al., How Much Position Information Do Convolutional Neural Networks Encode?, arXiv 2001.08248;
Su, kexue.fm/archives/8130, section "CNN-Style".
"""

import numpy as np

from posref import _require

PADDINGS = ("zero", "circular", "valid")


def convolve(x, kernel, *, padding):
    """y_i = sum_k x_{i + k - c} W_k: `(..., n, c_out)`, or `(..., n - width + 1, c_out)` for `"valid"`.

    ValueError if the channels of `x` and `kernel` differ, or a valid convolution has fewer entries than the kernel.

    >>> constant, ones = np.array([[1], [1], [1], [1]]), np.array([[[1]], [[1]], [[1]]])
    >>> for padding in PADDINGS:
    ...     print(padding, convolve(constant, ones, padding=padding)[:, 0])
    zero [2 3 3 2]
    circular [3 3 3 3]
    valid [3 3]
    """
    _require.array("zero_padding.convolve", "x", x, ndim=2)
    _require_kernel(x, kernel, padding)
    width = kernel.shape[0]
    padded = _pad(x, (width - 1) // 2, width // 2, padding)
    n = padded.shape[-2] - width + 1
    return sum(padded[..., k : k + n, :] @ kernel[k] for k in range(width))


def _pad(x, left, right, padding):
    n, channels = x.shape[-2:]
    if padding == "valid":
        return x
    if padding == "circular":
        return x[..., np.arange(-left, n + right) % n, :]
    before, after = (np.zeros((*x.shape[:-2], width, channels), dtype=x.dtype) for width in (left, right))
    return np.concatenate([before, x, after], axis=-2)


def _require_kernel(x, kernel, padding):
    _require.array("zero_padding.convolve", "kernel", kernel)
    _require.axes("zero_padding.convolve", "kernel", kernel, "(width, c_in, c_out)")
    _require.wide("zero_padding.convolve", x=x, kernel=kernel)
    _require.choice("zero_padding.convolve", "padding", padding, PADDINGS)
    n, width = x.shape[-2], kernel.shape[0]
    if kernel.shape[1] != x.shape[-1]:
        raise ValueError(
            f"zero_padding.convolve: x has {x.shape[-1]} channels and the kernel takes {kernel.shape[1]} "
            f"(shapes {x.shape} and {kernel.shape}); a kernel is (width, c_in, c_out)"
        )
    if n == 0 or (padding == "valid" and n < width):
        raise ValueError(
            f"zero_padding.convolve: x has {n} entries and the kernel {width}; it needs at least one, and {width} to be valid"
        )
