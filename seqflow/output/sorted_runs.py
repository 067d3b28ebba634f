"""External sorting: write sorted runs of rows, and merge them in bounded memory."""

from collections.abc import Generator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import pyarrow as pa

from seqflow.output.file_writer import FileEncoding, FileWriter
from seqflow.output.sorting import SortedRows, SortKey, sort_table

RUN_BYTES = 32 << 20
"""Approximate Arrow bytes that are sorted together."""
RUN = FileEncoding("run", "lz4")
FAN_IN = 64
"""Number of runs that are merged at once; one batch of each is in memory."""


def write_run(writer: FileWriter, keys: Sequence[SortKey], table: pa.Table, number: int) -> None:
    """Sort a table and write it as one run."""
    writer.write(sort_table(table, keys), number)
    writer.close()


def merge_runs(
    runs: Sequence[Path], keys: Sequence[SortKey], scratch: Path
) -> Generator[pa.Table, None, None]:
    """Merge runs into sorted tables; equal rows stay in the order of the runs.

    More than `FAN_IN` runs are first merged into fewer, in temporary files whose names begin with the name of
    `scratch`.
    """
    with ExitStack() as written:
        count = 0
        while len(runs) > FAN_IN:
            longer = []
            for start in range(0, len(runs), FAN_IN):
                writer = FileWriter(scratch.with_name(f"{scratch.name}-{count}"), RUN)
                count += 1
                written.callback(writer.discard)
                with closing(_merged(runs[start : start + FAN_IN], keys)) as tables:
                    for number, table in enumerate(tables):
                        writer.write(table, number)
                writer.close()
                longer.append(writer.temporary)
            runs = longer
        yield from _merged(runs, keys)


def _merged(runs: Sequence[Path], keys: Sequence[SortKey]) -> Generator[pa.Table, None, None]:
    """Merge at most FAN_IN runs.

    Each step consumes the batch whose last row is smallest: all rows before that row are in memory.
    """
    with ExitStack() as files:
        readers = [_open(run, files) for run in runs]
        heads = {run: head for run, reader in enumerate(readers) if (head := _next(reader, keys)) is not None}
        while heads:
            # rows read later cannot come before the smallest last row: every run is sorted
            first = min(heads, key=lambda run: (heads[run].last, run))
            ranks = heads[first].last
            # equal rows of earlier runs come first, those of later runs wait: the merge is stable
            pieces = [
                head.take_all() if run == first else head.take_before(ranks, equal=run < first)
                for run, head in sorted(heads.items())
            ]
            pieces = [piece for piece in pieces if piece.num_rows]
            table = pa.Table.from_batches(pieces, readers[first].schema)
            # sorting a few concatenated sorted pieces, in Arrow, replaces a merge row by row in Python
            yield table if len(pieces) == 1 else sort_table(table, keys)
            following = _next(readers[first], keys)
            if following is None:
                del heads[first]
            else:
                heads[first] = following


def _open(run: Path, files: ExitStack) -> pa.RecordBatchStreamReader:
    return files.enter_context(pa.ipc.open_stream(files.enter_context(pa.OSFile(str(run)))))


def _next(reader: pa.RecordBatchStreamReader, keys: Sequence[SortKey]) -> SortedRows | None:
    batch = next(reader, None)
    return None if batch is None else SortedRows(batch, keys)
