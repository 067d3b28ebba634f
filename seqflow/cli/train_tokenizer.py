"""`seqflow train-tokenizer PATHS`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from seqflow.cli import job_options
from seqflow.cli.printing import print_json, print_table
from seqflow.cli.progress_line import progress_or_log
from seqflow.progress import Stage, stage

if TYPE_CHECKING:
    from seqflow.providers import Provider
    from seqflow.providers.lenient import LenientReader

_LARGEST = 1 << 20
"""Largest vocabulary: the trainer reserves memory for all requested ids."""


def train_tokenizer(
    paths: Annotated[list[str], typer.Argument(metavar="PATHS", help="Files, folders or globs.")],
    output: Annotated[Path, typer.Option(help="The tokenizer file to write, such as tokenizer.json.")],
    vocab_size: Annotated[
        int, typer.Option(min=256, max=_LARGEST, help="Most ids, including 256 for the bytes.")
    ],
    column: Annotated[
        str | None, typer.Option(help="The column of text; needed if there are several.")
    ] = None,
    special: Annotated[
        list[str] | None, typer.Option(metavar="TOKEN", help="A special token; may be repeated. Ids from 0.")
    ] = None,
    min_frequency: Annotated[
        int, typer.Option(min=1, max=2**31, help="Number of times a pair must occur to become a token.")
    ] = 2,
    errors: Annotated[
        Literal["strict", "replace"], typer.Option(help="Bad bytes: an error, or U+FFFD.")
    ] = "strict",
    kind: Annotated[
        str | None, typer.Option(help="parquet, arrow or text, if the names do not show it.")
    ] = None,
    schema: job_options.Schema = None,
    bad_rows: job_options.BadRowsPolicy = None,
    bad_files: job_options.BadFilesPolicy = None,
    storage_option: job_options.StorageOption = None,
    exclude: Annotated[
        list[str] | None, typer.Option(help="Leave out files that match; may be repeated.")
    ] = None,
    overwrite: job_options.Overwrite = False,
    json: job_options.AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print no report.")] = False,
) -> None:
    """Learn a byte-level BPE tokenizer from files or a column.

    The input is read block by block. The same input gives the same tokenizer. Words are cut after 1,000 characters.
    """
    from seqflow import providers
    from seqflow.ops.shared.tokenizers import learn
    from seqflow.output.durable_files import write_bytes
    from seqflow.providers.lenient import LenientReader

    specials = special or []
    _check_size(vocab_size, specials)
    options = job_options.open_options(schema, bad_files, storage_option) | {
        "kind": kind,
        "exclude": exclude or (),
    }
    source = providers.open(paths, **options)
    if source.kind == "text":
        source = providers.open(paths, **options, format=providers.Text(encoding="utf-8", errors=errors))
    _check_target(output, source, overwrite)
    lenient = LenientReader.of(source, bad_rows == "skip")
    steps = Stage("blocks", source.num_blocks, "reading")
    texts = Texts(source, _column(source, column), errors, lenient, steps)
    start = perf_counter()
    with progress_or_log(show=not json and not quiet), stage(texts.stage):
        learned = learn(texts, vocab_size, min_frequency, specials)
    write_bytes(output, learned)
    report = {
        "texts": texts.count,
        "bytes": texts.nbytes,
        "vocabulary": _vocabulary_size(learned),
        "seconds": perf_counter() - start,
        "output": str(output),
    }
    if json:
        print_json({**report, **lenient.facts()})
    elif not quiet:
        shown = {"seconds": "{:.2f}", "output": "{}"}
        lines = [(name, shown.get(name, "{:,}").format(value)) for name, value in report.items()]
        print_table([*lines, *lenient.lines()])


@dataclass(slots=True)
class Texts:
    """Yields the texts of a column in portions, and counts them."""

    source: Provider
    column: str
    errors: Literal["strict", "replace"]
    lenient: LenientReader
    stage: Stage
    count: int = 0
    nbytes: int = 0

    def __iter__(self) -> Iterator[list[str]]:
        from seqflow.ops.shared.strings import to_strings
        from seqflow.ops.shared.tokenizers import portions
        from seqflow.record import from_arrow

        columns = [name for name in self.source.columns if f"{self.column}.".startswith(f"{name}.")]
        for block in self.source.ahead(self.source.blocks(), columns):
            record = from_arrow(
                self.lenient.read(self.source, block, columns), valid=True
            )  # a null text has no words
            data, lengths = (record[f"{self.column}.{part}"] for part in ("values", "lengths"))
            place = f"{block.origin}, block {block.index}: text {{}} of {self.column}".format
            strings = to_strings(data, lengths, self.errors, place)
            self.count += len(lengths)
            self.nbytes += len(data)
            for first, stop in portions(strings):
                yield strings[first:stop].to_pylist()
            self.stage.done += 1
        # the trainer does not report its progress
        self.stage.name, self.stage.unit, self.stage.total = "all texts are read, learning pairs", "", None


def _column(source: Provider, asked: str | None) -> str:
    """Return the requested column of text, or the only one; raise JobError when there is none."""
    from seqflow.errors import JobError, nearest

    if source.kind == "text" and asked is None:
        return source.columns[1]  # the first field is the path of the file
    outer = [name for name in source.columns if asked is None or f"{asked}.".startswith(f"{name}.")]
    texts = [text for name in outer for text in _texts(source, name)]
    if asked in texts or (asked is None and len(texts) == 1):
        return asked or texts[0]
    found = "there is not just one column of text" if asked is None else f"{asked!r} is not a column of text"
    texts = [text for name in source.columns for text in _texts(source, name)]
    guess = "" if asked is None else nearest(asked, texts)
    raise JobError(f"--column: {found}{guess}\n  there are {', '.join(texts) or 'none'}")


def _texts(source: Provider, column: str) -> list[str]:
    """Return the names of the texts in a column: itself, or fields of it; none if it cannot be read."""
    from seqflow.errors import ProviderError
    from seqflow.record import from_arrow

    try:
        record = from_arrow(source.schema.empty_table().select([column]))
    except ProviderError:
        return []
    names = [name.removesuffix(".lengths") for name in record if name.endswith(".lengths")]
    return [
        name
        for name in names
        if (values := record.tensors.get(f"{name}.values")) is not None and values.dtype == "uint8"
    ]


def _check_size(vocab_size: int, specials: Sequence[str]) -> None:
    from seqflow.errors import JobError

    least = 256 + len(specials)
    if vocab_size < least:
        raise JobError(
            f"--vocab-size is {vocab_size}, expected {least} or more: 256 bytes and {len(specials)} special tokens"
        )
    if "" in specials:
        raise JobError("--special is empty, expected the name of a token")


def _check_target(output: Path, source: Provider, overwrite: bool) -> None:
    """Raise JobError when the tokenizer cannot be written, or would overwrite an input file."""
    from seqflow.errors import JobError
    from seqflow.output.overwriting import check_new_file, check_unused

    if output.is_dir() or not output.parent.is_dir():
        found = "is a folder" if output.is_dir() else "lies in no folder that exists"
        raise JobError(f"--output: {str(output)!r} {found}, expected the name of a file")
    if not os.access(output.parent, os.W_OK):
        raise JobError(f"--output: cannot write to the folder {str(output.parent)!r}")
    check_new_file("--output", output, source)
    check_unused(output, overwrite)


def _vocabulary_size(learned: bytes) -> int:
    import json

    return len(json.loads(learned)["model"]["vocab"])
