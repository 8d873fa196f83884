"""The definitions against numbers published elsewhere, and the vectors against the definitions through another program."""

from decimal import Decimal, getcontext, localcontext

import mpmath
import numpy as np
import pytest

from posref import ops, vectors
from proofs.absolute import sinusoidal
from proofs.vectors import rope


def rotated(x, position, dim, layout, base=10**4, **change):
    with mpmath.workprec(200):
        theta = rope._theta(dim, base)
        return rope._turn(np.array([x]), [position], theta, layout)[0].astype(float)


X4, X8 = np.arange(1.0, 5), np.arange(1.0, 9)

# Worked by hand for x = (1, 2, 3, 4) at position 1: angles 1 and 0.01 radian.
WORKED = {
    "half": [-1.984110649, 1.959900667, 2.462377902, 4.019799668],
    "interleaved": [-1.142639664, 1.922075597, 2.959850668, 4.029799502],
    "third_layout": [-1.142639664, 2.959850668, 1.922075597, 4.029799502],
    "sign": [3.064715260, 2.039899334, 0.779435933, 3.979800335],
    "tiled_tables": [-1.142639664, 2.009899834, -1.744977022, 4.029799502],
}


@pytest.mark.parametrize("layout", ["half", "interleaved"])
def test_four_features(layout):
    assert np.abs(rotated(X4, 1, 4, layout) - WORKED[layout]).max() < 6e-10
    assert np.abs(vectors.case(f"rope/{layout}/d4-b1e4/one").expected[0] - WORKED[layout]).max() < 6e-10


def test_four_features_partial():
    assert np.abs(rotated(X8, 1, 4, "half") - [*WORKED["half"], 5, 6, 7, 8]).max() < 6e-10


@pytest.mark.parametrize(
    ("mistake", "layout"), [("third_layout", "interleaved"), ("sign", "half"), ("tiled_tables", "interleaved")]
)
def test_mistakes_are_what_they_say(mistake, layout):
    op, arguments = ops.of_case(vectors.case(f"rope/{layout}/d4-b1e4/one"))
    wrong = op.mistakes[mistake].wrong(op.spec, arguments)[0]
    assert np.abs(wrong - WORKED[mistake]).max() < 6e-10


def test_tiled_tables_are_no_rotation():
    assert np.linalg.norm(WORKED["tiled_tables"]) == pytest.approx(4.962817, abs=1e-6)
    assert np.linalg.norm(WORKED["third_layout"]) == pytest.approx(np.sqrt(30), abs=1e-8)


def test_proportional_pairs_across_the_head():
    """Exponent and pairs of the head, 2 of 4 frequencies real: what pairs_across_head gives but for its exponent."""
    with mpmath.workprec(200):
        theta = [*rope._theta(8, 10**4)[:2], mpmath.mpf(0), mpmath.mpf(0)]
        y = rope._turn(X8[None], [1], theta, "half")[0].astype(float)
    assert np.abs(y - [-3.667052618, 1.391007831, 3, 4, 3.542982514, 6.169691825, 7, 8]).max() < 6e-10


def test_rows_of_a_head_of_eight():
    assert rope._permuted(np.arange(8), 1, 8, "interleaved", "half").tolist() == [0, 2, 4, 6, 1, 3, 5, 7]
    assert rope._permuted(np.arange(8), 1, 8, "half", "interleaved").tolist() == [0, 4, 1, 5, 2, 6, 3, 7]


def test_frequency_and_cosine_of_a_report():
    """EleutherAI/gpt-neox#1003: 32 features, position 1857, pair 1."""
    with mpmath.workprec(200):
        angle = 1857 * rope._theta(32, 10**4)[1]
        assert float(angle) == pytest.approx(1044.26784, abs=6e-6)
        assert float(mpmath.cos(angle)) == pytest.approx(0.306693, abs=6e-7)


def test_last_and_second_frequency_of_512():
    """Both divisors of the sinusoid at 512 features."""
    paper, released = (vectors.case(f"sinusoidal/{divisor}/d512-b1e4/frequencies").expected for divisor in ("dim", "dim-2"))
    assert [round(paper[1], 7), round(paper[-1], 9)] == [0.9646616, 1.03663e-4]
    assert [round(released[1], 7), round(released[-1], 9)] == [0.9645255, 1.0e-4]


def test_frequency_of_a_partial_rotation():
    """512 features, base 1e6: exponent over 128 rotated features, and over the head."""
    with mpmath.workprec(200):
        assert float(rope._theta(128, 10**6)[1]) == pytest.approx(0.805842188, abs=6e-10)
        assert float(rope._theta(512, 10**6)[1]) == pytest.approx(0.947463526, abs=6e-10)


# transformers, tests/utils/test_modeling_rope_utils.py, test_default_rope_numerically: 64 numbers, these 16 in four decades.
TRANSFORMERS = """1.0000 .86596 .74989 .64938 .56234 .48697 .42170 .36517
                  .31623 .27384 .23714 .20535 .17783 .15399 .13335 .11548"""


def test_frequencies_of_llama_as_transformers_prints_them():
    expected = np.array([[float(x) * 10.0**-decade for x in TRANSFORMERS.split()] for decade in range(4)]).ravel()
    got = vectors.case("rope/any/d128-b1e4/inv_freq").expected
    assert [f"{x:.4e}" for x in got] == [f"{x:.4e}" for x in expected]


def by_decimal(dim, base, divisor):
    """The frequencies by Python's decimal, 60 digits: a second program."""
    with localcontext():
        getcontext().prec = 60
        return [float(Decimal(base) ** (Decimal(-2 * t) / Decimal(divisor))) for t in range(dim // 2)]


@pytest.mark.parametrize("case", [c for c in vectors.cases("rope/any/*") if c.op == "inv_freq"], ids=lambda c: c.id)
def test_frequencies_by_decimal(case):
    dim, base = case.params["dim"], int(case.params["base"])
    assert case.expected.tolist() == by_decimal(dim, base, dim)


@pytest.mark.parametrize("case", [c for c in vectors.cases("sinusoidal/*") if c.op == "frequencies"], ids=lambda c: c.id)
def test_sinusoid_frequencies_by_decimal(case):
    dim, base = case.params["dim"], int(case.params["base"])
    assert case.expected.tolist() == by_decimal(dim, base, dim if case.params["divisor"] == "dim" else max(dim - 2, 1))


def test_sinusoid_of_token_one():
    """sin 1, cos 1, sin 0.01, cos 0.01 from any table."""
    with mpmath.workprec(200):
        w = [sinusoidal.frequency(t, 4, mpmath.mpf(10**4), m=mpmath) for t in range(2)]
        row = [float(v) for v in sinusoidal.definition(1, w, "interleaved", mpmath)]
    assert np.abs(np.array(row) - [0.8414709848, 0.5403023059, 0.0099998333, 0.9999500004]).max() < 6e-11


def test_rotations_as_complex_numbers():
    """Every rotation again: multiplication by e^{i m theta} in exact arithmetic of another kind."""
    for case in (c for c in vectors.cases("rope/*") if c.op == "rotate"):
        dim, base = case.params["dim"], int(case.params["base"])
        positions = np.broadcast_to(case.tensors["positions"], case.expected.shape[:-1])
        with mpmath.workprec(120):
            theta = [mpmath.power(base, mpmath.mpf(-2 * t) / dim) for t in range(dim // 2)]
            for index in list(np.ndindex(positions.shape))[:4]:
                x, y = case.tensors["x"][index], case.expected[index].copy()
                assert (y[dim:] == x[dim:]).all()
                a, b = (slice(0, dim, 2), slice(1, dim, 2))
                if case.params["layout"] == "half":
                    a, b = slice(0, dim // 2), slice(dim // 2, dim)
                for t, (first, second) in enumerate(zip(x[a], x[b], strict=True)):
                    z = mpmath.mpc(first, second) * mpmath.expjpi(positions[index].item() * theta[t] / mpmath.pi)
                    assert [float(z.real), float(z.imag)] == [y[a][t], y[b][t]]
