"""Absolute encodings: position enters at the input, `x_i -> x_i + p_i`."""
