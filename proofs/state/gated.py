"""Gated linear attention: the text decides how fast the state fades."""

# Over budget: three forms, and the four systems that it contains or is near to

import numpy as np
import sympy as sp

from posref.relative import forgetting
from posref.rotary import linear_attention, rope
from posref.state import _memory, gated, retention
from proofs.kit import *
from proofs.kit.loops import Listed, Loop, Tokens, covers

N = size("n")
REST = [_memory.start, _memory.laid]
FORMS = [gated.recurrent, gated.quadratic, gated.chunked, _memory.in_chunks, _memory.pairs, *REST]
EMPTY = {
    "recurrent: s, outputs = (start(k, v, state, state_layout), [])  ->  "
    "s, outputs = (start(q, v, state, state_layout), [])": "zeros of the same shape",
    "quadratic: s, c = (start(k, v, state, state_layout), np.cumsum(log_gates, axis=-2))  ->  "
    "s, c = (start(q, v, state, state_layout), np.cumsum(log_gates, axis=-2))": "zeros of the same shape",
}


def softplus(x, m=sp):
    return m.log(1 + m.exp(x))


def gate(x, a_log, bias, m=sp):
    """ln f = -exp(A) softplus(x + b). Dao and Gu, section 7.1."""
    return -m.exp(a_log) * softplus(x + bias, m)


def bounded(x, a_log, bias, lower, m=sp):
    """ln f = m sigmoid(exp(A) (x + b)). fla, ops/kda/gate.py; transformers 5.23.0, Glm5NextTextForgetGate."""
    return lower / (1 + m.exp(-m.exp(a_log) * (x + bias)))


def definition(q, k, v, gates, scale, before, i, c, m=sp):
    """o_i, feature c, of one head, with the product of the gates f of the tokens after j up to i. Yang et al., section 4.1."""
    features = range(len(q[i]))
    kept = lambda j, a: m.exp(sum(gates_of[a] for gates_of in gates[j + 1 : i + 1]))
    read = sum(q[i][a] * k[j][a] * kept(j, a) * v[j][c] for j in range(i + 1) for a in features)
    return scale * (read + sum(q[i][a] * kept(-1, a) * before[a][c] for a in features))


def left(k, v, gates, before, a, c, m=sp):
    """Entry (a, c) of the state after the last token."""
    kept = lambda j: m.exp(sum(each[a] for each in gates[j + 1 :]))
    return kept(-1) * before[a][c] + sum(kept(j) * k[j][a] * v[j][c] for j in range(len(k)))


def text(n, d=2, d_v=1, features=2):
    """q, k, v, gates of one head, and the state before."""
    free = symbols("q", n, d), symbols("k", n, d), symbols("v", n, d_v), -symbols("g", n, features, positive=True)
    return (*free, symbols("s", d, d_v))


def rows(x):
    return [[expression(each) for each in row] for row in x]


KV = {"state_layout": "kv"}


@theorem(of=[gated.quadratic, _memory.pairs, *REST], sizes="n = 1, 3, d = 2, d_v = 1; a gate for each feature, or one")
def pinned():
    """Output and state are the sums over products of gates, with the state of an earlier text or without, in both layouts."""
    scale = symbol("r")
    for n in (1, 3):
        for features in (1, 2):
            q, k, v, g, s = text(n, features=features)
            every = [row * (2 // features) for row in rows(g)]
            for state in (s, None):
                before = [[0], [0]] if state is None else rows(s)
                got = gated.quadratic(q, k, v, g, scale=scale, state=state, **KV)
                prove_that(got.output.shape == (n, 1) and got.state.shape == (2, 1), "the axes")
                stated = [definition(rows(q), rows(k), rows(v), every, scale.e, before, i, 0) for i in range(n)]
                prove_equal(got.output[:, 0], stated, mention=[v[0, 0], q[0, 1], scale])
                prove_equal(got.state[:, 0], [left(rows(k), rows(v), every, before, a, 0) for a in range(2)])
            other = gated.quadratic(q, k, v, g, scale=scale, state=s.T, state_layout="vk").state
            prove_equal(other[0], [left(rows(k), rows(v), every, rows(s), a, 0) for a in range(2)])


GIVEN = dict(zip(("q", "k", "v", "log_gates", "state"), [x[None] for x in text(3)], strict=True))
KEPT = {name: x for name, x in GIVEN.items() if name != "q"}
pinned.control_by("gated.attend", "own_token_gated", **GIVEN, scale=1, **KV)
pinned.control_by("gated.attend", "gate_one_token_late", **GIVEN, scale=1, **KV)
pinned.control_by("gated.attend", "chunk_mask_without_decay", **GIVEN, scale=1, **KV)
pinned.control_by("gated.attend", "own_token_left_out", **GIVEN, scale=1, **KV)
pinned.control_by("gated.remember", "gate_of_the_first_feature", **KEPT, **KV)


@theorem(of=FORMS, sizes="n = 4, d = 2, d_v = 1; chunks of 1 to 5 tokens", equivalent=EMPTY)
def three_forms():
    """Recurrence, chunks of any length and the quadratic form give the same outputs and the same state, in both layouts."""
    *given, s = (x[None] for x in text(4))
    scale = symbol("r")
    for layout, state in (("kv", s), ("vk", np.swapaxes(s, -1, -2))):
        told = {"scale": scale, "state_layout": layout, "state": state}
        whole = gated.quadratic(*given, **told)
        others = [gated.chunked(*given, chunk=chunk, **told) for chunk in range(1, 6)]
        for other in [gated.recurrent(*given, **told), *others]:
            prove_equal(other.output, whole.output, mention=[scale])
            prove_equal(other.state, whole.state)


@three_forms.control
def each_chunk_begins_a_text():
    """The chunks are texts of their own: the state is not handed on."""
    *given, _ = text(2)
    parts = [gated.quadratic(*(x[t : t + 1] for x in given), scale=1, **KV).output for t in range(2)]
    prove_equal(np.concatenate(parts, axis=-2), gated.quadratic(*given, scale=1, **KV).output)


@theorem(
    of=[gated.recurrent, *REST],
    sizes="every length; d = 2, d_v = 1",
    argument="induction over the tokens: the body decides the first state, one turn and what is returned",
    silent="the loop is run turn by turn",
)
def every_length():
    """Before token t the state is exp(c_t) (S + P_t), where P_t is the sum of exp(-c_j) k_j v_j^T over earlier tokens: so at
    first, where c is 0, and a turn goes on to t + 1 and reads scale q_t . S_t after it: the sums of the definition."""
    q, k, v, g, s = text(1)
    loop, scale, c, so_far = Loop(gated.recurrent, 0), symbol("r"), symbols("c", 2, 1), symbols("p", 2, 1)
    first = loop.before({"q": q, "k": k, "v": v, "log_gates": g, "scale": scale, "state": s, **KV})
    prove_that(loop.turns(first) == [1] and first["outputs"] == [], "a turn for each token, and nothing is read before")
    prove_equal(first["s"], s)
    t = symbol("t", integer=True)
    here = {name: Tokens(x, t) for name, x in {"q": q, "k": k, "v": v, "log_gates": g}.items()}
    turned = loop.turn({**first, **here, "s": np.exp(c) * (s + so_far), "outputs": Listed()}, t=t)
    later = c + g.T
    prove_equal(turned["s"], np.exp(later) * (s + so_far + np.exp(-later) * k.T * v), mention=[-g[0, 1]])
    prove_equal(turned["outputs"][-1], scale * (q @ turned["s"]))
    kept = Listed(by=np.concatenate, axis=-2, joined=sized("o", N, 1))
    done = loop.after({**first, "s": s, "outputs": kept})["returned"]
    prove_equal(*entries(None, done.output, sized("o", N, 1)))
    prove_equal(done.state, s)
    covers(gated.recurrent)


@every_length.control
def the_new_key_is_gated_too():
    """The token's own key and value are multiplied by its gate."""
    q, k, v, g, s = text(1)
    prove_equal(gated.recurrent(q, k, v, g, scale=1, state=s, **KV).state, np.exp(g.T) * (s + k.T * v))


@theorem(of=[gated.log_gates, forgetting.log_sigmoid], sizes="one number, of either sign")
def gates_pinned():
    """The logarithm of a gate is -exp(A) ln(1 + exp(x + b)), for either sign of x + b; for A = 0 it is FoX's
    log_sigmoid(-x - b)."""
    x, a, b = symbols("x", 1), symbols("a", 1), symbols("b", 1)
    for _, got in all_paths(lambda: gated.log_gates(x, a, b)):
        power = got[0].e / -sp.exp(a[0].e)
        prove_equal([sp.exp(power)], [1 + sp.exp(x[0].e + b[0].e)], mention=[x[0], b[0]])
    for _, (got, fox) in all_paths(lambda: (gated.log_gates(x, 0 * a, b), forgetting.log_sigmoid(-x - b))):
        prove_equal([sp.exp(got[0].e)], [sp.exp(fox[0].e)])


@gates_pinned.control
def the_bias_is_left_out():
    """It is -exp(A) ln(1 + exp(x))."""
    x, a, b = symbols("x", 1), symbols("a", 1), symbols("b", 1)
    for _, got in all_paths(lambda: gated.log_gates(x, a, b)):
        prove_equal([sp.exp(got[0].e / -sp.exp(a[0].e))], [1 + sp.exp(x[0].e)])


@theorem(of=[gated.bounded_log_gates], sizes="one number, of either sign")
def bounded_gates_pinned():
    """It is m / (1 + exp(-exp(A) (x + b))), for either sign of x + b: between m and 0."""
    x, a, b, m = symbols("x", 1), symbols("a", 1), symbols("b", 1), symbol("m")
    for _, got in all_paths(lambda: gated.bounded_log_gates(x, a, b, lower_bound=m)):
        stated = bounded(x[0].e, a[0].e, b[0].e, m.e)
        prove_equal([got[0]], [stated], mention=[x[0], b[0]])


@bounded_gates_pinned.control
def the_rate_multiplies_the_bound():
    """It is m exp(A) / (1 + exp(-x - b)): the rate multiplies the bound, as in the gate without one."""
    x, a, b, m = symbols("x", 1), symbols("a", 1), symbols("b", 1), symbol("m")
    for _, got in all_paths(lambda: gated.bounded_log_gates(x, a, b, lower_bound=m)):
        prove_equal([got[0].e * (1 + sp.exp(-x[0].e - b[0].e))], [m.e * sp.exp(a[0].e)])


@theorem(of=[gated.quadratic, *REST], sizes="n = 3, d = 2, d_v = 1; a gate for each feature")
def the_gradient_is_the_text_backwards():
    """sum_i w_i . o_i = sum_j v_j . p_j + sum f_0 s S T, where p and T are output and state of the text backwards, with w for
    values, queries for keys, keys for queries, and the gate of the token after: so p is the gradient of the values, and f_0 s T
    that of the first state."""
    q, k, v, g, s = text(3)
    w, scale, later = symbols("w", 3, 1), symbol("r"), np.concatenate([0 * g[:1], g[:0:-1]])
    read = gated.quadratic(q, k, v, g, scale=scale, state=s, **KV).output
    back = gated.quadratic(k[::-1], q[::-1], w[::-1], later, scale=scale, **KV)
    stated = (v * back.output[::-1]).sum() + (np.exp(g[0])[:, None] * scale * s * back.state).sum()
    prove_equal([(w * read).sum()], [stated], mention=[w[2, 0], v[0, 0], -g[2, 0], s[1, 0]])


@the_gradient_is_the_text_backwards.control
def gates_stay_where_they_are():
    """So it is with the gates of the text in reverse."""
    q, k, v, g, _ = text(2)
    w = symbols("w", 2, 1)
    read = gated.quadratic(q, k, v, g, scale=1, **KV).output
    back = gated.quadratic(k[::-1], q[::-1], w[::-1], g[::-1], scale=1, **KV).output[::-1]
    prove_equal([(w * read).sum()], [(v * back).sum()])


# what it contains


@theorem(of=[gated.quadratic, retention.quadratic, *REST], sizes="n = 3, d = 2, d_v = 1")
def constant_gates_are_retention():
    """With one gate for all tokens and features it is retention with that decay, output and state."""
    q, k, v, g, s = text(3, features=1)
    gates = np.broadcast_to(g[:1], (3, 1))
    q, k, v, gates, s = (x[None] for x in (q, k, v, gates, s))
    got = gated.quadratic(q, k, v, gates, scale=1, state=s, **KV)
    other = retention.quadratic(q, k, v, np.exp(g[0]), scale=1, state=s)
    prove_equal(got.output, other.output, mention=[-g[0, 0]])
    prove_equal(got.state, other.state)


@constant_gates_are_retention.claim("The offset alone decides only where all gates are equal; others tell what stands between.")
def it_sees_the_offset():
    """The weight of a key depends on the offset alone: two pairs of neighbours have the same."""
    _, _, _, g, _ = text(3, d=1, features=1)
    one = symbols("q", 3, 1) * 0 + 1
    states = [gated.quadratic(one[:2], one[:2], one[:2], gates, scale=1, **KV).output[1] for gates in (g[:2], g[1:])]
    prove_equal(*states)


@theorem(of=[gated.quadratic, *REST, linear_attention.attend], sizes="n = 3, d = 2, d_v = 1")
def without_gates_linear_attention():
    """Causal linear attention times its denominator is the output with f = 1."""
    q, k, v, g, _ = text(3)
    tables = rope.tables(np.zeros(3, dtype=int), symbols("w", 1))
    whole = linear_attention.attend(q, k, v, *tables, layout="half", feature_map=lambda x: x, causal=True)
    above, below = (gated.quadratic(q, k, x, 0 * g, scale=1, **KV).output for x in (v, 0 * v + 1))
    prove_equal(whole * below, above, mention=[v[0, 0]])


@without_gates_linear_attention.control
def with_any_gates():
    """It is so with any gates."""
    q, k, v, g, _ = text(2)
    tables = rope.tables(np.zeros(2, dtype=int), symbols("w", 1))
    whole = linear_attention.attend(q, k, v, *tables, layout="half", feature_map=lambda x: x, causal=True)
    above, below = (gated.quadratic(q, k, x, g, scale=1, **KV).output for x in (v, 0 * v + 1))
    prove_equal(whole * below, above)


@theorem(of=[gated.quadratic, *REST, forgetting.bias], sizes="n = 3, d = 2, d_v = 3")
def forgetting_without_softmax():
    """With one gate per head, key j weighs the score times exp(c_i - c_j), in FoX's softmax the score plus c_i - c_j."""
    q, k, _, g, _ = text(3, features=1)
    weights = gated.quadratic(q, k, np.eye(3, dtype=int), g, scale=1, **KV).output
    factors = np.exp(forgetting.bias(g.T, form="difference")[0])
    for i, j in np.ndindex(3, 3):
        prove_equal([weights[i, j]], [(q[i] @ k[j]) * factors[i, j] if j <= i else 0])


@forgetting_without_softmax.control
def the_keys_own_gate_is_in_it():
    """The gates from j to i are multiplied, with that of the key."""
    q, k, _, g, _ = text(2, features=1)
    weights = gated.quadratic(q, k, np.eye(2, dtype=int), g, scale=1, **KV).output
    prove_equal([weights[1, 0]], [(q[1] @ k[0]) * np.exp(g[0, 0] + g[1, 0])])
