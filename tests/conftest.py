"""One thread for products and torch in each process of pytest: on several, small arrays are slower."""

import os

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")  # processes of xdist inherit it before they import numpy


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """One process runs a file, unless --dist says otherwise: what its tests share is made and compiled once."""
    if config.getoption("dist") == "load":
        from xdist.scheduler import LoadFileScheduling

        return LoadFileScheduling(config, log)
    return None
