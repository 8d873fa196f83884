"""Fast paths: the specification's functions compiled with numba, with `out=` and `threads=` added.

Import the module you want; nothing in `posref` dispatches here:

>>> from posref.fast import rope

Names, signatures, shapes and errors are those of the specification. Kernels that only multiply and add are bitwise equal
to it for the same inputs. Each kernel is a plain nest of loops, and its Python source is executed on symbols by the proofs.
"""

try:
    import numba as _numba  # noqa: F401
except ImportError as error:
    raise ImportError(f"posref.fast needs numba ({error}); install it with: pip install numba") from error
