"""The program of examples/serve in PyTorch answers all calls of a check."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="pip install posref[parity]")

from posref import cli

PROGRAM = Path(__file__).parents[2] / "examples" / "serve" / "rope.py"


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_program_in_pytorch(dtype, capsys):
    asked = ["serve", f"{sys.executable} {PROGRAM}", "--as", "rope", "--dim", "16", "--to", dtype, "--layout"]
    assert cli.main([*asked, "half"]) == 0
    assert f"dtype ({dtype})" in capsys.readouterr().out
    if dtype == "float32":
        assert cli.main([*asked, "interleaved", "--max-position", "4000"]) == 1
        assert "--layout half" in capsys.readouterr().out
