"""Writing batches to Parquet or Arrow files that appear whole or not at all."""

from seqflow.output.encodings import choose_encodings
from seqflow.output.file_writer import FileSizes
from seqflow.output.output_file import Batches, OutputFile
from seqflow.output.writer import MAX_THREADS, OutputWriter, open_output

__all__ = [
    "MAX_THREADS",
    "Batches",
    "OutputWriter",
    "OutputFile",
    "FileSizes",
    "choose_encodings",
    "open_output",
]
