"""Delta rule: recurrence, WY form and chunks are one function; without overlap it is gated linear attention."""

# Over budget: three forms, gates of three kinds, and what the rule contains

import numpy as np
import sympy as sp

from posref.state import _memory, delta, gated
from proofs.kit import *
from proofs.kit.loops import Listed, Loop, Tokens, covers

N = size("n")
REST = [_memory.start, _memory.laid]
WHOLE = [delta.quadratic, delta.wy_form, delta._substituted, _memory.pairs, *REST]
KV = {"state_layout": "kv"}


def matrix(x):
    return sp.Matrix([[expression(each) for each in row] for row in x])


def definition(q, k, v, beta, gates, scale, state):
    """Rows o_i and the last state, as matrices: S_i = (1 - b_i k_i k_i^T) diag(f_i) S_{i-1} + b_i k_i v_i^T, o_i = s q_i S_i.
    Yang et al., Gated Delta Networks, Eq. (10), transposed; ln f is given."""
    rows = []
    for i in range(k.rows):
        gated_state = sp.diag(*[sp.exp(g) for g in gates[i, :]]) * state
        key = k[i, :].T
        state = (sp.eye(k.cols) - beta[i] * key * key.T) * gated_state + beta[i] * key * v[i, :]
        rows.append(scale * q[i, :] * state)
    return sp.Matrix.vstack(*rows), state


def kept(gates, i, j, a):
    """exp(c_i - c_j) of feature a."""
    return sp.exp(sum(gates[x, a] for x in range(j + 1, i + 1)))


def text(n, d=2, d_v=1, features=2):
    """q, k, v, beta, gates of one head, and the state before."""
    free = symbols("q", n, d), symbols("k", n, d), symbols("v", n, d_v), symbols("b", n)
    return (*free, -symbols("g", n, features, positive=True), symbols("s", d, d_v))


def stated(q, k, v, beta, gates, s, scale):
    """The definition, for gates of any kind."""
    every = np.broadcast_to(gates, k.shape)
    out, state = definition(*map(matrix, (q, k, v)), [expression(b) for b in beta], matrix(every), scale, matrix(s))
    return out.tolist(), state.tolist()


@theorem(of=[delta.recurrent, *REST], sizes="n = 1, 3, d = 2, d_v = 1; a gate for each feature, or one")
def pinned():
    """Output and state are those of the products of 1 - b k k^T and gates, from a state or none, in both layouts."""
    scale = symbol("r")
    for n in (1, 3):
        for features in (1, 2):
            *given, s = text(n, features=features)
            for state in (s, None):
                got = delta.recurrent(*given, scale=scale, state=state, **KV)
                out, after = stated(*given, np.zeros((2, 1), dtype=int) if state is None else s, scale.e)
                prove_equal(got.output, out, mention=[given[2][0, 0], given[3][0], scale])
                prove_equal(got.state, after)
            other = delta.recurrent(*given, scale=scale, state=s.T, state_layout="vk")
            prove_equal(other.state.T, stated(*given, s, scale.e)[1])


NAMES = ("q", "k", "v", "beta", "log_gates", "state")
GIVEN = dict(zip(NAMES, [x[None] for x in text(2)], strict=True))
pinned.control_by("delta.attend", "decay_after_error", **GIVEN, scale=1, **KV)
pinned.control_by("delta.attend", "gated_after_writing", **GIVEN, scale=1, **KV)
pinned.control_by("delta.attend", "value_added", **GIVEN, scale=1, **KV)
pinned.control_by("delta.attend", "beta_on_the_value_alone", **GIVEN, scale=1, **KV)


@theorem(
    of=[delta.wy_form, delta._substituted, _memory.pairs], sizes="n = 1, 3, d = 2, d_v = 1; a gate for each feature, or one"
)
def wy_pinned():
    """w_i = b_i (exp(c_i) k_i - sum_{j<i} A_ij w_j), u_i = b_i (v_i - sum_{j<i} A_ij u_j), A_ij = k_i . exp(c_i - c_j) k_j."""
    for n in (1, 3):
        for features in (1, 2):
            _, k, v, b, g, _ = text(n, features=features)
            got = delta.wy_form(k, v, b, g)
            keys, gates = matrix(k), matrix(np.broadcast_to(g, k.shape))
            rows = {"w": [], "u": []}
            for i in range(n):
                recalled = [sum(keys[i, a] * kept(gates, i, j, a) * keys[j, a] for a in range(2)) for j in range(i)]
                new = {"w": [kept(gates, i, -1, a) * keys[i, a] for a in range(2)], "u": [expression(x) for x in v[i]]}
                for which, kept_rows in rows.items():
                    part = zip(*kept_rows, strict=True) if i else [()] * len(new[which])
                    less = [sum(r * x for r, x in zip(recalled, column, strict=True)) for column in part]
                    kept_rows.append([b[i].e * (x - y) for x, y in zip(new[which], less, strict=True)])
            prove_equal(got.w, rows["w"], mention=[k[0, 0], b[0]])
            prove_equal(got.u, rows["u"])


wy_pinned.control_by("delta.wy", "w_without_gates", **{x: GIVEN[x] for x in NAMES[1:5]})
wy_pinned.control_by("delta.wy", "u_without_gates", **{x: GIVEN[x] for x in NAMES[1:5]})
THREE = dict(zip(NAMES, [x[None] for x in text(3, 1, features=1)], strict=True))
wy_pinned.control_by("delta.wy", "first_order", **{x: THREE[x] for x in NAMES[1:5]})


@theorem(
    of=[delta.recurrent, delta.chunked, _memory.in_chunks, *WHOLE],
    sizes="n = 3, d = 2, d_v = 1; chunks of 1 to 4 tokens",
    equivalent={
        "recurrent: s, outputs = (start(k, v, state, state_layout), [])  ->  "
        "s, outputs = (start(q, v, state, state_layout), [])": "zeros of the same shape",
        "quadratic: s, c, (w, u) = (start(k, v, state, state_layout), np.cumsum(log_gates, axis=-2), "
        "wy_form(k, v, beta, log_gates))  ->  s, c, (w, u) = (start(q, v, state, state_layout), "
        "np.cumsum(log_gates, axis=-2), wy_form(k, v, beta, log_gates))": "zeros of the same shape",
        "_substituted: rows = beta[..., :1, None] * x[..., :1, :] + 0 * recalled[..., :1, :1]  ->  "
        "rows = beta[..., :1, None] * x[..., :1, :] - 0 * recalled[..., :1, :1]": "zeros, for the leading axes",
        "chunked: return quadratic(q, k, v, beta[..., 0], log_gates, scale=scale, state_layout=state_layout, state=state)  ->  "
        "return quadratic(q, k, v, beta[..., -1], log_gates, scale=scale, state_layout=state_layout, state=state)": (
            "the axis has one entry"
        ),
    },
)
def three_forms():
    """Recurrence, chunks of any length in the WY form and the quadratic form give the same outputs and the same state."""
    *given, s = (x[None] for x in text(3))
    scale = symbol("r")
    for layout, state in (("kv", s), ("vk", np.swapaxes(s, -1, -2))):
        told = {"scale": scale, "state_layout": layout, "state": state}
        step = delta.recurrent(*given, **told)
        for other in [delta.quadratic(*given, **told), *(delta.chunked(*given, chunk=c, **told) for c in range(1, 5))]:
            prove_equal(other.output, step.output, mention=[scale])
            prove_equal(other.state, step.state)


@three_forms.control
def each_chunk_begins_a_text():
    """The chunks are texts of their own: the state is not handed on."""
    *given, _ = text(2)
    parts = [delta.quadratic(*(x[t : t + 1] for x in given), scale=1, **KV).output for t in range(2)]
    prove_equal(np.concatenate(parts, axis=-2), delta.quadratic(*given, scale=1, **KV).output)


@theorem(
    of=[delta.recurrent, *REST],
    sizes="every length; d = 2, d_v = 1",
    argument="induction over the tokens: the body decides the first state, one turn and what is returned",
    silent="the loop is run turn by turn",
)
def every_length():
    """A turn takes any state S to (1 - b k k^T) diag(f) S + b k v^T and reads scale q . S after it; the first state is the one
    given, and the rows are what was read: the definition at every length."""
    *given, s = text(1)
    loop, scale, before = Loop(delta.recurrent, 0), symbol("r"), symbols("p", 2, 1)
    names = dict(zip(NAMES, [*given, s], strict=True))
    first = loop.before({**names, "scale": scale, **KV})
    prove_that(loop.turns(first) == [1] and first["outputs"] == [], "a turn for each token, and nothing is read before")
    prove_equal(first["s"], s)
    t = symbol("t", integer=True)
    here = {name: Tokens(x, t) for name, x in zip(NAMES, given, strict=False)}
    turned = loop.turn({**first, **here, "s": before, "outputs": Listed()}, t=t)
    out, after = stated(*given, before, scale.e)
    prove_equal(turned["s"], after, mention=[-given[4][0, 1]])
    prove_equal(turned["outputs"][-1], out)
    read = Listed(by=np.concatenate, axis=-2, joined=sized("o", N, 1))
    done = loop.after({**first, "s": s, "outputs": read})["returned"]
    prove_equal(*entries(None, done.output, sized("o", N, 1)))
    prove_equal(done.state, s)
    covers(delta.recurrent)


@every_length.control
def it_only_forgets():
    """A turn takes S to diag(f) S + b k v^T."""
    q, k, v, b, g, s = text(1)
    got = delta.recurrent(q, k, v, b, g, scale=1, state=s, **KV).state
    prove_equal(got, np.exp(g.T) * s + b * k.T * v)


@theorem(of=[delta.recurrent, *REST], sizes="n = 3, d = 2, d_v = 1; a gate for each feature")
def the_gradient_is_a_state_that_goes_back():
    """From the last token on D_i = T_{i+1} + s q_i w_i^T, p_i = b_i k_i . D_i and T_i = diag(f_i) (1 - b_i k_i k_i^T) D_i: then
    sum_i w_i . o_i = sum_i v_i . p_i + sum S T_0, so p is the gradient of the values and T_0 that of the first state."""
    *given, s = text(3)
    w, scale = symbols("w", 3, 1), symbol("r")
    read = delta.recurrent(*given, scale=scale, state=s, **KV).output
    values, first = backwards(*given, w, scale, erased=True)
    prove_equal([(w * read).sum()], [values + (s * first).sum()], mention=[w[2, 0], given[2][0, 0], s[1, 0], scale])


def backwards(q, k, v, b, g, w, scale, *, erased):
    """sum_i v_i . p_i, and T_0."""
    after, total = 0 * k[0, :, None], 0
    for i in reversed(range(len(k))):
        after = after + scale * q[i, :, None] * w[i]
        recalled = b[i] * (k[i] @ after)
        total = total + (v[i] * recalled).sum()
        after = np.exp(g[i])[:, None] * (after - erased * k[i, :, None] * recalled)
    return total, after


@the_gradient_is_a_state_that_goes_back.control
def nothing_is_erased_on_the_way_back():
    """So it is with T_i = diag(f_i) D_i, as in gated linear attention."""
    *given, s = text(2, 1, 1, 1)
    w = symbols("w", 2, 1)
    read = delta.recurrent(*given, scale=1, state=s, **KV).output
    values, first = backwards(*given, w, 1, erased=False)
    prove_equal([(w * read).sum()], [values + (s * first).sum()])


@theorem(of=[*WHOLE, gated.quadratic], sizes="n = 3, d = 3, d_v = 1; keys along three axes", as_written="runs")
def without_overlap_gated_linear_attention():
    """With orthogonal keys, one gate per head and no state nothing is recalled: it is gated linear attention of b v."""
    q, _, v, b, g, _ = text(3, d=3, features=1)
    keys = np.eye(3, dtype=int) * symbols("k", 3)
    got = delta.quadratic(q, keys, v, b, g, scale=1, **KV)
    other = gated.quadratic(q, keys, b[:, None] * v, g, scale=1, **KV)
    prove_equal(got.output, other.output, mention=[b[0], -g[1, 0]])
    prove_equal(got.state, other.state)


@without_overlap_gated_linear_attention.claim("Keys that overlap are corrected.")
def with_any_keys():
    """It is gated linear attention with values b v for all keys."""
    q, k, v, b, g, _ = text(2)
    other = gated.quadratic(q, k, b[:, None] * v, g, scale=1, **KV)
    prove_equal(delta.quadratic(q, k, v, b, g, scale=1, **KV).output, other.output)


@theorem(of=[delta.recurrent, delta.unit, *REST], sizes="one token, d = 2, d_v = 1, any state and gates")
def a_key_recalls_its_value():
    """After a token with b = 1 and a key of length 1 was written its key recalls its value, whatever was before."""
    _, k, v, _, g, s = text(1)
    key = np.stack([np.cos(symbols("phi", 1)), np.sin(symbols("phi", 1))], axis=-1)
    got = delta.recurrent(key, key, v, np.ones(1, dtype=int), g, scale=1, state=s, **KV).output
    prove_equal(got, v, mention=[v[0, 0]])
    eps = symbol("eps", positive=True)
    length = delta.unit(k, eps=eps)
    prove_equal([(length * length).sum()], [(k * k).sum() / ((k * k).sum() + eps)], mention=[eps])


@a_key_recalls_its_value.control
def for_keys_of_any_length():
    """So it is for a key of any length."""
    _, k, v, b, g, s = text(1)
    prove_equal(delta.recurrent(k, k, v, 0 * b + 1, g, scale=1, state=s, **KV).output, v)


@theorem(of=[delta.unit], sizes="batch 2, d = 3")
def unit_pinned():
    """unit(x) is x / sqrt(sum x^2 + eps), as it is written; so the product of two entries is that of x over sum x^2 + eps."""
    x, eps = symbols("x", 2, 3), symbol("eps", positive=True)
    got = delta.unit(x, eps=eps)
    for row, a, b in np.ndindex(2, 3, 3):
        total = (x[row] * x[row]).sum() + eps
        prove_that(got[row, a].e == x[row, a].e / sp.sqrt(total.e), "x / sqrt(sum x^2 + eps)")
        prove_equal([got[row, a] * got[row, b] * total], [x[row, a] * x[row, b]], mention=[x[row, a]])


@unit_pinned.control
def the_mean_is_taken():
    """The products are divided by the mean of squares and eps."""
    x, eps = symbols("x", 2), symbol("eps", positive=True)
    got = delta.unit(x, eps=eps)
    prove_equal([got[0] * got[1] * ((x * x).sum() / 2 + eps)], [x[0] * x[1]])
