"""Files of any size take the memory of the numbers that are expected: headers are judged before numbers are read."""

import contextlib
import io
import json
import tracemalloc
import zipfile

import numpy as np
import pytest

from posref import cli
from posref.check import load_output, tensors

SHAPE = (8, 8)
LARGE = 2**27  # numbers; a sparse file of them has 1 GB, and a few kB on a disk
MEMORY = 2**22  # bytes


def npy(shape, header=None, version=1):
    """The header of an .npy by its definition; `header` is a length that it only claims."""
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}".encode()
    length = len(text) if header is None else header
    return b"\x93NUMPY" + bytes([version, 0]) + length.to_bytes(2 * version, "little") + text


def npz(content, zeros, packing=zipfile.ZIP_DEFLATED):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", packing) as archive, archive.open("y.npy", "w") as member:
        member.write(content)
        member.write(bytes(zeros))
    return packed.getvalue()


def safetensors(shape, header=None):
    text = json.dumps({"y": {"dtype": "F64", "shape": shape, "data_offsets": [0, 8 * int(np.prod(shape))]}}).encode()
    return (len(text) if header is None else header).to_bytes(8, "little") + text


FILES = {  # by suffix: (what is wrong, bytes, zeros that follow, words of the refusal)
    ".npy": [
        ("numbers", npy((LARGE,)), 8 * LARGE, r"holds shape \(134217728,\), expected \(8, 8\)"),
        ("header", npy(SHAPE, header=2**30, version=2), 2**30, "its header has 1073741824 bytes, at most 10000 are read"),
        ("few", npy((7, 8)), 8 * LARGE, r"holds shape \(7, 8\), expected \(8, 8\)"),
        ("cut", npy(SHAPE), 511, "its numbers should have 512 bytes and have 511; is it truncated"),
        ("below 0", npy((-8, -8)), 512, "its shape is"),
        ("version", npy(SHAPE, version=3), 512, "version of .npy is 3.0, expected 1.0 or 2.0"),
        ("axes", npy((1,) * 40), 8, "whole sizes of at most 32 axes"),
    ],
    ".npz": [
        ("numbers", npz(npy((2**20,)), 2**23), 0, r"holds shape \(1048576,\), expected \(8, 8\)"),
        ("header", npz(npy(SHAPE, header=2**22, version=2), 2**23), 0, "its header has 4194304 bytes, at most 10000"),
        ("archive", npz(npy(SHAPE), 512), 2**30, "it has 10737.* bytes, at most 1049600 are read"),
        ("cut", npz(npy(SHAPE), 511), 0, "its numbers should have 512 bytes and have 511"),
        ("checksum", npz(npy(SHAPE), 512, zipfile.ZIP_STORED).replace(bytes(512), b"\1" * 512), 0, "Bad CRC-32"),
        ("bzip2", npz(npy(SHAPE), 512, zipfile.ZIP_BZIP2), 0, "packed as numpy.savez does not pack"),
        ("lzma", npz(npy(SHAPE), 512, zipfile.ZIP_LZMA), 0, "packed as numpy.savez does not pack"),
    ],
    ".safetensors": [
        ("numbers", safetensors([LARGE]), 8 * LARGE, r"holds shape \(134217728,\), expected \(8, 8\)"),
        ("header", safetensors([8, 8], header=2**30), 2**30, "its header has 1073741824 bytes, at most 1048576 are read"),
        ("rest", safetensors([8, 8]), 8 * LARGE, "its numbers should have 512 bytes and have 1073741824"),
        ("sizes", safetensors([8.0, 8]), 512, "its shape is"),
        ("sizes beyond all", safetensors([2**64]), 0, "its shape is"),
    ],
    ".bin": [("numbers", b"", 8 * LARGE, r"longer than expected: 1073741824 bytes, float64 of shape \(8, 8\) needs 512")],
}


def written(path, content, zeros):
    with open(path, "wb") as file:
        file.write(content)
        file.truncate(len(content) + zeros)
    return str(path)


@contextlib.contextmanager
def little_memory():
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < MEMORY
    finally:
        tracemalloc.stop()


def test_every_reader_is_asked():
    assert FILES.keys() == {*tensors.READERS, ".bin"}


@pytest.mark.parametrize(
    ("suffix", "case"), [pytest.param(suffix, case, id=suffix + case[0]) for suffix, cases in FILES.items() for case in cases]
)
def test_a_file_takes_the_memory_of_what_is_expected(tmp_path, suffix, case):
    _, content, zeros, words = case
    path = written(tmp_path / f"y{suffix}", content, zeros)
    with little_memory(), pytest.raises(ValueError, match=words) as caught:
        load_output(path, SHAPE, "f64" if suffix == ".bin" else None)
    assert str(caught.value).startswith(f"check.load_output: {path} ")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_the_right_file_is_read(tmp_path, save):
    values = np.arange(64.0).reshape(SHAPE)
    for stored in (values, np.asfortranarray(values), values.astype(">f4"), np.zeros((0, 3)), np.array(2.5)):
        save(tmp_path / "y.npz", stored)
        np.save(tmp_path / "y.npy", stored)
        for name in ("y.npz", "y.npy"):
            got, _ = load_output(str(tmp_path / name), stored.shape)
            assert np.array_equal(got, stored)


NUMBERS = [
    ("y.npy", npy((LARGE,)), 8 * LARGE, r"holds shape \(134217728,\), expected at most 131072 numbers"),
    ("y.npy", npy((4,), header=2**30, version=2), 2**30, "its header has 1073741824 bytes"),
    ("y.npy", b"", 0, "cannot be read"),
    ("y.npy", npy((2,)).replace(b"<f8", b"<c8"), 16, "holds complex64, expected real numbers"),
    ("y.npy", npy((2,)).replace(b"<f8", b"<U1"), 8, "holds <U1, expected real numbers"),
    ("y.json", b"[1, 2]", 2**30, "is longer than 1048576 bytes, the most that is read"),
    ("y.json", b"[" * 2**19, 0, "cannot be read"),
    ("y.json", b'{"a": 1}', 0, "cannot be read"),
    ("y.json", b"\xff[1]", 0, "cannot be read"),
]


@pytest.mark.parametrize(("name", "content", "zeros", "words"), NUMBERS)
def test_frequencies_of_any_file_are_bounded(tmp_path, name, content, zeros, words):
    path = written(tmp_path / name, content, zeros)
    with little_memory(), pytest.raises(cli.Usage, match=f"--frequencies: .*{words}.*; give numbers with commas"):
        cli.typed.numbers("--frequencies", path)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
def test_frequencies_are_what_the_file_holds(tmp_path, dtype):
    stored = np.array([4, 2, 1], dtype)
    np.save(tmp_path / "y.npy", stored)
    (tmp_path / "y.json").write_text("[4, 2, 1]")
    for name in ("y.npy", "y.json"):
        assert np.array_equal(cli.typed.numbers("--frequencies", str(tmp_path / name)), stored)
