"""Totals of steps as columns of the output: each row has those of the step that its batch belongs to."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from seqflow.errors import JobError
from seqflow.expression import Expression
from seqflow.loader import Loader, Mix
from seqflow.loader.epochs import EpochBatches
from seqflow.loader.run.making import PREFIX, LoadedBatch
from seqflow.loader.run.pipeline import empty_rows
from seqflow.record import Record

_MOST = np.iinfo(np.int64).max


def total_columns(loader: EpochBatches) -> dict[str, np.dtype[Any]]:
    """Return name and dtype of the column of each total: int64, or float64 if its expression is a float.

    Raise the errors of `Loader` when an expression does not fit the prepared rows.
    """
    totals = loader.pipeline.totals
    if totals is None:
        return {}
    first = loader.loaders[0] if isinstance(loader, Mix) else loader
    assert isinstance(first, Loader)
    rows = empty_rows(first.recipe)
    totals.check(rows)
    found = {}
    for name, text in totals.texts.items():
        expression = Expression(text)
        made = np.asarray(expression(**{one: rows[one] for one in expression.inputs}))
        found[PREFIX + name] = np.dtype(np.float64 if made.dtype.kind == "f" else np.int64)
    return found


def empty_batch(loader: EpochBatches) -> Record | None:
    """Return a batch without rows, with the columns that are written; None if a net needs rows."""
    batch = loader.pipeline.empty_batch()
    if batch is None:
        return None
    return _with_columns(batch, {name: np.empty(0, dtype) for name, dtype in total_columns(loader).items()})


def with_totals(batches: Iterable[Record]) -> Iterator[Record]:
    """Yield the batches, each with a column for each total of its step, the same for all rows.

    Raise JobError when a total is beyond int64, or the batch has a column of that name.
    """
    for batch in batches:
        yield (
            batch
            if not (isinstance(batch, LoadedBatch) and batch.totals)
            else _with_columns(batch, _columns(batch))
        )
        del batch  # its memory is the output's now


def _columns(batch: LoadedBatch) -> dict[str, np.ndarray[Any, Any]]:
    for name, total in batch.totals.items():
        if isinstance(total, int) and total > _MOST:
            raise JobError(
                f"totals: {name} of step {batch.step} is {total}, expected at most {_MOST}, an int64\n"
                "  multiply by 1.0 to write float64"
            )
    return {PREFIX + name: np.full(batch.num_rows, total) for name, total in batch.totals.items()}


def _with_columns(batch: Record, columns: Mapping[str, np.ndarray[Any, Any]]) -> Record:
    if taken := next((name for name in columns if name in batch.tensors), None):
        raise JobError(f"totals: the batches have a column {taken!r} already\n  give the total another name")
    tensors, parents = {**batch.tensors, **columns}, {**batch.parents, **dict.fromkeys(columns)}
    return Record(
        tensors, parents, batch.num_rows, batch.schema, batch.dictionaries, batch.number, shares=batch.shares
    )
