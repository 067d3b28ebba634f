"""Files of NumPy: which arrays are which columns, what is mapped, and what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import seqflow as sf
from seqflow.errors import ProviderError


@pytest.mark.parametrize("array", [
    np.arange(5), np.arange(10, dtype=">i4").reshape(5, 2), np.asfortranarray(np.arange(30.0).reshape(5, 2, 3)),
    np.array([True, False]), np.arange(4, dtype=np.float16), np.zeros((0, 3)), np.zeros((2, 0, 3)),
    np.array(["2024-01-01", "1970-01-02"], "M8[us]"), np.arange(3, dtype="m8[s]"),
])  # fmt: skip
def test_an_array_is_a_column_whose_further_axes_stay(tmp_path: Path, array: Any) -> None:
    np.save(tmp_path / "x.npy", array)
    provider = sf.open(tmp_path / "x.npy", format=sf.Numpy(batch_bytes=16))
    assert len(provider) == len(array)
    found = provider["array"]
    assert isinstance(found, np.ndarray)
    assert (found.shape, found.dtype) == (array.shape, array.dtype.newbyteorder("="))
    np.testing.assert_array_equal(found, array)


def test_texts_are_texts(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", u=np.array(["é\0😀", "", "abc"]), s=np.array([b"a\0b", b"", b"abc"]))
    provider = sf.open(tmp_path / "x.npz")
    table = provider.read(next(provider.blocks()))
    assert table.to_pylist() == [{"u": "é\0😀", "s": b"a\0b"}, {"u": "", "s": b""}, {"u": "abc", "s": b"abc"}]


@pytest.mark.parametrize("name", ["x.npy", "x.npz"])
def test_numbers_are_mapped_not_copied(tmp_path: Path, name: str) -> None:
    array = np.arange(1 << 20)
    np.save(tmp_path / name, array) if name == "x.npy" else np.savez(tmp_path / name, array=array)
    before = pa.total_allocated_bytes()
    provider = sf.open(tmp_path / name)
    blocks = [provider.read(block) for block in provider.blocks()]
    assert pa.total_allocated_bytes() - before < 1 << 20
    assert sum(block.num_rows for block in blocks) == len(array)


def test_chosen_arrays_of_an_archive_need_not_agree_with_the_others(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "x.npz",
        x=np.arange(3),
        y=np.arange(4),
        scale=np.array(2.0),
        config=np.array({"a": 1}, object),
    )
    assert sf.open(tmp_path / "x.npz", columns=["x"])["x"].tolist() == [0, 1, 2]  # type: ignore[union-attr]
    assert sf.open(tmp_path / "x.npz", columns=["n"], rename={"y": "n"})["n"].tolist() == [0, 1, 2, 3]  # type: ignore[union-attr]
    with pytest.raises(ProviderError, match="equally many rows: x 3, y 4"):
        sf.open(tmp_path / "x.npz", columns=["x", "y"])
    with pytest.raises(ProviderError, match="'scale' has no axis"):
        sf.open(tmp_path / "x.npz")


@pytest.mark.parametrize(("array", "message"), [
    (np.array([{}, 1], object), "holds pickled Python objects"),
    (np.array(5), "has no axis, so it has no rows"),
    (np.zeros(3, complex), "is an array of complex128, expected numbers"),
    (np.zeros((2, 2), "U3"), "texts along one axis"),
    (np.zeros(2, [("a", "i4"), ("b", [("c", "i4")])]), "'b' is an array of"),
    (np.zeros((2, 2), [("a", "i4")]), "structured array of 2 axes"),
    (np.zeros(2, "V5"), "expected numbers"),
])  # fmt: skip
def test_arrays_that_are_no_columns_are_refused(tmp_path: Path, array: Any, message: str) -> None:
    np.save(tmp_path / "x.npy", array)
    with pytest.raises(ProviderError, match=message):
        sf.open(tmp_path / "x.npy")


def header(text: str, version: int = 1) -> bytes:
    return (
        b"\x93NUMPY"
        + bytes([version, 0])
        + len(text).to_bytes(2 if version == 1 else 4, "little")
        + text.encode()
    )


@pytest.mark.parametrize(("content", "message"), [
    (header("{'descr': '<i8', 'fortran_order': False, 'shape': (1000000000000,)}"), "the file is truncated"),
    (header("{'descr': '<i8', 'fortran_order': False, 'shape': (281474976710657, 0)}"), "which no array has"),
    (header("{'descr': '<i8', 'fortran_order': False, 'shape': (-1,)}"), "which no array has"),
    (header("{'descr': '<i8', 'shape': (1,)}"), "'fortran_order'"),
    (header("__import__('os').abort()"), "x.npy"),
    (header("(" * 5000), "x.npy"),
    (header(" " * 20000, 2), "header of version 2 and 20,000 bytes"),
    (header("{}", 9), "header of version 9"),
    (b"\x93NUMPY\1\0\xff\0", "ends in its header"),
])  # fmt: skip
def test_headers_that_lie_are_errors(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "x.npy").write_bytes(content + b"\0" * 64 if "ends" not in message else content)
    with pytest.raises(ProviderError, match=message):
        sf.open(tmp_path / "x.npy")
