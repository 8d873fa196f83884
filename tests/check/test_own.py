"""posref's own functions pass their own ops: every op once, and booleans arrive as booleans in all of them."""

import itertools
import re

import numpy as np
import pytest

from posref.check import check
from posref.check.call import Caller
from tests import own
from tests.every import every


@every(list(zip(own.OPS, ("range", "offset", "batch") * len(own.OPS), strict=False)), name=lambda pair: pair[0].name, parts=8)
def test_every_op_passes_with_its_own_function(op, positions):
    """A third receives no positions, a third an offset, where the op can be asked so."""
    chosen = own.first(op)
    chosen |= {"positions": positions} if not refusal(op, chosen | {"positions": positions}) else {}
    function, wrong = own.listening(own.implementations(op, chosen)[-1], op, chosen)
    check(function, op.name, **chosen).require()
    assert not wrong


def converters():
    """What makes tensors of arrays, of numbers too where it is for floats or for integers alone."""
    torch, jax = (pytest.importorskip(name, reason=f"pip install {name}") for name in ("torch", "jax.numpy"))
    yield from (None, torch.from_numpy, lambda x: torch.from_numpy(x).float(), jax.asarray, jax.float32)
    yield from (lambda x: x.astype(np.float64), lambda x: x.astype(np.int64) if x.dtype.kind in "iub" else x)


def test_booleans_arrive_as_booleans_in_every_language():
    """In all ops, by one converter each; the test above hears every probe of a check."""
    made = ((op, op.make(**own.first(op))) for op in own.OPS)
    masks = [(op, a, {k for k, v in a.items() if isinstance(v, np.ndarray) and v.dtype == bool}) for op, a in made]
    masks = [(op, a, names) for op, a, names in masks if names]
    assert len(masks) > 20
    for (op, a, names), to in zip(masks, itertools.cycle(converters()), strict=False):
        caller = Caller(op.spec, op, to, None, "bhnd", "batch").with_strides()
        given = caller.tensors(a) | {name: caller.setting(name, a[name]) for name in caller.named & a.keys()}
        assert {name: str(given[name].dtype).rpartition(".")[2] for name in names} == dict.fromkeys(names, "bool"), op.name


def refusal(op, chosen):
    """What `check` says of settings; nothing where it takes them, as some take None."""
    try:
        check(lambda *given, **named: 0.0, op.name, **chosen)
    except (TypeError, ValueError) as error:
        return str(error)
    return ""


@every(own.OPS, name=lambda op: op.name)
def test_a_setting_that_is_no_number_is_refused_in_words_of_posref(op):
    chosen = own.first(op)
    for name, wrong in zip(chosen, [None, "x", object()] * len(chosen), strict=False):
        assert re.match(r"[\w.]+: |$", refusal(op, chosen | {name: wrong})), (name, wrong)
