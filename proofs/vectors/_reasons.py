"""Reasons: why no case kills a mistake. One page, at most one cell of twenty; a row that explains nothing any more is an error.

A row is a shell pattern for "system op variant mistake" and the reason. Rows are read by `_matrix`.
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
deberta decoder * positions_clamped | `positions` of this op are vectors: nothing near 4096
deberta decoder * position_minus_one_floored | `positions` of this op are vectors: their index is the caller's
floater sinusoid * classical | for a linear field every rule of fourth order with four stages is the same polynomial
floater sinusoid * frozen_time | the field of the sinusoid does not depend on time
floater sinusoid released closed_form | at the released step of 0.01 the rule errs less than float32 rounds; `coarse` tells
floater sinusoid released one_substep | at the released step of 0.01 the rule errs less than float32 rounds; `coarse` tells
hierarchical encode any f32_positions | positions beyond 2^24 need a table of more than 4096 rows, which is no small case
layouts scores * position_*_one | scores depend on the offset alone
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
position_ids temperature * positions_truncated | floor(p / length) of an integer length is that of floor(p)
swin * positions_modulo_* | coordinates are places in a window or among patches: fewer than 128 on a side
t5 attend * bias_before_scale | T5 does not scale: the scale is 1
t5 * causal no_minimum | a gather beyond the table reads its last row, which is right in causal attention
transformer_xl distances causal clamp_one_side | causal distances have one side
transformer_xl scores causal garbage_above_the_diagonal | scores of keys after the query have no meaning and are ignored
xlnet distances uni clamp_one_side | causal distances have one side
"""


def rows():
    """Pairs (pattern, reason)."""
    return [tuple(part.strip() for part in line.split("|", 1)) for line in REASONS.strip().splitlines()]


def reason(system, op, variant, mistake):
    """The first reason that fits, or None."""
    cell = f"{system} {op} {variant} {mistake}"
    return next((why for pattern, why in rows() if fnmatchcase(cell, pattern)), None)


def idle(explained):
    """Patterns that fit none of the cells (system, op, variant, mistake) that needed a reason."""
    cells = [" ".join(cell) for cell in explained]
    return [pattern for pattern, _ in rows() if not any(fnmatchcase(cell, pattern) for cell in cells)]
