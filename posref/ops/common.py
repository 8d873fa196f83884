"""Common: mistakes that any implementation with an argument of some name can make. Every system has them automatically."""

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from posref import _require, attention, pairing
from posref.absolute import sinusoidal
from posref.ops import Mistake, Wrong, changing, inside, missing, using
from posref.rotary import layouts, rope

POSITIONS = ("positions", "query_positions", "key_positions", "offsets")
PLACES = (*POSITIONS, "coordinates", "distances")  # of which angles are made
OTHER_LAYOUT = dict(zip(pairing.LAYOUTS, reversed(pairing.LAYOUTS), strict=True))
OTHER_LAYOUT |= {f"{read}_to_{written}": f"{written}_to_{read}" for read, written in OTHER_LAYOUT.items()}


def count(positions: Any) -> np.ndarray:
    """0, 1, 2, .. in place of positions."""
    return np.broadcast_to(np.arange(positions.shape[-1]), positions.shape)


def per_head(positions: Any, x: Any) -> Any:
    """Positions `(batch, n)` get an axis for the heads if x is `(batch, heads, n, d)`; other positions are unchanged."""
    return positions[:, None] if x.ndim == 4 and positions.shape == (x.shape[0], x.shape[2]) else positions


def transformed(rows: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """The rounding of a convolution by Fourier transforms of N rows: log2 N steps of three transforms, each u |x| |kernel|.

    A transform keeps norms, so the error of a step at every row is as large as the largest rows make it.
    """
    norms = np.sqrt((rows**2).sum(axis=-2, keepdims=True) * (kernel**2).sum(axis=-1))
    return 3 * np.log2(rows.shape[-2] + kernel.shape[-1]) * norms


def rounded(x: Any, bits: int) -> Any:
    """x rounded to this many significant bits. A number with error rounds itself; symbols and complex numbers raise NotHere.

    >>> rounded(np.array([257.0, 0.1]), 8)
    array([2.56000000e+02, 1.00097656e-01])
    """
    if hasattr(x, "rounded"):
        return x.rounded(bits)
    if np.asarray(x).dtype.kind in "Oc":
        missing()
    fraction, exponent = np.frexp(np.asarray(x, dtype=float))
    return np.ldexp(np.rint(fraction * 2.0**bits) / 2.0**bits, exponent)


def wrapped(x: Any, bits: int) -> Any:
    """x as signed integers of this many bits: after the highest integer comes the lowest.

    >>> wrapped(np.array([-1, 127, 128]), 8)
    array([  -1,  127, -128])
    """
    if getattr(getattr(x, "dtype", None), "kind", "") not in ("i", "u"):
        missing()
    return (x + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)


class _Angles(np.ndarray[Any, Any]):
    """Positions that become cosines and sines: factors that meet them, products, and the waves are rounded to `bits`."""

    bits: tuple[int, ...] = (53, 53, 53)
    waves: tuple[list[Any], ...] = ()  # the list where cosines and sines are noted

    def __array_finalize__(self, source: Any) -> None:
        self.bits, self.waves = getattr(source, "bits", self.bits), getattr(source, "waves", self.waves)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        first = next(x for x in inputs if isinstance(x, _Angles))
        met, made, table = first.bits
        plain = [np.asarray(x) if isinstance(x, _Angles) else rounded(x, met) if _is_real(x) else x for x in inputs]
        y = getattr(ufunc, method)(*plain, **named)
        if ufunc in WAVES:
            first.waves[0].append(ufunc)
            return rounded(y, table)
        if ufunc not in LINEAR or not _is_real(y):
            return y
        y = rounded(y, made)
        return _whose_waves_round(y, table) if hasattr(y, "rounded") else _on_the_way(y, first.bits, first.waves)

    def __array_function__(self, function: Any, types: Any, args: Any, named: Any) -> Any:
        y = super().__array_function__(function, types, args, named)
        return _on_the_way(y, self.bits, self.waves) if getattr(y, "dtype", np.dtype(int)).kind == "f" else y


WAVES, LINEAR = (np.cos, np.sin), (np.multiply, np.add, np.subtract, np.divide, np.matmul, np.negative)


def _is_real(x: Any) -> bool:
    return hasattr(x, "rounded") or np.asarray(x).dtype.kind == "f"


def _on_the_way(p: Any, bits: tuple[int, ...], waves: tuple[list[Any], ...]) -> Any:
    angles = np.asarray(p, dtype=float).view(_Angles)
    angles.bits, angles.waves = bits, waves
    return angles


def _whose_waves_round(y: Any, bits: int) -> Any:
    """A number with error whose cosines and sines are rounded to this many bits."""
    kind = type(y)

    def computed(self: Any, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        made = kind.__array_ufunc__(self, ufunc, method, *inputs, **named)
        return made.rounded(bits) if ufunc in WAVES else made

    y.__class__ = type("Angles", (kind,), {"__slots__": (), "__hash__": None, "__array_ufunc__": computed})
    return y


def _angles_in_few_bits(own: int, *bits: int) -> Wrong:
    """Positions, frequencies, angles, and cosines and sines in few bits, if the op computes cosines or sines of positions."""

    def wrong(f: Any, a: Any) -> Any:
        waves: list[Any] = []
        short = {
            name: _on_the_way(np.float16(p) if own == 11 else rounded(p, own), bits, (waves,))
            for name, p in a.items()
            if isinstance(p, np.ndarray) and name in PLACES
        }
        y = f(**a | short) if short else missing()
        return y if waves or hasattr(y, "rounded") else missing()

    return wrong


CHUNKS = 4, 16, 32, 64  # tokens, as kernels read a text


def in_texts(form: Callable[..., Any], boundaries: Any, *arrays: Any, **told: Any) -> Any:
    """Outputs of `form` for packed texts, each from an empty state. Text m is rows boundaries[m] .. boundaries[m + 1] - 1."""
    texts = [[x[..., first:last, :] for x in arrays] for first, last in itertools.pairwise(boundaries)]
    return np.concatenate([form(*text, **told).output for text in texts], axis=-2)


def in_16_bits(bf16: Mapping[str, Mistake], **wrong: Wrong) -> dict[str, Mistake]:
    """Mistakes of bfloat16 as mistakes of float16, with the effects that they have there."""
    return {
        name.replace("bf16", "f16"): bf16[name]._replace(
            wrong=change,
            bug=bf16[name].bug.replace("bfloat16", "float16").replace("8 bits", "11 bits"),
            effect=bf16[name].effect.replace("0.4 %", "0.05 %").replace("a thousand", "four thousand"),
            seen_in=(),
        )
        for name, change in wrong.items()
    }


def mistakes(arguments: Collection[str]) -> dict[str, Mistake]:
    """The shared mistakes of an op with these arguments, by name."""
    found: dict[str, Mistake] = {}
    for needed, group in GROUPS.items():
        found |= group if {*needed.split()} <= set(arguments) else {}
    here = [name for name in POSITIONS if name in arguments]
    return _positions(here) | found if here else found


def _positions(names: list[str]) -> dict[str, Mistake]:
    found = {"sign": of_all(names, SIGN)}
    if names == ["offsets"]:
        return found
    found |= {name: of_all(names, mistake) for name, mistake in EVERY_POSITION.items()}
    if len(names) == 2:  # an offset does not see a shift of both
        del found["position_plus_one"], found["position_minus_one"]
        found |= {"queries_left_aligned": LEFT, "row_for_position": ROWS}
    return found


def of_all(names: Sequence[str], mistake: Mistake) -> Mistake:
    """A mistake whose `wrong` changes one array of positions, made in all of these arguments."""
    return mistake._replace(wrong=changing(mistake.wrong, *names), kind="positions")


def _in_bits(bits: int) -> Callable[[Any], Any]:
    return lambda p: missing() if np.asarray(p).dtype == object else rounded(p, bits).astype(np.int64)


def _first_row(p: Any) -> np.ndarray:
    return np.broadcast_to(p[:1], p.shape) if p.ndim > 1 else missing()


def _wrong_axis(p: Any) -> np.ndarray:
    return np.broadcast_to(np.arange(p.shape[-2])[:, None], p.shape) if p.ndim > 1 else missing()


def _mask(change: Callable[[Any], Any]) -> Wrong:
    return using(mask=lambda a: change(a) if a.mask is not None else missing())


def _left_aligned(a: Any) -> np.ndarray:
    return (np.tri(*a.mask.shape[-2:]) > 0) | np.zeros_like(a.mask)


def _by_offset(compare: Callable[[Any], Any]) -> Wrong:
    """A mask that compares key position - query position."""

    def change(a: Any) -> Any:
        seen = compare(a.key_positions[..., None, :] - a.query_positions[..., :, None])
        return seen[:, None] if seen.ndim == 3 and a.mask.ndim == 4 else seen

    return _mask(change)


def of_the_first(name: str, axis: int) -> Wrong:
    """The first entry along an axis of an argument, used for all entries; NotHere if the axis has one entry."""

    def first(x: Any) -> Any:
        return np.broadcast_to(np.take(x, [0], axis), x.shape) if x.ndim >= -axis and x.shape[axis] > 1 else missing()

    return changing(first, name)


def _scores(change: Callable[..., Any]) -> Wrong:
    """Other scores where a bias is added; NotHere without a bias."""

    def changed(right: Callable[..., Any]) -> Callable[..., Any]:
        def scores(q: Any, k: Any, *, scale: Any, bias: Any = None, **rest: Any) -> Any:
            return change(partial(right, **rest), q, k, scale, bias) if bias is not None else missing()

        return scores

    return inside(attention, "scores", changed)


def entry(gradients, of):
    """The gradient of the argument `of`."""
    _require.choice("ops", "of", of, gradients._fields)
    return getattr(gradients, of)


def summed_as(gradient, x):
    """The gradient of an input that was broadcast: the sum over the axes that the input lacks."""
    return gradient.sum(axis=tuple(range(gradient.ndim - x.ndim)))


def last_wins(gradient, offsets, lowest, m):
    """`offsets.scatter_rows` that assigns instead of adding: of several entries for one row the last one stays."""
    same = offsets[..., None] - lowest == np.arange(m)
    later = np.cumsum(same[..., ::-1, :], axis=-2)[..., ::-1, :]
    return np.where(same & (later == 1), gradient[..., None], 0).sum(axis=-2)


# the mask that the specification makes itself is left out
UNMASKED = inside(
    attention, "softmax", lambda right: lambda s, mask=None, *rest: right(s, None, *rest) if mask is not None else missing()
)

OVERWRITTEN = Mistake(None, kind="gradient").words("""
    = for +=: entries of one row of the table overwrite each other instead of adding up
    Rows that occur once are right; those that all far tokens share learn from one pair.
    Add up: index_add, np.add.at, atomic additions.""")
FIRST_ROW = Mistake(None, kind="gradient").words("""
    the gradient of an argument shared by the batch is that of batch row 0 instead of the sum
    Right for a batch of one.
    Sum over all axes that were broadcast.""")
SIGN = Mistake(lambda p: -p, "the offset is query - key", "Past and future change places.", "The offset is key - query.")
LEFT = Mistake(using(query_positions=lambda a: count(a.query_positions)), kind="positions").words("""
    the queries start at position 0 though there are fewer queries than keys
    Decoding with a cache is wrong, prefill is right.
    Give the queries their own positions; the last query stands at the last key.""")
ROWS = Mistake(
    using(
        query_positions=lambda a: count(a.query_positions) + a.key_positions.shape[-1] - a.query_positions.shape[-1],
        key_positions=lambda a: count(a.key_positions),
    ),
    kind="positions",
).words("""
    the positions given are replaced by row numbers, aligned at the end
    Worse with left padding; gaps are lost.
    Use the positions that are given, not an arange.""")
EVERY_POSITION = {  # `wrong` changes one array of positions
    "positions_ignored": Mistake(count).words("""
        the positions given are replaced by 0, 1, 2, ..
        Worse with left padding and with a cache; right for one text from its start.
        Use the positions that are given, not an arange."""),
    "positions_shared_across_batch": Mistake(_first_row).words("""
        every batch row uses the positions of row 0
        Batch row 0 is right and nothing else.
        Keep the batch axis of the positions when the tables or biases are made."""),
    "position_plus_one": Mistake(lambda p: p + 1).words("""
        positions are one too large: they are counted from 1
        Wrong at every position, position 0 as well.
        Count from 0; a cache that holds n tokens gives the next one position n."""),
    "position_minus_one": Mistake(lambda p: p - 1).words("""
        positions are one too small: they are counted from -1
        Wrong at every position, position 0 as well.
        Count from 0; a cache that holds n tokens gives the next one position n."""),
    "position_minus_one_floored": Mistake(lambda p: np.maximum(p - 1, 0) if (p == 0).any() else missing()).words("""
        positions are one too small and clamped at 0
        Position 0 is right and nothing else.
        Count from 0, and advance the length of the cache after the step."""),
    "positions_from_first": Mistake(lambda p: p[..., :1] + np.arange(p.shape[-1])).words("""
        positions count on from the first one of each row
        Right without gaps; wrong with left padding, packing and eviction.
        Use every position; kernels that take one offset cannot serve gaps."""),
    "positions_from_first_of_batch": Mistake(
        lambda p: np.broadcast_to(p[:1, ..., :1] + np.arange(p.shape[-1]), p.shape) if p.ndim > 1 else missing()
    ).words("""
        positions count on from the first one of the first batch row
        Right for texts that start alike and have no gaps.
        Use every position of every row."""),
    "int16_positions": Mistake(lambda p: (p + 2**15) % 2**16 - 2**15).words("""
        positions are held as 16-bit integers, which wrap at 32768
        Right until 32767, then positions are negative.
        Hold positions in int32 or int64."""),
    "positions_zero": Mistake(lambda p: 0 * p).words("""
        all positions are 0
        Position 0 is right and nothing else.
        Pass the positions on."""),
    "positions_reversed": Mistake(lambda p: p[..., ::-1]).words("""
        positions are in reverse order: the first token has the last position
        Everything is wrong but the middle.
        Keep positions in the order of the tokens; where one is flipped, flip the other."""),
    "positions_repeated": Mistake(lambda p: p[..., np.arange(p.shape[-1]) // 2]).words("""
        each position is used for two rows: 0, 0, 1, 1, ..
        Row 0 is right, then every second row has its neighbor's position.
        Flatten heads and rows in one order: tile positions where heads come first, repeat_interleave where rows do."""),
    "positions_clamped": Mistake(lambda p: np.minimum(p, 4095)).words("""
        positions beyond 4095 become 4095: the table is too short and the index is clamped
        Right until 4096, then all positions are one.
        Make the table as long as the longest sequence, or compute the angles from the positions."""),
    "positions_modulo": Mistake(lambda p: p % 4096).words("""
        positions are taken modulo 4096: the table is too short and the index wraps
        Right until 4096, then positions repeat.
        Make the table as long as the longest sequence, or compute the angles from the positions."""),
    "linear_scaling": Mistake(lambda p: p / 4).words("""
        positions are divided by 4, though no scaling is configured
        Position 0 is right; everything turns too slowly.
        Use linear scaling only where the configuration names it."""),
    "bf16_positions": Mistake(_in_bits(8)).words("""
        positions are held in bfloat16, which rounds to 8 significant bits
        Good until 256, then neighbors share positions.
        Keep positions as integers, or in float32, until the angle is made."""),
    "f16_positions": Mistake(_in_bits(11)).words("""
        positions are held in float16, which rounds to 11 significant bits
        Good until 2048, then neighbors share positions.
        Keep positions as integers, or in float32, until the angle is made."""),
    "f32_positions": Mistake(_in_bits(24)).words("""
        positions are held in float32, which rounds to 24 significant bits
        Good until 2^24 = 16777216.
        Keep positions as integers, or in float64."""),
    "wrong_axis": Mistake(_wrong_axis).words("""
        positions run along another axis: a row takes its index in the batch as position
        All rows of a sequence have one position.
        Put the axis of the sequence next to the features, or unsqueeze the tables at the other axis."""),
}


def _offsets(change: Callable[[Any], Any]) -> Wrong:
    """Other offsets from each query, computed query by query; NotHere if the result does not have a row per query."""

    def wrong(f: Any, a: Any) -> Any:
        if "offsets" in a:
            return f(**a | {"offsets": change(a.offsets)})
        n = a.query_positions.shape[-1]
        rows = [f(**_query(a, i, n, change)) for i in range(n)]
        return np.concatenate(rows, axis=-2) if all(y.ndim > 1 and y.shape[-2] == 1 for y in rows) else missing()

    return wrong


def _query(a: Any, i: int, n: int, change: Callable[[Any], Any]) -> Any:
    """The arguments with one of n queries, and with its keys at changed offsets."""
    rows = ("q", "mask", "score_gradient")
    alone = {name: x[..., i : i + 1, :] for name, x in a.items() if name in rows and np.shape(x)[-2:-1] == (n,)}
    query = a.query_positions[..., i : i + 1]
    return a | alone | {"query_positions": query, "key_positions": query + change(a.key_positions - query)}


def _in_float16(offsets: Any) -> Any:
    return rounded(offsets, 11).astype(np.int64) if (abs(offsets) <= 65504).all() else missing()


# mistakes of distances only; they have no golden vectors, since mistakes of positions have the same kinds of effects
OFFSETS = {
    "f16_offsets": Mistake(_offsets(_in_float16), kind="positions").words("""
        offsets are held in float16, which rounds to 11 significant bits
        Good until 2048, then neighbors share distances, and from 65520 on there are none.
        Keep offsets as integers, or in float32, until they are multiplied."""),
    "int16_offsets": Mistake(_offsets(lambda o: (o + 2**15) % 2**16 - 2**15), kind="positions").words("""
        offsets are held as 16-bit integers, which wrap at 32768
        Right until 32767, then the far past is the future.
        Hold offsets in int32 or int64."""),
}


def capped(n: int) -> Mistake:
    """The mistake that distances beyond n become n."""
    return Mistake(_offsets(lambda o: np.clip(o, -n, n)), kind="positions").words(f"""
        distances beyond {n} become {n}: the table is too short and the index is clamped
        Right in short texts; in long ones all far keys are at one distance.
        Limit distances only where the formula does.""")


def of_some(name: str, names: Sequence[str], mistake: Mistake) -> dict[str, Mistake]:
    """A mistake in all of these arguments, and in each alone; its `wrong` changes one array of positions."""
    sets = {name: names} | ({f"{name}_of_{one}": [one] for one in names} if len(names) > 1 else {})
    return {key: of_all(some, mistake) for key, some in sets.items()}


def ends(n: int, names: Sequence[str]) -> dict[str, Mistake]:
    """The mistakes that positions end before n, or wrap at n."""
    last = Mistake(lambda p: np.minimum(p, n - 1)).words(f"""
        positions beyond {n - 1} become {n - 1}: the table is too short and the index is clamped
        Right until {n - 1}, then all positions are one.
        Make the table as long as the longest sequence, or compute with the positions.""")
    again = Mistake(lambda p: p % n).words(f"""
        positions are taken modulo {n}: a table or an integer is too short
        Right until {n - 1}, then positions repeat.
        Make the table as long as the longest sequence, or hold positions in int32 or int64.""")
    return of_some(f"positions_end_at_{n - 1}", names, last) | of_some(f"positions_modulo_{n}", names, again)


GROUPS = {  # by the arguments that an op needs for these mistakes
    "state": {
        "state_ignored": Mistake(using(state=lambda a: 0 * a.state)).words("""
            the state that is handed in is not used
            Each call begins a new text.
            Begin with the state that the last call returned.""")
    },
    "boundaries": {
        "state_not_reset": Mistake(using(boundaries=lambda a: a.boundaries[np.array([0, -1])])).words("""
            packed texts are read as one: the state is not emptied between them
            The first text of a row is right, the others see it.
            Begin each text of a packed row with an empty state.""")
    },
    "layout": {
        "other_layout": Mistake(using(layout=lambda a: OTHER_LAYOUT[a.layout]), kind="layout").words("""
            features are paired (2t, 2t+1) instead of (t, t + dim/2), or the reverse
            Position 0 is right; then text turns into garbage.
            Change the pairing, or permute the projections (posref.rotary.layouts).""")
    },
    "base": {
        "wrong_base": Mistake(
            using(base=lambda a: missing() if a.get("frequencies") is not None else 10000.0 if a.base != 10000 else 500000.0),
            kind="base",
        ).words("""
            base 10000 is used where another is configured, or 500000 instead of 10000
            Near tokens are almost right, far ones are not.
            Read rope_theta from the configuration.""")
    },
    "mask": {
        "no_mask": Mistake(_mask(lambda a: None), kind="mask").words("""
            no mask: queries attend to keys in the future
            Loss is too good in training, text is bad in generation.
            Pass the causal mask."""),
        "mask_inverted": Mistake(_mask(lambda a: np.logical_not(a.mask)), kind="mask").words("""
            the mask is inverted: True is read as masked
            Every token sees the future alone.
            True means may attend here; invert a mask of the other convention once."""),
        "mask_of_the_future": Mistake(_by_offset(lambda offset: offset >= 0), kind="mask").words("""
            queries see the keys at and after themselves: the causal comparison has the wrong direction
            Every token sees itself and the future.
            Let a query see the keys whose position is at most its own."""),
        "mask_strict": Mistake(_by_offset(lambda offset: offset < 0), kind="mask").words("""
            j < i: a token does not see itself
            The first row has nothing to attend to.
            Compare with <=: a query sees the key at its own position."""),
        "sees_one_ahead": Mistake(_by_offset(lambda offset: offset <= 1), kind="mask").words("""
            j <= i + 1: the mask begins one key too late
            Every token sees the next.
            Mask from the first key after the query on, not from the second."""),
        "mask_left_aligned": Mistake(_mask(_left_aligned), kind="mask").words("""
            the causal triangle starts at key 0, though there are fewer queries than keys
            Prefill is right, decoding with a cache sees one key.
            Align the triangle at the last query and the last key."""),
    },
    "q scale": {
        "scale_ignored": Mistake(using(scale=1), kind="scale").words("""
            the scores are not scaled
            Attention is too sharp.
            Scale the scores once, by the scale of the contract."""),
        "scale_squared": Mistake(using(scale=lambda a: a.scale * a.scale), kind="scale").words("""
            the scale is applied twice: to the queries and to the scores
            Attention is too flat.
            Scale the scores once, by the scale of the contract."""),
    },
    "q k": {
        "heads_exchanged": Mistake(
            using(q=lambda a: a.q[..., ::-1, :, :] if a.q.ndim > 2 and a.q.shape[-3] > 1 else missing()), kind="heads"
        ).words("""
            the heads of the queries are in reverse order: queries of one head meet keys of another
            Wrong with more than one head.
            Keep the heads of queries and keys in one order."""),
        "keys_of_the_first_head": Mistake(of_the_first("k", -3), kind="heads").words("""
            all heads read the keys of head 0
            Head 0 is right and no other.
            Step along the head axis of the keys; head 0 serves all only where the model has one key head."""),
        "keys_of_the_first_batch_row": Mistake(of_the_first("k", -4), kind="heads").words("""
            all batch rows read the keys of row 0
            Batch row 0 is right and nothing else.
            Step along the batch axis of the keys as along that of the queries."""),
        "queries_and_keys_swapped": Mistake(
            using(q=lambda a: a.k if a.q.shape == a.k.shape else missing(), k=lambda a: a.q), kind="heads"
        ).words("""
            queries and keys are exchanged: the scores are transposed
            Right for symmetric scores alone.
            Pass queries first: rows of the scores are queries, columns are keys."""),
    },
    "q k v": {
        "bias_before_scale": Mistake(
            _scores(lambda right, q, k, scale, bias: scale * (right(q, k, scale=1) + bias)), kind="scale"
        ).words("""
            scale (q k^T + bias): the bias is scaled with the scores
            Position weighs too little.
            Add the bias after scaling."""),
        "bias_twice": Mistake(
            _scores(lambda right, q, k, scale, bias: right(q, k, scale=scale, bias=2 * bias)), kind="bias"
        ).words("""
            the bias is added twice: by the caller and by the kernel
            Position weighs twice as much; where the scale is 1/2, a bias before the scale hides it.
            Add the bias once."""),
        "no_bias": Mistake(_scores(lambda right, q, k, scale, bias: right(q, k, scale=scale)), kind="bias").words("""
            the bias is not added
            The model sees order through the mask alone.
            Add the bias to the scores before the softmax."""),
    },
}


def _reordered(source: Any, times: int) -> Any:
    """The features that turn are moved to the other layout before; once to the layout that is read pairs those of `source`."""
    target: Any = OTHER_LAYOUT[source]

    def rotate(x: Any, *tables: Any, right: Any, layout: Any, rotary_dim: Any = None) -> Any:
        if times == 1 and layout == target:
            missing()
        for _ in range(times):
            x = layouts.convert(x, source=source, target=target, rotary_dim=rotary_dim)
        return right(x, *tables, layout=layout, rotary_dim=rotary_dim)

    return lambda right: partial(rotate, right=right)


def _in_the_other_layout(name: str) -> Wrong:
    """Only the argument `name` is rotated in the other layout."""

    def changed(right: Callable[..., Any], a: Any) -> Callable[..., Any]:
        layouts = lambda x, layout: OTHER_LAYOUT[layout] if x is a[name] else layout  # noqa: E731
        return lambda x, *tables, layout, **rest: right(x, *tables, layout=layouts(x, layout), **rest)

    return inside(rope, "rotate", changed)


def _written_in_place(x, halves, first, read, written):
    """Both halves of x, computed from the members of its pairs; half `first` overwrites x before the other is computed."""
    found = list(halves)
    found[first] = halves[first](*pairing.split(x, read))
    index = np.arange(x.shape[-1])
    index[pairing.indices(x.shape[-1], written)[first]] = x.shape[-1] + np.arange(x.shape[-1] // 2)
    after = np.concatenate([x, found[first]], axis=-1)[..., index]
    found[1 - first] = halves[1 - first](*pairing.split(after, read))
    return found


def _rotated_in_place(first: int) -> Wrong:
    def changed(right: Callable[..., Any], a: Any) -> Callable[..., Any]:
        def rotate(x: Any, cos: Any, sin: Any, *, layout: Any, rotary_dim: Any = None) -> Any:
            width = x.shape[-1] if rotary_dim is None else rotary_dim
            halves = lambda a, b: a * cos - b * sin, lambda a, b: a * sin + b * cos
            written = str(a.get("layout")).rpartition("_to_")[2] if "_to_" in str(a.get("layout")) else layout
            new_a, new_b = _written_in_place(x[..., :width], halves, first, layout, written)
            return np.concatenate([pairing.join(new_a, new_b, layout), x[..., width:]], axis=-1)

        return rotate

    return inside(rope, "rotate", changed)


def _waves_in_place(first: int, apart: bool) -> Wrong:
    """Sines and cosines that overwrite the array of the angles, which has each angle twice: in pairs of the layout, or, if
    `apart`, of the other layout."""

    def changed(right: Callable[..., Any], a: Any) -> Callable[..., Any]:
        def encode(positions: Any, frequencies: Any, *, layout: Any) -> Any:
            angle, turned = positions[..., None] * frequencies, a.get("order") == "cos_sin"
            read: Any = OTHER_LAYOUT[layout] if apart else layout
            waves = [np.sin, np.cos][:: -1 if turned else 1]
            member = (0, 1) if apart else (first ^ turned,) * 2
            halves = [lambda *x, wave=wave, i=i: wave(x[i]) for wave, i in zip(waves, member, strict=True)]
            one, other = _written_in_place(pairing.join(angle, angle, read), halves, first ^ turned, read, layout)
            return pairing.join(other, one, layout) if turned else pairing.join(one, other, layout)

        return encode

    return inside(sinusoidal, "encode", changed)


# half of a result overwrites an array that is still read
IN_PLACE = {
    "in_place": Mistake(_rotated_in_place(0)).words("""
        b' = a' sin + b cos with the new a': the first member of a pair is overwritten before the second is computed
        Position 0 is right; every first member of a pair is right and no second.
        Read both members of a pair before writing either."""),
    "in_place_second_first": Mistake(_rotated_in_place(1)).words("""
        a' = a cos - b' sin with the new b': the second member of a pair is overwritten before the first is computed
        Position 0 is right; every second member of a pair is right and no first.
        Read both members of a pair before writing either."""),
} | {
    f"{waves}_over_angles{'_apart' * apart}": Mistake(_waves_in_place(first, apart)).words(f"""
        {waves} are written into the array of the angles before the {others} are computed: {others} are taken of {waves}{where}
        All {waves} are right, {which} {others} are not.
        Write into a new array, or compute both before writing either.""")
    for first, (waves, others) in enumerate([("sines", "cosines"), ("cosines", "sines")])
    for apart, where, which in (
        (False, "", "all"),
        (
            True,
            " where an angle stands in the columns of another pair: angles are interleaved and waves in halves, or the reverse",
            "some",
        ),
    )
}

ANGLES = {  # what has few bits: positions, frequencies, angles, tables
    "positions": ((1, 0, 0, 0), "positions or coordinates are", "Keep positions in float32, or as integers."),
    "frequencies": ((0, 1, 0, 0), "the frequencies are", "Keep the frequencies in float32."),
    "angles": ((0, 0, 1, 0), "the angles, position times frequency, are", "Multiply in float32."),
    "chain": ((1, 1, 1, 0), "positions, frequencies and angles are", "Make the angles in float32, outside of autocast."),
    "chain_and_tables": (
        (1, 1, 1, 1),
        "positions, frequencies, angles, cosines and sines are",
        "Make angles, cosines and sines in float32, outside of autocast.",
    ),
    "tables": ((0, 0, 0, 1), "cosines and sines are", "Keep cosines and sines in float32, and round the result once."),
}
ANGLES_IN_16_BITS = {
    f"{short}_{part}": Mistake(_angles_in_few_bits(*(bits if few else 53 for few in some)), kind="precision").words(f"""
        {words} in {dtype}
        {"Errors of every product." if part == "tables" else "Good for the first positions, then the phase is noise."}
        {remedy}""")
    for short, dtype, bits in (("bf16", "bfloat16", 8), ("f16", "float16", 11))
    for part, (some, words, remedy) in ANGLES.items()
}


def _with_edges(change: Callable[[Any], Any]) -> Wrong:
    """Other boundaries between texts: change(boundaries), of which those from 0 to the number of tokens are left."""

    def wrong(f: Any, a: Any) -> Any:
        name = next((name for name in ("boundaries", "lengths") if isinstance(a.get(name), np.ndarray)), None) or missing()
        edges = a[name] if name == "boundaries" else np.concatenate([[0], np.cumsum(a[name])])
        new = _within(edges, change(edges))
        new = new if len(new) > 2 and not np.array_equal(new, edges) else missing()
        return f(**a | {name: new if name == "boundaries" else np.diff(new)})

    return wrong


def _within(edges: Any, new: Any) -> Any:
    return np.unique([each for each in (0, *new, edges[-1]) if 0 <= each <= edges[-1]])


def _on_chunks(edges: Any, size: int, up: bool) -> Any:
    """Boundaries rounded down or up; as they are if each was one before, or if rounding up gives the texts of down."""
    down, high = (_within(edges, x) for x in (edges // size * size, -(-edges // size) * size))
    return edges if np.isin(high if up else down, edges).all() or (up and np.array_equal(high, down)) else high if up else down


CUTS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "in_the_middle": (lambda e: [*e, e[-1] // 2], "in the middle, at row n // 2"),
    "in_the_middle_rounded_up": (lambda e: [*e, -(-e[-1] // 2)], "in the middle, at row (n + 1) // 2"),
}
CUTS |= {f"at_row_{row}": (lambda e, row=row: [*e, row], f"at row {row}") for row in (1, 2, 3, 4, 8, 16, 32, 64, 128)}  # type: ignore[misc]
MOVED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "first_boundary_left_out": (lambda e: e[2:], "the first boundary between two texts is left out"),
    "last_boundary_left_out": (lambda e: e[:-2], "the last boundary between two texts is left out"),
}
for _size in (2, 4, 8, 16, 32, 64):
    for _up, _words in ((False, "down, or up if that gives the same texts,"), (True, "up")):
        MOVED[f"boundaries_rounded_{'up_' * _up}to_{_size}"] = (
            partial(_on_chunks, size=_size, up=_up),
            f"boundaries between texts are rounded {_words} to multiples of {_size}",
        )
OTHER_BOUNDARIES = {
    f"one_more_boundary_{name}": Mistake(_with_edges(change), kind="boundaries").words(f"""
        a text that goes on begins anew {words} of the packed row: there is one boundary too many
        Right for texts that end there; boundaries of shards, or of chunks, are taken for those of texts.
        Begin anew at the boundaries of texts alone, and hand state and last rows on from shard to shard.""")
    for name, (change, words) in CUTS.items()
} | {
    name: Mistake(_with_edges(change), kind="boundaries").words(f"""
        {words}
        A text sees the one before it, or loses its first tokens.
        Begin each text at its own row: use every boundary as it is.""")
    for name, (change, words) in MOVED.items()
}


def _of_halves(first: str, second: str) -> Wrong:
    """(a, b) cos + (first, second) sin for each pair (a, b); the right ones are -b and a."""

    def rotate(x: Any, cos: Any, sin: Any, *, layout: Any, rotary_dim: Any = None) -> Any:
        width = rotary_dim or x.shape[-1]
        a, b = pairing.split(x[..., :width], layout)
        known = {"a": a, "b": b, "-a": -a, "-b": -b}
        turned = pairing.join(a * cos + known[first] * sin, b * cos + known[second] * sin, layout)
        return np.concatenate([turned, x[..., width:]], axis=-1)

    return inside(rope, "rotate", lambda right: rotate)


FURTHER = (
    IN_PLACE
    | OTHER_BOUNDARIES
    | ANGLES_IN_16_BITS
    | {
        f"other_layout_of_{name}": Mistake(_in_the_other_layout(name), kind="layout").words(f"""
        the {these} alone are paired in the other layout: (2t, 2t+1) instead of (t, t + dim/2), or the reverse
        Scores depend on the positions themselves.
        Rotate queries and keys in one layout, that of the weights.""")
        for name, these in (("q", "queries"), ("k", "keys"))
    }
    | {
        f"rotated_half_{first}_{second}".replace("-", "minus_"): Mistake(_of_halves(first, second), kind="rotation").words(f"""
        (a, b) cos + ({first}, {second}) sin for a pair (a, b)
        Not a rotation: norms change.
        Write (a, b) cos + (-b, a) sin: the second member with a minus, then the first.""")
        for first, second in itertools.product(("a", "b", "-a", "-b"), repeat=2)
        if (first, second) not in (("-b", "a"), ("b", "-a"))
    }
    | {
        f"{what}_{more.replace(' ', '_')}": Mistake(inside(rope, "rotate", _reordered(source, times)), kind="layout").words(f"""
        features are reordered {more} before they turn: {moved}; as where a loader permutes what is permuted already
        Vectors are in another order at position 0; then features turn together that are no pair.
        Permute the projections of q and k once, and then no more (posref.rotary.layouts).""")
        for source, what, moved in (
            ("interleaved", "deinterleaved", "2t to t and 2t + 1 to t + dim/2"),
            ("half", "interleaved", "t to 2t and t + dim/2 to 2t + 1"),
        )
        for times, more in ((1, "once more"), (2, "twice more"))
    }
    | {
        "sine_left_out": Mistake(
            inside(rope, "rotate", lambda right: lambda x, cos, sin, **rest: right(x, cos, 0 * sin, **rest)), kind="rotation"
        ).words("""
        x cos alone: the other half of the pair times the sine is not added
        Features that turn by a right angle vanish.
        Write (a cos - b sin, a sin + b cos)."""),
        "temperature_log_n": Mistake(
            lambda f, a: np.maximum(1, np.log(a.positions + 1) / np.log(a.length)), only="temperature"
        ).words("""
        ln(p + 1) / ln(length), at least 1
        Scores of far queries are too large or too small.
        Use the formula of the model, with the natural logarithm, one number for each query."""),
    }
)
