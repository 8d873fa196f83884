"""Stages: what is asked of a function after its first output was right, one module per subject."""
