"""Windows to plan batches of, and what these hold as plain lists."""

import numpy as np

from seqflow.loader.plans.plan import permutation
from seqflow.loader.plans.window_rows import WindowRows
from seqflow.record import Record


def window_of(blocks, key=None, **columns):
    """Rows with a list column x whose elements are consecutive numbers, permuted where there is a key.

    `blocks` has the lengths of each record. Further columns have one value a row; a column y has the elements of x
    times ten.
    """
    records, first, row = [], 0, 0
    for lengths in blocks:
        lengths = np.array(lengths, np.int64)
        values = np.arange(first, first + lengths.sum())
        part = {name: np.array(column)[row : row + len(lengths)] for name, column in columns.items()}
        tensors = {
            "x.lengths": lengths, "x.values": values, "y.lengths": lengths.copy(), "y.values": values * 10, **part
        }  # fmt: skip
        parents = {"x.values": "x.lengths", "y.values": "y.lengths"}
        parents = {name: parents.get(name) for name in tensors}
        records.append(Record(tensors, parents, len(lengths)))
        first, row = first + int(lengths.sum()), row + len(lengths)
    return WindowRows(records, None if key is None else permutation(row, key))


def without(rows, *names):
    """The window without some columns."""
    gone = {f"{name}{end}" for name in names for end in ("", ".lengths", ".values")}
    records = [
        Record(
            {name: tensor for name, tensor in record.items() if name not in gone},
            {name: parent for name, parent in record.parents.items() if name not in gone},
            record.num_rows,
        )
        for record in rows.records
    ]
    return WindowRows(records, rows.order)


def lists(record, column="x"):
    """A list column of a record."""
    ends = np.cumsum(record[f"{column}.lengths"]).tolist()
    values = record[f"{column}.values"].tolist()
    return [values[start:stop] for start, stop in zip([0, *ends], ends, strict=False)]


def made(planned):
    """All batches, whose sizes are as planned and whose rows come from where the plan says."""
    batches = [planned.make(number) for number in range(len(planned))]
    assert [planned.size(number).rows for number in range(len(planned))] == [one.num_rows for one in batches]
    empty = planned.empty()
    assert empty.num_rows == 0
    for batch in batches:
        assert {name: tensor.dtype for name, tensor in empty.items()} == {
            name: tensor.dtype for name, tensor in batch.items()
        }
    return batches
