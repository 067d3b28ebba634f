"""Progress: what is done of what takes long, and of how much."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seqflow as sf
from seqflow.progress import Stage, over, stage, watched


@pytest.fixture
def path(tmp_path):
    """A file of 60 rows in blocks of 5."""
    pq.write_table(
        pa.table({"x": [[n] * (n % 4) for n in range(60)]}), tmp_path / "x.parquet", row_group_size=5
    )
    return tmp_path / "x.parquet"


def test_items_are_counted_while_somebody_watches():
    with watched() as watch:
        seen = [(item, watch.outer.done, watch.outer.total) for item in over("abc", "letters", lambda: 3)]
    assert seen == [("a", 0, 3), ("b", 1, 3), ("c", 2, 3)]
    assert (watch.outer.done, watch.outer.is_over) == (3, True)


def test_the_total_is_not_asked_for_where_nobody_watches():
    def fail():
        raise AssertionError

    assert [*over("abc", "letters", fail)] == ["a", "b", "c"]


def test_a_stage_inside_another_is_the_inner_one_until_the_next_begins():
    with watched() as watch, stage(Stage("rows")) as outer:
        assert (watch.outer, watch.inner) == (outer, None)
        with stage(Stage("blocks")) as first:
            assert watch.inner is first
        assert watch.inner is first
        assert first.is_over
        with stage(Stage("blocks")) as second:
            assert (watch.outer, watch.inner) == (outer, second)


def test_a_stage_after_all_others_is_the_outer_one():
    with watched() as watch:
        with stage(Stage("blocks")):
            pass
        with stage(Stage("rows")) as rows:
            assert (watch.outer, watch.inner) == (rows, None)


@pytest.mark.parametrize("threads", [0, 2])
def test_a_loader_tells_which_of_its_windows_it_has_waited_for(path, threads):
    loader = sf.Loader(path, batch=2, window=200, threads=threads)
    with watched() as watch, stage(Stage("rows")):
        windows = [(watch.inner.name, watch.inner.done, watch.inner.total) for _ in loader]
    name, done, total = windows[-1]
    assert name.split()[1] == name.split()[3]
    assert len({*windows}) > 1
    assert 1 <= done == total <= 12
    assert all(name.startswith("window ") and done == total for name, done, total in windows)


def test_inside_of_a_window_blocks_are_counted_as_they_are_read(path):
    """`prepare` sees the count rise from block to block, before there is any batch."""
    seen = []

    def prepare(record):
        seen.append((watch.inner.done, watch.inner.total))
        return record

    with watched() as watch, stage(Stage("rows")):
        next(iter(sf.Loader(path, batch=10, prepare=prepare, threads=0)))
    assert seen == [(done, 12) for done in range(12)]


def test_an_index_counts_blocks_of_all(path, tmp_path):
    seen = []

    def prepare(record):
        seen.append((watch.outer.unit, watch.outer.total))
        return record

    loader = sf.Loader(path, batch=10, prepare=prepare, index=tmp_path / "i.arrow", version="1", threads=0)
    with watched() as watch:
        len(loader)
    assert set(seen) == {("blocks", 12)}
    assert (watch.outer.done, watch.outer.is_over) == (12, True)


def test_counting_keys_counts_blocks(path):
    from seqflow.vocabulary.counting import keys_of_column

    with watched() as watch:
        for number, _ in enumerate(keys_of_column(path, "x")):
            assert (watch.outer.done, watch.outer.total) == (number, 12)


def test_blocks_of_a_stream_have_no_known_end():
    source = sf.open(pa.RecordBatchReader.from_batches(pa.schema({"x": pa.int64()}), iter([])))
    assert source.num_blocks is None
    assert sf.open(pa.table({"x": [1]})).num_blocks == 1
