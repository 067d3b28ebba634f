"""Files of NumPy: .npy mapped into memory, .npz with a column for each of its arrays."""

import ast
import mmap
import os
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import IO, Any

import numpy as np
import pyarrow as pa

from seqflow.arguments import ByteSize
from seqflow.errors import ProviderError
from seqflow.providers.file_set import FileSet
from seqflow.providers.formats.options import Format, byte_count, file_format
from seqflow.providers.formats.row_files import open_row_files, row_ranges
from seqflow.providers.memory.tables import table_of
from seqflow.providers.provider import Provider
from seqflow.record.record import Tensor
from seqflow.record.selection import Picked, Table

COLUMN = "array"
"""Name of the column of a .npy file."""
_MAGIC = b"\x93NUMPY"
_LONGEST = 10_000
"""Largest header in bytes, NumPy's own limit: a header is parsed as Python."""
_INFLATED = 1100
"""Largest number of bytes from one compressed byte, about."""


@dataclass(frozen=True, slots=True)
class StoredArray:
    """Place, dtype and shape of an array in a file."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    is_fortran: bool
    start: int
    """Position of its first byte in the file, or in its compressed member."""
    member: str | None = None
    """Name of the member if it is compressed."""

    def open(self, path: str) -> Tensor:
        """Return the array, mapped; a compressed member is read whole."""
        order = "F" if self.is_fortran else "C"
        if not all(self.shape):
            return np.empty(self.shape, self.dtype)
        if self.member is not None:
            with zipfile.ZipFile(path) as archive:
                data: Any = archive.read(self.member)
        else:
            with open(path, "rb") as file:
                data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return np.ndarray(self.shape, self.dtype, data, self.start, order=order)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class ArrayFile:
    """Arrays of equally many rows; each is a column, and a structured one is a column for each field."""

    arrays: Mapping[str, StoredArray]
    ranges: tuple[range, ...]
    schema: pa.Schema
    row_bytes: int

    @property
    def sizes(self) -> list[tuple[int, int]]:
        return [(len(rows), len(rows) * self.row_bytes) for rows in self.ranges]

    def read(self, path: str, index: int, columns: Sequence[str]) -> Table:
        rows = self.ranges[index]
        read = {
            name: array.open(path)[rows.start : rows.stop]
            for name, array in self.arrays.items()
            if not {*columns}.isdisjoint(array.dtype.names or (name,))
        }
        return _table({name: values for name, values in _fields(read).items() if name in columns})


@file_format("numpy")
class Numpy(Format):
    """Options of files of NumPy, .npy and .npz."""

    batch_bytes: ByteSize = "8 MiB"
    """Bytes that are read, and prepared, together; a .npz file with compressed arrays is one block."""

    def open(self, files: FileSet) -> Provider:
        """Return a provider of .npy and .npz files: the first axis is rows, further axes are fixed-size lists.

        A .npy file has one column, `array`; one of a structured dtype has its fields. A .npz file has a column for
        each array, or each of those that `columns` names.
        """
        open_file = partial(
            _open_file,
            batch_bytes=byte_count(self.batch_bytes),
            wanted=_wanted(files.picked),
            keys=frozenset(() if files.keys is None else files.keys.names),
        )
        return open_row_files("numpy", files, open_file)


def _wanted(picked: Picked) -> set[str] | None:
    """Return the file's names of the columns that are read; None for all."""
    columns, rename = picked
    if columns is None or isinstance(columns, str) or not (rename is None or isinstance(rename, Mapping)):
        return None
    old = {new: name for name, new in (rename or {}).items()}
    return {old.get(one, old.get(one.partition(".")[0], one.partition(".")[0])) for one in columns}


def _open_file(path: str, *, batch_bytes: int, wanted: set[str] | None, keys: frozenset[str]) -> ArrayFile:
    with open(path, "rb") as file:
        is_archive = file.read(len(_MAGIC)) != _MAGIC
        if not is_archive:
            file.seek(0)
            arrays = {COLUMN: _header(file, os.path.getsize(path), COLUMN)}
    if is_archive:
        arrays = _members(path, wanted, keys)
    rows = _num_rows(arrays)
    row_bytes = sum(array.dtype.itemsize * int(np.prod(array.shape[1:])) for array in arrays.values())
    ranges = row_ranges(rows, row_bytes, batch_bytes)
    # a compressed member can only be read from its start, so each block would decompress it again
    if any(array.member is not None for array in arrays.values()):
        ranges = (range(rows),)
    empty = {name: np.empty((0, *array.shape[1:]), array.dtype) for name, array in arrays.items()}
    return ArrayFile(arrays, ranges, _table(_fields(empty)).schema, row_bytes)


def _fields(arrays: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the columns of arrays; the columns of a structured array are its fields."""
    found: dict[str, Tensor] = {}
    for name, array in arrays.items():
        fields = (
            {name: array} if array.dtype.names is None else {one: array[one] for one in array.dtype.names}
        )
        for field, values in fields.items():
            if field in found:
                raise ProviderError(f"two columns are called {field!r}\nchoose arrays with columns=")
            found[field] = values
    return found


def _members(path: str, wanted: set[str] | None, keys: frozenset[str]) -> dict[str, StoredArray]:
    """Return the arrays of an archive by name; uncompressed ones with their place in the file.

    All are needed for their number of rows if only `keys` are wanted, which the names of folders have.
    """
    found: dict[str, StoredArray] = {}
    size = os.path.getsize(path)
    with zipfile.ZipFile(path) as archive, open(path, "rb") as file:
        names = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        chosen = (
            names
            if wanted is None or wanted <= keys or not wanted - keys <= set(names)
            else {name: names[name] for name in names if name in wanted}
        )
        for name, info in chosen.items():
            if info.compress_type == zipfile.ZIP_STORED:
                # the local header repeats the name, and its extra field may differ in length from the directory's
                file.seek(info.header_offset)
                head = file.read(30)
                if head[:4] != b"PK\3\4":
                    raise ProviderError(f"the array {name!r} is not where the archive says")
                start = (
                    info.header_offset
                    + 30
                    + int.from_bytes(head[26:28], "little")
                    + int.from_bytes(head[28:30], "little")
                )
                file.seek(start)
                found[name] = _header(file, min(size, start + info.file_size), name)
                continue
            # read before anything is allocated: a small archive may claim to hold terabytes
            if info.file_size > info.compress_size * _INFLATED + (1 << 20):
                raise ProviderError(
                    f"the array {name!r} says that it has {info.file_size:,} bytes, more than it can have"
                )
            with archive.open(info) as member:
                stored = _header(member, info.file_size, name)
            found[name] = StoredArray(
                stored.dtype, stored.shape, stored.is_fortran, stored.start, info.filename
            )
    if not found:
        raise ProviderError("it has no arrays")
    return found


def _header(file: IO[bytes], end: int, name: str) -> StoredArray:
    """Return the array whose header begins here; all of it must lie before `end`."""
    begin = file.read(10)
    if begin[:6] != _MAGIC or len(begin) < 10:
        raise ProviderError(f"{name!r} is not an array in NumPy's format")
    version, length = begin[6], int.from_bytes(begin[8:10], "little")
    if version > 1:
        length = int.from_bytes(begin[8:10] + file.read(2), "little")
    if version not in (1, 2, 3) or length > _LONGEST:
        raise ProviderError(
            f"{name!r} has a header of version {version} and {length:,} bytes, expected up to 3, and {_LONGEST:,}"
        )
    text = file.read(length)
    if len(text) < length:
        raise ProviderError(f"{name!r} ends in its header")
    header = ast.literal_eval(text.decode("utf-8" if version == 3 else "latin1").strip())
    dtype = np.lib.format.descr_to_dtype(header["descr"])
    shape, is_fortran = tuple(header["shape"]), bool(header["fortran_order"])
    _check(name, dtype, shape)
    found = StoredArray(dtype, shape, is_fortran, file.tell())
    # Python integers: the product of damaged axes may be beyond int64
    size = dtype.itemsize
    for axis in shape:
        size *= axis
    if found.start + size > end:
        raise ProviderError(
            f"{name!r} needs {size:,} bytes, but {max(0, end - found.start):,} are there: the file is truncated"
        )
    return found


def _check(name: str, dtype: np.dtype[Any], shape: tuple[Any, ...]) -> None:
    """Raise ProviderError for arrays that cannot be columns."""
    if dtype.hasobject:
        raise ProviderError(
            f"{name!r} holds pickled Python objects, which are not read: they may run code\nsave numbers or texts"
        )
    if not shape:
        raise ProviderError(f"{name!r} has no axis, so it has no rows\nchoose other arrays with columns=")
    if not all(isinstance(axis, int) and 0 <= axis < 1 << 48 for axis in shape):
        raise ProviderError(f"{name!r} has the shape {shape}, which no array has")
    if dtype.names is not None and len(shape) > 1:
        raise ProviderError(f"{name!r} is a structured array of {len(shape)} axes, expected one")
    for field, kind in [(name, dtype)] if dtype.names is None else [(one, dtype[one]) for one in dtype.names]:
        base = kind.base
        is_text = base.kind in "SU" and len(shape) == 1 and not kind.shape
        is_number = (
            base.kind in "biufMm" and base.itemsize <= 8 and base not in (np.dtype("M8"), np.dtype("m8"))
        )
        if not is_text and not is_number:
            raise ProviderError(
                f"{field!r} is an array of {kind}, expected numbers, times, or texts along one axis"
            )


def _num_rows(arrays: Mapping[str, StoredArray]) -> int:
    rows = {name: array.shape[0] for name, array in arrays.items()}
    if len(set(rows.values())) > 1:
        shown = ", ".join(f"{name} {count}" for name, count in rows.items())
        raise ProviderError(f"its arrays don't have equally many rows: {shown}\nchoose some with columns=")
    return next(iter(rows.values()))


def _table(arrays: Mapping[str, Tensor]) -> pa.Table:
    return table_of({name: np.ascontiguousarray(array) for name, array in arrays.items()})
