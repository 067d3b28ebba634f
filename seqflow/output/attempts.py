"""Attempts of other processes to write a part: their files have unique names in a folder of the run."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from seqflow.output.attempt_folders import new_name
from seqflow.output.file_writer import FileEncoding, FileWriter
from seqflow.output.output_file import OutputFile
from seqflow.output.part_writer import FileLayout, PartWriter
from seqflow.output.sorted_runs import RUN
from seqflow.record import Record


@dataclass(frozen=True, slots=True)
class Attempt:
    """The files of one attempt to write a part. Errors name the output, not the attempt."""

    folder: Path
    output: Path
    encoding: FileEncoding
    number: int
    """Number of the part."""
    name: str = field(default_factory=new_name)

    def path(self, what: str) -> Path:
        """Return the path of a file of this attempt."""
        return self.folder / f"{what}-{self.number:05}-{self.name}"

    def new_part(self, turn: int) -> FileWriter:
        """Return a writer of file `turn` of the part."""
        return FileWriter(self.output, self.encoding, self.path(f"part{turn}"))

    def new_run(self, group: int) -> FileWriter:
        """Return a writer of the sorted run of a row group."""
        return FileWriter(self.output, RUN, self.path(f"run{group}"))

    def write(
        self, layout: FileLayout, batches: Iterable[Record], *, inline: bool
    ) -> tuple[list[OutputFile], pa.Schema | None]:
        """Write the batches of the part; return its finished files, and the schema of its batches if there are
        any.
        """
        files: list[OutputFile] = []
        writer = PartWriter(layout, self, inline=inline)
        try:
            for batch in batches:
                writer.write(batch)
                del batch  # its memory is the writer's now
            writer.close(lambda file: files.append(file.finish(file.piece)))
        finally:
            writer.groups.discard()
        return files, writer.schema
