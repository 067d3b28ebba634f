"""Row groups are gathered, and written in threads that have started before there is a file."""

import threading

import pyarrow as pa

from seqflow.output.row_groups import RowGroups

TABLE = pa.table({"x": range(10)})


def writing_threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("seqflow-write")]


def test_all_threads_have_started_before_one_has_something_to_write():
    alive, written = [], []

    def start(turn, files):
        alive.append(len(writing_threads()))
        return lambda table, number: written.append((number, table.num_rows))

    before = len(writing_threads())
    groups = RowGroups(1, 3, 1 << 20, pa.concat_tables, start)
    assert len(writing_threads()) == before
    for _ in range(4):
        groups.add(TABLE)
    groups.close(lambda file: None)
    groups.discard()
    assert alive == [before + 3] * 4
    assert sorted(written) == [(number, 10) for number in range(4)]
    assert len(writing_threads()) == before
