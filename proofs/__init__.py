"""Proofs about the shipped functions, and the definitions from which golden vectors are computed."""

import gc
import os

os.environ.setdefault("SYMPY_CACHE_SIZE", "50000")  # of results that sympy keeps: 1000 are fewer than one theorem has
gc.set_threshold(100_000, 20, 20)  # sympy makes millions of objects and few cycles: the usual 700 cost 6 % of the time
