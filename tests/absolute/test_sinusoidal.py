"""The sinusoid: known numbers at 512 features."""

from posref.absolute import sinusoidal


def test_known_numbers_at_512():
    paper, code = (sinusoidal.frequencies(512, divisor=divisor) for divisor in sinusoidal.DIVISORS)
    assert f"{paper[-1]:.5e} {paper[1]:.7f}" == "1.03663e-04 0.9646616"
    assert f"{code[-1]:.5e} {code[1]:.7f}" == "1.00000e-04 0.9645255"
