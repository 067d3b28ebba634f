"""ArrowFunction: a net as a function of Arrow tables, for engines that call a function on their batches."""

from collections.abc import Callable, Iterator
from functools import partial
from inspect import Parameter, Signature
from typing import Any, NamedTuple

import pyarrow as pa

from seqflow import executor
from seqflow.arguments import checked
from seqflow.errors import NetError, ProviderError, UnknownColumnError, nearest
from seqflow.net import Net
from seqflow.printable import printable_line
from seqflow.record import Fill, Valid, as_table, from_arrow, to_arrow
from seqflow.record.one_schema import of_schema

_MOST_PLANS = 16
"""Number of schemas for which a function caches its plan."""


class TablePlan(NamedTuple):
    """Plan of a function for tables of one schema."""

    columns: list[str]
    """Columns that it reads, in the order of the table."""
    schema: pa.Schema
    """Schema of its results."""
    keeps_rows: bool
    """Whether row i of each result is made of row i."""


class ArrowFunction:
    """A net as a function of Arrow tables; `arrow_function` makes it.

    Its pickle has the net's text, its constants (constants from files by their paths) and the options, so functions
    of equal nets have equal pickles. Threads may share one.
    """

    def __init__(self, net: Net | str, *, fill: Fill = None, valid: Valid = False) -> None:
        self.net = Net(net) if isinstance(net, str) else net
        self.fill = fill
        self.valid = valid
        self._plans: dict[pa.Schema, TablePlan] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(ArrowFunction, fill=self.fill, valid=self.valid), (self.net,)

    def __repr__(self) -> str:
        text = " … ".join(self.net.text.strip().splitlines()[:: max(1, self.net.text.strip().count("\n"))])
        return f"ArrowFunction({printable_line(text)!r})"

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Columns that the net reads, by first use; None for all columns, which a net without `return` passes on.

        A column with a dot in its name is listed by the part before the dot.
        """
        if self.net.returned is None:
            return None
        return tuple(dict.fromkeys(name.partition(".")[0] for name in self.net.inputs))

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of the results for tables of `schema`, before there are data.

        Raises NetError when the type of a column depends on the data (an axis padded to the longest row), and
        UnknownColumnError when the net reads a column that does not exist.
        """
        return self._plan(schema).schema

    def keeps_rows(self, schema: pa.Schema) -> bool:
        """Return whether row i of each result is proved to come from row i of a table of `schema`."""
        return self._plan(schema).keeps_rows

    def __call__(self, data: Any) -> Any:
        """Run the net on a table or batch, or on each of an iterator or reader of them; return the same kind.

        Another object with Arrow columns, such as a frame, gives a Table. The columns are those of `schema`. Raises
        the errors of `from_arrow`, `run` and `to_arrow`.
        """
        if isinstance(data, pa.RecordBatch):
            return self._result(data)
        if isinstance(data, pa.RecordBatchReader):
            return pa.RecordBatchReader.from_batches(self.schema(data.schema), map(self._result, data))
        if isinstance(data, Iterator):
            return map(self, data)
        table = as_table(data)
        return pa.Table.from_batches([self._result(table)])

    def udf(self, schema: pa.Schema) -> dict[str, Any]:
        """Return the arguments of DuckDB's `create_function` after the name, for columns of `schema` in its order.

        The function takes one argument for each column that the net reads. It returns the net's one output, or a
        struct of all. Rows with a NULL among the arguments give NULL, unless `fill` or `valid` handles nulls. Raises
        NetError when the net is not proved to keep rows, as DuckDB requires.
        """
        import duckdb

        columns = set(_columns_of_inputs(self.net, schema).values())
        read = pa.schema([field for field in schema if field.name in columns])
        plan = self._plan(read)
        if not plan.keeps_rows:
            raise NetError(
                "arrow_function: a DuckDB function needs a result for each row, and this net does not keep rows\n"
                "  call it on the batches of a query instead, and query the result"
            )
        returned = plan.schema
        if len(returned) > 1:
            returned = pa.schema([pa.field("struct", pa.struct(list(returned)))])
        with duckdb.connect() as connection:
            parameters = connection.from_arrow(read.empty_table()).types
            returns = connection.from_arrow(returned.empty_table()).types[0]
        has_rule = self.fill is not None or self.valid is not False
        return {
            "function": _function_of_arrays(self, read),
            "parameters": parameters,
            "return_type": returns,
            "type": "arrow",
            "null_handling": "special" if has_rule else "default",
        }

    def _plan(self, schema: pa.Schema) -> TablePlan:
        plan = self._plans.get(schema)
        if plan is None:
            if len(self._plans) >= _MOST_PLANS:
                self._plans = {}
            plan = self._plans[schema] = self._planned(schema)
        return plan

    def _planned(self, schema: pa.Schema) -> TablePlan:
        columns = _columns_read(self.net, schema)
        read = pa.schema([schema.field(name) for name in columns], schema.metadata)
        empty = from_arrow(read.empty_table(), fill=self.fill, valid=self.valid)
        for name, spec in executor.output_specs(self.net, empty).items():
            _check_fixed(name, spec.shape.dimensions)
        result = to_arrow(executor.empty_result(self.net, empty))
        return TablePlan(columns, result.schema, executor.keeps_rows(self.net, empty))

    def _result(self, table: pa.Table | pa.RecordBatch) -> pa.RecordBatch:
        plan = self._plan(table.schema)
        record = from_arrow(table.select(plan.columns), fill=self.fill, valid=self.valid)
        return of_schema(to_arrow(executor.run(self.net, record)), plan.schema)


@checked()
def arrow_function(net: Net | str, *, fill: Fill = None, valid: Valid = False) -> ArrowFunction:
    """Return a net as a function of Arrow tables: for Ray Data, Spark, Polars, DuckDB, datasets, or your own
    loop.

    The net sees one table at a time: a computation across rows uses the rows of that table.

    Args:
        net: Net, or its text, that reads columns by the names that `from_arrow` gives their tensors; its
            outputs become the columns of the result, as `to_arrow` makes them.
        fill: Values in place of nulls, as in `from_arrow`.
        valid: Masks of nulls, as in `from_arrow`.

    >>> count = arrow_function("n = lengths_sum(ids.values, ids.lengths)")
    >>> table = pa.table({"ids": pa.array([[1, 2], [], [3]], pa.list_(pa.int32()))})
    >>> count(table).to_pydict()
    {'n': [3, 0, 3]}
    >>> count.schema(table.schema)
    n: int64
    """
    return ArrowFunction(net, fill=fill, valid=valid)


def _columns_read(net: Net, schema: pa.Schema) -> list[str]:
    """Return the columns of a table that a net reads, in the table's order."""
    columns = set(_columns_of_inputs(net, schema).values())
    return [name for name in schema.names if net.returned is None or name in columns]


def _columns_of_inputs(net: Net, schema: pa.Schema) -> dict[str, str]:
    """Return the column of each input of a net; raise UnknownColumnError for a missing one."""
    columns = schema.names
    places = {name: place for place, name in reversed([*enumerate(columns)])}
    if len(places) < len(columns):
        doubled = next(name for place, name in enumerate(columns) if name in columns[place + 1 :])
        raise ProviderError(f"arrow_function: the table has several columns {doubled!r}, expected one")
    found = {}
    for name in net.inputs:
        parts = name.split(".")  # a column may have dots in its name, too
        prefixes = (".".join(parts[:end]) for end in range(1, len(parts) + 1))
        place = min((places[one] for one in prefixes if one in places), default=None)
        if place is None:
            raise UnknownColumnError(
                f"arrow_function: the net reads {name!r}, and the table has no such column"
                f"{nearest(name.partition('.')[0], columns)}; it has {', '.join(columns)}"
            )
        found[name] = columns[place]
    return found


def _check_fixed(name: str, dimensions: Any) -> None:
    for axis, dimension in enumerate((dimensions or ())[1:], start=1):
        if not dimension.is_static:
            raise NetError(
                f"arrow_function: axis {axis} of {name} is {dimension}, which depends on the data, so its column has "
                "no type that all tables share\n"
                "  return values and lengths, which become lists, or pad to a constant size"
            )


def _function_of_arrays(function: ArrowFunction, schema: pa.Schema) -> Callable[..., pa.Array]:
    """Return a function from arrays of the columns of `schema` to one array, as DuckDB calls it; its signature has
    one parameter a column.
    """

    def of_arrays(*columns: Any) -> pa.Array:
        column = function(pa.table(list(columns), schema=schema)).to_struct_array()
        joined = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        return joined.field(0) if joined.type.num_fields == 1 else joined

    parameters = [Parameter(f"column_{i}", Parameter.POSITIONAL_ONLY) for i in range(len(schema))]
    of_arrays.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return of_arrays
