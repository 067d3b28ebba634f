"""Upper bounds of the rows and values of each block, from footers and file sizes alone."""

import codecs
import os
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from seqflow.providers.formats.parquet import ParquetFile, ParquetSource
from seqflow.providers.formats.parquet_footers import ColumnChunks
from seqflow.providers.formats.text import TextSource
from seqflow.providers.provider import Provider
from seqflow.record.selection import leaf_types


class BlockBounds(NamedTuple):
    """Upper bounds of the rows and lengths of one block."""

    rows: int
    sums: dict[str, int]
    """Sum of the lengths in each lengths tensor, by its name; tensors without a bound are left out."""


def block_bounds(provider: Provider) -> Iterator[BlockBounds] | None:
    """Return the bounds of every block; None for a source whose rows are not known before they are read.

    Nulls are counted as empty: a text of `fill` that replaces them may be longer than these bounds.
    """
    source = provider.source
    if isinstance(source, ParquetSource):
        files = source.files.items()
        return (bounds for path, file in files for bounds in _row_groups(file, source.chunks_of(path)))
    if isinstance(source, TextSource):
        return _file_sizes(source)
    if source.num_rows is None:
        return None
    return (BlockBounds(block.num_rows or 0, {}) for block in source.blocks(provider.schema))


def _row_groups(file: ParquetFile, chunks: ColumnChunks) -> Iterator[BlockBounds]:
    """Yield the bounds of each row group, from the footer.

    A leaf column has an entry for each value, nulls included, and one for each empty list: an upper bound of the
    number of values at every level of lists above it. Bytes of texts are bounded if the writer has counted them.
    """
    leaves = [leaf for leaf, _ in leaf_types(file.selection.renamed)]
    for group, (values, texts) in enumerate(
        zip(chunks.num_values.tolist(), chunks.text_bytes.tolist(), strict=True)
    ):
        sums: dict[str, int] = {}
        for leaf, num_values, text_bytes in zip(leaves, values, texts, strict=True):
            # the smallest of the leaves below a list: each of them bounds it, and each counts its own empty lists
            for end in range(1, len(leaf)):
                name = ".".join((*leaf[:end], "lengths"))
                sums[name] = min(num_values, sums.get(name, num_values))
            if text_bytes >= 0:  # else the writer has not counted them
                sums[".".join((*leaf, "lengths"))] = text_bytes
        yield BlockBounds(int(file.rows[group]), sums)


def _file_sizes(source: TextSource) -> Iterator[BlockBounds]:
    path, content = (f"{field.name}.lengths" for field in source.selection.renamed)
    growth = _growth(source)
    for start, stop in pairwise(source.limits):
        sums = {path: sum(len(os.fsencode(name)) for name in source.paths[start:stop])}
        if growth is not None:
            sums[content] = growth * sum(source.sizes[start:stop])
        yield BlockBounds(stop - start, sums)


_GROWTH = {"ascii": 1, "utf-8": 1, "iso8859-1": 2, "cp1252": 3}
"""Largest number of bytes of UTF-8 for one byte in an encoding."""
_REPLACEMENT = len("\N{REPLACEMENT CHARACTER}".encode())


def _growth(source: TextSource) -> int | None:
    """Return the largest number of bytes of text for one byte of a file; None if that is not known."""
    if source.encoding is None:
        return 1
    growth = _GROWTH.get(codecs.lookup(source.encoding).name)
    if growth is None or source.errors != "replace":
        return growth
    return max(growth, _REPLACEMENT)
