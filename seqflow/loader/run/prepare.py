"""Applying `prepare`, conditions and `net` to rows: what they return, and which rows fail."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from typing import Any, TypeVar

import numpy as np

from seqflow import executor, kernels
from seqflow.errors import (
    LodError,
    NetError,
    OpError,
    OpMemoryError,
    OpResultError,
    OpTypeError,
    SeqflowError,
    ShapeError,
)
from seqflow.kernels import KernelError
from seqflow.kernels.arrays import Array
from seqflow.loader.order.recipe import Transform
from seqflow.net import Net
from seqflow.record import BadRow, Record
from seqflow.record.record import parents_by_name
from seqflow.record.rows import read_only_record

T = TypeVar("T")

ROW_ERRORS = (LodError, OpError, ShapeError)
"""Errors that the data of a row can cause."""
NET_ERRORS: tuple[type[Exception], ...] = (NetError, OpTypeError, OpMemoryError, OpResultError)
"""Errors of the net itself, or of the machine, whatever the rows."""


def blames_rows(error: Exception) -> bool:
    """Whether the data of a row may have caused the error."""
    return isinstance(error, ROW_ERRORS) and not isinstance(error, NET_ERRORS)


def by_halves(
    run: Callable[[int, int], T],
    start: int,
    stop: int,
    is_caught: Callable[[Exception], bool] = lambda error: True,
    failed: Exception | None = None,
) -> Iterator[tuple[slice, T | Exception]]:
    """The results of `run(start, stop)` on rows; where they fail together, on each half of them, and so on.

    A row that fails alone has its error for a result. Errors that are not caught are raised. `failed` is the error of
    all rows together, where it is known.
    """
    found: T | Exception
    try:
        found = failed or run(start, stop)
    except Exception as error:
        if start == stop or not is_caught(error):
            raise
        found = error
    if not isinstance(found, Exception) or stop - start == 1:
        yield slice(start, stop), found
        return
    middle = (start + stop) // 2
    yield from by_halves(run, start, middle, is_caught)
    yield from by_halves(run, middle, stop, is_caught)


def first_failing(run: Callable[[int, int], object], count: int, error: Exception) -> int | None:
    """The first of `count` rows, failing together, that fails alone; None where none does, or no rows fail, too."""
    if not count:
        return None
    try:
        run(0, 0)
    except Exception:  # the net fails whatever the rows
        return None
    found = by_halves(run, 0, count, failed=error)
    return next((rows.start for rows, result in found if isinstance(result, Exception)), None)


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
    try:
        TopologicalSorter({of: [parent] for of, parent in record.parents.items()}).prepare()
    except CycleError as error:
        raise LodError(f"{name} returned a record in which {error.args[1][0]} are above themselves") from None


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


_NAME = re.compile(r"[^\W\d][\w.]*")


@lru_cache(maxsize=64)
def _condition(text: str) -> Net:
    """The net that computes a condition, as its only output."""
    return Net(f"return {text}" if _NAME.fullmatch(text) else f"required = {text}\nreturn required")


def unfulfilled(require: Sequence[str], record: Record) -> list[BadRow]:
    """The rows for which one of some conditions is false: the first that is.

    OpError for a condition that is not one truth value a row.
    """
    left = np.ones(record.num_rows, np.bool_)
    found = []
    for text in require:
        fulfilled = _fulfilled(text, record)
        column = ", ".join(dict.fromkeys(name.removesuffix(".lengths") for name in _condition(text).inputs))
        found += [
            BadRow(row, column, f"require: {text} is false")
            for row in np.flatnonzero(left & ~fulfilled).tolist()
        ]
        left &= fulfilled
    return sorted(found)


def _fulfilled(text: str, record: Record) -> Array:
    """bool[num_rows]: for which rows a condition is true."""
    net = _condition(text)
    try:
        found = executor.run(net, record)[net.outputs()[0]]
    except SeqflowError as error:
        error.add_note(f"in require = {text!r}")
        raise
    if found.dtype != np.bool_ or found.shape != (record.num_rows,):
        raise OpError(
            f"require: {text} is {found.dtype}{list(found.shape)}, expected one truth value for each of "
            f"{record.num_rows} rows\n  lengths_any and lengths_all make one of those of elements"
        )
    return found


def texts_of_required(require: str | Sequence[str] | None) -> tuple[str, ...]:
    """The texts of conditions, each of which is one; OpTypeError for what is no text, NetError for what is no net."""
    if require is None:
        return ()
    texts = [require] if isinstance(require, str) else require
    if not isinstance(texts, Sequence) or not texts or not all(isinstance(text, str) for text in texts):
        raise OpTypeError(
            f"Loader: require is {require!r}, expected a condition, such as "
            "'lengths_any(labels.values != -100, labels.lengths)', or a list of conditions"
        )
    for text in texts:
        _condition(text)
    return tuple(texts)
