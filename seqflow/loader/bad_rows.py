"""Rows that cannot be used: raise, skip and count, or set aside with the reason."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from seqflow.errors import OpError, ProviderError

if TYPE_CHECKING:
    import pyarrow as pa

    from seqflow.loader.provenance import RowNumbers
    from seqflow.providers import Block
    from seqflow.record import BadRow

Array = np.ndarray[Any, Any]
Policy = Literal["raise", "skip", "quarantine"]


@dataclass(frozen=True, slots=True)
class BadRows:
    """What to do with a row that cannot be used.

    "raise" stops with an error that names file, block, row, column and reason; "skip" leaves the row out and
    counts it; "quarantine" also writes it, with those five, to the Arrow file `path`.
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


class BadRowHandler:
    """Applies one policy during one run, and counts."""

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

        `numbers` says which rows of the block the rows of `batch` are.
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
        """End the run: the quarantined rows get their final name, or are dropped with the run."""
        if self._file is not None:
            self._file.close(keep=keep)


class Quarantine:
    """An Arrow file of bad rows: `file`, `block`, `row`, `column`, `reason` and the row's own columns.

    It replaces the file of an earlier run, and no other: ProviderError where something else has its name.
    """

    def __init__(self, path: Path) -> None:
        if path.exists() and not _is_quarantine(path):
            raise ProviderError(
                f"quarantine: {str(path)!r} exists and is no quarantine file of an earlier run\n"
                "  choose a new name"
            )
        self._path = path
        self._temporary = path.with_name(f".{path.name}.tmp")
        self._writer: Any = None

    def write(
        self, batch: pa.RecordBatch | pa.Table, bad: list[BadRow], numbers: RowNumbers, block: Block
    ) -> None:
        import pyarrow as pa

        taken = batch.take(pa.array([row.row for row in bad], pa.int64()))
        reasons = {
            "file": [block.origin] * len(bad),
            "block": pa.array([block.index] * len(bad), pa.int64()),
            "row": pa.array([numbers[row.row] for row in bad], pa.int64()),
            "column": [row.column for row in bad],
            "reason": [row.reason for row in bad],
        }
        columns = {f"bad.{name}": pa.array(values) for name, values in reasons.items()}
        table = pa.table({**columns, **dict(zip(taken.schema.names, taken.columns, strict=True))})
        if self._writer is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._writer = pa.ipc.new_file(self._temporary, table.schema)
        self._writer.write_table(table)

    def close(self, *, keep: bool) -> None:
        if self._writer is None:
            if keep:
                self._path.unlink(missing_ok=True)  # of an earlier run, which had bad rows
            return
        self._writer.close()
        if keep:
            self._temporary.replace(self._path)
        else:
            self._temporary.unlink(missing_ok=True)


def _is_quarantine(path: Path) -> bool:
    import pyarrow as pa

    try:
        with pa.memory_map(str(path)) as file:
            return "bad.reason" in pa.ipc.open_file(file).schema.names
    except (OSError, pa.ArrowException):
        return False
