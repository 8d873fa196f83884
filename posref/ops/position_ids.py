"""Position ids: what an implementation can be asked for, and how it goes wrong."""

import numpy as np

from posref import attention, position_ids
from posref.ops import Mistake, instead, missing, using, with_words
from posref.ops.common import count
from posref.ops.probe import keys_at


def padded(mask, *, filler=0, n_query=None):
    # of the last n_query tokens alone, as in a step of decoding
    return _last(position_ids.padded(mask == 1, filler=filler), n_query)


packed = position_ids.packed
documents = position_ids.documents


def document_mask(lengths, *, causal=True):
    of = position_ids.documents(lengths)
    same = of[:, None] == of[None, :]
    return same & attention.causal_mask(np.arange(len(of)), np.arange(len(of))) if causal else same


def tree(parents):
    # drafts of speculative decoding: the root is its own parent
    return _ancestors(parents).sum(axis=-1) - 1


def tree_mask(parents):
    return _ancestors(parents)


cached = position_ids.cached
zigzag = position_ids.zigzag


def streaming(n, *, sinks, window):
    return np.stack(position_ids.streaming(n, sinks=sinks, window=window))


def self_extend(query_positions, key_positions, *, group, window, phase):
    found = position_ids.self_extend(query_positions, key_positions, group=group, window=window, phase=phase)
    return _past(found, query_positions, key_positions)


def rerope(query_positions, key_positions, *, window, leak=None):
    found = position_ids.rerope(query_positions, key_positions, window=window, leak=leak)
    return _past(found, query_positions, key_positions)


def lambda_mask(query_positions, key_positions, *, window, sinks):
    return position_ids.lambda_mask(query_positions, key_positions, window=window, sinks=sinks) * 1


def dual_chunk(query_positions, key_positions, *, chunk_size, local):
    found = position_ids.dual_chunk(query_positions, key_positions, chunk_size=chunk_size, local=local)
    return _past(found, query_positions, key_positions)


multimodal = position_ids.multimodal
temperature = position_ids.temperature


def _last(ids, n):
    return ids if n is None else ids[..., ids.shape[-1] - n :]


def _ancestors(parents):
    """True where the column is the row itself or an ancestor."""
    n = len(parents)
    if (parents < 0).any() or (parents > np.arange(n)).any():
        raise ValueError("position_ids.tree: parents come before their children, and the root is its own")
    found = np.eye(n, dtype=bool)
    for _ in range(n):
        found = found | found[parents]
    return found


def _past(offsets, query_positions, key_positions):
    """Keys after the query are not attended to: 0, and any number is as good."""
    return np.where(attention.causal_mask(query_positions, key_positions), offsets, 0)


def _of_rows(parts):
    """Parts as rows of three numbers: (tokens, 0, 0) is text."""
    return [int(a) if b == 0 else (int(a), int(b), int(c)) for a, b, c in parts]


def _otherwise(change):
    """`change` where it changes anything."""

    def wrong(f, a):
        other = _last(change(a), a.n_query) if "filler" in a else change(a)
        return other if not np.array_equal(other, f(**a)) else missing()

    return wrong


def _of_the_first_length(lengths):
    return np.arange(lengths.sum()) % max(lengths[0], 1)


def _end_to_the_document_before(lengths):
    return np.searchsorted(np.cumsum(lengths), np.arange(lengths.sum()), side="left")


def _in_stripes(a):
    return np.arange(a.rank, a.n, a.ranks)


def _second_chunk_in_order(a):
    chunk = a.n // (2 * a.ranks)
    return np.concatenate([np.arange(chunk) + first * chunk for first in (a.rank, a.ranks + a.rank)])


def _contiguous(a):
    return np.arange(a.n // a.ranks) + a.rank * (a.n // a.ranks)


def _at_places_of_the_text(f, a):
    kept, positions = f(**a)
    return np.stack([kept, kept]) if (kept != positions).any() else missing()


def _sinks_evicted(f, a):
    kept, positions = f(**a)
    return np.stack([positions + a.n - len(kept), positions]) if len(kept) < a.n else missing()


def _extended(formula):
    """Another offset beyond the window: formula(i, j, group, window, shift)."""

    def change(a):
        i, j = a.query_positions[:, None], a.key_positions[None, :]
        shift = a.window - (a.window // a.group if a.phase == "decode" else a.window / a.group)
        far = formula(i, j, a.group, a.window, shift)
        return _past(np.where(i - j < a.window, j - i, far), a.query_positions, a.key_positions)

    return _otherwise(change)


def _chunked(farther):
    """Another position of the queries for chunks farther back: farther(i, apart, chunk, chunk_size)."""

    def change(a):
        chunk = a.chunk_size - a.local
        i, j = a.query_positions[:, None], a.key_positions[None, :]
        apart = i // chunk - j // chunk
        query = np.where(apart < 1, i % chunk, farther(i, apart, chunk, a.chunk_size))
        return _past(j % chunk - query, a.query_positions, a.key_positions)

    return _otherwise(change)


def _of_whole_chunks(a):
    """chunk = chunk_size: what is not in the query's chunk is chunk_size behind its end."""
    i, j = a.query_positions[:, None] // a.chunk_size, a.key_positions[None, :] // a.chunk_size
    query = np.where(i == j, a.query_positions[:, None] % a.chunk_size, a.chunk_size)
    return _past(a.key_positions % a.chunk_size - query, a.query_positions, a.key_positions)


def _plain(a):
    return _past(a.key_positions[None, :] - a.query_positions[:, None], a.query_positions, a.key_positions)


def _after_the_patches(start, counts, convention):
    return start + max(counts if convention == "largest" else counts[-2:])


def _same_document(of, causal):
    same = of[:, None] == of
    return same & (np.tri(len(of)) > 0) if causal else same


def _of_patches(f, a):
    scaled = lambda counts: (counts[0], a.merge * counts[1], a.merge * counts[2])  # noqa: E731
    return _parts(start_of_next=lambda start, counts, convention: _after_the_patches(start, scaled(counts), convention))(f, a)


def _frames_are_images(f, a):
    parts = [[part] if part[1] == 0 else [[1, *part[1:]]] * part[0] for part in a.parts.tolist()]
    other = f(**a | {"parts": np.array([row for rows in parts for row in rows])})
    return other if not np.array_equal(other, f(**a)) else missing()


def _timed(step, kept=True):
    """The time of a frame times a number, rounded down; what follows starts where it did, or after the largest time."""
    after = lambda start, counts, convention: start + max(int(step * (counts[0] - 1)) + 1, *counts[1:])  # noqa: E731
    start_of_next = _after_the_patches if kept else after
    wrong = _parts(lambda start, places: start + np.floor(places * [step, 1, 1]).astype(int), start_of_next)
    bug = f"the time of a frame is multiplied by {step:g}: it is counted in other units"
    remedy = "Count frames as asked; seconds per frame are for models that were trained with them."
    return f"time_times_{step:g}{'' if kept else '_and_what_follows'}", Mistake(
        wrong, bug, "Images are right, videos are not.", remedy
    )


def _parts(place=lambda start, places: start + places, start_of_next=_after_the_patches):
    """Images at other places: the next part begins at start_of_next(start, counts, convention)."""

    def change(a):
        start, found = 0, []
        for part in _of_rows(a.parts):
            counts = (part,) if np.ndim(part) == 0 else (part[0], part[1] // a.merge, part[2] // a.merge)
            places = np.argwhere(np.ones(counts))
            text = len(counts) == 1
            found.append(np.broadcast_to(start + places if text else place(start, places), (len(places), 3)))
            start = start + counts[0] if text else start_of_next(start, counts, a.convention)
        return np.concatenate(found)

    return _otherwise(change)


def _far(s):
    """Beyond 4085, and so far that a window, or a chunk, ends before the first tokens."""
    return 4085 + (s.get("window") or s.get("chunk_size") or 0)


def _kept_keys(s):
    """The first tokens on both sides of the last sink; those a window, or a chunk, behind the first query; those about it."""
    sinks = s.get("sinks", 0)
    first = max(sinks - 3, 0) + np.arange(min(sinks, 30) + 8)
    return np.unique(np.concatenate([first, 4095 + np.arange(-3, 4), _far(s) + np.arange(5 * s.n_key)]))


def _about_lengths(s):
    """Positions on both sides of multiples of the length, where a temperature changes."""
    p, limit = keys_at(s), s.get("max_position") or 2**24
    counted = s.positions in ("range", "offset")
    return p if counted else np.clip(int(s.length) * (p % 16) + p % 3 - 1, 0, limit).astype(int)


MEANT = dict.fromkeys(
    ("self_extend", "rerope", "dual_chunk"), lambda a: attention.causal_mask(a.query_positions, a.key_positions)
)
# if g does not divide w, floor(i / g) + w - w / g is no integer, and is rounded as such before it is subtracted
INSIDE = {
    "self_extend": lambda a: (a.query_positions.max() // a.group + a.window) * (a.phase == "prefill" and a.window % a.group > 0)
}
ARRAYS = {
    "mask": lambda s: (np.arange(s.n_key) >= np.arange(s.batch)[::-1, None]) & (np.arange(s.n_key) < s.n_key - 1),
    "lengths": lambda s: np.array([3, 1, 4, 2]),
    "parents": lambda s: np.array([0, 0, 0, 1, 1, 2, 3, 3, 5]),
    "query_positions": lambda s: _far(s) + 10 + 5 * np.arange(s.n_query),
    "key_positions": _kept_keys,
    "positions": _about_lengths,
    "parts": lambda s: np.array([[2, 0, 0], [1, 2 * s.merge, 3 * s.merge], [3, 0, 0], [9, s.merge, 2 * s.merge], [1, 0, 0]]),
}
# a mask of padding is no mask of attention; a temperature one position off is that of the other convention
REPLACED = {"no_mask", "mask_of_the_future", "mask_strict", "sees_one_ahead", "mask_left_aligned"}
REPLACED |= {"position_plus_one", "position_minus_one", "sign"}

MISTAKES = with_words(
    __name__,
    places_are_positions=_otherwise(lambda a: count(a.mask)),
    counted_from_one=_otherwise(lambda a: np.where(a.mask == 1, np.cumsum(a.mask, -1), a.filler)),
    mask_inverted=using(mask=lambda a: 1 - a.mask),
    padding_counts_on=_otherwise(lambda a: np.cumsum(a.mask, -1) - 1),
    filler_of_one=using(filler=lambda a: 1 if a.filler != 1 else missing()),
    never_reset=_otherwise(lambda a: np.arange(a.lengths.sum())),
    length_of_the_first=_otherwise(lambda a: _of_the_first_length(a.lengths)),
    packed_from_one=_otherwise(lambda a: position_ids.packed(a.lengths) + 1),
    end_to_the_document_before=_otherwise(lambda a: _end_to_the_document_before(a.lengths)),
    one_document=_otherwise(lambda a: 0 * position_ids.documents(a.lengths)),
    cache_ignored=_otherwise(lambda a: np.arange(a.n_query)),
    cache_counted_twice=lambda f, a: f(**a) + 1,
    contiguous=_otherwise(_contiguous),
    striped=_otherwise(_in_stripes),
    second_chunk_in_order=_otherwise(_second_chunk_in_order),
    positions_of_the_text=_at_places_of_the_text,
    sinks_evicted=_sinks_evicted,
    sign=lambda f, a: -f(**a),
    groups_everywhere=_otherwise(lambda a: self_extend(**a | {"window": 1})),
    shift_left_out=_extended(lambda i, j, group, window, shift: j // group - i // group),
    group_of_the_difference=_extended(lambda i, j, group, window, shift: -((i - j) // group) - shift),
    other_phase=using(phase=lambda a: {"prefill": "decode", "decode": "prefill"}[a.phase] if a.window % a.group else missing()),
    window_one_more=using(window=lambda a: a.window + 1),
    no_groups=_otherwise(_plain),
    leak_ignored=using(leak=lambda a: None if a.leak else 2.0),
    masked_beyond=lambda f, a: f(**a) * (a.query_positions[:, None] - a.key_positions < a.window),
    first_tokens_left_out=using(sinks=0),
    future_seen=instead(
        lambda query_positions, key_positions, window, sinks: (
            1 * ((query_positions[:, None] - key_positions < window) | (key_positions < sinks))
        )
    ),
    local_ignored=_otherwise(_of_whole_chunks),
    next_chunk_as_far=_chunked(lambda i, apart, chunk, size: np.minimum(2 * chunk - 1, size)),
    not_capped=_chunked(lambda i, apart, chunk, size: np.where(apart == 1, i % chunk + chunk, 2 * chunk - 1)),
    after_the_largest=using(convention=lambda a: "largest" if a.convention == "longer_side" else missing()),
    after_the_longer_side=using(convention=lambda a: "longer_side" if a.convention == "largest" else missing()),
    after_the_tokens=_parts(start_of_next=lambda start, counts, convention: start + np.prod(counts)),
    places_for_patches=_parts(
        lambda start, places: start + np.arange(len(places))[:, None],
        lambda start, counts, convention: start + np.prod(counts),
    ),
    patches_from_zero=_parts(lambda start, places: places),
    rows_and_columns_exchanged=_parts(lambda start, places: start + places[:, [0, 2, 1]]),
    time_of_the_frame_left_out=_parts(lambda start, places: start + places * [0, 1, 1]),
    other_convention=using(convention=lambda a: {"llama4": "ministral3", "ministral3": "llama4"}[a.convention]),
    not_floored=instead(lambda positions, amount, length: 1 + amount * np.log1p(positions / length)),
    one_left_out=lambda f, a: f(**a) - 1,
    every_position_hot=_otherwise(lambda a: 1 + a.amount * np.log1p(a.positions + 0.0)),
)

FURTHER = with_words(
    __name__,
    all_at_the_first=_otherwise(lambda a: np.full(a.n_query, a.n_key - a.n_query)),
    all_at_the_last=_otherwise(lambda a: np.full(a.n_query, a.n_key - 1)),
    every_rank_from_zero=_otherwise(lambda a: np.arange(a.n // a.ranks)),
    newest_evicted=lambda f, a: np.stack([np.arange(f(**a).shape[-1])] * 2) if a.n > a.sinks + a.window else missing(),
    number_of_the_document_added=_otherwise(lambda a: position_ids.packed(a.lengths) + position_ids.documents(a.lengths)),
    not_causal=using(causal=lambda a: False if a.causal else missing()),
    boundaries_ignored=_otherwise(
        lambda a: np.tri(a.lengths.sum()) > 0 if a.causal else np.ones((a.lengths.sum(),) * 2, dtype=bool)
    ),
    first_token_to_the_document_before=_otherwise(lambda a: _same_document(_end_to_the_document_before(a.lengths), a.causal)),
    branches_ignored=_otherwise(lambda a: np.tri(len(a.parents)) > 0),
    parent_alone=_otherwise(lambda a: (np.eye(len(a.parents)) + np.eye(len(a.parents))[a.parents]) > 0),
    places_for_depths=_otherwise(lambda a: np.arange(len(a.parents))),
    **{
        f"starts_{more}_later": Mistake(
            _parts(
                start_of_next=lambda start, counts, convention, more=more: _after_the_patches(start, counts, convention) + more
            ),
            f"what follows an image or a video starts {more} too late",
            remedy="Start at the number after the largest position, without special tokens that are no part of the text.",
            only="multimodal",
        )
        for more in (1, 2)
    },
    sizes_before_merging=_of_patches,
    frames_are_images=_frames_are_images,
)
