"""Rotary encodings: position turns queries and keys, `q_i -> R(i) q_i`."""
