"""Committed files: finished under hidden names; renamed or joined at the end of the run."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from seqflow.errors import JobError
from seqflow.output.durable_files import sync_folder
from seqflow.output.file_writer import FileEncoding, FileKind, FileWriter
from seqflow.output.output_file import OutputFile
from seqflow.output.threads import in_threads


def piece_path(path: Path, number: int) -> Path:
    """Return the path of piece `number` of a single output file."""
    return path.with_name(f"{path.name}.part-{number:05}")


def committed_path(path: Path) -> Path:
    """Return the hidden path at which a finished file waits for the end of the run."""
    return path.with_name(f".{path.name}.done")


def remove_committed(folder: Path, name: str, keep: Collection[str]) -> None:
    """Remove finished files whose name matches a regular expression, except those in `keep`."""
    committed = re.compile(rf"\.({name})\.done")
    for path in folder.iterdir():
        match = committed.fullmatch(path.name)
        if match and match[1] not in keep and (path.is_symlink() or not path.is_dir()):
            path.unlink(missing_ok=True)


def check_sizes(parts: Sequence[OutputFile], paths: Iterable[Path]) -> None:
    """Raise JobError when a file does not have the size of its part: something else has changed it."""
    for part, path in zip(parts, paths, strict=True):
        if not path.is_file() or path.stat().st_size != part.nbytes:
            raise JobError(
                f"output: {str(path)!r} is not as it was written: something else has changed or removed it\n"
                "  --resume writes it again"
            )


def join(
    pieces: Sequence[OutputFile], path: Path, encoding: FileEncoding, note: Callable[[OutputFile], None]
) -> None:
    """Join the committed pieces of a file, then remove them. Can be repeated after a crash at any step.

    `note` receives the description of the joined file before the file gets its name. Then the first piece is removed,
    and after it the others: if the first piece is missing, the joined file is complete. Each step is on the disk
    before the next one.
    """
    if not pieces:
        return
    committed = [committed_path(piece.path) for piece in pieces]
    if len(committed) == 1 and committed[0].exists():
        # a single piece is renamed: no bytes are copied
        check_sizes(pieces, committed)
        note(replace(pieces[0], path=path, batches=None))
        committed[0].replace(path)
    elif committed[0].exists():
        check_sizes(pieces, committed)
        concatenate(committed, path, encoding, note)
    # an existing first piece marks an unfinished join, so it is removed only when the joined file is on the disk
    for some in (committed[:1], committed[1:]):
        sync_folder(path.parent)
        for piece in some:
            piece.unlink(missing_ok=True)


def concatenate(
    files: Sequence[Path],
    path: Path,
    encoding: FileEncoding,
    note: Callable[[OutputFile], None] = lambda file: None,
) -> None:
    """Write the row groups of several files to a new one, which may replace one of them."""
    writer = FileWriter(path, encoding)
    try:
        for group, table in enumerate(groups_of(files, encoding)):
            writer.write(table, group)
        writer.close()
        note(writer.output_file(path))
        writer.rename(path)
    finally:
        writer.discard()


def locate(parts: Sequence[OutputFile], folder: Path) -> list[Path | None]:
    """Return the path of each committed part, its hidden or its final one; None if neither is intact."""

    def find(part: OutputFile) -> Path | None:
        hidden = committed_path(folder / part.path.name)
        # a part is never read through a link: the target of the link may belong to something else
        if part.is_at(hidden) and not hidden.is_symlink():
            return hidden
        return part.path if part.is_at(part.path) else None

    return in_threads(find, parts)


def schema_of(path: Path | pa.NativeFile, kind: FileKind) -> pa.Schema:
    """Return the schema of a file; its name does not matter."""
    from pyarrow import parquet

    if kind == "parquet":
        return parquet.read_schema(path)
    with path if isinstance(path, pa.NativeFile) else pa.OSFile(str(path)) as file:
        return (pa.ipc.open_stream if kind == "run" else pa.ipc.open_file)(file).schema


def groups_of(pieces: Sequence[Path], encoding: FileEncoding) -> Iterator[pa.Table]:
    """Yield the row groups of all pieces, one after another."""
    from pyarrow import parquet

    for piece in pieces:
        if encoding.kind == "parquet":
            with parquet.ParquetFile(piece) as file:
                for number in range(file.num_row_groups):
                    yield file.read_row_group(number)
        else:
            with pa.OSFile(str(piece)) as opened:
                file = pa.ipc.open_file(opened)
                for number in range(file.num_record_batches):
                    yield pa.Table.from_batches([file.get_batch(number)])
