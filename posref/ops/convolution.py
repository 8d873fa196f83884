"""Short convolution: the functions to check, and the mistakes that implementations make."""

# Over budget: padding is masked, packed and put on both sides

import numpy as np

from posref.ops import Mistake, missing, using
from posref.ops.common import in_texts, transformed
from posref.ops.probe import painted
from posref.state import convolution


def convolve(x, kernel, bias, state, padding_mask=None):
    """The convolved features. `state` is the last width - 1 rows of the earlier text; rows of padding are read as 0."""
    x = x if padding_mask is None else np.where(padding_mask[..., None], x, 0)
    return convolution.causal(x, kernel, bias, state=state).output


def packed(x, kernel, bias, boundaries):
    """The convolved features of packed texts. Text m is rows boundaries[m] .. boundaries[m + 1] - 1."""
    return in_texts(convolution.causal, boundaries, x, kernel=kernel, bias=bias)


def keep(x, kernel, state):
    """The rows that the next text needs."""
    return convolution.causal(x, kernel, state=state).state


SPECTRAL = dict.fromkeys(
    ("convolve", "packed"), lambda a: transformed(np.concatenate([a.get("state", a.x[..., :0, :]), a.x], axis=-2), a.kernel)
)
EXTENTS = {"width": 4}
ASKED = ("padding_mask",)
ARRAYS = {
    "x": lambda s: painted((s.batch, s.n_key, s.head_dim), 1),
    "kernel": lambda s: painted((s.head_dim, s.width), 2),
    "bias": lambda s: painted((s.head_dim,), 4),
    "boundaries": lambda s: np.unique([0, s.n_key // 3, s.n_key // 3 + 1, s.n_key]),  # the second text has one token
    "state": lambda s: painted((s.batch, s.width - 1, s.head_dim), 6),
}


def _padding(s):
    """False at two rows of padding: before the first text, after the second, nowhere in the third, and so on."""
    text, row = np.arange(s.batch)[:, None] % 3, np.arange(s.n_key)
    return (row >= 2 * (text == 0)) & (row < s.n_key - 2 * (text == 1))


ARRAYS["padding_mask"] = _padding


def _shifted(f, a):
    """The convolution of rows that are one token older."""
    rows = np.concatenate([a.state, a.x], axis=-2)
    oldest = np.concatenate([0 * rows[..., :1, :], rows[..., : a.state.shape[-2] - 1, :]], axis=-2)
    return f(**a | {"x": rows[..., a.state.shape[-2] - 1 : -1, :], "state": oldest})


def _token_twice(a):
    """Taps for rows that are one token newer: the last kept row is then the token itself."""
    oldest, kept, newest, own = 0 * a.kernel[:, :1], a.kernel[:, :-2], a.kernel[:, -2:-1], a.kernel[:, -1:]
    return np.concatenate([oldest, kept, newest + own], axis=-1) if newest.size else missing()


def _one_row_behind(f, a):
    """The first width - 1 rows of a cache of `width` rows."""
    return f(**a | {"state": np.concatenate([0 * a.state[..., :1, :], a.state[..., :-1, :]], axis=-2)})


MISTAKES = {
    "kernel_turned_around": Mistake(using(kernel=lambda a: a.kernel[:, ::-1]), only="convolve").words("""
        y_i = sum_t w_t x_{i-t}: the kernel is reversed
        The first tap weighs the token itself.
        The last column of the kernel belongs to the token."""),
    "one_token_late": Mistake(_shifted).words("""
        y_i is that of token i - 1: one zero too many in front
        No token sees itself.
        Put width - 1 zeros in front, not width, or cut the output in front."""),
    "state_one_row_ahead": Mistake(using(kernel=_token_twice), kind="rows", only="convolve").words("""
        the kept rows are one token too new: the cache was updated before it was read
        Decoding reads each token twice and leaves out the oldest row.
        Read the rows, then move them on."""),
    "state_one_row_behind": Mistake(_one_row_behind, kind="rows").words("""
        the kept rows are one token too old: the first width - 1 of a cache of width rows are read
        In decoding the convolution does not see the token before.
        Read the last width - 1 rows of the cache."""),
    "state_in_reverse": Mistake(using(state=lambda a: a.state[..., ::-1, :])).words("""
        the kept rows stand with the newest first
        Neighbours are exchanged after each call.
        The oldest row comes first."""),
    "bias_left_out": Mistake(using(bias=lambda a: 0 * a.bias)).words("""
        b is not added
        Every output is off by one vector.
        Add the bias of the convolution."""),
    "one_kernel_for_all": Mistake(using(kernel=lambda a: 0 * a.kernel + a.kernel[:1]), only="convolve").words("""
        all features use the kernel of feature 0
        Feature 0 is right and no other.
        Use one row of taps per feature: depthwise, groups = features."""),
}


def _padded_on_both_sides(left):
    """left(width - 1) zeros before the text and the other zeros after it, without a state."""

    def wrong(f, a):
        rows = a.state.shape[-2]
        early = rows - left(rows)
        if not 0 < early < a.x.shape[-2]:
            missing()
        zeros = 0 * a.state
        padded = np.concatenate([zeros[..., early:, :], a.x, zeros[..., :early, :]], axis=-2)
        return f(**a | {"x": padded[..., rows:, :], "state": padded[..., :rows, :]})

    return wrong


def _masked(change):
    """Another use of the padding mask: change(convolved, x, tokens), where convolved(x) ignores the mask."""

    def wrong(f, a):
        tokens = a.padding_mask[..., None] if a.padding_mask is not None else missing()
        return change(lambda x: f(**a | {"x": x, "padding_mask": None}), a.x, tokens)

    return Mistake(wrong, kind="padded", only="convolve")


FURTHER = {
    "padding_ignored": _masked(lambda convolved, x, tokens: convolved(x)).words("""
        the padding mask is ignored: the rows of padding are read
        The first width - 1 tokens behind padding are wrong.
        Set the rows of padding to 0 before the convolution."""),
    "masked_after_instead": _masked(lambda convolved, x, tokens: tokens * convolved(x)).words("""
        the padding mask is applied to the output instead of the input
        The first width - 1 tokens behind padding are wrong, and padding is 0.
        Set the rows of padding to 0 before the convolution."""),
    "masked_after_too": _masked(lambda convolved, x, tokens: tokens * convolved(tokens * x)).words("""
        the padding mask is applied to the output as well
        Tokens are right; padding is 0, as Mamba has it, instead of its bias and the tokens before.
        Leave the output as it is here; a model that masks it again, as Mamba does, does so behind this function."""),
    "padding_mask_inverted": _masked(lambda convolved, x, tokens: convolved(~tokens * x)).words("""
        the padding mask is inverted: the rows of tokens are set to 0
        Nothing but padding is read.
        True means a token; invert a mask of the other convention once."""),
} | {
    name: Mistake(_padded_on_both_sides(left), kind="rows", only="convolve").words(f"""
        zeros are put on both sides of the text, {words}; the state is not read
        Tokens see the future.
        Put all width - 1 rows in front: the state, or zeros where there is none.""")
    for name, words, left in (
        ("padded_on_both_sides", "width // 2 of them in front", lambda rows: (rows + 1) // 2),
        (
            "padded_as_same",
            "(width - 1) // 2 of them in front, as padding='same'",
            lambda rows: rows // 2 if rows % 2 else missing(),
        ),
    )
}


def _across(taps):
    """Taps of tokens so far back that read across the boundaries of packed texts."""

    def wrong(f, a):
        width = a.kernel.shape[1]
        across = a.kernel * (np.isin(width - 1 - np.arange(width), taps) if max(taps) < width else missing())
        ends = {"kernel": across, "bias": 0 * a.bias, "boundaries": a.boundaries[[0, -1]]}
        return f(**a | {"kernel": a.kernel - across}) + f(**a | ends)

    return wrong


FURTHER |= {
    f"taps_{'_and_'.join(map(str, taps))}_back_across_texts": Mistake(
        _across(taps), kind="boundaries", only="packed"
    ).words(f"""
        the terms in {" and ".join(f"x_{{i-{tap}}}" for tap in taps)} read the text before, as if there were no boundary
        The first tokens of a text see the end of the text before.
        Compare the text of every tap with that of the token.""")
    for taps in ((1,), (2,), (3,), (1, 2), (1, 3), (2, 3))
}

CAUSAL = True
SCORES = "it mixes each token with the tokens before it, in front of attention"


def _head(t):
    """Attention on words after a convolution."""
    y = convolution.causal(t.x, t.parameter(t.dim, 4)).output
    return t.attended(*t.projected(y))
