"""Write a first job file for given files; its settings depend on their columns."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from seqflow import providers
from seqflow.errors import JobError
from seqflow.printable import printable_line

_HEAD = """\
# Made by `seqflow init`. What comes next:
#
#     seqflow check {name}            each tensor, and the most bytes it can have, before any data is read
#     seqflow run {name} --dry-run    windows, batches, fill and memory: nothing is written
#     seqflow run {name}              writes the output; run again with --resume where it was stopped
#
# docs/jobs.md has all keys.
"""

_NET = '''
[prepare]
# Applied to blocks of rows. A byte is a token, and 256 ends a text. With a section [constants] and in it
# tokenizer = "tokenizer.json" a tokenizer does it:   ids, n = tokenize({0}.values, {0}.lengths, tokenizer)
net = """
ids, n = bytes_to_tokens({0}.values, {0}.lengths, end=256)
tokens.values, tokens.lengths, _ = split_sequences(ids, n, chunk=2048)
return tokens.values, tokens.lengths
"""
'''

Setting = tuple[str, str]
"""A line of a section, and its purpose."""

_ORDER: list[Setting] = [
    ("# shuffle = true", "rows in a random order; `seed` decides which"),
    ('window = "64 MiB"', "how much is shuffled and packed together, and most of the memory"),
]
_PACKED: list[Setting] = [
    ('kind = "packed"', "sequences side by side in full rows; others: rows, tokens, buckets"),
    ("capacity = 2048", "tokens of a row; longer sequences are cut into pieces"),
    ("rows = 64", "rows of a batch"),
]
_ROWS: list[Setting] = [
    ('kind = "rows"', "no column is a list of integers, or text: so many rows are a batch"),
    ("n = 256", "rows of a batch"),
]
_OUTPUT: list[Setting] = [
    ('path = "out"', "relative to this file: a folder of part files and a manifest"),
    ('kind = "parquet"', "or arrow"),
    ('# part_bytes = "64 MiB"', "how much of the source a killed run loses at most; 512 MiB if not given"),
]
_BAD_ROWS: list[Setting] = [
    (
        'policy = "quarantine"',
        "rows with nulls, or that cannot be read, are counted and set aside; or raise, skip",
    ),
    ('path = "bad.parquet"', "where they are written, with file, row and reason"),
]
_TOKENS, _TEXTS = ("tokens", "input_ids", "token_ids", "ids"), ("text", "content", "bytes")
"""Usual names of columns of tokens, and of texts: they are preferred to others."""
_FILLS = {"ids": "[]", "text": '""', "": "0"}
"""Possible replacement of a null, by the kind of column that is packed."""


def starting_job(paths: Sequence[str], job: Path, kind: str | None = None) -> str:
    """Return the text of a job for these paths, to be written to `job`.

    The first list of integers is packed; if there is none, the first text is split into bytes and packed;
    otherwise batches have a number of rows. Raise JobError when there is nothing to read, and the errors of
    `sf.open` when paths cannot be read.
    """
    if not paths:
        raise JobError("init: no paths, expected files, folders or globs")
    schema = providers.open([*paths] if len(paths) > 1 else paths[0], kind=kind).schema
    if not len(schema):
        raise JobError(f"init: {paths[0]} has no columns")
    column, of, others = _planned(schema)
    folder = Path(os.path.abspath(job)).parent
    names = [column] if column is not None else list(schema.names)
    found = [os.path.relpath(path, folder) for path in paths]
    of_all = "of " + ", ".join(map(printable_line, schema.names))
    also = f"; {', '.join(others)}: packed too where they have equal lengths" if others else ""
    source = [
        (f"paths = {_toml(found)}", "files, folders or globs, relative to this file"),
        *([] if kind is None else [(f"kind = {_toml(kind)}", "the names of the files do not say it")]),
        (f"columns = {_toml(names)}", of_all + also),
        (f"# fill = {_FILLS[of]}", "what a null becomes; without it a row with one is a bad row"),
    ]
    parts = [
        _HEAD.format(name=printable_line(job.name)),
        _section("source", source),
        _section("order", _ORDER),
    ]
    if of == "text":
        parts.append(_NET.format(column))
    parts.append(_section("batch", _ROWS if column is None else _PACKED))
    parts += [_section("output", _OUTPUT), _section("bad_rows", _BAD_ROWS)]
    return "".join(parts)


def _toml(value: object) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _section(name: str, settings: Sequence[Setting]) -> str:
    """Return the lines of a section, their comments aligned."""
    width = min(40, max(len(setting) for setting, _ in settings))
    return f"\n[{name}]\n" + "".join(f"{setting:<{width}}  # {why}\n" for setting, why in settings)


def _planned(schema: pa.Schema) -> tuple[str | None, str, list[str]]:
    """Return the column to pack, its kind ("ids" or "text"), and other lists; None if there is none."""
    named = [field for field in schema if field.name.isidentifier()]
    ids = [
        field.name for field in named if _is_list(field.type) and pa.types.is_integer(field.type.value_type)
    ]
    if ids:
        column = _first(ids, _TOKENS)
        lists = [
            one.name for one in named if _is_list(one.type) and pa.types.is_primitive(one.type.value_type)
        ]
        return column, "ids", [name for name in lists if name != column]
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    found = [field.name for field in named if any(is_a(field.type) for is_a in texts)]
    return (_first(found, _TEXTS), "text", []) if found else (None, "", [])


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _first(names: Sequence[str], usual: Sequence[str]) -> str:
    return next((name for name in usual if name in names), names[0])
