"""A survey of position in Transformers as running code, in the order of its equations.

J. Su, Transformer Position Encodings That Rack Researchers' Brains, kexue.fm/archives/8130. Each step is computed from words x
and weights W_Q, W_K, W_V twice: as the survey writes it, and by posref; the two must agree. Why somebody took the step, what is
proved about it and where its picture is are printed too; what the survey gets wrong is printed by `posref claims su`.

    python examples/survey.py
"""

import argparse
import textwrap

import numpy as np

from posref import attention, discovery, offsets, statements
from posref.absolute import complex_order, floater, hierarchical, learned, merge, recurrent, sinusoidal, zero_padding
from posref.relative import deberta, shaw, t5, transformer_xl, tupe
from posref.rotary import rope, value

N, D = 6, 8
rng = np.random.default_rng(8130)
x = rng.normal(size=(N, D))
W_Q, W_K, W_V, W_KR = rng.normal(size=(4, D, D)) / D**0.5
positions = np.arange(N)
w = sinusoidal.frequencies(D)
p = sinusoidal.encode(positions, w, layout="interleaved")
i, j = np.indices((N, N))  # of the query and of the key


def softmax(scores):
    weights = np.exp(scores)
    return weights / weights.sum(axis=-1, keepdims=True)


def trainable():
    """Trainable: a row of a table is added to each word."""
    table = rng.normal(size=(512, D))
    return x + table[:N], merge.add(x, learned.encode(positions, table)), "absolute.learned.pinned"


def beyond_the_table():
    """Hierarchical decomposition: 512 rows become 262144."""
    table, alpha = rng.normal(size=(512, D)), 0.4
    base = (table - alpha * table[0]) / (1 - alpha)
    far = np.array([0, 511, 512, 262143])
    expected = alpha * base[far // 512] + (1 - alpha) * base[far % 512]
    return expected, hierarchical.encode(far, table, alpha=alpha), "absolute.hierarchical.pinned"


def equation_1():
    """Sinusoidal: p_{k,2i} = sin(k / 10000^(2i/d)), p_{k,2i+1} = cos(the same)."""
    angles = positions[:, None] / 10000 ** (np.arange(0, D, 2) / D)
    expected = np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(N, D)
    return expected, p, "absolute.sinusoidal.dot_product"


def recurrence():
    """Recurrent: p_{k+1} = f(p_k); with a rotation for f it is the sinusoid."""
    step = sinusoidal.shift_matrix(1, w, layout="interleaved")
    return p, recurrent.encode(lambda last: step @ last, p[0], N), "absolute.recurrent.linear_step_is_the_sinusoid"


def differential_equation():
    """FLOATER: dp/dt = h(p, t); with a linear field it is the sinusoid, up to the steps of the solver."""
    field = floater.antisymmetric(w, layout="interleaved")
    solved = floater.encode(lambda t, last: field @ last, p[0], positions.astype(float), substeps=100)
    return p, solved, "absolute.floater.sinusoid_solves_a_linear_field"


def multiplicative():
    """Multiplicative: x_k (*) p_k."""
    return x * p, merge.multiply(x, p, convention="paper"), "absolute.merge.literal_product_deletes_sines_of_token_zero"


def equation_2():
    """Attention with positions at the input: q = (x + p) W_Q, k = (x + p) W_K, v = (x + p) W_V."""
    q, k, v = ((x + p) @ W for W in (W_Q, W_K, W_V))
    return softmax(q @ k.T) @ v, attention.attend(q, k, v, scale=1), "attention.pinned_attend"


def equation_3_and_7():
    """The product of a query and a key has four terms: content and position, each with each."""
    expected = (x + p) @ W_Q @ W_K.T @ (x + p).T
    return expected, sum(attention.four_terms(x, p, W_Q, W_K)), "attention.relative_exactly_for_the_commutant"


def equations_4_to_6():
    """Classic: R_ij = p[clip(i - j)] beside keys and values. posref counts j - i, so its tables are reversed."""
    keys, values = rng.normal(size=(2, 5, D))  # p_min = -2, p_max = 2
    R_K, R_V = (table[np.clip(i - j, -2, 2) + 2] for table in (keys, values))
    q, k, v = x @ W_Q, x @ W_K, x @ W_V
    weights = softmax(np.einsum("id,ijd->ij", q, k + R_K))
    expected = np.einsum("ij,ijd->id", weights, v + R_V)
    between = offsets.offsets(positions, positions)
    return expected, shaw.attend(q, k, v, keys[::-1], values[::-1], between, scale=1), "relative.shaw.attend_pinned"


def equations_8_and_9():
    """XLNet style: p_j becomes R_{i-j} with a matrix of its own, p_i becomes two trained vectors u and v."""
    u, v = rng.normal(size=(2, D))
    R = sinusoidal.encode(np.arange(-N, N + 1), w, layout="half")[i - j + N]
    expected = x @ W_Q @ W_K.T @ x.T + np.einsum("id,ijd->ij", x @ W_Q @ W_KR.T, R) + u @ W_K.T @ x.T
    expected = expected + np.einsum("d,ijd->ij", v @ W_KR.T, R)
    r = transformer_xl.embeddings(transformer_xl.distances(N, N, bidirectional=True), w) @ W_KR
    scores = transformer_xl.scores((x @ W_Q)[None], (x @ W_K)[None], r[None], u[None], v[None], scale=1)[0]
    values = x @ W_V  # positions no longer reach the values
    return softmax(expected) @ values, attention.softmax(scores) @ values, "relative.transformer_xl.four_terms"


def buckets():
    """T5 style: f(i - j) of the survey's table, for i - j = 0 .. 30."""
    row = [*range(8), *4 * [8], *4 * [9], *7 * [10], *8 * [11]]
    return np.array(row), t5.bucket(-np.arange(31), bidirectional=True), "relative.t5.buckets_pinned"


def equation_10():
    """T5 style: x_i W_Q W_K^T x_j^T + beta_ij, with a trained beta for each bucket; keys after the query have 16 more."""
    table = rng.normal(size=(32, 1))
    beta = table[np.abs(i - j) + 16 * (j > i), 0]  # the first 8 distances have a bucket each
    q, k, v = x @ W_Q, x @ W_K, x @ W_V
    bias = t5.bias(positions, positions, table, bidirectional=True)[0]
    return softmax(q @ k.T + beta) @ v, attention.attend(q, k, v, scale=1, bias=bias), "relative.t5.no_scale"


def untied():
    """TUPE: the same bias, and positions with matrices of their own."""
    U_Q, U_K = rng.normal(size=(2, 1, D, D))
    expected = p @ U_Q[0] @ U_K[0].T @ p.T
    return expected, tupe.positional_scores(p, U_Q, U_K, scale=1)[0], "relative.tupe.absolute_but_for_the_commutant"


def equation_11():
    """DeBERTa style: terms 2 and 3 with relative rows; R_{j,i} in the third, as in the paper."""
    rows, K = rng.normal(size=(6, D)), 3
    delta = np.clip(i - j + K, 0, 2 * K - 1)
    q, k, q_r, k_r = x @ W_Q, x @ W_K, rows @ W_Q, rows @ W_K
    expected = q @ k.T + np.einsum("id,ijd->ij", q, k_r[delta]) + np.einsum("jd,ijd->ij", k, q_r[delta.T])
    between = offsets.offsets(positions, positions)
    return expected, deberta.scores(q, k, q_r, k_r, between, scale=1, convention="paper"), "relative.deberta.pinned"


def convolutional():
    """CNN style: zero padding shows the border, where a constant has another result than in the middle."""
    kernel = np.ones((3, 1, 1))
    expected = np.array([[2.0], *(N - 2) * [[3.0]], [2.0]])
    return (
        expected,
        zero_padding.convolve(np.ones((N, 1)), kernel, padding="zero"),
        "absolute.zero_padding.constant_input_shows_the_border",
    )


def equations_12_and_13():
    """Complex: a word has amplitudes r, frequencies omega and phases theta; at position k it is r e^{i (omega k + theta)}."""
    r, omega, theta = np.abs(x), rng.normal(size=(N, D)), rng.normal(size=(N, D))
    expected = r * np.exp(1j * (omega * positions[:, None] + theta))
    return expected, complex_order.encode(positions, r, omega, theta), "absolute.complex_order.pinned"


def equations_14_and_15():
    """Fusion: the real part of q conj(k) e^{i (m - n) theta} is the product of a turned query and a turned key."""
    q, k, theta = x[:, :2], x[:, 2:4], np.ones(1)
    m, n = i, j
    a, b = q[:, 0] + 1j * q[:, 1], k[:, 0] + 1j * k[:, 1]
    expected = (a[:, None] * b.conj() * np.exp(1j * (m - n))).real
    turned_q, turned_k = (rope.rotate(y, *rope.tables(positions, theta), layout="interleaved") for y in (q, k))
    return expected, attention.scores(turned_q, turned_k, scale=1), "rotary.rope.relative"


def equations_16_and_17():
    """(x, y) cos(n theta) + (-y, x) sin(n theta), for each pair with an angle of its own."""
    angles = positions[:, None] * np.repeat(w, 2)
    swapped = np.stack([-x[:, 1::2], x[:, ::2]], axis=-1).reshape(N, D)
    turned = rope.rotate(x, *rope.tables(positions, w), layout="interleaved")
    return x * np.cos(angles) + swapped * np.sin(angles), turned, "rotary.rope.efficient_form"


def fusion_on_values():
    """If absolute position is needed, the encoding is applied to v as well."""
    q, k, v = x @ W_Q, x @ W_K, x @ W_V
    turned = [rope.rotate(y, *rope.tables(positions, w), layout="interleaved") for y in (q, k, v)]
    given = {"layout": "interleaved", "scale": 1, "undo": False}
    return (
        softmax(turned[0] @ turned[1].T) @ turned[2],
        value.attend(q, k, v, positions, w, **given),
        "rotary.value.absolute_without_undo",
    )


STEPS = (
    *(trainable, beyond_the_table, equation_1, recurrence, differential_equation, multiplicative),
    *(equation_2, equation_3_and_7, equations_4_to_6, equations_8_and_9, buckets, equation_10, untied, equation_11),
    *(convolutional, equations_12_and_13, equations_14_and_15, equations_16_and_17, fusion_on_values),
)

PICTURES = {  # of the system that a step is about; the others are on the sheet of all encodings
    "absolute.learned": "learned-similarity",
    "absolute.hierarchical": "stretched-table",
    "absolute.sinusoidal": "heatmap",
    "absolute.zero_padding": "border",
    "relative.shaw": "shaw-clip",
    "relative.transformer_xl": "shift",
    "relative.t5": "t5-buckets",
    "relative.deberta": "deberta-sum",
    "rotary.rope": "clocks",
    "rotary.value": "rotated-values",
}


def main():
    known = statements.statements()
    for step in STEPS:
        expected, found, theorem = step()
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
        system = theorem.rpartition(".")[0]
        print(f"\n{step.__name__.replace('_', ' ')}. {step.__doc__}")
        print(textwrap.fill(f"why: {' '.join(discovery.page(system).motivation.split())}", 120, subsequent_indent="  "))
        print(f"computed twice, {np.size(found)} numbers, largest difference {np.abs(found - expected).max():.1g}")
        print(textwrap.fill(f"proved, {theorem}: {known[theorem].statement}", 120, subsequent_indent="  "))
        print(f"picture: docs/figures/{PICTURES.get(system, 'sheet')}.svg")
    print(f"\n{len(STEPS)} steps agree with the survey. What it says otherwise: posref claims su")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__.split("\n")[0]).parse_args()
    main()
