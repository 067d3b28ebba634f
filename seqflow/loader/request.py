"""`sf.from_rows`: rows of a request, as Python values, become a batch as a loader makes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from seqflow.arguments import checked
from seqflow.errors import OpError, ProviderError, UnknownColumnError, nearest
from seqflow.loader.loader import Loader
from seqflow.loader.order.recipe import Recipe
from seqflow.loader.plans.row_plans import Buckets, Rows, TokenBudget
from seqflow.loader.plans.window_rows import WindowRows
from seqflow.loader.run.windows import apply, one_row_space, unfulfilled
from seqflow.providers.dictionaries import has_dictionaries, without_dictionaries
from seqflow.providers.memory.python_values import array_of
from seqflow.record import BadRow, Record, convert
from seqflow.record.selection import select_schema

_ADVICE = "a request has the types of the loader's source"


@checked(late=True)
def from_rows(rows: Sequence[Mapping[str, Any]], *, like: Loader) -> Record:
    """Convert rows, dictionaries of Python values, to the batch that a loader would make of them.

    The rows have the types of the loader's source, also the codes of its dictionaries, and go through its `fill`,
    `valid`, `prepare`, `require`, `pad` and `net`. A key that is missing is null. All rows make one batch, in this
    order: `where`, `shuffle`, and sizes of batches do not apply, and random ops have their own seeds. Rows for
    `Packed`, or a plan of your own, must fit into one batch.

    Raise UnknownColumnError for a key that is no column of the source; ProviderError, which names row and key, for a
    value that its type or dictionary does not hold, a null that `fill` does not replace, or a row that `require`
    refuses; OpError when the plan refuses the rows; and the errors of the nets.
    """
    recipe = like.recipe
    if not rows:
        raise OpError("from_rows: there are no rows\n  like.empty_batch() is a batch without rows")
    record, bad = convert(_table(rows, recipe), fill=recipe.fill, valid=recipe.valid)
    _check(bad, "pass the key, or replace nulls with fill= of the loader")
    if recipe.prepare is not None:
        record = one_row_space(apply(recipe.prepare, record))
    _check(unfulfilled(recipe.require, record), "the loader would leave it out")
    batch = _batch(record, recipe)
    return batch if recipe.net is None else apply(recipe.net, batch)


def _table(rows: Sequence[Mapping[str, Any]], recipe: Recipe) -> pa.Table:
    source = recipe.source
    known = source.schema.names
    schema = source.schema if recipe.columns is None else select_schema(source.schema, recipe.columns)
    for number, row in enumerate(rows):
        if not row.keys() <= {*known}:
            name = next(name for name in row if name not in known)
            raise UnknownColumnError(
                f"from_rows: row {number} has the key {name!r}{nearest(name, known)}; the loader reads "
                f"{', '.join(schema.names)}"
            )
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
    plan, rows = recipe.batch, WindowRows((record,), None, recipe.pad)
    lengths = recipe.planned_lengths(record)
    if isinstance(plan, Rows | TokenBudget | Buckets):  # which only decide how many rows are a batch
        plan, lengths = Rows(max(1, record.num_rows)), None
    batches = plan.of_window(rows, lengths)
    if len(batches) != 1 or batches.bad or batches.skipped:
        raise OpError(
            f"from_rows: {record.num_rows} rows make {len(batches)} batches of {type(plan).__name__}, expected one\n"
            "  pass fewer rows, or shorter ones"
        )
    return batches.make(0)
