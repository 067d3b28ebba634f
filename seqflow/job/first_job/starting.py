"""Write a first job file for given files; its settings depend on their columns."""

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import compute

from seqflow.errors import JobError
from seqflow.files.uris import is_uri
from seqflow.job.first_job.chat import PARTS, Chat, find_chat, told_roles
from seqflow.job.job import Job
from seqflow.job.opening import open_loader
from seqflow.loader.run.ledger import Ledger
from seqflow.loader.run.windows import WindowMaker
from seqflow.printable import printable_line
from seqflow.providers import Provider
from seqflow.providers.bad_files import BadFileList
from seqflow.providers.lenient import LenientReader, open_lenient
from seqflow.record.selection import select_schema

Setting = tuple[str, str]
"""A line of a section, and its purpose."""


_TOKENS, _TEXTS = ("tokens", "input_ids", "token_ids", "ids"), ("text", "content", "bytes")
"""Usual names of columns of tokens, and of texts: they are preferred to others."""
_LONG = 32
"""Mean bytes from which on a column of texts with another name is packed: shorter ones are names, dates, ids."""
_FILLS = {"ids": "[]", "text": '""', "": "0"}
"""Possible replacement of a null, by the kind of column that is packed."""
_SEEN_BYTES, _SEEN_BLOCKS = 64 << 20, 100
"""Bytes and blocks that are read of a source, to see roles, lengths of texts, and bad rows."""


class Seen(NamedTuple):
    """First rows of a source, of which a job was made."""

    table: pa.Table
    """Columns that were looked at, null in rows that cannot be read."""
    blocks: int
    is_all: bool
    inferred: str
    """How types were found, and which are not known; "" where files tell all."""

    def refused_by(self, job: Job) -> str:
        """Return a sentence about these rows: how many of them a job refuses, and the damaged files among them."""
        loader = open_loader(job.without_quarantine())
        listing, ledger = loader.pipeline.listing, Ledger()
        slices = [one for one in listing.slices() if one.number < self.blocks]
        maker = WindowMaker(loader.recipe, listing.stamps_of({one.block.origin for one in slices}))
        for one in slices:
            ledger.add(maker.read(one, 0)[1])
        reasons = sum((one.reasons for one in ledger.rejected), Counter())
        damaged = BadFileList(loader.source.damaged) + ledger.damaged
        counts = {"bad row": ledger.bad_rows, "damaged file": damaged.num_files}
        found = [f"{count:,} {noun}{'s' * (count != 1)}" for noun, count in counts.items() if count]
        rows = f"looked at {'all' if self.is_all else 'the first'} {self.table.num_rows:,} rows"
        lines = [f"  {reason}: {count:,}" for reason, count in reasons.most_common()]
        return "\n".join([f"{rows}: {' and '.join(found) or 'none is bad'}", *lines])


class Start(NamedTuple):
    """A first job, and what was seen of its files."""

    text: str
    seen: Seen
    tokenizer: Path | None
    """File with the tokenizer of a chat, to be written if it does not exist."""
    roles: str
    """Sentence about the roles of a chat, if some are not usual."""


def starting_job(
    paths: Sequence[str], job: Path, kind: str | None = None, storage: Mapping[str, Any] | None = None
) -> Start:
    """Return a job for these paths, to be written to `job`.

    Conversations become tokens and labels. Otherwise the first list of integers is packed; if there is none, the
    first text that is long or has a usual name is split into bytes and packed; otherwise batches have a number of
    rows. Raise JobError when there is nothing to read, and the errors of `sf.open` when paths cannot be read; damaged
    files among others are left out.
    """
    if not paths:
        raise JobError("init: no paths, expected files, folders or globs")
    path = [*paths] if len(paths) > 1 else paths[0]
    source = open_lenient(path, kind=kind, storage_options=storage or None)
    schema = source.schema
    if not len(schema):
        raise JobError(f"init: {paths[0]} has no columns")
    chat = find_chat(schema)
    seen = _look_at(source, chat.columns if chat else _texts(schema) or schema.names[:1])
    column, of, others = ("tokens", "text", []) if chat else _planned(schema, seen.table)
    folder = Path(os.path.abspath(job)).parent
    names = [column] if column is not None else list(schema.names)
    found = [path if is_uri(path) else os.path.relpath(path, folder) for path in paths]
    of_all = "of " + ", ".join(map(printable_line, schema.names))
    also = f"; {', '.join(others)}: packed too where they have equal lengths" if others else ""
    settings = [
        (f"paths = {_toml(found)}", "files, folders or globs, relative to this file"),
        *((f"storage_options.{key} = {_toml(one)}", "of the store") for key, one in (storage or {}).items()),
        *([] if kind is None else [(f"kind = {_toml(kind)}", "the names of the files do not say it")]),
        (f"columns = {_toml(chat.columns if chat else names)}", of_all + also),
        (
            f'fill = {{"{chat.column}.values.{chat.content}" = ""}}' if chat else f"# fill = {_FILLS[of]}",
            "what a null becomes; without it a row with one is a bad row",
        ),
        # later lines may be the first with tool_calls
        *(
            [('jsonl.extra_fields = "ignore"', "keys that only later lines have")]
            if source.kind == "jsonl"
            else []
        ),
    ]
    tokenizer = folder / "tokenizer.json" if chat else None
    roles = _roles(seen.table, chat) if chat else {}
    parts = [
        PARTS["head"].format(name=printable_line(job.name)),
        PARTS["require"] if chat else "",
        _section("source", settings),
        _section("order", _settings("order")),
    ]
    if chat:
        parts.append(chat.net(roles, "tokenizer.json"))
    elif of == "text":
        parts.append(PARTS["text"].format(column))
    batch = _settings("rows" if column is None else "packed")
    parts.append(_section("batch", [*batch, *_settings("chat_batch")] if chat else batch))
    free = ("out", *(f"out-{number}" for number in range(2, 1000)))  # another job may have filled `out`
    path = next((name for name in free if not (folder / name).exists()), free[-1])
    # each job has bad rows of its own
    parts += [
        _section("output", _settings("output", path)),
        _section("bad_rows", _settings("bad_rows", job.stem)),
    ]
    if source.bad_files.leaves_out:
        parts.append(_section("bad_files", _settings("bad_files")))
    return Start("".join(parts), seen, tokenizer, told_roles(roles))


def _look_at(source: Provider, columns: Sequence[str]) -> Seen:
    """Return columns of the first rows of a source."""
    lenient = LenientReader.of(source, skips=True)
    tables = [select_schema(source.schema, columns).empty_table()]
    blocks, size = iter(source.blocks()), 0
    for block in islice(blocks, _SEEN_BLOCKS):
        tables.append(pa.table(lenient.read(source, block, columns)))
        size += tables[-1].nbytes
        if size >= _SEEN_BYTES:
            break
    return Seen(pa.concat_tables(tables), len(tables) - 1, next(blocks, None) is None, source.inferred)


def _roles(table: pa.Table, chat: Chat) -> dict[str, int]:
    """Return the roles in the first rows, and the number of turns of each."""
    turns = table.column(chat.column).combine_chunks().flatten()
    counted = compute.value_counts(turns.field(chat.role)).to_pylist()
    return {one["values"]: one["counts"] for one in counted if one["values"] is not None}


def _toml(value: object) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _settings(part: str, *values: str) -> list[Setting]:
    """Return the lines of a part, in which `values` are filled in."""
    rows = (line.partition("  # ") for line in PARTS[part].splitlines())
    return [(setting.format(*values) if values else setting, purpose) for setting, _, purpose in rows]


def _section(name: str, settings: Sequence[Setting]) -> str:
    """Return the lines of a section, their comments aligned."""
    width = min(40, max(len(setting) for setting, _ in settings))
    return f"\n[{name}]\n" + "".join(f"{setting:<{width}}  # {why}\n" for setting, why in settings)


def _planned(schema: pa.Schema, table: pa.Table) -> tuple[str | None, str, list[str]]:
    """Return the column to pack, its kind ("ids" or "text"), and other lists; None if there is none."""
    named = [field for field in schema if field.name.isidentifier() and not _is_id(field.name)]
    ids = [
        field.name for field in named if _is_list(field.type) and pa.types.is_integer(field.type.value_type)
    ]
    if ids:
        column = _first(ids, _TOKENS)
        lists = [
            one.name for one in named if _is_list(one.type) and pa.types.is_primitive(one.type.value_type)
        ]
        return column, "ids", [name for name in lists if name != column]
    long = [name for name in _texts(schema) if name in _TEXTS or _mean_bytes(table.column(name)) >= _LONG]
    return (_first(long, _TEXTS), "text", []) if long else (None, "", [])


_IS_TEXT = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)


def _texts(schema: pa.Schema) -> list[str]:
    """Return the names of columns of text or bytes that a net can name."""
    is_text = [any(is_a(field.type) for is_a in _IS_TEXT) for field in schema]
    return [
        name
        for name, is_one in zip(schema.names, is_text, strict=True)
        if is_one and name.isidentifier() and not _is_id(name)
    ]


def _is_id(name: str) -> bool:
    """Return whether a column is an identifier by its name: nothing to learn from."""
    return name.casefold() in ("id", "uuid", "guid", "hash", "key", "url") or name.casefold().endswith("_id")


def _mean_bytes(texts: pa.ChunkedArray) -> float:
    return compute.mean(compute.binary_length(texts)).as_py() or 0.0


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _first(names: Sequence[str], usual: Sequence[str]) -> str:
    return next((name for name in usual if name in names), names[0])
