"""Relative encodings: position enters the scores, `s_ij -> s_ij + b_ij`. Most b depend on the offset j - i alone."""
