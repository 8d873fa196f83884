"""Each process of pytest uses one thread for products and torch, and keeps freed memory: small arrays are then faster."""

import os

import pytest

# processes of xdist inherit these before they begin
os.environ.setdefault("OMP_NUM_THREADS", "1")
for what in ("MMAP_THRESHOLD_", "TRIM_THRESHOLD_", "TOP_PAD_"):  # of glibc: 32 MiB at a time from the system, and none back
    os.environ.setdefault(f"MALLOC_{what}", str(2**25))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """One process runs a file, and one the compiled twins, unless --dist says otherwise: what tests share is made once."""
    if config.getoption("dist") != "load":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Files(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = super()._split_scope(nodeid)
            return "fast" if "/fast/" in file else file

    return Files(config, log)
