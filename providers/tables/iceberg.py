"""Scans of Iceberg tables: a block is a data file, without its deleted rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar

import pyarrow as pa

from seqflow.providers.filter.value_ranges import UNKNOWN, Path, ValueRange
from seqflow.providers.memory.rereadable import open_rereadable
from seqflow.providers.other_packages import foreign_errors
from seqflow.providers.provider import Block, Provider
from seqflow.providers.source import Source, Wanted
from seqflow.record.selection import ALL, Picked, Selection, Table, selection


@dataclass(frozen=True, slots=True)
class IcebergSource(Source):
    """Files of a scan, in the order of their paths, since plans have no fixed order."""

    scan: Any
    fields: Any
    """Columns of the scan as a schema of pyiceberg: they are read by id, since names may change."""
    tasks: tuple[Any, ...]
    selection: Selection
    paths: ClassVar[tuple[str, ...]] = ()

    @property
    def num_rows(self) -> int | None:
        rows = [_num_rows(task) for task in self.tasks]
        return None if None in rows else sum(rows)  # type: ignore[arg-type]

    def content(self, schema: pa.Schema) -> list[Any]:
        """Return the filter and the files with their deletes, which states compare. Files are never changed.

        If another column had the name of a column before, its id is compared, too.
        """
        files = [[task.file.file_path, *_deletes(task)] for task in self.tasks]
        chosen = self._chosen(self.selection.to(schema).present)
        return [str(self.scan.row_filter), *files, *_reused_names(self.scan.table_metadata, chosen)]

    def blocks(self, schema: pa.Schema) -> Iterator[Block]:
        for index, task in enumerate(self.tasks):
            yield Block(task.file.file_path, index, _num_rows(task), task.file.file_size_in_bytes)

    def ranged_blocks(
        self, schema: pa.Schema, paths: Sequence[Path]
    ) -> Iterator[tuple[Block, Sequence[ValueRange]]]:
        leaves = self.selection.leaves_of_source
        fields = [_field(self.fields, *leaves[path]) if path in leaves else None for path in paths]
        for block, task in zip(self.blocks(schema), self.tasks, strict=True):
            yield block, [UNKNOWN if field is None else _range(task.file, field) for field in fields]

    def stream(self, wanted: Wanted) -> Iterator[Table]:
        block, schema = wanted.block, wanted.schema
        chosen = self.selection.to(schema)
        with foreign_errors(f"{block.origin} can't be read"):
            table = _read(self.scan, self._chosen(chosen.present), self.tasks[block.index])
            table = table.cast(chosen.of_source)
        yield chosen.apply(table, chosen.present)

    def _chosen(self, positions: Sequence[int]) -> Any:
        """Return the columns at some positions, as a schema of pyiceberg."""
        return type(self.fields)(*(self.fields.columns[position] for position in positions))


@dataclass(frozen=True, slots=True)
class IcebergScans:
    """Streams of a scan with a limit, which applies to all files together."""

    scan: Any

    def schema(self) -> pa.Schema:
        return _schema(self.scan.projection())

    def stream(self, columns: Sequence[str]) -> Any:
        return self.scan.select(*columns).to_arrow_batch_reader()


def open_iceberg(table: Any, picked: Picked = ALL) -> Provider:
    """Return a provider of a `pyiceberg` table in its current snapshot, or of a scan; the files are planned here."""
    origin = f"an Iceberg {type(table).__name__}"
    with foreign_errors(f"{origin} can't be opened"):
        scan = table.scan() if hasattr(table, "scan") else table
        if scan.limit is not None:
            return open_rereadable(IcebergScans(scan), origin, picked)
        # before the snapshot is fixed: a scan of a snapshot has the schema of the table at that time
        fields = scan.projection()
        if scan.snapshot_id is None and (snapshot := scan.snapshot()) is not None:
            scan = scan.update(snapshot_id=snapshot.snapshot_id)
        tasks = sorted(scan.plan_files(), key=lambda task: str(task.file.file_path))
        chosen = selection(_schema(fields), *picked)
    return Provider("iceberg", origin, chosen.schema, IcebergSource(scan, fields, tuple(tasks), chosen))


def _schema(fields: Any) -> pa.Schema:
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    return schema_to_pyarrow(fields, include_field_ids=False)


def _read(scan: Any, fields: Any, task: Any) -> pa.Table:
    from pyiceberg.io.pyarrow import ArrowScan

    reader = ArrowScan(scan.table_metadata, scan.io, fields, scan.row_filter, scan.case_sensitive)
    return reader.to_table([task])


def _reused_names(metadata: Any, fields: Any) -> list[list[Any]]:
    """Return the names of fields that another field had before, each with the id of the field that has it now."""
    from pyiceberg.schema import index_by_name

    first: dict[str, int] = {}
    for schema in sorted(metadata.schemas, key=lambda one: one.schema_id):
        first = index_by_name(schema) | first
    return [[name, number] for name, number in index_by_name(fields).items() if first[name] != number]


def _num_rows(task: Any) -> int | None:
    """Return the number of rows of a file; None if some may be deleted or filtered out."""
    is_whole = not task.delete_files and type(task.residual).__name__ == "AlwaysTrue"
    return int(task.file.record_count) if is_whole else None


def _deletes(task: Any) -> list[str]:
    return sorted(str(one.file_path) for one in task.delete_files)


def _field(fields: Any, path: Path, kind: pa.DataType) -> Any:
    """Return the field of a table at a path; None if the bounds in its files are not values of the Arrow type."""
    if pa.types.is_timestamp(kind) and kind.unit != "us":
        return None
    try:
        return fields.find_field(".".join(path))
    except ValueError:
        return None


def _range(file: Any, field: Any) -> ValueRange:
    """Return the range of a column in a data file, from its manifest; bounds of texts may be truncated."""
    nulls = (file.null_value_counts or {}).get(field.field_id)
    low, high = (_bound(bounds, field) for bounds in (file.lower_bounds, file.upper_bounds))
    return ValueRange(low, high, nulls != 0, nulls is None or nulls < file.record_count)


def _bound(bounds: Any, field: Any) -> Any:
    """Return a bound as in ValueRange: integers for dates and times, bytes for texts; None if there is none."""
    from pyiceberg.conversions import from_bytes

    stored = (bounds or {}).get(field.field_id)
    try:
        value: Any = None if stored is None else from_bytes(field.field_type, stored)
    except Exception:  # the bound has a type that the column had before
        return None
    if isinstance(value, str):
        return value.encode()
    return value if isinstance(value, bool | int | float | bytes | Decimal) else None
