"""Shared by the state systems: gates between two tokens, a first state, and a text in chunks."""

import numpy as np

from posref.state import _memory, delta, gated, retention
from proofs.kit import *
from proofs.kit.loops import Listed, Loop, Tokens, covers
from proofs.state import delta as of_delta
from proofs.state import gated as of_gates
from proofs.state import retention as of_retention

N = size("n")


@theorem(of=[_memory.pairs], sizes="n = 3, d = 2; a gate for each feature, or one")
def pairs_pinned():
    """Entry (i, j) is sum_a q_ia exp(c_ia - c_ja) k_ja for j <= i, and 0 beyond."""
    q, k = symbols("q", 3, 2), symbols("k", 3, 2)
    for c in (symbols("c", 3, 2), symbols("c", 3, 1)):
        got, each = _memory.pairs(q, k, c), np.broadcast_to(c, (3, 2))
        for i, j in np.ndindex(3, 3):
            stated = sum(q[i, a] * np.exp(each[i, a] - each[j, a]) * k[j, a] for a in range(2)) if j <= i else 0
            prove_equal([got[i, j]], [stated])


@pairs_pinned.control
def the_future_counts():
    """Keys after the query have their sum too."""
    q, k, c = symbols("q", 2, 1), symbols("k", 2, 1), symbols("c", 2, 1)
    prove_equal(_memory.pairs(q, k, c), (np.exp(c - c.T) * q) * k.T)


@theorem(
    of=[_memory.start, _memory.laid],
    sizes="batch 2, n = 2, d = 2, d_v = 3",
    as_written="formula",
    equivalent={
        f"start: empty = 0 * (k[..., 0, :, None] * v[..., 0, None, :])  ->  empty = 0 * ({other})": "zeros of the same shape"
        for other in (
            "k[..., -1, :, None] * v[..., 0, None, :]",
            "k[..., 1, :, None] * v[..., 0, None, :]",
            "k[..., 0, :, None] * v[..., -1, None, :]",
            "k[..., 0, :, None] * v[..., 1, None, :]",
            "k[..., 0, :, None] + v[..., 0, None, :]",
        )
    },
)
def start_pinned():
    """Without a state it is zeros, keys by values; a state is read as it is for "kv", with its axes exchanged for "vk"."""
    k, v, s = symbols("k", 2, 2, 2), symbols("v", 2, 2, 3), symbols("s", 2, 2, 3)
    exchanged = np.swapaxes(s, -1, -2)
    prove_equal(_memory.start(k, v, None), np.zeros((2, 2, 3), dtype=int))
    prove_equal(_memory.start(k, v, s), s)
    prove_equal(_memory.start(k, v, exchanged, "vk"), s)
    prove_equal(_memory.laid(s, "vk"), exchanged)
    prove_equal(_memory.laid(s, "kv"), s)


@start_pinned.control
def values_by_keys():
    """A square state is read the same in both layouts."""
    k, v, s = symbols("k", 1, 2), symbols("v", 1, 2), symbols("s", 2, 2)
    prove_equal(_memory.start(k, v, s, "vk"), s)


@theorem(
    of=[_memory.in_chunks],
    sizes="every number of chunks, every form",
    argument="induction over the chunks: the body decides the first state, one turn and what is returned",
    silent="the loop is run turn by turn",
)
def every_chunk():
    """Each turn hands the state on to the next `chunk` tokens, from the first token on, and keeps the outputs in order."""
    loop, x, s = Loop(_memory.in_chunks, 0), symbols("x", 5, 1), symbols("s", 2)
    form = lambda x, *, state: _memory.Remembered(x + state[0], state + x[0])
    names = loop.before({"form": form, "chunk": 2, "state": s, "arrays": [x]})
    prove_that(loop.turns(names) == [0, 5, 2], "each chunk begins where the one before ends")
    prove_that(names["outputs"] == [], "nothing is kept before the first")
    now = symbols("z", 2)
    first, some = symbol("first", integer=True), symbols("y", 3, 1)
    turned = loop.turn({**names, "arrays": [Tokens(some, first)], "state": now, "outputs": Listed()}, first=first)
    prove_that(len(turned["outputs"].added) == 1, "one output more")
    prove_equal(turned["outputs"][-1], some[:2] + now[0])
    prove_equal(turned["state"], now + some[0])
    kept = Listed(by=np.concatenate, axis=-2, joined=sized("o", N, 1))
    done = loop.after({**names, "state": now, "outputs": kept})["returned"]
    prove_equal(*entries(None, done.output, sized("o", N, 1)))
    prove_equal(done.state, now)
    covers(_memory.in_chunks)


@every_chunk.control
def each_chunk_gets_the_first_state():
    """The state before the text is handed to each chunk."""
    x, s = symbols("x", 2, 1), symbols("s", 1)
    form = lambda x, *, state: _memory.Remembered(x + state, state + x[0])
    prove_equal(_memory.in_chunks(form, 1, s, x).output, x + s)


@theorem(
    of=[form for system in (retention, gated, delta) for form in (system.recurrent, system.quadratic)],
    sizes="chunks of 1 to 4 tokens, 1 to 3 for delta, hence every length; one head, d = 2, d_v = 1",
    argument="induction over the chunks: every_chunk hands the state on, and a chunk is as many turns of the recurrence",
)
def chunks_are_turns():
    """From any state a chunk reads what as many turns of the recurrence read, and leaves the same state: so the chunked forms
    are the recurrence at every length."""
    texts = (
        (retention, of_retention.text(4, 1, 2, 1), 4, {}),
        (gated, [x[None] for x in of_gates.text(4)], 4, of_gates.KV),
        (delta, [x[None] for x in of_delta.text(3)], 3, of_delta.KV),
    )
    for system, (*given, state), most, told in texts:
        for n in range(1, most + 1):
            tokens = [x[:, :n] if x.ndim > 1 else x for x in given]
            chunk, turns = (f(*tokens, scale=symbol("r"), state=state, **told) for f in (system.quadratic, system.recurrent))
            prove_equal(chunk.output, turns.output)
            prove_equal(chunk.state, turns.state)


@chunks_are_turns.control
def turns_from_no_state():
    """A chunk reads what the turns of a new text read."""
    *given, s = (x[None] for x in of_gates.text(1))
    chunk = gated.quadratic(*given, scale=1, state=s, **of_gates.KV)
    prove_equal(chunk.output, gated.recurrent(*given, scale=1, **of_gates.KV).output)
