"""Pieces of a file: each is finished under a hidden name, and at the end they are joined to the one file."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from seqflow.errors import JobError
from seqflow.output.durable import sync_folder
from seqflow.output.files import FileKind, FileWriter, Format

if TYPE_CHECKING:
    import pyarrow as pa


def piece_path(path: Path, number: int) -> Path:
    """Piece `number` of a file."""
    return path.with_name(f"{path.name}.part-{number:05}")


def committed_path(path: Path) -> Path:
    """The hidden name under which a finished file waits for the end of the run."""
    return path.with_name(f".{path.name}.done")


def remove_committed(folder: Path, name: str, keep: Collection[str]) -> None:
    """Remove finished files whose name matches a regular expression, but those that are named."""
    committed = re.compile(rf"\.({name})\.done")
    for path in folder.iterdir():
        match = committed.fullmatch(path.name)
        if match and match[1] not in keep:
            path.unlink(missing_ok=True)


def check_committed(paths: Sequence[Path]) -> None:
    """JobError where one of these files is not there under its hidden name."""
    missing = next((path for path in map(committed_path, paths) if not path.exists()), None)
    if missing is not None:
        raise JobError(
            f"output: {str(missing)!r}, which the run that is continued has written, is gone\n"
            "  begin anew with --overwrite"
        )


def join(pieces: Sequence[Path], path: Path, form: Format) -> None:
    """Make a file of its committed pieces, and remove them. Where that was done before, nothing happens.

    The first piece is removed when the file has its name, and before the others: where it is missing, the file is
    complete. Each of these steps is on the disk before the next.
    """
    if not pieces:
        return
    committed = [committed_path(piece) for piece in pieces]
    if len(committed) == 1 and committed[0].exists():
        committed[0].replace(path)
    elif committed[0].exists():
        check_committed(pieces)
        writer = FileWriter(path, form)
        try:
            for group, table in enumerate(_groups(committed, form)):
                writer.write(table, group)
            writer.close()
            writer.rename(path)
        finally:
            writer.discard()
    for some in (committed[:1], committed[1:]):
        sync_folder(path.parent)
        for piece in some:
            piece.unlink(missing_ok=True)


def schema_of(path: Path, kind: FileKind) -> pa.Schema:
    """The schema of a file, whatever its name."""
    import pyarrow as pa
    from pyarrow import parquet

    if kind == "parquet":
        return parquet.read_schema(path)
    with pa.OSFile(str(path)) as file:
        return (pa.ipc.open_stream if kind == "run" else pa.ipc.open_file)(file).schema


def _groups(pieces: Sequence[Path], form: Format) -> Iterator[pa.Table]:
    """The row groups of all pieces, one after another."""
    import pyarrow as pa
    from pyarrow import parquet

    for piece in pieces:
        if form.kind == "parquet":
            with parquet.ParquetFile(piece) as file:
                for number in range(file.num_row_groups):
                    yield file.read_row_group(number)
        else:
            with pa.OSFile(str(piece)) as opened:
                file = pa.ipc.open_file(opened)
                for number in range(file.num_record_batches):
                    yield pa.Table.from_batches([file.get_batch(number)])
