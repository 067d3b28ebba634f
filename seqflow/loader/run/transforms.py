"""Applying `prepare` and `net` to a record, and checks of what users' functions return."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from seqflow import executor, kernels
from seqflow.errors import LodError, OpTypeError
from seqflow.kernels import KernelError
from seqflow.loader.schedule.recipe import Transform
from seqflow.net import Net
from seqflow.record import Record
from seqflow.record.record import parents_by_name
from seqflow.record.rows import read_only_record


def apply(transform: Net | Transform, record: Record, reseed: executor.Reseed | None = None) -> Record:
    """The result of a net or a function on a record; LodError or OpTypeError where a function returns no record.

    What a function returns may not be written to: the function may keep it, and return it again.
    `reseed` gives the random ops of a net another seed, made from their own.
    """
    if isinstance(transform, Net):
        return executor.run(transform, record, reseed=reseed)
    result = transform(record)
    name = getattr(transform, "__name__", repr(transform))
    if not isinstance(result, Mapping) or not all(isinstance(key, str) for key, _ in _items(result)):
        raise OpTypeError(f"{name} returned {type(result).__name__}, expected a mapping of names to arrays")
    for key, value in _items(result):
        if not isinstance(value, np.ndarray):
            kind, of_torch = type(value), hasattr(value, "numpy")
            advice = ".numpy() makes one of a torch tensor" if of_torch else "numpy.asarray makes one"
            raise OpTypeError(
                f"{name} returned {key!r} as {kind.__module__}.{kind.__qualname__}, expected a NumPy array"
                f"\n  {advice}"
            )
    made = result if isinstance(result, Record) else record_of(result)
    _check(made, name)
    return read_only_record(made)


def record_of(tensors: Mapping[str, np.ndarray[Any, Any]]) -> Record:
    """A record of tensors by name: `x.lengths` describes `x.values`, all other tensors have a row for each row."""
    parents = parents_by_name(tensors)
    rows = (len(array) for name, array in tensors.items() if parents[name] is None and array.ndim)
    return Record(dict(tensors), parents, next(rows, 0))


def one_row_space(record: Record) -> Record:
    """The record; LodError unless all tensors without a parent have the same number of rows."""
    rows = {name: record[name].shape[:1] for name, parent in record.parents.items() if parent is None}
    if set(rows.values()) - {(record.num_rows,)}:
        found = ", ".join(f"{name} has {count[0] if count else 'no'}" for name, count in rows.items())
        missing = [f"{name[:-7]}.lengths" for name in rows if name.endswith(".values")]
        raise LodError(
            f"prepare: {found} rows, expected the same number everywhere\n"
            f"  return the lengths that describe each tensor{' (' * bool(missing)}{', '.join(missing)}"
            f"{')' * bool(missing)}, or leave it out of return"
        )
    return record


def _items(result: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    return list((result.tensors if isinstance(result, Record) else result).items())


def _check(record: Record, name: str) -> None:
    """Raise LodError unless all lengths of a record are counts that describe the rows of their tensors."""
    for tensor, parent in record.parents.items():
        if tensor not in record.tensors or (parent is not None and parent not in record.tensors):
            raise LodError(f"{name} returned a record with a parent for {tensor}, but without one of the two")
    if missing := record.tensors.keys() - record.parents.keys():
        raise LodError(f"{name} returned a record without a parent, or None, for {min(missing)}")
    totals = {
        parent: _total(record, parent, name) for parent in record.parents.values() if parent is not None
    }
    for tensor, parent in record.parents.items():
        if parent is not None and record[tensor].shape[:1] != (totals[parent],):
            raise LodError(
                f"{name} returned {tensor}{list(record[tensor].shape)}, but the sum of {parent} is {totals[parent]}"
            )
    for parent in totals:
        _check_ends(record, parent, name)


def _total(record: Record, lengths: str, name: str) -> int:
    found = record[lengths]
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise LodError(
            f"{name} returned {lengths} as {found.dtype}{list(found.shape)}, expected lengths: 1-D integers"
        )
    try:
        return int(kernels.check_lengths(found))
    except KernelError as error:
        raise LodError(f"{name} returned {lengths} that are no lengths: {error}") from None


def _check_ends(record: Record, lengths: str | None, name: str) -> None:
    """Raise LodError where lengths describe themselves, directly or in a circle."""
    above = set()
    while lengths is not None:
        if lengths in above:
            raise LodError(f"{name} returned a record in which {lengths} are above themselves")
        above.add(lengths)
        lengths = record.parents[lengths]
