"""DeBERTa: scores against loops written from the paper and from the released code, log buckets against exact integers."""

from fractions import Fraction

import numpy as np
import pytest

from posref.offsets import offsets
from posref.relative import deberta


def delta(i, j, span):
    """Eq. (3), case by case."""
    if i - j <= -span:
        return 0
    if i - j >= span:
        return 2 * span - 1
    return i - j + span


def loop_scores(q, k, q_r, k_r, queries, keys, scale, convention, terms=("c2p", "p2c")):
    """Eq. (4), entry by entry; for "released" the second index is the first one."""
    batch, heads, n_query, _ = q.shape
    span = k_r.shape[-2] // 2
    result = np.zeros((batch, heads, n_query, k.shape[-2]))
    for b, h, i, j in np.ndindex(*result.shape):
        first, second = delta(queries[i], keys[j], span), delta(keys[j], queries[i], span)
        total = q[b, h, i] @ k[b, h, j]
        if "c2p" in terms:
            total += q[b, h, i] @ k_r[h, first]
        if "p2c" in terms:
            total += k[b, h, j] @ q_r[h, second if convention == "paper" else first]
        result[b, h, i, j] = scale * total
    return result


def inputs(n_query, n_key, span, dim=5, heads=2, batch=3):
    """Small integers: every product and sum is exact, so results are compared bit by bit."""
    generator = np.random.default_rng(7)
    shapes = [(batch, heads, n_query, dim), (batch, heads, n_key, dim), (heads, 2 * span, dim), (heads, 2 * span, dim)]
    return [generator.integers(-9, 10, shape).astype(float) for shape in shapes]


@pytest.mark.parametrize("convention", deberta.CONVENTIONS)
@pytest.mark.parametrize(("n_query", "n_key", "start"), [(6, 6, 0), (3, 7, 4), (1, 7, 6), (7, 2, 0)])
@pytest.mark.parametrize("terms", [("c2p", "p2c"), ("c2p",), ("p2c",), ()])
def test_scores_entry_by_entry(terms, n_query, n_key, start, convention):
    q, k, q_r, k_r = inputs(n_query, n_key, span=3)
    queries, keys = np.arange(n_query) + start, np.arange(n_key)
    expected = loop_scores(q, k, q_r, k_r, queries.tolist(), keys.tolist(), 0.25, convention, terms)
    result = deberta.scores(
        q,
        k,
        q_r if "p2c" in terms else None,
        k_r if "c2p" in terms else None,
        offsets(queries, keys),
        scale=0.25,
        convention=convention,
    )
    assert np.array_equal(result, expected)


def test_conventions_differ_off_the_diagonal():
    q, k, q_r, k_r = inputs(6, 6, span=4)
    offset = offsets(np.arange(6), np.arange(6))
    paper, released = (deberta.scores(q, k, q_r, k_r, offset, scale=1, convention=name) for name in deberta.CONVENTIONS)
    same = np.all(paper == released, axis=(0, 1))
    assert np.array_equal(same, np.eye(6, dtype=bool))


def test_reversed_rows_turn_one_convention_into_the_other_inside_the_span():
    _, k, q_r, _ = inputs(6, 6, span=4)
    reversed_rows = q_r[:, (8 - np.arange(8)) % 8]  # row m to row 2K - m; row 0 has no partner
    offset = offsets(np.arange(6), np.arange(6))
    paper = deberta.position_to_content(k, q_r, offset, convention="paper")
    released = deberta.position_to_content(k, reversed_rows, offset, convention="released")
    inside = np.abs(offset) < 4
    assert np.array_equal(paper[..., inside], released[..., inside])
    assert not np.array_equal(paper, released)


def test_scores_depend_on_offsets_alone():
    q, k, q_r, k_r = inputs(4, 5, span=3)
    here, there = (offsets(np.arange(4) + shift, np.arange(5) + shift) for shift in (0, 1000))
    first, second = (deberta.scores(q, k, q_r, k_r, o, scale=1, convention="released") for o in (here, there))
    assert np.array_equal(first, second)


def test_batched_positions():
    q, k, q_r, k_r = inputs(4, 4, span=3)
    positions = np.array([[0, 1, 2, 3], [0, 0, 1, 2], [5, 4, 3, 0]])  # the second row is padded on the left
    offset = offsets(positions, positions)[:, None]
    for convention in deberta.CONVENTIONS:
        result = deberta.scores(q, k, q_r, k_r, offset, scale=1, convention=convention)
        for b in range(3):
            one = (x[b : b + 1] for x in (q, k))
            expected = loop_scores(*one, q_r, k_r, positions[b].tolist(), positions[b].tolist(), 1, convention)
            assert np.array_equal(result[b : b + 1], expected)


def test_position_index_is_asymmetric():
    expected = [delta(0, o, 4) for o in range(-9, 10)]
    assert deberta.position_index(np.arange(-9, 10), span=4).tolist() == expected
    index = deberta.position_index(np.array([-512, -511, 0, 511, 512, 513]), span=512)
    assert index.tolist() == [1023, 1023, 512, 1, 0, 0]


# Log buckets


def exact_log_bucket(distance, buckets, max_position):
    """ceil(log(a/m) / log(M/m) (m - 1)) + m by counting up in integers: the least k with a^(m-1) m^k <= M^k m^(m-1)."""
    middle, last = buckets // 2, max_position - 1
    if distance <= middle:
        return distance
    k = 0
    while distance ** (middle - 1) * middle**k > last**k * middle ** (middle - 1):
        k += 1
    return middle + k


@pytest.mark.parametrize(
    ("buckets", "max_position"), [(256, 512), (4, 5), (8, 109), (10, 81), (32, 128), (18, 17), (64, 2000), (128, 512)]
)
def test_log_bucket_is_the_scalar_definition(buckets, max_position):
    offset = np.arange(-max_position + 1, max_position)
    expected = [(1 if o > 0 else -1) * exact_log_bucket(abs(o), buckets, max_position) for o in offset.tolist()]
    for source in deberta.SOURCES:
        assert deberta.log_bucket(offset, buckets=buckets, max_position=max_position, source=source).tolist() == expected


def test_beyond_max_position():
    far = np.array([-(10**6), -512, -511, 511, 512, 10**6])
    for source, last in (("microsoft", 255), ("transformers", 256)):
        bucket = deberta.log_bucket(far, buckets=256, max_position=512, source=source)
        assert bucket.tolist() == [-last, -last, -255, 255, last, last]
        # Row 511 is the far past; the far future is row 1 for microsoft and row 0 for transformers.
        assert deberta.position_index(bucket, span=256).tolist() == [511, 511, 511, 1, 256 - last, 256 - last]


def test_published_buckets():
    offset = -np.array([127, 128, 200, 300, 400, 510, 511])
    bucket = deberta.log_bucket(offset, buckets=256, max_position=512, source="microsoft")
    assert bucket.tolist() == [-127, -128, -169, -207, -233, -255, -255]


def test_ends_at_ties():
    # 108 = 4 * 3^3 and 80 = 5 * 2^4: the geometric means are integers, and each is the last of its bucket.
    assert deberta.bucket_ends(8, 109).tolist() == [0, 1, 2, 3, 4, 12, 36, 108]
    assert deberta.bucket_ends(10, 81).tolist() == [0, 1, 2, 3, 4, 5, 10, 20, 40, 80]
    assert deberta.bucket_ends(18, 17)[-8:].tolist() == [9, 9, 10, 11, 12, 12, 13, 14, 16][1:]


def test_every_bucket_end_is_the_last_distance_below_the_geometric_mean():
    for buckets in range(4, 60, 2):
        for max_position in (buckets // 2 + 2, 60, 512, 3001):
            middle, last = buckets // 2, max_position - 1
            ends = deberta.bucket_ends(buckets, max_position).tolist()
            assert len(ends) == buckets
            assert ends[:middle] == list(range(middle))
            for k, end in enumerate(ends[middle:]):
                mean = last**k * middle ** (middle - 1 - k)
                assert end ** (middle - 1) <= mean < (end + 1) ** (middle - 1)


# Enhanced mask decoder


def test_enhanced_mask_decoder_runs_the_layer_on_the_same_keys():
    calls = []

    def layer(query, key_value):
        calls.append((query, key_value))
        return 2 * query - key_value

    hidden, positions = np.arange(6.0).reshape(1, 3, 2), np.array([[1.0, 5.0], [0.0, 2.0], [7.0, 3.0]])
    for convention, start in (("paper", positions[None]), ("released", hidden + positions)):
        for steps in (1, 2, 3):
            calls.clear()
            output = deberta.enhanced_mask_decoder(layer, hidden, positions, steps=steps, convention=convention)
            assert len(calls) == steps
            assert all(key_value is hidden for _, key_value in calls)
            assert np.array_equal(calls[0][0], start)
            assert np.array_equal(output, 2**steps * start - (2**steps - 1) * hidden)


# Errors


def test_errors_of_scores():
    q, k, q_r, k_r = inputs(4, 5, span=3)
    offset = offsets(np.arange(4), np.arange(5))

    def call(q=q, k=k, q_r=q_r, k_r=k_r, offset=offset, convention="paper"):
        return deberta.scores(q, k, q_r, k_r, offset, scale=1, convention=convention)

    with pytest.raises(ValueError, match=r"deberta\.scores: convention is 'code', expected one of 'paper', 'released'"):
        call(convention="code")
    with pytest.raises(ValueError, match=r"deberta\.scores: k has shape .*, expected d = 4 in .*, since q has shape"):
        call(q=q[..., :4])
    with pytest.raises(ValueError, match=r"deberta\.scores: q has shape \(5,\), expected at least 2 axes"):
        call(q=q[0, 0, 0])
    with pytest.raises(
        ValueError, match=r"deberta\.scores: offsets has shape \(4, 1\), whose axis -1 is 1, expected n_key = 5"
    ):
        call(offset=offset[:, :1], q_r=None)
    with pytest.raises(TypeError, match=r"deberta\.scores: offsets has dtype float64, expected signed integers"):
        call(offset=offset * 1.0)
    with pytest.raises(TypeError, match=r"deberta\.scores: offsets has dtype uint8, expected signed integers"):
        call(offset=offset.astype(np.uint8))
    with pytest.raises(
        ValueError,
        match=r"deberta\.scores: k_r has shape \(2, 5, 5\), .* its axis -2 is 5, expected an even number .* half of",
    ):
        call(k_r=k_r[:, :5])
    with pytest.raises(ValueError, match=r"deberta\.scores: q_r has shape \(2, 6, 3\), .* expected d = 5"):
        call(q_r=q_r[..., :3])
    with pytest.raises(
        ValueError, match=r"offsets has shape \(3, 4, 5\), .* does not broadcast .*\(batch, 1, n_query, n_key\)"
    ):
        call(offset=np.broadcast_to(offset, (3, 4, 5)))
    with pytest.raises(
        ValueError, match=r"deberta\.content_to_position: offsets has shape \(4, 5\), whose axis -2 is 4, expected n_query = 3"
    ):
        deberta.content_to_position(q[:, :, :3], k_r, offset)
    with pytest.raises(
        ValueError, match=r"deberta\.position_to_content: offsets has shape \(4, 5\), whose axis -1 is 5, expected n_key = 2"
    ):
        deberta.position_to_content(k[:, :, :2], q_r, offset, convention="released")
    with pytest.raises(ValueError, match=r"deberta\.position_to_content: convention is None"):
        deberta.position_to_content(k, q_r, offset, convention=None)


def test_errors_of_indices():
    offset = np.array([0, 1])
    with pytest.raises(ValueError, match=r"deberta\.position_index: span is 0, expected an integer of at least 1"):
        deberta.position_index(offset, span=0)
    with pytest.raises(TypeError, match=r"deberta\.position_index: offsets has dtype uint16"):
        deberta.position_index(offset.astype(np.uint16), span=2)
    with pytest.raises(ValueError, match=r"deberta\.log_bucket: source is 'hf', expected one of 'microsoft', 'transformers'"):
        deberta.log_bucket(offset, buckets=8, max_position=16, source="hf")
    for buckets, max_position in ((7, 16), (2, 16), (8, 5)):
        with pytest.raises(ValueError, match=rf"buckets is {buckets} and max_position {max_position}; expected an even"):
            deberta.bucket_ends(buckets, max_position)
    with pytest.raises(TypeError, match=r"deberta\.bucket_ends: buckets is 8\.0, expected an integer"):
        deberta.bucket_ends(8.0, 16)
    with pytest.raises(TypeError, match=r"deberta\.bucket_ends: max_position is '16', expected an integer"):
        deberta.bucket_ends(8, "16")


def test_errors_of_the_decoder():
    hidden, positions = np.zeros((2, 3, 4)), np.zeros((3, 4))

    def layer(query, key_value):
        raise AssertionError("must not run")

    with pytest.raises(ValueError, match=r"deberta\.enhanced_mask_decoder: steps is 0"):
        deberta.enhanced_mask_decoder(layer, hidden, positions, steps=0, convention="paper")
    with pytest.raises(ValueError, match=r"deberta\.enhanced_mask_decoder: convention is 'both'"):
        deberta.enhanced_mask_decoder(layer, hidden, positions, convention="both")
    with pytest.raises(
        ValueError, match=r"positions has shape \(3, 5\), .* expected d = 4 .*, since hidden has shape \(2, 3, 4\)"
    ):
        deberta.enhanced_mask_decoder(layer, hidden, np.zeros((3, 5)), convention="paper")
    with pytest.raises(ValueError, match=r"hidden has shape \(4,\), expected at least 2 axes"):
        deberta.enhanced_mask_decoder(layer, hidden[0, 0], positions, convention="paper")


@pytest.mark.parametrize("name", deberta.PRESETS)
def test_presets_fit_their_rows(name):
    preset = deberta.PRESETS[name]
    offset = np.arange(-600, 601)
    if "buckets" in preset:
        offset = deberta.log_bucket(
            offset, buckets=preset["buckets"], max_position=preset["max_position"], source="transformers"
        )
    index = deberta.position_index(offset, span=preset["rows"] // 2)
    assert (index.min(), index.max()) == (0, preset["rows"] - 1)


def test_symbols_pass_through():
    # Fractions stand for any exact number: nothing on the way turns them into floats.
    q, k, q_r, k_r = (np.array([Fraction(int(v), 3) for v in x.flat]).reshape(x.shape) for x in inputs(3, 4, span=2))
    offset = offsets(np.arange(3), np.arange(4))
    result = deberta.scores(q, k, q_r, k_r, offset, scale=Fraction(1, 7), convention="paper")
    assert all(isinstance(entry, Fraction) for entry in result.flat)
    whole = deberta.scores(*inputs(3, 4, span=2), offset, scale=1, convention="paper")
    assert [entry * 63 for entry in result.flat] == whole.ravel().tolist()


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_narrow_and_extreme_offsets_do_not_wrap(dtype):
    """Against Python's integers: 200 - o in eight bits would wrap, as would the absolute value of -128."""
    offset = np.array([[np.iinfo(dtype).min, -1, 0, 1, np.iinfo(dtype).max]], dtype)
    for span in (2, 100, 200):
        expected = [min(max(span - int(o), 0), 2 * span - 1) for o in offset[0]]
        assert deberta.position_index(offset, span=span).tolist() == [expected]
        rows = np.arange(2.0 * span)[None, :, None]
        ones = np.ones((1, 5, 1))
        for convention, sign in (("paper", 1), ("released", -1)):
            index = [min(max(span + sign * int(o), 0), 2 * span - 1) for o in offset[0]]
            assert deberta.position_to_content(ones, rows, offset, convention=convention).tolist() == [[index]]
    for source in deberta.SOURCES:
        arguments = {"buckets": 8, "max_position": 109, "source": source}
        wide = [max(-(10**6), min(10**6, int(o))) for o in offset[0]]
        expected = deberta.log_bucket(np.array(wide), **arguments).tolist()
        assert deberta.log_bucket(offset[0], **arguments).tolist() == expected
        assert expected[:4] == [-7 - (source == "transformers"), -1, 0, 1]


@pytest.mark.parametrize("convention", ["paper", "released"])
def test_scores_gradient_by_differences(convention):
    """Scores are a polynomial of degree 2: central differences are exact but for rounding."""
    rng = np.random.default_rng(0)
    inputs = {"q": (2, 3, 4, 5), "k": (2, 3, 6, 5), "q_r": (2, 3, 8, 5), "k_r": (2, 3, 8, 5)}
    inputs = {name: rng.normal(size=shape) for name, shape in inputs.items()}
    g, at = rng.normal(size=(2, 3, 4, 6)), np.arange(6)[None, :] - np.arange(4)[:, None]
    got = deberta.scores_gradient(g, *inputs.values(), at, scale=0.3, convention=convention)
    for name, value in inputs.items():
        direction, losses = rng.normal(size=value.shape), []
        for step in (1.0, -1.0):
            x = inputs | {name: value + step * direction}
            losses.append((g * deberta.scores(*x.values(), at, scale=0.3, convention=convention)).sum())
        assert abs((losses[0] - losses[1]) / 2 - (getattr(got, name) * direction).sum()) < 1e-11
