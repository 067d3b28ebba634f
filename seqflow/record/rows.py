"""Slices and concatenations of records, with all levels below their rows."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from seqflow import kernels
from seqflow.errors import OpIndexError, ProviderError
from seqflow.kernels.arrays import read_only, row_text
from seqflow.record.record import Record, Tensor


def nbytes(record: Record) -> int:
    """Return the number of bytes of all tensors, including views."""
    return sum(tensor.nbytes for tensor in record.tensors.values())


def read_only_record(record: Record) -> Record:
    """Return the record with read-only tensors over the same memory."""
    return replace(record, tensors={name: read_only(tensor) for name, tensor in record.tensors.items()})


def slice_rows(record: Record, start: int, stop: int) -> Record:
    """Return the rows start … stop - 1, with everything below them, as views.

    Limits are those of Python's slices: negative ones count from the end, and ones beyond the end are cut.
    """
    start, stop, _ = slice(start, stop).indices(record.num_rows)
    return split_rows(record, [start, max(start, stop)])[1]


def split_rows(record: Record, stops: Sequence[int]) -> list[Record]:
    """Split a record before each of the increasing rows `stops` into `len(stops) + 1` records, as views."""
    rows = [0, *stops, record.num_rows]
    cuts: dict[str | None, list[int]] = {None: rows}
    parts: list[dict[str, Tensor]] = [{} for _ in range(len(stops) + 1)]
    for name, tensor in record.tensors.items():
        if name in record.shares or record.parents[name] in record.shares:  # any part may have rows of each
            for part in parts:
                part[name] = tensor
            continue
        for part, (start, stop) in zip(parts, pairwise(_cuts(record, name, cuts)), strict=True):
            part[name] = tensor[start:stop]
    return [
        Record(part, record.parents, stop - start, record.schema, record.dictionaries, shares=record.shares)
        for part, (start, stop) in zip(parts, pairwise(rows), strict=True)
    ]


def _cuts(record: Record, name: str, cuts: dict[str | None, list[int]]) -> list[int]:
    """Return the positions of the cuts in a tensor's rows; `cuts` caches them by the lengths that describe these
    rows.

    Not a closure in `split_rows`: a closure that calls itself is a reference cycle and would keep the record alive.
    """
    lengths = record.parents[name]
    if lengths not in cuts:
        assert lengths is not None
        cuts[lengths] = _cuts_below(record.tensors[lengths], _cuts(record, lengths, cuts))
    return cuts[lengths]


def concat_records(records: Sequence[Record]) -> Record:
    """Return the rows of all records, one record after another, in new arrays; a single record is returned itself.

    The records must have the same tensors, of the same dtypes and row shapes, under the same lengths, or
    ProviderError is raised. Dictionary codes are renumbered if the dictionaries differ.
    """
    if not records:
        raise ProviderError("concat_records: there is no record to start from")
    first = records[0]
    if len(records) == 1:
        return first
    for other in records[1:]:
        check_alike(first, other)
    tensors, dictionaries = concat_tensors(
        [record.tensors for record in records], [record.dictionaries for record in records]
    )
    num_rows = sum(record.num_rows for record in records)
    for shared, index in first.shares.items():  # each record has lists of its own
        begins = kernels.lengths_to_offsets(np.array([len(record[shared]) for record in records]))
        tensors[index] = np.concatenate(
            [record[index] + begin for record, begin in zip(records, begins, strict=False)]
        )
    return Record(tensors, first.parents, num_rows, first.schema, dictionaries, shares=first.shares)


def concat_tensors(
    parts: Sequence[Mapping[str, Tensor]], dictionaries: Sequence[Mapping[str, pa.Array]]
) -> tuple[dict[str, Tensor], dict[str, pa.Array]]:
    """Concatenate the tensors of each name, with codes renumbered to one dictionary."""
    tensors, merged = {}, {}
    for name in parts[0]:
        pieces = [part[name] for part in parts]
        if name in dictionaries[0]:
            pieces, merged[name] = one_dictionary(pieces, [each[name] for each in dictionaries])
        tensors[name] = np.concatenate(pieces)
    return tensors, merged


def one_dictionary(
    codes: Sequence[Tensor], dictionaries: Sequence[pa.Array]
) -> tuple[list[Tensor], pa.Array]:
    """Renumber the codes of several arrays to the first dictionary, extended by the new values of the others.

    Codes outside their dictionary (a fill value such as -1) and the dtype of the codes do not change. Raises
    ProviderError when the merged dictionary no longer fits the dtype.
    """
    first = dictionaries[0]
    # the usual case for batches of one file: nothing to renumber
    if all(other is first or other.equals(first) for other in dictionaries[1:]):
        return list(codes), first
    merged = pa.concat_arrays(list(dictionaries)).unique()
    if len(merged) - 1 > np.iinfo(codes[0].dtype).max:
        raise ProviderError(
            f"a dictionary of {len(merged)} values does not fit codes of dtype {codes[0].dtype}"
        )
    return [_renumber(*pair, merged) for pair in zip(codes, dictionaries, strict=True)], merged


def _renumber(codes: Tensor, dictionary: pa.Array, merged: pa.Array) -> Tensor:
    import pyarrow.compute as pc

    if len(dictionary) == 0:
        return codes
    new_codes = pc.index_in(dictionary, merged).to_numpy(zero_copy_only=False).astype(codes.dtype)
    known = (codes >= 0) & (codes < len(dictionary))
    return np.where(known, new_codes[np.where(known, codes, 0)], codes)


def _cuts_below(lengths: Tensor, cuts: Sequence[int]) -> list[int]:
    """Return the positions of the cuts one level below; `cuts` increase from 0."""
    sums = [int(lengths[start:stop].sum(dtype=np.int64)) for start, stop in pairwise(cuts)]
    return [0, *accumulate(sums)]


def row_indices(indices: Any, num_rows: int, caller: str) -> Tensor:
    """Check indices of rows and convert them to int64; raise OpIndexError for invalid ones."""
    rows: Tensor = np.asarray(indices, dtype=np.int64 if len(indices) == 0 else None)
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise OpIndexError(
            f"{caller}: indices must be a 1-D integer array, not {rows.dtype}{list(rows.shape)}"
        )
    if len(rows) and not (rows.min() >= 0 and rows.max() < num_rows):
        at = int(np.argmax((rows < 0) | (rows >= num_rows)))
        raise OpIndexError(f"{caller}: indices[{at}] = {rows[at]} is outside [0, {num_rows})")
    return rows.astype(np.int64, copy=False)


def check_alike(first: Record, other: Record) -> None:
    """Raise ProviderError when two records differ in tensors, dtypes, row shapes or parents."""
    if dict(first.parents) != dict(other.parents):
        raise ProviderError(f"one record has the tensors {', '.join(first)}, another {', '.join(other)}")
    for name, tensor in first.tensors.items():
        found = other.tensors[name]
        # texts of NumPy may have different widths
        texts = found.dtype.kind == tensor.dtype.kind and found.dtype.kind in "SU"
        if (found.dtype != tensor.dtype and not texts) or found.shape[1:] != tensor.shape[1:]:
            raise ProviderError(
                f"{name} is {tensor.dtype}{row_text(tensor)} in one record and "
                f"{found.dtype}{row_text(found)} in another"
            )
