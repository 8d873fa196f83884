"""One thread for products and torch in each process of pytest: small arrays are slower on several, which wait for each other."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # processes of xdist inherit it before they import numpy
