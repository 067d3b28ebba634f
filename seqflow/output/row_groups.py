"""RowGroups: gathers rows into row groups, which threads write to files in turn."""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import pyarrow as pa

from seqflow.output.file_writer import FileWriter
from seqflow.output.threads import naming_thread_limit
from seqflow.record.selection import Table

WriteGroup = Callable[[pa.Table, int], None]


class RowGroups:
    """Gathers rows until they make a row group of about `group_bytes`, then hands the group to a thread.

    `make(gathered)` makes the table of a row group. `start(turn, files)` returns the function that writes it in
    thread `turn`, with its number in the whole output; it adds a file to `files` if it needs a new one. Row groups of
    `pending_bytes` together may wait for the threads; a single larger one may wait alone. With `inline` there are no
    threads: the calling thread writes each row group.
    """

    def __init__(
        self,
        group_bytes: int,
        threads: int,
        pending_bytes: int,
        make: Callable[[Sequence[Table]], pa.Table],
        start: Callable[[int, list[FileWriter]], WriteGroup],
        *,
        inline: bool = False,
    ) -> None:
        self._group_bytes, self._make, self._start = group_bytes, make, start
        self._num_turns = threads
        # one thread for each file, not a pool: the row groups of a file must be written in order
        self._threads = [
            ThreadPoolExecutor(1, thread_name_prefix="seqflow-write") for _ in range(0 if inline else threads)
        ]
        self.count = 0
        """Number of row groups in the whole output so far."""
        self.rows = self.nbytes = 0
        """Rows and Arrow bytes of the open files."""
        self.gathered_bytes = 0
        """Arrow bytes of the next row group."""
        self._gathered: list[Table] = []
        self._files: list[FileWriter] = []
        self._turn = 0
        self._has_started = False
        self._pending: deque[tuple[Future[None], int]] = deque()
        self._most_pending, self._pending_bytes = pending_bytes, 0

    @property
    def is_empty(self) -> bool:
        """Whether no file is open and no rows wait."""
        return not self._files and not self._gathered

    def add(self, rows: Table) -> None:
        """Add rows. Also raises the errors of earlier row groups; an OSError names the file."""
        self._gathered.append(rows)
        self.gathered_bytes += rows.nbytes
        self.rows += rows.num_rows
        self.nbytes += rows.nbytes
        # from two thirds on: `PartWriter` cuts large batches into pieces of 2/3 to 3/2, and each is a row group by
        # itself
        if self.gathered_bytes >= self._group_bytes * 2 // 3:
            self.write_group()

    def write_group(self) -> None:
        """Hand the gathered rows, which may be none, to a thread as a row group."""
        self._start_threads()
        group, size = self._make(self._gathered), self.gathered_bytes
        self._gathered, self.gathered_bytes = [], 0
        while self._pending and (
            self._pending_bytes + size > self._most_pending or self._pending[0][0].done()
        ):
            self._await_oldest()
        write = self._start(self._turn, self._files)
        if self._threads:
            task = self._threads[self._turn].submit(write, group, self.count)
            self._pending.append((task, size))
            self._pending_bytes += size
        else:
            write(group, self.count)
        self.count += 1
        self._turn = (self._turn + 1) % self._num_turns

    def close(self, finish: Callable[[FileWriter], None]) -> None:
        """Write the remaining rows, close the open files, and then `finish` each."""
        if self._gathered:
            self.write_group()
        while self._pending:
            self._await_oldest()
        for file in self._files:
            file.close()
        for file in self._files:
            finish(file)
        self._files = []
        self._turn = self.rows = self.nbytes = 0

    def _start_threads(self) -> None:
        """Start all threads, before they have anything to write.

        An executor knows its thread only after the thread has started. If a signal interrupted the start of a thread
        that already has a row group, nothing would wait for the thread, and it would write to a file that `discard`
        closes.
        """
        if not self._has_started:
            with naming_thread_limit("output.threads"):
                for thread in self._threads:
                    thread.submit(int).result()
            self._has_started = True

    def discard(self) -> None:
        """End the threads, and remove the open files."""
        for thread in self._threads:
            thread.shutdown(wait=True, cancel_futures=True)
        for file in self._files:
            file.discard()

    def _await_oldest(self) -> None:
        task, size = self._pending.popleft()
        self._pending_bytes -= size
        task.result()
