"""A job file to start from, written for the files at hand: what is in it depends on their columns."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from seqflow import providers
from seqflow.errors import JobError

_HEAD = """\
# Made by `seqflow init`. What comes next:
#
#     seqflow check {name}            every tensor, and the most bytes it can have, before any data is read
#     seqflow run {name} --dry-run    windows, batches, fill and memory: nothing is written
#     seqflow run {name}              writes the output; run again with --resume where it was stopped
#
# docs/jobs.md has all keys.

[source]
paths = {paths}                  # relative to this file
{kind}columns = {columns}        # of {all_columns}

[order]
# shuffle = 0                    # a seed: the order of all rows
window = "64 MiB"                # what is shuffled and packed together
"""

_TEXT = """
[prepare]
# Applied to blocks of rows. A byte is a token, and 256 ends a text. A tokenizer does it as well, for [constants]
# tokenizer = "tokenizer.json":    ids, n = tokenize({0}.values, {0}.lengths, tokenizer)
net = \"\"\"
ids, n = bytes_to_tokens({0}.values, {0}.lengths, end=256)
tokens.values, tokens.lengths, _ = split_sequences(ids, n, chunk=2048)
return tokens.values, tokens.lengths
\"\"\"
"""

_PACKED = """
[batch]
kind = "packed"                  # documents side by side in full rows; others: rows, token_budget
capacity = 2048
"""

_ROWS = """
[batch]
kind = "rows"                    # no column is a list of numbers, or text: so many rows a batch
n = 256
"""

_TAIL = """
[output]
path = "out"                     # relative to this file; a folder of part files and a manifest
kind = "parquet"
"""


def starting_job(paths: Sequence[str], job: Path, kind: str | None = None) -> str:
    """The text of a job for these paths, to be written to `job`.

    The first list of integers is packed; else the first text is split into bytes and packed; else rows are counted.
    JobError where there is nothing to read; the errors of `sf.open` for paths that cannot be read.
    """
    if not paths:
        raise JobError("init: no paths, expected files, folders or globs")
    schema = providers.open([*paths] if len(paths) > 1 else paths[0], kind=kind).schema
    if not len(schema):
        raise JobError(f"init: {paths[0]} has no columns")
    column, of = _planned(schema)
    folder = Path(os.path.abspath(job)).parent
    names = [column] if column is not None else list(schema.names)
    fields: Mapping[str, str] = {
        "name": job.name,
        "paths": json.dumps([os.path.relpath(path, folder) for path in paths], ensure_ascii=False),
        "kind": "" if kind is None else f"kind = {json.dumps(kind)}\n",
        "columns": json.dumps(names, ensure_ascii=False),
        "all_columns": json.dumps(", ".join(schema.names), ensure_ascii=False)[1:-1],
    }
    parts = [_HEAD.format(**fields)]
    if of == "text":
        parts.append(_TEXT.format(column))
    parts += [_ROWS if column is None else _PACKED, _TAIL]
    return "".join(parts)


def _planned(schema: pa.Schema) -> tuple[str | None, str]:
    """The column that is packed, and what it is: "ids" or "text"; None where there is none."""
    for field in schema:
        is_list = pa.types.is_list(field.type) or pa.types.is_large_list(field.type)
        if is_list and pa.types.is_integer(field.type.value_type) and field.name.isidentifier():
            return field.name, "ids"
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    found = [
        field.name
        for field in schema
        if field.name.isidentifier() and any(is_a(field.type) for is_a in texts)
    ]
    if found:
        return next((name for name in found if name in ("text", "bytes", "content")), found[0]), "text"
    return None, ""
