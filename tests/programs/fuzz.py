"""Damaged files for the readers of SECURITY.md: each answers or raises ValueError. python -m tests.programs.fuzz SECONDS"""

import contextlib
import io
import json
import resource
import struct
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from posref import cli, vectors
from posref.check import load_output
from posref.explain import explain
from posref.vectors import schema

ROOT = Path(__file__).parents[2]
CONFIGS = [row["config"] for row in json.loads((ROOT / "tests" / "explain" / "configs.json").read_text())]
SOONEST, MOST, BATCH = 20, 2 << 30, 200  # seconds for one file, bytes of memory, files that hypothesis makes at once

texts = st.text(max_size=8) | st.sampled_from(["\x1b[31m", "default", "yarn", "llama3", "full_attention", "nan"])
numbers = st.integers() | st.integers(-2, 130) | st.floats() | st.sampled_from([0, -1, 2**31, 2**63, 10**400, 1e308])
values = st.recursive(
    st.none() | st.booleans() | numbers | texts, lambda v: st.lists(v, max_size=4) | st.dictionaries(texts, v, max_size=4)
)


@st.composite
def configs(draw):
    """A real configuration, in which a few keys, also inner ones, are gone, changed or exchanged."""
    config = json.loads(json.dumps(draw(st.sampled_from(CONFIGS))))
    for _ in range(draw(st.integers(1, 4))):
        inner = draw(st.sampled_from([config, *(v for v in config.values() if isinstance(v, dict) and v)]))
        if inner:
            key = draw(st.sampled_from(sorted(inner)))
            inner[key] = draw(values | st.sampled_from(sorted(map(repr, inner.values()))))
            if draw(st.booleans()):
                del inner[key]
    return config


@st.composite
def attacks(draw):
    """A real configuration with a size, a depth or a length that no model has."""
    text = json.dumps(draw(st.sampled_from(CONFIGS)))
    config = json.loads(text)
    places = [(inner, key) for inner in (config, *(v for v in config.values() if isinstance(v, dict))) for key in inner]
    outer, key = draw(st.sampled_from(places))
    size = draw(st.sampled_from([2, 16, 17, 64, 320, 900, 512, 513, 4096, 50_000, 10**6, 2**31, 10**12]))
    length, word = min(size, 10**5), draw(texts)
    inner = outer[key]
    for _ in range(min(size, 900)):
        inner = [inner] if word == "nan" else {key: inner}
    parts = {f"{key}{i}": json.loads(text) for i in range(min(size, 90))}
    lists = [[each] * length for each in (1, {}, "full_attention", ["global", size])]
    numbered = {str(i): {} for i in range(length)}
    outer[key] = draw(st.sampled_from([size, float(size), inner, parts, numbered, word * length, *lists]))
    outer[draw(st.sampled_from([key, f"rope_{key}", "local_" * min(size, 40)]))] = outer[key]
    return config


@st.composite
def attacking_gguf(draw):
    """The head of a GGUF file that claims many entries, tensors, extents or elements, or arrays in arrays, and some bytes."""
    counts = st.sampled_from([0, 1, 2, 5, 1000, 2**16, 2**27, 2**32 - 1, 2**63, 2**64 - 1])
    name, end = b"\x01" + bytes(7) + b"k", draw(st.sampled_from([b"", bytes(10**6), b"\xff" * 10**6, b"\x01" + bytes(7)]))
    size, bits = draw(counts), draw(st.sampled_from(range(13)))
    array = struct.pack("<IQ", 9, 1) * draw(st.sampled_from([0, 1, 8, 9, 1000])) + struct.pack("<IQ", bits, size)
    if draw(st.booleans()):
        return gguf_head(0, draw(counts)) + name + b"\x09\0\0\0" + array + end
    architecture = struct.pack("<Q20sIQ5s", 20, b"general.architecture", 8, 5, b"llama")
    return gguf_head(draw(counts), 1) + architecture + name + struct.pack("<I", size % 2**32) + end


def gguf_head(tensors, entries):
    return b"GGUF" + struct.pack("<IQQ", 3, tensors, entries)


@st.composite
def damaged(draw, whole):
    """Bytes of a whole file: cut, with other bytes in some places, or with a piece twice."""
    data = bytearray(draw(st.sampled_from(whole)))
    for _ in range(draw(st.integers(1, 6))):
        place = draw(st.integers(0, max(len(data) - 1, 0)))
        piece = draw(st.binary(min_size=1, max_size=9) | st.sampled_from([b"\xff" * 8, b"\0" * 8, b"9" * 300]))
        data[place : place + draw(st.sampled_from([0, len(piece)]))] = piece
    return bytes(data[: draw(st.just(len(data)) | st.integers(0, len(data)))])


def encoded(config):
    return json.dumps(config).encode()


def read_bytes_as(suffix, reader):
    """A reader that is given a file with these bytes."""

    def read(data):
        with tempfile.NamedTemporaryFile(suffix=suffix) as file:
            file.write(data)
            file.flush()
            reader(file.name)

    return read


def explain_file(path):
    """`posref explain` of the file: an answer or a usage error, in printable text."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        code = cli.main(["explain", path])
    assert code in (0, 2), f"exit code {code}"
    assert "not enough memory" not in printed.getvalue(), f"more than {MOST >> 30} GB"  # the command's words for a MemoryError
    assert printed.getvalue().replace("\n", "").isprintable(), "control characters are printed"


def read_vectors(path):
    list(schema.problems(vectors.read(path)))


def npy():
    """Small dumps as NumPy writes them."""
    for array in (np.ones((2, 3), np.float32), np.arange(6.0).reshape(2, 3), np.ones((2, 3), np.int64)):
        buffer = io.BytesIO()
        np.save(buffer, array)
        yield buffer.getvalue()
    np.savez(buffer := io.BytesIO(), array)
    yield buffer.getvalue()


def safetensors():
    """A small dump of one tensor: the length of the header, the header, the numbers."""
    header = b'{"y": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}'
    return [len(header).to_bytes(8, "little") + header + bytes(24)]


def gguf():
    """Small GGUF files: all types of the format, and tables that divide the frequencies."""
    from tests.explain.test_reading import GGUF, gguf_bytes, gguf_with

    return [gguf_bytes(GGUF), gguf_with({"rope_freqs.weight": [1.0] * 64})]


TARGETS = {
    "configurations": (configs() | attacks(), explain),
    "config.json": (damaged(list(map(encoded, CONFIGS))) | attacks().map(encoded), read_bytes_as(".json", explain_file)),
    "GGUF": (damaged(gguf()) | attacking_gguf(), read_bytes_as(".gguf", explain_file)),
    "dumps": (damaged(list(npy())), read_bytes_as(".npy", lambda path: load_output(path, (2, 3)))),
    "safetensors": (damaged(safetensors()), read_bytes_as(".safetensors", lambda path: load_output(path, (2, 3)))),
    "vectors": (damaged([(vectors.DIRECTORY / "index.json").read_bytes()]), read_bytes_as(".json", read_vectors)),
}


def asked(reader, given_one):
    """Give one file to a reader: it answers or raises ValueError, in time; the MemoryError of `run`'s limit is not caught."""
    start = time.perf_counter()
    with contextlib.suppress(ValueError):
        reader(given_one)
    took = time.perf_counter() - start
    assert took < SOONEST, f"{took:.0f} s for one file, at most {SOONEST} are promised"


def run(seconds):
    """How many files each reader took; AssertionError, or the reader's own error, with the smallest file that shows it."""
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MOST, resource.RLIM_INFINITY))
    counts = {}
    for name, (files, reader) in TARGETS.items():
        end, counts[name] = time.perf_counter() + seconds / len(TARGETS), 0
        while time.perf_counter() < end:
            _batch(files, reader, counts[name])
            counts[name] += BATCH
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def _batch(files, reader, number):
    @seed(number)
    @settings(max_examples=BATCH, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(files)
    def all_are_read(file):
        asked(reader, file)

    all_are_read()


if __name__ == "__main__":
    print(run(float(sys.argv[1])))
