"""Stages: the checks that follow a right first output, one module per subject."""
