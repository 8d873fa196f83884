"""One thread for products and torch in each process of pytest: on several, small arrays are slower."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # processes of xdist inherit it before they import numpy
