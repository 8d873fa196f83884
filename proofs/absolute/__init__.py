"""Proofs of posref.absolute."""
