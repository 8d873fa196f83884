r"""Short convolution: each feature is a weighted sum over its last few tokens; a cache holds the tokens before.

A state that decays hardly tells the order of neighbouring tokens. A convolution over 3 or 4 tokens tells this order. Most
models apply the convolution to queries, keys and values before they enter the state.

Also called: causal convolution, short conv, conv1d, causal_conv1d, Canon layer, LFM2, token shift.

Definition. Feature c has a kernel of `width` numbers; the last number belongs to the token itself:

    y_ic = b_c + sum_{t=0..width-1} w_ct x_{i - (width - 1) + t, c}        rows of x before the first token: `state`, or 0
    state = the last width - 1 rows of x

Symbols.

    x, y (..., n, c)               features of n tokens, and what is computed
    w (c, width)                   `kernel` in the code; one row per feature; torch's weight is (c, 1, width)
    b (c,)                         bias, if there is one
    state (..., taps, c)           the last width - 1 rows before the first token, the oldest first

Conventions. The kernel is not reversed: its last column belongs to the token, as in `zero_padding` after rows of zeros in
front. In most models an activation (SiLU) follows; this function applies no activation. Where several texts are packed into
one row, each text begins with zeros.

Example. A kernel (10, 1): the token and ten times the one before it.

>>> y, left = causal(np.array([[1], [2], [3]]), np.array([[10, 1]]))
>>> y.ravel(), left.ravel()
(array([ 1, 12, 23]), array([3]))

Where implementations differ.

    what | who | value | version | source
    rows that are kept | onnx CausalConvWithState | width - 1 | 1.23.2 | op_causal_conv_with_state.py
    rows that are kept | transformers, Qwen3-Next and kin | width: the oldest is not read again | 5.23.0
      | cache_utils.py update_conv_state
    rows of padding | transformers' Inkling | 0 before the convolution | 5.23.0 | modeling_inkling.py
    rows of padding | transformers' Mamba, Mamba-2, Jamba | 0 before the projection in front of the convolution, and 0 after it
      | 5.23.0 | modeling_mamba2.py apply_mask_to_padding_states
    axes | transformers, onnx, causal_conv1d | features before tokens: (batch, c, n) | 5.23.0, 1.23.2 | modeling_qwen3_next.py
    activation | Qwen3-Next, Mamba-2, Kimi Linear | SiLU | 5.23.0 | modeling_qwen3_next.py, modeling_mamba2.py
    activation | LFM2 | none; the input and the output are multiplied by gates | 5.23.0 | modeling_lfm2.py Lfm2ShortConv

References. Fu et al., Hungry Hungry Hippos, arXiv 2212.14052, section 3; Yang et al., DeltaNet, arXiv 2406.06484, section 3.4.
"""

from typing import NamedTuple

import numpy as np

from posref._contract import Array, Numbers, contract


class Convolved(NamedTuple):
    """The output, and the rows that the next text needs."""

    output: Numbers[Array, "... n c"]
    state: Numbers[Array, "... width-1 c"]


@contract(kernel="one row of taps per feature; a weight of torch's Conv1d is (c, 1, width)")
def causal(
    x: Numbers[Array, "... n! c"],
    kernel: Numbers[Array, "c taps+1"],
    bias: Numbers[Array, "c"] | None = None,
    *,
    state: Numbers[Array, "#... taps c"] | None = None,
) -> Convolved:
    """y and the last width - 1 rows of x: `(..., n, c)` and `(..., width - 1, c)`.

    >>> causal(np.array([[2]]), np.array([[10, 1]]), state=np.array([[3]])).output
    array([[32]])
    """
    n, width = x.shape[-2], kernel.shape[-1]
    zeros = np.repeat(0 * x[..., :1, :], width - 1, axis=-2)
    rows = np.concatenate([zeros if state is None else zeros + state, x], axis=-2)
    y = np.stack([rows[..., t : t + n, :] * kernel[:, t] for t in range(width)]).sum(axis=0)
    return Convolved(y if bias is None else y + bias, rows[..., n:, :])
