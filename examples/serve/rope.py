"""RoPE of PyTorch answers the calls of `posref serve`: adapt `rotate`, and its device.

posref serve "python examples/serve/rope.py" --as rope --dim 16 --layout half
posref serve "python examples/serve/rope.py" --as rope --dim 16 --layout half --to bfloat16
"""

import json
import sys

import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def rotate(x, positions):
    """x (batch, heads, n, d), positions (batch, n); pairs (t, t + d/2), angles position * 10000^(-2t/d) in float32."""
    half = x.shape[-1] // 2
    theta = 10000.0 ** (-torch.arange(half, device=DEVICE, dtype=torch.float32) / half)
    angles = positions[:, None, :, None].float() * theta
    cos, sin = angles.cos(), angles.sin()
    a, b = x[..., :half].float(), x[..., half:].float()
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1).to(x.dtype)


def decoded(array):
    dtype = getattr(torch, array["dtype"])
    return torch.tensor(array["data"], dtype=dtype, device=DEVICE).reshape(array["shape"])


def encoded(y):
    return {"dtype": str(y.dtype).removeprefix("torch."), "shape": [*y.shape], "data": y.flatten().tolist()}


for line in sys.stdin:
    call = json.loads(line)
    arguments = call["arguments"]
    answer = encoded(rotate(decoded(arguments["x"]), decoded(arguments["positions"])))
    print(json.dumps({"call": call["call"], "result": answer}), flush=True)
