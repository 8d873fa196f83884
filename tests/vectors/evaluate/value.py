"""What each op of value.json is in posref."""

from posref import attention
from posref.rotary import rope, value


def attend(case):
    q, k, v, here, there = (case.tensors[name] for name in ("q", "k", "v", "q_positions", "k_positions"))
    options = {name: case.params[name] for name in ("layout", "scale", "undo")}
    mask = attention.causal_mask(here, there) if case.params["causal"] else None
    theta = rope.frequencies(case.params["dim"], case.params["base"])
    return value.attend(q, k, v, here, theta, mask=mask, key_positions=there, **options)
