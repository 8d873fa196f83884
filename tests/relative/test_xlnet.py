"""XLNet: the released shift, a reversed half of the batch in whole numbers, what the body refuses."""

import numpy as np
import pytest

from posref.relative import transformer_xl, xlnet

BATCH, HEADS, DIM = 2, 3, 5
SIZES = [(3, 3), (2, 5), (1, 4), (1, 1), (4, 6)]


def whole(seed, *shape):
    return np.random.default_rng(seed).integers(-9, 10, shape)


def released_shift(x, n_key):
    """The released way: read the memory with the axes exchanged, drop the first row, cut to n_key columns."""
    n_query, width = x.shape
    return x.reshape(width, n_query)[1:].reshape(n_query, width - 1)[:, :n_key]


@pytest.fixture(params=SIZES)
def case(request):
    n_query, n_key = request.param
    return {
        "q": whole(1, BATCH, HEADS, n_query, DIM),
        "k": whole(2, BATCH, HEADS, n_key, DIM),
        "segment_embedding": whole(3, 2, HEADS, DIM),
        "u": whole(4, HEADS, DIM),
        "v": whole(5, HEADS, DIM),
        "s": whole(6, HEADS, DIM),
        "same_segment": np.random.default_rng(7).integers(0, 2, (BATCH, 1, n_query, n_key)).astype(bool),
    }


def parts(q, k, vector, segment_embedding, u, v, s, same_segment):
    n_query, n_key = q.shape[-2], k.shape[-2]
    out = np.zeros((*q.shape[:-1], n_key), dtype=int)
    for b, h, i, j in np.ndindex(out.shape):
        r = vector(b, h, i, j, i + (n_key - n_query) - j)
        if r is not None:
            e = segment_embedding[0 if same_segment[b, 0, i, j] else 1, h]
            content = sum(int(q[b, h, i, t] + u[h, t]) * int(k[b, h, j, t]) for t in range(DIM))
            position = sum(int(q[b, h, i, t] + v[h, t]) * int(r[t]) for t in range(DIM))
            out[b, h, i, j] = content + position + sum(int(q[b, h, i, t] + s[h, t]) * int(e[t]) for t in range(DIM))
    return out


@pytest.mark.parametrize("attn_type", ["bi", "uni"])
def test_position_part_is_the_released_shift(case, attn_type):
    n_query, n_key = case["q"].shape[-2], case["k"].shape[-2]
    distances = xlnet.distances(n_query, n_key, attn_type=attn_type)
    r = np.broadcast_to(distances[:, None], (HEADS, len(distances), 1))
    q, zero, k = np.ones((HEADS, n_query, 1), int), np.zeros((HEADS, 1), int), np.zeros((HEADS, n_key, 1), int)
    same = np.ones((n_query, n_key), dtype=bool)
    got = xlnet.scores(q, k, r, np.zeros((2, HEADS, 1), int), zero, zero, zero, same, scale=1)
    released = released_shift(np.ascontiguousarray(np.broadcast_to(distances, (n_query, len(distances)))), n_key)
    defined = np.ones((n_query, n_key), bool) if attn_type == "bi" else transformer_xl.visible(n_query, n_key)
    for h in range(HEADS):
        assert (got[h][defined] == released[defined]).all()
        assert (got[h][~defined] == 0).all()


def test_reversed_half_of_the_batch(case):
    """bi_data: r with a batch axis, the second half from the distances turned round."""
    n_query, n_key = case["q"].shape[-2], case["k"].shape[-2]
    distances = xlnet.distances(n_query, n_key, attn_type="bi")
    direction = np.array([1, -1])
    r = (direction[:, None] * distances)[:, None, :, None] * whole(10, 1, HEADS, 1, DIM)
    want = parts(vector=lambda b, h, i, j, m: [direction[b] * m * x for x in whole(10, 1, HEADS, 1, DIM)[0, h, 0]], **case)
    assert (xlnet.scores(r=r, **case, scale=1) == want).all()


def test_segments_of_more_heads_do_not_enlarge_the_result(case):
    one = {name: case[name][:, :1] for name in ("q", "k", "segment_embedding")} | {name: case[name][:1] for name in "uvs"}
    n_query, n_key = one["q"].shape[-2], one["k"].shape[-2]
    got = xlnet.scores(**(case | one), r=whole(9, 1, n_key + 1, DIM), scale=1)
    assert got.shape == (BATCH, 1, n_query, n_key)


def test_distances_reject():
    with pytest.raises(ValueError, match=r"xlnet\.distances: 3 queries and 2 keys"):
        xlnet.distances(3, 2, attn_type="bi")
