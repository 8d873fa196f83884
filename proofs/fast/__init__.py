"""Proofs that the compiled kernels are the specification."""
