"""ALiBi, compiled: the kernels are the specification."""

from posref.fast import alibi as fast
from posref.relative import alibi
from proofs.kit import *

N, M, H = size("n"), size("m"), size("h")
KERNELS = {"signed": fast._signed, "absolute": fast._absolute}


@theorem(of=list(KERNELS.values()), sizes="all heads, n, m, positions, slopes", as_written="kernel")
def kernels_are_the_bias():
    """The compiled biases write every cell once, with the value of the specification, whatever the positions."""
    slopes, query, key = sized("s", H), sized("i", N), sized("j", M)
    for form, kernel in KERNELS.items():

        def prove(form=form, kernel=kernel):
            out = Output((H, N, M))
            prove_kernel(kernel, [slopes, query, key, out], (out, alibi.bias(query, key, slopes, form=form)))

        for _ in all_paths(prove):
            pass


@kernels_are_the_bias.claim("They agree for keys of the past alone.")
def forms_agree_everywhere():
    """The absolute form is the signed one for keys of the future too."""
    slopes, query, key, out = symbols("s", 1), symbols("i", 1), symbols("j", 1), room("out", 1, 1, 1)
    for _ in all_paths(lambda: fast._absolute.py_func(slopes, query, key, out)):
        prove_equal(out, alibi.bias(query, key, slopes, form="signed"))


@kernels_are_the_bias.control
def queries_and_keys_change_places():
    """The signed form is m (i - j)."""
    slopes, query, key, out = symbols("s", 1), symbols("i", 1), symbols("j", 1), room("out", 1, 1, 1)
    fast._signed.py_func(slopes, query, key, out)
    prove_equal(out, alibi.bias(key, query, slopes, form="signed"))
