"""Edits of the Python functions around compiled kernels: theorems of the specification, which call its twins, notice them."""

import ast
import importlib

import pytest

from proofs.kit import Refuted, numbers, twins
from proofs.kit.mutants import code_of, original, python_function, swapped
from proofs.kit.runner import find

pytest.importorskip("numba", reason="needs posref[fast]")

# what goes wrong: the function, a part of its text, what becomes of the part, and the theorem
EDITS = {
    "no entries": ("rope._rotated", "if out.size > 0:", "if True:", "layouts.keeps_scores"),
    "no queries": (
        "alibi.bias",
        "1 if form == 'key' else",
        "1 if form == 'key' or out is None and not query.size else",
        "alibi.pinned",
    ),
    "a batch of offsets for each text": (
        "_pairs.stacks",
        "(1,) * (len(lead) + 2 - offsets.ndim) + offsets.shape[:-2]",
        "offsets.shape[:-2]",
        "offsets.gather_pinned",
    ),
    "a table for all texts": ("rope._pieces", "all((rows == 1 for rows in cos.shape[:-2]))", "True", "rope.pinned"),
    "rows of a stack in another order": (
        "offsets.dense",
        "by_offset.reshape",
        "by_offset.T.reshape",
        "offsets.toeplitz_pinned",
    ),
    "positions of a batch in another order": ("rope.tables", "positions.astype", "positions.T.astype", "rope.pinned"),
    "strides": (
        "_pairs.integers",
        "np.ascontiguousarray(array, np.int64)",
        "np.ndarray(array.shape, np.int64, np.ascontiguousarray(array if array.base is None else array.base).data)",
        "shaw.scores_pinned",
    ),
    "narrow slopes": ("alibi.bias", "slopes.astype(exact)", "slopes.astype(np.float32)", "alibi.pinned"),
    "a bias from the end": ("attention._stream", "bias[..., ::-1]", "bias", "attention.offsets_pinned"),
    "a wider window": ("attention._band", "int(window) - 1", "int(window)", "attention.offsets_pinned"),
    "a shard that sees the future": (
        "attention.partial_by_offset",
        "(causal, window, shift)",
        "(False, window, shift)",
        "attention.offsets_pinned",
    ),
    "no mask": ("shaw.attend", "threads), mask)", "threads), None)", "shaw.attend_pinned"),
    "a gradient that turns forwards": ("rope.gradient", "-sin", "sin", "rope.gradient_by_calculus"),
    "sines for cosines in a prepared call": (
        "rope.rotator",
        "cos.reshape(pairs), sin.reshape(pairs)",
        "sin.reshape(pairs), cos.reshape(pairs)",
        "rope.pinned",
    ),
    "the other end": ("deberta._ends", "-1, 1 - span, span", "-1, -span, span - 1", "deberta.pinned"),
    "u for v": ("transformer_xl.scores", "q + v[..., None, :]", "q + u[..., None, :]", "transformer_xl.scores_pinned"),
    "keys with gaps": (
        "t5._calls",
        "(np.diff(query) == 1).all() and (np.diff(key) == 1).all()",
        "(np.diff(query) == 1).all()",
        "t5.pinned",
    ),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_of_a_wrapper_is_refused(name, monkeypatch):
    where, before, after, of = EDITS[name]
    module, function = where.split(".")
    own = python_function(getattr(importlib.import_module(f"posref.fast.{module}"), function))
    text = ast.unparse(original(own))
    assert text.count(before) == 1
    (t,) = find(of)
    assert numbers.check(t) > 0
    assert twins.compared
    with swapped(own, code_of(own, ast.parse(text.replace(before, after)))):
        with pytest.raises(Refuted, match=r"^fast\.\w+\.\w+ (fails where its specification|returns .* its specification)"):
            numbers.check(t)
        monkeypatch.setattr(twins, "agree", lambda *_: None)
        assert numbers.check(t) > 0  # the specification is what it was: nothing else notices


def test_what_is_not_installed_is_not_called(monkeypatch):
    monkeypatch.setattr(twins, "INSTALLED", False)
    twins._twins.cache_clear()
    (t,) = find("offsets.gather_pinned")
    assert numbers.check(t) > 0
    assert not twins.compared
    twins._twins.cache_clear()
