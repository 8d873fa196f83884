"""Forgetting attention: what an implementation can be asked for, and how it goes wrong."""

import numpy as np

from posref.ops import inside, instead, missing, using, with_words
from posref.ops.probe import ending, painted
from posref.relative import forgetting

log_sigmoid = forgetting.log_sigmoid
bias = forgetting.bias


ARRAYS = {
    "x": lambda s: ending(4 * painted((s.batch, s.heads, s.n_key), 1), 40, -40, 100, -100),
    "log_gates": lambda s: -np.abs(painted((s.batch, s.heads, s.n_key), 2)),
}


def _one_token_early(log_gates, form):
    """The key's own gate instead of the query's."""
    c = np.cumsum(log_gates, axis=-1) - log_gates
    return -c[..., None, :] if form == "key" else c[..., :, None] - c[..., None, :]


def _both_gates(f, a):
    return f(**a) + a.log_gates[..., None, :] if a.form == "difference" else missing()  # as a key form it is the one above


MISTAKES = with_words(
    __name__,
    gate_not_logarithm=inside(forgetting, "log_sigmoid", lambda right: lambda x: 1 / (1 + np.exp(-x))),
    gate_of_the_negative=using(x=lambda a: -a.x),
    sign=inside(forgetting, "bias", lambda right: lambda x, *, form: -right(x, form=form)),
    key_gate_included=instead(_one_token_early),
    both_gates_included=_both_gates,
    not_summed=using(log_gates=lambda a: np.concatenate([a.log_gates[..., :1], np.diff(a.log_gates, axis=-1)], axis=-1)),
    summed_over_heads=using(
        log_gates=lambda a: (
            np.cumsum(a.log_gates, axis=-2)
            - np.concatenate([0 * a.log_gates[..., :1], np.cumsum(a.log_gates, axis=-2)[..., :-1]], axis=-1)
        )
    ),
    gates_of_the_first_head=using(log_gates=lambda a: np.broadcast_to(a.log_gates[..., :1, :], a.log_gates.shape)),
)

CAUSAL = True
SCORES = "gates of the tokens in between; alibi signed where they are constant"


def _head(t):
    gates = forgetting.log_sigmoid(t.x @ t.parameter(t.dim) + t.parameter(1))
    return t.attended(*t.projected(t.x), forgetting.bias(gates[None], form="difference")[0])
