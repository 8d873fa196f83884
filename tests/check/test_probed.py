"""What a check asks: for every op, each argument, setting and extent has a probe at which it matters, or a reason.

The functions are the specification itself with one thing changed. That the check fails is the test; that it names what was
changed is another one's.
"""

import inspect
from fnmatch import fnmatch
from functools import partial

import numpy as np

from posref import ops
from posref.check import check
from tests.every import every
from tests.ops.test_ops import CHOICES
from tests.ops.test_ops import settings as every_setting

# numbers at which the next ones give something else
TELLING = {"max_position": 64, "original_length": 64, "truncate": False}
OF_ONE = {name: {"dim": 64} for name in ("scaling.yarn", "scaling.yarn_tables", "scaling.llama3")}
OF_ONE |= {"scaling.dynamic_ntk": {"length": 200}}
ENOUGH = {"n_query": 200, "n_key": 200, "heads": 64, "batch": 8}


def in_bits(bits):
    def rounded(x):
        fraction, exponent = np.frexp(x.astype(float))
        return np.ldexp(np.rint(np.ldexp(fraction, bits)), exponent - bits).astype(x.dtype)

    return rounded


def causal(mask):
    return mask & (np.tri(*mask.shape[-2:], mask.shape[-1] - mask.shape[-2]) > 0)


CHANGES = {
    "i": {
        "absolute": np.abs,
        "float16": in_bits(11),
        "bfloat16": in_bits(8),
        "int16": lambda p: p.astype(np.int16).astype(p.dtype),
        **{f"at most {n}": lambda p, n=n: np.minimum(p, n) for n in (300, 9000, 200_000, 3_000_000)},
    },
    "f": {"absolute": np.abs, "float16": in_bits(11), "bfloat16": in_bits(8)},
    "b": {"causal": causal, "ignored": np.ones_like, "of the last row": lambda m: np.broadcast_to(m[..., -1:, :], m.shape)},
}
FLAGS = "says whether, which or how many; is no position"
TABLE = "the table ends before that, and the specification refuses what is beyond, or below 0"
CLAMPED = "a mask of positions clamped at 0 is the same, and who clamps refuses what is below"
OWN = "a gradient by an argument in which the result is linear does not depend on it"
CONVERGED = "so many steps have converged: one more or less is within the bound"
STEP = "is compared with lengths of waves, and moves nothing between two of them"
WIDE = "angles of pairs that turn fast are off by more than a turn in float32 so far out, and attention sums all pairs"
LIMITED = "beyond the limit of the setting all offsets are one"
SHORT = "distances end with the text, and the text of a probe is not so long"
SHAPES = "is read from the shapes of the arrays"
POSITIVE = "is never below 0"
NOT_TOLD = {  # "op argument change" -> why no question of a check tells it
    "attention.causal_mask query_positions absolute": CLAMPED,
    "position_ids.* *_positions absolute": CLAMPED,
    "inkling.attend key_positions absolute": "keys below 0 are as clamped at 0, and who clamps refuses what is below",
    "complex_order.scores *_positions at most 3000000": WIDE,
    "rope.attend *_positions at most 3000000": WIDE,
    "value.attend *_positions at most 3000000": WIDE,
    "xpos.rotate positions int16": "the decay leaves the numbers of float32 from 2^15 on",
    "xpos.rotate positions at most *00000": "the decay leaves the numbers of float32 from 2^15 on",
    "cope.positions gates absolute": POSITIVE,
    "generators.mixed magnitudes absolute": POSITIVE,
    "floater.field times absolute": POSITIVE,
    "kerple.bias [pa] absolute": POSITIVE,
    "path.scores beta absolute": POSITIVE,
    "scaling.longrope factors absolute": POSITIVE,
    "*_gradient q *": OWN,
    "deberta.scores_gradient q_r *": OWN,
    "floater.* substeps *": CONVERGED,
    "generators.turn terms *": CONVERGED,
    "generators.turn halvings *": CONVERGED,
    "fope.* length *": STEP,
    "fope.rotate *_coefficients absolute": "one wave is kept at these sizes, and its coefficients are above 0",
    "stick_breaking.remainder n_query beyond 200": "what so many keys leave is below the numbers of float32",
    "*.encode positions absolute": TABLE,
    "*.encode positions int16": TABLE,
    "*.encode positions at most *000": TABLE,
    "offsets.skew heads beyond 64": "rows of a table, which has fewer than columns",
    "index.encode_normalized positions *": "positions are below the length",
    "rope.scores heads *": SHAPES,
    "rope.scores key_heads *": SHAPES,
    "sinusoidal_2d.encode dim +1": "an odd width is rounded down",
    "swin.* coordinates int16": "differences of coordinates alone count, and so far out all wrap alike",
    "swin.shift_mask coordinates *": TABLE,
    "transformer_xl.embeddings distances int16": SHORT,
    "transformer_xl.embeddings distances at most *000": SHORT,
    "tupe.attend theta_1 *": "the row of the first token is one number, which softmax does not see",
    "alibi.attend query_positions *": "a row of linear biases is off by a constant, which softmax does not see",
    "axes.*sections sizes *": FLAGS,
    "decomposed.* rows *": FLAGS,
    "decomposed.* columns *": FLAGS,
    "position_ids.packed lengths *": FLAGS,
    "position_ids.documents lengths *": FLAGS,
    "position_ids.multimodal parts *": FLAGS,
    "position_ids.document_mask lengths *": FLAGS,
    "position_ids.temperature positions absolute": "below 0 the formula has the logarithm of 0, or of less",
    "position_ids.tree* parents *": FLAGS,
    "position_ids.tree result *": "depths are few",
    "attention.prefix_mask prefixes *": FLAGS,
    "*.packed boundaries *": FLAGS,
    "convolution.keep kernel *": SHAPES,
    "convolution.keep state *": "numbers of 24 bits are asked of texts that fill the window anew",
    "delta.* beta absolute": POSITIVE,
    "retention.* decays absolute": POSITIVE,
    "indexer.block_mask query_positions *": "a query beyond the last block sees all of them, however far it is",
    "*.block_mask blocks *": "numbers of blocks are few",
    "xlnet.* same *": FLAGS,
    "deberta.index offsets *": LIMITED,
    "deberta.log_bucket offsets *": LIMITED,
    "nezha.encode offsets *": LIMITED,
    "offsets.clip offsets *": LIMITED,
    "t5.bucket offsets *": LIMITED,
    **{f"{name} result *": LIMITED for name in ("deberta.index", "deberta.log_bucket", "offsets.clip", "t5.bucket")},
    **{f"position_ids.{name} result *": LIMITED for name in ("rerope", "dual_chunk", "lambda_mask")},
    **{f"{name} result *": "no number is larger than the setting" for name in ("deberta.ends", "fope.step_eye", "t5.starts")},
}


def settings(op):
    """Those that the op needs."""
    needed = {name for name, p in inspect.signature(op.make).parameters.items() if p.default is p.empty}
    chosen = needed | CHOICES.get(op.name, {}).keys()
    return {name: (every_setting(op) | TELLING)[name] for name in every_setting(op) if name in chosen} | OF_ONE.get(op.name, {})


def bare(op):
    """Without mistakes: that it fails is asked, and not what it is."""
    return op._replace(mistakes={})


def changed(op, change):
    """The specification at other arguments."""
    signature = inspect.signature(op.spec)

    def function(*given, **named):
        bound = signature.bind(*given, **named)
        bound.arguments |= change(bound.arguments)
        with np.errstate(all="ignore"):
            return op.spec(*bound.args, **bound.kwargs)

    function.__signature__ = signature
    return function


def passes(op, function):
    return check(function, bare(op), **settings(op)).ok


def arguments(op):
    made = op.make(**settings(op))
    for name in op.given:
        if isinstance(made.get(name), np.ndarray):
            for words, change in CHANGES[made[name].dtype.kind].items():
                yield name, words, lambda a, name=name, change=change: {name: change(a[name])}
    for name in inspect.signature(op.spec).parameters:
        if type(made.get(name)) is int and name not in op.given:
            for step in (-1, 1):
                yield name, f"{step:+d}", lambda a, name=name, step=step: {name: a[name] + step}


def results(op):
    """The specification with whole numbers in few bits, and with zeros at a step of decoding: `(words, function)`."""
    made = op.make(**settings(op))
    if np.asarray(op.spec(**made)).dtype.kind in "iu":
        yield from ((f"result {words}", with_result(op, in_bits(bits))) for words, bits in (("float16", 11), ("bfloat16", 8)))
    own = inspect.signature(op.spec).parameters
    if {"n_query", "n_key"} <= inspect.signature(op.make).parameters.keys() - own.keys() - settings(op).keys():
        for step in ({"n_query": 1, "n_key": 8}, {"n_query": 1, "n_key": 9}):
            there = np.shape(op.spec(**op.make(**settings(op) | step)))
            if there != np.shape(op.spec(**made)):
                yield f"step of decoding at {step['n_key']}", with_result(op, partial(zeros_at, shape=there))


def with_result(op, change):
    """The specification, whose result is changed."""

    def function(*given, **named):
        return change(np.asarray(op.spec(*given, **named)))

    function.__signature__ = inspect.signature(op.spec)
    return function


def zeros_at(y, shape):
    return np.zeros_like(y) if y.shape == shape else y


def refusing(function):
    """ValueError becomes an output that is wrong: the specification refuses the setting."""

    def wrapped(*given, **named):
        try:
            return function(*given, **named)
        except ValueError:
            return np.zeros(3)

    wrapped.__signature__ = function.__signature__
    return wrapped


def untold(op):
    """What passes though something is changed."""
    told = ((f"{name} {words}", refusing(changed(op, change))) for name, words, change in arguments(op))
    return [f"{op.name} {words}" for words, function in (*told, *results(op)) if passes(op, function)]


def short(op):
    """Extents of the result that grow with an extent of the probe, and beyond which nobody looks."""
    needed = settings(op)
    usual = np.shape(op.spec(**op.make(**needed)))
    for extent, enough in ENOUGH.items():
        p = inspect.signature(op.make).parameters.get(extent)
        if p is None or extent in needed or extent in inspect.signature(op.spec).parameters:
            continue
        try:
            grown = np.shape(op.spec(**op.make(**needed | {extent: p.default + 1})))
        except ValueError:
            continue
        for axis in np.flatnonzero(np.subtract(grown, usual)) if len(grown) == len(usual) else ():
            if passes(op, with_result(op, partial(zeros_from, axis=axis - len(usual), enough=enough))):
                yield f"{op.name} {extent} beyond {enough}"


def zeros_from(y, axis, enough):
    y = np.array(y)
    np.moveaxis(y, axis, 0)[enough:] = 0
    return y


def all_untold(name):
    op = ops.op(name)
    return [*untold(op), *short(op)]


def unreasoned(told):
    """What passes without a reason."""
    return [each for each in told if not any(fnmatch(each, pattern) for pattern in NOT_TOLD)]


def idle(told):
    """Reasons for what does not pass."""
    return [pattern for pattern in NOT_TOLD if not any(fnmatch(each, pattern) for each in told)]


def weak(a):
    return {"log_gates": np.maximum(a["log_gates"], -5)}


def two_texts(a):
    return {"boundaries": np.append(a["boundaries"][:2], a["boundaries"][-1])}


def by_values(a):
    return {"scale": a["scale"] * (a["k"].shape[-1] / a["v"].shape[-1]) ** 0.5}


UNASKED = [  # ops, and a change of arguments that they must see
    ("gated.attend", weak),
    ("delta.attend", weak),
    ("convolution.packed", two_texts),
    ("delta.packed", two_texts),
    ("retention.attend", by_values),
    ("gated.packed", two_texts),
]


@every(UNASKED, name=lambda case: case[0], parts=2)
def test_strong_gates_three_texts_and_two_widths_are_asked(name, change):
    assert not passes(ops.op(name), changed(ops.op(name), change))


@every(["alibi.slopes", "t5.bucket"])
def test_an_argument_and_an_extent_matter(name):
    """`python -m tests.release probes` asks all ops."""
    told = all_untold(name)
    assert unreasoned(told) == []
    assert bool(told) == (name == "t5.bucket")
