"""Relative encodings: position enters the scores, `s_ij -> s_ij + b_ij`, most with a b that knows the offset j - i alone."""
