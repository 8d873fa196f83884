"""Rotary encodings: position rotates queries and keys, `q_i -> R(i) q_i`."""
