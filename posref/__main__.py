"""`python -m posref` is `posref`."""

import sys

from posref.cli import main

sys.exit(main())
