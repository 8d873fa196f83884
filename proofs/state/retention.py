"""Retention: recurrence, chunks and the matrix of all pairs are one function."""

import numpy as np

from posref import pairing
from posref.rotary import rope
from posref.state import _memory, retention
from proofs.kit import *
from proofs.kit.loops import Listed, Loop, Tokens, covers

N = size("n")
REST = [_memory.start]
EMPTY = {
    "recurrent: s, outputs = (start(k, v, state), [])  ->  s, outputs = (start(q, v, state), [])": "zeros of the same shape",
    "quadratic: s, tokens = (start(k, v, state), np.arange(k.shape[-2]))  ->  "
    "s, tokens = (start(q, v, state), np.arange(k.shape[-2]))": "zeros of the same shape",
}
FORMS = [retention.recurrent, retention.quadratic, retention.chunked, _memory.in_chunks, *REST]


def definition(q, k, v, g, scale, before, i, c):
    """o_i, feature c, of one head: s sum_{j<=i} g^(i-j) (q_i . k_j) v_j + s g^(i+1) q_i . S. Sun et al., Eq. (5) and (7)."""
    dot = lambda x, y: sum(a * b for a, b in zip(x, y, strict=True))
    read = sum(g ** (i - j) * dot(q[i], k[j]) * v[j][c] for j in range(i + 1))
    return scale * (read + g ** (i + 1) * dot(q[i], [row[c] for row in before]))


def left(k, v, g, before, a, c):
    """Entry (a, c) of the state after the last token. Sun et al., Eq. (7)."""
    n = len(k)
    return g**n * before[a][c] + sum(g ** (n - 1 - j) * k[j][a] * v[j][c] for j in range(n))


def text(n, heads=2, d=2, d_v=2):
    """q, k, v, decays, and the state before."""
    free = symbols("q", heads, n, d), symbols("k", heads, n, d), symbols("v", heads, n, d_v)
    return (*free, symbols("g", heads, positive=True), symbols("s", heads, d, d_v))


def numbers(x):
    return [numbers(each) for each in x] if getattr(x, "ndim", 0) else expression(x)


@theorem(of=[retention.quadratic, *REST], sizes="n = 1, 3, two heads, d = 2, d_v = 1")
def pinned():
    """Output and state are those of the paper's sums, head by head, with the state of an earlier text or without."""
    scale = symbol("r")
    for n in (1, 3):
        q, k, v, g, s = text(n, d_v=1)
        for state in (s, None):
            got = retention.quadratic(q, k, v, g, scale=scale, state=state)
            prove_that(got.output.shape == (2, n, 1) and got.state.shape == (2, 2, 1), "the axes")
            for h in range(2):
                before = numbers(s[h]) if state is not None else [[0], [0]]
                one = numbers(k[h]), numbers(v[h]), expression(g[h])
                stated = [definition(numbers(q[h]), *one, scale.e, before, i, 0) for i in range(n)]
                prove_equal(got.output[h, :, 0], stated, mention=[v[h, 0, 0], q[h, 0, 1], scale])
                prove_equal(got.state[h, :, 0], [left(*one, before, a, 0) for a in range(2)])


GIVEN = dict(zip(("q", "k", "v", "decays", "state"), text(3, 2, 1, 1), strict=True))
pinned.control_by("retention.attend", "own_token_decayed", **GIVEN, scale=1)
pinned.control_by("retention.attend", "chunk_mask_without_decay", **GIVEN, scale=1)
pinned.control_by("retention.remember", "state_decayed_once_less", **{x: GIVEN[x] for x in GIVEN if x != "q"})


@theorem(of=FORMS, sizes="n = 4, one head, d = 2, d_v = 1; chunks of 1 to 5 tokens", equivalent=EMPTY)
def three_forms():
    """Recurrence, chunks of any length and the quadratic form give the same outputs and the same state."""
    *given, s = text(4, 1, 2, 1)
    scale = symbol("r")
    whole = retention.quadratic(*given, scale=scale, state=s)
    others = [retention.chunked(*given, scale=scale, state=s, chunk=chunk) for chunk in range(1, 6)]
    for other in [retention.recurrent(*given, scale=scale, state=s), *others]:
        prove_equal(other.output, whole.output, mention=[scale])
        prove_equal(other.state, whole.state)


@three_forms.control
def each_chunk_begins_a_text():
    """The chunks are texts of their own: the state is not handed on."""
    q, k, v, g, _ = text(2, 1, 1, 1)
    parts = [retention.quadratic(*(x[:, t : t + 1] for x in (q, k, v)), g, scale=1).output for t in range(2)]
    prove_equal(np.concatenate(parts, axis=-2), retention.quadratic(q, k, v, g, scale=1).output)


@theorem(
    of=[retention.recurrent, *REST],
    sizes="every length; one head, d = 2, d_v = 1",
    argument="induction over the tokens: the body decides the first state, one turn and what is returned",
    silent="the loop is run turn by turn",
)
def every_length():
    """Before token t the state is g^t (S + P_t), where P_t is the sum of g^(-j-1) k_j v_j^T over j < t: so at first, and a turn
    goes on to t + 1 and reads scale q_t . S_t after it. So the recurrence is the sum of the definition at every length."""
    q, k, v, g, s = text(1, 1, 2, 1)
    loop, scale, t, so_far = Loop(retention.recurrent, 0), symbol("r"), symbol("t", integer=True), symbols("p", 1, 2, 1)
    first = loop.before({"q": q, "k": k, "v": v, "decays": g, "scale": scale, "state": s})
    prove_that(loop.turns(first) == [1] and first["outputs"] == [], "a turn for each token, and nothing is read before")
    prove_equal(first["s"], s)
    here = {name: Tokens(x, t) for name, x in zip("qkv", (q, k, v), strict=True)}
    turned = loop.turn({**first, **here, "s": (g**t)[:, None, None] * (s + so_far), "outputs": Listed()}, t=t)
    more = (g ** (-t - 1))[:, None, None] * k[:, 0, :, None] * v[:, 0, None, :]
    prove_equal(turned["s"], (g ** (t + 1))[:, None, None] * (s + so_far + more), mention=[g[0]])
    prove_equal(turned["outputs"][-1], scale * (q @ turned["s"]))
    rows = Listed(by=np.concatenate, axis=-2, joined=sized("o", 1, N, 1))
    done = loop.after({**first, "s": s, "outputs": rows})["returned"]
    prove_equal(*entries(None, done.output, sized("o", 1, N, 1)))
    prove_equal(done.state, s)
    covers(retention.recurrent)


@every_length.control
def the_new_key_decays_too():
    """The token's own key and value are multiplied by g."""
    *given, s = text(1, 1, 1, 1)
    got = retention.recurrent(*given, scale=1, state=s).state
    prove_equal(got, given[3][:, None, None] * (s + given[1][:, 0, :, None] * given[2][:, 0, None, :]))


@theorem(of=[retention.quadratic, *REST, rope.rotate, pairing.split, pairing.join], sizes="n = 3, d = 2, all frequencies")
def relative():
    """With queries and keys turned by their positions the output is the same when all positions are shifted: it sees i - j."""
    q, k, v, g, _ = text(3, 1, 2, 1)
    w, p, shift = symbols("w", 1), symbols("p", 3), symbol("m")

    def turned(at):
        return [rope.rotate(x, *rope.tables(at, w), layout="half") for x in (q, k)]

    for_shift = [retention.quadratic(*turned(p + m), v, g, scale=1).output for m in (shift, 0 * shift)]
    prove_equal(*for_shift, mention=[q[0, 2, 0], g[0]])


@relative.control
def order_does_not_matter():
    """Exchanging the first two tokens changes nothing for the last: the decays are in no order."""
    q, k, v, g, _ = text(3, 1, 1, 1)
    exchanged = (np.concatenate([x[:, 1::-1], x[:, 2:]], axis=-2) for x in (k, v))
    last = [retention.quadratic(q, *pair, g, scale=1).output[:, 2] for pair in (exchanged, (k, v))]
    prove_equal(*last)


@theorem(of=[retention.quadratic, *REST], sizes="n = 3, one head, d = 2, d_v = 1")
def the_gradient_is_the_text_backwards():
    """sum_i w_i . o_i = sum_j v_j . p_j + sum g s S T, where p and T are output and state of the text backwards, with w for
    values, queries for keys and keys for queries: so p is the gradient of the values and g s T that of the first state."""
    q, k, v, g, s = text(3, 1, 2, 1)
    w, scale = symbols("w", 1, 3, 1), symbol("r")
    read = retention.quadratic(q, k, v, g, scale=scale, state=s).output
    back = retention.quadratic(k[:, ::-1], q[:, ::-1], w[:, ::-1], g, scale=scale)
    stated = (v * back.output[:, ::-1]).sum() + (g[0] * scale * s * back.state).sum()
    prove_equal([(w * read).sum()], [stated], mention=[w[0, 2, 0], v[0, 0, 0], s[0, 1, 0]])


@the_gradient_is_the_text_backwards.control
def queries_and_keys_keep_their_places():
    """So it is without exchanging queries and keys."""
    q, k, v, g, _ = text(2, 1, 1, 1)
    w = symbols("w", 1, 2, 1)
    read = retention.quadratic(q, k, v, g, scale=1).output
    back = retention.quadratic(q[:, ::-1], k[:, ::-1], w[:, ::-1], g, scale=1).output[:, ::-1]
    prove_equal([(w * read).sum()], [(v * back).sum()])


@example(of=[retention.decays], sizes="h = 1 .. 16")
def decays_pinned():
    """Head h has the decay 1 - 2^(-5-h), which float64 holds exactly: 31/32 first."""
    for heads in range(1, 17):
        prove_that(retention.decays(heads).tolist() == [1 - 2.0 ** (-5 - h) for h in range(heads)], f"{heads} heads")


@decays_pinned.control
def heads_counted_from_one():
    """The first head has the decay 1 - 2^-6."""
    first = retention.decays(1).item()
    prove_that(first == 1 - 2.0**-6, counterexample=f"the first decay is {first}, expected {1 - 2.0**-6}")
