"""Groups of rows that stay together when rows are shuffled: the rows of one key in one block."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NoReturn

import numpy as np
import pyarrow as pa
from pyarrow import types

from seqflow import kernels
from seqflow.errors import OpError, nearest
from seqflow.kernels.arrays import Array
from seqflow.loader.plans.plan import BatchPlan, permutation
from seqflow.record.selection import select_schema


def check_groups(
    by: str, schema: pa.Schema, columns: Sequence[str] | None, plan: BatchPlan
) -> tuple[str, ...]:
    """Return the path of the column `by`; raise OpError unless it is read and has one value in each row, and the plan
    keeps the order of rows.
    """
    if plan.balance is not None:
        _fail(
            f"is {by!r}, and a balance deals the rows of a group to several ranks\n  leave out by, or balance"
        )
    if plan.reorders_rows:
        name = type(plan).__name__
        _fail(
            f"is {by!r}, and {name} puts rows in an order of its own, which parts the rows of a group\n"
            "  Rows, and TokenBudget with strategy='in_order', keep the order of rows"
        )
    found = {
        ".".join(path): path for path in _keys(schema if columns is None else select_schema(schema, columns))
    }
    if by not in found:
        what = "is not a column that is read"
        if by in schema.names and by not in {".".join(path) for path in _keys(schema)}:
            what = "has no single number, text or time in each row"
        _fail(f"is {by!r}, which {what}{nearest(by, list(found))}; there are {', '.join(found) or 'none'}")
    return found[by]


def _fail(message: str) -> NoReturn:
    raise OpError(f"Shuffle: by {message}")


def _keys(fields: Iterable[pa.Field], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the paths of the columns whose values can be keys: those with one value in each row."""
    for field in fields:
        kind = field.type.value_type if types.is_dictionary(field.type) else field.type
        if types.is_struct(kind):
            yield from _keys(kind, (*path, field.name))
        elif not (types.is_nested(kind) or types.is_null(kind)):
            yield (*path, field.name)


def groups_of(table: pa.Table | pa.RecordBatch, path: Sequence[str]) -> Array:
    """int64[rows]: the number of the key of each row, the same for equal ones; null is a key like others."""
    import pyarrow.compute as pc

    column = table.column(path[0])
    for name in path[1:]:
        column = pc.struct_field(column, name)
    if types.is_dictionary(column.type):  # whose values may repeat, and be null
        column = column.cast(column.type.value_type)
    encoded = pc.dictionary_encode(column, null_encoding="encode")  # the chunks have one dictionary
    chunks = encoded.chunks if isinstance(encoded, pa.ChunkedArray) else [encoded]
    return np.concatenate([np.zeros(0, np.int64), *(one.indices.to_numpy() for one in chunks)])


def order_of_groups(blocks: Sequence[Array], key: int) -> Array:
    """int64[rows]: the rows of some blocks, whose groups have these numbers, with the groups in random order.

    The rows of a group follow each other in the order of the block. The order depends on the key, and on which rows
    belong together, not on the numbers.
    """
    if not blocks:
        return np.zeros(0, np.int64)
    first = 0
    numbers = []
    for groups in blocks:
        numbers.append(groups + first)
        first += int(groups.max(initial=-1)) + 1
    begins, codes, _ = kernels.distinct_ids(np.concatenate(numbers))
    places = np.empty_like(begins)
    places[np.argsort(begins)[permutation(len(begins), key)]] = np.arange(len(begins))
    return kernels.group_rows(places[codes], len(begins))[0]
