"""Relative encodings: position enters the scores, `s_ij -> s_ij + b(j - i)`."""
