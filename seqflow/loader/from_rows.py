"""`sf.from_rows`: rows of a request, as Python values, become a batch as a loader makes it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from seqflow.arguments import checked
from seqflow.errors import OpError, OpTypeError, ProviderError, UnknownColumnError, nearest
from seqflow.executor import flattened
from seqflow.kernels.arrays import Array
from seqflow.loader.loader import Loader
from seqflow.loader.order.conditions import unfulfilled
from seqflow.loader.order.recipe import Recipe
from seqflow.loader.plans.row_plans import Buckets, Rows, TokenBudget
from seqflow.loader.plans.window_rows import WindowRows
from seqflow.loader.run.windows import apply, one_row_space
from seqflow.providers import Provider
from seqflow.providers.dictionaries import has_dictionaries, without_dictionaries
from seqflow.record import BadRow, Record, convert
from seqflow.record.python_values import array_of
from seqflow.signature.bind_arrays import as_array

_ADVICE = "a request has the types of the loader's source"


@checked(late=True)
def from_rows(rows: Sequence[Mapping[str, Any]], *, like: Loader) -> Record:
    """Convert rows, dictionaries of Python values, to the batch that a loader would make of them.

    The rows have the types of the loader's source, also the codes of its dictionaries, and go through its
    `fill`, `valid`, `prepare`, `keep`, `require`, `pad` and `net`. A key that is missing is null. All rows
    make one batch, in this order: `where`, `shuffle`, and sizes of batches do not apply, and random ops have
    their own seeds. Rows for `Packed`, or a plan of your own, must fit into one batch.

    Args:
        rows: Dictionaries of Python values, one a row.
        like: Loader whose batch is made.

    Raise UnknownColumnError for a key that is not a column of the source; ProviderError, which names row and
    key, for a value that its type or dictionary does not hold, a null that `fill` does not replace, or a row
    that `keep` or `require` leaves out; OpError when the plan refuses the rows; and the errors of the nets.
    """
    recipe, empty = like.recipe, like.pipeline.no_rows
    schema = empty.schema
    assert schema is not None
    if len(rows) == 0:  # an empty array has no truth value
        raise OpError("from_rows: there are no rows\n  like.empty_batch() is a batch without rows")
    _check_keys(rows, recipe.source.schema.names, schema.names)
    record = _plain(rows, schema, empty)
    if record is None:
        record, bad = convert(
            _table(rows, recipe.source, schema),
            fill=recipe.fill,
            valid=recipe.valid,
            read=recipe.tensors_read,
        )
        _check(bad, "pass the key, or replace nulls with fill= of the loader")
    if recipe.prepare is not None:
        record = one_row_space(apply(recipe.prepare, record))
    _check(unfulfilled((*recipe.keep, *recipe.require), record), "the loader would leave it out")
    batch = _batch(record, recipe)
    return batch if recipe.net is None else apply(recipe.net, batch)


def _check_keys(rows: Sequence[Mapping[str, Any]], known: Sequence[str], read: Sequence[str]) -> None:
    """Raise UnknownColumnError for a key that the source does not have."""
    columns = {*known}
    for number, row in enumerate(rows):
        if not row.keys() <= columns:
            name = next(name for name in row if name not in columns)
            raise UnknownColumnError(
                f"from_rows: row {number} has the key {name!r}{nearest(name, known)}; the loader reads "
                f"{', '.join(read)}"
            )


def _plain(rows: Sequence[Mapping[str, Any]], schema: pa.Schema, empty: Record) -> Record | None:
    """Return rows of which all values have the types of the source; None if some have not, or have nulls.

    Through Arrow, which decides about all others, a few rows take five times as long.
    """
    found: dict[str, Array] = {}
    for field in schema:
        values = [row.get(field.name) for row in rows]
        parts = [name for name in empty if name.startswith(f"{field.name}.")]
        is_text, is_plain = _kind(field.type)
        if not is_plain:
            return None
        try:
            made = (
                flattened(field.name, values, parts)
                if parts
                else [(field.name, as_array(field.name, values))]
            )
            found |= made
        except OpTypeError:
            return None
        leaf = [*found][-1]
        if (found[leaf].dtype == np.uint8) != is_text:
            return None
    for name, like in empty.items():
        array = found.get(name)
        if array is None or array.ndim != 1 or array.dtype.kind != like.dtype.kind:
            return None
        found[name] = array.astype(like.dtype)
        if not np.array_equal(found[name], array):
            return None
    return Record({name: found[name] for name in empty}, empty.parents, len(rows), schema)


def _kind(kind: pa.DataType) -> tuple[bool, bool]:
    """Return whether the values of a type, also in lists, are text, and whether they are text or plain numbers."""
    while types.is_list(kind) or types.is_large_list(kind):
        kind = kind.value_type
    is_text = bool(types.is_string(kind) or types.is_large_string(kind))
    is_number = types.is_signed_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    return is_text, is_text or bool(is_number)


def _table(rows: Sequence[Mapping[str, Any]], source: Provider, schema: pa.Schema) -> pa.Table:
    columns = [_column([row.get(field.name) for row in rows], field) for field in schema]
    table = pa.Table.from_arrays(columns, schema.names)
    coded = [field.name for field in schema if has_dictionaries(field.type)]
    if not coded:
        return table
    source.find_dictionaries(coded)
    for name, value, count in source.dictionaries.unknown(table):
        raise ProviderError(
            f"from_rows, key {name!r}: {value!r} is none of the {count:,} values of the source's dictionary, "
            "so it has no code"
        )
    return source.dictionaries.apply(table)


def _column(values: Sequence[Any], field: pa.Field) -> pa.Array:
    kind = without_dictionaries(field.type)
    array = array_of(values, kind, f"from_rows, key {field.name!r}", 0, _ADVICE)
    return array if kind is field.type else array.cast(field.type)


def _check(bad: Sequence[BadRow], advice: str) -> None:
    """Raise ProviderError for the first bad row."""
    if bad:
        first = bad[0]
        raise ProviderError(f"from_rows: row {first.row}, key {first.column!r}: {first.reason}\n{advice}")


def _batch(record: Record, recipe: Recipe) -> Record:
    """Return all rows as one batch of the loader's plan."""
    plan = recipe.batch
    if isinstance(plan, Rows | TokenBudget | Buckets):  # which only decide how many rows are a batch
        if not recipe.pad:
            return record
        plan = Rows(record.num_rows or 1)
    rows = WindowRows((record,), None, recipe.pad)
    batches = plan.of_window(rows, None if isinstance(plan, Rows) else recipe.planned_lengths(record))
    omitted = batches.skipped + len(batches.bad)
    if len(batches) != 1 or omitted:
        raise OpError(
            f"from_rows: {type(plan).__name__} makes {len(batches)} batches of {record.num_rows} rows and leaves out "
            f"{omitted}, expected one batch of all\n  pass fewer rows, or rows whose lengths the plan takes"
        )
    return batches.make(0)
