"""Tensors: other people's arrays as float64, without importing their libraries."""

import json
import os
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from posref.vectors.models import on_host

DTYPES = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "i32": "int32", "i64": "int64"}
_FILE_DTYPES = {"float64": "<f8", "float32": "<f4", "float16": "<f2", "bfloat16": "<u2", "int32": "<i4", "int64": "<i8"}
_SAFETENSORS = {name.upper(): "V2" if name == "bf16" else _FILE_DTYPES[dtype] for name, dtype in DTYPES.items()}
_PICKLES = (".pt", ".pth", ".ckpt", ".pkl", ".pickle")
_UNPACKED = 2**28  # bytes: a small .npz can unpack to any size
_NO_PICKLE = (
    "is a pickle, and posref reads no pickle, because loading a pickle can run any code; save it with numpy.save or safetensors"
)


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
    """An output dumped by any program, and its dtype: .npy; .npz or .safetensors with one array; or raw little-endian numbers.

    `dtype` is f64, f32, f16, bf16, i32 or i64; a raw file needs it. Other files say their dtype, and `dtype` may only add that
    their 16-bit integers or floats are bf16. ValueError when the file says another dtype, has another size than expected or
    cannot be read. Numbers in another order of axes are returned as they are, for `diagnose` to name the axes.
    """
    name = None if dtype is None else DTYPES.get(dtype, dtype)
    if name is not None and name not in _FILE_DTYPES:
        raise ValueError(f"check.load_output: dtype is {dtype!r}, expected one of {', '.join(DTYPES)}")
    if Path(path).is_dir():
        raise ValueError(f"check.load_output: {path} is a directory; name the dumped file in it")
    if Path(path).suffix in _PICKLES:
        raise ValueError(f"check.load_output: {path} {_NO_PICKLE}")
    says = Path(path).suffix in (".npy", ".npz", ".safetensors")
    values = _read_array(path) if says else _read_raw(path, shape, name)
    held = "bfloat16" if values.dtype == "V2" else values.dtype.name  # ml_dtypes has numpy save bf16 as V2
    if says and name not in (None, held, "bfloat16"):
        raise ValueError(
            f"check.load_output: {path} says that it holds {held}; leave dtype={dtype} out, which is for raw files"
        )
    name = name or held
    if name == "bfloat16":
        values = _widen_bfloat16(path, values)
    if values.shape != tuple(shape):
        if values.size != np.prod(shape):
            raise ValueError(f"check.load_output: {path} holds shape {values.shape}, expected {tuple(shape)}")
        values = values.reshape(shape) if values.ndim == 1 else values
    if values.dtype.kind not in "biuf":
        raise ValueError(f"check.load_output: {path} holds {values.dtype}, expected real numbers")
    return values.astype(np.float64), name


def _read_array(path: str) -> np.ndarray:
    with open(path, "rb") as file:  # a file that is not there is an OSError
        try:
            if Path(path).suffix == ".safetensors":
                return _read_safetensors(file)
            return _only_array(np.load(file, allow_pickle=False))
        except Exception as error:  # the parsers have errors of their own
            if "allow_pickle" in str(error):
                raise ValueError(f"check.load_output: {path} {_NO_PICKLE}") from None
            raise ValueError(f"check.load_output: {path} cannot be read: {error}; is it truncated?") from error


def _read_safetensors(file: BinaryIO) -> np.ndarray:
    """8 bytes with the length of the header, the header in JSON, the numbers."""
    length, left = int.from_bytes(file.read(8), "little"), os.fstat(file.fileno()).st_size - 8
    if length > left:
        raise ValueError(f"its header should have {length} bytes and has {max(left, 0)}")
    tensors = {name: each for name, each in json.loads(file.read(length)).items() if name != "__metadata__"}
    if len(tensors) != 1:
        raise ValueError(f"it holds {len(tensors)} tensors ({', '.join([*tensors][:20])}), expected one: save the output alone")
    (tensor,) = tensors.values()
    if tensor["dtype"] not in _SAFETENSORS:
        raise ValueError(f"its dtype is {tensor['dtype']}, expected one of {', '.join(_SAFETENSORS)}")
    return np.frombuffer(file.read(), _SAFETENSORS[tensor["dtype"]]).reshape(tensor["shape"])


def _only_array(loaded: Any) -> np.ndarray:
    if isinstance(loaded, np.ndarray):
        return loaded
    if (size := sum(member.file_size for member in loaded.zip.infolist())) > _UNPACKED:
        raise ValueError(f"it unpacks to {size} bytes, at most {_UNPACKED} are read; save the output as .npy")
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
    if values.dtype.kind == "f" and (np.isnan(values) | (round_to(values, "bfloat16") == values)).all():
        return values
    raise ValueError(
        f"check.load_output: {path} holds {values.dtype}, expected bf16: 16-bit integers, or floats that bf16 holds exactly"
    )
