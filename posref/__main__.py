"""`python -m posref` runs the command `posref`."""

import sys

from posref.cli import main

sys.exit(main())
