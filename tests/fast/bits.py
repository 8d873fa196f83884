"""What the tests of compiled twins share: random arrays, other memory for the same numbers, and equality of bits."""

import numpy as np


def random(*shape, dtype=np.float64, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def same_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def other_memory(x):
    """The same numbers laid out in other ways."""
    yield "fortran", np.asfortranarray(x)
    yield "packed", np.concatenate([x, x], axis=-1)[..., : x.shape[-1]]
    yield "every other", np.repeat(x, 2, axis=-1)[..., ::2]
    yield "backwards", np.ascontiguousarray(x[..., ::-1])[..., ::-1]
    yield "transposed", np.ascontiguousarray(np.moveaxis(x, -1, 0)).transpose(*range(1, x.ndim), 0)
    yield "unaligned", np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(x.dtype).reshape(x.shape)
    yield "foreign byte order", x.astype(x.dtype.newbyteorder())
    yield "one row", np.broadcast_to(x[..., :1], x.shape)
