"""Absolute encodings: position enters at the input; most add a vector, `x_i -> x_i + p_i`."""
