"""DeBERTa: the functions to check, and the mistakes that implementations make."""

# Over budget: three models with conventions of their own, three terms, and gradients

import numpy as np

from posref import _require, attention
from posref import offsets as relative
from posref.ops import Mistake, inside, missing, result, using
from posref.ops.common import OVERWRITTEN, entry, last_wins, summed_as
from posref.ops.probe import painted
from posref.relative import deberta

index = deberta.position_index
ends = deberta.bucket_ends
log_bucket = deberta.log_bucket


def scores(q, k, q_r, k_r, query_positions, key_positions, *, terms="c2p+p2c", convention):
    return _scores(q, k, q_r, k_r, relative.offsets(query_positions, key_positions), terms, convention)


def log_scores(q, k, q_r, k_r, query_positions, key_positions, *, terms="c2p+p2c", convention, buckets, max_position, source):
    offset = relative.offsets(query_positions, key_positions)
    offset = deberta.log_bucket(offset, buckets=buckets, max_position=max_position, source=source)
    return _scores(q, k, q_r, k_r, offset, terms, convention)


def scores_gradient(score_gradient, q, k, q_r, k_r, query_positions, key_positions, *, convention, of):
    offset = relative.offsets(query_positions, key_positions)
    offset, inputs = offset[:, None] if offset.ndim == 3 else offset, {"q": q, "k": k, "q_r": q_r, "k_r": k_r}
    given = {"offsets": offset, "scale": 1 / np.sqrt(3 * q.shape[-1]), "convention": convention}
    return summed_as(entry(deberta.scores_gradient(score_gradient, **inputs, **given), of), inputs[of])


def decoder(hidden, positions, *, convention, steps=2):
    return deberta.enhanced_mask_decoder(_layer, hidden, positions, steps=steps, convention=convention)


def _scores(q, k, q_r, k_r, offset, terms, convention):
    _require.choice("deberta.scores", "terms", terms, ("c2p+p2c", "c2p", "p2c", "+"))
    terms = terms.split("+")
    rows = q_r if "p2c" in terms else None, k_r if "c2p" in terms else None
    offset = offset[:, None] if offset.ndim == 3 else offset
    scale = 1 / np.sqrt(q.shape[-1] * (1 + len(terms)))
    return deberta.scores(q, k, *rows, offset, scale=scale, convention=convention)


def _layer(query, hidden):
    return query + attention.attend(query, hidden, hidden, scale=1)


def _up_to(n):
    return np.arange(-n, n + 1)


ARRAYS = {
    "offsets": lambda s: _up_to(3 * s.span if "span" in s else s.max_position),
    "q_r": lambda s: painted((s.heads, s.get("buckets", 8) * 2 if "buckets" in s else 8, s.head_dim), 6),
    "k_r": lambda s: painted((s.heads, s.get("buckets", 8) * 2 if "buckets" in s else 8, s.head_dim), 8),
    "hidden": lambda s: painted((s.batch, s.n_key, s.head_dim), 1),
    "positions": lambda s: painted((s.n_key, s.head_dim), 2),
    "score_gradient": lambda s: painted((s.batch, s.heads, s.n_query, s.n_key), 9),
}


def _position_to_position(right):
    """The scores plus the fourth term of the paper, q_r . k_r."""

    def scores(q, k, q_r, k_r, offsets, *, scale, convention):
        if q_r is None or k_r is None:
            missing()
        span = k_r.shape[-2] // 2
        rows = deberta.position_index(-offsets if convention == "paper" else offsets, span=span)
        products = (q_r @ np.swapaxes(k_r, -1, -2)).reshape(*q_r.shape[:-2], -1)
        added = relative.gather(products, 2 * span * rows + deberta.position_index(offsets, span=span), 0)
        return right(q, k, q_r, k_r, offsets, scale=scale, convention=convention) + scale * added

    return scores


def _one_term(right):
    return lambda q, *rest, scale, convention: right(q, *rest, scale=1 / np.sqrt(q.shape[-1]), convention=convention)


def _content_alone(right):
    def scores(q, k, *rest, scale, convention):
        return right(q, k, *rest, scale=1, convention=convention) - (1 - scale) * (q @ np.swapaxes(k, -1, -2))

    return scores


def _symmetric(right):
    return lambda offsets, *, span: right(np.clip(offsets, 1 - span, span - 1), span=span)


def _ends(rule, dtype=float):
    """Other logarithmic buckets: rule(n, mid, max_position) is the bucket of the distance n beyond mid."""

    def ends(buckets, max_position):
        mid = buckets // 2
        n = np.arange(1, 4 * max_position, dtype=dtype)
        bucket = np.where(n <= mid, n, rule(n, dtype(mid), dtype(max_position)))
        return np.array([int(n[bucket <= i].max(initial=0)) for i in range(buckets)])

    return inside(deberta, "bucket_ends", lambda right: ends)


def _steps(n, mid, last):
    return np.log(n / mid) / np.log(last / mid) * (mid - 1)


def _steps_f32(n, mid, max_position):
    fraction = np.log(n / mid).astype(np.float32) / np.log(np.float32((max_position - 1) / mid))
    return np.ceil(fraction * (mid - np.float32(1))) + mid


def _to(length):
    """The logarithm ends at `length` instead of max_position; offsets are clipped correctly."""

    def log_bucket(offsets, *, buckets, max_position, source):
        far, mid = max_position - (source == "microsoft"), buckets // 2
        if not mid + 1 < length != max_position:
            missing()
        n = np.minimum(np.abs(offsets), far)
        far_bucket = np.ceil(_steps(np.maximum(n, mid), mid, length - 1) - 1e-12) + mid
        return np.sign(offsets) * np.where(n <= mid, n, far_bucket).astype(int)

    return inside(deberta, "log_bucket", lambda right: log_bucket)


def _keys_follow(right):
    def decoder(layer, hidden, positions, *, steps, convention):
        query = hidden + positions if convention == "released" else np.broadcast_to(positions, hidden.shape)
        for _ in range(steps):
            query = hidden = layer(query, hidden)
        return query

    return decoder


def _other(right):
    """The other one of two conventions; NotHere if the convention asked for is not in `right`."""
    return using(
        convention=lambda a: {"released": "paper", "paper": "released"}[a.convention if a.convention in right else missing()]
    )


MISTAKES = {
    "rows_overwritten": OVERWRITTEN._replace(
        wrong=inside(deberta, "scatter_rows", lambda right: last_wins), only="scores_gradient"
    ),
    "gradient_unscaled": Mistake(
        result(lambda y, a: y * np.sqrt(3 * a.q.shape[-1])), kind="gradient", only="scores_gradient"
    ).words("""
        the gradient is not scaled
        It is sqrt(3 d) times too large.
        Multiply all four gradients by the scale: 1/sqrt(3 d) with both position terms."""),
    "content_gradient_alone": Mistake(
        using(
            q_r=lambda a: 0 * a.q_r if a.get("of") in ("q", "k") else missing(),
            k_r=lambda a: 0 * a.k_r if a.get("of") in ("q", "k") else missing(),
        ),
        kind="gradient",
        only="scores_gradient",
    ).words("""
        ds k, ds^T q: the gradients of queries and keys leave out the rows of positions
        Queries and keys learn from contents alone.
        Add what the position terms give: queries learn from the rows k_r, keys from q_r."""),
    "paper_index": Mistake(_other(["released"]), seen_in=("nntrainer/nntrainer#3982",), only="scores log_scores").words("""
        position-to-content reads the paper's row delta(j, i) with released weights
        Every score off the diagonal is wrong for published checkpoints.
        Read row delta(i, j) in both terms for published checkpoints."""),
    "released_index": Mistake(_other(["paper"]), seen_in=("microsoft/DeBERTa#162",), only="scores log_scores").words("""
        position-to-content reads the row delta(i, j) of content-to-position where the paper is meant
        What all published code does, and not Eq. (4).
        Read row delta(j, i) in position-to-content, as Eq. (4) has it."""),
    "direction": Mistake("sign").words("""
        j - i + K: the offset has the wrong sign in both terms
        Left and right change places.
        Take i - j + K, query minus key."""),
    "symmetric_clip": Mistake(inside(deberta, "position_index", _symmetric)).words("""
        offsets are clipped to K - 1 on both sides, so row 0 is never read
        Keys far to the right read row 1.
        Clip i - j + K to 0 .. 2K - 1; row 0 is that of keys K or more to the right."""),
    "clip_one_late": Mistake(
        inside(deberta, "position_index", lambda right: lambda offsets, *, span: np.clip(span - offsets, 0, 2 * span)),
        only="index",
    ).words("""
        offsets are clipped to 2K, though the last row of the table is 2K - 1
        Keys K or more to the left read beyond the table.
        Clip i - j + K to 0 .. 2K - 1."""),
    "rows_exchanged": Mistake(using(q_r=lambda a: a.k_r, k_r=lambda a: a.q_r)).words("""
        q_r and k_r, the two projections of positions, are exchanged
        Both terms are wrong.
        Let queries meet k_r and keys meet q_r."""),
    "scale_of_one_term": Mistake(inside(deberta, "scores", _one_term)).words("""
        1/sqrt(d): the scale does not count the terms
        Scores are sqrt(3) times too large.
        Count the terms: 1/sqrt(d (1 + position terms)), which is 1/sqrt(3 d) with both."""),
    "content_alone_scaled": Mistake(inside(deberta, "scores", _content_alone)).words("""
        the scale covers q k^T alone, not the position terms
        Positions weigh too much.
        Add up the terms first, then multiply the sum by the scale."""),
    "position_to_position": Mistake(inside(deberta, "scores", _position_to_position)).words("""
        the fourth term q_r . k_r is added
        Scores gain a bias of position.
        Leave out q_r . k_r; the score has three terms."""),
    "positions_ignored": Mistake("positions_ignored").words("""
        the positions given are replaced by 0, 1, 2, ..: queries start at 0 with fewer queries than keys
        Fewer queries than keys are misplaced."""),
    "no_log_buckets": Mistake(inside(deberta, "log_bucket", lambda right: lambda offsets, **_: offsets)).words("""
        the offsets of version 1 are used with the table of version 2, which has buckets
        Far keys are all clipped.
        Put the offsets through log_bucket before they become rows."""),
    "rounded_down": Mistake(_ends(lambda n, mid, top: np.floor(_steps(n, mid, top - 1) + 1e-11) + mid)).words("""
        the logarithm is rounded down instead of up
        Most far offsets are one bucket too near.
        Round the logarithm up, with ceil."""),
    "logarithm_to_max_position": Mistake(_ends(lambda n, mid, top: np.ceil(_steps(n, mid, top) - 1e-12) + mid)).words("""
        log(max_position / m) in place of log((max_position - 1) / m)
        Far offsets are in nearer buckets.
        Divide by log((max_position - 1) / m)."""),
    "sequence_length": Mistake(_to(300), seen_in=("NVIDIA/TensorRT#3370",)).words("""
        the logarithm runs to the length of the input instead of max_position
        Right for inputs of max_position tokens alone.
        Take max_position from the configuration, whatever the length of the input."""),
    "f32_logarithm": Mistake(_ends(_steps_f32, np.float32)).words("""
        the logarithm is computed in float32, which rounds a tie up
        Wrong at some ties, not with 256 and 512.
        Compare distances with the exact ends of the buckets (deberta.bucket_ends)."""),
    "other_source": Mistake(using(source=lambda a: "transformers" if a.source == "microsoft" else "microsoft")).words("""
        the table's ends are those of the other code: microsoft/DeBERTa clips offsets first, transformers does not
        Rows 0 and 1 change places.
        Clip the offsets to max_position - 1 for weights of microsoft/DeBERTa; leave them for transformers."""),
    "other_start": Mistake(_other(["paper", "released"]), only="decoder").words("""
        the first query is H + p instead of p, or the reverse
        Another decoder.
        Start from p for the paper, from H + p for the released code."""),
    "one_step": Mistake(using(steps=1)).words("""
        the last layer runs once instead of twice
        A decoder without its second step.
        Run the last layer `steps` times; each output is the next query."""),
    "keys_follow": Mistake(inside(deberta, "enhanced_mask_decoder", _keys_follow)).words("""
        later steps take keys and values from the output of the first step
        Another decoder.
        Keep H for keys and values in every step; the query alone changes."""),
}


def _decoder(start, following):
    """Another decoder: start(hidden, positions) gives the first query and the keys, following(query, positions) each later
    query."""

    def decoder(layer, hidden, positions, *, steps, convention):
        query, keys = start(hidden, positions) if convention == "released" else missing()
        for step in range(steps):
            query = layer(following(query, positions) if step else query, keys)
        return query

    return decoder


FURTHER = {
    **{
        f"sequence_length_{n}": Mistake(_to(n)).words(f"""
            the logarithm runs to {n} tokens, the length of the input, instead of max_position
            Right for inputs of max_position tokens alone.
            Take max_position from the configuration, whatever the length of the input.""")
        for n in (128, 256, 384, 512, 1024)
    },
    "positions_in_the_keys": Mistake(
        inside(deberta, "enhanced_mask_decoder", lambda right: _decoder(lambda h, p: (h + p, h + p), lambda q, p: q))
    ).words("""
        positions are added to the keys and values of the decoder, not to its first query alone
        Another decoder.
        Add the positions to the first query; H stays as it is."""),
    "positions_in_each_step": Mistake(
        inside(deberta, "enhanced_mask_decoder", lambda right: _decoder(lambda h, p: (h + p, h), lambda q, p: q + p))
    ).words("""
        positions are added to the query before every step, not the first alone
        Positions count twice.
        Add the positions to the first query; each output is the next query."""),
    "positions_after_the_last_step": Mistake(
        lambda f, a: f(**a | {"positions": 0 * a.positions}) + a.positions if a.convention == "released" else missing(),
        only="decoder",
    ).words("""
        positions are added to the output of the decoder
        Its attention sees no positions.
        Add the positions to the first query."""),
}

SCORES = {
    "deberta c2p": ("one", "c2p", "one", "c2p"),
    "deberta p2c": ("one", "one", "p2c", "p2c"),
    "deberta": ("one", "c2p", "p2c", "c2p + p2c"),
}


def _head(t):
    q, k, v = t.projected(t.x)
    rows = t.parameter(8, t.dim)
    q_r, k_r = rows @ t.parameter(t.dim, t.dim), rows @ t.parameter(t.dim, t.dim)
    return t.scored(deberta.scores(q, k, q_r, k_r, t.offsets, scale=(3 * t.dim) ** -0.5, convention="paper"), v)
