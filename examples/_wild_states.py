"""States that decay, asked as ops: functions of fla and transformers, and onnx's two operators as its reference and onnxruntime
run them. Queries come unscaled: 1/sqrt(d) is in these functions, another scale in the queries."""

import importlib
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from _wild_verdicts import asked


def delta(function: str, per_feature: bool = False, **more: Any) -> str:
    """A delta rule with a gate per head, or with a gate per feature."""
    theirs = called(function, **more)

    def attend(q, k, v, beta, log_gates, state, scale, state_layout):
        gates = log_gates if per_feature else log_gates[..., 0]
        return theirs((q * (scale * q.shape[-1] ** 0.5), k, v), {"beta": beta, "g": gates}, state)

    return asked(attend, "delta.attend", **told(per_feature))


def gated(function: str, per_feature: bool = False, gate: str = "g", **more: Any) -> str:
    """Gated linear attention with a gate per head, or with a gate per feature."""
    theirs = called(function, **more)

    def attend(q, k, v, log_gates, state, scale, state_layout):
        gates = log_gates if per_feature else log_gates[..., 0]
        return theirs((q * (scale * q.shape[-1] ** 0.5), k, v), {gate: gates}, state)

    return asked(attend, "gated.attend", **told(per_feature))


def told(per_feature: bool) -> dict[str, Any]:
    return {"scale": 0.5, "state_layout": "kv"} | ({} if per_feature else {"features": None})


def named(function: str) -> Callable:
    home, _, name = function.rpartition(".")
    return getattr(importlib.import_module(home), name)


def called(function: str, **more: Any) -> Callable:
    """A function with tokens before heads, called with heads before tokens."""
    theirs = named(function)

    def call(qkv, rest, state):
        given = dict(zip(inspect.signature(theirs).parameters, qkv, strict=False)) | rest
        given = {name: x.swapaxes(1, 2) for name, x in given.items()}
        return theirs(**given, initial_state=state, output_final_state=True, **more)[0].swapaxes(1, 2)

    return call


def gates(function: str, bounded: bool = False) -> str:
    """A gate of KDA with one feature per head."""
    theirs = named(function)

    def log_gates(x, a_log, bias):
        return theirs(x[..., None], a_log, bias)[..., 0]

    return asked(log_gates, "gated.bounded_log_gates" if bounded else "gated.log_gates")


def run(library: str, operator: str, feeds: dict, **attributes: Any) -> np.ndarray:
    """The first output of one node."""
    from onnx import TensorProto, helper

    domain = "com.microsoft" if library == "onnxruntime" else ""
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in (*feeds, "output", "present")]
    node = helper.make_node(operator, list(feeds), ["output", "present"], domain=domain, **attributes)
    graph = helper.make_graph([node], "node", values[:-2], values[-2:])
    versions = [helper.make_opsetid("", 24 if domain else 27), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=versions, ir_version=10)
    if domain:
        import onnxruntime

        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    else:
        from onnx.reference import ReferenceEvaluator

        session = ReferenceEvaluator(model)
    return session.run(None, feeds)[0]


def flat(x: np.ndarray) -> np.ndarray:
    """(batch, heads, n, d) to (batch, n, heads d)."""
    return np.ascontiguousarray(x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1))


def linear_attention(library: str, rule: str, per_feature: bool = False) -> str:
    """LinearAttention of onnx, whose state is keys by values."""

    def attend(q, k, v, state, scale, gates, **more):
        feeds = {"q": flat(q), "k": flat(k), "v": flat(v), "state": state, "decay": flat(gates)}
        heads = {"q_num_heads": q.shape[1], "kv_num_heads": k.shape[1]}
        feeds |= {name: flat(x) for name, x in more.items()}
        y = run(library, "LinearAttention", feeds, scale=scale, update_rule=rule, **heads)
        return y.reshape(q.shape[0], q.shape[2], q.shape[1], -1).swapaxes(1, 2)

    def gated(q, k, v, log_gates, state, scale, state_layout):
        return attend(q, k, v, state, scale, log_gates)

    def gated_delta(q, k, v, beta, log_gates, state, scale, state_layout):
        return attend(q, k, v, state, scale, log_gates, beta=beta[..., None])

    given = {"to": np.asarray, **told(per_feature)}
    return asked(gated, "gated.attend", **given) if rule == "gated" else asked(gated_delta, "delta.attend", **given)


def convolution(library: str) -> str:
    """CausalConvWithState of onnx, with features before tokens and no activation."""

    def convolve(x, kernel, bias, state):
        turned = (np.ascontiguousarray(y.swapaxes(1, 2)) for y in (x, state))
        feeds = dict(zip(("x", "state"), turned, strict=True)) | {"weight": kernel[:, None], "bias": bias}
        order = {name: feeds[name] for name in ("x", "weight", "bias", "state")}
        return run(library, "CausalConvWithState", order).swapaxes(1, 2)

    return asked(convolve, "convolution.convolve", to=np.asarray)
