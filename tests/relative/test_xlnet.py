"""XLNet: what the body refuses. tests/parity/test_wild.py measures its model."""

from posref.relative import xlnet
from tests.refused import refused

test_refused = refused(vars(xlnet), r"""distances(3, 2, attn_type="bi") | xlnet\.distances: 3 queries and 2 keys""")
