"""Index encodings: what the body refuses."""

from posref.absolute import index
from tests.refused import refused

test_refused = refused(
    vars(index),
    r"""
    encode_normalized(a(0, 5), 5, denominator="length") | run from 0 to 5 and length is 5; they must lie in 0 \.\. 4
    encode_normalized(a(-1, 0), 5, denominator="length") | run from -1 to 0 and length is 5
    encode_normalized(a(0), 1, denominator="length - 1") | length is 1, .* is 0/0; use denominator="length"
    """,
)
