"""What each op of linear_attention.json is in posref."""

from posref.rotary import linear_attention, rope


def feature_map(case):
    return linear_attention.elu_plus_one(case.tensors["x"])


def attend(case):
    q, k, v, positions = (case.tensors[name] for name in ("q", "k", "v", "positions"))
    cos, sin = rope.tables(positions, rope.frequencies(case.params["dim"], case.params["base"]))
    options = {name: case.params[name] for name in ("layout", "causal")}
    return linear_attention.attend(q, k, v, cos, sin, feature_map=linear_attention.elu_plus_one, **options)
