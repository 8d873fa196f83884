"""Whether a layer with a state computes what `posref.explain` says: posref makes its output of the recorded inputs.

The formulas of an explanation are evaluated with the trained numbers of the module. Where a formula reads what a projection
gives (a, b, f), some output of a linear layer of this module must give the recorded numbers, for all tokens.
"""

import re

import numpy as np

from posref.state import convolution, delta, gated, retention

U = 2.0**-24  # unit roundoff of float32
FUNCTIONS = {
    "exp": np.exp,
    "clip": np.clip,
    "inf": np.inf,
    "sqrt": np.sqrt,
    "where": np.where,
    "softplus": lambda x: np.logaddexp(0, x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "silu": lambda x: x / (1 + np.exp(-x)),
}


def evaluated(formula, **values):
    return eval(formula, {**FUNCTIONS, **values})


def compared(layers, record, aspects):
    """How states and convolutions of layers differ from {number: what is said}; notes in `aspects` what was compared."""
    calls = {}
    for call in record.states:
        calls.setdefault(int(re.search(r"\.(\d+)(\.|$)", call.layer)[1]), []).append(call)
    for i, layer in layers.items():
        said, own = layer["state"], calls.pop(i, [])
        convolved = [call for call in own if call.function == "causal_conv1d_fn"]
        scanned = [call for call in own if call not in convolved]
        if not own or bool(scanned) != ("log_decay" in said) or bool(convolved) != ("convolution" in said):
            yield f"layer {i}: its state is computed by {[call.function for call in own]}, explained as {said['call']}"
            continue
        linears = {name: pair for name, pair in record.linears.items() if name.startswith(f"{own[0].layer}.")}
        inputs = {}
        if scanned:
            inputs = INPUTS[scanned[0].function](said, scanned, linears)
            yield from (f"layer {i}: {words}" for words in state(said, inputs, scanned, linears, i))
        attention = f"{own[0].layer.rpartition('.')[0]}.self_attn.q_proj"
        if "in_proj" in vars(own[0].module)["_modules"] and attention in record.linears:  # both read the same token
            yield from (f"layer {i}: {words}" for words in multiplied(said, own, record.linears[attention][0]))
        yield from (f"layer {i}: {words}" for call in convolved for words in short(said["convolution"], call, inputs, linears))
        taken = [*(norm.before for norm in record.norms), *(call.v for call in record.attentions)]
        sums = [call.given["hidden_states"] + call.result for call in convolved]
        added = any(np.isin(x, each).all() for x in sums for each in taken)
        if convolved and added != said["convolution"].get("added", False):
            yield f"layer {i}: that its convolution is added to keys and values is {added}, explained as {not added}"
        aspects[layer["part"], i, "state"]["state"] = ""
    if layers:
        yield from (f"layer {i}: its state is not explained" for i in calls)


def numbers(module):
    """The trained numbers by the last word of their names."""
    return {name.rpartition(".")[2]: x.detach().double().numpy() for name, x in module.named_parameters()}


def heads_first(x):
    """(1, tokens, heads, ..) to (heads, tokens, ..)."""
    return np.swapaxes(x[0].astype(float), 0, 1)


def of_delta(said, calls, linears):
    (call,) = calls
    names = {"q": "query", "k": "key", "v": "value", "beta": "beta", "log_gates": "g"}
    found = {name: heads_first(call.given[key]) for name, key in names.items()}
    gates = found["log_gates"]
    return {**found, "log_gates": gates if gates.ndim == 3 else gates[..., None]}


def of_mamba_2(said, calls, linears):
    (call,) = calls
    q, k, x, dt = (heads_first(call.given[name]) for name in ("C", "B", "hidden_states", "dt"))
    return {"q": q, "k": k, "x": x, "dt": dt[..., None], "dt_bias": call.given["dt_bias"][:, None, None], "z": None}


def of_mamba_1(said, calls, linears):
    """A call for each head of keys: channels are heads of one value each."""
    rows = {name: np.concatenate([call.given[name][0] for call in calls]) for name in ("hidden_states", "dt", "z")}
    x, dt, z = (rows[name].astype(float)[..., None] for name in ("hidden_states", "dt", "z"))
    q, k = (np.stack([call.given[name][0].T for call in calls]).astype(float) for name in ("C", "B"))
    bias = np.concatenate([call.given["delta_bias"] for call in calls])
    return {"q": q, "k": k, "x": x, "dt": dt, "dt_bias": bias[:, None, None], "z": z}


def of_lightning(said, calls, linears):
    """Queries, keys and values stand side by side in each head of the projection."""
    projected = next(y for name, (_, y) in linears.items() if name.endswith(".qkv_proj"))
    made = evaluated(said["activation"], **FUNCTIONS)(projected[0].astype(float))
    made = made.reshape(len(made), said["value_heads"], -1).swapaxes(0, 1)
    return dict(zip("qkv", np.split(made, 3, axis=-1), strict=True))


def of_rg_lru(said, calls, linears):
    """The projections of both gates are apart for each head; decay and value are made of them."""
    (call,) = calls
    x, trained = call.given["hidden_states"][0].astype(float), numbers(call.module)
    heads = x.reshape(len(x), call.module.num_attention_heads, -1)
    r, g = (
        np.einsum("nhi,hij->nhj", heads, trained[f"{name}_gate_weight"]) + trained[f"{name}_gate_bias"]
        for name in ("recurrent", "input")
    )
    r, g = (each.reshape(x.shape).T[..., None] for each in (r, g))
    ones, p = np.ones((1, len(x), 1)), call.given["position_ids"][0][:, None]
    return {"q": ones, "k": ones, "x": x.T[..., None], "r": r, "g": g, "p": p}


INPUTS = {
    "torch_chunk_gated_delta_rule": of_delta,
    "chunk_kimi_delta_attention": of_delta,
    "mamba2_chunk_scan": of_mamba_2,
    "mamba_selective_scan": of_mamba_1,
    "lightning": of_lightning,
    "rg_lru": of_rg_lru,
}


def state(said, given, calls, linears, i):
    """The output of a state, by the explained system, decay, heads, norm and scale."""
    trained = numbers(calls[0].module)
    shape = [given["k"].shape[0], given["k"].shape[-1]]
    if shape != [said["key_heads"], said["key_width"]]:
        yield f"its state has keys of {shape}, explained as {said['key_heads']} heads of {said['key_width']}"
        return
    if ("normed" in said) != any(name.endswith("b_layernorm") for name in vars(calls[0].module)["_modules"]):
        yield f"its keys, queries and dt are explained as {said.get('normed', 'without a norm')}"
    chunk = calls[0].given.get("chunk_size", getattr(calls[0].module, "block_size", None))
    if chunk != said.get("chunk"):
        yield f"its state is computed by chunks of {chunk}, explained as {said.get('chunk')}"
    h = np.arange(said["value_heads"])
    q, k = (x[evaluated(said["key_head"], h=h)] for x in (given["q"], given["k"]))
    v, theirs = given.get("v"), joined(calls)
    if "unit" in said:
        q, k = (delta.unit(x, eps=said["unit"]) for x in (q, k))
    if "strength" in said:
        yield from by_columns("strength", "b", said["strength"], given["beta"][..., None], linears, {})
        log_gates, read = given["log_gates"], re.search(r"(\w+) \+ dt_bias", said["log_decay"])
        yield from by_columns("decay", read[1], said["log_decay"], log_gates, linears, trained)
    elif "step" in said:
        step = evaluated(said["step"], dt=given["dt"], dt_bias=given["dt_bias"])
        a_log = trained["A_log"].reshape(len(h), 1, -1)
        log_gates, v = evaluated(said["log_decay"], A_log=a_log, step=step), evaluated(said["values"], step=step, x=given["x"])
    elif "r" in given:
        param, p = trained["recurrent_param"][:, None, None], given["p"]
        log_gates = evaluated(said["log_decay"], r=given["r"], p=p, recurrent_param=param)
        v = evaluated(said["values"], decay=np.exp(log_gates), p=p, g=given["g"], x=given["x"])
    else:
        log_gates = np.broadcast_to(evaluated(said["log_decay"], h=h[:, None, None], i=i), (len(h), len(theirs[0]), 1))
    if v.shape != (len(h), len(theirs[0]), said["value_width"]):
        yield f"its state has values of {v.shape}, explained as {said['value_heads']} heads of {said['value_width']}"
        return
    ours = output(said, q, k, v, log_gates, given.get("beta"))
    size = abs(output(said, *map(abs, (q, k, v)), log_gates, None if "beta" not in given else -given["beta"]))
    growth = abs(log_gates[log_gates > -np.inf]).max()
    # of each token: one rounding per feature, some for norms and the gate, and those of a sum of log gates
    bound = len(theirs[0]) * (said["key_width"] + 8 + 2 * growth) * U * size.max(axis=(-2, -1), keepdims=True)
    if "skip" in said:
        skip = evaluated(said["skip"], D=trained["D"].reshape(-1, 1, 1), x=given["x"])
        gate = evaluated(said.get("gated", "1"), z=given["z"])
        ours, bound = (ours + skip) * gate, (bound + 8 * U * (size + abs(skip))) * abs(gate)
    off = abs(theirs - ours)
    if not (off <= bound).all():
        yield f"its state gives other numbers than {said['call']} as explained, by {off.max():.2g} of {abs(ours).max():.2g}"


def multiplied(said, calls, token):
    """What is convolved, and dt, are the projections of the token times their multipliers."""
    names, given = ("x", "keys", "queries", "dt"), {call.function: call.given for call in calls}
    convolved, dt = given["causal_conv1d_fn"]["hidden_states"], given["mamba2_chunk_scan"]["dt"]
    widths = [said["value_heads"] * said["value_width"], *[said["key_heads"] * said["key_width"]] * 2, said["value_heads"]]
    factors = np.repeat([said.get("multipliers", dict.fromkeys(names, 1.0))[name] for name in names], widths)
    made = token[0].astype(float) @ numbers(calls[0].module.in_proj)["weight"][-sum(widths) :].T * factors
    theirs = np.concatenate([convolved[0].T, dt[0]], axis=-1)
    if not np.allclose(made, theirs, atol=1e-5):
        yield f"its projections are multiplied by others than {said.get('multipliers', 1.0)}"


def joined(calls):
    """The output, heads first."""
    y = calls[0].result
    if calls[0].function == "mamba_selective_scan":
        return np.concatenate([call.result[0] for call in calls]).astype(float)[..., None]
    return heads_first(y.reshape(1, y.shape[1], calls[0].module.num_attention_heads, -1) if y.ndim == 3 else y)


def output(said, q, k, v, log_gates, beta):
    if said["call"] == "delta.recurrent":
        return delta.recurrent(q, k, v, beta, log_gates, scale=said["scale"], state_layout="kv").output
    if said["call"] == "gated.recurrent":
        return gated.recurrent(q, k, v, log_gates, scale=said["scale"], state_layout="kv").output
    return retention.recurrent(q, k, v, np.exp(log_gates[:, 0, 0]), scale=said["scale"]).output


def by_columns(what, name, formula, expected, linears, trained):
    """Whether for each head and feature some column of a linear layer gives the numbers of all tokens by the formula."""
    heads, n, features = expected.shape
    columns = np.concatenate([y[0] for _, y in linears.values() if y.ndim == 3 and y.shape[1] == n], axis=-1).T.astype(float)
    for h in range(heads):
        for t in range(features):
            own = {
                key: np.broadcast_to(x.reshape(heads, -1), (heads, features))[h, t]
                for key, x in trained.items()
                if key in formula
            }
            made = evaluated(formula, **{name: columns}, **own)
            off = abs(made - expected[h, :, t]).max(axis=-1).min()
            if not off <= 16 * U * (1 + abs(expected[h, :, t]).max()):
                yield f"its state has another {what} than {formula}, by {off:.2g} of {abs(expected[h]).max():.2g} in head {h}"
                return


def short(said, call, inputs, linears):
    """The convolution, its activation, and what goes through it."""
    kernel, bias, x = call.given["weight"].astype(float), call.given.get("bias"), call.given["hidden_states"][0].T.astype(float)
    if kernel.shape[1] != said["width"] or (bias is not None) != said["bias"]:
        yield f"its convolution has the width {kernel.shape[1]} and a bias {bias is not None}, explained as {said}"
        return
    size = convolution.causal(abs(x), abs(kernel), None if bias is None else abs(bias)).output
    made, activation = convolution.causal(x, kernel, bias).output, said["activation"]
    made = made if activation is None else evaluated(activation, **FUNCTIONS)(made)
    theirs = call.result[0].T
    off = abs(made - theirs)
    if not (off <= 4 * (said["width"] + 4) * U * size).all():
        yield f"its convolution gives other numbers than explained, by {off.max():.2g} of {abs(theirs).max():.2g}"
    through = {"queries": inputs.get("q"), "keys": inputs.get("k"), "values": inputs.get("x", inputs.get("v"))}
    found = [name for name, value in through.items() if value is not None and np.isin(value, call.result).all()]
    if inputs and found != said["of"]:
        yield f"its convolution makes {found}, explained as {said['of']}"
    if "gated" in said:
        (_, projected), (taken, _) = (
            next(y for name, y in linears.items() if name.endswith(end)) for end in ("in_proj", "out_proj")
        )
        parts = dict(zip("BCx", np.split(projected[0], 3, axis=-1), strict=True))
        if not np.allclose(evaluated(said["of"][0], **parts), x, atol=1e-6):
            yield f"its convolution reads other numbers than {said['of'][0]}"
        if not np.allclose(evaluated(said["gated"], **parts) * theirs, taken[0], atol=1e-6):
            yield f"its convolution is not multiplied by {said['gated']}"
