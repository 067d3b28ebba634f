"""What a state says of the data: which files, their sizes and content, and how the source reads them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from seqflow.identity.content import digest_of_text
from seqflow.identity.samples import sampled_digest
from seqflow.loader.schedule.windows import Part
from seqflow.providers import Provider
from seqflow.providers.provider import Block
from seqflow.record.selection import Selection

_LISTED_FILES = 1000
"""A state lists the files of the data, unless they are more."""
_NOT_READ = ("memory_map", "use_threads", "origin", "started", "read_once")
"""Fields of sources that don't decide what is read."""
_SAMPLED_BLOCKS, _SAMPLED_BYTES = 8, 1 << 16
"""Blocks of a source in memory that are looked into, and the bytes up to which a row is."""


def fingerprint(source: Provider, parts: Sequence[Part], sizes: Mapping[str, int]) -> dict[str, Any]:
    """What a state says of the data: relative paths, sizes, rows and digests. `sizes` are those of the files.

    Of what is in memory it is the digest of some rows.
    """
    rows: dict[str, int | None] = {}
    for part in parts:
        known = rows.get(part.block.origin, 0)
        more = part.num_rows
        rows[part.block.origin] = None if known is None or more is None else known + more
    files = [
        [path, sizes.get(name), rows.get(name), sampled_digest(name)]
        for path, name in zip(_relative(source.files), source.files, strict=True)
    ]
    total = None if None in rows.values() else sum(rows.values())  # type: ignore[arg-type]
    blocks = list({part.number: part.block for part in parts}.values())
    found: dict[str, Any] = {
        "kind": source.kind,
        "rows": total,
        "columns": [f"{field.name}: {field.type}" for field in source.schema],
        "read with": dict(_options(source.source)),
        "blocks": digest_of_text(repr([_size(block) for block in blocks])),
    }
    if not files:
        return found | {"content": _content(source, blocks)}
    if len(files) <= _LISTED_FILES:
        return found | {"files": files}
    return found | {"files": len(files), "digest": digest_of_text(repr(files))}


def _size(block: Block) -> tuple[str, int | None]:
    return ("bytes", block.nbytes) if block.num_rows is None else ("rows", block.num_rows)


def _content(source: Provider, blocks: Sequence[Block]) -> str:
    """The digest of the first, the middle and the last row of some blocks."""
    step = max(1, len(blocks) // _SAMPLED_BLOCKS)
    texts = [text for block in {*blocks[::step], *blocks[-1:]} for text in _rows(source, block)]
    return digest_of_text("\n".join(sorted(texts)))


def _rows(source: Provider, block: Block) -> Iterator[str]:
    table = source.read(block, bad_rows=[])
    for row in sorted({0, table.num_rows // 2, table.num_rows - 1}) if table.num_rows else ():
        one = table.slice(row, 1)
        size = one.nbytes
        try:
            shown = f"{size} bytes" if size > _SAMPLED_BYTES else repr(one.to_pylist())
        except (ValueError, ArithmeticError):  # text that is none, a time beyond Python's
            shown = f"{size} bytes"
        yield f"{block.index} {row}: {shown}"


def _options(source: Any) -> Iterator[tuple[str, Any]]:
    """The options that a source was opened with: its fields of plain values, and those of its parts."""
    if not is_dataclass(source):
        return
    for field in fields(source):
        value = getattr(source, field.name)
        if field.name in _NOT_READ:
            continue
        if value is None or isinstance(value, bool | int | str):
            yield field.name, value
        elif isinstance(value, Selection):
            yield from _renamed(value)
        elif isinstance(value, Mapping):  # files by path, each with its columns
            yield from _options(next(iter(value.values()), None))
        else:
            yield from _options(value)


def _renamed(selection: Selection) -> Iterator[tuple[str, Any]]:
    pairs = zip(selection.source.names, selection.renamed.names, strict=True)
    renamed = [[old, new] for old, new in pairs if old != new]
    if renamed:
        yield "renamed", renamed


def _relative(paths: Sequence[str]) -> list[str]:
    if not paths:
        return []
    folder = os.path.commonpath([os.path.dirname(os.path.abspath(path)) for path in paths])
    return [os.path.relpath(path, folder) for path in paths]
