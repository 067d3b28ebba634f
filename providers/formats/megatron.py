"""Megatron's indexed datasets: tokens in .bin, which is mapped, and the starts of documents in .idx."""

import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from seqflow.arguments import ByteSize
from seqflow.errors import MissingSourceError, ProviderError
from seqflow.files.interface import Files
from seqflow.providers.file_set import FileSet
from seqflow.providers.formats.options import Format, byte_count, file_format
from seqflow.providers.formats.row_files import open_copies, provider_of_row_files
from seqflow.providers.provider import Provider
from seqflow.record.record import Tensor
from seqflow.record.selection import Table

COLUMN = "tokens"
_MAGIC = b"MMIDIDX\x00\x00"
_HEADER = 34
_DTYPES = {1: "u1", 2: "i1", 3: "i2", 4: "i4", 5: "i8", 6: "f8", 7: "f4", 8: "u2"}
"""Element types by their code."""


@dataclass(frozen=True, slots=True)
class MegatronFile:
    """Rows `limits[i]` … `limits[i + 1] - 1` are block i; a row is a document, or a sequence."""

    dtype: str
    documents: bool
    limits: tuple[int, ...]
    nbytes: tuple[int, ...]
    other_files: tuple[str, ...]
    """The file with the tokens, next to the index."""
    store: Files

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(COLUMN, pa.large_list(pa.from_numpy_dtype(self.dtype)))])

    @property
    def sizes(self) -> list[tuple[int, int]]:
        rows = np.diff(self.limits).tolist()
        return list(zip(rows, self.nbytes, strict=True))

    def read(self, path: str, index: int, columns: Sequence[str]) -> Table:
        start, stop = self.limits[index : index + 2]
        data = self.store.local_copy(self.other_files[0])
        found = _read_index(path, os.path.getsize(data), self.documents)
        first, last = found.rows[start], found.rows[stop]
        pointers, lengths = found.pointers[first:last], found.lengths[first:last].astype(np.int64)
        ends = np.append(0, np.cumsum(lengths))
        values = _values(data, np.dtype(self.dtype), pointers, lengths, ends)
        offsets = ends[found.rows[start : stop + 1] - first]
        kind = self.schema.field(COLUMN).type
        array = pa.Array.from_buffers(kind, stop - start, [None, pa.py_buffer(offsets)], children=[values])
        return pa.table({COLUMN: array})


@dataclass(frozen=True, slots=True)
class Index:
    """Contents of an .idx file: the first byte of each sequence and its number of elements."""

    dtype: str
    lengths: Tensor
    pointers: Tensor
    rows: Tensor
    """int64[rows + 1]: the first sequence of each row, then the number of sequences."""


@file_format("megatron")
class Megatron(Format):
    """Options of Megatron's indexed datasets."""

    documents: bool = True
    """False reads sequences as rows, not documents."""
    batch_bytes: ByteSize = "8 MiB"
    """Bytes of tokens that are read, and prepared, together."""

    def open(self, files: FileSet) -> Provider:
        """Return a provider of `.idx` files, each with its `.bin` file: a column `tokens` of uncopied lists.

        A row is a document, all of its sequences in order; with `documents=False` it is a sequence.
        """
        batch_bytes = byte_count(self.batch_bytes)

        def open_one(path: str, copy: str) -> MegatronFile:
            return _open_file(path, copy, self.documents, batch_bytes, files.store)

        return provider_of_row_files("megatron", files, open_copies(files, open_one, "file of kind megatron"))


def _open_file(path: str, copy: str, documents: bool, batch_bytes: int, store: Files) -> MegatronFile:
    data = f"{os.path.splitext(path)[0]}.bin"
    entry = store.entry(data)
    if entry is None:
        raise MissingSourceError(f"there is no {data} next to it, which has the tokens")
    found = _read_index(copy, entry.size, documents)
    item = np.dtype(found.dtype).itemsize
    # bytes before each row: its tokens, and 8 for its length
    ends = np.append(0, np.cumsum(found.lengths, dtype=np.int64))[found.rows] * item + 8 * np.arange(
        len(found.rows)
    )
    limits = [0]
    while limits[-1] < len(ends) - 1:
        reached = int(np.searchsorted(ends, ends[limits[-1]] + batch_bytes, side="right")) - 1
        limits.append(max(reached, limits[-1] + 1))  # a row above batch_bytes is a block by itself
    nbytes = np.diff(ends[limits]).tolist()
    return MegatronFile(found.dtype, documents, tuple(limits), tuple(nbytes), (data,), store)


def _read_index(path: str, data_bytes: int, documents: bool) -> Index:
    """Return the index, mapped; raise ProviderError if it does not fit the size of the tokens."""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        header = file.read(_HEADER)
        if header[:9] != _MAGIC or len(header) < _HEADER:
            raise ProviderError("it does not begin as an index of Megatron does")
        version, code = int.from_bytes(header[9:17], "little"), header[17]
        count, num_documents = (int.from_bytes(header[at : at + 8], "little") for at in (18, 26))
        if version != 1 or code not in _DTYPES:
            raise ProviderError(
                f"it has version {version} and element type {code}, expected version 1 and type 1 to 8"
            )
        expected = _HEADER + 12 * count + 8 * num_documents
        if expected != size:  # multimodal datasets add a mode for each sequence after the documents
            raise ProviderError(
                f"it has {size:,} bytes, but {count:,} sequences in {num_documents:,} documents take {expected:,}"
            )
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    lengths = np.frombuffer(content, "<i4", count, _HEADER)
    pointers = np.frombuffer(content, "<i8", count, _HEADER + 4 * count)
    rows = np.frombuffer(content, "<i8", num_documents, _HEADER + 12 * count)
    item = np.dtype(_DTYPES[code]).itemsize
    if count and (
        lengths.min() < 0
        or pointers.min() < 0
        # subtracted, not added: the sum of a damaged pointer and a length may overflow int64
        or (pointers > data_bytes - lengths.astype(np.int64) * item).any()
    ):
        raise ProviderError(f"its sequences lie outside the {data_bytes:,} bytes of tokens next to it")
    if not documents:
        return Index(_DTYPES[code], lengths, pointers, np.arange(count + 1))
    if not len(rows) or rows[0] != 0 or rows[-1] != count or (np.diff(rows) < 0).any():
        raise ProviderError(
            "its documents are not all of its sequences in order\nread sequences: documents=False"
        )
    return Index(_DTYPES[code], lengths, pointers, rows)


def _values(
    path: str, dtype: np.dtype[np.generic], pointers: Tensor, lengths: Tensor, ends: Tensor
) -> pa.Array:
    """Return the concatenated elements of sequences: a view of the mapped file if they follow each other there."""
    total, kind = int(ends[-1]), pa.from_numpy_dtype(dtype)
    if not total:
        return pa.array([], kind)
    with open(path, "rb") as file:
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    is_filled = lengths > 0  # the pointers of empty sequences may be anything
    first = int(pointers[is_filled][0])
    is_aligned = first % dtype.itemsize == 0
    if is_aligned and np.array_equal(pointers[is_filled], first + ends[:-1][is_filled] * dtype.itemsize):
        buffer = pa.py_buffer(content).slice(first, total * dtype.itemsize)
        return pa.Array.from_buffers(kind, total, [None, buffer])
    values, memory = np.empty(total, dtype), memoryview(content)
    for start, end, pointer in zip(ends[:-1].tolist(), ends[1:].tolist(), pointers.tolist(), strict=True):
        values[start:end] = np.frombuffer(memory, dtype, end - start, pointer) if end > start else 0
    return pa.array(values)
