"""The smallest and largest values in fragments of pyarrow's datasets: of row groups, and of partition keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from seqflow.providers.parquet_ranges import stored_range
from seqflow.providers.value_ranges import UNKNOWN, Path, ValueRange, range_of_value
from seqflow.record.selection import leaf_types

Leaf = tuple[Path, pa.DataType]
"""A leaf column of a dataset: its path, and its type."""


def fragment_ranges(fragment: Any, leaves: Sequence[Leaf | None]) -> list[ValueRange]:
    """The ranges of some leaf columns in a fragment; unknown for None, and where its file has another type."""
    keys = _partition_keys(fragment)
    found = [
        range_of_value(keys[leaf[0][0]]) if leaf is not None and leaf[0][0] in keys else UNKNOWN
        for leaf in leaves
    ]
    if not hasattr(fragment, "split_by_row_group") or len(fragment.row_groups) != 1:
        return found
    (group,) = fragment.row_groups
    metadata = fragment.metadata
    places = {path: (at, kind) for at, (path, kind) in enumerate(leaf_types(fragment.physical_schema))}
    row_group = metadata.row_group(group.id)
    for number, leaf in enumerate(leaves):
        if leaf is not None and leaf[0][0] not in keys and leaf[0] in places:
            at, kind = places[leaf[0]]
            if _value_type(kind) == _value_type(leaf[1]):
                statistics, column = row_group.column(at).statistics, metadata.schema.column(at)
                found[number] = _range(statistics, _value_type(kind), column, group.num_rows)
    return found


def _partition_keys(fragment: Any) -> dict[str, Any]:
    """The keys that all rows of a fragment have; fragments of Lance have none, and say so by an error."""
    from pyarrow.dataset import get_partition_keys

    return {} if hasattr(fragment, "fragment_id") else get_partition_keys(fragment.partition_expression)


def _range(statistics: Any, kind: pa.DataType, column: Any, num_rows: int) -> ValueRange:
    if statistics is None:
        return UNKNOWN
    nulls = statistics.null_count if statistics.has_null_count else None
    if not statistics.has_min_max:
        return stored_range(None, None, nulls, kind, column, num_rows)
    return stored_range(statistics.min_raw, statistics.max_raw, nulls, kind, column, num_rows)


def _value_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
