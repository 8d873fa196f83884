"""posref: the reference implementation of position in Transformers.

Four families say where position enters attention:

* `posref.absolute`: at the input, `x_i -> x_i + p_i`
* `posref.rotary`: by rotating queries and keys, `q_i -> R(i) q_i`
* `posref.relative`: in the scores, `s_ij -> s_ij + b(j - i)`
* `posref.state`: in a recurrent state, `S_i = f_i S_{i-1} + k_i v_i^T`

`posref.attention` is the attention itself; `posref.shards` computes attention over parts of the keys and merges the parts.
Import the system that you want:

>>> from posref.rotary import rope
>>> rope.frequencies(4)
array([1.  , 0.01])

`posref.fast` (numba) has compiled twins of some functions, with the same names; `posref.check` says what another
implementation computes; `posref.vectors` loads the golden vectors.
"""

__version__ = "0.3.0"
