"""Tests the errors that function bodies raise, as rows `call | message`. Discovery tests the errors of all contracts."""

import numpy as np
import pytest


def refused(names, rows):
    """A test with a case per row: the call, in the names of a module, raises a ValueError with this message.

    For another error the message begins with `TypeError: `.
    """

    @pytest.mark.parametrize("row", [line.strip() for line in rows.strip().splitlines()])
    def test(row):
        call, message = row.rsplit(" | ", 1)
        error = TypeError if message.startswith("TypeError: ") else ValueError
        with pytest.raises(error, match=message.removeprefix("TypeError: ")):
            eval(call, {"np": np, "a": lambda *entries: np.array(entries), **names})

    return test
