"""Proofs about the shipped functions, and the definitions that golden vectors are computed from."""
