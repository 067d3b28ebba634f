"""Upper bounds of the rows and values of each block, from footers and file sizes alone."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from seqflow.providers.formats.parquet import ParquetFile, ParquetSource
from seqflow.providers.formats.text import TextSource
from seqflow.providers.provider import Provider
from seqflow.record.selection import leaf_types


class BlockBounds(NamedTuple):
    """Upper bounds of the rows and lengths of one block."""

    rows: int
    sums: dict[str, int]
    """The sum of the lengths in each lengths tensor, by its name; tensors without a bound are left out."""


def block_bounds(provider: Provider) -> Iterator[BlockBounds] | None:
    """The bounds of every block; None for a source that does not know its rows before they are read.

    Null values that are filled are not counted: a text that replaces null may be longer than any.
    """
    source = provider.source
    if isinstance(source, ParquetSource):
        return (bounds for path, file in source.files.items() for bounds in _row_groups(path, file))
    if isinstance(source, TextSource):
        return _file_sizes(source)
    if source.num_rows is None:
        return None
    return (BlockBounds(block.num_rows or 0, {}) for block in source.blocks(provider.schema))


def _row_groups(path: str, file: ParquetFile) -> Iterator[BlockBounds]:
    """The bounds of each row group, from the footer.

    A leaf column has an entry for each value, nulls included, and one for each empty list: an upper bound of the
    number of values at every level of lists above it. The bytes of texts are there where the writer counted them.
    """
    leaves = [leaf for leaf, _ in leaf_types(file.selection.renamed)]
    chunks = file.chunks(path)
    for group, (values, texts) in enumerate(
        zip(chunks.num_values.tolist(), chunks.text_bytes.tolist(), strict=True)
    ):
        sums: dict[str, int] = {}
        for leaf, num_values, text_bytes in zip(leaves, values, texts, strict=True):
            for end in range(1, len(leaf)):
                name = ".".join((*leaf[:end], "lengths"))
                sums[name] = min(num_values, sums.get(name, num_values))
            if text_bytes >= 0:
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
"""The most bytes of UTF-8 that a byte of an encoding becomes."""
_REPLACEMENT = len("\N{REPLACEMENT CHARACTER}".encode())


def _growth(source: TextSource) -> int | None:
    """The most bytes of text that a byte of a file becomes; None where that is not known."""
    if source.encoding is None:
        return 1
    growth = _GROWTH.get(codecs.lookup(source.encoding).name)
    if growth is None or source.errors != "replace":
        return growth
    return max(growth, _REPLACEMENT)
