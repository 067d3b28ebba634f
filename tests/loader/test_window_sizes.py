"""Every row comes once, whatever the size of a window, one byte below, at and above each boundary."""

from collections import Counter
from functools import partial

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest

import seqflow as sf
from seqflow.loader.windows import cut_windows, parts_of
from seqflow.providers import Block

TEXTS = [f"row {row} " + "x" * (row % 7) for row in range(60)]
TABLE = pa.table({"id": range(60), "text": TEXTS, "list": [[row] * (row % 4) for row in range(60)]})
IDS = [*range(60)]
FILTERED = sf.Rows(7, lengths="list.lengths", max_length=3)
BUDGET = sf.TokenBudget(10, lengths="list.lengths")


def _parquet(folder, rows):
    pq.write_table(TABLE, folder / "rows.parquet", row_group_size=rows)
    return folder / "rows.parquet"


def _arrow(folder):
    with ipc.new_file(folder / "rows.arrow", TABLE.schema) as writer:
        writer.write_table(TABLE, max_chunksize=13)
    return folder / "rows.arrow"


def _files(folder):
    for number in range(3):
        pq.write_table(TABLE.slice(20 * number, 20), folder / f"{number}.parquet", row_group_size=9)
    return str(folder / "*.parquet")


SOURCES = {
    "table": lambda folder: TABLE,
    "batches": lambda folder: pa.Table.from_batches(TABLE.to_batches(max_chunksize=11)),
    "one row group": partial(_parquet, rows=100),
    "row groups": partial(_parquet, rows=7),
    "arrow": _arrow,
    "files": _files,
}


def _window_sizes(source):
    """Sizes around those of a slice, a block, two blocks, and all of the data."""
    blocks = [block.nbytes or 0 for block in sf.open(source).blocks()]
    ends = {sum(blocks[:2]), sum(blocks), max(blocks), max(blocks) // 2}
    sizes = {1, sum(blocks) - 9} | {end + near for end in ends for near in (-1, 0, 1)}
    return sorted(size for size in sizes if size > 0)


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("batch", [sf.Rows(7), FILTERED, BUDGET], ids=repr)
def test_every_row_comes_once_in_every_epoch(kind, batch, tmp_path):
    source = SOURCES[kind](tmp_path)
    for window in _window_sizes(source):
        loader = sf.Loader(source, batch=batch, window=window, threads=window % 2)
        for epoch in range(2):
            found = [row for one in loader for row in one["id"].tolist()]
            assert found == IDS, (window, epoch)


@pytest.mark.parametrize("kind", SOURCES)
def test_every_row_comes_once_where_rows_are_shuffled_or_prepared(kind, tmp_path):
    source = SOURCES[kind](tmp_path)
    for window in _window_sizes(source):
        options = {"batch": 7, "window": window, "threads": 0}
        prepared = sf.Loader(source, prepare="after = id + 1\nreturn after", **options)
        assert [row for one in prepared for row in one["after"].tolist()] == [row + 1 for row in IDS], window
        if max(block.nbytes for block in sf.open(source).blocks()) > window:
            with pytest.raises(sf.OpError, match="raise window"):
                next(iter(sf.Loader(source, shuffle=True, **options)))
            continue
        shuffled = [*sf.Loader(source, shuffle=True, **options)]
        assert Counter(row for one in shuffled for row in one["id"].tolist()) == Counter(IDS), window


@pytest.mark.parametrize("world_size", [2, 3])
@pytest.mark.parametrize("streams", [1, 2])
def test_ranks_and_streams_get_every_row_once(world_size, streams, tmp_path):
    source = _parquet(tmp_path, 7)
    block = next(iter(sf.open(source).blocks())).nbytes
    for window in (1, 2 * block - 1, 2 * block):
        found = Counter()
        for rank in range(world_size):
            loader = sf.Loader(
                source, batch=3, window=window, streams=streams, rank=rank, world_size=world_size, tail="pad"
            )
            found.update(row for one in loader for row in one["id"].tolist())
        assert found == Counter(IDS), window


def test_a_run_goes_on_at_every_batch_of_slices(tmp_path):
    source = _parquet(tmp_path, 100)
    size = next(iter(sf.open(source).blocks())).nbytes
    for window in (1, size // 8, size // 2, size - 1, size):
        make = partial(sf.Loader, source, batch=BUDGET, window=window, threads=0)
        whole = [one["id"].tolist() for one in make()]
        for done in range(len(whole)):
            loader = make()
            batches = iter(loader)
            for _ in range(done):
                next(batches)
            again = make()
            again.load_state_dict(loader.state_dict())
            assert [one["id"].tolist() for one in again] == whole[done:], (window, done)


@pytest.mark.parametrize("rows", range(1, 40))
def test_slices_are_the_block_and_no_window_of_slices_holds_it(rows):
    for nbytes in {1, rows - 1, rows, rows + 1, 8 * rows - 1, 8 * rows + 1, 14_887} - {0}:
        block = Block("rows", 0, rows, nbytes)
        for window in {
            1,
            nbytes // 8,
            nbytes // 8 + 1,
            nbytes // 2,
            nbytes - 9,
            nbytes - 1,
            nbytes,
            nbytes + 1,
        }:
            if window < 1:
                continue
            parts = parts_of(0, block, window, sliced=True)
            numbers = [row for part in parts for row in range(part.start, part.stop or rows)]
            assert numbers == [*range(rows)]
            assert sum(part.nbytes for part in parts) >= nbytes
            assert len([*cut_windows(parts, window)]) > 1 or window >= nbytes or rows == 1
