"""Openers of objects of other packages; objects that cannot be read are refused by name."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from seqflow.errors import ProviderError
from seqflow.providers.memory.functions import is_cursor, open_function, open_iterator, open_list
from seqflow.providers.memory.rereadable import open_lazy_frame, open_relation
from seqflow.providers.memory.streams import open_stream
from seqflow.providers.other_packages import is_a
from seqflow.providers.own_sources import is_own, open_own
from seqflow.providers.provider import Provider
from seqflow.providers.tables.datasets import open_dataset, open_delta, open_fragment, open_lance
from seqflow.providers.tables.hugging_face import open_hugging_face, open_iterable, refuse_splits
from seqflow.providers.tables.iceberg import open_iceberg


class Opener(NamedTuple):
    """Function that opens an object, and its options besides `columns` and `rename`."""

    open: Callable[..., Provider]
    options: tuple[str, ...] = ()


_OPENERS: tuple[tuple[str, tuple[str, ...], Opener], ...] = (
    ("datasets", ("DatasetDict", "IterableDatasetDict"), Opener(refuse_splits, ("batch_bytes", "schema"))),
    ("datasets", ("Dataset",), Opener(open_hugging_face, ("batch_bytes",))),
    ("datasets", ("IterableDataset",), Opener(open_iterable, ("batch_bytes", "schema"))),
    ("lance", ("LanceDataset",), Opener(open_lance)),
    ("deltalake", ("DeltaTable",), Opener(open_delta)),
    ("pyiceberg", ("Table", "TableScan"), Opener(open_iceberg)),
    ("pyarrow", ("Dataset",), Opener(open_dataset)),
    ("pyarrow", ("Fragment",), Opener(open_fragment)),
    ("polars", ("LazyFrame",), Opener(open_lazy_frame, ("batch_bytes",))),
    ("duckdb", ("DuckDBPyRelation",), Opener(open_relation, ("batch_bytes",))),
)
"""Openers by package and class; the first that fits is used."""
_REFUSED = (
    ("pyarrow", ("ParquetFile",), "open its path"),
    ("torch", ("Dataset",), "it makes a Python object for each row: open the files or tables that it reads"),
    ("ray", ("Dataset",), 'pass a function: lambda: ds.iter_batches(batch_format="pyarrow")'),
    ("pyspark", ("DataFrame",), "write it to Parquet, or pass df.toArrow()"),
    ("dask", ("DataFrame",), "write it to Parquet, or pass a function that computes its partitions"),
    (
        "streaming",
        ("StreamingDataset",),
        "it makes a Python object for each row: pass a function that gives dicts",
    ),
)
"""Objects that cannot be read, by package and class, with advice on what to do."""


def opener_of(source: Any) -> Opener | None:
    """Return the opener of an object; None for a path, mapping, table or frame.

    Raise ProviderError for an object that cannot be read.
    """
    for package, names, opener in _OPENERS:
        if is_a(source, package, *names):
            return opener
    for package, names, advice in _REFUSED:
        if is_a(source, package, *names):
            raise ProviderError(f"a {package} {names[0]} can't be read\n{advice}")
    if is_own(source):
        return Opener(open_own)
    if isinstance(source, Mapping):
        return None
    if hasattr(source, "__arrow_c_stream__"):
        return None if hasattr(source, "__len__") else Opener(open_stream)
    if callable(source):
        return Opener(open_function, ("batch_bytes", "schema"))
    if isinstance(source, list | tuple) and source:
        return Opener(open_list, ("batch_bytes", "schema"))
    if is_a(source, "pyarrow", "Scanner") or is_cursor(source) or hasattr(source, "__next__"):
        return Opener(open_iterator, ("schema",))
    return None
