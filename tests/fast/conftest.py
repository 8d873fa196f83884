"""What the tests of the compiled relative scores share."""

import importlib

import pytest


@pytest.fixture(params=["groups of heads", "each head"])
def cut(request, monkeypatch):
    """Products and kernels for all heads together, as with few positions, or head by head, as with many."""
    if request.param == "each head":
        monkeypatch.setattr(importlib.import_module("posref.fast._pairs"), "GROUP", 1)
