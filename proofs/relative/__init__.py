"""Proofs of posref.relative."""
