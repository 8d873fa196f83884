"""diagnose accepts the golden values in every dtype that can hold them, and names mistakes in dumped outputs."""

import json

import numpy as np
import pytest

from posref import vectors
from posref.check import diagnose, load_output
from tests import golden
from tests.every import every

ROTATIONS = [case for case in vectors.cases("rope/*") if case.op == "rotate"]
OTHERS = [case for case in golden.cases() if case.op != "rotate"]


def turned(x, positions, *, layout="half", base=1e4, width=None, sign=1):
    """RoPE by complex numbers, one pair at a time."""
    width = x.shape[-1] if width is None else width
    y = np.array(x, dtype=float)
    for t in range(width // 2):
        i, j = (2 * t, 2 * t + 1) if layout == "interleaved" else (t, t + width // 2)
        z = (x[..., i] + 1j * x[..., j]) * np.exp(sign * 1j * positions * base ** (-2 * t / width))
        y[..., i], y[..., j] = z.real, z.imag
    return y


@every(ROTATIONS, name=lambda case: case.id)
def test_golden_values_pass(case):
    assert diagnose(case, case.expected).ok
    for dtype, model in ((np.float32, "f32"), (np.float16, "f16-f32math")):
        report = diagnose(case, case.expected.astype(dtype))
        assert report.ok is (model in case.models), report


@every(OTHERS, name=lambda case: case.id, parts=8)
def test_other_operations_pass(case):
    assert diagnose(case, case.expected, dtype="f64").ok


@every([*{case.id.split("/")[0] + case.gauge: case for case in OTHERS}.values()], name=lambda case: case.id, parts=8)
def test_the_last_case_of_each_system_is_compared(case):
    compared(case)


@pytest.mark.slow
@every(OTHERS, name=lambda case: case.id, parts=16)
def test_other_operations_are_compared(case):
    compared(case)


def counts(case):
    """Where a wrong entry is a mistake: not where the case ignores it, and not at padding, which has a name."""
    kept = np.ones(case.expected.shape, bool) if case.ignore is None else ~case.ignore
    return kept & (case.tensors["mask"][:, -kept.shape[1] :] != 0) if case.op == "padded" else kept


def compared(case):
    """One entry that is wrong is said to be that one, and has no name."""
    if case.expected.size > 1:
        got = case.expected.astype(float)
        counted = np.argwhere(counts(case))
        place = tuple(counted[len(counted) // 2])
        got[place] += 7 + abs(got[place]) / 8  # one more could be another mistake: numbers of axes are small
        report = diagnose(case, got, dtype="f64")
        assert not report.ok
        detail = report.checks[-1].detail
        if case.gauge == "row_constant":
            assert f"({', '.join(map(str, place))})" in detail
            assert "a constant may be added to a whole row" in detail
        else:
            assert f"at ({', '.join(map(str, place))}) is {got[place]:.9g}, expected {case.expected[place]:.9g}" in detail
            assert f"1 of {case.expected.size} differ" in detail
        assert report.diagnosis == []
        assert all(f"({flag})" in report.advice[-1] for flag in case.flags)
        json.dumps(report.as_dict(), allow_nan=False)


@every([case for case in OTHERS if case.cond is None], name=lambda case: case.id, parts=8)
def test_exact_cases_take_integers(case):
    if case.expected.dtype.kind == "i":
        for dtype in (np.int32, np.int64):
            assert diagnose(case, case.expected.astype(dtype)).ok
        assert not diagnose(case, case.expected + 1).ok
    for dtype, model in ((np.float32, "f32"), (np.float64, "f64")):
        report = diagnose(case, case.expected.astype(dtype))
        assert report.ok if model in case.models else "cannot hold this case" in str(report), report


@every([case for case in OTHERS if case.gauge == "row_constant"], name=lambda case: case.id)
def test_rows_may_differ_by_a_constant(case):
    shift = np.arange(case.expected[..., :1].size).reshape(case.expected[..., :1].shape) / 8
    assert diagnose(case, case.expected + shift).ok
    assert not diagnose(case, case.expected + shift * np.arange(case.expected.shape[-1])).ok


def frequencies(dim, base=1e4, factor=1.0, divisor=None):
    return np.array([factor * base ** (-2 * t / (divisor or dim)) for t in range(dim // 2)])


@pytest.mark.parametrize(
    ("name", "got"),
    [
        ("linear_scaling 8 and wrong_base 500000", frequencies(64, 5e5, 0.125)),
        ("exponent_to_end", frequencies(64, divisor=62)),
        ("frequencies_inverted", 1 / frequencies(64)),
    ],
)
def test_frequencies_are_named(name, got):
    report = diagnose("rope/any/d64-b1e4/inv_freq", got.astype(np.float32))
    assert name in [finding.name for finding in report.diagnosis], report
    assert report.diagnosis[0].sentence.startswith("your output equals rope.inv_freq with ")


def test_frequencies_in_bfloat16_are_named():
    case = vectors.case("rope/any/d64-b1e4/inv_freq")
    bits = case.expected.astype(np.float32).view(np.uint32).astype(np.int64) + 0x8000
    got = (bits >> 16 << 16).astype(np.uint32).view(np.float32)
    assert [finding.name for finding in diagnose(case, got).diagnosis] == ["bf16_inv_freq"]
    assert diagnose(case, got, dtype="bf16").ok


def test_sinusoidal_frequencies_are_named():
    for divisor, right, wrong in (("dim", 64, 62), ("dim - 2", 62, 64)):
        cases = [c for c in vectors.cases("sinusoidal/*") if c.op == "frequencies" and c.params["divisor"] == divisor]
        case = next(c for c in cases if c.params["dim"] > 4)
        dim = case.params["dim"]
        assert diagnose(case, frequencies(dim, divisor=dim + right - 64)).ok
        names = [f.name for f in diagnose(case, frequencies(dim, divisor=dim + wrong - 64)).diagnosis]
        assert "divisor" in names


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("cos_sin_swapped", lambda cos, sin: [sin, cos]),
        ("interleaved_tables", lambda cos, sin: [np.stack([cos, sin], axis=-1).reshape(*cos.shape[:-1], -1)]),
    ],
)
def test_tables_are_named(name, change):
    case = vectors.case("rope/any/d64-b1e4/tables-sparse")
    angle = case.tensors["positions"][:, None] * frequencies(64)
    report = diagnose(case, np.concatenate(change(np.cos(angle), np.sin(angle)), axis=-1))
    assert [finding.name for finding in report.diagnosis] == [name], report
    assert "rope.tables" in report.diagnosis[0].sentence


@pytest.mark.parametrize(
    ("name", "factor", "shift", "base"),
    [("position_plus_one", 1, 1, 1e4), ("linear_scaling", 0.25, 0, 1e4), ("wrong_base", 1, 0, 5e5)],
)
def test_positions_and_base_of_tables_are_named(name, factor, shift, base):
    case = vectors.case("rope/any/d8-b1e4/tables-tiny")
    angle = (factor * case.tensors["positions"][:, None] + shift) * frequencies(8, base)
    report = diagnose(case, np.concatenate([np.cos(angle), np.sin(angle)], axis=-1).astype(np.float32))
    assert name in [finding.name for finding in report.diagnosis], report


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("position_minus_one", {"shift": -1}),
        ("rotary_dim 32", {"width": 32}),
        ("other_layout and wrong_base 500000", {"layout": "interleaved", "base": 5e5}),
    ],
)
def test_named_from_a_dump(name, change):
    case = vectors.case("rope/half/d64-b1e4/sparse1m")
    choices = {"shift": 0, **change}
    positions = case.tensors["positions"] + choices.pop("shift")
    report = diagnose(case, turned(case.tensors["x"], positions, **choices).astype(np.float16))
    assert [finding.name for finding in report.diagnosis] == [name], report


def test_sequence_before_heads():
    case = vectors.case("rope/half/d8-b1e4/sequence-first")
    got = turned(case.tensors["x"], case.tensors["positions"], layout="interleaved")
    assert "other_layout" in [finding.name for finding in diagnose(case, got).diagnosis]


def test_what_a_case_cannot_tell_is_listed():
    case = vectors.case("rope/half/d8-b1e4/origin")
    report = diagnose(case, case.expected)
    assert report.ok
    assert any("other_layout" in text for text in report.ambiguous)


def test_shapes_and_dtypes():
    case = vectors.case("rope/half/d10-b1e4/shuffled")
    report = diagnose(case.id, np.swapaxes(case.expected, 1, 2))
    assert "(batch, n, heads, dim), not (batch, heads, n, dim)" in report.checks[1].detail
    assert "dtype int64" in diagnose(case, case.expected.astype(int)).checks[-1].detail
    assert diagnose(case, case.expected.astype(np.float32), dtype="bf16").ok
    beyond = vectors.case("rope/half/d8-b1e4/beyond-f32")
    assert "meant for f64" in diagnose(beyond, beyond.expected.astype(np.float32)).checks[-1].detail
    with pytest.raises(ValueError, match="there is no case"):
        diagnose("rope/half/nothing", case.expected)
    for model in ("fp8", "f32-given"):
        with pytest.raises(ValueError, match=f"model is '{model}'"):
            diagnose(case, case.expected, model=model)


def test_a_demanded_model():
    case = vectors.case("rope/any/d64-b1e4/inv_freq")
    for model in ("f32", "f32-iterative"):
        assert diagnose(case, case.expected.astype(np.float32), model=model).ok
    assert not diagnose(case, case.expected.astype(np.float32), model="f64").ok


def test_what_a_case_catches_is_said_where_nothing_else_is_known():
    case = vectors.case("alibi/signed/h3/square")
    report = diagnose(case, case.expected**3)
    assert not report.ok
    assert report.advice == [
        "This case is meant to catch: "
        + "; ".join(f"{vectors.load('alibi').flags[flag]['bug']} ({flag})" for flag in case.flags)
        + ". posref/vectors/alibi.json describes them under flags."
    ]
    named = diagnose(case, -case.expected)
    assert named.diagnosis[0].name == "sign", named
    assert "query - key" in named.diagnosis[0].sentence
    assert not any("meant to catch" in text for text in named.advice)


def test_nan_is_reported():
    case = vectors.case("rope/any/d8-b1e4/inv_freq")
    report = diagnose(case, case.expected * np.nan)
    assert (report.ok, report.diagnosis) == (False, [])
    json.dumps(report.as_dict(), allow_nan=False)
    report = diagnose(case, np.where(np.arange(4) == 2, np.nan, case.expected))
    said = "1 of 4 values are NaN or infinite, the first at (2); all in column 2; all others are right"
    assert report.checks[-1].detail == said
    assert report.diagnosis == []
    report = diagnose(case, np.where(np.arange(4) == 2, np.nan, case.expected[::-1]))
    assert report.checks[-1].detail == said.replace("all others are right", "3 of the others are wrong")


# files -----------------------------------------------------------------------------------------------------------------


def bfloat16_bits(values):
    """Exact for the numbers used here: they have 8 significant bits."""
    return (values.astype(np.float32).view(np.uint32) >> 16).astype("<u2")


VALUES = np.arange(-6, 6).reshape(3, 4) / 8


@pytest.mark.parametrize(
    ("short", "long"),
    [("f64", "float64"), ("f32", "float32"), ("f16", "float16"), ("i32", "int32"), ("i64", "int64")],
)
def test_raw_files(tmp_path, short, long):
    path, values = tmp_path / "y.bin", VALUES * (8 if "i" in short else 1)
    values.astype(np.dtype(long).newbyteorder("<")).tofile(path)
    got, dtype = load_output(str(path), (3, 4), short)
    assert dtype == long
    assert np.array_equal(got, values)


def test_bfloat16_files(tmp_path):
    raw, saved, opaque, wide = (tmp_path / name for name in ("y.bin", "y.npy", "opaque.npy", "wide.npy"))
    bfloat16_bits(VALUES).tofile(raw)
    np.save(saved, bfloat16_bits(VALUES))
    np.save(opaque, bfloat16_bits(VALUES).view("V2"))  # as numpy saves the bfloat16 of ml_dtypes
    np.save(wide, VALUES.astype(np.float32))
    for path in (raw, saved, opaque, wide):
        got, dtype = load_output(str(path), (3, 4), "bf16")
        assert dtype == "bfloat16"
        assert np.array_equal(got, VALUES)


def test_numpy_files(tmp_path):
    one, archive, flat = tmp_path / "y.npy", tmp_path / "y.npz", tmp_path / "flat.npy"
    np.save(one, VALUES.astype(np.float32))
    np.savez(archive, y=VALUES)
    np.save(flat, VALUES.reshape(-1))
    assert load_output(str(one), (3, 4))[1] == "float32"
    for path in (one, archive, flat):
        assert np.array_equal(load_output(str(path), (3, 4))[0], VALUES)


def safetensors(tensors):
    """A file of {name: (dtype, array)} by its definition: 8 bytes of length, a header in JSON, the numbers."""
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, (dtype, array) in tensors.items():
        span = [len(data), len(data) + array.nbytes]
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": span}
        data += array.tobytes()
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def test_safetensors_files(tmp_path):
    path = tmp_path / "y.safetensors"
    dtypes = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8"}
    stored = {"BF16": bfloat16_bits(VALUES)} | {name: VALUES.astype(dtype) for name, dtype in dtypes.items()}
    for (name, array), dtype in zip(stored.items(), ("bfloat16", "float64", "float32", "float16", "int64"), strict=True):
        path.write_bytes(safetensors({"y": (name, array)}))
        got, said = load_output(str(path), (3, 4))
        assert said == dtype
        assert np.array_equal(got, VALUES.astype(int) if name == "I64" else VALUES)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (safetensors({"q": ("F64", VALUES), "k": ("F64", VALUES)}), r"it holds 2 tensors \(q, k\), expected one"),
        (safetensors({}), "it holds 0 tensors"),
        (safetensors({"y": ("F8_E4M3", VALUES)}), "its dtype is F8_E4M3"),
        (safetensors({"y": ("F64", VALUES)})[:-3], "is it truncated"),
        (b"\xff" * 8 + b"{}", "its header should have 18446744073709551615 bytes and has 2"),
        (b"\x02", "is it truncated"),
    ],
)
def test_bad_safetensors_files(tmp_path, content, words):
    path = tmp_path / "y.safetensors"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=words):
        load_output(str(path), (3, 4))


@pytest.mark.parametrize("name", ["y.pt", "y.pth", "y.pkl", "object.npy"])
def test_no_pickle_is_read(tmp_path, name):
    with open(tmp_path / name, "wb") as file:
        np.save(file, np.array([None]), allow_pickle=True)
    with pytest.raises(ValueError, match=r"posref reads no pickle, .*; save it with numpy.save or safetensors"):
        load_output(str(tmp_path / name), (1,))


def test_a_file_that_says_its_dtype_is_not_told_another(tmp_path):
    path, big_endian = tmp_path / "y.npy", tmp_path / "big_endian.npy"
    np.save(path, VALUES.astype(np.float32) / 3)
    np.save(big_endian, VALUES.astype(">f4"))
    for path_, dtype in ((path, "f32"), (path, None), (big_endian, None)):
        assert load_output(str(path_), (3, 4), dtype)[1] == "float32"
    for dtype in ("f16", "f64", "i32"):
        with pytest.raises(ValueError, match=f"says that it holds float32; leave dtype={dtype} out"):
            load_output(str(path), (3, 4), dtype)
    with pytest.raises(ValueError, match="holds float32, expected bf16: 16-bit integers, or floats that bf16 holds exactly"):
        load_output(str(path), (3, 4), "bf16")


@pytest.mark.parametrize(
    "wrong",
    [lambda y: y.astype(int), lambda y: y[None], lambda y: np.where(np.arange(8) == 3, np.nan, y)],
    ids=["dtype", "shape", "nan"],
)
def test_what_a_case_catches_is_not_said_where_no_values_were_compared(wrong):
    case = vectors.case("rope/half/d8-b1e4/tiny")
    report = diagnose(case, wrong(case.expected))
    assert not report.ok
    assert report.advice == []


def test_a_mistake_of_another_shape_is_named():
    case = vectors.case("xlnet/bi/q4-k6/distances")
    report = diagnose(case, case.expected[1:], dtype="f64")
    assert [finding.name for finding in report.diagnosis] == ["one_row_less"]
    assert "expected (10,)" in str(report)


def test_bad_files(tmp_path):
    raw, saved, archive, other = (tmp_path / name for name in ("y.bin", "y.npy", "two.npz", "t.npy"))
    raw.write_bytes(VALUES.astype("<f4").tobytes()[:-3])
    np.save(saved, VALUES)
    saved.write_bytes(saved.read_bytes()[:-3])
    np.savez(archive, a=VALUES, b=VALUES)
    np.save(other, VALUES[:2])
    for path, dtype, words in (
        (tmp_path, "f32", "is a directory; name the dumped file in it"),
        (raw, "f32", r"truncated: 45 bytes, float32 of shape \(3, 4\) needs 48"),
        (raw, "f16", "longer than expected: 45 bytes, float16"),
        (raw, None, "say what it holds with dtype="),
        (raw, "int8", "dtype is 'int8'"),
        (saved, None, "cannot be read"),
        (archive, None, "it holds 2 arrays"),
        (other, None, r"holds shape \(2, 4\), expected \(3, 4\)"),
    ):
        with pytest.raises(ValueError, match=words):
            load_output(str(path), (3, 4), dtype)
    with pytest.raises(FileNotFoundError):
        load_output(str(tmp_path / "none.bin"), (3, 4), "f32")


@pytest.mark.parametrize("anything", [7.0, np.nan])
def test_elements_without_a_meaning_may_be_anything(anything):
    """As for the comparator of the vectors, and for a check of the op."""
    ignoring = [case for case in golden.cases() if case.ignore is not None]
    assert {case.id.split("/")[0] for case in ignoring} >= {"cope", "transformer_xl", "xlnet"}
    for case in ignoring:
        assert diagnose(case, np.where(case.ignore, anything, case.expected)).ok, case.id
        assert vectors.error(case, np.where(case.ignore, anything, case.expected), "f64") <= 1, case.id


@pytest.mark.parametrize("output", ["abc", object(), [[1], [2, 3]], {"a": 1}, ["a", "b"], [None, "x"]])
def test_what_is_no_tensor_of_numbers_is_refused_in_our_own_words(output):
    with pytest.raises(TypeError, match=f"the output is a {type(output).__name__}, expected an array or tensor of numbers"):
        diagnose("rope/half/d4-b1e4/one", output)


def test_noise_is_no_padding():
    """The masks of golden cases are whole numbers."""
    case = vectors.case("position_ids/padded/filler-1/ids")
    report = diagnose(case, case.expected + np.arange(case.expected.size).reshape(case.expected.shape) ** 2 % 7)
    assert not report.diagnosis, str(report)


def test_nan_in_the_place_of_padding_is_not_harmless():
    case = vectors.case("position_ids/padded/filler-0/last-2")
    report = diagnose(case, np.where(case.expected == 0, np.nan, case.expected))
    assert not report.ok
    assert not report.diagnosis, str(report)
