"""Proofs of posref.state."""
