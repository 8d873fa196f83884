"""Conformance checks and diagnosis of somebody else's implementation."""
