"""Numbers below the normal ones of float32 and bfloat16 may become 0: tolerances have no floor for that and need none."""

import numpy as np

from posref import ops, vectors
from tests import golden
from tests.every import every

NORMAL = 2.0**-126
CASES = [case for case in golden.cases() if case.cond is not None and "f32" in case.models]


def flushed(y):
    y = np.asarray(y)
    return np.where(np.abs(y) < NORMAL, 0, y) if y.dtype.kind in "fc" else y


class Flushing(np.ndarray):
    """Every result of an operation that is below the normal numbers of float32 becomes 0."""

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **named):
        plain = [np.asarray(x) if isinstance(x, Flushing) else x for x in inputs]
        with np.errstate(all="ignore"):
            y = flushed(getattr(ufunc, method)(*plain, **named))
        return y.view(Flushing)


@every(CASES, name=lambda case: case.id)
def test_a_case_allows_to_flush(case):
    """The expected values, and every operation of the specification on the way, in each model that ends at 2^-126."""
    op, arguments = ops.of_case(case)
    lifted = {
        name: x.view(Flushing) if isinstance(x, np.ndarray) and x.dtype.kind == "f" else x for name, x in arguments.items()
    }
    outputs = [flushed(case.expected), np.broadcast_to(np.asarray(op.spec(**lifted)), case.expected.shape)]
    for model in {"f32", "bf16-f32math", "bf16-all"} & set(case.models):
        for got in outputs:
            assert vectors.worst(case, got, model) <= 1, model
