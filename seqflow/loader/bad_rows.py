"""Rows that cannot be used: raise an error, skip and count them, or write them to a quarantine file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from seqflow import providers
from seqflow.errors import OpError, ProviderError
from seqflow.kernels.arrays import Array
from seqflow.output.files import KIND_OF_SUFFIX, FileWriter, Format

if TYPE_CHECKING:
    import pyarrow as pa

    from seqflow.loader.provenance import RowNumbers
    from seqflow.providers import Block
    from seqflow.record import BadRow

Policy = Literal["raise", "skip", "quarantine"]


@dataclass(frozen=True, slots=True)
class BadRows:
    """The policy for rows that cannot be used.

    "raise" stops with an error that names file, block, row, column and reason; "skip" leaves the row out and
    counts it; "quarantine" also writes it, with those five, to the file `path`, in Parquet or Arrow format as its
    suffix says.
    """

    policy: Policy = "raise"
    path: str | Path | None = None

    def __post_init__(self) -> None:
        if self.policy not in ("raise", "skip", "quarantine"):
            raise OpError(f"BadRows: policy is {self.policy!r}, expected 'raise', 'skip' or 'quarantine'")
        if (self.policy == "quarantine") != (self.path is not None):
            raise OpError(
                f"BadRows: policy {self.policy!r} {'needs a' if self.path is None else 'takes no'} path"
            )
        if self.path is not None and Path(self.path).suffix.lower() not in KIND_OF_SUFFIX:
            raise OpError(
                f"BadRows: path is {str(self.path)!r}, expected a name that ends in .parquet or .arrow"
            )


class BadRowHandler:
    """Applies a policy during one run, and counts the bad rows."""

    def __init__(self, policy: BadRows) -> None:
        self.policy = policy
        self.count = 0
        self._file = None if policy.path is None else Quarantine(Path(policy.path).expanduser())

    @property
    def keeps_going(self) -> bool:
        return self.policy.policy != "raise"

    def remove(
        self, batch: pa.RecordBatch | pa.Table, bad: list[BadRow], numbers: RowNumbers, block: Block
    ) -> Array:
        """A mask of the rows to keep; ProviderError for the first bad one where the policy is to raise.

        `numbers` has the numbers in the block of the rows of `batch`.
        """
        if not self.keeps_going:
            first = bad[0]
            raise ProviderError(
                f"{block.origin}, block {block.index}, row {numbers[first.row]}, column {first.column!r}: "
                f"{first.reason}"
            )
        rows = np.unique([row.row for row in bad])
        self.count += len(rows)
        if self._file is not None:
            self._file.write(batch, bad, numbers, block)
        keep = np.ones(batch.num_rows, bool)
        keep[rows] = False
        return keep

    def close(self, *, keep: bool) -> None:
        """End the run: the quarantine file gets its final name, or is removed where the run failed."""
        if self._file is not None:
            self._file.close(keep=keep)


REASON_FIELDS = ("file", "block", "row", "column", "reason")


class Quarantine:
    """A Parquet or Arrow file of bad rows: their own columns, and a struct column `bad` that says why.

    The fields of `bad` are `file`, `block`, `row`, `column` and `reason`. The column is called `bad_` where the rows
    have a column `bad` themselves. The file replaces that of an earlier run, and no other: ProviderError where
    something else has its name.
    """

    def __init__(self, path: Path) -> None:
        if path.exists() and not _is_quarantine(path):
            raise ProviderError(
                f"quarantine: {str(path)!r} exists and is no quarantine file of an earlier run\n"
                "  choose a new name"
            )
        self._path = path
        self._writer = FileWriter(path, Format(KIND_OF_SUFFIX[path.suffix.lower()]))
        self._num_groups = 0

    def write(
        self, batch: pa.RecordBatch | pa.Table, bad: list[BadRow], numbers: RowNumbers, block: Block
    ) -> None:
        import pyarrow as pa

        taken = batch.take(pa.array([row.row for row in bad], pa.int64()))
        reasons = pa.StructArray.from_arrays(
            [
                pa.array([block.origin] * len(bad), pa.string()),
                pa.array([block.index] * len(bad), pa.int64()),
                pa.array([numbers[row.row] for row in bad], pa.int64()),
                pa.array([row.column for row in bad], pa.string()),
                pa.array([row.reason for row in bad], pa.string()),
            ],
            names=REASON_FIELDS,
        )
        name = "bad"
        while name in taken.schema.names:
            name += "_"
        columns = dict(zip(taken.schema.names, taken.columns, strict=True))
        if not self._num_groups:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        self._writer.write(pa.table({name: reasons, **columns}), self._num_groups)
        self._num_groups += 1

    def close(self, *, keep: bool) -> None:
        if not keep:
            self._writer.discard()
        elif self._num_groups:
            self._writer.close()
            self._writer.temporary.replace(self._path)
        else:
            self._path.unlink(missing_ok=True)  # of an earlier run, which had bad rows


def _is_quarantine(path: Path) -> bool:
    import pyarrow.types as types

    try:
        schema = providers.open(path).schema
    except ProviderError:
        return False
    return any(
        field.name.rstrip("_") == "bad" and tuple(part.name for part in field.type) == REASON_FIELDS
        for field in schema
        if types.is_struct(field.type)
    )
