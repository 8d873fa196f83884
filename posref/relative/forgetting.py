r"""FoX: forgetting attention; each score is lowered by the log forget gates of the tokens between query and key.

ALiBi's penalty is the same for every text. A forget gate reads its token, so a model can forget at the end of a sentence and
keep what it needs. The gate is that of a recurrent network; its logarithm is added to the scores.

Also called: Forgetting Transformer, data-dependent ALiBi, forget gate.

Definition. Token l has the gate f_l in (0, 1), one per query head, from a linear map of the layer's input x_l:

    s_ij = q_i . k_j / sqrt(d) + D_ij,   D_ij = sum_{l=j+1..i} ln f_l = c_i - c_j        j <= i
    c_i = sum_{l<=i} ln f_l,   ln f_l = ln sigmoid(w . x_l + b)

and with form="key" the bias -c_j alone, which is the same attention after softmax.

Symbols.

    x (...)                         what the gate's linear map gives, any shape
    log_gates (..., h, n)           ln f, not above 0
    c (..., h, n)                   running sums of ln f
    D (..., h, n, n)                bias, `(..., h, 1, n)` for "key"

Conventions. The gate of a token acts between it and everything before it: D_ii = 0, and D_{i,i-1} = ln f_i. The bias is added
after the scores are multiplied by 1/sqrt(d), before the mask. Above the diagonal "difference" would raise the score, so
attention must be causal. The bias takes no positions: rows are tokens in their order, and one decoding step needs the last row
alone. -c_j grows with the text and "difference" does not, which matters in 16 bits; with sinks or caps the two forms are
different models.

Example. Three tokens; the last one forgets what was before by a half.

>>> bias(np.log(np.array([[1.0, 1.0, 0.5]])), form="difference").round(3)
array([[[ 0.   ,  0.   ,  0.693],
        [ 0.   ,  0.   ,  0.693],
        [-0.693, -0.693,  0.   ]]])

Where implementations differ.

    what | who | value | version | source
    b at the start | paper's code, full gate | 0 | 883f260c63 | forgetting-transformer
    b at the start | paper's code, gates without data | -ln(exp(1/T) - 1), so ln f = -1/T, with T geometric over the heads
      | 883f260c63 | forgetting-transformer
    b at the start | x-transformers | 5 | 2.31.10 | x_transformers.py DataDependentAlibi
    both directions | x-transformers | other gates, summed from the other end, where j > i | 2.31.10
      | x_transformers.py DataDependentAlibi
    gate of a pair | x-transformers | one for each query and key, summed over j .. i - 1: with j, without i | 2.31.10
      | x_transformers.py PerRowDataDependentAlibi
    scale | PaTH attention in fla | c_i - c_j is divided by sqrt(d) with the score | bc3b101dcb | fla/layers/path_attn.py
    windows | fla | keep i - window + 1 .. i | bc3b101dcb | fla

References. Lin et al., Forgetting Transformer, arXiv 2503.02130, section 3; github.com/zhixuan-lin/forgetting-transformer.
"""

from typing import Literal, get_args

import numpy as np

from posref._contract import Array, Numbers, Signed, contract

Form = Literal["difference", "key"]
FORMS = get_args(Form)


@contract
def log_sigmoid(x: Signed[Array, "..."]) -> Numbers[Array, "..."]:
    """ln f = ln(1 / (1 + exp(-x))): shape of `x`. No exponential of a large number is taken.

    >>> log_sigmoid(np.array([0.0, -1000.0])).round(3)
    array([-6.93e-01, -1.00e+03])
    """
    size = np.abs(x)
    return (x - size) / 2 - np.log(1 + np.exp(-size))


@contract
def bias(log_gates: Signed[Array, "... h n"], *, form: Form) -> Numbers[Array, "... h n|1 n"]:
    """c_i - c_j or -c_j, to be added to scaled scores: `(..., h, n, n)`, or `(..., h, 1, n)` for "key". Lin et al. section 3.

    >>> bias(np.array([[-1.0, -2.0, -3.0]]), form="difference")
    array([[[ 0.,  2.,  5.],
            [-2.,  0.,  3.],
            [-5., -3.,  0.]]])
    >>> bias(np.array([[-1.0, -2.0, -3.0]]), form="key")
    array([[[1., 3., 6.]]])
    """
    c = np.cumsum(log_gates, axis=-1)
    return -c[..., None, :] if form == "key" else c[..., :, None] - c[..., None, :]
