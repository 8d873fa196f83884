r'''Golden vectors from the definitions: `python -m proofs.vectors [--check] [NAME ..]`.

To add vectors for a new system, write proofs/vectors/<system>.py with the three names below. The formula is the scalar
`definition` of its proof file, which states the paper again for sympy and mpmath. Nothing is registered: posref/vectors/
<system>.json appears. posref/ops/<system>.py ties them to posref: one function per `op`, named like it, and mistakes.

    """Linear bias: a number per offset."""  # the first line becomes the title

    def definition(offset, slope, m=sympy):  # Author et al., Eq. (3); imported from proofs/<family>/<system>.py
        return slope * offset

    SOURCES = ("Author et al., arXiv 1234.56789, Eq. (3)",)
    CONVENTIONS = {"op bias": "slope times (key position - query position)"}

    def vectors():
        slopes, offsets = [mpmath.mpf(2) ** -h for h in (1, 2, 3)], list(range(-4, 3))
        id = "linear_bias/h3/bias"  # <system>/<variant>/<params>/<probe>; an id never changes
        params = {"heads": 3}  # flat: numbers, words, booleans
        tensors = {"offsets": offsets}  # integers, or floats exact in bf16: see `painted`
        expected = [[definition(o, s, mpmath) for o in offsets] for s in slopes]  # int, mpf, or a float that is exact
        amp = terms(1, expected)  # or None for outputs equal bit for bit, or {"amp": .., "phase": .., "out": ..}
        yield case(id, "bias", params, tensors, expected, amp, "sign", gauge="none")  # or "row_constant", which a softmax hides

`kills` names mistakes of posref/ops/<system>.py, the only place where they are written: a generator computes no wrong answer.
`case` refuses a mistake that some model in `models` (default: all) could not distinguish from the right answer with rounding on
both sides, so every stored flag is a promise. Values are computed with 200 bits and rounded once, hence equal on every machine;
never call posref's functions here. Let axes have different sizes; keep a file below 60 kB.

Sensitivities (posref/vectors/models.py derives them): `terms(r, x)` for sums in which a term meets r roundings; |angle| *
`growth(frequency)` is the `phase` of an angle. For attention the sensitivities are computed beside the values: `exact(x)` of an
input is a pair (value, cond), and `dot`, `total`, `product`, `cap`, `softmax`, `average` and `attend` make pairs of pairs. A
case takes such a pair as two arguments: `case(id, op, params, tensors, *attend(q, k, v, scale), kills)`.
'''

import hashlib
from decimal import ROUND_UP, Context, Decimal

import mpmath
import numpy as np

from posref import ops
from posref.vectors import MODELS, error, fingerprint
from posref.vectors import _case as read_case
from posref.vectors.formats import canonical
from proofs.vectors import _honest
from proofs.vectors._sensitivity import *

SENSITIVITIES = "attend average cap dot exact numbers product rearranged slopes softmax stored terms total"
CONSTANTS = "BELOW BEYOND BY_DISTANCE FAR HALVES MATH_IN_F32 MODELS NARROW OTHER PADDED PLACES WRAPPED"
__all__ = f"{CONSTANTS} {SENSITIVITIES} case cut fewer growth narrow painted".split()  # what generators import

BITS = 200
BEYOND = 2**24  # float32 has no odd numbers from here on; a multiple of every smaller modulus that is a power of two
FAR = BEYOND + np.array([-3, -1, 0, 1, 3])  # keys on both sides of it; every narrow type moves some of them
NARROW = "positions_clamped positions_modulo bf16_positions f16_positions f32_positions"  # what FAR tells from each other
WRAPPED = "int16_positions positions_clamped positions_modulo bf16_positions f16_positions"  # told even within float32
PADDED = np.array([[0, 0, 0, 1, 2], [0, 1, 2, 3, 4]])  # the first row is padded on the left by two tokens
# A row in no order, from 0 and with gaps; two on both sides of where numbers of 16 and of 24 bits end, in no order.
PLACES = np.array([[4, 0, 1, 9], [32768, 65536, 32767, 65535], [BEYOND + 1, BEYOND, BEYOND - 1, BEYOND + 3]])
BELOW = np.array([2, -3, 0, -40])  # a cache and padding on the left count back from a token
HALVES = np.array([0.5, 2.25, 7, 40.75])  # steps of a diffusion and coordinates of an image are no integers
MATH_IN_F32 = ("f64", "f32", "f16-f32math", "bf16-f32math")  # where steps in 8 bits lose the effect of one key
OTHER = {"half": "interleaved", "interleaved": "half"}
ZERO_FREE = (1, 2, 4, 6, 8, 9, 10, 11, 13, 14, 15, 17, 18, 19, 20, 21, 27, 31)
# Probes of a bias that depends on distances: name, queries, keys, mistakes.
BY_DISTANCE = (
    ("padded", PADDED[:, 2:], PADDED, "positions_ignored positions_shared_across_batch queries_left_aligned row_for_position"),
    ("far", [4097, 48040], [0, 4090, 48039], "int16_positions positions_ignored"),
    ("beyond", FAR[3:], FAR, f"{NARROW} positions_zero"),
    ("fractional", HALVES[1:3], HALVES, "positions_ignored"),
    ("negative", BELOW[1:3], BELOW, "positions_ignored"),
)
TOLD = 2  # one tolerance for the right answer, one for the rounding of the wrong one
GAUGES = ("none", "row_constant")
THREE_DIGITS = Context(prec=3, rounding=ROUND_UP)


def painted(shape, tag):
    """x[n] = ((7 n^2 + 31 n + 17 tag) mod 251 - 125) / 64 in row-major order: never 0, exact in bf16, below 2 in size.

    >>> painted((2, 2), 1)
    array([[-1.6875 , -1.09375],
           [-0.28125,  0.75   ]])
    """
    if tag not in ZERO_FREE:
        raise ValueError(f"painted: tag is {tag}, which paints zeros; take one of {ZERO_FREE}")
    n = np.arange(np.prod(shape, dtype=int))
    return (((7 * n * n + 31 * n + 17 * tag) % 251 - 125) / 64).reshape(shape)


def cut(x):
    """One entry less on the last axis."""
    return x[..., :-1]


def fewer(x):
    """One row less: the axis before the last."""
    return x[..., :-1, :]


def case(
    id,
    op,
    params,
    tensors,
    expected,
    cond=None,
    kills="",
    *,
    stages=None,
    gauge="none",
    mistakes=None,
    models=tuple(MODELS),
    comment="",
    ignore=False,
    honest=None,
):
    """The record of one case, checked: every model distinguishes every mistake from the right answer.

    `cond` is a dictionary of sensitivities, or amp alone. `kills` names mistakes of posref/ops/<system>.py; `ignore` is true
    where elements of `expected` have no meaning. `mistakes` maps names to wrong answers, only in files of models and
    kernels, whose cases hold no arguments of an op. In these files `honest(way, bits)` is the output of an attention that
    rounds (posref/check/rounded.py).

    ValueError naming the case, and the mistake with its distance in tolerances, if a model does not distinguish a mistake.
    """
    cond = cond if cond is None or isinstance(cond, dict) else {"amp": cond}
    if mpmath.mp.prec < BITS:
        raise ValueError(f"case {id}: mpmath works with {mpmath.mp.prec} bits; run python -m proofs.vectors, which sets {BITS}")
    if gauge not in GAUGES or not id.isascii() or id != id.lower() or " " in id:
        raise ValueError(f"case {id}: gauge is {gauge!r}, expected one of {GAUGES}; ids are lower case without blanks")
    record = {
        "id": id,
        "op": op,
        "flags": sorted({*kills.split(), *(mistakes or {})}),
        "status": "active",
        "models": [name for name in models if name != "f32-iterative"],
        "params": {name: value.item() if hasattr(value, "item") else value for name, value in params.items()},
        "comment": comment,
        "tensors": {name: tensor(value) for name, value in tensors.items()},
        "stages": {name: tensor(value) for name, value in (stages or {}).items()},
        "expected": tensor(expected),
        "cond": None if cond is None else _sensitivities(id, cond, expected),
        "gauge": gauge,
        "fingerprints": {},
        "ignore": np.broadcast_to(ignore, np.shape(expected)).astype(int).ravel().tolist() if np.any(ignore) else None,
        "growth": {},
        "rms": {},
    }
    record["sha256"] = hashlib.sha256(canonical(record).encode()).hexdigest()
    for value in np.array(expected, dtype=object).ravel():
        if isinstance(value, float) and narrow(value, 40) != value:
            raise ValueError(f"case {id}: expected holds {value!r}, the result of float arithmetic; compute with mpmath")
    right = read_case(record)
    for name, values in right.tensors.items():
        if values.dtype.kind == "f" and any(narrow(value, 8) != value for value in values.ravel().tolist()):
            raise ValueError(f"case {id}: input {name} is not exact in bf16; take `painted` or short binary fractions")
    record["rms"] = _honest.spreads(right, honest)
    right = right._replace(rms=record["rms"])
    given = {flag: np.array(tensor(wrong)["data"]).reshape(np.shape(wrong)) for flag, wrong in (mistakes or {}).items()}
    given |= _wrong_answers(right, kills.split())
    for flag, wrong in given.items():
        for model in right.models:
            distance = error(right, wrong, model)
            if distance <= TOLD:
                raise ValueError(
                    f"case {id}: mistake {flag} is {distance:.3g} tolerances of model {model} away, not distinguished"
                )
        if (sums := fingerprint(right, wrong)) is not None and _stands_out(right, sums):
            record["fingerprints"][flag] = [float(f"{x:.4g}") if abs(x) > 1e-7 * np.abs(sums).max() else 0.0 for x in sums]
    record |= _iterative(right, given)
    if record["growth"]:
        record["rms"] = _honest.spreads(read_case(record), honest)
    return record


def _iterative(case, given):
    """The model of angles by repeated multiplication, where the op makes frequencies and every mistake is told from them."""
    growth = _honest.growths(case.params, case.cond) if "f32" in case.models else {}
    if not growth or any(error(case._replace(growth=growth), wrong, "f32-iterative") <= TOLD for wrong in given.values()):
        return {}
    return {"models": [name for name in MODELS if name in {*case.models, *growth}], "growth": growth}


def _stands_out(case, sums):
    """Sums of rounding errors are not the same on every machine: those are no fingerprint."""
    return np.abs(sums).sum() > 1e-7 * np.abs(case.expected).sum()


def _wrong_answers(case, flags):
    """What the mistakes of the op give at this case. ValueError for one that has no place there."""
    if not flags:
        return {}
    op, arguments = ops.of_case(case)
    if unknown := set(flags) - op.mistakes.keys():
        raise ValueError(f"case {case.id}: posref/ops has no {', '.join(sorted(unknown))} for {op.name}")
    answers = {}
    for flag in flags:
        try:
            with np.errstate(over="raise"):
                wrong = np.asarray(op.mistakes[flag].wrong(op.spec, arguments)).astype(float)
        except FloatingPointError:
            wrong = np.full(case.expected.shape, np.inf)  # it leaves the numbers
        except ops.NotHere:
            raise ValueError(f"case {case.id}: mistake {flag} has no place here") from None
        fits = wrong.ndim <= case.expected.ndim and wrong.size < case.expected.size
        answers[flag] = np.broadcast_to(wrong, case.expected.shape) if fits and _broadcasts(wrong, case) else wrong
    return answers


def _broadcasts(wrong, case):
    sizes = zip(wrong.shape[::-1], case.expected.shape[::-1], strict=False)
    return all(own in (1, other) for own, other in sizes)


def described(name):
    """The system's own mistakes, then those that it shares with others, in the words of a vector file."""
    own = ops.flags(name)
    shared = {flag: m for op in ops.system(name).values() for flag, m in op.mistakes.items() if flag not in own}
    return own | {flag: {"bug": m.bug, "effect": m.effect, "seen_in": list(m.seen_in)} for flag, m in shared.items()}


def tensor(values):
    """{"shape", "data"} of nested lists or an array: all integers, or all rounded once to float64.

    >>> tensor([[1, mpmath.mpf(1) / 3]])
    {'shape': [1, 2], 'data': [1.0, 0.3333333333333333]}
    """
    array = np.array(values, dtype=object)
    whole = all(isinstance(value, (int, np.integer)) for value in array.ravel())
    return {"shape": list(array.shape), "data": [int(value) if whole else rounded(value) for value in array.ravel()]}


def rounded(value):
    """The float64 nearest to an mpf, float or int."""
    if not mpmath.isfinite(value):
        raise ValueError(f"{value} has no place in a vector file, which holds finite numbers")
    return float(mpmath.mpf(value))


def growth(theta):
    """How many unit roundoffs the angle of a frequency may be off; `phase` of an angle is |angle| growth(theta)."""
    return 3 * abs(mpmath.log(theta)) + 4


def narrow(value, bits):
    """The mpf of that many significant bits nearest to `value`: 8 for bfloat16, 11 for float16, 24 for float32.

    >>> narrow(257, 8)
    mpf('256.0')
    """
    return mpmath.mpf(mpmath.mpf(value), prec=bits)


def _sensitivities(id, cond, expected):
    """Three digits, rounded up; what is zero or, for out, |expected| is left out."""
    kept = {}
    for name, values in cond.items():
        if name not in ("amp", "phase", "out"):
            raise ValueError(f"case {id}: cond has {name!r}, expected amp, phase or out")
        if np.shape(values) != np.shape(expected):
            raise ValueError(f"case {id}: cond {name} has shape {np.shape(values)}, expected has {np.shape(expected)}")
        numbers = tensor(values)["data"]
        usual = [abs(number) if name == "out" else 0 for number in tensor(expected)["data"]]
        if numbers != usual:
            kept[name] = [float(THREE_DIGITS.create_decimal(Decimal(number))) for number in numbers]
    return kept or {"amp": [0.0] * np.size(expected)}
