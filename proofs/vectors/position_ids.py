"""Position ids: padding, packing, caches, ranks, evicted, grouped and chunked offsets, images, temperature."""

import mpmath
import numpy as np

from proofs.position_ids import definition
from proofs.vectors import *

SOURCES = (
    "Xiao et al., StreamingLLM, arXiv 2309.17453, section 3.2",
    "Jin et al., Self-Extend, arXiv 2401.01325, section 3; An et al., Dual Chunk Attention, arXiv 2402.17463",
    "Wang et al., Qwen2-VL, arXiv 2409.12191, section 2.1",
    "transformers 5.23.0: modeling_llama4.py, modeling_ministral3.py (temperature)",
)

CONVENTIONS = {
    "mask": "(batch, n), 1 is a token, 0 is padding",
    "lengths": "tokens of each document: the differences of cu_seqlens",
    "parts": "a row a part: (tokens, 0, 0) is text, (frames, rows, columns) an image or video in patches",
    "op padded": "the number of tokens before it in its row; padding has `filler`; n_query tokens are the last of them",
    "op documents": "the number of the document of every token, from 0",
    "op document_mask": "1 where both tokens belong to one document and, if causal, the key is at or before the query",
    "op tree": "the depth of every draft token; parents come before their children, and the root is its own parent",
    "op tree_mask": "1 where the column is the row itself or one of its ancestors",
    "op packed": "documents behind each other in one row, each counted from 0",
    "op cached": "n_query queries that are the last of n_key keys",
    "op zigzag": "the positions of rank r: chunks r and 2 ranks - 1 - r of 2 ranks",
    "op streaming": "two rows: the places in the text of the tokens that stay, and their positions, those of their slots",
    "op self_extend": "key - query for distances below window, else floor(j/g) - floor(i/g) - shift; shift is w - w/g in "
    "prefill, w - floor(w/g) in decoding; keys after the query are ignored",
    "op rerope": "key - query for distances below window, else -window, or -(window + (distance - window) / leak); keys "
    "after the query are ignored",
    "op lambda_mask": "1 for the last window keys up to the query and the first sinks of the text, else 0",
    "op dual_chunk": "offsets of Dual Chunk Attention with chunks of chunk_size - local; keys after the query are ignored",
    "op multimodal": "time, row, column of every token, merge x merge patches being one; what follows patches starts at the "
    "largest position + 1 (largest, the paper's rule), or at start + max(rows, columns) (longer_side, transformers 5.3.0); "
    "frame f has the time start + floor(interval f), with an interval of 1 if none is given",
    "op temperature": "1 + amount ln(1 + floor(p / length)); llama4 takes p + 1 for p",
}
REJECTED = (
    ("position_ids/cached/5-of-5/ids", "more-queries", {"n_query": 6}, "range", "Six new tokens among five."),
    ("position_ids/zigzag/0-of-2/ids", "uneven", {"n": 15}, "range", "Two ranks take four equal parts."),
    ("position_ids/zigzag/0-of-2/ids", "rank", {"rank": 2}, "range", "Ranks are 0 and 1."),
    ("position_ids/packed/three/ids", "negative", {"lengths": [3, -1]}, "range", "A text has no fewer than 0 tokens."),
    (
        "position_ids/multimodal/video-longer-than-its-side/largest",
        "no-convention",
        {"convention": None},
        "missing",
        "Text after a video starts at one of two positions.",
    ),
    ("position_ids/temperature/llama4/f8192", "no-convention", {"convention": None}, "missing", "p or p + 1 is divided."),
)
REASONS = """
temperature * positions_absolute | the logarithm of 1 + floor(p / length) has no value below 0
temperature * positions_truncated | floor(p / length) of an integer length is that of floor(p)
mutant _merged: *np.ndim(part) == -1 else part* | a part is a row of three numbers here; proofs and tests pass a number alone
pair multimodal * after_the_largest after_the_longer_side | one setting, twice the other
"""
WITHDRAWN = {
    f"position_ids/multimodal/{name}/ids": f"withdrawn: it does not say which text follows a video; the same values with "
    f"convention longer_side are position_ids/multimodal/{name}/longer-side"
    for name in ("text-image-text", "video-longer-than-its-side", "two-images")
}

MASKS = [[0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0], [0, 1, 1, 0, 1, 1]]


def vectors():
    for filler in (0, 1):
        name, params = f"padded/filler-{filler}", {"filler": filler}
        note = "Padded on the left, on the right, on the left and within."
        rows = [definition("padded", mask, filler) for mask in MASKS]
        wrong = "places_are_positions counted_from_one padding_counts_on mask_inverted" + " filler_of_one" * (filler != 1)
        yield _case(f"{name}/ids", params, {"mask": MASKS}, rows, wrong, comment=note)
        tail, params = [row[-2:] for row in rows], {"filler": filler, "n_query": 2}
        yield _case(f"{name}/last-2", params, {"mask": MASKS}, tail, "places_are_positions")
    parents = [0, 0, 0, 1, 1, 2, 3, 3, 5]
    lines = [_line(parents, i) for i in range(len(parents))]
    yield _case("tree/three-branches/depths", {}, {"parents": parents}, [len(line) - 1 for line in lines], "")
    seen = [[int(j in line) for j in range(len(parents))] for line in lines]
    yield _case("tree_mask/three-branches/mask", {}, {"parents": parents}, seen, "")
    for name, lengths in (("three", [3, 1, 4]), ("with-an-empty-one", [2, 0, 3])):
        rest = {"comment": "A document without tokens has no positions."} if 0 in lengths else {}
        flags = "never_reset packed_from_one length_of_the_first"
        yield _case(f"packed/{name}/ids", {}, {"lengths": lengths}, definition("packed", lengths), flags, **rest)
        for causal in (True, False):
            of = [document for document, length in enumerate(lengths) for _ in range(length)]
            seen = [[int(a == b and (j <= i or not causal)) for j, b in enumerate(of)] for i, a in enumerate(of)]
            probe = "causal" if causal else "both"
            yield _case(f"document_mask/{name}/{probe}", {"causal": causal}, {"lengths": lengths}, seen, "")
        wrong = "one_document end_to_the_document_before"
        yield _case(f"documents/{name}/ids", {}, {"lengths": lengths}, definition("documents", lengths), wrong, **rest)
    for n_query, n_key, flags in ((5, 5, ""), (3, 8, "cache_ignored "), (1, 4096, "cache_ignored ")):
        sizes = {"n_query": n_query, "n_key": n_key}
        expected = definition("cached", n_query, n_key)
        yield _case(f"cached/{n_query}-of-{n_key}/ids", sizes, {}, expected, flags + "cache_counted_twice")
    for n, ranks, rank in ((16, 2, 0), (16, 2, 1), (16, 4, 3), (24, 4, 1)):
        given, flags = {"n": n, "ranks": ranks, "rank": rank}, "contiguous striped second_chunk_in_order"
        yield _case(f"zigzag/{rank}-of-{ranks}/ids", given, {}, definition("zigzag", n, ranks, rank), flags)
    for n, flags in ((5, ""), (12, "positions_of_the_text sinks_evicted")):
        expected = definition("streaming", n, 2, 3)
        yield _case(f"streaming/s2-w3/n{n}", {"n": n, "sinks": 2, "window": 3}, {}, expected, flags)
    for phase in ("prefill", "decode"):
        yield _self_extend(2, 5, phase, "other_phase group_of_the_difference ")
        yield _self_extend(4, 8, phase, "")
    bits = f"{NARROW} int16_positions"
    for leak in (None, 4):
        yield _rerope(5, leak, "near", NEAR, "sign leak_ignored masked_beyond" + " window_one_more" * bool(leak))
        yield _rerope(5, leak, "across", ACROSS, bits)
    yield _lambda_mask("near", NEAR, "window_one_more first_tokens_left_out future_seen")
    yield _lambda_mask("across", ACROSS, bits)
    for leak in (None, 4):
        yield _rerope(5, leak, "negative", UNDER, "sign")
    yield _lambda_mask("negative", UNDER, "future_seen")
    for size, local, flags in ((6, 2, "local_ignored next_chunk_as_far not_capped"), (8, 3, "local_ignored next_chunk_as_far")):
        yield _dual_chunk(size, local, flags)
    yield _dual_chunk(6, 4, "local_ignored")
    yield _self_extend(2, 5, "prefill", NARROW + " int16_positions ", BEHIND)
    yield _dual_chunk(6, 2, NARROW + " int16_positions", BEHIND)
    yield _self_extend(2, 5, "prefill", "", UNDER[1], "negative")
    yield _dual_chunk(6, 2, "local_ignored", UNDER[1], "negative")
    yield from _multimodal()
    for convention in ("llama4", "ministral3"):
        for length, positions in ((8192, [0, 8190, 8191, 8192, 16383, 131071]), (4, [*range(9), *range(11, 171, 8)])):
            yield _temperature(convention, length, positions)
        rows = f"{NARROW} positions_shared_across_batch wrong_axis"
        yield _temperature(convention, 2, PLACES, "places", kills=rows, models=("f64",))


def _line(parents, i):
    """A draft token and its ancestors."""
    return {i} if parents[i] == i else {i} | _line(parents, parents[i])


def _case(name, params, tensors, expected, flags, **rest):
    op = name.split("/")[0]
    return case(f"position_ids/{name}", op, params, tensors, expected, kills=flags, **rest)


def _past(queries, keys, rule):
    return [[rule(i, j) if j <= i else 0 for j in keys] for i in queries]


def _after(queries, keys):
    """True where the key is after the query, whose offset nobody uses: programs have 0, the offset, or what comes."""
    return np.array(keys) > np.array(queries)[:, None]


BEHIND = [4, 9, 32767, 32769, 65535, 65537, BEYOND - 1, BEYOND + 1, BEYOND + 3]  # where numbers of 16 and 24 bits end


def _self_extend(group, window, phase, flags, far=None, probe="far"):
    queries, keys = (far[1::2], far) if far else ([0, 3, 7, 13, 18], list(range(19)))
    shift = window - (mpmath.mpf(window) / group if phase == "prefill" else window // group)
    expected = _past(queries, keys, lambda i, j: definition("self_extend", i, j, group, window, shift))
    name, params = f"self_extend/g{group}-w{window}/{phase}", {"group": group, "window": window, "phase": phase}
    name, tensors = name + f"-{probe}" * bool(far), {"queries": queries, "keys": keys}
    flags += "groups_everywhere shift_left_out window_one_more no_groups sign"
    models = ("f64",) if far and probe == "far" else tuple(MODELS)  # float32 has no halves there
    return _case(name, params, tensors, expected, flags, ignore=_after(queries, keys), models=models)


NEAR = [0, 3, 7, 13, 18], list(range(19))
UNDER = [-9, -2, 3], [-20, -13, -9, -5, -2, 0, 3]  # positions below 0
ACROSS = [32770, *FAR[1:]], [0, 32765, 32768, 32770, *FAR]  # where numbers of 16 and of 24 bits end


def _rerope(window, leak, probe, places, flags):
    expected = _past(*places, lambda i, j: definition("rerope", int(i), int(j), window, leak))
    expected = [[mpmath.mpf(x.numerator) / x.denominator for x in row] for row in expected] if leak else expected
    params = {"window": window, "leak": leak} if leak else {"window": window}
    rest = {"models": ("f64",)} if leak and probe == "across" else {}  # float32 has no quarters there
    name, tensors = f"rerope/w{window}-{'leaky' if leak else 'flat'}/{probe}", {"queries": places[0], "keys": places[1]}
    return _case(name, params, tensors, expected, f"no_groups {flags}", ignore=_after(*places), **rest)


def _lambda_mask(probe, places, flags):
    expected = [[int(definition("lambda_mask", i, j, 4, 2)) for j in places[1]] for i in places[0]]
    tensors = {"queries": places[0], "keys": places[1]}
    return _case(f"lambda_mask/w4-s2/{probe}", {"window": 4, "sinks": 2}, tensors, expected, flags)


def _dual_chunk(size, local, flags, far=None, probe="far"):
    queries, keys = (far[1::2], far) if far else ([0, 4, 7, 13, 18], list(range(19)))
    expected = _past(queries, keys, lambda i, j: definition("dual_chunk", i, j, size, local))
    params, tensors = {"chunk_size": size, "local": local}, {"queries": queries, "keys": keys}
    name, ignore = f"dual_chunk/c{size}-l{local}/offsets{f'-{probe}' * bool(far)}", _after(queries, keys)
    return _case(name, params, tensors, expected, flags + " no_groups sign", ignore=ignore)


def _multimodal():
    image = "after_the_tokens places_for_patches patches_from_zero rows_and_columns_exchanged"
    for name, merge, parts, flags in (
        ("text-image-text", 2, [2, (1, 4, 6), 3], image),
        ("video-longer-than-its-side", 1, [1, (4, 2, 3), 2], image),
        ("two-images", 2, [(1, 4, 4), (1, 4, 2), 1], "after_the_tokens places_for_patches patches_from_zero"),
    ):
        rows = [part if isinstance(part, tuple) else (part, 0, 0) for part in parts]
        for convention, other in (("largest", "after_the_longer_side"), ("longer_side", "after_the_largest")):
            expected = definition("multimodal", parts, merge, convention)
            rest = f" time_of_the_frame_left_out {other}" if name.startswith("video") else ""
            params = {"merge": merge, "convention": convention}
            yield _case(f"multimodal/{name}/{convention.replace('_', '-')}", params, {"parts": rows}, expected, flags + rest)
    rows, flags = [(1, 0, 0), (4, 2, 3), (2, 0, 0)], "time_of_the_frame_left_out interval_ignored patches_from_zero"
    for convention, other in (("largest", "after_the_longer_side"), ("longer_side", "after_the_largest")):
        params = {"merge": 1, "convention": convention, "interval": 2.5}
        expected = definition("multimodal", rows, *params.values())
        name = f"multimodal/interval/{convention.replace('_', '-')}"
        yield _case(name, params, {"parts": rows}, expected, f"{flags} {other}")


def _temperature(convention, length, positions, probe="", *, kills="every_position_hot", **rest):
    amount, positions = mpmath.mpf(7) / 8, np.array(positions)
    counted = positions + (convention == "llama4")
    grown = np.frompyfunc(lambda p: amount * mpmath.log(1 + p // length), 1, 1)(counted)
    name, kills = f"temperature/{convention}/f{length}", f"other_convention not_floored one_left_out {kills}"
    name, params = name + f"-{probe}" * bool(probe), {"amount": 0.875, "length": length, "convention": convention}
    return _case(name, params, {"positions": positions}, 1 + grown, kills, cond=terms(3, 1 + grown), **rest)
