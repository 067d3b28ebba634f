"""The quarantine file of bad rows: written in pieces, by this or other processes, and joined at the end."""

import glob
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any

import pyarrow as pa

from seqflow.errors import JobError, ProviderError
from seqflow.files.uris import is_uri
from seqflow.json_schema import matches_schema
from seqflow.output.attempt_folders import attempts_beside, remove_attempts_beside
from seqflow.output.committed_files import (
    committed_path,
    concatenate,
    groups_of,
    join,
    locate,
    piece_path,
    remove_committed,
    schema_of,
)
from seqflow.output.durable_files import remove_temporaries, sync_folder, writing
from seqflow.output.file_writer import KIND_OF_SUFFIX, FileEncoding, FileWriter
from seqflow.output.lock import Lock
from seqflow.output.output_file import FORM, Batches, OutputFile
from seqflow.output.output_names import check_intact
from seqflow.output.overwriting import overwritten
from seqflow.output.stores.quarantine_copy import QuarantineCopy
from seqflow.printable import printable_line
from seqflow.record import BadRow

REASON_FIELDS = ("file", "block", "row", "column", "reason")
"""Fields of the column that gives the reason for each bad row; a quarantine file also has `line` after them."""


def with_reasons(
    rows: pa.Table, bad: Sequence[BadRow], origin: str, block: int, numbers: Sequence[int | None]
) -> pa.Table:
    """Return rows of a block as a quarantine file stores them: with a column that gives their place and the
    reason.
    """
    reasons = pa.StructArray.from_arrays(
        [
            pa.array([printable_line(origin)] * len(bad), pa.string()),
            pa.array([block] * len(bad), pa.int64()),
            pa.array(numbers, pa.int64()),
            pa.array([row.column for row in bad], pa.string()),
            pa.array([row.reason for row in bad], pa.string()),
            pa.array([row.line for row in bad], pa.large_binary()),
        ],
        names=[*REASON_FIELDS, "line"],
    )
    name = "bad"
    while name in rows.schema.names:
        name += "_"
    return pa.table({name: reasons, **dict(zip(rows.schema.names, rows.columns, strict=True))})


def encoding_of(path: Path) -> FileEncoding:
    """Return the format of a quarantine file, from its suffix."""
    return FileEncoding(KIND_OF_SUFFIX[path.suffix.lower()])


_OWNER = b"seqflow.output"
"""Key in the metadata of a quarantine file: the output of the job whose bad rows it has."""


def owned(rows: pa.Table, owner: str) -> pa.Table:
    """Return bad rows with the output of their job in the metadata; "" is that of a loader, which has none."""
    return rows.replace_schema_metadata({_OWNER: owner}) if owner else rows


def check_quarantine(
    path: Path | str, files: Sequence[str], options: Mapping[str, Any] | None, owner: str = ""
) -> QuarantineCopy | None:
    """Return the copy of a quarantine file in a store; None for a local file.

    Raise ProviderError when there is a file that it may not replace, none of bad rows, or when the file or its pieces
    have those of another output.
    """
    shown = str(path)
    if (source := overwritten(path, files)) is not None:
        raise ProviderError(f"quarantine: {shown!r} is {source!r}, a file of the source")
    copy = QuarantineCopy(shown, options) if is_uri(shown) else None
    path = Path(path) if copy is None else copy.path
    exists = path.exists() if copy is None else copy.exists
    if exists:
        schema = _schema_of(path if copy is None else copy.opened(), encoding_of(path))
        if not _is_quarantine(schema):
            raise ProviderError(
                f"quarantine: {shown!r} exists and is not a quarantine file of an earlier run\n  choose a new name"
            )
        _check_owner(shown, schema, owner)
    hidden = path.parent.glob(f".{glob.escape(path.name)}.part-*.done") if copy is None else copy.pieces()
    for piece in islice(hidden, 1):  # all are of one output: the first of another would have been refused
        _check_owner(shown, _schema_of(piece, encoding_of(path)), owner)
    return copy


def _schema_of(file: Any, encoding: FileEncoding) -> pa.Schema:
    """Return the schema of a file, that of no columns if it cannot be read."""
    try:
        return schema_of(file, encoding.kind)
    except (pa.ArrowException, OSError):
        return pa.schema([])


def _check_owner(shown: str, schema: pa.Schema, owner: str) -> None:
    other = (schema.metadata or {}).get(_OWNER, b"").decode()
    if other not in ("", owner):
        raise ProviderError(
            f"quarantine: {shown!r} has the bad rows of another output, {other!r}\n"
            "  each output needs a file of its own: give another bad_rows.path, or remove the file"
        )


def _is_quarantine(schema: pa.Schema) -> bool:
    return any(
        field.name.rstrip("_") == "bad"
        and tuple(part.name for part in field.type)[: len(REASON_FIELDS)] == REASON_FIELDS
        for field in schema
        if pa.types.is_struct(field.type)
    )


class Quarantine:
    """A Parquet or Arrow file of bad rows: their own columns, and a struct column `bad` with the reason.

    The fields of `bad` are `file`, `block`, `row`, `column`, `reason` and `line`: the bytes of a line that could not
    be read as a row. The column is named `bad_` if the rows have a column `bad` themselves. The file may replace a
    quarantine file of an earlier run, and no other file: ProviderError is raised when its name belongs to something
    else, to one of `files`, the source of the rows, or to the bad rows of another output than `owner`. A lock keeps
    other runs from writing it. The path may be a URI of a store with these `options`.

    A loader adds to the file with `publish` whenever a window ends; when an epoch is left early, the rows found so
    far stay.

    A job writes it in pieces: `commit` finishes one under a hidden name; `install` joins them, and can be repeated by
    another process that knows their names.
    """

    def __init__(
        self,
        path: Path | str,
        files: Sequence[str] = (),
        pieces: Sequence[Mapping[str, Any]] = (),
        options: Mapping[str, Any] | None = None,
        owner: str = "",
    ) -> None:
        self._shown, self._copy = str(path), check_quarantine(path, files, options, owner)
        self._owner = owner
        self._path = path = Path(path) if self._copy is None else self._copy.path
        self._encoding = encoding_of(path)
        own = re.compile(rf"{re.escape(path.name)}\.part-\d+")
        names = [piece["name"] for piece in pieces]
        if (foreign := next((name for name in names if not own.fullmatch(name)), None)) is not None:
            raise JobError(
                f"quarantine: {foreign!r} is not a piece of {str(path)!r}: the progress file is damaged"
            )
        self._pieces = [OutputFile.from_json(path.parent, piece) for piece in pieces]
        self._writer: FileWriter | None = None
        self._is_published, self._publish_after = False, 0.0
        self._is_joined = False
        """Whether the file in a store has all pieces already: an earlier run has ended after it was uploaded."""
        self._lock = Lock(path.with_name(f".{path.name}.lock"), path)
        if path.parent.is_dir():
            self._acquire()

    def _acquire(self) -> None:
        """Lock the file, and remove the unfinished files of killed runs."""
        if self._copy is not None:
            self._copy.open()
            return
        if self._lock.is_held:
            return
        with writing(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._lock.acquire()
        name = re.escape(self._path.name)
        remove_temporaries(self._path.parent, rf"{name}(?:\.part-\d+)?")
        remove_committed(self._path.parent, rf"{name}\.part-\d+", {piece.path.name for piece in self._pieces})
        remove_attempts_beside(self._path)

    def attempts_folder(self, run: str) -> Path:
        """Create a folder in which other processes write pieces."""
        self._acquire()
        folder = attempts_beside(self._path, run)
        folder.mkdir()
        return folder

    def write(self, rows: pa.Table) -> None:
        """Add bad rows, with the column of reasons."""
        if self._writer is None:
            self._acquire()
            piece = piece_path(self._path, len(self._pieces))
            self._writer = FileWriter(self._path, self._encoding, piece)
        self._writer.write(owned(rows, self._owner), len(self._writer.groups))

    def adopt(self, piece: OutputFile, batches: Batches) -> None:
        """Move a finished piece, with the bad rows of these batches, to the next hidden name."""
        self._acquire()
        path = piece_path(self._path, len(self._pieces))
        piece.path.replace(committed_path(path))
        self._pieces.append(replace(piece, path=path, batches=batches))
        self._keep(self._pieces[-1])

    @property
    def num_pieces(self) -> int:
        """The number of committed pieces."""
        return len(self._pieces)

    def pieces(self, first: int = 0, stop: int | None = None) -> list[dict[str, Any]]:
        """Return the entries of the committed pieces, or of some of them."""
        return [piece.to_json(self._path.parent) for piece in self._pieces[first:stop]]

    def commit(self, batches: Batches | None = None) -> None:
        """Finish the rows written so far as a piece, with the bad rows of these batches."""
        if self._writer is not None:
            piece = self._writer.finish(committed_path(self._writer.piece), batches=batches)
            self._keep(piece)
            self._pieces.append(piece)
            self._writer = None

    def _keep(self, piece: OutputFile) -> None:
        """Make a committed piece last."""
        if self._copy is None:
            sync_folder(self._path.parent)
        else:
            self._copy.keep(piece)

    def check(self, joined: Any) -> None:
        """Raise JobError, and release the lock, when committed pieces are missing or changed, except when the noted
        `joined` file is intact.
        """
        try:
            check_intact(self._shown, self._damaged(joined))
        except JobError:
            self.leave()
            raise

    def _damaged(self, joined: Any) -> list[OutputFile]:
        if self._copy is not None:
            self._is_joined = matches_schema(joined, FORM) and self._copy.is_at(joined)
            return [] if self._is_joined else self._copy.damaged(self._pieces)
        folder = self._path.parent
        if matches_schema(joined, FORM) and OutputFile.from_json(folder, joined).is_at(self._path):
            return []
        found = locate(self._pieces, folder)
        return [piece for piece, path in zip(self._pieces, found, strict=True) if path is None]

    def keep_former(self) -> None:
        """Begin with the rows of the file of earlier runs, as the first piece: the file is replaced at the end."""
        if self._copy is not None:
            self._copy.fetch_former()
        if self._path.exists():
            for rows in groups_of([self._path], self._encoding):
                self.write(rows)
            self.commit()

    def install(self, note: Callable[[OutputFile], None] = lambda file: None) -> None:
        """Join the committed pieces into the file; `note` receives its description before that.

        If there are no bad rows, a file of an earlier run is removed.
        """
        if not self._is_joined:
            if self._copy is not None:
                self._copy.fetch(self._pieces)
            join(self._pieces, self._path, self._encoding, note)
            if not self._pieces:
                self._path.unlink(missing_ok=True)
            if self._copy is not None:
                self._copy.publish()
        if self._copy is not None:
            self._copy.remove_pieces()

    def leave(self) -> None:
        """Remove uncommitted rows, and release the lock."""
        if self._writer is not None:
            self._writer.discard()
        self._lock.release()
        if self._copy is not None:
            self._copy.close()

    def publish(self, *, wait: bool = False) -> None:
        """Add the written rows to the file: now with `wait`, otherwise only if that takes less than a tenth of the
        time.
        """
        started = perf_counter()
        if self._writer is None or (not wait and started < self._publish_after):
            return
        writer, self._writer = self._writer, None
        try:
            writer.close()
            before = [self._path] if self._is_published else []
            concatenate([*before, writer.temporary], self._path, self._encoding)
            if self._copy is not None:
                self._copy.publish()
        finally:
            writer.discard()
        self._is_published = True
        # the whole file is written again each time, which takes longer as it grows
        self._publish_after = perf_counter() + 10 * (perf_counter() - started)

    def close(self, *, finished: bool) -> None:
        """End a run without pieces; only a finished run removes the file of an earlier run when it found no bad
        rows.
        """
        try:
            self.publish(wait=True)
            if finished and not self._is_published:
                self._path.unlink(missing_ok=True)
                if self._copy is not None:
                    self._copy.publish()
        finally:
            self.leave()


class NoQuarantine:
    """Stands in for the quarantine file in a run that writes no bad rows; does nothing."""

    num_pieces = 0

    def attempts_folder(self, run: str) -> None:
        return None

    def pieces(self, first: int = 0, stop: int | None = None) -> list[dict[str, Any]]:
        return []

    def check(self, joined: Any) -> None: ...

    def adopt(self, piece: OutputFile, batches: Batches) -> None: ...

    def commit(self, batches: Batches | None = None) -> None: ...

    def keep_former(self) -> None: ...

    def install(self, note: Callable[[OutputFile], None] = lambda file: None) -> None: ...

    def leave(self) -> None: ...

    def publish(self) -> None: ...

    def close(self, *, finished: bool) -> None: ...
