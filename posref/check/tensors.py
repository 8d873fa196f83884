"""Tensors: other people's arrays as float64, without importing their libraries."""

from pathlib import Path
from typing import Any

import numpy as np

from posref.vectors.models import on_host

DTYPES = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "i32": "int32", "i64": "int64"}
_FILE_DTYPES = {"float64": "<f8", "float32": "<f4", "float16": "<f2", "bfloat16": "<u2", "int32": "<i4", "int64": "<i8"}


def dtype_name(value: Any) -> str:
    """The dtype in numpy's words: torch.bfloat16 and bfloat16 of jax are both "bfloat16"."""
    return str(getattr(value, "dtype", type(value).__name__)).rsplit(".", maxsplit=1)[-1]


def as_float64(value: Any) -> np.ndarray:
    """Values of a numpy, torch, jax or similar tensor, widened exactly.

    >>> as_float64(np.array([1, 2], dtype=np.float16))
    array([1., 2.])
    """
    try:
        array = on_host(value)
        if array.dtype.kind != "c":
            with np.errstate(invalid="ignore"):
                return array.astype(np.float64)
    except (TypeError, ValueError):  # text, objects, lists of several lengths
        said = f"the output is a {type(value).__name__}, expected an array or tensor of numbers whose rows have one length"
        raise TypeError(f"check: {said}") from None
    raise TypeError(f"check: an array of {array.dtype}, expected real numbers; pass its real and imaginary parts as features")


def round_to(value: np.ndarray, dtype: str) -> np.ndarray:
    """Nearest number of the dtype, ties to even, as float64; values beyond its range become infinite.

    >>> round_to(np.array([257.0, 0.1]), "bfloat16")
    array([2.56000000e+02, 1.00097656e-01])
    """
    with np.errstate(over="ignore", under="ignore"):
        if dtype != "bfloat16":
            return np.asarray(value).astype(dtype).astype(np.float64)
        bits = np.ascontiguousarray(value, dtype=np.float32).view(np.uint32)
        rounded = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
        return (rounded & np.uint32(0xFFFF0000)).view(np.float32).astype(np.float64)


def load_output(path: str, shape: tuple[int, ...], dtype: str | None = None) -> tuple[np.ndarray, str]:
    """An output dumped by any program, and its dtype: .npy, .npz with one array, or raw little-endian numbers.

    `dtype` is f64, f32, f16, bf16, i32 or i64; a raw file needs it. In .npy and .npz files bf16 may be stored as 16-bit
    integers. ValueError when the file has another size than expected or cannot be read. Numbers in another order of axes are
    returned as they are, for `diagnose` to name the axes.
    """
    name = None if dtype is None else DTYPES.get(dtype, dtype)
    if name is not None and name not in _FILE_DTYPES:
        raise ValueError(f"check.load_output: dtype is {dtype!r}, expected one of {', '.join(DTYPES)}")
    if Path(path).is_dir():
        raise ValueError(f"check.load_output: {path} is a directory; name the dumped file in it")
    values = _read_numpy(path) if Path(path).suffix in (".npy", ".npz") else _read_raw(path, shape, name)
    if name == "bfloat16":
        values = _widen_bfloat16(path, values)
    if values.shape != tuple(shape):
        if values.size != np.prod(shape):
            raise ValueError(f"check.load_output: {path} holds shape {values.shape}, expected {tuple(shape)}")
        values = values.reshape(shape) if values.ndim == 1 else values
    if values.dtype.kind not in "biuf":
        raise ValueError(f"check.load_output: {path} holds {values.dtype}, expected real numbers; bf16 needs dtype=bf16")
    return values.astype(np.float64), name or dtype_name(values)


def _read_numpy(path: str) -> np.ndarray:
    with open(path, "rb") as file:  # a file that is not there is an OSError
        try:
            return _only_array(np.load(file, allow_pickle=False))
        except Exception as error:  # NumPy parses the bytes with several libraries, and each has errors of its own
            raise ValueError(f"check.load_output: {path} cannot be read: {error}; is it truncated?") from error


def _only_array(loaded: Any) -> np.ndarray:
    if isinstance(loaded, np.ndarray):
        return loaded
    if len(loaded.files) != 1:
        raise ValueError(f"it holds {len(loaded.files)} arrays ({', '.join(loaded.files)}), expected one")
    return np.asarray(loaded[loaded.files[0]])


def _read_raw(path: str, shape: tuple[int, ...], name: str | None) -> np.ndarray:
    if name is None:
        raise ValueError(f"check.load_output: {path} is a raw file; say what it holds with dtype= one of {', '.join(DTYPES)}")
    kind = np.dtype(_FILE_DTYPES[name])
    if Path(path).is_dir():
        raise ValueError(f"check.load_output: {path} is a directory; give the path of the dumped output")
    size, expected = Path(path).stat().st_size, int(np.prod(shape)) * kind.itemsize
    if size != expected:
        word = "truncated" if size < expected else "longer than expected"
        raise ValueError(
            f"check.load_output: {path} is {word}: {size} bytes, {name} of shape {tuple(shape)} needs {expected}; "
            "check the dtype and that the whole buffer was written"
        )
    return np.fromfile(path, dtype=kind).reshape(shape)


def _widen_bfloat16(path: str, values: np.ndarray) -> np.ndarray:
    if values.dtype.kind in "uiV" and values.dtype.itemsize == 2:
        return (values.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)
    if values.dtype.kind == "f":
        return values
    raise ValueError(f"check.load_output: {path} holds {values.dtype}, expected bf16 as 16-bit integers or floats")
