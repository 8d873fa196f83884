"""Proofs of posref.rotary."""
