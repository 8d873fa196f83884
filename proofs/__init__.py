"""Proofs about the shipped functions, and the definitions that golden vectors are computed from."""

import os

os.environ.setdefault("SYMPY_CACHE_SIZE", "50000")  # of results that sympy keeps: 1000 are fewer than one theorem has
