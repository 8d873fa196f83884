"""Position ids: the functions to check, and the mistakes that implementations make."""

import numpy as np

from posref import attention, position_ids
from posref.ops import Mistake, instead, missing, using
from posref.ops.common import count
from posref.ops.probe import keys_at


def padded(mask, *, filler=0, n_query=None):
    # only of the last n_query tokens, as in a step of decoding
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
    """True where the column is the row itself or one of its ancestors."""
    n = len(parents)
    if (parents < 0).any() or (parents > np.arange(n)).any():
        raise ValueError("position_ids.tree: parents come before their children, and the root is its own")
    found = np.eye(n, dtype=bool)
    for _ in range(n):
        found = found | found[parents]
    return found


def _past(offsets, query_positions, key_positions):
    """Offsets of keys after the query are set to 0: these keys are not attended to, so any number is right."""
    return np.where(attention.causal_mask(query_positions, key_positions), offsets, 0)


def _of_rows(parts):
    """Parts from rows of three numbers; (tokens, 0, 0) is text."""
    return [int(a) if b == 0 else (int(a), int(b), int(c)) for a, b, c in parts]


def _otherwise(change):
    """`change`, or NotHere if it changes nothing."""

    def wrong(f, a):
        other = _last(change(a), a.n_query) if "filler" in a else change(a)
        return other if not np.array_equal(other, f(**a)) else missing()

    return wrong


def _padding_of_the_step(a):
    return (a.mask == 0) & (count(a.mask) >= a.mask.shape[-1] - (a.n_query or missing()))


def _of_the_first_length(lengths):
    return np.arange(lengths.sum()) % max(lengths[0], 1)


def _end_to_the_document_before(lengths):
    return np.searchsorted(np.cumsum(lengths), np.arange(lengths.sum()), side="left")


def _where_positions_fall(lengths):
    return np.cumsum(np.diff(position_ids.packed(lengths), prepend=0) < 0)


def _masked(wrong):
    """The mask of documents with wrong numbers."""
    return _otherwise(lambda a: _same_document(wrong(lambda lengths, **_: position_ids.documents(lengths), a), a.causal))


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

    return Mistake(_otherwise(change), only="self_extend")


def _chunked(farther):
    """Another position of the queries for earlier chunks: farther(i, chunks between, chunk, chunk_size)."""

    def change(a):
        chunk = a.chunk_size - a.local
        i, j = a.query_positions[:, None], a.key_positions[None, :]
        apart = i // chunk - j // chunk
        query = np.where(apart < 1, i % chunk, farther(i, apart, chunk, a.chunk_size))
        return _past(j % chunk - query, a.query_positions, a.key_positions)

    return Mistake(_otherwise(change), only="dual_chunk")


def _of_whole_chunks(a):
    """chunk = chunk_size: for keys outside the query's chunk, the query is at position chunk_size."""
    i, j = a.query_positions[:, None] // a.chunk_size, a.key_positions[None, :] // a.chunk_size
    query = np.where(i == j, a.query_positions[:, None] % a.chunk_size, a.chunk_size)
    return _past(a.key_positions % a.chunk_size - query, a.query_positions, a.key_positions)


def _plain(a):
    return _past(a.key_positions[None, :] - a.query_positions[:, None], a.query_positions, a.key_positions)


def _after_the_patches(start, counts, convention, tokens):
    return start + max(counts if convention == "largest" else counts[-2:])


def _same_document(of, causal):
    same = of[:, None] == of
    return same & (np.tri(len(of)) > 0) if causal else same


def _of_patches(f, a):
    scaled = lambda counts: (counts[0], a.merge * counts[1], a.merge * counts[2])  # noqa: E731
    return _parts(start_of_next=lambda start, counts, *rest: _after_the_patches(start, scaled(counts), *rest)).wrong(f, a)


def _frames_are_images(f, a):
    parts = [[part] if part[1] == 0 else [[1, *part[1:]]] * part[0] for part in a.parts.tolist()]
    other = f(**a | {"parts": np.array([row for rows in parts for row in rows])})
    return other if not np.array_equal(other, f(**a)) else missing()


def _start_times_interval(f, a):
    """The time of a frame is floor(interval (start + frame))."""
    if a.interval == 1:
        missing()

    def after(start, counts, *rest):
        return _after_the_patches(start, (int(a.interval * (counts[0] - 1)) + 1, *counts[1:]), *rest)

    return _parts(lambda start, places: np.floor((start + places) * [a.interval, 1, 1]).astype(int), after).wrong(
        f, a | {"interval": 1}
    )


def _grid_of_the_first(f, a):
    """Every image has the sizes of the first image; left-over tokens are text."""
    sizes = [len(f(**a | {"parts": part[None]})) for part in a.parts]
    first = np.flatnonzero(a.parts[:, 1])[:1]
    left = [size - sizes[first[0]] if part[1] else 0 for part, size in zip(a.parts, sizes, strict=True)] if first.size else [-1]
    if min(left) < 0:
        missing()
    rows = ([a.parts[first[0]] if part[1] else part, [more, 0, 0]] for part, more in zip(a.parts, left, strict=True))
    return _otherwise(lambda a: f(**a | {"parts": np.array([row for each in rows for row in each if row[0]])}))(f, a)


def _from_the_second(wrong):
    """A mistake from the second image or document on; what comes before is right, and counts as one text."""

    def later(f, a):
        name = "parts" if "parts" in a else "lengths"
        second = np.flatnonzero(a.parts[:, 1] if "parts" in a else a.lengths)[1:2]
        before = {name: a[name][: second[0]]} if second.size else missing()
        right = f(**a)
        rows = len(f(**a | before))
        start = right[rows, 0] if "parts" in a else 0
        text = [[[start, 0, 0]]] if start else []
        other = wrong(f, a | {name: np.concatenate([*text, a[name][second[0] :]])})
        found = np.concatenate([right[:rows], other[start:]])
        return found if not np.array_equal(found, wrong(f, a)) else missing()

    return later


def _timed(step, kept=True):
    """The time of a frame times `step`, rounded down; later parts start where they did, or after the largest time."""
    after = lambda start, counts, *rest: start + max(int(step * (counts[0] - 1)) + 1, *counts[1:])  # noqa: E731
    start_of_next = _after_the_patches if kept else after
    wrong = _parts(lambda start, places: start + np.floor(places * [step, 1, 1]).astype(int), start_of_next).wrong
    bug = f"the time of a frame is multiplied by {step:g}: it is counted in other units"
    remedy = "Count frames as asked; seconds per frame are for models that were trained with them."
    return f"time_times_{step:g}{'' if kept else '_and_what_follows'}", Mistake(
        wrong, bug, "Images are right, videos are not.", remedy
    )


def _parts(place=lambda start, places: start + places, start_of_next=_after_the_patches):
    """Images at other positions; the next part begins at start_of_next(start, counts, convention, tokens)."""

    def change(a):
        start, found = 0, []
        for part in _of_rows(a.parts):
            counts = (part,) if np.ndim(part) == 0 else (part[0], part[1] // a.merge, part[2] // a.merge)
            text = len(counts) == 1
            places = np.floor(np.argwhere(np.ones(counts)) * (1 if text else [a.interval, 1, 1])).astype(int)
            counts = places.max(axis=0) + 1
            found.append(np.broadcast_to(start + places if text else place(start, places), (len(places), 3)))
            start = start + counts[0] if text else start_of_next(start, counts, a.convention, len(places))
        return np.concatenate(found)

    return Mistake(_otherwise(change), only="multimodal")


def _of_a_fixed_grid(side):
    """Patch i of any image is at frame i // side^2, row i // side % side and column i % side."""

    def place(start, places):
        i = np.arange(len(places))
        return start + np.stack([i // side**2, i // side % side, i % side], axis=-1)

    return _parts(place, lambda start, counts, *rest: _after_the_patches(start, (counts[0], side, side), *rest)).wrong


def _far(s):
    """A position beyond 4085, far enough that a window or a chunk ends after the first tokens."""
    return 4085 + (s.get("window") or s.get("chunk_size") or 0)


def _kept_keys(s):
    """Key positions: the last 30 sinks and 8 tokens after them, those around 4095, and those from `_far` on."""
    sinks = s.get("sinks", 0)
    first = max(sinks - 30, 0) + np.arange(min(sinks, 30) + 8)
    return np.unique(np.concatenate([first, 4095 + np.arange(-3, 4), _far(s) + np.arange(5 * s.n_key)]))


def _about_lengths(s):
    """Positions near multiples of the length, where a temperature changes: bfloat16 rounds 10 below up, float16 2 below."""
    p, limit = keys_at(s), s.get("max_position") or 2**24
    counted = s.positions in ("range", "offset")
    return p if counted else np.clip(int(s.length) * (p % 16) + np.array([-10, -2, -1, 0, 1])[p % 5], 0, limit).astype(int)


def _padded(text, place, s):
    """True for tokens of texts with padding on both sides and one padded place inside."""
    first = s.batch - 1 - text
    return (place >= first) & (place < s.n_key - 1 - text % 2) & (place != first + 2)


TAGS = {"padded": "padding"}
MEANT = dict.fromkeys(
    ("self_extend", "rerope", "dual_chunk"), lambda a: attention.causal_mask(a.query_positions, a.key_positions)
)
# if g does not divide w, floor(i / g) + w - w / g is no integer, and is rounded as such before it is subtracted
INSIDE = {
    "self_extend": lambda a: (a.query_positions.max() // a.group + a.window) * (a.phase == "prefill" and a.window % a.group > 0)
}
ARRAYS = {
    "mask": lambda s: _padded(np.arange(s.batch)[:, None], np.arange(s.n_key), s),
    "lengths": lambda s: np.array([3, 1, 4, 2]),
    "parents": lambda s: np.array([0, 0, 1, 1, 0, 4, 3, 5, 2]),
    "query_positions": lambda s: _far(s) + 10 + 5 * np.arange(s.n_query),
    "key_positions": _kept_keys,
    "positions": _about_lengths,
    "parts": lambda s: np.array([[2, 0, 0], [1, 2 * s.merge, 3 * s.merge], [3, 0, 0], [9, s.merge, 2 * s.merge], [1, 0, 0]]),
}
# a padding mask is not an attention mask; a temperature that is one position off is the other convention
REPLACED = {"no_mask", "mask_of_the_future", "mask_strict", "sees_one_ahead", "mask_left_aligned"}
REPLACED |= {"position_plus_one", "position_minus_one", "sign"}

MISTAKES = {
    "places_are_positions": Mistake(_otherwise(lambda a: count(a.mask)), only="padded").words("""
        0, 1, 2, .. in every row: the index in the row is taken for the position
        Padding on the left moves the text; harmless for encodings that see offsets alone.
        cumsum(mask) - 1."""),
    "counted_from_one": Mistake(
        _otherwise(lambda a: np.where(a.mask == 1, np.cumsum(a.mask, -1), a.filler)), only="padded"
    ).words("""
        cumsum(mask): positions are counted from 1
        Tables of positions are read one row too far.
        cumsum(mask) - 1."""),
    "mask_inverted": Mistake(using(mask=lambda a: 1 - a.mask), only="padded").words("""
        the mask is inverted: True is read as padding
        All tokens have the filler.
        Invert a mask of the other convention once."""),
    "padding_counts_on": Mistake(_otherwise(lambda a: np.cumsum(a.mask, -1) - 1), only="padded").words("""
        no filler: padding has the number of tokens before it, which is -1 on the left
        A table is read from its end.
        Give padding an id of its own: masked_fill(mask == 0, filler)."""),
    "filler_of_one": Mistake(using(filler=lambda a: 1 if a.filler != 1 else missing()), only="padded").words("""
        padding has position 1, as in older versions of transformers: masked_fill_(attention_mask == 0, 1)
        Padding has another position; tokens are right.
        Pass the filler that the model was run with."""),
    "never_reset": Mistake(_otherwise(lambda a: np.arange(a.lengths.sum())), only="packed").words("""
        positions run on through all documents instead of starting again
        Harmless for encodings that see offsets alone, wrong for tables, schedules by length and temperatures.
        Subtract the start of the token's document."""),
    "length_of_the_first": Mistake(_otherwise(lambda a: _of_the_first_length(a.lengths)), only="packed").words("""
        i mod the length of the first document: all documents are taken to be as long as the first
        Right where all are equally long.
        Use the start of each document: cu_seqlens."""),
    "packed_from_one": Mistake(_otherwise(lambda a: position_ids.packed(a.lengths) + 1), only="packed").words("""
        the positions of each document start at 1
        Tables of positions are read one row too far.
        Count from 0: the position is i - start of the document."""),
    "end_to_the_document_before": Mistake(
        _otherwise(lambda a: _end_to_the_document_before(a.lengths)), only="documents"
    ).words("""
        the first token of a document belongs to the document before it: searchsorted with the wrong side
        First tokens see another text, and no text sees its first token.
        searchsorted(cu_seqlens, i, side='right') - 1."""),
    "one_document": Mistake(_otherwise(lambda a: 0 * position_ids.documents(a.lengths)), only="documents").words("""
        the boundaries of the documents are not used: all tokens form one document
        Tokens attend into the text before theirs.
        Number the documents from cu_seqlens, and attend within one alone."""),
    "cache_ignored": Mistake(_otherwise(lambda a: np.arange(a.n_query)), only="cached").words("""
        queries start at position 0: the tokens in the cache are not counted
        Decoding with a cache is wrong, prefill is right.
        The last query stands at the last key."""),
    "cache_counted_twice": Mistake(lambda f, a: f(**a) + 1, only="cached").words("""
        the last query has position n_key + i: the length of the cache is read after the new tokens were put in
        Every position is one too large.
        Read the length before the new tokens go in, or begin at n_key - n_query."""),
    "contiguous": Mistake(_otherwise(_contiguous), only="zigzag").words("""
        each rank takes one run of consecutive tokens
        Outputs belong to other tokens; with the right ids the last rank works longest.
        Give rank r the chunks r and 2 ranks - 1 - r."""),
    "striped": Mistake(_otherwise(lambda a: np.arange(a.rank, a.n, a.ranks)), only="zigzag").words("""
        rank, rank + ranks, ..: tokens are dealt out one by one
        Outputs belong to other tokens.
        Give rank r the chunks r and 2 ranks - 1 - r."""),
    "second_chunk_in_order": Mistake(_otherwise(_second_chunk_in_order), only="zigzag").words("""
        chunks r and ranks + r: the second chunk is counted from the front instead of the end
        Outputs belong to other tokens, and the last rank works longest.
        The second chunk is 2 ranks - 1 - r."""),
    "positions_of_the_text": Mistake(_at_places_of_the_text, only="streaming").words("""
        keys keep their position in the text, though the cache counts its slots
        Right until something is evicted; then text turns into garbage beyond the trained length.
        Turn keys by their slot: keep them in the cache without rotation, or turn them on."""),
    "sinks_evicted": Mistake(_sinks_evicted, only="streaming").words("""
        the last sinks + window tokens are kept: a plain sliding window, without the first tokens
        Perplexity explodes when the first token is evicted.
        Keep the first tokens."""),
    "sign": Mistake(lambda f, a: -f(**a), only="self_extend rerope dual_chunk").words("""
        the offset is query - key
        Past and future change places.
        The offset is key - query."""),
    "groups_everywhere": Mistake(_otherwise(lambda a: self_extend(**a | {"window": 1})), only="self_extend").words("""
        floor(j/g) - floor(i/g) for all keys: near keys are grouped too
        Neighbors share positions.
        Keep j - i where i - j < w."""),
    "shift_left_out": _extended(lambda i, j, group, window, shift: j // group - i // group).words("""
        floor(j/g) - floor(i/g) beyond the window: the shift to the end of the window is left out
        Far keys come nearer than the window.
        Subtract w - floor(w / g)."""),
    "group_of_the_difference": _extended(lambda i, j, group, window, shift: -((i - j) // group) - shift).words("""
        floor((i - j)/g): the distance is grouped instead of the two positions
        Off by one for part of the far keys; cannot be had by turning queries and keys.
        Divide each position by the group, then subtract."""),
    "other_phase": Mistake(
        using(phase=lambda a: {"prefill": "decode", "decode": "prefill"}[a.phase] if a.window % a.group else missing()),
        only="self_extend",
    ).words("""
        the shift of the other phase: w - w/g as a real number in decoding, or w - floor(w/g) in prefill
        Prefill and decoding differ by a fraction of a position.
        Choose a window that the group divides."""),
    "window_one_more": Mistake(using(window=lambda a: a.window + 1), only="self_extend rerope lambda_mask").words("""
        i - j <= w: the distance `window` itself is exact
        One key is at another position, or is seen.
        Near is i - j < w."""),
    "no_groups": Mistake(_otherwise(_plain), only="self_extend rerope dual_chunk").words("""
        key - query: positions are not grouped
        Right for short texts, garbage beyond the trained length.
        Keep key - query for near keys alone, those within the window or the chunk."""),
    "leak_ignored": Mistake(using(leak=lambda a: None if a.leak else 2.0), only="rerope").words("""
        ReRoPE (-w for all far keys) in place of Leaky ReRoPE (steps), or the reverse
        Far keys have other distances.
        Pass leak for Leaky ReRoPE and None for ReRoPE."""),
    "masked_beyond": Mistake(
        lambda f, a: f(**a) * (a.query_positions[:, None] - a.key_positions < a.window), only="rerope"
    ).words("""
        the offset is 0 beyond the window: far keys are at the query's own position
        Far keys are read as the own token.
        The offset is -w there."""),
    "first_tokens_left_out": Mistake(using(sinks=0), only="lambda_mask").words("""
        the window alone is seen: the first tokens are masked
        Perplexity explodes when the first token leaves the window.
        Keep the first tokens."""),
    "future_seen": Mistake(
        lambda f, a: 1 * ((a.query_positions[:, None] - a.key_positions < a.window) | (a.key_positions < a.sinks)),
        only="lambda_mask",
    ).words("""
        the mask is not causal: keys after the query are seen too
        Every token sees the future.
        And it with the causal mask."""),
    "local_ignored": Mistake(_otherwise(_of_whole_chunks), only="dual_chunk").words("""
        the chunks have chunk_size tokens: the local window is not subtracted
        Neighbors on both sides of a boundary are far apart.
        chunk = chunk_size - local."""),
    "next_chunk_as_far": _chunked(lambda i, apart, chunk, size: np.minimum(2 * chunk - 1, size)).words("""
        the chunk before is treated like those farther back
        Neighbors on both sides of a boundary are far apart.
        Queries of the next chunk have i mod c + c, at most chunk_size."""),
    "not_capped": _chunked(lambda i, apart, chunk, size: np.where(apart == 1, i % chunk + chunk, 2 * chunk - 1)).words("""
        offsets are not limited to chunk_size
        Garbage beyond the trained length.
        Limit the position of the query to chunk_size."""),
    "after_the_largest": Mistake(
        using(convention=lambda a: "largest" if a.convention == "longer_side" else missing()), only="multimodal"
    ).words("""
        largest position + 1: text after a video starts after its last frame (Qwen2-VL's paper, transformers up to 5.2.0)
        Right for images; wrong after a video of more frames than rows and columns.
        Use start + max(rows, columns), or ask for convention='largest' if the model was trained with that."""),
    "after_the_longer_side": Mistake(
        using(convention=lambda a: "longer_side" if a.convention == "largest" else missing()), only="multimodal"
    ).words("""
        start + max(rows, columns): text after a video starts after its longer side, as in transformers from 5.3.0 on
        Right for images; after a video of more frames than rows and columns, text and frames share positions.
        Use the largest position + 1, or ask for convention='longer_side' if the model runs with that."""),
    "after_the_tokens": _parts(start_of_next=lambda start, counts, convention, tokens: start + tokens).words("""
        start + number of tokens: text goes on as if every patch had a position of its own
        The text after an image is too far away.
        Start after the rows and columns of an image: start + max(rows, columns)."""),
    "places_for_patches": _parts(
        lambda start, places: start + np.arange(len(places))[:, None],
        lambda start, counts, convention, tokens: start + tokens,
    ).words("""
        every patch has its index in the sequence as position: images are treated as text
        Right for text alone.
        A patch stands at (start + frame, start + row, start + column)."""),
    "patches_from_zero": _parts(lambda start, places: places).words("""
        patches are counted from 0 instead of from the end of the text before
        Right for an image at the start.
        Add start to frame, row and column."""),
    "rows_and_columns_exchanged": _parts(lambda start, places: start + places[:, [0, 2, 1]]).words("""
        rows and columns are exchanged
        Images are transposed.
        The order is (time, row, column)."""),
    "time_of_the_frame_left_out": _parts(lambda start, places: start + places * [0, 1, 1]).words("""
        every frame has the time of the first: frames are not counted
        Right for images; a video has no time.
        Add the number of the frame to start in the first of the three."""),
    "interval_ignored": Mistake(using(interval=lambda a: 1 if a.interval != 1 else missing()), only="multimodal").words("""
        frames have the times 0, 1, 2, ..: the interval is left out
        Right for videos of one frame per unit of time; other videos run at another speed.
        Multiply the number of the frame by tokens_per_second and second_per_grid_ts, then round down."""),
    "other_convention": Mistake(
        using(convention=lambda a: {"llama4": "ministral3", "ministral3": "llama4"}[a.convention]), only="temperature"
    ).words("""
        the temperature uses p for p + 1, or the reverse: Llama 4 counts positions from 1, Ministral 3 from 0
        One position in `length` is wrong.
        Take floor((p + 1) / length) for Llama 4, floor(p / length) for Ministral 3."""),
    "not_floored": Mistake(
        instead(lambda positions, amount, length: 1 + amount * np.log1p(positions / length)), only="temperature"
    ).words("""
        ln(1 + p / length): the quotient is not rounded down
        Temperature grows from the first token on.
        Round p / length down before the logarithm."""),
    "one_left_out": Mistake(lambda f, a: f(**a) - 1, only="temperature").words("""
        amount ln(1 + floor(p / length)): the 1 before the sum is left out
        Scores are 0 up to `length`.
        Add 1 to amount ln(..)."""),
    "every_position_hot": Mistake(
        _otherwise(lambda a: 1 + a.amount * np.log1p(a.positions + 0.0)), only="temperature"
    ).words("""
        ln(1 + p): positions are not divided by the length
        Attention is too sharp everywhere.
        Divide by length and round down before the logarithm."""),
}

FURTHER = {
    "padding_of_the_step_alone": Mistake(
        _otherwise(lambda a: np.maximum(count(a.mask) - np.cumsum(_padding_of_the_step(a), axis=-1), 0)), only="padded"
    ).words("""
        the padding before a token is counted among the last n_query columns alone, not in the cache
        Texts that were padded on the left move on by their padding.
        Sum the whole mask, then take its last n_query columns."""),
    "sums_of_the_mask": Mistake(
        _otherwise(lambda a: np.cumsum(a.mask, axis=-1)[:, -(a.n_query or a.mask.shape[1]) :]), only="padded"
    ).words("""
        cumsum(mask): positions are counted from 1, and padding counts on
        Tables of positions are read one row too far.
        masked_fill(mask == 0, filler) of cumsum(mask) - 1."""),
    "leading_padding_alone": Mistake(
        _otherwise(lambda a: np.where(a.mask == 1, count(a.mask) - np.argmax(a.mask, -1)[..., None], a.filler)), only="padded"
    ).words("""
        only the padding before the first token is subtracted: padding inside the row is counted
        Right where padding stands on the left and the right alone.
        cumsum(mask) - 1."""),
    "counted_from_the_end": Mistake(
        _otherwise(lambda a: (np.cumsum(a.mask[:, ::-1], axis=-1)[:, ::-1] - 1)[:, -(a.n_query or a.mask.shape[1]) :]),
        only="padded",
    ).words("""
        tokens are counted from the end of the row
        The order of the text is reversed.
        cumsum(mask) - 1, from the left."""),
    "number_of_tokens_subtracted": Mistake(
        _otherwise(lambda a: count(a.mask) - a.mask.sum(axis=-1, keepdims=True)), only="padded"
    ).words("""
        the number of tokens is subtracted from the index, not the number of paddings
        Right where as many tokens as paddings are in the row.
        Subtract the padding before the token: mask == 0."""),
    "every_rank_from_zero": Mistake(_otherwise(lambda a: np.arange(a.n // a.ranks)), only="zigzag").words("""
        every rank counts its own tokens from 0
        Right with one rank.
        Slice the positions as the tokens are sliced."""),
    "newest_evicted": Mistake(
        lambda f, a: np.stack([np.arange(f(**a).shape[-1])] * 2) if a.n > a.sinks + a.window else missing(), only="streaming"
    ).words("""
        the first sinks + window tokens are kept: the newest are evicted
        Text stops following what was said last.
        Evict the oldest tokens after the sinks."""),
    "joined_where_positions_do_not_fall": Mistake(
        _otherwise(lambda a: _where_positions_fall(a.lengths)), only="documents"
    ).words("""
        a document begins where the position falls: one of a single token and the next one are one document
        Right where each document has two tokens or more.
        Number the documents from cu_seqlens, or where the position is 0."""),
    "numbers_of_documents": Mistake(_otherwise(lambda a: position_ids.documents(a.lengths)), only="packed").words("""
        each token has the number of its document instead of its place in it
        The model sees no order within a document.
        Subtract the start of the document: i - cu_seqlens[document]."""),
    "documents_counted_from_the_end": Mistake(
        _otherwise(lambda a: np.repeat(a.lengths, a.lengths) - 1 - position_ids.packed(a.lengths)), only="packed"
    ).words("""
        tokens are counted from the end of their document
        The order of the text is reversed.
        Subtract the start of the document from the place: i - cu_seqlens[document]."""),
    "number_of_the_document_added": Mistake(
        _otherwise(lambda a: position_ids.packed(a.lengths) + position_ids.documents(a.lengths)), only="packed"
    ).words("""
        each document starts at its number instead of 0
        Right for one document.
        Subtract the start of the document: i - cu_seqlens[document]."""),
    "not_causal": Mistake(using(causal=lambda a: False if a.causal else missing()), only="document_mask").words("""
        documents are separated, but a token sees those after it in its document
        Loss is too good in training.
        And it with the causal mask."""),
    "boundaries_ignored": Mistake(
        _otherwise(lambda a: np.tri(a.lengths.sum()) > 0 if a.causal else np.ones((a.lengths.sum(),) * 2, dtype=bool)),
        only="document_mask",
    ).words("""
        the boundaries of the documents are not used: all tokens form one document
        Tokens attend into the text before theirs.
        Build the mask from cu_seqlens, or pass cu_seqlens to the kernel."""),
    "branches_ignored": Mistake(_otherwise(lambda a: np.tri(len(a.parents)) > 0), only="tree_mask").words("""
        the causal mask: a draft token sees the tokens of other branches before it
        Fewer drafts are accepted; right for one branch.
        Let a draft token see itself and its ancestors alone."""),
    "parent_alone": Mistake(
        _otherwise(lambda a: (np.eye(len(a.parents)) + np.eye(len(a.parents))[a.parents]) > 0),
        "a draft token sees itself and its parent, but no ancestor before that",
        remedy="Follow the parents up to the root.",
        only="tree_mask",
    ),
    "places_for_depths": Mistake(_otherwise(lambda a: np.arange(len(a.parents))), only="tree").words("""
        0, 1, 2, ..: the place of a draft token in memory is taken for its position
        Right for one branch.
        The position is that of the root and the depth in the tree."""),
    **{
        f"{axis}_of_the_patch_left_out": _parts(lambda start, places, kept=kept: start + places * kept).words(f"""
            the {axis} of a patch is left out: all have the first one
            Right for images of one {axis}.
            The second number counts rows, the third columns.""")
        for axis, kept in (("row", [1, 0, 1]), ("column", [1, 1, 0]))
    },
    **{
        f"starts_{more}_later": _parts(start_of_next=lambda *x, more=more: _after_the_patches(*x) + more)
        .words(f"""
            what follows an image or a video starts {more} too late
            Text is farther from the image before it.
            Start at the number after the largest position, without special tokens that are no part of the text.""")
        .where(f"""convention=longer_side
            what follows an image or a video starts {more} too late
            Text is farther from the image before it.
            Start at start + max(rows, columns), without special tokens that are no part of the text.""")
        for more in (1, 2)
    },
    "interval_rounded_first": Mistake(
        using(interval=lambda a: int(a.interval) if a.interval > 1 and a.interval % 1 else missing()), only="multimodal"
    ).words("""
        frame f has the time f floor(interval): the interval is rounded down before it is multiplied
        Late frames of a video come too early.
        Multiply first, then round down."""),
    "sizes_before_merging": Mistake(_of_patches, only="multimodal").words("""
        text after an image starts after the patches before they were merged
        The text after an image is too far away.
        Divide rows and columns by merge (spatial_merge_size) first."""),
    "frames_are_images": Mistake(_frames_are_images, only="multimodal").words("""
        each frame of a video is an image of its own, which starts after the frame before
        Right for images; the positions of a video grow too fast.
        Keep the start of the video for all frames, and count time."""),
    "start_times_interval": Mistake(_start_times_interval, only="multimodal").words("""
        a patch has the time floor(interval (start + frame)): the interval multiplies the start too
        Right for images and videos at the start; later ones are too far from the text before them.
        start + floor(interval frame)."""),
    **{
        f"grid_of_{side}_by_{side}": Mistake(_of_a_fixed_grid(side), only="multimodal").words(f"""
            patches of every image are counted in a grid of {side} by {side} after merging, whatever their own grid is
            Right for images of one size.
            Read rows and columns of each image from the grid that the preprocessor made.""")
        for side in (2, 3, 4, 6, 7, 8, 12, 14, 16, 24, 28, 32)
    },
    "grid_of_the_first": Mistake(_grid_of_the_first, only="multimodal").words("""
        every image and video has the frames, rows and columns of the first; its other patches are read as text
        Right for one image, or images of one size.
        Advance the index of the grid after each image."""),
}


def _in_the_last_part(wrong):
    """A mistake in the last part only, as if generated tokens were counted differently from the prompt."""

    def last(f, a):
        right, other = f(**a), wrong(f, a)
        rows = len(f(**a | {"parts": a.parts[:-1]})) if len(a.parts) > 1 and other.shape == right.shape else missing()
        found = np.concatenate([right[:rows], other[rows:]])
        return found if not np.array_equal(found, other) else missing()

    return last


FURTHER |= {
    f"{name}_in_the_last_part": m._replace(
        wrong=_in_the_last_part(m.wrong),
        bug=f"in the last part alone: {m.bug}",
        effect="The prompt is right; what is generated after it is not.",
        asked=(),
        only="multimodal",
    )
    for name, m in (MISTAKES | FURTHER).items()
    if m.only == "multimodal" and name.startswith(("after_", "starts_"))
}

FURTHER |= {
    f"{name}_in_the_mask": m._replace(wrong=_masked(m.wrong), only="document_mask")
    for name, m in (MISTAKES | FURTHER).items()
    if m.only == "documents" and name != "one_document"
}

# right for one image or one document, which is all that tests usually have
FURTHER |= {
    f"{name}_from_the_second_on": m._replace(
        wrong=_from_the_second(m.wrong), bug=f"from the second {part} on: {m.bug}", effect=f"Right for one {part}.", only=op
    )
    for op, part in (("multimodal", "image or video"), ("packed", "document"))
    for name, m in (MISTAKES | FURTHER).items()
    if op in m.only.split()
}
