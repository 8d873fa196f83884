"""Reasons: why no case kills a mistake or a mutant. One page; a row that explains nothing any more is an error.

A row is a shell pattern and the reason. REASONS are about "system op variant mistake", at most one cell of twenty; `_matrix`
reads them. PAIRS are about "system op variant mistake mistake", in the order of the alphabet: together they are the right
answer at every input. MUTANTS are about "module.function: statement  ->  its mutant"; `_mutants` reads them, and the proofs'
own list of equivalent mutants, which is not repeated here.
"""

from fnmatch import fnmatchcase

AT_MOST = 0.05  # of all cells

REASONS = """
alibi attend signed key_form | m j and m (j - i) differ by a constant of each row, which the softmax does not see
alibi attend signed queries_left_aligned | the same constant: the mask is made of the right positions, and the bias alone moves
alibi bias key queries_left_aligned | m j has no query in it
attention causal_mask masks linear_scaling | j <= i is j/4 <= i/4
complex_order encode released no_phase | the released code has no phase: it is 0
complex_order encode released phase_sign | the released code has no phase: it is 0
complex_order scores shared shared_frequency | words share their frequencies in this variant: the mistake is the rule
complex_order scores shared starts_at_one | with shared frequencies a score depends on the offset alone
deberta decoder * int16_positions | `positions` of this op are vectors: no integer, nothing near 2^15
cope scores * log_sigmoid_of_small_in_cope | the gate is exp of it, and 0 is right there
deberta decoder * positions_below_2^20 | `positions` of this op are vectors: nothing near 2^20
deberta decoder * positions_clamped | `positions` of this op are vectors: nothing near 4096
deberta decoder * position_minus_one_floored | `positions` of this op are vectors: their index is the caller's
floater sinusoid * classical | for a linear field every rule of fourth order with four stages is the same polynomial
floater sinusoid * frozen_time | the field of the sinusoid does not depend on time
floater sinusoid released closed_form | at the released step of 0.01 the rule errs less than float32 rounds; `coarse` tells
floater sinusoid released one_substep | at the released step of 0.01 the rule errs less than float32 rounds; `coarse` tells
generators turn turn positions_below_2^20 | a series of 18 terms holds near 0 alone
hierarchical encode any positions_absolute | positions are rows of a table
hierarchical encode any positions_below_2^20 | a table of 2^20 rows is no small case
index encode_normalized * positions_absolute | positions count from 0 to the length
hierarchical encode any f32_positions | positions beyond 2^24 need a table of more than 4096 rows, which is no small case
layouts scores * position_*_one | scores depend on the offset alone
learned encode any positions_absolute | positions are rows of a table
learned encode any positions_below_2^20 | a table of 2^20 rows is no small case
learned encode any f16_positions | needs a table of more than 2048 rows, which is no small case
learned encode any positions_clamped | needs a table of more than 4096 rows, which is no small case
learned encode any positions_modulo* | needs a table of more rows than the modulus; those of 128 and 256 are killed
learned encode any int16_positions | needs a table of more than 32768 rows, which is no small case
learned encode any f32_positions | needs a table of more than 2^24 rows, which is no small case
learned position_ids bert counts_padding | BERT counts padding: the mistake is the rule
learned position_ids bert mask_inverted | BERT's positions do not depend on the mask
learned position_ids bert zero_based | BERT counts from 0: the mistake is the rule
learned token_ids generate padding_as_token | the positions of padding are not in the result of this op
linear_attention attend * position_*_one | scores depend on the offset alone
position_ids temperature * positions_absolute | the logarithm of 1 + floor(p / length) has no value below 0
position_ids temperature * positions_truncated | floor(p / length) of an integer length is that of floor(p)
swin shift_mask * positions_absolute | coordinates are places in the image
swin * positions_modulo_* | coordinates are places in a window or among patches: fewer than 128 on a side
t5 attend * bias_before_scale | T5 does not scale: the scale is 1
t5 * causal no_minimum | a gather beyond the table reads its last row, which is right in causal attention
transformer_xl distances causal clamp_one_side | causal distances have one side
xlnet distances uni clamp_one_side | causal distances have one side
"""

PAIRS = """
* position_minus_one position_plus_one | one more and one less
* position_minus_one starts_at_one | one more and one less
* base_of_10000 wrong_base | both are about the one base: the second takes 10000 for the right one
* causal_strict sees_one_ahead | one more and one less
* window_one_less window_one_more | one more and one less
attention attend attend no_row_maximum sink_beside_the_maximum | a sink is right beside a maximum of 0
attention attend_by_offset by-offset causal_ignored window_backward_alone | a window backward alone is causal
hierarchical encode any counts_from_one position_plus_one | counting from one, positions are one more
layouts scores * not_converted switch_forgotten | weights as they were, turned as they were
offsets clip clip clip_one_early clip_one_late | one more and one less
pope scores * phases_subtracted sign | two signs
position_ids multimodal * after_the_largest after_the_longer_side | one setting, twice the other
rope attend * cos_sin_swapped sign | queries and keys turn a quarter further, and scores see their difference
rope scores * cos_sin_swapped sign | queries and keys turn a quarter further, and scores see their difference
rope gradient * gradient_forward sign | two signs
scaling yarn* not_truncated truncated | one setting, twice the other
scaling yarn yarn ramp_over_index ramp_over_turns | one setting, twice the other
scaling yarn_tables * magnitude_squared no_magnitude | multiplied by the magnitude, and divided
shaw scores_gradient * gradient_unscaled scale_squared | multiplied by the scale, and divided
shaw scores_gradient relative_key_query key_part_left_out other_variant | the other of the other
value attend * not_undone undone_twice | left out, and twice
xpos rotate * both_multiplied other_side | divided for multiplied, and multiplied for divided
"""


MUTANTS = """
posref.attention._summed_over_sharing: heads, key_heads = * | heads that share nothing are summed alone: the same
posref.attention._summed_over_sharing: return gradient if () in * | heads that share nothing are summed alone: the same
posref.attention._summed_over_sharing: in_groups = *key_heads, -2,* | numpy infers the size that is negative, whichever it is
posref.attention.row_maximum: if scores.shape* | one key is its own sum; and no case is without keys: C has no empty array
posref.attention.row_maximum: return scores.sum(* | no case is without keys: C has no empty array
posref.attention.with_heads_of: *0 in heads + key_heads* | one is broadcast; queries have as many heads as keys or more
posref.absolute.hierarchical.extend: *q.reshape(-2,* | numpy infers the size that is negative, whichever it is
posref.absolute.learned.position_ids: *tokens_so_far - 1, 0)* | the positions of padding are not in the result of `token_ids`
posref.absolute.resizing.cubic: * ->  return np.where(x < 1, * | both cubics are 0 at 1
posref.absolute.resizing.cubic: * ->  *np.where(x <= 2, * | the cubic and what is beyond it are 0 at 2
posref.relative.swin._unit: * ->  x = x * _require.* | a cosine does not depend on lengths; what overflows is a test
posref.relative.swin.log_spaced: *offsets < 1,* | offsets are integers, and 0 is its own negative
posref.relative.transformer_xl.scores: return np.where(defined, total, 0)* | scores after the query are ignored
posref.relative.tupe.reset: to_cls = * | position scores of a text with itself are square
posref.relative.xlnet.scores: return np.where(defined, * | scores after the query are ignored
posref.rotary.linear_attention.elu_plus_one: *np.minimum(x, -1 * x)* | equal where it is used, x <= 0
posref.rotary.fope.frequencies: *  ->  *length > 2 * np.pi? | w L of a rational base is algebraic, and 2 pi is not
posref.rotary.scaling.llama3: kept = *<= *_freq_factor* | on an edge a frequency is 2 pi times a fraction, which is no double
posref.rotary.value.attend: * ->  key_cos, key_sin = (sin, sin) if * | the op is given the positions of keys
posref.rotary.value.attend: * ->  key_cos, key_sin = (cos, cos) if * | the op is given the positions of keys
"""


def rows(page=REASONS):
    """Pairs (pattern, reason)."""
    return [tuple(part.strip() for part in line.split(" | ", 1)) for line in page.strip().splitlines()]


def reason(*cell, page=REASONS):
    """The first reason that fits (system, op, variant, mistake), or (mutant,), or None."""
    return next((why for pattern, why in rows(page) if fnmatchcase(" ".join(cell), pattern)), None)


def idle(explained, page=REASONS):
    """Patterns that fit none of the cells (system, op, variant, mistake), or (mutant,), that needed a reason."""
    cells = [" ".join(cell) for cell in explained]
    return [pattern for pattern, _ in rows(page) if not any(fnmatchcase(cell, pattern) for cell in cells)]
