"""Forgetting attention: the functions to check, and the mistakes that implementations make."""

import numpy as np

from posref.ops import Mistake, inside, instead, missing, using
from posref.ops.common import of_the_first
from posref.ops.probe import ending, painted
from posref.relative import forgetting

log_sigmoid = forgetting.log_sigmoid
bias = forgetting.bias


ARRAYS = {
    "x": lambda s: ending(4 * painted((s.batch, s.heads, s.n_key), 1), 40, -40, 100, -100),
    "log_gates": lambda s: -np.abs(painted((s.batch, s.heads, s.n_key), 2)),
}


def _one_token_early(log_gates, form):
    """The gates from the key to the token before the query: the key's own gate instead of the query's."""
    c = np.cumsum(log_gates, axis=-1) - log_gates
    return -c[..., None, :] if form == "key" else c[..., :, None] - c[..., None, :]


def _both_gates(f, a):
    return f(**a) + a.log_gates[..., None, :] if a.form == "difference" else missing()  # as a key form it is the one above


MISTAKES = {
    "gate_not_logarithm": Mistake(inside(forgetting, "log_sigmoid", lambda right: lambda x: 1 / (1 + np.exp(-x)))).words("""
        f instead of ln f: the logarithm is left out
        What should be forgotten is rewarded.
        Add the logarithm of the gate to the scores."""),
    "gate_of_the_negative": Mistake(using(x=lambda a: -a.x)).words("""
        ln(1 - f): the gate is read as the share that is forgotten
        Tokens that should keep forget.
        f = 1 keeps everything."""),
    "sign": Mistake(inside(forgetting, "bias", lambda right: lambda x, *, form: -right(x, form=form)))
    .words("""
        c_j - c_i: the difference has the wrong sign
        Far tokens are preferred.
        The bias is 0 or below for keys in the past.""")
    .where("""form=key
        c_j where -c_j is asked for: the running sum has the wrong sign
        Far tokens are preferred.
        The bias -c_j grows with the position of the key."""),
    "key_gate_included": Mistake(instead(_one_token_early)).words("""
        the sum runs over j .. i - 1: the key's gate is included and the query's is not
        Each token forgets itself and not what was before it.
        Sum the gates of j + 1 .. i: the running sum includes the token itself."""),
    "both_gates_included": Mistake(_both_gates).words("""
        the sum runs over j .. i: the key's own gate is included
        Every token forgets a part of itself: the diagonal is not 0.
        Sum the gates of j + 1 .. i: c_i - c_j, both sums inclusive."""),
    "not_summed": Mistake(
        using(log_gates=lambda a: np.concatenate([a.log_gates[..., :1], np.diff(a.log_gates, axis=-1)], axis=-1))
    ).words("""
        ln f_i - ln f_j: the gates are not summed
        A gate acts on its own token alone.
        Take running sums along the sequence."""),
    "summed_over_heads": Mistake(
        using(
            log_gates=lambda a: (
                np.cumsum(a.log_gates, axis=-2)
                - np.concatenate([0 * a.log_gates[..., :1], np.cumsum(a.log_gates, axis=-2)[..., :-1]], axis=-1)
            )
        )
    ).words("""
        the running sums go along the heads instead of the tokens
        Gates of one head act in the next.
        Put heads before the sequence."""),
    "gates_of_the_first_head": Mistake(of_the_first("log_gates", -2)).words("""
        all heads use the gates of head 0; even with grouped keys each query head has its own gate
        Head 0 is right and no other.
        One gate a query head."""),
}

CAUSAL = True
SCORES = "each token in between lowers the score by its gate; alibi signed where all gates are equal"


def _head(t):
    gates = forgetting.log_sigmoid(t.x @ t.parameter(t.dim) + t.parameter(1))
    return t.attended(*t.projected(t.x), forgetting.bias(gates[None], form="difference")[0])
