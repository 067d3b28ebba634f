"""OwnSource: the interface of a user's own source; its results are checked, and then read as any other source."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from seqflow.errors import ProviderError
from seqflow.files.uris import absolute, is_uri
from seqflow.printable import printable_line
from seqflow.providers.memory.rereadable import with_columns
from seqflow.providers.memory.tables import table_of
from seqflow.providers.other_packages import foreign_errors
from seqflow.providers.provider import Block, Provider
from seqflow.providers.source import Source, Wanted
from seqflow.record import as_table
from seqflow.record.selection import ALL, Picked, Selection, Table, selection
from seqflow.record.validation import validated


@runtime_checkable
class OwnSource(Protocol):
    """Source of rows of your own: its columns, its blocks, and how to read a block.

    `schema` is a `pyarrow.Schema`. Besides these three it may have

    * `paths`: the files that it reads, a list. States and jobs compare their names, sizes and contents; of URIs only
      the names.
    * `version`: for sources without files, values as in JSON that are equal if the rows are. Without it, some rows of
      the source are compared.

    Threads read blocks at the same time, in any order, and again in the next epoch.
    """

    schema: pa.Schema

    def blocks(self) -> Iterable[Block]:
        """Return all blocks in order, which differ in `origin` or `index`. Called once, when the source is opened."""
        ...

    def read(self, block: Block, columns: Sequence[str]) -> Any:
        """Return the rows of a block with at least these columns: a table, record batch, frame or dict of arrays."""
        ...


@dataclass(frozen=True, slots=True)
class CheckedSource(Source):
    """Source of the user's own. Its rows must have the columns of its schema and the number that its blocks tell."""

    own: Any
    listed: tuple[Block, ...]
    selection: Selection
    origin: str
    paths: tuple[str, ...]
    version: Any = field(default=None)

    @property
    def num_rows(self) -> int | None:
        rows = [block.num_rows for block in self.listed]
        return None if None in rows else sum(rows)  # type: ignore[arg-type]

    def blocks(self, schema: pa.Schema) -> Iterator[Block]:
        return iter(self.listed)

    def stream(self, wanted: Wanted) -> Iterator[Table]:
        block, schema, rows = wanted.block, wanted.schema, wanted.rows
        chosen = self.selection.to(schema)
        expected = chosen.of_source
        place = self.place(block)
        with foreign_errors(f"{place} can't be read"):
            rows = self.own.read(block, expected.names)
        table = with_columns(validated(_table_of(rows, place), place), expected, place)
        yield chosen.apply(table, chosen.present)

    def place(self, block: Block) -> str:
        return f"{self.origin}, block {block.index} of {block.origin}"

    def wrong_count(self, block: Block, rows: int) -> ProviderError:
        return ProviderError(f"{self.place(block)} has {rows} rows, expected {block.num_rows}")

    def content(self, schema: pa.Schema) -> Any:
        return self.version


def open_own(own: Any, picked: Picked = ALL, *, origin: str = "") -> Provider:
    """Return a provider of an object with `schema`, `blocks()` and `read(block, columns)`."""
    origin = origin or f"a {type(own).__name__}"
    with foreign_errors(f"{origin} can't be opened"):
        schema, listed = own.schema, tuple(own.blocks())
        paths = _paths(own, origin)
        version = getattr(own, "version", None)
    if not isinstance(schema, pa.Schema):
        raise ProviderError(f"{origin}: schema is a {type(schema).__name__}, expected a pyarrow.Schema")
    _check_blocks(listed, origin)
    chosen = selection(schema, *picked)
    source = CheckedSource(own, listed, chosen, origin, paths, version)
    return Provider("own", origin, chosen.schema, source)


def _table_of(rows: Any, place: str) -> Table:
    try:
        return table_of(rows) if isinstance(rows, Mapping) else as_table(rows)
    except ProviderError as error:
        raise ProviderError(f"{place} can't be read: {error}") from error


def _paths(own: Any, origin: str) -> tuple[str, ...]:
    """Return the absolute paths of the files that the source lists; raise ProviderError if one does not exist."""
    given = getattr(own, "paths", ())
    if isinstance(given, str | os.PathLike):
        raise ProviderError(f"{origin}: paths is {given!r}, expected a list of paths")
    paths = tuple(absolute(os.fsdecode(path)) for path in given)
    for path in paths:
        if not (is_uri(path) or os.path.isfile(path)):
            raise ProviderError(f"{origin}: {path} of its paths is not a file")
    return tuple(dict.fromkeys(paths))


_EXPECTED = {
    "index": "",
    "num_rows": ", or None where it is not known",
    "nbytes": ": the size of its rows in memory, about, by which windows are cut",
}


def _check_blocks(blocks: Sequence[Any], origin: str) -> None:
    seen = set()
    for number, block in enumerate(blocks):
        if not isinstance(block, Block):
            raise ProviderError(
                f"{origin}: blocks() gives a {type(block).__name__}, expected seqflow.providers.Block"
            )
        for name in ("index", "num_rows", "nbytes"):
            value = getattr(block, name)
            is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 0
            if not is_count and (value is not None or name != "num_rows"):
                raise ProviderError(
                    f"{origin}: {name} of block {number} is {value!r}, expected an integer of 0 or more"
                    + _EXPECTED[name]
                )
        if (block.origin, block.index) in seen:
            raise ProviderError(
                f"{origin}: blocks() gives block {block.index} of {printable_line(str(block.origin))} twice"
                "\ngive each block another origin, or another index"
            )
        seen.add((block.origin, block.index))


def is_own(value: Any) -> bool:
    """Return whether this is a source of the user's own: it has `schema`, `blocks` and `read`."""
    has_methods = all(callable(getattr(value, name, None)) for name in ("blocks", "read"))
    return has_methods and not isinstance(value, type | Provider) and hasattr(value, "schema")
