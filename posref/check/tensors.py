"""Tensors: other people's arrays as float64, without importing their libraries."""

import contextlib
import io
import json
import math
import os
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

import numpy as np

from posref.vectors.models import on_host

DTYPES = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "i32": "int32", "i64": "int64"}
_FILE_DTYPES = {"float64": "<f8", "float32": "<f4", "float16": "<f2", "bfloat16": "<u2", "int32": "<i4", "int64": "<i8"}
_SAFETENSORS = {name.upper(): "V2" if name == "bf16" else _FILE_DTYPES[dtype] for name, dtype in DTYPES.items()}
_PICKLES = (".pt", ".pth", ".ckpt", ".pkl", ".pickle")
_HEADER = 2**20  # bytes: one array needs a few hundred, and parsed JSON can take twenty times its length
_HEADER_OF_NUMPY = 10_000  # bytes, NumPy's own limit
_NUMBERS = 2**17  # frequencies or factors of one rotation: far more than any head has
_AXES = 32
_NO_PICKLE = (
    "is a pickle, and posref reads no pickle, because loading a pickle can run any code; save it with numpy.save or safetensors"
)


def dtype_name(value: Any) -> str:
    """The dtype by its NumPy name: torch.bfloat16 and bfloat16 of jax are both "bfloat16"."""
    return str(getattr(value, "dtype", type(value).__name__)).rsplit(".", maxsplit=1)[-1]


def as_float64(value: Any) -> np.ndarray:
    """Values of a numpy, torch, jax or similar tensor, widened exactly. TypeError if they are not real numbers.

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

    `dtype` is f64, f32, f16, bf16, i32 or i64, and a raw file needs it. Other files state their dtype; there `dtype` may only
    add that 16-bit integers or floats are bf16. ValueError if the file states another dtype, has another size than expected or
    cannot be read; a file with more numbers than expected is refused before they are read. An array with another order of axes
    is returned as it is, so that `diagnose` can name the axes.
    """
    try:
        return _output(path, tuple(shape), dtype)
    except ValueError as error:
        raise ValueError(f"check.load_output: {error}") from error


def load_numbers(path: str) -> np.ndarray:
    """The numbers of a small .npy or .json file, such as frequencies. ValueError if it is too large or holds no numbers."""
    if Path(path).suffix == ".npy":
        values = _read_array(path, _NUMBERS, f"expected at most {_NUMBERS} numbers")
        return _widen_bfloat16(path, values) if values.dtype.kind == "V" else values
    with open(path, "rb") as file:
        text = file.read(_HEADER + 1)
    if len(text) > _HEADER:
        raise ValueError(f"{path} is longer than {_HEADER} bytes, the most that is read")
    with _errors_name(path):
        return np.array(json.loads(text), dtype=np.float64)


def _output(path: str, shape: tuple[int, ...], dtype: str | None) -> tuple[np.ndarray, str]:
    name = None if dtype is None else DTYPES.get(dtype, dtype)
    if name is not None and name not in _FILE_DTYPES:
        raise ValueError(f"dtype is {dtype!r}, expected one of {', '.join(DTYPES)}")
    if Path(path).is_dir():
        raise ValueError(f"{path} is a directory; name the dumped file in it")
    if Path(path).suffix in _PICKLES:
        raise ValueError(f"{path} {_NO_PICKLE}")
    says = Path(path).suffix in READERS
    values = _read_array(path, math.prod(shape), f"expected {shape}") if says else _read_raw(path, shape, name)
    held = "bfloat16" if values.dtype.kind == "V" else values.dtype.name  # ml_dtypes has numpy save bf16 as V2
    if says and name not in (None, held, "bfloat16"):
        raise ValueError(f"{path} says that it holds {held}; leave dtype={dtype} out, which is for raw files")
    name = name or held
    if name == "bfloat16":
        values = _widen_bfloat16(path, values)
    if values.size != math.prod(shape):
        raise ValueError(f"{path} holds shape {values.shape}, expected {shape}")
    return (values.reshape(shape) if values.ndim == 1 else values).astype(np.float64), name


class _Stored(NamedTuple):
    """What the header of a file says, and the file at the start of its numbers."""

    dtype: np.dtype
    shape: tuple[int, ...]
    order: Literal["C", "F"]
    numbers: IO[bytes]


def _read_array(path: str, most: int, expected: str) -> np.ndarray:
    """The only array of a file. The header is judged before numbers are read, so memory is that of at most `most` numbers."""
    with open(path, "rb") as file:  # a file that is not there is an OSError
        with _errors_name(path):
            dtype, shape, order, numbers = READERS[Path(path).suffix](file, most)
        if dtype.hasobject:
            raise ValueError(f"{path} {_NO_PICKLE}")
        if dtype.kind not in "biuf" and dtype != "V2":
            raise ValueError(f"{path} holds {dtype}, expected real numbers")
        if math.prod(shape) > most:
            raise ValueError(f"{path} holds shape {shape}, {expected}")
        with _errors_name(path):
            size = math.prod(shape) * dtype.itemsize
            data = numbers.read(size)
            numbers.read(1)  # at its end a member of an archive compares its checksum
            if len(data) < size:
                raise ValueError(f"its numbers should have {size} bytes and have {len(data)}; is it truncated?")
            return np.ndarray(shape, dtype, data, order=order)


@contextlib.contextmanager
def _errors_name(path: str) -> Iterator[None]:
    """Turns every error of a parser into a ValueError that names the file."""
    try:
        yield
    except Exception as error:
        raise ValueError(f"{path} cannot be read: {error}") from error


def _bounded(length: int, most: int) -> int:
    if length > most:
        raise ValueError(f"its header has {length} bytes, at most {most} are read")
    return length


def _sizes(shape: Any) -> tuple[int, ...]:
    if len(shape) > _AXES or not all(type(size) is int and 0 <= size < 2**63 for size in shape):
        raise ValueError(f"its shape is {str(shape)[:100]}, expected whole sizes of at most {_AXES} axes")
    return tuple(shape)


def _left(file: IO[bytes]) -> int:
    return os.fstat(file.fileno()).st_size - file.tell()


def _of_numpy(file: IO[bytes], most: int) -> _Stored:
    """An array or an archive of NumPy, whatever the file is called."""
    begins = file.read(2)
    file.seek(0)
    return _npz(file, most) if begins == b"PK" else _npy(file)


def _npy(file: IO[bytes]) -> _Stored:
    """The format: 8 bytes with the version, 2 or 4 with the length of the header, the header, the numbers."""
    version = np.lib.format.read_magic(file)
    if version not in _VERSIONS:
        raise ValueError(f"its version of .npy is {'.'.join(map(str, version))}, expected 1.0 or 2.0")
    size, header_of = _VERSIONS[version]
    length = file.read(size)
    header = file.read(_bounded(int.from_bytes(length, "little"), _HEADER_OF_NUMPY))
    shape, by_columns, dtype = header_of(io.BytesIO(length + header))
    return _Stored(dtype, _sizes(shape), "F" if by_columns else "C", file)


def _npz(file: IO[bytes], most: int) -> _Stored:
    """An archive with one array, packed as by numpy.savez: another packing could give any number of bytes at once."""
    if _left(file) > (limit := 16 * most + _HEADER):  # its table of contents is read at once
        raise ValueError(f"it has {_left(file)} bytes, at most {limit} are read; save the output alone")
    archive = zipfile.ZipFile(file)
    members = archive.infolist()
    if len(members) != 1:
        raise ValueError(f"it holds {len(members)} arrays ({_names(m.filename for m in members)}), expected one")
    if members[0].compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError("it is packed as numpy.savez does not pack; save the output with numpy.savez or numpy.save")
    return _npy(archive.open(members[0]))


def _safetensors(file: IO[bytes], most: int) -> _Stored:
    """The format: 8 bytes with the length of the header, the header in JSON, the numbers."""
    length = int.from_bytes(file.read(8), "little")
    if length > _left(file):
        raise ValueError(f"its header should have {length} bytes and has {_left(file)}; is it truncated?")
    header = json.loads(file.read(_bounded(length, _HEADER)))
    tensors = {name: each for name, each in header.items() if name != "__metadata__"}
    if len(tensors) != 1:
        raise ValueError(f"it holds {len(tensors)} tensors ({_names(tensors)}), expected one: save the output alone")
    (tensor,) = tensors.values()
    if tensor["dtype"] not in _SAFETENSORS:
        raise ValueError(f"its dtype is {tensor['dtype']}, expected one of {', '.join(_SAFETENSORS)}")
    dtype, shape = np.dtype(_SAFETENSORS[tensor["dtype"]]), _sizes(tensor["shape"])
    if _left(file) != (size := math.prod(shape) * dtype.itemsize):
        raise ValueError(f"its numbers should have {size} bytes and have {_left(file)}; is it truncated?")
    return _Stored(dtype, shape, "C", file)


def _names(names: Iterable[str]) -> str:
    return ", ".join(name.removesuffix(".npy")[:60] for name in [*names][:20])


_VERSIONS = {(1, 0): (2, np.lib.format.read_array_header_1_0), (2, 0): (4, np.lib.format.read_array_header_2_0)}
READERS = {".npy": _of_numpy, ".npz": _of_numpy, ".safetensors": _safetensors}


def _read_raw(path: str, shape: tuple[int, ...], name: str | None) -> np.ndarray:
    if name is None:
        raise ValueError(f"{path} is a raw file; say what it holds with dtype= one of {', '.join(DTYPES)}")
    kind = np.dtype(_FILE_DTYPES[name])
    size, expected = Path(path).stat().st_size, math.prod(shape) * kind.itemsize
    if size != expected:
        word = "truncated" if size < expected else "longer than expected"
        raise ValueError(
            f"{path} is {word}: {size} bytes, {name} of shape {shape} needs {expected}; "
            "check the dtype and that the whole buffer was written"
        )
    return np.fromfile(path, dtype=kind, count=math.prod(shape)).reshape(shape)


def _widen_bfloat16(path: str, values: np.ndarray) -> np.ndarray:
    if values.dtype.kind in "uiV" and values.dtype.itemsize == 2:
        return (values.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)
    if values.dtype.kind == "f" and (np.isnan(values) | (round_to(values, "bfloat16") == values)).all():
        return values
    raise ValueError(f"{path} holds {values.dtype}, expected bf16: 16-bit integers, or floats that bf16 holds exactly")
