"""Common mistakes for a set of layers: mistakes of `posref.ops` that people made with similar layers.

A row has a condition on the group of layers, the op, and its mistakes. The sentences and the links to threads are those of the
op. The numbers in its sentences belong to the example of the op, so `OWN` computes sentences with the numbers of the group.
"""

import numpy as np

from posref import ops
from posref.rotary import scaling

SCHEDULES = ("linear", "ntk", "dynamic_ntk", "yarn", "llama3", "longrope", "proportional")
ROWS = (
    (lambda g: _turned(g), "rope.rotate", "other_layout wrong_base"),
    (lambda g: _turned(g) and g.causal, "rope.rotate", "positions_ignored"),
    (lambda g: _turned(g) and g.layout == "interleaved", "rope.rotate", "third_layout"),
    (lambda g: _partly(g), "rope.rotate", "exponent_head_dim all_rotated"),
    (lambda g: _beyond(g), "rope.tables", "bf16_inv_freq bf16_positions"),
    (lambda g: _latent(g), "decoupled.scores", "scale_of_the_content each_by_its_width"),
    *((lambda g, name=name: _scaled(g) == name, f"scaling.{name}", "unscaled") for name in SCHEDULES),
    (lambda g: _scaled(g) == "factors", "scaling.longrope", "unscaled"),
    (lambda g: _scaled(g) == "yarn" and g.scaling["truncate"], "scaling.yarn", "not_truncated"),
    (lambda g: _scaled(g) == "yarn" and not g.scaling["truncate"], "scaling.yarn", "truncated"),
    (lambda g: _turned(g) and g.magnitude != 1, "scaling.yarn_tables", "no_magnitude magnitude_squared"),
    (lambda g: _turned(g) and g.magnitude != 1, "rope.scores", "magnitude_on_queries"),
    (lambda g: "t" in (g.axes or ()), "axes.rotate", "first_axis_alone"),
    (lambda g: g.order == "sections", "axes.sections", "dealt_out"),
    (lambda g: g.order == "interleaved", "axes.interleaved_sections", "in_sections"),
    (lambda g: g.axes and "t" not in g.axes, "axes.rotate", "rows_and_columns_exchanged"),
    (
        lambda g: g.kv_heads and 1 < g.kv_heads < (g.heads or 0) and not g.tiled,
        "attention.attend",
        "heads_tiled",
    ),
    (lambda g: g.causal and not g.state, "attention.attend_by_offset", "causal_left_aligned"),
    (lambda g: g.window, "attention.attend_by_offset", "window_one_more window_ignored"),
    (lambda g: g.sinks, "attention.attend", "sink_left_out"),
    (lambda g: g.softcap, "attention.attend", "cap_left_out cap_after_mask"),
    (lambda g: g.temperature, "attention.attend", "row_scale_left_out"),
    (
        lambda g: g.encoding == "sinusoidal_2d_input",
        "sinusoidal_2d.encode",
        "rows_and_columns_exchanged as_detr frequencies_of_the_whole_width",
    ),
    (lambda g: g.encoding == "alibi", "alibi.bias", "positions_ignored"),
    (lambda g: g.encoding == "alibi" and g.heads & (g.heads - 1), "alibi.slopes", "sorted_slopes next_power"),
    (lambda g: g.encoding == "t5" and g.softmax_scale == 1, "t5.attend", "scaled no_bias"),
    (lambda g: g.encoding == "t5" and g.causal, "t5.cross_attend", "bias_in_cross_attention"),
    (lambda g: g.encoding == "disentangled", "deberta.scores", "scale_of_one_term"),
    (lambda g: g.encoding == "disentangled" and "p2c" in g.bias["terms"], "deberta.scores", "paper_index"),
    (lambda g: g.encoding == "inkling", "inkling.scores", "last_column_beyond_the_extent bias_before_scale"),
    (lambda g: g.encoding == "inkling" and g.temperature, "inkling.scores", "bias_without_temperature counted_from_0"),
    (lambda g: g.encoding == "xlnet", "xlnet.scores", "first_row_kept memory_ignored"),
    (lambda g: g.encoding == "xlnet" and g.bias["clamp_len"], "xlnet.scores", "clamp_ignored"),
    (lambda g: g.encoding == "swin", "swin.bias", "rows_and_columns_exchanged no_stride"),
    (lambda g: g.encoding == "swin_v2", "swin.continuous_bias", "linear_coordinates no_sigmoid"),
    (lambda g: g.encoding == "swin_v2", "swin.attend_v2", "uncapped"),
    (lambda g: g.kind == "shifted_window_attention", "swin.shift_mask", "not_rolled padded_after_rolling"),
    (lambda g: g.encoding == "delta", "delta.attend", "decay_after_error gated_after_writing other_state_layout"),
    (lambda g: g.encoding == "delta" and g.state["key_heads"] < g.state["value_heads"], "delta.attend", "tiled_heads"),
    (lambda g: g.encoding == "delta" and g.state["strength"].startswith("2"), "delta.attend", "half_beta"),
    (lambda g: g.encoding == "delta", "delta.unit", "eps_as_a_floor"),
    (lambda g: g.encoding == "gated", "gated.attend", "own_token_gated"),
    (lambda g: g.encoding == "gated" and g.state["key_width"] > 1, "gated.attend", "other_state_layout"),
    (lambda g: g.encoding == "retention", "retention.attend", "own_token_decayed state_transposed"),
    (
        lambda g: g.state and "dt_bias" in g.state.get("log_decay", "") + g.state.get("step", ""),
        "gated.log_gates",
        "bias_left_out",
    ),
    (lambda g: g.state and g.state.get("convolution"), "convolution.convolve", "kernel_turned_around state_one_row_behind"),
    (lambda g: _first_row(g), "learned.position_ids", "zero_based"),
)


def slips(group):
    """The common mistakes for one group of layers, each with its sentences, and the threads in which people reported it."""
    return [_slip(op, mistake, group) for fits, op, names in ROWS if fits(group) for mistake in names.split()]


def _slip(op, name, group):
    found = ops.op(op).mistakes[name]
    bug, effect = OWN[name](group) if name in OWN else (found.bug, found.effect)
    return {"op": op, "mistake": name, "bug": bug, "effect": effect, "seen_in": list(found.seen_in)}


def _on_queries(group):
    m = group.magnitude
    return f"queries times {m:.6g}, keys as they were", f"Scores are multiplied by {m:.6g} instead of {m**2:.6g}."


def _left_out(group):
    m = group.magnitude
    return f"tables without the magnitude {m:.6g}", f"Scores are divided by {m**2:.6g}."


def _squared(group):
    m = group.magnitude
    return f"tables times {m**2:.6g}, the magnitude twice", f"Scores are {m**2:.6g} times the right ones."


def _ramp(bug):
    """Sentences with the largest ratio between the frequencies of the truncated and the exact ramp."""

    def words(group):
        plain = group.base ** (-2 * np.arange(len(group.frequencies)) / group.rotary_dim)
        keys = ("factor", "original_length", "beta_fast", "beta_slow")
        options = {key: group.scaling[key] for key in keys} | {"base": group.base}
        if options["beta_fast"] <= options["beta_slow"]:  # a ramp without width, unless its edges are cut
            return bug, "Frequencies at the ramp are off."
        one, other = (scaling.yarn(plain, **options, truncate=truncate) for truncate in (True, False))
        ratio = np.exp(np.abs(np.log(one / other)).max())
        return bug, f"Frequencies in the ramp are off by up to a factor of {ratio:.3g}."

    return words


def _terms(group):
    return "1/sqrt(d)", f"Scores are sqrt({1 + len(group.bias['terms'])}) times too large."


OWN = {
    "magnitude_on_queries": _on_queries,
    "no_magnitude": _left_out,
    "magnitude_squared": _squared,
    "truncated": _ramp("floor and ceil of the ramp's edges"),
    "not_truncated": _ramp("the ramp's edges as they are"),
    "scale_of_one_term": _terms,
    "zero_based": lambda group: ("rows from 0", "No error, other rows."),
    "bf16_inv_freq": lambda group: ("frequencies in bfloat16", "Phase errors that grow with the position."),
}


def _turned(group):
    return group.encoding == "rope"


def _scaled(group):
    return group.scaling["type"] if group.scaling else None


def _partly(group):
    """Whether only the first features of a head rotate, with the frequencies for their own width."""
    return _turned(group) and group.rotary_dim < group.head_dim and group.rotated == "first"


def _latent(group):
    return _turned(group) and group.rotated == "last" and not group.undo


def _beyond(group):
    """Whether the model has positions that bfloat16 cannot distinguish."""
    return (group.max_position_embeddings or 0) > 256


def _first_row(group):
    """Whether the table has rows before the row of the first token."""
    forward = (group.positions or {}).get("forward") or ""
    return group.encoding in ("learned", "sinusoidal") and forward not in ("", "arange(n)")
